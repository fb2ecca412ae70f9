"""The papers' systems against each other: prepared comparisons, with the report of `grokphys compare`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.fourier import survives
from analysis.circles.structures import Structures, structures
from analysis.circles.survival import StoppingRule
from analysis.compare.comparison import Comparison, compare
from analysis.compare.motion import Paths
from analysis.compare.relabelling import no_relabelling
from analysis.laws.ode import fit_trajectories
from analysis.stats.calibration import Calibration, calibrate
from analysis.stats.effects import cliffs_delta
from analysis.stats.intervals import Interval, difference, proportion
from grokphys.output import Budget, write_csv
from grokphys.papers.ding.training import DECAY
from grokphys.papers.liu.theory import LEARNING_RATE, TOKENS
from grokphys.papers.liu.toy import DECODER_RATE, DELTA, GROKKED, TRACK
from grokphys.report import circles as ding
from grokphys.report import musat
from grokphys.report.page import Section, Table
from grokphys.report.side_by_side import comparison_sections, findings, motion_table, write_comparison
from nets.models import ConstantAttention, EmbeddingMLP, ToyAddition
from nets.networks import training_sets
from nets.training import train
from physics import EffectiveTheory, ParticleSystem, predicted_accuracy, representation_quality, simulate
from physics.trajectory import Trajectory
from physics.trajectory.provenance import code_version

Array = NDArray[np.float64]
PARTICLE_RUNS: dict[Budget, int] = {"quick": 50, "default": 200, "paper": 400}
EPOCHS = 2000
TOY_SIZES: dict[Budget, tuple[int, ...]] = {
    "quick": (30, 45),
    "default": (20, 25, 30, 35, 40, 45, 50),
    "paper": tuple(range(15, 55, 3)),
}
TOY_SEEDS: dict[Budget, int] = {"quick": 5, "default": 8, "paper": 20}
TOY_STEPS: dict[Budget, int] = {"quick": 2000, "default": 5000, "paper": 10_000}
THEORY_SPAN = 100
"""The theory is followed to so many times the steps of the networks, in steps of the same rate."""
MLP: dict[Budget, tuple[EmbeddingMLP, int]] = {
    "quick": (EmbeddingMLP(tokens=31, dim=64), 6),
    "default": (EmbeddingMLP(), 8),
    "paper": (EmbeddingMLP(), 20),
}
ODE_STEPS = 1000


# -- effective theory against toy network ------------------------------------------------------------------


def theory_and_toy(out: Path, budget: Budget) -> list[Path]:
    """Effective theory against toy networks (Liu, Figs. 4 c, d and 5 b): same starts, same training sets."""
    networks = [
        _toys(size, TOY_SEEDS[budget], TOY_STEPS[budget], number)
        for number, size in enumerate(TOY_SIZES[budget])
    ]
    theories = [_theory_of(one) for one in networks]
    comparison = compare(
        theories,
        networks,
        names=("theory", "networks"),
        paired=True,
        symmetry=no_relabelling(TOKENS),
        delta=DELTA,
    )
    predictions = _predictions(theories, networks, comparison)
    comparison = replace(comparison, accuracy=predictions["the theory, clocks aligned"])
    sizes = ", ".join(map(str, TOY_SIZES[budget]))
    text = (
        f"Networks learn addition of {TOKENS} symbols in one dimension from {sizes} of the 55 samples, "
        f"{TOY_SEEDS[budget]} of each size, for {TOY_STEPS[budget]} steps. Each stands beside the gradient "
        "flow of the effective theory from its own start and with its own training set. The networks' "
        "embeddings move by AdamW at "
        f"{LEARNING_RATE:g}, those of the theory by a plain gradient of that rate, so that one factor "
        "between the clocks is free, and the theory is followed further than the networks are; "
        f"δ = {DELTA:g}."
    )
    return _publish(
        out,
        "compare-theory",
        "Effective theory against toy networks",
        comparison,
        [
            Section("The pairing", [text], [_prediction_table(predictions)]),
            *comparison_sections(comparison, theories, networks),
        ],
    )


def _toys(size: int, seeds: int, steps: int, number: int) -> Trajectory:
    return train(
        ToyAddition(TOKENS),
        runs=seeds,
        steps=steps,
        seed=100 + number,
        learning_rate=DECODER_RATE,
        weight_decay=0.0,
        embedding_learning_rate=LEARNING_RATE,
        train_fraction=size / 55,
        record=steps // 60,
        observables=("train_accuracy", "validation_accuracy"),
        thresholds={"quality": GROKKED},
        track=TRACK,
        delta=DELTA,
    )


def _theory_of(networks: Trajectory) -> Trajectory:
    """The flow beside each network: its start, normalised, and its training set."""
    span = THEORY_SPAN * float(networks.steps[-1])
    times = np.append(0.0, np.geomspace(span / 20_000, span, 300))
    states, reached = [], []
    for E, theory in zip(networks.initial.astype(float), _own_theories(networks), strict=True):
        states.append(theory.solve((E - E.mean(axis=0)) / E.std(axis=0), times * LEARNING_RATE))
        above = representation_quality(states[-1], theory, DELTA) >= GROKKED
        reached.append(float(above.argmax()) if above.any() else np.nan)
    return Trajectory(
        np.stack(states),
        np.arange(len(times)),
        times,
        observables={"steps_to_quality": np.repeat(np.array(reached)[:, None], len(times), axis=1)},
        parameters={"program": "effective theory", "system": {"type": "EffectiveTheory", "tokens": TOKENS}},
    )


def _own_theories(networks: Trajectory) -> list[EffectiveTheory]:
    model, examples = training_sets(networks)
    assert model.theory is not None
    return [replace(model.theory, pairs=model.theory.operation.samples[chosen]) for chosen in examples]


def _predictions(
    theories: Sequence[Trajectory], networks: Sequence[Trajectory], comparison: Comparison
) -> dict[str, Calibration]:
    """Accuracy on all samples, predicted from two embeddings, against that of the networks."""
    assert comparison.motion is not None
    predicted: dict[str, list[float]] = {"the theory, clocks aligned": [], "the network's own embedding": []}
    measured: list[float] = []
    for flow, trained in zip(theories, networks, strict=True):
        moved = Paths(flow.positions, flow.times)
        end = moved.at(np.array([comparison.motion.scale.estimate * trained.times[-1]]))[:, 0]
        for kind, states in zip(predicted, (end, trained.final.astype(float)), strict=True):
            each = zip(states, _own_theories(trained), strict=True)
            predicted[kind] += [float(predicted_accuracy(E, theory, DELTA)) for E, theory in each]
        part = len(training_sets(trained)[1][0]) / 55
        right, held = (trained.observables[f"{name}_accuracy"][:, -1] for name in ("train", "validation"))
        measured += (part * right + (1 - part) * held).tolist()
    return {kind: calibrate(values, measured) for kind, values in predicted.items()}


def _prediction_table(predictions: Mapping[str, Calibration]) -> Table:
    rows = [
        [kind, one.bias.format(3), one.error.format(3), one.correlation.format(2), one.slope.format(2)]
        for kind, one in predictions.items()
    ]
    return Table(
        "Accuracy of the networks on all samples, and as predicted from an embedding (Liu, Eq. 13).",
        ["predicted from", "measured minus predicted", "root mean square", "correlation", "slope"],
        rows,
    )


# -- particles against constant attention ------------------------------------------------------------------


def particles_and_attention(out: Path, budget: Budget) -> list[Path]:
    """Particles against constant attention (Musat, Tables 1 and 2): every f_a with every weight decay."""
    runs = PARTICLE_RUNS[budget]
    particles = {
        alignment: simulate(ParticleSystem(alignment=alignment), runs=runs, record_every=2)
        for alignment in musat.TABLE_2
    }
    networks = {
        decay: train(ConstantAttention(), runs=runs, steps=EPOCHS, weight_decay=decay, record=EPOCHS // 50)
        for decay in musat.TABLE_1
    }
    comparison = compare(
        particles[1.0], networks[1.0], names=("particles", "networks"), align="grid_imperfections"
    )
    text = (
        f"{runs} particle systems at each alignment constant f_a, and {runs} networks at each weight decay, "
        f"{EPOCHS} epochs. The table holds every row of the paper's Table 2 against every row of its Table "
        "1; the sections below compare f_a = 1 with weight decay 1. " + musat.VERDICT
    )
    return _publish(
        out,
        "compare-particles",
        "Particles against networks of constant attention",
        comparison,
        [
            Section("The pairing", [text], [_paper_table(particles, networks)]),
            *comparison_sections(comparison, [particles[1.0]], [networks[1.0]]),
        ],
    )


def _paper_table(particles: Mapping[float, Trajectory], networks: Mapping[float, Trajectory]) -> Table:
    """Differences of the rows of Table 2 from those of Table 1, the paper's and ours."""
    ours = {f_a: structures(one.final) for f_a, one in particles.items()}
    theirs = {decay: structures(one.final) for decay, one in networks.items()}
    rows = []
    for f_a, left in ours.items():
        for decay, right in theirs.items():
            printed = musat.TABLE_2[f_a], musat.TABLE_1[decay]
            circles = difference(*(proportion(one.circles, musat.PAPER_RUNS) for one in printed))
            found = difference(left.circles, right.circles)
            grids = _distance(printed[0].imperfections, printed[1].imperfections)
            own = _distance(left.grid_imperfections, right.grid_imperfections)
            effect = cliffs_delta(_rest(left), _rest(right))
            rows.append(
                [
                    f"f_a = {f_a:g}, decay {decay:g}",
                    circles.format(0, 100),
                    found.format(0, 100),
                    musat.verdict(found, circles),
                    grids.format(0),
                    own.format(0),
                    musat.verdict(own, grids),
                    effect.format(2),
                ]
            )
    return Table(
        "Particles minus networks: circles in % (Newcombe), grid imperfections of the rest (half widths "
        "added in squares), and Cliff's δ of these; 95 % intervals.",
        [
            "systems",
            "circles, paper",
            "here",
            "verdict",
            "imperfections, paper",
            "here",
            "verdict",
            "δ, here",
        ],
        rows,
    )


