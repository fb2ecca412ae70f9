"""What the runs behind the views are made of: histories, starts, planes, shapes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")

from browser import executed

from grokphys.explorer.runs import common
from grokphys.explorer.runs.circles import octave, open_run
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.runs.training_set import TrainingSet
from grokphys.explorer.views.circles import finished, labels


@settings(max_examples=60, deadline=None)
@given(limit=st.integers(4, 20), steps=st.lists(st.integers(0, 3), min_size=1, max_size=120))
def test_a_history_keeps_the_first_and_the_last_frame_in_bounded_memory(limit, steps):
    history, step, known = common.History(limit), 0, {}
    for ahead in steps:
        step += ahead
        known[step] = len(known) + 7 * ahead
        history.append(step, value=known[step])
        assert len(history) <= limit
        assert history.steps[0] == min(known)
        assert history.steps[-1] == step
        assert (np.diff(history.steps) > 0).all()
    assert history["value"].tolist() == [known[step] for step in history.steps]
    assert history.last["value"] == known[step]


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


def test_the_plane_of_the_strongest_circle_shows_the_circle():
    angle = 2 * np.pi * 3 * np.arange(11) / 11
    E = 0.01 * np.random.default_rng(0).normal(size=(11, 5))
    E[:, 1] += np.cos(angle)
    E[:, 4] += np.sin(angle)
    shown = E @ common.plane_axes(E, common.STRONGEST).T
    assert physics.is_circle(shown)
    assert common.circle_step(shown) == 4, "3 · 4 = 1 modulo 11"


@pytest.mark.parametrize(("tokens", "step"), [(7, 1), (7, 3), (17, 8), (12, 5)])
def test_the_step_of_a_circle(tokens, step):
    place = np.empty(tokens, int)
    place[np.arange(tokens) * step % tokens] = np.arange(tokens)
    E = np.stack([np.cos(2 * np.pi * place / tokens), np.sin(2 * np.pi * place / tokens)], axis=1)
    assert common.circle_step(E) == step
    shape, words = common.shape(E, 99)
    assert (shape, words.split(",")[1].strip()[:6]) == ("circle", f"step {step}"[:6])
    assert common.circle_step(E[[1, 0, *range(2, tokens)]]) is None


def test_grids_are_told_by_their_imperfections():
    line = np.arange(7.0)[:, None]
    assert common.shape(line, 0) == (
        "grid",
        "Perfect grid on a line: pair sums that lie together are of one class.",
    )
    assert common.shape(line, 9)[1] == "Grid on a line, 9 imperfections."
    assert common.shape(line, 10)[0] == "", "more than a third of 28"
    x, y = np.divmod(np.arange(9.0), 3)
    assert common.shape(np.stack([x, y], axis=1), 1)[1] == "Grid, 1 imperfection."
    assert common.circles([], 5) == "No circle stands out yet."
    assert common.circles([2, 4], 5) == "2 of 5 circles stand out: 2, 4."


def test_half_circles_lead_from_one_symbol_of_a_pair_to_the_other():
    chosen = TrainingSet.drawn(9, size=14, seed=3)
    sums = [i + j for i, j in chosen.pairs]
    shared = [pair for pair in chosen.pairs if sums.count(sum(pair)) > 1]
    panel = chosen.panels(20)["tokens"]
    middle, radius = panel.center, panel.radius
    ends = chosen.embeddings[20, :, 0][np.array(shared)]
    np.testing.assert_allclose(np.stack([middle - radius, middle + radius], axis=1), np.sort(ends, axis=1))


def test_octaves_are_half_and_twice_a_frequency():
    assert octave(11, 59) == {22, 24}, "half of 11 is 24: 48 is 11 up to sign"
    for tokens in (7, 12, 59):
        for k in range(1, tokens // 2 + 1):
            for other in octave(k, tokens):
                assert k in octave(other, tokens)
                apart = {2 * k - other, 2 * k + other, 2 * other - k, 2 * other + k}
                assert any(number % tokens == 0 for number in apart)


def test_a_long_run_is_thinned(tmp_path, monkeypatch):
    positions = np.random.default_rng(0).normal(size=(1, 9, 5, 2))
    physics.Trajectory(positions, range(9)).save(tmp_path / "a.h5")
    monkeypatch.setattr("grokphys.explorer.runs.circles.LARGEST_FRAMES", 4)
    run = open_run(tmp_path / "a.h5")
    assert (run.every, run.steps.tolist()) == (3, [0, 3, 6, 8])
    np.testing.assert_array_equal(run.embeddings, positions[0, [0, 3, 6, 8]])
    names = executed(run.python(run.planes()[0], 1))
    np.testing.assert_array_equal(names["E"], positions[0, 3])


def test_names_of_files(tmp_path):
    (tmp_path / "a.h5").touch()
    assert finished(str(tmp_path / "a.h5.partial")) == str(tmp_path / "a.h5")
    (tmp_path / "a.h5.partial").touch()
    assert finished(str(tmp_path / "a.h5.partial")) == str(tmp_path / "a.h5.partial")
    assert labels({"1": "x/a.h5", "2": "y/a.h5", "3": "z/b.h5"}) == {
        "1": "x/a.h5",
        "2": "y/a.h5",
        "3": "b.h5",
    }
