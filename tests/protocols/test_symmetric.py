"""Symmetric relevance gain: by hand, from the rows of `morf` and `lerf`, without a further pass."""

import numpy as np
import pytest

import attrcheck
from attrcheck.contracts import Case
from attrcheck.engine.cases import families
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.symmetric import SymmetricGain


def test_by_hand():
    protocol = SymmetricGain(at=(0, 1, 2), of=2)
    rows = {
        "lerf_probability": np.array([[1.0, 0.8, 0.2], [0.6, 0.6, 0.0]]),
        "morf_probability": np.array([[1.0, 0.2, 0.2], [0.6, 0.8, 0.0]]),
    }
    reduced = protocol.reduce(rows)
    # Trapezoids: the middle counts half, the ends, where the curves meet, a quarter each.
    assert reduced.per_image == pytest.approx([0.3, -0.1])
    assert reduced.score == pytest.approx(0.1)
    assert reduced.curve[1] == pytest.approx([0, 0.2, 0])


def test_the_score_is_that_of_its_parts(tiny):
    gain, deletion = (run(tiny, name)["slope"].score for name in ("srg", "deletion"))
    parts = SymmetricGain().parts
    for name in ("morf", "lerf"):
        assert parts[name].observation == protocols.get(name).make().observation
    attrcheck.protocol("kept")(lambda: parts["lerf"])
    assert gain == pytest.approx(run(tiny, "kept")["slope"].score - deletion)


def run(tiny, protocol):
    return tiny.run(f"tiny-linear-{protocol}").outcomes


def test_no_pass_beyond_those_of_morf_and_lerf(tiny, passes):
    for name in ("morf", "lerf"):
        tiny.run(f"tiny-linear-{name}")
    before = len(passes)
    result = tiny.run("tiny-linear-srg", run="the next")
    assert len(passes) == before
    assert result.outcomes["slope"].passes["observation"] == [18.0, 0.0]
    assert all(part.stored for part in result.provenance)


def test_morf_finds_what_srg_observed(tiny, passes):
    tiny.run("tiny-linear-srg")
    before = len(passes)
    tiny.run("tiny-linear-morf")
    assert len(passes) == before


def test_it_is_of_the_family_of_its_parts():
    cases = [Case("digits", "resnet", name) for name in ("srg", "morf", "saco")]
    assert families(cases, "default") == {"morf": "ablation", "saco": "saco", "srg": "ablation"}


def test_another_removal_by_name():
    protocol = protocols.get("srg:blur").make()
    assert protocol.removal == "blur"
    assert protocol.parts["morf"].removal == "blur"
