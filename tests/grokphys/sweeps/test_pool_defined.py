"""What an executor of packs does with its processes, by processes that are made up, and how long it waits."""

import contextlib
import os
import signal
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import pytest

from grokphys.sweeps import run, work
from grokphys.sweeps.work import Outcome


class Process:
    """Stands for an executor of one process; its calls end when the test says so, or at once if `quick`."""

    def __init__(self, threads):
        self.threads, self.calls, self.stopped = threads, [], []
        self.dead = self.quick = False

    def submit(self, function, *arguments):
        if self.dead:
            raise BrokenProcessPool
        future = Future()
        if self.quick:
            future.set_result(None)
        self.calls.append((function, arguments, future))
        return future

    def shutdown(self, **options):
        self.stopped.append(options)


@pytest.fixture
def started(monkeypatch):
    """Processes in the order of their start."""
    made = []

    def process(threads):
        made.append(Process(threads))
        return made[-1]

    monkeypatch.setattr(run, "process", process)
    monkeypatch.setattr(run, "cores", lambda: 7)
    return made


@pytest.fixture
def slept(monkeypatch):
    seconds = []
    monkeypatch.setattr(run.time, "sleep", seconds.append)
    return seconds


def pack(name):
    return SimpleNamespace(name=name)


def test_a_process_has_one_pack_at_a_time_and_its_share_of_the_cores(started, tmp_path):
    pool = run.LocalPool(tmp_path, 3)
    assert [one.threads for one in started] == [2, 2, 2]
    packs = [pack(name) for name in "abc"]
    for one in packs:
        assert pool.free()
        pool.submit(one)
    assert not pool.free()
    calls = [call for one in started for call in one.calls]
    assert sorted(arguments[0].name for _, arguments, _ in calls) == ["a", "b", "c"]
    assert all(function is work.settle and rest[1:] == (tmp_path, 2) for function, rest, _ in calls)
    second = next(call for call in calls if call[1][0] is packs[1])
    second[2].set_result(Outcome("computed"))
    assert pool.finished(0.0) == [(packs[1], Outcome("computed"))]
    assert pool.free()
    pool.submit(pack("d"))
    assert not pool.free()
    again = next(one for one in started if len(one.calls) == 2)
    assert again.calls[0] is second, "the process that had finished"


def test_a_process_that_dies_fails_its_pack_alone_and_is_replaced(started, tmp_path):
    pool = run.LocalPool(tmp_path, 1)
    one = pack("a")
    for said, error in (
        ("The exit codes of the workers are {SIGKILL(-9)}", "the worker process died (SIGKILL)"),
        ("gone", "the worker process died"),
    ):
        pool.submit(one)
        worker = started[-1]
        worker.calls[0][2].set_exception(BrokenProcessPool(said))
        assert pool.finished(0.0) == [(one, Outcome("failed", error=error))]
        assert worker.stopped == [{"kill_workers": True}]
        assert started[-1] is not worker
        assert started[-1].threads == 7
        assert pool.free()
    idle = started[-1]
    idle.dead = True  # while nobody needed it
    pool.submit(one)
    assert idle.stopped == [{"kill_workers": True}]
    assert started[-1].calls[0][:2] == (work.settle, (one, tmp_path, 7))
    assert len(started) == 4


def test_processes_import_at_once_and_one_of_them_compiles(started, tmp_path):
    pool = run.LocalPool(tmp_path, 2)
    packs = [pack("a")]
    with pool:
        assert [one.calls[0][:2] for one in started] == [(work.load, ([],))] * 2
        for one in started:
            one.quick = True
        pool.warm(packs)
        assert sum(call[:2] == (work.warm, (packs,)) for one in started for call in one.calls) == 1
        for one in started:
            one.dead, one.quick = True, False
        pool.warm(packs)  # the packs will say so
        for one in started:
            one.dead = False
        pool.submit(pack("b"))
    assert [one.stopped for one in started] == [[{"kill_workers": True}]] * 2, "a busy one too"


def test_an_executor_without_a_pack_waits_as_long_as_it_is_told(started, slept, tmp_path, monkeypatch):
    for executor in (run.Serial(tmp_path), run.LocalPool(tmp_path, 2)):
        with contextlib.ExitStack() as stack:
            stack.enter_context(executor)
            assert executor.finished(0.7) == []
    assert slept == [0.7, 0.7]
    waited = []
    monkeypatch.setattr(run, "wait", lambda *how: waited.append(how[1:]) or wait(how[0], 0.0))
    pool = run.LocalPool(tmp_path, 1)
    pool.submit(pack("a"))
    assert pool.finished(0.3) == []
    assert waited == [(0.3, FIRST_COMPLETED)]
    assert len(slept) == 2
    assert not pool.free()


def test_this_process_computes_a_pack_when_it_is_asked_what_has_finished(slept, tmp_path, monkeypatch):
    settled = []
    monkeypatch.setattr(run, "settle", lambda *what: settled.append(what) or Outcome("computed"))
    here, one = run.Serial(tmp_path), pack("a")
    assert here.free()
    here.submit(one)
    assert not here.free()
    assert settled == []
    assert here.finished(1.0) == [(one, Outcome("computed"))]
    assert settled == [(one, tmp_path)], "with all threads"
    assert here.free()
    assert slept == []
    here.finished(1.0)
    assert len(settled) == 1


def test_a_worker_leaves_ctrl_c_to_the_driver_and_looks_after_it(monkeypatch):
    begun, locks, kept = [], [], []
    monkeypatch.setattr(run.signal, "signal", lambda *what: kept.append(what))
    monkeypatch.setattr(run.tqdm, "set_lock", locks.append)
    monkeypatch.setattr(
        run.threading,
        "Thread",
        lambda **how: begun.append(how) or SimpleNamespace(start=lambda: begun.append(0)),
    )
    run._begin(41)
    assert kept == [(signal.SIGINT, signal.SIG_IGN)]
    assert begun == [{"target": run._end_with, "args": (41,), "daemon": True}, 0]
    assert len(locks) == 1
    assert locks[0].acquire(blocking=False)


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5} if pid == 0 else {1})
    assert run.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert run.cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert run.cores() == 1
