"""Liu et al., Figures 4 (a), 5 (a) and Appendix F: the effective theory for addition of p = 10 tokens.

Liu et al., Figures 3, 4 (b) and 5 (b): toy networks on the addition of p = 10 tokens.

The paper does not state the decoder's learning rate and the numbers of steps and networks of these figures.
The paper's setting has the rate of the published code (1e-4), and at least its 10 000 steps and 3 networks.

Liu et al., Figures 4 (c), 4 (d): embeddings that move onto a line, in the theory and in networks.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import solve_ivp

import physics
from analysis.plots import palette
from analysis.stats import Interval, proportion
from grokphys.papers import charts, counters, measures
from grokphys.papers.evidence import Measure, Tables, columns_of, joined, share, table_of
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from nets import ToyAddition, networks, train
from physics import EffectiveTheory, Operation, closures, predicted_accuracy, representation_quality
from physics.seeds import children, generator

FRACTION = "training data fraction"
PASSED = "np.isfinite(steps_to_rqi)"
BOTH = "np.isfinite(steps_to_rqi) & np.isfinite(n_h)"
"""Which networks pass an RQI of 0.95, and of which of them the theory tells the steps."""


def jump(places: Any, missing: Any) -> Any:
    """Return the places (...) of the jumps that leave the area of what is `missing` from 1 (..., n)."""
    return places[0] + np.trapezoid(missing, places, axis=-1)


def passed(here: str, there: str) -> Measure:
    """Return a measure of the share of networks that pass in one range of fractions minus that in another."""
    return measures.difference(*(measures.share("networks", PASSED, among=side) for side in (here, there)))


def half_rise(fraction: Any, passed: Any) -> float:
    """Return the training fraction of a jump from 0 to 1 that stands for a gradual rise.

    The rise is the share of the networks that have `passed` (n,), over their training `fraction` (n,). The
    area between the curve and 1 is the same for the jump and for the rise. The result is NaN if the share is
    1 everywhere or 0 everywhere.
    """
    places = np.unique(fraction)
    rates = np.array([np.mean(passed[fraction == place]) for place in places])
    if not 0 < rates.sum() < len(rates):
        return float("nan")
    return float(jump(places, 1 - rates))


# -- Figures 4a, 5a ----------------------------------------------------------------------------------------

TOKENS = 10
LEARNING_RATE = 1e-3
"""Learning rate η of the embeddings."""
GROKKED = 0.95
DELTA = 0.1
"""Tolerance of a distance. Its square is 0.01, the tolerance in the published code (`threshold_P`)."""
STRICT = 0.01
"""Tolerance of a distance that Appendix E states for Figure 10."""
SHOWN_SIZE = 45
SIZES = range(1, 56)
"""Sizes of all training sets of addition."""

Masks = NDArray[np.bool_]


def training_sets(operation: Operation, sizes: Any, sets: int, seed: int) -> dict[int, Masks]:
    """Draw independent random training sets of every size, as masks over all samples, bool (sets, samples).

    `sets` is the number of training sets of each of the `sizes`, which are the keys of the result.
    """
    streams = children(seed, range(len(sizes)))
    return {
        int(size): physics.random_training_sets(operation, int(size), sets=sets, seed=stream)
        for size, stream in zip(sizes, streams, strict=True)
    }


def unique_sets(operation: Operation, sizes: Any, sets: int, seed: int) -> dict[str, NDArray[Any]]:
    """Return a table of sizes, with the number of random training sets that determine the representation."""
    masks = training_sets(operation, sizes, sets, seed)
    unique = [int(closures(operation, one).complete.sum()) for one in masks.values()]
    fraction = np.array(sizes) / len(operation.samples)
    return table_of({"size": sizes}, fraction=fraction, sets=sets, unique=unique)


# -- Figure 4 (a) ------------------------------------------------------------------------------------------


_unique = measures.crossing("sizes", "fraction", "unique", "sets")


def _pooled(successes: str, among: str) -> Measure:
    """Return a measure of the share of successes among all training sets of some sizes together."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = measures.rows_of(tables, "sizes", {}, among)
        return share(np.arange(rows["sets"].sum()) < measures.column_of(rows, successes).sum(), level)

    return measure


def _draw_probability(setting: int, tables: Tables, ax: Any) -> None:
    """Draw the probability of a unique representation over the training fraction."""
    rows = tables["sizes"]
    at = [proportion(unique, setting) for unique in rows["unique"].tolist()]
    charts.intervals(ax, rows["fraction"], at, markersize=3.5, linewidth=1, label=f"{setting} sets")
    place = _unique(tables, 0.95)
    ax.axvline(place.estimate, color=palette.SECOND, linewidth=1, label=f"$r_c$ = {place.format(3)}")
    sides: Any = {"xlim": (0, 1), "ylim": (-0.03, 1.03)}
    charts.label(ax, FRACTION, "probability of a unique representation", "p = 10", **sides)


