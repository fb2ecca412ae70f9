"""Two ensembles side by side: the tables, sentences and sections of a comparison, and its page."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from analysis.compare.comparison import Comparison
from analysis.compare.onsets import OnsetDifference, Onsets
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
from analysis.stats.intervals import Interval, is_shown
from grokphys.output import write_text
from grokphys.report.conclusion import by_chance, conclusion
from grokphys.report.page import Picture, Section, Table, write_report
from grokphys.report.wording import listed, median_time, p_value, rounded, significant
from physics.trajectory import Trajectory

Trajectories = Sequence[Trajectory]
PERCENT = ("circles",)
SYMBOLS = {"Cliff's delta": "δ", "Cohen's h": "h"}


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

    Returns
    -------
    list of Section
        Sections with text, tables and figures.
    """
    notes = [f"Note: {note}." for note in comparison.notes]
    tables, pictures = [], []
    if comparison.distributions:
        tables = [distribution_table(comparison)]
        caption = (
            "Effect sizes with 95 % intervals, where 0 is no difference, and how the values are distributed "
            f"over the runs. {about}"
        ).rstrip()
        pictures = [Picture(caption, show_quantities(comparison)[0, 0].figure)]
    sections = [
        Section("Side by side", [*([about] if about else []), findings(comparison), *notes], tables, pictures)
    ]
    if comparison.motion is not None:
        pictures = []
        pair, axes = typical_pair(comparison.motion), show_typical_pair(comparison, first, second)
        if axes is not None:
            i, j = comparison.motion.pairs[pair]
            who = f"run {i} of {comparison.names[0]} and run {j} of {comparison.names[1]}"
            caption = (
                f"{who[0].upper()}{who[1:]}, the pair with the median error, at corresponding times. "
                "Tokens are "
                "relabeled and shapes rotated such that they fit best."
            )
            pictures.append(Picture(caption, axes[0, 0].figure))
        caption = (
            "Left: error of the pairs over time, with the median and the quartiles. Right: the time of the "
            "first ensemble that corresponds to each time of the second."
        )
        pictures.append(Picture(caption, show_motion(comparison)[0, 0].figure))
        text = _motion_text(comparison)
        sections.append(Section("Motion", text, [motion_table(comparison)], pictures))
    if comparison.shapes is not None:
        pictures = _shape_pictures(comparison, first, second)
        sections.append(Section("Final shapes", [SHAPES], [shape_table(comparison)], pictures))
    if comparison.onsets:
        shown = list(comparison.onsets.values())[:3]
        axes = panels(1, len(shown), max(4.1, 5.2 / len(shown)), 3.3)
        for ax, onset in zip(axes[0], shown, strict=True):
            show_onsets(onset, comparison.names, ax)
        caption = (
            "Fraction of the runs that have reached the threshold by a time (Kaplan-Meier), with 95 % bands."
        )
        pictures = [Picture(caption, axes[0, 0].figure)]
        sections.append(Section("When thresholds are reached", [ONSETS], [onset_table(comparison)], pictures))
    if comparison.accuracy is not None:
        ax = panels(1, 1, 4.4, 3.9)[0, 0]
        show_calibration(comparison.accuracy, ax, title=f"{len(comparison.accuracy.predicted)} runs")
        caption = (
            "Measured accuracy against the one that final embeddings predict. They agree on the dotted line."
        )
        pictures = [Picture(caption, ax.figure)]
        sections.append(
            Section("Predicted and measured accuracy", [], [accuracy_table(comparison)], pictures)
        )
    return sections


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
    pictures = [Picture("Distribution of the distances between final shapes.", ax.figure)]
    axes = show_nearest(comparison, first, second)
    if axes is not None:
        caption = (
            f"Final shapes of {other} runs (discs) and the nearest {one} shapes, aligned (open rings), "
            "from the "
            "best match on the left to the worst on the right. The number after the "
            "two runs is the Procrustes disparity."
        )
        pictures.append(Picture(caption, axes[0, 0].figure))
    return pictures


