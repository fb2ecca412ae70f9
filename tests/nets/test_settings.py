"""The settings of a training: those of the paper of its model, from Python, the command and in a sweep."""

import os
import subprocess
import sys

import numpy as np
import pytest

import nets
import physics
from grokphys import models
from grokphys.cli.main import main
from grokphys.sweeps.config import resolved
from nets.settings import RATES, Settings, TrainingSettings

PAPERS = {
    "constant-attention": (0.01, 1.0, None, None, 0.8, 2000),
    "embedding-mlp": (0.01, 0.5, None, None, 0.8, 30_000),
    "toy-addition": (1e-3, 0.0, 1e-3, 0.0, 45 / 55, 5000),
    "group-decoder": (1e-3, 0.0, 1e-3, 0.0, 24 / 36, 5000),
    "token-transformer": (1e-3, 1.0, 1e-3, 0.0, 0.8, 2000),
    "image-mlp": (1e-3, 0.01, None, None, 1000 / 1797, 6000),
    "two-layer": (1e-4, 0.0, None, None, 1.0, 5000),
}
"""Learning rate, weight decay, both of the embedding, fraction of the examples, steps: Musat §3; Ding §2 and
Appendix E; Liu §4, Appendices G to J; He et al."""
SMALL = {
    "constant-attention": {"tokens": 5, "hidden": (4,)},
    "embedding-mlp": {"tokens": 5, "dim": 4, "hidden": (4,)},
    "toy-addition": {"hidden": (4,)},
    "group-decoder": {"hidden": (4,)},
    "token-transformer": {"tokens": 5, "dim": 4, "depth": 1, "width": 4},
    "image-mlp": {"hidden": (4,)},
    "two-layer": {"tokens": 5, "hidden": (8,)},
}


def words(options):
    """Options of a model as on the command line."""
    flat = {name: value if isinstance(value, tuple) else (value,) for name, value in options.items()}
    return [part for name, value in flat.items() for part in (f"--{name}", *map(str, value))]


@pytest.mark.parametrize("name", models.MODELS)
def test_the_paper_of_a_model_decides_in_python_in_the_command_and_in_a_sweep(name, tmp_path):
    model, path = models.model_and_settings(name, SMALL[name])[0], tmp_path / "t.h5"
    rate, decay, of_embedding, its_decay, fraction, steps = PAPERS[name]
    assert main(["train", "--model", name, *words(SMALL[name]), "--steps", "2", "--out", str(path)]) == 0
    trained = nets.train(model, steps=2)
    of_command = physics.load(path)
    assert np.array_equal(trained.positions, of_command.positions)
    assert trained.parameters == of_command.parameters
    stored = trained.parameters
    assert [stored[rate] for rate in RATES] == [rate, decay, of_embedding, its_decay]
    assert nets.Training(model).ensemble.train.shape[1] == int(fraction * len(model.task) + 1e-9)
    assert Settings().of(model).steps == steps
    made, _, shown = repr(model).partition("  # by default trained with ")
    assert f"weight_decay={decay:g}" in shown
    assert f"steps={steps}" in shown
    if name != "group-decoder":  # a group is shown by its name
        assert eval(made, vars(nets.models)) == model
    cell = resolved("train", {"model": name})
    assert {option: cell[option] for option in model.settings} == dict(model.settings)


def test_the_training_set_of_the_default_model_is_that_of_the_paper():
    assert len(nets.Training(nets.ConstantAttention()).ensemble.train[0]) == 122


def test_every_setting_of_the_command_is_that_of_python(tmp_path):
    """What the files store of a run without any options is the same, setting by setting."""
    assert main(["train", "--steps", "1", "--out", str(tmp_path / "t.h5")]) == 0
    assert physics.load(tmp_path / "t.h5").parameters == nets.train(steps=1).parameters


def test_what_is_given_goes_before_the_paper_and_a_training_shows_it():
    training = nets.Training(nets.EmbeddingMLP(5, 4, (4,)), weight_decay=0.1)
    assert repr(training).endswith("learning_rate=0.01, weight_decay=0.1, train_fraction=0.8)")
    frozen = TrainingSettings(freeze_embedding=True).of(nets.ToyAddition())
    assert (frozen.embedding_learning_rate, frozen.learning_rate) == (None, 1e-3)
    with pytest.raises(physics.InputError, match="embedding_weight_decay must be left out"):
        nets.train(freeze_embedding=True, embedding_weight_decay=0.0)
    with pytest.raises(TypeError, match="learning_rat"):
        nets.train(learning_rat=0.1)


def test_a_model_of_your_own_states_its_settings():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Careful(nets.ConstantAttention):
        settings = {"learning_rate": 0.5}  # noqa: RUF012

    @dataclass(frozen=True)
    class Careless(nets.ConstantAttention):
        settings = {"rate": 0.5}  # noqa: RUF012

    training = nets.Training(Careful(5))
    assert (training.settings.learning_rate, training.settings.weight_decay) == (0.5, 1.0)
    with pytest.raises(
        physics.InputError, match="settings of Careless must name settings of nets.train, got 'rate'"
    ):
        nets.Training(Careless(5))


# -- wrong in silence --------------------------------------------------------------------------------------


def test_a_member_whose_layers_diverge_is_named_whatever_is_recorded():
    with pytest.warns(RuntimeWarning, match="1 of 2 runs diverged: .* a parameter of run 1 is not finite"):
        trained = nets.train(
            nets.ConstantAttention(7),
            runs=2,
            steps=30,
            learning_rate=[0.01, 1e38],
            freeze_embedding=True,
            observables=("layers",),
            record=10,
        )
    assert trained.observables["status"][:, -1].tolist() == [0, 2]
    assert np.isnan(trained.final[1]).all()
    classes = nets.networks(trained).classify([[0.0, 1.0]])
    assert classes[1].tolist() == [-1]
    assert classes[0] >= 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_processes_that_fork_train_as_their_parent(tmp_path):
    """PyTorch and the threads of the fused engine would wait for threads that a forked process lacks."""
    code = """
import multiprocessing, nets, numpy as np

def transformer(seed):
    model = nets.TokenTransformer(11, 32, width=32)
    return nets.train(model, runs=2, steps=3, seed=seed).final.sum()

def advanced(steps):
    training.advance(steps)
    return training.embeddings.sum()

training = nets.Training(nets.EmbeddingMLP(11, 32), runs=8)
training.advance(1)
expected = transformer(1)
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert np.isclose(pool.apply_async(transformer, [1]).get(timeout=60), expected, rtol=1e-5)
    there = pool.apply_async(advanced, [2]).get(timeout=60)
assert advanced(2) == there
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr


def test_a_directory_that_changes_on_the_way_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    nets.train(nets.ConstantAttention(5), steps=4, record=1, out="t.h5", callback=lambda *_: os.chdir("/"))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["t.h5"]
