"""What Ding's Figures 6 to 13 show, read back from the axes, of trainings that are made up."""

from types import SimpleNamespace

import numpy as np
import pytest
from pictures import areas, bars, intervals, lines, title

from analysis.circles.fourier import fourier_signals
from analysis.circles.geometry import circularity
from analysis.circles.prediction import survival_rates
from analysis.stats.intervals import clustered_proportion, mean, proportion
from grokphys.papers.ding import (
    figure_06,
    figure_07,
    figure_08,
    figure_09,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    trials,
)
from grokphys.papers.ding.training import Circles, Size
from grokphys.papers.evidence import share
from grokphys.papers.judge import judge
from grokphys.papers.recipe import RECIPES, Run

TINY = Size(11, 12, 30)
ALIVE = np.array([0, 0, 1, 0, 1], bool)


# -- Figures 6 and 7 ----------------------------------------------------------------------------------------


def circles_of(survived, seed=3):
    """Three embeddings, three trials each, of five circles; the signal is that of the embedding."""
    rng = np.random.default_rng(seed)
    signal = np.repeat(rng.uniform(5, 15, (3, 1, 5)), 3, axis=1)
    rows = {"embedding": np.repeat(range(3), 15), "trial": np.tile(np.repeat(range(3), 5), 3),
            "frequency": np.tile(range(1, 6), 9), "signal": signal.ravel(), "survived": survived}  # fmt: skip
    return rows | {f"change_{n}": rng.normal(-1, 1, 45) for n in range(1, 5)}


def some():
    return np.random.default_rng(4).random(45) < 0.4


def test_figure_6_shows_the_rate_of_each_frequency_of_each_embedding():
    rows = circles_of(some())
    (ax,) = figure_06._draw_signals(trials.Trials(TINY, 3, 3), {"circles": rows})["ding-6"].get_axes()
    signal, rate = rows["signal"].reshape(3, 3, 5), rows["survived"].reshape(3, 3, 5).mean(axis=1)
    expected = np.stack([signal[:, 0].ravel(), rate.ravel()], axis=1)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), expected)
    found = bars(ax)["bins"]
    bins = survival_rates(rows["signal"], rows["survived"], groups=rows["embedding"])
    np.testing.assert_allclose(found[0], [one.value for one in bins])
    np.testing.assert_allclose(found[1:], intervals([one.rate for one in bins]))
    found = figure_06._correlation({"circles": rows}, 0.95)
    assert found.estimate == pytest.approx(np.corrcoef(expected.T)[0, 1])
    assert found.count == 3


def test_figure_6_shows_scaled_frequencies_over_their_distance_from_the_others(monkeypatch):
    def scale_one(setting, number):
        return {
            "embedding": np.full(6, number), "frequency": np.full(6, 2), "factor": np.repeat([0.5, 2.0], 3),
            "deviation": np.repeat([-12.0, 10.0], 3) + number,
            "survived": np.array([0, 0, 1, 1, 1, number], bool),
        }  # fmt: skip

    monkeypatch.setattr(figure_06, "_scale_one", scale_one)
    result = figure_06.scaled(Run(figure_06.Scaled(TINY, 2, (0.5, 2.0), 3), "quick"))
    (ax,) = result.figures["ding-6b"].get_axes()
    (dots,) = ax.collections[:1]
    np.testing.assert_allclose(dots.get_offsets(), [[-12, 1 / 3], [10, 2 / 3], [-11, 1 / 3], [11, 1]])
    rows = result.columns()["runs"]
    bins = survival_rates(rows["deviation"][:, None], rows["survived"][:, None], groups=rows["embedding"])
    found = bars(ax)["bins"]
    np.testing.assert_allclose(found[1:], intervals([one.rate for one in bins]))
    tables = {"runs": rows}
    assert figure_06._survives(1)(tables, 0.95) == share([1, 1, 0, 1, 1, 1], 0.95, groups=[0, 0, 0, 1, 1, 1])
    assert figure_06._survives(-1)(tables, 0.95) == share([0, 0, 1, 0, 0, 1], 0.95, groups=[0, 0, 0, 1, 1, 1])
    rows["deviation"][:3] = -9.9
    assert figure_06._survives(-1)(tables, 0.95).estimate == pytest.approx(1 / 3), "one embedding is left"
    assert figure_06._survives(-1)(tables, 0.95).count == 1


