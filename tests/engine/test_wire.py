from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from attrcheck.engine.wire import dumps, hints, loads, plain


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
    assert plain(Part(1)) == {"from": 1, "to": None}
    assert list(hints(Part)) == ["from_", "to"]


def test_what_was_left_out_takes_its_default():
    assert loads(Part, '{"from": 3}') == Part(3)


def test_an_unknown_field_is_an_error():
    with pytest.raises(KeyError, match="other"):
        loads(Part, '{"from": 3, "other": 1}')
