"""The explorer without a browser: runs, scripts, exports, sessions, the server's sentences."""

import io
import re
import socket
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import nets
import physics
from analysis.plots.palette import class_colors
from grokphys.cli.main import main
from physics.errors import FileFormatError, InputError, SimulationError
from physics.particles.system import ParticleSystem

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document
from bokeh.events import PanEnd, PanStart
from bokeh.model import DataModel
from bokeh.models import ColumnDataSource
from bokeh.protocol import Protocol
from bokeh.server.session import ServerSession
from browser import loaded
from hostile import apart
from PIL import Image

from grokphys.explorer import exports, server, session, theme, uploads
from grokphys.explorer.application import Connection
from grokphys.explorer.bridge import Bridge
from grokphys.explorer.films import export
from grokphys.explorer.films.network import network_film
from grokphys.explorer.films.particles import particle_film
from grokphys.explorer.plots import plane as plane_plot
from grokphys.explorer.runs import planes, starts
from grokphys.explorer.runs.history import History
from grokphys.explorer.runs.networks import NetworkRun
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.views.tabs import VIEWS


def executed(program):
    names = {}
    exec(program, names)
    return names


def colours(picture):
    return len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0))


def test_the_first_page_loads_nothing_that_it_does_not_need(python):
    code = (
        "import sys, grokphys.explorer.page\nfrom bokeh.document import Document\n"
        "from grokphys.explorer.session import Session\nfrom grokphys.explorer.views.tabs import VIEWS\n"
        "page = Session(Document(), VIEWS)\nheavy = {'torch', 'sklearn', 'pandas', 'matplotlib', 'scipy', "
        "'sympy', 'numba'}\nprint(len(page.view._particles.points()), heavy & set(sys.modules))\n"
        "page.view.warm()\nprint('numba' in sys.modules)"
    )
    assert python(code).stdout == "17 set()\nTrue\n"


def test_circles_of_a_file_need_no_estimator(python):
    code = (
        "import sys\nfrom grokphys.explorer.runs.circles import open_run\n"
        "from grokphys.files import embedded_trajectory\nrun = open_run(embedded_trajectory())\n"
        "run.survivors(), run.seen(run.planes()[0])\n"
        "print({'sklearn', 'pandas', 'matplotlib', 'scipy.stats'} & set(sys.modules))"
    )
    assert python(code).stdout == "set()\n"


def test_a_network_that_trains_on_the_page_needs_no_pytorch(python):
    code = (
        "import sys, nets\nfrom grokphys.explorer.runs.networks import NetworkRun\n"
        "from grokphys.explorer.views.networks import NetworksView\nNetworksView.prepare()\n"
        "from physics.particles.system import ParticleSystem\nlaw = ParticleSystem(5, 1, modulus=9)\n"
        "run = NetworkRun(nets.ToyAddition(5, 1, (8, 8)), 0, 0.01, 0.0, law, 20)\n"
        "run.advance(3, (-1.0, 1.0, -1.0, 1.0))\nprint(run.map.shape, 'torch' in sys.modules)"
    )
    assert python(code).stdout == "(72, 72) False\n"


# -- runs and their scripts ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", starts.KINDS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_script_gives_the_bits_of_a_run_that_was_interfered_with(kind, dim):
    run = ParticleRun(ParticleSystem(7, dim), 0.02, starts.start(kind, 7, dim, 3, 0.25))
    law = ParticleSystem(7, dim, alignment=2.0, modulus=5, softening=0.05)

    def same():
        np.testing.assert_array_equal(executed(run.python())["E"], run.positions)

    def moved():
        run.advance(3)
        run.move(2, np.full(dim, 0.5))
        run.move(4, np.full(dim, 0.1))
        run.move(2, np.full(dim, 0.3))

    hands = (
        lambda: None,
        lambda: run.move(1, np.ones(dim)),
        lambda: run.advance(4),
        lambda: run.change(law, 0.01),
        lambda: run.advance(2),
        moved,
        lambda: run.advance(5),
        run.reset,
        lambda: run.advance(1),
    )
    for hand in hands:
        hand()
        same()


