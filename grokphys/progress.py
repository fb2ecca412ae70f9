"""Progress bars on stderr for long work, and none if stderr is not a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def progress(items: Iterable[Item], what: str, unit: str, total: int | None = None) -> Iterator[Item]:
    """Yield items under a progress bar on stderr; lines that are printed meanwhile appear above the bar.

    Parameters
    ----------
    items : iterable
        Items to yield.
    what, unit : str
        Name of the bar, and of one item, such as "file".
    total : int, optional
        Number of items, if `items` has no length.
    """
    with _bar(what, unit, len(items) if isinstance(items, Sized) else total) as bar:
        for item in items:
            yield item
            bar.update()


@contextlib.contextmanager
def stages(what: str, *names: str) -> Iterator[Callable[[], None]]:
    """Show a bar of stages of unequal length, and yield the function to call when the next one begins."""
    left = iter(names)
    with _bar(what, "stage", len(names)) as bar:

        def begin() -> None:
            name = next(left)
            bar.update(names.index(name) - bar.n)
            bar.set_postfix_str(name)

        yield begin


@contextlib.contextmanager
def _bar(what: str, unit: str, total: int | None) -> Iterator[Any]:
    hidden = None if sys.stderr is not None else True
    bar = tqdm(total=total, unit=unit, desc=what, disable=hidden, leave=False)
    shown: Any = sys.stdout
    if not bar.disable:
        from tqdm.contrib import DummyTqdmFile  # imports asyncio

        shown = DummyTqdmFile(sys.stdout)
    with bar, contextlib.redirect_stdout(shown):
        yield bar
