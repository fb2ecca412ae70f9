"""A session: one browser tab, its views, and the loop that plays the visible one."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from pathlib import Path
from time import monotonic
from typing import Any

from bokeh.document import Document
from tornado.ioloop import IOLoop

from grokphys.explorer import links, theme
from grokphys.explorer.bridge import EXPECTED, Bridge, explained, offered
from grokphys.explorer.exports import Canceled, Exports
from grokphys.explorer.replay import Replay
from grokphys.explorer.uploads import Uploads, unused
from grokphys.explorer.views.view import PREPARED, Preset, View, prepared
from physics.errors import InputError

INTERVAL = 1 / 35
"""Shortest time between two frames in seconds."""
IN_FLIGHT = 3
"""Number of frames that may be sent before the page has drawn them: one is painted, and one waits."""
SHORTEST = 0.25
"""Shortest time in seconds from which the number of frames per second is computed."""
WHOLE_EVERY = 0.3
"""Seconds between complete updates during play."""

PASSIVE = ("ready", "accepted", "python")
"""Commands of the page that do not end the replay of a link."""
WORK = ThreadPoolExecutor(1, "explore-work")
"""Worker that advances the runs of all sessions in turn, so that the event loop stays free."""
DRAW = ThreadPoolExecutor(1, "explore-draw")
"""Worker for slow work such as exports (matplotlib needs a single thread), fits, and preparing views."""


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
    uploads : Uploads, optional
        Store of the files that pages upload; by default the page takes none.
    begin : bool, default True
        Whether to make the first view at once.

    Attributes
    ----------
    bridge : Bridge
        Model through which the script of the page and the session communicate.
    stage : bokeh.models.Column
        Column of the views, of which the chosen one is visible.
    files : dict of Path to str
        Names of the files that this page may open, given or uploaded, by path.
    on_upload : list of callable
        Functions that are called with the path of an uploaded file.
    closed : bool
        Whether the tab is closed.
    """

    def __init__(
        self,
        document: Document,
        kinds: Sequence[type[View]],
        files: Sequence[Path] = (),
        uploads: Uploads | None = None,
        *,
        begin: bool = True,
    ) -> None:
        self.document, self.files = document, {path: str(path) for path in files}
        self.on_upload: list[Callable[[Path], None]] = []
        self._uploads, self._uploaded = uploads, list[Path]()
        self._kinds = {kind.slug: kind for kind in kinds}
        self._views: dict[str, tuple[View, Any]] = {}
        self.bridge = Bridge()
        self.stage = theme.column()
        self._drawn: deque[float] = deque(maxlen=30)
        self._began = self._whole = 0.0
        self._waiting = self._held = self.closed = self._ready = False
        self._view: View | None = None
        self._wanted = ""  # the view that was chosen last, which may still load
        self._exports, self.replay = Exports(self), Replay(self)
        self.bridge.on_change("command", lambda _name, _old, new: self._command(new[1], new[2]))
        self.bridge.on_change("shown", self._shown)
        if begin:
            self.begin()

    def begin(self) -> None:
        """Make the first view, unless there is one or the tab is closed."""
        if self._view is not None or self.closed:
            return
        kinds = list(self._kinds.values())
        reader = next((kind for kind in kinds if kind.reads_files and self.files), kinds[0])
        try:
            self.choose(prepared(reader).slug)
        except EXPECTED as error:  # such as a file that is no trajectory
            self.choose(prepared(kinds[0]).slug)
            self.fail(error)

    # -- interface for views -------------------------------------------------------------------------------

    def reaction(self, function: Callable[..., Any], *, by_hand: bool = True) -> Callable[..., None]:
        """Return a callback that calls `function`, updates the status and shows errors.

        If it reacts to what the user does `by_hand`, it also ends the replay of a link.
        """

        @wraps(function)
        def reacting(*arguments: Any, **named: Any) -> None:
            if by_hand:
                self.replay.stop()
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
            self.document.add_next_tick_callback(self.reaction(function, by_hand=False))

    def hold(self, held: bool) -> None:
        """Pause play if `held` is True, as while a point is dragged, and otherwise let it continue."""
        self._held = held
        self._schedule()

    @property
    def playing(self) -> bool:
        """Whether the visible view is playing."""
        return bool(self.bridge.playing)

    # -- commands of the page ------------------------------------------------------------------------------

    def _command(self, name: str, value: Any) -> None:
        if self.closed:  # a command may still arrive while the server stops
            return
        self.begin()
        orders: dict[str, Callable[[], Any]] = {
            "ready": self._show_all,
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
            "python": lambda: self.bridge.send("script", self.view.python()),
            **self._exports.orders(),
            "uploaded": lambda: self._take(str(value)),
            "refused": lambda: self.fail(InputError(str(value))),
        }
        self.reaction(orders.get(name, lambda: None), by_hand=name not in PASSIVE)()

    def _show_all(self) -> None:
        """Make a complete update, which the first page leaves out to appear sooner."""
        self._ready = True
        self.view.show()

    def _preset(self, text: str) -> None:
        """Show and play the preset "view/name", or "name" of the chosen view; ignore unknown ones."""
        slug, _, name = text.rpartition("/")
        slug = slug or self._wanted
        named = {preset.name: preset for preset in self._kinds[slug].presets} if slug in self._kinds else {}
        if name in named:
            self.choose(slug, then=lambda: self._begin_preset(named[name]))

    def _begin_preset(self, preset: Preset) -> None:
        self.bridge.playing = 0
        self.view.restore(preset.settings)
        self._set_speed(preset.speed)
        self._play()

    def _open_link(self, text: str) -> None:
        """Restore the state that a link describes."""
        slug, speed, settings = links.read(text)
        self.choose(slug, then=lambda: self._restore(speed, settings))

    def _restore(self, speed: Any, settings: dict[str, Any]) -> None:
        steps, speed = links.replayed(settings), offered(speed)
        self.view.restore(settings)
        self._set_speed(speed)
        if steps:
            self.replay.start(steps)

    @property
    def view(self) -> View:
        """The visible view."""
        assert self._view is not None
        return self._view

    def choose(self, slug: str, then: Callable[[], None] = lambda: None) -> None:
        """Show the view with the name `slug`, after loading and making a new one, and then call `then`."""
        if slug not in self._kinds:
            raise InputError(f"view must be one of {', '.join(self._kinds)}, got {slug!r}")
        self._wanted = slug
        if (kind := self._kinds[slug]) not in PREPARED:

            def come(_nothing: Any) -> None:
                if self._wanted == slug:  # no other view was chosen in the meantime
                    self.choose(slug, then)

            self.say(f"Loading {kind.name} …")
            self.later(prepared, kind, then=come)
            return
        self.say("")
        if self._view is not None:
            if self._view.slug == slug:
                then()
                return
            self.bridge.playing = 0
            self._view.speed = self.bridge.speed
            self._view.stop()
        new = slug not in self._views
        if new:
            view = kind(self)
            self._views[slug] = view, view.panel()
        for name, (_, shown) in self._views.items():
            shown.visible = name == slug
        self._view = self._views[slug][0]
        self.bridge.speed = self._view.speed
        self._view.start()
        self._view.show(whole=self._ready)
        if new:
            self.stage.children = [*self.stage.children, self._views[slug][1]]
        self.bridge.view = slug
        self._drawn.clear()
        then()
        if self._ready:
            self._say_status()

    def _set_speed(self, value: Any) -> None:
        self.bridge.speed = offered(value)
        self.accepted()

    def _take(self, key: str) -> None:
        """Take over the uploaded file with a key, and show it in the present view or one that reads files."""
        if self._uploads is None:
            raise InputError("upload must be left out, because this page has no server that takes files")
        path, name = self._uploads.claim(key)
        self._uploaded.append(path)
        self.files[path] = unused(name, self.files.values())
        self.say("")

        def tell() -> None:
            for told in self.on_upload:
                told(path)

        if self.view.takes_file():
            tell()
        else:
            self.choose(next(kind.slug for kind in self._kinds.values() if kind.reads_files), then=tell)

    def _play(self) -> None:
        self.say("")
        if self.view.finished:
            self._reset()
        self.bridge.playing = 1
        self._drawn.clear()
        self._schedule()

    def _pause(self) -> None:
        """Stop playing, and show a complete update."""
        self.bridge.playing = 0
        self.view.show()

    def _step(self) -> None:
        self.bridge.playing = 0
        self.say("")
        self.document.add_next_tick_callback(self._one)

    async def _one(self) -> None:
        await self.move(lambda: self.view.advance(1))

    def _reset(self) -> None:
        self.say("")
        self.view.reset()
        self.view.show()

    # -- play ----------------------------------------------------------------------------------------------

    def _shown(self, _name: str, _old: int, _new: int) -> None:
        """Note the frame that the page has drawn, and schedule the next one."""
        self._drawn.append(monotonic())
        self._schedule()

    def _schedule(self) -> None:
        """Schedule the next frame of play, unless play rests or the page is behind."""
        behind, view = self.bridge.frame - self.bridge.shown >= IN_FLIGHT, self._view
        resting = view is None or view.waits or not self.playing
        if view is None or resting or self._waiting or self._held or self.closed or behind:
            return
        self._waiting = True
        wait = max(0.0, self._began + max(INTERVAL, view.pace) - monotonic())
        self.document.add_timeout_callback(self._frame, round(1000 * wait))

    async def _frame(self) -> None:
        self._waiting = False
        if self.playing and not self._held and not self.closed:
            self._began = monotonic()
            await self.move(lambda: self.view.advance(self.bridge.speed))
            self._schedule()

    async def move(self, work: Callable[[], Any]) -> Any:
        """Do `work` in the worker with the document locked, show the view, and return the result, if any."""
        try:
            view, result = self.view, None
            if not view.finished:
                result = await IOLoop.current().run_in_executor(WORK, work)
            if self.closed:
                return None
            if view.finished:
                self.bridge.playing = 0
            now = monotonic()
            whole = not self.playing or now - self._whole > WHOLE_EVERY
            view.show(whole=whole)
            if whole:
                self._whole = now
                self._say_status()
            self.bridge.frame += 1
            return result
        except Exception as error:
            self.fail(error)

    @property
    def frames_a_second(self) -> float:
        """Number of frames per second that the page has drawn recently; 0 if it is not known."""
        taken = self._drawn[-1] - self._drawn[0] if self.playing and self._drawn else 0.0
        return (len(self._drawn) - 1) / taken if taken >= SHORTEST else 0.0

    # -- output --------------------------------------------------------------------------------------------

    def _say_status(self) -> None:
        if (view := self._view) is None:  # nothing is on screen yet
            return
        first, *others = view.status().items()  # measures that depend on the shape come last
        rate, preset = self.frames_a_second, view.preset
        words = [first, ("fps", f"{rate:.0f}" if rate else "–"), *others]
        self.bridge.update(status=[list(item) for item in words], verdict=view.verdict(), lacks=view.lacks)
        self.bridge.update(watch=view.watch(self.playing), preset=preset.name if preset else "")
        self.bridge.link = links.written(view.slug, self.bridge.speed, view.state())

    def fail(self, error: Exception) -> None:
        """Show an error as a sentence, and end play and replay; `Canceled` is shown and ends neither."""
        if isinstance(error, Canceled):
            return self.say(str(error), "done")
        self.bridge.playing = 0
        self.replay.stop()
        self.say(explained(error), "error")

    def later(self, work: Callable[..., Any], *arguments: Any, then: Callable[[Any], None]) -> None:
        """Call `work`, which is slow, in the worker `DRAW`, and then `then` with its result."""

        def done(future: "Future[Any]") -> None:
            if not self.closed:
                self.soon(lambda: then(future.result()))

        DRAW.submit(work, *arguments).add_done_callback(done)

    def close(self) -> None:
        """End the session because the tab was closed: stop its views and remove its uploads."""
        self.closed = True
        self.bridge.playing = 0
        for view, _ in self._views.values():
            view.stop()
        self._views.clear()
        for path in self._uploaded:
            assert self._uploads is not None
            self._uploads.drop(path)
