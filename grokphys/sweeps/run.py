"""Running a sweep: its packs by an executor with the interface of `concurrent.futures`, and its index.

A pack is an ensemble of runs of a sweep that one call computes and one trajectory file holds. Packs run in
this process, in processes of this machine, or on the workers of a Dask cluster.
"""

import asyncio
import contextlib
import importlib.util
import multiprocessing
import os
import re
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
from grokphys.sweeps import index as indices
from grokphys.sweeps.config import Declaration
from grokphys.sweeps.pack import Pack, chosen_packs, program
from grokphys.sweeps.work import Outcome, complete, settle, version_here
from physics.checks import whole_number
from physics.errors import InputError

LOOK_AGAIN = 1.0
"""Seconds after which a pack that another process computes is checked again."""
ANSWER_SECONDS = 10.0
"""Seconds that a scheduler has to answer, and then its first worker to appear."""
GONE = "scheduler no longer answers; run the same sweep again to continue it"


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


def run_sweep(
    declared: Declaration,
    directory: Path,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    shard: str | None = None,
    retries: int = 2,
    verify: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Report:
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
        If an argument or a declared value is not allowed, the scheduler or a worker is not suitable, or the
        directory holds a `sweep.json` that no sweep has written.
    FileFormatError
        If the directory holds an index of a newer version.
    OutputError
        If the directory or the index cannot be written.
    """
    tell = tell or _tell
    whole_number("workers", workers, 1)
    whole_number("retries", retries, 0)
    if scheduler is not None and workers != 1:
        raise InputError(
            f"workers must be 1 if scheduler is given, which has workers of its own, got {workers}"
        )
    chosen = chosen_packs(declared, shard)
    directory = directory.absolute()  # whoever changes the working directory does not move the sweep
    refuse_unwritable(directory)
    client = None if scheduler is None else connected(scheduler)
    with client or contextlib.nullcontext():
        make_directory(directory)
        index = indices.index_path(directory, shard)
        try:
            if indices.read_attributes(index)["program"] != program(declared.kind):
                tell(f"{index} is of other code or other libraries; its files stay, and runs are made again")
        except FileNotFoundError:
            pass
        except indices.DamagedIndexError as error:
            tell(f"{error}; it is made again from the files")
        for note in indices.keep_declaration(directory, declared):
            tell(note)
        left, finals, failures = [], {}, {}
        counts: Counter[str] = Counter()
        runs = sum(len(pack.numbers) for pack in chosen)
        with tqdm(total=runs, unit="run", desc="sweep", disable=None if progress else True) as bar:
            for pack in chosen:
                outcome = None if verify else complete(pack, directory / pack.name)
                if outcome is None:
                    left.append(pack)
                    continue
                counts["found"] += 1
                finals[pack.name] = outcome.finals
                bar.update(len(pack.numbers))
            try:
                with settling(directory, min(workers, len(left)), client) as settle_each:
                    for pack, outcome in settled(left, settle_each, retries, tell):
                        path = directory / pack.name
                        if outcome.status != "failed" and not path.is_file():
                            outcome = Outcome("failed", error=f"{path} is gone, although it was complete")
                        counts[outcome.status] += 1
                        if outcome.status == "failed":
                            failures[pack.name] = outcome.error
                        else:
                            finals[pack.name] = outcome.finals
                        bar.update(len(pack.numbers))
            except KeyboardInterrupt as stop:  # not in the way in which a single run continues
                stop.__notes__ = ["run the same sweep again to continue it"]
                raise
    indices.write_index(index, declared, chosen, finals)
    return Report(index, len(chosen), runs, dict(counts), failures)


Settle = Callable[[Sequence[Pack]], Iterator[tuple[Pack, Outcome]]]
"""Function that computes packs and yields each with its outcome."""


def settled(
    packs: Sequence[Pack], settle_each: Settle, retries: int, tell: Callable[[str], None]
) -> Iterator[tuple[Pack, Outcome]]:
    """Run packs round by round until each is complete or has failed too often, and yield their last outcomes.

    A pack that may succeed is tried again up to `retries` times, and `tell` receives remarks for the user.
    """
    failures: Counter[str] = Counter()
    left, told = list(packs), False
    while left:
        again, busy = [], []
        for pack, outcome in settle_each(left):
            for note in outcome.notes:
                tell(note)
            failures[pack.name] += outcome.status == "failed"
            if outcome.status == "busy":
                busy.append(pack)
                if not told:
                    tell(f"{pack.name} is being written by another process; waiting for it")
                told = True
            elif outcome.status == "failed" and outcome.again and failures[pack.name] <= retries:
                tell(f"{pack.name}: {outcome.error}; it is tried again")
                again.append(pack)
            else:
                yield pack, outcome
        if busy and not again:
            time.sleep(LOOK_AGAIN)
        left = again + busy


@contextlib.contextmanager
def settling(directory: Path, workers: int, client: Any) -> Iterator[Settle]:
    """Start to compute packs: in this process, in processes, or by a Dask client."""
    if client is not None:
        executor = client.get_executor(pure=False)
        threads, version = _checked(client, directory), version_here()
        yield partial(_submitted, executor, directory, threads, version, partial(_alive, client))
    elif workers > 1:
        threads = max(1, cores() // workers)
        with processes(workers, threads) as executor:
            yield partial(_submitted, executor, directory, threads, None, lambda: None)
    else:
        yield lambda packs: ((pack, settle(pack, directory)) for pack in packs)


def _submitted(
    executor: futures.Executor,
    directory: Path,
    threads: int,
    version: str | None,
    check: Callable[[], object],
    packs: Sequence[Pack],
) -> Iterator[tuple[Pack, Outcome]]:
    """Compute packs by an executor. `check` may raise while none has finished for some seconds."""
    pending = {executor.submit(settle, pack, directory, threads, version): pack for pack in packs}
    while pending:
        finished = futures.wait(pending, 5 * LOOK_AGAIN, futures.FIRST_COMPLETED).done
        for future in finished:
            pack = pending.pop(future)
            if future.cancelled():
                raise InputError(GONE)
            error = future.exception()
            if error is None:
                yield pack, future.result()
            else:
                died = isinstance(error, futures.BrokenExecutor)
                reason = "the worker process died" if died else f"{type(error).__name__}: {error}"
                yield pack, Outcome("failed", error=reason)
        if not finished:
            check()


@contextlib.contextmanager
def processes(workers: int, threads: int) -> Iterator[futures.Executor]:
    """Start an executor of processes with so many threads; one that dies takes only its own call along.

    Each thread of the executor has a process. They are spawned, because a forked one would hang in the
    threads of Numba and PyTorch, and killed if the block ends by an exception.
    """
    context, own = multiprocessing.get_context("spawn"), threading.local()
    before, pools = set(multiprocessing.active_children()), []

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        if not hasattr(own, "pool"):
            own.pool = futures.ProcessPoolExecutor(1, context, _begin, (threads,))
            pools.append(own.pool)
        try:
            return own.pool.submit(function, *arguments).result()
        except futures.BrokenExecutor:
            del own.pool
            raise

    class Processes(futures.ThreadPoolExecutor):
        def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Any:
            return super().submit(call, function, *arguments, **options)

    executor = Processes(workers)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        raise
    finally:
        executor.shutdown()
        for pool in pools:
            pool.shutdown()


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


def cores() -> int:
    """Return the number of processor cores that this process may use, which a batch system may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def connected(address: str) -> Any:
    """Return a client of the Dask scheduler at an address such as ``tcp://host:8786``.

    Raises
    ------
    InputError
        If it does not answer, it has no workers, Dask is not installed, or the address is invalid.
    """
    if importlib.util.find_spec("distributed") is None:
        raise InputError("scheduler needs Dask: pip install 'grokphys[cluster]'")
    if not re.fullmatch(r"(\w+://)?.+:\d+", address):
        raise InputError(f"scheduler must be an address such as tcp://host:8786, got {address!r}")
    import logging

    import distributed

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # our own messages say what matters
    try:
        if not address.startswith("tls://"):  # a client would wait for a silent server
            with futures.ThreadPoolExecutor(1) as thread:  # a notebook already runs an event loop
                thread.submit(asyncio.run, _greet(address)).result()
        client = distributed.Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError):
        limit = f"{ANSWER_SECONDS:g} s; give the address that `dask scheduler` shows"
        raise InputError(f"scheduler {address} does not answer within {limit}") from None
    try:
        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
    except TimeoutError:
        client.close()
        raise InputError(f"scheduler {address} has no workers; start some with `dask worker`") from None
    return client


