"""The live figures of the explorer, drawn by Bokeh, which several views share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.events import PanEnd, PanStart, Tap
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    DataRange1d,
    HoverTool,
    LinearColorMapper,
    PointDrawTool,
    Span,
)
from bokeh.palettes import RdBu11
from numpy.typing import NDArray

from grokphys.explorer import theme
from grokphys.explorer.curves import EDGE, FAINT, INK, WARM, Curve, class_colors, line_colors, text_colors
from grokphys.explorer.runs.common import shortened

Array = NDArray[np.float64]
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle")
"""Markers of pair sums by class modulo 5, so that classes can be told apart without color."""
MOST_POINTS = 300
"""Largest number of points of a curve that are sent to the page."""
TRAIL = 8
"""Length of a trail in frames."""
SMALLEST = 6
"""Largest extent that `TokenPlot.follow` shows, as a multiple of the extent of the points in the frame."""
LONG = 500
"""Largest number of points that are sent as text; more are sent as an array."""
HEAD = 0.1
"""Length of an arrow, relative to half the height of its figure, below which its head shrinks."""


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

    def __init__(self, title: str, *, height: int = 380) -> None:
        self.figure = theme.plot(title, height=height, square=True)
        self.tokens = ColumnDataSource({name: [] for name in ("x", "y", "fill", "ink", "name")})
        self._trails = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1", "color", "alpha")})
        self._arrows = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1", "angle", "size")})
        self._ring = ColumnDataSource({"x": [], "y": []})
        ends = "x0", "y0", "x1", "y1"
        self.figure.segment(*ends, source=self._trails, line_color="color", line_alpha="alpha", line_width=2)
        draw = CustomJS(
            args={"source": self.tokens, "font": f"bold 11px {theme.FONT}"},
            code="window.grokphys.token(source, font, cb_data)",
        )
        self.disc = self.figure.scatter(
            "x", "y", size=21, source=self.tokens, fill_color="fill", line_color=EDGE, line_width=0.8,
            nonselection_fill_alpha=1.0, nonselection_line_alpha=1.0, marker="@token", defs={"@token": draw},
        )  # fmt: skip
        sources = {"tokens": self.tokens, "trails": self._trails}
        grow = CustomJS(args=sources, code="window.grokphys.trail(tokens, trails)")
        self.tokens.js_on_change("patching", grow)
        self.figure.segment(*ends, source=self._arrows, line_color=WARM, line_width=1.8)
        self.figure.scatter(
            "x1", "y1", size="size", marker="triangle", angle="angle", source=self._arrows, color=WARM
        )
        self.figure.scatter("x", "y", size=30, source=self._ring, fill_alpha=0, line_color=WARM, line_width=3)
        self.held = False
        self._paths, self._largest = np.empty((0, 0, 2)), np.empty(0)

    def draggable(self, session: Any, follow: Callable[[], Any], drop: Callable[[], Any]) -> None:
        """Let the pointer drag tokens, while which play pauses.

        `follow` is called whenever the held token has moved, and both, `follow` first, when it is let go.
        """
        tool = PointDrawTool(renderers=[self.disc], add=False)
        self.figure.add_tools(tool)
        self.figure.toolbar.active_drag = tool

        def hold(held: bool) -> None:
            if not held:
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
            self.figure.js_on_event(event, CustomJS(args={"source": self.tokens}, code=code))
            self.figure.on_event(event, session.reaction(lambda _event, held=held: hold(held)))
        self.tokens.js_on_change("change", CustomJS(code="window.grokphys.dragged(cb_obj)"))
        self.tokens.on_change("data", moved)

    def points(self) -> Array:
        """Return the positions (tokens, 2) on screen, to which the user may have dragged tokens."""
        return np.stack([self.tokens.data["x"], self.tokens.data["y"]], axis=1).astype(np.float64)

    def ring(self, token: int | None) -> None:
        """Mark the token with a number by a ring; None removes the ring."""
        points = self.points()
        chosen = points[[token]] if token is not None and token < len(points) else points[:0]
        self._ring.data = {"x": chosen[:, 0], "y": chosen[:, 1]}

    def arrows(self, points: Array, vectors: Array) -> None:
        """Draw vectors (n, 2) as arrows at points (n, 2), `shortened` where they are too long."""
        edge = self.figure.y_range.end
        ends = points + shortened(vectors, edge)
        heads = np.minimum(1.0, np.hypot(*(ends - points).T) / (HEAD * edge))  # no head without motion
        (x0, y0), (x1, y1) = points.T, ends.T
        turned = np.arctan2(y1 - y0, x1 - x0) - np.pi / 2
        self._arrows.data = {"x0": x0, "y0": y0, "x1": x1, "y1": y1, "angle": turned, "size": 8 * heads}

    def begin(self, points: Array, order: Any = None) -> None:
        """Show tokens at points (tokens, 2) without trails; their number may differ from before.

        `order` (tokens,) holds the place of each token around the cycle of colors, by default its number.
        """
        count = len(points)
        order = range(count) if order is None else order
        colors, inks = class_colors(count), text_colors(count)
        fill = [colors[place] for place in order]
        x, y = points.T.tolist()
        names = [str(token) for token in range(count)]
        self.disc.glyph.size = 21 if count <= 40 else 16
        self.tokens.data = {"x": x, "y": y, "fill": fill, "ink": [inks[n] for n in order], "name": names}
        self._trails.data = {
            **_segments(np.repeat(points[None], TRAIL + 1, axis=0)),
            "color": np.tile(fill, TRAIL).tolist(),
            "alpha": np.repeat(np.linspace(0.05, 0.6, TRAIL).round(3), count).tolist(),
        }
        theme.zoom(self.figure, np.abs(points).max())

    def move(self, points: Array, extent: float | None = None) -> None:
        """Move the tokens to points (tokens, 2); the page lets trails lead there.

        The figure shows at least the coordinates up to `extent`, by default those of all points.
        """
        x, y = points.T.tolist()  # with all digits: when a point is dragged, they come back and are compared
        self.tokens.patch({"x": [(slice(None), x)], "y": [(slice(None), y)]})
        theme.zoom(self.figure, np.abs(points).max() if extent is None else extent)

    def follow(self, paths: Array, frame: int) -> None:
        """Show one frame of paths (frames, tokens, 2), with the frames before it as trails.

        The figure keeps the extent of all frames, so that growth and shrinking are seen, but shows at most
        `SMALLEST` times the extent of the points in the frame.
        """
        if paths is not self._paths:  # measure all frames only once
            self._paths, self._largest = paths, np.abs(paths).max(axis=(1, 2))
        self.move(paths[frame], min(self._largest.max(), SMALLEST * self._largest[frame]))
        past = paths[np.maximum(np.arange(frame - TRAIL, frame + 1), 0)]
        self._trails.patch({name: [(slice(None), values)] for name, values in _segments(past).items()})


class SumPlot:
    """A square figure of pair sums, with the color and the marker of their class."""

    def __init__(self, title: str, *, height: int = 380) -> None:
        self.figure = theme.plot(title, height=height, square=True)
        self._sums = ColumnDataSource(
            {name: [] for name in ("x", "y", "fill", "class", "pair", "marker", "line")}
        )
        self._discs = self.figure.scatter(
            "x", "y", size=9, marker="marker", source=self._sums, fill_color="fill", line_color="line",
            line_width=0.9,
        )  # fmt: skip
        tips = [("tokens", "@pair"), ("class", "@class")]
        self.figure.add_tools(HoverTool(renderers=[self._discs], tooltips=tips))

    def begin(self, points: Array, pairs: Any, classes: Any, held_out: Any = None) -> None:
        """Show the pair sums of another run, or of another plane.

        Parameters
        ----------
        points : ndarray of float64, shape (n, 2)
            Pair sums.
        pairs : array_like of int, shape (n, 2)
            Tokens of each pair.
        classes : array_like of int, shape (n,)
            Class of each pair sum, from 0.
        held_out : array_like of bool, shape (n,), optional
            Whether each pair is held out from training, and therefore hollow; by default none is.
        """
        classes, count = np.asarray(classes), int(np.max(classes)) + 1
        hollow = np.zeros(len(points), bool) if held_out is None else np.asarray(held_out)
        fill, line = (np.array(colors(count))[classes] for colors in (class_colors, line_colors))
        self._discs.glyph.size = 9 if len(points) <= 400 else 5
        x, y = _sent(points)
        self._sums.data = {
            "x": x,
            "y": y,
            "fill": np.where(hollow, "#ffffff", fill).tolist(),
            "line": np.where(hollow, line, EDGE).tolist(),
            "class": classes.tolist(),
            "pair": [f"{i}, {j}" for i, j in pairs],
            "marker": np.array(MARKERS)[classes % len(MARKERS)].tolist(),
        }
        theme.zoom(self.figure, np.abs(points).max())

    def move(self, points: Array) -> None:
        """Move the pair sums that `begin` has shown to points (n, 2)."""
        x, y = _sent(points)
        self._sums.patch({"x": [(slice(None), x)], "y": [(slice(None), y)]})
        theme.zoom(self.figure, np.abs(points).max())


class Curves:
    """A figure of curves, with a dot at the end of each labeled one, and lines at a level and at a time.

    `options` are those of `theme.plot`.
    """

    def __init__(
        self, title: str, *, height: int = 210, columns: int = 4, dots: bool = True, **options: Any
    ) -> None:
        if options.get("x_axis_type") != "log":
            options = {"x_range": DataRange1d(start=0, default_span=20)} | options
        self.figure = theme.plot(title, height=height, **{"x_axis_label": "step"} | options)
        names = "xs", "ys", "line", "dash", "width", "name", "label"
        self._sources = [ColumnDataSource({name: [] for name in names}) for _ in range(3)]
        look: Any = {"line_color": "line", "line_dash": "dash", "line_width": "width"}
        drawn = []
        for source, legend in zip(self._sources, ({}, {"legend_field": "label"}, {}), strict=True):
            drawn.append(self.figure.multi_line("xs", "ys", source=source, **look, **legend))
        self._ends = ColumnDataSource({"x": [], "y": [], "color": []})
        self.figure.scatter("x", "y", source=self._ends, size=7, color="color", visible=dots)
        theme.quiet_legend(self.figure, columns)
        self._level = Span(dimension="width", line_color=WARM, line_dash="dashed", visible=False)
        self._now = Span(dimension="height", line_color=INK, line_width=1, visible=False)
        self._reach = ColumnDataSource({"x": [], "y": []})  # a line by itself may lie beyond the axis
        self.figure.scatter("x", "y", source=self._reach, alpha=0)
        self.figure.add_layout(self._level)
        self.figure.add_layout(self._now)
        tips = [("", "@name"), ("x", "$x{0.[0]}"), ("y", "$y{0.000}")]
        self.figure.add_tools(HoverTool(renderers=drawn, tooltips=tips))

    def mark(self, level: float, x: float = 0.0) -> None:
        """Draw a horizontal line at a level, such as a limit; `x` is a place on the horizontal axis."""
        self._level.update(location=level, visible=True)
        self._reach.data = {"x": [x], "y": [level]}

    def point_at(self, x: float) -> None:
        """Draw a vertical line at a place or time."""
        self._now.update(location=x, visible=True)

    def show(self, curves: Iterable[Curve]) -> None:
        """Show curves instead of those before; values that are not finite leave gaps."""
        columns: list[dict[str, list[Any]]] = [{name: [] for name in s.data} for s in self._sources]
        ends: dict[str, list[Any]] = {"x": [], "y": [], "color": []}
        for curve in curves:
            x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
            kept = self._thinned(x)
            x, y = x[kept], np.where(np.isfinite(y), y, np.nan)[kept]
            of = (x, y, curve.color, curve.dash, curve.width, curve.name, curve.label)
            chosen = columns[2 if curve.above else 1 if curve.label else 0]
            for column, item in zip(chosen.values(), of, strict=True):
                column.append(item)
            if len(x):
                for column, item in zip(ends.values(), (x[-1], y[-1], curve.color), strict=True):
                    column.append(item)
        for source, shown in zip(self._sources, columns, strict=True):
            source.data = shown
        self._ends.data = ends
        self.figure.legend.visible = bool(columns[1]["xs"])
        for axis, name in ((self.figure.xaxis[0], "xs"), (self.figure.yaxis[0], "ys")):
            if "Log" in type(axis).__name__:
                seen = [values for column in columns for values in column[name]]
                level = [self._level.location] if name == "ys" and self._level.visible else []
                theme.tick(axis, np.concatenate([*seen, level]))

    def end_at(self, x: float, y: float) -> None:
        """Move the dot of the first curve, as while a particle is dragged."""
        self._ends.patch({"x": [(0, x)], "y": [(0, y)]})

    def _thinned(self, x: Array) -> NDArray[np.int64]:
        """Return the indices of up to `MOST_POINTS` points, evenly along the axis, with both ends."""
        if len(x) <= MOST_POINTS:
            return np.arange(len(x))
        if "Log" not in type(self.figure.xaxis[0]).__name__:
            return np.linspace(0, len(x) - 1, MOST_POINTS).round().astype(int)
        wanted = np.geomspace(x[0], x[-1], MOST_POINTS)
        return np.unique(np.searchsorted(x, wanted - 1e-6).clip(0, len(x) - 1))


class PairGrid:
    """A figure with a cell for each pair (i, j) of symbols with i ≤ j; `clicked` is called with i and j.

    A pair is filled if it is trained, framed if its answer follows from the trained ones, and otherwise
    empty.
    """

    def __init__(self, clicked: Callable[[int, int], None]) -> None:
        self.figure = theme.plot(
            "Training set (click to add or remove pairs)", height=436, x_axis_label="i", y_axis_label="j",
            x_range=(0, 1), y_range=(0, 1), whole=11,
        )  # fmt: skip
        self.figure.grid.visible = False
        self._lines = ColumnDataSource({"xs": [], "ys": []})
        self.figure.multi_line("xs", "ys", source=self._lines, line_color=FAINT, line_width=3)
        columns = ("i", "j", "fill", "line", "width", "ink", "class", "text", "state")
        self._cells = ColumnDataSource({name: [] for name in columns})
        cells = self.figure.rect(
            "i", "j", width=0.86, height=0.86, source=self._cells, border_radius=3,
            fill_color="fill", line_color="line", line_width="width",
        )  # fmt: skip
        self._text = self.figure.text(
            "i", "j", text="text", source=self._cells, text_color="ink", text_align="center",
            text_baseline="middle", text_font=value(theme.FONT), text_font_size="10px",
        )  # fmt: skip
        tips = [("pair", "@i + @j"), ("class", "@class"), ("", "@state")]
        self.figure.add_tools(HoverTool(renderers=[cells], tooltips=tips))
        self._cursor = ColumnDataSource({"i": [], "j": []})
        frame: Any = {"fill_alpha": 0, "line_color": WARM, "line_width": 3}
        self.figure.rect("i", "j", width=1, height=1, source=self._cursor, **frame)
        self.figure.on_event(Tap, lambda event: clicked(round(event.x), round(event.y)))

    def show(self, samples: Any, label: Any, trained: Any, follows: Any, diagonals: Sequence[Any]) -> None:
        """Show pairs (n, 2) with their classes, which of them are trained, and which follow from those.

        `diagonals` are groups of pairs (k, 2) that a line joins.
        """
        (i, j), count, tokens = samples.T, int(label.max()) + 1, int(samples.max()) + 1
        fills, inks, edges = (
            np.array(colors(count))[label] for colors in (class_colors, text_colors, line_colors)
        )
        open_ = ~trained & ~follows
        state = np.where(trained, "trained", np.where(follows, "follows from the trained ones", "open"))
        self._cells.data = {
            "i": i,
            "j": j,
            "fill": np.where(trained, fills, "#ffffff").tolist(),
            "line": np.where(open_, FAINT, edges).tolist(),
            "width": np.where(follows, 2.5, 1.0),
            "ink": np.where(trained, inks, edges).tolist(),
            "class": label,
            "text": np.where(open_, "", label.astype(str)).tolist(),
            "state": state.tolist(),
        }
        lines = [line for line in diagonals if len(line) > 1]
        self._lines.data = {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]}
        self._text.glyph.text_font_size = f"{max(6, min(13, round(190 / tokens)))}px"
        for side in (self.figure.x_range, self.figure.y_range):
            side.update(start=-0.7, end=tokens - 0.3)

    def point(self, i: int, j: int) -> None:
        """Frame the cell (i, j), which the keyboard has chosen."""
        self._cursor.data = {"i": [i], "j": [j]}


class ParallelogramPlot:
    """A square figure of tokens with the parallelograms of a training set.

    In the plane, parallelograms are quadrilaterals. On a line, each trained pair whose class has another
    trained pair is a half circle, above the line for even classes and below it for odd ones. A parallelogram
    is satisfied if its two half circles have the same center.
    """

    def __init__(self) -> None:
        self.tokens = TokenPlot("Parallelograms in the embedding", height=400)
        self.figure = self.tokens.figure
        self._arcs = ColumnDataSource({"x": [], "radius": [], "begin": [], "end": [], "line": []})
        self._shapes = ColumnDataSource({"xs": [], "ys": [], "line": []})
        arcs = self.figure.arc(
            "x", 0, radius="radius", start_angle="begin", end_angle="end", source=self._arcs,
            line_color="line", line_width=1.4,
        )  # fmt: skip
        look: Any = {"fill_color": "line", "fill_alpha": 0.06, "line_color": "line", "line_alpha": 0.7}
        shapes = self.figure.patches("xs", "ys", source=self._shapes, **look)
        arcs.level = shapes.level = "underlay"

    def arcs(self, middle: Array, radius: Array, classes: Any, count: int) -> None:
        """Show half circles (n,) with their centers on the line, and classes (n,) of `count`."""
        begin = np.where(classes % 2, np.pi, 0.0)
        line = np.array(line_colors(count))[classes].tolist()
        ends = {"begin": begin, "end": begin + np.pi}
        self._arcs.data = {"x": middle, "radius": radius, "line": line, **ends}
        self._shapes.data = {"xs": [], "ys": [], "line": []}

    def quadrilaterals(self, corners: Array, classes: Any, count: int) -> None:
        """Show quadrilaterals with corners (n, 4, 2), and classes (n,) of `count`."""
        line = np.array(line_colors(count))[classes].tolist()
        self._shapes.data = {"xs": list(corners[..., 0]), "ys": list(corners[..., 1]), "line": line}
        self._arcs.data = {name: [] for name in self._arcs.data}


class Bars:
    """A figure with a bar for the magnitude of each frequency, in the color of that frequency."""

    def __init__(self, title: str) -> None:
        self.figure = theme.plot(title, height=210, x_axis_label="frequency k")
        self.figure.y_range.start = 0
        self._source = ColumnDataSource({"k": [], "top": [], "fill": []})
        bars = self.figure.vbar(
            x="k", top="top", width=0.8, source=self._source, fill_color="fill", line_color=EDGE
        )
        self.figure.add_tools(HoverTool(renderers=[bars], tooltips=[("k", "@k"), ("magnitude", "@top")]))

    def show(self, magnitude: Array) -> None:
        """Show the magnitudes, shape (count,), of the frequencies 1 to count."""
        count = len(magnitude)
        columns = {"k": np.arange(1, count + 1), "top": magnitude, "fill": class_colors(count)}
        self._source.data = columns


class HeatMap:
    """A figure of a square matrix as colors, red if positive and blue if negative, numbered from `first`.

    On a logarithmic scale, entries below a hundredth of the largest are still pale.
    """

    def __init__(
        self, title: str, height: int, rows: str, columns: str, *, first: int = 0, log: bool = False
    ) -> None:
        self.figure = theme.plot(
            title, height=height, x_axis_label=columns, y_axis_label=rows, x_range=(0, 1), y_range=(0, 1),
            whole=6,
        )  # fmt: skip
        self.figure.grid.visible = False
        self._first, self._log = first, log
        self._source = ColumnDataSource({"image": [], "value": [], "size": []})
        self._colors = LinearColorMapper(palette=RdBu11, low=-1, high=1)
        place: Any = {"x": first - 0.5, "y": first - 0.5, "dw": "size", "dh": "size"}
        image = self.figure.image("image", source=self._source, color_mapper=self._colors, **place)
        tips = [(f"{rows}, {columns}", "$y{0}, $x{0}"), ("value", "@value{0.0000e+0}")]
        self.figure.add_tools(HoverTool(renderers=[image], tooltips=tips))

    def show(self, matrix: Any) -> None:
        """Show a matrix (size, size), with row 0 below."""
        size, limit = len(matrix), float(np.abs(matrix).max()) or 1.0
        shown = matrix / limit
        if self._log:
            shown = np.sign(shown) * np.log1p(100 * np.abs(shown)) / np.log(101)
        columns = {
            "image": [shown.astype(np.float32)],
            "value": [np.asarray(matrix, np.float32)],
            "size": [size],
        }
        self._source.data = columns
        for side in (self.figure.x_range, self.figure.y_range):
            side.update(start=self._first - 0.5, end=self._first + size - 0.5)


def _segments(past: Array) -> dict[str, Any]:
    """Return the columns of the segments of trails through points (TRAIL + 1, tokens, 2)."""
    begin, end = _sent(past[:-1].reshape(-1, 2)), _sent(past[1:].reshape(-1, 2))
    return {"x0": begin[0], "y0": begin[1], "x1": end[0], "y1": end[1]}


def _sent(points: Array) -> Any:
    """Return x and y of points (n, 2) as the page gets them: rounded lists or, of many points, arrays.

    Lists are part of the message of a frame, whereas each array takes two more.
    """
    if len(points) > LONG:
        return points.T.astype(np.float32)
    extent = np.abs(points).max(initial=0.0)
    digits = 5 - int(np.floor(np.log10(extent))) if 0 < extent < np.inf else 5
    return points.T.round(digits).tolist()
