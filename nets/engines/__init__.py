"""The engines that train an ensemble of networks: what they share, and the two that there are.

`torch` trains any model, batched over runs, on CPU or CUDA; `fused` trains dense models on CPUs in Numba
kernels. Here belongs all that a step of training does. What a model is stands in `nets`.
"""
