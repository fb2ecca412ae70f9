import numpy as np
import pytest

from analysis import affine_solution
from physics import AffineFlow, EffectiveTheory, LinearNetwork, SimulationError, simulate

LABELS = np.array([[1.0, -0.5, 0.3], [1.0, -0.5, 0.3], [0.2, 0.9, -1.0]])


def start(network, seed=0):
    return network.start(np.random.default_rng(seed))[None]


# -- affine flow -------------------------------------------------------------------------------------------


def test_affine_flow_is_the_augmented_exponential():
    rng = np.random.default_rng(0)
    A, b, x0 = rng.standard_normal((4, 4)), rng.standard_normal(4), rng.standard_normal(4)
    A[3] = A[2]  # singular
    times = np.array([0.0, 0.7, -0.4, 2.0])
    flow = AffineFlow(A, b)
    np.testing.assert_allclose(flow.solve(x0, times), affine_solution(A, b, x0, times), atol=1e-12)
    moving = simulate(flow, initial=x0[:, None], steps=40, step_size=0.05, record=7)
    np.testing.assert_allclose(moving.positions[0, :, :, 0], flow.solve(x0, moving.times), atol=1e-11)


def test_affine_flow_on_several_axes():
    A, b = np.diag([-1.0, 0.0]), np.array([[1.0, 2.0, 0.0], [0.5, 0.0, -1.0]])
    flow = AffineFlow(A, b)
    x0 = np.ones((2, 3))
    expected = [b[0] + (1 - b[0]) * np.exp(-0.8), 1 + 0.8 * b[1]]
    np.testing.assert_allclose(flow.solve(x0, [0.8])[0], expected, rtol=1e-14)
    assert (flow.tokens, flow.dim) == (2, 3)
    np.testing.assert_allclose(simulate(flow, initial=x0, steps=8).final[0], expected, rtol=1e-13)


def test_an_overflow_is_an_error():
    with pytest.raises(SimulationError, match="the state overflowed"):
        simulate(AffineFlow([[800.0]], [0.0]), steps=3, step_size=1.0)


# -- linear network ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [None, [(0, 2), (1, 1), (2, 3)]])
def test_velocity_is_the_gradient_of_the_loss(pairs):
    network = LinearNetwork(LABELS, pairs=pairs, network_rate=0.3, input_rate=0.7, decay=0.2)
    state = start(network)[0] + 0.1
    state[: network.points, -1] = 0
    slope, step = np.zeros_like(state), 1e-6
    for at in np.ndindex(state.shape):
        if at[0] < network.points and at[1] == network.dim - 1:
            continue  # the constant of the points, which does not move
        bump = np.zeros_like(state)
        bump[at] = step
        slope[at] = (network.loss(state + bump) - network.loss(state - bump)) / (2 * step)
    rate = np.where(np.arange(network.tokens) < network.points, 0.7, 0.3)[:, None]
    np.testing.assert_allclose(network.velocity(state), -rate * slope, atol=1e-8)


@pytest.mark.parametrize("pairs", [None, [(0, 2), (1, 1), (2, 0)]])
def test_the_loss_is_that_of_sums_of_points(pairs):
    network = LinearNetwork(LABELS, pairs=pairs, decay=0.2)
    state = start(network)[0] + 0.1
    A, b, x = network.unpack(state)
    inputs = x if pairs is None else np.array([x[i] + x[j] for i, j in pairs])
    missed = sum(np.sum((A @ r + b - y) ** 2) for r, y in zip(inputs, LABELS, strict=True))
    assert network.loss(state) == pytest.approx(0.5 * missed + 0.5 * 0.2 * 3 * np.sum(A**2))


def test_velocity_is_eq_37_for_one_sample():
    network = LinearNetwork([[0.4, -1.0]], inputs=3, network_rate=0.2, input_rate=0.5, decay=0.3)
    rng = np.random.default_rng(1)
    A, b, r = rng.standard_normal((2, 3)), rng.standard_normal(2), rng.standard_normal(3)
    y = network.labels[0]
    dA, db, dr = network.unpack(network.velocity(network.pack(A, b, r[None])))
    np.testing.assert_allclose(
        dA, -0.2 * (A @ (np.outer(r, r) + 0.3 * np.eye(3)) + np.outer(b - y, r)), rtol=1e-13
    )
    np.testing.assert_allclose(db, -0.2 * (A @ r + b - y), rtol=1e-13)
    np.testing.assert_allclose(dr[0], -0.5 * A.T @ (A @ r + b - y), rtol=1e-13)


