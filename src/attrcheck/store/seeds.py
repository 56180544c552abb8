"""Seeds from names, so that no result depends on batch size, order, workers or company."""

from __future__ import annotations

import hashlib


def derive(seed: int, *names: str) -> int:
    """A 63-bit seed for what the names say, e.g. (dataset, image id, method, purpose)."""
    # A file name that is not UTF-8, as the id of an image, has lone surrogates.
    key = "\0".join((str(seed), *names)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 1
