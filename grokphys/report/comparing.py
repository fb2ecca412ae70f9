"""`grokphys compare`: two ensembles of files, and the report that compares them."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.comparison.compared import PLANAR, Comparison, compare
from analysis.comparison.timing import OnsetDifference
from analysis.plots import comparison as plots
from analysis.plots.distributions import show_distributions
from analysis.plots.style import panels
from analysis.stats.effects import Difference
from analysis.stats.intervals import is_shown
from grokphys.batches import read_each
from grokphys.output import printable, refuse_existing, write_text
from grokphys.progress import stages
from grokphys.report.page import Section, document, write_report
from grokphys.report.wording import significant
from nets.provenance import is_imported, training_sets
from physics.checks import number
from physics.errors import InputError
from physics.theory.system import predicted_accuracy
from physics.trajectory import Trajectory
from physics.trajectory.provenance import code_version

Trajectories = Sequence[Trajectory]
Accuracies = tuple[NDArray[np.float64], NDArray[np.float64]]
NAMES = {"physics.simulate": "simulated", "nets.train": "trained"}
ACCURACIES = ("train_accuracy", "validation_accuracy")
SYMBOLS = {"Cliff's delta": "δ", "Cohen's h": "h"}
LINE = 1.05
"""Effective dimension below which points lie on a line: they spread a tenth as far across it as along it."""
ANSWERS = ("yes", "no", "unclear", "unknown")


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
        Tolerance of the representation quality, greater than 0; see `physics.representation_quality`.
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
    number("delta", delta, above=0.0)
    failed: list[Path] = []
    ensembles = [[run for _, run, _ in read_each([files], _final, failed)] for files in (first, second)]
    if not all(ensembles):
        return 1
    with stages("compare", "predict accuracies", "compare", "draw and write") as begin:
        begin()
        accuracies = predicted_and_measured(ensembles[1], delta)
        begin()
        comparison = compare(
            *ensembles, names=_names(ensembles), align=align, delta=delta, accuracies=accuracies
        )
        begin()
        of = f"{comparison.runs[0]} runs of {first} and {comparison.runs[1]} runs of {second}"
        sections = write_comparison(comparison, out, of=of, overwrite=overwrite)
        numbers = write_text(out.with_suffix(".json"), comparison.to_json())
    for section in sections:
        print(*map(printable, section.text), *(f"\n{table.text()}\n" for table in section.tables), sep="\n")
    print(f"report in {out}, numbers in {numbers}")
    return 1 if failed else 0


def predicted_and_measured(trained: Trajectories, delta: float) -> Accuracies | None:
    """Return the accuracy that final embeddings predict, and the measured one (Liu, Figure 3).

    Parameters
    ----------
    trained : sequence of Trajectory
        Networks. If there are several trajectories, their runs are put one after the other.
    delta : float
        Tolerance of the representation quality; see `physics.representation_quality`.

    Returns
    -------
    pair of ndarray of float64, shape (runs,), or None
        Predicted and measured accuracies on all samples, from 0 to 1. A prediction is NaN if the run diverged
        or its final embedding does not vary on an axis. None unless all are networks of `nets.train` that
        learn sums of unordered pairs, have recorded both accuracies, have embeddings of at most 4 dimensions,
        and are of classes that have been imported.
    """
    pairs = [_accuracies(trajectory, delta) for trajectory in trained]
    if None in pairs:
        return None
    predicted, measured = (np.concatenate(values) for values in zip(*filter(None, pairs), strict=True))
    return predicted, measured


def _accuracies(trajectory: Trajectory, delta: float) -> Accuracies | None:
    if not _restorable(trajectory) or any(name not in trajectory.observables for name in ACCURACIES):
        return None
    model, examples = training_sets(trajectory)
    theory = model.theory
    if theory is None or not theory.operation.commutes or len(theory.operation.samples) != len(model.task):
        return None
    samples = theory.operation.samples
    trained, held_out = (trajectory.observables[name][:, -1].astype(np.float64) for name in ACCURACIES)
    predicted = np.full(trajectory.runs, np.nan)
    for k, (E, chosen) in enumerate(zip(trajectory.final.astype(np.float64), examples, strict=True)):
        if np.isfinite(E).all() and np.ptp(E, axis=0).all():
            predicted[k] = predicted_accuracy(E, replace(theory, pairs=samples[chosen]), delta)
    part = examples.shape[1] / len(samples)
    return predicted, part * trained + (1 - part) * held_out


def _final(trajectory: Trajectory) -> NDArray[Any]:
    """Return the final points of a trajectory, after reading the rest of what a comparison needs."""
    if _restorable(trajectory):
        training_sets(trajectory)
    return trajectory.final


def _restorable(trajectory: Trajectory) -> bool:
    """Whether an accuracy can be predicted: not for a model of a script that was not imported."""
    made = trajectory.parameters
    trained = made.get("program") == "nets.train" and trajectory.dim <= PLANAR
    return trained and is_imported(made.get("model", {}))


def _names(ensembles: Sequence[Trajectories]) -> tuple[str, str]:
    """Return names of the ensembles by what made them if that distinguishes them, otherwise A and B."""
    made = [{NAMES.get(str(run.parameters.get("program")), "") for run in each} for each in ensembles]
    if all(len(names) == 1 and "" not in names for names in made) and made[0] != made[1]:
        return made[0].pop(), made[1].pop()
    return "A", "B"


# -- the report --------------------------------------------------------------------------------------------


def write_comparison(
    comparison: Comparison, path: str | os.PathLike[str], *, of: str = "", overwrite: bool = False
) -> list[Section]:
    """Write the report of a comparison with figures and tables as one page, as ``grokphys compare`` does.

    Parameters
    ----------
    comparison : Comparison
        Result of `analysis.compare`.
    path : path
        Name of the file, such as ``comparison.html``.
    of : str, optional
        What the ensembles are, for the line below the title; by default their names and numbers of runs.
    overwrite : bool, default False
        Whether to replace the file if it exists.

    Returns
    -------
    list of Section
        The conclusion, and the sections of the page.

    Raises
    ------
    OutputError
        If the file exists and `overwrite` is False, or it cannot be written.
    """
    out, (first, second) = Path(path), comparison.names
    refuse_existing(out, overwrite, parents=True)
    of = of or f"{comparison.runs[0]} {first} runs and {comparison.runs[1]} {second} runs"
    opening, *sections = comparison_report(comparison)
    title = f"{first.capitalize()} and {second} runs compared"
    write_report(out, title, f"grokphys {code_version()}, {of}.", opening.text, sections)
    return [opening, *sections]


def comparison_report(comparison: Comparison, *, about: str = "") -> list[Section]:
    """Return the conclusion as a section, and one for each of states, motion, shapes, onsets, accuracy.

    Parameters
    ----------
    comparison : Comparison
        Results of `analysis.compare`.
    about : str, default ""
        What the ensembles are. It opens the first section, and ends the caption of its figure.
    """
    motion = comparison.motion
    pair = () if motion is None else motion.pairs[plots.typical_pair(motion)]
    return _document(comparison, _figures(comparison), about=about, pair=pair)


def _document(comparison: Any, figures: dict[str, Figure], **values: Any) -> list[Section]:
    differences = comparison.distributions.values()
    answers = {word: [one for one in differences if answer(one) == word] for word in ANSWERS}
    words: Any = {"answer": answer, "effect": effect, "side": side, "ratio": ratio, "quartiles": quartiles}
    flat = collapsed(comparison)
    return document("comparison.txt", figures, c=comparison, answers=answers, flat=flat, **words, **values)


def collapsed(comparison: Any) -> list[int]:
    """Return how many runs of each ensemble end on a line, or nothing if that was not measured."""
    dimension = comparison.distributions.get("effective_dimension")
    return [] if dimension is None else [int((values < LINE).sum()) for values in dimension.samples]


def _figures(comparison: Comparison) -> dict[str, Figure]:
    """Return the figures of a comparison by their names in the template."""
    axes: dict[str, Any] = {}
    if comparison.distributions:
        axes["quantities"] = plots.show_quantities(comparison)
    if comparison.motion is not None:
        axes["typical pair"] = plots.show_typical_pair(comparison)
        axes["motion"] = plots.show_motion(comparison)
    if comparison.shapes is not None:
        axes["distances"] = panels(1, 1, 6.2, 3.4)
        show_distributions(
            comparison.shapes.distances(comparison.names),
            axes["distances"][0, 0],
            xlabel="Procrustes disparity to the nearest shape",
            title=f"Final shapes of {comparison.names[1]} runs: distance to the nearest of …",
        )
        axes["nearest"] = plots.show_nearest(comparison)
    if comparison.onsets:
        drawn = list(comparison.onsets.values())[:3]
        axes["onsets"] = panels(1, len(drawn), max(4.1, 5.2 / len(drawn)), 3.3)
        for ax, onset in zip(axes["onsets"][0], drawn, strict=True):
            plots.show_onsets(onset, comparison.names, ax)
    if comparison.accuracy is not None:
        axes["calibration"] = panels(1, 1, 4.4, 3.9)
        title = f"{len(comparison.accuracy.predicted)} runs"
        plots.show_calibration(comparison.accuracy, axes["calibration"][0, 0], title=title)
    return {name: each[0, 0].figure for name, each in axes.items() if each is not None}


def effect(difference: Difference) -> str:
    """Return the first effect size of a difference with its symbol, such as "δ = 0.50 [0.25, 0.75]"."""
    name, size = next(iter(difference.effects.items()))
    return f"{SYMBOLS[name]} = {size.format(2)}"


def side(difference: Difference) -> str:
    """Return whether the first ensemble is "higher" or "lower"."""
    return "higher" if difference.difference.estimate > 0 else "lower"


def ratio(onset: OnsetDifference) -> str:
    """Return the ratio of the times in words; "-" if fewer than half of an ensemble reach the threshold."""
    return significant(onset.ratio) + (" (one pair)" if onset.ratio.count == 1 else "")


def answer(difference: Difference | OnsetDifference) -> str:
    """Return "yes" or "no" for a difference, "unclear" if the test and the 95 % interval disagree.

    It is "unknown" if there is no test, or no interval of a quantity; times may have none.
    """
    interval, equal = (
        (difference.ratio, 1.0) if isinstance(difference, OnsetDifference) else (difference.difference, 0.0)
    )
    known = math.isfinite(interval.low)
    if not math.isfinite(difference.p_value) or not (known or isinstance(difference, OnsetDifference)):
        return "unknown"
    if difference.differs:
        return "yes"
    shown = is_shown(difference.adjusted_p_value, difference.p_value)
    return "unclear" if shown or (known and not interval.covers(equal)) else "no"


def quartiles(values: NDArray[np.float64]) -> list[float]:
    """Return the quartiles of the finite values, with the median in the middle; nothing if there are none."""
    finite = values[np.isfinite(values)]
    return np.percentile(finite, [25, 50, 75]).tolist() if len(finite) else []
