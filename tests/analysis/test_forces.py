"""Force laws: what is known must be found, what is not there must not be, and scores have baselines."""

import numpy as np
import pytest

import nets
import physics
from analysis.forces import Basis, fit_forces
from nets.adiabatic import adiabatic_force
from physics import InputError, ParticleSystem, Trajectory
from physics.particles.tabulated import PairKernels

SMALL = Basis(distance=10, angle=7, radial=5)
R = np.linspace(0.0, 8.0, 4001)


def with_forces(system, **options):
    """A trajectory of particles, and the forces on them."""
    runs = physics.simulate(system, **{"runs": 12, "steps": 60, "record": 6, "seed": 3} | options)
    return runs, np.stack([system.forces(run) for run in runs.positions])


@pytest.fixture(scope="module")
def musat():
    return with_forces(ParticleSystem(11))


@pytest.fixture(scope="module")
def networks():
    return nets.train(
        nets.ConstantAttention(11), runs=16, steps=400, record=[10, 40, 100, 200, 400], weight_decay=1.0,
        observables=("gradient", "layers"), dtype="float64", seed=5,
    )  # fmt: skip


def runs_of(trajectory, chosen):
    return Trajectory(
        trajectory.positions[chosen], trajectory.steps, parameters={"model": trajectory.parameters["model"]},
        observables={name: values[chosen] for name, values in trajectory.observables.items()},
        start={name: values[chosen] for name, values in trajectory.start.items()},
    )  # fmt: skip


@pytest.mark.parametrize("project", ["none", "shape", "axes"])
def test_the_particles_of_musat_obey_the_terms_of_musat(musat, project):
    runs, forces = musat
    law = fit_forces(
        runs, forces, basis="musat", project=project, amplitude="shared", windows={"on": (6, 60)}, resamples=5
    )
    score = law.score(runs, target=forces)["on"]
    assert score.direction.estimate > 1 - 1e-4
    assert score.absolute.estimate > 1 - 1e-4
    for constant in law.constants("on").values():
        assert constant.estimate == pytest.approx(1.0, abs=2e-3)


def test_free_kernels_find_the_kernels_of_musat(musat):
    runs, forces = musat
    law = fit_forces(runs, forces, project="none", amplitude="shared", windows=[(6, 60)], resamples=0)
    assert law.score(runs, target=forces)["6 to 60"].absolute.estimate > 1 - 1e-4
    kernels = law.kernels["6 to 60"]
    for kind, truth in (
        ("same class", lambda r: -r / np.sqrt(r * r + 0.01)),
        ("different classes", lambda r: r / (r * r + 0.01)),
    ):
        curve = kernels[f"distance, {kind}"]
        near = (curve.grid >= 0.1) & (curve.grid < 3.0)
        np.testing.assert_allclose(curve.values[near], truth(curve.grid[near]), rtol=0.03)
    for kind, sign in (("same class", 1.0), ("different classes", -1.0)):
        curve = kernels[f"angle, {kind}"]
        step = sign * (curve.grid < np.pi / 2)
        np.testing.assert_allclose(curve.values, step, atol=0.03)
    system = law.system()
    np.testing.assert_allclose(
        system.forces(runs.final), ParticleSystem(11).forces(runs.final), rtol=0.01, atol=0.3
    )


def test_a_hidden_law_of_finite_range_is_found_on_training_sets(tmp_path):
    """From a file, with the training set of its system, by the screened law and its two ranges."""
    pairs = [(i, j) for i in range(11) for j in range(i, 11) if (i * j) % 5 != 2]
    weights = ParticleSystem(11, pairs=pairs).weights
    hidden = PairKernels(
        distance=[
            0.8 * weights[1] * np.exp(-R / 0.5) * R / (R**2 + 0.01),
            -weights[0] * R * np.exp(-(R**2) / 2.88),
        ],
        longest=8.0,
    )
    system = physics.PairForces(hidden, 11, 2, on="pair sums", pairs=pairs, normalise=True)
    physics.simulate(system, runs=10, steps=80, record=8, out=tmp_path / "hidden.h5")
    runs = physics.load(tmp_path / "hidden.h5")
    forces = np.stack([system.forces(run) for run in runs.positions])
    law = fit_forces(runs, forces, basis="screened", windows=[(8, 80)], resamples=0)
    assert law.score(runs, target=forces)["8 to 80"].direction.estimate > 0.999
    attraction, repulsion = (constant.estimate for constant in law.constants().values())
    assert repulsion / attraction == pytest.approx(0.8, rel=0.05)
    assert law.fits["8 to 80"].ranges == pytest.approx((1.2, 0.5), rel=0.02)
    free = fit_forces(runs, forces, windows=[(8, 80)], resamples=0)
    assert free.score(runs, target=forces)["8 to 80"].direction.estimate > 0.999