@recipe(
    "liu-4a", item="Figure 4 (a)", quick=100, paper_setting=10_000, draw=_draw_probability, panels=(5.6, 4.0),
    source="Figure 4 (a)", independent="training set", cost="a minute",
    rules=(
        Number("r_c", "0.4", _unique, margin=0.02, digits=4),
        Statement("transition", "has a phase transition around r_c = 0.4",
            "probability for at least half of the data minus that for at most 0.3 of it; by chance 0",
            measures.difference(_pooled("unique", "fraction >= 0.5"), _pooled("unique", "fraction <= 0.3")),
            least=0.8, source="Section 3.2", chance=counters.shuffled("sizes", "unique")),
    ),
)  # fmt: skip
def probability(run: Run) -> Result:
    """The probability that the training set implies a unique linear representation.

    Notes
    -----
    Random training sets of each size are drawn, and nothing is trained. The table "sizes" has a row for each
    size. The rules compare the fraction at which the probability is one half with that of the paper, and
    judge the rise of the probability.
    """
    return Result({"sizes": unique_sets(Operation(TOKENS), SIZES, run.setting, run.seed(141))})


# -- Figure 5 (a) ------------------------------------------------------------------------------------------


DRAWS = 1000
"""Number of times that means are drawn anew to measure the error of their ranks."""


def _rate_rises(tables: Tables, level: float) -> Interval:
    """Return Kendall's τ of the mean λ_3 and the size, above 0.4 of the data.

    The sizes are all that there are. The interval holds τ of means that are drawn anew, each from a normal
    distribution with its standard error.
    """
    rows = tables["sizes"]
    fraction, rate, error = (rows[name][rows["fraction"] > 0.4] for name in ("fraction", "mean", "error"))
    drawn = rate + error * np.random.default_rng(0).standard_normal((DRAWS, len(rate)))
    ranks = [stats.kendalltau(fraction, values).statistic for values in drawn]
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2])
    found = stats.kendalltau(fraction, rate).statistic
    return Interval(float(found), float(low), float(high), int(rows["sets"].max()))


def _draw_rates(setting: int, tables: Tables, ax: Any) -> None:
    """Draw the grokking rate λ_3 over the training fraction, as a mean with quartiles."""
    rows = tables["sizes"]
    x = rows["fraction"]
    ax.fill_between(x, rows["quartile_1"], rows["quartile_3"], alpha=0.25, linewidth=0, label="quartiles")
    ax.plot(x, rows["mean"], label=f"mean of {setting} sets")
    ax.axvline(0.4, color=palette.REFERENCE, linestyle=":", linewidth=1, label="0.4")
    sides: Any = {"xlim": (0, 1.02), "ylim": (-0.003, None)}
    charts.label(ax, FRACTION, r"grokking rate $\lambda_3$", "p = 10", **sides)


@recipe(
    "liu-5a", item="Figure 5 (a)", quick=100, paper_setting=10_000,
    draw=_draw_rates, panels=(5.6, 4.0), source="Section 3.2", independent="training set", cost="two minutes",
    rules=(
        Number("fraction at which λ_3 > 0 for half of the training sets", "0.4",
            measures.crossing("sizes", "fraction", "positive", "sets"), margin=0.02, digits=4,
            note="interpolated between sizes; elsewhere, r_c is the median over random orders"),
        Statement("below",
            "When the data fraction is below some threshold (around 0.4), λ_3 is zero with high probability",
            "share of training sets of at most 0.35 of the data for which λ_3 = 0",
            _pooled("sets - positive", "fraction <= 0.35"), least=0.9,
            chance=counters.shuffled("sizes", "positive")),
        Statement("above",
            "When data size is above the threshold, λ_3 (on average) is an increasing function of data size",
            "Kendall's τ of the mean λ_3 with the size, above 0.4; by chance 0",
            _rate_rises, least=0.9, possible=(-1.0, 1.0), chance=counters.shuffled("sizes", "mean"),
            note="corrected after the run: training sets are drawn anew; before, the interval left out "
            "sizes"),
    ),
)  # fmt: skip
def rates(run: Run) -> Result:
    """The grokking rate λ_3 by the training fraction.

    Notes
    -----
    Random training sets of each size are drawn, and nothing is trained. The table "sizes" has a row for each
    size. The rules judge at which fraction of the data λ_3 becomes positive, and whether its mean rises above
    that fraction.
    """
    rates = grokking_rates(run.setting, run.seed(151))
    rows = table_of(
        {"size": SIZES}, fraction=np.array(SIZES) / 55, sets=run.setting, positive=(rates > 0).sum(axis=1),
        mean=rates.mean(axis=1), error=rates.std(axis=1) / run.setting**0.5,
        **{f"quartile_{k}": np.quantile(rates, k / 4, axis=1) for k in (1, 2, 3)},
    )  # fmt: skip
    return Result({"sizes": rows})


