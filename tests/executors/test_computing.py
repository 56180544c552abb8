"""Tasks computed elsewhere: the same entries as here, or a reason why not."""

import warnings
from dataclasses import dataclass, replace

import attrcheck
from attrcheck.contracts import Case, Protocol
from attrcheck.engine import tuned as tuning
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.executors.computing import Answer, compute
from attrcheck.executors.planning import plan
from attrcheck.store.encoding import parse_entry, read_entry
from attrcheck.store.inventory import files
from tests.engine.test_tuned import build, dataset
from tests.executors.distributed import cases


def elsewhere(tiny, tmp_path, **changes):
    return Lab.of(tiny.settings(store=tmp_path / "elsewhere", **changes))


def first(tiny, method, *protocols):
    """The task of a method on the first shard, and what it is given."""
    lab = Lab.of(tiny.settings())
    tasks = list(plan(lab, cases(*protocols)))
    return next(task for task in tasks if task.method == method)


def answered(task, lab):
    given = [Answer(tuple(path.read_bytes() for path in task.given))]
    if task.after:
        given.append(answered(task.after, lab))
    return compute(replace(task, after=None, given=()), lab, given)


def test_entries_are_those_of_a_local_run_and_nothing_stays(tiny, tmp_path, same_arrays):
    task = first(tiny, "slope", "morf", "insertion", "srg")
    lab = elsewhere(tiny, tmp_path)
    shared, own = answered(task.after, lab), answered(task, lab)
    assert not lab.store.folder.exists()
    sent = {}
    for answer, kinds in ((shared, {"shared"}), (own, {"records", "maps"})):
        heads = [parse_entry(content) for content in answer.entries]
        assert {head["name"].partition("/")[0] for head, _ in heads} == kinds
        sent |= {lab.store.path(head["name"], head["key"]).name: entry for head, entry in heads}
    here = Lab.of(tiny.settings(methods=("slope",)))
    for case in task.cases:
        run_case(here.evaluation(case), lambda text: None)
    local = {path.name: read_entry(path)[1] for path in files(here.store.folder)}
    assert sent.keys() == {name for name in local if "@" not in name}
    assert all(same_arrays(entry.arrays, local[name].arrays) for name, entry in sent.items())


def test_a_method_without_maps_ends_in_all_cases_and_is_tried_once(tiny, tmp_path):
    calls = []

    def broken(model, images, targets):
        calls.append(len(images))
        raise ValueError("not these")

    tiny.add("broken", broken)
    task = first(tiny, "broken", "morf", "lerf", "insertion")
    answer = answered(task, elsewhere(tiny, tmp_path))
    assert not answer.entries
    assert not answer.failed
    assert len(calls) == 1
    assert {one.status for one in answer.ended.values()} == {"error"}
    assert answer.ended.keys() == {case.id for case in task.cases}
    lab = Lab.of(tiny.settings(methods=("broken",), store=tmp_path / "other"))
    here = run_case(lab.evaluation(task.cases[0]), lambda text: None).outcomes["broken"]
    assert answer.ended[task.cases[0].id].reason == here.reason


@dataclass(frozen=True)
class Breaks(Protocol):
    """Observes nothing."""

    higher_is_better = True

    def observe(self, model, batch, maps, shared):
        return 1 / 0

    def reduce(self, rows):
        raise NotImplementedError


def test_a_protocol_that_fails_costs_its_own_case_alone(tiny, tmp_path):
    attrcheck.protocol("breaks")(Breaks)
    task = first(tiny, "slope", "breaks", "morf")
    answer = answered(task, elsewhere(tiny, tmp_path))
    assert list(answer.ended) == ["many-linear-breaks"]
    assert "raised ZeroDivisionError" in answer.ended["many-linear-breaks"].reason
    assert not answer.failed
    names = [parse_entry(content)[0]["name"] for content in answer.entries]
    assert [name.partition("/")[0] for name in names] == ["records", "maps"]


def test_whoever_would_compute_something_else_says_what_differs(tiny, tmp_path):
    task = first(tiny, "slope", "morf")
    [[key]] = task.keys
    other = {**key, "device": "cuda", "engine": "another"}
    answer = compute(
        replace(task, keys=([other],), after=None), elsewhere(tiny, tmp_path), [Answer()]
    )
    [why] = answer.failed.values()
    assert "would compute something else than was asked for" in why
    assert "device (cpu there, cuda here), engine;" in why
    assert not answer.entries


def test_a_method_that_is_not_known_there_is_not_the_methods_fault(tiny, tmp_path):
    task = first(tiny, "slope", "morf")
    answer = compute(
        replace(task, method="unknown", after=None), elsewhere(tiny, tmp_path), [Answer()]
    )
    assert not answer.ended
    assert "method 'unknown' cannot be loaded" in answer.failed[task.cases[0].id]


def test_what_failed_before_is_not_tried(tiny, tmp_path):
    task = first(tiny, "slope", "morf")
    failed = Answer(failed={task.cases[0].id: "no such picture"})
    assert compute(task, elsewhere(tiny, tmp_path), [failed]).failed == failed.failed


def test_weights_that_are_given_are_not_made_again(tiny, tmp_path, monkeypatch):
    attrcheck.dataset("noise", offers=("training",))(dataset)
    attrcheck.model("mine", datasets="noise")(build)
    tasks = list(plan(Lab.of(tiny.settings()), [Case("noise", "mine", "idsds")]))
    monkeypatch.setattr(tuning, "finetune", None)
    answer = answered(tasks[-1], elsewhere(tiny, tmp_path))
    assert not answer.failed
    assert answer.entries


def test_warnings_are_sent_once(tiny, tmp_path):
    def uneasy(model, images, targets):
        warnings.warn("these are odd images", stacklevel=1)
        return images

    tiny.add("uneasy", uneasy)
    answer = answered(first(tiny, "uneasy", "morf"), elsewhere(tiny, tmp_path))
    assert [one for one in answer.warnings if "odd" in one] == ["these are odd images"]
