"""Source files as syntax trees: what each name of a file is defined as, and what it uses.

Comments, docstrings, formatting and annotations do not count, nor do imports for type checkers.
Module-level statements that only change something (`TABLE.update(...)`) count with the names that
they mention; those that mention none of the file's names count with everything in it.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from attrcheck.store.places import place

OURS = "attrcheck"
REGISTRIES = ("method", "dataset", "model", "protocol", "check", "removal")
"""Decorators that only register: what they say of a thing does not change what it computes."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Use:
    """A name that code uses, and the attributes that are read from it: `a.b.c` is a, (b, c)."""

    name: str
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imported:
    """What an import binds: a module, or an attribute of it."""

    module: str
    attribute: str = ""


@dataclass(frozen=True, eq=False)
class Source:
    """A file of a project, taken apart into definitions and imports by name."""

    path: str
    package: str
    module: str
    tree: ast.Module
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Imported] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    loose: list[ast.stmt] = field(default_factory=list)


def uses(node: ast.AST, local: frozenset[str] = frozenset()) -> Iterator[Use]:
    """The names that a definition reads from around it, with the attributes read from each."""
    if isinstance(node, FUNCTIONS):
        inside = (local | _bound_in(node)) - _globals_of(node)
        body = node.body if isinstance(node.body, list) else [node.body]
        outside = [part for part in ast.iter_child_nodes(node) if part not in body]
        for part in outside:
            yield from uses(part, local)
        for part in body:
            yield from uses(part, inside)
        return
    if isinstance(node, ast.Call) and (use := _asked(node)) and use.name not in local:
        yield use
    if isinstance(node, ast.Attribute):
        chain = [node.attr]
        while isinstance(node.value, ast.Attribute):
            node = node.value
            chain.append(node.attr)
        if isinstance(node.value, ast.Name) and node.value.id not in local:
            yield Use(node.value.id, tuple(reversed(chain)))
        yield from uses(node.value, local | {getattr(node.value, "id", "")})
        return
    if isinstance(node, ast.Name) and node.id not in local:
        yield Use(node.id)
    for child in ast.iter_child_nodes(node):
        yield from uses(child, local)


def _asked(call: ast.Call) -> Use | None:
    """`registry.get("name")`, as if the name were an attribute."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "get" and call.args):
        return None
    name = call.args[0]
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    for use in uses(function):
        return Use(use.name, (*use.attributes, name.value))
    return None


def _bound_in(function: ast.AST) -> frozenset[str]:
    """Arguments and variables of a function, those of functions inside it aside."""
    names = set()
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return frozenset(names)


def _globals_of(function: ast.AST) -> set[str]:
    return {n for node in ast.walk(function) if isinstance(node, ast.Global) for n in node.names}


def local_imports(node: ast.AST, package: str) -> dict[str, Imported]:
    """What imports inside a definition bind."""
    bound: dict[str, Imported] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Import | ast.ImportFrom):
            bound |= bindings(part, package)
    return bound


def imported_by_name(node: ast.AST) -> Iterator[str]:
    """The modules that `import_module("name")` imports inside a definition."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
            function = call.func
            name = getattr(function, "attr", getattr(function, "id", ""))
            if name == "import_module":
                yield str(call.args[0].value)


def bindings(node: ast.Import | ast.ImportFrom, package: str) -> dict[str, Imported]:
    """The names that an import binds; a star binds none."""
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: Imported(
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            for alias in node.names
        }
    module = _absolute(node, package)
    return {
        alias.asname or alias.name: Imported(module, alias.name)
        for alias in node.names
        if alias.name != "*"
    }


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    with suppress(ImportError, ValueError):
        return importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    return ""


def source_of(module: str) -> Source | None:
    """The source of a module of a project; None where it has no file that can be read."""
    package, file = place(module)
    return read_source(file, package, module) if file.endswith(".py") else None


def read_source(file: str, package: str, module: str = "") -> Source | None:
    """A file taken apart; parsed once for as long as it does not change."""
    try:
        stat = Path(file).stat()
        return _parse(file, package, module, stat.st_mtime_ns, stat.st_size)
    except (OSError, SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=1024)
def _parse(file: str, package: str, module: str, time: int, size: int) -> Source:
    tree = ast.parse(Path(file).read_bytes())
    Cleaner().visit(tree)
    source = Source(str(Path(file).resolve()), package, module, tree)
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            source.imports.update(bindings(statement, package))
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                source.stars.append(_absolute(statement, package))
            continue
        for name in bound_by(statement):
            source.definitions.setdefault(name, []).append(statement)
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # Imports that depend on something, as in `try: import a; except ImportError: ...`.
            source.imports.update(local_imports(statement, package))
    known = set(source.definitions)
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom) or bound_by(statement):
            continue
        mentioned = known & {use.name for use in uses(statement)}
        for name in mentioned:
            source.definitions[name].append(statement)
        if not mentioned:
            source.loose.append(statement)
    return source


def bound_by(statement: ast.stmt) -> set[str]:
    """The names that a module-level statement binds, blocks looked into."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
    return names


class Cleaner(ast.NodeTransformer):
    """Takes out what does nothing at run time: docstrings, annotations, checks for types."""

    def visit(self, node: ast.AST) -> ast.AST:
        """Clean a node and all below it."""
        node = super().generic_visit(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            node.type_comment = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # Where the code says that it begins; not part of the tree's dump.
            lines = [node.lineno, *(part.lineno for part in node.decorator_list)]
            node.first_line = min(lines)  # type: ignore[union-attr]
            node.decorator_list = [part for part in node.decorator_list if not _registers(part)]
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            # A field of a dataclass keeps its annotation as text: no name in it is followed.
            node.annotation = ast.Constant(ast.unparse(node.annotation))
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                kept = [part for part in block if not _idle(part)]
                setattr(node, name, kept or ([ast.Pass()] if block and name == "body" else []))
        return node


def _idle(statement: ast.AST) -> bool:
    """Whether it is a string that stands alone, or a block for type checkers."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return isinstance(statement.value.value, str)
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    test = statement.test
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _registers(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(function, ast.Attribute):
        return (
            isinstance(function.value, ast.Name)
            and function.value.id == OURS
            and function.attr in REGISTRIES
        )
    return isinstance(decorator, ast.Call) and getattr(function, "id", "") in REGISTRIES
