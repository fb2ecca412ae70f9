"""Files that anybody may have made: what they claim is believed only where it is true."""

import contextlib
import faulthandler
import io
import json
import os
import signal
import sys
import warnings

import h5py
import numpy as np
import pytest

import physics
from grokphys.cli import main as cli
from physics import FileFormatError, Trajectory
from physics.trajectory.header import Layout
from physics.trajectory.recording import FileRecorder

SECONDS = 60


def example():
    rng = np.random.default_rng(0)
    return Trajectory(
        rng.standard_normal((3, 12, 7, 2)).astype(np.float32),
        np.arange(0, 24, 2),
        observables={
            "loss": rng.random((3, 12)),
            "status": np.zeros((3, 12), np.int64),
            "alive": rng.random((3, 12)) < 0.5,
            "gradient": rng.standard_normal((3, 12, 7, 2)),
            "signals": rng.random((3, 40, 3)),
        },
        clocks={"signals": (np.arange(40), None)},
        parameters={
            "program": "a test",
            "seed": 3,
            "first_run": 0,
            "run_numbers": [0, 4, 5],
            "per_run": ["run_numbers"],
        },
        start={"split": np.arange(15).reshape(3, 5)},
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "sound.h5"
    example().save(path)
    return path


@pytest.fixture
def stored(sound, tmp_path):
    path = tmp_path / "t.h5"
    path.write_bytes(sound.read_bytes())
    return path


def content(path):
    """Everything that a file says, read whole."""
    found = physics.load(path)
    return {
        "positions": found.positions,
        "steps": found.steps,
        "times": found.times,
        **{f"observable {name}": values for name, values in found.observables.items()},
        **{f"start {name}": values for name, values in found.start.items()},
        "rest": json.dumps([found.parameters, found.made_with, found.complete]),
    }


def refused(path, sentence):
    with pytest.raises(FileFormatError) as error:
        content(path)
    assert str(path) in str(error.value)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


# -- doors out of the file ----------------------------------------------------------------------------------

PLACES = [
    "particles/tokens/position/value",
    "particles/tokens/run",
    "particles/tokens/token",
    "observables/loss/value",
    "parameters/start/split",
]


@pytest.mark.parametrize("place", PLACES)
def test_external_storage_is_not_read(stored, tmp_path, place):
    (tmp_path / "secret").write_bytes(bytes(range(256)) * 64)
    with h5py.File(stored, "r+") as file:
        old = file[place]
        shape, dtype = old.shape, old.dtype
        del file[place]
        file.create_dataset(place, shape=shape, dtype=dtype, external=[(str(tmp_path / "secret"), 0, 16384)])
    refused(stored, "keeps its data in another file, which is not read")


@pytest.mark.parametrize("place", PLACES)
def test_virtual_datasets_are_not_read(stored, sound, place):
    with h5py.File(stored, "r+") as file:
        layout = h5py.VirtualLayout(shape=file[place].shape, dtype=file[place].dtype)
        layout[...] = h5py.VirtualSource(str(sound), place, shape=file[place].shape)
        del file[place]
        file.create_virtual_dataset(place, layout)
    refused(stored, "keeps its data in another file, which is not read")


GROUPS = [
    "particles",
    "observables",
    "observables/loss",
    "observables/loss/step",
    "parameters",
    "parameters/start",
]


@pytest.mark.parametrize("place", [*PLACES, *GROUPS])
@pytest.mark.parametrize("kind", ["soft", "external", "pipe"])
def test_links_are_not_followed(stored, sound, tmp_path, place, kind):
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(stored, "r+") as file:
        file.move(place, "elsewhere")
        other = {"soft": "", "external": str(sound), "pipe": str(tmp_path / "pipe")}[kind]
        file[place] = h5py.SoftLink("/elsewhere") if kind == "soft" else h5py.ExternalLink(other, place)
    with bounded():
        refused(stored, "is a link, which is not followed")


@pytest.mark.parametrize("kind", ["objects", "strings", "compound", "references", "group"])
def test_only_numbers_are_read(stored, kind):
    with h5py.File(stored, "r+") as file:
        del file["observables/loss/value"]
        if kind == "group":
            file.create_group("observables/loss/value")
        else:
            types = {
                "objects": h5py.vlen_dtype(np.int32),
                "strings": h5py.string_dtype(),
                "compound": np.dtype([("a", "f8"), ("b", "f8")]),
                "references": h5py.ref_dtype,
            }
            file["observables/loss"].create_dataset("value", shape=(12, 3), dtype=types[kind])
    refused(stored, "must be numbers of at most 64 bits" if kind != "group" else "is not a dataset")


# -- sizes that are not there -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "shape", "chunks"),
    [
        ("particles/tokens/run", (10**9,), (1024,)),
        ("particles/tokens/position/value", (2**40, 21, 2), (1, 21, 2)),
        ("particles/tokens/position/value", (12, 2**40, 2), (1, 1024, 2)),
        ("particles/tokens/position/step", (2 * 10**8,), (1024,)),
        ("observables/signals/step", (2 * 10**8,), (1024,)),
        ("observables/loss/value", (12, 2**40), (12, 1024)),
    ],
)
def test_what_is_claimed_must_be_stored(stored, place, shape, chunks):
    with h5py.File(stored, "r+") as file:
        dtype = file[place].dtype
        del file[place]
        made = file.create_dataset(
            place, shape=shape, dtype=dtype, chunks=chunks, maxshape=(None,) * len(shape), compression="gzip"
        )
        made[tuple(slice(min(n, 3)) for n in shape)] = 0
    with bounded():
        refused(stored, "but less is stored")


