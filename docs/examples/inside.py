"""
Neurons that become waves
=========================

Most neurons of a two-layer network on modular addition develop one strongest frequency, and their phases
align: the output phase becomes twice the input phase (He et al. 2026).
"""

import matplotlib.pyplot as plt

import analysis
import nets
from analysis.plots.neurons import show_neurons, show_phases

trained = nets.train(
    nets.TwoLayer(11, 96, activation="relu"),
    steps=3000,
    record=3000,
    learning_rate=0.01,
    weight_decay=0.0,
    train_fraction=1.0,
    observables=("train_accuracy", "layers"),
)
print(f"Accuracy: {trained.observables['train_accuracy'][0, -1]:.0%}")

# %%
# Each row is one neuron, with the magnitude of its input weights at each frequency. The points on the right
# are the same neurons by their phases.

spectrum = analysis.neuron_spectrum(**{k: v[0] for k, v in nets.networks(trained).neuron_weights().items()})
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
show_neurons(spectrum, left)
show_phases(spectrum, right)
plt.show()
