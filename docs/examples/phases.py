"""
A phase diagram of learning
===========================

Whether a network comprehends, groks, memorizes or stays confused depends on its hyperparameters. One call
trains networks over a plane of two of them. It adds networks where their majority is unclear, and refines the
cells where phases meet. This diagram is small, so that it takes seconds. Only ten pairs are kept for
validation, and a delay of 300 steps counts as grokking.
"""

import matplotlib.pyplot as plt

import analysis
import grokphys
import nets
from analysis.plots.phases import show_phases

diagram = grokphys.phase_diagram_of_networks(
    nets.ToyAddition(hidden=(50, 50), kind="classification", scale=0.1),
    ("learning_rate", 3e-4, 3e-2),
    ("weight_decay", 0.0, 4.0),
    cells=(6, 5),
    steps=2500,
    delay=300,
    thresholds={"train_accuracy": 0.9, "validation_accuracy": 0.8},
    refinement=analysis.Refinement(seeds=1, most_seeds=3, levels=0),
    embedding_learning_rate=1e-2,
    embedding_weight_decay=0.0,
)

# %%

figure, ax = plt.subplots(figsize=(6.8, 4), layout="constrained")
show_phases(diagram, ax)
plt.show()
