"""What docs/errata.md says of Liu et al. and of their published code, shown on their own formulas and lines.

Their code is quoted by file and function, and expressed here in lines of our own. It is on GitHub under the
MIT license: ejmichaud/grokking-squared, branches main at 0229df9 and prototype at 7270d57.
"""

import itertools

import numpy as np
import pytest
import torch

import analysis
from grokphys import phases as phase_training
from grokphys.papers.liu import phases as liu_images
from physics import EffectiveTheory


def samples_of(p):
    return list(itertools.combinations_with_replacement(range(p), 2))


def equations(samples, p):
    """Rows of A(P_0(D)), Liu, Eqs. 1 and 7: one for each two samples with the same sum."""
    rows = [
        np.bincount(first, minlength=p) - np.bincount(second, minlength=p)
        for first, second in itertools.combinations(samples, 2)
        if sum(first) == sum(second)
    ]
    return np.array(rows).reshape(-1, p)


def smallest_rate(A):
    """σ_3², the third smallest squared singular value of A, counted with those that are zero."""
    return np.linalg.eigvalsh(A.T @ A)[2]


# -- The text -----------------------------------------------------------------------------------


def test_the_sum_grows_by_eq_25():
    """Eq. 25 with E_k of any mean: Z_0 is conserved, as Eq. 26 says; C is not, against Eq. 27."""
    A = equations(samples_of(10), 10)
    E = np.random.default_rng(0).uniform(-0.5, 0.5, 10)
    Z, loss = E @ E, np.sum((A @ E) ** 2)
    slope = -2 * A.T @ A @ E / Z + 2 * loss / Z**2 * E
    assert abs(E @ slope) < 1e-12
    assert slope.sum() == pytest.approx(2 * loss / Z**2 * E.sum())
    assert abs(slope.sum()) > 0.1
    # In the end all of the norm lies in the ground states, and C has grown by what they gained.
    free = np.linalg.svd(A)[2][-2:]
    starts = np.random.default_rng(1).uniform(-0.5, 0.5, (1000, 10))
    growth = np.linalg.norm(starts, axis=1) / np.linalg.norm(starts @ free.T, axis=1)
    assert 2.2 < np.median(growth) < 2.8
    # The flow that Eq. 9 prints keeps the part in the ground states alone, so that it loses norm.
    centered = starts - starts.mean(axis=1, keepdims=True)
    left = np.linalg.norm(centered @ free.T, axis=1) / np.linalg.norm(centered, axis=1)
    assert 0.2 < np.median(left) < 0.28


def test_eigenvalues_are_singular_values_squared_but_for_a_factor():
    """Below Eq. 9: λ_i = σ_i² lacks 2/(Z_0 |P_0(D)|)."""
    pairs = [(0, 3), (1, 2), (0, 4), (1, 3), (2, 2), (4, 6), (5, 5)]
    theory = EffectiveTheory(7, pairs=pairs)
    A = equations(pairs, 7)
    squares = np.linalg.eigvalsh(A.T @ A)
    np.testing.assert_allclose(theory.spectrum, 2 * squares / (7 * len(A)), atol=1e-14)
    assert not np.allclose(theory.spectrum, squares)


def test_the_step_count_of_figure_4_depends_on_the_convention():
    """n_h = 1/(λ_3 η) of 45 samples, p = 10: by Eqs. 5 and 8, without the mean, as printed, in the code."""
    rng = np.random.default_rng(0)
    samples = samples_of(10)
    sets = [equations([samples[k] for k in rng.choice(55, 45, replace=False)], 10) for _ in range(300)]
    rates, sizes = np.array([smallest_rate(A) for A in sets]), np.array([len(A) for A in sets])
    assert np.median(10 * sizes / (2 * rates * 1e-3)) == pytest.approx(17_400, rel=0.03)
    assert np.median(10 / (2 * rates * 1e-3)) == pytest.approx(373, rel=0.03)
    assert np.median(1 / (rates * 1e-3)) == pytest.approx(75, rel=0.03)
    assert 9 / (2 * smallest_rate(equations(samples, 10)) * 1e-3) == pytest.approx(150)


def test_eq_42_is_half_of_eq_5():
    A = equations(samples_of(7), 7)
    E = np.random.default_rng(0).standard_normal(7)
    eq_5 = np.sum((A @ E) ** 2) / len(A)
    eq_42 = np.sum((A @ E) ** 2 / 2) / len(A)
    assert eq_42 == pytest.approx(eq_5 / 2)
    assert EffectiveTheory(7).loss(E[:, None]) * (E @ E) == pytest.approx(eq_5)  # ours is Eq. 5


def test_normalised_embeddings_need_the_root():
    """§3.2: with the printed σ_t, a variance, the result depends on the unit."""
    E = np.random.default_rng(0).normal(3, 2, (10, 1))
    centered = E - E.mean(axis=0)

    def printed(x):
        return x / np.mean(np.sum(x**2, axis=1))

    assert printed(centered).std() != pytest.approx(1, rel=0.2)
    np.testing.assert_allclose(printed(10 * centered), printed(centered) / 10)
    start = EffectiveTheory(10).start(np.random.default_rng(0))
    assert start.std() == pytest.approx(1)


