"""Every method on the main families of torchvision and timm: exact, or not applicable and why.

    python benchmarks/networks.py                              # print the table
    python benchmarks/networks.py "timm:*" --write docs/reference/networks.md

Networks have random weights and get one small image. 'Exact' means that the method runs there, that
its maps are finite, and that the oracle for methods of its kind holds:

- the prepared graph has the logits of the author's network and its gradient, to 1e-5 of the
  largest;
- maps of DeepLIFT and DeepSHAP sum to the difference of logits that they explain, to 1e-3;
- relevance is conserved by LRP in the same network without biases, to 1e-3;
- guided backpropagation and deconvolution are what other derivatives of every rectifier give in the
  author's network, where torch's own functions are intercepted, to 1e-5 of the largest;
- attention that is rolled out, or weighed as Chefer does, is what the author's network computes,
  to 1e-5 of the largest.

All others are exact where logits and gradients are: what they make of these is proved once for all
networks (`tests/methods/`), and so are the rules of AttnLRP and LibraGrad, and what FullGrad takes
to be added to a signal. Costly ones take fewer samples here.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import torch
from oracles import EXACT, NETWORKS, NOT_APPLICABLE, Subject, hasty
from tabulate import tabulate

from attrcheck.methods import method as methods


def outcomes_on(network: str) -> dict[str, str]:
    """The outcome of every method on a network."""
    subject = Subject(network)
    with hasty():
        return {name: subject.outcome(methods.get(name)) for name in methods}


def survey(names: Iterable[str], say: Callable[[str], None]) -> dict[str, dict[str, str]]:
    """The outcome of every method on every network."""
    outcomes = {}
    for name in names:
        start = time.perf_counter()
        outcomes[name] = outcomes_on(name)
        exact = sum(outcome == EXACT for outcome in outcomes[name].values())
        say(f"{name}: {exact} methods exact, {time.perf_counter() - start:.0f} s")
        for known, outcome in outcomes[name].items():
            if outcome != EXACT and not outcome.startswith(NOT_APPLICABLE):
                say(f"  {known}: {outcome}")
    return outcomes


def table(outcomes: dict[str, dict[str, str]]) -> str:
    """One row per network, one column for all methods with the same outcomes; reasons below."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for known in methods:
        columns.setdefault(tuple(row[known] for row in outcomes.values()), []).append(known)
    reasons: dict[str, int] = {}

    def cell(outcome: str) -> str:
        if outcome == EXACT:
            return EXACT
        return str(reasons.setdefault(outcome.removeprefix(NOT_APPLICABLE), len(reasons) + 1))

    ordered = sorted(columns, key=lambda column: (-column.count(EXACT), columns[column]))
    rows = [
        [name, *(cell(column[place]) for column in ordered)] for place, name in enumerate(outcomes)
    ]
    letters = [chr(ord("A") + place) for place in range(len(ordered))]
    groups = [
        f"- **{letter}**: {', '.join(columns[column])}"
        for letter, column in zip(letters, ordered, strict=True)
    ]
    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    body = tabulate(rows, ["network", *letters], "github", disable_numparse=True)
    return "\n".join([*groups, "", body, "", *notes])


DOCUMENT = """# Which method is right on which network

Made by `python benchmarks/networks.py --write docs/reference/networks.md` with torch {torch},
torchvision {torchvision} and timm {timm}; tested by
`pytest -n 0 -m slow tests/graph/test_networks.py`.

{text}

{help}

## The table

A number is the reason, below the table, why methods are not applicable. The columns are:

{table}
"""
HELP = """## Your own network

Methods get your network as you built it. Those that take it apart get a graph of it, made by
torch.fx for images of the size that it sees: it may branch on sizes and settings, but not on values
of images. Functions count like modules. A network for which that is not enough can be helped:

```python
@attrcheck.model("mine", leaf=[Router, "stages.3.gate"], concrete_args={{"check": False}})
```

`leaf` names classes or parts that stay in one piece; methods that need a rule for them are not
applicable. `concrete_args` sets arguments of `forward()` beside the image, which else keep their
defaults. A graph whose logits are not those of the network is not used. Where there is none, all
methods that need only logits and gradients still run, and the others say what could not be traced,
and where."""


def document(outcomes: dict[str, dict[str, str]]) -> str:
    """What the docs say."""
    versions = {name: version(name) for name in ("torch", "torchvision", "timm")}
    about = "".join((__doc__ or "").partition("Networks have")[1:]).strip()
    return DOCUMENT.format(**versions, text=about, help=HELP.format(), table=table(outcomes))


def main() -> int:
    parser = argparse.ArgumentParser(description="Every method on the main families of networks")
    parser.add_argument("networks", nargs="?", default="*", help="a glob; default: all")
    parser.add_argument("--write", type=Path, help="the document to write")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    names = fnmatch.filter(NETWORKS, chosen.networks)
    outcomes = survey(names, lambda line: print(line, file=sys.stderr, flush=True))
    if chosen.write:
        chosen.write.write_text(document(outcomes), encoding="utf-8")
    else:
        print(table(outcomes))
    known = (EXACT, NOT_APPLICABLE)
    return int(any(not o.startswith(known) for row in outcomes.values() for o in row.values()))


if __name__ == "__main__":
    sys.exit(main())
