"""The live figures of the explorer: each shows one kind of panel by Bokeh."""

from collections.abc import Callable
from typing import Any

import bokeh.models as bm
import numpy as np
from bokeh.core.properties import value
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.events import PanEnd, PanStart
from bokeh.palettes import RdBu11
from bokeh.plotting import figure

from grokphys.explorer import films
from grokphys.explorer.films import EDGE, FAINT, INK, WARM, class_colors, line_colors, shortened, text_colors
from grokphys.explorer.runs.common import sections

LOG_TICKS = [factor * 10.0**power for power in range(-12, 13) for factor in (1, 2, 5)]
"""Ticks of logarithmic axes."""
CSS = sections("parts.css", r"/\* (\w+) \*/")
"""Styles of the parts of the page."""
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle")
"""Markers of pair sums by class modulo 5, so that classes can be told apart without color."""
MOST_POINTS = 300
"""Largest number of points of a curve that are sent to the page."""
TRAIL = 8
"""Length of a trail in frames."""
SMALLEST = 6
"""Largest extent that tokens in many frames are shown in, as a multiple of the extent in the frame."""
LOOKS = ("color", "dash", "width", "name")
"""What of a curve the page is sent besides its points."""
HEAD = 0.1
"""Length of an arrow, relative to half the height of its figure, below which its head shrinks."""


def _figure(height: int, *, square: bool = False, whole: int = 0, **options: Any) -> Any:
    """Return an empty Bokeh figure in the design of the explorer.

    A `square` one shows a plane around the origin: its two axes have equal units and are not drawn, and
    `zoom` chooses its range. Axes have about `whole` ticks at whole numbers, if it is not 0.
    """
    if square:
        options |= {"x_range": bm.Range1d(-1, 1), "y_range": bm.Range1d(-1, 1)}
        options |= {"x_axis_location": None, "y_axis_location": None}
    looks: dict[str, Any] = {"toolbar_location": None, "tools": "", "stylesheets": [CSS["figure"]]}
    made = figure(height=height, sizing_mode="stretch_width", **looks, **options)
    for axis in made.axis:
        if whole:
            axis.ticker = bm.BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=whole)
        if isinstance(axis, bm.LogAxis):
            axis.ticker, axis.formatter = bm.FixedTicker(ticks=LOG_TICKS), bm.BasicTickFormatter()
            axis.major_label_policy = bm.NoOverlap()
    made.grid.visible = not square
    if square:
        keep = bm.CustomJS(args={"plot": made}, code="window.grokphys.square(plot)")
        for owner, name in ((made, "inner_width"), (made, "inner_height"), (made.y_range, "end")):
            owner.js_on_change(name, keep)
        made.tags = [1.0]
        for name in ("inner_width", "inner_height"):
            made.on_change(name, lambda _name, _old, _new: zoom(made))
    return made


def bounds(plane: Any) -> tuple[float, float, float, float]:
    """Return left, right, bottom and top of the range of a square figure of Bokeh.

    Left and right follow from the shape of the figure, which is taken as 3:2 until the page has drawn it.
    """
    top = float(plane.y_range.end)
    try:
        aspect = max(plane.inner_width / plane.inner_height or 1.5, 0.25)
    except (UnsetValueError, ZeroDivisionError):
        aspect = 1.5
    return -top * aspect, top * aspect, -top, top


def zoom(plane: Any, extent: float | None = None) -> None:
    """Let a square figure show at least [-extent, extent] on both axes; an extent of 0 counts as 1.

    The range changes only if the extent would fill less than 55 % or more than 95 % of it.
    Without an extent, the last one is shown again, as after a change of the figure's shape.
    """
    extent = plane.tags[0] if extent is None else float(extent) or 1.0
    plane.tags = [extent]
    right, shown = bounds(plane)[1], plane.y_range.end
    extent *= max(1.0, shown / right)  # a figure that is taller than wide shows more above and below
    if not 0.55 * shown < extent < 0.95 * shown:
        plane.y_range.update(start=-1.15 * extent, end=1.15 * extent)


