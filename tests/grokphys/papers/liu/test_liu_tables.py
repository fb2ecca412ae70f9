"""Every column of Liu's tables from its definition, also those that no rule reads."""

from types import SimpleNamespace

import numpy as np
import pytest

import nets
import physics
from analysis.stats.intervals import mean
from grokphys.papers.liu import figure_07 as transformer
from grokphys.papers.liu import figure_16 as groups
from grokphys.papers.liu import figures_01_21_22 as components
from grokphys.papers.liu import figures_02_19 as pictures
from grokphys.papers.liu import figures_03_04b_05b as toy
from grokphys.papers.liu import figures_04c_04d as paths
from grokphys.papers.liu import figures_08_20 as images
from grokphys.papers.liu import figures_12_17_18 as small
from grokphys.papers.recipe import RECIPES, Run

inf = np.inf


@pytest.mark.parametrize(
    ("model", "delta"), [(nets.ToyAddition(5, hidden=(8,)), 0.6), (nets.GroupDecoder(hidden=(8,)), 9.0)]
)
def test_a_row_of_a_training_fraction_holds_what_its_columns_say(model, delta):
    setting = toy.Fractions(model, (8,), 4, 60, 1e-2, delta, 500)
    found = toy.measure(setting, 8)
    operation = model.theory.operation
    total = len(operation.samples)
    trained = nets.train(
        model, runs=4, steps=60, seed=508, learning_rate=1e-2, weight_decay=0.0, delta=delta,
        embedding_learning_rate=1e-3, train_fraction=8 / total, record=[60], track=20,
        thresholds={"quality": 0.95}, observables=("train_accuracy", "validation_accuracy", "layers"),
    )  # fmt: skip
    assert found["size"].tolist() == [8] * 4
    assert found["fraction"].tolist() == [8 / total] * 4
    assert found["network"].tolist() == [8000, 8001, 8002, 8003]
    own = nets.networks(trained).examples("train")
    right = {part: trained.observables[f"{part}_accuracy"][:, -1] for part in ("train", "validation")}
    for part, values in right.items():
        np.testing.assert_array_equal(found[f"{part}_accuracy"], values)
    np.testing.assert_allclose(
        found["accuracy"], (8 * right["train"] + (total - 8) * right["validation"]) / total
    )
    steps = trained.observables["steps_to_quality"][:, -1]
    np.testing.assert_array_equal(found["steps_to_rqi"], np.where(np.isfinite(steps), steps, inf))
    options = {"group": operation.group} if operation.group is not None else {}
    for k, samples in enumerate(own):
        pairs = operation.samples[np.sort(samples)]
        theory = physics.EffectiveTheory(operation.tokens, pairs=pairs, **options)
        E = trained.final[k].astype(float)
        E = E if operation.commutes else E.reshape(6, 3, 3)
        mask = np.isin(np.arange(total), samples)[None]
        ideal = physics.closures(operation, mask)
        for end, bound in (("", delta), ("_strict", 0.01)):
            quality, accuracy = found[f"rqi{end}"][k], found[f"predicted_accuracy{end}"][k]
            assert quality == pytest.approx(float(physics.representation_quality(E, theory, bound)))
            assert accuracy == pytest.approx(float(physics.predicted_accuracy(E, theory, bound)))
        assert (found["rqi_bound"][k], found["accuracy_bound"][k]) == (ideal.quality[0], ideal.accuracy[0])
        if operation.commutes:
            assert found["n_h"][k] == pytest.approx(theory.grokking_steps(1e-3))
        else:
            assert np.isnan(found["n_h"][k])