def test_an_undisturbed_run_is_one_call_of_simulate():
    run = ParticleRun(ParticleSystem(alignment=2.0), 0.02, starts.start("normal", 17, 2, 5))
    for steps in (1, 3, 8, 8):
        run.advance(steps)
    call = "physics.simulate(physics.ParticleSystem(alignment=2.0), steps=20, seed=5)"
    said = 'print("circle ratio {:.3f}, imperfections {}".format('
    said += "physics.circle_ratio(E), physics.grid_imperfections(E)))"
    assert run.python() == f"import physics\n\nE = {call}.final[0].copy()\n{said}\n"
    expected = physics.simulate(ParticleSystem(alignment=2.0), steps=20, seed=5, observables="circle_ratio")
    np.testing.assert_array_equal(run.positions, expected.final[0])
    kept = run.trajectory()
    assert kept.steps.tolist() == [0, 1, 4, 12, 20]
    np.testing.assert_array_equal(kept.positions[0], expected.positions[0, kept.steps])
    ratios = expected.observables["circle_ratio"][0, kept.steps]
    np.testing.assert_array_equal(kept.observables["circle_ratio"][0], ratios)


def test_time_goes_on_where_the_step_size_changes():
    run = ParticleRun(ParticleSystem(7), 0.02, starts.start("normal", 7, 2, 5))
    run.advance(2)
    run.change(run.system, 0.05)
    run.advance(3)
    kept = run.trajectory()
    assert kept.steps.tolist() == [0, 2, 5]
    assert kept.times.tolist() == pytest.approx([0.0, 0.04, 0.19])


def test_a_dragged_particle_goes_back():
    """The perfect circle attracts: a token pulled off it returns to its neighbourhood."""
    run = ParticleRun(ParticleSystem(alignment=2.0), 0.02, starts.start("circle", 17, 2, 0, 0.0))
    run.advance(100)
    place = run.positions[4].copy()
    run.move(4, 0.5 * place)
    assert physics.circle_ratio(run.positions) > 1.9
    run.advance(100)
    assert physics.circle_ratio(run.positions) < 1.2


def test_the_page_follows_the_run_again_once_a_particle_is_dropped():
    page = session.Session(Document(), VIEWS)
    view = page.view
    view._run.advance(3)
    view.show()
    tokens, plot = view._particles.tokens, view._particles.figure
    plot._trigger_event(PanStart(plot))
    x = list(tokens.data["x"])
    tokens.data = {
        **tokens.data,
        "x": [1.1, *x[1:]],
        "y": [0.7, *tokens.data["y"][1:]],
    }  # as a pointer rounds
    plot._trigger_event(PanEnd(plot))
    assert view._particles.points()[0] == pytest.approx([1.1, 0.7])
    view._run.advance(50)
    view.show()
    expected = view._run.positions @ view._axes.T
    np.testing.assert_allclose(view._particles.points(), expected, atol=1e-6)


def test_an_overflow_is_a_sentence_and_leaves_the_run_as_it_was():
    run = ParticleRun(ParticleSystem(normalise=False), 0.02, starts.start("normal", 17, 2, 0))
    run.advance(2)
    run.change(ParticleSystem(normalise=False, repulsion=1e300), 1e10)
    before = run.positions.copy()
    with pytest.raises(SimulationError, match="overflows after step 2; make the step smaller than"):
        run.advance(5)
    np.testing.assert_array_equal(run.positions, before)
    assert run.step == 2


