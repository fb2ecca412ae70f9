"""What films and pictures of the explorer draw, by their data."""

import io

import numpy as np
import pytest
from PIL import Image

import analysis
import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import drawn, followed, opened, put

from grokphys.explorer import films, plots
from grokphys.explorer.runs.circles import open_run
from grokphys.explorer.runs.particles import particle_film
from grokphys.explorer.views import VIEWS
from physics.examples import example_path

PARTICLES, NETWORKS, THEORY, CIRCLES, NEURONS = VIEWS


def offsets(ax):
    """Points of all scatters of axes, (n, 2)."""
    return np.concatenate(
        [np.asarray(points.get_offsets()) for points in ax.collections if len(points.get_offsets())]
    )


def rows(points):
    return sorted(np.asarray(points).round(9).tolist())


def test_particles_and_their_pair_sums():
    system = physics.ParticleSystem(9, 3, modulus=5)
    run = physics.simulate(system, steps=4, seed=1, observables=("circle_ratio", "grid_imperfections"))
    film = particle_film(run, operation=system.operation, plane="axes 1, 3")
    assert film.frames == 5
    axes = drawn(film, 2)
    E = run.positions[0, 2][:, [0, 2]]
    np.testing.assert_allclose(offsets(axes["particles"]), E)
    i, j = np.triu_indices(9)
    assert rows(offsets(axes["particles sums"])) == rows(E[i] + E[j])
    for points in axes["particles sums"].collections:  # one marker for each class modulo 5
        colors = {tuple(color) for color in points.get_facecolors()}
        assert len(colors) == 1
    ratio, limit, now = axes["circle_ratio"].lines
    np.testing.assert_allclose(ratio.get_ydata(), run.observables["circle_ratio"][0])
    assert (limit.get_ydata()[0], now.get_xdata()[0]) == (1.2, 2)


def test_a_second_start_is_drawn_beside_the_first_at_the_same_step():
    system = physics.ParticleSystem(7)
    first = physics.simulate(system, steps=6, seed=1, record=2, observables=("circle_ratio",))
    second = physics.simulate(system, steps=6, seed=2, observables=("circle_ratio",))
    axes = drawn(particle_film(first, second=second), 2)
    np.testing.assert_allclose(offsets(axes["second start"]), second.positions[0, 4])
    labels = [text.get_text() for text in axes["circle_ratio"].get_legend().get_texts()]
    assert labels == ["particles", "second start"]


def test_a_network_and_its_particles():
    view = followed(opened(NETWORKS), "a circle forms", 4)
    film, run = view.film(), view.run
    assert film.frames == len(run.history) == 5
    axes = drawn(film)
    np.testing.assert_allclose(offsets(axes["embedding"]), run.training.embeddings[0], rtol=1e-6)
    np.testing.assert_allclose(offsets(axes["particles"]), run.particles.positions)
    image = axes["embedding sums"].images[0]
    np.testing.assert_array_equal(image.get_array(), run.map)
    assert tuple(image.get_extent()) == run.bounds
    train = axes["loss"].lines[0]
    np.testing.assert_allclose(train.get_ydata(), run.history["train_loss"])
    run.advance(8)
    assert film.frames == 5, "a film keeps its data"
    assert drawn(film)["loss"].lines[-1].get_xdata()[0] == 32


@pytest.mark.parametrize("dim", [1, 2])
def test_a_training_set_and_its_flow(dim):
    page = opened(THEORY)
    put(page, tokens=6, size=14, dim=dim, seed=1)
    chosen = page.view.run
    axes = drawn(page.view.film(), 30)
    E = chosen.embeddings[30]
    points = next(p.get_offsets() for p in axes["tokens"].collections if len(p.get_offsets()) == 6)
    np.testing.assert_allclose(points[:, :dim], E)
    shapes = axes["tokens"].collections[0].get_paths()
    if dim == 1:
        assert len(shapes) == len(chosen.linked)
        i, j = chosen.operation.samples[chosen.linked[0]]
        assert sorted(shapes[0].vertices[[0, -1], 0]) == pytest.approx(sorted([E[i, 0], E[j, 0]]))
    else:
        assert len(shapes) == len(chosen.theory.parallelograms)
        i, j, m, n = chosen.theory.parallelograms[0]
        np.testing.assert_allclose(shapes[0].vertices[:4], E[[i, m, j, n]])
    np.testing.assert_allclose(axes["quality"].lines[0].get_ydata(), chosen.quality)
    assert axes["quality"].lines[-1].get_xdata()[0] == pytest.approx(chosen.times[30])
    for token, line in enumerate(axes["embeddings"].lines[:6]):
        np.testing.assert_allclose(line.get_ydata(), chosen.embeddings[:, token, 0])


def test_circles_and_signals():
    run = open_run(example_path("ding"))
    seen = run.seen("frequency 8")
    film = run.film(run.panels("frequency 8"))
    axes = drawn(film, 10)
    np.testing.assert_allclose(offsets(axes["tokens"]), seen.paths[10])
    _, signals = run.signals
    named = {line.get_label(): line for line in axes["signals"].lines}
    np.testing.assert_allclose(named["13"].get_ydata(), signals[:, 12])
    assert axes["signals"].lines[-1].get_xdata()[0] == run.steps[10] + 1
    assert axes["signals"].lines[-2].get_ydata()[0] == run.limit()
    E = run.embeddings[-1]
    assert run.limit() == pytest.approx(2 * analysis.fourier_signals(E).values.mean())


def test_a_picture_has_the_limits_of_the_screen_and_its_words():
    view = followed(opened(CIRCLES), "circles survive", 3)
    still = view.still()
    assert still.shown == view.frame == 3
    assert still.limits == {"tokens": plots.bounds(view.plots["tokens"].figure)}
    assert view.verdict() in still.caption
    assert f"step {view.run.steps[3]}" in still.caption
    made = Image.open(io.BytesIO(films.png(still, dpi=50)))
    assert made.size == (480, 230)
    other = films.png(films.Film(still.frames, still.draw, still.size, still.shown), dpi=50)
    assert np.asarray(made).tobytes() != np.asarray(Image.open(io.BytesIO(other))).tobytes()


@pytest.mark.parametrize("kind", VIEWS, ids=[kind.slug for kind in VIEWS])
def test_every_view_gives_a_film_and_a_picture(kind):
    view = followed(opened(kind), kind.presets[-1].name, 2)
    with Image.open(io.BytesIO(films.gif(view.film(), dpi=30, longest=2))) as film:
        assert film.n_frames == 2
        first = np.asarray(film.convert("RGB"))
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 10
    assert (first == 255).all(axis=2).mean() > 0.2, "the paper is white"
    with Image.open(io.BytesIO(films.png(view.still(), dpi=30))) as picture:
        assert min(picture.size) > 100
