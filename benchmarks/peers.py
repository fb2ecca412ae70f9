"""Speed beside the peers that people would pick, in one run: ``python benchmarks/peers.py NAME …``.

Every peer does the same work in the way that its documentation advises, and its result is compared with ours
before a ratio is stated. Where there are several ways, the fastest in a first round is taken. A peer that is
not installed is named: ``pip install "jax[cpu]" optax pysindy``. ``benchmarks/without_avx512.c`` says how to
measure as on a processor without AVX-512.
"""

import argparse
import contextlib
import json
import os
import warnings
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch
from llvmlite.binding import get_host_cpu_features
from numba import get_num_threads
from sklearn.linear_model import Lasso, LinearRegression

import nets
import physics
from analysis import LinearODERegressor
from grokphys.bench.timing import compare, machine, seconds, table

RATES = {"learning_rate": 0.01, "weight_decay": 0.5}
STEP, SOFTENING = 0.02, 0.1


# -- one step of particles for all ---------------------------------------------------------------------------


def particle_step(xp, tokens):
    """Return a step of particles in two dimensions by arrays of NumPy, JAX or PyTorch.

    The coordinates lie in planes of their own, which all three compute three to five times as fast as arrays
    whose last axis has two entries; sums over partners are products of matrices.

    Parameters
    ----------
    xp : module
        `numpy`, `jax.numpy` or `torch`.
    tokens : int
        Number of particles. All constants are 1, and classes are i + j modulo `tokens`.

    Returns
    -------
    callable
        A function of positions of shape (..., 2, tokens) that returns those after a step of size `STEP`.
    """
    first, second = np.triu_indices(tokens)
    label = (first + second) % tokens
    same = label[:, None] == label
    alike, unlike = physics.ParticleSystem(tokens).weights
    strength = np.where(same, alike, -unlike)
    members = (first[:, None] == np.arange(tokens)) * 1.0 + (second[:, None] == np.arange(tokens))
    same, strength, beside, members = (
        xp.asarray(array) for array in (same, strength, strength * ~np.eye(len(same), dtype=bool), members)
    )

    def step(x):
        s = x[..., first] + x[..., second]
        a, b = s[..., 0, :], s[..., 1, :]
        squared = (a[..., :, None] - a[..., None, :]) ** 2 + (b[..., :, None] - b[..., None, :]) ** 2
        squared = squared + SOFTENING**2
        radial = -strength * xp.where(same, 1 / xp.sqrt(squared), 1 / squared)
        ahead = a[..., :, None] * a[..., None, :] + b[..., :, None] * b[..., None, :] > 0
        unit = s / xp.sqrt((s**2).sum(-2))[..., None, :]
        along = unit @ xp.swapaxes(xp.where(ahead, beside, 0.0), -1, -2)
        force = radial.sum(-1)[..., None, :] * s - s @ xp.swapaxes(radial, -1, -2) + along
        x = x + STEP * force @ members
        x = x - x.mean(-1)[..., None]
        return x / xp.sqrt((x**2).mean(-1))[..., None]

    return step


def numpy_steps(start, steps):
    """Return positions (runs, tokens, 2) after some steps by NumPy, run by run, which fits into the cache."""
    step, ends = particle_step(np, start.shape[1]), []
    for x in np.swapaxes(start, -1, -2):
        for _ in range(steps):
            x = step(x)
        ends.append(x.T)
    return np.array(ends)


def network_loss(model, functions, split, cross_entropy):
    """Return the loss of one network as a function of its parameters, tokens and labels.

    The first layer is computed for each token, so that no gather precedes a product. The grid of all pairs,
    on which nothing is gathered, and products of one-hot tokens were slower.
    """
    names, activate = model.architecture.layers, getattr(functions, model.architecture.activation)
    halves = 2 if model.architecture.combine == "concatenate" else 1

    def loss(parameters, tokens, labels):
        layer = split(parameters[f"{names[0]}.weight"], halves)
        left = parameters["embedding"] @ layer[0] + parameters[f"{names[0]}.bias"]
        right = parameters["embedding"] @ layer[-1]
        states = left[tokens[:, 0]] + right[tokens[:, 1]]
        for name in names[1:]:
            states = activate(states) @ parameters[f"{name}.weight"] + parameters[f"{name}.bias"]
        return cross_entropy(states, labels)

    return loss


# -- JAX ---------------------------------------------------------------------------------------------------


def jax_ways(mapped, begin, members, **options):
    """Return functions of JAX, each with its start: on one device, or shared by one device a thread."""
    import jax

    axis, devices, ways = jax.sharding.PartitionSpec("members"), jax.devices(), {}
    for count in {1, len(devices)} if members % len(devices) == 0 else {1}:
        mesh = jax.sharding.Mesh(devices[:count], axis)
        for name, function in mapped.items():
            shared = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=axis, out_specs=axis), **options)
            start = jax.device_put(begin(), jax.sharding.NamedSharding(mesh, axis))
            ways[f"{name}, {count} of {len(devices)} devices"] = shared, start
    return ways


