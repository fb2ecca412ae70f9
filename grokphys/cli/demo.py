"""`grokphys demo`: the whole job on real parts, and a report of it."""

from pathlib import Path

from grokphys.options import Directory, Overwrite


def demo(
    *,
    directory: Directory = Path("results/demo"),
    runs: int = 100,
    epochs: int = 2000,
    seed: int = 0,
    overwrite: Overwrite = False,
) -> int:
    """Do the whole job on real parts and write a report: particles, networks, circles, comparison.

    Args:
        directory: directory to write to: trajectories and report.html.
        runs: number of runs; particle runs for each f_a, and networks.
        epochs: number of epochs of training.
        seed: seed of the ensemble, a whole number of at least 0; of all four here.
        overwrite: replace what is there.
    """
    from grokphys.report.demo import demonstrate

    report, sections = demonstrate(
        directory, runs=runs, epochs=epochs, seed=seed, overwrite=overwrite, progress=True
    )
    for section in sections:
        for table in section.tables:
            print(f"{table.text()}\n")
    print(report)
    return 0
