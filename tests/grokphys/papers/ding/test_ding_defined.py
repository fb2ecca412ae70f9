"""What stands in Ding's tables, and what their rules measure, from the definition."""

from types import SimpleNamespace

import numpy as np
import pytest

import analysis
import nets
from analysis.circles.fourier import fourier_signals
from analysis.stats.intervals import mean, proportion
from grokphys.papers.ding import figure_02, figure_04, figure_05, figure_10, figure_12, figure_13
from grokphys.papers.ding.training import Size, parts_of
from grokphys.papers.recipe import Run
from nets.engines.ensemble import draw

TINY = Size(11, 12, 30)
STARTS = (figure_12.ALL, figure_12.LARGEST, figure_12.TWO, figure_12.RANDOM, figure_12.TWO_RANDOM)


def stronger(signals, **_):
    """Stands for the survivors of small networks, in which nothing dies."""
    return signals > np.median(signals, axis=-1, keepdims=True)


def trained(**options):
    return nets.train(TINY.model, steps=TINY.steps, weight_decay=0.5, **options)


def test_a_row_of_figure_2_is_a_frequency_at_the_start_and_at_the_end(monkeypatch):
    monkeypatch.setattr(figure_02, "survives", stronger)
    made = figure_02.signals(Run(figure_02.Whole(TINY, (0, 10, 99), 2, 7), "quick")).columns()["circles"]
    networks = trained(runs=2, seed=7)
    first, last = fourier_signals(networks.initial), fourier_signals(networks.final)
    assert made["network"].tolist() == [0] * 5 + [1] * 5
    assert made["frequency"].tolist() == [1, 2, 3, 4, 5] * 2
    np.testing.assert_allclose(made["first"], first.ravel(), rtol=1e-6)
    np.testing.assert_allclose(made["last"], last.ravel(), rtol=1e-6)
    assert made["survived"].tolist() == stronger(last).ravel().tolist()
    np.testing.assert_allclose(made["circularity"], analysis.circularity(networks.final).ravel(), rtol=1e-5)


def test_gradients_are_those_of_each_network_whatever_was_trained_together(monkeypatch):
    monkeypatch.setattr(figure_13, "PIECE", (1, 1))
    made = figure_13.gradients(Run(figure_13.Gradients(TINY, "10:20,10", 2, 9), "quick")).columns()[
        "gradients"
    ]
    networks = trained(runs=2, seed=9, record=10, observables=("gradient",))
    slopes = fourier_signals(networks.observables["gradient"])
    assert made["network"].tolist() == [0] * 4 + [1] * 4
    assert made["step"].tolist() == [0, 10, 20, 30] * 2
    np.testing.assert_allclose(made["largest"], slopes.max(axis=2).ravel(), rtol=1e-5)
    np.testing.assert_allclose(made["mean"], slopes.mean(axis=2).ravel(), rtol=1e-5)


def test_networks_of_each_decay_are_counted_by_their_largest_signal(monkeypatch):
    monkeypatch.setattr(figure_10, "survives", stronger)
    monkeypatch.setattr(figure_10, "PART", 0.9)
    setting = figure_10.Decays(TINY, (0.0, 0.5), 2, 3)
    made = figure_10.by_decay(Run(setting, "quick")).columns()["networks"]
    networks = trained(runs=2, seed=3, first_run=2)
    own = made["weight_decay"] == 0.5
    signals = fourier_signals(networks.final)
    counts = [sum(s > 0.9 * max(each) for s in each) for each in signals.tolist()]
    assert made["circles"][own].tolist() == counts
    assert 0 < min(counts) <= max(counts) < 5
    assert made["above_twice_mean"][own].tolist() == [2, 2]
    assert made["frequencies"].tolist() == [5] * 4
    assert made["network"].tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(made["accuracy"][own], networks.observables["validation_accuracy"][:, -1])


def test_rules_of_figure_2_on_three_networks():
    rows = {
        "network": np.repeat([0, 1, 2], 3), "survived": np.array([1, 0, 0, 1, 1, 0, 0, 0, 0], bool),
        "first": np.array([3.0, 2, 1, 1, 2, 3, 1, 2, 3]), "last": np.array([90.0, 9, 1, 40, 80, 4, 1, 1, 2]),
        "circularity": np.array([0.9, 0.1, 0.2, 0.8, 0.6, 0.3, 0.1, 0.1, 0.1]),
    }  # fmt: skip
    tables = {"circles": rows}
    assert figure_02._apart(tables, 0.95) == mean([1.0, 1.0]), "of the last network none survives"
    assert figure_02._strongest_dies(tables, 0.95) == proportion(2, 3)
    assert figure_02._round(tables, 0.95).estimate == pytest.approx((0.9 + 0.7) / 2)


