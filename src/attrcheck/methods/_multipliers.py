"""Multipliers between images and baselines: DeepLIFT's backward pass, for all pairs of them.

Every image and every baseline runs forward once. Then each pair runs backward only: what a pair
needs in the forward direction are shapes, since the values of both of its sides are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.autograd import Function
from torch.nn import functional as F

from attrcheck.graph.nodes import module_of, signals
from attrcheck.graph.rewriting import insert
from attrcheck.methods._affine import direct
from attrcheck.tensors.memo import PerModel


@dataclass(frozen=True)
class MultiplierRule:
    """What becomes of the multipliers at a module.

    see: (module, *inputs) -> the module's value, and what to keep of images and baselines.
    pull: (module, tape, upstream [images, baselines, ...], *kept) -> upstream of each input.
    """

    see: Callable[..., tuple[Tensor, tuple[Tensor, ...]]]
    pull: Callable[..., tuple[Tensor, ...]]


Rules = Mapping[type[nn.Module], MultiplierRule]


@dataclass
class Tape:
    """What was seen on the way forward, by module; the first rows are images, then baselines.

    A tensor may have several rows per image, as where windows are cut out of it; they then are an
    axis of their own.
    """

    images: int
    baselines: int
    kept: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    shapes: dict[str, torch.Size] = field(default_factory=dict)

    def ends(self, values: Tensor) -> Tensor:
        """Those of the images, to be paired with `starts` by broadcasting: [images, 1, ...]."""
        return self._rows(values)[: self.images, None]

    def starts(self, values: Tensor) -> Tensor:
        """Those of the baselines: [1, baselines, ...]."""
        return self._rows(values)[None, self.images :]

    def _rows(self, values: Tensor) -> Tensor:
        return by_row(values, self.images + self.baselines)


def by_row(values: Tensor, rows: int) -> Tensor:
    """So many rows: [rows, ...], or [rows, k, ...] if there are k times as many."""
    if len(values) % rows:
        raise ValueError(f"the first axis of {list(values.shape)} is not that of the images")
    return values if len(values) == rows else values.reshape(rows, -1, *values.shape[1:])


class _Part(nn.Module):
    """A module under its rule, or one that is direct."""

    def __init__(self, module: nn.Module, name: str, rule: MultiplierRule | None) -> None:
        super().__init__()
        self.module, self.name, self.rule = module, name, rule


class _Seeing(_Part):
    """The module's value; the tape keeps what the way back needs."""

    def forward(self, tape: Tape, *args: Tensor) -> Tensor:
        if self.rule is None:
            value: Tensor = self.module(*args)
        else:
            value, tape.kept[self.name] = self.rule.see(self.module, *args)
        by_row(value, tape.images + tape.baselines)
        tape.shapes[self.name] = value.shape[1:]
        return value


class _Pulling(_Part):
    """A shape in place of the module's value, for every pair, with the multipliers behind it."""

    def forward(self, tape: Tape, *args: Tensor) -> Tensor:
        shape = len(args[0]), *tape.shapes[self.name]
        return _Pulled.apply(shape, self, tape, *args)  # type: ignore[no-any-return,no-untyped-call]

    def pull(self, tape: Tape, shape: torch.Size, upstream: Tensor) -> tuple[Tensor, ...]:
        if self.rule is None:
            back = direct(self.module, self.module.weight, shape)
            assert back is not None
            return (back(upstream),)
        rows = by_row(upstream, tape.images * tape.baselines)
        pairs = rows.reshape(tape.images, tape.baselines, *rows.shape[1:])
        shares = self.rule.pull(self.module, tape, pairs, *tape.kept.pop(self.name))
        return tuple(share.flatten(0, pairs.ndim - upstream.ndim) for share in shares)


class _Pulled(Function):
    """Nothing but a shape in the forward pass; the part's `pull` in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, shape: tuple[int, ...], part: _Pulling, tape: Tape, *inputs: Tensor
    ) -> Tensor:
        ctx.part, ctx.tape, ctx.shape = part, tape, inputs[0].shape
        return inputs[0].new_zeros(()).expand(shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, None, *ctx.part.pull(ctx.tape, ctx.shape, grads[0])


_TAPED: PerModel[tuple[fx.GraphModule, fx.GraphModule]] = PerModel()


def _taped(model: fx.GraphModule, rules: Rules) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The model that sees and the one that pulls, made once; both take a tape and the images."""

    def make() -> tuple[fx.GraphModule, fx.GraphModule]:
        return _with(_Seeing, model, rules), _with(_Pulling, model, rules)

    return _TAPED.get(model, frozenset(rules.items()), make)


def _with(kind: type[_Part], model: fx.GraphModule, rules: Rules) -> fx.GraphModule:
    graph = fx.Graph()
    tape = graph.placeholder("tape")
    graph.output(graph.graph_copy(model.graph, {}))
    changed = fx.GraphModule(model, graph)
    # What is made of constants keeps its value: something may be multiplied by it.
    for node in filter(signals(graph).__contains__, graph.nodes):
        module = module_of(changed, node)
        rule = rules.get(type(module)) if module else None
        if module and (rule or direct(module, None, torch.Size())):
            part = kind(module, str(node.target), rule)
            insert(changed, node, part, (tape, *node.args))
    changed.delete_all_unused_submodules()
    changed.recompile()
    return changed


def multipliers(
    model: nn.Module, images: Tensor, targets: Tensor, baselines: Tensor, rules: Rules
) -> tuple[Tensor, Tensor]:
    """How the target's logit changes from each baseline to each image: [N, baselines, C, H, W].

    And by how much: [N, baselines].
    """
    if not isinstance(model, fx.GraphModule):
        raise TypeError(f"rules act on a prepared graph, not on {type(model).__name__}")
    seeing, pulling = _taped(model, rules)
    shape = len(images), len(baselines)
    tape = Tape(*shape)
    with torch.no_grad():
        logits = seeing(tape, torch.cat([images, baselines]))
    with torch.enable_grad():
        pairs = images.new_zeros(()).expand(shape[0] * shape[1], *images.shape[1:])
        outputs = pulling(tape, pairs.requires_grad_())
        chosen = F.one_hot(targets, logits.shape[1]).to(logits).repeat_interleave(shape[1], 0)
        (slopes,) = torch.autograd.grad(outputs, pairs, chosen)
    ends = logits[: shape[0]].gather(1, targets[:, None])
    change = ends - logits[shape[0] :].T[targets]
    return slopes.view(*shape, *images.shape[1:]), change
