"""Tables of Musat's numbers beside ours, of the fits, and of survival: every cell has its own source."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from trajectories import circles

import physics
from analysis.circles import StoppingRule
from analysis.circles.classes import structures
from analysis.circles.prediction import survival_rates
from analysis.stats.intervals import Interval, correlation, mean
from grokphys.papers.musat.figures import typical_runs
from grokphys.papers.recipe import Number
from grokphys.report import demo, survival
from grokphys.report.circles import r2, score_table, survivors
from grokphys.report.page import document


@pytest.fixture(scope="module")
def particles():
    return physics.simulate(physics.ParticleSystem(alignment=2.0), runs=12, steps=80, seed=3)


def test_numbers_of_musat_stand_beside_ours_of_the_runs_that_they_are_about(particles):
    accuracy = np.random.default_rng(0).uniform(0.2, 0.9, (12, particles.frames))
    trained = physics.Trajectory(
        particles.positions, particles.steps, observables={"validation_accuracy": accuracy}
    )
    verdicts, particle, network = demo.numbers_of_musat({1.0: particles, 2.0: particles}, {0.3: trained})
    found = structures(particles.final)
    last, rest = 100 * accuracy[:, -1], ~found.circle
    circles, grids = found.circles.map(lambda part: 100 * part), mean(found.imperfections[rest])
    (*_, first, second), rows = particle.tables[0].rows, network.tables[0].rows
    assert first[:3] == ["f_a = 2: circles (%)", "56 [46, 65]", circles.format(1)]
    assert second[:3] == ["f_a = 2: grid imperfections of the rest", "42.9 [32.8, 53.0]", grids.format(1)]
    assert "of 12 runs of particles here and 100 in the paper" in particle.tables[0].caption
    assert [row[0].partition(": ")[2] for row in rows] == [
        "circles (%)", "accuracy of 99 that are no circles (%)", "grid imperfections", "correlation",
        "accuracy of 1 circles (%)",
    ]  # fmt: skip
    assert [row[1] for row in rows] == [
        "1 [0, 5]", "34.8", "72.7 [66.1, 79.3]", "-0.90 [-0.93, -0.85]", "77.4"
    ]  # fmt: skip
    assert [row[2].partition(" ")[0] for row in rows] == [
        f"{circles.estimate:.1f}", f"{last[rest].mean():.1f}", f"{grids.estimate:.1f}",
        f"{np.corrcoef(found.imperfections[rest], last[rest])[0, 1]:.2f}", f"{last[~rest].mean():.1f}",
    ]  # fmt: skip
    assert "for 80 epochs" in network.text[0]
    words = [row[3] for row in rows]
    assert f"Table 1 of Musat: {words.count('agrees')} of 5 numbers agree" in verdicts.text[0]


@pytest.mark.parametrize(
    ("low", "high", "interval", "word"),
    [
        (1.0, 3.0, None, "agrees"), (3.0, 5.0, (1.0, 4.0), "intervals overlap"),
        (3.0, 5.0, None, "differs"),
        (math.nan, math.nan, None, "no interval here"),
    ],
)  # fmt: skip
def test_a_number_agrees_overlaps_or_differs(low, high, interval, word):
    rule = Number("n", "2.0", None, 1.0, interval)
    assert demo.verdict(rule, Interval(4.0, low, high, 9)) == word
    assert demo.verdict(rule, Interval(math.nan, low, high, 0)) == "none here"


def test_typical_runs_are_the_roundest_circle_the_best_grid_and_the_median_one(particles):
    found = SimpleNamespace(
        circle=np.array([True, False, True, False, False, False]),
        imperfections=np.array([0, 30, 1, 10, 20, 10]),
    )
    ratios = physics.circle_ratio(particles.final[:6])
    assert typical_runs(particles, found) == {
        "circle": 0 if ratios[0] < ratios[2] else 2, "grid": 3, "imperfect grid": 4
    }  # fmt: skip
    found = SimpleNamespace(circle=np.array([False]), imperfections=np.array([7]))
    assert typical_runs(particles, found) == {"grid": 0}


# -- fits ---------------------------------------------------------------------------------------------------


def scored(forward=None, across=()):
    """What a table reads of scores."""
    means = {"derivative": 0.25, "rollout": -3.0, "survivors": 0.5} if across else {}
    inside = SimpleNamespace(derivative=0.75, rollout=math.inf)
    return SimpleNamespace(
        law=None, in_sample=inside, forward=forward, across=across,
        median=lambda name: means.get(name, math.nan), mean=lambda name: means.get(name, math.nan),
    )  # fmt: skip


def test_a_row_of_scores_keeps_their_order_and_leaves_out_what_nobody_has():
    later = SimpleNamespace(derivative=0.125, rollout=-0.5)
    short = score_table({"fit": scored()}, "w")
    assert short.header == ["fit", "R² in sample: changes", "R² in sample: rollout"]
    assert short.rows == [["fit", "0.7500", "overflow"]]
    whole = score_table({"a": scored(later, (1,)), "b": scored()}, "steps 0 to 9")
    assert whole.rows[0] == ["a", "0.7500", "overflow", "0.1250", "-0.5000", "0.2500", "-3", "0.50"]
    assert whole.rows[1] == ["b", "0.7500", "overflow", *["-"] * 5]
    assert whole.header[-1] == "survivors found"
    assert "Across runs" in whole.caption
    assert "Across runs" not in short.caption
    assert ", steps 0 to 9." in whole.caption


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"), (0.99996, "> 0.999"), (0.998, "0.9980"), (-0.5, "-0.5000"), (-3.0, "-3"),
        (-1000.5, "below -1000"), (-math.inf, "overflow"), (math.nan, "-"),
    ],
)  # fmt: skip
def test_scores_that_say_no_more_than_a_bound_are_bounds(value, text):
    assert r2(value) == text


# -- survival -----------------------------------------------------------------------------------------------


@pytest.fixture
def read():
    """Two files of three runs with five circles each."""
    rng = np.random.default_rng(1)
    files = []
    for file in ("a.h5", "b.h5"):
        signals = rng.uniform(0.5, 1.5, (3, 6, 5))
        signals[:, -1] = np.where(signals[:, 0] > 0.9, 4.0, 0.1)
        steps = 10 * np.arange(6)
        whole = circles(steps, signals, signals[:, -1] > 1.0)
        names = [
            {"file": file, "run": run, "tokens": 11, "dim": 2, "parameter.weight_decay": 0.5}
            for run in range(3)
        ]
        files.append((names, whole, rng.normal(size=(3, 5))))
    return files


def test_a_row_of_survival_belongs_to_one_circle(read):
    rows = survival.rows(read)
    assert len(rows) == 30
    for n, row in enumerate(rows):
        names, circles, gradient = read[n // 15]
        run, k = n // 5 % 3, n % 5
        assert (row["file"], row["run"], row["frequency"]) == (names[run]["file"], run, k + 1)
        assert row["initial_signal"] == circles.signals[run, 0, k]
        assert row["final_signal"] == circles.signals[run, -1, k]
        assert row["initial_gradient"] == gradient[run, k]
        assert row["survived"] == (circles.signals[run, -1, k] > 1.0)


def test_the_report_counts_circles_by_size_and_weight_decay(read):
    read[1][0][0]["parameter.weight_decay"] = 1.0
    table, *_ = survival.report(read, "run", 2, 1.0, 2.0)
    counts = np.concatenate([circles.survived.values.sum(axis=1) for _, circles, _ in read])
    rows = [line.split(maxsplit=4) for line in table.splitlines() if line.startswith("11")]
    assert rows == [
        ["11", "2", "0.5", "5", mean(np.delete(counts, 3)).format(2)],
        ["11", "2", "1.0", "1", mean(counts[[3]]).format(2)],
    ]
    runs = (run for _, circles, _ in read for run in circles.signals)
    steps = np.array([StoppingRule().first(run.step, run) for run in runs], float)
    decided = steps[np.isfinite(steps)]
    caption = " ".join(table.split())
    assert f"were decided in {len(decided)} of 6 runs" in caption
    assert not len(decided) or f", median step {np.median(decided):.0f}." in caption


def test_the_report_has_the_rates_of_signals_and_of_gradients(read):
    alive = np.concatenate([circles.survived for _, circles, _ in read])
    signal = np.concatenate([circles.signals.values[:, 0] for _, circles, _ in read])
    gradient = np.concatenate([gradient for _, _, gradient in read])
    _, by_signal, by_gradient, related = survival.report(read, "run", 3, 1.0, 2.0)
    for values, text in ((signal, by_signal), (gradient, by_gradient)):
        for row in survival_rates(values, alive, bins=3, groups=np.arange(6)):
            assert f"{row.low:.4g} to {row.high:.4g}" in text
            assert row.rate.format(1, 100) in text
    runs = np.repeat(np.arange(6), 5)
    both = (correlation(x.ravel(), alive.ravel(), runs).format(2) for x in (signal, gradient))
    of_signal, of_gradient = both
    assert f"initial signal {of_signal}, with the gradient {of_gradient}." in " ".join(related.split())


def test_the_score_of_later_steps_stands_beside_that_of_the_fit():
    later = scored(SimpleNamespace(derivative=0, rollout=-2.0))
    later.in_sample.rollout = 0.9997
    values = {"circles": circles([0, 1], np.zeros((2, 3)), np.arange(3) < 1), "survivors": survivors}
    values |= {"linear": False, "r2": r2, "window": "w", "last": 1}
    (text,) = document("laws.txt", scores={"a": later, "b": scored()}, **values)[0].text
    assert "a: R² > 0.999 in sample, -2 forward" in text
