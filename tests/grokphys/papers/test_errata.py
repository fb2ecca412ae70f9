"""Mistakes of the papers and of their published code that no other test shows; see docs/errata.md."""

import numpy as np
import pytest

import analysis
from grokphys import phases as phase_training
from grokphys.papers.ding import figure_06
from grokphys.papers.ding.training import Circles, Size
from grokphys.papers.liu import images as liu_images
from grokphys.papers.recipe import Run
from physics import EffectiveTheory


def test_the_quadruples_of_eq_19_are_no_parallelograms():
    """Liu, Eq. 19 against Eq. 20."""
    printed = [(0, 1, 1, 2), (0, 1, 2, 3), (1, 2, 2, 3)]
    assert not any(i + j == m + n for i, j, m, n in printed)
    right = EffectiveTheory(4).parallelograms.tolist()
    assert all(i + j == m + n for i, j, m, n in right)
    assert len(right) == len(printed)


def test_normalised_embeddings_need_the_root():
    """Liu, §3.2: with the printed σ_t, a variance, the result depends on the unit."""
    E = np.random.default_rng(0).normal(3, 2, (10, 1))
    centred = E - E.mean(axis=0)

    def printed(x):
        return x / np.mean(np.sum(x**2, axis=1))

    assert printed(centred).std() != pytest.approx(1, rel=0.2)
    np.testing.assert_allclose(printed(10 * centred), printed(centred) / 10)
    start = EffectiveTheory(10).start(np.random.default_rng(0))
    assert start.std() == pytest.approx(1)


def test_eigenvalues_are_singular_values_squared_but_for_a_factor():
    """Liu, below Eq. 9: λ_i = σ_i² lacks 2/(Z_0 |P_0(D)|)."""
    theory = EffectiveTheory(7, pairs=[(0, 3), (1, 2), (0, 4), (1, 3), (2, 2), (4, 6), (5, 5)])
    A = np.zeros((theory.parallelogram_count, 7))
    for row, (i, j, m, n) in zip(A, theory.parallelograms, strict=True):
        for token, sign in ((i, 1), (j, 1), (m, -1), (n, -1)):
            row[token] += sign
    sigma = np.sort(np.r_[np.zeros(max(7 - len(A), 0)), np.linalg.svd(A, compute_uv=False)])
    Z_0 = theory.tokens
    np.testing.assert_allclose(theory.spectrum, 2 * sigma**2 / (Z_0 * theory.parallelogram_count), atol=1e-14)
    assert not np.allclose(theory.spectrum, sigma**2)


def test_thresholds_are_those_of_table_1():
    """Liu, Table 1 has 90 %; Appendix J says 95 %, and takes 60 % for images."""
    assert phase_training.ACCURACIES == {"train_accuracy": 0.9, "validation_accuracy": 0.9}
    assert liu_images.THRESHOLDS == {"train_accuracy": 0.9, "validation_accuracy": 0.6}
    phases = analysis.classify_phases([100, 100], [100 + 999, 100 + 1000])
    assert phases.tolist() == ["comprehension", "grokking"]


def test_the_printed_signal_of_a_perfect_circle_is_zero():
    """Ding, below Eq. 1: Σ_j (F_k^j)² without absolute values."""
    p, k = 59, 7
    angle = 2 * np.pi * k * np.arange(p) / p
    E = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    F = np.fft.fft(E, axis=0)[k]
    assert abs(np.sum(F**2)) < 1e-9
    signal = analysis.fourier_signals(E)
    assert signal[k - 1] == pytest.approx(p / 2**0.5)
    assert np.delete(signal, k - 1).max() < 1e-12 * p


def test_the_regularised_solution_drifts():
    """Ding, Eq. 4 with 10⁻⁸ I added to a singular A, against the exponential of the augmented matrix."""
    b, x_0, t, epsilon = np.array([1.0, -2.0]), np.array([3.0, 1.0]), 1000.0, 1e-8
    growth = np.exp(epsilon * t)
    printed = growth * x_0 + (growth - 1) / epsilon * b  # A = 0, so that A + εI = εI
    exact = analysis.affine_solution(np.zeros((2, 2)), b, x_0, [t])[0]
    np.testing.assert_allclose(exact, x_0 + b * t, rtol=1e-14)
    assert np.abs(printed / exact - 1).max() > 1e-6


def test_the_pair_that_was_raised_is_the_pair_that_is_scored(monkeypatch):
    """Ding, `plot_init_signal_construction.py` raises frequencies 1 and 2 and scores two random ones."""

    def nothing_changes(model, *, runs, steps, initial, audited=0, **options):
        start = analysis.fourier_signals(initial)
        signals = np.repeat(start[:, None], 4, axis=1)
        return Circles(np.array([0, 1, steps // 2, steps]), signals, audited)

    monkeypatch.setattr(figure_06, "train_circles", nothing_changes)
    setting = figure_06.Pairs(Size(31, 64, 1500), (0.2, 0.6, 1.0), 4)
    rows = figure_06.pairs(Run(setting, "quick")).columns()["runs"]
    assert rows["larger"].all()
    assert not rows["revived"].any()
    assert rows["smaller"][rows["ratio"] == 1.0].all()