def jax_particles(tokens, start, steps):
    """Return the ways to move particles: all runs at once, or some at a time."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    step = particle_step(jnp, tokens)

    def run(x):
        return jax.lax.scan(lambda x, _: (step(x), None), x, None, length=steps)[0]

    mapped = {
        "vmap": run,
        "lax.map": partial(jax.lax.map, run),
        "lax.map by 8": partial(jax.lax.map, run, batch_size=8),
    }
    ways = jax_ways(mapped, lambda: jnp.asarray(np.swapaxes(start, -1, -2)), len(start))
    return {name: (lambda f=f, x=x: np.asarray(f(x)).swapaxes(-1, -2)) for name, (f, x) in ways.items()}


def jax_training(ensemble, steps):
    """Return the ways to train networks by optax: all at once or in turn.

    Examples in blocks, gradients of gathers by gathers, one-hot labels, an optimizer of flat parameters, and
    options of XLA were no faster; the grid of all pairs took 1.3 times as long at p = 31, and 2.6 times with
    constant attention.
    """
    import jax
    import jax.numpy as jnp
    import optax

    task, entropies = ensemble.model.task, optax.softmax_cross_entropy_with_integer_labels
    examples = [jnp.asarray(values[ensemble.train], jnp.int32) for values in (task.inputs, task.labels)]
    loss = network_loss(ensemble.model, jax.nn, jnp.split, lambda *given: entropies(*given).mean())
    optimizer = optax.adamw(**RATES)

    def train(carry, examples):
        def step(carry, _):
            parameters, state = carry
            updates, state = optimizer.update(jax.grad(loss)(parameters, *examples), state, parameters)
            return (optax.apply_updates(parameters, updates), state), None

        return jax.lax.scan(step, carry, None, length=steps)[0]

    def call(way, start):
        start[0] = way(*start)
        return np.asarray(start[0][0]["embedding"])

    def begin():
        parameters = {name: jnp.asarray(value, jnp.float32) for name, value in ensemble.parameters.items()}
        return [(parameters, jax.vmap(optimizer.init)(parameters)), examples]

    mapped = {
        "vmap": jax.vmap(train),
        "lax.map": lambda *members: jax.lax.map(lambda member: train(*member), members),
    }
    ways = jax_ways(mapped, begin, ensemble.runs, donate_argnums=0)
    return {name: partial(call, *way) for name, way in ways.items()}


# -- PyTorch -----------------------------------------------------------------------------------------------


def torch_particles(tokens, start, steps):
    """Return the way to move particles: the step for all runs at once, compiled."""
    step = torch.compile(particle_step(torch, tokens))

    @torch.no_grad()
    def call():
        x = torch.as_tensor(np.swapaxes(start, -1, -2).copy())
        for _ in range(steps):
            x = step(x)
        return x.numpy().swapaxes(-1, -2)

    return {"compile": call}


def torch_training(ensemble, steps):
    """Return the ways to train networks by `torch.func`: gradients of all at once, compiled; fused AdamW."""
    task, functions = ensemble.model.task, torch.nn.functional
    examples = [torch.as_tensor(values[ensemble.train]) for values in (task.inputs, task.labels)]
    loss = network_loss(ensemble.model, functions, torch.chunk, functions.cross_entropy)
    gradients = torch.compile(torch.func.vmap(torch.func.grad(loss)))
    parameters = {
        name: torch.tensor(value, dtype=torch.float32) for name, value in ensemble.parameters.items()
    }
    rates = {"lr": RATES["learning_rate"], "weight_decay": RATES["weight_decay"]}
    optimizer = torch.optim.AdamW(parameters.values(), **rates, fused=True)

    def call():
        for _ in range(steps):
            for name, gradient in gradients(parameters, *examples).items():
                parameters[name].grad = gradient
            optimizer.step()
        return parameters["embedding"].numpy()

    return {"vmap, compile": call}


# -- the same work on both sides ---------------------------------------------------------------------------


def particles(tokens, runs, steps, options):
    """Steps of particles, in float64."""
    system = physics.ParticleSystem(tokens)
    start = np.random.default_rng(0).standard_normal((runs, tokens, 2))
    state = start.copy()

    def ours(count=steps):
        np.copyto(state, start)
        system.advance(state, STEP, count)
        return state

    few = max(1, steps // 50)
    peers = {
        "NumPy": lambda: {"": partial(numpy_steps, start, few)},
        "JAX": partial(jax_particles, tokens, start, few),
        "PyTorch": partial(torch_particles, tokens, start, few),
    }
    what = f"particles, N = {tokens}, {runs} {'run' if runs == 1 else 'runs'}: a step and run"
    return beside(what, ours, partial(ours, few), peers, (steps * runs, few * runs), options)


def training(model, runs, steps, options):
    """Steps of networks on 80 % of all pairs, in float32."""
    settings = {"runs": runs, "device": "cpu", "train_fraction": 0.8} | RATES
    ours, check = nets.Training(model, **settings), nets.Training(model, **settings)
    few = max(1, steps // 10)

    def first_steps():
        check.advance(few)
        return check.machine.point_sets()

    work = ours.ensemble, few
    peers = {"JAX": partial(jax_training, *work), "PyTorch": partial(torch_training, *work)}
    name = f"{type(model).__name__}({model.tokens}, {model.dim}), {runs} networks: a step and network"
    return beside(name, lambda: ours.advance(steps), first_steps, peers, (steps * runs, few * runs), options)


def laws(options):
    """Lasso and least squares of all targets of one trajectory, whose signals are collinear."""
    signals = np.asarray(physics.example("ding").observables["fourier_signals"][0], np.float64)
    X, Y = signals[:-1], np.diff(signals, axis=0)
    count, with_constant = Y.shape[1], np.column_stack([X, np.ones(len(X))])

    def sindy(optimizer):
        import pysindy

        model = pysindy.SINDy(optimizer=optimizer, feature_library=pysindy.PolynomialLibrary(1))
        return {"": lambda: model.fit(X, t=1.0, x_dot=Y).coefficients()[:, 1:]}

    rows = []
    for name, regressor, theirs in (
        ("Lasso", LinearODERegressor(alpha=0.01, tol=1e-10), Lasso(0.01, tol=1e-10, max_iter=100_000)),
        ("least squares", LinearODERegressor(penalty=None), LinearRegression()),
    ):
        fit = partial(lambda model: model.fit(X, Y).coef_, theirs)
        peers = {"PySINDy": partial(sindy, theirs), "scikit-learn": partial(dict, {"": fit})}
        if name == "least squares":
            peers["NumPy"] = lambda: {"": lambda: np.linalg.lstsq(with_constant, Y)[0][:-1].T}
        what = f"{name}, {count} targets of {X.shape[1]} signals, {len(X)} frames: a target"
        ours = partial(lambda model: model.fit(X, Y).coef_, regressor)
        rows += beside(what, ours, ours, peers, (count, count), options)
    return rows


def beside(what, ours, check, peers, units, options):
    """Return rows of one kind of work: every peer in its fastest way, once its result has been compared.

    `units` are those of a call of `ours`, and those of `check`, which are the units of each peer too.
    """
    expected, references, errors = np.asarray(check()), {}, {}
    for name in [name for name in peers if name in options.peers]:
        took = {}
        try:
            for way, call in peers[name]().items():
                label = f"{name}, {way}" if way else name
                errors[label] = float(np.abs(np.asarray(call()) - expected).max() / np.abs(expected).max())
                took[label] = min(seconds(call), seconds(call)), call
        except ImportError as error:
            print(f"{what}: {name} is not measured: {error}")
            continue
        label = min(took, key=lambda label: took[label][0])
        references[label] = took[label][1], units[1]
    rows = compare(what, ours, references, units=units[0], rounds=options.rounds)
    return [row | {"error": errors[row["reference"]]} for row in rows]


WORK = {
    "particles": lambda options: particles(17, 1000, 100, options) + particles(59, 1, 100, options),
    "nets": lambda options: (
        training(nets.ConstantAttention(), 100, 100, options)
        + training(nets.EmbeddingMLP(31, 64), 8, 40, options)
        + training(nets.EmbeddingMLP(59, 128), 4, 20, options)
    ),
    "laws": laws,
}
PEERS = {
    "NumPy": "numpy",
    "JAX": "jax",
    "PyTorch": "torch",
    "scikit-learn": "scikit-learn",
    "PySINDy": "pysindy",
}


def main():
    """Measure what the command line names, print tables, and write all numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(WORK), metavar="NAME", help=" ".join(WORK))
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="file for all numbers, as JSON")
    options = parser.parse_args()
    os.environ["JAX_NUM_CPU_DEVICES"] = str(get_num_threads())
    warnings.simplefilter("ignore")  # of Lasso fits that scikit-learn calls not converged
    vectors = next((name for name in ("avx512f", "avx2") if get_host_cpu_features().get(name)), "no AVX2")
    versions = {}
    for peer, package in PEERS.items():
        with contextlib.suppress(PackageNotFoundError):
            versions[peer] = version(package)
    print(f"{vectors}; {versions}; GPU: not measured")
    written = {"machine": machine() | {"vectors": vectors}, "versions": versions, "rows": []}
    for name in options.names:
        rows = WORK[name](options)
        written["rows"] += rows
        print(table(name, rows).text(), end="\n\n")
    if options.out:
        options.out.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
