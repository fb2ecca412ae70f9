"""Liu et al.: phase diagrams of the toy networks and of S_3 (Figs. 6 a-d and 13-15)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from analysis.phases.diagram import PhaseDiagram, Refinement
from grokphys.output import Budget
from grokphys.papers.liu.phases import (
    ALL,
    HIGH,
    LOW,
    Claim,
    difference,
    four_phases,
    generalises,
    judged,
    publish,
    rules,
    sandwiched,
)
from grokphys.phases import Training, axis
from nets.models import DenseModel, GroupDecoder, ToyAddition

Limits = tuple[float, float]
Kind = Literal["regression", "classification"]
KINDS: tuple[Kind, ...] = ("regression", "classification")
SEED = 6
ADDITION = 45 / 55
PERMUTATION = 24 / 36
LABELS = {
    "learning_rate": "decoder learning rate",
    "weight_decay": "decoder weight decay",
    "embedding_learning_rate": "representation learning rate",
    "embedding_weight_decay": "representation weight decay",
    "embedding_scale": "initialisation scale",
    "batch_size": "batch size",
}


@dataclass(frozen=True)
class Effort:
    """What a budget trains. The paper takes a decoder of two layers of 200, 1e5 steps, one network a cell.

    The small budgets take a tenth of its steps or less. As Adam moves by its rate a step, whatever the
    gradient, their rates begin where as much as in the paper is moved: the decoder's at 1e-4, and the
    representation's, where it is fixed, is 3e-3 instead of 1e-3.
    """

    hidden: int = 100
    steps: int = 6000
    delay: int = 1000
    cells: int = 5
    refinement: Refinement = field(default_factory=lambda: Refinement(2, 5, 2, 140))
    pair_cells: int = 4
    pair_refinement: Refinement = field(default_factory=lambda: Refinement(2, 4, 1, 70))
    representation: float = 3e-3
    least: float = 1e-4
    representations: Limits = (1e-4, 3e-2)

    @property
    def widths(self) -> tuple[int, int]:
        """Widths of the decoder's hidden layers."""
        return self.hidden, self.hidden


EFFORTS: dict[Budget, Effort] = {
    "quick": Effort(
        steps=2500,
        delay=500,
        cells=4,
        refinement=Refinement(2, 2, 1, 56),
        pair_cells=3,
        pair_refinement=Refinement(2, 2, 1, 34),
    ),
    "default": Effort(),
    "paper": Effort(
        hidden=200,
        steps=100_000,
        cells=10,
        refinement=Refinement(3, 7, 2),
        pair_cells=10,
        pair_refinement=Refinement(3, 7, 2),
        representation=1e-3,
        least=1e-5,
        representations=(1e-5, 1e-2),
    ),
}


@dataclass(frozen=True)
class Plane:
    """A diagram: what trains, over the decoder's rate and something else."""

    model: DenseModel
    name: str
    limits: Limits
    options: Mapping[str, Any]
    least: float

    def compute(self, effort: Effort, store: Path | None, *, pair: bool = False) -> PhaseDiagram:
        """Train its networks; fewer, where there are two diagrams in a figure."""
        cells, refinement = effort.cells, effort.refinement
        if pair:
            cells, refinement = effort.pair_cells, effort.pair_refinement
        return Training(
            self.model,
            axis(self.model, "learning_rate", self.least, 1e-2, cells, label=LABELS["learning_rate"]),
            axis(self.model, self.name, *self.limits, cells, label=LABELS[self.name]),
            effort.steps,
            effort.delay,
            seed=SEED,
            options=self.options,
            store=store,
        ).diagram(refinement)


def _store(out: Path, name: str, budget: Budget) -> Path | None:
    """Where a diagram that takes days keeps its networks, to go on after an interruption."""
    return out / f"{name}-networks" if budget == "paper" else None


def _one(
    out: Path,
    budget: Budget,
    name: str,
    title: str,
    plane: Plane,
    claims: Callable[[PhaseDiagram], list[Claim]],
    *,
    downwards: bool = True,
) -> list[Path]:
    effort = EFFORTS[budget]
    found = plane.compute(effort, _store(out, name, budget))
    heading = f"{title} ({name.replace('liu-', 'Fig. ')}): {_setting(effort)}"
    return publish(
        out, name, {title: found}, judged(title, claims(found)), heading=heading, downwards=downwards
    )


def _setting(effort: Effort) -> str:
    return f"decoder of 2 × {effort.hidden}, at most {effort.steps} steps"


def _options(effort: Effort, fraction: float = ADDITION, **others: Any) -> dict[str, Any]:
    """Arguments of `nets.train` where they do not vary."""
    fixed = {"embedding_learning_rate": effort.representation, "embedding_weight_decay": 0.0}
    return {"train_fraction": fraction, "weight_decay": 0.0, **fixed, **others}


# -- Figure 6 ----------------------------------------------------------------------------------------------


def competition(out: Path, budget: Budget) -> list[Path]:
    """Figure 6 (a): phases over the learning rates of decoder and representation, addition, regression."""
    effort = EFFORTS[budget]
    plane = Plane(
        ToyAddition(hidden=effort.widths),
        "embedding_learning_rate",
        effort.representations,
        _options(effort),
        effort.least,
    )
    return _one(out, budget, "liu-6a", "Addition, regression", plane, _competition, downwards=False)


