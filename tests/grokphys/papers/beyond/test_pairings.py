from types import SimpleNamespace

import numpy as np
from scipy import stats
from scipy.spatial import procrustes

from grokphys.papers.beyond import pairings
from grokphys.papers.recipe import RECIPES, Run
from nets.provenance import training_sets
from physics.trajectory import Trajectory


def test_the_theory_starts_where_its_network_does():
    networks = pairings._toys(45, 2, 60, 0)
    flow = pairings._theory_of(networks)
    E = networks.initial.astype(float)
    expected = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
    np.testing.assert_allclose(flow.initial, expected)
    assert (np.diff(flow.times) > 0).all()
    assert flow.times[-1] == pairings.THEORY_SPAN * 60


def test_a_distance_is_held_against_that_of_another_run():
    measure = pairings._ratio("networks", "distance", "to_another")
    rows = {"distance": np.array([1.0, 4.0, 2.0]), "to_another": np.array([2.0, 2.1, 1.9])}
    found = measure({"networks": rows}, 0.95)
    assert np.isclose(found.estimate, (8 / 7.98) ** (1 / 3))
    assert found.low < 1 < found.high
    expected = stats.ttest_1samp(np.log(rows["distance"] / rows["to_another"]), 0).confidence_interval(0.95)
    np.testing.assert_allclose(np.log([found.low, found.high]), expected)
    twice = {name: np.repeat(values, 2) for name, values in rows.items()}  # each other's nearest
    np.testing.assert_allclose([measure({"networks": twice}, 0.95).low, 3], [found.low, found.count])


def test_every_network_has_its_row_however_many_there_are(monkeypatch):
    def toys(size, seeds, steps, number):
        rng = np.random.default_rng(size)
        walks = np.cumsum(rng.normal(size=(seeds, 6, 10, 1)), axis=1)
        return Trajectory(walks, np.arange(6), parameters={"noise": number})

    def theory(networks):
        noise = networks.parameters["noise"] * np.random.default_rng(1).normal(size=networks.positions.shape)
        return Trajectory(networks.positions + noise, networks.steps)

    monkeypatch.setattr(pairings, "_toys", toys)
    monkeypatch.setattr(pairings, "_theory_of", theory)
    setting = pairings.Toys((30, 45), 51, 60)
    made = RECIPES["compare-theory"].make(Run(setting, "quick")).columns()["networks"]
    assert made["samples"].tolist() == [30] * 51 + [45] * 51
    same = made["samples"] == 30
    assert made["distance"][same].max() < 0.05 < made["distance"][~same].min()
    assert made["to_another"].min() > 0.05


def test_a_theory_that_never_groks_has_no_step_at_which_it_does(monkeypatch):
    networks = pairings._toys(45, 3, 60, 0)
    first = iter([None, 4, 0])

    def quality(states, theory, delta):
        at = next(first)
        assert delta == pairings.DELTA
        return np.where(np.arange(len(states)) >= (np.inf if at is None else at), pairings.GROKKED, 0.9)

    monkeypatch.setattr(pairings, "representation_quality", quality)
    found = pairings._theory_of(networks).observables["steps_to_quality"]
    assert found.shape == (3, 301)
    np.testing.assert_array_equal(found, np.repeat([[np.nan], [4], [0]], 301, axis=1))


def test_a_theory_has_the_training_set_of_its_own_network():
    networks = pairings._toys(30, 3, 60, 1)
    _, examples = training_sets(networks)
    theories = pairings._own_theories(networks)
    pairs = np.array([(i, j) for i in range(10) for j in range(i, 10)])
    for theory, chosen in zip(theories, examples, strict=True):
        assert {tuple(sorted(pair)) for pair in np.array(theory.pairs)} == {tuple(p) for p in pairs[chosen]}
    assert len({str(np.array(theory.pairs).tolist()) for theory in theories}) == 3


def test_signals_are_a_trajectory_with_the_circles_that_survive_at_each_frame(monkeypatch):
    class Rule:
        def first(self, steps, values):
            assert np.isfinite(values).all()
            return int(steps[1]) if values[0, 0] == 1 else None

    monkeypatch.setattr(pairings, "StoppingRule", Rule)
    signals = np.array([[[1.0, 1, 1], [9, 1, 1], [0, 9, 0]], [[2.0, 2, 2], [np.nan, 1, 1], [1, 1, 30]]])
    found = pairings._as_trajectory(signals, np.array([0, 10, 30]))
    np.testing.assert_array_equal(found.positions[..., 0], signals)
    assert found.observables["surviving_circles"].tolist() == [[0, 1, 1], [0, 0, 1]]
    np.testing.assert_array_equal(found.observables["strongest_signal"], [[1, 9, 9], [2, np.nan, 30]])
    np.testing.assert_array_equal(found.observables["steps_to_decided_survivors"], [[10] * 3, [np.nan] * 3])


