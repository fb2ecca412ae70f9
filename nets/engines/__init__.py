"""The two engines that train an ensemble of networks, and the code that they share.

`torch` trains any model, batched over runs, on CPU or CUDA; `fused` trains dense models on CPUs in Numba
kernels. This package holds everything that a step of training does; the models are in `nets.models`.
"""
