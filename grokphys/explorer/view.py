"""The interface of views, the tabs of the explorer: parameters, widgets, and the state that a link holds.

A view declares its parameters once, as a dataclass whose fields `slider`, `number`, `choice`, … make. From
them follow the widgets of the page, the entries of links and presets, and what a change does: it restarts the
run ("start"), lets it continue under other laws ("live"), or changes what is shown ("look").
"""

import contextlib
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from bokeh.models import Button, CategoricalSlider, Checkbox, Column, Div, Select, Slider, Spinner

import physics
from grokphys.explorer.films import Film, Panel
from grokphys.explorer.plots import CSS, PLOTS, SumPlot, TokenPlot, bounds
from grokphys.explorer.runs.common import asset
from physics.checks import flag

if TYPE_CHECKING:
    from grokphys.explorer.session import Session

LARGEST_SEED = 10**6
WAYS = {"ArrowRight": (1, 0), "ArrowLeft": (-1, 0), "ArrowUp": (0, 1), "ArrowDown": (0, -1)}
"""Directions of the arrow keys, as (to the right, up)."""
PRESETS = tomllib.loads(asset("presets.toml"))
REPLAYED = 300
"""About the largest number of frames of a replay."""
ASIDE = ("time", "step", "plane", "arrows")
"""Entries of a state that do not matter for whether it is that of a preset, unless the preset names them."""


# -- layout and controls -----------------------------------------------------------------------------------


def column(*children: Any, css: str = "", **options: Any) -> Any:
    """Return models below each other in a column of full width, in the style of a part of the page."""
    sheets = [CSS[css]] if css else []
    return Column(
        children=list(children), sizing_mode="stretch_width", margin=0, stylesheets=sheets, **options
    )


def card(*shown: Any, place: int = 0) -> Any:
    """Return a card with models below each other, for a place among the cards of a row."""
    return column(*shown, css="card", styles={"order": str(place)})


def heading(title: str, text: str = "", *, terms: Sequence[str] = ()) -> Any:
    """Return a small heading among controls, with a text below it and a (?) that explains `terms`, if any."""
    click = f"window.grokphys.explain(this, '{'|'.join(terms)}')"
    label = f"What is {', '.join(terms)}?"
    why = f'<button class="why" aria-label="{label}" onclick="{click}">?</button>' if terms else ""
    body = f"<h2>{title}{why}</h2>" + (f"<p>{text}</p>" if text else "")
    return Div(text=body, stylesheets=[CSS["heading"]], sizing_mode="stretch_width", margin=0)


def titled(panel: Panel) -> str:
    """Return HTML of the title of a panel, of what can be done with it, and of what it leaves out."""
    hint, note = f" ({panel.hint})" * bool(panel.hint), f"<p>{panel.note}</p>" * bool(panel.note)
    return f"<h3>{panel.title}{hint}</h3>{note}"


def control(kind: type[Any], label: str, **options: Any) -> Any:
    """Return a Bokeh widget of the class `kind` with a label, as wide as the column of controls."""
    options["label" if kind in (Button, Checkbox) else "title"] = label
    return kind(stylesheets=[CSS["control"]], sizing_mode="stretch_width", margin=(3, 2), **options)


def choices(options: Sequence[str] | Mapping[Any, str]) -> Any:
    """Return the options of Bokeh's Select: words, or pairs (value, label) of labels by their values."""
    return list(options.items()) if isinstance(options, Mapping) else list(options)


def attribute(widget: Any) -> str:
    """Return the name of the property that holds the value of a widget."""
    return "active" if isinstance(widget, Checkbox) else "value"


def checked(widget: Any, value: Any) -> Any:
    """Return a value for a widget, as an int where the widget holds whole numbers.

    Raises
    ------
    InputError
        If the widget does not allow the value.
    """
    if isinstance(widget, Checkbox):
        return flag(widget.label, value)
    if isinstance(widget, Select | CategoricalSlider):
        listed = widget.options if isinstance(widget, Select) else widget.categories
        values = [word if isinstance(word, str) else word[0] for word in listed]
        if value in values and not isinstance(value, bool):
            return value
        raise physics.InputError(
            f"{widget.title} must be one of {', '.join(map(str, values)):.150}, got {value!r:.80}"
        )
    low, high = (widget.start, widget.end) if isinstance(widget, Slider) else (widget.low, widget.high)
    step = widget.step if isinstance(widget, Slider) else 1 if widget.mode == "int" else 0.5
    whole = all(float(part).is_integer() for part in (low, high, step))
    if type(value) not in (int, float) or not low <= value <= high or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        shown = "nothing" if value is None else f"{value!r:.80}"
        raise physics.InputError(f"{widget.title} must be {kind} from {low:g} to {high:g}, got {shown}")
    return int(value) if whole else value


# -- parameters --------------------------------------------------------------------------------------------


