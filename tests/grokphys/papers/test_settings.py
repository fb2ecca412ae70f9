"""What recipes train at the setting of the paper: the first training that each asks for, which is not run."""

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import nets
from grokphys.papers.catalogue import recipes
from grokphys.papers.liu.planes import Plane
from grokphys.papers.recipe import Run
from grokphys.papers.results import read_result
from nets.models import ConstantAttention, EmbeddingMLP, GroupDecoder, TokenTransformer, ToyAddition, TwoLayer
from nets.training import train

RECIPES = recipes()
DOCS = Path(__file__).parents[3] / "docs"
ARGUMENTS = inspect.signature(train)
NINE_TENTHS = {"train_accuracy": 0.9, "validation_accuracy": 0.9}

# Musat, Sections 3 and 4: N = 17, H = 32, a learning rate of 0.01, 2000 epochs, decays from 0 to 1.
MUSAT = {
    "model": ConstantAttention(17, 2, 32),
    "steps": 2000,
    "learning_rate": 0.01,
    "embedding_learning_rate": None,
}
# Ding, Appendix E: p = 59, d = 128, two layers of 100, a rate of 0.01, a decay of 0.5, 3×10⁴ steps.
DING = {"model": EmbeddingMLP(59, 128, (100, 100), activation="silu"), "steps": 30_000, "learning_rate": 0.01}
DING |= {
    "weight_decay": 0.5,
    "embedding_learning_rate": None,
    "train_fraction": 0.8,
    "freeze_embedding": False,
}
FITTED = DING | {"steps": 1000, "record": 1}  # Section 4.2: steps 0 to 1000
SMALL = DING | {"model": EmbeddingMLP(31, 64), "steps": 1500}
# Liu, Appendix G: p = 10, 1-200-200-30, a rate of 10⁻³ and no decay of the representation, 45 of 55 pairs.
LIU = {"model": ToyAddition(10, 1, (200, 200), 30), "embedding_learning_rate": 1e-3, "weight_decay": 0.0}
FRACTIONS = LIU | {"runs": 25, "steps": 10_000, "learning_rate": 1e-4, "train_fraction": 5 / 55}
FRACTIONS |= {"thresholds": {"quality": 0.95}, "track": 20, "delta": 0.1}
PLANE = LIU | {"steps": 100_000, "train_fraction": 45 / 55, "thresholds": NINE_TENTHS, "stop": "thresholds"}
PLANE |= {"runs": 30, "track": 50, "embedding_weight_decay": 0.0}
# Liu, Section 4.2: p = 53, 256 dimensions, decay of the decoder only, embeddings at 10⁻³.
TRANSFORMER = {"model": TokenTransformer(53, 256, 2), "steps": 20_000, "learning_rate": 1e-3}
TRANSFORMER |= {"embedding_learning_rate": 1e-3, "embedding_weight_decay": 0.0, "weight_decay": 1.0}
# Liu, Appendix J: depth 3 and width 200, 1000 images, large weights at the start, 60 % in validation.
IMAGES = {"runs": 10, "steps": 100_000, "weight_decay": 0.01, "learning_rate": 1e-3, "layer_scale": 8.0}
IMAGES |= {"thresholds": {"train_accuracy": 0.9, "validation_accuracy": 0.6}, "batch_size": 200}
# He et al., Section 2: p = 23, 512 neurons, a rate of 10⁻⁴, all pairs.
HE = {"model": TwoLayer(23, 512, "relu"), "runs": 5, "learning_rate": 1e-4, "weight_decay": 0.0}
HE |= {"train_fraction": 1.0, "steps": 5000, "betas": (0.9, 0.98)}

