"""What `train` does around the engines: members that differ, thresholds, ends, starts, checkpoints."""

import contextlib
import inspect
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import nets
import physics
from nets import checkpoint
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw, dropout_seed
from nets.observing import Observer
from physics import FileFormatError, InputError, OutputError
from physics.trajectory.log import Log

SMALL = nets.ConstantAttention(7)


def same(first, second):
    np.testing.assert_array_equal(first.steps, second.steps)
    np.testing.assert_array_equal(first.positions, second.positions)
    assert set(first.observables) == set(second.observables)
    for name, values in first.observables.items():
        np.testing.assert_array_equal(values, second.observables[name])


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_members_with_rates_of_their_own_are_those_trained_alone(engine):
    rates = {
        "learning_rate": [0.01, 0.03, 0.001],
        "weight_decay": [0.0, 1.0, 0.5],
        "embedding_learning_rate": [0.001, 0.01, 0.02],
        "embedding_weight_decay": [0.3, 0.0, 0.1],
        "layer_scale": [1.0, 2.0, 0.5],
        "embedding_scale": [0.5, 1.0, 3.0],
    }
    options = {"steps": 20, "record": 20, "engine": engine, "dtype": "float64"}
    together = nets.train(SMALL, runs=3, **options, **rates)
    for run in range(3):
        own = {name: values[run] for name, values in rates.items()}
        alone = nets.train(SMALL, first_run=run, **options, **own)
        np.testing.assert_allclose(alone.final[0], together.final[run], rtol=0, atol=1e-12)
    assert together.parameters["learning_rate"] == [0.01, 0.03, 0.001]


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_frozen_embedding_stays_and_the_layers_learn(engine):
    options = {"steps": 200, "record": 200, "engine": engine, "observables": ("train_loss", "layers")}
    frozen = nets.train(SMALL, runs=2, freeze_embedding=True, **options)
    np.testing.assert_array_equal(frozen.initial, frozen.final)
    layers = frozen.observables["layers.hidden1.weight"]
    assert (layers[:, 0] != layers[:, -1]).all()
    assert (frozen.observables["train_loss"][:, -1] < 0.8 * frozen.observables["train_loss"][:, 0]).all()


@pytest.mark.parametrize("stream", ["embedding", "layers", "split", "targets", "noise"])
def test_a_shared_stream_is_one_for_all_members_and_the_others_are_their_own(stream):
    def parts(ensemble, run):
        return {
            "embedding": ensemble.parameters["embedding"][run],
            "layers": ensemble.parameters["hidden1.weight"][run],
            "split": ensemble.train[run],
            "targets": ensemble.targets[run],
            "noise": batches(ensemble, 5, 0, 2)[run],
        }

    model = nets.ToyAddition(6)
    own = draw(model, runs=3, seed=1)
    shared = draw(model, runs=3, seed=1, shared=(stream,))
    for run in range(3):
        for name, value in parts(shared, run).items():
            expected = parts(own, 0 if name == stream else run)[name]
            np.testing.assert_array_equal(value, expected)
    shard = draw(model, runs=1, seed=1, first_run=2, shared=(stream,))
    np.testing.assert_array_equal(parts(shard, 0)[stream], parts(own, 0)[stream])


def test_given_starts_and_given_examples():
    embedding = np.random.default_rng(0).standard_normal((7, 2))
    train = [0, 3, 4, 10, 27]
    trajectory = nets.train(
        SMALL,
        runs=2,
        steps=1,
        initial={"embedding": embedding},
        train_examples=train,
        validation_examples=[1, 2],
        dtype="float64",
    )
    np.testing.assert_array_equal(trajectory.initial, np.stack([embedding, embedding]))
    assert trajectory.parameters["train_examples"] == train
    digest = trajectory.parameters["initial"]["embedding"]
    other = nets.train(SMALL, steps=1, initial={"embedding": 2 * embedding})
    assert digest.startswith("sha256:")
    assert digest != other.parameters["initial"]["embedding"]


