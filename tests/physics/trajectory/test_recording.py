"""What a recording leaves behind, whatever interrupts it, and what a later process makes of it."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from trajectories import LAYOUT, Still

import nets
import physics
from physics import FileFormatError, InputError, OutputError
from physics.trajectory import locks, provenance
from physics.trajectory.header import Layout
from physics.trajectory.recording import FileRecorder, Log

SIMULATION = {"system": physics.ParticleSystem(9), "steps": 1500, "runs": 2, "seed": 1}
TRAINING = {"model": nets.ConstantAttention(7), "runs": 2, "steps": 300, "record": 1}


class Stop(Exception):  # noqa: N818 - not an error
    """What a signal handler raises."""


def record(recorder, count, first=0):
    for k in range(first, first + count):
        recorder.append(k, k / 4, np.full((1, 3, 1), float(k)))


def unfinished(path, count, layout=LAYOUT, **options):
    """Record some frames of a run that is then interrupted."""
    with pytest.raises(KeyboardInterrupt), FileRecorder(path, layout, {}, **options) as recorder:
        record(recorder, count)
        raise KeyboardInterrupt


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# -- interruptions ------------------------------------------------------------------------------------------


def interrupted_after(number, seconds, run):
    """Call `run` with a handler that raises, and send a signal after some seconds; return whether it came."""

    def stop(*_):
        raise Stop

    before = signal.signal(number, stop)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    try:
        if number == signal.SIGALRM:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        else:
            timer.start()
        run()
        if number == signal.SIGALRM:
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            timer.join()
        return False
    except Stop:
        return True
    finally:
        signal.signal(number, before)


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # raised in a callback of Python
@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGINT, signal.SIGTERM])
def test_a_signal_handler_that_raises_leaves_a_run_that_resumes_to_the_same_bits(tmp_path, number):
    whole = physics.simulate(**SIMULATION)
    began = time.monotonic()
    physics.simulate(**SIMULATION, out=tmp_path / "whole.h5")
    took = time.monotonic() - began
    rng = random.Random(number)
    count = 0
    for k in range(5):
        path = tmp_path / f"{k}.h5"
        count += interrupted_after(
            number, rng.uniform(0.001, took), lambda path=path: physics.simulate(**SIMULATION, out=path)
        )
        assert physics.simulate(**SIMULATION, out=path, resume=True) == whole
        assert names(tmp_path) == sorted([f"{k}.h5", "whole.h5"])
        path.unlink()
    assert count >= 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupted_save_leaves_the_old_file_and_no_lock(tmp_path):
    path = tmp_path / "t.h5"
    physics.simulate(steps=1).save(path)
    rng = np.random.default_rng(0)
    large = physics.Trajectory(rng.random((1, 40_000, 20, 3)), np.arange(40_000))
    old = path.read_bytes()
    began = time.monotonic()
    large.save(tmp_path / "large.h5")
    took = time.monotonic() - began
    for part in (0.1, 0.4, 0.7):
        interrupted_after(signal.SIGALRM, part * took, lambda: large.save(path, overwrite=True))
        if path.read_bytes() != old:
            assert physics.load(path) == large
        assert names(tmp_path) == ["large.h5", "t.h5"]
    large.save(path, overwrite=True)
    assert physics.load(path) == large
    assert names(tmp_path) == ["large.h5", "t.h5"]


KILLED = """
import sys, physics, nets
if sys.argv[2] == "train":
    nets.train(nets.ConstantAttention(7), runs=2, steps=1200, record=1, out=sys.argv[1])
else:
    physics.simulate(physics.ParticleSystem(9), steps=8000, runs=2, seed=1, out=sys.argv[1])
