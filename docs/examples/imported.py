"""
Checkpoints of other people's scripts
=====================================

Three networks learn addition modulo 13, and are saved as three scripts of the field save theirs: a
transformer with "=" whose embedding is (dimensions, tokens), a list of state dicts, and a layer on one-hot
inputs. Each is imported in one line.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import nn

import analysis
import nets

torch.manual_seed(0)
torch.set_num_threads(1)
p, dim = 13, 32
pairs = torch.cartesian_prod(torch.arange(p), torch.arange(p))
answers = pairs.sum(1) % p
directory = Path(tempfile.mkdtemp())


class Transformer(nn.Module):
    """One layer that reads "a b =" and answers at "=", with names and shapes as in Nanda et al. 2023."""

    def __init__(self):
        super().__init__()
        self.embed = nn.ParameterDict({"W_E": torch.randn(dim, p + 1) / dim**0.5})
        self.pos_embed = nn.ParameterDict({"W_pos": torch.randn(3, dim) / dim**0.5})
        self.block = nn.TransformerEncoderLayer(dim, 2, 64, dropout=0.0, batch_first=True)
        self.unembed = nn.Linear(dim, p)

    def forward(self, pairs):
        """Return the logits of pairs."""
        tokens = nn.functional.pad(pairs, (0, 1), value=p)
        return self.unembed(self.block(self.embed["W_E"].T[tokens] + self.pos_embed["W_pos"])[:, -1])


class Table(nn.Module):
    """A table of embeddings, whose pair sums are decoded."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(p, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, p))

    def forward(self, pairs):
        """Return the logits of pairs."""
        return self.decoder(self.embedding(pairs).sum(1))


class OneHot(Table):
    """The same with a linear layer, whose weight is (dimensions, tokens)."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(p, 4, bias=False)

    def forward(self, pairs):
        """Return the logits of pairs."""
        return super().forward(nn.functional.one_hot(pairs, p).float())


def train(model, save, weight_decay=0.5, epochs=1000, every=20):
    """A plain loop, which saves in its own way."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=weight_decay)
    for epoch in range(epochs + 1):
        loss = nn.functional.cross_entropy(model(pairs), answers)
        if epoch % every == 0:
            save(epoch, {name: value.clone() for name, value in model.state_dict().items()}, loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


# %%
# Each script has its own way to save: files with epoch and loss, one file with a list, or bare state dicts.

run = directory / "transformer"
run.mkdir()
transformer = train(
    Transformer(),
    lambda epoch, state, loss: torch.save(
        {"model": state, "epoch": epoch, "train_loss": loss, "config": {"p": p}}, run / f"{epoch}.pth"
    ),
    weight_decay=0.1,
)
history = {"epochs": [], "state_dicts": [], "train_losses": []}


def keep(epoch, state, loss):
    """Append to the lists of one file."""
    for name, value in zip(history, (epoch, state, loss), strict=True):
        history[name].append(value)


train(Table(), keep)
torch.save(history, directory / "full_run_data.pth")
bare = directory / "one_hot"
bare.mkdir()
train(OneHot(), lambda epoch, state, loss: torch.save(state, bare / f"model{epoch:05}.pt"))

# %%
# The first file states its modulus; the others are told it.

imported = {
    'transformer with "="': nets.read_checkpoints(run),
    "list of state dicts": nets.read_checkpoints(directory / "full_run_data.pth", modulus=p),
    "one-hot layer": nets.read_checkpoints(bare, array="embedding.weight", modulus=p),
}
for name, trajectory in imported.items():
    print(f"{name}: {trajectory.positions.shape}, steps {trajectory.steps[0]} to {trajectory.steps[-1]}")
    signals = analysis.fourier_signals(trajectory.final[0])
    print(f"  strongest frequency: {signals.frequency[signals.argmax()].item()}")
    for note in trajectory.parameters["notes"]:
        print(f"  {note}")

# %%
# What works on our own runs works on these: the loss by the key frequencies of the logits alone, a law of the
# Fourier signals, and a comparison of two of the runs.

with torch.no_grad():
    logits = transformer(pairs).reshape(p, p, p).numpy()
keys = analysis.logit_spectrum(logits).key_frequencies()
loss = nn.functional.cross_entropy(torch.tensor(logits).reshape(-1, p), answers)
print(f"Loss {loss:.2g}, and by the key frequencies alone {analysis.restricted_loss(logits, keys):.2g}")
table, one_hot = imported["list of state dicts"], imported["one-hot layer"]
law = analysis.fit_trajectories(table, penalty=None)
print(f"A linear law of the signals explains {law.r2_rollout:.0%} of their motion")
comparison = analysis.compare(table, one_hot, names=("table", "one-hot"))
print(f"Up to rotation and a symmetry of addition the two differ by {comparison.shapes.nearest[0]:.2g}")

# %%

plt.style.use("analysis.plots.grokphys")
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
for axis, (name, trajectory) in zip(axes, imported.items(), strict=True):
    axis.plot(trajectory.steps, analysis.fourier_signals(trajectory)[0])
    axis.set(xlabel="epoch", title=name)
axes[0].set(ylabel="signal of each frequency")
plt.show()
