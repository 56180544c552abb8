"""Try one method on one case, and look at what it does: its maps, or where it fails."""

from __future__ import annotations

import functools
import importlib.util
import pdb
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from attrcheck.contracts import Method, Pair
from attrcheck.engine.attribution import attribute_batch, not_applicable, unchanged
from attrcheck.errors import MethodError

HOOK = "pytest_attrcheck_register"


def try_method(method: Method, pair: Pair, seed: int = 0, debug: bool = False) -> Iterator[str]:
    """Call a method on the batches of a pair until one fails; lines that say what came of it.

    debug: look at the failure in a debugger, or step through the first batch if there is none.
    """
    network = "the prepared graph" if method.prepared else "the network as it was built"
    yield f"method {method.name!r} on {pair.name}, which gets {network}"
    if reason := not_applicable(method, pair):
        yield f"not applicable: {reason}"
        return
    try:
        with unchanged(method, pair):
            for number, part in enumerate(pair.slices(), 1):
                start = time.perf_counter()
                maps = attribute_batch(method, pair, part, seed)
                seconds = time.perf_counter() - start
                constant = int((np.ptp(maps, axis=(1, 2)) == 0).sum())
                yield (
                    f"batch {number}: images {list(pair.images[part].shape)}, maps "
                    f"{list(maps.shape)} from {maps.min():.4g} to {maps.max():.4g}, "
                    f"{constant} of them constant, {seconds:.3f} s"
                )
    except MethodError as error:
        cause = error.__cause__ or error
        yield "".join(traceback.format_exception(cause)).rstrip()
        if debug:
            pdb.post_mortem(cause.__traceback__)
        raise
    if debug:
        attribute_batch(stepped(method), pair, next(pair.slices()), seed)


def stepped(method: Method) -> Method:
    """The method under a debugger that stops at its first line."""

    @functools.wraps(method.attribute)
    def attribute(*args: Any, **kwargs: Any) -> Any:
        return pdb.runcall(method.attribute, *args, **kwargs)

    return replace(method, attribute=attribute)


def load_conftest(path: Path, attrcheck: ModuleType) -> None:
    """Register what a project's conftest.py brings, as pytest would."""
    spec = importlib.util.spec_from_file_location("conftest", path)
    assert spec
    assert spec.loader
    sys.path.insert(0, str(path.parent))
    module = sys.modules["conftest"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    register: Callable[..., None] | None = getattr(module, HOOK, None)
    if register:
        register(attrcheck)
