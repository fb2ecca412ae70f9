"""Ding et al., Figure 6: how often a circle survives, by the initial signal of its frequency.

Ding et al., Figure 7: how often circles survive, by the changes of their signals in the first steps.

Ding et al., Figure 8: how many circles a network needs in order to add.

Ding et al., Figure 11: the circularity of random embeddings, and the survival of circles by it.
"""

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from analysis.circles.fourier import fourier_signals
from analysis.circles.geometry import circularity
from analysis.circles.survival import survives
from analysis.plots import palette
from analysis.stats.intervals import CONFIDENCE, Interval, proportion
from grokphys.papers import charts, counters, measures
from grokphys.papers.ding import training
from grokphys.papers.evidence import Tables, correlation, jackknife, joined, mean, paired_gap, table_of, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from nets.engines.ensemble import draw
from nets.interventions import keep_frequencies, scale_frequency, with_signals
from nets.networks import networks
from physics.seeds import generator as generator_of

SURVIVORS_AT_RANDOM = counters.drawn(
    "survivors drawn at random from the 29 circles, as many as survive",
    "runs",
    larger=lambda rows, rng: 29 * rng.random(len(rows["circles"])) < rows["circles"],
)
NONE_REVIVED = counters.drawn(
    "no other frequency that survives", "runs", revived=lambda rows, _: rows["revived"] & False
)

# -- Figure 6 ----------------------------------------------------------------------------------------------


def _rates(tables: Tables) -> tuple[Any, Any, Any]:
    """Return three columns with a row for each frequency of each embedding.

    They are the initial signal, the fraction of the networks on this embedding in which the frequency
    survives, and the number of the embedding.
    """
    table = tables["circles"]
    own = table["embedding"].astype(int) * 1000 + table["frequency"].astype(int)
    _, first, group = np.unique(own, return_index=True, return_inverse=True)
    rate = np.bincount(group, table["survived"]) / np.bincount(group)
    return table["signal"][first], rate, table["embedding"][first]


def _correlation(tables: Tables, level: float) -> Interval:
    signal, rate, embedding = _rates(tables)
    return correlation(signal, rate, level, groups=embedding)


