"""Tables of pair kernels: their features against a plain sum, and `PairForces` as the particles of Musat."""

import math

import numpy as np
import pytest

import physics
from physics import PairForces, ParticleSystem
from physics.particles.tabulated import PairKernels, Pairs, Tables, features

R = np.linspace(0.0, 9.0, 9001)
PAIRS = [(i, j) for i in range(7) for j in range(i, 7) if (3 * i + j) % 4]


def plain_features(x, pairs, label, weights, distance, angle, radius):
    """Features (tokens, dim, K) of functions of distance, angle and radius, with a jump and random layers."""
    sums = [x[i] + x[j] for i, j in pairs]
    size = np.linalg.norm

    def unit(s):
        return s / size(s)

    def total(force, same, itself=False):
        return [
            sum(
                (weights[int(same)] * force(s, t) for b, t in enumerate(sums)
                 if (itself or b != a) and (label[a] == label[b]) == same),
                np.zeros(x.shape[1]),
            )
            for a, s in enumerate(sums)
        ]  # fmt: skip

    def layers(s, t):
        return (math.pi - theta(s, t)) * t + size(t) * math.sin(theta(s, t)) * unit(s)

    kinds = (False, True)
    blocks = [
        *(total(lambda s, t, f=f: f(size(s - t)) * unit(s - t), same) for same in kinds for f in distance),
        *(total(lambda s, t, f=f: f(theta(s, t)) * unit(t), same) for same in kinds for f in angle),
        *(total(lambda s, t: (theta(s, t) < math.pi / 2) * unit(t), same) for same in kinds),
        *(total(layers, same, itself=True) for same in kinds),
        *([f(size(s)) * unit(s) for s in sums] for f in radius),
    ]
    out = np.zeros((*x.shape, len(blocks)))
    for k, block in enumerate(blocks):
        for (i, j), force in zip(pairs, block, strict=True):
            out[i, :, k] += force
            out[j, :, k] += force
    return out


def theta(s, t):
    return math.acos(min(1.0, max(-1.0, s @ t / np.linalg.norm(s) / np.linalg.norm(t))))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_features_are_the_plain_sum(dim):
    x = np.random.default_rng(dim).standard_normal((3, 7, dim))
    label = [(i + j) % 7 for i, j in PAIRS]
    weights = np.array([0.3, 1.7])
    distance, angle = [lambda r: r, lambda r: 2 - r], [lambda t: t, lambda t: 1 - t / 2]
    radius = [lambda r: 3 * r]
    grids = R, np.linspace(0, math.pi, 257), R  # linear functions lose nothing between the places of a grid
    functions = zip((distance, angle, radius), grids, strict=True)
    arrays = [np.stack([function(grid) for function in each], axis=1) for each, grid in functions]
    tables = Tables(*arrays, 9.0, 9.0, True, True)
    first, second = np.array(PAIRS).T[:, None].copy()
    pairs = Pairs(first, second, np.array([label]), weights[None])
    found = np.empty((3, 7, dim, sum(tables.counts)))
    features(x, np.zeros(3, np.int64), pairs, tables, found)
    for run, expected in zip(found, x, strict=True):
        plain = plain_features(expected, PAIRS, label, weights, distance, angle, radius)
        np.testing.assert_allclose(run, plain, rtol=1e-6, atol=1e-6)


def clustering(r2, same_class, a, r, f, same, other):
    return -a * same / math.sqrt(r2 + 0.01) if same_class else r * other / (r2 + 0.01)


def alignment(cosine, same_class, a, r, f, same, other):
    return 0.0 if cosine <= 0 else f * same if same_class else -f * other


@pytest.mark.parametrize("pairs", [None, PAIRS])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_particles_of_musat_are_pair_forces(dim, pairs):
    """As functions to the last digits, along whole trajectories; as tables to the error of their grid."""
    particles = ParticleSystem(7, dim, attraction=0.7, repulsion=1.3, alignment=0.9, pairs=pairs)
    same, other = particles.weights

    options = {"on": "pair sums", "pairs": pairs, "normalise": True}
    free = PairForces(clustering, 7, dim, parameters=[0.7, 1.3, 0.9, same, other], along=alignment, **options)
    tables = PairKernels(
        distance=[1.3 * other * R / (R**2 + 0.01), -0.7 * same * R / np.sqrt(R**2 + 0.01)],
        longest=9.0,
        jump=[-0.9 * other, 0.9 * same],
    )
    tabulated = PairForces(tables, 7, dim, **options)
    x = np.random.default_rng(0).standard_normal((3, 7, dim))
    for system, error in ((free, 1e-12), (tabulated, 1e-4)):
        np.testing.assert_allclose(system.forces(x), particles.forces(x), rtol=error, atol=error)
        np.testing.assert_allclose(system.forces(x[0]), particles.forces(x[0]), rtol=error, atol=error)
        np.testing.assert_allclose(system.velocity(x), particles.velocity(x), rtol=error, atol=error)
        runs = [physics.simulate(each, runs=2, steps=25, seed=4).final for each in (system, particles)]
        np.testing.assert_allclose(*runs, rtol=10 * error, atol=10 * error)


def test_the_adaptive_flow_of_normalised_points_keeps_their_variance():
    tables = PairKernels(distance=np.stack([-R, R]), longest=9.0)
    system = PairForces(tables, 5, 2, on="pair sums", normalise=True, integrator="adaptive")
    final = physics.simulate(system, runs=2, steps=40).final
    np.testing.assert_allclose(final.var(axis=1), 1.0, rtol=1e-12)


def test_tables_are_stored_and_travel(tmp_path):
    tables = PairKernels(distance=np.stack([-R[:9], R[:9]]), longest=9.0, radius=[0.0, -1.0])
    system = PairForces(tables, 5, 2)
    made = physics.simulate(system, steps=4, out=tmp_path / "t.h5")
    stored = physics.load(tmp_path / "t.h5").parameters["system"]["function"]
    assert stored["distance"][1][1] == R[1]
    np.testing.assert_array_equal(made.final, physics.simulate(system, steps=4).final)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"distance": [1.0, 2.0]}, "distance"),
        ({"distance": [[1.0, np.nan]] * 2}, "distance"),
        ({"angle": [[1.0]] * 2}, "angle"),
        ({"radius": [[1.0, 2.0]]}, "radius"),
        ({"jump": [1.0]}, "jump"),
        ({"longest": 0.0}, "longest"),
    ],
)
def test_tables_that_are_refused(options, name):
    with pytest.raises(physics.InputError, match=name):
        PairKernels(**options)


def test_pairs_and_functions_of_the_angle_are_refused_where_they_mean_nothing():
    with pytest.raises(physics.InputError, match="pairs"):
        PairForces(lambda r2: 1.0, 5, 2, pairs=[(0, 1)])
    with pytest.raises(physics.InputError, match="along"):
        PairForces(PairKernels(), 5, 2, along=lambda cosine: 1.0)
    with pytest.raises(physics.InputError, match="along"):
        PairForces(lambda r2: 1.0, 5, 2, along=lambda: 1.0)


def test_a_system_of_tables_prints_their_shapes_on_one_screen():
    tables = PairKernels(distance=np.zeros((2, 400)), angle=np.zeros((2, 300)))
    pairs = [(i, j) for i in range(17) for j in range(i, 17)][:122]
    system = physics.PairForces(tables, tokens=17, dim=2, on="pair sums", pairs=pairs)
    for shown in (system, tables):
        lines = str(shown).splitlines()
        assert len(lines) < 20
        assert max(map(len, lines)) < 120
        assert "(2, 400)" in str(shown)
