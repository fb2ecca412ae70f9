"""The view of particles after each change while it rests: every panel follows, and the rest stays."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import drawn, opened, put

import physics
from analysis.plots.palette import class_colors
from grokphys.explorer import links
from grokphys.explorer.plots import plane
from grokphys.explorer.runs import planes, starts
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.views import particles
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem


@pytest.fixture(scope="module")
def page():
    return opened(particles.ParticlesView)


@pytest.fixture
def start(page):
    """Start again with 7 particles and other values, on the page of all tests."""

    def begin(**state):
        page.bridge.playing = 0
        page.view.restore({"tokens": 7} | state)
        return page.view

    return begin


def xy(source):
    return np.stack([source.data["x"], source.data["y"]], axis=1)


def counted(monkeypatch, owner, name):
    """Let a method of an object note each call in the list that is returned."""
    calls, method = [], getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given: calls.append(given) or method(*given))
    return calls


def test_another_plane_is_drawn_in_all_panels_of_both_starts_while_they_rest(page, start):
    view = start(dim=3, twin=True, arrows=True)
    view.advance(4)
    view.show()
    put(page, view._plane, "axes 2, 3")
    pairs = view._run.system.operation.samples
    for run, plots in ((view._run, (view._particles, view._sums)), (view._twin, view._beside)):
        points = run.positions[:, 1:]
        np.testing.assert_allclose(xy(plots[0].tokens), points)
        np.testing.assert_allclose(xy(plots[1]._sums), points[pairs].sum(axis=1), atol=1e-4)
        trails = plots[0]._trails.data
        for name in ("x0", "x1"):  # no trail leads from another plane
            np.testing.assert_allclose(trails[name], np.tile(points[:, 0], plane.TRAIL), atol=1e-4)
    arrows = view._particles._arrows.data
    np.testing.assert_allclose(np.stack([arrows["x0"], arrows["y0"]], axis=1), view._run.positions[:, 1:])
    axes = drawn(view.film())
    for name, run in (("tokens", view._run), ("second start", view._twin)):
        np.testing.assert_allclose(axes[name].collections[1].get_offsets(), run.positions[:, 1:])
    put(page, view._tokens, 8)
    assert view._plane.value == "axes 2, 3", "a space of as many dimensions has the same planes"
    put(page, view._dim, 4)
    assert (view._plane.value, view._plane.options) == ("axes 1, 2", planes.planes(4))


def test_another_law_is_drawn_at_once_and_no_step_is_taken(page, start):
    view = start(arrows=True)
    view.advance(5)
    view.show()
    before = view._run.positions.copy()
    put(page, view._modulus, 5)
    assert view._sums._sums.data["class"] == [str((i + j) % 5) for i, j in view._run.system.operation.samples]
    figure = drawn(view.film())["sums"]
    colors = class_colors(5)[view._run.system.operation.label]
    np.testing.assert_allclose(figure.collections[0].get_facecolors(), colors)
    arrows = view._particles._arrows.data
    put(page, view._law["alignment"], 0.5)
    assert not np.allclose(view._particles._arrows.data["x1"], arrows["x1"]), "they show the new law"
    np.testing.assert_array_equal(view._run.positions, before)
    assert (view._run.step, view._run.system) == (5, ParticleSystem(7, alignment=0.5, modulus=5))


def test_a_chosen_particle_and_its_ring_go_with_its_run(page, start):
    view = start()
    view.key("Shift+ArrowUp")
    assert view._run.moves == [], "none is chosen yet"
    for name, token in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", 6), ("Enter", 6)):
        view.key(name)
        assert view._chosen == token
        np.testing.assert_allclose(xy(view._particles._ring), view._run.positions[[token]])
    view.key("Shift+ArrowLeft")
    ((step, token, place),) = view._run.moves
    assert (step, token) == (0, 6)
    assert xy(view._particles._ring).tolist() == [place]
    assert place[0] < view._run._begin[6, 0]
    put(page, view._seed, 3)
    assert view._chosen is None
    assert len(view._particles._ring.data["x"]) == 0


def test_of_many_pair_sums_every_third_frame_of_play_is_drawn(monkeypatch, start):
    for tokens, whole, expected in ((36, False, 2), (36, True, 6), (34, False, 6)):  # 666 and 595 pair sums
        view = start(tokens=tokens)
        view.advance(1)
        view.show()  # after the first step
        view.session.bridge.playing = 1
        with monkeypatch.context() as patch:
            calls = counted(patch, view._sums, "move")
            for _ in range(6):
                view.show(whole=whole)
        assert len(calls) == expected, tokens
    view = start(tokens=36, twin=True)
    for _ in range(5):
        view.advance(1)
    assert view._run._history.steps.tolist() == view._twin._history.steps.tolist() != list(range(6))


def test_a_constant_rests_while_play_rests_or_nothing_sweeps(page, start):
    view = start(sweep="alignment")
    for playing, sweep, whole, moved in (
        *((0, "alignment", True, False), (1, "", True, False)),
        *((1, "alignment", False, False), (1, "alignment", True, True)),
    ):
        before = view._law["alignment"].value
        with view.filling():
            view._sweep.value = sweep
        page.bridge.playing = playing
        view.advance(1)
        view.show(whole=whole)
        assert (view._law["alignment"].value != before) == moved
        assert view._run.system.alignment == view._law["alignment"].value
    page.bridge.playing = 0


def test_the_measures_of_a_held_particle_are_those_of_the_law(page, start):
    view = start(modulus=3)
    view.advance(3)
    view.show()
    view._drag.hold(True)
    assert page._held
    places = np.array(view._particles.tokens.data["x"])
    places[2] -= 1.5
    view._particles.tokens.data = {**view._particles.tokens.data, "x": places.tolist()}
    held = view._run.positions.copy()
    held[2, 0] -= 1.5
    np.testing.assert_allclose(view._held, held)
    counts = [grid_imperfections(held, modulus=modulus) for modulus in (3, None)]
    assert counts[0] != counts[1]
    said = view.status()
    assert (said["circle ratio"], said["imperfections"]) == (f"{circle_ratio(held):.3f}", str(counts[0]))
    assert said["step"] == "3"
    view._drag.end()
    assert not page._held
    assert [move[:2] for move in view._run.moves] == [(3, 2)], "the others stay where they are"
    assert view._held is None


# -- the start ---------------------------------------------------------------------------------------------


def test_each_start_has_the_controls_that_it_reads(page, start, tmp_path):
    view = start()
    fields = view._file.panel, view._noise, view._seed
    for kind, shown in (
        ("normal", (0, 0, 1)),
        ("circle", (0, 1, 1)),
        ("grid", (0, 1, 1)),
        ("file", (1, 0, 0)),
    ):
        put(page, view._kind, kind)
        assert tuple(field.visible for field in fields) == shown, kind
        assert view._tokens.disabled == view._dim.disabled == (kind == "file")
    assert page.bridge.message[1:] == ["note", "Choose a trajectory file to start from."]
    assert len(view._run.positions) == 7, "the run before stays meanwhile"
    put(page, view._kind, "circle")
    assert view.takes_file()
    assert (view._kind.value, view._file.panel.visible, view._noise.visible) == ("file", True, False)
    put(page, view._kind, "circle")
    put(page, view._noise, 0.5)
    put(page, view._with_twin, True, "active")
    for run, seed in ((view._run, 0), (view._twin, 7)):
        np.testing.assert_array_equal(run.positions, starts.start("circle", 7, 2, seed, 0.5).positions)


@pytest.fixture
def with_files(tmp_path):
    """A page that may open files of several sizes, and one with values that are not finite."""
    from bokeh.document import Document

    from grokphys.explorer.session import Session

    rng, made = np.random.default_rng(0), []
    for name, shape in (("many", (3, 5, 6, 3)), ("few", (1, 2, 5, 2)), ("tall", (1, 1, 65, 2)),
                        ("wide", (1, 1, 5, 9)), ("odd", (1, 2, 5, 2)), ("edge", (1, 1, 64, 8))):  # fmt: skip
        positions = rng.standard_normal(shape)
        if name == "odd":
            positions[0, 0, 1, 1], positions[0, 1, 1, 1] = np.nan, np.inf
        made.append(tmp_path / f"{name}.h5")
        physics.Trajectory(positions, range(shape[1])).save(made[-1])
    page = Session(Document(), [particles.ParticlesView], made)
    page._command("ready", None)
    page.view._kind.value = "file"
    return page, {path.stem: path for path in made}


def test_a_start_from_a_file_has_its_size_and_an_odd_one_is_refused(with_files):
    page, path = with_files
    view = page.view
    assert page.bridge.message[2] == "Choose a trajectory file to start from."
    view._file.files.list.value = str(path["many"])
    assert page.bridge.message[2] == ""
    assert (view._tokens.value, view._dim.value, view._plane.options) == (6, 3, planes.planes(3))
    np.testing.assert_array_equal(view._run.positions, physics.load(path["many"]).initial[0])
    view._file._run.value, view._file._frame.value = 2, 4
    np.testing.assert_array_equal(view._run.positions, physics.load(path["many"]).final[2])
    view._with_twin.active = True
    expected = ParticleRun(ParticleSystem(6, 3), 0.02, starts.start("normal", 6, 3, 7)).positions
    np.testing.assert_array_equal(view._twin.positions, expected, "a file has one start alone")
    view._file.files.list.value = str(path["few"])
    assert (view._file._run.value, view._file._frame.value) == (0, 1), "the last ones that it has"
    assert (view._file._run.high, view._file._frame.high) == (0, 1)
    np.testing.assert_array_equal(view._run.positions, physics.load(path["few"]).final[0])
    limit = "start must have at most 64 tokens and at most 8 dimensions, got "
    for name, words in (
        ("tall", limit + "65 tokens and 2 dimensions"),
        ("wide", limit + "5 tokens and 9 dimensions"),
        ("odd", f"frame 0 of run 0 in {path['odd']} holds NaN; choose another"),
    ):
        view._file.files.list.value = str(path[name])
        assert page.bridge.message[1:] == ["error", words]
    assert (view._tokens.value, view._dim.value, len(view._run.positions)) == (5, 2, 5)
    view._file.files.list.value = str(path["odd"])
    view._file._frame.value = 1
    assert page.bridge.message[1] == "error"
    assert page.bridge.message[2].startswith("start must be finite, got 1 NaN or infinite")
    view._file.files.list.value = str(path["edge"])
    assert page.bridge.message[2] == ""
    assert view._run.positions.shape == (64, 8)


# -- what a link holds -------------------------------------------------------------------------------------


def test_a_link_holds_as_many_coordinates_and_changes_as_it_may(monkeypatch, page, start):
    monkeypatch.setattr(links, "MOST_MOVED", 6)
    monkeypatch.setattr(links, "MOST_CHANGES", 2)
    view = start(dim=3)
    for count in (1, 2, 3):
        view.advance(1)
        view._run.move(count, np.ones(3))
        assert (view.lacks == "") == ("moves" in view.state()) == (count <= 2)
    assert view.lacks == links.LACKS
    view = start()
    view._run.move(0, np.ones(2))
    for count in (1, 2, 3):
        view.advance(1)
        put(page, view._law["alignment"], 1 + count / 2)
        assert ("before" in view.state()) == (count <= 2)
    assert view.lacks == links.UNCHANGED
    assert view.state()["moves"] == [(0, 0, [1.0, 1.0])], "which it holds nevertheless"
    before = [[1, {"alignment": 1.0}], [2, {}]]
    view.restore({"tokens": 7, "step": 2, "before": before})
    assert [step for step, _ in view.changes.before] == [1, 2], "as many as a link may hold"


def test_another_start_is_without_the_changes_and_moves_of_the_one_before(page, start):
    for name, value in (("seed", 3), ("tokens", 8), ("dim", 3), ("kind", "circle"), ("twin_seed", 9)):
        view = start(twin=True)
        view.advance(4)
        put(page, view._law["alignment"], 0.5)
        view._run.move(0, np.ones(2))
        assert {"before", "moves", "step"} <= set(view.state())
        put(page, view.widgets[name], value)
        assert not {"before", "moves", "step"} & set(view.state()), name
        assert view.state()["alignment"] == view._run.system.alignment == 0.5
        assert view._twin.system == view._run.system


def test_presets_are_told_by_what_they_name(page, start):
    view = start(tokens=17)
    assert view.preset.name == "a circle forms"
    view.restore({"kind": "circle", "noise": 0.05, "arrows": True})
    assert view.preset.name == "pull it apart"
    put(page, view._numbers, "numbers")
    view.advance(3)
    assert view.preset.name == "pull it apart", "it has played, and classes look different"
    put(page, view._with_arrows, False, "active")
    assert view.preset is None, "arrows belong to it"
    view.restore({"arrows": True, "dim": 2, "step": 0})
    assert view.preset.name == "a circle forms", "and not to this one"


def test_a_run_is_not_moved_by_loading_its_kernels_nor_split_by_no_change(start):
    run = start(modulus=5)._run
    before = run.positions.copy()
    run.warm()
    np.testing.assert_array_equal(run.positions, before)
    run.advance(2)
    run.change(run.system, run.step_size)
    assert len(run.segments) == 1
    kept = run.trajectory().parameters
    assert (kept["initial"], kept["seed"], kept["system"]["modulus"]) == ("drawn", 0, 5)
    found = ParticleRun(ParticleSystem(7), 0.02, starts.start("grid", 7, 2, 4)).trajectory().parameters
    assert (found["initial"], found["seed"]) == ("given", 4)


def test_a_script_prints_the_imperfections_of_its_law(capsys, start):
    run = start(modulus=3)._run
    run.advance(6)
    E = run.positions
    assert grid_imperfections(E, modulus=3) != grid_imperfections(E)
    exec(run.python(), {})
    said = f"circle ratio {circle_ratio(E):.3f}, imperfections {grid_imperfections(E, modulus=3)}\n"
    assert capsys.readouterr().out == said
