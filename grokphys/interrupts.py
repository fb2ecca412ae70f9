"""Signals that end a command: Ctrl-C, which is sent again if Python loses it, and SIGTERM."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

AGAIN_AFTER = 0.05  # seconds


class Terminated(KeyboardInterrupt):
    """An exception that SIGTERM raises while a command runs, so that the command cleans up as after Ctrl-C.

    It is a `KeyboardInterrupt`, so that code which handles Ctrl-C handles SIGTERM as well.
    """


@contextlib.contextmanager
def terminates() -> Iterator[None]:
    """Let SIGTERM raise `Terminated` in the main thread while a block of code runs.

    The context manager does nothing if other code already handles the signal, or in another thread, because
    only the main thread can set a handler.

    Raises
    ------
    Terminated
        If the signal arrives within the block.
    """

    def end(*_: Any) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if (before := signal.getsignal(signal.SIGTERM)) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Interrupt the main thread again if Python has lost an interrupt while a block of code runs.

    A signal may arrive while a destructor or a callback from C runs, and Numba makes thousands of these while
    it compiles. Python reports an exception in them as unraisable and continues, so that Ctrl-C would have no
    effect.
    """
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            return before(unraisable)
        main = threading.main_thread().ident
        assert main is not None, "the main thread runs"
        # The destructor still runs, so the signal is sent later, to that thread, which may wait in a system
        # call.
        again = threading.Timer(AGAIN_AFTER, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
