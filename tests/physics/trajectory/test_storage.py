import copy
import os
import pickle

import h5py
import numpy as np
import pytest
from damage import flip

import physics
from physics import FileFormatError, InputError, OutputError, ParticleSystem, Trajectory
from physics.trajectory.header import Layout
from physics.trajectory.recording import FileRecorder


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


# -- what goes in comes out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_saved_trajectory_comes_back(tmp_path, dtype):
    original = example(dtype=dtype)
    original.save(tmp_path / "t.h5")
    found = physics.load(tmp_path / "t.h5")
    assert found == original
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]
    copied = copy.deepcopy(found)
    copied.positions[...], copied.parameters["program"] = 0.0, "another"
    assert found == original, "a copy shares nothing with it"
    content = pickle.dumps(found)
    (tmp_path / "t.h5").unlink()
    assert pickle.loads(content) == original


def test_parts_are_read_without_the_whole(stored):
    lazy, whole = physics.load(stored), example()
    np.testing.assert_array_equal(lazy.initial, whole.positions[:, 0])
    np.testing.assert_array_equal(lazy.final, whole.positions[:, -1])
    np.testing.assert_array_equal(lazy.frame(7), whole.positions[:, 7])
    assert lazy.run(2) == whole.run(2)
    for every in (1, 2, 5, 100):
        kept = np.unique(np.append(np.arange(0, whole.frames, every), whole.frames - 1))
        thinned = lazy.run(2, every=every)
        assert thinned == whole.run(2, every=every)
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


@pytest.mark.parametrize(
    "shape", [(7,), (300,), (10, 7000), (3, 2, 200_000), (1, 1_000_000), (3, 1, 1, 700, 300)]
)
def test_every_chunk_is_at_most_a_megabyte_whatever_the_frame(tmp_path, shape):
    rng = np.random.default_rng(0)
    few = rng.standard_normal(6 * np.prod(shape) // 10 + 1)
    observed = np.repeat(few, 10)[: 6 * np.prod(shape)].reshape(2, 3, *shape)  # packed in half the time
    Trajectory(rng.standard_normal((2, 3, 40, 5)), np.arange(3), observables={"big": observed}).save(
        tmp_path / "t.h5"
    )
    np.testing.assert_array_equal(physics.load(tmp_path / "t.h5").observables["big"], observed)
    with h5py.File(tmp_path / "t.h5") as file:
        value = file["observables/big/value"]
        assert 8 * np.prod(value.chunks) <= 2**20
        assert value.nbytes <= 2**20 or 8 * np.prod(value.chunks) >= 2**18


@pytest.mark.parametrize("streamed", [True, False])
def test_a_short_run_is_one_chunk_of_its_length(tmp_path, streamed):
    path = tmp_path / "t.h5"
    options = {"steps": 6, "observables": ["potential"]}
    found = physics.simulate(physics.ParticleSystem(5), out=path if streamed else None, **options)
    if not streamed:
        found.save(path)
    with h5py.File(path) as file:
        for name in ("particles/tokens/position", "observables/potential"):
            assert {file[name][part].chunks[0] for part in ("step", "time", "value")} == {7}


@pytest.mark.parametrize("dtype", ["bool", "i1", "u8", "i8", "f2", "f4", "c8", "c16"])
def test_numbers_keep_their_type_and_all_their_digits(tmp_path, dtype):
    values = np.arange(12).reshape(2, 6).astype(dtype)
    if dtype == "i8":
        values += 2**62
    if values.dtype.kind == "c":
        values = values * (1 + 0.1j)
    Trajectory(np.zeros((2, 6, 4, 2)), np.arange(6), observables={"o": values}).save(tmp_path / "t.h5")
    found = physics.load(tmp_path / "t.h5").observables["o"]
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    "values", [np.array([["a", "b"]]), np.array([[{}, {}]]), np.zeros((1, 2), np.longdouble)]
)
def test_observables_that_a_file_cannot_hold_are_refused(values):
    with pytest.raises(InputError, match=r"observables\['o'\] must be numbers of at most 64 bits, or"):
        Trajectory(np.zeros((1, 2, 4, 2)), np.arange(2), observables={"o": values})


