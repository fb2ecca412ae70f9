"""Make the data of the live page, ``data.js``: ``python docs/live.py`` (about two minutes).

It holds the trainings that the page plays (every one the first of its ensemble that ends as named), and the
kernels that the finding *force* shows, which the explorer reads from its own file, ``measured_forces.json``.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import nets
import physics
from physics.particles.tabulated import PairKernels

DATA = Path(__file__).parent / "extra" / "live" / "data.js"
FORCES = Path(__file__).parents[1] / "grokphys" / "explorer" / "assets" / "measured_forces.json"
LAWS = Path(__file__).parent / "results" / "force-law" / "kernels.json"
SLOWER = 4
"""How many times smaller than Musat's (f_a = 2) the forces are, so that particles hardly tremble."""
MODEL = nets.ConstantAttention()
FRAMES = [0, 1, 2, 3, 5, *range(7, 60, 3), *range(60, 200, 7), *range(200, 600, 20), *range(600, 2001, 50)]
TRAININGS = (
    ("network-circle", "a network's circle", 1.0, lambda run: run["circle"] and run["accuracy"] > 0.4,
     "A recorded training: the network places its 17 numbers on a circle."),
    ("network-grid", "a network's grid", 1.0, lambda run: not run["circle"] and run["imperfections"] < 32,
     "Another start: this network ends as a grid. Release it as particles at any step."),
    ("network-memorizes", "memorizes only", 0.0, lambda run: run["accuracy"] < 0.2,
     "Without weight decay the network learns its training pairs, and few of the others."),
)  # fmt: skip


def training(slug: str, name: str, decay: float, wanted: Callable[[Any], bool], watch: str) -> dict[str, Any]:
    """Train networks, and return the first one that ends as wanted."""
    runs = nets.train(
        MODEL, runs=40, seed=17, weight_decay=decay, record=FRAMES, observables=["validation_accuracy"]
    )
    accuracy = runs.observables["validation_accuracy"]
    ends = {
        "circle": physics.is_circle(runs.final),
        "imperfections": physics.grid_imperfections(runs.final),
        "accuracy": accuracy[:, -1],
    }
    chosen = next(n for n in range(40) if wanted({key: values[n] for key, values in ends.items()}))
    size = np.sqrt(np.mean(np.square(runs.final[chosen])))
    return {
        "slug": slug, "name": name, "watch": watch, "steps": runs.steps.tolist(),
        "positions": np.round(runs.positions[chosen] / size, 3).tolist(),
        "accuracy": np.round(accuracy[chosen], 3).tolist(),
    }  # fmt: skip


def kernels() -> dict[str, Any]:
    """Return the kernels of the finding *force*: converged layers in the middle of a training, decay 1."""
    stored = pandas.DataFrame(json.loads(LAWS.read_text(encoding="utf-8")))
    law = stored.query(
        "tokens == 17 and dim == 2 and decay == 1 and state == 'converged' and window == 'middle'"
    )
    curves = {name: rows.sort_values("place") for name, rows in law.groupby("kernel")}
    weights = np.array(physics.ParticleSystem().weights[::-1])[:, None]
    distance, angle = (
        weights * [curves[f"{name}, {kind}"]["value"] for kind in ("different classes", "same class")]
        for name in ("distance", "angle")
    )
    ends = [float(curves[name]["place"].max()) for name in ("distance, same class", "radius")]
    radius = curves["radius"]["value"].to_numpy()
    tables = PairKernels(distance, angle, radius, *ends)
    start = np.random.default_rng(0).normal(size=(20, 17, 2))
    ours, musat = physics.PairForces(tables, 17, 2, on="pair sums"), physics.ParticleSystem(alignment=2.0)
    pace, speed = (np.mean(np.abs(system.forces(start))) for system in (musat, ours))
    return {
        "distance": distance.tolist(), "angle": angle.tolist(), "jump": [0.0, 0.0], "radius": radius.tolist(),
        "longest": ends[0], "farthest": ends[1], "pace": float(pace / speed) / SLOWER,
    }  # fmt: skip


def rounded(value: Any) -> Any:
    """Keep six digits of each number."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return (
        [rounded(part) for part in value]
        if isinstance(value, list)
        else (float(f"{value:.6g}") if isinstance(value, float) else value)
    )


if __name__ == "__main__":
    data = {"trainings": [training(*each) for each in TRAININGS], "kernels": rounded(kernels())}
    text, forces = (json.dumps(part, separators=(",", ":")) for part in (data, data["kernels"]))
    DATA.write_text(f"const DATA = {text}\n", encoding="utf-8")
    FORCES.write_text(f"{forces}\n", encoding="utf-8")
