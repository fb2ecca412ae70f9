"""Figures of neurons: magnitudes of frequencies as bars, logits as a map."""

from typing import Any

import numpy as np
from bokeh.models import BasicTicker, ColumnDataSource, HoverTool, LinearColorMapper
from bokeh.palettes import RdBu11
from numpy.typing import NDArray

from grokphys.explorer import theme

Array = NDArray[np.float64]


class Bars:
    """A Bokeh `figure` with a bar for the magnitude of each frequency, in the color of that frequency."""

    def __init__(self, title: str) -> None:
        self.figure = theme.plot(title, height=210, x_axis_label="frequency k")
        self.figure.xaxis.ticker = BasicTicker(min_interval=1)
        self.figure.y_range.start = 0
        self._source = ColumnDataSource({"k": [], "top": [], "fill": []})
        bars = self.figure.vbar(
            x="k", top="top", width=0.8, source=self._source, fill_color="fill", line_color="#444444"
        )
        self.figure.add_tools(HoverTool(renderers=[bars], tooltips=[("k", "@k"), ("magnitude", "@top")]))

    def show(self, magnitude: Array) -> None:
        """Show the magnitudes, shape (count,), of the frequencies 1 to count."""
        count = len(magnitude)
        fill = theme.class_colors(count)
        self._source.data = {"k": np.arange(1, count + 1), "top": magnitude, "fill": fill}


class HeatMap:
    """A Bokeh `figure` of logits as a map of colors, with a row for each sum and a column for each answer.

    Positive logits are red, and negative ones blue.
    """

    def __init__(self, title: str, height: int) -> None:
        self.figure = theme.plot(
            title, height=height, x_axis_label="answer", y_axis_label="a + b", x_range=(0, 1), y_range=(0, 1)
        )
        for axis in self.figure.axis:
            axis.ticker = BasicTicker(min_interval=1)
        self.figure.grid.visible = False
        self._source = ColumnDataSource({"image": [], "size": []})
        self._colors = LinearColorMapper(palette=RdBu11, low=-1, high=1)
        self.figure.image(
            "image", x=-0.5, y=-0.5, dw="size", dh="size", source=self._source, color_mapper=self._colors
        )

    def show(self, logits: Any) -> None:
        """Show logits, shape (tokens, tokens): rows are sums modulo `tokens`, columns are answers."""
        tokens, limit = len(logits), float(np.abs(logits).max()) or 1.0
        self._colors.update(low=-limit, high=limit)
        self._source.data = {"image": [logits.astype(np.float32)], "size": [tokens]}
        for side in (self.figure.x_range, self.figure.y_range):
            side.update(start=-0.5, end=tokens - 0.5)