async def _greet(address: str) -> None:
    """Open a connection to a scheduler as Dask does, and close it."""
    from distributed.comm import connect

    comm = await asyncio.wait_for(connect(address, timeout=ANSWER_SECONDS), ANSWER_SECONDS)
    await comm.close()


def _checked(client: Any, directory: Path) -> int:
    """Return the number of threads for a pack: the cores of a machine over the worker threads on it.

    An `InputError` refuses workers of another version, or that do not see the directory.
    """
    versions = client.run(version_here, on_error="return")
    for worker, version in versions.items():
        if version != version_here():
            got = f"got one with {version} ({worker})"
            raise InputError(f"scheduler must have workers with GrokPhys {version_here()}, {got}")
    for worker, sees in client.run(Path.is_file, directory / "sweep.json").items():
        if not sees:
            raise InputError(f"directory must be one that all workers see; {worker} does not see {directory}")
    hosts: Counter[str] = Counter()
    for worker, count in client.nthreads().items():
        hosts[worker.rpartition(":")[0]] += count
    shares = [count // hosts[worker.rpartition(":")[0]] for worker, count in client.run(cores).items()]
    return max(1, min(shares, default=1))


def _alive(client: Any) -> None:
    """Raise an `InputError` if the scheduler does not answer."""
    try:
        client.nthreads()
    except Exception:
        raise InputError(GONE) from None


def _tell(note: str) -> None:
    tqdm.write(f"grokphys: {note}", file=sys.stderr)