@pytest.mark.parametrize("name", ["a/b", "", ".", "..", "a\0b", 3])
def test_names_that_a_file_cannot_hold_are_refused(name):
    with pytest.raises(InputError, match="names of observables and of initial arrays must be text"):
        Trajectory(np.zeros((1, 2, 4, 2)), np.arange(2), observables={name: np.zeros((1, 2))})


def test_what_a_run_began_with_and_was_made_with_is_kept(tmp_path):
    whole = Trajectory(
        np.zeros((3, 2, 4, 2)),
        np.arange(2),
        start={"split": np.arange(12).reshape(3, 4), "layer.weight": np.ones((3, 5, 5), np.float32)},
        made_with={"grokphys": "9.9", "numpy": "0.1"},
    )
    whole.save(tmp_path / "t.h5")
    found = physics.load(tmp_path / "t.h5")
    assert found.made_with == whole.made_with
    assert set(found.start) == {"split", "layer.weight"}
    np.testing.assert_array_equal(found.start["split"], whole.start["split"])
    np.testing.assert_array_equal(found.run(1).start["split"], [[4, 5, 6, 7]])
    assert found.start["layer.weight"].dtype == np.float32


def test_layout_and_filters(stored):
    with h5py.File(stored) as file:
        assert file["h5md"].attrs["version"].tolist() == [1, 1]
        assert file["h5md/creator"].attrs["name"] == b"GrokPhys"
        assert file["particles/tokens/box"].attrs["boundary"].tolist() == [b"none"] * 3
        assert file["particles/tokens/box"].attrs["dimension"] == 3
        value = file["particles/tokens/position/value"]
        assert value.shape == (30, 20, 3)
        assert value.maxshape[0] is None
        assert (value.compression, value.fletcher32) == (None, True)
        assert file["particles/tokens/run"].compression == "gzip"
        filtered = []
        file.visititems(
            lambda _, item: filtered.append(item.fletcher32) if isinstance(item, h5py.Dataset) else None
        )
        assert len(filtered) == 18
        assert all(filtered), "everything has a checksum"
        assert file["particles/tokens/run"][:].tolist() == [r for r in range(4) for _ in range(5)]
        assert file["particles/tokens/token"][:].tolist() == list(range(5)) * 4
        assert file["observables/loss/step"] == file["particles/tokens/position/step"], "a hard link"
        assert file["observables/signals/step"] != file["particles/tokens/position/step"]
        assert all(len(axis) == 1 for axis in value.dims), "a scale on every axis"
        for name in ("particle", "axis"):
            assert file[f"particles/tokens/{name}"].attrs["NAME"] == name.encode()
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
        file["parameters"].attrs["schema_version"] = 3


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
        (spoil_empty, "is not an HDF5 file"),
        (spoil_truncated, "is damaged: its end is missing"),
        (spoil_newer, "has schema version 3; this version of GrokPhys reads up to 2, please upgrade"),
        (spoil_foreign_hdf5, "is an HDF5 file, not a GrokPhys trajectory"),
        (spoil_foreign_h5md, "is an H5MD file of another program, not a GrokPhys trajectory"),
        (spoil_missing, "is damaged: it holds no particles/tokens/position/value"),
        (spoil_configuration, "is damaged: "),
        (spoil_directory, "is a directory or a device, not a trajectory file"),
    ],
)
def test_a_file_that_is_not_right_is_named_with_the_reason(stored, spoil, sentence):
    spoil(stored)
    with pytest.raises(FileFormatError) as error:
        physics.load(stored)
    assert str(stored) in str(error.value)
    assert sentence in str(error.value)


def test_a_damaged_chunk_is_found(stored):
    flip(stored)
    found = physics.load(stored)
    for read in (lambda: found.positions, lambda: found.frame(0), lambda: found.run(0)):
        with pytest.raises(FileFormatError, match="is damaged"):
            read()


def test_a_file_that_changed_since_it_was_opened(stored):
    lazy = physics.load(stored)
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


def test_parameters_that_json_does_not_hold(tmp_path):
    with pytest.raises(InputError, match="parameters must hold only values that JSON can store"):
        FileRecorder(tmp_path / "t.h5", Layout(1, 3, 2, "float64", 1), {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []
