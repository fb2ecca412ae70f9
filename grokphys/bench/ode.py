"""`grokphys bench ode`: fits of laws against scikit-learn, PySINDy and PyDMD on the same data, in one run."""

import contextlib
import importlib.util
import io
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from sklearn.linear_model import Lasso, LinearRegression

from analysis import LinearODERegressor, affine_solution, batch_lasso, fit_trajectories, match_trajectories
from grokphys.bench.timing import Row, best, machine, measured, rows_of, targets
from grokphys.cli.analyze import analyze as analyze_files
from grokphys.files import embedded_trajectory
from grokphys.output import Budget
from grokphys.report import circles as ding
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
PEERS = {"pysindy": "PySINDy", "pydmd": "PyDMD"}
ALPHA = 0.01
FRESH = (
    "import sys; from grokphys.cli.analyze import analyze; analyze(tuple(sys.argv[1:])); "
    "from grokphys.bench.timing import peak_gib; print(peak_gib())"
)
"""Program that analyzes the files of its arguments, and prints its largest memory in GiB."""


def bench_ode(*, out: Path = Path("results/bench/ode.json"), budget: Budget = "default") -> int:
    """Measure fits of linear laws against those of other packages, with errors of coefficients and times.

    Every number comes from this run, on this machine; compilation is not timed.

    Args:
        out: JSON file to write the table to.
        budget: quick takes seconds; default lets the references run longer; paper lets them fit all 29
            targets.
    """
    missing = [name for module, name in PEERS.items() if importlib.util.find_spec(module) is None]
    parts: tuple[Callable[[], list[Row]], ...] = (
        lambda: lasso_rows(budget),
        least_squares_rows,
        solution_rows,
        clean_rows,
        lambda: noisy_rows({"quick": 3, "default": 20, "paper": 100}[budget], missing),
        lambda: analyze_rows({"quick": 5, "default": 30, "paper": 100}[budget]),
    )
    measures = {"machine": machine, "missing": lambda: missing, "rows": lambda: rows_of(parts, "ode")}
    status = measured("ode", out, measures, lambda result: [targets(result["rows"])])
    for name in missing:
        print(f"{name} is not installed, so it is not in the table: pip install 'grokphys[bench]'")
    return status


def signal_problems(count: int) -> list[tuple[Array, Array]]:
    """Return states and increments of the example run and of variants, which are equally collinear.

    A variant scales every signal by up to 5 % and adds noise that is smooth in time.

    Parameters
    ----------
    count : int
        Number of problems; the first is the example run itself.

    Returns
    -------
    list of pair of ndarray of float64, shape (frames, K)
        Signals, and their changes to the next frame.
    """
    real = ding.signals_of(Trajectory.open(embedded_trajectory()), 0, 1000)[0].values
    generator = np.random.default_rng(0)
    wave = np.arange(len(real))[:, None] / 100
    problems = []
    for k in range(count):
        phase = generator.uniform(0, 2 * np.pi, real.shape[1])
        x = real * (1 + 0.05 * generator.standard_normal(real.shape[1]) * (k > 0))
        x = x + (k > 0) * np.sin(wave * generator.uniform(0.5, 2, real.shape[1]) + phase)
        problems.append((x[:-1], np.diff(x, axis=0)))
    return problems


def lasso_rows(budget: Budget) -> list[Row]:
    """Fit all targets of 100 trajectories by Lasso, and compare with scikit-learn on some targets.

    Returns
    -------
    list of Row
        Times for one target, and the largest error of a coefficient, for scikit-learn with and without a Gram
        matrix. The budget says how many targets of the first trajectory scikit-learn fits.
    """
    problems = signal_problems(100)
    batch_lasso(problems[:1], alpha=ALPHA)
    found = batch_lasso(problems, alpha=ALPHA)
    assert found.converged.all(), "a target has not converged"
    targets = found.coef.shape[1]
    ours = best(lambda: batch_lasso(problems, alpha=ALPHA), 3) / (100 * targets)
    X, Y = problems[0]
    chosen = range(targets)[:: {"quick": 10, "default": 5, "paper": 1}[budget]]
    what = f"Lasso, a target of 100 trajectories x {targets} targets x {len(X)} steps"
    rows = []
    for name, options in (("", {}), (", its Gram matrix", {"precompute": True})):
        seconds, errors = 0.0, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for target in chosen:
                model = Lasso(alpha=ALPHA, tol=1e-10, max_iter=100_000, **options)
                start = perf_counter()
                model.fit(X, Y[:, target])
                seconds += perf_counter() - start
                if model.n_iter_ < model.max_iter:
                    errors.append(float(np.abs(model.coef_ - found.coef[0, target, 0]).max()))
        theirs = seconds / len(chosen)
        rows.append(
            {
                "what": f"{what}, scikit-learn{name}",
                "ours_s": ours,
                "reference_s": theirs,
                "error": max(errors, default=np.nan),
                "target": "20 times as fast, 1e-8",
                "met": theirs / ours >= 20 and max(errors, default=np.nan) <= 1e-8,
            }
        )
    return rows