def test_a_law_of_another_size_or_a_start_of_another_is_refused():
    run = ParticleRun(ParticleSystem(7), 0.02, starts.start("normal", 7, 2, 0))
    with pytest.raises(InputError, match="same tokens and dimensions"):
        run.change(ParticleSystem(8), 0.02)
    with pytest.raises(InputError, match=r"start must have the shape \(7, 2\), got \(8, 2\)"):
        ParticleRun(ParticleSystem(7), 0.02, starts.start("circle", 8, 2, 0))
    with pytest.raises(InputError, match="start must be one of"):
        starts.start("spiral", 7, 2, 0)
    with pytest.raises(InputError, match="noise must be a finite number of at least 0"):
        starts.start("circle", 7, 2, 0, -1.0)


@pytest.mark.parametrize(
    ("model", "modulus", "settings"),
    [
        (nets.ConstantAttention(5, 2, 4), None, {}),
        (nets.ToyAddition(4, 1, (6, 6)), 7, {"embedding_learning_rate": 0.001, "train_fraction": 0.8}),
    ],
)
def test_a_network_and_its_particles_are_made_again_by_their_script(model, modulus, settings):
    def law(alignment):
        return ParticleSystem(model.tokens, model.dim, alignment=alignment, modulus=modulus)

    run = NetworkRun(model, 3, 0.01, 1.0, law(1.0), 4, **settings)
    np.testing.assert_array_equal(run.particles.positions, run.training.embeddings[0].astype(float))

    def same():
        made = executed(run.python())
        np.testing.assert_array_equal(made["E"], run.training.embeddings[0])
        np.testing.assert_array_equal(made["P"], run.particles.positions)

    same()
    run.advance(3)
    run.advance(6, (-2.0, 2.0, -2.0, 2.0))
    assert (run.step, run.particles.step) == (9, 2)
    same()
    run.change(0.02, 0.5)
    run.change_law(law(2.0))
    run.advance(8, (-2.0, 2.0, -2.0, 2.0))
    assert (run.step, run.particles.step) == (17, 4)
    same()
    assert run.map.shape == (72, 72)
    kept = run.trajectory()
    assert kept.steps.tolist() == [0, 3, 9, 17]
    loss = run.training.losses("validation")[0][0]
    assert kept.observables["validation_loss"][0, -1] == loss
    run.reset()
    same()


def test_the_map_is_what_the_network_answers():
    run = NetworkRun(nets.ConstantAttention(5, 2, 4), 0, 0.02, 0.1, ParticleSystem(5), 20)
    run.advance(60, (-6.0, 6.0, -6.0, 6.0))
    network = run.training.networks()
    E = network.parameters["embedding"][0]
    sums = E[run.model.task.inputs].sum(axis=1)
    rows = np.round((sums[:, 1] + 6) / 12 * 71).astype(int)
    columns = np.round((sums[:, 0] + 6) / 12 * 71).astype(int)
    inside = (rows >= 0) & (rows < 72) & (columns >= 0) & (columns < 72)
    answers = network.outputs()[0].argmax(axis=1)
    assert inside.sum() > 10
    assert (run.map[rows[inside], columns[inside]] == answers[inside]).mean() > 0.8  # a pixel is 0.17 wide


@pytest.mark.parametrize(("dim", "plane"), [(1, "axes 1, 2"), (3, "axes 1, 3"), (4, "components 1, 2")])
def test_in_other_dimensions_the_map_is_of_the_plane_through_the_mean_pair_sum(dim, plane):
    run = NetworkRun(nets.ConstantAttention(5, dim, 4), 0, 0.02, 0.1, ParticleSystem(5, dim), 20)
    run.plane = plane
    run.advance(60, (-6.0, 6.0, -3.0, 3.0))
    network = run.training.networks()
    E = network.parameters["embedding"][0].astype(float)
    middle = E[run.model.task.inputs].sum(axis=1).mean(axis=0)
    generator = np.random.default_rng(0)
    for row, column in generator.integers(72, size=(20, 2)):
        seen = np.array([-6 + 12 * column / 71, -3 + 6 * row / 71])
        there = middle + (seen - run.axes @ middle) @ run.axes
        assert run.map[row, column] == network.classify(there[None])[0, 0]
    assert len(np.unique(run.map)) > 1
    assert network_film(run, plane).frames == len(run.history)


