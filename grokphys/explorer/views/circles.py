"""View 4: circles of a trajectory file, their survival, and their law of motion (Ding et al.)."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.models import Button, ColumnDataSource

from grokphys.explorer import theme
from grokphys.explorer.curves import FAINT
from grokphys.explorer.films import Film, circles_film
from grokphys.explorer.plots import Curves, HeatMap, TokenPlot
from grokphys.explorer.runs.circles import RECIPES, CircleRun, Fitted, open_run
from grokphys.explorer.session import Session
from grokphys.explorer.view import FrameView, choice, number, slider, switch
from grokphys.explorer.views.files import FilePanel, finished, labels, opened
from grokphys.options import sentence
from physics.errors import FileFormatError, InputError
from physics.examples import example_path
from physics.trajectory import Trajectory

FOLLOW_MILLISECONDS = 1000
FACTOR, THRESHOLD = "a multiple of the mean signal", "an absolute signal"
SLOWEST, SHORTEST = 0.1, 10.0
"""Seconds that play shows each of a few frames, and that it takes at least for more than 100 frames."""
MOST = 10**9
LAW = "Linear ODE, by frequencies: red helps (+), blue hinders (−)"


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a file and its circles; "time" is the number of the frame."""

    file: str = choice("file", [""])
    run: int = number("run", 0, 0, MOST)
    plane: str = choice("plane", ["-"], role="look")
    rule: str = choice("survival limit given as", [FACTOR, THRESHOLD], role="look")
    limit: float = number("limit", 2.0, 0.001, 1e6, mode="float", step=0.5, role="look")
    recipe: str = choice("fit", list(RECIPES), role="look")
    first: int = number("from step", 0, 0, MOST, role="look")
    last: int = number("to step", 1000, 0, MOST, role="look")
    rollout: bool = switch("show the rollout", True, role="look")
    time: int = slider("frame", 0, 0, 1, role="look")


