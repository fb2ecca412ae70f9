"""The commands that make something: each a function whose signature is its command line."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import tyro
from tyro.conf import Positional

from grokphys.options import (
    Directory,
    Names,
    OutFile,
    Overwrite,
    Resume,
    StoredFile,
    checked,
    given_otherwise,
    refuse_special,
    summarise,
)
from grokphys.output import Budget, make_directory, refuse_existing, refuse_unwritable
from physics.checks import choice, number
from physics.errors import FileFormatError, InputError
from physics.particles.system import Observable, ParticleSystem
from physics.simulate import simulate as simulate_system

SYSTEM_OPTIONS = {
    "tokens": given_otherwise("17", "INT", "number of tokens, here particles N; at least 3."),
    "dim": given_otherwise("2", "INT", "number of dimensions, of the space; at least 1."),
    "modulus": given_otherwise(
        "the number of tokens", "INT", "modulus of the classes: that of (i, j) is (i + j) mod it; at least 2."
    ),
}
"""What the help says of the options that other commands have too, or whose default is not a number."""


def simulate(
    system: Annotated[ParticleSystem, tyro.conf.arg(constructor=checked(ParticleSystem, SYSTEM_OPTIONS))],
    *,
    steps: int = 100,
    step_size: Annotated[float | None, given_otherwise("0.02", "FLOAT")] = None,
    runs: int = 1,
    record_every: int = 1,
    observables: Annotated[tuple[Observable, ...], given_otherwise("none", "NAME ...")] = (),
    seed: int = 0,
    first_run: int = 0,
    out: StoredFile = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> int:
    """Simulate particles that cluster and align (Musat §5-6).

    Args:
        system: the particles and their forces.
        steps: number of steps.
        step_size: length of a step, in units of time.
        runs: number of runs; run k starts from the k-th child of the seed.
        record_every: number of steps from one recorded frame to the next; the first and the last step too.
        observables: what to record beside the positions: circle_ratio, grid_imperfections, mean_force,
            potential.
        seed: seed of the ensemble, a whole number of at least 0.
        first_run: number of the first run, for shards of a larger ensemble.
        out: file to write: the trajectory, streamed to OUT.partial until it is complete.
        overwrite: replace what is there.
        resume: go on with the unfinished run in OUT.partial.
    """
    refuse_special(out)
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
    out: OutFile,
    array: Annotated[str | None, given_otherwise("the only one there is", "NAME")] = None,
    steps_array: Annotated[str | None, given_otherwise("steps, else 0, 1, 2, ...", "NAME")] = None,
    dtype: Literal["float32", "float64"] = "float32",
    overwrite: Overwrite = False,
) -> int:
    """Bring in a foreign trajectory: an array, a checkpoint of PyTorch, or a directory of checkpoints.

    An array has the shape (steps, tokens, dim) or (runs, steps, tokens, dim), the embedding in a checkpoint
    (tokens, dim). Nothing in a file is run: what holds Python objects beside numbers is refused.

    Args:
        source: a .npy or .npz file, a PyTorch checkpoint (.pt, .pth, .ckpt, .safetensors), or a directory of
            checkpoints, whose steps are the last numbers in their names.
        out: file to write: the trajectory.
        array: name of the array, or of the parameter in the checkpoints, where there are several.
        steps_array: name of the array of steps in an .npz file.
        dtype: number type of what is computed and kept.
        overwrite: replace what is there.
    """
    from grokphys.importing import foreign_trajectory

    refuse_existing(out, overwrite)
    if source.exists() and not (source.is_file() or source.is_dir()):
        raise FileFormatError(f"{source} is neither a file nor a directory, so nothing is imported")
    trajectory = foreign_trajectory(source, array=array, steps=steps_array, dtype=dtype, progress=True)
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
    list_: Annotated[bool, tyro.conf.arg(name="list")] = False,
    directory: Directory = Path("results/reproduce"),
    budget: Budget = "default",
    again: bool = False,
    scoreboard: Annotated[Path | None, given_otherwise("only in DIRECTORY", "FILE.md")] = None,
    gallery: Annotated[Path | None, given_otherwise("none", "DIRECTORY")] = None,
) -> int:
    """Reproduce published figures: the data as CSV, the figure as PNG, and a scoreboard of all of them.

    Args:
        names: figures, such as liu-4a; all of them if none is given. Those named run in any case.
        all_: all figures, but for those that are complete in DIRECTORY at this budget, made by the code and
            the libraries that there are now.
        list_: print the names of all figures and what they show, and make none.
        directory: directory to write to; files that an earlier reproduction made are replaced.
        budget: how much to compute: quick takes minutes in all, default is what this package reports, paper
            the sizes of the publications, which take days.
        again: run complete figures as well.
        scoreboard: write the scoreboard to this Markdown file too, and its data beside it as JSON.
        gallery: write small pictures to this directory, and a page that shows them beside it.
    """
    from grokphys.papers.registry import FIGURES
    from grokphys.papers.runner import publish_board, run_recipes

    names = tuple(name.replace("-fig", "-") for name in names)  # liu-fig4b is liu-4b
    _check_choices(names, FIGURES, budget)
    if names and all_:
        raise InputError(f"names must be left out with --all, got {' '.join(names)}")
    if list_:
        _list_figures(names or tuple(FIGURES))
        return 0
    pages = [] if scoreboard is None else [scoreboard, scoreboard.with_suffix(".json")]
    if scoreboard is not None and scoreboard.suffix != ".md":
        raise InputError(f"scoreboard must be a Markdown file, NAME.md, got {scoreboard}")
    if gallery is not None:
        refuse_unwritable(gallery)
        pages.append(gallery.with_name(gallery.name + ".md"))
    for page in pages:
        refuse_existing(page, overwrite=True, parents=True)
    refuse_unwritable(directory)
    make_directory(directory, *(page.parent for page in pages))
    failed = run_recipes(names or tuple(FIGURES), FIGURES, directory, budget, again=again or bool(names))
    for path in publish_board(FIGURES, directory, scoreboard, gallery):
        print(f"  wrote {path}")
    if failed:
        print(f"grokphys: {len(failed)} failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _list_figures(names: Sequence[str]) -> None:
    from grokphys.papers.registry import FIGURES

    width = max(map(len, names))
    for name in names:
        print(f"{name:{width}}  {(FIGURES[name].__doc__ or '').splitlines()[0]}")


def bench(
    names: Positional[Names] = (),
    *,
    directory: Directory = Path("results/bench"),
    budget: Budget = "default",
    minutes: Annotated[float | None, given_otherwise("2, 10 or 60 by the budget", "MINUTES")] = None,
    overwrite: Overwrite = False,
) -> int:
    """Measure against references, in one run: a table on the screen, and as JSON.

    Args:
        names: benchmarks, such as theory; all but gpu if none is given.
        directory: directory to write to: NAME.json of each benchmark.
        budget: how much to compute: quick takes seconds to minutes, default what this package reports, paper
            lets the references run to the largest sizes.
        minutes: number of minutes for gpu, which does as much as it can in them.
        overwrite: replace what is there.
    """
    from grokphys.bench.registry import BENCHES

    _check_choices(names, BENCHES, budget)
    if minutes is not None:
        minutes = number("minutes", minutes, above=0.0)
        if "gpu" not in names:
            raise InputError(f"minutes is the time for gpu, got names {' '.join(names) or 'without it'}")
    names = tuple(dict.fromkeys(names)) or tuple(name for name in BENCHES if name != "gpu")
    for name in names:
        refuse_existing(directory / f"{name}.json", overwrite, parents=True)
    make_directory(directory)
    status = 0
    for name in names:
        more = {"minutes": minutes} if name == "gpu" else {}
        status = max(status, BENCHES[name](out=directory / f"{name}.json", budget=budget, **more))
    return status


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


def _check_choices(names: Sequence[str], registry: Mapping[str, object], budget: str) -> None:
    for name in names:
        choice("names", name, tuple(registry))
    choice("budget", budget, get_args(Budget))
