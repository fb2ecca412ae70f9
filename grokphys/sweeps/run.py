"""Execution of the packs of a sweep in this process, or in other processes on this machine.

A pack is an ensemble of runs of a sweep that one call computes and one trajectory file holds.
"""

import contextlib
import os
import re
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from tqdm import tqdm

from grokphys.sweeps.pack import Pack
from grokphys.sweeps.work import Outcome, load, settle, warm

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

LOOK_AGAIN = 1.0
"""Seconds after which a pack that another process computes is checked again."""
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
SAME_KERNELS = ("seed", "steps", "track", "record", "record_every")
"""Parameters that, like rates, do not affect which kernels run."""


class Executor(Protocol):
    """Protocol of an object that runs packs, several at a time, here or in other processes.

    It is a context manager: its workers stop when the block ends.
    """

    def free(self) -> bool:
        """Return whether another pack may be submitted."""

    def submit(self, pack: Pack) -> None:
        """Submit a pack, which a worker then passes to `settle`."""

    def finished(self, seconds: float) -> list[tuple[Pack, Outcome]]:
        """Return the packs that have finished, each with its outcome.

        Parameters
        ----------
        seconds : float
            Longest time to wait until one has finished.

        Returns
        -------
        list of pair of Pack and Outcome
            The finished packs; none if no pack has finished in this time.
        """

    def warm(self, packs: list[Pack]) -> None:
        """Fill the caches of compiled code before many workers need them."""

    def __enter__(self) -> Self:
        """Start the executor."""

    def __exit__(self, *error: object) -> None:
        """Stop all workers."""


