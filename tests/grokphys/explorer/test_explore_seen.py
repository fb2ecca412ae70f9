"""What the explorer says of what it shows, its presets, its links, and what hand and keyboard do."""

import json
import re
import threading
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pytest

import physics
from physics.particles.system import ParticleSystem

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document

from analysis.phases.classification import DELAY
from grokphys.explorer import page as pages
from grokphys.explorer import session
from grokphys.explorer.exports import Canceled
from grokphys.explorer.films.export import Film
from grokphys.explorer.runs import planes, verdicts
from grokphys.explorer.views.tabs import VIEWS

PARTICLES, NETWORKS, THEORY, CIRCLES, _ = VIEWS


def opened(kind):
    return session.Session(Document(), [kind])


def shown(page, preset, limit=2000, stride=20):
    """Choose a preset, and follow it to its end or so many steps."""
    page._command("preset", preset)
    view = page.view
    steps = 0
    while not view.finished and steps < limit:
        view.advance(stride)
        steps += stride
    view.show()
    return view


# -- presets: each does what its name says ---------------------------------------------------------------


def test_particles_close_to_a_circle_or_end_as_a_grid():
    page = opened(PARTICLES)
    view = shown(page, "a circle forms", 200)
    assert view.verdict().startswith("Circle, step 8 (0, 8, 16, 7, …)")
    assert view.verdict().endswith("Settled.")
    assert physics.is_circle(view._run.positions)
    assert "imperfections" not in view.status()
    assert page.bridge.watch.startswith("Watch 17 particles")
    view = shown(page, "an imperfect grid", 400)
    assert (
        view.verdict() == f"Grid, {physics.grid_imperfections(view._run.positions)} imperfections. Settled."
    )
    assert "circle ratio" not in view.status()
    view = shown(page, "two starts, one law", 400)
    assert re.fullmatch(
        r"First start: Circle, .* Second start: Grid, \d+ imperfections. Settled.", view.verdict()
    )
    tokens, sums = view._beside
    points = view._twin.positions @ np.eye(2)
    np.testing.assert_allclose(tokens.points(), points)
    pairs = view._twin.system.operation.samples
    np.testing.assert_allclose(
        np.transpose([sums._sums.data[axis] for axis in "xy"]), points[pairs].sum(axis=1), atol=1e-4
    )
    names = {}
    exec(view.python(), names)
    np.testing.assert_array_equal(names["E"], view._run.positions)
    np.testing.assert_array_equal(names["second"], view._twin.positions)
    view = shown(page, "pull it apart", 20)
    assert len(view._particles._arrows.data["x0"]) == 17


def test_a_training_set_generalizes_or_is_memorized():
    page = opened(THEORY)
    for preset in ("it generalizes", "in the plane"):
        view = shown(page, preset)
        assert view.verdict().startswith("It generalizes: ")
        assert view._chosen.quality[0] < 0.1 < 0.99 < view._chosen.quality[-1]
    view = shown(page, "memorizes only")
    assert view.verdict() == (
        "Memorizes only: it is trained on 16 pairs, and only 1 of the other 39 pairs follows. "
        "6 degrees of freedom are left, instead of the 2 of a unique representation."
    )
    shown_as, found = view.status(), view._chosen
    assert (shown_as["pairs"], shown_as["ground states"], shown_as["grokking rate"]) == ("16 of 55", "6", "0")
    assert int(found.mask.sum()) == 16
    assert int(found.follows.sum()) == 1
    assert found.accuracy[-1] == found.measures.ideal_accuracy == 17 / 55
    gaps = np.diff(np.sort(found.embeddings[-1, :, 0]))
    assert gaps.max() > 3 * gaps.min(), "not evenly spaced"


