"""Runs that are recorded to files: kills, signals, full disks, other writers, and going on."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest

import physics
from physics import FileFormatError, InputError, OutputError, ParticleSystem, Trajectory
from physics.trajectory import h5md, log, saving, writer
from physics.trajectory.header import Layout
from physics.trajectory.log import RECORD, Log
from physics.trajectory.provenance import source_digest
from physics.trajectory.writer import FileRecorder

LAYOUT = Layout(2, 17, 2, "float64", 0, {"a": ("<f8", ()), "b": ("<f8", (30,)), "k": ("<i8", ())})


def record(recorder, frames):
    """Append frames whose every number says which frame it is, as far as they are not there."""
    for step in range(recorder.frames, frames):
        filled = np.full((2, 17, 2), float(step))
        recorder.append(
            step,
            step / 2,
            filled,
            {"a": filled[:, 0, 0], "b": np.full((2, 30), float(step)), "k": np.full(2, 2**60 + step)},
        )


def assert_right(trajectory, frames):
    """Every frame is the one that was appended."""
    assert trajectory.frames == frames
    numbers = np.arange(frames)
    np.testing.assert_array_equal(trajectory.steps, numbers)
    np.testing.assert_array_equal(trajectory.times, numbers / 2)
    np.testing.assert_array_equal(
        trajectory.positions, np.broadcast_to(numbers[None, :, None, None], (2, frames, 17, 2))
    )
    np.testing.assert_array_equal(trajectory.observables["a"], np.broadcast_to(numbers, (2, frames)))
    np.testing.assert_array_equal(trajectory.observables["b"][1, :, 29], numbers)
    np.testing.assert_array_equal(trajectory.observables["k"][0], 2**60 + numbers)


def same_bytes_of_data(one, other):
    np.testing.assert_array_equal(one.positions, other.positions)
    np.testing.assert_array_equal(one.steps, other.steps)
    assert set(one.observables) == set(other.observables)
    for name in one.observables:
        np.testing.assert_array_equal(one.observables[name], other.observables[name])
    assert one.parameters == other.parameters


# -- what is recorded ---------------------------------------------------------------------------------------


def test_a_recorder_copies(tmp_path):
    state, observed = np.zeros((1, 3, 2)), np.zeros((1, 2))
    with FileRecorder(tmp_path / "t.h5", Layout(1, 3, 2, "float64", 3, {"o": ("<f8", (2,))}), {}) as recorder:
        for step in range(3):
            recorder.append(step, step, state, {"o": observed})
            state += 1
            observed += 10
    found = physics.load(tmp_path / "t.h5")
    assert found.positions[0, :, 0, 0].tolist() == [0, 1, 2]
    assert found.observables["o"][0, :, 1].tolist() == [0, 10, 20]


def test_blocks_of_frames_come_back_in_any_order_and_part(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "BLOCK_BYTES", 5000)
    recorder = FileRecorder(tmp_path / "t.h5", LAYOUT, {})
    with pytest.raises(KeyboardInterrupt):
        with recorder:
            record(recorder, 101)
            raise KeyboardInterrupt
    lazy, whole = Trajectory.open(tmp_path / "t.h5.partial"), physics.load(tmp_path / "t.h5.partial")
    assert len(Log(lazy.path)._blocks) > 10
    assert_right(whole, 101)
    for part in (slice(3, 80), slice(None, None, 7), slice(90, 3, -4), slice(50, 50)):
        np.testing.assert_array_equal(lazy._read(slice(1, 2), part), whole.positions[1:2, part])
    np.testing.assert_array_equal(lazy.frame(-2), whole.positions[:, -2])


def test_a_frame_of_sixty_megabytes(tmp_path):
    runs = 3
    big = np.repeat(np.random.default_rng(0).standard_normal((runs, 2500)), 1000, axis=1)  # soon packed
    with FileRecorder(
        tmp_path / "t.h5", Layout(runs, 3, 2, "float64", 2, {"big": ("<f8", big.shape[1:])}), {}
    ) as recorder:
        recorder.append(0, 0.0, np.zeros((runs, 3, 2)), {"big": big})
        recorder.append(1, 1.0, np.zeros((runs, 3, 2)), {"big": -big})
        recorder.flush()
        np.testing.assert_array_equal(physics.load(tmp_path / "t.h5.partial").observables["big"][:, 1], -big)
    found = physics.load(tmp_path / "t.h5").observables["big"]
    np.testing.assert_array_equal(found, np.stack([big, -big], axis=1))


def test_slow_frames_are_written_twice_and_the_file_is_compact(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0.0)
    written = 0
    append = log.LogWriter.append

    def counting(self, kind, *parts):
        nonlocal written
        before = self._end
        append(self, kind, *parts)
        written += self._end - before

    monkeypatch.setattr(log.LogWriter, "append", counting)
    rng = np.random.default_rng(0)
    layout, frames = Layout(1, 59, 6, "float64", 0, {"loss": ("<f8", ())}), 300
    data = frames * (59 * 6 + 3) * 8
    with FileRecorder(tmp_path / "slow.h5", layout, {}) as recorder:
        for step in range(frames):
            recorder.append(step, step, rng.standard_normal((1, 59, 6)), {"loss": rng.random(1)})
            recorder.flush()
        assert len(Log(tmp_path / "slow.h5.partial")._blocks) == frames, "every frame was flushed alone"
    assert written + (tmp_path / "slow.h5").stat().st_size < 2 * data
    with FileRecorder(tmp_path / "fast.h5", layout, {}) as recorder:
        rng = np.random.default_rng(0)
        for step in range(frames):
            recorder.append(step, step, rng.standard_normal((1, 59, 6)), {"loss": rng.random(1)})
    assert (tmp_path / "slow.h5").stat().st_size == (tmp_path / "fast.h5").stat().st_size < data


def test_what_waits_for_the_disk_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "WAITING_BYTES", 20_000)
    monkeypatch.setattr(writer, "BLOCK_BYTES", 1000)
    free = threading.Event()
    append = log.LogWriter.append
    monkeypatch.setattr(log.LogWriter, "append", lambda *arguments: (free.wait(120), append(*arguments)))
    free.set()
    recorder, appended = FileRecorder(tmp_path / "t.h5", LAYOUT, {}), []
    free.clear()

    def fill():
        with recorder:
            for step in range(200):
                record(recorder, step + 1)
                appended.append(step)

    thread = threading.Thread(target=fill)
    thread.start()
    wait_for(lambda: len(appended) > 10)
    time.sleep(0.3)
    assert len(appended) < 40, "20 000 bytes are twenty frames"
    free.set()
    thread.join()
    assert_right(physics.load(tmp_path / "t.h5"), 200)


def test_nothing_is_left_where_there_is_no_frame(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with FileRecorder(tmp_path / "t.h5", LAYOUT, {}):
            raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


# -- looking on ---------------------------------------------------------------------------------------------

WRITER = """
import sys, time
sys.path.insert(0, sys.argv[4])
from test_recording import LAYOUT, record
from physics.trajectory import writer
writer.FLUSH_SECONDS = float(sys.argv[2])
with writer.FileRecorder(sys.argv[1], LAYOUT, {"seed": 1}, resume=True) as recorder:
    for frames in range(10, int(sys.argv[3]) + 1, 10):
        record(recorder, frames)
        print(frames, flush=True)
        if sys.argv[5:] and frames % int(sys.argv[5]) == 0:
            sys.stdin.readline()
