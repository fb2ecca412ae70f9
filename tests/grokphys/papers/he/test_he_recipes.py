"""The recipes of He et al.: each runs, measures what it says, and no statement of it holds by chance."""

import numpy as np
import pytest
from recipe_checks import held_by_chance, made_quickly

from grokphys.papers.evidence import joined, where
from grokphys.papers.he import grokking, lottery, neurons, waves  # importing them registers their recipes
from grokphys.papers.judge import judge
from grokphys.papers.recipe import RECIPES, Run
from grokphys.papers.results import rounded

NAMES = [name for name, one in RECIPES.items() if one.module.startswith("grokphys.papers.he.")]


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_runs_and_its_rules_can_be_measured(name):
    tables = rounded(made_quickly(name).columns())
    assert all(rate <= 0.2 for rate in held_by_chance(name, tables, draws=10).values())


# -- the lottery -------------------------------------------------------------------------------------------


def a_lottery(*, follow, pure=0.6, runs=5, seed=0):
    """Tables as if neurons followed the blow-up time with the probability `follow` of their cell."""
    rng = np.random.default_rng(seed)
    networks, table = [], []
    for number, cell in enumerate(RECIPES["lottery"].settings["paper"].cells):
        K, own = cell.tokens // 2, number * runs + np.arange(runs)
        drawn = {name: rng.integers(1, K + 1, (runs, 64)) for name in (*lottery.READERS, "other")}
        drawn["magnitude"] = np.where(rng.random((runs, 64)) < 0.4, drawn["time"], drawn["magnitude"])
        chosen = np.where(rng.random((runs, 64)) < follow(cell), drawn["time"], drawn["other"])
        part = {"chosen": chosen, **{name: drawn[name] for name in lottery.READERS}}
        part["single"] = rng.random((runs, 64)) < pure
        label = {**cell._asdict(), "series": cell.series}
        networks.append(
            {name: np.full(runs, value) for name, value in label.items()}
            | {"network": own, "accuracy": np.ones(runs), **lottery._shares(part)}
        )
        first = {name: part[name].ravel() for name in ("chosen", *lottery.READERS)}
        table.append(first | {"network": np.repeat(own, 64)})
    return {"networks": joined(networks), "neurons": joined(table)}


def verdicts(name, tables):
    return {claim.rule.name: claim.verdict for claim in judge(RECIPES[name].rules, tables)}


def test_the_lottery_holds_where_neurons_follow_the_blow_up_time():
    tables = a_lottery(follow=lambda cell: 1.0 - 0.1 * cell.scale * (cell.optimizer == "sgd"))
    found = verdicts("lottery", tables)
    for name, verdict in found.items():
        assert verdict == ("does not hold" if name.startswith("the best phase") else "holds"), name
    by_chance = held_by_chance("lottery", tables, draws=30)
    assert all(rate <= 0.1 for rate in by_chance.values()), by_chance


def test_the_lottery_does_not_hold_where_they_choose_at_random():
    found = verdicts("lottery", a_lottery(follow=lambda cell: 0.0))
    assert "holds" not in found.values()


def test_the_dead_do_not_count():
    part = {
        "chosen": np.array([[3, 0, 2, 1], [1, 1, 1, 1]]),
        "time": np.array([[3, 1, 1, 1], [1, 2, 2, 2]]),
        "magnitude": np.array([[3, 3, 2, 1], [2, 2, 2, 2]]),
        "phase": np.ones((2, 4), int),
        "single": np.array([[True, False, True, True], [False] * 4]),
    }
    found = lottery._shares(part)
    np.testing.assert_allclose(found["time"], [2 / 3, 1 / 4])
    np.testing.assert_allclose(found["magnitude"], [1, 0])
    np.testing.assert_allclose(found["dead"], [1 / 4, 0])
    np.testing.assert_allclose(found["single"], [3 / 4, 0])


