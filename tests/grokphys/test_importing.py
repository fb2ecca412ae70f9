"""`grokphys import`: what real programs write, what is asked for, and where damaged files lead."""

import argparse
import io
import os
import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import physics
from grokphys.cli.main import main
from grokphys.importing import foreign_trajectory
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
        assert "weights_only" not in said, said
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


# -- arrays -------------------------------------------------------------------------------------------------


def test_runs_of_an_array(tmp_path, capsys):
    array = np.stack([points(), points(seed=1)])
    np.savez_compressed(tmp_path / "x.npz", E=array, steps=np.arange(0, 50, 10, dtype=np.uint16))
    words = ["import", str(tmp_path / "x.npz"), "--out", str(tmp_path / "x.h5"), "--dtype", "float64"]
    assert main(words) == 0
    assert "2 runs of 5 frames of 7 tokens in 2 dimensions, steps 0 to 40" in capsys.readouterr().out
    stored = physics.load(tmp_path / "x.h5")
    np.testing.assert_array_equal(stored.positions, array)
    assert stored.steps.tolist() == [0, 10, 20, 30, 40]
    assert stored.parameters == {"program": "grokphys import", "source": "x.npz", "array": "E"}
    assert main(words) == 1, "it exists"
    assert main([*words, "--overwrite"]) == 0


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_headers_of_every_version_and_order(tmp_path, version):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, np.asfortranarray(points()), version=version)
    np.testing.assert_array_equal(foreign_trajectory(tmp_path / "x.npy").positions[0], points())


@pytest.mark.parametrize("suffix", ["npy", "npz", "pt"])
@pytest.mark.parametrize(
    ("kind", "stored"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")]
)
def test_numbers_keep_their_precision(tmp_path, suffix, kind, stored):
    array = (1000 + 1e-3 * points()).astype(kind)
    path = tmp_path / f"x.{suffix}"
    if suffix == "pt":
        torch.save({"emb": torch.tensor(array)}, path)
    else:
        {"npy": np.save, "npz": np.savez}[suffix](path, array)
    positions = foreign_trajectory(path).positions
    assert positions.dtype == stored
    np.testing.assert_array_equal(positions[0], array)


# -- steps inside a file ------------------------------------------------------------------------------------

CLOCK = [0, 100, 200, 300, 400]


@pytest.mark.parametrize("name", ["steps", "epochs", "checkpoint_epochs"])
@pytest.mark.parametrize("kind", [int, float, np.uint8])
def test_steps_beside_a_stack_are_read(tmp_path, name, kind):
    clock = np.array(CLOCK if kind is not np.uint8 else [0, 1, 3, 9, 200])
    np.savez(tmp_path / "x.npz", W=points(), other=np.ones(5), **{name: clock.astype(kind)})
    write(tmp_path / "x.pt", {"embeddings": torch.tensor(points()), name: torch.tensor(clock.astype(kind))})
    write(tmp_path / "list.pt", {"embeddings": torch.tensor(points()), name: clock.astype(kind).tolist()})
    for source in ("x.npz", "x.pt", "list.pt"):
        trajectory = foreign_trajectory(tmp_path / source)
        assert trajectory.steps.tolist() == clock.tolist()
        assert "notes" not in trajectory.parameters
        assert foreign_trajectory(tmp_path / source, steps=name).steps.tolist() == clock.tolist()
        assert foreign_trajectory(tmp_path / source, steps="none").steps.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"when": CLOCK}, "when"),
        ({"epochs": CLOCK, "iterations": [0, 1, 2, 3, 4]}, "epochs, iterations"),
        ({"epochs": CLOCK[:4]}, "5 steps"),
        ({"steps": np.zeros((5, 2))}, "5 steps"),
        ({"steps": np.arange(5) + 0.5}, "whole numbers"),
        ({"steps": [0, 2, 1, 3, 4]}, "must increase"),
        ({"steps": np.array([0, 1, 2, 3, 2**63], np.uint64)}, "below 2^63"),
    ],
)
def test_steps_that_are_unclear_are_asked_for(tmp_path, refused, arrays, word):
    np.savez(tmp_path / "x.npz", W=points(), **arrays)
    status, said = refused(tmp_path / "x.npz")
    assert status == 2
    assert word in said