# -- history, planes, colours ----------------------------------------------------------------------------


def test_history_is_bounded_and_keeps_both_ends():
    history = History(limit=10)
    for step in range(1000):
        history.append(step, value=step**2)
        assert len(history) <= 10
        assert history.steps[0] == 0
        assert history.last["value"] == step**2
        np.testing.assert_array_equal(history["value"], history.steps**2)
        assert len(set(np.diff(history.steps)[:-1])) <= 1  # even, but for the last


def test_history_replaces_a_frame_of_the_same_step_and_copies():
    history, values = History(), np.zeros(2)
    history.append(0, value=values)
    values += 1
    history.append(1, value=values)
    history.append(1, value=values + 1)
    assert history["value"].tolist() == [[0, 0], [2, 2]]


@pytest.mark.parametrize("dim", [1, 2, 3, 7])
def test_planes_have_orthonormal_axes(dim):
    E = np.random.default_rng(0).standard_normal((9, dim))
    for name in planes.planes(dim):
        axes = planes.plane_axes(E, name)
        expected = np.diag([1.0, 0.0]) if dim == 1 else np.eye(2)
        np.testing.assert_allclose(axes @ axes.T, expected, atol=1e-12)


def test_components_do_not_jump_from_frame_to_frame():
    generator = np.random.default_rng(1)
    E = generator.standard_normal((30, 5)) * [3, 2, 1, 0.5, 0.2]
    axes = planes.plane_axes(E, "components 1, 2")
    for _ in range(50):
        E = E + 0.01 * generator.standard_normal(E.shape)
        turned = planes.plane_axes(E, "components 1, 2", axes)
        assert np.abs(turned - axes).max() < 0.1
        axes = turned


def test_colours_are_those_of_the_figures():
    found = [tuple(bytes.fromhex(color[1:])) for color in theme.class_colors(17)]
    np.testing.assert_allclose(found, np.round(255 * class_colors(17)[:, :3]))


# -- exports and files -----------------------------------------------------------------------------------


def test_films_are_drawn_frame_by_frame():
    run = ParticleRun(ParticleSystem(5, 3), 0.02, starts.start("normal", 5, 3, 0))
    run.advance(2)
    run.advance(3)
    film = particle_film(run.trajectory(), plane="components 1, 2")
    assert film.frames == 3
    moving = Image.open(io.BytesIO(export.gif(film, dpi=30)))
    assert moving.n_frames == 3
    assert moving.size == (240, 162)
    still = Image.open(io.BytesIO(export.png(film, dpi=50)))
    assert still.size == (400, 270)
    assert colours(still) > 50
    first, last = (export.png(film, frame, dpi=30) for frame in (0, -1))
    assert first != last


def test_a_network_is_drawn_with_its_map():
    run = NetworkRun(nets.ConstantAttention(5, 2, 4), 0, 0.02, 0.1, ParticleSystem(5), 2)
    run.advance(4, (-3.0, 3.0, -2.0, 2.0))
    film = network_film(run)
    drawn = export.png(film, dpi=40)
    picture = Image.open(io.BytesIO(drawn))
    assert picture.size == (420, 256)
    assert colours(picture) > 100
    run.look_again((-30.0, 30.0, -20.0, 20.0))
    assert export.png(film, dpi=40) == drawn, "a film owns its map"


def test_long_films_are_thinned_evenly():
    assert export.evenly(5, 10) == [0, 1, 2, 3, 4]
    assert export.evenly(100, 4) == [0, 33, 66, 99]
    assert export.evenly(7, 1) == [6]
    film = export.Film(3, lambda figure: lambda frame: None)
    with pytest.raises(InputError, match="fps must be a finite number from 0.01 to 50, got 60"):
        export.gif(film, fps=60)


