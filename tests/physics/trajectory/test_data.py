import numpy as np

import analysis
import physics
from grokphys.files import embedded_trajectory
from physics.trajectory.provenance import plain


def test_the_embedded_trajectory_is_what_its_readme_says():
    real = physics.load(embedded_trajectory())
    assert embedded_trajectory().stat().st_size < 3_000_000
    assert real.complete
    assert (real.runs, real.frames, real.tokens, real.dim) == (1, 80, 59, 128)
    assert analysis.surviving_frequencies(real.final[0]).tolist() == [7, 8, 11, 13, 25]
    signals = real.observables["fourier_signals"][0]
    steps = real.clock("fourier_signals")[0]
    np.testing.assert_array_equal(steps, np.arange(1001))
    early = real.steps <= 1000
    computed = analysis.fourier_signals(real.positions[0, early])
    np.testing.assert_allclose(signals[real.steps[early]], computed, atol=1e-4)
    assert real.observables["test_accuracy"][0, -1] == 1.0


def test_parameters_are_kept_as_a_file_would_give_them_back():
    given = {"hidden": (100, 100), "rates": (np.array([0.5, 1.0]), np.float32(2)), "name": ("a", None)}
    assert plain(given) == {"hidden": [100, 100], "rates": [[0.5, 1.0], 2.0], "name": ["a", None]}