TRAINED = {
    "musat-3": MUSAT | {"runs": 100, "weight_decay": 1.0},
    "musat-4": MUSAT | {"runs": 100, "weight_decay": 1.0},
    "musat-6": MUSAT | {"runs": 100, "weight_decay": 0.0, "observables": ("weight_norm", "bias_norm")},
    "musat-D": MUSAT | {"runs": 200, "weight_decay": 1.0},
    "musat-F": MUSAT | {"runs": 14, "weight_decay": 0.6},
    "musat-G": MUSAT | {"model": ConstantAttention(17, 3, 32), "weight_decay": 1.0},
    "musat-table1": MUSAT | {"runs": 1000, "weight_decay": 0.0},
    "musat-start": MUSAT | {"runs": 500, "weight_decay": 0.0},
    "ding-2": DING | {"runs": 30},
    "ding-3": DING | {"runs": 30, "record": [30_000], "observables": ()},
    "ding-4": DING
    | {"runs": 10, "freeze_embedding": True, "steps": 10_000}
    | {"record": [500, 1000, 2000, 5000, 10_000]},
    "ding-5": DING | {"model": EmbeddingMLP(17, 128), "runs": 10},
    "ding-6": DING | {"runs": 50, "shared": ("embedding",)},
    "ding-6b": DING | {"runs": 56},
    "ding-6c": DING | {"runs": 20},
    "ding-7": DING | {"runs": 50, "shared": ("embedding",)},
    "ding-8": DING,
    "ding-9": FITTED,
    "ding-9a": FITTED | {"model": EmbeddingMLP(59, 16)},
    "ding-10": DING | {"runs": 20, "weight_decay": [0.0] * 20},
    "ding-11b": DING | {"runs": 100},
    "ding-12": DING | {"runs": 4, "record": "10:2000,100"},
    "ding-13": DING | {"observables": ("gradient",), "record": "5:1000,200"},
    "ding-14": DING | {"model": EmbeddingMLP(17, 128), "runs": 10},
    "ding-15": FITTED,
    "ding-16": FITTED,
    "ding-law": DING | {"runs": 50, "record": "10:1000,30000"},
    "ding-forward": FITTED,
    "compare-ode": FITTED | {"runs": 20},
    "octaves": DING | {"model": EmbeddingMLP(23, 48), "runs": 200, "steps": 1500},
    "predictability": SMALL | {"runs": 1},
    "selection": SMALL | {"runs": 40},
    "votes": SMALL,
    "liu-1": TRANSFORMER | {"runs": 1},
    "liu-2": LIU | {"model": ToyAddition(11, 2, kind="classification"), "runs": 40, "steps": 20_000},
    "liu-3": FRACTIONS,
    "liu-4b": FRACTIONS,
    "liu-4d": FRACTIONS | {"runs": 50, "steps": 5000, "train_fraction": 45 / 55},
    "liu-5b": FRACTIONS,
    "liu-6a": PLANE,
    "liu-seeds": PLANE,
    "liu-6b": PLANE,
    "liu-6c": PLANE | {"model": ToyAddition(10, 1, (200, 200), 30, "classification")},
    "liu-6d": PLANE | {"model": GroupDecoder(), "train_fraction": 24 / 36},
    "liu-7": TRANSFORMER | {"runs": 1, "record": 20, "thresholds": NINE_TENTHS},
    "liu-7b": TRANSFORMER
    | {"runs": 1, "weight_decay": 0.0, "stop": "thresholds", "thresholds": NINE_TENTHS, "track": 20},
    "liu-7c": TRANSFORMER | {"runs": 1, "steps": 100_000, "track": 50, "thresholds": NINE_TENTHS},
    "liu-8": IMAGES | {"stop": None, "track": 200, "record": "log:12"},
    "liu-8b": IMAGES | {"stop": "thresholds"},
    "liu-10": FRACTIONS,
    "liu-12": LIU | {"model": ToyAddition(4), "runs": 200, "learning_rate": 1e-2},
    "liu-13": PLANE,
    "liu-14": PLANE,
    "liu-15": PLANE | {"runs": 50},
    "liu-17": LIU | {"model": GroupDecoder(), "runs": 50, "train_fraction": 24 / 36},
    "liu-18": LIU
    | {"model": GroupDecoder(), "runs": 11, "train_fraction": 3 / 36, "learning_rate": 1e-5}
    | {"steps": 20_000, "delta": 4.5, "track": 20},
    "liu-20": IMAGES | {"batch_size": 50, "stop": "thresholds", "track": 200, "record": 100_000},
    "liu-21": TRANSFORMER | {"runs": 1},
    "liu-22": TRANSFORMER | {"runs": 1},
    "compare-theory": LIU | {"runs": 20, "steps": 10_000, "train_fraction": 15 / 55},
    "lottery": HE | {"model": TwoLayer(23, 512, "quadratic")},
    "he-neurons": HE,
    "he-grokking": HE | {"steps": 50_000, "train_fraction": 0.75, "weight_decay": 2.0},
    "he-waves": HE
    | {"model": TwoLayer(23, 512, "quadratic", "single_frequency", 0.02), "optimizer": "sgd"}
    | {"steps": 10_000, "learning_rate": 0.1, "betas": (0.9, 0.999)},
}
"""Arguments of the first training of each recipe, as the papers state them or as its setting says."""

