"""What Liu's rules measure, from the definition, on small tables; and what stands in their tables."""

import numpy as np
import pytest
from scipy import stats

import nets
import physics
from analysis.circles.geometry import effective_dimension
from analysis.phases.classification import PHASES
from analysis.stats.intervals import difference, proportion
from grokphys.papers.evidence import rank_correlation
from grokphys.papers.liu import figure_07 as transformer
from grokphys.papers.liu import figures_01_21_22 as components
from grokphys.papers.liu import figures_03_04b_05b as toy
from grokphys.papers.liu import figures_04c_04d as paths
from grokphys.papers.liu import figures_06_13_to_15 as diagrams
from grokphys.papers.liu import figures_08_20 as pictures
from grokphys.papers.liu import figures_12_17_18 as small
from grokphys.papers.liu import measures, planes
from grokphys.papers.recipe import RECIPES, Run

C, G, M, X = PHASES
SMALL = nets.ToyAddition(10, hidden=(8,))

# -- measures ---------------------------------------------------------------------------------------------


def test_a_median_has_the_interval_of_its_order_statistics():
    values = np.append(np.random.default_rng(0).permutation(np.arange(1.0, 20.0)), np.inf)
    found = measures.median(values, 0.95)
    assert (found.estimate, found.count) == (10.5, 20)
    below = next(k for k in range(20) if stats.binom.cdf(k, 20, 0.5) > 0.025)
    assert (found.low, found.high) == (np.sort(values)[below - 1], np.sort(values)[20 - below])
    assert np.isnan(measures.median([1.0, 2.0, 3.0], 0.95).low)
    assert measures.median([], 0.95).count == 0


def test_a_share_crosses_one_half_between_two_places():
    x, successes, trials = [1.0, 2.0, 3.0, 5.0], [1, 3, 8, 10], [10, 10, 10, 10]
    found = measures.crossing(x, successes, trials, 0.95)
    assert (found.estimate, found.count) == (pytest.approx(2 + 0.2 / 0.5), 40)
    sides = [[getattr(proportion(k, 10), side) for k in successes] for side in ("high", "low")]
    for side, curve in zip((found.low, found.high), sides, strict=True):
        k = next(k for k, value in enumerate(curve) if value >= 0.5)
        part = (0.5 - curve[k - 1]) / (curve[k] - curve[k - 1])
        assert side == pytest.approx(x[k - 1] + part * (x[k] - x[k - 1]))
    assert found.low < found.estimate < found.high
    assert np.isnan(measures.crossing(x, [9, 9, 9, 9], trials, 0.95).estimate), "above from the first place"


def test_shares_inside_and_outside_and_the_smallest_of_several():
    hits, inside = np.array([1, 1, 0, 1, 0, 0, 0], bool), np.array([1, 1, 1, 0, 0, 0, 0], bool)
    assert measures.contrast(hits, inside, 0.9) == difference(proportion(2, 3, 0.9), proportion(1, 4, 0.9))
    found = measures.smallest([proportion(3, 9), proportion(1, 4), proportion(6, 8)])
    assert found.estimate == 0.25
    assert (found.low, found.high) == (
        proportion(1, 4).low,
        min(proportion(3, 9).high, proportion(1, 4).high),
    )


# -- planes -----------------------------------------------------------------------------------------------


def plane(cells=6, each=2, seed=0):
    rng = np.random.default_rng(seed)
    column, row, _ = (a.ravel() for a in np.indices((cells, cells, each)))
    return {"column": column, "row": row, "phase": rng.choice(PHASES, len(column)),
            "diagram": np.full(len(column), "a")}  # fmt: skip


def test_thirds_of_a_plane_hold_the_cells_whose_middle_lies_in_them():
    rows = plane()
    corner = planes.inside(rows, planes.LOW, planes.HIGH)
    assert corner.tolist() == [c < 2 and r >= 4 for c, r in zip(rows["column"], rows["row"], strict=True)]
    assert planes.inside(rows).all()
    half = planes.inside(rows, planes.ALL, (0.0, 0.5))
    assert half.tolist() == (rows["row"] < 3).tolist()


