"""What docs/errata.md says of the published code of He et al., shown on their own formulas and lines."""

import numpy as np
import torch

from analysis import neuron_spectrum
from physics import FourierLottery


def test_phases_of_the_page_turn_away_and_those_of_the_code_align():
    p, k = 11, 3
    alpha, beta, psi, D = 0.8, 0.5, 0.4, 0.1
    phi = (psi + D) / 2
    page = 2 * (2 * p * beta * np.sin(D)) + p * alpha**2 / beta * np.sin(D)  # 2 dφ/dt - dψ/dt
    assert page > 0
    # Their lines of `gradient_update`, without the factor 1/p² of both.
    w_k, j_values = 2 * np.pi * k / p, np.arange(p)
    grad_theta_k = 2 * p * alpha * beta * np.cos(w_k * j_values + psi - phi)
    grad_xi_k = p * alpha**2 * np.cos(w_k * j_values + 2 * phi)
    race = FourierLottery(p, coupling=p)
    change = race.unpack(np.stack([grad_theta_k, grad_xi_k], axis=1))
    theta, xi = np.zeros((2, 1, 5), complex)
    theta[0, k - 1], xi[0, k - 1] = alpha * np.exp(1j * phi), beta * np.exp(1j * psi)
    for found, wanted in zip(race.velocity(theta, xi), change, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-14)
    turn = 2 * (change[0] / theta[:, k - 1]).imag - (change[1] / xi[:, k - 1]).imag
    np.testing.assert_allclose(turn[0, k - 1], -page, rtol=1e-12)


def test_participation_of_cosines_and_sines_depends_on_the_phase():
    p = 23
    phases = 2 * np.pi * np.arange(64) / 64
    waves = np.cos(2 * np.pi * 4 * np.arange(p)[:, None] / p + phases)
    angle = 2 * np.pi * np.outer(np.arange(p), np.arange(1, 12)) / p
    parts = np.concatenate([waves.T @ np.cos(angle), waves.T @ np.sin(angle)], axis=1)
    ratio = np.linalg.norm(parts, 4, axis=1) ** 4 / np.linalg.norm(parts, 2, axis=1) ** 4
    np.testing.assert_allclose([ratio.min(), ratio.mean(), ratio.max()], [0.5, 0.75, 1.0], rtol=1e-12)
    np.testing.assert_allclose(neuron_spectrum(waves).purity, 1.0, rtol=1e-12)


def test_a_confident_loss_is_lost_in_float32():
    """`cross_entropy_high_precision` of `src/utils.py`, with the type of its line and that of its comment."""
    logits = torch.tensor([[25.0, 0.0, 0.0]])
    single, double = (
        -torch.log_softmax(logits.to(kind), dim=-1)[0, 0].item() for kind in (torch.float32, torch.float64)
    )
    np.testing.assert_allclose(double, 2 * np.exp(-25.0), rtol=1e-4)
    assert single == 0
