"""Files of other programs: nothing is guessed, no code runs, and damage ends in a sentence."""

import argparse
import functools
import io
import os
import pickle
import subprocess
import time
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import analysis
import nets
import physics
from grokphys.cli.main import main
from nets.reading import look
from nets.reading.steps import numbers_in_name, numbers_in_text
from physics.errors import FileFormatError, InputError

safetensors = pytest.importorskip("safetensors.torch")


def points(frames=5, tokens=7, dim=2, *, seed=0):
    return np.random.default_rng(seed).standard_normal((frames, tokens, dim))


@pytest.fixture
def refused(tmp_path, capsys):
    """Import what must be refused; return the status and the one sentence."""

    def run(source, *options):
        out = tmp_path / "out.h5"
        status = main(["import", str(source), "--out", str(out), *options])
        said = capsys.readouterr().err
        assert status in (1, 2), said
        assert len(said.splitlines()) == 1, said
        assert said.startswith("grokphys: error: "), said
        assert not list(tmp_path.glob("out.h5*"))
        return status, said

    return run


def write(path, state):
    path.parent.mkdir(parents=True, exist_ok=True)
    safetensors.save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)


def series(folder, names, inside=lambda k: {}, key="embedding.weight"):
    """Checkpoints whose numbers are all k for the k-th of the names."""
    for k, name in enumerate(names):
        write(folder / name, {**inside(k), "state_dict": {key: torch.full((7, 2), float(k))}})


def order(trajectory):
    return trajectory.positions[0, :, 0, 0].tolist()


# -- looking, and the command -------------------------------------------------------------------------------


def test_without_out_the_command_shows_what_there_is(tmp_path, capsys):
    series(tmp_path, ["10.pt", "0.pt", "final.pt"], lambda k: {"loss": 1.0, "config": {"p": 7, "lr": 0.1}})
    before = sorted(tmp_path.iterdir())
    assert main(["import", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    for word in ("embedding.weight (7, 2)", "loss", "p = 7", "2 frames, steps 0 to 10", "modulus 7", "--out"):
        assert word in said
    assert len(said.splitlines()) < 24
    assert sorted(tmp_path.iterdir()) == before
    np.savez(tmp_path / "x.npz", E=points(3, 9, 11), losses=np.arange(300.0))
    assert main(["import", str(tmp_path / "x.npz")]) == 0
    said = capsys.readouterr().out
    assert "question:" in said
    assert "losses of 300" in said


def test_the_command_writes_and_says_what_it_left_out(tmp_path, capsys):
    array = np.stack([points(), points(seed=1)])
    np.savez_compressed(tmp_path / "x.npz", E=array, steps=np.arange(0, 50, 10, dtype=np.uint16))
    words = ["import", str(tmp_path / "x.npz"), "--out", str(tmp_path / "x.h5"), "--tokens", "0:5"]
    assert main(words) == 0
    assert "2 runs of 5 frames of 5 tokens in 2 dimensions, steps 0 to 40" in capsys.readouterr().out
    stored = physics.load(tmp_path / "x.h5")
    np.testing.assert_array_equal(stored.positions, array[:, :, :5])
    assert stored.parameters["selected_tokens"] == [0, 1, 2, 3, 4]
    assert stored.parameters["path"] == str(tmp_path / "x.npz")
    assert main(words) == 1, "it exists"
    assert main([*words, "--overwrite"]) == 0


def test_no_file_that_is_read_is_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", E=points())
    Path("link.h5").symlink_to("x.npz")
    series(Path("run"), ["step_1.pt"])
    for source, out in (("x.npz", "x.npz"), ("x.npz", "link.h5"), ("run", "run/step_1.pt")):
        before = Path(out).read_bytes()
        assert main(["import", source, "--out", out, "--overwrite"]) == 2
        assert "out must be another file" in capsys.readouterr().err
        assert Path(out).read_bytes() == before


def test_from_frames():
    matrices = points(3, 8)
    frames = [(100, torch.tensor(matrices[1])), (0, matrices[0].tolist()), (200, matrices[2])]
    trajectory = nets.from_frames(frames, modulus=7, observables={"loss": [2.0, 3.0, torch.tensor(1.0)]})
    np.testing.assert_array_equal(trajectory.positions[0], matrices[:, :7])
    assert (trajectory.steps.tolist(), trajectory.modulus) == ([0, 100, 200], 7)
    assert trajectory.observables["loss"].tolist() == [[3.0, 2.0, 1.0]]
    for wrong in (
        [],
        [(0, np.zeros((7, 2))), (1, np.zeros((7, 3)))],
        [(0, np.zeros((7, 2)))] * 2,
        [(0, np.zeros(3))],
        [(0, np.zeros((7, 2), complex))],
        np.zeros((3, 7, 2)),
        [(0, "x")],
        [(0, None)],
    ):
        with pytest.raises(InputError):
            nets.from_frames(wrong)
    for measured in ([1.0], [1.0, 2.0, 3.0, 4.0], 1.0, [1.0, 2.0, {}]):
        with pytest.raises(InputError, match="observables"):
            nets.from_frames(frames, observables={"loss": measured})
    with pytest.raises(InputError, match="modulus"):
        nets.from_frames([(0, matrices[0])], modulus=9)


@pytest.mark.parametrize("suffix", [".pt", ".old.pth", ".pkl", ".safetensors"])
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_numbers_keep_their_precision(tmp_path, suffix, kind):
    tensors = {
        step: (1000 + 1e-3 * torch.tensor(points()[k])).to(kind) for k, step in enumerate([0, 5, 10, 100])
    }
    for step, tensor in tensors.items():
        path, state = (
            tmp_path / f"step_{step}{suffix}",
            {"emb.weight": tensor, "head.weight": torch.zeros(4, 2)},
        )
        if suffix == ".pkl":
            path.write_bytes(pickle.dumps(state))
        elif suffix == ".old.pth":
            torch.save(state, path, _use_new_zipfile_serialization=False)
        else:
            write(path, state)
    trajectory = nets.read_checkpoints(tmp_path)
    assert trajectory.steps.tolist() == [0, 5, 10, 100]
    assert trajectory.dtype == ("float64" if kind == torch.float64 else "float32")
    for frame, step in zip(trajectory.positions[0], trajectory.steps, strict=True):
        np.testing.assert_array_equal(frame, tensors[int(step)].to(torch.float64).numpy())
    np.testing.assert_array_equal(nets.read_checkpoints(tmp_path, array="head.weight").positions, 0)


# -- steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("step_00100", {"step": 100}),
        ("model00080_train0.97_loss0.5957", {"model": 80}),
        ("model_1k", {"model": 1000}),
        ("w_1e3", {"w": 1000}),
        ("w_2.5k", {"w": 2500}),
        ("epoch=05-val_loss=2.55", {"epoch": 5}),
        ("epoch=3-step=40-v1", {"epoch": 3, "step": 40}),
        ("100_steps", {"step": 100}),
        ("p113_d128_seed3_20", {"": 20}),
        ("model_2k4ohj6bhd", {}),
        ("step_1.5", {}),
        ("run_20240501", {}),
        ("2024-05-01_12-00", {}),
    ],
)
def test_numbers_in_the_name_of_a_file(name, numbers):
    assert numbers_in_name(name) == numbers


