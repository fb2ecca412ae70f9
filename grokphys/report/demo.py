"""The demonstration: simulate, train, fit and compare, and write a report of it."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.circles.classes import structures
from analysis.comparison.compared import Comparison, compare
from analysis.plots.embeddings import show_embedding
from analysis.plots.style import panels
from analysis.stats.intervals import Interval, mean
from grokphys.output import make_directory, refuse_existing
from grokphys.papers.evidence import joined
from grokphys.papers.musat import tables as musat
from grokphys.papers.musat.figures import typical_runs
from grokphys.papers.recipe import Number
from grokphys.progress import stages
from grokphys.report.circles import law_report
from grokphys.report.comparing import collapsed, comparison_report
from grokphys.report.page import Section, document, write_report
from nets.models import ConstantAttention
from nets.training import train
from physics.checks import whole_number
from physics.examples import example_path
from physics.particles.system import ParticleSystem
from physics.seeds import parent_seed
from physics.simulate import simulate
from physics.trajectory import Trajectory, load
from physics.trajectory.provenance import code_version

WEIGHT_DECAY = 1.0
ABOUT = "The particles (f_a = 1) start from the initial embeddings of the networks (weight decay 1)."


def demonstrate(
    out: Path, *, runs: int, steps: int, seed: int, overwrite: bool, progress: bool
) -> tuple[Path, list[Section]]:
    """Run the demonstration, and write its trajectories and its report to a directory.

    Parameters
    ----------
    out : Path
        Directory to write to, which is created if it does not exist.
    runs : int
        Number of runs of each ensemble, at least 1.
    steps : int
        Number of steps of training, at least 1.
    seed : int
        Seed of all ensembles, at least 0.
    overwrite : bool
        Whether to replace files that exist.
    progress : bool
        Whether to show progress bars on stderr.

    Returns
    -------
    Path
        The report.
    list of Section
        Its sections.

    Raises
    ------
    InputError
        If an argument is out of range.
    OutputError
        If a file exists and `overwrite` is False, or cannot be written.
    """
    runs, steps = whole_number("runs", runs, 1), whole_number("steps", steps, 1)
    parent_seed(seed)
    began = time.perf_counter()
    report, trained = out / "report.html", out / f"networks_wd{WEIGHT_DECAY:g}.h5"
    simulated = {alignment: out / f"particles_fa{alignment:g}.h5" for alignment in musat.TABLE_2}
    paired = out / "particles_from_networks.h5"
    for path in (report, trained, paired, *simulated.values()):
        refuse_existing(path, overwrite, parents=True)
    make_directory(out)
    common: Any = {"runs": runs, "seed": seed, "overwrite": overwrite, "progress": progress}
    particles = {
        alignment: simulate(ParticleSystem(alignment=alignment), out=path, **common)
        for alignment, path in simulated.items()
    }
    networks = train(ConstantAttention(), steps=steps, weight_decay=WEIGHT_DECAY, out=trained, **common)
    pairs = simulate(ParticleSystem(alignment=1.0), initial=networks.initial, out=paired, **common)
    with stages("demo", "tables", "compare", "fit") as begin:
        begin()
        verdicts, *tables = numbers_of_musat(particles, {WEIGHT_DECAY: networks})
        begin()
        comparison = compare(pairs, networks, names=("particle", "network"), paired=True)
        _, *compared = comparison_report(comparison, about=ABOUT)
        begin()
        forward, *laws = law_report(load(example_path("ding")))
    sections = [*compared, *tables, *laws]
    seconds = time.perf_counter() - began
    write_report(
        report,
        "GrokPhys demonstration: particles, networks and circles",
        f"grokphys {code_version()}, seed {seed}, {runs} runs of each ensemble, computed in {seconds:.0f} "
        "seconds.",
        [*_answer(comparison, networks), *verdicts.text, *forward.text],
        sections,
    )
    return report, sections


def numbers_of_musat(
    particles: Mapping[float, Trajectory], networks: Mapping[float, Trajectory]
) -> list[Section]:
    """Compare particles with Table 2 of Musat, and networks with Table 1.

    Parameters
    ----------
    particles, networks : mapping of float to Trajectory
        Simulated particles by their alignment constant f_a, and trained networks by their weight decay, all
        of them in the paper's tables, and f_a = 1 among them. All have the same number of runs.

    Returns
    -------
    list of Section
        How many numbers of the paper our intervals contain, and then a section for each table, whose picture
        shows the estimates of the particles, and final positions of the first network beside the particles
        with f_a = 1.
    """
    moved = [{"f_a": np.full(run.runs, f), **musat.structures_of(run.final)} for f, run in particles.items()]
    learnt = [{"weight_decay": np.full(run.runs, d), **musat.table_of(run)} for d, run in networks.items()]
    found = {"particles": joined(moved), "networks": joined(learnt)}
    rules = {
        "f_a": musat.numbers_table_2({f_a: musat.TABLE_2[f_a] for f_a in particles}),
        "weight decay": musat.numbers_table_1({decay: musat.TABLE_1[decay] for decay in networks}),
    }
    rows = {name: [(rule, rule.measure(found, 0.95)) for rule in each] for name, each in rules.items()}
    trained, axes = next(iter(networks.values())), panels(1, 2, 4.8, 3.0, sharey=True)
    musat.show_numbers(rules["f_a"], found, axes[0])
    figures = {"f_a": axes[0, 0].figure, "weight decay": _gallery(particles[1.0], trained)}
    return document(
        "musat.txt", figures, tables=rows, verdict=verdict, runs=trained.runs,
        epochs=int(trained.steps[-1]), paper_runs=musat.PAPER_RUNS,
    )  # fmt: skip


def verdict(rule: Number, ours: Interval) -> str:
    """Say whether our 95 % interval contains a number of the paper, or overlaps with its interval.

    The words are "agrees", "intervals overlap" or "differs", and "none here" or "no interval here" if
    something is missing.
    """
    low, high = rule.interval or (rule.value, rule.value)
    if not np.isfinite(ours.estimate):
        return "none here"
    if not np.isfinite([ours.low, ours.high]).all():
        return "no interval here"
    if ours.covers(rule.value):
        return "agrees"
    return "intervals overlap" if ours.low <= high and low <= ours.high else "differs"


def _gallery(particles: Trajectory, networks: Trajectory) -> Figure:
    """Draw final positions: a circle, the best grid and a typical grid; a structure may be missing."""
    axes = panels(2, 3, 9.5 / 3, 3.3)
    for row, name, trajectory in zip(axes, ("particles", "networks"), (particles, networks), strict=True):
        chosen = typical_runs(trajectory, structures(trajectory.final))
        for ax, kind in zip(row, ("circle", "grid", "imperfect grid"), strict=True):
            if kind in chosen:
                E = trajectory.final[chosen[kind]]
                show_embedding(E, ax, title=f"{name} {chosen[kind]}: {kind} ({musat.what(E)})")
            else:
                ax.set_axis_off()
    return axes[0, 0].figure


def _answer(comparison: Comparison, networks: Trajectory) -> list[str]:
    """Return what was asked, what is to be expected, and what was found, as paragraphs."""
    circles = [ends.circle for ends in (comparison.simulated, comparison.trained) if ends is not None]
    last = (networks.observables[f"{part}_accuracy"][:, -1] for part in ("train", "validation"))
    training, validation = (mean(100 * values).within(0, 100) for values in last)
    (opening,) = document(
        "demo.txt", c=comparison, runs=networks.runs, paper=musat.TABLE_1[WEIGHT_DECAY], training=training,
        validation=validation, circles=[int(each.sum()) for each in circles],
        both=int(np.logical_and(*circles).sum()), flat=collapsed(comparison),
        lasting=comparison.onsets.get("lasting circle"),
    )  # fmt: skip
    return opening.text
