"""The demonstration: simulate, train, fit and compare, and write a report of it."""

import time
from collections import Counter
from pathlib import Path

from analysis.comparison.compared import compare
from grokphys.files import embedded_trajectory
from grokphys.output import make_directory, refuse_existing
from grokphys.progress import stages
from grokphys.report import musat
from grokphys.report.circles import ode_section
from grokphys.report.comparing import comparison_sections, conclusion
from grokphys.report.page import Section, write_report
from grokphys.report.wording import caption
from nets.models import ConstantAttention
from nets.training import train
from physics.checks import whole_number
from physics.particles.system import ParticleSystem
from physics.seeds import parent_seed
from physics.simulate import simulate
from physics.trajectory import load
from physics.trajectory.provenance import code_version

WEIGHT_DECAY = 1.0
VERDICTS = ("intervals meet", "not covered", "none here", "no interval here")


def demonstrate(
    out: Path, *, runs: int, epochs: int, seed: int, overwrite: bool, progress: bool
) -> tuple[Path, list[Section]]:
    """Run the demonstration, and write its trajectories and its report to a directory.

    Parameters
    ----------
    out : Path
        Directory to write to, which is created if it does not exist.
    runs : int
        Number of runs of each ensemble, at least 1.
    epochs : int
        Number of epochs of training, at least 1.
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
        about = caption("demo", "simulated", second=comparison.names[1], decay=WEIGHT_DECAY)
        compared = comparison_sections(comparison, [particles[1.0]], [networks], about=about)
        begin()
        fitted = ode_section(
            load(embedded_trajectory()),
            caption("demo", "law"),
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
        [
            agreement(table_1, "Table 1 of Musat"),
            agreement(table_2, "Table 2 of Musat, to which the free parameters of the particles were tuned"),
            conclusion(comparison)[0],
            fitted.text[-1],
        ],
        sections,
    )
    return report, sections


def agreement(section: Section, name: str) -> str:
    """Return how many numbers of a table of Musat our intervals contain.

    Parameters
    ----------
    section : Section
        Section that `table_1` or `table_2` of `grokphys.report.musat` returns; its verdicts are counted.
    name : str
        Name of the table.
    """
    verdicts = Counter(row[-1] for row in section.tables[0].rows)
    known = verdicts.total() - verdicts["not in the paper"]
    rest = [f"{verdicts[word]} {word}" for word in VERDICTS if verdicts[word]]
    return f"{name}: {verdicts['covered']} of {known} numbers are covered by our 95 % intervals" + (
        f" ({', '.join(rest)})." if rest else "."
    )
