"""Phases of learning over two hyperparameters: axes, the classification of runs, and adaptive diagrams.

This package does not train networks; `phase_diagram` receives a function that does.
"""
