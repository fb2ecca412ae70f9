"""Checkpoints of a training: kills, resumption to the same bits, damage, and full disks."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest

import nets
import physics
from nets import checkpoint
from physics import FileFormatError, InputError, OutputError
from physics.trajectory.recording import Log

SMALL = nets.ConstantAttention(7)


def same(first, second):
    np.testing.assert_array_equal(first.steps, second.steps)
    np.testing.assert_array_equal(first.positions, second.positions)
    assert set(first.observables) == set(second.observables)
    for name, values in first.observables.items():
        np.testing.assert_array_equal(values, second.observables[name])


TRAIN = """
import sys
import nets
from nets import checkpoint
checkpoint.SECONDS, checkpoint.LARGEST_SHARE = 0.0, float("inf")
nets.train(nets.ConstantAttention(7), runs=3, steps=int(sys.argv[2]), record="1:50,1000", seed=5,
           batch_size=5, thresholds={"train_accuracy": 0.5}, out=sys.argv[1], engine=sys.argv[3],
           resume=True)
"""


@pytest.mark.parametrize(("engine", "steps", "kills"), [("fused", 8000, 2), ("torch", 800, 1)])
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, engine, steps, kills):
    path = tmp_path / "killed.h5"
    stored = tmp_path / "killed.h5.checkpoint"

    def reached():
        with contextlib.suppress(FileNotFoundError), stored.open("rb") as file, np.load(file) as values:
            return int(values["step"])
        return 0

    resumed_from = [0]
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, "-c", TRAIN, str(path), str(steps), engine])
        began = time.monotonic()
        while time.monotonic() - began < 180 and process.poll() is None and reached() <= resumed_from[-1]:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not path.exists(), "the run was over before it was killed"
        resumed_from.append(reached())
    assert all(a < b for a, b in pairwise([*resumed_from, steps]))
    options = {"runs": 3, "steps": steps, "record": "1:50,1000", "seed": 5, "batch_size": 5, "engine": engine}
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


@pytest.mark.parametrize("place", [0.2, 0.4, 0.6, 0.8])
def test_a_damaged_checkpoint_is_refused(tmp_path, monkeypatch, place):
    path, stored = tmp_path / "t.h5", tmp_path / "t.h5.checkpoint"
    interrupted(path, monkeypatch)
    content = bytearray(stored.read_bytes())
    content[int(place * len(content))] ^= 16
    stored.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"t\.h5\.checkpoint is damaged .*remove it"):
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
