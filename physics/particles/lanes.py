"""Kernels for small systems in the plane: eight runs at a time, each in its own lane of the vectors.

In systems of a hundred pair sums loops are short, and their remainders and horizontal sums would cost more
than the vectorized part. Here each operation serves eight runs at once, so there are neither remainders nor
horizontal sums. All runs have the same classes, and pair sums of a class are contiguous, so no class is
tested.

Operations of one lane do not depend on the others and have a fixed order, so a run has the same bits in every
lane and with any other runs. `Lanes` is a vector of eight floats, a type of Numba's that this file defines;
LLVM splits it where the processor's own vectors are shorter.
"""

import operator
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
from numba import prange, types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from physics.jit import kernel, primitive
from physics.particles.direct import Law, Steps, move
from physics.values import Array, Integers

WIDTH = 8
"""Number of runs in a batch, which is the number of lanes of a vector."""
TILE = 32
"""Number of pair sums in a tile, which stays in the nearest cache (12 KiB) while others interact with it."""


class Classes(NamedTuple):
    """Layout of the P pair sums in memory: a slot for each, and the slots of a class next to each other."""

    first: Integers
    """Token i of the pair (i, j) in each slot, (P,)."""
    second: Integers
    """Token j of the pair (i, j) in each slot, (P,)."""
    end: Integers
    """The slot after the last one of its class, for each slot, (P,)."""


def class_layout(first: Integers, second: Integers, label: Integers) -> Classes:
    """Arrange pairs (P,) class by class; within a class they keep their order."""
    slots = np.argsort(label, kind="stable")
    end = np.searchsorted(label[slots], label[slots], side="right").astype(np.int64)
    return Classes(first[slots], second[slots], end)


# -- the vector type -------------------------------------------------------------------------------------


class LanesType(types.Type):
    """Numba's type of a vector of `WIDTH` float64 numbers, one for each run of a batch.

    Kernels add, subtract, multiply and divide such vectors lane by lane with the usual operators.
    """

    def __init__(self) -> None:
        super().__init__(name="Lanes")


lanes = LanesType()
"""The one instance of `LanesType`, with which signatures are written."""
VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
"""LLVM's type of the same vector."""


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _define(function: Any, instruction: str) -> None:
    @infer_global(function)
    class _Typing(ConcreteTemplate):
        cases = [signature(lanes, lanes, lanes)]  # noqa: RUF012 - Numba's way to say it

    @lower_builtin(function, lanes, lanes)
    def _lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments)


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return a pointer to row `index` of an array (n, WIDTH), as a vector."""
    data = context.make_array(kind)(context, builder, array).data
    offset = builder.mul(index, ir.Constant(index.type, WIDTH))
    return builder.bitcast(builder.gep(data, [offset]), VECTOR.as_pointer())


def _call(builder: Any, name: str, arguments: Any) -> Any:
    """Call one of LLVM's own functions of vectors, such as the square root."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
    return builder.call(function, arguments)


