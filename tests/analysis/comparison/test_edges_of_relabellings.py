"""Edges of distances and relabelings: blocks, gaps, points without a shape, and symmetries in common."""

import numpy as np
import pytest
from ensembles import noise

import analysis
import physics
from analysis.comparison import relabelling
from analysis.comparison.motion import Paths, relative_error
from analysis.comparison.relabelling import aligned, best_relabelling, disparity, standard
from analysis.comparison.symmetry import Symmetry, affine_maps, no_relabelling
from physics import Operation

# -- distances --------------------------------------------------------------------------------------------


def test_a_relabelling_does_not_depend_on_the_size_of_a_block(monkeypatch):
    first, second = noise(5, 7, 2), noise(4, 7, 2, seed=1)
    maps = affine_maps(7)
    listed = Symmetry("list", maps.permutations)
    expected = analysis.comparison.procrustes_disparity(first, second, maps)
    for block in (1, 4 * 7 * 4 * 2, 2**23):
        monkeypatch.setattr(relabelling, "BLOCK", block)
        for symmetry in (maps, listed):
            found = analysis.comparison.procrustes_disparity(first, second, symmetry)
            np.testing.assert_allclose(found[0], expected[0], atol=1e-12)
            np.testing.assert_array_equal(found[1], expected[1])


def test_frames_of_either_side_that_are_unknown_do_not_count():
    a, b = standard(noise(4, 5, 2), 2), standard(noise(4, 5, 2, seed=1), 2)
    maps = affine_maps(5)
    for side in (0, 1):
        gap = [a.copy(), b.copy()]
        gap[side][1, 0, 0] = np.nan
        kept = [0, 2, 3]
        error, label = best_relabelling(*gap, maps)
        expected = [disparity(a[kept][:, g], b[kept]).mean() for g in maps.permutations]
        assert error == pytest.approx(min(expected))
        assert label == np.argmin(expected)
        assert np.isnan(disparity(*gap)).tolist() == [False, True, False, False]
    nothing, _ = best_relabelling(np.full((2, 5, 2), np.nan), b[:2], maps)
    assert nothing == 1


def test_shapes_are_centered_scaled_and_padded_and_points_have_no_shape():
    shapes = noise(3, 5, 2) * 7 + 4
    shapes[1] = 2.0
    found = standard(shapes, 4)
    assert found.shape == (3, 5, 4)
    assert not found[[0, 2], :, 2:].any()
    np.testing.assert_allclose((found[[0, 2]] ** 2).sum(axis=(1, 2)), 1)
    np.testing.assert_allclose(found[[0, 2]].mean(axis=1), 0, atol=1e-12)
    assert np.isnan(found[1, :, :2]).all()
    flat, target = aligned([[0.0], [1.0], [2.0]], [[5.0], [3.0], [1.0]]), [[5.0], [3.0], [1.0]]
    np.testing.assert_allclose(flat, target)
    turned = aligned(noise(5, 2), noise(5, 2)[[4, 3, 2, 1, 0]], [4, 3, 2, 1, 0])
    np.testing.assert_allclose(turned, noise(5, 2)[::-1])


def test_the_error_of_states_is_relative_to_the_spread_of_the_second():
    a, b = noise(2, 3, 4, 1), noise(2, 3, 4, 1, seed=1) + 10
    b[0, 1] = 3.0
    found = relative_error(a, b)
    assert found.shape == (2, 3)
    assert np.isnan(found).tolist() == [[False, True, False], [False] * 3]
    expected = ((a[1, 2] - b[1, 2]) ** 2).sum() / ((b[1, 2] - b[1, 2].mean()) ** 2).sum()
    assert found[1, 2] == pytest.approx(expected)


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


def test_what_two_symmetries_share_keeps_the_search_by_transforms_if_they_are_one():
    maps, again = affine_maps(5), affine_maps(5)
    assert maps & again is maps
    assert (maps.affine, no_relabelling(5).affine, no_relabelling(5).tokens) == (True, False, 5)
    half = Symmetry("half", maps.permutations[::2])
    both = maps & half
    assert (both.name, both.affine) == ("i → u i + c (mod 5) and half", False)
    np.testing.assert_array_equal(both.permutations, half.permutations)
    other = Symmetry("other", maps.permutations[::-1])
    assert len(maps & other) == 20
    assert (maps & other).name == "i → u i + c (mod 5) and other"


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


@pytest.mark.parametrize(("first", "second"), [(0, 2), (2, 0), (0, 0)])
def test_no_shapes_have_no_distances(first, second):
    found, relabellings = analysis.comparison.procrustes_disparity(
        np.empty((first, 7, 2)), noise(max(second, 1), 1, 7, 2)[:second, 0]
    )
    assert found.shape == relabellings.shape == (first, second)