def test_rules_of_figure_13_on_two_networks():
    step = np.array([0, 50, 100, 200, 500, 1000, 1200, 1400])
    largest = np.array([[9.0, 5, 3, 1, 8, 2, 0.5, 0.7], [1.0, 2, 8, 2, 3, 4, 0.2, 0.4]])
    rows = {"network": np.repeat([0, 1], 8), "step": np.tile(step, 2), "largest": largest.ravel()}
    assert figure_13._peak({"gradients": rows}, 0.95) == mean([0, 100])
    found, expected = figure_13._late({"gradients": rows}, 0.95), mean([0.6 / 3, 0.3 / 4])
    assert (found.estimate, found.low) == pytest.approx((expected.estimate, expected.low))


def test_rules_of_figure_10_on_a_few_networks():
    decay = np.repeat([0.0, 0.1, 1.0, 2.0], 3)
    circles = np.array([29, 29, 28, 20, 22, 21, 6, 5, 7, 5, 6, 4.0])
    rows = {"weight_decay": decay, "circles": circles, "network": np.tile(range(3), 4),
            "frequencies": np.full(12, 29), "accuracy": np.linspace(0.5, 1, 12)}  # fmt: skip
    tables, means = {"networks": rows}, circles.reshape(4, 3).mean(axis=1)
    assert figure_10._all_survive(tables, 0.95) == mean(circles[:3] / 29)
    assert figure_10._generalizes(tables, 0.95) == mean(rows["accuracy"][:3])
    part = (means[1] - means[2]) / (means[0] - means[3])
    assert figure_10._largest_drop(tables, 0.95).estimate == pytest.approx(part)
    assert figure_10._drops(tables, 0.95).estimate < -0.7


