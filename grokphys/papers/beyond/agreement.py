"""How well the survivors that are predicted, or those of another network, agree with those of a network."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def agreement(first: Any, second: Any) -> NDArray[np.float64]:
    """Return how well two sets of survivors agree: the circles in both, as a fraction of those in either.

    The sets are arrays of bool of the shape (..., K). The result (...) is 0 if both sets are empty.
    """
    a, b = np.asarray(first, bool), np.asarray(second, bool)
    return np.asarray((a & b).sum(axis=-1) / np.maximum((a | b).sum(axis=-1), 1))


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