"""


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.005)


def start_writer(path, frames, flush_seconds=0.0, pause=()):
    """Start a process that records; after each ``pause`` frames it waits for a line."""
    here = os.path.dirname(__file__)  # noqa: PTH120
    command = [sys.executable, "-c", WRITER, str(path), str(flush_seconds), str(frames), here, *pause]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_reader_follows_a_writer_of_ten_thousand_frames(tmp_path):
    path = tmp_path / "t.h5"
    with start_writer(path, 10_000, pause=["1000"]) as process:
        process_out = threading.Thread(target=process.stdout.read)
        process_out.start()
        partial = tmp_path / "t.h5.partial"
        wait_for(lambda: partial.exists() and Log(partial).frames)
        following = Trajectory.open(partial)
        seen, looks = following.frames, 0
        for written in range(1000, 10_001, 1000):
            while seen < written:
                time.sleep(0.002)
                new = following.refresh()
                looks += new > 0
                for frame in range(seen, seen + new, max(new // 3, 1)):
                    assert following.steps[frame] == following.frame(frame)[1, 16, 1] == frame
                seen += new
                assert seen == following.frames
            assert seen == written
            assert not following.complete
            process.stdin.write("\n")
            process.stdin.flush()
        wait_for(lambda: following.refresh() or following.complete)
        process_out.join()
    assert looks >= 9
    following.refresh()
    assert following.path in (path, tmp_path / "t.h5.partial")
    while (tmp_path / "t.h5.partial").exists():
        time.sleep(0.01)
    following.refresh()
    assert following.path == path
    assert_right(following, 10_000)


def test_a_followed_run_that_is_replaced_by_another_is_noticed(tmp_path):
    def interrupted(seed):
        with pytest.raises(KeyboardInterrupt):
            with FileRecorder(tmp_path / "t.h5", LAYOUT, {"seed": seed}, overwrite=True) as recorder:
                record(recorder, 5)
                raise KeyboardInterrupt

    interrupted(1)
    following = Trajectory.open(tmp_path / "t.h5.partial")
    for seed in (2, 3):  # its inode may be given out again
        interrupted(seed)
        with pytest.raises(FileFormatError, match="has changed since it was opened"):
            following.refresh()
        with pytest.raises(FileFormatError, match="has changed since it was opened"):
            _ = following.positions
    (tmp_path / "t.h5.partial").unlink()
    with pytest.raises(FileNotFoundError, match="there is no file"):
        following.refresh()


# -- kills --------------------------------------------------------------------------------------------------


def test_every_beginning_of_a_log_is_whole_frames_and_goes_on_to_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "BLOCK_BYTES", 2500)  # three frames or so
    whole = tmp_path / "whole.h5"
    start = {"split": np.arange(20).reshape(2, 10)}
    with pytest.raises(KeyboardInterrupt):
        with FileRecorder(whole, LAYOUT, {"seed": 1}, start=start) as recorder:
            record(recorder, 20)
            raise KeyboardInterrupt
    content = (tmp_path / "whole.h5.partial").read_bytes()
    bounds = [
        (first + count, address) for first, count, address in Log(tmp_path / "whole.h5.partial")._blocks
    ]
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    rng = np.random.default_rng(0)
    cuts = {*rng.integers(0, len(content), 20).tolist(), 0, 1, 4, 16, len(content)}
    for _, address in bounds:
        cuts |= {address - 16, address - 15, address - 1, address}
    before_the_start = Log(tmp_path / "whole.h5.partial")._arrays[0][0] - RECORD.size
    cuts |= {before_the_start, before_the_start + 5}
    for cut in sorted(cuts):
        partial.write_bytes(content[:cut])
        afters = [*(address - 16 for _, address in bounds[1:]), len(content)]
        ends = [frames for (frames, _), after in zip(bounds, afters, strict=True) if after <= cut]
        expected = max(ends, default=0)
        try:
            found = physics.load(partial)
        except FileFormatError:
            assert cut < bounds[0][1] - 16
            warned = pytest.warns(RuntimeWarning, match="was killed before it began; the run starts again")
        else:
            assert_right(found, expected)
            assert not found.complete
            warned = None
        if warned is None:
            recorder = FileRecorder(path, LAYOUT, {"seed": 1}, start=start, resume=True)
            assert recorder.frames == expected
        else:
            with warned:
                recorder = FileRecorder(path, LAYOUT, {"seed": 1}, start=start, resume=True)
        with recorder:
            record(recorder, 23)
        assert_right(physics.load(path), 23)
        np.testing.assert_array_equal(physics.load(path).start["split"], start["split"])
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith("t.")] == ["t.h5"]
        path.unlink()


def test_a_damaged_record_is_refused_and_a_damaged_last_one_left_out(tmp_path, monkeypatch):
    """A machine that lost its power may leave a last record of the right length that holds zeros."""
    monkeypatch.setattr(writer, "BLOCK_BYTES", 2500)
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    with pytest.raises(KeyboardInterrupt):
        with FileRecorder(path, LAYOUT, {"seed": 1}) as recorder:
            record(recorder, 20)
            raise KeyboardInterrupt
    content, blocks = partial.read_bytes(), Log(partial)._blocks
    last, _, address = blocks[-1]
    partial.write_bytes(content[: address + 400] + bytes(len(content) - address - 400))
    assert_right(physics.load(partial), last)
    with FileRecorder(path, LAYOUT, {"seed": 1}, resume=True) as recorder:
        assert recorder.frames == last
        record(recorder, 20)
    assert_right(physics.load(path), 20)
    path.unlink()
    for inside in (blocks[0][2], address - 100):
        damaged = bytearray(content)
        damaged[inside] ^= 1
        partial.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="is damaged: its checksum fails at byte"):
            physics.load(partial)


def test_what_is_told_to_be_on_disk_has_been_synced(tmp_path, monkeypatch):
    """A log at each flush and before it is merged, the file before it takes its name."""
    done, sync, publish = [], os.fsync, writer.Target.publish

    def remembered(descriptor):
        done.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", remembered)
    monkeypatch.setattr(writer.Target, "publish", lambda self: (done.append("publish"), publish(self)))
    path, saved = tmp_path / "t.h5", tmp_path / "s.h5"
    with FileRecorder(path, LAYOUT, {}) as recorder:
        kept = (tmp_path / "t.h5.partial").stat().st_ino
        record(recorder, 3)
        recorder.flush()
        assert done == [kept]
        record(recorder, 5)
    assert done == [kept, kept, path.stat().st_ino, "publish"]
    physics.load(path).save(saved)
    assert done[4:] == [saved.stat().st_ino, "publish"]


@pytest.mark.parametrize("flush_seconds", [0.0, 1000.0])
def test_a_killed_run_keeps_every_flushed_frame(tmp_path, flush_seconds):
    with start_writer(tmp_path / "t.h5", 10**6, flush_seconds) as process:
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        appended = int((process.stdout.read().splitlines() or ["10"])[-1])
    found = physics.load(tmp_path / "t.h5.partial")
    waiting = (writer.WAITING_BYTES + writer.BLOCK_BYTES) // 1072 + 10
    assert found.frames >= appended - waiting
    assert_right(found, found.frames)


@pytest.mark.slow
def test_killed_at_a_hundred_moments(tmp_path):
    """Kills at random moments from the start of the process to the end of the merge; then the run goes on."""
    rng = np.random.default_rng(0)
    began = time.monotonic()
    start_writer(tmp_path / "whole.h5", 3000).communicate(timeout=60)
    takes = time.monotonic() - began
    states = set()
    for k in range(100):
        path = tmp_path / f"{k}.h5"
        with start_writer(path, 3000) as process:
            time.sleep(rng.uniform(0.1, 1.05) * takes)
            process.send_signal(signal.SIGKILL)
            process.stdout.read()
        left = sorted(p.name.partition(".")[2] for p in tmp_path.glob(f"{k}.h5*"))
        states.add(tuple(left))
        if "h5.partial" in left and Log(path.with_name(f"{k}.h5.partial")).begun:
            found = physics.load(tmp_path / f"{k}.h5.partial")
            assert_right(found, found.frames)
        start_writer(path, 3000).communicate(timeout=60)
        assert_right(physics.load(path), 3000)
        assert sorted(p.name for p in tmp_path.glob(f"{k}.h5*")) == [f"{k}.h5"]
        path.unlink()
    recording, merging, complete = ("h5.lock", "h5.partial"), ("h5.lock", "h5.merging", "h5.partial"), ("h5",)
    assert states >= {(), recording, merging, complete}
    assert len(states) > 3, states


def test_a_run_in_a_thread_goes_on_when_the_main_thread_has_ended(tmp_path, python):
    code = """