def test_thresholds_are_the_first_tracked_step_at_which_they_hold():
    options = {"runs": 4, "steps": 300, "weight_decay": 0.1, "learning_rate": 0.02}
    every = nets.train(SMALL, record=1, **options)
    tracked = nets.train(
        SMALL, record=300, track=5, thresholds={"train_accuracy": 0.6, "validation_accuracy": 0.99}, **options
    )
    accuracy = every.observables["train_accuracy"][:, ::5]
    reached = tracked.observables["steps_to_train_accuracy"]
    assert np.isnan(reached[:, 0]).all()
    assert np.isfinite(reached[:, -1]).any()
    for run in range(4):
        hit = np.flatnonzero(accuracy[run] >= 0.6)
        expected = 5 * hit[0] if len(hit) else np.nan
        np.testing.assert_equal(reached[run, -1], float(expected))
    assert np.isnan(tracked.observables["steps_to_validation_accuracy"]).all()


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_member_that_has_ended_stays_and_does_not_disturb_the_others(engine):
    options = {"runs": 4, "steps": 120, "record": 10, "engine": engine, "dtype": "float64"}
    free = nets.train(SMALL, **options)

    def second_from_forty(step, embeddings, observables):
        assert embeddings.shape == (4, 7, 2)
        return np.array([False, step >= 40, False, False])

    stopped = nets.train(SMALL, stop=second_from_forty, **options)
    others = [0, 2, 3]
    np.testing.assert_allclose(stopped.positions[others], free.positions[others], rtol=0, atol=1e-12)
    np.testing.assert_allclose(stopped.positions[1, :5], free.positions[1, :5], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(stopped.positions[1, 4:], np.repeat(stopped.positions[1, 4:5], 9, axis=0))
    np.testing.assert_array_equal(stopped.observables["status"][1], [0] * 5 + [1] * 8)
    assert (stopped.observables["status"][others] == 0).all()
    assert stopped.parameters["stop"] == "second_from_forty"


class Told:
    """An engine that answers what it is told: accuracies of training and of validation."""

    def __init__(self, train, validation=(0.0, 0.0)):
        self.accuracy = {"train": np.array(train), "validation": np.array(validation)}

    def losses(self, part):
        return np.where(np.isnan(self.accuracy[part]), np.nan, 1.0), self.accuracy[part]


def observer(**thresholds):
    return Observer(draw(SMALL, runs=2, seed=0), ("train_loss",), thresholds, 0.01)


def engine_of(name, seed=0, runs=3):
    ensemble = draw(SMALL, runs=runs, seed=seed)
    settings = optimizer_of(runs, 0.01, 0.5, None, None, (0.9, 0.999), 1e-8)
    return choose_engine(name, ensemble, settings, "float64", "cpu", None)


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_an_engine_goes_back_to_its_state(engine):
    first, second = engine_of(engine), engine_of(engine)
    first.advance(0, 3, None)
    state = first.state()
    first.stop(np.array([False, True, False]))
    first.advance(3, 5, None)
    second.advance(0, 7, None)
    second.restore(state)
    for name, values in second.state().items():
        np.testing.assert_array_equal(values, state[name])
    second.stop(np.array([False, True, False]))
    second.advance(3, 5, None)
    for name, values in first.state().items():
        np.testing.assert_array_equal(second.state()[name], values)
    for name, values in first.parameters().items():
        np.testing.assert_array_equal(values, second.parameters()[name])


def test_scales_multiply_what_they_name():
    plain = draw(SMALL, runs=2, seed=3).parameters
    scaled = draw(SMALL, runs=2, seed=3, layer_scale=[2.0, 4.0], embedding_scale=[3.0, 5.0]).parameters
    for name, values in plain.items():
        for run, factor in enumerate((3.0, 5.0) if name == "embedding" else (2.0, 4.0)):
            np.testing.assert_array_equal(scaled[name][run], factor * values[run])
    given = {"embedding": np.arange(14.0).reshape(7, 2), "output.bias": np.ones((1, 7))}
    kept = draw(SMALL, runs=2, seed=3, initial=given, layer_scale=2.0, embedding_scale=3.0).parameters
    for name, value in given.items():
        np.testing.assert_array_equal(kept[name], [value, value])


def test_a_stop_rule_cannot_change_what_is_recorded():
    def meddles(step, embeddings, observables):
        embeddings[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        nets.train(SMALL, steps=2, record=1, stop=meddles)


def test_stopping_at_thresholds():
    trajectory = nets.train(
        SMALL,
        runs=6,
        steps=2000,
        record="log:5",
        weight_decay=0.1,
        thresholds={"train_accuracy": 0.9},
        track=10,
        stop="thresholds",
    )
    reached = trajectory.observables["steps_to_train_accuracy"][:, -1]
    assert np.isfinite(reached).all()
    for run in range(6):
        ended = trajectory.steps >= reached[run]
        np.testing.assert_array_equal(
            trajectory.observables["status"][run, trajectory.steps > reached[run]], 1
        )
        assert (trajectory.positions[run, ended] == trajectory.positions[run, -1]).all()


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_diverging_member_is_marked_and_the_others_go_on(engine):
    rates = [0.01, 1e300, 0.01]
    options = {
        "runs": 3,
        "steps": 60,
        "record": 10,
        "weight_decay": 0.0,
        "engine": engine,
        "dtype": "float64",
    }
    with pytest.warns(
        RuntimeWarning,
        match="1 of 3 runs diverged: .* parameter of run 1 is not finite",
    ):
        found = nets.train(SMALL, learning_rate=rates, **options)
    calm = nets.train(SMALL, learning_rate=0.01, **options)
    np.testing.assert_allclose(found.positions[[0, 2]], calm.positions[[0, 2]], rtol=0, atol=1e-12)
    status = found.observables["status"][1]
    assert status[0] == 0
    assert status[-1] == 2
    assert np.isnan(found.positions[1, status == 2]).all()
    assert np.isnan(found.observables["train_accuracy"][1, status == 2]).all()
    assert np.isfinite(found.positions[1, status == 0]).all()


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_diverged_member_shows_no_points_even_where_they_are_finite(engine):
    """After the first step its weights are large numbers, whose products overflow."""
    with pytest.warns(RuntimeWarning, match="a parameter of run 1 is not finite"):
        found = nets.train(SMALL, runs=2, steps=2, record=1, learning_rate=[0.01, 1e30], engine=engine)
    assert found.observables["status"].tolist() == [[0, 0, 0], [0, 2, 2]]
    assert np.isfinite(found.positions[0]).all()
    assert np.isfinite(found.positions[1, 0]).all()
    assert np.isnan(found.positions[1, 1:]).all()


def test_what_can_be_observed():
    names = ("train_loss", "weight_norm", "bias_norm", "quality", "gradient", "layers")
    found = nets.train(nets.ToyAddition(6), runs=2, steps=4, record=2, observables=names, train_fraction=0.7)
    shapes = {name: values.shape[2:] for name, values in found.observables.items()}
    assert shapes.pop("layers.hidden2.weight") == (200, 200)
    assert shapes.pop("gradient") == (6, 1)
    weights = found.observables["layers.hidden1.weight"]
    np.testing.assert_allclose(found.observables["weight_norm"], np.abs(weights).mean((2, 3)), rtol=1e-6)
    expected = physics.representation_quality(found.positions, physics.EffectiveTheory(6))
    np.testing.assert_array_equal(found.observables["quality"], expected)
    assert "validation_loss" not in found.observables


def test_an_epoch_shows_each_example_at_most_once():
    ensemble = draw(nets.ToyAddition(8), runs=2, seed=3)
    size = ensemble.train.shape[1]
    order = batches(ensemble, 9, 0, 3 * (size // 9))
    for run in range(2):
        for epoch in np.split(order[run], 3):
            assert len(np.unique(epoch)) == epoch.size
    assert not np.array_equal(order[0], order[1])
    np.testing.assert_array_equal(batches(ensemble, 9, 4, 5), order[:, 4:9])
    assert batches(ensemble, size, 0, 1) is None


def test_batches_and_dropout_have_streams_of_their_own():
    ensemble = draw(nets.ToyAddition(8), runs=2, seed=3)
    in_epoch = ensemble.train.shape[1] // 4
    order = batches(ensemble, 4, 0, 6 * in_epoch).reshape(2, 6, -1)
    assert len({tuple(epoch) for run in order for epoch in run}) == 12, "an order for each epoch and member"
    masks = [dropout_seed(noise, step) for noise in ensemble.noise for step in range(20)]
    assert len(set(masks)) == 40, "masks for each step and member"
    orders = set()
    for noise in ensemble.noise:
        for epoch in range(20):
            key = (*noise.spawn_key, 0, epoch)
            stream = np.random.SeedSequence(noise.entropy, spawn_key=key)
            orders.add(int(stream.generate_state(1, np.uint64)[0]))
    assert not orders & set(masks), "and none in common"
    stream = np.random.SeedSequence(3, spawn_key=(1, 4, 0, 2))
    expected = np.random.default_rng(stream).permutation(ensemble.train.shape[1])
    np.testing.assert_array_equal(order[1, 2], expected[: 4 * in_epoch])


# -- checkpoints --------------------------------------------------------------------------------------------

TRAIN = """
import sys
import nets
from nets import checkpoint
checkpoint.SECONDS, checkpoint.LARGEST_SHARE = 0.0, float("inf")
nets.train(nets.ConstantAttention(7), runs=3, steps=int(sys.argv[2]), record="1:50,1000", seed=5,
           batch_size=5, thresholds={"train_accuracy": 0.5}, out=sys.argv[1], engine=sys.argv[3],
           resume=True)
"""


@pytest.mark.parametrize(("engine", "steps"), [("fused", 15000), ("torch", 1000)])
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, engine, steps):
    path = tmp_path / "killed.h5"
    stored = tmp_path / "killed.h5.checkpoint"

    def reached():
        with contextlib.suppress(FileNotFoundError), stored.open("rb") as file, np.load(file) as values:
            return int(values["step"])
        return 0

    resumed_from = [0]
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", TRAIN, str(path), str(steps), engine])
        began = time.monotonic()
        while time.monotonic() - began < 180 and process.poll() is None and reached() <= resumed_from[-1]:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not path.exists(), "the run was over before it was killed"
        resumed_from.append(reached())
    assert 0 < resumed_from[1] < resumed_from[2] < steps
    options = {
        "runs": 3,
        "steps": steps,
        "record": "1:50,1000",
        "seed": 5,
        "batch_size": 5,
        "engine": engine,
    }
    options |= {"thresholds": {"train_accuracy": 0.5}}
    resumed = nets.train(nets.ConstantAttention(7), out=path, resume=True, **options)
    same(resumed, nets.train(nets.ConstantAttention(7), **options))
    assert sorted(item.name for item in tmp_path.iterdir()) == ["killed.h5"]


BREAKING = []


def breaks(step, embeddings, observables):
    """A stop rule that stops nobody; it is the same one, by its source code, whether or not it breaks."""
    if BREAKING and step >= 40:
        raise BREAKING[0]
    return np.zeros(len(embeddings), bool)


def interrupted(path, monkeypatch, **options):
    """Leave an unfinished run with a checkpoint, by an exception from a stop rule."""
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "LARGEST_SHARE", float("inf"))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(sys.modules[__name__], "BREAKING", [KeyboardInterrupt])
        nets.train(SMALL, runs=2, steps=100, record=20, out=path, stop=breaks, **options)


def test_frames_are_on_disk_before_the_checkpoint_that_follows_them(tmp_path, monkeypatch):
    path, found = tmp_path / "t.h5", []
    replace = checkpoint.replace_as_a_whole

    def watched(stored, write, *, alone):
        replace(stored, write, alone=alone)
        with np.load(stored) as values:
            found.append((int(values["step"]), physics.load(f"{path}.partial").steps[-1]))

    monkeypatch.setattr(checkpoint, "replace_as_a_whole", watched)
    interrupted(path, monkeypatch)
    assert found
    assert all(kept == step - step % 20 for step, kept in found), found


def test_a_checkpoint_may_come_before_the_first_frame(tmp_path, monkeypatch):
    path, saved = tmp_path / "t.h5", []
    replace = checkpoint.replace_as_a_whole

    def interrupted_after(stored, write, *, alone):
        replace(stored, write, alone=alone)
        saved.append(stored)
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "LARGEST_SHARE", float("inf"))
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "replace_as_a_whole", interrupted_after)
        with pytest.raises(KeyboardInterrupt):
            nets.train(SMALL, steps=40, record=[40], out=path)
    assert len(saved) == 1
    resumed = nets.train(SMALL, steps=40, record=[40], out=path, resume=True)
    whole = nets.train(SMALL, steps=40, record=[40])
    np.testing.assert_array_equal(resumed.positions, whole.positions)


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_member_that_has_ended_stays_so_on_resumption(tmp_path, monkeypatch, engine):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "LARGEST_SHARE", float("inf"))
    options = {"runs": 2, "steps": 100, "record": 20, "seed": 1, "engine": engine}
    interruptions = [60]  # a number that the rule keeps would be part of its code

    def second_from_twenty(step, embeddings, observables):
        if step in interruptions:
            raise KeyboardInterrupt
        return np.array([False, step >= 20])

    with pytest.raises(KeyboardInterrupt):
        nets.train(SMALL, out=tmp_path / "t.h5", stop=second_from_twenty, **options)
    interruptions.clear()
    resumed = nets.train(SMALL, out=tmp_path / "t.h5", resume=True, stop=second_from_twenty, **options)
    assert (resumed.positions[1, 2:] == resumed.positions[1, 1]).all()
    same(resumed, nets.train(SMALL, stop=second_from_twenty, **options))


