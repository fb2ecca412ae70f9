"""Changes of controls in the middle of a run: links hold them, and a reset forgets them."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import opened, put

from grokphys.explorer import links
from grokphys.explorer.views import view as views
from grokphys.explorer.views.changes import Changes
from grokphys.explorer.views.tabs import VIEWS

PARTICLES, NETWORKS, THEORY, *_ = VIEWS


def repeated(kind, view):
    """Open the link of a view on another page."""
    _, speed, state = links.read(links.written(kind.slug, 8, view.state()))
    other = opened(kind).view
    other.restore(state)
    assert [*other.replay(links.replayed(state), speed)]
    return other


def test_a_link_repeats_changes_of_the_law_and_moves_between_them():
    page = opened(PARTICLES)
    view = page.view
    view.advance(30)
    put(page, view._law["alignment"], 1.6)
    view._run.move(3, np.array([1.5, -0.3]))
    view.advance(21)
    put(page, view._step_size, 0.03)
    put(page, view._modulus, 12)
    view.advance(13)
    before = [
        [30, {"alignment": 2.0, "step_size": 0.02, "modulus": 0}],
        [51, {"step_size": 0.02, "modulus": 0}],
    ]
    assert view.state()["before"] == before
    other = repeated(PARTICLES, view)
    np.testing.assert_array_equal(other._run.positions, view._run.positions)
    assert other.python() == view.python()
    assert other.state() == view.state()
    put(page, view._law["alignment"], 0.5)  # and no step with it
    np.testing.assert_array_equal(repeated(PARTICLES, view)._run.positions, view._run.positions)
    page._command("reset", None)
    assert "before" not in view.state()
    assert (view._run.system.alignment, view._run.system.modulus) == (0.5, 12)


def test_a_link_repeats_a_sweep():
    page = opened(PARTICLES)
    view = page.view
    put(page, view._sweep, "alignment")
    page.bridge.playing = 1
    for _ in range(30):
        view.advance(3)
        view.show()
    page.bridge.playing = 0
    assert len(view.state()["before"]) == 30
    np.testing.assert_array_equal(repeated(PARTICLES, view)._run.positions, view._run.positions)


def test_a_link_repeats_changes_of_a_network_and_of_its_particles():
    views.prepared(NETWORKS)
    page = opened(NETWORKS)
    view = page.view
    view.advance(30)
    put(page, view._rate, "0.001")
    view.advance(21)
    put(page, view._alignment, 2)
    put(page, view._ratio, 7)
    put(page, view._decay, 0.3)
    view.advance(33)
    assert [step for step, _ in view.state()["before"]] == [30, 51]
    other = repeated(NETWORKS, view)
    np.testing.assert_array_equal(other._run.training.embeddings, view._run.training.embeddings)
    np.testing.assert_array_equal(other._run.particles.positions, view._run.particles.positions)
    assert other.python() == view.python()
    put(page, view._seed, 1)
    assert "before" not in view.state()


def test_more_changes_than_a_link_holds_are_said():
    view = opened(PARTICLES).view
    for k in range(links.MOST_CHANGES):
        view.advance(1)
        view._law["alignment"].value = 1 + k % 2
    assert view.lacks == ""
    assert len(links.written("particles", 1, view.state())) < 20_000, "the longest command of a page"
    view.advance(1)
    view._law["alignment"].value = 3
    assert view.lacks == links.UNCHANGED
    assert "before" not in view.state()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [1],
        [[1]],
        [[0, {}]],
        [[10, {}]],
        [[1.5, {}]],
        [[1, []]],
        [[1, {"tokens": 5}]],
        [[2, {}], [2, {}]],
        [[k, {}] for k in range(1, 102)],
    ],
)
def test_a_link_with_other_changes_is_refused(wrong):
    page = opened(PARTICLES)
    last = 200 if len(wrong) > 100 else 9
    page._command("open", links.written("particles", 1, {"step": last, "before": wrong}))
    assert page.bridge.message[1] == "error"
    assert page.bridge.message[2].startswith(
        "before must be at most 100 changes, as [step, {control: value}] with increasing steps of at least 1 "
        f"and at most {last} and with the controls alignment, attraction, repulsion, softening, step_size, "
        f"modulus, got {str(wrong)[:77]}"
    )


def test_a_change_to_a_value_that_is_not_allowed_is_refused():
    page = opened(PARTICLES)
    page._command("open", links.written("particles", 1, {"step": 9, "before": [[3, {"alignment": 99}]]}))
    assert page.bridge.message[1:] == ["error", "alignment fₐ must be a number from 0 to 4, got 99"]


def test_views_without_such_controls_have_no_changes():
    assert Changes().then == []
    assert Changes().first == Changes().state() == {}


def test_a_link_holds_what_was_moved_by_hand():
    view = opened(PARTICLES).view
    view.advance(7)
    view._run.move(3, np.array([1.5, -0.3]))
    view._run.move(4, np.array([0.1, 0.2]))
    view.advance(5)
    view._run.move(3, np.array([1 / 3, 2.0]))
    _, speed, state = links.read(links.written("particles", 1, view.state()))
    other = opened(PARTICLES).view
    other.restore(state)
    assert [*other.replay(links.replayed(state), speed)]
    np.testing.assert_array_equal(other._run.positions, view._run.positions)
    assert other.python() == view.python()
    other.restore({"moves": [[0, 16, [9.0, 9.0]]]})
    assert other._run.positions[16].tolist() == [9.0, 9.0]
    other.reset()
    other.advance(1)
    assert other._run.moves == []
    for _ in range(49):
        view.advance(1)
        view._run.move(0, np.zeros(2))
    assert view.lacks == links.LACKS
    assert "moves" not in view.state()


@pytest.mark.parametrize("kind", [PARTICLES, NETWORKS])
def test_a_link_holds_a_plane_of_many_dimensions(kind):
    views.prepared(kind)
    given, other = opened(kind).view, opened(kind)
    given.restore({"dim": 4})
    given._plane.value = "components 3, 4"
    other._command("open", links.written(kind.slug, 1, given.state()))
    assert other.bridge.message[2] == ""
    assert other.view._plane.value == "components 3, 4"
    other._command("open", links.written(kind.slug, 1, {"plane": "components 3, 4"}))
    assert other.bridge.message[2].startswith("plane must be one of axes 1, 2, got")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [1],
        [[0, 0]],
        [[0, 0, [1.0]]],
        [[0, 0, [1.0, float("nan")]]],
        [[0, 0, [1.0, 1e300]]],
        [[0, 0, [1.0, 10**400]]],
        [[0, 0, 3]],
        [[0, 17, [0.0, 0.0]]],
        [[0, -1, [0.0, 0.0]]],
        [[0, 0.5, [0.0, 0.0]]],
        [[10, 0, [0.0, 0.0]]],
        [[5, 0, [0.0, 0.0]], [4, 0, [0.0, 0.0]]],
        [[0, 0, [0.0, 0.0]]] * 51,
    ],
)
def test_a_link_with_other_moves_is_refused(wrong):
    page = opened(PARTICLES)
    page._command("open", links.written("particles", 1, {"step": 9, "moves": wrong}))
    assert page.bridge.message[1] == "error"
    assert page.bridge.message[2].startswith("moves must be at most 100 coordinates in all, as [step, ")
    assert page.view._run.moves == []
