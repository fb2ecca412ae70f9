"""Timing of calls against references that do the same work in the same run, as rows of a table."""

import os
import platform
import timeit
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from matplotlib.ticker import EngFormatter

from grokphys.report.page import Table

Row = dict[str, Any]
"""One comparison: what is timed, seconds of a unit of work on both sides, the ratio, and what was checked."""
Call = Callable[[], Any]


class Effort(NamedTuple):
    """How much a benchmark computes: numbers of timed rounds, and a divisor of the work of a round."""

    rounds: int
    part: int


EFFORTS = {"quick": Effort(2, 20), "default": Effort(5, 1), "paper": Effort(15, 1)}


seconds: Callable[[Call], float] = partial(timeit.timeit, number=1)
"""Function that returns the seconds that one call of a function without arguments takes."""


def compare(
    what: str,
    ours: Call,
    references: Mapping[str, Call | tuple[Call, float]],
    *,
    rounds: int,
    units: float = 1.0,
    before: Callable[[str], Any] = lambda name: None,
    **more: Any,
) -> list[Row]:
    """Time a call and its references in turn, round by round, and return a row for each reference.

    Every round times each call once, so that the load of the machine affects all of them alike, and gives one
    ratio. Each call runs once before, which compiles its kernels.

    Parameters
    ----------
    what : str
        What is timed.
    ours : callable
        Function without arguments that uses this package.
    references : mapping of str to callable, or pair of callable and float
        Functions without arguments that do the same work otherwise, each with its number of units of work
        where that differs from `units`.
    rounds : int
        Number of rounds.
    units : float, default 1.0
        Number of units of work of a call, such as steps; times are stated for one unit.
    before : callable, optional
        Function that is called with "ours" or the name of the reference before each call, and is not timed.
    **more
        Further entries of the rows, such as `error`, `target` and `met`.

    Returns
    -------
    list of Row
        Medians of both times in seconds per unit, and the median, least and largest ratio of the reference's
        time to ours.
    """
    calls: dict[str, tuple[Call, float]] = {"ours": (ours, units)}
    for name, reference in references.items():
        calls[name] = reference if isinstance(reference, tuple) else (reference, units)
    took: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, (call, size) in calls.items():
            before(name)
            spent = seconds(call) / size
            if turn:
                took[name].append(spent)
    own = np.array(took.pop("ours"))
    row = {"what": what, "ours_s": float(np.median(own))}
    rows = []
    for name, times in took.items():
        ratios = np.array(times) / own
        spread = {"median": np.median(ratios), "least": ratios.min(), "most": ratios.max()}
        rows.append(row | {"reference": name, "reference_s": float(np.median(times)), "ratio": spread} | more)
    return rows


def machine() -> Row:
    """Return the processor, the number of threads, and the load of the last minute where it is known."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    processor = platform.processor() or platform.machine()
    return {"processor": processor, "threads": numba.get_num_threads(), "load": load}


def table(name: str, rows: Sequence[Row]) -> Table:
    """Return rows as a table for the terminal."""
    about = machine()
    where = f"{about['processor']}, {about['threads']} threads"
    caption = f"{name}, on {where}; ratios are medians [least, most] of rounds"
    header = ("", "ours", "reference", "takes", "ratio", "error", "target")
    return Table(caption, header, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    ours = _time(row.get("ours_s"))
    ratio = "{median:.3g} [{least:.3g}, {most:.3g}]".format(**row["ratio"]) if "ratio" in row else ""
    error = f"{row['error']:.1e}" if "error" in row else ""
    target = f"{row['target']}: {'met' if row['met'] else 'MISSED'}" if "target" in row else ""
    takes = _time(row.get("reference_s"))
    return [row["what"], ours, row.get("reference", ""), takes, ratio, error, target]


def _time(value: float | None) -> str:
    """Return seconds as text in s, ms or µs with three significant digits."""
    return "" if value is None else EngFormatter("s")(float(f"{value:.3g}"))
