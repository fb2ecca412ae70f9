"""The description of a training that its trajectory stores, and the ensemble that is restored from it."""

import dataclasses
import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.engines.choice import Engine
from nets.engines.ensemble import PARAMETER, Ensemble, draw
from nets.models import Model
from nets.settings import PER_MEMBER, Settings
from physics.errors import FileFormatError, InputError
from physics.seeds import describe_seed
from physics.theory.operations import FiniteGroup
from physics.trajectory import Trajectory
from physics.trajectory.provenance import code_digest, fields, is_ours, own_code, plain

PER_RUN = ("run_numbers", *PER_MEMBER, "unseen_classes")
"""Parameters that may have one entry for each run."""


def described(
    settings: Settings, engine: Engine, ensemble: Ensemble, batch_size: int | None, names: Sequence[str]
) -> dict[str, Any]:
    """Return the parameters that a trajectory stores, as values that JSON can hold.

    They are the settings, except that the model, the engine, the batch size (None for all examples) and the
    names of the observables are those that were used.
    """
    model, stop = ensemble.model, settings.stop
    kind = type(model)
    used = {
        "program": "nets.train",
        "model": {
            "type": kind.__name__,
            **({} if is_ours(kind) else {"class": {"name": _name(kind), "code": code_digest(kind)}}),
            **fields(model),
        },
        "seed": describe_seed(settings.seed),
        "batch_size": batch_size,
        "initial": {name: _digest(value) for name, value in (settings.initial or {}).items()},
        "observables": list(names),
        "thresholds": dict(settings.thresholds or {}),
        "stop": getattr(stop, "__name__", "callable") if callable(stop) else stop,
        "not_stored": ["stop"] if callable(stop) else [],
        "engine": engine.name,
        "device": str(engine.device),
        "chunk": engine.chunk,
        "unseen_classes": ensemble.unseen_classes,
        **own_code(stop, model),
    }
    rest = {name: plain(value) for name, value in settings.values().items() if name not in used}
    parameters: dict[str, Any] = used | rest
    return parameters | {"per_run": [name for name in PER_RUN if isinstance(parameters[name], list)]}


def is_imported(model: Mapping[str, Any]) -> bool:
    """Return whether the class of a model, as a trajectory describes it, is known; true if it names none."""
    return "type" not in model or bool(_called(model["type"], model.get("class")))


def _model_of(stored: Mapping[str, Any]) -> Model:
    """Restore a model from what `described` has stored: "type", "class" unless it is ours, and its fields."""
    values = dict(stored)
    kind = _kind(values.pop("type"), values.pop("class", None))
    if "group" in values:
        values["group"] = FiniteGroup(values["group"]["table"], values["group"]["name"])
    return kind(**values)


def _kind(name: str, made: Mapping[str, str] | None) -> type[Model]:
    """Return the class of models called `name` whose code and place are as in `made`, or come nearest."""
    kinds = _called(name, made)
    if not kinds:
        names = ", ".join(dict.fromkeys(kind.__name__ for kind in _kinds(Model)))  # type: ignore[type-abstract]
        got = made["name"] if made else name
        raise InputError(f"model of the trajectory must be one of {names}, or be imported first, got {got}")
    if made is None:
        return kinds[-1]
    fits = [(code_digest(kind) == made["code"], _name(kind) == made["name"]) for kind in kinds]
    # A cell of a notebook that runs again defines the same class again; the last one counts.
    *others, nearest = (kind for kind, fit in zip(kinds, fits, strict=True) if fit == max(fits))
    doubt = ""
    if not max(fits)[0]:
        doubt = "has changed since it was trained"
    elif others and "<locals>" in nearest.__qualname__:
        doubt = "is defined several times by a function, and the last one is taken"
    if doubt:
        text = f"{_name(nearest)} {doubt}, so that its outputs may be others"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return nearest


