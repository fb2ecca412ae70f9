"""Trained networks that are restored from a trajectory: their outputs, also with another embedding."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.engines.ensemble import PARAMETER, Ensemble, Optimizer, draw
from nets.models import Model
from nets.provenance import model_of, seed_of
from physics.blas import one_blas_thread
from physics.checks import choice, finite_array
from physics.errors import InputError
from physics.trajectory import Trajectory

LAYERS = "layers."
"""Prefix of the names of the observables that hold all parameters except the embedding."""


@dataclasses.dataclass(frozen=True)
class Networks:
    """Ensemble of trained networks at one frame of their training.

    Attributes
    ----------
    ensemble : Ensemble
        Model, parameters, training and validation sets, and targets of the members.
    dtype : str
        Number type in which they were trained, and in which outputs are computed.
    """

    ensemble: Ensemble
    dtype: str

    @property
    def model(self) -> Model:
        """The architecture of all members."""
        return self.ensemble.model

    @property
    def runs(self) -> int:
        """Number of members."""
        return self.ensemble.runs

    @property
    def parameters(self) -> Mapping[str, NDArray[Any]]:
        """Embedding and layers by name, (runs, ...) each."""
        return self.ensemble.parameters

    def examples(self, part: str) -> NDArray[np.int64]:
        """Numbers (runs, examples) of the examples of the task in the set "train" or "validation"."""
        return self.ensemble.train if _part(part) == "train" else self.ensemble.validation

    def outputs(self, inputs: Any = None) -> NDArray[Any]:
        """Outputs of every member, without dropout.

        Parameters
        ----------
        inputs : array_like, shape (examples, 2) or (runs, examples, 2), optional
            Pairs of tokens, or features if the model reads data. They may be the same for all members, or
            different for each. By default they are all examples of the task.

        Returns
        -------
        ndarray, shape (runs, examples, outputs)
            Logits, or the values that are compared with the targets.

        Raises
        ------
        InputError
            If `inputs` have another shape, or name a token that does not exist.
        """
        return self._each("inputs", self._inputs(inputs), self.model.outputs)

    def loss(self, part: str) -> NDArray[np.float64]:
        """Mean loss (runs,) on the set "train" or "validation", as `train` records it."""
        return self._engine().losses(_part(part))[0]

    def accuracy(self, part: str) -> NDArray[np.float64]:
        """Fraction of right answers (runs,) on the set "train" or "validation", as `train` records it."""
        loss, accuracy = self._engine().losses(_part(part))
        return np.where(np.isfinite(loss), accuracy, np.nan)

    def with_embedding(self, E: Any) -> "Networks":
        """Return the same layers with another embedding, for interventions on trained networks.

        Parameters
        ----------
        E : array_like, shape (tokens, dim) or (runs, tokens, dim)
            For instance ``keep_frequencies(networks.parameters["embedding"], [3, 7], mean=True)``.

        Raises
        ------
        InputError
            If `E` is not finite or of another shape, or the model has no embedding.
        """
        if EMBEDDING not in self.parameters:
            raise InputError(f"with_embedding needs a model with an embedding; {_name(self.model)} has none")
        array, shape = finite_array("E", E), self.parameters[EMBEDDING].shape
        if array.shape not in (shape, shape[1:]):
            raise InputError(f"E must have the shape {shape[1:]}, or {shape} for all runs, got {array.shape}")
        changed = {**self.parameters, EMBEDDING: np.broadcast_to(array, shape).astype(self.dtype)}
        return dataclasses.replace(self, ensemble=dataclasses.replace(self.ensemble, parameters=changed))

    @one_blas_thread
    def classify(self, points: Any) -> NDArray[np.int64]:
        """Return the class that each member assigns to points of its embedding space.

        Parameters
        ----------
        points : array_like, shape (points, dim) or (runs, points, dim)

        Returns
        -------
        ndarray of int64, shape (runs, points)
            Class with the largest logit, or with the nearest target.

        Raises
        ------
        InputError
            If the model does not add embeddings, or `points` are not finite or of another shape.

        References
        ----------
        Musat, Figures 3 and 4.
        """
        layers = self.model.architecture
        if layers is None or layers.combine != "sum":
            raise InputError(f"classify needs a model that adds two embeddings; {_name(self.model)} does not")
        array = finite_array("points", points)
        if array.ndim not in (2, 3) or array.shape[-1] != self.model.dim:
            raise InputError(
                f"points must have the shape (points, {self.model.dim}), or (runs, points, "
                f"{self.model.dim}), got {array.shape}"
            )
        own = self._per_run("points", array.astype(self.dtype))
        members = ({name: value[run] for name, value in self.parameters.items()} for run in range(self.runs))
        outputs = np.stack([layers.decoded(member, own[run]) for run, member in enumerate(members)])
        targets = self.ensemble.targets
        if targets is not None:
            outputs = outputs @ targets.transpose(0, 2, 1) - (targets**2).sum(-1)[:, None] / 2
        return outputs.argmax(-1)

    def member(self, run: int) -> "Networks":
        """Return the network number `run` alone, as an ensemble of one."""
        of = self.ensemble
        own = slice(run, run + 1)
        alone = dataclasses.replace(
            of,
            parameters={name: value[own] for name, value in of.parameters.items()},
            train=of.train[own],
            validation=of.validation[own],
            targets=None if of.targets is None else of.targets[own],
            noise=of.noise[own],
        )
        return dataclasses.replace(self, ensemble=alone)

    def neuron_weights(self) -> dict[str, NDArray[Any]]:
        """Return the arguments of `analysis.neuron_spectrum` by name; see the function `neuron_weights`."""
        return neuron_weights(self.model, self.parameters)

    def logits(self) -> NDArray[Any]:
        """Logits (runs, tokens, tokens, tokens) of all ordered pairs, for `analysis.logit_spectrum`.

        Raises
        ------
        InputError
            If the model does not learn addition modulo the number of its tokens by cross-entropy.
        """
        return all_logits(self.model, self.parameters)

    def activations(self, inputs: Any = None) -> NDArray[Any]:
        """Activations of the last hidden layer, (runs, examples, width), for `inputs` as in `outputs`.

        Raises
        ------
        InputError
            If `inputs` are of another shape, or the model has no architecture of dense layers.
        """
        layers = self.model.architecture
        if layers is None:
            raise InputError(f"activations needs a model of dense layers, got {_name(self.model)}")
        return self._each("inputs", self._inputs(inputs), layers.hidden)

    def _inputs(self, inputs: Any) -> NDArray[Any]:
        """Return checked inputs of `outputs`."""
        task = self.model.task
        given = np.asarray(task.inputs if inputs is None else inputs)
        wanted, whole = task.inputs.shape[1:], task.inputs.dtype.kind == "i"
        if given.ndim not in (2, 3) or given.shape[-1:] != wanted or (whole and given.dtype.kind not in "iu"):
            raise InputError(
                f"inputs must be {'whole numbers' if whole else 'numbers'} of shape (examples, {wanted[0]}), "
                f"or (runs, examples, {wanted[0]}), got {given.dtype} of shape {given.shape}"
            )
        if whole and given.size and not 0 <= given.min() <= given.max() < self.model.tokens:
            raise InputError(
                f"inputs must be tokens from 0 to {self.model.tokens - 1}, got {given.min()} to {given.max()}"
            )
        return given.astype(np.int64 if whole else self.dtype)

    def _each(self, name: str, values: NDArray[Any], compute: Any) -> NDArray[Any]:
        """Apply a function to the parameters and the values of each member in turn, and stack the results."""
        import torch

        own = self._per_run(name, values)
        found = []
        with torch.no_grad():
            for run in range(self.runs):
                member = {name: torch.tensor(value[run : run + 1]) for name, value in self.parameters.items()}
                found.append(compute(member, torch.tensor(own[run : run + 1])))
        return torch.cat(found).numpy()

    def _per_run(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return values (runs, ...), which may have been given once for all runs."""
        if values.ndim == 3 and len(values) != self.runs:
            raise InputError(f"{name} must be the same for all runs, or {self.runs}, got {len(values)}")
        return np.broadcast_to(values, (self.runs, *values.shape[-2:]))

    def _engine(self) -> Any:
        """Engine with these networks that evaluates losses as in training; its optimizer takes no step."""
        from torch import device

        from nets.engines.torch import BatchedEngine

        still = np.zeros(self.runs)
        optimiser = Optimizer(still, still, still, still, (0.9, 0.999), 1e-8)
        return BatchedEngine(self.ensemble, optimiser, self.dtype, device("cpu"), None)


