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
    """Take step `number` of AdamW with decoupled weight decay, in PyTorch's order; scalars are in float64.

    `rates` (4,) are the learning rate and the weight decay of the first `head` values, which are the encoder,
    and then of the others. At a learning rate of 0, the values stay and the moments change, as in PyTorch. An
    epsilon of 0 stands for gradient descent, whose weight decay shrinks the values as in AdamW.
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