def least_squares_rows() -> list[Row]:
    """Time the fit of 29 targets by least squares, and that by scikit-learn one target after another.

    The list has one `Row`, with both times in seconds and the target of 5 ms.
    """
    X, Y = signal_problems(1)[0]
    ours = best(lambda: LinearODERegressor(penalty=None).fit(X, Y))
    theirs = best(lambda: [LinearRegression().fit(X, y) for y in Y.T], 2)
    return [
        {
            "what": f"least squares of {Y.shape[1]} targets, scikit-learn",
            "ours_s": ours,
            "reference_s": theirs,
            "target": "at most 5 ms",
            "met": ours <= 5e-3,
        }
    ]


def solution_rows() -> list[Row]:
    """Compare the exact solution of ``dx/dt = A x + b`` with an integrator of tolerance 1e-12.

    Returns
    -------
    list of Row
        Times of both and their largest difference, for a regular and for a singular matrix A.
    """
    generator = np.random.default_rng(2)
    singular = generator.standard_normal((6, 3)) @ generator.standard_normal((3, 6)) / 6
    rows = []
    times = np.linspace(0, 3, 31)
    for name, A in (("regular", generator.standard_normal((6, 6)) / 2), ("singular", singular)):
        b, x0 = generator.standard_normal(6), generator.standard_normal(6)

        def integrate(A: Array = A, b: Array = b, x0: Array = x0) -> Any:
            return solve_ivp(
                lambda _, x: A @ x + b, (0, 3), x0, t_eval=times, rtol=1e-12, atol=1e-13, method="DOP853"
            ).y.T

        error = float(np.abs(affine_solution(A, b, x0, times) - integrate()).max())
        rows.append(
            {
                "what": f"affine solution, {name} A, 31 times, DOP853 at 1e-12",
                "ours_s": best(lambda A=A, b=b, x0=x0: affine_solution(A, b, x0, times)),  # type: ignore[misc]
                "reference_s": best(integrate, 2),
                "error": error,
                "target": "at most 1e-9",
                "met": error <= 1e-9,
            }
        )
    return rows


def oscillators() -> tuple[Array, Array]:
    """Return a linear law ``dx/dt = A x + b`` of two damped oscillators, in mixed coordinates.

    Returns
    -------
    ndarray of float64, shape (4, 4)
        The matrix A.
    ndarray of float64, shape (4,)
        The constant b.
    """
    generator = np.random.default_rng(0)
    pure = np.zeros((4, 4))
    pure[:2, :2] = [[-0.05, 1], [-1, -0.05]]
    pure[2:, 2:] = [[-0.1, 2.3], [-2.3, -0.1]]
    mix = np.linalg.qr(generator.standard_normal((4, 4)))[0] * [1, 0.8, 1.2, 0.7]
    return mix @ pure @ np.linalg.inv(mix), generator.standard_normal(4)


def uneven_times(generator: np.random.Generator, count: int = 200, end: float = 15.0) -> Array:
    """Return times of an even grid, each shifted by up to 0.4 of the spacing.

    Parameters
    ----------
    generator : numpy.random.Generator
        Random stream.
    count : int, default 200
        Number of times.
    end : float, default 15.0
        Length of the grid.

    Returns
    -------
    ndarray of float64, shape (count,)
        Increasing times from 0.
    """
    grid = np.arange(count) + generator.uniform(-0.4, 0.4, count)
    return np.asarray((grid - grid[0]) * end / count)


def clean_rows() -> list[Row]:
    """Recover a known law from data without noise: a map from even times, and a flow from uneven ones.

    Returns
    -------
    list of Row
        Time in seconds, and relative error of A and b together, of each method.
    """
    A, b = oscillators()
    generator = np.random.default_rng(1)
    x0 = 3 * generator.standard_normal(4)
    even = np.arange(0, 15, 0.1)
    uneven = uneven_times(generator)
    states = {"even": affine_solution(A, b, x0, even), "uneven": affine_solution(A, b, x0, uneven)}
    calls = {
        "increment map and logarithm, even times": lambda: fit_trajectories(
            states["even"], even, penalty=None
        ).to_generator(),
        "matched trajectories, uneven times": lambda: _pair(match_trajectories(states["uneven"], uneven)),
    }
    rows: list[Row] = []
    for name, call in calls.items():
        error = _error(call(), A, b)
        rows.append(
            {
                "what": f"recovery from clean data, {name}",
                "ours_s": best(call, 1),
                "error": error,
                "target": "at most 1e-8",
                "met": error <= 1e-8,
            }
        )
    return rows


