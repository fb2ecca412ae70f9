"""`grokphys warm`: nothing is left to compile after it."""

import subprocess
import sys

import pytest

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
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def compiled(call):
        ran = subprocess.run([sys.executable, "-c", COUNT, call], capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    subprocess.run([sys.executable, "-m", "grokphys", "warm"], check=True)
    assert {call: compiled(call) for call in CALLS} == dict.fromkeys(CALLS, "[]")
