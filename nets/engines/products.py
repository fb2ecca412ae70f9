"""Compiled products of matrices whose rows are padded to whole vectors of the processor."""

from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from physics.jit import kernel, primitive

Array = NDArray[Any]
Integers = NDArray[Any]

LINE = 64
VECTOR_BYTES = 64 if get_host_cpu_features().get("avx512f") else 32
"""Size of a vector register. With AVX2, a vector of 64 bytes would take two, and sums would be spilled."""
NARROW, PAIR, TRIPLE = (12, 1), (6, 2), (4, 3)
"""Rows and vectors of a tile: twelve vectors of sums stay in registers, with one to three of the factors."""


def padded(width: int, dtype: Any) -> int:
    """Return the numbers of a row of `width` numbers that is padded to whole vectors."""
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    return -(-width // lanes) * lanes


def room(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """Allocate an array of zeros that starts on a cache line, so that no vector is loaded from two lines.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : dtype
        Number type.

    Returns
    -------
    ndarray, shape `shape`
        Zeros.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def _tile(rows: int, vectors: int) -> Any:
    """Generate code that writes start + A @ B, or start + Aᵀ @ B, to a tile of some rows and vectors.

    Each turn of its loop loads some vectors of B and a number of A for each row, for twelve fused products.
    Rows beyond the last one of `out` repeat that row.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        turned, (first_row, first_column) = arguments[1], arguments[-2:]
        real, integer, word = context.get_data_type(signature.args[4].dtype), ir.IntType(32), first_row.type
        size = signature.args[4].dtype.bitwidth // 8
        vector = ir.VectorType(real, VECTOR_BYTES // size)
        arrays = [context.make_array(signature.args[n])(context, builder, arguments[n]) for n in (0, 2, 3, 4)]
        A, B, start, out = (builder.bitcast(array.data, ir.IntType(8).as_pointer()) for array in arrays)
        lengths = [cgutils.unpack_tuple(builder, array.shape)[0] for array in arrays]
        pitches = [cgutils.unpack_tuple(builder, array.strides)[0] for array in arrays]
        single = builder.icmp_signed("==", lengths[2], word(1))
        pitches[2] = builder.select(single, word(0), pitches[2])
        across = builder.select(turned, word(size), pitches[0])
        along = builder.select(turned, pitches[0], word(size))
        last, offset = builder.sub(lengths[3], word(1)), builder.mul(first_column, word(size))
        nowhere, first_lane = ir.Constant(vector, ir.Undefined), ir.VectorType(integer, vector.count)(None)
        fuse = {"flags": ("contract",)}

        def load(pointer: Any, distance: Any, kind: Any) -> Any:
            return builder.load(move(pointer, distance, kind), align=size)

        def move(pointer: Any, distance: Any, kind: Any) -> Any:
            return builder.bitcast(builder.gep(pointer, [distance]), kind.as_pointer())

        def places(rows: list[Any], pitch: Any) -> list[Any]:
            starts = [builder.add(builder.mul(row, pitch), offset) for row in rows]
            return [builder.add(start, word(v * VECTOR_BYTES)) for start in starts for v in range(vectors)]

        numbers = [builder.add(first_row, word(q)) for q in range(rows)]
        numbers = [builder.select(builder.icmp_signed("<", row, last), row, last) for row in numbers]
        left = [builder.gep(A, [builder.mul(row, across)]) for row in numbers]
        # LLVM keeps the sums in registers.
        starts = [load(start, place, vector) for place in places(numbers, pitches[2])]
        sums = [cgutils.alloca_once_value(builder, number) for number in starts]
        with cgutils.for_range(builder, lengths[1]) as loop:
            factors = [load(B, place, vector) for place in places([loop.index], pitches[1])]
            distance = builder.mul(loop.index, along)
            for q, pointer in enumerate(left):
                factor = builder.insert_element(nowhere, load(pointer, distance, real), integer(0))
                factor = builder.shuffle_vector(factor, nowhere, first_lane)
                for other, total in zip(factors, sums[q * vectors :], strict=False):
                    product = builder.fmul(factor, other, **fuse)
                    builder.store(builder.fadd(product, builder.load(total), **fuse), total)
        for place, total in zip(places(numbers, pitches[3]), sums, strict=True):
            builder.store(builder.load(total), move(out, place, vector), align=size)
        return context.get_dummy_value()

    @primitive
    def tile(typing_context: Any, A: Any, turned: Any, B: Any, start: Any, out: Any, i: Any, j: Any) -> Any:
        return types.void(A, types.boolean, B, start, out, types.intp, types.intp), generate

    return tile


_narrow, _pair, _triple = _tile(*NARROW), _tile(*PAIR), _tile(*TRIPLE)


@kernel()
def multiply(A: Array, turned: bool, B: Array, start: Array, out: Array) -> None:
    """Write start + A @ B, or start + Aᵀ @ B if `turned`, to `out` (rows, columns).

    `A` is (rows, inner), or (inner, rows) if `turned`, and may have more columns; `B` is (inner, columns),
    and `start` is `out` itself or (1, columns). All have the same number type, and the columns are whole
    vectors (`padded`).

    `np.dot` within Numba would do, but not as fast: on one thread of a busy Xeon, with products of blocks of
    128 examples, OpenBLAS took 1.0 to 1.7 times as long with AVX2, and 0.7 to 1.2 with AVX-512.
    """
    rows, lanes = len(out), VECTOR_BYTES // out.itemsize
    odd = out.shape[1] // lanes % 2
    pairs = (out.shape[1] // lanes - 3 * odd) // 2  # a single vector takes 0.7 of the time of a pair
    for pair in range(pairs):
        for row in range(0, rows, PAIR[0]):
            _pair(A, turned, B, start, out, row, pair * 2 * lanes)
    if odd and pairs >= 0:
        for row in range(0, rows, TRIPLE[0]):
            _triple(A, turned, B, start, out, row, pairs * 2 * lanes)
    elif odd:
        for row in range(0, rows, NARROW[0]):
            _narrow(A, turned, B, start, out, row, 0)
