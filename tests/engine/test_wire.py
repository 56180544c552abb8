from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from attrcheck.engine.wire import LOCAL, dumps, hints, loads, optional, plain


@dataclass(frozen=True)
class Part:
    from_: int
    to: float | None = None


@dataclass(frozen=True)
class Whole:
    parts: list[Part]
    by_name: dict[str, Part | None]
    words: tuple[str, ...] = ()
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


def test_nested_parts_come_back_as_they_were():
    whole = Whole([Part(1, 0.5)], {"a": Part(2), "b": None}, ("x", "y"))
    again = loads(Whole, dumps(whole))
    assert (again.parts, again.by_name, again.words) == (whole.parts, whole.by_name, whole.words)
    assert again.values.dtype == np.float64


def test_a_word_of_python_loses_its_underscore_in_json():
    assert plain(Part(1, 0.5)) == {"from": 1, "to": 0.5}
    assert list(hints(Part)) == ["from_", "to"]


def test_what_was_left_out_takes_its_default():
    assert loads(Part, '{"from": 3}') == Part(3)


def test_what_is_at_its_default_is_left_out_and_nothing_else():
    assert plain(Part(1)) == {"from": 1}
    assert plain(Part(0, 0.0)) == {"from": 0, "to": 0.0}
    assert plain(Whole([], {})).keys() == {"parts", "by_name", "words", "values"}
    assert optional(Part) == {"to"}
    assert optional(Whole) == set()


@dataclass(frozen=True)
class Loose:
    flag: int = 0
    items: list[int] = field(default_factory=list)
    here: list[int] = field(default_factory=list, metadata=LOCAL)


def test_a_default_of_another_type_is_no_default():
    assert plain(Loose()) == {}
    assert plain(Loose(flag=False)) == {"flag": False}


def test_what_is_local_does_not_cross():
    assert loads(Loose, dumps(Loose(1, [2], here=[3]))) == Loose(1, [2])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.uint16).reshape(2, 3),
        np.array([np.nan, -0.0, np.inf, 0.1]),
        np.zeros((0, 4), dtype=np.uint8),
        np.arange(6, dtype=">u2").reshape(2, 3).T,
    ],
)
def test_an_array_crosses_with_its_type_and_shape(array):
    [found] = loads(Holder, dumps(Holder([array]))).arrays
    assert found.dtype == array.dtype.newbyteorder("<")
    assert found.shape == array.shape
    assert found.tobytes() == array.astype(found.dtype).tobytes()


@dataclass(frozen=True)
class Holder:
    arrays: list[NDArray[np.float64]]


def test_an_unknown_field_is_an_error():
    with pytest.raises(KeyError, match="other"):
        loads(Part, '{"from": 3, "other": 1}')
