"""Make ding_p59_d128_seed0.h5 from the arrays it came as; see README.md beside this file.

Usage: python data/remake.py ARRAYS.npz
"""

import sys
from pathlib import Path

import numpy as np

import physics

KEEP = np.r_[0:501:10, 520:1001:20, 1500, 2000, 3000, 4000]
SERIES = {  # name here: (array there, steps there)
    "fourier_signals": ("signals", "signal_steps"),
    "train_loss": ("train_loss", None),
    "train_accuracy": ("train_acc", None),
    "test_loss": ("test_loss", "test_steps"),
    "test_accuracy": ("test_acc", "test_steps"),
}
PARAMETERS = {
    "program": "foreign: PyTorch, trained outside this project",
    "model": {"type": "EmbeddingMLP", "tokens": 59, "dim": 128, "hidden": [100, 100], "activation": "SiLU"},
    "source": "Ding et al. 2024, Survival of the Fittest Representation, section 2 and appendix E",
    "seed": 0,
    "steps": 4000,
    "learning_rate": 0.01,
    "weight_decay": 0.5,
    "train_fraction": 0.8,
    "dtype": "float64",
    "stored": "float32; embeddings every 10 steps to 500, every 20 to 1000, and at 1500, 2000, 3000, 4000",
}


def main(source: str) -> None:
    """Convert `source` and write the file beside this one."""
    arrays = np.load(source, allow_pickle=False)
    keep = np.isin(arrays["steps"], KEEP)
    observables, clocks = {}, {}
    for name, (array, steps) in SERIES.items():
        values = arrays[array].astype(np.float32)
        if name == "fourier_signals":
            values = values[:, 1:]  # without frequency 0, as analysis.fourier_signals has it
        observables[name] = values[None]
        clocks[name] = (arrays[steps] if steps else np.arange(len(values)), None)
    physics.Trajectory(
        arrays["embeddings"][None, keep].astype(np.float32),
        arrays["steps"][keep],
        observables=observables,
        clocks=clocks,
        parameters=PARAMETERS,
    ).save(Path(__file__).with_name("ding_p59_d128_seed0.h5"), overwrite=True)


if __name__ == "__main__":
    main(sys.argv[1])
