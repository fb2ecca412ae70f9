"""How kernels are compiled: the one place that decides about cache, order of sums and threads.

Compiled code is cached on disk, next to the source or in the user's cache directory. Numba writes index and
code through a temporary file and an atomic rename, so many processes may start at once. A process that finds
an index without its code compiles again. The cache notices a change of any file in the folder of a kernel,
and of this file. Therefore **a kernel calls only kernels of its own folder**.

Parallel kernels use a threading layer of Numba that survives a fork, TBB or "workqueue", unless
NUMBA_THREADING_LAYER names another one.
"""

import contextlib
import hashlib
import importlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache, wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core import caching, cgutils, event
from numba.extending import intrinsic
from numba.np import arrayobj

Function = TypeVar("Function", bound=Callable[..., Any])
P = ParamSpec("P")

if numba.config.THREADING_LAYER == "default":
    numba.config.THREADING_LAYER = "forksafe"  # GNU's OpenMP ends a child process that computes after a fork

PATIENCE = 1.0
"""Seconds of compilation after which a message on the terminal says that kernels are being compiled."""
primitive: Any = intrinsic
"""Numba's `intrinsic`; its type is Any, as compiled functions lack the first argument, the typing context."""
PARTS, MANY = 4, 16
"""Rows are cut into `PARTS` parts for each thread if there are at least `MANY` rows for each thread.

A thread whose core is busy with other work then processes fewer parts than the others.
"""


