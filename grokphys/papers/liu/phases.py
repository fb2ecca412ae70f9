"""Liu et al.: networks over a plane of two hyperparameters, rules for their phases, and figures of them.

Two networks of one cell that differ only in their seed can have different phases. Some recipes therefore
train several networks in each cell, and the figures show the share of each phase.

Liu et al., Figures 6 and 13 to 15: phases of toy networks on addition and on permutations.

Liu et al., Figures 8 and 20 (§4.3, Appendix J): grokking on images.

If the environment variable GROKPHYS_MNIST is set, it names an npz archive of MNIST.
Otherwise the images are the 1797 digits that come with scikit-learn. The items of the recipes say which.

Liu et al., Figure 7: a transformer that learns modular addition; its dimension, dropout, and phases.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise, product
from textwrap import fill
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from analysis.circles import effective_dimension
from analysis.phases import DELAY, PHASES, Axis, Span, classify_phases
from analysis.plots import palette
from analysis.stats import Interval
from grokphys.papers import charts, counters, measures
from grokphys.papers.evidence import Columns, Measure, Tables, above_median, joined, table_of, where
from grokphys.papers.liu.transition import SPLIT, or_never, train_networks
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from grokphys.phases import ACCURACIES, axis, train_points, training_arguments
from nets import GroupDecoder, ImageMLP, TokenTransformer, ToyAddition, train

# -- networks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plane:
    """Setting of a phase diagram over the decoder's learning rate (x) and another hyperparameter (y).

    Attributes
    ----------
    models : mapping of str to Model
        Model that is trained for each diagram, by title.
    x, y : tuple of str and floats
        Name of a hyperparameter, and the limits of its axis; or, for y, its value in each row, more than two.
    cells : int
        Number of cells along each axis that has limits.
    each : int
        Number of networks in a cell.
    steps : int
        Largest number of steps of a training.
    options : mapping
        Other arguments of `nets.train`.
    seed : int
        Seed, to which the place of the diagram is added.
    delay : float, default DELAY
        Number of steps between fitting and generalizing from which a network counts as grokking.
    thresholds : mapping of str to float, default ACCURACIES
        Training and validation accuracies at which a network has fitted its training set, or has generalized.
    labels : pair of str, default ("", "")
        Labels of the axes in the figures; by default they follow from the names.
    """

    models: Mapping[str, Any]
    x: tuple[str, float, float]
    y: tuple[Any, ...]
    cells: int
    each: int
    steps: int
    options: Mapping[str, Any]
    seed: int
    delay: float = DELAY
    thresholds: Mapping[str, float] = field(default_factory=lambda: ACCURACIES)
    labels: tuple[str, str] = ("", "")

    @property
    def values(self) -> tuple[Any, ...]:
        """Value of y in each row, or () if y has limits."""
        return self.y[1:] if len(self.y) > 3 else ()

    def axes(self, model: Any) -> list[Axis]:
        """Return the horizontal and the vertical axis of the diagram of a model."""
        rows = len(self.values)
        y = (self.y[0], -0.5, rows - 0.5, rows) if rows else (*self.y, self.cells)
        sides = zip(((*self.x, self.cells), y), self.labels, strict=True)
        return [axis(model, *side, label=label) for side, label in sides]

    def edges(self, model: Any) -> list[list[float]]:
        """Return the values between which the cells lie, on the horizontal and on the vertical axis."""
        return [[one.value(k / one.cells) for k in range(one.cells + 1)] for one in self.axes(model)]


def train_plane(run: Run, plane: Plane, *, family: str = "", width: int = 0) -> dict[str, NDArray[Any]]:
    """Train the networks of all cells of a plane, and return a table with a row for each of them.

    Its columns include the title of the diagram, the cell ("column" and "row"), the steps to both accuracies
    (infinite if never), and the phase. `Run.keep` stores each row of cells, for all recipes of the `family`,
    or each piece of a row that is `width` cells wide.
    """
    wide, rows, parts = width or plane.cells, range(len(plane.values) or plane.cells), []
    for title, row, first in product(plane.models, rows, range(0, plane.cells, wide)):
        columns = range(first, min(first + wide, plane.cells))
        name = f"{title}-row-{row}" + (f"-column-{first}" if width else "")
        make = partial(_train_cells, run, plane, title, row, columns)
        parts.append(run.keep(name.replace(" ", "-").replace(",", ""), make, family=family))
    return joined(parts)


def _train_cells(run: Run, plane: Plane, title: str, row: int, cells: range) -> dict[str, Any]:
    model = plane.models[title]
    x, y = plane.axes(model)
    columns, names = np.repeat(cells, plane.each), (x.name, y.name)
    value = plane.values[row] if plane.values else y.point(y.spans[row])
    points = [(float(x.point(x.spans[column])), value) for column in columns]
    seed = run.seed(plane.seed + list(plane.models).index(title))
    arguments = training_arguments(names, plane.steps, plane.delay, plane.thresholds, seed, plane.options)
    first = (row * plane.cells + cells.start) * plane.each
    numbers, fitted, general = train_points(points, first, model=model, names=names, arguments=arguments).T
    return table_of(
        {"diagram": np.full(len(points), title)}, column=columns, row=row,
        **{name: [point[k] for point in points] for k, name in enumerate(names)},
        network=numbers.astype(int), train_steps=or_never(fitted), validation_steps=or_never(general),
        phase=classify_phases(fitted, general, delay=plane.delay),
    )  # fmt: skip


def trained(run: Run, *, width: int = 0) -> Result:
    """Train the networks of the plane of a `run`; return a `Result` with the table "networks".

    `width` is as in `train_plane`.
    """
    return Result({"networks": train_plane(run, run.setting, width=width)})


# -- rules -------------------------------------------------------------------------------------------------

LOW: Span = (0.0, 1 / 3)
HIGH: Span = (2 / 3, 1.0)
LOWER: Span = (0.0, 0.5)
UPPER: Span = (0.5, 1.0)
ALL: Span = (0.0, 1.0)
"""Parts of an axis as fractions of its length; `LOW` and `HIGH` define the corners of the plane."""
GENERAL = ("comprehension", "grokking")
"""Phases of the networks that generalize."""
GENERALIZES = f"np.isin(phase, {GENERAL})"
CELL = "row.astype(int) * 10_000 + column.astype(int)"
"""Expressions of whether a network generalizes, and of the cell in which it is, for measures."""
CHANCE = counters.shuffled("networks", "phase")
OF_RATE = counters.replaced("networks", row="column", column="row")
SECTION = "Section 4.1"


def inside(rows: Columns, x: Span = ALL, y: Span = ALL) -> NDArray[np.bool_]:
    """Return which networks are in a part of the plane, bool (n,).

    A network is inside if the middle of its cell lies in the spans x and y, as fractions of the axes.
    """
    found = np.ones(len(rows["row"]), bool)
    for name, (low, high) in (("column", x), ("row", y)):
        place = (rows[name] + 0.5) / (np.max(rows[name]) + 1)
        found &= (low <= place) & (place <= high)
    return found


def between(phase: str | Sequence[str], x: Span, here: Span, there: Span, **which: str) -> Measure:
    """Return a measure of the share of a phase in one part of the vertical axis, minus that in another.

    Only networks in the span x of the horizontal axis count, and only those of `which` columns have some
    values. `phase` may name several phases. Spans are fractions of an axis.
    """
    sides = (partial(inside, x=x, y=y) for y in (here, there))
    return measures.gap("networks", lambda rows: np.isin(rows["phase"], phase), *sides, **which)


def corner(
    name: str, quote: str, phase: str, x: Span, y: Span, least: float = 0.4, note: str = ""
) -> Statement:
    """Return the rule that a phase is far more frequent in a corner of the plane than elsewhere.

    x and y are spans of the axes as fractions. The other arguments are those of `Statement`.
    """
    return Statement(name, quote,
        f"share of {phase} in that ninth of the plane minus its share elsewhere; by chance 0",
        measures.contrast("networks", f"phase == {phase!r}", partial(inside, x=x, y=y)),
        least=least, chance=CHANCE, note=note)  # fmt: skip


def _lead(values: Any, phase: Any) -> float:
    """Return the mean value of comprehension minus that of grokking, NaN if one of them is absent."""
    parts = [values[phase == name] for name in GENERAL]
    return float(parts[0].mean() - parts[1].mean()) if all(map(len, parts)) else float("nan")


def _distance(column: Any, row: Any, phase: Any) -> float:
    """Return how much farther from memorization networks of comprehension are than those of grokking.

    The arguments (n,) are the column and the row of each network, and the name of its phase. Distances in
    cells are means over pairs of networks. The result is NaN if one of the three phases is absent.
    """
    places = np.stack([column, row], axis=1).astype(float)
    goal = places[phase == "memorization"]
    gaps = np.linalg.norm(places[:, None] - goal, axis=2)
    return _lead(gaps.mean(axis=1), phase) if len(goal) else float("nan")


def _ordered(column: Any, row: Any, phase: Any) -> float:
    """Return how often grokking lies between comprehension and memorization, on the better of both axes.

    The arguments (n,) are as in `_distance`. Of the pairs of networks in a row of cells, it is the share in
    which comprehension has a lower column than grokking, or grokking than memorization, whichever is less;
    and likewise for the rows in a column of cells. The result is NaN if there are no such pairs.
    """
    shares = []
    for place, line in ((column, row), (row, column)):
        for pair in pairwise(("comprehension", "grokking", "memorization")):
            first, second = (phase == name for name in pair)
            gaps = (place[second] - place[first][:, None])[line[second] == line[first][:, None]]
            shares.append(np.mean(gaps[gaps != 0] > 0) if gaps.any() else np.nan)
    return float(max(min(shares[:2]), min(shares[2:])))


# -- pictures ----------------------------------------------------------------------------------------------


def _densities(column: Any, row: Any, phase: Any) -> NDArray[np.float64]:
    """Return the share of each of the `PHASES` in each cell, float64 (phases, rows, columns).

    The arguments (n,) are the column, the row and the phase of each network. The shares of a cell without
    networks are zero.
    """
    counts = np.zeros((len(PHASES), np.max(row) + 1, np.max(column) + 1))
    np.add.at(counts, ([PHASES.index(name) for name in phase], row, column), 1)
    return counts / np.maximum(counts.sum(axis=0), 1)


def draw_planes(name: str, setting: Any, tables: Tables) -> dict[str, Figure]:
    """Draw the most frequent phase of each cell, and if it has several networks the share of each phase.

    The `setting` is a plane, whose networks are the table "networks" as from `train_plane`, or has several
    planes by the names of their tables. If several phases are the most frequent, a cell has the color of the
    first of the `PHASES`. The vertical axis points down but for the rate of the embedding, as in the paper.
    """
    planes = {"networks": setting} if isinstance(setting, Plane) else vars(setting)
    parts = [(plane, key, *one) for key, plane in planes.items() for one in plane.models.items()]
    several = parts[0][0].each > 1
    columns, count = (5, len(parts)) if several else (min(len(parts), 2), -(-len(parts) // 2))
    layout: Any = {"rows": count, "columns": columns, "squeeze": False, "sharey": "row" if several else False}
    with charts.panels(13.6 if several else 5.0 * columns, 1.4 + 3.2 * count, **layout) as (figure, grid):
        lines = grid if several else grid.reshape(-1, 1)[: len(parts)]
        for (plane, key, title, model), line in zip(parts, lines, strict=True):
            own, edges, (x, y) = where(tables[key], diagram=title), plane.edges(model), plane.axes(model)
            density = _densities(own["column"], own["row"], own["phase"])
            show_phases(line[0], edges, density.argmax(axis=0))
            words = fill(title, 20 if several else 50).replace("S_3", "$S_3$")
            line[0].set(title=words + f"\nmost frequent of {plane.each}" * several, ylabel=y.label)
            for ax, phase, part in zip(line[1:], PHASES, density, strict=several):
                colors = LinearSegmentedColormap.from_list(phase, [palette.WHITE, palette.PHASES[phase]])
                ax.pcolormesh(*edges, part, cmap=colors, vmin=0, vmax=1)
                ax.set_title(f"share of\n{phase}")
            for ax in line:
                ax.set(xscale=x.scale, yscale=y.scale)
            if plane.values:
                line[0].set_yticks(range(len(plane.values)), plane.values)
            if y.name != "embedding_learning_rate":
                line[0].invert_yaxis()
            line[len(line) // 2].set_xlabel(x.label)
        shades = f"{plane.each} networks in each cell; shares: white for none, full color for all"
        name_phases(figure, title=shades if several else "one network in each cell", columns=2 + 2 * several)
    return {name: figure}


def show_phases(ax: Axes, edges: Sequence[Sequence[float]], phases: NDArray[np.int64]) -> None:
    """Draw the phase of each cell in its color: places in `PHASES` (rows, columns), between `Plane.edges`."""
    colors = ListedColormap([palette.PHASES[name] for name in PHASES])
    ax.pcolormesh(*edges, phases, cmap=colors, vmin=-0.5, vmax=len(PHASES) - 0.5)


def name_phases(figure: Figure, *, title: str = "", columns: int = 4) -> None:
    """Add a legend with the colors of the phases, in some columns, below the panels of a figure."""
    handles = [Patch(color=palette.PHASES[name], label=name) for name in PHASES]
    figure.legend(handles=handles, title=title, loc="outside lower center", ncols=columns, frameon=False)


# -- Figures 6, 13 to 15 -----------------------------------------------------------------------------------

OWN_STARTS = "nearest: each network has its own training set and start; the authors', and `liu-6`, share one"
DECAYING = f"{OWN_STARTS}; 10 × 10 cells, none at decay 0, where the authors' data have 16 × 11"
UNPUBLISHED = "nearest: no code of this figure is published; each network has its own training set and start"
KINDS: tuple[Literal["regression", "classification"], ...] = ("regression", "classification")
ADDITION = {f"Addition, {kind}": ToyAddition(kind=kind) for kind in KINDS}
S_3 = {"Permutations S_3, regression": GroupDecoder()}


def plane_of(
    models: Mapping[str, Any], y: tuple[Any, ...], label: str, seed: int, least: float = 1e-5,
    most: float = 1e-2, cells: int = 10, each: int = 3, fidelity: str = UNPUBLISHED,
) -> dict[str, Any]:  # fmt: skip
    """Return the arguments of `recipe` for a plane: its settings, what they cost, and how near they are.

    `models` are those of the diagrams by title, `y` and `label` describe the vertical axis, `least` and
    `most` bound the learning rate of the decoder, and the paper's setting has `cells` along an axis of
    limits, with `each` networks in a cell.
    """
    options = {"weight_decay": 0.0, "embedding_learning_rate": 1e-3, "embedding_weight_decay": 0.0}
    options = {name: value for name, value in options.items() if name != y[0]}
    options["train_fraction"] = SPLIT if models == S_3 else 45 / 55
    paper = Plane(
        models, ("learning_rate", least, most), y, cells=cells, each=each, steps=100_000, options=options,
        seed=seed, labels=("decoder learning rate", label),
    )  # fmt: skip
    small = {title: replace(model, hidden=(20, 20)) for title, model in models.items()}
    return {
        "paper_setting": paper,
        "quick": replace(paper, models=small, y=(*y[:2], y[-1]), cells=3, each=1, steps=1500, delay=100),
        "cost": "one to three hours: networks of at most 1e5 steps, 0.2 ms for each step and network",
        "fidelity": fidelity,
    }


# -- Figure 6 ----------------------------------------------------------------------------------------------


def _takes_long(tables: Tables, level: float) -> Interval:
    """Return the share of networks generalizing top left that are slower than the median elsewhere."""
    here, steps = inside(tables["networks"], LOW, HIGH), tables["networks"]["validation_steps"]
    here, steps = here[np.isfinite(steps)], steps[np.isfinite(steps)]
    return above_median(steps[here], steps[~here], level)


RATIO = "np.log10(embedding_learning_rate / learning_rate).round(6)"
"""Logarithm of the ratio of the learning rates of representation and decoder."""
COMPREHENDS = partial(measures.gap, "networks", "phase == 'comprehension'")
EQUAL = "corrected after the run: equal rates are not faster, and rounding does not split a diagonal"
RATES = plane_of(
    {"Addition, regression": ToyAddition()}, ("embedding_learning_rate", 1e-5, 1e-2),
    "representation learning rate", seed=600, fidelity=f"{OWN_STARTS}; 10 × 10 cells, theirs are 13 × 13",
)  # fmt: skip


@recipe(
    "liu-6a", item="Figure 6 (a)", draw=partial(draw_planes, "liu-6a"), source=SECTION,
    rules=(
        Statement("slow decoder",
            "an extremely slow decoder coupled with fast representation learning (top left) will generalize",
            "share of both in that ninth of the plane minus that elsewhere; by chance 0",
            measures.contrast("networks", GENERALIZES, partial(inside, x=LOW, y=HIGH)), least=0.1,
            chance=CHANCE, note="the share of comprehension and grokking together"),
        Statement("long", "the generalization time is long due to the inefficient decoder training",
            "share of networks generalizing there that need more steps than the median elsewhere; chance 1/2",
            _takes_long, least=0.7, chance=counters.shuffled("networks", "validation_steps"),
            note="corrected after the run: the median elsewhere has an error of its own"),
        Statement("faster",
            "The ideal phase (comprehension) requires representation learning to be faster ... than the "
            "decoder",
            "share of comprehension where the representation is faster minus where it is slower; by chance 0",
            COMPREHENDS(f"{RATIO} > 0", f"{RATIO} < 0"), least=0.1, chance=CHANCE, note=EQUAL),
        Statement("but not too much",
            "representation learning to be faster, but not too much, than the decoder",
            "share of comprehension where it is up to 32 times as fast minus where it is faster; by chance 0",
            COMPREHENDS(f"({RATIO} > 0) & ({RATIO} <= 1.5)", f"{RATIO} > 1.5"), least=0.1, chance=CHANCE,
            note=EQUAL),
    ),
    withdrawn={"memorization": "the authors' own panel allows a contrast of 0.40 at most, and 0.4 is asked"},
    **RATES,
)  # fmt: skip
def competition(run: Run) -> Result:
    """Phases of the toy model over the learning rates of the representation and of the decoder.

    Notes
    -----
    The rules judge where comprehension and late generalization are frequent.
    """
    return trained(run)


SIMPLE = "the bottom right corner (a fast and simple decoder) is the confusion phase"
CONFUSED = corner("bottom right", SIMPLE, "confusion", HIGH, HIGH)
LESS_CONFUSED = corner("bottom right, a tenth", SIMPLE, "confusion", HIGH, HIGH, 0.1,
    note="a run at other decays was known when this rule was written")  # fmt: skip
CAPACITY = (
    Statement("four phases", "they all include four phases",
        "share of the rarest phase among the networks of the plane",
        measures.rarest("networks", "phase", PHASES), least=0.01, digits=3,
        chance=counters.rarest_absent("networks", "phase")),
    corner("top right", "The top right corner (a fast and capable decoder) is the memorization phase",
        "memorization", HIGH, LOW),
    Statement("order", "grokking is sandwiched between comprehension and memorization",
        "of pairs of networks of equal decay, share in which comprehension has a slower decoder than "
        "grokking, or grokking than memorization, whichever is less; or of equal rate, with less decay; by "
        "chance a half",
        measures.statistic(_ordered, "networks", "column", "row", "phase", by=CELL), least=0.6,
        independent="cell", chance=CHANCE,
        note="networks were known when this rule was written, in place of one on borders; the authors' "
        "panels have 0.96 (b) and 0.72 (c), along the decay, and 0.90 (d), along the rate"),
)  # fmt: skip
BORDERS = {"sandwiched": "the authors' own panels (b) and (c) have not the borders for which it asks"}
WEAKER = BORDERS | {"bottom right": "the authors' own panel has 0.22, where the rule asks for 0.4"}
DECAYS = (0, 1, 2, 3, 5, 10, 20, 30, 50, 100, 200)
AUTHORS: dict[str, Any] = {
    "least": 10**-5.1, "most": 10**-1.9, "cells": 16, "each": 2, "fidelity": OWN_STARTS,
}  # fmt: skip
"""As in `phase_diagram_plot/data_perm_r.h5`; the rates from 1e-5 to 1e-2 are middles of cells."""
PLANES = {"a": RATES}
for _letter, (_title, _model), _decays, _confused, _withdrawn, _others in zip(
    "bcd", (ADDITION | S_3).items(), ((0.0, 10.0), (0.0, 20.0), DECAYS), (CONFUSED, CONFUSED, LESS_CONFUSED),
    (BORDERS, BORDERS, WEAKER), ({"fidelity": DECAYING}, {"fidelity": DECAYING}, AUTHORS), strict=True,
):  # fmt: skip
    PLANES[_letter] = plane_of(
        {_title: _model}, ("weight_decay", *_decays), "decoder weight decay", seed=610 + ord(_letter),
        **_others,
    )  # fmt: skip

    @recipe(
        f"liu-6{_letter}", item=f"Figure 6 ({_letter})", draw=partial(draw_planes, f"liu-6{_letter}"),
        shows=f"{_title}: phases over the decoder's learning rate and weight decay.",
        rules=(*CAPACITY, _confused), withdrawn=_withdrawn, source=SECTION, **PLANES[_letter],
    )  # fmt: skip
    def capacity(run: Run) -> Result:
        """Reproduce Figure 6 (b), (c) or (d): the phases over learning rate and weight decay of the decoder.

        The rules ask whether all four phases occur, which phases fill two corners of the plane, and whether
        grokking lies between comprehension and memorization.
        """
        return trained(run)


def _of_one_start(letter: str, budget: str, **grid: Any) -> Plane:
    """Return the plane of a panel with one network in each cell, all from one start, and on another grid."""
    plane = PLANES[letter][budget]
    ((title, model),) = plane.models.items()
    shared = plane.options | {"shared": ("embedding", "layers", "split", "targets", "noise")}
    return replace(plane, models={f"({letter}) {title}": model}, each=1, options=shared, **grid)


THEIRS: Any = {"x": ("learning_rate", AUTHORS["least"], AUTHORS["most"]), "cells": AUTHORS["cells"]}
EDGES = 10**-5.125, 10**-1.875
"""Limits of both rates of (a), which has 13 of each in the authors' files."""


