"""The fused training step: forward, backward and AdamW of one small network at a time, in cache.

A member's parameters are one row of numbers: the embedding (tokens, dim), then weights (inputs, outputs) and
biases of each dense layer. Examples go through the network in blocks whose activations stay in the second
level of cache. Several members run at once, each in a thread of its own that holds no lock. Everything is
generic in sizes, activation, loss and the way two tokens are combined, and in the number type.

Why it is fast: no graph, no allocation and no dispatch within a step; products that are tuned to matrices of
a few dozen columns; and where tokens are added or concatenated, the first layer is linear in each token, so
it is computed once a token, `E W_a` and `E W_b`, and gathered, not once an example.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from physics.jit import kernel

Array = NDArray[Any]
Integers = NDArray[Any]

SUM, CONCATENATE, PRODUCT, DATA = range(4)
RELU, SILU, TANH, ASINH = range(4)
CROSS_ENTROPY, SQUARED_ERROR = range(2)
BLOCK = 128
"""Examples of a block: 128 rows of 100 numbers are 50 kB in float32, and a step needs about eight such."""


class Shape(NamedTuple):
    """What a network is; `encoded` counts the numbers at the head of a row that the encoder owns."""

    combine: int
    activation: int
    loss: int
    tokens: int
    dim: int
    encoded: int
    penalty: float
    even: float


class Examples(NamedTuple):
    """What is learned: tokens (runs, n, 2) or rows of `data` (runs, n, 1), labels (runs, n), targets."""

    inputs: Integers
    labels: Integers
    data: Array
    targets: Array


class Scratch(NamedTuple):
    """Room for one block, and for what is computed once a step."""

    states: Array  # activations of each layer, one after the other, BLOCK rows each
    slopes: Array  # their derivatives
    inputs: Array  # input of the first layer, where it is not tabulated
    flows: Array  # gradients by the states of two neighbouring layers
    tables: Array  # the first layer of each token, at the first and at the second place
    drifts: Array  # gradients by the tables
    turned: Array  # weights, transposed, at the places they have in the row
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
    """Take `count` optimiser steps with each of some members, in place.

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
            head = shape.encoded
            number = step + offset + 1
            for start, end, rate, decay in (
                (0, head, rates[member, 0], rates[member, 1]),
                (head, len(gradient), rates[member, 2], rates[member, 3]),
            ):
                _adamw(
                    parameters[member, start:end],
                    gradient[start:end],
                    first[member, start:end],
                    second[member, start:end],
                    number,
                    rate,
                    decay,
                    betas,
                )


@kernel()
def gradients(
    members: Integers, parameters: Array, out: Array, shape: Shape, sizes: Integers, examples: Examples
) -> None:
    """Gradient of the full training loss of some members, into `out` (runs, numbers)."""
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
    """Mean loss and accuracy of some members, into (runs,) arrays of float64."""
    scratch = _scratch(shape, sizes, parameters)
    everything = np.empty(0, np.int32)
    size = examples.labels.shape[1]
    for member in members:
        total, hits = 0.0, 0
        _tabulate(parameters[member], shape, sizes, scratch)
        for start in range(0, size, BLOCK):
            rows = min(BLOCK, size - start)
            outputs = _forward(
                member, parameters[member], shape, sizes, examples, everything, start, rows, scratch
            )
            if shape.loss == CROSS_ENTROPY:
                part, right = _cross_entropy(outputs, examples.labels[member, start : start + rows], scratch)
            else:
                part, right = _squared_error(
                    outputs, examples.labels[member, start : start + rows], examples.targets[member]
                )
            total += part
            hits += right
        loss[member] = total / size
        accuracy[member] = hits / size


@kernel(reorder=True)
def _cross_entropy(logits: Array, labels: Integers, scratch: Scratch) -> tuple[float, int]:
    """Sum of the cross-entropies, and how often the largest logit, the first of equals, is right."""
    rows, width = logits.shape
    powers = _matrix(scratch.flows[0], 0, rows, width)
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
    _exponential(powers.reshape(-1), scratch.bits)
    for n in range(rows):
        norm = 0.0
        for j in range(width):
            norm += powers[n, j]
        total += math.log(norm)
    return total, hits


