from types import SimpleNamespace

from attrcheck.contracts import Case
from attrcheck.engine.checking import Subject
from attrcheck.plugin.collecting import CheckRequest, collected_by, ours, tell, without_subject


def item(node_id, **parameters):
    return SimpleNamespace(nodeid=node_id, callspec=SimpleNamespace(params=parameters))


CASE = Case("tiny", "linear", "morf")
REQUEST = CheckRequest("contract", Subject("slope"), (CASE,))
ITEMS = [
    item("t.py::test_case[tiny-linear-morf]", attr_case=CASE),
    item("t.py::test_mine[x-tiny-linear-morf]", attr_case=CASE, other="x"),
    item(
        "t.py::test_method[contract-slope]",
        attr_check=CheckRequest("contract", Subject("slope"), ()),
    ),
    item("t.py::test_theirs[tiny-linear-morf]", how="tiny-linear-morf"),
    SimpleNamespace(nodeid="t.py::test_plain"),
]
OURS = {
    "t.py::test_case[tiny-linear-morf]": "tiny-linear-morf",
    "t.py::test_mine[x-tiny-linear-morf]": "tiny-linear-morf",
    "t.py::test_method[contract-slope]": "contract-slope",
}


def test_an_item_is_ours_by_its_parameters_not_by_its_id():
    assert ours(ITEMS) == OURS


def test_the_controller_reads_what_a_worker_wrote(tmp_path):
    folder = str(tmp_path / "run")
    names = {"method": ["exact"], "case": ["tiny-linear-morf"], "protocol": ["morf"]}
    tell(ITEMS, folder, "gw0", names)
    tell(ITEMS[:1], folder, "gw1", {})
    assert collected_by(folder, "gw0") == (OURS, names)
    assert list(collected_by(folder, "gw1")[0].values()) == ["tiny-linear-morf"]
    assert collected_by(folder, "gw2") == ({}, {})


def test_a_worker_without_such_items_writes_nothing(tmp_path):
    tell(ITEMS[3:], str(tmp_path / "run"), "gw0", {})
    assert list(tmp_path.iterdir()) == []


def test_only_items_of_ours_are_without_subject():
    idle = SimpleNamespace(name="test_case[NOTSET]", fixturenames=["attr_case"])
    theirs = SimpleNamespace(name="test_x[NOTSET]", fixturenames=["how"])
    busy = SimpleNamespace(name="test_case[a-b-c]", fixturenames=["attr_case"])
    assert without_subject([idle, theirs, busy]) == [idle]
