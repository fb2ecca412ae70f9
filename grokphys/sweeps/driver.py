"""The driver of a sweep, which runs the packs that are not complete, and writes the index of the results.

A pack is an ensemble of runs of a sweep that one call computes and one trajectory file holds.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from grokphys.output import make_directory, refuse_unwritable
from grokphys.sweeps.config import Declaration, declaration
from grokphys.sweeps.index import Known, index_path, read_known, write_index
from grokphys.sweeps.kept import keep_declaration, written
from grokphys.sweeps.pack import Pack, packs, shard_of
from grokphys.sweeps.run import Executor, LocalPool, Serial, flavours, settle_all
from grokphys.sweeps.work import Outcome, read_complete
from physics.checks import whole_number
from physics.errors import FileFormatError, InputError


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
        Number of packs by their status: "known" from the index, or the status of `Outcome`.
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
        Number of processes on this machine, at least 1; no more are started than files are left. With 1 the
        sweep runs in this process.
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
        If the directory holds an index of another schema or of a newer version.
    OutputError
        If the directory or the index cannot be written.
    """
    tell = _tell if tell is None else tell
    whole_number("workers", workers, 1)
    whole_number("retries", retries, 0)
    if scheduler is not None and workers != 1:
        raise InputError(
            "workers must be 1 if scheduler (--scheduler) is given, because the scheduler has its own "
            "workers, "
            f"got {workers}"
        )
    chosen = chosen_packs(declared, shard)
    directory = directory.absolute()  # whoever changes the working directory does not move the sweep
    refuse_unwritable(directory)
    if scheduler is not None:
        from grokphys.sweeps.dask import greet

        greet(scheduler)
    make_directory(directory)
    known, notes = read_known(directory, declared)
    for note in [*notes, *keep_declaration(directory, declared)]:
        tell(note)
    if verify:
        known = Known()
    left = [pack for pack in chosen if pack.name not in known.finals]
    counts, failures = Counter({"known": len(chosen) - len(left)}), {}

    with tqdm(
        total=sum(len(pack.numbers) for pack in chosen),
        initial=sum(len(pack.numbers) for pack in chosen if pack.name in known.finals),
        unit="run",
        desc="sweep",
        disable=None if progress else True,
    ) as bar:

        def done(pack: Pack, outcome: Outcome) -> None:
            path = directory / pack.name
            if outcome.stamp is not None and not path.is_file():
                outcome = Outcome("failed", error=f"{path} is not there, although it was reported complete")
            counts[outcome.status] += 1
            if outcome.stamp is None:
                failures[pack.name] = outcome.error
            else:
                known.add(pack.name, outcome.finals, outcome.stamp)
            bar.update(len(pack.numbers))

        if left:
            with _executor(directory, min(workers, len(left)), scheduler) as executor:
                executor.warm(flavours(left))
                try:
                    settle_all(left, executor, retries=retries, tell=tell, done=done)
                except KeyboardInterrupt as stop:  # not the way in which a single run continues
                    stop.__notes__ = ["run the same sweep again to continue it"]
                    raise
    index = index_path(directory, shard)
    write_index(index, declared, chosen, known)
    runs = sum(len(pack.numbers) for pack in chosen)
    return Report(index, len(chosen), runs, {k: n for k, n in counts.items() if n}, failures)


def _executor(directory: Path, workers: int, scheduler: str | None) -> Executor:
    if scheduler is not None:
        from grokphys.sweeps.dask import DaskCluster

        return DaskCluster(directory, scheduler)
    return Serial(directory) if workers == 1 else LocalPool(directory, workers)


def make_index(path: Path) -> None:
    """Make a damaged index again from the files of its sweep, without running anything.

    Raises
    ------
    FileFormatError
        If the directory has no `sweep.json` of a sweep, or none of its files is of the present program.
    """
    directory = path.absolute().parent
    text = written(directory / "sweep.json")
    part = re.fullmatch(r"index(?:-(\d+)-of-(\d+))?\.h5", path.name)
    known, chosen = Known(), []
    if text is not None and part is not None:
        declared = declaration(json.loads(text))
        chosen = chosen_packs(declared, f"{part[1]}/{part[2]}" if part[1] else None)
    for pack in chosen:
        if (directory / pack.name).exists():
            outcome = read_complete(pack, directory / pack.name)
            if outcome.stamp is not None:
                known.add(pack.name, outcome.finals, outcome.stamp)
    if not known.finals:
        raise FileFormatError(f"{path} is damaged; run grokphys sweep again to make it from the files")
    write_index(path, declared, chosen, known)


def chosen_packs(declared: Declaration, shard: str | None = None) -> list[Pack]:
    """Return all packs of a sweep, or those of one shard.

    Parameters
    ----------
    declared : Declaration
        Declared sweep.
    shard : str, optional
        Shard, written ``i/n``; by default all packs are returned.

    Returns
    -------
    list of Pack
        The packs, in the order of the declaration.

    Raises
    ------
    InputError
        If a declared value is not allowed, or the shard is of another form.
    """
    whole = packs(declared)
    return whole if shard is None else shard_of(whole, shard)


def _tell(note: str) -> None:
    tqdm.write(f"grokphys: {note}", file=sys.stderr)
