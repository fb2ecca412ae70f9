"""
Which circles survive
=====================

Ding et al. write an embedding as a sum of circles, one for each frequency. During training a few circles
survive and the others die. The package comes with one real training run: addition modulo 59, in 128
dimensions.
"""

import matplotlib.pyplot as plt

import analysis
import physics
from analysis.plots.embeddings import show_embedding
from analysis.plots.signals import show_signals

run = physics.example("ding")
survivors = analysis.surviving_frequencies(run)
print("Surviving frequencies:", survivors.tolist())

# %%
# The **signal** of a frequency is the size of its circle. The two-dimensional plane of a surviving frequency
# shows the circle itself.

signals = analysis.fourier_signals(run)[0].sel(step=slice(0, 1000))
plane = analysis.frequency_plane(run, survivors[0])
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", width_ratios=(1.3, 1))
show_signals(signals.step, signals, left, marked=survivors.tolist())
show_embedding(plane.points, right, labels=False, title=f"the circle of frequency {survivors[0]}")
plt.show()
