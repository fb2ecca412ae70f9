"""Code that Musat's recipes share: ensembles, tables of their final structures, and measures of tables.

Table 1 of Musat: structures and validation accuracy of networks by weight decay (Section 4).

Table 2 of Musat: circles and grid imperfections of particles (Section 6); and for other step sizes.

Which initialization of the layers reproduces Musat's Table 1; the paper does not state the one it uses.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots import palette
from analysis.plots.distributions import show_estimates
from analysis.plots.embeddings import show_embedding
from analysis.stats import Interval, proportion
from grokphys.papers import charts, counters, evidence, measures
from grokphys.papers.evidence import Columns, Measure, Tables
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from nets import ConstantAttention, train
from nets.architecture import Initialisation
from physics import ParticleSystem, Trajectory, circle_ratio, grid_imperfections, is_circle, simulate

# -- the paper's numbers -----------------------------------------------------------------------------------

PAPER_RUNS = 100


@dataclass(frozen=True)
class PaperRow:
    """A row of Table 1 or 2 of Musat, from 100 runs.

    Attributes
    ----------
    circles : int
        Number of runs that are circles.
    imperfections : Interval
        Mean grid imperfections of the other runs, with the paper's 95 % interval.
    circle_accuracy, rest_accuracy : float, default NaN
        Mean validation accuracy in % of circles and of the others; NaN if the table has none.
    correlation : Interval, optional
        Correlation of imperfections and accuracy of the others.
    """

    circles: int
    imperfections: Interval
    circle_accuracy: float = np.nan
    rest_accuracy: float = np.nan
    correlation: Interval | None = None


def _plus_minus(center: float, half: float) -> Interval:
    return Interval(center, center - half, center + half, PAPER_RUNS)


TABLE_1: Mapping[float, PaperRow] = {  # by weight decay
    0.0: PaperRow(0, _plus_minus(102.2, 6.1), np.nan, 18.2, Interval(-0.92, -0.95, -0.88, PAPER_RUNS)),
    0.3: PaperRow(1, _plus_minus(72.7, 6.6), 77.4, 34.8, Interval(-0.90, -0.93, -0.85, PAPER_RUNS)),
    0.6: PaperRow(12, _plus_minus(39.6, 4.0), 65.9, 51.6, Interval(-0.84, -0.89, -0.77, PAPER_RUNS)),
    1.0: PaperRow(18, _plus_minus(31.6, 4.0), 60.4, 46.7, Interval(-0.64, -0.75, -0.49, PAPER_RUNS)),
}
TABLE_2: Mapping[float, PaperRow] = {  # by f_a
    0.5: PaperRow(0, _plus_minus(35.5, 3.7)),
    1.0: PaperRow(17, _plus_minus(36.3, 4.8)),
    2.0: PaperRow(56, _plus_minus(42.9, 10.1)),
}

# -- ensembles, tables and measures ------------------------------------------------------------------------

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
    return simulate(system, steps=steps, step_size=step_size, runs=runs, seed=seed, record=steps)


def networks(run: Run, decay: float, number: int, **options: Any) -> Trajectory:
    """Train the networks of a run at a weight decay, with the seed `number` of its recipe.

    The setting of the run says how many, as `runs`, and for how many `epochs` or `steps`, of which each takes
    all training examples. By default the model is `ConstantAttention()`, and the trajectory has the
    embeddings at the start and the end, (runs, 2, 17, 2), with the validation accuracy. Options of
    `nets.train` and a `model` change this.
    """
    epochs = getattr(run.setting, "epochs", 0) or run.setting.steps
    given: dict[str, Any] = {"model": ConstantAttention(), "runs": run.setting.runs, "steps": epochs}
    given |= {"observables": ("validation_accuracy",), "record": epochs} | options
    return train(weight_decay=decay, seed=run.seed(number), **given)


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


def circles(table: str, scale: float = 1.0, **constants: Any) -> Measure:
    """Return a measure of the share of circles among runs, times `scale`; the table may be condensed."""
    return measures.mapped(measures.share(table, _by_run("circle"), **constants), lambda value: scale * value)


def imperfections(table: str, **constants: Any) -> Measure:
    """Return a measure of the mean grid imperfections of runs that are no circles."""
    return measures.mean(table, _by_run("imperfections"), circle=False, **constants)


def _by_run(column: str) -> Any:
    """Return a function of rows that returns a column with a value for each run."""
    return lambda rows: (run_by_run(rows) if "runs" in rows else rows)[column]


def shuffled_runs(table: str, column: str) -> counters.Chance:
    """Return a model of chance for rules that permutes one column.

    It is permuted among all runs of a table that `counted` has condensed.
    """

    def mixed(rows: Any, generator: np.random.Generator) -> Any:
        runs = run_by_run(rows)
        return runs | {column: generator.permutation(runs[column]), "runs": np.ones(len(runs[column]), int)}

    return counters.changed(f"`{column}` shuffled among all runs of `{table}`", table, mixed)


def random_positions(table: str, dim: int = 2) -> counters.Chance:
    """Return a model of chance for rules that replaces structures.

    The runs of a table get the structures of 17 tokens at normally distributed positions in `dim` dimensions.
    """
    return counters.changed(
        "17 tokens at normally distributed positions",
        table,
        lambda rows, rng: structures_of(rng.standard_normal((len(rows["circle"]), 17, dim))),
    )


def circles_of(row: Any) -> Interval:
    """Return the circles of a row of the paper's tables, in % of 100 runs, with Wilson's 95 % interval."""
    return proportion(row.circles, PAPER_RUNS).map(lambda share: 100 * share)


def printed(ours: Interval, decimals: int = 1) -> dict[str, Any]:
    """Return a number with its interval as arguments of `Number`, as the paper prints them."""
    return {"printed": f"{ours.estimate:.{decimals}f}", "interval": (ours.low, ours.high)}


def related(decay: float) -> Measure:
    """Return a measure of the correlation of imperfections and accuracy of networks that are no circles."""
    return measures.correlation("networks", "imperfections", "accuracy", weight_decay=decay, circle=False)


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
    with charts.page(2.1 * columns, 9.2 if accuracy is None else 10.0, title=title) as figure:
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


def show_numbers(rules: Sequence[Number], tables: Tables, axes: Sequence[Axes]) -> None:
    """Draw our numbers next to the printed ones, in a panel for each quantity; further panels are left out.

    The name of a rule is that of a row, a colon, and the quantity.
    """
    panels: dict[str, list[Any]] = {}
    for rule in rules:
        row, _, quantity = rule.name.partition(": ")
        quantity = re.sub(
            r"\d+ (that are no )?circles", lambda of: "the rest" if of[1] else "circles", quantity
        )
        theirs = Interval(rule.value, *rule.interval, 0) if rule.interval else rule.value
        ours = rule.measure(tables, 0.95).within(*rule.possible)
        panels.setdefault(quantity, []).append((row.replace("f_a", "$f_a$"), theirs, ours))
    for ax, (quantity, rows) in zip(axes, panels.items(), strict=False):
        show_estimates(rows, ax, xlabel=fill(quantity, 30))
    for ax in axes[len(panels) :]:
        ax.set_axis_off()


# -- Table 1 -----------------------------------------------------------------------------------------------

PERCENT = (0.0, 100.0)
"""Smallest and largest possible percentage."""


def _sampled(decay: float, circle: bool, count: int) -> Measure:
    """Return a `Measure` of our mean accuracy in %, whose interval includes the error of the paper's mean.

    The paper prints no error of its accuracies, so its number is taken as a mean over `count` networks with
    the variance of ours. The interval may exceed 100 %. Networks with a circle count, or those without.
    """

    def sampled(values: Any, level: float) -> Interval:
        ours = evidence.mean(values, level)
        half = (ours.high - ours.estimate) * (1 + ours.count / count) ** 0.5
        return replace(ours, low=ours.estimate - half, high=ours.estimate + half)

    return measures.of_rows(sampled, "networks", "accuracy", weight_decay=decay, circle=circle)


OF_TABLE_1, OF_TABLE_2 = "What the text says of Table 1", "What the text says of Table 2"
OF_THE_PAPER = "the error of the paper's own number is too large"
AS_MANY = "the paper states no error, so the interval is that of a mean over as many networks as it has"


def numbers_table_1(table: Mapping[float, PaperRow] = TABLE_1) -> tuple[Number, ...]:
    """Return the rules for the numbers of Table 1, or of some of its rows."""
    rules: list[Number] = []
    for decay, row in table.items():
        assert row.correlation is not None
        at, rest = f"decay {decay:g}", PAPER_RUNS - row.circles
        terms: Any = {"source": f"Table 1, weight decay {decay:g}", "digits": 1}
        terms["undecidable"] = OF_THE_PAPER
        percent: Any = terms | {"margin": 12.0, "possible": PERCENT, "note": AS_MANY}
        rules += [
            Number(f"{at}: circles (%)", measure=circles("networks", 100, weight_decay=decay), margin=4.0,
                counted=True, possible=PERCENT, **printed(circles_of(row), 0), **terms),
            Number(f"{at}: accuracy of {rest} that are no circles (%)", f"{row.rest_accuracy:.1f}",
                _sampled(decay, False, rest), **percent),
            Number(f"{at}: grid imperfections", measure=imperfections("networks", weight_decay=decay),
                margin=4.0, **printed(row.imperfections), **terms),
            Number(f"{at}: correlation", measure=related(decay), margin=0.1,
                **printed(row.correlation, 2), source=terms["source"]),
        ]  # fmt: skip
        if row.circles:
            name = f"{at}: accuracy of {row.circles} circles (%)"
            measure = _sampled(decay, True, row.circles)
            rules.append(Number(name, f"{row.circle_accuracy:.1f}", measure, **percent))
    return tuple(rules)


def _more_accurate(decay: float) -> Statement:
    accuracies = (
        measures.mean("networks", "accuracy", weight_decay=decay, circle=kind) for kind in (True, False)
    )
    return Statement(f"decay {decay:g}: circles are more accurate",
        "circles consistently have higher validation accuracy than non-circles",
        "accuracy of circles minus that of the rest, in points; one validation pair of 31 is 3.2",
        measures.difference(*accuracies), least=3.2, digits=1, source="Section 4", family=OF_TABLE_1,
        chance=counters.shuffled("networks", "accuracy", within="weight_decay"))  # fmt: skip


@recipe(
    "musat-table1", item="Table 1", quick={"runs": 8, "epochs": 300},
    paper_setting=Setting(runs=2000, epochs=EPOCHS), looks=2,
    draw=lambda _, tables, *axes: show_numbers(numbers_table_1(), tables, [*axes[0], *axes[1]]),
    panels=(9.6, 7.2, 2, 3), source="Section 2", cost="half an hour",
    rules=(
        *numbers_table_1(),
        *(_more_accurate(decay) for decay, row in TABLE_1.items() if row.circles),
        Statement("weight decay makes circles",
            "weight decay plays a crucial role in the emergence of circular structures",
            "share of circles at weight decay 1 minus that at 0; by chance 0",
            measures.difference(circles("networks", weight_decay=1.0), circles("networks", weight_decay=0.0)),
            least=0.1, chance=counters.shuffled("networks", "weight_decay"), family=OF_TABLE_1),
        Statement("weight decay reduces imperfections",
            "weight decay plays a crucial role … in reducing grid imperfections",
            "imperfections of networks that are no circles at weight decay 0 minus those at 1; 15.3 are a "
            "tenth of the pairs",
            measures.difference(
                imperfections("networks", weight_decay=0.0), imperfections("networks", weight_decay=1.0),
            ),
            least=PAIRS / 10, digits=1, chance=counters.shuffled("networks", "weight_decay"),
            family=OF_TABLE_1),
    ),
    withdrawn={
        f"decay {decay:g}: accuracy follows imperfections": "the correlation among the numbers says the same"
        for decay in TABLE_1
    },
)  # fmt: skip
def table_1(run: Run) -> Result:
    """Circles, grid imperfections and accuracy of 2000 networks at each weight decay.

    The paper states no error of its accuracies; our bars there include that of as many networks as it has.

    Notes
    -----
    The table "networks" has a row for each network. The rules compare four or five numbers at each weight
    decay with those of the paper. They also judge whether circles are more accurate, and whether circles
    become more frequent and imperfections fewer with weight decay.
    """
    parts = (run.keep(f"decay-{decay:g}", partial(_trained_table_1, run, decay)) for decay in TABLE_1)
    return Result({"networks": evidence.joined(parts)})


def _trained_table_1(run: Run, decay: float) -> dict[str, Any]:
    trained = networks(run, decay, 1700 + round(10 * decay))
    return {"weight_decay": np.full(trained.runs, decay), **table_of(trained)}


# -- Table 2 -----------------------------------------------------------------------------------------------

DECAY = 1.0
"""Weight decay of the networks that are compared with the particles at the paper's f_a = 1."""


