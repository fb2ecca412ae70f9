"""`grokphys compare`: two ensembles of files, and the report that compares them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.comparison.compared import ALIGNMENTS, MEASURES, PLANAR, Comparison, compare
from analysis.comparison.timing import OnsetDifference
from analysis.plots.comparison import (
    show_calibration,
    show_motion,
    show_nearest,
    show_onsets,
    show_quantities,
    show_typical_pair,
    typical_pair,
)
from analysis.plots.distributions import show_distributions
from analysis.plots.style import panels
from analysis.stats.effects import Difference
from analysis.stats.intervals import Interval, is_shown, readable
from grokphys.batches import read_each
from grokphys.files import resolve
from grokphys.output import printable, refuse_existing, write_text
from grokphys.progress import stages
from grokphys.report.page import Picture, Section, Table, sentences, write_report
from grokphys.report.wording import caption, median_time, p_value, rounded, significant
from nets.provenance import is_imported, training_sets
from physics.checks import number
from physics.errors import InputError
from physics.theory.quality import predicted_accuracy
from physics.trajectory import Trajectory, load
from physics.trajectory.provenance import code_version

Trajectories = Sequence[Trajectory]
Accuracies = tuple[NDArray[np.float64], NDArray[np.float64]]
LARGEST_DELTA = 1e150
"""Largest tolerance, whose square is finite."""
NAMES = {"physics.simulate": "simulated", "nets.train": "trained"}
PERCENT = ("circles",)
SYMBOLS = {"Cliff's delta": "δ", "Cohen's h": "h"}


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
    ensembles = [[one for _, one, _ in read_each([each], _final, failed)] for each in (first, second)]
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
        write_report(out, title, subtitle, conclusion(comparison), sections)
        numbers = write_text(out.with_suffix(".json"), comparison.to_json())
    print(f"report in {out}, numbers in {numbers}")
    return 1 if failed else 0


def _refuse_alignment(align: str, patterns: Sequence[str]) -> None:
    """Refuse an alignment that is neither a method nor an observable in the first file of each pattern.

    A comparison of many files takes minutes. A file that cannot be opened is left to the reader.
    """
    if align in ("auto", *ALIGNMENTS, *MEASURES):
        return
    for pattern in patterns:
        try:
            held = sorted(load(resolve([pattern])[0]).observables)
        except (ValueError, OSError):
            continue
        if align not in held:
            methods = ", ".join(map(repr, ("auto", *ALIGNMENTS)))
            raise InputError(
                f"align must be {methods}, or an observable of both ensembles, got {align!r}; "
                f"{pattern} has {', '.join(sorted({*held, *MEASURES}))}"
            )


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
    pairs = [_accuracies(one, delta) for one in trained]
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return None
    predicted, measured = (np.concatenate(values) for values in zip(*known, strict=True))
    return predicted, measured


def _accuracies(one: Trajectory, delta: float) -> Accuracies | None:
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
    right, held_out = (one.observables[name][:, -1].astype(np.float64) for name in names)
    predicted = np.full(one.runs, np.nan)
    for k, (E, chosen) in enumerate(zip(one.final.astype(np.float64), examples, strict=True)):
        if np.isfinite(E).all() and np.ptp(E, axis=0).all():
            predicted[k] = predicted_accuracy(E, replace(theory, pairs=samples[chosen]), delta)
    return predicted, part * right + (1 - part) * held_out


def _final(one: Trajectory) -> NDArray[Any]:
    """Return the final points of a trajectory, after reading the rest of what a comparison needs."""
    if _restorable(one):
        training_sets(one)
    return one.final


def _restorable(one: Trajectory) -> bool:
    """Whether an accuracy can be predicted: not for a model of a script that was not imported."""
    made = one.parameters
    return made.get("program") == "nets.train" and one.dim <= PLANAR and is_imported(made.get("model", {}))


def _names(ensembles: Sequence[Trajectories]) -> tuple[str, str]:
    """Return names of the ensembles by what made them if that distinguishes them, otherwise A and B."""
    made = [{NAMES.get(str(one.parameters.get("program")), "") for one in each} for each in ensembles]
    if all(len(names) == 1 and "" not in names for names in made) and made[0] != made[1]:
        return made[0].pop(), made[1].pop()
    return "A", "B"


# -- the report --------------------------------------------------------------------------------------------


def comparison_sections(
    comparison: Comparison, first: Trajectories, second: Trajectories, *, about: str = ""
) -> list[Section]:
    """Return a section for each part that the ensembles allow: states, motion, shapes, onsets, accuracy.

    Parameters
    ----------
    comparison : Comparison
        Results of `analysis.compare`.
    first, second : sequence of Trajectory
        The two ensembles.
    about : str, default ""
        What the ensembles are. It opens the first section, and ends the caption of its figure.
    """
    text = [*filter(None, [about]), *findings(comparison), *(f"Note: {note}." for note in comparison.notes)]
    tables, pictures = [], []
    if comparison.distributions:
        tables = [distribution_table(comparison)]
        words = caption("compare", "quantities", about=about)
        pictures = [Picture(words, show_quantities(comparison)[0, 0].figure)]
    sections = [Section("Side by side", text, tables, pictures)]
    if comparison.motion is not None:
        text = sentences("comparison.txt", "motion", comparison)
        pictures = _motion_pictures(comparison, first, second)
        sections.append(Section("Motion", text, [motion_table(comparison)], pictures))
    if comparison.shapes is not None:
        pictures = _shape_pictures(comparison, first, second)
        sections.append(
            Section("Final shapes", [caption("compare", "shapes_text")], [shape_table(comparison)], pictures)
        )
    if comparison.onsets:
        shown = list(comparison.onsets.values())[:3]
        axes = panels(1, len(shown), max(4.1, 5.2 / len(shown)), 3.3)
        for ax, onset in zip(axes[0], shown, strict=True):
            show_onsets(onset, comparison.names, ax)
        pictures = [Picture(caption("compare", "onset_curves"), axes[0, 0].figure)]
        text = [caption("compare", "onsets_text")]
        sections.append(Section("When thresholds are reached", text, [onset_table(comparison)], pictures))
    if comparison.accuracy is not None:
        ax = panels(1, 1, 4.4, 3.9)[0, 0]
        show_calibration(comparison.accuracy, ax, title=f"{len(comparison.accuracy.predicted)} runs")
        pictures = [Picture(caption("compare", "calibration"), ax.figure)]
        sections.append(
            Section("Predicted and measured accuracy", [], [accuracy_table(comparison)], pictures)
        )
    return sections


def _motion_pictures(comparison: Comparison, first: Trajectories, second: Trajectories) -> list[Picture]:
    assert comparison.motion is not None
    pictures = []
    axes = show_typical_pair(comparison, first, second)
    if axes is not None:
        i, j = comparison.motion.pairs[typical_pair(comparison.motion)]
        first_name, second_name = comparison.names
        words = caption("compare", "typical_pair", i=i, j=j, first=first_name, second=second_name)
        pictures.append(Picture(words, axes[0, 0].figure))
    return [*pictures, Picture(caption("compare", "motion"), show_motion(comparison)[0, 0].figure)]


def _shape_pictures(comparison: Comparison, first: Trajectories, second: Trajectories) -> list[Picture]:
    assert comparison.shapes is not None
    one, other = comparison.names
    ax = panels(1, 1, 6.2, 3.4)[0, 0]
    show_distributions(
        comparison.shapes.distances(comparison.names),
        ax,
        xlabel="Procrustes disparity to the nearest shape",
        title=f"Final shapes of {other} runs: distance to the nearest of …",
    )
    pictures = [Picture(caption("compare", "distances"), ax.figure)]
    axes = show_nearest(comparison, first, second)
    if axes is not None:
        words = caption("compare", "nearest", first=one, second=other)
        pictures.append(Picture(words, axes[0, 0].figure))
    return pictures


def conclusion(comparison: Comparison) -> list[str]:
    """Return the conclusion of a comparison: states, then motion or shapes, then onsets or accuracy."""
    shown = [one for one in comparison.onsets.values() if one.differs]
    ratios = [
        {
            "name": one.name.replace("_", " "),
            "ratio": _ratio(one) if one.ratio.low > 0 and math.isfinite(one.ratio.high) else "",
            "shares": [
                f"{int(each.reached.sum())} of {len(each.reached)}" for each in (one.first, one.second)
            ],
        }
        for one in shown
    ]
    chance = by_chance(comparison) if comparison.motion is not None else ""
    return sentences("comparison.txt", "conclusion", comparison, _quantities(comparison), ratios, chance)


def findings(comparison: Comparison) -> list[str]:
    """Return a paragraph that says which quantities of a comparison differ, and how this was decided."""
    return sentences("comparison.txt", "findings", comparison, _quantities(comparison))


def by_chance(comparison: Comparison) -> str:
    """Return words for the runs whose distance is the chance level of a comparison; see `Motion.chance`."""
    assert comparison.motion is not None
    if comparison.motion.paired:
        return "runs paired at random"
    return f"two {comparison.names[0]} runs that end alike"


def _quantities(comparison: Comparison) -> list[dict[str, str]]:
    """Return name, answer, side and effect of each difference of final states, for the templates."""
    return [
        {
            "name": one.name,
            "answer": _answer(one, one.difference, 0.0),
            "side": "higher" if one.difference.estimate > 0 else "lower",
            "effect": _effect(one),
        }
        for one in comparison.distributions.values()
    ]


# -- tables ------------------------------------------------------------------------------------------------


def distribution_table(comparison: Comparison) -> Table:
    """Return a `Table` of the final states of both ensembles, with a row for each quantity."""
    first, second = comparison.names
    rows = []
    for one in comparison.distributions.values():
        percent = one.name in PERCENT
        values = [rounded(value, 100 if percent else 1) for value in (one.first, one.second, one.difference)]
        name = f"{one.name}, %" if percent else one.name
        answer = _answer(one, one.difference, 0.0)
        rows.append([name, *values, _effect(one), p_value(one.adjusted_p_value), answer])
    return Table(
        caption(
            "compare",
            "states_table",
            runs=comparison.runs,
            tests=comparison.tests,
            first=first,
            second=second,
        ),
        ["quantity", first, second, "difference", "effect", "adjusted p", "different?"],
        rows,
    )


def motion_table(comparison: Comparison) -> Table:
    """Return a `Table` of the time factor and the errors of a comparison whose motion was compared."""
    motion = comparison.motion
    assert motion is not None
    first, second = comparison.names
    return Table(
        caption("compare", "motion_table", pairs=len(motion.pairs), times=len(motion.times)),
        ["quantity", "value"],
        [
            [f"time factor τ, time of {first} in a unit of time of {second}", significant(motion.scale)],
            ["mean error of pairs", rounded(motion.mean_error)],
            [f"mean error of {by_chance(comparison)}", rounded(motion.chance_error)],
        ],
    )


def shape_table(comparison: Comparison) -> Table:
    """Return a `Table` of Procrustes disparities from the final shapes of the second ensemble.

    It gives the median and the quartiles of the disparity to the nearest shape of each ensemble. The
    comparison must have compared shapes.
    """
    assert comparison.shapes is not None
    rows = []
    for name, values in comparison.shapes.distances(comparison.names).items():
        finite = values[np.isfinite(values)]
        words = ["-", "-"]  # a single run has no other of its ensemble
        if len(finite):
            low, median, high = np.percentile(finite, [25, 50, 75])
            words = [f"{median:.3f}", f"{low:.3f} to {high:.3f}"]
        rows.append([name, *words])
    symmetry = comparison.shapes.symmetry
    return Table(
        caption(
            "compare",
            "shape_table",
            second=comparison.names[1],
            count=len(symmetry),
            relabeling=symmetry.name,
        ),
        ["nearest among", "median", "quartiles"],
        rows,
    )


def onset_table(comparison: Comparison) -> Table:
    """Return a `Table` of when the runs of a comparison reach thresholds, with a row for each threshold."""
    first, second = comparison.names
    aligned = "" if comparison.motion is None else f", times of {first} multiplied by 1/τ"
    rows = []
    for name, one in comparison.onsets.items():
        sides = [(each.fraction.format(0, 100), median_time(each.median)) for each in (one.first, one.second)]
        answer = _answer(one, one.ratio, 1.0)
        rows.append(
            [name.replace("_", " "), *sides[0], *sides[1], _ratio(one), p_value(one.adjusted_p_value), answer]
        )
    sides_named = [f"{name}: {what}" for name in (first, second) for what in ("reached by, %", "median time")]
    return Table(
        caption("compare", "onset_table", first=first, second=second, aligned=aligned),
        ["threshold", *sides_named, "ratio of times", "adjusted p", "different?"],
        rows,
    )


def accuracy_table(comparison: Comparison) -> Table:
    """Return a `Table` of how well predicted and measured accuracy, which a comparison must hold, agree."""
    accuracy = comparison.accuracy
    assert accuracy is not None
    return Table(
        caption("compare", "accuracy_table", count=len(accuracy.predicted)),
        ["measured minus predicted", "root mean square of that", "correlation", "slope"],
        [[rounded(one) for one in (accuracy.bias, accuracy.error, accuracy.correlation, accuracy.slope)]],
    )


def _effect(one: Difference) -> str:
    name, size = next(iter(one.effects.items()))
    return f"{SYMBOLS[name]} = {size.format(2)}"


def _ratio(one: OnsetDifference) -> str:
    """Return the ratio of the median times in words, and only a bound where the data give no more."""
    if math.isinf(one.first.median.estimate) and math.isinf(one.second.median.estimate):
        return "undetermined"
    if math.isinf(one.ratio.high):
        return f"above {readable(one.ratio.low, 2)}" if one.ratio.low > 0 else "undetermined"
    if one.ratio.low == 0:
        return f"below {readable(one.ratio.high, 2)}"
    return significant(one.ratio) + (" (one pair)" if one.ratio.count == 1 else "")


def _answer(one: Difference | OnsetDifference, interval: Interval, none: float) -> str:
    """Return "yes" or "no" for a difference, "unclear" if the test and the 95 % interval disagree.

    It is "unknown" if there is no test or no interval; `none` stands for no difference.
    """
    if not math.isfinite(one.p_value) or not math.isfinite(interval.low):
        return "unknown"
    if one.differs:
        return "yes"
    return "no" if interval.covers(none) and not is_shown(one.adjusted_p_value, one.p_value) else "unclear"