def _rest(found: Structures) -> NDArray[np.int64]:
    return found.imperfections[~found.circle]


def _distance(first: Interval, second: Interval) -> Interval:
    """Difference of two means with symmetric intervals."""
    half = np.hypot(first.high - first.estimate, second.high - second.estimate)
    centre = first.estimate - second.estimate
    return Interval(centre, centre - half, centre + half, first.count + second.count)


# -- linear ODE against embedding MLP ----------------------------------------------------------------------


def ode_and_mlp(out: Path, budget: Budget) -> list[Path]:
    """The linear ODE against the embedding MLP (Ding, Fig. 9): signals rolled out from each run's start."""
    model, runs = MLP[budget]
    trained = train(model, runs=runs, steps=ODE_STEPS, weight_decay=DECAY, record=1, observables=())
    signals = ding.signals_of(trained, 0, ODE_STEPS)
    networks = _as_trajectory(np.stack([one.values for one in signals]), signals[0].steps)
    rolled, comparisons = {}, {}
    for name, recipe in ding.RECIPES.items():
        laws = [fit_trajectories(one.values, **recipe) for one in signals]
        clock = np.arange(len(signals[0].steps))
        paths = [law.predict(one.values[0], clock) for law, one in zip(laws, signals, strict=True)]
        rolled[name] = _as_trajectory(np.stack(paths), signals[0].steps)
        comparisons[name] = compare(
            rolled[name], networks, names=("ODE", "networks"), states=True, paired=True
        )
    chosen = next(iter(comparisons))
    scores = {name: ding.fit_and_score(signals, **recipe) for name, recipe in ding.RECIPES.items()}
    text = (
        f"{runs} embedding MLPs on addition modulo {model.tokens} in {model.dim} dimensions, {ODE_STEPS} "
        "steps. The signal ‖F_k‖ of every frequency is a component; a linear ODE is fitted to each run, as "
        f"the paper does, and rolled out from that run's first frame. The sections below are of {chosen}. "
        "Their errors are in sample: the table scores one law for all runs, also forward and across runs."
    )
    others = [motion_table(one, caption=f"{name}. ") for name, one in comparisons.items()]
    return _publish(
        out,
        "compare-ode",
        "Linear ODE against embedding MLPs",
        comparisons[chosen],
        [
            Section("The pairing", [text], [ding.score_table(scores, f"steps 0 to {ODE_STEPS}"), *others]),
            *comparison_sections(comparisons[chosen], [rolled[chosen]], [networks]),
        ],
    )