def test_lists_of_steps():
    assert numbers_in_text("0,1:3001:30") == [0, *range(1, 3002, 30)]
    assert numbers_in_text("3:5") == [3, 4, 5]
    with pytest.raises(InputError, match="steps must be"):
        numbers_in_text("1-3")


@pytest.mark.parametrize(
    ("names", "inside", "steps", "frames"),
    [
        (["step_100.pt", "step_9.pt", "step_00020.pt"], {}, [9, 20, 100], [1, 2, 0]),
        (["p113_100.pt", "p113_20.pt"], {}, [20, 100], [1, 0]),
        (["model00240_loss5.0087.pt", "model00080_loss5.0734.pt"], {}, [80, 240], [1, 0]),
        (["model_2k4ohj6bhd.pt", "model_amw6ox6bzn.pt"], {"epoch": [30, 20]}, [20, 30], [1, 0]),
        (["a.pt", "b.pt"], {"step": [7, 3], "loss": [1, 1]}, [3, 7], [1, 0]),
        (["model_1k.pt", "model_10k.pt"], {}, [1000, 10_000], [0, 1]),
        (["100.pt", "200.pt"], {"epoch": [1, 1]}, [100, 200], [0, 1]),
    ],
)
def test_the_step_of_a_checkpoint(tmp_path, names, inside, steps, frames):
    series(tmp_path, names, lambda k: {key: values[k] for key, values in inside.items()})
    trajectory = nets.read_checkpoints(tmp_path)
    assert (trajectory.steps.tolist(), order(trajectory)) == (steps, frames)


@pytest.mark.parametrize(
    ("names", "inside"),
    [
        (["loss5.0734.pt", "loss4.17.pt"], {}),
        (["model_2k4ohj6bhd.pt", "model_amw6ox6bzn.pt"], {}),
        (["seed0.pt", "seed1.pt"], {}),
        (["p113.pt", "p97.pt"], {}),
        (["p113_3_100.pt", "p113_4_50.pt"], {}),
        (["1.pt", "2.pt"], {"epoch": [20, 10]}),
        (["step_1.pt", "step_2.pt"], {"global_step": [2, 1]}),
        (["step_1.pt", "step_2.pt"], {"epoch": [5, 3]}),
        (["epoch=0-step=9.ckpt", "epoch=1-step=5.ckpt"], {}),
        (["a.pt", "b.pt"], {"epoch": [1, 2], "global_step": [20, 10]}),
        (["step=40.ckpt", "step=40-v1.ckpt"], {}),
        (["a.pt", "b.pt"], {"epoch": [3, 3]}),
    ],
)
def test_steps_are_never_guessed(tmp_path, refused, names, inside):
    series(tmp_path / "run", names, lambda k: {key: values[k] for key, values in inside.items()})
    status, said = refused(tmp_path / "run")
    assert status == 2
    assert any(Path(name).stem in said for name in names)
    if "global_step" in inside and "epoch" in inside:
        for key, expected in (("epoch", [0.0, 1.0]), ("global_step", [1.0, 0.0])):
            assert order(nets.read_checkpoints(tmp_path / "run", step_key=key)) == expected


