"""Compare two report.json files, the run and renamed fields aside: `python compare_reports.py A B`.

Proves that a change of the code's shape changed no result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RENAMED = {
    "judges": "protocol_verdicts",
    "judged": "decided",
    "lessons": "training_images",
}
"""Fields of earlier reports under other names; what a report has today stays as it is."""
DEFAULTS = {
    **dict.fromkeys(("score", "low", "high", "curve", "rank")),
    "reason": "",
    "constant_maps": 0,
    "undefined_images": 0,
    "passes": {},
}
"""What a score leaves out today where it says nothing."""
ADDED = {"beats_random"}
"""Of a score, what earlier reports do not have."""
VOLATILE = {"run", "fingerprint", "schema", "facts"}
"""What differs from run to run, or, as the hash of a key does, with any change of the code; and
what is known of methods without running them."""
PROSE = {"reason", "lines", "known", "leaderboard_problem", "problem"}
"""Words may change; figures may not."""


def plain(value: Any) -> Any:
    """A report without what differs from run to run, by the names of today."""
    if isinstance(value, dict):
        if "status" in value and "check" not in value:
            value = {key: item for key, item in (DEFAULTS | value).items() if key not in ADDED}
        return {
            RENAMED.get(key, key): rounded(item) if key == "curve" else plain(item)
            for key, item in value.items()
            if key not in VOLATILE | PROSE
        }
    return [plain(item) for item in value] if isinstance(value, list) else value


def rounded(curve: Any) -> Any:
    """A curve in the seven digits that reports have today."""
    if isinstance(curve, dict):
        return {axis: rounded(values) for axis, values in curve.items()}
    if isinstance(curve, list):
        return [rounded(value) for value in curve]
    return float(f"{curve:.7g}") if isinstance(curve, float) else curve


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two plain reports differ, as paths."""
    if isinstance(one, dict) and isinstance(other, dict):
        lost = [f"{at}.{key}: only in the first" for key in one.keys() - other.keys()]
        new = [f"{at}.{key}: only in the second" for key in other.keys() - one.keys()]
        both = sorted(one.keys() & other.keys())
        return lost + new + [d for k in both for d in differences(one[k], other[k], f"{at}.{k}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [d for place, (a, b) in pairs for d in differences(a, b, f"{at}[{place}]")]
    return [] if one == other else [f"{at}: {one!r} != {other!r}"]


def main() -> int:
    """Print the differences; 1 if there are any."""
    one, other = (plain(json.loads(Path(path).read_text())) for path in sys.argv[1:])
    lines = differences(one, other)
    print("\n".join(lines[:40]) if lines else "equal")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
