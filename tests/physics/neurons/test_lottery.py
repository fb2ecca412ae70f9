import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import elliprf

import physics
from physics import FourierLottery, simulate
from physics.neurons.three_waves import three_waves

RACE = FourierLottery(5, coupling=0.5)  # two frequencies; time is that of the three waves themselves


def states(seed, *shape):
    """Random θ and ξ (*shape, 2)."""
    rng = np.random.default_rng(seed)
    theta, xi = rng.standard_normal((2, *shape, 2)) + 1j * rng.standard_normal((2, *shape, 2))
    return theta, xi


def pair(theta, xi):
    """One neuron that has the same state in both frequencies."""
    return np.full(2, theta, complex), np.full(2, xi, complex)


def dop853(race, theta, xi, time):
    """θ and ξ after a time, or after a time each, by somebody else's integrator."""

    def slope(_, y):
        a, b = y.view(complex).reshape(2, *theta.shape)
        return (time * np.stack(race.velocity(a, b))).ravel().view(float)

    start = np.stack([theta, xi]).ravel().view(float)
    end = solve_ivp(slope, (0, 1), start, "DOP853", rtol=1e-12, atol=1e-25).y[:, -1].copy()
    return end.view(complex).reshape(2, *theta.shape)


def assert_same(found, wanted, tolerance):
    """States (θ, ξ) agree, relative to the larger of |θ| and |ξ|."""
    size = np.maximum(np.abs(wanted[0]), np.abs(wanted[1]))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_less(np.abs(one - other), tolerance * size + 1e-300)


def test_the_velocity_is_the_definition():
    theta, xi = states(0, 3)
    race = FourierLottery(5)
    a, b = race.velocity(theta, xi)
    for m in range(3):
        for k in range(2):
            wanted = naive.lottery_velocity(theta[m, k], xi[m, k], 1 / 5)
            np.testing.assert_allclose([a[m, k], b[m, k]], wanted, rtol=1e-15)


def test_the_flow_is_the_gradient_of_the_network_at_small_weights():
    """At logits of 0, by the softmax of every pair: for odd p, and for even p with its real frequency."""
    for p in (5, 6):
        race = FourierLottery(p, neurons=2)
        weights = race.start(np.random.default_rng(p))
        W_in, W_out = weights[:, :2], weights[:, 2:].T
        down = np.zeros((p, 4))
        for a in range(p):
            for b in range(p):
                error = (np.arange(p) == (a + b) % p) - 1 / p  # minus the gradient by the logits
                hidden = W_in[a] + W_in[b]
                down[:, 2:] += np.outer(error, hidden**2) / p**2
                for token in (a, b):
                    down[token, :2] += (W_out @ error) * 2 * hidden / p**2
        wanted = race.unpack(down)
        for found, value in zip(race.velocity(*race.unpack(weights)), wanted, strict=True):
            np.testing.assert_allclose(found, value, atol=1e-15)
        np.testing.assert_allclose(down.mean(axis=0), 0, atol=1e-16)  # mean weights stand still


def test_solution_equals_dop853_on_random_starts():
    theta, xi = states(1, 100)  # 200 starts; half of them come down first
    assert 60 < ((theta**2 * xi.conj()).real < 0).sum() < 140
    ends = RACE.blowup_times(theta, xi)
    wanted = dop853(RACE, theta, xi, 0.9 * ends)
    # In units of its own t*, each blows up at 1.
    found = RACE.solve(theta * ends, xi * ends, 0.9)
    assert_same((found[0] / ends, found[1] / ends), wanted, 1e-9)


@pytest.mark.parametrize(
    ("theta", "xi"),
    [
        (1, 0.4 * np.exp(1e-6j)),  # M near 0
        (1, -0.4 * np.exp(1e-6j)),  # C > 0: ξ passes near 0
        (1, -2 * np.exp(1e-6j)),  # C < 0: θ passes near 0
        (1, np.sqrt(0.5) * np.exp(0.3j)),  # C near 0
        (1, -(np.sqrt(0.5) + 1e-9) * np.exp(0.3j)),
        (1, -0.9 * np.exp(-0.7j)),  # a turning point
        (1, 1j),  # at the turning point
        (1, 0),
        (1e-4 * np.exp(2j), 1),
    ],
)
def test_solution_equals_dop853_near_the_limits(theta, xi):
    a, b = pair(theta, xi)
    end = RACE.blowup_times(a, b)[0]
    past = RACE.blowup_times(a, -b)[0]
    for time in (0.2 * end, 0.5 * end, 0.8 * end, -0.3 * past):
        assert_same(RACE.solve(a, b, time), dop853(RACE, a, b, time), 1e-7)


