"""The fused training step: forward, backward and AdamW of one small network at a time, within the cache.

The parameters of a member are one row of numbers: the embedding (tokens, dim), then weights (inputs, outputs)
and biases of each dense layer. Examples pass through the network in blocks whose activations stay in the
second level of cache. Several members train at once, each in a thread that holds no interpreter lock.

If tokens are added or concatenated, the first layer is linear in each token: it is computed once for each
token, and the rows of two tokens are added for each example. The neurons of `nets.TwoLayer` are such a first
layer whose rows are the embedding itself; its number of inputs is 0, because it has no parameters.

Examples that differ only in the order of tokens that are added are one example with a weight.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nets.engines.functions import activate, exponential
from nets.engines.products import add_product, room
from physics.jit import address_of, call, kernel, matrix, piece

Array = NDArray[Any]
Integers = NDArray[Any]
Stores = tuple[Array, Array, Array]
Options = tuple[Array, Array]

COMBINE = {"sum": 0, "concatenate": 1, "neurons": 2, "product": 3, "data": 4}
SUM, CONCATENATE, NEURONS, PRODUCT, DATA = range(5)
CROSS_ENTROPY, STABLE_CROSS_ENTROPY, SQUARED_ERROR = range(3)
BLOCK, NEURONS_BLOCK = 128, 48
"""Number of examples in a block. A step needs about 8 arrays of a block, of 50 kB for 100 float32 columns."""
LEAST_SINGLE, LEAST_DOUBLE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float64).tiny)
"""Least normal numbers of both types."""


class Net(NamedTuple):
    """Sizes and options of a network, in a form that kernels can read."""

    combine: int  # how the embeddings of a pair enter, as in `COMBINE`
    activation: int  # as in `functions.ACTIVATIONS`
    loss: int
    tokens: int  # shape of the embedding
    dim: int
    encoded: int  # count of numbers at the start of a row that belong to the encoder
    bias: int  # number of biases of an output: 1, or 0 for neurons
    penalty: float  # factor of the mean magnitude of the embedding's components in the loss
    even: float  # weight of the even part of SiLU that is added to the activation
    product: int = 0  # addresses of kernels, by which they are compiled once, and not for each caller
    activate: int = 0
    exponential: int = 0
    forward: int = 0
    back: int = 0
    gradient: int = 0
    update: int = 0


class Examples(NamedTuple):
    """Examples of all members; those of a member beyond its count are no examples."""

    inputs: Integers  # pairs of tokens, int32 (runs, n, 2), or numbers of rows of `data` (runs, n, 1)
    labels: Integers  # int32 (runs, n)
    weights: Array  # how often each occurs, (runs, n)
    counts: Integers  # number of examples that differ, (runs,)
    total: int  # number of all examples
    data: Array  # such as images, (rows, features); empty if inputs are tokens
    targets: Array  # (runs, classes, outputs) under the squared error; otherwise empty


class Work(NamedTuple):
    """Working memory for one block of examples, and for quantities that are computed once in each step."""

    states: Array  # activations of each layer, one after the other, a block of rows each
    slopes: Array  # their derivatives
    inputs: Array  # input of the first layer, if it is not computed for each token
    flows: Array  # gradients with respect to the states of two successive layers
    tables: Array  # the first layer of each token, as the first and as the second token of a pair
    drifts: Array  # gradients with respect to the tables
    turned: Array  # transposed weights, at the same positions as in the row
    gradient: Array  # of one member
    block: Integers  # int32 (3, rows): tokens a, tokens b and labels of the present block
    weights: Array  # (rows,) of the present block


def work_for(net: Net, sizes: Integers, numbers: int, dtype: Any) -> Work:
    """Allocate the working memory of one thread, for members with `numbers` parameters."""
    rows = NEURONS_BLOCK if net.combine == NEURONS else BLOCK
    states = rows * sum(sizes[1:])
    tables = net.tokens * sizes[1] if net.combine < NEURONS else 0
    return Work(
        states=room(states, dtype),
        slopes=room(states, dtype),
        inputs=room(rows * sizes[0] if net.combine > NEURONS else 0, dtype),
        flows=room((2, rows * max(sizes)), dtype),
        tables=room((2, tables), dtype),
        drifts=room((2, tables), dtype),
        turned=room(numbers, dtype),
        gradient=room(numbers, dtype),
        block=room((3, rows), np.int32),
        weights=room(rows, dtype),
    )


class Job(NamedTuple):
    """What a kernel works with: a network, its examples, and the memory of one thread."""

    net: Net
    sizes: Integers  # number of inputs of the first layer, widths of the layers, int64 (layers + 1,)
    examples: Examples
    work: Work


def compiled(job: Job) -> Net:
    """Compile the kernels that others call, if necessary, and return the network with their addresses."""
    row, batch = job.work.gradient, job.work.block[0]
    matrix = np.empty((1, 1), row.dtype)
    return job.net._replace(
        product=address_of(add_product, matrix, True, matrix, matrix),
        activate=address_of(activate, 0, 0.0, row, row, row, row),
        exponential=address_of(exponential, row),
        forward=address_of(_forward, row, job, 0),
        back=address_of(_back, row, row, job, 0),
        gradient=address_of(gradient, 0, row, row, job, batch),
        update=address_of(adamw, row, row, row, row, 0, 1, np.empty(4), np.empty(3)),
    )


@kernel()
def train_members(
    members: Integers, stores: Stores, job: Job, batches: Integers, step: int, count: int, options: Options
) -> None:
    """Take `count` optimizer steps after `step` earlier ones with each of some members, in place.

    `stores` are the parameters and both moments, (runs, numbers) each. `batches` (runs, count, size) holds
    places of examples, where a size of 0 stands for all. `options` are `rates` (runs, 4) and `betas`, as in
    `adamw`.
    """
    (parameters, first, second), (rates, betas) = stores, options
    net, gradient = job.net, job.work.gradient
    for member in members:
        row = parameters[member]
        for offset in range(count):
            batch = batches[member, offset] if batches.shape[2] else batches[0, 0]
            call(net.gradient, (member, row, gradient, job, batch))
            number, moments = step + offset + 1, (first[member], second[member])
            call(net.update, (row, gradient, *moments, net.encoded, number, rates[member], betas))


@kernel()
def evaluate(
    members: Integers, parameters: Array, job: Job, loss: Array, accuracy: Array, sums: Array
) -> None:
    """Write the mean loss and the accuracy (runs,) of some members to arrays; NaN without examples.

    `sums` (2,) is working memory. The answer is the class of the largest logit or of the nearest target.
    """
    net, sizes, examples, work = job
    width, rows = sizes[-1], work.block.shape[1]
    for member in members:
        sums[:] = 0.0
        row = parameters[member]
        _tabulate(row, net, sizes, work)
        for start in range(0, examples.counts[member], rows):
            size = min(rows, examples.counts[member] - start)
            _load(member, examples, work.block[0, :0], start, size, work)
            call(net.forward, (row, job, size))
            outputs = matrix(work.states, len(work.states) - rows * width, size, width)
            if net.loss == SQUARED_ERROR:
                _squared_error(outputs, examples.targets[member], work, sums)
            else:
                _cross_entropy(outputs, net, work, sums)
        loss[member] = sums[0] / examples.total if examples.total else np.nan
        accuracy[member] = sums[1] / examples.total if examples.total else np.nan


@kernel()
def gradient(member: int, row: Array, out: Array, job: Job, batch: Integers) -> None:
    """Write the gradient of a member's mean loss over a batch; an empty `batch` stands for all examples."""
    net, sizes, examples, work = job
    rows, width = work.block.shape[1], sizes[-1]
    size = len(batch) if len(batch) else examples.counts[member]
    total = len(batch) if len(batch) else examples.total
    out[:] = 0
    if net.combine < NEURONS:
        work.drifts[:] = 0
    _tabulate(row, net, sizes, work)
    _turn(row, net, sizes, work.turned)
    for start in range(0, size, rows):
        count = min(rows, size - start)
        _load(member, examples, batch, start, count, work)
        call(net.forward, (row, job, count))
        outputs = matrix(work.states, len(work.states) - rows * width, count, width)
        errors = matrix(work.flows[(len(sizes) - 1) % 2], 0, count, width)
        if net.loss == SQUARED_ERROR:
            _squared_error_gradient(outputs, examples.targets[member], total, work, errors)
        else:
            _cross_entropy_gradient(outputs, net, total, work, errors)
        call(net.back, (row, out, job, count))
    if net.combine < NEURONS:
        _untabulate(row, out, net, sizes, work)
    if net.penalty > 0:
        numbers = net.tokens * net.dim  # of the embedding; the encoder may be longer
        for i in range(numbers):
            out[i] += net.penalty / numbers * np.sign(row[i])


