"""What the runs behind the views are made of: starts, planes, shapes."""

import numpy as np
import pytest

import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")

from browser import executed
from sessions import opened

from grokphys.explorer.runs import common
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.views.circles import CirclesView


@pytest.mark.parametrize("kind", common.KINDS)
@pytest.mark.parametrize(("tokens", "dim"), [(5, 1), (17, 2), (9, 3)])
def test_a_start_is_what_its_program_gives(kind, tokens, dim):
    start = common.start(kind, tokens, dim, 3, 0.2)
    run = ParticleRun(physics.ParticleSystem(tokens, dim), 0.01, start)
    np.testing.assert_array_equal(executed(run.python())["E"], run.positions)
    assert run.positions.shape == (tokens, dim)


@pytest.mark.parametrize("dim", [1, 2, 3, 6, 9])
def test_axes_of_planes_are_orthonormal_and_stay_near_the_last(dim):
    E = np.random.default_rng(dim).normal(size=(11, dim))
    for name in common.planes(dim, cyclic=True):
        axes = common.plane_axes(E, name)
        if dim > 1:
            np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
        turned = common.plane_axes(E, name, -axes)
        np.testing.assert_allclose(turned, axes if name.startswith("axes") else -axes, atol=1e-9)


@pytest.mark.parametrize(("tokens", "spacing"), [(7, 1), (7, 3), (17, 8), (12, 5)])
def test_neighbors_on_a_circle(tokens, spacing):
    place = np.empty(tokens, int)
    place[np.arange(tokens) * spacing % tokens] = np.arange(tokens)
    E = np.stack([np.cos(2 * np.pi * place / tokens), np.sin(2 * np.pi * place / tokens)], axis=1)
    assert common.shape(E, 99).startswith(f"Circle, neighbors {spacing} apart (0, {spacing}, ")
    assert common.shape(E[[1, 0, *range(2, tokens)]], 99).endswith("in no regular order.")


def test_grids_are_told_by_their_imperfections():
    line = np.arange(7.0)[:, None]
    assert common.shape(line, 0).startswith("Perfect grid on a line: ")
    assert common.shape(line, 9) == "Grid on a line, 9 imperfections."
    assert common.shape(line, 10) == "Neither a circle nor a grid.", "more than a third of 28"
    x, y = np.divmod(np.arange(9.0), 3)
    assert common.shape(np.stack([x, y], axis=1), 1) == "Grid, 1 imperfection."


def test_a_long_run_is_thinned(tmp_path, monkeypatch):
    positions = np.random.default_rng(0).normal(size=(1, 9, 5, 2))
    physics.Trajectory(positions, range(9)).save(tmp_path / "a.h5")
    monkeypatch.setattr("grokphys.explorer.runs.circles.LARGEST_FRAMES", 4)
    view = opened(CirclesView, files=[tmp_path / "a.h5"]).view
    assert (view.run.every, view.run.steps.tolist()) == (3, [0, 3, 6, 8])
    np.testing.assert_array_equal(view.run.embeddings, positions[0, [0, 3, 6, 8]])
    view.frame = 1
    np.testing.assert_array_equal(executed(view.python())["E"], positions[0, 3])
