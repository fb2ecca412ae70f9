import json

import naive_theory as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import physics
from physics import EffectiveTheory, InputError, closures, simulate
from physics.theory.closure import nullities

PAIRS = [(0, 2), (1, 1), (0, 5), (2, 3), (1, 4), (3, 3), (2, 4), (4, 5), (3, 6), (1, 6)]


def theory_of(seed=0, tokens=8, fraction=0.6, **keywords):
    full = EffectiveTheory(tokens, **keywords)
    size = round(fraction * len(full.operation.samples))
    mask = physics.random_training_sets(full, size, seed=seed)[0]
    return EffectiveTheory(full.tokens, pairs=full.operation.samples[mask], **keywords)


THEORIES = [
    EffectiveTheory(7, 2),
    EffectiveTheory(7, 3, pairs=PAIRS),
    theory_of(modulus=8),
    theory_of(
        tokens=4, fraction=0.8, group=physics.theory.direct_product(physics.cyclic(2), physics.cyclic(2))
    ),
]


def shifted(theory, seed=0, dim=2):
    """A start whose sum is far from zero."""
    return np.random.default_rng(seed).standard_normal((theory.tokens, dim)) + 0.7


# -- energy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theory", THEORIES)
def test_loss_gradient_and_hessian_by_the_list(theory):
    quadruples = theory.parallelograms.tolist()
    states = np.random.default_rng(1).standard_normal((3, 2, theory.tokens, 2)) + 1
    loss, gradient = theory.loss(states), theory.gradient(states)
    assert loss.shape == (3, 2)
    for at in np.ndindex(3, 2):
        np.testing.assert_allclose(loss[at], naive.loss(states[at], quadruples), rtol=1e-13)
        np.testing.assert_allclose(
            gradient[at], naive.gradient(states[at], quadruples), rtol=1e-10, atol=1e-14
        )
    np.testing.assert_allclose(theory.hessian(), naive.hessian(theory.tokens, quadruples), atol=1e-15)
    np.testing.assert_allclose(theory.hessian(norm=2.0), theory.hessian() * theory.tokens / 2, rtol=1e-15)


def test_eq_9_holds_up_to_the_normalisation():
    """ℓ_eff = ½ RᵀHR where Z_0 is that of H."""
    theory = THEORIES[1]
    E = shifted(theory, dim=1)
    norm = np.sum(E**2)
    np.testing.assert_allclose(theory.loss(E), 0.5 * (E.T @ theory.hessian(norm) @ E).item(), rtol=1e-13)


def test_loss_keeps_its_digits_near_a_ground_state():
    theory = EffectiveTheory(30)
    E = 1e6 + np.arange(30.0)[:, None]
    E[3] += 1e-3
    expected = naive.loss(np.where(np.arange(30)[:, None] == 3, 1e-3, 0.0), theory.parallelograms.tolist())
    np.testing.assert_allclose(theory.loss(E) * np.sum(E**2), expected * 1e-6, rtol=1e-6)


def test_gradient_is_the_slope_of_the_loss():
    theory = THEORIES[1]
    E, step = shifted(theory), 1e-6
    slope = np.empty_like(E)
    for at in np.ndindex(E.shape):
        bump = np.zeros_like(E)
        bump[at] = step
        slope[at] = (theory.loss(E + bump) - theory.loss(E - bump)) / (2 * step)
    np.testing.assert_allclose(theory.gradient(E), slope, atol=1e-9)


def test_the_loss_does_not_see_scale_rotation_or_a_relabelling():
    theory = EffectiveTheory(7, pairs=PAIRS)
    E = shifted(theory)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    np.testing.assert_allclose(theory.loss(-3 * E @ turn), theory.loss(E), rtol=1e-13)
    mirrored = EffectiveTheory(7, pairs=[(6 - i, 6 - j) for i, j in PAIRS])
    np.testing.assert_allclose(mirrored.loss(E[::-1]), theory.loss(E), rtol=1e-13)
    np.testing.assert_allclose(mirrored.gradient(E[::-1]), theory.gradient(E)[::-1], atol=1e-15)


# -- spectrum ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theory", THEORIES)
def test_spectrum_and_ground_states(theory):
    values = np.linalg.eigvalsh(naive.hessian(theory.tokens, theory.parallelograms.tolist()))
    np.testing.assert_allclose(theory.spectrum, values, atol=1e-14)
    n_0 = theory.ground_state_dimension
    assert (theory.spectrum[:n_0] == 0).all()
    assert theory.spectrum[n_0] > 1e-6
    basis = theory.ground_states
    np.testing.assert_allclose(basis.T @ basis, np.eye(n_0), atol=1e-13)
    for i, j, m, n in theory.implied_parallelograms:
        np.testing.assert_allclose(basis[i] + basis[j], basis[m] + basis[n], atol=1e-12)
    assert theory.loss(basis[:, :1]) < 1e-28
    basis[:] = 0.0
    assert theory.ground_states.any(), "a copy was given"


