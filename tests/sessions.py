"""Sessions of the explorer without a browser: what its tests share."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from bokeh.document import Document
from matplotlib.figure import Figure

from grokphys.explorer.session import Session


def alone(coroutine):
    """Run a coroutine in a thread of its own, as Playwright keeps the loop of this one."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, coroutine).result()


def opened(*kinds, files=(), folder=None):
    """A session of some views, whose page is ready."""
    page = Session(Document(), kinds, files, folder)
    page.document.add_root(page.stage)
    page._command("ready", None)
    return page


def put(page, **values):
    """Change widgets of the visible view as a page does, one after the other."""
    for name, value in values.items():
        page.view.widgets[name].value = value


def played(page, frames):
    """Advance so many frames, and show the last as a pause does."""
    for _ in range(frames):
        page.view.advance(page.bridge.speed)
    page._command("pause", None)
    return page.view


def followed(page, preset, frames):
    """Choose a preset, and play so many frames of it."""
    page._command("preset", f"{page.view.slug}/{preset}")
    assert page.bridge.message[1] != "error", page.bridge.message
    return played(page, frames)


def drawn(film, frame=-1):
    """Axes of a frame of a film by their labels."""
    figure = Figure(figsize=film.size)
    film.draw(figure, range(film.frames)[frame])
    return {ax.get_label(): ax for ax in figure.axes}


def passed(page, times=1):
    """Let the event loop do what waits, as often as asked for."""

    async def each(functions):
        for function in functions:
            result = function()
            if result is not None:
                await result

    for _ in range(times):
        waiting = list(page.document.callbacks.session_callbacks)
        for callback in waiting:
            page.document.callbacks.remove_session_callback(callback)
        alone(each([callback.callback for callback in waiting]))
