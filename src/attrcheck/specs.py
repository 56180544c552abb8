"""Specs: what a name stands for, as `folder:/data/val` or `timm:resnet50.a1_in1k`, as text.

    prefix:rest            what the rest means is up to the prefix
    alias=prefix:rest      the same, under a name of one's own

A spec without an alias gets an id that can be read and stays the same: of letters, digits, `_`, `.`
and one `:`, as a hyphen joins the parts of a case id and a slash those of a path in the store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = re.compile(r"[a-z][a-z0-9_.]*")
ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
PREFIXED = re.compile(rf"(?P<prefix>{NAME.pattern}):(?P<rest>\S.*)")
AT_A_PATH = re.compile(r"[/\\~]|\.{1,2}([/\\]|$)|[A-Za-z]:[/\\]")
FOLDERS = ("folder",)
"""Prefixes whose rest is a path; the id goes without them."""
WEIGHTS = re.compile(r"(\.(safetensors|pth|pt|bin|ckpt|tar))+$", re.IGNORECASE)
"""How the names of files of weights end."""


@dataclass(frozen=True)
class Spec:
    """A prefix, the rest, and options, which only a table has."""

    prefix: str
    rest: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.prefix}:{self.rest}"


def parse(text: str) -> tuple[str, Spec | None]:
    """The alias, if there is one, and the spec, if it is one.

    >>> parse("imagenet=folder:/data/val")
    ('imagenet', Spec(prefix='folder', rest='/data/val', options={}))
    >>> parse("folder:/data/a=b")[0], parse("resnet")
    ('', ('', None))
    """
    alias, equals, rest = text.partition("=")
    if not (equals and ALIAS.fullmatch(alias.strip())):
        alias, rest = "", text
    match = PREFIXED.fullmatch(rest.strip())
    return alias.strip(), Spec(match["prefix"], match["rest"]) if match else None


def is_path(text: str) -> bool:
    """Whether a text says itself that it is a path."""
    return AT_A_PATH.match(text) is not None


def id_of(spec: Spec, with_place: bool = True) -> str:
    """The name of a spec without an alias; `with_place`: with the file or folder after an `@`.

    >>> id_of(Spec("hf", "google/vit-base-patch16-224"))
    'hf:google.vit_base_patch16_224'
    >>> id_of(Spec("torchvision", "resnet18@/path/food-101.safetensors"))
    'torchvision:resnet18.food_101'
    >>> id_of(Spec("folder", "/data/val")), id_of(Spec("torchvision", "CIFAR100@/data"), False)
    ('val', 'torchvision:CIFAR100')
    """
    if spec.prefix in FOLDERS:
        name = _clean(_last(spec.rest))
        return name if ALIAS.fullmatch(name) else f"{spec.prefix}_{name}"
    name, _, place = _parted(spec)
    parts = [_clean(_last(name) if is_path(name) else name)]
    if place and not _leads(place):
        parts.append(_clean(place))
    elif place and with_place:
        parts.append(_clean(WEIGHTS.sub("", _last(place))))
    return f"{spec.prefix}:{'.'.join(parts)}"


def anchored(patterns: str, base: Path) -> str:
    """Comma-separated patterns and specs, with relative paths made absolute from a folder.

    >>> anchored("a*,x=folder:val,hf:org/name,torchvision:CIFAR10@./data", Path("/home"))
    'a*,x=folder:/home/val,hf:org/name,torchvision:CIFAR10@/home/data'
    """
    return ",".join(_anchored(part, base) for part in patterns.split(","))


def _anchored(part: str, base: Path) -> str:
    bare = part.strip().removeprefix("!")
    alias, spec = parse(bare)
    if spec is None:
        return part
    name, at, place = _parted(spec)
    if spec.prefix in FOLDERS or is_path(name):
        name = _absolute(name, base)
    elif _leads(place):
        place = _absolute(place, base)
    excluded = "!" if part.strip().startswith("!") else ""
    return f"{excluded}{alias}{'=' if alias else ''}{spec.prefix}:{name}{at}{place}"


def _parted(spec: Spec) -> tuple[str, str, str]:
    """What stands before and after the `@`; a path may have one of its own."""
    if spec.prefix in FOLDERS:
        return spec.rest, "", ""
    if not is_path(spec.rest):
        return spec.rest.partition("@")
    name, at, place = spec.rest.rpartition("@")
    return (name, at, place) if name and not _leads(place) else (spec.rest, "", "")


def _leads(place: str) -> bool:
    """Whether what follows an `@` is a file or folder, and not the name of some weights."""
    return is_path(place) or "/" in place or "\\" in place or bool(WEIGHTS.search(place))


def _absolute(path: str, base: Path) -> str:
    return Path(base, Path(path).expanduser()).as_posix()


def _last(path: str) -> str:
    return Path(path).expanduser().absolute().resolve().name if path in (".", "..") else _name(path)


def _name(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _clean(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]", "_", text.replace("/", "."))
