"""The changes that a page may make: allowed values of widgets, commands, and events of the pointer.

By itself, Bokeh lets the client of a websocket set any property of any model, and add models. Therefore every
change of a page is checked here before it reaches the document. What a widget allows is read from the
document, where pages cannot change it.
"""

from collections.abc import Callable
from typing import Any

from bokeh.core.serialization import Serialized
from bokeh.document import Document
from bokeh.models import (
    Button,
    CategoricalSlider,
    Checkbox,
    ColumnDataSource,
    Plot,
    PointDrawTool,
    Select,
    Slider,
    Spinner,
    TextInput,
)

from grokphys.explorer.bridge import Bridge
from physics.errors import InputError

LONGEST_TEXT, LONGEST_ORDER = 1000, 20_000
"""Largest numbers of characters of a text field, and of a command, which may be a link."""
LARGEST_NUMBER = 10**12
"""Largest absolute value of a number from a page."""
LARGEST_PAGE = 10**5
"""Largest size of a figure in pixels."""


class Ignored(Exception):  # noqa: N818 - raised for a change that is dropped without a message
    """Raised for a change that pages of the explorer do not make, which is dropped without a message."""


def guard(document: Document, refuse: Callable[[Exception], None]) -> None:
    """Let a document apply only those changes of its page that `allowed` accepts.

    Parameters
    ----------
    document : bokeh.document.Document
        Document of a page.
    refuse : callable
        Function that is called with the `InputError` about a value that a widget does not allow, after the
        old value was sent back to the page.
    """
    apply = document.apply_json_patch

    def apply_allowed(patch_json: Any, *, setter: Any = None) -> None:
        """Apply the allowed events of a page one by one."""
        content = patch_json.content if isinstance(patch_json, Serialized) else patch_json
        events = content.get("events") if isinstance(content, dict) else None
        for event in events if isinstance(events, list) else ():
            try:
                found = allowed(document, event)
            except Ignored:
                continue
            except InputError as error:
                _return(document, event)
                refuse(error)
                continue
            apply({"events": [found]}, setter=setter)

    document.apply_json_patch = apply_allowed
    document.replace_with_json = lambda _json: None  # a page may not replace the document


def _return(document: Document, event: Any) -> None:
    """Send the value of a property back to a page whose change of it was refused."""
    model, name = document.get_model_by_id(event["model"]["id"]), event["attr"]
    shown = getattr(model, name)
    document.callbacks.notify_change(model, name, shown, shown)