def test_a_stack_without_steps_says_so(tmp_path, capsys):
    np.save(tmp_path / "x.npy", points())
    assert main(["import", str(tmp_path / "x.npy"), "--out", str(tmp_path / "x.h5")]) == 0
    assert "note: the steps are 0, 1, 2, … as none are given" in capsys.readouterr().out
    np.savez(tmp_path / "x.npz", E=points(), about=np.array({"rate": 1}), steps=1000)
    trajectory = foreign_trajectory(tmp_path / "x.npz")
    assert (trajectory.steps.tolist(), len(trajectory.parameters["notes"])) == ([0, 1, 2, 3, 4], 1)


# -- steps of checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "inside", "steps"),
    [
        (["step_100.pt", "step_9.pt", "step_00020.pt"], {}, [9, 20, 100]),
        (["0.pth", "49800.pth", "200.pth"], {"epoch": [0, 49800, 200]}, [0, 200, 49800]),
        (["epoch_16.ckpt", "epoch_2.ckpt"], {}, [2, 16]),
        (["epoch=1-step=40-v1.ckpt", "epoch=0-step=20.ckpt"], {"global_step": [40, 20], "epoch": [1, 0]},
         [20, 40]),
        (["p113_100.pt", "p113_20.pt"], {}, [20, 100]),
        (["epoch=05-val_loss=2.55.ckpt", "epoch=23-val_loss=0.06.ckpt", "epoch=11-val_loss=2.07.ckpt"],
         {"epoch": [5, 23, 11], "global_step": [6, 24, 12]}, [5, 11, 23]),
        (["model00240_loss0.5957_test0.01_loss5.0087.pt", "model00080_loss0.7_test0.01_loss5.0734.pt"],
         {"epoch": [240, 80]}, [80, 240]),
        (["model_2k4ohj6bhd.pt", "model_amw6ox6bzn.pt"], {"epoch": [30, 20]}, [20, 30]),
        (["a.pt", "b.pt"], {"step": [7, 3], "loss": [1, 1]}, [3, 7]),
        (["final.pt", "10.pt", "0.pt"], {"epoch": [20, 10, 0]}, [0, 10, 20]),
        (["model_1k.pt", "model_10k.pt"], {"iter": [1000, 10_000]}, [1000, 10_000]),
        (["model_3.pt", "model_3.5.pt"], {"step": [3, 4]}, [3, 4]),
    ],
)  # fmt: skip
def test_the_step_of_a_checkpoint(tmp_path, names, inside, steps):
    series(tmp_path, names, lambda k: {key: values[k] for key, values in inside.items()})
    trajectory = foreign_trajectory(tmp_path)
    assert trajectory.steps.tolist() == steps
    by_hand = inside.get("epoch") if "5" in names[0] else None
    values = by_hand or next(iter(inside.values()), None)
    if values is not None:
        assert order(trajectory) == np.argsort(values).tolist(), "frames in the order of training"


@pytest.mark.parametrize(
    ("names", "inside"),
    [
        (["loss5.0734.pt", "loss4.17.pt"], {}),
        (["model_1k.pt", "model_2k.pt"], {}),
        (["model_2k4ohj6bhd.pt", "model_amw6ox6bzn.pt"], {}),
        (["seed0.pt", "seed1.pt"], {}),
        (["block_0.pt", "block_1.pt"], {}),
        (["p113_3_100.pt", "p113_4_50.pt"], {}),
        (["2024-05-01_12-00.pt", "2024-05-01_13-00.pt"], {}),
        (["run_20240501.pt", "run_20240502.pt"], {}),
        (["model_20240501.pt", "model_20240502.pt"], {}),
        (["step_1.5.pt", "step_2.5.pt"], {}),
        (["step_1_000.pt", "step_2_000.pt"], {}),
        (["1.pt", "2.pt"], {"epoch": [20, 10]}),
        (["step_1.pt", "step_2.pt"], {"global_step": [2, 1]}),
        (["step_1.pt", "step_2.pt"], {"epoch": [5, 3]}),
        (["epoch=0-step=9.ckpt", "epoch=1-step=5.ckpt"], {}),
        (["a.pt", "b.pt"], {"epoch": [1, 2], "global_step": [20, 10]}),
        (["10.pt", "20.pt", "final.pt"], {}),
        (["step=40.ckpt", "step=40-v1.ckpt"], {}),
        (["a.pt", "b.pt"], {"epoch": [3, 3]}),
    ],
)
def test_steps_are_never_guessed(tmp_path, refused, names, inside):
    series(tmp_path / "run", names, lambda k: {key: values[k] for key, values in inside.items()})
    status, said = refused(tmp_path / "run")
    assert status == 2
    assert any(name in said for name in names)
    if "global_step" in inside and "epoch" in inside:
        for key, expected in (("epoch", [0.0, 1.0]), ("global_step", [1.0, 0.0])):
            assert order(foreign_trajectory(tmp_path / "run", steps=key)) == expected


