"""Recorders for training loops of other packages, which are imported only where they are used.

`grokphys.integrations.lightning` and `grokphys.integrations.transformers` hold a callback each, and
`grokphys.integrations.transformer_lens` records activations by the name of their hook.
"""
