"""What Liu's figures of transformers, images and planar embeddings are made of."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from grokphys.papers.liu import figure_07 as transformer
from grokphys.papers.liu import figures_01_21_22 as components
from grokphys.papers.liu import figures_02_19 as pictures
from grokphys.papers.liu import figures_08_20 as images
from grokphys.papers.recipe import RECIPES, Run
from nets import TokenTransformer

TINY = components.Projected(TokenTransformer(7, 12, depth=1, width=8), 2, 60, frames=4, counts=(2, 4))


def circle(p=29, frequency=5):
    angle = 2 * np.pi * frequency * np.arange(p) / p
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_a_circle_is_of_its_frequency():
    assert components.frequency_of(circle()) == 5
    assert components.share_of(circle(), 5) == pytest.approx(1)
    assert components.share_of(circle(), 4) == pytest.approx(0, abs=1e-12)
    # One axis of amplitude 3, and two of amplitude 2: the power of the first is larger, 9 and 8.
    both = 3 * circle(29, 4) * [1, 0] + 2 * circle(29, 7)
    assert components.frequency_of(both) == 4
    assert components.share_of(both, 4) == pytest.approx(9 / 17)
    ax = Figure().subplots()
    components.show_circle(circle(), 5, ax)
    assert [text.get_text() for text in ax.texts] == [str(token) for token in range(29)]
    chords = np.linalg.norm(np.diff(ax.lines[0].get_xydata(), axis=0), axis=1)
    np.testing.assert_allclose(chords, 2 * np.sin(np.pi / 29))  # a polygon that goes round once
    ax = Figure().subplots()
    components.show_circle(circle(53), 5, ax)
    assert not ax.texts, "so many numbers would hide each other"


def test_projected_on_all_components_an_embedding_is_itself():
    """With as many components as tokens, the accuracy is that of the embedding as it is."""
    whole = components.Projected(TINY.model, 1, 60, frames=4, counts=(2, 7))
    (one,) = components.followed(Run(whole, "quick"))
    actual = components.actual(one)
    assert len(actual) == len(one["steps"]) == len(one["positions"])
    for kind in ("final", "current"):
        last = (one["components"] == kind) & (one["n"] == 7) & (one["step"] == one["step"].max())
        assert one["validation_accuracy"][last] == pytest.approx(actual[-1])


def test_networks_of_one_seed_differ():
    first, second = components.followed(Run(TINY, "quick"))
    assert np.abs(first["positions"][0] - second["positions"][0]).max() > 0.1


def test_generalising_is_told_from_never():
    rows = RECIPES["liu-8"].make(Run(RECIPES["liu-8"].settings["quick"], "quick")).columns()["networks"]
    assert (np.isinf(rows["validation_steps"]) | (rows["validation_steps"] <= 200)).all()
    tables = {
        "networks": {
            "train_steps": np.array([10.0, 10.0, 10.0, np.inf]),
            "validation_steps": np.array([2000.0, 500.0, np.inf, np.inf]),
        }
    }
    assert images._much_later(tables, 0.95).estimate == 0.25


def test_dropout_rules_look_at_much_dropout_and_at_delays():
    tables = {
        "networks": {
            "dropout": np.repeat([0.0, 0.1, 0.3], 4),
            "train_steps": np.full(12, 100.0),
            "validation_steps": np.repeat([5000.0, 3000.0, 500.0], 4),
        }
    }
    assert transformer._under_a_thousand(tables, 0.95).estimate == 1
    assert transformer._comprehends(tables, 0.95).estimate == 1
    assert transformer._speeds_up(tables, 0.95).high < -0.2


def test_structure_is_a_line_or_a_circle():
    line = np.arange(11)[:, None] * np.array([1.0, -2.0]) + 3
    assert pictures.structure_of(line, "addition") == pytest.approx(1)
    assert pictures.structure_of(circle(11, 3), "modular addition") == pytest.approx(1)
    assert pictures.structure_of(circle(11, 3), "addition") < 0.3
    noise = np.random.default_rng(0).standard_normal((11, 2))
    assert pictures.structure_of(noise, "addition") < 0.5


def test_the_decoder_is_drawn_at_the_midpoint_of_two_embeddings():
    setting = pictures.Planar((20, 20), 2, 300, 101, 5)
    part = pictures._train_planar(setting, "addition")
    assert part["classes"].shape == (2, 101, 101)
    assert part["classes"].max() < 9
    assert part["shown"][0] <= part["shown"][1]
    E, (left, right, low, high) = part["E"][1], part["frame"][1]
    assert part["train_accuracy"][-1] == 1
    columns = np.rint(100 * (E[:, 0] - left) / (right - left)).astype(int)
    rows = np.rint(100 * (E[:, 1] - low) / (high - low)).astype(int)
    own = part["classes"][1, rows, columns]  # token i is the midpoint of the pair (i, i), of class 2 i
    assert (own == 2 * np.arange(5)).sum() >= 4


def test_images_of_a_class_collapse_and_classes_do_not():
    rows = RECIPES["liu-19"].make(Run(RECIPES["liu-19"].settings["quick"], "quick")).columns()["encoders"]
    assert (rows["within_end"] < 0.1 * rows["within_start"]).all()
    assert (rows["between_end"] > 0.5 * rows["between_start"]).all()


def test_the_variance_splits_into_within_and_between():
    labels = np.arange(20) % 10
    f = np.random.default_rng(1).standard_normal((20, 2))
    within, between, norm = pictures._variances(f, labels)
    assert within + between == pytest.approx(np.mean(np.sum((f - f.mean(axis=0)) ** 2, axis=1)))
    assert norm == pytest.approx(np.sum(f**2))


RATES = transformer.Dropouts(TokenTransformer(5, 8, depth=1, width=8), (0.0, 0.3), 3, 120, 3e-2)


def test_networks_of_each_rate_of_dropout_are_kept_on_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(transformer, "PIECE", (2, 10))
    made = transformer.dropout(Run(RATES, "paper", tmp_path, "liu-7b")).columns()["networks"]
    names = {path.stem for path in tmp_path.rglob("*.npz")}
    assert names == {
        f"dropout-{rate}-networks-{part}" for rate in ("0", "0.3") for part in ("0-to-1", "2-to-2")
    }
    again = transformer.dropout(Run(RATES, "paper", tmp_path, "liu-7b")).columns()["networks"]
    assert made["dropout"].tolist() == again["dropout"].tolist() == [0.0] * 3 + [0.3] * 3
    assert made["train_steps"].tolist() == again["train_steps"].tolist()
    assert max(made["train_steps"][:3]) < min(made["train_steps"][3:])


def test_networks_with_dropout_train_together_as_they_do_alone():
    assert transformer.PIECE[0] == 1 < transformer.PIECE[1]
    both = transformer._with_dropout(RATES, 1, range(1, 3))
    for k, number in enumerate((1, 2)):
        alone = transformer._with_dropout(RATES, 1, range(number, number + 1))
        assert {name: [each[k]] for name, each in both.items()} == {
            name: each.tolist() for name, each in alone.items()
        }