def grokking_rates(sets: int, seed: int) -> NDArray[np.float64]:
    """Return the grokking rates λ_3 (sizes, sets) per unit of time, of random training sets of each size."""
    masks = training_sets(Operation(TOKENS), SIZES, sets, seed)
    return np.array([physics.grokking_rates(Operation(TOKENS), one) for one in masks.values()])


# -- Appendix F --------------------------------------------------------------------------------------------


@recipe(
    "liu-F", item="Appendix F, Eq. 24", quick=6, paper_setting=200, source="Appendix F, Eq. 24",
    independent="start", cost="a minute",
    rules=tuple(
        Statement(name, "We will prove the following two quantities are conserved: C = Σ E_k, Z_0 = Σ |E_k|²",
            f"mean largest relative change of {what}, integrated numerically",
            measures.mean("flows", column, centred=centred), most=1e-3, digits=6,
            chance="none: what is conserved is computed for every start, and shuffling starts changes no "
            "mean",
            counter=counters.drawn(
                f"`{column}` drawn evenly from 0 to 1, as of what nothing conserves", "flows",
                **{column: lambda rows, rng: rng.random(len(rows["start"]))},
            ))
        for name, what, column, centred in (
            ("Z_0", "Z_0", "norm_change", False),
            ("C of any start", "C, against the root of p Z_0", "sum_change", False),
            ("C of a centered start", "C, against the root of p Z_0", "sum_change", True),
        )
    ),
)  # fmt: skip
def conservation(run: Run) -> Result:
    """How Z_0 = Σ|E|² and C = ΣE change in the flow of the effective loss, as medians over 200 training sets.

    Notes
    -----
    The flow is integrated numerically. Each random training set has one start with a mean and one without.
    The table "flows" has a row for each start, and the rules judge the largest changes.
    """
    full = EffectiveTheory(TOKENS)
    masks = physics.random_training_sets(full, SHOWN_SIZE, sets=run.setting, seed=run.seed(161))
    rng = generator(run.seed(161))
    times, paths = np.linspace(0, 100, 51), []
    for mask in masks:
        theory = EffectiveTheory(TOKENS, pairs=full.operation.samples[mask])
        for centred in (False, True):
            E = rng.standard_normal(TOKENS) + 1.0
            E = E - E.mean() if centred else E
            flow = lambda _, x, theory=theory: -theory.gradient(x[:, None])[:, 0]  # noqa: E731
            paths.append(solve_ivp(flow, (0.0, 100.0), E, t_eval=times, rtol=1e-10, atol=1e-12).y)
    moved = np.reshape(paths, (len(masks), 2, TOKENS, len(times)))
    norm, total = (moved**2).sum(axis=2), moved.sum(axis=2)
    first = norm[:, :, :1]
    changes = abs(norm / first - 1), abs(total - total[:, :, :1]) / np.sqrt(TOKENS * first)
    with charts.panels(9.6, 4.0, 1, 2) as (figure, axes):
        titles = "relative change of $Z_0$", r"change of $C$ over $\sqrt{p\,Z_0}$"
        for ax, title, linear, change in zip(axes, titles, (1e-13, 1e-4), changes, strict=True):
            for k, color, label in ((0, palette.SECOND, "random start"), (1, palette.FIRST, "centered")):
                ax.plot(times, np.median(change[:, k], axis=0), color=color, label=f"{label}, median")
            ax.set_yscale("symlog", linthresh=linear)
            charts.label(ax, "time", title)
    norm_change, sum_change = (change.max(axis=2) for change in changes)
    index = {"start": range(len(masks)), "centred": [False, True]}
    rows = table_of(index, norm_change=norm_change, sum_change=sum_change)
    return Result({"flows": rows}, {"liu-F": figure})


# -- Figures 3, 4b, 5b -------------------------------------------------------------------------------------

DECODER_RATE = 1e-4
"""Learning rate of the decoder in the published code (`eta_dec`)."""
TRACK = 20
PARTS = ("train", "validation")


