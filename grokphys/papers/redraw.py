"""Draws the pictures of stored results again, for instance in other colors; the results stay as they are."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grokphys.output import save_figure
from grokphys.papers.recipe import Recipe, Run
from grokphys.papers.results import WIDTH, Stored, read_result, rounded, setting_of
from physics.errors import InputError
from physics.seeds import other_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDING = 1e-6
"""Largest difference of a number from the stored one, relative to the largest in size of its column.

Another version of a kernel may round the last bits of a training differently, which no picture can show.
"""
Drawn = tuple[Mapping[str, "Figure"], str]
"""Figures by name, and the name of what differs from the stored result, or an empty string."""


def redraw(recipe: Recipe, docs: Path) -> list[Path]:
    """Replace the pictures of a stored result in the gallery by new ones of the same numbers.

    If a recipe has a function `draw`, its figures are drawn from the stored tables. Any other recipe runs
    again with the seeds of its stored result, and its pictures are replaced only if the new run gives the
    stored tables, with numbers that agree within `ROUNDING`. Tables, verdicts and dates stay as they are.

    Parameters
    ----------
    recipe : Recipe
        Recipe with a result at the paper's setting.
    docs : Path
        Directory of the documentation, with ``results/`` and ``gallery/``.

    Returns
    -------
    list of Path
        The pictures that were written.

    Raises
    ------
    InputError
        If there is no such result, or if its setting, its tables or the names of its pictures differ from
        those of the recipe.
    """
    stored = read_result(docs / "results" / recipe.name)
    if stored is None or stored.about["budget"] != "paper":
        raise InputError(
            f"names must name results at the paper's setting in {docs / 'results'}, got {recipe.name}"
        )
    figures, difference = from_tables(recipe, stored) if recipe.draw else _from_a_run(recipe, stored)
    if not difference and stored.about["figures"] != list(figures):
        difference = "the list of pictures"
    if difference:
        raise InputError(
            f"{recipe.name} must be as it was stored to be redrawn, but {difference} differs; "
            "its pictures stay as they are"
        )
    return [
        save_figure(figure, docs / "gallery" / f"{name}.png", dpi=WIDTH / figure.get_size_inches()[0])
        for name, figure in figures.items()
    ]


def from_tables(recipe: Recipe, stored: Stored) -> Drawn:
    """Draw the figures of a recipe that has a function `draw` from a stored result at the paper's setting.

    Returns
    -------
    mapping of str to Figure
        Figures by name; empty if the setting has changed since the result was made.
    str
        "the setting" if it has changed, and otherwise an empty string.
    """
    assert recipe.draw is not None
    setting = recipe.settings["paper"]
    if stored.about["setting"] != setting_of(setting):
        return {}, "the setting"
    return recipe.draw(setting, stored.tables), ""


def _from_a_run(recipe: Recipe, stored: Stored) -> Drawn:
    """Run a recipe again with the seeds of its stored result; return its figures by name.

    The second value is the first difference of the new tables from the stored ones, or an empty string.
    """
    with other_seeds(stored.about.get("seed_shift", 0)):
        result = recipe.make(Run(recipe.settings["paper"], "paper", None, recipe.name))
    return result.figures, _difference(stored, rounded(result.columns()))


def _difference(stored: Stored, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> str:
    """Return words for the first difference between stored and new tables, or "" if they agree."""
    if list(stored.tables) != list(tables):
        return "the list of tables"
    for name, table in stored.tables.items():
        if list(table) != list(tables[name]):
            return f"the list of columns of the table {name!r}"
        for column, values in table.items():
            again = tables[name][column]
            if not _agree(values, again):
                return f"the column {column!r} of the table {name!r}"
    return ""


def _agree(stored: NDArray[Any], again: NDArray[Any]) -> bool:
    """Return whether two columns are equal, where floating-point numbers may differ by `ROUNDING`."""
    if stored.dtype.kind not in "fc" or again.dtype.kind not in "fc" or stored.shape != again.shape:
        return np.array_equal(stored, again)
    size = float(np.abs(stored[np.isfinite(stored)]).max(initial=0.0))
    return np.allclose(again, stored, rtol=0.0, atol=ROUNDING * size, equal_nan=True)