# -- the step in parts -------------------------------------------------------------------------------------


@kernel()
def _load(member: int, examples: Examples, batch: Integers, start: int, rows: int, work: Work) -> None:
    """Copy the tokens, labels and weights of the examples of a block, from the place `start` of a batch."""
    parts = examples.inputs.shape[2]
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        for part in range(parts):
            work.block[part, n] = examples.inputs[member, example, part]
        work.block[2, n] = examples.labels[member, example]
        work.weights[n] = examples.weights[member, example]


@kernel()
def _tabulate(row: Array, net: Net, sizes: Integers, work: Work) -> None:
    """Compute the first layer, if it is linear in each token, for each token at each place."""
    if net.combine >= NEURONS:
        return
    tokens, dim, width = net.tokens, net.dim, sizes[1]
    embedding = matrix(row, 0, tokens, dim)
    work.tables[:] = 0
    for part in range(1 if net.combine == SUM else 2):
        weights = matrix(row, tokens * dim + part * dim * width, dim, width)
        call(net.product, (embedding, False, weights, matrix(work.tables[part], 0, tokens, width)))


@kernel()
def _untabulate(row: Array, gradient: Array, net: Net, sizes: Integers, work: Work) -> None:
    """Add the gradients of the weights of the first layer and of the embedding, from those of the tables."""
    tokens, dim, width = net.tokens, net.dim, sizes[1]
    embedding, by_embedding = matrix(row, 0, tokens, dim), matrix(gradient, 0, tokens, dim)
    for part in range(1 if net.combine == SUM else 2):
        at = tokens * dim + part * dim * width
        drift = matrix(work.drifts[part], 0, tokens, width)
        call(net.product, (embedding, True, drift, matrix(gradient, at, dim, width)))
        call(net.product, (drift, False, matrix(work.turned, at, width, dim), by_embedding))