def test_steps_that_the_user_states(tmp_path, refused):
    series(tmp_path, ["a3_b50.pt", "a4_b10.pt", "about.pt"])
    assert nets.read_checkpoints(tmp_path, step_name=r"_b(\d+)").steps.tolist() == [10, 50]
    assert order(nets.read_checkpoints(tmp_path, steps=[7, 6, 9])) == [1, 0, 2]
    patterns = [("--step-name", pattern) for pattern in ("x(.)", "(", "a", "(a)")]
    for words in [
        *patterns,
        ("--step-key", "when"),
        *(("--steps", text) for text in ("1,2", "x", "0:9999999999999")),
    ]:
        assert f"{words[0]} must" in refused(tmp_path, *words)[1]
    with pytest.raises(InputError, match="steps"):
        nets.read_checkpoints(tmp_path, steps=[7, 6.5, 9])


def test_numbers_that_are_not_the_first_tokens(tmp_path, refused):
    E = points(2, 30)
    for frame in range(2):
        torch.save(
            {"embedding.weight": torch.tensor(E[frame]), "iter_num": 5 * frame},
            tmp_path / f"{'ab'[frame]}.pt",
        )
    assert "--tokens" in refused(tmp_path, "--modulus", "11")[1]
    trajectory = nets.read_checkpoints(tmp_path, modulus=11, tokens=slice(18, 29))
    np.testing.assert_array_equal(trajectory.positions[0], E[:, 18:29])
    assert (trajectory.modulus, trajectory.steps.tolist()) == (11, [0, 5])
    assert analysis.circles_of(trajectory).signals.shape == (1, 2, 5)


def test_what_cannot_be_read_beside_checkpoints_is_left_out_with_a_note(tmp_path):
    series(tmp_path, ["0.pt", "10.pt"])
    for name in ("events.out.tfevents.1.host", "loss.csv", "log.jsonl", "config.json"):
        (tmp_path / name).write_bytes(b"\xff{")
    notes = " ".join(nets.read_checkpoints(tmp_path).parameters["notes"])
    assert all(
        f"{name} is left out" in notes for name in ("events.out.tfevents.1.host", "loss.csv", "log.jsonl")
    )
    assert "config.json is left out" in notes


def test_one_layer_for_two_operands_and_axes_that_mislead(tmp_path, refused):
    for path, dim, p in ((tmp_path / "a.npy", 40, 13), (tmp_path / "b.npy", 16, 13)):
        W = points(3, dim, 2 * p)
        np.save(path, W)  # as Linear(2 p, dim), whose inputs are both numbers
        if dim == 16:
            assert "--transpose" in refused(path, "--modulus", "13")[1]
        turned = None if dim == 40 else True
        positions = nets.read_checkpoints(path, modulus=p, transpose=turned).positions[0]
        np.testing.assert_array_equal(positions, W.swapaxes(1, 2)[:, :p])
    torch.save({"embedding.weight": torch.zeros(60, 32)}, tmp_path / "a.pt")
    assert "--modulus must" in refused(tmp_path / "a.pt", "--modulus", "31")[1], "60 tokens, not 32"


def test_states_of_the_training_beside_the_network(tmp_path):
    series(tmp_path, ["checkpoint_00000/model.pt", "checkpoint_00010/model.pt"])
    for folder in tmp_path.iterdir():
        torch.save({"x": torch.zeros(3, 3)}, folder / "custom_checkpoint_0.pkl")
        torch.save([1, 2], folder / "random_states_0.pkl")
    assert nets.read_checkpoints(tmp_path).steps.tolist() == [0, 10]


CLOCK = [0, 100, 200, 300, 400]


@pytest.mark.parametrize("name", ["steps", "epochs", "checkpoint_epochs"])
@pytest.mark.parametrize("kind", [int, float, np.uint8])
def test_steps_beside_a_stack_are_read(tmp_path, name, kind):
    clock = np.array(CLOCK if kind is not np.uint8 else [0, 1, 3, 9, 200]).astype(kind)
    np.savez(tmp_path / "x.npz", W=points(), other=np.ones(5), **{name: clock})
    write(tmp_path / "x.pt", {"embeddings": torch.tensor(points()), name: torch.tensor(clock)})
    write(tmp_path / "list.pt", {"embeddings": torch.tensor(points()), name: clock.tolist()})
    for source in ("x.npz", "x.pt", "list.pt"):
        for options in ({}, {"step_key": name}):
            assert nets.read_checkpoints(tmp_path / source, **options).steps.tolist() == clock.tolist()
        assert nets.read_checkpoints(tmp_path / source, step_key="none").steps.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"epochs": CLOCK[:4]}, "5 steps"),
        ({"steps": np.arange(5) + 0.5}, "whole numbers"),
        ({"steps": [0, 2, 1, 3, 4]}, "must increase"),
    ],
)
def test_steps_that_are_unclear_are_asked_for(tmp_path, refused, arrays, word):
    np.savez(tmp_path / "x.npz", W=points(), **arrays)
    status, said = refused(tmp_path / "x.npz")
    assert status == 2
    assert word in said


