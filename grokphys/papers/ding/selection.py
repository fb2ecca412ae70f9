"""Ding et al., which circles survive: by signal (Figure 6), gradient (7) and circularity (11, right)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from analysis.circles.geometry import circularity
from analysis.circles.survival import RateBin, fitness, survival_rates
from analysis.plots.figures import style
from analysis.stats.intervals import clustered_proportion, correlation, proportion
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.ding.training import (
    DECAY,
    SIZES,
    Circles,
    Size,
    audit,
    columns,
    show_intervals,
    train_circles,
)
from grokphys.report import survival as ding_survival
from nets.engines.ensemble import draw
from nets.interventions import scale_frequency, with_signals
from nets.training import train

Array = NDArray[np.float64]
Row = dict[str, Any]
DEAD, ALIVE = "#0b6e99", "#d1603d"
EMBEDDINGS: dict[Budget, int] = {"quick": 3, "default": 10, "paper": 10}
TRIALS: dict[Budget, int] = {"quick": 6, "default": 8, "paper": 50}
"""Fresh layers and splits for each embedding; the paper has 10 embeddings and 50 trials each."""
ROUND: dict[Budget, int] = {"quick": 16, "default": 60, "paper": 500}
"""Embeddings of Figure 11, each trained once."""
AUDITED = 4
"""Embeddings of which one trial goes on to the end, to measure the error of the stopping rule."""
FACTORS: dict[Budget, Sequence[float]] = {
    "quick": (0.85, 1.15),
    "default": (0.85, 0.95, 1.05, 1.15),
    "paper": tuple(np.linspace(0.85, 1.15, 13).round(3)),
}
SCALED: dict[Budget, tuple[int, int]] = {"quick": (2, 6), "default": (3, 6), "paper": (5, 50)}
"""Embeddings, and trials for each of them and each factor."""
RATIOS: dict[Budget, Sequence[float]] = {
    "quick": (0.2, 0.6, 1.0),
    "default": (0.1, 0.4, 0.7, 1.0),
    "paper": tuple(np.linspace(0, 1, 11).round(2)),
}
PAIRS: dict[Budget, int] = {"quick": 4, "default": 6, "paper": 50}
"""Constructed pairs for each ratio, all trained to the end."""
EPSILON = 1e-6


@dataclass(frozen=True)
class Trials:
    """Networks of fresh layers and splits on each of some embeddings.

    Attributes
    ----------
    circles : list of Circles
        One for each embedding.
    backprop : ndarray, shape (embeddings, trials, K)
        Rate at step 4 at which the gradient of the loss alone would raise each signal.
    """

    circles: list[Circles]
    backprop: Array

    def pooled(self, at: int | None = None) -> Array:
        """Signals (embeddings · trials, K) at the start, or their change in step `at`."""
        signals = np.concatenate([one.signals for one in self.circles])
        return signals[:, 0] if at is None else signals[:, at] - signals[:, at - 1]

    @property
    def embedding(self) -> NDArray[np.int64]:
        """Which embedding each run (embeddings · trials,) has; the trials of one share its signals."""
        return np.repeat(np.arange(len(self.circles)), [len(one.counts) for one in self.circles])

    @property
    def survived(self) -> NDArray[np.bool_]:
        """Survivors (embeddings · trials, K)."""
        return np.concatenate([one.survived for one in self.circles])


def train_trials(budget: Budget) -> Trials:
    """Train every embedding with fresh layers and splits, once for Figures 6 and 7."""
    trials = _trials(SIZES[budget], EMBEDDINGS[budget], TRIALS[budget])
    print(
        f"  {SIZES[budget]};\n  {EMBEDDINGS[budget]} embeddings, {TRIALS[budget]} trials of fresh layers and "
        f"splits each (the paper: {EMBEDDINGS['paper']}, {TRIALS['paper']})"
    )
    print("  " + audit(trials.circles))
    return trials


@cache
def _trials(size: Size, embeddings: int, trials: int) -> Trials:
    found, rates = [], []
    for seed in range(embeddings):
        options: dict[str, Any] = {"runs": trials, "seed": seed, "shared": ("embedding",)}
        found.append(train_circles(size.model, steps=size.steps, audited=int(seed < AUDITED), **options))
        # The same runs once more, for four steps: gradients of all frames would not fit in memory.
        early = train(
            size.model, steps=4, weight_decay=DECAY, record=[4], observables=("gradient",), **options
        )
        E, G = (np.fft.rfft(x[:, 0], axis=1)[:, 1:] for x in (early.positions, early.observables["gradient"]))
        rates.append(-(E.conj() * G).real.sum(axis=2) / np.linalg.norm(E, axis=2))
    return Trials(found, np.array(rates))


# -- Figure 6 ----------------------------------------------------------------------------------------------


def initial_signals(out: Path, budget: Budget) -> list[Path]:
    """Figure 6: survival against the initial signal, of one scaled frequency, and of constructed pairs."""
    trials = train_trials(budget)
    rows: list[Row] = []
    with style():
        figure = Figure(figsize=(13.2, 3.8))
        left, middle, right = figure.subplots(1, 3)
        rows += _show_rates(left, trials)
        rows += _show_scaled(middle, budget)
        rows += _show_pairs(right, budget)
        picture = save_figure(figure, out / "ding-6.png")
    return [write_csv(out / "ding-6.csv", rows), picture]


def _show_rates(ax: Axes, trials: Trials) -> list[Row]:
    """Left: survival rate of every frequency of every embedding, and of bins of them."""
    signal = np.concatenate([one.signals[0, 0] for one in trials.circles])
    rate = np.concatenate([one.survived.mean(axis=0) for one in trials.circles])
    own = np.repeat(np.arange(len(trials.circles)), trials.circles[0].survived.shape[1])
    bins = survival_rates(trials.pooled(), trials.survived, groups=trials.embedding)
    ax.scatter(signal, rate, s=9, color="#b0b0b0", linewidths=0, label="one frequency of one embedding")
    show_intervals(ax, [b.value for b in bins], [b.rate for b in bins], color=ALIVE, label="bins of signals")
    found, count = correlation(signal, rate, own), len(trials.circles[0].counts)
    # The part of the variance of the rates that is not noise of so few trials.
    true = 1 - float(np.mean(rate * (1 - rate))) / (count - 1) / max(float(rate.var()), 1e-12)
    binned = correlation([b.value for b in bins], [b.rate.estimate for b in bins])
    of_each = np.repeat(trials.embedding, trials.survived.shape[1])
    each = correlation(trials.pooled().ravel(), trials.survived.ravel().astype(float), of_each)
    print(
        "  correlation of survival with the initial signal (the paper: 0.85): of the rates of "
        f"{found.count} frequencies {found.format(2)}, {found.estimate / max(true, 1e-12) ** 0.5:.2f} "
        f"without the noise of {count} trials; of {len(bins)} bins {binned.estimate:.2f}, of single "
        f"trials {each.format(2)}; intervals by leaving out embeddings, of which there are "
        f"{len(trials.circles)}"
    )
    ax.set(xlabel="initial signal ‖F_k‖", ylabel="survival rate", ylim=(-0.03, 1.03))
    ax.set_title(f"{len(trials.circles)} embeddings, {count} trials; r = {found.format(2)}", fontsize=9.5)
    ax.legend(loc="upper left")
    rows: list[Row] = [
        {"panel": "frequencies", "embedding": int(n), "x": float(x)}
        | columns("survival_rate", proportion(round(count * y), count))
        for n, x, y in zip(own, signal, rate, strict=True)
    ]
    return rows + [{"panel": "bins", "x": b.value} | columns("survival_rate", b.rate) for b in bins]


def _show_scaled(ax: Axes, budget: Budget) -> list[Row]:
    """Middle: survival of one frequency scaled by 0.85 … 1.15, against its deviation from the others."""
    size, factors = SIZES[budget], FACTORS[budget]
    embeddings, trials = SCALED[budget]
    rows: list[Row] = []
    found = []
    for n in range(embeddings):
        generator = np.random.default_rng(1000 + n)
        E = generator.standard_normal((size.tokens, size.dim))
        k = int(generator.integers(1, size.tokens // 2 + 1))
        starts = np.repeat([scale_frequency(E, k, factor) for factor in factors], trials, axis=0)
        one = train_circles(
            size.model,
            runs=len(starts),
            steps=size.steps,
            audited=1,
            seed=1000 + n,
            initial=starts,
        )
        found.append(one)
        signal = one.signals[::trials, 0]
        deviation = signal[:, k - 1] - np.delete(signal, k - 1, axis=1).mean(axis=1)
        alive = one.survived[:, k - 1].reshape(len(factors), trials).sum(axis=1)
        values = [proportion(int(a), trials) for a in alive]
        shown = deviation + 0.25 * (n - (embeddings - 1) / 2)  # so that bars do not hide each other
        show_intervals(ax, shown, values, color=f"C{n % 6}", label=f"embedding {n}, k = {k}", linewidth=1.1)
        rows += [
            {"panel": "scaled", "embedding": n, "frequency": k, "factor": factor, "x": float(x)}
            | columns("survival_rate", value)
            for factor, x, value in zip(factors, deviation, values, strict=True)
        ]
    ax.set(xlabel="‖F_k‖ - mean of the others", ylabel="survival rate of k", ylim=(-0.03, 1.03))
    ax.set_title(f"one frequency × {factors[0]} to {factors[-1]}, {trials} trials each", fontsize=9.5)
    ax.legend(loc="upper left")
    for factor in (factors[0], factors[-1]):
        alive = [round(r["survival_rate"] * r["count"]) for r in rows if r["factor"] == factor]
        rate = clustered_proportion(alive, [trials] * embeddings)
        print(
            f"  a frequency scaled by {factor} survives in {rate.format(0, 100)} % of {rate.count} trials of "
            f"{embeddings} embeddings"
        )
    print("  " + audit(found))
    return rows


def _show_pairs(ax: Axes, budget: Budget) -> list[Row]:
    """Right: survival of the larger and of the smaller of two frequencies, all others near zero."""
    size, ratios, count = SIZES[budget], RATIOS[budget], PAIRS[budget]
    generator = np.random.default_rng(2000)
    size_of_one = np.sqrt(size.tokens * size.dim)  # a typical signal of a drawn embedding
    runs = len(ratios) * count
    pairs = np.array([generator.choice(size.tokens // 2, 2, replace=False) for _ in range(runs)])
    signals = np.full((runs, size.tokens // 2), EPSILON)
    rows_of = np.arange(runs)
    signals[rows_of, pairs[:, 0]] = size_of_one
    signals[rows_of, pairs[:, 1]] = np.maximum(np.repeat(ratios, count) * size_of_one, EPSILON)
    starts = with_signals(generator.standard_normal((runs, size.tokens, size.dim)), signals)
    options: dict[str, Any] = {"seed": 2000, "initial": starts}
    # All go on to the end: circles come back late, when the rule has long found the pair decided.
    one = train_circles(size.model, runs=runs, steps=size.steps, audited=runs, **options)
    others = one.survived.copy()
    others[rows_of[:, None], pairs] = False
    cases = {
        "larger": one.survived[rows_of, pairs[:, 0]],
        "smaller": one.survived[rows_of, pairs[:, 1]],
        "any other, revived": others.any(axis=1),
    }
    rows: list[Row] = []
    for n, (name, alive) in enumerate(cases.items()):
        values = [proportion(int(part.sum()), count) for part in alive.reshape(-1, count)]
        look: Any = {"linestyle": ":"} if n == 2 else {}
        show_intervals(ax, np.array(ratios) + 0.008 * (n - 1), values, color=f"C{n}", label=name, **look)
        rows += [
            {"panel": "pair", "which": name, "x": ratio} | columns("survival_rate", value)
            for ratio, value in zip(ratios, values, strict=True)
        ]
        print(
            f"  constructed pairs, {name}: survives in {proportion(int(alive.sum()), runs).format(0, 100)} %"
        )
    ax.set(xlabel="r, ratio of the two signals", ylabel="survival rate", ylim=(-0.03, 1.03))
    ax.set_title(f"all others at {EPSILON:g}; {count} pairs each", fontsize=9.5)
    ax.legend(loc="best")
    print("  here all runs go on to the end; had they not: " + audit([one]))
    return rows


# -- Figure 7 ----------------------------------------------------------------------------------------------


def initial_gradients(out: Path, budget: Budget) -> list[Path]:
    """Figure 7: survival against the gradient at steps 1 to 4, with the signal: SVM and logistic model."""
    trials = train_trials(budget)
    signal, survived = trials.pooled(), trials.survived
    backprop = trials.backprop.reshape(survived.shape)
    kinds = {"change of the signal": trials.pooled(at=4), "backpropagated gradient": backprop}
    rows: list[Row] = []
    fitted: list[Row] = []
    for name, gradient in kinds.items():
        print(f"  gradient at step 4 as the {name} (the paper's SVM, in sample: 83.8 %):")
        found = fitness(signal, gradient, survived, trials.embedding)
        print(ding_survival.fitness_table(found).text())
        fitted += [
            {"gradient": name, "model": model, "majority": found.majority, "embeddings": found.groups}
            | columns("in_sample", one.in_sample)
            | columns("accuracy", one.left_out)
            for model, one in (("linear SVM", found.svm), ("logistic", found.logistic))
        ]
    with style():
        figure = Figure(figsize=(13.2, 3.8))
        left, middle, right = figure.subplots(1, 3)
        rows += _show_histogram(left, trials.pooled(at=4), survived)
        for step in range(1, 5):
            bins = survival_rates(trials.pooled(at=step), survived, groups=trials.embedding)
            show_intervals(
                middle,
                [b.value for b in bins],
                [b.rate for b in bins],
                color=f"C{step - 1}",
                label=f"step {step}",
                linewidth=1.1,
            )
            rows += [_bin_row(step, b) for b in bins]
        middle.set(xlabel="change of ‖F_k‖ in that step", ylabel="survival rate", ylim=(0, None))
        middle.set_title("bins of equally many circles", fontsize=9.5)
        middle.legend(loc="upper left")
        _show_plane(right, signal, trials.pooled(at=4), survived)
        picture = save_figure(figure, out / "ding-7.png")
    return [write_csv(out / "ding-7.csv", rows), write_csv(out / "ding-7-fitness.csv", fitted), picture]


def _bin_row(step: int, b: RateBin) -> Row:
    row: Row = {"panel": "rates", "step": step, "low": b.low, "high": b.high, "x": b.value}
    return row | columns("survival_rate", b.rate)


def _show_histogram(ax: Axes, gradient: Array, survived: NDArray[np.bool_]) -> list[Row]:
    edges = np.histogram_bin_edges(gradient, 40).tolist()
    rows: list[Row] = []
    for alive, color, name in ((False, DEAD, "dead"), (True, ALIVE, "survived")):
        values = gradient[survived == alive]
        ax.hist(values, edges, color=color, alpha=0.55, density=True, label=f"{name} ({len(values)})")
        counted = np.histogram(values, edges)[0]
        rows += [
            {"panel": "histogram", "which": name, "low": float(a), "high": float(b), "count": int(n)}
            for a, b, n in zip(edges[:-1], edges[1:], counted, strict=True)
        ]
    ax.set(xlabel="change of ‖F_k‖ in step 4", ylabel="density")
    ax.set_title("gradient at step 4", fontsize=9.5)
    ax.set_ylim(0, 1.2 * ax.get_ylim()[1])  # room for the legend
    ax.legend(loc="upper left")
    return rows


def _show_plane(ax: Axes, signal: Array, gradient: Array, survived: NDArray[np.bool_]) -> None:
    """Right: all circles by initial signal and gradient, and the line of a balanced linear SVM."""
    for alive, color in ((False, DEAD), (True, ALIVE)):
        here = survived == alive
        ax.scatter(signal[here], gradient[here], s=5, color=color, alpha=0.5, linewidths=0)
    X = np.stack([signal.ravel(), gradient.ravel()], axis=1)
    centre, width = X.mean(axis=0), X.std(axis=0)
    svm = LinearSVC(class_weight="balanced", random_state=0).fit((X - centre) / width, survived.ravel())
    weights = svm.coef_[0] / width
    x = np.array([signal.min(), signal.max()])
    limits = ax.get_ylim()
    line = centre[1] - (svm.intercept_[0] + weights[0] * (x - centre[0])) / weights[1]
    ax.plot(x, line, color="#222222", linewidth=1, linestyle="--", label="linear SVM, classes balanced")
    ax.set(xlabel="initial signal ‖F_k‖", ylabel="change of ‖F_k‖ in step 4", ylim=limits)
    ax.legend(loc="upper left")


def by_circularity(out: Path, budget: Budget) -> list[Path]:
    """Figure 11, right: survival against the circularity of the initial embedding (Appendix B)."""
    size, runs = SIZES[budget], ROUND[budget]
    circles = train_circles(size.model, runs=runs, steps=size.steps)
    start = circularity(draw(size.model, runs=runs, seed=0).parameters["embedding"])
    run = np.arange(runs)
    bins = survival_rates(start, circles.survived, groups=run)
    found = correlation(start.ravel(), circles.survived.ravel(), np.repeat(run, start.shape[1]))
    with style():
        figure = Figure(figsize=(9.6, 3.6))
        left, right = figure.subplots(1, 2)
        edges = np.linspace(start.min(), start.max(), 31)
        for state, color, chosen in (
            ("dead", DEAD, ~circles.survived),
            ("survived", ALIVE, circles.survived),
        ):
            if chosen.any():  # an empty histogram has no density
                label = f"{state} ({chosen.sum()})"
                left.hist(start[chosen], edges, density=True, alpha=0.55, color=color, label=label)
        left.set(xlabel="initial circularity (Eq. 5)", ylabel="density", title=f"{runs} runs")
        left.legend()
        show_intervals(right, [b.value for b in bins], [b.rate for b in bins], color=ALIVE)
        right.axhline(circles.survived.mean(), color="#555555", linestyle=":", linewidth=1)
        right.set(xlabel="initial circularity (Eq. 5)", ylabel="survival rate", ylim=(0, None))
        right.set_title("bins of equally many circles; dotted: all")
        picture = save_figure(figure, out / "ding-11b.png")
    print(f"  {size}; {runs} runs")
    print(f"  correlation of survival with circularity {found.format(2)} (the paper: inconclusive)")
    rows: list[Row] = [{"circularity": b.value, **columns("rate", b.rate)} for b in bins]
    return [write_csv(out / "ding-11b.csv", rows), picture]
