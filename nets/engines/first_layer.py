"""The first layer of the fused step, forward and backward, and the data that all kernels of a step use."""

import math
from typing import Any, NamedTuple

from numpy.typing import NDArray

from physics.jit import call, inner_kernel, matrix, piece

Array = NDArray[Any]
Integers = NDArray[Any]

SUM, CONCATENATE, PRODUCT, DATA = range(4)
CROSS_ENTROPY, STABLE_CROSS_ENTROPY, SQUARED_ERROR = range(3)
BLOCK = 128
"""Number of examples in a block. A step needs about 8 arrays of a block, of 50 kB for 100 float32 columns."""


class Shape(NamedTuple):
    """Sizes and options of a network, in a form that kernels can read.

    Attributes
    ----------
    combine : int
        How the embeddings of a pair enter: SUM, CONCATENATE, PRODUCT, or DATA for inputs without embedding.
    loss : int
        CROSS_ENTROPY, STABLE_CROSS_ENTROPY (its gradient keeps its digits), or SQUARED_ERROR.
    tokens, dim : int
        Shape of the embedding.
    encoded : int
        Count of numbers at the start of a member's row that belong to the encoder, which has its own rates.
    penalty : float
        Factor of the mean magnitude of the embedding's components in the loss.
    even : float
        Weight of the even part of SiLU, (x/2) tanh(x/2), which is added to the activation.
    """

    combine: int
    loss: int
    tokens: int
    dim: int
    encoded: int
    penalty: float
    even: float


class Examples(NamedTuple):
    """Training data of an ensemble.

    Attributes
    ----------
    inputs : ndarray of int32, shape (runs, n, 2) or (runs, n, 1)
        Pairs of tokens, or numbers of rows of `data`.
    labels : ndarray of int32, shape (runs, n)
        Class of each example.
    data : ndarray, shape (rows, features)
        Data such as images, which all members share; empty if inputs are tokens.
    targets : ndarray, shape (runs, classes, outputs)
        Target of each class under the squared error; empty under cross-entropy.
    """

    inputs: Integers
    labels: Integers
    data: Array
    targets: Array


class Scratch(NamedTuple):
    """Working memory for one block of examples, and for quantities that are computed once in each step."""

    states: Array  # activations of each layer, one after the other, BLOCK rows each
    slopes: Array  # their derivatives
    inputs: Array  # input of the first layer, if it is not tabulated
    flows: Array  # gradients with respect to the states of two successive layers
    tables: Array  # the first layer of each token, as the first and as the second token of a pair
    drifts: Array  # gradients with respect to the tables
    turned: Array  # transposed weights, at the same positions as in the row
    gradient: Array  # of one member
    everything: Integers  # an empty batch, which stands for all examples


class Calls(NamedTuple):
    """Addresses of the kernels that a step consists of, 0 for those that a network does not need.

    `gradient` calls `forward` (all layers), `tabulate`, `enter`, `leave` and `untabulate` (the first layer
    and its gradient), `turn` (transposed weights), `product` (of matrices), `activate`, `even_part` and `exp`
    (activations), and `errors` (gradients of the loss). An evaluation calls `loss` after `forward`. `update`
    takes the step of the optimizer.
    """

    gradient: int = 0
    forward: int = 0
    tabulate: int = 0
    enter: int = 0
    leave: int = 0
    untabulate: int = 0
    turn: int = 0
    product: int = 0
    activate: int = 0
    even_part: int = 0
    exp: int = 0
    errors: int = 0
    loss: int = 0
    update: int = 0


@inner_kernel()
def tabulate(row: Array, shape: Shape, sizes: Integers, scratch: Scratch, product: int) -> None:
    """Compute the first layer, which is linear, once for each token instead of once for each example.

    Parameters
    ----------
    row : ndarray, shape (numbers,)
        Parameters of one member: its embedding, then its weights.
    shape : Shape
        Sizes and options of the network.
    sizes : ndarray of int64, shape (layers + 1,)
        Number of inputs of the first layer, then widths of the layers.
    scratch : Scratch
        Working memory. Its `tables` are filled with embedding times weights: one table if embeddings are
        added, or two, for the first and the second token, if they are concatenated.
    product : int
        Address of the kernel that adds a product of matrices.
    """
    tokens, dim, width = shape.tokens, shape.dim, sizes[1]
    embedding = matrix(row, 0, tokens, dim)
    scratch.tables[:] = 0
    for part in range(1 if shape.combine == SUM else 2):
        table = matrix(scratch.tables[part], 0, tokens, width)
        weights = matrix(row, tokens * dim + part * dim * width, dim, width)
        call(product, (embedding, False, weights, table, 0))


@inner_kernel()
def gather(
    member: int,
    row: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    batch: Integers,
    start: int,
    scratch: Scratch,
    out: Array,
) -> None:
    """Write the first layer of some examples to `out` (rows, width), before the activation.

    `tabulate` has multiplied the embedding of each token by the weights, so a row is the sum of two rows of
    the tables and the bias. The arguments are as in `copy`.
    """
    rows, width = out.shape
    bias = piece(row, shape.tokens * shape.dim + sizes[0] * width, width)
    left = matrix(scratch.tables[0], 0, shape.tokens, width)
    right = matrix(scratch.tables[0 if shape.combine == SUM else 1], 0, shape.tokens, width)
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        one, two = left[examples.inputs[member, example, 0]], right[examples.inputs[member, example, 1]]
        target = out[n]
        for j in range(width):
            target[j] = one[j] + two[j] + bias[j]


