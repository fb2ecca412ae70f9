"""The page and its sessions: one browser tab, its views, and the loop that plays the visible one."""

import json
import tempfile
import threading
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from bokeh.core.properties import Any as AnyValue
from bokeh.core.properties import Int, List, String
from bokeh.core.templates import get_env
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import EMPTY_LAYOUT
from bokeh.document import Document
from bokeh.model import DataModel
from bokeh.models import CustomJS
from bokeh.themes import Theme
from tornado.ioloop import IOLoop

import physics
from grokphys.explorer import films
from grokphys.explorer.runs.common import asset, sections
from grokphys.explorer.view import View, column
from grokphys.options import sentence
from grokphys.output import printable
from physics.checks import whole_number

SPEEDS = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100)
"""Numbers of steps per frame that the page offers."""
EXPECTED = (physics.InputError, physics.FileFormatError, OSError, physics.SimulationError)
"""Exceptions whose sentences are shown; all other exceptions are shown as errors of the program."""


INTERVAL = 1 / 35
"""Shortest time between two frames in seconds."""
LONGEST_REPLAY = 20_000
"""Largest number of steps that a link may request, which take some seconds."""
LACKS = "The run was changed on its way, so a link begins it anew: “Copy as Python” holds all of it."
IN_FLIGHT = 3
"""Number of frames that may be sent before the page has drawn them: one is painted, and one waits."""
WHOLE_EVERY = 0.3
"""Seconds between complete updates during play, and between two progress messages of a film."""
TYPES = {"h5": "application/x-hdf5", "png": "image/png", "gif": "image/gif", "mp4": "video/mp4"}
"""Media types of exports by the endings of their names."""
WORK = ThreadPoolExecutor(1, "explore-work")
"""Worker that advances the runs of all sessions in turn, so that the event loop stays free."""
DRAW = ThreadPoolExecutor(1, "explore-draw")
"""Worker for slow work such as exports (matplotlib needs a single thread), fits, and preparing views."""
ENDED = threading.Event()
"""Set when the server stops, so that films in the making end."""


class Bridge(DataModel):
    """A model of Bokeh through which the script of a page and its session communicate.

    The `help` of each property says who sets it and what it holds. Lists that carry a command begin with a
    number that increases, so that a repeated command is a change.
    """

    command: Any = List(AnyValue, default=[0, "", None], help="From the page: [number, name, value].")
    shown: Any = Int(default=0, help="From the page: the last frame that it has drawn.")
    frame: Any = Int(default=0, help="From the session: the last frame that was sent.")
    view: Any = String(default="", help="From the session: the view on the stage.")
    playing: Any = Int(default=0, help="From the session: 1 while the view plays, otherwise 0.")
    speed: Any = Int(default=1, help="From the session: steps per frame.")
    status: Any = List(AnyValue, default=[], help="From the session: [name, text] of each measure.")
    verdict: Any = String(default="", help="From the session: what is on screen, in a sentence.")
    watch: Any = String(default="", help="From the session: what to watch for.")
    preset: Any = String(default="", help="From the session: the preset that the state fits, or none.")
    link: Any = String(default="", help="From the session: the state, as the fragment of an address.")
    lacks: Any = String(default="", help="From the session: what the link leaves out, in a sentence.")
    message: Any = List(AnyValue, default=[0, "", ""], help="From the session: [number, kind, sentence].")
    script: Any = List(AnyValue, default=[0, ""], help="From the session: [number, Python text].")
    download: Any = List(AnyValue, default=[0, "", "", None], help="[number, name, type, content].")

    def send(self, name: str, *values: Any) -> None:
        """Send the list property `name` with another number and `values` to the page."""
        setattr(self, name, [getattr(self, name)[0] + 1, *values])


class Canceled(Exception):  # noqa: N818 - not an error
    """Raised in a worker to end a film: the page cancels it, its tab is closed, or the server stops."""


