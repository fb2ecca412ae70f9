"""Import of what other programs write: names, axes, kinds of numbers and steps that occur rarely."""

import zipfile

import numpy as np
import pytest
import torch

import physics
from grokphys.cli.main import main
from grokphys.importing import foreign_trajectory
from physics import FileFormatError, InputError

FRAMES = np.arange(60.0).reshape(5, 4, 3)


def test_an_embedding_is_known_by_its_name_in_any_letters(tmp_path):
    state = {"Tok_EMB.weight": torch.tensor(FRAMES[0]), "head": torch.zeros(4, 3), "emb.bias": torch.zeros(4)}
    torch.save({**state, 7: torch.zeros(4, 3), "embedding_dim": 3}, tmp_path / "last.pt")
    found = foreign_trajectory(tmp_path / "last.pt", dtype="float64")
    assert found.parameters == {"program": "grokphys import", "source": "last.pt", "array": "Tok_EMB.weight"}
    assert found.steps.tolist() == [0], "its name holds no step"
    np.testing.assert_array_equal(found.positions, FRAMES[None, :1])
    with pytest.raises(
        FileFormatError, match=r"'emb\.bias' must have the shape \(tokens, dim\) or \(steps, "
    ):
        foreign_trajectory(tmp_path / "last.pt", array="emb.bias")
    torch.save({"emb": torch.tensor(FRAMES)}, tmp_path / "step_3.pt")
    assert foreign_trajectory(tmp_path / "step_3.pt").steps.tolist() == [0, 1, 2, 3, 4]
    (tmp_path / "many").mkdir()
    torch.save({"emb": torch.tensor(FRAMES)}, tmp_path / "many" / "step_3.pt")
    with pytest.raises(
        FileFormatError, match=r"step_3\.pt holds no embedding matrix \(tokens, dim\); name one"
    ):
        foreign_trajectory(tmp_path / "many")
    with pytest.raises(FileFormatError, match=r"'emb' must have the shape \(tokens, dim\), got \(5, 4, 3\)"):
        foreign_trajectory(tmp_path / "many", array="emb")


def test_directories_and_other_files_beside_checkpoints_are_passed_over(tmp_path):
    (tmp_path / "old_1.pt").mkdir()
    (tmp_path / "step_2.txt").write_text("no checkpoint")
    for step in (30, 4):
        torch.save({"emb": torch.tensor(FRAMES[step % 5])}, tmp_path / f"run_7_step_{step}_.pt")
    found = foreign_trajectory(tmp_path, dtype="float64")
    assert found.steps.tolist() == [4, 30]
    np.testing.assert_array_equal(found.positions[0], FRAMES[[4, 0]])
    assert found.parameters["source"] == tmp_path.name


def test_the_shortest_axes_are_taken_and_shorter_ones_refused(tmp_path):
    for shape, taken in (((1, 3, 1), True), ((1, 2, 1), False), ((0, 3, 1), False), ((1, 3, 0), False),
                         ((0, 1, 3, 1), False), ((2, 1, 3, 1), True)):  # fmt: skip
        np.save(tmp_path / "x.npy", np.zeros(shape))
        if taken:
            assert foreign_trajectory(tmp_path / "x.npy").positions.shape[-3:] == shape[-3:]
        else:
            with pytest.raises(
                FileFormatError, match="at least 3 tokens and 1 dimension, and no axis may be"
            ):
                foreign_trajectory(tmp_path / "x.npy")


def test_arrays_of_an_archive_are_chosen_by_kind_and_axes(tmp_path):
    others = {"steps": np.zeros((2, 2), int), "flat": np.zeros((4, 3)), "whole": np.zeros((5, 4, 3), int)}
    np.savez(tmp_path / "x.npz", E=FRAMES, deep=np.zeros((1,) * 5), **others)
    with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive:
        archive.writestr("notes.txt", "no array")
    found = foreign_trajectory(tmp_path / "x.npz", dtype="float64")
    np.testing.assert_array_equal(found.positions[0], FRAMES)
    assert (found.steps.tolist(), found.parameters["array"]) == ([0, 1, 2, 3, 4], "E")
    with pytest.raises(
        FileFormatError, match=r"'flat' must have the shape \(steps, tokens, dim\) or \(runs, st"
    ):
        foreign_trajectory(tmp_path / "x.npz", array="flat")
    said = r"steps_array must name a one-dimensional array of whole numbers, got one of int64 of .* \(2, 2\)"
    with pytest.raises(InputError, match=said):
        foreign_trajectory(tmp_path / "x.npz", steps="steps")
    np.savez(tmp_path / "y.npz", E=FRAMES, steps=np.arange(5) + 9, other=np.arange(5, dtype=np.uint8) * 3)
    assert foreign_trajectory(tmp_path / "y.npz", steps="other").steps.tolist() == [0, 3, 6, 9, 12]