def test_a_checkpoint_newer_than_the_frames_on_disk_is_passed_over(tmp_path, monkeypatch):
    """A disk may lose frames that were written before it: all are taken again, to the same bits."""
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    interrupted(path, monkeypatch)
    kept = Log(partial)
    kept.forget(1)
    assert kept.steps.tolist() == [0]
    partial.write_bytes(partial.read_bytes()[: kept.end])
    goes_on_as_if_never_interrupted(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("step", lambda value: value + 5),
        ("recorded", lambda value: value - 20),
        ("engine", lambda value: value[..., :1]),
        ("engine", lambda value: value + 1),
        ("engine", lambda value: value.astype(np.float16)),
        ("observer/status", lambda value: value[:0]),
    ],
)
def test_a_changed_checkpoint_is_refused(tmp_path, monkeypatch, name, change):
    path, stored = tmp_path / "t.h5", tmp_path / "t.h5.checkpoint"
    interrupted(path, monkeypatch)
    with np.load(stored) as found:
        values = dict(found)
    key = next(key for key in values if key.startswith(name) and (name != "engine" or values[key].ndim > 1))
    before, values[key] = values[key], change(values[key])
    refused = pytest.raises(FileFormatError, match=r"t\.h5\.checkpoint is damaged .*remove it")
    with stored.open("wb") as file:
        np.savez(file, **values)
    with refused:
        goes_on_as_if_never_interrupted(path)
    if (before.dtype, before.shape) != (values[key].dtype, values[key].shape):  # written whole by another run
        del values["checksum"]
        with stored.open("wb") as file:
            np.savez(file, checksum=checkpoint.checksum(values), **values)
        with refused:
            goes_on_as_if_never_interrupted(path)
    stored.unlink()
    goes_on_as_if_never_interrupted(path)