def test_a_pattern_leaves_files_out_and_the_same_frame_counts_once(tmp_path, refused):
    series(tmp_path / "run", ["10.pt", "9.pt", "final.pt"])
    (tmp_path / "run" / "old_1.pt").mkdir()
    assert "final.pt" in refused(tmp_path / "run")[1]
    trajectory = foreign_trajectory(tmp_path / "run" / "[0-9]*.pt")
    assert (trajectory.steps.tolist(), order(trajectory)) == ([9, 10], [1, 0])
    write(tmp_path / "run" / "last.pt", {"step": 10, "emb.weight": torch.zeros(7, 2)})
    for k, step in ((1, 9), (0, 10)):
        write(tmp_path / "run" / f"{step}.pt", {"step": step, "emb.weight": torch.full((7, 2), float(k))})
    (tmp_path / "run" / "final.pt").unlink()
    trajectory = foreign_trajectory(tmp_path / "run")
    assert (trajectory.steps.tolist(), order(trajectory)) == ([9, 10], [1, 0])
    assert "last.pt" in trajectory.parameters["notes"][0]


def test_folders_of_folders_are_named_by_a_pattern(tmp_path, refused):
    series(tmp_path / "hf", [f"checkpoint-{step}/model.pt" for step in (100, 20)])
    said = refused(tmp_path / "hf")[1]
    assert f"'{tmp_path}/hf/*/model.pt'" in said
    assert order(foreign_trajectory(tmp_path / "hf" / "*" / "model.pt")) == [1, 0]


@pytest.mark.parametrize(
    ("name", "inside", "step"),
    [("model_2k4ohj6bhd.pt", {}, 0), ("final.pt", {}, 0), ("final.pt", {"epoch": 3}, 3), ("c_5.pt", {}, 5)],
)
def test_one_checkpoint_of_one_frame(tmp_path, name, inside, step):
    series(tmp_path, [name], lambda k: inside)
    trajectory = foreign_trajectory(tmp_path / name)
    assert trajectory.steps.tolist() == [step]
    assert ("notes" in trajectory.parameters) == (step == 0)


# -- axes ---------------------------------------------------------------------------------------------------


def circle(p=11, dim=16):
    n, matrix = np.arange(p), 0.1 * np.random.default_rng(0).standard_normal((p, dim))
    matrix[:, :2] += np.c_[np.cos(6 * np.pi * n / p), np.sin(6 * np.pi * n / p)]
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
def test_which_axis_is_the_tokens_is_asked_and_answered(tmp_path, refused, suffix):
    upright = circle() if suffix == "matrix.pt" else np.stack([circle(), 2 * circle()])
    turned, straight = (
        saved(tmp_path / f"{name}.{suffix}", array)
        for name, array in (("turned", upright.swapaxes(-1, -2).copy()), ("straight", upright))
    )
    for path in (turned, straight):
        said = refused(path)[1]
        assert "--transpose" in said
        assert "--modulus" in said
    assert "--transpose" in refused(turned, "--modulus", "11")[1], "the modulus is on the other axis"
    for path, options in (
        (turned, {"transpose": True}),
        (turned, {"transpose": True, "modulus": 11}),
        (straight, {"modulus": 11}),
        (straight, {"transpose": False}),
    ):
        trajectory = foreign_trajectory(path, **options)
        np.testing.assert_array_equal(trajectory.positions[0], upright.reshape((-1, 11, 16)))
        assert trajectory.parameters.get("modulus") == options.get("modulus")
    assert "--modulus" in refused(straight, "--modulus", "13", "--no-transpose")[1]


def test_the_axes_of_an_embedding_are_known_unless_the_file_contradicts(tmp_path, refused):
    matrix = torch.tensor(circle())
    for name in ("embedding.weight", "tok_emb.weight", "transformer.wte.weight"):
        write(tmp_path / "a.pt", {name: matrix})
        np.testing.assert_array_equal(
            foreign_trajectory(tmp_path / "a.pt", array=name).positions[0, 0], matrix
        )
    for state in (
        {"embed.weight": matrix, "embed.bias": torch.zeros(11)},  # of a linear layer
        {"embed.weight": matrix.T.contiguous(), "config": {"p": 11}},
        {"embed.W_E": torch.zeros(11, 11)},
    ):
        write(tmp_path / "a.pt", state)
        assert "transpose" in refused(tmp_path / "a.pt", "--array", next(iter(state)))[1]
    write(tmp_path / "a.pt", {"embed.W_E": matrix, "p": 11})
    trajectory = foreign_trajectory(tmp_path / "a.pt")
    assert (trajectory.tokens, trajectory.parameters["modulus"]) == (11, 11)


