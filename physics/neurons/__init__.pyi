from .logits import (
    LogitSpectrum,
    exclude_logits,
    excluded_loss,
    frequency_ablation,
    logit_spectrum,
    restrict_logits,
    restricted_loss,
)
from .lottery import FourierLottery
from .spectrum import NeuronSpectrum, neuron_spectrum

__all__ = [
    "FourierLottery",
    "LogitSpectrum",
    "NeuronSpectrum",
    "exclude_logits",
    "excluded_loss",
    "frequency_ablation",
    "logit_spectrum",
    "neuron_spectrum",
    "restrict_logits",
    "restricted_loss",
]
