"""Files that change, parts that are copies, recorders and locks, each from its documentation."""

import errno
import os
import re
import shutil
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from trajectories import LAYOUT, frames, made

import physics
from physics import FileFormatError, InputError, OutputError, Trajectory
from physics.trajectory import recording
from physics.trajectory.h5md import write_file
from physics.trajectory.header import Header, Layout
from physics.trajectory.locks import claimed, replace_as_a_whole, signals_deferred
from physics.trajectory.log import ARRAY, END, FRAMES, Log, LogWriter
from physics.trajectory.recording import MemoryRecorder, recorder
from physics.trajectory.writer import FileRecorder

# -- stamps: one file told from another -------------------------------------------------------------------


def rewritten(path):
    """Write other bytes of the same size in place, which changes only the time."""
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, ns=(0, 10**18 + 1))


def grown(path):
    with path.open("ab") as file:
        file.write(b"x")
    os.utime(path, ns=(0, 10**18))


def replaced(path):
    """Put a copy with the same size and time in the place of the file."""
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    os.utime(copy, ns=(0, 10**18))
    copy.replace(path)


@pytest.mark.parametrize("change", [rewritten, grown, replaced])
@pytest.mark.parametrize("read", ["positions", "observables", "start", "frame"])
def test_a_file_that_is_not_the_one_that_was_opened_is_not_read_on(path, change, read):
    os.utime(path, ns=(0, 10**18))
    found = Trajectory.open(path)
    reads = {
        "positions": lambda: found.positions,
        "observables": lambda: found.observables["own"],
        "start": lambda: found.start["split"],
        "frame": lambda: found.frame(0),
    }
    change(path)
    with pytest.raises(FileFormatError, match=r"t\.h5 has changed since it was opened; open it again"):
        reads[read]()


def test_a_copy_of_a_log_is_another_log(tmp_path):
    path = tmp_path / "t.h5.partial"
    log = LogWriter(path)
    log.begin(Header(LAYOUT, {}, {}, ("s",)), {"s": np.array([3])})
    log.append(FRAMES, *frames(0, 2))
    found = Trajectory.open(path)
    log.append(FRAMES, *frames(2, 1))
    assert found.positions.shape == (1, 2, 3, 1), "a log that has grown is the same"
    log.close()
    unread = Trajectory.open(path)
    replaced(path)
    for read in (found.refresh, lambda: found.start["s"], lambda: unread.frame(0), unread.refresh):
        with pytest.raises(FileFormatError, match="has changed since it was opened; open it again"):
            read()


@pytest.mark.parametrize("read", ["positions", "observables", "start", "frame", "refresh"])
def test_a_followed_run_is_read_on_from_its_file_when_its_complete_log_is_gone(tmp_path, read):
    partial, path = tmp_path / "t.h5.partial", tmp_path / "t.h5"
    layout = Layout(1, 3, 1, "float64", observables={"o": ("<f8", ())})
    header, start = Header(layout, {}, {}, ("s",)), {"s": np.array([3])}
    log = LogWriter(partial)
    log.begin(header, start)
    log.append(FRAMES, *frames(0, 2), np.array([[4.0], [5.0]]))
    log.append(END)
    log.close()
    found = Trajectory.open(partial)
    observables, started = found.observables, found.start
    assert found.complete
    log = Log(partial)
    write_file(path, header, log.blocks(), frames=2, start=start)
    partial.unlink()
    reads = {
        "positions": lambda: found.positions,
        "observables": lambda: observables["o"],
        "start": lambda: started["s"],
        "frame": lambda: found.frame(1),
        "refresh": found.refresh,
    }
    reads[read]()
    assert found.path == path
    assert found == Trajectory.open(path)


def test_a_log_that_was_cut_since_it_was_opened_is_damaged(tmp_path):
    path = tmp_path / "t.h5.partial"
    log = LogWriter(path)
    log.begin(Header(LAYOUT, {}, {}), {})
    log.append(FRAMES, *frames(0, 4))
    log.close()
    found = Trajectory.open(path)
    os.truncate(path, path.stat().st_size - 1)
    np.testing.assert_array_equal(found.frame(2)[0, :, 0], [6, 7, 8])
    with pytest.raises(FileFormatError, match=r"partial is damaged: it ends before its last recorded frame"):
        found.frame(3)