"""


@pytest.mark.parametrize("kind", ["simulate", "train"])
def test_a_killed_run_is_followed_and_resumes_to_the_same_bits(tmp_path, kind):
    if kind == "train":
        run, options = nets.train, {**TRAINING, "steps": 1200}
    else:
        run, options = physics.simulate, {**SIMULATION, "steps": 8000}
    whole, path = run(**options), tmp_path / "t.h5"
    partial = tmp_path / "t.h5.partial"
    with subprocess.Popen([sys.executable, "-c", KILLED, path, kind]) as process:
        while not partial.exists() or partial.stat().st_size < 20_000:
            time.sleep(0.01)
        followed = physics.load(partial)
        first = followed.frames
        while not followed.refresh():
            time.sleep(0.01)
        assert first < followed.frames == len(followed.steps) == followed.positions.shape[1]
        process.kill()
    followed.refresh()
    kept = followed.frames
    np.testing.assert_array_equal(followed.positions, whole.positions[:, :kept])
    assert not followed.complete
    assert run(**options, out=path, resume=True) == whole
    assert followed.refresh() == whole.frames - kept
    assert followed == whole
    assert names(tmp_path) == ["t.h5"]


def test_a_program_that_ends_without_a_word_leaves_its_frames(tmp_path, python):
    code = """
import os, sys, numpy as np
from physics.trajectory.header import Layout
from physics.trajectory.recording import FileRecorder
recorder = FileRecorder(sys.argv[1], Layout(1, 3, 1, "float64"), {}).__enter__()
for k in range(5): recorder.append(k, k, np.zeros((1, 3, 1)))
os._exit(0)
"""
    python(code, tmp_path / "t.h5")
    assert physics.load(tmp_path / "t.h5.partial").steps.tolist() == [0, 1, 2, 3, 4]


def test_nothing_is_left_where_there_is_no_frame(tmp_path):
    unfinished(tmp_path / "t.h5", 0)
    assert names(tmp_path) == []


def test_every_beginning_of_a_log_is_whole_frames_and_goes_on_to_the_same(tmp_path):
    layout = Layout(1, 3, 1, "float64", observables={"a": ("<i8", (2,))})
    start = {"w": np.arange(3.0)[None]}

    def run(path, count, first=0, **options):
        with FileRecorder(path, layout, {"p": 1}, start=start, **options) as recorder:
            for k in range(max(first, recorder.frames), count):
                recorder.append(k, k / 2, np.full((1, 3, 1), float(k)), {"a": np.array([[k, -k]])})
            if count < 5:
                raise KeyboardInterrupt

    run(tmp_path / "whole.h5", 5)
    whole = physics.load(tmp_path / "whole.h5")
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    with pytest.raises(KeyboardInterrupt):
        run(path, 4)
    data = partial.read_bytes()
    record_size = 8 + 16 + 24 + 16
    head = len(data) - 4 * record_size
    for size in {0, 4, 30, *range(head - 1, len(data) + 1, 7), len(data)}:
        partial.write_bytes(data[:size])
        if size < head:
            with pytest.raises(FileFormatError, match="holds nothing" if size > 8 else "is "):
                physics.load(partial)
        else:
            found = physics.load(partial)
            assert found.frames == (size - head) // record_size
            np.testing.assert_array_equal(found.observables["a"], whole.observables["a"][:, : found.frames])
            np.testing.assert_array_equal(found.start["w"], start["w"])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            run(path, 5, resume=True)
        assert bool(said) == (0 < size < head)
        assert physics.load(path) == whole
        path.unlink()


def test_a_log_that_is_cut_goes_on_behind_the_step(tmp_path):
    path = tmp_path / "t.h5"
    unfinished(path, 8)
    followed = physics.load(tmp_path / "t.h5.partial")
    with FileRecorder(path, LAYOUT, {}, resume=True, until=4) as recorder:
        assert (recorder.frames, recorder.last_step) == (5, 4)
        assert recorder.resumed.final.tolist() == [[[4.0], [4.0], [4.0]]]
        assert followed.refresh() == -3
        record(recorder, 5, 5)
        assert followed.refresh() == 5
    assert physics.load(path).steps.tolist() == list(range(10))


def test_the_interrupt_says_how_to_go_on(tmp_path):
    def callback(step, *_):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as said:
        physics.simulate(Still(), steps=5, out=tmp_path / "t.h5", callback=callback)
    kept = tmp_path / "t.h5.partial"
    assert said.value.__notes__ == [f"4 frames are kept in {kept}; pass resume=True to continue it"]


# -- full disks ---------------------------------------------------------------------------------------------

FULL = """
import gc, os, random, resource, signal, sys, warnings
import numpy as np, physics
warnings.simplefilter("error")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
rng = np.random.default_rng(0)
measured = {"a": rng.random((4, 3000, 5))}
large = physics.Trajectory(rng.random((4, 3000, 20, 2)), range(3000), observables=measured)
run = {"system": physics.ParticleSystem(9), "steps": 300, "runs": 5, "seed": 1}
whole, path, refused = physics.simulate(**run), sys.argv[1] + "/t.h5", 0