def test_networks_are_held_against_particles_their_starts_and_other_networks(monkeypatch):
    """Networks end as particles do, up to small deviations of their own, and start at random."""
    rng = np.random.default_rng(7)
    shape = rng.normal(size=(17, 2))
    moved = Trajectory(
        np.stack([rng.normal(size=(4, 17, 2)), np.tile(shape, (4, 1, 1))], axis=1), np.array([0, 10])
    )
    ends = shape + 0.1 * rng.normal(size=(3, 17, 2))
    trained = Trajectory(np.stack([rng.normal(size=(3, 17, 2)), ends], axis=1), np.array([0, 50]))
    asked = {}
    monkeypatch.setattr(
        pairings, "simulate", lambda system, **options: asked.update(system=system, **options) or moved
    )
    monkeypatch.setattr(pairings, "train", lambda model, **options: trained)
    compared = pairings.compare
    # The motion between two frames tells nothing, and could not be aligned.
    monkeypatch.setattr(pairings, "compare", lambda *both, names, align: compared(*both, names=names))
    made = pairings.particles_and_attention(Run(pairings.Two(4, 50), "quick"))
    rows = made.columns()["networks"]
    assert asked["system"].alignment == 1.0
    to_particles = [procrustes(shape, end)[2] for end in ends]
    others = [min(procrustes(ends[n], ends[k])[2] for k in range(3) if k != n) for n in range(3)]
    np.testing.assert_allclose(rows["to_particles"], to_particles, rtol=1e-6)
    np.testing.assert_allclose(rows["to_networks"], others, rtol=1e-6)
    assert (rows["to_starts"] > 5 * rows["to_networks"]).all()


def test_figures_are_named_by_their_place_and_none_are_left_out():
    axes = [SimpleNamespace(figure=f"figure {n}") for n in range(3)]
    found = pairings._named("x", [axes[0], None, np.array([[axes[1], axes[2]]])])
    assert found == {"x": "figure 0", "x-2": "figure 1"}


def test_laws_of_signals_are_rolled_out_from_the_start_of_each_run(monkeypatch):
    rng = np.random.default_rng(8)
    steps = np.arange(13)
    signals = [
        SimpleNamespace(steps=steps, values=np.exp(rng.normal(0, 0.02, (13, 4)).cumsum(axis=0)) * 5)
        for _ in range(3)
    ]
    compared = []

    def compare(first, second, **options):
        compared.append((first, second, options))
        motion = SimpleNamespace(error=rng.uniform(1, 2, (3, 13)), chance=rng.uniform(1, 2, (3, 13)))
        compared[-1] += (motion,)
        return SimpleNamespace(motion=motion)

    class LawOf:
        def __init__(self, values, **options):
            self.values, self.options = values, options

        def predict(self, start, frames):
            path = start + np.arange(len(frames))[:, None] * (1.0 + len(self.options))
            path[-1] = [np.nan, np.inf, -np.inf, 1e9]
            return path

    monkeypatch.setattr(pairings, "train", lambda model, **options: None)
    monkeypatch.setattr(pairings.ding, "signals_of", lambda trained, first, last: signals)
    monkeypatch.setattr(pairings, "fit_trajectories", LawOf)
    monkeypatch.setattr(pairings, "compare", compare)
    for name in ("show_typical_pair", "show_motion"):
        monkeypatch.setattr(pairings, name, lambda *args: None)
    setting = SimpleNamespace(model=None, runs=3, steps=12)
    rows = pairings.ode_and_mlp(Run(setting, "quick")).columns()["networks"]
    names = list(pairings.ding.RECIPES)
    assert rows["law"].tolist() == np.repeat(names, 3).tolist()
    assert rows["run"].tolist() == [0, 1, 2] * len(names)
    bound = pairings.BLOWN_UP * max(one.values.max() for one in signals)
    for n, (rolled, networks, options, motion) in enumerate(compared):
        assert options["paired"] is True
        assert options["align"] == "none", "law and network have one clock"
        np.testing.assert_array_equal(networks.positions[..., 0], [one.values for one in signals])
        for run, one in enumerate(signals):
            path = one.values[0] + np.arange(12)[:, None] * (1.0 + len(pairings.ding.RECIPES[names[n]]))
            np.testing.assert_allclose(rolled.positions[run, :12, :, 0], path.clip(-bound, bound))
            np.testing.assert_allclose(rolled.positions[run, 12, :, 0], [bound, bound, -bound, bound])
        own = rows["law"] == names[n]
        np.testing.assert_allclose(rows["distance"][own], motion.error[:, 1:].mean(axis=1))
        np.testing.assert_allclose(rows["to_another"][own], motion.chance[:, 1:].mean(axis=1))
