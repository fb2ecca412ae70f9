"""Networks with new layers and splits on shared embeddings, for Figures 6 (left) and 7."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from grokphys.papers.ding import training
from grokphys.papers.ding.training import DECAY, Size, gathered, train_circles
from grokphys.papers.recipe import Run
from nets.training import train

AUDITED = 4
"""Number of embeddings for which one trial continues to the end, to measure the error of the stopping
rule."""
FIRST_SEED = 6000


@dataclass(frozen=True)
class Trials:
    """Setting of Figures 6 (left) and 7: many networks that share an initial embedding.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    embeddings : int
        Number of embeddings.
    trials : int
        Number of networks on each of them, with different layers and training sets.
    """

    size: Size
    embeddings: int
    trials: int


QUICK = Trials(training.QUICK, 3, 6)
PAPER = Trials(training.PAPER, 10, 50)


def train_trials(run: Run) -> dict[str, Any]:
    """Train networks with new layers and training sets on shared embeddings.

    Parameters
    ----------
    run : Run
        Argument of the recipe; its setting is a `Trials`.

    Returns
    -------
    dict of str to ndarray
        Table with a row for each frequency of each trial: embedding, initial signal, its changes in steps 1
        to 4, the gradient, and whether the circle survives.
    """
    setting: Trials = run.setting
    names = [f"embedding-{n}" for n in range(setting.embeddings)]
    return gathered(run, names, lambda n: _one_embedding(setting, n), family="ding-trials")


def _one_embedding(setting: Trials, number: int) -> dict[str, Any]:
    options: dict[str, Any] = {
        "runs": setting.trials,
        "seed": FIRST_SEED + number,
        "shared": ("embedding",),
    }
    size = setting.size
    found = train_circles(size.model, steps=size.steps, audited=int(number < AUDITED), **options)
    # The same networks once more, for four steps: gradients of all frames would not fit in memory.
    early = train(size.model, steps=4, weight_decay=DECAY, record=[4], observables=("gradient",), **options)
    E, G = (np.fft.rfft(x[:, 0], axis=1)[:, 1:] for x in (early.positions, early.observables["gradient"]))
    K = size.tokens // 2
    changes = np.diff(found.signals[:, :5], axis=1)
    return {
        "embedding": np.full(setting.trials * K, number),
        "trial": np.repeat(np.arange(setting.trials), K),
        "frequency": np.tile(np.arange(1, K + 1), setting.trials),
        "signal": found.signals[:, 0].ravel(),
        **{f"change_{step}": changes[:, step - 1].ravel() for step in range(1, 5)},
        "gradient": (-(E.conj() * G).real.sum(axis=2) / np.linalg.norm(E, axis=2)).ravel(),
        "survived": found.survived.ravel(),
        "changed": found.changed.ravel(),
        "decided": np.repeat(found.decided, K),
        "audited": np.repeat(np.arange(setting.trials) < found.audited, K),
    }
