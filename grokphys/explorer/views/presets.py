"""The presets of all views: named states, each with what to watch for."""

from typing import Any

from grokphys.explorer.runs.planes import STRONGEST
from grokphys.explorer.views.view import Preset

WIDE: dict[str, Any] = {"tokens": 31, "dim": 16, "hidden": 128, "seed": 2, "alignment": 3.0}
WIDE["plane"] = STRONGEST
"""A network with many dimensions, which memorizes soon, and groks if its weights decay."""

PARTICLES = (
    Preset("a circle forms", "Watch 17 particles form a circle: the circle ratio falls below 1.2.", {}),
    Preset(
        "an imperfect grid",
        "Weaker alignment: pair sums gather on a lattice, where some have neighbors of another class.",
        {"alignment": 1.0, "step_size": 0.01, "seed": 89},
        2,
    ),
    Preset(
        "two starts, one law",
        "Only the starts differ: the first ends as a circle, the second as a grid.",
        {"alignment": 1.0, "step_size": 0.01, "seed": 20, "twin": True, "twin_seed": 89},
        2,
    ),
    Preset(
        "pull it apart",
        "Drag a particle off the circle, or select it with the arrow keys. Arrows show where it would go.",
        {"kind": "circle", "noise": 0.05, "arrows": True},
    ),
)

NETWORKS = (
    Preset(
        "a circle forms",
        "Watch the network place its 17 numbers on a circle (above). The particles (below) are faster.",
        {"seed": 0},
        8,
    ),
    Preset(
        "an imperfect grid",
        "Another start: the embedding of this network ends as a grid with imperfections.",
        {"seed": 18},
        8,
    ),
    Preset(
        "it groks",
        "It has memorized its training pairs by step 50. The held-out pairs follow only after step 1000.",
        WIDE | {"decay": 0.2},
        8,
    ),
    Preset(
        "memorizes only",
        "The same network without weight decay: it never learns the held-out pairs.",
        WIDE | {"decay": 0.0},
        8,
    ),
)

THEORY = (
    Preset(
        "it generalizes",
        "Watch the ten numbers become evenly spaced: 45 of the 55 pairs are enough for that.",
        {},
    ),
    Preset(
        "memorizes only",
        "16 of 55 pairs are too few: the numbers stop before they are evenly spaced.",
        {"size": 16},
    ),
    Preset(
        "in the plane",
        "The same pairs, with embeddings in the plane: the numbers still end on a line.",
        {"dim": 2},
    ),
)

CIRCLES = (
    Preset(
        "circles survive",
        "Watch a cloud of tokens turn into the strongest circle, while most other circles die out.",
        {},
        1,
    ),
    Preset(
        "an octave is lost",
        "Circle 22 is among the strongest at first, yet it dies out; circle 11, its octave, survives.",
        {"plane": "frequency 22"},
        3,
    ),
)

NEURONS = (
    Preset(
        "neurons choose",
        "Watch the race of neuron 0: frequency 3 leaves the others behind, as the exact flow (dashed) says.",
        {},
        5,
    ),
    Preset(
        "neurons become waves",
        "Neurons with ReLU, too: most of them end with a single frequency, and their phases align.",
        {"hidden": 48, "seed": 0, "activation": "relu"},
        5,
    ),
)
