"""Foreign text in every format: shown as it is, and never taken for a sign of the format."""

import json
import re
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from attrcheck.errors import MOST_TEXT, cut
from attrcheck.report.text import (
    for_json,
    for_markdown_cell,
    for_markdown_code,
    for_markdown_text,
    for_terminal,
    plain_table,
    table,
)

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x9b2J",
    "nul\0nul",
    "one\ntwo\r\nthree\rfour\x0bfive\x0csix\x85seven\u2028eight\u2029nine",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "a | b || c \\| d \\",
    "`code` ``more``",
    "[text](http://evil.example) ![image](http://evil.example/x.png)",
    "[text][reference] [reference]: http://evil.example",
    "![a][b] [^1] [^1]: note",
    "<http://evil.example> http://evil.example www.evil.example",
    "&lt;b&gt; &amp; &#60; &#x3c;",
    "*one* **two** _three_ __four__ ~~five~~ $six$",
    "# heading",
    "- item",
    "1. item",
    "> quote",
    "---",
    "[ ] task",
    "lone \ud800 and \udfff, and \ud83d\ude00",
    "\u202eesrever\u202c \u2066isolate\u2069 \u200b\ufeff\u061c",
    "\N{COMBINING ACUTE ACCENT}" * 9,
    "",
    "   ",
]
PIECES = st.sampled_from([*HOSTILE, *"|\\`*_[]()!<>&#:/~$-+=.@\n\r\t\0 \x1b\ud800\u202e"])
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(PIECES, max_size=8).map("".join),
    st.text(st.characters(exclude_categories=()), max_size=40),
)


@pytest.fixture(scope="module")
def html():
    """GitHub's Markdown, by an implementation that is not ours."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render


def shown(text):
    """What a reader sees of foreign text on one line."""
    return for_terminal(" ".join(text.split()))


def words(page):
    """The text of an HTML page, and its tags."""
    tags = re.findall(r"<(/?\w+)", page)
    bare = re.sub(r"<[^>]*>", "", page)
    for entity, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        bare = bare.replace(entity, letter)
    return bare, {tag.strip("/") for tag in tags}


@given(TEXTS)
def test_the_terminal_gets_no_control_characters_but_newlines(text):
    found = for_terminal(text)
    assert not {unicodedata.category(letter) for letter in found.replace("\n", "")} & {
        *("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    }
    assert found.count("\n") == text.count("\n")
    found.encode()


@given(TEXTS)
def test_text_for_the_terminal_is_escaped_once(text):
    assert for_terminal(for_terminal(text)) == for_terminal(text)


@pytest.mark.parametrize("text", ["plain", "Grüße, 世界", "two\nlines", "C:\\new", "a | b <c> `d`"])
def test_text_that_can_be_printed_reaches_the_terminal_as_it_is(text):
    assert for_terminal(text) == text


def test_what_cannot_be_printed_is_spelt_out():
    assert for_terminal("\x1b[2J\t\0\u202e\ud800") == r"\x1b[2J \x00\u202e\ud800"


@given(TEXTS, TEXTS)
def test_a_table_keeps_its_columns_and_rows(one, other):
    lines = table([[one, "x"], ["y", other]], [other, "h"]).split("\n")
    assert len(lines) == 4
    for line in lines:
        # Bars that are not escaped: an even number of backslashes before them.
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3
        assert "<" not in line


@given(TEXTS)
@example("x" * 5_000_000)
def test_a_cell_shows_the_text_and_nothing_else(html, text):
    page = html(table([[text, "x"]], ["one", "two"]))
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)
    assert len(cells) == 2
    bare, tags = words(cells[0])
    expected = shown(text)
    assert tags == set()
    assert bare == (expected if len(expected) <= 1000 else expected[:997].rstrip() + "...")
    assert words(cells[1]) == ("x", set())


@given(TEXTS)
def test_a_line_shows_the_text_and_nothing_else(html, text):
    page = html(f"- {for_markdown_text(text)}: it broke\n- next\n\n[reference]")
    bare, tags = words(page)
    assert tags == {"ul", "li", "p"}
    assert " ".join(bare.split()) == " ".join(f"{shown(text)}: it broke next [reference]".split())


@given(TEXTS)
def test_code_shows_the_text_and_nothing_else(html, text):
    bare, tags = words(html(f"a {for_markdown_code(text)} b"))
    assert tags == ({"p", "code"})
    assert " ".join(bare.split()) == " ".join(f"a {shown(text)} b".split())


@pytest.mark.parametrize("address", ["http://evil.example", "HTTPS://evil.example", "www.evil.com"])
def test_an_address_is_not_a_link(address):
    """GitHub makes links of them without being asked."""
    assert not re.search(r"://|www\.", for_markdown_cell(f"see {address}"), re.IGNORECASE)


@pytest.mark.parametrize("text", ["guided_backprop", "captum:Lime", "[-0.50, +2.25]", "0.5 (1)"])
def test_what_means_nothing_to_markdown_is_left_alone(text):
    assert for_markdown_cell(text) == text


@given(st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_json_is_printable_ascii_and_says_the_same(value):
    def readable(item):
        if isinstance(item, dict):
            return {readable(key): readable(part) for key, part in item.items()}
        if isinstance(item, list):
            return [readable(part) for part in item]
        return re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", item)

    text = for_json(json.dumps(value, indent=1, ensure_ascii=False))
    assert set(text) <= {"\n", *map(chr, range(32, 127))}
    assert json.loads(text) == readable(value)
    json.dumps(json.loads(text), ensure_ascii=False).encode()  # no lone surrogate is left


@given(TEXTS)
def test_a_table_on_the_terminal_keeps_its_lines(text):
    found = plain_table([[text, "x"]], ["one", text], ["left", "right"])
    assert len(found.splitlines()) == 3
    assert found.replace("\n", "").isprintable()


@given(st.text(max_size=100), st.integers(40, 60))
def test_a_cut_says_how_much_is_gone(text, most):
    found = cut(text, most)
    assert len(found) <= most
    assert cut(found, most) == found
    if found != text:
        kept, _, rest = found.rpartition("... (")
        assert text.startswith(kept)
        assert rest == f"{len(text) - len(kept)} more characters)"


def test_megabytes_are_cut_and_take_no_time():
    start = time.perf_counter()
    found = cut("\0" * 5_000_000)
    assert len(found) == MOST_TEXT
    assert found.endswith("more characters)")
    for escape in (for_terminal, for_markdown_cell, for_markdown_text, for_markdown_code):
        assert len(escape(found)) < 5 * MOST_TEXT
    assert time.perf_counter() - start < 1
