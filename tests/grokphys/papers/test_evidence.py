"""Estimates, measures of tables, and models of data in which a statement is false, from their definitions."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.stats import intervals
from grokphys.papers import counters, evidence, measures
from grokphys.papers.liu import phases

RNG = np.random.default_rng(0)
X = RNG.normal(size=12)
Y = X + RNG.normal(size=12)
GROUPS = np.repeat(list("dacb"), 3)


def leave_out(statistic, x, y, groups, level):
    """Student's interval of the pseudo-values of a statistic."""
    names = list(dict.fromkeys(groups))
    whole, n = statistic(x, y), len(names)
    left = [statistic(x[groups != one], y[groups != one]) for one in names]
    pseudo = n * whole - (n - 1) * np.array(left)
    half = stats.t.ppf((1 + level) / 2, n - 1) * pseudo.std(ddof=1) / n**0.5
    return whole, whole - half, whole + half, n


@pytest.mark.parametrize("groups", [None, GROUPS])
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_trends_leave_out_whole_groups(groups, level):
    own = np.arange(12) if groups is None else groups
    found = evidence.rank_correlation(X, Y, level, groups=groups)
    tau = leave_out(lambda x, y: stats.kendalltau(x, y).statistic, X, Y, own, level)
    assert (found.estimate, found.low, found.high, found.count) == pytest.approx(tau)
    found = evidence.correlation(X, Y, level, groups=groups)
    whole, low, high, n = leave_out(lambda x, y: np.arctanh(np.corrcoef(x, y)[0, 1]), X, Y, own, level)
    assert (found.estimate, found.low, found.high) == pytest.approx(tuple(np.tanh([whole, low, high])))
    assert found.count == n


def test_trends_that_cannot_be_measured_have_no_interval():
    flat = np.ones(4)
    assert math.isnan(evidence.correlation(flat, X[:4], 0.95).estimate)
    assert math.isnan(evidence.correlation(X[:4], flat, 0.95).estimate)
    assert math.isnan(evidence.correlation(X[:2], Y[:2], 0.95).estimate)
    assert evidence.correlation([], [], 0.95).count == 0
    step = np.array([0.0, 0.0, 0.0, 1.0])  # without the last row it is flat
    assert math.isnan(evidence.correlation(step, X[:4], 0.95).low)
    assert evidence.correlation(X, 2 * X, 0.95).estimate == pytest.approx(1.0)


def test_means_and_shares_are_those_of_groups():
    hits = X > 0
    by_group = [X[one == GROUPS].mean() for one in "abcd"]
    assert evidence.mean(X, 0.9, groups=GROUPS) == intervals.mean(by_group, 0.9)
    assert evidence.mean(X, 0.9) == intervals.mean(X, 0.9)
    assert evidence.mean([], 0.9, groups=[]).count == 0
    counts = [hits[one == GROUPS].sum() for one in "abcd"]
    expected = intervals.clustered_proportion(counts, [3] * 4, 0.9)
    assert evidence.share(hits, 0.9, groups=GROUPS) == replace(expected, count=4)
    assert evidence.share(hits, 0.9) == intervals.proportion(int(hits.sum()), 12, 0.9)


def test_chance_shuffles_one_column_and_keeps_the_others():
    table = {"x": np.arange(12), "y": np.arange(12) + 100, "g": GROUPS}
    tables = {"t": table, "u": {"x": np.arange(3)}}
    whole = counters.shuffled("t", "x")(tables, np.random.default_rng(3))
    assert whole["u"] is tables["u"]
    assert whole["t"]["y"] is table["y"]
    assert whole["t"]["x"].tolist() == np.random.default_rng(3).permutation(12).tolist()
    assert table["x"].tolist() == list(range(12)), "the table itself stays"
    pairs = counters.exchanged("t", "x", "y")(tables, np.random.default_rng(3))["t"]
    swap = np.random.default_rng(3).random(12) < 0.5
    assert 0 < swap.sum() < 12
    assert pairs["x"].tolist() == np.where(swap, table["y"], table["x"]).tolist()
    assert pairs["y"].tolist() == np.where(swap, table["x"], table["y"]).tolist()
    assert pairs["g"] is table["g"]


def test_chance_may_leave_rows_out():
    table = {"x": np.arange(12.0), "g": GROUPS, "even": np.array([0, 0, 1] * 4)}
    mix = counters.shuffled("t", "x", within="g", among={"even": 0})
    found = mix({"t": table}, np.random.default_rng(1))["t"]["x"]
    chosen = table["even"] == 0
    assert found[~chosen].tolist() == table["x"][~chosen].tolist()
    assert found.tolist() != table["x"].tolist()
    for group in np.unique(GROUPS):
        here = chosen & (np.asarray(GROUPS) == group)
        assert sorted(found[here]) == table["x"][here].tolist()