PAPER = Setting(
    model=ToyAddition(TOKENS), sizes=tuple(range(5, 55)), seeds=25, steps=10_000, shown=5_000, batch=45,
    rate=DECODER_RATE, delta=DELTA, seed=3000,
)  # fmt: skip
"""As in `toy/produce_figure_data.py`: batches of 45, RQI followed for 10 000 steps, all else after 5000."""
FIDELITY = (
    "nearest: in batches of all samples and for 10 000 steps; to be run again in batches of 45, of which the "
    "published code takes 5000, and 10 000 for the steps to a high RQI"
)
SMALL = ToyAddition(TOKENS, hidden=(50, 50))
QUICK = {
    "model": SMALL, "sizes": (14, 32, 50), "seeds": 4, "steps": 1000, "shown": 1000, "batch": 55,
    "rate": 3e-4,
}  # fmt: skip


def train_fractions(run: Run, *, family: str = "") -> dict[str, NDArray[Any]]:
    """Train the networks of a `Fractions` setting, and return a table with a row for each of them.

    Its columns are those of `measure`. Recipes of one `family` share the networks.
    """
    setting = run.setting
    return joined(run.keep(f"size-{n}", partial(measure, run, n), family=family) for n in setting.sizes)


def measure(run: Run, size: int) -> dict[str, NDArray[Any]]:
    """Train networks on `size` samples each, and return a table with a row for each of them.

    A row has the representation quality index (RQI), the accuracy on all samples, and the accuracy that the
    embedding predicts, all at the step `shown` of the setting or else at the end, and the RQI and accuracy of
    an ideal model; "_strict" marks those at δ = 0.01. It also has the first checked step with an RQI of 0.95
    (infinite if there is none), and the steps n_h = 1/(λ_3 η) of the training set (NaN if the operation does
    not commute). Here λ_3 is its grokking rate and η the learning rate of the embedding.
    """
    setting, model = run.setting, run.setting.model
    assert model.theory is not None
    operation = model.theory.operation
    total, shown = len(operation.samples), getattr(setting, "shown", setting.steps)
    trained = train(
        model, runs=setting.seeds, steps=setting.steps, seed=run.seed(setting.seed + size),
        learning_rate=setting.rate, weight_decay=0.0, embedding_learning_rate=LEARNING_RATE,
        train_fraction=size / total, batch_size=min(getattr(setting, "batch", size), size),
        record=sorted({shown, setting.steps}),
        observables=("train_accuracy", "validation_accuracy", "layers"), thresholds={"quality": GROKKED},
        track=TRACK, delta=setting.delta,
    )  # fmt: skip
    masks = np.zeros((setting.seeds, total), bool)
    np.put_along_axis(masks, networks(trained).examples("train"), True, axis=1)
    ideal, at = closures(operation, masks), trained.steps.tolist().index(shown)
    embeddings = trained.positions[:, at].astype(float)
    if not operation.commutes:
        side = round(model.dim**0.5)
        embeddings = embeddings.reshape(setting.seeds, model.tokens, side, side)
    theories = [replace(model.theory, pairs=operation.samples[mask]) for mask in masks]
    right, held = (trained.observables[f"{part}_accuracy"][:, at].astype(float) for part in PARTS)
    steps = trained.observables["steps_to_quality"][:, -1].astype(float)
    columns = {
        name + end: [float(quality(*pair, delta)) for pair in zip(embeddings, theories, strict=True)]
        for end, delta in (("", setting.delta), ("_strict", STRICT))
        for name, quality in (("rqi", representation_quality), ("predicted_accuracy", predicted_accuracy))
    }
    return table_of(
        {"size": np.full(setting.seeds, size)}, fraction=size / total,
        network=1000 * size + np.arange(setting.seeds), rqi_bound=ideal.quality, train_accuracy=right,
        validation_accuracy=held, accuracy=(size * right + (total - size) * held) / total,
        accuracy_bound=ideal.accuracy, steps_to_rqi=np.where(np.isfinite(steps), steps, np.inf),
        n_h=[theory.grokking_steps(LEARNING_RATE) if operation.commutes else np.nan for theory in theories],
        **columns,
    )  # fmt: skip


def said(setting: Setting) -> str:
    """Return words for a title: how many networks were trained, and for how many steps."""
    return f"{setting.seeds} networks (dots) for each size, {setting.steps} steps"


# -- Figure 3 ----------------------------------------------------------------------------------------------


def _draw_accuracies(setting: Setting, tables: Tables) -> dict[str, Figure]:
    with charts.page(10.6, 3.7, title=f"p = 10: {said(setting)}, δ = {setting.delta:g}") as figure:
        show_accuracies(tables["networks"], figure.subplots(1, 3))
    return {"liu-3": figure}


