"""Growth of time and memory, as slopes beside their theory: ``python benchmarks/growth.py --figure FILE``.

Each part measures one quantity at growing sizes; the theory counts operations or bytes. Slopes are those of
straight lines through the logarithms at the three largest sizes, where the price of a call counts least.
"""

import argparse
import time
import timeit
import tracemalloc
from pathlib import Path

import numpy as np

import nets
import physics
from analysis import fit_trajectories
from grokphys.papers import charts

HIDDEN = (100, 100)
FRAMES = 101
STORES = 4  # parameters, two moments, and the initial ones


def processor_time(call, rounds=5):
    """Return the least seconds of processor time of a call, whose kernels are compiled before."""
    call()
    return min(timeit.repeat(call, timer=time.process_time, repeat=rounds, number=1))


def peak_bytes(call):
    """Return the largest memory of arrays during a call, in bytes."""
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def direct_sum(tokens, runs=1, steps=5):
    """Return seconds of a step of particles."""
    system = physics.ParticleSystem(tokens)
    x = np.random.default_rng(0).standard_normal((runs, tokens, 2))
    return processor_time(lambda: system.advance(x, 0.02, steps)) / steps


def fast_sum(tokens):
    """Return seconds of the forces by the fast sum."""
    system, x = physics.ParticleSystem(tokens), np.random.default_rng(0).standard_normal((tokens, 2))
    return processor_time(lambda: physics.forces(x, system, method="fast"), 2)


def network_step(model, runs=1, steps=2):
    """Return seconds of a step of networks."""
    training = nets.Training(model, runs=runs, device="cpu")
    return processor_time(lambda: training.advance(steps)) / steps


def least_squares(frames):
    """Return seconds of a fit of a linear law of 29 signals."""
    signals = np.random.default_rng(0).standard_normal((frames, 29)).cumsum(axis=0)
    return processor_time(lambda: fit_trajectories(signals, penalty=None))


def memory_of_training(networks):
    """Return the bytes of training networks with constant attention, and of recording them."""
    options = {"steps": FRAMES - 1, "record": 1, "observables": (), "device": "cpu"}
    return peak_bytes(lambda: nets.train(nets.ConstantAttention(), runs=networks, **options))


def flops(tokens, dim):
    """Return the operations of a step of an embedding MLP: products of examples and of tokens."""
    examples = 0.8 * tokens**2
    return 6 * (examples * (HIDDEN[0] * HIDDEN[1] + HIDDEN[1] * tokens) + 2 * tokens * dim * HIDDEN[0])


def pair_sums(tokens):
    """Return the number of pair sums."""
    return tokens * (tokens + 1) / 2


def attention_bytes(model):
    """Return bytes of frames, parameters and examples of one network."""
    numbers = sum(np.prod(shape) for shape in model.architecture.shapes(model.tokens, model.dim).values())
    return 4 * (FRAMES * model.tokens * model.dim + STORES * numbers) + 8 * numbers + 8 * model.tokens**2


SMALL, LARGE, RUNS = (17, 31, 59, 83, 113), (199, 337, 499, 701, 997), (10, 100, 1000, 10_000)
ATTENTION, MLP = nets.ConstantAttention(), nets.EmbeddingMLP
PARTS = (
    ("particles, direct sum: a step", "N", SMALL, direct_sum, lambda n: pair_sums(n) ** 2),
    ("particles, fast sum: forces", "N", LARGE, fast_sum, lambda n: pair_sums(n) * np.log(pair_sums(n))),
    ("particles, N = 17: a step", "runs", RUNS, lambda n: direct_sum(17, n, 20), float),
    ("embedding MLP, d = 128: a step", "p", SMALL, lambda n: network_step(MLP(n, 128)),
        lambda n: flops(n, 128)),
    ("embedding MLP, p = 59: a step", "d", (32, 128, 512, 2048), lambda n: network_step(MLP(59, n)),
        lambda n: flops(59, n)),
    ("constant attention: a step", "networks", (8, 64, 512, 4096),
        lambda n: network_step(ATTENTION, n, 20), float),
    ("least squares, 29 signals", "frames", (200, 2000, 20_000, 200_000), least_squares,
        lambda n: n * 30**2 + 30**3),
    ("memory: particles, N = 17", "runs", RUNS,
        lambda n: peak_bytes(lambda: physics.simulate(steps=FRAMES - 1, runs=n)),
        lambda n: n * 17 * 2 * 8 * FRAMES),
    ("memory: constant attention", "networks", (10, 100, 1000), memory_of_training,
        lambda n: n * attention_bytes(ATTENTION)),
)  # fmt: skip
"""Name, what sizes are called, sizes, measure of a size in seconds or bytes, and the theory of a size."""


def main():
    """Measure all parts, print numbers and slopes, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path, help="file for the figure")
    options = parser.parse_args()
    rows = []
    for name, label, sizes, measure, theory in PARTS:
        curves = {"measured": [float(measure(n)) for n in sizes], "theory": [float(theory(n)) for n in sizes]}
        tails = [(np.log(sizes[-3:]), np.log(values[-3:])) for values in curves.values()]
        slopes = [float(np.polyfit(*tail, 1)[0]) for tail in tails]
        rows.append({"what": name, "by": label, "sizes": sizes, "slopes": slopes} | curves)
        print(
            f"{name:32} by {label:9} slope {slopes[0]:5.2f}, in theory {slopes[1]:5.2f}; {curves['measured']}"
        )
    if options.figure:
        draw(rows, options.figure)


def draw(rows, path):
    """Draw every part, with its theory as a line through the last point."""
    with charts.panels(10.0, 8.0, 3, 3) as (figure, axes):
        for ax, row in zip(axes.flat, rows, strict=True):
            measured, expected, sizes = np.array(row["measured"]), np.array(row["theory"]), row["sizes"]
            slope, in_theory = row["slopes"]
            scaled = expected * (measured[-1] / expected[-1])
            ax.loglog(sizes, scaled, label=f"theory: slope {in_theory:.2f}")
            ax.loglog(sizes, measured, "o", label=f"measured: {slope:.2f}")
            unit = "bytes" if row["what"].startswith("memory") else "s"
            ax.set(xlabel=row["by"], ylabel=unit, title=row["what"])
            ax.set_xticks(sizes, [f"{n:g}" if n < 10_000 else f"{n:.0e}".replace("e+0", "e") for n in sizes])
            ax.xaxis.minorticks_off()
            ax.legend(frameon=False)
        figure.savefig(path, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
