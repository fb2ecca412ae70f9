"""What trajectories, their tables, their files and their headers say where an option is rarely met."""

import dataclasses
import functools

import h5py
import numpy as np
import pytest

import physics
from physics import FileFormatError, InputError, OutputError, Trajectory
from physics.trajectory.h5md import chunk_shape
from physics.trajectory.header import Header, Layout, measured_types
from physics.trajectory.locks import claim
from physics.trajectory.provenance import fields, plain
from physics.trajectory.recording import MemoryRecorder, require_memory
from physics.trajectory.target import Target
from physics.trajectory.writer import FileRecorder

OWN = (np.array([1, 4]), np.array([0.5, 2.0]))


def made(**changes):
    arguments = {
        "positions": np.arange(36.0).reshape(2, 3, 3, 2),
        "steps": [0, 2, 5],
        "times": [0.0, 0.2, 0.5],
        "observables": {
            "table": np.arange(48).reshape(2, 2, 4, 3),
            "rate": np.arange(4.0).reshape(2, 2),
            "wave": np.array([[1j, np.nan, 2 + 1j], [0, complex(0, np.nan), 1]]),
        },
        "clocks": {"table": OWN, "rate": OWN},
        "parameters": {"first_run": 3},
    }
    return Trajectory(**(arguments | changes))


def said(call):
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)


# -- equality, tables, text -------------------------------------------------------------------------------


def test_trajectories_are_equal_with_nan_and_differ_in_the_times_of_any_clock():
    assert made() == made()
    for changed in ({"table": (OWN[0], OWN[1] + 1), "rate": OWN}, {"table": OWN, "rate": (OWN[0], None)}):
        assert made(clocks=changed) != made()
        assert made() != made(clocks=changed)
    waves = made().observables["wave"].copy()
    waves[0, 2] = 2 - 1j
    assert made(observables=made().observables | {"wave": waves}) != made()


def test_a_dataset_names_its_axes_after_the_observable():
    pytest.importorskip("xarray")
    data = made().to_xarray()
    assert data["positions"].dims == ("run", "step", "token", "axis")
    assert data["table"].dims == ("run", "table_step", "table_0", "table_1")
    assert data["wave"].dims == ("run", "step")
    found = {name: data[name].values.tolist() for name in ("run", "step", "time", "token", "table_step")}
    assert found == {
        "run": [3, 4], "step": [0, 2, 5], "time": [0.0, 0.2, 0.5], "token": [0, 1, 2], "table_step": [1, 4],
    }  # fmt: skip


def test_a_table_has_a_column_for_each_component_and_the_clock_of_its_observables():
    pytest.importorskip("pandas")
    found = made().to_dataframe("rate", "table")
    assert list(found) == ["time", "rate", *(f"table_{i}_{j}" for i in range(4) for j in range(3))]
    assert found.index.tolist() == [(3, 1), (3, 4), (4, 1), (4, 4)]
    assert found["time"].tolist() == [0.5, 2.0, 0.5, 2.0]
    np.testing.assert_array_equal(found.iloc[:, 2:], made().observables["table"].reshape(4, 12))
    tokens = made().to_dataframe()
    assert tokens["time"].tolist() == [*([0.0] * 3), *([0.2] * 3), *([0.5] * 3)] * 2
    bare = made(observables={}, clocks={})
    assert said(lambda: bare.to_dataframe("a")) == (
        "observables of a table must be recorded in the trajectory (none), got 'a'"
    )
    assert said(lambda: made().to_dataframe("wave", "rate")).endswith("got 'rate' at other steps")
    other = made(clocks={"table": OWN, "rate": (OWN[0] + 1, OWN[1])})
    assert said(lambda: other.to_dataframe("table", "rate")).endswith("got 'rate' at other steps")


def test_what_was_never_measured_has_no_range_of_steps():
    never = np.empty(0, int)
    found = made(observables={"o": np.zeros((2, 0, 4), np.int8)}, clocks={"o": (never, None)}, complete=False)
    assert repr(found).splitlines() == [
        "<Trajectory: 2 runs × 3 frames × 3 tokens × 2 dimensions, float64, unknown origin, incomplete>",
        "  o: (2, 0, 4) int8",
    ]
    assert found.clock("o")[1].dtype == np.float64


# -- what a trajectory takes ------------------------------------------------------------------------------