def test_solution_equals_its_taylor_series_in_many_digits():
    """An independent hand: the series of θ and ξ about many times, in 34 digits."""
    mpmath = pytest.importorskip("mpmath")
    starts = [(0.3 - 0.8j, 0.5 + 0.4j), (1, -0.4 * np.exp(1e-9j)), (1, -2 * np.exp(1e-12j)), (1e-9, 1)]
    starts += [(1, 0), (1, 1e-9), (1, -0.3), (1, -(1 + 1e-8) / np.sqrt(2) * np.exp(0.5j))]
    with mpmath.workdps(34):
        for theta, xi in starts:
            a, b = pair(theta, xi)
            for part in (0.9,) if xi != 0 else (0.99, -0.4):
                time = part * RACE.blowup_times(a, b)[0]
                wanted = naive.lottery_series(mpmath, theta, xi, float(time))
                found = RACE.solve(a, b, time)
                # The flow itself magnifies a rounding of the time near its end.
                assert_same((found[0][:1], found[1][:1]), np.array(wanted)[:, None], 2e-15 / (1 - abs(part)))


def extreme_starts():
    """θ and ξ (n,): near M = 0, near C = 0, near and far from separatrices, at turning points, and limits."""
    angles = np.array([0, 1e-14, 1e-9, 1e-4, 0.3, np.pi / 2, 3, np.pi - 1e-4, np.pi - 1e-9, np.pi])
    sizes = np.array([1e-60, 1e-9, 1e-3, 0.1, 0.5**0.5 * (1 - 1e-12), 0.5**0.5, 0.8, 1, 3, 1e4, 1e12])
    xi = np.multiply.outer(sizes, np.exp(1j * angles)).ravel()
    return np.ones(len(xi), complex), xi


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_a_start_gives_the_same_bits_wherever_it_stands(count):
    theta, xi = extreme_starts()
    theta, xi = np.resize(theta, count), np.resize(xi[::-1], count)
    together = three_waves(theta, xi).ahead
    alone = [three_waves(theta[i : i + 1], xi[i : i + 1]).ahead[0] for i in range(count)]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(
        three_waves(np.asfortranarray([theta] * 2), np.asfortranarray([xi] * 2)).ahead[1], alone
    )


def test_blow_up_is_carlson_s_integral_with_the_roots():
    theta, xi = states(2, 50)
    C, M = RACE.conserved(theta, xi)
    w, R = np.abs(xi) ** 2, (theta**2 * xi.conj()).real
    found = RACE.blowup_times(theta, xi)
    for m, k in np.ndindex(w.shape):
        roots = np.roots([4, 4 * C[m, k], C[m, k] ** 2, -(M[m, k] ** 2)]).astype(complex)
        largest = roots[np.abs(roots.imag) < 1e-9].real.max()
        roots[np.abs(roots - largest).argmin()] = largest
        time = elliprf(*(w[m, k] - roots)).real
        if R[m, k] < 0:  # to the turning point and back
            time = 2 * elliprf(*(largest - roots)).real - time
        np.testing.assert_allclose(found[m, k], time, rtol=1e-7)  # np.roots has errors of its own


