"""An ensemble before it trains: the initial parameters, the examples and the optimizer of its members."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.models import Model
from nets.models.model import require_sound
from nets.settings import TrainingSettings
from physics.checks import (
    choice,
    finite_array,
    mapping,
    names_in,
    number,
    regular_array,
    short_text,
    whole_number,
)
from physics.errors import InputError
from physics.seeds import children, numbers_of_runs

PARAMETER = "parameter."
"""Prefix of the names under which a trajectory stores the initial parameters of its members."""
STREAMS = ("embedding", "layers", "split", "targets", "noise")
"""Random streams of a member, in the order in which they are spawned from its child of the seed."""


@dataclass(frozen=True, eq=False)
class Optimizer:
    """Settings of PyTorch's AdamW or SGD, with values of each rate for each member.

    Attributes
    ----------
    rates : ndarray of float64, shape (runs, 4)
        Learning rate and weight decay of the encoder (the embedding), and then of the decoder.
    betas : tuple of float
        Decay rates of both moments of AdamW.
    epsilon : float
        Constant ε of AdamW.
    kind : {"adamw", "sgd"}
        Name of the optimizer.
    """

    rates: NDArray[np.float64]
    betas: tuple[float, float]
    epsilon: float
    kind: str = "adamw"


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The members of an ensemble before training, stacked along the first axis.

    Attributes
    ----------
    model : Model
        Model of all members.
    parameters : dict of ndarray of float64, shape (runs, ...)
        Initial parameters by name.
    train, validation : ndarray of int64, shape (runs, examples)
        Indices of each member's examples, into the examples of the task.
    targets : ndarray of float64, shape (runs, classes, outputs), or None
        Targets of the squared error; None under cross-entropy.
    noise : list of SeedSequence
        Seeds from which the batches and the dropout of each member are drawn.
    """

    model: Model
    parameters: dict[str, NDArray[np.float64]]
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    targets: NDArray[np.float64] | None
    noise: list[np.random.SeedSequence]

    @property
    def runs(self) -> int:
        """Number of members of the ensemble."""
        return len(self.train)

    @property
    def unseen_classes(self) -> list[int]:
        """For each member, the number of classes of the task that have no training example."""
        task = self.model.task
        present = np.unique(task.labels)
        return [len(np.setdiff1d(present, task.labels[train])) for train in self.train]

    def start(self, dtype: str) -> dict[str, NDArray[Any]]:
        """Return the initial arrays of the members, (runs, ...) each, by name.

        Parameters, in the number type `dtype`, are called "parameter.NAME". There are also "train_examples"
        and, unless they are empty or missing, "validation_examples" and "targets". They are stored because
        other versions of NumPy may draw other numbers from the same seed.
        """
        start: dict[str, NDArray[Any]] = {
            f"{PARAMETER}{name}": value.astype(dtype) for name, value in self.parameters.items()
        }
        start["train_examples"] = self.train
        if self.validation.size:  # a file cannot hold an empty array
            start["validation_examples"] = self.validation
        return start if self.targets is None else start | {"targets": self.targets}


def draw(model: Model, **settings: Any) -> Ensemble:
    """Draw the members of an ensemble from separate random streams, by the settings of `nets.Training`.

    Raises
    ------
    InputError
        If an argument is invalid, or the ensemble does not fit into memory.
    """
    chosen = TrainingSettings(**settings).of(model)
    runs = whole_number("runs", chosen.runs, 1)
    shared = [choice("shared", name, STREAMS) for name in names_in("shared", chosen.shared)]
    require_sound(model, runs)
    numbers = numbers_of_runs(runs, chosen.first_run, chosen.run_numbers)
    common, *members = (child.spawn(len(STREAMS)) for child in children(chosen.seed, [0, *numbers]))
    streams = [
        {name: common[i] if name in shared else member[i] for i, name in enumerate(STREAMS)}
        for member in members
    ]
    generators = [{name: np.random.default_rng(stream[name]) for name in STREAMS} for stream in streams]
    drawn = [model.initial(member["embedding"], member["layers"]) for member in generators]
    parameters = {name: np.stack([np.array(member[name], float) for member in drawn]) for name in drawn[0]}
    scales = {
        of_embedding: per_member(name, getattr(chosen, name), runs, above=0.0)
        for of_embedding, name in ((True, "embedding_scale"), (False, "layer_scale"))
    }
    if EMBEDDING not in parameters and (scales[True] != 1).any():
        raise InputError(
            f"embedding_scale must be 1 for {type(model).__name__}, which has no embedding, got "
            f"{short_text(chosen.embedding_scale)}; layer_scale scales its layers"
        )
    for name, values in parameters.items():
        values *= scales[name == EMBEDDING].reshape(-1, *[1] * (values.ndim - 1))
    for name, value in mapping("initial", chosen.initial).items():
        shape = parameters[choice("names of initial", name, tuple(parameters))].shape
        array = finite_array(f"initial[{name!r}]", value)
        if array.shape not in (shape, shape[1:]):
            raise InputError(
                f"initial[{name!r}] must have the shape {shape[1:]}, or {shape} for all runs, got "
                f"{array.shape}"
            )
        parameters[name] = np.array(np.broadcast_to(array, shape))
    if chosen.train_examples is not None:
        splits = [model.task.given_split(chosen.train_examples, chosen.validation_examples)] * runs
    elif chosen.validation_examples is not None:
        raise InputError("train_examples must be given if validation_examples are, got none")
    else:
        splits = [model.task.split(chosen.train_fraction, member["split"]) for member in generators]
    train, validation = (np.stack(part) for part in zip(*splits, strict=True))
    targets = None
    if model.loss == "mean_squared_error":
        targets = np.stack([model.targets(member["targets"]) for member in generators])
    return Ensemble(model, parameters, train, validation, targets, [stream["noise"] for stream in streams])