def numbers_table_2(table: Mapping[float, PaperRow] = TABLE_2) -> tuple[Number, ...]:
    """Return the rules for the numbers of Table 2, or of some of its rows."""
    rules: list[Number] = []
    for f_a, row in table.items():
        terms: Any = {"source": f"Table 2, f_a = {f_a:g}", "digits": 1}
        terms |= {"independent": "run", "fitted": FITTED, "undecidable": OF_THE_PAPER}
        rules += [
            Number(f"f_a = {f_a:g}: circles (%)", measure=circles("particles", 100, f_a=f_a), margin=3.0,
                counted=True, **printed(circles_of(row), 0), **terms),
            Number(f"f_a = {f_a:g}: grid imperfections of the rest", margin=2.0,
                measure=imperfections("particles", f_a=f_a), **printed(row.imperfections), **terms),
        ]  # fmt: skip
    return tuple(rules)


def _more(low: float, high: float) -> Statement:
    return Statement(f"more circles from f_a = {low:g} to {high:g}", "increasing f_a leads to more circles",
        f"share of circles at f_a = {high:g} minus that at {low:g}; by chance 0",
        measures.difference(circles("particles", f_a=high), circles("particles", f_a=low)), least=0.05,
        independent="run", source="Section 6", fitted=FITTED, family=OF_TABLE_2,
        chance=shuffled_runs("particles", "f_a"))  # fmt: skip


