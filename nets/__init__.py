"""Real networks, trained as ensembles that record how their embeddings move."""

import nets.engines.threads  # noqa: F401 - first, as it loads PyTorch

# isort: split
from nets.images import ImageMLP
from nets.interventions import keep_frequencies, scale_frequency, with_signals
from nets.models import ConstantAttention, EmbeddingMLP, GroupDecoder, Model, ToyAddition
from nets.networks import Networks, networks, training_sets
from nets.recorder import Recorder
from nets.recording import recording_steps
from nets.stepwise import Training
from nets.training import train
from nets.transformer import TokenTransformer

__all__ = [
    "ConstantAttention",
    "EmbeddingMLP",
    "GroupDecoder",
    "ImageMLP",
    "Model",
    "Networks",
    "Recorder",
    "TokenTransformer",
    "ToyAddition",
    "Training",
    "keep_frequencies",
    "networks",
    "recording_steps",
    "scale_frequency",
    "train",
    "training_sets",
    "with_signals",
]
