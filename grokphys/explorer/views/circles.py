"""View 4: circles of a trajectory file, their survival, and their law of motion (Ding et al.)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.models import Button, CustomJS

import physics
from grokphys.explorer.films import Film, Matrix, Panel
from grokphys.explorer.runs.circles import RECIPES, CircleRun, Fitted, frequency_of, octave, open_run
from grokphys.explorer.runs.common import arguments, program
from grokphys.explorer.session import EXPECTED, Session
from grokphys.explorer.view import FrameView, card, checked, choice, control, heading, number, slider
from grokphys.options import sentence
from grokphys.report.circles import r2
from physics.examples import example_path

SLOWEST, SHORTEST = 0.1, 10.0
"""Seconds that play shows each of a few frames, and that it takes at least for more than 100 frames."""
MOST = 10**9
LAW = "Linear ODE, by frequencies: red helps (+), blue hinders (−)"
UNFITTED = "A fit takes all signals to obey x(n+1) − x(n) = A x(n) + b; at uneven steps, dx/dt = A x + b."


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a file and its circles; "time" is the number of the frame."""

    file: str = choice("file", [""], heading=("File", ()))
    run: int = number("run", 0, 0, MOST)
    plane: str = choice("plane", ["-"], role="look", heading=("Display", ("plane", "survivors", "limit")))
    factor: float = number("limit / mean signal", 2.0, 0.01, 100.0, mode="float", step=0.5, role="look")
    recipe: str = choice(
        "fit", list(RECIPES), role="look", heading=("Linear ODE", ("linear ODE", "rollout R²"))
    )
    first: int = number("from step", 0, 0, MOST, role="look")
    last: int = number("to step", 1000, 0, MOST, role="look")
    time: int = slider("frame", 0, 0, 1, role="look")


