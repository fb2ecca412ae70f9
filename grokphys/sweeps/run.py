"""Who runs the packs of a sweep: this process, or processes of this machine that may die."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol, Self

from tqdm import tqdm

from grokphys.sweeps.pack import Pack
from grokphys.sweeps.work import Outcome, settle, warm

DEATH_SECONDS, END_SECONDS = 5.0, 0.5
LOOK_AGAIN = 1.0
"""Seconds after which a pack that another process works on is looked at again."""
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
SAME_KERNELS = ("seed", "steps", "track", "record", "record_every")
"""Parameters that decide nothing about which kernels run; nor do rates."""


class Executor(Protocol):
    """Runs `settle` for packs, several at a time."""

    def free(self) -> bool:
        """Whether another pack may be handed over."""

    def submit(self, pack: Pack) -> None:
        """Hand a pack over."""

    def finished(self, seconds: float) -> list[tuple[Pack, Outcome]]:
        """Packs that have come back, waiting for one at most so long."""

    def warm(self, packs: list[Pack]) -> None:
        """Fill the caches of compiled code before many workers look there."""

    def __enter__(self) -> Self:
        """Make ready."""

    def __exit__(self, *error: object) -> None:
        """Leave no worker behind."""


class Serial:
    """Runs packs in this process, with all its threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._waiting: list[Pack] = []

    def free(self) -> bool:
        """Whether another pack may be handed over."""
        return not self._waiting

    def submit(self, pack: Pack) -> None:
        """Hand a pack over."""
        self._waiting.append(pack)

    def finished(self, seconds: float) -> list[tuple[Pack, Outcome]]:
        """Run what was handed over."""
        if not self._waiting:
            time.sleep(seconds)
        done = [(pack, settle(pack, self._directory)) for pack in self._waiting]
        self._waiting.clear()
        return done

    def warm(self, packs: list[Pack]) -> None:
        """Nobody else looks for compiled code."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class LocalPool:
    """Runs packs in processes of this machine, a pack in each, with an equal share of its cores.

    A process that dies takes its pack with it and nothing else; another takes its place.
    """

    def __init__(self, directory: Path, workers: int) -> None:
        threads = max(1, cores() // workers)
        self._directory = directory
        self._workers = [Worker(threads) for _ in range(workers)]
        self._running: dict[Worker, Pack] = {}

    def free(self) -> bool:
        """Whether another pack may be handed over."""
        return len(self._running) < len(self._workers)

    def submit(self, pack: Pack) -> None:
        """Hand a pack to a worker that has none."""
        worker = next(worker for worker in self._workers if worker not in self._running)
        self._running[worker] = pack
        worker.send(settle, pack, self._directory, worker.threads)

    def finished(self, seconds: float) -> list[tuple[Pack, Outcome]]:
        """Packs that have come back, or whose workers have died."""
        if not self._running:
            time.sleep(seconds)
            return []
        ready = wait([worker.answers for worker in self._running], seconds)
        done = []
        for worker in [worker for worker in self._running if worker.answers in ready]:
            answer, pack = worker.receive(), self._running.pop(worker)
            done.append((pack, Outcome("failed", error=worker.death()) if answer is None else answer[0]))
        return done

    def warm(self, packs: list[Pack]) -> None:
        """Let one worker compile, while the others wait."""
        self._workers[0].send(warm, packs)
        if self._workers[0].receive() is None:
            self._workers[0].end()

    def __enter__(self) -> Self:
        for worker in self._workers:  # all import at once, while the first already compiles
            worker.start()
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.end()


class Worker:
    """A process that calls functions for us, one after the other; it starts when it is first needed."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._process: Any = None
        self._connection: Connection[Any, Any] | None = None

    def start(self) -> None:
        """Start it, if it is not running."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            with _threads_of_children(self.threads):
                self._process.start()
            theirs.close()

    def send(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Let it call a function, started anew if need be."""
        self.start()
        with contextlib.suppress(OSError):  # it has died; whoever waits for its answer will see
            self.answers.send((function, arguments))

    @property
    def answers(self) -> "Connection[Any, Any]":
        """Where its answers come from; it is ready to be read, too, once the process has died."""
        assert self._connection is not None
        return self._connection

    def receive(self) -> tuple[Any] | None:
        """What the function returned, in a tuple; None if the process has died instead."""
        try:
            return (self.answers.recv(),)
        except (EOFError, OSError):
            return None

    def death(self) -> str:
        """Say in a sentence how it died."""
        self._process.join(DEATH_SECONDS)
        code = self._process.exitcode
        self.end()
        how = signal.Signals(-code).name if code is not None and code < 0 else f"status {code}"
        return f"the worker process died ({how})"

    def end(self) -> None:
        """End it; at once, if it does not end by itself soon."""
        if self._process is not None:
            self.answers.close()  # one that waits for us ends now
            self._process.join(END_SECONDS)
            self._process.terminate()
            self._process.join()
            self._process = None


def settle_all(
    packs: Sequence[Pack],
    executor: Executor,
    *,
    retries: int,
    tell: Callable[[str], None],
    done: Callable[[Pack, Outcome], None],
) -> None:
    """Run packs until each is whole or has failed too often.

    Parameters
    ----------
    packs : sequence of Pack
    executor : Executor
    retries : int
        How many times a pack that failed is tried again, where that may help.
    tell : callable
        Takes sentences for the user.
    done : callable
        Takes each pack with its last outcome.
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
    """Return one pack of each combination of what decides which kernels run: all but rates and seeds."""
    kept: dict[str, Pack] = {}
    for pack in packs:
        said = [
            value
            for name, value in pack.common.items()
            if name not in SAME_KERNELS and not isinstance(value, float)
        ]
        kept.setdefault(repr(said), pack)
    return [pack.tiny() for pack in kept.values()]


def _serve(connection: "Connection[Any, Any]") -> None:
    """Call what comes through the connection until it is closed; end at once when the driver does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver gets it too, and decides
    tqdm.set_lock(threading.RLock())  # its own lock would outlive a killed process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            os._exit(0)  # nothing of ours is open, and taking Numba down takes a third of a second
        connection.send(function(*arguments))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextlib.contextmanager
def _threads_of_children(threads: int) -> Iterator[None]:
    """Let processes that start meanwhile find how many threads they may take."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