def noisy_rows(draws: int, missing: list[str]) -> list[Row]:
    """Recover a law from data at uneven times with 1 % noise, by this package and by others.

    Parameters
    ----------
    draws : int
        Number of random data sets.
    missing : list of str
        Packages that are not installed, which are left out.

    Returns
    -------
    list of Row
        Median relative error of A and b together, and mean time, of each method. Without a peer there is no
        target.
    """
    A, b = oscillators()
    generator = np.random.default_rng(3)
    errors: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    methods: dict[str, Any] = {"ours": lambda x, t: _pair(match_trajectories(x, t))}
    if "PyDMD" not in missing:
        methods["PyDMD, optimized DMD"] = _pydmd
    if "PySINDy" not in missing:
        methods["PySINDy, smoothed differences"] = lambda x, t: _pysindy(x, t, smooth=True)
        methods["PySINDy, finite differences"] = lambda x, t: _pysindy(x, t, smooth=False)
    for _ in range(draws):
        t = uneven_times(generator)
        x = affine_solution(A, b, 3 * generator.standard_normal(4), t)
        x = x + 0.01 * x.std(axis=0) * generator.standard_normal(x.shape)
        for name, method in methods.items():
            start = perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error = _error(method(x, t), A, b)
            seconds[name] = seconds.get(name, 0.0) + (perf_counter() - start) / draws
            errors.setdefault(name, []).append(error)
    medians = {name: float(np.median(values)) for name, values in errors.items()}
    rows: list[Row] = [
        {
            "what": f"recovery from 1 % noise, uneven times, median of {draws}, ours",
            "ours_s": seconds["ours"],
            "error": medians["ours"],
        }
    ]
    if peers := [value for name, value in medians.items() if name != "ours"]:
        rows[0]["target"] = "no worse than the better peer, to 5 %"
        rows[0]["met"] = medians["ours"] <= 1.05 * min(peers)
    rows += [
        {
            "what": f"  the same, {name}",
            "ours_s": seconds["ours"],
            "reference_s": seconds[name],
            "error": medians[name],
        }
        for name in methods
        if name != "ours"
    ]
    return rows


def analyze_rows(files: int) -> list[Row]:
    """Time `grokphys analyze` on files, compare it with only reading them, and measure its memory.

    The memory is the largest of a new process. There are `files` files of float32 frames (200, 59, 128). The
    list has one `Row`.
    """
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as directory:
        for k in range(files):
            E = generator.standard_normal((1, 59, 128)) * np.linspace(1, 0.2, 200)[:, None, None]
            E = (E + 0.01 * generator.standard_normal(E.shape)).astype(np.float32)
            Trajectory(E[None], np.arange(200)).save(Path(directory) / f"{k}.h5")
        paths = sorted(Path(directory).glob("*.h5"))

        def read() -> None:
            for path in paths:
                for _ in Trajectory.open(path).blocks():
                    pass

        def analyze() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                analyze_files(tuple(map(str, paths)))

        reading_s, analyzing_s = best(read, 3) / files, best(analyze, 3) / files
        command = [sys.executable, "-c", FRESH, *map(str, paths)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        peak = float(said.split()[-1])
    return [
        {
            "what": f"analyze a file of 200 x 59 x 128 float32, of {files}, reading",
            "ours_s": analyzing_s,
            "reference_s": reading_s,
            "peak_gib": peak,
            "target": f"70 % of reading, 1 GiB ({peak:.2f} GiB)",
            "met": reading_s / analyzing_s >= 0.7 and peak <= 1,
        }
    ]


def _pair(fit: Any) -> tuple[Array, Array]:
    return fit.A, fit.b


def _error(found: tuple[Array, Array], A: Array, b: Array) -> float:
    """Return the relative error of the matrix A and the constant b that were found, in the Frobenius norm."""
    true = np.column_stack([A, b])
    return float(np.linalg.norm(np.column_stack(found) - true) / np.linalg.norm(true))


def _pydmd(x: Array, t: Array) -> tuple[Array, Array]:
    """Return A and b that PyDMD's optimized DMD fits to states x (n, K) at times t (n,).

    A row of ones stands for the constant b.
    """
    import pydmd

    size = x.shape[1]
    model = pydmd.BOPDMD(svd_rank=size + 1, num_trials=0)
    model.fit(np.vstack([x.T, np.ones(len(t))]), t)
    matrix = np.real(model.modes @ np.diag(model.eigs) @ np.linalg.pinv(model.modes))
    return matrix[:size, :size], matrix[:size, size]


def _pysindy(x: Array, t: Array, *, smooth: bool) -> tuple[Array, Array]:
    """Return A and b that PySINDy fits to states x (n, K) at times t (n,), without a threshold.

    Derivatives are finite differences, which `smooth` smooths.
    """
    import pysindy

    model = pysindy.SINDy(
        optimizer=pysindy.STLSQ(threshold=0, alpha=0),
        feature_library=pysindy.PolynomialLibrary(degree=1),
        differentiation_method=pysindy.SmoothedFiniteDifference() if smooth else pysindy.FiniteDifference(),
    )
    model.fit(x, t=t)
    coefficients = model.coefficients()
    return coefficients[:, 1:], coefficients[:, 0]