def test_files_without_a_step_are_left_out_with_a_note(tmp_path, capsys):
    series(tmp_path / "run", ["10.pt", "9.pt", "final.pt"])
    write(tmp_path / "run" / "train_data.pt", [(i, j) for i in range(7) for j in range(7)])
    (tmp_path / "run" / "notes.pkl").write_bytes(b"no pickle")
    (tmp_path / "run" / "old_1.pt").mkdir()
    trajectory = nets.read_checkpoints(tmp_path / "run")
    assert (trajectory.steps.tolist(), order(trajectory)) == ([9, 10], [1, 0])
    notes = " ".join(trajectory.parameters["notes"])
    assert "final.pt" in notes
    assert "notes.pkl" in notes
    assert order(nets.read_checkpoints(tmp_path / "run" / "[0-9]*.pt")) == [1, 0]
    write(tmp_path / "run" / "last.pt", {"step": 10, "embedding.weight": torch.zeros(7, 2)})
    for k, step in ((1, 9), (0, 10)):
        write(
            tmp_path / "run" / f"{step}.pt", {"step": step, "embedding.weight": torch.full((7, 2), float(k))}
        )
    trajectory = nets.read_checkpoints(tmp_path / "run")
    assert (trajectory.steps.tolist(), order(trajectory)) == ([9, 10], [1, 0]), "last.pt is the same as 10.pt"


def test_a_checkpoint_that_holds_nan_ends_the_series(tmp_path, refused):
    series(tmp_path / "run", ["1.pt", "2.pt", "3.pt", "4.pt"])
    write(tmp_path / "run" / "3.pt", {"embedding.weight": torch.full((7, 2), torch.nan)})
    trajectory = nets.read_checkpoints(tmp_path / "run")
    assert (trajectory.steps.tolist(), order(trajectory)) == ([1, 2], [0, 1])
    assert "3.pt" in " ".join(trajectory.parameters["notes"])
    write(tmp_path / "run" / "1.pt", {"embedding.weight": torch.full((7, 2), torch.inf)})
    assert "NaN or infinite" in refused(tmp_path / "run")[1]
    stack = points()
    stack[3, 2, 0] = np.inf
    np.save(tmp_path / "x.npy", stack)
    np.testing.assert_array_equal(nets.read_checkpoints(tmp_path / "x.npy").positions[0], stack[:3])


def test_shapes_that_change_are_refused(tmp_path, refused):
    series(tmp_path / "run", ["1.pt", "2.pt"])
    write(tmp_path / "run" / "2.pt", {"embedding.weight": torch.zeros(8, 2)})
    assert "(7, 2) as before, got (8, 2)" in refused(tmp_path / "run")[1]


# -- axes ---------------------------------------------------------------------------------------------------


def circle(p=11, dim=16):
    n, matrix = np.arange(p), 0.1 * np.random.default_rng(0).standard_normal((p, dim))
    matrix[:, :2] += np.c_[np.cos(6 * np.pi * n / 11), np.sin(6 * np.pi * n / 11)]
    return matrix


def saved(path, array):
    """The same numbers as a matrix or stack in each kind of file."""
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez(path, W_E=array)
    else:
        torch.save({"embed.W_E": torch.tensor(array)}, path)
    return path


@pytest.mark.parametrize("suffix", ["npy", "npz", "pt", "matrix.pt"])
@pytest.mark.parametrize("extra", [0, 1, 2])
def test_which_axis_is_the_tokens_is_asked_and_answered(tmp_path, refused, suffix, extra):
    matrix = circle(11 + extra, 32)
    upright = matrix if suffix == "matrix.pt" else np.stack([matrix, 2 * matrix])
    turned, straight = (
        saved(tmp_path / f"{name}.{suffix}", array)
        for name, array in (("turned", upright.swapaxes(-1, -2).copy()), ("straight", upright))
    )
    for path, transpose in ((turned, True), (straight, False)):
        assert "--modulus" in refused(path)[1]
        for options in ({"modulus": 11}, {"transpose": transpose}, {"transpose": transpose, "modulus": 11}):
            trajectory = nets.read_checkpoints(path, **options)
            count = options.get("modulus", 11 + extra)
            np.testing.assert_array_equal(
                trajectory.positions[0], upright[..., :count, :].reshape((-1, count, 32))
            )
            assert trajectory.modulus == options.get("modulus")
            notes = " ".join(trajectory.parameters["notes"])
            assert ("transposed" in notes) == (path == turned and "transpose" not in options)
            assert ("first 11 are kept" in notes) == (extra > 0 and "modulus" in options)
            assert ("no modulus is known" in notes) == ("modulus" not in options)
        assert analysis.surviving_frequencies(nets.read_checkpoints(path, modulus=11).final[0]).tolist() == [
            3
        ]
    assert "--modulus must" in refused(straight, "--modulus", "17")[1]


