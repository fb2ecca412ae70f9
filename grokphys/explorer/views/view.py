"""The interface of views, the tabs of the explorer: a live simulation or training, or a recorded run."""

import contextlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from bokeh.models import Checkbox, TextInput

from grokphys.explorer import links, theme
from grokphys.explorer.films.export import Film
from grokphys.explorer.guard import checked
from grokphys.explorer.runs.planes import planes
from grokphys.explorer.views.changes import Changes
from physics.errors import InputError
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    from grokphys.explorer.session import Session


WAYS = {"ArrowRight": (1, 0), "ArrowLeft": (-1, 0), "ArrowUp": (0, 1), "ArrowDown": (0, -1)}
"""Where the arrow keys lead: to the right, and up."""
REPLAYED = 300
"""Frames of a replay, at most."""
ASIDE = ("time", "step", "moves", "before", "plane", "numbers", "arrows", "rollout")
"""Parts of a state that only change what is shown: where a preset does not name them, its hint stays."""


@dataclass(frozen=True)
class Preset:
    """A named state of a view that shows an effect.

    Attributes
    ----------
    name : str
        Name of the preset on the page and in addresses.
    watch : str
        Sentence that says what to watch for.
    settings : mapping of str to object
        Values of the view's `widgets` that differ from the defaults.
    speed : int, default 1
        Number of steps per frame.
    """

    name: str
    watch: str
    settings: Mapping[str, Any]
    speed: int = 1