class CirclesView(FrameView):
    """The view of a run's signals and survivors, its tokens on a plane over time, and a fitted linear law."""

    slug, name = "circles", "Circles"
    Parameters = Parameters
    reads_files = True
    terms = ("signal", "survivors", "limit", "plane", "linear ODE", "rollout R²", "step")
    invitation = "Watch which circles of this run grow, and which die out."

    @classmethod
    def prepare(cls) -> None:
        """Import what reads circles."""
        for module in ("signals", "geometry"):
            importlib.import_module(f"analysis.circles.{module}")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._real = str(example_path("ding"))
        self._fit = theme.control(Button, "Fit the linear ODE")
        self._fit.on_click(session.reaction(lambda _event: self._start_fit()))
        self._files = FilePanel(self, "file")
        self._tokens = TokenPlot("Tokens, projected on a plane", height=400)
        title = "Signals of all circles (gray: lost; yellow: in the plane; dashed: limit)"
        self._signals = Curves(
            title, height=436, columns=6, dots=False, x_axis_type="log", y_axis_type="log",
            x_axis_label="step + 1", y_axis_label="Fourier signal ‖Fₖ‖",
        )  # fmt: skip
        self._coefficients = HeatMap(LAW, 440, "changes", "acts", first=1, log=True)
        self._scores = theme.heading("")
        self._law = theme.card(self._coefficients.figure)
        self._ring = ColumnDataSource({"x": [], "y": []})
        ring = self._tokens.figure.line("x", "y", source=self._ring, line_color=FAINT, line_width=1)
        ring.level = "underlay"
        self.figures = {"tokens": self._tokens.figure}
        self._left: Trajectory | None = None
        react = session.reaction(self._follow)
        session.document.add_periodic_callback(react, FOLLOW_MILLISECONDS)
        self._fitted: Fitted | None = None
        self._open_first()

    def panel(self) -> Any:
        """Return controls, tokens on a plane, signals, coefficients and scores."""
        of = self.widgets
        controls = [
            theme.heading("File"),
            *(self._files.panel, of["run"]),
            theme.heading("Display", terms=("plane", "survivors", "limit")),
            *(of["plane"], of["rule"], of["limit"]),
            theme.heading("Linear ODE", terms=("linear ODE", "rollout R²")),
            *(of["recipe"], of["first"], of["last"], self._fit, of["rollout"]),
        ]
        tokens = theme.card(self._tokens.figure, of["time"])
        below = theme.grid(theme.card(self._scores), self._law)
        return theme.stage(controls, theme.grid(tokens, theme.card(self._signals.figure)), below)

    # -- the run -------------------------------------------------------------------------------------------

    def _open_first(self) -> None:
        """Open the first of the page's files that can be read, and show the first error."""
        errors: list[Exception] = []
        self.offer()
        for path in [*self.session.files, self._real]:
            try:
                self.set(file=path)
                self.restart()
                break
            except (InputError, FileFormatError, OSError) as error:
                errors.append(error)
        self.usual["file"] = self._real  # the presets are about this file
        if errors:
            self.session.fail(errors[0])

    def offer(self) -> None:
        """Offer the files of the page, and then the one that comes with the package."""
        self.offer_options("file", labels({**self.session.files, self._real: self._real}))

    def fill(self, state: Mapping[str, Any]) -> None:
        """Set all widgets to a state, after opening its file, which decides what others allow."""
        file = theme.checked(self.widgets["file"], state.get("file", self.usual["file"]))
        run = theme.checked(self.widgets["run"], state.get("run", 0))
        if self.run is None or (file, run) != (self.values.file, self.run.index):
            self.set(file=file, run=run)
            self.restart()
        super().fill({**state, "file": file})

    def made(self, state: Mapping[str, Any]) -> CircleRun:
        """Return the run of the file that the widgets choose."""
        name, self._stored = opened(self.session, self.values.file)
        try:
            return open_run(finished(self.values.file), self.values.run, name=name)
        except InputError as error:
            words = str(error).replace(self.values.file, name)
            raise InputError(words if name in words else f"{name} cannot be shown: {words}") from None

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Read the run of a file that the widgets choose, and show its first frame on its strongest plane."""
        before = self.run
        if state is None or before is None:
            self.run = self.made({})
            run = self.run
            self._fitted = None
            self._grow()
            last = int(run.signals[0][-1])
            self.frame = self.end if not self._stored.complete else 0
            self.usual |= {"plane": run.planes()[0], "last": min(1000, last), "time": 0, "first": 0, "run": 0}
            self.set(plane=run.planes()[0], first=0, last=min(1000, last), time=self.frame)
            self.widgets["run"].visible = self._stored.runs > 1
            every = f"{run.name} is long: one of every {run.every} frames is shown."
            self.session.say(every if run.every > 1 else "")
        self.look()
        if not self._stored.complete:
            self.session.bridge.playing = 1
        self.session.hold(False)  # play that waited for the last file continues

    def _grow(self) -> None:
        """Let the widgets offer the frames, steps and planes of the run."""
        self.end = len(self.run.steps) - 1
        last = int(self.run.signals[0][-1])
        with self.filling():
            self.widgets["run"].update(high=max(self._stored.runs - 1, 1))
            self.widgets["time"].update(end=max(self.end, 1))
            for name in ("first", "last"):
                self.widgets[name].update(high=last, value=min(self.widgets[name].value, last))
            self.offer_options("plane", self.run.planes())

    def take(self, path: str) -> bool:
        """Show an uploaded file."""
        self.offer()
        self.widgets["file"].value = path
        return True

    # -- a run that is being recorded ----------------------------------------------------------------------

    def _follow(self) -> None:
        """Read the run again if frames have been recorded since the last call."""
        stored, at_end, file = self._stored, self.frame == self.end and self.session.playing, self.values.file
        if stored is self._left or stored.complete or self.session.view is not self:
            return
        try:
            if not stored.refresh() and not stored.complete:
                return
            self.session.files = {finished(p): finished(n) for p, n in self.session.files.items()}
            self.offer()
            self.set(file=finished(file))
            self.run = self.made({})
        except (InputError, FileFormatError, OSError) as error:
            self._left = stored  # show the error only once; what was read stays on the page
            raise FileFormatError(f"{self.run.name} is no longer followed: {sentence(error)}") from None
        self._grow()
        self.set(time=self.end if at_end else self.frame)
        self.look()
        if self.finished:
            self.session.bridge.playing = 0
        self.session.hold(False)  # play continues with the new frames

    @property
    def finished(self) -> bool:
        """Whether the last frame of a complete file is shown."""
        return self._stored.complete and self.frame == self.end

    @property
    def waits(self) -> bool:
        """Whether the last frame of an incomplete file is shown, which may get more frames."""
        return not self._stored.complete and self.frame == self.end

    @property
    def pace(self) -> float:
        """Seconds that play shows each frame at least, so that a short run can be watched."""
        return min(SLOWEST, SHORTEST / (self.end + 1))

    # -- what is shown -------------------------------------------------------------------------------------

    @property
    def _rules(self) -> dict[str, float]:
        return {"factor" if self.values.rule == FACTOR else "threshold": self.values.limit}

    @property
    def _frequency(self) -> int | None:
        """Frequency of the chosen plane; None if it is not the plane of a frequency."""
        kind, _, number = self.values.plane.partition(" ")
        return int(number) if kind == "frequency" else None

    def look(self) -> None:
        """Show the run by the plane, the limit and the law that the widgets choose."""
        values, run = self.values, self.run
        self.frame = values.time
        self._seen = run.seen(values.plane)
        self._tokens.begin(self._seen.points[self.frame], self._seen.order)
        limit, survivors = run.limit(**self._rules), run.survivors(**self._rules)
        fitted = self._fitted if values.rollout else None
        self._signals.mark(limit, float(run.signals[0][0] + 1))
        self._signals.show(run.curves(survivors, self._frequency, fitted))
        self._law.visible = self._fitted is not None
        if self._fitted is not None:
            self._coefficients.show(self._fitted.A)
        self._scores.text = score_text(self._fitted)
        self.show()

    def show(self, *, whole: bool = True) -> None:
        """Show the frame: move the tokens, and the line at the current step."""
        paths, frame = self._seen.points, self.frame
        self._tokens.follow(paths, frame)
        ring = paths[frame, self._seen.cycle] if self._seen.cycle is not None else np.empty((0, 2))
        self._ring.data = {"x": ring[:, 0], "y": ring[:, 1]}
        self._signals.point_at(int(self.run.steps[frame]) + 1)
        if whole:
            self.set(time=frame)

    def status(self) -> dict[str, str]:
        """Return step, file, survivors, limit and other measures that apply, as texts by their names."""
        run, k, step = self.run, self._frequency, int(self.run.steps[self.frame])
        steps, values = run.signals
        signal = values[np.abs(steps - step).argmin(), k - 1] if k is not None else 0.0
        return {
            "step": str(step),
            "file": Path(run.name).name,
            **({"run": f"{run.index} of 0–{self._stored.runs - 1}"} if self._stored.runs > 1 else {}),
            "survivors": " ".join(map(str, run.survivors(**self._rules))) or "none",
            **({} if self._stored.complete else {"recording": "not complete"}),
            "limit": f"{run.limit(**self._rules):.4g}",
            **({f"signal {k}": f"{signal:.4g}"} if k is not None else {}),
            **({"rollout R²": f"{self._fitted.scores.in_sample.rollout:.4f}"} if self._fitted else {}),
        }

    def verdict(self) -> str:
        """Return sentences on which circles survive, and on the fate of the chosen one."""
        rules = self._rules
        words: str = self.run.verdict(self.run.survivors(**rules), self.run.limit(**rules), self._frequency)
        if self.finished:
            return words
        begin = "So far" if not self._stored.complete else "In the last frame"
        return f"{begin}, {words[0].lower()}{words[1:]}"

    def python(self) -> str:
        """Return Python source that reads the file, projects the tokens, and fits the law that is shown."""
        code: str = self.run.python(self.values.plane, self.frame, self._fitted, **self._rules)
        return code

    def trajectory(self) -> Any:
        """Return the run as the view has read it: of a long run every n-th frame."""
        return self.run.trajectory

    def film(self) -> Film:
        """Return a `Film` of the tokens on the plane and of the signals."""
        fitted, rules = self._fitted if self.values.rollout else None, self._rules
        film = circles_film(
            self.run, self._seen, self.run.survivors(**rules), self.run.limit(**rules), fitted
        )
        return replace(film, shown=self.frame)

    # -- the law -------------------------------------------------------------------------------------------

    def _start_fit(self) -> None:
        """Fit the law in a worker, while the page stays responsive."""
        self.session.say("Fitting …")
        run, of = self.run, self.values

        def deliver(fitted: Fitted) -> None:
            if run is self.run:
                self._fitted = fitted
                self.look()
                self.session.say("; ".join(fitted.notes))

        work = run.fit
        self.session.later(lambda: work(of.recipe, first=of.first, last=of.last), then=deliver)


def score_text(fitted: Fitted | None) -> str:
    """Return HTML on how well a law describes the signals; None gives an explanation of what a fit does."""
    if fitted is None:
        lines = [
            "No law has been fitted yet. All signals together are taken to obey "
            "x(n+1) − x(n) = A x(n) + b, or dx/dt = A x + b where their steps are uneven."
        ]
    else:
        scores = {"in sample": fitted.scores.in_sample, "forward in time": fitted.scores.forward}
        lines = [
            f"{fitted.recipe}, steps {fitted.steps[0]} to {fitted.steps[-1]} ({fitted.kind}): "
            f"{np.count_nonzero(fitted.A)} of {fitted.A.size} coefficients are not 0.",
            *(
                f"R² {where}: {_r2(score.derivative)} of the changes, {_r2(score.rollout)} of the rollout."
                for where, score in scores.items()
                if score is not None
            ),
            *fitted.notes,
        ]
    return "<h2>Scores</h2>" + "".join(f"<p>{line}</p>" for line in lines)


def _r2(value: float) -> str:
    if not np.isfinite(value):
        return "undefined" if np.isnan(value) else "overflow"
    return f"{value:.4f}" if value > -10 else f"{value:,.0f}"