@recipe(
    "liu-3", item="Figure 3", quick=QUICK, paper_setting=PAPER, draw=_draw_accuracies, source="Section 3.1",
    fidelity=FIDELITY,
    cost="an hour for 1250 networks, which liu-4b, liu-5b and liu-10 share",
    rules=(
        Statement("aligned", "the predicted accuracy aligns well with the true accuracy",
            "correlation of what true and predicted accuracy have beyond the training set; by chance 0",
            measures.correlation("networks", "predicted_accuracy - fraction", "accuracy - fraction"),
            least=0.7, chance=counters.shuffled("networks", "predicted_accuracy")),
    ),
    withdrawn={"near": "the training fraction itself has a mean distance of 0.09 from the true accuracy"},
)  # fmt: skip
def accuracies(run: Run) -> Result:
    """The accuracy of networks, and the one that the parallelograms of their embeddings predict.

    Notes
    -----
    Toy networks learn the addition of 10 tokens from training sets of many sizes. The table "networks" has a
    row for each network. The rules judge how near the two accuracies are and how they are correlated.
    """
    return Result({"networks": train_fractions(run)})


def show_accuracies(rows: Any, axes: Any) -> None:
    """Draw real and predicted accuracy over the training fraction, and one over the other, on three axes."""
    fraction, real, predicted = (rows[k] for k in ("fraction", "accuracy", "predicted_accuracy"))
    for ax, values, label in ((axes[0], real, "accuracy Acc"), (axes[1], predicted, r"$\widehat{Acc}$")):
        ax.scatter(fraction, values, s=9, alpha=0.5, linewidths=0)
        ax.plot([0, 1], [0, 1], color=palette.SECOND, linestyle="--", linewidth=1, label="training set alone")
        charts.label(ax, FRACTION, label, xlim=(0, 1.02), ylim=(0, 1.03))
    points = axes[2].scatter(predicted, real, s=9, c=fraction, cmap="viridis", linewidths=0)
    axes[2].figure.colorbar(points, ax=axes[2], label="training fraction", aspect=30, pad=0.03)
    axes[2].plot([0, 1], [0, 1], color=palette.REFERENCE, linestyle=":", linewidth=1, label="equal")
    charts.label(axes[2], r"predicted $\widehat{Acc}$", "accuracy Acc", xlim=(0, 1.03), ylim=(0, 1.03))


# -- Figure 4 (b) ------------------------------------------------------------------------------------------


def show_line(rows: Any, name: str, of: Any, label: str, ax: Axes) -> None:
    """Draw the column `name` over the training fraction, and a line through one number per size.

    The function `of`, such as a median, gives this number from the values of one size.
    """
    places = np.unique(rows["fraction"])
    ax.scatter(rows["fraction"], rows[name], s=9, color=palette.REFERENCE, linewidths=0, label="one network")
    line = [of(rows[name][rows["fraction"] == place]) for place in places]
    ax.plot(places, line, "o-", markersize=3.5, label=label)
    charts.label(ax, FRACTION, xlim=(0, 1.02))


def show_reached(rows: Any, steps: int, ax: Axes) -> None:
    """Draw the steps of networks to a representation quality of 0.95, with triangles at `steps` for never."""
    look: Any = {"color": palette.SECOND, "markersize": 3, "label": "one network"}
    charts.steps(ax, rows["fraction"], rows["steps_to_rqi"], steps, f"never in {steps} steps", **look)
    charts.label(ax, FRACTION, f"steps to RQI > {GROKKED}", xlim=(0, 1.02))


def _draw_qualities(setting: Setting, tables: Tables, left: Any, right: Any) -> None:
    rows = tables["networks"]
    for ax in (left, right):
        ax.axvline(0.4, color=palette.REFERENCE, linestyle=":", linewidth=1, label="paper: 0.4")
    show_line(rows, "rqi", np.median, "median", left)
    left.set(ylabel="RQI", ylim=(-0.03, 1.03), title=said(setting))
    show_reached(rows, setting.steps, right)


