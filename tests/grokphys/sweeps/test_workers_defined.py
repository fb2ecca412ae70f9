"""What a sweep asks of the workers of a cluster, by a client that is made up."""

import queue
from types import SimpleNamespace

import pytest

from grokphys.sweeps import dask, run
from grokphys.sweeps.work import Outcome
from physics import InputError


class Future:
    """Stands for a future of Dask."""

    def __init__(self):
        self.status, self.calls = "pending", []
        self.add_done_callback = self.calls.append

    def result(self):
        return Outcome("done")


class Client:
    """Stands for a client of Dask: workers by address, and what functions return on each."""

    def __init__(self, threads, cores):
        self.threads, self.cores = threads, cores
        self.version, self.sees = {}, {}
        self.ran, self.submitted, self.closed = [], [], False

    def nthreads(self):
        return self.threads

    def wait_for_workers(self, count, timeout):
        if not self.threads:
            raise TimeoutError
        assert (count, timeout) == (1, dask.ANSWER_SECONDS)

    def run(self, function, *arguments, on_error="raise"):
        self.ran.append((function, arguments, on_error))
        of = {
            dask.version_here: lambda worker: self.version.get(worker, dask.version_here()),
            dask.sees_directory: lambda worker: self.sees.get(worker, True),
            dask.cores: lambda worker: self.cores[worker],
            dask.load: lambda worker: None,
        }[function]
        return {worker: of(worker) for worker in self.threads}

    def submit(self, function, *arguments, key=None, pure=True):
        future = Future()
        self.submitted.append((function, arguments, key, pure, future))
        return future

    def close(self):
        self.closed = True


@pytest.fixture
def client(monkeypatch):
    made = Client(
        {"tcp://a:1": 3, "tcp://a:2": 1, "tcp://b:1": 2}, {"tcp://a:1": 8, "tcp://a:2": 8, "tcp://b:1": 12}
    )
    monkeypatch.setattr(dask, "_connected", lambda address: made)
    return made


def pack(name):
    return SimpleNamespace(name=name)


def test_workers_are_asked_for_their_version_the_directory_and_their_cores(client, tmp_path):
    cluster = dask.DaskCluster(tmp_path, "tcp://s:8786")
    assert [function for function, _, _ in client.ran] == [dask.version_here, dask.sees_directory, dask.cores]
    assert client.ran[1][1] == (str(tmp_path),)
    assert {how for *_, how in client.ran} == {"return"}, "one worker that fails must not hide the others"
    assert cluster._workers == client.cores


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda one: one.version.update({"tcp://b:1": "0.1"}),
            r"must have workers with GrokPhys .*, got one with 0.1 \(tcp://b:1\)",
        ),
        (
            lambda one: one.version.update({"tcp://a:2": ImportError("no numba")}),
            r"tcp://a:2 cannot load it \(no numba\)",
        ),
        (
            lambda one: one.sees.update({"tcp://a:1": False}),
            "directory must be one that all workers see; tcp://a:1 does not see",
        ),
        (lambda one: one.threads.clear(), "scheduler tcp://s:8786 has no workers; start some with"),
    ],
)
def test_a_worker_that_does_not_fit_is_named_and_the_connection_closed(client, tmp_path, change, sentence):
    change(client)
    with pytest.raises(InputError, match=sentence):
        dask.DaskCluster(tmp_path, "tcp://s:8786")
    assert client.closed


def test_a_pack_has_its_share_of_the_cores_of_its_machine(client, tmp_path):
    cluster = dask.DaskCluster(tmp_path, "tcp://s:8786")
    # Machine a has 8 cores for 4 threads, machine b 12 for 2.
    assert cluster._threads == 2
    client.threads.pop("tcp://a:1")
    assert cluster._threads == 6, "of 8 cores for one thread and 12 for two, the least"
    client.threads["tcp://c:1"] = 40
    assert cluster._threads == 1, "at least one, also of a worker that joined later"


def test_packs_are_submitted_ahead_each_try_under_its_own_name(client, tmp_path):
    cluster = dask.DaskCluster(tmp_path, "tcp://s:8786")
    first, other = pack("one"), pack("two")
    for one in (first, other, first):
        cluster.submit(one)
    keys = [key for _, _, key, _, _ in client.submitted]
    assert [key.partition("-")[0] for key in keys] == ["one", "two", "one"]
    second = dask.DaskCluster(tmp_path, "tcp://s:8786")
    second.submit(first)
    keys += [client.submitted.pop()[2]]
    assert len(set(keys)) == 4, "Dask would give one sweep the result of another"
    for function, arguments, _, pure, _ in client.submitted:
        assert function is dask.settle_there
        assert arguments[1:] == (tmp_path, 2, dask.version_here())
        assert pure is False, "Dask would give the result of the first try"
    assert cluster.free()
    for _ in range(2 * 6 - 3):
        assert cluster.free()
        cluster.submit(other)
    assert not cluster.free(), "two for each of six threads"
    future = client.submitted[1][4]
    future.status = "finished"
    future.calls[0](future)
    assert cluster.finished(0.0) == [(other, Outcome("done"))]
    assert cluster.free()
    assert cluster.finished(0.0) == []
    lost = client.submitted[0][4]
    lost.status = "lost"
    lost.calls[0](lost)
    with pytest.raises(InputError, match="scheduler no longer answers"):
        cluster.finished(0.0)