def test_elementary_limits():
    root = np.sqrt(0.5)
    times = np.array([-0.5, 0.3, 1.1])
    # M = 0, C = 1, ξ = 0: θ = 1/cos(z/2)·…, from dξ/dz = (1 + 2ξ²)/2.
    theta, xi = RACE.solve(*pair(1, 0), times)
    np.testing.assert_allclose(xi[:, 0], root * np.tan(root * times), atol=1e-15)
    np.testing.assert_allclose(theta[:, 0], 1 / np.cos(root * times), rtol=1e-14)
    np.testing.assert_allclose(RACE.blowup_times(*pair(1, 0)), np.pi / 2 / root, rtol=1e-14)
    # The same from before ξ = 0, through which it passes.
    before = RACE.solve(*pair(1, 0), -1.0)
    through = RACE.solve(*(part for part in before), 1.0 + times)
    np.testing.assert_allclose(through[1], xi, atol=1e-14)
    # C = M = 0: w = 1/(1/√w - z)² on the way up, and down for ever.
    theta, xi = RACE.solve(*pair(2**0.5, 1), times[:2])
    np.testing.assert_allclose(xi[:, 0], 1 / (1 - times[:2]), rtol=1e-7)  # √2² is not 2: C is 4e-16
    np.testing.assert_allclose(RACE.blowup_times(*pair(2, 2**0.5)), 1 / 2**0.5, rtol=1e-7)
    # C < 0 and M = 0 on the way down: ξ = -½√(2|C|) coth(…) goes to rest, θ to 0, and nothing blows up.
    a, b = pair(1, -2)
    assert np.isinf(RACE.blowup_times(a, b)).all()
    assert RACE.winners(a, b) == 0
    theta, xi = RACE.solve(a, b, 60.0)
    np.testing.assert_allclose(xi, -np.sqrt(3.5), rtol=1e-14)
    assert 0 < abs(theta[0]) < 1e-30
    late = RACE.solve(a, b, np.array([1.0, 5.0]))
    rate = np.sqrt(3.5)
    shift = np.arctanh(rate / 2)
    np.testing.assert_allclose(
        late[1][:, 0], -rate / np.tanh(rate * np.array([1.0, 5.0]) + shift), rtol=1e-13
    )
    # θ = 0: nothing moves, at any time.
    theta, xi = RACE.solve(*pair(0, 1 - 2j), [0.0, 1e6, -1e6])
    assert (theta == 0).all()
    assert (xi == 1 - 2j).all()
    assert (RACE.solve(*pair(0, 0), 7.0)[0] == 0).all()


def test_conserved_quantities_along_the_solution():
    theta, xi = states(3, 200)
    C, M = RACE.conserved(theta, xi)
    np.testing.assert_allclose(C, np.abs(theta) ** 2 - 2 * np.abs(xi) ** 2, atol=1e-14)
    np.testing.assert_allclose(M, (theta**2 * xi.conj()).imag, atol=1e-14)
    for unit, times in (
        (RACE.blowup_times(theta, xi), [0.1, 0.7, 0.999]),
        (RACE.blowup_times(theta, -xi), [-0.2, -0.9]),
    ):  # in units of the time to either blow-up, the past one being at -1
        a, b = RACE.solve(theta * unit, xi * unit, times)
        C_later, M_later = RACE.conserved(a, b)
        assert (np.abs(C_later - C * unit**2) <= 1e-12 * (np.abs(a) ** 2 + 2 * np.abs(b) ** 2)).all()
        assert (np.abs(M_later - M * unit**3) <= 1e-12 * np.abs(a) ** 2 * np.abs(b)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 0.8), st.floats(-3, 3), st.floats(1e-3, 1e3))
def test_symmetries(seed, part, angle, factor):
    theta, xi = states(seed, 1)
    time = part * RACE.blowup_times(theta, xi).min()
    later = RACE.solve(theta, xi, time)
    # Time reversal: (θ, -ξ, -t) moves as (θ, ξ, t), and the flow is a group.
    back = RACE.solve(theta, -xi, -time)
    assert_same((back[0], -back[1]), later, 1e-13)
    assert_same(RACE.solve(*later, -time), (theta, xi), 1e-11)
    halves = RACE.solve(*RACE.solve(theta, xi, 0.4 * time), 0.6 * time)
    assert_same(halves, later, 1e-11)
    # Scaling: (sθ, sξ, t/s).
    scaled = RACE.solve(factor * theta, factor * xi, time / factor)
    assert_same(scaled, (factor * later[0], factor * later[1]), 1e-11)
    # A phase rotation is a shift of tokens: φ by one angle, ψ by twice the angle.
    turn = np.exp(1j * angle)
    turned = RACE.solve(turn * theta, turn**2 * xi, time)
    assert_same(turned, (turn * later[0], turn**2 * later[1]), 1e-11)
    mirrored = RACE.solve(theta.conj(), xi.conj(), time)
    assert_same(mirrored, (later[0].conj(), later[1].conj()), 1e-12)


