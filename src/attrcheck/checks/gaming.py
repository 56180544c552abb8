"""Who can be gamed: judges that see values, by a transform that keeps the order."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from attrcheck.checks import check
from attrcheck.checks._panel import unit_maps
from attrcheck.contracts import Lab, Verdict
from attrcheck.protocols import protocol as protocols

PAIR = ("shapes", "resnet")
METHOD = "integrated_gradients"
IMAGES = {"smoke": 24, "default": 100, "full": 300}
BY_ORDER = ("deletion", "ids", "insertion", "lerf", "morf", "road_lerf", "road_morf")
BY_VALUE = ("completeness", "soundness")
TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda values: values,
    "cubed": lambda values: values**3,
    "raised": lambda values: 0.6 + 0.4 * values,
}
DECIMALS = 4
"""Values are rounded first, so that no rounding later makes a tie of what is none."""


@check("gaming", over="suite")
def gaming(lab: Lab) -> Verdict:
    """Cubing the values of a map lifts its soundness, .6 + .4 a sinks it, and no order changes.

    So a method can win by soundness that does no more than sharpen the maps of another: published,
    and true. Judges by order give the same score to the last digit. Completeness is reported.
    """
    profile = lab.settings.profile
    panel, values = unit_maps(lab, *PAIR, IMAGES[profile], METHOD)
    values = values.round(decimals=DECIMALS)
    figures: dict[str, float] = {}
    wrong = []
    for name in (*BY_ORDER, *BY_VALUE):
        lab.progress(f"gaming of {name}")
        judge = protocols.get(name).make(profile)
        rows = {
            how: panel.observe(judge, transform(values)) for how, transform in TRANSFORMS.items()
        }
        settled = judge.settle(list(rows.values()))
        found = {how: settled.reduce(every).score for how, every in rows.items()}
        figures |= {f"{name}_{how}": score for how, score in found.items()}
        if name in BY_ORDER and len(set(found.values())) > 1:
            wrong.append(f"{name} sees more than an order")
    if not figures["soundness_cubed"] > figures["soundness_plain"]:
        wrong.append("cubing does not lift soundness")
    if not figures["soundness_raised"] < figures["soundness_plain"]:
        wrong.append(".6 + .4 a does not sink soundness")
    return Verdict(not wrong, figures, "; ".join(wrong))
