"""Headers, attributes and arrays of trajectory files at their bounds, and what stands where in a file."""

import errno
import json
import math
import platform
import re
from importlib import metadata

import h5py
import numpy as np
import pytest
from trajectories import LAYOUT, frames, made

import physics
from physics import FileFormatError, Trajectory
from physics.trajectory import h5md, stored, writer
from physics.trajectory.header import Header, Layout
from physics.trajectory.log import FRAMES, HEAD, Log, LogWriter
from physics.trajectory.provenance import LIBRARIES, made_with, source_digest
from physics.trajectory.stored import damage

POSITION = "particles/tokens/position"


def put(path, place, values):
    """Put other values in the place of a dataset."""
    with h5py.File(path, "r+") as file:
        del file[place]
        file[place] = values


# -- headers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"layout": [1.0, 3, 1, "float64", 0]},
        {"layout": [1, 3.0, 1, "float64", 0]},
        {"layout": [1, 3, 1.0, "float64", 0]},
        {"layout": [1, 0, 1, "float64", 0]},
        {"layout": [1, 3, 1, "float64", -1]},
        {"observables": {"o": ["<f8", [-1]]}},
        {"observables": {"o": ["<f8", [2.0]]}},
        {"observables": {"o": ["<f16", []]}},
        {"observables": {"o": ["<c32", []]}},
        {"observables": {"..": ["<f8", []]}},
        {"observables": []},
        {"start": ["."]},
        {"start": [""]},
        {"made_with": 3},
        {"schema_version": 3},
        {"schema_version": "two"},
        {"parameters": {"run_numbers": [1, 2]}},
    ],
    ids=str,
)
def test_a_header_of_a_log_that_claims_what_no_writer_wrote_is_refused(tmp_path, change):
    text = Header(LAYOUT, {}, {}).to_json()
    for values, sound in ((text, True), (text | change, False)):
        partial = tmp_path / f"{sound}.h5.partial"
        log = LogWriter(partial)
        log.append(HEAD, json.dumps(values).encode())
        log.append(FRAMES, *frames(0, 2))
        log.close()
        if sound:
            assert Trajectory.open(partial).frames == 2
            continue
        with pytest.raises(FileFormatError, match=f"{sound}.h5.partial"):
            Trajectory.open(partial)


def test_an_older_schema_is_read(path):
    with h5py.File(path, "r+") as file:
        assert file["parameters"].attrs["schema_version"] == 2
        file["parameters"].attrs["schema_version"] = 1
    assert Trajectory.open(path) == made()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("schema", 3, "is an H5MD file of another program, not a GrokPhys trajectory"),
        ("schema", None, "is an H5MD file of another program, not a GrokPhys trajectory"),
        ("schema", np.bytes_(b"\xff"), r"\(schema 'grokphys-trajectory', found '\ufffd'\)"),
        ("schema_version", None, "is an H5MD file of another program, not a GrokPhys trajectory"),
        ("config", None, "its configuration cannot be read"),
        ("config", 3, "its configuration cannot be read"),
        ("complete", None, "is damaged"),
        ("code_version", None, "is damaged"),
    ],
)
def test_attributes_that_are_missing_or_of_another_type_are_named(path, name, value, said):
    with h5py.File(path, "r+") as file:
        del file["parameters"].attrs[name]
        if value is not None:
            file["parameters"].attrs[name] = value
    with pytest.raises(FileFormatError, match=said):
        Trajectory.open(path)


def test_what_is_not_known_of_a_file_is_unknown(tmp_path, monkeypatch):
    monkeypatch.delenv("GROKPHYS_AUTHOR", raising=False)
    monkeypatch.delenv("USER", raising=False)
    path = tmp_path / "t.h5"
    made(made_with={"numpy": "2"}).save(path)
    with h5py.File(path) as file:
        assert file["h5md/author"].attrs["name"] == b"unknown"
        assert file["h5md/creator"].attrs["version"] == b"unknown"
        assert len(file["parameters"].attrs["identity"]) == 32
    found = Trajectory.open(path)
    assert found.made_with == {"numpy": "2", "grokphys": "unknown"}
    with h5py.File(path, "r+") as file:
        del file["parameters"].attrs["identity"]
    assert Trajectory.open(path).identity == ""
    log = LogWriter(tmp_path / "t.h5.partial")
    log.begin(Header(LAYOUT, {}, {}), {})
    log.close()
    assert Trajectory.open(tmp_path / "t.h5.partial").code_version == "unknown"


