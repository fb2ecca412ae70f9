"""Ding et al., Figures 9, 15 and 16: laws fitted to the signals of single networks."""

from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import trajectory_signals
from analysis.laws.ode import ODEFit
from analysis.laws.scores import Law
from analysis.plots.palette import FIRST, INK, SECOND, SERIES
from analysis.plots.signals import show_coefficients
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.counters.builders import drawn
from grokphys.papers.counters.ding import COMPETING, DRIFT
from grokphys.papers.ding.training import (
    DECAY,
    LASSO,
    LINEAR,
    PAPER,
    QUADRATIC,
    QUICK,
    SOLVED,
    Fits,
    law_of,
    path_of,
    show_intervals,
)
from grokphys.papers.evidence import columns_of, joined, mean, share, shuffled, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Measure, Result, Run, Statement, Tables, recipe
from nets.models import EmbeddingMLP
from nets.training import train

Array = NDArray[np.float64]
SECTION = "Section 4.2"
LOOK: dict[str, Any] = {
    "original": {"color": INK, "linewidth": 2.4, "alpha": 0.55},
    SOLVED: {"color": SERIES[4], "linewidth": 3.5},
    LINEAR: {"color": SECOND, "linestyle": (0, (4, 2)), "linewidth": 1.3},
    LASSO: {"color": FIRST, "linestyle": (0, (1.5, 1.2)), "linewidth": 1.3},
}
WILD = 1e3
"""Relative error that replaces a larger one, and that of a trajectory that overflows."""
PIECE = 5, 5
"""Most networks trained together, on a CPU and on a GPU. Embeddings of all steps are in memory."""


def fit_networks(run: Run) -> tuple[dict[str, NDArray[Any]], Array]:
    """Train the networks of a `Fits` setting, and fit each law to each network alone.

    The result is a table with a row for each network and law, and the signals of all networks at their K
    frequencies (networks, steps + 1, K).
    """
    setting: Fits = run.setting

    def train_part(d: int, part: range) -> dict[str, Any]:
        trained = train(
            EmbeddingMLP(tokens=setting.tokens, dim=d),
            runs=len(part),
            first_run=part.start,
            steps=setting.steps,
            seed=setting.seed + d,
            weight_decay=DECAY,
            record=1,
            observables=(),
        )
        signals = trajectory_signals(trained)
        rows = [
            {"d": d, "network": part.start + k, "law": name} | _score(name, x)
            for k, x in enumerate(signals)
            for name in setting.laws
        ]
        return columns_of(rows) | {"signals": signals}

    found = joined(
        part
        for d in setting.dims
        for part in in_parts(run, setting.networks, PIECE, partial(train_part, d), f"d-{d}-networks")
    )
    return found, found.pop("signals")


def _score(name: str, x: Array) -> dict[str, Any]:
    """Return how well a law describes signals x (frames, frequencies), as a row of the table of fits."""
    law = law_of(name, x)
    path = path_of(name, law, x)
    with np.errstate(over="ignore", invalid="ignore"):
        changes, found = np.diff(x, axis=0), law.changes(x[:-1])
        missed = np.mean(np.sum((changes - found) ** 2, axis=0) / (len(changes) * changes.var(axis=0)))
        wrong = np.sqrt(np.mean((path - x) ** 2, axis=0))
        error = np.linalg.norm(path - x) / np.linalg.norm(x)
    signs = np.sign(law.A) if isinstance(law, ODEFit) else np.zeros((1, 1))
    between = signs[~np.eye(len(signs), dtype=bool) & (signs != 0)]
    return {
        "r2": 1 - missed,
        "missed": missed,  # of which r2 keeps too few digits if it is close to 1
        "error": error if error <= WILD else WILD,
        "error_of_rest": np.linalg.norm(x[0] - x) / np.linalg.norm(x),
        "followed": np.mean(wrong <= 0.1 * x[0]),
        "coefficients": np.mean(signs != 0) if isinstance(law, ODEFit) else 1.0,
        "collaborate": np.mean(between > 0) if len(between) else np.nan,
    }


