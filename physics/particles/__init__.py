"""Particles that cluster and align (Musat): the system, its forces, and the structures that it forms.

This package holds the equations of these particles and the tests for circles and grids. Its kernels evaluate
the forces in three ways: by a direct sum, by a direct sum for eight runs at a time, and by a sum on a grid.
"""