def test_what_is_foretold_is_the_definition():
    """The smallest misalignment and the largest magnitude by loops, the blow-up by integrating the flow."""
    rng = np.random.default_rng(2)
    theta, xi = (rng.standard_normal((2, 6, 5)) + 1j * rng.standard_normal((2, 6, 5)) for _ in range(2))
    found = lottery.foretold(theta, xi)
    for place in np.ndindex(2, 6):
        angles = [
            abs(np.angle(np.exp(1j * (2 * np.angle(t) - np.angle(x)))))
            for t, x in zip(theta[place], xi[place], strict=True)
        ]
        assert found["phase"][place] == 1 + np.argmin(angles)
        assert found["magnitude"][place] == 1 + np.argmax(np.abs(theta[place]))
    t, x, winner = theta.copy(), xi.copy(), np.zeros((2, 6), int)
    for _ in range(200_000):
        step = 1e-3 / (1 + np.abs(t).max(axis=-1, keepdims=True) + np.abs(x).max(axis=-1, keepdims=True))
        middle = t + step * t.conj() * x, x + step * t**2 / 2
        t, x = t + 2 * step * middle[0].conj() * middle[1], x + step * middle[0] ** 2
        grown = np.abs(t).max(axis=-1) > 300
        winner = np.where((winner == 0) & grown, 1 + np.abs(t).argmax(axis=-1), winner)
        if (winner > 0).all():
            break
    np.testing.assert_array_equal(found["time"], winner)


# -- neurons and grokking ----------------------------------------------------------------------------------


def cosines(p, frequencies, phases, magnitude=1.0):
    return magnitude * np.cos(2 * np.pi * np.outer(np.arange(p), frequencies) / p + phases)


def test_the_neurons_of_a_network_that_is_made_as_they_say():
    """Waves of one frequency, aligned, balanced and of even phases add with every even activation."""
    p, rounds = 23, 24
    frequencies = np.tile(np.arange(1, 12), rounds)
    phases = np.repeat(2 * np.pi * (np.arange(rounds) + 0.1) / rounds, 11)
    rng = np.random.default_rng(0)
    weights_in, weights_out = [], []
    for _ in range(5):
        random = rng.standard_normal((2, p, len(phases)))
        weights_in.append([random[0], cosines(p, frequencies, phases)])
        weights_out.append([random[1].T, cosines(p, frequencies, 2 * phases).T])
    tables = neurons.tables_of(np.array(weights_in), np.array(weights_out))
    found = verdicts("he-neurons", tables)
    bounded = {rule.name for rule in RECIPES["he-neurons"].rules if np.isfinite(rule.possible).all()}
    for name, word in found.items():
        too_few = name in bounded  # five networks that are all alike
        assert name.startswith("accuracy with") or word == ("inconclusive" if too_few else "holds"), name
    by_chance = held_by_chance("he-neurons", tables, draws=20)
    assert all(rate == 0 for rate in by_chance.values()), by_chance
    rows = where(tables["neurons"], network=0)
    np.testing.assert_allclose(neurons.misalignment(rows), 0, atol=1e-9)


def test_the_stages_are_read_from_the_course():
    rows = {
        "network": np.repeat([0, 1], 4),
        "step": np.tile([0, 10, 20, 30], 2),
        "train_accuracy": np.array([0, 1.0, 1, 1, 0, 0.5, 0.9, 0.9]),
        "validation_accuracy": np.array([0.97, 0.7, 0.8, 0.96, 0, 0.2, 0.96, 0.97]),
        "unseen_accuracy": np.array([0, 0.05, 0.5, 1, 0, 0, 1, 1]),
        "purity": np.array([0.1, 0.4, 0.6, 0.9, 0.1, 0.2, 0.3, 0.4]),
        "norm": np.array([1.0, 5, 9, 8, 1, 2, 3, 4]),
    }
    table = grokking.stages(rows)
    np.testing.assert_array_equal(table["step_I"], [10, np.nan])
    np.testing.assert_array_equal(table["step_II"], [30, np.nan])
    np.testing.assert_array_equal(table["validation_accuracy_I"], [0.7, np.nan])
    np.testing.assert_array_equal(table["unseen_accuracy_III"], [1, 1])
    np.testing.assert_array_equal(table["largest_norm"], [9, 4])


@pytest.mark.slow
def test_the_exact_flow_names_the_winners_of_gradient_descent():
    """Other seeds than those of the published run."""
    made = RECIPES["lottery"].make(Run(lottery.Setting((lottery._flow(0.1),), 3), "quick"))
    networks = made.columns()["networks"]
    assert networks["time"].mean() > 0.8
    assert networks["time"].mean() > networks["magnitude"].mean() + 0.2
    assert networks["phase"].mean() < 0.4


def test_waves_follow_the_exact_flow_and_keep_their_frequency():
    tables = made_quickly("he-waves").columns()
    rows = where(tables["neurons"], activation="quadratic")
    assert rows["deviation"].max() < 0.01
    assert rows["kept"].min() > 0.9999
    relu = where(tables["neurons"], activation="relu")
    assert 0.9 < relu["kept"].mean() < 0.9999
    assert waves._mean("third", "relu")(tables, 0.95).estimate == pytest.approx(1 / 9, abs=0.03)
