"""What the benchmarks compare with, and what they count: equal to definitions, and never a time."""

import itertools

import numpy as np
import pytest
import torch

import nets
import physics
from grokphys.bench import command, published_theory, references, registry
from grokphys.bench import nets as bench_nets
from grokphys.bench import ode as bench_ode
from grokphys.bench import particles as bench_particles
from grokphys.bench import theory as bench_theory
from grokphys.bench.timing import spread
from nets.engines.ensemble import draw
from physics.errors import OutputError


@pytest.mark.parametrize("name", ["numpy", "torch", "numba"])
def test_references_of_the_particles_compute_the_forces_of_each_run(name):
    positions = np.random.default_rng(0).standard_normal((3, 7, 2))
    system = physics.ParticleSystem(7, softening=0.3)
    given = torch.from_numpy(positions) if name == "torch" else positions
    found = np.asarray(getattr(references, f"{name}_forces")(given, 0.3))
    np.testing.assert_allclose(found, physics.forces(positions, system), rtol=1e-9, atol=1e-9)


def test_the_published_theory_is_that_of_the_package():
    theory = physics.EffectiveTheory(6)
    samples = published_theory.samples_of(6)
    assert [list(pair) for pair in samples] == theory.operation.samples.tolist()
    every = published_theory.parallelograms(samples)
    assert [list(q) for q in every] == theory.parallelograms.tolist()
    rng = np.random.default_rng(1)
    for size in (4, 9, 14):
        chosen = sorted(rng.choice(len(samples), size, replace=False).tolist())
        training = [samples[k] for k in chosen]
        own = physics.closures(physics.Operation(6), np.isin(np.arange(len(samples)), chosen)[None])
        found = published_theory.closure(6, training)
        assert found == (own.nullity[0], own.implied[0], pytest.approx(own.accuracy[0]))
        partial = physics.EffectiveTheory(6, pairs=training)
        if partial.parallelogram_count:
            E = rng.standard_normal((6, 2))
            slope = published_theory.gradient(E, partial.parallelograms)
            np.testing.assert_allclose(slope, partial.gradient(E), atol=1e-12)
    E = np.arange(6.0)[:, None] + 0.05 * rng.standard_normal((6, 1))
    assert published_theory.quality(E, every, 0.05) == pytest.approx(
        physics.representation_quality(E, theory, delta=0.05)
    )


