"""What a case at work says of itself: which method, which shard, how fast, how long still."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from attrcheck.pace import Clock, Pace


@dataclass
class Steps:
    """The steps of a case, one for each method and shard; tells what is under way as text."""

    case: str
    methods: int
    shards: int
    tell: Callable[[str], None]
    clock: Clock = time.monotonic
    _pace: Pace = field(init=False)
    _done: int = 0
    _images: int = 0

    def __post_init__(self) -> None:
        self._pace = Pace(self.methods * self.shards, clock=self.clock)

    def begin(self, method: str, shard: int) -> None:
        """Tell that a method is at work on a shard, the first being 0."""
        place = self._done - shard * self.methods + 1
        parts = [f"{self.case} {method}, method {place} of {self.methods}"]
        if self.shards > 1:
            parts.append(f"shard {shard + 1} of {self.shards}")
        if self._done and (spent := self._pace.spent) > 0:
            parts += [f"{self._images / spent:.3g} images/s", self._pace.left(self._done)]
        self.tell(", ".join(parts))

    def skip(self, shard: int, methods: int) -> None:
        """Count what methods that ended earlier leave out of a shard in which these are left."""
        self._done = shard * self.methods + self.methods - methods

    def end(self, images: int) -> None:
        """Count a step that is done, of so many images."""
        self._done += 1
        self._images += images
