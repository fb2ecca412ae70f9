"""The cost of a sweep of many runs, in seconds of one core: the runs, the division into packs, the index.

Usage: python benchmarks/sweep_scale.py [runs a cell] [cells]

The index holds random numbers in place of results, so that the sweep itself need not run. One pack of each
kind is run to measure the seconds and the bytes of a run.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from grokphys.sweeps.config import Declaration, declaration
from grokphys.sweeps.index import Known, index_path, open_sweep, read_known, write_index
from grokphys.sweeps.pack import Pack, packs
from grokphys.sweeps.work import settle

OUTCOMES = (
    "circle",
    "grid_imperfections",
    "steps_to_train_accuracy",
    "steps_to_validation_accuracy",
    "status",
)
PARTICLES = {"kind": "simulate", "fixed": {"steps": 100}, "grid": {"record_every": [1, 100]}}
NETWORKS = {"kind": "train", "fixed": {"steps": 2000}, "grid": {"record": [20, 2000]}}


def said(what: str, call: Callable[[], Any]) -> Any:
    """Call a function, and print how long it took on one core."""
    began = time.process_time()
    result = call()
    print(f"{what}: {time.process_time() - began:.2f} s")
    return result


def drawn(chosen: list[Pack], directory: Path) -> Known:
    """Return invented results and names of files for an index to hold."""
    rng, known = np.random.default_rng(0), Known()
    for pack in chosen:
        (directory / pack.name).touch()
        stamp = (directory / pack.name).stat()
        finals = {name: rng.integers(0, 2000, len(pack.numbers)).astype(float) for name in OUTCOMES}
        known.add(pack.name, finals, (stamp.st_size, stamp.st_mtime_ns))
    return known


def index_costs(sweep: Declaration, directory: Path) -> None:
    """Print the cost of dividing the sweep into packs, and of writing and reading the index."""
    chosen = said("cells and packs", lambda: packs(sweep))
    known = drawn(chosen, directory)
    path = index_path(directory)
    rows = sum(len(pack.numbers) for pack in chosen)
    said(
        f"index of {rows} runs in {len(chosen)} files, written",
        lambda: write_index(path, sweep, chosen, known),
    )
    said("index and stamps of all files, read", lambda: read_known(directory, sweep))
    said("index as a dataset on the grid", lambda: open_sweep(directory, unstack=True))
    print(f"bytes a run in the index: {path.stat().st_size / rows:.1f}")


def run_costs(content: dict[str, Any], runs: int, directory: Path) -> None:
    """Print the cost of the runs of a pack of each kind."""
    declared = declaration(content | {"fixed": content["fixed"] | {"runs": runs}})
    for pack, cell in zip(packs(declared), declared.cells, strict=True):
        pack.tiny().run(None)
        began = time.process_time()
        settle(pack, directory)
        each = 1000 * (time.process_time() - began) / runs
        size = (directory / pack.name).stat().st_size / runs
        print(f"{declared.kind} {cell.coordinates}: {each:.1f} ms of a core and {size:.0f} bytes a run")


def main(runs: int, cells: int) -> None:
    """Print all costs."""
    with tempfile.TemporaryDirectory() as name:
        run_costs(PARTICLES, 256, Path(name))
        run_costs(NETWORKS, 32, Path(name))
    values = np.geomspace(1e-4, 1e-1, round(cells**0.5)).tolist()
    grid = {"learning_rate": values, "weight_decay": values}
    sweep = declaration({"kind": "train", "fixed": {"runs": runs}, "grid": grid})
    with tempfile.TemporaryDirectory() as name:
        index_costs(sweep, Path(name))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*given, *(400, 2500)[len(given) :])
