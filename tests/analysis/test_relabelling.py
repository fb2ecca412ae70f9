"""Distances of shapes up to the relabelings of a problem, and these relabelings."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis
import physics
from analysis.comparison.motion import Paths
from analysis.comparison.relabelling import (
    Symmetry,
    affine_maps,
    aligned,
    best_relabelling,
    disparity,
    standard_pair,
)
from physics import Operation


def shapes(count, tokens, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((count, tokens, dim))


@pytest.mark.parametrize(("tokens", "dims"), [(5, (2, 2)), (6, (2, 3)), (7, (1, 1)), (4, (3, 2))])
def test_disparity_equals_scipys_over_all_affine_maps(tokens, dims):
    first, second = shapes(2, tokens, dims[0]), shapes(3, tokens, dims[1], 1)
    found, relabelling = analysis.comparison.procrustes_disparity(first, second)
    dim = max(dims)
    a, b = (np.pad(x, ((0, 0), (0, 0), (0, dim - x.shape[2]))) for x in (first, second))
    expected = [[naive.procrustes_disparity(x, y) for y in b] for x in a]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    maps = analysis.comparison.affine_maps(tokens).permutations
    again = [[naive.procrustes_disparity(x, y, [maps[g]]) for y, g in zip(b, row, strict=True)]
             for x, row in zip(a, relabelling, strict=True)]  # fmt: skip
    np.testing.assert_allclose(found, again, atol=1e-12)


@pytest.mark.parametrize(
    "group", [physics.symmetric(3), physics.theory.quaternion(), physics.theory.dihedral(4)], ids=repr
)
def test_disparity_equals_scipys_over_the_relabellings_of_a_group(group):
    symmetry = analysis.comparison.symmetry_of(group)
    first, second = shapes(2, group.order, 2), shapes(2, group.order, 2, 1)
    found, _ = analysis.comparison.procrustes_disparity(first, second, symmetry)
    expected = [[naive.procrustes_disparity(a, b, symmetry.permutations) for b in second] for a in first]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    "group",
    [
        physics.cyclic(5),
        physics.cyclic(6),
        physics.symmetric(3),
        physics.theory.direct_product(physics.cyclic(2), physics.cyclic(2)),
        physics.theory.dihedral(3),
    ],
    ids=repr,
)
def test_relabellings_of_a_group_are_all_there_are(group):
    symmetry = analysis.comparison.symmetry_of(group)
    assert set(map(tuple, symmetry.permutations.tolist())) == set(naive.relabellings(group.table.tolist()))
    assert symmetry.permutations[0].tolist() == list(range(group.order))


@pytest.mark.parametrize(
    ("group", "count"),
    [
        (physics.theory.quaternion(), 24),
        (physics.theory.dihedral(4), 8),
        (physics.theory.alternating(4), 24),
        (physics.symmetric(4), 24),
        (physics.theory.direct_product(*[physics.cyclic(2)] * 3), 168),
        (physics.cyclic(59), 58),
    ],
    ids=repr,
)
def test_groups_have_as_many_automorphisms_as_the_books_say(group, count):
    found = analysis.comparison.automorphisms(group)
    assert len(np.unique(found, axis=0)) == count
    a, b = np.random.default_rng(0).integers(group.order, size=(2, 50))
    for f in found[:20]:
        np.testing.assert_array_equal(f[group.table[a, b]], group.table[f[a], f[b]])


def test_plain_addition_allows_the_reversal_and_a_training_set_what_maps_it_onto_itself():
    plain, modular, symmetry_of = (
        physics.Operation(4),
        physics.Operation(5, 5),
        analysis.comparison.symmetry_of,
    )
    assert symmetry_of(plain).permutations.tolist() == [[0, 1, 2, 3], [3, 2, 1, 0]]
    assert len(symmetry_of(plain, [(0, 1), (2, 3)])) == 2
    assert len(symmetry_of(plain, [(0, 1), (1, 1)])) == 1
    units = symmetry_of(modular, [(0, 0)])
    assert units.permutations[:, 0].tolist() == [0] * 4, "the units alone keep the token 0"
    assert len(symmetry_of(modular) & symmetry_of(physics.Operation(5))) == 2


@given(u=st.integers(1, 10), s=st.integers(0, 10), seed=st.integers(0, 999), mirror=st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_same_shape_in_another_guise_is_found_and_aligned(u, s, seed, mirror):
    shape = shapes(1, 11, 2, seed)[0]
    turn = np.linalg.qr(shapes(1, 2, 2, seed + 1)[0])[0] @ np.diag([1, -1 if mirror else 1])
    guise = 3.0 * shape[(u * np.arange(11) + s) % 11] @ turn + 1.5
    found, relabelling = analysis.comparison.procrustes_disparity([shape], [guise])
    permutation = analysis.comparison.affine_maps(11).permutations[relabelling[0, 0]]
    assert found[0, 0] < 1e-12
    assert permutation.tolist() == [(u * i + s) % 11 for i in range(11)]
    np.testing.assert_allclose(aligned(shape, guise, permutation), guise, atol=1e-11)


def test_one_relabelling_for_all_frames_is_the_best_of_all():
    a, b = standard_pair(shapes(4, 5, 2), shapes(4, 5, 2, 1))
    maps = analysis.comparison.affine_maps(5)
    error, label = best_relabelling(a, b, maps)
    every = [disparity(a[:, g], b).mean() for g in maps.permutations]
    assert error == pytest.approx(min(every))
    assert label == np.argmin(every)
    gap = a.copy()
    gap[2] = np.nan
    error, _ = best_relabelling(gap, b, maps)
    assert error == pytest.approx(min(disparity(gap[:, g], b)[[0, 1, 3]].mean() for g in maps.permutations))


def test_the_search_by_transforms_equals_that_by_lists_in_the_size_of_the_papers():
    maps = analysis.comparison.affine_maps(59)
    first, second = shapes(2, 59, 2), shapes(2, 59, 2, 1)
    fast = analysis.comparison.procrustes_disparity(first, second, maps)
    slow = analysis.comparison.procrustes_disparity(first, second, Symmetry("list", maps.permutations))
    np.testing.assert_allclose(fast[0], slow[0], atol=1e-13)
    np.testing.assert_array_equal(fast[1], slow[1])


def test_shapes_of_different_dimension_are_comparable():
    flat = shapes(1, 5, 2)[0]
    raised = np.pad(flat, ((0, 0), (0, 1)))
    assert analysis.comparison.procrustes_disparity([flat], [raised])[0][0, 0] < 1e-12


def test_of_relabellings_that_fit_alike_the_first_is_taken():
    """A circle is its own mirror image: the unit 1 is kept, and the unit -1 not looked for."""
    angle = 2 * np.pi * np.arange(7) / 7
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    maps = analysis.comparison.affine_maps(7)
    found, label = analysis.comparison.procrustes_disparity([circle], [circle], maps)
    assert found[0, 0] == pytest.approx(0, abs=1e-12)
    moved = maps.permutations[label[0, 0]]
    assert (moved[1] - moved[0]) % 7 == 1
    listed = Symmetry("list", np.array([[1, 2, 3, 4, 5, 6, 0], np.arange(7), (-np.arange(7)) % 7]))
    a, b = standard_pair(circle[None], circle[None])
    assert best_relabelling(a, b, listed)[1] in (0, 1)


# -- distances --------------------------------------------------------------------------------------------


def test_paths_are_interpolated_between_their_frames_and_end_with_them():
    times = np.array([0.0, 1.0, 4.0])
    positions = np.array([0.0, 2.0, 8.0], np.float32)[None, :, None, None] * np.ones((2, 1, 3, 2), np.float32)
    paths = Paths(positions, times)
    assert paths.duration == 4
    found = paths.at(np.array([0.0, 0.5, 1.0, 2.5, 4.0, 4.0 * (1 + 1e-13), 4.1, -0.1, np.nan]))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found[0, :6, 0, 0], [0, 1, 2, 5, 8, 8])
    assert np.isnan(found[:, 6:]).all()
    apart = paths.at(np.array([[0.5, 1.0], [2.5, 4.0]]))
    np.testing.assert_allclose(apart[:, :, 1, 1], [[1, 2], [5, 8]])


# -- symmetries -------------------------------------------------------------------------------------------


def test_a_training_set_keeps_what_maps_it_onto_itself():
    modular = Operation(5, 5)
    full = [(i, j) for i in range(5) for j in range(i, 5)]
    assert analysis.comparison.symmetry_of(modular, full).affine, "the whole table keeps all"
    kept = analysis.comparison.symmetry_of(modular, [(0, 1), (2, 2)])
    assert kept.name == "i → u i + c (mod 5) within the training set"
    pairs = {frozenset((0, 1)), frozenset((2,))}
    expected = [
        g for g in affine_maps(5).permutations.tolist()
        if {frozenset(g[i] for i in pair) for pair in pairs} == pairs
    ]  # fmt: skip
    assert kept.permutations.tolist() == expected
    assert not kept.affine
    theory = physics.EffectiveTheory(5, 2, modulus=5)
    assert len(analysis.comparison.symmetry_of(theory)) == 20
    group = physics.symmetric(3)
    assert analysis.comparison.symmetry_of(group).name == f"automorphisms of {group.name} and its center"
    assert analysis.comparison.symmetry_of(physics.cyclic(5)).affine
    assert analysis.comparison.symmetry_of(Operation(5)).name == "reversal"
    one = analysis.comparison.symmetry_of(group, [(0, 1)])
    table = group.table
    for g in one.permutations.tolist():
        assert (g[0], g[1]) == (0, 1), "of a group that does not commute, the order of a pair counts"
    assert (one.permutations[0] == np.arange(6)).all()
    assert table.shape == (6, 6)