def test_what_fails_on_a_worker_is_the_outcome_of_its_pack():
    error = SimpleNamespace(status="error", exception=lambda: ValueError("bad"))
    assert dask._outcome(error) == Outcome("failed", error="ValueError: bad")


def test_all_workers_import_and_one_compiles(client, tmp_path):
    cluster = dask.DaskCluster(tmp_path, "tcp://s:8786")
    client.ran.clear()
    packs = [pack("one")]
    cluster.warm(packs)
    assert client.ran == [(dask.load, (packs,), "raise")]
    ((function, arguments, _, pure, _),) = client.submitted
    assert (function, arguments, pure) == (dask.warm, (packs,), False)
    client.run = None
    cluster.warm(packs)  # the packs will say what is wrong
    with cluster:
        pass
    assert client.closed


def test_a_scheduler_that_is_lost_is_a_sentence(client, tmp_path):
    cluster = dask.DaskCluster(tmp_path, "tcp://s:8786")
    assert isinstance(cluster._done, queue.SimpleQueue)

    def lost(*args, **options):
        raise OSError("closed")

    client.nthreads = client.submit = lost
    for call in (cluster.free, lambda: cluster.submit(pack("one")), lambda: cluster.finished(0.0)):
        with pytest.raises(InputError, match="run the same sweep again to continue it"):
            call()


def test_a_process_ends_with_the_one_that_started_it(monkeypatch):
    parents, ended, slept = iter([7, 7, 7, 1]), [], []

    def leave(status):
        ended.append(status)
        raise SystemExit

    monkeypatch.setattr(run.os, "getppid", lambda: next(parents))
    monkeypatch.setattr(run.os, "_exit", leave)
    monkeypatch.setattr(run.time, "sleep", slept.append)
    with pytest.raises(SystemExit):
        run._end_with(7)
    assert ended == [1]
    assert len(slept) == 3, "as long as its parent is the driver"


def test_a_machine_sees_the_directory_by_the_declaration_in_it(tmp_path):
    assert not dask.sees_directory(str(tmp_path))
    (tmp_path / "sweep.json").mkdir()
    assert not dask.sees_directory(str(tmp_path))
    (tmp_path / "sweep.json").rmdir()
    (tmp_path / "sweep.json").write_text("{}")
    assert dask.sees_directory(str(tmp_path))


def test_only_addresses_are_greeted_and_encrypted_ones_by_dask_alone(monkeypatch):
    pytest.importorskip("distributed")
    asked = []

    async def answers(address):
        asked.append(address)

    monkeypatch.setattr(dask, "_greet", answers)
    for address in ("tcp://host:8786", "host:1", "ucx://a-b.c:99", "tls://host:8786"):
        dask.greet(address)
    assert asked == ["tcp://host:8786", "host:1", "ucx://a-b.c:99"]
    for address in ("host", "tcp://host", "tcp://host:", "tcp://host:x", ":8786"):
        with pytest.raises(InputError) as said:
            dask.greet(address)
        assert str(said.value) == f"scheduler must be an address such as tcp://host:8786, got {address!r}"
    assert len(asked) == 3

    async def refuses(address):
        raise OSError("closed")

    monkeypatch.setattr(dask, "_greet", refuses)
    with pytest.raises(InputError) as said:
        dask.greet("tcp://host:8786")
    assert str(said.value) == (
        "scheduler tcp://host:8786 does not answer within 10 s; give the address that `dask scheduler` shows"
    )
    monkeypatch.setattr(dask.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"^scheduler needs Dask: pip install 'grokphys\[cluster\]'$"):
        dask.greet("tcp://host:8786")


def test_a_client_is_of_one_scheduler_and_not_of_the_whole_process(monkeypatch):
    distributed = pytest.importorskip("distributed")
    asked = []
    monkeypatch.setattr(dask, "greet", lambda address: asked.append(address))
    monkeypatch.setattr(
        distributed, "Client", lambda *given, **options: asked.append((given, options)) or "one"
    )
    assert dask._connected("tcp://a:1") == "one"
    assert asked == ["tcp://a:1", (("tcp://a:1",), {"timeout": 10.0, "set_as_default": False})]

    def silent(*given, **options):
        raise TimeoutError

    monkeypatch.setattr(distributed, "Client", silent)
    with pytest.raises(InputError, match="scheduler tcp://a:1 does not answer within 10 s"):
        dask._connected("tcp://a:1")
