"""Bounds of what a page, a link and a film may ask for: what is taken, and the sentence on what is not."""

import numpy as np
import pytest
from edges import taken_and_refused
from matplotlib.figure import Figure
from PIL import Image

from analysis.plots.palette import class_colors
from grokphys.explorer import links
from grokphys.explorer.films import export, parts
from grokphys.explorer.runs.starts import given, start
from grokphys.explorer.runs.training_set import TrainingSet


class Film:
    """As many frames as a film may have."""

    frames = 9


def moves(*those, step=5):
    return links.moved({"moves": list(those), "step": step}, 3, 2)


PLACE = (
    "moves must be at most 100 coordinates in all, as [step, token, [2 numbers]] with steps from 0 to 5 in "
    "order and tokens below 3, got "
)
BOUNDS = [
    # what is taken, what is not, and why
    (lambda n: links.replayed({"step": n}), 20_000, 20_001,
     "step must be at most 20000 in a link, got 20001"),
    (lambda n: links.replayed({"step": n}), 0, -1, "step must be at least 0, got -1"),
    (lambda n: moves([n, 0, [1, 2]]), 5, 6, PLACE + "[[6, 0, [1, 2]]]"),
    (lambda n: moves([n, 0, [1, 2]]), 0, -1, PLACE + "[[-1, 0, [1, 2]]]"),
    (lambda n: moves([0, n, [1, 2]]), 2, 3, PLACE + "[[0, 3, [1, 2]]]"),
    (lambda n: moves([0, n, [1, 2]]), 0, -1, PLACE + "[[0, -1, [1, 2]]]"),
    (lambda x: moves([0, 0, x]), [1, 2.5], [1], PLACE + "[[0, 0, [1]]]"),
    (lambda x: moves([0, 0, [1, x]]), 2, "2", PLACE + '[[0, 0, [1, "2"]]]'),
    (lambda x: moves([0, x, [1, 2]]), 1, 1.5, PLACE + "[[0, 1.5, [1, 2]]]"),
    (lambda n: moves([n, 0, [1, 2]], [3, 0, [1, 2]]), 3, 4, PLACE + "[[4, 0, [1, 2]], [3, 0, [1, 2]]]"),
    (lambda n: moves(*[[0, 0, [1, 2]]] * n), 50, 51, PLACE + ("[0, 0, [1, 2]], " * 9).join("[]")[:77] + "…"),
    (links.read, '{"view":"a"}', '{"speed":1}',
     """link must be one that this page has made, got '{"speed":1}'"""),
    (links.read, '{"view":"a","state":{}}', '{"view":"a","state":3}',
     """link must be one that this page has made, got '{"view":"a","state":3}'"""),
    (links.read, "%7B%22view%22:%22a%22%7D", "{", "link must be one that this page has made, got '{'"),
    (links.read, '{"view":"' + 68 * "a" + '"}', "a" * 80,
     f"link must be one that this page has made, got '{77 * 'a'}…'"),
    (lambda n: start("circle", 5, 2, n), 0, -1, "seed must be at least 0, got -1"),
    (lambda x: start("grid", 5, 2, 0, x), 0, -1, "noise must be a finite number of at least 0, got -1"),
    (lambda x: start(x, 5, 2, 0), "normal", "ring",
     "start must be one of 'normal', 'circle', 'grid', got 'ring'"),
    (lambda n: given(np.zeros((n, 1)), ()), 3, 2,
     "start must have the shape (tokens, dim) with at least 3 tokens and 1 dimension, got (2, 1)"),
    (lambda n: given(np.zeros((3, n)), ()), 1, 0,
     "start must have the shape (tokens, dim) with at least 3 tokens and 1 dimension, got (3, 0)"),
    (lambda x: given(x, ()), np.zeros((3, 1)), np.zeros(3),
     "start must have the shape (tokens, dim) with at least 3 tokens and 1 dimension, got (3,)"),
    (TrainingSet.drawn, 3, 2, "tokens must be at least 3, got 2"),
    (TrainingSet.drawn, 31, 32, "tokens must be at most 31 in the explorer, got 32"),
    (lambda n: TrainingSet.drawn(5, dim=n), 1, 0, "dim must be at least 1, got 0"),
    (lambda n: TrainingSet.drawn(5, dim=n), 2, 3, "dim must be 1 or 2 in the explorer, got 3"),
    (lambda n: TrainingSet.drawn(5, size=n), 0, -1, "size must be at least 0, got -1"),
    (lambda n: TrainingSet.drawn(5, size=n), 15, 16,
     "size must be at most 15, the number of samples, got 16"),
    (lambda n: TrainingSet.drawn(5, seed=n), 0, -1,
     "seed must be at least 0, got -1"),
    (lambda x: export._chosen(Film(), x, 3), 50, 50.1, "fps must be a finite number from 0.01 to 50, "
     "got 50.1"),
    (lambda x: export._chosen(Film(), x, 3), 0.01, 0.0099, "fps must be a finite number from 0.01 to 50, "
     "got 0.0099"),
    (lambda n: export._chosen(Film(), 9, n), 1, 0, "longest must be at least 1, got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "taken", "refused", "sentence"), BOUNDS, ids=range(len(BOUNDS)))
def test_the_last_value_is_taken_and_the_next_one_refused(call, taken, refused, sentence):
    taken_and_refused(call, taken, refused, sentence)


def test_a_link_says_again_what_was_written_into_it():
    state = {"step": 7, "name": "ä b", "moves": [[0, 1, [0.5, -1]]]}
    assert links.read(links.written("particles", 4, state)) == ("particles", 4, state)
    assert links.read('{"view":"theory"}') == ("theory", 1, {})
    assert links.moved(state, 3, 2) == [(0, 1, [0.5, -1.0])]
    assert links.moved({}, 3, 2) == []
    assert links.replayed({}) == 0


def test_four_fifths_of_the_pairs_are_drawn_unless_a_size_is_given():
    for tokens, pairs in ((5, 12), (6, 17), (7, 22)):
        assert TrainingSet.drawn(tokens).measures.pairs == pairs
    assert TrainingSet.drawn(5, size=0).theory is None
    assert TrainingSet.drawn(5).filled(trained=True).measures.pairs == 15


def test_tokens_of_a_film_are_numbered_up_to_a_count_and_joined_only_if_asked():
    rng = np.random.default_rng(0)
    for count, numbered in ((parts.NUMBERED, True), (parts.NUMBERED + 1, False)):
        paths, ax = rng.normal(size=(3, count, 2)), Figure().subplots()
        parts.tokens(ax, paths)(2)
        trail, discs, *names = ax.collections
        assert not ax.lines, "no cycle was given"
        assert len(names) == numbered
        for shown in (discs, *names):
            np.testing.assert_allclose(shown.get_offsets(), paths[2])
        assert discs.get_sizes().tolist() == [110 if numbered else 34]
        np.testing.assert_allclose(discs.get_facecolors(), class_colors(count))
        segments = np.array(trail.get_segments())
        np.testing.assert_allclose(segments[-count:], np.stack([paths[1], paths[2]], axis=1))
        np.testing.assert_allclose(segments[0], [paths[0, 0]] * 2, err_msg="before the start it rests there")
        assert len(segments) == parts.TRAIL * count
        alpha = trail.get_colors()[:, 3].reshape(parts.TRAIL, count)
        np.testing.assert_allclose(alpha[:, 0], 0.3 * np.arange(1, parts.TRAIL + 1) / parts.TRAIL)
    order, cycle = np.array([2, 0, 1]), np.array([0, 2, 1, 0])
    paths, ax = rng.normal(size=(2, 3, 2)), Figure().subplots()
    parts.tokens(ax, paths, order=order, cycle=cycle)(1)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), paths[1, cycle])
    np.testing.assert_allclose(ax.collections[1].get_facecolors(), class_colors(3)[order])


