"""Laws as items: whom they bind, what a broken one says, how to see it again, how to leave them."""

import re

import hypothesis.core
import pytest

from attrcheck.engine.laws import bound
from attrcheck.methods import method as methods
from attrcheck.protocols import protocol as protocols
from tests.plugin.test_plugin import project, report, run

pytest_plugins = ["pytester"]
__all__ = ["project"]

LAWS = "def test_law(attr_law):\n    attr_law.run()\n"
SPECIMENS = """
from dataclasses import dataclass
import numpy as np
from attrcheck.contracts import Protocol, Reduction

@dataclass(frozen=True)
class Largest(Protocol):
    "The mean of the largest values."
    higher_is_better = True

    def observe(self, model, batch, maps, shared):
        return {"largest": maps.double().amax((1, 2)).numpy()}

    def reduce(self, rows):
        return Reduction.mean(rows["largest"])

@dataclass(frozen=True)
class Across(Largest):
    "Looks across images."
    def observe(self, model, batch, maps, shared):
        return super().observe(model, batch, maps - maps.mean(0), shared)

@dataclass(frozen=True)
class Ordered(Largest):
    "Is sensitive to the order of a batch."
    def observe(self, model, batch, maps, shared):
        place = np.arange(len(maps))
        return {"largest": super().observe(model, batch, maps, shared)["largest"] + place}

attrcheck.protocol("fair")(Largest)
attrcheck.protocol("across")(Across)
attrcheck.protocol("ordered")(Ordered)

@attrcheck.removal("leaky")
def leaky(images, keep):
    "Changes kept pixels."
    return images * keep[:, None] + 0.001
"""


@pytest.fixture
def world(project, monkeypatch):
    """The tiny project with laws as its only items, and specimens that break some; not in CI."""
    monkeypatch.delenv("CI", raising=False)
    project.makepyfile(test_suite=LAWS)
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + SPECIMENS)
    return project


def laws(project, *arguments):
    return run(project, "--attr-profile=smoke", "--attr-protocols=fair,across,ordered", *arguments)


BATCHES = "--attr-laws=rows_depend_on_no_other_image"


def counterexamples(result):
    return re.findall(r"^counterexample: (.*)$", result.stdout.str(), re.MULTILINE)


def test_one_item_for_each_law_and_what_it_binds(world):
    ids = [
        line.partition("[")[2].removesuffix("]")
        for line in laws(world, "--collect-only", "-q").outlines
        if "::" in line
    ]
    assert "ordered-rows_depend_on_no_other_image" in ids
    assert "leaky-kept_pixels_stay_as_they_are" in ids
    assert "exact-the_same_image_has_the_same_map" in ids
    assert "fusion-meta_ranks_sum_to_zero" in ids
    assert not any(name.startswith(("morf-", "saliency-")) for name in ids)  # not selected
    assert len(ids) == len(set(ids))


def test_no_two_kinds_share_the_name_of_a_law():
    known = bound(list(protocols), list(methods), "default")
    kinds = {law.law: {other.kind for other in known if other.law == law.law} for law in known}
    assert all(len(names) == 1 for names in kinds.values())


