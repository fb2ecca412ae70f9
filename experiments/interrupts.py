"""Ctrl-C that is never lost."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

AGAIN_AFTER = 0.05  # seconds


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Interrupt the main thread again where Python has dropped the interrupt.

    A signal may arrive while a destructor or a callback from C runs (of which there are thousands while Numba
    compiles). Python reports an exception there as unraisable and goes on: Ctrl-C would do nothing.
    """
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            return before(unraisable)
        main = threading.main_thread().ident
        assert main is not None, "the main thread runs"
        # Later, for now the destructor still runs. Sent to that thread: it may wait in a call of the system.
        again = threading.Timer(AGAIN_AFTER, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
