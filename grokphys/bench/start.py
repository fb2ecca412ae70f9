"""`grokphys bench start`: the time of first calls in new processes, relative to a unit of the same minute.

The unit is a process that compiles one trivial ``prange`` kernel into an empty cache, including imports. The
ratios therefore measure what this package adds on any machine. Both wall-clock time and CPU time are
measured; CPU time is more reliable on a busy machine. A cold process starts with an empty cache of compiled
kernels, and a warm process with the cache that the cold one left.

A record of each version is kept in `benchmarks/start/` if that folder exists. A call reports what has become
slower by more than a fifth since the newest record; in that case it writes no record.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grokphys.bench.timing import Row, machine, measured, spread, table
from grokphys.output import Budget, write_json
from grokphys.progress import progress
from grokphys.report.page import Table

UNIT = """
import numba, numpy

@numba.njit(parallel=True, cache=True)
def double(x):
    for i in numba.prange(x.size):
        x[i] = 2 * x[i]

double(numpy.ones(10))
"""
PAIRS = "[(0, 3), (1, 2), (0, 2), (1, 1), (2, 4), (3, 3)]"
COMMAND = ("-m", "grokphys.cli.main")


class Case(NamedTuple):
    """A process whose time is measured.

    Attributes
    ----------
    arguments : tuple of str
        Arguments of Python.
    goal : float, optional
        Longest CPU time that we accept, in units (see the module). It is that of a cold process if `kernels`
        is True, and of a warm one otherwise. By default there is no goal.
    kernels : bool, default True
        Whether the process is measured with an empty cache of kernels (cold) and with a full one (warm).
        Otherwise it is only measured warm.
    """

    arguments: tuple[str, ...]
    goal: float | None = None
    kernels: bool = True


CASES = {
    "physics.simulate()": Case(("-c", "import physics; physics.simulate()"), 2.5),
    "physics.simulate of 60 particles": Case(
        ("-c", "import physics; physics.simulate(physics.ParticleSystem(60), steps=10)"), 5.0
    ),
    "closed flow of EffectiveTheory(dim=2)": Case(
        ("-c", "import physics; physics.simulate(physics.EffectiveTheory(dim=2))"), 2.0
    ),
    "ground_state_dimension of six pairs": Case(
        ("-c", f"import physics; physics.EffectiveTheory(pairs={PAIRS}).ground_state_dimension"), 3.0
    ),
    "nets.train of a dense model": Case(
        ("-c", "import nets; nets.train(nets.ConstantAttention(), steps=10)"), 6.0
    ),
    "import numpy": Case(("-c", "import numpy"), kernels=False),
    "import physics": Case(("-c", "import physics"), kernels=False),
    "import nets": Case(("-c", "import nets"), kernels=False),
    "grokphys --help": Case((*COMMAND, "--help"), 0.4, kernels=False),
    "grokphys info": Case((*COMMAND, "info", "{example}"), 0.4, kernels=False),
    "grokphys train of 20 networks": Case(
        (*COMMAND, "train", "--runs", "20", "--steps", "1000"), 2.6, kernels=False
    ),
    "grokphys compare of 20 runs each": Case(
        (*COMMAND, "compare", "{particles}", "{networks}", "--out", "{new}/report.html"), 2.4, kernels=False
    ),
    "grokphys animate, a GIF of 101 frames": Case(
        (*COMMAND, "animate", "{particles}", "--frames", "101", "--out", "{new}/film.gif"), 2.4, kernels=False
    ),
    "grokphys sweep of one short run": Case(
        (*COMMAND, "sweep", "{one}", "--directory", "{new}/sweep"), 0.8, kernels=False
    ),
    "grokphys sweep of 200 short runs": Case(
        (*COMMAND, "sweep", "{many}", "--directory", "{new}/sweep"), 1.6, kernels=False
    ),
}
"""Arguments of Python in each case; `{new}` is an empty folder, and the other names are files."""
SWEEPS = {"one": 1, "many": 200}
"""Numbers of runs of the timed sweeps. A run has only ten steps, so that the time is that of the sweep
itself."""
SLOWER = 1.2
"""Factor by which a case must exceed the ratio of the record to be reported as slower."""
RECORDS = Path("benchmarks/start")


class Took(NamedTuple):
    """Time that a process has taken.

    Attributes
    ----------
    clock : float
        Wall-clock seconds.
    core : float
        CPU seconds of all cores together, of the process and of those that it has started.
    """

    clock: float
    core: float


def bench_start(*, out: Path = Path("results/bench-start.json"), budget: Budget = "default") -> int:
    """Measure first calls and commands in new processes, relative to a unit that is timed in the same minute.

    Args:
        out: JSON file to write all numbers to.
        budget: quick takes each case once, default takes the median of three times, and paper that of seven.
    """
    rounds = {"quick": 1, "default": 3, "paper": 7}[budget]
    found: dict[str, Any] = {}
    parts = {"machine": machine, "made": _made, "rows": lambda: rows(rounds)}
    status = measured("start", out, parts, lambda result: found.update(result) or _tables(result["rows"]))
    slower = regressions(found["rows"], newest(RECORDS))
    print("\n".join(slower), end="\n" if slower else "")
    if RECORDS.is_dir() and not slower:
        record = RECORDS / f"{metadata.version('grokphys')}.json"
        print(f"recorded in {write_json(record, found)}")
    return status


def rows(rounds: int, cases: Mapping[str, Case] = CASES) -> list[Row]:
    """Measure cases in turn, each after the unit of time, so that a busy machine affects both alike.

    Parameters
    ----------
    rounds : int
        Number of times that each case is measured.
    cases : mapping of str to Case
        Cases by name; by default all.

    Returns
    -------
    list of Row
        One row for each case and state of its cache (cold or warm): seconds, ratios to the unit, and the
        goal.
    """
    took: dict[tuple[str, str], list[tuple[Took, Took]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = _files(Path(folder), cases)
        names = [(turn, name) for turn in range(rounds) for name in cases]
        for turn, name in progress(names, "processes", "case"):
            unit = _unit(Path(folder))
            case, new = cases[name], tempfile.mkdtemp(dir=folder)
            arguments = [one.format(new=new, **files) for one in case.arguments]
            if case.kernels:
                took.setdefault((name, "cold"), []).append((run(arguments, Path(new) / "kernels"), unit))
            elif not turn:
                run(arguments, Path(folder) / "kernels")
                arguments = [one.replace(new, tempfile.mkdtemp(dir=folder)) for one in arguments]
            cache = Path(new) / "kernels" if case.kernels else Path(folder) / "kernels"
            took.setdefault((name, "warm"), []).append((run(arguments, cache), unit))
    return [
        {
            "what": name,
            "kernels": kernels,
            "clock_s": spread([one.clock for one, _ in taken]),
            "core_s": spread([one.core for one, _ in taken]),
            "unit_core_s": spread([unit.core for _, unit in taken]),
            "clock": spread([one.clock / unit.clock for one, unit in taken]),
            "core": spread([one.core / unit.core for one, unit in taken]),
            "goal": cases[name].goal if kernels == ("cold" if cases[name].kernels else "warm") else None,
        }
        for (name, kernels), taken in took.items()
    ]


def run(arguments: Sequence[str], cache: Path) -> Took:
    """Run Python in a new process, and measure its time.

    Parameters
    ----------
    arguments : sequence of str
        Arguments of Python.
    cache : Path
        Folder in which Numba keeps compiled kernels.

    Returns
    -------
    Took
        Wall-clock and CPU time in seconds.

    Raises
    ------
    RuntimeError
        If the process fails; the message ends with the end of its output.
    """
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "MPLBACKEND": "Agg"}
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    clock, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
    core = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(clock, core)


def newest(folder: Path) -> dict[str, Any]:
    """Return the newest of the records in a folder.

    Parameters
    ----------
    folder : Path
        Folder of JSON files, each the record of one version.

    Returns
    -------
    dict of str to object
        Content of the newest record; empty if the folder has none.
    """
    records: list[dict[str, Any]] = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return max(records, key=lambda record: str(record["made"]["at"]), default={})


def regressions(found: Sequence[Row], record: Mapping[str, Any]) -> list[str]:
    """Return a line for each case whose CPU time, relative to the unit, has grown since a record.

    Parameters
    ----------
    found : sequence of Row
        Rows that `rows` has measured.
    record : mapping
        Content of a record; if it is empty, nothing is reported.

    Returns
    -------
    list of str
        Lines for the cases that exceed `SLOWER` times the ratio of the record.
    """
    before = {(row["what"], row["kernels"]): row["core"]["median"] for row in record.get("rows", ())}
    said = []
    for row in found:
        old, new = before.get((row["what"], row["kernels"])), row["core"]["median"]
        if old and new > SLOWER * old:
            said.append(
                f"SLOWER: {row['what']}, {row['kernels']}: {new:.2f} units, {old:.2f} in the record of "
                f"{record['made']['by']}"
            )
    return said


def _unit(folder: Path) -> Took:
    """Time the unit, which is in a file because Numba caches only functions in files."""
    new = Path(tempfile.mkdtemp(dir=folder))
    script = new / "unit.py"
    script.write_text(UNIT)
    return run([str(script)], new / "kernels")


def _files(folder: Path, cases: Mapping[str, Case]) -> dict[str, str]:
    """Create the files that the arguments of cases name, and return their paths by name."""
    import physics

    files = {name: str(folder / f"{name}.h5") for name in ("particles", "networks", "example")}
    for name, runs in SWEEPS.items():
        files[name] = str(folder / f"{name}.json")
        fixed = {"tokens": 17, "steps": 10, "runs": runs}
        write_json(Path(files[name]), {"kind": "simulate", "fixed": fixed, "grid": {"alignment": [1.0]}})
    wanted = " ".join(one for case in cases.values() for one in case.arguments)
    if "{example}" in wanted:
        physics.example("ding").save(files["example"])
    if "{particles}" in wanted:
        import nets

        physics.simulate(runs=20, out=files["particles"])
        nets.train(nets.ConstantAttention(), runs=20, steps=200, record=20, out=files["networks"])
    return files


def _made() -> dict[str, str]:
    """Return the version of the code ("by") and the present date and time ("at")."""
    from physics.trajectory.provenance import code_version

    return {"by": code_version(), "at": datetime.now(UTC).isoformat(timespec="seconds")}


def _tables(found: Sequence[Row]) -> list[Table]:
    unit = float(np.median([row["unit_core_s"]["median"] for row in found]))
    shown = [row | {"said": "-" if row["goal"] is None else f"{row['goal']:g}"} for row in found]
    return [
        table(
            f"Processes from their start to their end, in units of {unit:.2f} s of a core: a trivial prange "
            "kernel, compiled.",
            shown,
            {
                "": "{what}",
                "kernels": "{kernels}",
                "core": "{core_s:time}",
                "clock": "{clock_s:time}",
                "units of a core": "{core:spread}",
                "units on the clock": "{clock:spread}",
                "goal": "{said}",
            },
        )
    ]