def test_a_clock_of_what_was_not_measured_is_refused():
    assert said(lambda: made(clocks={"table": OWN, "rate": OWN, "tables": OWN})) == (
        "clocks must belong to observables ('table', 'rate', 'wave'), got one of 'tables'"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": [[0, 2, 5]]}, "steps must be whole numbers of shape (frames,), got int64 (1, 3)"),
        ({"steps": [True, False, True]}, "steps must be whole numbers of shape (frames,), got bool (3,)"),
        ({"steps": [0, 5, 3, 9]}, "steps and times of steps must have 3 entries, got 4 and 3"),
        ({"times": [[0.0], [1.0], [2.0]]}, "steps and times of steps must have 3 entries, got 3 and 3"),
        ({"steps": [0, 5, 3]}, "steps must increase, got 5 followed by 3"),
        ({"steps": [5, 5, 3]}, "steps must increase, got 5 followed by 5"),
        (
            {"times": [0, np.inf, 1]},
            "times of steps must be finite, got 1 NaN or infinite among 3 values",
        ),
        (
            {"clocks": {"rate": ([1, 4], [0.0, np.nan])}},
            "times of clocks['rate'] must be finite, got 1 NaN or infinite among 2 values",
        ),
        (
            {"clocks": {"rate": ([1, 4], [0.0])}},
            "clocks['rate'] and times of clocks['rate'] must have 2 entries, got 2 and 1",
        ),
        ({"clocks": {"rate": ([4, 1], None)}}, "clocks['rate'] must increase, got 4 followed by 1"),
        (
            {"clocks": {"rate": OWN}},
            "observables['table'] must have the shape (runs, frames, ...) = (2, 3) + ..., got (2, 2, 4, 3)",
        ),
        (
            {"clocks": {"table": OWN, "rate": OWN, "wave": OWN}},
            "observables['wave'] must have the shape (runs, frames, ...) = (2, 2) + ..., got (2, 3)",
        ),
        ({"clocks": {"rate": (OWN,)}}, f"clocks['rate'] must be a pair of steps and times, got {(OWN,)}"),
        ({"clocks": {"rate": 5}}, "clocks['rate'] must be a pair of steps and times, got 5"),
        *(
            ({name: wrong}, f"{name} must be a mapping, such as a dict, got {wrong}")
            for name in ("observables", "clocks", "parameters", "start", "made_with")
            for wrong in (5, [1])
        ),
        ({"parameters": {"model": 3}}, "parameters['model'] must be a dict, got 3"),
        ({"parameters": {"first_run": 1.0}}, "parameters['first_run'] must be a whole number, got 1.0"),
        (
            {"parameters": {"run_numbers": [1, 2.0]}},
            "parameters['run_numbers'] must be a list of 2 whole numbers, one for each run, got [1, 2.0]",
        ),
        (
            {"parameters": {"run_numbers": (1, 2)}},
            "parameters['run_numbers'] must be a list of 2 whole numbers, one for each run, got (1, 2)",
        ),
        (
            {"parameters": {"per_run": ["a", "b"], "a": [1, 2], "b": (1, 2)}},
            "parameters['b'] must be a list of 2 items, one for each run, got (1, 2)",
        ),
        (
            {"parameters": {"per_run": [3], 3: [1, 2]}},
            "parameters[3] must be a list of 2 items, one for each run, got [1, 2]",
        ),
        ({"observables": {"o": np.zeros((2, 3), np.clongdouble)}, "clocks": {}}, None),
        ({"observables": {"\udfff": np.zeros((2, 3))}, "clocks": {}}, None),
        ({"observables": {"a\ud800": np.zeros((2, 3))}, "clocks": {}}, None),
    ],
)  # fmt: skip
def test_what_a_trajectory_refuses(changes, sentence):
    found = said(lambda: made(**changes))
    assert found.startswith(("observables['o'] must be numbers", "names of observables")) or found == sentence


def test_what_a_trajectory_takes_that_looks_odd():
    names = {name: np.zeros((2, 3)) for name in (".a", "a.", "...", "\ue000", "\ud7ff", " ")}
    odd = {"per_run": ("a",), "a": [{}, None], "run_numbers": [7, 3], "f": object()}
    found = made(observables=names, clocks={}, parameters=odd, times=None)
    assert (set(found.observables), found.run_numbers.tolist()) == (set(names), [7, 3])
    assert (found.times.dtype, found.times.tolist()) == (np.float64, [0, 2, 5])
    with pytest.raises(UnicodeEncodeError):
        made(parameters={"a": "\ud800"})


@pytest.mark.parametrize(
    ("index", "frame"), [(0, 0), (2, 2), (-1, 2), (-3, 0), (np.int8(1), 1), (np.int64(-2), 1)]
)
def test_frames_are_counted_from_either_end(index, frame):
    np.testing.assert_array_equal(made().frame(index), made().positions[:, frame])
    assert made().run(index % 2).run_numbers.tolist() == [3 + index % 2]


@pytest.mark.parametrize("index", [True, 1.0, "1", None])
def test_a_frame_has_a_whole_number(index):
    sentence = f"frame must be a whole number of at least -3, got {index!r}"
    assert said(lambda: made().frame(index)) == sentence


