import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import attrcheck
from attrcheck.contracts import Case, Protocol, Reduction
from attrcheck.engine import wire
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.resampling import RESAMPLES
from attrcheck.engine.shards import Shard
from attrcheck.store.entries import StoreError
from attrcheck.store.locking import BusyError


def statuses(result):
    return {name: outcome.status for name, outcome in result.outcomes.items()}


def scores(result):
    return {name: outcome.score for name, outcome in result.outcomes.items()}


def same(one, other):
    """Whether two results are the same, the time they took and where they come from aside."""

    def plain(result):
        found = wire.plain(replace(result, provenance=[]))
        for outcome in found["outcomes"].values():
            outcome.pop("seconds")
        return found

    return plain(one) == plain(other)


def counting(function):
    """A method and the sizes of the batches that it was called with."""
    calls = []

    def counted(model, images, targets):
        calls.append(len(images))
        return function(model, images, targets)

    return counted, calls


def uneven(model, images, targets):
    return images.sum(1)


def test_a_case_scores_every_method(tiny):
    result = tiny.run()
    assert result.case == "tiny-linear-morf"
    assert result.higher_is_better is False
    assert result.images == 8
    assert list(result.outcomes) == ["brightness", "slope"]
    for outcome in result.outcomes.values():
        assert outcome.status == "ok"
        assert 0 <= outcome.low <= outcome.score <= outcome.high <= 1
        assert outcome.replicates.shape == (RESAMPLES,)
        assert outcome.curve.y[0] == result.accuracy
        assert outcome.seconds > 0
        assert outcome.constant_maps == 0
    assert result.problems == []


def test_accuracy_is_that_of_the_model_on_the_images(tiny):
    pair = tiny.pair
    right = pair.network(pair.images).argmax(1) == pair.labels
    assert tiny.run().accuracy == right.double().mean().item()


def test_the_better_method_has_the_better_score(tiny):
    """For a linear model slope times input is the exact share of each pixel."""
    found = scores(tiny.run("tiny-linear-morf"))
    assert found["slope"] <= found["brightness"]
    found = scores(tiny.run("tiny-linear-lerf"))
    assert found["slope"] >= found["brightness"]


def test_progress_names_case_and_method(tiny):
    said = []
    run_case(tiny.lab().evaluation(Case.of("tiny-linear-morf")), said.append)
    first, second = said
    assert first == "tiny-linear-morf brightness, method 1 of 2"
    assert re.fullmatch(
        r"tiny-linear-morf slope, method 2 of 2, \S+ images/s, \d+:\d\d left", second
    )


def test_the_same_settings_give_the_same_result_to_the_bit(tiny, tmp_path):
    first = tiny.run()
    tiny.restart()
    assert same(tiny.run(store=tmp_path / "another"), first)


def test_a_second_run_makes_no_pass_of_the_model(tiny, passes):
    first = tiny.run()
    assert passes
    passes.clear()
    second = tiny.run()
    assert passes == []
    assert wire.plain(replace(second, provenance=[])) == wire.plain(replace(first, provenance=[]))


def test_a_second_process_does_not_run_the_model_at_all(tiny, passes):
    first = tiny.run()
    tiny.restart()
    passes.clear()
    second = tiny.run()
    assert wire.plain(replace(second, provenance=[])) == wire.plain(replace(first, provenance=[]))
    assert passes == []


def test_a_result_says_where_its_scores_come_from(tiny):
    first = tiny.run(methods=("slope",))
    second = tiny.run(methods=("brightness", "slope"), run="the next")
    [computed] = first.provenance
    new, old = second.provenance
    assert (computed.stored, new.stored, old.stored) == (False, False, True)
    assert list(new.created[first.case]) == ["brightness"]
    assert old.created == computed.created
    assert list(old.created[first.case]) == ["slope"]
    assert old.versions == computed.versions
    assert set(old.versions) >= {"attrcheck", "torch", "numpy"}


def test_a_score_has_the_fingerprint_of_its_record(tiny):
    outcomes = tiny.run().outcomes
    assert len({outcome.fingerprint for outcome in outcomes.values()}) == len(outcomes)
    for name, outcome in outcomes.items():
        [record] = (tiny.folder / "records").rglob(f"{name}-*")
        assert record.name == f"{name}-{outcome.fingerprint}.safetensors"


def test_a_new_method_costs_only_its_own_passes(tiny, passes):
    first = tiny.run()
    both = list(passes)
    passes.clear()
    function, calls = counting(uneven)
    tiny.add("new", function)
    second = tiny.run()
    assert calls == [8]
    # `uneven` makes no pass: what is left are the steps between the two that all methods share.
    assert passes == [8] * 9
    assert len(both) > 2 * len(passes)
    assert same(first, tiny.run(methods=("brightness", "slope")))
    assert second.outcomes["slope"].score == first.outcomes["slope"].score


