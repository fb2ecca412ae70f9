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

run = analysis.signals_of(physics.example("ding"), 0, 1000)[0]
whole = analysis.fit_trajectories(run.values, penalty=None)
early = analysis.fit_trajectories(run.values[:501], penalty=None)
print(f"R² of the changes, fitted to all steps: {whole.r2_in_sample:.3f}")

# %%
# Each dashed curve starts from the measured signals, and then follows the law alone.

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained", sharey=True)
titles = ("fitted to all 1000 steps", "fitted to the first 500 steps")
for ax, fit, title in zip(axes, (whole, early), titles, strict=True):
    rollout = fit.predict(run.values[0], range(len(run.steps)))
    show_signals(run.steps, run.values, ax, marked=run.survivors, rollout=rollout, title=title)
    ax.get_legend().remove()
    ax.label_outer()
axes[1].axvline(500, color="#888888", linewidth=0.8)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()
