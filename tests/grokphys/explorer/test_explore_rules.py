"""The rules of the explorer one by one, without a server: what pages may set, what is kept, what is said."""

import math

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import (
    Button,
    CategoricalSlider,
    Checkbox,
    ColumnDataSource,
    Plot,
    PointDrawTool,
    Scatter,
    Select,
    Slider,
    Spinner,
    TextInput,
)

import physics
from grokphys.explorer import guard, uploads
from grokphys.explorer.bridge import Bridge
from grokphys.explorer.files import labels
from grokphys.explorer.guard import Ignored, allowed, checked
from grokphys.explorer.runs import planes, scripts, starts, verdicts
from grokphys.explorer.runs.history import History
from physics import FileFormatError, InputError

# -- what a page may set ------------------------------------------------------------------------------------

WHOLE = Slider(title="s", start=-2, end=10, step=2, value=0)
REAL = Slider(title="s", start=0, end=1, step=0.1, value=0)
COUNT = Spinner(title="s", low=0, high=5, mode="int", value=0)
OPEN = Spinner(title="s", mode="float", value=0)
PAIRS = Select(title="s", options=[("1", "one"), ("b", "two")], value="b")
WORDS = Select(title="s", options=["a", "b"], value="b")
LISTED = CategoricalSlider(title="s", categories=["x", "y"], value="x")
BRIDGE = Bridge(frame=7)


@pytest.mark.parametrize(
    ("model", "name", "value", "kept"),
    [
        (WHOLE, "value", -2, -2),
        (WHOLE, "value", 10.0, 10),
        (REAL, "value", 0.25, 0.25),
        (REAL, "value", 1, 1),
        (COUNT, "value", 5, 5),
        (OPEN, "value", -1e12, -1e12),
        (PAIRS, "value", "1", "1"),
        (WORDS, "value", "a", "a"),
        (LISTED, "value", "y", "y"),
        (Checkbox(label="s"), "active", True, True),
        (TextInput(title="s"), "value", "x" * 1000, "x" * 1000),
        (BRIDGE, "command", [3, "play", None], [3, "play", None]),
        (BRIDGE, "command", [10**12, "x" * 19_996, "text"], [10**12, "x" * 19_996, "text"]),
        (BRIDGE, "shown", 7, 7),
        (BRIDGE, "shown", 0, 0),
        (Plot(), "inner_width", 10**5, 10**5),
        (Plot(), "inner_height", 0, 0),
    ],
)
def test_a_value_that_the_widget_offers_is_taken(model, name, value, kept):
    found = checked(model, name, value)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("model", "name", "value", "said"),
    [
        (WHOLE, "value", 10.5, "a whole number from -2 to 10, got 10.5"),
        (WHOLE, "value", 11, "a whole number from -2 to 10, got 11"),
        (WHOLE, "value", -3, "got -3"),
        (WHOLE, "value", True, "got True"),
        (WHOLE, "value", "1", "got '1'"),
        (REAL, "value", math.nan, "a number from 0 to 1, got nan"),
        (REAL, "value", 1.01, "got 1.01"),
        (REAL, "value", -0.01, "got -0.01"),
        (COUNT, "value", 6, "a whole number from 0 to 5, got 6"),
        (COUNT, "value", 1.5, "got 1.5"),
        (COUNT, "value", -1, "got -1"),
        (COUNT, "value", None, "got nothing"),
        (OPEN, "value", 1.1e12, "a number from -1e+12 to 1e+12, got 1100000000000.0"),
        (OPEN, "value", -math.inf, "got -inf"),
        (PAIRS, "value", 1, "one of one, two, got 1"),
        (WORDS, "value", "c", "one of a, b, got 'c'"),
        (WORDS, "value", "x" * 200, f"got '{'x' * 76}…"),
        (LISTED, "value", "z", "one of x, y, got 'z'"),
        (Checkbox(label="s"), "active", 1, "on or off, got 1"),
        (TextInput(title="s"), "value", "x" * 1001, "at most 1000 characters long, got 'xxx"),
        (TextInput(title="s"), "value", 3, "got 3"),
    ],
)  # fmt: skip
def test_a_value_that_the_widget_does_not_offer_is_refused_by_its_name(model, name, value, said):
    with pytest.raises(InputError) as refused:
        checked(model, name, value)
    assert str(refused.value).startswith("s must be ")
    assert said in str(refused.value)
    assert len(str(refused.value)) < 160


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (WHOLE, "end", 100),
        (Button(label="b"), "label", "x"),
        (BRIDGE, "frame", 9),
        (BRIDGE, "shown", 8),
        (BRIDGE, "shown", -1),
        (BRIDGE, "shown", 1.5),
        (BRIDGE, "command", [-1, "play", None]),
        (BRIDGE, "command", [10**12 + 1, "play", None]),
        (BRIDGE, "command", [1, "x" * 19_997, "text"]),
        (BRIDGE, "command", [1, "play", [1]]),
        (BRIDGE, "command", [1, 2, None]),
        (BRIDGE, "command", [1, "play"]),
        (Plot(), "inner_width", 10**5 + 1),
        (Plot(), "inner_width", -1),
        (Plot(), "inner_width", 1.5),
        (Plot(), "width", 100),
        (None, "value", 1),
    ],
)
def test_everything_else_is_ignored(model, name, value):
    with pytest.raises(Ignored):
        checked(model, name, value)


