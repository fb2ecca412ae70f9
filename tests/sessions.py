"""Sessions of the explorer without a browser: what its tests share."""

from bokeh.document import Document
from hostile import alone
from matplotlib.figure import Figure

from grokphys.explorer import session
from grokphys.explorer.guard import guard


def opened(*kinds):
    """Return a session whose document a page may change through the guard."""
    document = Document()
    page = session.Session(document, kinds)
    document.add_root(page.stage)
    guard(document, page.fail)
    page._command("ready", None)
    return page


def put(page, widget, value, name="value"):
    """Change a widget as a page does."""
    change = {"kind": "ModelChanged", "model": {"id": widget.id}, "attr": name, "new": value}
    page.document.apply_json_patch({"events": [change]})


def followed(page, preset, frames):
    """Choose a preset, and play so many frames of it."""
    page._command("preset", preset)
    for _ in range(frames):
        page.view.advance(page.bridge.speed)
    page.view.show()
    page._say_status()
    return page.view


def drawn(film, frame=-1):
    """Return the axes of a frame of a film by their labels."""
    figure = Figure(figsize=film.size)
    move = film.begin(figure)
    figure.canvas.draw()
    move(range(film.frames)[frame])
    return {ax.get_label(): ax for ax in figure.axes}


def waiting(page):
    """Take the callbacks that wait for the event loop out of a document, and return their functions."""
    found = page.document.callbacks.session_callbacks
    functions = [one.callback for one in found]
    for one in found:
        page.document.callbacks.remove_session_callback(one)
    return functions


def passed(page):
    """Let the event loop do what waits, once, and return how many functions this were."""

    async def each(functions):
        for function in functions:
            found = function()
            if found is not None:
                await found

    functions = waiting(page)
    alone(each(functions))
    return len(functions)