@recipe(
    "liu-6", item="Figure 6, one training set and one start", draw=partial(draw_planes, "liu-6"),
    source=SECTION, cost="two hours",
    quick=Setting(**{letter: _of_one_start(letter, "quick") for letter in PLANES}),
    paper_setting=Setting(
        a=_of_one_start("a", "paper_setting", cells=13, x=("learning_rate", *EDGES),
            y=("embedding_learning_rate", *EDGES)),
        b=_of_one_start("b", "paper_setting", y=("weight_decay", *range(11)), **THEIRS),
        c=_of_one_start("c", "paper_setting", y=("weight_decay", *range(0, 21, 2)), **THEIRS),
        d=_of_one_start("d", "paper_setting"),
    ),
)  # fmt: skip
def one_start(run: Run) -> Result:
    """Phase diagrams at the published rates and decays: all networks of a panel have one start.

    They have one training set, too. Both are draws of our own.

    Notes
    -----
    The tables "a" to "d" have the network of each cell. There are no rules, as the cells are not independent.
    """
    return Result({letter: train_plane(run, plane) for letter, plane in vars(run.setting).items()})


# -- Figures 13 to 15 --------------------------------------------------------------------------------------
# In Figure 6 (a), nearly all networks with rates of the decoder above 1e-3 memorize, whatever else changes.
# The rules therefore compare the ends of the other axis at low rates.


