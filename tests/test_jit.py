import os
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize(("chosen", "found"), [({}, "10000"), ({"GOMP_SPINCOUNT": "77"}, "77")])
def test_idle_threads_sleep_soon_unless_the_user_says_otherwise(python, chosen, found):
    pytest.importorskip("numba.np.ufunc.omppool")
    code = "import os, physics; print(os.environ.get('GOMP_SPINCOUNT')); import numba.np.ufunc.omppool"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GOMP", "OMP"))}
    done = python(code, env={**environment, "OMP_DISPLAY_ENV": "VERBOSE", **chosen})
    assert done.stdout.strip() == str(chosen.get("GOMP_SPINCOUNT"))  # what we set is gone again
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("Numba has no GNU OpenMP here")
    assert f"GOMP_SPINCOUNT = '{found}'" in done.stderr