def test_chance_permutes_a_column_among_chosen_rows_of_two_tables():
    tables = {
        "t": {"kind": np.array(["a", "b", "a"]), "x": np.array([1.0, 2.0, 3.0])},
        "u": {"kind": np.array(["a", "a", "b", "a"]), "p": [3, 5, 3, 3], "x": [4.0, 5.0, 6.0, 7.0]},
    }
    mix = counters.pooled("x", ("t", {"kind": "a"}), ("u", {"kind": "a", "p": 3}))
    found = mix(tables, np.random.default_rng(5))
    t, u = found["t"]["x"].tolist(), found["u"]["x"].tolist()
    assert (t[1], u[1:3]) == (2, [5, 6]), "the others stay"
    values = np.random.default_rng(5).permutation([1.0, 3.0, 4.0, 7.0]).tolist()
    assert [t[0], t[2], u[0], u[3]] == values != [1, 3, 4, 7]
    assert tables["t"]["x"].tolist() == [1, 2, 3], "the tables themselves stay"


def test_tables_are_joined_in_their_order_and_in_the_columns_of_the_first():
    tables = ({"x": np.arange(n), "name": [word] * n} for n, word in ((2, "a"), (0, "none"), (3, "longer")))
    found = evidence.joined(tables)
    assert list(found) == ["x", "name"]
    assert found["x"].tolist() == [0, 1, 0, 1, 2]
    assert found["name"].tolist() == ["a", "a", "longer", "longer", "longer"]


def test_rows_are_chosen_by_all_values():
    table = {"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"], "c": [0.1, 0.2, 0.3, 0.4]}
    assert {k: v.tolist() for k, v in evidence.where(table, a=2, b="x").items()} == {
        "a": [2], "b": ["x"], "c": [0.3]
    }  # fmt: skip
    assert evidence.where(table)["c"].tolist() == table["c"]
    assert evidence.where(table, a=3)["b"].tolist() == []


@given(st.integers(3, 8), st.integers(2, 30), st.integers(0, 10**6))
def test_the_jackknife_of_a_mean_is_students_interval(groups, size, seed):
    values = np.random.default_rng(seed).normal(size=groups)
    repeated, names = np.repeat(values, size), np.repeat(np.arange(groups), size)
    found = evidence.jackknife(np.mean, repeated, level=0.9, groups=names)
    expected = evidence.mean(values, 0.9)
    assert np.allclose(
        [found.estimate, found.low, found.high], [expected.estimate, expected.low, expected.high]
    )
    exact = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert np.allclose([expected.low, expected.high], [exact.low, exact.high])


def test_a_share_has_wilsons_interval_and_that_of_groups_where_trials_share_them():
    hits = np.array([1, 1, 0, 1, 0, 1, 1, 1, 0, 1])
    found = evidence.share(hits, 0.95)
    exact = stats.binomtest(7, 10).proportion_ci(0.95, method="wilson")
    assert np.allclose([found.low, found.high], [exact.low, exact.high])
    clones = evidence.share(np.repeat(hits, 50), 0.95, groups=np.repeat(np.arange(10), 50))
    assert clones.count == 10
    assert clones.low < found.low < found.high < clones.high


@pytest.mark.parametrize("level", [0.95, 0.998])
def test_a_share_of_all_or_of_none_has_the_exact_bound_for_its_units(level):
    """Of 580 circles in 20 networks, networks are the units if they are named, and circles otherwise."""
    networks = np.repeat(np.arange(20), 29)
    for truth, units, groups in ((True, 580, None), (False, 580, None), (True, 20, networks)):
        found = evidence.share([truth] * 580, level, groups=groups)
        exact = stats.binomtest(truth * units, units).proportion_ci(level, method="exact")
        assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
        assert found.count == units


@pytest.mark.parametrize("measure", [evidence.correlation, evidence.rank_correlation])
def test_intervals_of_trends_hold_the_truth_and_mirror(measure):
    trials = 60
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(trials):
        x, y = rng.normal(size=(2, 30))
        found, mirrored = measure(x, y, 0.95), measure(x, -y, 0.95)
        covered += found.low <= 0 <= found.high
        assert np.allclose([found.low, found.high], [-mirrored.high, -mirrored.low])
    assert stats.binomtest(covered, trials, 0.95).pvalue > 1e-4


# -- measures of tables --------------------------------------------------------------------------------

CIRCLES = {
    "network": np.repeat([0, 1, 2, 3], 3), "kind": np.tile(["a", "b", "a"], 4), "x": X, "y": Y,
    "hit": X > 0, "size": np.arange(12) % 5,
}  # fmt: skip