class TokenPlot:
    """A square figure of tokens as numbered discs with fading trails.

    Attributes
    ----------
    figure : bokeh figure
        The figure of the plane.
    tokens : ColumnDataSource
        Columns x and y, with one row for each token.
    held : bool
        Whether the pointer holds a token.
    """

    def __init__(self, panel: films.Tokens, height: int) -> None:
        self.figure = _figure(height, square=True)
        self.tokens = _source("x y fill ink name")
        self._trails, self._arrows = _source("x0 y0 x1 y1 color alpha"), _source("x0 y0 x1 y1 angle size")
        self._ring, self._chain = _source("x y"), _source("x y")
        ends = "x0", "y0", "x1", "y1"
        self.figure.segment(*ends, source=self._trails, line_color="color", line_alpha="alpha", line_width=2)
        code = "window.grokphys.token(source, cb_data)"
        draw = bm.CustomJS(args={"source": self.tokens}, code=code)
        self.disc = self.figure.scatter(
            "x", "y", size=21, source=self.tokens, fill_color="fill", line_color=EDGE, line_width=0.8,
            nonselection_fill_alpha=1.0, nonselection_line_alpha=1.0, marker="@token", defs={"@token": draw},
        )  # fmt: skip
        sources = {"tokens": self.tokens, "trails": self._trails}
        grow = bm.CustomJS(args=sources, code="window.grokphys.trail(tokens, trails)")
        self.tokens.js_on_change("patching", grow)
        self.figure.segment(*ends, source=self._arrows, line_color=WARM, line_width=1.8)
        heads: Any = {"marker": "triangle", "size": "size", "angle": "angle", "color": WARM}
        self.figure.scatter("x1", "y1", source=self._arrows, **heads)
        self.figure.scatter("x", "y", size=30, source=self._ring, fill_alpha=0, line_color=WARM, line_width=3)
        chain = self.figure.line("x", "y", source=self._chain, line_color=FAINT, line_width=1)
        chain.level = "underlay"
        self.held = False
        self._order: Any = None

    def draggable(self, session: Any, follow: Callable[[], Any], drop: Callable[[], Any]) -> None:
        """Let the pointer drag tokens, while which play pauses.

        `follow` is called whenever the held token has moved, and both, `follow` first, when it is let go.
        """
        tool = bm.PointDrawTool(renderers=[self.disc], add=False)
        self.figure.add_tools(tool)
        self.figure.toolbar.active_drag = tool

        def hold(held: bool) -> None:
            follow()
            self.held = held
            session.hold(held)
            if not held:
                drop()

        def moved(_name: str, _old: Any, _new: Any) -> None:
            if self.held:  # otherwise the view has moved the points
                session.reaction(follow)()

        # By itself, Bokeh sends the points only when they are let go.
        for event, held, word in ((PanStart, True, "true"), (PanEnd, False, "false")):
            code = f"window.grokphys.held(source, {word})"
            self.figure.js_on_event(event, bm.CustomJS(args={"source": self.tokens}, code=code))
            self.figure.on_event(event, session.reaction(lambda _event, held=held: hold(held)))
        self.tokens.js_on_change("change", bm.CustomJS(code="window.grokphys.dragged(cb_obj)"))
        self.tokens.on_change("data", moved)

    def points(self) -> films.Array:
        """Return the positions (tokens, 2) on screen, to which the user may have dragged tokens."""
        return np.stack([self.tokens.data["x"], self.tokens.data["y"]], axis=1).astype(np.float64)

    def show(self, panel: films.Tokens, fresh: bool) -> None:
        """Show tokens; `fresh` ones have no trails, and their number may differ from before."""
        points, extent = panel.paths[panel.frame], np.abs(panel.paths[panel.frame]).max()
        if fresh or not np.array_equal(panel.order, self._order):
            self._begin(points, panel.order)
        elif not self.held:
            x, y = points.T.tolist()  # with all digits: when a point is dragged, they come back
            self.tokens.patch({"x": [(slice(None), x)], "y": [(slice(None), y)]})
        if len(panel.paths) > 1:
            extent = min(np.abs(panel.paths).max(), SMALLEST * extent)
            past = panel.paths[np.maximum(np.arange(panel.frame - TRAIL, panel.frame + 1), 0)]
            self._trails.patch({name: [(slice(None), ends)] for name, ends in _segments(past).items()})
        if not self.held:
            zoom(self.figure, extent)
        for source, marked in ((self._ring, panel.chosen), (self._chain, panel.chain)):
            if marked is not None or len(source.data["x"]):
                x, y = points[[] if marked is None else np.atleast_1d(marked)].T
                source.data = {"x": x, "y": y}
        if panel.arrows is not None or len(self._arrows.data["x0"]):
            self._show_arrows(points, panel.arrows)

    def _begin(self, points: films.Array, order: Any) -> None:
        count, self._order = len(points), order
        places = range(count) if order is None else order
        colors, inks = class_colors(count), text_colors(count)
        fill = [colors[place] for place in places]
        x, y = points.T.tolist()
        self.disc.glyph.size = 21 if count <= 40 else 16
        names = [str(token) for token in range(count)]
        self.tokens.data = {"x": x, "y": y, "fill": fill, "ink": [inks[n] for n in places], "name": names}
        self._trails.data = {
            **_segments(np.repeat(points[None], TRAIL + 1, axis=0)),
            "color": np.tile(fill, TRAIL).tolist(),
            "alpha": np.repeat(np.linspace(0.05, 0.6, TRAIL).round(3), count).tolist(),
        }

    def _show_arrows(self, points: films.Array, vectors: films.Array | None) -> None:
        edge = self.figure.y_range.end
        begin = points[:0] if vectors is None else points
        ends = begin + shortened(np.zeros_like(begin) if vectors is None else vectors, edge)
        heads = np.minimum(1.0, np.hypot(*(ends - begin).T) / (HEAD * edge))  # no head without motion
        (x0, y0), (x1, y1) = begin.T, ends.T
        turned = np.arctan2(y1 - y0, x1 - x0) - np.pi / 2
        self._arrows.data = {"x0": x0, "y0": y0, "x1": x1, "y1": y1, "angle": turned, "size": 8 * heads}


