"""What the goldens hold: each case computes arrays from fixed seeds, by names that scripts call."""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import analysis
import nets
import physics
from analysis.circles.fourier import signals_and_final
from analysis.laws.lasso import Moments, solve
from nets.interventions import with_signals

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A function that computes arrays, and how far they may be off, relative to the largest number."""

    family: str
    name: str
    compute: Callable[[], Arrays]
    tolerance: float


CASES: dict[str, Case] = {}


def case(family: str, tolerance: float = 1e-9):
    """Register a function as a case of a family, which is one file of goldens."""

    def register(function):
        name = function.__name__.strip("_")
        CASES[f"{family}-{name}"] = Case(family, name, function, tolerance)
        return function

    return register


def public(name: str) -> Any:
    """Return a public function of `analysis`, from the top of the package or from its subpackage."""
    places = ("", ".circles", ".laws", ".comparison", ".phases", ".stats")
    modules = [importlib.import_module(f"analysis{place}") for place in places]
    modules += [importlib.import_module("physics.neurons"), importlib.import_module("physics.theory")]
    modules += [physics]
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def recorded(trajectory: Any) -> dict[str, Any]:
    """Return the positions and the observables of a trajectory."""
    return {"positions": trajectory.positions, "steps": trajectory.steps, **trajectory.observables}


def interval(value: Any) -> list[float]:
    """Return an estimate and its bounds."""
    return [value.estimate, value.low, value.high]


# Systems. Thirty steps are far below the time in which the particles would amplify rounding to 1e-9.


def moved(system: Any, observables: Any = (), **options: Any) -> dict[str, Any]:
    """Simulate three runs for thirty steps, and record four frames."""
    settings = {"steps": 30, "runs": 3, "record": 10, "seed": 20} | options
    return recorded(physics.simulate(system, observables=observables, **settings))


MEASURES = ("circle_ratio", "grid_imperfections", "mean_force", "potential")
PLANAR = np.array([(i, j) for i in range(11) for j in range(i, 11) if (2 * i + j) % 3])


def particle_systems() -> dict[str, Any]:
    """Return particle systems by name: every number of dimensions, and every way to compute the forces."""
    particles = physics.ParticleSystem
    return {
        "plane": particles(),
        "few": particles(5, alignment=2.0),
        "line": particles(7, dim=1),
        "space": particles(11, dim=3, attraction=0.7, repulsion=1.3, alignment=0.4),
        "five-dimensions": particles(13, dim=5, alignment=2.0),
        "without-alignment": particles(17, alignment=0.0),
        "without-softening": particles(11, softening=0.0),
        "training-set": particles(11, pairs=PLANAR),
        "modulus": particles(12, modulus=5),
        "group": particles(group=public("direct_product")(public("cyclic")(2), public("cyclic")(6))),
        "euler": particles(9, normalise=False),
        "adaptive": particles(9, integrator="adaptive", alignment=0.0),
        "many": particles(59),
    }


def register_particles() -> None:
    """Register one case for each particle system."""
    for name in particle_systems():

        def compute(name: str = name) -> Arrays:
            system = particle_systems()[name]
            few = {"steps": 4, "runs": 1, "record": 2} if name == "many" else {}
            return moved(system, MEASURES if system.dim == 2 else ("mean_force", "potential"), **few)

        compute.__name__ = name
        case("particles")(compute)


register_particles()


@case("particles")
def forces():
    """Forces by both sums at fixed positions."""
    x = np.random.default_rng(4).standard_normal((59, 2))
    system = physics.ParticleSystem(59)
    return {
        "direct": physics.forces(x, system, method="direct"),
        "fast": physics.forces(x, system, method="fast", tolerance=1e-9),
        "fast at 1e-3": physics.forces(x, system, method="fast", tolerance=1e-3),
        "five dimensions": physics.forces(np.resize(x, (2, 11, 5)), physics.ParticleSystem(11, dim=5)),
        "no softening": physics.forces(x, physics.ParticleSystem(59, softening=0.0)),
        "potential": system.potential(x[None]),
        "velocity": physics.ParticleSystem(59, integrator="adaptive").velocity(x[None]),
    }


@case("particles")
def shapes():
    """Which positions are circles, and how imperfect grids are."""
    x = physics.simulate(physics.ParticleSystem(alignment=1.0), runs=40, steps=100, seed=8).final
    angle = 2 * np.pi * 3 * np.arange(17) / 17
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    found = analysis.structures(np.concatenate([np.repeat(circle[None], 2, axis=0), x[:6]]), modulus=17)
    return {
        "circle": physics.is_circle(circle),
        "imperfections": physics.grid_imperfections(circle),
        "structures": found.imperfections,
        "circles": found.circle,
        "share": interval(found.circles),
    }


def spring(r2, strength):
    """Springs to every other point."""
    return -strength


def shell(r2, strength, radius):
    """Attract at large distances and repel at small ones."""
    return strength * (radius**2 / r2 - 1)


def clustering(r2, same_class, attraction, repulsion, softening):
    """Attract pair sums of a class and repel others."""
    r2 += softening**2
    return -attraction / np.sqrt(r2) if same_class else repulsion / r2


@case("systems")
def pair_forces():
    """Forces of one's own between tokens and between pair sums."""
    on_sums = physics.PairForces(clustering, 7, 2, on="pair sums", parameters=[0.01, 0.02, 0.1])
    modulus = physics.PairForces(clustering, 6, 3, on="pair sums", parameters=[0.01, 0.02, 0.1], modulus=4)
    shells = physics.PairForces(shell, 9, 3, parameters=[1.0, 1.5], integrator="adaptive")
    parts = {
        "springs": moved(physics.PairForces(spring, 9, 2, parameters=[0.5])),
        "shells": moved(shells, ("mean_force",), step_size=0.01),
        "sums": moved(on_sums),
        "modulus": moved(modulus),
    }
    return {f"{name} {key}": value for name, part in parts.items() for key, value in part.items()}