def on(measure, level=0.9):
    return measure({"t": CIRCLES}, level)


def test_measures_are_estimates_of_the_rows_that_are_chosen():
    a = CIRCLES["kind"] == "a"
    groups = CIRCLES["network"]
    assert on(measures.share("t", "hit")) == evidence.share(X > 0, 0.9)
    assert on(measures.share("t", "x < y", by="network", kind="a")) == evidence.share(
        (X < Y)[a], 0.9, groups=groups[a]
    )
    large = CIRCLES["size"] >= 2
    assert on(measures.mean("t", lambda rows: rows["x"] ** 2, among="size >= 2")) == evidence.mean(
        X[large] ** 2, 0.9
    )
    for name in ("correlation", "rank_correlation"):
        expected = getattr(evidence, name)(X, np.abs(Y), 0.9, groups=groups)
        assert on(getattr(measures, name)("t", "x", "np.abs(y)", by="network")) == expected
    assert on(measures.median("t", "y", kind="b")) == evidence.median(Y[~a], 0.9)
    assert on(measures.median("t", "y", among="x > y")) == evidence.median(Y[X > Y], 0.9)
    found = on(measures.statistic(lambda x, y: x.mean() / y.mean(), "t", "hit", "size", by="network"))
    assert found.estimate == pytest.approx((X > 0).mean() / CIRCLES["size"].mean())
    assert found.count == 4


def test_measures_of_networks_leave_out_those_that_tell_nothing():
    by_network = X.reshape(4, 3)
    lead = lambda own: own["x"][0] - own["x"][1] if own["network"][0] else np.nan  # noqa: E731
    assert on(measures.of_networks("t", lead)) == intervals.mean(by_network[1:, 0] - by_network[1:, 1], 0.9)
    large = int((by_network.max(axis=1) > 1).sum())
    found = on(measures.of_networks("t", lambda own: own["x"].max() > 1, evidence.share))
    assert found == intervals.proportion(large, 4, 0.9)


def test_measures_combine():
    a, b = measures.mean("t", "x", kind="a"), measures.mean("t", "y", kind="b")
    first, second = on(a), on(b)
    assert on(measures.difference(a, b)) == evidence.difference(first, second)
    assert on(measures.ratio(a, b)).estimate == pytest.approx(np.exp(first.estimate - second.estimate))
    assert on(measures.mapped(a, lambda x: 2 * x)).high == pytest.approx(2 * first.high)
    halves = {"first": "kind == 'a'", "second": "kind == 'b'"}
    gap = on(measures.paired_gap(np.mean, "t", "x", **halves, by="network"))
    kinds = CIRCLES["kind"] == "a"
    assert gap.estimate == pytest.approx(X[kinds].mean() - X[~kinds].mean())
    inside = on(measures.contrast("t", "hit", "size > 1"))
    large = CIRCLES["size"] > 1
    assert inside.estimate == pytest.approx((X > 0)[large].mean() - (X > 0)[~large].mean())
    rare = on(measures.rarest("t", "kind", ("a", "b")))
    assert (rare.estimate, rare.count) == (pytest.approx(1 / 3), 12)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1), [3, 0, 4, 1, 2]])
def test_a_crossing_does_not_depend_on_the_order_of_its_places(order):
    x, hits = np.array([0.1, 0.2, 0.3, 0.4, 0.5]), np.array([0, 20, 40, 90, 100])
    rows = {"x": x[order], "hits": hits[order], "of": np.full(5, 100)}
    found = measures.crossing("t", "x", "hits", "of")({"t": rows}, 0.95)
    assert found.estimate == pytest.approx(0.3 + 0.1 * 10 / 50)
    assert found.low < found.estimate < found.high
    assert found.count == 500
    flat = {"x": x, "hits": np.zeros(5), "of": np.full(5, 100)}
    assert math.isnan(measures.crossing("t", "x", "hits", "of")({"t": flat}, 0.95).estimate)


@pytest.mark.parametrize("count", [5, 12, 101])
def test_a_median_has_the_interval_of_order_statistics(count):
    values = np.random.default_rng(count).normal(size=count)
    found = evidence.median(values, 0.9)
    assert found.estimate == np.median(values)
    ranks = np.searchsorted(np.sort(values), [found.low, found.high])
    missed = stats.binom.cdf(ranks[0], count, 0.5) + stats.binom.sf(ranks[1], count, 0.5)
    assert missed <= 0.1
    assert math.isnan(evidence.median(values[:2], 0.9).low)


