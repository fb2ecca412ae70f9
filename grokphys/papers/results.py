"""Results on disk, in a form that other programs can read and judge again.

`DIRECTORY/NAME/result.json` says how the result was made and what its rules decided. Each table in the same
directory, `TABLE.json`, is one object of columns. Floating-point numbers have eight significant digits. NaN
is null, and infinities are "inf" and "-inf".
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.plots.palette import BADGE, BADGE_EDGE
from grokphys.output import FigureFormat, make_directory, save_figure, write_text
from grokphys.papers.pieces import DATE, code_digest, grouped, made_here
from grokphys.papers.recipe import Claim, Number, Recipe, Result, Rule, Run, Setting
from physics.errors import FileFormatError
from physics.trajectory.provenance import plain

SCHEMA, SCHEMA_VERSION = "grokphys-result", 1
DIGITS = 8
"""Number of significant digits of floating-point numbers."""
WIDTH = 1600
"""Width of a PNG figure in pixels."""


@dataclass(frozen=True)
class Stored:
    """A result that is read from disk.

    Attributes
    ----------
    about : dict
        Content of result.json: recipe, budget, setting, seeds, rules, claims, versions, machine, and more.
    tables : dict of str to dict of str to ndarray
        Columns by name, for each table by name.
    """

    about: dict[str, Any]
    tables: dict[str, dict[str, NDArray[Any]]]


def described(rule: Rule) -> dict[str, Any]:
    """Return the text of a rule, in a form that JSON can hold.

    This is its name, the words or the number of the paper, their source, the effect, the model of chance, the
    bounds or the margin, the independent unit, and what was fitted.
    """
    text = {name: getattr(rule, name) for name in ("name", "source", "independent", "fitted")}
    if isinstance(rule, Number):
        return text | {"printed": rule.quoted, "margin": rule.margin}
    text |= {"quote": rule.quote, "effect": rule.effect, "chance": rule.chance.words}
    return text | {"least": _json(rule.least), "most": _json(rule.most)}


def same_terms(recipe: Recipe, stored: Stored) -> bool:
    """Return whether a stored result was judged by the rules of a recipe.

    The name of each rule, what the paper says or prints, and the bounds or the margin are then those of the
    stored claim. Nothing else may change what is claimed after a run. A claim that is stored and has no rule
    must be among the withdrawn.
    """
    terms = ("name", "quote", "printed", "least", "most", "margin")
    today, then = (
        {text["name"]: [text.get(term) for term in terms] for text in texts}
        for texts in (map(described, recipe.rules), stored.about["claims"])
    )
    return today == {name: text for name, text in then.items() if name not in recipe.withdrawn}


def rounded(tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, dict[str, NDArray[Any]]]:
    """Return tables as they are read from a file, with `DIGITS` significant digits.

    Verdicts are made from these, so that none depends on digits that a file does not keep.
    """
    return {name: _columns(_text(table)) for name, table in tables.items()}


def write_result(
    directory: Path, recipe: Recipe, result: Result, run: Run, began: datetime, figures: FigureFormat = "png"
) -> list[Path]:
    """Write the tables, the figures and the description of a result to a folder with the recipe's name.

    The description, result.json, is written last, so that its presence means that the result is complete.

    Parameters
    ----------
    directory : Path
        Directory in which the folder is made.
    recipe : Recipe
        Recipe that made the result.
    result : Result
        Tables, figures and claims.
    run : Run
        Run that gave the result. Figures of the quick budget are marked as "toy setting". If another run has
        computed some of its pieces, all are described by version and processor.
    began : datetime
        Time at which the run began, in UTC. To its duration that of pieces from earlier runs is added.
    figures : {"png", "svg", "pdf"}, default "png"
        Format of the figures. PNG is written in any case, because the gallery shows it.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        If the columns of a table differ in length.
    OutputError
        If a file cannot be written.
    """
    seconds = (datetime.now(UTC) - began).total_seconds()
    earlier = [piece["seconds"] for piece in run.pieces.values() if not piece["new"]]
    about = {
        "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "recipe": recipe.name, "budget": run.budget,
        "setting": setting_of(run.setting), "seeds": sorted(run.seeds), "seed_shift": run.shift,
        "sources": code_digest(), "made_with": made_here(),
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "seconds": round(seconds + sum(earlier), 1), "date": began.strftime(DATE),
        "tables": list(result.tables), "figures": list(result.figures),
        "claims": [_claim(claim) for claim in result.claims],
        **({"pieces": grouped(run.pieces.values())} if earlier else {}),
    }  # fmt: skip
    columns, folder = result.columns(), directory / recipe.name
    make_directory(folder)
    (folder / "result.json").unlink(missing_ok=True)
    written = [write_text(folder / f"{name}.json", _text(table)) for name, table in columns.items()]
    for name, figure in result.figures.items():
        if run.budget == "quick":
            badge = {"boxstyle": "round", "facecolor": BADGE, "edgecolor": BADGE_EDGE}
            figure.text(0.995, 0.995, "toy setting", ha="right", va="top", fontsize="small", bbox=badge)
        paths = [folder / f"{name}.{suffix}" for suffix in sorted({"png", figures})]
        written += [save_figure(figure, path, dpi=WIDTH / figure.get_figwidth()) for path in paths]
    return [*written, _write_about(folder, about)]


def write_claims(folder: Path, stored: Stored, claims: Sequence[Claim]) -> None:
    """Replace the claims in the `folder` of a stored result by other `claims`, if they differ."""
    now = [_claim(claim) for claim in claims]
    if now != stored.about["claims"]:
        stored.about["claims"] = now
        _write_about(folder, stored.about)


def _write_about(folder: Path, about: Mapping[str, Any]) -> Path:
    return write_text(
        folder / "result.json", json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False)
    )


def read_result(folder: Path) -> Stored | None:
    """Read a result from its folder.

    Parameters
    ----------
    folder : Path
        Folder that `write_result` has written.

    Returns
    -------
    Stored or None
        The result; None if one of its files is missing, as after an interrupted run.

    Raises
    ------
    FileFormatError
        If a file cannot be read, or is not of version `SCHEMA_VERSION`.
    """
    try:
        about = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        known = (about.get("schema"), about.get("schema_version")) == (SCHEMA, SCHEMA_VERSION)
        names = about["tables"] if known else ()
        texts = {name: (folder / f"{name}.json").read_text(encoding="utf-8") for name in names}
        tables = {name: _columns(text) for name, text in texts.items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "its JSON is damaged or lacks entries"
        raise FileFormatError(f"cannot read the result in {folder}: {why}; run its recipe again") from error
    if not known:
        raise FileFormatError(f"{folder} holds no result of version {SCHEMA_VERSION}; run its recipe again")
    return Stored(about, tables)


def _claim(claim: Claim) -> dict[str, Any]:
    numbers = {name: _json(value) for name, value in asdict(claim.found).items()}
    return described(claim.rule) | numbers | {"digits": claim.rule.digits, "verdict": claim.verdict}


def setting_of(setting: Any) -> Any:
    """Return the setting of a recipe, a `Setting` or a plain value, in the form in which JSON stores it.

    It consists of numbers, text, lists and dicts. Dataclasses become dicts, and other values text.
    """
    values = vars(setting) if isinstance(setting, Setting) else setting
    return json.loads(json.dumps(plain(values), default=_jsonable))


def _jsonable(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def _text(table: Mapping[str, Any]) -> str:
    dump = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
    lists = {name: [_json(value) for value in np.asarray(values).tolist()] for name, values in table.items()}
    return "{" + ",\n".join(f"{dump(name)}: {dump(values)}" for name, values in lists.items()) + "}"


def _json(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    if np.isnan(value):
        return None
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else ("inf" if value > 0 else "-inf")


def _columns(text: str) -> dict[str, NDArray[Any]]:
    return {name: _column(values) for name, values in json.loads(text).items()}


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Return a stored column as an array: of text if it has words other than infinities, or of numbers."""
    if any(isinstance(value, str) and value not in ("inf", "-inf") for value in values):
        return np.array(values, dtype=str)
    if any(value is None or isinstance(value, str) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    return np.array(values)