@case("systems")
def effective_theory():
    """The flow of the effective theory, for numbers, classes and a group."""
    sets = physics.random_training_sets(physics.EffectiveTheory(8), size=20, seed=3)
    pairs = physics.Operation(8).samples[sets[0]]
    theories = {
        "addition": physics.EffectiveTheory(10),
        "plane": physics.EffectiveTheory(8, dim=2, pairs=pairs),
        "modulus": physics.EffectiveTheory(7, dim=3, modulus=7),
        "group": physics.EffectiveTheory(group=public("direct_product")(*[public("cyclic")(3)] * 2), dim=2),
    }
    result = {}
    for name, theory in theories.items():
        E = np.random.default_rng(5).standard_normal((4, theory.tokens, theory.dim))
        result |= {f"{name} {key}": value for key, value in moved(theory).items()}
        result[f"{name} loss"] = theory.loss(E)
        result[f"{name} gradient"] = theory.gradient(E)
        result[f"{name} hessian"] = theory.hessian()
        result[f"{name} spectrum"] = theory.spectrum
        result[f"{name} rates"] = [theory.grokking_rate, theory.relaxation_rate, theory.grokking_steps()]
        result[f"{name} solution"] = theory.solve(E, [0.0, 1.0, 100.0])
    return result


@case("systems")
def affine_flow():
    """An affine flow, regular and singular, in one and in two columns."""
    A = np.random.default_rng(1).standard_normal((5, 5)) - 2 * np.eye(5)
    A[4] = A[3]
    b = np.arange(10.0).reshape(5, 2) / 7
    flow = physics.AffineFlow(A, b)
    return moved(flow) | {"solution": flow.solve(np.ones((5, 2)), [0.0, 0.1, 3.0])}


