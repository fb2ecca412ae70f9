"""Musat's particles at scale: Table 2 from many runs, and a map over alignment and step size."""

import time
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from analysis import figures
from analysis.comparison import structures
from experiments import musat
from experiments.report import Picture, Section, Table, write_report
from physics.checks import number, whole_number
from physics.simulate import simulate
from physics.storage import code_version
from physics.systems.particles import ParticleSystem

STEPS = 100


def reproduce_musat_table2(
    runs: int = 1000, *, seed: int = 0, out: Path = Path("results/musat-table2")
) -> int:
    """Reproduce Table 2: circles and grid imperfections of the particles by alignment constant.

    Args:
        runs: runs for each constant.
        seed: seed of the ensembles.
        out: folder of the report.
    """
    runs = whole_number("runs", runs, 2)
    began = time.perf_counter()
    ensembles = {
        alignment: simulate(
            ParticleSystem(alignment=alignment), steps=STEPS, runs=runs, seed=seed, record_every=STEPS
        )
        for alignment in musat.TABLE_2
    }
    return _publish(out, "Musat, Table 2", [musat.table_2(ensembles)], seed, time.perf_counter() - began)


def map_musat_particles(
    runs: int = 200,
    *,
    alignments: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0),
    step_sizes: tuple[float, ...] = (0.005, 0.01, 0.02, 0.04),
    seed: int = 0,
    out: Path = Path("results/musat-map"),
) -> int:
    """Map the fraction of circles and the grid imperfections of the rest over f_a and step size.

    Every point is followed for the same time, the paper's 100 steps of 0.02.

    Args:
        runs: runs for each point of the map.
        alignments: constants f_a.
        step_sizes: step sizes η.
        seed: seed of the ensembles.
        out: folder of the report.
    """
    runs = whole_number("runs", runs, 2)
    began = time.perf_counter()
    circles = np.empty((len(step_sizes), len(alignments)))
    imperfections = np.empty_like(circles)
    rows = []
    for i, step_size in enumerate(step_sizes):
        steps = max(1, round(STEPS * 0.02 / number("step_sizes", step_size, above=0.0)))
        for j, alignment in enumerate(alignments):
            found = structures(
                simulate(
                    ParticleSystem(alignment=alignment),
                    steps=steps,
                    step_size=step_size,
                    runs=runs,
                    seed=seed,
                    record_every=steps,
                ).final
            )
            circles[i, j] = 100 * found.circles.estimate
            imperfections[i, j] = found.grid_imperfections.estimate
            rows.append(
                [
                    f"{step_size:g}",
                    f"{alignment:g}",
                    found.circles.format(1, 100),
                    found.grid_imperfections.format(),
                ]
            )
    section = Section(
        "Particles: over alignment and step size",
        [f"Seventeen particles in the plane, {runs} runs a point, each followed to time {STEPS * 0.02:g}."],
        [
            Table(
                "Circles, and imperfections of the other runs; 95 % intervals in brackets.",
                ["step size", "f_a", "circles %", "imperfections"],
                rows,
            )
        ],
        [_map(circles, imperfections, alignments, step_sizes)],
    )
    return _publish(out, "Musat's particles, mapped", [section], seed, time.perf_counter() - began)


def _map(
    circles: np.ndarray,
    imperfections: np.ndarray,
    alignments: tuple[float, ...],
    step_sizes: tuple[float, ...],
) -> Picture:
    with figures.style():
        figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.2))
        for ax, values, title in zip(
            axes,
            (circles, imperfections),
            ("circles, % of runs", "grid imperfections of the rest"),
            strict=True,
        ):
            image = ax.imshow(values, origin="lower", aspect="auto")
            ax.set_xticks(range(len(alignments)), [f"{value:g}" for value in alignments])
            ax.set_yticks(range(len(step_sizes)), [f"{value:g}" for value in step_sizes])
            ax.set(xlabel="f_a", ylabel="step size", title=title)
            ax.grid(visible=False)
            figure.colorbar(image, ax=ax)
    plt.close(figure)
    return Picture("Structures over alignment constant and step size, at equal times.", figure)


def _publish(out: Path, title: str, sections: list[Section], seed: int, seconds: float) -> int:
    write_report(
        out / "report.html",
        title,
        f"grokphys {code_version()}, seed {seed}, {seconds:.1f} seconds of simulation.",
        sections,
    )
    for section in sections:
        for table in section.tables:
            print(table.text(), end="\n\n")
    print(f"report: {out / 'report.html'}")
    return 0