def _both(name: str, quote: str, effect: str, phase: Any, *spans: Any, **terms: Any) -> list[Statement]:
    """Return the same rule for both losses. `phase` and the three `spans` are arguments of `between`."""
    words: Any = {"chance": CHANCE, "source": "Appendix G", "least": 0.1} | terms
    shares = {kind: between(phase, *spans, diagram=f"Addition, {kind}") for kind in KINDS}
    return [Statement(f"{name}, {kind}", quote, effect, share, **words) for kind, share in shares.items()]


for _number, _y, _label, _each, _rules in (
    (13, ("batch_size", 5, 45), "batch size", 3, (
        *_both("small batches",
            "the grokking region appears at the top left … (small decoder learning rate and small batch "
            "size)",
            "in the lowest third of rates, share of grokking in the smallest third of batches minus that in "
            "the largest; by chance 0",
            "grokking", LOW, LOW, HIGH),
        *_both("large batches", "large batch size (with small learning rate) leads to comprehension",
            "in the lowest third of rates, share of comprehension in the largest third of batches minus "
            "that in the smallest; by chance 0",
            "comprehension", LOW, HIGH, LOW),
    )),
    (14, ("embedding_scale", 0.1, 10.0), "initialization scale", 3,
        _both("small start", "Small initialization scale (top) leads to comprehension",
            "at rates up to 1e-3, share of comprehension in the half of smaller scales minus that in the "
            "other; by chance 0",
            "comprehension", LOWER, LOWER, UPPER, source="Figure 14")),
    (15, ("embedding_weight_decay", 0.0, 5.0), "representation weight decay", 5,
        _both("no matter",
            "the representation weight decay in general does not affect model performance much",
            "at rates up to 1e-3, share of networks that generalize in the half of larger decays minus that "
            "in the other",
            GENERAL, LOWER, UPPER, LOWER, least=-0.2, most=0.2, chance=OF_RATE)),
):  # fmt: skip

    @recipe(
        f"liu-{_number}", item=f"Figure {_number}; Appendix G", draw=partial(draw_planes, f"liu-{_number}"),
        shows=f"Phases over the decoder's learning rate and the {_label}.", rules=_rules,
        **plane_of(ADDITION, _y, _label, seed=100 * _number, least=1e-4, each=_each),
    )  # fmt: skip
    def hyperparameters(run: Run) -> Result:
        """Reproduce Figure 13, 14 or 15: the phases over another hyperparameter."""
        return trained(run)


