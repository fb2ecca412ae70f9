from .adiabatic import adiabatic_force
from .architecture import Architecture, embedded
from .interventions import keep_frequencies
from .models import (
    ConstantAttention,
    DenseModel,
    EmbeddingMLP,
    GroupDecoder,
    ImageMLP,
    Model,
    TokenTransformer,
    ToyAddition,
    TwoLayer,
)
from .networks import networks
from .reading import from_frames, read_checkpoints
from .recorder import Recorder
from .tasks import Task
from .training import Training, train

__all__ = [
    "Architecture",
    "ConstantAttention",
    "DenseModel",
    "EmbeddingMLP",
    "GroupDecoder",
    "ImageMLP",
    "Model",
    "Recorder",
    "Task",
    "TokenTransformer",
    "ToyAddition",
    "Training",
    "TwoLayer",
    "adiabatic_force",
    "embedded",
    "from_frames",
    "keep_frequencies",
    "networks",
    "read_checkpoints",
    "train",
]
