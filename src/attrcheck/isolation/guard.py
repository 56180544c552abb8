"""Guard a process while somebody else's code runs in it: what was changed is put back, and told."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attrcheck.contracts import Dataset
from attrcheck.isolation import knobs
from attrcheck.isolation.patches import Patches

_HELD: list[Any] = []
"""Guards against a mode that cannot be left, for as long as the process lives."""


@dataclass(frozen=True)
class Guard:
    """A process before a method runs: its settings, the code of its libraries, and the dataset."""

    process: int
    settings: list[Any]
    patches: Patches | None
    dataset: list[Any]
    modes: tuple[int, int]

    @classmethod
    def of(cls, data: Dataset, code: bool = True) -> Guard:
        """Note all that a method could change for others; of the libraries, only if asked for."""
        patches = Patches.now() if code else None
        return cls(os.getpid(), knobs.read(), patches, _state(data), _modes())

    def restore(self, data: Dataset) -> str | None:
        """Put everything back; in words, the first change that others may have suffered from.

        An edited dataset cannot be put back: whoever holds it must load it again.
        """
        if os.getpid() != self.process:
            os._exit(1)  # a copy that the method made of this process, and let run on
        words = self.patches.undo() if self.patches else []
        knobs.turn_back(self.settings)
        words += _leave_modes(self.modes)
        if _state(data) != self.dataset:
            words.append(EDITED)
        return words[-1] if words else None


EDITED = "changed the dataset that it was handed"


def _state(data: Dataset) -> list[Any]:
    """Which parts it has, and torch's counts of edits in place, which views share with a tensor."""
    parts = list(vars(data).values())
    return [*map(id, parts), *(part._version for part in parts if isinstance(part, Tensor))]


def _modes() -> tuple[int, int]:
    """How many modes that see every function or operator are in force."""
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def _leave_modes(before: tuple[int, int]) -> list[str]:
    words = []
    if torch.is_inference_mode_enabled():
        # Its guard is held by somebody: a second one inside of it switches it off again.
        _HELD.append(torch._C._InferenceMode(False))
        words.append("left inference mode on")
    for at, pop in enumerate((torch._C._pop_torch_function_stack, _pop_dispatch)):
        while _modes()[at] > before[at]:
            pop()
            words.append("left a mode on that sees every call of torch")
    return words


def _pop_dispatch() -> object:
    return torch._C._pop_torch_dispatch_stack(None)
