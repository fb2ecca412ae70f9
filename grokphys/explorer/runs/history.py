"""The history of a run in bounded memory: all frames at first, then fewer and fewer of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class History:
    """Frames of a run in order, of which every other one is dropped whenever there are `limit` of them.

    The first and the last frame are always kept, and the memory is that of `limit` frames at most.

    Parameters
    ----------
    limit : int, default 1200
        Largest number of frames.
    """

    def __init__(self, limit: int = 1200) -> None:
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        """Remove all frames, and keep every further one until there are `limit` of them again."""
        self._rows: list[tuple[int, dict[str, Any]]] = []
        self._stride, self._seen = 1, 0

    def append(self, step: int, **values: Any) -> None:
        """Add a copy of a frame as the last one.

        It replaces the frame before if that has the same step, or is one of those that a long run leaves out.
        """
        row = step, {name: np.array(value) for name, value in values.items()}
        if self._rows and self._rows[-1][0] == step:
            self._rows[-1] = row
            return
        if self._rows and (self._seen - 1) % self._stride:
            self._rows[-1] = row
        else:
            self._rows.append(row)
        self._seen += 1
        if len(self._rows) >= self._limit:
            last = len(self._rows) - 1
            self._rows = [*self._rows[:last:2], self._rows[last]]
            self._stride *= 2

    def __len__(self) -> int:
        return len(self._rows)

    def frames(self) -> list[tuple[int, dict[str, Any]]]:
        """Return a list of the step and the values of each frame; the values are not copied."""
        return list(self._rows)

    @property
    def last(self) -> dict[str, Any]:
        """Values of the last frame by name; an update of this dict changes the frame."""
        return self._rows[-1][1]

    @property
    def steps(self) -> NDArray[np.int64]:
        """Step of each frame, as an array of int64 (frames,)."""
        return np.array([step for step, _ in self._rows], np.int64)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the value called `name` in all frames, as an array (frames, ...)."""
        return np.array([values[name] for _, values in self._rows])
