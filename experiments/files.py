"""Files and patterns that the commands are given."""

import glob
import re
from collections.abc import Sequence
from pathlib import Path

from physics.errors import InputError
from physics.trajectory import Trajectory

REAL_TRAJECTORY = "ding_p59_d128_seed0.h5"


def natural_order(path: Path) -> list[str | int]:
    """Sort key under which ``step_9`` comes before ``step_10``."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]


def resolve(patterns: Sequence[str]) -> list[Path]:
    """Return the files that names and glob patterns stand for, in natural order, each once.

    Raises
    ------
    InputError
        If a pattern matches no file.
    FileNotFoundError
        If a name is no file.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        if Path(pattern).exists() or not glob.has_magic(pattern):
            matches = [Path(pattern)]
            if not matches[0].exists():
                raise FileNotFoundError(f"there is no file {pattern}")
        else:
            matches = sorted((Path(m) for m in glob.glob(pattern, recursive=True)), key=natural_order)  # noqa: PTH207
            if not matches:
                raise InputError(f"no file matches the pattern {pattern!r}")
        found.update(dict.fromkeys(matches))
    if not found:
        raise InputError("files must name at least one file or pattern, got none")
    return list(found)


def trajectories(patterns: Sequence[str]) -> list[Trajectory]:
    """Open all trajectories that names and patterns stand for, lazily."""
    return [Trajectory.open(path) for path in resolve(patterns)]


def embedded_trajectory() -> Path:
    """Path of the real trajectory: `data/` of a checkout, which a wheel carries as `experiments/data/`."""
    here = Path(__file__).parent
    inside = here / "data" / REAL_TRAJECTORY
    return inside if inside.exists() else here.parent / "data" / REAL_TRAJECTORY
