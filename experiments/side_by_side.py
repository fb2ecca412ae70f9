"""Particles against networks: the comparison as a section of a report."""

import numpy as np
from matplotlib import pyplot as plt

from analysis import figures
from analysis.comparison import Comparison, aligned, compare
from experiments.report import Picture, Section, Table
from physics.trajectory import Trajectory


def comparison_section(simulated: list[Trajectory], trained: list[Trajectory]) -> Section:
    """Compare two ensembles: structures, rank test, and final shapes."""
    comparison = compare(simulated, trained)
    return Section(
        "Side by side",
        [_summary(comparison)],
        [structure_table(comparison), shape_table(comparison)],
        [distribution_picture(comparison), *overlay_pictures(comparison, simulated, trained)],
    )


def structure_table(comparison: Comparison) -> Table:
    """Circles and imperfections of both ensembles."""
    ours, theirs, test = comparison.simulated, comparison.trained, comparison.imperfections_test
    return Table(
        "Final structures, with 95 % intervals (Wilson, Newcombe, Student; Mann-Whitney for the ranks).",
        ["quantity", "simulated", "trained", "difference or effect"],
        [
            ["runs", str(len(ours.circle)), str(len(theirs.circle)), ""],
            [
                "circles, %",
                ours.circles.format(1, 100),
                theirs.circles.format(1, 100),
                comparison.circle_difference.format(1, 100),
            ],
            [
                "grid imperfections of the rest",
                ours.grid_imperfections.format(),
                theirs.grid_imperfections.format(),
                f"P(simulated > trained) = {test.superiority:.2f}, p = {test.p_value:.2g}"
                if np.isfinite(test.p_value)
                else "-",
            ],
        ],
    )


def shape_table(comparison: Comparison) -> Table:
    """Quartiles of the distance from each trained shape to the nearest of three ensembles."""
    rows = []
    for name, values in _distances(comparison).items():
        finite = values[np.isfinite(values)]
        low, median, high = np.percentile(finite, [25, 50, 75]) if len(finite) else [np.nan] * 3
        rows.append([name, f"{median:.3f}", f"{low:.3f} to {high:.3f}"])
    return Table(
        "Procrustes disparity of each trained shape to the nearest shape of an ensemble, over all "
        "relabellings i → u i + s of the tokens: 0 is the same shape.",
        ["nearest among", "median", "quartiles"],
        rows,
    )


def distribution_picture(comparison: Comparison) -> Picture:
    """Distributions of imperfections and of shape distances."""
    with figures.style():
        figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.8))
    figures.show_distributions(
        {
            "simulated": comparison.simulated.imperfections[~comparison.simulated.circle],
            "trained": comparison.trained.imperfections[~comparison.trained.circle],
        },
        axes[0],
        xlabel="grid imperfections, runs that are no circles",
        title="Structures",
    )
    figures.show_distributions(
        _distances(comparison),
        axes[1],
        xlabel="Procrustes disparity to the nearest shape",
        title="Shapes: trained runs, nearest among …",
    )
    plt.close(figure)
    return Picture("How grid imperfections and distances between final shapes are distributed.", figure)


def overlay_pictures(
    comparison: Comparison, simulated: list[Trajectory], trained: list[Trajectory], count: int = 4
) -> list[Picture]:
    """Trained shapes laid over the simulated ones nearest to them, at quantiles of the distance."""
    ours = np.concatenate([one.final for one in simulated])
    theirs = np.concatenate([one.final for one in trained])
    if ours.shape[2] != theirs.shape[2]:
        return []
    shapes = comparison.shapes
    order = np.argsort(shapes.nearest, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)]
    with figures.style():
        figure, axes = plt.subplots(1, len(chosen), figsize=(3.1 * len(chosen), 3.4), squeeze=False)
    for ax, run in zip(axes[0], chosen, strict=True):
        partner = int(shapes.disparity[:, run].argmin())
        moved = aligned(ours[partner], theirs[run], shapes.relabelling[partner, run])
        figures.show_embedding(
            theirs[run],
            ax,
            outline=moved,
            title=f"network {run}, particles {partner}: {shapes.nearest[run]:.3f}",
        )
    plt.close(figure)
    return [
        Picture(
            "Trained embeddings (discs) and the nearest simulated shape, aligned (open circles): from the "
            "best match on the left to the worst on the right, with the disparity.",
            figure,
        )
    ]


def _distances(comparison: Comparison) -> dict[str, np.ndarray]:
    shapes = comparison.shapes
    return {
        "simulated, final": shapes.nearest,
        "simulated, random start": shapes.nearest_start,
        "other trained": shapes.nearest_trained,
    }


def _summary(comparison: Comparison) -> str:
    low, high = comparison.circle_difference.low, comparison.circle_difference.high
    circles = (
        "The fractions of circles do not differ detectably"
        if low <= 0 <= high
        else "The fractions of circles differ"
    )
    test = comparison.imperfections_test
    if not np.isfinite(test.p_value):
        ranks = "one ensemble has circles only, so imperfections cannot be compared"
    elif test.p_value >= 0.05:
        ranks = "nor do the grid imperfections of the rest" if low <= 0 <= high else "imperfections do not"
    else:
        side = "more" if test.superiority > 0.5 else "fewer"
        ranks = (
            f"but the simulated grids have {side} imperfections"
            if low <= 0 <= high
            else (f"and the simulated grids have {side} imperfections")
        )
    median = {
        name: float(np.nanmedian(values))
        for name, values in _distances(comparison).items()
        if np.isfinite(values).any()
    }
    shapes = ", ".join(f"{value:.3f} among {name}" for name, value in median.items())
    return (
        f"{circles}, {ranks}. The nearest shape to a trained embedding lies at a median disparity of "
        f"{shapes}. The random starts show what chance gives, the other trained networks what to "
        "hope for."
    )
