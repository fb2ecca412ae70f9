"""The fused step of the two-layer network `W_out σ(W_in[a] + W_in[b])`: no product in the first layer.

A member's parameters are one row of numbers: the input weights (tokens, hidden), then the output weights
(hidden, outputs). The pairs (a, b) and (b, a) have the same activations, so a full batch computes each
unordered pair once and weights it by its multiplicity: of all p² pairs, p (p + 1) / 2 are computed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nets.engines.functions import activate, cross_entropy, cross_entropy_gradient, update
from nets.engines.products import TILE_ROWS, VECTOR_BYTES, add_product, matrix, tile
from nets.engines.step import Shape
from physics.jit import kernel

Array = NDArray[Any]
Integers = NDArray[Any]

QUADRATIC, ABSOLUTE = 4, 5
"""Activations in addition to those of `nets.engines.functions`, whose numbers end at 3."""
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
    bits: Integers
    tokens: Integers  # rows of tokens a, tokens b and labels
    weights: Array


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


@kernel()
def train_members(
    members: Integers,
    parameters: Array,
    first: Array,
    second: Array,
    shape: Shape,
    sizes: Integers,
    pairs: Pairs,
    batches: Integers,
    step: int,
    count: int,
    rates: Array,
    betas: Array,
) -> None:
    """Take `count` optimizer steps with each of some members, in place; see `nets.engines.step`."""
    gradient = np.empty(parameters.shape[1], parameters.dtype)
    scratch = _scratch(shape, sizes, parameters)
    for member in members:
        for offset in range(count):
            batch = batches[member, offset] if batches.shape[2] else batches[0, 0]
            _gradient(member, parameters[member], gradient, shape, sizes, pairs, batch, scratch)
            update(
                parameters[member],
                gradient,
                first[member],
                second[member],
                shape.encoded,
                step + offset + 1,
                rates[member],
                betas,
            )


@kernel()
def gradients(
    members: Integers, parameters: Array, out: Array, shape: Shape, sizes: Integers, pairs: Pairs
) -> None:
    """Write the gradient of the full training loss of some members to `out` (runs, numbers)."""
    scratch = _scratch(shape, sizes, parameters)
    everything = np.empty(0, np.int32)
    for member in members:
        _gradient(member, parameters[member], out[member], shape, sizes, pairs, everything, scratch)


@kernel()
def evaluate(
    members: Integers,
    parameters: Array,
    shape: Shape,
    sizes: Integers,
    pairs: Pairs,
    loss: Array,
    accuracy: Array,
) -> None:
    """Write the mean loss and the accuracy of some members to (runs,) arrays; NaN for an empty set."""
    scratch = _scratch(shape, sizes, parameters)
    size, block = pairs.labels.shape[1], len(scratch.weights)
    for member in members:
        total, hits = 0.0, 0
        for start in range(0, size, block):
            rows = min(block, size - start)
            for n in range(rows):
                scratch.tokens[0, n] = pairs.inputs[member, start + n, 0]
                scratch.tokens[1, n] = pairs.inputs[member, start + n, 1]
                scratch.tokens[2, n] = pairs.labels[member, start + n]
            logits = _forward(parameters[member], rows, shape, sizes, scratch)
            part, right = cross_entropy(logits, scratch.tokens[2], scratch.errors, scratch.bits)
            total += part
            hits += right
        loss[member] = total / size if size else np.nan
        accuracy[member] = hits / size if size else np.nan


_add_whole_tile = tile(2, masked=False)


@kernel()
def _add_wide_product(A: Array, B: Array, out: Array) -> None:
    """Add A @ B to `out` as `add_product` does; faster if `out` is wide and the inner dimension small."""
    lanes = VECTOR_BYTES // out.itemsize
    whole = out.shape[1] - out.shape[1] % (2 * lanes)
    for column in range(0, whole, 2 * lanes):
        for row in range(0, len(out), TILE_ROWS):
            _add_whole_tile(A, B, out, row, column)
    if whole < out.shape[1]:
        add_product(A, B[:, whole:], out[:, whole:])


@kernel()
def _scratch(shape: Shape, sizes: Integers, like: Array) -> Scratch:
    """Allocate the working memory of a task; blocks are whole tiles of the products."""
    width, outputs = sizes[0], sizes[1]
    block = min(32, max(1, NUMBERS // (TILE_ROWS * width))) * TILE_ROWS
    return Scratch(
        np.empty(block * width, like.dtype),
        np.empty(block * width, like.dtype),
        np.empty(block * width, like.dtype),
        np.empty(block * outputs, like.dtype),
        np.empty(block * outputs, like.dtype),
        np.empty(width * outputs, like.dtype),
        np.empty(width * outputs, like.dtype),
        np.empty(block * max(width, outputs), np.int32),
        np.empty((3, block), np.int32),
        np.empty(block, like.dtype),
    )


@kernel()
def _forward(row: Array, rows: int, shape: Shape, sizes: Integers, scratch: Scratch) -> Array:
    """Compute the logits (rows, outputs) of the pairs in the scratch; keep their states and slopes."""
    width, outputs = sizes[0], sizes[1]
    weights = matrix(row, 0, shape.tokens, width)
    states, slopes = scratch.states[: rows * width], scratch.slopes[: rows * width]
    for n in range(rows):
        one, two = weights[scratch.tokens[0, n]], weights[scratch.tokens[1, n]]
        target = states[n * width : (n + 1) * width]
        for j in range(width):
            target[j] = one[j] + two[j]
    if shape.activation == QUADRATIC:
        for i in range(len(states)):
            slopes[i] = states[i] + states[i]
            states[i] *= states[i]
    elif shape.activation == ABSOLUTE:
        for i in range(len(states)):
            slopes[i] = np.sign(states[i])
            states[i] = abs(states[i])
    else:
        activate(states, slopes, shape.activation, 0.0, scratch.flow.reshape(1, -1), scratch.bits)
    logits = matrix(scratch.logits, 0, rows, outputs)
    logits[:] = 0
    add_product(states.reshape(rows, width), matrix(row, shape.tokens * width, width, outputs), logits)
    return logits


@kernel()
def _gradient(
    member: int,
    row: Array,
    gradient: Array,
    shape: Shape,
    sizes: Integers,
    pairs: Pairs,
    batch: Integers,
    scratch: Scratch,
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
    everything = np.empty(0, np.int32)
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
        logits = _forward(row, rows, shape, sizes, scratch)
        errors = matrix(scratch.errors, 0, rows, outputs)
        cross_entropy_gradient(logits, scratch.tokens[2], everything, 0, total, errors, scratch.bits)
        for n in range(rows):
            for c in range(outputs):
                errors[n, c] *= scratch.weights[n]
        _add_wide_product(errors.T, matrix(scratch.states, 0, rows, width), by_turned)
        flow = matrix(scratch.flow, 0, rows, width)
        flow[:] = 0
        _add_wide_product(errors, turned, flow)
        for n in range(rows):
            source, slopes = flow[n], scratch.slopes[n * width : (n + 1) * width]
            one, two = by_weights[scratch.tokens[0, n]], by_weights[scratch.tokens[1, n]]
            for j in range(width):
                source[j] *= slopes[j]
                one[j] += source[j]
            for j in range(width):
                two[j] += source[j]
    for i in range(width):
        for c in range(outputs):
            gradient[at + i * outputs + c] = by_turned[c, i]
