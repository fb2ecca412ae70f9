"""Neurons in training as a film: their phases, the race of one neuron's frequencies, and accuracy."""

from typing import TYPE_CHECKING

import numpy as np

from grokphys.explorer.films import parts
from grokphys.explorer.films.export import Film, Move
from grokphys.explorer.runs.neurons import NeuronRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def neuron_film(run: NeuronRun, neuron: int) -> Film:
    """Return a film of a network's neurons, with a frame for each kept frame of the run.

    It shows the phases of all neurons, the magnitudes of the frequencies of `neuron` (a number from 0), and
    the accuracy. The film owns a copy of the data.
    """
    history = run.history
    steps, magnitude, accuracy = history.steps, history["magnitude"], history["train_accuracy"]
    size, angle = magnitude.max(axis=2), np.nan_to_num(history["misalignment"])
    reach = size / size.max(axis=1, keepdims=True)
    paths = reach[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    order = history["frequency"][-1] * paths.shape[1] // (magnitude.shape[2] + 1)
    exact = run.flow(neuron) if run.flows else None

    def begin(figure: "Figure") -> Move:
        from analysis.plots.palette import class_colors

        left, middle, right = figure.subplots(1, 3)
        parts.plane(left, 1.12, (r"$2\varphi - \psi$: aligned neurons lie to the right", ""), label="phases")
        colors = class_colors(magnitude.shape[2])
        moves = [
            parts.title(left, lambda frame: f"phases of neurons, step {steps[frame]}"),
            parts.tokens(left, paths, order=order),
            parts.grown(right, steps, accuracy, "#0b6e99"),
        ]
        for k, color in enumerate(colors):
            moves.append(parts.grown(middle, steps, magnitude[:, neuron, k], color))
            if exact is not None:
                middle.plot(exact[0], exact[1][:, k], color=color, linestyle="--", linewidth=0.8)
        middle.set(title=f"race of neuron {neuron}; dashed: exact flow", xlabel="step", label="race")
        middle.set_ylim(0, 1.15 * magnitude[:, neuron].max())  # the exact flow diverges
        right.set(title="accuracy", xlabel="step", label="accuracy")
        return parts.together(*moves)

    return Film(len(steps), begin, (12.0, 4.2))
