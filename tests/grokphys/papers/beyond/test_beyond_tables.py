"""Columns of the tables beyond the papers from their definitions, also those that no rule reads."""

import numpy as np
import pytest

import nets
import physics
from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from grokphys.papers.beyond import law, pairings, predictability, scaling, votes
from grokphys.papers.beyond.selection import Place
from grokphys.papers.ding.training import Fits
from grokphys.papers.recipe import Run
from physics.neurons.spectrum import neuron_spectrum
from physics.theory.operations import random_orders


def test_neurons_and_circles_of_votes_are_those_of_the_start_and_of_the_end():
    place = Place(11, 6, 60)
    found = votes._trained(place, 5, range(3))
    trained = nets.train(
        nets.EmbeddingMLP(11, 6), runs=3, steps=60, seed=16, weight_decay=0.5, record=60,
        observables=("layers", "validation_accuracy"), device="cpu",
    )  # fmt: skip
    begun, ended = nets.networks(trained, 0), nets.networks(trained)
    through = begun.parameters["hidden2.weight"] @ begun.parameters["output.weight"] / 2
    read, reads = begun.neuron_weights(), ended.neuron_weights()
    start = neuron_spectrum(read["W_in"], through, second=read["second"])
    end = neuron_spectrum(reads["W_in"], second=reads["second"])
    assert (start.frequency != end.frequency).any()
    np.testing.assert_array_equal(found["chosen"], end.frequency)
    np.testing.assert_array_equal(found["single"], np.asarray(end.kind) == "single")
    np.testing.assert_array_equal(found["single_at_start"], np.asarray(start.kind) == "single")
    times = votes.blowup_times(start.theta, start.theta_second, start.xi)
    np.testing.assert_array_equal(found["time"], 1 + times.argmin(axis=-1))
    np.testing.assert_allclose(found["haste"], np.mean(1 / times, axis=1), rtol=1e-5)
    turns = np.angle(np.exp(1j * (np.angle(start.theta) + np.angle(start.theta_second) - np.angle(start.xi))))
    np.testing.assert_array_equal(found["phase"], 1 + np.abs(turns).argmin(axis=-1))
    np.testing.assert_array_equal(found["survived"], survives(fourier_signals(trained.final)))
    np.testing.assert_array_equal(found["accuracy"], trained.observables["validation_accuracy"][:, -1])


def test_pieces_of_votes_go_on_with_the_next_networks():
    whole = [votes._trained(Place(7, 4, 5), 9, part) for part in (range(2), range(2, 3))]
    trained = nets.train(
        nets.EmbeddingMLP(7, 4), runs=3, steps=5, seed=16, weight_decay=0.5, record=5, device="cpu"
    )
    signals = np.concatenate([part["signal"] for part in whole])
    np.testing.assert_allclose(signals, fourier_signals(trained.initial), rtol=1e-5)


@pytest.mark.parametrize("operation", [physics.Operation(6), physics.Operation(group=physics.symmetric(3))])
def test_orders_are_counted_by_the_samples_that_they_need(operation):
    table = scaling.measure(operation, 50, 3)
    orders = random_orders(operation, sets=50, seed=3)
    sizes = physics.critical_sizes(operation, orders=orders)
    assert ("last" in table) == operation.commutes
    assert table["orders"].sum() == 50
    np.testing.assert_allclose(table["fraction"], table["size"] / len(operation.samples))
    last = sizes == scaling.last_symbols(operation, orders) if operation.commutes else np.zeros(50, bool)
    kinds = list(zip(sizes.tolist(), last.tolist(), strict=True))
    named = table.get("last", np.zeros(len(table["size"]), bool))
    assert list(zip(table["size"].tolist(), named.tolist(), strict=True)) == sorted(set(kinds))
    for size, late, count in zip(table["size"], named, table["orders"], strict=True):
        assert count == kinds.count((size, bool(late)))


