"""View 4: circles of a trajectory file, their survival, and their law of motion (Ding et al.)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.models import Button, CustomJS

from grokphys.explorer import theme
from grokphys.explorer.films import Film
from grokphys.explorer.panels import Matrix, Panel
from grokphys.explorer.runs.circles import RECIPES, CircleRun, Fitted, frequency_of, open_run
from grokphys.explorer.session import Session
from grokphys.explorer.view import FrameView, choice, number, slider, switch
from grokphys.options import sentence
from grokphys.report.circles import r2
from physics.errors import FileFormatError, InputError
from physics.examples import example_path
from physics.trajectory import Trajectory

FOLLOW_MILLISECONDS = 1000
FACTOR, THRESHOLD = "a multiple of the mean signal", "an absolute signal"
SLOWEST, SHORTEST = 0.1, 10.0
"""Seconds that play shows each of a few frames, and that it takes at least for more than 100 frames."""
MOST = 10**9
LAW = "Linear ODE, by frequencies: red helps (+), blue hinders (−)"
UNFITTED = (
    "No law has been fitted yet. All signals together are taken to obey "
    "x(n+1) − x(n) = A x(n) + b, or dx/dt = A x + b where their steps are uneven."
)


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a file and its circles; "time" is the number of the frame."""

    file: str = choice("file", [""], heading=("File", ()))
    run: int = number("run", 0, 0, MOST)
    plane: str = choice("plane", ["-"], role="look", heading=("Display", ("plane", "survivors", "limit")))
    rule: str = choice("survival limit given as", [FACTOR, THRESHOLD], role="look")
    limit: float = number("limit", 2.0, 0.001, 1e6, mode="float", step=0.5, role="look")
    recipe: str = choice(
        "fit", list(RECIPES), role="look", heading=("Linear ODE", ("linear ODE", "rollout R²"))
    )
    first: int = number("from step", 0, 0, MOST, role="look")
    last: int = number("to step", 1000, 0, MOST, role="look")
    rollout: bool = switch("show the rollout", True, role="look")
    time: int = slider("frame", 0, 0, 1, role="look")