def test_densities_are_shares_of_the_networks_of_a_cell():
    rows = {"column": [0, 0, 0, 2], "row": [1, 1, 1, 0], "phase": [M, M, C, G]}
    found = planes._densities(*(np.array(rows[name]) for name in ("column", "row", "phase")))
    assert found.shape == (4, 2, 3)
    assert found[PHASES.index(M), 1, 0] == pytest.approx(2 / 3)
    assert found[PHASES.index(C), 1, 0] == pytest.approx(1 / 3)
    assert found[PHASES.index(G), 0, 2] == 1
    assert found.sum() == 2


def test_borders_of_grokking_are_those_of_cells_side_by_side():
    rows = plane(5, 1, seed=3)
    phase = rows["phase"].reshape(5, 5).T  # by row and column
    contact = {}
    for a, b in planes.BORDERS:
        contact[a, b] = sum(
            {phase[r, c], phase[r + up, c + right]} == {a, b}
            for r in range(5) for c in range(5) for up, right in ((0, 1), (1, 0))
            if r + up < 5 and c + right < 5
        )  # fmt: skip
    share = {name: np.mean(phase == name) for name in PHASES}
    chance = {pair: share[pair[0]] * share[pair[1]] for pair in planes.BORDERS}
    beyond = [
        contact[pair] / sum(contact.values()) - chance[pair] / sum(chance.values()) for pair in planes.BORDERS
    ]
    found = planes._sandwiched(rows["column"], rows["row"], rows["phase"])
    assert found == pytest.approx(min(beyond[0], beyond[1]) - beyond[2])
    places = np.stack([rows["column"], rows["row"]], axis=1)
    to = {k: np.mean([np.hypot(*(places[k] - p)) for p in places[rows["phase"] == M]]) for k in range(25)}
    own = [np.mean([to[k] for k in np.flatnonzero(rows["phase"] == name)]) for name in (C, G)]
    assert measures._distance(rows["column"], rows["row"], rows["phase"]) == pytest.approx(own[0] - own[1])


def test_parts_of_a_plane_are_compared_among_the_networks_of_a_diagram():
    rows = {"row": np.array([0, 1, 2, 2, 3, 4]), "phase": np.array([C, C, G, C, M, G]),
            "diagram": np.array(["a"] * 6)}  # fmt: skip
    other = {name: np.append(values, values[:2]) for name, values in rows.items()}
    other["diagram"][6:] = "b"
    tables = {"networks": other | {"column": np.zeros(8, int)}}
    excess = planes.excess(C, planes.ALL, (0.0, 0.5), "a")(tables, 0.95)
    assert excess == difference(proportion(3, 4), proportion(0, 2))
    counts = [sum(other["phase"] == name) for name in PHASES]
    assert planes.rarest_phase(tables, 0.95).estimate == min(counts) / 8 == 0
    ends = planes.LOW, planes.HIGH
    assert planes.between(C, planes.ALL, *ends, title="a")(tables, 0.95) == difference(
        proportion(2, 2), proportion(0, 2)
    )
    assert planes.between(C, planes.ALL, *ends)(tables, 0.95) == difference(
        proportion(4, 4), proportion(0, 2)
    )
    general = planes.between(planes.GENERAL, planes.ALL, *ends[::-1], title="a")(tables, 0.95)
    assert general == difference(proportion(1, 2), proportion(2, 2))


def test_only_networks_in_the_span_of_the_first_axis_are_compared():
    rows = plane(6, 1, seed=4)
    found = planes.between(M, planes.LOW, planes.HIGH, planes.LOW)({"networks": rows}, 0.9)
    here = rows["column"] < 2
    share = [proportion(int(np.sum(rows["phase"][here & part] == M)), 4, 0.9)
             for part in (rows["row"] >= 4, rows["row"] < 2)]  # fmt: skip
    assert found == difference(*share)
    assert found != planes.between(M, planes.ALL, planes.HIGH, planes.LOW)({"networks": rows}, 0.9)