class ParallelogramPlot(TokenPlot):
    """A square figure of tokens with the parallelograms of a training set."""

    def __init__(self, panel: films.Parallelograms, height: int) -> None:
        super().__init__(panel, height)
        self._outlines = _source("xs ys line")
        look: Any = {"line_color": "line", "line_alpha": 0.7, "line_width": 1.4, "level": "underlay"}
        self.figure.multi_line("xs", "ys", source=self._outlines, **look)

    def show(self, panel: Any, fresh: bool) -> None:
        """Show tokens, and their half circles or quadrilaterals."""
        super().show(panel, fresh)
        x, y = np.moveaxis(panel.outlines.astype(np.float32), 2, 0)
        line = np.array(line_colors(panel.count))[panel.classes].tolist()
        self._outlines.data = {"xs": list(x), "ys": list(y), "line": line}


class SumPlot:
    """A square figure of pair sums, over a map of classes if there is one."""

    def __init__(self, panel: films.Sums, height: int) -> None:
        self.figure = _figure(height, square=True)
        self._sums, self._map = _source("x y fill class pair marker line"), _source("image x y dw dh")
        self._colors = bm.LinearColorMapper(palette=["#ffffff"], low=-0.5, high=0.5)
        place: Any = {"x": "x", "y": "y", "dw": "dw", "dh": "dh", "global_alpha": 0.55}
        image = self.figure.image("image", source=self._map, color_mapper=self._colors, **place)
        image.level = "underlay"
        self._discs = self.figure.scatter(
            "x", "y", size=9, marker="marker", source=self._sums, fill_color="fill", line_color="line",
            line_width=0.9,
        )  # fmt: skip
        tips = [("tokens", "@pair"), ("class", "@class")]
        self.figure.add_tools(bm.HoverTool(renderers=[self._discs], tooltips=tips))

    def show(self, panel: films.Sums, fresh: bool) -> None:
        """Show pair sums; `fresh` ones are those of another run."""
        x, y = panel.points.T.astype(np.float32)
        if fresh:
            classes = np.asarray(panel.classes)
            fill, line = films.sum_colors(panel)
            self._discs.glyph.size = 9 if len(panel.points) <= 400 else 5
            self._sums.data = {
                "x": x,
                "y": y,
                "fill": fill.tolist(),
                "line": line.tolist(),
                "class": classes.tolist(),
                "pair": [f"{i}, {j}" for i, j in panel.pairs],
                "marker": np.array(MARKERS)[classes % len(MARKERS)].tolist(),
            }
            count = int(classes.max()) + 1
            self._colors.update(palette=class_colors(count), high=count - 0.5)
        else:
            self._sums.patch({"x": [(slice(None), x)], "y": [(slice(None), y)]})
        zoom(self.figure, np.abs(panel.points).max())
        if panel.map is not None:
            left, right, bottom, top = panel.bounds
            places = {"x": [left], "y": [bottom], "dw": [right - left], "dh": [top - bottom]}
            self._map.data = {"image": [panel.map], **places}