def test_grokking_rate():
    theory = EffectiveTheory(10)
    assert theory.grokking_rate == theory.spectrum[2] == theory.relaxation_rate
    np.testing.assert_allclose(theory.grokking_rate, 0.6 / 7, rtol=1e-12)
    assert theory.grokking_steps() == 1 / (theory.grokking_rate * 1e-3)
    assert theory.grokking_steps(0.5) == 2 / theory.grokking_rate
    loose = EffectiveTheory(7, pairs=PAIRS[:4])
    assert loose.ground_state_dimension > 2
    assert loose.grokking_rate == loose.relaxation_rate == 0
    assert loose.grokking_steps() == np.inf
    circle = EffectiveTheory(9, modulus=9)
    assert circle.ground_state_dimension == 1
    assert circle.relaxation_rate == circle.spectrum[1] > 0


def test_linear_embeddings_are_the_ground_states_of_addition():
    theory = EffectiveTheory(12)
    line = np.stack([np.ones(12), np.arange(12)], axis=1)
    assert np.linalg.matrix_rank(np.hstack([theory.ground_states, line]), tol=1e-10) == 2


def test_rates_of_many_training_sets_are_those_of_each(monkeypatch):
    full = EffectiveTheory(8)
    masks = np.concatenate(
        [physics.random_training_sets(full, size, sets=8, seed=size) for size in (8, 16, 30)]
    )
    rates = physics.grokking_rates(full, masks)
    assert (rates == 0).any()
    for mask, rate in zip(masks, rates, strict=True):
        one = EffectiveTheory(8, pairs=full.operation.samples[mask])
        np.testing.assert_allclose(rate, one.grokking_rate, rtol=1e-10, atol=0)
    monkeypatch.setattr("physics.theory.system.BATCH_BYTES", 8 * 8**2 * 2)  # two matrices at a time
    assert np.count_nonzero(rates) > 8
    np.testing.assert_allclose(physics.grokking_rates(full, masks), rates, rtol=1e-12)


# -- dynamics ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theory", THEORIES)
@pytest.mark.parametrize(
    ("method", "dim", "times"), [("RK45", 1, [0.5, 4]), ("DOP853", 3, [0, 0.5, 3, 20, 60])]
)
def test_closed_flow_against_runge_kutta(theory, method, dim, times):
    E = shifted(theory, dim=dim)
    oracle = solve_ivp(
        lambda _, y: -theory.gradient(y.reshape(E.shape)).ravel(),
        (0, times[-1]),
        E.ravel(),
        method,
        t_eval=times,
        rtol=1e-11,
        atol=1e-11,
    ).y.T.reshape(-1, *E.shape)
    np.testing.assert_allclose(theory.solve(E, times), oracle, atol=1e-9, rtol=0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 50), st.floats(0, 50))
def test_the_closed_flow_is_a_flow(seed, first, second):
    theory = THEORIES[1]
    E = shifted(theory, seed)
    there = theory.solve(E, [first])[0]
    np.testing.assert_allclose(
        theory.solve(there, [second])[0], theory.solve(E, [first + second])[0], atol=1e-10
    )
    np.testing.assert_allclose(np.sum(there**2), np.sum(E**2), rtol=1e-13)


def test_norm_is_conserved_and_the_sum_is_not():
    """Eq. 24 claims both; Eq. 27 drops the term of Eq. 25 that makes C grow."""
    theory = THEORIES[1]
    times = np.linspace(0, 30, 301)
    E = theory.solve(shifted(theory), times)
    norm, total = np.sum(E**2, axis=(1, 2)), E.sum(axis=1)
    np.testing.assert_allclose(norm, norm[0], rtol=1e-13)
    assert np.abs(total[-1] / total[0] - 1).max() > 0.2
    slope = np.gradient(total, times, axis=0, edge_order=2)
    law = (2 * theory.loss(E) / norm)[:, None] * total  # 2 ℓ_0/Z_0² = 2 ℓ_eff/Z_0
    np.testing.assert_allclose(slope[1:-1], law[1:-1], atol=2e-3)
    assert np.abs(slope[1:-1]).max() > 0.05
    # The law at a point, exactly: it is minus the sum of the gradient.
    np.testing.assert_allclose(-theory.gradient(E).sum(axis=1), law, atol=1e-13)
    # From a zero sum it stays zero.
    centered = shifted(theory) - shifted(theory).mean(axis=0)
    np.testing.assert_allclose(theory.solve(centered, [30.0]).sum(axis=1), 0, atol=1e-12)