def test_arrays_beyond_those_announced_are_no_beginning(tmp_path):
    for arrays, begun in ((0, False), (1, True), (2, False)):
        path = tmp_path / f"{arrays}.h5.partial"
        log = LogWriter(path)
        log.begin(Header(LAYOUT, {}, {}, ("s",)), {str(k): np.array([3]) for k in range(arrays)})
        log.close()
        assert Log(path).begun is begun
        assert len(Log(path)._arrays) == arrays
    log = LogWriter(tmp_path / "x.h5.partial")
    log.append(ARRAY, b"")
    log.close()
    with pytest.raises(FileFormatError, match="GPar.* is out of place"):
        Log(tmp_path / "x.h5.partial")


def test_nothing_is_read_behind_the_end_of_a_run(tmp_path):
    path = tmp_path / "t.h5.partial"
    log = LogWriter(path)
    log.begin(Header(LAYOUT, {}, {}), {})
    log.append(FRAMES, *frames(0, 1))
    log.append(END)
    end = log._end
    log.append(FRAMES, *frames(1, 1))
    log.close()
    found = Log(path)
    assert (found.frames, found.complete, found.end, found.refresh()) == (1, True, end, 0)


def test_a_run_that_is_followed_becomes_its_file_with_the_frames_that_are_new(tmp_path):
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    with FileRecorder(path, LAYOUT, {}) as record:
        record.append(0, 0.0, np.zeros((1, 3, 1)))
        record.flush()
        found = Trajectory.open(partial)
        assert (found.frames, found.complete, found.identity) == (1, False, record.identity)
        for step in (3, 4):
            record.append(step, step / 2, np.full((1, 3, 1), step))
    assert found.refresh() == 2
    assert (found.path, found.complete, found.steps.tolist()) == (path, True, [0, 3, 4])
    assert found.positions[0, :, 2, 0].tolist() == [0, 3, 4]
    assert found.refresh() == 0


def test_runs_and_frames_are_taken_from_what_was_read_before(path):
    found = Trajectory.open(path)
    whole = made()
    for part in (slice(0, 2), slice(2, 3)):
        np.testing.assert_array_equal(found._read(part, slice(1, 3)), whole.positions[part, 1:3])
    assert found._cache is None
    _ = found.positions
    path.unlink()
    for part in (slice(0, 2), slice(2, 3)):
        np.testing.assert_array_equal(found._read(part, slice(1, 3)), whole.positions[part, 1:3])


# -- parts and copies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("take", [lambda one: one.run(1), lambda one: one[1:], lambda one: one[[0, 2]]])
def test_a_part_shares_nothing_with_the_whole(take):
    whole = made(made_with={"numpy": "2"})
    part = take(whole)
    for values in (
        part.positions, part.steps, part.times, *part.clock("own"), *part.observables.values(),
        part.start["split"],
    ):  # fmt: skip
        values[...] = 7
    part.parameters["more"] = part.made_with["more"] = 1
    part.complete = False
    assert whole == made()
    assert (whole.made_with, whole.complete) == ({"numpy": "2"}, True)


def test_a_trajectory_keeps_clocks_of_its_own():
    times, own = np.array([0.0, 0.2, 0.5, 0.6]), np.array([0.1, 0.4])
    found = made(times=times, clocks={"own": ([1, 4], own)})
    times[:] = own[:] = 9
    assert found == made()


@pytest.mark.parametrize("parameters", [{}, {"first_run": 3}, {"run_numbers": [5, 9, 2]}])
def test_runs_keep_their_numbers_in_every_part(parameters):
    whole = made(parameters=parameters)
    numbers = whole.run_numbers
    assert numbers.dtype == np.int64
    for key in (slice(1, None), slice(0, 2), [2, 0], [1], [0, 2]):
        assert whole[key].run_numbers.tolist() == numbers[key].tolist()
        assert whole[key][-1].run_numbers.tolist() == [numbers[key][-1]]
    assert [one.run_numbers.tolist() for one in whole] == [[number] for number in numbers]
    assert whole.parameters == parameters