AXES = {
    "liu-6a": ((1e-5, 1e-2), "embedding_learning_rate", (1e-5, 1e-2)),
    "liu-seeds": ((1e-5, 1e-2), "embedding_learning_rate", (1e-5, 1e-2)),
    "liu-6b": ((1e-5, 1e-2), "weight_decay", (0.0, 10.0)),
    "liu-6c": ((1e-5, 1e-2), "weight_decay", (0.0, 20.0)),
    "liu-6d": ((1e-5, 1e-2), "weight_decay", (0.0, 200.0)),
    "liu-7c": ((1e-6, 1e-2), "weight_decay", (0.02, 20.0)),
    "liu-8b": ((1e-6, 1e-1), "weight_decay", (1e-4, 10.0)),
    "liu-13": ((1e-4, 1e-2), "batch_size", (5, 45)),
    "liu-14": ((1e-4, 1e-2), "embedding_scale", (0.1, 10.0)),
    "liu-15": ((1e-4, 1e-2), "embedding_weight_decay", (0.0, 5.0)),
}
"""Ranges of the learning rate of the decoder and of the other axis, as the figures show them."""

CONTINUED = ("ding-6", "ding-7", "liu-4b", "liu-5b", "liu-10")
"""Results that an earlier run had kept networks for, before the seeds of kept networks were heard."""


class Heard(Exception):  # noqa: N818 - it ends the recipe, and is no error
    """A training that is not run."""


@pytest.fixture
def asked(monkeypatch):
    """Arguments of the first training that a recipe asks for; it ends there."""
    heard = {}

    def hear(*given, **options):
        bound = ARGUMENTS.bind(*given, **options)
        bound.apply_defaults()
        heard.update(bound.arguments)
        raise Heard

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("grokphys") and vars(module).get("train") is train:
            monkeypatch.setattr(module, "train", hear)
    monkeypatch.setattr(nets, "train", hear)
    return heard


@pytest.mark.parametrize("name", TRAINED)
def test_a_recipe_trains_what_the_paper_states(name, asked):
    setting = RECIPES[name].settings["paper"]
    expected = dict(TRAINED[name])
    with pytest.raises(Heard):
        RECIPES[name].make(Run(setting, "paper"))
    if name in AXES:
        across, upwards, limits = AXES[name]
        assert setting.x == ("learning_rate", *across)
        assert setting.y == (upwards, *limits)
        for axis, (low, high) in (("learning_rate", across), (upwards, limits)):
            expected.pop(axis, None)
            values = np.atleast_1d(asked[axis])
            assert low < values.min()
            assert values.max() < high
    assert {argument: asked[argument] for argument in expected} == expected
    stored = read_result(DOCS / "results" / name)
    if stored is not None and name not in CONTINUED:
        assert asked["seed"] in stored.about["seeds"]


def test_every_plane_is_among_them():
    assert set(AXES) == {name for name, one in RECIPES.items() if isinstance(one.settings["paper"], Plane)}
