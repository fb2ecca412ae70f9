"""Whole benchmarks with calls that only note what they are asked: sizes and units of work."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nets
from grokphys.bench import nets as bench_nets
from grokphys.bench import particles as bench_particles
from grokphys.bench import theory as bench_theory
from grokphys.bench.timing import spread

# -- networks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "rounds", "part", "networks"), [
    ("quick", 2, 20, 5), ("default", 5, 1, 100), ("paper", 9, 1, 100)
])  # fmt: skip
def test_a_budget_says_how_often_and_how_long_networks_are_trained(
    parts, monkeypatch, budget, rounds, part, networks, noted
):
    asked = {
        name: noted(bench_nets, name, name)
        for name in ("_product_rate", "_comparisons", "_one_thread", "_cores", "_recording", "_table_1")
    }
    noted(bench_nets, "_ensembles", {"a": {}, "b": {}})
    monkeypatch.setattr(bench_nets, "seconds", lambda call: call() and 7.5)
    whole, result, _ = parts(bench_nets, bench_nets.bench_nets, budget)
    assert whole == ("nets", "o")
    assert asked["_product_rate"] == [(rounds,)]
    assert asked["_cores"] == [("a", rounds, part), ("b", rounds, part)]
    assert [asked[name] for name in ("_comparisons", "_one_thread", "_recording")] == [[(rounds, part)]] * 3
    assert asked["_table_1"] == [(networks,)]
    assert (result["table_1_s"], result["table_1_networks"]) == (7.5, 4 * networks)
    assert result["cores"] == ["_cores"] * 2


@pytest.mark.parametrize(("part", "steps"), [(1, (2000, 400, 60, 60, 1000)), (20, (100, 20, 5, 5, 50)),
                                             (1000, (2, 20, 5, 5, 5))])  # fmt: skip
def test_ensembles_of_the_bench_are_those_of_the_papers(part, steps):
    attention, addition, alone, some, neurons = bench_nets._ensembles(part).values()
    assert tuple(one["steps"] for one in (attention, addition, alone, some, neurons)) == steps
    assert [one["runs"] for one in (attention, addition, alone, some, neurons)] == [100, 100, 1, 4, 4]
    cells = [(rate, decay) for rate in np.logspace(-4, -2, 10) for decay in np.linspace(0, 10, 10)]
    assert np.allclose(np.transpose(cells), [addition["learning_rate"], addition["weight_decay"]])
    assert (addition["embedding_learning_rate"], addition["embedding_weight_decay"]) == (1e-3, 0.0)
    assert addition["thresholds"] == {"train_accuracy": 0.9, "validation_accuracy": 0.9, "quality": 0.95}
    assert (addition["track"], neurons["train_fraction"]) == (10, 1.0)
    kinds = [type(one["model"]).__name__ for one in (attention, addition, alone, some, neurons)]
    assert kinds == ["ConstantAttention", "ToyAddition", "EmbeddingMLP", "EmbeddingMLP", "TwoLayer"]


@pytest.mark.parametrize(("part", "few", "batch"), [(1, 200, 60), (20, 10, 3), (100, 3, 3)])
def test_references_are_counted_by_the_steps_that_they_take(monkeypatch, part, few, batch, noted):
    plain = noted(bench_nets, "plain_steps", lazy=lambda model, steps, **_: (model, steps))
    trained = noted(bench_nets.nets, "train")
    found = bench_nets._references(part)
    assert list(found) == list(bench_nets._ensembles(part))
    units = [[count for _, count in one.values()] for one in found.values()]
    assert units == [[few, 100 * batch], [few], [5], [5, 5], [few]]
    options = [one[1] for one in plain if isinstance(one[1], dict)]
    assert options == [{"dtype": torch.float64, "validate": True}, {"train_fraction": 1.0}]
    for one in found.values():
        for call, count in one.values():
            assert not isinstance(call, tuple) or call[1] == count
    found["constant attention, 100 networks"]["batched PyTorch"][0]()
    ((_, options),) = trained
    assert (options["runs"], options["steps"], options["record"]) == (100, batch, [batch])
    assert (options["engine"], options["observables"]) == ("torch", ())


def test_comparisons_give_each_contender_its_threads_and_its_units(monkeypatch):
    model, order, trained = nets.ToyAddition(5, hidden=(4,)), [], []
    options = {"model": model, "runs": 3, "steps": 7, "track": 10, "thresholds": {"quality": 0.9}}
    monkeypatch.setattr(bench_nets, "_ensembles", lambda part: {"x": options})
    monkeypatch.setattr(bench_nets, "_references", lambda part: {"x": {"slow": (lambda: "slow", 5)}})
    monkeypatch.setattr(bench_nets, "_best_threads", lambda call: {"slow": 6}[call()])
    monkeypatch.setattr(bench_nets.numba, "get_num_threads", lambda: 4)
    monkeypatch.setattr(bench_nets.torch, "set_num_threads", order.append)
    monkeypatch.setattr(bench_nets, "seconds", lambda call: call() or 0.25)
    monkeypatch.setattr(bench_nets.nets, "train", lambda **given: trained.append(given))

    def in_turn(calls, rounds, before):
        assert rounds == 2
        for name in calls:
            before(name)
        calls["ours"][0]()
        assert {name: units for name, (_, units) in calls.items()} == {"ours": 21, "slow": 5}
        return {"ours": [1.0, 2.0], "slow": [4.0, 4.0]}

    monkeypatch.setattr(bench_nets, "in_turn", in_turn)
    (row,) = bench_nets._comparisons(2, 1)
    assert order == [4, 6]
    assert (row["what"], row["reference"], row["reference_threads"]) == ("x", "slow", 6)
    assert (row["first_call_s"], row["ratio"]) == (0.25, spread([4.0, 2.0]))
    assert row["multiply_adds"] == bench_nets.multiply_adds(model)
    first, ours = trained
    assert (first["steps"], first["record"], first["thresholds"], first["track"]) == (1, [1], None, None)
    assert (ours["steps"], ours["record"], ours["track"], ours["observables"]) == (7, [7], 10, ())


def test_one_thread_is_taken_for_the_time_of_the_measurement_alone(monkeypatch):
    order = []
    monkeypatch.setattr(bench_nets.numba, "get_num_threads", lambda: 4)
    for library in ("numba", "torch"):
        place = getattr(bench_nets, library)
        monkeypatch.setattr(place, "set_num_threads", lambda n, library=library: order.append((library, n)))
    monkeypatch.setattr(bench_nets, "_references", lambda part: {bench_nets.NEURONS: {"loop": (None, 10)}})

    def in_turn(calls, rounds):
        order.append({name: units for name, (_, units) in calls.items()} | {"rounds": rounds})
        return {"ours": [2.0], "loop": [3.0]}

    monkeypatch.setattr(bench_nets, "in_turn", in_turn)
    (row,) = bench_nets._one_thread(3, 20)
    assert (row["what"], row["ratio"]) == (bench_nets.NEURONS, spread([1.5]))
    measured = {"ours": 4 * 50, "loop": 10, "rounds": 3}
    assert order == [("numba", 1), ("torch", 1), measured, ("numba", 4), ("torch", 4)]


def test_products_and_whole_tables_are_counted(monkeypatch, noted):
    made = noted(bench_nets.torch, "rand", torch.ones(2, 2))
    took = iter([4.0, 3.0, 2.0, 5.0])
    monkeypatch.setattr(bench_nets, "seconds", lambda call: next(took))
    assert bench_nets._product_rate(2) == 1500**3 / 2.0
    assert made == [(1500, 1500)]
    assert next(took, None) is None, "two rounds more than asked for"
    trained = noted(bench_nets.nets, "train", SimpleNamespace(final="E"))
    found = noted(bench_nets, "structures")
    bench_nets._table_1(6)
    decays = (0.0, 0.3, 0.6, 1.0)
    assert trained == [((), {"runs": 6, "weight_decay": decay, "record": [2000]}) for decay in decays]
    assert found == [("E",)] * 4


def test_a_plain_loop_learns_the_targets_of_a_regression(monkeypatch):
    model, asked, loss = nets.ToyAddition(5, hidden=(4,)), [], torch.nn.functional.mse_loss
    monkeypatch.setattr(
        torch.nn.functional, "mse_loss", lambda y, wanted: asked.append(wanted.clone()) or loss(y, wanted)
    )
    bench_nets.plain_steps(model, 2, dtype=torch.float64)()
    ensemble = bench_nets.draw(model, runs=1, seed=0, train_fraction=0.8)
    wanted = np.asarray(ensemble.targets[0])[model.task.labels[ensemble.train[0]]]
    assert len(asked) == 2, "without validate the others are not evaluated"
    for one in asked:
        assert one.dtype == torch.float64
        np.testing.assert_allclose(one, wanted)


# -- particles and the theory ------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "rounds", "last", "count"), [("quick", 3, 337, 3), ("default", 7, 997, 5),
                                                                 ("paper", 9, 997, 8)])  # fmt: skip
def test_a_budget_says_up_to_which_size_particles_are_measured(
    parts, monkeypatch, budget, rounds, last, count, noted
):
    compared = noted(bench_particles, "_compare", [{"row": 1}])
    limits, cost, fresh = (noted(bench_particles, name) for name in ("_limits", "_cost", "_fresh"))
    _, result, _ = parts(bench_particles, bench_particles.bench_particles, budget)
    assert compared == [(17, 1000, 100, rounds), (59, 1, 100, rounds), (113, 1, 100, rounds)]
    assert result["comparisons"] == [{"row": 1}] * 3
    ((sizes, of),) = cost
    assert (len(sizes), sizes[0], sizes[-1], of, limits) == (count, 113, last, rounds, [(rounds,)])
    assert fresh == [(17,), (last,)]


@pytest.mark.parametrize(("budget", "sets"), [("quick", 1000), ("default", 10_000), ("paper", 10_000)])
def test_the_probability_is_that_of_all_sizes(monkeypatch, budget, sets, noted):
    drawn = noted(bench_theory, "random_training_sets", "sets")
    closed = noted(bench_theory, "closures")
    for seconds, met in ((30 * sets / 10_000, True), (30.1 * sets / 10_000, False)):
        clock = iter([5.0, 5.0 + seconds])
        monkeypatch.setattr(bench_theory, "perf_counter", lambda clock=clock: next(clock))
        row = bench_theory.probability_row(budget)
        assert row["ours_s"] == pytest.approx(seconds)
        assert row["met"] is met or seconds == 3.0
        assert f"of {sets} sets" in row["what"]
    assert [named | {"size": given[1]} for given, named in drawn[:55]] == [
        {"size": size, "sets": sets, "seed": size} for size in range(1, 56)
    ]
    assert {one[1] for one in closed} == {"sets"}
    assert len(closed) == 110


def test_the_gradient_is_held_against_the_published_one_up_to_125(monkeypatch):
    compared = []
    monkeypatch.setattr(bench_theory, "exponent", lambda sizes, times: len(sizes) - 0.8 + 0.001 * sum(times))
    monkeypatch.setattr(bench_theory.np.testing, "assert_allclose", lambda a, b, atol: compared.append(atol))

    class Theory:
        parallelograms = "all"

        def __init__(self, p):
            self.p = p

        def start(self, generator):
            return self.p

        def gradient(self, E):
            return E

    monkeypatch.setattr(bench_theory, "EffectiveTheory", Theory)
    monkeypatch.setattr(bench_theory.reference, "gradient", lambda E, quadruples: (E, quadruples))
    for last, met in ((1e-3, True), (1.1e-3, False)):
        times = iter([1.0, 7.0, 2.0, 8.0, 3.0, last])
        monkeypatch.setattr(bench_theory, "best", lambda call, repeats, times=times: call() and next(times))
        *rows, growth = bench_theory.gradient_rows()
        assert [row["ours_s"] for row in rows] == [1.0, 2.0, 3.0, last]
        assert [row.get("reference_s") for row in rows] == [7.0, 8.0, None, None]
        assert [row.get("met") for row in rows] == [None, None, None, met]
        assert growth["exponent"] == pytest.approx(2.2 + 0.001 * (5 + last)), "of 125, 250 and 500"
        assert growth["met"] is False
    monkeypatch.setattr(bench_theory, "exponent", lambda sizes, times: 2.2)
    monkeypatch.setattr(bench_theory, "best", lambda call, repeats: 1e-4)
    assert bench_theory.gradient_rows()[-1]["met"] is True
    assert len(compared) == 6
