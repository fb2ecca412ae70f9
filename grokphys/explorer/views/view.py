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
"""Directions of the arrow keys, as (to the right, up)."""
REPLAYED = 300
"""About the largest number of frames of a replay; each change of a control may add one."""
ASIDE = ("time", "step", "moves", "before", "plane", "numbers", "arrows", "rollout")
"""Entries of a state that do not matter for whether it is that of a preset, unless the preset names them."""


@dataclass(frozen=True)
class Preset:
    """A named state of a view that shows an effect.

    Attributes
    ----------
    name : str
        Name of the preset on the page.
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
    """A view: one tab of a page, which is created when the tab is first opened.

    The session calls the methods of a view one at a time. `advance`, `replay`, `warm` and often `prepare`
    run in worker threads, where no model of Bokeh may be changed. All other methods run on the server's
    event loop with the document locked. An exception becomes a sentence on the page, and the view is paused.

    Changes of the page arrive through `connect` (for widgets), or through a callback of
    ``session.reaction(function)`` (for dragged points). Both show errors and update the status.

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
    """Modules that take long to import, which `prepare` imports."""
    reads_files: ClassVar[bool] = False
    """Whether the view shows trajectory files; a page that is given files begins with the first such view."""

    terms: ClassVar[tuple[str, ...]] = ()
    """Terms of `assets/terms.txt` that the view uses."""
    presets: ClassVar[tuple[Preset, ...]] = ()
    invitation: ClassVar[str] = ""
    """What to watch for if the controls are not those of a preset."""

    @classmethod
    def prepare(cls) -> None:
        """Do slow work of the first use, such as imports, before the first view of this kind is created."""
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
        """Return the values of the widgets that differ from the defaults, by name, and earlier `changes`."""
        values = {name: _value(widget) for name, widget in self.widgets.items()}
        differing = {name: value for name, value in values.items() if value != self._usual[name]}
        return differing | self.changes.state()

    @property
    def lacks(self) -> str:
        """Sentence on what the link of this state leaves out; empty if it leaves out nothing."""
        return "" if self.changes.few else links.UNCHANGED

    def has(self, settings: Mapping[str, Any]) -> bool:
        """Return whether the state is that of a preset's `settings`, apart from the entries `ASIDE`."""
        shown = {name: value for name, value in self.state().items() if name in settings or name not in ASIDE}
        return shown == {name: value for name, value in settings.items() if value != self._usual.get(name)}

    @property
    def preset(self) -> Preset | None:
        """Preset that the state fits, or of several the one with the most settings; None if it fits none."""
        fitting = [preset for preset in self.presets if self.has(preset.settings)]
        return max(fitting, key=lambda preset: len(preset.settings), default=None)

    def watch(self, playing: bool) -> str:
        """Return a sentence on what to watch for: that of the `preset`, or else the `invitation`.

        If the view is at its start and does not play, the text also says how to start.
        """
        closest = self.preset
        words = self.invitation if closest is None else closest.watch
        return words if playing or self.begun else f"{words} Press Play to start.".strip()

    @property
    def begun(self) -> bool:
        """Whether the view has left its start."""
        return bool(self._run.step)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set all widgets to a state, and start again; after an error, show the state before.

        If the error comes after the run of the state before was given up, that starts again.

        Parameters
        ----------
        state : mapping of str to object
            Values by the name of the widget; all other widgets take their defaults.

        Raises
        ------
        InputError
            If a widget does not allow its value, or `renew` refuses the state.
        """
        shown, run = self.state(), self._run
        try:
            self.set_to(state)
        except Exception:
            if self._run is run:
                self._fill(shown)
            else:
                self.set_to(shown)
            raise

    def set_to(self, state: Mapping[str, Any]) -> None:
        """Set all widgets to a state, and start again; an error may leave the view between both states."""
        self._fill(state)
        self.renew(state)

    def _fill(self, state: Mapping[str, Any]) -> None:
        with self.filling():
            for name, widget in self.widgets.items():
                attribute = "active" if isinstance(widget, Checkbox) else "value"
                value = checked(widget, attribute, state[name]) if name in state else self._usual[name]
                setattr(widget, attribute, value)
                self.offer()

    def offer(self) -> None:  # noqa: B027 - the lists of most views stay the same
        """Let lists offer what the values of other widgets allow, such as the planes of a space."""

    @abstractmethod
    def renew(self, state: Mapping[str, Any]) -> None:
        """Start again with the values of the widgets.

        Parameters
        ----------
        state : mapping of str to object
            State from a link or a preset, which may hold more than the values of widgets.

        Raises
        ------
        InputError
            If the state is not possible.
        """

    def takes_file(self) -> bool:
        """Prepare for an uploaded file, and return whether the view can use it."""
        return self.reads_files

    @abstractmethod
    def verdict(self) -> str:
        """Return a few sentences that describe what is on screen."""

    def key(self, name: str) -> None:  # noqa: B027 - most views have nothing to choose
        """React to a key such as "ArrowLeft", "Shift+ArrowLeft" or "Enter"."""

    def connect(self, function: Callable[[Any], Any], *widgets: Any, attribute: str = "value") -> None:
        """Call a function with the new value whenever one of some widgets changes, except while `filling`.

        If the function raises an `InputError`, the widget returns to the value before, which is still in
        force. Only the text of a text field stays, so that the user can correct it.

        Parameters
        ----------
        function : callable
            Function of the new value.
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
                if new != getattr(widget, attribute):  # the widget has changed again since
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
        """Change widgets, within a ``with`` block, without calling the functions that `connect` has bound."""
        before, self._filling = self._filling, True
        try:
            yield
        finally:
            self._filling = before

    def offer_planes(self, chooser: Any, dim: int, *, cyclic: bool = False) -> None:
        """Let a list offer `planes.planes(dim, cyclic=cyclic)`; if these are new, the first is chosen."""
        names = planes(dim, cyclic=cyclic)
        if names != chooser.options:
            chooser.update(options=names, value=names[0])

    @abstractmethod
    def panel(self) -> Any:
        """Return the Bokeh model of the view, which is created once; see `theme.stage`."""

    def warm(self) -> None:
        """Load what the first step of the run needs, such as compiled kernels."""
        getattr(self._run, "warm", lambda: None)()

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Advance the run by `steps` steps."""

    def replay(self, steps: int, stride: int) -> Iterator[int]:
        """Advance by `steps` steps frame by frame, so that curves have a past, and yield the steps so far.

        Frames are `stride` steps apart, or more if there would be more than `REPLAYED`. After the step of
        each of the `changes`, the run continues with the changed values.
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
        """Let the run continue with other values of the controls in `changes`."""

    def forget(self) -> None:  # noqa: B027 - some views show no trails
        """Let the next frame be shown without a trail from the frames before."""

    @abstractmethod
    def show(self, *, whole: bool = True) -> None:
        """Show the state on screen.

        `whole` is False for most frames of play, which should send little. Parts such as curves against time
        may wait for complete updates, which come about three times per second.
        """

    @abstractmethod
    def reset(self) -> None:
        """Return to the start of the run."""

    def start(self) -> None:  # noqa: B027 - most views have nothing to do
        """React when the tab is chosen."""

    def stop(self) -> None:  # noqa: B027
        """React when another tab is chosen, or the session ends."""

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

        An example is {"step": "120", "circle ratio": "1.31"}.
        """

    def python(self) -> str:
        """Return Python source that reproduces what is on screen, bit for bit, with the state as `E`."""
        return str(self._run.python())

    def trajectory(self) -> Trajectory:
        """Return the kept frames of the run as a trajectory, which can be saved."""
        kept: Trajectory = self._run.trajectory()
        return kept

    @abstractmethod
    def film(self) -> Film:
        """Return a film of the run, with data that do not change while a worker draws it."""

    def still(self) -> Film:
        """Return a film whose default picture is what is on screen, above the `verdict` and the `status`.

        Axes whose labels are in `figures` have the limits of these figures.
        """
        limits = {name: theme.limits(shown) for name, shown in self.figures.items()}
        numbers = "   ".join(f"{name} {words}" for name, words in self.status().items())
        return replace(self.film(), limits=limits, caption=f"{self.verdict()}\n{numbers}")


PREPARED: set[type[View]] = set()
"""Kinds of views for which `prepare` has been called, so that they can be created without delay."""


def prepared(kind: type[View]) -> type[View]:
    """Return a kind of view, after calling `prepare` unless this has been done."""
    if kind not in PREPARED:
        kind.prepare()
        PREPARED.add(kind)
    return kind


def _value(widget: Any) -> Any:
    return widget.active if isinstance(widget, Checkbox) else widget.value
