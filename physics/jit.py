"""How kernels are compiled: the one place that decides about cache, order of sums and threads.

Compiled code is cached on disk, next to the source or in the user's cache directory. Numba writes index and
code through a temporary file and an atomic rename, so many processes may start at once. The cache notices a
change of any file in the folder of a kernel, and of this file. Therefore **a kernel calls only kernels of its
own folder**.

Parallel kernels use a threading layer of Numba that survives a fork, TBB or "workqueue", unless
NUMBA_THREADING_LAYER names another one. "workqueue" ends the process if two Python threads start parallel
kernels at the same time, so they take turns.
"""

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numba.core import caching, cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

Function = TypeVar("Function", bound=Callable[..., Any])

primitive: Any = intrinsic
"""Numba's `intrinsic`; its type is Any, as compiled functions lack the first argument, the typing context."""
config: Any = numba.config
if config.THREADING_LAYER == "default":
    config.THREADING_LAYER = "forksafe"  # GNU's OpenMP ends a child process that computes after a fork
ONLY_PRANGE = dict.fromkeys(
    ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion"), False
)
"""What Numba makes parallel: no operations of arrays, which would only compile longer."""
_turn = threading.RLock()
os.register_at_fork(after_in_child=lambda: globals().update(_turn=threading.RLock()))


def kernel(
    *,
    parallel: bool = False,
    least: int = 2,
    rows: Any = None,
    reorder: bool = False,
    fuse: bool = False,
    cache: bool = True,
) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function of plain arrays, numbers and tuples of them.

    A division by zero gives infinity or NaN, as in NumPy (``error_model="numpy"``), which also leaves loops
    with a division free to be vectorized. Unless `reorder` is true, sums keep their order. The same input
    then gives the same bits with any number of threads, as long as every row that a ``prange`` writes belongs
    to one iteration and nothing is accumulated across iterations.

    Parameters
    ----------
    parallel : bool, default False
        Whether the function shares the iterations of a ``prange`` among threads. Such a kernel takes
        positional arguments and is called from Python, not from another kernel.
    least : int, default 2
        Number of rows from which several threads are used. Below, starting them would take longer than the
        work.
    rows : callable, optional
        Function that returns the number of rows from the arguments; by default the length of the first one.
    reorder : bool, default False
        Whether the compiler may choose the order of sums and fuse products into them, which a vectorized sum
        needs. The choice is made once, so the bits depend on the processor, but not on the number of threads.
        Use it only for a loop whose error a test bounds. NaN, infinity and comparisons keep their meaning.
    fuse : bool, default False
        Whether the compiler may fuse a product into a sum, without its rounding.
    cache : bool, default True
        Whether to keep the compiled code on disk. It must be False if the kernel calls a function of the
        user.

    Returns
    -------
    callable
        The decorator.
    """

    def decorate(function: Any) -> Any:
        fastmath = {"contract", "reassoc", "nsz"} if reorder else {"contract"} if fuse else False
        serial = _compiled(function, False, fastmath, cache)
        if not parallel:
            return serial
        threaded = FunctionType(function.__code__, function.__globals__, None, None, function.__closure__)
        threaded.__qualname__ = f"{function.__qualname__}_threaded"  # the name of its file in the cache
        compiled = _compiled(threaded, True, fastmath, cache)

        @wraps(function)
        def call(*arguments: Any) -> None:
            count = rows(*arguments) if rows else len(arguments[0])
            if count < least or numba.get_num_threads() == 1:
                serial(*arguments)
            else:
                with _turn:
                    compiled(*arguments)

        return call

    return decorate


def _compiled(function: Any, parallel: bool, fastmath: Any, cache: bool) -> Any:
    threads: Any = ONLY_PRANGE.copy() if parallel else False
    options = {"error_model": "numpy", "nogil": True, "fastmath": fastmath, "parallel": threads}
    chosen = config.CACHE_LOCATOR_CLASSES
    config.CACHE_LOCATOR_CLASSES = chosen or f"{__name__}.KernelCache"
    try:
        return numba.njit(cache=cache, **options)(function)
    finally:
        config.CACHE_LOCATOR_CLASSES = chosen


@lru_cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """Return a directory of this process for compiled code, and say that the next one compiles it anew."""
    text = "compiled kernels cannot be kept, so that every process compiles them anew"
    print(f"{text}; let NUMBA_CACHE_DIR name a directory that can be written", file=sys.stderr)
    return tempfile.TemporaryDirectory(prefix="kernels")


class KernelCache(caching.InTreeCacheLocator):
    """Where Numba keeps a kernel: the directory of NUMBA_CACHE_DIR, ``__pycache__``, or the user's cache.

    If none of them can be written to, it is a temporary directory of this process.
    """

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return where `py_func`, which is defined in `py_file`, is kept."""
        self = cls(py_func, py_file)
        usual = caching.UserProvidedCacheLocator, caching.InTreeCacheLocator, caching.UserWideCacheLocator
        place = next((found for kind in usual if (found := kind.from_function(py_func, py_file))), None)
        self._cache_path = place.get_cache_path() if place else _temporary().name
        return self

    def get_source_stamp(self) -> Any:
        """Return a digest of the folder of the kernel, which may call kernels of the files beside its own."""
        return _digest(str(Path(self._py_file).parent))


