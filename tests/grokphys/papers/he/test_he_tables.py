"""Every column of the tables of He's recipes from its definition, also those that no rule reads."""

import numpy as np

import nets
from grokphys.papers.he import neurons
from physics.neurons.spectrum import neuron_spectrum


def test_neurons_of_the_lottery_are_foretold_by_their_start_and_judged_by_their_end():
    cell = neurons.Cell(11, "relu", 12, "adamw", 0.3, 0.5, 0.75, 1e-2, 40)
    found = neurons._trained_cell(cell, 2, 111)
    trained = nets.train(
        nets.TwoLayer(11, 12, "relu", scale=0.3), runs=2, steps=40, seed=111, optimizer="adamw",
        learning_rate=1e-2, weight_decay=0.5, train_fraction=0.75, betas=(0.9, 0.98), record=40,
        observables=("train_accuracy", "layers"), device="cpu",
    )  # fmt: skip
    outputs = trained.observables["layers.output.weight"]
    start, end = (neuron_spectrum(trained.positions[:, k], outputs[:, k]) for k in (0, 1))
    np.testing.assert_array_equal(found["chosen"], end.frequency)
    assert (end.frequency != start.frequency).any()
    np.testing.assert_array_equal(found["single"], np.asarray(end.kind) == "single")
    for name, values in neurons.foretold(start.theta, start.xi).items():
        np.testing.assert_array_equal(found[name], values)
    np.testing.assert_array_equal(found["accuracy"], trained.observables["train_accuracy"][:, -1])


def test_chance_of_the_lottery_counts_the_living_and_leaves_other_predictors():
    rows = {"network": np.repeat([0, 1], 4), "chosen": np.array([1, 1, 0, 2, 0, 0, 0, 0])}
    rows |= {name: np.array([1, 1, 1, 1, 2, 2, 2, 2]) for name in neurons.READERS}
    networks = {"network": np.array([1, 0]), "time": np.zeros(2), "phase": np.array([0.3, 0.4])}
    tables = {"neurons": rows, "networks": networks}
    found = neurons.by_chance("time")(tables, np.random.default_rng(0))["networks"]
    np.testing.assert_allclose(found["time"], [0, 2 / 3])
    assert found["phase"].tolist() == [0.3, 0.4]


def test_frequencies_count_their_neurons():
    rng = np.random.default_rng(0)
    W_in, W_out = rng.normal(size=(2, 2, 11, 30)), rng.normal(size=(2, 2, 30, 11))
    tables = neurons.tables_of(W_in, W_out)
    rows, own = tables["frequencies"], tables["neurons"]
    assert rows["network"].tolist() == [0] * 5 + [1] * 5
    assert rows["frequency"].tolist() == [1, 2, 3, 4, 5] * 2
    assert own["network"].tolist() == [0] * 30 + [1] * 30
    angle = 2 * np.pi * np.outer(np.arange(11), np.arange(1, 6)) / 11
    for run in range(2):
        into, out = (np.exp(-1j * angle).T @ one for one in (W_in[run, -1], W_out[run, -1].T))
        strongest = np.abs(into).argmax(axis=0)
        here = own["network"] == run
        assert own["frequency"][here].tolist() == (1 + strongest).tolist()
        power = np.abs(into) ** 2
        np.testing.assert_allclose(own["share"][here], power.max(axis=0) / power.sum(axis=0))
        spectrum = neuron_spectrum(W_in[run, -1], W_out[run, -1])
        for k, neuron in enumerate(np.flatnonzero(here)):
            at = strongest[k]
            for name, values in (("input_phase", spectrum.phase), ("output_phase", spectrum.output_phase),
                                 ("input_magnitude", spectrum.magnitude),
                                 ("output_magnitude", spectrum.output_magnitude)):  # fmt: skip
                assert own[name][neuron] == values[k, at]
        ratio = own["output_magnitude"][here] / np.abs(out)[strongest, np.arange(30)]
        np.testing.assert_allclose(ratio, ratio[0])
        for frequency in range(1, 6):
            (row,) = np.flatnonzero((rows["network"] == run) & (rows["frequency"] == frequency))
            assert rows["neurons"][row] == np.sum(strongest == frequency - 1)
    right = tables["activations"]
    names = [*neurons.EVEN, *neurons.ODD]
    assert right["network"].tolist() == [0] * 7 + [1] * 7
    assert right["activation"].tolist() == names * 2
    odd = W_in[1, -1].astype(float)
    answers = [
        np.argmax((odd[a] + odd[b]) ** 3 @ W_out[1, -1]) == (a + b) % 11 for a in range(11) for b in range(11)
    ]
    assert right["accuracy"][7 + names.index("x³")] == np.mean(answers)
