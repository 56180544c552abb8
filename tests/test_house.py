"""The shape of the house: which room may import which, and what else the layout promises.

`ATTRCHECK_ROOT=/other/checkout pytest tests/test_house.py` examines another working tree.
"""

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("ATTRCHECK_ROOT") or Path(__file__).parent.parent)

FLOORS = (
    ("errors", "contracts", "specs", "pace", "ranks", "tallies", "metarank", "separation", "table"),
    ("registry", "consistency", "gate", "deciding"),
    ("store", "tensors"),
    ("graph", "isolation"),
    ("datasets", "removal"),
    ("methods",),
    ("training",),
    ("models",),
    ("protocols",),
    ("adapters",),
    ("checks", "laws", "papers"),
    ("engine",),
    ("executors",),
    ("report",),
    ("notebook",),
    ("attrcheck",),  # the public face, attrcheck/__init__.py
    ("plugin", "testing"),
    ("cli",),
)
"""Bottom to top: a room imports from floors below it; a single module, also what stands before it
on its own floor."""

LAZY = {
    ("plugin/*", "attrcheck"): "every pytest run loads the plugin; an idle one pays for nothing",
    ("cli/*", "attrcheck"): "`attrcheck list` answers without torch",
    ("contracts.py", "numpy"): "the plugin knows the nouns without numpy",
    ("errors.py", "difflib"): "only needed when something went wrong",
    ("registry.py", "importlib.metadata"): "slow, and an idle plugin asks for no name",
    ("adapters/*", "pytorch_grad_cam"): "an optional library",
    ("adapters/*", "quantus"): "an optional library",
    ("adapters/*", "datasets"): "an optional library",
    ("adapters/*", "huggingface_hub"): "an optional library",
    ("report/exports.py", "pyarrow"): "an optional library",
    ("adapters/vision.py", "torchvision"): "tried again if its first import fails",
}
"""Imports inside functions that are allowed: (files, module with all in it), and why."""

LONG = {"contracts.py": "the nouns are read together"}
"""Files that may exceed LINES, and why."""
LINES = 350
MODULES = 15


@dataclass(frozen=True)
class Import:
    """One imported module, or name of a module, as it stands in a file."""

    file: str
    line: int
    source: str
    target: str
    name: str
    lazy: bool
    typing: bool

    @property
    def at(self) -> str:
        return f"src/attrcheck/{self.file}:{self.line}"


def room(module: str) -> str:
    """attrcheck.engine.keys -> engine; the package itself is its own room."""
    return module.split(".")[1] if "." in module else module


def modules(root: Path) -> dict[str, Path]:
    """All modules of the package by dotted name."""
    source = root / "src"
    paths = sorted((source / "attrcheck").rglob("*.py"))
    return {".".join(p.relative_to(source).with_suffix("").parts): p for p in paths}


def imports(root: Path) -> Iterator[Import]:
    """Every import of every module: at the top, in functions, and for type checkers only."""
    files = modules(root)
    known = {name.removesuffix(".__init__") for name in files}
    for dotted, path in files.items():
        module = dotted.removesuffix(".__init__")
        package = module if path.stem == "__init__" else module.rpartition(".")[0]
        file = path.relative_to(root / "src/attrcheck").as_posix()
        for node, lazy, typing in statements(path.read_text(encoding="utf-8")):
            for target, name in _targets(node, package):
                whole = f"{target}.{name}"
                if whole in known:  # `from attrcheck import gate` imports a module, not a name
                    target, name = whole, ""
                yield Import(file, node.lineno, module, target, name, lazy, typing)


Statement = ast.Import | ast.ImportFrom | ast.Call


@cache
def statements(text: str) -> list[tuple[Statement, bool, bool]]:
    """What a file imports, parsed once for all rules."""
    return list(_imports(ast.parse(text)))


def _imports(
    tree: ast.AST, lazy: bool = False, typing: bool = False
) -> Iterator[tuple[Statement, bool, bool]]:
    """All statements that import, whether in a function, and whether for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or _by_call(node):
            yield node, lazy, typing
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(node, True, typing)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node, lazy, True)
        else:
            yield from _imports(node, lazy, typing)


def _by_call(node: ast.AST) -> bool:
    """Whether this is import_module("some.name")."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] == "import_module"
        and isinstance(node.args[0], ast.Constant)
    )


def _targets(node: Statement, package: str) -> Iterator[tuple[str, str]]:
    """The modules, and the names in them, that a statement imports."""
    if isinstance(node, ast.Call):
        yield ast.literal_eval(node.args[0]), ""
        return
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
        return
    above = package.split(".")
    base = ".".join(above[: len(above) - node.level + 1]) if node.level else ""
    target = ".".join(part for part in (base, node.module) if part)
    yield from ((target, alias.name) for alias in node.names)


def ours(root: Path) -> list[Import]:
    return [imported for imported in imports(root) if imported.target.split(".")[0] == "attrcheck"]


