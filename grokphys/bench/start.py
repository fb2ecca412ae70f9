"""`grokphys bench start`: first calls in new processes, relative to compiling a trivial kernel."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from grokphys.bench.timing import Effort, Row, compare, goal, seconds

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
        reference = {"compile a trivial kernel": partial(_python, UNIT, folder)}
        for number, (code, (cold, warm)) in enumerate(FIRST.items()):
            name, cache = code.split("; ")[1], str(Path(folder) / str(number))
            took = seconds(partial(_python, code, cache))
            rows.append(
                {"what": f"{name}, empty cache", "ours_s": took} | goal(f"at most {cold:g} s", took <= cold)
            )
            row = compare(
                f"{name}, full cache", partial(_python, code, cache), reference, rounds=effort.rounds
            )[0]
            rows.append(row | goal(f"at most {warm:g} s", row["ours_s"] <= warm))
    return rows


BENCHMARKS = (first_calls,)
