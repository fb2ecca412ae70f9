"""Ticks, curves, sentences and scripts: what the explorer answers agrees with what it shows."""

import contextlib
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document
from bokeh.models import CategoricalSlider, Select, Slider, Spinner
from sessions import drawn, followed, opened, put

from grokphys.cli.main import main
from grokphys.explorer.page import page as page_of
from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.history import History
from grokphys.explorer.runs.ticks import log_ticks
from grokphys.explorer.uploads import Uploads
from grokphys.explorer.views.tabs import VIEWS

PARTICLES, NETWORKS, THEORY, CIRCLES, NEURONS = VIEWS


# -- sentences about what was refused --------------------------------------------------------------------


def others(widget):
    """Values other than the present one that a widget offers, of which one at least is allowed."""
    match widget:
        case Select():
            return [option[0] if isinstance(option, tuple) else option for option in widget.options]
        case CategoricalSlider():
            return widget.categories
        case Spinner():
            return [widget.low + 2, widget.high]
    return [widget.start + widget.step, widget.start + 2 * widget.step]


@pytest.mark.parametrize("kind", VIEWS)
def test_the_sentence_about_a_refused_value_goes_with_the_next_of_any_field(kind):
    page = opened(kind)
    fields = [
        field
        for of in (Select, Slider, Spinner, CategoricalSlider)
        for field in page.document.select({"type": of})
        if field is not page.view.widgets.get("time")
    ]
    assert len(fields) > 4
    for field in fields:
        value = next((value for value in others(field) if value != field.value), None)
        if value is None:  # a list of one
            continue
        page.say("seed must be less", "error")
        put(page, field, value)
        assert "seed must be less" not in page.bridge.message[2], field.title


def test_the_axis_of_signals_reaches_the_limit():
    page = opened(CIRCLES)
    signals = page.view._signals
    for limit in (0.5, 4e3):
        page.view._rule.value = "an absolute signal"
        page.view._limit.value = limit
        reach = next(r for r in signals.figure.renderers if r.data_source is signals._reach)
        assert reach.data_source.data["y"] == [signals._limit.location] == [limit]
        ticks = signals.figure.yaxis[0].ticker.ticks
        assert ticks[0] <= 5 * limit
        assert ticks[-1] >= limit / 5


# -- axes ------------------------------------------------------------------------------------------------


@given(st.floats(-12, 12), st.floats(-4, 1.3))
def test_a_logarithmic_axis_has_round_ticks_that_do_not_touch(begin, span):
    low = 10.0**begin
    high = low * 10 ** (10**span)
    ticks = log_ticks(low, high)
    assert ticks == sorted(set(ticks))
    assert 2 <= len(ticks) <= 8
    assert all(low * (1 - 1e-3) <= tick <= high * (1 + 1e-3) for tick in ticks)
    apart = np.diff(np.log(ticks)) / np.log(high / low)
    assert apart.min() > 0.1


def test_ticks_of_known_axes():
    assert log_ticks(1.02, 1.31) == [1.1, 1.2, 1.3]
    assert log_ticks(2.1, 4.8) == [3.0, 4.0]
    assert log_ticks(1, 30) == [1.0, 2.0, 5.0, 10.0, 20.0]
    assert log_ticks(1e-6, 1e3) == [1e-6, 1e-4, 1e-2, 1.0, 100.0]
    assert log_ticks(10, 1e9) == [1e2, 1e4, 1e6, 1e8], "powers are counted from 1"
    assert log_ticks(3, 3) == [3.0]
    assert log_ticks(0, 3) == log_ticks(np.nan, 3) == []


def test_the_circle_ratio_has_labels_within_a_decade_on_the_page_and_in_films():
    page = opened(PARTICLES)
    view = followed(page, "pull it apart", 30)
    ratio = view._run.history["circle_ratio"]
    assert ratio.max() < 1.5
    for ticks in (
        view._curves.ratio.figure.yaxis[0].ticker.ticks,
        drawn(view.film())["circle ratio"].get_yticks(),
    ):
        assert sum(ratio.min() * 0.99 <= tick <= ratio.max() * 1.01 for tick in ticks) >= 2


def test_the_race_is_seen_beside_the_flow_that_diverges():
    page = opened(NEURONS)
    view = followed(page, "neurons choose", 30)
    trained = view._run.history["magnitude"][:, 0].max()
    _, exact = view._run.flow(0)
    assert exact.max() > 10 * trained, "the flow would hide it"
    beside = np.array(view._race._beside.data["ys"])
    assert trained <= np.nanmax(beside) <= 1.5 * trained
    np.testing.assert_array_equal(beside[np.isfinite(beside)], exact.T[np.isfinite(beside)])
    assert drawn(view.film())["race"].get_ylim()[1] < 1.5 * trained


