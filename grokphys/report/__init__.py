"""Reports: text, figures and tables as one self-contained page, and what each command reports.

This package shows results, and `analysis` computes them.
"""
