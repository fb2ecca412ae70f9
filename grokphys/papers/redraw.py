"""Draws the pictures of stored results again, for instance in new colors, without a change of the results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.output import save_figure
from grokphys.papers.recipe import Recipe, Run
from grokphys.papers.results import WIDTH, Stored, read_result, rounded
from physics.errors import InputError
from physics.seeds import other_seeds


def redraw(recipe: Recipe, docs: Path) -> list[Path]:
    """Run a recipe again with the seeds of its stored result, and replace its pictures in the gallery.

    The pictures are replaced only if the new run gives the stored tables digit by digit, so that they show
    the numbers that were judged. Tables, verdicts and dates stay as they are.

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
        If there is no such result, or if tables or the names of pictures differ from the stored ones.
    """
    stored = read_result(docs / "results" / recipe.name)
    if stored is None or stored.about["budget"] != "paper":
        raise InputError(
            f"names must name results at the paper's setting in {docs / 'results'}, got {recipe.name}"
        )
    with other_seeds(stored.about.get("seed_shift", 0)):
        result = recipe.make(Run(recipe.settings["paper"], "paper", None, recipe.name))
    pictures_differ = stored.about["figures"] != list(result.figures)
    difference = "the list of pictures" if pictures_differ else _difference(stored, rounded(result.columns()))
    if difference:
        raise InputError(
            f"{recipe.name} must give the stored tables again to be redrawn, but {difference} differs; "
            "its pictures stay as they are"
        )
    return [
        save_figure(figure, docs / "gallery" / f"{name}.png", dpi=WIDTH / figure.get_size_inches()[0])
        for name, figure in result.figures.items()
    ]


def _difference(stored: Stored, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> str:
    """Name the first difference of tables from the stored ones; return an empty string if there is none."""
    if list(stored.tables) != list(tables):
        return "the list of tables"
    for name, table in stored.tables.items():
        if list(table) != list(tables[name]):
            return f"the list of columns of the table {name!r}"
        for column, values in table.items():
            again = tables[name][column]
            numbers = values.dtype.kind in "fc" and again.dtype.kind in "fc"
            if not np.array_equal(values, again, equal_nan=numbers):
                return f"the column {column!r} of the table {name!r}"
    return ""