@kernel()
def _turn(row: Array, net: Net, sizes: Integers, out: Array) -> None:
    """Write the transposed weights of all layers to `out`, at their places in a member's `row`.

    The halves of a first layer of two concatenated tokens are transposed by themselves; weights of data are
    not needed.
    """
    start = net.tokens * net.dim
    for layer in range(len(sizes) - 1):
        inputs, width = sizes[layer], sizes[layer + 1]
        parts = 2 if layer == 0 and net.combine == CONCATENATE else 1
        height = inputs // parts
        for part in range(0 if layer == 0 and net.combine == DATA else parts):
            source = matrix(row, start + part * height * width, height, width)
            target = matrix(out, start + part * height * width, width, height)
            for i in range(height):
                for j in range(width):
                    target[j, i] = source[i, j]
        start += (inputs + net.bias) * width


@kernel()
def _forward(row: Array, job: Job, rows: int) -> None:
    """Compute the states and slopes of all layers for the present block of `rows` examples."""
    net, sizes, examples, work = job
    block, layers = work.block.shape[1], len(sizes) - 1
    at, kept = net.tokens * net.dim, 0
    for layer in range(layers):
        inputs, width = sizes[layer], sizes[layer + 1]
        states = matrix(work.states, kept, rows, width)
        bias = piece(row, at + inputs * width, net.bias * width)
        added = layer == 0 and net.combine <= NEURONS
        if added:
            first = row if net.combine == NEURONS else work.tables[0]
            second = work.tables[1] if net.combine == CONCATENATE else first
            left, right = matrix(first, 0, net.tokens, width), matrix(second, 0, net.tokens, width)
            for n in range(rows):
                one, two, target = left[work.block[0, n]], right[work.block[1, n]], states[n]
                for j in range(width):
                    target[j] = one[j] + two[j]
        else:
            states[:] = 0
        for n in range(rows):
            target = states[n]
            for j in range(len(bias)):
                target[j] += bias[j]
        if not added:
            below = matrix(work.states, kept - block * inputs, rows, inputs)
            if layer == 0:
                below = matrix(work.inputs, 0, rows, inputs)
                _enter(row, net, examples.data, work.block, below)
            call(net.product, (below, False, matrix(row, at, inputs, width), states))
        if layer < layers - 1:
            size = rows * width
            free = piece(work.flows[0], 0, size), piece(work.flows[1], 0, size)
            numbers = piece(work.states, kept, size), piece(work.slopes, kept, size)
            call(net.activate, (net.activation, net.even, *numbers, *free))
        at += (inputs + net.bias) * width
        kept += block * width