def kernel(
    *, parallel: bool = False, reorder: bool = False, cache: bool = True
) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function of plain arrays, numbers and tuples of them.

    A division by zero gives infinity or NaN, as in NumPy (``error_model="numpy"``), which also leaves loops
    with a division free to be vectorized. Unless `reorder` is true, sums keep their order. The same input
    then gives the same bits with any number of threads, as long as every row that a ``prange`` writes belongs
    to one iteration and nothing is accumulated across iterations.

    Parameters
    ----------
    parallel : bool, default False
        Whether the function may use ``prange``, for threads that start many times within a call; otherwise
        `rows_kernel` compiles faster. Such a kernel takes positional arguments and is called from Python, not
        from another kernel. Where Numba's threading layer allows only one call at a time, calls take turns.
    reorder : bool, default False
        Whether the compiler may choose the order of sums and fuse products into them, which a vectorized sum
        needs. The choice is made once, so the bits depend on the processor, but not on the number of threads.
        Use it only for a loop whose error a test bounds. NaN, infinity and comparisons keep their meaning.
    cache : bool, default True
        Whether to keep the compiled code on disk. It must be False if the kernel calls a function of the
        user.

    Returns
    -------
    callable
        The decorator.
    """
    compiled = _compiler(parallel, reorder, cache)
    return cast("Callable[[Function], Function]", _in_turn(compiled) if parallel else compiled)


def rows_kernel(
    rows: Callable[..., int] | None = None, *, least: int = 2, reorder: bool = False, cache: bool = True
) -> Callable[[Callable[Concatenate[int, int, P], None]], Callable[P, None]]:
    """Return a decorator that compiles a function of rows and distributes its rows among threads.

    The first two arguments of the decorated function are ``begin`` and ``end``, and it processes the rows
    from ``begin`` to before ``end`` serially. Callers leave these two out, and pass the other arguments by
    position.

    Parameters
    ----------
    rows : callable, optional
        Function that returns the number of rows from the arguments of the caller; by default it is the length
        of the first one.
    least : int, default 2
        Number of rows below which the calling thread processes them alone. This is faster if they take less
        time than a thread needs to start.
    reorder, cache : bool
        As in `kernel`.

    Returns
    -------
    callable
        The decorator.

    Notes
    -----
    A ``prange`` would start its threads faster, but LLVM compiles its body three times.
    """
    compiled = _compiler(False, reorder, cache)

    def decorate(function: Callable[Concatenate[int, int, P], None]) -> Callable[P, None]:
        return _in_parts(compiled(function), rows or _length, least, function)

    return decorate


class Inner(NamedTuple):
    """A kernel that only other kernels call; `address_of` compiles it and returns its address.

    The field `dispatcher` is Numba's object for the function, which Python must not call.
    """

    dispatcher: Any


def inner_kernel(*, reorder: bool = False) -> Callable[[Callable[..., None]], Inner]:
    """Return a decorator that compiles a function which only kernels call, by its address.

    Python cannot call the result. This saves the code that converts Python's arguments, which can be longer
    than the kernel itself if it takes tuples of arrays. See `kernel` for `reorder`.
    """
    compiled = _compiler(False, reorder, True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return lambda function: Inner(compiled(function))


def inlined(*, reorder: bool = False) -> Callable[[Function], Function]:
    """Return a decorator for a function that is compiled within the kernel that calls it, and not by itself.

    LLVM puts a small kernel into its caller anyway, so a function with a single caller is compiled once
    instead of twice. The order of operations, and so the bits, stay the same. See `kernel` for `reorder`.
    """
    return cast("Callable[[Function], Function]", _compiler(False, reorder, False, inline="always"))


def _compiler(parallel: bool, reorder: bool, cache: bool, **options: Any) -> Callable[..., Any]:
    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        settings = dict(
            options,
            error_model="numpy",
            parallel=parallel,
            nogil=True,
            fastmath={"contract", "reassoc", "nsz"} if reorder else False,
        )
        own_place = cache and not numba.config.CACHE_LOCATOR_CLASSES
        numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.KernelCache" if own_place else ""
        try:
            return cast("Any", numba.njit)(cache=cache, **settings)(function)
        except RuntimeError:  # there is no place for compiled code
            _say_uncached()
            return cast("Any", numba.njit)(**settings)(function)
        finally:
            numba.config.CACHE_LOCATOR_CLASSES = "" if own_place else numba.config.CACHE_LOCATOR_CLASSES

    return compiled


@lru_cache(maxsize=1)
def _say_uncached() -> None:
    print(
        "compiled kernels cannot be kept, so every process compiles them anew; let NUMBA_CACHE_DIR name a "
        "directory that can be written",
        file=sys.stderr,
    )


class KernelCache(caching.InTreeCacheLocator):
    """Where Numba keeps a kernel: in a directory that can be written, filled from the package if it is not.

    That is the directory that NUMBA_CACHE_DIR names, the ``__pycache__`` of the package, or the user's cache.
    If another user has compiled the kernel in the package (``grokphys warm``), its code is copied from there.
    Without any such directory, that code is copied to a temporary one for this process. Compiled code is used
    as long as no file in the folder of the kernel has changed.
    """

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return where `py_func`, which is defined in `py_file`, is kept, or None if nowhere."""
        self = cls(py_func, py_file)
        warmed = Path(self.get_cache_path())
        index = f"{Path(py_file).stem}.{py_func.__qualname__}-{self.get_disambiguator()}.".replace("<", "")
        files = sorted(warmed.glob(index.replace(">", "").replace("[", "[[]") + "*"))
        usual = caching.UserProvidedCacheLocator, caching.InTreeCacheLocator, caching.UserWideCacheLocator
        places = (place for kind in usual if (place := kind.from_function(py_func, py_file)))
        if place := next(places, None):
            self._cache_path = place.get_cache_path()
        elif files:
            self._cache_path = _temporary().name
        else:
            return None
        here = Path(self._cache_path)
        for file in files if here != warmed else ():
            copy = here / file.name
            if not copy.exists() or copy.stat().st_mtime < file.stat().st_mtime:
                with contextlib.suppress(OSError):
                    shutil.copyfile(file, unfinished := copy.with_name(f"{copy.name}.{os.getpid()}"))
                    unfinished.replace(copy)
        return self

    def get_source_stamp(self) -> Any:
        """Return a digest of the folder of the kernel, which may call kernels of the files beside its own."""
        return _digest(str(Path(self._py_file).parent))


@lru_cache(maxsize=1)
def _temporary() -> Any:
    return tempfile.TemporaryDirectory(prefix="kernels")


