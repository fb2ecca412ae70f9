"""The fused training step: forward, backward and AdamW of one small network at a time, in cache.

A member's parameters are one row of numbers: the embedding (tokens, dim), then weights (inputs, outputs) and
biases of each dense layer. Examples go through the network in blocks whose activations stay in the second
level of cache. Several members run at once, each in its own thread without the interpreter lock. The code is
generic in the sizes, the activation, the loss, the way two tokens are combined, and the number type.

It is fast for three reasons. A step builds no graph, allocates nothing and dispatches nothing. Products are
tuned to matrices of a few dozen columns. If tokens are added or concatenated, the first layer is linear in
each token, so `E W_a` and `E W_b` are computed once for each token instead of once for each example.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nets.engines.functions import (
    activate,
    cross_entropy,
    cross_entropy_gradient,
    squared_error,
    squared_error_gradient,
    update,
)
from nets.engines.products import add_product, add_rows, fill_rows, matrix, multiply, transpose_weights
from physics.jit import kernel

Array = NDArray[Any]
Integers = NDArray[Any]

SUM, CONCATENATE, PRODUCT, DATA = range(4)
CROSS_ENTROPY, SQUARED_ERROR = range(2)
BLOCK = 128
"""Examples of a block: 128 rows of 100 numbers are 50 kB in float32, and a step needs about eight such."""


class Shape(NamedTuple):
    """Description of a network; the first `encoded` numbers of a row belong to the encoder."""

    combine: int
    activation: int
    loss: int
    tokens: int
    dim: int
    encoded: int
    penalty: float
    even: float


class Examples(NamedTuple):
    """Training data: tokens (runs, n, 2) or rows of `data` (runs, n, 1), labels (runs, n), and targets."""

    inputs: Integers
    labels: Integers
    data: Array
    targets: Array


class Scratch(NamedTuple):
    """Working memory for one block, and for quantities that are computed once in each step."""

    states: Array  # activations of each layer, one after the other, BLOCK rows each
    slopes: Array  # their derivatives
    inputs: Array  # input of the first layer, if it is not tabulated
    flows: Array  # gradients with respect to the states of two neighboring layers
    tables: Array  # the first layer of each token, at the first and at the second place
    drifts: Array  # gradients with respect to the tables
    turned: Array  # transposed weights, at the same places as in the row
    bits: Integers


@kernel()
def train_members(
    members: Integers,
    parameters: Array,
    first: Array,
    second: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    batches: Integers,
    step: int,
    count: int,
    rates: Array,
    betas: Array,
) -> None:
    """Take `count` optimizer steps with each of some members, in place.

    Shapes: parameters, first, second (runs, numbers); batches (runs, count, size), of size 0 for the full
    batch; rates (runs, 4): learning rate and weight decay of the encoder, then of the decoder; betas: the
    decay rates of the moments, and epsilon.
    """
    gradient = np.empty(parameters.shape[1], parameters.dtype)
    scratch = _scratch(shape, sizes, parameters)
    for member in members:
        for offset in range(count):
            batch = batches[member, offset] if batches.shape[2] else batches[0, 0]
            _gradient(member, parameters[member], gradient, shape, sizes, examples, batch, scratch)
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
    members: Integers, parameters: Array, out: Array, shape: Shape, sizes: Integers, examples: Examples
) -> None:
    """Write the gradient of the full training loss of some members to `out` (runs, numbers)."""
    scratch = _scratch(shape, sizes, parameters)
    everything = np.empty(0, np.int32)
    for member in members:
        _gradient(member, parameters[member], out[member], shape, sizes, examples, everything, scratch)


@kernel()
def evaluate(
    members: Integers,
    parameters: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    loss: Array,
    accuracy: Array,
) -> None:
    """Write the mean loss and the accuracy of some members to (runs,) arrays of float64."""
    scratch = _scratch(shape, sizes, parameters)
    everything, size = np.empty(0, np.int32), examples.labels.shape[1]
    for member in members:
        total, hits = 0.0, 0
        _tabulate(parameters[member], shape, sizes, scratch)
        for start in range(0, size, BLOCK):
            rows = min(BLOCK, size - start)
            outputs = _forward(
                member, parameters[member], shape, sizes, examples, everything, start, rows, scratch
            )
            labels = examples.labels[member, start : start + rows]
            if shape.loss == CROSS_ENTROPY:
                part, right = cross_entropy(outputs, labels, scratch.flows[0], scratch.bits)
            else:
                part, right = squared_error(outputs, labels, examples.targets[member])
            total += part
            hits += right
        loss[member] = total / size
        accuracy[member] = hits / size


@kernel()
def _scratch(shape: Shape, sizes: Integers, like: Array) -> Scratch:
    """Allocate the working memory of a task of any number of steps."""
    widest, total = 0, 0
    for width in sizes[1:]:
        widest = max(widest, width)
        total += BLOCK * width
    tabulated = shape.tokens * sizes[1] if shape.combine < PRODUCT else 0
    return Scratch(
        np.empty(total, like.dtype),
        np.empty(total, like.dtype),
        np.empty(0 if tabulated else BLOCK * sizes[0], like.dtype),
        np.empty((2, BLOCK * max(widest, sizes[0])), like.dtype),
        np.empty((2, tabulated), like.dtype),
        np.empty((2, tabulated), like.dtype),
        np.empty(like.shape[1], like.dtype),
        np.empty(BLOCK * widest, np.int32),
    )


@kernel()
def _tabulate(row: Array, shape: Shape, sizes: Integers, scratch: Scratch) -> None:
    """Compute the first layer for each token instead of for each example: exact, as it is linear."""
    if shape.combine >= PRODUCT:
        return
    tokens, dim = shape.tokens, shape.dim
    embedding = matrix(row, 0, tokens, dim)
    for part in range(1 if shape.combine == SUM else 2):
        table = matrix(scratch.tables[part], 0, tokens, sizes[1])
        table[:] = 0
        add_product(embedding, matrix(row, tokens * dim + part * dim * sizes[1], dim, sizes[1]), table)


@kernel()
def _forward(
    member: int,
    row: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    batch: Integers,
    start: int,
    rows: int,
    scratch: Scratch,
) -> Array:
    """Compute the outputs (rows, outputs) of the examples from `start`; keep all states and slopes."""
    layers = len(sizes) - 1
    at = shape.tokens * shape.dim
    kept = 0
    below = matrix(scratch.states, 0, rows, sizes[1])
    for layer in range(layers):
        inputs, width = sizes[layer], sizes[layer + 1]
        bias = row[at + inputs * width : at + (inputs + 1) * width]
        states = matrix(scratch.states, kept, rows, width)
        if layer == 0 and shape.combine < PRODUCT:
            _gather(member, shape, examples, batch, start, bias, scratch, states)
        else:
            if layer == 0:
                below = matrix(scratch.inputs, 0, rows, inputs)
                _combine(member, row, shape, examples, batch, start, below)
            fill_rows(bias, states)
            add_product(below, matrix(row, at, inputs, width), states)
        if layer < layers - 1:
            piece = slice(kept, kept + rows * width)
            activate(
                scratch.states[piece],
                scratch.slopes[piece],
                shape.activation,
                shape.even,
                scratch.flows,
                scratch.bits,
            )
        at += (inputs + 1) * width
        kept += BLOCK * width
        below = states
    return below


@kernel()
def _gather(
    member: int,
    shape: Shape,
    examples: Examples,
    batch: Integers,
    start: int,
    bias: Array,
    scratch: Scratch,
    out: Array,
) -> None:
    """Add the tables' rows of the two tokens of each example."""
    rows, width = out.shape
    left = matrix(scratch.tables[0], 0, shape.tokens, width)
    right = matrix(scratch.tables[0 if shape.combine == SUM else 1], 0, shape.tokens, width)
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        one, two = left[examples.inputs[member, example, 0]], right[examples.inputs[member, example, 1]]
        target = out[n]
        for j in range(width):
            target[j] = one[j] + two[j] + bias[j]


