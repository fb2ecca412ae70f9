"""Figures of circles: their signals on logarithmic axes, and the coefficients of a linear law of motion."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.models.annotations import Span
from numpy.typing import NDArray

from grokphys.explorer import theme
from grokphys.explorer.runs.circles import CircleRun, Fitted

Array = NDArray[np.float64]
POINTS = 400
"""Largest number of points of a curve that are sent to the page."""


class SignalPlot:
    """A Bokeh `figure` of the Fourier signals ‖Fₖ‖ of all frequencies k against the step.

    Both axes are logarithmic. Survivors are in color and the others gray, and lines mark the survival limit
    and the current step.
    """

    def __init__(self) -> None:
        self.figure = theme.plot(
            "Signals of all circles (gray: lost; yellow: in the plane; dotted: limit)", height=436,
            x_axis_type="log", y_axis_type="log", x_axis_label="step + 1",
            y_axis_label="Fourier signal ‖Fₖ‖",
        )  # fmt: skip
        empty: dict[str, list[Any]] = {"xs": [], "ys": [], "name": []}
        self._dead, self._rollouts = ColumnDataSource(empty), ColumnDataSource(empty)
        self._alive = ColumnDataSource(empty | {"line": [], "dash": [], "label": []})
        self._chosen = ColumnDataSource({"x": [], "y": []})
        halo = {"line_color": "#f1c232", "line_width": 8}
        self.figure.line("x", "y", source=self._chosen, **halo)
        dead = self.figure.multi_line("xs", "ys", source=self._dead, line_color=theme.FAINT, line_width=0.9)
        alive = self.figure.multi_line(
            "xs", "ys", source=self._alive, line_color="line", line_dash="dash", line_width=2,
            legend_field="label",
        )  # fmt: skip
        self.figure.line("x", "y", source=self._chosen, line_color=theme.INK, line_width=1.2)
        law = {"line_color": theme.INK, "line_width": 1.3, "line_dash": [5, 3], "line_alpha": 0.8}
        self.figure.multi_line("xs", "ys", source=self._rollouts, **law)
        theme.quiet_legend(self.figure, columns=6)
        self._reach = ColumnDataSource({"x": [], "y": []})  # a span by itself may lie beyond the axis
        self.figure.scatter("x", "y", source=self._reach, alpha=0)
        self._limit = Span(dimension="width", line_color=theme.WARM, line_dash="dotted", line_width=1.5)
        self._now = Span(dimension="height", line_color=theme.INK, line_width=1)
        self.figure.add_layout(self._limit)
        self.figure.add_layout(self._now)
        self.figure.add_tools(HoverTool(renderers=[dead, alive], tooltips=[("", "@name")]))

    def show(self, run: CircleRun, survivors: Sequence[int], limit: float, chosen: int | None) -> None:
        """Show the signals of a run.

        Parameters
        ----------
        run : CircleRun
            The run.
        survivors : sequence of int
            Frequencies in color, counted from 1.
        limit : float
            Signal above which a circle survives.
        chosen : int or None
            Frequency whose line is highlighted, counted from 1.
        """
        steps, values = run.signals
        kept = _log_evenly(steps)
        x, curves = steps[kept] + 1.0, values[kept].T
        dead = [k for k in range(1, run.frequencies + 1) if k not in survivors]
        count = len(survivors)
        self._dead.data = _lines(x, curves, dead)
        self._alive.data = _lines(x, curves, survivors) | {
            "label": [str(k) for k in survivors],
            "line": [theme.SERIES[n % len(theme.SERIES)] for n in range(count)],
            "dash": [theme.DASHES[n % len(theme.DASHES)] for n in range(count)],
        }
        theme.tick(self.figure.xaxis[0], x)
        theme.tick(self.figure.yaxis[0], np.append(curves, limit))
        line = curves[chosen - 1] if chosen is not None else np.empty(0)
        self._chosen.data = {"x": x[: len(line)], "y": line}
        self._limit.location = limit
        self._reach.data = {"x": [x[0]], "y": [limit]}

    def show_rollout(self, fitted: Fitted | None) -> None:
        """Show the signals that a fitted law predicts from their first frame; None removes these curves."""
        if fitted is None:
            self._rollouts.data = {"xs": [], "ys": [], "name": []}
            return
        kept = _log_evenly(fitted.steps)
        curves = np.where(np.isfinite(fitted.rollout), fitted.rollout, np.nan)[kept].T
        self._rollouts.data = _lines(fitted.steps[kept] + 1.0, curves, range(1, len(curves) + 1))

    def point_at(self, step: int) -> None:
        """Move the vertical line to a step."""
        self._now.location = step + 1


class CoefficientPlot:
    """A Bokeh `figure` of the matrix A of a linear law dx/dt = A x + b of signals x.

    Each pair of frequencies has a cell. The cell is red where the signal of its column makes that of its row
    grow, blue where it makes it shrink, and white where the coefficient is 0.
    """

    def __init__(self) -> None:
        self.figure = theme.plot(
            "Linear ODE: red helps (+), blue hinders (−)", height=440, x_axis_label="frequency that acts",
            y_axis_label="frequency that changes", x_range=(0, 1), y_range=(1, 0),
        )  # fmt: skip
        self.figure.grid.visible = False
        columns = ("of", "on", "value", "fill", "sign", "text")
        self._cells = ColumnDataSource({name: [] for name in columns})
        cells = self.figure.rect(
            "of", "on", width=1, height=1, source=self._cells, fill_color="fill", line_color="#ffffff",
            line_width=0.4,
        )  # fmt: skip
        self._signs = self.figure.text(
            "of", "on", text="sign", source=self._cells, text_align="center", text_baseline="middle",
            text_font_size="9px", text_color=theme.INK,
        )  # fmt: skip
        self._marks = ColumnDataSource({"x": [], "y": [], "marker": []})
        self.figure.scatter("x", "y", marker="marker", source=self._marks, size=7, color=theme.WARM)
        tips = [("", "@text"), ("coefficient", "@value{0.0000e+0}")]
        self.figure.add_tools(HoverTool(renderers=[cells], tooltips=tips))

    def show(self, fitted: Fitted, survivors: Sequence[int]) -> None:
        """Show the coefficients of a law, and mark the surviving frequencies (from 1) on both axes."""
        import matplotlib as mpl  # not needed for the first page

        A, count = fitted.A, len(fitted.A)
        limit = float(np.abs(A).max(initial=0)) or 1.0
        shades = mpl.colormaps["RdBu_r"](
            mpl.colors.SymLogNorm(limit / 100, vmin=-limit, vmax=limit)(A.ravel())
        )
        on, of = np.indices(A.shape).reshape(2, -1) + 1
        values = A.ravel()
        self._cells.data = {
            "of": of,
            "on": on,
            "value": values,
            "fill": [mpl.colors.to_hex(shade) for shade in shades],
            "sign": np.where(values > 0, "+", np.where(values < 0, "−", "")).tolist(),
            "text": [f"{j} on {i}" for i, j in zip(on, of, strict=True)],
        }
        self._signs.glyph.text_font_size = f"{max(5, min(14, round(280 / count)))}px"
        marked, aside = list(survivors), [0] * len(survivors)
        self._marks.data = {
            "x": marked + aside,
            "y": aside + marked,
            "marker": ["inverted_triangle"] * len(marked) + ["triangle"] * len(marked),
        }
        for axis in self.figure.axis:
            axis.ticker = list(range(1, count + 1)) if count <= 12 else [1, *range(5, count + 1, 5)]
        self.figure.x_range.update(start=-0.6, end=count + 0.5)
        self.figure.y_range.update(start=count + 0.5, end=-0.6)


def score_text(fitted: Fitted | None) -> str:
    """Return HTML on how well a law describes the signals; None gives an explanation of what a fit does."""
    if fitted is None:
        return (
            "<h2>Scores</h2><p>No law has been fitted yet. All signals together are taken to obey "
            "x(n+1) − x(n) = A x(n) + b, or dx/dt = A x + b where their steps are uneven.</p>"
        )
    inside, forward = fitted.scores.in_sample, fitted.scores.forward
    kind = "Increment map" if fitted.kind == "increment" else "Generator"
    lines = [
        f"{kind}, {fitted.recipe}, steps {fitted.steps[0]} to {fitted.steps[-1]}: "
        f"{np.count_nonzero(fitted.A)} of {fitted.A.size} coefficients are not 0.",
        f"In sample: R² = {_r2(inside.derivative)} of the changes, {_r2(inside.rollout)} of the rollout.",
    ]
    if forward is not None:
        lines.append(
            f"Forward, fitted to the first half and scored on the second: R² = {_r2(forward.derivative)} of "
            f"the changes, {_r2(forward.rollout)} of the rollout. Below 0, a constant would predict better."
        )
    return "<h2>Scores</h2>" + "".join(f"<p>{line}</p>" for line in [*lines, *fitted.notes])


def _r2(value: float) -> str:
    if not np.isfinite(value):
        return "undefined" if np.isnan(value) else "overflow"
    return f"{value:.4f}" if value > -10 else f"{value:,.0f}"


def _lines(x: Any, curves: Any, frequencies: Sequence[int]) -> dict[str, list[Any]]:
    """Return the columns of Bokeh's multi_line, with one line for each of the `frequencies` (from 1)."""
    return {
        "xs": [x] * len(frequencies),
        "ys": [curves[k - 1] for k in frequencies],
        "name": [f"k = {k}" for k in frequencies],
    }


def _log_evenly(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of at most `POINTS` steps, about evenly spaced in log(step + 1), with both ends."""
    if len(steps) <= POINTS:
        return np.arange(len(steps))
    wanted = np.geomspace(steps[0] + 1, steps[-1] + 1, POINTS) - 1
    return np.unique(np.clip(np.searchsorted(steps, wanted - 1e-6), 0, len(steps) - 1))
