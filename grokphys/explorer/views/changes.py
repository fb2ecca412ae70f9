"""Changes of controls in the middle of a run, by hand or by a sweep, which links hold and repeat."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from grokphys.explorer import links
from grokphys.explorer.guard import checked, is_number
from physics.errors import InputError

Values = dict[str, Any]
SWEEP = 40
"""Number of complete updates in which a sweep moves a constant from one end of its slider to the other."""


class Changes:
    """What some widgets said before, and up to which steps.

    Parameters
    ----------
    **widgets
        The widgets that may change during a run, by their names in a state.
    """

    def __init__(self, **widgets: Any) -> None:
        self._widgets = widgets
        self.clear()

    @property
    def values(self) -> Values:
        """What the widgets say."""
        return {name: widget.value for name, widget in self._widgets.items()}

    @property
    def first(self) -> Values:
        """What they said at the start."""
        return self.before[0][1] if self.before else self.values

    @property
    def then(self) -> list[tuple[int, Values]]:
        """Step of each change, and what they said after it."""
        after = [*(values for _, values in self.before), self.values][1:]
        return [(step, values) for (step, _), values in zip(self.before, after, strict=True)]

    def clear(self) -> None:
        """Begin a run that nothing has changed."""
        self.before: list[tuple[int, Values]] = []
        self._now = self.values

    def note(self, step: int) -> None:
        """Note that widgets have changed after a step."""
        if step > (self.before[-1][0] if self.before else 0):
            self.before.append((step, self._now))
        self._now = self.values

    @property
    def few(self) -> bool:
        """Whether a link can hold all changes."""
        return len(self.before) <= links.MOST_CHANGES

    def state(self) -> Values:
        """Return the entry of a state: until which step widgets said something else, and what."""
        now = self.values
        before = [
            [step, {name: value for name, value in values.items() if value != now[name]}]
            for step, values in self.before
        ]
        return {"before": before} if before and self.few else {}

    def read(self, state: Mapping[str, Any]) -> None:
        """Take the changes of a state, whose last values the widgets have.

        Raises
        ------
        InputError
            If they are not changes of these widgets, in the order of their steps.
        """
        self.clear()
        given, last = state.get("before", []), links.replayed(state)
        match given:
            case [*rows] if len(rows) <= links.MOST_CHANGES and all(
                isinstance(row, list | tuple)
                and len(row) == 2
                and is_number(row[0], whole=True)
                and 0 < row[0] <= last
                and isinstance(row[1], dict)
                and set(row[1]) <= set(self._widgets)
                for row in rows
            ):
                if all(one[0] < other[0] for one, other in pairwise(rows)):
                    self.before = [
                        (int(step), self._now | {name: self._checked(name, values[name]) for name in values})
                        for step, values in rows
                    ]
                    return
        raise InputError(
            f"before must be at most {links.MOST_CHANGES} changes, as [step, {{control: value}}] with steps "
            f"from 1 to {last} in order and the controls {', '.join(self._widgets)}"
        )

    def _checked(self, name: str, value: Any) -> Any:
        return checked(self._widgets[name], "value", value)


class Sweep:
    """Moves a slider back and forth between its ends."""

    def __init__(self) -> None:
        self._upwards = True

    def move(self, slider: Any) -> None:
        """Move it by a step of the sweep."""
        stride = max(slider.step, (slider.end - slider.start) / SWEEP)
        if not slider.start <= slider.value + (stride if self._upwards else -stride) <= slider.end:
            self._upwards = not self._upwards
        slider.value = round(slider.value + (stride if self._upwards else -stride), 9)
