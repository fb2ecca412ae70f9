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
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from bokeh.models import CategoricalSlider, Checkbox, Select, Slider, Spinner, TextInput

from grokphys.explorer import theme
from grokphys.explorer.films import Film
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
MOST_CHANGES = 100
"""Largest number of changes of controls and of moves by hand during a run that a link holds."""
PRESETS = tomllib.loads(asset("presets.toml"))
REPLAYED = 300
"""About the largest number of frames of a replay; each change of a control may add one."""
ASIDE = ("time", "step", "moves", "before", "plane", "arrows", "rollout")
"""Entries of a state that do not matter for whether it is that of a preset, unless the preset names them."""


def parameter(kind: type[Any], label: str, default: Any, role: str = "start", **options: Any) -> Any:
    """Return a field of a dataclass of parameters, whose widget is a Bokeh model of the class `kind`."""
    options["active" if kind is Checkbox else "value"] = default
    metadata = {"widget": lambda: theme.control(kind, label, **options), "role": role}
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

    A subclass makes its figures, and then a run by `restart`. The run has a `step`, and the methods
    `advance`, `reset`, `python` and `trajectory`.

    Attributes
    ----------
    widgets : dict of str to Bokeh model
        Widgets of the parameters.
    run : object
        The run that is shown.
    figures : dict of str to Bokeh figure
        Figures by the labels of the axes that show the same in pictures.
    """

    slug: ClassVar[str]
    """Name in ids and in file names, such as "particles"."""
    name: ClassVar[str]
    """Label of the tab."""
    Parameters: ClassVar[type[Any]]
    """Dataclass of the parameters."""
    reads_files: ClassVar[bool] = False
    """Whether the view shows trajectory files; a page that is given files begins with the first such view."""
    terms: ClassVar[tuple[str, ...]] = ()
    """Terms of `assets/terms.txt` that the view uses."""
    presets: ClassVar[list[Preset]]
    """Presets of `assets/presets.toml`."""
    invitation: ClassVar[str] = ""
    """What to watch for if the controls are not those of a preset."""

    @classmethod  # noqa: B027
    def prepare(cls) -> None:
        """Do slow work of the first use, such as imports, in a worker before the first view is created."""

    def __init_subclass__(cls) -> None:
        cls.presets = [Preset(**preset) for preset in PRESETS.get(getattr(cls, "slug", ""), ())]

    def __init__(self, session: "Session") -> None:
        self.session = session
        declared = fields(self.Parameters)
        self.widgets = {entry.name: entry.metadata["widget"]() for entry in declared}
        self.usual = {entry.name: entry.default for entry in declared}
        self.figures: dict[str, Any] = {}
        self.run: Any = None
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.speed = self.presets[0].speed if self.presets else 1
        self._filling = False
        self._live = [entry.name for entry in declared if entry.metadata["role"] == "live"]
        reactions = {"start": self.restart, "live": self._changed, "look": self.look}
        for entry in declared:
            self.connect(reactions[entry.metadata["role"]], self.widgets[entry.name])

    # -- parameters ----------------------------------------------------------------------------------------

    @property
    def values(self) -> SimpleNamespace:
        """Present values of the parameters."""
        return SimpleNamespace(**{name: _value(widget) for name, widget in self.widgets.items()})

    def set(self, **values: Any) -> None:
        """Set widgets without any reaction."""
        with self.filling():
            for name, value in values.items():
                setattr(self.widgets[name], theme.attribute(self.widgets[name]), value)

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Change widgets, within a ``with`` block, without calling the functions that `connect` has bound."""
        before, self._filling = self._filling, True
        try:
            yield
        finally:
            self._filling = before

    def connect(self, function: Callable[[], Any], widget: Any) -> None:
        """Call a function whenever a widget changes, except while `filling`.

        A widget returns to the value before if its value is not allowed, or the function raises an
        `InputError`. Only the text of a text field stays, so that the user can correct it.
        """
        attribute = theme.attribute(widget)

        def changed(_name: str, old: Any, new: Any) -> None:
            def react() -> None:
                self.session.accepted()
                try:
                    theme.checked(widget, new)
                    function()
                except InputError:
                    if not isinstance(widget, TextInput):
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
            kept = widget.value if widget.value in known else known[0]
            with self.filling():
                widget.update(options=listed, value=kept)

    # -- the state, for links and presets ------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the parameters that differ from the defaults, the number of steps, and earlier changes.

        The entry "before" is a list of [step, values]: the last step with the live values, and those of them
        that differ from the present.
        """
        now = vars(self.values)
        state = {name: value for name, value in now.items() if value != self.usual[name]}
        if self.replays and self.run.step:
            state["step"] = self.run.step
        if self.changes and not self.lacks:
            state["before"] = [
                [step, {name: value for name, value in values.items() if value != now[name]}]
                for step, values in self.changes
            ]
        return state

    replays: ClassVar[bool] = True
    """Whether a link repeats the steps of the run; otherwise the frame is one of the parameters."""

    @property
    def lacks(self) -> str:
        """Sentence on what the link of this state leaves out; empty if it leaves out nothing."""
        if len(self.changes) + len(getattr(self.run, "moves", ())) <= MOST_CHANGES:
            return ""
        return (
            f"This link leaves out what was changed or moved during the run, because that was done more than "
            f"{MOST_CHANGES} times; “Copy as Python” holds all of it."
        )

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
        """Begin a new run with the parameters, and with the changes of a `state`, and show it."""
        self.offer()
        changes = self._read_changes(state or {})
        self.run = self.made(state or {})
        self.changes, self._before = changes, self._live_values()
        if changes:
            self.apply(changes[0][1])
        self.forget()
        self.show()

    def _read_changes(self, state: Mapping[str, Any]) -> list[tuple[int, dict[str, Any]]]:
        """Return the entry "before" of a state, with checked values."""
        rows, last, now = state.get("before", []), replayed(state), self._live_values()
        try:
            changes = [(whole_number("before", step, 1), dict(values)) for step, values in rows]
            steps = [step for step, _ in changes]
            unknown = {name for _, values in changes for name in values} - set(self._live)
            right = len(changes) <= MOST_CHANGES and all(a < b for a, b in pairwise([*steps, last + 1]))
        except (TypeError, ValueError):
            right, unknown = False, set()
        if not right or unknown:
            raise InputError(
                f"before must be at most {MOST_CHANGES} changes of {', '.join(self._live) or 'nothing'} as "
                f"[step, {{control: value}}] with increasing steps up to {last}, got {rows!r:.80}"
            )
        return [
            (step, now | {name: theme.checked(self.widgets[name], v) for name, v in values.items()})
            for step, values in changes
        ]

    def _live_values(self) -> dict[str, Any]:
        return {name: self.widgets[name].value for name in self._live}

    def _changed(self) -> None:
        """Let the run continue with the present live values, and note those before."""
        self.apply(self._live_values())
        if self.run.step > (self.changes[-1][0] if self.changes else 0):
            self.changes.append((self.run.step, self._before))
        self._before = self._live_values()
        self.show(whole=False)

    def replay(self, steps: int, stride: int) -> None:
        """Advance by `steps` steps in frames of `stride` steps, or more if they were more than `REPLAYED`.

        After the step of each of the `changes`, the run continues with the values that held then.
        """
        stride, taken = max(stride, -(-steps // REPLAYED)), 0
        after = [*(values for _, values in self.changes[1:]), self._before]
        for until, values in [*zip((step for step, _ in self.changes), after, strict=False), (steps, None)]:
            while taken < until:
                self.advance(min(stride, until - taken))
                taken = min(taken + stride, until)
            if values is not None:
                self.apply(values)
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
    def panel(self) -> Any:
        """Return the Bokeh model of the view, which is created once; see `theme.stage`."""

    @abstractmethod
    def show(self, *, whole: bool = True) -> None:
        """Show the state on screen.

        `whole` is False for most frames of play, which should send little. Parts such as curves against time
        may wait for complete updates, which come about three times per second.
        """

    @abstractmethod
    def status(self) -> Mapping[str, str]:
        """Return the measures that the page shows, as texts by their names, such as {"step": "120"}."""

    @abstractmethod
    def verdict(self) -> str:
        """Return a few sentences that describe what is on screen."""

    @abstractmethod
    def film(self) -> Film:
        """Return a film of the run, with data that do not change while a worker draws it."""

    def look(self) -> None:
        """Show the same state in another way, such as on another plane."""
        self.forget()
        self.show()

    def apply(self, values: Mapping[str, Any]) -> None:  # noqa: B027
        """Let the run continue with other values of the live parameters."""

    def forget(self) -> None:  # noqa: B027
        """Let the next frame be shown without a trail from the frames before."""

    def key(self, name: str) -> None:  # noqa: B027
        """React to a key such as "ArrowLeft", "Shift+ArrowLeft" or "Enter"."""

    def take(self, path: str) -> bool:
        """Show an uploaded file, and return whether the view can do so."""
        return False

    # -- what runs do alike --------------------------------------------------------------------------------

    def advance(self, steps: int) -> None:
        """Advance the run by some steps."""
        self.run.advance(steps)

    def reset(self) -> None:
        """Return to the start of the run, with the present values of the parameters."""
        self.changes, self._before = [], self._live_values()
        self.run.reset()
        self.forget()

    @property
    def finished(self) -> bool:
        """Whether the view has reached its end, at which play stops."""
        return False

    @property
    def waits(self) -> bool:
        """Whether there is nothing to play until more is recorded."""
        return False

    @property
    def pace(self) -> float:
        """Seconds that a frame of play takes at least."""
        return 0.0

    def python(self) -> str:
        """Return Python source that reproduces what is on screen, bit for bit, with the state as `E`."""
        return str(self.run.python())

    def trajectory(self) -> Trajectory:
        """Return the kept frames of the run as a trajectory, which can be saved."""
        kept: Trajectory = self.run.trajectory()
        return kept

    def still(self) -> Film:
        """Return a film whose picture is what is on screen, above the `verdict` and the `status`."""
        limits = {name: theme.bounds(shown) for name, shown in self.figures.items()}
        numbers = "   ".join(f"{name} {words}" for name, words in self.status().items())
        return replace(self.film(), limits=limits, caption=f"{self.verdict()}\n{numbers}")


class FrameView(View):
    """A view of frames that exist: play shows one after the other, and the slider "time" chooses one."""

    replays = False

    @property
    def frame(self) -> int:
        """Number of the frame that is shown."""
        return min(self._frame, self.end)

    @frame.setter
    def frame(self, frame: int) -> None:
        self._frame = frame

    end = 0
    """Number of the last frame."""
    _frame = 0

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


PREPARED: set[type[View]] = set()
"""Kinds of views for which `prepare` has been called, so that they can be created without delay."""


def prepared(kind: type[View]) -> type[View]:
    """Return a kind of view, after calling `prepare` unless this has been done."""
    if kind not in PREPARED:
        kind.prepare()
        PREPARED.add(kind)
    return kind


def replayed(state: Mapping[str, Any]) -> int:
    """Return the entry "step" of a state, the number of steps that it requests; refuse too many."""
    steps = whole_number("step", state.get("step", 0), 0)
    if steps > LONGEST_REPLAY:
        raise InputError(f"step must be at most {LONGEST_REPLAY} in a link, got {steps}")
    return steps


def _value(widget: Any) -> Any:
    return getattr(widget, theme.attribute(widget))