def goes_on_as_if_never_interrupted(path):
    options = {"runs": 2, "steps": 100, "record": 20}
    resumed = nets.train(SMALL, out=path, resume=True, stop=breaks, **options)
    same(resumed, nets.train(SMALL, **options))


def test_the_checkpoint_of_another_run_is_passed_over(tmp_path, monkeypatch):
    """Such as one that was copied there, or that a backup has brought back."""
    path, saved = tmp_path / "t.h5", tmp_path / "t.h5.checkpoint"
    interrupted(path, monkeypatch, learning_rate=0.1)
    others = saved.read_bytes()
    interrupted(path, monkeypatch, overwrite=True)
    assert saved.read_bytes() != others
    saved.write_bytes(others)
    goes_on_as_if_never_interrupted(path)


def test_a_resume_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.h5"
    interrupted(path, monkeypatch)
    with pytest.raises(InputError, match="has another configuration .*learning_rate: 0.01 there"):
        nets.train(SMALL, runs=2, steps=100, record=20, out=path, resume=True, learning_rate=0.02)
    with pytest.raises(OutputError, match="holds an unfinished run"):
        nets.train(SMALL, runs=2, steps=100, record=20, out=path)
    partial = tmp_path / "t.h5.checkpoint"
    whole = partial.read_bytes()
    options = {"runs": 2, "steps": 100, "record": 20, "out": path, "stop": breaks}
    partial.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match=r"t\.h5\.checkpoint is damaged .*remove it"):
        nets.train(SMALL, resume=True, **options)
    partial.unlink()  # then it begins from its start, to the same bits
    resumed = nets.train(SMALL, resume=True, **options)
    same(resumed, nets.train(SMALL, runs=2, steps=100, record=20))


