"""Networks that are not ours, recorded from loops of their own."""

import contextlib
import os
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

import analysis
import nets
import nets.recorder
import physics
from physics import FileFormatError, InputError, OutputError
from physics.trajectory.recording import Log
from physics.trajectory.schedule import due, recording_steps

P = 11
STILL = pytest.mark.filterwarnings("ignore:the recorded parameter never changed:RuntimeWarning")


class Plain(torch.nn.Module):
    """PyTorch's own transformer, which nobody here has written."""

    def __init__(self, dim=8):
        super().__init__()
        self.embedding = torch.nn.Embedding(P, dim)
        self.transformer = torch.nn.Transformer(
            dim, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16, batch_first=True
        )
        self.answer = torch.nn.Linear(dim, P)

    def forward(self, pairs):
        tokens = self.embedding(pairs)
        return self.answer(self.transformer(tokens, tokens).mean(dim=1))


def train(path, steps, *, seed=0, ends_at=None, record="1:10,7", **options):
    """Train a plain transformer with dropout, and record its embedding in three lines."""
    torch.manual_seed(seed)
    network = Plain()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    pairs = torch.cartesian_prod(torch.arange(P), torch.arange(P))
    checkpoint = {"network": network, "optimizer": optimizer}
    with nets.Recorder(
        network.embedding.weight,
        path,
        record=record,
        parameters={"modulus": P},
        checkpoint=checkpoint,
        **options,
    ) as recorder:
        while recorder.at < steps:
            batch = pairs[torch.randperm(len(pairs))[:32]]
            loss = torch.nn.functional.cross_entropy(network(batch), batch.sum(1) % P)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss, norm=network.answer.weight.norm(dim=1))
            if recorder.at == ends_at:
                recorder.checkpoint()
            if ends_at is not None and recorder.at == ends_at + 5:
                raise KeyboardInterrupt
    return network


def test_a_plain_transformer_is_recorded_as_it_trained(tmp_path):
    network = train(tmp_path / "t.h5", 30)
    found = physics.load(tmp_path / "t.h5")
    assert found.steps.tolist() == found.times.tolist() == [*range(11), 17, 24, 30]
    assert found.positions.shape == (1, 14, P, 8)
    np.testing.assert_array_equal(found.final[0], network.embedding.weight.detach().numpy())
    torch.manual_seed(0)
    np.testing.assert_array_equal(found.initial[0], Plain().embedding.weight.detach().numpy())
    assert np.isnan(found.observables["loss"][0, 0])
    assert np.isfinite(found.observables["loss"][0, 1:]).all()
    assert found.observables["norm"].shape == (1, 14, P)
    assert found.parameters == {"program": "nets.Recorder", "modulus": P, "record": "1:10,7"}
    assert "torch" in found.made_with
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]


def test_half_a_checkpoint_of_a_killed_run_does_not_stay(tmp_path):
    path, half = tmp_path / "t.h5", tmp_path / "t.h5.checkpoint.partial"
    half.write_bytes(b"half")
    with pytest.raises(KeyboardInterrupt):
        train(path, 20, ends_at=5)
    assert not half.exists(), "of an earlier run"
    half.write_bytes(b"half")
    train(path, 20, resume=True)
    assert [one.name for one in tmp_path.iterdir()] == ["t.h5"]


def test_it_goes_on_to_the_same_bits(tmp_path):
    train(tmp_path / "whole.h5", 40)
    for ends_at in (13, 24):
        path = tmp_path / f"{ends_at}.h5"
        with pytest.raises(KeyboardInterrupt):
            train(path, 40, ends_at=ends_at)
        kept = physics.load(f"{path}.partial")
        assert kept.steps[-1] <= ends_at + 5
        train(path, 40, seed=99 if ends_at else 0, resume=True)  # whatever stood there is put back
        one, other = physics.load(path), physics.load(tmp_path / "whole.h5")
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.observables["loss"], other.observables["loss"])
        assert not (tmp_path / f"{ends_at}.h5.checkpoint").exists()


