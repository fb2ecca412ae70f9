"""What a log holds byte by byte, who may write a file, which signals wait, and whose children are drawn."""

import io
import json
import signal
import struct
import threading
import zlib

import h5py
import numpy as np
import pytest

from physics import InputError, OutputError, Trajectory
from physics.checks import choice, flag, number, whole_number
from physics.errors import FileFormatError, InUseError
from physics.hooks import check_hooks, goes_on, shown
from physics.seeds import (
    children,
    describe_seed,
    hear_seeds,
    numbers_of_runs,
    other_seeds,
    parent_seed,
    run_seeds,
)
from physics.trajectory.header import Header, Layout
from physics.trajectory.locks import claim, signals_deferred
from physics.trajectory.log import END, FRAMES, Log, LogWriter
from physics.trajectory.recording import MemoryRecorder
from physics.trajectory.target import Target

LAYOUT = Layout(2, 3, 1, "float64", 0, {"o": ("<f8", (2,))})


def records(content):
    """Kind and payload of each record, read by the documented format alone."""
    found, at = [], 0
    while at < len(content):
        kind, checksum, length, own = struct.unpack_from("<4sIQI", content, at)
        assert own == zlib.crc32(content[at : at + 16])
        payload = content[at + 20 : at + 20 + length]
        assert checksum == zlib.crc32(payload)
        found.append((kind, payload))
        at += 20 + length
    return found


def columns(first, count):
    """Columns of a block of frames: steps, times, positions and an observable."""
    steps = np.arange(first, first + count, dtype="<i8")
    return [
        steps,
        steps / 4,
        np.arange(6.0 * count).reshape(count, 2, 3, 1) + 100 * first,
        np.arange(4.0 * count).reshape(count, 2, 2) - 100 * first,
    ]


@pytest.fixture
def written(tmp_path):
    """A log of blocks of three, one and four frames."""
    path = tmp_path / "t.h5.partial"
    writer = LogWriter(path)
    header = Header(LAYOUT, {"seed": 1}, {"python": "3"}, ("a", "b"))
    writer.begin(header, {"a": np.arange(4).reshape(2, 2), "b": np.ones((2, 1))})
    blocks = [columns(0, 3), columns(3, 1), columns(4, 4)]
    for block in blocks:
        writer.append(FRAMES, *block)
    writer.sync()
    writer.close()
    return path, header, [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def test_a_log_is_its_header_its_arrays_and_its_blocks_column_by_column(written):
    path, header, whole = written
    (kind, text), *arrays, first, _, _ = records(path.read_bytes())
    assert kind == b"GPhd"
    assert json.loads(text) == json.loads(json.dumps(header.to_json()))
    assert [kind for kind, _ in arrays] == [b"GPar", b"GPar"]
    np.testing.assert_array_equal(np.lib.format.read_array(io.BytesIO(arrays[0][1])), [[0, 1], [2, 3]])
    assert first == (b"GPfr", b"".join(part.tobytes() for part in columns(0, 3)))
    log = Log(path)
    assert (log.frames, log.begun, log.complete) == (8, True, False)
    assert log.end == path.stat().st_size
    np.testing.assert_array_equal(log.steps, whole[0])
    np.testing.assert_array_equal(log.times, whole[1])
    for column, values in enumerate(whole):
        for part in (range(8), range(2, 5), range(0, 8, 3), range(7, 0, -2), range(3, 3)):
            np.testing.assert_array_equal(log.read(column, part), values[list(part)])
    for n, values in enumerate(zip(*log.blocks(), strict=True)):
        np.testing.assert_array_equal(np.concatenate(values), whole[n])
    assert list(log.start()) == ["a", "b"]


@pytest.mark.parametrize(("step", "kept"), [(-1, 0), (1, 0), (2, 3), (3, 4), (6, 4), (7, 8), (99, 8)])
def test_what_is_forgotten_ends_with_a_whole_block(written, step, kept):
    path, _, whole = written
    end = LogWriter(path, Log(path).end)
    end.append(END)
    end.close()
    log = Log(path)
    assert log.complete
    log.forget_after(step)
    assert (log.frames, log.complete) == (kept, False)
    writer = LogWriter(path, log.end)
    writer.append(FRAMES, *columns(20, 2))
    writer.close()
    again = Log(path)
    np.testing.assert_array_equal(again.steps, [*whole[0][:kept], 20, 21])
    np.testing.assert_array_equal(again.read(2, range(kept)), whole[2][:kept])
    assert log.refresh() == 2
    assert log.frames == kept + 2


def test_a_writer_takes_back_what_it_could_not_write(written, monkeypatch):
    path, _, _ = written
    before = path.read_bytes()
    writer = LogWriter(path, len(before))
    whole = writer._file

    class Full:
        def write(self, view):
            if self.room <= 0:
                raise OSError(28, "No space left on device")
            taken = whole.write(view[: min(self.room, 7)])
            self.room -= taken
            return taken

        def __getattr__(self, name):
            return getattr(whole, name)

    writer._file = Full()
    writer._file.room = 50
    with pytest.raises(OSError, match="No space left"):
        writer.append(FRAMES, *columns(8, 2))
    assert path.read_bytes() == before
    writer._file.room = 10**6
    writer.append(FRAMES, *columns(8, 2))
    assert Log(path).frames == 10, "written in pieces of seven bytes"
    whole.close()


def broken(columns, **changed):
    """Columns of a block of two frames with some of them changed."""
    names = ("steps", "times", "positions", "o")
    return [np.asarray(changed.get(name, part)) for name, part in zip(names, columns, strict=True)]


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([columns(4, 2), columns(4, 2)], "its steps do not increase"),
        ([columns(4, 2), columns(5, 2)], "its steps do not increase"),
        ([broken(columns(0, 2), steps=np.array([1, 1]))], "its steps do not increase"),
        ([broken(columns(0, 2), times=np.array([0.0, np.nan]))], "its times are not finite"),
        ([broken(columns(0, 2), o=np.zeros(7))], "does not hold a whole number of frames"),
        ([[np.zeros(0)]], "a block holds no frames"),
    ],
)
def test_a_log_whose_frames_contradict_each_other_is_refused(tmp_path, blocks, said):
    for together in (True, False):
        path = tmp_path / f"{together}.h5.partial"
        writer = LogWriter(path)
        writer.begin(Header(LAYOUT, {}, {}), {})
        log = Log(path)
        with pytest.raises(FileFormatError, match=said):
            for block in blocks:
                writer.append(FRAMES, *block)
                if not together:
                    log.refresh()
            Log(path)
        writer.close()


