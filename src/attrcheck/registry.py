"""Names and the things that they name: one registry class for every kind.

A name is known without importing what it names: a built-in by its decorator, which is read as text
(`@method("saliency")` in a file of `methods/`), an installed one by its entry point, a user's own
when its decorator runs. So the plugin can list and check names in a process that never imports
torch.

A name with a prefix, `captum:Lime`, is not listed: the module of the prefix makes it on demand, and
until then only the prefix is checked.
"""

from __future__ import annotations

import fnmatch
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from attrcheck.errors import AttrcheckError, suggest

NAME = re.compile(r"[a-z][a-z0-9_.]*")
PREFIXED = re.compile(rf"(?P<prefix>{NAME.pattern}):(?P<name>[A-Za-z_][A-Za-z0-9_]*)")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

LONGEST = 100
"""Characters of a name: it is part of ids, of file names and of tables."""


class RegistryError(AttrcheckError):
    """A name that is malformed, taken or unknown; the message says which and what to do."""


class Registry(Generic[T]):
    """All things of one kind by name; calling it with a name decorates a new one.

    `wrap(name, function, **settings)` makes the registered thing from the decorated function.
    `prefixes` maps a prefix to what makes the things asked for by it: the `module:function` that is
    called with the rest of the name, or a module, whose function is `resolve`.
    """

    def __init__(
        self,
        kind: str,
        wrap: Callable[..., T],
        package: str,
        prefixes: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.package = package
        self.prefixes = dict(prefixes or {})
        self._wrap = wrap
        self._entries: dict[str, T] = {}

    def __call__(self, name: str, **settings: Any) -> Callable[[F], F]:
        """Decorate the function that makes or is the thing called `name`."""
        self._check_name(name)

        def register(function: F) -> F:
            home = self._declared.get(name)
            # While its home is imported, whatever registers the name does so on its behalf; a home
            # that is imported again, as when a test has dropped it, registers its names again.
            again = home is not None and home == function.__module__
            if (name in self._entries and not again) or (home and home not in sys.modules):
                raise RegistryError(
                    f"there is already a {self.kind} called {name!r}; "
                    f"choose another name for the one in {function.__module__}"
                )
            self._entries[name] = self._wrap(name, function, **settings)
            return function

        return register

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._entries, *self._declared}))

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._declared or self._prefix(name) is not None

    def __getattr__(self, name: str) -> T:
        """`attrcheck.removal.blur` is the removal of that name."""
        if name.startswith("_") or name not in self:
            raise AttributeError(f"no {self.kind} is called {name!r}", name=name, obj=self)
        return self.get(name)

    def get(self, name: str) -> T:
        """The thing called `name`, imported if need be."""
        if (prefix := self._prefix(name)) is not None:
            module, _, function = self.prefixes[prefix].partition(":")
            resolve = getattr(importlib.import_module(module), function or "resolve")
            return cast(T, resolve(name.partition(":")[2]))
        if name not in self._entries:
            if name not in self._declared:
                raise RegistryError(self._unknown(name))
            importlib.import_module(self._declared[name])
            if name not in self._entries:
                raise RegistryError(
                    f"importing {self._declared[name]} registered no {self.kind} called {name!r}"
                )
        return self._entries[name]

    def is_own(self, name: str) -> bool:
        """Whether a name is a user's own: neither built in nor made by a prefix."""
        home = self._declared.get(name, "")
        return self._prefix(name) is None and not home.startswith(f"{self.package}.")

    def select(self, patterns: str) -> list[str]:
        """Names that match comma-separated globs, `!glob` excluding; every glob must match one."""
        wanted = [part.strip() for part in patterns.split(",") if part.strip()]
        # A name with a prefix is there only if it is asked for literally; no glob matches it.
        literal = dict.fromkeys(part for part in wanted if self._prefix(part) is not None)
        names = [*self, *literal]
        for part in wanted:
            if not fnmatch.filter(names, part.removeprefix("!")):
                raise RegistryError(self._unknown(part.removeprefix("!")))
        chosen = select(names, wanted)
        if not chosen:
            there = ", ".join(self) or "none"
            raise RegistryError(f"{patterns!r} selects no {self.kind}; there are: {there}")
        return chosen

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Forget, after this block, what was registered in it; built-ins stay."""
        before = set(self._entries)
        try:
            yield
        finally:
            for name in set(self._entries) - before - set(self._declared):
                del self._entries[name]

    def _check_name(self, name: object) -> None:
        if not isinstance(name, str):
            raise RegistryError(f'a {self.kind} needs a name: write @{self.kind}("my_name")')
        if len(name) > LONGEST:
            start = f"{name[:20]}..."
            raise RegistryError(
                f"{self.kind} name {start!r} has {len(name)} characters; take at most {LONGEST}"
            )
        if not NAME.fullmatch(name):
            raise RegistryError(
                f"{self.kind} name {name!r} must match {NAME.pattern!r} "
                "(a hyphen joins the parts of a case id)"
            )

    def _prefix(self, name: object) -> str | None:
        """The prefix of a name that has a known one."""
        match = PREFIXED.fullmatch(name) if isinstance(name, str) else None
        return match["prefix"] if match and match["prefix"] in self.prefixes else None

    def _unknown(self, name: str) -> str:
        prefix, colon, _ = name.partition(":")
        if colon and prefix in self.prefixes:
            return f"{name!r}: write one whole name after {prefix}:, globs do not match there"
        if colon:
            known = ", ".join(f"{prefix}:" for prefix in self.prefixes) or "none"
            return f"no {self.kind} is called {name!r}; prefixes are: {known}"
        return f"no {self.kind} is called {name!r}; {suggest(name, self)}"

    @cached_property
    def _declared(self) -> dict[str, str]:
        """Names known before import, and the module that will register each."""
        from importlib.metadata import entry_points  # slow, and not needed by an idle plugin

        declared: dict[str, str] = {}
        decorator = re.compile(rf'^@{self.kind}\(\s*"({NAME.pattern})"', re.MULTILINE)
        for folder in importlib.import_module(self.package).__path__:
            for path in sorted(Path(folder).glob("*.py")):
                for name in decorator.findall(path.read_text(encoding="utf-8")):
                    if name in declared:
                        raise RegistryError(
                            f"{path} registers a {self.kind} called {name!r}, which "
                            f"{declared[name]} does too"
                        )
                    declared[name] = f"{self.package}.{path.stem}"
        for entry in entry_points(group=self.package):
            self._check_name(entry.name)
            if declared.setdefault(entry.name, entry.module) != entry.module:
                raise RegistryError(
                    f"entry point {entry.name!r} of {entry.module}: there is already a "
                    f"{self.kind} of that name in {declared[entry.name]}"
                )
        return declared


def asks(patterns: str) -> bool:
    """Whether comma-separated globs ask for something, and do not only exclude."""
    return any(part.strip() and not part.strip().startswith("!") for part in patterns.split(","))


def select(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that match any plain glob (all, if there is none) and no `!glob`, in order."""
    patterns = list(patterns)
    include = [part for part in patterns if not part.startswith("!")] or ["*"]
    exclude = [part[1:] for part in patterns if part.startswith("!")]
    return [
        name
        for name in names
        if any(fnmatch.fnmatchcase(name, part) for part in include)
        and not any(fnmatch.fnmatchcase(name, part) for part in exclude)
    ]
