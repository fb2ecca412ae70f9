"""Code that the benchmarks share: timing of calls, rows of results, and their tables and files."""

import os
import platform
import string
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np

from grokphys.output import make_directory, write_json
from grokphys.progress import progress
from grokphys.report.page import Table

Row = dict[str, Any]
"""One measurement: text, numbers and spreads by name; names that end in _s hold seconds."""
Calls = Mapping[str, tuple[Callable[[], Any], float]]
"""Calls to compare, by name, with the number of units of work that each does."""


def seconds(call: Callable[[], Any]) -> float:
    """Return the time that one call of a function takes.

    Parameters
    ----------
    call : callable
        Function without arguments.

    Returns
    -------
    float
        Time in seconds.
    """
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def best(call: Callable[[], Any], repeats: int = 5) -> float:
    """Return the time of the fastest of several calls, after a call that compiles and fills the caches.

    Parameters
    ----------
    call : callable
        Function without arguments.
    repeats : int, default 5
        Number of timed calls.

    Returns
    -------
    float
        Time in seconds.
    """
    call()
    return min(seconds(call) for _ in range(repeats))


def in_turn(
    calls: Calls, rounds: int, before: Callable[[str], Any] = lambda name: None
) -> dict[str, list[float]]:
    """Time several calls in turn, round by round, so that the load of the machine affects all of them alike.

    Parameters
    ----------
    calls : mapping of str to pair of callable and float
        Functions without arguments by name, each with the number of units of work that a call does.
    rounds : int
        Number of rounds.
    before : callable, optional
        Function that is called with the name of each call before its turn, and is not timed.

    Returns
    -------
    dict of str to list of float
        Seconds per unit of work of each call in each round.
    """
    took: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (call, units) in calls.items():
            before(name)
            took[name].append(seconds(call) / units)
    return took


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the middle and the ends of some values.

    Parameters
    ----------
    values : sequence of float
        Values, at least one.

    Returns
    -------
    dict of str to float
        Their "median", the smallest ("least") and the largest ("most").
    """
    return {"median": float(np.median(values)), "least": min(values), "most": max(values)}


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> dict[str, float]:
    """Return how many times as long the reference takes in each round, as a `spread` over the rounds.

    Parameters
    ----------
    theirs, ours : sequence of float, shape (rounds,)
        Seconds of the reference and of this package in each round.

    Returns
    -------
    dict of str to float
        The "median" of the ratios of theirs to ours, the smallest ("least") and the largest ("most").
    """
    return spread([b / a for a, b in zip(ours, theirs, strict=True)])


def against(took: Mapping[str, Sequence[float]], ours: str = "ours") -> list[Row]:
    """Return a row for each reference that was timed in turn with a call of this package.

    Parameters
    ----------
    took : mapping of str to sequence of float
        Times that `in_turn` returns.
    ours : str, default "ours"
        Name of the call of this package, with which all others are compared.

    Returns
    -------
    list of Row
        Name, spreads of both times in seconds per unit of work, and the spread of their ratio.
    """
    return [
        {
            "reference": name,
            "ours_s": spread(took[ours]),
            "reference_s": spread(theirs),
            "ratio": ratio(theirs, took[ours]),
        }
        for name, theirs in took.items()
        if name != ours
    ]


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Return the exponent α of the power law ``time ∝ size**α`` that fits best on logarithmic scales.

    Parameters
    ----------
    sizes : sequence of int
        Sizes greater than 0, of which at least two differ.
    times : sequence of float
        Time in seconds for each size.

    Returns
    -------
    float
        The exponent.
    """
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def machine() -> Row:
    """Return what the times of a benchmark depend on besides the code.

    Returns
    -------
    dict of str to object
        Processor, number of threads, and mean load of the last minute, or None if the system has none.
    """
    return {
        "processor": platform.processor() or platform.machine(),
        "threads": numba.get_num_threads(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def peak_gib() -> float:
    """Return the largest resident memory of this process so far in GiB.

    Linux hands `ru_maxrss` of a process on to the programs that it starts, so the status of the process is
    read there. macOS counts `ru_maxrss` in bytes.
    """
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 2**20
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**30


# -- output -----------------------------------------------------------------------------------------


class _Cells(string.Formatter):
    """A formatter of cells by templates, such as `{ours_s:time}`, `{ratio:spread}` or `{peak_bytes:gib}`.

    A number that is absent or None is shown as "-".
    """

    def get_value(self, key: int | str, args: Sequence[Any], row: Mapping[str, Any]) -> Any:
        return row.get(str(key))

    def format_field(self, value: Any, spec: str) -> str:
        if value is None:
            return "-"
        if spec == "spread":
            return "{median:.3g} [{least:.3g}, {most:.3g}]".format(**value)
        if spec in ("interval", "percent"):
            scale = 100 if spec == "percent" else 1
            estimate, low, high = (scale * value[name] for name in ("estimate", "low", "high"))
            return f"{estimate:.1f} [{low:.1f}, {high:.1f}]"
        if spec == "gib":
            return f"{value / 2**30:.3g} GiB"
        if spec == "yes":
            return "yes" if value else "NO"
        if spec == "time":
            return duration(value["median"] if isinstance(value, dict) else value)
        return format(value, spec)


def duration(value: float) -> str:
    """Return a time as text in a suitable unit: s, ms or µs.

    Parameters
    ----------
    value : float
        Time in seconds.

    Returns
    -------
    str
        Three significant digits and the unit.
    """
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1 or unit == "µs":
            return f"{value * scale:.3g} {unit}"
    raise AssertionError("the last unit takes every number")


def table(caption: str, rows: Sequence[Row], columns: Mapping[str, str]) -> Table:
    """Return rows as a table for the terminal and for reports.

    Parameters
    ----------
    caption : str
        Words above the table.
    rows : sequence of Row
        Measurements.
    columns : mapping of str to str
        Header of each column, and a template of its cells with names of numbers of a row; see `_Cells`.

    Returns
    -------
    Table
        The table; a number that is absent is shown as "-".
    """
    cells = [[_Cells().format(template, **row) for template in columns.values()] for row in rows]
    return Table(caption, list(columns), cells)


TARGETS = {
    "": "{what}",
    "ours": "{ours}",
    "reference": "{reference_s:time}",
    "ratio": "{ratio}",
    "error": "{error:.1e}",
    "target": "{verdict}",
}


def targets(rows: Sequence[Row]) -> Table:
    """Return rows of single times as a table, each next to that of its reference and its target.

    Parameters
    ----------
    rows : list of dict of str to object
        Rows of a benchmark.

    Returns
    -------
    Table
        Names, times, ratios to the reference, errors, and whether each target is met.
    """
    shown = []
    for row in rows:
        ours, theirs = row.get("ours_s"), row.get("reference_s")
        said: Row = {"ratio": "", "verdict": "", "ours": None if ours is None else duration(ours)}
        if "exponent" in row:
            said["ours"] = f"p^{row['exponent']:.2f}"
        if ours and theirs:
            said["ratio"] = f"{theirs / ours:,.{0 if theirs >= 10 * ours else 2}f} x"
        if "target" in row:
            said["verdict"] = f"{row['target']}: {'met' if row['met'] else 'MISSED'}"
        shown.append(row | said)
    found = machine()
    return table(f"{found['processor']}, {found['threads']} threads", shown, TARGETS)


def measured(
    name: str,
    out: Path,
    parts: Mapping[str, Callable[[], Any]],
    tables: Callable[[dict[str, Any]], Sequence[Table]],
) -> int:
    """Measure all parts under a progress bar, print their tables, and write all numbers to a JSON file.

    Parameters
    ----------
    name : str
        Name of the benchmark.
    out : Path
        JSON file to write.
    parts : mapping of str to callable
        Functions without arguments, whose results are stored under these names.
    tables : callable
        Function of all results that returns the tables.

    Returns
    -------
    int
        Exit status 0.
    """
    make_directory(out.parent)
    result = {part: parts[part]() for part in progress(tuple(parts), f"bench {name}", "part")}
    for one in tables(result):
        print(one.text(), end="\n\n")
    write_json(out, result)
    print(f"wrote {out}")
    return 0


def rows_of(parts: Sequence[Callable[[], list[Row]]], name: str) -> list[Row]:
    """Measure several parts of a benchmark under a progress bar.

    Parameters
    ----------
    parts : sequence of callable
        Functions without arguments that return rows.
    name : str
        Name of the benchmark, for the bar.

    Returns
    -------
    list of Row
        The rows of all parts, one after the other.
    """
    return [row for part in progress(parts, f"bench {name}", "part") for row in part()]
