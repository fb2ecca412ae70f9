"""The compiled step of an optimizer: AdamW, or gradient descent."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.jit import kernel, piece

Array = NDArray[Any]


@kernel(reorder=True)
def adamw(
    values: Array,
    gradient: Array,
    first: Array,
    second: Array,
    head: int,
    number: int,
    rates: Array,
    betas: Array,
) -> None:
    """Take one step of AdamW with decoupled weight decay, in PyTorch's order; scalars are in float64.

    Parameters
    ----------
    values, gradient, first, second : ndarray, shape (numbers,)
        Parameters of a member, their gradient, and both moments. All but the gradient are changed.
    head : int
        Count of values of the encoder, which come first.
    number : int
        Number of the step, from 1.
    rates : ndarray of float64, shape (4,)
        Learning rate and weight decay of the encoder, and then of the other values. At a learning rate of 0,
        the values stay and the moments change, as in PyTorch.
    betas : ndarray of float64, shape (3,)
        Decay rates of the moments, and epsilon. An epsilon of 0 stands for gradient descent, whose weight
        decay shrinks the values as in AdamW.
    """
    real = values.dtype.type
    for start, end, part in ((0, head, 0), (head, len(values), 2)):
        rate, decay = rates[part], rates[part + 1]
        size = end - start
        x, slope = piece(values, start, size), piece(gradient, start, size)
        mean, square = piece(first, start, size), piece(second, start, size)
        if betas[2] == 0:
            for i in range(size):
                x[i] = real(1 - rate * decay) * x[i] - real(rate) * slope[i]
            continue
        keep1, take1 = real(betas[0]), real(1 - betas[0])
        keep2, take2 = real(betas[1]), real(1 - betas[1])
        shrink, reach = real(1 - rate * decay), real(rate / (1 - betas[0] ** number))
        root, epsilon = real(1 / math.sqrt(1 - betas[1] ** number)), real(betas[2])
        for i in range(size):  # from 0: from `start`, where an index could be negative, is not vectorized
            g = slope[i]
            m = keep1 * mean[i] + take1 * g
            v = keep2 * square[i] + take2 * (g * g)
            mean[i], square[i] = m, v
            x[i] = shrink * x[i] - reach * (m / (np.sqrt(v) * root + epsilon))