def test_a_checkpoint_of_an_older_run_is_not_mistaken_for_this_ones(tmp_path, monkeypatch):
    path = tmp_path / "t.h5"
    interrupted(path, monkeypatch)
    assert (tmp_path / "t.h5.checkpoint").exists()
    nets.train(SMALL, runs=2, steps=100, record=20, out=path, overwrite=True)
    assert not (tmp_path / "t.h5.checkpoint").exists()


def test_half_a_checkpoint_of_a_killed_run_does_not_stay(tmp_path):
    (tmp_path / "t.h5.checkpoint.partial").write_bytes(b"half")
    nets.train(SMALL, steps=4, record=2, out=tmp_path / "t.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["t.h5"]


def test_a_checkpoint_is_on_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    order, sync, replace = [], os.fsync, Path.replace

    def synced(descriptor):
        sync(descriptor)
        order.append((os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size))

    def replaced(path, target):
        order.append((path.stat().st_ino, path.stat().st_size, target.name))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    checkpoint.replace_as_a_whole(tmp_path / "one", lambda file: file.write(b"x" * 100))
    named = (tmp_path / "one").stat().st_ino
    assert order == [(named, 100), (named, 100, "one")]


FULL_DISK = """
import resource, signal, sys
import nets
from nets import checkpoint
from physics import OutputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if sys.argv[2] == "checkpoint":
    checkpoint.SECONDS, checkpoint.LARGEST_SHARE = 0.0, float("inf")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    model = nets.EmbeddingMLP(17, 40, (int(sys.argv[5]),))
    nets.train(model, steps=1500, record=int(sys.argv[4]), seed=5, out=sys.argv[1])
except OutputError as error:
    print(error)
    sys.exit(3)
"""


@pytest.mark.parametrize(
    ("what", "record", "width", "message"),
    [
        ("frames", 1, 20, "cannot write {path}: File too large; the frames written before are in"),
        ("checkpoint", 1500, 3000, "cannot write {path}.checkpoint: File too large"),
    ],
)
def test_a_full_disk(tmp_path, what, record, width, message):
    path = tmp_path / "t.h5"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path), what, "2000000", str(record), str(width)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(message.format(path=path))
    kept = physics.load(tmp_path / "t.h5.partial")
    assert kept.frames > (30 if what == "frames" else 0)
    model = nets.EmbeddingMLP(17, 40, (width,))
    whole = nets.train(model, steps=max(1, int(kept.steps[-1])), record=record, seed=5)
    np.testing.assert_array_equal(kept.positions, whole.positions[:, : kept.frames])
    if what == "frames":  # there is room again
        resumed = nets.train(model, steps=1500, record=1, seed=5, out=path, resume=True)
        assert resumed.complete
        np.testing.assert_array_equal(resumed.positions[:, : kept.frames], kept.positions)


