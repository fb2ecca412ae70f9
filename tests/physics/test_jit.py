import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import analysis
import nets
import physics
from physics import jit

CODE = """
import numpy as np, physics
trajectory = physics.simulate(physics.ParticleSystem(5), steps=3)
print(physics.grid_imperfections(trajectory.final), float(np.abs(trajectory.final).sum()).hex())
"""


@pytest.mark.slow
def test_many_processes_may_fill_the_cache_at_once(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CODE]
    for _ in range(2):  # first into an empty cache, then from a full one
        started = [
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for _ in range(4)
        ]
        finished = [process.communicate(timeout=300) for process in started]
        assert all(process.returncode == 0 for process in started), finished
        assert len({out for out, _ in finished}) == 1
    assert any(tmp_path.rglob("*.nbi"))


CALLED = """
from physics.jit import kernel

@kernel()
def factor(x):
    return {factor} * x
"""

CALLING = """
from physics.jit import kernel
from many_kernels.called import factor

@kernel()
def middle(x):
    return factor(x)

@kernel()
def total(values):
    found = 0.0
    for i in range(len(values)):
        found += middle(values[i])
    return found
"""

ASKING = """
import numpy as np
from many_kernels.calling import middle, total
print(total(np.ones(3)), middle(1.0), sum(middle.stats.cache_hits.values()))
"""


