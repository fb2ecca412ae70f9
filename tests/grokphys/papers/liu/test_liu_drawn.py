"""What Liu's figures show, read back from the axes, of tables and trainings that are made up."""

from types import SimpleNamespace

import numpy as np
import pytest
from pictures import bars, intervals, lines, title

import nets
import physics
from analysis.stats.intervals import mean, proportion
from grokphys.papers.liu import figure_16, measures
from grokphys.papers.liu import figures_03_04b_05b as toy
from grokphys.papers.liu import figures_04a_05a as theory
from grokphys.papers.liu import figures_04c_04d as paths
from grokphys.papers.liu import figures_09_to_11 as chains
from grokphys.papers.liu import figures_12_17_18 as small
from grokphys.papers.recipe import Run

inf = np.inf


def cloud(ax, n=0):
    return np.asarray(ax.collections[n].get_offsets())


def pairs(x, y):
    return np.stack([np.asarray(x, float), np.asarray(y, float)], axis=1)


def fractions():
    rng = np.random.default_rng(0)
    fraction = np.repeat([0.2, 0.5, 0.8], 4)
    rows = {
        name: rng.uniform(size=12)
        for name in (
            *("accuracy", "predicted_accuracy", "rqi", "rqi_bound", "accuracy_bound"),
            *("rqi_strict", "predicted_accuracy_strict"),
        )
    }
    steps = np.array([inf, inf, inf, 700, inf, 500, 400, 300, 90, 80, 70, inf])
    return rows | {
        "fraction": fraction,
        "steps_to_rqi": steps,
        "n_h": np.where(np.arange(12) % 3, 50.0 + np.arange(12), inf),
    }