@kernel()
def _combine(
    member: int, row: Array, shape: Shape, examples: Examples, batch: Integers, start: int, out: Array
) -> None:
    """Write products of embedding matrices, or rows of data, to `out` (rows, sizes[0])."""
    dim = shape.dim
    side = int(math.sqrt(dim) + 0.5)
    for n in range(len(out)):
        example = batch[start + n] if len(batch) else start + n
        if shape.combine == DATA:
            image = examples.data[examples.inputs[member, example, 0]]
            for j in range(len(image)):
                out[n, j] = image[j]
            continue
        left = matrix(row, examples.inputs[member, example, 0] * dim, side, side)
        right = matrix(row, examples.inputs[member, example, 1] * dim, side, side)
        product = out[n].reshape(side, side)
        for i in range(side):
            for k in range(side):
                product[i, k] = 0
                for j in range(side):
                    product[i, k] += left[i, j] * right[j, k]


@kernel()
def _gradient(
    member: int,
    row: Array,
    gradient: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    batch: Integers,
    scratch: Scratch,
) -> None:
    """Compute the gradient of a member's mean loss over a batch, or over all examples if it is empty."""
    layers = len(sizes) - 1
    labels = examples.labels[member]
    total = len(batch) if len(batch) else len(labels)
    gradient[:] = 0
    scratch.drifts[:] = 0
    _tabulate(row, shape, sizes, scratch)
    halves = 0 if shape.combine == DATA else 2 if shape.combine == CONCATENATE else 1
    transpose_weights(row, shape.tokens * shape.dim, halves, sizes, scratch.turned)
    for start in range(0, total, BLOCK):
        rows = min(BLOCK, total - start)
        outputs = _forward(member, row, shape, sizes, examples, batch, start, rows, scratch)
        flow = matrix(scratch.flows[layers % 2], 0, rows, sizes[layers])
        if shape.loss == CROSS_ENTROPY:
            cross_entropy_gradient(outputs, labels, batch, start, total, flow, scratch.bits)
        else:
            squared_error_gradient(outputs, labels, examples.targets[member], batch, start, total, flow)
        end = len(row)
        kept = len(scratch.states) - BLOCK * sizes[layers]
        for layer in range(layers - 1, 0, -1):
            inputs, width = sizes[layer], sizes[layer + 1]
            at = end - (inputs + 1) * width
            kept -= BLOCK * inputs
            add_rows(flow, gradient[end - width : end])
            add_product(
                matrix(scratch.states, kept, rows, inputs).T, flow, matrix(gradient, at, inputs, width)
            )
            lower = matrix(scratch.flows[layer % 2], 0, rows, inputs)
            lower[:] = 0
            add_product(flow, matrix(scratch.turned, at, width, inputs), lower)
            multiply(scratch.flows[layer % 2], scratch.slopes[kept : kept + rows * inputs])
            flow, end = lower, at
        _first_layer(member, row, gradient, shape, sizes, examples, batch, start, flow, scratch)
    if shape.combine < PRODUCT:
        _from_tables(row, gradient, shape, sizes, scratch)
    if shape.penalty > 0:
        share = shape.penalty / shape.encoded
        for i in range(shape.encoded):
            gradient[i] += share * np.sign(row[i])