def test_balance_is_conserved_without_decay():
    network = LinearNetwork(LABELS, network_rate=0.3, input_rate=0.7)
    moving = simulate(network, steps=600, record=100, seed=1)
    A, _, x = network.unpack(moving.positions[0])
    balance = A.swapaxes(1, 2) @ A / 0.3 - x.swapaxes(1, 2) @ x / 0.7
    np.testing.assert_allclose(balance, np.broadcast_to(balance[0], balance.shape), atol=1e-9)
    assert np.abs(A[-1] - A[0]).max() > 0.05
    assert (np.diff(moving.observables["loss"][0]) < 0).all()


def test_order_of_the_steps():
    network = LinearNetwork(LABELS, decay=0.1)
    state = start(network)
    ends = [simulate(network, initial=state, steps=n, step_size=2 / n).final for n in (1600, 10, 20, 40, 80)]
    errors = [np.abs(end - ends[0]).max() for end in ends[1:]]
    slope = np.polyfit(np.log([10, 20, 40, 80]), np.log(errors), 1)[0]
    assert abs(slope + 4) < 0.2


def test_samples_of_one_label_attract_each_other_whatever_the_label():
    """Eqs. 39 and 40: the external force is gone from the difference, along the whole coupled flow."""
    network = LinearNetwork(LABELS, network_rate=0.4, decay=0.1)
    moving = simulate(network, steps=200, record=20)
    A, _, r = network.unpack(moving.positions[0])
    velocity = network.unpack(network.velocity(moving.positions[0]))[2]
    difference = r[:, 0] - r[:, 1]
    force = -np.einsum("tki,tkj,tj->ti", A, A, difference)
    np.testing.assert_allclose(velocity[:, 0] - velocity[:, 1], force, atol=1e-13)
    other = velocity[:, 0] - velocity[:, 2] + np.einsum("tki,tkj,tj->ti", A, A, r[:, 0] - r[:, 2])
    assert np.abs(other).max() > 0.1  # of different labels they do not


def test_adiabatic_limit_is_reached_at_first_order():
    rates = np.array([0.08, 0.04, 0.02, 0.01])
    errors = []
    for rate in rates:
        network = LinearNetwork(LABELS, network_rate=rate)
        state = start(network)
        A, b, r = network.unpack(state[0])
        flow = AffineFlow(-np.kron(np.eye(len(r)), A.T @ A), ((LABELS - b) @ A).ravel())
        limit = flow.solve(r.ravel(), [1.5])[0].reshape(r.shape)
        moved = network.unpack(simulate(network, initial=state, steps=300, step_size=0.005).final[0])[2]
        errors.append(np.abs(moved - limit).max())
    assert abs(np.polyfit(np.log(rates), np.log(errors), 1)[0] - 1) < 0.1
    frozen = LinearNetwork(LABELS, network_rate=0.0)
    moved = frozen.unpack(simulate(frozen, initial=state, steps=300, step_size=0.005).final[0])
    np.testing.assert_allclose(moved[2], limit, atol=1e-10)
    assert np.array_equal(moved[0], A)


def test_with_orthonormal_columns_a_pair_closes_exponentially():
    """Below Eq. 40: AᵀA = I makes the potential ½ |r - r'|², so the difference decays at the rate η_x."""
    network = LinearNetwork(LABELS[:2], network_rate=0.0, input_rate=0.8)
    state = start(network)
    A, _, r = network.unpack(state[0])
    np.testing.assert_allclose(A.T @ A, np.eye(2), atol=1e-14)
    moved = network.unpack(simulate(network, initial=state, steps=100, step_size=0.01).final[0])[2]
    np.testing.assert_allclose(moved[0] - moved[1], np.exp(-0.8) * (r[0] - r[1]), rtol=1e-9)