# -- what stands where in a file --------------------------------------------------------------------------


def test_every_group_of_a_file_names_all_its_axes(path):
    with h5py.File(path) as file:
        position, loss, own = file[POSITION], file["observables/loss"], file["observables/own"]
        for name in ("particle", "axis", "run", "token"):
            assert position[name] == file[f"particles/tokens/{name}"], name
        for name in ("step", "time"):
            assert loss[name] == position[name], name
            assert own[name] != position[name], name
        for group in (position, loss, own):
            for name in ("time", "value"):
                assert group[name].dims[0][0] == group["step"]
        for name in ("run", "token"):
            assert file[f"particles/tokens/{name}"].dims[0][0] == file["particles/tokens/particle"]
        assert file["particles/tokens/particle"][:].tolist() == list(range(9))
        assert file["particles/tokens/axis"][:].tolist() == [0, 1]
        assert own["step"][:].tolist() == [1, 4]
        assert (loss["value"].maxshape, position["value"].maxshape) == ((None, 3), (None, 9, 2))
        assert file["observables/alive/value"].dtype == np.int8
    assert path.read_bytes()[8] == 3, "the superblock of HDF5 1.10, which version 1.8 cannot read"


def test_booleans_come_back_from_a_file_and_from_a_log(path, tmp_path):
    found = Trajectory.open(path)
    assert found.start["split"].dtype == found.observables["alive"].dtype == bool
    layout = Layout(2, 3, 1, "float32", 0, {"b": ("|b1", (2,))})
    log = LogWriter(tmp_path / "u.h5.partial")
    log.begin(Header(layout, {}, {}, ("s",)), {"s": np.array([True, False])})
    values = np.array([[[True, False], [False, False]]])
    log.append(FRAMES, np.array([0]), np.array([0.0]), np.zeros((1, 2, 3, 1), np.float32), values)
    log.close()
    unfinished = Trajectory.open(tmp_path / "u.h5.partial")
    assert unfinished.start["s"].tolist() == [True, False]
    assert unfinished.observables["b"].dtype == bool
    np.testing.assert_array_equal(unfinished.observables["b"], np.moveaxis(values, 1, 0))
    assert unfinished.dtype == unfinished.positions.dtype == np.float32


