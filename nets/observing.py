"""The observables of a training, which are measured in addition to the embeddings, and the ended members."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.engines.choice import Engine
from nets.engines.ensemble import Ensemble
from nets.networks import LAYERS, Networks, adds, has_neurons
from nets.settings import LOSSES
from physics.checks import InputError, choice, mapping, misfit, names_in, number, regular_array
from physics.neurons.logits import excluded_loss, logit_spectrum, restricted_loss
from physics.neurons.spectrum import neuron_spectrum
from physics.theory.system import representation_quality

Numbers = NDArray[np.float64]

NEURONS = ("neuron_frequency", "neuron_purity")
PROGRESS = ("restricted_loss", "excluded_loss")
OBSERVABLES = (*LOSSES, "weight_norm", "bias_norm", "quality", "gradient", "layers", *NEURONS, *PROGRESS)
TRAINING, DECIDED, DIVERGED = 0, 1, 2


class Observer:
    """Measures an ensemble during training, notes when thresholds are reached, and marks members as ended.

    Parameters
    ----------
    ensemble : Ensemble
        The members before training.
    observables : sequence of str
        Names among `OBSERVABLES`.
    thresholds : mapping of str to float, optional
        Observables whose first measured step at or above a value is kept, as ``steps_to_<name>``.
    delta : float
        Tolerance of the representation quality.

    Attributes
    ----------
    names : tuple of str
        The observables.
    shapes : dict of str to tuple of int
        Shape of each recorded observable for one frame of one run, by name.
    status : ndarray of int64, shape (runs,)
        `TRAINING`, `DECIDED` (ended by a rule) or `DIVERGED` for each member.
    reached : dict of str to ndarray of float64, shape (runs,)
        First measured step at which each member has reached each threshold; NaN before.

    Raises
    ------
    InputError
        If a name is unknown, the model has no such quantity, or a threshold or `delta` is out of its range.
    """

    def __init__(self, ensemble: Ensemble, observables: Any, thresholds: Any, delta: Any) -> None:
        self._ensemble, self._delta = ensemble, number("delta", delta, above=0.0)
        self.names = self._known("observables", names_in("observables", observables), OBSERVABLES)
        levels = mapping("thresholds", thresholds)
        self._known("thresholds", tuple(levels), ("train_accuracy", "validation_accuracy", "quality"))
        self._thresholds = {
            name: number(f"thresholds of {name}", level, 0.0, 1.0) for name, level in levels.items()
        }
        self.status = np.full(ensemble.runs, TRAINING)
        self.reached = {name: np.full(ensemble.runs, np.nan) for name in levels}
        shapes: dict[str, tuple[int, ...]] = {}
        for name in self.names:
            if name == "gradient":
                shapes[name] = ensemble.parameters[EMBEDDING].shape[1:]
            elif name == "layers":
                shapes |= {key: value.shape[1:] for key, value in _layers(ensemble.parameters).items()}
            elif name in NEURONS:
                layers = ensemble.model.architecture
                assert layers is not None
                shapes[name] = (layers.sizes[0 if layers.combine == "neurons" else 1],)
            else:
                shapes[name] = ()
        self.shapes = shapes | {f"steps_to_{name}": () for name in levels} | {"status": ()}

    def _known(self, argument: str, names: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of observables; refuse those that are not allowed or that the model lacks."""
        model, parameters = self._ensemble.model, self._ensemble.parameters
        has = {
            "quality": model.theory is not None,
            "gradient": EMBEDDING in parameters,
            "weight_norm": "hidden1.weight" in parameters,
            "bias_norm": "hidden1.bias" in parameters,
            **dict.fromkeys(NEURONS, has_neurons(model)),
            **dict.fromkeys(PROGRESS, adds(model)),
        }
        for name in names:
            if not has.get(choice(argument, name, allowed), True):
                kind = type(model).__name__
                raise InputError(f"{argument} must not name {name!r}, which {kind} does not have")
        return names

    def frame(self, engine: Engine, step: int) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
        """Measure a step that is recorded, note thresholds that are reached, and mark members that diverge.

        Parameters
        ----------
        engine : Engine
            Engine that trains the ensemble.
        step : int
            Number of the step.

        Returns
        -------
        positions : ndarray, shape (runs, tokens, dim)
            Point sets; NaN for diverged members.
        observables : dict of str to ndarray, shape (runs, ...)
            Values by name. Those of diverged members are NaN, except for "status" and the steps at which
            thresholds were reached.
        """
        positions = engine.point_sets()
        self.status[~np.isfinite(positions).all((1, 2))] = DIVERGED
        values = self._measured(engine, step, {*self.names, *self._thresholds})
        for value in (positions, *values.values()):
            value[self.status == DIVERGED] = np.nan
        values |= {f"steps_to_{name}": reached.copy() for name, reached in self.reached.items()}
        values["status"] = self.status.copy()
        return positions, {name: values[name] for name in self.shapes}

    def check(self, engine: Engine, step: int) -> None:
        """Note the thresholds that are reached at a step that is not recorded, and members that diverge."""
        self._measured(engine, step, set(self._thresholds))

    def _measured(self, engine: Engine, step: int, wanted: set[str]) -> dict[str, NDArray[Any]]:
        """Measure some observables; a member with parameters or a training loss not finite has diverged."""
        self.status[~engine.is_finite()] = DIVERGED
        values: dict[str, NDArray[Any]] = {}
        for part in ("train", "validation"):
            if {f"{part}_loss", f"{part}_accuracy"} & wanted:
                values[f"{part}_loss"], values[f"{part}_accuracy"] = engine.losses(part)
        if "train_loss" in values:
            self.status[~np.isfinite(values["train_loss"])] = DIVERGED
        if "quality" in wanted:
            values["quality"] = self._quality(engine.point_sets())
        if wanted & {"weight_norm", "bias_norm", "layers", *NEURONS, *PROGRESS}:
            parameters = engine.parameters()
            for kind in ("weight", "bias"):
                if f"{kind}_norm" in wanted:
                    values[f"{kind}_norm"] = np.abs(parameters[f"hidden1.{kind}"]).mean(axis=(1, 2))
            values |= _layers(parameters)
            if wanted & {*NEURONS, *PROGRESS}:
                values |= self._inside(parameters, wanted)
        if "gradient" in wanted:
            values["gradient"] = engine.gradient(EMBEDDING)
        for name, threshold in self._thresholds.items():
            first = np.isnan(self.reached[name]) & (values[name] >= threshold)
            self.reached[name][first & (self.status == TRAINING)] = step
        return values

    def end(self, decided: Any) -> None:
        """Mark members as ended, if they still train.

        Parameters
        ----------
        decided : array_like of bool, shape (runs,)
            True for the members that a rule ends.

        Raises
        ------
        InputError
            If there is not one value for each member.
        """
        decided = regular_array("decided", decided).astype(bool)
        if decided.shape != self.status.shape:
            raise misfit(
                "what stop returns", decided, f"be a truth value for each of {len(self.status)} runs"
            )
        self.status[decided & (self.status == TRAINING)] = DECIDED

    @property
    def all_reached(self) -> NDArray[np.bool_]:
        """Whether each member has reached every threshold, bool (runs,)."""
        return np.all([np.isfinite(found) for found in self.reached.values()], axis=0)

    def warn(self, numbers: Sequence[int]) -> None:
        """Warn the caller of `train`, by a `RuntimeWarning`, if members have diverged.

        `numbers` are the numbers of all members in the seed, by which the message names the first ten.
        """
        diverged = np.flatnonzero(self.status == DIVERGED)
        if len(diverged):
            warnings.warn(
                f"{len(diverged)} of {len(self.status)} runs diverged: the training loss or a parameter of "
                f"run {', '.join(str(numbers[run]) for run in diverged[:10])} is not finite; try a smaller "
                "learning_rate",
                RuntimeWarning,
                stacklevel=3,
            )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of `status` and of the entries of `reached` by name, which a resumed run needs."""
        reached = {f"reached/{name}": found.copy() for name, found in self.reached.items()}
        return {"status": self.status.copy(), **reached}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the arrays that `state` has returned, in place of the present ones."""
        self.status = state["status"].copy()
        self.reached = {name: state[f"reached/{name}"].copy() for name in self.reached}

    def _quality(self, embeddings: NDArray[Any]) -> Numbers:
        """Return the representation quality (runs,) of the embeddings of all members.

        It is NaN for an embedding that is not finite, or that has a coordinate without any variation.
        """
        theory = self._ensemble.model.theory
        assert theory is not None
        sound = np.isfinite(embeddings).all((1, 2)) & (np.ptp(embeddings, axis=1) > 0).all(1)
        quality = np.full(len(embeddings), np.nan)
        if sound.any():
            chosen = embeddings[sound].astype(np.float64)
            if not theory.operation.commutes:
                side = round(chosen.shape[2] ** 0.5)
                chosen = chosen.reshape(*chosen.shape[:2], side, side)
            quality[sound] = representation_quality(chosen, theory, self._delta)
        return quality

    def _inside(self, parameters: Mapping[str, NDArray[Any]], wanted: set[str]) -> dict[str, NDArray[Any]]:
        """Return the wanted observables of neurons and logits by name; NaN where they are not finite."""
        values: dict[str, NDArray[Any]] = {}
        members, _ = _finite(parameters)
        dtype = str(next(iter(members.values())).dtype)
        networks = Networks(dataclasses.replace(self._ensemble, parameters=members), dtype)
        if wanted & set(NEURONS):
            with np.errstate(over="ignore", invalid="ignore"):  # a member may be about to diverge
                weights, finite = _finite(networks.neuron_weights())
                second, W_out = weights.get("second"), weights.get("W_out")
                spectrum = neuron_spectrum(weights["W_in"], W_out, second=second)
            values["neuron_frequency"] = np.where(finite[:, None], spectrum.frequency, np.nan)
            values["neuron_purity"] = np.where(finite[:, None], spectrum.purity, np.nan)
        if wanted & set(PROGRESS):
            whole, finite = _finite({"logits": networks.logits()})
            keys = logit_spectrum(whole["logits"]).key_frequencies()
            seen = self._ensemble.model.task.inputs[self._ensemble.train]
            restricted = restricted_loss(whole["logits"], keys)
            excluded = excluded_loss(whole["logits"], keys, examples=seen)
            values["restricted_loss"] = np.where(finite, restricted, np.nan)
            values["excluded_loss"] = np.where(finite, excluded, np.nan)
        return values


def _layers(parameters: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return all parameters except the embedding, which is recorded as positions."""
    return {f"{LAYERS}{name}": value for name, value in parameters.items() if name != EMBEDDING}


def _finite(arrays: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Replace members with NaN or infinity in some array by zeros; return a mask (runs,) of the others."""
    sound = np.all([np.isfinite(value).all(tuple(range(1, value.ndim))) for value in arrays.values()], axis=0)
    return {
        name: np.where(sound.reshape(-1, *[1] * (value.ndim - 1)), value, 0) for name, value in arrays.items()
    }, sound