def test_the_effective_loss_emerges():
    """With AᵀA = I the part of the loss without labels is the effective loss, up to a factor."""
    theory = EffectiveTheory(
        6, dim=2, pairs=[(0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1)]
    )  # two samples a class
    pairs = theory.pairs
    rng = np.random.default_rng(3)
    labels = rng.standard_normal((11, 3))[pairs.sum(axis=1)]
    network = LinearNetwork(labels, pairs=pairs, network_rate=0.0)
    state = network.start(rng)
    A, _, E = network.unpack(state)
    factor = theory.parallelogram_count / 4  # |P_0(D)|/(2m) with m = 2
    loss_0 = theory.loss(E) * np.sum(E**2)
    np.testing.assert_allclose(network.internal_energy(state), factor * loss_0, rtol=1e-12)
    # It is what remains of the true loss when each class may choose its own constant: no label enters.
    r = E[pairs[:, 0]] + E[pairs[:, 1]]
    means = np.stack([r[pairs.sum(axis=1) == s].mean(axis=0) for s in pairs.sum(axis=1)])
    matched = LinearNetwork(means @ A.T, pairs=pairs)
    np.testing.assert_allclose(matched.loss(matched.pack(A, np.zeros(3), E)), factor * loss_0, rtol=1e-12)


def test_embeddings_of_the_network_reach_the_parallelograms_of_the_theory():
    theory = EffectiveTheory(5, dim=2)
    labels = np.outer(theory.operation.label - 4, [0.5, 0.2, -0.3, 0.1])
    network = LinearNetwork(labels, pairs=theory.operation.samples, network_rate=0.02, input_rate=0.5)
    moving = simulate(network, steps=1500, step_size=0.02, record=1500, seed=2)
    first, last = (theory.loss(network.unpack(frame)[2]) for frame in moving.positions[0])
    assert last < 1e-3 * first


def test_bias_alone_learns_at_the_rate_of_all_samples():
    """The paper's b(t) = (1 - exp(-2 η_A t)) y below Eq. 37 is that of two samples, not of one."""
    for samples in (1, 2, 3):
        y = np.array([0.7, -0.2])
        network = LinearNetwork(np.tile(y, (samples, 1)), network_rate=0.5, input_rate=0.0)
        state = network.pack(np.zeros((2, 2)), np.zeros(2), np.zeros((samples, 2)))
        b = network.unpack(simulate(network, initial=state, steps=100, step_size=0.01).final[0])[1]
        np.testing.assert_allclose(b, (1 - np.exp(-samples * 0.5)) * y, rtol=1e-9)


def test_state_is_packed_and_recorded():
    network = LinearNetwork(LABELS, inputs=4)
    state = start(network)[0]
    assert np.array_equal(network.pack(*network.unpack(state)), state)
    moving = simulate(network, steps=4, runs=2)
    assert moving.positions.shape == (2, 5, 6, 5)
    np.testing.assert_allclose(moving.observables["loss"], network.loss(moving.positions), rtol=1e-15)
    assert moving.observables["internal_energy"].shape == (2, 5)
    assert (moving.positions[:, :, :3, -1] == 0).all()


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e60, 1e150, 1e300])
def test_a_solution_does_not_depend_on_the_unit_of_its_components(unit):
    A, b, x = np.array([[-1.0, 0.5], [0.2, -0.3]]), np.array([1.0, 2.0]), np.array([0.5, -1.0])
    times = [0.0, 1.0, 30.0]
    wanted = AffineFlow(A, b).solve(x, times)
    flow, moved = AffineFlow(A, b * unit), (x * unit)[None, :, None]
    np.testing.assert_allclose(flow.solve(x * unit, times) / unit, wanted, rtol=1e-14)
    flow.advance(moved, 0.25, 4)
    np.testing.assert_allclose(moved[0, :, 0] / unit, wanted[1], rtol=1e-14)
    units = np.array([1.0, unit])  # of one component alone
    scaled, moved = AffineFlow(A * units[:, None] / units, b * units), (x * units)[None, :, None]
    np.testing.assert_allclose(scaled.solve(x * units, times) / units, wanted, rtol=1e-13)
    scaled.advance(moved, 0.25, 4)
    np.testing.assert_allclose(moved[0, :, 0] / units, wanted[1], rtol=1e-13)


@pytest.mark.parametrize("coupling", [1e-200, 1e3, 1e200])
def test_a_strong_one_way_coupling_costs_no_digits(coupling):
    """dy/dt = 1 - 2y drives dx/dt = coupling y - x; both have closed solutions."""
    x, y = AffineFlow([[-1.0, coupling], [0.0, -2.0]], [0.0, 1.0]).solve([0.0, 0.0], [1.3])[0]
    fast, slow = np.exp(-2.6), np.exp(-1.3)
    assert y == pytest.approx((1 - fast) / 2, rel=1e-14)
    assert x == pytest.approx(coupling * ((1 - slow) / 2 - (slow - fast) / 2), rel=1e-13)