@kernel(reorder=True)
def _squared_error(outputs: Array, labels: Integers, targets: Array) -> tuple[float, int]:
    """Sum of the mean squared errors, and how often the nearest target, the first of equals, is right."""
    rows, width = outputs.shape
    total, hits = 0.0, 0
    for n in range(rows):
        best, nearest = 0, np.inf
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
    return total, hits


@kernel()
def _scratch(shape: Shape, sizes: Integers, like: Array) -> Scratch:
    """Allocate what a task of any number of steps needs."""
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
def _matrix(numbers: Array, start: int, rows: int, columns: int) -> Array:
    """View a contiguous piece as a matrix."""
    return numbers[start : start + rows * columns].reshape(rows, columns)


@kernel()
def _tabulate(row: Array, shape: Shape, sizes: Integers, scratch: Scratch) -> None:
    """Compute the first layer for each token instead of for each example: exact, as it is linear."""
    if shape.combine >= PRODUCT:
        return
    tokens, dim = shape.tokens, shape.dim
    embedding = _matrix(row, 0, tokens, dim)
    for part in range(1 if shape.combine == SUM else 2):
        table = _matrix(scratch.tables[part], 0, tokens, sizes[1])
        table[:] = 0
        _add_product(embedding, _matrix(row, tokens * dim + part * dim * sizes[1], dim, sizes[1]), table)


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
    """Outputs (rows, outputs) of the examples from `start`; states and slopes of all layers are kept."""
    layers = len(sizes) - 1
    at = shape.tokens * shape.dim
    kept = 0
    below = _matrix(scratch.states, 0, rows, sizes[1])
    for layer in range(layers):
        inputs, width = sizes[layer], sizes[layer + 1]
        bias = row[at + inputs * width : at + (inputs + 1) * width]
        states = _matrix(scratch.states, kept, rows, width)
        if layer == 0 and shape.combine < PRODUCT:
            _gather(member, shape, examples, batch, start, bias, scratch, states)
        else:
            if layer == 0:
                below = _matrix(scratch.inputs, 0, rows, inputs)
                _combine(member, row, shape, examples, batch, start, below)
            _fill_rows(bias, states)
            _add_product(below, _matrix(row, at, inputs, width), states)
        if layer < layers - 1:
            piece = slice(kept, kept + rows * width)
            _activate(
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
    left = _matrix(scratch.tables[0], 0, shape.tokens, width)
    right = _matrix(scratch.tables[0 if shape.combine == SUM else 1], 0, shape.tokens, width)
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
    """Products of embedding matrices, or rows of data, into `out` (rows, sizes[0])."""
    dim = shape.dim
    side = int(math.sqrt(dim) + 0.5)
    for n in range(len(out)):
        example = batch[start + n] if len(batch) else start + n
        if shape.combine == DATA:
            image = examples.data[examples.inputs[member, example, 0]]
            for j in range(len(image)):
                out[n, j] = image[j]
            continue
        left = _matrix(row, examples.inputs[member, example, 0] * dim, side, side)
        right = _matrix(row, examples.inputs[member, example, 1] * dim, side, side)
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
    """Gradient of the mean loss of a batch (of all examples, if it is empty) by a member's parameters."""
    layers = len(sizes) - 1
    total = len(batch) if len(batch) else examples.labels.shape[1]
    gradient[:] = 0
    scratch.drifts[:] = 0
    _tabulate(row, shape, sizes, scratch)
    _turn(row, shape, sizes, scratch.turned)
    for start in range(0, total, BLOCK):
        rows = min(BLOCK, total - start)
        outputs = _forward(member, row, shape, sizes, examples, batch, start, rows, scratch)
        flow = _matrix(scratch.flows[layers % 2], 0, rows, sizes[layers])
        _loss_gradient(member, outputs, shape, examples, batch, start, total, flow, scratch.bits)
        end = len(row)
        kept = len(scratch.states) - BLOCK * sizes[layers]
        for layer in range(layers - 1, 0, -1):
            inputs, width = sizes[layer], sizes[layer + 1]
            at = end - (inputs + 1) * width
            kept -= BLOCK * inputs
            _add_rows(flow, gradient[end - width : end])
            _add_product(
                _matrix(scratch.states, kept, rows, inputs).T, flow, _matrix(gradient, at, inputs, width)
            )
            lower = _matrix(scratch.flows[layer % 2], 0, rows, inputs)
            lower[:] = 0
            _add_product(flow, _matrix(scratch.turned, at, width, inputs), lower)
            _multiply(scratch.flows[layer % 2], scratch.slopes[kept : kept + rows * inputs])
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
    """Pass a block's gradient through the first layer; to the tables where it is tabulated."""
    rows, width = flow.shape
    tokens, dim = shape.tokens, shape.dim
    at = tokens * dim
    _add_rows(flow, gradient[at + sizes[0] * width : at + (sizes[0] + 1) * width])
    if shape.combine < PRODUCT:
        left = _matrix(scratch.drifts[0], 0, tokens, width)
        right = _matrix(scratch.drifts[0 if shape.combine == SUM else 1], 0, tokens, width)
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
    inputs = _matrix(scratch.inputs, 0, rows, sizes[0])
    _add_product(inputs.T, flow, _matrix(gradient, at, sizes[0], width))
    if shape.combine == DATA:
        return
    side = int(math.sqrt(dim) + 0.5)
    lower = _matrix(scratch.flows[0], 0, rows, dim)  # layer 0: the other one holds `flow`
    lower[:] = 0
    _add_product(flow, _matrix(scratch.turned, at, width, dim), lower)
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        a, b = examples.inputs[member, example, 0] * dim, examples.inputs[member, example, 1] * dim
        slope = lower[n].reshape(side, side)
        left, right = _matrix(row, a, side, side), _matrix(row, b, side, side)
        by_left, by_right = _matrix(gradient, a, side, side), _matrix(gradient, b, side, side)
        for i in range(side):
            for k in range(side):
                for j in range(side):
                    by_left[i, j] += slope[i, k] * right[j, k]
                    by_right[j, k] += left[i, j] * slope[i, k]


@kernel()
def _from_tables(row: Array, gradient: Array, shape: Shape, sizes: Integers, scratch: Scratch) -> None:
    """Turn the gradients by the tables into those by first-layer weights and embedding."""
    tokens, dim, width = shape.tokens, shape.dim, sizes[1]
    embedding, by_embedding = _matrix(row, 0, tokens, dim), _matrix(gradient, 0, tokens, dim)
    for part in range(1 if shape.combine == SUM else 2):
        at = tokens * dim + part * dim * width
        drift = _matrix(scratch.drifts[part], 0, tokens, width)
        _add_product(embedding.T, drift, _matrix(gradient, at, dim, width))
        _add_product(drift, _matrix(scratch.turned, at, width, dim), by_embedding)


@kernel(reorder=True)
def _loss_gradient(
    member: int,
    outputs: Array,
    shape: Shape,
    examples: Examples,
    batch: Integers,
    start: int,
    total: int,
    out: Array,
    bits: Integers,
) -> None:
    """Gradient of the mean loss by the outputs of a block."""
    rows, width = outputs.shape
    if shape.loss == SQUARED_ERROR:
        share = outputs.dtype.type(2 / (total * width))
        for n in range(rows):
            example = batch[start + n] if len(batch) else start + n
            target = examples.targets[member, examples.labels[member, example]]
            for j in range(width):
                out[n, j] = share * (outputs[n, j] - target[j])
        return
    for n in range(rows):
        largest = outputs[n, 0]
        for j in range(width):
            largest = max(largest, outputs[n, j])
        for j in range(width):
            out[n, j] = outputs[n, j] - largest
    _exponential(out.reshape(-1), bits)
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        norm = outputs.dtype.type(0)
        for j in range(width):
            norm += out[n, j]
        norm = 1 / (norm * total)
        for j in range(width):
            out[n, j] *= norm
        out[n, examples.labels[member, example]] -= outputs.dtype.type(1 / total)


@kernel()
def _turn(row: Array, shape: Shape, sizes: Integers, out: Array) -> None:
    """Transpose the weights that gradients go back through; those on a concatenation in two halves."""
    at = shape.tokens * shape.dim
    for layer in range(len(sizes) - 1):
        inputs, width = sizes[layer], sizes[layer + 1]
        if layer > 0 or shape.combine != DATA:
            halves = 2 if layer == 0 and shape.combine == CONCATENATE else 1
            part = inputs // halves
            for half in range(halves):
                start = at + half * part * width
                for i in range(part):  # loops: assigning arrays would compile for seconds
                    for j in range(width):
                        out[start + j * part + i] = row[start + i * width + j]
        at += (inputs + 1) * width


TILE_ROWS = 6
VECTOR_BYTES = 64


def _tile(vectors: int) -> Any:
    """Make what adds A @ B to a tile of `out`: TILE_ROWS rows from `i`, `vectors` vectors from column `j`.

    Twelve sums of sixteen float32 stay in registers while the loop goes over the inner dimension; each turn
    loads two vectors of B and six numbers of A for twelve fused products, so that arithmetic is the bound.
    Rows beyond the last are computed as the last, and stored as it; columns beyond the last are masked. On
    matrices this small it is twice as fast as a BLAS call, whose packing does not pay; and the order of the
    sum is fixed.
    """

    @intrinsic
    def add_tile(typing_context: Any, A: Any, B: Any, out: Any, i: Any, j: Any) -> Any:
        signature = types.void(A, B, out, types.intp, types.intp)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            real, integer = context.get_data_type(signature.args[2].dtype), ir.IntType(32)
            size = signature.args[2].dtype.bitwidth // 8
            lanes = VECTOR_BYTES // size
            vector = ir.VectorType(real, lanes)
            numbers, mask = ir.VectorType(integer, lanes), ir.VectorType(ir.IntType(1), lanes)
            arrays = [
                context.make_array(kind)(context, builder, value)
                for kind, value in zip(signature.args[:3], arguments[:3], strict=True)
            ]
            first_row, first_column = arguments[3:]
            word = first_row.type
            bytes_ = [builder.bitcast(array.data, ir.IntType(8).as_pointer()) for array in arrays]
            strides = [cgutils.unpack_tuple(builder, array.strides) for array in arrays]
            rows, inner = cgutils.unpack_tuple(builder, arrays[0].shape)
            columns = cgutils.unpack_tuple(builder, arrays[1].shape)[1]

            def move(pointer: Any, distance: Any, kind: Any) -> Any:
                return builder.bitcast(builder.gep(pointer, [distance]), kind.as_pointer())

            def spread(value: Any, kind: Any) -> Any:
                nowhere = ir.Constant(kind, ir.Undefined)
                single = builder.insert_element(nowhere, value, ir.Constant(integer, 0))
                return builder.shuffle_vector(single, nowhere, ir.Constant(numbers, [0] * lanes))

            def declare(name: str, result: Any, *parameters: Any) -> Any:
                kind = ir.FunctionType(result, parameters)
                suffix = f"v{lanes}f{8 * size}.p0"
                return cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.{name}.{suffix}")

            load = declare("load", vector, vector.as_pointer(), integer, mask, vector)
            store = declare("store", ir.VoidType(), vector, vector.as_pointer(), integer, mask)
            alignment, zero = ir.Constant(integer, size), ir.Constant(vector, [0.0] * lanes)
            offset = builder.mul(first_column, word(size))
            left = spread(builder.trunc(builder.sub(columns, first_column), integer), numbers)
            masks = [
                builder.icmp_signed("<", ir.Constant(numbers, [v * lanes + k for k in range(lanes)]), left)
                for v in range(vectors)
            ]
            last = builder.sub(rows, word(1))
            row_numbers = []
            for q in range(TILE_ROWS):
                row = builder.add(first_row, word(q))
                row_numbers.append(builder.select(builder.icmp_signed("<", row, last), row, last))
            left_rows = [builder.gep(bytes_[0], [builder.mul(r, strides[0][0])]) for r in row_numbers]
            out_rows = [
                builder.gep(bytes_[2], [builder.add(builder.mul(r, strides[2][0]), offset)])
                for r in row_numbers
            ]
            places = [(q, v) for q in range(TILE_ROWS) for v in range(vectors)]
            starts = [
                builder.call(
                    load, [move(out_rows[q], word(v * VECTOR_BYTES), vector), alignment, masks[v], zero]
                )
                for q, v in places
            ]
            before = builder.block
            loop, end = builder.append_basic_block("inner"), builder.append_basic_block("end")
            builder.cbranch(builder.icmp_signed(">", inner, word(0)), loop, end)

            builder.position_at_end(loop)
            k = builder.phi(word)
            k.add_incoming(word(0), before)
            sums = [builder.phi(vector) for _ in places]
            for total, start in zip(sums, starts, strict=True):
                total.add_incoming(start, before)
            right = builder.gep(bytes_[1], [builder.add(builder.mul(k, strides[1][0]), offset)])
            factors = [
                builder.call(load, [move(right, word(v * VECTOR_BYTES), vector), alignment, masks[v], zero])
                for v in range(vectors)
            ]
            along = builder.mul(k, strides[0][1])
            spreads = [
                spread(builder.load(move(pointer, along, real), align=size), vector) for pointer in left_rows
            ]
            fuse = {"flags": ("contract",)}
            added = [
                builder.fadd(builder.fmul(spreads[q], factors[v], **fuse), total, **fuse)
                for (q, v), total in zip(places, sums, strict=True)
            ]
            following = builder.add(k, word(1))
            k.add_incoming(following, loop)
            for total, value in zip(sums, added, strict=True):
                total.add_incoming(value, loop)
            builder.cbranch(builder.icmp_signed("<", following, inner), loop, end)

            builder.position_at_end(end)
            for (q, v), start, value in zip(places, starts, added, strict=True):
                result = builder.phi(vector)
                result.add_incoming(start, before)
                result.add_incoming(value, loop)
                starts[q * vectors + v] = result
            for (q, v), result in zip(places, starts, strict=True):
                place = move(out_rows[q], word(v * VECTOR_BYTES), vector)
                builder.call(store, [result, place, alignment, masks[v]])
            return context.get_dummy_value()

        return signature, generate

    return add_tile


_add_narrow_tile, _add_wide_tile = _tile(1), _tile(2)


@kernel()
def _add_product(A: Array, B: Array, out: Array) -> None:
    """Add A @ B to `out`: A (m, k) in any order, B (k, n) and out (m, n) with contiguous rows."""
    rows, columns = out.shape
    lanes = VECTOR_BYTES // out.itemsize
    column = 0
    while column < columns:
        wide = columns - column > lanes
        for row in range(0, rows, TILE_ROWS):
            if wide:
                _add_wide_tile(A, B, out, row, column)
            else:
                _add_narrow_tile(A, B, out, row, column)
        column += 2 * lanes if wide else lanes


@kernel()
def _fill_rows(row: Array, out: Array) -> None:
    """Write the same row to every row of `out`."""
    for n in range(len(out)):
        target = out[n]
        for j in range(len(row)):
            target[j] = row[j]


@kernel()
def _add_rows(rows: Array, out: Array) -> None:
    """Add the sum of the rows to `out`."""
    for n in range(len(rows)):
        row = rows[n]
        for j in range(len(out)):
            out[j] += row[j]


@kernel()
def _multiply(numbers: Array, factors: Array) -> None:
    """Multiply the first numbers by as many factors as there are."""
    for i in range(len(factors)):
        numbers[i] *= factors[i]


@kernel()
def _activate(
    states: Array, slopes: Array, activation: int, even: float, room: Array, bits: Integers
) -> None:
    """Apply the activation in place, and put its derivative into `slopes`.

    With h = x/2 and t = tanh h, which `room` keeps, the even part is h t and its derivative
    (t + h (1 - t²)) / 2.
    """
    one, half = states.dtype.type(1), states.dtype.type(0.5)
    halves, tangents = room[0, : len(states)], room[1, : len(states)]
    if even > 0:
        for i in range(len(states)):
            halves[i] = half * states[i]
            tangents[i] = halves[i]
        _hyperbolic_tangent(tangents, slopes, bits)
    if activation == RELU:
        for i in range(len(states)):
            slopes[i] = one if states[i] > 0 else 0 * one
            states[i] = max(states[i], 0 * one)
    elif activation == SILU:
        for i in range(len(states)):
            slopes[i] = -states[i]
        _exponential(slopes, bits)
        for i in range(len(states)):
            gate = one / (one + slopes[i])
            states[i] *= gate
            slopes[i] = gate + states[i] * (one - gate)
    elif activation == TANH:
        _hyperbolic_tangent(states, slopes, bits)
        for i in range(len(states)):
            slopes[i] = one - states[i] * states[i]
    else:
        for i in range(len(states)):
            slopes[i] = one / np.sqrt(states[i] * states[i] + one)
        _inverse_hyperbolic_sine(states, bits)
    if even > 0:
        weight = states.dtype.type(even)
        for i in range(len(states)):
            states[i] += weight * (halves[i] * tangents[i])
            slopes[i] += weight * half * (tangents[i] + halves[i] * (one - tangents[i] * tangents[i]))


F = np.float32
LOG2E, LN2_HIGH, LN2_LOW = F(1.44269504088896341), F(0.693359375), F(-2.12194440e-4)
EXPONENTIAL = (F(5.0e-1), F(1.6666665459e-1), F(4.1665795894e-2), F(8.3334519073e-3), F(1.3981999507e-3))
LAST_EXPONENTIAL = F(1.9875691500e-4)
TANGENT = (F(-3.33332819422e-1), F(1.33314422036e-1), F(-5.37397155531e-2), F(2.06390887954e-2))
LAST_TANGENT = F(-5.70498872745e-3)
LOWEST, HIGHEST, ONE, HALF, TWO, SMALL = F(-87.0), F(88.0), F(1.0), F(0.5), F(2.0), F(0.625)
SINE = (F(-1.6666288134e-1), F(7.4847586088e-2), F(-4.2699340972e-2))
LAST_SINE = F(2.0122003309e-2)
LOGARITHM = (
    F(3.3333331174e-1),
    F(-2.4999993993e-1),
    F(2.0000714765e-1),
    F(-1.6668057665e-1),
    F(1.4249322787e-1),
    F(-1.2420140846e-1),
    F(1.1676998740e-1),
    F(-1.1514610310e-1),
)
LAST_LOGARITHM, ROOT_HALF = F(7.0376836292e-2), F(0.707106781186547524)


@kernel()
def _exponential(x: Array, bits: Integers) -> None:
    """Exponential in place; in float32 by Cephes' polynomial, which the compiler vectorises.

    x = n ln 2 + r with |r| <= ln 2 / 2; the relative error stays below 2e-7, and arguments are held between
    -87 and 88, where float32 ends. No sum is reordered: ln 2 is taken in two parts.
    """
    if x.itemsize != 4:
        for i in range(len(x)):
            x[i] = math.exp(x[i])
        return
    c0, c1, c2, c3, c4 = EXPONENTIAL
    for i in range(len(x)):
        value = min(max(x[i], LOWEST), HIGHEST)
        power = np.floor(value * LOG2E + HALF)
        bits[i] = (np.int32(power) + np.int32(127)) << np.int32(23)
        r = value - power * LN2_HIGH
        r = r - power * LN2_LOW
        series = ((((LAST_EXPONENTIAL * r + c4) * r + c3) * r + c2) * r + c1) * r + c0
        x[i] = series * (r * r) + r + ONE
    scale = bits.view(np.float32)
    for i in range(len(x)):
        x[i] *= scale[i]


@kernel()
def _hyperbolic_tangent(x: Array, room: Array, bits: Integers) -> None:
    """Hyperbolic tangent in place; in float32 with a relative error below 3e-7, small arguments included."""
    if x.itemsize != 4:
        for i in range(len(x)):
            x[i] = math.tanh(x[i])
        return
    c0, c1, c2, c3 = TANGENT
    for i in range(len(x)):
        room[i] = TWO * abs(x[i])
    _exponential(room, bits)
    for i in range(len(x)):
        square = x[i] * x[i]
        series = (((LAST_TANGENT * square + c3) * square + c2) * square + c1) * square + c0
        near = series * square * x[i] + x[i]
        far = ONE - TWO / (room[i] + ONE)
        far = far if x[i] > 0 else -far
        x[i] = near if abs(x[i]) < SMALL else far


@kernel()
def _inverse_hyperbolic_sine(x: Array, bits: Integers) -> None:
    """Inverse hyperbolic sine in place; in float32 with a relative error below 3e-7, up to where x² ends.

    It is ln(|x| + sqrt(x² + 1)) with the sign of x, and a series where |x| is small. The logarithm, Cephes'
    too, takes the bits of a number apart: a power of two, and a factor between 1/√2 and √2.
    """
    if x.itemsize != 4:
        for i in range(len(x)):
            x[i] = math.asinh(x[i])
        return
    s0, s1, s2 = SINE
    c0, c1, c2, c3, c4, c5, c6, c7 = LOGARITHM
    numbers = bits.view(np.float32)
    for i in range(len(x)):
        numbers[i] = abs(x[i]) + np.sqrt(x[i] * x[i] + ONE)
    for i in range(len(x)):
        power = F((bits[i] >> np.int32(23)) - np.int32(126))
        bits[i] = (bits[i] & np.int32(0x007FFFFF)) | np.int32(0x3F000000)
        factor = numbers[i]
        low = factor < ROOT_HALF
        power = power - ONE if low else power
        r = TWO * factor - ONE if low else factor - ONE
        square = r * r
        series = ((((LAST_LOGARITHM * r + c7) * r + c6) * r + c5) * r + c4) * r + c3
        series = ((series * r + c2) * r + c1) * r + c0
        far = r + (series * r * square + power * LN2_LOW - HALF * square) + power * LN2_HIGH
        square = x[i] * x[i]
        near = (((LAST_SINE * square + s2) * square + s1) * square + s0) * square * x[i] + x[i]
        x[i] = near if abs(x[i]) < HALF else far * (x[i] / abs(x[i]))  # NaN and infinity become NaN


@kernel(reorder=True)
def _adamw(
    values: Array,
    gradient: Array,
    first: Array,
    second: Array,
    number: int,
    rate: float,
    decay: float,
    betas: Array,
) -> None:
    """One step of decoupled AdamW, in PyTorch's order; the scalars are computed in float64.

    At a rate of 0 the values stay and the moments move, as PyTorch's do.
    """
    real = values.dtype.type
    keep1, take1 = real(betas[0]), real(1 - betas[0])
    keep2, take2 = real(betas[1]), real(1 - betas[1])
    shrink, size = real(1 - rate * decay), real(rate / (1 - betas[0] ** number))
    root, epsilon = real(1 / math.sqrt(1 - betas[1] ** number)), real(betas[2])
    for i in range(len(values)):
        g = gradient[i]
        m = keep1 * first[i] + take1 * g
        v = keep2 * second[i] + take2 * (g * g)
        first[i], second[i] = m, v
        values[i] = shrink * values[i] - size * (m / (np.sqrt(v) * root + epsilon))
