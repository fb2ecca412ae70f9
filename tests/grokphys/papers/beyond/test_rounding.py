"""Tables and measures of the recipe "rounding" from their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_checks import table, text_of

import nets
from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import agreement, survives
from grokphys.papers.beyond import rounding
from grokphys.papers.beyond.rounding import DOUBLE, STABLE, USUAL, Setting
from grokphys.papers.beyond.selection import Place
from grokphys.papers.catalogue import recipes
from grokphys.papers.evidence import joined
from grokphys.papers.judge import judge
from grokphys.papers.recipe import Run

PLACE = Place(11, 8, 900)


@given(st.lists(st.floats(1e-8, 10.0), min_size=2, max_size=9))
def test_the_largest_rise_is_from_the_least_loss_before(losses):
    pairs = [later / earlier for n, later in enumerate(losses) for earlier in losses[:n]]
    assert rounding.largest_rise([losses, losses]) == pytest.approx([np.log10(max(pairs))] * 2, abs=1e-12)


def test_a_loss_that_falls_by_a_tenth_never_rises():
    np.testing.assert_allclose(rounding.largest_rise(0.1 ** np.arange(6)), -1.0)


def test_a_jump_is_tenfold():
    losses = [[1.0, 0.1, 0.9, 1.1, 9.0], [3.0, 2.0, 1.0, 0.5, 4.0], [1.0, 11.0, 0.1, 0.2, 1.1]]
    found = rounding.first_jump(losses, [10, 20, 30, 40, 50])
    np.testing.assert_array_equal(found, [40, np.nan, 20])


@pytest.mark.parametrize(
    ("arithmetic", "options"),
    [
        (USUAL, {"dtype": "float32", "stable_gradient": False}),
        (STABLE, {"dtype": "float32", "stable_gradient": True}),
        (DOUBLE, {"dtype": "float64", "stable_gradient": False}),
    ],
)
def test_networks_are_those_of_their_arithmetic(arithmetic, options):
    found = rounding._trained(PLACE, arithmetic, range(1, 3))
    trained = nets.train(
        nets.EmbeddingMLP(11, 8), runs=2, first_run=1, steps=900, seed=48_011, weight_decay=0.5,
        record=3, observables=("train_loss", "validation_accuracy"), **options,
    )  # fmt: skip
    alive = survives(fourier_signals(trained.positions))
    np.testing.assert_array_equal(found["step"], [trained.steps] * 2)
    np.testing.assert_array_equal(found["loss"], trained.observables["train_loss"])
    np.testing.assert_array_equal(found["alive"], alive)
    np.testing.assert_array_equal(found["accuracy"], trained.observables["validation_accuracy"][:, -1])


def test_each_network_is_in_the_table_once_for_each_arithmetic_and_compared_with_its_own_double(monkeypatch):
    steps = np.arange(0, 11_000, 1000)

    def alive_of(numbers, kind):
        late = np.arange(4) <= ((numbers + kind) % 3)[:, None]
        alive = np.repeat(late[:, None], len(steps), axis=1)
        alive[:, steps == 5000] = [True, False, True, True]
        alive[:, steps < 5000] = True
        return alive

    def made(place, arithmetic, part):
        number = np.array(part)
        kind = (USUAL, STABLE, DOUBLE).index(arithmetic)
        loss = np.where(steps == 10_000, 10.0 ** (kind - number)[:, None], 1e-3)
        loss = np.where(steps < 5000, 1e-9, loss)  # a rise at step 5000, which is not counted
        return {
            "step": np.tile(steps, (len(part), 1)),
            "loss": loss,
            "alive": alive_of(number, kind),
            "accuracy": np.full(len(part), 0.5 + kind / 10),
        }

    monkeypatch.setattr(rounding, "_trained", made)
    setting = Setting((Place(31, 4, 10_000), Place(59, 4, 10_000)), (11, 3), (2, 3))
    tables = rounding.rounding(Run(setting, "quick")).columns()
    rows = tables["networks"]
    for tokens, runs, doubles in ((31, 11, 2), (59, 3, 3)):
        for kind, arithmetic in enumerate((USUAL, STABLE, DOUBLE)):
            own = (rows["tokens"] == tokens) & (rows["arithmetic"] == arithmetic)
            numbers = np.arange(doubles if arithmetic == DOUBLE else runs)
            alive = alive_of(numbers, kind)
            np.testing.assert_array_equal(rows["network"][own], 1000 * tokens + numbers)
            np.testing.assert_allclose(rows["rise"][own], np.maximum(3 + kind - numbers, 0))
            np.testing.assert_array_equal(rows["jump"][own], np.where(kind - numbers > -2, 10_000, np.nan))
            np.testing.assert_allclose(rows["loss"][own], kind - numbers)
            np.testing.assert_array_equal(rows["circles"][own], (numbers + kind) % 3 + 1)
            np.testing.assert_array_equal(rows["died"][own], (alive[:, 5] & ~alive[:, -1]).sum(axis=1))
            np.testing.assert_allclose(rows["accuracy"][own], 0.5 + kind / 10)
            shared = agreement(alive[:, -1], alive_of(numbers, 2)[:, -1])
            np.testing.assert_allclose(rows["as_double"][own], np.where(numbers < doubles, shared, np.nan))
            course = (tables["course"]["tokens"] == tokens) & (tables["course"]["arithmetic"] == arithmetic)
            np.testing.assert_array_equal(tables["course"]["step"][course], steps)
            np.testing.assert_allclose(tables["course"]["first_loss"][course], [-9] * 5 + [-3] * 5 + [kind])
            np.testing.assert_allclose(
                tables["course"]["circles"][course], alive[:doubles].sum(axis=2).mean(axis=0)
            )


def gap(tables, *what, **options):
    one = rounding._gap(31, *what, **options)(tables, 0.95)
    return one.estimate, one.count


def test_gaps_are_between_the_same_networks():
    rows = {
        "tokens": np.array([31, 31, 31, 31, 31, 31, 59]),
        "network": np.array([2, 0, 1, 1, 2, 0, 1]),
        "arithmetic": np.array([USUAL, USUAL, USUAL, STABLE, STABLE, DOUBLE, DOUBLE]),
        "rise": np.array([5.0, 9.0, 3.0, 1.0, 6.0, 4.0, 70.0]),
    }
    tables = {"networks": rows}
    assert gap(tables, "rise", USUAL, STABLE) == (0.5, 2)
    assert gap(tables, "rise", STABLE, USUAL) == (-0.5, 2)
    assert gap(tables, "rise", USUAL, STABLE, sizes=True) == (1.5, 2)
    assert gap(tables, "rise", USUAL, DOUBLE) == (5.0, 1)
    assert gap(tables, "rise", STABLE, DOUBLE)[1] == 0
    assert gap(tables, "rise", USUAL, USUAL, also=STABLE) == (0.0, 2)
    assert rounding._rise(31, USUAL)(tables, 0.95).estimate == pytest.approx(17 / 3)


def test_a_network_that_diverged_is_not_left_out():
    rows = {
        "tokens": np.full(4, 31),
        "network": np.array([0, 1, 0, 1]),
        "arithmetic": np.array([USUAL, USUAL, STABLE, STABLE]),
        "rise": np.array([5.0, np.nan, 1.0, 1.0]),
    }
    assert np.isnan(gap({"networks": rows}, "rise", USUAL, STABLE)[0])


def networks(tokens, **columns):
    """Twelve networks of one modulus; each column has a value for each arithmetic, and noise."""
    noise = np.random.default_rng(1).uniform(-0.01, 0.01, 36)
    other = {"rise": (5, 0, 0), "died": (2, 0, 0), "loss": (-3, -7, -7), "as_double": (0.5, 1, 1)}
    values = {name: np.repeat(np.array(own, float), 12) + noise for name, own in (other | columns).items()}
    where_ = {"tokens": np.full(36, tokens), "network": np.tile(np.arange(12), 3)}
    return where_ | {"arithmetic": np.repeat([USUAL, STABLE, DOUBLE], 12)} | values


@pytest.mark.parametrize("tokens", [31, 59])
@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ({}, set()),
        ({"rise": (1, 0, 0)}, {0}),
        ({"rise": (5, 1, 0)}, {1}),
        ({"rise": (5, 0, 1)}, {2}),
        ({"died": (0, 2, 2)}, {3}),
        ({"died": (2, 2, 0)}, {3}),
        ({"loss": (-7, -3, -7)}, {4}),
        ({"loss": (-7, -7, -3)}, {4}),
        ({"loss": (-7, -7, -7.2)}, {4}),
        ({"as_double": (1, 0.5, 1)}, {5}),
        ({"as_double": (1, 1, 0)}, {5}),
    ],
)
def test_each_rule_is_about_its_own_arithmetic_and_modulus(tokens, columns, wrong):
    rules = recipes()["rounding"].rules
    tables = {"networks": joined([networks(31), networks(59)])}
    assert {claim.verdict for claim in judge(rules, tables)} == {"holds"}
    parts = [networks(p, **(columns if p == tokens else {})) for p in (31, 59)]
    claims = judge(rules, {"networks": joined(parts)})
    failed = {n for n, claim in enumerate(claims) if claim.verdict != "holds"}
    assert failed == {n + 6 * (tokens == 59) for n in wrong}


def test_what_rounding_does_to_networks_and_circles():
    notes, findings, rows = text_of("notes"), text_of("findings"), table("rounding", "networks")
    jumps, rises, died = (np.array(rows[name], float) for name in ("jump", "rise", "died"))
    usual = rows["arithmetic"] == "subtraction, 32 bits"
    assert f"the loss of each of the {usual.sum()} networks jumps up by four to eight orders" in findings
    assert np.isfinite(jumps[usual]).all()
    assert np.isnan(jumps[~usual]).all()
    first, last = (
        f"{step // 1000:.0f} {step % 1000:03.0f}" for step in (min(jumps[usual]), max(jumps[usual]))
    )
    assert f"between steps {first} and {last}" in findings
    assert 4 < rises[usual].min() < rises[usual].max() < 8
    assert died[~usual].sum() == 0
    small, large = (usual & (rows["tokens"] == tokens) for tokens in (31, 59))
    assert f"{died[small].sum():.0f} die in {small.sum()} networks of $p = 31$" in findings
    kept = rows["circles"][(rows["tokens"] == 59) & (rows["arithmetic"] == "sum, 32 bits")].sum()
    assert f"{died[large].sum():.0f} of {kept} in {large.sum()} networks of $p = 59$" in findings
    assert f"none of the {kept} circles of `rounding`" in notes
    assert f"with PyTorch's gradient {died[large].sum():.0f} of them do" in notes