def test_tokens_beyond_the_modulus_are_left_out(tmp_path):
    write(tmp_path / "a.pt", {"embed.W_E": torch.tensor(circle(12).T.copy())})
    trajectory = foreign_trajectory(tmp_path / "a.pt", modulus=11, transpose=True)
    np.testing.assert_array_equal(trajectory.positions[0, 0], circle(12)[:11])
    write(tmp_path / "b.pt", {"embed.W_E": torch.tensor(circle(12, 32)), "config": {"p": 11}})
    whole = foreign_trajectory(tmp_path / "b.pt")
    assert (whole.tokens, whole.parameters["modulus"]) == (12, 11), "which tokens to drop is for the user"
    assert "--modulus 11" in whole.parameters["notes"][0]
    assert "from 11 on" in " ".join(trajectory.parameters["notes"])
    assert main(["import", str(tmp_path / "a.pt"), "--out", str(tmp_path / "a.h5"), "--transpose",
                 "--modulus", "11"]) == 0  # fmt: skip
    assert physics.load(tmp_path / "a.h5").parameters["modulus"] == 11


@pytest.mark.parametrize(("modulus", "most"), [(5, 9), (30, 39)])
def test_a_modulus_has_fewer_than_twice_its_tokens_and_than_ten_more(tmp_path, refused, modulus, most):
    np.save(tmp_path / "x.npy", np.zeros((1, most, 2)))
    assert foreign_trajectory(tmp_path / "x.npy", modulus=modulus).tokens == modulus
    np.save(tmp_path / "x.npy", np.zeros((1, most + 1, 2)))
    said = refused(tmp_path / "x.npy", "--no-transpose", "--modulus", str(modulus))[1]
    assert f"must be the number of tokens, {most + 1}" in said


@pytest.mark.parametrize("shape", [(1, 2, 1), (0, 3, 1), (1, 3, 0), (0, 1, 3, 1), (17, 2, 100)])
def test_axes_that_are_too_short(tmp_path, refused, shape):
    np.save(tmp_path / "x.npy", np.zeros(shape))
    assert "at least 3 tokens" in refused(tmp_path / "x.npy")[1]


# -- checkpoints --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt", ".safetensors"])
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16])
def test_checkpoints_of_every_suffix(tmp_path, suffix, kind):
    tensors = {step: torch.tensor(points()[k]).to(kind) for k, step in enumerate([0, 5, 10, 100, 20])}
    for step, tensor in tensors.items():
        write(tmp_path / f"step_{step}{suffix}", {"tok_emb.weight": tensor, "head.weight": torch.zeros(4, 2)})
    trajectory = foreign_trajectory(tmp_path, dtype="float64")
    assert trajectory.steps.tolist() == [0, 5, 10, 20, 100]
    assert trajectory.parameters["array"] == "tok_emb.weight"
    for frame, step in zip(trajectory.positions[0], trajectory.steps, strict=True):
        np.testing.assert_array_equal(frame, tensors[step].double().numpy())
    np.testing.assert_array_equal(foreign_trajectory(tmp_path, array="head.weight").positions, 0)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda state: state,
        lambda state: {"model_state_dict": state, "epoch": 7, "optimizer_state_dict": {"state": {0: {}}}},
        lambda state: {"state_dict": state, "optimizer_states": [{"state": {0: {"m": torch.ones(3, 3)}}}]},
        lambda state: {"model": {"state_dict": state}},
        lambda state: state["embed.weight"],
        lambda state: torch.nn.Parameter(state["embed.weight"]),
        lambda state: {"model": state, "loss": np.float64(1.5), "lr": np.float32(1), "step": np.int64(7)},
        lambda state: {"model": state, "losses": np.arange(3.0), "history": [1.0, 0.5]},
    ],
)
def test_a_state_dict_in_whatever_it_is_wrapped(tmp_path, wrapped):
    torch.save(wrapped({"embed.weight": torch.tensor(points()[0])}), tmp_path / "epoch_7.pt")
    for source in (tmp_path, tmp_path / "epoch_7.pt"):
        trajectory = foreign_trajectory(source, dtype="float64")
        np.testing.assert_array_equal(trajectory.positions[0, 0], points()[0])
        assert trajectory.steps.tolist() == [7]


