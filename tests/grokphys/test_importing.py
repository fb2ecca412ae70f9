"""`grokphys import`: every kind of foreign file, and what damaged and malicious ones lead to."""

import argparse
import io
import os
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import physics
from grokphys.cli.main import main
from grokphys.importing import foreign_trajectory
from physics.errors import FileFormatError, InputError

safetensors = pytest.importorskip("safetensors.torch")


def points(frames=5, tokens=4, dim=3, *, seed=0):
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
        assert "allow" not in said, said
        assert not list(tmp_path.glob("out.h5*"))
        return status, said

    return run


# -- what can be read ---------------------------------------------------------------------------------------


def test_runs_of_an_array(tmp_path, capsys):
    array = np.stack([points(), points(seed=1)])
    np.savez_compressed(tmp_path / "x.npz", E=array, steps=np.arange(0, 50, 10, dtype=np.uint16))
    assert (
        main(["import", str(tmp_path / "x.npz"), "--out", str(tmp_path / "x.h5"), "--dtype", "float64"]) == 0
    )
    assert "2 runs of 5 frames of 4 tokens in 3 dimensions, steps 0 to 40" in capsys.readouterr().out
    found = physics.load(tmp_path / "x.h5")
    np.testing.assert_array_equal(found.positions, array)
    assert found.steps.tolist() == [0, 10, 20, 30, 40]


def test_arrays_beside_the_one_that_is_wanted_may_be_anything(tmp_path):
    np.savez(tmp_path / "x.npz", E=points(), about=np.array({"rate": 1}), steps=1000)
    found = foreign_trajectory(tmp_path / "x.npz", dtype="float64")
    np.testing.assert_array_equal(found.positions[0], points())
    assert found.steps.tolist() == [0, 1, 2, 3, 4]


def write(path, state):
    if path.suffix == ".safetensors":
        safetensors.save_file(state, path)
    else:
        torch.save(state, path)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt", ".safetensors"])
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16])
def test_checkpoints_of_every_suffix(tmp_path, suffix, kind):
    tensors = {step: torch.tensor(points()[k]).to(kind) for k, step in enumerate([0, 5, 10, 100, 20])}
    for step, tensor in tensors.items():
        write(tmp_path / f"step_{step}{suffix}", {"tok_emb.weight": tensor, "head.weight": torch.zeros(4, 3)})
    found = foreign_trajectory(tmp_path, dtype="float64")
    assert found.steps.tolist() == [0, 5, 10, 20, 100]
    assert found.parameters["array"] == "tok_emb.weight"
    for frame, step in zip(found.positions[0], found.steps, strict=True):
        np.testing.assert_array_equal(frame, tensors[step].double().numpy())
    other = foreign_trajectory(tmp_path, array="head.weight")
    np.testing.assert_array_equal(other.positions, 0)


class Terminal(io.StringIO):
    """A stream that says that somebody looks at it."""

    def isatty(self):
        return True


def test_a_bar_shows_how_many_checkpoints_are_read(tmp_path, monkeypatch):
    for step in range(3):
        write(tmp_path / f"step_{step}.pt", {"emb": torch.zeros(4, 3)})
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    foreign_trajectory(tmp_path)
    assert terminal.getvalue() == ""
    foreign_trajectory(tmp_path, progress=True)
    assert "3/3" in terminal.getvalue()


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda state: state,
        lambda state: {"model_state_dict": state, "epoch": 3, "optimizer_state_dict": {"state": {}}},
        lambda state: {"state_dict": state},
        lambda state: {"model": state},
        lambda state: {"model": {"state_dict": state}},
        lambda state: state["embed.weight"],
        lambda state: torch.nn.Parameter(state["embed.weight"]),
    ],
)
def test_a_state_dict_in_whatever_it_is_wrapped(tmp_path, wrapped):
    torch.save(wrapped({"embed.weight": torch.tensor(points()[0])}), tmp_path / "epoch_7.pt")
    for source in (tmp_path, tmp_path / "epoch_7.pt"):
        found = foreign_trajectory(source, dtype="float64")
        np.testing.assert_array_equal(found.positions[0, 0], points()[0])
        assert found.steps.tolist() == [7]


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_one_file_that_holds_the_whole_array(tmp_path, suffix):
    whole = torch.tensor(np.stack([points(), points(seed=1)]))
    for name, tensor in {"runs": whole, "one": whole[0].clone()}.items():
        write(tmp_path / f"{name}{suffix}", {"embeddings": tensor})
    np.testing.assert_array_equal(
        foreign_trajectory(tmp_path / f"runs{suffix}", dtype="float64").positions, whole.numpy()
    )
    one = foreign_trajectory(tmp_path / f"one{suffix}", dtype="float64")
    np.testing.assert_array_equal(one.positions, whole[:1].numpy())
    assert one.steps.tolist() == [0, 1, 2, 3, 4]


