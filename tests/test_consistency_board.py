"""What the board owes to each case and protocol, and what it costs to know."""

import time

import numpy as np
import pytest
from hypothesis import assume, given

from attrcheck import metarank
from attrcheck.consistency import Move, WithoutProtocol, study
from attrcheck.engine.wire import dumps
from tests.score_tables import NAN, slow_correlation, table, tables


@given(tables())
def test_the_board_has_the_places_of_the_fusion(given):
    there = np.isfinite(given.scores).any(axis=0)
    places_of = metarank.board(given.tally())
    if not there.any():
        assert np.isnan(places_of).all()
        return
    try:
        fused = metarank.fuse(given.scores[:, there], higher_is_better=given.higher_is_better)
    except metarank.DisconnectedError:
        assert np.isnan(places_of).all()
        return
    assert np.isnan(places_of[~there]).all()
    expected = [1 + sum(k > own + metarank.ROUNDING for k in fused.kappa) for own in fused.kappa]
    assert places_of[there].tolist() == expected


@given(tables(least=2))
def test_the_board_without_a_case_is_that_of_the_others(given):
    whole = metarank.board(given.tally())
    found = {entry.case: entry for entry in study(given).cases}
    assume(found)
    for at, case in enumerate(given.cases):
        rest = [i for i in range(len(given.cases)) if i != at]
        left = table(
            given.scores[rest], [given.cases[i].id for i in rest], given.higher_is_better[rest]
        )
        other = metarank.board(left.tally())
        entry = found[case.id]
        assert entry.with_board == pytest.approx(slow_correlation(given.ranks[at], whole))
        assert entry.with_others == pytest.approx(slow_correlation(given.ranks[at], other))
        assert entry.winners == [f"x{i}" for i in np.flatnonzero(other == 1)]
        if np.array_equal(np.isfinite(other), np.isfinite(whole)):
            assert entry.rank_correlation == pytest.approx(slow_correlation(whole, other))
            moves = np.nan_to_num(np.abs(whole - other))
            if moved := entry.moved:
                index = given.methods.index(moved.method)
                assert (moved.from_, moved.to) == (whole[index], other[index])
                assert abs(moved.to - moved.from_) == moves.max()
            else:
                assert not moves.any()
            assert entry.winner_changes == (not np.array_equal(whole == 1, other == 1))


def test_a_dissenting_case_comes_first_and_its_absence_is_told():
    ids = ["d-m-one", "d-m-two", "d-m-three", "d-n-three"]
    up, down = [4, 3, 2, 1], [1, 2, 3, 4]
    found = study(table([up, up, up, down], ids, methods=list("abcd")))
    first = found.cases[0]
    assert first.case == "d-n-three"
    assert first.with_board == first.with_others == -1
    assert first.moved is None
    found = study(table([up, up, down, down], ids, methods=list("abcd")))
    [one, three, two] = found.without_protocol
    assert [without.protocol for without in (one, three, two)] == ["one", "three", "two"]
    # All tie on the whole board; without "three" a leads, without "one" d does.
    assert three.winners == ["a"]
    assert three.winner_changes
    assert three.moved == Move("d", from_=1, to=4)
    assert one.winners == ["d"]


def test_a_method_that_leaves_with_its_case_moves_nobody():
    rows = [[4, 3, 2, 1, 0], [NAN, 3, 2, 1, 0]]
    found = {entry.case: entry for entry in study(table(rows)).cases}
    entry = found["d-m0-p"]
    assert entry.moved is None
    assert entry.rank_correlation == 1
    assert entry.winners == ["x1"]
    assert entry.winner_changes


def test_without_its_only_protocol_there_is_no_board():
    [only] = study(table([[4, 3, 2, 1]] * 2)).without_protocol
    assert only == WithoutProtocol(
        protocol="p", rank_correlation=None, moved=None, winners=[], winner_changes=None
    )


def test_a_board_that_falls_apart_without_a_case_is_none():
    rows = [[1, 2, 3, 4, NAN, NAN], [NAN, NAN, NAN, 1, 2, 3], [1, 2, NAN, NAN, NAN, NAN]]
    entries = {entry.case: entry for entry in study(table(rows)).cases}
    assert entries["d-m0-p"].rank_correlation is None  # x0, x1 | x3, x4, x5
    assert entries["d-m2-p"].rank_correlation == 1


@pytest.mark.parametrize(
    "rows",
    [np.empty((0, 4)), np.empty((1, 0)), [[NAN] * 4], [[1, 2, NAN, NAN], [NAN, NAN, 1, 2]]],
    ids=["no case", "no method", "no score", "no common board"],
)
def test_without_a_board_there_is_nothing_to_compare_with(rows):
    found = study(table(rows))
    assert found.cases == found.without_protocol == []
    dumps(found)


def test_places_share_what_rounding_alone_tells_apart():
    assert metarank.places(np.array([0.1, 0.1 + 1e-12, 0.5, -1])).tolist() == [2, 2, 1, 4]


def test_a_run_of_many_cases_takes_little_time():
    rng = np.random.default_rng(0)
    ids = [f"d{d}-m{m}-p{p}" for d in range(2) for m in range(9) for p in range(12)]
    rows = rng.normal(size=(216, 27)) + rng.normal(size=27)
    rows[:, 20:][rng.random((216, 7)) < 0.3] = NAN
    start = time.process_time()
    found = study(table(rows, ids))
    assert time.process_time() - start < 2
    assert found.concordance.methods == 20
    dumps(found)


def seconds(cases):
    """Of the processor, to study so many cases of 64 methods."""
    rng = np.random.default_rng(0)
    ids = [f"d{k // 200}-m{k // 20 % 10}-p{k % 20}" for k in range(cases)]
    rows = rng.normal(size=(cases, 64)) + rng.normal(size=64)
    rows[:, 60:][rng.random((cases, 4)) < 0.3] = NAN
    given = table(rows, ids, tolerance=1e-9)
    start = time.process_time()
    study(given)
    return time.process_time() - start


def test_the_time_grows_with_the_cases_and_not_with_their_square():
    seconds(20)
    few, many = min(seconds(100) for _ in range(3)), min(seconds(800) for _ in range(2))
    assert many < 16 * few  # 8 times the cases; it was 34 times when each board was fused anew
