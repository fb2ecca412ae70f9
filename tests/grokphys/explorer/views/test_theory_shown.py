"""What the view of the effective theory shows and says, recomputed from the training set."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import opened, put

from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.training_set import FRAMES
from grokphys.explorer.views import theory
from grokphys.explorer.views import view as views

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
