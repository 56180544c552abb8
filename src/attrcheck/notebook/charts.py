"""Scores and boards as HTML for notebooks: small, without scripts."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from attrcheck.engine.results import Curve
from attrcheck.report.html.board import axis
from attrcheck.report.types import BoardEntry

WIDTH, HEIGHT, LEFT = 280, 90, 45
"""Pixels of a curve, and of what is written to its left."""
SPAN = 160
"""Pixels of the axis of intervals."""
CURVE = Markup(
    '<svg role="img" aria-label="curve" width="{w}" height="{h}" viewBox="0 0 {w} {h}">'
    '<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    '<text x="0" y="10" font-size="10" fill="currentColor">{high}</text>'
    '<text x="0" y="{h}" font-size="10" fill="currentColor">{low}</text></svg>'
)
BAR = Markup(
    '<svg role="img" aria-label="{label}" width="{w}" height="12">'
    '<line x1="{low}%" x2="{high}%" y1="6" y2="6" stroke="currentColor" stroke-width="1.5"/>'
    '<circle cx="{at}%" cy="6" r="3.5" fill="currentColor"/></svg>'
)


def number(score: float | None, low: float | None, high: float | None) -> str:
    """A score with its interval."""
    if score is None:
        return "no score"
    return f"{score:.4g}" + ("" if low is None else f" [{low:.4g}, {high:.4g}]")


def score(text: str, curve: Curve | None) -> str:
    """A score, and its curve if it has one."""
    drawn = _curve(curve) if curve else Markup()
    return str(Markup("<p>{}</p>{}").format(text, drawn))


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; the first column is text."""
    head = Markup().join(Markup("<th>{}</th>").format(header) for header in headers)
    body = Markup().join(
        Markup("<tr>{}</tr>").format(
            Markup().join(Markup("<td>{}</td>").format(cell) for cell in row)
        )
        for row in rows
    )
    return str(
        Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)
    )


def bars(entries: Sequence[BoardEntry]) -> list[Markup]:
    """The Meta-Rank of each method with its interval, drawn on one axis."""
    place = axis(entries).place
    return [
        BAR.format(
            label=f"{entry.meta_rank:+.2f}",
            w=SPAN,
            at=place(entry.meta_rank),
            low=place(entry.meta_rank if entry.low is None else entry.low),
            high=place(entry.meta_rank if entry.high is None else entry.high),
        )
        for entry in entries
    ]


def _curve(curve: Curve) -> Markup:
    points = [
        (x, y) for x, y in zip(curve.x, curve.y, strict=True) if x is not None and y is not None
    ]
    if len(points) < 2:
        return Markup()
    xs, ys = zip(*points, strict=True)
    wide, tall = max(xs) - min(xs) or 1.0, max(ys) - min(ys) or 1.0
    line = " ".join(
        f"{LEFT + (WIDTH - LEFT) * (x - min(xs)) / wide:.1f},"
        f"{5 + (HEIGHT - 10) * (max(ys) - y) / tall:.1f}"
        for x, y in points
    )
    return CURVE.format(w=WIDTH, h=HEIGHT, points=line, high=f"{max(ys):.3g}", low=f"{min(ys):.3g}")