@pytest.mark.parametrize("megabytes", ["a", np.inf, np.nan, -1])
def test_a_block_has_a_finite_size(megabytes):
    sentence = f"megabytes must be a finite number of at least 0, got {megabytes!r}"
    assert said(lambda: next(made().blocks(megabytes))) == sentence
    assert [len(positions[0]) for _, positions in made().blocks(1e308)] == [3]


# -- files ------------------------------------------------------------------------------------------------


def test_what_names_no_file_is_refused():
    for call in (physics.load, Trajectory.open, made().save):
        assert said(lambda call=call: call(5)) == "path must be the name of a file, got 5"


def test_a_series_of_nothing_is_not_stored(tmp_path):
    clocks, empty = {"rate": ([1, 4], None)}, {"rate": np.zeros((2, 2, 0))}
    trajectory = Trajectory(np.zeros((2, 3, 3, 2)), [0, 1, 2], observables=empty, clocks=clocks)
    sentence = "rate must not be empty to be stored, got the shape (0,) of one frame"
    assert said(lambda: trajectory.save(tmp_path / "t.h5")) == sentence
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def stored(tmp_path):
    made(start={"a": np.arange(6).reshape(2, 3), "b": np.ones((2, 3, 2))}).save(tmp_path / "t.h5")
    return tmp_path / "t.h5"


def test_arrays_of_a_file_are_read_once_and_by_their_names(stored):
    found = Trajectory.open(stored)
    assert (list(found.start), len(found.observables), "size" in found.observables) == (["a", "b"], 3, False)
    for arrays, name in ((found.observables, "rate"), (found.start, "a")):
        assert arrays[name] is arrays[name]
        with pytest.raises(KeyError, match="^'size'$"):
            arrays["size"]
    assert found.positions is found.positions
    assert found.refresh() == 0
    whole = made()
    stored.unlink()
    np.testing.assert_array_equal(found.frame(1), whole.positions[:, 1])
    np.testing.assert_array_equal(found.observables["rate"], whole.observables["rate"])
    with pytest.raises(FileNotFoundError, match="there is no file"):
        found.observables["wave"]


def test_axes_of_what_a_run_began_with_share_their_labels(stored):
    with h5py.File(stored) as file:
        group = file["parameters/start"]
        names = {name: [axis[0].name.rpartition("/")[2] for axis in group[name].dims] for name in ("a", "b")}
        assert names == {"a": ["run_2", "axis_0_3"], "b": ["run_2", "axis_0_3", "axis_1_2"]}
        assert group["axis_0_3"][:].tolist() == [0, 1, 2]
        assert file["parameters"].attrs["seed"] == b"null"


@pytest.mark.parametrize(
    ("shape", "itemsize", "chunk"),
    [
        ((0,), 8, (2**16,)),  # half a megabyte, of any number of entries
        ((7,), 8, (7,)),
        ((10**6,), 8, (2**16,)),
        ((0, 1000), 4, (131, 1000)),
        ((100, 1000), 4, (100, 1000)),
        ((0, 2**17), 8, (1, 2**17)),  # a megabyte: as a whole
        ((0, 2**17 + 1), 8, (1, 2**16 + 1)),
        ((5, 3, 2**17), 8, (1, 1, 2**17)),
        ((5, 1, 2**18, 3), 8, (1, 1, 2**15, 3)),
        ((0, 0, 4), 8, (2**14, 1, 4)),
    ],
)
def test_a_chunk_is_as_many_entries_as_fit_into_half_a_megabyte(shape, itemsize, chunk):
    assert chunk_shape(shape, itemsize) == chunk
    assert itemsize * np.prod(chunk) <= 2**20


def test_types_of_what_is_measured_are_those_of_one_run():
    found = measured_types({"a": np.zeros(4), "b": np.zeros((4, 2, 3), np.float32), "c": [True, False]})
    assert found == {"a": ("<f8", ()), "b": ("<f4", (2, 3)), "c": ("|b1", ())}


def test_a_header_comes_back_from_its_text_as_it_was(tmp_path):
    layout = Layout(2, 3, 1, "float32", 7, {"o": ("<f8", (2, 5)), "b": ("|b1", ())})
    header = Header(layout, {"seed": 1}, {"numpy": "2"}, ("a", "b"))
    text = header.to_json()
    assert Header.from_json(tmp_path, text) == header
    assert Header(layout, {}, {}).identity != header.identity
    for size in (-1, 1.0, "3"):
        with pytest.raises((ValueError, TypeError)):
            Header.from_json(tmp_path, text | {"layout": [2, 3, 1, "float32", size]})
    for wrong in ([0, 3, 1, "float32", 7], [2, 3, 0, "float32", 7], [2, 3, 1, "float16", 7]):
        with pytest.raises(FileFormatError, match="its layout is"):
            Header.from_json(tmp_path, text | {"layout": wrong})


