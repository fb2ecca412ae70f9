import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import pytest
from damage import flip
from hypothesis import given
from hypothesis import strategies as st

import physics
from physics import FileFormatError, InputError, OutputError, ParticleSystem, Trajectory, hdf5, storage
from physics.recording import Layout
from physics.storage import TrajectoryWriter
from physics.transactions import MARK, TransactionalFile, has_journal


def example(dim=3, dtype="float32", parameters=None):
    rng = np.random.default_rng(0)
    return Trajectory(
        rng.standard_normal((4, 30, 5, dim)).astype(dtype),
        np.arange(0, 60, 2),
        0.5 * np.arange(30),
        observables={
            "loss": rng.random((4, 30)),
            "gradient": rng.random((4, 30, 60, 9)),
            "signals": rng.random((4, 200, 7)).astype("f4"),
        },
        clocks={"signals": (np.arange(200), None)},
        parameters={"program": "a test", "seed": 3} if parameters is None else parameters,
    )


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "example.h5"
    example().save(path)
    return path


def assert_same(one, other):
    np.testing.assert_array_equal(one.positions, other.positions)
    np.testing.assert_array_equal(one.steps, other.steps)
    np.testing.assert_array_equal(one.times, other.times)
    assert one.positions.dtype == other.positions.dtype
    assert set(one.observables) == set(other.observables)
    for name in one.observables:
        np.testing.assert_array_equal(one.observables[name], other.observables[name])
        np.testing.assert_array_equal(one.clock(name)[0], other.clock(name)[0])
    assert one.parameters == other.parameters
    assert one.complete == other.complete


# -- what goes in comes out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_saved_trajectory_comes_back(tmp_path, dtype):
    original = example(dtype=dtype)
    original.save(tmp_path / "t.h5")
    assert_same(Trajectory.open(tmp_path / "t.h5"), original)
    assert_same(physics.load(tmp_path / "t.h5"), original)
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]


def test_streaming_gives_the_same_as_memory(tmp_path):
    system = ParticleSystem(6, 3)
    in_memory = physics.simulate(system, runs=3, steps=9)
    streamed = physics.simulate(system, runs=3, steps=9, out=tmp_path / "t.h5")
    assert_same(streamed, in_memory)


def test_parts_are_read_without_the_whole(stored):
    lazy, whole = Trajectory.open(stored), example()
    np.testing.assert_array_equal(lazy.initial, whole.positions[:, 0])
    np.testing.assert_array_equal(lazy.final, whole.positions[:, -1])
    np.testing.assert_array_equal(lazy.frame(7), whole.positions[:, 7])
    assert_same(lazy.run(2), whole.run(2))
    for every in (1, 2, 5, 100):
        kept = np.unique(np.append(np.arange(0, whole.frames, every), whole.frames - 1))
        thinned = lazy.run(2, every=every)
        assert_same(thinned, whole.run(2, every=every))
        np.testing.assert_array_equal(thinned.positions[0], whole.positions[2, kept])
        np.testing.assert_array_equal(thinned.steps, whole.steps[kept])
    blocks = list(lazy.blocks(megabytes=0.0005))
    assert len(blocks) > 5
    np.testing.assert_array_equal(np.concatenate([b for _, b in blocks], axis=1), whole.positions)
    assert lazy._cache is None, "nothing above may have read all positions"


def test_more_than_64_kilobytes_of_parameters(tmp_path):
    parameters = {"program": "a test", "seed": 1, "note": "x" * 100_000}
    example(parameters=parameters).save(tmp_path / "t.h5")
    assert physics.load(tmp_path / "t.h5").parameters == parameters


def test_a_frame_larger_than_a_chunk(tmp_path):
    rng = np.random.default_rng(0)
    big = Trajectory(rng.standard_normal((2, 3, 40, 5000)), np.arange(3))
    big.save(tmp_path / "t.h5")
    np.testing.assert_array_equal(physics.load(tmp_path / "t.h5").positions, big.positions)
    with h5py.File(tmp_path / "t.h5") as file:
        chunk = file["particles/tokens/position/value"].chunks
        assert 2**18 <= np.prod(chunk) * 8 <= 2**20