def _called(name: str, made: Mapping[str, str] | None) -> list[type[Model]]:
    """Return the classes of a name in the order of their definition: ours, or those of a user if `made`."""
    kinds = _kinds(Model)  # type: ignore[type-abstract]
    return [kind for kind in kinds if kind.__name__ == name and is_ours(kind) is (made is None)]


def _kinds(base: type[Model]) -> list[type[Model]]:
    """Return all dataclasses that derive from a class of models, directly or not."""
    below = [kind for child in base.__subclasses__() for kind in (child, *_kinds(child))]
    return [kind for kind in below if dataclasses.is_dataclass(kind)]


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _digest(value: Any) -> str:
    """Return a fingerprint of given initial parameters, which a resumed run must match."""
    array = np.ascontiguousarray(value, dtype=np.float64)
    return "sha256:" + hashlib.sha256(array.tobytes()).hexdigest()


def ensemble_of(trajectory: Trajectory) -> Ensemble:
    """Return the ensemble of a trajectory as it was before training.

    It is restored from the stored arrays, or drawn again from the seed if the trajectory stores none.

    Parameters
    ----------
    trajectory : Trajectory
        Result of `nets.train`.

    Returns
    -------
    Ensemble
        All members. If it is restored from arrays, it has no `noise`, so it can be evaluated but not trained.

    Raises
    ------
    InputError
        If the trajectory was not made by `nets.train`, or no imported class has the name of its model.
    FileFormatError
        If the parameters do not describe a training, or the model reads images from files that are missing,
        damaged or have changed.

    Warns
    -----
    RuntimeWarning
        If the code of the model's class has changed since the training.
    """
    made, start = trajectory.parameters, trajectory.start
    if "selected_tokens" in made:
        raise InputError("trajectory must have all tokens of its networks, got one of selected tokens")
    if made.get("program") != "nets.train":
        program = made.get("program", "an unknown program")
        raise InputError(f"trajectory must be made by nets.train to have networks, got one made by {program}")
    drawn = ("first_run", "run_numbers", "train_fraction", "train_examples", "validation_examples", "shared")
    try:
        model = _model_of(made["model"])
        if "train_examples" in start:
            parameters = {
                name.removeprefix(PARAMETER): v for name, v in start.items() if name.startswith(PARAMETER)
            }
            train = start["train_examples"]
            validation = start.get("validation_examples", train[:, :0])
            return Ensemble(model, parameters, train, validation, start.get("targets"), [])
        seed = made["seed"]
        seed = np.random.SeedSequence(**seed) if isinstance(seed, Mapping) else seed
        return draw(model, runs=trajectory.runs, seed=seed, **{name: made[name] for name in drawn})
    except (InputError, FileFormatError):
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError) as error:
        got = f"ones that do not ({type(error).__name__}: {error})"
        raise FileFormatError(f"parameters must describe a training of nets.train, got {got}") from None


def training_sets(trajectory: Trajectory) -> tuple[Model, NDArray[np.int64]]:
    """Return the training sets of a recorded training, even if its layers were not recorded.

    Parameters
    ----------
    trajectory : Trajectory
        Result of `train`.

    Returns
    -------
    model : Model
        The model, with its task.
    examples : ndarray of int64, shape (runs, examples)
        Indices of the training examples of each member, into ``model.task.inputs``.

    Raises
    ------
    InputError
        If the trajectory was not made by `train`, or the class of its model has not been imported.
    FileFormatError
        If the model reads images from files that are missing, damaged or have changed.

    Examples
    --------
    >>> import nets, nets.provenance
    >>> trained = nets.train(nets.ConstantAttention(7), runs=2, steps=5)
    >>> model, examples = nets.provenance.training_sets(trained)
    >>> model.task.inputs[examples].shape  # 22 of the 28 pairs, for each of two members
    (2, 22, 2)
    """
    ensemble = ensemble_of(trajectory)
    return ensemble.model, ensemble.train
