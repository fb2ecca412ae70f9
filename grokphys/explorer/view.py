"""The interface of views, the tabs of the explorer: parameters, widgets, and the state that a link holds.

A view declares its parameters once, as a dataclass whose fields `slider`, `number`, `choice`, … make. From
them follow the widgets of the page, the entries of links and presets, and what a change does: it restarts the
run ("start"), lets it continue under other laws ("live"), or changes what is shown ("look").
"""

import contextlib
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from bokeh.models import CategoricalSlider, Checkbox, Select, Slider, Spinner

from grokphys.explorer import theme
from grokphys.explorer.films import Film
from grokphys.explorer.panels import Panel
from grokphys.explorer.plots import PLOTS, SumPlot, TokenPlot
from grokphys.explorer.runs.common import asset
from physics.checks import whole_number
from physics.errors import InputError
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    from grokphys.explorer.session import Session

WAYS = {"ArrowRight": (1, 0), "ArrowLeft": (-1, 0), "ArrowUp": (0, 1), "ArrowDown": (0, -1)}
"""Directions of the arrow keys, as (to the right, up)."""
LONGEST_REPLAY = 20_000
"""Largest number of steps that a link may request, which take some seconds."""
LACKS = (
    "The link of this page begins the run anew with the present controls, because it was changed on the way; "
    "“Copy as Python” holds all of it."
)
PRESETS = tomllib.loads(asset("presets.toml"))
REPLAYED = 300
"""About the largest number of frames of a replay."""
ASIDE = ("time", "step", "plane", "arrows", "rollout")
"""Entries of a state that do not matter for whether it is that of a preset, unless the preset names them."""


def parameter(
    kind: type[Any], label: str, default: Any, role: str = "start", heading: Any = None, **options: Any
) -> Any:
    """Return a field of a dataclass of parameters, whose widget is a Bokeh model of the class `kind`.

    A `heading` above it holds a title, terms that are explained beside it, and a text, if there is one.
    """
    options["active" if kind is Checkbox else "value"] = default
    metadata = {"widget": lambda: theme.control(kind, label, **options), "role": role, "heading": heading}
    return field(default=default, metadata=metadata)


def slider(label: str, default: float, start: float, end: float, step: float = 1, **options: Any) -> Any:
    """Return the field of a number from `start` to `end` in steps."""
    return parameter(Slider, label, default, start=start, end=end, step=step, **options)


def number(label: str, default: float, low: float, high: float, **options: Any) -> Any:
    """Return the field of a number from `low` to `high`, whole unless the option `mode` is "float"."""
    return parameter(Spinner, label, default, low=low, high=high, **{"mode": "int"} | options)


def choice(label: str, options: Any, default: Any = None, **more: Any) -> Any:
    """Return the field of one of some words, or of the keys of a mapping to words; by default the first."""
    first = next(iter(options)) if default is None else default
    return parameter(Select, label, first, options=theme.choices(options), **more)


def one_of(label: str, categories: list[str], default: str, **options: Any) -> Any:
    """Return the field of one of some words that a slider chooses."""
    return parameter(CategoricalSlider, label, default, categories=categories, **options)


def switch(label: str, default: bool = False, **options: Any) -> Any:
    """Return the field of a truth value."""
    return parameter(Checkbox, label, default, **options)


