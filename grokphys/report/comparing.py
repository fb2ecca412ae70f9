"""`grokphys compare`: two ensembles of files, and the report that compares them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.compare.comparison import compare
from analysis.compare.ensembles import MEASURES, PLANAR
from analysis.compare.parts import ALIGNMENTS
from grokphys.batches import read_each
from grokphys.files import resolve
from grokphys.output import printable, refuse_existing
from grokphys.progress import stages
from grokphys.report.conclusion import conclusion
from grokphys.report.side_by_side import comparison_sections, write_comparison
from nets.provenance import is_imported, training_sets
from physics.checks import number
from physics.errors import InputError
from physics.theory.quality import predicted_accuracy
from physics.trajectory import Trajectory
from physics.trajectory.provenance import code_version

LARGEST_DELTA = 1e150
"""Largest tolerance, whose square is finite."""
NAMES = {"physics.simulate": "simulated", "nets.train": "trained"}


def write_file_comparison(
    first: str, second: str, *, align: str, delta: float, out: Path, overwrite: bool
) -> int:
    """Compare the files of two patterns, print the conclusion and the tables, and write the report.

    Parameters
    ----------
    first, second : str
        File names or patterns of the two ensembles.
    align : str
        How times are matched, as in `analysis.compare`.
    delta : float
        Tolerance of the representation quality, greater than 0 and at most 1e150; see
        `physics.representation_quality`.
    out : Path
        Name of the report, which ends in ``.html``. The numbers are written next to it as JSON.
    overwrite : bool
        Whether to replace files that exist.

    Returns
    -------
    int
        Exit status: 1 if a file could not be read, otherwise 0.

    Raises
    ------
    InputError
        If `out`, `align` or `delta` is not allowed, or a pattern matches no file.
    FileNotFoundError
        If a file does not exist.
    OutputError
        If a file exists and `overwrite` is False, or cannot be written.
    """
    if out.suffix != ".html":
        raise InputError(f"out must be a name that ends in .html, got {str(out)!r}")
    for path in (out, out.with_suffix(".json")):
        refuse_existing(path, overwrite, parents=True)
    _refuse_alignment(align, (first, second))
    number("delta", delta, maximum=LARGEST_DELTA, above=0.0)
    failed: list[Path] = []
    ensembles = [_read(pattern, failed) for pattern in (first, second)]
    if not all(ensembles):
        return 1
    with stages("compare", "predict accuracies", "compare", "draw", "write") as begin:
        begin()
        accuracies = predicted_and_measured(ensembles[1], delta)
        begin()
        comparison = compare(
            *ensembles, names=_names(ensembles), align=align, delta=delta, accuracies=accuracies
        )
        begin()
        sections = comparison_sections(comparison, *ensembles)
        begin()
        for sentence in conclusion(comparison):
            print(printable(sentence))
        for section in sections:
            for part in (*map(printable, section.text), *(f"\n{table.text()}\n" for table in section.tables)):
                print(part)
        counts = f"{comparison.runs[0]} runs of {first} and {comparison.runs[1]} runs of {second}"
        title = f"{comparison.names[0].capitalize()} and {comparison.names[1]} runs compared"
        subtitle = f"grokphys {code_version()}, {counts}."
        page, numbers = write_comparison(out, title, subtitle, comparison, sections)
    print(f"report in {page}, numbers in {numbers}")
    return 1 if failed else 0


def _refuse_alignment(align: str, patterns: Sequence[str]) -> None:
    """Refuse an alignment that is neither a method nor an observable of both ensembles.

    Only the header of the first file of each pattern is read, because a comparison of many files takes
    minutes. A file that cannot be opened is left to the reader, which names it.
    """
    if align in ("auto", *ALIGNMENTS, *MEASURES):
        return
    for pattern in patterns:
        try:
            held = sorted(Trajectory.open(resolve([pattern])[0]).observables)
        except (ValueError, OSError):
            continue
        if align not in held:
            methods = ", ".join(map(repr, ("auto", *ALIGNMENTS)))
            raise InputError(
                f"align must be {methods}, or an observable of both ensembles, got {align!r}; "
                f"{pattern} has {', '.join(sorted({*held, *MEASURES}))}"
            )


def predicted_and_measured(
    trained: list[Trajectory], delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the accuracy that final embeddings predict, and the measured one (Liu, Figure 3).

    Parameters
    ----------
    trained : list of Trajectory
        Networks. If there are several trajectories, their runs are put one after the other.
    delta : float
        Tolerance of the representation quality, greater than 0 and at most 1e150; see
        `physics.representation_quality`.

    Returns
    -------
    pair of ndarray of float64, shape (runs,), or None
        Predicted and measured accuracies on all samples, from 0 to 1. A prediction is NaN if the run diverged
        or its final embedding does not vary on an axis. None unless all are networks of `nets.train` that
        learn sums of unordered pairs, have recorded both accuracies, and have embeddings
        of at most 4 dimensions, and the classes of their models have been imported.
    """
    pairs = [_accuracies(one, delta) for one in trained]
    found = [pair for pair in pairs if pair is not None]
    if len(found) < len(pairs):
        return None
    predicted, measured = (np.concatenate(values) for values in zip(*found, strict=True))
    return predicted, measured


def _accuracies(one: Trajectory, delta: float) -> Any:
    if not _restorable(one):
        return None
    names = ("train_accuracy", "validation_accuracy")
    model, examples = training_sets(one)
    theory = model.theory
    if theory is None or not theory.operation.commutes or any(name not in one.observables for name in names):
        return None
    samples = theory.operation.samples
    if len(samples) != len(model.task):
        return None
    part = examples.shape[1] / len(samples)
    right, held = (one.observables[name][:, -1].astype(np.float64) for name in names)
    predicted = np.full(one.runs, np.nan)
    for k, (E, chosen) in enumerate(zip(one.final.astype(np.float64), examples, strict=True)):
        if np.isfinite(E).all() and np.ptp(E, axis=0).all():
            predicted[k] = predicted_accuracy(E, replace(theory, pairs=samples[chosen]), delta)
    return predicted, part * right + (1 - part) * held


def _read(pattern: str, failed: list[Path]) -> list[Trajectory]:
    """Open the trajectories of a pattern; files that cannot be read are named and added to `failed`."""
    return [one for _, one, _ in read_each([pattern], _final, failed)]


def _final(one: Trajectory) -> NDArray[Any]:
    """Return the final points of a trajectory, after reading the rest of what a comparison needs."""
    if _restorable(one):
        training_sets(one)
    return one.final


def _restorable(one: Trajectory) -> bool:
    """Return whether an accuracy can be predicted: not for a model of a script that was not imported."""
    made = one.parameters
    return made.get("program") == "nets.train" and one.dim <= PLANAR and is_imported(made.get("model", {}))


def _names(ensembles: list[list[Trajectory]]) -> tuple[str, str]:
    """Return names of the ensembles by what made them if that distinguishes them, otherwise A and B."""
    made = [{NAMES.get(str(one.parameters.get("program")), "") for one in each} for each in ensembles]
    if all(len(names) == 1 and "" not in names for names in made) and made[0] != made[1]:
        return made[0].pop(), made[1].pop()
    return "A", "B"
