"""Protocols: observe what the model does for each image, then reduce to a score."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from attrcheck.contracts import Protocol
from attrcheck.registry import Registry


@dataclass(frozen=True)
class ProtocolSpec:
    """A registered protocol: a name and the function that makes it.

    `build()` may ask for `profile`, by that name, to take fewer steps or images where time is
    short. default: whether it runs unasked in any profile but full. known_failures: checks that it
    is known to fail, and why.
    depends: what else it depends on, as "file:PATH", "env:NAME" or "package:NAME".
    """

    name: str
    build: Callable[..., Protocol]
    default: bool = True
    known_failures: Mapping[str, str] = field(default_factory=dict)
    depends: Sequence[str] = ()

    def make(self, profile: str = "full") -> Protocol:
        """The protocol as this profile wants it."""
        asks = "profile" in inspect.signature(self.build).parameters
        return self.build(profile=profile) if asks else self.build()


protocol = Registry(
    "protocol",
    ProtocolSpec,
    __name__,
    prefixes={
        "morf": "attrcheck.protocols.ablation:resolve_morf",
        "lerf": "attrcheck.protocols.ablation:resolve_lerf",
        "srg": "attrcheck.protocols.symmetric:resolve_srg",
        "quantus": "attrcheck.adapters.quantus",
        "captum": "attrcheck.adapters.captum_metrics",
    },
)

__all__ = ["Protocol", "ProtocolSpec", "protocol"]
