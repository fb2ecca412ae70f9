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
    """Let SIGTERM raise `Terminated` in the main thread while a block of code runs, as Ctrl-C interrupts it.

    If either signal arrives while an extension module is imported, the module may report that it cannot be
    imported. The interrupt then takes the place of this error. A signal that other code already handles is
    left to it, and so are both in another thread, because only the main thread can set a handler.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C arrives within the block.
    Terminated
        If SIGTERM does.
    """
    came: list[KeyboardInterrupt] = []

    def end(number: int, _: Any) -> None:
        came.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
        raise came[-1]

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: handler for number, handler in usual.items() if signal.getsignal(number) == handler}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    except ImportError as error:
        if not came:
            raise
        for note in getattr(error, "__notes__", ()):
            came[-1].add_note(note)
        raise came[-1] from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