def named(ax):
    """Words of the legend of axes."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


SETTING = SimpleNamespace(seeds=4, steps=900, delta=0.1)


def train_fractions(monkeypatch, module):
    rows = fractions()
    monkeypatch.setattr(module, "train_fractions", lambda run, **_family: rows)
    return rows


def reached(ax, rows):
    """Whether axes show the steps of those that pass, and the others at the last step."""
    passed = np.isfinite(rows["steps_to_rqi"])
    np.testing.assert_allclose(cloud(ax, 0), pairs(rows["fraction"], rows["steps_to_rqi"])[passed])
    np.testing.assert_allclose(cloud(ax, 1), pairs(rows["fraction"], np.full(12, 900))[~passed])
    assert named(ax)[-2:] == ["one network", "never in 900 steps"]
    never = ax.get_legend().legend_handles[-1]
    assert never.get_alpha() is None, "as dark as the triangles that it explains"


def accuracies(axes, rows):
    for ax, name in zip(axes, ("accuracy", "predicted_accuracy"), strict=False):
        np.testing.assert_allclose(cloud(ax), pairs(rows["fraction"], rows[name]))
        assert lines(ax) == {"training set alone": ([0, 1], [0, 1])}
    np.testing.assert_allclose(cloud(axes[2]), pairs(rows["predicted_accuracy"], rows["accuracy"]))
    np.testing.assert_allclose(axes[2].collections[0].get_array(), rows["fraction"])
    assert axes[2].collections[0].get_cmap().name == "viridis"
    assert lines(axes[2]) == {"equal": ([0, 1], [0, 1])}
    assert named(axes[2]) == ["equal"]
    assert axes[2].collections[0].colorbar.ax.get_ylabel() == "training fraction"


def line_of(ax, rows, name, of, label):
    np.testing.assert_allclose(cloud(ax), pairs(rows["fraction"], rows[name]))
    x, y = lines(ax)[label]
    assert x == [0.2, 0.5, 0.8]
    np.testing.assert_allclose(y, [of(part) for part in np.reshape(rows[name], (3, 4))])
    assert named(ax)[-2:] == ["one network", label]


def test_figures_3_and_4b_show_each_network_over_its_training_fraction(monkeypatch):
    rows = train_fractions(monkeypatch, toy)
    accuracies(toy.accuracies(Run(SETTING, "quick")).figures["liu-3"].get_axes(), rows)
    left, right = toy.qualities(Run(SETTING, "quick")).figures["liu-4b"].get_axes()
    line_of(left, rows, "rqi", np.median, "median")
    reached(right, rows)
    for ax in (left, right):
        assert lines(ax)["paper: 0.4"][0] == [0.4, 0.4]
        assert "paper: 0.4" in named(ax)
    assert title(left) == "4 networks (dots) for each size, 900 steps"


def test_figure_5b_holds_networks_against_the_theory(monkeypatch):
    rows = train_fractions(monkeypatch, toy)
    rates = {11: np.array([0.0, 0.0, 0.0, 0.5]), 22: np.array([0.0, 0.1, 0.2, 0.4]), 55: np.full(4, 2.0)}
    monkeypatch.setattr(toy, "rate_table", lambda operation, sets, seed: rates)
    made = toy.steps_of_networks(Run(SETTING, "quick"))
    table = made.columns()["theory"]
    np.testing.assert_allclose(table["fraction"], [0.2, 0.4, 1.0])
    with np.errstate(divide="ignore"):
        n_h = [np.sort(1 / (1e-3 * rate)) for rate in rates.values()]
    for name, place in (("quartile_1", 0), ("median", 1), ("quartile_3", 2)):
        np.testing.assert_allclose(table[f"n_h_{name}"], [one[place] for one in n_h])
    left, right, bar = made.figures["liu-5b"].get_axes()
    ((name, curve),) = lines(left).items()
    assert name == "theory: median $n_h$ of training sets,\nby Eq. 5, with $1/|P_0(D)|$"
    np.testing.assert_allclose(curve, [[0.4, 1.0], [n_h[1][1], n_h[2][1]]])
    reached(left, rows)
    assert left.get_ylabel() == "steps to RQI > 0.95, or $n_h$"
    assert (bar.get_ylabel(), right.collections[0].get_cmap().name) == ("training fraction", "viridis")
    both = np.isfinite(rows["steps_to_rqi"]) & np.isfinite(rows["n_h"])
    np.testing.assert_allclose(cloud(right), pairs(rows["n_h"], rows["steps_to_rqi"])[both])
    np.testing.assert_allclose(right.collections[0].get_array(), rows["fraction"][both])
    tau = toy._faster({"networks": rows}, 0.95).estimate
    assert tau < 0
    logs = np.log(rows["n_h"][both]), np.log(rows["steps_to_rqi"][both])
    assert toy._follow({"networks": rows}, 0.95).estimate == pytest.approx(np.corrcoef(*logs)[0, 1])


def test_figure_18_shows_the_best_network_and_the_share_that_passes(monkeypatch):
    rows = train_fractions(monkeypatch, small)
    figure = small.permutations(Run(SETTING, "quick")).figures["liu-18"]
    axes = figure.get_axes()
    assert figure.get_suptitle().endswith("count as equal up to a squared distance of δ = 0.1")
    assert [title(ax) for ax in axes[:6]] == ["(a)", "(b)", "not in the paper", "(c)", "(d)", "(e)"]
    line_of(axes[0], rows, "rqi", np.max, "best")
    reached(axes[1], rows)
    assert lines(axes[1])["paper: 0.5"][0] == [0.5, 0.5]
    assert lines(axes[1])["fewest steps"] == ([0.2, 0.5, 0.8], [700, 300, 70])
    line_of(axes[2], rows | {"passed": np.isfinite(rows["steps_to_rqi"])}, "passed", np.mean, "share")
    accuracies(axes[3:], rows)


def test_figure_10_shows_values_beside_their_bounds(monkeypatch):
    rows = train_fractions(monkeypatch, chains)
    masks = {10: np.arange(55) < np.ones((3, 1)), 11: np.ones((2, 55), bool)}
    monkeypatch.setattr(chains, "training_sets", lambda operation, sizes, sets, seed: masks)
    made = chains.bounds(Run(SETTING, "quick"))
    sets = made.columns()["sets"]
    assert [sets[name].tolist() for name in ("size", "sets", "unique")] == [[10, 11], [3, 2], [0, 2]]
    np.testing.assert_allclose(sets["fraction"], [10 / 55, 0.2])
    assert chains._smallest_whole({"sets": sets}, 0.95).estimate == pytest.approx(0.2)
    axes = made.figures["liu-10"].get_axes()
    for line, name, bound in (
        (axes[:3], "rqi", "rqi_bound"),
        (axes[3:], "predicted_accuracy", "accuracy_bound"),
    ):
        np.testing.assert_allclose(cloud(line[1]), pairs(rows["fraction"], rows[bound]))
        for n, (end, delta) in enumerate((("", "δ = 0.1"), ("_strict", "δ = 0.01"))):
            for ax, x in ((line[0], "fraction"), (line[2], bound)):
                np.testing.assert_allclose(cloud(ax, n), pairs(rows[x], rows[name + end]))
                assert ax.collections[n].get_label() == delta
            share = proportion(int(np.sum(rows[name + end] <= rows[bound] + 1e-6)), 12)
            assert chains._within(name, end)({"networks": rows}, 0.95) == share
        assert lines(line[2]) == {"value = bound": ([0, 1], [0, 1])}
    assert set(named(axes[3])) == {"δ = 0.1", "δ = 0.01"}
    assert set(named(axes[5])) == {"value = bound", "δ = 0.1", "δ = 0.01"}
    rows["rqi_bound"][0] = 0
    far = chains._far("")({"networks": rows}, 0.95)
    assert far.estimate == pytest.approx(np.mean((rows["rqi_bound"] - rows["rqi"])[1:]))


# -- the theory -------------------------------------------------------------------------------------------


def sizes():
    return {"fraction": np.array([0.1, 0.3, 0.4, 0.5, 0.9]), "sets": np.full(5, 20),
            "unique": np.array([0, 4, 9, 13, 20]), "positive": np.array([0, 1, 8, 12, 20]),
            "mean": np.array([0.0, 0.1, 0.2, 0.5, 0.4]), "error": np.full(5, 1e-3),
            "quartile_1": np.arange(5) * 0.05,
            "quartile_2": np.arange(5) * 0.06, "quartile_3": np.arange(5) * 0.2}  # fmt: skip


def test_figure_4a_shows_shares_of_sets_and_where_they_cross_one_half():
    rows = sizes()
    (ax,) = theory._draw_probability(20, {"sizes": rows})["liu-4a"].get_axes()
    found = bars(ax)["20 sets"]
    np.testing.assert_allclose(found[0], rows["fraction"])
    np.testing.assert_allclose(found[1:], intervals([proportion(int(n), 20) for n in rows["unique"]]))
    place = measures.crossing(rows["fraction"], rows["unique"], rows["sets"], 0.95)
    assert place.estimate == pytest.approx(0.4 + 0.1 * (10 - 9) / (13 - 9))
    assert lines(ax)[f"$r_c$ = {place.format(3)}"][0] == pytest.approx([place.estimate] * 2)
    high, low = proportion(33, 40), proportion(4, 40)
    jump = theory._jump("unique")({"sizes": rows}, 0.95)
    assert (jump.estimate, jump.count) == (pytest.approx(high.estimate - low.estimate), jump.count)


def test_figure_5a_shows_the_mean_between_quartiles():
    rows = sizes()
    (ax,) = theory._draw_rates(20, {"sizes": rows})["liu-5a"].get_axes()
    assert lines(ax)["mean of 20 sets"] == (rows["fraction"].tolist(), rows["mean"].tolist())
    assert lines(ax)["0.4"][0] == [0.4, 0.4]
    corners = ax.collections[0].get_paths()[0].vertices
    for x, low, high in zip(rows["fraction"], rows["quartile_1"], rows["quartile_3"], strict=True):
        here = corners[corners[:, 0] == x, 1]
        assert (here.min(), here.max()) == (low, high)
    tables = {"sizes": rows}
    assert theory._zero_below(tables, 0.95) == proportion(39, 40)
    sure = theory._rate_rises(tables, 0.95)
    assert (sure.estimate, sure.low, sure.high, sure.count) == (-1, -1, -1, 20)  # from 0.5 to 0.9
    vague = {"sizes": rows | {"error": rows["error"] + np.ptp(rows["mean"])}}
    found = theory._rate_rises(vague, 0.95)
    assert found.estimate == -1
    assert found.low == -1 < 0 < found.high, "means that are uncertain may be in any order"
    assert theory._threshold(tables, 0.95).estimate == pytest.approx(0.4 + 0.1 * (10 - 8) / (12 - 8))


def test_rates_and_shares_are_those_of_the_sets_of_each_size(monkeypatch):
    table = {1: np.array([0.0, 0.0]), 2: np.array([0.0, 4.0]), 3: np.array([1.0, 5.0])}
    monkeypatch.setattr(theory, "rate_table", lambda operation, sets, seed: table)
    rows = theory.rates(Run(2, "quick")).columns()["sizes"]
    np.testing.assert_allclose(rows["fraction"], [1 / 3, 2 / 3, 1])
    assert [rows[k].tolist() for k in ("size", "sets", "positive", "mean")] == [
        [1, 2, 3],
        [2] * 3,
        [0, 1, 2],
        [0, 2, 3],
    ]
    np.testing.assert_allclose(rows["error"], [0, 2**0.5, 2**0.5])
    assert [rows[f"quartile_{k}"].tolist() for k in (1, 2, 3)] == [[0, 1, 2], [0, 2, 3], [0, 3, 4]]


def test_figure_f_shows_the_median_of_conserved_quantities_and_their_largest_changes():
    made = theory.conservation(Run(2, "quick"))
    rows = made.columns()["flows"]
    assert rows["start"].tolist() == [0, 0, 1, 1]
    assert rows["centred"].tolist() == [False, True] * 2
    axes = made.figures["liu-F"].get_axes()
    for k, name in enumerate(("norm_change", "sum_change")):
        drawn = lines(axes[k])
        for centred, label in ((False, "random start"), (True, "centered")):
            x, y = drawn[f"{label}, median"]
            assert x == np.arange(0, 101, 2).tolist()
            assert y[0] == 0
            assert max(y) <= rows[name][rows["centred"] == centred].max() + 1e-15
    assert rows["norm_change"].max() < 1e-8
    assert rows["sum_change"][rows["centred"]].max() < 1e-8 < rows["sum_change"][~rows["centred"]].min()
    largest = theory._largest("norm_change", True)({"flows": rows}, 0.95)
    assert largest == mean(rows["norm_change"][[1, 3]])


def test_figure_16_shows_what_is_given_and_what_follows():
    rows = {"fraction": np.array([0.2, 0.6, 1.0]), "given": np.array([0.0, 0.2, 1.0]),
            "implied": np.array([0.1, 0.7, 1.0]), "chains_only": np.array([0.0, 0.5, 1.0])}  # fmt: skip
    tables = {
        "sets": {name: np.tile(values, 2) for name, values in rows.items()}
        | {"operation": np.repeat(["C_6", "S_3"], 3)}
    }
    tables["sets"]["implied"][3:] /= 2
    left, right = figure_16._draw_deduction(1, tables)["liu-16"].get_axes()
    for ax, half in ((left, 1), (right, 2)):
        drawn = lines(ax)
        assert drawn[r"given, $|P_0(D)|/|P_0|$"] == (rows["fraction"].tolist(), rows["given"].tolist())
        assert drawn[r"implied, $|P(D)|/|P_0|$"][1] == (rows["implied"] / half).tolist()
    assert "three give a fourth, alone" not in lines(left)
    assert lines(right)["three give a fourth, alone"][1] == rows["chains_only"].tolist()
    assert title(left) == "$C_6$: linear closure"


def test_figure_l_shows_the_first_order_and_both_energies_of_the_first_start():
    ratio = np.array([0.3, 0.1, 0.03, 0.003])
    limits = {"start": np.repeat([0, 1], 4), "rate_ratio": np.tile(ratio, 2),
              "largest_distance": np.concatenate([2 * ratio, 3 * ratio**1.1])}  # fmt: skip
    keys = [(s, r, t) for s in (0, 1) for r in ratio for t in (0.0, 0.1)]
    start, rates, time = (np.array(one) for one in zip(*keys, strict=True))
    energies = {"start": start, "rate_ratio": rates, "time": time, "internal_energy": 1 + np.arange(16.0),
                "effective": 2 + np.arange(16.0) ** 2}  # fmt: skip
    tables = {"limits": limits, "energies": energies}
    left, right = figure_16._draw_emergence(2, tables)["liu-L"].get_axes()
    for n in range(2):
        own = limits["start"] == n
        np.testing.assert_allclose(left.lines[n].get_xydata(), pairs(ratio, limits["largest_distance"][own]))
    x, y = lines(left)["slope 1"]
    np.testing.assert_allclose(y, limits["largest_distance"][-1] / ratio[-1] * np.array(x))
    dotted = [line for line in right.lines if line.get_linestyle() == ":"]
    for line, r in zip(dotted, (0.3, 0.03, 0.003), strict=True):
        here = (rates == r) & (start == 0)
        assert lines(right)[rf"$\eta_A/\eta_x$ = {r:.3g}"] == (
            time[here].tolist(),
            energies["internal_energy"][here].tolist(),
        )
        assert line.get_ydata().tolist() == energies["effective"][here].tolist()
    slow = rates == 0.003
    gap = np.abs(energies["internal_energy"] / energies["effective"] - 1)[slow].reshape(2, 2).mean(axis=1)
    assert figure_16._emerges(tables, 0.95) == mean(gap)
    slopes = np.polyfit(
        *(np.log(limits[k][limits["rate_ratio"] < 0.07]) for k in ("rate_ratio", "largest_distance")), 1
    )
    assert figure_16._order(tables, 0.95).estimate == pytest.approx(slopes[0])


def test_figure_4c_follows_embeddings_in_units_of_their_own_time():
    setting = paths.Flows(sets=4, multiples=5, frames=21)
    made = paths.trajectories(Run(setting, "quick"))
    rows = made.columns()["flows"]
    left, right = made.figures["liu-4c"].get_axes()
    assert len(left.lines) == 12
    assert [line.get_xdata()[0] for line in left.lines[10:]] == [1, 3]
    E = np.array([line.get_ydata() for line in left.lines[:10]])
    assert left.lines[0].get_xdata().tolist() == np.linspace(0, 5, 21).tolist()
    np.testing.assert_allclose(E.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(E.std(axis=0), 1)
    full = physics.EffectiveTheory(10)
    quality = [physics.representation_quality(e[:, None], full, paths.DELTA) for e in E.T]
    formed = next((t for t, q in zip(np.linspace(0, 5, 21), quality, strict=True) if q > 0.95), inf)
    assert rows["formed_over_n_h"][0] == pytest.approx(formed)
    assert sum(bar.get_height() for bar in right.patches) == np.isfinite(rows["formed_over_n_h"]).sum()
    assert lines(right)["the paper's 3 $n_h$"][0] == [3, 3]
    n_h = [f"{rows[f'n_h_{name}'][0]:.0f}" for name in ("mean", "sum", "code")]
    assert title(left) == (
        f"$n_h$ = {n_h[0]} steps by Eq. 5; {n_h[1]} without\n$1/|P_0(D)|$; {n_h[2]} of the published code"
    )


def test_figure_4d_shows_the_median_network(monkeypatch):
    rng = np.random.default_rng(3)
    E = rng.normal(size=(3, 4, 10, 1))
    trained = SimpleNamespace(
        steps=np.array([0, 10, 20, 30]), positions=E,
        observables={"steps_to_quality": np.array([[np.nan, 25, 25], [np.nan] * 3, [np.nan, np.nan, 9]])},
    )  # fmt: skip
    monkeypatch.setattr(paths, "train", lambda model, **options: trained)
    monkeypatch.setattr(
        paths, "networks", lambda trained: SimpleNamespace(examples=lambda part: [np.arange(45)] * 3)
    )
    made = paths.trained_trajectories(Run(paths.Paths(nets.ToyAddition(10), 3, 30, 1e-2), "quick"))
    assert made.columns()["networks"]["steps_to_rqi"].tolist() == [25, inf, 9]
    (ax,) = made.figures["liu-4d"].get_axes()
    shown = (E[0, :, :, 0] - E[0, :, :, 0].mean(axis=1, keepdims=True)) / E[0, :, :, 0].std(
        axis=1, keepdims=True
    )
    for token in range(10):
        assert ax.lines[token].get_xdata().tolist() == [0, 10, 20, 30]
        np.testing.assert_allclose(ax.lines[token].get_ydata(), shown[:, token])
    assert ax.lines[10].get_xdata()[0] == 25
    assert [text.get_text() for text in ax.texts][:10] == [str(token) for token in range(10)]