def test_a_class_without_a_training_example_is_said(capsys):
    from grokphys.options import summarise

    found = nets.train(SMALL, runs=2, steps=1, train_examples=[0, 1, 2], record=1)
    labels = SMALL.task.labels[[0, 1, 2]]
    assert found.parameters["unseen_classes"] == [7 - len(set(labels))] * 2
    summarise(found, None)
    assert "2 of 2 networks have a class without a training example" in capsys.readouterr().out


def test_an_ensemble_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"networks of 30\d+ parameters need .* GiB, more than .*in shards"):
        nets.train(nets.ConstantAttention(17, 2, 150), runs=10**9)


def test_a_parameter_takes_two_arrays_in_float64_to_draw_and_three_to_train(monkeypatch):
    """SMALL has 7 · 2 numbers in its embedding, and 2 · 32 + 32 + 32 · 7 + 7 in its layers."""
    pages = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 5 * 8 * 341 * 3}
    monkeypatch.setattr("os.sysconf", pages.get)
    assert draw(SMALL, runs=3, seed=0).runs == 3
    pages["SC_PHYS_PAGES"] -= 1
    with pytest.raises(InputError, match="^3 networks of 341 parameters need 0.0 GiB"):
        draw(SMALL, runs=3, seed=0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"learning_rate": [0.1, 0.1, 0.1]},
            "learning_rate must be a number, or one for each of 2 runs, got the shape",
        ),
        ({"learning_rate": [0.1, -1.0]}, "learning_rate must be a finite number of at least 0, got -1"),
        (
            {"embedding_weight_decay": -1},
            "embedding_weight_decay must be a finite number of at least 0, got -1",
        ),
        ({"betas": (0.9, 1.0)}, "betas must be two numbers of at least 0 and less than 1, got (0.9, 1.0)"),
        ({"epsilon": 0}, "epsilon must be a finite number greater than 0, got 0"),
        ({"batch_size": 23}, "batch_size must be at most the 22 training examples, got 23"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        (
            {"shared": ("weights",)},
            "shared must name random draws among embedding, layers, split, targets, noise, got 'we",
        ),
        ({"initial": {"head": 1}}, "initial must name parameters among embedding, hidden1.weight"),
        (
            {"initial": {"embedding": np.zeros((3, 2))}},
            "initial['embedding'] must have the shape (7, 2), or (2, 7,",
        ),
        ({"train_examples": []}, "train_examples must be a non-empty list of numbers of examples, got []"),
        (
            {"train_examples": [0, 0]},
            "train_examples must name each example once, by numbers from 0 to 27, got 1 re",
        ),
        ({"train_examples": [28]}, "train_examples must name each example once, by numbers from 0 to 27"),
        (
            {"train_examples": range(28)},
            "train_examples must leave an example to validate on, got all 28 that could be used for it",
        ),
        (
            {"train_examples": [0, 1], "validation_examples": [1, 2]},
            "validation_examples must have no example in common with train_examples, got 1, the first",
        ),
        ({"validation_examples": [1]}, "train_examples must be given if validation_examples are, got none"),
        ({"observables": ("loss",)}, "observables must be among train_loss, train_accuracy"),
        (
            {"thresholds": {"loss": 1}},
            "thresholds must be among train_accuracy, validation_accuracy, quality, got 'lo",
        ),
        (
            {"stop": "thresholds"},
            "stop must be None or a callable without thresholds, got 'thresholds'",
        ),
        ({"stop": "soon"}, "stop must be 'thresholds', a callable or None, got 'soon'"),
        ({"stop": lambda *a: True}, "stop must return one truth value for each of 2 runs, got ()"),
        ({"track": 0}, "track must be at least 1, got 0"),
        ({"delta": 0}, "delta must be a finite number greater than 0, got 0"),
        (
            {"thresholds": {"quality": np.nan}},
            "thresholds of quality must be a finite number from 0 to 1, got nan",
        ),
        ({"thresholds": {"quality": 2}}, "thresholds of quality must be a finite number from 0 to 1, got 2"),
        ({"layer_scale": 0}, "layer_scale must be a finite number greater than 0, got 0"),
        (
            {"embedding_scale": [1.0]},
            "embedding_scale must be a number, or one for each of 2 runs, got the shape",
        ),
        ({"optimizer": "adam"}, "optimizer must be one of 'adamw', 'sgd', got 'adam'"),
        ({"dtype": "float16"}, "dtype must be one of 'float32', 'float64', got 'float16'"),
        ({"engine": "steam"}, "engine must be one of 'auto', 'fused', 'torch', got 'steam'"),
        (
            {"record": "5:3,2:1,1"},
            "record must list its parts EVERY:UNTIL in the order of UNTIL, got '5:3,2",
        ),
        ({"resume": True}, "out must name the file of the unfinished run to resume it, got None"),
        ({"initial": [1]}, "initial must be a mapping, such as a dict, got [1]"),
        ({"initial": np.ones((17, 2))}, "initial must be a mapping, such as a dict, got array([[1., 1.], ["),
        ({"thresholds": ["quality"]}, "thresholds must be a mapping, such as a dict, got ['quality']"),
        ({"thresholds": 0.9}, "thresholds must be a mapping, such as a dict, got 0.9"),
        ({"observables": 5}, "observables must be a name or a sequence of names, got 5"),
        ({"shared": 5}, "shared must be a name or a sequence of names, got 5"),
        ({"run_numbers": 5}, "run_numbers must be a sequence, got 5"),
        ({"out": 5}, "out must be the name of a file, got 5"),
    ],
)
def test_bad_input_ends_in_a_sentence(arguments, sentence):
    with pytest.raises(InputError) as error:
        nets.train(SMALL, runs=2, steps=10, **arguments)
    assert sentence in str(error.value)


