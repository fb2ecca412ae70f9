"""Whether a model can be trained: what one of your own states is checked once, before anything is drawn."""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING, Architecture
from nets.models.model import DenseModel, Model
from nets.settings import Settings
from nets.tasks import Task
from physics.checks import choice, finite_array, mapping, number, short_text, whole_number
from physics.errors import InputError
from physics.memory import require_memory
from physics.trajectory.provenance import is_ours

ADVICE = "train them in shards, with fewer runs (--runs) at a time and first_run (--first-run)"


def require_model(model: Any) -> Model:
    """Return `model` if it is one, with settings of a training that `nets.train` has."""
    kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    if not isinstance(model, Model) or not hasattr(model, "__dataclass_fields__"):
        also = "" if not isinstance(model, Model) else ", a frozen dataclass whose fields say what it is"
        raise InputError(f"model must be a model such as ConstantAttention(){also}, got {kind}")
    known = {field.name for field in dataclasses.fields(Settings)} - {"runs", "seed"}
    for name in mapping(f"settings of {kind}", model.settings):
        if name not in known:
            raise InputError(f"settings of {kind} must name settings of nets.train, got {name!r}")
    return model


def require_sound(model: Any, runs: int) -> None:
    """Refuse an invalid model before anything is drawn, and an ensemble that does not fit into memory."""
    kind = type(require_model(model)).__name__
    tokens, dim = (whole_number(f"{name} of {kind}", getattr(model, name), 1) for name in ("tokens", "dim"))
    architecture: Any = model.architecture
    is_optional = not isinstance(model, DenseModel)
    if not isinstance(architecture, Architecture) and not (architecture is None and is_optional):
        raise InputError(
            f"architecture of {kind} must be a nets.Architecture, got {type(architecture).__name__}"
        )
    choice(f"loss of {kind}", model.loss, ("cross_entropy", "mean_squared_error"))
    penalty = number(f"embedding_penalty of {kind}", model.embedding_penalty, 0.0)
    dropout = number(f"dropout of {kind}", model.dropout, 0.0, below=1.0)
    if dropout and architecture is not None:
        raise InputError(
            f"dropout of {kind} must be 0 for a model with an architecture, which has none, got {dropout:g}"
        )
    wanted = None
    if architecture is not None:  # tasks of tokens can be large, and are made after the check of the memory
        features = _task(model, kind).inputs.shape[1] if architecture.combine == "data" else 0
        wanted = architecture.check(kind, (tokens, dim), features, model.loss)
    what = f"initial of {kind} must return a dict of arrays that is not empty"
    with _in_a_sentence(what):
        drawn: Any = model.initial(np.random.default_rng(0), np.random.default_rng(0))
    if not isinstance(drawn, Mapping) or not drawn:
        raise InputError(f"{what}, got {short_text(drawn)}")
    for name, value in drawn.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not value.ndim:
            array = isinstance(value, np.ndarray)
            got = f"{value.dtype} of the shape {value.shape}" if array else short_text(value)
            raise InputError(
                f"initial[{name!r}] of {kind} must be an array of floating-point numbers with at least one "
                f"axis, got {got}"
            )
    one = {name: finite_array(f"initial[{name!r}] of {kind}", value) for name, value in drawn.items()}
    numbers = sum(value.size for value in one.values())
    # Drawing takes two copies in float64; training takes values and two moments in its number type.
    require_memory(f"{runs} networks of {numbers} parameters", 40.0 * numbers * runs, ADVICE)
    if EMBEDDING in one and one[EMBEDDING].shape != (tokens, dim):
        raise InputError(
            f"the embedding of {kind} must have the shape {(tokens, dim)}, got {one[EMBEDDING].shape}"
        )
    if penalty and EMBEDDING not in one:
        raise InputError(
            f"embedding_penalty of {kind} must be 0 without a parameter named {EMBEDDING!r}, got {penalty:g}"
        )
    head = list(one)[: len(model.encoder)]
    if set(head) != set(model.encoder):
        raise InputError(
            f"encoder of {kind} must name the first of its parameters, {', '.join(head)}, got "
            f"{', '.join(model.encoder)}"
        )
    shapes = {name: value.shape for name, value in one.items()}
    if wanted is not None and list(shapes.items()) != list(wanted.items()):
        raise InputError(
            f"initial of {kind} must return, for its architecture, {wanted} in this order, got {shapes}"
        )
    _task(model, kind)
    if architecture is not None:
        _require_inputs(model, kind)
    if not is_ours(type(model)):  # ours are tested, and PyTorch takes seconds to import
        _require_outputs(model, kind, one)


