"""Growth of time and memory, as slopes beside their theory: ``python benchmarks/growth.py --figure FILE``.

Each part measures one quantity at growing sizes; the theory counts operations or bytes. Slopes are those of
straight lines through the logarithms at the three largest sizes, where the price of a call counts least.
"""

import argparse
import json
import time
import tracemalloc
from pathlib import Path

import matplotlib as mpl
import numpy as np

import nets
import physics
from analysis import fit_trajectories
from analysis.plots.style import style
from grokphys.bench.timing import machine

HIDDEN = (100, 100)
FRAMES = 101
STORES = 4  # parameters, two moments, and the initial ones


def processor_time(call, rounds=5):
    """Return the least seconds of processor time of a call, whose kernels are compiled before."""
    call()
    took = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        took.append(time.process_time() - began)
    return min(took)


def peak_bytes(call):
    """Return the largest memory of arrays during a call, in bytes."""
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def particle_step(tokens, runs, steps):
    """Return a call that moves particles."""
    system = physics.ParticleSystem(tokens)
    x = np.random.default_rng(0).standard_normal((runs, tokens, 2))
    return lambda: system.advance(x, 0.02, steps)


def fast_force(tokens):
    """Return a call of the fast sum."""
    system, x = physics.ParticleSystem(tokens), np.random.default_rng(0).standard_normal((tokens, 2))
    return lambda: physics.forces(x, system, method="fast")


def network_step(model, runs=1, steps=2):
    """Return a call that trains networks."""
    training = nets.Training(model, runs=runs, device="cpu")
    return lambda: training.advance(steps)


def flops(tokens, dim):
    """Return the operations of a step of an embedding MLP: products of examples and of tokens."""
    examples = 0.8 * tokens**2
    return 6 * (examples * (HIDDEN[0] * HIDDEN[1] + HIDDEN[1] * tokens) + 2 * tokens * dim * HIDDEN[0])


def law(frames):
    """Return a call that fits a linear law of 29 signals by least squares."""
    signals = np.random.default_rng(0).standard_normal((frames, 29)).cumsum(axis=0)
    return lambda: fit_trajectories(signals, penalty=None)


def pair_sums(tokens):
    """Return the number of pair sums."""
    return tokens * (tokens + 1) / 2


def trained(networks):
    """Return a call that trains networks with constant attention and records them."""
    return lambda: nets.train(
        nets.ConstantAttention(), runs=networks, steps=100, record=1, observables=(), device="cpu"
    )


def parts():
    """Yield name, sizes, what each is called, the measure of a size, the unit, and the theory of a size."""
    attention, mlp = nets.ConstantAttention(), nets.EmbeddingMLP
    timed, weighed = processor_time, peak_bytes
    yield (
        "particles, direct sum: a step",
        (17, 31, 59, 83, 113),
        "N",
        lambda n: timed(particle_step(n, 1, 5)) / 5,
        "s",
        lambda n: pair_sums(n) ** 2,
    )
    yield (
        "particles, fast sum: forces",
        (199, 337, 499, 701, 997),
        "N",
        lambda n: timed(fast_force(n), 2),
        "s",
        lambda n: pair_sums(n) * np.log(pair_sums(n)),
    )
    yield (
        "particles, N = 17: 20 steps",
        (10, 100, 1000, 10_000),
        "runs",
        lambda n: timed(particle_step(17, n, 20), 3),
        "s",
        float,
    )
    yield (
        "embedding MLP, d = 128: a step",
        (17, 31, 59, 83, 113),
        "p",
        lambda n: timed(network_step(mlp(n, 128))) / 2,
        "s",
        lambda n: flops(n, 128),
    )
    yield (
        "embedding MLP, p = 59: a step",
        (32, 128, 512, 2048),
        "d",
        lambda n: timed(network_step(mlp(59, n))) / 2,
        "s",
        lambda n: flops(59, n),
    )
    yield (
        "constant attention: 20 steps",
        (8, 64, 512, 4096),
        "networks",
        lambda n: timed(network_step(attention, n, 20), 3),
        "s",
        float,
    )
    yield (
        "least squares, 29 signals",
        (200, 2000, 20_000, 200_000),
        "frames",
        lambda n: timed(law(n)),
        "s",
        lambda n: n * 30**2 + 30**3,
    )
    yield (
        "memory: particles, N = 17",
        (10, 100, 1000, 10_000),
        "runs",
        lambda n: weighed(lambda: physics.simulate(steps=100, runs=n)),
        "bytes",
        lambda n: n * 17 * 2 * 8 * FRAMES,
    )
    yield (
        "memory: constant attention",
        (10, 100, 1000),
        "networks",
        lambda n: weighed(trained(n)),
        "bytes",
        lambda n: n * attention_bytes(attention),
    )


def attention_bytes(model):
    """Return bytes of frames, parameters and examples of one network."""
    numbers = sum(np.prod(shape) for shape in model.architecture.shapes(model.tokens, model.dim).values())
    return 4 * (FRAMES * model.tokens * model.dim + STORES * numbers) + 8 * numbers + 8 * model.tokens**2


def main():
    """Measure all parts, print slopes, write the numbers, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file for the numbers, as JSON")
    parser.add_argument("--figure", type=Path, help="file for the figure")
    options = parser.parse_args()
    rows = []
    for name, sizes, label, measure, unit, theory in parts():
        measured = [float(measure(size)) for size in sizes]
        expected = [float(theory(size)) for size in sizes]
        slopes = [
            float(np.polyfit(np.log(sizes[-3:]), np.log(values[-3:]), 1)[0])
            for values in (measured, expected)
        ]
        rows.append(
            {"what": name, "by": label, "sizes": sizes, unit: measured, "theory": expected}
            | {"slope": slopes[0], "slope_in_theory": slopes[1]}
        )
        print(f"{name:42} by {label:9} slope {slopes[0]:5.2f}, in theory {slopes[1]:5.2f}; {measured}")
    if options.out:
        options.out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    if options.figure:
        draw(rows, options.figure)


def draw(rows, path):
    """Draw every part, with its theory as a line through the last point."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with style(9.0):
        figure, axes = plt.subplots(3, 3, figsize=(10.0, 8.0), layout="constrained")
        for ax, row in zip(axes.flat, rows, strict=True):
            unit = "s" if "s" in row else "bytes"
            measured, expected = np.array(row[unit]), np.array(row["theory"])
            text = f"theory: slope {row['slope_in_theory']:.2f}"
            ax.loglog(row["sizes"], expected * (measured[-1] / expected[-1]), label=text)
            ax.loglog(row["sizes"], measured, "o", label=f"measured: {row['slope']:.2f}")
            ax.set(xlabel=row["by"], ylabel=unit)
            ax.set_title(row["what"])
            ax.set_xticks(
                row["sizes"],
                [
                    f"{size:g}" if size < 10_000 else f"{size:.0e}".replace("e+0", "e")
                    for size in row["sizes"]
                ],
            )
            ax.xaxis.minorticks_off()
            ax.legend(frameon=False)
        figure.savefig(path, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