@case("systems")
def linear_network():
    """A linear decoder whose inputs move, as free points and as sums of embeddings."""
    labels = np.random.default_rng(2).standard_normal((4, 2))
    free = physics.LinearNetwork(labels, decay=0.01)
    sums = physics.LinearNetwork(labels, pairs=[[0, 1], [1, 2], [0, 3], [2, 2]], network_rate=0.3)
    parts = {"free": moved(free), "sums": moved(sums)}
    result = {f"{name} {key}": value for name, part in parts.items() for key, value in part.items()}
    state = parts["free"]["positions"][0, -1]
    return result | {"velocity": free.velocity(state), "energy": free.internal_energy(state)}


@case("systems")
def lottery():
    """The lottery of the frequencies: its flow, its winners and their times."""
    race = physics.FourierLottery(23, neurons=6)
    theta, xi = race.unpack(race.start(np.random.default_rng(0)))
    times = race.blowup_times(theta, xi)
    even = physics.FourierLottery(10, neurons=2)
    start = {"initial": race.pack(theta, xi), "step_size": 0.03 * times.min(), "runs": 1}
    result = {f"odd {key}": value for key, value in moved(race, **start).items()}
    result |= {f"even {key}": value for key, value in moved(even).items()}
    C, M = race.conserved(theta, xi)
    velocity = np.stack(race.velocity(theta, xi))
    solution = np.stack(race.solve(theta, xi, [0.0, 0.5 * times.min(), 0.99 * times.min()]))
    found = {"times": times, "winners": race.winners(theta, xi), "C": C, "M": M}
    return result | found | {"velocity": velocity, "solution": solution}


# Theory: closures, critical sizes, rates, quality. All integers are exact.


@case("theory")
def closures():
    """Closures of training sets of numbers, classes and groups."""
    theories = {
        "addition": physics.EffectiveTheory(10),
        "modulus": physics.EffectiveTheory(11, modulus=11),
        "Klein": physics.EffectiveTheory(group=public("direct_product")(*[public("cyclic")(2)] * 3)),
        "S3": physics.EffectiveTheory(group=public("symmetric")(3)),
        "A4": physics.EffectiveTheory(group=public("alternating")(4)),
        "D4": physics.EffectiveTheory(group=public("dihedral")(4)),
        "Q8": physics.EffectiveTheory(group=public("quaternion")()),
    }
    result = {}
    for name, theory in theories.items():
        count = len(theory.operation.samples)
        for share in (0.4, 0.7):
            sets = physics.random_training_sets(theory, size=round(share * count), sets=40, seed=6)
            ended = physics.closures(theory, sets)
            label = f"{name} {share}"
            result[f"{label} sets"] = sets.sum(axis=0)
            for key in ("implied", "quality", "accuracy", "complete", "augmented"):
                value = getattr(ended, key)
                result[f"{label} {key}"] = value.sum(axis=0) if key == "augmented" else value
            if theory.operation.commutes:
                result[f"{label} nullity"] = ended.nullity
                result[f"{label} rates"] = physics.grokking_rates(theory, sets)
        result[f"{name} critical"] = physics.critical_sizes(theory, sets=60, seed=7)
    return result


@case("theory")
def quality():
    """Quality and predicted accuracy of embeddings of numbers and of a group."""
    theory = physics.EffectiveTheory(10, pairs=physics.Operation(10).samples[::2])
    E = np.arange(10.0)[:, None] + 0.01 * np.random.default_rng(3).standard_normal((12, 10, 1))
    group = physics.EffectiveTheory(group=public("symmetric")(3))
    matrices = np.random.default_rng(5).integers(-1, 2, (9, 6, 2, 2)).astype(float)
    return {
        "quality": physics.representation_quality(E, theory, delta=0.02),
        "accuracy": physics.predicted_accuracy(E, theory, delta=0.02),
        "augmented": public("augmented_training_set")(E, theory, 0.02),
        "matrices": physics.representation_quality(matrices, group, delta=0.5),
        "ideal": [public("ideal_quality")(theory), public("ideal_accuracy")(theory)],
        "parallelograms": theory.parallelograms,
        "implied": theory.implied_parallelograms,
    }