def _mean(law: str, column: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        return mean(where(tables["fits"], law=law)[column], level)

    return measure


def _fits(tables: Tables, level: float) -> Interval:
    missed = mean(where(tables["fits"], law=QUADRATIC)["missed"], level)
    return Interval(1 - missed.estimate, 1 - missed.high, 1 - missed.low, missed.count)


def _close(law: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        return share(where(tables["fits"], law=law)["error"] <= CLOSE, level)

    return measure


def _unstable(tables: Tables, level: float) -> Interval:
    return share(~(where(tables["fits"], law=QUADRATIC)["error"] <= 1), level)


AT_REST = drawn(
    "each error replaced by that of signals that never change, in any order",
    "fits",
    error=lambda rows, rng: rng.permutation(rows["error_of_rest"]),
)
CLOSE = 0.1
"""Largest relative error of a trajectory that a law describes well."""
SHARE = (
    f"relative error of at most {CLOSE:g}; an earlier rule asked for the mean, which one network "
    "that blows up decided, so this one has fresh seeds"
)
OF_A_CONSTANT = "an R² of 0, that of a law of constant drift: there is nothing to shuffle"
MODULUS, DIM = PAPER.tokens, PAPER.dim
WORDS = {SOLVED: "closed solution (Lasso)", QUADRATIC: "quadratic law"}
MATRIX = (
    "The title says how many coefficients of the matrix are not zero. Red: the frequency that acts "
    "strengthens the one that changes; blue: it weakens it. Bold numbers are survivors."
)
SPARSE = Statement(
    "sparse",
    "Lasso provides … extremely sparse coefficients",
    SECTION,
    "part of the coefficients of Lasso that are not zero, mean of networks; least squares has 1",
    _mean(LASSO, "coefficients"),
    chance=shuffled("fits", "coefficients"),
    most=0.1,
)


@recipe(
    "ding-9",
    paper="Ding",
    item="Figure 9 (b) to (d); Eqs. 2 to 4",
    shows=f"Two signals of a network, the laws fitted to them, and the matrix of the Lasso fit. {MATRIX}",
    quick=Fits(QUICK.tokens, (QUICK.dim,), 3, 0, (LINEAR, LASSO, SOLVED, QUADRATIC), 200),
    paper_setting=Fits(MODULUS, (DIM,), 30, 95_000, (LINEAR, LASSO, SOLVED, QUADRATIC)),
    cost="five to fifteen minutes",
    rules=(
        Statement(
            "Eq. 2: fit",
            "the fit yields an R² value close to 1",
            SECTION,
            "R² of the changes by the quadratic law, mean of networks",
            _fits,
            chance=OF_A_CONSTANT,
            counter=DRIFT,
            least=0.95,
        ),
        Statement(
            "Eq. 2: unstable",
            "to compute a trajectory …, errors accumulate, leading to a rapid loss of numerical stability",
            SECTION,
            "share of networks whose trajectory the quadratic law misses by all of it, or overflows",
            _unstable,
            chance=shuffled("fits", "error"),
            least=0.75,
        ),
        Statement(
            "linear regression",
            "linear regression gives us an almost perfect fit",
            SECTION,
            "relative error of the trajectory by least squares, mean of networks",
            _mean(LINEAR, "error"),
            chance=AT_REST,
            most=0.01,
            digits=4,
        ),
        Statement(
            "Lasso",
            "Lasso provides comparable estimations with reasonable errors bounds",
            SECTION,
            f"share of networks whose trajectory Lasso describes to a {SHARE}",
            _close(LASSO),
            chance=AT_REST,
            least=0.75,
        ),
        Statement(
            "Eq. 4",
            "The analytical solution similarly provides us with a comparable estimation of the trajectory",
            SECTION,
            f"share of networks whose trajectory Eq. 4 with Lasso's A describes to a {SHARE}",
            _close(SOLVED),
            chance=AT_REST,
            least=0.75,
        ),
        SPARSE,
        Statement(
            "both signs",
            "Some circle pairs display collaborative behavior, while other pairs are competitive",
            "Section 1",
            "part of Lasso's coefficients between circles that are positive, mean of networks",
            _mean(LASSO, "collaborate"),
            chance="signs drawn at random would be of both kinds too: the paper claims no more",
            counter=COMPETING,
            least=0.05,
            most=0.95,
        ),
    ),
)
def equations(run: Run) -> Result:
    """Reproduce Figure 9 (b) to (d) of Ding et al.: two signals, the fitted laws, and a matrix by Lasso.

    The table "fits" has a row for each network and law. The rules judge R² of the changes, the errors of
    predicted trajectories, and how many coefficients of Lasso are zero or positive.
    """
    fits, signals = fit_networks(run)
    x = signals[0]
    best = int(np.argmax(x[-1]))
    dead = int(np.argmax(np.where(x[-1] > 2 * x[-1].mean(), 0, x[0])))
    laws = {name: law_of(name, x) for name in (SOLVED, LINEAR, LASSO, QUADRATIC)}
    paths = {name: path_of(name, law, x) for name, law in laws.items()}
    with style(11.4):
        figure = Figure(figsize=(11.4, 5.2))
        first, second, third = figure.subplots(1, 3)
        for ax, k, state in ((first, dead, "dead"), (second, best, "survives")):
            ax.plot(x[:, k], label="original", **LOOK["original"])
            for name in (SOLVED, LINEAR, LASSO):
                ax.plot(paths[name][:, k], label=WORDS.get(name, name), **LOOK[name])
            quadratic = np.clip(np.nan_to_num(paths[QUADRATIC][:, k], posinf=1e9), -1e9, 1e9)
            ax.plot(quadratic, label=WORDS[QUADRATIC], color=SERIES[3], linewidth=0.9)
            ax.set(xlabel="step", ylabel="signal ‖$F_k$‖", title=f"frequency {k + 1}, {state}")
            ax.set_ylim(0, 1.05 * float(x[:, k].max()))
        _show_matrix(third, laws[LASSO], x)
        figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return Result({"fits": fits}, {"ding-9": figure})


def _show_matrix(ax: Axes, law: Law, x: Array, named: str = "") -> None:
    assert isinstance(law, ODEFit)
    alive = (1 + np.flatnonzero(x[-1] > 2 * x[-1].mean())).tolist()
    show_coefficients(law.A, ax, marked=alive, title=f"{named}Lasso: {(law.A != 0).sum()} of {law.A.size}")


@recipe(
    "ding-9a",
    paper="Ding",
    item="Figure 9 (a)",
    shows="How well the linear law fits the changes of the signals, for each embedding dimension.",
    quick=Fits(QUICK.tokens, (16, 32), 3, 0, steps=200),
    paper_setting=Fits(MODULUS, tuple(range(16, 129, 16)), 20, 91_000),
    cost="ten to thirty minutes",
    rules=(
        Statement(
            "linear regression",
            "we can model the trajectory well … linear regression gives us an almost perfect fit",
            SECTION,
            "R² of the changes by least squares, mean of networks of all dimensions",
            _mean(LINEAR, "r2"),
            chance=OF_A_CONSTANT,
            counter=DRIFT,
            least=0.95,
        ),
        Statement(
            "Lasso",
            "Lasso provides comparable estimations with reasonable errors bounds",
            SECTION,
            "relative error of the trajectory by Lasso, mean of networks of all dimensions",
            _mean(LASSO, "error"),
            chance=AT_REST,
            most=0.1,
            possible=(0.0, np.inf),
            fitted="an R² of 0.8 was asked for until the embedded run had been seen",
            digits=3,
            note=f"a trajectory that blows up counts as an error of {WILD:g}, and decides the mean",
        ),
    ),
)
def fits_by_size(run: Run) -> Result:
    """Reproduce Figure 9 (a) of Ding et al.: R² of the linear law over the embedding dimension d, in sample.

    The table "fits" has a row for each network and law. The rules judge R² of least squares, and the error of
    trajectories that Lasso predicts.
    """
    setting: Fits = run.setting
    fits, _ = fit_networks(run)
    with style(5.6):
        figure = Figure(figsize=(5.6, 3.8))
        ax = figure.subplots()
        for name in setting.laws:
            values = [mean(where(fits, law=name, d=d)["r2"], CONFIDENCE) for d in setting.dims]
            show_intervals(ax, setting.dims, values, label=name)
        ax.set(xlabel="embedding dimension d", ylabel="R² of the changes, in sample", ylim=(None, 1.02))
        ax.set_title(f"p = {setting.tokens}, {setting.networks} networks each, mean and 95 % interval")
        legend_below(ax)
    return Result({"fits": fits}, {"ding-9a": figure})


@recipe(
    "ding-15",
    paper="Ding",
    item="Figure 15; Appendix G",
    shows=f"Matrices of the Lasso fit for three more networks. {MATRIX}",
    quick=Fits(QUICK.tokens, (QUICK.dim,), 3, 1, steps=200),
    paper_setting=Fits(MODULUS, (DIM,), 30, 150_000),
    cost="five to fifteen minutes",
    rules=(SPARSE,),
)
def three_fits(run: Run) -> Result:
    """Reproduce Figure 15 of Ding et al.: the matrices of the linear law by Lasso for three networks.

    The table "fits" has a row for each network and law. The rule judges how few coefficients are not zero, as
    a mean over all networks.
    """
    fits, signals = fit_networks(run)
    with style(8.4):
        figure = Figure(figsize=(8.4, 7.0))
        axes = figure.subplots(2, 2).ravel()
        axes[3].axis("off")
        for n, x in enumerate(signals[:3]):
            _show_matrix(axes[n], law_of(LASSO, x), x, f"network {n}, ")
        axes[3].text(0, 0.9, fill(MATRIX, 34), va="top")
    return Result({"fits": fits}, {"ding-15": figure})


@recipe(
    "ding-16",
    paper="Ding",
    item="Figure 16; Appendix G",
    shows="All signals of a network, and the linear laws fitted to them.",
    quick=Fits(QUICK.tokens, (QUICK.dim,), 3, 2, steps=200),
    paper_setting=Fits(MODULUS, (DIM,), 30, 160_000),
    cost="five to fifteen minutes",
    rules=(
        Statement(
            "followed",
            "With this new set of equations, we can model the trajectory well",
            SECTION,
            "part of the circles that Lasso follows to a tenth of their first signal, mean of networks",
            _mean(LASSO, "followed"),
            chance="a law that follows none has 0: there is nothing to shuffle",
            counter=DRIFT,
            least=0.9,
            possible=(0.0, 1.0),
        ),
    ),
)
def all_trajectories(run: Run) -> Result:
    """Reproduce Figure 16 of Ding et al.: all signals of one network, and those of the linear laws.

    The table "fits" has a row for each network and law. The rule asks how many signals Lasso follows.
    """
    fits, signals = fit_networks(run)
    x = signals[0]
    paths = {name: path_of(name, law_of(name, x), x) for name in (LINEAR, LASSO)}
    with style(12.0):
        figure = Figure(figsize=(12.0, 8.6))
        axes = figure.subplots(5, 6, sharex=True, sharey=True).ravel()
        for k, ax in enumerate(axes[: x.shape[1]]):
            ax.plot(x[:, k], label="original", **LOOK["original"])
            for name, path in paths.items():
                ax.plot(path[:, k], label=name, **LOOK[name])
            alive = x[-1, k] > 2 * x[-1].mean()
            look: Any = {"weight": "bold", "color": SECOND} if alive else {"color": INK}
            ax.text(0.96, 0.93, f"{k + 1}", transform=ax.transAxes, ha="right", va="top", **look)
        axes[0].set_ylim(0, 1.05 * float(x.max()))
        for ax in axes[x.shape[1] :]:
            ax.axis("off")
        axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center")
        figure.supxlabel("step")
        figure.supylabel("signal ‖$F_k$‖; survivors' numbers in bold")
    return Result({"fits": fits}, {"ding-16": figure})
