"""The common design of all views: colors of classes, figures, controls, and their layout."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.models import (
    Button,
    Checkbox,
    Column,
    CustomJS,
    CustomJSTickFormatter,
    Div,
    FixedTicker,
    Plot,
    Range1d,
    Select,
    Slider,
    Spinner,
)
from bokeh.plotting import figure
from numpy.typing import NDArray

from analysis.plots import palette
from grokphys.explorer.runs.ticks import log_ticks

INK, SOFT, LINE, PAPER = "#1d2733", "#5c6773", "#dcd7cc", "#fbfaf7"
WARM = "#c2502f"
DASHES = ("solid", "dashed", "dotted", "dotdash", "dashdot", "solid")
"""Dashes of the curves that have the colors `SERIES`; only the first and the sixth curve share theirs."""
FONT = '"Inter", "Source Sans 3", "Segoe UI", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif'

SQUARE = """
if (!plot.properties.inner_height.is_unset && plot.inner_height > 0) {
  const half = plot.y_range.end * plot.inner_width / plot.inner_height
  plot.x_range.setv({start: -half, end: half})
}
"""
"""Script that keeps units equal on both axes for every size of the page."""

LARGEST_SEED = 10**6
LARGEST_MODULUS = 200
"""Largest modulus that a page accepts, beyond every sum of two of its tokens."""
WRITTEN = "return String(Number(tick.toPrecision(6)))"
"""Script that writes a tick without an exponent, unless it is below 1e-6 or at least 1e21."""

NARROWEST = 0.25
"""Smallest ratio of width to height that `bounds` uses; a narrower figure is still being laid out."""

STAGE_CSS = """
:host { display: grid !important; grid-template-columns: minmax(200px, 264px) minmax(0, 1fr); gap: 14px;
  align-items: start;
  width: 100%; margin: 0; }
@media (max-width: 760px) { :host { grid-template-columns: minmax(0, 1fr); } }
"""
CARD_CSS = """
:host { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px;
  margin: 0;
  box-sizing: border-box; width: 100% !important; min-width: 0; }
"""
CONTROLS_CSS = CARD_CSS + "@media (max-width: 760px) { :host { order: 2; } }"
GRID_CSS = """
:host { display: grid !important; gap: 14px; width: 100%; margin: 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, max(285px, 100% / var(--columns) - 14px)), 1fr)); }
"""
CONTROL_CSS = """
:host { font: 13px var(--font); color: var(--ink); }
label, .bk-slider-title { font-size: 12.5px; color: var(--ink); margin-bottom: 1px; }
.bk-slider-value { font-weight: 600; color: var(--ink); font-variant-numeric: tabular-nums; }
.noUi-target { background: var(--track); border: 0; box-shadow: none; height: 5px; border-radius: 3px; }
.noUi-connect { background: var(--accent) !important; }
.noUi-horizontal .noUi-handle { width: 15px; height: 15px; right: -8px; top: -5px; border-radius: 50%;
  border: 2px solid var(--accent); background: var(--card); box-shadow: none; }
.noUi-handle::before, .noUi-handle::after { display: none; }
.noUi-handle:focus-visible { outline: 2px solid var(--warm); outline-offset: 2px; }
.bk-input { border: 1px solid var(--line); border-radius: 5px; background: var(--paper); color: var(--ink);
  font-size: 13px; height: 30px; min-height: 30px; padding: 2px 8px; }
select.bk-input:not([multiple]):not([size]) { padding-right: 22px; appearance: none;
  background-repeat: no-repeat;
  background-image: linear-gradient(45deg, transparent 50%, var(--ink) 50%),
    linear-gradient(-45deg, transparent 50%, var(--ink) 50%);
  background-position: right 11px center, right 7px center; background-size: 4px 5px; }
@media (prefers-color-scheme: dark) { .bk-spin-btn { filter: invert(0.8); }
  select.bk-input { color-scheme: dark; } }
.bk-input:focus { border-color: var(--accent); box-shadow: none;
  outline: 2px solid var(--accent); outline-offset: 1px; }
.bk-btn:focus-visible, input[type=checkbox]:focus-visible {
  outline: 2px solid var(--warm); outline-offset: 2px; }
