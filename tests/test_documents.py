"""What the documents say of the code is so."""

import re
import tomllib

import fields
import generate
import outside
import pytest

from tests.test_house import ROOT, none_of

README_LINES = 150


def mentioned(text: str) -> list[str]:
    """The paths in the code spans of a Markdown text."""
    spans = re.findall(r"`([^`\s]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [span for span in spans if re.fullmatch(r"[\w./-]+(/|\.(py|toml|json|md))", span)]


def test_the_paths_of_the_architecture_exist():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    paths = mentioned(text)
    lost = [
        f"docs/architecture.md mentions {path}, which does not exist: mend the text"
        for path in dict.fromkeys(paths)
        if not (ROOT / path).exists() and not (ROOT / "src/attrcheck" / path).exists()
    ]
    assert len(paths) > 20
    none_of(lost)


def test_the_architecture_draws_every_room():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    drawing = text.split("```")[1]
    top = (ROOT / "src/attrcheck").glob("*.py")
    folders = (path.parent for path in (ROOT / "src/attrcheck").glob("*/__init__.py"))
    rooms = {path.stem for path in (*top, *folders)} - {"__init__"}
    missing = sorted(room for room in rooms if not re.search(rf"\b{room}\b", drawing))
    assert not missing, f"docs/architecture.md does not draw {missing}"


def test_the_citation_is_of_this_version():
    (version,) = re.findall(
        r'^__version__ = "(.+)"$', (ROOT / "src/attrcheck/__init__.py").read_text(), re.MULTILINE
    )
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation, f"CITATION.cff: write version: {version}"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (released,) = re.findall(r'^date-released: "(.+)"$', citation, re.MULTILINE)
    heading = f"## [{version}] - {released}"
    assert f"\n{heading}\n" in changes, f"CHANGELOG.md has no section {heading}"


def test_the_readme_fits_on_a_screen_or_two():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LINES, "move details to docs/"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_what_pages_outside_of_the_site_link_to_exists(page):
    """Links within docs/ are checked by `mkdocs build --strict`."""
    links = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    none_of(
        [
            f"{page} links to {link}, which does not exist"
            for link in links
            if not link.startswith("http") and not (ROOT / link).exists()
        ]
    )


def test_pages_that_code_names_exist():
    files = [
        path
        for folder in ("src", "tests", "benchmarks", "suites", ".github")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".toml", ".json", ".html", ".js", ".yml"}
    ]
    none_of(
        [
            f"{path.relative_to(ROOT)} names {page}, which does not exist"
            for path in files
            for page in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8"))
            if not (ROOT / page).exists()
        ]
    )


def test_tables_that_are_made_from_the_code_are_those_of_the_code():
    stale = [str(page.relative_to(ROOT)) for page in generate.stale()]
    assert not stale, f"{', '.join(stale)}: stale; run `python docs/generate.py`"


def test_every_table_has_a_place_in_the_docs():
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")]
    places = sorted(part[2] for page in pages for part in generate.PART.finditer(page))
    assert places == sorted(generate.TABLES)


def test_a_table_that_was_edited_is_stale_and_is_made_anew(tmp_path):
    page = tmp_path / "gates.md"
    page.write_text("# Gates\n\n<!-- generated: gates -->\n| wrong |\n<!-- end -->\n\nMore.\n")
    [(found, text)] = generate.stale(tmp_path).items()
    assert found == page
    assert "wrong" not in text
    assert "| `beats_random` | number of cases in which" in text
    assert text.startswith("# Gates\n\n<!-- generated")
    assert text.endswith("<!-- end -->\n\nMore.\n")
    page.write_text(text)
    assert not generate.stale(tmp_path)


def test_a_table_without_padding_keeps_its_escapes_and_shows_its_code():
    padded = "| name   | what   |\n|--------|--------|\n| a      | \\|x\\| of \\`b\\` |"
    assert generate.compact(padded) == "| name | what |\n|---|---|\n| a | \\|x\\| of `b` |"
    assert generate.cells(r"| a | \|x\| y |") == ["a", r"\|x\| y"]


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example/x.js">',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img alt="" src="https://badge.example/x.svg">',
        '<iframe src=" http://video.example"></iframe>',
    ],
)
def test_a_page_that_asks_another_host_is_noticed(tag):
    assert len(outside.outside(f"<html><body>{tag}</body></html>")) == 1


@pytest.mark.parametrize(
    "tag",
    [
        '<a href="https://elsewhere.example">a link to follow</a>',
        '<link rel="canonical" href="https://docs.example/page.html">',
        '<script src="../assets/x.js"></script>',
        '<img src="images/report.png">',
    ],
)
def test_what_a_page_has_itself_is_no_request(tag):
    assert outside.outside(f"<html><body>{tag}</body></html>") == []


def test_fields_of_a_docstring_begin_a_line_each():
    html = "<p>name: of it. low, high: its <code>ends</code>. None: no field.</p><p>See: this.</p>"
    assert fields.split_fields(html) == (
        "<p><strong>name</strong>: of it. <br><strong>low, high</strong>: its <code>ends</code>. "
        "None: no field.</p><p>See: this.</p>"
    )


def test_the_lowest_versions_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = dict(re.findall(r"^([\w-]+)==(.+)$", _text("constraints-lowest.txt"), re.MULTILINE))
    tried = dict(re.findall(r"^([\w-]+)==(.+)$", _text("constraints.txt"), re.MULTILINE))
    bounds = dict(dependency.split(">=") for dependency in project["dependencies"])
    assert pinned.keys() == bounds.keys()
    for name, bound in bounds.items():
        if name in tried:
            assert pinned[name] == tried[name], f"{name}: one version of it can be had"
        else:
            lowest = f"{bound}.0.0".split(".")[: pinned[name].count(".") + 1]
            assert pinned[name].split(".") == lowest, f"{name}: constraints-lowest.txt has another"


def _text(name):
    return (ROOT / name).read_text(encoding="utf-8")
