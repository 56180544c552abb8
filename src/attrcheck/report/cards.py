"""Cards: all that a report knows of one method, in the fields of the saliency cards.

Boggust, Suresh, Strobelt, Guttag, Satyanarayan: Saliency Cards, FAccT 2023. They describe a method
by ten attributes in three parts; where attrcheck has no answer, the card says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from attrcheck.engine.results import CheckResult, LawResult, MethodFacts
from attrcheck.report import groups
from attrcheck.report.text import counted, one_line
from attrcheck.report.types import BoardEntry, CaseEntry, Document, MethodVerdict

NO_ANSWER = "no answer: "
LABEL_CHECKS = ("target_sensitivity", "data_randomisation")
MODEL_CHECKS = ("randomisation", "emprt", "smprt")
INPUT_CHECKS = ("input_invariance",)
PLACE_CHECKS = ("ground_truth",)
LOCALISATION = ("ground_truth",)
"""Families of protocols that ask where a map points, and not what the model does without it."""
LIKENESS = "rank_correlation"
"""The figure of a check that says how alike maps are that should differ."""
MOST_PLACES = 3


@dataclass(frozen=True)
class Fact:
    """One line of a card."""

    name: str
    text: str


@dataclass(frozen=True)
class Section:
    """Some lines of a card."""

    title: str
    facts: list[Fact]


@dataclass(frozen=True)
class Card:
    """What is known of a method; source: where from."""

    method: str
    source: str
    sections: list[Section]


@dataclass(frozen=True)
class Known:
    """What a report knows of one method; without a report, nothing but its facts."""

    method: str
    facts: MethodFacts | None
    cases: Sequence[CaseEntry] = ()
    checks: Sequence[CheckResult] = ()
    entry: BoardEntry | None = None
    verdict: MethodVerdict | None = None
    laws: Sequence[LawResult] = ()
    document: Document | None = None

    @property
    def scored(self) -> list[CaseEntry]:
        """The cases in which it has a rank."""
        return [case for case in self.cases if case.scores[self.method].rank is not None]


def cards(document: Document, source: str) -> list[Card]:
    """One for each method of a report."""
    entries = {entry.method: entry for entry in document.leaderboard}
    verdicts = {verdict.method: verdict for verdict in document.method_verdicts}
    checks: dict[str, list[CheckResult]] = {}
    for result in document.checks:
        if result.over == "methods":
            checks.setdefault(result.subject, []).append(result)
    laws: dict[str, list[LawResult]] = {}
    for law in document.laws:
        if law.kind == "method":
            laws.setdefault(law.subject, []).append(law)
    return [
        card(
            Known(
                *(name, document.settings.facts.get(name), document.cases, checks.get(name, ())),
                *(entries.get(name), verdicts.get(name), laws.get(name, ()), document),
            ),
            source,
        )
        for name in document.settings.methods
    ]


def card(known: Known, source: str) -> Card:
    """The card of one method."""
    sections = [
        Section("Method", _method(known)),
        Section("Place", _place(known)),
        Section("Methodology", _methodology(known)),
        Section("Sensitivity testing", _sensitivity(known)),
        Section("Perceptibility testing", _perceptibility(known)),
        Section("Axioms", [*_axioms(known), *_laws(known.laws)]),
        Section("Checks", _checks(known)),
        Section("Where it applies", _applies(known)),
        Section("Ranks", _ranks(known)),
    ]
    return Card(known.method, source, [section for section in sections if section.facts])


def _method(known: Known) -> list[Fact]:
    facts = known.facts
    if facts is None:
        return [Fact("definition", f"{NO_ANSWER}it could not be loaded")]
    kind = "a dummy: it ignores the model" if facts.dummy else "your own" if facts.own else ""
    return [
        Fact("definition", facts.definition or f"{NO_ANSWER}it has no docstring"),
        Fact("reference", facts.reference or "none"),
        Fact("family", f"{facts.family} ({kind})" if kind else facts.family),
    ]


def _place(known: Known) -> list[Fact]:
    entry, document = known.entry, known.document
    if document is None:
        return []
    if entry is None:
        return [Fact("board", "it has no score in any case")]
    ends = "" if entry.low is None else f" [{entry.low:+.2f}, {entry.high:+.2f}]"
    of = f"{entry.rank} of {len(document.leaderboard)}"
    facts = [Fact("board", f"{of}, Meta-Rank {entry.meta_rank:+.2f}{ends}")]
    if entry.letters:
        like = [
            other.method
            for other in document.leaderboard
            if other.method != entry.method and {*other.letters} & {*entry.letters}
        ]
        told = f"{groups.short(entry.letters)}, so its place may be {groups.places(entry)}"
        facts.append(Fact("group", told))
        facts.append(Fact("not told from", ", ".join(like) or "none"))
    if entry.wins is not None:
        facts.append(Fact("wins", f"{entry.wins:.0%} of its comparisons"))
    beaten = entry.beats_random
    if beaten.of:
        facts.append(Fact("beats random", f"in {beaten.cases} of {counted(beaten.of, 'case')}"))
    return facts


def _methodology(known: Known) -> list[Fact]:
    facts = known.facts
    cost = [] if facts is None or not facts.passes else [_passes(facts.passes)]
    seconds = known.document and known.document.run.seconds_per_image.get(known.method)
    cost += [f"{seconds:.2g} s an image in this run"] if seconds is not None else []
    steady = "deterministic"
    if facts is None or facts.seeded:
        steady = "random, from a seed for each image" if facts else ""
    answer = "; ".join(filter(None, [steady, _verdicts(known.checks, ("contract",))]))
    return [
        Fact("determinism", answer or f"{NO_ANSWER}not checked"),
        Fact("hyperparameter dependence", f"{NO_ANSWER}it runs with one setting"),
        Fact("model agnosticism", _agnosticism(known)),
        Fact("computational efficiency", "; ".join(cost) or f"{NO_ANSWER}no run"),
        Fact("semantic directness", f"{NO_ANSWER}nothing but the definition above"),
    ]


def _passes(passes: Sequence[int]) -> str:
    forward, backward = passes
    return f"{forward} forward and {backward} backward passes an image"


def _sensitivity(known: Known) -> list[Fact]:
    ranked = _families(known, lambda family: family not in LOCALISATION)
    answer = "; ".join(filter(None, [ranked, _verdicts(known.checks, INPUT_CHECKS)]))
    return [
        Fact("input sensitivity", answer or f"{NO_ANSWER}no protocol ran"),
        Fact("label sensitivity", _answer(known, LABEL_CHECKS)),
        Fact("model sensitivity", _answer(known, MODEL_CHECKS)),
    ]


def _perceptibility(known: Known) -> list[Fact]:
    ranked = _families(known, lambda family: family in LOCALISATION)
    answer = "; ".join(filter(None, [ranked, _verdicts(known.checks, PLACE_CHECKS)]))
    return [
        Fact("minimality", f"{NO_ANSWER}no protocol measures how sparse a map is"),
        Fact("perceptual correspondence", answer or f"{NO_ANSWER}no case has ground truth"),
    ]


def _axioms(known: Known) -> list[Fact]:
    if known.facts is None:
        return []
    if not known.facts.axioms:
        return [Fact("claimed", "none")]
    results = [result for result in known.checks if result.check == "axioms" and result.figures]
    facts = []
    for name, claimed in known.facts.axioms.items():
        errors = [
            float(result.figures[name])
            for result in results
            if isinstance(result.figures.get(name), float | int)
        ]
        kept = sum(error <= claimed for error in errors)
        proved = (
            f"kept on {kept} of {counted(len(errors), 'pair')}, median error {median(errors):.2g}, "
            f"at worst {max(errors):.2g}"
            if errors
            else "not checked"
        )
        facts.append(Fact(name.replace("_", " "), f"claimed within {claimed:g}; {proved}"))
    return facts


def _laws(laws: Sequence[LawResult]) -> list[Fact]:
    """What was tried on random networks."""
    tried = [law for law in laws if law.status in ("held", "broken")]
    if not tried:
        return []
    kept = [law.law.replace("_", " ") for law in tried if law.status == "held"]
    facts = [Fact("on random networks", f"kept: {', '.join(kept) or 'none'}")]
    return facts + [
        Fact(f"broken: {law.law.replace('_', ' ')}", one_line(law.reason))
        for law in tried
        if law.status == "broken"
    ]


def _checks(known: Known) -> list[Fact]:
    verdict = known.verdict
    if verdict is None:
        return [Fact("checks", "none ran")] if known.document else []
    of = counted(verdict.decided, "check")
    facts = [Fact("passed", f"{verdict.passed} of {of} that decided")]
    for word, failures in (("failed", verdict.failures), ("known to fail", verdict.known_failures)):
        reasons: dict[tuple[str, str], list[str]] = {}
        for failure in failures:
            reasons.setdefault((failure.check, one_line(failure.reason)), []).append(failure.on)
        facts += [
            Fact(f"{word}: {check}", f"on {_some(places)}: {reason}")
            for (check, reason), places in reasons.items()
        ]
    return facts


def _applies(known: Known) -> list[Fact]:
    if not known.cases:
        return []
    reasons: dict[str, dict[str, None]] = {}
    applies: dict[str, None] = {}
    for case in known.cases:
        score = case.scores[known.method]
        if score.status == "not_applicable":
            reasons.setdefault(one_line(score.reason), {})[case.model] = None
        else:
            applies[case.model] = None
    facts = [Fact("applies to", ", ".join(applies) or "none of the models here")]
    return facts + [
        Fact(f"not to {', '.join(models)}", reason or "not applicable")
        for reason, models in reasons.items()
    ]


def _agnosticism(known: Known) -> str:
    models = {case.model for case in known.cases}
    fit = {
        case.model for case in known.cases if case.scores[known.method].status != "not_applicable"
    }
    if not models:
        return f"{NO_ANSWER}no run"
    return f"applies to {len(fit)} of {counted(len(models), 'model')} of this run, see below"


def _ranks(known: Known) -> list[Fact]:
    facts = []
    for kind in ("dataset", "model"):
        places: dict[str, list[CaseEntry]] = {}
        for case in known.scored:
            places.setdefault(getattr(case, kind), []).append(case)
        facts += [Fact(f"{kind} {name}", _mean(known, cases)) for name, cases in places.items()]
    boards = known.document.families if known.document else []
    return facts + [
        Fact(f"family {board.family}", f"{place:g} of {len(board.places)}, Meta-Rank {kappa:+.2f}")
        for board in boards
        for place, kappa in [board.places.get(known.method, (None, None))]
        if place is not None and kappa is not None
    ]


def _mean(known: Known, cases: Sequence[CaseEntry]) -> str:
    ranks = [case.scores[known.method].rank or 0.0 for case in cases]
    first = sum(rank == 1 for rank in ranks)
    return f"mean rank {fmean(ranks):.1f} in {counted(len(cases), 'case')}, first in {first}"


def _families(known: Known, wanted: Callable[[str], bool]) -> str:
    """Its places in some families of protocols."""
    boards = known.document.families if known.document else []
    return ", ".join(
        f"{board.places[known.method][0]:g} of {len(board.places)} in {board.family}"
        for board in boards
        if wanted(board.family) and known.method in board.places
    )


def _answer(known: Known, names: Sequence[str]) -> str:
    return _verdicts(known.checks, names) or f"{NO_ANSWER}{' or '.join(names)} did not run"


def _verdicts(checks: Iterable[CheckResult], names: Sequence[str]) -> str:
    """What checks of these names came to, in a few words."""
    told = []
    for name in names:
        results = [result for result in checks if result.check == name]
        decided = [result for result in results if result.status != "not_applicable"]
        if not results:
            continue
        if not decided:
            told.append(f"{name}: not applicable ({one_line(results[0].reason)})")
            continue
        passed = [result for result in decided if result.status == "passed"]
        line = f"{name} passed on {len(passed)} of {counted(len(decided), 'pair')}"
        if likeness := [
            float(result.figures[LIKENESS]) for result in decided if LIKENESS in result.figures
        ]:
            line += f" (rank correlation {fmean(likeness):.2f})"
        if failed := [result for result in decided if result.status != "passed"]:
            line += f", not on {_some([result.on for result in failed])}"
        told.append(line)
    return "; ".join(told)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_PLACES])
    hidden = len(names) - MOST_PLACES
    return f"{shown} and {hidden} more" if hidden > 0 else shown