def test_published_integration_is_another_flow():
    """toy/train_add.py: all of P_0, no mean over it, Z_0 frozen under Euler steps, so that Σ|E|² drifts."""
    theory = EffectiveTheory(7, pairs=PAIRS)
    E = shifted(theory, dim=1)
    everything = EffectiveTheory(7)
    published = naive.published_flow(E, everything.parallelograms.tolist(), 0.02, 200)
    drift = np.sum(published**2) / np.sum(E**2) - 1
    assert abs(drift) > 0.01
    exact = theory.solve(E, [4.0])[0]
    assert abs(np.sum(exact**2) / np.sum(E**2) - 1) < 1e-13
    # What it approximates is the flow of the complete data set, |P_0| times as fast.
    fine = naive.published_flow(E, everything.parallelograms.tolist(), 1e-4, 4000)
    far = everything.solve(E, [0.4 * everything.parallelogram_count])[0]
    np.testing.assert_allclose(fine, far, atol=5e-3)
    assert np.abs(theory.solve(E, [0.4 * everything.parallelogram_count])[0] - far).max() > 0.05


def test_simulate_uses_the_closed_solution():
    theory = EffectiveTheory(7, dim=2, pairs=PAIRS)
    starts = np.stack([shifted(theory, seed) for seed in range(3)])
    moving = simulate(theory, initial=starts, runs=3, steps=1000, step_size=0.3, record=137)
    assert moving.times[-1] == 300
    np.testing.assert_allclose(moving.positions, theory.solve(starts, moving.times), atol=1e-11)
    np.testing.assert_allclose(
        moving.observables["Z_0"], np.sum(moving.positions**2, axis=(2, 3)), rtol=1e-15
    )
    np.testing.assert_allclose(moving.observables["C"], moving.positions.sum(axis=2), rtol=1e-15)
    np.testing.assert_allclose(moving.observables["loss"], theory.loss(moving.positions), rtol=1e-15)


def test_a_run_does_not_depend_on_its_neighbours_and_survives_a_file(tmp_path):
    theory = EffectiveTheory(group=physics.cyclic(5), dim=2)
    alone = simulate(theory, runs=1, first_run=2, seed=9, steps=12)
    together = simulate(theory, runs=4, seed=9, steps=12, out=tmp_path / "run.h5")
    np.testing.assert_allclose(together.positions[2], alone.positions[0], rtol=1e-12, atol=1e-14)
    stored = physics.load(tmp_path / "run.h5")
    assert set(stored.observables) == {"loss", "Z_0", "C"}
    assert np.array_equal(stored.observables["C"], together.observables["C"])
    assert stored.parameters["system"]["group"]["table"] == physics.cyclic(5).table.tolist()
    json.dumps(stored.parameters)


def test_without_a_parallelogram_nothing_moves():
    theory = EffectiveTheory(5, dim=2, pairs=[(0, 0), (0, 1), (3, 4)])
    assert theory.parallelogram_count == 0
    assert theory.parallelograms.shape == theory.implied_parallelograms.shape == (0, 4)
    assert theory.ground_state_dimension == 5
    assert theory.grokking_rate == 0
    assert theory.grokking_steps() == np.inf
    assert (theory.spectrum == 0).all()
    assert physics.theory.ideal_quality(theory) == 0
    assert physics.ideal_accuracy(theory) == 3 / 15
    moving = simulate(theory, steps=5)
    assert np.array_equal(moving.final, moving.initial)
    assert np.isnan(moving.observables["loss"]).all()
    undefined = "pairs must permit at least 1 parallelogram for an effective loss, got none"
    for call in (theory.loss, theory.gradient):
        with pytest.raises(InputError, match=undefined):
            call(np.ones((5, 1)))
    with pytest.raises(InputError, match=undefined):
        theory.hessian()


@pytest.mark.parametrize(
    "theory",
    [EffectiveTheory(), EffectiveTheory(12, modulus=12), EffectiveTheory(9, modulus=5)],
    ids=["addition", "modulo 12", "modulo 5"],
)
def test_the_nullity_alone_is_that_of_the_closure(theory):
    rng = np.random.default_rng(0)
    masks = rng.random((200, len(theory.operation.samples))) < np.linspace(0.05, 0.9, 200)[:, None]
    masks[:, 0] = True
    found = nullities(theory.operation, masks)
    assert np.array_equal(found, closures(theory, masks).nullity)
    assert len(set(found)) > 5
