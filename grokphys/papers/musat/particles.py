"""Musat's particles at scale: Table 2 from many runs, and a map over alignment and step size."""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from analysis.compare.comparison import structures
from analysis.plots import figures
from grokphys.output import Budget, save_figure, write_csv
from grokphys.report import musat
from grokphys.report.page import Picture, Table, publish
from physics.particles.structures import circle_ratio
from physics.particles.system import ParticleSystem
from physics.simulate import simulate

STEPS = 100
RUNS: dict[Budget, int] = {"quick": 100, "default": 1000, "paper": 10_000}
ALIGNMENTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
SHOWN: dict[Budget, int] = {"quick": 8, "default": 20, "paper": 20}
"""Runs that Appendix E shows for each alignment constant."""
STEP_SIZES = (0.005, 0.01, 0.02, 0.04)


def table_2(out: Path, budget: Budget) -> list[Path]:
    """Musat, Table 2: circles and grid imperfections of the particles by alignment constant."""
    ensembles = {
        alignment: simulate(
            ParticleSystem(alignment=alignment), steps=STEPS, runs=RUNS[budget], record_every=STEPS
        )
        for alignment in musat.TABLE_2
    }
    rows = [
        {"f_a": alignment, "quantity": name, "particles": moved.runs}
        | {"here": value.estimate, "here_low": value.low, "here_high": value.high, "count": value.count}
        for alignment, moved in ensembles.items()
        for found in [structures(moved.final)]
        for name, value in (("circles", found.circles), ("grid imperfections", found.grid_imperfections))
    ]
    section = musat.table_2(ensembles)
    numbers = write_csv(out / "musat-table2-numbers.csv", rows)
    return [*publish(out, "musat-table2", section.tables[0], section.figures[0]), numbers]


def arrangements(out: Path, budget: Budget) -> list[Path]:
    """Musat, Figure 5 and Appendix E: where particles end, the first runs for each alignment constant."""
    count = SHOWN[budget]
    rows, paths = [], []
    for alignment in sorted(musat.TABLE_2):
        moved = simulate(ParticleSystem(alignment=alignment), steps=STEPS, runs=count, record_every=STEPS)
        found = structures(moved.final)
        columns = count // 4
        with figures.style():
            figure = Figure(figsize=(2.1 * columns, 9.2))
            figure.suptitle(f"f_a = {alignment:g}, {STEPS} steps (App. E)", fontsize=10.5)
            for run, ax in enumerate(figure.subplots(4, columns).flat):
                row = {"f_a": alignment, "run": run, "circle": bool(found.circle[run])}
                row |= {"norm_ratio": float(circle_ratio(moved.final[run]))}
                row |= {"grid_imperfections": int(found.imperfections[run])}
                kind = (
                    f"circle, {row['norm_ratio']:.2f}"
                    if row["circle"]
                    else f"{row['grid_imperfections']} imperf."
                )
                figures.show_embedding(moved.final[run], ax, title=f"{run}: {kind}")
                rows.append(row)
            paths.append(save_figure(figure, out / f"musat-5-fa{alignment:g}.png"))
    circles = {a: sum(row["circle"] for row in rows if row["f_a"] == a) for a in sorted(musat.TABLE_2)}
    print(
        "  circles among the first "
        + f"{count} runs: "
        + ", ".join(f"{n} (f_a = {a:g})" for a, n in circles.items())
    )
    return [write_csv(out / "musat-5.csv", rows), *paths]


def phase_map(out: Path, budget: Budget) -> list[Path]:
    """Musat's particles: circles and imperfections over f_a and step size, each point to the same time."""
    runs = RUNS[budget] // 5
    circles = np.empty((len(STEP_SIZES), len(ALIGNMENTS)))
    imperfections = np.empty_like(circles)
    rows = []
    for i, step_size in enumerate(STEP_SIZES):
        steps = round(STEPS * 0.02 / step_size)
        for j, alignment in enumerate(ALIGNMENTS):
            system = ParticleSystem(alignment=alignment)
            moved = simulate(system, steps=steps, step_size=step_size, runs=runs, record_every=steps)
            found = structures(moved.final)
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
    table = Table(
        f"Circles, and imperfections of the other runs; {runs} runs a point, followed to time "
        f"{STEPS * 0.02:g}; 95 % intervals in brackets.",
        ["step size", "f_a", "circles %", "imperfections"],
        rows,
    )
    return publish(out, "musat-map", table, _map(circles, imperfections, ALIGNMENTS, STEP_SIZES))


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
            image = ax.imshow(values, origin="lower", aspect="auto", cmap="viridis")
            ax.set_xticks(range(len(alignments)), [f"{value:g}" for value in alignments])
            ax.set_yticks(range(len(step_sizes)), [f"{value:g}" for value in step_sizes])
            ax.set(xlabel="f_a", ylabel="step size", title=title)
            ax.grid(visible=False)
            figure.colorbar(image, ax=ax)
    plt.close(figure)
    return Picture("Structures over alignment constant and step size, at equal times.", figure)
