"""The main job in one command, on real parts: simulate, train, fit, compare, and show the result."""

import time
from pathlib import Path

from analysis.compare.comparison import compare
from grokphys.files import embedded_trajectory
from grokphys.output import make_directory, refuse_existing
from grokphys.progress import stages
from grokphys.report import musat
from grokphys.report.circles import ode_section
from grokphys.report.page import Section, write_report
from grokphys.report.side_by_side import comparison_sections
from nets.models import ConstantAttention
from nets.training import train
from physics.checks import whole_number
from physics.particles.system import ParticleSystem
from physics.seeds import parent_seed
from physics.simulate import simulate
from physics.trajectory import Trajectory
from physics.trajectory.provenance import code_version

WEIGHT_DECAY = 1.0


def demonstrate(
    out: Path, *, runs: int, epochs: int, seed: int, overwrite: bool, progress: bool
) -> tuple[Path, list[Section]]:
    """Run everything, store the trajectories and the report under `out`, and return its path and sections."""
    runs, epochs = whole_number("runs", runs, 1), whole_number("epochs", epochs, 1)
    parent_seed(seed)
    began = time.perf_counter()
    report, trained = out / "report.html", out / f"networks_wd{WEIGHT_DECAY:g}.h5"
    simulated = {alignment: out / f"particles_fa{alignment:g}.h5" for alignment in musat.TABLE_2}
    for path in (report, trained, *simulated.values()):
        refuse_existing(path, overwrite, parents=True)
    make_directory(out)
    particles = {
        alignment: simulate(
            ParticleSystem(alignment=alignment),
            runs=runs,
            seed=seed,
            out=path,
            overwrite=overwrite,
            progress=progress,
        )
        for alignment, path in simulated.items()
    }
    networks = train(
        ConstantAttention(),
        runs=runs,
        steps=epochs,
        seed=seed,
        weight_decay=WEIGHT_DECAY,
        out=trained,
        overwrite=overwrite,
        progress=progress,
    )
    with stages("demo", "tables", "compare", "fit") as begin:
        begin()
        table_1, table_2 = musat.table_1({WEIGHT_DECAY: networks}), musat.table_2(particles)
        gallery = musat.gallery(particles[1.0], networks)
        begin()
        comparison = compare(particles[1.0], networks)
        compared = comparison_sections(comparison, [particles[1.0]], [networks])
        begin()
        fitted = ode_section(
            Trajectory.open(embedded_trajectory()),
            "A real trajectory, trained outside this project: the embedding MLP of Ding et al. on addition "
            "modulo 59, 128 dimensions.",
        )
    sections = [
        Section(table_2.title, table_2.text, table_2.tables, table_2.figures),
        Section(table_1.title, table_1.text, table_1.tables, [gallery]),
        *compared,
        fitted,
    ]
    seconds = time.perf_counter() - began
    write_report(
        report,
        "GrokPhys: particles, networks and circles side by side",
        f"grokphys {code_version()}, seed {seed}, {runs} runs of each ensemble, {seconds:.0f} seconds.",
        sections,
    )
    return report, sections