def allowed(document: Document, event: Any) -> dict[str, Any]:
    """Return the event of a page in the form in which it may be applied.

    Parameters
    ----------
    document : bokeh.document.Document
        Document of the page.
    event : object
        Event that the page has sent, of any form.

    Returns
    -------
    dict of str to object
        Event in the form of Bokeh, with checked values.

    Raises
    ------
    InputError
        If the event sets a widget to a value that the widget does not allow.
    Ignored
        If the event is anything else that pages of the explorer do not send.
    """
    match event:
        case {"kind": "ModelChanged", "model": {"id": str(key)}, "attr": str(name), "new": new}:
            model = document.get_model_by_id(key)
            value = _check(model, name)(model, new)
            return {"kind": "ModelChanged", "model": {"id": key}, "attr": name, "new": value}
        case {
            "kind": "MessageSent",
            "msg_type": "bokeh_event",
            "msg_data": {"type": "event", "name": str(name), "values": {"entries": [*entries]}},
        }:
            values = _happened(document, name, entries)
            data = {"type": "event", "name": name, "values": {"type": "map", "entries": values}}
            return {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": data}
    raise Ignored


def checked(model: Any, name: str, value: Any) -> Any:
    """Return the value of a widget's property that a page or a link gives, if the widget allows it.

    A number of a widget for whole numbers is returned as an int.

    Raises
    ------
    InputError
        If the widget does not allow the value.
    Ignored
        If pages may not change the property called `name`.
    """
    return _check(model, name)(model, value)


def _check(model: Any, name: str) -> Callable[[Any, Any], Any]:
    """Return the function of `CHECKS` for a property; raise `Ignored` if there is none."""
    for kind, known, check in CHECKS:
        if isinstance(model, kind) and name == known:
            return check
    raise Ignored


# -- widgets, whose wrong values are refused by an InputError --------------------------------------------


def _ranged(slider: Any, value: Any) -> float:
    """Return a number between the ends of a slider, as an int if ends and step are whole; refuse others."""
    whole = all(float(bound).is_integer() for bound in (slider.start, slider.end, slider.step))
    return _within(slider.title, value, slider.start, slider.end, whole=whole)


def _typed(spinner: Any, value: Any) -> float:
    """Return a number within the limits of a field, as an int if its mode is "int"; refuse others."""
    low = -LARGEST_NUMBER if spinner.low is None else spinner.low
    high = LARGEST_NUMBER if spinner.high is None else spinner.high
    return _within(spinner.title, value, low, high, whole=spinner.mode == "int")


def _within(title: str, value: Any, low: float, high: float, *, whole: bool) -> float:
    """Return a number from `low` to `high`, as an int if it must be whole; refuse any other value."""
    if not is_number(value, whole=whole) or not low <= value <= high:
        allowed = f"{'a whole number' if whole else 'a number'} from {low:.12g} to {high:.12g}"
        raise _wrong(title, allowed, value)
    return int(value) if whole else value


def _listed(select: Any, value: Any) -> Any:
    """Return a value that is among the options of a selection list; refuse any other value."""
    pairs = [option if isinstance(option, tuple) else (option, option) for option in select.options]
    if not any(type(value) is type(known) and value == known for known, _ in pairs):
        raise _wrong(select.title, f"one of {', '.join(word for _, word in pairs)}", value)
    return value


def _category(slider: Any, value: Any) -> Any:
    if value not in slider.categories:
        raise _wrong(slider.title, f"one of {', '.join(slider.categories)}", value)
    return value


def _switched(box: Any, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(box.label, "on or off", value)
    return value


def _written(field: Any, value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise _wrong(field.title, f"at most {LONGEST_TEXT} characters long", value)
    return value


def _wrong(name: str, allowed: str, value: Any) -> InputError:
    shown = "nothing" if value is None else repr(value)
    return InputError(f"{name} must be {allowed}, got {shown if len(shown) < 80 else shown[:77] + '…'}")


# -- the page, whose wrong values raise Ignored ----------------------------------------------------------


def _order(_bridge: Any, value: Any) -> list[Any]:
    """Return a command of the page: a list of its number, its name, and a number, a text or None."""
    match value:
        case [int(count), str(name), int() | float() | str() | None as given] if (
            0 <= count <= LARGEST_NUMBER and len(name) + len(str(given)) <= LONGEST_ORDER
        ):
            return [count, name, given]
    raise Ignored


def _seen(bridge: Any, value: Any) -> int:
    """Return the number of the last frame that the page has drawn, if the session has sent this frame."""
    if is_number(value, whole=True) and 0 <= value <= bridge.frame:
        return int(value)
    raise Ignored


def _pixels(_plot: Any, value: Any) -> int:
    if is_number(value, whole=True) and 0 <= value <= LARGEST_PAGE:
        return int(value)
    raise Ignored


def _dragged(source: Any, value: Any) -> dict[str, Any]:
    """Return the columns of a source of draggable points with new coordinates in its columns x and y."""
    tools = source.document.select({"type": PointDrawTool})
    if not any(source is renderer.data_source for tool in tools for renderer in tool.renderers):
        raise Ignored
    columns = dict(source.data)
    match value:
        case {"type": "map", "entries": [*entries]}:
            found = _pairs(entries)
            for name in ("x", "y"):
                places = found.get(name)
                if not isinstance(places, list) or len(places) != len(columns[name]):
                    raise Ignored
                if not all(map(is_number, places)):
                    raise Ignored
                columns[name] = places
            return {"type": "map", "entries": [[name, column] for name, column in columns.items()]}
    raise Ignored


def _happened(document: Document, name: str, entries: list[Any]) -> list[list[Any]]:
    """Return the names and values of a click on a button, or of a tap or a drag in a figure."""
    values = _pairs(entries)
    match values.get("model"):
        case {"id": str(key)}:
            model = document.get_model_by_id(key)
        case _:
            raise Ignored
    if name == "button_click" and isinstance(model, Button):
        return [["model", {"id": key}]]
    if name in ("tap", "panstart", "panend") and isinstance(model, Plot):
        places = [[axis, values.get(axis)] for axis in ("x", "y")]
        if all(is_number(place) for _, place in places):
            return [["model", {"id": key}], *places]
    raise Ignored


def _pairs(entries: list[Any]) -> dict[str, Any]:
    """Return the entries of a map whose names are text, as a dict; leave out all others."""
    return {
        entry[0]: entry[1]
        for entry in entries
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)
    }


def is_number(value: Any, *, whole: bool = False) -> bool:
    """Return whether a value from a page is a number of at most `LARGEST_NUMBER` in size, and no truth value.

    If `whole` is True, the number must also be whole, such as 2 or 2.0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= LARGEST_NUMBER and (not whole or value == int(value))  # False for NaN


CHECKS: tuple[tuple[type, str, Callable[[Any, Any], Any]], ...] = (
    (Slider, "value", _ranged),
    (Spinner, "value", _typed),
    (Select, "value", _listed),
    (CategoricalSlider, "value", _category),
    (Checkbox, "active", _switched),
    (TextInput, "value", _written),
    (Bridge, "command", _order),
    (Bridge, "shown", _seen),
    (Plot, "inner_width", _pixels),
    (Plot, "inner_height", _pixels),
    (ColumnDataSource, "data", _dragged),
)
"""Classes, their properties that a page may set, and the functions that check values."""
