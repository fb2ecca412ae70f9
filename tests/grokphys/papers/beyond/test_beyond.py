"""Recipes beyond the papers: each runs, is what it says, and no statement of it holds by chance."""

import numpy as np
import pytest
from recipe_checks import held_by_chance, made_quickly
from scipy.integrate import solve_ivp

from grokphys.papers.beyond import (  # noqa: F401  (they register their recipes)
    octaves,
    pairings,
    predictability,
    scaling,
    seeds,
    selection,
    votes,
)
from grokphys.papers.judge import judge
from grokphys.papers.recipe import RECIPES
from grokphys.papers.results import rounded
from physics import FourierLottery, Operation, critical_sizes
from physics.theory.operations import random_orders

NAMES = [name for name, one in RECIPES.items() if one.module.startswith("grokphys.papers.beyond.")]


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_beyond_the_papers_runs_and_its_rules_can_be_measured(name):
    tables = rounded(made_quickly(name).columns())
    if name == "selection":  # too short to select anything; see below
        return
    assert all(rate <= 0.2 for rate in held_by_chance(name, tables, draws=10).values())


def test_the_critical_fraction_falls_with_the_number_of_symbols():
    small, large = (scaling.critical_fraction(scaling.measure(Operation(p), 200), 0.95) for p in (7, 20))
    assert large.high < small.low


def test_the_interval_of_a_median_holds_it():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        found = scaling.critical_fraction(
            {"fraction": rng.exponential(size=41), "orders": np.ones(41, int)}, 0.95
        )
        hits += found.low <= np.log(2) <= found.high
    assert 275 <= hits <= 297


def test_no_representation_is_complete_while_a_symbol_is_isolated():
    for operation in (Operation(8), Operation(8, modulus=8)):
        orders = random_orders(operation, sets=60)
        last = scaling.last_symbols(operation, orders)
        assert (last <= critical_sizes(operation, orders=orders)).all()
        for order, size in zip(orders, last, strict=True):
            isolated = []
            for count in (size - 1, size):
                samples = operation.samples[order[:count]].tolist()
                labels = operation.label[order[:count]].tolist()
                met = {
                    s
                    for (i, j), c in zip(samples, labels, strict=True)
                    if labels.count(c) > 1
                    for s in (i, j)
                }
                isolated.append(8 - len(met))
            assert isolated[0] > 0 == isolated[1]


# -- predictability, selection, octaves --------------------------------------------------------------------


def networks_that_select(runs=12):
    """A table as the even part would make it: odd activations share, the others select."""
    rng = np.random.default_rng(3)
    setting = RECIPES["selection"].settings["paper"]
    rows = []
    for place in setting.places:
        for kind in setting.kinds:
            strength = {"silu": 2.0, "relu": 2.0}.get(kind.activation, kind.even)
            part = 0.3 + 0.65 / (1 + (strength / 0.8) ** 4)
            rows += [(place.tokens, *kind, n, part + rng.normal(0, 0.01), 0.995) for n in range(runs)]
    names = ("tokens", "activation", "even", "network", "effective", "accuracy")
    return {"networks": dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))}


def test_selection_holds_where_there_is_selection_and_not_by_chance():
    tables = networks_that_select()
    claims = judge(RECIPES["selection"].rules, tables)
    assert {claim.verdict for claim in claims} == {"holds", "withdrawn"}
    assert all(rate <= 0.05 for rate in held_by_chance("selection", tables, draws=20).values())


def test_the_effective_number_counts_equal_circles():
    assert selection.effective_number([[1.0, 1, 1, 0, 0], [2.0, 2, 2, 2, 2]]).tolist() == [3.0, 5.0]


def test_octaves_are_counted_up_to_sign():
    alive = np.zeros((3, 11), bool)
    alive[0, [0, 1, 3]] = True  # 1, 2, 4: two octaves
    alive[1, [10, 0]] = True  # 11 and 22 = -1
    alive[2, [0, 2]] = True  # 1 and 3
    assert selection.octaves(alive, 23).tolist() == [2, 1, 0]
    brute = [
        sum((2 * a - b) % 23 in (0,) or (2 * a + b) % 23 == 0 for a in own for b in own)
        for own in ([1, 2, 4], [11, 1], [1, 3])
    ]
    assert brute == [2, 1, 0]


def test_random_survivors_are_an_octave_apart_as_often_as_at_any_ratio():
    rng = np.random.default_rng(1)
    for tokens in (23, 31, 43, 59):
        K = tokens // 2
        alive = np.array([rng.permutation(np.arange(K) < 5) for _ in range(3000)])
        rows = {"tokens": np.full(3000, tokens), "octaves": selection.octaves(alive, tokens)}
        rows["pairs"] = np.full(3000, 10)
        assert octaves.relative_frequency(rows, 0.999).covers(1.0)


