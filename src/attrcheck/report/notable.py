"""What deserves a look: where one's own methods lose, and cases at odds with the board."""

from __future__ import annotations

from attrcheck.report.types import CaseEntry, Document

MOST_CASES = 3
MOST_METHODS = 5
AT_ODDS = 0.2
"""A case whose ranking correlates less than this with the board is at odds with it."""


def lines(document: Document) -> list[str]:
    """One line for each of the user's methods, and one for each thing that may surprise."""
    return [*own_lines(document), *_at_odds(document), *_winners(document)]


def own(document: Document) -> list[str]:
    """The user's own methods, in the order of the board; those without a score come last."""
    names = [entry.method for entry in document.leaderboard]
    names += [name for name in document.settings.methods if name not in names]
    facts = document.settings.facts
    return [name for name in names if name in facts and facts[name].own]


def losses(document: Document, method: str) -> list[CaseEntry]:
    """The cases of a method, the one in which it does worst first."""

    def share(case: CaseEntry) -> float:
        ranks = [score.rank for score in case.scores.values() if score.rank is not None]
        return ((case.scores[method].rank or 1) - 1) / max(1, len(ranks) - 1)

    scored = [case for case in document.cases if case.scores[method].rank is not None]
    return sorted(scored, key=lambda case: (-share(case), case.id))


def own_lines(document: Document) -> list[str]:
    """Where each of the user's own methods does worst."""
    shown = []
    for method in own(document)[:MOST_METHODS]:
        cases = losses(document, method)
        worst = [case for case in cases if case.scores[method].rank != 1]
        if not worst:
            shown.append(f"{method} {'is first in every case' if cases else 'has no score'}")
            continue
        ranked = ", ".join(_place(case, method) for case in worst[:MOST_CASES])
        lost = [case.id for case in document.cases if case.scores[method].beats_random is False]
        more = f", ... {len(lost) - MOST_CASES} more" if len(lost) > MOST_CASES else ""
        beaten = f"; it does not beat random in {len(lost)} cases: " if lost else ""
        shown.append(f"{method} is worst in {ranked}{beaten}{', '.join(lost[:MOST_CASES])}{more}")
    hidden = len(own(document)) - MOST_METHODS
    return [*shown, f"... and {hidden} more methods of your own"] if hidden > 0 else shown


def _place(case: CaseEntry, method: str) -> str:
    ranked = sum(score.rank is not None for score in case.scores.values())
    return f"{case.id} ({case.scores[method].rank:g} of {ranked})"


def _at_odds(document: Document) -> list[str]:
    cases = [
        f"{case.case} ({case.with_others:.2f})"
        for case in document.consistency.cases
        if case.with_others is not None and case.with_others < AT_ODDS
    ]
    if not cases:
        return []
    more = f" and {len(cases) - MOST_CASES} more" if len(cases) > MOST_CASES else ""
    return [
        "at odds with the board of all other cases (rank correlation): "
        f"{', '.join(cases[:MOST_CASES])}{more}"
    ]


def _winners(document: Document) -> list[str]:
    return [
        f"without {without.protocol} the winner would be {', '.join(without.winners)}"
        for without in document.consistency.without_protocol
        if without.winner_changes
    ]
