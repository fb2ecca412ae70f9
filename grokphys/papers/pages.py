"""The scoreboard and the gallery as Markdown, from their data alone."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grokphys.output import make_directory, write_bytes, write_text
from grokphys.papers.board import PAPERS, tally

LARGEST = 60 * 1024
"""Bytes of a picture in the gallery."""
WIDTHS = (800, 700, 600, 500, 400, 300)
RULES = """\
Made by `grokphys reproduce --all --scoreboard …`, never by hand: numbers are read from the files that the
recipes wrote, verdicts follow from these rules.

* **covered**: our 95 % interval holds the printed number within its rounding; where the paper has a finite
  sample of its own, the 95 % interval of the difference holds zero (the paper's printed interval; Wilson's
  for counts; ours at the paper's number of runs where only that is known).
* **not covered**: it does not, and the reason, as far as we know it. Of many numbers that are right, one in
  twenty misses its 95 % interval by chance.
* **holds**, **does not hold**: a statement of the paper, as a predicate computed from our data; its statistic
  stands beside it.
* **other setting**: at this budget our setting is not the paper's, so ours is shown and not judged.
* **undetermined**: our data allow no answer (one run, too few circles)."""


def scoreboard_page(content: Mapping[str, Any]) -> str:
    """Markdown of a scoreboard."""
    rows, records = content["rows"], content["records"]
    counts = ", ".join(f"{count} {word}" for word, count in tally(rows).items())
    lines = ["# Scoreboard", "", RULES, "", f"In all: {counts}.", ""]
    for paper, title in PAPERS.items():
        chosen = [row for row in rows if row["paper"] == paper]
        lines += [f"## {title}", ""]
        lines += table(("item", "claim", "paper", "here, 95 %", "runs", "verdict"), _claims(chosen))
        lines.append("")
    lines += ["## What ran", "", "`grokphys reproduce NAME --budget BUDGET` makes a row alone.", ""]
    header = ("recipe", "budget", "seconds", "seeds", "date", "code version", "")
    lines += table(header, (_run(record) for record in records.values()))
    return "\n".join(lines) + "\n"


def _claims(rows: Sequence[Mapping[str, Any]]) -> Iterable[Sequence[str]]:
    for row in rows:
        name = row["item"] + (f" `{row['recipe']}`" if row["recipe"] else "")
        if not row["results"]:
            note = f": {row['note']}" if row["note"] else ""
            yield name, row["shows"], "", "", "", f"{row['status']}{note}"
        for k, result in enumerate(row["results"]):
            why = f": {result['why']}" if result["why"] else ""
            yield (
                "" if k else name,
                result["claim"],
                _printed(row, result),
                result["ours"],
                str(result["runs"]),
                f"**{result['verdict']}**{why}",
            )


def _printed(row: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    elsewhere = result["source"] and not result["source"].startswith(row["item"].split(";")[0])
    return f"{result['paper']} ({result['source']})" if elsewhere else result["paper"]


def _run(record: Mapping[str, Any]) -> Sequence[str]:
    seeds = list(map(str, record["seeds"]))
    shown = ", ".join(seeds[:4]) + (f", … ({len(seeds)})" if len(seeds) > 4 else "")
    date = record["date"].partition("T")[0]
    how = (f"`{record['recipe']}`", record["budget"], f"{record['seconds']:.0f}", shown or "-", date)
    return (*how, record["code_version"], f"failed: {record['error']}" if record["error"] else "")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; bars inside of cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


# -- the gallery --------------------------------------------------------------------------------------------


def write_gallery(directory: Path, content: Mapping[str, Any], out: Path) -> list[Path]:
    """Write small pictures to a directory, and beside it a page, DIRECTORY.md, that shows them."""
    make_directory(directory)
    made = [row["picture"] for row in content["rows"] if row["status"] == "complete"]
    names = [name for name in made if (out / name).is_file()]
    pictures = [write_bytes(directory / name, small_png(out / name)) for name in names]
    page = directory.with_name(directory.name + ".md")
    return [*pictures, write_text(page, gallery_page(content, directory.name, names))]


def gallery_page(content: Mapping[str, Any], directory: str, pictures: Sequence[str]) -> str:
    """Markdown of the gallery: what one sees, the picture, and the command that made it."""
    lines = [
        "# Gallery",
        "",
        "Made by `grokphys reproduce --all --gallery …`, each picture by its command.",
        "",
    ]
    for paper, title in PAPERS.items():
        lines += [f"## {title}", ""]
        for row in content["rows"]:
            if row["paper"] != paper or row["picture"] not in pictures:
                continue
            budget = content["records"][row["recipe"]]["budget"]
            lines += [f"**{row['item'][0].upper()}{row['item'][1:]}.** {row['shows']}", ""]
            lines += [f"![{row['item']}]({directory}/{row['picture']})", ""]
            lines += [f"`grokphys reproduce {row['recipe']} --budget {budget}`", ""]
    return "\n".join(lines).rstrip() + "\n"


def small_png(path: Path, largest: int = LARGEST) -> bytes:
    """A picture as PNG of at most so many bytes: fewer colours first, then fewer pixels."""
    from PIL import Image

    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    for width in WIDTHS:
        size = (width, round(picture.height * width / picture.width))
        small = picture.resize(size, Image.Resampling.LANCZOS) if width < picture.width else picture
        for colors in (128, 48):
            buffer = io.BytesIO()
            small.quantize(colors).save(buffer, "PNG", optimize=True)
            if len(buffer.getvalue()) <= largest:
                return buffer.getvalue()
    return buffer.getvalue()
