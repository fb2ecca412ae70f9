"""Compiled losses, which are added to the array `sums` of a loss and a count, and their gradients."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.jit import call, kernel, matrix, piece

Array = NDArray[Any]
Integers = NDArray[Any]
LEAST_SINGLE, LEAST_DOUBLE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float64).tiny)
"""Least normal numbers of both types."""


@kernel(reorder=True)
def cross_entropy(
    logits: Array, labels: Integers, targets: Array, room: Array, exp: int, sums: Array
) -> None:
    """Add the cross-entropies of a block of examples, and the number of correct answers, to `sums` (2,).

    The answer is the class of the largest logit; among equally large ones, the first. Logits of NaN are no
    answer.

    Parameters
    ----------
    logits : ndarray, shape (rows, classes)
        Outputs of the network.
    labels : ndarray of int32, shape (rows,)
        Classes of the examples.
    targets : ndarray
        Not used.
    room : ndarray
        Working memory of the size of `logits`.
    exp : int
        Address of the kernel `exponential`.
    sums : ndarray of float64, shape (2,)
        Sums of the losses and of the hits.
    """
    rows, width = logits.shape
    powers = matrix(room, 0, rows, width)
    total, hits = 0.0, 0
    for n in range(rows):
        largest = logits[n, 0]
        for j in range(width):
            largest = max(largest, logits[n, j])
        for j in range(width):
            powers[n, j] = logits[n, j] - largest
        first = 0
        while first < labels[n] and powers[n, first] < 0:
            first += 1
        hits += first == labels[n] and powers[n, first] == 0
        total -= powers[n, labels[n]]
    call(exp, (piece(room, 0, rows * width),))
    for n in range(rows):
        norm = 0.0
        for j in range(width):
            norm += powers[n, j]
        total += math.log(norm)
    sums[0] += total
    sums[1] += hits


@kernel(reorder=True)
def squared_error(
    outputs: Array, labels: Integers, targets: Array, room: Array, exp: int, sums: Array
) -> None:
    """Add the squared errors of a block of examples, and the number of correct answers, to `sums` (2,).

    The answer is the class of the nearest target; among equally near ones, the first. Outputs that are not
    finite are no answer.

    Parameters
    ----------
    outputs : ndarray, shape (rows, width)
        Outputs of the network.
    labels : ndarray of int32, shape (rows,)
        Classes of the examples.
    targets : ndarray, shape (classes, width)
        Target of each class.
    room, exp
        Not used.
    sums : ndarray of float64, shape (2,)
        Sums of the losses, which are means over the width, and of the hits.
    """
    rows, width = outputs.shape
    total, hits = 0.0, 0
    for n in range(rows):
        best, nearest = -1, np.inf
        for c in range(len(targets)):
            distance = 0.0
            for j in range(width):
                difference = outputs[n, j] - targets[c, j]
                distance += difference * difference
            if distance < nearest:
                best, nearest = c, distance
            if c == labels[n]:
                total += distance / width
        hits += best == labels[n]
    sums[0] += total
    sums[1] += hits


@kernel(reorder=True)
def squared_error_gradient(
    outputs: Array,
    labels: Integers,
    targets: Array,
    batch: Integers,
    start: int,
    total: int,
    exp: int,
    out: Array,
) -> None:
    """Write the gradient of the mean squared error with respect to a block of outputs to an array.

    Parameters
    ----------
    outputs : ndarray, shape (rows, width)
        Outputs of the network.
    labels : ndarray of int32, shape (n,)
        Classes of all training examples.
    targets : ndarray, shape (classes, width)
        Target of each class.
    batch : ndarray of int32, shape (size,)
        Examples of a mini-batch; an empty one stands for all examples.
    start : int
        Place in the batch of the first example of the block.
    total : int
        Number of examples over which the loss is averaged.
    exp : int
        Not used.
    out : ndarray, shape (rows, width)
        Array that receives the gradient.
    """
    rows, width = outputs.shape
    share = outputs.dtype.type(2 / (total * width))
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        target = targets[labels[example]]
        for j in range(width):
            out[n, j] = share * (outputs[n, j] - target[j])


@kernel(reorder=True)
def cross_entropy_gradient(
    logits: Array,
    labels: Integers,
    targets: Array,
    batch: Integers,
    start: int,
    total: int,
    exp: int,
    out: Array,
) -> None:
    """Write the gradient of the mean cross-entropy with respect to a block of logits to an array.

    Contributions of probabilities that are below the normal numbers of the type become 0. Processors multiply
    subnormal numbers ten times slower, and would do so if networks are sure of their answers. For the right
    class, 1 is subtracted from its probability, as in PyTorch; see `stable_cross_entropy_gradient`.

    Parameters
    ----------
    logits : ndarray, shape (rows, classes)
        Outputs of the network.
    labels : ndarray of int32, shape (n,)
        Classes of all training examples.
    targets : ndarray
        Not used.
    batch : ndarray of int32, shape (size,)
        Examples of a mini-batch; an empty one stands for all examples.
    start : int
        Place in the batch of the first example of the block.
    total : int
        Number of examples over which the loss is averaged.
    exp : int
        Address of the kernel `exponential`.
    out : ndarray, shape (rows, classes)
        Array that receives the gradient.
    """
    rows, width = logits.shape
    zero = logits.dtype.type(0)
    least = logits.dtype.type(LEAST_SINGLE if logits.itemsize == 4 else LEAST_DOUBLE)
    for n in range(rows):
        largest = logits[n, 0]
        for j in range(width):
            largest = max(largest, logits[n, j])
        for j in range(width):
            out[n, j] = logits[n, j] - largest
    call(exp, (piece(out, 0, rows * width),))
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        norm = zero
        for j in range(width):
            norm += out[n, j]
        norm = 1 / (norm * total)
        for j in range(width):
            share = out[n, j] * norm
            out[n, j] = share if share >= least else zero
        out[n, labels[example]] -= logits.dtype.type(1 / total)


@kernel()
def stable_cross_entropy_gradient(
    logits: Array,
    labels: Integers,
    targets: Array,
    batch: Integers,
    start: int,
    total: int,
    exp: int,
    out: Array,
) -> None:
    """Write the gradient of the mean cross-entropy to an array, with small relative errors in all entries.

    At the right class the gradient is q - 1, where q is the probability of this class, divided by the number
    of examples. In float32, q is a multiple of 6e-8 near 1, so that q - 1 is wrong by its own size once the
    loss is that small, and the gradients of an example no longer add up to 0. Here the probabilities of all
    other classes are added instead, which are small numbers with all their digits. The arguments are as in
    `cross_entropy_gradient`.
    """
    cross_entropy_gradient(logits, labels, targets, batch, start, total, exp, out)
    for n in range(len(out)):
        row, own = out[n], labels[batch[start + n] if len(batch) else start + n]
        row[own] = 0
        others = row[own]
        for j in range(len(row)):
            others += row[j]
        row[own] = -others


GRADIENTS = cross_entropy_gradient, stable_cross_entropy_gradient, squared_error_gradient
"""Gradients of the losses that `first_layer.Shape` numbers."""