def write_comparison(
    path: Path, title: str, subtitle: str, comparison: Comparison, sections: Sequence[Section]
) -> list[Path]:
    """Write a report, and every number of the comparison to a JSON file next to it.

    Parameters
    ----------
    path : Path
        Name of the report.
    title, subtitle : str
        Heading of the page, and the line below it.
    comparison : Comparison
        Results of `analysis.compare`.
    sections : sequence of Section
        Sections of the report.

    Returns
    -------
    list of Path
        The report and the JSON file.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    write_report(path, title, subtitle, conclusion(comparison), sections)
    return [path, write_text(path.with_suffix(".json"), comparison.to_json())]


# -- tables ------------------------------------------------------------------------------------------------

SHAPES = (
    "The distances to the initial shapes show what chance gives. The distances to other runs of the same "
    "ensemble show the best that can be expected."
)
ONSETS = (
    "A run that has not reached a threshold when it ends still shows that it takes longer than that: "
    "medians are "
    "Kaplan-Meier estimates, and p-values come from the log-rank test. Intervals and tests allow for the "
    "uncertainty of the time factor τ where it was estimated."
)


def distribution_table(comparison: Comparison) -> Table:
    """Return a `Table` of the final states of both ensembles, with a row for each quantity."""
    first, second = comparison.names
    rows = []
    for one in comparison.distributions.values():
        scale = 100.0 if one.name in PERCENT else 1.0
        effect, size = next(iter(one.effects.items()))
        rows.append(
            [
                f"{one.name}, %" if one.name in PERCENT else one.name,
                *(rounded(value, scale) for value in (one.first, one.second, one.difference)),
                f"{SYMBOLS[effect]} = {size.format(2)}",
                p_value(one.adjusted_p_value),
                _answer(one, one.difference, 0.0),
            ]
        )
    return Table(
        f"Final states of {comparison.runs[0]} {first} and {comparison.runs[1]} {second} runs. Brackets "
        "hold the 95 % "
        f"interval of each quantity by itself; the adjusted p allows for all {comparison.tests} tests of "
        "this "
        f"comparison. A difference is unclear where the two disagree. Differences and effects are {first} "
        "minus "
        f"{second}: Cohen's h of proportions, Cliff's δ of other quantities.",
        ["quantity", first, second, "difference", "effect", "adjusted p", "different?"],
        rows,
    )


def motion_table(comparison: Comparison, caption: str = "") -> Table:
    """Return a `Table` of the time factor and the errors of a comparison whose motion was compared.

    The text `caption` is put before the caption of the table.
    """
    motion = comparison.motion
    assert motion is not None
    first, second = comparison.names
    return Table(
        f"{caption}Means over {len(motion.pairs)} pairs of runs and {len(motion.times)} times, with 95 % "
        "intervals.",
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
        f"Procrustes disparity of each final {comparison.names[1]} shape to the nearest shape of an "
        "ensemble, the "
        f"least over rotations, reflections and {len(symmetry)} relabelings of the tokens ({symmetry.name}).",
        ["nearest among", "median", "quartiles"],
        rows,
    )


def onset_table(comparison: Comparison) -> Table:
    """Return a `Table` of when the runs of a comparison reach thresholds, with a row for each threshold."""
    first, second = comparison.names
    aligned = "" if comparison.motion is None else f", times of {first} multiplied by 1/τ"
    rows = [
        [
            name.replace("_", " "),
            *(text for own in (one.first, one.second) for text in _reached(own)),
            _ratio(one),
            p_value(one.adjusted_p_value),
            _answer(one, one.ratio, 1.0),
        ]
        for name, one in comparison.onsets.items()
    ]
    header = ["threshold", f"{first}: reached by, %", f"{first}: median time"]
    header += [
        f"{second}: reached by, %",
        f"{second}: median time",
        "ratio of times",
        "adjusted p",
        "different?",
    ]
    return Table(
        f"Times in units of {second} runs{aligned}, with 95 % intervals. A ratio is the time of {second} "
        "over that "
        f"of {first}.",
        header,
        rows,
    )


def accuracy_table(comparison: Comparison) -> Table:
    """Return a `Table` of how well predicted and measured accuracy, which a comparison must hold, agree."""
    found = comparison.accuracy
    assert found is not None
    return Table(
        f"Predicted and measured accuracy (from 0 to 1) of {len(found.predicted)} runs, with 95 % intervals.",
        ["measured minus predicted", "root mean square of that", "correlation", "slope"],
        [[rounded(one) for one in (found.bias, found.error, found.correlation, found.slope)]],
    )


# -- text --------------------------------------------------------------------------------------------------


FOR = "the 95 % interval of the difference excludes 0, but the test does not"
AGAINST = "the test finds a difference, but a 95 % interval contains 0"


def findings(comparison: Comparison) -> str:
    """Return sentences that say which quantities of a comparison differ, and how this was decided."""
    differ, alike, open_ = [], [], []
    unclear: dict[str, list[str]] = {}
    for one in comparison.distributions.values():
        if not math.isfinite(one.difference.low):
            open_.append(one.name)
        elif _answer(one, one.difference, 0.0) == "unclear":
            rejected = is_shown(one.adjusted_p_value, one.p_value)
            unclear.setdefault(AGAINST if rejected else FOR, []).append(one.name)
        elif not one.differs:
            alike.append(one.name)
        else:
            effect, value = next(iter(one.effects.items()))
            more = "higher" if one.difference.estimate > 0 else "lower"
            differ.append(f"{one.name} ({more} in {comparison.names[0]}, {effect} {value.format(2)})")
    parts = []
    if differ:
        parts.append(f"The ensembles differ in {listed(differ, len(differ))}.")
    if alike:
        parts.append(f"No difference is shown in {listed(alike, len(alike))}.")
    for reason, names in unclear.items():
        parts.append(f"Whether there is a difference in {listed(names, len(names))} is unclear: {reason}.")
    if open_:
        parts.append(f"There are too few runs for an interval of {listed(open_, len(open_))}.")
    if differ or alike or unclear:
        parts.append(
            f"A difference counts as shown where the adjusted p among the {comparison.tests} tests of this "
            "comparison is below 0.05 and no 95 % interval of the difference contains 0."
        )
    return " ".join(parts) or "The ensembles can only be compared by their final frames."


def _motion_text(comparison: Comparison) -> list[str]:
    motion = comparison.motion
    assert motion is not None
    first, second = comparison.names
    how = {
        "none": "Times are compared as they are.",
        "ends": "The time of the first ensemble is scaled so that both end together.",
        "scaling": (
            f"The time of the {first} runs is scaled by the factor with the least error, "
            f"{significant(motion.scale)}."
        ),
    }.get(
        motion.alignment,
        f"States are compared at equal {motion.alignment.replace('_', ' ')}; in one unit of time of the "
        f"{second} "
        f"runs, {significant(motion.scale)} units pass in the {first} ones on average.",
    )
    who = (
        "Run k of one ensemble is compared with run k of the other, because both start from the same state."
        if motion.paired
        else f"Each {second} run is compared with the {first} run whose final shape is nearest to its own. "
        "As a "
        f"baseline, each {first} run is compared in the same way with the nearest other {first} run."
    )
    kind = (
        "The error is the squared distance of the states over the variance of the second ensemble, 1 - R²."
        if comparison.shapes is None
        else "The error is the Procrustes disparity of the two shapes at each time."
    )
    return [who, f"{how} {kind}"]


def _reached(one: Onsets) -> tuple[str, str]:
    """Describe the percentage of runs that have reached the threshold, and the median time."""
    return one.fraction.format(0, 100), median_time(one.median)


def _ratio(one: OnsetDifference) -> str:
    """Return the ratio of the median times in words; it is undetermined if both medians are."""
    if math.isinf(one.first.median.estimate) and math.isinf(one.second.median.estimate):
        return "undetermined"
    return significant(one.ratio) + (" (one pair)" if one.ratio.count == 1 else "")


def _answer(one: Difference | OnsetDifference, interval: Interval, none: float) -> str:
    """Return "yes" or "no" for a difference, or "unclear" if the test and the interval disagree.

    Parameters
    ----------
    one : Difference or OnsetDifference
        The difference with its test.
    interval : Interval
        Its 95 % interval.
    none : float
        Value that stands for no difference.

    Returns
    -------
    str
        "unknown" if there is no test or no interval.
    """
    if not math.isfinite(one.p_value) or not math.isfinite(interval.low):
        return "unknown"
    if one.differs:
        return "yes"
    return "no" if interval.covers(none) and not is_shown(one.adjusted_p_value, one.p_value) else "unclear"