def test_networks_of_figure_12_begin_with_the_winners_or_with_others_and_are_counted_by_these(monkeypatch):
    """Trainings are made up: each ends somewhere, with a loss that goes below 0.01 or does not."""
    rng, made, asked = np.random.default_rng(3), [], []

    class Trained(list):
        steps = np.arange(4) * 10
        initial = property(lambda self: np.concatenate([one.initial for one in self]))
        final = property(lambda self: np.concatenate([one.final for one in self]))
        observables = property(lambda self: {"validation_loss": np.concatenate([one.loss for one in self])})

        def __getitem__(self, runs):
            return Trained(made[1 + runs.start // 3 : 1 + runs.stop // 3])

    def train(model, *, runs, initial=None, **options):
        asked.append((runs, options))
        starts = rng.normal(size=(3, 11, 12)) if initial is None else initial["embedding"]
        first = len(made)
        for start in starts.reshape(-1, 3, 11, 12):
            loss = np.array([[2.0, 0.009, 0.5, 0.001], [3, 2, 1, 0.5], [1, 0.5, 0.004, 0.005]])
            final = rng.normal(size=(3, 11, 12)) * rng.uniform(0, 3, (3, 1, 12))
            made.append(SimpleNamespace(initial=start, final=final, loss=loss * (1 + len(made))))
        return Trained(made[first:])

    monkeypatch.setattr(figure_12, "train", train)
    monkeypatch.setattr(figure_12, "survives", stronger)
    tables = figure_12.ablation(Run(figure_12.Ablation(TINY, 10, 3, 5), "quick")).columns()
    rows, curves = tables["networks"], tables["curves"]
    (_, first), (runs, again) = asked
    assert (first.pop("first_run"), runs, again.pop("run_numbers")) == (0, 12, [0, 1, 2] * 4)
    assert first == again, "layers and splits are those of the first"
    whole = made[0]
    order = np.argsort(-fourier_signals(whole.final), axis=1)
    for n, one in enumerate(made):
        own, begun = rows["start"] == STARTS[n], fourier_signals(one.initial)
        kept = begun > 1e-6 if n else np.zeros((3, 5), bool)
        for k in range(3) if n else ():
            kept_k = np.flatnonzero(kept[k])
            assert len(kept_k) == (1, 2, 1, 2)[n - 1]
            assert len(set(kept_k) & set(order[k, :2])) == (1, 2, 0, 0)[n - 1], (
                "what is random is none of the two best"
            )
            assert n != 1 or kept_k == order[k, :1]
            np.testing.assert_allclose(begun[k, kept_k], fourier_signals(whole.initial)[k, kept_k])
        alive, loss = stronger(fourier_signals(one.final)), one.loss
        assert rows["network"][own].tolist() == [0, 1, 2]
        assert rows["circles"][own].tolist() == alive.sum(axis=1).tolist()
        assert rows["kept"][own].tolist() == (alive & kept).sum(axis=1).tolist()
        assert rows["others"][own].tolist() == (alive & ~kept).sum(axis=1).tolist()
        assert rows["lowest"][own].tolist() == loss.min(axis=1).tolist()
        first = [next((10 * i for i, x in enumerate(row) if x < 0.01), np.inf) for row in loss]
        assert rows["learnt"][own].tolist() == first
        drawn = {name: curves[name][n * 3 : n * 3 + 3] for name in curves}
        assert drawn["step"].tolist() == [10, 20, 30]
        for name, of in (("median", np.median), ("lowest", np.min), ("highest", np.max)):
            np.testing.assert_array_equal(drawn[name], of(loss[:, 1:], axis=0))


def test_rules_of_figure_12_hold_networks_against_the_same_ones_with_all_circles():
    learnt = np.array([[100, 200, np.inf], [50, 50, 50], [90, 210, 300], [110, 150, np.inf], [100, 300, 5]])
    rows = {"start": np.repeat(STARTS, 3), "network": np.tile(range(3), 5), "learnt": learnt.ravel(),
            "lowest": 10.0 ** -np.arange(15), "circles": np.arange(15)}  # fmt: skip
    tables = {"networks": rows}
    assert figure_12._later((figure_12.TWO,), -1)(tables, 0.95).estimate == pytest.approx(2 / 3)
    later = figure_12._later((figure_12.RANDOM, figure_12.TWO_RANDOM), 1)(tables, 0.95)
    # Of six, two are later, and two are ties: one is learned at the same step, one never from both starts.
    assert later.estimate == pytest.approx(3 / 6)
    assert figure_12._lowest(tables, 0.95).estimate == pytest.approx(-7)
    assert figure_12._ends_with(tables, 0.95).estimate == 4


def counted(run):
    return figure_05.count_circles(run(figure_05.Counts(TINY, (7, 11), (4,), 5, 5)))


def ablated(run):
    return figure_12.ablation(run(figure_12.Ablation(TINY, "10", 5, 5))).tables["networks"]


def decayed(run):
    return figure_10.by_decay(run(figure_10.Decays(TINY, (0.0, 0.5), 3, 5))).tables["networks"]


def narrow(run):
    return figure_04.frozen(run(figure_04.Frozen(11, (4, 9), (10, 30), 3, 5))).tables["networks"]


@pytest.mark.parametrize(
    ("module", "make"),
    [(figure_04, narrow), (figure_05, counted), (figure_10, decayed), (figure_12, ablated)],
)
def test_networks_are_the_same_whichever_are_trained_in_one_piece(module, make, monkeypatch):
    monkeypatch.setattr(figure_05, "published_count", lambda E: np.abs(E).sum(axis=(1, 2)))  # tells more
    tables = []
    for most in (2, 5):
        monkeypatch.setattr(module, "PIECE", (most, most))
        tables.append(make(lambda setting: Run(setting, "quick")))
    one, other = tables
    assert list(one) == list(other)
    for name in one:
        if one[name].dtype.kind == "f":
            np.testing.assert_allclose(one[name], other[name], rtol=1e-5)
        else:
            assert one[name].tolist() == other[name].tolist(), name


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_network_with_few_dimensions_is_one_with_many_of_which_the_others_are_zero(engine):
    wide, few = nets.EmbeddingMLP(11, 12), nets.EmbeddingMLP(11, 5)
    options = {"runs": 2, "steps": 40, "freeze_embedding": True, "engine": engine, "dtype": "float64"}
    drawn = draw(wide, runs=2, seed=3).parameters
    initial = figure_04.narrowed(drawn, np.array([5, 12]))
    whole = nets.train(wide, initial=initial, seed=3, **options)
    assert all((values[1] == drawn[name][1]).all() for name, values in initial.items())
    first, bias = initial["hidden1.weight"].reshape(2, 2, 12, 100), initial["hidden1.bias"]
    assert not first[0, :, 5:].any()
    assert 0.99 * 10**-0.5 < np.abs(first[0]).max() < 10**-0.5, "as PyTorch draws for five dimensions"
    assert 0.9 * 10**-0.5 < np.abs(bias[0]).max() < 10**-0.5
    assert np.abs(first[1]).max() < 24**-0.5
    cut = {"embedding": whole.initial[:, :, :5], "hidden1.weight": first[:, :, :5].reshape(2, 10, 100)}
    own = nets.train(few, initial=drawn | initial | cut, seed=3, **options)
    for name, losses in own.observables.items():
        np.testing.assert_allclose(whole.observables[name][0], losses[0], rtol=1e-9)


def test_parts_of_an_ensemble_are_all_of_it_once():
    for networks in range(1, 9):
        for most in range(1, 10):
            parts = parts_of(networks, most)
            assert [k for part in parts for k in part] == list(range(networks))
            assert max(map(len, parts)) <= most
            assert len(parts) == -(-networks // most), "no more than are needed"