UNLIKE = counters.instead("particles", rows={"f_a": 2.0}, of={"f_a": 1.0})


@recipe(
    "musat-table2", item="Table 2", quick=Setting(runs=40, networks=10, epochs=300),
    paper_setting=Setting(runs=10_000, networks=1000, epochs=2000),
    draw=lambda _, tables, *axes: show_numbers(numbers_table_2(), tables, axes),
    panels=(9.5, 2.9, 1, 2), source="Section 6", cost="ten minutes",
    rules=(
        *numbers_table_2(),
        _more(0.5, 1.0),
        _more(1.0, 2.0),
        Statement("circles as in the transformer",
            "the relative frequency of circles … very similar to the results obtained from the transformer",
            "share of circles of particles at f_a = 1 minus that of networks at weight decay 1",
            measures.difference(circles("particles", f_a=1.0), circles("networks")), least=-0.1, most=0.1,
            independent="run", fitted=FITTED, family=OF_TABLE_2,
            chance=UNLIKE),
        Statement("grid imperfections as in the transformer",
            "the average number of grid imperfections … very similar to the results obtained from the "
            "transformer",
            "imperfections of particles at f_a = 1 minus those of networks at weight decay 1; 7.65 are a "
            "twentieth of the pairs",
            measures.difference(imperfections("particles", f_a=1.0), imperfections("networks")),
            least=-PAIRS / 20, most=PAIRS / 20, independent="run", fitted=FITTED, family=OF_TABLE_2,
            chance=UNLIKE),
    ),
)  # fmt: skip
def table_2(run: Run) -> Result:
    """How many runs of the particles end as circles, by the strength of their alignment.

    Notes
    -----
    The tables "particles" and "networks" count the runs of each structure. The rules compare the share of
    circles and the mean imperfections with those of the paper. They also judge whether circles become more
    frequent with f_a, and whether particles at f_a = 1 agree with networks at weight decay 1.
    """
    setting = run.setting
    moved = [run.keep(f"f_a-{f_a:g}", partial(_moved, run, f_a, setting.runs, 0.02, 2600)) for f_a in TABLE_2]

    def compared() -> dict[str, Any]:
        trained = networks(run, DECAY, 2690, runs=setting.networks)
        return counted({"weight_decay": DECAY}, structures_of(trained.final))

    return Result({"particles": evidence.joined(moved), "networks": run.keep("networks", compared)})


