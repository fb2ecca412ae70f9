"""The one place that decides how kernels are compiled: cache, fastmath, error model, threads.

Compiled code is cached on disk beside the source (or, where that is read-only, in the user's cache
directory). Numba writes index and code through a temporary file and an atomic rename, so many processes
may start at once; one that finds an index without its code compiles anew. The cache notices a change of
the file that holds a kernel, but not of a file that this one calls into: **a kernel calls only kernels of
its own file.**
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(*, parallel: bool = False, reorder: bool = False) -> Callable[[Function], Function]:
    """Compile a function of plain arrays.

    ``error_model="numpy"`` lets a division by zero give infinity as in NumPy, and leaves loops with a
    division free to be vectorised. Without ``fastmath`` sums keep their order, so the same seed gives
    the same bits with any number of threads, as long as every row that a ``prange`` writes belongs to
    one iteration and nothing is accumulated across iterations.

    ``reorder`` lets the compiler, and nobody else, choose the order of a sum once and fuse products into
    sums, which a vectorised reduction needs. The bits then depend on the processor, still not on the
    threads. It is for loops whose error a test bounds; NaN, infinity and comparisons keep their meaning.
    """
    decorate = numba.njit(
        cache=True,
        error_model="numpy",
        parallel=parallel,
        nogil=True,
        fastmath={"contract", "reassoc", "nsz"} if reorder else False,
    )
    return cast("Callable[[Function], Function]", decorate)
