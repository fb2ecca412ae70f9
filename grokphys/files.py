"""The files and patterns that users pass to the commands."""

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

import h5py

from physics.errors import InputError
from physics.examples import example_path
from physics.values import natural_order

INDEX = re.compile(r"index(-\d+-of-\d+)?\.h5")
EXAMPLE = "example:"
"""Prefix of the names of trajectories that come with the package, such as ``example:ding``."""


def named(name: str) -> Path:
    """Return the path of a file name, or of ``example:NAME``, a trajectory that comes with the package.

    A file of that name, if there is one, takes precedence. An `InputError` refuses unknown examples.
    """
    if name.startswith(EXAMPLE) and not Path(name).exists():
        return example_path(name.removeprefix(EXAMPLE))
    return Path(name)


def resolve(patterns: Sequence[str]) -> list[Path]:
    """Return the files that names, examples and patterns stand for, each once.

    Parameters
    ----------
    patterns : sequence of str
        Names of files, glob patterns such as ``runs/*.h5``, and examples such as ``example:ding``.

    Returns
    -------
    list of Path
        Files in the order of `patterns`; those of one pattern in `natural_order`, without the index of a
        sweep. A file with several names, such as an absolute one or a link, has the first of them.

    Raises
    ------
    InputError
        If a pattern matches no file, there is no such example, or no pattern is given.
    FileNotFoundError
        If a file does not exist.
    """
    files: dict[str, Path] = {}
    for pattern in patterns:
        if Path(pattern).exists() or not glob.has_magic(pattern):
            matches = [named(pattern)]
            if not matches[0].exists():
                raise FileNotFoundError(f"there is no file {pattern}")
        else:
            matches = sorted((Path(m) for m in glob.glob(pattern, recursive=True)), key=natural_order)  # noqa: PTH207
            matches = [path for path in matches if not _is_index(path)]
            if not matches:
                raise InputError(
                    f"files must match at least one file, got the pattern {pattern!r}, which matches none"
                )
        for path in matches:
            files.setdefault(os.path.realpath(path), path)
    if not files:
        raise InputError("files must name at least one file or pattern, got none")
    return list(files.values())


def _is_index(path: Path) -> bool:
    """Return whether a file is the index that `grokphys sweep` writes beside its trajectories."""
    if not INDEX.fullmatch(path.name) or not h5py.is_hdf5(path):
        return False
    with h5py.File(path, "r") as file:
        return file.attrs.get("schema") == "grokphys-sweep"