@contextmanager
def _in_a_sentence(what: str) -> Iterator[None]:
    """Let an error in the code of a model end in a sentence that begins with `what`, and follow from it."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{what}, got {type(error).__name__}: {' '.join(str(error).split())}") from error


def _task(model: Any, kind: str) -> Task:
    """Return the task of a model, or refuse what is none."""
    if not isinstance(model.task, Task):
        raise InputError(f"task of {kind} must be a nets.Task, got {type(model.task).__name__}")
    return model.task


def _require_inputs(model: Any, kind: str) -> None:
    """Refuse examples that the kernels cannot read: they take tokens as indices without a check."""
    inputs = model.task.inputs
    if model.architecture.combine == "data":
        if inputs.dtype.kind != "f":
            raise InputError(
                f"inputs of the task of {kind} must be data in floating point, got {inputs.dtype}"
            )
    elif inputs.dtype.kind != "i" or inputs.shape[1:] != (2,):
        raise InputError(
            f"inputs of the task of {kind} must be two tokens for each example, got {inputs.dtype} of the "
            f"shape {inputs.shape}"
        )
    elif inputs.size and not 0 <= inputs.min() <= inputs.max() < model.tokens:
        raise InputError(
            f"inputs of the task of {kind} must be tokens from 0 to {model.tokens - 1}, got {inputs.min()} "
            f"to {inputs.max()}"
        )


def _require_outputs(model: Model, kind: str, drawn: Mapping[str, NDArray[np.float64]]) -> None:
    """Refuse a model whose targets, outputs or points are unfit for two different members on three examples.

    The examples include the smallest and the largest token. There are not two, so that an array of one number
    for each member does not pass for one of each example.
    """
    import torch

    task, width = model.task, model.task.classes
    if model.loss == "mean_squared_error":
        with _in_a_sentence(f"targets of {kind} must have the shape ({width}, outputs)"):
            targets = finite_array(f"targets of {kind}", model.targets(np.random.default_rng(0)))
        if targets.ndim != 2 or len(targets) != width:
            raise InputError(f"targets of {kind} must have the shape ({width}, outputs), got {targets.shape}")
        width = targets.shape[1]
    generator = np.random.default_rng(1)
    # Noise tells members apart whose initial values do not depend on the generators, such as biases of 0.
    with _in_a_sentence(f"initial of {kind} must return arrays of the same names and shapes for each member"):
        second = model.initial(generator, generator)
        pairs = {name: np.stack([value, second[name]]).astype(float) for name, value in drawn.items()}
    for pair in pairs.values():
        pair[1] += 0.01 * generator.standard_normal(pair[1].shape)
    parameters = {name: torch.as_tensor(pair).requires_grad_() for name, pair in pairs.items()}
    numbers = task.inputs.reshape(len(task.inputs), -1)
    rows = np.array([0, numbers.min(axis=1).argmin(), numbers.max(axis=1).argmax()])
    inputs, labels = torch.as_tensor(task.inputs[rows]), torch.as_tensor(task.labels[rows])
    inputs = torch.stack([inputs if task.inputs.dtype.kind == "i" else inputs.double()] * 2)
    rates: list[float] = []

    def drop(states: torch.Tensor, rate: float) -> torch.Tensor:
        rates.append(rate)
        return states

    def computed(name: str, shape: tuple[int, ...], *members: int, train: bool = False) -> torch.Tensor:
        what, some = f"{name} of {kind} must compute two members on three examples", list(members)
        with _in_a_sentence(what), torch.set_grad_enabled(train):
            chosen = {key: value[some] for key, value in parameters.items()}
            found: Any = (  # a user's may be anything
                model.outputs(chosen, inputs[some], drop if train else None)
                if name == "outputs"
                else model.point_sets(chosen, (inputs[some], labels.expand(len(some), 3)))
            )
        wanted = (len(members), *shape)
        if not isinstance(found, torch.Tensor) or found.shape != wanted:
            got = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise InputError(f"{name} of {kind} must return a tensor of shape {wanted} here, got {got}")
        return found

    trained = computed("outputs", (3, width), 0, 1, train=True)
    if not trained.requires_grad:
        raise InputError(
            f"outputs of {kind} must have gradients with respect to its parameters, got {trained.dtype} "
            "without any"
        )
    gradients = torch.autograd.grad(trained.sum(), list(parameters.values()), allow_unused=True)
    unused = [name for name, one in zip(parameters, gradients, strict=True) if one is None]
    if unused:
        raise InputError(
            f"outputs of {kind} must use each of its parameters, got outputs without {', '.join(unused)}"
        )
    if any(rates) != bool(model.dropout):
        allowed, what = ("greater than 0", "states") if any(rates) else ("0", "nothing")
        raise InputError(
            f"dropout of {kind} must be {allowed} for a model whose outputs drop {what}, got "
            f"{model.dropout:g}"
        )
    for name, shape in (("point_sets", (model.tokens, model.dim)), ("outputs", (3, width))):
        found = computed(name, shape, 0, 1)
        alone = torch.cat([computed(name, shape, 0), computed(name, shape, 1)])
        rounding = 1e-5 * float(alone.nan_to_num().abs().max())
        if not torch.allclose(found, alone, rtol=0, atol=rounding, equal_nan=True):
            raise InputError(
                f"{name} of {kind} must be for each member what they are for it alone, got others for two "
                "members at once"
            )
    if model.architecture is None:
        return
    with torch.no_grad():
        stated = model.architecture.outputs(parameters, inputs)
    same = torch.allclose(found.double(), stated, rtol=1e-6, atol=1e-9)
    if not same or model.architecture.embedding_penalty != model.embedding_penalty:
        what = "embedding_penalty" if same else "outputs"
        raise InputError(f"{what} of {kind} must agree with its architecture, which both engines compute")