def test_a_trajectory_of_many_blocks_is_saved_as_one(tmp_path, monkeypatch):
    whole, blocks = made(complete=False), Trajectory.blocks
    monkeypatch.setattr(Trajectory, "blocks", lambda self: blocks(self, megabytes=1.5e-4))
    assert len(list(whole.blocks())) == 4
    whole.save(tmp_path / "t.h5")
    found = Trajectory.open(tmp_path / "t.h5")
    found.save(tmp_path / "u.h5")
    for one in (found, physics.load(tmp_path / "u.h5")):
        np.testing.assert_array_equal(one.positions, whole.positions)
        assert (one.steps.tolist(), one.times.tolist()) == ([0, 2, 5, 6], [0, 0.2, 0.5, 0.6])
        np.testing.assert_array_equal(one.observables["loss"], whole.observables["loss"])
        np.testing.assert_array_equal(one.observables["own"], whole.observables["own"])


# -- recorders, locks, signals ----------------------------------------------------------------------------


def test_only_errors_carry_what_was_recorded_in_memory():
    for error, carried in ((ValueError, True), (KeyboardInterrupt, False)):
        with pytest.raises(error) as raised, MemoryRecorder(Layout(1, 3, 1, "float64", 2), {}) as record:
            record.append(0, 0.0, np.ones((1, 3, 1)))
            raise error
        assert hasattr(raised.value, "recorded") is carried
        assert record.complete is False
        assert (record.frames, record.last_step) == (1, 0)


def test_a_frame_after_the_end_is_refused(tmp_path):
    with FileRecorder(tmp_path / "a.h5", Layout(1, 3, 1, "float64"), {}) as record:
        record.append(0, 0.0, np.ones((1, 3, 1)))
    with pytest.raises(OutputError, match=r"cannot add a frame to .*a.h5: its recording has ended"):
        record.append(1, 1.0, np.ones((1, 3, 1)))
    assert physics.load(tmp_path / "a.h5").steps.tolist() == [0]


def test_a_recorder_is_one_of_memory_without_a_file_whatever_is_said_of_files(tmp_path):
    layout = Layout(1, 3, 1, "float64", 1)
    with recorder(None, layout, {"a": 1}, start={"s": np.array([2])}, resume=False, overwrite=True) as one:
        assert (type(one).__name__, one.where) == (
            "MemoryRecorder",
            " in memory (attribute `recorded` of this error)",
        )
        one.flush()
        one.append(4, 0.5, np.ones((1, 3, 1)))
    found = one.result()
    assert (found.parameters, found.start["s"].tolist(), found.complete) == ({"a": 1}, [2], True)
    path = tmp_path / "t.h5"
    with recorder(path, layout, {"a": 1}, start={"s": np.array([2])}, packages=("physics", "nets")) as one:
        assert one.where == f" in {path}.partial"
        assert (one.last_step, one.frames) == (-1, 0)
        one.append(4, 0.5, np.ones((1, 3, 1)))
        assert (one.last_step, one.frames) == (4, 1)
    assert one.result().start["s"].tolist() == [2]
    assert "torch" in one.result().made_with
    with pytest.raises(InputError, match="must name the file of the unfinished run to resume it, got None"):
        with recorder(None, layout, {}, resume=True):
            pass
    with pytest.raises(OutputError, match=r"t\.h5 exists"):
        with recorder(path, layout, {}, overwrite=False):
            pass


def test_memory_is_asked_for_the_positions_of_all_frames(monkeypatch):
    asked = []
    monkeypatch.setattr(recording, "require_memory", lambda *arguments: asked.append(arguments))
    MemoryRecorder(Layout(2, 3, 5, "float32", 7, {"o": ("<f8", (11,))}), {})
    ((what, needed, advice),) = asked
    assert (what, needed) == ("7 frames of 2 runs", 7 * 2 * 3 * 5 * 4)
    assert advice == "record less often, or give out (--out), so that they are streamed to a file"


