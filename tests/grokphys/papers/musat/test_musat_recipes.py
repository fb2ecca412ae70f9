"""Musat's recipes: each runs, is what it says, and no statement of it holds by chance."""

from types import SimpleNamespace

import numpy as np
import pytest
from recipe_checks import held_by_chance, made_quickly

import nets
import physics
from grokphys.papers.evidence import joined
from grokphys.papers.judge import judge
from grokphys.papers.musat import (  # noqa: F401  (they register their recipes)
    classifiers,
    figure_06,
    galleries,
    start,
    table_1,
    table_2,
)
from grokphys.papers.musat.ensembles import circles, counted, imperfections, run_by_run, structures_of
from grokphys.papers.recipe import RECIPES, Number, Run
from grokphys.papers.results import rounded

NAMES = [name for name in RECIPES if name.startswith("musat-")]


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_of_musat_runs_and_its_rules_can_be_measured(name):
    tables = rounded(made_quickly(name).columns())
    assert all(rate <= 0.2 for rate in held_by_chance(name, tables, draws=10).values())


def test_counts_hold_what_the_runs_did():
    final = physics.simulate(physics.ParticleSystem(alignment=2.0), runs=30, seed=3).final
    table = counted({"f_a": 2.0}, structures_of(final))
    rows = run_by_run(table)
    circle = physics.is_circle(final)
    assert len(rows["circle"]) == 30
    assert sorted(rows["imperfections"]) == sorted(physics.grid_imperfections(final))
    tables = {"t": table}
    assert circles("t", 100, f_a=2.0)(tables, 0.95).estimate == pytest.approx(100 * circle.mean())
    rest = physics.grid_imperfections(final)[~circle]
    assert imperfections("t")(tables, 0.95).estimate == pytest.approx(rest.mean())


def test_rules_of_table_1_measure_the_networks_that_were_trained():
    setting = RECIPES["musat-table1"].settings["quick"]
    tables = made_quickly("musat-table1").columns()
    trained = nets.train(runs=setting.runs, steps=setting.epochs, weight_decay=1.0, seed=1710, record=[300])
    circle = physics.is_circle(trained.final)
    accuracy = 100 * trained.observables["validation_accuracy"][~circle, -1]
    found = {rule.name: rule.measure(tables, 0.95) for rule in RECIPES["musat-table1"].rules}
    assert found["decay 1: circles (%)"].estimate == pytest.approx(100 * circle.mean())
    imperfect = physics.grid_imperfections(trained.final)[~circle]
    assert found["decay 1: grid imperfections"].estimate == pytest.approx(imperfect.mean())
    own = found["decay 1: accuracy of 82 that are no circles (%)"]
    assert own.estimate == pytest.approx(accuracy.mean())
    related = np.corrcoef(imperfect, accuracy)[0, 1]
    assert found["decay 1: correlation"].estimate == pytest.approx(related)


def test_musats_tables_are_quoted_in_full():
    printed = {
        name: {rule.name: str(rule.printed) for rule in RECIPES[name].rules if isinstance(rule, Number)}
        for name in ("musat-table1", "musat-table2")
    }
    first, second = printed.values()
    assert (len(first), len(second)) == (19, 6)
    assert first["decay 0.6: grid imperfections"] == "39.6 [35.6, 43.6]"
    assert first["decay 0.6: correlation"] == "-0.84 [-0.89, -0.77]"
    assert first["decay 0.6: accuracy of 12 circles (%)"] == "65.9"
    assert first["decay 0: circles (%)"] == "0 [0, 4]"
    assert second["f_a = 2: circles (%)"] == "56 [46, 65]"
    assert second["f_a = 2: grid imperfections of the rest"] == "42.9 [32.8, 53.0]"


def test_each_point_of_the_map_is_followed_to_the_same_time():
    table = table_2._moved(1.0, 12, 0.005, 40)
    system = physics.ParticleSystem(alignment=1.0)
    final = physics.simulate(system, runs=12, seed=1041, steps=400, step_size=0.005).final
    circle = physics.is_circle(final)
    assert table["runs"][table["circle"]].sum() == circle.sum()
    assert sorted(run_by_run(table)["imperfections"]) == sorted(physics.grid_imperfections(final))


