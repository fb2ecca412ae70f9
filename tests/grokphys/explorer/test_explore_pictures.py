"""Pictures of the explorer: what a PNG shows of the screen."""

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from PIL import Image

pytest.importorskip("bokeh")

from bokeh.document import Document

from grokphys.explorer import session
from grokphys.explorer.films import export, parts
from grokphys.explorer.plots import plane
from grokphys.explorer.views.tabs import VIEWS

CIRCLES = VIEWS[3]


def opened(kind):
    return session.Session(Document(), [kind])


PLANES = {"tokens", "sums", "embedding", "embedding sums", "particles", "particles sums", "phases"}
"""Axes of films whose limits do not follow from the data."""


@pytest.mark.parametrize("kind", VIEWS, ids=lambda kind: kind.slug)
def test_a_picture_has_the_limits_and_the_numbers_of_the_screen(kind):
    kind.prepare()
    view = opened(kind).view
    view.advance(2)
    view.show()
    assert all(None not in view.still().limits[name] for name in view.figures if name in PLANES)
    for k, shown in enumerate(view.figures.values()):
        shown.x_range.update(start=-2.0 - k, end=9.0 + k) if not shown.tags else shown.y_range.update(end=3.0)
        shown.y_range.update(start=0.25, end=4.0 + k) if not shown.tags else None
    film, drawn = view.still(), []
    if kind is CIRCLES:  # a logarithmic axis has no limit below 0
        film = replace(film, limits={**film.limits, "signals": (1.0, 9.0, 0.25, 4.0)})

    def begin(figure):
        drawn.append(figure)
        return film.begin(figure)

    picture = Image.open(io.BytesIO(export.png(replace(film, begin=begin), dpi=40)))
    assert picture.format == "PNG"
    axes = {ax.get_label(): ax for ax in drawn[0].axes}
    assert set(film.limits) == set(view.figures) <= set(axes)
    for name, limits in film.limits.items():
        np.testing.assert_allclose([*axes[name].get_xlim(), *axes[name].get_ylim()], limits, err_msg=name)
    words = drawn[0].get_supxlabel().replace("\n", " ")
    assert view.verdict()[:40].split("\n")[0] in words
    for name, value in view.status().items():
        assert name.split()[-1] in words
        assert value.split()[-1] in words


def test_a_picture_of_particles_holds_the_second_start_and_the_motion():
    view = opened(VIEWS[0]).view
    view.restore({"twin": True, "twin_seed": 7, "arrows": True})
    laws = [view._run.system]
    view.advance(4)
    view._law["alignment"].value = 0.0
    laws.append(view._run.system)
    view.advance(3)
    view.show()
    film, figure, positions = view.still(), Figure(), view._run.positions
    assert set(film.limits) == set(view.figures) >= {"second start"}
    move = film.begin(figure)
    axes = {ax.get_label(): ax for ax in figure.axes}
    move(film.shown)
    places = axes["second start"].collections[1].get_offsets()
    np.testing.assert_allclose(places, view._twin.positions)
    (drawn,) = (part for part in axes["tokens"].collections if isinstance(part, Quiver))
    np.testing.assert_allclose(drawn.get_offsets(), positions)
    for frame, law in ((0, laws[0]), (len(view._run.history) - 1, laws[1])):
        move(frame)
        shown, found = np.stack([drawn.U, drawn.V], axis=1), view._run.history["positions"][frame]
        pulls = law.velocity(found[None])[0]
        np.testing.assert_allclose(
            shown / np.abs(shown).max(), pulls / np.abs(pulls).max(), rtol=1e-9, err_msg=str(frame)
        )
    view.restore({})
    assert "second start" not in view.still().limits


def test_classes_have_the_same_marks_on_the_page_and_in_films():
    drawn = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "inverted_triangle": "v"}
    assert "".join(drawn[marker] for marker in plane.MARKERS) == parts.MARKERS
