"""What the view of the effective theory shows and says, recomputed from the training set."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import drawn, opened, put

from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.training_set import FRAMES, TrainingSet
from grokphys.explorer.views import theory
from grokphys.explorer.views import view as views
from physics.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:Widget.name is deprecated:PendingDeprecationWarning")


@pytest.fixture(scope="module")
def page():
    views.prepared(theory.TheoryView)
    return opened(theory.TheoryView)


@pytest.fixture
def view(page):
    page.view.restore({"tokens": 5, "size": 11})
    return page.view


def way(right, up):
    return next(name for name, at in theory.WAYS.items() if at == (right, up))


def test_curves_are_those_of_the_flow_with_a_line_at_the_frame(view):
    view.advance(40)
    view.show()
    chosen = view._chosen
    for curves, expected in (
        (view._embedding, chosen.embeddings[:, :, 0].T),
        (view._quality, [chosen.quality, chosen.accuracy]),
    ):
        np.testing.assert_array_equal(curves._source.data["ys"], expected)
        assert all(np.array_equal(xs, chosen.times) for xs in curves._source.data["xs"])
        assert curves._now.location == chosen.times[40]
    assert view._quality._source.data["name"] == ("RQI", "accuracy")
    said, found = view.status(), chosen.measures
    assert (said["RQI"], said["accuracy"]) == (
        f"{chosen.quality[40]:.4f}",
        f"{100 * chosen.accuracy[40]:.2f} %",
    )
    assert view.verdict() == verdicts.flow(
        found.pairs,
        found.samples,
        found.ground_state_dimension,
        found.ideal_accuracy,
        chosen.quality[40],
        chosen.accuracy[40],
    )


def test_a_frame_is_shown_at_most_once_and_never_beyond_the_last(view):
    view._go(30)
    assert (view._frame, view.begun, view.finished) == (30, True, False)
    view._go(FRAMES + 5)
    assert (view._frame, view.finished) == (FRAMES - 1, True)
    shown = []
    view.show, show = lambda: shown.append(view._frame), view.show
    view._go(FRAMES - 1)
    view._go(3)
    view.show = show
    assert shown == [3]
    view.reset()
    assert (view._frame, view.begun) == (0, False)


def test_the_cursor_stays_on_the_grid_and_enter_takes_the_pair_under_it(view):
    view._cursor = (0, 0)
    for right, up, expected in (
        *((1, 0, (k, 0)) for k in (1, 2, 3, 4, 4)),
        *((0, 1, (4, k)) for k in (1, 2, 3, 4, 4)),
        (-1, 0, (3, 4)),
        (0, -1, (3, 3)),
    ):
        view.key(way(right, up))
        assert view._cursor == expected
    before = set(view._chosen.pairs)
    view.key("Enter")
    assert set(view._chosen.pairs) ^ before == {(3, 3)}
    view._cursor = (0, 0)
    view.key(way(-1, 0))
    view.key(way(0, -1))
    assert view._cursor == (0, 0)


def test_taps_within_the_grid_count_up_to_its_last_symbol(view):
    before = view._chosen
    for i, j in ((5, 0), (0, 5), (-1, 0), (0, -1)):
        view._click(i, j)
    assert view._chosen is before
    for i, j in ((4, 0), (0, 0)):
        view._click(i, j)
    assert set(view._chosen.pairs) ^ set(before.pairs) == {(0, 4), (0, 0)}


def test_chosen_pairs_stay_in_a_smaller_task_and_with_another_start(page, view):
    view._pick(view._chosen.filled(False))
    for pair in ((0, 1), (2, 2), (3, 4)):
        view._click(*pair)
    put(page, view._seed, 8)
    assert (view._chosen.pairs, view._chosen.seed) == ([(0, 1), (2, 2), (3, 4)], 8)
    put(page, view._tokens, 4)
    assert view._chosen.pairs == [(0, 1), (2, 2)], "(3, 4) names a symbol that is gone"
    assert (view._size.value, view._size.end) == (2, 10)
    put(page, view._tokens, 3)
    assert view._chosen.pairs == [(0, 1), (2, 2)]
    put(page, view._size, 4)
    assert len(view._chosen.pairs) == 4
    put(page, view._tokens, 6)
    assert len(view._chosen.pairs) == round(0.8 * 21), "pairs that were drawn are drawn again"


def test_a_link_holds_chosen_pairs_and_only_those(view):
    assert "pairs" not in view.state()
    view._click(0, 0)
    state = view.state()
    bits = [int(digit) for digit in f"{int(state['pairs'], 16):b}"]
    assert bits == [1, *map(int, view._chosen.mask)]
    pairs = view._chosen.pairs
    view.restore({})
    assert view._chosen.pairs != pairs
    view.restore(state)
    assert view._chosen.pairs == pairs
    assert view.state() == state


def test_a_link_opens_the_frame_of_its_time(view):
    view.restore({"tokens": 5, "size": 9, "seed": 6, "dim": 2, "time": 33})
    chosen = TrainingSet.drawn(5, size=9, dim=2, seed=6)
    assert view._chosen.pairs == chosen.pairs
    assert (view._frame, view._time.value, view.begun) == (33, 33, True)
    np.testing.assert_allclose(view._shape._tokens.points(), chosen.embeddings[33])
    corners = chosen.quadrilaterals(33)
    np.testing.assert_allclose(view._shape._shapes.data["xs"], corners[..., 0])
    assert view.film().shown == 33
    assert drawn(view.film(), 33)["tokens"].get_title().startswith(f"time {chosen.times[33]:.4g}: ")
    assert view.state() == {"tokens": 5, "size": 9, "seed": 6, "dim": 2, "time": 33}


def test_another_training_set_is_drawn_in_all_panels_at_the_frame_of_now(page, view):
    view.advance(50)
    view.show()
    for field, value in ((view._seed, 8), (view._dim, 2), (view._modulus, 5), (view._size, 7)):
        put(page, field, value)
        chosen, samples = view._chosen, view._chosen.operation.samples
        assert view._frame == 50
        points = np.pad(chosen.embeddings[50], ((0, 0), (0, 2 - chosen.dim)))
        np.testing.assert_allclose(view._shape._tokens.points(), points)
        filled = np.array(view._grid._cells.data["state"]) == "trained"
        assert [tuple(pair) for pair in samples[filled].tolist()] == chosen.pairs
        np.testing.assert_array_equal(view._embedding._source.data["ys"], chosen.embeddings[..., 0].T)
        np.testing.assert_array_equal(view._quality._source.data["ys"], [chosen.quality, chosen.accuracy])
        assert view._embedding._now.location == view._quality._now.location == chosen.times[50]
    assert (chosen.seed, chosen.dim, chosen.operation.modulus, len(chosen.pairs)) == (8, 2, 5, 7)
    assert chosen.pairs == TrainingSet.drawn(5, 5, size=7, dim=2, seed=8).pairs
    put(page, view._seed, 1)
    assert view._chosen.pairs == TrainingSet.drawn(5, 5, size=7, dim=2, seed=1).pairs, "of the same size"


def test_most_frames_leave_the_slider_and_a_replayed_end_begins_again(page, view):
    view.advance(4)
    view.show(whole=False)
    assert (view._frame, view._time.value) == (4, 0)
    assert view._embedding._now.location == view._chosen.times[4]
    view.show()
    assert view._time.value == 4
    view.advance(FRAMES)
    page._command("play", None)
    assert (view._frame, page.bridge.playing) == (0, 1), "from the start, because it was at its end"
    page._command("pause", None)


@pytest.mark.parametrize(
    "text", ["", "0", "ffff1", "1ffff", "-ffff", "0xffff", "ff ff", "\uff11ffff", None, 3]
)
def test_pairs_of_a_link_are_bits_after_a_one(view, text):
    for taken in ("ffff", "FFFF", "8000"):  # 15 pairs after the first bit
        view.restore({"tokens": 5, "size": 11, "pairs": taken})
        assert len(view._chosen.pairs) == (0 if taken == "8000" else 15)
    with pytest.raises(InputError) as said:
        view.restore({"tokens": 5, "size": 11, "pairs": text})
    assert str(said.value) == (
        f"pairs must be a 1 and then a bit for each of 15 pairs, in hexadecimal, got {str(text)!r}"
    )


def test_a_pair_that_is_refused_stays_to_be_corrected(page, view):
    before = view._chosen
    for text in ("3", "1 2 3", "a, b", "1, " + "2" * 10, "1, 5"):
        put(page, view._pair, text)
        assert page.bridge.message[1] == "error"
        assert (view._pair.value, view._chosen) == (text, before)
    put(page, view._pair, " 4 , 1 ")
    assert set(view._chosen.pairs) ^ set(before.pairs) == {(1, 4)}
    assert (view._pair.value, page.bridge.message[2]) == ("", "")


def test_a_flow_without_motion_lasts_about_a_unit_of_time_and_lines_join_plain_sums():
    still = TrainingSet.drawn(6).filled(False).toggled(2, 3)
    assert still.step_size == float(f"{1 / 120:.3g}")
    assert TrainingSet.drawn(6).filled(False).step_size == still.step_size
    moving = TrainingSet.drawn(6).filled(True)
    slowest = min(value for value in moving.theory.spectrum if value > 0)
    assert moving.step_size == float(f"{16 / slowest / 120:.3g}")
    assert moving.times.tolist() == [moving.step_size * k for k in range(FRAMES)]
    cyclic = TrainingSet.drawn(5, 5).filled(True)
    assert [line.sum(axis=1).tolist() for line in cyclic.diagonals] == [
        [total] * sum(1 for i, j in cyclic.operation.samples if i + j == total) for total in range(9)
    ]
    alone = TrainingSet.drawn(5, 5).filled(False).toggled(0, 0).toggled(1, 4).toggled(2, 4)
    assert [line.tolist() for line in alone.diagonals] == [[[0, 0]], [[1, 4]]]
    grid = theory.PairGrid(lambda i, j: None)
    grid.show(alone)
    assert grid._lines.data["xs"] == [], "one pair is no line"
    grid.show(alone.toggled(2, 3))
    assert [line.tolist() for line in grid._lines.data["xs"]] == [[1, 2]]
    assert [line.tolist() for line in grid._lines.data["ys"]] == [[4, 3]]
