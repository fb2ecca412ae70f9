"""The fused step of the two-layer network `σ(W_in[a] + W_in[b]) W_out`, whose first layer needs no product.

The parameters of a member are one row of numbers: the input weights (tokens, hidden), then the output weights
(hidden, outputs). The pairs (a, b) and (b, a) have the same activations. A full batch therefore computes each
unordered pair once and weights it by its multiplicity: of all p² pairs of p tokens, only p (p + 1) / 2.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nets.engines.first_layer import Calls, Shape
from nets.engines.products import TILE_ROWS, VECTOR_BYTES, room, tile
from nets.engines.step import functions_for
from physics.jit import address_of, call, inner_kernel, kernel, matrix, piece

Array = NDArray[Any]
Integers = NDArray[Any]

ROWS = 48
"""Number of pairs in a block, a multiple of the rows of a tile."""
CHUNK = 64
"""Approximate number of neurons in a chunk, so small that the arrays of a block stay in cache."""


class Pairs(NamedTuple):
    """Training data, both as given and with examples combined that differ only in the order of their tokens.

    Attributes
    ----------
    inputs : ndarray of int32, shape (runs, n, 2)
        Tokens of all examples.
    labels : ndarray of int32, shape (runs, n)
        Labels of all examples.
    distinct : ndarray of int32, shape (runs, m, 3)
        Tokens and label of the distinct examples; rows beyond their number are 0.
    occurs : ndarray, shape (runs, m)
        How often each distinct example occurs.
    counts : ndarray of int64, shape (runs,)
        Number of distinct examples.
    """

    inputs: Integers
    labels: Integers
    distinct: Integers
    occurs: Array
    counts: Integers


class Scratch(NamedTuple):
    """Working memory: the weights, packed for products without masks, and the activations of one block.

    Neurons are stored in chunks, because rows of 512 numbers would compete for the same places in the cache.
    Chunks and outputs are padded with zeros to whole vectors.
    """

    read: Array  # input weights, (tokens, chunk) for each chunk
    by_read: Array  # gradient of the input weights, in the same layout
    write: Array  # output weights, (chunk, outputs) for each chunk
    by_write: Array  # gradient of the output weights, in the same layout
    turned: Array  # output weights, (outputs, chunk) for each chunk, without padding of the outputs
    states: Array  # (ROWS, chunk) for each chunk
    slopes: Array
    flow: Array  # (ROWS, chunk)
    errors: Array  # (ROWS, outputs): first logits, then their gradient
    logits: Array  # without padding; followed by scratch of the same size
    tokens: Integers  # rows of tokens a, tokens b and labels
    weights: Array
    gradient: Array  # of one member
    everything: Integers  # an empty batch, which stands for all examples


def taken_together(inputs: Integers, labels: Integers, dtype: str) -> Pairs:
    """Combine examples that differ only in the order of their tokens, which the network does not see.

    Parameters
    ----------
    inputs : ndarray of int, shape (runs, n, 2)
        Pairs of tokens.
    labels : ndarray of int, shape (runs, n)
        Labels of the pairs.
    dtype : str
        Number type of the training.

    Returns
    -------
    Pairs
        All examples as given, and the distinct ones with their multiplicities.
    """
    found = []
    for pairs, classes in zip(np.sort(inputs, axis=2), labels, strict=True):
        found.append(np.unique(np.column_stack([pairs, classes]), axis=0, return_counts=True))
    most = max(len(rows) for rows, _ in found)
    distinct, occurs = np.zeros((len(labels), most, 3), np.int32), np.zeros((len(labels), most), dtype)
    for run, (rows, times) in enumerate(found):
        distinct[run, : len(rows)], occurs[run, : len(rows)] = rows, times
    counts = np.array([len(rows) for rows, _ in found])
    return Pairs(inputs.astype(np.int32), labels.astype(np.int32), distinct, occurs, counts)


def room_for(shape: Shape, sizes: Integers, numbers: int, dtype: Any) -> Scratch:
    """Allocate the working memory of a task.

    Parameters
    ----------
    shape : Shape
        Sizes and options of the network.
    sizes : ndarray of int64, shape (2,)
        Numbers of neurons and of outputs.
    numbers : int
        Count of the parameters of a member.
    dtype : dtype
        Number type of the training.

    Returns
    -------
    Scratch
        New arrays, whose padding is zero.
    """
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    chunks = max(1, round(sizes[0] / CHUNK))
    chunk, outputs = _filled(-(-sizes[0] // chunks), 2 * lanes), _filled(sizes[1], lanes)
    width = chunks * chunk
    scratch = Scratch(
        read=room(shape.tokens * width, dtype),
        by_read=room(shape.tokens * width, dtype),
        write=room(width * outputs, dtype),
        by_write=room(width * outputs, dtype),
        turned=room(width * sizes[1], dtype),
        states=room(ROWS * width, dtype),
        slopes=room(ROWS * width, dtype),
        flow=room(ROWS * chunk, dtype),
        errors=room(ROWS * outputs, dtype),
        logits=room((2, ROWS * sizes[1]), dtype),
        tokens=room((3, ROWS), np.int32),
        weights=room(ROWS, dtype),
        gradient=room(numbers, dtype),
        everything=room(0, np.int32),
    )
    for packed in (scratch.read, scratch.write, scratch.turned, scratch.errors):
        packed[:] = 0
    return scratch


def _filled(size: int, unit: int) -> int:
    """Return the smallest multiple of `unit` that is at least `size`."""
    return -(-size // unit) * unit


def calls_for(
    shape: Shape, activation: str, sizes: Integers, pairs: Pairs, scratch: Scratch, betas: Array
) -> Calls:
    """Compile the kernels of a step that are not compiled yet, and return their addresses.

    The arguments are as in `evaluate`, and only the types of arrays matter. `betas` (3,) are the decay rates
    of the moments and epsilon. `activation` is the name of the function of the neurons.
    """
    row, batch, matrix = scratch.gradient, scratch.everything, np.empty((1, 1), scratch.gradient.dtype)
    calls = Calls()
    return functions_for(activation, 0.0, shape.loss, matrix, row, batch, betas)._replace(
        gradient=address_of(_gradient, 0, row, row, shape, sizes, pairs, batch, scratch, calls),
        tabulate=address_of(_pack, row, shape, sizes, scratch),
        forward=address_of(_forward, 1, shape, sizes, scratch, calls),
        leave=address_of(_back, 1, shape, sizes, scratch, 0),
        untabulate=address_of(_unpack, shape, sizes, scratch, row),
        product=address_of(_add_product, matrix, True, matrix, matrix),
    )


@kernel()
def evaluate(
    members: Integers,
    parameters: Array,
    shape: Shape,
    sizes: Integers,
    pairs: Pairs,
    loss: Array,
    accuracy: Array,
    sums: Array,
    scratch: Scratch,
    calls: Calls,
) -> None:
    """Write the mean loss and the accuracy of some members on a set of pairs to arrays; NaN without pairs.

    Parameters
    ----------
    members : ndarray of int64, shape (n,)
        Numbers of the members.
    parameters : ndarray, shape (runs, numbers)
        Parameters of all members.
    shape : Shape
        Sizes and options of the network.
    sizes : ndarray of int64, shape (2,)
        Numbers of neurons and of outputs.
    pairs : Pairs
        Examples to evaluate on.
    loss, accuracy : ndarray of float64, shape (runs,)
        Arrays whose entries of these members are filled: nats and fractions.
    sums : ndarray of float64, shape (2,)
        Working memory for the sums over examples.
    scratch : Scratch
        Working memory for one block of examples.
    calls : Calls
        Addresses of the kernels of a step.
    """
    size = pairs.labels.shape[1]
    for member in members:
        sums[:] = 0.0
        call(calls.tabulate, (parameters[member], shape, sizes, scratch))
        for start in range(0, size, ROWS):
            rows = min(ROWS, size - start)
            for n in range(rows):
                scratch.tokens[0, n] = pairs.inputs[member, start + n, 0]
                scratch.tokens[1, n] = pairs.inputs[member, start + n, 1]
                scratch.tokens[2, n] = pairs.labels[member, start + n]
            call(calls.forward, (rows, shape, sizes, scratch, calls))
            logits = matrix(scratch.logits[0], 0, rows, sizes[1])
            call(calls.loss, (logits, scratch.tokens[2], logits, scratch.logits[1], calls.exp, sums))
        loss[member] = sums[0] / size if size else np.nan
        accuracy[member] = sums[1] / size if size else np.nan


_add_one, _add_two, _add_three = (tile(n, 12 // max(2, n), masked=False) for n in (1, 2, 3))
_add_one_turned, _add_two_turned, _add_three_turned = (
    tile(n, 12 // max(2, n), masked=False, turned=True) for n in (1, 2, 3)
)
_scale = tile(2, masked=False, scaled=True)


@inner_kernel()
def _add_product(A: Array, turned: bool, B: Array, out: Array) -> None:
    """Add A @ B to `out`, or Aᵀ @ B if A is `turned`; the columns of `out` fill whole vectors."""
    lanes = VECTOR_BYTES // out.itemsize
    rows, columns = out.shape
    column = 0
    while column < columns:
        left = (columns - column) // lanes
        if left == 3 or left > 4:
            for row in range(0, rows, 4):
                if turned:
                    _add_three_turned(A, B, out, row, column)
                else:
                    _add_three(A, B, out, row, column)
            column += 3 * lanes
        elif left > 1:
            for row in range(0, rows, 6):
                if turned:
                    _add_two_turned(A, B, out, row, column)
                else:
                    _add_two(A, B, out, row, column)
            column += 2 * lanes
        else:
            for row in range(0, rows, 6):
                if turned:
                    _add_one_turned(A, B, out, row, column)
                else:
                    _add_one(A, B, out, row, column)
            column += lanes


@inner_kernel()
def _pack(row: Array, shape: Shape, sizes: Integers, scratch: Scratch) -> None:
    """Copy the weights in a member's `row` to the layout in `scratch` that the products read."""
    width, outputs = sizes[0], sizes[1]
    chunk, columns = len(scratch.flow) // ROWS, len(scratch.errors) // ROWS
    at = shape.tokens * width
    for first in range(0, width, chunk):
        size = min(chunk, width - first)
        for token in range(shape.tokens):
            source = piece(row, token * width + first, size)
            target = piece(scratch.read, shape.tokens * first + token * chunk, size)
            for j in range(size):
                target[j] = source[j]
        turned = matrix(scratch.turned, outputs * first, outputs, chunk)
        for j in range(size):
            source = piece(row, at + (first + j) * outputs, outputs)
            target = piece(scratch.write, (first + j) * columns, outputs)
            for c in range(outputs):
                target[c] = source[c]
                turned[c, j] = source[c]