@pytest.mark.parametrize("p", [None, 11])
def test_the_axes_of_an_embedding_are_known_unless_the_file_contradicts(tmp_path, refused, p):
    matrix = torch.tensor(circle(11, 40))
    beside = {} if p is None else {"config": {"p": p, "dropout": 0.1}}
    for name in ("embedding.weight", "tok_emb.weight", "transformer.wte.weight"):
        write(tmp_path / "a.pt", {"model": {name: matrix}, **beside})
        trajectory = nets.read_checkpoints(tmp_path / "a.pt")
        np.testing.assert_array_equal(trajectory.positions[0, 0], matrix)
        assert trajectory.modulus == p
    write(tmp_path / "a.pt", {"embed.weight": matrix, "embed.bias": torch.zeros(11), **beside})
    if p is None:
        assert "--modulus" in refused(tmp_path / "a.pt")[1], "of a linear layer"
    write(tmp_path / "a.pt", {"embed.weight": matrix.T.contiguous(), **beside})
    if p is not None:
        np.testing.assert_array_equal(nets.read_checkpoints(tmp_path / "a.pt").positions[0, 0], matrix)
    write(tmp_path / "a.pt", {"embed.W_E": torch.zeros(11, 11), **beside})
    assert "--transpose" in refused(tmp_path / "a.pt")[1]


def test_a_modulus_comes_from_examples_names_and_settings_but_not_from_two(tmp_path, refused):
    write(tmp_path / "m.pt", {"embed.W_E": torch.tensor(circle(12, 30).T.copy()), "p": 11})
    assert nets.read_checkpoints(tmp_path / "m.pt").positions.shape == (1, 1, 11, 30)
    pairs = torch.cartesian_prod(torch.arange(11), torch.arange(11))
    write(
        tmp_path / "m.pt",
        {"embed.W_E": torch.tensor(circle(12, 30)), "train_data": pairs[::2], "test_x": pairs[1::2]},
    )
    assert nets.read_checkpoints(tmp_path / "m.pt").modulus == 11
    write(tmp_path / "few.pt", {"embed.W_E": torch.tensor(circle(12, 30)), "train_data": pairs[:30]})
    assert "--modulus" in refused(tmp_path / "few.pt")[1], "too few examples to know the largest number"
    both = {"config": {"p": 11}, "args": {"mod": 12}, "embed.W_E": torch.tensor(circle(12, 30))}
    write(tmp_path / "both.pt", both)
    assert "11 (p in the settings), 12 (mod in the settings)" in refused(tmp_path / "both.pt")[1]


@pytest.mark.parametrize("shape", [(1, 2, 1), (0, 3, 1), (1, 3, 0), (0, 1, 3, 1)])
def test_axes_that_are_too_short(tmp_path, refused, shape):
    np.save(tmp_path / "x.npy", np.zeros(shape))
    assert "at least 3 tokens" in refused(tmp_path / "x.npy")[1]


# -- containers ---------------------------------------------------------------------------------------------

EMB = {"embed.weight": torch.tensor(points()[0])}


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda state: state,
        lambda state: {"model_state_dict": state, "epoch": 7, "optimizer_state_dict": {"state": {0: {}}}},
        lambda state: {"state_dict": state, "optimizer_states": [{"state": {0: {"m": torch.ones(3, 3)}}}]},
        lambda state: {"model": {"state_dict": state}},
        lambda state: {"net": {f"module.{name}": value for name, value in state.items()}},
        lambda state: {f"_orig_mod.{name}": value for name, value in state.items()},
        lambda state: {"params": {"embed": {"weight": state["embed.weight"]}}},
        lambda state: state["embed.weight"],
        lambda state: torch.nn.Parameter(state["embed.weight"]),
        lambda state: {"model": state, "loss": np.float64(1.5), "lr": np.float32(1), "step": np.int64(7)},
        lambda state: {
            "model": state,
            "args": argparse.Namespace(lr=1, path=Path("x")),
            "losses": np.arange(3.0),
        },
        lambda state: {
            "model": state,
            "schedule": functools.partial(print, "x"),
            "device": torch.device("cpu"),
        },
        lambda state: [state],
        lambda state: {7: {"model": state}},
        lambda state: [(7, state)],
        lambda state: {"epoch_7": state},
    ],
)
def test_a_state_dict_in_whatever_it_is_wrapped(tmp_path, wrapped):
    torch.save(wrapped(EMB), tmp_path / "epoch_7.pt")
    for source in (tmp_path, tmp_path / "epoch_7.pt"):
        trajectory = nets.read_checkpoints(source, transpose=False)
        np.testing.assert_array_equal(trajectory.positions[0, 0], points()[0])
        assert trajectory.steps.tolist() == [7] or isinstance(wrapped(EMB), list)