def test_figure_6_shows_survival_of_pairs_over_their_ratio(monkeypatch):
    alive = {"larger": [1, 1, 1, 1, 0, 1], "smaller": [0, 0, 1, 0, 1, 1], "revived": [1, 1, 0, 0, 1, 0]}

    def train_pairs(setting, part):
        (number,) = part
        own = slice(2 * number, 2 * number + 2)
        return {"ratio": np.full(2, setting.ratios[number])} | {
            k: np.array(v[own], bool) for k, v in alive.items()
        }

    monkeypatch.setattr(figure_06, "_train_pairs", train_pairs)
    monkeypatch.setattr(figure_06, "RATIOS", (1, 1))
    result = figure_06.pairs(Run(figure_06.Pairs(TINY, (0.1, 0.5, 1.0), 2), "quick"))
    found = bars(result.figures["ding-6c"].get_axes()[0])
    assert list(found) == ["the larger", "the smaller", "any other, revived"]
    for one, values in zip(found.values(), alive.values(), strict=True):
        np.testing.assert_allclose(one[0], [0.1, 0.5, 1.0], atol=0.02)
        counts = np.reshape(values, (3, 2)).sum(axis=1)
        np.testing.assert_allclose(one[1:], intervals([proportion(int(n), 2) for n in counts]))


def test_figure_7_shows_rates_over_the_change_of_each_step_and_a_line_between_the_classes():
    rows = circles_of(some())
    rows["change_4"] += 2.0 * rows["survived"]
    figure = figure_07._draw_gradients(trials.Trials(TINY, 3, 3), {"circles": rows})["ding-7"]
    left, middle, right = figure.get_axes()
    survived, change = rows["survived"], rows["change_4"]
    labels = left.get_legend_handles_labels()[1]
    for one, alive, label in zip(left.containers, (False, True), labels, strict=True):
        edges = [bar.get_x() for bar in one]
        assert edges[0] == pytest.approx(change.min())
        values = change[survived == alive]
        heights = np.array([bar.get_height() for bar in one])
        width = (change.max() - change.min()) / 40
        np.testing.assert_allclose(
            heights * width * len(values), np.histogram(values, 40, (change.min(), change.max()))[0]
        )
        assert label == f"{'survived' if alive else 'dead'} ({len(values)})"
    found = bars(middle)
    for step in range(1, 5):
        bins = survival_rates(rows[f"change_{step}"], survived, groups=rows["embedding"])
        np.testing.assert_allclose(found[f"step {step}"][0], [one.value for one in bins])
        np.testing.assert_allclose(found[f"step {step}"][1:], intervals([one.rate for one in bins]))
    for cloud, alive in zip(right.collections, (False, True), strict=True):
        expected = np.stack([rows["signal"], change], axis=1)[survived == alive]
        np.testing.assert_allclose(cloud.get_offsets(), expected)
    # The line is where the machine does not decide.
    x, y = right.lines[0].get_data()
    X = np.stack([rows["signal"], change], axis=1)
    machine = figure_07._machine(balanced=True).fit(X, survived)
    np.testing.assert_allclose(machine.decision_function(np.stack([x, y], axis=1)), 0, atol=1e-9)
    assert x.tolist() == [rows["signal"].min(), rows["signal"].max()]


@pytest.mark.parametrize("alive", [False, True])
def test_figures_6_and_7_of_trials_in_which_nothing_or_everything_survives(alive):
    tables = {"circles": circles_of(np.full(45, alive))}
    for module, draw in ((figure_06, "_draw_signals"), (figure_07, "_draw_gradients")):
        (figure,) = getattr(module, draw)(trials.Trials(TINY, 3, 3), tables).values()
        rates = [found[1] for found in bars(figure.get_axes()[module is figure_07]).values()]
        assert {rate for one in rates for rate in one} == {float(alive)}
    left, _, right = figure.get_axes()
    assert left.get_legend_handles_labels()[1] == ["survived (45)" if alive else "dead (45)"]
    assert not right.lines, "there is no boundary of a single class"
    verdicts = {claim.rule.name: claim.verdict for claim in judge(RECIPES["ding-7"].rules, tables)}
    assert {verdict for name, verdict in verdicts.items() if name != "left"} == {"inconclusive"}


