"""The effective theory of representation learning (Liu et al.): what a training set implies, and how fast.

This package holds the groups and operations that are learned, training sets and their exact closure, the
quality of a representation, and the gradient flow of the theory. It does not depend on networks.
"""
