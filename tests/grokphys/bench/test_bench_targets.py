"""The benchmarks of laws and of CUDA with calls that only note what they are asked: counts and targets."""

from types import SimpleNamespace

import numpy as np
import pytest

from grokphys.bench import gpu as bench_gpu
from grokphys.bench import gpu_tables
from grokphys.bench import ode as bench_ode
from grokphys.bench.timing import spread


class FakeLasso:
    """An estimator that finds the coefficients 1 to 3, off by an error, unless it takes all its sweeps."""

    made: list = []  # noqa: RUF012
    error, sweeps = 0.0, 5

    def __init__(self, **options):
        self.options, self.max_iter = options, options["max_iter"]
        FakeLasso.made.append(options)

    def fit(self, X, y):
        self.coef_, self.n_iter_ = np.array([1.0, 2.0, 3.0]) + FakeLasso.error, FakeLasso.sweeps


@pytest.mark.parametrize(("budget", "fits"), [("quick", 3), ("default", 5), ("paper", 21)])
def test_the_lasso_is_held_against_some_targets_of_the_first_run(monkeypatch, budget, fits, noted):
    coef = np.tile([1.0, 2.0, 3.0], (2, 21, 1, 1))
    found = SimpleNamespace(converged=np.ones((2, 21), bool), coef=coef)
    asked = noted(bench_ode, "batch_lasso", found)
    problems = noted(bench_ode, "signal_problems", [(np.zeros((9, 3)), np.zeros((9, 21)))] * 2)
    monkeypatch.setattr(bench_ode, "Lasso", FakeLasso)
    clock = iter(np.arange(1000.0))
    monkeypatch.setattr(bench_ode, "perf_counter", lambda: next(clock))
    for ours, error, sweeps, met in (
        (0.05, 1e-8, 5, True), (0.0501, 0.0, 5, False), (0.05, 1.1e-8, 5, False), (0.05, 0.0, 100_000, False)
    ):  # fmt: skip
        FakeLasso.made, FakeLasso.error, FakeLasso.sweeps = [], error, sweeps
        monkeypatch.setattr(bench_ode, "best", lambda call, repeats, ours=ours: ours * 100 * 21)
        plain, gram = bench_ode.lasso_rows(budget)
        assert len(FakeLasso.made) == 2 * fits
        assert [("precompute" in options) for options in FakeLasso.made] == [False] * fits + [True] * fits
        assert {(one["alpha"], one["tol"]) for one in FakeLasso.made} == {(0.01, 1e-10)}
        for row in (plain, gram):
            assert (row["ours_s"], row["reference_s"], row["met"]) == (pytest.approx(ours), 1.0, met)
            assert np.isnan(row["error"]) if sweeps > 5 else row["error"] == pytest.approx(error, abs=1e-15)
        assert "100 trajectories x 21 targets x 9 steps" in plain["what"]
    assert {one[1]["alpha"] for one in asked} == {0.01}
    assert problems == [(100,)] * 4
    found.converged[1, 3] = False
    with pytest.raises(AssertionError, match="a target has not converged"):
        bench_ode.lasso_rows(budget)


def test_rows_of_laws_are_right_and_say_whether_they_meet_their_targets(monkeypatch, noted):
    took = iter([5e-3, 0.5, 5.1e-3, 0.5])
    monkeypatch.setattr(bench_ode, "best", lambda call, repeats=5: next(took))
    noted(bench_ode, "signal_problems", [(np.zeros((9, 3)), np.zeros((9, 4)))])
    for met in (True, False):
        (row,) = bench_ode.least_squares_rows()
        assert (row["met"], row["reference_s"], row["what"][:28]) == (
            met,
            0.5,
            "least squares of 4 targets, ",
        )
    monkeypatch.setattr(bench_ode, "best", lambda call, repeats=5: call() is not None and 0.5)
    solution, matrices = bench_ode.affine_solution, []

    def off(by):
        monkeypatch.setattr(
            bench_ode,
            "affine_solution",
            lambda A, b, x0, times: matrices.append(A) or solution(A, b, x0, times) + by,
        )
        return bench_ode.solution_rows()

    regular, singular = off(0.0)
    assert 0 < regular["error"] < 1e-10
    assert (regular["met"], singular["met"]) == (True, True)
    assert [np.linalg.matrix_rank(A) for A in (matrices[0], matrices[-1])] == [6, 3]
    assert not any(row["met"] for row in off(1.1e-9))
    monkeypatch.setattr(bench_ode, "affine_solution", solution)
    rows = bench_ode.clean_rows()
    assert [row["met"] for row in rows] == [True, True]
    assert all(0 < row["error"] <= 1e-8 for row in rows)
    monkeypatch.setattr(bench_ode, "_error", lambda found, A, b: 1.1e-8)
    assert [row["met"] for row in bench_ode.clean_rows()] == [False, False]


