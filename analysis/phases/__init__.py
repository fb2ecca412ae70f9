"""Phases of learning over two hyper-parameters: axes, the classification of runs, and adaptive diagrams.

Who trains the networks of a diagram is not decided here: `phase_diagram` asks a function for them.
"""
