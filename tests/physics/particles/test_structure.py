import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import physics


def circle(tokens=17, frequency=1):
    angle = 2 * np.pi * frequency * np.arange(tokens) / tokens
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def perfect_grid(tokens=17, step=(1.0, 0.0)):
    return np.outer(np.arange(tokens), step)


@given(st.integers(3, 8), st.integers(1, 3), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_imperfections_equal_algorithm_2_on_random_states(tokens, dim, seed):
    E = np.random.default_rng(seed).standard_normal((tokens, dim))
    assert physics.grid_imperfections(E) == naive.grid_imperfections(E)


@given(st.integers(3, 8), st.integers(2, 4), st.sampled_from([1.0, 0.1, 1 / 3]), st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_imperfections_equal_algorithm_2_where_ties_abound(tokens, size, spacing, seed):
    E = spacing * np.random.default_rng(seed).integers(0, size, (tokens, 2))
    assert physics.grid_imperfections(E) == naive.grid_imperfections(E)


def by_arrays(E):
    first, second = np.triu_indices(len(E))
    label = (first + second) % len(E)
    sums = E[first] + E[second]
    squared = np.zeros((len(sums), len(sums)))
    for axis in range(E.shape[1]):
        squared += (sums[:, None, axis] - sums[None, :, axis]) ** 2
    distance = np.sqrt(squared)
    np.fill_diagonal(distance, np.inf)
    return int((label[distance.argmin(axis=1)] != label).sum())  # argmin: the first where distances tie


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("tokens", [30, 49])
def test_imperfections_of_larger_states(tokens, dim):
    rng = np.random.default_rng(tokens)
    lattice = np.stack(np.unravel_index(np.arange(tokens), (7,) * dim if dim > 1 else (tokens,)), axis=1)
    states = [
        rng.standard_normal((tokens, dim)),
        0.1 * lattice,
        0.1 * rng.permutation(lattice),
        1e9 + rng.standard_normal((3, dim))[rng.integers(0, 3, tokens)],
        1e-7 * rng.standard_normal((tokens, dim)) + lattice,
        np.eye(dim)[0] * rng.standard_normal((tokens, 1)),
        np.ones((tokens, dim)),
    ]
    for E in states:
        assert physics.grid_imperfections(E) == by_arrays(E)
    np.testing.assert_array_equal(
        physics.grid_imperfections(np.stack(states[:3])), list(map(by_arrays, states[:3]))
    )


@pytest.mark.parametrize("dim", [1, 2])
def test_imperfections_of_a_training_set_by_the_product_of_a_group(dim):
    group = physics.theory.direct_product(physics.cyclic(2), physics.cyclic(3))
    pairs = [(0, 1), (2, 2), (3, 5), (1, 4), (0, 4), (5, 5), (1, 3), (2, 3), (4, 4)]
    E = np.random.default_rng(dim).integers(0, 3, (4, 6, dim)) / 2
    for options, rule in (
        ({"group": group, "pairs": pairs}, lambda i, j: group.table[i, j]),
        ({"pairs": pairs, "modulus": 4}, lambda i, j: (i + j) % 4),
        ({"group": group.table}, lambda i, j: group.table[i, j]),
    ):
        training = sorted(options["pairs"]) if "pairs" in options else None
        expected = [naive.grid_imperfections(one, rule=rule, training=training) for one in E]
        np.testing.assert_array_equal(physics.grid_imperfections(E, **options), expected)
        assert len(set(expected)) > 1


def test_a_single_pair_sum_has_no_neighbor():
    assert physics.grid_imperfections(np.ones((4, 2)), pairs=[(0, 1)]) == 1


def test_pair_sums_do_not_overflow():
    assert physics.grid_imperfections(np.full((4, 2), 1.7e308)) == by_arrays(np.ones((4, 2))) == 8


def test_circles_are_found_in_any_batch():
    shapes = np.stack([circle(), circle(frequency=3), perfect_grid() - 8.3, 1.19 * circle()])
    shapes[3, 0] /= 1.21
    np.testing.assert_array_equal(physics.is_circle(shapes), [True, True, False, False])
    np.testing.assert_array_equal(physics.is_circle(shapes, threshold=1.3), [True, True, False, True])
    assert physics.is_circle(circle()).shape == ()
    assert physics.is_circle(shapes.reshape(2, 2, 17, 2)).shape == (2, 2)
    assert physics.grid_imperfections(shapes.reshape(2, 2, 17, 2)).shape == (2, 2)


def test_a_token_at_the_origin_is_no_circle():
    E = circle(5)
    E[0] = 0
    assert physics.circle_ratio(E) == np.inf
    assert not physics.is_circle(E)
    assert not physics.is_circle(np.zeros((5, 2)))


def turned(E, dim, seed=0):
    """Put points of a plane into more dimensions, by a random rotation."""
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]
    return E @ rotation[: E.shape[-1]]


@pytest.mark.parametrize("unit", [2.0**-1060, 2.0**-600, 2.0**520, 2.0**1018])
def test_structures_are_the_same_in_any_unit(unit):
    rng = np.random.default_rng(0)
    for dim in (1, 2, 3):
        E = rng.integers(-9, 10, (2, 7, dim)) + 0.5
        np.testing.assert_allclose(physics.circle_ratio(E * unit), physics.circle_ratio(E), rtol=1e-14)
        np.testing.assert_array_equal(
            physics.is_circle(E * unit, threshold=30), physics.is_circle(E, threshold=30)
        )
        np.testing.assert_array_equal(physics.grid_imperfections(E * unit), physics.grid_imperfections(E))


@pytest.mark.parametrize("dim", [3, 4, 128])
def test_a_circle_in_more_dimensions_lies_in_a_plane(dim):
    ring = circle(frequency=3)
    assert physics.is_circle(turned(ring, dim))
    assert not physics.is_circle(turned(ring * [1.3, 1.0], dim))
    on_a_sphere = np.random.default_rng(1).standard_normal((17, dim))
    on_a_sphere /= np.linalg.norm(on_a_sphere, axis=1, keepdims=True)
    assert physics.circle_ratio(on_a_sphere) < 1.2
    assert not physics.is_circle(on_a_sphere)
    above_the_origin = turned(np.column_stack([ring, np.full(17, 0.5)]), dim)
    assert physics.circle_ratio(above_the_origin) < 1.2
    assert not physics.is_circle(above_the_origin)


def test_two_circles_in_planes_of_their_own_are_not_one():
    both = turned(np.hstack([circle(frequency=2), circle(frequency=5)]), 6)
    assert physics.circle_ratio(both) == pytest.approx(1)
    assert not physics.is_circle(both)
    weak = turned(np.hstack([circle(frequency=2), 0.09 * circle(frequency=5)]), 6)
    assert physics.is_circle(weak)  # 0.8 % of its squares lie outside the plane of the strong one


def test_how_far_from_its_plane_a_circle_may_be():
    """The definition: no plane through the origin has more than 1 % of the squared distances outside."""
    rng = np.random.default_rng(2)
    height = rng.uniform(0.0, 0.25, (60, 1, 1)) * rng.standard_normal((60, 17, 1))
    states = turned(np.concatenate([np.tile(circle(), (60, 1, 1)), height], axis=2), 3)
    share = []
    for E in states:
        _, vectors = np.linalg.eigh(E.T @ E)
        share.append(np.sum((E @ vectors[:, 0]) ** 2) / np.sum(E**2))
    expected = (physics.circle_ratio(states) < 1.3) & (np.array(share) <= 0.01)
    assert 5 < expected.sum() < (physics.circle_ratio(states) < 1.3).sum()
    np.testing.assert_array_equal(physics.is_circle(states, threshold=1.3), expected)
    np.testing.assert_array_equal(
        physics.is_circle(1e150 * states.reshape(3, 20, 17, 3), threshold=1.3), expected.reshape(3, 20)
    )
