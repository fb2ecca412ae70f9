"""`grokphys bench start`: first calls in new processes, relative to compiling a trivial kernel."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from grokphys.bench.timing import Effort, Row, compare, goal

UNIT = """
import numba, numpy

@numba.njit(parallel=True)
def double(x):
    for i in numba.prange(x.size):
        x[i] = 2 * x[i]

double(numpy.ones(10))
"""
FIRST = {
    "import physics; physics.simulate()": (8.0, 1.5),
    "import nets; nets.train(nets.ConstantAttention(), steps=10)": (15.0, 3.0),
}
"""Programs, with the seconds that they may take with an empty and with a full cache of compiled kernels."""


def _python(code: str, cache: str) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def first_calls(effort: Effort) -> list[Row]:
    """A simulation and a training in new processes, against a process that compiles one trivial kernel."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (code, (cold, warm)) in enumerate(FIRST.items()):
            for state, limit, rounds in (("empty", cold, 1), ("full", warm, effort.rounds)):
                caches = [str(Path(folder) / f"{number}")] * 20
                if state == "empty":
                    caches = [str(Path(folder) / f"{number}-{k}") for k in range(20)]
                turns = iter(caches)
                ours = lambda code=code, turns=turns: _python(code, next(turns))  # noqa: E731
                reference = {"compile a trivial kernel": partial(_python, UNIT, folder)}
                row = compare(f"{code.split('; ')[1]}, {state} cache", ours, reference, rounds=rounds)[0]
                rows.append(row | goal(f"at most {limit:g} s", row["ours_s"] <= limit))
    return rows


BENCHMARKS = (first_calls,)