def test_examples_may_be_given_as_a_range(tmp_path):
    trajectory = nets.train(SMALL, steps=2, train_examples=range(20), out=tmp_path / "t.h5")
    assert trajectory.parameters["train_examples"] == list(range(20))


# -- hooks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", [None, "t.h5"])
def test_a_callback_sees_each_frame_and_ends_the_training(tmp_path, out):
    path = None if out is None else tmp_path / out
    options = {"runs": 2, "steps": 100, "record": 20, "seed": 1}
    seen = []

    def until_sixty(step, time, embeddings, observables):
        seen.append((step, time, embeddings.copy(), observables["train_loss"].copy()))
        embeddings[:] = 0  # its own copy
        if step == 60:
            raise StopIteration

    ended = nets.train(SMALL, out=path, callback=until_sixty, **options)
    whole = nets.train(SMALL, **options)
    assert ended.complete
    np.testing.assert_array_equal(ended.steps, [0, 20, 40, 60])
    np.testing.assert_array_equal(ended.times, ended.steps)
    np.testing.assert_array_equal(ended.positions, whole.positions[:, :4])
    assert [(step, time) for step, time, *_ in seen] == [(0, 0.0), (20, 20.0), (40, 40.0), (60, 60.0)]
    for frame, (_, _, embeddings, loss) in enumerate(seen):
        np.testing.assert_array_equal(embeddings, whole.positions[:, frame])
        np.testing.assert_array_equal(loss, whole.observables["train_loss"][:, frame])
    if path is not None:
        assert sorted(item.name for item in tmp_path.iterdir()) == ["t.h5"]
        again = nets.train(SMALL, out=path, resume=True, callback=until_sixty, **options)
        assert again.frames == 4
        assert len(seen) == 4, "a run that is complete is returned as it is"


