"""Figures of the effective theory: the grid of pairs, the parallelograms, and curves against time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.events import Tap
from bokeh.models import BasicTicker, ColumnDataSource, CustomJS, HoverTool
from bokeh.models.annotations import Span
from numpy.typing import NDArray

from grokphys.explorer import theme
from grokphys.explorer.plots.plane import TokenPlot
from grokphys.explorer.runs.training_set import TrainingSet

Array = NDArray[np.float64]
DARK = 'if (matchMedia("(prefers-color-scheme: dark)").matches) glyph.text_color = {field: "dark"}'
"""Script that gives texts the colors that can be read in dark mode."""
MARGIN = 0.7
"""Distance from the centers of the outermost cells of the grid to the edges of the figure, in cells."""


class PairGrid:
    """A figure with a cell for each pair (i, j) of symbols with i ≤ j.

    A pair is filled if it is trained, framed if its answer follows from the trained ones, and otherwise
    empty.

    Parameters
    ----------
    clicked : callable
        Function that is called with i and j where the user clicks, which may be no pair of the grid.

    Attributes
    ----------
    figure : bokeh figure
        The figure.
    """

    def __init__(self, clicked: Callable[[int, int], None]) -> None:
        self.figure = theme.plot(
            "Training set (click to add or remove pairs)", height=436, x_axis_label="i", y_axis_label="j",
            x_range=(0, 1), y_range=(0, 1),
        )  # fmt: skip
        self.figure.grid.visible = False
        for axis in self.figure.axis:
            axis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=11)
        self._lines = ColumnDataSource({"xs": [], "ys": []})
        self.figure.multi_line("xs", "ys", source=self._lines, line_color=theme.FAINT, line_width=3)
        columns = ("i", "j", "fill", "line", "width", "ink", "dark", "class", "text", "state")
        self._cells = ColumnDataSource({name: [] for name in columns})
        cells = self.figure.rect(
            "i", "j", width=0.86, height=0.86, source=self._cells, border_radius=3,
            fill_color="fill", line_color="line", line_width="width",
        )  # fmt: skip
        self._text = self.figure.text(
            "i", "j", text="text", source=self._cells, text_color="ink", text_align="center",
            text_baseline="middle", text_font=value(theme.FONT), text_font_size="10px",
        )  # fmt: skip
        self.figure.js_on_change("inner_width", CustomJS(args={"glyph": self._text.glyph}, code=DARK))
        tips = [("pair", "@i + @j"), ("class", "@class"), ("", "@state")]
        self.figure.add_tools(HoverTool(renderers=[cells], tooltips=tips))
        self._cursor = ColumnDataSource({"i": [], "j": []})
        self.figure.rect(
            "i",
            "j",
            width=1,
            height=1,
            source=self._cursor,
            fill_alpha=0,
            line_color=theme.WARM,
            line_width=3,
        )
        self.figure.on_event(Tap, lambda event: self._tapped(event, clicked))

    def show(self, chosen: TrainingSet) -> None:
        """Show the pairs of a training set."""
        operation, tokens = chosen.operation, chosen.operation.tokens
        i, j = operation.samples.T
        names = theme.class_colors(chosen.classes)
        fills, inks = np.array(names), np.array(theme.text_colors(names))
        night = np.array(theme.text_colors(names, dark=True))
        edges = np.array([theme.darker(name) for name in names])
        label, trained, follows = operation.label, chosen.mask, chosen.follows
        state = np.where(trained, "trained", np.where(follows, "follows from the trained ones", "open"))
        open_ = ~trained & ~follows
        self._cells.data = {
            "i": i,
            "j": j,
            "fill": np.where(trained, fills[label], "#ffffff").tolist(),
            "line": np.where(open_, theme.FAINT, edges[label]).tolist(),
            "width": np.where(follows, 2.5, 1.0),
            "ink": np.where(trained, inks[label], edges[label]).tolist(),
            "dark": np.where(trained, night[label], edges[label]).tolist(),
            "class": label,
            "text": np.where(open_, "", label.astype(str)).tolist(),
            "state": state.tolist(),
        }
        lines = [line for line in chosen.diagonals if len(line) > 1]
        self._lines.data = {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]}
        self._text.glyph.text_font_size = f"{max(6, min(13, round(190 / tokens)))}px"
        for side in (self.figure.x_range, self.figure.y_range):
            side.update(start=-MARGIN, end=tokens - 1 + MARGIN)

    def point(self, i: int, j: int) -> None:
        """Frame the cell (i, j), which the keyboard has chosen."""
        self._cursor.data = {"i": [i], "j": [j]}

    def _tapped(self, event: Any, clicked: Callable[[int, int], None]) -> None:
        if event.x is not None and event.y is not None:
            clicked(round(event.x), round(event.y))


class ParallelogramPlot:
    """A square Bokeh `figure` of tokens with the parallelograms of the training set.

    In the plane, parallelograms are quadrilaterals. On a line, each trained pair whose class has another
    trained pair is a half circle, above the line for even classes and below it for odd ones. A parallelogram
    is satisfied if its two half circles have the same center.
    """

    def __init__(self) -> None:
        self._tokens = TokenPlot("Parallelograms in the embedding", height=400)
        self.figure = self._tokens.figure
        self._arcs = ColumnDataSource({"x": [], "radius": [], "begin": [], "end": [], "line": []})
        self._shapes = ColumnDataSource({"xs": [], "ys": [], "line": []})
        arcs = self.figure.arc(
            "x", 0, radius="radius", start_angle="begin", end_angle="end", source=self._arcs,
            line_color="line", line_width=1.4,
        )  # fmt: skip
        shapes = self.figure.patches(
            "xs",
            "ys",
            source=self._shapes,
            fill_color="line",
            fill_alpha=0.06,
            line_color="line",
            line_alpha=0.7,
        )
        for renderer in (arcs, shapes):
            renderer.level = "underlay"

    def begin(self, chosen: TrainingSet, frame: int) -> None:
        """Show another training set: its tokens and parallelograms in one frame of its flow."""
        edges = np.array([theme.darker(color) for color in theme.class_colors(chosen.classes)])
        paths = _points(chosen)
        self._tokens.begin(paths[frame])
        self._tokens.follow(paths, frame)
        label = chosen.operation.label[chosen.linked]
        below = np.where(label % 2, np.pi, 0.0)
        middle, radius = chosen.arcs(frame) if chosen.dim == 1 else np.empty((2, 0))
        shown = slice(None) if chosen.dim == 1 else slice(0)
        self._arcs.data = {
            "x": middle,
            "radius": radius,
            "begin": below[shown],
            "end": below[shown] + np.pi,
            "line": edges[label][shown].tolist(),
        }
        shapes = chosen.dim > 1
        self._shapes.data = {
            **(self._corners(chosen, frame) if shapes else {"xs": [], "ys": []}),
            "line": edges[chosen.parallelogram_classes].tolist() if shapes else [],
        }

    def move(self, chosen: TrainingSet, frame: int) -> None:
        """Show a frame of the training set that `begin` has shown."""
        self._tokens.follow(_points(chosen), frame)
        if chosen.dim == 1 and len(chosen.linked):
            middle, radius = chosen.arcs(frame)
            self._arcs.patch({"x": [(slice(None), middle)], "radius": [(slice(None), radius)]})
        elif chosen.dim > 1:
            self._shapes.data = {**self._corners(chosen, frame), "line": self._shapes.data["line"]}

    def _corners(self, chosen: TrainingSet, frame: int) -> dict[str, list[Array]]:
        corners = chosen.quadrilaterals(frame)
        return {"xs": list(corners[..., 0]), "ys": list(corners[..., 1])}


class FlowCurves:
    """A figure of curves with a vertical line at the current time.

    Parameters
    ----------
    title : str
        Title of the figure.
    names : sequence of str, default ()
        Names of the curves for the legend. Without names, there is no legend and curves have the colors of
        tokens.
    **options
        Further arguments of `theme.plot`, such as `x_axis_label`, by default "time".

    Attributes
    ----------
    figure : bokeh figure
        The figure.
    """

    def __init__(self, title: str, names: Sequence[str] = (), **options: Any) -> None:
        usual: dict[str, Any] = {"height": 210, "x_axis_label": "time"}
        self.figure = theme.plot(title, **usual | options)
        self._source = ColumnDataSource({"xs": [], "ys": [], "line": [], "dash": [], "name": []})
        legend: dict[str, Any] = {"legend_field": "name"} if names else {}
        self.figure.multi_line(
            "xs", "ys", source=self._source, line_color="line", line_dash="dash", line_width=1.6, **legend
        )
        self._beside = ColumnDataSource({"xs": [], "ys": [], "line": []})
        self.figure.multi_line(
            "xs", "ys", source=self._beside, line_color="line", line_dash="dashed", line_width=1.6
        )
        self._names = names
        self._now = Span(location=0, dimension="height", line_color=theme.INK, line_width=1)
        self.figure.add_layout(self._now)
        if names:
            theme.quiet_legend(self.figure)

    def show(self, times: Array, curves: Sequence[Array]) -> None:
        """Show curves, each of shape (n,), against times (n,)."""
        named = bool(self._names)
        self._source.data = {
            "xs": [times] * len(curves),
            "ys": list(curves),
            "line": theme.SERIES[: len(curves)] if named else theme.line_colors(len(curves)),
            "dash": theme.DASHES[: len(curves)] if named else ["solid"] * len(curves),
            "name": self._names if named else [str(token) for token in range(len(curves))],
        }

    def show_beside(self, times: Array, curves: Array) -> None:
        """Show more curves (n, count) against other times (n,), dashed, in the colors of tokens."""
        count = curves.shape[1]
        lines = {"xs": [times] * count, "ys": list(curves.T)}
        self._beside.data = {**lines, "line": theme.line_colors(count) if count else []}

    def point_at(self, time: float) -> None:
        """Move the vertical line to a time."""
        self._now.location = time


def _points(chosen: TrainingSet) -> Array:
    """Return the embeddings of all frames, (frames, tokens, 2); on a line, the second axis is 0."""
    return np.pad(chosen.embeddings, ((0, 0), (0, 0), (0, 2 - chosen.dim)))