@settings(max_examples=100, deadline=None)
@given(
    st.tuples(st.floats(-90, 8), st.floats(-90, 8)),
    st.tuples(st.sampled_from([0, 1, 2, 3]), st.sampled_from([0, 1, 2, 3])),
    st.tuples(st.floats(-17, 0), st.booleans()),
    st.sampled_from([-0.7, -0.1, 0.01, 0.5, 0.9, 0.999]),
)
def test_states_of_any_size_stay_numbers(sizes, quarters, off, part):
    """Also where θ and ξ differ by a hundred orders of magnitude, or are nearly or exactly (anti)parallel."""
    phases = np.array(quarters) * np.pi / 2 + [10 ** off[0] * off[1], 0]
    a, b = (pair(10**size * np.exp(1j * phase), 0)[0] for size, phase in zip(sizes, phases, strict=True))
    end = RACE.blowup_times(a, b if part > 0 else -b)[0]
    assert end > 0
    theta, xi = RACE.solve(a, b, part * (end if np.isfinite(end) else 20 / np.abs(b[0])))
    assert np.isfinite(theta).all()
    assert np.isfinite(xi).all()
    for one, other, scale in zip(
        RACE.conserved(a, b),
        RACE.conserved(theta, xi),
        (np.abs(theta) ** 2 + 2 * np.abs(xi) ** 2, np.abs(theta) ** 2 * np.abs(xi)),
        strict=True,
    ):
        # What is left of C where both waves have died down is the rounding of the start.
        rest = 1e-4 * np.abs(one[0]) * (not np.isfinite(end))
        assert (np.abs(one - other) <= 1e-12 * np.maximum(scale, rest) + 1e-290).all()


def test_euler_converges_to_it_with_order_one():
    theta, xi = states(4, 5)
    time = 0.5 * RACE.blowup_times(theta, xi).min()
    exact = RACE.solve(theta, xi, time)
    errors = []
    for steps in (2000, 4000, 8000):
        a, b = theta, xi
        for _ in range(steps):
            da, db = RACE.velocity(a, b)
            a, b = a + time / steps * da, b + time / steps * db
        errors.append(np.abs(a - exact[0]).max() + np.abs(b - exact[1]).max())
    slopes = np.diff(np.log2(errors))
    np.testing.assert_allclose(slopes, -1, atol=0.03)


def test_the_winner_outgrows_the_others():
    race = FourierLottery(11, neurons=40)
    theta, xi = race.unpack(race.start(np.random.default_rng(5)))
    times, chosen = race.blowup_times(theta, xi), race.winners(theta, xi)
    for m in range(40):
        late = race.solve(theta[m], xi[m], (1 - 1e-9) * times[m].min())
        assert np.abs(late[0]).argmax() == chosen[m] - 1 == times[m].argmin()


def test_weights_are_packed_and_moved_by_simulate():
    race = FourierLottery(8, neurons=3)
    start = race.start(np.random.default_rng(6))
    theta, xi = race.unpack(start)
    np.testing.assert_allclose(race.pack(theta, xi) + start.mean(axis=0), start, atol=1e-16)
    moving = simulate(race, steps=6, step_size=3.0, runs=2, record=2, seed=6)
    theta, xi = race.unpack(moving.initial)
    wanted = race.solve(theta, xi, moving.times)
    for found, value in zip(race.unpack(moving.positions), wanted, strict=True):
        np.testing.assert_allclose(found, value.swapaxes(0, 1), rtol=1e-11, atol=1e-15)
    left = moving.observables["time_left"]
    np.testing.assert_allclose(left, race.blowup_times(theta, xi)[:, None] - moving.times[:, None, None])
    for name, value in zip("CM", race.conserved(theta, xi), strict=True):
        np.testing.assert_allclose(moving.observables[name], np.stack([value] * 4, 1), rtol=1e-9, atol=1e-16)
    assert physics.load is not None
    assert moving.parameters["system"]["type"] == "FourierLottery"