def test_who_else_takes_part_does_not_matter(tiny, tmp_path):
    alone = tiny.run(methods=("slope",), store=tmp_path / "alone")
    together = tiny.run(methods=("slope", "brightness"), store=tmp_path / "together")
    assert scores(alone)["slope"] == scores(together)["slope"]
    np.testing.assert_array_equal(
        alone.outcomes["slope"].replicates, together.outcomes["slope"].replicates
    )


def test_protocols_share_maps_and_what_needs_no_map(tiny, passes):
    function, calls = counting(uneven)
    tiny.add("counted", function)
    tiny.run("tiny-linear-morf", methods=("counted",))
    passes.clear()
    tiny.run("tiny-linear-lerf", methods=("counted",))
    assert calls == [8]
    assert passes == [8] * 9


def test_fresh_computes_anew_but_only_once_a_run(tiny):
    function, calls = counting(uneven)
    tiny.add("counted", function)
    tiny.run()
    first = tiny.run("tiny-linear-morf", fresh=True, run="next")
    assert len(calls) == 2
    assert same(tiny.run("tiny-linear-morf"), first)
    tiny.run("tiny-linear-lerf", fresh=True, run="next")
    assert len(calls) == 2
    tiny.run(fresh=True, run="one after")
    assert len(calls) == 3


@pytest.mark.parametrize("change", [{"seed": 1}, {"images": 7}])
def test_another_seed_or_number_of_images_is_another_record(tiny, change):
    function, calls = counting(uneven)
    tiny.add("counted", function)
    tiny.run()
    tiny.run(**change)
    assert len(calls) == 2
    tiny.run()
    assert len(calls) == 2


def test_what_another_process_is_at_work_on_comes_last(tiny, monkeypatch):
    observe, asked = Shard.observe, []

    def busy(shard, method, wait):
        asked.append(method.name)
        if method.name == "brightness" and not wait:
            raise BusyError
        return observe(shard, method, wait)

    monkeypatch.setattr(Shard, "observe", busy)
    assert list(tiny.run().outcomes) == ["brightness", "slope"]
    assert asked == ["brightness", "slope", "brightness"]


def test_constant_maps_are_counted_where_they_are_allowed(tiny):
    tiny.add("flat", lambda model, images, targets: images.sum(1) * 0, constant="it is flat")
    outcome = tiny.run().outcomes["flat"]
    assert outcome.status == "ok"
    assert outcome.constant_maps == 8


def test_results_do_not_depend_on_the_size_of_batches(tiny, tmp_path, monkeypatch):
    def noise(model, images, targets, seeds):
        draws = [torch.rand(5, 5, generator=torch.Generator().manual_seed(s)) for s in seeds]
        return torch.stack(draws)

    tiny.add("noise", noise)
    found = []
    for size in (1, 3, 8, 100):
        tiny.in_batches_of(size, monkeypatch)
        found.append(tiny.run(store=tmp_path / str(size)))
    for result in found[1:]:
        assert result.accuracy == found[0].accuracy
        for name, outcome in result.outcomes.items():
            assert outcome.score == pytest.approx(found[0].outcomes[name].score, abs=1e-9)
            np.testing.assert_allclose(
                outcome.replicates, found[0].outcomes[name].replicates, atol=1e-9
            )


def test_batches_of_another_size_are_other_records(tiny, monkeypatch):
    function, calls = counting(uneven)
    tiny.add("counted", function)
    tiny.run()
    tiny.in_batches_of(4, monkeypatch)
    tiny.run()
    assert calls == [8, 4, 4]


def test_a_batch_never_sees_another(tiny, monkeypatch):
    """Rows of each batch are observed with that batch's own intact and shared rows."""
    tiny.in_batches_of(3, monkeypatch)
    result = tiny.run()
    pair = tiny.pair
    right = (pair.network(pair.images).argmax(1) == pair.labels).double().mean().item()
    assert result.outcomes["slope"].curve.y[0] == right


@dataclass(frozen=True)
class Odd(Protocol):
    """A protocol without shared rows whose score is whatever `answer` is."""

    answer: float
    mean: bool = False
    higher_is_better = True

    def observe(self, model, batch, maps, shared):
        assert shared == {}
        assert isinstance(maps, torch.Tensor)
        assert len(maps) == len(batch.images) == len(batch.seeds)
        return {"largest": maps.amax((1, 2)).numpy()}

    def reduce(self, rows):
        per_image = rows["largest"].astype(float) if self.mean else None
        return Reduction(self.answer, None, per_image)


