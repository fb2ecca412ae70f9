"""Which force moves embeddings: laws of pair forces fitted to gradients, and where Musat's particles end.

A law is fitted to some networks and judged on others: by the R² of the direction of the force, in windows of
the training. Only the part of a force that changes the shape counts, as translation, rotation and scale are
taken out. Every network has two forces: the gradient of its training, and that of layers that were trained on
its embedding while it stood still (`nets.adiabatic_force`).

That a force is exactly one of pairs with memory under gradient descent is a proof; a test repeats it
(`test_the_force_is_a_pair_force_with_memory`: a relative error below 1e-9).

The rules were written before any network of these seeds was trained. Seen before were, from other seeds:
for 17 tokens in the plane, a trial (160 networks at decay 1 and 0.3; R² of Musat's terms .22 .22 .24 and
.21 .13 .03, of free kernels .35 .30 .38 and .33 .17 .05, with converged layers .59 .60 .45 and .47 .38 .15;
disparities: start .53 and .34, particles .65 and .54, another network .46 and .27), and constants of 40
networks (alignment over attraction with converged layers, all steps together: 0.10 ± 0.07 and -0.24 ± 0.08;
early at decay 1 it is 0.41); for 31 tokens in three dimensions, six networks at decay 1 (Musat's terms .23
.20 .13, with converged layers .22 .25 .19, in sample).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure
from scipy.spatial import procrustes
from scipy.stats import norm

from analysis.forces import Basis, fit_forces
from analysis.forces.frames import training_pairs
from analysis.plots import palette
from analysis.stats.intervals import Interval
from grokphys.papers import charts, counters, evidence, measures
from grokphys.papers.evidence import Columns, Measure, Tables
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from nets import ConstantAttention, train
from nets.adiabatic import adiabatic_force
from nets.architecture import EMBEDDING
from physics import ParticleSystem, Trajectory, simulate

CELL = ("tokens", "dim", "decay")
STATES = ("actual", "converged")
PLACES = 61
"""Number of places of a kernel in its table."""
WINDOWS = {"early": (1, 50), "middle": (70, 400), "late": (560, 2000)}
PAPER = Setting(
    networks=((17, 48), (31, 20)), dims=(2, 3), decays=(0.3, 1.0), steps=2000, layers=2000,
    frames=(10, 50, 100, 300, 700, 2000), windows=WINDOWS, moved=100, resamples=200, seed=640_000,
)  # fmt: skip
QUICK = {
    "networks": ((11, 8),), "dims": (2,), "decays": (1.0,), "steps": 200, "layers": 50,
    "frames": (5, 20, 50, 100, 200), "windows": {"early": (1, 50), "middle": (70, 200)},
    "resamples": 10,
}  # fmt: skip


def extreme(
    of_cell: Callable[[Columns, float], Interval], table: str, by: Sequence[str], sign: int, **which: Any
) -> Measure:
    """Return a measure of the largest (`sign` 1) or smallest (-1) value among cells of a table.

    Cells have the same values in the columns `by`. That all cells keep to a bound is decided by the interval
    of each at the level itself; that one does not, by intervals at the level divided among the cells
    (Bonferroni).
    """

    def worst(rows: Columns, level: float) -> Interval:
        places = np.unique(np.stack([rows[name].astype(str) for name in by]), axis=1, return_inverse=True)[1]
        cells = [{key: v[places.ravel() == k] for key, v in rows.items()} for k in range(places.max() + 1)]
        each, wide = ([of_cell(cell, one) for cell in cells] for one in (level, 1 - (1 - level) / len(cells)))
        most = max if sign > 0 else min
        lower, upper = (wide, each) if sign > 0 else (each, wide)
        values = [cell.estimate for cell in each], [cell.low for cell in lower], [cell.high for cell in upper]
        estimate, low, high = (most(part) if np.isfinite(part).all() else np.nan for part in values)
        return Interval(estimate, low, high, min(cell.count for cell in each))

    return measures.of_rows(worst, table, dict, **which)


def _mean(column: str, by: str = "network") -> Callable[[Columns, float], Interval]:
    return lambda rows, level: evidence.mean(measures.column_of(rows, column), level, groups=rows[by])


def _ratio(rows: Columns, level: float) -> Interval:
    """Return the ratio of the only row of a cell, with its standard error by resampling of networks."""
    (value,), (error,) = rows["alignment"], rows["error"]
    half = float(norm.ppf((1 + level) / 2)) * error
    return Interval(float(value), float(value - half), float(value + half), int(rows["networks"][0]))


TABLE = 'window != "late"'
EIGHT = "of 8 cells (17 and 31 tokens, 2 and 3 dimensions, decay 0.3 and 1)"
OURS = "this project; thresholds from a trial with 17 tokens in the plane, on other seeds"


def _cell(setting: Setting, cell: tuple[int, int, float], seeds: Sequence[int]) -> dict[str, Any]:
    """Train, fit and judge in one cell; return the columns of all tables as "TABLE.COLUMN"."""
    tokens, dim, decay = cell
    model, runs = ConstantAttention(tokens, dim), dict(setting.networks)[tokens]
    options: dict[str, Any] = {"steps": setting.steps, "weight_decay": decay, "dtype": "float64"}
    watched: dict[str, Any] = {"record": list(setting.frames), "observables": ["gradient"]}
    actual = [train(model, runs=runs, seed=seed, **options, **watched) for seed in seeds[:2]]
    still = [
        adiabatic_force(each, setting.layers, draws, seed=seed)
        for each, draws, seed in zip(actual, (1, 2), seeds[2:4], strict=True)
    ]
    tables = _laws(setting, {"actual": actual, "converged": still})
    tables["fates"] = _fates(setting, model, actual[1], partial(train, model, seed=seeds[4], **options))
    columns: dict[str, Any] = {}
    for name, table in tables.items():
        count = len(next(iter(table.values())))
        place = {key: np.full(count, value) for key, value in zip(CELL, cell, strict=True)}
        columns |= {f"{name}.{column}": values for column, values in (place | dict(table)).items()}
    return columns


def _laws(setting: Setting, forces: Mapping[str, Sequence[Trajectory]]) -> dict[str, Columns]:
    """Fit both laws to both forces of the first networks; return scores on the others, constants, kernels."""
    scores, laws, kernels = {}, [], []
    whole = {**setting.windows, "all": (1, setting.steps)}
    for state, (fitted, held_out) in forces.items():
        law = fit_forces(fitted, basis="musat", windows=whole, resamples=setting.resamples)
        scores[f"{state}_musat"] = law.frame_scores(held_out)
        for window, fit in law.fits.items():
            attraction, _, alignment = np.vstack([fit.constants, fit.resampled]).T
            ratio = alignment / attraction
            laws.append({
                "state": state, "window": window, "alignment": ratio[0], "error": ratio[1:].std(ddof=1),
                "networks": fitted.runs,
            })  # fmt: skip
        free = fit_forces(fitted, basis=Basis(), windows=setting.windows, resamples=setting.resamples)
        scores[state] = free.frame_scores(held_out)
        for window, curves in free.kernels.items():
            for name, curve in curves.items():
                some = np.linspace(0, len(curve.grid) - 1, PLACES).astype(int)
                kernels.append(evidence.table_of(
                    {"state": [state], "window": [window], "kernel": [name], "place": curve.grid[some]},
                    value=curve.values[some], low=curve.low[some], high=curve.high[some],
                ))  # fmt: skip
    frames = _common(scores)
    return {"frames": frames, "laws": evidence.columns_of(laws), "kernels": evidence.joined(kernels)}


def _common(scores: Mapping[str, Columns]) -> dict[str, Any]:
    """Return the R² of all laws in the frames that each has, as one table."""
    index = ["window", "network", "step"]
    frames = {name: pandas.DataFrame(table).set_index(index) for name, table in scores.items()}
    columns = {name: frame["direction"] for name, frame in frames.items()}
    columns |= {name: frames["converged"][name] for name in ("one_body", "ceiling", "chance")}
    rows = pandas.concat(columns, axis=1, join="inner").sort_index().reset_index()
    return {name: np.array(values.tolist()) for name, values in rows.items()}


def _fates(setting: Setting, model: Any, networks: Trajectory, again: Callable[..., Trajectory]) -> Columns:
    """Return disparities to the final shape of each network: of its start, particles, and other networks.

    Particles begin where the network does, in units of the standard deviation of each axis, and act on the
    pairs of its training set. "another" network has the same start and pairs, and other layers.
    """
    rows, examples = [], networks.start["train_examples"]
    runs = zip(networks.initial.astype(float), networks.final, training_pairs(networks), strict=True)
    for k, (start, end, pairs) in enumerate(runs):
        system = ParticleSystem(model.tokens, model.dim, pairs=pairs)
        first = (start - start.mean(axis=0)) / start.std(axis=0)
        moved = simulate(system, initial=first, steps=setting.moved, record=setting.moved)
        other = again(
            runs=1, first_run=k, initial={EMBEDDING: start}, train_examples=examples[k], record=setting.steps
        )
        shapes = {"start": start, "particles": moved.final[0], "another": other.final[0]}
        shapes["unrelated"] = networks.final[k - 1]
        rows.append({"network": k} | {name: procrustes(end, shape)[2] for name, shape in shapes.items()})
    return evidence.columns_of(rows)


def _draw(setting: Setting, tables: Tables) -> "dict[str, Figure]":
    """Draw the constants of alignment in all cells, and apart from it all else that the rules judge."""
    with charts.panels(5.4, 4.8) as (statement, ax):
        _draw_alignment(setting, ax, tables["laws"])
    with charts.panels(5.4, 19.0, 5, 1) as (others, (kernels, first, last, gap, fates)):
        _draw_others(setting, tables, kernels, first, last, gap)
        _draw_fates(fates, tables["fates"])
    return {"force-law": statement, "force-law-others": others}


def _draw_alignment(setting: Setting, ax: Any, laws: Columns) -> None:
    early, middle = [*setting.windows][:2]
    looks = {
        ("actual", early): (f"gradient of the training, {early}", palette.SECOND),
        ("actual", middle): (f"gradient of the training, {middle}", palette.SERIES[2]),
        ("converged", "all"): ("converged layers, all frames", palette.FIRST),
    }
    for k, ((state, window), (label, color)) in enumerate(looks.items()):
        cells = _cells(evidence.where(laws, state=state, window=window))
        values = [_ratio(cell, 0.95) for cell in cells]
        places = np.arange(len(cells)) + 0.15 * (k - 1)
        charts.intervals(ax, places, values, color=color, label=label, linestyle="none")
    ax.axhline(1, color=palette.REFERENCE, linestyle="--", linewidth=1, label="Musat's particles")
    ax.axhline(0, color=palette.REFERENCE, linewidth=0.7)
    _name_cells(ax, cells)
    charts.label(ax, y="alignment, in units of attraction", legend={"columns": 1})


def _draw_others(setting: Setting, tables: Tables, kernels: Any, first: Any, last: Any, gap: Any) -> None:
    """Draw kernels in one cell, R² over time in two, and in all cells what converged layers change."""
    corners = (0, 0, -1), (-1, -1, 0)
    sizes = [*dict(setting.networks)]
    for ax, corner in ((first, corners[0]), (last, corners[1])):
        place: Any = [each[k] for each, k in zip((sizes, setting.dims, setting.decays), corner, strict=True)]
        shown = dict(zip(CELL, place, strict=True))
        title = "{} tokens, {} dimensions, decay {:g}".format(*place)
        _draw_scores(ax, evidence.where(tables["frames"], **shown))
        ax.set_title(f"R² of laws\n{title}")
        if ax is first:
            chosen = evidence.where(tables["kernels"], **shown, state="converged", window="middle")
            _draw_kernels(kernels, chosen)
            kernels.set_title(f"kernels, converged layers, middle\n{title}")
    for k, cell in enumerate(_cells(tables["frames"])):
        values = [_mean("converged - actual")(evidence.where(cell, window=w), 0.95) for w in setting.windows]
        color, places = palette.SERIES[2 + int(cell["tokens"][0] != sizes[0])], np.arange(len(values))
        charts.intervals(gap, places + 0.05 * (k - 3.5), values, color=color, alpha=0.6, linewidth=1,
                         markersize=3, capsize=0,
                         label=None if k % 4 else f"{cell['tokens'][0]} tokens")  # fmt: skip
    label = "the rule's least, early and middle"
    gap.axhline(0.1, color=palette.REFERENCE, linestyle="--", linewidth=1, label=label)
    gap.axhline(0, color=palette.REFERENCE, linewidth=0.7)
    gap.set_xticks(range(len(setting.windows)), setting.windows)
    charts.label(gap, "", "R², converged minus actual", "free kernels, all cells", ylim=(-0.3, 0.4),
                 legend={"columns": 1})  # fmt: skip


def _cells(rows: Columns) -> list[Columns]:
    """Return the rows of each cell, by numbers of tokens, dimensions and decay."""
    cells = sorted(set(zip(*(rows[name].tolist() for name in CELL), strict=True)))
    return [evidence.where(rows, **dict(zip(CELL, cell, strict=True))) for cell in cells]


def _draw_kernels(ax: Any, rows: Columns) -> None:
    unit = 1.0
    for kind, color, sign in (("same class", palette.FIRST, -1), ("different classes", palette.SECOND, 1)):
        curve = evidence.where(rows, kernel=f"distance, {kind}")
        r = curve["place"]
        if sign < 0:
            unit = -float(curve["value"][(r > 0.2) & (r < 2.5)].min())
        label = {-1: "attraction in a class", 1: "repulsion between classes"}[sign]
        ax.plot(r, curve["value"] / unit, color=color, label=label)
        ax.fill_between(r, curve["low"] / unit, curve["high"] / unit, color=color, alpha=0.2, linewidth=0)
        printed = -r / np.hypot(r, 0.1) if sign < 0 else r / (r**2 + 0.01)
        label = "as Musat prints them" if sign < 0 else ""
        ax.plot(r, printed, color=color, linewidth=1, linestyle="--", label=label)
    ax.axhline(0, color=palette.REFERENCE, linewidth=0.7)
    charts.label(ax, "distance, in sizes of the embedding", "force, by its largest attraction",
                 xlim=(0, 3.5), ylim=(-1.4, 3), legend={"columns": 1})  # fmt: skip


def _draw_scores(ax: Any, rows: Columns) -> None:
    looks = {
        "ceiling": ("ceiling", palette.REFERENCE),
        "converged": ("free kernels, converged", palette.FIRST),
        "converged_musat": ("Musat's terms, converged", palette.SERIES[2]),
        "actual": ("free kernels", palette.SECOND), "actual_musat": ("Musat's terms", palette.SERIES[3]),
    }  # fmt: skip
    for name, (label, color) in looks.items():
        charts.means(ax, rows["step"], rows[name], color=color, label=label, linewidth=1)
    ax.axhline(float(rows["chance"].mean()), color=palette.INK, linestyle=":", linewidth=1, label="chance")
    ax.set(xscale="log")
    charts.label(ax, "step", "R² on held-out networks", ylim=(0, 1), legend={"columns": 1})


def _draw_fates(ax: Any, rows: Columns) -> None:
    looks = {
        "unrelated": ("unrelated network", palette.REFERENCE),
        "particles": ("Musat's particles", palette.SECOND), "start": ("start, not moved", palette.INK),
        "another": ("another network, same start", palette.FIRST),
    }  # fmt: skip
    cells = _cells(rows)
    for name, (label, color) in looks.items():
        values = [evidence.mean(cell[name], 0.95) for cell in cells]
        charts.intervals(ax, np.arange(len(cells)), values, color=color, label=label, linestyle="none")
    _name_cells(ax, cells)
    charts.label(ax, y="disparity to the network's end", title="where particles end", ylim=(0, 1),
                 legend={"columns": 1})  # fmt: skip


def _name_cells(ax: Any, cells: Sequence[Columns]) -> None:
    names = ["\n".join(f"{cell[name][0]:g}" for name in CELL) for cell in cells]
    ax.set_xticks(range(len(cells)), names)
    ax.set_xlabel("tokens, dimensions, decay")


@recipe(
    "force-law", item="which force moves embeddings", quick=QUICK, paper_setting=PAPER,
    draw=_draw, source=OURS, cost="an hour",
    shows="Laws of pair forces fitted to the force on embeddings, and where Musat's particles end. The first "
    "figure has the constant of alignment among Musat's terms, by tokens, dimensions and decay. Kernels "
    "of the force are solid, those that Musat prints dashed. The R² of a law is that of the direction, on "
    "networks to which it was not fitted. Bars are 95 % intervals.",
    rules=(
        Statement("Musat's terms are a small part",
            "the force on embeddings is attraction, repulsion and alignment of pair sums",
            "R² of the direction of the shape force by Musat's three terms, their constants fitted in each "
            f"window, on held-out networks: the largest of three windows {EIGHT}; by chance at most 0.02",
            extreme(_mean("actual_musat"), "frames", (*CELL, "window"), 1), most=0.35, possible=(0.0, 1.0),
            chance=counters.replaced("frames", actual_musat="ceiling"),
            note="held-out networks: 48 in a cell with 17 tokens, 20 with 31, as many for the fit; 0.28 or "
            "less in the other cells"),
        Statement("layers lag",
            "the force would be one of pairs if layers had time to learn",
            "R² of free kernels (54 constants) for the force of converged layers minus that for the gradient "
            f"of the training, in the same frames: the smallest, early and in the middle, {EIGHT}; 0 if both "
            "are exchanged at random",
            extreme(_mean("converged - actual"), "frames", (*CELL, "window"), -1, among=TABLE), least=0.1,
            possible=(-1.0, 1.0), chance=counters.exchanged("frames", "converged", "actual"),
            note="0.13 to 0.26 in the middle; early, two draws of converged layers agree least in this cell"),
        Statement("converged layers: a force of pairs",
            "with converged layers much of the force is one of pairs",
            "R² of free kernels for the force of converged layers, on held-out networks: the smallest, early "
            f"and in the middle, {EIGHT}; by chance at most 0.02",
            extreme(_mean("converged"), "frames", (*CELL, "window"), -1, among=TABLE), least=0.3,
            possible=(0.0, 1.0),
            chance=counters.replaced("frames", converged="one_body"),
            note="0.33 or more in all others; two draws of the layers agree to 0.41 there"),
        Statement("alignment is a transient",
            "alignment is a force of layers that have not learnt yet",
            "constant of alignment over that of attraction, Musat's terms fitted to the force of converged "
            f"layers in all frames: the largest {EIGHT}; 1 for Musat's particles",
            extreme(_ratio, "laws", CELL, 1, among='(state == "converged") & (window == "all")'), most=0.25,
            chance=counters.drawn("alignment as strong as attraction", "laws", alignment=1.0),
            note="interval by resampling of the networks of the fit"),
        Statement("particles miss the fate",
            "particles converge to the same structures as the embedding vectors in the trained transformer",
            "Procrustes disparity to the network's own final shape: of Musat's particles, from its start and "
            f"on its training pairs, minus that of the start: the smallest {EIGHT}; 0 if they do not move "
            "nearer, and 0.05 or less nearer counts as no nearer",
            extreme(_mean("particles - start"), "fates", CELL, -1), least=-0.05, possible=(-1.0, 1.0),
            source="Musat, Section 6, taken network by network",
            chance=counters.replaced("fates", particles="another"),
            note="0.12 to 0.35, farther than the start, in the other seven cells"),
    ),
)  # fmt: skip
def force_law(run: Run) -> Result:
    """Laws of pair forces fitted to the force on embeddings, and where Musat's particles end.

    Notes
    -----
    The table "frames" has a row for each held-out network and frame with the R² of every law, "laws" the
    ratio of alignment and attraction, "kernels" the free kernels, and "fates" a row for each held-out network
    with disparities to its final shape. The rules judge the worst of the cells.
    """
    setting = run.setting
    parts = []
    for k, cell in enumerate(product(dict(setting.networks), setting.dims, setting.decays)):
        seeds = [run.seed(setting.seed + 10 * k + n) for n in range(5)]
        parts.append(run.keep("-".join(map(str, cell)), partial(_cell, setting, cell, seeds)))
    tables: dict[str, dict[str, Any]] = {}
    for key in parts[0]:
        name, _, column = key.partition(".")
        tables.setdefault(name, {})[column] = np.concatenate([part[key] for part in parts])
    return Result(tables)
