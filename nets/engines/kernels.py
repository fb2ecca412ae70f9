"""The fused training step: forward, backward and AdamW of one small network at a time, within the cache.

The parameters of a member are one row of numbers: the embedding (tokens, dim), then weights (inputs, outputs)
and biases of each dense layer. Rows of these matrices, as of all states, are padded by zeros to whole vectors
of the processor, so that loops have no rest; the length of a padded row is its pitch. Examples pass through
the network in blocks whose activations stay in the second level of cache. Several members train at once, each
in a thread that holds no interpreter lock.

If tokens are added or concatenated, the first layer is linear in each token: it is computed once for each
token, and the rows of two tokens are added for each example. The neurons of `nets.TwoLayer` are such a first
layer whose rows are the embedding itself; its number of inputs is 0, because it has no parameters.

Examples that differ only in the order of tokens that are added are one example with a weight.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nets.engines.functions import exponential, maximum
from nets.engines.products import multiply, room
from physics.jit import address_of, call, kernel, matrix, piece

Array = NDArray[Any]
Integers = NDArray[Any]
Stores = tuple[Array, Array, Array]
Options = tuple[Array, Array]

COMBINE = {"sum": 0, "concatenate": 1, "neurons": 2, "product": 3, "data": 4}
SUM, CONCATENATE, NEURONS, PRODUCT, DATA = range(5)
CROSS_ENTROPY, STABLE_CROSS_ENTROPY, SQUARED_ERROR = range(3)
BLOCK, NEURONS_BLOCK = 132, 48
"""Number of examples in a block. A step needs about 5 arrays of a block, of 55 kB for 100 float32 columns."""


class Net(NamedTuple):
    """Sizes and options of a network, in a form that kernels can read."""

    sizes: Integers  # number of inputs of the first layer, widths of the layers, int64 (layers + 1,)
    pitches: Integers  # of the embedding or the data, and of the layers, int64 (layers + 1,)
    starts: Integers  # places of the weights of the layers in a row, int64 (layers,)
    combine: int  # how the embeddings of a pair enter, as in `COMBINE`
    loss: int
    tokens: int  # shape of the embedding
    dim: int
    encoded: int  # count of numbers at the start of a row that belong to the encoder
    bias: int  # number of biases of an output: 1 or 0
    penalty: float  # factor of the mean magnitude of the embedding's components in the loss
    even: float  # weight of the even part of SiLU that is added to the activation
    projector: Array  # (tokens, tokens) from the embedding on its part that enters; empty for all of it
    product: int = 0  # addresses of kernels, by which they are compiled once, and not for each caller
    activate: int = 0
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

    states: Array  # input of the first layer, if it is not computed for each token; activations of each layer
    # (on the way back, gradients with respect to them take their place)
    slopes: Array  # derivatives of the activations
    projected: Array  # part of the embedding that enters, or empty
    tables: Array  # the first layer of each token, as the first and as the second token of a pair
    drifts: Array  # gradients with respect to the tables
    turned: Array  # transposed weights, a row for each layer
    gradient: Array  # of one member
    start: Array  # (1, pitch) numbers to which products are added
    sums: Array  # float64: of losses and of correct answers
    block: Integers  # int32 (3, rows): tokens a, tokens b and labels of the present block
    weights: Array  # (rows,) of the present block


def work_for(net: Net, numbers: int, dtype: Any) -> Work:
    """Allocate the working memory of one thread, for members with `numbers` parameters."""
    rows, pitches = NEURONS_BLOCK if net.combine == NEURONS else BLOCK, net.pitches
    states = len(pitches), rows * max(pitches)
    tables = net.tokens * pitches[1] if net.combine < NEURONS else 0
    return Work(
        states=room(states, dtype),
        slopes=room(states, dtype),
        projected=room(len(net.projector) * pitches[0], dtype),
        tables=room((2, tables), dtype),
        drifts=room((2, tables), dtype),
        turned=room((len(pitches) - 1, 2 * max(net.sizes[1:] * pitches[:-1])), dtype),
        gradient=room(numbers, dtype),
        start=room((1, max(pitches)), dtype),
        sums=room(2, np.float64),
        block=room((3, rows), np.int32),
        weights=room(rows, dtype),
    )


class Job(NamedTuple):
    """What a kernel works with: a network, its examples, and the memory of one thread."""

    net: Net
    examples: Examples
    work: Work


def compiled(job: Job, activate: Any) -> Net:
    """Compile the kernels that others call, if necessary, and return the network with their addresses."""
    row, batch = job.work.gradient, job.work.block[0]
    matrix = np.empty((1, 1), row.dtype)
    return job.net._replace(
        product=address_of(multiply, matrix, True, matrix, matrix, matrix),
        activate=address_of(activate, 0.0, row, row),
        forward=address_of(_forward, row, job, 0),
        back=address_of(_back, row, row, job, 0),
        gradient=address_of(gradient, 0, row, row, job, batch, True),
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
            call(net.gradient, (member, row, gradient, job, batch, True))
            moments, number = (first[member], second[member]), step + offset + 1
            call(net.update, (row, gradient, *moments, net.encoded, number, rates[member], betas))


@kernel()
def evaluate(members: Integers, parameters: Array, job: Job, loss: Array, accuracy: Array) -> None:
    """Write the mean loss and the accuracy (runs,) of some members to arrays; NaN without examples.

    The answer is the class of the largest logit or of the nearest target.
    """
    work, total = job.work, job.examples.total
    for member in members:
        work.sums[:] = 0.0
        call(job.net.gradient, (member, parameters[member], work.gradient, job, work.block[0, :0], False))
        loss[member] = work.sums[0] / total if total else np.nan
        accuracy[member] = work.sums[1] / total if total else np.nan


@kernel()
def gradient(member: int, row: Array, out: Array, job: Job, batch: Integers, learn: bool) -> None:
    """Write the gradient of a member's mean loss over a batch; an empty `batch` stands for all examples.

    If not `learn`, add the losses of the examples and the number of correct answers to `work.sums` instead.
    """
    net, examples, work = job
    rows, pitch = work.block.shape[1], net.pitches[-1]
    size = len(batch) if len(batch) else examples.counts[member]
    total = len(batch) if len(batch) else examples.total
    _tabulate(row, job)
    if learn:
        out[:] = 0
        work.drifts[:] = 0
        _turn(row, job)
    for start in range(0, size, rows):
        count = min(rows, size - start)
        _load(member, examples, batch, start, count, work)
        call(net.forward, (row, job, count))
        outputs = matrix(work.states[-1], 0, count, pitch)
        if net.loss == SQUARED_ERROR:
            _squared_error(outputs, examples.targets[member], total, work, learn)
        else:
            _cross_entropy(outputs, net.loss, total, work, learn)
        if learn:
            call(net.back, (row, out, job, count))
    if learn and net.combine < NEURONS:
        _untabulate(row, out, job)
    if learn and net.penalty > 0:
        for i in range(net.tokens * net.pitches[0]):  # the embedding; the encoder may be longer
            out[i] += net.penalty / (net.tokens * net.dim) * np.sign(row[i])


# -- the step in parts -------------------------------------------------------------------------------------


@kernel()
def _load(member: int, examples: Examples, batch: Integers, start: int, rows: int, work: Work) -> None:
    """Copy the tokens, labels and weights of the examples of a block, from the place `start` of a batch."""
    inputs, labels, weights = examples.inputs[member], examples.labels[member], examples.weights[member]
    last = inputs.shape[1] - 1
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        work.block[0, n], work.block[1, n] = inputs[example, 0], inputs[example, last]
        work.block[2, n], work.weights[n] = labels[example], weights[example]


@kernel()
def _tabulate(row: Array, job: Job) -> None:
    """Compute the first layer, if it is linear in each token, for each token at each place.

    The table of the first place includes the bias.
    """
    net, _, work = job
    sizes, pitches = net.sizes, net.pitches
    if net.combine >= NEURONS:
        return
    pitch, at, zero = pitches[1], net.starts[0], row.dtype.type(0)
    embedding = matrix(row, 0, net.tokens, pitches[0])
    if len(net.projector):
        _begin(row, 0, 0, zero, 0, work)
        whole, embedding = embedding, matrix(work.projected, 0, net.tokens, pitches[0])
        call(net.product, (net.projector, False, whole, work.start, embedding))
    for part in range(2):
        _begin(row, at + sizes[0] * pitch, 0 if part else pitch, zero, net.bias, work)
        weights = matrix(row, at + part * (sizes[0] - net.dim) * pitch, net.dim, pitch)
        table = matrix(work.tables[part], 0, net.tokens, pitch)
        call(net.product, (embedding, False, weights, work.start, table))


@kernel()
def _begin(row: Array, at: int, width: int, pad: Any, bias: int, work: Work) -> None:
    """Write `width` biases of a layer, at a place of a `row`, or zeros to `work.start`, and then pads."""
    zero = row.dtype.type(0)
    for j in range(work.start.shape[1]):
        work.start[0, j] = pad if j >= width else row[at + j] if bias else zero


@kernel()
def _untabulate(row: Array, gradient: Array, job: Job) -> None:
    """Add the gradients of the first layer and of the embedding, from those of the tables."""
    net, _, work = job
    sizes, pitches = net.sizes, net.pitches
    width, pitch, at = sizes[1], pitches[1], net.starts[0]
    projects = len(net.projector) > 0
    embedding = matrix(work.projected if projects else row, 0, net.tokens, pitches[0])
    by_embedding = matrix(gradient, 0, net.tokens, pitches[0])
    biases = piece(gradient, at + sizes[0] * pitch, net.bias * pitch)
    _add_rows(matrix(work.drifts[0], 0, net.tokens, pitch), biases)
    for part in range(2):
        place = part * (sizes[0] - net.dim)  # of the weights; both tokens of a sum have the same
        drift = matrix(work.drifts[part], 0, net.tokens, pitch)
        by_weights = matrix(gradient, at + place * pitch, net.dim, pitch)
        call(net.product, (embedding, True, drift, by_weights, by_weights))
        turned = matrix(work.turned[0], place // net.dim * width * pitches[0], width, pitches[0])
        call(net.product, (drift, False, turned, by_embedding, by_embedding))
    if projects:
        for token in range(net.tokens):  # a slice would compile its error of shapes, which takes seconds
            for k in range(pitches[0]):
                embedding[token, k] = by_embedding[token, k]
        _begin(row, 0, 0, row.dtype.type(0), 0, work)
        call(net.product, (net.projector, False, embedding, work.start, by_embedding))


@kernel()
def _add_rows(rows: Array, out: Array) -> None:
    """Add the sum of some rows, (n, pitch), to `out` (pitch,)."""
    for n in range(len(rows)):
        for j in range(len(out)):
            out[j] += rows[n, j]


@kernel()
def _turn(row: Array, job: Job) -> None:
    """Write the transposed weights of all layers to the rows of `work.turned`.

    The halves of a first layer of two concatenated tokens are transposed by themselves; weights of data are
    not needed.
    """
    net, _, work = job
    sizes, pitches = net.sizes, net.pitches
    for layer in range(len(sizes) - 1):
        inputs, width, pitch, long = sizes[layer], sizes[layer + 1], pitches[layer + 1], pitches[layer]
        parts = 2 if layer == 0 and net.combine == CONCATENATE else 1
        height = inputs // parts
        for part in range(0 if layer == 0 and net.combine == DATA else parts):
            source = matrix(row, net.starts[layer] + part * height * pitch, height, pitch)
            target = matrix(work.turned[layer], part * width * long, width, long)
            for corner in range(0, height, 16):  # so that a line of the cache is written as a whole
                for j in range(width):
                    for i in range(corner, min(corner + 16, height)):
                        target[j, i] = source[i, j]


@kernel()
def _forward(row: Array, job: Job, rows: int) -> None:
    """Compute the states and slopes of all layers for the present block of `rows` examples."""
    net, examples, work = job
    sizes, pitches = net.sizes, net.pitches
    layers, zero, lowest = len(sizes) - 1, row.dtype.type(0), row.dtype.type(-np.inf)
    for layer in range(layers):
        inputs, pitch, at = sizes[layer], pitches[layer + 1], net.starts[layer]
        states = matrix(work.states[layer + 1], 0, rows, pitch)
        if layer == 0 and net.combine <= NEURONS:
            first = row if net.combine == NEURONS else work.tables[0]
            second = row if net.combine == NEURONS else work.tables[1]
            left, right = matrix(first, 0, net.tokens, pitch), matrix(second, 0, net.tokens, pitch)
            for n in range(rows):
                former, latter, target = left[work.block[0, n]], right[work.block[1, n]], states[n]
                for j in range(pitch):
                    target[j] = former[j] + latter[j]
        else:
            below = matrix(work.states[layer], 0, rows, pitches[layer])
            if layer == 0:
                _enter(row, net, examples.data, work.block, below)
            pad = zero if layer < layers - 1 else lowest  # which has no weight in a softmax
            _begin(row, at + inputs * pitch, sizes[layer + 1], pad, net.bias, work)
            call(net.product, (below, False, matrix(row, at, inputs, pitch), work.start, states))
        if layer < layers - 1:
            size = rows * pitch
            numbers = piece(work.states[layer + 1], 0, size), piece(work.slopes[layer + 1], 0, size)
            call(net.activate, (net.even, *numbers))


@kernel()
def _enter(row: Array, net: Net, data: Array, block: Integers, out: Array) -> None:
    """Write the inputs of the first layer to `out` (rows, inputs): rows of data, or products of matrices."""
    side, pitch = int(math.sqrt(net.dim) + 0.5), net.pitches[0]
    for n in range(len(out)):
        target = out[n]
        if net.combine == DATA:
            source = data[block[0, n]]
            for j in range(len(target)):
                target[j] = source[j]
            continue
        left = matrix(row, block[0, n] * pitch, side, side)
        right = matrix(row, block[1, n] * pitch, side, side)
        for i in range(side):
            for k in range(side):
                total = row[0] - row[0]
                for j in range(side):
                    total += left[i, j] * right[j, k]
                target[i * side + k] = total


@kernel()
def _back(row: Array, gradient: Array, job: Job, rows: int) -> None:
    """Add the contribution of a block to the gradient, from the errors in the last of `work.states`."""
    net, _, work = job
    sizes, pitches = net.sizes, net.pitches
    for layer in range(len(sizes) - 2, -1, -1):
        inputs, width, pitch, long = sizes[layer], sizes[layer + 1], pitches[layer + 1], pitches[layer]
        flow = matrix(work.states[layer + 1], 0, rows, pitch)
        if layer == 0 and net.combine <= NEURONS:
            for part in range(2):
                by_tokens = gradient if net.combine == NEURONS else work.drifts[part]
                drifts = matrix(by_tokens, 0, net.tokens, pitch)
                for n in range(rows):
                    source, target = flow[n], drifts[work.block[part, n]]
                    for j in range(pitch):
                        target[j] += source[j]
            return
        by_weights = matrix(gradient, net.starts[layer], inputs, pitch)
        _add_rows(flow, piece(gradient, net.starts[layer] + inputs * pitch, net.bias * pitch))
        below = matrix(work.states[layer], 0, rows, long)
        call(net.product, (below, True, flow, by_weights, by_weights))
        if layer == 0 and net.combine == DATA:
            return
        _begin(row, 0, 0, row.dtype.type(0), 0, work)
        call(net.product, (flow, False, matrix(work.turned[layer], 0, width, long), work.start, below))
        if layer == 0:
            _back_to_factors(row, gradient, net, below, work)
            return
        numbers, slopes = piece(below, 0, rows * long), work.slopes[layer]
        for i in range(len(numbers)):
            numbers[i] *= slopes[i]


@kernel()
def _back_to_factors(row: Array, gradient: Array, net: Net, lower: Array, work: Work) -> None:
    """Add the gradient of the embedding, from that of the products of two matrices, `lower` (rows, dim)."""
    side, pitch = int(math.sqrt(net.dim) + 0.5), net.pitches[0]
    for n in range(len(lower)):
        a, b = work.block[0, n] * pitch, work.block[1, n] * pitch
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
def _cross_entropy(out: Array, loss: int, total: int, work: Work, learn: bool) -> None:
    """Replace logits by the gradient of the mean cross-entropy over `total` examples with respect to them.

    Contributions of probabilities below the normal numbers of the type become 0, as processors multiply
    subnormal numbers slowly. For the right class, 1 is subtracted from its probability q, as in PyTorch. In
    float32, q is a multiple of 6e-8 near 1, so that q - 1 is wrong by its own size once the loss is that
    small; under the stable loss, the probabilities of all other classes are added instead, with all their
    digits.

    If not `learn`, add to `work.sums`. Among equally large logits the first is the answer; NaN is none.
    """
    real, (rows, pitch), labels, weights = out.dtype.type, out.shape, work.block[2], work.weights
    zero, count, least = real(0), real(total), real(np.finfo(out.dtype).tiny)
    for n in range(rows):
        largest = out[n, 0]
        for j in range(pitch):
            largest = maximum(largest, out[n, j])
        for j in range(pitch):
            out[n, j] -= largest
        if not learn:
            answer = 0
            while answer < labels[n] and out[n, answer] < 0:
                answer += 1
            work.sums[0] -= weights[n] * out[n, labels[n]]
            work.sums[1] += weights[n] * (answer == labels[n] and out[n, answer] == 0)
    powers = piece(out, 0, rows * pitch)
    for i in range(len(powers)):
        powers[i] = exponential(powers[i])
    for n in range(rows):
        right, norm = labels[n], 0.0  # float64, since small losses are the logarithms of numbers near 1
        for j in range(pitch):
            norm += out[n, j]
        if not learn:
            work.sums[0] += weights[n] * math.log(norm)
            continue
        factor = weights[n] / (real(norm) * count)
        bound = least / factor  # before the product, since a subnormal one takes a hundred cycles
        for j in range(pitch):
            out[n, j] = factor * (out[n, j] if out[n, j] >= bound else zero)
        if loss == STABLE_CROSS_ENTROPY:
            out[n, right] = zero
            others = zero
            for j in range(pitch):
                others += out[n, j]
            out[n, right] = -others
        else:
            out[n, right] -= weights[n] / count


@kernel(reorder=True)
def _squared_error(out: Array, targets: Array, total: int, work: Work, learn: bool) -> None:
    """Replace outputs by the gradient of the mean squared error over `total` examples with respect to them.

    If not `learn`, add to `work.sums`. Among equally near targets the first is the answer; outputs that are
    not finite are none.
    """
    labels, weights, (classes, width) = work.block[2], work.weights, targets.shape
    share = out.dtype.type(2 / (total * width))
    for n in range(len(out)):
        if learn:
            for j in range(width):
                out[n, j] = share * weights[n] * (out[n, j] - targets[labels[n], j])
            for j in range(width, out.shape[1]):
                out[n, j] = 0
            continue
        best, nearest = -1, np.inf
        for c in range(classes):
            distance = 0.0
            for j in range(width):
                difference = out[n, j] - targets[c, j]
                distance += difference * difference
            if distance < nearest:
                best, nearest = c, distance
            if c == labels[n]:
                work.sums[0] += weights[n] * distance / width
        work.sums[1] += weights[n] * (best == labels[n])


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
    zero, least = real(0), real(np.finfo(values.dtype).tiny)
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