def test_displacements_of_normalised_runs_show_the_law_beside_mean_and_scale():
    runs = physics.simulate(ParticleSystem(11), runs=10, steps=40, record=1)
    axes = fit_forces(
        runs, "displacement", lag=1, basis="musat", project="axes", windows=[(1, 40)], resamples=0
    )
    assert axes.score(runs)["1 to 40"].direction.estimate > 0.97


def test_forces_between_tokens_are_found():
    repulsion = physics.PairForces(lambda r2: 1.0 / (r2 + 1.0), tokens=8, dim=2, normalise=True)
    runs, forces = with_forces(repulsion)
    basis = Basis(distance=10, angle=0, radial=0)
    options = {"on": "tokens", "amplitude": "shared", "project": "none", "windows": {"on": (6, 60)}}
    score = fit_forces(runs, forces, basis=basis, resamples=0, **options).score(runs, target=forces)["on"]
    assert score.absolute.estimate > 0.99
    assert score.absolute.estimate > score.one_body.estimate


def test_a_law_of_networks_is_more_than_one_body_and_less_than_its_ceiling(networks):
    force = adiabatic_force(networks, steps=300, averaged=60)
    first, second = runs_of(force, slice(0, 8)), runs_of(force, slice(8, 16))
    score = fit_forces(first, basis="screened", resamples=3).score(second)["all"]
    assert score.one_body.high < score.direction.low
    assert score.direction.high < score.ceiling.low
    assert score.chance == pytest.approx(1 / (2 * (22 - 4)))


def test_another_networks_force_and_shuffled_classes_score_nothing(networks):
    """Against the force of another network the law is at chance; without its classes it is one-body."""
    first, second = runs_of(networks, slice(0, 8)), runs_of(networks, slice(8, 16))
    windows = {"late": (100, 400)}
    law = fit_forces(first, basis="screened", windows=windows, resamples=0)
    score = law.score(second)["late"]
    strange = law.score(second, target=-np.roll(second.observables["gradient"], 1, axis=0))["late"]
    assert strange.direction.estimate < 3 * strange.chance < score.direction.estimate
    order = np.random.default_rng(0).permutation(11)
    shuffled = [
        Trajectory(each.positions[:, :, order], each.steps, parameters=each.parameters, start=each.start,
                   observables={"gradient": each.observables["gradient"][:, :, order]})
        for each in (first, second)
    ]  # fmt: skip
    elsewhere = fit_forces(shuffled[0], basis="screened", windows=windows, resamples=0).score(shuffled[1])[
        "late"
    ]
    assert elsewhere.direction.estimate < elsewhere.one_body.high


def test_a_free_law_has_the_penalty_that_predicts_networks_that_are_left_out(networks):
    first, second = runs_of(networks, slice(0, 8)), runs_of(networks, slice(8, 16))
    laws = [fit_forces(first, basis=SMALL, ridge=ridge, resamples=0) for ridge in (None, 1e-9)]
    chosen, sharp = (law.score(second)["all"].direction.estimate for law in laws)
    assert chosen > 1.1 * sharp, "in sample the least penalty wins"


def test_score_and_kernels_by_another_way(networks):
    """The R² of the direction from the forces of `system`, network by network, without moments."""
    first, second = runs_of(networks, slice(0, 8)), runs_of(networks, slice(8, 16))
    law = fit_forces(first, basis=SMALL, windows=[(200, 400)], ridge=1e-3, resamples=0)
    squares = []
    unordered = np.stack(np.triu_indices(11), axis=1)
    for run in range(second.runs):
        system = law.system(pairs=unordered[second.start["train_examples"][run]])
        for frame in (3, 4):
            x = second.positions[run, frame]
            x = (x - x.mean(0)) / np.sqrt(((x - x.mean(0)) ** 2).mean())
            vectors = []
            for force in (system.forces(x), -second.observables["gradient"][run, frame]):
                f = (force - force.mean(0)).ravel()
                for along in (x.ravel(), np.stack([x[:, 1], -x[:, 0]], 1).ravel()):
                    f = f - along * (f @ along) / (along @ along)
                vectors.append(f / np.linalg.norm(f))
            squares.append(max(0.0, vectors[0] @ vectors[1]) ** 2)
    assert law.score(second)["200 to 400"].direction.estimate == pytest.approx(np.mean(squares), abs=1e-4)
    rows = law.frame_scores(second)
    np.testing.assert_allclose(rows["direction"], squares, atol=1e-3)
    assert rows["step"].tolist() == [200, 400] * 8