def test_a_palette_keeps_the_colors_of_areas_and_none_that_are_nearly_the_same():
    def palette_of(*sheets):
        found = export._palette([Image.fromarray(sheet) for sheet in sheets]).getpalette()
        return np.reshape(found, (-1, 3))

    colors = np.array([(12 * (k % 20), 12 * (k // 20), 40) for k in range(export.AREAS)], np.uint8)
    lines = np.array([(12 * (k % 20), 12 * (k // 20), 200) for k in range(60)], np.uint8)
    blocks = np.kron(colors.reshape(16, 11, 3), np.ones((2, 2, 1), np.uint8))  # each has one point inside
    for stripes in (np.tile(lines, (32, 1, 1)), np.tile(lines[:32, None], (1, 60, 1))):
        sheet = np.concatenate([blocks, stripes], axis=1)  # lines have more points, but none inside
        found = palette_of(sheet)
        assert len(found) <= 256
        assert {tuple(color) for color in colors} <= {tuple(color) for color in found}
        apart = np.abs(found[:, None].astype(int) - found).max(axis=2)
        assert apart[~np.eye(len(found), dtype=bool)].min() >= export.NEAR
    frequent = np.zeros((6, 30, 3), np.uint8)
    frequent[:, 10:20], frequent[:, 20:23], frequent[:, 23:] = 7, 100, 107
    frequent[0, 29] = 255
    found = {tuple(color) for color in palette_of(frequent, frequent[::-1])}
    assert {(0, 0, 0), (107, 107, 107)} <= found, "of two that are nearly the same, the more frequent one"
    assert not {(7, 7, 7), (100, 100, 100)} & found
