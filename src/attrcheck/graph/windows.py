"""torchvision's attention in windows, written out in steps.

torchvision lets torch.fx take all of it for one function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.node import map_aggregate
from torch.nn import functional as F

from attrcheck.graph.attention import attend
from attrcheck.graph.nodes import call_name

HIDDEN = -100.0
"""What torchvision adds to the scores of places that only the shift has brought together."""


def open_windows(model: fx.GraphModule) -> None:
    """Write torchvision's attention in windows, and what merges cells behind it, out in steps."""
    tracer = fx.proxy.GraphAppendingTracer(model.graph)

    def proxied(part: Any) -> Any:
        return fx.Proxy(part, tracer) if isinstance(part, fx.Node) else part

    for node in list(model.graph.nodes):
        home = str(getattr(node.target, "__module__", ""))
        if call_name(node) not in STEPS or not home.startswith("torchvision."):
            continue
        with model.graph.inserting_before(node):
            args, kwargs = map_aggregate((node.args, dict(node.kwargs)), proxied)
            out = STEPS[call_name(node)](*args, **kwargs)
        node.replace_all_uses_with(out.node)
        model.graph.erase_node(node)


def merged(x: Any) -> Any:
    """Two by two cells in one, side by side in its channels; odd grids are padded."""
    height, width = x.size(-3), x.size(-2)
    x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
    return torch.cat([x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)], -1)


def in_windows(
    input: Any,
    qkv_weight: Any,
    proj_weight: Any,
    relative_position_bias: Any,
    window_size: list[int],
    num_heads: int,
    shift_size: list[int],
    attention_dropout: float = 0.0,
    dropout: float = 0.0,
    qkv_bias: Any = None,
    proj_bias: Any = None,
    logit_scale: Any = None,
    training: bool = False,
) -> Any:
    """As torchvision's function in eval mode: what depends on sizes is a call of its own."""
    (down, right), size = window_size, window_size[0] * window_size[1]
    images, height, width, channels = (input.size(axis) for axis in range(4))
    x = F.pad(input, (0, 0, 0, -width % right, 0, -height % down))
    rows, columns = x.size(1), x.size(2)
    shifts = _call(shifts_of, rows, columns, window_size, shift_size)
    x = torch.roll(x, (-shifts[0], -shifts[1]), (1, 2))
    grid = rows // down, columns // right
    x = x.view(images, grid[0], down, grid[1], right, channels)
    x = x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size, channels)
    if logit_scale is not None and qkv_bias is not None:
        qkv_bias = _call(without_keys, qkv_bias)
    qkv: Any = F.linear(x, qkv_weight, qkv_bias)
    qkv = qkv.unflatten(2, (3, num_heads, -1))
    q, k, v = (qkv[:, :, part].transpose(1, 2) for part in range(3))
    scale = None
    if logit_scale is not None:
        q, k, scale = F.normalize(q, dim=-1), F.normalize(k, dim=-1), _call(scale_of, logit_scale)
    bias = _call(window_bias, relative_position_bias, rows, columns, window_size, shifts, images)
    mixed = attend(q, k, v, scale, bias)[1].transpose(1, 2).flatten(2)
    x = F.linear(mixed, proj_weight, proj_bias)
    x = x.view(images, grid[0], grid[1], down, right, channels)
    x = x.permute(0, 1, 3, 2, 4, 5).reshape(images, rows, columns, channels)
    x = torch.roll(x, (shifts[0], shifts[1]), (1, 2))
    return x[:, :height, :width].contiguous()


def _call(function: Any, *args: Any) -> Any:
    """A node that calls a function which is not traced."""
    proxy = next(part for part in args if isinstance(part, fx.Proxy))
    return proxy.tracer.create_proxy("call_function", function, args, {})


def shifts_of(rows: int, columns: int, window: list[int], shift: list[int]) -> tuple[int, ...]:
    """How far windows are shifted: not at all along an axis that fits into one."""
    sides = zip((rows, columns), window, shift, strict=True)
    return tuple(0 if size >= side else step for side, size, step in sides)


def scale_of(logarithm: Tensor) -> Tensor:
    """The scale of a cosine, at most 100."""
    return torch.clamp(logarithm, max=torch.log(torch.tensor(100.0)).item()).exp()


def without_keys(bias: Tensor) -> Tensor:
    """The bias of query, key and value, without that of the key."""
    query, key, value = bias.chunk(3)
    return torch.cat([query, torch.zeros_like(key), value])


def window_bias(
    bias: Tensor,
    rows: int,
    columns: int,
    window: list[int],
    shifts: tuple[int, ...],
    images: int,
) -> Tensor:
    """What is added to the scores of each window, for all images: [N * windows, heads, T, T]."""
    windows = (rows // window[0]) * (columns // window[1])
    if sum(shifts) == 0:
        return bias
    regions = bias.new_zeros(rows, columns)
    for axis, (size, shift) in enumerate(zip(window, shifts, strict=True)):
        steps = torch.zeros((rows, columns)[axis], dtype=bias.dtype, device=bias.device)
        steps[-size:] += 1
        steps[-shift or len(steps) :] += 1
        regions = regions + (steps[:, None] * 3 if axis == 0 else steps[None])
    cells = regions.view(rows // window[0], window[0], columns // window[1], window[1])
    cells = cells.permute(0, 2, 1, 3).reshape(windows, -1)
    apart = cells[:, None] != cells[:, :, None]
    return (bias + apart[:, None] * HIDDEN).repeat(images, 1, 1, 1)


STEPS: dict[str, Callable[..., Any]] = {
    "shifted_window_attention": in_windows,
    "_patch_merging_pad": merged,
}
