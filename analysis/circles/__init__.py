"""Circles in embeddings: Fourier signals, geometry, which frequencies survive, and what shapes are left.

Here belongs what is read off the embeddings of one trajectory. Laws of their motion stand in `analysis.laws`.
"""
