"""The old address of the figures, for `grokphys.papers` and the explorer until they import the new ones."""

from analysis.plots.distributions import show_distributions, show_estimates
from analysis.plots.embeddings import show_embedding
from analysis.plots.signals import show_coefficients, show_signals
from analysis.plots.style import TOKENS, axes_of, graded_colors, style, styled, token_colors

__all__ = [
    "TOKENS", "axes_of", "graded_colors", "show_coefficients", "show_distributions", "show_embedding",
    "show_estimates", "show_signals", "style", "styled", "token_colors",
]  # fmt: skip
