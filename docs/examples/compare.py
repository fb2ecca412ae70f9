"""
The same start, the same circle?
================================

Do particles and networks that start at the same place end at the same place? We train 100 networks, simulate
particles from their untrained embeddings, and look at the pairs in which both have become circles.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import procrustes

import analysis
import nets
import physics
from analysis.plots.embeddings import show_embedding

networks = nets.train(nets.ConstantAttention(), runs=100, weight_decay=1.0, record=[0, 2000])
particles = physics.simulate(physics.ParticleSystem(alignment=2.0), runs=100, initial=networks.initial)

# %%
# The strongest Fourier signal shows by how much two neighbors on a circle differ.

both = np.flatnonzero(physics.is_circle(networks.final) & physics.is_circle(particles.final))
signals = (analysis.fourier_signals(one.final[both]) for one in (networks, particles))
trained, simulated = (each.frequency.values[each.argmax("frequency")] for each in signals)
same = trained == simulated
print(f"Of {len(both)} pairs of circles, {same.sum()} have the same frequency.")

# %%
# Open circles are the particles, moved and turned onto the network by a Procrustes fit.

figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
for ax, run, frequency in zip(axes, both, trained, strict=False):
    network, particle, _ = procrustes(networks.final[run], particles.final[run])
    show_embedding(network, ax, outline=particle, title=f"pair {run}, frequency {frequency}")
plt.show()