# -- what is said ----------------------------------------------------------------------------------------


def test_the_imperfect_grid_is_a_lattice_that_has_settled():
    view = followed(opened(PARTICLES), "an imperfect grid", 220)
    assert view.verdict() == "Grid, 16 imperfections. Settled."
    widths = np.linalg.svd(view._run.positions, compute_uv=False)
    assert widths[1] > 0.7 * widths[0], "no line"
    view = followed(opened(PARTICLES), "two starts, one law", 220)
    pattern = r"First start: Circle, .* Settled\. Second start: Grid, 16 .* Settled\."
    assert re.fullmatch(pattern, view.verdict())


def test_a_grid_on_a_line_is_called_so():
    line = np.stack([np.arange(9.0), 0.01 * np.arange(9.0) ** 2], axis=1)
    assert verdicts.shape(line - line.mean(axis=0), 2) == ("grid", "Grid on a line, 2 imperfections.")
    assert verdicts.shape(line[:, :1] - 4, 0)[1].startswith("Perfect grid on a line: ")


def test_particles_that_jump_back_and_forth_have_not_settled():
    history = History()
    for step in range(21):
        history.append(step, E=np.ones((3, 2)) * (1 + 0.05 * (step % 2)))
    assert (
        verdicts.motion(history, "E", stride=lambda: 0.05) == "Jumps back and forth: take a smaller step η."
    )
    assert verdicts.motion(history, "E", stride=lambda: 1e-3) == "Settled."
    assert verdicts.motion(history, "E", since=15) == ""
    jumps = verdicts.motion(history, "E", stride=lambda: 0.05)
    for said, stride, words in (
        ("Settled.", 3.1e-3, jumps),
        (jumps, 2.9e-3, jumps),
        ("Settled.", 2.9e-3, "Settled."),
        (jumps, 1e-3, "Settled."),
    ):
        assert verdicts.motion(history, "E", said, stride=lambda stride=stride: stride) == words
    page = opened(PARTICLES)
    page.view.restore({"alignment": 1.0, "seed": 89})
    for _ in range(200):
        page.view.advance(1)
    assert page.view.verdict() == "Grid, 16 imperfections. Jumps back and forth: take a smaller step η."


def test_arrows_are_short_where_it_has_settled():
    view = followed(opened(PARTICLES), "pull it apart", 0)
    view._law["alignment"].value = 4.0

    def longest():
        view.show()
        data = view._particles._arrows.data
        return np.hypot(data["x1"] - data["x0"], data["y1"] - data["y0"]).max()

    moving = longest()
    for _ in range(40):
        view.advance(10)
    assert view.verdict().endswith("Settled.")
    assert longest() < 0.02 < 0.1 < moving


def test_the_theory_s_sentence_agrees_with_its_numbers():
    page = opened(THEORY)
    assert page.bridge.verdict == (
        "On the way to the only representation that these pairs allow: 0 % of all parallelograms are "
        "satisfied, and 82 % of all pairs are answered (98 % at the end)."
    )
    numbers = dict(page.bridge.status)
    assert (numbers["ideal accuracy"], numbers["RQI"], numbers["accuracy"]) == (
        "98.18 %",
        "0.0000",
        "81.82 %",
    )


def test_both_starts_have_their_curves():
    view = followed(opened(PARTICLES), "two starts, one law", 10)
    for curves, name, column in (
        (view._curves.ratio, "circle_ratio", "ratio"),
        (view._curves.imperfections, "imperfections", "imperfections"),
    ):
        beside = curves._beside.data
        np.testing.assert_array_equal(beside["step"], view._twin.history.steps)
        np.testing.assert_array_equal(beside[column], view._twin.history[name])
        assert curves.figure.legend[0].visible
        labels = [item.label.value for item in curves.figure.legend[0].items]
        assert labels == ["first start", "second start"]
    axes = drawn(view.film())
    for name in ("circle ratio", "grid imperfections"):
        curves = {line.get_label(): line.get_ydata() for line in axes[name].lines}
        assert {"first start", "second start"} <= set(curves)
        kept = view._twin.trajectory().observables[name.replace(" ", "_")][0]
        np.testing.assert_array_equal(curves["second start"], kept)
    view.restore({})
    view.show()
    assert not view._curves.ratio.figure.legend[0].visible
    assert len(view._curves.ratio._beside.data["step"]) == 0


