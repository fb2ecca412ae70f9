"""Figures 1, 2 and 5, Appendices D, E and G of Musat: final structures of embeddings and particles.

Figures 3 and 4, Appendix F of Musat: embeddings, and what their networks answer over the plane.

Figure 6 of Musat: how weight decay limits the weights and the biases of the hidden layer (Appendix B).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles import Structures, structures
from analysis.plots.embeddings import plane, show_classifier, show_embedding
from grokphys.papers import charts, counters, measures
from grokphys.papers.evidence import Columns, Measure, Tables, joined, mean, table_of, where
from grokphys.papers.musat import tables as musat
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from nets import ConstantAttention
from nets import networks as revived
from physics import InputError, Trajectory, circle_ratio, grid_imperfections

# -- final structures --------------------------------------------------------------------------------------

PLANES: Mapping[int, Sequence[tuple[int, int]]] = {3: ((0, 1), (0, 2), (1, 2)), 4: ((0, 1), (1, 2), (2, 3))}
"""Pairs of dimensions that Appendix G shows, by the dimension D; for D = 4 the paper does not name them."""
SHOWN_HIGHER: Mapping[int, int] = {3: 7, 4: 8}


def _structures(quote: str, source: str, fitted: str = "", **constants: Any) -> tuple[Statement, ...]:
    grid, ordered = f"(imperfections <= {musat.GRID})", f"(imperfections <= {musat.ORDERED})"
    meaning = {
        "circles": ("largest norm less than 1.2 times the smallest", "circle"),
        "grids": (f"at most {musat.GRID} of {musat.PAIRS} imperfections", f"~circle & {grid}"),
        "imperfect grids": (
            f"{musat.GRID + 1} to {musat.ORDERED} imperfections", f"~circle & ~{grid} & {ordered}"
        ),
    }  # fmt: skip
    at = ", ".join(f"{key.replace('t_d', 't d')} = {value:g}" for key, value in constants.items())
    return tuple(
        Statement(name, quote, f"share of {name} ({text}); random positions are none of these",
            measures.share("runs", which, **constants), least=0.05, independent="run", source=source,
            fitted=fitted, chance=musat.random_positions("runs"), note=f"of runs with {at}")
        for name, (text, which) in meaning.items()
    )  # fmt: skip


@recipe(
    "musat-5", item="Figure 5; Appendix E", quick={"runs": 24, "shown": 8},
    paper_setting=Setting(runs=500, shown=20, steps=musat.STEPS), cost="a minute",
    rules=_structures(
        "the particles self-organize into the same structures as the embeddings in the trained transformer: "
        "circles, grids, and imperfect grids",
        "Section 6", musat.FITTED, f_a=1.0,
    ),
)  # fmt: skip
def arrangements(run: Run) -> Result:
    """Final positions of the first 20 of 500 runs of particles, at three strengths f_a of the alignment.

    Notes
    -----
    The table "runs" has a row for each run, and a figure for each f_a shows the first runs. The rules judge
    the shares of circles, grids and imperfect grids at f_a = 1.
    """
    setting = run.setting
    rows, pictures = [], {}
    for f_a in (1.0, 2.0, 0.5):
        end = musat.particles(
            f_a, runs=setting.runs, seed=run.seed(5100 + round(10 * f_a)), steps=setting.steps
        ).final
        rows.append({"f_a": np.full(setting.runs, f_a), **musat.structures_of(end)})
        name = "musat-5" if f_a == 1.0 else f"musat-5-fa{f_a:g}"
        pictures[name] = musat.gallery(end[: setting.shown], f"$f_a$ = {f_a:g}, {setting.steps} steps")
    return Result({"runs": joined(rows)}, pictures)


@recipe(
    "musat-D", item="Figures 1, 2; Appendix D", quick={"runs": 8, "shown": 8, "steps": 300},
    paper_setting=Setting(runs=200, shown=20, steps=musat.EPOCHS), source="Section 2", cost="ten minutes",
    rules=(
        *_structures(
            "embedding vectors tend to be positioned in arithmetic progressions, forming either grids or "
            "circles … sometimes, however, the embeddings self-organize into imperfect grids",
            "Section 4", weight_decay=1.0,
        ),
        Statement("weight decay", "weight decay plays a crucial role … in reducing grid imperfections",
            "imperfections of all embeddings at weight decay 0 minus those at 1; by chance 0",
            measures.difference(
                *(measures.mean("runs", "imperfections", weight_decay=decay) for decay in (0.0, 1.0)),
            ),
            least=musat.PAIRS / 10, digits=1, chance=counters.shuffled("runs", "weight_decay")),
    ),
)  # fmt: skip
def embeddings(run: Run) -> Result:
    """Trained embeddings of the first 20 of 200 networks, at four weight decays.

    Notes
    -----
    The table "runs" has a row for each network, and a figure for each weight decay shows the first networks.
    The rules judge the shares of circles, grids and imperfect grids at weight decay 1, and compare the
    imperfections of all embeddings at weight decays 0 and 1.
    """
    setting = run.setting
    rows, pictures = [], {}
    for decay in sorted(musat.TABLE_1, reverse=True):
        trained = musat.networks(run, decay, 5200 + round(10 * decay))
        rows.append({"weight_decay": np.full(setting.runs, decay), **musat.table_of(trained)})
        name = "musat-D" if decay == 1.0 else f"musat-D-wd{decay:g}"
        title = f"Weight decay {decay:g}, {setting.steps} epochs"
        pictures[name] = musat.gallery(trained.final[: setting.shown], title, rows[-1]["accuracy"])
    return Result({"runs": joined(rows)}, pictures)


# -- more dimensions ---------------------------------------------------------------------------------------


@recipe(
    "musat-G", item="Appendix G", quick={"runs": 8, "steps": 300},
    paper_setting=Setting(runs=100, shown=8, steps=musat.EPOCHS), source="Section 4", cost="five minutes",
    rules=tuple(
        Statement(f"D = {dim}", "the similar structures emerge in higher-dimensional embedding spaces",
            "part of the pair sums whose nearest other one is of another class; 0.96 for random positions",
            measures.mean(f"D{dim}", f"imperfections / {musat.PAIRS}"), most=0.5,
            chance=musat.random_positions(f"D{dim}", dim))
        for dim in PLANES
    ),
)  # fmt: skip
def higher(run: Run) -> Result:
    """Trained embeddings in three and in four dimensions, of the first 7 and 8 of 100 networks.

    Each row shows two of the axes.

    Notes
    -----
    The tables "D3" and "D4" have a row for each network, and each dimension has a figure. The rules judge the
    share of pair sums whose nearest other pair sum is of another class.
    """
    tables, pictures = {}, {}
    for dim, planes in PLANES.items():
        trained = musat.networks(run, 1.0, 5300 + dim, model=ConstantAttention(dim=dim))
        tables[f"D{dim}"] = musat.table_of(trained)
        name = "musat-G" if dim == 3 else f"musat-G-D{dim}"
        pictures[name] = _show_planes(trained.final, planes, tables[f"D{dim}"]["accuracy"], dim)
    return Result(tables, pictures)


def _show_planes(final: Any, planes: Sequence[tuple[int, int]], accuracy: Any, dim: int) -> Figure:
    count, title = SHOWN_HIGHER[dim], f"D = {dim}, weight decay 1"
    with charts.panels(2.1 * count, 7.3, len(planes), count, title) as (figure, axes):
        for ax, plane in zip(axes[:, 0], planes, strict=True):
            ax.set_ylabel(f"axes {plane[0] + 1}, {plane[1] + 1}")
        for n in range(count):
            for ax, plane in zip(axes[:, n], planes, strict=True):
                show_embedding(final[n][:, plane], ax)
            words = musat.what(final[n], accuracy[n]).replace("ratio ", "").replace(",\naccuracy ", "\n")
            axes[0, n].set_title(f"{n}: {words}", fontsize="small")
    return figure


# -- answers over the plane --------------------------------------------------------------------------------

FIRST, SECOND = np.triu_indices(17)
CLASS = (FIRST + SECOND) % 17


def clustered(E: Any) -> NDArray[np.float64]:
    """Return the fraction of pair sums of each embedding whose nearest other one has the same class."""
    return np.asarray(1 - grid_imperfections(E) / musat.PAIRS)


def aligned(E: Any) -> NDArray[np.float64]:
    """Return how well the pair sums of a class lie on one line through the origin, as a mean over classes.

    Parameters
    ----------
    E : array_like, shape (networks, 17, 2)
        Embeddings in the plane.

    Returns
    -------
    ndarray of float64, shape (networks,)
        Length of the pair sums along the best line of their class, as a fraction of their length. It is 1 if
        all sums lie on the line, and about 2/π (more for few sums) if their directions are random.
    """
    sums = np.asarray(E)[:, FIRST] + np.asarray(E)[:, SECOND]
    z = sums[..., 0] + 1j * sums[..., 1]
    parts = []
    for label in range(17):
        own = z[:, label == CLASS]
        axis = np.sqrt((own**2).sum(axis=1, keepdims=True))
        along = np.abs((own * axis.conj()).real).sum(axis=1)
        parts.append(along / (np.abs(axis[:, 0]) * np.abs(own).sum(axis=1)))
    return np.mean(parts, axis=0)


def _of(kind: bool | None, values: Any) -> Measure:
    """Return a measure of the mean of values of networks that are circles or not, or of all."""

    def of_networks(rows: Columns) -> Any:
        order = np.lexsort((rows["token"], rows["network"]))
        E = np.stack([rows["x"], rows["y"]], axis=1)[order].reshape(-1, 17, 2)
        return values(E)[slice(None) if kind is None else rows["circle"][order][::17] == kind]

    return measures.mean("tokens", of_networks)


NEAREST = "part of the pair sums whose nearest other one is of their class; 1/17 by chance"
SHUFFLED = counters.shuffled("tokens", "token", within="network")
PAPER_TYPICAL = Setting(runs=100, decay=1.0, epochs=musat.EPOCHS)


@recipe(
    "musat-3", item="Figure 3", quick={"runs": 6, "epochs": 300}, paper_setting=PAPER_TYPICAL,
    source="Section 5", cost="three minutes",
    rules=(
        Statement("clusters", "the grid structure makes the pair sums cluster based on the modular sum",
            f"{NEAREST}, of networks that are no circles",
            _of(False, clustered), least=0.5, chance=SHUFFLED),
    ),
)  # fmt: skip
def grid_map(run: Run) -> Result:
    """The pair sums of one of 100 networks whose embedding is a grid, and the classes of their plane.

    The color of the plane is the class that the network answers there, and that of a marker the correct class
    of its pair sum; diamonds with a dark edge are pairs for validation. An accuracy of about a half is that
    of the paper, whose networks reach 46.7 % on average (Table 1); chance is 6 %.

    Notes
    -----
    The weight decay is 1. The table "tokens" has a row for each token of each network. The rule judges the
    share of pair sums whose nearest other pair sum is of their own class, in networks without a circle.
    """
    return _typical(run, "grid", "musat-3", 4300)


@recipe(
    "musat-4", item="Figure 4", quick={"runs": 6, "epochs": 300}, paper_setting=PAPER_TYPICAL,
    source="Section 5.2", cost="three minutes",
    rules=(
        Statement("aligned", "they are aligned along lines that pass through the origin",
            "part of the length of pair sums that lies along the line of their class, of circles",
            _of(True, aligned), least=0.9, chance=SHUFFLED),
        Statement("not clustered", "Pair sums are no longer clustered",
            f"{NEAREST}; of circles minus of the rest",
            measures.difference(_of(True, clustered), _of(False, clustered)), most=-0.1,
            chance=counters.shuffled("tokens", "circle")),
    ),
)  # fmt: skip
def circle_map(run: Run) -> Result:
    """The pair sums of one of 100 networks whose embedding is a circle, and the classes of their plane.

    Colors and markers are those of Figure 3.

    Notes
    -----
    The table is that of Figure 3. The rules judge whether the pair sums of a class lie on one line in
    circles, and whether they are less clustered there than in the other networks.
    """
    return _typical(run, "circle", "musat-4", 4400)


@recipe(
    "musat-F", item="Appendix F", quick={"runs": 4, "epochs": 300},
    paper_setting=Setting(runs=14, decay=0.6, epochs=musat.EPOCHS), source="Section 5.1", cost="a minute",
    rules=(
        Statement("clusters", "the pair sums tend to cluster based on their modular sum", NEAREST,
            _of(None, clustered), least=0.5, chance=SHUFFLED),
    ),
)  # fmt: skip
def more_maps(run: Run) -> Result:
    """Embeddings and classifiers of 14 networks at weight decay 0.6.

    Colors and markers are those of Figure 3.

    Notes
    -----
    The table "tokens" has a row for each token of each network. The rule judges the share of pair sums whose
    nearest other pair sum is of their own class.
    """
    trained = _trained_classifiers(run, 4500)
    rows = -(-trained.runs // 2)
    title = "Embeddings, and their classes with the pair sums (diamonds: validation)"
    with charts.panels(13.0, 3.3 * rows, rows, 4, title, squeeze=False) as (figure, axes):
        for n, (left, right) in enumerate(axes.reshape(-1, 2)):
            if n < trained.runs:
                _show(trained, n, left, right, "classes", brief=True)
    return Result({"tokens": _tokens(trained)}, {"musat-F": figure})


def _trained_classifiers(run: Run, seed: int) -> Trajectory:
    return musat.networks(run, run.setting.decay, seed, observables=("validation_accuracy", "layers"))


def _tokens(trained: Trajectory) -> dict[str, Any]:
    x, y = np.moveaxis(trained.final, 2, 0)
    circle = structures(trained.final).circle[:, None]
    return table_of({"network": range(trained.runs), "token": range(17)}, x=x, y=y, circle=circle)


def typical_runs(trajectory: Trajectory, found: Structures) -> dict[str, int]:
    """Return the places of typical runs: the roundest circle, the best grid and the median grid.

    Parameters
    ----------
    trajectory : Trajectory
        Runs of particles or networks.
    found : Structures
        Their final structures, in the same order.

    Returns
    -------
    dict of str to int
        Place of the run in the trajectory by "circle", "grid" and "imperfect grid", as far as they exist.
        Every run that is no circle counts as a grid.
    """
    chosen = {}
    circles, grids = np.flatnonzero(found.circle), np.flatnonzero(~found.circle)
    if len(circles):
        chosen["circle"] = int(circles[np.argmin(circle_ratio(trajectory.final[circles]))])
    if len(grids):
        order = grids[np.argsort(found.imperfections[grids], kind="stable")]
        chosen["grid"] = int(order[0])
        if len(order) > 1:
            chosen["imperfect grid"] = int(order[len(order) // 2])
    return chosen


def _typical(run: Run, kind: str, name: str, seed: int) -> Result:
    """Train networks, and draw one whose structure is the `kind` "circle" or "grid".

    The result holds the table "tokens", and a figure called `name`. If no network has the
    structure, the quick budget draws the first network.

    Raises
    ------
    InputError
        If no network has the structure at the setting of the paper.
    """
    trained = _trained_classifiers(run, seed)
    chosen = typical_runs(trained, structures(trained.final))
    if kind not in chosen and run.budget == "paper":
        raise InputError(f"there must be a {kind} among the {trained.runs} networks, found none")
    with charts.panels(9.6, 4.9, 1, 2) as (figure, (left, right)):
        figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.08)
    title = "classes and pair sums (diamonds: validation)"
    _show(trained, chosen.get(kind, 0), left, right, title)
    return Result({"tokens": _tokens(trained)}, {name: figure})


def _show(trained: Trajectory, run: int, left: Any, right: Any, title: str, *, brief: bool = False) -> None:
    """Draw an embedding at the left, and at the right the classes that its network assigns to the plane.

    Parameters
    ----------
    trained : Trajectory
        Networks with their layers.
    run : int
        Number of the network.
    left, right : matplotlib Axes
        Axes for the embedding and for the classes.
    title : str
        Title of the right axes.
    brief : bool, default False
        Whether the title of the left axes is short, for narrow panels.
    """
    alone = revived(trained.run(run))
    E, task = trained.final[run].astype(float), alone.model.task
    sums = E[task.inputs].sum(axis=1)
    held_out = np.isin(np.arange(len(task)), alone.examples("validation")[0])
    grid, bounds = plane(sums)
    side = round(len(grid) ** 0.5)
    accuracy = 100 * float(trained.observables["validation_accuracy"][run, -1])
    shape = musat.what(E)
    head = f"network {run}: {shape.replace('imperf.', 'grid imperfections')}; accuracy {accuracy:.0f} %"
    show_embedding(E, left, title=f"{run}: {shape}, {accuracy:.0f} %" if brief else head)
    show_classifier(
        alone.classify(grid)[0].reshape(side, side), bounds, right, count=task.classes, sums=sums,
        labels=task.labels, held_out=held_out, title=title,
    )  # fmt: skip


# -- Figure 6 ----------------------------------------------------------------------------------------------

LABELS = {"weight_norm": "weights, mean |w|", "bias_norm": "biases, mean |b|"}


def _left(value: str) -> Measure:
    """Return a measure of the geometric mean of a value at weight decay 1, as a fraction of that at 0."""
    return measures.ratio(
        *(measures.mean("networks", f"np.log({value})", weight_decay=decay) for decay in (1.0, 0.0))
    )


GEOMETRIC = "the means over the networks are geometric"


def _draw(setting: Setting, tables: Tables, left: Any, right: Any) -> None:
    """Draw the mean magnitudes of weights and biases after training, and during training at some decays."""
    last, course = tables["networks"], tables["course"]
    decays = np.unique(course["weight_decay"])
    for name, label in LABELS.items():
        logs = [np.log(where(last, weight_decay=decay)[name]) for decay in setting.decays]
        charts.intervals(left, setting.decays, [mean(one, 0.95).map(np.exp) for one in logs], label=label)
    left.set_title(f"After {setting.epochs} epochs, {setting.runs} networks each")
    for decay in decays[:: max(len(decays) // 3, 1)]:
        rows = where(course, weight_decay=decay)
        (line,) = right.plot(rows["step"], rows["weight_norm"], label=f"weight decay {decay:g}")
        right.plot(rows["step"], rows["bias_norm"], color=line.get_color(), linestyle=(0, (4, 2)))
    right.set_title("Weights (lines), biases (dashed)")
    for ax, x, kind, title in (
        (left, "weight decay", "geometric", "with 95 % intervals"), (right, "epoch", "arithmetic", None),
    ):  # fmt: skip
        y = f"magnitude, {kind} mean\nover the networks"
        charts.label(ax, x, y, ylim=(0, None), legend={"title": title})


@recipe(
    "musat-6", item="Figure 6; Appendix B", quick=Setting(decays=(0.0, 0.5, 1.0), runs=6, epochs=200),
    paper_setting=Setting(
        decays=tuple(np.linspace(0, 1, 11).round(1).tolist()), runs=100, epochs=musat.EPOCHS,
    ),
    draw=_draw, panels=(9.6, 4.8, 1, 2), source="Appendix B", cost="ten minutes",
    rules=(
        *(
            Statement(part, "weight decay strongly limits the magnitude of the weights and biases",
                f"mean magnitude of the {part} at weight decay 1, as a part of that at 0; by chance 1",
                _left(name), most=0.5, chance=counters.shuffled("networks", "weight_decay"), note=GEOMETRIC)
            for part, name in (("weights", "weight_norm"), ("biases", "bias_norm"))
        ),
        Statement("biases more", "biases being limited more than weights",
            "what is left of the biases at weight decay 1 over what is left of the weights; by chance 1",
            _left("bias_norm / weight_norm"), most=0.9, chance=counters.shuffled("networks", "weight_decay"),
            note=GEOMETRIC),
    ),
)  # fmt: skip
def norms(run: Run) -> Result:
    """Magnitudes of the weights and of the biases of the hidden layer, by weight decay.

    Notes
    -----
    Networks of constant attention are trained at weight decays from 0 to 1. The table "networks" has their
    final mean magnitudes, and "course" the means over networks at each recorded step. The rules compare the
    magnitudes at weight decay 1 with those at 0.
    """
    setting = run.setting
    last, course = [], []
    for decay in setting.decays:
        part = run.keep(f"decay-{decay:g}", partial(_trained_06, run, decay))
        ends, means = (
            {name: of(part[name]) for name in LABELS} for of in (lambda x: x[:, -1], lambda x: x.mean(0))
        )
        last.append({"weight_decay": np.full(setting.runs, decay)} | ends)
        course.append(table_of({"weight_decay": [decay], "step": part["steps"]}, **means))
    return Result({"networks": joined(last), "course": joined(course)})


def _trained_06(run: Run, decay: float) -> dict[str, Any]:
    options: Any = {"record": run.setting.epochs // 40, "observables": tuple(LABELS)}
    trained = musat.networks(run, decay, 6600 + round(10 * decay), **options)
    return {"steps": trained.steps} | {name: trained.observables[name] for name in LABELS}