def test_layout_and_filters(stored):
    with h5py.File(stored) as file:
        assert file["h5md"].attrs["version"].tolist() == [1, 1]
        assert file["h5md/creator"].attrs["name"] == b"GrokPhys"
        assert file["particles/tokens/box"].attrs["boundary"].tolist() == [b"none"] * 3
        assert file["particles/tokens/box"].attrs["dimension"] == 3
        value = file["particles/tokens/position/value"]
        assert value.shape == (30, 20, 3)
        assert value.maxshape[0] is None
        assert (value.compression, value.compression_opts, value.shuffle, value.fletcher32) == (
            "gzip",
            1,
            True,
            True,
        )
        assert file["particles/tokens/run"][:].tolist() == [r for r in range(4) for _ in range(5)]
        assert file["particles/tokens/token"][:].tolist() == list(range(5)) * 4
        assert file["observables/loss/step"] == file["particles/tokens/position/step"], "a hard link"
        assert file["observables/signals/step"] != file["particles/tokens/position/step"]
        assert all(len(axis) == 1 for axis in value.dims), "a scale on every axis"
        assert file["parameters"].attrs["schema"] == b"grokphys-trajectory"
        assert file["parameters"].attrs["seed"] == b"3"


# -- foreign readers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_xarray_opens_every_group(stored, engine):
    xarray = pytest.importorskip("xarray")
    whole = example()
    with xarray.open_dataset(stored, group="particles/tokens/position", engine=engine) as data:
        assert data["value"].dims == ("step", "particle", "axis")
        by_run = data["value"].values.reshape(30, 4, 5, 3)
        np.testing.assert_array_equal(np.moveaxis(by_run, 1, 0), whole.positions)
        np.testing.assert_array_equal(data["step"], whole.steps)
        np.testing.assert_array_equal(data["time"], whole.times)
        np.testing.assert_array_equal(data["run"], np.repeat(np.arange(4), 5))
    for name in whole.observables:
        with xarray.open_dataset(stored, group=f"observables/{name}", engine=engine) as data:
            np.testing.assert_array_equal(np.moveaxis(data["value"].values, 1, 0), whole.observables[name])
            assert data["value"].dims[:2] == ("step", "run")
    for group in (None, "parameters", "particles/tokens", "observables", "h5md/creator"):
        xarray.open_dataset(stored, group=group, engine=engine).close()


