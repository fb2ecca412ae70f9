"""Statistics of ensembles, each recomputed from its definition by loops over values."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from analysis.circles.neurons import diversification
from analysis.circles.prediction import _names, circle_counts, decision_error, fitness, survival_rates
from analysis.circles.signals import Circles
from analysis.circles.survival import StoppingRule, survives
from analysis.comparison.compared import Comparison
from analysis.comparison.timing import OnsetDifference, Onsets
from analysis.phases.axes import Axis
from analysis.phases.classification import PHASES, Majority, classify_phases
from analysis.stats import effects, intervals
from analysis.stats.calibration import calibrate
from analysis.stats.intervals import Interval
from physics import InputError
from physics.neurons.spectrum import neuron_spectrum

NAN = math.nan


def numbers(one):
    return [one.estimate, one.low, one.high]


# -- effects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [([1, 2, 2, 5], [2, 3, 0]), ([3], [1, 3, 4]), ([1, 2], [1.5])])
def test_cliffs_delta_counts_the_pairs_in_which_one_is_larger(first, second):
    pairs = list(itertools.product(first, second))
    expected = np.mean([np.sign(x - y) for x, y in pairs])
    found = effects.cliffs_delta(first, second)
    assert found.estimate == pytest.approx(expected)
    assert effects.cliffs_delta(second, first).estimate == pytest.approx(-expected)
    assert found.count == len(first) + len(second)
    assert math.isfinite(found.low) == (min(len(first), len(second)) > 1)
    if math.isfinite(found.low):  # Newcombe's score interval: its ends solve (θ - A)² = z² Var(θ)
        m, n, z = len(first), len(second), stats.norm.ppf(0.975)
        area = (expected + 1) / 2
        for end in (found.low, found.high):
            theta = (end + 1) / 2
            half = (m + n) / 2 - 1
            variance = theta * (1 - theta) * (1 + half * ((1 - theta) / (2 - theta) + theta / (1 + theta)))
            assert (theta - area) ** 2 == pytest.approx(z**2 * variance / (m * n))


def test_hedges_g_divides_by_the_pooled_spread_and_corrects_for_small_samples():
    x, y = np.array([1.0, 2.0, 4.0, 7.0]), np.array([0.0, 1.0, 5.0])
    pooled = math.sqrt((3 * x.var(ddof=1) + 2 * y.var(ddof=1)) / 5)
    found = effects.hedges_g(x, y)
    assert found.estimate == pytest.approx((1 - 3 / (4 * 5 - 1)) * (x.mean() - y.mean()) / pooled)
    assert found.low < found.estimate < found.high
    for a, b in ((x, [1.0]), ([2.0, 2.0], [1.0, 1.0]), ([], [1.0, 2.0])):
        assert not np.isfinite(numbers(effects.hedges_g(a, b))).any()
    assert effects.hedges_g([2.0, 2.0], [1.0, 2.0]).estimate > 0, "one sample varies"


def test_cohens_h_is_a_difference_of_angles():
    first, second = intervals.proportion(3, 10), intervals.proportion(8, 10)
    expected = 2 * math.asin(math.sqrt(0.3)) - 2 * math.asin(math.sqrt(0.8))
    found = effects.cohens_h(first, second)
    assert found.estimate == pytest.approx(expected)
    swapped = effects.cohens_h(second, first)
    assert [swapped.low, swapped.high] == pytest.approx([-found.high, -found.low])
    assert not np.isfinite(numbers(effects.cohens_h(first, intervals.proportion(0, 0)))).any()


def test_a_permutation_p_value_is_the_share_of_relabelings_with_as_large_a_difference():
    rng = np.random.default_rng(0)
    for m, n in ((2, 3), (4, 4), (1, 5), (5, 1)):
        x, y = rng.normal(1.0, 1.0, m), rng.normal(size=n)
        both, observed = np.concatenate([x, y]), abs(x.mean() - y.mean())
        larger = 0
        for chosen in itertools.combinations(range(m + n), m):
            rest = [k for k in range(m + n) if k not in chosen]
            larger += abs(both[list(chosen)].mean() - both[rest].mean()) >= observed - 1e-12
        assert effects.permutation_p_value(x, y) == pytest.approx(larger / math.comb(m + n, m))
    assert math.isnan(effects.permutation_p_value([], [1.0]))


def test_a_bootstrap_interval_is_expanded_as_students():
    rows = np.random.default_rng(1).normal(size=(5, 2))
    found = effects.bootstrap((rows,), lambda a: a[..., 0].mean(axis=1), resamples=9000)
    scale = rows[:, 0].std() / math.sqrt(5)  # of the bootstrap, whose tails are taken further out
    tail = stats.norm.cdf(math.sqrt(5 / 4) * stats.t.ppf(0.025, 4))
    assert found.estimate == pytest.approx(rows[:, 0].mean())
    assert found.high - found.low == pytest.approx(2 * scale * -stats.norm.ppf(tail), rel=0.15)
    assert effects._levels(5) == pytest.approx([tail, 1 - tail])
    single = effects.bootstrap(([[1.0]], [[2.0], [3.0]]), lambda a, b: (a.mean(1) - b.mean(1)).ravel())
    assert (single.estimate, single.count) == (-1.5, 3)
    assert math.isnan(single.low)


def test_calibration_is_a_line_through_what_is_known_of_both():
    x = np.array([0.1, 0.4, 0.5, 0.9, NAN, 0.3])
    y = np.array([0.2, 0.3, 0.7, 0.8, 0.5, NAN])
    found = calibrate(x, y)
    x, y = x[:4], y[:4]
    assert found.predicted.tolist() == x.tolist()
    line = stats.linregress(x, y)
    half = stats.t.ppf(0.975, 2) * line.stderr
    assert numbers(found.slope) == pytest.approx([line.slope, line.slope - half, line.slope + half])
    assert found.bias.estimate == pytest.approx((y - x).mean())
    assert found.error.estimate == pytest.approx(math.sqrt(((y - x) ** 2).mean()))
    assert found.correlation.estimate == pytest.approx(np.corrcoef(x, y)[0, 1])
    three = calibrate(x[:3], y[:3]).slope
    assert three.estimate == pytest.approx(stats.linregress(x[:3], y[:3]).slope)
    for short in (calibrate(x[:2], y[:2]), calibrate([0.5] * 4, y)):
        assert math.isnan(short.slope.estimate)
    with pytest.raises(InputError, match="predicted and measured must have one shape"):
        calibrate(x, y[:3])


# -- circles ------------------------------------------------------------------------------------------------


def test_bins_of_survival_hold_equally_many_circles_and_their_own_rates():
    x = np.arange(12.0).reshape(3, 4)
    alive = np.random.default_rng(2).random((3, 4)) < 0.5
    rows = survival_rates(x, alive, bins=3)
    edges = np.quantile(x, [0, 1 / 3, 2 / 3, 1])
    assert [(row.low, row.high) for row in rows] == list(itertools.pairwise(edges))
    for row, part in zip(rows, np.split(np.arange(12), 3), strict=True):
        assert row.value == x.ravel()[part].mean()
        assert row.rate == intervals.proportion(int(alive.ravel()[part].sum()), 4)
    grouped = survival_rates(x, alive, bins=3, groups=["b", "a", "b"])
    for row, part in zip(grouped, np.split(np.arange(12), 3), strict=True):
        names = np.repeat(["b", "a", "b"], 4)[part]
        kinds = np.unique(names)
        hits = [alive.ravel()[part][names == kind].sum() for kind in kinds]
        assert row.rate == intervals.clustered_proportion(hits, [(names == kind).sum() for kind in kinds])
    (same,) = survival_rates(np.ones((2, 2)), np.eye(2, dtype=bool), bins=4)
    assert (same.low, same.high, same.rate.estimate) == (1.0, 1.0, 0.5)
    assert _names(["a", "b"], (2, 3)).tolist() == ["a"] * 3 + ["b"] * 3
    with pytest.raises(InputError, match="groups must hold one name for each run or circle, got 4 for 6"):
        _names(list("abcd"), (2, 3))


def test_counts_are_tabulated_by_sorted_parameters():
    counts = [3, 1, 2, 5, 4]
    table = circle_counts(counts, {"p": [11, 7, 11, 7, 5], "decay": [0.5, 1.0, 0.5, 0.25, 2.0]})
    assert [(row["p"], row["decay"]) for row in table] == [(5, 2.0), (7, 0.25), (7, 1.0), (11, 0.5)]
    assert [row["circles"].estimate for row in table] == [4.0, 5.0, 1.0, 2.5]
    assert [row["circles"].count for row in table] == [1, 1, 1, 2]
    mixed = circle_counts(counts, {"split": ["whole", 0.5, "half", 2, 0.5]})
    assert [row["split"] for row in mixed] == [0.5, 2, "half", "whole"]
    assert [row["circles"].estimate for row in mixed] == [2.5, 5.0, 2.0, 3.0]
    assert circle_counts(counts, {})[0]["circles"].estimate == 3.0
    with pytest.raises(InputError, match="parameters must hold one value for each"):
        circle_counts(counts, {"p": [1]})


def test_decisions_are_compared_with_the_end_of_the_run():
    rng = np.random.default_rng(4)
    steps = np.arange(0, 400, 20)
    signals = rng.uniform(0.5, 1.5, (8, 20, 4)) * np.exp(
        -np.arange(20)[None, :, None] * rng.random((8, 1, 4))
    )
    rule = StoppingRule()
    wrong = circles = undecided = decided = 0
    stops = []
    for run in signals:
        step = rule.first(steps, run)
        undecided += step is None
        stops.append(steps[-1] if step is None else step)
        if step is not None:
            decided += 1
            now = survives(run[list(steps).index(step)], factor=rule.factor)
            last = survives(run[-1], factor=rule.factor)
            wrong += any(now != last)
            circles += sum(now != last)
    found = decision_error(steps, signals, rule)
    assert decided
    assert found.wrong == intervals.proportion(wrong, decided)
    assert found.circles == intervals.proportion(circles, 4 * decided)
    assert found.undecided == intervals.proportion(undecided, 8)
    assert found.steps == intervals.mean(stops)
    assert found.saved == pytest.approx(1 - sum(stops) / (8 * 380))


def test_gradients_are_taken_over_the_recorded_interval_that_ends_at_a_step():
    steps = np.array([0, 2, 6, 10])
    signals = np.random.default_rng(5).random((2, 4, 3))
    circles = Circles(steps, signals, signals[:, -1] > 0.5)
    for at, place in ((1, 1), (2, 1), (3, 2), (6, 2), (7, 3), (10, 3)):
        change = (signals[:, place] - signals[:, place - 1]) / (steps[place] - steps[place - 1])
        np.testing.assert_allclose(circles.gradient(at), change)
    for at in (0, 11):
        with pytest.raises(InputError, match="at must be at"):
            circles.gradient(at)


def test_what_predicts_survival_is_judged_on_groups_that_were_left_out():
    rng = np.random.default_rng(6)
    signals, gradients = rng.normal(size=(2, 12, 5))
    alive = signals + 0.3 * rng.normal(size=(12, 5)) > 0.4
    found = fitness(signals, gradients, alive, resamples=20)
    assert found.groups == 12
    assert found.majority == pytest.approx(max(alive.mean(), 1 - alive.mean()))
    names = np.repeat(np.arange(12), 5)
    assert found.signal_correlation == intervals.correlation(signals.ravel(), alive.ravel(), names)
    assert found.gradient_correlation == intervals.correlation(gradients.ravel(), alive.ravel(), names)
    assert found.odds[0, 0] > 1 > abs(found.odds[1, 0])
    assert (found.odds[:, 1] < found.odds[:, 0]).all()
    assert found.svm.area > 0.9
    assert found.svm.in_sample.estimate >= found.svm.left_out.estimate
    for wrong, said in (
        ({"groups": np.zeros(12)}, "at least 2 groups"),
        ({"survived": np.ones((12, 5), bool)}, "survivors and dead circles, got 60 survivors of 60 circles"),
        (
            {"survived": names.reshape(12, 5) == 3},
            "are left out, got survivors in 1 and dead",
        ),
        ({"resamples": 0}, "resamples must be at least 1"),
    ):
        with pytest.raises(InputError, match=said):
            fitness(**({"signals": signals, "gradients": gradients, "survived": alive} | wrong))


def test_the_diversity_of_neurons_is_the_entropy_of_their_frequencies():
    frequency, p = np.array([1, 1, 2, 3, 3, 3, 2]), 11
    phase = np.random.default_rng(7).uniform(0, 2 * np.pi, 7)
    found = diversification(
        neuron_spectrum(np.cos(2 * np.pi * frequency * np.arange(p)[:, None] / p + phase))
    )
    part = np.array([2, 2, 3]) / 7
    assert found.counts.tolist() == [2, 2, 3, 0, 0]
    assert found.counts.dtype.kind == "i"
    assert found.diversity == pytest.approx(np.exp(-(part * np.log(part)).sum()) / 5)
    for k in (1, 2, 3):
        for i, order in enumerate(found.orders):
            spread = abs(np.exp(1j * order * phase[frequency == k]).mean())
            assert found.asymmetry[k - 1, i] == pytest.approx(spread)
    assert np.isnan(found.asymmetry[3:]).all()


# -- a comparison as a table --------------------------------------------------------------------------------


def test_the_table_of_a_comparison_has_each_estimate_once_with_its_test():
    values = [Interval(k, k - 0.5, k + 0.5, k + 3) for k in range(20)]
    one = effects.Difference(
        "loss", (np.zeros(2), np.zeros(2)), values[0], values[1], values[2], {"e": values[3]}, 0.25, "t", 0.5
    )
    onsets = OnsetDifference(
        "goal", Onsets(np.array([1.0, 2.0]), np.array([True, True])),
        Onsets(np.array([3.0, 5.0]), np.array([True, False])), 0.125, values[4], values[5], 0.75,
    )  # fmt: skip
    motion = SimpleNamespace(alignment="ends", scale=values[6], mean_error=values[7], chance_error=values[8])
    accuracy = SimpleNamespace(bias=values[9], error=values[10], correlation=values[11], slope=values[12])
    whole = Comparison(
        ("a", "b"), (2, 2), None, None, None, {"loss": one}, motion, {"goal": onsets}, accuracy, ()
    )
    rows = whole.table()
    found = {(row["part"], row["quantity"], row["statistic"]): row for row in rows}
    expected = {
        ("distribution", "loss", "a"): values[0], ("distribution", "loss", "b"): values[1],
        ("distribution", "loss", "difference"): values[2], ("distribution", "loss", "e"): values[3],
        ("motion", "ends", "scale"): values[6], ("motion", "ends", "mean_error"): values[7],
        ("motion", "ends", "chance_error"): values[8],
        ("onset", "goal", "a, reached"): onsets.first.fraction,
        ("onset", "goal", "a, median time"): onsets.first.median,
        ("onset", "goal", "b, reached"): onsets.second.fraction,
        ("onset", "goal", "b, median time"): onsets.second.median,
        ("onset", "goal", "ratio"): values[4], ("onset", "goal", "paired ratio"): values[5],
        **{("accuracy", "predicted against measured", name): values[9 + k]
           for k, name in enumerate(("bias", "error", "correlation", "slope"))},
    }  # fmt: skip
    assert len(rows) == len(found)
    assert found.keys() == expected.keys()
    tested = {"difference": (0.25, 0.5, "t"), "ratio": (0.125, 0.75, "log-rank test")}
    for key, value in expected.items():
        row = found[key]
        assert [row["estimate"], row["low"], row["high"], row["count"]] == [*numbers(value), value.count]
        p, adjusted, test = tested.get(key[2], (NAN, NAN, ""))
        np.testing.assert_equal((row["p_value"], row["adjusted_p_value"], row["test"]), (p, adjusted, test))
    assert whole.tests == 2


# -- phases -------------------------------------------------------------------------------------------------


def test_phases_follow_from_the_two_steps():
    table = [
        (10, 10, "comprehension"), (10, 5, "comprehension"), (10, 109, "comprehension"),
        (10, 110, "grokking"), (10, NAN, "memorization"), (NAN, 10, "confusion"), (NAN, NAN, "confusion"),
        (0, 0, "comprehension"),
    ]  # fmt: skip
    train, validation, phases = zip(*table, strict=True)
    assert classify_phases(train, validation, delay=100).tolist() == list(phases)
    for wrong in ([-1.0], [math.inf]):
        with pytest.raises(InputError, match="train_steps must be at least 0, or NaN for never"):
            classify_phases(wrong, [1.0])
    with pytest.raises(InputError, match="validation_steps must have the shape"):
        classify_phases([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("counts", "certainty"), [((1, 0), 0.82), ((2, 0), 0.92), ((2, 1), 0.71), ((4, 1), 0.91), ((1, 1), 0.5)]
)
def test_a_majority_is_as_certain_as_jeffreys_prior_says(counts, certainty):
    many, few = counts
    found = Majority([PHASES[2]] * many + [PHASES[1]] * few)
    assert found.phase == (PHASES[2] if many > few else PHASES[1]), "the first of equally frequent ones"
    assert found.certainty == pytest.approx(certainty, abs=0.005)
    assert found.certainty == pytest.approx(stats.beta.sf(0.5, many + 0.5, few + 0.5))
    assert found.share == intervals.proportion(many, many + few)


def test_cells_of_an_axis_are_halved_while_they_hold_numbers():
    log = Axis("learning_rate", 0.01, 100.0, 4, "log")
    assert [log.value(end) for end, _ in log.spans] == pytest.approx([0.01, 0.1, 1.0, 10.0])
    assert log.point((0.25, 0.5)) == pytest.approx(10**-0.5)
    for axis in (log, Axis("x", -2.0, 6.0, 4)):
        for part in (0.0, 0.3, 1.0):
            assert axis.part(axis.value(part)) == pytest.approx(part)
    assert log.label == "learning rate"
    whole = Axis("dim", 1, 6, 3, whole=True)
    assert [whole.point(span) for span in whole.spans] == [2, 4, 6]
    assert whole.halves((0.0, 1 / 3)) == [(0.0, 1 / 6), (1 / 6, 1 / 3)]
    assert whole.halves((0.0, 1 / 6)) == [(0.0, 1 / 6)], "a half would hold no whole number"
    assert Axis("dim", 1, 1, 1, whole=True).point((0.0, 1.0)) == 1
    for given, said in (
        (("x", 1.0, 1.0), "from a lower to a higher"), (("x", 0.0, 1.0, 2, "log"), "begin above 0"),
        (("x", 0.0, 1.0, 1001), "at most 1000"), (("x", 0.0, 1.0, 0), "at least 1"),
        (("x", 1, 2, 3, "linear", True), "take fewer cells or a wider range"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            Axis(*given)
    assert len(Axis("x", 0.0, 1.0, 1000).spans) == 1000


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_the_point_of_a_cell_of_whole_numbers_lies_in_it(scale):
    """Over all cells of all levels: each holds a number, its point is one of them, and none is in two."""
    for high in range(4, 40):
        axis = Axis("dim", 1, high, 2, scale, whole=True)
        cells, numbers = axis.spans, range(1, high + 1)
        for _ in range(4):
            for low, end in cells:
                inside = [n for n in numbers if axis.value(low) <= n < axis.value(end)]
                assert axis.point((low, end)) in inside
            held = [n for low, end in cells for n in numbers if axis.value(low) <= n < axis.value(end)]
            assert held == list(numbers)
            cells = [half for cell in cells for half in axis.halves(cell)]