@pytest.mark.parametrize(
    ("reading", "kib", "met"),
    [(0.7, 2**20, True), (0.69, 2**20, False), (0.7, 2**20 + 2000, False), (0.9, 2**19, True)],
)
def test_the_analysis_of_files_is_held_against_reading_them(monkeypatch, reading, kib, met):
    saved, read, analyzed, fresh = [], [], [], []

    class Stored:
        def __init__(self, positions, steps):
            self.shape, self.steps = (positions.shape, positions.dtype), len(steps)

        def save(self, path):
            path.touch()
            saved.append((path.name, self.shape, self.steps))

        @staticmethod
        def open(path):
            read.append(path.name)
            return SimpleNamespace(blocks=lambda: iter([0, 1]))

    monkeypatch.setattr(bench_ode, "Trajectory", Stored)
    monkeypatch.setattr(bench_ode, "analyze_files", lambda files: analyzed.append(len(files)) or print("x"))
    took = iter([2 * reading, 2.0])
    monkeypatch.setattr(bench_ode, "best", lambda call, repeats: call() or next(took))
    monkeypatch.setattr(
        bench_ode.subprocess,
        "run",
        lambda command, **_: fresh.append(command[1:]) or SimpleNamespace(stdout=f"x\n{kib / 2**20}\n"),
    )
    (row,) = bench_ode.analyze_rows(2)
    assert saved == [(f"{k}.h5", ((1, 200, 59, 128), np.float32), 200) for k in range(2)]
    assert (read, analyzed) == (["0.h5", "1.h5"], [2])
    assert fresh[0][:2] == ["-c", bench_ode.FRESH]
    assert [path.rpartition("/")[2] for path in fresh[0][2:]] == ["0.h5", "1.h5"]
    assert (row["ours_s"], row["reference_s"], row["peak_gib"]) == (1.0, pytest.approx(reading), kib / 2**20)
    assert row["met"] is met


@pytest.mark.parametrize(
    ("budget", "draws", "files"), [("quick", 3, 5), ("default", 20, 30), ("paper", 100, 100)]
)
def test_a_budget_says_how_many_laws_and_files_are_measured(parts, monkeypatch, budget, draws, files, noted):
    names = ("lasso_rows", "least_squares_rows", "solution_rows", "clean_rows", "noisy_rows", "analyze_rows")
    asked = {name: noted(bench_ode, name, [{"what": name}]) for name in names}
    monkeypatch.setattr(bench_ode.importlib.util, "find_spec", lambda name: None if name == "pydmd" else 1)
    _, result, _ = parts(bench_ode, bench_ode.bench_ode, budget)
    assert [row["what"] for row in result["rows"]] == list(names)
    assert result["missing"] == ["PyDMD"]
    assert (asked["lasso_rows"], asked["noisy_rows"]) == ([(budget,)], [(draws, ["PyDMD"])])
    assert asked["analyze_rows"] == [(files,)]


# -- CUDA -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "minutes", "rounds"), [
    ({"budget": "quick"}, 2.0, 2), ({}, 10.0, 5), ({"budget": "paper"}, 60.0, 5), ({"minutes": 3.5}, 3.5, 5)
])  # fmt: skip
def test_a_budget_says_how_long_cuda_is_measured(monkeypatch, given, minutes, rounds, noted):
    monkeypatch.setattr(bench_gpu.torch.cuda, "is_available", lambda: True)
    asked = noted(bench_gpu, "run", 1)
    assert bench_gpu.bench_gpu(out="o", **given) == 1
    ((plan, out),) = asked
    assert (plan.minutes, plan.rounds, plan.device, plan.graphs, out) == (minutes, rounds, "cuda", True, "o")


def test_memory_is_measured_on_cuda_for_each_number_until_the_end(monkeypatch, noted):
    asked = noted(bench_gpu, "_peak", {"peak_bytes": 5})
    noted(bench_gpu, "draw", "drawn")
    plan = bench_gpu.Plan(checked={"embedding MLP": "model"}, networks=7, chunks=(1, 3, 7))
    clock = iter([0.0, 0.5, 1.0])
    monkeypatch.setattr(bench_gpu, "monotonic", lambda: next(clock))
    rows = list(bench_gpu.memory(plan, 1.0))
    assert rows == [{"members": 7, "chunk": chunk, "peak_bytes": 5} for chunk in (1, 3)]
    assert asked == [("drawn", "cuda", 1), ("drawn", "cuda", 3)]