def test_the_networks_of_a_row_are_numbered_across_the_plane():
    """Network k of a plane is that of the seed of its diagram, whatever row it stands in."""
    models = {"one": SMALL, "two": nets.ToyAddition(10, hidden=(8,), kind="classification")}
    setting = planes.Plane(
        models, ("learning_rate", 1e-3, 1e-1), ("weight_decay", 0.0, 4.0), 2, 2, 60, {}, 5, delay=20.0,
        thresholds={"train_accuracy": 0.2, "validation_accuracy": 0.2},
    )  # fmt: skip
    found = planes._train_cells(setting, "two", 1, range(2))
    one = planes._train_cells(setting, "two", 1, range(1, 2))
    for name, values in one.items():
        np.testing.assert_array_equal(values, found[name][2:], err_msg="a cell alone is that of its row")
    assert found["network"].tolist() == [4, 5, 6, 7]
    assert found["column"].tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(found["learning_rate"], np.repeat([10**-2.5, 10**-1.5], 2))
    np.testing.assert_allclose(found["weight_decay"], 3.0)
    alone = nets.train(
        models["two"], runs=4, first_run=4, seed=6, steps=60, learning_rate=found["learning_rate"].tolist(),
        weight_decay=3.0, record=[60], observables=(), track=1, stop="thresholds",
        thresholds=setting.thresholds,
    )  # fmt: skip
    for part in ("train", "validation"):
        steps = alone.observables[f"steps_to_{part}_accuracy"][:, -1]
        np.testing.assert_array_equal(found[f"{part}_steps"], np.where(np.isfinite(steps), steps, np.inf))
    for phase, train, validation in zip(
        found["phase"], found["train_steps"], found["validation_steps"], strict=True
    ):
        late = validation - train >= 20 if np.isfinite(validation) else None
        assert phase == ((G if late else C) if np.isfinite(validation) and np.isfinite(train)
                         else (M if np.isfinite(train) else X))  # fmt: skip


def test_rates_of_figure_6_are_compared_where_one_network_is_the_faster():
    rows = {"learning_rate": np.full(6, 1e-3), "phase": np.array([C, C, M, C, X, M]),
            "embedding_learning_rate": 1e-3 * np.array([1.0, 30.0, 100.0, 50.0, 0.5, 0.1])}  # fmt: skip
    tables = {"networks": rows}
    measure = {rule.name: rule.measure for rule in RECIPES["liu-6a"].rules}
    assert measure["faster"](tables, 0.95) == difference(proportion(2, 3), proportion(0, 2))
    assert measure["but not too much"](tables, 0.95) == difference(proportion(1, 1), proportion(1, 2))
    # A plane with steps of 10^0.5: seven networks have equal rates, and four the ratio 10^1.5.
    rates = 10 ** np.arange(-5, -1.9, 0.5)
    emb, dec = (axis.ravel() for axis in np.meshgrid(rates * (1 + 1e-9), rates / (1 + 1e-9)))
    phases = np.where(np.isin(np.log10(emb / dec).round(2), (0, 1.5)), C, M)
    plane = {"networks": {"learning_rate": dec, "embedding_learning_rate": emb, "phase": phases}}
    assert measure["faster"](plane, 0.95) == difference(proportion(4, 21), proportion(0, 21))
    assert measure["but not too much"](plane, 0.95) == difference(proportion(4, 15), proportion(0, 6))
    column, row = np.array([0, 0, 2, 2, 1, 0]), np.array([2, 2, 0, 1, 1, 2])
    steps = np.array([900.0, 100.0, 200.0, 400.0, np.inf, np.inf])
    rows |= {"column": column, "row": row, "validation_steps": steps}
    long = diagrams._takes_long(tables, 0.95)
    assert (long.estimate, long.count) == (0.5, 4)  # 900 above the median of 300; two networks tell no limits
    assert (long.low, long.high) == pytest.approx((0, 1))
    many = {name: np.tile(values, 30) for name, values in rows.items()}
    many["validation_steps"] = many["validation_steps"] * np.repeat(np.linspace(0.1, 3, 30), 6)
    long = diagrams._takes_long({"networks": many}, 0.95)
    ordered = np.sort(np.concatenate([many["validation_steps"][k::6] for k in (2, 3)]))
    rank = int(stats.binom.ppf(0.0125, 60, 0.5))
    own = np.concatenate([many["validation_steps"][k::6] for k in (0, 1)])
    over = [int((own > ordered[k]).sum()) for k in (60 - rank, rank - 1)]
    assert over[0] < over[1]
    assert (long.low, long.high) == (proportion(over[0], 60, 0.975).low, proportion(over[1], 60, 0.975).high)
    assert (long.estimate, long.count) == ((own > np.median(ordered)).mean(), 120)
    good = diagrams._generalizes_slowly_decoded(tables, 0.95)
    assert good == difference(proportion(2, 3), proportion(1, 3))