def test_a_change_in_a_file_that_a_kernel_calls_into_is_compiled(tmp_path, python):
    package = tmp_path / "many_kernels"
    package.mkdir()
    path = os.pathsep.join([str(tmp_path), str(Path(jit.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path}

    def ask():
        return python(ASKING, env=environment).stdout.split()

    (package / "__init__.py").touch()
    (package / "called.py").write_text(CALLED.format(factor=2.0))
    (package / "calling.py").write_text(CALLING)
    (package / "other.py").write_text("a = 1")
    assert ask() == ["6.0", "2.0", "0"]
    (package / "called.py").write_text(CALLED.format(factor=5.0))
    assert ask() == ["15.0", "5.0", "0"]
    assert ask() == ["15.0", "5.0", "1"]


def dispatchers():
    """Every kernel of the packages, by its module and name."""
    names = [
        one.name
        for package in (physics, nets, analysis)
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for module in map(importlib.import_module, names):
        for name, value in vars(module).items():
            cells = (inspect.isfunction(value) and value.__closure__) or ()
            for one in (value, *(cell.cell_contents for cell in cells)):
                if isinstance(one, Dispatcher):
                    yield module, name, one


def folder(function):
    return Path(function.__code__.co_filename).parent


def test_a_kernel_calls_only_kernels_of_its_own_folder():
    """Numba's cache would not notice a change elsewhere."""
    met = 0
    for _, name, kernel in dispatchers():
        function = kernel.py_func
        names = function.__code__.co_names
        values = [function.__globals__.get(used) for used in names]
        inside = [getattr(value, used, None) for value in values for used in names]  # of modules
        for one in (*values, *inside):
            if isinstance(one, Dispatcher) and not one.py_func.__module__.startswith("numba."):
                met += 1
                called = f"{function.__module__}.{name} calls {one.py_func.__module__}.{one.__name__}"
                assert folder(one.py_func) == folder(function), called
    assert met > 50


@pytest.mark.parametrize(("chosen", "found"), [({}, "10000"), ({"GOMP_SPINCOUNT": "77"}, "77")])
def test_idle_threads_sleep_soon_unless_the_user_says_otherwise(python, chosen, found):
    pytest.importorskip("numba.np.ufunc.omppool")
    code = "import os, physics.jit; print(os.environ.get('GOMP_SPINCOUNT')); import numba.np.ufunc.omppool"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GOMP", "OMP"))}
    done = python(code, env={**environment, "OMP_DISPLAY_ENV": "VERBOSE", **chosen})
    assert done.stdout.strip() == str(chosen.get("GOMP_SPINCOUNT"))  # what we set is gone again
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("Numba has no GNU OpenMP here")
    assert f"GOMP_SPINCOUNT = '{found}'" in done.stderr


MEETING = """
import threading
import numba, numpy as np
import physics

def simulate(seed):  # as many pair sums as all cores share in every step
    moved = physics.simulate(physics.ParticleSystem(56), steps=40, seed=seed, record_every=20)
    found[seed] = moved.final

def run(together):
    found.clear()
    threads = [threading.Thread(target=simulate, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
        if not together:
            thread.join()
    for thread in threads:
        thread.join()
    return dict(found)

found = {}
one_by_one, at_once = run(False), run(True)
assert set(at_once) == {0, 1}
assert all(np.array_equal(at_once[seed], one_by_one[seed]) for seed in at_once)
print(numba.threading_layer())
"""


def test_threads_of_python_may_meet_in_kernels_under_the_layer_that_does_not_allow_it():
    done = subprocess.run(
        [sys.executable, "-c", MEETING],
        env={**os.environ, "NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["workqueue"]


def test_every_parallel_kernel_takes_turns():
    """A parallel kernel that its module holds bare would be called without the lock."""
    for module, name, kernel in dispatchers():
        if vars(module)[name] is kernel:
            assert not kernel.targetoptions.get("parallel"), f"{module.__name__}.{name}"


SAYING = """
import sys, time
from physics import jit
jit.PATIENCE = float(sys.argv[1])
sys.stderr.isatty = lambda: sys.argv[2] == "terminal"

@jit.kernel(cache=False)
def once(x):
    return x + 1

for x in (1, 1.5, 1j):  # a signature each
    once(x)
time.sleep(0.2)
"""


@pytest.mark.parametrize(
    ("patience", "where", "said"),
    [(0.0, "terminal", "compiling kernels, once\n"), (600.0, "terminal", ""), (0.0, "file", "")],
)
def test_a_long_compilation_says_so_once_and_only_to_a_terminal(python, patience, where, said):
    assert python(SAYING, patience, where).stderr == said


@jit.rows_kernel(cache=False)
def write_number(begin, end, out):
    for row in range(begin, end):
        out[row] += 3 * row + 1


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 47, 48, 200])
def test_threads_share_all_rows_and_do_each_once(monkeypatch, threads, count):
    monkeypatch.setattr(jit.numba, "get_num_threads", lambda: threads)
    out = np.zeros(count, np.int64)
    write_number(out)
    assert out.tolist() == [3 * row + 1 for row in range(count)]


@pytest.mark.parametrize("refused", range(6))
def test_an_error_in_any_part_comes_out_when_all_threads_have_ended(monkeypatch, refused):
    monkeypatch.setattr(jit.numba, "get_num_threads", lambda: 6)
    done = []

    def kernel(begin, end):
        if begin == refused:
            raise ValueError(f"row {begin}")
        time.sleep(0.02)
        done.append(begin)

    shared = jit._in_parts(kernel, lambda: 6, 2, kernel)
    with pytest.raises(ValueError, match=f"row {refused}"):
        shared()
    assert sorted(done) == sorted(set(range(6)) - {refused})


def test_the_callers_thread_takes_its_share_of_the_parts(monkeypatch):
    monkeypatch.setattr(jit.numba, "get_num_threads", lambda: 2)
    workers, both = [], threading.Barrier(2)

    def kernel(begin, end):
        both.wait(60)  # until another thread is at work too
        workers.append(threading.get_ident())

    jit._in_parts(kernel, lambda: 64, 2, kernel)()
    assert len(workers) == 8
    assert workers.count(threading.get_ident()) == 4


def test_few_rows_are_left_to_the_callers_thread(monkeypatch):
    monkeypatch.setattr(jit.numba, "get_num_threads", lambda: 2)
    calls = []
    jit._in_parts(lambda begin, end: calls.append((begin, end)), lambda: 64, 65, len)()
    assert calls == [(0, 64)]


@pytest.mark.parametrize(("layer", "waits"), [("omp", False), ("tbb", False), ("workqueue", True)])
def test_calls_wait_for_each_other_only_where_they_must(monkeypatch, layer, waits):
    monkeypatch.setattr(jit, "_calls_may_meet", False)
    monkeypatch.setattr(jit.numba, "threading_layer", lambda: layer)
    inside, leave = threading.Event(), threading.Event()

    def work(stay):
        if stay:
            inside.set()
            leave.wait(60)

    kernel = jit._in_turn(lambda function: function)(work)
    kernel(False)  # the layer is known after a call
    slow = threading.Thread(target=kernel, args=(True,))
    slow.start()
    assert inside.wait(60)
    quick = threading.Thread(target=kernel, args=(False,))
    quick.start()
    quick.join(0.3 if waits else 60)
    assert quick.is_alive() == waits
    leave.set()
    for thread in (slow, quick):
        thread.join(60)
        assert not thread.is_alive()
