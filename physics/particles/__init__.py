"""Particles that cluster and align (Musat): the system, its forces, and the structures that it forms.

This package holds the equations of these particles and the tests for circles and grids. Its kernels sum the
forces in three ways: directly, directly for eight runs at a time, and by a convolution on a grid.
"""
