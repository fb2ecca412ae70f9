"""A report: sections of text, tables and figures in one self-contained page."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from grokphys.output import make_directory, write_text


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Return the table as aligned columns for a terminal."""
        cells = [list(self.header), *map(list, self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.header))]
        lines = [
            "  ".join(
                c.ljust(w) if not k else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        return "\n".join([self.caption, lines[0], "-" * len(lines[0]), *lines[1:]])


@dataclass(frozen=True)
class Picture:
    """A figure and what it shows."""

    caption: str
    figure: Figure

    @property
    def width(self) -> float:
        """Width on the page in rem, the same for an inch of every figure, so that letters are of one size."""
        return round(5.9 * self.figure.get_figwidth(), 1)

    @property
    def png(self) -> str:
        """The figure as base64 text."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=160)
        return base64.b64encode(buffer.getvalue()).decode()


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Picture] = field(default_factory=tuple)


def write_report(path: Path, title: str, subtitle: str, sections: Sequence[Section]) -> None:
    """Write the page to `path` at once: a reader never sees half of it."""
    environment = Environment(
        loader=PackageLoader("grokphys.report", "."), autoescape=True, undefined=StrictUndefined
    )
    page = environment.get_template("report.html").render(title=title, subtitle=subtitle, sections=sections)
    make_directory(path.parent)
    write_text(path, page)