@pytest.mark.parametrize("kinds", [(FRAMES,), (END,), (b"GPar",), (b"GPhd", b"GPhd"), (b"GPhd", b"none")])
def test_records_come_in_their_order(tmp_path, kinds):
    path = tmp_path / "t.h5.partial"
    writer = LogWriter(path)
    text = json.dumps(Header(LAYOUT, {}, {}).to_json()).encode()
    for kind in kinds:
        writer.append(kind, text)
    writer.close()
    with pytest.raises(FileFormatError, match="is out of place"):
        Log(path)


def test_a_run_that_does_not_fit_into_memory_is_refused(monkeypatch):
    pages = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 10 * 2 * 3 * 1 * 8}
    monkeypatch.setattr("os.sysconf", pages.get)
    whole = Layout(2, 3, 1, "float64", 10, {})
    assert MemoryRecorder(whole, {}).frames == 0
    pages["SC_PHYS_PAGES"] -= 1
    with pytest.raises(InputError, match="10 frames of 2 runs need 0.0 GiB"):
        MemoryRecorder(whole, {})


def test_a_run_that_fails_in_memory_hands_over_what_it_recorded():
    recorder = MemoryRecorder(Layout(2, 3, 1, "float64", 10, {}), {"seed": 1})
    with pytest.raises(ZeroDivisionError) as failed, recorder:
        for step in (0, 4):
            recorder.append(step, step / 2, np.full((2, 3, 1), float(step)))
        raise ZeroDivisionError
    found = failed.value.recorded
    assert (found.steps.tolist(), found.times.tolist(), found.complete) == ([0, 4], [0.0, 2.0], False)
    assert found.positions[1, 1, 2, 0] == 4.0
    assert (recorder.last_step, recorder.frame(-1)[0, 0, 0]) == (4, 4.0)


