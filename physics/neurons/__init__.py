"""Neurons of networks that add modulo p: their Fourier spectra, their logits, and the flow of their weights.

This package holds what training records about neurons and what a flow of neurons needs. Statistics of a layer
and ablation are in `analysis.circles`.
"""
