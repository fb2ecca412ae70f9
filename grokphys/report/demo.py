"""The demonstration: simulate, train, fit and compare, and write a report of it."""

import time
from pathlib import Path

from analysis.compare.comparison import compare
from grokphys.files import embedded_trajectory
from grokphys.output import make_directory, refuse_existing
from grokphys.progress import stages
from grokphys.report import musat
from grokphys.report.circles import ode_section
from grokphys.report.conclusion import conclusion
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
    """Run the demonstration, and return the path of its report and the sections.

    The trajectories and the report are written to the directory `out`.
    """
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
            "The law is fitted to a training run that was not made by this project: the embedding MLP of "
            "Ding "
            "et al. on addition modulo 59 in 128 dimensions.",
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
        "GrokPhys demonstration: particles, networks and circles",
        f"grokphys {code_version()}, seed {seed}, {runs} runs of each ensemble, computed in {seconds:.0f} "
        "seconds.",
        [_agreement([table_2, table_1]), conclusion(comparison)[0], fitted.text[-1]],
        sections,
    )
    return report, sections


def _agreement(sections: list[Section]) -> str:
    """Return how many numbers of the paper our intervals contain, as the verdicts of its tables say."""
    words = [cell for one in sections for table in one.tables for row in table.rows for cell in row]
    verdicts = [word for word in words if word in ("covered", "intervals meet", "not covered")]
    covered, meet = verdicts.count("covered"), verdicts.count("intervals meet")
    if covered == len(verdicts):
        return f"Our 95 % intervals contain all {covered} numbers that Musat prints for these settings."
    differ = len(verdicts) - covered - meet
    return (
        f"Our 95 % intervals contain {covered} of the {len(verdicts)} numbers that Musat prints for these "
        "settings"
        + (f"; for {meet} more, the interval of the paper overlaps with ours" if meet else "")
        + (f"; {differ} {'differs' if differ == 1 else 'differ'}." if differ else ".")
    )
