"""Networks on shared initial embeddings, for Figures 6 (left) and 7 of Ding et al."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from grokphys.papers.ding import training
from grokphys.papers.ding.training import DECAY, Size, train_circles
from grokphys.papers.evidence import joined
from grokphys.papers.recipe import Run
from nets.training import train

AUDITED = 4
"""Number of embeddings of which one network is trained to the end, to count errors of the stopping rule."""
FIRST_SEED = 6000


@dataclass(frozen=True)
class Trials:
    """Setting of Figures 6 (left) and 7: several networks start from each of some embeddings.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    embeddings : int
        Number of initial embeddings.
    trials : int
        Number of networks that start from each embedding, with different layers and training sets.
    """

    size: Size
    embeddings: int
    trials: int


QUICK = Trials(training.QUICK, 3, 6)
PAPER = Trials(training.PAPER, 10, 50)


def train_trials(run: Run) -> dict[str, Any]:
    """Train the networks of a `Trials` setting, and return a table of their frequencies.

    A row belongs to one frequency of one network. Its columns include the initial signal, its changes in the
    steps 1 to 4, and whether the circle survives. The column "gradient" is the rate at which gradient descent
    would change the signal at step 4.
    """
    setting: Trials = run.setting
    return joined(
        run.keep(f"embedding-{n}", partial(_one_embedding, setting, n), family="ding-trials")
        for n in range(setting.embeddings)
    )


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