def test_a_training_that_fails_is_named_and_one_that_is_slow_ends_in_time(monkeypatch):
    plan = bench_gpu.Plan(checked={"embedding MLP": "model"}, networks=7, steps=100)
    monkeypatch.setattr(bench_gpu, "monotonic", lambda: 0.0)

    def fails(plan, end):
        yield {"step": 1}
        raise MemoryError("no room\nat all")

    with monkeypatch.context() as patched:
        patched.setattr(bench_gpu, "_trained", fails)
        assert list(bench_gpu.training(plan, 1.0)) == [{"step": 1}, {"networks": 7, "error": "no room"}]
        assert list(bench_gpu.training(plan, 0.0)) == [], "it is too late"
    assert bench_gpu._failed(RuntimeError()) == {"error": "RuntimeError"}

    class Training:
        def __init__(self, model, **options):
            self.step = 0
            made.append(options)

        def advance(self, count):
            counts.append(count)
            self.step += count
            clock[0] += 2.0 * count

    counts, clock, made = [], [0.0], []
    monkeypatch.setattr(bench_gpu.nets, "Training", Training)
    monkeypatch.setattr(bench_gpu, "_state", lambda networks: {})
    monkeypatch.setattr(bench_gpu, "monotonic", lambda: clock[0])
    rows = list(bench_gpu._trained(plan, 100.0))
    # A fifth of the time that is left, at two seconds a step, and no more than twice the steps before.
    expected, left = [1], 98.0
    while next_count := int(min(2 * expected[-1], 0.2 * left / 2)):
        expected.append(next_count)
        left -= 2.0 * next_count
    assert counts == expected
    assert [row["seconds"] for row in rows] == (2.0 * np.cumsum(counts)).tolist()
    assert [row["step"] for row in rows] == np.cumsum(counts).tolist()
    ((options),) = made
    assert (options["runs"], options["engine"], options["device"]) == (7, "torch", "cuda")
    counts.clear()
    list(bench_gpu._trained(plan, 1e9))
    assert (sum(counts), counts[-1]) == (100, 37), "it ends at the last step"


def test_tables_of_cuda_show_each_number_in_its_column():
    row = {"model": "m", "dtype": "float32", "after_5": 1e-6, "after_50": 2e-5, "captured_after_5": None}
    row |= {"captured_after_50": 3e-4, "same_bits_again": True, "agrees": False}
    found = gpu_tables.agreement_table([row])
    cells = dict(zip(found.header, found.rows[0], strict=True))
    assert cells == {
        "model": "m", "type": "float32", "step 5": "1.0e-06", "captured 5": "-", "step 50": "2.0e-05",
        "captured 50": "3.0e-04", "same bits again": "yes", "agrees": "NO",
    }  # fmt: skip
    times = {"ours": spread([0.5]), "CPU": spread([1.0])}
    steps = {"model": "m", "members": 3, "step_s": times}
    steps["times_as_long"] = {"CPU": spread([2.0]), "loop": spread([9.0])}
    assert gpu_tables.steps_table([steps]).rows == [["m", "3", "500 ms", "2 [2, 2]", "9 [9, 9]", "-"]]
    memory = {"members": 4, "chunk": 2, "stored_bytes": 2**30, "peak_bytes": 2**31}
    memory |= {"activations_expected_bytes": 2**29, "step_s": spread([0.002])}
    assert gpu_tables.memory_table([memory]).rows == [["4", "2", "1 GiB", "2 GiB", "0.5 GiB", "2 ms"]]
    part = {"estimate": 0.5, "low": 0.25, "high": 0.75}
    state = {"step": 7, "seconds": 1.25, "train_accuracy": part, "networks": 9, "validation_reached_99": 4}
    state |= {"validation_accuracy": {name: value / 2 for name, value in part.items()}}
    state |= {"survivors": {name: 10 * value for name, value in part.items()}}
    assert gpu_tables.training_table([state]).rows == [
        ["7", "1.2", "50.0 [25.0, 75.0]", "25.0 [12.5, 37.5]", "4 of 9", "5.0 [2.5, 7.5]"]
    ]