def test_a_map_shows_the_network_that_its_table_describes():
    result = made_quickly("musat-3")
    tables = result.columns()
    sums, tokens = tables["sums"], tables["tokens"]
    assert len(sums["a"]) == 153
    assert sums["validates"].sum() == 31
    setting = RECIPES["musat-3"].settings["quick"]
    trained = nets.train(
        runs=setting.runs, steps=300, weight_decay=1.0, seed=4300, record=[300],
        observables=("validation_accuracy", "layers"),
    )  # fmt: skip
    run = int(sums["network"][0])
    right = (sums["class"] == sums["seen"])[sums["validates"]].sum()
    assert right == round(31 * float(trained.observables["validation_accuracy"][run, -1]))
    own = tokens["network"] == run
    np.testing.assert_allclose(np.stack([tokens["x"], tokens["y"]], axis=1)[own], trained.final[run])
    np.testing.assert_allclose(
        classifiers._clustered(tables), 1 - physics.grid_imperfections(trained.final) / 153
    )


def test_pair_sums_of_a_circle_lie_on_lines_and_random_ones_do_not():
    angle = 2 * np.pi * 3 * np.arange(17) / 17
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rng = np.random.default_rng(5)
    assert classifiers.aligned(circle[None])[0] == pytest.approx(1)
    mixed = np.stack([circle[rng.permutation(17)] for _ in range(200)])
    assert classifiers.aligned(mixed).max() < 0.9
    tables = {
        "tokens": {
            "network": np.zeros(17, int), "token": np.arange(17), "x": circle[:, 0], "y": circle[:, 1],
            "circle": np.ones(17, bool),
        }
    }  # fmt: skip
    assert classifiers._of(True, lambda t: classifiers.aligned(classifiers._embeddings(t)))(
        tables, 0.95
    ).estimate == pytest.approx(1)


def as_printed(runs, *, seed=0, shift=0.0):
    """Networks of the numbers that Table 1 prints, or with more imperfections."""
    rng = np.random.default_rng(seed)
    parts = []
    for decay, row in start.TABLE_1.items():
        z, noise = rng.normal(size=(2, runs))
        circle = np.arange(runs) < round(runs * row.circles / 100)
        r = row.correlation.estimate
        rest = row.rest_accuracy + 15 * (r * z + (1 - r * r) ** 0.5 * noise)
        accuracy = np.where(circle, np.nan_to_num(row.circle_accuracy) + 15 * noise, rest)
        columns = {"weight_decay": np.full(runs, decay), "network": np.arange(runs), "circle": circle}
        bad = row.imperfections.estimate + shift + 20 * z
        parts.append(columns | {"imperfections": bad, "accuracy": accuracy})
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


@pytest.mark.slow
def test_rules_of_table_1_say_so_where_the_networks_are_the_papers_and_not_by_chance():
    recipe, tables = RECIPES["musat-table1"], {"networks": as_printed(1000)}
    verdicts = {claim.rule.name: claim.verdict for claim in judge(recipe.rules, tables)}
    few = {"decay 0.3: accuracy of 1 circles (%)", "decay 0.6: accuracy of 12 circles (%)"}
    assert set(verdicts.values()) <= {"covered", "holds", "inconclusive"}
    assert {name for name, verdict in verdicts.items() if verdict == "inconclusive"} <= {
        *few, "decay 1: accuracy of 18 circles (%)", "decay 0.3: circles are more accurate",
    }  # fmt: skip
    assert all(rate <= 0.1 for rate in held_by_chance("musat-table1", tables, draws=10).values())
    off = judge(recipe.rules, {"networks": as_printed(1000, shift=30.0)})
    assert sum(claim.verdict == "not covered" for claim in off) == 4


