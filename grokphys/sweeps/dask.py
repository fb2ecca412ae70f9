"""Execution of the packs of a sweep on the workers of a Dask cluster.

A pack is an ensemble of runs of a sweep that one call computes and one trajectory file holds.
"""

import asyncio
import contextlib
import importlib.util
import logging
import queue
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from grokphys.sweeps.pack import Pack, program
from grokphys.sweeps.run import cores
from grokphys.sweeps.work import Outcome, load, settle, warm
from physics.errors import InputError
from physics.trajectory.provenance import code_version

ANSWER_SECONDS = 10.0
"""Seconds that a scheduler has to answer, and then its first worker to appear."""
GONE = "scheduler no longer answers; run the same sweep again to continue it"
AHEAD = 2
"""Number of packs that are submitted for each thread of a worker, so that no thread has to wait."""


class DaskCluster:
    """An executor that runs packs on the workers of a Dask scheduler.

    All workers must see the directory of the sweep under the same name. If a worker dies, Dask starts its
    packs on another one, which continues their files.

    Parameters
    ----------
    directory : Path
        Directory of the sweep.
    address : str
        Address of the scheduler, such as ``tcp://host:8786``.

    Raises
    ------
    InputError
        If Dask is not installed, the scheduler does not answer or has no workers, or one of them has another
        version of this package or of the libraries it computes with, or does not see the directory.
    """

    def __init__(self, directory: Path, address: str) -> None:
        self._directory = directory.absolute()
        self._running: dict[Any, Pack] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._client = _connected(address)
        try:
            self._workers = self._checked(address)
        except BaseException:
            self._client.close()
            raise
        self._version = version_here()

    def free(self) -> bool:
        """Return whether another pack may be submitted: at most two for each thread of the workers."""
        return len(self._running) < AHEAD * max(1, sum(self._slots().values()))

    def submit(self, pack: Pack) -> None:
        """Submit a pack to the scheduler.

        Raises
        ------
        InputError
            If the scheduler no longer answers.
        """
        key = f"{pack.name}-{uuid.uuid4().hex}"  # Dask takes equal keys for one result, also of two sweeps
        arguments = (pack, self._directory, self._threads, self._version)
        with _sentence():
            future = self._client.submit(settle_there, *arguments, key=key, pure=False)
        self._running[future] = pack
        future.add_done_callback(self._done.put)

    def finished(self, seconds: float) -> list[tuple[Pack, Outcome]]:
        """Return a pack that has finished, with its outcome.

        Parameters
        ----------
        seconds : float
            Longest time to wait for one.

        Returns
        -------
        list of pair of Pack and Outcome
            One pair, or none if no pack has finished in this time.

        Raises
        ------
        InputError
            If the scheduler no longer answers.
        """
        with contextlib.suppress(queue.Empty):
            future = self._done.get(timeout=seconds)
            if future.status not in ("finished", "error"):
                raise InputError(GONE)
            with _sentence():
                return [(self._running.pop(future), _outcome(future))]
        self._slots()
        return []

    def warm(self, packs: list[Pack]) -> None:
        """Let all workers import the libraries that some packs need, and let one compile their kernels."""
        with contextlib.suppress(Exception):  # the packs will report what is wrong
            self._client.run(load, packs)
            self._client.submit(warm, packs, pure=False).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def _slots(self) -> dict[str, int]:
        """Return the current number of threads of each worker."""
        with _sentence():
            return dict(self._client.nthreads())

    @property
    def _threads(self) -> int:
        """Number of threads for a pack, at least 1: the cores of a machine over the packs that run on it."""
        hosts: Counter[str] = Counter()
        threads = self._slots()
        for worker, count in threads.items():
            hosts[_host(worker)] += count
        shares = [self._workers.get(worker, 1) // hosts[_host(worker)] for worker in threads]
        return max(1, min(shares, default=1))

    def _checked(self, address: str) -> dict[str, int]:
        """Return the number of cores of each worker, by its address.

        Raises
        ------
        InputError
            If there is no worker, or one of them has another version or does not see the directory.
        """
        try:
            self._client.wait_for_workers(1, timeout=ANSWER_SECONDS)
        except TimeoutError:
            raise InputError(f"scheduler {address} has no workers; start some with `dask worker`") from None
        versions = self._everywhere(version_here)
        for worker, version in versions.items():
            if version != version_here():
                raise InputError(
                    f"scheduler must have workers with GrokPhys {version_here()}, got one with {version} "
                    f"({worker})"
                )
        for worker, sees in self._everywhere(sees_directory, str(self._directory)).items():
            if not sees:
                raise InputError(
                    f"directory must be one that all workers see; {worker} does not see {self._directory}"
                )
        return dict(self._everywhere(cores))

    def _everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function on every worker, and return the answers by the addresses of the workers."""
        answers = self._client.run(function, *arguments, on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, Exception):
                raise InputError(
                    f"scheduler must have workers with GrokPhys {version_here()}; {worker} cannot load it "
                    f"({answer})"
                )
        return dict(answers)


def version_here() -> str:
    """Return the version of this package, and fingerprints of the code and the libraries that make runs.

    Returns
    -------
    str
        Text that is equal on two machines if their runs come from the same code and the same libraries.
    """
    return f"{code_version()} (code and libraries {program('simulate')}, {program('train')})"


def settle_there(pack: Pack, directory: Path, threads: int, version: str) -> Outcome:
    """Run `settle` on a worker, or report a failure if it has another version of this package.

    The check is repeated here, because a worker may have joined after the others were checked.

    Parameters
    ----------
    pack : Pack
        Runs to compute.
    directory : Path
        Directory of the sweep.
    threads : int
        Number of threads that the pack may use.
    version : str
        Version that the worker must have; see `version_here`.

    Returns
    -------
    Outcome
        Outcome of the pack, which is "failed" if the versions differ.
    """
    if version_here() != version:
        return Outcome("failed", error=f"a worker has GrokPhys {version_here()}, and not {version}")
    return settle(pack, directory, threads)


def sees_directory(directory: str) -> bool:
    """Return whether the machine on which this is called sees the directory of the sweep.

    Parameters
    ----------
    directory : str
        Path of the directory.

    Returns
    -------
    bool
        True if the directory holds `sweep.json`, which the driver has written to it.
    """
    return (Path(directory) / "sweep.json").is_file()


def _outcome(future: Any) -> Outcome:
    if future.status == "finished":
        return future.result()
    return Outcome("failed", error=f"{type(future.exception()).__name__}: {future.exception()}")


@contextlib.contextmanager
def _sentence() -> Iterator[None]:
    """Raise the errors of Dask for a lost scheduler, within a block of code, as an `InputError`."""
    try:
        yield
    except (OSError, RuntimeError, TimeoutError, asyncio.CancelledError, CancelledError):
        raise InputError(GONE) from None


async def _greet(address: str) -> None:
    """Open a connection to a scheduler as Dask does, and close it."""
    from distributed.comm import connect

    comm = await asyncio.wait_for(connect(address, timeout=ANSWER_SECONDS), ANSWER_SECONDS)
    await comm.close()


def _host(worker: str) -> str:
    return worker.rpartition(":")[0]


def _connected(address: str) -> Any:
    """Return a Dask client of the scheduler at an address; raise an `InputError` if it does not answer."""
    greet(address)
    import distributed

    try:
        return distributed.Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError):
        raise InputError(_silent(address)) from None


def greet(address: str) -> None:
    """Check that a Dask scheduler answers at an address.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://host:8786``.

    Raises
    ------
    InputError
        If it does not answer, Dask is not installed, or the address is invalid.
    """
    if importlib.util.find_spec("distributed") is None:
        raise InputError("scheduler needs Dask: pip install 'grokphys[cluster]'")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # our own messages say what matters
    if not re.fullmatch(r"(\w+://)?.+:\d+", address):
        raise InputError(f"scheduler must be an address such as tcp://host:8786, got {address!r}")
    try:
        if not address.startswith("tls://"):  # a client would wait for a silent server
            with ThreadPoolExecutor(1) as thread:  # a notebook already runs an event loop
                thread.submit(lambda: asyncio.run(_greet(address))).result()
    except (OSError, ValueError, TimeoutError):
        raise InputError(_silent(address)) from None


def _silent(address: str) -> str:
    return (
        f"scheduler {address} does not answer within {ANSWER_SECONDS:g} s; give the address that "
        "`dask scheduler` shows"
    )