import sys, threading, time
sys.path.insert(0, sys.argv[2])
from test_recording import LAYOUT, record
from physics.trajectory import writer
writer.FLUSH_SECONDS = 0.05
def run():
    with writer.FileRecorder(sys.argv[1], LAYOUT, {}) as recorder:
        for frames in range(1, 7):
            record(recorder, frames)
            time.sleep(0.3)
        recorder.flush()
threading.Thread(target=run).start()
"""
    python(code, tmp_path / "t.h5", os.path.dirname(__file__))  # noqa: PTH120
    assert_right(physics.load(tmp_path / "t.h5"), 6)


def test_a_program_that_ends_without_a_word_leaves_its_frames_and_does_not_hang(tmp_path, python):
    code = """
import sys
sys.path.insert(0, sys.argv[2])
from test_recording import LAYOUT, record
from physics.trajectory.writer import FileRecorder
recorder = FileRecorder(sys.argv[1], LAYOUT, {}).__enter__()
record(recorder, 5)
"""
    python(code, tmp_path / "t.h5", os.path.dirname(__file__))  # noqa: PTH120
    assert_right(physics.load(tmp_path / "t.h5.partial"), 5)


def test_a_kill_that_leaves_two_names_of_the_finished_file_costs_nothing(tmp_path, monkeypatch):
    path = tmp_path / "t.h5"
    physics.simulate(steps=3, out=path)
    before = path.read_bytes()
    os.link(path, tmp_path / "t.h5.merging")

    def full(self, *arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(h5md._Column, "finish", full)
    with pytest.raises(OutputError, match="No space left on device"):
        physics.simulate(steps=4, seed=1).save(path, overwrite=True)
    assert path.read_bytes() == before


def test_a_damaged_length_is_told_from_a_record_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "BLOCK_BYTES", 2500)
    with pytest.raises(KeyboardInterrupt):
        with FileRecorder(tmp_path / "t.h5", LAYOUT, {}) as recorder:
            record(recorder, 20)
            raise KeyboardInterrupt
    partial = tmp_path / "t.h5.partial"
    content, address = bytearray(partial.read_bytes()), Log(partial)._blocks[2][2]
    for byte in range(address - log.RECORD.size, address):
        for bit in (1, 128):
            damaged = content.copy()
            damaged[byte] ^= bit
            partial.write_bytes(damaged)
            with pytest.raises(FileFormatError, match="its checksum fails at byte"):
                Log(partial)
    partial.write_bytes(content + bytes(100))  # a machine without power may leave zeros
    assert_right(physics.load(partial), 20)


@pytest.mark.parametrize("step", [-1, 0, 4, 11, 19, 30])
def test_a_log_that_is_cut_goes_on_behind_the_step(tmp_path, monkeypatch, step):
    monkeypatch.setattr(writer, "BLOCK_BYTES", 2500)

    def left_off(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OutputError):
        patched.setattr(writer, "write_file", left_off)  # the log is complete, and its end stands in it
        with FileRecorder(tmp_path / "t.h5", LAYOUT, {}) as recorder:
            record(recorder, 20)
    with FileRecorder(tmp_path / "t.h5", LAYOUT, {}, resume=True, until=step) as recorder:
        assert not recorder.complete
        assert recorder.frames <= step + 1
        record(recorder, 33)
    assert_right(physics.load(tmp_path / "t.h5"), 33)


def test_an_interrupted_save_does_not_replace_the_file_afterwards(tmp_path, monkeypatch):
    path, write = tmp_path / "t.h5", saving.write_file
    physics.simulate(steps=2).save(path)
    before = path.read_bytes()

    def interrupted_first(*arguments, **options):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)  # until the main thread has seen it
        write(*arguments, **options)

    monkeypatch.setattr(saving, "write_file", interrupted_first)
    with pytest.raises(KeyboardInterrupt):
        physics.simulate(steps=50).save(path, overwrite=True)
    time.sleep(0.1)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]


# -- signals ------------------------------------------------------------------------------------------------


def interrupted_at(call, path, frames, where):
    """Record, with a SIGINT at the `call`-th call in a thread; return whether it came."""
    calls = 0

    def hook(frame, event, argument):
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1
            if calls == call:
                os.kill(os.getpid(), signal.SIGINT)

    came = False
    try:
        try:
            if where == "writer":
                threading.setprofile(hook)
            with closing(FileRecorder(path, LAYOUT, {"seed": 1}, resume=True)) as recorder, recorder:
                threading.setprofile(None)
                if where == "main":
                    sys.setprofile(hook)
                record(recorder, frames)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        time.sleep(0.01 if calls >= call else 0)  # a signal that was sent last of all arrives here
    except KeyboardInterrupt:
        came = True
    for thread in threading.enumerate():
        if thread.name == "grokphys recorder":
            thread.join()
    return came


@pytest.mark.parametrize("where", ["main", "writer"])
@pytest.mark.parametrize("stride", [127, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_call_leaves_what_can_go_on(tmp_path, monkeypatch, where, stride):
    monkeypatch.setattr(writer, "BLOCK_BYTES", 2500)
    monkeypatch.setattr(h5md, "CHUNK_BYTES", 4096)
    call, frames, path = 1, 12, tmp_path / "t.h5"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    while interrupted_at(call, path, frames, where):
        if path.exists():
            assert_right(physics.load(path), frames)
        elif (tmp_path / "t.h5.partial").exists():
            found = physics.load(tmp_path / "t.h5.partial")
            assert_right(found, found.frames)
        with FileRecorder(path, LAYOUT, {"seed": 1}, resume=True) as recorder:
            record(recorder, frames)
        assert_right(physics.load(path), frames)
        assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]
        path.unlink()
        call += stride
    assert call > 400, "the interrupts came at many calls"
    assert_right(physics.load(path), frames)


def test_the_interrupt_says_how_to_go_on(tmp_path):
    with pytest.raises(KeyboardInterrupt) as error:
        with FileRecorder(tmp_path / "t.h5", LAYOUT, {}, resume=False) as recorder:
            record(recorder, 7)
            raise KeyboardInterrupt
    assert error.value.__notes__ == [
        f"7 frames are kept in {tmp_path}/t.h5.partial; pass resume (--resume) to continue it"
    ]


# -- full disks ---------------------------------------------------------------------------------------------

LIMITED = """
import resource, signal, sys
sys.path.insert(0, sys.argv[3])
from test_recording import LAYOUT, record
from physics import OutputError
from physics.trajectory import writer
writer.BLOCK_BYTES = 5000
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
try:
    with writer.FileRecorder(sys.argv[1], LAYOUT, {"seed": 1}, resume=True) as recorder:
        record(recorder, 300)
