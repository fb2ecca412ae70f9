"""Figures of tokens and pair sums in a plane, which several views share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import BasicTicker, ColumnDataSource, CustomJS, DataRange1d, HoverTool, Span
from numpy.typing import NDArray

from grokphys.explorer import theme
from grokphys.explorer.runs.planes import shortened

Array = NDArray[np.float64]
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle")
"""Markers of pair sums by class modulo 5, so that classes can be told apart without color, as in films."""
MOST_POINTS = 300
"""Largest number of points of a curve that are sent to the page."""
TRAIL = 8
"""Length of a trail in frames."""
SMALLEST = 6
"""Largest extent that `TokenPlot.follow` shows, as a multiple of the extent of the points in the frame."""
NUMBER = f"bold 11px {theme.FONT}"
"""Font of the numbers of tokens."""
TOKEN = "window.grokphys.token(source, font, cb_data)"
GROW = "window.grokphys.trail(tokens, trails)"
HEAD = 0.1
"""Length of an arrow, relative to half the height of its figure, below which its head shrinks."""
LONG = 500
"""Largest number of points that are sent as text; more are sent as an array."""


class TokenPlot:
    """A figure of tokens as numbered discs with fading trails.

    Parameters
    ----------
    title : str
        Title of the figure.
    height : int, default 380
        Height in pixels.

    Attributes
    ----------
    figure : bokeh figure
        Square figure of the plane.
    tokens : ColumnDataSource
        Columns x and y, with one row for each token; a `PointDrawTool` may move the points.
    disc : GlyphRenderer
        Renderer of the discs.
    """

    def __init__(self, title: str, *, height: int = 380) -> None:
        self.figure = theme.plot(title, height=height, square=True)
        self.tokens = ColumnDataSource({name: [] for name in ("x", "y", "fill", "ink", "dark", "name")})
        self._trails = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": [], "color": [], "alpha": []})
        self.figure.segment(
            "x0", "y0", "x1", "y1", source=self._trails, line_color="color", line_alpha="alpha", line_width=2
        )
        token = CustomJS(args={"source": self.tokens, "font": NUMBER}, code=TOKEN)
        self.disc = self.figure.scatter(
            "x", "y", size=21, source=self.tokens, fill_color="fill", line_color="#444444", line_width=0.8,
            nonselection_fill_alpha=1.0, nonselection_line_alpha=1.0, marker="@token", defs={"@token": token},
        )  # fmt: skip
        grow = CustomJS(args={"tokens": self.tokens, "trails": self._trails}, code=GROW)
        self.tokens.js_on_change("patching", grow)
        self._arrows = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1", "angle", "size")})
        self.figure.segment(
            "x0", "y0", "x1", "y1", source=self._arrows, line_color=theme.WARM, line_width=1.8
        )
        self.figure.scatter(
            "x1", "y1", size="size", marker="triangle", angle="angle", source=self._arrows, color=theme.WARM
        )
        self._paths, self._largest = np.empty((0, 0, 2)), np.empty(0)
        self._ring = ColumnDataSource({"x": [], "y": []})
        self.figure.scatter(
            "x", "y", size=30, source=self._ring, fill_alpha=0, line_color=theme.WARM, line_width=3
        )

    def ring(self, token: int | None) -> None:
        """Mark the token with a number by a ring; None removes the ring."""
        points = self.points()
        chosen = points[[token]] if token is not None and token < len(points) else points[:0]
        self._ring.data = {"x": chosen[:, 0], "y": chosen[:, 1]}

    def arrows(self, points: Array, vectors: Array) -> None:
        """Draw vectors (n, 2) as arrows at points (n, 2).

        If an arrow is longer than a third of half the figure's height, all are shortened by one factor.
        """
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
        colors = theme.class_colors(count)
        fill = colors if order is None else [colors[place] for place in order]
        x, y = points.T
        self.disc.glyph.size = 21 if count <= 40 else 16
        self.tokens.data = {
            "x": x.tolist(),
            "y": y.tolist(),
            "fill": fill,
            "ink": theme.text_colors(fill),
            "dark": theme.text_colors(fill, dark=True),
            "name": [str(token) for token in range(count)],
        }
        fading = np.linspace(0.05, 0.6, TRAIL).round(3)
        self._trails.data = {
            **_segments(np.repeat(points[None], TRAIL + 1, axis=0)),
            "color": np.tile(fill, TRAIL).tolist(),
            "alpha": np.repeat(fading, count).tolist(),
        }
        theme.zoom(self.figure, np.abs(points).max())

    def move(self, points: Array, extent: float | None = None) -> None:
        """Move the tokens to points (tokens, 2); the page lets trails lead there.

        The figure shows at least the coordinates up to `extent`, by default those of all points.
        """
        whole = slice(None)
        x, y = points.T
        # Coordinates keep all digits: when a point is dragged, they come back and are compared.
        self.tokens.patch({"x": [(whole, x.tolist())], "y": [(whole, y.tolist())]})
        theme.zoom(self.figure, np.abs(points).max() if extent is None else extent)

    def follow(self, paths: Array, frame: int) -> None:
        """Show one frame of a film of tokens, with the positions in the `TRAIL` frames before it as trails.

        The figure keeps the extent of all frames, so that growth and shrinking are seen. If the points of
        the frame would be too small, it shows `SMALLEST` times their extent.

        Parameters
        ----------
        paths : ndarray of float64, shape (frames, tokens, 2)
            Points of all frames.
        frame : int
            Number of the frame, from 0.
        """
        if paths is not self._paths:  # measure all frames only once
            self._paths, self._largest = paths, np.abs(paths).max(axis=(1, 2))
        self.move(paths[frame], min(self._largest.max(), SMALLEST * self._largest[frame]))
        past = paths[max(0, frame - TRAIL) : frame + 1]
        past = np.concatenate([np.repeat(past[:1], TRAIL + 1 - len(past), axis=0), past])
        self._trails.patch({name: [(slice(None), values)] for name, values in _segments(past).items()})

    def points(self) -> Array:
        """Return the positions (tokens, 2) on screen, to which the user may have dragged tokens."""
        return np.stack([self.tokens.data["x"], self.tokens.data["y"]], axis=1).astype(np.float64)


class SumPlot:
    """A figure of pair sums (sums of two tokens' positions), shown as markers or as numbers of their classes.

    Parameters
    ----------
    title : str
        Title of the figure.
    height : int, default 380
        Height in pixels.

    Attributes
    ----------
    figure : bokeh figure
        Square figure of the plane.
    """

    def __init__(self, title: str, *, height: int = 380) -> None:
        self.figure = theme.plot(title, height=height, square=True)
        self._sums = ColumnDataSource(
            {"x": [], "y": [], "fill": [], "class": [], "pair": [], "marker": [], "ink": [], "line": []}
        )
        self._discs = self.figure.scatter(
            "x", "y", size=9, marker="marker", source=self._sums, fill_color="fill", line_color="line",
            line_width=0.9,
        )  # fmt: skip
        # Texts have a separate source, because Bokeh lays out every text that is sent, even an invisible one.
        self._texts = ColumnDataSource({"x": [], "y": [], "class": [], "ink": []})
        self._numbers = self.figure.text(
            "x", "y", text="class", source=self._texts, text_color="ink", text_font_size="10px",
            text_font=value(theme.FONT), text_align="center", text_baseline="middle", visible=False,
        )  # fmt: skip
        hover = HoverTool(renderers=[self._discs], tooltips=[("tokens", "@pair"), ("class", "@class")])
        self.figure.add_tools(hover)

    def begin(
        self, points: Array, pairs: Any, classes: Any, count: int, held_out: Sequence[bool] | None = None
    ) -> None:
        """Show the pair sums of another run, or of another plane.

        Parameters
        ----------
        points : ndarray of float64, shape (n, 2)
            Pair sums.
        pairs : array_like of int, shape (n, 2)
            Tokens of each pair.
        classes : array_like of int, shape (n,)
            Class of each pair sum, from 0.
        count : int
            Number of classes.
        held_out : sequence of bool, shape (n,), optional
            Whether each pair is held out from training, and therefore hollow; by default none is.
        """
        colors = np.array(theme.class_colors(count))
        apart = np.zeros(len(points), bool) if held_out is None else np.asarray(held_out)
        fill = colors[np.asarray(classes)]
        self._discs.glyph.size = 9 if len(points) <= 400 else 5
        x, y = _drawn(points)
        self._sums.data = {
            "x": x,
            "y": y,
            "fill": np.where(apart, "#ffffff", fill).tolist(),
            "line": np.where(
                apart, np.array(theme.line_colors(count))[np.asarray(classes)], "#444444"
            ).tolist(),
            "ink": np.array([theme.darker(color) for color in colors])[np.asarray(classes)].tolist(),
            "class": [str(label) for label in classes],
            "pair": [f"{i}, {j}" for i, j in pairs],
            "marker": np.array(MARKERS)[np.asarray(classes) % len(MARKERS)].tolist(),
        }
        self._write()
        theme.zoom(self.figure, np.abs(points).max())

    def move(self, points: Array) -> None:
        """Move the pair sums that `begin` has shown to points (n, 2)."""
        x, y = _drawn(points)
        moved = {"x": [(slice(None), x)], "y": [(slice(None), y)]}
        self._sums.patch(moved)
        if self._numbers.visible:
            self._texts.patch(moved)
        theme.zoom(self.figure, np.abs(points).max())

    def show_numbers(self, numbers: bool) -> None:
        """Show the classes as numbers if `numbers` is True, and otherwise as colored markers."""
        self._numbers.visible, self._discs.glyph.fill_alpha = numbers, 0.0 if numbers else 1.0
        self._discs.glyph.line_alpha = 0.0 if numbers else 1.0
        self._write()

    def _write(self) -> None:
        """Send the numbers of the classes to the page if they are visible, and otherwise no text."""
        shown = slice(None) if self._numbers.visible else slice(0)
        self._texts.data = {name: self._sums.data[name][shown] for name in self._texts.data}


class Curves:
    """A figure of curves against the step, each with a color and a dash.

    Parameters
    ----------
    title : str
        Title of the figure.
    names : sequence of str
        Names of the values, each with one curve.
    height : int, default 170
        Height in pixels.
    starts : pair of str, default ()
        Names of two runs. If given, there is one curve of the first value for each run.
    **options
        Further arguments of `theme.plot`.

    Attributes
    ----------
    figure : bokeh figure
        Figure with the step on the horizontal axis.
    """

    def __init__(
        self,
        title: str,
        names: Sequence[str],
        *,
        height: int = 170,
        starts: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self._names, self._logarithmic = names, options.get("y_axis_type") == "log"
        steps = DataRange1d(start=0, default_span=20)  # a single step must not give an axis from -1 to 1
        self.figure = theme.plot(title, height=height, x_axis_label="step", x_range=steps, **options)
        self.figure.xaxis.ticker = BasicTicker(min_interval=1)
        self._source = ColumnDataSource({"step": [0], **{name: [1.0] for name in names}})
        self._now = ColumnDataSource({"step": [], **{name: [] for name in names}})
        self._beside = ColumnDataSource({"step": [], **{name: [] for name in names}})
        lines = [(name, self._source, name if len(names) > 1 else "") for name in names]
        if starts:
            lines = [(names[0], self._source, starts[0]), (names[0], self._beside, starts[1])]
        for k, (name, source, label) in enumerate(lines):
            legend = {"legend_label": label} if label else {}
            look = {"color": theme.SERIES[k], "line_dash": theme.DASHES[k]}
            self.figure.line("step", name, source=source, line_width=1.8, **look, **legend)
            if source is self._source:
                self.figure.scatter("step", name, source=self._now, size=7, color=theme.SERIES[k])
        if any(label for _, _, label in lines):
            theme.quiet_legend(self.figure)
            self.figure.legend.visible = not starts
        self.figure.add_tools(HoverTool(mode="vline", tooltips=[(name, f"@{{{name}}}") for name in names]))

    def mark(self, level: float) -> None:
        """Draw a horizontal line at a reference level."""
        line = Span(location=level, dimension="width", line_color=theme.WARM, line_dash="dashed")
        self.figure.add_layout(line)

    def show(self, steps: Any, **values: Any) -> None:
        """Show values (n,), by their names, against steps (n,), with a dot at the end of each curve.

        Values that are not finite leave gaps. At most `MOST_POINTS` steps are sent.
        """
        self._source.data = shown = _thinned(steps, values)
        self._now.data = {name: column[-1:].tolist() for name, column in shown.items()}
        self._tick()

    def end_at(self, step: int, **values: float) -> None:
        """Move the dot of each named curve to `step` and its given value, until `show` is called again."""
        self._now.data = {"step": [step], **{name: [value] for name, value in values.items()}}

    def show_beside(self, steps: Any, **values: Any) -> None:
        """Show values (n,), by their names, of the second run against its steps (n,), and a legend.

        Without steps, the curve and the legend vanish.
        """
        self._beside.data = _thinned(steps, values)
        self.figure.legend.visible = len(steps) > 0
        self._tick()

    def _tick(self) -> None:
        """Choose round ticks for the vertical axis, if it is logarithmic."""
        if self._logarithmic:
            both = [source.data[name] for source in (self._source, self._beside) for name in self._names]
            theme.tick(self.figure.yaxis[0], np.concatenate(both))


def _thinned(steps: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of curves at up to `MOST_POINTS` steps; values that are not finite become NaN."""
    kept = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), MOST_POINTS)).round().astype(int))
    shown = {name: np.where(np.isfinite(curve), curve, np.nan)[kept] for name, curve in values.items()}
    return {"step": steps[kept], **shown}


def _segments(past: Array) -> dict[str, Any]:
    """Return the columns of the segments of trails through points (TRAIL + 1, tokens, 2)."""
    begin, end = _drawn(past[:-1].reshape(-1, 2)), _drawn(past[1:].reshape(-1, 2))
    return {"x0": begin[0], "y0": begin[1], "x1": end[0], "y1": end[1]}


def _drawn(points: Array) -> Any:
    """Return x and y of points (n, 2) in the form in which the page gets them.

    Up to `LONG` points are lists, rounded to about 1e-5 of their extent: lists are part of the message of a
    frame, whereas each array takes two more. More points are arrays of float32, which are then faster.
    """
    if len(points) > LONG:
        return points.T.astype(np.float32)
    extent = np.abs(points).max(initial=0.0)
    digits = 5 - int(np.floor(np.log10(extent))) if 0 < extent < np.inf else 5
    return points.T.round(digits).tolist()
