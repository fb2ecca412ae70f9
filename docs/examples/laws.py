"""
A linear law describes the past, not the future
===============================================

Ding et al. fit a linear differential equation to the signals of the circles. It follows the curves to which
it was fitted almost perfectly. We fit the same law to the first 500 steps only, and
compare its prediction with the next 500.
"""

import matplotlib.pyplot as plt

import analysis
import physics
from analysis.plots.signals import show_signals

run = physics.example("ding")
signals, survivors = (
    analysis.circles_of(run, 0, 1000).signals[0],
    analysis.surviving_frequencies(run).tolist(),
)
whole = analysis.fit_trajectories(signals, penalty=None)
early = analysis.fit_trajectories(signals[:501], penalty=None)
print(f"R² of the changes, fitted to all steps: {whole.r2_in_sample:.3f}")

# %%
# Each dashed curve starts from the measured signals, and then follows the law alone.

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained", sharey=True)
titles = ("fitted to all 1000 steps", "fitted to the first 500 steps")
for ax, fit, title in zip(axes, (whole, early), titles, strict=True):
    rollout = fit.predict(signals[0], range(len(signals)))
    show_signals(signals.step, signals, ax, marked=survivors, rollout=rollout, title=title)
    ax.get_legend().remove()
    ax.label_outer()
axes[1].axvline(500, color="#888888", linewidth=0.8)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()