def test_names_may_hold_digits_that_are_no_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("²1.pt", "²10.pt", "²٣.pt"):  # a superscript, and the Arabic 3
        write(Path(name), {"emb": torch.zeros(4, 3)})
    assert foreign_trajectory(Path()).steps.tolist() == [1, 3, 10]


def test_a_cyclic_state_dict_ends(tmp_path):
    state = {"emb": torch.tensor(points()[0])}
    state["model"] = state
    torch.save(state, tmp_path / "step_1.pt")
    assert foreign_trajectory(tmp_path).frames == 1


# -- what runs code -----------------------------------------------------------------------------------------


class Evil:
    """Pickles as a call that leaves a directory."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_no_code_of_a_file_is_run(tmp_path, refused):
    trap = tmp_path / "it_ran"
    torch.save({"emb": torch.zeros(4, 3), "x": Evil(trap)}, tmp_path / "step_1.pt")
    torch.save(
        {"emb": torch.zeros(4, 3), "x": Evil(trap)},
        tmp_path / "old_1.pth",
        _use_new_zipfile_serialization=False,
    )
    (tmp_path / "bare_1.ckpt").write_bytes(pickle.dumps(Evil(trap)))
    np.save(tmp_path / "x.npy", np.full((3, 4, 3), Evil(trap), object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.write(tmp_path / "x.npy", "E.npy")
    for name in ("step_1.pt", "old_1.pth"):
        assert "holds Python objects (" in refused(tmp_path / name)[1]
    refused(tmp_path / "bare_1.ckpt")
    for name, key in (("x.npy", "x"), ("x.npz", "E")):
        assert (
            "holds Python objects, and reading these could run code"
            in refused(tmp_path / name, "--array", key)[1]
        )
    assert not trap.exists()


def test_the_refusal_names_the_class_and_not_a_way_to_let_it_in(tmp_path, refused):
    torch.save({"emb": torch.zeros(4, 3), "args": argparse.Namespace(lr=1)}, tmp_path / "step_1.pt")
    status, said = refused(tmp_path)
    assert status == 1
    assert said == (
        f"grokphys: error: {tmp_path / 'step_1.pt'} holds Python objects (argparse.Namespace) in "
        "addition to tensors, and reading these could run code; save only the state dict\n"
    )


def test_torchscript_is_refused(tmp_path, refused):
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        torch.jit.save(torch.jit.script(torch.nn.Linear(3, 4)), tmp_path / "step_1.pt")
    assert "is not a readable checkpoint" in refused(tmp_path)[1]


# -- what lies, or is damaged -------------------------------------------------------------------------------


def npy(shape, kind="<f8", data=b"\0" * 800):
    """A file of NumPy with whatever header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


@pytest.mark.parametrize("shape", [(2**60, 4, 3), (2**40, 2**40, 2**40), (5, 4, 6), (-1, 4, 3), (2**60,) * 4])
def test_a_shape_that_is_not_there_is_not_allocated(tmp_path, refused, shape, monkeypatch):
    monkeypatch.setattr(np.lib.format, "read_array", None)  # whoever comes so far, has trusted the header
    (tmp_path / "x.npy").write_bytes(npy(shape))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy(shape))
    for name in ("x.npy", "x.npz"):
        status, said = refused(tmp_path / name)
        assert status == 1
        assert "which is more than the file holds" in said or "no axis may be empty" in said


def test_an_archive_that_declares_more_than_deflate_can_hold(tmp_path, refused):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy((2**30, 4, 3)))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    for mark, place in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = content.index(mark) + place
        content[start : start + 4] = (2**32 - 2).to_bytes(4, "little")
    (tmp_path / "x.npz").write_bytes(content)
    assert "which is more than the file holds" in refused(tmp_path / "x.npz")[1]


def test_a_tensor_that_repeats_one_number_without_end(tmp_path, refused):
    torch.save({"emb": torch.zeros(1).expand(2**40, 2**20)}, tmp_path / "step_1.pt")
    assert "which is more than the file holds" in refused(tmp_path)[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["npy", "pt", "safetensors"])
def test_what_is_not_finite(tmp_path, refused, value, dtype, kind):
    array = points()
    array[1, 2, 0] = value
    path = tmp_path / f"x.{kind}"
    np.save(path, array) if kind == "npy" else write(path, {"emb": torch.tensor(array)})
    status, said = refused(path, "--dtype", dtype)
    assert status == 1
    assert "1 of 60 values are NaN or infinite" in said


