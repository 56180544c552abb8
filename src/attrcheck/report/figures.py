"""Figures for papers, with matplotlib: the board, the curves of a case, images with their maps."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from attrcheck.engine.pictures import coloured
from attrcheck.errors import AttrcheckError, suggest
from attrcheck.report import exports, terminal
from attrcheck.report.details import Details
from attrcheck.report.text import for_terminal
from attrcheck.report.types import BoardEntry, CaseEntry, Document
from attrcheck.store.files import write_whole

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Of curves; colour-blind people can tell them apart."""
STYLES = ("-", "--", ":", "-.")
INK, FAINT = "#222222", "#9a9a9a"
BEST = 5
"""Methods that curves and galleries show unasked, and `random`."""
ROWS = 8
"""Images that a gallery shows."""
KINDS = ("pdf", "png", "svg")
"""Of files that a figure is written to, by their ends."""
DPI = 150
LINE = 16
"""Letters of a name that fit over a map."""
NORMAL = 1.96
"""Standard errors on either side that make a 95% band."""


class Drawing(Figure):
    """A figure that notebooks show; pyplot, which remembers all figures, knows nothing of it."""

    def _repr_png_(self) -> bytes:
        return content_of(self, "png")


def draw(
    path: Path, output: Path, case: str = "", pair: str = "", methods: Sequence[str] = ()
) -> None:
    """Write a figure of a report: the curves of a case, images of a pair, or else the board."""
    kind = output.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise AttrcheckError(f"{output} must end in {', '.join(KINDS)}")
    document, details = exports.read(path)
    if case:
        figure = curves(document, details, case, methods)
    elif pair:
        figure = gallery(document, details, pair, methods)
    else:
        figure = board(document, methods)
    try:
        write_whole(output, content_of(figure, kind))
    except OSError as error:
        raise AttrcheckError(f"{output} cannot be written ({error.strerror})") from error


def content_of(figure: Figure, kind: str) -> bytes:
    """A figure as the content of a file; alike whenever it is drawn, and with fonts for papers."""
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    content = io.BytesIO()
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "attrcheck"}):
        figure.savefig(content, format=kind, dpi=DPI, bbox_inches="tight", metadata=dated.get(kind))
    return content.getvalue()


def board(document: Document, methods: Sequence[str] = ()) -> Drawing:
    """The Meta-Ranks of some methods, or of all, with their intervals, the best at the top."""
    known = [entry.method for entry in document.leaderboard]
    if unknown := [name for name in methods if known and name not in known]:
        raise AttrcheckError(f"{unknown[0]!r} is not on the board: {suggest(unknown[0], known)}")
    entries = [entry for entry in document.leaderboard if not methods or entry.method in methods]
    if not entries:
        raise AttrcheckError(f"nothing to draw: {terminal.no_board(document)}")
    figure = Drawing(figsize=(6, 0.6 + 0.2 * len(entries)), layout="constrained")
    axes = figure.add_subplot()
    for place, entry in enumerate(entries):
        facts = document.settings.facts.get(entry.method)
        colour = FAINT if facts and facts.dummy else COLOURS[1 if facts and facts.own else 0]
        if entry.low is not None and entry.high is not None:
            axes.plot([entry.low, entry.high], [place, place], color=colour, linewidth=1.5)
        axes.plot(entry.meta_rank, place, "o", color=colour, markersize=4)
    axes.axvline(0, color=FAINT, linewidth=0.5, zorder=0)
    axes.set_yticks(range(len(entries)), [_plain(entry.method) for entry in entries], fontsize=7)
    axes.set_ylim(len(entries) - 0.5, -0.5)
    axes.set_xlabel(f"Meta-Rank, with 95% interval{_key(document, entries)}", fontsize=8)
    _bare(axes, "left")
    return figure