def test_rules_of_figure_7_fit_a_machine_to_the_other_embeddings():
    rows = circles_of(some())
    rows["change_4"] += 1.0 * rows["survived"]
    tables = {"circles": rows}
    fallen = np.bincount(rows["embedding"], rows["change_4"] < 0)
    assert figure_07._decrease(tables, 0.95).estimate == pytest.approx(fallen.sum() / 45)
    expected = clustered_proportion(fallen, np.full(3, 15), 0.95)
    assert figure_07._decrease(tables, 0.95).low == pytest.approx(expected.low)
    assert figure_07._rises(tables, 0.95).estimate == pytest.approx(
        np.corrcoef(rows["change_4"], rows["survived"])[0, 1]
    )
    assert figure_07._rises(tables, 0.95).count == 3
    X = np.stack([rows["signal"], rows["change_4"]], axis=1)
    y, groups, areas_ = rows["survived"], rows["embedding"], []
    for n in range(3):
        out = groups == n
        score = figure_07._machine().fit(X[~out], y[~out]).decision_function(X[out])
        pairs = score[y[out]][:, None] - score[~y[out]]
        areas_.append(np.mean(pairs > 0) + np.mean(pairs == 0) / 2)
    found = figure_07._area_left_out(tables, 0.95)
    assert (found.estimate, found.low) == pytest.approx((mean(areas_).estimate, mean(areas_).low))
    right = figure_07._machine().fit(X, y).predict(X) == y
    assert figure_07._accuracy(tables, 0.95).estimate == pytest.approx(100 * right.mean())


# -- Figures 8 to 13 ---------------------------------------------------------------------------------------


def test_figure_8_shows_medians_and_ranges_of_the_strongest_sets_after_the_first_frame():
    rng = np.random.default_rng(5)
    rows = [
        (network, step, kept, rng.uniform(0.1, 5))
        for network in range(3)
        for step in (0, 1, 10, 30)
        for kept in range(4)
        if kept < 3 or network
    ]
    names = ("network", "step", "kept", "test_loss")
    curves = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    axes = figure_08._draw(figure_08.Kept(TINY, "", 3, 0), {"curves": curves})["ding-8"].get_axes()
    strongest = {
        1: "the strongest alone (3)",
        2: "the 2 strongest alone (3)",
        3: "the 3 strongest alone (2)",  # one network has just two
    }
    titles = ["1 kept", "2 kept, where at least 2 survive", "3 kept, where at least 3 survive"]
    assert [title(ax) for ax in axes] == titles
    for count, ax in enumerate(axes, 1):
        for label, kept, band in zip(
            ("all frequencies (3)", strongest[count]), (0, count), areas(ax), strict=True
        ):
            own = curves["kept"] == kept
            losses = [curves["test_loss"][own & (curves["step"] == step)] for step in (1, 10, 30)]
            assert lines(ax)[label] == ([1, 10, 30], [float(np.median(one)) for one in losses])
            np.testing.assert_allclose(band, [[min(one) for one in losses], [max(one) for one in losses]])
        assert ax.lines[-1].get_ydata()[0] == pytest.approx(np.log(11)), "guessing"
        assert ax.get_legend().get_title().get_text() == "median and range (networks)"


def fits(monkeypatch, laws, count=3):
    x = np.exp(np.random.default_rng(6).normal(0, 0.02, (count, 25, 5)).cumsum(axis=1)) * [9, 5, 4, 3, 2]
    x[:, -1, 0] *= 4
    table = {
        "law": np.repeat(laws, 4),
        "d": np.tile([4, 4, 12, 12], len(laws)),
        "r2": np.arange(4.0 * len(laws)) ** 2,
    }
    monkeypatch.setattr(figure_09, "fit_networks", lambda run: (table, x))
    return table, x


@pytest.mark.filterwarnings("ignore:alpha = 0.01 leaves no coefficient", "ignore:Objective did not converge")
def test_figure_9_shows_the_strongest_survivor_and_the_dead_one_that_began_strongest(monkeypatch):
    laws = (figure_09.LINEAR, figure_09.LASSO, figure_09.SOLVED, figure_09.QUADRATIC)
    _, x = fits(monkeypatch, laws)
    figure = figure_09.equations(Run(figure_09.Fits(11, (12,), 3, 0, laws), "quick")).figures["ding-9"]
    for ax, k, state in zip(figure.get_axes(), (1, 0), ("dead", "survives"), strict=False):
        assert title(ax) == f"frequency {k + 1}, {state}"
        drawn = lines(ax)
        assert drawn["original"][1] == x[0, :, k].tolist()
        for name in laws:
            law = figure_09.law_of(name, x[0])
            path = figure_09.path_of(name, law, x[0])[:, k]
            np.testing.assert_allclose(
                drawn[figure_09.WORDS.get(name, name)][1],
                np.clip(np.nan_to_num(path, posinf=1e9), -1e9, 1e9) if name == figure_09.QUADRATIC else path,
            )
        assert ax.get_ylim() == pytest.approx((0, 1.05 * x[0, :, k].max()))


