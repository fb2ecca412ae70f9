"""Phases of networks over a plane of two hyperparameters, trained as `phase_diagram` asks for them."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nets
from analysis.phases import DELAY, Axis, PhaseDiagram, Point, Refinement, phase_diagram
from grokphys.models import PER_MEMBER
from grokphys.output import make_directory, put_aside
from grokphys.papers.pieces import code_digest
from physics.checks import mapping, number, short_text
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory, load
from physics.trajectory.provenance import fields, plain

SETTINGS = (*PER_MEMBER, "batch_size", "train_fraction", "epsilon")
PACK = 128
"""Largest number of networks in one ensemble, which bounds its memory."""
LOOKS = 20
"""Number of checks of the accuracies within the delay that separates grokking from comprehension."""
ACCURACIES = {"train_accuracy": 0.9, "validation_accuracy": 0.9}
"""Accuracies at which a network has fitted and generalized (Liu, Table 1)."""


def train_points(
    points: Sequence[Point],
    first: int,
    *,
    model: Any,
    names: tuple[str, str],
    arguments: Mapping[str, Any],
    store: Path | None = None,
    progress: bool = False,
) -> NDArray[np.float64]:
    """Train one network at each point of a plane of two hyperparameters, as `phase_diagram` asks for them.

    Network k is ``nets.train(..., first_run=k, runs=1)``, in whichever ensemble it is trained.

    Parameters
    ----------
    points : sequence of pair of float
        Values of the hyperparameters on the horizontal and the vertical axis.
    first : int
        Number of the first network; the others follow.
    model : Model
        A model of `nets`.
    names : pair of str
        Names of the hyperparameters: each is in `SETTINGS`, or a number among the fields of the model.
        "hidden" is the width of every hidden layer.
    arguments : mapping
        Other arguments of `nets.train`; see `training_arguments`.
    store : Path, optional
        Directory that keeps the ensembles. Complete ensembles are not trained again, and unfinished ones are
        resumed. Those of other versions of the code or of the libraries are ignored, and damaged ones are
        kept as ``NAME.damaged`` and trained again.
    progress : bool, default False
        Whether to show progress bars on stderr.

    Returns
    -------
    ndarray of float64, shape (points, 3)
        Number of each network, and the steps at which it reached the training and the validation threshold;
        NaN if it never did.

    Raises
    ------
    InputError
        If the points or the arguments have a value that is not allowed.
    """
    settings: list[dict[str, Any]] = [dict(zip(names, point, strict=True)) for point in points]
    common = [tuple(setting[name] for name in names if name not in PER_MEMBER) for setting in settings]
    results = np.empty((len(points), 3))
    for key in sorted(set(common)):
        members = [k for k, each in enumerate(common) if each == key]
        for start in range(0, len(members), PACK):
            part = members[start : start + PACK]
            values = {name: settings[part[0]][name] for name in names}
            values |= {name: [settings[k][name] for k in part] for name in names if name in PER_MEMBER}
            training = {name: value for name, value in values.items() if name in SETTINGS}
            training |= {"runs": len(part), "first_run": first, **arguments}
            results[part, 0] = np.arange(first, first + len(part))
            results[part, 1:] = _steps(_trained(_changed(model, values), training, store, progress))
            first += len(part)
    return results


def training_arguments(
    names: tuple[str, str],
    steps: int,
    delay: float = DELAY,
    thresholds: Mapping[str, float] | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the arguments of `nets.train` that all networks of a phase diagram share.

    The accuracies are checked twenty times within `delay`, or at every step if it is shorter than that. A
    network stops once it has reached both thresholds, by default `ACCURACIES`. An `InputError` refuses
    `options`, other arguments, that set one of the diagram: its axes `names`, or what is recorded.
    """
    levels = ACCURACIES | mapping("thresholds", thresholds)
    for name, level in levels.items():
        number(name, level, maximum=1.0, above=0.0)
    arguments = {
        "steps": steps,
        "seed": seed,
        "record": [steps],
        "observables": (),
        "thresholds": levels,
        "track": max(int(number("delay", delay, above=0.0) // LOOKS), 1),
        "stop": "thresholds",
        "keep_start": False,
    }
    options = options or {}
    if taken := [name for name in options if name in {*arguments, *names, "runs", "first_run"}]:
        raise InputError(f"options must not set {' and '.join(taken)}, which the diagram sets itself")
    return arguments | dict(options)


def _trained(model: Any, arguments: dict[str, Any], store: Path | None, progress: bool) -> Trajectory:
    """Train an ensemble, or load it if it is stored."""
    if store is None:
        return nets.train(model, progress=progress, **arguments)
    made = [code_digest("physics", "nets"), type(model).__name__, fields(model), plain(arguments)]
    what = json.dumps(made, sort_keys=True)
    path = store / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.h5"
    try:
        return load(path)
    except FileNotFoundError:
        make_directory(store)
    except FileFormatError:
        put_aside(path)  # damaged: the same networks are trained again
    return nets.train(model, out=path, resume=True, progress=progress, **arguments)


def _steps(trained: Trajectory) -> NDArray[np.float64]:
    """Return the steps (runs, 2) to both thresholds that a training has recorded."""
    names = ("steps_to_train_accuracy", "steps_to_validation_accuracy")
    return np.stack([np.asarray(trained.observables[name])[:, -1] for name in names], axis=1)


def _changed(model: Any, settings: Mapping[str, Any]) -> Any:
    """Return a model with other values of its fields; other settings are ignored."""
    changed = {name: value for name, value in settings.items() if name not in SETTINGS}
    if isinstance(getattr(model, "hidden", None), tuple) and "hidden" in changed:
        changed["hidden"] = (changed["hidden"],) * len(model.hidden)
    return dataclasses.replace(model, **changed)


def is_whole(model: Any, name: str) -> bool:
    """Return whether a hyperparameter, such as `batch_size` or `dim`, takes whole numbers only.

    Parameters
    ----------
    model : Model
        A model of `nets`.
    name : str
        Name of an argument of `nets.train` in `SETTINGS`, or of a field of the model.

    Returns
    -------
    bool
        True for `batch_size`, for a field whose value is an int, and for the width "hidden".

    Raises
    ------
    InputError
        If `name` is neither in `SETTINGS` nor a number among the fields of `model`.
    """
    numbers = {
        field.name: value
        for field in dataclasses.fields(model)
        if isinstance(value := getattr(model, field.name), int | float) and not isinstance(value, bool)
    }
    if isinstance(getattr(model, "hidden", None), tuple):
        numbers["hidden"] = model.hidden[0]
    if name not in SETTINGS and name not in numbers:
        raise InputError(
            f"x and y must each name a hyperparameter of {type(model).__name__} or of its training, one of "
            f"{', '.join([*SETTINGS, *numbers])}; got {name!r}"
        )
    return name == "batch_size" or isinstance(numbers.get(name), int)


def axis(
    model: Any,
    name: str,
    low: float,
    high: float,
    cells: int = 6,
    *,
    label: str = "",
) -> Axis:
    """Return the axis of a hyperparameter, logarithmic if it begins above 0 and spans a factor of 10.

    Parameters
    ----------
    model : Model
        A model of `nets`, from whose fields it follows whether the axis takes whole numbers only.
    name : str
        Name of the hyperparameter, as for `is_whole`.
    low, high : float
        Ends of the range, in the unit of the hyperparameter.
    cells : int, default 6
        Number of coarse cells.
    label : str, default ""
        Label in figures; by default the name.

    Returns
    -------
    analysis.Axis
        The axis.

    Raises
    ------
    InputError
        If there is no such hyperparameter, or the range or the number of cells is not allowed.
    """
    low, high = number(f"the lower end of {name}", low), number(f"the upper end of {name}", high)
    return Axis(
        name, low, high, cells, "log" if 0 < 10 * low <= high else "linear", is_whole(model, name), label
    )


def phase_diagram_of_networks(
    model: Any,
    x: Axis | tuple[str, float, float],
    y: Axis | tuple[str, float, float],
    *,
    cells: tuple[int, int] = (6, 6),
    steps: int = 5000,
    refinement: Refinement | None = None,
    delay: float = DELAY,
    thresholds: Mapping[str, float] | None = None,
    seed: int = 0,
    store: str | Path | None = None,
    progress: bool = False,
    **options: Any,
) -> PhaseDiagram:
    """Train networks over a plane of two hyperparameters, and map their phases of learning (Liu, Table 1).

    The phases are comprehension, grokking, memorization and confusion. Cells where phases meet are divided in
    half, and cells without a clear majority get more networks.

    Parameters
    ----------
    model : Model
        A model of `nets`.
    x, y : tuple of (str, float, float), or Axis
        Name and range of the hyperparameters on the horizontal and the vertical axis. A name is an argument
        of `nets.train` (a rate, decay or scale, "batch_size", "train_fraction", "epsilon"), or a number among
        the fields of the model. An axis that spans a factor of 10 is logarithmic unless an `analysis.Axis`
        says otherwise.
    cells : pair of int, default (6, 6)
        Numbers of coarse cells along x and y; an `Axis` has its own.
    steps : int, default 5000
        Largest number of optimizer steps of a training. A network that has reached both thresholds stops
        earlier.
    refinement : analysis.Refinement, optional
        Number of networks in a cell, and levels of finer cells where phases meet.
    delay : float, default 1000
        Number of steps between fitting and generalizing from which a run counts as grokking, greater than 0.
    thresholds : mapping of str to float, optional
        Values of "train_accuracy", "validation_accuracy" or both, greater than 0 and at most 1, that count as
        fitted and as generalized; 0.9 by default.
    seed : int, default 0
        Network k of the diagram is that of ``nets.train(..., seed=seed, first_run=k, runs=1)``.
    store : path, optional
        Directory that keeps the networks, so that an interrupted diagram can continue. By default they are
        not kept.
    progress : bool, default False
        Whether to show bars on stderr, if that is a terminal.
    **options
        Other arguments of `nets.train`, for all networks, such as `train_fraction`. What varies along the
        axes, and what the diagram needs, such as the numbers of the networks and what is recorded, is not
        among them.

    Returns
    -------
    analysis.phases.PhaseDiagram
        Diagram with its cells and their runs, which `analysis.plots.phases.show_phases` draws.

    Raises
    ------
    InputError
        If an argument is out of its range, there is no such hyperparameter, or the diagram sets an argument
        in `options` itself.
    OutputError
        If a network cannot be written to `store`.

    References
    ----------
    Liu et al. 2022, *Towards Understanding Grokking: An Effective Theory*, Table 1 and Fig. 6.

    Examples
    --------
    >>> import analysis, grokphys, nets
    >>> diagram = grokphys.phase_diagram_of_networks(
    ...     nets.ToyAddition(hidden=(8, 8)),
    ...     ("learning_rate", 1e-3, 1e-2),
    ...     ("weight_decay", 0.0, 10.0),
    ...     cells=(2, 1),
    ...     steps=20,
    ...     refinement=analysis.Refinement(seeds=1, most_seeds=1, levels=0),
    ... )
    >>> diagram.runs
    2
    """
    for letter, given in (("x", x), ("y", y)):
        if not isinstance(given, Axis) and not (isinstance(given, tuple | list) and len(given) == 3):
            raise InputError(f"{letter} must be (name, low, high) or an Axis, got {short_text(given)}")
    counts = tuple(cells) if np.iterable(cells) else ()
    if len(counts) != 2:
        raise InputError(f"cells must be a pair of whole numbers, got {short_text(cells)}")
    across, upwards = (
        side if isinstance(side, Axis) else axis(model, *side, cells=count)
        for side, count in zip((x, y), counts, strict=True)
    )
    for side in (across, upwards):
        if is_whole(model, side.name) and not side.whole:
            raise InputError(f"the axis of {side.name}, a whole number, must have whole=True, got False")
    names = across.name, upwards.name
    train = partial(
        train_points,
        model=model,
        names=names,
        arguments=training_arguments(names, steps, delay, thresholds, seed, options),
        store=None if store is None else Path(store),
        progress=progress,
    )
    return phase_diagram(across, upwards, train, refinement, delay=delay)