def test_frames_behind_the_checkpoint_are_taken_again(tmp_path):
    """Without the same random numbers they would be others."""
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "t.h5", 40, ends_at=13, record=1)
    assert physics.load(tmp_path / "t.h5.partial").steps[-1] == 18
    recorder = nets.Recorder(
        torch.zeros(P, 8),
        tmp_path / "t.h5",
        record=1,
        parameters={"modulus": P},
        checkpoint={"network": (one := Plain()), "optimizer": torch.optim.AdamW(one.parameters(), lr=0.01)},
        resume=True,
    )
    with recorder:
        assert recorder.at == 13
        recorder.step(loss=1.0, norm=torch.zeros(P))
    found = physics.load(tmp_path / "t.h5")
    assert found.steps.tolist() == list(range(15))
    assert (found.final == 0).all()
    assert (found.frame(13) != 0).any()


@STILL
def test_frames_are_on_disk_before_the_checkpoint_that_follows_them(tmp_path, monkeypatch):
    found, replace = [], nets.recorder.replace_as_a_whole

    def watched(path, write, *, alone):
        found.append((recorder.at, int(physics.load(tmp_path / "t.h5.partial").steps[-1])))
        replace(path, write, alone=alone)

    monkeypatch.setattr(nets.recorder, "replace_as_a_whole", watched)
    network = Plain()
    with nets.Recorder(
        network.embedding.weight, tmp_path / "t.h5", record=1, checkpoint={"network": network}
    ) as recorder:
        for _ in range(30):
            recorder.step(loss=1.0)
            recorder.checkpoint()
    assert found == [(step, step) for step in range(1, 31)]


def test_a_run_killed_before_its_first_checkpoint_begins_at_its_first_frame(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "t.h5", 40, ends_at=-3, record=1)
    train(tmp_path / "t.h5", 6, record=1, resume=True)
    train(tmp_path / "whole.h5", 6, record=1)
    np.testing.assert_array_equal(
        physics.load(tmp_path / "t.h5").positions, physics.load(tmp_path / "whole.h5").positions
    )


def left(path, rate, ends_at, until=None, **options):
    """A run that ends unfinished, its weights telling its rate."""
    weight = torch.nn.Parameter(torch.zeros(5, 2))
    optimizer = torch.optim.SGD([weight], lr=rate)
    checkpoint = {"optimizer": optimizer, "network": Holder(weight)}
    with pytest.raises(KeyboardInterrupt):
        with nets.Recorder(
            weight, path, parameters={"rate": rate}, checkpoint=checkpoint, **options
        ) as recorder:
            while recorder.at < 60:
                weight.grad = torch.ones(5, 2)
                optimizer.step()
                recorder.step()
                if recorder.at == ends_at:
                    recorder.checkpoint()
                if recorder.at == (until or (ends_at or 10) + 5):
                    raise KeyboardInterrupt


