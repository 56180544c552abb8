"""Guard a model: notice, and say, what a method changed in it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from attrcheck.tensors.transfers import which_equal

HOOKS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
)


@dataclass(frozen=True)
class Snapshot:
    """What a method must leave as it was: weights, mode and hooks of every part, and the code."""

    state: dict[str, Tensor]
    modes: dict[str, bool]
    hooks: dict[str, list[int]]
    parts: dict[str, tuple[nn.Module, object]]
    code: object

    @classmethod
    def of(cls, model: nn.Module) -> Snapshot:
        """Copy the weights and note the rest."""
        modules = dict(model.named_modules())
        return cls(
            state={name: value.detach().clone() for name, value in _state(model).items()},
            modes={name: module.training for name, module in modules.items()},
            hooks={name: _hooks(module) for name, module in modules.items()},
            parts={name: (module, vars(module).get("forward")) for name, module in modules.items()},
            code=_code(model),
        )

    def change(self, model: nn.Module) -> str | None:
        """The first thing that is no longer as it was, in words; None if all is."""
        state = _state(model)
        modules = dict(model.named_modules())
        if state.keys() != self.state.keys() or modules.keys() != self.modes.keys():
            return "changed the parts of the model"
        for name, module in modules.items():
            if module.training != self.modes[name]:  # first, as it is why batch norms count on
                where = name or "the model itself"
                return f"changed the mode of the model ({where}): it must stay in eval mode"
        same = which_equal((value, state[name].detach()) for name, value in self.state.items())
        for name, is_same in zip(self.state, same, strict=True):
            if not is_same:
                return f"changed the weights of the model ({name})"
        for name, module in modules.items():
            where = name or "the model itself"
            if _hooks(module) != self.hooks[name]:
                return f"left hooks on the model ({where}), or removed some"
            part, forward = self.parts[name]
            if module is not part or vars(module).get("forward") is not forward:
                return f"exchanged a part of the model ({where})"
        return None if _code(model) == self.code else "changed the graph of the model"


def _state(model: nn.Module) -> dict[str, Tensor]:
    """Weights and buffers, those that are not saved included."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _code(model: nn.Module) -> object:
    """What a prepared graph runs: recompiling one changes neither its parts nor its weights."""
    return type(model).forward, getattr(model, "code", None)


def _hooks(module: nn.Module) -> list[int]:
    """Ids of all hooks; torch never gives one out twice."""
    return [key for kind in HOOKS for key in getattr(module, kind)]
