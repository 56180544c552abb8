"""What the documents say of the code is so."""

import re
import tomllib

from tests.test_house import ROOT, none_of


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