def test_an_octave_is_lost_and_its_half_stays():
    page = opened(CIRCLES)
    page._command("preset", "circles survive")
    assert page.bridge.verdict == "In the last frame, 5 of 29 circles survive: 7, 8, 11, 13, 25."
    assert shown(page, "circles survive").verdict() == "5 of 29 circles survive: 7, 8, 11, 13, 25."
    view = shown(page, "an octave is lost")
    assert re.search(r"Circle 22 is lost by step \d+; its octave 11 survives\.$", view.verdict())
    edge = view._tokens.figure.y_range.end
    assert np.abs(view._tokens.points()).max() < 0.25 * edge, "one sees it shrink"
    assert np.abs(view._seen.points[0]).max() < edge
    steps, signals = view._run.signals
    early = signals[(steps > 20) & (steps < 80)].mean(axis=0)
    assert early[21] >= np.sort(early)[-4], "it is among the strongest at first"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("a circle forms", r"Circle, step \d"),
        ("an imperfect grid", r"Grid, \d+ imperfections\."),
        (
            "it groks",
            r"It groks: memorizes by step \d+, but generalizes only by step 1\d\d\d\. \d of 15 circles",
        ),
        ("memorizes only", r"Memorized by step \d+, but does not generalize so far"),
    ],
)
def test_a_network_does_what_its_preset_says(preset, words):
    view = shown(opened(NETWORKS), preset, 3000)
    assert re.search(words, view.verdict()), view.verdict()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 5])
def test_what_groks_does_so_from_other_starts_too(seed):
    page = opened(NETWORKS)
    page._command("preset", "it groks")
    page.view._seed.value = seed
    run = page.view._run
    while run.generalized is None and run.step < 3000:
        run.advance(10)
    steps, held_out = run.history.steps, run.history["validation_accuracy"]
    assert run.memorized <= 70
    assert held_out[steps <= 12 * run.memorized].max() < 0.3
    assert run.generalized - run.memorized >= DELAY == verdicts.GROKS
    assert page.view.verdict().startswith("It groks: ")
    assert page.view._plane.value == planes.STRONGEST, "and it is seen there"


# -- links -----------------------------------------------------------------------------------------------


def test_a_link_holds_the_state():
    page = opened(PARTICLES)
    view = page.view
    view._law["alignment"].value = 1.5
    view._tokens.value, view._plane.value = 9, "axes 1, 2"
    view.advance(7)
    page._command("pause", None)
    page._command("ready", None)
    assert json.loads(unquote(page.bridge.link)) == {
        "view": "particles",
        "speed": 1,
        "state": {"alignment": 1.5, "tokens": 9, "step": 7},
    }
    other = opened(PARTICLES)
    other.view._seed.value = 5  # what a link does not name is as usual
    other._command("open", page.bridge.link)
    other.view.advance(7)
    np.testing.assert_array_equal(other.view._run.positions, view._run.positions)


def test_of_many_pair_sums_every_third_frame_is_measured():
    """The state is measured whenever it is asked for; where a hand has put it, it is kept."""
    page = opened(PARTICLES)
    view = page.view
    view.restore({"tokens": 36, "dim": 3})
    for _ in range(7):
        view.advance(1)
    run = view._run
    assert [step for step, _ in run._history.frames()] == [0, 3, 6]
    assert run.history.steps.tolist() == [0, 3, 6, 7]
    np.testing.assert_array_equal(run.history.last["positions"], run.positions)
    assert run.history.last["imperfections"] == physics.grid_imperfections(run.positions)
    run.advance(1, keep=False)
    run.move(0, np.ones(3))
    run.advance(1, keep=False)
    assert run.history.steps.tolist() == [0, 3, 6, 7, 8, 9]
    np.testing.assert_array_equal(run.history["positions"][4][0], np.ones(3))
    kept = opened(PARTICLES).view
    kept.advance(4)
    kept.advance(4)
    assert kept._run._history.steps.tolist() == [0, 4, 8], "of few, all are"