def modulus(of: str, **options: Any) -> Any:
    """Return the field of a modulus, where 0 and 1 mean none; `of` says what holds then."""
    return number(f"modulus (below 2: {of})", 0, 0, 200, **options)


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
        Parameters that differ from the defaults.
    speed : int, default 1
        Number of steps per frame.
    """

    name: str
    watch: str
    settings: Mapping[str, Any]
    speed: int = 1


class View(ABC):
    """A view: one tab of a page, which is created when the tab is first opened.

    The session calls the methods of a view one at a time. `advance` and `replay` run in a worker thread,
    where no model of Bokeh may be changed. All other methods run on the server's event loop with the
    document locked. An exception becomes a sentence on the page, and the view is paused.

    A subclass makes a run by `made`, and says by `panels` what its figures show. The run has a `step`, and
    the methods `advance`, `reset`, `python` and `trajectory`.

    Attributes
    ----------
    widgets : dict of str to Bokeh model
        Widgets of the parameters.
    run : object
        The run that is shown.
    plots : dict of str to object
        Figures by the names of their panels.
    changed : bool
        Whether live values were changed, or parts moved by hand, after the start of the run.
    """

    slug: ClassVar[str]
    """Name in ids and in file names, such as "particles"."""
    name: ClassVar[str]
    """Label of the tab."""
    Parameters: ClassVar[type[Any]]
    """Dataclass of the parameters."""
    rows: ClassVar[tuple[Mapping[str, int], ...]]
    """Rows of figures: names of panels with the heights of their figures in pixels."""
    columns: ClassVar[int] = 2
    """Number of figures beside each other on a wide page."""
    reads_files: ClassVar[bool] = False
    """Whether the view shows trajectory files; a page that is given files begins with the first such view."""
    terms: ClassVar[tuple[str, ...]] = ()
    """Terms of `assets/terms.txt` that the view uses."""
    presets: ClassVar[list[Preset]]
    """Presets of `assets/presets.toml`."""
    invitation: ClassVar[str] = ""
    """What to watch for if the controls are not those of a preset."""
    replays: ClassVar[bool] = True
    """Whether a link repeats the steps of the run; otherwise the frame is one of the parameters."""

    def __init_subclass__(cls) -> None:
        cls.presets = [Preset(**preset) for preset in PRESETS.get(getattr(cls, "slug", ""), ())]

    def __init__(self, session: "Session") -> None:
        self.session = session
        self._declared = fields(self.Parameters)
        self.widgets = {entry.name: entry.metadata["widget"]() for entry in self._declared}
        self.usual = {entry.name: entry.default for entry in self._declared}
        self.plots: dict[str, Any] = {}
        self._cards: dict[str, Any] = {}
        self._grids = [theme.grid(columns=self.columns) for _ in self.rows]
        self.run: Any = None
        self.changed = False
        self.speed = self.presets[0].speed if self.presets else 1
        self._filling, self._fresh = False, True
        reactions = {"start": self.restart, "live": self._continue, "look": self.look}
        for entry in self._declared:
            self._connect(reactions[entry.metadata["role"]], self.widgets[entry.name])

    # -- parameters ----------------------------------------------------------------------------------------

    @property
    def values(self) -> SimpleNamespace:
        """Present values of the parameters."""
        widgets = self.widgets.items()
        return SimpleNamespace(**{name: getattr(w, theme.attribute(w)) for name, w in widgets})

    def set(self, **values: Any) -> None:
        """Set widgets without any reaction."""
        with self.filling():
            for name, value in values.items():
                setattr(self.widgets[name], theme.attribute(self.widgets[name]), value)

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Change widgets, within a ``with`` block, without any reaction."""
        before, self._filling = self._filling, True
        try:
            yield
        finally:
            self._filling = before

    def _connect(self, function: Callable[[], Any], widget: Any) -> None:
        """Call a function whenever a widget changes; it returns to the value before if that is refused."""
        attribute = theme.attribute(widget)

        def changed(_name: str, old: Any, new: Any) -> None:
            def react() -> None:
                self.session.accepted()
                try:
                    theme.checked(widget, new)
                    function()
                except InputError:
                    with self.filling():
                        setattr(widget, attribute, old)
                    raise

            if not self._filling and new == getattr(widget, attribute):  # or it has changed again since
                self.session.reaction(react)()

        widget.on_change(attribute, changed)

    def offer(self) -> None:  # noqa: B027
        """Let lists offer what the values of other widgets allow, such as the planes of a space."""

    def offer_options(self, name: str, options: Any) -> None:
        """Let a list offer options, and choose the first unless the present one is offered."""
        widget, listed = self.widgets[name], theme.choices(options)
        if listed != widget.options:
            known = [option[0] if isinstance(option, tuple) else option for option in listed]
            value = widget.value if widget.value in known else known[0]
            with self.filling():
                widget.update(options=listed, value=value)

    # -- the state, for links and presets ------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the parameters that differ from the defaults, and the steps of an unchanged run."""
        state = {name: value for name, value in vars(self.values).items() if value != self.usual[name]}
        if self.replays and self.run.step and not self.changed:
            state["step"] = self.run.step
        return state

    @property
    def lacks(self) -> str:
        """Sentence on what the link of this state leaves out; empty if it leaves out nothing."""
        return LACKS if self.changed else ""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set all widgets to a state, whose missing entries are defaults, and start again.

        Raises
        ------
        InputError
            If the state is not possible; the state before stays.
        """
        before = vars(self.values)
        try:
            with self.filling():
                self.fill(state)
            self.restart(state)
        except Exception:
            with self.filling():
                self.fill(before)
            raise

    def fill(self, state: Mapping[str, Any]) -> None:
        """Set all widgets to a state, in the order of the parameters."""
        for name, widget in self.widgets.items():
            value = theme.checked(widget, state[name]) if name in state else self.usual[name]
            setattr(widget, theme.attribute(widget), value)
            self.offer()

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Begin a new run with the parameters, and show it."""
        self.offer()
        self.run = self.made(state or {})
        self.changed = False
        self.forget()
        self.show()

    def _continue(self) -> None:
        """Let the run continue with the present live values."""
        self.apply(vars(self.values))
        self.changed |= self.begun
        self.show(whole=False)

    def replay(self, steps: int, stride: int) -> None:
        """Advance by `steps` steps in frames of `stride` steps, or more if they were more than `REPLAYED`."""
        stride = max(stride, -(-steps // REPLAYED))
        for step in range(0, steps, stride):
            self.advance(min(stride, steps - step))
        self.forget()

    # -- presets -------------------------------------------------------------------------------------------

    @property
    def preset(self) -> Preset | None:
        """Preset that the state fits, or of several the one with the most settings; None if it fits none."""

        def fits(settings: Mapping[str, Any]) -> bool:
            shown = {n: value for n, value in self.state().items() if n in settings or n not in ASIDE}
            return shown == {n: value for n, value in settings.items() if value != self.usual.get(n)}

        fitting = [preset for preset in self.presets if fits(preset.settings)]
        return max(fitting, key=lambda preset: len(preset.settings), default=None)

    def watch(self, playing: bool) -> str:
        """Return a sentence on what to watch for: that of the `preset`, or else the `invitation`."""
        closest = self.preset
        words = self.invitation if closest is None else closest.watch
        return words if playing or self.begun else f"{words} Press Play to start.".strip()

    @property
    def begun(self) -> bool:
        """Whether the view has left its start."""
        return bool(self.run.step)

    # -- what a view defines -------------------------------------------------------------------------------

    @abstractmethod
    def made(self, state: Mapping[str, Any]) -> Any:
        """Return a new run with the parameters; `state` may hold more than the values of widgets.

        Raises
        ------
        InputError
            If the parameters are not possible.
        """

    @abstractmethod
    def panels(self, whole: bool) -> Mapping[str, Panel]:
        """Return what the figures show; unless `whole`, only of those that change in every frame of play."""

    @abstractmethod
    def status(self) -> Mapping[str, str]:
        """Return the measures that the page shows, as texts by their names, such as {"step": "120"}."""

    @abstractmethod
    def verdict(self) -> str:
        """Return a few sentences that describe what is on screen."""

    @abstractmethod
    def film(self) -> Film:
        """Return a film of the run, with data that do not change while a worker draws it."""

    def apply(self, law: Mapping[str, Any]) -> None:  # noqa: B027
        """Let the run continue with other live values."""

    def ready(self, name: str, plot: Any) -> None:  # noqa: B027
        """React to the pointer in a figure that has been made."""

    def beside(self, name: str) -> list[Any]:
        """Return the models that follow the widget of a parameter among the controls, such as buttons."""
        return []

    def key(self, name: str) -> None:  # noqa: B027
        """React to a key such as "ArrowLeft", "Shift+ArrowLeft" or "Enter"."""

    def take(self, path: str) -> bool:
        """Show an uploaded file, and return whether the view can do so."""
        return False

    # -- figures -------------------------------------------------------------------------------------------

    def layout(self) -> Any:
        """Return the Bokeh model of the view, which is created once: controls, and rows of figures."""
        controls = []
        for entry in self._declared:
            if entry.metadata["heading"] is not None:
                title, terms, *text = entry.metadata["heading"]
                controls.append(theme.heading(title, *text, terms=terms))
            if entry.name != "time":
                controls += [self.widgets[entry.name], *self.beside(entry.name)]
        return theme.stage(controls, *self._grids)

    def show(self, *, whole: bool = True) -> None:
        """Show the state on screen.

        `whole` is False for most frames of play, which should send little. Parts such as curves against time
        wait for complete updates, which come about three times per second.
        """
        panels = self.panels(whole)
        for name, panel in panels.items():
            new = name not in self.plots
            if new:
                self._add(name, panel)
            self.plots[name].show(panel, self._fresh or new)
        if whole:
            for name in self.plots:
                self._cards[name].visible = name in panels
        self._fresh = False

    def _add(self, name: str, panel: Panel) -> None:
        """Make the figure of a panel, in its place among the others."""
        (place,) = (k for k, row in enumerate(self.rows) if name in row)
        self.plots[name] = plot = PLOTS[type(panel)](panel, self.rows[place][name])
        below = [self.widgets["time"]] if name == "tokens" and "time" in self.widgets else []
        self._cards[name] = theme.card(plot.figure, *below)
        self._grids[place].children = [self._cards[n] for n in self.rows[place] if n in self._cards]
        self.ready(name, plot)

    def look(self) -> None:
        """Show the same state in another way, such as on another plane."""
        self.forget()
        self.show()

    def forget(self) -> None:
        """Let the next frame be shown without a trail from the frames before."""
        self._fresh = True

    def still(self) -> Film:
        """Return a film whose picture is what is on screen, above the `verdict` and the `status`."""
        planes = {n: p for n, p in self.plots.items() if isinstance(p, TokenPlot | SumPlot)}
        limits = {n: theme.bounds(plot.figure) for n, plot in planes.items() if self._cards[n].visible}
        numbers = "   ".join(f"{name} {words}" for name, words in self.status().items())
        return replace(self.film(), limits=limits, caption=f"{self.verdict()}\n{numbers}")

    # -- what runs do alike --------------------------------------------------------------------------------

    def advance(self, steps: int) -> None:
        """Advance the run by some steps."""
        self.run.advance(steps)

    def reset(self) -> None:
        """Return to the start of the run, with the present values of the parameters."""
        self.changed = False
        self.run.reset()
        self.forget()

    finished: Any = False
    """Whether the view has reached its end, at which play stops."""
    waits: Any = False
    """Whether there is nothing to play until more is recorded."""
    pace: Any = 0.0
    """Seconds that a frame of play takes at least."""

    def python(self) -> str:
        """Return Python source that reproduces what is on screen, bit for bit, with the state as `E`."""
        return str(self.run.python())

    def trajectory(self) -> Trajectory:
        """Return the kept frames of the run as a trajectory, which can be saved."""
        frames: Trajectory = self.run.trajectory()
        return frames


class FrameView(View):
    """A view of frames that exist: play shows one after the other, and the slider "time" chooses one."""

    replays = False
    end = 0
    """Number of the last frame."""
    _frame = 0

    @property
    def frame(self) -> int:
        """Number of the frame that is shown."""
        return min(self._frame, self.end)

    @frame.setter
    def frame(self, frame: int) -> None:
        self._frame = frame

    def advance(self, steps: int) -> None:
        """Move forward by `steps` frames, at most to the last one."""
        self.frame = min(self.frame + steps, self.end)

    @property
    def begun(self) -> bool:
        """Whether a later frame than the first is shown."""
        return self.frame > 0

    @property
    def finished(self) -> bool:
        """Whether the last frame is shown."""
        return self.frame == self.end

    def reset(self) -> None:
        """Return to the first frame."""
        self.frame = 0

    def look(self) -> None:
        """Show the frame that the slider chooses."""
        self.frame = self.widgets["time"].value
        super().look()

    def show(self, *, whole: bool = True) -> None:
        """Show the frame, and its number on the slider."""
        super().show(whole=whole)
        if whole:
            self.set(time=self.frame)


def replayed(state: Mapping[str, Any]) -> int:
    """Return the entry "step" of a state, the number of steps that it requests; refuse too many."""
    return whole_number("step", state.get("step", 0), 0, LONGEST_REPLAY)
