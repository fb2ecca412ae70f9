"""The fused training step: forward, backward and AdamW of one small network at a time, within the cache.

The parameters of a member are one row of numbers: the embedding (tokens, dim), then weights (inputs, outputs)
and biases of each dense layer. Examples pass through the network in blocks whose activations stay in the
second level of cache. Several members train at once, each in a thread that holds no interpreter lock. The
code is generic in the sizes, the activation, the loss, the way two tokens are combined, and the number type.

It is fast for three reasons. A step builds no graph, allocates nothing and dispatches nothing. Products are
tuned to matrices of a few dozen columns. If tokens are added or concatenated, the first layer is linear in
each token, so `E W_a` and `E W_b` are computed once for each token instead of once for each example.

It also starts fast. A step is composed of kernels that are called by their addresses, so that each is
compiled once, and only those that the network needs.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.engines import activations, first_layer, losses, optimizers
from nets.engines.first_layer import (
    BLOCK,
    CONCATENATE,
    DATA,
    PRODUCT,
    SQUARED_ERROR,
    Calls,
    Examples,
    Scratch,
    Shape,
)
from nets.engines.products import add_product, add_rows, fill_rows, multiply, room
from physics.jit import address_of, call, inner_kernel, kernel, matrix, piece

Array = NDArray[Any]
Integers = NDArray[Any]


def room_for(shape: Shape, sizes: Integers, numbers: int, dtype: Any) -> Scratch:
    """Allocate the working memory of one task, for members with `numbers` parameters of the type `dtype`."""
    tabulated = shape.tokens * sizes[1] if shape.combine < PRODUCT else 0
    return Scratch(
        room(BLOCK * sum(sizes[1:]), dtype),
        room(BLOCK * sum(sizes[1:]), dtype),
        room(0 if tabulated else BLOCK * sizes[0], dtype),
        room((2, BLOCK * max(sizes)), dtype),
        room((2, tabulated), dtype),
        room((2, tabulated), dtype),
        room(numbers, dtype),
        room(numbers, dtype),
        room(0, np.int32),
    )


def calls_for(
    shape: Shape, activation: str, sizes: Integers, examples: Examples, scratch: Scratch, betas: Array
) -> Calls:
    """Compile the kernels of a step that are not compiled yet, and return their addresses.

    The arguments are as in `gradients` and `train_members`. Only the types of arrays matter.
    """
    row, batch, matrix = scratch.gradient, scratch.everything, np.empty((1, 1), scratch.gradient.dtype)
    net, where, calls = (shape, sizes, examples, batch), (0, row), Calls()
    calls = functions_for(activation, shape.even, shape.loss, matrix, row, batch, betas)._replace(
        gradient=address_of(_gradient, *where, row, *net, scratch, calls),
        forward=address_of(_forward, *where, *net, 0, 1, scratch, calls),
        turn=address_of(_turn, row, 0, 0, sizes, row),
    )
    into, back = (*where, *net, 0, scratch, matrix), (*where, row, *net, 0, matrix, scratch, 0)
    if shape.combine == DATA:
        return calls._replace(enter=address_of(first_layer.copy, *into))
    if shape.combine == PRODUCT:
        return calls._replace(
            enter=address_of(first_layer.multiply, *into), leave=address_of(first_layer.by_factors, *back)
        )
    return calls._replace(
        tabulate=address_of(first_layer.tabulate, row, shape, sizes, scratch, 0),
        enter=address_of(first_layer.gather, *into),
        leave=address_of(first_layer.scatter, *back),
        untabulate=address_of(first_layer.untabulate, row, row, shape, sizes, scratch, 0),
    )


def functions_for(
    activation: str, even: float, loss: int, matrix: Array, row: Array, labels: Integers, betas: Array
) -> Calls:
    """Compile the kernels that dense networks and two-layer networks have in common.

    The arrays are examples: only their types matter, because the kernels are compiled for these.

    Parameters
    ----------
    activation : str
        Name of the activation function.
    even : float
        Weight of the even part of SiLU that is added to the activation. If it is 0, no kernel is compiled for
        it.
    loss : int
        Loss, as in `Shape`.
    matrix : ndarray, shape (n, m)
        A matrix in the number type of the training.
    row : ndarray, shape (n,)
        A row of parameters in the same type.
    labels : ndarray of int32, shape (n,)
        Labels of examples.
    betas : ndarray of float64, shape (3,)
        Decay rates of the moments, and epsilon.

    Returns
    -------
    Calls
        Addresses of the compiled kernels; 0 for those that are not needed, or not shared.
    """
    entropy = loss != SQUARED_ERROR
    errors = losses.GRADIENTS[loss]
    value = losses.cross_entropy if entropy else losses.squared_error
    calls = Calls(
        product=address_of(add_product, matrix, True, matrix, matrix, 0),
        activate=address_of(activations.ACTIVATION[activation], row, row, 0),
        errors=address_of(errors, matrix, labels, matrix, labels, 0, 1, 0, matrix),
        loss=address_of(value, matrix, labels, matrix, row, 0, betas),
        update=address_of(optimizers.adamw, row, row, row, row, 0, 1, betas, betas),
    )
    if activation in ("silu", "tanh") or even > 0 or entropy:
        calls = calls._replace(exp=address_of(activations.exponential, row))
    if even > 0:
        even_part = address_of(activations.with_even_part, 0, row, row, 0.0, row, row, 0)
        calls = calls._replace(even_part=even_part)
    return calls


@kernel()
def train_members(
    members: Integers,
    parameters: Array,
    first: Array,
    second: Array,
    shape: Shape,
    sizes: Integers,
    examples: Any,
    batches: Integers,
    step: int,
    count: int,
    rates: Array,
    betas: Array,
    scratch: Any,
    calls: Calls,
) -> None:
    """Take optimizer steps with each of some members, in place.

    Parameters
    ----------
    members : ndarray of int64, shape (n,)
        Numbers of the members.
    parameters, first, second : ndarray, shape (runs, numbers)
        Parameters and both moments of all members.
    shape, sizes
        Sizes and options of the network, as in `gradients`.
    examples, scratch : tuple
        Training data and working memory, of the types that the kernel `calls.gradient` was compiled for.
    batches : ndarray of int32, shape (runs, count, size)
        Places of the examples of each step in the training set; `size` is 0 for the full batch.
    step, count : int
        Number of steps that were taken before, and number of steps to take.
    rates : ndarray of float64, shape (runs, 4)
        Learning rate and weight decay of the encoder, then of the decoder.
    betas : ndarray of float64, shape (3,)
        Decay rates of the moments, and epsilon.
    calls : Calls
        Addresses of the kernels of a step.
    """
    for member in members:
        row, gradient = parameters[member], scratch.gradient
        for offset in range(count):
            batch = batches[member, offset] if batches.shape[2] else batches[0, 0]
            call(calls.gradient, (member, row, gradient, shape, sizes, examples, batch, scratch, calls))
            number = step + offset + 1
            call(
                calls.update,
                (row, gradient, first[member], second[member], shape.encoded, number, rates[member], betas),
            )


@kernel()
def gradients(
    members: Integers,
    parameters: Array,
    out: Array,
    shape: Shape,
    sizes: Integers,
    examples: Any,
    scratch: Any,
    calls: Calls,
) -> None:
    """Write the gradient of the full training loss of some members to an array.

    Parameters
    ----------
    members : ndarray of int64, shape (n,)
        Numbers of the members.
    parameters : ndarray, shape (runs, numbers)
        Parameters of all members.
    out : ndarray, shape (runs, numbers)
        Array whose rows of these members are filled.
    shape : Shape
        Sizes and options of the network.
    sizes : ndarray of int64, shape (layers + 1,)
        Number of inputs of the first layer, then widths of the layers.
    examples, scratch : tuple
        Training data and working memory, of the types that the kernel `calls.gradient` was compiled for.
    calls : Calls
        Addresses of the kernels of a step.
    """
    batch = scratch.everything
    for member in members:
        row = parameters[member]
        call(calls.gradient, (member, row, out[member], shape, sizes, examples, batch, scratch, calls))


@kernel()
def evaluate(
    members: Integers,
    parameters: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    loss: Array,
    accuracy: Array,
    sums: Array,
    scratch: Scratch,
    calls: Calls,
) -> None:
    """Write the mean loss and the accuracy of some members on a set of examples to arrays.

    Parameters
    ----------
    members, parameters, shape, sizes, scratch, calls
        As in `gradients`.
    examples : Examples
        Examples to evaluate on; without any, loss and accuracy are NaN.
    loss, accuracy : ndarray of float64, shape (runs,)
        Arrays whose entries of these members are filled: nats or mean squares, and fractions.
    sums : ndarray of float64, shape (2,)
        Working memory for the sums over examples.
    """
    batch, size = scratch.everything, examples.labels.shape[1]
    width = sizes[len(sizes) - 1]
    kept = len(scratch.states) - BLOCK * width  # the last layer is kept last
    for member in members:
        sums[:] = 0.0
        row = parameters[member]
        if shape.combine < PRODUCT:
            call(calls.tabulate, (row, shape, sizes, scratch, calls.product))
        for start in range(0, size, BLOCK):
            rows = min(BLOCK, size - start)
            call(calls.forward, (member, row, shape, sizes, examples, batch, start, rows, scratch, calls))
            labels = piece(examples.labels[member], start, rows)
            outputs, targets = matrix(scratch.states, kept, rows, width), examples.targets[member]
            call(calls.loss, (outputs, labels, targets, scratch.flows[0], calls.exp, sums))
        loss[member] = sums[0] / size
        accuracy[member] = sums[1] / size


@inner_kernel()
def _turn(row: Array, start: int, halves: int, sizes: Integers, out: Array) -> None:
    """Write the transposed weights of all layers, which begin at `start` of a member's `row`, to `out`.

    Those of the first layer are transposed as a whole if `halves` is 1, as two halves if it is 2 (for a
    concatenation), and not at all if it is 0.
    """
    for layer in range(len(sizes) - 1):
        inputs, width = sizes[layer], sizes[layer + 1]
        parts = halves if layer == 0 else 1
        for half in range(parts):
            part = inputs // parts
            at = start + half * part * width
            for i in range(part):
                for j in range(width):
                    out[at + j * part + i] = row[at + i * width + j]
        start += (inputs + 1) * width


@inner_kernel()
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
    calls: Calls,
) -> None:
    """Compute the states and slopes of all layers for `rows` examples of a batch, from the place `start`."""
    layers = len(sizes) - 1
    at, kept = shape.tokens * shape.dim, 0
    tabulated = shape.combine < PRODUCT
    below = matrix(scratch.inputs, 0, rows, sizes[0])
    for layer in range(layers):
        inputs, width = sizes[layer], sizes[layer + 1]
        states = matrix(scratch.states, kept, rows, width)
        if layer == 0:
            into = states if tabulated else below
            call(calls.enter, (member, row, shape, sizes, examples, batch, start, scratch, into))
        if layer > 0 or not tabulated:
            fill_rows(piece(row, at + inputs * width, width), states)
            call(calls.product, (below, False, matrix(row, at, inputs, width), states, 0))
        if layer < layers - 1:
            size = rows * width
            values, slopes = piece(states, 0, size), piece(scratch.slopes, kept, size)
            if shape.even > 0:
                halves, tangents = piece(scratch.flows[0], 0, size), piece(scratch.flows[1], 0, size)
                call(
                    calls.even_part,
                    (calls.activate, values, slopes, shape.even, halves, tangents, calls.exp),
                )
            else:
                call(calls.activate, (values, slopes, calls.exp))
        at += (inputs + 1) * width
        kept += BLOCK * width
        below = states


# -- back ----------------------------------------------------------------------------------------------------


@inner_kernel()
def _gradient(
    member: int,
    row: Array,
    gradient: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    batch: Integers,
    scratch: Scratch,
    calls: Calls,
) -> None:
    """Write the gradient of a member's mean loss over a batch; an empty `batch` stands for all examples."""
    layers = len(sizes) - 1
    labels, targets = examples.labels[member], examples.targets[member]
    total = len(batch) if len(batch) else len(labels)
    tabulated = shape.combine < PRODUCT
    gradient[:] = 0
    if tabulated:
        scratch.drifts[:] = 0
        call(calls.tabulate, (row, shape, sizes, scratch, calls.product))
    halves = 0 if shape.combine == DATA else 2 if shape.combine == CONCATENATE else 1
    call(calls.turn, (row, shape.tokens * shape.dim, halves, sizes, scratch.turned))
    for start in range(0, total, BLOCK):
        rows = min(BLOCK, total - start)
        call(calls.forward, (member, row, shape, sizes, examples, batch, start, rows, scratch, calls))
        width = sizes[layers]
        end, kept = len(row), len(scratch.states) - BLOCK * width
        outputs = matrix(scratch.states, kept, rows, width)
        flow = matrix(scratch.flows[layers % 2], 0, rows, width)
        call(calls.errors, (outputs, labels, targets, batch, start, total, calls.exp, flow))
        for layer in range(layers - 1, -1, -1):
            inputs, width = sizes[layer], sizes[layer + 1]
            at = end - (inputs + 1) * width
            by_bias, by_weights = piece(gradient, end - width, width), matrix(gradient, at, inputs, width)
            add_rows(flow, by_bias)
            if layer == 0:
                if not tabulated:
                    below = matrix(scratch.inputs, 0, rows, inputs)
                    call(calls.product, (below, True, flow, by_weights, 0))
                if shape.combine != DATA:
                    call(
                        calls.leave,
                        (
                            member,
                            row,
                            gradient,
                            shape,
                            sizes,
                            examples,
                            batch,
                            start,
                            flow,
                            scratch,
                            calls.product,
                        ),
                    )
                continue
            kept -= BLOCK * inputs
            call(calls.product, (matrix(scratch.states, kept, rows, inputs), True, flow, by_weights, 0))
            lower = matrix(scratch.flows[layer % 2], 0, rows, inputs)
            lower[:] = 0
            call(calls.product, (flow, False, matrix(scratch.turned, at, width, inputs), lower, 0))
            multiply(scratch.flows[layer % 2], piece(scratch.slopes, kept, rows * inputs))
            flow, end = lower, at
    if tabulated:
        call(calls.untabulate, (row, gradient, shape, sizes, scratch, calls.product))
    if shape.penalty > 0:
        numbers = shape.tokens * shape.dim  # of the embedding; the encoder may be longer
        for i in range(numbers):
            gradient[i] += shape.penalty / numbers * np.sign(row[i])