# -- networks ---------------------------------------------------------------------------------------------


def test_a_dimension_is_taken_at_the_start_when_validated_and_at_the_end(monkeypatch):
    curves = {0: [5.0, 6.0, 3.0, 2.0], 1: [4.0, 4.5, 4.2, 4.1], 2: [7.0, 8.0, 9.0, 1.0]}
    steps, reached = np.array([0, 10, 20, 30]), {0: 11.0, 1: np.inf, 2: 30.0}

    def follow(setting, part):
        return {
            "steps": steps,
            "dimension": np.array([curves[k] for k in part]),
            "validation_steps": np.array([reached[k] for k in part]),
        }

    monkeypatch.setattr(transformer, "_follow", follow)
    made = transformer.dimension(Run(transformer.Followed(nets.TokenTransformer(), 3, 30), "quick")).columns()
    assert made["moments"]["network"].tolist() == [0, 0, 0, 2, 2, 2]
    assert made["moments"]["moment"].tolist() == ["start", "generalized", "end"] * 2
    assert made["moments"]["dimension"].tolist() == [5, 3, 2, 7, 1, 1]
    assert made["networks"]["validation_steps"].tolist() == [11, np.inf, 30]
    assert made["curve"]["quartile_2"].tolist() == np.median(list(curves.values()), axis=0).tolist()
    change = transformer._change("start", "end")(made, 0.95)
    assert change.estimate == pytest.approx(np.mean(np.log([2 / 5, 1 / 7])))


def test_transformers_are_followed_one_after_the_other():
    setting = transformer.Followed(nets.TokenTransformer(5, 8, depth=1, width=8), 2, 20, frames=4)
    one = transformer._follow(setting, range(1, 2))
    both = nets.train(
        setting.model, runs=2, seed=700, steps=20, record=5, learning_rate=1e-3, weight_decay=1.0,
        embedding_learning_rate=1e-3, embedding_weight_decay=0.0,
    )  # fmt: skip
    assert one["steps"].tolist() == [0, 5, 10, 15, 20]
    np.testing.assert_allclose(one["dimension"][0], effective_dimension(both.positions[1]), rtol=1e-5)


def test_steps_of_networks_are_measured_in_those_of_their_own_sets():
    made = paths.trained_trajectories(Run(paths.Paths(SMALL, 3, 40, 1e-2), "quick")).columns()
    trained = nets.train(
        SMALL, runs=3, steps=40, seed=3400, learning_rate=1e-2, weight_decay=0.0,
        embedding_learning_rate=1e-3, train_fraction=45 / 55, record=[40], observables=("layers",),
    )  # fmt: skip
    samples = physics.Operation(10).samples
    for k, own in enumerate(nets.networks(trained).examples("train")):
        theory = physics.EffectiveTheory(10, pairs=samples[np.sort(own)])
        assert made["networks"]["n_h_mean"][k] == pytest.approx(theory.grokking_steps(1e-3))
        E = trained.final[k, :, 0]
        here = made["tokens"]["network"] == k
        np.testing.assert_allclose(made["tokens"]["final"][here], (E - E.mean()) / E.std(), rtol=1e-4)
        assert made["tokens"]["token"][here].tolist() == list(range(10))
    line = np.abs([np.corrcoef(trained.final[k, :, 0], np.arange(10))[0, 1] for k in range(3)])
    assert paths._linear(made, 0.95).estimate == pytest.approx(line.mean(), rel=1e-4)