@inner_kernel()
def _unpack(shape: Shape, sizes: Integers, scratch: Scratch, gradient: Array) -> None:
    """Copy the gradient from the layout of the products, in `scratch`, to that of a member's row."""
    width, outputs = sizes[0], sizes[1]
    chunk, columns = len(scratch.flow) // ROWS, len(scratch.errors) // ROWS
    at = shape.tokens * width
    for first in range(0, width, chunk):
        size = min(chunk, width - first)
        for token in range(shape.tokens):
            target = piece(gradient, token * width + first, size)
            source = piece(scratch.by_read, shape.tokens * first + token * chunk, size)
            for j in range(size):
                target[j] = source[j]
    for j in range(width):
        target = piece(gradient, at + j * outputs, outputs)
        source = piece(scratch.by_write, j * columns, outputs)
        for c in range(outputs):
            target[c] = source[c]


@inner_kernel()
def _forward(rows: int, shape: Shape, sizes: Integers, scratch: Scratch, calls: Calls) -> None:
    """Compute logits, states and slopes of the first `rows` pairs whose tokens the scratch holds."""
    width, outputs = len(scratch.states) // ROWS, sizes[1]
    chunk, columns = len(scratch.flow) // ROWS, len(scratch.errors) // ROWS
    errors = matrix(scratch.errors, 0, rows, columns)
    errors[:] = 0
    for first in range(0, width, chunk):
        read = matrix(scratch.read, shape.tokens * first, shape.tokens, chunk)
        states = matrix(scratch.states, ROWS * first, rows, chunk)
        for n in range(rows):
            one, two, target = read[scratch.tokens[0, n]], read[scratch.tokens[1, n]], states[n]
            for j in range(chunk):
                target[j] = one[j] + two[j]
        values = piece(scratch.states, ROWS * first, rows * chunk)
        slopes = piece(scratch.slopes, ROWS * first, rows * chunk)
        call(calls.activate, (values, slopes, calls.exp))
        call(calls.product, (states, False, matrix(scratch.write, columns * first, chunk, columns), errors))
    logits = matrix(scratch.logits[0], 0, rows, outputs)
    for n in range(rows):
        source, target = errors[n], logits[n]
        for c in range(outputs):
            target[c] = source[c]


