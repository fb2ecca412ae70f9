"""The demonstration: simulate, train, fit and compare, and write a report of it."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from analysis.comparison.compared import Comparison, compare
from analysis.stats.intervals import mean
from grokphys.output import make_directory, refuse_existing
from grokphys.progress import stages
from grokphys.report import musat
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
        covered, *tables = musat.tables(particles, {WEIGHT_DECAY: networks})
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
        [*_answer(comparison, networks), *covered.text, *forward.text],
        sections,
    )
    return report, sections


def _answer(comparison: Comparison, networks: Trajectory) -> list[str]:
    """Return what was asked, what is to be expected, and what was found, as paragraphs."""
    circles = [ends.circle for ends in (comparison.simulated, comparison.trained) if ends is not None]
    last = (networks.observables[f"{part}_accuracy"][:, -1] for part in ("train", "validation"))
    training, validation = (mean(100 * values).within(0, 100) for values in last)
    (opening,) = document(
        "demo.txt", c=comparison, runs=networks.runs, paper=musat.TABLE_1[WEIGHT_DECAY], training=training,
        validation=validation, circles=[int(each.sum()) for each in circles],
        both=int(np.logical_and(*circles).sum()), flat=collapsed(comparison),
    )  # fmt: skip
    return opening.text