STATE = {"mlp.W_in": torch.ones(8, 7)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({0: STATE, 100: STATE}, ("2 states", "step_0.pt")),
        ([STATE, STATE], ("2 states", "step_0.pt")),
        ({"state_dicts": [STATE, STATE], "epochs": [0, 100]}, ("state_dicts", "2 states")),
        ({"model": STATE, "checkpoints": [STATE] * 11, "checkpoint_epochs": list(range(11))}, ("11 states",)),
        ({"emb_history": [torch.ones(7, 2)] * 3}, ("3 states",)),
        (STATE, ("mlp.W_in (8, 7)", "--array")),
        ({"emb": torch.eye(4).to_sparse()}, ("sparse_coo",)),
        ({"emb": torch.zeros(4, 3, dtype=torch.complex64)}, ("complex64",)),
        ([1, 2], ("list",)),
    ],
)
def test_messages_say_what_the_file_holds(tmp_path, refused, content, words):
    write(tmp_path / "a.pt", content)
    said = refused(tmp_path / "a.pt")[1]
    assert all(word in said for word in words), said
    said = refused(tmp_path / "a.pt", "--array", "nothing")[1]
    assert "no arrays" not in said


def test_nested_tensors_are_refused_in_a_sentence(tmp_path, refused):
    with pytest.warns(UserWarning, match="nested"):
        torch.save({"emb": torch.nested.nested_tensor([torch.randn(5, 2)])}, tmp_path / "n.pt")
    for options in ((), ("--array", "emb")):
        assert "nested" in refused(tmp_path / "n.pt", *options)[1]


def test_a_checkpoint_that_holds_nan_ends_the_series(tmp_path, refused):
    series(tmp_path / "run", ["1.pt", "2.pt", "3.pt", "4.pt"])
    write(tmp_path / "run" / "3.pt", {"embedding.weight": torch.full((7, 2), torch.nan)})
    trajectory = foreign_trajectory(tmp_path / "run")
    assert (trajectory.steps.tolist(), order(trajectory)) == ([1, 2], [0, 1])
    assert "3.pt" in trajectory.parameters["notes"][0]
    write(tmp_path / "run" / "1.pt", {"embedding.weight": torch.full((7, 2), torch.inf)})
    assert "14 of 14 values" in refused(tmp_path / "run")[1]
    stack = points()
    stack[3, 2, 0] = np.inf
    np.save(tmp_path / "x.npy", stack)
    np.testing.assert_array_equal(foreign_trajectory(tmp_path / "x.npy").positions[0], stack[:3])
    np.save(tmp_path / "x.npy", np.stack([stack, points()]))
    assert "1 of 140 values" in refused(tmp_path / "x.npy")[1]


# -- H5MD ---------------------------------------------------------------------------------------------------


def test_h5md_of_other_programs(tmp_path, capsys):
    path = tmp_path / "x.h5md"
    with h5py.File(path, "w") as file:
        file.create_group("h5md").attrs["version"] = [1, 1]
        group = file.create_group("particles/trajectory/position")
        group["value"], group["step"], group["time"] = points(3, 5, 3), [0, 10, 20], [0.0, 1.0, 2.0]
        fixed = file.create_group("particles/trajectory/velocity")
        fixed["value"], fixed["step"] = points(3, 5, 3, seed=1), 5
        late = file.create_group("particles/trajectory/force")
        late["value"], late["step"] = points(3, 5, 3, seed=2), 5
        late["step"].attrs["offset"] = 7
    assert main(["info", str(path)]) == 1
    assert "grokphys import" in capsys.readouterr().err
    trajectory = foreign_trajectory(path, array="particles/trajectory/position")
    assert trajectory.steps.tolist() == [0, 10, 20]
    np.testing.assert_array_equal(trajectory.positions[0], points(3, 5, 3))
    assert foreign_trajectory(path, array="particles/trajectory/velocity").steps.tolist() == [0, 5, 10]
    assert foreign_trajectory(path, array="particles/trajectory/force").steps.tolist() == [7, 12, 17]
    with pytest.raises(InputError, match="trajectory/position"):
        foreign_trajectory(path)
    physics.Trajectory(points()[None], range(5)).save(tmp_path / "own.h5")
    with pytest.raises(InputError, match="is a trajectory already"):
        foreign_trajectory(tmp_path / "own.h5")


