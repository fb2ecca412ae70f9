"""A report: its conclusion, and then sections of text, figures and tables in one self-contained page."""

import base64
import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from analysis.stats.intervals import readable
from grokphys.output import make_directory, printable, write_text
from grokphys.report.wording import explained, rounded, significant, terms_of, typeset

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
        lines = [
            "  ".join(
                c.ljust(w) if not k else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        caption = [
            line for part in self.caption.split("\n") for line in textwrap.wrap(printable(part), TERMINAL)
        ]
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


@dataclass(frozen=True)
class Section:
    """A heading of a report with its text, figures and tables, in this order.

    Attributes
    ----------
    title : str
        The heading.
    text : sequence of str
        Paragraphs.
    tables : sequence of Table
        Tables.
    figures : sequence of Picture
        Figures.
    """

    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Picture] = field(default_factory=tuple)

    def words(self) -> Iterator[str]:
        """Yield all texts of the section one after the other, so that the terms in them can be explained."""
        yield from self.text
        for table in self.tables:
            yield table.caption
            yield from table.header
            yield from (cell for row in table.rows for cell in row)
        yield from (picture.caption for picture in self.figures)


def _environment(escape: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("grokphys.report", "."), autoescape=escape, undefined=StrictUndefined
    )
    environment.filters |= {
        "explained": explained,
        "typeset": typeset,
        "rounded": rounded,
        "significant": significant,
        "readable": readable,
        "finite": math.isfinite,
        "middle": lambda values: float(np.nanmedian(values)) if np.isfinite(values).any() else math.nan,
    }
    return environment


def sentences(template: str, macro: str, *arguments: Any) -> list[str]:
    """Return the lines of a macro of a text template of this folder, each of which is a paragraph."""
    text = getattr(_environment(False).get_template(template).module, macro)(*arguments)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


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
    terms = terms_of(word for one in (Section("", conclusion), *sections) for word in one.words())
    page = (
        _environment(True)
        .get_template("report.html")
        .render(title=title, subtitle=subtitle, conclusion=conclusion, sections=sections, terms=terms)
    )
    make_directory(path.parent)
    write_text(path, page)
