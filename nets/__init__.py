"""Real networks, trained as ensembles that record how their embeddings move."""

from nets.models import ConstantAttention
from nets.recording import recording_steps
from nets.train import train

__all__ = ["ConstantAttention", "recording_steps", "train"]