.bk-input[type=file] { height: auto; padding: 4px 6px; font-size: 12px; }
.bk-btn { border: 1px solid var(--line); border-radius: 5px; background: var(--paper); color: var(--ink);
  font-size: 13px;  padding: 4px 10px; box-shadow: none; }
.bk-btn:hover { background: var(--hover); }
.bk-btn.bk-active { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
input[type=checkbox] { accent-color: var(--accent); }
"""
HEADING_CSS = """
:host { margin: 0; }
h2 { font: 600 11px var(--font);
  letter-spacing: 0.07em; text-transform: uppercase; color: var(--soft); margin: 8px 0 2px; }
h3 { font: 600 13px var(--font); color: var(--ink); margin: 0 0 6px; }
.why { border: 1px solid var(--line); border-radius: 50%; background: none; color: var(--soft);
  font: 10px/14px var(--font);  width: 16px; height: 16px; padding: 0; margin-left: 6px; cursor: pointer; }
.why:focus-visible { outline: 2px solid var(--warm); outline-offset: 1px; }
p { font: 12.5px/1.45 var(--font);
  color: var(--soft); margin: 2px 0 4px; }
"""
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
GRAPHICS = 3.1
"""Least contrast of thin curves to the color `PAPER`: 3 as WCAG 2.2 asks, and a little for rounding."""
FAINT = "#8d887d"
"""Color of curves and lines in the background, whose contrast to `PAPER` is at least `GRAPHICS`."""
INVERT = 0.97
FIGURE_CSS = f"""
.bk-Canvas {{ clip-path: inset(1px 0 0 1px); }}
@media (prefers-color-scheme: dark) {{ .bk-Canvas {{ filter: invert({INVERT}) hue-rotate(180deg); }} }}
"""
"""Style of figures: in dark mode their lightness is inverted, while hues stay nearly the same.

Bokeh leaves a line at two edges of a canvas without a border color; the clip path hides it.
"""


def class_colors(count: int) -> list[str]:
    """Return one color (#rrggbb) for each of `count` classes or tokens, as in the library's figures."""
    return [
        "#" + bytes(color).hex()
        for color in np.rint(255 * palette.class_colors(count)[:, :3]).astype(np.uint8)
    ]


def text_colors(colors: Sequence[str], *, dark: bool = False) -> list[str]:
    """Return black or white for text on each of the background colors (#rrggbb), by the larger contrast.

    If `dark` is True, the contrast is that of dark mode, in which figures invert text and background.
    """
    return [_text_color(color, dark) for color in colors]


@lru_cache(1000)
def _text_color(color: str, dark: bool) -> str:
    shown = inverted if dark else np.asarray
    light = luminance(shown(_rgb(color)))
    return max("#000000", "#ffffff", key=lambda text: contrast(luminance(shown(_rgb(text))), light))


@lru_cache(1000)
def darker(color: str, least: float = 4.5) -> str:
    """Return a color (#rrggbb), darkened until its contrast to the color `PAPER` is at least `least`.

    The default 4.5 is enough for text (WCAG 2.2). The hue stays, and a color of enough contrast is unchanged.
    """
    linear = _linear(_rgb(color))
    most = (luminance(_rgb(PAPER)) + 0.05) / least - 0.05
    linear = linear * min(1.0, most / max(float(linear @ LUMINANCE), 1e-9))
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + np.floor(255 * rgb + 1e-6).astype(np.uint8).tobytes().hex()


def line_colors(count: int) -> list[str]:
    """Return `class_colors`, darkened for thin curves to a contrast of at least `GRAPHICS`."""
    return [darker(color, GRAPHICS) for color in class_colors(count)]


def luminance(rgb: NDArray[np.float64]) -> float:
    """Return the relative luminance (WCAG 2.2), from 0 to 1, of red, green and blue (3,) from 0 to 1."""
    return float(_linear(rgb) @ LUMINANCE)


def contrast(one: float, other: float) -> float:
    """Return the contrast of two relative luminances (WCAG 2.2), from 1 to 21."""
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def inverted(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the color that dark mode (`FIGURE_CSS`) shows for red, green and blue (3,) from 0 to 1."""
    turned = INVERT + (1 - 2 * INVERT) * rgb
    rows = 2 * np.array([[0.213, 0.715, 0.072]]) - np.eye(3)  # hue-rotate(180deg)
    return np.clip(rows @ turned, 0, 1)


def _linear(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _rgb(color: str) -> NDArray[np.float64]:
    """Return red, green and blue of "#rrggbb" from 0 to 1, shape (3,)."""
    return np.frombuffer(bytes.fromhex(color[1:]), np.uint8) / 255


SERIES = tuple(darker(color, 4.0) for color in palette.SERIES)
"""Colors of curves: those of the library's figures, with a contrast to `PAPER` of at least 4."""


def plot(title: str, *, height: int = 300, square: bool = False, **options: Any) -> Any:
    """Return an empty Bokeh figure in the design of the explorer.

    Parameters
    ----------
    title : str
        Title, which the figure itself does not show, but its `card`.
    height : int, default 300
        Height in pixels.
    square : bool, default False
        Whether the figure shows a plane around the origin: its two axes have equal units and are not drawn,
        and `zoom` chooses its range.
    **options
        Further arguments of Bokeh's `figure`.
    """
    if square:
        options |= {"x_range": Range1d(-1, 1), "y_range": Range1d(-1, 1)}
        options |= {"x_axis_location": None, "y_axis_location": None}
    made = figure(
        name=title,
        height=height,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        background_fill_color=PAPER,
        border_fill_color=None,  # the card shows through, in light and in dark mode
        outline_line_color=LINE,
        min_border=4,
        stylesheets=[FIGURE_CSS],
        **options,
    )
    for axis in made.axis:
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_style, axis.axis_label_text_font_size = "normal", "12px"
        axis.axis_label_text_color = axis.major_label_text_color = SOFT
        axis.major_label_text_font_size = "11px"
        axis.axis_line_color = axis.major_tick_line_color = LINE
        axis.minor_tick_line_color = None
    made.grid.grid_line_color, made.grid.visible = "#ece8df", not square
    if square:
        keep = CustomJS(args={"plot": made}, code=SQUARE)
        for owner, name in ((made, "inner_width"), (made, "inner_height"), (made.y_range, "end")):
            owner.js_on_change(name, keep)
        made.tags = [1.0]
        for name in ("inner_width", "inner_height"):
            made.on_change(name, lambda _name, _old, _new: zoom(made))
    return made


def tick(axis: Any, values: Any) -> None:
    """Give a logarithmic axis of Bokeh round, labeled ticks over the range of its `values`, a little widened.

    Only finite positive values count; without any, the axis stays as it is.
    """
    seen = np.asarray(values)
    seen = seen[np.isfinite(seen) & (seen > 0)]
    if not len(seen):
        return
    low, high = float(seen.min()), float(seen.max())
    beyond = 10.0 if low == high else (high / low) ** 0.05  # as Bokeh chooses the ends of the axis
    ticks = log_ticks(low / beyond, high * beyond)
    if not isinstance(axis.ticker, FixedTicker):
        axis.ticker, axis.formatter = FixedTicker(), CustomJSTickFormatter(code=WRITTEN)
    if axis.ticker.ticks != ticks:
        axis.ticker.ticks = ticks


def bounds(plane: Any) -> tuple[float, float, float, float]:
    """Return left, right, bottom and top of the range of a square figure of Bokeh.

    Left and right follow from the shape of the figure, which is taken as 3:2 until the page has drawn it.
    """
    top = float(plane.y_range.end)
    try:
        aspect = max(plane.inner_width / plane.inner_height or 1.5, NARROWEST)
    except (UnsetValueError, ZeroDivisionError):  # the page has not drawn the figure yet
        aspect = 1.5
    return -top * aspect, top * aspect, -top, top


def limits(shown: Any) -> tuple[float | None, float | None, float | None, float | None]:
    """Return left, right, bottom and top of what a figure of Bokeh shows.

    An end is None if the page chooses it from the data, so that the session does not know it.
    """
    if shown.tags:
        return bounds(shown)
    ends = shown.x_range.start, shown.x_range.end, shown.y_range.start, shown.y_range.end
    left, right, bottom, top = (
        float(end) if isinstance(end, int | float) and np.isfinite(end) else None for end in ends
    )
    return left, right, bottom, top


def quiet_legend(plot: Any, columns: int = 4) -> None:
    """Place the legend of a figure above it, where it hides no curve, in as many as `columns` columns."""
    legend = plot.legend
    legend.orientation, legend.ncols, legend.margin = "horizontal", columns, 0
    legend.background_fill_alpha, legend.border_line_alpha, legend.padding = 0.0, 0.0, 2
    plot.add_layout(plot.legend[0], "above")
    legend.label_text_font, legend.label_text_font_size, legend.spacing = FONT, "11px", 14
    legend.glyph_height = 14


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


def card(shown: Any, *below: Any) -> Any:
    """Return a card with the model `shown`, its title above it if it is a figure, and the models `below`."""
    title = getattr(shown, "name", "") if isinstance(shown, Plot) else ""
    above = [Div(text=f"<h3>{title}</h3>", stylesheets=[HEADING_CSS], margin=0)] if title else []
    return column(*above, shown, *below, stylesheets=[CARD_CSS])


def grid(*cards: Any, columns: int = 2) -> Any:
    """Return cards in `columns` columns, or in fewer on a narrow page."""
    return column(*cards, stylesheets=[GRID_CSS], styles={"--columns": str(columns)})


def column(*children: Any, **options: Any) -> Any:
    """Return models below each other in a column of full width; `options` are those of Bokeh's Column."""
    return Column(children=list(children), sizing_mode="stretch_width", margin=0, **options)


def stage(controls: Sequence[Any], *rows: Any) -> Any:
    """Return the layout of a view: controls to the left of rows of cards, or below them on a narrow page."""
    side = column(*controls, stylesheets=[CONTROLS_CSS], tags=["controls"])
    main = column(*rows, spacing=14, stylesheets=[":host { min-width: 0; }"])
    return column(column(side, main, stylesheets=[STAGE_CSS]))  # the outer column can be made invisible


def heading(title: str, text: str = "", *, terms: Sequence[str] = ()) -> Any:
    """Return a small heading among controls, with a text below it and a (?) that explains `terms`, if any."""
    words = "|".join(terms)
    label = f"What is {', '.join(terms)}?"
    click = f"window.grokphys.explain(this, '{words}')"
    why = f'<button class="why" aria-label="{label}" onclick="{click}">?</button>' if terms else ""
    body = f"<h2>{title}{why}</h2>" + (f"<p>{text}</p>" if text else "")
    return Div(text=body, stylesheets=[HEADING_CSS], sizing_mode="stretch_width", margin=0)


def control(kind: type[Any], name: str, **options: Any) -> Any:
    """Return a Bokeh widget of the class `kind` with a label, as wide as the column of controls."""
    options["label" if kind in (Button, Checkbox) else "title"] = name
    return kind(stylesheets=[CONTROL_CSS], sizing_mode="stretch_width", margin=(3, 2), **options)


def slider(name: str, start: float, end: float, value: float, step: float = 1, **options: Any) -> Any:
    """Return a labeled slider from `start` to `end` in steps of `step`."""
    return control(Slider, name, start=start, end=end, value=value, step=step, **options)


def number(
    name: str, value: float, low: float | None = None, high: float | None = None, **options: Any
) -> Any:
    """Return a field for a number from `low` to `high`, where None sets no limit.

    The number must be whole unless the option `mode` is "float".
    """
    return control(Spinner, name, value=value, low=low, high=high, **({"mode": "int"} | options))


def modulus(name: str) -> Any:
    """Return a field for a modulus, where 0 means none; its arrows skip 1, which no modulus can be."""
    field = number(name, 0, 0, LARGEST_MODULUS)

    def skip(_name: str, old: float, new: float) -> None:
        if new == 1 and old in (0, 2):
            field.value = 2 - old

    field.on_change("value", skip)
    return field


def chooser(name: str, options: Sequence[str] | Mapping[str, Any], **more: Any) -> Any:
    """Return a selection list of words, or of values by their labels, with the first one chosen."""
    listed = choices(options) if isinstance(options, Mapping) else list(options)
    first = next(iter(options.values() if isinstance(options, Mapping) else options))
    return control(Select, name, options=listed, **({"value": first} | more))


def choices(options: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return values by their labels as pairs (value, label), the form of the options of Bokeh's Select."""
    return [(value, word) for word, value in options.items()]
