"""Compiled kernels: their cache, threads of Python, forked processes, and users without a place for them."""

import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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


TWICE = """
import hashlib, physics
trajectory = physics.simulate(physics.ParticleSystem(40), steps=40, runs=2)
print(hashlib.sha256(trajectory.positions.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_process_that_compiles_has_the_bits_of_those_that_load(tmp_path):
    """In a copy without compiled code, as sums that may be reordered depend on what they are inlined into."""
    for package in ("physics", "nets", "analysis", "grokphys"):
        source = Path(physics.__file__).parents[1] / package
        shutil.copytree(source, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    options = {"env": environment, "cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300}
    first, second = (subprocess.run([sys.executable, "-c", TWICE], **options) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert any(tmp_path.rglob("*.nbi"))
    assert first.stdout == second.stdout


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


MEETING = """
import threading
import numba, numpy as np
import physics

def simulate(seed):  # as many pair sums as all cores share in every step
    moved = physics.simulate(physics.ParticleSystem(56), steps=40, seed=seed, record=20)
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


def total(seed):
    return float(np.abs(physics.simulate(physics.ParticleSystem(60), steps=1, seed=seed).final).sum())


def test_a_forked_pool_computes_what_its_parent_does():
    """GNU's OpenMP, Numba's default on Linux, ends a forked child that computes, and its pool hangs."""
    wanted = [total(seed) for seed in range(4)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(total, range(4)).get(timeout=60) == wanted


NOWHERE = """
import tempfile
from physics import jit

real = tempfile.TemporaryFile

def refuse(dir):
    if "kernels" in dir:  # a temporary directory
        return real(dir=dir)
    raise PermissionError(dir)

tempfile.TemporaryFile = refuse  # Numba's test of whether it can write to a directory

@jit.kernel()
def double(x):
    return 2.0 * x

@jit.kernel()
def triple(x):
    return 3.0 * x

print(double(3.0), triple(2.0))
"""


def test_where_nothing_can_be_written_kernels_are_compiled_and_one_line_says_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(NOWHERE)
    environment = {**os.environ, "PYTHONPATH": str(Path(jit.__file__).parents[1])}
    environment.pop("NUMBA_CACHE_DIR", None)

    command = [sys.executable, script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "6.0 6.0\n"
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert len(done.stderr.splitlines()) == 1
