"""Ding et al., Figures 9, 15 and 16: laws fitted to the signals of single networks.

Ding et al., Figure 10: how many circles survive, by the weight decay.

Ding et al., Figure 12: networks that start from one or two circles.

Ding et al., Figure 13: the gradient of the loss with respect to the embedding, by frequency, over time.
"""

from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from analysis.circles import fourier_signals, survives
from analysis.circles.fourier import frequency_norms
from analysis.laws import ODEFit
from analysis.plots import palette
from analysis.plots.signals import show_coefficients
from analysis.stats.intervals import Interval
from grokphys.papers import charts, counters, measures
from grokphys.papers.ding import training
from grokphys.papers.evidence import Measure, Tables, columns_of, joined, share, table_of, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from nets import EmbeddingMLP, keep_frequencies, train
from physics import Trajectory
from physics.seeds import generator as generator_of


def _jump(rows: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the largest number of circles up to a decay drawn at random, and the smallest above it."""
    decay, circles = rows["weight_decay"], rows["circles"]
    return np.where(decay <= rng.choice(np.unique(decay)[:-1]), circles.max(), circles.min())


DRIFT = counters.drawn(
    "laws of constant drift, which have an R² of 0 and follow no circle", "fits", r2=0, followed=0
)
ONE_JUMP = counters.drawn(
    "a single jump from the largest to the smallest number of circles, at a weight decay drawn at random",
    "networks",
    circles=_jump,
)


# -- Figure 9 ----------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

LOOK: dict[str, Any] = {
    "original": {"color": palette.INK, "linewidth": 2.4, "alpha": 0.55},
    training.SOLVED: {"color": palette.SERIES[4], "linewidth": 3.5},
    training.LINEAR: {"color": palette.SECOND, "linestyle": (0, (4, 2)), "linewidth": 1.3},
    training.LASSO: {"color": palette.FIRST, "linestyle": (0, (1.5, 1.2)), "linewidth": 1.3},
    training.QUADRATIC: {"color": palette.SERIES[3], "linewidth": 0.9},
}
WILD = 1e3
"""Relative error that replaces a larger one, and that of a trajectory that overflows."""
PIECE_09 = 5, 5
"""Most networks trained together, on a CPU and on a GPU. Embeddings of all steps are in memory."""


def fits(
    seeds: tuple[int, int],
    quick: dict[str, Any] | None = None,
    laws: tuple[str, ...] = (training.LINEAR, training.LASSO),
    **paper: Any,
) -> dict[str, Any]:
    """Return both settings of a recipe that calls `fit_networks`, as arguments of `recipe`.

    `seeds` are those of the smoke test and of the paper's setting, of which `quick` and `paper` replace
    numbers.
    """
    small = {"tokens": training.QUICK.tokens, "dims": (training.QUICK.dim,), "networks": 3, "seed": seeds[0]}
    whole = {"tokens": training.PAPER.tokens, "dims": (training.PAPER.dim,), "networks": 30, "seed": seeds[1]}
    paper_setting = Setting(**whole | {"laws": laws, "steps": 1000} | paper)
    return {"quick": small | {"steps": 200} | (quick or {}), "paper_setting": paper_setting}


def fit_networks(run: Run) -> tuple[dict[str, NDArray[Any]], Array]:
    """Train the networks of a `Fits` setting, and fit each law to each network alone.

    The result is a table with a row for each network and law, and the signals of all networks at their K
    frequencies (networks, steps + 1, K).
    """
    setting = run.setting

    def train_part(d: int, part: range) -> dict[str, Any]:
        trained = training.train_networks(
            run, part, 1, model=EmbeddingMLP(tokens=setting.tokens, dim=d), steps=setting.steps,
            seed=setting.seed + d,
        )  # fmt: skip
        signals = fourier_signals(trained).values
        rows = [
            {"d": d, "network": part.start + k, "law": name} | _score(name, x)
            for k, x in enumerate(signals)
            for name in setting.laws
        ]
        return columns_of(rows) | {"signals": signals}

    found = joined(
        part
        for d in setting.dims
        for part in in_parts(run, setting.networks, PIECE_09, partial(train_part, d), f"d-{d}-networks")
    )
    return found, found.pop("signals")


def _score(name: str, x: Array) -> dict[str, Any]:
    """Return how well a law describes signals x (frames, frequencies), as a row of the table of fits."""
    law = training.law_of(name, x)
    path = training.path_of(name, law, x)
    with np.errstate(over="ignore", invalid="ignore"):
        changes, found = np.diff(x, axis=0), law.changes(x[:-1])
        missed = np.mean(np.sum((changes - found) ** 2, axis=0) / (len(changes) * changes.var(axis=0)))
        wrong = np.sqrt(np.mean((path - x) ** 2, axis=0))
        error = np.linalg.norm(path - x) / np.linalg.norm(x)
    return {
        "r2": 1 - missed, "error": error if error <= WILD else WILD,
        "error_of_rest": np.linalg.norm(x[0] - x) / np.linalg.norm(x),
        "followed": np.mean(wrong <= 0.1 * x[0]),
        "coefficients": np.mean(law.A != 0) if isinstance(law, ODEFit) else 1.0,
    }  # fmt: skip


AT_REST = counters.drawn(
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
IN_SAMPLE = "R² in sample: polynomials of time with as many coefficients have 0.995"
WORDS = {training.SOLVED: "closed solution (Lasso)", training.QUADRATIC: "quadratic law"}
MATRIX = (
    "The title says how many coefficients of the matrix are not zero. Red: the frequency that acts "
    "strengthens the one that changes; blue: it weakens it. Bold numbers are survivors."
)
SPARSE = Statement("sparse", "Lasso provides … extremely sparse coefficients",
    "part of the coefficients of Lasso that are not zero, mean of networks; least squares has 1",
    measures.mean("fits", "coefficients", law=training.LASSO), most=0.1, source="Section 4.2",
    chance=counters.shuffled("fits", "coefficients"))  # fmt: skip


@recipe(
    "ding-9", item="Figure 9 (b) to (d); Eqs. 2 to 4",
    **fits((0, 95_000), laws=(training.LINEAR, training.LASSO, training.SOLVED, training.QUADRATIC)),
    fidelity=training.BITS,
    source="Section 4.2",
    shows=f"Two signals of a network, the laws fitted to them, and the matrix of the Lasso fit. {MATRIX}",
    cost="five to fifteen minutes",
    rules=(
        Statement("Eq. 2: unstable",
            "to compute a trajectory …, errors accumulate, leading to a rapid loss of numerical stability",
            "share of networks whose trajectory the quadratic law misses by all of it, or overflows",
            measures.share("fits", "~(error <= 1)", law=training.QUADRATIC), least=0.75,
            chance=counters.shuffled("fits", "error")),
        Statement("linear regression", "linear regression gives us an almost perfect fit",
            "relative error of the trajectory by least squares, mean of networks",
            measures.mean("fits", "error", law=training.LINEAR), most=0.01, digits=4, chance=AT_REST),
        Statement("Lasso", "Lasso provides comparable estimations with reasonable errors bounds",
            f"share of networks whose trajectory Lasso describes to a {SHARE}",
            measures.share("fits", f"error <= {CLOSE}", law=training.LASSO), least=0.75, chance=AT_REST),
        Statement("Eq. 4",
            "The analytical solution similarly provides us with a comparable estimation of the trajectory",
            f"share of networks whose trajectory Eq. 4 with Lasso's A describes to a {SHARE}",
            measures.share("fits", f"error <= {CLOSE}", law=training.SOLVED), least=0.75, chance=AT_REST),
        SPARSE,
    ),
    withdrawn={"Eq. 2: fit": IN_SAMPLE, "both signs": "signs drawn at random are of both kinds too"},
)  # fmt: skip
def equations(run: Run) -> Result:
    """Reproduce Figure 9 (b) to (d) of Ding et al.: two signals, the fitted laws, and a matrix by Lasso.

    The table "fits" has a row for each network and law. The rules judge R² of the changes, the errors of
    predicted trajectories, and how many coefficients of Lasso are zero or positive.
    """
    table, signals = fit_networks(run)
    x = signals[0]
    best = int(np.argmax(x[-1]))
    dead = int(np.argmax(np.where(x[-1] > 2 * x[-1].mean(), 0, x[0])))
    paths = _paths(x, *LOOK)
    paths[training.QUADRATIC] = np.nan_to_num(paths[training.QUADRATIC], posinf=1e9).clip(-1e9, 1e9)
    with charts.panels(11.4, 5.2, 1, 3) as (figure, (first, second, third)):
        for ax, k, state in ((first, dead, "dead"), (second, best, "survives")):
            for name, look in LOOK.items():
                ax.plot(paths[name][:, k], label=WORDS.get(name, name), **look)
            top = 1.05 * float(x[:, k].max())
            ax.set(xlabel="step", ylabel="signal ‖$F_k$‖", title=f"frequency {k + 1}, {state}", ylim=(0, top))
        _show_matrix(third, x)
        figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return Result({"fits": table}, {"ding-9": figure})


def _paths(x: Array, *names: str) -> dict[str, Array]:
    """Return the signals x, which are "original", and those that the named laws predict from their start."""
    laws = {name: training.law_of(name, x) for name in names if name != "original"}
    return {"original": x} | {name: training.path_of(name, law, x) for name, law in laws.items()}


def _show_matrix(ax: Axes, x: Array, named: str = "") -> None:
    law: Any = training.law_of(training.LASSO, x)
    alive = (1 + np.flatnonzero(x[-1] > 2 * x[-1].mean())).tolist()
    show_coefficients(law.A, ax, marked=alive, title=f"{named}Lasso: {(law.A != 0).sum()} of {law.A.size}")


@recipe(
    "ding-9a", item="Figure 9 (a)",
    **fits((0, 91_000), {"dims": (16, 32)}, dims=tuple(range(16, 129, 16)), networks=20),
    fidelity=training.BITS,
    source="Section 4.2", cost="ten to thirty minutes",
    withdrawn={
        "linear regression": IN_SAMPLE,
        "Lasso": "one trajectory that blows up decides the mean, and not the median; ding-9 asks for a share",
    },
)  # fmt: skip
def fits_by_size(run: Run) -> Result:
    """How well the linear law fits the changes of the signals, for each embedding dimension.

    Notes
    -----
    The table "fits" has a row for each network and law.
    """
    setting = run.setting
    table, _ = fit_networks(run)
    with charts.panels(5.6, 3.8) as (figure, ax):
        for name in setting.laws:
            rows = where(table, law=name)
            charts.means(ax, rows["d"], rows["r2"], label=name)
        title = f"p = {setting.tokens}, {setting.networks} networks each, mean and 95 % interval"
        charts.label(ax, "embedding dimension d", "R² of the changes, in sample", title, ylim=(None, 1.02))
    return Result({"fits": table}, {"ding-9a": figure})


@recipe(
    "ding-15", item="Figure 15; Appendix G",
    **fits((1, 150_000)),
    fidelity=training.BITS,
    shows=f"Matrices of the Lasso fit for three more networks. {MATRIX}", cost="five to fifteen minutes",
    rules=(SPARSE,),
)  # fmt: skip
def three_fits(run: Run) -> Result:
    """Reproduce Figure 15 of Ding et al.: the matrices of the linear law by Lasso for three networks.

    The table "fits" has a row for each network and law. The rule judges how few coefficients are not zero, as
    a mean over all networks.
    """
    table, signals = fit_networks(run)
    with charts.panels(8.4, 7.0, 2, 2) as (figure, axes):
        axes = axes.ravel()
        axes[3].axis("off")
        for n, x in enumerate(signals[:3]):
            _show_matrix(axes[n], x, f"network {n}, ")
        axes[3].text(0, 0.9, fill(MATRIX, 34), va="top")
    return Result({"fits": table}, {"ding-15": figure})


@recipe(
    "ding-16", item="Figure 16; Appendix G",
    **fits((2, 160_000), networks=160),
    fidelity=training.BITS,
    source="Section 4.2", cost="half an hour to an hour", looks=2,
    rules=(
        Statement("followed", "With this new set of equations, we can model the trajectory well",
            "part of the circles that Lasso follows to a tenth of their first signal, mean of networks",
            measures.mean("fits", "followed", law=training.LASSO), least=0.9, possible=(0.0, 1.0),
            chance=DRIFT),
    ),
)  # fmt: skip
def all_trajectories(run: Run) -> Result:
    """All signals of a network, and the linear laws fitted to them.

    Notes
    -----
    The table "fits" has a row for each network and law. The rule asks how many signals Lasso follows.
    """
    table, signals = fit_networks(run)
    x = signals[0]
    paths = _paths(x, training.LINEAR, training.LASSO)
    with charts.panels(12.0, 8.6, 5, 6, sharex=True, sharey=True) as (figure, axes):
        axes = axes.ravel()
        for k, ax in enumerate(axes[: x.shape[1]]):
            for name, path in paths.items():
                ax.plot(path[:, k], label=name, **LOOK[name])
            alive = x[-1, k] > 2 * x[-1].mean()
            look: Any = {"weight": "bold", "color": palette.SECOND} if alive else {"color": palette.INK}
            ax.text(0.96, 0.93, f"{k + 1}", transform=ax.transAxes, ha="right", va="top", **look)
        axes[0].set_ylim(0, 1.05 * float(x.max()))
        for ax in axes[x.shape[1] :]:
            ax.axis("off")
        axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center")
        figure.supxlabel("step")
        figure.supylabel("signal ‖$F_k$‖; survivors' numbers in bold")
    return Result({"fits": table}, {"ding-16": figure})


# -- Figure 10 ---------------------------------------------------------------------------------------------

PIECE_10 = 20, 130
"""Largest number of networks that are trained together, on a CPU (where they take an hour) and on a GPU."""
PART = 1 / 3
"""A circle survives here if its signal exceeds this fraction of the largest signal of its network.

All circles can, whereas they cannot all exceed the paper's limit, twice the mean signal. A weight decay that
shrinks all circles alike takes none of them below it, as it would below a fixed limit."""


def _largest_drop(decay: Any, circles: Any) -> float:
    """Return the largest drop of the mean number of circles from one weight decay to the next, as a fraction.

    The whole is the drop from the smallest weight decay to the fewest circles. If it is less than one circle,
    the result is NaN.
    """
    _, number = training.means_by(decay, circles)
    whole = number[0] - number.min()
    return float((number[:-1] - number[1:]).max() / whole) if whole >= 1 else np.nan


def _draw(setting: Setting, tables: Tables, left: Any, right: Any) -> None:
    """Draw mean numbers of circles, by two rules, and mean test accuracies over the weight decay."""
    rows, size = tables["networks"], setting.size
    smallest = min(decay for decay in setting.decays if decay)
    for ax, name, label, most in (
        (left, "circles", "above a third of the largest", size.tokens // 2),
        (left, "above_twice_mean", "above twice the mean", size.tokens // 2),
        (right, "accuracy", "test accuracy", 1),
    ):
        charts.means(ax, rows["weight_decay"], rows[name], possible=(0, most), label=label)
    left.set(ylabel="circles that survive", ylim=(0, None))
    left.set_title(f"p = {size.tokens}, d = {size.dim}, {size.steps} steps, {setting.networks} networks each")
    right.set(ylabel="test accuracy", ylim=(0, 1.03))
    for ax in (left, right):
        ax.set_xscale("symlog", linthresh=smallest)
        charts.label(ax, f"weight decay (linear below {smallest:g})", xlim=(0, None))


@recipe(
    "ding-10", item="Figure 10; Appendix A",
    quick=Setting(size=training.QUICK, decays=(0.0, 0.5, 2.0), networks=3, seed=0),
    paper_setting=Setting(
        size=training.PAPER,
        decays=(
            *(0.0, 0.002, 0.003, 0.004, 0.005, 0.007, 0.01, 0.02, 0.03, 0.05, 0.07),
            *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5),
        ),
        networks=20, seed=100_010,
    ),
    draw=_draw, panels=(9.6, 3.6, 1, 2), source="Appendix A",
    cost="six to ten hours: all networks are trained to the end; twenty networks at a time are kept",
    fidelity=training.SINGLE,
    rules=(
        Statement("no decay",
            "there is no resource limit and it is not surprising that all the frequencies survive",
            "share of the circles above a third of the largest signal at the end, without weight decay",
            measures.of_rows(
                lambda alive, of, level: share(np.arange(of.sum()) < alive.sum(), level), "networks",
                "circles", "frequencies", weight_decay=0.0,
            ),
            least=0.95, independent="circle", chance=counters.shuffled("networks", "circles"),
            note="580 of 580; until after the run networks were the units, and 20 equal ones undecided"),
        Statement("no generalization", "while the neural network fails to generalize",
            "test accuracy at the end, without weight decay; by chance 1/59",
            measures.mean("networks", "accuracy", weight_decay=0.0), most=0.5, possible=(0.0, 1.0),
            chance=counters.shuffled("networks", "accuracy"),
            note="16 of the 20 are at 1 % or below, and four at 11 to 65 %"),
        Statement("drops", "The number of final circular representations gradually drops",
            "Kendall's τ of the number of circles above a third of the largest signal and weight decay; by "
            "chance 0",
            measures.rank_correlation("networks", "weight_decay", "circles"), most=-0.3,
            chance=counters.shuffled("networks", "circles"),
            note="one trend over all decays: the number is smallest at 0.1, and rises again up to 1.5"),
        Statement("gradually", "The number of final circular representations gradually drops",
            "largest drop between neighboring decays, as a share of the whole; 1 for a single jump",
            measures.statistic(_largest_drop, "networks", "weight_decay", "circles", by="network"), most=0.5,
            chance=ONE_JUMP, note="26 networks, one of each decay, are left out at a time"),
    ),
)  # fmt: skip
def by_decay(run: Run) -> Result:
    """How many circles survive, by the weight decay, and how accurate the networks are.

    At 0.05 one of 20 networks is far from accurate, which makes the interval wide.

    Notes
    -----
    The table "networks" has a row for each network. The rules judge how many circles survive and how accurate
    networks are without weight decay, and whether the number of circles drops gradually with it.
    """
    setting = run.setting
    size, count = setting.size, setting.networks

    def train_part(part: range) -> dict[str, Any]:
        numbers = np.array(part)
        decays = np.array(setting.decays)[numbers // count]
        trained = training.train_networks(
            run, part, [size.steps], "validation_accuracy", weight_decay=decays.tolist()
        )
        signals = frequency_norms(np.nan_to_num(trained.final))
        return table_of(
            {"weight_decay": decays}, network=numbers % count,
            circles=(signals > PART * signals.max(axis=1, keepdims=True)).sum(axis=1),
            above_twice_mean=survives(signals).sum(axis=1), frequencies=signals.shape[1],
            accuracy=trained.observables["validation_accuracy"][:, -1],
        )  # fmt: skip

    return Result({"networks": joined(in_parts(run, len(setting.decays) * count, PIECE_10, train_part))})


# -- Figure 12 ---------------------------------------------------------------------------------------------

ALL, LARGEST, TWO = "all", "the largest (A)", "the largest two (B)"
RANDOM, TWO_RANDOM = "one random (C)", "two random (D)"
LEARNT = 1e-2
"""Test loss below which a network has learned the task."""
PIECE_12 = 4, 60
"""Largest number of networks of a start that are trained together, on a CPU (half an hour) and on a GPU."""
SHOWN = 60
"""Largest number of steps of a loss curve that the table keeps."""


def _later(starts: tuple[str, ...], sign: int) -> Measure:
    """Return a measure of the share of networks with some starts that learn later than with all circles.

    Learning means a test loss below `LEARNT`. With the sign -1 it is the share that learns earlier. A tie,
    which is learning at the same recorded step or never from both starts, counts one half.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = measures.rows_of(tables, "networks", {}, lambda rows: np.isin(rows["start"], starts))
        usual = np.tile(where(tables["networks"], start=ALL)["learnt"], len(starts))
        later = (sign * rows["learnt"] > sign * usual) + (rows["learnt"] == usual) / 2
        return share(later, level, groups=rows["network"])

    return measure


STAYS = counters.drawn(
    "nothing revived that began at zero", "networks",
    circles=lambda rows, _: np.where(rows["start"] == ALL, rows["circles"], rows["kept"]), others=0,
)  # fmt: skip


def _draw_curves(_setting: Setting, tables: Tables, *axes: Any) -> None:
    """Draw the median test loss over time for each start, and its range."""
    for ax, title, names in zip(
        axes,
        ("the strongest of the undisturbed network", "random frequencies"),
        ((ALL, LARGEST, TWO), (ALL, RANDOM, TWO_RANDOM)),
        strict=True,
    ):
        for name in names:
            rows = where(tables["curves"], start=name)
            losses = np.concatenate([rows[column] for column in ("lowest", "median", "highest")])
            charts.ranges(ax, np.tile(rows["step"], 3), losses, label=name)
        legend = {"title": "frequencies at the start", "columns": 3}
        charts.label(ax, "step", "test loss", title, yscale="log", legend=legend)


@recipe(
    "ding-12", item="Figure 12; Appendix C",
    quick=Setting(size=training.QUICK, record="20", networks=3, seed=0), source="Appendix C",
    paper_setting=Setting(size=training.PAPER, record="10:2000,100", networks=60, seed=120_000),
    draw=_draw_curves, panels=(10.4, 4.6, 1, 2),
    cost="four to eight hours; four networks of each start at a time are kept",
    fidelity=training.SINGLE,
    rules=(
        Statement("A: four circles", "and eventually ends up with four learned circles",
            "mean number of circles of networks A",
            measures.mean("networks", "circles", start=LARGEST), least=3.5, most=4.5, chance=STAYS),
        Statement("A to D: never one",
            "In none of our experiments were we able to construct … a single-circle representation",
            "share of networks A to D that end with a single circle",
            measures.share("networks", "circles == 1", by="network", among=f"start != {ALL!r}"), most=0.1,
            chance=STAYS),
        Statement("B: two suffice",
            "achieves good performance using only the two circles initialized with non-zero signals",
            "share of networks B in which nothing but these two survives",
            measures.share("networks", "(others == 0) & (kept == 2)", start=TWO), least=0.75,
            undecidable="45 of 60 are the bound itself",
            chance=counters.shuffled("networks", "others", within="network")),
        Statement("B: loss", "Two circles seem sufficient for the model to achieve a loss as low as 1e-7",
            "mean log₁₀ of the lowest test loss of networks B; guessing has 0.6",
            measures.mean("networks", "np.log10(lowest)", start=TWO), most=-6.0,
            chance=counters.instead("networks", rows={"start": RANDOM}, of={"start": TWO}),
            note="by PyTorch in float32, in which the smallest losses come out too small"),
        Statement("B: faster", "Experiment B reaches lower test loss more quickly than the original",
            "share of networks B whose test loss is below 0.01 earlier than with all circles; by chance 0.5",
            _later((TWO,), -1), least=0.75, chance=counters.shuffled("networks", "learnt", within="network")),
        Statement("C and D: slower", "the model struggles to learn with only 1 or 2 random frequencies",
            "share of networks C and D whose test loss is below 0.01 later than with all; by chance 0.5",
            _later((RANDOM, TWO_RANDOM), 1), least=0.75,
            chance=counters.shuffled("networks", "learnt", within="network"),
            note="both starts together: from one circle always later, from two nearly always earlier"),
        Statement("C and D: three or more", "after training, at least three circles survive",
            "share of networks C and D in which three circles or more survive",
            measures.share(
                "networks", "circles >= 3", by="network", among=f"np.isin(start, {[RANDOM, TWO_RANDOM]})",
            ),
            least=0.75, chance=STAYS,
            note="both starts together: from one circle always, while two random ones mostly stay alone"),
    ),
    withdrawn={
        "A: others are revived": "the rule on four circles implies it, as one is there at the start",
    },
)  # fmt: skip
def ablation(run: Run) -> Result:
    """Test loss of networks that begin with all circles, the strongest one or two, or random ones.

    Lines are medians of 60 networks, and shades reach from the lowest loss to the highest. The rise near step
    19 000 is an effect of rounding in 32 bits (see `rounding`).

    Notes
    -----
    Embedding MLPs start from all circles, from the one or two that were strongest at the end of that
    training, or from one or two random ones. The table "networks" has a row for each network, and "curves"
    the test loss over time. The rules judge which circles survive, the lowest test loss, and whether learning
    is faster or slower than from all circles.
    """
    setting = run.setting
    trained = joined(in_parts(run, setting.networks, PIECE_12, partial(_train_part, run)))
    found = {name: where(trained, start=name) for name in (ALL, LARGEST, TWO, RANDOM, TWO_RANDOM)}
    rows = {name: x for name, x in joined(found.values()).items() if name not in ("steps", "losses")}
    return Result({"networks": rows, "curves": _curves(found)})


def _train_part(run: Run, part: range) -> dict[str, Any]:
    """Train some of the networks from each of the five starts; return a table of what `_ended` returns."""
    setting = run.setting
    options: dict[str, Any] = {
        "steps": setting.size.steps, "seed": run.seed(setting.seed), "weight_decay": training.DECAY,
        "record": setting.record, "observables": ("validation_loss",),
    }  # fmt: skip
    whole = train(setting.size.model, runs=len(part), first_run=part.start, **options)
    order = 1 + np.argsort(-frequency_norms(np.nan_to_num(whole.final)), axis=1)
    # Random frequencies are drawn from all except the two that were strongest at the end, in the same way
    # whichever networks are trained together.
    generator = generator_of(options["seed"])
    ranks = [2 + generator.choice(order.shape[1] - 2, 2, replace=False) for _ in range(part.stop)]
    drawn = np.take_along_axis(order, np.array(ranks[part.start :]), axis=1)
    cases = {LARGEST: order[:, :1], TWO: order[:, :2], RANDOM: drawn[:, :1], TWO_RANDOM: drawn}
    starts = [
        keep_frequencies(E, chosen)
        for kept in cases.values()
        for E, chosen in zip(whole.initial, kept.tolist(), strict=True)
    ]
    # Seed and numbers are the same, so layers and training sets are those of the undisturbed networks.
    again = train(
        setting.size.model, runs=len(starts), run_numbers=[*part] * len(cases),
        initial={"embedding": np.stack(starts)}, **options,
    )  # fmt: skip
    found = [_ended(ALL, part, whole, order[:, :0])]
    for n, (name, kept) in enumerate(cases.items()):
        found.append(_ended(name, part, again[n * len(part) : (n + 1) * len(part)], kept))
    return joined(found)


def _ended(start: str, part: range, trained: Trajectory, kept: NDArray[np.int64]) -> dict[str, Any]:
    """Return a table of networks, which started from the frequencies `kept` (networks, n).

    It has a row for each network with the name of its start and its number; numbers of survivors (all, those
    kept, and others); the lowest test loss; the first recorded step with a loss below `LEARNT` (infinite if
    there is none); and the steps and losses of all frames, each (networks, frames).
    """
    alive = survives(frequency_norms(np.nan_to_num(trained.final)))
    losses, steps = trained.observables["validation_loss"], trained.steps
    chosen = np.zeros_like(alive)
    np.put_along_axis(chosen, kept - 1, True, axis=1)
    below = losses < LEARNT
    return {
        "start": np.full(len(part), start), "network": np.array(part), "circles": alive.sum(axis=1),
        "kept": (alive & chosen).sum(axis=1), "others": (alive & ~chosen).sum(axis=1),
        "lowest": losses.min(axis=1),
        "learnt": np.where(below.any(axis=1), steps[below.argmax(axis=1)], np.inf),
        "steps": np.broadcast_to(steps, losses.shape), "losses": losses,
    }  # fmt: skip


def _curves(found: dict[str, dict[str, NDArray[Any]]]) -> dict[str, Any]:
    """Return a table of the median and the range of the test loss over networks, at up to `SHOWN` steps.

    `found` holds the tables of `_ended` by the name of the start. The steps become sparser with time.
    """
    steps = found[ALL]["steps"][0]
    at = np.unique(np.searchsorted(steps, np.geomspace(max(steps[1], 1), steps[-1], SHOWN)))
    losses = np.stack([rows["losses"][:, at] for rows in found.values()], axis=1)
    return table_of(
        {"start": list(found), "step": steps[at]}, median=np.median(losses, axis=0),
        lowest=losses.min(axis=0), highest=losses.max(axis=0),
    )  # fmt: skip


# -- Figure 13 ---------------------------------------------------------------------------------------------

PIECE_13 = 5, 5
"""Most networks trained together, on a CPU and on a GPU. Gradients of all frames are in memory."""


@recipe(
    "ding-13", item="Figure 13; Appendix D",
    quick=Setting(size=training.Size(31, 32, 1200), record="10:1000,40", networks=3, seed=0),
    paper_setting=Setting(size=training.PAPER, record="5:1000,200", networks=20, seed=130_000),
    source="Appendix D", cost="half an hour to two hours",
    fidelity=training.SINGLE,
    withdrawn=dict.fromkeys(
        ("spike", "over"), "one network of 20 decides the mean, by rounding, and not the median"
    ),
)  # fmt: skip
def gradients(run: Run) -> Result:
    """The gradient of the loss of one network by the embedding, for each frequency, during training.

    The rise after step 10⁴ is an effect of rounding in 32 bits (see `rounding`).

    Notes
    -----
    Embedding MLPs are trained on addition modulo p, and the Fourier norms of the gradient are recorded. The
    table "gradients" has a row for each network and recorded step.
    """
    setting = run.setting

    def train_part(part: range) -> dict[str, Any]:
        trained = training.train_networks(run, part, setting.record, "gradient")
        slopes = frequency_norms(trained.observables["gradient"])
        alive, steps = survives(frequency_norms(trained.final)), trained.steps
        sizes = {"largest": slopes.max(axis=2), "mean": slopes.mean(axis=2)}
        each = {"slopes": slopes.reshape(-1, slopes.shape[2]), "alive": np.repeat(alive, len(steps), axis=0)}
        return table_of({"network": part, "step": steps}, **sizes) | each

    table = joined(in_parts(run, setting.networks, PIECE_13, train_part))
    rows = where(table, network=0)
    alive = np.flatnonzero(rows["alive"][0])
    with charts.panels(10.4, 3.7, 1, 2) as (figure, axes):
        for ax, first, last in ((axes[0], 0, np.inf), (axes[1], 100, 1000)):
            window = (rows["step"] >= first) & (rows["step"] <= last)
            steps, slopes = rows["step"][window], rows["slopes"][window]
            ax.plot(steps, np.delete(slopes, alive, axis=1), color=palette.DEAD, linewidth=0.6)
            for n, k in enumerate(alive):
                color = palette.SERIES[n % len(palette.SERIES)]
                ax.plot(steps, slopes[:, k], color=color, linewidth=1.4, label=f"k = {k + 1}")
            ax.set(xlabel="step", ylabel="‖Fourier transform\nof ∂L/∂E‖ at k", ylim=(0, None))
        axes[0].set_xscale("symlog", linthresh=100)
        axes[0].set(title="one network; survivors in color", xlim=(0, None))
        axes[1].set(title="steps 100 to 1000")
        if len(alive):
            charts.legend_below(axes[0])
    del table["slopes"], table["alive"]
    return Result({"gradients": table}, {"ding-13": figure})
