"""`grokphys demo`: simulation, training, fit and comparison, with a report."""

from pathlib import Path

from grokphys.options import Directory, Overwrite


def demo(
    *,
    directory: Directory = Path("results/demo"),
    runs: int = 100,
    steps: int = 2000,
    seed: int = 0,
    overwrite: Overwrite = False,
) -> int:
    """Simulate, train, fit and compare, and write a report with the results next to those of the papers.

    The report asks whether simulated particles and trained networks end in the same structures, and how well
    one law of motion predicts the circles of a real network, which comes with the package. The defaults take
    one to two minutes.

    Example: grokphys demo --directory results/demo

    Args:
        directory: Directory to write to. It will hold the trajectories and report.html.
        runs: Number of runs, at least 1: of the particles for each of three alignment constants, and of the
            networks.
        steps: Number of steps of the optimizer, at least 1, for which the networks are trained. Each is an
            epoch, because it uses all training examples.
        seed: Seed of the ensemble, a whole number of at least 0. All four ensembles use it: the particles at
            three alignment constants, and the networks.
        overwrite: Replace files that exist.
    """
    from grokphys.report.demo import demonstrate

    report, sections = demonstrate(
        directory, runs=runs, steps=steps, seed=seed, overwrite=overwrite, progress=True
    )
    for section in sections:
        for table in section.tables:
            print(f"{table.text()}\n")
    print(report)
    return 0
