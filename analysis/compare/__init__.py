"""Comparison of two ensembles: relabeling, motion, onsets, and statistical tests.

This package holds what needs two ensembles. Measurements on one ensemble are in `analysis.circles` and
`analysis.stats`.
"""