def attempt(limit, function):
    global refused
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        function()
    except physics.OutputError as error:
        assert str(error).startswith(f"cannot write {path}: File too large"), error
        refused += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    gc.collect()

random.seed(int(sys.argv[2]))
for _ in range(12):
    attempt(int(10 ** random.uniform(0, 6.9)), lambda: large.save(path))
    assert os.listdir(sys.argv[1]) in ([], ["t.h5"])
    large.save(path, overwrite=True)
    assert physics.load(path) == large
    os.unlink(path)
    attempt(int(10 ** random.uniform(0, 6)), lambda: physics.simulate(**run, out=path))
    assert physics.simulate(**run, out=path, resume=True) == whole
    os.unlink(path)
print(refused)
"""


def test_a_disk_that_fills_at_any_write_ends_in_an_error_and_nothing_is_lost(tmp_path, python):
    done = python(FULL, tmp_path, 1, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 12


# -- two writers, and names ---------------------------------------------------------------------------------


def test_a_write_that_fails_is_an_error_and_the_next_frame_takes_its_place(tmp_path, monkeypatch):
    def full(log, place, data):
        write(log, place, data[:30])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write = locks.LockedFile.write_at
    with FileRecorder(tmp_path / "t.h5", LAYOUT, {}) as recorder:
        record(recorder, 2)
        with monkeypatch.context() as patch:
            patch.setattr(locks.LockedFile, "write_at", full)
            with pytest.raises(
                OutputError, match="No space left on device; the frames written before are in "
            ):
                record(recorder, 1, 2)
        assert physics.load(tmp_path / "t.h5.partial").steps.tolist() == [0, 1]
        record(recorder, 1, 3)
    assert physics.load(tmp_path / "t.h5").steps.tolist() == [0, 1, 3]


def test_two_writers(tmp_path, python):
    path = tmp_path / "t.h5"
    with FileRecorder(path, LAYOUT, {}) as recorder:
        record(recorder, 2)
        for options in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(OutputError, match=r"t\.h5\.partial is being written by another process"):
                FileRecorder(path, LAYOUT, {}, **options)
        with pytest.raises(OutputError, match="is being written"):
            physics.simulate(steps=1).save(path, overwrite=True)
        code = "import physics, sys; physics.simulate(steps=1, out=sys.argv[1], overwrite=True)"
        assert "InUseError" in python(code, path, check=False).stderr
    assert physics.load(path).frames == 2


def test_a_lock_ends_with_its_recorder_even_if_a_forked_process_lives_on(tmp_path, python):
    code = """
import os, signal, sys, numpy as np
from physics.trajectory.header import Layout
from physics.trajectory.recording import FileRecorder
with FileRecorder(sys.argv[1], Layout(1, 3, 1, "float64"), {}) as recorder:
    recorder.append(0, 0.0, np.zeros((1, 3, 1)))
    child = os.fork()
    if not child:
        signal.pause()
    recorder.append(1, 1.0, np.zeros((1, 3, 1)))
