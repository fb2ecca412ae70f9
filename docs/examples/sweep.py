"""
A sweep and its dataset
=======================

A sweep declares a grid of parameters, runs it in one process or in many, and opens as one table with
named axes. A million runs are declared in the same way as the 1500 here.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import grokphys
from grokphys.cli.main import main

place = Path(tempfile.mkdtemp())
(place / "sweep.toml").write_text("""
kind = "simulate"

[fixed]
runs = 50
record = 100

[grid]
alignment = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0]
attraction = [0.25, 0.5, 1.0, 2.0, 4.0]
""")
main(["sweep", str(place / "sweep.toml"), "--directory", str(place / "runs")])

# %%
# Every axis of the grid is an axis of the dataset, and ``run`` is one more.

data = grokphys.open_sweep(place / "runs", unstack=True)
share = 100 * data["circle"].mean("run")
plt.style.use("analysis.plots.grokphys")
figure, ax = plt.subplots(figsize=(6, 4))
image = ax.imshow(share.transpose("attraction", "alignment"), origin="lower", cmap="viridis", vmin=0)
ax.set_xticks(range(6), [f"{value:g}" for value in data["alignment"].values])
ax.set_yticks(range(5), [f"{value:g}" for value in data["attraction"].values])
ax.set(xlabel="alignment constant $f_a$", ylabel="attraction $g_a$")
figure.colorbar(image, label="runs that end as circles (%)")
plt.show()