class CirclesView(FrameView):
    """The view of a run's signals and survivors, its tokens on a plane over time, and a fitted linear law."""

    slug, name = "circles", "Circles"
    Parameters = Parameters
    run: CircleRun
    rows = ({"tokens": 400, "signals": 436}, {"scores": 0, "coefficients": 440})
    reads_files = True
    terms = ("signal", "survivors", "limit", "plane", "linear ODE", "rollout R²", "step")
    invitation = "Watch which circles of this run grow, and which die out."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._real = str(example_path("ding"))
        fit = theme.control(Button, "Fit the linear ODE")
        fit.on_click(session.reaction(lambda _event: self._start_fit()))
        upload = theme.control(Button, "upload a file …")
        upload.js_on_event("button_click", CustomJS(code="window.grokphys.upload()"))
        self._buttons = {"file": [upload], "last": [fit]}
        self._scores = theme.heading("")
        self._cards["scores"] = theme.card(self._scores)
        self._grids[1].children = [self._cards["scores"]]
        self._left: Trajectory | None = None
        react = session.reaction(self._follow)
        session.document.add_periodic_callback(react, FOLLOW_MILLISECONDS)
        self._fitted: Fitted | None = None
        self._open_first()

    def beside(self, name: str) -> list[Any]:
        """Return the button that uploads a file, and the one that fits the law."""
        return self._buttons.get(name, [])

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
        """Return the run of the file that the widgets choose; errors call it by its name for the user."""
        path = self.values.file
        name = self.session.files.get(path, path)
        try:
            return open_run(finished(path), self.values.run, name=name)
        except InputError as error:
            words = str(error).replace(path, name)
            raise InputError(words if name in words else f"{name} cannot be shown: {words}") from None
        except (FileFormatError, OSError) as error:
            raise FileFormatError(sentence(error).replace(path, name)) from None

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Read the run of a file that the widgets choose, and show its first frame on its strongest plane."""
        if state is None or self.run is None:
            self.run, self._fitted = self.made({}), None
            self._grow()
            run = self.run
            self.frame = 0 if run.stored.complete else self.end
            begin = {"plane": run.planes()[0], "last": min(1000, int(run.signals[0][-1]))}
            self.usual |= begin
            self.set(**begin, first=0, time=self.frame)
            self.widgets["run"].visible = run.stored.runs > 1
            every = f"{run.name} is long: one of every {run.every} frames is shown."
            self.session.say(every if run.every > 1 else "")
        self.look()
        if not self.run.stored.complete:
            self.session.bridge.playing = 1
        self.session.hold(False)  # play that waited for the last file continues

    def _grow(self) -> None:
        """Let the widgets offer the frames, steps and planes of the run."""
        self.end = len(self.run.steps) - 1
        last = int(self.run.signals[0][-1])
        with self.filling():
            self.widgets["run"].update(high=max(self.run.stored.runs - 1, 1))
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
        stored, at_end, file = (
            self.run.stored,
            self.frame == self.end and self.session.playing,
            self.values.file,
        )
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
        return self.run.stored.complete and self.frame == self.end

    @property
    def waits(self) -> bool:
        """Whether the last frame of an incomplete file is shown, which may get more frames."""
        return not self.run.stored.complete and self.frame == self.end

    @property
    def pace(self) -> float:
        """Seconds that play shows each frame at least, so that a short run can be watched."""
        return min(SLOWEST, SHORTEST / (self.end + 1))

    # -- what is shown -------------------------------------------------------------------------------------

    @property
    def _rules(self) -> dict[str, float]:
        return {"factor" if self.values.rule == FACTOR else "threshold": self.values.limit}

    def look(self) -> None:
        """Show the run by the plane, the limit and the law that the widgets choose."""
        fitted = self._fitted if self.values.rollout else None
        self._panels = self.run.panels(self.values.plane, fitted, **self._rules)
        self._scores.text = score_text(self._fitted)
        super().look()

    def panels(self, whole: bool) -> Mapping[str, Panel]:
        """Return the tokens in the frame, the signals, and the coefficients of a law that has been fitted."""
        shown = self._panels(self.frame)
        if self._fitted is not None and whole:
            A = self._fitted.A
            shown["coefficients"] = Matrix(
                title=LAW, values=A, rows="changes", columns="acts", first=1, log=True
            )
        return shown

    def status(self) -> dict[str, str]:
        """Return step, file, survivors, limit and other measures that apply, as texts by their names."""
        run, k, step = self.run, frequency_of(self.values.plane), int(self.run.steps[self.frame])
        steps, values = run.signals
        signal = values[np.abs(steps - step).argmin(), k - 1] if k is not None else 0.0
        return {
            "step": str(step),
            "file": Path(run.name).name,
            **({"run": f"{run.index} of 0–{self.run.stored.runs - 1}"} if self.run.stored.runs > 1 else {}),
            "survivors": " ".join(map(str, run.survivors(**self._rules))) or "none",
            **({} if self.run.stored.complete else {"recording": "not complete"}),
            "limit": f"{run.limit(**self._rules):.4g}",
            **({f"signal {k}": f"{signal:.4g}"} if k is not None else {}),
            **({"rollout R²": f"{self._fitted.scores.in_sample.rollout:.4f}"} if self._fitted else {}),
        }

    def verdict(self) -> str:
        """Return sentences on which circles survive, and on the fate of the chosen one."""
        words = self.run.verdict(self.values.plane, **self._rules)
        if self.finished:
            return words
        begin = "So far" if not self.run.stored.complete else "In the last frame"
        return f"{begin}, {words[0].lower()}{words[1:]}"

    def python(self) -> str:
        """Return Python source that reads the file, projects the tokens, and fits the law that is shown."""
        return self.run.python(self.values.plane, self.frame, self._fitted, **self._rules)

    def trajectory(self) -> Any:
        """Return the run as the view has read it: of a long run every n-th frame."""
        return self.run.trajectory

    def film(self) -> Film:
        """Return a film of the tokens on the plane and of the signals."""
        return replace(self.run.film(self._panels), shown=self.frame)

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

        self.session.later(lambda: run.fit(of.recipe, first=of.first, last=of.last), then=deliver)


def score_text(fitted: Fitted | None) -> str:
    """Return HTML on how well a law describes the signals; None gives an explanation of what a fit does."""
    if fitted is None:
        return f"<h2>Scores</h2><p>{UNFITTED}</p>"
    scores = {"in sample": fitted.scores.in_sample, "forward in time": fitted.scores.forward}
    lines = [
        f"{fitted.recipe}, steps {fitted.steps[0]} to {fitted.steps[-1]} ({fitted.kind}): "
        f"{np.count_nonzero(fitted.A)} of {fitted.A.size} coefficients are not 0.",
        *(
            f"R² {where}: {r2(score.derivative)} of the changes, {r2(score.rollout)} of the rollout."
            for where, score in scores.items()
            if score is not None
        ),
        *fitted.notes,
    ]
    return "<h2>Scores</h2>" + "".join(f"<p>{line}</p>" for line in lines)


def finished(path: str) -> str:
    """Return the path without ".partial" if only that file exists, because a recording is complete."""
    complete = path.removesuffix(".partial")
    return complete if not Path(path).exists() and Path(complete).exists() else path


def labels(files: Mapping[str, str]) -> dict[str, str]:
    """Return a label for each path: the last part of its name, or the whole name if others end alike."""
    short = {path: Path(name).name for path, name in files.items()}
    count = list(short.values()).count
    return {path: label if count(label) == 1 else files[path] for path, label in short.items()}