FileRecorder(sys.argv[1], Layout(1, 3, 1, "float64"), {}, overwrite=True).close()
os.kill(child, signal.SIGKILL)
"""
    python(code, tmp_path / "t.h5")
    assert physics.load(tmp_path / "t.h5").frames == 2


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_written_and_read(tmp_path, monkeypatch, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    unfinished(tmp_path / "t.h5", 3)
    with FileRecorder(tmp_path / "t.h5", LAYOUT, {}, resume=True) as recorder:
        record(recorder, 1, 3)
    assert physics.load(tmp_path / "t.h5").frames == 4


def test_an_unfinished_run_is_neither_replaced_nor_mixed_up(tmp_path):
    path = tmp_path / "t.h5"
    unfinished(path, 2)
    with pytest.raises(OutputError, match=r"t\.h5\.partial holds an unfinished run; pass overwrite=True"):
        physics.simulate(steps=1).save(path)
    with pytest.raises(OutputError, match="pass resume=True to continue it, or overwrite=True"):
        physics.simulate(steps=1, out=path)
    with pytest.raises(FileNotFoundError, match=r"the run is unfinished; open .*t\.h5\.partial"):
        physics.load(path)
    (tmp_path / "t.h5.partial").write_bytes(b"something else")
    with pytest.raises(FileFormatError, match="is not an unfinished run"):
        physics.simulate(steps=1, out=path, resume=True)
    physics.simulate(steps=1, out=path, overwrite=True)
    assert names(tmp_path) == ["t.h5"]


def test_no_link_is_followed_by_what_is_written(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "t.h5.partial").symlink_to(victim)
    with pytest.raises(OutputError):
        physics.simulate(steps=1, out=tmp_path / "t.h5", overwrite=True)
    link = tmp_path / "state.partial"
    link.symlink_to(victim)
    for alone in (False, True):
        locks.replace_as_a_whole(tmp_path / "state", lambda file: file.write(b"new"), alone=alone)
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "state").read_bytes() == b"new"


def test_a_run_writes_where_it_began_even_if_the_directory_changes(tmp_path, monkeypatch):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    unfinished(second / "t.h5", 3)
    theirs = (second / "t.h5.partial").read_bytes()
    monkeypatch.chdir(first)
    for run, options in ((physics.simulate, {"steps": 20}), (nets.train, TRAINING)):
        found = run(**options, out="t.h5", overwrite=True, callback=lambda *_: os.chdir(second))
        assert found == run(**options)
        assert (names(first), names(second)) == (["t.h5"], ["t.h5.partial"])
        assert (second / "t.h5.partial").read_bytes() == theirs
        os.chdir(first)
    found = physics.load("t.h5")
    os.chdir(second)
    assert found.positions.shape == (2, 301, 7, 2)


# -- what may be resumed ------------------------------------------------------------------------------------


def test_a_complete_run_is_returned_and_its_leftover_log_removed(tmp_path):
    path, partial = tmp_path / "t.h5", tmp_path / "t.h5.partial"
    unfinished(path, 3)
    log = partial.read_bytes()
    with FileRecorder(path, LAYOUT, {}, resume=True) as recorder:
        pass
    before = path.read_bytes()
    partial.write_bytes(log)  # as after a kill before the log was removed
    with FileRecorder(path, LAYOUT, {}, resume=True) as recorder:
        assert recorder.complete
    assert (path.read_bytes(), names(tmp_path)) == (before, ["t.h5"])
    with pytest.raises(InputError, match="another configuration"):
        FileRecorder(path, LAYOUT, {"seed": 1}, resume=True)


@pytest.mark.parametrize("name", ["source", "numpy", "numba", "processor"])
def test_a_run_begun_with_other_versions_is_not_resumed(tmp_path, monkeypatch, name):
    unfinished(tmp_path / "t.h5", 2)
    before = (tmp_path / "t.h5.partial").read_bytes()
    here = provenance.made_with("physics")
    monkeypatch.setattr("physics.trajectory.recording.made_with", lambda *_: here | {name: "other"})
    with pytest.raises(InputError, match=f"could differ in their last bits \\({name} .* there, other here"):
        FileRecorder(tmp_path / "t.h5", LAYOUT, {}, resume=True)
    assert (tmp_path / "t.h5.partial").read_bytes() == before


def test_another_configuration_or_start_is_not_resumed(tmp_path):
    path = tmp_path / "t.h5"

    def interrupt(step, *_):
        if step == 3:
            raise KeyboardInterrupt

    options = {"steps": 9, "initial": np.zeros((1, 4, 2)), "out": path}
    with pytest.raises(KeyboardInterrupt):
        physics.simulate(Still(), **options, callback=interrupt)
    with pytest.raises(InputError, match="initial must equal the start of the unfinished run"):
        physics.simulate(Still(), **(options | {"initial": np.ones((1, 4, 2))}), resume=True)
    with pytest.raises(InputError, match=r"another configuration \(steps: 9 there, 8 here\)"):
        physics.simulate(Still(), **(options | {"steps": 8}), resume=True)
    assert physics.simulate(Still(), **options, resume=True).frames == 10


OWN = """
import numpy as np, functools
def force(x): return {factor} * x
class Law:
    tokens, dim, default_step_size = 4, 2, 0.1
    def __init__(self): self.force = {value}
    def start(self, generator): return np.ones((4, 2))
    def advance(self, positions, step_size, steps): positions += step_size * steps * self.force(positions)
