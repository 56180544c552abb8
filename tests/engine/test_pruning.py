from dataclasses import dataclass

import attrcheck
from attrcheck.cli import main
from attrcheck.engine.pruning import Current
from attrcheck.protocols.ablation import Ablation
from attrcheck.store.inventory import entries
from tests.worlds import brightness


@dataclass(frozen=True)
class Own(Ablation):
    """A protocol of a project's own."""

    @property
    def observation(self):
        return "own"


class Other(Own):
    """The same name, other code."""

    def observe(self, model, batch, maps, shared):
        return super().observe(model, batch, -maps, shared)


def changed(tiny):
    """The parts that have changed, by the names of the entries that have some."""
    current = Current()
    return {item.name: parts for item in entries(tiny.folder) if (parts := current.changed(item))}


def test_nothing_is_stale_right_after_a_run(tiny):
    tiny.run()
    assert changed(tiny) == {}


def test_maps_and_rows_of_a_changed_method_are_stale(tiny):
    with attrcheck.method.scratch():
        attrcheck.method("fickle")(brightness)
        tiny.run(methods=("slope", "fickle"))
    attrcheck.method("fickle")(lambda model, images, targets: -images.sum(1))
    assert changed(tiny) == {
        "maps/tiny-linear/fickle": ["method"],
        "records/tiny-linear-morf.mean.10/fickle": ["method"],
    }


def test_every_shard_of_a_changed_method_is_stale(tiny):
    attrcheck.dataset("tinymany")(lambda: tiny.dataset("tinymany", count=300))
    with attrcheck.method.scratch():
        attrcheck.method("fickle")(brightness)
        tiny.run("tinymany-linear-morf", methods=("slope", "fickle"))
    assert changed(tiny) == {}
    attrcheck.method("fickle")(lambda model, images, targets: -images.sum(1))
    stale = {f"maps/tinymany-linear/fickle{shard}" for shard in ("", "@1")}
    stale |= {f"records/tinymany-linear-morf.mean.10/fickle{shard}" for shard in ("", "@1")}
    assert set(changed(tiny)) == stale


def test_what_is_not_registered_here_is_left_alone(tiny):
    with attrcheck.method.scratch():
        attrcheck.method("gone")(brightness)
        tiny.run(methods=("gone",))
    assert changed(tiny) == {}


def test_records_of_a_protocol_that_is_not_registered_here_are_left_alone(tiny):
    with attrcheck.protocol.scratch():
        attrcheck.protocol("own")(lambda: Own(True, False, at=(0, 3, 10)))
        tiny.run("tiny-linear-own", methods=("slope",))
    tiny.run("tiny-linear-captum:infidelity", methods=("slope",))
    assert changed(tiny) == {}


def test_records_of_a_changed_protocol_are_stale(tiny):
    with attrcheck.protocol.scratch():
        attrcheck.protocol("own")(lambda: Own(True, False))
        tiny.run("tiny-linear-own", methods=("slope",))
    attrcheck.protocol("own")(lambda: Other(True, False))
    assert changed(tiny) == {"records/tiny-linear-own/slope": ["protocol"]}


def test_all_is_stale_when_the_engine_or_torch_changes(tiny, monkeypatch):
    tiny.run()
    monkeypatch.setattr("torch.__version__", "99.0")
    assert len(changed(tiny)) == 6
    assert {part for parts in changed(tiny).values() for part in parts} == {"torch"}


def test_the_command_shows_and_prunes(tiny, capsys):
    with attrcheck.method.scratch():
        attrcheck.method("fickle")(brightness)
        tiny.run(methods=("slope", "fickle"))
    attrcheck.method("fickle")(lambda model, images, targets: -images.sum(1))
    assert main(["store", str(tiny.folder)]) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert lines["maps"][1] == "2"
    assert lines["maps"][3] == "1"
    assert main(["store", str(tiny.folder), "--prune"]) == 0
    assert "removed 2 stale entries and 0 leftovers" in capsys.readouterr().out
    assert changed(tiny) == {}
    assert len(list(entries(tiny.folder))) == 4


def test_a_folder_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["store", str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_why_names_the_parts_of_the_key_that_changed(tiny, capsys):
    tiny.run(methods=("slope",))
    tiny.run(methods=("slope",), seed=1)
    tiny.run(methods=("slope",), seed=1, images=7)
    assert main(["why", "maps/tiny-linear/*", str(tiny.folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "maps/tiny-linear/slope"
    assert sorted(line.split("  ")[-1] for line in lines[1:]) == ["images", "seed", "the first"]
    assert main(["why", "maps/nothing", str(tiny.folder)]) == 1
    assert "'maps/nothing'" in capsys.readouterr().err
