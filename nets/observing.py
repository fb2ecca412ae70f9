"""The observables of a training, which are measured in addition to the embeddings, and the ended members."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.engines.choice import Engine
from nets.engines.ensemble import Ensemble
from nets.networks import adds, all_logits, has_neurons, neuron_weights
from nets.settings import LOSSES
from physics.checks import mapping, names_in, number, regular_array
from physics.errors import InputError
from physics.neurons.logits import excluded_loss, logit_spectrum, restricted_loss
from physics.neurons.spectrum import neuron_spectrum
from physics.theory.quality import representation_quality

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
    names : sequence of str
        Names among `OBSERVABLES`.
    thresholds : mapping of str to float
        Observables whose first measured step at or above a value is kept, as ``steps_to_<name>``.
    delta : float
        Tolerance of the representation quality.

    Attributes
    ----------
    status : ndarray of int64, shape (runs,)
        `TRAINING`, `DECIDED` (ended by a rule) or `DIVERGED` for each member.
    reached : dict of str to ndarray of float64, shape (runs,)
        First measured step at which each member has reached each threshold; NaN before.
    """

    def __init__(
        self, ensemble: Ensemble, names: Sequence[str], thresholds: Mapping[str, float], delta: float
    ) -> None:
        self._ensemble, self._names, self._thresholds, self._delta = ensemble, names, thresholds, delta
        self.status = np.full(ensemble.runs, TRAINING)
        self.reached = {name: np.full(ensemble.runs, np.nan) for name in thresholds}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each observable for one frame of one run, by name."""
        shapes: dict[str, tuple[int, ...]] = {}
        for name in self._names:
            if name == "gradient":
                shapes[name] = self._ensemble.parameters[EMBEDDING].shape[1:]
            elif name == "layers":
                shapes |= {key: value.shape[1:] for key, value in self._layers(self._ensemble.parameters)}
            elif name in NEURONS:
                weights = neuron_weights(self._ensemble.model, self._ensemble.parameters)
                shapes[name] = weights["W_in"].shape[2:]
            else:
                shapes[name] = ()
        return shapes | {f"steps_to_{name}": () for name in self._thresholds} | {"status": ()}

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
        values = self._measured(engine, step, {*self._names, *self._thresholds})
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
            values |= _inside(self._ensemble, parameters, wanted)
            if "hidden1.weight" in parameters:
                for kind in ("weight", "bias"):
                    values[f"{kind}_norm"] = np.abs(parameters[f"hidden1.{kind}"]).mean(axis=(1, 2))
            values |= dict(self._layers(parameters))
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
            raise InputError(
                f"stop must return one truth value for each of {len(self.status)} runs, got {decided.shape}"
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

    @staticmethod
    def _layers(parameters: Mapping[str, NDArray[Any]]) -> list[tuple[str, NDArray[Any]]]:
        """Return all parameters except the embedding, which is recorded as positions."""
        return [(f"layers.{name}", value) for name, value in parameters.items() if name != EMBEDDING]


def _inside(
    ensemble: Ensemble, parameters: Mapping[str, NDArray[Any]], wanted: set[str]
) -> dict[str, NDArray[Any]]:
    """Return the wanted observables of neurons and logits by name; NaN for members that are not finite."""
    found: dict[str, NDArray[Any]] = {}
    members, sound = _finite(parameters)
    if wanted & set(NEURONS):
        with np.errstate(over="ignore", invalid="ignore"):  # a member may be about to diverge
            weights, fine = _finite(neuron_weights(ensemble.model, members))
            spectrum = neuron_spectrum(weights["W_in"], weights.get("W_out"), second=weights.get("second"))
            measured = {"neuron_frequency": spectrum.frequency, "neuron_purity": spectrum.purity}
        found |= {name: np.where((sound & fine)[:, None], value, np.nan) for name, value in measured.items()}
    if wanted & set(PROGRESS):
        whole, fine = _finite({"logits": all_logits(ensemble.model, members)})
        logits, known = whole["logits"], sound & fine
        keys = logit_spectrum(logits).key_frequencies()
        seen = ensemble.model.task.inputs[ensemble.train]
        found["restricted_loss"] = np.where(known, restricted_loss(logits, keys), np.nan)
        found["excluded_loss"] = np.where(known, excluded_loss(logits, keys, examples=seen), np.nan)
    return {name: value for name, value in found.items() if name in wanted}


def _finite(
    arrays: Mapping[str, NDArray[Any]],
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Replace members with NaN or infinity in some array by zeros; return a mask (runs,) of the others."""
    sound = np.all([np.isfinite(value).all(tuple(range(1, value.ndim))) for value in arrays.values()], axis=0)
    return {
        name: np.where(sound.reshape(-1, *[1] * (value.ndim - 1)), value, 0) for name, value in arrays.items()
    }, sound


def checked_names(names: Sequence[str], ensemble: Ensemble) -> tuple[str, ...]:
    """Return the names of observables as a tuple, after checking that the model has them.

    Parameters
    ----------
    names : str or sequence of str
        Names among `OBSERVABLES`; a single name may be given as a string.
    ensemble : Ensemble
        Networks whose model and parameters decide which observables exist.

    Returns
    -------
    tuple of str
        The same names in their order.

    Raises
    ------
    InputError
        If `names` is not a name or a sequence of names, a name is unknown, or the model has no such quantity.
    """
    names = names_in("observables", names)
    for name in names:
        if name not in OBSERVABLES:
            raise InputError(f"observables must be among {', '.join(OBSERVABLES)}, got {name!r}")
    absent = {
        "quality": ensemble.model.theory is None,
        "gradient": EMBEDDING not in ensemble.parameters,
        "weight_norm": "hidden1.weight" not in ensemble.parameters,
        "bias_norm": "hidden1.bias" not in ensemble.parameters,
        **dict.fromkeys(NEURONS, not has_neurons(ensemble.model)),
        **dict.fromkeys(PROGRESS, not adds(ensemble.model)),
    }
    for name in names:
        if absent.get(name):
            raise InputError(
                f"observables must not name {name!r}, which {type(ensemble.model).__name__} does not have"
            )
    return names


def checked_thresholds(thresholds: Mapping[str, float] | None, ensemble: Ensemble) -> dict[str, float]:
    """Return thresholds as floats by name; the result is empty if there are none.

    Raises
    ------
    InputError
        If `thresholds` is not a mapping, if a name is none of "train_accuracy", "validation_accuracy" and
        "quality", if the model of the ensemble has no such quantity, or if a value is not from 0 to 1.
    """
    allowed = ("train_accuracy", "validation_accuracy", "quality")
    given = mapping("thresholds", thresholds)
    for name in given:
        if name not in allowed:
            raise InputError(f"thresholds must be among {', '.join(allowed)}, got {name!r}")
    checked_names(tuple(given), ensemble)
    # accuracies and quality are fractions
    return {name: number(f"thresholds of {name}", value, 0.0, 1.0) for name, value in given.items()}
