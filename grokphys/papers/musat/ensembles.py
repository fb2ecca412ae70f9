"""Code that Musat's recipes share: ensembles, tables of their final structures, and measures of tables."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.embeddings import show_embedding
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.evidence import Chance, difference, mean, share, where
from grokphys.papers.recipe import Columns, Printed, Tables
from grokphys.report.musat import PAPER_RUNS
from nets.models import ConstantAttention
from nets.training import train
from physics.particles.structures import circle_ratio, grid_imperfections, is_circle
from physics.particles.system import ParticleSystem
from physics.simulate import simulate
from physics.trajectory import Trajectory

EPOCHS = 2000
STEPS = 100
PAIRS = 153
"""Number of pairs of 17 tokens, which is the largest possible number of imperfections."""
FITTED = "weights, softening, step and scaling, which the paper leaves open, were chosen on Table 2"
GRID = 20
"""Largest number of imperfections of a good grid. Random positions have 148 on average, and at least 134 in
1000 draws."""
ORDERED = 102
"""Largest number of imperfections of an imperfect grid, two thirds of the pairs. With more there is no
grid."""
Measure = Callable[[Tables, float], Interval]


def structures_of(final: Any) -> dict[str, NDArray[Any]]:
    """Return a table of the final structures of runs.

    Parameters
    ----------
    final : array_like, shape (runs, tokens, dim)
        Final positions or embeddings.

    Returns
    -------
    dict of str to ndarray, shape (runs,)
        Whether each is a circle ("circle"), and its grid imperfections ("imperfections").
    """
    return {"circle": is_circle(final), "imperfections": grid_imperfections(final)}


def particles(
    alignment: float, *, runs: int, seed: int, step_size: float = 0.02, steps: int = STEPS
) -> Trajectory:
    """Simulate particles with the alignment constant f_a = `alignment`, and record their start and their end.

    All other constants have the defaults of `physics.ParticleSystem`, so that positions have the shape (runs,
    2, 17, 2). `seed` is that of the ensemble, and `step_size` the time that passes in one step.
    """
    system = ParticleSystem(alignment=alignment)
    return simulate(system, steps=steps, step_size=step_size, runs=runs, seed=seed, record_every=steps)


def networks(decay: float, *, runs: int, seed: int, epochs: int = EPOCHS, **options: Any) -> Trajectory:
    """Train networks at a weight decay, with the seed `seed` for the ensemble.

    By default the model is `ConstantAttention()`, and the trajectory has the embeddings at the start and the
    end, (runs, 2, 17, 2), with the validation accuracy. Options of `nets.train` and a `model` change this. An
    epoch is one step with all training examples.
    """
    given: dict[str, Any] = {"observables": ("validation_accuracy",), "record": epochs} | options
    model = given.pop("model", ConstantAttention())
    return train(model, runs=runs, steps=epochs, weight_decay=decay, seed=seed, **given)


def table_of(trained: Trajectory) -> dict[str, NDArray[Any]]:
    """Return `structures_of` the final embeddings of networks, with their validation accuracy in %.

    The trajectory must have the observable "validation_accuracy". Each column has the shape (networks,).
    """
    accuracy = 100 * np.asarray(trained.observables["validation_accuracy"][:, -1], np.float64)
    return {**structures_of(trained.final), "accuracy": accuracy}


def counted(constants: Mapping[str, float], table: Columns) -> dict[str, NDArray[Any]]:
    """Condense a table of runs to its distinct structures, so that it stays small for many runs.

    Parameters
    ----------
    constants : mapping of str to float
        Settings of the runs, which become columns.
    table : mapping of str to ndarray
        Table with the columns "circle" and "imperfections".

    Returns
    -------
    dict of str to ndarray
        A row for each pair of circle and imperfections that occurs, with the number of its runs in the column
        "runs".
    """
    kinds, runs = np.unique(
        np.stack([table["circle"].astype(int), table["imperfections"]], axis=1), axis=0, return_counts=True
    )
    constant = {name: np.full(len(runs), value) for name, value in constants.items()}
    return {**constant, "circle": kinds[:, 0].astype(bool), "imperfections": kinds[:, 1], "runs": runs}


def run_by_run(table: Columns) -> dict[str, NDArray[Any]]:
    """Return a table with one row for each run, from a table that `counted` has condensed.

    Each row is repeated as often as its column "runs" says, which is left out.
    """
    return {name: np.repeat(column, table["runs"]) for name, column in table.items() if name != "runs"}


# -- measures ----------------------------------------------------------------------------------------------


def circles(table: str, scale: float = 1.0, **constants: float) -> Measure:
    """Return a `Measure` of the share of circles, with Wilson's interval.

    Parameters
    ----------
    table : str
        Name of the table of runs, which may be condensed by `counted`.
    scale : float, default 1.0
        Factor of the share, such as 100 for percent.
    **constants : float
        Values that columns must have; other runs are left out.
    """

    def measure(tables: Tables, level: float) -> Interval:
        return share(_chosen(tables, table, constants)["circle"], level).map(lambda value: scale * value)

    return measure


def imperfections(table: str, **constants: float) -> Measure:
    """Return a `Measure` of the mean grid imperfections of runs that are no circles, with Student's interval.

    The arguments are those of `circles`.
    """

    def measure(tables: Tables, level: float) -> Interval:
        return mean(where(_chosen(tables, table, constants), circle=False)["imperfections"], level)

    return measure


def gap(first: Measure, second: Measure) -> Measure:
    """Return a `Measure` of the first measure minus the second, which must be of independent runs."""
    return lambda tables, level: difference(first(tables, level), second(tables, level))


def _chosen(tables: Tables, table: str, constants: Mapping[str, float]) -> Columns:
    rows = where(tables[table], **constants)
    return run_by_run(rows) if "runs" in rows else rows


def shuffled_runs(table: str, column: str) -> Chance:
    """Return a model of chance for rules that permutes one column.

    It is permuted among all runs of a table that `counted` has condensed.
    """

    def chance(tables: Tables, generator: np.random.Generator) -> Tables:
        rows = run_by_run(tables[table])
        return {**tables, table: {**rows, column: generator.permutation(rows[column])}}

    return Chance(f"`{column}` shuffled among all runs of `{table}`", chance)


def random_positions(table: str, dim: int = 2) -> Chance:
    """Return a model of chance for rules that replaces structures.

    The runs of a table get the structures of 17 tokens at normally distributed positions in `dim` dimensions.
    """

    def chance(tables: Tables, generator: np.random.Generator) -> Tables:
        rows = tables[table]
        E = generator.standard_normal((len(rows["circle"]), 17, dim))
        return {**tables, table: {**rows, **structures_of(E)}}

    return Chance("17 tokens at normally distributed positions", chance)


def percent_of(circles: int, source: str) -> Printed:
    """Return a number of circles among the paper's 100 runs as a percentage with Wilson's 95 % interval.

    `source` is its place in the paper.
    """
    found = share(np.arange(PAPER_RUNS) < circles, 0.95)
    return Printed(str(circles), source, (100 * found.low, 100 * found.high), counted=True)


# -- pictures ----------------------------------------------------------------------------------------------


def gallery(final: Any, title: str, accuracy: Any = None) -> Figure:
    """Draw the final positions of runs in four rows, each with its number and its structure as the title.

    Parameters
    ----------
    final : array_like, shape (runs, tokens, 2)
        Final positions or embeddings.
    title : str
        Title of the figure.
    accuracy : array_like, shape (runs,), optional
        Validation accuracies in %, which are added to the titles.
    """
    columns = -(-len(final) // 4)
    with style(2.1 * columns):
        figure = Figure(figsize=(2.1 * columns, 9.2 if accuracy is None else 10.0))
        figure.suptitle(title)
        axes = figure.subplots(4, columns, squeeze=False).flat
        for k, ax in enumerate(axes):
            if k < len(final):
                name = what(final[k], None if accuracy is None else accuracy[k])
                show_embedding(final[k], ax, title=f"{k}: {name}")
            else:
                ax.set_axis_off()
    return figure


def what(E: Any, accuracy: float | None = None) -> str:
    """Return the structure of an embedding (tokens, dim) in words, such as "circle, ratio 1.05".

    If the ratio of the largest norm of a token to the smallest is at least 1.2, the words are the number of
    grid imperfections, such as "12 imperf.". An `accuracy` in % is added on a second line.
    """
    ratio = float(circle_ratio(E))
    kind = f"circle, ratio {ratio:.2f}"
    if ratio >= 1.2:
        kind = f"{int(grid_imperfections(E[None])[0])} imperf."
    return kind if accuracy is None else f"{kind},\naccuracy {accuracy:.0f} %"
