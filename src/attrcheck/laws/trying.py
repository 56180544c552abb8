"""Try a law on scenes that hypothesis invents, and show the simplest one that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from attrcheck.errors import text_of

EXAMPLES = {"smoke": 5, "default": 25, "full": 500}
"""Scenes for each law, by profile."""
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
"""All but the one that explains: the scene that is left says enough."""

S = TypeVar("S")


class BrokenLawError(AssertionError):
    """A law does not hold: why, and in which scene, the simplest that was found."""

    def __init__(self, reason: str, scene: object) -> None:
        super().__init__(f"{reason}\ncounterexample: {scene!r}")
        self.reason = reason
        self.scene = repr(scene)


@dataclass(frozen=True)
class Effort:
    """How hard to try: how many scenes, drawn from which seed, and where to keep broken ones.

    seed: None leaves it to hypothesis, as its profile says. database: a folder; what broke a law
    before is tried first.
    """

    examples: int
    seed: int | str | None = None
    database: Path | None = None


def attempt(law: Callable[[S], None], scenes: st.SearchStrategy[S], effort: Effort) -> None:
    """One law on many scenes: BrokenLawError, with the simplest that breaks it."""
    broken: list[tuple[S, Exception]] = []
    options: dict[str, Any] = {} if effort.seed is None else {"derandomize": False}
    if effort.database is not None:
        options["database"] = DirectoryBasedExampleDatabase(effort.database)
    elif effort.seed is not None:
        options["database"] = None

    @settings(
        deadline=None,
        max_examples=effort.examples,
        phases=PHASES,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        **options,
    )
    @seed(effort.seed)  # inside: it would take the database away
    @given(scene=scenes)
    def obey(scene: S) -> None:
        try:
            law(scene)
        except Exception as error:
            broken.append((scene, error))
            raise

    try:
        obey()
    except Exception:
        if not broken:
            raise
        scene, error = broken[-1]  # the simplest is tried once more at the end
        raise BrokenLawError(_told(error), scene) from error


def _told(error: Exception) -> str:
    """What a law says, without what pytest adds to an assertion; or what was raised in its way."""
    if isinstance(error, AssertionError):
        return text_of(error).partition("\nassert ")[0]
    return f"{type(error).__name__}: {text_of(error)}"
