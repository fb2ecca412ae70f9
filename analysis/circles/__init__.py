"""Circles in embeddings: Fourier signals, geometry, the frequencies that survive, and final structures.

This package holds what is measured on the embeddings of one trajectory; laws of motion are in
`analysis.laws`.
"""