@primitive
def load(typing: Any, array: Any, index: Any) -> Any:
    """Return row `index` of a contiguous float64 array (n, WIDTH) as a vector; the index is not checked."""

    def generate(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        pointer = _place(context, builder, kind.args[0], *arguments)
        return builder.load(pointer, align=8)

    return lanes(array, types.intp), generate


@primitive
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write the vector `value` to row `index` of a contiguous float64 array (n, WIDTH), without checks."""

    def generate(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        pointer = _place(context, builder, kind.args[0], *arguments[:2])
        builder.store(arguments[2], pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@primitive
def spread(typing: Any, value: Any) -> Any:
    """Return a vector that has the number `value`, a float64, in all lanes."""

    def generate(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), arguments[0], ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(one, ir.Constant(VECTOR, ir.Undefined), zeros)

    return lanes(types.float64), generate


@primitive
def fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a·b + c in each lane for vectors a, b and c, rounded once if the processor can do so."""

    def generate(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return _call(builder, "fmuladd", arguments)

    return lanes(lanes, lanes, lanes), generate


@primitive
def root(typing: Any, a: Any) -> Any:
    """Return the square root of each lane of the vector `a`; it is NaN where the lane is negative."""

    def generate(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return _call(builder, "sqrt", arguments)

    return lanes(lanes), generate


@primitive
def where_greater(typing: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """Return a vector with `then` in lanes with a > b, and `otherwise` in the other lanes.

    All four arguments are vectors. A lane in which `a` or `b` is NaN takes `otherwise`.
    """

    def generate(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments[:2]), *arguments[2:])

    return lanes(lanes, lanes, lanes, lanes), generate


# -- forces ----------------------------------------------------------------------------------------------


@kernel()
def _pair_sums(x: Array, y: Array, classes: Classes, s: Array, t: Array, u: Array, v: Array) -> None:
    """Write the pair sums of eight runs to `s` and `t`, and their unit vectors to `u` and `v`.

    The tokens are at `x` and `y` (tokens, WIDTH), and the results are (P, WIDTH). The unit vector of a sum at
    the origin is zero, and that of a sum whose square overflows is NaN.
    """
    zero, one = spread(0.0), spread(1.0)
    for a in range(classes.first.size):
        i, j = classes.first[a], classes.second[a]
        sx, sy = load(x, i) + load(x, j), load(y, i) + load(y, j)
        squared = sx * sx + sy * sy
        inverse = where_greater(squared, zero, one / root(squared), zero) + (squared - squared)
        store(s, a, sx)
        store(t, a, sy)
        store(u, a, sx * inverse)
        store(v, a, sy * inverse)


@kernel()
def _within_class(
    a: int, end: int, s: Array, t: Array, u: Array, v: Array, law: Law, f: Array, g: Array
) -> None:
    """Add the interactions of pair sum `a` with the later ones of its class, up to before the slot `end`.

    The pair sums are `s` and `t`, their unit vectors `u` and `v`, and the forces on both partners are added
    to `f` and `g` (P, WIDTH each).
    """
    softening, zero = spread(law.softening_squared), spread(0.0)
    pull, align = spread(law.attraction), spread(law.alignment_same)
    x, y, ux, uy = load(s, a), load(t, a), load(u, a), load(v, a)
    fx, fy = load(f, a), load(g, a)
    for b in range(a + 1, end):
        xb, yb = load(s, b), load(t, b)
        dx, dy = xb - x, yb - y
        pulled = pull / root(fused(dx, dx, fused(dy, dy, softening)))
        ahead = where_greater(x * xb + y * yb, zero, align, zero)
        fx = fused(pulled, dx, fused(ahead, load(u, b), fx))
        fy = fused(pulled, dy, fused(ahead, load(v, b), fy))
        store(f, b, fused(ahead, ux, load(f, b)) - pulled * dx)
        store(g, b, fused(ahead, uy, load(g, b)) - pulled * dy)
    store(f, a, fx)
    store(g, a, fy)


@kernel()
def _across_classes(
    a: int, begin: int, end: int, s: Array, t: Array, u: Array, v: Array, law: Law, f: Array, g: Array
) -> None:
    """Add the interactions of pair sum `a` with those from `begin` to before `end`, of other classes.

    The other arguments are those of `_within_class`. Repulsion and directions are summed separately, because
    in a single sum each addition would wait for the previous one.
    """
    softening, zero = spread(law.softening_squared), spread(0.0)
    push, align = spread(law.repulsion), spread(-law.alignment_diff)
    x, y = load(s, a), load(t, a)
    ux, uy = align * load(u, a), align * load(v, a)
    fx, fy, hx, hy = zero, zero, zero, zero
    for b in range(begin, end):
        xb, yb = load(s, b), load(t, b)
        dx, dy = x - xb, y - yb
        pushed = push / fused(dx, dx, fused(dy, dy, softening))
        product = x * xb + y * yb
        fx, fy = fused(pushed, dx, fx), fused(pushed, dy, fy)
        hx = where_greater(product, zero, hx + load(u, b), hx)
        hy = where_greater(product, zero, hy + load(v, b), hy)
        gx, gy = load(f, b) - pushed * dx, load(g, b) - pushed * dy
        store(f, b, where_greater(product, zero, gx + ux, gx))
        store(g, b, where_greater(product, zero, gy + uy, gy))
    store(f, a, load(f, a) + fused(align, hx, fx))
    store(g, a, load(g, a) + fused(align, hy, fy))


@kernel()
def _forces(position: Array, classes: Classes, law: Law, work: Array, force: Array) -> None:
    """Write the forces on the particles of eight runs at `position` to `force` (2, tokens, WIDTH each).

    `work` (6, P, WIDTH) is scratch memory.
    """
    x, y, force_x, force_y = position[0], position[1], force[0], force[1]
    s, t, u, v, f, g = work[0], work[1], work[2], work[3], work[4], work[5]
    _pair_sums(x, y, classes, s, t, u, v)
    f[:] = 0.0
    g[:] = 0.0
    count = classes.first.size
    for a in range(count):
        _within_class(a, classes.end[a], s, t, u, v, law, f, g)
    for begin in range(0, count, TILE):
        end = min(begin + TILE, count)
        for a in range(end):
            if classes.end[a] < end:
                _across_classes(a, max(begin, classes.end[a]), end, s, t, u, v, law, f, g)
    force_x[:] = 0.0
    force_y[:] = 0.0
    for a in range(classes.first.size):  # the force on a pair (i, i) acts twice on i
        i, j = classes.first[a], classes.second[a]
        fx, fy = load(f, a), load(g, a)
        store(force_x, i, load(force_x, i) + fx)
        store(force_y, i, load(force_y, i) + fy)
        store(force_x, j, load(force_x, j) + fx)
        store(force_y, j, load(force_y, j) + fy)


@kernel(parallel=True, rows=lambda positions, *_: -(-len(positions) // WIDTH))
def advance(positions: Array, forces: Array, classes: Classes, law: Law, steps: Steps) -> None:
    """Move all runs in the plane, eight runs at a time.

    `positions` (runs, tokens, 2) are overwritten, and `forces`, of the same shape, receives the forces before
    the last step. If the last batch has fewer than eight runs, its other lanes repeat the last run.
    """
    for batch in prange(-(-len(positions) // WIDTH)):
        _advance_batch(batch, positions, forces, classes, law, steps)


@kernel()
def _advance_batch(
    batch: int, positions: Array, forces: Array, classes: Classes, law: Law, steps: Steps
) -> None:
    """Move the runs of one batch, as `advance` does."""
    runs, tokens, _ = positions.shape
    x, force = np.empty((2, tokens, WIDTH)), np.empty((2, tokens, WIDTH))
    work = np.empty((6, classes.first.size, WIDTH))
    for step in range(max(steps.number, 1)):
        for lane in range(WIDTH):
            run = min(batch * WIDTH + lane, runs - 1)
            for i in range(tokens):
                for k in range(2):
                    x[k, i, lane] = positions[run, i, k]
        _forces(x, classes, law, work, force)
        for lane in range(min(WIDTH, runs - batch * WIDTH)):
            run = batch * WIDTH + lane
            for i in range(tokens):
                for k in range(2):
                    forces[run, i, k] = force[k, i, lane]
            if step < steps.number:
                move(positions[run], forces[run], steps.size, steps.normalise)