def test_a_callback_sees_only_frames_that_are_new_on_resumption(tmp_path, monkeypatch):
    interrupted(tmp_path / "t.h5", monkeypatch)
    seen = []
    resumed = nets.train(
        SMALL,
        runs=2,
        steps=100,
        record=20,
        out=tmp_path / "t.h5",
        resume=True,
        stop=breaks,
        callback=lambda step, *_: seen.append(step),
    )
    assert resumed.complete
    assert seen == [60, 80, 100]


def test_progress_is_told_how_far_it_is():
    told = []
    nets.train(SMALL, steps=70, record=20, progress=lambda done, total: told.append((done, total)))
    done = [one for one, _ in told]
    assert done == sorted(set(done))
    assert done[-1] == 70
    assert {total for _, total in told} == {70}
    told.clear()  # what is trained does not end where nothing more is recorded
    nets.train(SMALL, steps=70, record=[0, 20], progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (70, 70)


@pytest.mark.parametrize(
    ("hooks", "sentence"),
    [
        ({"callback": 3}, "callback must be a function of (step, time, positions, observables), got 3"),
        ({"progress": "bar"}, "progress must be True, False or a function of (done, total), got 'bar'"),
    ],
)
def test_hooks_that_cannot_be_called_are_refused(hooks, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        nets.train(SMALL, steps=1, **hooks)


@pytest.mark.parametrize("rate", [0.1, 0.0, [0.1, 0.2]])
@pytest.mark.parametrize("name", ["embedding_learning_rate", "embedding_weight_decay"])
def test_a_frozen_embedding_has_no_rates(name, rate):
    with pytest.raises(InputError, match=f"{name} must be left out if freeze_embedding keeps the initial"):
        nets.train(SMALL, steps=1, freeze_embedding=True, **{name: rate})


def test_training_by_hand_takes_the_arguments_of_train():
    ours, theirs = (inspect.signature(one).parameters for one in (nets.Training, nets.train))
    for name, parameter in ours.items():
        assert theirs[name] == parameter, name
