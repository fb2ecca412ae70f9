"""The common design of all views: colors, figures, controls, and their layout."""

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.core.property.descriptors import UnsetValueError
from bokeh.models import (
    BasicTicker,
    BasicTickFormatter,
    Button,
    CategoricalSlider,
    Checkbox,
    Column,
    CustomJS,
    Div,
    FixedTicker,
    Legend,
    LogAxis,
    NoOverlap,
    Plot,
    Range1d,
    Select,
    Slider,
)
from bokeh.plotting import figure

from grokphys.explorer.panels import Panel
from grokphys.explorer.runs.common import sections
from physics.checks import flag
from physics.errors import InputError

SOFT, LINE, PAPER = "#5c6773", "#dcd7cc", "#fbfaf7"
"""Colors of labels, of axes and frames, and of the background of figures; dark mode inverts figures."""
FONT = '"Inter", "Source Sans 3", "Segoe UI", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif'
LARGEST_SEED = 10**6
LOG_TICKS = [factor * 10.0**power for power in range(-12, 13) for factor in (1, 2, 5)]
"""Ticks of logarithmic axes."""
SQUARE = """
if (!plot.properties.inner_height.is_unset && plot.inner_height > 0) {
  const half = plot.y_range.end * plot.inner_width / plot.inner_height
  plot.x_range.setv({start: -half, end: half})
}
"""
"""Script that keeps units equal on both axes for every size of the page."""


CSS = sections("parts.css", r"/\* (\w+) \*/")

# -- figures -----------------------------------------------------------------------------------------------


def plot(panel: Panel, height: int, *, square: bool = False, whole: int = 0, **options: Any) -> Any:
    """Return an empty Bokeh figure in the design of the explorer.

    Parameters
    ----------
    panel : Panel
        What it will show; its title and hint are those of the `card`.
    height : int
        Height in pixels.
    square : bool, default False
        Whether the figure shows a plane around the origin: its two axes have equal units and are not drawn,
        and `zoom` chooses its range.
    whole : int, default 0
        About the largest number of ticks on each axis, which are then whole numbers.
    **options
        Further arguments of Bokeh's `figure`.
    """
    title = f"{panel.title} ({panel.hint})" if panel.hint else panel.title
    if square:
        options |= {"x_range": Range1d(-1, 1), "y_range": Range1d(-1, 1)}
        options |= {"x_axis_location": None, "y_axis_location": None}
    looks = {"background_fill_color": PAPER, "border_fill_color": None, "outline_line_color": LINE}
    made = figure(
        name=title, height=height, sizing_mode="stretch_width", toolbar_location=None, tools="", min_border=4,
        stylesheets=[CSS["figure"]], **looks, **options,
    )  # fmt: skip
    for axis in made.axis:
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_style, axis.axis_label_text_font_size = "normal", "12px"
        axis.axis_label_text_color = axis.major_label_text_color = SOFT
        axis.major_label_text_font_size = "11px"
        axis.axis_line_color = axis.major_tick_line_color = LINE
        axis.minor_tick_line_color = None
        if whole:
            axis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=whole)
        if isinstance(axis, LogAxis):
            axis.ticker, axis.formatter = FixedTicker(ticks=LOG_TICKS), BasicTickFormatter()
            axis.major_label_policy = NoOverlap()
    made.grid.grid_line_color, made.grid.visible = "#ece8df", not square
    if square:
        keep = CustomJS(args={"plot": made}, code=SQUARE)
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


def legend(plot: Any, columns: int = 4) -> Any:
    """Return an empty legend above a figure, where it hides no curve, of as many as `columns` columns."""
    above = Legend(
        orientation="horizontal", ncols=columns, margin=0, padding=2, spacing=14, glyph_height=14,
        background_fill_alpha=0.0, border_line_alpha=0.0, label_text_font=FONT, label_text_font_size="11px",
        visible=False,
    )  # fmt: skip
    plot.add_layout(above, "above")
    return above


