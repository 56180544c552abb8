"""Guard a model: notice, and say, what a method changed in it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

HOOKS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
)


@dataclass(frozen=True)
class Snapshot:
    """What a method must leave as it was: weights, mode and hooks of every part of a model."""

    state: dict[str, Tensor]
    modes: dict[str, bool]
    hooks: dict[str, int]

    @classmethod
    def of(cls, model: nn.Module) -> Snapshot:
        """Copy the weights and note the rest."""
        modules = dict(model.named_modules())
        return cls(
            state={name: value.clone() for name, value in model.state_dict().items()},
            modes={name: module.training for name, module in modules.items()},
            hooks={
                name: sum(len(getattr(module, kind)) for kind in HOOKS)
                for name, module in modules.items()
            },
        )

    def change(self, model: nn.Module) -> str | None:
        """The first thing that is no longer as it was, in words; None if all is."""
        state = model.state_dict()
        modules = dict(model.named_modules())
        if state.keys() != self.state.keys() or modules.keys() != self.modes.keys():
            return "changed the parts of the model"
        for name, value in self.state.items():
            if not torch.equal(value, state[name]):
                return f"changed the weights of the model ({name})"
        for name, module in modules.items():
            where = name or "the model itself"
            if module.training != self.modes[name]:
                return f"changed the mode of the model ({where}): it must stay in eval mode"
            if sum(len(getattr(module, kind)) for kind in HOOKS) != self.hooks[name]:
                return f"left hooks on the model ({where}), or removed some"
        return None