class Serial:
    """An executor in this process, with all its threads.

    Parameters
    ----------
    directory : Path
        Directory of the sweep.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._waiting: list[Pack] = []

    def free(self) -> bool:
        """Return whether another pack may be submitted, because no submitted pack waits to be computed."""
        return not self._waiting

    def submit(self, pack: Pack) -> None:
        """Submit a pack, which the next call of `finished` computes."""
        self._waiting.append(pack)

    def finished(self, seconds: float) -> list[tuple[Pack, Outcome]]:
        """Compute the submitted packs, and return them with their outcomes.

        If none is submitted, the call waits for so many `seconds` and returns an empty list.
        """
        if not self._waiting:
            time.sleep(seconds)
        done = [(pack, settle(pack, self._directory)) for pack in self._waiting]
        self._waiting.clear()
        return done

    def warm(self, packs: list[Pack]) -> None:
        """Do nothing, because no other process needs compiled code."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class LocalPool:
    """An executor in processes of this machine, which share its cores equally and run one pack at a time.

    Each process is a separate executor of loky. If one dies, only its pack fails, and another process takes
    its place.

    Parameters
    ----------
    directory : Path
        Directory of the sweep.
    workers : int
        Number of processes.
    """

    def __init__(self, directory: Path, workers: int) -> None:
        self._directory = directory
        self._threads = max(1, cores() // workers)
        self._idle = [process(self._threads) for _ in range(workers)]
        self._running: dict[Future[Outcome], tuple[ProcessPoolExecutor, Pack]] = {}

    def free(self) -> bool:
        """Return whether another pack may be submitted, because a process is idle."""
        return bool(self._idle)

    def submit(self, pack: Pack) -> None:
        """Submit a pack to an idle process."""
        worker = self._idle.pop()
        try:
            future = worker.submit(settle, pack, self._directory, self._threads)
        except BrokenProcessPool:  # it died while it was idle
            worker = self._replaced(worker)
            future = worker.submit(settle, pack, self._directory, self._threads)
        self._running[future] = worker, pack

    def finished(self, seconds: float) -> list[tuple[Pack, Outcome]]:
        """Return the packs that have finished, or whose processes have died.

        Parameters
        ----------
        seconds : float
            Longest time to wait until there is one.

        Returns
        -------
        list of pair of Pack and Outcome
            The packs, each with its outcome; none if no pack has finished in this time.
        """
        if not self._running:
            time.sleep(seconds)
        done = []
        for future in wait(self._running, seconds, FIRST_COMPLETED).done:
            worker, pack = self._running.pop(future)
            try:
                outcome = future.result()
            except BrokenProcessPool as death:
                found = re.search(r"exit codes? .*?\{(\w+)", str(death))
                how = f" ({found[1]})" if found else ""
                outcome = Outcome("failed", error=f"the worker process died{how}")
                worker = self._replaced(worker)
            self._idle.append(worker)
            done.append((pack, outcome))
        return done

    def warm(self, packs: list[Pack]) -> None:
        """Let one process compile the kernels of some packs, while the others wait."""
        with contextlib.suppress(BrokenProcessPool):  # it is replaced when it gets its next pack
            self._idle[-1].submit(warm, packs).result()

    def _replaced(self, worker: "ProcessPoolExecutor") -> "ProcessPoolExecutor":
        worker.shutdown(kill_workers=True)
        return process(self._threads)

    def __enter__(self) -> Self:
        for worker in self._idle:  # all import at once, while one already compiles
            worker.submit(load, [])
        return self

    def __exit__(self, *error: object) -> None:
        for worker in [*self._idle, *(worker for worker, _ in self._running.values())]:
            worker.shutdown(kill_workers=True)


def process(threads: int) -> "ProcessPoolExecutor":
    """Return an executor of one process, which starts with its first call.

    Parameters
    ----------
    threads : int
        Number of threads that the libraries in the process may use.

    Returns
    -------
    ProcessPoolExecutor
        Executor of loky with one worker. The worker ends when this process does.
    """
    from loky import ProcessPoolExecutor  # a sweep in this process does without

    return ProcessPoolExecutor(
        1, initializer=_begin, initargs=(os.getpid(),), env=dict.fromkeys(THREADS, str(threads))
    )


def settle_all(
    packs: Sequence[Pack],
    executor: Executor,
    *,
    retries: int,
    tell: Callable[[str], None],
    done: Callable[[Pack, Outcome], None],
) -> None:
    """Run packs until each is complete or has failed too often.

    Parameters
    ----------
    packs : sequence of Pack
        Packs to run.
    executor : Executor
        Executor that runs them.
    retries : int
        Number of times that a pack is tried again after a failure, if another attempt may succeed.
    tell : callable
        Function that receives each remark for the user, as a str.
    done : callable
        Function of a `Pack` and its last `Outcome`, called once for each pack.
    """
    queue, waiting = deque(packs), deque[Pack]()
    failures: Counter[str] = Counter()
    left, looked = len(queue), time.monotonic()
    while left:
        while queue and executor.free():
            executor.submit(queue.popleft())
        for pack, outcome in executor.finished(LOOK_AGAIN):
            for note in outcome.notes:
                tell(note)
            if outcome.status == "busy":
                if not waiting:
                    tell(f"{pack.name} is being written by another process; waiting for it")
                waiting.append(pack)
                continue
            failures[pack.name] += outcome.status == "failed"
            if outcome.status == "failed" and outcome.again and failures[pack.name] <= retries:
                tell(f"{pack.name}: {outcome.error}; it is tried again")
                queue.append(pack)
                continue
            left -= 1
            done(pack, outcome)
        if waiting and time.monotonic() - looked > LOOK_AGAIN:
            queue.extend(waiting)
            waiting.clear()
            looked = time.monotonic()


def flavours(packs: Iterable[Pack]) -> list[Pack]:
    """Return one tiny pack for each combination of the parameters that decide which kernels run.

    Running them compiles all kernels that the given packs need.

    Parameters
    ----------
    packs : iterable of Pack
        Packs to run later.

    Returns
    -------
    list of Pack
        Packs of one run of one step.
    """
    kept: dict[str, Pack] = {}
    for pack in packs:
        said = [
            value
            for name, value in pack.common.items()
            if name not in SAME_KERNELS and not isinstance(value, float)
        ]
        kept.setdefault(repr(said), pack)
    return [pack.tiny() for pack in kept.values()]


def _begin(driver: int) -> None:
    """Let a worker process ignore Ctrl-C, which the driver receives too, and end when the driver does.

    `driver` is the process number of the driver.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tqdm.set_lock(threading.RLock())  # its own lock would outlive a killed process
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()


def _end_with(driver: int) -> None:
    while os.getppid() == driver:
        time.sleep(LOOK_AGAIN / 4)
    os._exit(1)


def cores() -> int:
    """Return the number of processor cores, at least 1, that this process may use.

    A batch system or a container may have limited it to fewer than the machine has.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