# -- who records what -------------------------------------------------------------------------------------


def test_all_that_differs_of_a_run_to_resume_is_named_and_lists_are_like_tuples(tmp_path):
    layout, path = Layout(1, 3, 1, "float64"), tmp_path / "t.h5"
    with pytest.raises(KeyboardInterrupt), FileRecorder(path, layout, {"b": 2, "a": (1, 2)}) as recorder:
        recorder.append(0, 0.0, np.zeros((1, 3, 1)))
        raise KeyboardInterrupt
    sentence = said(lambda: FileRecorder(path, layout, {"c": 4, "b": 3}, resume=True))
    assert sentence.endswith(
        "it has another configuration (a: [1, 2] there, None here; b: 2 there, 3 here; c: None there, 4 here)"
    )
    with FileRecorder(path, layout, {"a": [1, 2], "b": 2}, resume=True) as recorder:
        assert (recorder.frames, recorder.last_step, recorder.complete) == (1, 0, False)


def test_a_recorder_in_memory_gives_back_what_it_has_so_far():
    layout = Layout(2, 3, 1, "float32", 5, {"b": ("<i8", (2,)), "a": ("<f8", ())})
    start = {"s": np.arange(2)}
    with MemoryRecorder(layout, {"seed": 4}, start) as recorder:
        for step in (0, 3, 4):
            frame = np.full((2, 3, 1), step)
            recorder.append(step, step / 2, frame, {"a": np.full(2, 10 * step), "b": np.full((2, 2), -step)})
        assert [recorder.frame(k)[1, 2, 0] for k in (0, 1, -1)] == [0, 3, 4]
        assert not recorder.result().complete
    found = recorder.result()
    assert (found.steps.tolist(), found.times.tolist(), found.complete) == ([0, 3, 4], [0, 1.5, 2], True)
    assert (found.dtype, found.parameters, found.start["s"].tolist()) == (np.float32, {"seed": 4}, [0, 1])
    assert found.observables["a"].tolist() == [[0, 30, 40]] * 2
    assert found.observables["b"][1].tolist() == [[0, 0], [-3, -3], [-4, -4]]


@pytest.mark.parametrize("error", [AttributeError, OSError, ValueError])
def test_where_nobody_knows_the_memory_nothing_is_refused(monkeypatch, error):
    def unknown(name):
        raise error

    monkeypatch.setattr("os.sysconf", unknown)
    require_memory("all", 1e30, "take less")
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 2**20, "SC_PHYS_PAGES": 2**11}.get)
    assert said(lambda: require_memory("all", 1.5 * 2**32, "take less")) == (
        "all need 6.0 GiB, more than the 2.0 GiB that this machine has; take less"
    )


def test_a_file_cannot_be_written_into_a_file_or_to_nowhere(tmp_path):
    (tmp_path / "file").touch()
    for path, what in (
        (tmp_path / "file" / "t.h5", f"{tmp_path}/file is not a directory"),
        (tmp_path / "no" / "t.h5", f"the directory {tmp_path}/no does not exist"),
    ):
        with pytest.raises(OutputError, match=f"cannot write {path}: {what}$"):
            Target(path, overwrite=True)
        with pytest.raises(OutputError, match=rf"cannot write {path}\.lock: No such file or directory$"):
            with claim(path):
                pass
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


# -- how it was made --------------------------------------------------------------------------------------


@dataclasses.dataclass
class Inner:
    rates: tuple = (np.float32(0.5), 1)


@dataclasses.dataclass
class Outer:
    inner: Inner
    law: object
    kind: type = Inner


def test_functions_and_dataclasses_are_described_wherever_they_stand():
    described = fields(Outer(Inner(), functools.partial(int)))
    assert described["inner"] == {"rates": [0.5, 1]}
    assert described["law"] == {"function": "partial", "source": None}
    assert (described["kind"]["function"], described["kind"]["source"][:12]) == ("Inner", "@dataclasses")
    assert plain({"a": [Inner()], "b": (np.bool_(True), {"c": Inner((np.arange(2),))}), "d": Inner}) == {
        "a": [{"rates": [0.5, 1]}], "b": [True, {"c": {"rates": [[0, 1]]}}], "d": Inner,
    }  # fmt: skip
    law = fields(Outer(Inner(), test_a_frame_has_a_whole_number))["law"]
    assert law["function"] == "test_a_frame_has_a_whole_number"
    assert "def test_a_frame_has_a_whole_number(index):" in law["source"]


def test_there_is_one_example():
    assert said(lambda: physics.example("Ding")) == "name must be one of 'ding', got 'Ding'"
