import json
import re

import numpy as np
import pytest

import physics
from physics import InputError, ParticleSystem, SimulationError
from physics.seeds import run_seeds


def test_without_arguments_the_papers_setting():
    trajectory = physics.simulate()
    assert trajectory.positions.shape == (1, 101, 17, 2)
    assert trajectory.positions.dtype == np.float64
    np.testing.assert_array_equal(trajectory.steps, np.arange(101))
    np.testing.assert_allclose(trajectory.times, 0.02 * np.arange(101))
    assert trajectory.parameters["system"] == {
        "type": "ParticleSystem",
        "tokens": 17,
        "dim": 2,
        "attraction": 1.0,
        "repulsion": 1.0,
        "alignment": 1.0,
        "softening": 0.1,
        "pairs": None,
        "modulus": None,
        "group": None,
        "normalise": True,
        "integrator": "euler",
        "relative_tolerance": 1e-4,
    }
    json.dumps(trajectory.parameters)


def test_run_k_starts_from_the_kth_child_whatever_stands_beside_it():
    system = ParticleSystem(7, 3)
    ensemble = physics.simulate(system, runs=5, steps=6, seed=11)
    for k, child in enumerate(np.random.SeedSequence(11).spawn(5)):
        start = np.random.default_rng(child).standard_normal((7, 3))
        np.testing.assert_array_equal(ensemble.initial[k], start)
        alone = physics.simulate(system, steps=6, initial=start)
        np.testing.assert_array_equal(alone.positions[0], ensemble.positions[k])
        shard = physics.simulate(system, steps=6, seed=11, first_run=k)
        np.testing.assert_array_equal(shard.positions[0], ensemble.positions[k])
    fewer = physics.simulate(system, runs=2, steps=6, seed=11)
    np.testing.assert_array_equal(fewer.positions, ensemble.positions[:2])


@pytest.mark.parametrize("options", [{}, {"pool_size": 8}, {"spawn_key": (2, 7)}])
def test_children_are_those_of_spawn(options):
    spawned = np.random.SeedSequence(5, **options).spawn(4)
    made = run_seeds(np.random.SeedSequence(5, **options), 3, first_run=1)
    for own, child in zip(made, spawned[1:], strict=True):
        np.testing.assert_array_equal(own.generate_state(8), child.generate_state(8))


def test_a_seed_sequence_is_a_seed():
    by_number = physics.simulate(steps=2, seed=5)
    by_sequence = physics.simulate(steps=2, seed=np.random.SeedSequence(5))
    np.testing.assert_array_equal(by_number.positions, by_sequence.positions)
    child = physics.simulate(steps=2, seed=np.random.SeedSequence(5).spawn(1)[0])
    assert child.parameters["seed"] == {"entropy": 5, "spawn_key": [0]}
    assert not np.array_equal(child.positions, by_number.positions)


def test_a_run_of_an_ensemble_can_be_made_again_from_its_parameters():
    run = physics.simulate(ParticleSystem(5), runs=4, steps=5, seed=3, record=2).run(2)
    system = dict(run.parameters["system"])
    assert system.pop("type") == "ParticleSystem"
    names = ("steps", "step_size", "runs", "record", "seed", "first_run")
    again = physics.simulate(ParticleSystem(**system), **{name: run.parameters[name] for name in names})
    np.testing.assert_array_equal(again.positions, run.positions)


@pytest.mark.parametrize(
    ("record", "steps"), [(4, [0, 4, 8, 10]), ("1:2,5", [0, 1, 2, 7, 10]), ([0, 3, 7], [0, 3, 7])]
)
def test_recording_fewer_frames_changes_nothing_else(record, steps, tmp_path):
    """A list may end before the last step; an interrupted run goes on with its next frame."""
    full = physics.simulate(ParticleSystem(5), steps=10)
    sparse = physics.simulate(ParticleSystem(5), steps=10, record=record)
    np.testing.assert_array_equal(sparse.steps, steps)
    np.testing.assert_array_equal(sparse.positions, full.positions[:, steps])

    def interrupt(step, *_):
        if step == steps[2]:
            raise KeyboardInterrupt

    options = {"steps": 10, "record": record, "out": tmp_path / "run.h5"}
    with pytest.raises(KeyboardInterrupt):
        physics.simulate(ParticleSystem(5), callback=interrupt, **options)
    resumed = physics.simulate(ParticleSystem(5), resume=True, **options)
    np.testing.assert_array_equal(resumed.positions, sparse.positions)
    for lacking in ([1, 5], [0]):
        with pytest.raises(InputError, match="record must hold step 0, the start, and a later step"):
            physics.simulate(ParticleSystem(5), record=lacking)


def test_recorded_frames_do_not_alias_the_moving_state():
    start = np.random.default_rng(0).standard_normal((5, 2))
    kept = start.copy()
    trajectory = physics.simulate(ParticleSystem(5), steps=3, initial=start)
    np.testing.assert_array_equal(start, kept)
    np.testing.assert_array_equal(trajectory.initial[0], kept)
    assert not np.array_equal(trajectory.positions[:, 1], trajectory.positions[:, 2])


