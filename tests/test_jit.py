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