def test_files_go_out_and_come_in(tmp_path):
    run = ParticleRun(ParticleSystem(5), 0.02, starts.start("normal", 5, 2, 0))
    run.advance(4)
    content = exports.file_bytes(run.trajectory())
    back = loaded(content)
    np.testing.assert_array_equal(back.final[0], run.positions)
    np.testing.assert_array_equal(executed(back.parameters["python"])["E"], run.positions)


def test_uploads_are_kept_for_one_page_within_bounds(tmp_path, monkeypatch):
    held = uploads.Uploads(tmp_path)
    path = held.begin(16)
    path.write_bytes(b"not a trajectory")
    with pytest.raises(FileFormatError, match=r"^other\.h5 is not an HDF5 file$"):
        held.keep(path, "other.h5")
    physics.simulate(ParticleSystem(5), steps=2, out=path, overwrite=True)
    key = held.keep(path, "mine.h5")
    assert held.claim(key) == (path, "mine.h5")
    with pytest.raises(InputError, match=f"upload must be the key of a file .*, got '{key}'"):
        held.claim(key)
    held.drop(path)
    assert list(tmp_path.iterdir()) == []
    for size in (0, uploads.LARGEST_UPLOAD + 1):
        with pytest.raises(InputError, match=f"from 1 to {uploads.LARGEST_UPLOAD} bytes, got {size}"):
            held.begin(size)
    monkeypatch.setattr(uploads, "LARGEST_FOLDER", 100)
    first = held.begin(60)
    with pytest.raises(InputError, match="all uploads together must have at most 100 bytes, got 120"):
        held.begin(60)
    held.drop(first)
    held.begin(60)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("run.h5", "run.h5"),
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\run.h5", "run.h5"),
        ("a\x1b[31m\n.h5", "a[31m.h5"),
        ("", "upload.h5"),
        ("..", ".."),
        ("x" * 300 + ".h5", "x" * 97 + ".h5"),
    ],
)
def test_a_file_is_called_what_can_be_read(name, short):
    assert uploads.short_name(name) == short


# -- a session without a page ----------------------------------------------------------------------------


@pytest.fixture
def page():
    """A session, and what its page would be told."""
    return session.Session(Document(), VIEWS[:1])


def test_a_session_says_what_is_wrong_and_lives_on(page):
    view = page.view
    view._modulus.value = 17
    view._modulus.value = 1
    assert page.bridge.message[1:] == ["error", "modulus must be at least 2, got 1"]
    view._modulus.value = 5
    assert view._run.system.modulus == 5
    page._command("speed", 7)
    assert "steps per frame must be one of 1, 2, 3" in page.bridge.message[2]
    page._command("view", "attic")
    assert "view must be one of particles, got 'attic'" in page.bridge.message[2]
    page._command("unknown", None)
    view.advance(3)
    view.show()
    page._command("ready", None)
    assert ["step", "3"] in page.bridge.status


def test_an_unforeseen_error_is_said_to_be_ours(page, capsys):
    page.reaction(lambda: 1 / 0)()
    assert page.bridge.message[2].startswith(
        "This is an error in GrokPhys, not in your input: ZeroDivisionError"
    )
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_first_view_that_cannot_be_made_gives_way_to_another():
    class Broken(VIEWS[0]):
        slug, name, reads_files = "broken", "Broken", True

        def __init__(self, session):
            raise FileFormatError("mine.h5 is no trajectory")

    opened = session.Session(Document(), [VIEWS[0], Broken], [Path("mine.h5")])
    assert opened.bridge.view == "particles"
    assert opened.bridge.message[1:] == ["error", "mine.h5 is no trajectory"]


def test_sliders_change_the_law_and_the_start(page):
    view = page.view
    view._law["alignment"].value = 2.5
    view.advance(2)
    view._law["repulsion"].value = 0.5
    view.advance(2)
    assert view.python().count("physics.simulate") == 2
    np.testing.assert_array_equal(executed(view.python())["E"], view._run.positions)
    view._dim.value = 4
    assert view._plane.options == planes.planes(4)
    view._plane.value = "components 3, 4"
    view._tokens.value = 9
    assert view._run.positions.shape == (9, 4)
    assert view.status()["step"] == "0"
    view._kind.value = "grid"
    view.advance(2)
    np.testing.assert_array_equal(executed(view.python())["E"], view._run.positions)


