"""The fused step of the two-layer network `W_out σ(W_in[a] + W_in[b])`: no product in the first layer.

A member's parameters are one row of numbers: the input weights (tokens, hidden), then the output weights
(hidden, outputs). The pairs (a, b) and (b, a) have the same activations, so a full batch computes each
unordered pair once and weights it by its multiplicity: of all p² pairs, p (p + 1) / 2 are computed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nets.engines.first_layer import Calls, Shape
from nets.engines.products import TILE_ROWS, VECTOR_BYTES, add_product, matrix, piece, room, tile
from nets.engines.step import functions_for
from physics.jit import address_of, call, inner_kernel, kernel

Array = NDArray[Any]
Integers = NDArray[Any]

NUMBERS = 24000
"""Approximate count of numbers in a block: 96 kB in float32; a step needs three blocks in cache."""


class Pairs(NamedTuple):
    """Training data, as given and with pairs combined that are equal for the network.

    Tokens (runs, n, 2) and labels (runs, n) of all examples; then tokens and label (runs, m, 3) of the
    distinct ones, how often each occurs (runs, m), and how many they are (runs,).
    """

    inputs: Integers
    labels: Integers
    distinct: Integers
    occurs: Array
    counts: Integers


class Scratch(NamedTuple):
    """Working memory for one block, and for the transposed output weights and their gradient."""

    states: Array
    slopes: Array
    flow: Array
    logits: Array
    errors: Array
    turned: Array
    by_turned: Array
    tokens: Integers  # rows of tokens a, tokens b and labels
    weights: Array
    gradient: Array  # of one member
    everything: Integers  # an empty batch, which stands for all examples


def taken_together(inputs: Integers, labels: Integers, dtype: str) -> Pairs:
    """Gather examples (runs, n, 2) with labels (runs, n) that differ only in the order of their tokens."""
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
    """Allocate the working memory of a task; blocks are whole tiles of the products."""
    width, outputs = sizes
    block = min(32, max(1, NUMBERS // (TILE_ROWS * width))) * TILE_ROWS
    return Scratch(
        room(block * width, dtype),
        room(block * width, dtype),
        room(block * width, dtype),
        room(block * outputs, dtype),
        room(block * outputs, dtype),
        room(width * outputs, dtype),
        room(width * outputs, dtype),
        room((3, block), np.int32),
        room(block, dtype),
        room(numbers, dtype),
        room(0, np.int32),
    )


def calls_for(
    shape: Shape, activation: str, sizes: Integers, pairs: Pairs, scratch: Scratch, betas: Array
) -> Calls:
    """Compile the kernels of a step, unless that is done."""
    row, batch, matrix = scratch.gradient, scratch.everything, np.empty((1, 1), scratch.gradient.dtype)
    calls = Calls()
    return functions_for(activation, 0.0, True, matrix, row, batch, betas)._replace(
        gradient=address_of(_gradient, 0, row, row, shape, sizes, pairs, batch, scratch, calls),
        forward=address_of(_forward, row, 1, shape, sizes, scratch, calls),
        wide_product=address_of(_add_wide_product, matrix, True, matrix, matrix),
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
    """Write the mean loss and the accuracy of some members to (runs,) arrays; NaN for an empty set."""
    size, block = pairs.labels.shape[1], len(scratch.weights)
    for member in members:
        sums[:] = 0.0
        for start in range(0, size, block):
            rows = min(block, size - start)
            for n in range(rows):
                scratch.tokens[0, n] = pairs.inputs[member, start + n, 0]
                scratch.tokens[1, n] = pairs.inputs[member, start + n, 1]
                scratch.tokens[2, n] = pairs.labels[member, start + n]
            call(calls.forward, (parameters[member], rows, shape, sizes, scratch, calls))
            logits = matrix(scratch.logits, 0, rows, sizes[1])
            call(calls.loss, (logits, scratch.tokens[2], logits, scratch.errors, calls.exp, sums))
        loss[member] = sums[0] / size if size else np.nan
        accuracy[member] = sums[1] / size if size else np.nan


_add_whole_tile, _add_whole_turned = tile(2, masked=False), tile(2, masked=False, turned=True)


@inner_kernel()
def _add_wide_product(A: Array, turned: bool, B: Array, out: Array) -> None:
    """Add A @ B to `out` as `add_product` does; faster if `out` is wide and the inner dimension small."""
    lanes = VECTOR_BYTES // out.itemsize
    whole = out.shape[1] - out.shape[1] % (2 * lanes)
    for column in range(0, whole, 2 * lanes):
        for row in range(0, len(out), TILE_ROWS):
            if turned:
                _add_whole_turned(A, B, out, row, column)
            else:
                _add_whole_tile(A, B, out, row, column)
    add_product(A, turned, B, out, whole)


@inner_kernel()
def _forward(row: Array, rows: int, shape: Shape, sizes: Integers, scratch: Scratch, calls: Calls) -> None:
    """Compute logits (rows, outputs), states and slopes of the pairs that stand in the scratch."""
    width, outputs = sizes[0], sizes[1]
    weights = matrix(row, 0, shape.tokens, width)
    states = matrix(scratch.states, 0, rows, width)
    for n in range(rows):
        one, two, target = weights[scratch.tokens[0, n]], weights[scratch.tokens[1, n]], states[n]
        for j in range(width):
            target[j] = one[j] + two[j]
    values, slopes = piece(scratch.states, 0, rows * width), piece(scratch.slopes, 0, rows * width)
    call(calls.activate, (values, slopes, calls.exp))
    logits = matrix(scratch.logits, 0, rows, outputs)
    logits[:] = 0
    call(calls.product, (states, False, matrix(row, shape.tokens * width, width, outputs), logits, 0))


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
    """Compute the gradient of a member's mean loss over a batch, or over all examples if it is empty."""
    width, outputs = sizes[0], sizes[1]
    at, size, block = shape.tokens * width, len(batch), len(scratch.weights)
    total = size if size else pairs.labels.shape[1]
    gradient[:] = 0
    scratch.by_turned[:] = 0
    turned = matrix(scratch.turned, 0, outputs, width)
    by_turned = matrix(scratch.by_turned, 0, outputs, width)
    for i in range(width):
        for c in range(outputs):
            turned[c, i] = row[at + i * outputs + c]
    by_weights = matrix(gradient, 0, shape.tokens, width)
    last = size if size else pairs.counts[member]
    for start in range(0, last, block):
        rows = min(block, last - start)
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
        call(calls.forward, (row, rows, shape, sizes, scratch, calls))
        logits, errors = matrix(scratch.logits, 0, rows, outputs), matrix(scratch.errors, 0, rows, outputs)
        labels, all_ = scratch.tokens[2], scratch.everything
        call(calls.errors, (logits, labels, logits, all_, 0, total, calls.exp, errors))
        for n in range(rows):
            for c in range(outputs):
                errors[n, c] *= scratch.weights[n]
        call(calls.wide_product, (errors, True, matrix(scratch.states, 0, rows, width), by_turned))
        flow = matrix(scratch.flow, 0, rows, width)
        flow[:] = 0
        call(calls.wide_product, (errors, False, turned, flow))
        for n in range(rows):
            source, slopes = flow[n], piece(scratch.slopes, n * width, width)
            one, two = by_weights[scratch.tokens[0, n]], by_weights[scratch.tokens[1, n]]
            for j in range(width):
                source[j] *= slopes[j]
                one[j] += source[j]
            for j in range(width):
                two[j] += source[j]
    for i in range(width):
        for c in range(outputs):
            gradient[at + i * outputs + c] = by_turned[c, i]
