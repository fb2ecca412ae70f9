"""What a view is: one system of the toolkit, live on the stage of a page."""

import contextlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from bokeh.models import Checkbox

from grokphys.explorer import theme
from grokphys.explorer.films.export import Film
from grokphys.explorer.guard import checked
from grokphys.explorer.runs.planes import planes
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    from grokphys.explorer.session import Session


REPLAYED = 300
"""Frames of a replay, at most."""


@dataclass(frozen=True)
class Preset:
    """A state that shows something, by its name.

    Attributes
    ----------
    name : str
    watch : str
        What to watch for, in a sentence.
    settings : mapping
        Values of the view's `widgets` where they are not the usual ones.
    speed : int, default 1
        Steps a frame.
    """

    name: str
    watch: str
    settings: Mapping[str, Any]
    speed: int = 1


class View(ABC):
    """One tab of a page. It is made, with all it holds, when its tab is first looked at.

    The session calls these methods one at a time: `advance` in a worker thread, while nothing else of this
    page runs; all others on the server's event loop, with the document locked, where they may touch models
    and widgets. What any of them raises becomes a sentence on the page, and the view is paused.

    What the page changes comes through `connect` (a widget was moved), or through a callback made by
    ``session.reaction(function)`` (a point was dragged); both catch errors in the same way and renew the
    status.
    """

    slug: ClassVar[str]
    """Name in ids and in file names: "particles"."""
    name: ClassVar[str]
    """Name on the tab."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Modules that take long to import."""
    reads_files: ClassVar[bool] = False
    """Whether a page begins with this view where the command was given files (`session.files`)."""

    terms: ClassVar[tuple[str, ...]] = ()
    """Words of `assets/terms.txt` that the view uses."""
    presets: ClassVar[tuple[Preset, ...]] = ()

    @classmethod
    def prepare(cls) -> None:
        """Do what takes long the first time; a worker does it before the first view of this kind is made."""
        for module in cls.needs:
            importlib.import_module(module)

    def __init__(self, session: "Session") -> None:
        self.session = session
        self._filling = False
        self._run: Any = None
        self.widgets: dict[str, Any] = {}
        self._usual: dict[str, Any] = {}
        self.figures: dict[str, Any] = {}

    def hold(self, **widgets: Any) -> None:
        """Take the widgets that make up the state which links and presets name."""
        self.widgets = widgets
        self._usual = {name: _value(widget) for name, widget in widgets.items()}

    def state(self) -> dict[str, Any]:
        """Return the values of the widgets that are not the usual ones."""
        values = {name: _value(widget) for name, widget in self.widgets.items()}
        return {name: value for name, value in values.items() if value != self._usual[name]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Bring all widgets to a state, and begin anew.

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
        self.renew(state)

    @abstractmethod
    def renew(self, state: Mapping[str, Any]) -> None:
        """Begin anew with what the widgets say; `state` may hold more than these."""

    def takes_file(self) -> bool:
        """Make ready for a file that has come; False where the view has no use for one."""
        return self.reads_files

    @abstractmethod
    def verdict(self) -> str:
        """Say what is on screen, in a sentence or two."""

    def key(self, name: str) -> None:  # noqa: B027 - most views have nothing to choose
        """A key was pressed on the stage: "ArrowLeft", "Shift+ArrowLeft", "Enter", …."""

    def connect(self, function: Callable[[Any], Any], *widgets: Any, attribute: str = "value") -> None:
        """Call a function with the new value when the page has changed a widget."""

        def changed(_name: str, _old: Any, new: Any) -> None:
            if not self._filling:
                function(new)

        for widget in widgets:
            widget.on_change(attribute, self.session.reaction(changed))

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Change widgets without a call of what is connected to them."""
        before, self._filling = self._filling, True
        try:
            yield
        finally:
            self._filling = before

    def offer_planes(self, chooser: Any, dim: int) -> None:
        """Let a list offer the planes of a space; the chosen one stays where it is still there."""
        names = planes(dim)
        if names != chooser.options:
            chooser.update(options=names, value=names[0])

    @abstractmethod
    def panel(self) -> Any:
        """Return what stands on the stage, a Bokeh model made once; see `theme.stage`."""

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Move the state on by `steps` steps, and touch no model: a frame while it plays, or one step."""

    def replay(self, steps: int, stride: int) -> None:
        """Advance as play does, by `stride` steps a frame or more, so that curves have their past."""
        stride = max(stride, -(-steps // REPLAYED))
        for taken in range(0, steps, stride):
            self.advance(min(stride, steps - taken))
        self.forget()

    def forget(self) -> None:  # noqa: B027 - some views show no trails
        """Show what comes next without a trail from what was shown before."""

    @abstractmethod
    def show(self, *, whole: bool = True) -> None:
        """Bring the state to the screen.

        `whole` is False for the frames of play between which little is to be sent; what need not move 25
        times a second (curves against time) may wait for the whole ones, which come several times a second.
        """

    @abstractmethod
    def reset(self) -> None:
        """Go back to the start."""

    def start(self) -> None:  # noqa: B027 - most views have nothing to do
        """Be looked at: the tab was chosen."""

    def stop(self) -> None:  # noqa: B027
        """Be left, for another tab or for good."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing to advance to; play stops then."""
        return False

    @abstractmethod
    def status(self) -> Mapping[str, str]:
        """State in words: {"step": "120", "circle ratio": "1.31"} in #status-step, #status-circle-…."""

    def python(self) -> str:
        """Return the calls that reproduce what is on screen, bit by bit; `E` is its last state."""
        return str(self._run.python())

    def trajectory(self) -> Trajectory:
        """Return the run as it is kept, to be saved in the project's file; a copy that stays."""
        kept: Trajectory = self._run.trajectory()
        return kept

    @abstractmethod
    def film(self) -> Film:
        """Return the run as figures, from copies: the page goes on while a worker draws it."""

    def still(self) -> Film:
        """Return a picture of what is on screen, within its limits and with its numbers.

        The limits are those of `figures`, the figures on screen by the labels of the film's axes.
        """
        limits = {name: theme.limits(shown) for name, shown in self.figures.items()}
        numbers = "   ".join(f"{name} {words}" for name, words in self.status().items())
        return replace(self.film(), limits=limits, caption=f"{self.verdict()}\n{numbers}")


def _value(widget: Any) -> Any:
    return widget.active if isinstance(widget, Checkbox) else widget.value


class FrameView(View):
    """A view of a run that is there as a whole: time passes by its frames, which a slider chooses too."""

    def __init__(self, session: "Session", slider: Any) -> None:
        super().__init__(session)
        self._time = slider
        self._frame = self._end = 0
        self.connect(self._go, slider)

    def advance(self, steps: int) -> None:
        """Let time pass, a frame a step."""
        self._frame = min(self._frame + steps, self._end)

    @property
    def finished(self) -> bool:
        """Whether the last frame is shown."""
        return self._frame == self._end

    def reset(self) -> None:
        """Go back to the first frame."""
        self._frame = 0

    def _go(self, frame: int) -> None:
        if frame != self._frame:
            self._frame = min(frame, self._end)
            self.show()