def test_pyh5md_reads_it(stored):
    pyh5md = pytest.importorskip("pyh5md")
    with pyh5md.File(stored, "r") as file:
        group = file.particles_group("tokens")
        position = pyh5md.element(group, "position")
        assert position.element_type == "TimeElement"
        np.testing.assert_array_equal(position.value[:].reshape(30, 4, 5, 3)[:, 1], example().positions[1])
        np.testing.assert_array_equal(position.step[:], example().steps)
        loss = pyh5md.element(file["observables"], "loss")
        np.testing.assert_array_equal(loss.value[:].T, example().observables["loss"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_mdanalysis_reads_three_dimensions(stored):
    pytest.importorskip("MDAnalysis")
    from MDAnalysis.coordinates.H5MD import H5MDReader

    with H5MDReader(str(stored), convert_units=False) as reader:
        assert reader.n_frames == 30
        for frame in (0, 17, 29):
            np.testing.assert_array_equal(
                reader[frame].positions.reshape(4, 5, 3), example().positions[:, frame]
            )


def test_to_xarray(stored):
    pytest.importorskip("xarray")
    data = Trajectory.open(stored).to_xarray()
    assert dict(data.sizes)["run"] == 4
    np.testing.assert_array_equal(data["positions"].sel(run=2, step=10), example().positions[2, 5])
    np.testing.assert_array_equal(data["signals"].isel(run=1), example().observables["signals"][1])


# -- files that are not right -------------------------------------------------------------------------------


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing\.h5"):
        physics.load(tmp_path / "nothing.h5")


def spoil_text(path):
    path.write_text("a,b\n1,2\n")


def spoil_empty(path):
    path.write_bytes(b"")


def spoil_truncated(path):
    os.truncate(path, path.stat().st_size // 2)


def spoil_newer(path):
    with h5py.File(path, "r+") as file:
        file["parameters"].attrs["schema_version"] = 2


def spoil_foreign_hdf5(path):
    path.unlink()
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)


def spoil_foreign_h5md(path):
    path.unlink()
    with h5py.File(path, "w") as file:
        file.create_group("h5md")


def spoil_missing(path):
    with h5py.File(path, "r+") as file:
        del file["particles"]


def spoil_configuration(path):
    with h5py.File(path, "r+") as file:
        file["parameters"].attrs["config"] = np.bytes_("{")


def spoil_directory(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (spoil_text, "is not an HDF5 file"),
        (spoil_empty, "is empty"),
        (spoil_truncated, "is truncated: its end is missing"),
        (spoil_newer, "has schema version 2; this version of GrokPhys reads up to 1, please upgrade"),
        (
            spoil_foreign_hdf5,
            "is an HDF5 file, not a GrokPhys trajectory (schema 'grokphys-trajectory', found None)",
        ),
        (spoil_foreign_h5md, "is an H5MD file of another program, not a GrokPhys trajectory"),
        (spoil_missing, "is damaged: it holds no particles/tokens/position/value"),
        (spoil_configuration, "is damaged: its configuration cannot be read"),
        (spoil_directory, "is a directory, not a trajectory file"),
    ],
)
def test_a_file_that_is_not_right_is_named_with_the_reason(stored, spoil, sentence):
    spoil(stored)
    with pytest.raises(FileFormatError) as error:
        Trajectory.open(stored)
    assert str(stored) in str(error.value)
    assert sentence in str(error.value)


def test_a_damaged_chunk_is_found(stored):
    flip(stored)
    with pytest.raises(FileFormatError, match="is damaged"):
        physics.load(stored)


def test_a_file_that_changed_since_it_was_opened(stored):
    lazy = Trajectory.open(stored)
    physics.simulate(steps=1, out=stored, overwrite=True)
    with pytest.raises(FileFormatError, match="has changed since it was opened"):
        _ = lazy.positions


# -- where not to write -------------------------------------------------------------------------------------


def test_an_existing_file_is_refused_unless_overwritten(stored):
    before = stored.read_bytes()
    with pytest.raises(OutputError, match=r"example\.h5 exists; choose another name or pass overwrite"):
        physics.simulate(steps=1, out=stored)
    with pytest.raises(OutputError, match="exists"):
        example().save(stored)
    assert stored.read_bytes() == before
    physics.simulate(ParticleSystem(5), steps=1, out=stored, overwrite=True)
    assert physics.load(stored).tokens == 5


def test_a_failed_run_leaves_the_file_it_would_have_replaced(stored):
    before = stored.read_bytes()
    huge = ParticleSystem(5, repulsion=1e308, softening=1e-200)
    with pytest.raises(physics.SimulationError):
        physics.simulate(huge, step_size=1e200, out=stored, overwrite=True)
    assert stored.read_bytes() == before


def test_a_directory_that_does_not_exist(tmp_path):
    with pytest.raises(OutputError, match="the directory .*missing does not exist"):
        physics.simulate(steps=1, out=tmp_path / "missing" / "t.h5")
    for directory in (tmp_path, ".", ""):
        with pytest.raises(OutputError, match="it is a directory"):
            physics.simulate(steps=1, out=directory)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_write_permission(python):
    code = """
import os, sys
import h5py, physics.storage  # before root, who may write anywhere, becomes nobody
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    physics.simulate(steps=1, out=sys.argv[1])
except physics.OutputError as error:
    sys.exit(str(error))
"""
    with tempfile.TemporaryDirectory() as closed:
        os.chmod(closed, 0o555)  # noqa: PTH101
        done = python(code, f"{closed}/t.h5", check=False)
        assert done.stderr.strip() == f"cannot write {closed}/t.h5: no permission to write in {closed}"
        assert os.listdir(closed) == []


def test_nothing_is_left_where_there_is_no_frame(tmp_path):
    def fail():
        with TrajectoryWriter(tmp_path / "t.h5", Layout(1, 3, 2, "float64", 1), {}):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_json_does_not_hold(tmp_path):
    with pytest.raises(InputError, match="parameters must be what JSON holds"):
        TrajectoryWriter(tmp_path / "t.h5", Layout(1, 3, 2, "float64", 1), {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_two_writers(tmp_path, python):
    path = tmp_path / "t.h5"
    code = """
import sys, physics
try:
    physics.simulate(steps=1, out=sys.argv[1], overwrite="overwrite" in sys.argv, resume="resume" in sys.argv)
except physics.OutputError as error:
    sys.exit(str(error))
"""
    with TrajectoryWriter(path, Layout(1, 3, 2, "float64", 2), {}) as first:
        for how in ("plain", "overwrite", "resume"):
            done = python(code, path, how, check=False)
            assert done.returncode == 1
            assert "t.h5.partial is being written by another process" in done.stderr
        first.append(0, 0.0, np.zeros((1, 3, 2)))
    assert physics.load(path).frames == 1


def test_a_name_taken_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "t.h5"

    def run():
        with TrajectoryWriter(path, Layout(1, 3, 2, "float64", 1), {}) as writer:
            writer.append(0, 0.0, np.zeros((1, 3, 2)))
            path.write_text("precious")

    with pytest.raises(OutputError, match="has come to exist meanwhile; the finished run is in .*partial"):
        run()
    assert path.read_text() == "precious"
    assert physics.load(tmp_path / "t.h5.partial").complete


# -- kills and full disks -----------------------------------------------------------------------------------

ENDLESS = """
import sys
import numpy as np
from physics import hdf5, storage
from physics.recording import Layout
storage.FLUSH_SECONDS, hdf5.CHUNK_BYTES = float(sys.argv[2]), 4096
layout = Layout(2, 17, 2, "float64", 0, {"a": (), "b": (300,)})
writer = storage.TrajectoryWriter(sys.argv[1], layout, {"seed": 1})
step = 0
while True:
    filled = np.full((2, 17, 2), float(step))
    writer.append(step, step / 2, filled, a=filled[:, 0, 0], b=np.full((2, 300), float(step)))
    step += 1
    if step % 10 == 0:
        print(step, flush=True)
"""


def kill_while_writing(path, flush_seconds, wait):
    """Start an endless writer, kill it, and return the number of frames that it says it had appended."""
    command = [sys.executable, "-c", ENDLESS, str(path), str(flush_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        appended = int(process.stdout.readline())
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines()
    return int(rest[-1]) if rest else appended


@pytest.mark.parametrize("flush_seconds", [0.0, 1000.0])
def test_a_killed_run_keeps_every_flushed_frame(tmp_path, flush_seconds):
    appended = kill_while_writing(tmp_path / "t.h5", flush_seconds, wait=0.2)
    found = physics.load(tmp_path / "t.h5.partial")
    assert not found.complete
    chunk = 4096 // (2 * 17 * 2 * 8)
    assert found.frames >= appended - (1 if flush_seconds == 0 else chunk)
    np.testing.assert_array_equal(found.steps, np.arange(found.frames))
    np.testing.assert_array_equal(found.times, np.arange(found.frames) / 2)
    for values in (found.positions[1, :, 3, 1], found.observables["a"][0], found.observables["b"][1, :, 99]):
        np.testing.assert_array_equal(values, np.arange(found.frames))
    with h5py.File(tmp_path / "t.h5.partial") as file:  # a plain reader opens it too
        assert len(file["particles/tokens/position/value"]) >= found.frames


class Snapshots(TransactionalFile):
    """Keeps what a kill would leave: the bytes on disk in the middle and at the end of each write to it."""

    def __init__(self, *arguments):
        self.path, self.commits, self.kept = arguments[0], 0, []
        super().__init__(*arguments)

    def _put(self, address, data):
        super()._put(address, data[: len(data) // 2])
        self.kept.append((self.commits, self.path.read_bytes()))
        super()._put(address, data)
        self.kept.append((self.commits, self.path.read_bytes()))

    def commit(self):
        super().commit()
        self.commits += 1


@pytest.mark.parametrize("flush_seconds", [-1.0, 1000.0])
def test_a_kill_between_any_two_writes_leaves_the_last_flush_or_the_next(
    tmp_path, monkeypatch, flush_seconds
):
    monkeypatch.setattr(storage, "FLUSH_SECONDS", flush_seconds)
    monkeypatch.setattr(storage, "TransactionalFile", Snapshots)
    monkeypatch.setattr(hdf5, "CHUNK_BYTES", 1200)  # two frames
    layout = Layout(2, 17, 2, "float64", 0, {"a": (), "b": (300,)})
    with TrajectoryWriter(tmp_path / "t.h5", layout, {}) as writer:
        flushed = {1: 0}
        for step in range(134):  # beyond 64 chunks, where HDF5 splits its index
            filled = np.full((2, 17, 2), float(step))
            writer.append(step, step / 2, filled, a=filled[:, 0, 0], b=np.full((2, 300), float(step)))
            flushed[writer._storage.commits] = len(writer._step)
        kept = writer._storage.kept
    flushed[writer._storage.commits] = 134
    killed = tmp_path / "killed.h5.partial"
    journals = 0
    for commits, contents in kept:
        left = max(flushed) - commits
        if not commits or 4 < left < max(flushed) - 4:  # no structure yet, or nothing but more of the same
            continue
        killed.write_bytes(contents)
        found = physics.load(killed)
        assert found.frames in (flushed[commits], flushed.get(commits + 1))
        for values in (found.steps, found.positions[1, :, 3, 1], found.observables["b"][1, :, 99]):
            np.testing.assert_array_equal(values, np.arange(found.frames))
        journals += has_journal(killed)
        if not has_journal(killed):
            with h5py.File(killed) as file:
                assert len(file["particles/tokens/position/step"]) == found.frames
    assert journals > 10


def test_a_run_killed_in_a_commit_resumes_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "FLUSH_SECONDS", -1.0)
    monkeypatch.setattr(storage, "TransactionalFile", Snapshots)
    options = {"system": ParticleSystem(5), "steps": 4}
    with TrajectoryWriter(
        tmp_path / "a.h5", Layout(1, 5, 2, "float64", 5), physics.simulate(**options).parameters
    ) as writer:
        for frame in range(4):
            writer.append(frame, 0.02 * frame, physics.simulate(**options).frame(frame))
        kept = writer._storage.kept
    whole = physics.simulate(**options)
    monkeypatch.undo()
    resumed = 0
    for commits, contents in kept:
        if commits > 1 and contents[-8:] == MARK:
            (tmp_path / "t.h5.partial").write_bytes(contents)
            assert_same(physics.simulate(**options, out=tmp_path / "t.h5", resume=True), whole)
            (tmp_path / "t.h5").unlink()
            resumed += 1
    assert resumed > 3


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(60):
        path = tmp_path / f"{k}.h5"
        appended = kill_while_writing(path, 0.0, wait=rng.uniform(0, 0.3))
        found = physics.load(path.with_name(path.name + ".partial"))
        assert found.frames >= appended - 1
        np.testing.assert_array_equal(found.positions[0, :, 0, 0], np.arange(found.frames))
        np.testing.assert_array_equal(found.observables["b"][0, :, 0], np.arange(found.frames))


def test_a_killed_simulation_resumes_to_the_same_bits(tmp_path):
    whole = physics.simulate(ParticleSystem(5), runs=2, steps=40, out=tmp_path / "whole.h5")
    for kept in (1, 7, 40):
        path = tmp_path / f"{kept}.h5"
        interrupted = physics.simulate(ParticleSystem(5), runs=2, steps=40)
        with pytest.raises(KeyboardInterrupt):
            with TrajectoryWriter(path, Layout(2, 5, 2, "float64", 41), interrupted.parameters) as writer:
                for frame in range(kept):
                    writer.append(frame, 0.02 * frame, interrupted.frame(frame))
                raise KeyboardInterrupt
        resumed = physics.simulate(ParticleSystem(5), runs=2, steps=40, out=path, resume=True)
        assert_same(resumed, whole)
        assert resumed.complete
        assert not (tmp_path / f"{kept}.h5.partial").exists()


def test_an_unfinished_run_is_neither_replaced_nor_mixed_up(tmp_path):
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    kill_while_writing(path, 0.0, wait=0.0)
    before = partial.read_bytes()
    with pytest.raises(OutputError, match=r"holds an unfinished run; pass resume \(--resume\) to go on"):
        physics.simulate(steps=1, out=path)
    with pytest.raises(
        InputError, match="has another configuration and is not resumed .*seed: 1 there, 0 here"
    ):
        physics.simulate(steps=1, out=path, resume=True)
    assert partial.read_bytes() == before
    with pytest.raises(
        OutputError, match=r"holds an unfinished run; pass overwrite \(--overwrite\) to begin"
    ):
        example().save(path)  # which cannot be resumed
    physics.simulate(steps=1, out=path, overwrite=True)
    assert not partial.exists()


def test_another_start_is_not_resumed(tmp_path):
    start = np.random.default_rng(0).standard_normal((5, 2))
    options = {"system": ParticleSystem(5), "steps": 3, "out": tmp_path / "t.h5"}
    parameters = physics.simulate(ParticleSystem(5), steps=3, initial=start).parameters
    with pytest.raises(KeyboardInterrupt):
        with TrajectoryWriter(options["out"], Layout(1, 5, 2, "float64", 4), parameters) as writer:
            writer.append(0, 0.0, start[None])
            raise KeyboardInterrupt
    with pytest.raises(InputError, match="initial is not the start of the unfinished run"):
        physics.simulate(**options, initial=start + 1, resume=True)
    physics.simulate(**options, initial=start, resume=True)


def test_a_full_disk_keeps_what_was_written(tmp_path):
    path = tmp_path / "t.h5"
    code = """
import resource, signal, sys
import numpy as np
from physics import OutputError, storage
from physics.recording import Layout
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
rng = np.random.default_rng(0)
try:
    with storage.TrajectoryWriter(sys.argv[1], Layout(1, 50, 40, "float64", 0), {}) as writer:
        for step in range(1000):
            writer.append(step, step, rng.standard_normal((1, 50, 40)))
except OutputError as error:
    print(error)
    sys.exit(3)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(f"cannot write {path}: File too large; the frames written before are in")
    assert not path.exists()
    kept = physics.load(tmp_path / "t.h5.partial")
    rng = np.random.default_rng(0)
    assert kept.frames > 30
    for frame in range(kept.frames):
        np.testing.assert_array_equal(kept.frame(frame)[0], rng.standard_normal((1, 50, 40))[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["noise", "zeros", "constant", "odd"])
def test_a_chunk_is_stored_as_hdf5_itself_would(tmp_path, kind, dtype):
    rng = np.random.default_rng(0)
    values = {
        "noise": rng.standard_normal((4, 50, 3)),
        "zeros": np.zeros((4, 50, 3)),
        "constant": np.full((4, 50, 3), -1.5),
        "odd": np.where(rng.random((4, 50, 3)) < 0.1, rng.standard_normal((4, 50, 3)), 0.0),
    }[kind].astype(dtype)
    options = {"maxshape": (None, 50, 3), "chunks": (4, 50, 3), "dtype": dtype, **storage.FILTERS}
    with h5py.File(tmp_path / "t.h5", "w") as file:
        ours = file.create_dataset("ours", shape=(0, 50, 3), **options)
        theirs = file.create_dataset("theirs", shape=(0, 50, 3), **options)
        for _ in range(3):
            assert hdf5.whole_chunk(ours, values)
            hdf5.append_chunk(ours, values)
            hdf5.extend(theirs, values)
        assert not hdf5.whole_chunk(ours, values[:2])
    with h5py.File(tmp_path / "t.h5") as file:
        for k in range(3):  # the filters' bytes, checksums included, and what a reader makes of them
            stored = [file[name].id.read_direct_chunk((4 * k, 0, 0)) for name in ("ours", "theirs")]
            assert stored[0] == stored[1]
        np.testing.assert_array_equal(file["ours"][:], np.concatenate([values] * 3))


@given(st.binary(min_size=1, max_size=400))
def test_the_checksum_is_the_sum_with_the_carry_added_again(data):
    low = high = 0
    for k in range(0, len(data), 2):
        low += int.from_bytes(data[k : k + 2].ljust(2, b"\0"), "big")
        low = (low & 0xFFFF) + (low >> 16)
        high += low
        high = (high & 0xFFFF) + (high >> 16)
    assert hdf5.fletcher32(data) == high << 16 | low


def test_a_disk_that_is_full_from_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 100))
    with pytest.raises(OutputError, match="cannot write .*: No space left on device"):
        physics.simulate(steps=1, out=tmp_path / "t.h5")
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_number_of_frames(tmp_path):
    layout = Layout(1, 50, 40, "float64", 0)
    with TrajectoryWriter(tmp_path / "t.h5", layout, {}) as writer:
        most = 0
        for step in range(200):
            writer.append(step, step, np.full((1, 50, 40), float(step)))
            most = max(most, sum(frame[2].nbytes for frame in writer._buffer))
    assert most <= hdf5.CHUNK_BYTES
    assert physics.load(tmp_path / "t.h5").frames == 200


def test_a_recorder_copies(tmp_path):
    state = np.zeros((1, 3, 2))
    with TrajectoryWriter(tmp_path / "t.h5", Layout(1, 3, 2, "float64", 3, {"o": (2,)}), {}) as writer:
        observed = np.zeros((1, 2))
        for step in range(3):
            writer.append(step, step, state, o=observed)
            state += 1
            observed += 10
    found = physics.load(tmp_path / "t.h5")
    assert found.positions[0, :, 0, 0].tolist() == [0, 1, 2]
    assert found.observables["o"][0, :, 1].tolist() == [0, 10, 20]


# -- Trajectory itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            (np.zeros((2, 3, 4)), [0, 1, 2]),
            "positions must be float32 or float64 of shape (runs, frames, tokens, dim)",
        ),
        ((np.zeros((1, 3, 4, 2), int), [0, 1, 2]), "positions must be float32 or float64"),
        ((np.zeros((1, 3, 4, 2)), [0, 1]), "steps and its times must have 3 entries, got (2,) and (2,)"),
        ((np.zeros((1, 3, 4, 2)), [0.0, 1.0, 2.0]), "steps must be whole numbers of shape (frames,)"),
        ((np.zeros((1, 3, 4, 2)), [0, 2, 2]), "steps must increase, got 2 followed by 2"),
        (
            (np.zeros((1, 3, 4, 2)), [0, 1, 2], [0, 1]),
            "steps and its times must have 3 entries, got (3,) and (2,)",
        ),
    ],
)
def test_a_trajectory_refuses_what_does_not_fit(arguments, sentence):
    with pytest.raises(InputError) as error:
        Trajectory(*arguments)
    assert str(error.value).startswith(sentence)


def test_a_trajectory_refuses_observables_that_do_not_fit():
    with pytest.raises(InputError, match=r"observables\['a'\] must have the shape"):
        Trajectory(np.zeros((2, 3, 4, 2)), [0, 1, 2], observables={"a": np.zeros((2, 4))})


def test_a_run_killed_before_its_first_frame(tmp_path):
    writer = TrajectoryWriter(tmp_path / "t.h5", Layout(2, 3, 2, "float64", 9), {})
    writer._file.close()
    writer._storage.close()
    found = physics.load(tmp_path / "t.h5.partial")
    assert (found.runs, found.frames, found.tokens) == (2, 0, 3)
    with pytest.raises(InputError, match="the trajectory holds no frame yet"):
        _ = found.final


def test_frames_and_runs_out_of_range():
    trajectory = example()
    with pytest.raises(InputError, match="frame must be below 30, got 30"):
        trajectory.frame(30)
    with pytest.raises(InputError, match="run must be at least -4, got -5"):
        trajectory.run(-5)


def test_errno_is_kept_for_scripts(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        Trajectory.open(tmp_path / "x.h5")
    assert error.value.errno == errno.ENOENT


def test_xarray_opens_what_train_writes(tmp_path):
    xarray = pytest.importorskip("xarray")
    import nets

    trained = nets.train(nets.ConstantAttention(5), runs=2, steps=4, record=2, out=tmp_path / "t.h5")
    for engine in ("h5netcdf", "netcdf4"):
        with xarray.open_dataset(tmp_path / "t.h5", group="particles/tokens/position", engine=engine) as data:
            np.testing.assert_array_equal(
                data["value"].values.reshape(3, 2, 5, 2)[:, 1], trained.positions[1]
            )
        with xarray.open_dataset(
            tmp_path / "t.h5", group="observables/validation_loss", engine=engine
        ) as data:
            np.testing.assert_array_equal(data["value"].T, trained.observables["validation_loss"])