def test_every_array_of_a_file_is_compressed_and_has_a_checksum(tmp_path):
    path = tmp_path / "t.h5"
    Trajectory(np.zeros((2, 4, 3, 1)), np.arange(4), observables={"o": np.ones((2, 4, 2))}).save(path)
    with h5py.File(path) as file:
        for name in ("particles/tokens/position/value", "observables/o/value"):
            one = file[name]
            assert (one.compression, one.shuffle, one.fletcher32) == ("gzip", True, True), name


# -- who may write ------------------------------------------------------------------------------------------


def test_a_target_is_refused_before_anything_is_touched(tmp_path):
    path = tmp_path / "t.h5"
    for given, said in (
        (tmp_path, "it is a directory"),
        (tmp_path / "no" / "t.h5", "the directory .*no does not exist"),
    ):
        with pytest.raises(OutputError, match=said):
            Target(given, overwrite=True)
    first = Target(path, overwrite=False)
    with pytest.raises(InUseError, match="is being written by another process"):
        Target(path, overwrite=True)
    first.close()
    (tmp_path / "t.h5.partial").touch()
    with pytest.raises(OutputError, match=r"unfinished run; pass overwrite \(--overwrite\)"):
        Target(path, overwrite=False)
    with pytest.raises(OutputError, match=r"pass resume \(--resume\) to continue it, or overwrite"):
        Target(path, overwrite=False, resume=False)
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match=r"t\.h5 exists; choose another name"):
        Target(path, overwrite=False, resume=False)
    (tmp_path / "t.h5.merging").touch()
    for allowed in ({"overwrite": True}, {"overwrite": False, "resume": True}):
        target = Target(path, **allowed)
        assert not target.merging.exists(), "of a killed process"
        target.merging.write_bytes(b"new")
        target.close()
    assert {one.name for one in tmp_path.iterdir()} == {"t.h5", "t.h5.partial"}
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_finished_file_takes_its_name_and_replaces_none_that_came_meanwhile(tmp_path, overwrite):
    path = tmp_path / "t.h5"
    target = Target(path, overwrite=overwrite)
    target.merging.write_bytes(b"new")
    path.write_bytes(b"other")
    if overwrite:
        target.publish()
    else:
        with pytest.raises(OutputError, match=r"in the meantime; the finished run is in .*partial"):
            target.publish()
    target.close()
    assert path.read_bytes() == (b"new" if overwrite else b"other")
    with claim(path) as ours:
        assert ours, "the lock was released"
    assert [one.name for one in tmp_path.iterdir()] == ["t.h5"]


def test_signals_wait_and_come_in_their_order_to_the_handlers_of_before():
    came = []
    before = {one: signal.signal(one, lambda number, _: came.append(number)) for one in (2, 15)}
    own = {one: signal.getsignal(one) for one in (2, 15)}
    try:
        with signals_deferred() as waiting:
            for one in (15, 2, 15):
                signal.raise_signal(one)
            assert came == []
            assert [number for number, _ in waiting] == [15, 2, 15]
        assert came == [15, 2, 15]
        assert {one: signal.getsignal(one) for one in (2, 15)} == own
        with pytest.raises(ZeroDivisionError), signals_deferred():
            signal.raise_signal(2)
            raise ZeroDivisionError
        assert (came[3:], {one: signal.getsignal(one) for one in (2, 15)}) == ([2], own)
        elsewhere = threading.Thread(target=lambda: signals_deferred().__enter__())
        elsewhere.start()
        elsewhere.join()
        assert {one: signal.getsignal(one) for one in (2, 15)} == own, "only the main thread has handlers"
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


# -- seeds, hooks, checks -----------------------------------------------------------------------------------


def test_runs_are_children_of_the_seed_by_their_numbers():
    wide = np.random.SeedSequence([1, 2], spawn_key=(5,), pool_size=8)
    for seed, parent in (
        (7, np.random.SeedSequence(7)),
        (wide, np.random.SeedSequence([1, 2], spawn_key=(5,), pool_size=8)),
    ):
        expected = [one.generate_state(4).tolist() for one in parent.spawn(6)]
        assert [one.generate_state(4).tolist() for one in run_seeds(seed, 3, 2)] == expected[2:5]
        assert [one.generate_state(4).tolist() for one in children(seed, [5, 0])] == [
            expected[5],
            expected[0],
        ]
    with hear_seeds() as heard, other_seeds(100):
        assert parent_seed(3).entropy == 103
        assert describe_seed(3) == 103
        parent_seed(np.random.SeedSequence(9))
    assert heard == {103, 9}
    assert (parent_seed(3).entropy, describe_seed(3)) == (3, 3)
    assert describe_seed(wide) == {"entropy": [1, 2], "spawn_key": [5], "pool_size": 8}
    assert describe_seed(np.random.SeedSequence(4)) == {"entropy": 4, "spawn_key": []}
    assert numbers_of_runs(3, 4, None) == [4, 5, 6]
    for wrong in (-1, 1.0, True, "1"):
        with pytest.raises(InputError, match="seed must be"):
            parent_seed(wrong)