def test_classes_are_written_where_colours_do_not_do(page):
    view, texts = page.view, page.view._sums._texts
    assert len(texts.data["x"]) == 0
    view._numbers.value = "numbers"
    view.advance(2)
    view.show()
    operation = view._run.system.operation
    assert texts.data["class"] == [str(label) for label in operation.label]
    sums = view._run.positions[operation.samples].sum(axis=1)
    np.testing.assert_allclose(texts.data["x"], sums[:, 0], rtol=1e-5, atol=1e-5)
    view._numbers.value = "colours"
    assert len(texts.data["x"]) == 0


def test_a_start_from_a_file(page, tmp_path):
    path = tmp_path / "run.h5"
    physics.simulate(ParticleSystem(6, 3), steps=5, seed=1, runs=2, out=path)
    opened = session.Session(Document(), VIEWS[:1], [path])
    view = opened.view
    view._kind.value = "file"
    assert "Choose a trajectory file" in opened.bridge.message[2]
    view._file._frame.value = -1
    view._file._run.value = 1
    view._file.files.list.value = str(path)
    np.testing.assert_array_equal(view._run.positions, physics.load(path).final[1])
    view.advance(3)
    np.testing.assert_array_equal(executed(view.python())["E"], view._run.positions)
    view._file._run.value = 2
    assert "run must be below 2, got 2" in opened.bridge.message[2]


def test_a_closed_session_computes_no_more(page):
    page._command("play", None)
    assert page.playing
    assert page.document.session_callbacks  # the next frame
    waiting = len(page.document.session_callbacks)
    page.close()
    assert not page.playing
    page._command("play", None)
    page._shown("shown", 0, 1)
    assert len(page.document.session_callbacks) == waiting


def test_the_bridge_is_a_model_of_data():
    assert issubclass(Bridge, DataModel)
    bridge = Bridge()
    bridge.send("message", "note", "hello")
    bridge.send("message", "note", "hello")
    assert bridge.message == [2, "note", "hello"]


# -- the command -----------------------------------------------------------------------------------------


def test_a_port_in_use_is_a_sentence(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["explore", "--no-browser", "--port", str(port)]) == 1
    assert f"port {port} of 127.0.0.1 is in use; choose another with --port" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--port", "-1"], 2, "port must be at least 0, got -1"),
        (["--port", "70000"], 2, "port must be at most 65535, got 70000"),
        (["--host", ""], 2, "--host must not be blank or hold a zero byte, got ''"),
        (["--host", "::1"], 2, "host must be an IPv4 address or a name, got '::1'"),
        (["nowhere.h5"], 1, "there is no file nowhere.h5"),
        (["--host", "192.0.2.1", "--port", "0"], 1, "cannot listen on port 0 of 192.0.2.1"),
    ],
)
def test_what_the_command_refuses(arguments, status, words, capsys):
    assert main(["explore", "--no-browser", *arguments]) == status
    assert words in capsys.readouterr().err


def test_a_missing_extra_is_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(server.importlib.util, "find_spec", lambda name: None)
    assert main(["explore", "--no-browser", "--port", "0"]) == 1
    assert "explore needs Bokeh: pip install 'grokphys[explore]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("127.0.0.1", ["127.0.0.1", "localhost"]),
        ("localhost", ["localhost", "127.0.0.1"]),
        ("127.0.0.2", ["127.0.0.2", "localhost"]),
        ("0.0.0.0", ["127.0.0.1", "localhost", socket.gethostname()]),
        ("0", ["127.0.0.1", "localhost", socket.gethostname()]),
    ],
)
def test_names_of_the_server(host, names):
    with server._listen(host, 0) as listening:
        found = server._names(host, listening)
        assert found[: len(names) - 1] == names[:-1]
        assert names[-1] in found
        assert server._is_loopback(listening) == (host not in ("0.0.0.0", "0"))