def _moved(run: Run, f_a: float, runs: int, step_size: float, seed: int) -> dict[str, Any]:
    """Simulate particles to the time 2 (`STEPS` steps of 0.02), and count the structures of the runs.

    The seed is `seed` and a number that f_a and the step size determine.
    """
    own = seed + round(100 * f_a) * 10 + round(200 * step_size)
    steps = round(STEPS * 0.02 / step_size)
    end = particles(f_a, runs=runs, seed=run.seed(own), step_size=step_size, steps=steps).final
    return counted({"f_a": f_a, "step_size": step_size}, structures_of(end))


# -- over f_a and step size --------------------------------------------------------------------------------


def _draw_map(setting: Setting, tables: Tables, *axes: Any) -> None:
    """Draw circles and imperfections of the particles as maps over f_a and step size."""
    shown: Any = (
        (partial(circles, scale=100), "circles, % of runs"),
        (imperfections, "grid imperfections of the rest"),
    )
    for ax, (measure, title) in zip(axes, shown, strict=True):
        places = [[{"f_a": f, "step_size": s} for f in setting.alignments] for s in setting.step_sizes]
        values = [[measure("particles", **at)(tables, 0.95).estimate for at in row] for row in places]
        image = ax.imshow(values, origin="lower", aspect="auto", cmap="viridis")
        ax.set_xticks(range(len(setting.alignments)), [f"{value:g}" for value in setting.alignments])
        ax.set_yticks(range(len(setting.step_sizes)), [f"{value:g}" for value in setting.step_sizes])
        ax.set(xlabel="alignment constant $f_a$", ylabel="step size", title=title)
        ax.grid(visible=False)
        axes[0].figure.colorbar(image, ax=ax)


