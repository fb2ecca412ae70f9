"""What the arena is made of: theories, tracks, the cases of a track, and the run that scores theories."""

import copy
import csv
import inspect
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from analysis.stats.intervals import mean
from grokphys.output import make_directory, write_csv
from nets import Model, Training, train
from nets.architecture import EMBEDDING
from nets.settings import RATES
from physics import Trajectory
from physics.checks import choice, real_array
from physics.errors import FileFormatError, InputError
from physics.trajectory.provenance import code_version

Array = NDArray[np.float64]
Budget = Literal["quick", "paper"]
Rows = list[dict[str, Any]]
STILL, ANOTHER = "nothing moves", "another network from the same start"
"""The two ends of each scale: nothing changes, or the network has other initial layers."""
SEEN = ("program", "model", *RATES, "betas", "epsilon", "optimizer", "batch_size", "dtype")
"""Parameters of a training that theories see: they draw no network."""
COLUMNS = {"track": str, "setting": str, "theory": str, "kind": str, "network": int, "score": float}


@runtime_checkable
class Theory(Protocol):
    """What can be entered: an object that is fitted to networks, and then predicts others.

    A theory for the track "force" has the method `force` in place of `predict`. The arena copies a theory
    before each fit. An attribute ``tracks = ("fate",)`` names the tracks of a theory, if these are not all
    tracks whose method it has.

    Attributes
    ----------
    name : str
        Name in the tables.
    """

    name: str

    def fit(self, trajectory: Trajectory) -> Self:
        """Fit the theory to the networks of a trajectory, which it sees as a whole, and return it."""
        ...


@dataclass(frozen=True, eq=False)
class Case:
    """One setting of a track with its networks.

    Attributes
    ----------
    fit : Trajectory
        Networks to which theories are fitted.
    starts : Any
        What theories see of the networks that are held out: a trajectory, as `seen` cuts it.
    score : callable
        Function of a prediction that checks it and returns the score of each network, (networks,).
    ends : mapping of str to ndarray of float64, shape (networks,)
        Scores of `STILL` and `ANOTHER`, and of further references that are no theories.
    """

    fit: Trajectory
    starts: Any
    score: Callable[[Any], Array]
    ends: Mapping[str, Array]


class Track(ABC):
    """A kind of prediction with its score.

    Attributes
    ----------
    name : str
        Name of the track.
    measure : str
        What the score is, in a line.
    best : {0.0, 1.0}
        Score of an exact prediction.
    method : str, default "predict"
        Method of a theory that predicts.
    settings : mapping of str to mapping of str to object
        Settings by budget and by name. The text of a setting, its `repr`, tells whether rows are up to date.
    """

    name: ClassVar[str]
    measure: ClassVar[str]
    best: ClassVar[float]
    method: ClassVar[str] = "predict"
    settings: Mapping[str, Mapping[str, Any]]

    @abstractmethod
    def entries(self) -> Sequence[Theory]:
        """Return the theories that are entered from the beginning."""

    @abstractmethod
    def case(self, setting: Any, folder: Path | None) -> Case:
        """Return the networks of a setting, which are kept in a folder, or in memory if it is None."""

    def ask(self, theory: Any, case: Case) -> Any:
        """Return the prediction of a fitted theory."""
        return theory.predict(case.starts)

    def admits(self, theory: Any) -> bool:
        """Return whether a theory has the method of this track and does not leave it out of its `tracks`."""
        entered = getattr(theory, "tracks", (self.name,))
        return callable(getattr(theory, self.method, None)) and self.name in entered


# -- networks ----------------------------------------------------------------------------------------------


def ensemble(folder: Path | None, model: Model, *, layers: int | None = None, **settings: Any) -> Trajectory:
    """Return a trained ensemble, which is made once for each folder.

    Parameters
    ----------
    folder : Path or None
        Existing folder of the file, whose name tells the settings; None keeps the ensemble in memory.
    model : Model
        Model to train.
    layers : int, optional
        Seed of the layers. The networks then have the embeddings and training sets of the seed among the
        settings, and other layers: they are *another network from the same start*.
    **settings
        Settings of `nets.train`, as values that can be hashed, such as tuples.

    Returns
    -------
    Trajectory
        The ensemble.
    """
    return _trained(folder, model, layers, tuple(sorted(settings.items())))


