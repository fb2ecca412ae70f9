"""The description of a training that its trajectory stores, and the model that is restored from it."""

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
from nets.recording import described_record
from physics.errors import FileFormatError, InputError
from physics.seeds import describe_seed
from physics.theory.groups import FiniteGroup
from physics.trajectory import Trajectory
from physics.trajectory.provenance import UNKNOWN, code_digest, fields, is_ours, own_code, plain

RATES = ("learning_rate", "weight_decay", "embedding_learning_rate", "embedding_weight_decay")
PER_RUN = ("run_numbers", *RATES, "layer_scale", "embedding_scale", "unseen_classes")
"""Parameters that may have one entry for each run."""
EXECUTION = ("keep_start", "out", "overwrite", "resume", "callback", "progress")
"""Arguments of `train` that concern the storage and display of a run, not its content."""


def described(
    given: Mapping[str, Any], engine: Engine, ensemble: Ensemble, batch_size: int | None, names: Sequence[str]
) -> dict[str, Any]:
    """Return the parameters that a trajectory stores, as values that JSON can hold.

    They are the arguments `given` to `nets.train`, except for those of storage and display. The model, the
    engine, the batch size (None for all examples) and the names of the observables are those that were used.
    """
    model, stop = ensemble.model, given["stop"]
    computed: dict[str, Any] = {
        "program": "nets.train",
        "model": {"type": type(model).__name__, **_class_of(type(model)), **fields(model)},
        "seed": describe_seed(given["seed"]),
        "run_numbers": None if given["run_numbers"] is None else [int(one) for one in given["run_numbers"]],
        "freeze_embedding": bool(given["freeze_embedding"]),
        "batch_size": batch_size,
        "initial": {name: _digest(value) for name, value in (given["initial"] or {}).items()},
        "record": described_record(given["record"]),
        "observables": list(names),
        "thresholds": dict(given["thresholds"] or {}),
        "stop": getattr(stop, "__name__", "callable") if callable(stop) else stop,
        "not_stored": ["stop"] if callable(stop) else [],
        "engine": engine.name,
        "device": str(engine.device),
        "chunk": engine.chunk,
        "unseen_classes": ensemble.unseen_classes,
        **own_code(stop, model),
    }
    rest = {name: plain(given[name]) for name in given if name not in (*EXECUTION, *computed)}
    parameters = computed | rest
    return parameters | {"per_run": [name for name in PER_RUN if isinstance(parameters[name], list)]}


def model_of(described: Mapping[str, Any]) -> Model:
    """Restore a model from its type and fields, as a trajectory stores them.

    Parameters
    ----------
    described : mapping of str to object
        Name of the class under "type", what tells a class of your own from others of that name under
        "class", and the fields by name. A group is a mapping of "table" and "name".

    Returns
    -------
    Model
        The model, with an equal description.

    Raises
    ------
    InputError
        If no imported class has this name, if several have it and none is known to be the one that was
        trained, or if a field has a value that the class refuses.
    FileFormatError
        If the model reads images from files that are missing, damaged or have changed.
    TypeError
        If the class lacks one of the fields.
    """
    values = dict(described)
    kind = _kind(values.pop("type"), values.pop("class", None))
    if isinstance(values.get("group"), Mapping):
        if not {"table", "name"} <= set(values["group"]):
            raise InputError(f"group must be recorded with a table and a name, got {set(values['group'])}")
        values["group"] = FiniteGroup(values["group"]["table"], values["group"]["name"])
    return kind(**values)


def is_imported(described: Mapping[str, Any]) -> bool:
    """Return whether `model_of` can find a class for a description; true if it names none."""
    return "type" not in described or bool(_called(described["type"], described.get("class")))


def _called(name: str, made: Mapping[str, str] | None) -> list[type[Model]]:
    kinds = _kinds(Model)  # type: ignore[type-abstract]
    return [kind for kind in kinds if kind.__name__ == name and not (made and is_ours(kind))]