@recipe(
    "musat-map", item="particles over the alignment constant f_a and the step size",
    quick={"alignments": (0.5, 1.0, 2.0), "step_sizes": (0.005, 0.02), "runs": 15},
    paper_setting=Setting(
        alignments=(0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0), step_sizes=(0.005, 0.01, 0.02, 0.04),
        runs=2000,
    ),
    draw=_draw_map, panels=(9.5, 3.2, 1, 2), paper="beyond", source="Section 6", independent="run",
    cost="half an hour",
    withdrawn=dict.fromkeys(
        ("alignment", "circles do not depend on the step", "imperfections do not depend on the step"),
        "a question of ours about what the paper leaves open, and now a note",
    ),
)  # fmt: skip
def phase_map(run: Run) -> Result:
    """Share of circles, and imperfections of the rest, by alignment and step size, of 2000 runs each.

    Notes
    -----
    The table "particles" counts the runs of each structure.
    """
    setting = run.setting
    parts = (
        run.keep(f"{f_a:g}-{step:g}", partial(_moved, run, f_a, setting.runs, step, 5000))
        for step in setting.step_sizes
        for f_a in setting.alignments
    )
    return Result({"particles": evidence.joined(parts)})


# -- starts of the layers ----------------------------------------------------------------------------------

STARTS: tuple[Initialisation, ...] = ("pytorch", "xavier_uniform", "xavier_normal", "kaiming_uniform")


def _draw_start(setting: Setting, tables: Tables, ax: Axes) -> None:
    """Draw the share of circles against weight decay, for each initialization and for the paper."""
    series = {"paper": [circles_of(row) for row in TABLE_1.values()]}
    for start in setting.starts:
        shares = (circles("networks", 100, start=start, weight_decay=decay) for decay in TABLE_1)
        series[start.replace("_", " ")] = [share(tables, 0.95) for share in shares]
    for k, (name, percent) in enumerate(series.items()):
        x = np.array(list(TABLE_1)) + 0.014 * (k - len(series) / 2)
        look: Any = {"color": palette.REFERENCE, "marker": "D"} if name == "paper" else {}
        charts.intervals(ax, x, percent, linestyle="none", markersize=4.5, label=name, **look)
    title = f"{setting.runs} networks of each initialization and weight decay"
    charts.label(ax, "weight decay", "circles, %", title)
    ax.set_xticks(list(TABLE_1))


@recipe(
    "musat-start", item="starts of the layers",
    quick=Setting(starts=("pytorch", "xavier_uniform"), runs=12, epochs=300),
    paper_setting=Setting(starts=STARTS, runs=500, epochs=EPOCHS),
    draw=_draw_start, panels=(5.6, 4.0), paper="beyond", source="Table 1", cost="seven minutes",
    withdrawn=dict.fromkeys(
        ("PyTorch's start is the nearest", "PyTorch's start gives Table 1"),
        "the 100 networks of each row of the paper are too few to tell most starts apart",
    ),
)  # fmt: skip
def starts(run: Run) -> Result:
    """How many circles each initialization of the layers gives, next to Musat's Table 1.

    Notes
    -----
    The paper does not state its initialization. The table "networks" has a row for each network.
    """
    parts = (
        run.keep(f"{start}-{decay:g}", partial(_trained_start, run, start, decay))
        for start in run.setting.starts
        for decay in TABLE_1
    )
    return Result({"networks": evidence.joined(parts)})


def _trained_start(run: Run, start: Initialisation, decay: float) -> dict[str, Any]:
    """Train networks from the initialization `start` of the layers, and return a table of them.

    Initial embeddings and training sets are the same for all initializations.
    """
    model = ConstantAttention(initialisation=start)
    trained = networks(run, decay, 7100 + round(10 * decay), model=model)
    index = {"start": [start], "weight_decay": [decay], "network": range(trained.runs)}
    return evidence.table_of(index, **table_of(trained))
