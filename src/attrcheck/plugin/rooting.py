"""Where pytest looks for its root, which a folder given to an option of ours must not move."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.config.findpaths import determine_setup

from attrcheck.plugin.options import OPTIONS, Option, command_line

FOLDERS = ("store", "report_dir", "data")
"""The options that name folders."""


def check_root(config: pytest.Config) -> None:
    """A usage error if a value of ours that stands apart from its flag moves the root of the run.

    pytest looks for its root and its ini file before it knows the options of plugins, and takes
    such a value for a path to test. A folder that is yet to be made would do so in the next run.
    """
    apart = list(_apart(config))
    if not apart:
        return
    known = config.known_args_namespace
    values = {text: str(path) for _, text, path in apart}

    def root(paths: list[str]) -> tuple[Path, Path | None]:
        return determine_setup(
            inifile=known.inifilename,
            override_ini=None,
            args=paths,
            rootdir_cmd_arg=known.rootdir or None,
            invocation_dir=config.invocation_params.dir,
        )[:2]

    wanted, paths = root(known.file_or_dir), {*known.file_or_dir, *values}
    if root([values.get(word, word) for word in command_line(config) if word in paths]) == wanted:
        return
    joined = " ".join(f"{option.flag}={shlex.quote(text)}" for option, text, _ in apart)
    raise pytest.UsageError(
        f"pytest would take {' and '.join(values)} for a path to test, and leave {wanted[0]} and "
        f"its settings (ini file: {wanted[1] or 'none'}) for it; write {joined}"
    )


def _apart(config: pytest.Config) -> Iterator[tuple[Option, str, Path]]:
    """Options whose values stand apart from their flags, and where on the disk these may lead."""
    flags = {option.flag: option for option in OPTIONS if option.kind != "bool"}
    words = command_line(config)
    for flag, text in itertools.pairwise(words):
        if option := flags.get(flag):
            path = Path(config.invocation_params.dir, text)
            if option.name in FOLDERS:
                while not os.path.exists(path):
                    path = path.parent
            if os.path.exists(path):  # False for what is too long for a name
                yield option, text, path