@kernel()
def _enter(row: Array, net: Net, data: Array, block: Integers, out: Array) -> None:
    """Write the inputs of the first layer to `out` (rows, inputs): rows of data, or products of matrices."""
    side = int(math.sqrt(net.dim) + 0.5)
    for n in range(len(out)):
        target = out[n]
        if net.combine == DATA:
            source = data[block[0, n]]
            for j in range(len(target)):
                target[j] = source[j]
            continue
        left = matrix(row, block[0, n] * net.dim, side, side)
        right = matrix(row, block[1, n] * net.dim, side, side)
        for i in range(side):
            for k in range(side):
                total = row[0] - row[0]
                for j in range(side):
                    total += left[i, j] * right[j, k]
                target[i * side + k] = total


@kernel()
def _back(row: Array, gradient: Array, job: Job, rows: int) -> None:
    """Add the contribution of a block to the gradient, from the errors in `work.flows`."""
    net, sizes, _, work = job
    block, layers = work.block.shape[1], len(sizes) - 1
    flow = matrix(work.flows[layers % 2], 0, rows, sizes[-1])
    end, kept = len(row), len(work.states) - block * sizes[-1]
    for layer in range(layers - 1, -1, -1):
        inputs, width = sizes[layer], sizes[layer + 1]
        at = end - (inputs + net.bias) * width
        bias = piece(gradient, at + inputs * width, net.bias * width)
        for n in range(rows):
            source = flow[n]
            for j in range(len(bias)):
                bias[j] += source[j]
        by_weights = matrix(gradient, at, inputs, width)
        if layer == 0 and net.combine <= NEURONS:
            for part in range(2):
                place = part if net.combine == CONCATENATE else 0
                by_tokens = gradient if net.combine == NEURONS else work.drifts[place]
                drifts = matrix(by_tokens, 0, net.tokens, width)
                for n in range(rows):
                    source, target = flow[n], drifts[work.block[part, n]]
                    for j in range(width):
                        target[j] += source[j]
            return
        kept -= block * inputs
        below = (
            matrix(work.inputs, 0, rows, inputs) if layer == 0 else matrix(work.states, kept, rows, inputs)
        )
        call(net.product, (below, True, flow, by_weights))
        if layer == 0 and net.combine == DATA:
            return
        lower = matrix(work.flows[layer % 2], 0, rows, inputs)
        lower[:] = 0
        call(net.product, (flow, False, matrix(work.turned, at, width, inputs), lower))
        if layer == 0:
            _back_to_factors(row, gradient, net, lower, work)
            return
        numbers, slopes = (
            piece(work.flows[layer % 2], 0, rows * inputs),
            piece(work.slopes, kept, rows * inputs),
        )
        for i in range(len(slopes)):
            numbers[i] *= slopes[i]
        flow, end = lower, at


@kernel()
def _back_to_factors(row: Array, gradient: Array, net: Net, lower: Array, work: Work) -> None:
    """Add the gradient of the embedding, from that of the products of two matrices, `lower` (rows, dim)."""
    side = int(math.sqrt(net.dim) + 0.5)
    for n in range(len(lower)):
        a, b = work.block[0, n] * net.dim, work.block[1, n] * net.dim
        slope = matrix(lower[n], 0, side, side)
        left, right = matrix(row, a, side, side), matrix(row, b, side, side)
        by_left, by_right = matrix(gradient, a, side, side), matrix(gradient, b, side, side)
        for i in range(side):
            for k in range(side):
                for j in range(side):
                    by_left[i, j] += slope[i, k] * right[j, k]
                    by_right[j, k] += left[i, j] * slope[i, k]


# -- losses ------------------------------------------------------------------------------------------------


@kernel(reorder=True)
def _cross_entropy(logits: Array, net: Net, work: Work, sums: Array) -> None:
    """Add the cross-entropies of a block, and the number of correct answers, to `sums`.

    Among equally large logits the first is the answer; logits of NaN are none.
    """
    rows, width = logits.shape
    labels, powers = work.block[2], matrix(work.flows[0], 0, rows, width)
    for n in range(rows):
        largest = logits[n, 0]
        for j in range(width):
            largest = max(largest, logits[n, j])
        for j in range(width):
            powers[n, j] = logits[n, j] - largest
        first = 0
        while first < labels[n] and powers[n, first] < 0:
            first += 1
        sums[1] += work.weights[n] * (first == labels[n] and powers[n, first] == 0)
        sums[0] -= work.weights[n] * powers[n, labels[n]]
    call(net.exponential, (piece(work.flows[0], 0, rows * width),))
    for n in range(rows):
        norm = 0.0
        for j in range(width):
            norm += powers[n, j]
        sums[0] += work.weights[n] * math.log(norm)


