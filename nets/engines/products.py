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


def tile(
    vectors: int,
    rows: int = TILE_ROWS,
    *,
    turned: bool = False,
    masked: bool = True,
    scaled: bool = False,
) -> Any:
    """Generate code that adds A @ B to a tile of `out`: some rows, and `vectors` vectors of columns.

    With `turned`, the product is Aᵀ @ B. With `scaled`, a further matrix follows `out`, and the product times
    this matrix, element by element, replaces the values in `out`. All arrays have contiguous rows. Kernels
    call the result with A, B, `out`, and the first row and column of the tile, which has `rows` rows.

    With two vectors and six rows, twelve vectors of sums stay in registers while the loop runs over the inner
    dimension. Each turn loads two vectors of B and six numbers of A for twelve fused products, so that
    arithmetic limits the speed. Rows beyond the last one of `out` repeat that row, and columns beyond the
    last one are masked. If there are no such columns, `masked` may be false; masked stores are slow if few
    products precede them. The order of the sum does not depend on the size of the vectors.

    Measured against `np.dot` within Numba (OpenBLAS, one thread by threadpoolctl; AMD EPYC with AVX2, busy),
    on the products of the networks here, such as (59, 128) by (128, 100) and (128, 32) by (32, 17): OpenBLAS
    takes 0.92 to 1.45 times as long, in float32 and in float64.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out = signature.args[2]
        real, integer = context.get_data_type(out.dtype), ir.IntType(32)
        size = out.dtype.bitwidth // 8
        lanes = VECTOR_BYTES // size
        vector = ir.VectorType(real, lanes)
        numbers, mask = ir.VectorType(integer, lanes), ir.VectorType(ir.IntType(1), lanes)
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:-2], arguments[:-2], strict=True)
        ]
        first_row, first_column = arguments[-2:]
        word = first_row.type
        bytes_ = [builder.bitcast(array.data, ir.IntType(8).as_pointer()) for array in arrays]
        strides = [cgutils.unpack_tuple(builder, array.strides) for array in arrays]
        order = -1 if turned else 1
        height = cgutils.unpack_tuple(builder, arrays[0].shape)[::order][0]
        across, along = [strides[0][0], word(size)][::order]
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
        for q in range(rows):
            row = builder.add(first_row, word(q))
            row_numbers.append(builder.select(builder.icmp_signed("<", row, last), row, last))
        left_rows = [builder.gep(bytes_[0], [builder.mul(r, across)]) for r in row_numbers]
        targets = [
            [builder.gep(start, [builder.add(builder.mul(r, stride[0]), offset)]) for r in row_numbers]
            for start, stride in zip(bytes_[2:], strides[2:], strict=True)
        ]
        places = [(q, v) for q in range(rows) for v in range(vectors)]

        def numbers_of(which: int) -> list[Any]:
            return [load(move(targets[which][q], word(v * VECTOR_BYTES), vector), v) for q, v in places]

        starts = [zero] * len(places) if scaled else numbers_of(0)
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
        if scaled:
            starts = [builder.fmul(*both) for both in zip(starts, numbers_of(1), strict=True)]
        for (q, v), result in zip(places, starts, strict=True):
            store(result, move(targets[0][q], word(v * VECTOR_BYTES), vector), v)
        return context.get_dummy_value()

    @primitive
    def add_tile(typing_context: Any, A: Any, B: Any, out: Any, i: Any, j: Any) -> Any:
        return types.void(A, B, out, types.intp, types.intp), generate

    @primitive
    def scale_tile(typing_context: Any, A: Any, B: Any, out: Any, factors: Any, i: Any, j: Any) -> Any:
        return types.void(A, B, out, factors, types.intp, types.intp), generate

    return scale_tile if scaled else add_tile


_add_narrow_tile, _add_wide_tile = tile(1), tile(2)
_add_narrow_turned, _add_wide_turned = tile(1, turned=True), tile(2, turned=True)


@kernel()
def add_product(A: Array, turned: bool, B: Array, out: Array, column: int) -> None:
    """Add A @ B, or Aᵀ @ B if `turned`, to the columns of `out` (rows, columns) from `column` on.

    `A` is (rows, inner), or (inner, rows) if `turned`, and `B` is (inner, columns). All arrays have the same
    number type and contiguous rows.
    """
    rows, columns = out.shape
    lanes = VECTOR_BYTES // out.itemsize
    while column < columns:
        wide = columns - column > lanes
        for row in range(0, rows, TILE_ROWS):
            if wide and turned:
                _add_wide_turned(A, B, out, row, column)
            elif wide:
                _add_wide_tile(A, B, out, row, column)
            elif turned:
                _add_narrow_turned(A, B, out, row, column)
            else:
                _add_narrow_tile(A, B, out, row, column)
        column += 2 * lanes if wide else lanes


@kernel()
def fill_rows(row: Array, out: Array) -> None:
    """Write `row` (columns,) to every row of `out` (rows, columns)."""
    for n in range(len(out)):
        target = out[n]  # a vector loop needs a row of its own: `out[n, j]` takes twice as long
        for j in range(len(row)):
            target[j] = row[j]


@kernel()
def add_rows(rows: Array, out: Array) -> None:
    """Add the sum of `rows` (rows, columns) to `out` (columns,)."""
    for n in range(len(rows)):
        row = rows[n]
        for j in range(len(out)):
            out[j] += row[j]


@kernel()
def multiply(numbers: Array, factors: Array) -> None:
    """Multiply the first n entries of the array `numbers` by `factors` (n,), in place."""
    for i in range(len(factors)):
        numbers[i] *= factors[i]
