"""Sessions of the explorer without a browser: what its tests share."""

from bokeh.document import Document
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