def test_twins_agree_and_agreement_is_of_those_that_survive_in_either(monkeypatch):
    """Small networks, in which nothing dies: the stronger half of the circles stands for the survivors."""
    stronger = lambda signals: signals > np.median(signals, axis=-1, keepdims=True)  # noqa: E731
    monkeypatch.setattr(predictability, "survives", stronger)
    setting = predictability.Setting((selection.Place(11, 12, 60),), 1, (1e-9,), 4, (0,), 100)
    table = predictability._again(setting, setting.places[0], 0)
    names = ["start × (1 ± 1e-09)", *np.repeat(list(predictability.SHARED), 2)]
    assert table["change"].tolist() == names
    assert table["agreement"][0] == 1.0
    assert table["agreement"].min() < 1.0
    assert predictability.agreement([True, True, False], [True, False, True]) == 1 / 3
    assert predictability.agreement([False, False], [False, False]) == 0


def test_a_predictor_that_sees_the_end_is_right_and_one_that_sees_nothing_is_not():
    rng = np.random.default_rng(0)
    final = np.array([rng.permutation(np.arange(15) < 4) for _ in range(200)])
    knows = predictability.agreement(predictability.strongest(final + 0.0, final), final)
    guesses = predictability.agreement(predictability.strongest(rng.normal(size=final.shape), final), final)
    assert knows.min() == 1.0
    assert 0.1 < guesses.mean() < 0.25


def test_neurons_that_read_tokens_alike_are_those_of_the_lottery():
    rng = np.random.default_rng(2)
    theta, xi = rng.standard_normal((2, 6, 11)) + 1j * rng.standard_normal((2, 6, 11))
    wanted = FourierLottery(23, coupling=1.0).blowup_times(theta, xi)
    found = votes.blowup_times(2**0.5 * theta, 2**0.5 * theta, 2 * xi)  # whose dθ/dt has no factor of two
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_neurons_that_read_tokens_apart_blow_up_at_that_time():
    rng = np.random.default_rng(3)
    start = rng.standard_normal((3, 6)) + 1j * rng.standard_normal((3, 6))
    times = votes.blowup_times(*start)
    assert 0 < np.sum((start[0] * start[1] * start[2].conj()).real < 0) < 6
    for a, b, x, time in zip(*start, times, strict=True):

        def slope(_, state):
            a, b, x = state
            return [b.conjugate() * x, a.conjugate() * x, a * b]

        late = solve_ivp(slope, (0, 0.999 * time), np.array([a, b, x]), "DOP853", rtol=1e-10, atol=1e-12)
        # All three grow as 1/(t* - t), in the end.
        np.testing.assert_allclose(np.abs(late.y[:, -1]) * 0.001 * time, 1, atol=0.01)


def a_vote(*, follow, tell, seed=0):
    """Tables as if so many neurons followed t*, and votes told the survivors with so little noise."""
    rng = np.random.default_rng(seed)
    tables = {"neurons": [], "circles": []}
    for place in RECIPES["votes"].settings["paper"].places:
        K, runs = place.tokens // 2, 20
        networks = np.arange(runs) + 1000 * place.tokens
        alive = np.array([rng.permutation(np.arange(K) < 5) for _ in networks])
        signal, time = rng.normal(size=alive.shape), rng.integers(1, K + 1, (runs, votes.ROWS))
        chosen = np.where(rng.random(time.shape) < follow, time, rng.integers(1, K + 1, time.shape))
        known = tell * alive + rng.normal(size=alive.shape)
        others = {name: rng.integers(1, K + 1, time.shape) for name in ("magnitude", "phase")}
        pure = rng.random(time.shape) < follow
        neurons = {"chosen": chosen, "time": time, "single": pure, "single_at_start": ~pure, **others}
        circles = {"signal": signal, "votes": known, "haste": known, "survived": alive}
        for table, columns in (("neurons", neurons), ("circles", circles)):
            shape = next(iter(columns.values())).shape
            columns["network"] = np.broadcast_to(networks[:, None], shape)
            columns["tokens"] = np.full(shape, place.tokens)
            tables[table].append({name: values.ravel() for name, values in columns.items()})
    return {
        table: {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for table, parts in tables.items()
    }


def test_votes_hold_where_neurons_follow_and_tell_and_by_chance_nowhere():
    tables = a_vote(follow=0.99, tell=9.0)
    assert {claim.verdict for claim in judge(RECIPES["votes"].rules, tables)} == {"holds"}
    by_chance = held_by_chance("votes", tables, draws=20)
    assert len(by_chance) == len(RECIPES["votes"].rules)
    assert all(rate <= 0.1 for rate in by_chance.values()), by_chance
    nothing = judge(RECIPES["votes"].rules, a_vote(follow=0.0, tell=0.0))
    assert "holds" not in {claim.verdict for claim in nothing}


@pytest.mark.slow
def test_the_critical_fraction_comes_down_to_the_coupon_collectors():
    for modular in (False, True):
        found = {
            p: scaling.measure(Operation(p, modulus=p if modular else None), 4000, p)
            for p in (5, 10, 20, 40, 60)
        }
        r_c = np.array([scaling.critical_fraction(rows, 0.95).estimate for rows in found.values()])
        excess = r_c * np.array(list(found)) / np.log(list(found))
        assert (np.diff(r_c) < 0).all()
        assert (np.diff(excess[1:]) < 0).all()  # toward ln(p)/p from above
        assert excess[-1] > 1
        last = [np.average(rows["last"], weights=rows["orders"]) for rows in found.values()]
        assert last[-1] > 0.8 > last[1]
