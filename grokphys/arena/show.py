"""The results of the arena as tables for the terminal and as one figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.plots import palette
from analysis.plots.style import style
from grokphys.arena.track import ANOTHER, STILL, Rows, Track
from grokphys.report.page import Table


def ranked(rows: Rows, best: float) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the rows of one track by theory and setting, from "nothing moves" over the best to the worst.

    References come first, and theories are ordered by their mean score over the settings.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["theory"], {})[row["setting"]] = row

    def place(name: str) -> tuple[bool, float]:
        cells = found[name].values()
        theory = any(cell["kind"] == "theory" for cell in cells)
        return theory, abs(best - float(np.mean([cell["score"] for cell in cells]))) * theory

    return {name: found[name] for name in sorted(found, key=place)}


def table(track: Track, rows: Rows) -> Table:
    """Return a table of one track: a theory in each row, a setting in each column.

    Parameters
    ----------
    track : Track
        The track.
    rows : list of dict
        Its rows of `grokphys.arena.summary`.
    """
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    lines = [
        [name, *(_cell(cells[setting]) if setting in cells else "-" for setting in settings)]
        for name, cells in ranked(rows, track.best).items()
    ]
    counts = sorted({row["networks"] for row in rows})
    caption = (
        f"{track.name}: {track.measure}; {track.best:g} is exact. Means with intervals of 95 % over "
        f"{' or '.join(map(str, counts))} networks that are held out."
    )
    return Table(caption, ["", *settings], lines)


def _cell(row: Mapping[str, Any]) -> str:
    text = f"{row['score']:.3f}"
    return f"{text} ± {row['upper'] - row['score']:.3f}" if np.isfinite(row["upper"]) else text


def picture(tracks: Sequence[Track], rows: Rows) -> Figure:
    """Return a figure of all tracks: bars with intervals, between the two ends of each scale.

    Parameters
    ----------
    tracks : sequence of Track
        The tracks.
    rows : list of dict
        Rows of `grokphys.arena.summary`.
    """
    parts = [[row for row in rows if row["track"] == track.name] for track in tracks]
    names = [ranked(part, track.best) for track, part in zip(tracks, parts, strict=True)]
    width, height = 7.2, 0.6 + sum(0.8 + 0.24 * len(one) for one in names)
    with style(width):
        figure = Figure(figsize=(width, height))
        ratios = [2 + len(one) for one in names]
        panels = figure.subplots(len(tracks), 1, squeeze=False, height_ratios=ratios)[:, 0]
        for ax, track, part, theories in zip(panels, tracks, parts, names, strict=True):
            settings = list(dict.fromkeys(row["setting"] for row in part))
            thick = 0.8 / len(settings)
            for n, setting in enumerate(settings):
                color = palette.SERIES[n % len(palette.SERIES)]
                shown = [(y, cells[setting]) for y, cells in enumerate(theories.values()) if setting in cells]
                for y, row in shown:
                    place = y + (n - (len(settings) - 1) / 2) * thick
                    error = np.nan_to_num([[row["score"] - row["lower"]], [row["upper"] - row["score"]]])
                    look: dict[str, Any] = {"color": color, "alpha": 0.45 if row["kind"] == "end" else 1.0}
                    ax.barh(place, row["score"], 0.9 * thick, label=setting if y == 0 else None, **look)
                    ax.errorbar(row["score"], place, xerr=error, color=palette.INK, linewidth=0.7, capsize=1)
            ax.set_yticks(range(len(theories)), list(theories))
            ax.invert_yaxis()
            ax.set(title=f"{track.name}: {track.measure}", xlim=(0, None))
            ax.legend(fontsize="x-small", ncols=3)
            for tick, name in zip(ax.get_yticklabels(), theories, strict=True):
                tick.set_fontstyle("italic" if name in (STILL, ANOTHER) else "normal")
    return figure
