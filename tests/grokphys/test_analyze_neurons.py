import csv

import numpy as np
import pytest
import torch

import nets
import physics
from analysis.circles import (
    diversification,
    excluded_loss,
    logit_spectrum,
    neuron_spectrum,
    restricted_loss,
)
from grokphys.cli.main import main


def table(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_neurons_and_logits_of_many_files(tmp_path, capsys):
    for seed in (0, 1):
        nets.train(
            nets.ConstantAttention(7, hidden=12),
            runs=2,
            steps=50,
            seed=seed,
            observables=("layers",),
            out=tmp_path / f"n{seed}.h5",
        )
    words = ["analyze", str(tmp_path / "n*.h5"), "--neurons", "--logits", "--table", str(tmp_path / "t.csv")]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count("2 runs, neurons of frequencies: ") == out.count("waves of a + b - c explain ") == 2
    rows = table(tmp_path / "t.csv")
    assert len(rows) == 4
    for row in rows:
        networks = nets.networks(physics.load(row["file"])).member(int(row["run"]))
        spectrum = neuron_spectrum(**networks.neuron_weights())
        spread = diversification(spectrum)
        for kind in ("single", "double", "many", "dead"):
            assert int(row[f"neurons_{kind}"]) == (spectrum.kind == kind).sum()
        assert float(row["neuron_purity"]) == pytest.approx(np.nanmean(spectrum.purity), rel=1e-6)
        assert float(row["neuron_gini"]) == pytest.approx(np.nanmean(spectrum.gini), rel=1e-6)
        counts = dict(pair.split(":") for pair in row["neuron_frequencies"].split())
        assert {int(k): int(n) for k, n in counts.items()} == {
            k: n for k, n in enumerate(spread.counts[0], 1) if n
        }
        assert float(row["frequency_diversity"]) == pytest.approx(spread.diversity[0])
        assert float(row["phase_asymmetry_2"]) == pytest.approx(np.nanmean(spread.asymmetry[0, :, 1]))
        misaligned = np.nanmean(np.abs(np.sin(spectrum.misalignment)))
        assert float(row["phase_misalignment"]) == pytest.approx(misaligned, rel=1e-5)
        logits = networks.logits()[0]
        found = logit_spectrum(logits)
        keys = found.key_frequencies()
        assert row["key_frequencies"].split() == [str(k) for k in keys]
        assert float(row["logits_explained"]) == pytest.approx(found.explained.sum(), rel=1e-6)
        assert float(row["restricted_loss"]) == pytest.approx(restricted_loss(logits, keys), rel=1e-6)
        pairs = networks.model.task.inputs[networks.examples("train")[0]]
        wanted = excluded_loss(logits, keys, examples=pairs)
        assert float(row["excluded_loss"]) == pytest.approx(wanted, rel=1e-6)


def test_other_files_with_neurons(tmp_path, capsys):
    W = torch.nn.Parameter(torch.randn(7, 4, generator=torch.Generator().manual_seed(0)))
    with nets.Recorder(W, tmp_path / "mine.h5") as recorder:
        recorder.step()
    for program in ("grokphys import", "a script"):  # whatever wrote the same numbers
        same = physics.Trajectory(W.detach().numpy()[None, None], [0], parameters={"program": program})
        same.save(tmp_path / f"{program[:4]}.h5")
    physics.simulate(physics.FourierLottery(7, neurons=5), steps=2, runs=2, out=tmp_path / "race.h5")
    assert main(["analyze", str(tmp_path / "*.h5"), "--neurons", "--table", str(tmp_path / "t.csv")]) == 0
    *same, mine, second, third = sorted(table(tmp_path / "t.csv"), key=lambda row: row["file"])
    race = [second, third]
    assert all(row["neuron_purity"] == mine["neuron_purity"] for row in same)
    assert int(mine["neurons_many"]) == (neuron_spectrum(W.detach().numpy()).kind == "many").sum()
    final = physics.load(tmp_path / "race.h5").final
    for run, row in enumerate(race):
        spectrum = neuron_spectrum(final[run, :, :5], final[run, :, 5:].T)
        misaligned = np.abs(np.sin(spectrum.misalignment)).mean()
        assert float(row["phase_misalignment"]) == pytest.approx(misaligned)


def test_dead_neurons_have_no_part_in_the_means(tmp_path):
    W = np.random.default_rng(0).standard_normal((2, 1, 7, 6))
    W[0, 0, :, [1, 4]] = 0
    W[1] = 0
    physics.Trajectory(W, [0], parameters={"program": "a script"}).save(tmp_path / "x.h5")
    assert main(["analyze", str(tmp_path / "x.h5"), "--neurons", "--table", str(tmp_path / "t.csv")]) == 0
    some, none = table(tmp_path / "t.csv")
    alive = neuron_spectrum(W[0, 0][:, [0, 2, 3, 5]])
    assert (int(some["neurons_dead"]), int(none["neurons_dead"])) == (2, 6)
    assert float(some["neuron_purity"]) == pytest.approx(alive.purity.mean())
    assert float(some["neuron_gini"]) == pytest.approx(alive.gini.mean())
    assert float(none["neuron_purity"]) == 0


def test_files_without_neurons_are_named(tmp_path, capsys):
    physics.simulate(steps=1, out=tmp_path / "particles.h5")
    nets.train(nets.ConstantAttention(5), steps=1, out=tmp_path / "bare.h5")
    with pytest.warns(RuntimeWarning, match="diverged"):
        nets.train(
            nets.ConstantAttention(5),
            runs=2,
            steps=40,
            learning_rate=[0.01, 1e38],
            observables=("train_loss", "layers"),
            out=tmp_path / "diverged.h5",
        )
    status = main(
        ["analyze", str(tmp_path / "*.h5"), "--neurons", "--logits", "--table", str(tmp_path / "t.csv")]
    )
    err = capsys.readouterr().err
    assert status == 1
    assert "--neurons needs networks or a FourierLottery, got a simulation of ParticleSystem" in err
    assert "bare.h5: trajectory must hold the layers" in err
    first, second = table(tmp_path / "t.csv")
    assert first["neuron_purity"] != "" != first["restricted_loss"]
    assert second["neuron_purity"] == "" == second["restricted_loss"]
