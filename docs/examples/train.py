"""
Weight decay removes imperfections
==================================

We train 100 of Musat's networks at four weight decays, all in one call. What does their accuracy depend on?
"""

import matplotlib.pyplot as plt
import numpy as np

import analysis
import nets
import physics

decays = np.repeat([0.0, 0.3, 0.6, 1.0], 25)
networks = nets.train(
    nets.ConstantAttention(), runs=100, steps=2000, weight_decay=decays.tolist(), record=[2000]
)

# %%
# The network has never seen the validation pairs. It answers them when pair sums of one class lie together,
# so networks with more imperfections are less accurate.

imperfections = physics.grid_imperfections(networks.final)
accuracy = 100 * networks.observables["validation_accuracy"][:, -1]
circle = physics.is_circle(networks.final)
found = analysis.correlation(imperfections[~circle], accuracy[~circle])
print(f"Correlation of accuracy with imperfections, circles apart: {found.format(2)}")

# %%

plt.style.use("analysis.plots.grokphys")
figure, ax = plt.subplots(figsize=(6.4, 4.6))
for decay, color in zip(np.unique(decays), plt.colormaps["viridis"](np.linspace(0, 0.85, 4)), strict=True):
    for kind, marker in ((~circle, "o"), (circle, "*")):
        here = (decays == decay) & kind
        label = f"weight decay {decay:g}" if marker == "o" else None
        size = 130 if marker == "*" else 40
        ax.scatter(imperfections[here], accuracy[here], s=size, color=color, marker=marker, label=label)
ax.scatter([], [], s=130, marker="*", color="#888888", label="circles")
ax.set(xlabel="grid imperfections", ylabel="validation accuracy (%)", ylim=(0, 100))
figure.legend(loc="outside lower center", ncols=3)
plt.show()
