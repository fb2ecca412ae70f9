"""Code that the commands share: options, and the report of results."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import tyro

from grokphys.output import FigureFormat
from physics.trajectory import Trajectory

Command = Callable[..., int]
Options = dict[str, tuple[Any, Any]]
"""Types and defaults of options by name."""


def options_of(kind: type, types: Mapping[str, Any], without: Collection[str] = ()) -> Options:
    """Return the fields of a dataclass as options.

    Parameters
    ----------
    kind : type
        Dataclass whose fields are the options.
    types : mapping of str to type
        Types of options on the command line, where these are not the types of the fields.
    without : collection of str, default ()
        Names of fields that are no options.

    Returns
    -------
    dict of str to (type, object)
        Type and default of each option.
    """
    known = get_type_hints(kind) | dict(types)
    return {each.name: (known[each.name], each.default) for each in fields(kind) if each.name not in without}


def with_options(options: Options) -> Callable[[Command], Command]:
    """Return a decorator that gives a command some options in the place of its ``**`` argument.

    Parameters
    ----------
    options : dict of str to (type, object)
        Type and default of each option; its help is in the docstring of the command.

    Returns
    -------
    callable
        Decorator of a function whose other arguments are keywords.
    """

    def decorate(command: Command) -> Command:
        whole = inspect.signature(command)
        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in options.items()
        ]
        parameters += [each for each in whole.parameters.values() if each.kind is not each.VAR_KEYWORD]
        command.__signature__ = whole.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ |= {name: kind for name, (kind, _) in options.items()}
        return command

    return decorate


def given_otherwise(default: str, metavar: str) -> Any:
    """Return metadata of an option (`tyro.conf.arg`) whose default the help states in words.

    Parameters
    ----------
    default : str
        The default in words, such as "the number of tokens".
    metavar : str
        Placeholder of the value in the help, such as "INT".
    """
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


StoredFile = Annotated[Path | None, given_otherwise("none, only a summary is printed", "FILE")]
TableFile = Annotated[Path | None, given_otherwise("none", "FILE.csv|FILE.parquet")]
OutFile = Annotated[Path, tyro.conf.arg(metavar="FILE")]
Directory = Annotated[Path, tyro.conf.arg(metavar="DIRECTORY")]
Overwrite = Annotated[bool, tyro.conf.arg(help_behavior_hint="(default: refuse)")]
Switch = Annotated[bool, tyro.conf.arg(help_behavior_hint="(default: off)")]
Resume = Annotated[bool, tyro.conf.arg(help_behavior_hint="(default: refuse if OUT.partial exists)")]
Files = Annotated[
    tuple[str, ...], tyro.conf.arg(metavar="FILE|'PATTERN' ...", help_behavior_hint="(required)")
]
OneFile = Annotated[str, tyro.conf.arg(metavar="FILE|'PATTERN'")]
Figures = Annotated[
    FigureFormat,
    tyro.conf.arg(help="Format of the figures: png in pixels, svg or pdf as vector graphics for a paper."),
]
ModelName = Annotated[str, tyro.conf.arg(metavar="MODEL")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint="")]


def structures_of(trajectory: Trajectory, final: Any, runs: Any = None) -> tuple[Any, str]:
    """Return the structures of final embeddings by the recorded operation, and a line about them.

    If no operation is recorded, classes are i + j modulo the number of tokens, and the line says so.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory whose parameters state the operation.
    final : array_like, shape (runs, tokens, dim)
        Final embeddings.
    runs : array_like of bool, shape (all runs,), optional
        Runs of the trajectory to which they belong, by default all.

    Returns
    -------
    Structures or None
        Circles and grid imperfections of each run; None where classes of pair sums have no meaning, because
        the model has none or its operation does not commute.
    str
        A line of text about the structures, which is empty if these are None.
    """
    from analysis.circles.classes import UNPAIRED, blown_text, class_names, recorded_operation, structures_by
    from physics.theory.operations import Operation

    parameters = trajectory.parameters
    made = parameters.get("system") or parameters.get("model") or {}
    recorded = recorded_operation(parameters, trajectory.tokens)
    operation = recorded or Operation(trajectory.tokens, trajectory.tokens)
    if made.get("type") in UNPAIRED or not operation.commutes:
        return None, ""
    numbers = np.arange(trajectory.runs) if runs is None else np.flatnonzero(runs)
    shapes = structures_by(operation, final, np.nan_to_num(trajectory.initial[numbers]))
    circles, sound = int(shapes.circle[~shapes.blown_up].sum()), int((~shapes.blown_up).sum())
    text = f"{circles} of {sound} runs are circles ({shapes.circles.format(1, 100)} %)"
    if circles < sound:
        assumed = "" if recorded is not None else "; the file names no operation"
        classes = f"classes {class_names(operation)}{assumed}"
        text += f", grid imperfections of the rest {shapes.grid_imperfections.format()} ({classes})"
    if shapes.blown_up.any():
        text += f"; {blown_text(numbers[shapes.blown_up], trajectory)}"
    return shapes, text


def summarise(trajectory: Trajectory, out: Path | None) -> int:
    """Print the results of an ensemble: accuracies, thresholds, and how many runs diverged.

    For particles and networks with constant attention, the output begins with the number of circles.

    Parameters
    ----------
    trajectory : Trajectory
        The ensemble.
    out : Path or None
        File in which the ensemble is stored, which the output names; None if it is not stored.

    Returns
    -------
    int
        Exit status: 1 if a run has diverged, otherwise 0.
    """
    final = trajectory.final
    sound = np.isfinite(final).all(axis=(1, 2))
    kind = trajectory.parameters.get("model", {}).get("type", "ConstantAttention")
    shaped = sound.any() and kind == "ConstantAttention"  # other networks are summarized by their accuracy
    line = structures_of(trajectory, final[sound], sound)[1] if shaped else ""
    parts = [line] if line else []
    for name in ("train_accuracy", "validation_accuracy"):
        if name in trajectory.observables and sound.any():
            mean = 100 * float(np.mean(trajectory.observables[name][sound, -1]))
            if np.isfinite(mean):  # there is no validation set if all pairs are used for training
                parts.append(f"{name.replace('_', ' ')} {mean:.1f} %")
    for name, values in trajectory.observables.items():
        if name.startswith("steps_to_"):
            reached_at = values[:, -1][np.isfinite(values[:, -1])]
            middle = f", median step {np.median(reached_at):g}" if len(reached_at) else ""
            reached = name.removeprefix("steps_to_").replace("_", " ")
            parts.append(f"{reached} reached by {len(reached_at)} of {trajectory.runs}{middle}")
    unseen = np.count_nonzero(trajectory.parameters.get("unseen_classes", []))
    if unseen:
        parts.append(f"{unseen} of {trajectory.runs} networks have a class without a training example")
    if not sound.all():
        parts.append(f"{np.count_nonzero(~sound)} of {trajectory.runs} runs diverged")
    print(", ".join(parts))
    print(f"trajectory in {out}" if out is not None else "not stored; give --out FILE to keep the trajectory")
    return 0 if sound.all() else 1


def sentence(error: Exception) -> str:
    """Return the message of an error on one line, without the error number of the system."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    return " ".join(text.split("\n"))  # a name may hold a line break