def test_the_quadruples_of_eq_19_are_no_parallelograms():
    """Eq. 19 against Eq. 20."""
    printed = [(0, 1, 1, 2), (0, 1, 2, 3), (1, 2, 2, 3)]
    assert not any(i + j == m + n for i, j, m, n in printed)
    right = EffectiveTheory(4).parallelograms.tolist()
    assert all(i + j == m + n for i, j, m, n in right)
    assert len(right) == len(printed)


def test_six_samples_suffice_for_six_symbols_and_no_five_do():
    """Appendix C lists eight, of which one stands there twice."""
    printed = [(0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1), (2, 4), (3, 3)]
    assert len(set(printed)) == 7
    rank = np.linalg.matrix_rank
    assert rank(equations(sorted(set(printed)), 6)) == 4
    samples = samples_of(6)
    # n samples with c sums give at most n - c independent equations; the linear structure needs p - 2 = 4.
    enough = [
        chosen
        for size in (5, 6)
        for chosen in itertools.combinations(samples, size)
        if size - len({i + j for i, j in chosen}) >= 4
    ]
    assert all(len(chosen) == 6 for chosen in enough)
    assert all(rank(equations(chosen, 6)) == 4 for chosen in enough)
    assert len(enough) == 3
    assert tuple(sorted([(0, 4), (1, 3), (2, 2), (0, 5), (1, 4), (2, 3)])) in enough


def test_definition_and_code_have_another_delta():
    """Definition 1: |d| ≤ 0.01. `toy/train_add.py`, threshold_P: the mean of d² over the axes < 0.01."""
    pairs = [(*a, *b) for a, b in itertools.combinations(samples_of(10), 2) if sum(a) == sum(b)]
    i, j, m, n = np.array(pairs).T
    E = np.random.default_rng(0).standard_normal((2000, 10))
    E = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, ddof=1, keepdims=True)  # as PyTorch's `std`
    d = E[:, i] + E[:, j] - E[:, m] - E[:, n]
    assert np.mean(np.abs(d) <= 0.01) == pytest.approx(0.003, rel=0.1)
    assert np.mean(d**2 < 0.01) == pytest.approx(0.034, rel=0.02)


def test_the_printed_bias_is_that_of_two_samples():
    """Below Eq. 37: b(t) = (1 - exp(-2 η t)) y; Eq. 37 without Ar says db/dt = -η (b - y) for each sample."""
    eta, y, t = 0.3, 1.7, np.linspace(0, 10, 2001)
    b = (1 - np.exp(-2 * eta * t)) * y
    slope = np.gradient(b, t, edge_order=2)
    one, two = (np.abs(slope + m * eta * (b - y)).max() for m in (1, 2))
    assert two < 1e-4
    assert one > 0.1


def test_thresholds_are_those_of_table_1():
    """Table 1 has 90 %; Appendix J says 95 %, and takes 60 % for images."""
    assert phase_training.ACCURACIES == {"train_accuracy": 0.9, "validation_accuracy": 0.9}
    assert liu_images.THRESHOLDS == {"train_accuracy": 0.9, "validation_accuracy": 0.6}
    phases = analysis.classify_phases([100, 100], [100 + 999, 100 + 1000])
    assert phases.tolist() == ["comprehension", "grokking"]


# -- The published code -------------------------------------------------------------------------


def published_drift(E, steps=5000, step_size=1e-3):
    """Change of Σ E² in "Task 3" of `toy/train_add.py`: all of P_0, no mean, Z_0 as at the start, Euler."""
    A = equations(samples_of(E.shape[1]), E.shape[1])
    Q, Z = A.T @ A, np.sum(E**2, axis=1, keepdims=True)
    for _ in range(steps):
        force = E @ Q
        loss = np.sum(E * force, axis=1, keepdims=True)
        E = E + step_size * (2 * loss / Z**2 * E - 2 / Z * force)
    return np.sum(E**2, axis=1) / Z[:, 0] - 1


def test_the_published_integration_does_not_keep_the_norm():
    def start(seed):
        E = torch.rand(10, 1, generator=torch.Generator().manual_seed(seed)) - 0.5
        return ((E - E.mean(0)) / E.std(0))[:, 0].double().numpy()

    with np.errstate(over="ignore", invalid="ignore"):
        drift = published_drift(np.array([start(seed) for seed in (58, *range(300))]))
    assert drift[0] == pytest.approx(0.119, abs=0.001)
    assert np.nanmedian(drift[1:]) == pytest.approx(0.014, abs=0.003)
    assert 0 < np.mean(~np.isfinite(drift[1:])) < 0.05


@pytest.mark.parametrize("masked", [False, True])
def test_a_layer_without_a_mask_attends_in_both_directions(masked):
    """`phasegrok/models.py` (branch prototype) calls nn.TransformerEncoderLayer with no mask."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 1, 8, dropout=0, batch_first=True, norm_first=True)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(2) if masked else None
    x = torch.randn(1, 2, 8)
    other = torch.cat([x[:, :1], torch.randn(1, 1, 8)], dim=1)
    with torch.no_grad():
        first, second = layer(x, src_mask=mask)[:, 0], layer(other, src_mask=mask)[:, 0]
    assert torch.equal(first, second) is masked