@pytest.mark.parametrize("speed", [1, 8])
def test_a_link_brings_back_the_past_too(speed):
    """The curves of a replay are those of a run that was watched, and no trail leads from its start."""
    kept = opened(PARTICLES).view
    for _ in range(40 // speed):
        kept.advance(speed)
    view = opened(PARTICLES).view
    view.show()
    assert [*view.replay(40, speed)]
    view.show()
    for name in ("positions", "circle_ratio"):
        np.testing.assert_array_equal(view._run.history[name], kept._run.history[name])
    trails = view._particles._trails.data
    assert np.array_equal(trails["x0"], trails["x1"])
    assert [*view.replay(1000, 1)]
    assert len(view._run.history) <= 40 // speed + 1 + 300
    assert view._run.step == 1040


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("nonsense", "link must be one that this page has made, got 'nonsense'"),
        ("[" * 9000, f"link must be one that this page has made, got '{quote('[') * 25}%5…'"),
        ({"view": "attic"}, "view must be one of particles, got 'attic'"),
        ({"view": "particles", "speed": 7}, "steps per frame must be one of 1, 2, 3"),
        ({"view": "particles", "state": {"tokens": 10**9}}, "tokens N must be a whole number from 3 to 64"),
        ({"view": "particles", "state": {"kind": "attic"}}, "start must be one of normal, circle, grid"),
        ({"view": "particles", "state": {"step": 10**9}}, "step must be at most 20000 in a link"),
    ],
)
def test_a_link_of_another_kind_is_a_sentence(state, words):
    page = opened(PARTICLES)
    page._command("open", quote(state if isinstance(state, str) else json.dumps(state)))
    assert words in page.bridge.message[2]


# -- hand and keyboard -----------------------------------------------------------------------------------


def test_picked_pairs_are_never_replaced_by_random_ones():
    page = opened(THEORY)
    view = page.view
    view._click(8, 9)
    picked = set(view._chosen.pairs)
    assert (8, 9) in picked
    for widget, value in ((view._dim, 2), (view._seed, 5), (view._tokens, 12), (view._modulus, 30)):
        widget.value = value
        assert set(view._chosen.pairs) == picked, widget.title
    assert view._chosen.dim == 2
    view._tokens.value = 6
    assert set(view._chosen.pairs) == {pair for pair in picked if max(pair) < 6}
    page._command("ready", None)
    other = opened(THEORY)
    other._command("open", page.bridge.link)
    assert other.view._chosen.pairs == view._chosen.pairs
    state = {"view": "theory", "state": {"pairs": "xyz"}}
    other._command("open", quote(json.dumps(state)))
    words = "pairs must be a 1 and then a bit for each of 55 pairs, in hexadecimal, got 'xyz'"
    assert words in other.bridge.message[2]
    view._size.value = 3
    assert view._chosen.measures.pairs == 3


def test_the_keyboard_moves_particles_and_picks_pairs():
    page = opened(PARTICLES)
    view = page.view
    view.show()
    before = view._run.positions.copy()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "Shift+ArrowUp"):
        page._command("key", key)
    moved = view._run.positions - before
    assert np.flatnonzero(moved.any(axis=1)).tolist() == [1]
    assert moved[1, 0] == 0 < moved[1, 1]
    assert view._particles._ring.data["y"] == [view._run.positions[1, 1]]
    page = opened(THEORY)
    open_ = ~page.view._chosen.operation.mask([(0, 0)]) & page.view._chosen.mask
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "Enter"):
        page._command("key", key)
    assert (page.view._chosen.mask[1:] == open_[1:]).all()
    assert not page.view._chosen.mask[0]