def test_shards_and_directories_of_runs(tmp_path, refused):
    for seed in (0, 1):
        for step in (0, 500):
            folder = tmp_path / f"seed{seed}" / f"checkpoint-{step}"
            write(folder / "model-00001-of-00002.safetensors", {"h.weight": torch.zeros(3, 3)})
            write(
                folder / "model-00002-of-00002.safetensors",
                {"wte.weight": torch.full((7, 2), 1.0 * seed + step)},
            )
    assert order(nets.read_checkpoints(tmp_path / "seed1")) == [1.0, 501.0]
    trajectory = nets.read_checkpoints(tmp_path / "seed*")
    assert trajectory.positions[:, :, 0, 0].tolist() == [[0.0, 500.0], [1.0, 501.0]]
    series(tmp_path / "runs" / "a", ["0.pt", "10.pt"], lambda k: {"loss": 2.0 - k})
    series(tmp_path / "runs" / "b", ["0.pt", "10.pt"], lambda k: {"loss": 3.0 - k})
    trajectory = nets.read_checkpoints(tmp_path / "runs")
    assert trajectory.runs == 2
    assert trajectory.observables["loss"].tolist() == [[2.0, 1.0], [3.0, 2.0]]
    series(tmp_path / "runs" / "c", ["0.pt", "20.pt"])
    assert "same steps" in refused(tmp_path / "runs")[1]


def test_losses_and_settings_beside_the_files(tmp_path):
    series(
        tmp_path, ["epoch_0.pt", "epoch_2.pt", "epoch_4.pt"], lambda k: {"val_loss": 1.0} if k == 1 else {}
    )
    (tmp_path / "metrics.csv").write_text("epoch,step,train_loss,acc\n0,10,3.0,\n1,20,2.0,0.5\n2,30,1.0,\n")
    (tmp_path / "hparams.yaml").write_text("p: 7\nlr: 0.001\nmodel:\n  name: mlp\n")
    trajectory = nets.read_checkpoints(tmp_path)
    np.testing.assert_array_equal(trajectory.observables["val_loss"], [[np.nan, 1.0, np.nan]])
    assert trajectory.observables["train_loss"].tolist() == [[3.0, 2.0, 1.0]]
    assert trajectory.clock("train_loss")[0].tolist() == [0, 1, 2], "epochs, as the frames"
    assert trajectory.clock("acc")[0].tolist() == [1]
    assert trajectory.parameters["configuration"] == {"p": 7, "lr": 0.001, "name": "mlp"}
    assert trajectory.modulus == 7
    trajectory.save(tmp_path / "x.h5")
    assert physics.load(tmp_path / "x.h5") == trajectory


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"mlp.W_in": torch.ones(8, 7), "mlp.W_out": torch.ones(7, 8)}, ("mlp.W_in (8, 7)", "--array")),
        ({"emb": torch.eye(4).to_sparse()}, ("sparse",)),
        ({"emb": torch.zeros(4, 3, dtype=torch.complex64)}, ("complex64",)),
        ({"emb": torch.zeros(4, 3, dtype=torch.int64)}, ("emb",)),
        ([1, 2], ("no array",)),
        ({"a": [EMB, EMB], "b": [EMB, EMB]}, ("one of a.embed.weight",)),
    ],
)
def test_messages_say_what_the_file_holds(tmp_path, refused, content, words):
    write(tmp_path / "a.pt", content)
    said = refused(tmp_path / "a.pt")[1]
    assert all(word in said for word in words), said


@pytest.mark.filterwarnings("ignore")
def test_quantized_and_nested_tensors_are_refused(tmp_path, refused):
    for name, tensor in (
        ("quantized", torch.quantize_per_tensor(torch.zeros(4, 3), 1.0, 0, torch.qint8)),
        ("nested", torch.nested.nested_tensor([torch.randn(5, 2)])),
    ):
        write(tmp_path / "a.pt", {"emb": tensor})
        assert name in refused(tmp_path / "a.pt")[1]


def test_h5md_of_other_programs(tmp_path, capsys):
    path = tmp_path / "x.h5md"
    with h5py.File(path, "w") as file:
        file.create_group("h5md").attrs["version"] = [1, 1]
        group = file.create_group("particles/trajectory/position")
        group["value"], group["step"], group["time"] = points(3, 5, 3), [0, 10, 20], [0.0, 1.0, 2.0]
        fixed = file.create_group("particles/trajectory/velocity")
        fixed["value"], fixed["step"] = points(3, 5, 3, seed=1), 5
        fixed["step"].attrs["offset"] = 7
        file["particles/elsewhere"] = h5py.ExternalLink(tmp_path / "y.h5", "/")
    assert main(["info", str(path)]) == 1
    assert "grokphys import" in capsys.readouterr().err
    trajectory = nets.read_checkpoints(path, array="particles/trajectory/position")
    assert trajectory.steps.tolist() == [0, 10, 20]
    np.testing.assert_array_equal(trajectory.positions[0], points(3, 5, 3))
    assert nets.read_checkpoints(path, array="particles/trajectory/velocity").steps.tolist() == [7, 12, 17]
    with pytest.raises(InputError, match="trajectory.position"):
        nets.read_checkpoints(path)
    physics.Trajectory(points()[None], range(5)).save(tmp_path / "own.h5")
    with pytest.raises(InputError, match="physics.load"):
        nets.read_checkpoints(tmp_path / "own.h5")


