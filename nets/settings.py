"""The settings of a training, declared once: for `train`, `Training`, the command, sweeps and records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from numpy.typing import NDArray

from physics.checks import InputError, flag
from physics.seeds import Seed

if TYPE_CHECKING:
    from nets.models import Model

Rate = float | Sequence[float]
StopRule = Callable[[int, NDArray[Any], Mapping[str, NDArray[Any]]], Any]
RATES = ("learning_rate", "weight_decay", "embedding_learning_rate", "embedding_weight_decay")
PER_MEMBER = (*RATES, "layer_scale", "embedding_scale")
"""Rates and scales that may differ within an ensemble; each other setting needs a separate ensemble."""
OTHERWISE: Mapping[str, Any] = {
    "learning_rate": 0.01,
    "weight_decay": 1.0,
    "train_fraction": 0.8,
    "steps": 2000,
}
"""Settings of a model that states none: those of Musat §3."""
LOSSES = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Settings of `nets.Training`, which `nets.train` explains.

    Where a rate or the training fraction is None, `of` takes the value of the model's paper.
    """

    runs: int = 1
    seed: Seed = 0
    first_run: int = 0
    run_numbers: Sequence[int] | None = None
    learning_rate: Rate | None = None
    weight_decay: Rate | None = None
    embedding_learning_rate: Rate | None = None
    embedding_weight_decay: Rate | None = None
    freeze_embedding: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    optimizer: Literal["adamw", "sgd"] = "adamw"
    batch_size: int | None = None
    train_fraction: float | None = None
    train_examples: Any = None
    validation_examples: Any = None
    shared: Sequence[str] = ()
    initial: Mapping[str, Any] | None = None
    layer_scale: Rate = 1.0
    embedding_scale: Rate = 1.0
    dtype: Literal["float32", "float64"] = "float32"
    stable_gradient: bool = False
    engine: Literal["auto", "fused", "torch"] = "auto"
    device: str = "auto"
    chunk: int | None = None

    def of(self, model: "Model") -> Self:
        """Return the settings of a training of `model`: where they say None, its paper decides.

        A frozen embedding has no rates. An `InputError` refuses rates that are given for it.
        """
        settings = {**OTHERWISE, **model.settings}
        if flag("freeze_embedding", self.freeze_embedding):
            for name in RATES[2:]:
                if getattr(self, name) is not None:
                    got = f"{getattr(self, name)!r} with freeze_embedding=True"
                    raise InputError(f"{name} must be left out for an embedding that is kept, got {got}")
                settings.pop(name, None)
        names = settings.keys() & {field.name for field in fields(self)}
        return replace(self, **{name: settings[name] for name in names if getattr(self, name) is None})

    def values(self, kind: type["TrainingSettings"] | None = None) -> dict[str, Any]:
        """Return the settings by name: all, or those of a class from which that of these settings derives."""
        return {field.name: getattr(self, field.name) for field in fields(kind or self)}

    def __str__(self) -> str:
        """Return the settings that are not the default ones, as arguments of a call."""
        changed = (f for f in fields(self) if repr(getattr(self, f.name)) != repr(f.default))
        return ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in changed)


@dataclass(frozen=True, kw_only=True)
class Settings(TrainingSettings):
    """Settings of `nets.train`, which explains them: those of the training, and what is recorded of it."""

    steps: int | None = None
    record: int | str | Sequence[int] = 20
    observables: Sequence[str] = LOSSES
    thresholds: Mapping[str, float] | None = None
    track: int | None = None
    delta: float = 0.01
    stop: str | StopRule | None = None