def test_all_follows_a_particle_that_is_held():
    page = opened(PARTICLES)
    view = page.view
    view.restore({"arrows": True})
    view.show()
    run, operation = view._run, view._run.system.operation
    before, arrows = run.positions.copy(), view._particles._arrows.data
    view._drag.hold(True)
    places = np.array(view._particles.tokens.data["x"])
    places[3] += 2.0
    view._particles.tokens.data = {**view._particles.tokens.data, "x": places.tolist()}
    expected = before.copy()
    expected[3, 0] += 2.0
    np.testing.assert_array_equal(run.positions, before)
    np.testing.assert_allclose(
        view._sums._sums.data["x"], expected[operation.samples].sum(axis=1)[:, 0], rtol=1e-4, atol=1e-4
    )
    assert float(view.status()["circle ratio"]) == pytest.approx(physics.circle_ratio(expected), abs=1e-3)
    assert not np.allclose(view._particles._arrows.data["x1"], arrows["x1"])
    view._drag.end()
    np.testing.assert_allclose(run.positions, expected)


def test_arrows_point_to_where_the_forces_lead():
    page = opened(PARTICLES)
    view = page.view
    view.restore({"arrows": True})
    view.advance(1)  # to zero mean and unit variance
    view.show()
    data = view._particles._arrows.data
    drawn = np.stack([data["x1"] - data["x0"], data["y1"] - data["y0"]], axis=1)
    positions = view._run.positions
    law = ParticleSystem(alignment=2.0)
    motion = (physics.simulate(law, steps=1, step_size=1e-6, initial=positions).final[0] - positions) / 1e-6
    np.testing.assert_allclose(drawn * np.abs(motion).max() / np.abs(drawn).max(), motion, atol=1e-3)
    edge = view._particles.figure.y_range.end
    assert np.hypot(*drawn.T).max() == pytest.approx(min(edge / 3, 0.2 * np.hypot(*motion.T).max()), rel=1e-3)


def test_a_constant_sweeps_while_it_plays():
    page = opened(PARTICLES)
    view = page.view
    view._sweep.value = "alignment"
    page.bridge.playing = 1
    seen = []
    for _ in range(100):
        view.advance(1)
        view.show()
        seen.append(view._law["alignment"].value)
    assert (min(seen), max(seen)) == (0.0, 4.0)
    assert view._run.system.alignment == seen[-1]
    names = {}
    exec(view.python(), names)
    np.testing.assert_array_equal(names["E"], view._run.positions)


# -- words and exports -----------------------------------------------------------------------------------


def test_every_word_has_a_sentence():
    known = pages.terms()
    assert all(sentence.endswith((".", "!")) for sentence, _ in known.values())
    assets = Path(pages.__file__).parent / "assets"
    for kind in VIEWS:
        view = opened(kind).view
        assert set(kind.terms) <= set(known)
        words = {re.sub(r" \d+$", "", name) for name in view.status()} - {"file", "run", "recording"}
        assert words <= set(known)
        assert f"[{kind.slug}]\n" in (assets / "about.txt").read_text(encoding="utf-8")


def test_a_film_says_how_far_it_is_and_can_be_canceled(monkeypatch):
    page = opened(PARTICLES)
    begun, reached, ended = threading.Event(), threading.Event(), threading.Event()

    def make(film, progress):
        try:
            progress(1, 9)
            begun.set()
            reached.wait(60)
            progress(2, 9)
        except Canceled:
            ended.set()
            raise

    monkeypatch.setattr(type(page.view), "film", lambda self: Film(1, lambda figure: None))
    page._exports._film("gif", "image/gif", make)
    assert page.bridge.message[1:] == ["progress", "Making particles.gif …"]
    assert begun.wait(30)
    page._command("cancel", None)
    reached.set()
    assert ended.wait(60)
    page.fail(Canceled("particles.gif was canceled."))
    assert page.bridge.message[1:] == ["done", "particles.gif was canceled."]


def test_what_a_worker_says_to_a_tab_that_is_being_closed_is_lost():
    """Bokeh destroys the document before it says so."""
    page = opened(PARTICLES)
    page.document.callbacks.destroy()
    with pytest.raises(AttributeError):
        page.document.add_next_tick_callback(lambda: None)
    page.soon(lambda: None)