def test_curves_of_images_belong_to_their_networks_and_steps():
    setting = images.Setting(nets.ImageMLP(hidden=(8, 8)), (30, 40), 2, 60, 2e-3, 0.02, 7)
    tables = images.train_images(Run(setting, "quick"), curves=True)
    rows, networks = tables["curves"], tables["networks"]
    assert networks["images"].tolist() == [30, 30, 40, 40]
    start = 0
    for count in (30, 40):
        trained = nets.train(
            setting.model, runs=2, steps=60, seed=7 + count, record="log:12", learning_rate=2e-3,
            weight_decay=0.02, observables=("train_accuracy", "validation_accuracy"), batch_size=count,
            thresholds=images.THRESHOLDS, track=1, layer_scale=8.0, embedding_learning_rate=1e-3,
            train_fraction=count / (len(setting.model.task) - len(setting.model.task.held_out)),
        )  # fmt: skip
        frames = len(trained.steps)
        here = slice(start, start + 2 * frames)
        start += 2 * frames
        assert rows["network"][here].tolist() == [0] * frames + [1] * frames
        assert rows["step"][here].tolist() == trained.steps.tolist() * 2
        for part in ("train", "validation"):
            np.testing.assert_array_equal(
                rows[f"{part}_accuracy"][here], trained.observables[f"{part}_accuracy"].ravel()
            )
            steps = trained.observables[f"steps_to_{part}_accuracy"][:, -1]
            np.testing.assert_array_equal(
                networks[f"{part}_steps"][networks["images"] == count],
                np.where(np.isfinite(steps), steps, inf),
            )
    assert len(rows["step"]) == start


def test_batches_of_images_are_no_larger_than_their_training_set():
    model = nets.ImageMLP(hidden=(8, 8))
    usable = len(model.task) - len(model.task.held_out)
    for count, batch in ((199, 199), (200, 200), (201, 200)):
        found = images.options(model, count)
        assert found == {"train_fraction": count / usable, "batch_size": batch, "layer_scale": 8.0,
                         "embedding_learning_rate": 1e-3}  # fmt: skip


def test_four_tokens_are_trained_on_the_six_samples_at_the_rates_of_their_pace():
    setting = small.Four(nets.ToyAddition(4, hidden=(8,)), 3, 30)
    pairs = setting.model.task.inputs.tolist()
    for pace, (embedding, decoder) in (("fast decoder", (1e-3, 1e-2)), ("slow decoder", (1e-2, 1e-3))):
        found = small._train_four(setting, pace)
        trained = nets.train(
            setting.model, runs=3, steps=30, seed=1200, weight_decay=0.0, learning_rate=decoder,
            embedding_learning_rate=embedding, record=[30],
            train_examples=[pairs.index(pair) for pair in ([0, 2], [1, 1], [0, 3], [1, 2], [1, 3], [2, 2])],
        )  # fmt: skip
        E = trained.final[:, :, 0].astype(float)
        for k, e in enumerate(E):
            e = (e - e.mean()) / e.std()
            np.testing.assert_allclose([found[f"E_{token}"][k] for token in range(4)], e)
            gaps = np.abs([e[0] + e[2] - 2 * e[1], e[0] + e[3] - e[1] - e[2], e[1] + e[3] - 2 * e[2]])
            assert found["rqi"][k] == pytest.approx(np.mean(gaps <= 0.1))
            assert found["equations"][k] == small.equations(e)
        assert found["decoder"].tolist() == [pace] * 3
        np.testing.assert_allclose(
            found["train_accuracy"], trained.observables["train_accuracy"][:, -1], rtol=1e-6
        )


def test_elements_of_matrices_stand_with_the_quality_of_their_network():
    model = nets.GroupDecoder(hidden=(8,))
    rows = RECIPES["liu-17"].make(Run(small.Matrices(model, 3, 20), "quick")).columns()["elements"]
    trained = nets.train(
        model, runs=3, steps=20, seed=1700, learning_rate=1e-5, weight_decay=0.0, record=[20],
        embedding_learning_rate=1e-3, train_fraction=24 / 36,
    )  # fmt: skip
    quality = [
        physics.representation_quality(E.astype(float).reshape(6, 3, 3), model.theory, 4.5)
        for E in trained.final
    ]
    np.testing.assert_allclose(rows["rqi"], np.repeat(quality, 6))
    assert rows["network"].tolist() == np.repeat(range(3), 6).tolist()


