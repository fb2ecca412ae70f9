"""`grokphys bench ode`: fits of laws against scikit-learn and integrators on the same data, in one run."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from sklearn.linear_model import Lasso, LinearRegression

import analysis
import physics
from analysis.laws.flow import affine_solution
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


def least_squares(effort: Effort) -> list[Row]:
    """29 targets by least squares, against scikit-learn one target after another."""
    X, Y = signal_problems(1)[0]
    ours = partial(analysis.LinearODERegressor(penalty=None).fit, X, Y)
    theirs = {"scikit-learn": lambda: [LinearRegression().fit(X, y) for y in Y.T]}
    return compare(f"least squares of {Y.shape[1]} targets", ours, theirs, rounds=effort.rounds)


def solution(effort: Effort) -> list[Row]:
    """The exact solution of an affine law, against an integrator of tolerance 1e-12."""
    generator = np.random.default_rng(2)
    singular = generator.standard_normal((6, 3)) @ generator.standard_normal((3, 6)) / 6
    rows, times = [], np.linspace(0, 3, 31)
    for name, A in (("regular", generator.standard_normal((6, 6)) / 2), ("singular", singular)):
        b, x0 = generator.standard_normal(6), generator.standard_normal(6)

        def integrate(A: Array = A, b: Array = b, x0: Array = x0) -> Any:
            slope = lambda _, x: A @ x + b  # noqa: E731
            return solve_ivp(slope, (0, 3), x0, t_eval=times, rtol=1e-12, atol=1e-13, method="DOP853").y.T

        ours = partial(affine_solution, A, b, x0, times)
        error = float(np.abs(ours() - integrate()).max())
        checks: Row = {"error": error} | goal("at most 1e-9", error <= 1e-9)
        rows += compare(f"affine flow, {name} A", ours, {"DOP853": integrate}, rounds=effort.rounds, **checks)
    return rows


BENCHMARKS = (lasso, least_squares, solution)
