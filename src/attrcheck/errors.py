"""Errors whose message alone tells a user what is wrong and what to do."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

MOST_TEXT = 2000
"""Characters of one text that others wrote, such as a reason."""
MOST_NAMES = 12
"""Names that are told where none is close and a project may have more."""


PLACE = r"(?<=') on [\w.:-]+(?= )| (in the batch that starts with|for) image '[^']*'"
"""Where a method failed, in the message of a MethodError."""
SIZES = r"\[\d+(, \d+)*\]"


class AttrcheckError(Exception):
    """Shown without a traceback."""


def cut(text: str, most: int = MOST_TEXT) -> str:
    """Text of at most so many characters; where it is cut, it says how much is gone.

    >>> cut("a" * 3000, 40)
    'aaaaaaaaaaaaaa... (2986 more characters)'
    """
    if len(text) <= most:
        return text
    room = max(0, most - len(f"... ({len(text)} more characters)"))
    return f"{text[:room]}... ({len(text) - room} more characters)"


def suggest(name: str, known: Iterable[str], most: int = 3) -> str:
    """What to say after an unknown name: the closest known ones, else all of them.

    >>> suggest("salency", ["saliency", "lrp"])
    'did you mean saliency?'
    >>> suggest("x", ["saliency", "lrp"])
    'there are: saliency, lrp'
    """
    import difflib  # only when something went wrong: it would slow the start of every pytest run

    names = list(known)
    if close := difflib.get_close_matches(name, names, n=most):
        return f"did you mean {' or '.join(close)}?"
    return f"there are: {', '.join(names) or 'none'}"


def suggest_own(name: str, known: Iterable[str]) -> str:
    """The same, where a project may have a name of its own that this run does not know.

    >>> suggest_own("mine", ["saliency", "lrp"]).partition("; ")[2]
    'if it is your own, register it in a conftest.py of the folder where pytest starts'
    """
    names = list(known)
    hint = suggest(name, names)
    if len(names) > MOST_NAMES and hint.startswith("there are"):
        hint = f"there are: {', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"
    if hint.startswith("did you mean") or set(name) & set("*?["):
        return hint
    where = "in a conftest.py of the folder where pytest starts"
    return f"{hint}; if it is your own, register it {where}"


def cause(reason: str) -> str:
    """What failures of one cause have in common: a reason without pair, image and shapes.

    >>> cause("method 'a' on digits-vgg returned values that are not finite for image 'digits/3'")
    "method 'a' returned values that are not finite"
    """
    return re.sub(SIZES, "[...]", re.sub(PLACE, "", reason))


def text_of(error: BaseException) -> str:
    """The text of an exception, cut; whatever its class makes of `str`.

    >>> text_of(KeyError("x"))
    "'x'"
    """
    try:
        text = str(error)
    except BaseException:
        text = "(its text cannot be read)"
    return cut(text, MOST_TEXT // 2)  # there is room for what is said around it


def line_of(error: BaseException, belongs: Callable[[str], bool]) -> str:
    """The deepest line of a traceback in a file that belongs, as `file.py:12: source`, or nothing.

    What is made at run time, such as the code of a graph, is in no file.
    """
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and belongs(frame.filename)
    ]
    if not frames:
        return ""
    last = frames[-1]
    return cut(f"{Path(last.filename).name}:{last.lineno}: {last.line}", MOST_TEXT // 4)


class MethodError(AttrcheckError):
    """A method that raised or broke its contract; the message names it and the first bad image."""


class NotApplicableError(AttrcheckError):
    """A model to which a protocol does not apply; the message says why."""


class ModelError(AttrcheckError):
    """A model that does not do what a classifier of its dataset does."""