def test_figure_9a_shows_the_fit_over_the_dimension(monkeypatch):
    laws = (figure_09.LINEAR, figure_09.LASSO)
    fits(monkeypatch, laws)
    made = figure_09.fits_by_size(Run(figure_09.Fits(11, (4, 12), 2, 0, laws), "quick"))
    (ax,) = made.figures["ding-9a"].get_axes()
    for name, found in bars(ax).items():
        own = np.arange(4.0) + 4 * laws.index(name)
        assert found[0].tolist() == [4, 12]
        np.testing.assert_allclose(found[1:], intervals([mean(own[:2] ** 2), mean(own[2:] ** 2)]))


@pytest.mark.filterwarnings("ignore:alpha = 0.01 leaves no coefficient", "ignore:Objective did not converge")
def test_figures_15_and_16_show_a_matrix_of_each_network_and_each_signal_of_the_first(monkeypatch):
    laws = (figure_09.LINEAR, figure_09.LASSO)
    _, x = fits(monkeypatch, laws)
    run = Run(figure_09.Fits(11, (12,), 3, 0, laws), "quick")
    axes = figure_09.three_fits(run).figures["ding-15"].get_axes()
    for n in range(3):
        A = figure_09.law_of(figure_09.LASSO, x[n]).A
        np.testing.assert_allclose(np.asarray(axes[n].images[0].get_array()), A)
        assert title(axes[n]).startswith(f"network {n}, Lasso: {np.count_nonzero(A)} of 25")
    axes = figure_09.all_trajectories(run).figures["ding-16"].get_axes()
    for k in range(5):
        drawn = lines(axes[k])
        assert drawn["original"][1] == x[0, :, k].tolist()
        for name in laws:
            path = figure_09.path_of(name, figure_09.law_of(name, x[0]), x[0])
            np.testing.assert_allclose(drawn[name][1], path[:, k])
        (number,) = axes[k].texts
        assert number.get_text() == str(k + 1)
        assert (number.get_weight() == "bold") == (k == 0)
    assert not axes[5].axison
    assert axes[0].get_ylim()[1] == pytest.approx(1.05 * x[0].max())


def test_figure_10_shows_both_counts_and_the_accuracy_over_the_decay(monkeypatch):
    rng, made = np.random.default_rng(7), {}

    def train(model, *, weight_decay, **options):
        (weight_decay,) = {*weight_decay}
        E = rng.normal(size=(3, 11, 12)) * 8
        accuracy = rng.uniform(size=(3, 2))
        made[weight_decay] = E, accuracy, options
        return SimpleNamespace(final=E, observables={"validation_accuracy": accuracy})

    monkeypatch.setattr(figure_10, "train", train)
    monkeypatch.setattr(figure_10, "PIECE", (3, 3))
    decays = (0.0, 0.5, 2.0)
    result = figure_10.by_decay(Run(figure_10.Decays(TINY, decays, 3, 4), "quick"))
    assert [made[decay][2]["seed"] for decay in decays] == [4, 4, 4]
    assert [made[decay][2]["first_run"] for decay in decays] == [0, 3, 6]
    assert made[0.5][2]["record"] == [30]
    left, right = result.figures["ding-10"].get_axes()
    signals = {decay: fourier_signals(made[decay][0]) for decay in decays}
    for ax, label, most, of in (
        (
            left,
            "above a third of the largest",
            5,
            lambda d: (signals[d] > signals[d].max(axis=1, keepdims=True) / 3).sum(axis=1),
        ),
        (
            left,
            "above twice the mean",
            5,
            lambda d: (signals[d] > 2 * signals[d].mean(axis=1, keepdims=True)).sum(axis=1),
        ),
        (right, "test accuracy", 1, lambda d: made[d][1][:, -1]),
    ):
        found = bars(ax)[label]
        assert found[0].tolist() == list(decays)
        np.testing.assert_allclose(found[1:], intervals([mean(of(d)).within(0, most) for d in decays]))