def has_neurons(model: Model) -> bool:
    """Return whether the model has hidden neurons that read two tokens and adds modulo their number."""
    layers = model.architecture
    return adds(model) and layers is not None and layers.combine in ("sum", "concatenate", "neurons")


def adds(model: Model) -> bool:
    """Return whether the model has a logit for each class of an addition modulo the number of its tokens."""
    theory = model.theory
    modular = theory is not None and theory.modulus == model.tokens == model.task.classes
    return modular and model.loss == "cross_entropy"


@one_blas_thread
def neuron_weights(model: Model, parameters: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the effective weights of the first hidden layer, as arguments of `analysis.neuron_spectrum`.

    Parameters
    ----------
    model : Model
    parameters : mapping of str to ndarray, shape (runs, ...) each

    Returns
    -------
    dict of ndarray
        "W_in" (runs, tokens, hidden), the embedding times the first layer; "second", of the same shape, if
        the second token has separate weights; "W_out" (runs, hidden, tokens), if there is only one hidden
        layer.

    Raises
    ------
    InputError
        If the model has no such neurons.
    """
    if not has_neurons(model):
        raise InputError(
            f"model must add two embeddings, or concatenate them, and learn addition modulo its tokens to "
            f"have neurons that read them, got {_name(model)}"
        )
    layers, E = model.architecture, parameters[EMBEDDING]
    assert layers is not None
    names = list(layers.layers)
    if layers.combine in ("sum", "concatenate"):
        first = parameters[f"{names.pop(0)}.weight"]
        found = {"W_in": np.matmul(E, first[:, : model.dim])}
        if layers.combine == "concatenate":
            found["second"] = np.matmul(E, first[:, model.dim :])
    else:
        found = {"W_in": E}
    return found if len(names) > 1 else {**found, "W_out": parameters[f"{names[0]}.weight"]}


def all_logits(model: Model, parameters: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the logits (runs, tokens, tokens, tokens) of all ordered pairs; see `Networks.logits`."""
    import torch

    if not adds(model):
        raise InputError(f"model must learn addition modulo its tokens by cross-entropy, got {_name(model)}")
    p = model.tokens
    pairs = torch.as_tensor(np.indices((p, p)).reshape(2, -1).T.copy())[None]
    tensors = {name: torch.as_tensor(value) for name, value in parameters.items()}
    runs = len(next(iter(parameters.values())))
    with torch.no_grad():
        members = ({name: value[run : run + 1] for name, value in tensors.items()} for run in range(runs))
        found = [model.outputs(member, pairs) for member in members]
    return torch.cat(found).reshape(runs, p, p, p).numpy()


def networks(trajectory: Trajectory, frame: int = -1) -> Networks:
    """Restore the networks of a recorded training.

    Parameters
    ----------
    trajectory : Trajectory
        Made by `train` with ``observables=(..., "layers")``, in memory or from a file. The positions are the
        embeddings. Training sets and targets are read from it, or drawn again from the same random streams.
    frame : int, default -1
        Index of the frame; negative indices count from the end.

    Returns
    -------
    Networks

    Raises
    ------
    InputError
        If the trajectory does not hold all that is needed, or has no such frame.
    FileFormatError
        If the model learned data from files that cannot be read or have changed.
    """
    ensemble = _drawn(trajectory)
    names = [name for name in trajectory.observables if name.startswith(LAYERS)]
    if not names:
        raise InputError(
            "trajectory must hold the layers to restore its networks; train with observables=(..., 'layers')"
        )
    positions = trajectory.frame(frame)
    parameters = {name.removeprefix(LAYERS): trajectory.observables[name][:, frame] for name in names}
    if EMBEDDING in ensemble.parameters:
        parameters[EMBEDDING] = positions
    for name, value in ensemble.parameters.items():
        if name not in parameters or parameters[name].shape != value.shape:
            got = f"the shape {parameters[name].shape}" if name in parameters else "none"
            raise InputError(f"trajectory must hold {name!r} of shape {value.shape}, got {got}")
    dtype = str(positions.dtype)
    restored = {name: np.array(parameters[name], dtype) for name in ensemble.parameters}
    return Networks(dataclasses.replace(ensemble, parameters=restored), dtype)


def training_sets(trajectory: Trajectory) -> tuple[Model, NDArray[np.int64]]:
    """Return the training sets of a recorded training, even if its layers were not recorded.

    Parameters
    ----------
    trajectory : Trajectory
        Made by `train`.

    Returns
    -------
    Model
        The architecture, with the task.
    ndarray of int64, shape (runs, examples)
        Numbers of the training examples of each member.

    Raises
    ------
    InputError, FileFormatError
        As in `networks`.
    """
    ensemble = _drawn(trajectory)
    return ensemble.model, ensemble.train


def _drawn(trajectory: Trajectory) -> Ensemble:
    """Return an ensemble as it was before training, as stored or drawn again from the same streams."""
    made = trajectory.parameters
    if made.get("program") != "nets.train":
        raise InputError(
            f"trajectory must be made by nets.train to restore its networks, got "
            f"{made.get('program', 'no')!r}"
        )
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


def _part(part: str) -> str:
    return choice("part", part, ("train", "validation"))


def _name(model: Model) -> str:
    return type(model).__name__