def test_the_map_of_the_classifier_fills_its_axes_in_every_frame():
    page = opened(NETWORKS)
    view = page.view
    for _ in range(60):
        view.advance(20)
        view.show()
    film = view.film()
    for frame in (0, 1, film.frames // 2, -1):
        ax = drawn(film, frame)["embedding sums"]
        (image,) = ax.images
        assert image.get_visible()
        left, right, bottom, top = image.get_extent()
        assert left <= ax.get_xlim()[0] < ax.get_xlim()[1] <= right
        assert bottom <= ax.get_ylim()[0] < ax.get_ylim()[1] <= top


# -- scripts, help ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (PARTICLES, ("circle ratio", "imperfections")),
        (NETWORKS, ("train accuracy", "validation accuracy")),
        (THEORY, ("ground states", "grokking rate", "ideal accuracy", "RQI", "accuracy")),
        (CIRCLES, ("survivors", "rollout R²")),
        (NEURONS, ("train loss", "train accuracy", "purity")),
    ],
)
def test_a_script_prints_what_the_page_shows(kind, names):
    page = opened(kind)
    view = page.view
    view.advance(3)
    if kind is CIRCLES:
        view._fitted = view._run.fit("least squares", last=100)
    view.show()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(view.python(), {})
    shown = view.status()
    for name in names:
        for word in shown[name].replace(" %", "%").split():
            assert word in said.getvalue(), (name, said.getvalue())


def test_the_help_says_that_files_are_optional(capsys):
    with pytest.raises(SystemExit):
        main(["explore", "--help"])
    said = capsys.readouterr().out
    assert "[FILE|'PATTERN' ...]" in said.splitlines()[0]
    assert "(default: none)" in said


def test_a_new_page_has_a_sentence_before_its_session_begins(tmp_path):
    for paths, words in (([], "Loading the first figures …"), ([tmp_path / "mine.h5"], "Opening mine.h5 …")):
        document = Document()
        page_of(VIEWS, paths, Uploads(tmp_path))(document)
        given = document.template_variables
        body = document.template.blocks["contents"](
            document.template.new_context(given | {"roots": given, "embed": str})
        )
        html = "".join(body)
        assert f'<p id="verdict">{words}</p>' in html
        assert f'data-plays="{0 if paths else 1}" disabled>Play</button>' in html


# -- controls ---------------------------------------------------------------------------------------------


def test_each_control_of_a_network_changes_the_network(monkeypatch):
    view = opened(NETWORKS).view
    for field, value in ((view._tokens, 11), (view._hidden, 40), (view._dim, 3), (view._seed, 5)):
        before = view._run
        field.value = value
        assert view._run is not before
    model = view._run.model
    assert (model.tokens, model.hidden, model.dim) == (11, 40, 3)
    looked, look = [], type(view._run).look_again
    monkeypatch.setattr(
        type(view._run), "look_again", lambda run, bounds: looked.append(bounds) or look(run, bounds)
    )
    view.advance(1)
    view.show()
    before = len(looked)
    view.show()
    assert len(looked) == before, "nothing has changed"
    view._sums.figure.y_range.update(start=-50.0, end=50.0)
    view.show()
    assert looked[-1][2:] == (-50.0, 50.0), "the figure has zoomed"


def test_the_second_start_has_a_seed_of_its_own_while_it_is_shown():
    view = opened(PARTICLES).view
    assert not view._twin_seed.visible
    view._with_twin.active = True
    assert view._twin_seed.visible
    begun = view._twin.positions.copy()
    view._twin_seed.value = 8
    assert not np.allclose(view._twin.positions, begun)
    view._with_twin.active = False
    assert not view._twin_seed.visible


def test_a_fit_that_is_shown_marks_the_survivors_of_the_rule():
    page = opened(CIRCLES)
    view = page.view
    view._deliver(view._run, view._run.fit("least squares", first=0, last=200))
    marked = view._coefficients._marks
    for limit in (2.0, 1.0):
        view._limit.value = limit
        survivors = view._run.survivors(factor=limit)
        assert marked.data["x"][: len(survivors)] == survivors
        assert len(marked.data["x"]) == 2 * len(survivors)


def test_after_a_reset_trails_begin_again(monkeypatch):
    """The page lets trails grow between frames; where a figure begins, there are none."""
    view, begun = opened(PARTICLES).view, []
    begin = view._particles.begin
    monkeypatch.setattr(
        view._particles, "begin", lambda points, *order: begun.append(points) or begin(points, *order)
    )
    view.advance(5)
    view.show()
    assert begun == []
    view.reset()
    view.show()
    assert len(begun) == 1
    np.testing.assert_allclose(begun[0], view._run.positions)