PLAIN = {
    "attention": nets.ConstantAttention(7, hidden=9),
    "addition": nets.ToyAddition(7, hidden=(9, 8)),
    "concatenated": nets.EmbeddingMLP(7, 6, hidden=(9, 8), activation="tanh", even=0.5),
    "matrices": nets.GroupDecoder(hidden=(8,)),
    "neurons": nets.TwoLayer(7, 9),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_network_is_the_model(name):
    model = PLAIN[name]
    ensemble = draw(model, runs=1, seed=3)
    parameters = {key: torch.as_tensor(np.asarray(values)) for key, values in ensemble.parameters.items()}
    plain = bench_nets.PlainNetwork(model).to(parameters["embedding"].dtype)
    with torch.no_grad():
        plain.embedding.weight.copy_(parameters["embedding"][0])
        layers = [key.removesuffix(".weight") for key in parameters if key.endswith(".weight")]
        assert len(layers) == len(plain.layers)
        for layer, key in zip(plain.layers, layers, strict=True):
            weight = parameters[f"{key}.weight"][0]
            layer.weight.copy_(weight if weight.shape == layer.weight.shape else weight.T)
            if layer.bias is not None:
                layer.bias.copy_(parameters[f"{key}.bias"].reshape(layer.bias.shape))
        inputs = torch.as_tensor(model.task.inputs)
        expected = model.outputs(parameters, inputs[None])[0]
        torch.testing.assert_close(plain(inputs), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PLAIN)
def test_multiply_adds_are_counted_by_layer(name):
    model = PLAIN[name]
    sizes = model.architecture.sizes
    if name == "neurons":
        forward = len(list(itertools.combinations_with_replacement(range(7), 2))) * 9 * 7
    else:
        examples = len(draw(model, runs=1, seed=0, train_fraction=0.8).train[0])
        forward = model.tokens * sizes[0] * sizes[1]
        forward += examples * sum(sizes[k] * sizes[k + 1] for k in range(1, len(sizes) - 1))
    assert bench_nets.multiply_adds(model) == 3 * forward, "forward, and backward by inputs and weights"


def test_a_plain_loop_takes_its_steps_on_the_training_set(monkeypatch):
    made, asked = [], []
    adam = torch.optim.AdamW

    class Counted(adam):
        def __init__(self, parameters, **options):
            super().__init__(parameters, **options)
            made.append([options, 0])

        def step(self, closure=None):
            made[-1][1] += 1
            return super().step(closure)

    entropy = torch.nn.functional.cross_entropy
    monkeypatch.setattr(torch.optim, "AdamW", Counted)
    monkeypatch.setattr(
        torch.nn.functional,
        "cross_entropy",
        lambda y, labels: asked.append(labels.tolist()) or entropy(y, labels),
    )
    model = PLAIN["attention"]
    ensemble = draw(model, runs=1, seed=0, train_fraction=0.5)
    bench_nets.plain_steps(model, 3, validate=True, train_fraction=0.5)()
    assert made == [[{"lr": 0.01, "weight_decay": 0.5}, 3]]
    both = [model.task.labels[part[0]].tolist() for part in (ensemble.train, ensemble.validation)]
    assert asked == both * 3


def test_a_reference_has_the_threads_with_which_it_is_faster(monkeypatch):
    monkeypatch.setattr(bench_nets.numba, "get_num_threads", lambda: 8)
    asked = []
    monkeypatch.setattr(bench_nets.torch, "set_num_threads", asked.append)
    for times, threads in (([3.0, 2.0, 2.5, 9.0], 1), ([3.0, 3.0, 4.0, 1.0], 8)):
        took = iter(times)
        monkeypatch.setattr(bench_nets, "seconds", lambda call, took=took: next(took))
        assert bench_nets._best_threads(lambda: None) == threads
    assert asked == [1, 8] * 2


def test_cores_and_recording_are_ratios_of_one_to_all_and_of_recorded_to_not(monkeypatch):
    seen = []

    def in_turn(calls, rounds, before=lambda name: None):
        for name in calls:
            before(name)
        seen.append(list(calls))
        return {name: [float(n + 2)] * rounds for n, name in enumerate(calls)}

    monkeypatch.setattr(bench_nets, "in_turn", in_turn)
    threads = bench_nets.numba.get_num_threads()
    found = bench_nets._cores(bench_nets.NEURONS, 2, 20)
    assert found["ratio"] == spread([2 / 3])
    assert bench_nets.numba.get_num_threads() == threads
    done = type("Done", (), {"stdout": "7.5"})
    monkeypatch.setattr(bench_nets.subprocess, "run", lambda *args, **options: done)
    found = bench_nets._recording(2, 20)
    assert found == {
        "steps": 20,
        "ratio": dict.fromkeys((1, 2), spread([3 / 2])),
        "peak_mib": {20: 7.5, 60: 7.5},
    }
    assert seen == [["one", "all"], ["ours", "recorded"], ["ours", "recorded"]]


def test_tables_of_training_say_how_far_from_the_floor():
    times, ratio = {"median": 0.5, "least": 0.4, "most": 0.6}, {"median": 2.0, "least": 1.0, "most": 3.0}
    row = {"what": "x", "reference": "y", "ours_s": times, "reference_s": times, "ratio": ratio}
    result = {
        "multiply_adds_per_s": 1e9,
        "machine": {"threads": 2},
        "one_thread": [row],
        "table_1_s": 90.0,
        "table_1_networks": 40,
        "comparisons": [row | {"reference_threads": 1, "multiply_adds": 5e6}],
        "cores": [{"what": "x", "threads": 2, "ratio": ratio}],
        "recording": {"steps": 20, "ratio": {1: ratio}, "peak_mib": {20: 100.0, 60: 130.0}},
    }
    first, *_, whole = bench_nets._tables(result)
    assert first.rows == [["x", "y", "1", "500 ms", "500 ms", "2 [1, 3]", "5 ms"]]
    assert [found for _, found in whole.rows] == ["30 MiB of 130", "90 s", "1e+09"]


def test_particles_count_pairs_of_pair_sums_a_second(monkeypatch):
    seen = {}

    def in_turn(calls, rounds, before):
        seen.update({name: units for name, (_, units) in calls.items()})
        return {name: [0.5, 0.25] if name == "ours" else [1.0, 1.0] for name in calls}

    monkeypatch.setattr(bench_particles, "in_turn", in_turn)
    rows = bench_particles._compare(5, 4, 3, 2)
    assert seen == {"ours": 12, "numba": 4, "numpy": 4, "torch": 4}
    assert {row["interactions_per_s"] for row in rows} == {15 * 14 / 2 / 0.25}
    assert {(row["tokens"], row["runs"]) for row in rows} == {(5, 4)}
    monkeypatch.setattr(bench_particles, "ARRAY_LIMIT", 14)
    assert [row["reference"] for row in bench_particles._compare(5, 4, 3, 2)] == ["numba"]
    monkeypatch.setattr(bench_particles, "seconds", lambda call: 0.5)
    assert bench_particles._limits(2) == {
        "divisions_per_s": 512 * 2000 / 0.5,
        "multiply_adds_per_s": 512 * 32 * 1000 / 0.5,
    }


def test_tables_of_particles_say_the_part_of_the_dividers():
    times, ratio = {"median": 0.5, "least": 0.4, "most": 0.6}, {"median": 2.0, "least": 1.0, "most": 3.0}
    comparison = {
        "tokens": 17,
        "runs": 3,
        "reference": "numpy",
        "ours_s": times,
        "reference_s": times,
        "ratio": ratio,
        "interactions_per_s": 3e8,
    }
    cost = {"tokens": 30, "direct_s": 0.002, "auto_s": 0.001, "gain": ratio, "relative_error": 1e-7}
    fresh = {
        "tokens": 17,
        "import_s": 0.1,
        "first_forces_s": 0.2,
        "memory_before_mib": 50.4,
        "peak_memory_mib": 70.6,
    }
    tables = bench_particles._tables(
        {
            "machine": {"threads": 2},
            "limits": {"divisions_per_s": 2e8, "multiply_adds_per_s": 1e9},
            "comparisons": [comparison],
            "cost": {"rows": [cost], "exponents": {"direct": 3.9, "auto": 2.1}},
            "fresh_process": [fresh],
        }
    )
    assert [one.rows for one in tables] == [
        [["N = 17, 3 runs", "numpy", "500 ms", "500 ms", "2 [1, 3]", "3e+08", "75%"]],
        [["divisions", "2e+08"], ["multiply_adds", "1e+09"]],
        [["N = 30", "2 ms", "1 ms", "2 [1, 3]", "1e-07"]],
        [["N = 17", "100 ms", "200 ms", "50 MiB", "71 MiB"]],
    ]


# -- laws and the theory ----------------------------------------------------------------------------------


def test_the_oscillators_of_the_bench_are_damped_and_their_times_uneven():
    A, b = bench_ode.oscillators()
    values = np.linalg.eigvals(A)
    np.testing.assert_allclose(
        values[np.lexsort((values.imag, values.imag**2))], [-0.05 - 1j, -0.05 + 1j, -0.1 - 2.3j, -0.1 + 2.3j]
    )
    assert b.shape == (4,)
    times = bench_ode.uneven_times(np.random.default_rng(2), 50, 10.0)
    assert times[0] == 0
    gaps = np.diff(times) / (10 / 50)
    assert (gaps > 0.2).all()
    assert (gaps < 1.8).all()
    assert gaps.std() > 0.2
    true = np.column_stack([A, b])
    off = bench_ode._error((2 * A, b), A, b)
    assert off == pytest.approx(np.linalg.norm(A) / np.linalg.norm(true))


def test_a_law_meets_its_target_if_no_peer_is_better_by_more_than_a_twentieth(monkeypatch):
    A, b = bench_ode.oscillators()
    for peer, met in ((0.2, True), (0.0953, True), (0.0952, False)):
        scaled = {"ours": 0.1, "_pydmd": peer}
        monkeypatch.setattr(
            bench_ode, "match_trajectories", lambda x, t: type("Fit", (), {"A": A * 1.1, "b": b * 1.1})
        )
        monkeypatch.setattr(bench_ode, "_pydmd", lambda x, t, peer=peer: (A * (1 + peer), b * (1 + peer)))
        ours, theirs = bench_ode.noisy_rows(2, ["PySINDy"])
        assert ours["error"] == pytest.approx(scaled["ours"])
        assert theirs["error"] == pytest.approx(peer)
        assert ours["met"] is met
        for other, best in ((0.3, met), (0.01, False)):  # the better of two peers decides
            worse = (A * (1 + other), b * (1 + other))
            monkeypatch.setattr(bench_ode, "_pysindy", lambda x, t, smooth, worse=worse: worse)
            assert bench_ode.noisy_rows(2, [])[0]["met"] is best


def test_the_first_problem_of_the_bench_is_the_recorded_run():
    (first, increments), (second, _) = bench_ode.signal_problems(2)
    run = physics.example("ding")
    signals = np.linalg.norm(np.fft.fft(run.positions[0].astype(float), axis=1)[:, 1:30], axis=2)
    assert len(first) == len(increments) == 1000
    np.testing.assert_allclose(first[0], signals[0], rtol=1e-4)
    np.testing.assert_allclose(increments[:-1], np.diff(first, axis=0))
    scale = second.mean(axis=0) / first.mean(axis=0)
    assert 0.01 < scale.std() < 0.2


def test_a_closure_that_differs_from_the_published_one_stops_the_bench(monkeypatch):
    monkeypatch.setattr(bench_theory, "best", lambda call, repeats=5: 2.0)
    row = bench_theory._closure_row(6, 12, "here")
    assert row["ours_s"] == 2.0 / 1000
    assert row["reference_s"] > 0
    assert row["what"] == "closure, p = 6, here, 1000 sets"
    closure = published_theory.closure
    for changed in ((1, 0, 0.0), (0, 1, 0.0), (0, 0, 1e-9)):
        monkeypatch.setattr(
            published_theory,
            "closure",
            lambda p, pairs, c=changed: tuple(a + b for a, b in zip(closure(p, pairs), c, strict=True)),
        )
        with pytest.raises(AssertionError, match="differ at p = 6"):
            bench_theory._closure_row(6, 12, "here")
    assert bench_theory._transition(10) == pytest.approx(5 * (np.log(10) + 2))


def test_rows_of_the_theory_meet_their_targets_by_the_published_times(monkeypatch):
    def row(p, size, name):
        return {
            "what": f"{p} {size} {name}",
            "ours_s": 31e-6 if p == 10 and name.startswith("80") else 30e-6,
            "reference_s": 30e-6 * 4999 if name.startswith("80") else 30e-6 * 5000,
        }

    monkeypatch.setattr(bench_theory, "_closure_row", row)
    monkeypatch.setattr(bench_theory, "closures", lambda operation, masks: None)
    took = iter([64 * p**3.0 for p in (25, 50, 100, 200)])
    monkeypatch.setattr(bench_theory, "best", lambda call, repeats=5: next(took))
    rows = {one["what"]: one for one in bench_theory.closure_rows("default")}
    met = {name: one["met"] for name, one in rows.items() if "met" in one}
    assert met == {
        "10 22 at the transition": True,
        "10 44 80 % of the data": False,
        "24 62 at the transition": True,
        "24 240 80 % of the data": False,
    }
    assert rows["growth of ours, p = 25 to 200"]["exponent"] == pytest.approx(3)
    below = [name for name in rows if name.endswith("below the transition")]
    assert below == ["10 16 below the transition", "24 47 below the transition"]


def test_every_bench_but_that_of_the_gpu_runs_and_the_worst_status_is_returned(tmp_path, monkeypatch):
    ran, status = [], {"ode": 3, "nets": 1}

    def made(name):
        return lambda *, out, budget, **more: ran.append((name, out, budget, more)) or status.get(name, 0)

    monkeypatch.setattr(registry, "BENCHES", {name: made(name) for name in ("gpu", "ode", "nets", "start")})
    folder = tmp_path / "a" / "b"
    assert command.bench((), directory=folder, budget="quick") == 3
    assert ran == [(name, folder / f"{name}.json", "quick", {}) for name in ("ode", "nets", "start")]
    assert folder.is_dir()
    ran.clear()
    assert command.bench(("start", "gpu", "start"), directory=folder, minutes=2.5) == 0
    assert ran == [
        ("start", folder / "start.json", "default", {}),
        ("gpu", folder / "gpu.json", "default", {"minutes": 2.5}),
    ]
    (folder / "nets.json").touch()
    with pytest.raises(OutputError, match="nets.json exists"):
        command.bench(("start", "nets"), directory=folder)
    assert len(ran) == 2, "nothing runs before it is known that all can be written"