@recipe(
    "liu-4b", fidelity=FIDELITY, item="Figure 4 (b)", quick=QUICK, paper_setting=PAPER,
    draw=_draw_qualities, panels=(9.6, 4.3, 1, 2),
    source="Figure 4 (b)", cost="an hour alone; no time after liu-3, whose networks it shares",
    rules=(
        Number("r_c of networks", "0.4", measures.statistic(half_rise, "networks", "fraction", PASSED),
            margin=0.05,
            note="the jump from no network to all with the same area as the curve of the shares that pass"),
        Statement("transition",
            "The number of steps to reach RQI > 0.95 is seen to have a phase transition at r_c = 0.4",
            "share of networks that pass RQI 0.95 with at least half of the data minus that with at most 0.3",
            passed("fraction >= 0.5", "fraction <= 0.3"), least=0.5,
            source="Section 3.2", chance=counters.shuffled("networks", "steps_to_rqi")),
    ),
)  # fmt: skip
def qualities(run: Run) -> Result:
    """The quality of trained networks, and the steps until it is high, by the training fraction.

    Notes
    -----
    RQI is the representation quality index. The networks are those of Figure 3. The rules judge at which
    training fraction networks begin to pass 0.95, and how sharp the transition is.
    """
    return Result({"networks": train_fractions(run, family="liu-3")})


# -- Figure 5 (b) ------------------------------------------------------------------------------------------


def _draw_steps(setting: Setting, tables: Tables, left: Any, right: Any) -> None:
    theory, both = tables["theory"], measures.rows_of(tables, "networks", {}, BOTH)
    finite = np.isfinite(theory["n_h_median"])
    name = "theory: median $n_h$ of training sets,\nby Eq. 5, with $1/|P_0(D)|$"
    left.plot(theory["fraction"][finite], theory["n_h_median"][finite], label=name)
    show_reached(tables["networks"], setting.steps, left)
    left.set(yscale="log", ylabel=f"steps to RQI > {GROKKED}, or $n_h$", title=said(setting))
    x, y = both["n_h"], both["steps_to_rqi"]
    points = right.scatter(x, y, s=12, c=both["fraction"], cmap="viridis", linewidths=0)
    left.figure.colorbar(points, ax=right, label="training fraction", aspect=30, pad=0.03)
    right.set(xscale="log", yscale="log", xlabel=r"$n_h = 1/(\lambda_3\eta)$ of its training set (Eq. 5)")
    right.set(ylabel=f"steps to RQI > {GROKKED}", title="each network and its own prediction")


@recipe(
    "liu-5b", fidelity=FIDELITY, item="Figure 5 (b)", quick=QUICK, paper_setting=PAPER,
    draw=_draw_steps, panels=(10.2, 4.3, 1, 2), source="Section 3.2",
    cost="an hour alone; no time after liu-3, whose networks it shares",
    rules=(
        Statement("networks", "the trend of decreasing grokking steps as increasing data size",
            "Kendall's τ of the steps to RQI > 0.95 with the training fraction; by chance 0",
            measures.rank_correlation("networks", "fraction", "steps_to_rqi", among=BOTH), most=-0.2,
            chance=counters.shuffled("networks", "steps_to_rqi")),
        Statement("theory", "The theory agrees qualitatively with neural networks",
            "Pearson correlation of the logarithms of steps and n_h; by chance 0",
            measures.correlation("networks", "np.log(n_h)", "np.log(steps_to_rqi)", among=BOTH), least=0.3,
            chance=counters.shuffled("networks", "n_h")),
    ),
)  # fmt: skip
def steps_of_networks(run: Run) -> Result:
    """The steps to a good representation in theory and networks, by the training fraction.

    Notes
    -----
    n_h is the number of steps in which a representation forms, by the grokking rate λ_3 of the training set
    and the learning rate η. The rules ask whether the steps fall with the data, and whether they follow n_h.
    """
    rows = train_fractions(run, family="liu-3")
    with np.errstate(divide="ignore"):
        n_h = 1 / (grokking_rates(40 if run.budget == "quick" else 10_000, run.seed(152)) * LEARNING_RATE)
    parts = np.quantile(n_h, (0.25, 0.5, 0.75), axis=1, method="inverted_cdf")
    names = ("n_h_quartile_1", "n_h_median", "n_h_quartile_3")
    theory = {"fraction": np.array(SIZES) / 55} | dict(zip(names, parts, strict=True))
    return Result({"networks": rows, "theory": theory})


# -- Figures 4c, 4d ----------------------------------------------------------------------------------------


def grokking_steps(theory: EffectiveTheory) -> dict[str, float]:
    """Return the steps n_h = 1/(λ_3 η) of a training set, by the three conventions of the loss in use.

    λ_3 is the grokking rate and η the learning rate. "mean" is the convention of Eq. 5 of Liu et al., with
    the factor 1/|P_0(D)|, one over the number of parallelograms that the training set permits. "sum" leaves
    this factor out, as Appendix F does. "code" is that of the published `toy/train_add.py`: the
    parallelograms of all samples, no such factor, and embeddings whose squares add up to one less than the
    number of tokens.
    """
    by_mean = theory.grokking_steps(LEARNING_RATE)
    full = EffectiveTheory(theory.tokens)
    by_code = full.grokking_steps(LEARNING_RATE) / full.parallelogram_count * (1 - 1 / theory.tokens)
    return {"mean": by_mean, "sum": by_mean / max(theory.parallelogram_count, 1), "code": by_code}


