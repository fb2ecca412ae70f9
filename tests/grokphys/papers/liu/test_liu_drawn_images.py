"""What Liu's figures of images and of small systems show, read back from the axes."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from pictures import lines, title

import physics
from analysis.phases.classification import PHASES
from analysis.plots.palette import class_colors, graded_colors
from analysis.stats.intervals import proportion
from grokphys.papers.liu import figures_02_19 as pictures
from grokphys.papers.liu import figures_08_20 as images
from grokphys.papers.liu import figures_09_to_11 as chains
from grokphys.papers.liu import figures_12_17_18 as small
from grokphys.papers.recipe import Run

inf = np.inf
C, G, M, X = PHASES


def cloud(ax, n=0):
    return np.asarray(ax.collections[n].get_offsets())


# -- images and the plane ---------------------------------------------------------------------------------


def test_figure_8_shows_both_accuracies_of_each_network_after_the_start(monkeypatch):
    rng = np.random.default_rng(2)
    rows = {"network": np.repeat([0, 1], 4), "step": np.tile([0, 1, 10, 99], 2)}
    rows |= {name: rng.uniform(size=8) for name in images.THRESHOLDS}
    monkeypatch.setattr(images, "train_images", lambda run, curves: {"curves": rows} if curves else {})
    (ax,) = images.grokking(Run(SimpleNamespace(images=[50]), "quick")).figures["liu-8"].get_axes()
    drawn = [line.get_xydata().T.tolist() for line in ax.lines[:4]]
    expected = [
        [[1, 10, 99], rows[name][4 * k + 1 : 4 * k + 4].tolist()]
        for k in (0, 1)
        for name in images.THRESHOLDS
    ]
    assert drawn == expected
    assert list(lines(ax)) == ["train", "validation", "chance"]


def test_figure_20_shows_both_steps_over_the_size_of_the_set(monkeypatch):
    rows = {
        "images": np.array([100, 100, 300, 300]),
        "train_steps": np.array([10.0, inf, 20, 30]),
        "validation_steps": np.array([inf, inf, 200, inf]),
    }
    monkeypatch.setattr(images, "train_images", lambda run, curves: {"networks": rows})
    (ax,) = images.sizes(Run(SimpleNamespace(steps=999, seeds=2), "quick")).figures["liu-20"].get_axes()
    assert lines(ax) == {
        "to 90 % in training": ([100, 300, 300], [10, 20, 30]),
        "never 90 % in training": ([100], [999]),
        "to 60 % in validation": ([300], [200]),
        "never 60 % in validation": ([100, 100, 300], [999] * 3),
    }
    done = {**rows, "train_steps": np.full(4, 10.0), "validation_steps": np.full(4, 200.0)}
    (ax,) = images._draw_sizes(SimpleNamespace(steps=999, seeds=2), {"networks": done})["liu-20"].get_axes()
    assert list(lines(ax)) == ["to 90 % in training", "to 60 % in validation"]
    gap = images._less_decay(
        {"networks": {"row": np.array([0, 1, 4, 5]), "phase": np.array([C, C, G, M])}}, 0.95
    )
    assert gap.estimate == 0.5 - 4


def test_figure_2_shows_the_worst_and_the_best_network_on_the_classes_of_the_decoder(monkeypatch):
    rng = np.random.default_rng(4)

    def train_planar(setting, operation):
        return {
            "validation_accuracy": rng.uniform(size=3),
            "train_accuracy": rng.uniform(size=3),
            "structure": rng.uniform(size=3),
            "learning_rate": np.geomspace(1e-4, 1e-2, 3),
            "E": rng.normal(size=(2, 5, 2)),
            "classes": rng.integers(0, 5, (2, 4, 4)),
            "frame": np.array([[0.0, 1, 2, 3], [4, 5, 6, 7]]),
            "shown": np.array([0.25, 1.0]),
        }

    parts = {}
    monkeypatch.setattr(
        pictures, "_train_planar", lambda setting, n: parts.setdefault(n, train_planar(setting, n))
    )
    made = pictures.planar(Run(pictures.Planar((8,), 3, 10, 4, 5), "quick"))
    rows = made.columns()["networks"]
    assert rows["operation"].tolist() == ["addition"] * 3 + ["modular addition"] * 3
    axes = np.reshape(made.figures["liu-2"].get_axes(), (2, 2))
    for line, (name, part) in zip(axes, parts.items(), strict=True):
        np.testing.assert_allclose(rows["structure"][rows["operation"] == name], part["structure"])
        colors = class_colors(5) if "modular" in name else graded_colors(9)
        for k, ax in enumerate(line):
            assert title(ax) == f"{name}: validation accuracy {(25, 100)[k]} %"
            np.testing.assert_allclose(cloud(ax), part["E"][k])
            (image,) = ax.images
            assert list(image.get_extent()) == part["frame"][k].tolist()
            assert image.origin == "lower"
            expected = 0.45 + 0.55 * np.array([tuple(c)[:3] for c in colors])[part["classes"][k]]
            np.testing.assert_allclose(np.asarray(image.get_array()), expected, atol=1 / 255)


def test_the_worst_and_the_best_planar_network_are_shown_about_their_middle():
    setting = pictures.Planar((8,), 3, 10, 5, 5)
    part = pictures._train_planar(setting, "modular addition")
    accuracy = part["validation_accuracy"]
    assert part["shown"].tolist() == [accuracy.min(), accuracy.max()]
    for E, frame in zip(part["E"], part["frame"], strict=True):
        reach = 1.15 * np.abs(E - E.mean(axis=0)).max()
        middle = E.mean(axis=0)
        np.testing.assert_allclose(
            frame, [middle[0] - reach, middle[0] + reach, middle[1] - reach, middle[1] + reach]
        )


def test_the_effective_loss_of_images_is_that_of_pairs(monkeypatch):
    """After one step of Adam, each coordinate has moved by the rate against its slope of Eq. 32."""
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(10), 3)
    pixels = pictures.torch.as_tensor(rng.uniform(size=(30, 6)).astype(np.float32))
    path = pictures._descend(pictures.Collapse(1, 30, hidden=7, steps=1, rate=1e-3), pixels, labels, 5)
    assert path.shape == (2, 30, 2)
    f = path[0]
    same = labels[:, None] == labels
    squares, norm = np.sum((f[:, None] - f) ** 2 * same[..., None]) / 2, np.sum(f**2)
    slope = 2 * np.einsum("ij,ijk->ik", same, f[:, None] - f) / norm - 2 * f * squares / norm**2
    clear = np.abs(slope) > 1e-6
    assert clear.mean() > 0.9
    np.testing.assert_allclose((path[1] - f)[clear], -1e-3 * np.sign(slope)[clear], rtol=1e-2)


def test_figure_19_shows_embeddings_at_the_start_halfway_and_at_the_end(monkeypatch):
    rng = np.random.default_rng(6)
    data = SimpleNamespace(labels=np.tile(np.arange(10), 5), pixels=rng.uniform(size=(50, 4)))
    paths = []

    def descend(setting, pixels, labels, seed):
        paths.append((rng.normal(size=(11, len(labels), 2)), labels, seed))
        return paths[-1][0]

    monkeypatch.setattr(pictures, "load_images", lambda name, count: data)
    monkeypatch.setattr(pictures, "_descend", descend)
    made = pictures.collapse(Run(pictures.Collapse(2, 50, steps=10), "quick"))
    assert [seed for *_, seed in paths] == [1900, 1901]
    rows = made.columns()["encoders"]
    for n, (path, labels, _) in enumerate(paths):
        for when, frame in (("start", 0), ("end", 10)):
            within, between, norm = pictures._variances(path[frame], labels)
            assert [rows[f"{name}_{when}"][n] for name in ("within", "between", "norm")] == [
                within,
                between,
                norm,
            ]
    path, labels, _ = paths[0]
    for ax, frame in zip(made.figures["liu-19"].get_axes(), (0, 5, 10), strict=True):
        assert title(ax) == f"step {frame}"
        np.testing.assert_allclose(cloud(ax), path[frame])
        for digit, text in enumerate(ax.texts):
            assert text.get_text() == str(digit)
            np.testing.assert_allclose(text.xy, np.median(path[frame][labels == digit], axis=0))
    tables = {"encoders": rows}
    assert pictures._log_change("within")(tables, 0.95).estimate == pytest.approx(
        np.mean(rows["within_end"] / rows["within_start"])
    )


# -- small systems ----------------------------------------------------------------------------------------


def test_parallelograms_are_drawn_around_their_corners():
    E = np.random.default_rng(7).normal(size=(4, 2))
    ax = Figure().subplots()
    chains.show_parallelograms(E, [(0, 3, 1, 2)], "one", ax)
    # E_0 + E_3 = E_1 + E_2: 0 and 3 are opposite.
    np.testing.assert_allclose(ax.lines[0].get_xydata(), E[[0, 1, 3, 2, 0]])
    np.testing.assert_allclose(cloud(ax), E)
    assert [text.get_text() for text in ax.texts] == list("0123")
    assert ax.get_title() == "one"


def test_figure_9_counts_what_follows_and_which_sets_determine_all():
    made = chains.curriculum(Run((20, 21), "quick"))
    tables = made.columns()
    assert tables["stages"]["given"].tolist() == [4, 6, 8]
    whole = physics.EffectiveTheory(6).parallelogram_count
    for n, ax in enumerate(made.figures["liu-9"].get_axes()):
        given = (4, 6, 8)[n]
        own = {
            tuple(q)
            for q in zip(
                *(
                    tables["parallelograms"][k][tables["parallelograms"]["given"] == given].tolist()
                    for k in "ijmn"
                ),
                strict=True,
            )
        }
        known = physics.EffectiveTheory(6, pairs=sorted(set(chains.CURRICULUM[:given])))
        assert own == {tuple(q) for q in known.implied_parallelograms.tolist()}
        assert tables["stages"]["n_0"][n] == known.ground_state_dimension
        assert tables["stages"]["rqi_bound"][n] == pytest.approx(len(own) / whole)
        assert f"{len(own)}/{whole}" in title(ax)
        E = cloud(ax)
        for i, j, a, b in own:
            np.testing.assert_allclose(E[i] + E[j], E[a] + E[b], atol=1e-6)
    samples = physics.Operation(6).samples.tolist()
    without = [physics.EffectiveTheory(6, pairs=[q for q in samples if q != left]) for left in samples]
    determined = sum(len(theory.implied_parallelograms) == whole for theory in without)
    sets = tables["sets"]
    assert [sets[name].tolist() for name in ("size", "sets", "unique")] == [
        [20, 21],
        [21, 1],
        [determined, 1],
    ]
    assert chains._freedom(tables, 0.95).estimate == tables["stages"]["n_0"][2]


def test_figure_11_draws_an_arrow_to_each_set_with_one_equation_fewer():
    made = chains.hierarchy(Run(None, "quick"))
    rows = made.columns()["subsets"]
    assert sorted(rows["equations"].tolist()) == sorted(
        ["A1 A2 A3", "A1 A2", "A1 A3", "A2 A3", "A1", "A2", "A3", "none"]
    )
    free = dict(zip(rows["equations"].tolist(), rows["degrees_of_freedom"].tolist(), strict=True))
    assert [free[name] for name in ("none", "A1", "A2", "A3", "A1 A2 A3")] == [4, 3, 3, 3, 2]
    figure = made.figures["liu-11"]
    assert len(figure.get_axes()) == len(set(rows["implied"].tolist()))
    heights = {ax.get_position().y0 for ax in figure.get_axes()}
    assert len(heights) == 3
    for arrow in figure.artists:
        (_, y), (_, v) = arrow._posA_posB
        assert y > v, "from the more determined down to the freer"
    assert len(figure.artists) == 6


def test_figure_12_groups_representations_by_their_equations_with_0_on_the_left():
    E = np.array(
        [[-1.5, -0.5, 0.5, 1.5], [1.5, 0.5, -0.5, -1.5], [-1.0, 0.2, 0.3, 1.2], [1.3, -0.9, 0.1, -0.5]]
    )
    rows = {f"E_{k}": E[:, k] for k in range(4)} | {
        "equations": np.array(["A1 A2 A3", "A1 A2 A3", "none", "A2"])
    }
    ax = Figure().subplots()
    small.show_representations(rows, ax)
    mirrored = np.where(E[:, :1] < E[:, 3:], E, -E)
    order, n, height = ([0, 1], [3], [2]), 0, 0.0
    for own in order:
        for token in range(4):
            np.testing.assert_allclose(cloud(ax, n)[:, 0], mirrored[own, token])
            np.testing.assert_allclose(cloud(ax, n)[:, 1], height + np.arange(len(own)))
            n += 1
        height += len(own) + 1
    assert [text.get_text() for text in ax.texts] == ["A1 A2 A3: 2", "A2: 1", "none: 1"]


def test_figure_17_shows_the_best_network_on_pairs_of_components():
    rng = np.random.default_rng(8)
    rows = {
        "network": np.repeat([0, 1], 6),
        "rqi": np.repeat([0.2, 0.9], 6),
        "element": np.tile(small.PERMUTATIONS, 2),
    }
    rows |= {f"PC{k}": rng.normal(size=12) for k in (1, 2, 3)}
    axes = small._draw_hexagon(SimpleNamespace(seeds=2), {"elements": rows})["liu-17"].get_axes()
    points = np.stack([rows[f"PC{k}"][6:] for k in (1, 2, 3)], axis=1)
    even = np.array([name in ("e", "(123)", "(132)") for name in small.PERMUTATIONS])
    for ax, plane in zip(axes, ([0, 1], [0, 2], [1, 2]), strict=True):
        drawn = {one.get_label(): np.asarray(one.get_offsets()) for one in ax.collections}
        np.testing.assert_allclose(drawn["even"], points[even][:, plane])
        np.testing.assert_allclose(drawn["odd"], points[~even][:, plane])
        assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(f"principal component {k + 1}" for k in plane)
        for text in ax.texts:
            for name in text.get_text().split("\n"):
                np.testing.assert_allclose(
                    text.xy, points[list(small.PERMUTATIONS).index(name), plane], atol=0.05
                )


@pytest.mark.parametrize(
    ("stretch", "turned", "hexagon"), [(1.0, 0.0, True), (1.0, 40.0, False), (2.5, 0.0, False)]
)
def test_hexagons_have_even_angles_and_radii(stretch, turned, hexagon):
    angle, radius = np.arange(6) * np.pi / 3, np.ones(6)
    angle[0] += np.radians(turned)
    radius[2:4] *= stretch  # neighbors, so that the middle moves
    radius[5], radius[0] = radius[5] * stretch, radius[0] * stretch
    points = radius * np.exp(1j * angle)
    rows = {
        "network": np.repeat([0, 1], 6),
        "rqi": np.repeat([0.96, 0.95], 6),
        "PC1": np.tile(points.real, 2),
        "PC3": np.tile(points.imag, 2),
    }
    assert small._hexagons({"elements": rows}, 0.95) == proportion(int(hexagon), 1)
