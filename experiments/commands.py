"""The commands that make something: each a function whose signature is its command line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
import tyro
from tyro.conf import Positional

from experiments.options import Names, checked, structure_line
from experiments.output import Budget, make_directory
from physics.checks import choice
from physics.simulate import simulate as simulate_system
from physics.systems.particles import ParticleSystem
from physics.trajectory import Trajectory


def simulate(
    system: Annotated[ParticleSystem, tyro.conf.arg(constructor=checked(ParticleSystem))],
    *,
    steps: int = 100,
    step_size: float | None = None,
    runs: int = 1,
    record_every: int = 1,
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
        seed=seed,
        first_run=first_run,
        out=out,
        overwrite=overwrite,
        resume=resume,
        progress=True,
    )
    return _summarise(trajectory, out)


def train(
    tokens: int = 17,
    dim: int = 2,
    hidden: int = 32,
    *,
    runs: int = 1,
    steps: int = 2000,
    seed: int = 0,
    first_run: int = 0,
    learning_rate: float = 0.01,
    weight_decay: float = 1.0,
    train_fraction: float = 0.8,
    record: str = "20",
    dtype: Literal["float32", "float64"] = "float32",
    device: str = "auto",
    out: Path | None = None,
    overwrite: bool = False,
) -> int:
    """Train constant-attention networks on modular addition as one ensemble (Musat §3).

    Args:
        tokens: modulus N.
        dim: dimension D of the embedding.
        hidden: width H of the hidden layer.
        runs: number of networks; network k is drawn from the k-th child of the seed.
        steps: number of epochs, full batch.
        seed: seed of the ensemble.
        first_run: number of the first network, for shards of a larger ensemble.
        learning_rate: AdamW's learning rate.
        weight_decay: decoupled weight decay.
        train_fraction: part of all pairs to train on.
        record: when to record: every K steps, 'log', 'log:N' (N a decade), or a list such as 0,10,100.
        dtype: number type of training and recording.
        device: 'auto', 'cpu' or 'cuda'.
        out: file to stream the trajectory to; without it only the summary is printed.
        overwrite: replace the file if it exists.
    """
    from nets.models import ConstantAttention  # torch takes seconds to import; other commands do without
    from nets.train import train as train_model

    trajectory = train_model(
        ConstantAttention(tokens, dim, hidden),
        runs=runs,
        steps=steps,
        seed=seed,
        first_run=first_run,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        train_fraction=train_fraction,
        record=record,
        dtype=dtype,
        device=device,
        out=out,
        overwrite=overwrite,
        progress=True,
    )
    return _summarise(trajectory, out)


def import_(
    source: Positional[Path],
    *,
    out: Path,
    array: str | None = None,
    steps: str | None = None,
    dtype: Literal["float32", "float64"] = "float32",
    overwrite: bool = False,
) -> int:
    """Bring in a foreign trajectory: an array (steps, tokens, dim), or checkpoints of a directory.

    Args:
        source: a .npy or .npz file, or a directory of PyTorch state dicts, in the order of the last number in
            their names.
        out: trajectory file to write.
        array: name of the array, or of the tensor in the state dict, where there are several.
        steps: name of the array of steps in an .npz file; 'steps' if there is one, else 0, 1, 2, ...
        dtype: number type to keep.
        overwrite: replace the file if it exists.
    """
    from experiments.importing import foreign_trajectory

    trajectory = foreign_trajectory(source, array=array, steps=steps, dtype=dtype)
    trajectory.save(out, overwrite=overwrite)
    print(
        f"{out}: {trajectory.frames} frames of {trajectory.tokens} tokens in {trajectory.dim} dimensions, "
        f"steps {trajectory.steps[0]} to {trajectory.steps[-1]}"
    )
    return 0


def reproduce(
    names: Positional[Names] = (),
    *,
    out: Path = Path("results/reproduce"),
    budget: Budget = "default",
) -> int:
    """Reproduce published figures: the data as CSV, the figure as PNG, the finding on the screen.

    Args:
        names: figures, such as liu-4a; all of them if none is given.
        out: directory to write to; files of the same name are replaced.
        budget: quick for a look, default for what this package reports, paper for the largest ensembles.
    """
    from experiments.reproduce import FIGURES

    _check_choices(names, FIGURES, budget)
    make_directory(out)
    for name in names or tuple(FIGURES):
        print(f"{name}: {(FIGURES[name].__doc__ or '').splitlines()[0]}")
        for path in FIGURES[name](out, budget):
            print(f"  wrote {path}")
    return 0


def bench(
    names: Positional[Names] = (),
    *,
    out: Path = Path("results/bench"),
    budget: Budget = "default",
) -> int:
    """Measure against references, in one run: a table on the screen, and as JSON.

    Args:
        names: benchmarks, such as theory; all of them if none is given.
        out: directory to write NAME.json to; files of the same name are replaced.
        budget: quick takes seconds, paper lets the references run to the largest sizes.
    """
    from experiments.bench import BENCHES

    _check_choices(names, BENCHES, budget)
    make_directory(out)
    for name in names or tuple(BENCHES):
        BENCHES[name](out=out / f"{name}.json", budget=budget)
    return 0


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


def _summarise(trajectory: Trajectory, out: Path | None) -> int:
    """Print what became of an ensemble; the exit status is 1 if a run has diverged."""
    from analysis.comparison import structures

    final = trajectory.final
    sound = np.isfinite(final).all(axis=(1, 2))
    parts = [structure_line(structures(final[sound]))] if sound.any() else []
    for name in ("train_accuracy", "validation_accuracy"):
        if name in trajectory.observables and sound.any():
            mean = 100 * float(np.mean(trajectory.observables[name][sound, -1]))
            parts.append(f"{name.replace('_', ' ')} {mean:.1f} %")
    if not sound.all():
        parts.append(f"{np.count_nonzero(~sound)} of {trajectory.runs} runs diverged")
    print(", ".join(parts))
    print(f"trajectory in {out}" if out is not None else "not stored; give --out FILE to keep the trajectory")
    return 0 if sound.all() else 1
