"""The commands of `grokphys`: each a function whose signature is its command line."""

import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import numpy as np
import tyro
from tyro.conf import Positional

from experiments.output import (
    Budget,
    make_directory,
    refuse_existing,
    save_figure,
    write_csv,
    write_text,
)
from physics.checks import choice
from physics.errors import InputError
from physics.simulate import simulate as simulate_system
from physics.systems.particles import ParticleSystem
from physics.trajectory import Trajectory

Built = TypeVar("Built")


class ValueNotAllowed(Exception):  # noqa: N818 - it ends as a sentence, not as an error of ours
    """An object refuses a value from the command line."""


def checked(kind: Callable[..., Built]) -> Callable[..., Built]:
    """Let the command line fill an object of this kind and report what it refuses in our own words."""

    @wraps(kind)
    def build(*args: Any, **kwargs: Any) -> Built:
        try:
            return kind(*args, **kwargs)
        except InputError as error:
            raise ValueNotAllowed(str(error)) from None

    return build


Files = Annotated[tuple[str, ...], tyro.conf.arg(metavar="FILE|'PATTERN' ...")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")]


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


def analyze(files: Positional[Files], *, out: Path | None = None, overwrite: bool = False) -> int:
    """Say what the final embeddings of trajectory files have become.

    Prints a summary a file; a file that cannot be read is named on stderr and the others go on (exit
    status 1).

    Args:
        files: trajectory files or quoted glob patterns.
        out: CSV file for one row a run: structures, surviving frequencies, final losses and accuracies.
        overwrite: replace the CSV file if it exists.
    """
    from analysis.comparison import structures
    from analysis.fourier import fourier_signals, survives
    from experiments.files import resolve
    from physics.structure import circle_ratio

    if out is not None:
        refuse_existing(out, overwrite)
    rows: list[dict[str, Any]] = []
    failures = 0
    for path in resolve(files):
        try:
            trajectory = Trajectory.open(path)
            final = trajectory.final
            found = structures(final)
            ratios = circle_ratio(final)
            alive = survives(fourier_signals(final))
            measured = {
                f"final_{name}": trajectory.observables[name][:, -1]
                for name in trajectory.observables
                if trajectory.observables[name].ndim == 2
            }
        except (ValueError, OSError) as error:
            failures += 1
            print(f"grokphys: {path}: {_sentence(error)}", file=sys.stderr)
            continue
        print(f"{path}: {_structure_line(found)}")
        first = int(trajectory.parameters.get("first_run", 0))
        rows.extend(
            {
                "file": str(path),
                "run": first + run,
                "program": trajectory.parameters.get("program", ""),
                "seed": json.dumps(trajectory.parameters.get("seed")),
                "complete": trajectory.complete,
                "tokens": trajectory.tokens,
                "dim": trajectory.dim,
                "step": int(trajectory.steps[-1]),
                "circle": bool(found.circle[run]),
                "circle_ratio": float(ratios[run]),
                "grid_imperfections": int(found.imperfections[run]),
                "surviving_frequencies": " ".join(str(k + 1) for k in np.flatnonzero(alive[run])),
                **{name: float(values[run]) for name, values in measured.items()},
            }
            for run in range(trajectory.runs)
        )
    if out is not None and rows:
        write_csv(out, rows)
        print(f"{len(rows)} runs in {out}")
    return 1 if failures else 0


def fit_ode(
    files: Positional[Files],
    *,
    penalty: Literal["lasso", "least-squares"] = "lasso",
    alpha: float = 0.01,
    max_iter: int = 100_000,
    kind: Literal["increment", "generator"] = "increment",
    first: int = 0,
    last: int = 1000,
    out: Path | None = None,
    overwrite: bool = False,
) -> int:
    """Fit one linear ODE to the Fourier signals of trajectories (Ding §4.2).

    All runs of all files together obey one law; the scores say how well, in sample and forward in time.
    The exit status is 1 if a target has not converged.

    Args:
        files: trajectory files or quoted glob patterns.
        penalty: Lasso as in the paper, or least squares.
        alpha: weight of the L1 norm.
        max_iter: sweeps of coordinate descent for each target.
        kind: the increment map between consecutive frames, or the generator dx/dt.
        first: first step to fit.
        last: last step to fit.
        out: directory for coefficients.csv, scores.json, coefficients.png and rollout.png.
        overwrite: replace these files if they exist.
    """
    from sklearn.exceptions import ConvergenceWarning

    from experiments import ding
    from experiments.files import trajectories

    names = ("coefficients.csv", "scores.json", "coefficients.png", "rollout.png")
    if out is not None:
        for name in names:
            refuse_existing(out / name, overwrite, parents=True)
    signals = [one for trajectory in trajectories(files) for one in ding.signals_of(trajectory, first, last)]
    if len({one.values.shape[1] for one in signals}) > 1:
        raise InputError(
            "files must agree in the number of frequencies, got "
            f"{sorted({one.values.shape[1] for one in signals})}"
        )
    label = f"Lasso, α = {alpha:g}" if penalty == "lasso" else "least squares"
    recipe = {"penalty": "lasso" if penalty == "lasso" else None, "alpha": alpha, "max_iter": max_iter}
    with warnings.catch_warnings():  # said below, by the numbers of the frequencies
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = ding.fit_and_score(signals, kind=kind, **recipe)
    print(ding.score_table({label: scores}, f"steps {first} to {last}, {len(signals)} runs, {kind}").text())
    fit = scores.fit
    missed = np.flatnonzero(~fit.regressor.converged_)
    if len(missed):
        print(
            f"grokphys: frequencies {', '.join(str(k + 1) for k in missed)} have not converged in {max_iter} "
            "sweeps; raise --max-iter",
            file=sys.stderr,
        )
    if out is not None:
        make_directory(out)
        header = ["frequency", "b", *(f"a_{k + 1}" for k in range(len(fit.b)))]
        write_csv(
            out / names[0],
            [
                dict(zip(header, [k + 1, float(fit.b[k]), *map(float, fit.A[k])], strict=True))
                for k in range(len(fit.b))
            ],
        )
        write_text(
            out / names[1],
            json.dumps(
                {
                    "kind": kind,
                    **recipe,
                    "first": first,
                    "last": last,
                    "runs": len(signals),
                    "r2_in_sample": fit.r2_in_sample,
                    "r2_rollout": fit.r2_rollout,
                    "r2_forward": scores.forward,
                    "converged": fit.regressor.converged_.tolist(),
                },
                indent=1,
            ),
        )
        save_figure(ding.coefficient_picture(fit, signals[0].survivors, label).figure, out / names[2])
        save_figure(ding.rollout_picture(signals[0], {label: scores}).figure, out / names[3])
        print(f"coefficients, scores and figures in {out}")
    return 1 if len(missed) else 0


def compare(
    simulated: Positional[str], trained: Positional[str], *, out: Path | None = None, overwrite: bool = False
) -> int:
    """Hold simulated against trained dynamics: structures, rank test, final shapes.

    Args:
        simulated: a trajectory file, or a quoted pattern whose files count as one ensemble.
        trained: the same of the trained ones.
        out: HTML file for a report with figures.
        overwrite: replace the report if it exists.
    """
    from experiments.files import trajectories
    from experiments.report import write_report
    from experiments.side_by_side import comparison_section

    if out is not None:
        refuse_existing(out, overwrite, parents=True)
    section = comparison_section(trajectories([simulated]), trajectories([trained]))
    for paragraph in section.text:
        print(paragraph)
    for table in section.tables:
        print(f"\n{table.text()}")
    if out is not None:
        write_report(out, "Simulated against trained", f"{simulated} and {trained}", [section])
        print(f"\nreport in {out}")
    return 0


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


def info(files: Positional[Files]) -> int:
    """Print what trajectory files hold, whether they are complete, and how they were made.

    Args:
        files: trajectory files or quoted glob patterns; unfinished files (.partial) too.
    """
    from experiments.files import resolve
    from physics.stored import StoredTrajectory

    failures = 0
    for path in resolve(files):
        try:
            found = StoredTrajectory(path)
        except (ValueError, OSError) as error:
            failures += 1
            print(f"grokphys: {_sentence(error)}", file=sys.stderr)
            continue
        span = f"steps {found.steps[0]} to {found.steps[-1]}" if found.frames else "no frame yet"
        print(path)
        print(f"  complete     {'yes' if found.complete else 'no: unfinished or cut short'}")
        size = f"{found.runs} runs × {found.frames} frames × {found.tokens} tokens × {found.dim} dimensions"
        print(f"  positions    {size}, {found.dtype}, {span}")
        for name in found.observables:
            clock = found.clock(name)[0]
            own = "" if clock is found.steps else f", own clock: steps {clock[0]} to {clock[-1]}"
            print(f"  observable   {name}, {len(clock)} frames{own}")
        print(f"  made by      {found.parameters.get('program', 'unknown')}, grokphys {found.code_version}")
        for name, value in found.parameters.items():
            if name != "program":
                print(f"    {name:<15}{json.dumps(value, ensure_ascii=False)}")
    return 1 if failures else 0


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
    parts = [_structure_line(structures(final[sound]))] if sound.any() else []
    for name in ("train_accuracy", "validation_accuracy"):
        if name in trajectory.observables and sound.any():
            mean = 100 * float(np.mean(trajectory.observables[name][sound, -1]))
            parts.append(f"{name.replace('_', ' ')} {mean:.1f} %")
    if not sound.all():
        parts.append(f"{np.count_nonzero(~sound)} of {trajectory.runs} runs diverged")
    print(", ".join(parts))
    print(f"trajectory in {out}" if out is not None else "not stored; give --out FILE to keep the trajectory")
    return 0 if sound.all() else 1


def _structure_line(found: Any) -> str:
    circles = int(found.circle.sum())
    text = f"{circles} of {len(found.circle)} runs are circles ({found.circles.format(1, 100)} %)"
    if circles < len(found.circle):
        text += f", grid imperfections of the rest {found.grid_imperfections.format()}"
    return text


def _sentence(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