class LinePlot:
    """A figure of curves, with a dot at the end of each labeled one, and lines at a level and at a time."""

    def __init__(self, panel: films.Lines, height: int) -> None:
        options: dict[str, Any] = {"x_axis_label": panel.xlabel, "y_axis_label": panel.ylabel or None}
        options |= {f"{axis}_axis_type": "log" for axis in panel.log}
        if "x" not in panel.log:
            options["x_range"] = bm.DataRange1d(start=0, default_span=20)
        if panel.y_range is not None:
            options["y_range"] = panel.y_range
        self.figure = _figure(height, whole=panel.whole, **options)
        self._space = np.geomspace if "x" in panel.log else np.linspace
        self._lines, self._ends = _source("xs ys color dash width name"), _source("x y color")
        look: Any = {"line_color": "color", "line_dash": "dash", "line_width": "width"}
        self._drawn = self.figure.multi_line("xs", "ys", source=self._lines, **look)
        self.figure.scatter("x", "y", source=self._ends, size=7, color="color", visible=panel.dots)
        self._legend, self._labels = bm.Legend(visible=False), dict[int, str]()
        self.figure.add_layout(self._legend, "above")  # where it hides no curve
        self._level = bm.Span(dimension="width", line_color=WARM, line_dash="dashed", visible=False)
        self._now = bm.Span(dimension="height", line_color=INK, line_width=1, visible=False)
        self.figure.add_layout(self._level)
        self.figure.add_layout(self._now)
        tips = [("", "@name"), ("x", "$x{0.[0]}"), ("y", "$y{0.000}")]
        self.figure.add_tools(bm.HoverTool(renderers=[self._drawn], tooltips=tips))
        self._curves: Any = None

    def show(self, panel: films.Lines, fresh: bool) -> None:
        """Show curves, unless they are the same as before; values that are not finite leave gaps."""
        if panel.now is not None:
            self._now.update(location=panel.now, visible=True)
        if panel.curves is self._curves:
            return
        self._curves = panel.curves
        curves = panel.curves
        lines = [self._points(curve) for curve in curves]
        looks = {look: [getattr(curve, look) for curve in curves] for look in LOOKS}
        self._lines.data = {"xs": [x for x, _ in lines], "ys": [y for _, y in lines], **looks}
        ends: list[Any] = [
            (x[-1], y[-1], curve.color) for (x, y), curve in zip(lines, curves, strict=True) if len(x)
        ]
        if panel.level is not None:
            self._level.update(location=panel.level, visible=True)
            # a dot without a color, because a line by itself may lie beyond the axis
            ends.append((ends[0][0] if ends else 0.0, panel.level, None))
        self._ends.data = {name: [end[k] for end in ends] for k, name in enumerate(self._ends.data)}
        labels = {k: curve.label for k, curve in enumerate(curves) if curve.label}
        if labels != self._labels:
            self._labels, drawn = labels, [self._drawn]
            self._legend.items = [
                bm.LegendItem(label=value(label), renderers=drawn, index=k) for k, label in labels.items()
            ]
            self._legend.visible = bool(labels)

    def _points(self, curve: films.Curve) -> tuple[films.Array, films.Array]:
        """Return x and y of a curve, of `MOST_POINTS` evenly spaced points if there are more."""
        x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
        if len(x) > MOST_POINTS:
            shown = np.searchsorted(x, self._space(x[0], x[-1], MOST_POINTS)[:-1])
            x, y = x[np.append(shown, -1)], y[np.append(shown, -1)]
        return x, np.where(np.isfinite(y), y, np.nan)