def parameter(
    kind: type[Any], label: str, default: Any, role: str = "start", heading: Any = None, **options: Any
) -> Any:
    """Return a field of a dataclass of parameters, whose widget is a Bokeh model of the class `kind`.

    A `heading` above it holds a title, terms that are explained beside it, and a text, if there is one.
    """
    options["active" if kind is Checkbox else "value"] = default
    metadata = {"widget": lambda: control(kind, label, **options), "role": role, "heading": heading}
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
    return parameter(Select, label, first, options=choices(options), **more)


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
    the methods `advance`, `reset` and `trajectory`.

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
        self._grids = [column(css="grid", styles={"--columns": str(self.columns)}) for _ in self.rows]
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
        return SimpleNamespace(**{name: getattr(w, attribute(w)) for name, w in widgets})

    def set(self, **values: Any) -> None:
        """Set widgets without any reaction."""
        with self.filling():
            for name, value in values.items():
                setattr(self.widgets[name], attribute(self.widgets[name]), value)

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
        value = attribute(widget)

        def changed(_name: str, old: Any, new: Any) -> None:
            def react() -> None:
                self.session.accepted()
                try:
                    checked(widget, new)
                    function()
                except physics.InputError:
                    with self.filling():
                        setattr(widget, value, old)
                    raise

            if not self._filling and new == getattr(widget, value):  # or it has changed again since
                self.session.reaction(react)()

        widget.on_change(value, changed)

    def offer(self) -> None:  # noqa: B027
        """Let lists offer what the values of other widgets allow, such as the planes of a space."""

    def offer_options(self, name: str, options: Any) -> None:
        """Let a list offer options, and choose the first unless the present one is offered."""
        widget, listed = self.widgets[name], choices(options)
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
            value = checked(widget, state[name]) if name in state else self.usual[name]
            setattr(widget, attribute(widget), value)
            self.offer()

    def open(self) -> None:
        """Begin with the first run, when the view has been made."""
        self.restart()

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Begin a new run with the parameters, and show it."""
        self.offer()
        self.run = self.made(state or {})
        self.changed = False
        self.forget()
        self.show()

    def _continue(self) -> None:
        """Let the run continue with the present live values."""
        self.offer()
        self.apply()
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

    def apply(self) -> None:  # noqa: B027
        """Let the run continue with the present live values."""

    def ready(self, name: str, plot: Any) -> None:  # noqa: B027
        """React to the pointer in a figure that has been made."""

    def beside(self, name: str) -> list[Any]:
        """Return the models that follow the widget of a parameter among the controls, such as buttons."""
        return []

    def key(self, name: str) -> None:  # noqa: B027
        """React to a key such as "ArrowLeft", "Shift+ArrowLeft" or "Enter"."""

    def button(self, label: str, press: Callable[[], Any]) -> Any:
        """Return a button that calls a function."""
        made = control(Button, label)
        made.on_click(self.session.reaction(lambda _event: press()))
        return made

    # -- figures -------------------------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Any:
        """The Bokeh model of the view: controls, and rows of figures."""
        controls = []
        for entry in self._declared:
            if entry.metadata["heading"] is not None:
                title, terms, *text = entry.metadata["heading"]
                controls.append(heading(title, *text, terms=terms))
            if entry.name != "time":
                controls += [self.widgets[entry.name], *self.beside(entry.name)]
        side = column(*controls, css="controls", tags=["controls"])
        main = column(*self._grids, css="main", spacing=14)
        return column(column(side, main, css="stage"))  # the outer column can be made invisible

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
                if name in panels:
                    self._cards[name].children[0].text = titled(panels[name])
        self._fresh = False

    def _add(self, name: str, panel: Panel) -> None:
        """Make the figure of a panel, in its place among the others."""
        (row,) = (k for k, names in enumerate(self.rows) if name in names)
        place = list(self.rows[row]).index(name)
        self.plots[name] = plot = PLOTS[type(panel)](panel, self.rows[row][name])
        below = [self.widgets["time"]] if name == "tokens" and "time" in self.widgets else []
        title = Div(text=titled(panel), stylesheets=[CSS["heading"]], margin=0)
        self._cards[name] = card(title, plot.figure, *below, place=place)
        self._grids[row].children = [*self._grids[row].children, self._cards[name]]
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
        limits = {n: bounds(plot.figure) for n, plot in planes.items() if self._cards[n].visible}
        numbers = "   ".join(f"{name} {words}" for name, words in self.status().items())
        words = f"{self.verdict()}\n{numbers}"
        return replace(self.film(), shown=self.frame, limits=limits, caption=words)

    # -- what runs do alike --------------------------------------------------------------------------------

    def advance(self, steps: int) -> None:
        """Advance the run by some steps."""
        self.run.advance(steps)

    def reset(self) -> None:
        """Return to the start of the run, with the present values of the parameters."""
        self.changed = False
        self.run.reset()
        self.forget()

    frame: Any = -1
    """Number of the frame of a film that is on screen."""
    finished: Any = False
    """Whether the view has reached its end, at which play stops."""
    waits: Any = False
    """Whether there is nothing to play until more is recorded."""
    pace: Any = 0.0
    """Seconds that a frame of play takes at least."""

    def python(self) -> str:
        """Return Python source that reproduces what is on screen, bit for bit, with the state as `E`."""
        return str(self.run.python())

    def trajectory(self) -> Any:
        """Return the kept frames of the run as a trajectory, which can be saved."""
        return self.run.trajectory(self.python())


class FrameView(View):
    """A view of frames that exist: play shows one after the other, and the slider "time" chooses one."""

    replays = False
    end = 0
    """Number of the last frame."""
    frame = 0

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