def test_components_of_matrices_are_those_of_a_singular_value_decomposition():
    model = nets.GroupDecoder(hidden=(8,))
    made = RECIPES["liu-17"].make(Run(small.Matrices(model, 2, 20), "quick")).columns()["elements"]
    trained = nets.train(
        model, runs=2, steps=20, seed=1700, learning_rate=1e-5, weight_decay=0.0, record=[20],
        embedding_learning_rate=1e-3, train_fraction=24 / 36,
    )  # fmt: skip
    assert made["element"].tolist() == list(small.PERMUTATIONS) * 2
    for k, E in enumerate(trained.final.astype(float)):
        u, s, _ = np.linalg.svd(E - E.mean(axis=0), full_matrices=False)
        for n in range(3):
            own = made[f"PC{n + 1}"][made["network"] == k]
            np.testing.assert_allclose(np.abs(own), np.abs(u[:, n] * s[n]), atol=1e-6)


def steps_table(fraction, steps, **columns):
    return {"networks": {"fraction": np.array(fraction), "steps_to_rqi": np.array(steps, float), **columns}}


def test_the_best_network_of_each_size_is_resampled_within_its_size():
    rng = np.random.default_rng(4)
    fraction = np.repeat(np.arange(1, 9) / 10, 5)
    steps = np.where(rng.random(40) < fraction - 0.2, 70.0, np.inf)
    found = measures.best_passes(steps_table(fraction, steps), 0.9)
    drawn = []
    for _ in range(4000):
        again = np.concatenate([rng.choice(steps[fraction == place], 5) for place in np.unique(fraction)])
        none = [float(np.isinf(again[fraction == place]).all()) for place in np.unique(fraction)]
        drawn.append(0.1 + np.trapezoid(none, np.unique(fraction)))
    low, high = np.quantile(drawn, [0.05, 0.95])
    assert (found.low, found.high) == (pytest.approx(low, abs=0.051), pytest.approx(high, abs=0.051))
    assert found.low <= found.estimate <= found.high
    assert found.high - found.low > 0.04
    assert found.count == 40
    for passed in (np.inf, 70.0):  # none or all: there is no jump
        assert np.isnan(measures.best_passes(steps_table(fraction, np.full(40, passed)), 0.9).estimate)


def test_rules_of_fractions_on_a_few_networks():
    inf = np.inf
    tables = steps_table([0.2, 0.2, 0.4, 0.4, 0.7, 0.7], [inf, inf, inf, 90, 80, inf])
    assert small.passing_gap(tables, 0.95) == difference(proportion(1, 2), proportion(0, 2))
    assert small.best_passes(tables, 0.95).estimate == pytest.approx(0.2 + 0.1)
    assert toy._quality_transition(tables, 0.95).estimate == pytest.approx(0.2 + 0.15 + 0.15)
    assert toy._quality_jump(tables, 0.95) == difference(proportion(1, 2), proportion(0, 2))
    rows = tables["networks"]
    rows["n_h"] = np.array([inf, 5.0, 6.0, 7.0, 8.0, 9.0])
    assert toy._both(tables)["n_h"].tolist() == [7, 8]
    real, predicted = np.array([0.3, 0.2, 0.9, 0.7, 1.0, 0.8]), np.array([0.2, 0.2, 0.6, 0.5, 1.0, 0.7])
    rows |= {"accuracy": real, "predicted_accuracy": predicted}
    expected = np.corrcoef(real - rows["fraction"], predicted - rows["fraction"])[0, 1]
    assert toy._beyond_the_set(tables, 0.95).estimate == pytest.approx(expected)
    assert toy._distance(tables, 0.95).estimate == pytest.approx(np.abs(real - predicted).mean())
    assert small._bounded(tables, 0.95) == proportion(6, 6)
    rows["accuracy"][2] = 0.59
    assert small._bounded(tables, 0.95) == proportion(5, 6)
    r = rows["fraction"]
    held = stats.kendalltau(r, (predicted - r) / (1 - r)).statistic
    assert small._rises("predicted_accuracy", held_out=True)(tables, 0.95).estimate == pytest.approx(held)
    plain = stats.kendalltau(r, predicted).statistic
    assert small._rises("predicted_accuracy")(tables, 0.95).estimate == pytest.approx(plain)


