"""The 1,000 classes of ImageNet in the order that networks have them: synsets and English names.

`imagenet.txt` is timm's list, `timm.data.ImageNetInfo("imagenet-1k")`, which is WordNet's.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("imagenet.txt")


@cache
def english() -> dict[str, str]:
    """The English names of every synset, joined by commas: n01440764 is `tench, Tinca tinca`."""
    lines = PATH.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


@cache
def synsets() -> tuple[str, ...]:
    """The ids of all classes, in order: n01440764, n01443537, ..."""
    return tuple(english())
