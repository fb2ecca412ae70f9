"""The run of a sweep: an executor with the interface of `concurrent.futures` settles its packs.

The executor is a pool of processes of this machine, or the workers of a Dask cluster.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits
from tqdm import tqdm

from grokphys.output import make_directory, refuse_unwritable
from grokphys.sweeps.config import Declaration
from grokphys.sweeps.index import index_path, program_of, write_index
from grokphys.sweeps.pack import Pack, chosen_packs, program
from grokphys.sweeps.work import MOST_THREADS, Outcome, complete, settle
from physics.checks import whole_number
from physics.errors import InputError, InUseError
from physics.trajectory.locks import LockedFile

LOOK_AGAIN = 1.0
"""Seconds after which a pack that another process computes is checked again."""
DIED = "a worker process died"
ANSWER_SECONDS = 10.0
"""Seconds that a scheduler has to answer, and then its first worker to appear."""


@dataclass(frozen=True)
class Report:
    """Summary of a sweep that has run.

    Attributes
    ----------
    index : Path
        The index file.
    packs, runs : int
        Numbers of packs, each of which fills one file, and of runs.
    counts : dict of str to int
        Number of packs by the status of their `Outcome`.
    failures : dict of str to str
        Reasons why files could not be made, by the name of the file.
    """

    index: Path
    packs: int
    runs: int
    counts: dict[str, int]
    failures: dict[str, str]


def _tell(note: str) -> None:
    tqdm.write(f"grokphys: {note}", file=sys.stderr)


def run_sweep(
    declared: Declaration, directory: Path, *, workers: int = 1, scheduler: str | None = None,
    shard: str | None = None, retries: int = 2, verify: bool = False, progress: bool = False,
    tell: Callable[[str], None] = _tell,
) -> Report:  # fmt: skip
    """Run a declared sweep into the files of a directory, and write its index.

    The sweep has no state outside these files. If it is killed, it continues to the same bits when it is run
    again, by any user and in any number of processes.

    Parameters
    ----------
    declared : Declaration
        The sweep; see `grokphys.sweeps.config`.
    directory : Path
        Directory of the sweep, which is created if it does not exist.
    workers : int, default 1
        Number of processes on this machine, at least 1. With 1 the sweep runs in this process.
    scheduler : str, optional
        Address of a Dask scheduler whose workers run the sweep instead.
    shard : str, optional
        Part of the sweep to run, written ``i/n``; by default all of it.
    retries : int, default 2
        Number of times that a file is tried again after a failure, at least 0.
    verify : bool, default False
        Whether to read every complete file from beginning to end.
    progress : bool, default False
        Whether to show a bar on stderr, if that is a terminal.
    tell : callable, optional
        Function that receives sentences for the user; by default they are printed on stderr.

    Returns
    -------
    Report
        Numbers of packs and runs, and the failures.

    Raises
    ------
    InputError
        If an argument or a declared value is not allowed, or the scheduler or a worker is not suitable.
    OutputError
        If the directory or the index cannot be written.
    """
    whole_number("workers", workers, 1)
    whole_number("retries", retries, 0)
    if scheduler is not None and workers != 1:
        raise InputError(
            f"workers must be 1 if scheduler is given, which has workers of its own, got {workers}"
        )
    packs = chosen_packs(declared, shard)
    directory = directory.absolute()  # whoever changes the working directory does not move the sweep
    refuse_unwritable(directory)
    client = None if scheduler is None else connected(scheduler)
    make_directory(directory)
    for worker, sees in client.run(Path.is_dir, directory).items() if client else ():
        if not sees:
            raise InputError(f"directory must be one that all workers see; {worker} does not see {directory}")
    index = index_path(directory, shard)
    if program_of(index) not in (None, program(declared.kind)):
        tell(f"{index} is of other code or other libraries; its files stay, and runs are made again")
    runs = sum(len(pack.numbers) for pack in packs)
    bar = tqdm(total=runs, unit="run", desc="sweep", disable=None if progress else True)
    outcomes: dict[str, Outcome] = {}
    with client or contextlib.nullcontext(), bar:
        try:
            once = partial(_round, directory=directory, workers=workers, client=client)
            for pack, outcome in _outcomes(packs, directory, once, retries, verify, tell):
                outcomes[pack.name] = outcome
                bar.update(len(pack.numbers))
        except KeyboardInterrupt as stop:  # not in the way in which a single run continues
            stop.__notes__ = ["run the same sweep again to continue it"]
            raise
    failures = {name: outcome.error for name, outcome in outcomes.items() if outcome.status == "failed"}
    finals = {name: outcome.finals for name, outcome in outcomes.items() if name not in failures}
    write_index(index, declared, packs, finals)
    counts = Counter[str](outcome.status for outcome in outcomes.values())
    return Report(index, len(packs), runs, dict(counts), failures)


def _outcomes(
    packs: Sequence[Pack], directory: Path, once: Any, retries: int, verify: bool, tell: Callable[[str], None]
) -> Iterator[tuple[Pack, Outcome]]:
    """Settle packs round by round, until each is complete or has failed too often; yield their outcomes.

    `once` settles packs once, as `_round` does.
    """
    left, failures = [], Counter[str]()
    for pack in packs:
        outcome = None if verify else complete(pack, directory / pack.name)
        if outcome is None:
            left.append(pack)
        else:
            yield pack, outcome
    while left:
        later, settled, lost = [], 0, 0
        for pack, outcome in once(left):
            for note in outcome.notes:
                tell(note)
            if outcome.error == DIED and settled:  # a death ends the pool; others are not to blame
                lost += 1
                later.append(pack)
                continue
            failures[pack.name] += outcome.status == "failed"
            if outcome.status == "busy":
                later.append(pack)
            elif outcome.status == "failed" and outcome.again and failures[pack.name] <= retries:
                tell(f"{pack.name}: {outcome.error}; it is tried again")
                later.append(pack)
            else:
                settled += outcome.status != "failed"
                yield pack, outcome
        if lost:
            tell(f"{DIED}; {lost} files are begun again or resumed")
        left, written = later, [directory / f"{pack.name}.partial" for pack in later]
        if left and all(map(_is_written, written)):
            tell(f"{left[0].name} is being written by another process; waiting for it")
            while all(map(_is_written, written)):
                time.sleep(LOOK_AGAIN)


def _is_written(partial: Path) -> bool:
    """Return whether another process writes an unfinished file."""
    try:
        if partial.exists():
            LockedFile(partial).close()
    except InUseError:
        return True
    return False


def _round(
    packs: Sequence[Pack], directory: Path, workers: int, client: Any
) -> Iterator[tuple[Pack, Outcome]]:
    """Settle each pack once, here, in several processes or by a Dask client; yield it with its outcome."""
    workers = min(workers, len(packs))
    if client is None and workers == 1:
        yield from ((pack, settle(pack, directory)) for pack in packs)
        return
    threads = 1 if client else max(1, MOST_THREADS // workers)
    pool = contextlib.nullcontext(client.get_executor(pure=False)) if client else _processes(workers, threads)
    with pool as executor:
        pending = {executor.submit(settle, pack, directory, threads): pack for pack in packs}
        for future in futures.as_completed(pending):
            if future.cancelled():
                raise InputError("scheduler no longer answers; run the same sweep again to continue it")
            error = future.exception()
            if error is None:
                yield pending[future], future.result()
            else:
                died = isinstance(error, futures.BrokenExecutor)
                yield pending[future], Outcome("failed", error=DIED if died else repr(error))


@contextlib.contextmanager
def _processes(workers: int, threads: int) -> Iterator[futures.Executor]:
    """Start an executor of processes, which are killed if the block ends by an exception.

    They are spawned, because a forked one would hang in the threads of Numba and PyTorch.
    """
    before, spawn = multiprocessing.active_children(), multiprocessing.get_context("spawn")
    with futures.ProcessPoolExecutor(workers, spawn, _begin, (threads,)) as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                if process not in before:
                    process.kill()
            raise


def _begin(threads: int) -> None:
    """Let a worker process use so many threads, ignore Ctrl-C, which the driver gets too, and end with it."""
    threadpool_limits(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tqdm.set_lock(threading.RLock())  # its own semaphore would outlive a killed process
    driver = multiprocessing.parent_process()

    def end() -> None:
        if driver is not None:
            driver.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def connected(address: str) -> Any:
    """Return a client of the Dask scheduler at an address such as ``tcp://host:8786``.

    Raises
    ------
    InputError
        If Dask is not installed, or the scheduler does not answer or has no workers.
    """
    try:
        import distributed
    except ImportError:
        raise InputError("scheduler needs Dask: pip install 'grokphys[cluster]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # our own messages say what matters
    try:
        client = distributed.Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
    except (OSError, ValueError, TimeoutError):
        raise InputError(
            f"scheduler {address} does not answer or has no workers within {ANSWER_SECONDS:g} s; give the "
            "address that `dask scheduler` shows, and start some with `dask worker`"
        ) from None
    return client