def curves(document: Document, details: Details, case: str, methods: Sequence[str] = ()) -> Drawing:
    """The curves of some methods in a case, with bands of 95% where they are known."""
    entry = _case(document, case)
    drawn = {name: entry.scores[name].curve for name in chosen(entry, methods)}
    if not any(drawn.values()):
        raise AttrcheckError(f"there are no curves of {case}: {entry.protocol} has none")
    known = details.cases.get(case)
    figure = Drawing(figsize=(5, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for place, (name, curve) in enumerate(drawn.items()):
        if curve is None:
            continue
        x, y = (np.array(axis, dtype=float) for axis in (curve.x, curve.y))
        colour, style = COLOURS[place % len(COLOURS)], STYLES[place // len(COLOURS) % len(STYLES)]
        axes.plot(x, y, style, color=colour, linewidth=1.5, label=_plain(name))
        if known is not None and name in known.methods:
            errors = NORMAL * known.curve_errors[known.methods.index(name)][: len(y)]
            if len(errors) == len(y):
                axes.fill_between(x, y - errors, y + errors, color=colour, alpha=0.15, linewidth=0)
    better = "higher" if entry.higher_is_better else "lower"
    axes.set_title(_plain(f"{case}, {entry.images} images; a {better} score is better"), fontsize=9)
    axes.legend(fontsize=7, frameon=False)
    _bare(axes)
    return figure


def gallery(
    document: Document, details: Details, pair: str, methods: Sequence[str] = ()
) -> Drawing:
    """Images of a pair with the maps of some methods beside them."""
    pairs = {exhibit.pair: exhibit for exhibit in details.exhibits}
    if pair not in pairs:
        raise AttrcheckError(
            f"there are no images of {pair!r} in this report: {suggest(pair, pairs)}"
        )
    exhibit = pairs[pair]
    best = [entry.method for entry in document.leaderboard if entry.method in exhibit.methods]
    names = list(methods) or (best or exhibit.methods)[:BEST]
    if unknown := [name for name in names if name not in exhibit.methods]:
        raise AttrcheckError(
            f"{unknown[0]!r} has no maps of {pair}: {suggest(unknown[0], exhibit.methods)}"
        )
    maps = {
        name: exhibit.maps[at][:ROWS] * exhibit.scales[at, :ROWS, None, None].astype(np.float32)
        for name in names
        for at in [exhibit.methods.index(name)]
    }
    told = zip(exhibit.labels, exhibit.predictions, strict=True)
    labels = [label if label == guess else f"{label},\ntaken for\n{guess}" for label, guess in told]
    return sheet(exhibit.images[:ROWS], maps, labels[:ROWS])


def sheet(
    images: NDArray[np.uint8],
    maps: Mapping[str, NDArray[np.float32]],
    labels: Sequence[str] = (),
) -> Drawing:
    """Images [N, H, W, C] in rows, each with its maps [N, H, W] beside it, by title.

    Each map has a scale of its own; where a method has negative values, white is zero.
    """
    columns = {"image": images, **{name: coloured(some) for name, some in maps.items()}}
    shape = len(images), len(columns)
    height, width = images.shape[1:3]
    size = (1.1 * shape[1] + 0.8, 1.1 * shape[0] * height / width + 0.4)
    figure = Drawing(figsize=size, layout="constrained")
    grid = figure.subplots(*shape, squeeze=False)
    for across, (title, pictures) in enumerate(columns.items()):
        for down, picture in enumerate(pictures):
            axes = grid[down, across]
            grey = picture.shape[-1] == 1
            axes.imshow(picture[..., 0] if grey else picture, cmap="gray", vmin=0, vmax=255)
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_visible(False)
        grid[0, across].set_title(_plain(_wrapped(title)), fontsize=7)
    for axes, label in zip(grid[:, 0], labels, strict=False):
        axes.set_ylabel(_plain(label), fontsize=7, rotation=0, ha="right", va="center")
    return figure


def chosen(entry: CaseEntry, methods: Sequence[str]) -> list[str]:
    """The methods asked for, else the best of the case and `random`."""
    for name in methods:
        if name not in entry.scores:
            raise AttrcheckError(f"no method {name!r} in {entry.id}: {suggest(name, entry.scores)}")
    if methods:
        return list(methods)
    ranks = {name: score.rank for name, score in entry.scores.items() if score.rank is not None}
    best = sorted(ranks, key=lambda name: ranks[name])[:BEST]
    return [*best, *(name for name in ranks if name == "random" and name not in best)]


def _case(document: Document, case: str) -> CaseEntry:
    cases = {entry.id: entry for entry in document.cases}
    if case not in cases:
        raise AttrcheckError(f"no case {case!r} in this report: {suggest(case, cases)}")
    return cases[case]


def _key(document: Document, entries: Sequence[BoardEntry]) -> str:
    """What the colours of the board mean, as far as they are there."""
    facts = [document.settings.facts.get(entry.method) for entry in entries]
    dummies = "; grey ignores the model" if any(fact and fact.dummy for fact in facts) else ""
    return dummies + ("; orange is your own" if any(fact and fact.own for fact in facts) else "")


def _wrapped(name: str) -> str:
    """A name on several lines, if it is too long for a column."""
    lines = [""]
    for part in re.split(r"(?<=[_:. ])", name):
        if lines[-1] and len(lines[-1] + part) > LINE:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text as it is: a dollar would begin a formula."""
    return for_terminal(text).replace("$", r"\$")


def _bare(axes: Axes, *others: str) -> None:
    """Leave out the frame, but for the axes that are read."""
    for side in ("top", "right", *others):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=INK, labelsize=7)