"""


def test_an_edit_of_ones_own_code_is_noticed(tmp_path, monkeypatch):
    import importlib

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    digests = []
    for k, (factor, value) in enumerate(((2, "force"), (3, "force"), (2, "functools.partial(force)"))):
        (tmp_path / "my_law.py").write_text(OWN.format(factor=factor, value=value) + "\n" * k)
        importlib.invalidate_caches()
        law = importlib.reload(importlib.import_module("my_law")).Law()
        digests.append(provenance.own_code(law)["own_code"])
        assert provenance.own_code(law)["own_code"] == digests[-1]
    assert digests[0].keys() == digests[1].keys() == {"Law", "force"}
    assert digests[0]["Law"] == digests[1]["Law"] != digests[2]["Law"]
    assert digests[0]["force"] == digests[2]["force"] != digests[1]["force"]
    assert provenance.own_code(physics.ParticleSystem(5)) == {}


def mean(positions):
    return positions.mean(axis=(1, 2))


def largest(positions):
    return positions.max(axis=(1, 2))


def by_closure(rate):
    class Decay(Still):
        def advance(self, positions, step_size, steps):
            positions *= (1 - rate * step_size) ** steps

    return Decay()


def by_default(rate):
    class Decay(Still):
        def advance(self, positions, step_size, steps, rate=rate):
            positions *= (1 - rate * step_size) ** steps

    return Decay()


def by_property(rate):
    class Decay(Still):
        @property
        def rate(self):
            return rate

        def advance(self, positions, step_size, steps):
            positions *= (1 - self.rate * step_size) ** steps

    return Decay()


def by_measure(rate):
    class Measured(Still):
        measures = {"size": mean if rate == 1 else largest}  # noqa: RUF012 (as users write it)

    return Measured()


@pytest.mark.parametrize("make", [by_closure, by_default, by_property, by_measure])
def test_a_run_of_ones_own_code_with_another_constant_is_not_resumed(tmp_path, make):
    options = {"steps": 9, "initial": np.ones((1, 4, 2)), "out": tmp_path / "t.h5"}

    def interrupt(step, *_):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        physics.simulate(make(1.0), **options, callback=interrupt)
    with pytest.raises(InputError, match="own_code"):
        physics.simulate(make(3.0), **options, resume=True)
    assert physics.simulate(make(1.0), **options, resume=True).frames == 10


def test_the_digest_of_a_package_is_of_all_its_source(tmp_path, monkeypatch):
    package = tmp_path / "some_package"
    (package / "inner").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    digests = set()
    for path, text in (("__init__", ""), ("inner/a", "x = 1"), ("inner/a", "x = 2"), ("b", "")):
        (package / f"{path}.py").write_text(text)
        provenance.source_digest.cache_clear()
        digests.add(provenance.source_digest("some_package"))
    provenance.source_digest.cache_clear()
    assert len(digests) == 4


# -- frames -------------------------------------------------------------------------------------------------


def test_a_recorder_copies_and_refuses_frames_unlike_the_first(tmp_path):
    layout = Layout(1, 3, 1, "float32", observables={"a": ("<i8", ())})
    positions, values = np.zeros((1, 3, 1)), np.zeros(1, int)
    with FileRecorder(tmp_path / "t.h5", layout, {}) as recorder:
        for k in range(3):
            positions[:], values[:] = k, 10 * k
            recorder.append(k, k, positions, {"a": values})
            positions[:] = values[:] = 99
        for wrong in ({}, {"a": values, "b": values}, {"a": np.zeros(2, int)}, {"a": np.zeros(1)}):
            with pytest.raises(InputError, match="observable"):
                recorder.append(3, 3, positions, wrong)
    found = physics.load(tmp_path / "t.h5")
    assert found.positions[0, :, 0, 0].tolist() == [0, 1, 2]
    assert found.observables["a"].tolist() == [[0, 10, 20]]
    with pytest.raises(OutputError, match="its recording has ended"):
        recorder.append(4, 4, positions, {"a": values})


def test_a_large_frame_and_parts_of_frames_come_back(tmp_path):
    layout = Layout(2, 500, 300, "float64")
    frames = np.random.default_rng(0).standard_normal((6, 2, 500, 300))
    with pytest.raises(KeyboardInterrupt), FileRecorder(tmp_path / "t.h5", layout, {}) as recorder:
        for k, frame in enumerate(frames):
            recorder.append(k, k, frame)
        raise KeyboardInterrupt
    found = physics.load(tmp_path / "t.h5.partial")
    np.testing.assert_array_equal(found.frame(4), frames[4])
    np.testing.assert_array_equal(found.run(1, every=2).positions[0], frames[[0, 2, 4, 5], 1])
    blocks = [block for _, block in found.blocks(megabytes=6)]
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1), np.moveaxis(frames, 1, 0))


def test_damaged_records_are_refused_and_a_damaged_last_one_is_left_out(tmp_path):
    unfinished(tmp_path / "t.h5", 4)
    partial = tmp_path / "t.h5.partial"
    data = partial.read_bytes()
    record_size = 8 + 16 + 24
    rng = np.random.default_rng(0)
    for at in rng.integers(len(data), size=60):
        changed = bytearray(data)
        changed[at] ^= 1 << int(rng.integers(8))
        partial.write_bytes(changed)
        if at >= len(data) - record_size:
            assert physics.load(partial).steps.tolist() == [0, 1, 2]
        else:
            with pytest.raises(FileFormatError):
                physics.load(partial)
    partial.write_bytes(data[:-record_size] + bytes(record_size))  # as after a power failure
    assert Log(partial).steps.tolist() == [0, 1, 2]
    for frame in (3, 2):  # which comes again
        begin = len(data) - (4 - frame) * record_size
        partial.write_bytes(data + data[begin : begin + record_size])
        with pytest.raises(FileFormatError, match="steps do not increase"):
            Log(partial)


def test_a_run_that_does_not_fit_into_memory_is_refused():
    with pytest.raises(InputError, match="frames.* need .* GiB"):
        physics.simulate(steps=10**9, runs=5)


def test_an_error_in_memory_hands_over_what_was_recorded():
    def fail(step, *_):
        if step == 3:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as said:
        physics.simulate(Still(), steps=5, callback=fail)
    assert said.value.recorded.steps.tolist() == [0, 1, 2, 3]
    assert not said.value.recorded.complete


def test_memory_of_a_large_save_stays_bounded(tmp_path, python):
    code = """
import sys, resource, numpy as np, physics
from physics.trajectory.recording import FileRecorder
from physics.trajectory.header import Layout
frame = np.random.default_rng(0).random((4, 500, 100))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with FileRecorder(sys.argv[1], Layout(4, 500, 100, "float64"), {}) as recorder:
    for k in range(200): recorder.append(k, k, frame)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    assert float(python(code, tmp_path / "t.h5").stdout) < 130, "of the 305 MB of the run"
