"""Figures 3 and 4, Appendix F of Musat: embeddings, and what their networks answer over the plane."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.classes import structures
from analysis.plots import maps
from analysis.plots.embeddings import show_embedding
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.evidence import difference, mean, shuffled
from grokphys.papers.musat.ensembles import EPOCHS, PAIRS, Measure, networks, structures_of, what
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from grokphys.report.musat import typical_runs
from nets.networks import networks as revived
from physics.errors import InputError
from physics.trajectory import Trajectory

FIRST, SECOND = np.triu_indices(17)
CLASS = (FIRST + SECOND) % 17


@dataclass(frozen=True)
class Setting:
    """Setting: number of networks, their weight decay, and the epochs for which each is trained."""

    runs: int
    decay: float
    epochs: int


def _embeddings(tables: Tables) -> NDArray[np.float64]:
    """Return embeddings (networks, 17, 2) from the table "tokens", with a row for each token of a network."""
    rows = tables["tokens"]
    order = np.lexsort((rows["token"], rows["network"]))
    return np.stack([rows["x"], rows["y"]], axis=1)[order].reshape(-1, 17, 2)


def _circles(tables: Tables) -> NDArray[np.bool_]:
    rows = tables["tokens"]
    return np.asarray(rows["circle"][rows["token"] == 0])[np.argsort(rows["network"][rows["token"] == 0])]


def _clustered(tables: Tables) -> NDArray[np.float64]:
    """Return, for each network, the fraction of pair sums whose nearest other pair sum has the same class."""
    return np.asarray(1 - structures_of(_embeddings(tables))["imperfections"] / PAIRS)


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


def _of(kind: bool, measure: Any) -> Measure:
    return lambda tables, level: mean(measure(tables)[_circles(tables) == kind], level)


def _all_clustered(tables: Tables, level: float) -> Interval:
    return mean(_clustered(tables), level)


def _less_clustered(tables: Tables, level: float) -> Interval:
    return difference(_of(True, _clustered)(tables, level), _of(False, _clustered)(tables, level))


NEAREST = "part of the pair sums whose nearest other one is of their class; 1/17 by chance"
SHUFFLED = shuffled("tokens", "token", within="network")
PAPER_TYPICAL, PAPER_MORE = Setting(100, 1.0, EPOCHS), Setting(14, 0.6, EPOCHS)
MAP = (
    "The color of the plane is the class that the network answers there, and that of a marker the correct "
    "class of its pair sum; diamonds with a dark edge are pairs for validation."
)
TYPICAL = (
    f"The pair sums of one of {PAPER_TYPICAL.runs} networks at weight decay {PAPER_TYPICAL.decay:g}, whose "
    f"embedding is a {{}}, and the classes of their plane. {MAP}"
)


@recipe(
    "musat-3",
    paper="Musat",
    item="Figure 3",
    shows=TYPICAL.format("grid"),
    quick=Setting(6, 1.0, 300),
    paper_setting=PAPER_TYPICAL,
    cost="three minutes",
    rules=(
        Statement(
            "clusters",
            "the grid structure makes the pair sums cluster based on the modular sum",
            "Section 5",
            f"{NEAREST}, of networks that are no circles",
            _of(False, _clustered),
            chance=SHUFFLED,
            least=0.5,
        ),
    ),
)
def grid_map(run: Run) -> Result:
    """Reproduce Figure 3 of Musat: a network whose embedding is a grid, and its answers over the plane.

    Networks of constant attention learn addition modulo 17 at weight decay 1, and one whose embedding is a
    grid is drawn. The rule judges the share of pair sums whose nearest other pair sum is of their own class,
    in networks without a circle.

    The result holds the tables "tokens" and "sums" and the figure "musat-3".
    """
    return _typical(run, "grid", "musat-3", 4300)


@recipe(
    "musat-4",
    paper="Musat",
    item="Figure 4",
    shows=TYPICAL.format("circle"),
    quick=Setting(6, 1.0, 300),
    paper_setting=PAPER_TYPICAL,
    cost="three minutes",
    rules=(
        Statement(
            "aligned",
            "they are aligned along lines that pass through the origin",
            "Section 5.2",
            "part of the length of pair sums that lies along the line of their class, of circles",
            _of(True, lambda tables: aligned(_embeddings(tables))),
            chance=SHUFFLED,
            least=0.9,
        ),
        Statement(
            "not clustered",
            "Pair sums are no longer clustered",
            "Section 5.2",
            f"{NEAREST}; of circles minus of the rest",
            _less_clustered,
            chance=shuffled("tokens", "circle"),
            most=-0.1,
        ),
    ),
)
def circle_map(run: Run) -> Result:
    """Reproduce Figure 4 of Musat: a network whose embedding is a circle, and its answers over the plane.

    Networks of constant attention learn addition modulo 17 at weight decay 1, and one whose embedding is a
    circle is drawn. The rules judge whether the pair sums of a class lie on one line in circles, and whether
    they are less clustered there than in the other networks.

    The result holds the tables "tokens" and "sums" and the figure "musat-4".
    """
    return _typical(run, "circle", "musat-4", 4400)


@recipe(
    "musat-F",
    paper="Musat",
    item="Appendix F",
    shows=f"Embeddings and classifiers of {PAPER_MORE.runs} networks at weight decay {PAPER_MORE.decay:g}. "
    f"{MAP}",
    quick=Setting(4, 0.6, 300),
    paper_setting=PAPER_MORE,
    cost="a minute",
    rules=(
        Statement(
            "clusters",
            "the pair sums tend to cluster based on their modular sum",
            "Section 5.1",
            NEAREST,
            _all_clustered,
            chance=SHUFFLED,
            least=0.5,
        ),
    ),
)
def more_maps(run: Run) -> Result:
    """Reproduce Appendix F of Musat: embeddings of networks at weight decay 0.6, and their answers.

    All networks that are trained are drawn. The rule judges the share of pair sums whose nearest other pair
    sum is of their own class.

    The result holds the table "tokens" and the figure "musat-F".
    """
    trained = _trained(run.setting, 4500)
    rows = -(-trained.runs // 2)
    with style(13.0):
        figure = Figure(figsize=(13.0, 3.3 * rows))
        figure.suptitle("Embeddings, and their classes with the pair sums (diamonds: validation)")
        axes = figure.subplots(rows, 4, squeeze=False).reshape(-1, 2)
    for n, (left, right) in enumerate(axes):
        if n < trained.runs:
            _show(trained, n, left, right, "classes", brief=True)
    return Result({"tokens": _tokens(trained)}, {"musat-F": figure})


def _trained(setting: Setting, seed: int) -> Trajectory:
    return networks(
        setting.decay,
        runs=setting.runs,
        seed=seed,
        epochs=setting.epochs,
        observables=("validation_accuracy", "layers"),
    )


def _tokens(trained: Trajectory) -> dict[str, Any]:
    x, y = trained.final.reshape(-1, 2).T
    return {
        "network": np.repeat(np.arange(trained.runs), 17),
        "token": np.tile(np.arange(17), trained.runs),
        "x": x,
        "y": y,
        "circle": np.repeat(structures(trained.final).circle, 17),
    }


def _typical(run: Run, kind: str, name: str, seed: int) -> Result:
    """Train networks, and draw one whose structure is the `kind` "circle" or "grid".

    The result holds the tables "tokens" and "sums", and a figure called `name`. If no network has the
    structure, the quick budget draws the first network.

    Raises
    ------
    InputError
        If no network has the structure at the setting of the paper.
    """
    trained = _trained(run.setting, seed)
    chosen = typical_runs(trained, structures(trained.final))
    if kind not in chosen and run.budget == "paper":
        raise InputError(f"there must be a {kind} among the {trained.runs} networks, found none")
    with style(9.6):
        figure = Figure(figsize=(9.6, 4.9))
        figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.08)
        left, right = figure.subplots(1, 2)
    title = "classes and pair sums (diamonds: validation)"
    sums = _show(trained, chosen.get(kind, 0), left, right, title)
    return Result({"tokens": _tokens(trained), "sums": sums}, {name: figure})


def _show(
    trained: Trajectory, run: int, left: Any, right: Any, title: str, *, brief: bool = False
) -> dict[str, Any]:
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

    Returns
    -------
    dict of str to array
        Table of the pair sums: position, class, the class that the network answers, and whether the pair was
        held out for validation.
    """
    alone = revived(trained.run(run))
    E, task = trained.final[run].astype(float), alone.model.task
    sums = E[task.inputs].sum(axis=1)
    held_out = np.isin(np.arange(len(task)), alone.examples("validation")[0])
    seen = alone.classify(sums)[0]
    grid, bounds = maps.plane(sums)
    side = round(len(grid) ** 0.5)
    accuracy = 100 * float(trained.observables["validation_accuracy"][run, -1])
    shape = what(E)
    head = f"network {run}: {shape.replace('imperf.', 'grid imperfections')}; accuracy {accuracy:.0f} %"
    show_embedding(E, left, title=f"{run}: {shape}, {accuracy:.0f} %" if brief else head)
    maps.show_classifier(
        alone.classify(grid)[0].reshape(side, side),
        bounds,
        right,
        count=task.classes,
        sums=sums,
        labels=task.labels,
        held_out=held_out,
        title=title,
    )
    a, b = task.inputs.T
    x, y = sums.T
    return {"network": np.full(len(a), run), "a": a, "b": b, "x": x, "y": y} | {
        "class": task.labels,
        "seen": seen,
        "validates": held_out,
    }