def test_a_run_to_resume_that_never_began_starts_again_with_a_warning(tmp_path):
    (tmp_path / "t.h5.partial").write_bytes(b"GP")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = physics.simulate(steps=1, out=tmp_path / "t.h5", resume=True)
    assert found.complete
    (warning,) = caught
    assert (warning.category, Path(warning.filename).name) == (RuntimeWarning, "simulate.py")
    assert str(warning.message).endswith("t.h5.partial was killed before it began; the run starts again")


def test_a_lock_that_cannot_be_opened_is_taken_for_one_that_is_held(tmp_path):
    (tmp_path / "t.h5.lock").mkdir()
    assert claimed(tmp_path / "t.h5")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_that_are_ignored_are_not_deferred(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with signals_deferred() as waiting:
            assert signal.getsignal(number) is signal.SIG_IGN
            signal.raise_signal(number)
            assert waiting == []
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (RuntimeError("the archive is full"), "the archive is full"),
        (OSError("no number"), "no number"),
        (KeyboardInterrupt(), None),
    ],
)
def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path, error, said):
    path = tmp_path / "kept.bin"
    replace_as_a_whole(path, lambda file: file.write(b"old"))

    def fails(file):
        file.write(b"half")
        assert re.fullmatch(r"kept\.bin\.[0-9a-f]{16}\.partial", Path(file.name).name)
        raise error

    with pytest.raises(OutputError if said else KeyboardInterrupt) as raised:
        replace_as_a_whole(path, fails)
    assert said is None or str(raised.value) == f"cannot write {path}: {said}"
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("kept.bin", b"old")]


# -- what a recorder takes up and takes over --------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({"s": np.zeros((2, 1))}, r"start\['s'\] must have the shape \(runs, ...\) with 1 runs"),
        ({"run_1": np.zeros(1)}, "names such as run_2 and axis_0_3 are reserved"),
        ({"a/b": np.zeros(1)}, "must be text without '/'"),
    ],
)
def test_a_run_does_not_begin_with_what_a_file_cannot_hold(tmp_path, start, said):
    with pytest.raises(InputError, match=said):
        FileRecorder(tmp_path / "t.h5", LAYOUT, {}, start=start)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("resume", [None, False])
def test_a_recorder_keeps_the_configuration_that_it_was_given(tmp_path, resume):
    parameters, path = {"seed": 1}, tmp_path / "t.h5"
    with FileRecorder(path, LAYOUT, parameters, resume=resume) as record:
        parameters["seed"] = 2
        record.append(0, 0.0, [[[1], [2], [3]]])
    found = record.result()
    assert (found.parameters, found.identity) == ({"seed": 1}, record.identity)
    assert found.final.tolist() == [[[1], [2], [3]]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", None), (b"abc", None), (b"GPhd", None), (b"abcd", "or is not an unfinished run")],
)
def test_what_is_too_short_to_be_a_log_is_begun_again(tmp_path, content, sentence):
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    partial.write_bytes(content)
    if sentence:
        with pytest.raises(InputError, match=rf"{sentence}; pass overwrite \(--overwrite\) to start again"):
            FileRecorder(path, LAYOUT, {}, resume=True)
        assert partial.read_bytes() == content
        return
    with pytest.warns(RuntimeWarning, match="was killed before it began; the run starts again"):
        record = FileRecorder(path, LAYOUT, {}, resume=True)
    with record:
        record.append(0, 0.0, np.ones((1, 3, 1)))
    assert record.result().frames == 1


def test_who_overwrites_and_resumes_begins_again_unless_there_is_an_unfinished_run(tmp_path):
    path = tmp_path / "t.h5"
    for begun, kept in ((True, 1), (False, 0)):
        made().save(path, overwrite=True)
        if begun:
            with pytest.raises(KeyboardInterrupt):
                with FileRecorder(path, LAYOUT, {}, overwrite=True) as record:
                    record.append(0, 0.0, np.ones((1, 3, 1)))
                    raise KeyboardInterrupt
        with FileRecorder(path, LAYOUT, {}, overwrite=True, resume=True) as record:
            assert (record.frames, record.complete) == (kept, False)
            record.append(5, 0.5, np.ones((1, 3, 1)))
        assert Trajectory.open(path).steps.tolist() == [0, 5][1 - kept :]
        assert [one.name for one in tmp_path.iterdir()] == ["t.h5"]