def test_specimens_are_caught_by_name(world):
    wanted = "rows_depend_on_no_other_image,kept_pixels_stay_as_they_are"
    chosen = (f"--attr-laws={wanted}", "--attr-profile=default")
    result = laws(world, *chosen, "--attr-report", "--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    failed = re.findall(r"^FAILED test_suite.py::test_law\[(.*?)\]", result.stdout.str(), re.M)
    assert sorted(failed) == [
        "across-rows_depend_on_no_other_image",
        "leaky-kept_pixels_stay_as_they_are",
        "ordered-rows_depend_on_no_other_image",
    ]
    result.stdout.fnmatch_lines(
        [
            "rows_depend_on_no_other_image of protocol across is broken: row 'largest' is not the "
            "same in another batch",
            "counterexample: Scene(seed=*, count=2, maps=*)",
            "again: this item with --hypothesis-seed=*",
            "no gates to keep, 3 laws broken",
            "laws: * held, 3 BROKEN",
            "law broken: kept_pixels_stay_as_they_are of removal leaky: a kept pixel is changed, by"
            "*; counterexample: Cut(seed=*",
        ]
    )
    broken = {law["subject"]: law for law in report(world)["laws"] if law["status"] == "broken"}
    assert broken.keys() == {"across", "ordered", "leaky"}
    assert broken["leaky"]["kind"] == "removal"
    assert broken["leaky"]["scene"].startswith("Cut(")
    text = (world.path / "attr-report" / "report.md").read_text()
    assert "- law broken: rows_depend_on_no_other_image of protocol ordered: " in text
    page = (world.path / "attr-report" / "report.html").read_text()
    assert "Broken laws" in page
    assert "Scene(seed=" in page
    junit = (world.path / "junit.xml").read_text()
    assert '<property name="status" value="broken"' in junit


def test_a_seed_shows_the_same_counterexample_again(world, monkeypatch):
    monkeypatch.setattr(hypothesis.core, "global_force_seed", None)  # the option stays in force
    first = laws(world, BATCHES, "-k", "across", "--attr-profile=default")
    (seed,) = re.findall(r"--hypothesis-seed=(\d+)", first.stdout.str())
    again = laws(
        world,
        *(BATCHES, "-k", "across", "--attr-profile=default"),
        *(f"--hypothesis-seed={seed}", "--attr-store=elsewhere"),
    )
    assert counterexamples(again) == counterexamples(first) != []
    assert f"--hypothesis-seed={seed}" in again.stdout.str()


def test_what_broke_a_law_is_kept_in_the_store_and_tried_first(world):
    laws(world, BATCHES, "-k", "across or fair", "--attr-profile=default")
    kept = list((world.path / ".attrcheck" / "examples").iterdir())
    assert len(kept) == 1  # of the one that is broken


def test_under_ci_nothing_is_random(world, monkeypatch):
    monkeypatch.setenv("CI", "true")
    first, again = (laws(world, BATCHES) for _ in range(2))
    seeds = [re.findall(r"hypothesis-seed=(\d+)", result.stdout.str()) for result in (first, again)]
    assert seeds[0] == seeds[1] != []
    assert counterexamples(first) == counterexamples(again)
    assert not (world.path / ".attrcheck" / "examples").exists()


def test_all_hold_and_are_counted(world):
    result = laws(world, "-k", "fusion or fair and not truth", "--attr-report")
    assert result.ret == pytest.ExitCode.OK
    count = len(report(world)["laws"])
    result.stdout.fnmatch_lines([f"laws: {count} held", f"*{count} passed*"])
    assert {law["examples"] for law in report(world)["laws"]} == {5}
    assert not any("seed" in law for law in report(world)["laws"])  # a later run says the same


def test_they_can_be_left_out(world):
    result = laws(world, "--attr-laws=none")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert laws(world, "--attr-laws=no_such").ret == pytest.ExitCode.USAGE_ERROR


def test_a_task_of_many_tries_none(world):
    assert laws(world, "--attr-shard=1/2").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_laws_never_change_the_board(world):
    world.makepyfile(test_suite=LAWS + "\ndef test_case(attr_case):\n    attr_case.run()\n")
    chosen = ("--attr-report", BATCHES, "--attr-protocols=morf")
    run(world, *chosen, "--attr-profile=smoke")
    with_laws = report(world)
    run(world, *chosen, "--attr-profile=smoke", "--attr-laws=none")
    without = report(world)
    assert with_laws.pop("laws")
    assert without.pop("laws") == []
    for document in (with_laws, without):
        document.pop("run")
    assert with_laws == without


def test_a_users_method_is_tried_in_its_own_process(world):
    conftest = world.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + "\n@attrcheck.method('mine')\ndef mine(model, images, targets):\n    os._exit(3)\n"
    )
    result = laws(world, "--attr-laws=every_image_has_a_map", "-k", "mine")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*method 'mine' on noise-random crashed its process twice*"])