def test_figure_11_shows_means_and_maxima_of_random_embeddings_over_their_dimension():
    made = figure_11.initial_circularity(Run(figure_11.Embeddings(11, (2, 8), 4, 3), "quick"))
    rows = made.columns()["embeddings"]
    generator = np.random.default_rng(0)
    assert rows["d"].tolist() == [2] * 4 + [8] * 4
    (ax,) = made.figures["ding-11"].get_axes()
    for name in ("mean", "maximum"):
        found = bars(ax)[f"{name} over frequencies"]
        assert found[0].tolist() == [2, 8]
        np.testing.assert_allclose(found[1:], intervals([mean(rows[name][:4]), mean(rows[name][4:])]))
    x, y = lines(ax)["d / (d + p - 2)"]
    assert (x[0], x[-1]) == pytest.approx((2, 8))
    np.testing.assert_allclose(y, np.array(x) / (np.array(x) + 9))
    # What the curve says is true: circularity is Beta distributed for normal numbers.
    E = generator.standard_normal((4000, 11, 8))
    assert circularity(E).mean() == pytest.approx(8 / 17, abs=0.01)


def test_figure_11_shows_survival_over_circularity(monkeypatch):
    alive, rng = np.random.default_rng(8).random((4, 5)) < 0.4, np.random.default_rng(9)

    def train_circles(model, *, steps, audited, runs, seed):
        signals = np.repeat(rng.uniform(1, 2, (runs, 1, 5)), 4, axis=1)
        signals[:, -1] = np.where(alive, 60, 1)
        return Circles(np.array([0, 10, 20, 30]), signals, audited)

    monkeypatch.setattr(figure_11, "train_circles", train_circles)
    monkeypatch.setattr(Circles, "survived", property(lambda self: alive))
    made = figure_11.by_circularity(Run(figure_11.Survivors(TINY, 4, 1, 7), "quick"))
    rows = made.columns()["circles"]
    assert rows["survived"].tolist() == alive.ravel().tolist()
    assert rows["audited"].tolist() == [True] * 5 + [False] * 15
    left, right = made.figures["ding-11b"].get_axes()
    start = rows["circularity"]
    limits = (start.min(), start.max())
    assert left.get_legend_handles_labels()[1] == [f"dead ({(~alive).sum()})", f"survived ({alive.sum()})"]
    for one, chosen in zip(left.containers, (~alive.ravel(), alive.ravel()), strict=True):
        heights = np.array([bar.get_height() for bar in one]) * np.ptp(limits) / 30 * chosen.sum()
        np.testing.assert_allclose(heights, np.histogram(start[chosen], 30, limits)[0], atol=1e-9)
    (found,) = bars(right).values()
    bins = survival_rates(start, rows["survived"], groups=rows["network"])
    np.testing.assert_allclose(found[0], [one.value for one in bins])
    np.testing.assert_allclose(found[1:], intervals([one.rate for one in bins]))
    assert right.lines[-1].get_ydata()[0] == pytest.approx(alive.mean())


def test_figure_12_shows_the_first_network_and_the_median_of_all_for_each_start():
    rng = np.random.default_rng(10)
    names = (figure_12.ALL, figure_12.LARGEST, figure_12.TWO, figure_12.RANDOM, figure_12.TWO_RANDOM)
    steps = np.tile([0, 10, 20], (3, 1))
    found = {name: {"steps": steps, "losses": rng.uniform(0.1, 3, (3, 3))} for name in names}
    left, right = figure_12._show(found).get_axes()
    for ax, own in ((left, names[:3]), (right, (names[0], *names[3:]))):
        assert list(lines(ax)) == list(own)
        dotted = [line for line in ax.lines if line.get_label().startswith("_")]
        for name, median in zip(own, dotted, strict=True):
            losses = found[name]["losses"]
            assert lines(ax)[name] == ([0, 10, 20], losses[0].tolist())
            assert median.get_linestyle() == ":"
            assert median.get_ydata().tolist() == np.median(losses, axis=0).tolist()


def test_figure_13_shows_all_steps_and_those_from_100_to_1000():
    steps = np.array([0, 50, 100, 500, 1000, 1200])
    slopes = np.random.default_rng(11).uniform(size=(6, 5))
    rows = {"step": steps, "slopes": slopes, "alive": np.tile(ALIVE, (6, 1))}
    for ax, own in zip(figure_13._show(rows).get_axes(), (slice(None), slice(2, 5)), strict=True):
        assert lines(ax) == {f"k = {k + 1}": (steps[own].tolist(), slopes[own, k].tolist()) for k in (2, 4)}
        dead = [line.get_ydata().tolist() for line in ax.lines if line.get_label().startswith("_")]
        assert dead == [slopes[own, k].tolist() for k in (0, 1, 3)]