@inner_kernel()
def multiply(
    member: int,
    row: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    batch: Integers,
    start: int,
    scratch: Scratch,
    out: Array,
) -> None:
    """Write the products of the embedding matrices of both tokens of some examples to `out` (rows, dim).

    The embedding of a token holds the dim entries of a square matrix, one row of the matrix after the other,
    and so does each row of `out`. The arguments are as in `copy`.
    """
    dim = shape.dim
    side = int(math.sqrt(dim) + 0.5)
    for n in range(len(out)):
        example = batch[start + n] if len(batch) else start + n
        left = matrix(row, examples.inputs[member, example, 0] * dim, side, side)
        right = matrix(row, examples.inputs[member, example, 1] * dim, side, side)
        product = matrix(out[n], 0, side, side)
        for i in range(side):
            for k in range(side):
                product[i, k] = 0
                for j in range(side):
                    product[i, k] += left[i, j] * right[j, k]


@inner_kernel()
def copy(
    member: int,
    row: Array,
    shape: Shape,
    sizes: Integers,
    examples: Examples,
    batch: Integers,
    start: int,
    scratch: Scratch,
    out: Array,
) -> None:
    """Write the first layer's input of some examples, which are rows of data such as images, to an array.

    All kernels that begin the first layer have these arguments, so that a step can call any of them by its
    address.

    Parameters
    ----------
    member : int
        Number of the member in the ensemble.
    row : ndarray, shape (numbers,)
        Parameters of this member, which begin with the embedding if there is one.
    shape : Shape
        Sizes and options of the network.
    sizes : ndarray of int64, shape (layers + 1,)
        Number of inputs of the first layer, then widths of the layers.
    examples : Examples
        Training data.
    batch : ndarray of int32, shape (size,)
        Examples of a mini-batch; an empty one stands for all examples.
    start : int
        Place in the batch of the first example.
    scratch : Scratch
        Working memory.
    out : ndarray, shape (rows, sizes[0])
        Array that is filled, with one row for each example from `start` on.
    """
    for n in range(len(out)):
        example = batch[start + n] if len(batch) else start + n
        source = examples.data[examples.inputs[member, example, 0]]
        for j in range(len(source)):
            out[n, j] = source[j]


@inner_kernel()
def scatter(
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
    product: int,
) -> None:
    """Add the gradient of a block with respect to the first layer to the gradients of the tables.

    The latter are `scratch.drifts`, from which `untabulate` computes the gradients of the weights and of the
    embedding. `flow` (rows, width) is the gradient with respect to the output of the first layer. The other
    arguments are as in `by_factors`.
    """
    rows, width = flow.shape
    left = matrix(scratch.drifts[0], 0, shape.tokens, width)
    right = matrix(scratch.drifts[0 if shape.combine == SUM else 1], 0, shape.tokens, width)
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        source = flow[n]
        one = left[examples.inputs[member, example, 0]]
        for j in range(width):
            one[j] += source[j]
        two = right[examples.inputs[member, example, 1]]
        for j in range(width):
            two[j] += source[j]


@inner_kernel()
def untabulate(
    row: Array, gradient: Array, shape: Shape, sizes: Integers, scratch: Scratch, product: int
) -> None:
    """Convert the gradients of the tables to those of the weights of the first layer and of the embedding.

    Parameters
    ----------
    row : ndarray, shape (numbers,)
        Parameters of one member: its embedding, then its weights.
    gradient : ndarray, shape (numbers,)
        Gradient of this member, to which the results are added at the same places.
    shape : Shape
        Sizes and options of the network.
    sizes : ndarray of int64, shape (layers + 1,)
        Number of inputs of the first layer, then widths of the layers.
    scratch : Scratch
        Working memory: `drifts` are the gradients of the tables, and `turned` the transposed weights.
    product : int
        Address of the kernel that adds a product of matrices.
    """
    tokens, dim, width = shape.tokens, shape.dim, sizes[1]
    embedding, by_embedding = matrix(row, 0, tokens, dim), matrix(gradient, 0, tokens, dim)
    for part in range(1 if shape.combine == SUM else 2):
        at = tokens * dim + part * dim * width
        drift = matrix(scratch.drifts[part], 0, tokens, width)
        call(product, (embedding, True, drift, matrix(gradient, at, dim, width), 0))
        call(product, (drift, False, matrix(scratch.turned, at, width, dim), by_embedding, 0))


@inner_kernel()
def by_factors(
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
    product: int,
) -> None:
    """Propagate the gradient of a block through the first layer and the matrix products to the embedding.

    Parameters
    ----------
    member, row, shape, sizes, examples, batch, start, scratch
        As in `copy`; `scratch.turned` holds the transposed weights.
    gradient : ndarray, shape (numbers,)
        Gradient of this member, to which the gradient of the embedding is added.
    flow : ndarray, shape (rows, width)
        Gradient with respect to the output of the first layer.
    product : int
        Address of the kernel that adds a product of matrices.
    """
    rows, width = flow.shape
    dim = shape.dim
    side = int(math.sqrt(dim) + 0.5)
    lower = matrix(scratch.flows[0], 0, rows, dim)  # the second array of `flows` holds `flow`
    lower[:] = 0
    call(product, (flow, False, matrix(scratch.turned, shape.tokens * dim, width, dim), lower, 0))
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        a, b = examples.inputs[member, example, 0] * dim, examples.inputs[member, example, 1] * dim
        slope = matrix(lower[n], 0, side, side)
        left, right = matrix(row, a, side, side), matrix(row, b, side, side)
        by_left, by_right = matrix(gradient, a, side, side), matrix(gradient, b, side, side)
        for i in range(side):
            for k in range(side):
                for j in range(side):
                    by_left[i, j] += slope[i, k] * right[j, k]
                    by_right[j, k] += left[i, j] * slope[i, k]