def test_sets_of_figure_16_permit_and_imply_parallelograms_of_their_samples(monkeypatch):
    drawn = {}
    draw = groups.random_training_sets

    def keep(operation, size, **options):
        assert options["sets"] == 5
        return drawn.setdefault((operation.name, size), draw(operation, size, **options))

    monkeypatch.setattr(groups, "random_training_sets", keep)
    rows = RECIPES["liu-16"].make(Run(5, "quick")).columns()["sets"]
    for operation in (
        physics.Operation(group=physics.cyclic(6)),
        physics.Operation(group=physics.symmetric(3)),
    ):
        here = np.flatnonzero(rows["operation"] == operation.name)
        total = len(operation.samples)
        assert rows["size"][here].tolist() == list(range(1, total + 1))
        np.testing.assert_allclose(rows["fraction"][here], np.arange(1, total + 1) / total)
        assert set(rows["sets"][here]) == {5}
        labels = np.asarray(operation.label)
        whole = sum(a == b for k, a in enumerate(labels) for b in labels[:k])
        for k in here[[0, 5, total // 2, -1]]:
            masks = drawn[operation.name, rows["size"][k]]
            given = [sum(a == b for n, a in enumerate(labels[m]) for b in labels[m][:n]) for m in masks]
            assert rows["given"][k] == pytest.approx(np.mean(given) / whole)
            ideal = mean(physics.closures(operation, masks).quality)
            assert [rows[name][k] for name in ("implied", "implied_low", "implied_high")] == pytest.approx(
                [ideal.estimate, ideal.low, ideal.high], nan_ok=True
            )
            chained = physics.closures(operation, masks, transitive=operation.commutes).quality.mean()
            assert rows["chains_only"][k] == pytest.approx(chained)
    other = rows["operation"] == "S_3"
    assert (rows["chains_only"][other] < rows["implied"][other] - 1e-9).any(), "less without transitivity"
    np.testing.assert_array_equal(rows["chains_only"][~other], rows["implied"][~other])


def test_chains_are_listed_whole_and_without_each_link():
    rows = RECIPES["liu-16"].make(Run(1, "quick")).columns()["chains"]
    for name, links in (("C_7", 2), ("S_3", 3)):
        known = [text.split() for text in rows["known"][rows["operation"] == name]]
        whole = known[0]
        assert len(whole) == links
        assert known[1:] == [[one for one in whole if one != left] for left in reversed(whole)]
        assert len(set(rows["last"][rows["operation"] == name])) == 1
        group = physics.cyclic(7) if name == "C_7" else physics.symmetric(3)
        for text in (*whole, rows["last"][rows["operation"] == name][0]):
            a, b, c, d = eval(text)
            assert group.table[a, b] == group.table[c, d], "both samples have one label"


def test_a_training_set_that_leaves_a_plane_is_left_out_and_a_short_flow_never_forms(monkeypatch):
    rng = np.random.default_rng(0)
    masks = np.array([rng.permutation(55) < 45 for _ in range(4)])
    masks[[0, 2]] = np.arange(55) < 4
    monkeypatch.setattr(paths, "random_training_sets", lambda *how, **options: masks)
    rows = paths.trajectories(Run(paths.Flows(4, 11, 10.0), "quick")).columns()["flows"]
    assert rows["set"].tolist() == [1, 3]
    assert np.isfinite(rows["formed_over_n_h"]).all()
    samples = physics.Operation(10).samples
    for k, mask in enumerate(masks[[1, 3]]):
        theory = physics.EffectiveTheory(10, pairs=samples[mask])
        steps = theory.grokking_steps(1e-3)
        assert rows["n_h_mean"][k] == pytest.approx(steps)
        assert rows["n_h_sum"][k] == pytest.approx(steps / theory.parallelogram_count)
    short = paths.trajectories(Run(paths.Flows(4, 5, 0.01), "quick")).columns()["flows"]
    assert short["formed_over_n_h"].tolist() == [inf, inf]


def test_transformers_are_followed_in_pieces_of_which_the_last_is_smaller(monkeypatch):
    asked = []

    def train(model, **options):
        asked.append((options["first_run"], options["runs"]))
        count = options["runs"]
        E = np.random.default_rng(0).normal(size=(count, 2, 5, 4))
        steps = {f"steps_to_{part}_accuracy": np.full((count, 1), value)
                 for part, value in (("train", 3.0), ("validation", 9.0))}  # fmt: skip
        return SimpleNamespace(steps=np.array([0, 9]), positions=E, observables=steps)

    monkeypatch.setattr(transformer, "train", train)
    made = transformer.dimension(Run(transformer.Followed(nets.TokenTransformer(), 5, 9, 2), "quick"))
    assert asked == [(0, 2), (2, 2), (4, 1)]
    assert made.columns()["networks"]["network"].tolist() == list(range(5))
    assert made.columns()["networks"]["validation_steps"].tolist() == [9.0] * 5


def test_accuracies_with_the_embedding_as_it_is_are_those_that_training_records():
    setting = components.Projected(
        nets.TokenTransformer(7, 12, depth=1, width=8), 2, 60, frames=4, counts=(2, 4)
    )
    for number in range(2):
        one = components._network(setting, number)
        trained = nets.train(
            setting.model, runs=1, first_run=number, seed=2100, steps=60, record=15, learning_rate=1e-3,
            weight_decay=1.0, embedding_learning_rate=1e-3, embedding_weight_decay=0.0,
            observables=("train_accuracy", "validation_accuracy"),
        )  # fmt: skip
        here = one["components"] == "actual"
        assert one["step"][here].tolist() == one["steps"].tolist() == trained.steps.tolist()
        assert set(one["n"][here]) == {12}
        for part in ("train_accuracy", "validation_accuracy"):
            np.testing.assert_allclose(one[part][here], trained.observables[part][0], rtol=1e-6)
        table = list(zip(one["step"].tolist(), one["components"].tolist(), one["n"].tolist(), strict=True))
        assert table == [
            (step, kind, n) for step in trained.steps.tolist()
            for kind, n in (("actual", 12), ("final", 2), ("current", 2), ("final", 4), ("current", 4))
        ]  # fmt: skip
        end = one["step"] == 60
        for part in components.PARTS:  # at the end the current components are the final ones
            last = [one[part][end & (one["components"] == kind)].tolist() for kind in ("final", "current")]
            assert last[0] == last[1]


@pytest.mark.parametrize(("operation", "seed"), [("addition", 208), ("modular addition", 216)])
def test_planar_networks_stand_with_their_own_rates_and_structure(operation, seed):
    setting = pictures.Planar((8,), 3, 40, 4, 5)
    found = pictures._train_planar(setting, operation)
    model = pictures.MODELS[operation](5, 2, hidden=(8,), kind="classification")
    rates = [1e-4, 1e-3, 1e-2]
    trained = nets.train(
        model, runs=3, steps=40, seed=seed, learning_rate=rates, weight_decay=0.0, train_fraction=0.8,
        embedding_learning_rate=1e-3, record=[40],
        observables=("train_accuracy", "validation_accuracy", "layers"),
    )  # fmt: skip
    np.testing.assert_allclose(found["learning_rate"], rates)
    for name in ("train_accuracy", "validation_accuracy"):
        np.testing.assert_allclose(found[name], trained.observables[name][:, -1], rtol=1e-6)
    E = trained.final.astype(float)
    np.testing.assert_allclose(
        found["structure"], [pictures.structure_of(one, operation) for one in E], rtol=1e-4
    )
    order = np.argsort(found["validation_accuracy"], kind="stable")
    for k, number in enumerate(order[[0, -1]]):
        np.testing.assert_allclose(found["E"][k], E[number], rtol=1e-5)
        left, right, low, high = found["frame"][k]
        x, y = np.meshgrid(np.linspace(left, right, 4), np.linspace(low, high, 4))
        midpoints = np.stack([x, y], axis=-1).reshape(-1, 2)
        answers = nets.networks(trained.run(int(number))).classify(2 * midpoints)[0].tolist()
        assert found["classes"][k].ravel().tolist() == answers
