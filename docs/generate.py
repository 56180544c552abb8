"""Write the tables of the docs that are made from the code.

    python docs/generate.py             # write them
    python docs/generate.py --check     # say which are stale; exit code 1 if any is

A table stands between `<!-- generated: NAME -->` and `<!-- end -->`. A test says when one is stale.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrcheck import cli, gate
from attrcheck.plugin.options import OPTIONS
from attrcheck.report.schema import PATH as SCHEMA
from attrcheck.report.text import one_line, table

DOCS = Path(__file__).parent
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def compact(markdown: str) -> str:
    """A Markdown table without padding, and with its code as code: its text is our own."""
    lines = [re.sub(r" +(?=\|)", " ", re.sub(r"\| +", "| ", line)) for line in markdown.split("\n")]
    rule = re.sub(r"-+", "---", lines[1])
    return "\n".join([lines[0], rule, *lines[2:]]).replace("\\`", "`")


def rows_to_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of plain text, which may hold code."""
    return compact(table(list(rows), headers, ["left"] * len(headers)))


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table, escaped as they are."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@functools.cache
def listed(kind: str) -> str:
    """What `attrcheck list KIND --markdown` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if cli.main(["list", kind, "--markdown"]):
            raise SystemExit(f"`attrcheck list {kind}` failed")
    return compact(printed.getvalue().strip())


def methods() -> str:
    """A table for each family of methods."""
    head, rule, *lines = listed("methods").split("\n")
    at = cells(head).index("family")

    def rest(line: str) -> str:
        kept = cells(line)
        return f"| {' | '.join(kept[:at] + kept[at + 1 :])} |"

    families = dict.fromkeys(cells(line)[at] for line in lines)
    return "\n\n".join(
        "\n".join(
            [
                f"### {family.capitalize()}\n",
                *(rest(head), rest(rule)),
                *(rest(line) for line in lines if cells(line)[at] == family),
            ]
        )
        for family in families
    )


def options() -> str:
    """Every option of pytest, its default and its meaning."""
    rows = []
    for option in OPTIONS:
        value = {"bool": "", "linelist": " RULE"}.get(option.kind, f" {option.metavar}")
        told = option.kind != "bool" and option.default not in (None, "", [])
        default = f"`{option.default}`" if told else ""
        rows.append([f"`{option.flag}{value}`", default, option.help])
    return rows_to_table(["option", "default", "meaning"], rows)


def commands() -> str:
    """Every command of `attrcheck`, with its arguments."""
    return "\n\n".join(_command(*command) for command in _parsers(cli.parser()))


def _parsers(
    parser: argparse.ArgumentParser, before: str = "attrcheck"
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, command in action.choices.items():
            deeper = list(_parsers(command, f"{before} {name}"))
            yield from deeper or [(f"{before} {name}", helps[name], command)]


def _command(name: str, summary: str, parser: argparse.ArgumentParser) -> str:
    arguments = [
        action for action in parser._actions if not isinstance(action, argparse._HelpAction)
    ]
    rows = [[_spelt(action), _meaning(action)] for action in arguments]
    description = one_line(parser.description or "")
    text = f"## {name}\n\n{summary[:1].upper()}{summary[1:]}. {description}".rstrip()
    return f"{text}\n\n{rows_to_table(['argument', 'meaning'], rows)}" if rows else text


def _spelt(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`" + (" (optional)" if action.nargs == "?" else "")
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return f"`{', '.join(action.option_strings)}{value}`"


def _meaning(action: argparse.Action) -> str:
    choices = f"one of {', '.join(map(str, action.choices))}" if action.choices else ""
    default = f"default: {action.default}" if _told(action) else ""
    return "; ".join(part for part in (action.help, choices, default) if part)


def _told(action: argparse.Action) -> bool:
    """Whether the default is worth a word, and not in the help already, nor this machine's."""
    said = "default" in (action.help or "")
    return not said and action.dest != "repository" and action.default not in (None, "", False)


def gates() -> str:
    """The figures that a gate may ask for."""
    tables = {
        "Figures of methods": gate.METHOD_FIGURES,
        "Figures of methods in single cases": {
            f"{name}.CASE": meaning for name, meaning in gate.CASE_FIGURES.items()
        },
        "Figures of protocols": gate.PROTOCOL_FIGURES,
    }
    return "\n\n".join(
        f"## {title}\n\n"
        + rows_to_table(["figure", "meaning"], ([f"`{n}`", text] for n, text in figures.items()))
        for title, figures in tables.items()
    )


def schema() -> str:
    """The parts of `report.json`, as its schema states them; the whole report first."""
    document = json.loads(SCHEMA.read_text(encoding="utf-8"))
    parts: dict[str, Mapping[str, Any]] = document["$defs"]
    root = document["$ref"].rpartition("/")[2]
    names = [root, *sorted(name for name in parts if name != root)]
    return "\n\n".join(_part(name, parts[name]) for name in names)


def _part(name: str, part: Mapping[str, Any]) -> str:
    required = part.get("required", ())
    rows = [
        [f"`{field}`" + ("" if field in required else " (optional)"), _kind(kind)]
        for field, kind in part.get("properties", {}).items()
    ]
    return f"### {name}\n\n{part.get('description', '')}\n\n" + rows_to_table(["field", "is"], rows)


def _kind(kind: Mapping[str, Any]) -> str:
    if "$ref" in kind:
        return str(kind["$ref"].rpartition("/")[2])
    if "anyOf" in kind:
        return " or ".join(map(_kind, kind["anyOf"]))
    if "enum" in kind:
        return ", ".join(f"`{value}`" for value in kind["enum"])
    if kind.get("type") == "array":
        return f"list of {_kind(kind.get('items', {})) or 'anything'}"
    if kind.get("type") == "object":
        inner = kind.get("additionalProperties")
        return f"{_kind(inner)} by name" if isinstance(inner, dict) and inner else "object"
    of = kind.get("type", "anything")
    return " or ".join(of) if isinstance(of, list) else str(of)


TABLES: dict[str, Callable[[], str]] = {
    "methods": methods,
    **{
        kind: functools.partial(listed, kind)
        for kind in ("models", "protocols", "removals", "checks")
    },
    "options": options,
    "commands": commands,
    "gates": gates,
    "schema": schema,
}


def generated(text: str) -> str:
    """A page with its tables made anew."""
    return PART.sub(lambda part: f"{part[1]}\n{TABLES[part[2]]()}\n\n{part[3]}", text)


def stale(docs: Path = DOCS) -> dict[Path, str]:
    """The pages whose tables are not those of the code, with what they should hold."""
    pages = {page: page.read_text(encoding="utf-8") for page in sorted(docs.rglob("*.md"))}
    return {page: new for page, text in pages.items() if (new := generated(text)) != text}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages that are stale, or only name them."""
    parser = argparse.ArgumentParser(description="make the tables of the docs from the code")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if any is stale")
    check = parser.parse_args(arguments).check
    pages = stale()
    for page, text in pages.items():
        print(f"{page.relative_to(DOCS.parent)} {'is stale' if check else 'was written'}")
        if not check:
            page.write_text(text, encoding="utf-8")
    return int(check and bool(pages))


if __name__ == "__main__":
    sys.exit(main())
