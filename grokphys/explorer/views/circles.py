"""View 4: circles of a trajectory file, their survival, and their law of motion (Ding et al.)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.models import Button, Checkbox, ColumnDataSource

from grokphys.explorer import theme
from grokphys.explorer.files import FileList, finished
from grokphys.explorer.films.export import Film
from grokphys.explorer.films.films import circles_film
from grokphys.explorer.guard import checked
from grokphys.explorer.plots.circles import CoefficientPlot, SignalPlot, score_text
from grokphys.explorer.plots.plane import TokenPlot
from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.circles import RECIPES, CircleRun, Fitted, open_run, read_again
from grokphys.explorer.session import Session
from grokphys.explorer.uploads import named
from grokphys.explorer.views import presets
from grokphys.explorer.views.frames import FrameView
from grokphys.files import embedded_trajectory
from grokphys.options import sentence
from physics.checks import whole_number
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory
from physics.trajectory.locks import claimed

FOLLOW_MILLISECONDS = 1000
FACTOR, THRESHOLD = "a multiple of the mean signal", "an absolute signal"
SLOWEST, SHORTEST = 0.1, 10.0
"""Seconds that play shows each of a few frames, and that it takes at least for more than 100 frames."""
LOWEST = 0.001
"""Smallest survival limit: at 0, every circle would survive."""


class CirclesView(FrameView):
    """The view of a run's signals and survivors, its tokens on a plane over time, and a fitted linear law."""

    slug, name = "circles", "Circles"
    needs = ("analysis.circles.signals", "analysis.circles.geometry")
    reads_files = True
    terms = ("signal", "survivors", "limit", "plane", "linear ODE", "rollout R²", "step")
    presets = presets.CIRCLES
    invitation = "Watch which circles of this run grow, and which die out."

    def __init__(self, session: Session) -> None:
        super().__init__(session, theme.slider("frame", 0, 1, 0))
        real = embedded_trajectory()
        files = {**session.files, real: str(real)}
        self._file = FileList(self, lambda path, name: self._open(path, name, 0), {real: str(real)})
        self._index = theme.number("run", 0, 0, 0)
        self._plane = theme.chooser("plane", ["-"])
        self._rule = theme.chooser("survival limit given as", [FACTOR, THRESHOLD])
        self._limit = theme.number("limit", 2.0, LOWEST, 1e6, mode="float", step=0.5)
        self._recipe = theme.chooser("fit", list(RECIPES))
        self._first = theme.number("from step", 0, 0, 0)
        self._last = theme.number("to step", 1000, 0, 1000)
        self._fit = theme.control(Button, "Fit the linear ODE")
        self._rollout = theme.control(Checkbox, "show the rollout", active=True)
        self._tokens = TokenPlot("Tokens, projected on a plane", height=400)
        self._signals = SignalPlot()
        self._coefficients: CoefficientPlot | None = None
        self._scores = theme.heading("")
        self._below = [theme.card(self._scores)]
        self._bottom = theme.grid(*self._below)
        self._ring = ColumnDataSource({"x": [], "y": []})
        ring = self._tokens.figure.line("x", "y", source=self._ring, line_color=theme.FAINT, line_width=1)
        ring.level = "underlay"
        self.figures = {"tokens": self._tokens.figure, "signals": self._signals.figure}
        self._path: Path | None = None
        self._watching: Any = None
        self._reading = False
        self._fitted: Fitted | None = None
        self._open_first(files)
        self.connect(self._reopen, self._index)
        self.connect(lambda _: self._look(), self._plane)
        self.connect(self._change_rule, self._rule)
        self.connect(lambda _: self._change_limit(), self._limit)
        self.connect(lambda _: self._show_rollout(), self._rollout, attribute="active")
        self.connect(lambda _: None, self._recipe, self._first, self._last)  # the next fit reads them
        self.hold(
            file=self._file.list,
            run=self._index,
            plane=self._plane,
            rule=self._rule,
            limit=self._limit,
            recipe=self._recipe,
            first=self._first,
            last=self._last,
            rollout=self._rollout,
            time=self._time,
        )
        self._usual["file"] = str(real)  # the presets are about this file
        self._fit.on_click(session.reaction(lambda _event: self._start_fit()))

    def panel(self) -> Any:
        """Return controls, tokens on a plane, signals, coefficients and scores."""
        controls = [
            theme.heading("File"),
            *self._file.panel,
            self._index,
            theme.heading("Display", terms=("plane", "survivors", "limit")),
            self._plane,
            self._rule,
            self._limit,
            theme.heading("Linear ODE", terms=("linear ODE", "rollout R²")),
            self._recipe,
            self._first,
            self._last,
            self._fit,
            self._rollout,
        ]
        return theme.stage(
            controls,
            theme.grid(
                theme.card(self._tokens.figure, self._time),
                theme.card(self._signals.figure),
            ),
            self._bottom,
        )

    # -- interface for the session -------------------------------------------------------------------------

    def show(self, *, whole: bool = True) -> None:
        """Show the frame: move the tokens, and the line at the current step."""
        paths = self._seen.points
        self._tokens.follow(paths, self._frame)
        ring = paths[self._frame, self._seen.cycle] if self._seen.cycle is not None else np.empty((0, 2))
        self._ring.data = {"x": ring[:, 0], "y": ring[:, 1]}
        self._signals.point_at(self._step)
        if whole:
            self._time.value = self._frame

    def status(self) -> dict[str, str]:
        """Return step, file, survivors, limit and other measures that apply, as texts by their names."""
        run, k = self._run, self._frequency
        status = {
            "step": str(self._step),
            "file": Path(run.name).name,
            **({"run": f"{run.index} of 0–{self._runs - 1}"} if self._runs > 1 else {}),
            "survivors": " ".join(map(str, self._survivors())) or "none",
            **({} if self._stored.complete else {"recording": "continues" if self._recorded else "stopped"}),
            "limit": f"{run.limit(**self._rules):.4g}",
        }
        if k is not None:
            steps, values = run.signals
            near = int(np.abs(steps - self._step).argmin())
            status[f"signal {k}"] = f"{values[near, k - 1]:.4g}"
        if self._fitted is not None:
            status["rollout R²"] = f"{self._fitted.scores.in_sample.rollout:.4f}"
        return status

    def python(self) -> str:
        """Return Python source that reads the file, projects the tokens, and fits the law that is shown."""
        return self._run.python(self._plane.value, self._frame, self._fitted, **self._rules)

    def trajectory(self) -> Trajectory:
        """Return the run as the view has read it: of a long run every n-th frame."""
        return self._run.trajectory

    def verdict(self) -> str:
        """Return sentences on which circles survive, and on the fate of the chosen one."""
        steps, values = self._run.signals
        limit = self._run.limit(**self._rules)
        words = verdicts.survival(self._frequency, self._survivors(), steps, values, limit, self._run.tokens)
        if not self._stored.complete:
            return f"So far, {words[0].lower()}{words[1:]}"
        return words if self.finished else f"In the last frame, {words[0].lower()}{words[1:]}"

    @property
    def finished(self) -> bool:
        """Whether the last frame of a complete file is shown."""
        return self._stored.complete and self._frame == self._end

    @property
    def pace(self) -> float:
        """Seconds that play shows each frame at least, so that a short run can be watched."""
        return min(SLOWEST, SHORTEST / (self._end + 1))

    @property
    def waits(self) -> bool:
        """Whether the last frame of an incomplete file is shown, which may get more frames."""
        return not self._stored.complete and self._frame == self._end

    def set_to(self, state: Mapping[str, Any]) -> None:
        """Open the file and the run of a state, and set the widgets to it; raise an error of either."""
        given = Path(str(state.get("file", self._usual["file"])))
        file = checked(self._file.list, "value", str(finished(given)))
        found = next(item for item in self._file.files.items() if str(item[0]) == file)
        self._open(*found, whole_number("run", state.get("run", 0), 0))
        self._usual |= {"plane": self._plane.value, "time": 0, "first": 0, "last": min(1000, self._last.high)}
        super().set_to({**state, "file": file})

    def renew(self, state: Mapping[str, Any]) -> None:
        """Show the frame, the plane and the limit that the widgets select, and the law that is fitted."""
        self._frame = min(self._time.value, self._end)
        self._show_fit()
        self._look()

    def film(self) -> Film:
        """Return a `Film` of the tokens on the plane and of the signals."""
        fitted = self._fitted if self._rollout.active else None
        limit = self._run.limit(**self._rules)
        film = circles_film(self._run, self._seen, self._survivors(), limit, fitted)
        return replace(film, shown=self._frame)

    # -- interaction ---------------------------------------------------------------------------------------

    def _open_first(self, files: Mapping[Path, str]) -> None:
        """Open the first of some files that can be read, and show the error of the first that cannot."""
        errors: list[Exception] = []
        for item in files.items():
            try:
                self._open(*item, 0)
                break
            except (InputError, FileFormatError, OSError) as error:
                errors.append(error)
        if errors:
            self._file.show(self._path or Path())
            self.session.fail(errors[0])

    def _open(self, path: Path, name: str, index: int) -> None:
        """Read the run `index` of a file and show it; if that fails, the run before stays."""
        try:
            run = open_run(path, index, name=name)
        except Exception as error:
            if self._path is not None:
                self._file.show(self._path)
            if isinstance(error, InputError) and str(error).startswith("positions"):  # such as NaN
                raise InputError(f"{name} cannot be shown: {error}") from None
            raise
        self._stored = Trajectory.open(path)
        self._run, self._path, self._runs = run, path, self._stored.runs
        self._end, self._frame, self._fitted = len(run.steps) - 1, 0, None
        self._watch()
        self._seen = run.seen(run.planes()[0])
        with self.filling():
            # The plane first, because later changes update the status, which depends on it.
            self._plane.update(options=run.planes(), value=run.planes()[0])
            self._index.update(high=self._runs - 1, value=index, visible=self._runs > 1)
            self._limit_window()
            self._time.update(value=self._frame, end=max(self._end, 1))
        self._show_signals()
        self._show_fit()
        self._look()
        self.session.say(
            f"{name} is long: one of every {run.every} frames is shown." if run.every > 1 else ""
        )
        self.session.hold(False)  # play that waited for the last file continues

    def _reopen(self, index: int) -> None:
        """Read the run `index` of the open file."""
        assert self._path is not None
        with named(self._path, self._run.name):
            self._open(self._path, self._run.name, index)

    # -- a run that is being recorded ----------------------------------------------------------------------

    def start(self) -> None:
        """Follow the file again if it is incomplete."""
        self._watch()

    def stop(self) -> None:
        """Stop following the file."""
        self._watch(leave=True)

    def _watch(self, *, leave: bool = False) -> None:
        """Follow the file if it is incomplete, and play from its newest frame; `leave` ends this."""
        document = self.session.document
        if self._watching is not None:
            document.remove_periodic_callback(self._watching)
            self._watching = None
        if not leave and not self._stored.complete:
            react = self.session.reaction(self._follow)
            self._watching = document.add_periodic_callback(react, FOLLOW_MILLISECONDS)
            self._frame, self.session.bridge.playing = self._end, 1

    def _follow(self) -> None:
        """Let a worker read the run again if frames have been recorded since the last call."""
        if self._reading:
            return
        stored = self._stored
        try:
            if not stored.refresh() and not stored.complete:
                self.session.bridge.playing &= self._recorded
                return
        except (FileFormatError, OSError) as error:
            self._watch(leave=True)  # show the error only once; what was read stays on the page
            raise FileFormatError(f"{self._run.name} is no longer followed: {sentence(error)}") from None
        self._reading = True
        place = Path(getattr(stored, "path", self._path or ""))  # another path once the file is complete
        name = self._run.name if place == self._path else self._run.name.removesuffix(".partial")
        work = partial(read_again, place, self._run.index, name)
        self.session.later(work, then=lambda found: self._grow(stored, found))

    @property
    def _recorded(self) -> bool:
        """Whether a process still records the file."""
        return self._path is not None and claimed(self._path)

    def _grow(self, stored: Trajectory, found: CircleRun | Exception) -> None:
        """Show a run that has grown, at its new end if play was at the old one; raise an error of reading."""
        self._reading = False
        if stored is not self._stored:
            return
        if stored.complete:
            self._watch(leave=True)
            self._path = self._file.complete(self._path or Path())
        if isinstance(found, Exception):
            raise found
        plane, at_end = self._plane.value, self._frame == self._end and self.session.playing
        end = len(found.steps) - 1
        self._frame = end if at_end else min(self._frame, end)
        self._run, self._end = found, end
        names = found.planes()
        plane = plane if plane in names else names[0]
        self._seen = found.seen(plane)
        with self.filling():
            self._plane.update(options=names, value=plane)
            self._time.update(end=max(self._end, 1))
            self._limit_window()
        self._look()
        if self.finished:
            self.session.bridge.playing = 0
        self.session.hold(False)  # play continues with the new frames

    def _limit_window(self) -> None:
        """Limit the widgets for the steps of the fit to the steps of the run."""
        for field in (self._first, self._last):
            field.high = int(self._run.signals[0][-1])
            field.value = min(field.value, field.high)

    def _look(self) -> None:
        """Show tokens and signals for the plane that the user has chosen."""
        self._seen = self._run.seen(self._plane.value)
        self._tokens.begin(self._seen.points[self._frame], self._seen.order)
        self._show_signals()
        self.show()

    def _change_rule(self, rule: str) -> None:
        self._limit.value = 2.0 if rule == FACTOR else 10.0
        self._change_limit()

    def _change_limit(self) -> None:
        self._show_signals()
        self._show_fit()

    @property
    def _rules(self) -> dict[str, float]:
        return {"factor" if self._rule.value == FACTOR else "threshold": self._limit.value}

    @property
    def _step(self) -> int:
        return int(self._run.steps[self._frame])

    @property
    def _frequency(self) -> int | None:
        """Frequency of the chosen plane; None if it is not the plane of a frequency."""
        kind, _, number = self._plane.value.partition(" ")
        return int(number) if kind == "frequency" else None

    def _survivors(self) -> list[int]:
        return self._run.survivors(**self._rules)

    def _show_signals(self) -> None:
        limit = self._run.limit(**self._rules)
        self._signals.show(self._run, self._survivors(), limit, self._frequency)

    # -- the law -------------------------------------------------------------------------------------------

    def _start_fit(self) -> None:
        """Fit the law in a worker, while the page stays responsive."""
        self.session.say("Fitting …")
        run, recipe = self._run, self._recipe.value
        work = partial(run.fit, recipe, first=self._first.value, last=self._last.value)
        self.session.later(work, then=lambda fitted: self._deliver(run, fitted))

    def _deliver(self, run: CircleRun, fitted: Fitted) -> None:
        if run is self._run:
            self._fitted = fitted
            self._show_fit()
            self.session.say("; ".join(fitted.notes))

    def _show_fit(self) -> None:
        self._show_rollout()
        if self._fitted is not None:
            if self._coefficients is None:  # the first page does without it
                self._coefficients = CoefficientPlot()
                self._below.append(theme.card(self._coefficients.figure))
            self._coefficients.show(self._fitted, self._survivors())
        self._bottom.children = self._below[: 1 if self._fitted is None else 2]
        self._scores.text = score_text(self._fitted)

    def _show_rollout(self) -> None:
        self._signals.show_rollout(self._fitted if self._rollout.active else None)