# -- layout ------------------------------------------------------------------------------------------------


def column(*children: Any, **options: Any) -> Any:
    """Return models below each other in a column of full width; `options` are those of Bokeh's Column."""
    return Column(children=list(children), sizing_mode="stretch_width", margin=0, **options)


def card(shown: Any, *below: Any) -> Any:
    """Return a card with the model `shown`, its title above it if it is a figure, and the models `below`."""
    title = shown.name if isinstance(shown, Plot) else ""
    above = [Div(text=f"<h3>{title}</h3>", stylesheets=[CSS["heading"]], margin=0)] if title else []
    return column(*above, shown, *below, stylesheets=[CSS["card"]])


def grid(*cards: Any, columns: int = 2) -> Any:
    """Return cards in `columns` columns, or in fewer on a narrow page."""
    return column(*cards, stylesheets=[CSS["grid"]], styles={"--columns": str(columns)})


def stage(controls: Sequence[Any], *rows: Any) -> Any:
    """Return the layout of a view: controls to the left of rows of cards, or below them on a narrow page."""
    side = column(*controls, stylesheets=[CSS["controls"]], tags=["controls"])
    main = column(*rows, spacing=14, stylesheets=[":host { min-width: 0; }"])
    return column(column(side, main, stylesheets=[CSS["stage"]]))  # the outer column can be made invisible


def heading(title: str, text: str = "", *, terms: Sequence[str] = ()) -> Any:
    """Return a small heading among controls, with a text below it and a (?) that explains `terms`, if any."""
    click = f"window.grokphys.explain(this, '{'|'.join(terms)}')"
    label = f"What is {', '.join(terms)}?"
    why = f'<button class="why" aria-label="{label}" onclick="{click}">?</button>' if terms else ""
    body = f"<h2>{title}{why}</h2>" + (f"<p>{text}</p>" if text else "")
    return Div(text=body, stylesheets=[CSS["heading"]], sizing_mode="stretch_width", margin=0)


# -- controls ----------------------------------------------------------------------------------------------


def control(kind: type[Any], label: str, **options: Any) -> Any:
    """Return a Bokeh widget of the class `kind` with a label, as wide as the column of controls."""
    options["label" if kind in (Button, Checkbox) else "title"] = label
    return kind(stylesheets=[CSS["control"]], sizing_mode="stretch_width", margin=(3, 2), **options)


def choices(options: Sequence[str] | Mapping[Any, str]) -> Any:
    """Return the options of Bokeh's Select: words, or pairs (value, label) of labels by their values."""
    return list(options.items()) if isinstance(options, Mapping) else list(options)


def attribute(widget: Any) -> str:
    """Return the name of the property that holds the value of a widget."""
    return "active" if isinstance(widget, Checkbox) else "value"


def checked(widget: Any, value: Any) -> Any:
    """Return a value for a widget, as an int where the widget holds whole numbers.

    Raises
    ------
    InputError
        If the widget does not allow the value.
    """
    if isinstance(widget, Checkbox):
        return flag(widget.label, value)
    if isinstance(widget, Select | CategoricalSlider):
        listed = widget.options if isinstance(widget, Select) else widget.categories
        values = [word if isinstance(word, str) else word[0] for word in listed]
        if value in values and not isinstance(value, bool):
            return value
        raise InputError(
            f"{widget.title} must be one of {', '.join(map(str, values)):.150}, got {value!r:.80}"
        )
    low, high = (widget.start, widget.end) if isinstance(widget, Slider) else (widget.low, widget.high)
    step = widget.step if isinstance(widget, Slider) else 1 if widget.mode == "int" else 0.5
    whole = all(float(part).is_integer() for part in (low, high, step))
    if type(value) not in (int, float) or not low <= value <= high or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        shown = "nothing" if value is None else f"{value!r:.80}"
        raise InputError(f"{widget.title} must be {kind} from {low:g} to {high:g}, got {shown}")
    return int(value) if whole else value
