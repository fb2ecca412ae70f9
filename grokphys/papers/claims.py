"""A row of the scoreboard: an item of a paper, the recipe that makes it, and what is claimed of it."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.stats.intervals import Interval
from grokphys.papers.verdicts import (
    Circumstances,
    Finding,
    Printed,
    Verdict,
    interval,
    judge_number,
    judge_statement,
)

Row = dict[str, Any]
Reader = Callable[["Written"], Interval | Finding]


class Unreadable(Exception):  # noqa: N818 - it ends as a sentence in a row
    """There is no such number in what a recipe has written; any other error is a mistake in the reader."""


@dataclass(frozen=True)
class Written:
    """The tables that a recipe has written, read as text or numbers.

    Attributes
    ----------
    out : Path
        Directory of the results.
    files : sequence of str
        Names of the files that the recipe has written there.
    """

    out: Path
    files: Sequence[str]

    def table(self, stem: str) -> list[dict[str, str]]:
        """All rows of ``STEM.csv``; all of it is text."""
        name = f"{stem}.csv"
        if name not in self.files:
            raise Unreadable(f"{name} was not written")
        try:
            with (self.out / name).open(encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise Unreadable(f"{name} cannot be read: {error}") from error

    def rows(self, stem: str, **where: Any) -> list[dict[str, str]]:
        """Rows of ``STEM.csv`` whose columns hold what `where` says, at least one; all of it is text."""
        found = [
            row
            for row in self.table(stem)
            if all(row[column] == str(value) for column, value in where.items())
        ]
        if not found:
            said = ", ".join(f"{column} = {value}" for column, value in where.items())
            raise Unreadable(f"{stem}.csv has no row" + (f" with {said}" if said else ""))
        return found

    def column(self, stem: str, column: str, **where: Any) -> NDArray[np.float64]:
        """One column as numbers: NaN for an empty cell, infinite for "never"."""
        return np.array([number(row[column]) for row in self.rows(stem, **where)])

    def intervals(self, stem: str, column: str, **where: Any) -> list[Interval]:
        """Estimates of a column, with the columns COLUMN_low, COLUMN_high and count."""
        names = (column, f"{column}_low", f"{column}_high")
        return [
            interval((number(row[name]) for name in names), int(number(row["count"])))
            for row in self.rows(stem, **where)
        ]


def number(text: str) -> float:
    """A cell of a table as a number."""
    return WORDS[text] if text in WORDS else float(text)


WORDS = {"": np.nan, "never": np.inf, "True": 1.0, "False": 0.0}


@dataclass(frozen=True)
class Claim:
    """A number or a statement of a paper, and how ours is read from what the recipe wrote.

    Attributes
    ----------
    name : str
    paper : Printed or str
        The number as printed, or the statement in few words.
    read : callable
        `Written` to an `Interval` beside a number, to a `Finding` beside a statement.
    about : Circumstances
    digits : int
        Decimals of ours.
    """

    name: str
    paper: Printed | str
    read: Reader
    about: Circumstances = field(default_factory=Circumstances)
    digits: int = 2

    def result(self, written: Written, budget: str) -> Row:
        """Ours beside the paper's, with the verdict, as a table holds it."""
        found = self.read(written)
        if isinstance(self.paper, Printed):
            assert isinstance(found, Interval)
            verdict = judge_number(found, self.paper, budget, self.about)
            ours, printed, source = _said(found, self.digits), str(self.paper), self.paper.source
        else:
            assert isinstance(found, Finding)
            verdict = judge_statement(found, budget, self.about)
            ours, printed, source = found.statistic, self.paper, ""
        row = {"claim": self.name, "paper": printed, "source": source, "ours": ours, "runs": found.count}
        if isinstance(found, Interval):
            row |= {
                "estimate": _finite(found.estimate),
                "low": _finite(found.low),
                "high": _finite(found.high),
            }
        return row | _words(verdict)


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper, or a figure of ours beyond them.

    Attributes
    ----------
    paper : str
        "Musat", "Liu", "Ding", or "beyond the papers".
    item : str
        "Table 1", "Figure 4 (a)".
    shows : str
        What one sees, in a line.
    recipe : str, optional
        Its name for `grokphys reproduce`.
    none : str, optional
        Why there is no recipe: a drawing, a definition.
    claims : tuple of Claim
    picture : str, optional
        File that the gallery shows; RECIPE.png if not given.
    about : Circumstances
        Of the statements that the recipe judges itself, in RECIPE-claims.csv.
    """

    paper: str
    item: str
    shows: str
    recipe: str = ""
    none: str = ""
    claims: tuple[Claim, ...] = ()
    picture: str = ""
    about: Circumstances = field(default_factory=Circumstances)

    def results(self, written: Written, budget: str) -> list[Row]:
        """All claims judged; one for which there are no data says so. Mistakes of a reader are raised."""
        found = []
        for claim in (*self.claims, *self._own(written)):
            try:
                found.append(claim.result(written, budget))
            except Unreadable as error:
                row = {"claim": claim.name, "paper": str(claim.paper), "source": ""}
                found.append(row | _absent(str(error)))
            except Exception as error:
                error.add_note(f"in the claim {claim.name!r} of {self.paper}, {self.item} ({self.recipe})")
                raise
        return found

    def _own(self, written: Written) -> list[Claim]:
        """Statements of RECIPE-claims.csv: diagram, claim (what the paper says, and here what), holds."""
        if f"{self.recipe}-claims.csv" not in written.files:
            return []
        rows = written.table(f"{self.recipe}-claims")
        networks = f"{self.recipe}-runs"
        count = len(written.table(networks)) if f"{networks}.csv" in written.files else len(rows)
        claims = []
        for row in rows:
            paper, _, ours = row["claim"].partition(" (here ")
            finding = Finding(row["holds"] == "True", ours.removesuffix(")") or row["holds"], count)
            claims.append(Claim(row["diagram"], paper, lambda _, found=finding: found, self.about))  # type: ignore[misc]
        return claims


def _said(found: Interval, digits: int) -> str:
    return f"{found.estimate:.{digits}f}, exact" if found.low == found.high else found.format(digits)


def _absent(why: str) -> Row:
    return {"ours": "-", "runs": 0, "verdict": "undetermined", "why": f"no such number here: {why}"}


def _words(verdict: Verdict) -> Row:
    return {"verdict": verdict.word, "why": verdict.why}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