except OutputError as error:
    print(error)
    sys.exit(3)
"""


@pytest.mark.parametrize("limit", [100, 3000, 8000, 50_000])
def test_a_full_disk_keeps_what_was_written(tmp_path, python, limit):
    """The limit is met in the header, in the first block of frames, early and late."""
    path, here = tmp_path / "t.h5", os.path.dirname(__file__)  # noqa: PTH120
    done = python(LIMITED, path, limit, here, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(f"cannot write {path}: File too large")
    assert "Traceback" not in done.stderr
    assert not path.exists()
    if limit < 5000:
        assert done.stdout == f"cannot write {path}: File too large\n"
        assert list(tmp_path.iterdir()) == []
        return
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5.partial"]
    assert f"the frames written before are in {path}.partial" in done.stdout
    kept = physics.load(tmp_path / "t.h5.partial")
    assert not kept.complete
    assert 0 < kept.frames < 300
    assert kept.frames > 10 or limit == 8000
    assert_right(kept, kept.frames)
    with FileRecorder(path, LAYOUT, {"seed": 1}, resume=True) as recorder:
        record(recorder, 300)
    assert_right(physics.load(path), 300)


@pytest.mark.parametrize("failing", ["append", "finish", "_write"])
@pytest.mark.parametrize("call", [1, 5])
def test_a_disk_that_is_full_while_the_file_is_made(tmp_path, monkeypatch, failing, call):
    path, calls = tmp_path / "t.h5", []
    original = getattr(h5md._Column, failing)

    def full(self, *arguments):
        calls.append(failing)
        if len(calls) == call:
            raise OSError(28, "No space left on device")
        return original(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(h5md._Column, failing, full)
        with pytest.raises(OutputError, match="No space left on device; the frames written before are in"):
            with FileRecorder(path, LAYOUT, {"seed": 1}) as recorder:
                record(recorder, 30)
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5.partial"]
    kept = physics.load(tmp_path / "t.h5.partial")
    assert kept.complete, "only the file is missing"
    assert_right(kept, 30)
    with FileRecorder(path, LAYOUT, {"seed": 1}, resume=True) as recorder:
        assert recorder.complete
    assert_right(physics.load(path), 30)


def test_a_failed_write_surfaces_at_the_next_append(tmp_path, monkeypatch):
    def full(self, kind, *parts):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match=r"cannot write .*t\.h5: No space left on device"):
        with FileRecorder(tmp_path / "t.h5", LAYOUT, {}) as recorder:
            monkeypatch.setattr(log.LogWriter, "append", full)
            monkeypatch.setattr(writer, "FLUSH_SECONDS", 0.0)
            for frames in range(1, 2000):
                record(recorder, frames)
                time.sleep(0.001)
    assert recorder.frames < 1999


def test_a_disk_that_is_full_from_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 100))
    with pytest.raises(OutputError, match="cannot write .*: No space left on device"):
        physics.simulate(steps=1, out=tmp_path / "t.h5")
    assert list(tmp_path.iterdir()) == []


# -- other writers ------------------------------------------------------------------------------------------

OTHER = """
import sys, physics
try:
    physics.simulate(steps=1, out=sys.argv[1], overwrite="overwrite" in sys.argv, resume="resume" in sys.argv)