class Holder(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight


@pytest.mark.parametrize("kind", ["overwritten", "overwritten and as far", "log gone", "log cut"])
def test_a_checkpoint_of_another_run_is_not_gone_on_with(tmp_path, kind):
    path = tmp_path / "t.h5"
    left(path, 0.5, 50)
    stale = (tmp_path / "t.h5.checkpoint").read_bytes()
    if kind.startswith("overwritten"):
        left(path, 0.1, None, until=None if kind == "overwritten" else 55, overwrite=True)
        assert not (tmp_path / "t.h5.checkpoint").exists()
        (tmp_path / "t.h5.checkpoint").write_bytes(stale)
    elif kind == "log gone":
        (tmp_path / "t.h5.partial").unlink()
    else:
        os.truncate(tmp_path / "t.h5.partial", 100)
    weight = torch.nn.Parameter(torch.zeros(5, 2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    checkpoint = {"optimizer": optimizer, "network": Holder(weight)}
    recorder = nets.Recorder(weight, path, parameters={"rate": 0.1}, checkpoint=checkpoint, resume=True)
    begins_anew = pytest.warns(RuntimeWarning) if kind == "log cut" else contextlib.nullcontext()
    with begins_anew, recorder:
        assert recorder.at == 0
        while recorder.at < 60:
            weight.grad = torch.ones(5, 2)
            optimizer.step()
            recorder.step()
    found = physics.load(path)
    assert found.steps.tolist() == list(range(61))
    np.testing.assert_allclose(found.positions[0, :, 0, 0], -0.1 * np.arange(61), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["step", "recorded", "bytes"])
def test_a_changed_checkpoint_is_refused(tmp_path, name):
    path, stored = tmp_path / "t.h5", tmp_path / "t.h5.checkpoint"
    left(path, 0.5, 8)
    if name == "bytes":
        content = bytearray(stored.read_bytes())
        content[len(content) // 2] ^= 1
        stored.write_bytes(content)
    else:
        values = torch.load(stored, weights_only=True)
        torch.save(values | {name: values[name] + 1}, stored)
    weight = torch.nn.Parameter(torch.zeros(5, 2))
    checkpoint = {"optimizer": torch.optim.SGD([weight], lr=0.5), "network": Holder(weight)}
    with pytest.raises(FileFormatError, match=r"t\.h5\.checkpoint does not match"):
        nets.Recorder(weight, path, parameters={"rate": 0.5}, checkpoint=checkpoint, resume=True)


@STILL
def test_a_checkpoint_is_written_by_itself_each_half_minute(tmp_path, monkeypatch):
    now, saved = [0.0], []
    monkeypatch.setattr(nets.recorder, "monotonic", lambda: now[0])
    monkeypatch.setattr(nets.recorder, "replace_as_a_whole", lambda *_, alone: saved.append(recorder.at))
    network = Holder(torch.nn.Parameter(torch.zeros(5, 2)))
    with nets.Recorder(network.weight, tmp_path / "t.h5", checkpoint={"n": network}) as recorder:
        for seconds in (29.0, 30.0, 30.5, 31.0, 60.5, 61.0):
            now[0] = seconds
            recorder.step()
    assert saved == [3, 6]
    with nets.Recorder(network.weight, tmp_path / "u.h5") as recorder:
        now[0] = 1000.0
        recorder.step()
    assert saved == [3, 6], "without objects there is nothing to restore"


@pytest.mark.parametrize("lost", [False, True])
def test_a_checkpoint_whose_frame_was_lost_is_passed_over(tmp_path, lost):
    """A disk may lose frames that were written before it."""
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    left(path, 0.5, 8)
    log = Log(partial)
    log.forget(4 if lost else 9)
    assert (8 in log.steps) is not lost
    partial.write_bytes(partial.read_bytes()[: log.end])
    weight = torch.nn.Parameter(torch.zeros(5, 2))
    checkpoint = {"optimizer": torch.optim.SGD([weight], lr=0.5), "network": Holder(weight)}
    recorder = nets.Recorder(weight, path, parameters={"rate": 0.5}, checkpoint=checkpoint, resume=True)
    with recorder:
        assert recorder.at == (0 if lost else 8)
        assert weight[0, 0] == (0.0 if lost else -4.0)


@STILL
def test_a_loop_of_no_step_has_the_first_frame_and_a_list_only_its_own(tmp_path):
    weights = torch.ones(5, 2)
    with nets.Recorder(weights, tmp_path / "t.h5") as recorder:
        with pytest.raises(FileNotFoundError):
            recorder.result()
    found = recorder.result()
    assert (found.steps.tolist(), dict(found.observables), found.complete) == ([0], {}, True)
    with nets.Recorder(weights, tmp_path / "u.h5", record=[2]) as recorder:
        for _ in range(3):
            recorder.step()
    assert recorder.result().steps.tolist() == [2, 3], "and the last"
    assert recorder.result().parameters["record"] == [2]
    with pytest.raises(ZeroDivisionError), nets.Recorder(weights, tmp_path / "v.h5"):
        raise ZeroDivisionError
    assert {one.name for one in tmp_path.iterdir()} == {"t.h5", "u.h5"}


def test_a_killed_process_keeps_its_frames(tmp_path):
    code = """
import os, signal, sys
import torch, nets
weight = torch.nn.Parameter(torch.zeros(5, 2))
with nets.Recorder(weight, sys.argv[1], record=1) as recorder:
    for step in range(1, 21):
        weight.data.fill_(step)
        recorder.step()
    recorder._frames.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "t.h5")], timeout=120)
    found = physics.load(tmp_path / "t.h5.partial")
    np.testing.assert_array_equal(found.positions[0, :, 3, 1], np.arange(21))


def test_files_are_compared_and_analysed_like_others(tmp_path):
    for seed in (0, 1):
        train(tmp_path / f"{seed}.h5", 30, seed=seed, record=3)
    one, other = (physics.load(tmp_path / f"{seed}.h5") for seed in (0, 1))
    assert analysis.fourier_signals(one.final[0]).shape == (P // 2,)
    comparison = analysis.compare(one, other)
    assert np.isfinite(comparison.shapes.nearest).all()
    from grokphys.cli import main as cli

    assert cli.main(["analyze", str(tmp_path / "0.h5"), str(tmp_path / "1.h5")]) == 0


@STILL
def test_ensembles_arrays_and_other_types(tmp_path):
    weights = torch.arange(2 * 4 * 3, dtype=torch.bfloat16).reshape(2, 4, 3)
    with nets.Recorder(lambda: weights * 2, tmp_path / "t.h5", record="0,1,3") as recorder:
        for _ in range(3):
            recorder.step(loss=[1.0, 2.0], gap=np.ones((2, 5)))
    found = physics.load(tmp_path / "t.h5")
    assert found.steps.tolist() == [0, 1, 3]
    assert found.dtype == np.float32
    assert found.runs == 2
    np.testing.assert_array_equal(found.final, 2 * np.arange(24).reshape(2, 4, 3))
    assert found.observables["loss"][1].tolist()[1:] == [2.0, 2.0]
    for wrong in (1.0, [1.0, 2.0, 3.0]):
        with pytest.raises(InputError, match=r"loss must have the shape \(2, ...\)"):
            with nets.Recorder(weights.float(), tmp_path / "u.h5") as recorder:
                recorder.step(loss=wrong)
    with pytest.raises(InputError, match="loss must be given once"):
        nets.Recorder(weights.float(), tmp_path / "v.h5").step(1.0, loss=2.0)


def test_another_start_is_not_resumed(tmp_path):
    path = tmp_path / "t.h5"
    left(path, 0.5, None, until=5)  # without a checkpoint the run begins at its start
    weight = torch.nn.Parameter(torch.ones(5, 2))
    recorder = nets.Recorder(
        weight, path, parameters={"rate": 0.5}, checkpoint={"network": Holder(weight)}, resume=True
    )
    with pytest.raises(InputError, match="parameter must equal the start of the unfinished run"):
        with recorder:
            recorder.step()


@pytest.mark.parametrize(
    ("kind", "dtype"), [(torch.float64, "float64"), (torch.float32, "float32"), (torch.float16, "float32")]
)
def test_numbers_keep_their_digits(tmp_path, kind, dtype):
    values = torch.randn(5, 2, dtype=torch.float64).to(kind)
    with nets.Recorder(values, tmp_path / "t.h5", record=1) as recorder:
        recorder.step()
    found = physics.load(tmp_path / "t.h5")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.final[0], values.numpy())


@pytest.mark.parametrize("record", [1, 3, "7", "log", "log:5", "1:10,20", "2:8,5:30,40", "0,3,77", [0, 5, 9]])
def test_what_is_due_is_what_train_records(record):
    steps = 1000
    wanted = set(recording_steps(record, steps).tolist()) - {steps}
    found = {step for step in range(steps) if due(record)(step)}
    if str(record).startswith("log"):  # the grid of `train` ends at the last step, here a power of ten
        assert found >= wanted - {0}
        assert len(found) <= len(wanted) + 1
    else:
        assert found == wanted


@pytest.mark.parametrize("record", [0, -1, "x", "1:2:3", [-1], 1.5, "0:10,5", ""])
def test_records_that_are_none(tmp_path, record):
    with pytest.raises(InputError, match="record"):
        nets.Recorder(torch.zeros(3, 2), tmp_path / "t.h5", record=record)
    assert list(tmp_path.iterdir()) == []


def test_bad_input(tmp_path):
    path = tmp_path / "t.h5"
    for parameter in (torch.zeros(3), torch.zeros(3, 2, dtype=torch.int64), torch.zeros(1, 2, 3, 4)):
        with pytest.raises(InputError, match=r"parameter must be real numbers of shape \(tokens, dim\)"):
            nets.Recorder(parameter, path)
    with pytest.raises(InputError, match="got list"):
        nets.Recorder(lambda: [1], path)
    with pytest.raises(InputError, match="resume needs checkpoint"):
        nets.Recorder(torch.zeros(3, 2), path, resume=True)
    with pytest.raises(InputError, match=r"checkpoint\['x'\] must have state_dict"):
        nets.Recorder(torch.zeros(3, 2), path, checkpoint={"x": 3})
    for half in ("state_dict", "load_state_dict"):
        thing = type("Half", (), {half: lambda self: {}})()
        with pytest.raises(InputError, match=r"\['x'\] must have state_dict and load_state_dict, got a Half"):
            nets.Recorder(torch.zeros(3, 2), path, checkpoint={"x": thing})
    for observables, sentence in (
        ({"a/b": 1.0}, "must be text without '/'"),
        ({"loss": "x"}, "loss must be numbers, got str"),
    ):
        with pytest.raises(InputError, match=sentence):
            with nets.Recorder(torch.zeros(3, 2), path) as recorder:
                recorder.step(**observables)
    kept = r"loss must keep the shape of the first step, \(\), got \(2,\)"
    for second, sentence in (({"gap": 1.0}, "got 'gap'"), ({"loss": [1.0, 2.0]}, kept)):
        with pytest.raises(InputError, match=sentence):
            with nets.Recorder(torch.zeros(3, 2), path, overwrite=True) as recorder:
                recorder.step(loss=1.0)
                recorder.step(**second)
    with pytest.raises(InputError, match="checkpoint needs at least one step before it, got none"):
        nets.Recorder(torch.zeros(3, 2), path).checkpoint()
    with pytest.raises(InputError, match=r"parameters\['model'\] must be a mapping, .* got 'mine'"):
        with nets.Recorder(torch.zeros(3, 2), path, parameters={"model": "mine"}, overwrite=True) as recorder:
            recorder.step()
    with nets.Recorder(torch.zeros(3, 2), path, overwrite=True) as recorder:
        recorder.step()
    with pytest.raises(OutputError, match="exists"):
        nets.Recorder(torch.zeros(3, 2), path).step()
    network = Plain()
    with pytest.raises(OutputError, match="is complete; there is nothing to resume"):
        nets.Recorder(network.embedding.weight, path, checkpoint={"n": network}, resume=True).__enter__()


# -- what would never move, and loops without `with` ---------------------------------------------------------


def weights():
    torch.manual_seed(0)
    return torch.nn.Parameter(torch.randn(4, 7))


@pytest.mark.parametrize(
    "copy",
    [
        lambda w: w.T.contiguous(),
        lambda w: w.double(),
        lambda w: w.to(torch.bfloat16).float(),
        lambda w: w.T @ torch.ones(4, 3),
        lambda w: w.clone(),
        lambda w: (2 * w).T,
    ],
)
def test_a_copy_of_a_parameter_is_refused(tmp_path, copy):
    with pytest.raises(InputError, match="such as lambda: model.weight.T, got a copy"):
        nets.Recorder(copy(weights()), tmp_path / "t.h5")


@pytest.mark.parametrize(
    "view", [lambda w: w, lambda w: w.T, lambda w: w[:, :5], lambda w: w.data, lambda w: w.detach().T]
)
@pytest.mark.parametrize("called", [False, True])
def test_views_of_a_parameter_and_functions_move_with_it(tmp_path, view, called):
    weight = weights()
    with nets.Recorder((lambda: view(weight)) if called else view(weight), tmp_path / "t.h5") as recorder:
        for _ in range(3):
            with torch.no_grad():
                weight += 1
            recorder.step(loss=1.0)
    found = physics.load(tmp_path / "t.h5")
    np.testing.assert_allclose(np.diff(found.positions, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(found.final.squeeze(), view(weight).detach().numpy().squeeze())


@pytest.mark.parametrize("copy", [lambda w: w.detach().clone(), lambda w: torch.tensor(w.detach().numpy().T)])
def test_what_never_moved_while_losses_did_is_told_at_the_end(tmp_path, copy):
    weight = weights()
    recorder = nets.Recorder(copy(weight), tmp_path / "u.h5")
    for _ in range(3):
        recorder.step(loss=1.0)
    with pytest.warns(RuntimeWarning, match="the recorded parameter never changed; if it is a copy"):
        recorder.close()
    with nets.Recorder(copy(weight), tmp_path / "v.h5") as recorder:
        recorder.step()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.eye(7).to_sparse(),
        torch.view_as_complex(torch.stack([torch.zeros(7, 7), -torch.eye(7)], dim=-1)).conj().imag,
    ],
)
def test_sparse_and_lazily_negated_tensors_are_recorded_as_their_values(tmp_path, tensor):
    with nets.Recorder(lambda: tensor, tmp_path / "t.h5", tokens=slice(3)) as recorder:
        recorder.step(values=tensor)
    found = physics.load(tmp_path / "t.h5")
    np.testing.assert_array_equal(found.final[0], np.eye(7)[:3])
    np.testing.assert_array_equal(found.observables["values"][0, 1], np.eye(7))


@pytest.mark.parametrize("tokens", [slice(None, None, -1), slice(2, 7), [3, 1], slice(5)])
def test_the_recorded_tokens_are_those_of_select_tokens(tmp_path, tokens):
    weight = torch.randn(7, 2)
    with nets.Recorder(weight, tmp_path / "t.h5", tokens=tokens) as recorder:
        recorder.step()
    found = physics.load(tmp_path / "t.h5")
    chosen = np.arange(7)[tokens]
    np.testing.assert_array_equal(found.final[0], weight.numpy()[chosen])
    for wrong in (slice(8), [9], [1, 1], []):
        with pytest.raises(InputError, match="tokens must choose some of the 7 tokens"):
            nets.Recorder(weight, tmp_path / "u.h5", tokens=wrong)
    assert found.parameters["selected_tokens"] == chosen.tolist()


def test_a_module_is_refused_and_its_matrices_are_named(tmp_path):
    with pytest.raises(InputError, match=r"got a Plain .* embedding\.weight of shape \(11, 8\)"):
        nets.Recorder(Plain(), tmp_path / "t.h5")


@STILL
def test_an_observable_that_is_left_out_is_nan(tmp_path):
    with nets.Recorder(weights(), tmp_path / "t.h5") as recorder:
        for k in range(4):
            recorder.step(loss=1.0, **({"held_out": [2.0, 3.0]} if k % 2 == 0 else {}))
    held_out = physics.load(tmp_path / "t.h5").observables["held_out"][0]
    np.testing.assert_array_equal(held_out[:, 0], [np.nan, 2, np.nan, 2, np.nan])


LOOP = """
import sys, torch, nets
weight = torch.nn.Embedding(7, 2).weight
recorder = nets.Recorder(weight, sys.argv[1], record=10)
for k in range(45): weight.data += 1; recorder.step(loss=1.0)
if sys.argv[2] == "close": recorder.close(); recorder.close()
if sys.argv[2] == "fail": raise ValueError("mine")
"""


@pytest.mark.parametrize("end", ["close", "exit", "fail"])
def test_a_loop_without_with_ends_in_a_finished_file(tmp_path, python, end):
    done = python(LOOP, tmp_path / "t.h5", end, check=False)
    if end == "fail":
        assert "ValueError: mine" in done.stderr
        assert physics.load(tmp_path / "t.h5.partial").steps.tolist() == [0, 10, 20, 30, 40]
        return
    assert (done.returncode, done.stderr) == (0, "")
    assert physics.load(tmp_path / "t.h5").steps.tolist() == [0, 10, 20, 30, 40, 45]


@pytest.mark.parametrize(("tokens", "kept"), [(slice(5), [0, 1, 2, 3, 4]), (slice(2, 7), [2, 3, 4, 5, 6])])
def test_the_selected_tokens_are_stored(tmp_path, tokens, kept):
    weight = torch.randn(7, 2)
    with nets.Recorder(weight, tmp_path / "a.h5", parameters={"modulus": 5}, tokens=tokens) as recorder:
        weight += 1
        recorder.step()
    assert recorder.result().parameters["selected_tokens"] == kept
    if kept[0]:
        with pytest.raises(InputError, match="in order from 0, got token 2 in place 0"):
            analysis.circles_of(recorder.result())
    else:
        assert analysis.circles_of(recorder.result()).survived.shape == (1, 2)


# -- loops of other people ----------------------------------------------------------------------------------


class JaxArray:
    """What an array of JAX looks like from outside: it can be read, and never changes."""

    at = dtype = None

    def __init__(self, values):
        self.values = np.asarray(values, np.float32)

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_the_loop_of_another_package(tmp_path):
    parameters = {"embedding": JaxArray(np.zeros((5, 2)))}
    with pytest.raises(InputError, match="lambda"):
        nets.Recorder(parameters["embedding"], tmp_path / "t.h5")
    recorder = nets.Recorder(
        lambda: parameters["embedding"], tmp_path / "t.h5", record=2, observables=["val_loss"]
    )
    for epoch in range(1, 9):
        parameters["embedding"] = JaxArray(np.full((5, 2), epoch))
        recorder.step(JaxArray(1 / epoch), **({"val_loss": 2.0 * epoch} if epoch % 3 == 0 else {}))
    recorder.close()
    found = recorder.result()
    np.testing.assert_array_equal(found.positions[0, :, 0, 0], [0, 2, 4, 6, 8])
    np.testing.assert_allclose(found.observables["loss"][0], [np.nan, 1 / 2, 1 / 4, 1 / 6, 1 / 8])
    np.testing.assert_array_equal(found.observables["val_loss"][0], [np.nan, np.nan, 6.0, 12.0, np.nan])
    with pytest.raises(InputError, match=r"observables=\['later'\]"):
        with nets.Recorder(lambda: parameters["embedding"], tmp_path / "u.h5") as recorder:
            recorder.step(1.0)
            recorder.step(1.0, later=2.0)


def test_what_was_measured_before_a_kill_is_in_the_next_frame(tmp_path):
    def run(path, **options):
        weight = torch.nn.Parameter(torch.zeros(5, 2))
        objects = {"optimizer": torch.optim.SGD([weight], lr=1.0)}
        with nets.Recorder(
            weight, path, record=10, checkpoint=objects, observables=["val"], **options
        ) as recorder:
            while recorder.at < 20:
                weight.data.fill_(recorder.at + 1)
                recorder.step(**({"val": 7.0} if recorder.at == 13 else {}))
                if recorder.at == 15 and not options:
                    recorder.checkpoint()
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "t.h5")
    run(tmp_path / "t.h5", resume=True)
    np.testing.assert_array_equal(
        physics.load(tmp_path / "t.h5").observables["val"][0], [np.nan, np.nan, 7.0]
    )


class Trainer:
    """Calls the callback as Lightning does."""

    global_step, callback_metrics = 0, {}

    def fit(self, callback, weight):
        callback.on_train_start(self, weight)
        for batch in range(8):
            weight.data += 1
            self.global_step += batch % 2  # gradients of two batches are accumulated
            callback.on_train_batch_end(self, weight, {"loss": torch.tensor(float(batch))}, None, batch)
            if batch == 3:
                self.callback_metrics["val_loss"] = torch.tensor(5.0)
                callback.on_validation_end(self, weight)
        callback.on_train_end(self, weight)


def test_lightning(tmp_path, monkeypatch):
    """Its own `Trainer` was tried with version 2.6.6."""
    module = types.ModuleType("lightning.pytorch")
    module.Callback = object
    module.__spec__ = types.SimpleNamespace(name="lightning", submodule_search_locations=[])
    for name in ("lightning", "lightning.pytorch"):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "grokphys.integrations.lightning", raising=False)
    from grokphys.integrations.lightning import RecorderCallback

    weight = torch.nn.Parameter(torch.zeros(5, 2))
    Trainer().fit(RecorderCallback(lambda m: m, tmp_path / "t.h5", observables=["val_loss"]), weight)
    found = physics.load(tmp_path / "t.h5")
    np.testing.assert_array_equal(found.positions[0, :, 0, 0], [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(found.observables["loss"][0], [np.nan, 1, 3, 5, 7])
    np.testing.assert_array_equal(found.observables["val_loss"][0], [np.nan, np.nan, np.nan, 5, np.nan])


def test_hugging_face(tmp_path, monkeypatch):
    """Its own `Trainer` was tried with version 5."""
    module = types.ModuleType("transformers")
    module.TrainerCallback = object
    monkeypatch.setitem(sys.modules, "transformers", module)
    monkeypatch.delitem(sys.modules, "grokphys.integrations.transformers", raising=False)
    from grokphys.integrations.transformers import RecorderCallback

    weight, state = torch.nn.Parameter(torch.zeros(5, 2)), types.SimpleNamespace(global_step=0)
    callback = RecorderCallback(lambda m: m, tmp_path / "t.h5")
    callback.on_train_begin(None, state, None, model=weight)
    for step in range(1, 5):
        callback.on_step_begin(None, state, None)
        weight.data += 1
        state.global_step = step
        if step % 2 == 0:
            callback.on_log(None, state, None, logs={"loss": float(step), "epoch": 0.5})
    callback.on_train_end(None, state, None)
    found = physics.load(tmp_path / "t.h5")
    np.testing.assert_array_equal(found.positions[0, :, 0, 0], [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(found.observables["loss"][0], [np.nan, np.nan, 2, np.nan, 4])
    assert np.isnan(found.observables["eval_loss"]).all()


def test_activations_at_a_hook(tmp_path):
    from grokphys.integrations.transformer_lens import activations

    class Hooked:
        weight = torch.nn.Parameter(torch.ones(7, 3))

        def run_with_cache(self, inputs, names_filter):
            return None, {names_filter: self.weight[inputs]}

    model = Hooked()
    recorder = nets.Recorder(activations(model, "hook_embed", torch.arange(7)[:, None]), tmp_path / "t.h5")
    model.weight.data += 1
    recorder.step()
    recorder.close()
    np.testing.assert_array_equal(recorder.result().positions[0, :, 0, 0], [1, 2])