def _competition(diagram: PhaseDiagram) -> list[Claim]:
    slow = generalises(diagram, LOW, HIGH)
    comprehending = [cell for cell in diagram.cells if cell.majority.phase == "comprehension"]
    area = sum(cell.covered() for cell in comprehending)
    faster = sum(cell.covered() for cell in comprehending if cell.point[1] > cell.point[0])
    part = faster / area if area else np.nan
    return [
        rules(diagram, "a fast decoder with a slow representation", "memorization", HIGH, LOW),
        (f"a slow decoder with a fast representation generalises (here {slow:.0%} of it)", slow > 0.5),
        (
            f"comprehension is where the representation is faster than the decoder (here {part:.0%} of it)",
            part > 0.5,
        ),
    ]


def _capacity(diagram: PhaseDiagram) -> list[Claim]:
    """What Figures 6 (b)-(d) have in common; the top of the paper's diagrams is a small weight decay."""
    return [
        four_phases(diagram),
        rules(diagram, "a fast and capable decoder", "memorization", HIGH, LOW),
        rules(diagram, "a fast and simple decoder", "confusion", HIGH, HIGH),
        sandwiched(diagram),
    ]


def regression(out: Path, budget: Budget) -> list[Path]:
    """Figure 6 (b): phases over learning rate and weight decay of the decoder, addition, regression."""
    effort = EFFORTS[budget]
    model = ToyAddition(hidden=effort.widths)
    plane = Plane(model, "weight_decay", (0.0, 10.0), _options(effort), effort.least)
    return _one(out, budget, "liu-6b", "Addition, regression", plane, _capacity)


def classification(out: Path, budget: Budget) -> list[Path]:
    """Figure 6 (c): phases over learning rate and weight decay of the decoder, addition, classification."""
    effort = EFFORTS[budget]
    model = ToyAddition(hidden=effort.widths, kind="classification")
    plane = Plane(model, "weight_decay", (0.0, 20.0), _options(effort), effort.least)
    return _one(out, budget, "liu-6c", "Addition, classification", plane, _capacity)


def permutation(out: Path, budget: Budget) -> list[Path]:
    """Figure 6 (d): phases over learning rate and weight decay of the decoder, S_3, regression."""
    effort = EFFORTS[budget]
    model = GroupDecoder(hidden=effort.widths)
    plane = Plane(model, "weight_decay", (0.5, 200.0), _options(effort, PERMUTATION), effort.least)
    return _one(out, budget, "liu-6d", "Permutations S_3, regression", plane, _capacity)


# -- Figures 13 to 15 --------------------------------------------------------------------------------------


def _both(
    out: Path,
    budget: Budget,
    figure: str,
    name: str,
    limits: Limits,
    claims: Callable[[PhaseDiagram], list[Claim]],
) -> list[Path]:
    """Phases over the decoder's rate, 1e-4 to 1e-2, and something else, for both kinds of loss."""
    effort = EFFORTS[budget]
    diagrams = {}
    for kind in KINDS:
        model = ToyAddition(hidden=effort.widths, kind=kind)
        plane = Plane(model, name, limits, _options(effort), 1e-4)
        diagrams[f"Addition, {kind}"] = plane.compute(effort, _store(out, figure, budget), pair=True)
    found = [row for title, diagram in diagrams.items() for row in judged(title, claims(diagram))]
    heading = f"{LABELS[name].capitalize()} ({figure.replace('liu-', 'Fig. ')}): {_setting(effort)}"
    return publish(out, figure, diagrams, found, heading=heading)


def batches(out: Path, budget: Budget) -> list[Path]:
    """Figure 13: phases over the decoder's learning rate and the batch size."""
    return _both(out, budget, "liu-13", "batch_size", (5, 45), _batches)


def _batches(diagram: PhaseDiagram) -> list[Claim]:
    return [
        rules(diagram, "a slow decoder and large batches", "comprehension", LOW, HIGH),
        rules(diagram, "a slow decoder and small batches", "grokking", LOW, LOW),
    ]


def initialisation(out: Path, budget: Budget) -> list[Path]:
    """Figure 14: phases over the decoder's learning rate and the scale of the initial embeddings."""
    return _both(out, budget, "liu-14", "embedding_scale", (0.1, 10.0), _initialisation)


def _initialisation(diagram: PhaseDiagram) -> list[Claim]:
    small, large = (
        diagram.shares((ALL, part))["comprehension"].estimate for part in ((0.0, 0.5), (0.5, 1.0))
    )
    text = (
        f"a small scale leads to comprehension (here {small:.0%} of the lower half, {large:.0%} of the upper)"
    )
    return [(text, small > large)]


def representation_decay(out: Path, budget: Budget) -> list[Path]:
    """Figure 15: phases over the decoder's learning rate and the representation's weight decay."""
    return _both(out, budget, "liu-15", "embedding_weight_decay", (0.0, 5.0), _representation_decay)


def _representation_decay(diagram: PhaseDiagram) -> list[Claim]:
    along, across = difference(diagram, "y"), difference(diagram, "x")
    text = (
        f"the representation's weight decay does not matter much (here {along:.0%} of the plane changes its "
        f"phase between the halves of that axis, {across:.0%} between those of the decoder's rate)"
    )
    return [(text, along < across / 2)]
