"""What a case came to is kept, and scored anew whenever anything that decides it has changed."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import attrcheck
from attrcheck.contracts import Case, Protocol, Reduction
from attrcheck.engine import scoring, wire
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.resampling import condense
from attrcheck.engine.scoring import score_case
from attrcheck.store.entries import VerificationError
from attrcheck.store.locking import BusyError
from attrcheck.store.merging import merge

MORF = Case.of("tiny-linear-morf")


@pytest.fixture
def runs(monkeypatch):
    """The cases that were scored, not served."""
    cases = []

    def counted(evaluation, *arguments):
        cases.append(evaluation.case.id)
        return run_case(evaluation, *arguments)

    monkeypatch.setattr(scoring, "run_case", counted)
    return cases


def plain(result):
    """A result, but for where it comes from."""
    return wire.plain(replace(result, provenance=[]))


def test_a_result_is_served_as_it_was_scored(tiny, runs):
    told = []
    scored = score_case(tiny.lab(), MORF, tell=told.append)
    served = score_case(tiny.lab(run="another"), MORF, tell=told.append)
    assert runs == [MORF.id]
    assert plain(served) == plain(scored)
    assert [told[0]] * 2 == told  # the accuracy is said whoever scored
    assert [origin.stored for origin in scored.provenance] == [False]
    assert [origin.stored for origin in served.provenance] == [True]
    assert served.provenance[0].created == scored.provenance[0].created


def test_it_is_the_condensed_result_of_the_case(tiny):
    expected = condense(tiny.run(run="earlier"))
    assert plain(score_case(tiny.lab(), MORF)) == plain(expected)


def test_what_is_served_calls_neither_method_nor_reduction(tiny, runs, monkeypatch):
    score_case(tiny.lab(), MORF)
    tiny.restart()
    monkeypatch.setattr(attrcheck.protocol.get("morf").make("default").__class__, "reduce", None)
    assert score_case(tiny.lab(), MORF).outcomes["slope"].status == "ok"


@pytest.mark.parametrize(
    "changes",
    [{"seed": 1}, {"images": 4}, {"methods": ("slope",)}, {"accept_accuracy": False}],
    ids=lambda changes: next(iter(changes)),
)
def test_other_settings_have_results_of_their_own(tiny, runs, changes):
    score_case(tiny.lab(), MORF)
    try:
        score_case(tiny.lab(**changes), MORF)
    except attrcheck.errors.ModelError:
        assert changes == {"accept_accuracy": False}  # its network guesses
    assert runs == [MORF.id] * 2


def test_code_that_decides_counts(tiny, runs, monkeypatch):
    score_case(tiny.lab(), MORF)
    monkeypatch.setattr(scoring.keys, "of_deciding_bytes", lambda: "other bytes")
    score_case(tiny.lab(), MORF)
    assert runs == [MORF.id]  # bytes alone, as of a comment, do not
    monkeypatch.setattr(scoring.keys, "of_deciding_bytes", lambda: "still other bytes")
    monkeypatch.setattr(scoring.keys, "of_deciding_code", lambda: "other code")
    score_case(tiny.lab(), MORF)
    assert runs == [MORF.id] * 2


def test_where_a_method_fails_nothing_is_kept(tiny, runs):
    def failing(model, images, targets):
        raise RuntimeError("not today")

    tiny.add("failing", failing)
    for _ in range(2):
        result = score_case(tiny.lab(), MORF)
        assert result.outcomes["failing"].status == "error"
        assert result.outcomes["slope"].status == "ok"
    assert runs == [MORF.id] * 2


def test_a_protocol_of_ones_own_is_reduced_every_time(tiny, runs):
    @dataclass(frozen=True)
    class Brightest(Protocol):
        """May look at anything when it reduces."""

        higher_is_better: bool = True

        def observe(self, model, batch, maps, shared):
            return {"mean": maps.mean((1, 2)).cpu().numpy()}

        def reduce(self, rows):
            return Reduction(float(rows["mean"].mean()), per_image=rows["mean"].astype(float))

    attrcheck.protocol("brightest")(lambda profile: Brightest())
    for _ in range(2):
        score_case(tiny.lab(), Case.of("tiny-linear-brightest"))
    assert len(runs) == 2


def test_a_result_that_another_run_is_computing_is_scored_here_too(tiny, runs, monkeypatch):
    lab = tiny.lab()

    def busy(name, key, compute, wait=True):
        if name.startswith("results/"):
            assert not wait
            raise BusyError
        return type(lab.store).obtain(lab.store, name, key, compute, wait)

    monkeypatch.setattr(lab.store, "obtain", busy)
    assert score_case(lab, MORF).outcomes["slope"].status == "ok"
    assert runs == [MORF.id]


def test_a_result_is_verified_rounding_aside(tiny, runs, monkeypatch):
    score_case(tiny.lab(), MORF)
    lab = tiny.lab(verify=1.0, run="another")
    score_case(lab, MORF)
    assert runs == [MORF.id] * 2

    def slightly(by):
        def changed(result):
            right = condense(result)
            slope = right.outcomes["slope"]
            moved = replace(
                slope,
                score=slope.score + by,
                image_scores=slope.image_scores + np.float32(by),
            )
            return replace(right, outcomes={**right.outcomes, "slope": moved})

        return changed

    monkeypatch.setattr(scoring, "condense", slightly(1e-8))
    score_case(lab, MORF)
    monkeypatch.setattr(scoring, "condense", slightly(1e-3))
    with pytest.raises(VerificationError, match=r"results/tiny-linear/morf-.* is not what is"):
        score_case(lab, MORF)


def test_stores_of_two_runs_are_merged_whatever_the_time_that_methods_took(tiny, tmp_path):
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        score_case(tiny.lab(store=folder), MORF)
    merged = merge(folders, tmp_path / "both")
    assert merged.equal == merged.linked + merged.copied > 0


def test_what_ships_is_known_by_its_bytes_and_loads_no_network(tmp_path, tiny, runs, monkeypatch):
    case = Case.of("digits-resnet-morf")
    chosen = {"methods": ("random",), "images": 10}
    score_case(tiny.lab(**chosen), case)
    tiny.restart()

    def refuse(*arguments):
        raise AssertionError("a network was loaded")

    monkeypatch.setattr(type(tiny.loader), "_build", refuse)
    assert score_case(tiny.lab(**chosen), case).outcomes["random"].status == "ok"
    assert runs == [case.id]
    tiny.restart()
    monkeypatch.setattr(scoring.keys, "of_deciding_bytes", lambda: "other bytes")
    with pytest.raises(AssertionError, match="a network was loaded"):
        score_case(tiny.lab(**chosen), case)