# -- Figures 8, 20 -----------------------------------------------------------------------------------------

DATA = os.environ.get("GROKPHYS_MNIST", "digits")
IMAGES = "scikit-learn's digits" if DATA == "digits" else "MNIST"
OTHER_DATA = f"other data: {IMAGES} in place of MNIST" if DATA == "digits" else ""
THRESHOLDS = {"train_accuracy": 0.9, "validation_accuracy": 0.6}
"""Accuracies at which a network has fitted and has generalized. For images the paper asks for 60 % on the
validation set, instead of 90 % (Appendix J)."""
SCALE = 8.0
"""Factor of the initial weights: the paper says "a constant > 1", and the authors' later code has 8."""
BATCH = 200
IMAGE: dict[str, Any] = {"source": "Appendix J", "fidelity": OTHER_DATA}
SINGLE = "one network in each cell, so that a cell tells no probabilities"


def options(model: ImageMLP, images: int) -> dict[str, Any]:
    """Return split, batch size, initial scale and encoder's rate, as arguments of `nets.train`."""
    rest: dict[str, Any] = {"layer_scale": SCALE, "embedding_learning_rate": 1e-3}
    fraction = images / (len(model.task) - len(model.task.held_out))
    return rest | {"train_fraction": fraction, "batch_size": min(BATCH, images)}