@inner_kernel()
def _back(rows: int, shape: Shape, sizes: Integers, scratch: Scratch, product: int) -> None:
    """Add the contribution of a block of `rows` pairs to the gradient, in the layout of the products."""
    width, outputs = len(scratch.states) // ROWS, sizes[1]
    chunk, columns = len(scratch.flow) // ROWS, len(scratch.errors) // ROWS
    lanes = VECTOR_BYTES // scratch.errors.itemsize
    errors, flow = matrix(scratch.errors, 0, rows, columns), matrix(scratch.flow, 0, rows, chunk)
    for first in range(0, width, chunk):
        states = matrix(scratch.states, ROWS * first, rows, chunk)
        by_write = matrix(scratch.by_write, columns * first, chunk, columns)
        call(product, (states, True, errors, by_write))
        slopes = matrix(scratch.slopes, ROWS * first, rows, chunk)
        turned = matrix(scratch.turned, outputs * first, outputs, chunk)
        for column in range(0, chunk, 2 * lanes):
            for n in range(0, rows, TILE_ROWS):
                _scale(errors, turned, flow, slopes, n, column)
        by_read = matrix(scratch.by_read, shape.tokens * first, shape.tokens, chunk)
        for n in range(rows):
            source, one, two = flow[n], by_read[scratch.tokens[0, n]], by_read[scratch.tokens[1, n]]
            for j in range(chunk):
                one[j] += source[j]
            for j in range(chunk):
                two[j] += source[j]


