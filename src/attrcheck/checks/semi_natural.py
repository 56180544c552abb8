"""Ground truth that was put into images rewards methods made for it (Li et al. 2024).

Semi-natural images: a scene that says nothing of the class, and a watermark that says it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.checks import check
from attrcheck.contracts import Lab, Verdict
from attrcheck.datasets import shapes
from attrcheck.datasets.shapes import SIZE
from attrcheck.methods.integrated import integrated_gradients
from attrcheck.protocols.ground_truth import RelevanceMass
from attrcheck.store.seeds import derive
from attrcheck.training.loop import Recipe, accuracy, trained

CLASSES = 10
BANDS = 4
"""Stripes that it takes to write 1 to 10 in binary."""
BAND = SIZE // BANDS
BOX = (slice(SIZE - 16, SIZE - 2), slice(2, 12))
"""Rows and columns of the black rectangle, in the lower left as published."""
FONT = (
    "111101101101111", "010110010010111", "111001111100111", "111001111001111",
    "101101111001001", "111100111001111", "111100111101111", "111001001001001",
    "111101111101111", "111101111001111",
)  # fmt: skip
"""Digits of 3 x 5 dots, row by row."""
DOT = 2
"""Pixels per side of a dot."""
TRAINING = {"smoke": 600, "default": 1500, "full": 5000}
HELD_OUT = {"smoke": 50, "default": 200, "full": 1000}
RECIPE = Recipe(epochs=6, batch=32, rate=3e-3, shift=0)
LEARNT = 0.9
"""Accuracy from which on the network goes by the watermark, since nothing else tells the class."""


@check("semi_natural", over="suite")
def semi_natural(lab: Lab) -> Verdict:
    """`rect` wins where a number was put in, `pooling` where stripes were; each loses elsewhere.

    By the share of attribution inside what was put in. Both only redraw the maps of integrated
    gradients; published: .92 against .31, and .93 against .60.
    """
    figures: dict[str, float] = {}
    for kind in KINDS:
        lab.progress(f"semi_natural: {kind}")
        figures |= {f"{kind}_{name}": share for name, share in shares(lab, kind).items()}
    missed = [kind for kind in KINDS if figures[f"{kind}_accuracy"] < LEARNT]
    if missed:
        return Verdict(None, figures, f"the network did not learn the {' and the '.join(missed)}")
    wins = {"numbers": ("rect", "pooling"), "stripes": ("pooling", "rect")}
    wrong = [
        f"{winner} does not beat {loser} on {kind}"
        for kind, (winner, loser) in wins.items()
        if not figures[f"{kind}_{winner}"] > figures[f"{kind}_{loser}"]
    ]
    return Verdict(not wrong, figures, "; ".join(wrong))


def shares(lab: Lab, kind: str) -> dict[str, float]:
    """The accuracy of a network trained on watermarks, and the share inside of them by method."""
    profile = lab.settings.profile

    def seed(purpose: str) -> int:
        return derive(lab.settings.seed, "semi_natural", kind, purpose)

    learnt = KINDS[kind](True, TRAINING[profile], seed("training"))
    seen = KINDS[kind](False, HELD_OUT[profile], seed("held out"))
    network = trained(build, normalised(learnt.images), learnt.labels, RECIPE, seed("weights"))
    images = normalised(seen.images)
    maps = integrated_gradients(network, images, seen.labels).double()
    drawn = {"integrated_gradients": maps, **{name: make(maps) for name, make in CRAFTED.items()}}
    inside = {
        name: float(RelevanceMass().compare(redrawn, seen.masks, ()).nanmean())
        for name, redrawn in drawn.items()
    }
    return {"accuracy": accuracy(network, images, seen.labels), **inside}


def build() -> nn.Module:
    """Three strided convolutions and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, CLASSES),
    )


def normalised(images: Tensor) -> Tensor:
    """Zero is the mean of the scenes, not of what was put into them."""
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (shapes.MEAN, shapes.STD))
    return (images - mean) / std


@dataclass(frozen=True)
class Marked:
    """Images in [0, 1] with labels, and masks [N, H, W] of what was put in."""

    images: Tensor
    labels: Tensor
    masks: Tensor


def numbers(training: bool, count: int, seed: int) -> Marked:
    """The class as a white number in a black rectangle; all of the rectangle was put in."""
    images, labels = _scenes(training, count, seed)
    images[:, :, *BOX] = 0.0
    height, width = 5 * DOT, 3 * DOT
    top, left = BOX[0].start + 2, BOX[1].start + 2
    dots = torch.tensor([[int(dot) for dot in digit] for digit in FONT]).view(-1, 1, 5, 3)
    inks = F.interpolate(dots.float(), scale_factor=DOT)[labels]
    images[:, :, top : top + height, left : left + width] = inks
    masks = torch.zeros(count, SIZE, SIZE, dtype=torch.bool)
    masks[:, *BOX] = True
    return Marked(images, labels, masks)


def stripes(training: bool, count: int, seed: int) -> Marked:
    """The class plus one in binary, top to bottom: a white band for each bit that is set."""
    images, labels = _scenes(training, count, seed)
    bits = (labels[:, None] + 1) >> torch.arange(BANDS - 1, -1, -1) & 1
    masks = bits.bool().repeat_interleave(BAND, 1)[:, :, None].expand(-1, -1, SIZE)
    return Marked(images.masked_fill(masks[:, None], 1.0), labels, masks.contiguous())


def rect(maps: Tensor) -> Tensor:
    """A rectangle at the centre of gravity of what is positive in a map: right for `numbers`."""
    weights = maps.clamp(min=0)
    total = weights.sum((1, 2)).clamp(min=torch.finfo(maps.dtype).tiny)
    places = torch.arange(SIZE, device=maps.device, dtype=maps.dtype)
    inside = []
    for axis, extent in ((2, BOX[0]), (1, BOX[1])):
        centre = (weights.sum(axis) * places).sum(1) / total
        # Half of the true extent, as published.
        inside.append((places - centre[:, None]).abs() <= (extent.stop - extent.start) / 4)
    rows, columns = inside
    return (rows[:, :, None] & columns[:, None, :]).to(maps.dtype)


def pooling(maps: Tensor) -> Tensor:
    """The mean of what is positive in a map over each band of rows: right for `stripes`."""
    bands = F.avg_pool2d(maps.clamp(min=0)[:, None], (BAND, SIZE))[:, 0]
    return bands.repeat_interleave(BAND, 1).expand(-1, -1, SIZE)


def _scenes(training: bool, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Scenes of the dataset `shapes`, with labels that have nothing to do with them."""
    images, _, _ = shapes.generate(shapes.TRAINING if training else shapes.HELD_OUT, count)
    generator = torch.Generator().manual_seed(seed)
    return images, torch.randint(CLASSES, (count,), generator=generator)


KINDS = {"numbers": numbers, "stripes": stripes}
CRAFTED = {"rect": rect, "pooling": pooling}