# Networks. In float64, thirty steps of either engine differ from one machine to another by less than 1e-11;
# in float32, rounding is 6e-8, and AdamW divides by gradients that are nearly zero.


def models() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return models by name, each with the settings of its training."""
    inner = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "layers")
    spectral = ("neuron_purity", "restricted_loss", "excluded_loss")
    layers = {"observables": inner}
    return {
        "attention": (
            nets.ConstantAttention(11, hidden=16),
            {"observables": (*inner, "gradient", *spectral)},
        ),
        "attention-3d": (nets.ConstantAttention(7, dim=3, hidden=8, initialisation="pytorch"), layers),
        "mlp": (
            nets.EmbeddingMLP(13, dim=16, hidden=(20, 20)),
            {"observables": (*inner, "gradient", *spectral)},
        ),
        "mlp-even": (nets.EmbeddingMLP(7, dim=6, hidden=(12,), activation="tanh", even=0.5), layers),
        "mlp-batches": (nets.EmbeddingMLP(11, dim=8, hidden=(12, 12)), {"batch_size": 20, **layers}),
        "mlp-sgd": (
            nets.EmbeddingMLP(11, dim=8, hidden=(12, 12)),
            {"optimizer": "sgd", "betas": (0.9, 0.99)},
        ),
        "toy-regression": (nets.ToyAddition(hidden=(20, 20)), {"observables": (*inner, "quality")}),
        "toy-classification": (nets.ToyAddition(8, dim=2, hidden=(20, 20), kind="classification"), layers),
        "two-layer": (nets.TwoLayer(11, hidden=24), {"train_fraction": 1.0, "observables": inner[:2]}),
        "two-layer-quadratic": (
            nets.TwoLayer(11, hidden=24, activation="quadratic", start="single_frequency"),
            layers,
        ),
        "group": (
            nets.GroupDecoder(hidden=(20, 20)),
            {"observables": (*inner, "quality"), "train_fraction": 0.7},
        ),
        "transformer": (nets.TokenTransformer(7, dim=16, depth=1, heads=2, width=16, dropout=0.1), layers),
        "images": (nets.ImageMLP(hidden=(20, 20)), {"train_examples": range(100)}),
    }


MODELS = tuple(models())
SQUARED = ("toy-regression", "group")


@functools.cache
def trained(name: str, engine: str, dtype: str) -> dict[str, Any]:
    """Train two members for thirty steps, each with its own rates, and return what was recorded."""
    model, settings = models()[name]
    options = {
        "runs": 2,
        "steps": 30,
        "record": [0, 1, 30],
        "seed": 11,
        "learning_rate": [0.003, 0.001],
        "weight_decay": [1.0, 0.2],
        "embedding_learning_rate": 0.002,
        "embedding_weight_decay": [1.0, 0.2],
        "train_fraction": 0.8,
    }
    return recorded(nets.train(model, engine=engine, dtype=dtype, device="cpu", **options | settings))


def register_models() -> None:
    """Register the trainings of every model, by both engines and in both number types."""
    for name in MODELS:
        engines = ("torch",) if name == "transformer" else ("torch", "fused")
        for engine in engines:
            for dtype in ("float64", "float32"):

                def compute(name: str = name, engine: str = engine, dtype: str = dtype) -> Arrays:
                    arrays = trained(name, engine, dtype)
                    if dtype == "float64":
                        return arrays
                    return {key: arrays[key] for key in ("positions", "steps", "train_loss")}

                compute.__name__ = f"{name}-{engine}-{dtype}"
                case("nets", 1e-9 if dtype == "float64" else 1e-4)(compute)


register_models()


@case("nets")
def networks():
    """What trained networks answer, and how an intervention in their embedding changes it."""
    run = nets.train(
        nets.EmbeddingMLP(11, dim=8, hidden=(12,)), runs=2, steps=30, record=30, seed=4, dtype="float64",
        weight_decay=1.0, observables=("layers",),
    )  # fmt: skip
    alive = nets.networks(run)
    E = run.final
    weights = alive.neuron_weights()
    spectrum = analysis.neuron_spectrum(**weights)
    return {
        "accuracy": alive.accuracy("validation"),
        "loss": alive.loss("train"),
        "purity": spectrum.purity,
        "frequency": spectrum.frequency,
        "magnitude": spectrum.magnitude,
        "kind": spectrum.kind,
        "scaled": nets.interventions.scale_frequency(E[0], 2, 1.5),
        "kept": nets.keep_frequencies(E[0], [1, 3]),
        "signals": with_signals(E[0], [1.0, 2.0, 3.0, 4.0, 5.0]),
    } | {f"weights {key}": value for key, value in weights.items()}


# Analysis, on the run that comes with the package.


@functools.cache
def ding() -> Any:
    """Return the embedded run."""
    return physics.example("ding")


@functools.cache
def few_signals() -> np.ndarray:
    """Return eight Fourier signals of the embedded run in its first 400 steps."""
    return np.ascontiguousarray(np.asarray(ding().observables["fourier_signals"])[0, :400, 4:12])


@case("circles")
def signals():
    """Signals, survivors, circularity and planes of the embedded run."""
    run = ding()
    E = run.final[0]
    signals = analysis.fourier_signals(E).values
    return {
        "signals": signals,
        "power": signals**2,
        "course": signals_and_final(run)[0][:, ::10],
        "shares": signals**2 / np.sum(signals**2),
        "survivors": analysis.surviving_frequencies(E),
        "lenient": analysis.surviving_frequencies(E, factor=0.5),
        "survives": public("survives")(analysis.fourier_signals(run.positions[0, ::20])).values,
        "circularity": analysis.circularity(run.positions[0, ::20]).values,
        "dimension": public("effective_dimension")(run.positions[0, ::20]),
        "planes": np.stack([np.abs(analysis.frequency_plane(E, k).points) for k in (7, 13)]),
        "fractions": public("principal_components")(E).fractions[:20],
    }


@case("circles")
def interventions():
    """Circles of the embedded run that are kept, scaled and planted."""
    E = ding().final[0]
    return {
        "kept": nets.keep_frequencies(E, [7, 8])[:, :4],
        "scaled": nets.interventions.scale_frequency(E, 7, 0.25)[:, :4],
    }


@case("neurons")
def spectra():
    """Spectra of random neurons, and of neurons of single waves."""
    generator = np.random.default_rng(7)
    a = np.arange(17)
    waves = np.cos(2 * np.pi * a[:, None] * np.array([1, 2, 5, 8]) / 17 + np.array([0.1, 0.7, 2.0, 3.0]))
    noisy = np.concatenate([waves, generator.standard_normal((17, 5))], axis=1)
    out = np.concatenate([np.roll(waves, 2, axis=0), generator.standard_normal((17, 5))], axis=1).T
    found = analysis.neuron_spectrum(noisy, out)
    keys = ("magnitude", "frequency", "purity", "kind", "misalignment", "theta", "xi")
    return {key: getattr(found, key) for key in keys if hasattr(found, key)}


@case("neurons")
def logits():
    """The spectrum of logits, and losses without some frequencies."""
    generator = np.random.default_rng(9)
    p = 13
    a, b, c = np.ogrid[:p, :p, :p]
    table = 3 * np.cos(2 * np.pi * 4 * (a + b - c) / p) + np.cos(2 * np.pi * (a + b - c) / p)
    table = table + 0.5 * generator.standard_normal((p, p, p))
    found = public("logit_spectrum")(table)
    return {
        "coefficients": found.coefficients,
        "explained": found.explained,
        "ghosts": found.ghosts,
        "restricted": public("restricted_loss")(table, [4]),
        "excluded": public("excluded_loss")(table, [4]),
        "ablation": public("frequency_ablation")(table),
    }


@case("laws", 1e-7)  # the Lasso stops at a gap of 1e-8 of its objective, after as many sweeps as that takes
def lasso():
    """Lasso and elastic net of the signals, alone and as a batch."""
    x = few_signals()
    model = analysis.LinearODERegressor(alpha=0.01).fit(x[:-1], np.diff(x, axis=0))
    mixed = analysis.LinearODERegressor("elastic-net", alpha=0.005, l1_ratio=0.7)
    mixed = mixed.fit(x[:-1], np.diff(x, axis=0))
    states, changes = x[:-1].astype(float), np.diff(x.astype(float), axis=0)
    moments = Moments.of([(states[:200], changes[:200]), (states, changes)])
    batch = solve(moments, np.array([[0.01]]))
    fitted = analysis.fit_trajectories(x, penalty="lasso", alpha=0.01)
    each = [analysis.fit_trajectories(series, alpha=0.02).A for series in (x, x[::2])]
    return {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "elastic coef": mixed.coef_,
        "batch": batch.coef,
        "batch intercept": batch.intercept,
        "A": fitted.A,
        "b": fitted.b,
        "scores": [fitted.r2_in_sample, fitted.r2_rollout],
        "each A": each,
    }


@case("laws")
def least_squares():
    """Least squares of increments and of a generator, and their scores."""
    x = few_signals()[:, :4]
    result = {}
    for kind in ("increment", "generator"):
        fitted = analysis.fit_trajectories(x, kind=kind, penalty=None)
        result |= {f"{kind} A": fitted.A, f"{kind} b": fitted.b}
        result[f"{kind} scores"] = [fitted.r2_in_sample, fitted.r2_rollout]
    scores = analysis.honest_scores(
        lambda series, t: analysis.fit_trajectories(series, t, penalty=None), [x[:200], x[200:]]
    )
    parts = [scores.in_sample, scores.forward, *scores.across]
    result["honest"] = [[part.derivative, part.rollout, part.relative_error, part.reached] for part in parts]
    return result


@case("laws")
def flows():
    """Conversions and solutions of affine laws."""
    A = np.array([[-0.5, 0.3, 0.0], [0.1, -0.2, 0.05], [0.0, 0.02, -0.7]])
    b = np.array([0.1, 0.0, 0.3])
    generator, drift = public("to_generator")(A, b)
    increment, shift = public("to_increment")(A, b, 0.5)
    return {
        "generator": generator,
        "drift": drift,
        "increment": increment,
        "shift": shift,
        "rollout": public("affine_rollout")(A, b, np.ones(3), 20),
        "solution": public("affine_solution")(A, b, np.ones(3), [0.0, 1.0, 10.0]),
    }


@case("laws", 1e-7)  # nine terms that nearly depend on each other: their coefficients amplify rounding
def nonlinear():
    """The law that all frequencies share, products of two signals, and the spread of coefficients."""
    x = few_signals()
    shared = public("fit_law")(public("MeanFieldRegressor")([(1,), (1, 1), (2,)]), x)
    products = public("fit_law")(public("lotka_volterra")(), x[:, :3])
    spread = public("resample_coefficients")(x[:, :3], penalty=None, resamples=20)
    return {
        "shared": shared.changes(x[::40]),
        "products": products.changes(x[::40, :3]),
        "low": spread.A_low,
        "high": spread.A_high,
    }


@functools.cache
def two_ensembles() -> tuple[Any, Any]:
    """Return two small ensembles of particles of different alignment."""
    return tuple(
        physics.simulate(physics.ParticleSystem(7, alignment=strength), runs=8, steps=60, record=5, seed=seed)
        for strength, seed in ((2.0, 1), (0.5, 2))
    )


@case("compare")
def comparison():
    """A comparison of two ensembles, in structures, shapes, motion and onsets."""
    found = analysis.compare(*two_ensembles())
    result = {
        "nearest": found.shapes.nearest,
        "start": found.shapes.nearest_start,
        "motion error": found.motion.error,
        "motion chance": found.motion.chance,
        "motion scale": interval(found.motion.scale),
        "matched": found.motion.matched,
    }
    for name, part in found.distributions.items():
        result[f"{name} difference"] = [*interval(part.difference), part.p_value]
    for name, part in found.onsets.items():
        result[f"{name} onset"] = part.p_value
    return result


@case("compare")
def shapes_alike():
    """Procrustes disparities, alone and up to the relabelings of a group."""
    first, second = (ensemble.final for ensemble in two_ensembles())
    symmetry = public("symmetry_of")(physics.ParticleSystem(7))
    plain, _ = public("procrustes_disparity")(first, second)
    free, _ = public("procrustes_disparity")(first, second, symmetry)
    return {"plain": plain, "relabeled": free, "permutations": np.sort(symmetry.permutations, axis=0)}


@case("stats")
def statistics():
    """Intervals, effects, transitions and onsets."""
    generator = np.random.default_rng(12)
    x, y = generator.standard_normal(30), generator.standard_normal(25) + 0.8
    values = np.linspace(0.1, 0.9, 9)
    successes, trials = np.array([0, 1, 1, 4, 9, 15, 18, 20, 20]), np.full(9, 20)
    critical = public("fit_transition")(values, successes, trials)
    counted = public("fit_critical_values")(generator.integers(20, 60, 200) / 100, 0.01)
    difference = public("compare_values")("x", x, y)
    shares = public("compare_proportions")("x", x > 0.5, y > 0.5)
    curves = np.cumsum(generator.random((9, 50)), axis=1) / 30
    risen = public("onsets")(curves, np.arange(50.0), 0.7)
    return {
        "mean": interval(public("mean")(x)),
        "proportion": interval(public("proportion")(7, 20)),
        "correlation": interval(public("correlation")(x[:25], y)),
        "hedges": interval(public("hedges_g")(x, y)),
        "cliff": interval(public("cliffs_delta")(x, y)),
        "transition": [critical.width, critical.shape, critical.misfit, *interval(critical.critical)],
        "critical values": [counted.width, counted.shape, *interval(counted.critical)],
        "difference": [*interval(difference.difference), difference.p_value],
        "shares": [*interval(shares.difference), shares.p_value],
        "onset times": risen.times,
        "reached": risen.reached,
    }


def outcome(points: Any, first: int) -> np.ndarray:
    """Return numbers of runs, and their steps to training and to validation by a rule, as of networks."""
    x, y = np.asarray(points).T
    numbers = first + np.arange(len(x))
    train = np.where(y < 5 + np.random.default_rng(first).random(len(x)), 100 / x, np.nan)
    return np.stack([numbers, train, train * (1 + y**2)], axis=1)


@case("phases")
def phases():
    """Names of phases, and a diagram that is refined where they meet."""
    steps = np.array([10.0, 500.0, 5000.0, np.nan])
    train, validation = np.repeat(steps, 4), np.tile(steps, 4)
    diagram = analysis.phase_diagram(
        public("Axis")("learning_rate", 0.1, 10.0, 4, "log"),
        public("Axis")("weight_decay", 0.0, 10.0, 4),
        outcome,
        public("Refinement")(levels=1),
        delay=300,
    )
    return {
        "names": public("classify_phases")(train, validation, delay=1000).astype(str),
        "points": np.array([cell.point for cell in diagram.cells]),
        "phases": np.array([cell.majority.phase for cell in diagram.cells]),
        "runs": np.array([len(cell.runs) for cell in diagram.cells]),
        "shares": np.array([interval(share) for share in diagram.shares().values()]),
    }
