"""`grokphys sweep`: a declared grid or list, packed into ensembles, run anywhere, indexed as one dataset."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from grokphys.options import Switch, given_otherwise


def sweep(
    config: Annotated[Positional[Path], tyro.conf.arg(metavar="CONFIG")],
    *,
    directory: Annotated[
        Path | None, given_otherwise("results/sweep/NAME for NAME.toml", "DIRECTORY")
    ] = None,
    workers: int = 1,
    scheduler: Annotated[str | None, given_otherwise("none", "ADDRESS")] = None,
    shard: Annotated[str | None, given_otherwise("the whole sweep", "I/N")] = None,
    retries: int = 2,
    verify: Switch = False,
    dry_run: Switch = False,
) -> int:
    """Run a declared grid or list of simulations or trainings, and index all runs as one dataset.

    Runs that are complete are not computed again, and unfinished runs continue.

    Example: grokphys sweep docs/sweeps/networks.toml --workers 2

    Args:
        config: Configuration, a TOML or JSON file with the entry kind (simulate or train) and any of fixed,
            grid, list and pack. The page docs/guide/sweeps.md explains them.
        directory: Directory to write to. It will hold the trajectories and the index of the sweep. Complete
            files in it are kept.
        workers: Number of processes on this machine, at least 1. With 1 the sweep runs in this process, with
            all its threads.
        scheduler: Address of a Dask scheduler, tcp://HOST:PORT. Its workers run the sweep instead of
            processes on this machine.
        shard: Part of the sweep to run, written i/n for part i of n (i from 1 to n), such as one job of a job
            array.
        retries: Number of times, at least 0, that a file is tried again after a failure.
        verify: Read every complete file from beginning to end. Without this option only its last frame is
            read.
        dry_run: Only report what there is to run.
    """
    from grokphys.sweeps.config import read_declaration
    from grokphys.sweeps.pack import chosen_packs
    from grokphys.sweeps.run import run_sweep  # imports h5py and more

    declared = read_declaration(config)
    directory = Path("results/sweep") / config.stem if directory is None else directory
    if dry_run:
        chosen = chosen_packs(declared, shard)
        runs = sum(len(pack.numbers) for pack in chosen)
        print(f"{len(declared.cells)} cells, {runs} runs in {len(chosen)} files: would be in {directory}")
        return 0
    report = run_sweep(
        declared, directory, workers=workers, scheduler=scheduler, shard=shard, retries=retries,
        verify=verify, progress=True,
    )  # fmt: skip
    counts = ", ".join(f"{count} {status}" for status, count in report.counts.items())
    print(f"{report.runs} runs in {report.packs} files ({counts}), index in {report.index}")
    for reason, count in Counter(report.failures.values()).items():
        first = next(name for name, why in report.failures.items() if why == reason)
        others = f" and {count - 1} more" if count > 1 else ""
        print(f"grokphys: error: {first}{others} failed: {reason}", file=sys.stderr)
    return 1 if report.failures else 0
