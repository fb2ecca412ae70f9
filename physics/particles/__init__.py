"""Particles that cluster and align (Musat): the system, its forces, and the structures that it forms.

This package holds the equations of these particles, the kernels that evaluate them (direct sum, lanes of
runs, sum on a grid), their potential, and the tests for circles and grids. Code that other systems share is
in `physics`.
"""