def _as_trajectory(signals: Array, steps: NDArray[np.int64]) -> Trajectory:
    """Signals (runs, frames, K) as coordinates in motion, with what survives."""
    rule = StoppingRule()
    decided = np.array([_or_nan(rule.first(steps, np.nan_to_num(one))) for one in signals])
    return Trajectory(
        signals[..., None],
        steps,
        observables={
            "surviving_circles": survives(signals).sum(axis=-1).astype(float),
            "strongest_signal": signals.max(axis=-1),
            "steps_to_decided_survivors": np.repeat(decided[:, None], len(steps), axis=1),
        },
    )


def _or_nan(step: int | None) -> float:
    return np.nan if step is None else float(step)


# -- what they share ---------------------------------------------------------------------------------------


def _publish(
    out: Path, name: str, title: str, comparison: Comparison, sections: Sequence[Section]
) -> list[Path]:
    """Print what was found, and write the page, its numbers, and the table of all estimates."""
    print(f"  {findings(comparison)}")
    runs = f"{comparison.runs[0]} and {comparison.runs[1]} runs"
    page = write_comparison(
        out / f"{name}.html", title, f"grokphys {code_version()}, {runs}.", comparison, sections
    )
    rows: list[dict[str, Any]] = comparison.table()
    return [*page, write_csv(out / f"{name}.csv", rows)]
