"""Linear algebra on one thread, where results must have the same bits for any number of threads.

A BLAS library that divides a product among several threads adds its terms in an order that depends on the
number of threads, and so the last bits of the result depend on it too. The matrices here are small, so using
one thread costs little.
"""

import threading
from contextlib import ContextDecorator, ExitStack
from functools import lru_cache

from threadpoolctl import ThreadpoolController


class _OneThread(ContextDecorator):
    """Limit BLAS to one thread inside a ``with`` block or a decorated function.

    The number of BLAS threads is a setting of the whole process. Several Python threads that use this object
    therefore take turns, because the first one to leave restores the setting. A thread that is inside may
    enter again. Other Python threads, which do not use this object, are limited in the meantime too.

    The setting is effective for the libraries that threadpoolctl supports: OpenBLAS, MKL, BLIS and FlexiBLAS,
    but not Apple's Accelerate.
    """

    def __init__(self) -> None:
        self._turn = threading.RLock()
        self._inside: list[ExitStack] = []

    def __enter__(self) -> None:
        with ExitStack() as entered:
            entered.enter_context(self._turn)
            if not self._inside:
                entered.enter_context(_libraries().limit(limits=1, user_api="blas"))
            self._inside.append(entered.pop_all())

    def __exit__(self, *error: object) -> None:
        self._inside.pop().close()


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    """Find the BLAS libraries, once: it takes milliseconds, and setting their threads microseconds."""
    import scipy.linalg  # noqa: F401 - SciPy may bring a BLAS of its own, and it must be loaded to be found

    return ThreadpoolController()


one_blas_thread = _OneThread()
"""Context manager and decorator under which the linear algebra of NumPy and SciPy uses one thread."""
