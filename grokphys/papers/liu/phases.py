"""Liu et al.: what their phase diagrams have in common, and what the paper says that they show."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import nets
from analysis.phases.axes import Span
from analysis.phases.diagram import PhaseDiagram
from analysis.plots.figures import style
from analysis.plots.phases import show_phases
from grokphys.output import save_figure, write_csv
from grokphys.phases import summary, write_diagrams
from nets import Model

Row = dict[str, Any]
Claim = tuple[str, bool]
"""A statement of the paper, with what was found, and whether it holds here."""

LOW: Span = (0.0, 1 / 3)
MIDDLE: Span = (1 / 3, 2 / 3)
HIGH: Span = (2 / 3, 1.0)
ALL: Span = (0.0, 1.0)
"""Parts of an axis, from which boxes of the plane are made."""


def steps_to(model: Model, thresholds: Mapping[str, float], *, steps: int, **options: Any) -> Any:
    """Steps (runs, 2) to the thresholds of training and validation accuracy, NaN for never."""
    trained = nets.train(
        model,
        steps=steps,
        record=steps,
        observables=(),
        thresholds=thresholds,
        track=max(steps // 200, 1),
        stop="thresholds",
        **options,
    )
    parts = ("train", "validation")
    return np.stack([trained.observables[f"steps_to_{part}_accuracy"][:, -1] for part in parts], axis=1)


# -- what the paper says -----------------------------------------------------------------------------------


def rules(diagram: PhaseDiagram, what: str, phase: str, x: Span, y: Span) -> Claim:
    """Whether a phase has the largest share of a part of the plane."""
    share = diagram.shares((x, y))[phase].format(0, 100)
    found = diagram.leading((x, y))
    return f"{what}: {phase} (here {found}; {phase} has {share} %)", found == phase


def generalises(diagram: PhaseDiagram, x: Span = ALL, y: Span = ALL) -> float:
    """Share of comprehension and grokking, the Goldilocks zone, in a part of the plane."""
    shares = diagram.shares((x, y))
    return shares["comprehension"].estimate + shares["grokking"].estimate


def four_phases(diagram: PhaseDiagram) -> Claim:
    """Whether all four phases have a cell."""
    found = {cell.majority.phase for cell in diagram.cells}
    return f"there are four phases (here {len(found)}: {', '.join(sorted(found))})", len(found) == 4


def sandwiched(diagram: PhaseDiagram) -> Claim:
    """Whether grokking lies between comprehension and memorization."""
    touching = diagram.touching()
    inner, outer, direct = (
        touching.get(frozenset(pair), 0)
        for pair in (
            ("grokking", "comprehension"),
            ("grokking", "memorization"),
            ("comprehension", "memorization"),
        )
    )
    text = (
        f"grokking is sandwiched between comprehension and memorization (here it borders {inner} times on "
        f"the one, {outer} times on the other, and these border {direct} times on each other)"
    )
    return text, min(inner, outer) > 0 and direct <= min(inner, outer)


def difference(diagram: PhaseDiagram, along: str) -> float:
    """Total variation distance between the shares of the phases in the two halves of an axis."""
    halves = ((0.0, 0.5), (0.5, 1.0))
    first, second = (diagram.shares((half, ALL) if along == "x" else (ALL, half)) for half in halves)
    return sum(abs(first[phase].estimate - second[phase].estimate) for phase in first) / 2


# -- files -------------------------------------------------------------------------------------------------


def publish(
    out: Path,
    name: str,
    diagrams: Mapping[str, PhaseDiagram],
    claims: Sequence[Row],
    *,
    heading: str,
    downwards: bool = True,
) -> list[Path]:
    """Print, draw and write diagrams by title; their second axis downwards, as most of the paper's."""
    for title, diagram in diagrams.items():
        for line in summary(diagram):
            print(f"  {title}: {line}")
    say(claims)
    with style():
        figure = Figure(figsize=(0.4 + 5.0 * len(diagrams), 4.4))
        figure.suptitle(heading, fontsize=10.5)
        axes = figure.subplots(1, len(diagrams), squeeze=False)[0]
        for ax, (title, diagram) in zip(axes, diagrams.items(), strict=True):
            draw(diagram, ax, title, downwards=downwards)
        picture = save_figure(figure, out / f"{name}.png")
    files = write_diagrams(out, name, diagrams)
    return [*files, write_csv(out / f"{name}-claims.csv", claims), picture]


def draw(diagram: PhaseDiagram, ax: Axes, title: str, *, downwards: bool = True) -> Axes:
    """Draw a diagram with its number of networks."""
    each = sorted({len(cell.runs) for cell in diagram.cells})
    counts = " to ".join(map(str, dict.fromkeys((each[0], each[-1]))))
    networks = "network" if each[-1] == 1 else "networks"
    show_phases(diagram, ax, title=f"{title}\n{len(diagram.cells)} cells, {counts} {networks} each")
    if downwards:
        ax.invert_yaxis()
    return ax


def judged(title: str, claims: Sequence[Claim]) -> list[Row]:
    """Return rows of claims for the table."""
    return [{"diagram": title, "claim": text, "holds": bool(holds)} for text, holds in claims]


def say(claims: Sequence[Row]) -> None:
    """Print claims with their verdicts."""
    for row in claims:
        print(f"  {row['diagram']}: {'holds' if row['holds'] else 'does not hold'}: {row['claim']}")