@pytest.mark.parametrize("answer", [float("nan"), float("inf")])
def test_a_score_that_is_not_defined_is_absent_and_said_so(tiny, answer):
    attrcheck.protocol("odd")(lambda: Odd(answer))
    outcome = tiny.run("tiny-linear-odd").outcomes["slope"]
    assert outcome.status == "undefined"
    assert outcome.reason
    assert outcome.score is None
    assert len(outcome.replicates) == 0
    assert outcome.seconds > 0


def test_a_protocol_of_ones_own_needs_no_shared_rows_and_no_curve(tiny):
    attrcheck.protocol("odd")(lambda: Odd(0.5))
    outcome = tiny.run("tiny-linear-odd").outcomes["slope"]
    assert (outcome.status, outcome.score, outcome.low, outcome.high) == ("ok", 0.5, 0.5, 0.5)
    assert outcome.curve is None


def test_other_settings_of_a_protocol_are_other_records(tiny):
    answers = iter([0.1, 0.2])
    attrcheck.protocol("odd")(lambda: Odd(next(answers)))
    tiny.run("tiny-linear-odd")
    tiny.run("tiny-linear-odd")
    records = tiny.folder / "records" / "tiny-linear-odd"
    assert len(list(records.glob("slope-*"))) == 2


def test_a_store_that_cannot_be_used_stops_the_case_at_once(tiny, tmp_path, passes):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError):
        tiny.run(store=tmp_path / "file")
    assert passes == []


def test_a_store_that_fails_later_costs_no_result(tiny, monkeypatch, tmp_path):
    expected = tiny.run(store=tmp_path / "good")

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    result = tiny.run()
    assert all("No space left on device" in problem for problem in result.problems)
    assert len(result.problems) == 6  # intact, shared, and maps and rows of two methods
    result.problems.clear()
    assert same(result, expected)


def test_a_damaged_record_is_computed_again(tiny):
    first = tiny.run()
    [path] = tiny.folder.glob("records/tiny-linear-morf.mean.10/slope-*")
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.warns(UserWarning, match="slope"):
        assert same(tiny.run(), first)


def test_a_method_that_only_drops_the_sign_costs_no_map_of_its_own(tiny):
    function, calls = counting(lambda model, images, targets: images[:, 0] - 0.5)
    tiny.add("signed", function)
    tiny.add("unsigned", lambda *_: 1 / 0, absolute_of="signed")
    tiny.add("by_hand", lambda model, images, targets: (images[:, 0] - 0.5).abs())
    result = tiny.run()
    assert calls == [8]
    assert statuses(result)["unsigned"] == "ok"
    assert scores(result)["unsigned"] == scores(result)["by_hand"] != scores(result)["signed"]


@pytest.mark.filterwarnings("ignore::attrcheck.engine.plausibility.FewImages")
def test_the_protocol_is_on_record_as_it_was_when_it_had_seen_all(tiny):
    result = tiny.run("tiny-linear-soundness")
    settings = result.protocol_settings
    assert settings["normalisation"] == "max"
    assert 0 < settings["level"] <= 1
    assert result.settled == ["level"]
    assert tiny.run().settled == []


def test_a_change_of_the_method_that_another_rests_on_is_noticed(tiny):
    tiny.add("unsigned", lambda *_: 1 / 0, absolute_of="signed")
    with attrcheck.method.scratch():
        attrcheck.method("signed")(lambda model, images, targets: images[:, 0] - 0.5)
        before = scores(tiny.run())["unsigned"]
    scale = 3
    attrcheck.method("signed")(lambda model, images, targets: images[:, 0] ** scale - 0.1)
    assert scores(tiny.run())["unsigned"] != before


def test_a_result_tells_its_images_and_weights_from_others(tiny):
    """By what they are, whatever methods, protocols and seeds there are."""
    first = tiny.run()
    assert first.data
    assert first.weights
    again = tiny.run("tiny-linear-lerf", seed=1)
    assert (again.data, again.weights) == (first.data, first.weights)
    fewer = tiny.run(images=5)
    assert fewer.data != first.data
    assert fewer.weights == first.weights

    attrcheck.dataset("tiny2")(lambda: tiny.dataset("tiny", ids=tuple("abcdefgh")))
    assert tiny.run("tiny2-linear-morf").data != first.data

    def other(data):
        network = tiny.network(data)
        network[-1].bias[0] += 1e-3
        return network

    attrcheck.model("other", datasets="tiny*")(other)
    changed = tiny.run("tiny-other-morf")
    assert (changed.data, changed.weights == first.weights) == (first.data, False)
