"""What is made of a model is made once, and forgotten with the model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from torch import nn

T = TypeVar("T")


class PerModel(Generic[T]):
    """Remembers, by model and key, for as long as the model lives.

    A value must not hold the model itself, else neither is ever forgotten; it may hold its parts.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[nn.Module, dict[Hashable, T]] = WeakKeyDictionary()

    def get(self, model: nn.Module, key: Hashable, make: Callable[[], T]) -> T:
        """What is known of a model under a key, made if it is not known yet."""
        known = self._known.setdefault(model, {})
        if key not in known:
            known[key] = make()
        return known[key]

    def __len__(self) -> int:
        """How many models are remembered."""
        return len(self._known)
