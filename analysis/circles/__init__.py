"""Circles in embeddings: Fourier signals, geometry, the frequencies that survive, and final structures.

This package holds what is measured on the embeddings of one trajectory; laws of motion are in
`analysis.laws`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