@kernel(reorder=True)
def _squared_error(outputs: Array, targets: Array, work: Work, sums: Array) -> None:
    """Add the squared errors of a block, means over the outputs, and the number of correct answers to `sums`.

    Among equally near targets the first is the answer; outputs that are not finite are none.
    """
    rows, width = outputs.shape
    labels = work.block[2]
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
                sums[0] += work.weights[n] * distance / width
        sums[1] += work.weights[n] * (best == labels[n])


@kernel(reorder=True)
def _squared_error_gradient(outputs: Array, targets: Array, total: int, work: Work, out: Array) -> None:
    """Write the gradient of the mean squared error over `total` examples with respect to the outputs."""
    rows, width = outputs.shape
    share = outputs.dtype.type(2 / (total * width))
    for n in range(rows):
        target, factor = targets[work.block[2, n]], share * work.weights[n]
        for j in range(width):
            out[n, j] = factor * (outputs[n, j] - target[j])


@kernel(reorder=True)
def _cross_entropy_gradient(logits: Array, net: Net, total: int, work: Work, out: Array) -> None:
    """Write the gradient of the mean cross-entropy over `total` examples with respect to the logits.

    Contributions of probabilities below the normal numbers of the type become 0, as processors multiply
    subnormal numbers slowly. For the right class, 1 is subtracted from its probability q, as in PyTorch. In
    float32, q is a multiple of 6e-8 near 1, so that q - 1 is wrong by its own size once the loss is that
    small; under the stable
    loss, the probabilities of all other classes are added instead, with all their digits.
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
    call(net.exponential, (piece(out, 0, rows * width),))
    for n in range(rows):
        right, norm, weight = work.block[2, n], zero, work.weights[n]
        for j in range(width):
            norm += out[n, j]
        norm = weight / (norm * total)
        for j in range(width):
            share = out[n, j] * norm
            out[n, j] = share if share >= least else zero
        if net.loss == STABLE_CROSS_ENTROPY:
            out[n, right] = zero
            others = zero
            for j in range(width):
                others += out[n, j]
            out[n, right] = -others
        else:
            out[n, right] -= weight * logits.dtype.type(1 / total)


# -- the optimizer -----------------------------------------------------------------------------------------


@kernel(reorder=True)
def adamw(
    values: Array,
    slopes: Array,
    first: Array,
    second: Array,
    head: int,
    step: int,
    rates: Array,
    betas: Array,
) -> None:
    """Take one step of AdamW with decoupled weight decay, in PyTorch's order; scalars are in float64.

    Numbers below the normal ones of the type become 0, since processors may take twenty times as long with
    them: weight decay brings the weights of units that have died there.

    Parameters
    ----------
    values, slopes, first, second : ndarray, shape (numbers,)
        Parameters of a member, their gradient, and both moments. All but the gradient are changed.
    head : int
        Count of values of the encoder, which come first.
    step : int
        Number of the step, from 1.
    rates : ndarray of float64, shape (4,)
        Learning rate and weight decay of the encoder, and then of the other values. At a learning rate of 0,
        the values stay and the moments change, as in PyTorch.
    betas : ndarray of float64, shape (3,)
        Decay rates of the moments, and epsilon. An epsilon of 0 stands for gradient descent, whose weight
        decay shrinks the values as in AdamW.
    """
    real = values.dtype.type
    zero, least = real(0), real(LEAST_SINGLE if values.itemsize == 4 else LEAST_DOUBLE)
    for start, end, part in ((0, head, 0), (head, len(values), 2)):
        rate, decay = rates[part], rates[part + 1]
        size = end - start
        x, slope = piece(values, start, size), piece(slopes, start, size)
        mean, square = piece(first, start, size), piece(second, start, size)
        if betas[2] == 0:
            for i in range(size):
                value = real(1 - rate * decay) * x[i] - real(rate) * slope[i]
                x[i] = zero if abs(value) < least else value
            continue
        keep1, take1 = real(betas[0]), real(1 - betas[0])
        keep2, take2 = real(betas[1]), real(1 - betas[1])
        shrink, reach = real(1 - rate * decay), real(rate / (1 - betas[0] ** step))
        root, epsilon = real(1 / math.sqrt(1 - betas[1] ** step)), real(betas[2])
        for i in range(size):  # from 0: from `start`, where an index could be negative, is not vectorized
            g = slope[i]
            m = keep1 * mean[i] + take1 * g
            v = keep2 * square[i] + take2 * (g * g)
            value = shrink * x[i] - reach * (m / (np.sqrt(v) * root + epsilon))
            mean[i], square[i] = zero if abs(m) < least else m, zero if v < least else v
            x[i] = zero if abs(value) < least else value