def _draw_signals(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the survival rate over the initial signal, for each frequency and in bins."""
    circles = tables["circles"]
    signal, rate, _ = _rates(tables)
    with charts.panels(5.6, 4.0) as (figure, ax):
        ax.scatter(signal, rate, s=9, color=palette.DEAD, linewidths=0, label="a frequency of an embedding")
        charts.survival(ax, circles["signal"], circles["survived"], circles["embedding"], label="bins")
        ax.set(xlabel="initial signal ‖$F_k$‖", ylabel="survival rate", ylim=(-0.03, 1.03))
        ax.set_title(f"{setting.embeddings} embeddings, {setting.trials} trials each")
        charts.legend_below(ax)
    return {"ding-6": figure}


@recipe(
    "ding-6", item="Figure 6, left", quick=training.FEW_TRIALS, paper_setting=training.TRIALS,
    draw=_draw_signals, source="Section 3.2.1", independent="embedding", cost="half an hour to two hours",
    rules=(
        Number("correlation of survival rate and initial signal", "0.85", _correlation, margin=0.1,
            note=training.BY_THE_RULE),
        Statement("likelier",
            "the higher the initial signal, the more likely the model is to choose that frequency",
            "Pearson correlation of the survival rate and the initial signal; by chance 0",
            _correlation, least=0.5, chance=counters.shuffled("circles", "survived", within="embedding"),
            note=training.BY_THE_RULE),
    ),
)  # fmt: skip
def initial_signals(run: Run) -> Result:
    """How often a frequency survives, by its initial signal.

    Notes
    -----
    Several networks with different layers and training sets start from each embedding. The table "circles"
    has a row for each frequency of each network. The rules judge the correlation of survival rate and initial
    signal.
    """
    circles = training.train_trials(run)
    return Result({"circles": circles})


# -- the middle ---------------------------------------------------------------------------------------------


MUCH = 10.0
"""Least distance of a signal from the mean of the others, near 87, at which it is much higher or lower."""


def _draw_scaled(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw how often a frequency survives, over the distance of its signal from the mean of the others."""
    rows = tables["runs"]
    with charts.panels(5.6, 4.0) as (figure, ax):
        start = rows["deviation"].reshape(-1, setting.trials)[:, 0]
        shares = rows["survived"].reshape(-1, setting.trials).mean(axis=1)
        look: Any = {"s": 9, "color": palette.DEAD, "linewidths": 0}
        ax.scatter(start, shares, label="an embedding and a factor", **look)
        charts.survival(ax, rows["deviation"], rows["survived"], rows["embedding"], label="bins")
        ax.set(xlabel="‖$F_k$‖ - mean of the others", ylabel="survival rate of k", ylim=(-0.03, 1.03))
        ax.set_title(
            f"signal of k = {setting.frequency} times {setting.factors[0]} to {setting.factors[-1]},\n"
            f"{setting.embeddings} embeddings, {setting.trials} trials each",
            fontsize="medium",
        )
        charts.legend_below(ax)
    return {"ding-6b": figure}


@recipe(
    "ding-6b", item="Figure 6, middle",
    quick=Setting(size=training.QUICK, embeddings=2, factors=(0.85, 1.15), trials=4, frequency=5),
    paper_setting=Setting(
        size=training.PAPER, embeddings=60, factors=(0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15), trials=8,
        frequency=25,
    ),
    draw=_draw_scaled, source="Section 3.2.1", independent="embedding", cost="two to four hours",
    rules=(
        Statement("raised", "if the frequency is much higher than the rest, survival rate is near 100 %",
            "share of trials with a signal at least 10 above the mean of the others in which it survives",
            measures.share("runs", "survived", by="embedding", among=f"deviation >= {MUCH}"), least=0.9,
            chance=counters.shuffled("runs", "survived")),
        Statement("lowered", "the frequency rarely survives if it is much lower than the mean",
            "share of trials with a signal at least 10 below the mean of the others in which it survives",
            measures.share("runs", "survived", by="embedding", among=f"deviation <= -{MUCH}"), most=0.1,
            chance="a share near the mean of all trials; the difference below tests it",
            counter=counters.shuffled("runs", "survived")),
        Statement("difference",
            "the initial signal of the frequency plays a unique role in determining the final representation",
            "survival with a signal at least 10 above the mean of the others minus that at least 10 below",
            lambda tables, level: paired_gap(
                lambda x: x.sum() / len(x), (tables["runs"]["survived"],),
                tables["runs"]["deviation"] >= MUCH, tables["runs"]["deviation"] <= -MUCH, level,
                groups=tables["runs"]["embedding"],
            ),
            least=0.3, chance=counters.shuffled("runs", "survived"),
            note="corrected after the run: what one embedding has above and below is resampled together"),
    ),
)  # fmt: skip
def scaled(run: Run) -> Result:
    """How often a frequency survives if its signal alone is raised or lowered.

    Notes
    -----
    One frequency of each embedding is multiplied by several factors, and networks with different layers and
    training sets start from the result. The table "runs" has a row for each network. The rules judge how
    often the frequency survives if its signal is far above or far below the mean of the others.
    """
    setting = run.setting
    rows = joined(run.keep(f"embedding-{n}", partial(_scale_one, run, n)) for n in range(setting.embeddings))
    return Result({"runs": rows})


def _scale_one(run: Run, number: int) -> dict[str, Any]:
    setting = run.setting
    size, seed = run.setting.size, run.seed(6100 + number)
    generator = generator_of(seed)
    E, k = generator.standard_normal((size.tokens, size.dim)), setting.frequency
    starts = np.repeat([scale_frequency(E, k, f) for f in setting.factors], setting.trials, axis=0)
    one = training.train_circles(
        size.model, runs=len(starts), steps=size.steps, audited=int(number < 5), seed=seed, initial=starts
    )
    signal = one.signals[:, 0]
    return {
        "embedding": np.full(len(starts), number),
        "frequency": np.full(len(starts), k),
        "factor": np.repeat(setting.factors, setting.trials),
        "deviation": signal[:, k - 1] - np.delete(signal, k - 1, axis=1).mean(axis=1),
        "survived": one.survived[:, k - 1],
        **one.columns(),
    }


# -- the right ----------------------------------------------------------------------------------------------


RATIOS = 1, 11
"""Largest number of ratios of which the networks are trained together, on a CPU and on a GPU."""


@recipe(
    "ding-6c", item="Figure 6, right",
    quick=Setting(size=training.QUICK, ratios=(0.2, 0.6, 1.0), pairs=3, others=1e-6),
    paper_setting=Setting(
        size=training.PAPER, ratios=tuple(np.linspace(0, 1, 11).round(2).tolist()), pairs=20, others=1e-6,
    ),
    source="Section 3.2.1",
    cost="three to six hours: all networks are trained to the end, since circles come back late",
    rules=(
        Statement("larger", "the frequency with the highest signal will always survive",
            "share of networks with r < 1 in which the larger one survives",
            measures.share("runs", "larger", among="ratio < 1"), least=0.95,
            chance="4 of 29 circles survive elsewhere", counter=SURVIVORS_AT_RANDOM),
        Statement("smaller",
            "the second highest frequency increases in survival rate as its signal increases",
            "Pearson correlation of the survival of the smaller one with the ratio r; by chance 0",
            measures.correlation("runs", "ratio", "smaller.astype(float)"), least=0.2,
            chance=counters.shuffled("runs", "smaller")),
        Statement("revived",
            "all other frequencies having a signal near 0 … the model sometimes chooses to revive them",
            "share of networks in which any other frequency survives",
            measures.share("runs", "revived"), least=0.05, chance="none, if what is near zero stayed there",
            counter=NONE_REVIVED),
    ),
)  # fmt: skip
def pairs(run: Run) -> Result:
    """How often the stronger and the weaker of two frequencies survive, and any other.

    Notes
    -----
    Networks start from two random frequencies, with all others at a tiny signal. The table "runs" has a row
    for each network. The rules judge how often the stronger one, the weaker one and any other survives.
    """
    setting = run.setting
    rows = joined(in_parts(run, len(setting.ratios), RATIOS, partial(_train_pairs, run), name="ratios"))
    with charts.panels(5.6, 4.0) as (figure, ax):
        for n, (name, label) in enumerate(
            (("larger", "the larger"), ("smaller", "the smaller"), ("revived", "any other, revived"))
        ):
            alive = rows[name].reshape(len(setting.ratios), -1)
            values = [proportion(int(part.sum()), len(part)) for part in alive]
            look: Any = {"linestyle": ":"} if n == 2 else {}
            places = np.array(setting.ratios) + 0.012 * (n - 1)  # side by side, where they agree
            charts.intervals(ax, places, values, color=palette.SERIES[n], label=label, **look)
        ax.set(xlabel="r, ratio of the two signals", ylabel="survival rate", ylim=(-0.03, 1.03))
        ax.set_title(f"all others at {setting.others:g}; {setting.pairs} pairs each")
        charts.legend_below(ax)
    return Result({"runs": rows}, {"ding-6c": figure})


def _train_pairs(run: Run, part: range) -> dict[str, Any]:
    setting = run.setting
    size, count = setting.size, setting.pairs
    typical = np.sqrt(size.tokens * size.dim)
    rows, starts, both = np.arange(count), [], []
    for number in part:
        generator = generator_of(run.seed(6200 + number))
        two = np.array([generator.choice(size.tokens // 2, 2, replace=False) for _ in rows])
        signals = np.full((count, size.tokens // 2), setting.others)
        signals[rows, two[:, 0]] = typical
        signals[rows, two[:, 1]] = max(setting.ratios[number] * typical, setting.others)
        starts.append(with_signals(generator.standard_normal((count, size.tokens, size.dim)), signals))
        both.append(two)
    networks = len(part) * count
    one = training.train_circles(
        size.model, runs=networks, first_run=part.start * count, steps=size.steps, audited=networks,
        seed=run.seed(6200), initial=np.concatenate(starts),
    )  # fmt: skip
    larger, smaller = np.concatenate(both).T
    rows = np.arange(networks)
    others = one.survived.copy()
    others[rows, larger] = others[rows, smaller] = False
    return {
        "ratio": np.repeat(np.array(setting.ratios)[part.start : part.stop], count),
        "larger": one.survived[rows, larger],
        "smaller": one.survived[rows, smaller],
        "revived": others.any(axis=1),
        **one.columns(),
    }


# -- Figure 7 ----------------------------------------------------------------------------------------------

ALIVE = "survived.astype(float)"
MACHINE = "it sees the initial signal and its change in step 4, of unit variance; all circles weigh the same"


def _machine(balanced: bool = False) -> Any:
    return make_pipeline(
        StandardScaler(), LinearSVC(class_weight="balanced" if balanced else None, random_state=0)
    )


def _plane(tables: Tables) -> tuple[Any, Any, Any]:
    rows = tables["circles"]
    return np.stack([rows["signal"], rows["change_4"]], axis=1), rows["survived"], rows["embedding"]


def _accuracy(tables: Tables, level: float) -> Interval:
    X, y, groups = _plane(tables)

    def percent(index: Any) -> float:
        if np.ptp(y[index].astype(int)) == 0:
            return np.nan  # a machine needs both classes
        return 100 * float(_machine().fit(X[index], y[index]).score(X[index], y[index]))

    return jackknife(percent, (np.arange(len(y)),), level, groups=groups)


def _area_left_out(tables: Tables, level: float) -> Interval:
    """Return the mean area under the ROC curve on embeddings to which the classifier was not fitted.

    Each embedding is left out in turn, and the interval is over embeddings. An embedding does not count if
    all of its circles have the same fate, or if all circles of the other embeddings do.
    """
    X, y, groups = _plane(tables)
    areas = []
    for left in np.unique(groups):
        out = groups == left
        if all(0 < y[part].sum() < part.sum() for part in (out, ~out)):
            scores = _machine().fit(X[~out], y[~out]).decision_function(X[out])
            areas.append(roc_auc_score(y[out], scores))
    return mean(areas, level)


def _draw_gradients(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw survival over the changes of the signal in the steps 1 to 4, and a classifier of survivors."""
    circles = tables["circles"]
    survived = circles["survived"]
    with charts.panels(11.4, 4.6, 1, 3) as (figure, (left, middle, right)):
        edges = np.histogram_bin_edges(circles["change_4"], 40)
        charts.densities(left, circles["change_4"], survived, edges, "change of ‖$F_k$‖ in step 4")
        for step in range(1, 5):
            change = circles[f"change_{step}"]
            look: Any = {"color": palette.SERIES[step - 1], "label": f"step {step}"}
            charts.survival(middle, change, survived, circles["embedding"], **look)
        middle.set(xlabel="change of ‖$F_k$‖ in that step", ylabel="survival rate", ylim=(0, None))
        middle.set_title("bins of equally many circles")
        charts.legend_below(middle)
        _show_plane(right, circles)
    return {"ding-7": figure}


@recipe(
    "ding-7", item="Figure 7", quick=training.FEW_TRIALS, paper_setting=training.TRIALS, draw=_draw_gradients,
    source="Section 3.2.2", independent="embedding",
    cost="half an hour to two hours; no time after ding-6, whose networks it shares",
    rules=(
        Statement("left", "all gradient signals decrease over time",
            "share of circles whose signal falls in step 4",
            measures.share("circles", "change_4 < 0", by="embedding"), least=0.95,
            chance="half of them, if signals only fluctuated",
            counter=counters.drawn(
                "a random sign of each `change_4`", "circles",
                change_4=lambda rows, rng: rows["change_4"] * rng.choice([-1, 1], len(rows["change_4"])),
            )),
        Statement("middle",
            "as the initial gradient increases, the survival rate of those frequencies increases",
            "Pearson correlation of survival with the change of the signal in step 4; by chance 0",
            measures.correlation("circles", "change_4", ALIVE, by="embedding"), least=0.1,
            chance=counters.shuffled("circles", "survived", within="embedding"), note=training.BY_THE_RULE),
        Number("right: accuracy of the linear support vector machine, in sample (%)", "83.8", _accuracy,
            margin=3.0, digits=1, note=f"{training.BY_THE_RULE}; {MACHINE}"),
        Statement("right",
            "frequencies with both high initial signal and gradient are more likely to survive",
            "area under the ROC curve on embeddings that the machine has not seen; by chance 0.5",
            _area_left_out, least=0.6, chance=counters.shuffled("circles", "survived", within="embedding"),
            note=f"{training.BY_THE_RULE}; {MACHINE}"),
    ),
)  # fmt: skip
def initial_gradients(run: Run) -> Result:
    """How often frequencies survive, by the changes of their signals in the first four steps.

    Notes
    -----
    The networks are those of Figure 6 (left). The table "circles" has a row for each frequency of each
    network. The rules judge how survival depends on the change of the signal in step 4, and how well a linear
    classifier predicts it from the initial signal and this change.
    """
    circles = training.train_trials(run)
    return Result({"circles": circles})


def _show_plane(ax: Axes, circles: Any) -> None:
    """Draw circles by initial signal and change in step 4, and the boundary of a linear classifier.

    Survivors and dead circles have equal total weight in the classifier. There is no boundary if all circles
    survive or none does.
    """
    X, y, _ = _plane({"circles": circles})
    for alive, color in ((False, palette.DEAD), (True, palette.SURVIVES)):
        ax.scatter(X[y == alive, 0], X[y == alive, 1], s=5, color=color, alpha=0.5, linewidths=0)
    ax.set(xlabel="initial signal ‖$F_k$‖", ylabel="change of ‖$F_k$‖\nin step 4", ylim=ax.get_ylim())
    if not 0 < y.sum() < len(y):
        return
    scaler, svm = (step for _, step in _machine(balanced=True).fit(X, y).steps)
    weights = svm.coef_[0] / scaler.scale_
    x = np.array([X[:, 0].min(), X[:, 0].max()])
    line = scaler.mean_[1] - (svm.intercept_[0] + weights[0] * (x - scaler.mean_[0])) / weights[1]
    ax.plot(
        x, line, color=palette.INK, linewidth=1, linestyle="--", label="linear classifier, balanced classes"
    )
    charts.legend_below(ax)


# -- Figure 8 ----------------------------------------------------------------------------------------------

PIECE = 5, 5
"""Most networks trained together, on a CPU and on a GPU. The layers of all frames are in memory."""
FEW = 0.2
"""Accuracy below which a network counts as unable to add."""
HIGH, NEAR_ZERO = 1.0, 0.1
"""Test losses, in nats, above which a loss is high, and below which it is near zero; guessing gives ln p."""


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the test loss with all frequencies and with the strongest alone, over the steps."""
    with charts.panels(12.6, 4.6, 1, 3, sharey=True) as (figure, axes):
        for count, ax in enumerate(axes, 1):
            strongest = f"the {count} strongest alone" if count > 1 else "the strongest alone"
            for kept, words in ((0, "all frequencies"), (count, strongest)):
                rows = where(tables["curves"], kept=kept)
                label = f"{words} ({len(np.unique(rows['network']))})"
                steps = np.unique(rows["step"][rows["step"] > 0])
                losses = [rows["test_loss"][rows["step"] == step] for step in steps]
                (line,) = ax.plot(steps, [np.median(values) for values in losses], label=label)
                low, high = ([side(values) for values in losses] for side in (min, max))
                ax.fill_between(steps, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
            guess = np.log(setting.size.tokens)
            ax.axhline(guess, color=palette.INK, linewidth=0.8, linestyle=":", label="guessing")
            ax.set(xlabel="step", xscale="log", yscale="log")
            ax.set_title(f"{count} kept" if count < 2 else f"{count} kept, where at least {count} survive")
            charts.legend_below(ax, title="median and range (networks)")
        axes[0].set_ylabel("test loss")
    return {"ding-8": figure}


@recipe(
    "ding-8", item="Figure 8", quick=Setting(size=training.QUICK, record="log:3", networks=3, seed=0),
    paper_setting=Setting(size=training.PAPER, record="log:8", networks=30, seed=80_000), draw=_draw,
    source="Section 4.1", cost="one to two hours",
    rules=(
        Statement("one", "the model is not able to perform the modular addition with only one circle",
            f"share of networks with less than {FEW:.0%} of the sums right by their strongest circle alone",
            measures.share("sets", f"accuracy < {FEW}", kept=1, rank=0), least=0.75,
            chance=counters.shuffled("sets", "accuracy", within="network")),
        Statement("two", "still has considerably high loss using two circles",
            f"share of networks whose test loss is above {HIGH:g} with their two strongest circles",
            measures.share("sets", f"test_loss > {HIGH}", kept=2, rank=0), least=0.75,
            chance=counters.shuffled("sets", "test_loss", within="network")),
        Statement("three", "reaches near zero loss with 3 circles",
            f"share of networks whose test loss is below {NEAR_ZERO:g} with their three strongest circles",
            measures.share("sets", f"test_loss < {NEAR_ZERO}", kept=3, rank=0), least=0.75,
            chance=counters.shuffled("sets", "test_loss", within="network"),
            note="of networks with at least three survivors: those with just three all pass, others do not"),
    ),
)  # fmt: skip
def collaboration(run: Run) -> Result:
    """The test loss of embeddings of which only one, two or three circles are kept.

    The rise after step 10⁴ is an effect of rounding in 32 bits (see `rounding`).

    Notes
    -----
    Embedding MLPs are trained to the end on addition modulo p, and tested with embeddings that keep only some
    of their circles. The table "sets" has all sets of up to three survivors at the end, and "curves" the
    strongest sets over time. The rules judge test loss and accuracy with the strongest one, two and three
    circles.
    """
    setting = run.setting

    def train_part(part: range) -> dict[str, Any]:
        trained = training.train_networks(run, part, setting.record, "layers")
        signals = fourier_signals(trained.final)
        rows = []
        for k, own in enumerate(signals):
            # The strongest first: the first set of each size then holds the strongest circles.
            alive = [int(f) + 1 for f in np.argsort(-own) if survives(own)[f]]
            for frame, step in enumerate(trained.steps):
                rows += [
                    (part.start + k, step, *row)
                    for row in _tested(networks(trained.run(k), frame), alive, step == trained.steps[-1])
                ]
        names = ("network", "step", "kept", "rank", "test_loss", "accuracy")
        return {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}

    rows = joined(in_parts(run, setting.networks, PIECE, train_part))
    last = where(rows, step=setting.size.steps)
    curves = where(rows, rank=0)
    return Result({"sets": last, "curves": curves})


def _tested(revived: Any, alive: list[int], all_sets: bool) -> list[tuple[int, int, float, float]]:
    """Test a network at one frame with only some of its surviving circles.

    `alive` lists the surviving frequencies, the strongest first. All sets of up to three of them are tested,
    or else only the strongest one, two and three. A row is the size of the set (0 for all frequencies), its
    rank, the validation loss and the validation accuracy.
    """
    E = revived.parameters["embedding"]
    found = [(0, 0, float(revived.loss("validation")[0]), float(revived.accuracy("validation")[0]))]
    for count in range(1, min(3, len(alive)) + 1):
        for rank, kept in enumerate(combinations(alive, count)):
            changed = revived.with_embedding(keep_frequencies(E, kept))
            loss, accuracy = changed.loss("validation"), changed.accuracy("validation")
            found.append((count, rank, float(loss[0]), float(accuracy[0])))
            if not all_sets:
                break
    return found


# -- Figure 11 ---------------------------------------------------------------------------------------------

SHARD = 100
"""Number of networks of Figure 11 (right) that have one seed."""


def _rounder(name: str, column: str) -> Statement:
    return Statement(name, "circularity increases as dimensionality increases",
        f"Kendall's τ of the {name} circularity over frequencies and d; by chance 0",
        measures.rank_correlation("embeddings", "d", column), least=0.5, possible=(-1.0, 1.0),
        independent="embedding", source="Appendix B",
        chance=counters.shuffled("embeddings", column))  # fmt: skip


@recipe(
    "ding-11", item="Figure 11, left; Appendix B", quick=Setting(tokens=23, dims=(2, 8, 32), count=5, seed=0),
    paper_setting=Setting(tokens=59, dims=(2, 4, 8, 16, 32, 64, 128, 256, 512), count=50, seed=110_000),
    cost="seconds",
    rules=(_rounder("mean", "mean"), _rounder("maximum", "maximum")),
)  # fmt: skip
def initial_circularity(run: Run) -> Result:
    """The circularity of random embeddings, by the embedding dimension.

    Notes
    -----
    Normally distributed embeddings of p tokens are drawn in several dimensions d. The table "embeddings" has
    a row for each of them. The rules ask whether the mean and the maximum over frequencies rise with d.
    """
    setting = run.setting
    p, generator = setting.tokens, generator_of(run.seed(setting.seed))
    found = [circularity(generator.standard_normal((setting.count, p, d))) for d in setting.dims]
    rows = {
        "d": np.repeat(setting.dims, setting.count),
        "mean": np.concatenate([values.mean(axis=1) for values in found]),
        "maximum": np.concatenate([values.max(axis=1) for values in found]),
    }
    with charts.panels(5.6, 3.8) as (figure, ax):
        for name, color in (("maximum", palette.SECOND), ("mean", palette.FIRST)):
            values = [mean(where(rows, d=d)[name], CONFIDENCE) for d in setting.dims]
            charts.intervals(ax, setting.dims, values, color=color, label=f"{name} over frequencies")
        d = np.geomspace(setting.dims[0], setting.dims[-1], 50)
        ax.plot(d, d / (d + p - 2), color=palette.INK, linewidth=0.9, linestyle="--", label="d / (d + p - 2)")
        ax.set(xscale="log", xlabel="embedding dimension d", ylabel="circularity (Eq. 5)", ylim=(0, 1))
        ax.set_xticks(setting.dims, [str(d) for d in setting.dims])
        ax.minorticks_off()
        charts.legend_below(ax)
        ax.set_title(f"{setting.count} random embeddings, p = {p}")
    return Result({"embeddings": rows}, {"ding-11": figure})


# -- the right ----------------------------------------------------------------------------------------------


@recipe(
    "ding-11b", item="Figure 11, right; Appendix B",
    quick=Setting(size=training.QUICK, networks=6, audited=1, seed=0),
    paper_setting=Setting(size=training.PAPER, networks=340, audited=4, seed=111_000), source="Appendix B",
    cost="a quarter of an hour to an hour",
    rules=(
        Statement("survival",
            "inconclusive as to whether larger initial circularity implies a better chance of survival",
            "Pearson correlation of survival and initial circularity: none, by an equivalence margin of 0.1",
            measures.correlation("circles", "circularity", ALIVE, by="network"), least=-0.1, most=0.1,
            chance="shuffled survival makes it true: what would make it untrue is a correlation",
            counter=counters.replaced("circles", circularity="signal"),
            note=f"{training.BY_THE_RULE}; circularity and initial signal are correlated"),
    ),
)  # fmt: skip
def by_circularity(run: Run) -> Result:
    """How well the initial circularity of a frequency predicts its survival.

    Notes
    -----
    Most networks are trained only until their survivors are decided. The table "circles" has a row for each
    frequency of each network. The rule asks whether survival and initial circularity are uncorrelated.
    """
    setting = run.setting
    model, seed = setting.size.model, setting.seed

    def train_part(number: int, part: range) -> dict[str, Any]:
        own: dict[str, Any] = {"runs": len(part), "seed": run.seed(seed + number)}
        audited = 0 if number else setting.audited
        found = training.train_circles(model, steps=setting.size.steps, audited=audited, **own)
        start = circularity(draw(model, **own).parameters["embedding"])
        K = start.shape[1]
        ends = {name: values[:, None] for name, values in found.columns().items()}
        table = table_of(
            {"network": part, "frequency": range(K)}, circularity=start, signal=found.signals[:, 0],
            survived=found.survived, changed=found.changed, decided=ends["decided"], audited=ends["audited"],
        )  # fmt: skip
        return {name: values for name, values in table.items() if name != "frequency"}

    rows = joined(
        run.keep(f"networks-from-{part.start}", partial(train_part, number, part))
        for number, part in enumerate(training.parts_of(setting.networks, SHARD))
    )
    survived, start = rows["survived"], rows["circularity"]
    with charts.panels(9.6, 3.6, 1, 2) as (figure, (left, right)):
        edges = np.linspace(start.min(), start.max(), 31)
        charts.densities(left, start, survived, edges, "initial circularity (Eq. 5)")
        left.set_title(f"{setting.networks} networks")
        charts.survival(right, start, survived, rows["network"])
        right.axhline(survived.mean(), color=palette.SOFT, linestyle=":", linewidth=1)
        right.set(xlabel="initial circularity (Eq. 5)", ylabel="survival rate", ylim=(0, None))
        right.set_title("bins of equally many circles; dotted: all")
    return Result({"circles": rows}, {"ding-11b": figure})