@pytest.fixture
def dragged():
    """A document with a plot whose points can be dragged, and a source that no tool draws."""
    source, still = (ColumnDataSource({"x": [0, 1], "y": [2, 3], "name": ["a", "b"]}) for _ in range(2))
    plot = Plot()
    points = plot.add_glyph(source, Scatter())
    plot.add_glyph(still, Scatter())
    plot.add_tools(PointDrawTool(renderers=[points]))
    document = Document()
    document.add_root(plot)
    return document, plot, source, still


def columns(**named):
    return {"type": "map", "entries": [[name, list(values)] for name, values in named.items()]}


def test_only_coordinates_of_points_that_can_be_dragged_change(dragged):
    _, _, source, still = dragged
    new = columns(x=[5, 6], y=[7, 8.5], name=["<", ">"], more=[1])
    assert checked(source, "data", new) == columns(x=[5, 6], y=[7, 8.5], name=["a", "b"])
    for wrong in (
        columns(x=[5, 6]),
        columns(x=[5], y=[7, 8]),
        columns(x=[5, 6, 7], y=[7, 8, 9]),
        columns(x=[5, math.nan], y=[7, 8]),
        columns(x=[5, 6], y=[7, "8"]),
        columns(x=[5, 6], y=[7, 1e13]),
        {"type": "map", "entries": [[1, [5, 6]], ["y", [7, 8]]]},
        {"x": [5, 6], "y": [7, 8]},
    ):
        with pytest.raises(Ignored):
            checked(source, "data", wrong)
    with pytest.raises(Ignored):
        checked(still, "data", new)