def test_each_modulus_and_group_has_its_rows_under_its_name():
    rows = scaling.scaling(Run(scaling.Sizes((5, 7), 10), "quick")).columns()["orders"]
    for family, modulus in (("plain addition", lambda p: None), ("addition mod p", lambda p: p)):
        for p in (5, 7):
            own = (rows["family"] == family) & (rows["tokens"] == p)
            wanted = scaling.measure(physics.Operation(p, modulus=modulus(p)), 10, 9100 + p)
            for name, values in wanted.items():
                np.testing.assert_array_equal(rows[name][own], values)
    made = scaling.groups(Run(5, "quick")).columns()["orders"]
    assert set(made) == {"group", "size", "fraction", "orders"}
    for group in (physics.cyclic(6), physics.quaternion()):
        own = made["group"] == group.name
        wanted = scaling.measure(physics.Operation(group=group), 5)
        np.testing.assert_array_equal(made["size"][own], wanted["size"])
        np.testing.assert_array_equal(made["orders"][own], wanted["orders"])


def test_halves_of_the_steps_are_scored_by_the_law_of_the_first(monkeypatch):
    rng = np.random.default_rng(0)
    signals = np.exp(rng.normal(0, 0.05, (2, 41, 3)).cumsum(axis=1)) * 50
    monkeypatch.setattr(law, "fit_networks", lambda run: (None, signals))
    rows = law.forward(Run(Fits(7, (4,), 2, 0, steps=40), "quick")).columns()["forward"]
    assert rows["network"].tolist() == [0, 0, 1, 1]
    assert rows["law"].tolist() == [law.LINEAR, law.LASSO] * 2
    for network, name, early, later in zip(*rows.values(), strict=True):
        x = signals[network]
        fitted = law.law_of(name, x[:21])
        assert early == pytest.approx(fitted.score(x[:21]).derivative)
        assert later == pytest.approx(fitted.score(x[20:]).derivative)


def test_changes_are_those_of_the_first_network_by_a_part_of_its_scatter(monkeypatch):
    asked, real = [], predictability.train

    def train(model, **options):
        asked.append(options)
        return real(model, **options)

    monkeypatch.setattr(predictability, "train", train)
    setting = predictability.Setting((Place(11, 12, 5),), 1, (1e-3, 0.5), 4, (0,), 10)
    table = predictability._again(setting, setting.places[0], 2)
    assert {one["seed"] for one in asked} == {41_000 + 1100 + 2}
    first = nets.train(nets.EmbeddingMLP(11, 12), steps=5, seed=42_102, weight_decay=0.5).initial[0]
    changed = asked[1]["initial"]["embedding"]
    assert asked[1]["run_numbers"] == [0, 0]
    for size, E in zip((1e-3, 0.5), changed, strict=True):
        assert (E - first).std() == pytest.approx(size * first.std(), rel=0.3)
    np.testing.assert_allclose((changed[1] - first) / 500, changed[0] - first, atol=1e-9)
    shared = {name: set(one["shared"]) for name, one in zip(predictability.SHARED, asked[2:], strict=True)}
    for name, kept in shared.items():
        words = set(name.split())
        draws = {"embedding", "layers", "split"}
        fresh = draws if "all" in words else words & draws
        assert kept == draws - fresh
    assert {(one["runs"], one["first_run"]) for one in asked[2:]} == {(2, 1)}
    assert table["tokens"].tolist() == [11] * 12
    assert table["base"].tolist() == [2] * 12


def test_toys_and_particles_are_what_they_are_compared_as(monkeypatch):
    asked = {}
    monkeypatch.setattr(pairings, "train", lambda model, **options: asked.update(model=model, **options))
    pairings._toys(30, 4, 130, 7)
    assert asked["model"] == nets.ToyAddition(10)
    assert {name: asked[name] for name in ("runs", "steps", "seed", "record", "track", "delta")} == {
        "runs": 4, "steps": 130, "seed": 8107, "record": 2, "track": 20, "delta": 0.1,
    }  # fmt: skip
    assert (asked["learning_rate"], asked["embedding_learning_rate"]) == (3e-5, 1e-3)
    assert (asked["train_fraction"], asked["thresholds"]) == (30 / 55, {"quality": 0.95})