class GridPlot:
    """A figure with a cell for each pair (i, j) of symbols with i ≤ j, and a cursor."""

    def __init__(self, panel: films.PairGrid, height: int) -> None:
        ranges: Any = {"x_range": (0, 1), "y_range": (0, 1)}
        self.figure = _figure(height, x_axis_label="i", y_axis_label="j", whole=11, **ranges)
        self.figure.grid.visible = False
        self._lines, self._cursor = _source("xs ys"), _source("i j")
        self.figure.multi_line("xs", "ys", source=self._lines, line_color=FAINT, line_width=3)
        self._cells = _source("i j fill line width ink class text state")
        cells = self.figure.rect(
            "i", "j", width=0.86, height=0.86, source=self._cells, border_radius=3,
            fill_color="fill", line_color="line", line_width="width",
        )  # fmt: skip
        self._text = self.figure.text(
            "i", "j", text="text", source=self._cells, text_color="ink", text_align="center",
            text_baseline="middle", text_font_size="10px",
        )  # fmt: skip
        tips = [("pair", "@i + @j"), ("class", "@class"), ("", "@state")]
        self.figure.add_tools(bm.HoverTool(renderers=[cells], tooltips=tips))
        frame: Any = {"fill_alpha": 0, "line_color": WARM, "line_width": 3}
        self.figure.rect("i", "j", width=1, height=1, source=self._cursor, **frame)
        self._panel: Any = None

    def show(self, panel: films.PairGrid, fresh: bool) -> None:
        """Show the pairs, unless they are the same as before."""
        if panel is self._panel:
            return
        self._panel, label = panel, panel.label
        (i, j), count, tokens = panel.samples.T, int(label.max()) + 1, int(panel.samples.max()) + 1
        fills, inks, edges = (
            np.array(colors(count))[label] for colors in (class_colors, text_colors, line_colors)
        )
        open_ = ~panel.trained & ~panel.follows
        states = np.where(panel.follows, "follows from the trained ones", "open")
        self._cells.data = {
            "i": i,
            "j": j,
            "fill": np.where(panel.trained, fills, "#ffffff").tolist(),
            "line": np.where(open_, FAINT, edges).tolist(),
            "width": np.where(panel.follows, 2.5, 1.0),
            "ink": np.where(panel.trained, inks, edges).tolist(),
            "class": label,
            "text": np.where(open_, "", label.astype(str)).tolist(),
            "state": np.where(panel.trained, "trained", states).tolist(),
        }
        lines = [line for line in panel.diagonals if len(line) > 1]
        self._lines.data = {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]}
        self._text.glyph.text_font_size = f"{max(6, min(13, round(190 / tokens)))}px"
        for side in (self.figure.x_range, self.figure.y_range):
            side.update(start=-0.7, end=tokens - 0.3)

    def point(self, i: int, j: int) -> None:
        """Frame the cell (i, j), which the keyboard has chosen."""
        self._cursor.data = {"i": [i], "j": [j]}


class MatrixPlot:
    """A figure of a square matrix as colors."""

    def __init__(self, panel: films.Matrix, height: int) -> None:
        labels: Any = {"x_axis_label": panel.columns, "y_axis_label": panel.rows}
        self.figure = _figure(height, whole=6, x_range=(0, 1), y_range=(0, 1), **labels)
        self.figure.grid.visible = False
        self._source = _source("image value size")
        colors = bm.LinearColorMapper(palette=RdBu11, low=-1, high=1)
        place: Any = {"x": panel.first - 0.5, "y": panel.first - 0.5, "dw": "size", "dh": "size"}
        image = self.figure.image("image", source=self._source, color_mapper=colors, **place)
        tips = [(f"{panel.rows}, {panel.columns}", "$y{0}, $x{0}"), ("value", "@value{0.0000e+0}")]
        self.figure.add_tools(bm.HoverTool(renderers=[image], tooltips=tips))

    def show(self, panel: films.Matrix, fresh: bool) -> None:
        """Show the matrix, with its first row below."""
        size, shown = len(panel.values), panel.values / (float(np.abs(panel.values).max()) or 1.0)
        if panel.log:
            shown = np.sign(shown) * np.log1p(100 * np.abs(shown)) / np.log(101)
        images = {"image": [shown.astype(np.float32)], "value": [np.asarray(panel.values, np.float32)]}
        self._source.data = {**images, "size": [size]}
        for side in (self.figure.x_range, self.figure.y_range):
            side.update(start=panel.first - 0.5, end=panel.first + size - 0.5)


PLOTS: dict[type[films.Panel], Any] = {
    films.Tokens: TokenPlot,
    films.Parallelograms: ParallelogramPlot,
    films.Sums: SumPlot,
    films.Lines: LinePlot,
    films.PairGrid: GridPlot,
    films.Matrix: MatrixPlot,
}
"""The figure of each kind of panel."""


def _source(names: str) -> bm.ColumnDataSource:
    return bm.ColumnDataSource({name: [] for name in names.split()})


def _segments(past: films.Array) -> dict[str, Any]:
    """Return the columns of the segments of trails through points (TRAIL + 1, tokens, 2)."""
    begin, end = (ends.reshape(-1, 2).T.astype(np.float32) for ends in (past[:-1], past[1:]))
    return {"x0": begin[0], "y0": begin[1], "x1": end[0], "y1": end[1]}
