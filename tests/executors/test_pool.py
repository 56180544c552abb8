"""Tasks in flight: how many, in which order, and what becomes of what they answer."""

from dataclasses import replace

import pytest

from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.errors import AttrcheckError
from attrcheck.executors.planning import plan
from attrcheck.executors.pool import LostError, Pool
from tests.executors.distributed import Elsewhere, cases


@pytest.fixture
def distribute(tiny, tmp_path):
    """Have the tasks of cases computed elsewhere; a lab whose cases wait for them."""
    pools = []

    def distribute(wanted, kind=Elsewhere, most=4, **more):
        lab = Lab.of(tiny.settings())
        backend = kind(tiny.settings(), tmp_path / "elsewhere", **more)
        pool = Pool(backend, lab.store, most)
        pools.append(pool)
        pool.add(plan(lab, wanted))
        return replace(lab, elsewhere=lambda case: pool.wait(case, lambda text: None)), backend

    yield distribute
    for pool in pools:
        pool.close()


def scores(lab, case):
    outcomes = run_case(lab.evaluation(case), lambda text: None).outcomes
    return {name: (one.status, one.reason, one.score) for name, one in outcomes.items()}


def late(model, images, targets):
    """Fails on the second and the third shard."""
    if abs(float(images[0, 0, 0, 0]) - late.first) > 1e-6:
        raise ValueError(f"not {float(images[0, 0, 0, 0]):.6f}")
    return images.abs().sum(1)


@pytest.mark.parametrize("order", [list, lambda handles: handles[::-1]], ids=["first", "last"])
def test_items_find_what_was_computed_elsewhere_in_any_order(tiny, tmp_path, distribute, order):
    wanted = cases("morf", "lerf")
    late.first = float(tiny.loader.pair("many", "linear").images[0, 0, 0, 0])
    tiny.add("late", late)
    lab, backend = distribute(wanted, order=order, most=100)
    found = [scores(lab, one) for one in wanted]
    assert len(backend.log) == 12  # what is shared, and three methods, on three shards
    here = Lab.of(tiny.settings(store=tmp_path / "here"))
    assert found == [scores(here, one) for one in wanted]
    status, reason, _ = found[0]["late"]
    second = float(tiny.loader.pair("many", "linear", shard=1).images[0, 0, 0, 0])
    assert status == "error"
    assert f"not {second:.6f}" in reason  # of the first shard on which it fails


def test_no_more_are_in_flight_than_may_be(distribute):
    class Counting(Elsewhere):
        most = 0

        def done(self, handles, seconds):
            self.most = max(self.most, len(handles))
            return super().done(handles, seconds)

    [case] = wanted = cases("morf")
    lab, backend = distribute(wanted, Counting, most=2)
    lab.evaluation(case)
    assert backend.most == 2


def test_a_method_that_ended_is_not_tried_on_later_shards(tiny, distribute):
    def broken(model, images, targets):
        raise ValueError("not these")

    tiny.add("broken", broken)
    [case] = wanted = cases("morf")
    lab, backend = distribute(wanted, most=1)
    assert list(lab.evaluation(case).ended) == ["broken"]
    assert [shard for method, shard in backend.log if method == "broken"] == [0]


class Losing(Elsewhere):
    """Loses every task of one method, `lost`."""

    lost = "slope"

    def answer(self, handle):
        if self.tasks[handle][0].method == self.lost:
            raise LostError("its worker died 4 times")
        return super().answer(handle)


def test_a_task_that_ends_its_workers_counts_against_its_method(distribute):
    [case] = wanted = cases("morf")
    lab, _ = distribute(wanted, Losing)
    found = scores(lab, case)
    assert found["slope"][:2] == (
        "error",
        "method 'slope' on many-linear: its worker died 4 times",
    )
    assert found["brightness"][0] == "ok"


class LosingAll(Losing):
    """Loses what all methods share."""

    lost = ""


def test_without_what_methods_share_a_case_fails_and_none_of_them_is_blamed(distribute):
    [case] = wanted = cases("morf")
    lab, backend = distribute(wanted, LosingAll, most=1)
    with pytest.raises(AttrcheckError, match="what all methods share could not be computed"):
        lab.evaluation(case)
    assert not backend.log  # nothing else was tried


def test_an_answer_that_is_damaged_is_not_kept(distribute):
    class Damaging(Elsewhere):
        def answer(self, handle):
            answer = super().answer(handle)
            damaged = tuple(one[:-1] + bytes([one[-1] ^ 1]) for one in answer.entries)
            return replace(answer, entries=damaged)

    [case] = wanted = cases("morf")
    lab, _ = distribute(wanted, Damaging)
    with pytest.raises(AttrcheckError, match="damaged"):
        lab.evaluation(case)
    assert not list(lab.store.folder.glob("*/*/*.safetensors"))


def test_a_store_that_cannot_be_written_to_is_named(distribute, monkeypatch):
    def full(store, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("attrcheck.executors.pool.put", full)
    [case] = wanted = cases("morf")
    lab, _ = distribute(wanted)
    with pytest.raises(AttrcheckError, match=r"could not be written to .*No space left on device"):
        lab.evaluation(case)


def test_a_backend_that_breaks_ends_the_wait(distribute):
    class Broken(Elsewhere):
        def submit(self, task, after):
            raise RuntimeError("the cluster is gone")

    [case] = wanted = cases("morf")
    lab, _ = distribute(wanted, Broken)
    with pytest.raises(AttrcheckError, match="the cluster is gone"):
        lab.evaluation(case)


def test_closing_ends_what_is_at_work(tiny, tmp_path):
    class Slow(Elsewhere):
        def done(self, handles, seconds):
            return []

    lab = Lab.of(tiny.settings())
    backend = Slow(tiny.settings(), tmp_path / "elsewhere")
    pool = Pool(backend, lab.store, most=2)
    pool.add(plan(lab, cases("morf")))
    while len(backend.tasks) < 2:
        pass
    pool.close()
    assert backend.closed == [0, 1]


def test_warnings_are_told_once(tiny, tmp_path):
    class Uneasy(Elsewhere):
        def answer(self, handle):
            return replace(super().answer(handle), warnings=("odd images",))

    [case] = wanted = cases("morf")
    lab = Lab.of(tiny.settings())
    pool = Pool(Uneasy(tiny.settings(), tmp_path / "elsewhere"), lab.store, 4)
    pool.add(plan(lab, wanted))
    assert pool.wait(case, lambda text: None) == {}
    assert pool.warnings(case) == ["odd images"]
    assert pool.warnings(case) == []
    pool.close()
