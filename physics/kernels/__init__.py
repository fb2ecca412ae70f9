"""Numba kernels: plain arrays in and out, one file a kernel family, no validation."""
