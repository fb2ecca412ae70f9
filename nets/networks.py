"""Trained networks that are restored from a trajectory, and their outputs, also with another embedding."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.engines.ensemble import Ensemble, Optimizer, part_of
from nets.models import Model
from nets.provenance import ensemble_of
from physics.blas import one_blas_thread
from physics.checks import finite_array, misfit, regular_array, whole_number
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory
from physics.values import Shown, brief

LAYERS = "layers."
"""Prefix of the names of the observables that hold the parameters other than the embedding."""


@dataclasses.dataclass(frozen=True, eq=False)
class Networks(Shown):
    """Trained networks of an ensemble at one recorded step, as the function `networks` returns them.

    Attributes
    ----------
    ensemble : nets.engines.ensemble.Ensemble
        Model, parameters, training and validation sets, and targets of the members.
    dtype : str
        Number type in which the networks were trained, and in which outputs are computed.

    Examples
    --------
    >>> import nets
    >>> found = nets.networks(nets.train(nets.ConstantAttention(7), steps=50, observables=("layers",)))
    >>> found.outputs([[0, 1], [2, 6]]).shape, found.accuracy("train").shape
    ((1, 2, 7), (1,))
    >>> found.classify([[0.5, 1.0]]).shape, found.neuron_weights()["W_in"].shape
    ((1, 1), (1, 7, 32))
    >>> E = nets.keep_frequencies(found.parameters["embedding"], [1, 3], mean=True)
    >>> found.with_embedding(E).loss("train").shape, found.member(0).runs
    ((1,), 1)
    """

    ensemble: Ensemble
    dtype: str

    @property
    def model(self) -> Model:
        """Model of all members."""
        return self.ensemble.model

    def _shown(self) -> dict[str, str]:
        shapes = {name: f"{value.shape}" for name, value in self.parameters.items()}
        return {"model": brief(self.model), "runs": f"{self.runs}", "dtype": self.dtype, **shapes}

    @property
    def runs(self) -> int:
        """Number of members of the ensemble."""
        return self.ensemble.runs

    @property
    def parameters(self) -> Mapping[str, NDArray[Any]]:
        """Parameters of all members by name, (runs, ...) each, in the type `dtype`: embedding and layers."""
        return self.ensemble.parameters

    def examples(self, part: str) -> NDArray[np.int64]:
        """Return the indices of the examples that each member was trained on, or is validated on.

        Parameters
        ----------
        part : {"train", "validation"}
            Set of examples, the training set or the validation set.

        Returns
        -------
        ndarray of int64, shape (runs, examples)
            Indices into ``model.task.inputs`` and ``model.task.labels``, in increasing order.

        Raises
        ------
        InputError
            If `part` is neither "train" nor "validation".
        """
        return self.ensemble.train if part_of(part) == "train" else self.ensemble.validation

    def outputs(self, inputs: Any = None) -> NDArray[Any]:
        """Compute the outputs of every member, without dropout.

        Parameters
        ----------
        inputs : array_like, shape (examples, 2) or (runs, examples, 2), optional
            Pairs of tokens, or (..., features) if the model reads data. They may be the same for all members,
            or different for each. By default they are all examples of the task.

        Returns
        -------
        ndarray of `dtype`, shape (runs, examples, outputs)
            Logits, or the values that are compared with the targets.

        Raises
        ------
        InputError
            If `inputs` have another shape, or tokens are not whole numbers from 0 to ``model.tokens - 1``.
        """
        return self._each("inputs", self._inputs(inputs), self.model.outputs)

    def loss(self, part: str) -> NDArray[np.float64]:
        """Return the mean loss on a set, as `train` records it.

        Parameters
        ----------
        part : {"train", "validation"}
            Set of examples, the training set or the validation set.

        Returns
        -------
        ndarray of float64, shape (runs,)
            Cross-entropy in nats, or mean squared error; NaN if the set is empty.

        Raises
        ------
        InputError
            If `part` is neither "train" nor "validation".
        """
        return self._engine().losses(part_of(part))[0]

    def accuracy(self, part: str) -> NDArray[np.float64]:
        """Return the fraction of correct answers on a set, as `train` records it.

        Parameters
        ----------
        part : {"train", "validation"}
            Set of examples, the training set or the validation set.

        Returns
        -------
        ndarray of float64, shape (runs,)
            From 0 to 1; NaN where the loss is not finite.

        Raises
        ------
        InputError
            If `part` is neither "train" nor "validation".
        """
        loss, accuracy = self._engine().losses(part_of(part))
        return np.where(np.isfinite(loss), accuracy, np.nan)

    def with_embedding(self, E: Any) -> "Networks":
        """Return the same layers with another embedding, for interventions on trained networks.

        Parameters
        ----------
        E : array_like, shape (tokens, dim) or (runs, tokens, dim)
            New embedding of all members, or of each. It is rounded to the type `dtype`.

        Returns
        -------
        Networks
            New networks; the original ones keep their embedding.

        Raises
        ------
        InputError
            If `E` is not finite or has another shape, or the model has no embedding.
        """
        if EMBEDDING not in self.parameters:
            raise InputError(f"with_embedding needs a model with an embedding; {_name(self.model)} has none")
        array, shape = finite_array("E", E), self.parameters[EMBEDDING].shape
        if array.shape not in (shape, shape[1:]):
            raise InputError(f"E must have the shape {shape[1:]}, or {shape} for all runs, got {array.shape}")
        changed = {**self.parameters, EMBEDDING: np.broadcast_to(array, shape).astype(self.dtype)}
        return dataclasses.replace(self, ensemble=dataclasses.replace(self.ensemble, parameters=changed))

    def classify(self, points: Any) -> NDArray[np.int64]:
        """Return the class that each member assigns to points of its embedding space.

        The points stand for sums of two embeddings, so a grid of points shows the regions of the classes.

        Parameters
        ----------
        points : array_like, shape (points, dim) or (runs, points, dim)
            Points, the same for all members or different for each.

        Returns
        -------
        ndarray of int64, shape (runs, points)
            Class with the largest logit, or, under a squared error, with the nearest target; -1 for a network
            that has diverged, whose outputs are not finite.

        Raises
        ------
        InputError
            If the model does not add embeddings, or `points` are not finite or have another shape.

        References
        ----------
        Musat 2024, Figures 3 and 4.
        """
        layers = self.model.architecture
        if layers is None or layers.combine != "sum":
            raise InputError(f"classify needs a model that adds two embeddings; {_name(self.model)} does not")
        array = finite_array("points", points)
        if array.ndim not in (2, 3) or array.shape[-1] != self.model.dim:
            dim = self.model.dim
            raise misfit("points", array, f"have the shape (points, {dim}) or (runs, points, {dim})")
        outputs = self._each("points", array.astype(self.dtype), layers.decoded)
        targets = self.ensemble.targets
        if targets is not None:
            outputs = outputs @ targets.transpose(0, 2, 1) - (targets**2).sum(-1)[:, None] / 2
        return np.where(np.isfinite(outputs).all(-1), outputs.argmax(-1), -1)

    def member(self, run: int) -> "Networks":
        """Return one network as an ensemble of one.

        Parameters
        ----------
        run : int
            Index of the member, from 0 to runs - 1.

        Returns
        -------
        Networks
            Ensemble with this member only.

        Raises
        ------
        InputError
            If there is no such member.
        """
        of, run = self.ensemble, whole_number("run", run, 0, self.runs - 1)
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

    @one_blas_thread
    def neuron_weights(self) -> dict[str, NDArray[Any]]:
        """Return the effective weights of the first hidden layer, as arguments of `analysis.neuron_spectrum`.

        Returns
        -------
        dict of ndarray
            "W_in" (runs, tokens, hidden), the embedding times the first layer, without biases. There is also
            "second", of the same shape, if the second token has separate weights, and "W_out" (runs, hidden,
            tokens), if there is only one hidden layer.

        Raises
        ------
        InputError
            If the model does not learn addition modulo its tokens, or has no neurons that read both tokens.
        """
        layers = self.model.architecture
        if layers is None or not has_neurons(self.model):
            need = "learn addition modulo its tokens from the sum of two embeddings, or from both"
            raise InputError(f"model must {need}, to have neurons that read them, got {_name(self.model)}")
        dim, E = self.model.dim, self.parameters[EMBEDDING]
        names, weights = list(layers.layers), {"W_in": E}
        if layers.combine != "neurons":
            first = self.parameters[f"{names.pop(0)}.weight"]
            weights = {"W_in": np.matmul(E, first[:, :dim])}
            if layers.combine == "concatenate":
                weights["second"] = np.matmul(E, first[:, dim:])
        return weights if len(names) > 1 else {**weights, "W_out": self.parameters[f"{names[0]}.weight"]}

    def logits(self) -> NDArray[Any]:
        """Return the logits of all ordered pairs of tokens, for `analysis.logit_spectrum`.

        Returns
        -------
        ndarray of `dtype`, shape (runs, tokens, tokens, tokens)
            The axes are the run, the first token, the second token, and the class.

        Raises
        ------
        InputError
            If the model does not learn addition modulo the number of its tokens by cross-entropy.
        """
        if not adds(self.model):
            need = "learn addition modulo its tokens by cross-entropy"
            raise InputError(f"model must {need}, got {_name(self.model)}")
        p = self.model.tokens
        return self.outputs(np.indices((p, p)).reshape(2, -1).T).reshape(self.runs, p, p, p)

    def activations(self, inputs: Any = None) -> NDArray[Any]:
        """Return the activations of the last hidden layer.

        Parameters
        ----------
        inputs : array_like, shape (examples, 2) or (runs, examples, 2), optional
            Pairs of tokens, or (..., features) if the model reads data; by default, all examples of the task.

        Returns
        -------
        ndarray of `dtype`, shape (runs, examples, width)
            Activations of the last hidden layer, which has `width` neurons.

        Raises
        ------
        InputError
            If `inputs` are not as in `outputs`, or the model has no architecture of dense layers.
        """
        layers = self.model.architecture
        if layers is None:
            raise InputError(f"activations needs a model of dense layers, got {_name(self.model)}")
        return self._each("inputs", self._inputs(inputs), layers.hidden)

    def _inputs(self, inputs: Any) -> NDArray[Any]:
        """Return the checked inputs of `outputs`."""
        task = self.model.task
        given = task.inputs if inputs is None else regular_array("inputs", inputs)
        wanted, whole = task.inputs.shape[1:], task.inputs.dtype.kind == "i"
        if given.ndim not in (2, 3) or given.shape[-1:] != wanted or (whole and given.dtype.kind not in "iu"):
            shapes = f"(examples, {wanted[0]}) or (runs, examples, {wanted[0]})"
            raise misfit("inputs", given, f"be {'whole ' * whole}numbers of shape {shapes}")
        if whole and given.size and not 0 <= given.min() <= given.max() < self.model.tokens:
            got = f"{given.min()} to {given.max()}"
            raise InputError(f"inputs must be tokens from 0 to {self.model.tokens - 1}, got {got}")
        return given.astype(np.int64 if whole else self.dtype)

    def _each(self, name: str, values: NDArray[Any], compute: Any) -> NDArray[Any]:
        """Apply a function to the parameters and the row of `values` of each member; stack the results."""
        import torch

        if values.ndim == 3 and len(values) != self.runs:
            raise misfit(name, values, f"be given once, or for each of {self.runs} runs")
        rows = torch.tensor(np.broadcast_to(values, (self.runs, *values.shape[-2:]))).split(1)
        tensors = {name: torch.tensor(value).split(1) for name, value in self.parameters.items()}
        members = [{name: parts[run] for name, parts in tensors.items()} for run in range(self.runs)]
        with torch.no_grad():
            return torch.cat([compute(*member) for member in zip(members, rows, strict=True)]).numpy()

    def _engine(self) -> Any:
        """Return an engine that evaluates these networks as in training; its optimizer never takes a step."""
        from torch import device

        from nets.engines.torch import BatchedEngine

        optimizer = Optimizer(np.zeros((self.runs, 4)), (0.9, 0.999), 1e-8)
        return BatchedEngine(self.ensemble, optimizer, self.dtype, device("cpu"), None)


def networks(trajectory: Trajectory, frame: int = -1) -> Networks:
    """Restore the networks of a recorded training, to study what they compute.

    Parameters
    ----------
    trajectory : Trajectory
        Result of `train` with ``observables=(..., "layers")``, in memory or from a file. Its positions are
        the embeddings of models that have one. Training sets and targets are read from it, or drawn again
        from the seed if it does not hold them.
    frame : int, default -1
        Index of the recorded frame; negative indices count from the end.

    Returns
    -------
    Networks
        All members with their parameters at that frame.

    Raises
    ------
    InputError
        If the trajectory was not made by `train`, lacks the layers, or has no such frame.
    FileFormatError
        If the model learned images from files that cannot be read or have changed.

    Examples
    --------
    >>> import nets
    >>> trained = nets.train(nets.ConstantAttention(7), runs=2, steps=50, observables=("layers",))
    >>> nets.networks(trained).logits().shape
    (2, 7, 7, 7)
    """
    ensemble = ensemble_of(trajectory)
    names = [name for name in trajectory.observables if name.startswith(LAYERS)]
    if not names:
        advice = "train them with observables=('layers',)"
        raise InputError(f"trajectory must hold the layers of its networks, got none; {advice}")
    model, positions = ensemble.model, trajectory.frame(frame)
    for part in (ensemble.train, ensemble.validation):
        if part.size and not 0 <= part.min() <= part.max() < len(model.task):
            raise FileFormatError(f"trajectory must be trained on examples of {_name(model)}, got others")
    parameters = {name.removeprefix(LAYERS): trajectory.observables[name][:, frame] for name in names}
    parameters.setdefault(EMBEDDING, positions)
    restored, dtype = {}, str(positions.dtype)
    for name, value in model.initial(np.random.default_rng(0), np.random.default_rng(0)).items():
        shape = (trajectory.runs, *value.shape)
        if name not in parameters or parameters[name].shape != shape:
            got = f"the shape {parameters[name].shape}" if name in parameters else "none"
            raise InputError(f"trajectory must hold {name!r} of shape {shape}, got {got}")
        restored[name] = np.array(parameters[name], dtype)
    return Networks(dataclasses.replace(ensemble, parameters=restored), dtype)


def _name(model: Model) -> str:
    return type(model).__name__


def has_neurons(model: Model) -> bool:
    """Return whether the model learns modular addition and its first neurons read two embeddings.

    They may read the sum or the concatenation of these. `Networks.neuron_weights` needs such a model, which a
    transformer is not.
    """
    layers = model.architecture
    return adds(model) and layers is not None and layers.combine in ("sum", "concatenate", "neurons")


def adds(model: Model) -> bool:
    """Return whether the model learns addition modulo its number of tokens by cross-entropy.

    Such a model has one logit for each result, which `Networks.logits` needs.
    """
    theory = model.theory
    modular = theory is not None and theory.modulus == model.tokens == model.task.classes
    return modular and model.loss == "cross_entropy"
