"""`grokphys bench ode`: fits of laws against scikit-learn on the same data, in one run."""

import warnings
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Lasso

import physics
from analysis.laws.lasso import batch_lasso
from grokphys.bench.timing import Effort, Row, compare, goal

Array = NDArray[np.float64]
ALPHA = 0.01


def signal_problems(count: int) -> list[tuple[Array, Array]]:
    """Return states and increments of the example run, and of variants that are equally collinear.

    A variant scales every signal by up to 5 % and adds noise that is smooth in time.
    """
    real = np.asarray(physics.example("ding").observables["fourier_signals"][0], np.float64)
    generator = np.random.default_rng(0)
    wave = np.arange(len(real))[:, None] / 100
    problems = []
    for k in range(count):
        phase = generator.uniform(0, 2 * np.pi, real.shape[1])
        x = real * (1 + 0.05 * generator.standard_normal(real.shape[1]) * (k > 0))
        x = x + (k > 0) * np.sin(wave * generator.uniform(0.5, 2, real.shape[1]) + phase)
        problems.append((x[:-1], np.diff(x, axis=0)))
    return problems


def lasso(effort: Effort) -> list[Row]:
    """All targets of 100 trajectories by Lasso, against scikit-learn on some targets of the first."""
    problems = signal_problems(100)
    found = batch_lasso(problems, alpha=ALPHA)
    X, Y = problems[0]
    chosen = range(Y.shape[1])[:: 10 if effort.part > 1 else 5]
    model = Lasso(alpha=ALPHA, tol=1e-10, max_iter=100_000)

    def theirs() -> list[Array]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [model.fit(X, Y[:, target]).coef_ for target in chosen]

    error = float(np.abs(np.array(theirs()) - found.coef[0, list(chosen), 0]).max())
    return compare(
        f"Lasso, a target of {found.coef.shape[0] * Y.shape[1]}",
        partial(batch_lasso, problems, alpha=ALPHA),
        {"scikit-learn": (theirs, len(chosen))},
        units=100 * Y.shape[1],
        rounds=min(effort.rounds, 3),
        error=error,
        **goal("all converged, 1e-6", found.converged.all() and error <= 1e-6),
    )


BENCHMARKS = (lasso,)
