"""Which force moves embeddings: force laws fitted to recorded gradients or displacements."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
