"""The scoreboard as data: what ran, and every row with its numbers and verdicts."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grokphys.output import write_json
from grokphys.papers.beyond import claims as side_by_side
from grokphys.papers.claims import Item, Row, Written
from grokphys.papers.liu import claims as liu
from grokphys.papers.liu import example_claims as liu_examples
from grokphys.papers.liu import network_claims as liu_networks
from grokphys.papers.musat import claims as musat
from physics.errors import FileFormatError
from physics.trajectory.locks import claim

SCHEMA, SCHEMA_VERSION = "grokphys-scoreboard", 1
PAPERS = {
    "Musat": "Musat, *Clustering and Alignment*",
    "Liu": "Liu et al. 2022, *Towards Understanding Grokking: An Effective Theory*",
    "Ding": "Ding et al. 2024, *Survival of the Fittest Representation*",
    "beyond the papers": "Beyond the papers",
}


def place(item: str) -> tuple[int, int, str]:
    """Order inside of a paper: tables, figures by number, appendices."""
    kind, _, rest = item.partition(" ")
    kinds = ("Table", "Tables", "Figure", "Figures", "Appendix")
    found = re.match(r"\d+", rest)
    return kinds.index(kind) // 2 if kind in kinds else len(kinds), int(found[0]) if found else 0, rest


_MODULES = (musat, liu, liu_examples, liu_networks, side_by_side)
ITEMS: tuple[Item, ...] = tuple(
    sorted(
        (item for module in _MODULES for item in module.ITEMS),
        key=lambda item: (list(PAPERS).index(item.paper), place(item.item)),
    )
)
"""All rows, in the order of the papers."""


@dataclass(frozen=True)
class Record:
    """One recipe that ran: how, when, with which code, what it wrote, or why it failed.

    Attributes
    ----------
    sources : str
        Fingerprint of what the recipe depends on, see `fingerprint`: with another one, it has to run again.
    seeds : sequence of int
        Seeds of the ensembles it drew; none if it took those of an earlier recipe.
    error : str
        Empty where it ended.
    """

    recipe: str
    budget: str
    date: str
    code_version: str
    sources: str
    seconds: float
    seeds: Sequence[int]
    files: Sequence[str]
    error: str = ""

    def holds(self, budget: str, sources: str, out: Path) -> bool:
        """Whether it need not run again: same budget, same sources, and all of its files are there."""
        same = (self.budget, self.sources, self.error) == (budget, sources, "")
        return same and all((out / name).is_file() for name in self.files)


def read_board(path: Path) -> Row:
    """Content of a scoreboard, empty if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "records": {}, "rows": []}
    except (OSError, ValueError) as error:
        raise FileFormatError(f"cannot read {path}: {error}; remove it to begin anew") from error
    found = (content.get("schema"), content.get("schema_version")) if isinstance(content, dict) else None
    if found != (SCHEMA, SCHEMA_VERSION):
        raise FileFormatError(
            f"{path} is not a scoreboard of version {SCHEMA_VERSION}, found {found}; remove it to begin anew"
        )
    return content


def records_of(content: Row) -> dict[str, Record]:
    """The records of a scoreboard by recipe."""
    return {name: Record(**values) for name, values in content["records"].items()}


def add_record(path: Path, record: Record) -> None:
    """Put a record into the scoreboard at `path`, beside what others may have put there meanwhile."""
    with claim(path, wait=True):
        content = read_board(path)
        content["records"][record.recipe] = asdict(record)
        write_board(path, content)


def write_board(path: Path, content: Row) -> None:
    """Write a scoreboard in one step."""
    write_json(path, content)


def assemble(content: Row, out: Path, recipes: Sequence[str], items: Sequence[Item] = ITEMS) -> Row:
    """Judge every claim anew from what lies in `out`, and return the whole content."""
    records = records_of(content)
    rows = [judged(item, records.get(item.recipe), out, recipes) for item in items]
    return content | {"rows": rows}


def judged(item: Item, record: Record | None, out: Path, recipes: Sequence[str]) -> Row:
    """One row: where it stands, and the results of its claims where there are such."""
    row: Row = {"paper": item.paper, "item": item.item, "shows": item.shows, "recipe": item.recipe}
    row |= {"picture": item.picture or f"{item.recipe}.png", "results": [], "note": ""}
    if item.none:
        return row | {"status": "not made", "note": item.none}
    if item.recipe not in recipes:
        return row | {"status": "no recipe"}
    if record is None:
        return row | {"status": "not run"}
    if record.error:
        return row | {"status": "failed", "note": record.error}
    return row | {"status": "complete", "results": item.results(Written(out, record.files), record.budget)}


def tally(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many claims have which verdict, and how many rows have none."""
    words = [result["verdict"] for row in rows for result in row["results"]]
    words += [row["status"] for row in rows if row["status"] != "complete"]
    return {word: words.count(word) for word in dict.fromkeys(sorted(words))}
