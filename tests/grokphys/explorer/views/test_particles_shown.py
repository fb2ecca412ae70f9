"""What the view of particles and its runs show, keep and say, recomputed from the positions themselves."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import opened, put

import physics
from grokphys.explorer.plots import plane
from grokphys.explorer.runs import starts, verdicts
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.runs.planes import plane_axes
from grokphys.explorer.views import particles
from physics.errors import SimulationError
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem

LAW, OTHER = ParticleSystem(7), ParticleSystem(7, alignment=2.0, modulus=5)


@pytest.fixture(scope="module")
def page():
    return opened(particles.ParticlesView)


@pytest.fixture
def view(page):
    page.view.restore({"tokens": 7})
    return page.view


def xy(source):
    return np.stack([source.data["x"], source.data["y"]], axis=1)


def run_of(law=LAW, kind="normal"):
    return ParticleRun(law, 0.02, starts.start(kind, 7, 2, 3))


# -- the view ---------------------------------------------------------------------------------------------


def test_particles_and_their_pair_sums_are_drawn_by_class(page, view):
    put(page, view._modulus, 5)
    view.advance(4)
    view.show()
    E, system = view._run.positions, view._run.system
    axes = plane_axes(E, "axes 1, 2")
    np.testing.assert_allclose(xy(view._particles.tokens), E @ axes.T)
    pairs = [(i, j) for i in range(7) for j in range(i, 7)]
    drawn = {tuple(map(int, pair.split(", "))): at for at, pair in enumerate(view._sums._sums.data["pair"])}
    assert {tuple(sorted(pair)) for pair in drawn} == set(pairs)
    for (i, j), at in drawn.items():
        np.testing.assert_allclose(xy(view._sums._sums)[at], (E[i] + E[j]) @ axes.T, atol=1e-4)
        assert view._sums._sums.data["class"][at] == str((i + j) % 5)
    assert system.modulus == 5
    ratio, count = view._curves.ratio._source.data, view._curves.imperfections._source.data
    assert ratio["step"].tolist() == count["step"].tolist() == [0, 4]
    assert ratio["ratio"][-1] == circle_ratio(E)
    assert count["imperfections"][-1] == grid_imperfections(E, modulus=5)


def test_arrows_show_where_the_law_leads_in_a_fifth_of_a_unit_of_time(page, view):
    put(page, view._with_arrows, True, "active")
    arrows = view._particles._arrows.data
    begin, end = (np.stack([arrows[f"x{k}"], arrows[f"y{k}"]], axis=1) for k in (0, 1))
    E = view._run.positions
    np.testing.assert_allclose(begin, E @ view._axes.T)
    velocity = 0.2 * view._run.system.velocity(E[None])[0] @ view._axes.T
    factor = np.linalg.norm(end - begin) / np.linalg.norm(velocity)
    np.testing.assert_allclose(end - begin, factor * velocity, atol=1e-12)
    assert factor <= 1
    put(page, view._with_arrows, False, "active")
    assert len(view._particles._arrows.data["x0"]) == 0


def test_keys_choose_particles_around_and_nudge_the_chosen_one(view):
    names = [name for name, way in particles.WAYS.items() if way == (1, 0)]
    forth = names[0]
    back = next(name for name, way in particles.WAYS.items() if way == (-1, 0))
    view.key(forth)
    assert view._chosen == 0
    view.key(back)
    assert view._chosen == 6
    view.key(forth)
    view.key(forth)
    assert view._chosen == 1
    before, edge = view._run.positions.copy(), view._particles.figure.y_range.end
    view.key(f"Shift+{forth}")
    apart = view._run.positions - before
    assert np.flatnonzero(apart.any(axis=1)).tolist() == [1]
    np.testing.assert_allclose(apart[1], 0.06 * edge * view._axes[0])
    assert view._run.moves == [(0, 1, view._run.positions[1].tolist())]
    view.restore({"tokens": 7})
    view.key(back)
    assert view._chosen == 6, "the last one comes first"


def test_many_pair_sums_are_measured_in_every_third_frame(view):
    view.restore({"tokens": 64})
    view._turn = 0
    steps = []
    for _ in range(6):
        view.advance(1)
        steps.append(view._run._history.steps[-1])
    assert steps == [0, 0, 3, 3, 3, 6]
    view.restore({"tokens": 7})
    view.advance(1)
    view.advance(1)
    assert view._run._history.steps.tolist() == [0, 1, 2]


def test_a_second_start_follows_the_same_law_and_is_said_second(page, view):
    view.restore({"tokens": 7, "twin": True, "twin_seed": 4})
    put(page, view._law["alignment"], 3.0)
    view.advance(5)
    view.show()
    first, second = view._run, view._twin
    for run, seed in ((first, 0), (second, 4)):
        expected = physics.simulate(ParticleSystem(7, alignment=3.0), steps=5, seed=seed, step_size=0.02)
        np.testing.assert_array_equal(run.positions, expected.final[0])
    np.testing.assert_allclose(
        xy(view._beside[0].tokens), second.positions @ plane_axes(second.positions, "axes 1, 2").T
    )
    assert view._curves.ratio._beside.data["ratio"][-1] == circle_ratio(second.positions)
    words = [
        verdicts.shape(run.positions, int(run.history.last["imperfections"]), grid=run.grid)[1]
        for run in (first, second)
    ]
    one, _, other = view.verdict().partition(" Second start: ")
    assert one.startswith(f"First start: {words[0]}")
    assert other.startswith(words[1])
    assert set(view.figures) >= {"second start", "second start sums"}
    view.reset()
    assert first.step == second.step == 0
    view.restore({"tokens": 7})
    assert not {"second start", "second start sums"} & set(view.figures)
    view.show()
    assert len(view._curves.ratio._beside.data["ratio"]) == 0


def test_time_is_that_of_all_steps_at_their_own_sizes(page, view):
    view.advance(10)
    put(page, view._step_size, 0.03)
    view.advance(20)
    assert (view.status()["step"], view.status()["time"]) == ("30", f"{10 * 0.02 + 20 * 0.03:.2f}")


# -- the run ----------------------------------------------------------------------------------------------


def test_each_frame_has_the_law_of_the_step_after_it():
    run = run_of()
    run.advance(3)
    run.change(OTHER, 0.01)
    run.advance(2)
    assert [run.law(step) for step in range(6)] == [LAW] * 3 + [OTHER] * 3
    run.change(LAW, 0.01)
    assert [run.law(step) for step in (4, 5)] == [OTHER, LAW]
    assert [segment.steps for segment in run.segments] == [3, 2, 0]
    run.change(OTHER, 0.04)
    assert len(run.segments) == 3, "no step was taken under the law before"
    assert run.since == 5
    run.advance(4)
    assert (run.since, run.step, run.step_size) == (5, 9, 0.04)
    kept = run.trajectory()
    np.testing.assert_allclose(kept.times, [0, 0.06, 0.08, 0.24])
    assert kept.parameters["step_size"] == 0.04
    for k, E in enumerate(kept.positions[0]):
        assert kept.observables["circle_ratio"][0, k] == circle_ratio(E)
    assert kept.observables["grid_imperfections"][0, -1] == grid_imperfections(kept.final[0], modulus=5)
    run.reset()
    assert [(one.system, one.step_size, one.steps) for one in run.segments] == [(OTHER, 0.04, 0)]


def test_announced_moves_are_made_before_the_step_that_follows_them():
    place = [[0.5, -0.5], [1.0, 2.0], [0.25, 0.0]]
    run, by_hand = run_of(), run_of()
    run.repeat([(0, 1, place[0]), (4, 2, place[1]), (4, 1, place[2]), (9, 0, place[0])])
    assert run.positions[1].tolist() == place[0]
    run.advance(4)
    assert run.positions[2].tolist() == place[1], "the last frame shows them where they were put"
    run.advance(3)
    by_hand.move(1, np.array(place[0]))
    by_hand.advance(4)
    by_hand.move(2, np.array(place[1]))
    by_hand.move(1, np.array(place[2]))
    by_hand.advance(3)
    np.testing.assert_array_equal(run.positions, by_hand.positions)
    assert run.moves == by_hand.moves
    assert [step for step, *_ in run.moves] == [0, 4, 4]
    run.advance(5)
    assert (run.step, run.moves[-1]) == (12, (9, 0, place[0]))


def test_frames_that_are_not_kept_are_passed_over_but_not_lost():
    run = run_of()
    run.advance(2, keep=False)
    run.advance(2, keep=False)
    run.advance(2)
    assert run._history.steps.tolist() == [0, 6]
    run.advance(1, keep=False)
    assert run.history.steps.tolist() == [0, 6, 7], "whoever asks sees the present state"
    whole = run_of()
    for _ in range(7):
        whole.advance(1)
    np.testing.assert_array_equal(run.positions, whole.positions)


def test_an_overflow_names_the_largest_step_that_would_do():
    run = ParticleRun(LAW, 1e300, starts.start("circle", 7, 2, 0))
    largest = LAW.largest_step_size(run.positions[None])
    said = rf"the state overflows after step 0; make the step smaller than {largest:.2g}, or"
    with pytest.raises(SimulationError, match=said.replace("+", r"\+")):
        run.advance(50)
    assert run.step == 0


def test_a_sweep_turns_at_both_ends_of_its_slider(view):
    slider = view._law["alignment"]
    view._sweeping._upwards = True
    with view.filling():
        slider.value, seen = 3.8, []
        for _ in range(90):
            view._sweeping.move(slider)
            seen.append(slider.value)
    assert seen[:4] == [3.9, 4.0, 3.9, 3.8]
    assert min(seen) == 0
    turn = seen.index(0)
    assert seen[turn + 1] == 0.1
    assert {round(abs(a - b), 9) for a, b in pairwise(seen)} == {0.1}


def test_heads_of_arrows_point_along_them_and_shrink_with_short_ones():
    shown = plane.TokenPlot("x")
    points, vectors = (
        np.array([[1.0, 2.0], [0.0, 0.5], [3.0, 3.0]]),
        np.array([[0.2, 0.0], [0.0, -1e-3], [0, 0]]),
    )
    shown.begin(points)
    shown.arrows(points, vectors)
    edge, data = shown.figure.y_range.end, shown._arrows.data
    lengths = np.hypot(*vectors.T)
    np.testing.assert_allclose(data["size"], 8 * np.minimum(1, lengths / (plane.HEAD * edge)))
    np.testing.assert_allclose(data["angle"][:2], [-np.pi / 2, -np.pi])


def test_what_is_said_of_motion_waits_while_a_particle_is_held(view):
    for _ in range(3):
        view.advance(10)
    assert view._run.motion in (verdicts.MOVING, verdicts.SETTLED)
    assert view.verdict().endswith(view._run.motion)
    view._held = view._run.positions.copy()
    assert view._run.motion not in view.verdict()
    view._held = None


def test_misalignment_is_the_median_of_living_neurons():
    degrees = np.array([0.0, 10.0, -12.0, 179.0, np.nan])
    spectrum = SimpleNamespace(
        misalignment=np.radians(degrees), kind=np.array(["single"] * 4 + ["dead"]), frequency=np.ones(5, int)
    )
    assert "Phases are aligned to within 11° (median)." in verdicts.neurons(spectrum, None, 0)
