"""Classes in the right order, or a stop: which of a model's outputs is which class of a dataset.

Where a dataset has fewer classes than the model, as ImageNet-A has 200 of the 1,000, only the
outputs of its own classes count (`graph.outputs.chosen`), as its authors do it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from attrcheck.errors import AttrcheckError
from attrcheck.models import imagenet

SHOWN = 5
"""Names that an error mentions."""
ENOUGH = 0.95
"""The share of the names in ImageNet's order that tells its list, as spellings differ."""
WAYS_OUT = (
    "name the dataset's classes as the model does, one per line in the order of the labels, in a "
    "file classes.txt in its folder"
)


class ClassError(AttrcheckError):
    """A dataset and a model whose classes cannot be matched without doubt."""


def matched(
    data_names: Sequence[str], model_names: Sequence[str], classes: int, outputs: int
) -> tuple[int, ...]:
    """The model's output of each class of a dataset.

    By index where the names of one side are not known and the counts are equal; else by name. Of
    names, case, spaces, hyphens and underscores do not count; synsets of ImageNet go by their
    English names too; a folder called 17 is output 17 of a model whose names are not numbers.

    >>> matched(["Fire_truck", "tench"], ["n01440764", "fire truck"], 2, 2)
    (1, 0)
    """
    if not data_names or not model_names:
        if classes != outputs:
            unknown = "model's" if data_names else "dataset's"
            raise ClassError(
                f"the dataset has {classes} classes and the model {outputs} outputs, and the "
                f"{unknown} class names are not known, so nothing tells which is which; use a "
                f"model with {classes} outputs, or {WAYS_OUT}"
            )
        return tuple(range(outputs))
    if tuple(data_names) == tuple(model_names):
        return tuple(range(outputs))
    data, model = (_canonical(names) for names in (data_names, model_names))
    if len({*data}) == len(data) and len({*model}) == len(model) and {*data} <= {*model}:
        return tuple(model.index(name) for name in data)
    if (numbers := _numbers(data, model, outputs)) is not None:
        return numbers
    return _by_english(data, model)


def known_synsets(names: Sequence[str]) -> tuple[str, ...]:
    """The synsets of ImageNet's classes if these are its 1,000 English names in order, else ().

    >>> known_synsets(["cat", "dog"])
    ()
    """
    synsets = imagenet.synsets()
    if len(names) != len(synsets):
        return ()
    alike = (bool(_any(name) & _any(synset)) for name, synset in zip(names, synsets, strict=True))
    return synsets if sum(alike) >= ENOUGH * len(synsets) else ()


def _canonical(names: Sequence[str]) -> tuple[str, ...]:
    return known_synsets(names) or tuple(names)


def _numbers(data: Sequence[str], model: Sequence[str], outputs: int) -> tuple[int, ...] | None:
    """Classes that are called by their numbers, whatever order their names were sorted in."""
    if any(name.isdecimal() for name in model) or not all(name.isdecimal() for name in data):
        return None
    numbers = tuple(map(int, data))
    if max(numbers) >= outputs:
        raise ClassError(
            f"the dataset's classes are numbers up to {max(numbers)}, but the model's outputs go "
            f"from 0 to {outputs - 1}; are they counted from 1? Else {WAYS_OUT}"
        )
    _refuse_twice(data, numbers)
    return numbers


def _by_english(data: Sequence[str], model: Sequence[str]) -> tuple[int, ...]:
    """By whole name, else by one of the names that a class has."""
    whole, parts = defaultdict(set), defaultdict(set)
    for place, name in enumerate(model):
        whole[_whole(name)].add(place)
        for part in _any(name):
            parts[part].add(place)
    candidates = [
        whole.get(_whole(name)) or set().union(*(parts.get(part, set()) for part in _any(name)))
        for name in data
    ]
    if missing := [name for name, places in zip(data, candidates, strict=True) if not places]:
        raise ClassError(
            f"{len(missing)} of the dataset's {len(data)} classes are not among the model's "
            f"{len(model)}: {_some(missing)}; the model has {_some(model)}; {WAYS_OUT}"
        )
    for name, places in zip(data, candidates, strict=True):
        if len(places) > 1:
            raise ClassError(
                f"the dataset's class {name!r} may be any of the model's outputs "
                f"{', '.join(map(str, sorted(places)))}; {WAYS_OUT}"
            )
    matched = tuple(place for (place,) in candidates)
    _refuse_twice(data, matched)
    return matched


def _refuse_twice(data: Sequence[str], places: Sequence[int]) -> None:
    """Raise if two classes of the dataset are the same output."""
    first: dict[int, str] = {}
    for name, place in zip(data, places, strict=True):
        if place in first:
            raise ClassError(
                f"the dataset's classes {first[place]!r} and {name!r} are both the model's output "
                f"{place}; {WAYS_OUT}"
            )
        first[place] = name


def _whole(name: str) -> str:
    return _plain(imagenet.english().get(name, name))


def _any(name: str) -> set[str]:
    """All that a class may be called: its name, and each of several that commas part."""
    text = imagenet.english().get(name, name)
    return {_plain(part) for part in (name, text, *text.split(","))}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum()) or name


def _some(names: Iterable[str]) -> str:
    known = list(names)
    more = ", ..." if len(known) > SHOWN else ""
    return ", ".join(map(repr, known[:SHOWN])) + more