def test_neurons_are_read_with_the_weights_out_of_them(tmp_path, capsys):
    n, k = np.arange(13), np.repeat(np.arange(1, 7), 4)
    W = np.cos(2 * np.pi * np.outer(n, k) / 13 + np.tile(np.arange(4), 6) * np.pi / 2)  # pure neurons
    state = {"mlp.W_in": torch.tensor(W.T.copy()), "mlp.W_out": torch.tensor(W), "mlp.basis": torch.eye(13)}
    write(tmp_path / "0.pt", {"model": state, "p": 13})
    out = str(tmp_path / "x.h5")
    assert main(["import", str(tmp_path / "0.pt"), "--as", "neurons", "--out", out]) == 0
    np.testing.assert_array_equal(physics.load(out).final[0], np.concatenate([W, W], axis=1))
    assert main(["analyze", out, "--neurons", "--table", str(tmp_path / "x.csv")]) == 0
    assert "100.0% single" in capsys.readouterr().out
    assert "phase_misalignment" in (tmp_path / "x.csv").read_text()
    assert main(["analyze", out]) == 0
    assert "twice the mean" in capsys.readouterr().out, "all six frequencies are equally strong"


# -- what tries to run code ---------------------------------------------------------------------------------


class Evil:
    """Pickles as a call that leaves a directory."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def attempts(trap):
    """Objects that run code when they are unpickled as usual."""
    text = f"__import__('os').mkdir({str(trap)!r})"
    return {
        "call": Evil(os.mkdir, str(trap)),
        "system": Evil(os.system, f"mkdir {trap}"),
        "eval": Evil(eval, text),
        "exec": Evil(exec, text),
        "getattr": Evil(getattr, Evil(__import__, "os"), "mkdir"),
        "partial": Evil(functools.partial, os.mkdir, str(trap)),
        "apply": Evil(functools.reduce, os.mkdir, [str(trap)], str(trap)),
        "hooks": {"nested": [{"deep": (Evil(os.mkdir, str(trap)),)}]},
        "process": Evil(subprocess.run, ["mkdir", str(trap)]),
        "inner": Evil(pickle.loads, pickle.dumps(Evil(os.mkdir, str(trap)))),
        "load": Evil(torch.load, str(trap)),
        "tensor": Evil(
            torch._utils._rebuild_tensor_v2, Evil(os.mkdir, str(trap)), 0, (7, 2), (2, 1), False, {}
        ),
        "type": Evil(torch._tensor._rebuild_from_type_v2, os.mkdir, torch.Tensor, (str(trap),), {}),
        "scalar": Evil(np._core.multiarray.scalar, np.dtype("O"), Evil(os.mkdir, str(trap))),
    }


ATTEMPTS = sorted(attempts(""))


def test_an_array_of_objects_has_the_length_of_its_list(tmp_path, refused):
    array = np.empty(5, object)
    content = pickle.dumps(array, 2)
    assert content.count(b"NNNNN") == 1
    (tmp_path / "1.pkl").write_bytes(content.replace(b"NNNNN", b""))
    assert "is not a readable" in refused(tmp_path / "1.pkl")[1]


@pytest.mark.parametrize("kind", ATTEMPTS)
@pytest.mark.parametrize("form", ["zip", "legacy", "pickle", "numpy"])
def test_no_code_of_a_file_is_run(tmp_path, kind, form):
    trap, path = tmp_path / "it_ran", tmp_path / ("step_1.npy" if form == "numpy" else "step_1.pt")
    state = {"emb.weight": torch.tensor(points()[0]), "config": attempts(trap)[kind]}
    if form == "pickle":
        path.write_bytes(pickle.dumps(state))
    elif form == "numpy":
        np.save(path, np.array(state, object), allow_pickle=True)
    else:
        torch.save(state, path, _use_new_zipfile_serialization=form == "zip")
    try:
        trajectory = nets.read_checkpoints(path, transpose=False)
    except FileFormatError:
        assert kind in ("tensor", "type", "scalar"), "an impossible tensor"
    else:
        np.testing.assert_array_equal(trajectory.positions[0, 0], points()[0])
    assert look(path) if kind not in ("tensor", "type", "scalar") else True
    assert not trap.exists()


def test_nothing_that_a_file_names_is_imported(tmp_path, python):
    (tmp_path / "spy.py").write_text("open('it_ran', 'w')\nclass Model:\n    pass\n")
    content = b"\x80\x02}(U\x03embcspy\nModel\n)\x81}U\x01xK\x01sbu."
    (tmp_path / "a.pkl").write_bytes(content)
    python(
        "from nets.reading import look\nimport sys\nprint(look('a.pkl'))\nassert 'spy' not in sys.modules",
        cwd=tmp_path,
    )
    assert not (tmp_path / "it_ran").exists()


# -- what lies, or is damaged -------------------------------------------------------------------------------


def npy(shape, kind="<f8", data=b"\0" * 800):
    """A file of NumPy with whatever header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


@pytest.mark.parametrize(
    "shape", [(2**60, 4, 2), (2**40, 2**40, 2), (5, 40, 2), (-1, 4, 2), (2**60,) * 3 + (2,)]
)
def test_a_shape_that_is_not_there_is_not_allocated(tmp_path, refused, shape):
    (tmp_path / "x.npy").write_bytes(npy(shape))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy(shape))
    for name in ("x.npy", "x.npz"):
        assert "is not a readable" in refused(tmp_path / name)[1]