def test_the_result_does_not_depend_on_size_place_and_turn(networks):
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved = Trajectory(
        3.0 * networks.positions @ turn + 2.0,
        networks.steps,
        parameters={"model": networks.parameters["model"]},
        observables={"gradient": networks.observables["gradient"] @ turn / 3.0},
        start=networks.start,
    )
    laws = [fit_forces(each, basis="musat", resamples=0) for each in (networks, moved)]
    constants = [[each.estimate for each in law.constants().values()] for law in laws]
    np.testing.assert_allclose(*constants, rtol=1e-5)


def test_bands_and_tables(networks):
    law = fit_forces(networks, basis=SMALL, windows={"early": (10, 40), "late": (200, 400)}, resamples=20)
    curve = law.kernels["late"]["distance, different classes"]
    inside = (curve.grid > 0.3) & (curve.grid < 2.0)
    assert ((curve.low <= curve.values) & (curve.values <= curve.high))[inside].mean() > 0.9
    table = law.to_dataframe()
    assert set(table["window"]) == {"early", "late"}
    assert np.isfinite(table["value"]).all()
    layers = fit_forces(networks, basis="arccos", resamples=0)  # (π - θ) s_b and a part along s_a
    curve = layers.kernels["all"]["angle, same class"].values
    np.testing.assert_allclose(curve, curve[0] * np.linspace(1, 0, len(curve)), atol=1e-12 * curve[0])
    assert len(layers.plot().axes) == 1
    figure = law.plot("late")
    assert len(figure.axes) == 3
    np.testing.assert_array_equal(
        figure.axes[0].lines[0].get_ydata(), law.kernels["late"]["distance, same class"].values
    )


def test_layers_that_start_where_they_are_and_do_not_move_give_the_recorded_gradient(networks, tmp_path):
    own = adiabatic_force(networks, steps=1, draws=1, averaged=1).observables["gradient_own"]
    networks.save(tmp_path / "t.h5")  # which sorts the names of the layers
    stored = adiabatic_force(physics.load(tmp_path / "t.h5"), steps=1, draws=1, averaged=1)
    np.testing.assert_array_equal(stored.observables["gradient_own"], own)
    again = nets.train(
        nets.ConstantAttention(11), runs=16, steps=1, record=1, seed=5, freeze_embedding=True,
        initial={"embedding": networks.positions[:, 2]}
        | {name.removeprefix("layers."): values[:, 2] for name, values in networks.observables.items()
           if name.startswith("layers.")},
        observables=("gradient",), dtype="float64",
    )  # fmt: skip
    np.testing.assert_allclose(own[:, 2], again.observables["gradient"][:, -1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": "springs"}, "basis"),
        ({"target": "velocity"}, "target"),
        ({"target": np.zeros((1, 2))}, "target"),
        ({"amplitude": "run"}, "amplitude"),
        ({"project": "scale"}, "project"),
        ({"on": "neurons"}, "on"),
        ({"on": "tokens", "modulus": 11}, "on"),
        ({"modulus": 12}, "modulus"),
        ({"pairs": [[0, 99]]}, "pairs"),
        ({"pairs": [[0, 1], [1, 0], [2, 3]]}, "pairs"),
        ({"pairs": np.zeros((3, 4, 2), int)}, "pairs"),
        ({"windows": []}, "windows"),
        ({"basis": "arccos", "on": "tokens"}, "on"),
        ({"windows": [(1, 5)]}, "windows"),
        ({"ridge": -1.0}, "ridge"),
        ({"target": "displacement", "lag": 7}, "lag"),
        ({"pairs": [[0, 1], [2, 4]], "basis": "harmonic", "resamples": 0}, "attraction"),
    ],
)
def test_arguments_that_are_refused(networks, options, message):
    with pytest.raises(InputError, match=message):
        fit_forces(networks, **options)


