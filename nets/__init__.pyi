from .architecture import Architecture, embedded
from .interventions import keep_frequencies, scale_frequency, with_signals
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
from .recorder import Recorder
from .recording import recording_steps
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
    "embedded",
    "keep_frequencies",
    "networks",
    "recording_steps",
    "scale_frequency",
    "train",
    "with_signals",
]
