"""How well the survivors that are predicted, or those of another network, agree with those of a network."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles import survival


def agreement(first: Any, second: Any) -> NDArray[np.float64]:
    """Return `analysis.circles.agreement` of two sets of survivors, or 0 where both are empty."""
    return np.asarray(np.nan_to_num(survival.agreement(first, second)))


def strongest(scores: NDArray[np.float64], final: Any) -> NDArray[np.bool_]:
    """Return which circles are predicted to survive, bool (networks, K): those with the largest scores.

    A network is predicted to keep as many circles as the other networks keep on average, rounded. `final`,
    bool (networks, K), holds which circles survive in the end.
    """
    counts = final.sum(axis=1)
    alive = np.zeros(scores.shape, bool)
    for run, values in enumerate(scores):
        alive[run, np.argsort(-values)[: round(float(np.delete(counts, run).mean()))]] = True
    return alive