def upward(root: Path) -> list[str]:
    """Imports between rooms that do not point down."""
    floors = {name: floor for floor, names in enumerate(FLOORS) for name in names}
    order = list(floors)
    folders = {path.parent.name for path in (root / "src/attrcheck").glob("*/*.py")}
    lines = {}  # without duplicates, in order
    for imported in ours(root):
        above, below = room(imported.source), room(imported.target)
        if above == below:
            continue
        if missing := {above, below} - floors.keys():
            lines[f"{imported.at}: {missing.pop()} has no floor: give it one in FLOORS"] = None
            continue
        below_it = floors[below] < floors[above]
        before_it = floors[below] == floors[above] and order.index(below) < order.index(above)
        if not below_it and not (before_it and above not in folders):
            line = (
                f"{imported.at}: {above} imports {imported.target}, but {below} is not below it: "
                "move what both need down (a noun belongs in contracts.py)"
            )
            lines[line] = None
    return list(lines)


def private(root: Path) -> list[str]:
    """Imports of private modules or names of another room."""
    lines = (
        f"{imported.at}: imports {part} of {imported.target}, which is private to "
        f"{room(imported.target)}: give it a public name, or move it"
        for imported in ours(root)
        if room(imported.source) != room(imported.target)
        for part in (*imported.target.split(".")[1:], imported.name)
        if part.startswith("_") and not part.startswith("__")
    )
    return list(dict.fromkeys(lines))


def cycle(root: Path) -> list[str]:
    """A cycle of imports between modules, those for type checkers aside."""
    graph: dict[str, set[str]] = {}
    for imported in ours(root):
        # Importing the package itself runs no module of it: its public face is lazy.
        if not imported.typing and imported.target not in (imported.source, "attrcheck"):
            graph.setdefault(imported.source, set()).add(imported.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [f"{' <- '.join(error.args[1])}: move what both need into a module below them"]
    return []


def lazy(root: Path) -> list[str]:
    """Imports inside functions that no exception allows."""
    lines = (
        f"{imported.at}: imports {imported.target} inside a function: import it at the top, or "
        "state the reason in LAZY"
        for imported in imports(root)
        if imported.lazy and not any(_allows(entry, imported) for entry in LAZY)
    )
    return list(dict.fromkeys(lines))


def _allows(entry: tuple[str, str], imported: Import) -> bool:
    files, module = entry
    return fnmatchcase(imported.file, files) and f"{imported.target}.".startswith(f"{module}.")


def above_limit(root: Path) -> dict[str, int]:
    """Files of more than LINES lines."""
    folder = root / "src/attrcheck"
    sizes = {
        path.relative_to(folder).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(folder.rglob("*.py"))
    }
    return {file: size for file, size in sizes.items() if size > LINES}


def too_long(root: Path) -> list[str]:
    """Files that should be split."""
    return [
        f"src/attrcheck/{file}: {size} lines, at most {LINES}: split it by family"
        for file, size in above_limit(root).items()
        if file not in LONG
    ]


def worded(root: Path, word: str) -> list[str]:
    """Where a word stands that the house does not use."""
    texts = [
        path
        for start in ("README.md", "src/attrcheck", "suites", "docs")
        for path in sorted([root / start, *(root / start).rglob("*")])
        if path.suffix in {".py", ".md", ".toml", ".json", ".html", ".css"} and path.is_file()
    ]
    return [
        f"{path.relative_to(root)}:{number}: {line.strip()!r}: a protocol scores, a check passes "
        "or fails, a gate holds or breaks"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(word, line, re.IGNORECASE)
    ]


def reaching(root: Path) -> list[str]:
    """Uses of a registry's private entries outside its class."""
    paths = [*(root / "src").rglob("*.py"), *(root / "tests").rglob("*.py")]
    return [
        f"{path.relative_to(root)}:{node.lineno}: reads ._entries: use registry.scratch()"
        for path in sorted(paths)
        if path.name != "registry.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "_entries"
    ]


def none_of(lines: list[str]) -> None:
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def test_a_room_imports_only_rooms_below_it():
    none_of(upward(ROOT))


def test_no_room_imports_what_is_private_to_another():
    none_of(private(ROOT))


def test_no_modules_import_each_other():
    none_of(cycle(ROOT))


def test_contracts_import_nothing_of_ours():
    none_of(
        [
            f"{imported.at}: {imported.target}"
            for imported in ours(ROOT)
            if imported.file == "contracts.py"
        ]
    )


def test_imports_stand_at_the_top():
    none_of(lazy(ROOT))


def test_no_exception_for_imports_is_stale():
    inside = [imported for imported in imports(ROOT) if imported.lazy]
    stale = [entry for entry in LAZY if not any(_allows(entry, imported) for imported in inside)]
    assert not stale, f"nothing needs these entries of LAZY, so remove them: {stale}"


def test_the_top_level_is_small():
    files = sorted(path.name for path in (ROOT / "src/attrcheck").glob("*.py"))
    assert len(files) <= MODULES, f"{len(files)} modules, at most {MODULES}: {files}"


def test_all_packages_are_shipped():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {path.parent for path in (ROOT / "src/attrcheck").rglob("*.py")}
    there = {".".join(folder.relative_to(ROOT / "src").parts) for folder in folders}
    listed = settings["tool"]["setuptools"]["packages"]
    assert listed == sorted(there | {"attrcheck.suites"}), "mend the packages in pyproject.toml"


def test_no_file_is_too_long():
    none_of(too_long(ROOT))


def test_no_exception_for_long_files_is_stale():
    stale = LONG.keys() - above_limit(ROOT)
    assert not stale, f"these are short by now, so remove them from LONG: {stale}"


def test_one_word_is_not_used():
    none_of(worded(ROOT, "judg"))


def test_nothing_reaches_into_a_registry():
    none_of(reaching(ROOT))
