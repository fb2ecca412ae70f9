"""What a reproduction writes: tables as CSV, figures as PNG."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

Budget = Literal["quick", "default", "paper"]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows of equal columns, the first row's keys as header; numbers keep 10 digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {key: f"{value:.10g}" if isinstance(value, float) else value for key, value in row.items()}
            )
    return path


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure that was made by `matplotlib.figure.Figure`, so without pyplot and its state."""
    figure.savefig(path)
    return path


def graded_colors(count: int) -> NDArray[np.float64]:
    """Colours (count, 4) of things that have an order but no cycle, such as the symbols of plain addition."""
    return np.asarray(mpl.colormaps["viridis"](np.linspace(0, 0.88, count)))
