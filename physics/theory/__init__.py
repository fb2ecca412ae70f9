"""The effective theory of representation learning (Liu et al.): what a training set implies and how fast.

Here belong the groups and operations that are learned, training sets and their exact closure, the quality of
a representation, and the gradient flow of the theory, each with its kernels. Nothing here knows a network.
"""