@pytest.mark.parametrize("kind", ["npy", "pt", "safetensors"])
def test_what_float32_cannot_hold_is_not_made_infinite(tmp_path, refused, kind):
    array = points()
    array[0, 0] = 1e300
    path = tmp_path / f"x.{kind}"
    np.save(path, array) if kind == "npy" else write(path, {"emb": torch.tensor(array)})
    status, said = refused(path, "--dtype", "float32")
    assert status == 2
    assert "dtype must be float64 for" in said
    assert "3 of its values are too large for float32" in said
    np.testing.assert_array_equal(foreign_trajectory(path, dtype="float64").positions[0], array)


def test_numbers_of_another_kind(tmp_path, refused):
    np.save(tmp_path / "complex.npy", points().astype(complex))
    np.save(tmp_path / "whole.npy", points().astype(int))
    np.save(tmp_path / "structured.npy", np.zeros((3, 4, 3), [("é", "f8")]))
    torch.save({"emb": torch.zeros(4, 3, dtype=torch.complex64)}, tmp_path / "step_1.pt")
    torch.save({"emb": torch.eye(4).to_sparse()}, tmp_path / "step_2.pt")
    for name, kind in (("complex", "complex128"), ("whole", "int64"), ("structured", "<f8")):
        assert kind in refused(tmp_path / f"{name}.npy")[1]
        assert kind in refused(tmp_path / f"{name}.npy", "--array", name)[1]
    assert "must hold floating-point numbers, got complex64" in refused(tmp_path / "step_1.pt")[1]
    refused(tmp_path / "step_2.pt")


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (np.array([0, 2, 1, 3, 4], np.uint64), "steps must increase, got 2 followed by 1"),
        (np.array([0, 1, 2, 3, 2**63], np.uint64), "steps must be below 2^63"),
        (
            np.arange(5.0),
            "--steps-array must name a one-dimensional array of whole numbers, got one of float64",
        ),
        (np.arange(4), "steps"),
    ],
)
def test_steps_that_are_none(tmp_path, refused, steps, sentence):
    np.savez(tmp_path / "x.npz", E=points(), steps=steps)
    status, said = refused(tmp_path / "x.npz")
    assert status == 2
    assert sentence in said


def test_wrong_use(tmp_path, refused):
    torch.save({"emb": torch.zeros(4, 3)}, tmp_path / "step_1.pt")
    (tmp_path / "x.txt").write_text("0 1 2")
    assert refused(tmp_path / "step_1.pt", "--steps-array", "s")[0] == 2
    assert refused(tmp_path / "x.txt")[0] == 2
    assert "array must be one of emb (4, 3), got 'body'" in refused(tmp_path, "--array", "body")[1]
    torch.save({"emb": torch.zeros(4, 3)}, tmp_path / f"step_{10**30}.pt")
    assert "steps must be below 2^63" in refused(tmp_path)[1]


def test_what_is_at_the_output_is_refused_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grokphys.importing.foreign_trajectory", None)
    (tmp_path / "x.h5").write_text("mine")
    assert main(["import", str(tmp_path), "--out", str(tmp_path / "x.h5")]) == 1
    assert "exists; choose another name or pass --overwrite" in capsys.readouterr().err


def test_no_file_that_is_read_is_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", E=points())
    Path("link.h5").symlink_to("x.npz")
    Path("run").mkdir()
    torch.save({"emb": torch.zeros(4, 3)}, "run/step_1.pt")
    for source, out in (("x.npz", "x.npz"), ("x.npz", "link.h5"), ("run", "run/step_1.pt")):
        before = Path(out).read_bytes()
        assert main(["import", source, "--out", out, "--overwrite"]) == 2
        said = "grokphys: error: --out must be another file than those that are read, got "
        assert capsys.readouterr().err == f"{said}{out}\n"
        assert Path(out).read_bytes() == before


def test_safetensors_that_is_not_installed(tmp_path, monkeypatch, refused):
    write(tmp_path / "step_1.safetensors", {"emb": torch.zeros(4, 3)})
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    status, said = refused(tmp_path)
    assert status == 2
    assert "pip install 'grokphys[safetensors]'" in said


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
        assert foreign_trajectory(path).tokens == 4
        content, bad = path.read_bytes(), tmp_path / "bad" / path.name
        for _ in range(mutants):
            bad.write_bytes(damaged(content, random))
            try:
                found = foreign_trajectory(bad)
            except (FileFormatError, InputError):
                refusals += 1
            else:
                assert np.isfinite(found.positions).all()
    assert refusals > mutants
