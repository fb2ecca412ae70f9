"""
Which force moves embeddings?
=============================

Networks learn addition modulo 17 with two-dimensional embeddings. We measure the force on each embedding,
from layers that have had time to learn, and fit a law of pair forces to half of the networks.
"""

import matplotlib.pyplot as plt

import analysis
import nets
from analysis.plots.forces import show_kernels

windows = {"early": (10, 50), "middle": (100, 400)}
options = {"steps": 400, "record": [10, 50, 100, 400], "weight_decay": 1.0, "dtype": "float64"}
fitted, held_out = (
    nets.adiabatic_force(nets.train(nets.ConstantAttention(17), runs=24, seed=seed, **options), steps=1000)
    for seed in (1, 2)
)

# %%
# The law of Musat has three terms. Free kernels explain more of the force, and the ceiling says how much of
# it any law of positions can explain.

laws = {"Musat's terms": "musat", "free kernels": analysis.forces.Basis(distance=10, angle=7)}
for name, basis in laws.items():
    law = analysis.fit_forces(fitted, basis=basis, windows=windows, resamples=50)
    for window, score in law.score(held_out).items():
        print(f"{name}, {window}: {score}")

# %%
# Attraction within a class and repulsion between classes are of finite range.

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
show_kernels(law.kernels, axes)
plt.show()