class View(ABC):
    """A view: one tab of a page, which is created with all of its content when the tab is first opened.

    The session calls the methods of a view one at a time. It calls `advance` in a worker thread, while
    nothing else of this page runs, and all other methods on the server's event loop with the document locked,
    where they may touch models and widgets. An exception in any of them becomes a sentence on the page, and
    the view is paused.

    Changes of the page arrive through `connect` (for widgets), or through a callback of
    ``session.reaction(function)`` (for dragged points). Both catch errors in the same way and update the
    status.

    Parameters
    ----------
    session : Session
        Session of the page.
    """

    slug: ClassVar[str]
    """Name in ids and in file names, such as "particles"."""
    name: ClassVar[str]
    """Label of the tab."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Modules that take long to import."""
    reads_files: ClassVar[bool] = False
    """Whether a page begins with this view if the command line names files (`session.files`)."""

    terms: ClassVar[tuple[str, ...]] = ()
    """Terms of `assets/terms.txt` that the view uses."""
    presets: ClassVar[tuple[Preset, ...]] = ()
    invitation: ClassVar[str] = ""
    """What to watch for where the controls are not those of a preset."""

    @classmethod
    def prepare(cls) -> None:
        """Do slow work of the first use in a worker thread, before the first view of this kind is created."""
        for module in cls.needs:
            importlib.import_module(module)

    def __init__(self, session: "Session") -> None:
        self.session = session
        self._filling = False
        self._run: Any = None
        self.widgets: dict[str, Any] = {}
        self._usual: dict[str, Any] = {}
        self.changes = Changes()
        self.figures: dict[str, Any] = {}
        self.speed = self.presets[0].speed if self.presets else 1

    def hold(self, **widgets: Any) -> None:
        """Name the widgets whose values are the state of the view, for links and presets."""
        self.widgets = widgets
        self._usual = {name: _value(widget) for name, widget in widgets.items()}

    def state(self) -> dict[str, Any]:
        """Return the values of the widgets by name, as far as they differ from the defaults."""
        values = {name: _value(widget) for name, widget in self.widgets.items()}
        differing = {name: value for name, value in values.items() if value != self._usual[name]}
        return differing | self.changes.state()

    @property
    def lacks(self) -> str:
        """Sentence that says what of the state no link holds; empty by default."""
        return "" if self.changes.few else links.UNCHANGED

    def has(self, settings: Mapping[str, Any]) -> bool:
        """Return whether the widgets have the values of a preset's `settings`."""
        shown = {name: value for name, value in self.state().items() if name in settings or name not in ASIDE}
        return shown == {name: value for name, value in settings.items() if value != self._usual.get(name)}

    @property
    def preset(self) -> Preset | None:
        """The preset whose controls these are; the one that names most of them, if there are several."""
        fitting = [preset for preset in self.presets if self.has(preset.settings)]
        return max(fitting, key=lambda preset: len(preset.settings), default=None)

    def watch(self, playing: bool) -> str:
        """Return a sentence on what to watch for, from the preset that fits the widgets best.

        If the view neither plays nor has left its start, the sentence says how to start.
        """
        closest = self.preset
        words = self.invitation if closest is None else closest.watch
        return words if playing or self.begun else f"{words} Press Play to start.".strip()

    @property
    def begun(self) -> bool:
        """Whether the view has left its start."""
        return bool(self._run.step)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set all widgets to a state, and start again.

        Parameters
        ----------
        state : mapping of str to object
            Values by the name of the widget; all other widgets take their defaults.

        Raises
        ------
        InputError
            If a widget does not allow its value.
        """
        with self.filling():
            for name, widget in self.widgets.items():
                attribute = "active" if isinstance(widget, Checkbox) else "value"
                value = checked(widget, attribute, state[name]) if name in state else self._usual[name]
                setattr(widget, attribute, value)
                self.offer()
        self.renew(state)

    def offer(self) -> None:  # noqa: B027 - the lists of most views stay the same
        """Let lists offer what the values of the widgets before them allow, such as planes of a space."""

    @abstractmethod
    def renew(self, state: Mapping[str, Any]) -> None:
        """Start again with the values of the widgets.

        Parameters
        ----------
        state : mapping of str to object
            State from a link or a preset, which may hold more than the values of widgets.
        """

    def takes_file(self) -> bool:
        """Prepare for an uploaded file, and return whether the view uses files."""
        return self.reads_files

    @abstractmethod
    def verdict(self) -> str:
        """Return one or two sentences that describe what is on screen."""

    def key(self, name: str) -> None:  # noqa: B027 - most views have nothing to choose
        """React to a key such as "ArrowLeft", "Shift+ArrowLeft" or "Enter"."""

    def connect(self, function: Callable[[Any], Any], *widgets: Any, attribute: str = "value") -> None:
        """Call a function with the new value whenever the page changes one of some widgets.

        If the function refuses a value, the widget returns to the value before, which is still in force. Only
        text that was typed stays, so that the user can correct it.

        Parameters
        ----------
        function : callable
            Function of the new value, which may raise an `InputError`.
        *widgets : Bokeh model
            The widgets.
        attribute : str, default "value"
            Property of the widgets that holds the value.
        """

        def connected(widget: Any) -> None:
            def changed(_name: str, old: Any, new: Any) -> None:
                if not self._filling:
                    react(old, new)

            def reacting(old: Any, new: Any) -> None:
                if new != getattr(widget, attribute):  # it was changed again since
                    return
                self.session.accepted()
                try:
                    function(new)
                except InputError:
                    if not isinstance(widget, TextInput):
                        with self.filling():
                            setattr(widget, attribute, old)
                    raise

            react = self.session.reaction(reacting)
            widget.on_change(attribute, changed)

        for widget in widgets:
            connected(widget)

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Change widgets without calling the functions that are connected to them."""
        before, self._filling = self._filling, True
        try:
            yield
        finally:
            self._filling = before

    def offer_planes(self, chooser: Any, dim: int, *, cyclic: bool = False) -> None:
        """Let a list offer the planes of `dim` dimensions; the chosen plane stays if it is one of them.

        Tokens that are added by a modulus are `cyclic`, and their circles have planes as well.
        """
        names = planes(dim, cyclic=cyclic)
        if names != chooser.options:
            chooser.update(options=names, value=names[0])

    @abstractmethod
    def panel(self) -> Any:
        """Return the Bokeh model of the view, which is created once; see `theme.stage`."""

    def warm(self) -> None:
        """Load, in a worker thread, what the first step of the run needs, such as compiled kernels."""
        getattr(self._run, "warm", lambda: None)()

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Advance the run by so many `steps` in a worker thread, where no model of Bokeh may be touched."""

    def replay(self, steps: int, stride: int) -> Iterator[int]:
        """Advance by `steps` steps as play does, frame by frame, and yield the steps that were taken so far.

        Curves have their past then. Frames are `stride` steps apart, or more if there would be too many.
        Parameters change where they were changed before.
        """
        stride = max(stride, -(-steps // REPLAYED))
        taken = 0
        for until, values in [*self.changes.then, (steps, None)]:
            while taken < until:
                self.advance(min(stride, until - taken))
                taken = min(taken + stride, until)
                yield taken
            if values is not None:
                self.apply(values)
        self.forget()

    def apply(self, values: Mapping[str, Any]) -> None:  # noqa: B027 - most views have no such controls
        """Let the run continue with the values of the controls that `changes` follows."""

    def forget(self) -> None:  # noqa: B027 - some views show no trails
        """Let the next frame be shown without a trail from the frames before."""

    @abstractmethod
    def show(self, *, whole: bool = True) -> None:
        """Show the state on screen.

        `whole` is False for most frames of play, which should send little. Parts that need not move 25 times
        a second, such as curves against time, may wait for complete updates, which come several times a
        second.
        """

    @abstractmethod
    def reset(self) -> None:
        """Return to the start of the run."""

    def start(self) -> None:  # noqa: B027 - most views have nothing to do
        """React to the choice of the tab."""

    def stop(self) -> None:  # noqa: B027
        """React to the choice of another tab, or to the end of the session."""

    @property
    def finished(self) -> bool:
        """Whether the view has reached its end, at which play stops."""
        return False

    @property
    def pace(self) -> float:
        """Seconds that a frame of play takes at least."""
        return 0.0

    @property
    def waits(self) -> bool:
        """Whether there is nothing to play until more is recorded."""
        return False

    @abstractmethod
    def status(self) -> Mapping[str, str]:
        """Return the measures that the page shows, as texts by their names.

        An example is {"step": "120", "circle ratio": "1.31"}; tests find them as #status-step and so on.
        """

    def python(self) -> str:
        """Return Python source that reproduces what is on screen, bit for bit, with its last state as `E`."""
        return str(self._run.python())

    def trajectory(self) -> Trajectory:
        """Return a copy of the kept run, for saving as a trajectory file."""
        kept: Trajectory = self._run.trajectory()
        return kept

    @abstractmethod
    def film(self) -> Film:
        """Return the run as a film with its own data, which a worker draws while the page continues."""

    def still(self) -> Film:
        """Return a picture of what is on screen, within its limits and with its numbers.

        The limits are those of `figures`, the figures on screen by the labels of the film's axes.
        """
        limits = {name: theme.limits(shown) for name, shown in self.figures.items()}
        numbers = "   ".join(f"{name} {words}" for name, words in self.status().items())
        return replace(self.film(), limits=limits, caption=f"{self.verdict()}\n{numbers}")


PREPARED: set[type[View]] = set()
"""Kinds of views that are prepared, so that one can be made at once."""


def prepared(kind: type[View]) -> type[View]:
    """Call `prepare` of a kind of view, unless this has been done; return the kind."""
    if kind not in PREPARED:
        kind.prepare()
        PREPARED.add(kind)
    return kind


def _value(widget: Any) -> Any:
    return widget.active if isinstance(widget, Checkbox) else widget.value


class FrameView(View):
    """A view of a run that is complete, whose frames are shown by play or chosen by a slider.

    Parameters
    ----------
    session : Session
        Session of the page.
    slider : Bokeh model
        Slider of the number of the frame.
    """

    def __init__(self, session: "Session", slider: Any) -> None:
        super().__init__(session)
        self._time = slider
        self._frame = self._end = 0
        self.connect(self._go, slider)

    def advance(self, steps: int) -> None:
        """Go forward by so many `steps`, each of one frame, at most to the last frame."""
        self._frame = min(self._frame + steps, self._end)

    @property
    def begun(self) -> bool:
        """Whether a later frame than the first is shown."""
        return self._frame > 0

    @property
    def finished(self) -> bool:
        """Whether the last frame is shown."""
        return self._frame == self._end

    def reset(self) -> None:
        """Return to the first frame."""
        self._frame = 0

    def _go(self, frame: int) -> None:
        if frame != self._frame:
            self._frame = min(frame, self._end)
            self.show()
