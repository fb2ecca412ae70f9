"""The two engines that train an ensemble of networks, and the code that they share.

`torch` trains any model on a CPU or with CUDA, all members as one batch. `fused` trains dense models on a CPU
in compiled kernels, one member in each thread. This package holds everything that a step of training does;
the models are in `nets.models`.
"""
