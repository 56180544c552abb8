"""The cache of the Hugging Face hub: what is there is used, what is not is asked for in one line.

Nothing is downloaded here, so nothing waits for a network that is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrcheck.adapters import vision
from attrcheck.adapters.checkpoints import WeightsError


def cached(repo: str, names: Sequence[str], revision: str | None = None) -> Path | None:
    """The first of these files of a repository that the cache has."""
    for name in names:
        path = vision.huggingface_hub.try_to_load_from_cache(repo, name, revision=revision)
        if isinstance(path, str):
            return Path(path)
    return None


def missing(what: str, repo: str, otherwise: str, revision: str | None = None) -> WeightsError:
    """What to download to where, if a repository is not in the cache."""
    folder = vision.huggingface_hub.constants.HF_HUB_CACHE
    at = f" --revision {revision}" if revision else ""
    return WeightsError(
        f"{what} has no weights in {folder}: run `hf download {repo}{at}` where there is a "
        f"network, {otherwise}"
    )
