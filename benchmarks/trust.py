"""Which protocols rank methods as ground truth does? Tables for docs/findings.md.

python benchmarks/trust.py --store FOLDER [--profile full] [--images 100] [--pairs objects-vit,...]
    [--figure FILE]
prints, as Markdown: Spearman's correlation of the ranking by each protocol with the rankings by
ground truth, in the mean of the models and on each of them; and what changes if one thing about a
protocol does. The first table becomes a figure too, if there is a file for it. What the store has
is not computed again: a run with `--attr-store FOLDER` fills it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rankings import (
    LEVEL,
    Figures,
    Observed,
    against,
    at_road,
    heading,
    mean_over_images,
    mean_over_models,
    options,
    printed,
    row,
    study_of,
    told,
)

from attrcheck.report.figures import COLOURS, FAINT, content_of

TRUTHS = ("relevance_mass", "relevance_rank", "difull")
"""Protocols that know what matters: by the values of maps, by their order, and by construction."""
FEW = 20
CHANGES = (
    *(("road_morf", "morf, ROAD's fractions"), ("road_lerf", "lerf, ROAD's fractions")),
    *(("srg", "deletion"), ("srg", "lerf, probability")),
    *(("idsds", "sds"), ("sds", f"sds, {FEW} images")),
)
"""Pairs of protocols that differ in one thing: the one that is said to be better comes first."""

Agreed = Mapping[tuple[str, str], Figures]
"""By protocol and ground truth."""


def main() -> None:
    """Print the tables."""
    parser = options(__doc__)
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    ranked = {
        pair: {name: one.scores() for name, one in [*observed.items(), *changed(observed)]}
        for pair, observed in study_of(given).items()
    }
    agreed = {
        (name, truth): against(ranked, name, truth)
        for name in dict.fromkeys(name for one in ranked.values() for name in one)
        for truth in TRUTHS
        if name != truth
    }
    tables = {
        "Spearman's correlation with ground truth": agreement_table(agreed),
        "The width of an interval, in the median of the protocols": widths(agreed),
        "What one change does to the correlation": change_table(agreed),
    }
    for truth in TRUTHS[:2]:
        tables[f"By model, with {truth}"] = model_table(agreed, truth, list(ranked))
    printed(tables)
    if given.figure:
        kind = given.figure.suffix.removeprefix(".")
        given.figure.write_bytes(content_of(drawn(agreed), kind))


def changed(observed: Mapping[str, Observed]) -> Iterator[tuple[str, Observed]]:
    """Protocols of which one thing is another, made from the same rows."""
    for name in observed.keys() & {"morf", "lerf"}:
        yield f"{name}, ROAD's fractions", at_road(observed[name])
    if "lerf" in observed:
        yield "lerf, probability", observed["lerf"].set(measure="probability")
    if "sds" in observed:
        yield f"sds, {FEW} images", observed["sds"].cut(lambda array: array[:FEW])


def agreement_table(agreed: Agreed) -> Iterator[str]:
    """A row for each protocol, those that agree most with the first truth first."""
    yield heading("protocol", "models", *TRUTHS)
    for name in sorted(plain(agreed), key=lambda name: -agreement(agreed, name, TRUTHS[0])):
        columns = [agreed.get((name, truth), {}) for truth in TRUTHS]
        yield row(f"`{name}`", max(map(len, columns)), *map(told, columns))


def agreement(agreed: Agreed, name: str, truth: str) -> float:
    """In the mean of the models; 1 with itself."""
    one = agreed.get((name, truth))
    return float(mean_over_images(one)[0]) if one else 1.0


def drawn(agreed: Agreed) -> Figure:
    """The agreement of each protocol with each truth, and both intervals; the closest on top."""

    def place(name: str) -> float:
        return sum(agreement(agreed, name, truth) for truth in TRUTHS[:2])

    names = sorted((name for name in plain(agreed) if name not in TRUTHS), key=place)
    figure = Figure(figsize=(9, 0.8 + 0.2 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(TRUTHS), sharey=True)
    for truth, colour, axes in zip(TRUTHS, COLOURS, panels, strict=False):
        for height, name in enumerate(names):
            figures = agreed.get((name, truth))
            if not figures:
                continue
            mean, *images = mean_over_images(figures)
            for values, width in ((mean_over_models(figures), 1.0), (images, 3.0)):
                ends = np.nanquantile(values, LEVEL)
                axes.plot(ends, [height, height], color=colour, linewidth=width, alpha=0.6)
            axes.plot(mean, height, "o", color=colour, markersize=4)
        axes.axvline(0, color=FAINT, linewidth=0.5, zorder=0)
        axes.set_xlim(-1, 1)
        axes.set_xticks((-1, -0.5, 0, 0.5, 1))
        axes.set_title(f"with {truth}", fontsize=9)
        axes.tick_params(labelsize=7, left=False)
        axes.grid(axis="y", color=FAINT, alpha=0.2)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
    panels[0].set_yticks(range(len(names)), names)
    figure.supxlabel(
        "Spearman's correlation of rankings, mean of the models; "
        "95% intervals over images (thick) and over models and images (thin)",
        fontsize=8,
    )
    return figure


def widths(agreed: Agreed) -> Iterator[str]:
    """Which matter more, images or models: how wide the intervals of protocols are."""
    for truth in TRUTHS:
        some = [one for name in plain(agreed) if (one := agreed.get((name, truth)))]
        if not some:
            continue
        for what, of in (("images", mean_over_images), ("models and images", mean_over_models)):
            width = np.median([np.ptp(np.nanquantile(of(one), LEVEL)) for one in some])
            yield f"by {truth}, over {what}: {width:.2f}"


def plain(names: Iterable[tuple[str, str]]) -> list[str]:
    """The protocols among them, without changes of some."""
    return list(dict.fromkeys(name for name, _ in names if ", " not in name))


def change_table(agreed: Agreed) -> Iterator[str]:
    """A row for each change and truth: by how much the correlation grows, and on which models."""
    yield heading("change", "ground truth", "grows by", "models on which it grows")
    for after, before in CHANGES:
        for truth in TRUTHS:
            new, old = (agreed.get((name, truth), {}) for name in (after, before))
            grown = {pair: new[pair] - old[pair] for pair in new if pair in old}
            if grown:
                up = sum(values[0] > 0 for values in grown.values())
                yield row(f"{before} -> `{after}`", truth, told(grown), f"{up} of {len(grown)}")


def model_table(agreed: Agreed, truth: str, pairs: Sequence[str]) -> Iterator[str]:
    """A row for each protocol, a column for each model; then the mean of each model."""
    yield heading("protocol", *(pair.partition("-")[2] for pair in pairs))
    rows = {name: agreed[name, truth] for name in plain(agreed) if name != truth}
    for name, one in rows.items():
        yield row(f"`{name}`", *(f"{one[pair][0]:.2f}" if pair in one else "" for pair in pairs))
    whole = [one for one in rows.values() if len(one) == len(pairs)]
    yield row("mean", *(f"{np.mean([one[pair][0] for one in whole]):.2f}" for pair in pairs))


if __name__ == "__main__":
    main()