# -- Figure 4 (c) ------------------------------------------------------------------------------------------


def _in_words(n_h: dict[str, float]) -> str:
    """Return what `grokking_steps` returns in words, on two lines."""
    mean, total, code = (f"{n_h[name]:.0f}" for name in ("mean", "sum", "code"))
    return f"$n_h$ = {mean} steps by Eq. 5; {total} without\n$1/|P_0(D)|$; {code} of the published code"


PAPER_FLOWS = Setting(sets=1000, frames=401, multiples=10.0)


@recipe(
    "liu-4c", item="Figure 4 (c)", quick=Setting(sets=12, frames=201, multiples=10.0),
    paper_setting=PAPER_FLOWS, source="Section 3.2", independent="training set",
    shows="An embedding that follows the effective theory, and how many n_h the embeddings of "
    f"{PAPER_FLOWS.sets} training sets take to reach a line.",
    cost="a minute",
    rules=(
        Statement("duration",
            "it takes about 3 n_h steps for two trajectories to converge to the linear structure",
            "median time at which RQI passes 0.95 (δ = 0.1), in units of n_h; the same by every convention "
            "of the loss, which only changes the unit of time",
            measures.median("flows", "formed_over_n_h"), least=2.0, most=4.5,
            chance="none: the time is computed, and what could be shuffled leaves its median as it is",
            counter=counters.drawn(
                "times drawn from an exponential distribution of mean n_h", "flows",
                formed_over_n_h=lambda rows, rng: rng.standard_exponential(len(rows["set"])),
            ),
            note="RQI is the representation quality index, and n_h = 1/(λ_3 η) the time scale of the theory"),
    ),
)  # fmt: skip
def trajectories(run: Run) -> Result:
    """Reproduce Figure 4 (c) of Liu et al.: embeddings in the theory, and when they have formed a line.

    The flow is solved in closed form for random training sets of 45 samples, with one start each. The table
    "flows" has a row for each set whose embeddings converge to a line. The rule judges the median time until
    the representation quality index exceeds 0.95, in units of n_h = 1/(λ_3 η), with the grokking rate λ_3 and
    the learning rate η.
    """
    setting = run.setting
    full = EffectiveTheory(TOKENS)
    masks = physics.random_training_sets(full, SHOWN_SIZE, sets=setting.sets, seed=run.seed(143))
    rng = generator(run.seed(143))
    times = np.linspace(0, setting.multiples, setting.frames)
    rows: list[dict[str, float]] = []
    shown: Any = None
    for number, mask in enumerate(masks):
        theory = EffectiveTheory(TOKENS, pairs=full.operation.samples[mask])
        n_h = grokking_steps(theory)
        if not np.isfinite(n_h["mean"]):
            continue  # the training set leaves more than a line: nothing converges
        E: Any = theory.solve(theory.start(rng), times * n_h["mean"] * LEARNING_RATE)[:, :, 0]
        E = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
        passed = representation_quality(E[:, :, None], full, DELTA) > GROKKED
        formed = float(times[np.argmax(passed)]) if passed.any() else np.inf
        rows.append({"set": number, "formed_over_n_h": formed} | {f"n_h_{k}": n for k, n in n_h.items()})
        shown = shown or (E, n_h)
    table = columns_of(rows)
    E, n_h = shown
    with charts.panels(9.6, 4.0, 1, 2) as (figure, (left, right)):
        show_embeddings(times, E, left)
        for multiple, name in ((1, "$n_h$"), (3, "$3n_h$")):
            left.axvline(multiple, color=palette.REFERENCE, linestyle=":", linewidth=1)
            left.annotate(name, (multiple, left.get_ylim()[1]), xytext=(3, -10), textcoords="offset points")
        left.set(xlabel="time in units of $n_h$", title=_in_words(n_h))
        all_formed = table["formed_over_n_h"]
        right.hist(all_formed[np.isfinite(all_formed)], 25, color=palette.FIRST, alpha=0.7)
        right.axvline(3, color=palette.SECOND, linewidth=1, label="the paper's 3 $n_h$")
        charts.label(right, "time to RQI > 0.95 in $n_h$", "training sets")
    return Result({"flows": table}, {"liu-4c": figure})


