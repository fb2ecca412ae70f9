"""Columns of the tables beyond the papers from their definitions, also those that no rule reads."""

import numpy as np
import pytest

import nets
import physics
from analysis.circles.fourier import frequency_norms
from analysis.circles.survival import survives
from grokphys.arena.signals import blowup_times
from grokphys.papers.beyond import survivors as votes
from grokphys.papers.beyond import theories
from grokphys.papers.beyond.survivors import Place
from grokphys.papers.recipe import Run
from physics.neurons.spectrum import neuron_spectrum
from physics.theory.operations import random_orders


def test_neurons_and_circles_of_votes_are_those_of_the_start_and_of_the_end():
    place = Place(11, 6, 60)
    found = votes._trained_votes(Run(None, "quick"), place, 5, range(3))
    trained = nets.train(
        nets.EmbeddingMLP(11, 6), runs=3, steps=60, seed=16, weight_decay=0.5, record=60,
        observables=("layers",), device="cpu",
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
    times = blowup_times(start.theta, start.theta_second, start.xi)
    np.testing.assert_array_equal(found["time"], 1 + times.argmin(axis=-1))
    np.testing.assert_allclose(found["haste"], np.mean(1 / times, axis=1), rtol=1e-5)
    turns = np.angle(np.exp(1j * (np.angle(start.theta) + np.angle(start.theta_second) - np.angle(start.xi))))
    np.testing.assert_array_equal(found["phase"], 1 + np.abs(turns).argmin(axis=-1))
    np.testing.assert_array_equal(found["survived"], survives(frequency_norms(trained.final)))


@pytest.mark.parametrize("operation", [physics.Operation(6), physics.Operation(group=physics.symmetric(3))])
def test_orders_are_counted_by_the_samples_that_they_need(operation):
    table = theories.measure(operation, 50, 3)
    orders = random_orders(operation, sets=50, seed=3)
    sizes = physics.critical_sizes(operation, orders=orders)
    assert ("last" in table) == operation.commutes
    assert table["orders"].sum() == 50
    np.testing.assert_allclose(table["fraction"], table["size"] / len(operation.samples))
    last = sizes == theories.last_symbols(operation, orders) if operation.commutes else np.zeros(50, bool)
    kinds = list(zip(sizes.tolist(), last.tolist(), strict=True))
    named = table.get("last", np.zeros(len(table["size"]), bool))
    assert list(zip(table["size"].tolist(), named.tolist(), strict=True)) == sorted(set(kinds))
    for size, late, count in zip(table["size"], named, table["orders"], strict=True):
        assert count == kinds.count((size, bool(late)))
