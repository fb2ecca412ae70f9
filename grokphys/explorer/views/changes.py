"""Changes of controls during a run, by hand or by a sweep, which links hold and replays repeat."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from grokphys.explorer import links
from grokphys.explorer.guard import checked, is_number
from physics.errors import InputError

Values = dict[str, Any]
SWEEP = 40
"""Largest number of complete updates in which a sweep moves a slider from one end to the other."""


class Changes:
    """The values that some widgets had earlier in a run.

    Parameters
    ----------
    **widgets
        Widgets that may change during a run, by their names in a state.

    Attributes
    ----------
    before : list of pairs of int and dict
        Step of each change, and the values of all widgets until then.
    """

    def __init__(self, **widgets: Any) -> None:
        self._widgets = widgets
        self.clear()

    @property
    def values(self) -> Values:
        """Present values of the widgets by name."""
        return {name: widget.value for name, widget in self._widgets.items()}

    @property
    def first(self) -> Values:
        """Values of the widgets at the start of the run."""
        return self.before[0][1] if self.before else self.values

    @property
    def then(self) -> list[tuple[int, Values]]:
        """Step of each change, and the values of all widgets after it."""
        after = [*(values for _, values in self.before), self.values][1:]
        return [(step, values) for (step, _), values in zip(self.before, after, strict=True)]

    def clear(self) -> None:
        """Forget all changes, because another run begins."""
        self.before: list[tuple[int, Values]] = []
        self._now = self.values

    def note(self, step: int) -> None:
        """Note that widgets have changed after a step; several changes after one step count as one."""
        if step > (self.before[-1][0] if self.before else 0):
            self.before.append((step, self._now))
        self._now = self.values

    @property
    def few(self) -> bool:
        """Whether a link can hold all changes."""
        return len(self.before) <= links.MOST_CHANGES

    def state(self) -> Values:
        """Return the entry "before" of a state; nothing if there are no changes, or too many for a link.

        It is a list of [step, values]: the last step with the values, and those that differ from the present.
        """
        now = self.values
        before = [
            [step, {name: value for name, value in values.items() if value != now[name]}]
            for step, values in self.before
        ]
        return {"before": before} if before and self.few else {}

    def read(self, state: Mapping[str, Any]) -> None:
        """Take over the changes of a state; the widgets must already have their last values.

        Raises
        ------
        InputError
            If the entry "before" is not a list of changes of these widgets with increasing steps, has more
            changes than a link may hold, or holds a value that a widget does not allow.
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
        shown = repr(given)
        raise InputError(
            f"before must be at most {links.MOST_CHANGES} changes, as [step, {{control: value}}] with "
            f"increasing steps of at least 1 and at most {last} and with the controls "
            f"{', '.join(self._widgets)}, got {shown if len(shown) < 80 else shown[:77] + '…'}"
        )

    def _checked(self, name: str, value: Any) -> Any:
        return checked(self._widgets[name], "value", value)


class Sweep:
    """A sweep, which moves a slider back and forth between its ends."""

    def __init__(self) -> None:
        self._upwards = True

    def move(self, slider: Any) -> None:
        """Move a slider by one stride, in the other direction if it would pass its end."""
        stride = max(slider.step, (slider.end - slider.start) / SWEEP)
        if not slider.start <= slider.value + (stride if self._upwards else -stride) <= slider.end:
            self._upwards = not self._upwards
        slider.value = round(slider.value + (stride if self._upwards else -stride), 9)