def test_a_share_above_a_median_divides_its_level_between_both_errors():
    values, others = (np.random.default_rng(seed).normal(size=size) for seed, size in ((0, 15), (1, 25)))
    found, ordered, each = evidence.above_median(values, others, 0.9), np.sort(others), 0.95
    rank = max(k for k in range(1, 13) if stats.binom.cdf(k - 1, 25, 0.5) <= (1 - each) / 2)
    above = [int(np.sum(values > ordered[k])) for k in (12, 25 - rank, rank - 1)]
    shares = [stats.binomtest(k, 15).proportion_ci(each, "wilson") for k in above]
    assert (found.estimate, found.count) == (above[0] / 15, 40)
    assert (found.low, found.high) == pytest.approx((shares[1].low, shares[2].high))
    assert evidence.above_median([3, 4, 4, 5], [4] * 9, 0.9).estimate == 1 / 4, "equal numbers exceed nothing"
    few = evidence.above_median(values, others[:3], 0.9)
    assert (few.low, few.high) == (0, 1), "three values do not bound their median"


def test_a_table_has_a_row_for_each_combination():
    rows = evidence.table_of(
        {"a": [1, 2], "b": list("xyz")}, c=np.arange(6).reshape(2, 3), d=[[7], [8]], e=0.5
    )
    assert rows["a"].tolist() == [1, 1, 1, 2, 2, 2]
    assert rows["b"].tolist() == list("xyzxyz")
    assert rows["c"].tolist() == list(range(6))
    assert rows["d"].tolist() == [7, 7, 7, 8, 8, 8]
    assert rows["e"].tolist() == [0.5] * 6


# -- data in which a statement is false ------------------------------------------------------------

TABLE = {"kind": np.array(["a", "b", "a", "c"]), "p": np.array([3, 3, 5, 5]), "x": np.array([1.0, 2, 3, 4])}
TABLES = {"t": TABLE, "u": {"x": np.arange(3)}}


def rng():
    return np.random.default_rng(4)


def columns(model):
    """What a model makes of the table t, as lists; the other table and the table itself must stay."""
    before = {name: values.tolist() for name, values in TABLE.items()}
    found = model(TABLES, rng())
    assert found["u"] is TABLES["u"]
    assert {name: values.tolist() for name, values in TABLE.items()} == before
    return {name: values.tolist() for name, values in found["t"].items()}


def test_rows_take_the_place_of_others():
    model = counters.instead("t", rows={"kind": "a", "p": 5}, of={"kind": "b", "p": 5.0})
    assert model.words == "rows of `t` with `kind` = a in place of those with `kind` = b, both with `p` = 5"
    assert columns(model) == {"kind": ["a", "b", "a", "c", "b"], "p": [3, 3, 5, 5, 5], "x": [1, 2, 3, 4, 3]}
    model = counters.instead("t", rows={"p": 5}, of={"p": 3})
    assert model.words == "rows of `t` with `p` = 5 in place of those with `p` = 3"
    assert columns(model) == {"kind": ["a", "c"] * 2, "p": [5, 5, 3, 3], "x": [3, 4, 3, 4]}


def test_columns_replace_each_other():
    model = counters.replaced("t", p="x", x="p")
    assert model.words == "`p` replaced by `x` and `x` replaced by `p` in `t`"
    assert columns(model) == {"kind": ["a", "b", "a", "c"], "p": [1, 2, 3, 4], "x": [3, 3, 5, 5]}


def test_columns_are_drawn_from_the_rows_or_have_one_value():
    model = counters.drawn("noise", "t", x=lambda rows, random: rows["x"] + random.normal(size=4), p=0)
    assert model.words == "noise"
    found = columns(model)
    assert found["x"] == (TABLE["x"] + rng().normal(size=4)).tolist()
    assert found["p"] == [0] * 4


def test_the_rarest_value_is_absent():
    table = {"kind": np.array(list("aaabbc")), "x": np.arange(6)}
    drawn_kinds = set()
    random = rng()
    for _ in range(40):
        found = counters.rarest_absent("t", "kind")({"t": table}, random)["t"]
        assert found["kind"][:5].tolist() == list("aaabb")
        drawn_kinds.add(str(found["kind"][5]))
    assert drawn_kinds == {"a", "b"}
    assert table["kind"][5] == "c"
    words = counters.rarest_absent("t", "kind").words
    assert words == "the rarest `kind` of `t` replaced by others, at random"


def test_steps_of_networks_without_dropout_are_those_of_all():
    rows = {"dropout": np.array([0.0, 0.2, 0.0, 0.4, 0.5]), "train_steps": np.array([1, 2, 3, 4, 5])}
    tables = {"networks": rows | {"validation_steps": 10 * rows["train_steps"]}}
    found = phases.DRY(tables, rng())["networks"]
    assert found["train_steps"].tolist() == [1, 3, 1, 3, 1]
    assert found["validation_steps"].tolist() == [10, 30, 10, 30, 10]
    assert found["dropout"] is rows["dropout"]
