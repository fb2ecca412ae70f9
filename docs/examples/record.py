"""
Record your own training loop
=============================

Any PyTorch loop can record how its embedding moves. Here a small network with two-dimensional embeddings
learns addition modulo 11. The loop needs only the three lines with ``recorder``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import nets
import physics
from analysis.plots.palette import class_colors

torch.manual_seed(0)
torch.set_num_threads(1)  # more do not help so small a network
tokens = 11
pairs = torch.cartesian_prod(torch.arange(tokens), torch.arange(tokens))
answers = pairs.sum(1) % tokens
embedding = torch.nn.Embedding(tokens, 2)
decoder = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, tokens))
optimizer = torch.optim.AdamW([*embedding.parameters(), *decoder.parameters()], lr=0.01, weight_decay=0.5)

# %%
# The file that appears at the end has the format of every simulation, so everything in `analysis` reads it.

path = Path(tempfile.mkdtemp()) / "mine.h5"
with nets.Recorder(embedding.weight, path, record=10, parameters={"modulus": tokens}) as recorder:
    while recorder.at < 1000:
        logits = decoder(embedding(pairs).sum(1))
        loss = torch.nn.functional.cross_entropy(logits, answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recorder.step(loss=loss)

# %%

mine = physics.load(path)
x = mine.positions[0] - mine.positions[0].mean(1, keepdims=True)
plt.style.use("analysis.plots.grokphys")
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6))
for token, color in enumerate(class_colors(tokens)):
    left.plot(*x[:, token].T, color=color, linewidth=1)
    left.scatter(*x[-1, token], color=color, s=80, zorder=3)
    left.annotate(str(token), x[-1, token], textcoords="offset points", xytext=(6, 6))
left.set(
    xlabel="first coordinate", ylabel="second coordinate", aspect="equal", title="paths of the eleven tokens"
)
right.plot(mine.steps, mine.observables["loss"][0])
right.set(xlabel="step", ylabel="loss", yscale="log", title="the loss that the loop passed on")
plt.show()
