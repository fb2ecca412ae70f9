"""Code that Musat's recipes share: ensembles as tables of structures, and measures of these."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.embeddings import show_embedding
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.evidence import difference, mean, share, where
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
    """Return the structures of final positions (runs, tokens, dim) as columns."""
    return {"circle": is_circle(final), "imperfections": grid_imperfections(final)}


def particles(
    alignment: float, *, runs: int, seed: int, step_size: float = 0.02, steps: int = STEPS
) -> Trajectory:
    """Return the start and the end of particles that move at an alignment constant f_a."""
    system = ParticleSystem(alignment=alignment)
    return simulate(system, steps=steps, step_size=step_size, runs=runs, seed=seed, record_every=steps)


def networks(decay: float, *, runs: int, seed: int, epochs: int = EPOCHS, **options: Any) -> Trajectory:
    """Return the start and the end of networks of constant attention at a weight decay."""
    given: dict[str, Any] = {"observables": ("validation_accuracy",), "record": epochs} | options
    model = given.pop("model", ConstantAttention())
    return train(model, runs=runs, steps=epochs, weight_decay=decay, seed=seed, **given)


def table_of(trained: Trajectory) -> dict[str, NDArray[Any]]:
    """Return the final structures of networks as columns, with their validation accuracy in %."""
    accuracy = 100 * np.asarray(trained.observables["validation_accuracy"][:, -1], np.float64)
    return {**structures_of(trained.final), "accuracy": accuracy}


def counted(constants: Mapping[str, float], table: Columns) -> dict[str, NDArray[Any]]:
    """Return a table of runs as one of the distinct structures, with the number of runs of each."""
    kinds, runs = np.unique(
        np.stack([table["circle"].astype(int), table["imperfections"]], axis=1), axis=0, return_counts=True
    )
    constant = {name: np.full(len(runs), value) for name, value in constants.items()}
    return {**constant, "circle": kinds[:, 0].astype(bool), "imperfections": kinds[:, 1], "runs": runs}


def run_by_run(table: Columns) -> dict[str, NDArray[Any]]:
    """Return a table with one row for each run, from one that `counted` has made."""
    return {name: np.repeat(column, table["runs"]) for name, column in table.items() if name != "runs"}


def joined(parts: Any) -> dict[str, NDArray[Any]]:
    """Return tables of the same columns as one."""
    listed = list(parts)
    return {name: np.concatenate([np.asarray(part[name]) for part in listed]) for name in listed[0]}


# -- measures ----------------------------------------------------------------------------------------------


def circles(table: str, scale: float = 1.0, **constants: float) -> Measure:
    """Return a measure: the share of circles among the runs with these constants."""

    def measure(tables: Tables, level: float) -> Interval:
        return share(_chosen(tables, table, constants)["circle"], level).map(lambda value: scale * value)

    return measure


def imperfections(table: str, **constants: float) -> Measure:
    """Return a measure: the mean imperfections of the runs with these constants that are no circles."""

    def measure(tables: Tables, level: float) -> Interval:
        return mean(where(_chosen(tables, table, constants), circle=False)["imperfections"], level)

    return measure


def gap(first: Measure, second: Measure) -> Measure:
    """Return a measure: the first minus the second, of runs that are independent of each other."""
    return lambda tables, level: difference(first(tables, level), second(tables, level))


def _chosen(tables: Tables, table: str, constants: Mapping[str, float]) -> Columns:
    rows = where(tables[table], **constants)
    return run_by_run(rows) if "runs" in rows else rows


def shuffled_runs(table: str, column: str) -> Callable[[Tables, np.random.Generator], Tables]:
    """Return a `chance` for rules, which permutes a column of a table of counts among the runs."""

    def chance(tables: Tables, generator: np.random.Generator) -> Tables:
        rows = run_by_run(tables[table])
        return {**tables, table: {**rows, column: generator.permutation(rows[column])}}

    return chance


def random_positions(table: str, dim: int = 2) -> Callable[[Tables, np.random.Generator], Tables]:
    """Return a `chance` for rules, which replaces final positions by normal random ones."""

    def chance(tables: Tables, generator: np.random.Generator) -> Tables:
        rows = tables[table]
        E = generator.standard_normal((len(rows["circle"]), 17, dim))
        return {**tables, table: {**rows, **structures_of(E)}}

    return chance


def percent_of(circles: int, source: str) -> Printed:
    """Return the number of circles among the paper's hundred runs, in %, with Wilson's interval."""
    found = share(np.arange(PAPER_RUNS) < circles, 0.95)
    return Printed(str(circles), source, (100 * found.low, 100 * found.high), counted=True)


# -- pictures ----------------------------------------------------------------------------------------------


def gallery(final: Any, title: str, accuracy: Any = None) -> Figure:
    """Draw final positions (runs, tokens, 2) in four rows, each with its structure."""
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
    """Return the structure of an embedding in words, with the validation accuracy of its network in %."""
    ratio = float(circle_ratio(E))
    kind = f"circle, ratio {ratio:.2f}"
    if ratio >= 1.2:
        kind = f"{int(grid_imperfections(E[None])[0])} imperfections"
    return kind if accuracy is None else f"{kind},\naccuracy {accuracy:.0f} %"