@lru_cache(maxsize=64)
def _digest(folder: str) -> str:
    sources = [path.read_bytes() for path in (*sorted(Path(folder).glob("*.py")), Path(__file__))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


# -- views and calls that compile in no time -------------------------------------------------------------


@primitive
def matrix(typing_context: Any, numbers: Any, start: Any, rows: Any, columns: Any) -> Any:
    """Return ``rows * columns`` entries of a contiguous array, from the entry `start`, as a matrix.

    The result is a C-contiguous view (rows, columns) of the dtype of `numbers`. The array must outlive this
    view, and nothing checks its bounds. A slice that is reshaped would do the same, but compiles slowly.
    """
    return _view(numbers, 2)


@primitive
def piece(typing_context: Any, numbers: Any, start: Any, size: Any) -> Any:
    """Return a view of `size` entries of a contiguous array, from the entry `start`, as `matrix` does."""
    return _view(numbers, 1)


def _view(numbers: Any, dimensions: int) -> Any:
    kind = types.Array(numbers.dtype, dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.make_array(signature.args[0])(context, builder, arguments[0])
        view = context.make_array(kind)(context, builder)
        size = context.get_constant(types.intp, numbers.dtype.bitwidth // 8)
        start, *shape = arguments[1:]
        strides = [builder.mul(shape[-1], size), size][2 - dimensions :]
        data = builder.gep(whole.data, [start])
        arrayobj.populate_array(view, data, shape, strides, size, meminfo=None)
        return view._getvalue()

    return kind(numbers, *[types.intp] * (1 + dimensions)), generate


@primitive
def call(typing: Any, address: Any, arguments: Any) -> Any:
    """Call a kernel by its address, with a tuple of arguments; the kernel returns nothing.

    A kernel that is called by its name is optimized again within each of its callers. A call by its address
    avoids this. The address must come from `address_of` with arguments of the same types.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = list(arguments.types)
        convention = context.call_conv
        pointer = convention.get_function_type(types.none, kinds).as_pointer()
        callee = builder.inttoptr(values[0], pointer)
        unpacked = cgutils.unpack_tuple(builder, values[1])
        status, _ = convention.call_function(builder, callee, types.none, kinds, unpacked)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(address, arguments), generate


def address_of(kernel: Any, *arguments: Any) -> int:
    """Return the address by which `call` can call a kernel, and compile the kernel if necessary.

    `arguments` are examples of its arguments. Only their types matter, so arrays may be empty.
    """
    key = (kernel, *map(_kind, arguments))
    if key not in _addresses:  # Numba needs half a millisecond to determine the types of ten arrays.
        kinds = tuple(map(numba.typeof, arguments))
        kernel.compile(kinds)
        compiled = kernel.overloads[kinds]
        _addresses[key] = int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))
    return _addresses[key]


_addresses: dict[tuple[Any, ...], int] = {}


def _kind(argument: Any) -> Any:
    """Return a key that determines Numba's type of an argument, in less time than Numba needs."""
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
    if isinstance(argument, tuple):
        return (type(argument), *map(_kind, argument))
    return type(argument) if isinstance(argument, bool | int | float) else numba.typeof(argument)
