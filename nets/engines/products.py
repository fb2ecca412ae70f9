"""Compiled products of matrices of a few dozen columns, and small operations on rows."""

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
TILE_ROWS = 6
VECTOR_BYTES = 64 if get_host_cpu_features().get("avx512f") else 32
"""Size of a vector register. With AVX2, a vector of 64 bytes would take two, and sums would be spilled."""


def room(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """Allocate an array that starts on a cache line, so that no vector is loaded from two lines.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : dtype
        Number type.

    Returns
    -------
    ndarray, shape `shape`
        Its values are arbitrary.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def tile(vectors: int, *, masked: bool = True) -> Any:
    """Generate code that adds A @ B to a tile of `out`: some rows, and `vectors` vectors of columns.

    All arrays have contiguous rows. Kernels call the result with A, whether it is `turned`, so that the
    product is Aᵀ @ B, with B, `out`, and the first row and column of the tile.

    With two vectors and six rows, twelve vectors of sums stay in registers while the loop runs over the inner
    dimension. Each turn loads two vectors of B and six numbers of A for twelve fused products, so that
    arithmetic limits the speed. Rows beyond the last one of `out` repeat that row, and columns beyond the
    last one are masked. If there are no such columns, `masked` may be false; masked stores are slow if few
    products precede them. The order of the sum does not depend on the size of the vectors.

    `np.dot` within Numba would do, but not as fast on every processor. Measured on one thread, on products of
    the networks here, OpenBLAS takes 0.6 to 1.5 times as long with AVX2, and twice as long (1.6 to 2.5) with
    AVX-512 on an AMD EPYC 9005, where it uses the kernels for AVX2.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, turned = signature.args[3], arguments[1]
        real, integer = context.get_data_type(out.dtype), ir.IntType(32)
        size = out.dtype.bitwidth // 8
        lanes = VECTOR_BYTES // size
        vector = ir.VectorType(real, lanes)
        numbers, mask = ir.VectorType(integer, lanes), ir.VectorType(ir.IntType(1), lanes)
        arrays = [context.make_array(signature.args[n])(context, builder, arguments[n]) for n in (0, 2, 3)]
        first_row, first_column = arguments[-2:]
        word = first_row.type
        bytes_ = [builder.bitcast(array.data, ir.IntType(8).as_pointer()) for array in arrays]
        strides = [cgutils.unpack_tuple(builder, array.strides) for array in arrays]
        rows, columns = cgutils.unpack_tuple(builder, arrays[0].shape)
        height = builder.select(turned, columns, rows)
        across = builder.select(turned, word(size), strides[0][0])
        along = builder.select(turned, strides[0][0], word(size))
        inner, columns = cgutils.unpack_tuple(builder, arrays[1].shape)

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

        masked_load = declare("load", vector, vector.as_pointer(), integer, mask, vector)
        masked_store = declare("store", ir.VoidType(), vector, vector.as_pointer(), integer, mask)
        alignment, zero = ir.Constant(integer, size), ir.Constant(vector, [0.0] * lanes)

        def load(place: Any, v: int) -> Any:
            if masked:
                return builder.call(masked_load, [place, alignment, masks[v], zero])
            return builder.load(place, align=size)

        def store(value: Any, place: Any, v: int) -> None:
            if masked:
                builder.call(masked_store, [value, place, alignment, masks[v]])
            else:
                builder.store(value, place, align=size)

        offset = builder.mul(first_column, word(size))
        left = spread(builder.trunc(builder.sub(columns, first_column), integer), numbers)
        masks = [
            builder.icmp_signed("<", ir.Constant(numbers, [v * lanes + k for k in range(lanes)]), left)
            for v in range(vectors)
        ]
        last = builder.sub(height, word(1))
        row_numbers = []
        for q in range(TILE_ROWS):
            row = builder.add(first_row, word(q))
            row_numbers.append(builder.select(builder.icmp_signed("<", row, last), row, last))
        left_rows = [builder.gep(bytes_[0], [builder.mul(r, across)]) for r in row_numbers]
        targets = [
            builder.gep(bytes_[2], [builder.add(builder.mul(r, strides[2][0]), offset)]) for r in row_numbers
        ]
        places = [(q, v) for q in range(TILE_ROWS) for v in range(vectors)]

        starts = [load(move(targets[q], word(v * VECTOR_BYTES), vector), v) for q, v in places]
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
        factors = [load(move(right, word(v * VECTOR_BYTES), vector), v) for v in range(vectors)]
        at = builder.mul(k, along)
        spreads = [spread(builder.load(move(pointer, at, real), align=size), vector) for pointer in left_rows]
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
            store(result, move(targets[q], word(v * VECTOR_BYTES), vector), v)
        return context.get_dummy_value()

    @primitive
    def add_tile(typing_context: Any, A: Any, turned: Any, B: Any, out: Any, i: Any, j: Any) -> Any:
        return types.void(A, types.boolean, B, out, types.intp, types.intp), generate

    return add_tile


_wide, _rest, _last = tile(2, masked=False), tile(2), tile(1)


@kernel()
def add_product(A: Array, turned: bool, B: Array, out: Array) -> None:
    """Add A @ B, or Aᵀ @ B if `turned`, to `out` (rows, columns).

    `A` is (rows, inner), or (inner, rows) if `turned`, and `B` is (inner, columns). All arrays have the same
    number type and contiguous rows.
    """
    rows, columns = out.shape
    lanes = VECTOR_BYTES // out.itemsize
    for column in range(0, columns, 2 * lanes):
        left = columns - column
        for row in range(0, rows, TILE_ROWS):
            if left >= 2 * lanes:
                _wide(A, turned, B, out, row, column)
            elif left > lanes:
                _rest(A, turned, B, out, row, column)
            else:
                _last(A, turned, B, out, row, column)