class Session:
    """The session of one browser tab.

    Parameters
    ----------
    document : bokeh.document.Document
    kinds : sequence of View classes
        Views in the order of their tabs. The page begins with the first or, if there are files, with the
        first that reads files.
    files : sequence of Path, default ()
        Trajectory files from the command line.
    folder : Path, optional
        Private folder of the files that pages upload.

    Attributes
    ----------
    bridge : Bridge
        Model through which the script of the page and the session communicate.
    stage : bokeh.models.Column
        Column of the views, of which the chosen one is visible.
    files : dict of str to str
        Names of the files that this page may open, given or uploaded, by path.
    view : View
        The visible view.
    closed : bool
        Whether the tab is closed.
    """

    def __init__(
        self,
        document: Document,
        kinds: Sequence[type[View]],
        files: Sequence[Path] = (),
        folder: Path | None = None,
    ) -> None:
        self.document, self.files = document, {str(path): str(path) for path in files}
        self._folder = folder
        self._kinds = {kind.slug: kind for kind in kinds}
        self._views: dict[str, View] = {}
        self.bridge = Bridge()
        self.stage = column()
        self._began = self._whole = 0.0
        self._waiting = self._held = self.closed = False
        self.view: Any = None
        self._canceled = 0  # how often films were canceled
        self.bridge.on_change("command", lambda _name, _old, new: self._command(*new[1:]))
        self.bridge.on_change("shown", lambda _name, _old, _new: self._schedule())
        reader = next((kind for kind in kinds if kind.reads_files and self.files), kinds[0])
        self.choose(reader.slug)

    # -- interface for views -------------------------------------------------------------------------------

    def reaction(self, function: Callable[..., Any]) -> Callable[..., None]:
        """Return a callback that calls `function`, updates the status and shows errors."""

        @wraps(function)
        def reacting(*arguments: Any, **named: Any) -> None:
            try:
                function(*arguments, **named)
                self._say_status()
            except Exception as error:
                self.fail(error)

        return reacting

    def say(self, text: str, kind: str = "note") -> None:
        """Show a sentence as a "note", "progress", "done" or "error"; an empty one removes the last."""
        if text or self.bridge.message[2]:
            self.bridge.send("message", kind, text)

    def accepted(self) -> None:
        """Remove the message if it is an error, because another value has been accepted."""
        if self.bridge.message[1] == "error":
            self.say("")

    def soon(self, function: Callable[[], Any]) -> None:
        """Call a function with the next tick of the event loop; any thread may use this."""
        with suppress(AttributeError):  # Bokeh has destroyed the document, because the tab was closed
            self.document.add_next_tick_callback(self.reaction(function))

    def later(self, work: Callable[..., Any], *arguments: Any, then: Callable[[Any], None]) -> None:
        """Call `work`, which is slow, in the worker `DRAW`, and then `then` with its result."""

        def done(future: "Future[Any]") -> None:
            if not self.closed:
                self.soon(lambda: then(future.result()))

        DRAW.submit(work, *arguments).add_done_callback(done)

    def hold(self, held: bool) -> None:
        """Pause play if `held` is True, as while a point is dragged, and otherwise let it continue."""
        self._held = held
        self._schedule()

    # -- commands of the page ------------------------------------------------------------------------------

    def _command(self, name: str, value: Any) -> None:
        if self.closed:  # a command may still arrive while the server stops
            return
        orders: dict[str, Callable[[], Any]] = {
            "ready": lambda: self.view.show(),
            "view": lambda: self.choose(str(value)),
            "speed": lambda: self._set_speed(value),
            "open": lambda: self._open_link(str(value)),
            "preset": lambda: self._preset(str(value)),
            "key": lambda: self.view.key(str(value)),
            "play": self._play,
            "pause": self._pause,
            "step": self._step,
            "reset": self._reset,
            "accepted": self.accepted,
            "python": self._copy,
            "save": lambda: self._export("h5", partial(file_bytes, self.view.trajectory())),
            "png": lambda: self._export("png", partial(films.png, self.view.still())),
            "gif": lambda: self._film("gif", films.gif),
            "mp4": lambda: self._film("mp4", films.mp4),
            "cancel": self._cancel,
            "uploaded": lambda: self._take(*value),
            "refused": lambda: self.fail(physics.InputError(str(value))),
        }
        self.reaction(orders.get(name, lambda: None))()

    def _preset(self, text: str) -> None:
        """Show and play the preset "view/name"."""
        slug, name = text.split("/")
        (preset,) = (preset for preset in self._kinds[slug].presets if preset.name == name)
        self.choose(slug)
        self.bridge.playing = 0
        self.view.restore(preset.settings)
        self._set_speed(preset.speed)
        self._play()

    def _open_link(self, text: str) -> None:
        """Restore the state that a link describes."""
        slug, speed, settings = read_link(text)
        self.choose(slug)
        steps = whole_number("step", settings.get("step", 0), 0, LONGEST_REPLAY)
        speed = _offered(speed)
        self.view.restore(settings)
        self._set_speed(speed)
        if steps and self.view.replays:
            self.say(f"Repeating the {steps} steps of this link …")
            self.document.add_next_tick_callback(lambda: self._repeat(steps, speed))

    async def _repeat(self, steps: int, speed: int) -> None:
        """Repeat the steps of a link, and then remove the message."""
        await self.move(lambda: self.view.replay(steps, speed))
        if self.bridge.message[1] == "note":
            self.say("")

    def choose(self, slug: str) -> None:
        """Show the view with the name `slug`, after making it when it is first chosen."""
        if slug not in self._kinds:
            raise physics.InputError(f"view must be one of {', '.join(self._kinds)}, got {slug!r}")
        self.say("")
        if self.view is not None:
            if self.view.slug == slug:
                return
            self.bridge.playing = 0
            self.view.speed = self.bridge.speed
        if slug not in self._views:
            made = self._kinds[slug](self)
            made.open()
            self._views[slug] = made
        self.view = self._views[slug]
        self.bridge.speed = self.view.speed
        self.view.show()
        for view in self._views.values():
            view.layout.visible = view is self.view
        self.stage.children = [view.layout for view in self._views.values()]
        self.bridge.view = slug
        self._say_status()

    def _set_speed(self, value: Any) -> None:
        self.bridge.speed = _offered(value)
        self.accepted()

    def _take(self, key: str, name: str) -> None:
        """Show the uploaded file with a key in the view that shows files."""
        path = (self._folder or Path()) / f"{key}.h5"
        if not key.isalnum() or not path.exists():
            raise physics.InputError("upload must be a file that was sent to this server; upload it again")
        self.files[str(path)] = name
        self.choose(next(kind.slug for kind in self._kinds.values() if kind.reads_files))
        self.view.take(str(path))

    def _play(self) -> None:
        self.say("")
        if self.view.finished:
            self._reset()
        self.bridge.playing = 1
        self._schedule()

    def _pause(self) -> None:
        """Stop playing, and show a complete update."""
        self.bridge.playing = 0
        self.view.show()

    def _copy(self) -> None:
        """Pause, so that the page keeps showing what the program gives, and send the program."""
        self._pause()
        self.bridge.send("script", self.view.python())

    def _step(self) -> None:
        self.bridge.playing = 0
        self.say("")
        self.document.add_next_tick_callback(lambda: self.move(lambda: self.view.advance(1)))

    def _reset(self) -> None:
        self.say("")
        self.view.reset()
        self.view.show()

    # -- play ----------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Schedule the next frame of play, unless play rests or the page is behind."""
        behind, view = self.bridge.frame - self.bridge.shown >= IN_FLIGHT, self.view
        rests = view is None or view.waits or self._held or not self.bridge.playing
        if rests or behind or self._waiting or self.closed:
            return
        self._waiting = True
        wait = max(0.0, self._began + max(INTERVAL, view.pace) - monotonic())
        self.document.add_timeout_callback(self._frame, round(1000 * wait))

    async def _frame(self) -> None:
        self._waiting = False
        if self.bridge.playing and not self._held and not self.closed:
            self._began = monotonic()
            await self.move(lambda: self.view.advance(self.bridge.speed))
            self._schedule()

    async def move(self, work: Callable[[], Any]) -> None:
        """Do `work` in the worker with the document locked, and show the view."""
        try:
            view = self.view
            if not view.finished:
                await IOLoop.current().run_in_executor(WORK, work)
            if self.closed:
                return
            if view.finished:
                self.bridge.playing = 0
            now = monotonic()
            whole = not self.bridge.playing or now - self._whole > WHOLE_EVERY
            view.show(whole=whole)
            if whole:
                self._whole = now
                self._say_status()
            self.bridge.frame += 1
        except Exception as error:
            self.fail(error)

    # -- exports -------------------------------------------------------------------------------------------

    def _export(self, ending: str, make: Callable[[], bytes], said: str = "note") -> None:
        """Let a worker make a file with the name of the view and an ending, and send it to the browser."""
        name = f"{self.view.slug}.{ending}"
        self.say(f"Making {name} …", said)

        def deliver(content: bytes) -> None:
            self.bridge.send("download", name, TYPES[ending], np.frombuffer(content, np.uint8))
            self.say(f"{name} is in your downloads.", "done")

        self.later(make, then=deliver)

    def _film(self, ending: str, make: Callable[..., bytes]) -> None:
        """Make a film in a worker, tell its progress, and let the page cancel it."""
        canceled, name, film = self._canceled, f"{self.view.slug}.{ending}", self.view.film()
        whole = min(film.frames, films.LONGEST)

        def watch(pictures: Iterable[Any]) -> Iterator[Any]:
            told = 0.0
            for done, picture in enumerate(pictures, 1):
                if self._canceled > canceled or self.closed or ENDED.is_set():
                    raise Canceled(f"{name} was canceled.")
                if monotonic() - told > WHOLE_EVERY:
                    told, words = monotonic(), f"Making {name}: {done} of {whole} frames"
                    self.soon(partial(self.say, words, "progress"))
                yield picture

        self._export(ending, partial(make, film, watch=watch), "progress")

    def _cancel(self) -> None:
        """End all films in the making, of which the page shows the last."""
        self._canceled += 1

    # -- output --------------------------------------------------------------------------------------------

    def _say_status(self) -> None:
        view = self.view
        status, preset = view.status(), view.preset
        shown = status.get("file") or (preset.name if preset else "")
        self.document.title = f"GrokPhys: {view.name}{f', {shown}' if shown else ''}"
        words = [list(item) for item in status.items()]
        self.bridge.update(status=words, verdict=view.verdict(), lacks=LACKS * view.changed)
        self.bridge.update(watch=view.watch(self.bridge.playing), preset=preset.name if preset else "")
        whole = {"view": view.slug, "speed": self.bridge.speed, "state": view.state()}
        text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
        self.bridge.link = quote(text, errors="surrogateescape")

    def fail(self, error: Exception) -> None:
        """Show an error as a sentence, and end play; `Canceled` is shown and does not end it."""
        if isinstance(error, Canceled):
            return self.say(str(error), "done")
        self.bridge.playing = 0
        words = sentence(error)
        if not isinstance(error, EXPECTED):
            traceback.print_exception(error)
            words = f"This is an error in GrokPhys, not in your input: {type(error).__name__}: {error}"
        self.say(words, "error")

    def close(self) -> None:
        """End the session because the tab was closed, and remove its uploads."""
        self.closed = True
        self.bridge.playing = 0
        self._views.clear()
        for path in map(Path, self.files):
            if path.parent == self._folder:
                path.unlink(missing_ok=True)