def test_headers_of_every_version_and_order_are_read(tmp_path):
    for version in ((1, 0), (2, 0), (3, 0)):
        with (tmp_path / "x.npy").open("wb") as file:
            np.lib.format.write_array(file, np.asfortranarray(FRAMES), version=version)
        np.testing.assert_array_equal(
            foreign_trajectory(tmp_path / "x.npy", dtype="float64").positions[0], FRAMES
        )


def test_steps_are_whole_numbers_below_two_to_the_63(tmp_path):
    def read(steps):
        np.savez(tmp_path / "x.npz", E=FRAMES[:2], steps=steps)
        return foreign_trajectory(tmp_path / "x.npz").steps.tolist()

    assert read(np.array([3, 2**53], np.uint64)) == [3, 2**53]
    with pytest.raises(InputError, match=f"steps must be below 2.63, got {2**63}"):
        read(np.array([0, 2**63], np.uint64))
    with pytest.raises(InputError, match="got one of bool"):
        read(np.array([False, True]))


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no wider numbers here")
def test_what_float64_cannot_hold_is_counted(tmp_path):
    wide = FRAMES.astype(np.longdouble)
    wide[0, 0, :2] = np.longdouble(10) ** 400
    np.save(tmp_path / "x.npy", wide)
    said = r"'x' must hold numbers of at most 1\.8e\+308 in size, .* but 2 of 60 values are larger"
    with pytest.raises(FileFormatError, match=said):
        foreign_trajectory(tmp_path / "x.npy", dtype="float64")
    with pytest.raises(InputError, match="dtype must be float64 for .*: 2 of its values are too large"):
        foreign_trajectory(tmp_path / "x.npy", dtype="float32")
    edge = np.full((1, 3, 1), np.finfo(np.float32).max, np.float64)
    np.save(tmp_path / "y.npy", edge)
    np.testing.assert_array_equal(foreign_trajectory(tmp_path / "y.npy", dtype="float32").positions[0], edge)


def test_the_command_says_what_it_has_imported(tmp_path, capsys):
    np.savez(tmp_path / "x.npz", E=FRAMES, steps=[0, 1, 2, 3, 9])
    assert main(["import", str(tmp_path / "x.npz"), "--out", str(tmp_path / "x.h5")]) == 0
    said = capsys.readouterr().out
    assert said == f"{tmp_path / 'x.h5'}: 5 frames of 4 tokens in 3 dimensions, steps 0 to 9\n"
    assert physics.load(tmp_path / "x.h5").dtype == np.float64
    assert main(["import", "/dev/null", "--out", str(tmp_path / "y.h5")]) == 1
    assert "/dev/null is neither a file nor a directory, so nothing is imported" in capsys.readouterr().err
    for words, status in (([], 1), (["--overwrite"], 0)):
        assert main(["import", str(tmp_path / "x.npz"), "--out", str(tmp_path / "x.h5"), *words]) == status
    with pytest.raises(InputError, match=r"steps_array must be left out for checkpoints, .*; got 's'"):
        foreign_trajectory(tmp_path, steps="s")
    with pytest.raises(InputError, match=r"source must be a directory or a file \.npy, \.npz, \.pt"):
        foreign_trajectory(tmp_path / "x.h5")


@pytest.mark.parametrize("suffix", ["npy", "npz", "pt"])
@pytest.mark.parametrize(
    ("kind", "stored"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")]
)
def test_numbers_keep_their_precision(tmp_path, suffix, kind, stored):
    array = (1000 + 1e-3 * FRAMES).astype(kind)
    path = tmp_path / f"x.{suffix}"
    if suffix == "pt":
        torch.save({"emb": torch.tensor(array)}, path)
    else:
        {"npy": np.save, "npz": np.savez}[suffix](path, array)
    assert main(["import", str(path), "--out", str(tmp_path / "x.h5")]) == 0
    found = physics.load(tmp_path / "x.h5").positions
    assert found.dtype == stored
    np.testing.assert_array_equal(found[0], array)
