"""`grokphys warm`: nothing is left to compile after it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CALLS = (
    "import physics; physics.simulate()",
    "import physics; physics.simulate(physics.ParticleSystem(60), steps=2)",
    "import physics; physics.simulate(physics.EffectiveTheory(dim=2))",
    "import physics as p; t = p.EffectiveTheory(10); p.closures(t, p.random_training_sets(t, 20, sets=5))",
    "import physics; physics.simulate(physics.FourierLottery(23, 4), steps=1, step_size=1e-3)",
    "import nets; nets.train(nets.EmbeddingMLP(11, 8, (16,)), steps=3)",
    "import nets; nets.train(nets.TwoLayer(11, 16), steps=3)",
    "import analysis, numpy as np; x = np.eye(9, 3); analysis.laws.batch_lasso([(x, x)])",
)
COUNT = """
import sys
from numba.core import event

class Count(event.Listener):
    compiled = []

    def on_start(self, seen):
        self.compiled.append(str(seen.data["dispatcher"]))

    def on_end(self, seen):
        pass

event.register("numba:compile", Count())
exec(sys.argv[1])
print(Count.compiled)
"""


@pytest.mark.slow
def test_nothing_is_left_to_compile(tmp_path, monkeypatch):
    for package in ("physics", "nets", "analysis", "grokphys"):  # without what is compiled beside them
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)  # which Python searches first
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    def compiled(call):
        ran = subprocess.run([sys.executable, "-c", COUNT, call], capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    assert compiled(CALLS[0]) != "[]", "the cache is empty at first"
    subprocess.run([sys.executable, "-m", "grokphys", "warm"], check=True)
    assert {call: compiled(call) for call in CALLS} == dict.fromkeys(CALLS, "[]")
