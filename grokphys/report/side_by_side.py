"""Two ensembles side by side: a comparison as sections of a report, and as a page with its numbers."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from analysis.compare.comparison import Comparison
from analysis.compare.onsets import Onsets
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
from analysis.stats.intervals import Interval
from grokphys.output import write_text
from grokphys.report.page import Picture, Section, Table, write_report
from physics.trajectory import Trajectory

Trajectories = Sequence[Trajectory]
PERCENT = ("circles",)
SYMBOLS = {"Cliff's delta": "δ", "Cohen's h": "h"}


def comparison_sections(comparison: Comparison, first: Trajectories, second: Trajectories) -> list[Section]:
    """Findings, and then each part that the ensembles allow: structures, shapes, motion, onsets, accuracy."""
    notes = [f"Note: {note}." for note in comparison.notes]
    tables, pictures = [], []
    if comparison.distributions:
        tables = [distribution_table(comparison)]
        caption = "Effect sizes, and cumulative distributions over the runs."
        pictures = [Picture(caption, show_quantities(comparison)[0, 0].figure)]
    sections = [Section("Side by side", [findings(comparison), *notes], tables, pictures)]
    if comparison.motion is not None:
        pictures = []
        pair, axes = typical_pair(comparison.motion), show_typical_pair(comparison, first, second)
        if axes is not None:
            i, j = comparison.motion.pairs[pair]
            who = f"run {i} of {comparison.names[0]} and run {j} of {comparison.names[1]}"
            caption = f"After alignment of clocks, labels and axes: {who}, the pair of median error."
            pictures.append(Picture(caption, axes[0, 0].figure))
        caption = "Error of the pairs over time, and which times stand side by side."
        pictures.append(Picture(caption, show_motion(comparison)[0, 0].figure))
        text = [_motion_text(comparison)]
        sections.append(Section("In motion", text, [motion_table(comparison)], pictures))
    if comparison.shapes is not None:
        pictures = _shape_pictures(comparison, first, second)
        sections.append(Section("Final shapes", [SHAPES], [shape_table(comparison)], pictures))
    if comparison.onsets:
        shown = list(comparison.onsets.values())[:3]
        axes = panels(1, len(shown), max(4.1, 5.2 / len(shown)), 3.3)
        for ax, onset in zip(axes[0], shown, strict=True):
            show_onsets(onset, comparison.names, ax)
        caption = "Part of the runs that have got there by a time, clocks aligned, with 95 % bands."
        pictures = [Picture(caption, axes[0, 0].figure)]
        sections.append(Section("Onsets", [ONSETS], [onset_table(comparison)], pictures))
    if comparison.accuracy is not None:
        ax = panels(1, 1, 4.4, 3.9)[0, 0]
        show_calibration(comparison.accuracy, ax, title=f"{len(comparison.accuracy.predicted)} runs")
        caption = "Accuracy measured against what was predicted; dotted: where they agree."
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
        title=f"Final shapes of {other}: nearest among …",
    )
    pictures = [Picture("How distances between final shapes are distributed.", ax.figure)]
    axes = show_nearest(comparison, first, second)
    if axes is not None:
        caption = (
            f"Final shapes of {other} (discs) and the nearest of {one}, aligned (open circles): "
            "from the best match on the left to the worst on the right, with the disparity."
        )
        pictures.append(Picture(caption, axes[0, 0].figure))
    return pictures


def write_comparison(
    path: Path, title: str, subtitle: str, comparison: Comparison, sections: Sequence[Section]
) -> list[Path]:
    """Write the page, and every number of the comparison as JSON beside it."""
    write_report(path, title, subtitle, sections)
    return [path, write_text(path.with_suffix(".json"), comparison.to_json())]


# -- tables ------------------------------------------------------------------------------------------------

SHAPES = (
    "The distances to the starts show what chance gives, those to the other runs of the same ensemble what "
    "to hope for."
)
ONSETS = (
    "A run that never gets there says only that it takes longer than it was watched. Medians are Kaplan and "
    "Meier's, p is the log-rank test's, and a ratio is a factor between the clocks that this test does not "
    "reject; both allow for the error of the factor by which clocks were aligned, where it was estimated. "
    "Holm's p counts all tests of the page."
)


def distribution_table(comparison: Comparison) -> Table:
    """What the runs have become, quantity by quantity."""
    first, second = comparison.names
    rows = []
    for one in comparison.distributions.values():
        digits, scale = (1, 100.0) if one.name in PERCENT else (_digits(one), 1.0)
        effect, size = next(iter(one.effects.items()))
        rows.append(
            [
                f"{one.name}, %" if one.name in PERCENT else one.name,
                *(value.format(digits, scale) for value in (one.first, one.second, one.difference)),
                f"{SYMBOLS[effect]} = {size.format(2)}",
                *map(p_value, (one.p_value, one.adjusted_p_value)),
            ]
        )
    return Table(
        f"Final structures and measurements of {comparison.runs[0]} and {comparison.runs[1]} runs; 95 % "
        "intervals: Wilson and Newcombe for proportions, Student and bootstrap for means. Effects, of the "
        "first minus the second, are Cliff's δ or Cohen's h (Hedges' g in the JSON); p by Fisher's exact "
        f"test or up to 4000 permutations, and Holm's among the {comparison.tests} tests of this comparison. "
        "Intervals are of each quantity alone.",
        ["quantity", first, second, "difference", "effect", "p", "Holm's p"],
        rows,
    )


def motion_table(comparison: Comparison, caption: str = "") -> Table:
    """Clock and error; `caption` comes first in that of the table."""
    motion = comparison.motion
    assert motion is not None
    first, second = comparison.names
    return Table(
        f"{caption}Over {len(motion.pairs)} pairs of runs and {len(motion.times)} frames; 95 % intervals.",
        ["quantity", "value"],
        [
            [f"τ, time of {first} in a unit of time of {second}", significant(motion.scale)],
            ["mean error of pairs", motion.mean_error.format(3)],
            [f"mean error of {_strangers(comparison)}", motion.chance_error.format(3)],
        ],
    )


def shape_table(comparison: Comparison) -> Table:
    """Quartiles of the distance from each shape of the second to the nearest of three ensembles."""
    assert comparison.shapes is not None
    rows = []
    for name, values in comparison.shapes.distances(comparison.names).items():
        finite = values[np.isfinite(values)]
        low, median, high = np.percentile(finite, [25, 50, 75]) if len(finite) else [np.nan] * 3
        rows.append([name, f"{median:.3f}", f"{low:.3f} to {high:.3f}"])
    symmetry = comparison.shapes.symmetry
    return Table(
        f"Procrustes disparity of each shape of {comparison.names[1]} to the nearest shape of an ensemble, "
        f"over rotations, reflections and relabellings ({symmetry.name}, {len(symmetry)} in all): 0 is the "
        "same shape.",
        ["nearest among", "median", "quartiles"],
        rows,
    )


def onset_table(comparison: Comparison) -> Table:
    """When things set in."""
    first, second = comparison.names
    aligned = f", on which the clock of {first} is aligned"
    if comparison.motion is None:
        aligned = f" and of {first}, the clocks as they are"
    rows = [
        [
            name.replace("_", " "),
            *(text for own in (one.first, one.second) for text in _reached(own)),
            *map(significant, (one.ratio, one.paired_ratio)),
            *map(p_value, (one.p_value, one.adjusted_p_value)),
        ]
        for name, one in comparison.onsets.items()
    ]
    header = ["onset", f"{first}, % reach it", "median time", f"{second}, % reach it", "median time"]
    header += ["ratio", "ratio of pairs that both do", "p", "Holm's p"]
    return Table(
        f"Onsets in the time of {second}{aligned}; ratios are {second} over {first}; 95 % intervals.",
        header,
        rows,
    )


def accuracy_table(comparison: Comparison) -> Table:
    """How well the prediction meets the measurement."""
    found = comparison.accuracy
    assert found is not None
    return Table(
        f"Accuracy predicted and measured of {len(found.predicted)} runs; 95 % intervals.",
        ["measured minus predicted", "root mean square", "correlation", "slope"],
        [
            [*(one.format(3) for one in (found.bias, found.error))]
            + [one.format(2) for one in (found.correlation, found.slope)]
        ],
    )


# -- text --------------------------------------------------------------------------------------------------


def findings(comparison: Comparison) -> str:
    """What differs, in words, by the one rule of `Difference.differs` and `OnsetDifference.differs`."""
    differ, alike, open_ = [], [], []
    for one in comparison.distributions.values():
        if not math.isfinite(one.difference.low):
            open_.append(one.name)
        elif not one.differs:
            alike.append(one.name)
        else:
            effect, value = next(iter(one.effects.items()))
            more = "higher" if one.difference.estimate > 0 else "lower"
            differ.append(f"{one.name} ({more} in {comparison.names[0]}, {effect} {value.format(2)})")
    parts = []
    if differ:
        parts.append(f"The ensembles differ in {_listed(differ)}.")
    if alike:
        parts.append(f"No difference is shown in {_listed(alike)}.")
    if open_:
        parts.append(f"Of {_listed(open_)} no interval can be given.")
    if differ or alike:
        parts.append(
            f"A difference counts as shown where Holm's p among the {comparison.tests} tests is below 0.05 "
            "and no 95 % interval of it holds 0."
        )
    motion = comparison.motion
    if motion is not None and math.isfinite(motion.chance_error.estimate):
        parts.append(
            f"Over time, pairs are {motion.mean_error.format(3)} apart, {_strangers(comparison)} "
            f"{motion.chance_error.format(3)}."
        )
    for name, onset in comparison.onsets.items():
        if math.isfinite(onset.ratio.estimate):
            shown = "" if onset.differs else ", which shows no difference"
            parts.append(
                f"The onset of {name.replace('_', ' ')} comes {significant(onset.ratio)} times as late in "
                f"{comparison.names[1]}, clocks {'as they are' if motion is None else 'aligned'}{shown}."
            )
    if comparison.accuracy is not None:
        parts.append(
            f"Measured minus predicted accuracy is {comparison.accuracy.bias.format(3)} on average, their "
            f"correlation {comparison.accuracy.correlation.format(2)}."
        )
    return " ".join(parts) or "The ensembles have final frames in common, and no more."


def _motion_text(comparison: Comparison) -> str:
    motion = comparison.motion
    assert motion is not None
    first, second = comparison.names
    how = {
        "none": "The clocks are left as they are.",
        "ends": "The clocks are scaled so that both end together.",
        "scaling": f"One factor between the clocks, that with the least error: {significant(motion.scale)}.",
    }.get(
        motion.alignment,
        f"The clocks are aligned by equal {motion.alignment.replace('_', ' ')}; one runs "
        f"{significant(motion.scale)} times as fast on average.",
    )
    who = (
        "Run k stands beside run k, from the same start."
        if motion.paired
        else f"Each run of {second} stands beside that of {first} which ends nearest to it. What "
        f"such a choice gives by itself is seen from each run of {first} beside the nearest other of {first}."
    )
    kind = (
        "The error is the squared distance of the states over the variance of the second, 1 - R²"
        if comparison.shapes is None
        else "The error is the Procrustes disparity of the two shapes, rotated frame by frame"
    )
    return f"{who} {how} {kind}."


def _strangers(comparison: Comparison) -> str:
    """What the pairs are held against; see `Motion.chance`."""
    assert comparison.motion is not None
    return "strange partners" if comparison.motion.paired else f"nearest runs of {comparison.names[0]} alone"


def p_value(p: float) -> str:
    """A p-value to two digits, or a bound."""
    if not math.isfinite(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def significant(value: Interval) -> str:
    """Three significant digits, as a ratio wants them."""
    if not math.isfinite(value.estimate):
        return "-"
    text = f"{value.estimate:.3g}"
    return text if math.isnan(value.low) else f"{text} [{value.low:.3g}, {value.high:.3g}]"


def _reached(one: Onsets) -> tuple[str, str]:
    """How many runs have got there, in per cent, and the median time."""
    return one.fraction.format(0, 100), moment(one.median)


def moment(value: Interval) -> str:
    """A median time; infinite where half of the runs never get there."""
    if math.isnan(value.estimate):
        return "-"
    if math.isinf(value.estimate):
        return "not by half" if not math.isfinite(value.low) else f"after {value.low:.3g}"
    return significant(value)


def _digits(one: Difference) -> int:
    """Digits that show the size of a quantity."""
    size = max(abs(one.first.estimate), abs(one.second.estimate), 1e-300)
    return int(min(max(2 - math.floor(math.log10(size)), 1), 3)) if math.isfinite(size) else 2


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
