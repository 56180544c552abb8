"""Every hostile method beside two honest ones: nobody else's figures change, and nothing stays."""

import json
import os
import re
import subprocess
from functools import cache

import pytest
import torch

import attrcheck
from attrcheck.contracts import Case
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.isolation import knobs
from attrcheck.isolation.zygote import AVAILABLE
from tests.hostile import ELSEWHERE, HERE
from tests.worlds import (
    CLASSES,
    IMAGES,
    ITEMS,
    TINY,
    TINY_SIDE,
    Tiny,
    brightness,
    gradient,
    tiny_dataset,
    tiny_network,
)
from tests.worlds import method as source_of

pytest_plugins = ["pytester"]

CASES = ("tiny-linear-morf", "tiny-steep-morf")
HONEST = ("brightness", "slope")
ALONE = []


@cache
def pictures():
    """The same tensors for whoever asks, as some datasets hand them out."""
    generator = torch.Generator().manual_seed(5)
    masks = torch.rand(IMAGES, TINY_SIDE, TINY_SIDE, generator=generator) > 0.5
    learnt = torch.rand(6, 2, TINY_SIDE, TINY_SIDE, generator=generator), torch.arange(6) % CLASSES
    return tiny_dataset("tiny", masks=masks, training=lambda: learnt)


def steep_network(data):
    """As the other one, ten times as sure."""
    network = tiny_network(data)
    network[3].weight.data *= 10
    return network


@pytest.fixture
def world(registries, tmp_path):
    """Two models on one dataset and two honest methods."""
    attrcheck.dataset("tiny")(pictures)
    attrcheck.model("linear", datasets="tiny*")(tiny_network)
    attrcheck.model("steep", datasets="tiny*")(steep_network)
    attrcheck.method("slope")(gradient)
    attrcheck.method("brightness")(brightness)
    return Tiny(tmp_path / "store")


def run(world, names, **changes):
    """Both cases in one process, one after the other."""
    lab = Lab.of(world.settings(methods=tuple(names), **changes))
    return [run_case(lab.evaluation(Case.of(case)), lambda text: None) for case in CASES]


def figures(results):
    """All that is reported of the honest, to the bit."""
    return [
        (
            result.accuracy,
            [
                (outcome.status, outcome.score, outcome.low, outcome.high, outcome.curve)
                for outcome in (result.outcomes[name] for name in HONEST)
            ],
        )
        for result in results
    ]


@pytest.fixture
def honest(world, tmp_path):
    """The figures of the honest when they are alone, before anybody else has been here."""
    if not ALONE:
        ALONE.extend(figures(run(world, HONEST, store=tmp_path / "alone")))
    return ALONE


def kept(world, name):
    """What the store holds of a method."""
    return [path.name for path in world.folder.rglob("*") if path.name.startswith(name[:100])]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", HERE)
def test_in_this_process_it_costs_itself_alone(world, honest, title):
    hostile = HERE[title]
    attrcheck.method(hostile.name, **hostile.settings)(hostile.attribute)
    before = knobs.read()
    results = run(world, ("brightness", hostile.name, "slope"))
    assert knobs.turn_back(before) == []
    assert figures(results) == honest
    for result in results:
        outcome = result.outcomes[hostile.name]
        if hostile.error:
            assert outcome.status == "error"
            assert repr(hostile.name) in outcome.reason
            assert re.search(hostile.error, outcome.reason)
            assert len(outcome.reason) < 3000
        else:
            assert outcome.status == "ok", outcome.reason
    assert bool(kept(world, hostile.name)) != bool(hostile.error)
    assert figures(run(world, HONEST)) == honest


@pytest.mark.skipif(not AVAILABLE, reason="no processes of their own on this system")
@pytest.mark.filterwarnings("ignore")
def test_in_a_process_of_its_own_it_costs_itself_alone(world, honest):
    names = {}
    for at, (title, hostile) in enumerate(ELSEWHERE.items()):
        names[title] = f"mischief{at}"
        attrcheck.method(names[title], **hostile.settings)(hostile.attribute)
    before = knobs.read()
    chosen = ("brightness", *names.values(), "slope")
    results = run(world, chosen, isolate="auto", timeout=2.0)
    assert knobs.turn_back(before) == []
    assert figures(results) == honest
    for title, hostile in ELSEWHERE.items():
        name = names[title]
        for result in results:
            outcome = result.outcomes[name]
            assert outcome.status == ("error" if hostile.error else "ok"), (title, outcome.reason)
            if hostile.error:
                assert repr(name) in outcome.reason
                assert re.search(hostile.error, outcome.reason), (title, outcome.reason)
        assert bool(kept(world, f"{name}-")) != bool(hostile.error), title
    assert figures(run(world, HONEST)) == honest
    assert (
        "sleep 4321"
        not in subprocess.run(["ps", "-eo", "args"], capture_output=True).stdout.decode()
    )


@pytest.mark.parametrize("title", ["edits images through a view", "patches Tensor.argmax", "exits"])
def test_what_is_caught_here_is_caught_there_in_the_same_words(world, title, tmp_path):
    attrcheck.method("mischief")(HERE[title].attribute)
    reasons = [
        result.outcomes["mischief"].reason
        for isolate in ("off", "on")
        for result in run(world, ("mischief",), isolate=isolate, store=tmp_path / isolate)
    ]
    assert reasons[:2] == reasons[2:]


@pytest.mark.skipif(not AVAILABLE, reason="no processes of their own on this system")
@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.slow)])
def test_a_method_that_ends_its_process_leaves_a_red_run_that_says_so(pytester, workers):
    pytester.makeconftest(TINY + source_of("leaves", "os._exit(0)"))
    pytester.makepyfile(test_suite=ITEMS)
    result = pytester.runpytest_subprocess(
        *("-p", "no:cacheprovider", "--attr-models=steep", "--attr-protocols=morf"),
        *("--attr-methods=exact,leaves", "--attr-report", "--attr-threads=1", workers),
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    document = json.loads((pytester.path / "attr-report" / "report.json").read_text())
    assert not document["missing"]
    text = json.dumps(document)
    assert "method 'leaves' on halves-steep crashed its process twice: exit code 0" in text
    assert os.listdir(pytester.path / "attr-report")