def read_link(text: str) -> tuple[str, Any, dict[str, Any]]:
    """Return the view, the steps per frame and the state, unchecked, that the fragment of an address holds.

    Raises
    ------
    InputError
        If the text is no such link.
    """
    try:
        whole = json.loads(unquote(text, errors="surrogateescape"))
        return str(whole["view"]), whole.get("speed", 1), dict(whole.get("state", {}))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise physics.InputError(f"link must be one that this page has made, got {text!r:.80}") from None


def _offered(speed: Any) -> int:
    """Return a number of steps per frame, if it is one of `SPEEDS`."""
    if speed not in SPEEDS:
        raise physics.InputError(
            f"steps per frame must be one of {', '.join(map(str, SPEEDS))}, got {speed!r:.80}"
        )
    return SPEEDS[SPEEDS.index(speed)]


def file_bytes(trajectory: physics.Trajectory) -> bytes:
    """Return the content of the HDF5 file that `Trajectory.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        trajectory.save(path)
        return path.read_bytes()


def page(views: Sequence[type[Any]], paths: Sequence[Path], folder: Path) -> Callable[[Document], None]:
    """Return the function that fills the Bokeh document of a new tab.

    Parameters
    ----------
    views : sequence of type of View
        Views in the order of their tabs.
    paths : sequence of Path
        Trajectory files of the command line.
    folder : Path
        Private folder of the files that pages upload.
    """
    silence(EMPTY_LAYOUT)  # lists of cards may be empty
    template, terms = get_env().from_string(asset("page.html")), tomllib.loads(asset("terms.toml"))
    look = Theme(json=tomllib.loads(asset("theme.toml")))
    fixed = {
        "page_css": asset("page.css"),
        "page_js": asset("page.js") + asset("marks.js"),
        "views": views,
        "terms": terms["terms"],
        "used": terms["views"],
        "about": sections("about.txt", r"\[(\w+)\]"),
        "speeds": SPEEDS,
        "opening": f"Opening {printable(paths[0].name)} …" if paths else "Loading the first figures …",
        "plays": 0 if paths else 1,
    }

    def open_page(document: Document) -> None:
        session = Session(document, views, paths, folder)
        document.on_session_destroyed(lambda _context: session.close())
        document.template, document.theme = template, look
        document.template_variables.update(fixed)
        document.config.update(reconnect_session=False, notify_connection_status=False)  # page.js does this
        session.stage.update(name="stage", tags=[session.bridge])
        document.add_root(session.stage)
        connect = CustomJS(args={"bridge": session.bridge}, code="window.grokphys.connect(bridge)")
        document.js_on_event("document_ready", connect)
        document.js_on_event("connection_lost", CustomJS(code="window.grokphys.lost()"))

    return open_page
