"""A report: its conclusion, and then sections of text, figures and tables in one self-contained page."""

import base64
import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from analysis.stats.intervals import readable
from grokphys.output import make_directory, printable, write_text
from grokphys.report.wording import (
    explained,
    median_time,
    p_value,
    rounded,
    significant,
    time_reached,
    typeset,
)

DPI = 160
"""Resolution of figures on a page."""
TERMINAL = 110
"""Columns of a terminal to which captions are wrapped."""


@dataclass(frozen=True)
class Table:
    """A table of text under a header, with a caption above it.

    Attributes
    ----------
    caption : str
        Words above the table.
    header : sequence of str
        Titles of the columns.
    rows : sequence of sequence of str
        Cells of each row, as many as the header has.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Return the table as text for a terminal: the caption, and columns that are aligned by spaces."""
        cells = [[printable(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.header))]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells]
        caption = textwrap.wrap(printable(self.caption), TERMINAL)
        return "\n".join([*caption, lines[0], "-" * len(lines[0]), *lines[1:]])


@dataclass(frozen=True)
class Picture:
    """A figure of Matplotlib with a caption that says what it shows.

    Attributes
    ----------
    caption : str
        Words below the figure.
    figure : matplotlib.figure.Figure
        The figure.
    """

    caption: str
    figure: Figure

    @property
    def width(self) -> float:
        """Width of the figure on the page in rem, in proportion to its width in inches."""
        return round(5.9 * self.figure.get_figwidth(), 1)

    @property
    def png(self) -> str:
        """The figure as a PNG file without transparency, encoded in base64 for the page."""
        self.figure.set_dpi(DPI)
        canvas, buffer = FigureCanvasAgg(self.figure), io.BytesIO()
        canvas.draw()  # `savefig` draws twice where panels are arranged, once for the arrangement alone
        # Three channels at level 3 are packed in half the time of four at level 6, into fewer bytes.
        opaque = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        opaque.save(buffer, "png", compress_level=3, dpi=(DPI, DPI))
        return base64.b64encode(buffer.getvalue()).decode()


@dataclass
class Section:
    """A heading of a report with its text, figures and tables, in this order.

    Attributes
    ----------
    title : str
        The heading.
    text : list of str
        Paragraphs.
    tables : list of Table
        Tables.
    figures : list of Picture
        Figures.
    """

    title: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Picture] = field(default_factory=list)


def _environment(**options: Any) -> Environment:
    loader = PackageLoader("grokphys.report", ".")
    options |= {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=loader, **options)
    named = (typeset, rounded, significant, readable, median_time, time_reached, p_value)
    environment.filters |= {function.__name__: function for function in named}
    environment.filters |= {"finite": math.isfinite, "spaced": lambda name: name.replace("_", " ")}
    return environment


def document(template: str, figures: Mapping[str, Figure] | None = None, **values: Any) -> list[Section]:
    """Return the sections of a report, of which the first has no title: it is what opens the report.

    Parameters
    ----------
    template : str
        Name of a template of Jinja in this folder. Blank lines separate its paragraphs, "# TITLE" begins a
        section, "![NAME]" before a paragraph makes it the caption of a figure, and lines that begin with "|"
        are the header and the rows of a table, after its caption.
    figures : mapping of str to Figure, optional
        Figures by their names in the template, which leaves out those that are missing.
    **values
        What the template shows.
    """
    environment = _environment(finalize=lambda value: str(value).replace("|", "¦").replace("\n", " "))
    sections = [Section("")]
    for block in re.split(r"\n\s*\n", environment.get_template(template).render(**values).strip()):
        lines = [" ".join(line.split()) for line in block.splitlines() if line.strip()]
        rows = [[cell.strip() for cell in line[1:].split("|")] for line in lines if line.startswith("|")]
        text = " ".join(line for line in lines if not line.startswith(("|", "!["))).strip()
        if text.startswith("# "):
            sections.append(Section(text[2:]))
        elif rows:
            sections[-1].tables.append(Table(text, rows[0], rows[1:]))
        elif lines and lines[0].startswith("!["):
            if (name := lines[0][2:-1]) in (figures or {}):
                sections[-1].figures.append(Picture(text, figures[name]))  # type: ignore[index]
        elif text:
            sections[-1].text.append(text)
    return sections


def write_report(
    path: Path, title: str, subtitle: str, conclusion: Sequence[str], sections: Sequence[Section]
) -> None:
    """Write a report as one self-contained HTML page, in one step, so that a reader never sees half of it.

    Parameters
    ----------
    path : Path
        Name of the page; directories above it that do not exist are created.
    title, subtitle : str
        Heading of the page, and the line below it.
    conclusion : sequence of str
        The conclusion, in a few sentences that can be read alone.
    sections : sequence of Section
        Sections that follow, in order.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    environment, terms = _environment(autoescape=True), dict[str, str]()
    environment.filters["explained"] = partial(explained, used=terms)
    page = environment.get_template("report.html").render(
        title=title, subtitle=subtitle, conclusion=conclusion, sections=sections, terms=terms
    )
    make_directory(path.parent)
    write_text(path, page)
