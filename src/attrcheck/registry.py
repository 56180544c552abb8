"""Names and the things that they name: one registry class for every kind.

A name is known without importing what it names: a built-in by its decorator, which is read as text
(`@method("saliency")` in a file of `methods/`), an installed one by its entry point, a user's own
when its decorator runs. So the plugin can list and check names in a process that never imports
torch.

A spec, `captum:Lime` or `imagenet=folder:/data/val`, is not listed: the module of its prefix makes
the thing on demand, and until then only the prefix is checked. See `specs` for how it is spelt.
"""

from __future__ import annotations

import fnmatch
import hashlib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from attrcheck.errors import AttrcheckError, cut, suggest, suggest_own
from attrcheck.specs import ALIAS, NAME, Spec, id_of, is_path, parse

LONGEST = 100
"""Characters of a name: it is part of ids, of file names and of tables."""

GLOB = r"[*?]"
"""What makes a glob of the rest of a spec, where there are no globs."""

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class RegistryError(AttrcheckError):
    """A name that is malformed, taken or unknown; the message says which and what to do."""


class Registry(Generic[T]):
    """All things of one kind by name; calling it with a name decorates a new one.

    `wrap(name, function, **settings)` makes the registered thing from the decorated function.
    `prefixes` maps a prefix to what makes the things asked for by it: the `module:function` that is
    called with the rest of the name, or a module, whose function is `resolve`.
    place_counts: whether the file or folder after an `@` is part of the id of a spec.
    """

    def __init__(
        self,
        kind: str,
        wrap: Callable[..., T],
        package: str,
        prefixes: Mapping[str, str] | None = None,
        place_counts: bool = True,
    ) -> None:
        self.kind = kind
        self.package = package
        self.prefixes = dict(prefixes or {})
        self.place_counts = place_counts
        self._wrap = wrap
        self._entries: dict[str, T] = {}
        self._bound: dict[str, Spec] = {}
        self._listed: set[str] = set()

    def __call__(self, name: str, **settings: Any) -> Callable[[F], F]:
        """Decorate the function that makes or is the thing called `name`."""
        self._check_name(name)
        self._check_settings(name, settings)

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
        return iter(sorted({*self._entries, *self._declared, *self._listed}))

    def __contains__(self, name: object) -> bool:
        return self._registered(name) or (isinstance(name, str) and self.spec_of(name) is not None)

    def __getattr__(self, name: str) -> T:
        """`attrcheck.removal.blur` is the removal of that name."""
        if name.startswith("_") or name not in self:
            raise AttributeError(f"no {self.kind} is called {name!r}", name=name, obj=self)
        return self.get(name)

    def get(self, name: str) -> T:
        """The thing called `name`, imported or made if need be."""
        if not self._registered(name) and (spec := self.spec_of(name)) is not None:
            return self._made(name if name in self._bound else self._id(spec), spec)
        if name not in self._entries:
            if name not in self._declared:
                raise RegistryError(self._unknown(name))
            importlib.import_module(self._declared[name])
            if name not in self._entries:
                raise RegistryError(
                    f"importing {self._declared[name]} registered no {self.kind} called {name!r}"
                )
        return self._entries[name]

    def spec_of(self, name: str) -> Spec | None:
        """What a name was bound to, or is itself; None for what is registered, or unknown."""
        if name in self._bound:
            return self._bound[name]
        alias, spec = parse(name)
        if alias or spec is None or spec.prefix not in self.prefixes:
            return None
        return None if re.search(GLOB, spec.rest) else spec

    def bind(self, name: str, text: str, options: Mapping[str, Any] | None = None) -> None:
        """Let a name stand for a spec, and be listed, as a table of a project says."""
        self._check_name(name, ALIAS)
        alias, spec = parse(text)
        if alias or spec is None or spec.prefix not in self.prefixes:
            raise RegistryError(f"{self.kind} {name!r}: {self._no_spec(text)}")
        self._claim(name, replace(spec, options=dict(options or {})))
        self._listed.add(name)

    def is_own(self, name: str) -> bool:
        """Whether a name is a user's own: neither built in nor made by a prefix."""
        return self.spec_of(name) is None and not self.is_built_in(name)

    def is_built_in(self, name: str) -> bool:
        """Whether a name ships with attrcheck."""
        return self._declared.get(name, "").startswith(f"{self.package}.")

    def select(self, patterns: str) -> list[str]:
        """Names that match comma-separated globs, `!glob` excluding; every glob must match one.

        A spec, with an alias or without, binds its name; no glob has to match it.
        """
        wanted = [part.strip() for part in patterns.split(",") if part.strip()]
        asked: dict[str, Spec] = {}
        wanted = [self._asked(part, asked) for part in wanted]
        names = list(dict.fromkeys([*self, *asked]))
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
        before, bound, listed = set(self._entries), dict(self._bound), set(self._listed)
        try:
            yield
        finally:
            self._bound, self._listed = bound, listed
            for name in set(self._entries) - before - set(self._declared):
                del self._entries[name]

    def _registered(self, name: object) -> bool:
        return name in self._entries or name in self._declared

    def _asked(self, part: str, asked: dict[str, Spec]) -> str:
        """What a part of a selection asks for by name: the id of a spec, else the glob as it is."""
        bare = part.removeprefix("!")
        alias, spec = parse(bare)
        if spec is None or spec.prefix not in self.prefixes:
            if alias:
                raise RegistryError(f"{bare!r}: {self._no_spec(bare.partition('=')[2])}")
            return part
        if re.search(GLOB, spec.rest):
            raise RegistryError(self._unknown(str(spec)))
        name = alias or self._id(spec)
        if alias:
            self._check_name(alias, ALIAS)
        if asked.setdefault(name, spec) != spec:
            raise RegistryError(
                f"{asked[name]} and {spec} would both be called {name!r}; give one of them a name "
                f"of its own: NAME={spec}"
            )
        bound = str(self._bound.get(name))
        if not alias and name in self._listed and bound != str(spec):
            raise RegistryError(f"a table calls {bound} {name!r}; write NAME={spec} for this one")
        if bound != str(spec):
            self._claim(name, spec)
        return part.removesuffix(bare) + name

    def _claim(self, name: str, spec: Spec) -> None:
        if self._registered(name):
            raise RegistryError(
                f"there is already a {self.kind} called {name!r}; give {spec} a name of its own: "
                f"NAME={spec}"
            )
        self._bound[name] = spec

    def _id(self, spec: Spec) -> str:
        name = id_of(spec, self.place_counts)
        if len(name) <= LONGEST:
            return name
        # Two long ones that begin alike differ in what they are, so in this.
        return f"{name[: LONGEST - 10]}.{hashlib.sha256(str(spec).encode()).hexdigest()[:8]}"

    def _made(self, name: str, spec: Spec) -> T:
        """The thing that a spec stands for, under its name."""
        module, _, function = self.prefixes[spec.prefix].partition(":")
        resolve = getattr(importlib.import_module(module), function or "resolve")
        takes = inspect.signature(resolve).parameters if spec.options else {}
        if not any(one.kind is one.VAR_KEYWORD for one in takes.values()):
            for option in sorted(set(spec.options) - set(takes)):
                raise RegistryError(
                    f"{self.kind} {name!r}: {spec.prefix} takes no option {option!r}; "
                    f"{suggest(option, list(takes)[1:])}"
                )
        thing = resolve(spec.rest, **spec.options)
        if is_dataclass(thing) and getattr(thing, "name", name) != name:
            thing = replace(thing, name=name)  # type: ignore[type-var]
        return cast(T, thing)

    def _check_name(self, name: object, pattern: re.Pattern[str] = NAME) -> None:
        if not isinstance(name, str):
            raise RegistryError(f'a {self.kind} needs a name: write @{self.kind}("my_name")')
        if len(name) > LONGEST:
            start = f"{name[:20]}..."
            raise RegistryError(
                f"{self.kind} name {start!r} has {len(name)} characters; take at most {LONGEST}"
            )
        if not pattern.fullmatch(name):
            raise RegistryError(
                f"{self.kind} name {name!r} must match {pattern.pattern!r} "
                "(a hyphen joins the parts of a case id)"
            )

    def _check_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        takes = list(inspect.signature(self._wrap).parameters)[2:] if settings else []
        for setting in sorted(set(settings) - set(takes)):
            raise RegistryError(
                f"{self.kind} {name!r}: there is no setting {setting!r}; {suggest(setting, takes)}"
            )

    def _no_spec(self, text: str) -> str:
        """What to say where a spec should stand."""
        known = ", ".join(f"{prefix}:" for prefix in self.prefixes) or "none"
        if is_path(text) and "folder" in self.prefixes:
            return f"write folder:{text} for a folder of pictures; prefixes are: {known}"
        return f"{text!r} has no prefix that a {self.kind} can have; prefixes are: {known}"

    def _unknown(self, name: str) -> str:
        prefix, colon, _ = name.partition(":")
        if colon and prefix in self.prefixes:
            return f"{name!r}: write one whole name after {prefix}:, globs do not match there"
        if colon:
            known = ", ".join(f"{prefix}:" for prefix in self.prefixes) or "none"
            return f"no {self.kind} is called {name!r}; prefixes are: {known}"
        if is_path(name) and "folder" in self.prefixes:
            return f"no {self.kind} is called {name!r}; write folder:{name} for a folder"
        return f"no {self.kind} is called {name!r}; {suggest_own(name, self)}"

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


def summary(registered: Any) -> str:
    """The first line of the docstring of the function behind a registered thing."""
    values = (getattr(value, "func", value) for value in vars(registered).values())
    function = next((value for value in values if inspect.isfunction(value)), None)
    return cut((inspect.getdoc(function) or "").partition("\n")[0]) if function else ""
