"""What code is made of: all that a definition reaches at run time, one definition at a time.

A definition counts with what it uses: functions, classes and constants of its own file and of the
project files that it imports from. What stands beside it in a file does not count. Installed
libraries count by version, compiled modules of the project by their bytes.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from attrcheck.store.places import is_installed, place, version
from attrcheck.store.sources import (
    OURS,
    REGISTRIES,
    Imported,
    Source,
    Use,
    imported_by_name,
    local_imports,
    source_of,
    uses,
)

COMPILED = (".so", ".pyd")
ERRORS = f"{OURS}.errors"


@dataclass
class Closure:
    """All that a definition reaches.

    trees: by file. libraries: that they import. binaries: compiled modules of the project.
    variables: module-level names that are assigned, as (module, name). registered: things of
    attrcheck that are asked for by name, as (kind, name).
    """

    follow: frozenset[str]
    trees: dict[str, set[str]] = field(default_factory=dict)
    libraries: set[str] = field(default_factory=set)
    binaries: set[str] = field(default_factory=set)
    variables: set[tuple[str, str]] = field(default_factory=set)
    registered: set[tuple[str, str]] = field(default_factory=set)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    @property
    def files(self) -> list[str]:
        """The files that have a part in it."""
        return sorted(self.trees)

    def parts(self) -> list[str]:
        """What the hash is made of: trees, whatever the folder, and versions of libraries."""
        trees = sorted(tree for trees in self.trees.values() for tree in trees)
        binaries = sorted(
            hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in self.binaries
        )
        return [*trees, *binaries, *sorted(map(version, self.libraries))]

    def add(self, source: Source, node: ast.AST) -> None:
        """A definition, and what it uses."""
        trees = self.trees.setdefault(source.path, set())
        trees.update(ast.dump(loose) for loose in source.loose)
        tree = ast.dump(node)
        if tree in trees:
            return
        trees.add(tree)
        bound = local_imports(node, source.package)
        for module in imported_by_name(node):
            self._import(Imported(module), ())
        for use in uses(node):
            if use.name in bound:
                self._import(bound[use.name], use.attributes)
            else:
                self._name(source, use)

    def _name(self, source: Source, use: Use) -> None:
        if use.name in source.definitions:
            if (source.path, use.name) not in self._seen:
                self._seen.add((source.path, use.name))
                for statement in source.definitions[use.name]:
                    self.add(source, statement)
                    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
                        self.variables.add((source.module, use.name))
        elif use.name in source.imports:
            self._import(source.imports[use.name], use.attributes)
        else:
            for module in source.stars:
                self._import(Imported(module, use.name), use.attributes)

    def _import(self, what: Imported, attributes: tuple[str, ...]) -> None:
        """What an import brings; a module counts with the attributes that are read from it."""
        if what.module == ERRORS:  # what an error is called changes no result
            return
        if what.module.partition(".")[0] == OURS and what.attribute in REGISTRIES:
            name = attributes[1] if attributes[:1] == ("get",) and attributes[1:] else ""
            self.registered.add((what.attribute, name or "".join(attributes[:1])))
            return
        inner = f"{what.module}.{what.attribute}"
        if what.attribute and not self._foreign(what.module) and place(inner)[1]:
            what = Imported(inner)
        if self._foreign(what.module):
            self.libraries.add(what.module.partition(".")[0])
            return
        if (file := place(what.module)[1]).endswith(COMPILED):
            self.binaries.add(file)
            return
        source = source_of(what.module)
        if source is None:
            return
        if not what.attribute:
            if attributes:
                self._import(Imported(what.module, attributes[0]), attributes[1:])
            else:  # passed on as a whole
                for statement in source.tree.body:
                    self.add(source, statement)
        elif {what.attribute} & {*source.definitions, *source.imports}:
            self._name(source, Use(what.attribute, attributes))
        elif source.stars:
            for module in source.stars:
                self._import(Imported(module, what.attribute), attributes)

    def _foreign(self, module: str) -> bool:
        library = module.partition(".")[0]
        return library not in self.follow and is_installed(place(library)[1])