def test_a_chunk_that_nobody_stored_is_refused(stored):
    """HDF5 would read it as zeros."""
    with h5py.File(stored, "r+") as file:
        del file["observables/loss/value"]
        made = file["observables/loss"].create_dataset("value", (12, 3), "f8", chunks=(6, 3))
        made[:6] = np.random.default_rng(0).random((6, 3))
        assert made[6:].max() == 0
    refused(stored, "but less is stored")


class Late(BaseException):
    """It hangs."""


@contextlib.contextmanager
def bounded():
    """Fail after a minute; end the process after two, because no signal interrupts a loop of HDF5."""

    def late(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    faulthandler.dump_traceback_later(2 * SECONDS, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("place", "values", "sentence"),
    [
        ("particles/tokens/run", np.repeat(np.arange(4), 6)[:21], "points are not sorted into"),
        ("particles/tokens/run", np.tile(np.arange(3), 7), "points are not sorted into"),
        ("particles/tokens/run", np.full(21, -1), "points are not sorted into"),
        ("particles/tokens/run", np.full(21, 2**62), "points are not sorted into"),
        ("particles/tokens/run", np.repeat([0.0, 1.0, 2.0], 7), "of its 21 points are float64"),
        ("particles/tokens/token", np.tile(np.arange(7)[::-1], 3), "not sorted into 3 runs and by token"),
        ("particles/tokens/token", np.arange(21), "not sorted into 3 runs and by token"),
        ("particles/tokens/token", np.tile(np.arange(7.0), 3), "and float64 (21,)"),
        ("particles/tokens/token", np.tile(np.arange(7), 2), "and int64 (14,)"),
        ("particles/tokens/position/step", np.arange(12)[::-1], "must increase"),
        ("particles/tokens/position/step", np.arange(11), "has steps int64 (11,)"),
        (
            "particles/tokens/position/time",
            np.full(12, np.nan),
            "times of steps in particles/tokens/position must be finite",
        ),
        ("observables/signals/step", np.zeros(40, int), "must increase"),
        ("observables/loss/value", np.zeros((12, 4)), "does not have 3 runs"),
        ("observables/loss/value", np.zeros((11, 3)), "does not have 12 frames"),
    ],
)
def test_what_is_stored_must_agree(stored, place, values, sentence):
    with h5py.File(stored, "r+") as file:
        shared = place == "particles/tokens/position/step"
        del file[place]
        file[place] = values
        if shared:
            for name in ("loss", "status", "alive", "gradient"):
                del file[f"observables/{name}/step"]
                file[f"observables/{name}/step"] = file[place]
    refused(stored, sentence)


@pytest.mark.parametrize(
    "config",
    [
        "[" * 100_000,
        "[1]",
        "{",
        '{"model": 3}',
        '{"system": [1]}',
        '{"run_numbers": [1]}',
        '{"first_run": "x"}',
        '{"per_run": ["seed"], "seed": 3}',
        "null",
    ],
)
def test_parameters_that_are_not_parameters(stored, config):
    with h5py.File(stored, "r+") as file:
        file["parameters"].attrs["config"] = np.bytes_(config)
    refused(stored, "is damaged: ")


def test_an_observable_that_was_never_measured_is_shown(tmp_path):
    whole = Trajectory(
        np.random.default_rng(0).standard_normal((1, 2, 7, 2)),
        range(2),
        observables={"never": np.zeros((1, 0))},
        clocks={"never": (np.zeros(0, int), None)},
    )
    whole.save(tmp_path / "t.h5")
    assert content(tmp_path / "t.h5")["observable never"].shape == (1, 0)
    for command in ("info", "analyze"):
        assert cli.main([command, str(tmp_path / "t.h5")]) == 0


def test_what_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with bounded():
        for path in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
            refused(path, "is a directory or a device")


# -- mutants ------------------------------------------------------------------------------------------------


def mutants(sound, number, seed=0):
    """Yield mutated copies of a file's bytes: flips, blocks of zeros or noise, cuts, swaps, and repeats."""
    original = np.frombuffer(sound, np.uint8)
    for k in range(number):
        rng = np.random.default_rng([seed, k])
        data = original.copy()
        kind = k % 6
        at = int(rng.integers(len(data)))
        length = int(rng.integers(1, 64))
        if kind == 0:
            data[at] ^= np.uint8(1 << rng.integers(8))
        elif kind == 1:
            data[at] = rng.integers(256)
        elif kind == 2:
            data[at : at + length] = rng.choice([0, 255])
        elif kind == 3:
            data[at : at + length] = rng.integers(256, size=len(data[at : at + length]))
        elif kind == 4:
            data = data[:at] if rng.random() < 0.5 else np.delete(data, slice(at, at + length))
        else:
            other = int(rng.integers(len(data) - length))
            part = data[other : other + length].copy()
            data[at : at + length] = part[: len(data[at : at + length])]
        if not np.array_equal(data, original):
            yield k, data.tobytes()


def read_mutants(folder, number, first=0):
    """Load mutants of a file and of a log; return what went wrong, one line each."""
    faults = []
    for name in ("sound.h5", "sound.h5.partial"):
        sound = folder / name
        right = content(sound)
        path = folder / f"mutant-{name}"
        for k, data in mutants(sound.read_bytes(), number):
            if k < first:
                continue
            path.write_bytes(data)
            try:
                with bounded(), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found = content(path)
            except FileFormatError:
                continue
            except BaseException as error:
                faults.append(f"{name} {k}: {type(error).__name__}: {error}")
                continue
            frames = len(found["steps"])
            for key, values in right.items():
                same = found[key] == values if key == "rest" else np.array_equal(found[key], values)
                if name.endswith(".partial"):  # a log may end early, and says so
                    if key == "rest":
                        same = json.loads(found[key])[:2] == json.loads(values)[:2]
                    elif key in ("steps", "times"):
                        same = np.array_equal(found[key], values[:frames])
                    elif not key.startswith("start"):
                        same = np.array_equal(found[key], values[:, :frames])
                if not same:
                    faults.append(f"{name} {k}: {key} has other values")
    return faults


@pytest.fixture(scope="module")
def folder(sound, tmp_path_factory):
    """A folder with a sound file and a sound log."""
    folder = tmp_path_factory.mktemp("mutants")
    whole = example()
    (folder / "sound.h5").write_bytes(sound.read_bytes())
    layout = Layout(3, 7, 2, "float32", 0, {"loss": ("<f8", ())})
    with pytest.raises(KeyboardInterrupt):
        with FileRecorder(
            folder / "sound.h5", layout, whole.parameters, start=whole.start, overwrite=True
        ) as recorder:
            for frame in range(12):
                recorder.append(
                    2 * frame, frame, whole.frame(frame), {"loss": whole.observables["loss"][:, frame]}
                )
                recorder.flush()
            raise KeyboardInterrupt
    return folder


def test_mutants_are_refused_or_read_right(folder):
    assert read_mutants(folder, 150) == []


@pytest.mark.parametrize("place", ["parameters", "observables/alive/value"])
def test_strings_of_variable_length_are_refused_or_not_read(stored, place):
    with h5py.File(stored, "r+") as file:
        file[place].attrs["config"] = "{}"
    if place == "parameters":
        refused(stored, "'config' is neither a number nor a string of fixed length")
    else:
        assert content(stored)["observable alive"].dtype == bool


@pytest.mark.parametrize("number", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_commands_go_on_past_bad_files_and_say_which(folder, tmp_path, number):
    names = []
    for k, data in mutants((folder / "sound.h5").read_bytes(), number, seed=1):
        names.append(tmp_path / f"{k}.h5")
        names[-1].write_bytes(data)
    (tmp_path / "z.h5").write_bytes((folder / "sound.h5").read_bytes())
    bad = []
    for path in names:
        try:
            content(path)
        except FileFormatError:
            bad.append(path)
    assert len(bad) > 3
    for command in (["info"], ["analyze"]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main([*command, str(tmp_path / "*.h5")])
        assert status == 1
        assert str(tmp_path / "z.h5") in out.getvalue()
        said = err.getvalue()
        assert "Traceback" not in said
        for path in names:
            assert str(path) in said or str(path) in out.getvalue(), "each file is shown, or refused by name"
