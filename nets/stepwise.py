"""Training by hand: some steps, a look, other rates, some more steps."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.engines.choice import choose_engine, optimiser
from nets.engines.ensemble import Ensemble, batch_size_of, batches, draw
from nets.models import ConstantAttention, Model
from nets.networks import Networks
from physics.checks import whole_number
from physics.errors import InputError
from physics.seeds import Seed, parent_seed

RATES = ("learning_rate", "weight_decay", "embedding_learning_rate", "embedding_weight_decay")


class Training:
    """An ensemble that stands still between calls of `advance`.

    As long as its rates do not change, it is bit by bit the training that `train` does with the same
    arguments, however its steps are split over calls.

    Parameters
    ----------
    model : Model, optional
        `ConstantAttention()` by default.
    runs, seed, first_run
        Which members; see `train`.
    learning_rate, weight_decay, embedding_learning_rate, embedding_weight_decay
        Rates to begin with, a number or one for each member; see `train`.
    betas, epsilon, batch_size, dtype, engine, device
        As in `train`.
    **ensemble
        What `train` draws the members by: train_fraction, train_examples, validation_examples, shared,
        initial, layer_scale, embedding_scale.

    Raises
    ------
    InputError
        If an argument is not of that kind.

    Examples
    --------
    >>> import nets
    >>> training = nets.Training(seed=3, weight_decay=0.3)
    >>> training.advance(400)
    >>> training.set_rates(weight_decay=1.0)
    >>> training.advance(100)
    >>> training.step, training.embeddings.shape
    (500, (1, 17, 2))
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        runs: int = 1,
        seed: Seed = 0,
        first_run: int = 0,
        learning_rate: Any = 0.01,
        weight_decay: Any = 1.0,
        embedding_learning_rate: Any = None,
        embedding_weight_decay: Any = None,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        batch_size: int | None = None,
        dtype: str = "float32",
        engine: str = "auto",
        device: str = "auto",
        **ensemble: Any,
    ) -> None:
        model = ConstantAttention() if model is None else model
        if not isinstance(model, Model):
            raise InputError(f"model must be a model such as ConstantAttention(), got {type(model).__name__}")
        runs = whole_number("runs", runs, 1)
        parent_seed(seed)
        self._ensemble: Ensemble = draw(model, runs=runs, seed=seed, first_run=first_run, **ensemble)
        self._rates: dict[str, Any] = {
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "embedding_learning_rate": embedding_learning_rate,
            "embedding_weight_decay": embedding_weight_decay,
        }
        self._fixed: dict[str, Any] = {"betas": betas, "epsilon": epsilon}
        self._batch_size = batch_size_of(batch_size, self._ensemble.train.shape[1])
        self._dtype = dtype
        settings = optimiser(runs, **self._rates, **self._fixed)
        self._engine = choose_engine(engine, self._ensemble, settings, dtype, device, None)
        self.step = 0

    @property
    def model(self) -> Model:
        """The architecture of all members."""
        return self._ensemble.model

    def advance(self, steps: int) -> None:
        """Take so many optimiser steps.

        Raises
        ------
        InputError
            If `steps` is less than 1.
        """
        steps = whole_number("steps", steps, 1)
        self._engine.advance(self.step, steps, batches(self._ensemble, self._batch_size, self.step, steps))
        self.step += steps

    def set_rates(self, **rates: Any) -> None:
        """Train on with other rates: any of those of the constructor; the optimiser's moments stay.

        Raises
        ------
        InputError
            If there is no such rate, or its value is out of range; the old ones hold on then.
        """
        for name in rates:
            if name not in RATES:
                raise InputError(f"rates must be of {', '.join(RATES)}, got {name!r}")
        changed = {**self._rates, **rates}
        self._engine.set_rates(optimiser(self._ensemble.runs, **changed, **self._fixed))
        self._rates = changed

    @property
    def embeddings(self) -> NDArray[Any]:
        """Copy of the embeddings, (runs, tokens, dim)."""
        return self._engine.point_sets()

    def losses(self, part: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean loss and accuracy (runs,) on the set "train" or "validation", as `train` records them."""
        return self._engine.losses(part)

    def networks(self) -> Networks:
        """Return the networks as they are now: what they answer, and the sets they learn from."""
        parameters = self._engine.parameters()
        return Networks(dataclasses.replace(self._ensemble, parameters=parameters), self._dtype)