@inner_kernel()
def _gradient(
    member: int,
    row: Array,
    gradient: Array,
    shape: Shape,
    sizes: Integers,
    pairs: Pairs,
    batch: Integers,
    scratch: Scratch,
    calls: Calls,
) -> None:
    """Write the gradient of a member's mean loss over a batch; an empty `batch` stands for all examples."""
    outputs, size = sizes[1], len(batch)
    columns = len(scratch.errors) // ROWS
    total = size if size else pairs.labels.shape[1]
    scratch.by_read[:] = 0
    scratch.by_write[:] = 0
    call(calls.tabulate, (row, shape, sizes, scratch))
    last = size if size else pairs.counts[member]
    for start in range(0, last, ROWS):
        rows = min(ROWS, last - start)
        for n in range(rows):
            if size:
                example = batch[start + n]
                scratch.tokens[0, n] = pairs.inputs[member, example, 0]
                scratch.tokens[1, n] = pairs.inputs[member, example, 1]
                scratch.tokens[2, n] = pairs.labels[member, example]
                scratch.weights[n] = 1
            else:
                for part in range(3):
                    scratch.tokens[part, n] = pairs.distinct[member, start + n, part]
                scratch.weights[n] = pairs.occurs[member, start + n]
        call(calls.forward, (rows, shape, sizes, scratch, calls))
        logits = matrix(scratch.logits[0], 0, rows, outputs)
        powers = matrix(scratch.logits[1], 0, rows, outputs)
        labels, all_ = scratch.tokens[2], scratch.everything
        call(calls.errors, (logits, labels, logits, all_, 0, total, calls.exp, powers))
        for n in range(rows):
            source, target = powers[n], piece(scratch.errors, n * columns, outputs)
            weight = scratch.weights[n]
            for c in range(outputs):
                target[c] = source[c] * weight
        call(calls.leave, (rows, shape, sizes, scratch, calls.product))
    call(calls.untabulate, (shape, sizes, scratch, gradient))