# -- what runs code -----------------------------------------------------------------------------------------


class Evil:
    """Pickles as a call that leaves a directory."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_no_code_of_a_file_is_run(tmp_path, refused):
    trap = tmp_path / "it_ran"
    state = {"emb.weight": torch.zeros(4, 2), "x": Evil(trap)}
    torch.save(state, tmp_path / "step_1.pt")
    torch.save(state, tmp_path / "old_1.pth", _use_new_zipfile_serialization=False)
    (tmp_path / "bare_1.ckpt").write_bytes(pickle.dumps(Evil(trap)))
    np.save(tmp_path / "x.npy", np.full((3, 4, 2), Evil(trap), object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.write(tmp_path / "x.npy", "E.npy")
    for name in ("step_1.pt", "old_1.pth"):
        assert "holds Python objects (" in refused(tmp_path / name)[1]
    refused(tmp_path / "bare_1.ckpt")
    for name, key in (("x.npy", "x"), ("x.npz", "E")):
        assert "holds Python objects" in refused(tmp_path / name, "--array", key)[1]
    torch.save({"emb": torch.zeros(4, 3), "args": argparse.Namespace(lr=1)}, tmp_path / "step_1.pt")
    status, said = refused(tmp_path / "step_1.pt")
    assert status == 1
    assert "(argparse.Namespace)" in said
    assert "allow" not in said
    assert not trap.exists()


# -- what lies, or is damaged -------------------------------------------------------------------------------


def npy(shape, kind="<f8", data=b"\0" * 800):
    """A file of NumPy with whatever header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


@pytest.mark.parametrize(
    "shape", [(2**60, 4, 2), (2**40, 2**40, 2), (5, 40, 2), (-1, 4, 2), (2**60,) * 3 + (2,)]
)
def test_a_shape_that_is_not_there_is_not_allocated(tmp_path, refused, shape, monkeypatch):
    monkeypatch.setattr(np.lib.format, "read_array", None)  # whoever comes so far, has trusted the header
    (tmp_path / "x.npy").write_bytes(npy(shape))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy(shape))
    for name in ("x.npy", "x.npz"):
        said = refused(tmp_path / name)[1]
        assert "which is more than the file holds" in said or "no axis may be empty" in said


def test_a_small_checkpoint_that_states_gigabytes(tmp_path, refused):
    torch.save({"emb.weight": torch.empty(2**20, 2)}, tmp_path / "m.pt")
    with (
        zipfile.ZipFile(tmp_path / "m.pt") as whole,
        zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as small,
    ):
        for info in whole.infolist():
            small.writestr(info.filename, whole.read(info.filename))
    assert "more bytes than the file holds" in refused(tmp_path / "bomb.pt")[1]
    torch.save({"emb.weight": torch.zeros(1).expand(2**40, 2**20)}, tmp_path / "step_1.pt")
    assert "which is more than the file holds" in refused(tmp_path / "step_1.pt")[1]


@pytest.mark.parametrize("kind", ["npy", "pt", "safetensors"])
def test_what_float32_cannot_hold_is_not_made_infinite(tmp_path, refused, kind):
    array = points()
    array[0, 0] = 1e300
    path = tmp_path / f"x.{kind}"
    np.save(path, array) if kind == "npy" else write(path, {"emb": torch.tensor(array)})
    status, said = refused(path, "--dtype", "float32")
    assert status == 2
    assert "2 values are too large for float32" in said
    np.testing.assert_array_equal(foreign_trajectory(path, dtype="float64").positions[0], array)


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


def originals(directory):
    """Files of every kind that are in order."""
    np.save(directory / "a.npy", points())
    np.savez(directory / "a.npz", E=points(), steps=[0, 5, 7, 8, 90])
    np.savez_compressed(directory / "b.npz", E=points(), steps=[0, 5, 7, 8, 90])
    state = {"emb": torch.tensor(points()[0])}
    torch.save(state, directory / "a_1.pt")
    torch.save(state, directory / "b_1.pth", _use_new_zipfile_serialization=False)
    safetensors.save_file(state, directory / "a_1.safetensors")
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
        assert foreign_trajectory(path).tokens == 7
        content, bad = path.read_bytes(), tmp_path / "bad" / path.name
        for _ in range(mutants):
            bad.write_bytes(damaged(content, random))
            try:
                trajectory = foreign_trajectory(bad)
            except (FileFormatError, InputError):
                refusals += 1
            else:
                assert np.isfinite(trajectory.positions).all()
    assert refusals > mutants
