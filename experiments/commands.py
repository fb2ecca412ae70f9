"""The commands that make something: each a function whose signature is its command line."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import tyro
from tyro.conf import Positional

from experiments.options import Names, checked, summarise
from experiments.output import Budget, make_directory, refuse_existing
from physics.checks import choice, number
from physics.errors import InputError
from physics.simulate import simulate as simulate_system
from physics.systems.particles import Observable, ParticleSystem


def simulate(
    system: Annotated[ParticleSystem, tyro.conf.arg(constructor=checked(ParticleSystem))],
    *,
    steps: int = 100,
    step_size: float | None = None,
    runs: int = 1,
    record_every: int = 1,
    observables: tuple[Observable, ...] = (),
    seed: int = 0,
    first_run: int = 0,
    out: Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> int:
    """Simulate particles that cluster and align (Musat §5-6).

    Args:
        system: the particles and their forces.
        steps: number of steps.
        step_size: length of a step; 0.02 if not given.
        runs: number of runs; run k starts from the k-th child of the seed.
        record_every: keep every n-th step, besides the first and the last.
        observables: what to measure at every kept step, and keep beside the positions.
        seed: seed of the ensemble.
        first_run: number of the first run, for shards of a larger ensemble.
        out: file to stream the trajectory to; without it only the summary is printed.
        overwrite: replace the file if it exists.
        resume: go on with the unfinished run in OUT.partial.
    """
    trajectory = simulate_system(
        system,
        steps=steps,
        step_size=step_size,
        runs=runs,
        record_every=record_every,
        observables=observables,
        seed=seed,
        first_run=first_run,
        out=out,
        overwrite=overwrite,
        resume=resume,
        progress=True,
    )
    return summarise(trajectory, out)


def import_(
    source: Positional[Path],
    *,
    out: Path,
    array: str | None = None,
    steps: str | None = None,
    dtype: Literal["float32", "float64"] = "float32",
    overwrite: bool = False,
) -> int:
    """Bring in a foreign trajectory: an array, a checkpoint of PyTorch, or a directory of checkpoints.

    An array has the shape (steps, tokens, dim) or (runs, steps, tokens, dim), the embedding in a checkpoint
    (tokens, dim). Nothing in a file is run: what holds Python objects beside numbers is refused.

    Args:
        source: a .npy or .npz file, a PyTorch checkpoint (.pt, .pth, .ckpt, .safetensors), or a directory of
            checkpoints, whose steps are the last numbers in their names.
        out: trajectory file to write.
        array: name of the array, or of the parameter in the checkpoints, where there are several.
        steps: name of the array of steps in an .npz file; 'steps' if there is one, else 0, 1, 2, ...
        dtype: number type to keep.
        overwrite: replace the file if it exists.
    """
    from experiments.importing import foreign_trajectory

    refuse_existing(out, overwrite)
    trajectory = foreign_trajectory(source, array=array, steps=steps, dtype=dtype, progress=True)
    trajectory.save(out, overwrite=overwrite)
    runs = f"{trajectory.runs} runs of " if trajectory.runs > 1 else ""
    print(
        f"{out}: {runs}{trajectory.frames} frames of {trajectory.tokens} tokens in {trajectory.dim} "
        f"dimensions, steps {trajectory.steps[0]} to {trajectory.steps[-1]}"
    )
    return 0


def reproduce(
    names: Positional[Names] = (),
    *,
    all_: Annotated[bool, tyro.conf.arg(name="all")] = False,
    out: Path = Path("results/reproduce"),
    budget: Budget = "default",
    overwrite: bool = False,
    scoreboard: Path | None = None,
    gallery: Path | None = None,
) -> int:
    """Reproduce published figures: the data as CSV, the figure as PNG, and a scoreboard of all of them.

    Args:
        names: figures, such as liu-4a; all of them if none is given. Those named run in any case.
        all_: all figures, but for those that are complete in OUT at this budget, made by the code and the
            libraries that there are now.
        out: directory to write to; files of the same name are replaced.
        budget: quick for a look, default for what this package reports, paper for the largest ensembles.
        overwrite: run complete ones as well.
        scoreboard: write the scoreboard to this Markdown file too, and its data beside it as JSON.
        gallery: write small pictures to this directory, and a page that shows them beside it.
    """
    from experiments.reproduce import FIGURES
    from experiments.scoreboard.running import publish_board, run_recipes

    names = tuple(name.replace("-fig", "-") for name in names)  # liu-fig4b is liu-4b
    _check_choices(names, FIGURES, budget)
    if names and all_:
        raise InputError(f"names must be left out with --all, got {' '.join(names)}")
    if scoreboard is not None and scoreboard.suffix != ".md":
        raise InputError(f"scoreboard must be a Markdown file, NAME.md, got {scoreboard}")
    for path in (out, *(page.parent for page in (scoreboard, gallery) if page is not None)):
        make_directory(path)
    failed = run_recipes(names or tuple(FIGURES), FIGURES, out, budget, again=overwrite or bool(names))
    for path in publish_board(FIGURES, out, scoreboard, gallery):
        print(f"  wrote {path}")
    if failed:
        print(f"grokphys: {len(failed)} failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def bench(
    names: Positional[Names] = (),
    *,
    out: Path = Path("results/bench"),
    budget: Budget = "default",
    minutes: float | None = None,
) -> int:
    """Measure against references, in one run: a table on the screen, and as JSON.

    Args:
        names: benchmarks, such as theory; all but gpu if none is given.
        out: directory to write NAME.json to; files of the same name are replaced.
        budget: quick takes seconds, paper lets the references run to the largest sizes.
        minutes: time for gpu, which does as much as it can in it; 2, 10 or 60 by the budget if not given.
    """
    from experiments.bench import BENCHES

    _check_choices(names, BENCHES, budget)
    if minutes is not None:
        minutes = number("minutes", minutes, above=0.0)
        if "gpu" not in names:
            raise InputError(f"minutes is the time for gpu, got names {' '.join(names) or 'without it'}")
    make_directory(out)
    status = 0
    for name in names or tuple(name for name in BENCHES if name != "gpu"):
        more = {"minutes": minutes} if name == "gpu" else {}
        status = max(status, BENCHES[name](out=out / f"{name}.json", budget=budget, **more))
    return status


def demo(*, out: Path = Path("results/demo"), runs: int = 100, epochs: int = 2000, seed: int = 0) -> int:
    """Do the whole job on real parts and write a report: particles, networks, circles, comparison.

    Args:
        out: directory for trajectories and report.html; what an earlier demonstration left there is replaced.
        runs: particle runs for each f_a, and networks.
        epochs: epochs of training.
        seed: seed of all ensembles.
    """
    from experiments.demo import demonstrate

    report, sections = demonstrate(out, runs=runs, epochs=epochs, seed=seed, progress=True)
    for section in sections:
        for table in section.tables:
            print(f"{table.text()}\n")
    print(report)
    return 0


def _check_choices(names: Sequence[str], registry: Mapping[str, object], budget: str) -> None:
    for name in names:
        choice("names", name, tuple(registry))
    choice("budget", budget, get_args(Budget))