@lru_cache(maxsize=8)
def _trained(
    folder: Path | None, model: Model, layers: int | None, settings: tuple[tuple[str, Any], ...]
) -> Trajectory:
    options: dict[str, Any] = dict(settings)
    if folder is not None:
        options |= {"out": folder / f"networks-{digest(model, layers, settings)}.h5", "resume": True}
    if layers is not None:
        options["initial"] = other_layers(model, runs=options["runs"], seed=layers)
    return train(model, **options)


def other_layers(model: Model, **settings: Any) -> dict[str, NDArray[Any]]:
    """Return the initial layers of networks of a seed, as `initial` of networks of another seed."""
    drawn = Training(model, **settings).ensemble.parameters
    return {name: value for name, value in drawn.items() if name != EMBEDDING}


def split(trajectory: Trajectory) -> tuple[Trajectory, Trajectory]:
    """Return the first half of the networks, for fits, and the second half, which is held out."""
    half = trajectory.runs // 2
    if not half:
        raise InputError(f"networks must be at least 2, to fit and to hold out, got {trajectory.runs}")
    return trajectory[:half], trajectory[half:]


def seen(
    trajectory: Trajectory, frames: Any = slice(None), observables: Sequence[str] = (), measured: Any = None
) -> Trajectory:
    """Return what theories see of networks: some frames, the training sets, and how they are trained.

    Seeds, numbers of runs and initial layers are left out, because they would draw the networks again.

    Parameters
    ----------
    trajectory : Trajectory
        Networks.
    frames : slice or array_like, default slice(None)
        Frames to keep.
    observables : sequence of str, default ()
        Names of observables to keep.
    measured : slice or array_like, optional
        Frames at which observables are kept; by default `frames`.

    Returns
    -------
    Trajectory
        A copy.
    """
    times = frames if measured is None else measured
    clocks = {} if measured is None else dict.fromkeys(observables, (trajectory.steps[times], None))
    return Trajectory(
        trajectory.positions[:, frames],
        trajectory.steps[frames],
        observables={name: trajectory.observables[name][:, times] for name in observables},
        clocks=clocks,
        parameters={name: trajectory.parameters[name] for name in SEEN if name in trajectory.parameters},
        start={
            name: value
            for name, value in trajectory.start.items()
            if name in ("train_examples", "validation_examples")
        },
    )


def checked_prediction(predicted: Any, shape: tuple[int, ...]) -> Array:
    """Return a prediction as float64 if it has a shape and no NaN; anything else is an `InputError`."""
    array = real_array("prediction", predicted)
    if array.shape != shape:
        raise InputError(f"prediction must have the shape {shape}, got {array.shape}")
    lost = np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
    if len(lost):
        raise InputError(f"prediction must be finite, got NaN or infinity for the network {lost[0]}")
    return array


# -- scores ------------------------------------------------------------------------------------------------


def run(
    track: Track,
    theories: Sequence[Any] | None = None,
    budget: Budget | Mapping[str, Any] = "quick",
    folder: str | Path | None = None,
) -> dict[str, NDArray[Any]]:
    """Fit theories, let them predict networks that are held out, and return the score of each network.

    Parameters
    ----------
    track : Track
        The track.
    theories : sequence of Theory, optional
        Theories; by default those of the track. Those without its method are passed over.
    budget : {"quick", "paper"} or mapping of str to object, default "quick"
        Which settings of the track to run, or settings of your own by name.
    folder : str or Path, optional
        Folder for the networks and for the file TRACK.csv with all rows. What is there is not made again, as
        long as settings, this package and the files of theories are the same. By default nothing is kept.

    Returns
    -------
    dict of str to ndarray, shape (rows,)
        A row for each setting, theory and network: the columns "track", "setting", "theory", "kind" ("end" or
        "theory"), "network" and "score".

    Raises
    ------
    InputError
        If a theory lacks `fit`, its method or a name, or its prediction has another shape or is not finite.
    """
    if isinstance(budget, str):
        choice("budget", budget, tuple(track.settings))
    chosen = _checked(track.entries() if theories is None else theories)
    chosen = [theory for theory in chosen if track.admits(theory)]
    place = None if folder is None else Path(folder)
    if place is not None:
        make_directory(place)
    stored = [] if place is None else _read(place / f"{track.name}.csv")
    wanted: Rows = []
    settings = track.settings[budget] if isinstance(budget, str) else budget
    for name, setting in settings.items():
        case = None
        for theory in (None, *chosen):
            made = digest(code_version(), setting, type(track), theory)
            rows = [row for row in stored if row["setting"] == name and row["digest"] == made]
            if not rows:
                case = track.case(setting, place) if case is None else case
                ends = case.ends if theory is None else {theory.name: _scores(track, theory, case)}
                about = {"track": track.name, "setting": name, "kind": "end" if theory is None else "theory"}
                rows = [
                    about | {"theory": title, "network": network, "score": score, "digest": made}
                    for title, scores in ends.items()
                    for network, score in enumerate(scores.tolist())
                ]
                stored = [r for r in stored if r["setting"] != name or r["theory"] not in ends] + rows
                if place is not None:
                    write_csv(place / f"{track.name}.csv", stored)
            wanted += rows
    return {name: np.array([row[name] for row in wanted], kind) for name, kind in COLUMNS.items()}