def show_embeddings(x: Any, E: Any, ax: Axes) -> None:
    """Draw normalized embeddings E (frames, tokens) in one dimension over times or steps x (frames,).

    Each curve has the number of its token at the end.
    """
    for token, color in enumerate(palette.graded_colors(E.shape[1])):
        ax.plot(x, E[:, token], color=color)
        place: Any = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "color": color}
        ax.annotate(str(token), (x[-1], E[-1, token]), **place)
    ax.set(ylabel="normalized embedding", xlim=(0, x[-1]))


# -- Figure 4 (d) ------------------------------------------------------------------------------------------


def _waited(mean: str, rows: Any, rng: np.random.Generator) -> Any:
    return rng.exponential(rows[mean])


@recipe(
    "liu-4d", item="Figure 4 (d)",
    quick={"model": SMALL, "seeds": 4, "steps": 1000, "rate": 3e-4},
    paper_setting=Setting(model=ToyAddition(TOKENS), seeds=50, steps=5000, rate=DECODER_RATE),
    source="Section 3.2", cost="a few minutes",
    rules=(
        *(
            Statement(f"duration, n_h {words}",
                "it takes about 3 n_h steps for two trajectories to converge to the linear structure",
                f"median of the steps to RQI > 0.95 (δ = 0.1) over n_h = 1/(λ_3 η) {words}",
                measures.median("networks", f"steps_to_rqi / n_h_{name}"), least=2.0, most=4.5,
                chance="none: a median of networks, which no order changes",
                counter=counters.drawn(
                    "steps drawn from an exponential distribution of mean n_h", "networks",
                    steps_to_rqi=partial(_waited, f"n_h_{name}"),
                ))
            for name, words in (
                ("mean", "of Eq. 5, with 1/|P_0(D)|"),
                ("sum", "without 1/|P_0(D)|, as in Appendix F"),
                ("code", "of the published code"),
            )
        ),
        Statement("linear", "The two trajectories agree qualitatively",
            "mean correlation (absolute) of the final embeddings with the numbers they stand for",
            measures.of_networks("tokens", lambda own: abs(np.corrcoef(own["token"], own["final"])[0, 1])),
            least=0.9, chance=counters.shuffled("tokens", "final", within="network")),
    ),
)  # fmt: skip
def trained_trajectories(run: Run) -> Result:
    """The embedding of the network, out of 50, that reaches an RQI above 0.95 in the median time.

    Notes
    -----
    Toy networks learn the addition of 10 tokens, on 45 of 55 samples. The rules compare the median number of
    steps until the representation quality index reaches 0.95 with three conventions of n_h (see
    `grokking_steps`), and judge how linear the final embeddings are.
    """
    setting = run.setting
    trained = train(
        setting.model, runs=setting.seeds, steps=setting.steps, seed=run.seed(3400),
        learning_rate=setting.rate, weight_decay=0.0, embedding_learning_rate=LEARNING_RATE,
        train_fraction=SHOWN_SIZE / 55, record=max(setting.steps // 100, 1), thresholds={"quality": GROKKED},
        track=TRACK, delta=DELTA, observables=("validation_accuracy", "layers"),
    )  # fmt: skip
    samples = Operation(TOKENS).samples
    own = networks(trained).examples("train")
    n_h = [grokking_steps(EffectiveTheory(TOKENS, pairs=samples[np.sort(one)])) for one in own]
    reached = trained.observables["steps_to_quality"][:, -1].astype(float)
    E = trained.positions[:, :, :, 0].astype(float)
    E = (E - E.mean(axis=2, keepdims=True)) / E.std(axis=2, keepdims=True)
    steps = np.where(np.isfinite(reached), reached, np.inf)
    columns = {f"n_h_{name}": values for name, values in columns_of(n_h).items()}
    rows = table_of({"network": range(setting.seeds)}, steps_to_rqi=steps, **columns)
    tokens = table_of({"network": rows["network"], "token": range(TOKENS)}, final=E[:, -1])
    middle = np.argsort(steps, kind="stable")[setting.seeds // 2]  # the median network
    with charts.panels(6.4, 4.2) as (figure, ax):
        show_embeddings(trained.steps, E[middle], ax)
        if np.isfinite(when := steps[middle]):
            ax.axvline(when, color=palette.REFERENCE, linestyle=":", linewidth=1)
            ax.annotate("RQI > 0.95", (when, ax.get_ylim()[1]), (3, -10), textcoords="offset points")
        ax.set(xlabel="steps", title=f"network of median time; {_in_words(n_h[middle])}")
    return Result({"networks": rows, "tokens": tokens}, {"liu-4d": figure})
