"""The settings of a run: everything that decides its results, and how fast it gets them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROFILES: dict[str, int | None] = {"smoke": 8, "default": 100, "full": None}
"""Images a case by profile; None takes all."""


@dataclass(frozen=True)
class Settings:
    """What the options of a run come to, in one process of it."""

    profile: str
    images: int | None
    seed: int
    methods: tuple[str, ...]
    store: Path
    fresh: bool
    run: str
    device: str
    threads: int
    memory: int | None
    """Bytes that a method's inner batches may take; None: half of what is free."""
    images_given: bool = False
    """Whether the number of images was asked for: then costly protocols take no fewer."""


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