def per_member(
    name: str, value: Any, runs: int, minimum: float = -np.inf, *, above: float = -np.inf
) -> NDArray[np.float64]:
    """Return one number for each member, given as `value` (runs,) or as a single number.

    The result has the type float64 and the shape (runs,). `name` is that of the argument, for the message.
    Each number must be at least `minimum` and greater than `above`.

    Raises
    ------
    InputError
        If the count of numbers is not `runs`, or a number is not finite or out of its range.
    """
    values = regular_array(name, value)
    if values.ndim == 0:
        return np.full(runs, number(name, value, minimum, above=above))
    if values.shape != (runs,):
        raise InputError(
            f"{name} must be a number, or one for each of {runs} runs, got the shape {values.shape}"
        )
    return np.array([number(name, item, minimum, above=above) for item in values.tolist()])


def batches(ensemble: Ensemble, batch_size: int | None, step: int, count: int) -> NDArray[np.int32] | None:
    """Draw the batches of some optimizer steps.

    An epoch is a permutation of the training set, cut into whole batches; the remaining examples are not used
    in that epoch, as with PyTorch's ``drop_last``. The permutation depends only on the noise of the member
    and the number of the epoch, so that a resumed run needs no state.

    Parameters
    ----------
    ensemble : Ensemble
        The members, whose training sets and seeds are used.
    batch_size : int or None
        Number of examples in a batch; None for all.
    step : int
        Number of steps that were taken before.
    count : int
        Number of steps to draw batches for.

    Returns
    -------
    ndarray of int32, shape (runs, count, batch_size), or None
        Places of the examples in the training set of each member; None if the batch is the full set.
    """
    size = ensemble.train.shape[1]
    if batch_size is None or batch_size == size:
        return None
    in_epoch = size // batch_size
    epochs = range(step // in_epoch, (step + count - 1) // in_epoch + 1)
    chosen = np.empty((ensemble.runs, len(epochs) * in_epoch, batch_size), np.int32)
    for run, noise in enumerate(ensemble.noise):
        for begin, epoch in enumerate(epochs):
            generator = np.random.default_rng(_numbered(noise, 0, epoch))
            order = generator.permutation(size)[: in_epoch * batch_size]
            chosen[run, begin * in_epoch : (begin + 1) * in_epoch] = order.reshape(in_epoch, batch_size)
    first = step - epochs[0] * in_epoch
    return np.ascontiguousarray(chosen[:, first : first + count])


def dropout_seed(noise: np.random.SeedSequence, step: int) -> int:
    """Return the seed, an int of 64 bits, of the dropout of one member at the optimizer step `step`.

    `noise` is the random stream of the member, which does not change.
    """
    return int(_numbered(noise, 1, step).generate_state(1, np.uint64)[0])


def _numbered(seed: np.random.SeedSequence, *numbers: int) -> np.random.SeedSequence:
    """Return the seed that the given numbers lead to from a seed, without changing that seed."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *numbers))


def part_of(part: str) -> str:
    """Return `part` itself if it is "train" or "validation"; an `InputError` refuses any other name."""
    return choice("part", part, ("train", "validation"))