class CirclesView(FrameView):
    """The view of a run's signals and survivors, its tokens on a plane over time, and a fitted linear law."""

    slug, name = "circles", "Circles"
    Parameters = Parameters
    run: CircleRun
    rows = ({"tokens": 400, "signals": 436}, {"scores": 0, "coefficients": 440})
    reads_files = True
    invitation = "Watch which circles of this run grow, and which die out."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._real = str(example_path("ding"))
        upload = control(Button, "upload a file …")
        upload.js_on_event("button_click", CustomJS(code="window.grokphys.upload()"))
        self._buttons = {"file": [upload], "last": [self.button("Fit the linear ODE", self._start_fit)]}
        self._scores = heading("")
        self._cards["scores"] = card(self._scores)
        self._grids[1].children = [self._cards["scores"]]
        self._left: physics.Trajectory | None = None
        session.document.add_periodic_callback(session.reaction(self._follow), 1000)
        self._fitted: Fitted | None = None

    def beside(self, name: str) -> list[Any]:
        """Return the button that uploads a file, and the one that fits the law."""
        return self._buttons.get(name, [])

    # -- the run -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the first of the page's files that can be read, and show the first error."""
        errors: list[Exception] = []
        self.offer()
        for path in [*self.session.files, self._real]:
            try:
                self.set(file=path)
                self.restart()
                break
            except EXPECTED as error:
                errors.append(error)
        self.usual["file"] = self._real  # the presets are about this file
        if errors:
            self.session.fail(errors[0])

    def offer(self) -> None:
        """Offer the files of the page, and then the one that comes with the package, by names that differ."""
        files = {**self.session.files, self._real: self._real}
        count = [Path(name).name for name in files.values()].count
        labels = {path: Path(name).name for path, name in files.items()}
        self.offer_options("file", {p: n if count(n) == 1 else files[p] for p, n in labels.items()})

    def fill(self, state: Mapping[str, Any]) -> None:
        """Set all widgets to a state, after opening its file, which decides what others allow."""
        file = checked(self.widgets["file"], state.get("file", self.usual["file"]))
        run = checked(self.widgets["run"], state.get("run", 0))
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
        except EXPECTED as error:
            words = sentence(error).replace(path, name)
            raise physics.InputError(words if name in words else f"{name} cannot be shown: {words}") from None

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

    def take(self, path: str) -> None:
        """Show an uploaded file."""
        self.offer()
        self.widgets["file"].value = path

    # -- a run that is being recorded ----------------------------------------------------------------------

    def _follow(self) -> None:
        """Read the run again if frames have been recorded since the last call."""
        stored, at_end = self.run.stored, self.frame == self.end and self.session.bridge.playing
        if stored is self._left or stored.complete or self.session.view is not self:
            return
        self._left = stored  # an error in what follows is shown only once, and what was read stays
        if stored.refresh() or stored.complete:
            self.session.files = {finished(p): finished(n) for p, n in self.session.files.items()}
            self.offer()
            self.set(file=finished(self.values.file))
            self.run = self.made({})
            self._grow()
            self.set(time=self.end if at_end else self.frame)
            self.look()
            if self.finished:
                self.session.bridge.playing = 0
            self.session.hold(False)  # play continues with the new frames
        self._left = None

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

    def look(self) -> None:
        """Show the run by the plane, the limit and the law that the widgets choose."""
        self._panels = self.run.panels(self.values.plane, self._fitted, self.values.factor)
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
            "survivors": " ".join(map(str, run.survivors(self.values.factor))) or "none",
            **({} if self.run.stored.complete else {"recording": "not complete"}),
            "limit": f"{run.limit(self.values.factor):.4g}",
            **({f"signal {k}": f"{signal:.4g}"} if k is not None else {}),
            **({"rollout R²": f"{self._fitted.scores.in_sample.rollout:.4f}"} if self._fitted else {}),
        }

    def verdict(self) -> str:
        """Return sentences on which circles survive, and on the fate of the one on the plane."""
        run, chosen, factor = self.run, frequency_of(self.values.plane), self.values.factor
        if run.blown_up:
            largest = f"its largest coordinate is {np.abs(run.embeddings[-1]).max():.1e} in the last frame"
            return f"This run has blown up: {largest}. Repeat it with a smaller step size or learning rate."
        when = "" if self.finished else "In the last frame, " if run.stored.complete else "So far, "
        survivors, limit = run.survivors(factor), run.limit(factor)
        words = (
            f"{when}{len(survivors)} of {run.frequencies} circles survive: {', '.join(map(str, survivors))}."
        )
        if not survivors:
            none = f"no circle reaches the survival limit of {limit:.3g}."
            words = when + none if when else none.capitalize()
        if chosen is None or chosen in survivors:
            return words
        octaves = [k for k in survivors if chosen in octave(k, run.tokens)]
        near = f"; its octave {octaves[0]} survives" if octaves else ""
        steps, values = run.signals
        above = np.flatnonzero(values[:, chosen - 1] >= limit)
        if not len(above):
            return f"{words} Circle {chosen} never reaches the limit{near}."
        after = steps[above[-1] + 1 :]
        return f"{words} Circle {chosen} is lost{f' by step {after[0]}' if len(after) else ''}{near}."

    def python(self) -> str:
        """Return Python source that reads the embedding `E` of the frame, and its `points` on the plane.

        The source gives the same bits. It also prints which circles survive, and the rollout R² of the law
        that is shown, if there is one.
        """
        run, fitted = self.run, self._fitted
        kind, numbers = self.values.plane.split(" ", 1)
        return program(
            "circles",
            name=repr(run.name),
            index=run.index,
            every=run.every,
            dim=run.trajectory.dim,
            kind=kind,
            numbers=numbers,
            chosen=[int(number) - 1 for number in numbers.split(", ")],
            frame=self.frame,
            step=run.steps[self.frame],
            factor=self.values.factor,
            fitted=fitted,
            recipe=arguments(**RECIPES[fitted.recipe]) if fitted else "",
        )

    def trajectory(self) -> Any:
        """Return the run as the view has read it: of a long run every n-th frame."""
        return self.run.trajectory

    def film(self) -> Film:
        """Return a film of the tokens on the plane and of the signals."""
        return self.run.film(self._panels)

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