def test_a_small_checkpoint_that_states_gigabytes(tmp_path, refused):
    torch.save({"emb.weight": torch.empty(2**20, 2)}, tmp_path / "m.pt")
    with (
        zipfile.ZipFile(tmp_path / "m.pt") as whole,
        zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as small,
    ):
        for info in whole.infolist():
            small.writestr(info.filename, whole.read(info.filename))
    assert "compressed" in refused(tmp_path / "bomb.pt")[1]
    torch.save({"emb.weight": torch.zeros(1).expand(2**40, 2**20)}, tmp_path / "step_1.pt")
    assert "more than the file holds" in refused(tmp_path / "step_1.pt")[1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pt", b""),
        ("a.npy", b""),
        ("a.ckpt", b"\x00" * 200),
        ("model.ckpt", b"TF checkpoint"),
        ("a.safetensors", (10**9).to_bytes(8, "little") + b"{}"),
        ("a.pt", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n"),
    ],
)
def test_other_files_end_in_a_sentence(tmp_path, refused, name, content):
    (tmp_path / name).write_bytes(content)
    assert "is not a readable" in refused(tmp_path / name)[1]
    for other in ("model.onnx", "saved_model.pb", "weights.keras", "metrics.csv"):
        (tmp_path / other).write_bytes(b"x")
        assert "must be a directory or a file" in refused(tmp_path / other)[1]


def test_two_arrays_of_one_name(tmp_path, refused):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", npy((5, 10, 2)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", npy((5, 10, 2)))
    assert "two arrays" in refused(tmp_path / "x.npz")[1]
    state = {"embed.weight": torch.zeros(7, 2), "module.embed.weight": torch.ones(7, 2)}
    write(tmp_path / "a.pt", state)
    assert "several arrays, embed.weight (7, 2) float32, module.embed.weight" in refused(tmp_path / "a.pt")[1]


def originals(directory):
    """Files of every kind that are in order."""
    np.save(directory / "a.npy", points())
    np.savez(directory / "a.npz", E=points(), steps=[0, 5, 7, 8, 90])
    np.savez_compressed(directory / "b.npz", E=points(), steps=[0, 5, 7, 8, 90])
    state = {
        "emb.weight": torch.tensor(points()[0]),
        "config": argparse.Namespace(p=7),
        "loss": np.float64(1),
    }
    torch.save(state, directory / "a_1.pt")
    torch.save(state, directory / "b_1.pth", _use_new_zipfile_serialization=False)
    (directory / "c_1.pkl").write_bytes(pickle.dumps(state))
    safetensors.save_file({"emb.weight": state["emb.weight"]}, directory / "a_1.safetensors")
    return sorted(directory.iterdir())


def damaged(content, random):
    """The same with some bytes changed, cut short, or with a part twice."""
    content = bytearray(content)
    kind = random.integers(4)
    if kind == 0:
        return bytes(content[: random.integers(len(content))])
    if kind == 1:
        start, length = random.integers(len(content)), random.integers(1, 200)
        return bytes(content[:start] + content[start : start + length] + content[start:])
    for place in random.integers(len(content), size=1 if kind == 2 else 20):
        content[place] = random.integers(256)
    return bytes(content)


@pytest.mark.parametrize("mutants", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_damaged_files_end_in_a_sentence(tmp_path, mutants):
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").mkdir()
    random = np.random.default_rng(mutants)
    refusals = 0
    for path in originals(tmp_path / "good"):
        assert nets.read_checkpoints(path).tokens == 7
        content, bad = path.read_bytes(), tmp_path / "bad" / path.name
        for _ in range(mutants):
            bad.write_bytes(damaged(content, random))
            try:
                trajectory = nets.read_checkpoints(bad)
            except (FileFormatError, InputError):
                refusals += 1
            else:
                assert np.isfinite(trajectory.positions).all()
    assert refusals > 2 * mutants


# -- large --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["npy", "pt"])
def test_a_large_stack_needs_its_own_size_of_memory(tmp_path, python, suffix):
    array = np.ones((256, 1024, 128), np.float32)  # 128 MiB
    np.save(tmp_path / "x.npy", array) if suffix == "npy" else torch.save(
        {"emb": torch.tensor(array)}, tmp_path / "x.pt"
    )
    del array
    code = """
import resource, sys, numpy, h5py, nets.reading
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
trajectory = nets.reading.read_checkpoints(sys.argv[1], transpose=False)
print(peak() - before)
"""
    assert float(python(code, tmp_path / f"x.{suffix}").stdout) < 128 + 60


@pytest.mark.slow
def test_ten_thousand_checkpoints(tmp_path):
    content = io.BytesIO()
    torch.save(
        {"embedding.weight": torch.zeros(7, 2), **{f"w{k}": torch.zeros(2) for k in range(20)}}, content
    )
    for step in range(10_000):
        (tmp_path / f"{step}.pt").write_bytes(content.getvalue())
    start = time.perf_counter()
    assert nets.read_checkpoints(tmp_path).frames == 10_000
    assert time.perf_counter() - start < 100
