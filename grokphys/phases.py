"""Phases of networks over a plane of two hyperparameters, trained as `phase_diagram` asks for them."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import nets
from analysis.phases.classification import DELAY
from analysis.phases.diagram import Axis, PhaseDiagram, Point, Refinement, phase_diagram
from grokphys.models import PER_MEMBER
from grokphys.output import make_directory, put_aside
from grokphys.papers.pieces import code_digest
from nets.settings import RATES
from physics.checks import mapping, number, whole_number
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


@dataclasses.dataclass(frozen=True)
class Training:
    """Networks at any points of a plane of two hyperparameters, which `phase_diagram` evaluates.

    Run k of the diagram is network k of the seed, `nets.train(..., seed=seed, first_run=k, runs=1)`, in
    whichever ensemble it was trained. A network stops once it has reached both thresholds.

    Parameters
    ----------
    model : Model
        A model of `nets`.
    x, y : Axis
        Axes whose names are among `SETTINGS`, or a number among the fields of the model. "hidden" is the
        width of every hidden layer.
    steps : int
        Largest number of steps of a training.
    delay : float, default DELAY
        Number of steps between fitting and generalizing from which a run counts as grokking. The accuracies
        are checked twenty times within it, or at every step if it is shorter than that.
    thresholds : mapping, optional
        Values of "train_accuracy" and "validation_accuracy" that count as fitted and as generalized; those of
        `ACCURACIES` by default.
    seed : int, default 0
        Seed of all networks.
    options : mapping, optional
        Other arguments of `nets.train`, except those that the diagram sets itself.
    store : Path, optional
        Directory that keeps the ensembles. Complete ensembles are not trained again, and unfinished ones are
        resumed. Those of other versions of the code or of the libraries are ignored, and damaged ones are
        kept as ``NAME.damaged`` and trained again.
    progress : bool, default False
        Whether to show progress bars on stderr.

    Raises
    ------
    InputError
        If an axis is no hyperparameter or has values that are not allowed, an argument is out of range, or
        `options` has an argument that the diagram sets itself.
    """

    model: Any
    x: Axis
    y: Axis
    steps: int
    delay: float = DELAY
    thresholds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    seed: int = 0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    store: Path | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        for side in (self.x, self.y):
            if is_whole(self.model, side.name) and not side.whole:
                raise InputError(
                    f"the axis of {side.name}, a whole number, must have whole=True, got whole=False"
                )
            if side.name in RATES:
                number(f"the lower end of {side.name}", side.low, 0.0)
        whole_number("steps", self.steps, 1)
        number("delay", self.delay, above=0.0)
        thresholds = {**ACCURACIES, **mapping("thresholds", self.thresholds)}
        if len(thresholds) > len(ACCURACIES):
            keys = " and ".join(ACCURACIES)
            raise InputError(f"thresholds must have the keys {keys}, got {self.thresholds!r}")
        for name, value in thresholds.items():
            number(name, value, maximum=1.0, above=0.0)
        object.__setattr__(self, "thresholds", thresholds)

    def diagram(self, refinement: Refinement | None = None) -> PhaseDiagram:
        """Map the phases of the plane.

        Parameters
        ----------
        refinement : analysis.Refinement, optional
            Number of networks in a cell, levels of finer cells, and largest number of networks.

        Returns
        -------
        analysis.phases.PhaseDiagram
            Diagram with its cells and their runs.
        """
        return phase_diagram(self.x, self.y, self, refinement, delay=self.delay)

    def __call__(self, points: Sequence[Point], first: int) -> NDArray[np.float64]:
        """Train one network at each point of the plane.

        Parameters
        ----------
        points : sequence of pair of float
            Values of the hyperparameters on the horizontal and the vertical axis.
        first : int
            Number of the first network; the others follow.

        Returns
        -------
        ndarray of float64, shape (points, 3)
            Number of each network, and the steps at which it reached the training and the validation
            threshold; NaN if it never did.
        """
        settings = [{self.x.name: x, self.y.name: y} for x, y in points]
        keys = [
            tuple(value for name, value in setting.items() if name not in PER_MEMBER) for setting in settings
        ]
        results = np.empty((len(points), 3))
        for key in sorted(set(keys)):
            members = [k for k, each in enumerate(keys) if each == key]
            for start in range(0, len(members), PACK):
                part = members[start : start + PACK]
                results[part, 0] = np.arange(first, first + len(part))
                results[part, 1:] = self._ensemble([settings[k] for k in part], first)
                first += len(part)
        return results

    def _ensemble(self, settings: Sequence[Mapping[str, float]], first: int) -> NDArray[np.float64]:
        """Train networks that differ only in rates and scales; return their steps (runs, 2) to thresholds."""
        columns = {
            name: [setting[name] for setting in settings] for name in settings[0] if name in PER_MEMBER
        }
        common = {name: value for name, value in settings[0].items() if name not in columns}
        model = _changed(self.model, common)
        arguments: dict[str, Any] = {
            "runs": len(settings),
            "first_run": first,
            "steps": self.steps,
            "seed": self.seed,
            "record": [self.steps],
            "observables": (),
            "thresholds": dict(self.thresholds),
            "track": max(int(self.delay // LOOKS), 1),
            "stop": "thresholds",
            "keep_start": False,
            **{name: value for name, value in common.items() if name in SETTINGS},
            **columns,
        }
        if taken := [name for name in self.options if name in arguments]:
            raise InputError(f"options must not set {' and '.join(taken)}, which the diagram sets itself")
        arguments |= self.options
        if self.store is None:
            return _steps(nets.train(model, progress=self.progress, **arguments))
        made = [code_digest("physics", "nets"), type(model).__name__, fields(model), plain(arguments)]
        what = json.dumps(made, sort_keys=True)
        path = self.store / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.h5"
        try:
            return _steps(load(path))
        except FileNotFoundError:
            make_directory(self.store)
        except FileFormatError:
            put_aside(path)  # damaged: the same networks are trained again
        unfinished = path.with_name(path.name + ".partial").exists()
        return _steps(nets.train(model, out=path, resume=unfinished, progress=self.progress, **arguments))


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
    scale: Literal["linear", "log"] | None = None,
    label: str = "",
) -> Axis:
    """Return the axis of a hyperparameter in a phase diagram.

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
    scale : {"linear", "log"}, optional
        Scale of the axis. By default it is logarithmic if `low` is greater than 0 and `high` at least 10
        times as large.
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
    if scale is None:
        scale = "log" if 0 < 10 * low <= high else "linear"
    return Axis(name, low, high, cells, scale, is_whole(model, name), label)


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
        Number of networks in a cell, levels of finer cells where phases meet, and limit on all networks.
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
    for name, side in (("x", x), ("y", y)):
        if not isinstance(side, Axis) and not (isinstance(side, tuple | list) and len(side) == 3):
            raise InputError(f"{name} must be (name, low, high) or an Axis, got {side!r}")
    counts = tuple(cells) if np.iterable(cells) else ()
    if len(counts) != 2:
        raise InputError(f"cells must be a pair of whole numbers, got {cells!r}")
    across, upwards = (
        side if isinstance(side, Axis) else axis(model, *side, cells=count)
        for side, count in zip((x, y), counts, strict=True)
    )
    training = Training(
        model,
        across,
        upwards,
        steps,
        delay,
        mapping("thresholds", thresholds),
        seed,
        options,
        None if store is None else Path(store),
        progress,
    )
    return training.diagram(refinement)