def test_trajectories_that_are_refused(networks, musat):
    with pytest.raises(InputError, match="observables=\\['gradient'\\]"):
        fit_forces(musat[0])
    bare = Trajectory(
        networks.positions, networks.steps, observables={"gradient": networks.observables["gradient"]}
    )
    with pytest.raises(InputError, match="pairs"):
        fit_forces(bare)
    one = runs_of(networks, slice(0, 1))
    with pytest.raises(InputError, match="at least 2 networks"):
        fit_forces(one, basis=SMALL)
    assert np.isnan(fit_forces(one, basis="musat").constants()["alignment"].low)  # no band of one network
    with pytest.raises(InputError, match="3 frames of the window late for 39 functions, got 1"):
        fit_forces(one, basis=SMALL, ridge=0.1, windows={"late": (400, 400)})
    pairs = np.broadcast_to(np.stack(np.triu_indices(11), 1), (16, 66, 2))
    for name, options in (("target", {"target": musat[1]}), ("pairs", {"pairs": pairs})):
        law = fit_forces(musat[0] if name == "target" else networks, basis="musat", resamples=0, **options)
        with pytest.raises(InputError, match=f"{name} must be given for held_out"):
            law.score(networks)  # not by forces or pairs of the networks of the fit
    for dim in (1, 5):
        with pytest.raises(InputError, match="dim"):
            fit_forces(physics.simulate(ParticleSystem(5, dim)), "displacement", lag=1)
    plain = nets.train(nets.ToyAddition(7, dim=2), steps=20, record=10, observables=("gradient",))
    with pytest.raises(InputError, match="in order"):
        fit_forces(plain.select_tokens([6, 0, 3, 1, 2, 5, 4]), basis="musat")
    with pytest.raises(InputError, match="modulus"):
        fit_forces([plain, nets.train(nets.ConstantAttention(7), steps=20, observables=("gradient",))])
    with pytest.raises(InputError, match="coincide"):
        fit_forces(
            Trajectory(np.zeros((2, 3, 5, 2)), [0, 1, 2]), np.ones((2, 3, 5, 2)), pairs=[[0, 1], [1, 2]]
        )
    with pytest.raises(InputError, match="held_out"):
        fit_forces(networks, basis="musat", resamples=0).score(nets.train(
            nets.ConstantAttention(7), steps=20, observables=("gradient",)))  # fmt: skip
    with pytest.raises(InputError, match="whole sets"):
        adiabatic_force(nets.train(nets.ConstantAttention(7), steps=20, batch_size=5))


def test_all_pairs_leave_springs_without_a_part_along_shapes():
    """Within classes, springs between all pair sums pull every embedding to its scale alone."""
    runs, forces = with_forces(ParticleSystem(7))
    bare, pairs = Trajectory(runs.positions, runs.steps), np.stack(np.triu_indices(7), 1)
    for modulus in (7, 14):  # with 14 the springs within classes and between them are opposite
        with pytest.raises(InputError, match="attraction; repulsion$"):
            fit_forces(bare, forces, basis="harmonic", pairs=pairs, modulus=modulus, resamples=0)
    with pytest.raises(InputError, match="beside project='shape'"):
        fit_forces(runs, 2.0 * runs.positions + 1.0, basis="musat")  # the force is a stretch alone


def test_the_force_is_a_pair_force_with_memory():
    """Under gradient descent, ``f_a = Σ_t' μ(t-t') Σ_b (g_a(t)·g_b(t')) s_b(t')``, and the first layers'."""
    rate, decay, last = 0.1, 0.01, 40
    options = {
        "optimizer": "sgd",
        "learning_rate": rate,
        "weight_decay": decay,
        "dtype": "float64",
        "seed": 3,
    }
    model, names = nets.ConstantAttention(11), ("gradient", "layers")
    trained = nets.train(model, steps=last, record=1, observables=names, **options)
    layers = {name.removeprefix("layers."): values[0] for name, values in trained.observables.items()}
    pairs = np.stack(np.triu_indices(11), axis=1)[trained.start["train_examples"][0]]

    def sums_and_errors(step):
        """The pair sums at a step, and the gradient with respect to their hidden states."""
        sums = trained.positions[0, step][pairs].sum(axis=1)
        hidden = sums @ layers["hidden1.weight"][step] + layers["hidden1.bias"][step]
        logits = np.maximum(hidden, 0) @ layers["output.weight"][step] + layers["output.bias"][step]
        errors = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        errors[np.arange(len(pairs)), pairs.sum(axis=1) % 11] -= 1
        return sums, errors / len(pairs) @ layers["output.weight"][step].T * (hidden > 0)

    errors = sums_and_errors(last)[1]
    force = -errors @ ((1 - rate * decay) ** last * layers["hidden1.weight"][0]).T
    for step in range(last):
        sums, earlier = sums_and_errors(step)
        force += rate * (1 - rate * decay) ** (last - 1 - step) * (errors @ earlier.T) @ sums
    on_tokens = np.zeros((11, 2))
    np.add.at(on_tokens, pairs, force[:, None])
    np.testing.assert_allclose(on_tokens, -trained.observables["gradient"][0, last], rtol=1e-9, atol=1e-12)


def test_flat_points_have_fewer_directions_that_do_not_count():
    """Points on a line in the plane: no stretch of the second axis is invented, and forces across it stay."""
    line = np.random.default_rng(0).standard_normal((3, 4, 7, 2)) * [1.0, 0.0]
    across = np.random.default_rng(1).standard_normal((3, 4, 7, 2)) * [0.0, 1.0]
    runs = Trajectory(line, [0, 1, 2, 3])
    law = fit_forces(
        runs, across, pairs=np.stack(np.triu_indices(7), 1), basis="musat", project="axes", resamples=0
    )
    assert law.score(runs, target=across)["all"].chance == pytest.approx(1 / (2 * (14 - 3)))
