"""Make the data of the live page, ``data.js``: ``python docs/live.py`` (about two minutes).

It holds the trainings that the page plays (every one the first of its ensemble that ends as named), and the
kernels of a force law that is fitted to networks whose layers have learnt, which the explorer reads from its
own file, ``measured_forces.json``.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import analysis
import nets
import physics

DATA = Path(__file__).parent / "extra" / "live" / "data.js"
FORCES = Path(__file__).parents[1] / "grokphys" / "explorer" / "assets" / "measured_forces.json"
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
    """Fit a law to the force of layers that have learnt, early and in the middle of the training."""
    options: Any = {"weight_decay": 1.0, "record": [20, 50, 100, 200, 400], "steps": 400, "dtype": "float64"}
    networks = nets.adiabatic_force(nets.train(MODEL, runs=80, seed=1700, **options), steps=2000)
    law = analysis.fit_forces(networks, basis=analysis.forces.Basis(), resamples=0)
    system = law.system()
    table: Any = system.function
    start = np.random.default_rng(0).normal(size=(20, 17, 2))
    pace = np.mean(np.abs(physics.ParticleSystem(alignment=2.0).forces(start))) / np.mean(
        np.abs(system.forces(start))
    )
    thin = slice(None, None, (np.shape(table.distance)[1] - 1) // 512)
    return {
        "distance": np.asarray(table.distance)[:, thin].tolist(),
        "angle": np.asarray(table.angle)[:, ::8].tolist(),
        "jump": list(map(float, table.jump)), "radius": np.asarray(table.radius)[::8].tolist(),
        "longest": float(table.longest), "farthest": float(table.farthest), "pace": float(pace),
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