@pytest.mark.parametrize("count", [1, 2, 5, 17, 59, 64, 113, 256])
def test_classes_have_the_colours_that_they_have_in_figures(count):
    expected = [mpl.colors.to_hex(color) for color in class_colors(count)]
    assert theme.class_colors(count) == expected


@pytest.mark.parametrize(("extent", "digits"), [(1e-4, 9), (0.7, 6), (1.3, 5), (40.0, 4), (2e7, -2)])
def test_what_is_drawn_is_rounded_by_its_extent(extent, digits):
    points = np.random.default_rng(0).uniform(-1, 1, (40, 2)) * extent
    points[0] = extent
    assert plane_plot._drawn(points) == points.T.round(digits).tolist()
    assert plane_plot._drawn(0 * points) == [[0.0] * 40] * 2
    many = np.tile(points, (20, 1))
    np.testing.assert_array_equal(plane_plot._drawn(many), many.T.astype(np.float32))


def test_changes_of_one_reaction_are_one_message():
    sent = []

    class Socket:
        async def send_message(self, message):
            sent.append(message)

    document = Document()
    held = ServerSession("one", document)
    Connection(Protocol(), Socket(), None, held)
    source, bridge = ColumnDataSource({"x": [0, 0]}), Bridge()

    def begin():
        document.add_root(source)
        document.add_root(bridge)

    def reaction():
        source.patch({"x": [(slice(None), [1, 2])]})
        bridge.frame = 7
        bridge.playing = 1

    for work in (begin, reaction, lambda: None):
        apart(held.with_document_locked(work))
    assert [len(message.content["events"]) for message in sent] == [2, 3]
    kinds = [event["kind"] for event in sent[1].content["events"]]
    assert kinds == ["ColumnsPatched", "ModelChanged", "ModelChanged"]


def test_the_page_names_no_other_host():
    for path in (Path(server.__file__).parent / "assets").glob("page.*"):
        if path.suffix != ".py":
            assert not re.search("https?:|//[a-z]", path.read_text()), path


# -- colors ----------------------------------------------------------------------------------------------


def contrasts(color, other):
    """Contrast of two colors by the definition of WCAG 2.2, by day, and as figures show it at night."""

    def luminance(rgb):
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def night(rgb):
        """The filter effects invert() and hue-rotate(180deg) of CSS."""
        share = float(re.search(r"invert\(([\d.]+)\) hue-rotate\(180deg\)", theme.FIGURE_CSS)[1])
        r, g, b = (share + (1 - 2 * share) * v for v in rgb)
        gray = 0.213 * r + 0.715 * g + 0.072 * b
        return [min(1.0, max(0.0, 2 * gray - v)) for v in (r, g, b)]

    both = [[int(name[k : k + 2], 16) / 255 for k in (1, 3, 5)] for name in (color, other)]
    found = []
    for view in (lambda rgb: rgb, night):
        low, high = sorted(luminance(view(rgb)) for rgb in both)
        found.append((high + 0.05) / (low + 0.05))
    return found


def test_curves_and_numbers_stand_out_by_day_and_at_night():
    for color in (*theme.SERIES, theme.WARM, theme.FAINT, theme.INK):
        assert min(contrasts(color, theme.PAPER)) >= 3, color
    for count in range(3, 65):
        discs = theme.class_colors(count)
        for color in theme.line_colors(count):
            assert min(contrasts(color, theme.PAPER)) >= 3, (count, color)
        inks = theme.text_colors(discs), theme.text_colors(discs, dark=True)
        for disc, day, night in zip(discs, *inks, strict=True):
            assert contrasts(day, disc)[0] >= 4.5, (count, disc)
            assert contrasts(night, disc)[1] >= 4.5, (count, disc)
            assert min(contrasts(theme.darker(disc), theme.PAPER)) >= 4.5