def train_images(run: Run, count: int, *, curves: bool) -> dict[str, Any]:
    """Train the networks of a `Setting` on some images, and return the steps to the `THRESHOLDS`.

    These are infinite if never. With `curves`, all networks are trained to the end, and their accuracies over
    the recorded steps are added. Otherwise a network stops when it has reached both thresholds.
    """
    digest = str(run.setting.model.digest)[-12:]
    return run.keep(f"images-{count}-{digest}", partial(_train, run, count, curves))


def _train(run: Run, count: int, curves: bool) -> dict[str, Any]:
    setting = run.setting
    trained = train_networks(
        run, setting.seed + count, record="log:12" if curves else setting.steps, thresholds=THRESHOLDS,
        observables=tuple(THRESHOLDS) if curves else (), track=max(setting.steps // 500, 1),
        stop=None if curves else "thresholds", weight_decay=setting.weight_decay,
        **options(setting.model, count),
    )  # fmt: skip
    fitted, general = steps_reached(trained)
    rows = {"images": np.full(setting.seeds, count), "train_steps": fitted, "validation_steps": general}
    if curves:
        rows |= {"step": trained.steps} | {name: trained.observables[name] for name in THRESHOLDS}
    return rows


def _draw_curves(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw both accuracies of each network over the steps."""
    for name, color in zip(THRESHOLDS, (palette.FIRST, palette.SECOND), strict=True):
        own = measures.rows_of(tables, "curves", {}, "step > 0")
        step, curves = (own[part].reshape(setting.seeds, -1).T for part in ("step", name))
        labels = [name.replace("_accuracy", ""), *[""] * (setting.seeds - 1)]
        ax.plot(step, curves, color=color, linewidth=1, alpha=0.7, label=labels)
    ax.axhline(0.1, color=palette.REFERENCE, linestyle=":", linewidth=1, label="chance")
    title = f"{setting.images[0]} training images of {IMAGES}"
    charts.label(ax, "step", "accuracy", title, xscale="log", ylim=(0, 1.03))


@recipe(
    "liu-8", item=f"Figure 8 (a), on {IMAGES}", **IMAGE,
    quick={"model": ImageMLP(hidden=(20, 20)), "images": (50,), "seeds": 2, "steps": 200},
    paper_setting=Setting(model=ImageMLP(DATA), images=(1000,), seeds=10, steps=100_000, rate=1e-3,
        weight_decay=0.01, seed=800),
    draw=_draw_curves, panels=(6.0, 4.2),
    cost="ten minutes: 10 networks of 1e5 steps, 0.4 ms for each step and network",
    rules=(
        Statement("much later",
            "the network quickly fits the train set, and then much later in training validation accuracy "
            "improves",
            "share of networks that reach 60 % in validation, 1000 steps or more after 90 % in training",
            measures.share("networks",
                f"np.isfinite(validation_steps) & (validation_steps >= train_steps + {DELAY})"),
            least=0.5, chance=counters.exchanged("networks", "train_steps", "validation_steps")),
    ),
)  # fmt: skip
def grokking(run: Run) -> Result:
    """Accuracies of 10 image networks with large initial weights and a small training set.

    Notes
    -----
    The table "networks" has the steps to both accuracies, and
    "curves" the accuracies over time. The rule asks how many networks generalize 1000 steps or more after
    they have fitted.
    """
    networks = train_images(run, *run.setting.images, curves=True)
    curves = {name: networks.pop(name) for name in ("step", *THRESHOLDS)}
    index = {"network": range(run.setting.seeds), "step": curves.pop("step")}
    return Result({"networks": networks, "curves": table_of(index, **curves)})


def _plane_08_20(model: ImageMLP, images: int, cells: int, steps: int, delay: float) -> Plane:
    return Plane(
        {f"{images} images of {IMAGES}": model}, ("learning_rate", 1e-6, 1e-1), ("weight_decay", 1e-4, 10.0),
        cells, 1, steps, options(model, images), seed=850, delay=delay, thresholds=THRESHOLDS,
        labels=("learning rate of the last layer", "weight decay"),
    )  # fmt: skip


@recipe(
    "liu-8b", item=f"Figure 8 (b), on {IMAGES}", **IMAGE,
    quick=_plane_08_20(ImageMLP(hidden=(20, 20)), 50, 3, 100, 50),
    paper_setting=_plane_08_20(ImageMLP(DATA), 1000, 10, 100_000, DELAY), draw=partial(draw_planes, "liu-8b"),
    cost="an hour or two: 100 networks of at most 1e5 steps; each row of cells is kept",
    rules=(
        corner("confusion",
            "a “confusion” phase in the bottom right (high learning rate and high weight decay)",
            "confusion", HIGH, HIGH,
            note=f"{SINGLE}; all networks in this corner reach 60 % in validation within 1000 steps"),
        corner("memorization", "a “memorization” phase at low weight decay and low learning rate",
            "memorization", LOW, LOW, note=SINGLE),
        Statement("grokking", "a “grokking” phase as one decreases weight decay",
            "mean row of comprehension minus that of grokking, in cells of weight decay; by chance 0",
            measures.statistic(_lead, "networks", "row.astype(float)", "phase", among=GENERALIZES),
            least=0.5, chance=CHANCE, note=SINGLE),
    ),
)  # fmt: skip
def phases_08_20(run: Run) -> Result:
    """Phases over the learning rate of the last layer and the weight decay.

    Networks have generalized at 60 % of the validation set.

    Notes
    -----
    One network is trained in each cell, from large initial weights. The rules judge where in the plane
    confusion and memorization are frequent, and whether grokking has less weight decay than comprehension.
    """
    return trained(run)


def _log_steps(rows: Columns) -> Any:
    """Return log₁₀ of the steps to generalize; never counts as ten times the largest number of others."""
    steps = rows["validation_steps"]
    return np.log10(np.where(np.isfinite(steps), steps, 10 * steps[np.isfinite(steps)].max(initial=1)))


def _bend(images: Any, values: Any) -> float:
    """Return how much more values rise from the middle third of sizes to the smallest than to the middle."""
    place = np.unique(images, return_inverse=True)[1]
    third = 3 * place // (place.max() + 1)
    small, middle, large = np.bincount(third, values, 3) / np.bincount(third, minlength=3)
    return float(small - 2 * middle + large)


def _draw_sizes(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw the steps to both accuracies over the number of images, as a point for each network."""
    rows = tables["networks"]
    for part, color, marker in (("train", palette.FIRST, "s"), ("validation", palette.SECOND, "o")):
        goal = f"{100 * THRESHOLDS[f'{part}_accuracy']:g} % in {part.replace('train', 'training')}"
        look: Any = {"marker": marker, "markersize": 5, "fillstyle": "none", "color": color}
        words = {"label": f"to {goal}", "never": f"never {goal}"}
        charts.steps(ax, rows["images"], rows[f"{part}_steps"], setting.steps, **look, **words)
    title = f"{setting.seeds} networks for each number of images"
    charts.label(ax, f"training images of {IMAGES}", "steps", title, xscale="log", yscale="log")


LESS_DATA = "generalization time increases rapidly once one drops below a certain amount of training data"


@recipe(
    "liu-20", item=f"Figure 20, on {IMAGES}", **IMAGE,
    quick={"model": ImageMLP(hidden=(20, 20)), "images": (50, 200), "seeds": 2, "steps": 200, "seed": 800},
    paper_setting=Setting(model=ImageMLP(DATA), seeds=10, steps=100_000, rate=1e-3, weight_decay=0.01,
        images=(50, 75, 100, 150, 200, 300, 400, 600, 800, 1000, 1200, 1500), seed=2000),
    draw=_draw_sizes, panels=(6.0, 4.2),
    cost="an hour or two: 120 networks of at most 1e5 steps; each size is kept",
    rules=(
        Statement("size", LESS_DATA,
            "Kendall's τ of the steps to 60 % in validation with the number of images; by chance 0",
            measures.rank_correlation("networks", "images", "validation_steps"), most=-0.3,
            chance=counters.shuffled("networks", "validation_steps")),
        Statement("rapidly", LESS_DATA,
            "mean log₁₀ of the steps in the smallest third of sizes minus that in the middle third, less "
            "the same for the middle and the largest third; by chance 0",
            measures.statistic(_bend, "networks", "images", _log_steps), least=0.3,
            chance=counters.shuffled("networks", "validation_steps"),
            note="most of the rise of the logarithm lies between 1500 and 600 images"),
    ),
)  # fmt: skip
def sizes(run: Run) -> Result:
    """How soon image networks generalize, by the number of training images.

    Notes
    -----
    Networks start from large initial weights. The table "networks" has the steps to both accuracies. The
    rules ask whether networks generalize later with fewer training images, and much later with very few.
    """
    parts = (train_images(run, count, curves=False) for count in run.setting.images)
    return Result({"networks": joined(parts)})


# -- Figure 7 ----------------------------------------------------------------------------------------------

EMBEDDING: dict[str, Any] = {"embedding_learning_rate": 1e-3, "embedding_weight_decay": 0.0}
ADAMW_DECAY = 0.01
"""Weight decay of the embedding in `scripts/transformer_grokking.py` of the branch `prototype`, the default
of PyTorch's AdamW. The decoder has 0 there, unless the command line says otherwise."""
SMALL = TokenTransformer(11, 16, depth=1, width=16)

PIECE = 1, 10
"""Largest number of transformers that are trained together, on a CPU and on a GPU (for minutes)."""


def steps_reached(trained: Any) -> tuple[Any, ...]:
    """Return the steps at which training and validation accuracy reach their thresholds, float64 (runs,).

    They are infinite for a network that never does. `trained` is a trajectory of networks that were trained
    with thresholds of both accuracies.
    """
    return tuple(or_never(trained.observables[f"steps_to_{name}"][:, -1]) for name in ACCURACIES)


def _change(first: str, second: str, own: Columns) -> float:
    """Return the logarithm of the effective dimension at one moment over that at an earlier one."""
    a, b = (own["dimension"][own["moment"] == name][0] for name in (first, second))
    return float(np.log(b / a))


@recipe(
    "liu-7", item="Figure 7, left",
    fidelity="nearest: with a causal mask; 53 tokens and a rate of 1e-3, where the authors note 59 and 2e-4",
    quick={"model": SMALL, "seeds": 2, "steps": 200, "piece": 2},
    paper_setting=Setting(model=TokenTransformer(), seeds=100, steps=20_000, piece=1, frames=1000,
        learning_rate=1e-3, weight_decay=1.0),
    source="Section 4.2",
    cost="0.1 s for each step and network: 55 hours, or half an hour of a GPU; 30 of 100 are stored",
    rules=(
        Statement("rises", "the entropy increases up to generalization time",
            "mean logarithm of the dimension when 90 % are validated over that at the start; by chance 0",
            measures.of_networks("moments", partial(_change, "start", "generalized")), least=0.02, digits=3,
            chance=counters.shuffled("moments", "dimension", within="network")),
        Statement("falls", "then decreases drastically afterwards",
            "mean logarithm of the dimension at the end over that when 90 % are validated; by chance 0",
            measures.of_networks("moments", partial(_change, "generalized", "end")), most=-0.5,
            chance=counters.shuffled("moments", "dimension", within="network")),
    ),
)  # fmt: skip
def dimension(run: Run) -> Result:
    """The effective dimension of the embeddings, and the accuracies, during training.

    Notes
    -----
    The figure marks the step at which a network reaches 90 % validation accuracy. The rules ask whether the
    dimension rises until then, and falls afterward.
    """
    setting = run.setting
    parts = list(in_parts(run, setting.seeds, (setting.piece, PIECE[1]), partial(_follow, run)))
    curves, reached = (np.concatenate([part[k] for part in parts]) for k in ("dimension", "validation_steps"))
    steps, done = parts[0]["steps"], np.flatnonzero(np.isfinite(reached))
    at = [int(np.argmax(steps >= reached[k])) for k in done]
    values = np.stack([curves[done, 0], curves[done, at], curves[done, -1]], axis=1)
    moments = table_of({"network": done, "moment": ["start", "generalized", "end"]}, dimension=values)
    with charts.panels(6.0, 4.2) as (figure, ax):
        ax.plot(steps, curves.T, color=palette.FIRST, linewidth=0.6, alpha=0.3)
        middle = np.median(curves, axis=0)
        ax.plot(steps, middle, color=palette.FIRST, label=f"median of {len(curves)} networks")
        look: Any = {"color": palette.SECOND, "markersize": 4, "label": "90 % validation accuracy"}
        ax.plot(reached[done], values[:, 1], "o", **look)
        charts.label(ax, "step", "effective dimension exp(S)", ylim=(0, None))
    return Result({"moments": moments}, {"liu-7": figure})


def _follow(run: Run, part: range) -> dict[str, Any]:
    setting = run.setting
    trained = train(
        setting.model, runs=len(part), first_run=part.start, seed=run.seed(700), steps=setting.steps,
        record=max(setting.steps // setting.frames, 1), thresholds=ACCURACIES,
        learning_rate=setting.learning_rate, weight_decay=setting.weight_decay, **EMBEDDING,
    )  # fmt: skip
    return {
        "steps": trained.steps,
        "dimension": np.stack([effective_dimension(positions) for positions in trained.positions]),
        "validation_steps": steps_reached(trained)[1],
    }


MUCH_DROPOUT = "dropout >= 0.2"
"""Which rates of dropout count as significant in the rules."""


DRY = counters.changed("the steps of networks without dropout for all", "networks", lambda rows, _: {
    name: np.resize(rows[name][rows["dropout"] == 0], len(rows[name]))
    for name in ("train_steps", "validation_steps")
})  # fmt: skip


@recipe(
    "liu-7b", item="Figure 7, center",
    fidelity="nearest: with a causal mask, no decay of the embedding, and at most 20 000 steps; to be run "
    "again without the mask, with the published decay and 100 000 steps. The published plot has 99 % for 90",
    quick={"model": SMALL, "rates": (0.0, 0.2), "seeds": 2, "steps": 100, "embedding_weight_decay": 0.0},
    paper_setting=Setting(model=TokenTransformer(causal=False), seeds=5, steps=100_000, learning_rate=1e-3,
        rates=tuple(np.linspace(0, 0.5, 10).round(3).tolist()), embedding_weight_decay=ADAMW_DECAY),
    source="Section 4.2",
    cost="0.1 to 0.3 s for each step and network, 140 to 390 hours on two cores; each network is kept",
    rules=(
        Statement("below 1000 steps",
            "With a significant dropout rate, the generalization time can be brought down to under 10^3 "
            "steps",
            "share of networks with dropout of 0.2 or more that generalize in fewer than 1000 steps",
            measures.share("networks", "validation_steps < 1000", among=MUCH_DROPOUT), least=0.5,
            note="all do at rates from 0.2 to 0.4, and one of ten above", chance=DRY),
        Statement("no grokking", "and the grokking phenomenon vanishes completely",
            "share of networks with dropout of 0.2 or more that generalize within 1000 steps after they fit",
            measures.share("networks",
                f"np.isfinite(validation_steps) & (validation_steps < train_steps + {DELAY})",
                among=MUCH_DROPOUT),
            least=0.8, note="all do at rates from 0.2 to 0.45, and one of five at 0.5", chance=DRY),
        Statement("speeds up", "Effect of dropout on speeding up generalization",
            "Kendall's τ of the steps to 90 % of the validation set with the rate of dropout; by chance 0",
            measures.rank_correlation("networks", "dropout", "validation_steps"), most=-0.2,
            source="Figure 7", chance=counters.shuffled("networks", "validation_steps"),
            note="fewer steps up to a rate of a quarter, and more beyond (see the notes)"),
    ),
)  # fmt: skip
def dropout(run: Run) -> Result:
    """How soon networks generalize, by the rate of dropout.

    Networks of equal numbers share a dot; the dotted line is at 1000 steps.

    Notes
    -----
    The table "networks" has a row for each network. The rules ask how many networks with much dropout
    generalize early, how many do so soon after they fit, and whether the steps to generalization fall as the
    rate of dropout rises.
    """
    setting = run.setting
    parts = (
        in_parts(run, setting.seeds, PIECE, partial(_with_dropout, run, k), f"dropout-{rate:g}-networks")
        for k, rate in enumerate(setting.rates)
    )
    rows = joined(chain.from_iterable(parts))
    with charts.panels(6.0, 4.2) as (figure, ax):
        for part, color in (("train", palette.FIRST), ("validation", palette.SECOND)):
            look: Any = {"color": color, "markersize": 5, "label": part, "never": f"{part}: never"}
            charts.steps(ax, rows["dropout"], rows[f"{part}_steps"], setting.steps, **look)
        ax.axhline(1000, color=palette.REFERENCE, linestyle=":", linewidth=1)
        charts.label(ax, "rate of dropout", "steps to 90 %", yscale="log")
    return Result({"networks": rows}, {"liu-7b": figure})


def _with_dropout(run: Run, number: int, part: range) -> dict[str, Any]:
    setting, rate = run.setting, run.setting.rates[number]
    trained = train_networks(
        run, 750 + number, model=replace(setting.model, dropout=rate), runs=len(part), first_run=part.start,
        observables=(), thresholds=ACCURACIES, track=20, stop="thresholds", record=setting.steps,
        learning_rate=setting.learning_rate, embedding_weight_decay=setting.embedding_weight_decay,
    )  # fmt: skip
    fitted, generalized = steps_reached(trained)
    return {"dropout": np.full(len(part), rate), "train_steps": fitted, "validation_steps": generalized}


PLANE_07 = Plane(
    {"Transformer": TokenTransformer(causal=False)}, ("learning_rate", 1e-6, 1e-2),
    ("weight_decay", 0.02, 20.0), cells=8, each=1, steps=100_000, options=EMBEDDING, seed=780,
    labels=("decoder learning rate", "decoder weight decay"),
)  # fmt: skip


@recipe(
    "liu-7c", item="Figure 7, right",
    fidelity="nearest: 8 × 8 cells of rates from 1e-6 to 1e-2, where the code has 19 × 15, from 1e-9 to 0.1",
    quick=replace(PLANE_07, models={"Transformer": SMALL}, cells=3, steps=60, delay=20),
    paper_setting=PLANE_07, draw=partial(draw_planes, "liu-7c"), source="Section 4.2",
    cost="0.1 s for each step and network, two to seven days on two cores; each cell is kept",
    rules=(
        Statement("weight decay", "a certain amount of weight decay proves beneficial to generalization",
            "share of networks that generalize with more than the lowest third of decays minus that in it",
            measures.contrast("networks", GENERALIZES, lambda rows: ~inside(rows, ALL, LOW)),
            least=0.1, chance=CHANCE),
        Statement("closer to memorization",
            "on transformers the grokking phase stays closer to the memorization phase (compared to the "
            "comprehension phase)",
            "mean distance to memorization, in cells, of comprehension minus that of grokking; by chance 0",
            measures.statistic(_distance, "networks", "column", "row", "phase", by=CELL), least=0.5,
            independent="cell", source="Abstract", chance=CHANCE),
    ),
)  # fmt: skip
def phases_07(run: Run) -> Result:
    """Phases of the transformer over the decoder's learning rate and weight decay.

    Notes
    -----
    The table "networks" has a row for each network. The rules ask whether weight decay helps to generalize,
    and whether grokking is nearer to memorization than comprehension is.
    """
    return trained(run, width=1)