def summary(rows: Mapping[str, NDArray[Any]]) -> Rows:
    """Return the mean score of each theory in each setting, with Student's interval of 95 % by networks.

    Parameters
    ----------
    rows : mapping of str to ndarray
        Columns of `run`.

    Returns
    -------
    list of dict
        Rows with "track", "setting", "theory", "kind", "score", "lower", "upper" and "networks".
    """
    names, table = ("track", "setting", "theory", "kind"), []
    keys = list(zip(*(rows[name].tolist() for name in names), strict=True))
    for key in dict.fromkeys(keys):
        value = mean(rows["score"][[other == key for other in keys]]).within(0.0, 1.0)
        numbers = {"score": value.estimate, "lower": value.low, "upper": value.high, "networks": value.count}
        table.append(dict(zip(names, key, strict=True)) | numbers)
    return table


def _checked(theories: Iterable[Any]) -> list[Any]:
    """Return theories, each of which must have a name of its own and the method `fit`."""
    found = list(theories)
    for theory in found:
        if not isinstance(theory, Theory) or inspect.isclass(theory):
            raise InputError(f"theories must be objects with name and fit, got {theory!r}")
        if not any(callable(getattr(theory, method, None)) for method in ("predict", "force")):
            raise InputError(f"theories must have the method predict or force, got {theory.name} without")
        if theory.name in (STILL, ANOTHER) or sum(other.name == theory.name for other in found) > 1:
            raise InputError(f"theories must have names of their own, got {theory.name!r} twice")
    return found


def _scores(track: Track, theory: Any, case: Case) -> Array:
    """Fit a copy of a theory to a copy of the networks; return the score of each; errors name the theory."""
    place = f"(theory {theory.name!r}, track {track.name!r})"
    try:
        theory, case = copy.deepcopy((theory, case))
        fitted = theory.fit(case.fit)
        if not callable(getattr(fitted, track.method, None)):
            raise InputError(f"fit must return the theory, got {type(fitted).__name__}")
        return case.score(track.ask(fitted, case))
    except InputError as error:
        raise InputError(f"{error} {place}") from None
    except Exception as error:
        error.add_note(place)
        raise


def digest(*parts: Any) -> str:
    """Return digits that tell settings, tracks and theories apart: by their text, or file and content."""
    content = []
    for part in parts:
        text = repr(part)
        if hasattr(part, "fit") or inspect.isclass(part):
            classes = (part if inspect.isclass(part) else type(part)).__mro__[:-1]
            text = uuid4().hex  # like no other, so that rows are made again
            with suppress(OSError, TypeError, AttributeError, KeyError, pickle.PicklingError):
                files = [inspect.getsource(sys.modules[each.__module__]) for each in classes]
                text = "".join([*files, repr(pickle.dumps(part))])
        content.append(text)
    return sha256("\n".join(content).encode()).hexdigest()[:12]


def _read(path: Path) -> Rows:
    """Return the rows of a file that `run` has written; none if there is no file."""
    if not path.exists():
        return []
    kinds = COLUMNS | {"digest": str}
    with path.open(newline="", encoding="utf-8") as file:
        try:
            return [{name: kind(row[name]) for name, kind in kinds.items()} for row in csv.DictReader(file)]
        except (KeyError, TypeError, ValueError):
            raise FileFormatError(f"{path} is no table of the arena; choose another directory") from None