@kernel()
def _first_layer(
    member: int,
    row: Array,
    gradient: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    batch: Integers,
    start: int,
    flow: Array,
    scratch: Scratch,
) -> None:
    """Pass a block's gradient through the first layer, or to the tables if the layer is tabulated."""
    rows, width = flow.shape
    tokens, dim = shape.tokens, shape.dim
    at = tokens * dim
    add_rows(flow, gradient[at + sizes[0] * width : at + (sizes[0] + 1) * width])
    if shape.combine < PRODUCT:
        left = matrix(scratch.drifts[0], 0, tokens, width)
        right = matrix(scratch.drifts[0 if shape.combine == SUM else 1], 0, tokens, width)
        for n in range(rows):
            example = batch[start + n] if len(batch) else start + n
            source = flow[n]
            one = left[examples.inputs[member, example, 0]]
            for j in range(width):
                one[j] += source[j]
            two = right[examples.inputs[member, example, 1]]
            for j in range(width):
                two[j] += source[j]
        return
    inputs = matrix(scratch.inputs, 0, rows, sizes[0])
    add_product(inputs.T, flow, matrix(gradient, at, sizes[0], width))
    if shape.combine == DATA:
        return
    side = int(math.sqrt(dim) + 0.5)
    lower = matrix(scratch.flows[0], 0, rows, dim)  # layer 0: the other one holds `flow`
    lower[:] = 0
    add_product(flow, matrix(scratch.turned, at, width, dim), lower)
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        a, b = examples.inputs[member, example, 0] * dim, examples.inputs[member, example, 1] * dim
        slope = lower[n].reshape(side, side)
        left, right = matrix(row, a, side, side), matrix(row, b, side, side)
        by_left, by_right = matrix(gradient, a, side, side), matrix(gradient, b, side, side)
        for i in range(side):
            for k in range(side):
                for j in range(side):
                    by_left[i, j] += slope[i, k] * right[j, k]
                    by_right[j, k] += left[i, j] * slope[i, k]


@kernel()
def _from_tables(row: Array, gradient: Array, shape: Shape, sizes: Integers, scratch: Scratch) -> None:
    """Turn the gradients of the tables into those of the first layer and of the embedding."""
    tokens, dim, width = shape.tokens, shape.dim, sizes[1]
    embedding, by_embedding = matrix(row, 0, tokens, dim), matrix(gradient, 0, tokens, dim)
    for part in range(1 if shape.combine == SUM else 2):
        at = tokens * dim + part * dim * width
        drift = matrix(scratch.drifts[part], 0, tokens, width)
        add_product(embedding.T, drift, matrix(gradient, at, dim, width))
        add_product(drift, matrix(scratch.turned, at, width, dim), by_embedding)