def test_the_start_whose_networks_the_table_speaks_for_is_the_nearer():
    both = [as_printed(400), as_printed(400, seed=1, shift=30.0)]
    rows = {key: np.concatenate([one[key] for one in both]) for key in both[0]}
    rows["start"] = np.repeat(["pytorch", "other"], 1600)
    nearer, each = (rule.measure({"networks": rows}, 0.95) for rule in RECIPES["musat-start"].rules)
    assert nearer.low > 6
    assert each.high < 2


def test_every_table_and_figure_of_musat_has_a_recipe():
    items = " ".join(one.item for one in RECIPES.values() if one.paper == "Musat")
    items = items.replace("Figures 1, 2", "Figure 1 Figure 2")
    for name in [
        "Table 1",
        "Table 2",
        *(f"Figure {n}" for n in range(1, 7)),
        *(f"Appendix {x}" for x in "BDEFG"),
    ]:
        assert name in items


def test_figure_6_shows_the_end_of_each_network_and_the_mean_of_their_course(monkeypatch):
    seen, rng = {}, np.random.default_rng(0)

    def networks(decay, *, runs, seed, epochs, record, observables):
        values = {name: rng.uniform(1, 2, (runs, 4)) for name in observables}
        seen[decay] = (values, seed, epochs, record)
        return SimpleNamespace(steps=np.arange(4) * record, observables=values)

    monkeypatch.setattr(figure_06, "networks", networks)
    setting = figure_06.Setting((0.0, 0.5, 1.0), 3, 80)
    made = RECIPES["musat-6"].make(Run(setting, "quick")).columns()
    assert [seed for _, seed, _, _ in seen.values()] == [6600, 6605, 6610]
    assert {(epochs, every) for _, _, epochs, every in seen.values()} == {(80, 2)}
    assert made["networks"]["weight_decay"].tolist() == [0] * 3 + [0.5] * 3 + [1] * 3
    assert made["course"]["weight_decay"].tolist() == [0] * 4 + [0.5] * 4 + [1] * 4
    assert made["course"]["step"].tolist() == [0, 2, 4, 6] * 3
    for name in ("weight_norm", "bias_norm"):
        end = [row[-1] for values, *_ in seen.values() for row in values[name]]
        assert made["networks"][name].tolist() == end
        course = np.concatenate([sum(values[name]) / 3 for values, *_ in seen.values()])
        np.testing.assert_allclose(made["course"][name], course)
    figure = figure_06._draw(setting, made)["musat-6"]
    lines = [bars.lines[0].get_ydata() for bars in figure.axes[0].containers]
    means = [made["networks"][name].reshape(3, 3).prod(axis=1) ** (1 / 3) for name in figure_06.LABELS]
    np.testing.assert_allclose(lines, means)


def test_what_decay_leaves_is_the_quotient_of_geometric_means():
    rows = {
        "weight_decay": np.repeat([0.0, 0.5, 1.0], 2),
        "weight_norm": np.array([4.0, 9, 1, 1, 1, 4]),
        "bias_norm": np.array([1.0, 4, 7, 7, 0.5, 0.5]),
    }
    weights, biases, more = (rule.measure({"networks": rows}, 0.95) for rule in RECIPES["musat-6"].rules)
    assert weights.estimate == pytest.approx(2 / 6)
    assert biases.estimate == pytest.approx(0.5 / 2)
    assert more.estimate == pytest.approx((0.5 / 2) / (2 / 6))


def test_the_rise_over_f_a_is_the_smallest_one_at_the_smallest_step():
    def rows(f_a, step, share):
        return {"f_a": np.full(100, f_a), "step_size": np.full(100, step), "circle": np.arange(100) < share}

    def smallest(shares):
        parts = [rows(f_a, 0.005, share) for f_a, share in zip((0.5, 1.0, 2.0), shares, strict=True)]
        parts += [rows(f_a, 0.02, 50) for f_a in (0.5, 1.0, 2.0)] + [rows(3.0, 0.005, 0)]
        return table_2._over_f_a({"particles": joined(parts)}, 0.95).estimate

    assert smallest((10, 20, 80)) == pytest.approx(0.1)
    assert smallest((10, 70, 90)) == pytest.approx(0.2)
    assert smallest((40, 20, 90)) == pytest.approx(-0.2)