def test_grokking_is_closer_to_memorization_by_the_distance_of_cells():
    column, row = np.array([0, 3, 0, 1, 1]), np.array([0, 4, 2, 1, 1])
    tables = {"networks": {"column": column, "row": row, "phase": np.array([M, C, M, G, X])}}
    away = [np.mean([np.hypot(c, r), np.hypot(c, r - 2)]) for c, r in ((3, 4), (1, 1))]
    found = measures.closer_to_memorization(tables, 0.95)
    assert found.estimate == pytest.approx(away[0] - away[1])
    for without in (M, C, G):
        rows = {
            name: values[tables["networks"]["phase"] != without]
            for name, values in tables["networks"].items()
        }
        assert np.isnan(measures._distance(*(rows[name] for name in ("column", "row", "phase"))))


def test_decay_helps_if_more_networks_generalise_above_the_lowest_third():
    rows = {"column": np.zeros(9, int), "row": np.arange(9), "diagram": np.full(9, "a")}
    rows["phase"] = np.array([C, M, M, G, C, M, G, X, C])
    found = transformer._decay_helps({"networks": rows}, 0.9)
    assert found == difference(proportion(4, 6, 0.9), proportion(1, 3, 0.9))


def test_networks_that_see_more_images_and_take_fewer_steps_are_ordered():
    images, steps = np.array([50, 50, 100, 200, 400]), np.array([np.inf, 900.0, 950.0, 300.0, 200.0])
    rows = {"images": images, "validation_steps": steps}
    found = pictures._slower_with_less({"networks": rows}, 0.95)
    assert found == rank_correlation(images, steps, 0.95)
    # Of ten pairs one is tied in the images, one rises, and eight fall.
    assert found.estimate == pytest.approx((1 - 8) / np.sqrt(9 * 10))


def test_generalization_that_slows_down_rapidly_is_no_straight_line():
    images = np.repeat(np.arange(50, 110, 10), 3)
    straight = {"images": images, "validation_steps": 10.0 ** (5 - images / 50)}
    assert pictures._bends({"networks": straight}, 0.95).estimate == pytest.approx(0, abs=1e-12)
    steps = np.repeat([np.inf, 900.0, 100, 100, 10, 10], 3)
    found = pictures._bends({"networks": {"images": images, "validation_steps": steps}}, 0.95)
    # What never generalizes counts with ten times 900 steps.
    assert found.estimate == pytest.approx(np.log10([9000, 900]).mean() - 2 * 2 + 1)


def test_rules_of_transformers_on_a_few_networks():
    frames = {
        "network": np.repeat([0, 1], 5),
        "step": np.tile([0, 900, 1000, 2000, 2100], 2),
        "validation_accuracy": np.array([0.1, 0.49, 0.9, 1.0, 1.0, 0.1, 0.2, 0.6, 0.8, 0.8]),
        "structure": np.array([0.1, 0.3, 0.7, 0.9, 0.0, 0.5, 0.5, 0.5, 0.5, 0.5]),
    }
    found = components._emerges({"frames": frames}, 0.95)
    assert (found.estimate, found.count) == (pytest.approx(0.6), 1), "the second never generalises"
    rows = {
        "components": np.tile(["final", "final", "actual", "actual"], 4), "network": np.repeat([0, 1], 8),
        "n": np.tile([2, 4, 8, 8], 4), "step": np.tile(np.repeat([0, 9], 4), 2),
        "validation_accuracy": np.array([1, 1, 1, 1, 0.5, 0.75, 0.99, 1, 1, 1, 1, 1, 0.1, 0.2, 0.98, 1]),
    }  # fmt: skip
    found = components._few_suffice({"accuracy": rows}, 0.95)
    assert (found.estimate, found.count) == (0.75, 1), "the second does not reach 99 %"
