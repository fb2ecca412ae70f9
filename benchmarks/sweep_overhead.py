"""The overhead of `grokphys sweep` over bare runs of about a second: serial, in processes, with Dask.

Usage: python benchmarks/sweep_overhead.py [runs [rounds]]

The reference runs the same packs in memory, in as many processes with as many threads, which have already
imported and compiled all they need. A sweep is timed from the start of the command to its end, with imports,
files and index. Every run has a separate file, which is the hardest case, because several runs in a pack
share the cost of a file. Reference and sweep take turns in each round, and the overhead is a ratio of times
from the same round. A sweep that finds all runs complete shows the part of the overhead that does not grow
with the runs. The overhead of Dask alone is measured last: the same runs in memory, given to its workers one
by one.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numba

from grokphys.bench.timing import seconds
from grokphys.sweeps.config import declaration
from grokphys.sweeps.pack import Pack, packs
from grokphys.sweeps.run import cores, flavours, process
from grokphys.sweeps.work import warm

PROCESSES = 2
SWEEP = [sys.executable, "-m", "grokphys.cli.main", "sweep"]


def content(runs: int, steps: int) -> dict[str, object]:
    """Return a sweep of particles with one run in each file."""
    fixed = {"tokens": 17, "runs": runs, "steps": steps, "record_every": max(1, steps // 100)}
    return {"kind": "simulate", "pack": 1, "fixed": fixed, "grid": {"alignment": [1.0]}}


def steps_of_a_second() -> int:
    """Return the number of steps for which one run takes a second on one thread."""
    probe = packs(declaration(content(1, 5000)))
    with process(1) as worker:
        worker.submit(warm, probe).result()
        return int(5000 / worker.submit(run_in_memory, probe).result())


def run_in_memory(part: list[Pack]) -> float:
    """Return the seconds to run packs, and to do nothing else."""
    return seconds(lambda: [pack.run(None) for pack in part])


def reference(whole: list[Pack], processes: int) -> float:
    """Return the seconds for all packs in processes that are ready, from the first start to the last end."""
    with ExitStack() as stack:
        workers = [stack.enter_context(process(max(1, cores() // processes))) for _ in range(processes)]
        for worker in workers:
            worker.submit(warm, flavours(whole)).result()
        began = time.perf_counter()
        running = [worker.submit(run_in_memory, whole[k::processes]) for k, worker in enumerate(workers)]
        for part in running:
            part.result()
        return time.perf_counter() - began


def sweep(config: Path, out: Path, *options: str) -> float:
    """Return the seconds that the command takes."""
    command = [*SWEEP, str(config), "--directory", str(out), *options]
    return seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def dask_alone(whole: list[Pack], address: str) -> float:
    """Return the seconds for all packs on workers that are ready, as Dask runs them."""
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        for worker in client.nthreads():
            client.submit(warm, flavours(whole), workers=[worker], pure=False).result()
        began = time.perf_counter()
        client.gather([client.submit(run_with_a_share, pack, pure=False) for pack in whole])
        return time.perf_counter() - began


def run_with_a_share(pack: Pack) -> float:
    """Return the seconds to run a pack with the cores of one of several workers."""
    numba.set_num_threads(max(1, cores() // PROCESSES))
    return run_in_memory([pack])


@contextmanager
def cluster(directory: Path) -> Iterator[str]:
    """Start a scheduler and workers of one thread on this machine, and yield the address of the scheduler."""
    import distributed

    with ExitStack() as stack:

        def start(program: str, *options: str) -> None:
            command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--no-dashboard", *options]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=directory))
            stack.callback(process.kill)

        file = directory / "scheduler.json"
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        for _ in range(PROCESSES):
            start("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny")
        client = distributed.Client(scheduler_file=str(file), timeout=60)
        client.wait_for_workers(PROCESSES)
        address = client.scheduler.address
        client.close()
        yield address


def main(runs: int, rounds: int) -> None:
    """Print the overhead of each method to run a sweep."""
    steps = steps_of_a_second()
    declared = declaration(content(runs, steps))
    whole = packs(declared)
    print(f"{runs} runs of {steps} steps, {cores()} cores, {rounds} rounds")
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as address:
        directory = Path(name)
        config = directory / "config.json"
        config.write_text(json.dumps(content(runs, steps)))
        modes = {
            "serial": (1, ()),
            f"{PROCESSES} processes": (PROCESSES, ("--workers", str(PROCESSES))),
            f"Dask, {PROCESSES} workers": (PROCESSES, ("--scheduler", address)),
        }
        for k, (mode, (processes, options)) in enumerate(modes.items()):
            ratios, again = [], []
            for turn in range(rounds):
                out = directory / f"{k}-{turn}"
                plain, taken = reference(whole, processes), sweep(config, out, *options)
                ratios.append(100 * (taken / plain - 1))
                again.append(sweep(config, out, *options))
                print(f"  {mode}: runs {plain:.1f} s, sweep {taken:.1f} s, again {again[-1]:.1f} s")
            print(
                f"{mode}: overhead {statistics.median(ratios):.1f} % ({min(ratios):.1f} to "
                f"{max(ratios):.1f}), a complete sweep again {statistics.median(again):.1f} s"
            )
        alone = [100 * (dask_alone(whole, address) / reference(whole, PROCESSES) - 1) for _ in range(rounds)]
        print(f"Dask alone: overhead {statistics.median(alone):.1f} % ({min(alone):.1f} to {max(alone):.1f})")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*given, *(120, 3)[len(given) :])