def test_starts_for_each_run_or_one_for_all():
    starts = np.random.default_rng(0).standard_normal((3, 5, 2))
    each = physics.simulate(ParticleSystem(5), steps=2, runs=3, initial=starts)
    one = physics.simulate(ParticleSystem(5), steps=2, runs=3, initial=starts[1])
    np.testing.assert_array_equal(one.positions[0], each.positions[1])
    np.testing.assert_array_equal(one.positions[2], each.positions[1])
    assert physics.simulate(ParticleSystem(5), steps=2, initial=starts).runs == 3


def test_runs_that_do_not_fit_into_memory_are_refused(monkeypatch):
    """Starts, positions, their copies and frames: a run of 3 numbers takes 4 arrays of 24 bytes at least."""
    system = ParticleSystem(3, 1)
    pages = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 95}
    monkeypatch.setattr("os.sysconf", pages.get)
    with pytest.raises(InputError, match="^1 runs need 0.0 GiB, more .*simulate them in shards, with first"):
        physics.simulate(system, steps=1)
    pages["SC_PHYS_PAGES"] = 96
    assert physics.simulate(system, steps=1).frames == 2


def test_a_step_that_is_too_large_is_named_once_with_one_that_is_not():
    """Points that repel each other as 1/r^13 are flung apart by a single step of the default size."""
    system = physics.PairForces(lambda r2: r2**-7 - r2**-4, tokens=5, dim=2)
    with pytest.warns(UserWarning, match="farther than that run is wide") as caught:
        flung = physics.simulate(system, steps=100, runs=3)
    assert len(caught) == 1
    assert np.abs(flung.final).max() > 1e6
    step, size = re.match(r"step (\d+) .* below (\S+) or integrator", str(caught[0].message)).groups()
    at = int(step)
    moved = np.abs(np.diff(flung.positions[:, at - 1 : at + 1], axis=1)).max(axis=(1, 2, 3))
    assert (moved > np.ptp(flung.positions[:, at - 1], axis=1).max(axis=1)).any()
    calm = physics.simulate(system, steps=100, runs=3, step_size=float(size))  # warnings are errors here
    assert np.abs(calm.final).max() < 10
    followed = physics.PairForces(system.function, tokens=5, dim=2, integrator="adaptive")
    assert np.abs(physics.simulate(followed, steps=10, runs=3).final).max() < 10
    grows = physics.PairForces(lambda r2: 1.0, tokens=5, dim=2)  # by a tenth in each step
    for every in (1, 30):
        with pytest.warns(
            UserWarning, match=r"1e\+09 times its width at the start, .*, unless its law"
        ) as caught:
            physics.simulate(grows, steps=300, record=every)
        assert len(caught) == 1


def test_a_law_that_is_solved_exactly_is_not_cured_by_smaller_steps():
    flow = physics.AffineFlow(np.diag([300.0, 1, 1]), np.ones(3))
    with pytest.raises(SimulationError, match="because its law, which is solved exactly, grows") as error:
        physics.simulate(flow, steps=200, runs=2, step_size=1.0)
    assert "step_size" not in str(error.value)


def test_the_cure_of_an_overflow_is_that_of_the_first_leap():
    system = physics.PairForces(lambda r2: -r2, tokens=5, dim=2)
    with pytest.raises(SimulationError, match="step_size below") as error:
        physics.simulate(system, steps=100, record=100, runs=3)
    size = float(re.search(r"below (\S+) or", str(error.value)).group(1))
    assert np.isfinite(physics.simulate(system, steps=1000, runs=3, step_size=size).final).all()


@pytest.mark.parametrize(("tokens", "dim"), [(17, 2), (17, 3), (17, 1), (59, 2)])
def test_normalised_particles_that_jump_about_are_named_with_a_step_that_does_not(tokens, dim):
    """The papers' steps are silent, also for runs that collapse (warnings are errors here)."""
    for alignment in (0.0, 0.5, 3.0):
        system = ParticleSystem(tokens, dim, alignment=alignment)
        options = {"runs": 8 if tokens == 17 else 2, "steps": 20, "record": 5, "seed": 3}
        physics.simulate(system, step_size=0.04 if tokens == 17 else 0.02, **options)
        for large in (0.2, 0.5, 1.0):
            with pytest.warns(UserWarning, match="of their size") as caught:
                physics.simulate(system, step_size=large, **options)
            assert len(caught) == 1
            size = float(re.search(r"below (\S+) or", str(caught[0].message)).group(1))
            physics.simulate(system, step_size=size, **options)
    followed = ParticleSystem(tokens, dim, integrator="adaptive", relative_tolerance=0.01)
    physics.simulate(followed, steps=8 if tokens == 17 else 4, step_size=0.2)
