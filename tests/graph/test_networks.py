"""The table of networks in the docs: what it says of methods is what they do."""

import re
from pathlib import Path

import networks
import oracles
import pytest

from attrcheck.methods import method as methods

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reference" / "networks.md").read_text()


def columns():
    """The methods of every column, by its letter."""
    found = re.findall(r"^- \*\*([A-Z])\*\*: (.+)$", DOCUMENT, re.MULTILINE)
    return {letter: names.split(", ") for letter, names in found}


def rows():
    """The cells of every network."""
    lines = [line for line in DOCUMENT.splitlines() if line.startswith(("| torchvision", "| timm"))]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {name: rest for name, *rest in cells}


def reasons():
    """The reason behind every number."""
    return dict(re.findall(r"^(\d+)\. (.+)$", DOCUMENT, re.MULTILINE))


def documented(network):
    """What the document says of every method on a network."""
    told = reasons()
    return {
        name: cell if cell == oracles.EXACT else f"{oracles.NOT_APPLICABLE}{told[cell]}"
        for cell, names in zip(rows()[network], columns().values(), strict=True)
        for name in names
    }


def test_the_document_is_about_every_method_and_network():
    assert sorted(name for names in columns().values() for name in names) == list(methods)
    assert list(rows()) == list(oracles.NETWORKS)


def test_every_cell_is_exact_or_has_a_reason():
    told = reasons()
    assert {cell for row in rows().values() for cell in row} - {oracles.EXACT} == set(told)
    assert all(told.values())


def test_a_table_groups_methods_and_numbers_reasons():
    outcomes = {name: dict.fromkeys(methods, "exact") for name in ("one", "other")}
    outcomes["other"] |= dict.fromkeys(("lrp", "deeplift"), "not applicable: no rule")
    text = networks.table(outcomes)
    assert "- **B**: deeplift, lrp\n" in text
    assert re.search(r"\| other +\| exact +\| 1 +\|\n\n1\. no rule$", text)


@pytest.mark.slow
@pytest.mark.parametrize("network", oracles.NETWORKS)
def test_methods_do_what_the_document_says(network):
    assert networks.outcomes_on(network) == documented(network)