@lru_cache(maxsize=64)
def _digest(folder: str) -> str:
    sources = [path.read_bytes() for path in (*sorted(Path(folder).glob("*.py")), Path(__file__))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


# -- views that compile in no time -----------------------------------------------------------------------


@primitive
def matrix(typing_context: Any, numbers: Any, start: Any, rows: Any, columns: Any) -> Any:
    """Return ``rows * columns`` entries of a contiguous array, from the entry `start`, as a matrix.

    The result is a C-contiguous view (rows, columns) of the dtype of `numbers`. The array must outlive this
    view, and nothing checks its bounds. A slice that is reshaped would do the same, but compiles slowly.
    Kernels leave out the first argument, which Numba passes.
    """
    return _view(numbers, 2)


@primitive
def piece(typing_context: Any, numbers: Any, start: Any, size: Any) -> Any:
    """Return `size` entries of a contiguous array, from the entry `start`.

    The result is a view (size,) of the dtype of `numbers`. The array must outlive this view, and nothing
    checks its bounds. Kernels leave out the first argument, which Numba passes.
    """
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


# -- kernels that are called by their address --------------------------------------------------------------


@primitive
def call(typing: Any, address: Any, arguments: Any) -> Any:
    """Call a kernel by its address, with a tuple of arguments; the kernel returns nothing.

    A kernel that is called by its name is optimized again within each of its callers. A call by its address
    avoids this. The address must come from `address_of` with arguments of the same types. Kernels leave out
    the first argument, `typing`, which Numba passes.
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
        kinds = tuple(numba.typeof(argument) for argument in arguments)
        dispatcher = kernel.dispatcher if isinstance(kernel, Inner) else kernel
        dispatcher.compile(kinds)
        found = dispatcher.overloads[kinds]
        _addresses[key] = int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))
    return _addresses[key]


_addresses: dict[tuple[Any, ...], int] = {}


def _kind(argument: Any) -> Any:
    """Return a key that determines Numba's type of an argument, in less time than Numba needs."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        layout = flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
        return (argument.dtype, argument.ndim, *layout)
    if isinstance(argument, tuple):
        return (type(argument), *map(_kind, argument))
    return type(argument) if isinstance(argument, bool | int | float) else numba.typeof(argument)


# -- rows that threads share -------------------------------------------------------------------------------


def _length(first: Any, *_: Any) -> int:
    return len(first)


def _in_parts(
    kernel: Any, rows: Callable[..., int], least: int, function: Callable[..., None]
) -> Callable[..., None]:
    """Return a function that distributes the rows of a serial kernel among the threads of a pool."""

    @wraps(function)
    def call(*arguments: Any) -> None:
        count = rows(*arguments)
        threads = numba.get_num_threads() if count >= least else 1
        if threads == 1:
            kernel(0, count, *arguments)
            return
        parts = min(count, threads * (PARTS if count >= MANY * threads else 1))
        cuts = [count * part // parts for part in range(parts + 1)]
        # Every thread, including this one, takes the next part until none is left.
        left = iter(list(pairwise(cuts)))

        def work() -> None:
            for begin, end in left:
                kernel(begin, end, *arguments)

        others = [_pool(os.getpid(), threads).submit(work) for _ in range(min(threads, parts) - 1)]
        try:
            work()
        finally:  # even after an exception, no thread may still write when the caller continues
            wait(others)
        for other in others:
            other.result()

    return call


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return the threads that help the calling one; a forked process needs a pool of its own."""
    return ThreadPoolExecutor(threads - 1, "kernel")


_turn = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_turn=threading.Lock()))
_calls_may_meet = False
"""Whether parallel kernels may run at the same time, which is known after one has run."""


def _in_turn(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Make Python threads take turns in parallel kernels under the threading layer "workqueue".

    This layer comes with every installation of Numba, and it ends the process if two calls overlap. Under
    OpenMP and TBB only the first call takes a turn, and later ones may overlap.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel = compiled(function)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            global _calls_may_meet
            if _calls_may_meet:
                return kernel(*arguments)
            with _turn:
                result = kernel(*arguments)
                _calls_may_meet = numba.threading_layer() != "workqueue"
            return result

        return call

    return decorate


class _Announcement(event.Listener):
    """Tells a user at a terminal, at most once in each process, that kernels are being compiled."""

    def __init__(self) -> None:
        self._depth = 0  # kernels compile the kernels that they call; only one thread compiles at a time
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """Start a timer when the outermost compilation begins."""
        self._depth += 1
        if self._timer is None and sys.stderr is not None and sys.stderr.isatty():
            self._timer = threading.Timer(PATIENCE, print, ["compiling kernels, once"], {"file": sys.stderr})
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Stop the timer, if it has not fired yet, when the outermost compilation ends."""
        self._depth -= 1
        if self._timer is not None and not self._depth and self._timer.is_alive():
            self._timer.cancel()
            self._timer = None


event.register("numba:compile", _Announcement())


def _let_idle_threads_sleep() -> None:
    """Make the idle threads of GNU's OpenMP wait actively for microseconds instead of milliseconds.

    On a busy machine, a thread that waits actively can occupy the core on which another thread should run.
    The library reads the setting when it is loaded, which happens here. A setting of the user takes
    precedence, and other libraries' copies of OpenMP are not affected.
    """
    if os.environ.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}:
        return
    os.environ["GOMP_SPINCOUNT"] = "10000"  # measured: 1000 is too short, 30000 occupies busy cores
    with contextlib.suppress(ImportError):  # Numba may be built without OpenMP
        importlib.import_module("numba.np.ufunc.omppool")
    del os.environ["GOMP_SPINCOUNT"]


_let_idle_threads_sleep()
