"""Headers, attributes and arrays of trajectory files at their bounds, and what stands where in a file."""

import errno
import json

import h5py
import numpy as np
import pytest

from physics import FileFormatError, Trajectory
from physics.trajectory import stored
from physics.trajectory.header import Header, Layout
from physics.trajectory.log import FRAMES, HEAD, LogWriter
from physics.trajectory.stored import damage

POSITION = "particles/tokens/position"
LAYOUT = Layout(1, 3, 1, "float64")


def made(**changes):
    arguments = {
        "positions": np.arange(72.0).reshape(3, 4, 3, 2),
        "steps": [0, 2, 5, 6],
        "times": np.array([0.0, 0.2, 0.5, 0.6]),
        "observables": {
            "loss": np.arange(12.0).reshape(3, 4),
            "own": np.arange(6).reshape(3, 2),
            "alive": np.arange(12).reshape(3, 4) % 3 == 0,
        },
        "clocks": {"own": ([1, 4], np.array([0.1, 0.4]))},
        "parameters": {"first_run": 2},
        "start": {"split": np.arange(6).reshape(3, 2) > 2},
    }
    return Trajectory(**(arguments | changes))


@pytest.fixture
def path(tmp_path):
    made().save(tmp_path / "t.h5")
    return tmp_path / "t.h5"


def frames(first, count, runs=1):
    """Columns of a block of frames without observables."""
    steps = np.arange(first, first + count, dtype="<i8")
    return steps, steps / 4, np.arange(3.0 * runs * count).reshape(count, runs, 3, 1)


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