def event(name, **values):
    entries = [[key, value] for key, value in values.items()]
    data = {"type": "event", "name": name, "values": {"type": "map", "entries": entries}}
    return {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": data}


def test_clicks_and_taps_keep_their_place_and_nothing_else(dragged):
    document, plot, source, _ = dragged
    button = Button(label="b")
    document.add_root(button)
    for name in ("tap", "panstart", "panend"):
        given = event(name, model={"id": plot.id}, x=1.5, y=-2, sx=3, extra="x")
        assert allowed(document, given) == event(name, model={"id": plot.id}, x=1.5, y=-2)
    assert allowed(document, event("button_click", model={"id": button.id}, x=1)) == event(
        "button_click", model={"id": button.id}
    )
    for wrong in (
        event("button_click", model={"id": plot.id}),
        event("tap", model={"id": button.id}, x=1, y=2),
        event("tap", model={"id": plot.id}, x=1),
        event("tap", model={"id": plot.id}, x=1, y=None),
        event("tap", model={"id": plot.id}, x=1, y=math.inf),
        event("lodstart", model={"id": plot.id}, x=1, y=2),
        event("tap", model=plot.id, x=1, y=2),
        event("tap", x=1, y=2),
        {"kind": "ModelChanged", "model": {"id": plot.id}, "attr": "title", "new": "x"},
        {"kind": "RootAdded", "model": {"id": source.id}},
        {"kind": "ModelChanged", "model": {"id": "none"}, "attr": "value", "new": 1},
        [],
    ):
        with pytest.raises(Ignored):
            allowed(document, wrong)


def test_one_event_that_is_refused_does_not_keep_back_the_next(dragged):
    document, plot, _, _ = dragged
    slider = Slider(title="s", start=0, end=4, step=1, value=0)
    document.add_root(slider)
    refused = []
    guard.guard(document, refused.append)

    def change(model, attr, new):
        return {"kind": "ModelChanged", "model": {"id": model.id}, "attr": attr, "new": new}

    events = [change(slider, "value", 9), change(slider, "end", 9), change(slider, "value", 3)]
    document.apply_json_patch({"events": [*events, change(plot, "inner_width", 50)]})
    assert (slider.value, slider.end, plot.inner_width) == (3, 4, 50)
    assert [str(error) for error in refused] == ["s must be a whole number from 0 to 4, got 9"]
    document.apply_json_patch({"events": {}})
    document.replace_with_json({"roots": []})
    assert slider in document.roots


# -- files --------------------------------------------------------------------------------------------------


def test_uploads_share_the_room_and_give_it_back(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "LARGEST_UPLOAD", 60)
    monkeypatch.setattr(uploads, "LARGEST_FOLDER", 100)
    held = uploads.Uploads(tmp_path)
    first = held.begin(60)
    second = held.begin(40)
    assert first != second
    with pytest.raises(InputError, match="all uploads together must have at most 100 bytes, got 101"):
        held.begin(1)
    held.drop(second)
    held.drop(second)
    third = held.begin(40)
    assert third.parent == tmp_path
    assert third.suffix == ".h5"
    assert len({first.stem, second.stem, third.stem}) == 3
    for size in (0, 61):
        with pytest.raises(InputError, match=f"from 1 to 60 bytes, got {size}"):
            held.begin(size)


def test_errors_call_a_file_by_the_name_that_the_user_gave_it(tmp_path):
    path = tmp_path / "hidden.h5"
    for raised, kind in (
        (InputError(f"{path} is bad"), InputError),
        (FileFormatError(f"{path} is bad"), FileFormatError),
        (OSError(f"{path} is bad"), FileFormatError),
    ):
        with pytest.raises(kind, match=r"^mine\.h5 is bad$"), uploads.named(path, "mine.h5"):
            raise raised
    with pytest.raises(OSError, match=f"^{path} is bad$"), uploads.named(path, str(path)):
        raise OSError(f"{path} is bad")


def test_names_are_told_apart():
    assert uploads.unused("a.h5", ["b.h5"]) == "a.h5"
    assert uploads.unused("a.h5", ["a.h5"]) == "a (2).h5"
    assert uploads.unused("a.h5", ["a (3).h5", "a.h5", "a (2).h5"]) == "a (4).h5"
    assert labels({1: "x/a.h5", 2: "y/a.h5", 3: "z/b.h5"}) == {1: "x/a.h5", 2: "y/a.h5", 3: "b.h5"}


# -- what is kept -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [3, 4, 5, 10])
def test_a_history_keeps_every_frame_of_an_even_stride_and_the_last(limit):
    history, stride = History(limit=limit), 1
    for n in range(70):
        history.append(10 * n, value=n)
        kept = [k for k in range(n + 1) if k % stride == 0]
        if len(kept) + (kept[-1] != n) >= limit:
            stride *= 2
            kept = [k for k in range(n + 1) if k % stride == 0]
        kept += [n] if kept[-1] != n else []
        assert history["value"].tolist() == kept
        assert history.steps.tolist() == [10 * k for k in kept]
        assert [step for step, _ in history.frames()] == [10 * k for k in kept]
    history.clear()
    history.append(5, value=1)
    history.append(6, value=2)
    assert history.steps.tolist() == [5, 6], "as at the beginning"


def test_planes_are_pairs_of_axes_and_of_components_up_to_a_number():
    assert planes.planes(1) == planes.planes(2) == ["axes 1, 2"]
    assert planes.planes(3) == ["axes 1, 2", "axes 1, 3", "axes 2, 3", "components 1, 2"]
    assert planes.planes(4)[-2:] == ["components 1, 2", "components 3, 4"]
    many = planes.planes(50)
    assert [name for name in many if name.startswith("comp")] == [
        "components 1, 2", "components 3, 4", "components 5, 6"
    ]  # fmt: skip
    assert len(many) == 10 + 3
    assert "axes 4, 5" in many
    E = np.random.default_rng(0).standard_normal((9, 5)) + 7.0
    vectors = np.linalg.eigh(np.cov(E.T))[1]
    for row, expected in zip(planes.plane_axes(E, "components 3, 4"), vectors.T[[-3, -4]], strict=True):
        assert abs(row @ expected) == pytest.approx(1.0)
    np.testing.assert_array_equal(planes.plane_axes(E, "axes 2, 5"), np.eye(5)[[1, 4]])


def test_the_strongest_circle_is_seen_and_does_not_turn():
    assert planes.planes(2, cyclic=True) == planes.planes(2)
    assert planes.planes(5, cyclic=True) == [*planes.planes(5), planes.STRONGEST]
    angle = 2 * np.pi * np.arange(11) / 11
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    circles = [np.stack([np.cos(k * angle), np.sin(k * angle)], axis=1) for k in (2, 3)]
    for large, small, rows in ((1.0, 0.9, turned[:2]), (0.9, 1.0, turned[2:4])):
        E = np.hstack([large * circles[0], small * circles[1], np.ones((11, 1))]) @ turned
        axes = planes.plane_axes(E, planes.STRONGEST)
        np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
        np.testing.assert_allclose(axes @ rows.T @ rows, axes, atol=1e-12)  # it is that of the larger circle
        around = np.array([[0.6, -0.8], [0.8, 0.6]]) @ axes
        np.testing.assert_allclose(planes.plane_axes(E, planes.STRONGEST, around), around, atol=1e-12)


def test_starts_are_circles_and_lattices_with_noise_and_their_code_makes_them():
    kinds = {"circle": [(6, 3), (5, 1)], "grid": [(9, 2), (10, 2), (8, 3)]}
    for kind, tokens, dim in ((kind, *sizes) for kind, given in kinds.items() for sizes in given):
        still, noisy = starts.start(kind, tokens, dim, 3, 0.0), starts.start(kind, tokens, dim, 3, 0.5)
        E = still.positions
        names = {"np": np}
        exec("\n".join(noisy.lines), names)
        np.testing.assert_array_equal(names["E"], noisy.positions)
        noise = np.random.default_rng(3).standard_normal((tokens, dim))
        np.testing.assert_allclose(noisy.positions - E, 0.5 * noise, atol=1e-12)
        if kind == "circle":
            angle = 2 * np.pi * np.arange(tokens) / tokens
            np.testing.assert_allclose(E[:, 0], 2**0.5 * np.cos(angle), atol=1e-12)
            assert np.abs(E[:, 2:]).max(initial=0.0) == 0
        else:
            side = {9: 3, 10: 4, 8: 2}[tokens]
            np.testing.assert_array_equal(E[:, 0], np.arange(tokens) % side - (side - 1) / 2)
            np.testing.assert_array_equal(E[:, 1], np.arange(tokens) // side % side - (side - 1) / 2)
    drawn = starts.start("normal", 5, 2, 9)
    assert (drawn.seed, drawn.positions, drawn.lines, drawn.shape) == (9, None, (), None)
    assert starts.given(np.zeros((3, 1)), ("E = 0",)).shape == (3, 1)
    for wrong in (np.zeros((2, 2)), np.zeros((3, 0)), np.zeros((2, 3, 2))):
        with pytest.raises(InputError, match="start must have the shape"):
            starts.given(wrong, ())


def test_a_script_names_what_is_not_at_its_default():
    system = physics.ParticleSystem(7, alignment=0.1)
    assert scripts.constructed("physics", system) == "physics.ParticleSystem(tokens=7, alignment=0.1)"
    assert scripts.arguments(x=np.float64(0.1), y=(1, 2), z=None) == "x=0.1, y=[1, 2], z=None"


# -- what is said -------------------------------------------------------------------------------------------


def test_a_shape_is_a_circle_or_a_grid_up_to_a_third_of_its_pair_sums():
    angle = 2 * np.pi * np.arange(5) / 5
    ring = np.stack([np.cos(2 * angle), np.sin(2 * angle)], axis=1)
    assert verdicts.shape(ring, 0) == ("circle", "Circle, step 2 (0, 2, 4, 1, …), ratio 1.00.")
    mixed = ring[[0, 1, 2, 4, 3]]
    assert verdicts.shape(mixed, 0) == ("circle", "Circle, ratio 1.00, in no regular order.")
    line = np.arange(5.0)[:, None]
    assert verdicts.shape(line, 1) == ("grid", "Grid on a line, 1 imperfection.")
    assert verdicts.shape(line, 5) == ("grid", "Grid on a line, 5 imperfections.")  # a third of 15
    assert verdicts.shape(line, 6)[0] == ""