def _kind(name: str, made: Mapping[str, str] | None) -> type[Model]:
    """Return the class of models called `name` that `_class_of` described as `made`.

    It is None in files of the package's models, and in files of others that are older than this description.
    """
    found = _called(name, made)
    if not found:
        names = ", ".join(dict.fromkeys(kind.__name__ for kind in _kinds(Model)))  # type: ignore[type-abstract]
        raise InputError(
            f"model of the trajectory must be one of {names}, or be imported first, got "
            f"{made['name'] if made else name}"
        )
    if made is None:
        fits = {kind: int(is_ours(kind)) for kind in found}
    else:
        fits = {
            kind: 2 * (code_digest(kind) == made["code"]) + (_name(kind) == made["name"]) for kind in found
        }
    best = max(fits.values())
    # A cell of a notebook that runs again defines the same class again.
    fitting = {(_name(kind), _code_of(kind)): kind for kind, fit in fits.items() if fit == best}
    if len(fitting) > 1:
        raise InputError(
            f"model of the trajectory must be of one class, got {name}, which several classes are called: "
            f"{', '.join(called for called, _ in fitting)}; define or import only the one that was trained"
        )
    ((called, _), kind) = fitting.popitem()
    if made and best < 2:
        warnings.warn(
            f"{called} has changed since it was trained, so that its outputs may be others",
            RuntimeWarning,
            stacklevel=2,
        )
    return kind


def _kinds(base: type[Model]) -> list[type[Model]]:
    """Return all dataclasses that derive from a class of models, directly or not."""
    below = [kind for child in base.__subclasses__() for kind in (child, *_kinds(child))]
    return [kind for kind in below if dataclasses.is_dataclass(kind)]


def _class_of(kind: type[Model]) -> dict[str, dict[str, str]]:
    """Return what tells a class of your own from others of its name, under "class", which is no field."""
    return {} if is_ours(kind) else {"class": {"name": _name(kind), "code": code_digest(kind)}}


def _code_of(kind: type) -> str:
    """Return the digest of a class, which no other class shares if its source text is unknown."""
    digest = code_digest(kind)
    return f"{digest} {id(kind)}" if digest == UNKNOWN else digest


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def seed_of(described: Any) -> int | np.random.SeedSequence:
    """Restore a seed from `described`, which `physics.seeds.describe_seed` has returned.

    An int is returned as an int. A mapping of "entropy", "spawn_key" and perhaps "pool_size" gives a
    `numpy.random.SeedSequence`.
    """
    if isinstance(described, Mapping):
        given = {"pool_size": described["pool_size"]} if "pool_size" in described else {}
        return np.random.SeedSequence(described["entropy"], spawn_key=described["spawn_key"], **given)
    return int(described)


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
        If the trajectory was not made by `nets.train`, or not exactly one imported class fits its model.
    FileFormatError
        If the parameters do not describe a training, or the model reads images from files that are missing,
        damaged or have changed.
    """
    made = trajectory.parameters
    if "selected_tokens" in made:
        raise InputError("trajectory must have all tokens of its networks, got one of selected tokens")
    if made.get("program") != "nets.train":
        raise InputError(
            "trajectory must be made by nets.train to restore its networks, got one made by "
            f"{made.get('program', 'an unknown program')}"
        )
    try:
        return _restored(trajectory, made)
    except (InputError, FileFormatError):
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError) as error:
        raise FileFormatError(
            "parameters must describe a training of nets.train, got ones that do not "
            f"({type(error).__name__}: {error})"
        ) from None


def _restored(trajectory: Trajectory, made: Mapping[str, Any]) -> Ensemble:
    """Return the ensemble of a trajectory with the parameters `made`, or fail if they are incomplete."""
    model, start = model_of(made["model"]), trajectory.start
    if "train_examples" in start:
        parameters = {
            name.removeprefix(PARAMETER): v for name, v in start.items() if name.startswith(PARAMETER)
        }
        train, targets = start["train_examples"], start.get("targets")
        validation = start.get("validation_examples", train[:, :0])
        return Ensemble(model, parameters, train, validation, targets, [])
    return draw(
        model,
        runs=trajectory.runs,
        seed=seed_of(made["seed"]),
        first_run=made["first_run"],
        run_numbers=made.get("run_numbers"),
        train_fraction=made["train_fraction"],
        train_examples=made["train_examples"],
        validation_examples=made["validation_examples"],
        shared=made["shared"],
    )


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
