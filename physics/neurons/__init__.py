"""Neurons of networks that add modulo p: their Fourier spectra, their logits, and the flow of their weights.

Statistics of a layer of neurons, and what happens when neurons are removed, are in `analysis.circles`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
