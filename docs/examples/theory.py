"""
How much training data a representation needs
=============================================

The effective theory of Liu et al. counts parallelograms. A training set suffices when it implies all of them:
then the representation is unique, and a network can generalize perfectly. The count is exact.
"""

import matplotlib.pyplot as plt
import numpy as np

import physics

# %%
# We let the samples arrive in random order and note how many it takes until everything is implied.

fractions = {}
for tokens in (6, 10, 20, 40):
    samples = tokens * (tokens + 1) // 2
    sizes = physics.critical_sizes(physics.EffectiveTheory(tokens), sets=2000, seed=0)
    fractions[tokens] = np.sort(sizes) / samples
    print(f"{tokens} tokens: critical training fraction {np.median(fractions[tokens]):.2f}")

# %%
# The critical fraction is not one number: it falls with the number of tokens.

plt.style.use("analysis.plots.grokphys")
figure, ax = plt.subplots(figsize=(6.4, 4.2))
for tokens, fraction in fractions.items():
    ax.plot(fraction, np.arange(1, len(fraction) + 1) / len(fraction), label=f"{tokens} tokens")
ax.set(xlabel="training fraction", ylabel="probability that the set suffices", xlim=(0, 1), ylim=(0, 1.02))
figure.legend(loc="outside lower center", ncols=4)
plt.show()