except physics.OutputError as error:
    sys.exit(str(error))
"""


def test_two_writers(tmp_path, python):
    path = tmp_path / "t.h5"
    with FileRecorder(path, LAYOUT, {}) as first:
        for how in ("plain", "overwrite", "resume"):
            done = python(OTHER, path, how, check=False)
            assert done.returncode == 1
            assert "t.h5.partial is being written by another process" in done.stderr
        with pytest.raises(OutputError, match="is being written by another process"):
            physics.simulate(steps=1, out=path, overwrite=True)  # in this process too
        record(first, 1)
    assert_right(physics.load(path), 1)


def test_the_name_is_held_until_the_finished_file_bears_it(tmp_path, python, monkeypatch):
    path, said = tmp_path / "t.h5", []
    publish = writer.Target.publish

    def slowly(self):
        publish(self)
        said.append(python(OTHER, path, "overwrite", check=False).stderr)

    monkeypatch.setattr(writer.Target, "publish", slowly)
    with FileRecorder(path, LAYOUT, {}) as recorder:
        record(recorder, 3)
    assert "is being written by another process" in said[0]
    assert_right(physics.load(path), 3)
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]


def test_a_name_taken_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "t.h5"
    with pytest.raises(OutputError, match="was created in the meantime; the finished run is in .*partial"):
        with FileRecorder(path, LAYOUT, {}) as recorder:
            record(recorder, 2)
            path.write_text("precious")
    assert path.read_text() == "precious"
    assert physics.load(tmp_path / "t.h5.partial").complete


# -- going on -----------------------------------------------------------------------------------------------


def interrupted(path, whole, kept):
    """Leave the log of a simulation that was interrupted after some frames."""
    layout = Layout(whole.runs, whole.tokens, whole.dim, "float64", whole.frames)
    with pytest.raises(KeyboardInterrupt):
        with FileRecorder(path, layout, whole.parameters) as recorder:
            for frame in range(kept):
                recorder.append(whole.steps[frame], whole.times[frame], whole.frame(frame))
            raise KeyboardInterrupt


def test_a_killed_simulation_resumes_to_the_same_bits(tmp_path):
    options = {"system": ParticleSystem(5), "runs": 2, "steps": 40}
    whole = physics.simulate(**options)
    for kept in (1, 7, 40, 41):
        path = tmp_path / f"{kept}.h5"
        interrupted(path, whole, kept)
        resumed = physics.simulate(**options, out=path, resume=True)
        same_bytes_of_data(resumed, whole)
        assert resumed.complete
        assert [p.name for p in tmp_path.glob(f"{kept}.*")] == [f"{kept}.h5"]
        before = path.read_bytes()
        same_bytes_of_data(physics.simulate(**options, out=path, resume=True), whole)
        assert path.read_bytes() == before, "a complete run stays as it is"


def test_a_finished_run_beside_its_log_is_the_finished_run(tmp_path):
    """A kill between the new name and the removal of the log."""
    options = {"system": ParticleSystem(5), "steps": 4, "out": tmp_path / "t.h5"}
    interrupted(tmp_path / "t.h5", physics.simulate(ParticleSystem(5), steps=4), 3)
    left = (tmp_path / "t.h5.partial").read_bytes()
    finished = physics.simulate(**options, resume=True)
    interrupted(tmp_path / "u.h5", physics.simulate(ParticleSystem(5), steps=4, seed=3), 2)
    (tmp_path / "u.h5.partial").rename(tmp_path / "t.h5.partial")
    same_bytes_of_data(physics.simulate(**options, resume=True), finished)
    assert physics.load(tmp_path / "t.h5.partial").frames == 2, "what another run left is not removed"
    (tmp_path / "t.h5.partial").write_bytes(left)
    same_bytes_of_data(physics.simulate(**options, resume=True), finished)
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]


def test_an_unfinished_run_is_neither_replaced_nor_mixed_up(tmp_path):
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    interrupted(path, physics.simulate(seed=1, steps=5), 3)
    before = partial.read_bytes()
    with pytest.raises(
        OutputError, match=r"holds an unfinished run; pass resume \(--resume\) to continue it"
    ):
        physics.simulate(steps=5, out=path)
    with pytest.raises(InputError, match="has another configuration .*seed: 1 there, 0 here"):
        physics.simulate(steps=5, out=path, resume=True)
    assert partial.read_bytes() == before
    with pytest.raises(
        OutputError, match=r"holds an unfinished run; pass overwrite \(--overwrite\) to start again"
    ):
        physics.simulate(steps=1).save(path)  # which cannot be resumed
    physics.simulate(steps=1, out=path, overwrite=True)
    assert not partial.exists()


def test_another_start_is_not_resumed(tmp_path):
    start = np.random.default_rng(0).standard_normal((5, 2))
    options = {"system": ParticleSystem(5), "steps": 3}
    interrupted(tmp_path / "t.h5", physics.simulate(**options, initial=start), 1)
    with pytest.raises(InputError, match="initial must equal the start of the unfinished run"):
        physics.simulate(**options, initial=start + 1, out=tmp_path / "t.h5", resume=True)
    physics.simulate(**options, initial=start, out=tmp_path / "t.h5", resume=True)


@pytest.mark.parametrize("name", ["source", "numpy", "scipy", "numba", "llvmlite", "torch", "processor"])
def test_a_run_begun_with_other_versions_is_not_resumed(tmp_path, monkeypatch, name):
    path = tmp_path / "t.h5"
    whole = physics.simulate(ParticleSystem(5), steps=4)
    here = writer.made_with("physics")
    with monkeypatch.context() as then:
        then.setattr(writer, "made_with", lambda *packages: here | {name: "0.1"})
        interrupted(path, whole, 2)
    with pytest.raises(
        InputError, match=rf"could differ in their last bits \({name} 0.1 there, .* here\); continue it with"
    ):
        physics.simulate(ParticleSystem(5), steps=4, out=path, resume=True)
    with monkeypatch.context() as then:  # what cannot change a bit does not matter
        then.setattr(writer, "made_with", lambda *packages: here | {"python": "2.7", "grokphys": "0"})
        interrupted(tmp_path / "u.h5", whole, 2)
    same_bytes_of_data(
        physics.simulate(ParticleSystem(5), steps=4, out=tmp_path / "u.h5", resume=True), whole
    )


def test_the_digest_of_a_package_is_of_all_its_source(tmp_path, monkeypatch):
    kernel = tmp_path / "house" / "room" / "kernel.py"
    kernel.parent.mkdir(parents=True)
    for folder in (tmp_path / "house", kernel.parent):
        (folder / "__init__.py").write_text("")
    kernel.write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = [source_digest.__wrapped__("house")]
    kernel.write_text("x = 2\n")
    found.append(source_digest.__wrapped__("house"))
    kernel.rename(kernel.with_name("other.py"))
    found.append(source_digest.__wrapped__("house"))
    assert len(set(found)) == 3
    kernel.with_name("notes.txt").write_text("no source")
    assert source_digest.__wrapped__("house") == found[2]


def test_a_complete_run_is_returned_whatever_the_versions_are(tmp_path, monkeypatch):
    whole = physics.simulate(ParticleSystem(5), steps=4, out=tmp_path / "t.h5")
    here = writer.made_with("physics")
    monkeypatch.setattr(writer, "made_with", lambda *packages: here | {"numpy": "0.1"})
    same_bytes_of_data(
        physics.simulate(ParticleSystem(5), steps=4, out=tmp_path / "t.h5", resume=True), whole
    )


def test_a_partial_file_of_an_older_version_is_not_resumed(tmp_path):
    physics.simulate(steps=1).save(tmp_path / "t.h5.partial")
    with pytest.raises(InputError, match="was written by another version of GrokPhys"):
        physics.simulate(steps=1, out=tmp_path / "t.h5", resume=True)


def test_a_run_killed_before_its_first_frame(tmp_path):
    recorder = FileRecorder(tmp_path / "t.h5", Layout(2, 3, 2, "float64", 9), {})
    recorder._log.close()
    found = physics.load(tmp_path / "t.h5.partial")
    assert (found.runs, found.frames, found.tokens) == (2, 0, 3)
    with pytest.raises(InputError, match="but the trajectory holds none yet"):
        _ = found.final
    recorder._target.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_commands_end_by_signals_at_random_moments_and_go_on_to_the_same_bits(tmp_path, number):
    commands = {
        "simulate": ["simulate", "--runs", "3", "--steps", "4000"],
        "train": ["train", "--runs", "2", "--steps", "1500", "--record", "1"],
    }
    rng = np.random.default_rng(number)
    for kind, command in commands.items():
        run = [sys.executable, "-m", "grokphys.cli.main", *command, "--out"]
        began = time.monotonic()
        subprocess.run([*run, tmp_path / f"{kind}.h5"], check=True, capture_output=True)
        takes = time.monotonic() - began
        whole = physics.load(tmp_path / f"{kind}.h5")
        for k in range(50):
            path = tmp_path / f"{kind}-{k}.h5"
            with subprocess.Popen(
                [*run, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process:
                time.sleep(rng.uniform(0.2, 1.0) * takes)
                process.send_signal(number)
                _, said = process.communicate(timeout=60)
            # An extension module that is interrupted prints a traceback of its own, before our sentence.
            by_a_module = process.returncode == 128 + number and said.splitlines()[-1].startswith(
                "grokphys: "
            )
            assert "Traceback" not in said or by_a_module or process.returncode in (-number, 1), said
            if (tmp_path / f"{kind}-{k}.h5.partial").exists():
                assert "--resume" in said
            subprocess.run([*run, path, "--resume"], check=True, capture_output=True, timeout=120)
            same_bytes_of_data(physics.load(path), whole)
            path.unlink()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_ended_says_how_to_go_on(tmp_path, number, status):
    run = [sys.executable, "-m", "grokphys.cli.main", "simulate", "--runs", "50", "--steps", "1000000"]
    command = [*run, "--record-every", "50", "--out", str(tmp_path / "t.h5")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        partial = tmp_path / "t.h5.partial"
        while not partial.exists() or not Log(partial).frames:
            time.sleep(0.05)
            assert process.poll() is None
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == status
    found = physics.load(partial)
    word = {130: "interrupted", 143: "terminated"}[status]
    assert said.splitlines()[-1] == (
        f"grokphys: {word}; {found.frames} frames are kept in {partial}; pass --resume to continue it"
    )


def test_info_follows_a_run(tmp_path, capsys):
    from grokphys.cli import main as cli

    path = tmp_path / "t.h5"
    with FileRecorder(path, LAYOUT, {}) as recorder:
        record(recorder, 3)
        recorder.flush()
        following = threading.Thread(target=cli.main, args=(["info", f"{path}.partial", "--follow"],))
        following.start()
        time.sleep(0.3)
        record(recorder, 5)
    following.join(120)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [f"step {k}  a {k}  k {2**60 + k:.6g}" for k in range(5)]
    assert lines[5].endswith("complete, 5 frames")
    assert cli.main(["info", str(path), str(path) + "x", "--follow"]) in (1, 2)