@pytest.mark.parametrize(
    ("place", "values", "said"),
    [
        (f"{POSITION}/value", np.zeros((4, 9)), r"positions are float64 \(4, 9\)"),
        (f"{POSITION}/value", np.zeros((4, 9, 2, 1)), r"positions are float64 \(4, 9, 2, 1\)"),
        (f"{POSITION}/value", np.zeros((4, 9, 2), np.float16), r"positions are float16 \(4, 9, 2\)"),
        (f"{POSITION}/value", np.zeros((4, 0, 2)), "the run numbers of its 0 points are"),
        (f"{POSITION}/value", h5py.Empty("f8"), "/particles/tokens/position/value is empty"),
        ("particles/tokens/run", np.repeat([0, 1], 4), r"run numbers of its 9 points are int64 \(8,\)"),
        ("particles/tokens/run", np.zeros((9, 1), int), r"run numbers of its 9 points are int64 \(9, 1\)"),
        ("particles/tokens/run", np.arange(9) // 2, "its 9 points are not sorted into 5 runs"),
        ("observables/loss/value", np.zeros(4), "'loss' does not have 3 runs"),
        ("observables/loss/value", np.zeros((5, 3)), "'loss' does not have 4 frames"),
        ("observables/own/step", np.array([[1], [4]]), r"steps of shape \(2, 1\) and times of shape \(2,\)"),
        ("observables/own/time", np.zeros((2, 1)), r"steps of shape \(2,\) and times of shape \(2, 1\)"),
        ("observables/own/step", np.array([True, False]), "steps in observables/own are "),
    ],
)  # fmt: skip
def test_arrays_of_other_shapes_are_refused_with_their_shape(path, place, values, said):
    put(path, place, values)
    with pytest.raises(FileFormatError, match=said):
        Trajectory.open(path)


def test_a_run_for_each_point_is_allowed(path):
    put(path, "particles/tokens/run", np.arange(9))
    put(path, "particles/tokens/token", np.zeros(9, int))
    with h5py.File(path, "r+") as file:
        for name in ("loss", "own", "alive"):
            del file[f"observables/{name}"]
    found = Trajectory.open(path)
    assert (found.runs, found.tokens) == (9, 1)
    np.testing.assert_array_equal(found.positions[4, :, 0], made().positions[1, :, 1])


def test_chunks_may_be_as_large_as_the_limit_or_as_all_data(path, monkeypatch):
    """A chunk of observables of 96 bytes is accepted up to the limit, and one of all positions always."""
    monkeypatch.setattr(stored, "LARGEST_CHUNK", 96)
    assert Trajectory.open(path) == made(), "4 · 9 · 2 numbers in one chunk are all data"
    with h5py.File(path, "r+") as file:
        del file["observables/loss/value"]
        file["observables/loss"].create_dataset(
            "value", data=np.zeros((4, 3)), chunks=(4, 4), maxshape=(8, 8)
        )
    with pytest.raises(FileFormatError, match=r"claims 96 bytes, but 128 are stored"):
        Trajectory.open(path)
    monkeypatch.setattr(stored, "LARGEST_CHUNK", 128)
    assert Trajectory.open(path).observables["loss"].shape == (3, 4)


def test_a_long_reason_is_cut_and_the_path_stays(tmp_path):
    with pytest.raises(FileFormatError) as error, damage(tmp_path / "t.h5"):
        raise ValueError("x" * 300)
    assert str(error.value) == f"{tmp_path / 't.h5'} is damaged: {'x' * 200}"
    with pytest.raises(FileFormatError) as error, damage(tmp_path / "t.h5"):
        raise FileFormatError("as it was")
    assert str(error.value) == "as it was"


def test_a_file_that_another_program_writes_is_told_from_a_damaged_one(path, monkeypatch):
    for error, said in (
        (
            BlockingIOError(errno.EAGAIN, "no"),
            "is being written by another program, so it cannot be read yet",
        ),
        (OSError("truncated file: eof"), "is truncated: its end is missing"),
        (OSError("no such thing"), "is damaged: no such thing"),
    ):

        def fails(*_, error=error, **__):
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(h5py, "File", fails)
            with pytest.raises(FileFormatError, match=said):
                Trajectory.open(path)


# -- what is written block by block -----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17, 40])
@pytest.mark.parametrize("block", [1, 3, 8, 11, 16, 40])
def test_blocks_of_any_length_fill_chunks_of_eight_frames(tmp_path, monkeypatch, count, block):
    monkeypatch.setattr(h5md, "CHUNK_BYTES", 8 * 2 * 3 * 4)  # eight frames of positions
    rng = np.random.default_rng(count)
    positions, wide = rng.standard_normal((2, count, 3, 1)).astype("f4"), rng.random((2, count, 9, 12))
    layout = Layout(2, 3, 1, "float32", 0, {"wide": ("<f8", (9, 12))})
    steps = np.arange(count, dtype=np.int64)
    columns = [steps, steps / 4, np.moveaxis(positions, 1, 0), np.moveaxis(wide, 1, 0)]
    blocks = ([one[at : at + block] for one in columns] for at in range(0, count, block))
    path = tmp_path / "t.h5"
    h5md.write_file(path, Header(layout, {"seed": 1}, {"grokphys": "9"}), blocks, frames=40)
    found = Trajectory.open(path)
    assert (found.steps.tolist(), found.times.tolist()) == (columns[0].tolist(), columns[1].tolist())
    np.testing.assert_array_equal(found.positions, positions)
    np.testing.assert_array_equal(found.observables["wide"], wide)
    with h5py.File(path) as file:
        assert file[f"{POSITION}/value"].chunks[0] == 8
        assert math.prod(file["observables/wide/value"].chunks) * 8 <= 2 * h5md.CHUNK_BYTES


class Full:
    """A disk that is full after two pieces of a record."""

    def __init__(self, file):
        self.file, self.pieces = file, iter((1, 2))

    def write(self, view):
        if next(self.pieces, None) is None:
            raise OSError(28, "No space left on device")
        return self.file.write(view)

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_large_records_are_written_and_taken_back_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("physics.trajectory.log.LARGEST_COPY", 40)  # a frame has forty bytes
    path = tmp_path / "t.h5.partial"
    log = LogWriter(path)
    log.begin(Header(LAYOUT, {}, {}), {})
    for first, count in ((0, 1), (1, 2), (3, 5)):
        log.append(FRAMES, *frames(first, count))
    before, log._file = path.read_bytes(), Full(whole := log._file)
    with pytest.raises(OSError, match="No space left on device"):
        log.append(FRAMES, *frames(8, 9))
    log._file = whole
    assert path.read_bytes() == before
    log.append(FRAMES, *frames(8, 1))
    log.close()
    assert Log(path).steps.tolist() == list(range(9))
    assert sum(part[2].size for part in Log(path).blocks()) == 27


def test_what_was_loaded_does_not_need_its_file(path, tmp_path):
    found = physics.load(path)
    path.unlink()
    assert type(found) is Trajectory
    assert found == made()
    log = LogWriter(tmp_path / "u.h5.partial")
    log.begin(Header(LAYOUT, {"seed": 3}, {"numpy": "2"}, ("s",)), {"s": np.array([5])})
    log.append(FRAMES, *frames(0, 2))
    log.close()
    found = physics.load(tmp_path / "u.h5.partial")
    (tmp_path / "u.h5.partial").unlink()
    assert (found.parameters, found.made_with, found.complete) == ({"seed": 3}, {"numpy": "2"}, False)
    assert (found.start["s"].tolist(), found.final[0, :, 0].tolist()) == ([5], [3, 4, 5])


def test_versions_are_those_of_this_machine():
    found = made_with("physics")
    assert re.fullmatch("[0-9a-f]{16}", found["source"])
    assert (found["python"], found["system"]) == (platform.python_version(), platform.system())
    assert found["processor"].startswith(f"{platform.machine()} ")
    assert {name: found[name] for name in LIBRARIES} == {name: metadata.version(name) for name in LIBRARIES}
    assert set(found) == {"grokphys", "source", "python", "processor", "system", *LIBRARIES}
    one, other = source_digest("physics"), source_digest("physics.theory")
    assert (
        len({one, other, source_digest("physics", "physics.theory"), source_digest("physics.neurons")}) == 4
    )


def test_what_waits_is_written_at_the_documented_sizes():
    """About two seconds and a megabyte for a block, sixty-four megabytes in the queue."""
    assert (writer.FLUSH_SECONDS, writer.BLOCK_BYTES, writer.WAITING_BYTES) == (2.0, 2**20, 2**26)
    assert h5md.CHUNK_BYTES == 2**19
    assert 1032 <= stored.LARGEST_RATIO < 2 * 1032, "deflate packs by 1032 at most"


def test_a_run_without_frames_is_a_trajectory_too(tmp_path):
    observables = {"o": np.zeros((2, 0, 4), bool)}
    never = Trajectory(
        np.zeros((2, 0, 3, 1), "f4"), np.empty(0, int), observables=observables, complete=False
    )
    assert (never[1].frames, never.run(0, every=2).frames, list(never.blocks())) == (0, 0, [])
    never.save(tmp_path / "t.h5")
    for found in (Trajectory.open(tmp_path / "t.h5"), physics.load(tmp_path / "t.h5")):
        assert found == never
        assert found[:1].positions.shape == (1, 0, 3, 1)
        assert found.observables["o"].dtype == bool


def test_only_small_integers_that_are_marked_stand_for_booleans(path):
    with h5py.File(path, "r+") as file:
        file["observables/own/value"].attrs["dtype"] = "bool"
        del file["observables/alive/value"].attrs["dtype"]
    found = Trajectory.open(path).observables
    assert (found["own"].dtype, found["alive"].dtype) == (np.int64, np.int8)
