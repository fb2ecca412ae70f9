"""The effective theory of representation learning (Liu et al.): what a training set implies, and how fast.

This package holds the groups and operations that are learned, training sets and their exact closure, the
quality of a representation, and the gradient flow of the theory. It does not depend on networks.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