def test_a_callback_gets_copies_and_ends_a_run_by_stop_iteration():
    positions, seen = np.zeros(2), []

    def change(step, time, copy, observables):
        copy += 1
        observables["more"] = 1
        seen.append((step, time))
        if step == 2:
            raise StopIteration

    observables = {}
    assert goes_on(None, 1, 0.5, positions, observables)
    assert goes_on(change, 1, 0.5, positions, observables)
    assert not goes_on(change, 2, 1.0, positions, observables)
    assert (positions.tolist(), observables, seen) == ([0, 0], {}, [(1, 0.5), (2, 1.0)])
    told = []
    with shown(lambda done, total: told.append((done, total)), 9, 3, "x") as show:
        show(5)
    assert told == [(5, 9)]
    for given in ((1, False), (None, 1), (None, "yes")):
        with pytest.raises(InputError, match=r"(callback|progress) must be"):
            check_hooks(*given)


def test_bounds_belong_to_what_is_allowed():
    assert (whole_number("x", 3, 3), number("x", 3, 3.0), number("x", 0.1, above=0.0)) == (3, 3.0, 0.1)
    assert whole_number("x", np.int64(4), 0) == 4
    assert (choice("x", "a", ("a", "b")), flag("x", np.True_)) == ("a", True)
    for wrong in (
        lambda: whole_number("x", 2, 3), lambda: whole_number("x", 2.0, 0),
        lambda: whole_number("x", True, 0),
        lambda: number("x", 2.9, 3.0), lambda: number("x", 0.0, above=0.0), lambda: number("x", np.inf),
        lambda: number("x", "y"), lambda: choice("x", "c", ("a", "b")), lambda: flag("x", 1),
        lambda: whole_number("x", 2**53 + 1, 0),
    ):  # fmt: skip
        with pytest.raises(InputError, match="x must be"):
            wrong()


@pytest.mark.parametrize("stride", [1, 2, 5])
def test_every_so_many_frames_of_a_log_are_those_of_the_whole(tmp_path, stride):
    path = tmp_path / "run.h5.partial"
    log = LogWriter(path)
    log.begin(Header(LAYOUT, {"seed": 0}, {}), {})
    for first, count in ((0, 4), (4, 1), (5, 9)):
        log.append(FRAMES, *columns(first, count))
    log.close()
    found = Log(path)
    for column in range(4):
        whole = found.read(column, range(14))
        np.testing.assert_array_equal(found.read(column, range(1, 14, stride)), whole[1::stride])


@pytest.mark.parametrize("finished", [False, True])
def test_a_copy_of_an_unfinished_run_says_that_it_is_unfinished(tmp_path, finished):
    path = tmp_path / "run.h5.partial"
    log = LogWriter(path)
    log.begin(Header(LAYOUT, {"seed": 0}, {}), {})
    log.append(FRAMES, *columns(0, 4))
    if finished:
        log.append(END)
    log.close()
    Trajectory.open(path).save(tmp_path / "copy.h5")
    assert Trajectory.open(tmp_path / "copy.h5").complete is finished


def test_new_frames_of_a_followed_run_replace_those_that_were_read(tmp_path):
    path = tmp_path / "run.h5.partial"
    log = LogWriter(path)
    log.begin(Header(LAYOUT, {"seed": 0}, {}), {})
    log.append(FRAMES, *columns(0, 4))
    following = Trajectory.open(path)
    assert (following.positions.shape[1], following.observables["o"].shape[1]) == (4, 4)
    log.append(FRAMES, *columns(4, 3))
    assert following.refresh() == 3
    assert (following.positions.shape[1], following.observables["o"].shape[1]) == (7, 7)
    log.close()
