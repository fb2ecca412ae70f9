"""Numbers of our own in notes on claims, in docs/notes.md and in findings are those of the stored results."""

import importlib
import itertools
import json

import numpy as np
import pytest
import torch
from recipe_checks import DOCS, claims, note, published, table, text_of
from scipy import stats

import nets
from analysis.circles.fourier import frequency_norms
from analysis.phases import PHASES
from grokphys.arena.signals import ranked
from grokphys.papers import evidence
from grokphys.papers.run import recipes, stored_replicas
from physics import Operation, closures

NOTES = text_of("notes")
FINDINGS = " ".join(text_of(f"findings/{path.stem}") for path in sorted((DOCS / "findings").glob("*.md")))


def test_dropout_of_figure_7_helps_most_at_a_quarter():
    rows = {name: x.astype(float).reshape(10, 5) for name, x in table("liu-7b", "networks").items()}
    rates, fitted, steps = rows["dropout"][:, 0], rows["train_steps"], rows["validation_steps"]
    assert (np.isinf(steps) == (rates == 0)[:, None]).all()
    medians = np.median(steps, axis=1)
    said = "from {:.0f} steps at a rate of {} to {:.0f} and {:.0f} at {} and {}, and rises again to {:.0f} at"
    assert said.format(medians[1], rates[1], *medians[4:6], *rates[4:6], medians[-1]) in NOTES
    assert (np.diff(medians[:5]) < 0).all()
    assert (np.diff(medians[4:]) > 0).all()
    assert np.argmax(np.median(fitted, axis=1)) == 9
    assert (steps[4:] < 1000).sum(axis=1).tolist() == [5, 5, 5, 5, 1, 0]
    assert "only one of the ten with higher rates does" in NOTES
    assert note("liu-7b", "below 1000 steps") == "all do at rates from 0.2 to 0.4, and one of ten above"
    assert (steps - fitted < 1000)[4:].sum(axis=1).tolist() == [5, 5, 5, 5, 5, 1]
    assert note("liu-7b", "no grokking") == "all do at rates from 0.2 to 0.45, and one of five at 0.5"
    assert (steps - fitted).min() == 260
    assert "In each network 260 steps or more" in NOTES


def test_what_the_training_fraction_alone_predicts_of_accuracies():
    rows = table("liu-3", "networks")
    distance = np.abs(rows["accuracy"] - rows["fraction"]).mean()
    assert distance == pytest.approx(0.09, abs=0.005)
    assert "0.09" in note("liu-3", "near")


def test_networks_beyond_the_bounds_and_far_below_them():
    rows = table("liu-10", "networks")
    for end, delta, said in (
        ("_strict", 0.01, "2 % of the 1250 networks of `liu-10` exceed the bound of the RQI, and 1 % that"),
        ("", 0.1, "17 % and 10 % do, most of them"),
    ):
        for name, words in (("rqi", "RQI"), ("predicted_accuracy", "accuracy")):
            bound = rows[name.removeprefix("predicted_") + "_bound"]
            free, beyond = bound >= 1, rows[name + end] > bound + 1e-6
            told = f"{free.sum()} networks have the bound 1, which nothing exceeds; of others"
            told += f" {100 * np.mean(~beyond[~free]):.0f} %"
            assert told in note("liu-10", f"bound of {words}, δ = {delta}")
            assert f"{100 * np.mean(beyond):.0f} %" in said
        assert f"with that {said}" in NOTES
        some = rows["rqi_bound"] > 0
        far = 100 * np.mean((rows["rqi_bound"] - rows[f"rqi{end}"])[some] >= 0.1)
        assert f"{far:.0f} % of" in note("liu-10", f"far from ideal, δ = {delta}")


def test_steps_of_networks_of_figures_4_and_5():
    rows = table("liu-5b", "networks")
    passed = np.isfinite(rows["steps_to_rqi"])
    count = {n: passed[rows["size"] == n].sum() for n in range(5, 55)}
    assert min(n for n in count if count[n]) == 25, "none with 24 samples or fewer"
    assert f"{count[40]} do with 40 (0.73), and {count[54]} with 54" in NOTES
    area = (5 + np.trapezoid([1 - k / 25 for k in count.values()])) / 55
    assert f"a jump at {area:.2f}" in NOTES
    assert f"ours have {area:.2f}" in str(recipes()["liu-4b"].withdrawn)
    assert f"τ = −{-stats.kendalltau(rows['size'], rows['steps_to_rqi'])[0]:.2f} in ours" in NOTES
    passed &= np.isfinite(rows["n_h"])
    size, steps, n_h = (rows[name][passed] for name in ("size", "steps_to_rqi", "n_h"))
    early, at, *late = (np.median(steps[size == n]) for n in (28, 44, *range(48, 55)))
    assert f"in {early:.0f} steps with 28 of them and in {at:.0f} with 44" in NOTES
    assert f"From 48 samples on it is {min(late):.0f} to {max(late):.0f}" in NOTES
    for most, trend, follows in ((45, "τ is {:.2f}, and", "of {:.2f})"), (54, "({:.2f} and", "and {:.2f})")):
        n, t, own = (x[size <= most] for x in (size, steps, n_h))
        assert trend.format(stats.kendalltau(n, t)[0]).replace("-", "−") in NOTES
        assert follows.format(stats.pearsonr(np.log(t), np.log(own))[0]) in NOTES


def test_corners_of_figure_6():
    rows = table("liu-6a", "networks")
    corner = (rows["column"] >= 7) & (rows["row"] <= 2)
    assert (rows["phase"][corner] == "memorization").all()
    assert np.mean(rows["phase"][~corner] == "memorization") > 0.6, "the rule asks for too much"
    for letter in "abcd":
        planes = [{"networks": table(*one)} for one in (("liu-6", letter), (f"liu-6{letter}", "networks"))]
        parts = ([100 * np.mean(one["networks"]["phase"] == name) for name in PHASES] for one in planes)
        assert "| {} | {} |".format(*(", ".join(f"{x:.0f}" for x in one) for one in parts)) in NOTES
        for rule in recipes()[f"liu-6{letter}"].rules[slice(0, 4, 3) if letter == "a" else slice(1, 4, 2)]:
            found = (rule.measure(one, 0.95).estimate for one in planes)
            assert "| {:.2f} | {:.2f} |".format(*found).replace("-", "−") in NOTES, rule.name
    both = table("liu-6", "d"), table("liu-6d", "networks")
    one, own = (r["phase"][(r["column"] > 10) & (r["row"] < 4)] == "memorization" for r in both)
    assert f"our {len(one)} with one start memorizes, and {own.sum()} of {len(own)} with" in NOTES
    assert not one.any()


def test_what_the_first_components_of_transformers_hold():
    frames, accuracy, hints = table("liu-1", "frames"), table("liu-22", "accuracy"), table("liu-21", "hints")
    own = [evidence.where(frames, network=k) for k in range(4)]
    at = [int(np.argmax(one["validation_accuracy"] >= 0.9)) for one in own]
    first, early = ([one[name][k] for one, k in zip(own, at, strict=True)] for name in ("step", "structure"))
    late = [one["structure"][-1] for one in own]
    assert (min(first), max(first), max(frames["step"])) == (1500, 4500, 20_000)
    assert "generalize between steps 1500 and 4500" in NOTES
    assert f"{100 * min(early):.0f} to {100 * max(early):.0f} % of the variance" in NOTES
    assert f"at step 20 000 they hold {100 * min(late):.0f} to {100 * max(late):.0f} %" in NOTES
    end = accuracy["step"] == 20_000
    right = accuracy["validation_accuracy"]
    assert (right[end & (accuracy["components"] == "actual")] >= 0.99).all()
    ten = right[end & (accuracy["components"] == "final") & (accuracy["n"] == 10)]
    said = f"{100 * min(ten):.0f} to {100 * max(ten):.0f} %"
    assert f"and the first ten components {said} (`liu-22`)" in NOTES
    assert note("liu-22", "a few suffice").startswith(f"{said} with ten")
    turned = hints["turned"].astype(bool)
    random = [hints["share"][turned & (hints["network"] == k)].mean() for k in range(4)]
    own = hints["share"][~turned]
    assert f"{100 * min(own):.0f} to {100 * max(own):.0f} % of its variance" in NOTES
    assert f"where {100 * min(random):.0f} to {100 * max(random):.0f} % would" in NOTES


def test_structure_that_grows_gives_the_gap_of_figure_1():
    frames, gaps = table("liu-1", "frames"), {}
    own = [evidence.where(frames, network=k) for k in range(4)]
    for i, j in itertools.product(range(4), repeat=2):
        right, step = own[i]["validation_accuracy"], own[i]["step"]
        first = step[np.argmax(right >= 0.9)]
        last = step[(right < 0.5) & (step < first)].max()
        before, after = (step >= last - 1000) & (step <= last), (step >= first) & (step <= first + 1000)
        gaps[i, j] = own[j]["structure"][after].mean() - own[j]["structure"][before].mean()
    same = [gaps[k, k] for k in range(4)]
    others = np.mean([gap for (i, j), gap in gaps.items() if i != j])
    assert np.mean(same) == pytest.approx(claims("liu-1")["coincides"]["estimate"])
    assert min(same) > 0
    assert f"by {100 * np.mean(same):.0f} percentage points on average" in NOTES
    assert f"{others:.2f}" == "0.11"
    assert "exchanged, the gap is 11 points" in NOTES
    assert "exchanged, the gap is 0.11" in note("liu-1", "coincides")


def test_ten_pairs_may_determine_ten_tokens():
    operation = Operation(10)
    chosen = [sorted(pair) for pair in operation.samples.tolist()]
    mask = np.array([[sum(pair) in (8, 9) for pair in chosen]])
    assert (mask.sum(), len(chosen)) == (10, 55)
    assert closures(operation, mask).complete.all()
    assert f"ten chosen pairs, {10 / 55:.2f} of the data, suffice" in note("liu-10", "small sets")


def test_how_late_networks_of_the_stages_generalize():
    done = np.isfinite(table("he-grokking", "stages")["step_II"])
    assert (done.sum(), len(done)) == (16, 20)
    assert note("he-grokking", "generalization is late").endswith("four of twenty never do")


def test_what_equal_pairs_leave_open():
    every = claims("predictability")
    settled = [claim for name, claim in every.items() if name.endswith(("1e-06", "0.0001"))]
    assert len(settled) == 4
    for claim in settled:
        assert (claim["estimate"], claim["count"], claim["verdict"]) == (1.0, 60, "agrees")
        missed = 100 * (1 - claim["low"])
        assert f"leave open whether up to {missed:.0f} % of such pairs would not" in FINDINGS
    changes = table("predictability", "changes")
    for size, agree in ((1e-6, 1), (1e-5, 1), (1e-4, 1), (1e-2, 0.75)):
        own = changes["agreement"][changes["change"] == f"start × (1 ± {size:g})"]
        assert agree <= (own == 1).mean() <= min(1, agree + 0.15)
    assert changes["base"].min() == 40, "no network of the earlier run"


def test_where_image_networks_slow_down():
    rows = table("liu-20", "networks")
    log = {n: np.log10(rows["validation_steps"][rows["images"] == n]).mean() for n in (1500, 600, 50)}
    assert log[600] - log[1500] > 2 * (log[50] - log[600]) > 0
    assert "of the logarithm lies between 1500 and 600 images" in note("liu-20", "rapidly")


def test_no_image_network_is_confused():
    rows = table("liu-8b", "networks")
    corner = (rows["row"] >= 7) & (rows["column"] >= 7)
    assert rows["validation_steps"][corner].max() < 1000
    assert "60 % in validation within 1000 steps" in note("liu-8b", "confusion")


def test_circles_and_imperfections_of_musat():
    assert claims("musat-table1")["decay 0.6: circles (%)"]["estimate"] == pytest.approx(5.0)
    assert "5.0 % of our 2000 networks" in NOTES
    assert stats.binom.sf(11, 100, 0.05) == pytest.approx(0.004, abs=0.0005)
    softened = [claims("musat-table2")[f"f_a = {f_a}: circles (%)"]["estimate"] for f_a in ("0.5", "1", "2")]
    assert "they are {:.1f}, {:.1f} and {:.1f} %".format(*softened) in NOTES
    rows = table("musat-start", "networks")
    names = ("kaiming_uniform", "pytorch", "xavier_uniform", "xavier_normal")
    here = [rows["circle"][(rows["start"] == name) & (rows["weight_decay"] == 1)] for name in names]
    assert [f"{circle.mean():.0%}" for circle in here] == ["39%", "11%", "21%", "18%"]
    pair = [here[0].sum(), (~here[0]).sum()], [18, 82]
    assert stats.fisher_exact(pair).pvalue == pytest.approx(5e-5, rel=0.1)


def test_critical_fractions_in_the_notes():
    r_c = claims("liu-4a")["r_c"]
    assert "{estimate:.3f} [{low:.3f}, {high:.3f}] by {count} training sets".format(
        **r_c | {"count": f"{r_c['count']:,}".replace(",", " ")}
    ) in NOTES  # fmt: skip


def test_exchanged_predictions_of_neurons_are_right_half_as_often_again_as_by_chance():
    for tokens in (31, 59):
        rows = evidence.where(table("votes", "neurons"), tokens=tokens)
        parts = []
        for network in np.unique(rows["network"]):
            own = (rows["network"] == network) & (rows["chosen"] > 0)
            ends = (rows[name][own].astype(int) for name in ("chosen", "time"))
            chosen, named = (np.bincount(one, minlength=tokens) for one in ends)
            parts.append(chosen @ named / own.sum() ** 2)
        assert np.mean(parts) * (tokens - 1) / 2 == pytest.approx(1.5, abs=0.1)


def test_hexagons_on_another_plane():
    rows, share = table("liu-17", "elements"), recipes()["liu-17"].rules[0].measure
    assert share({"elements": rows | {"PC1": rows["PC2"]}}, 0.95).estimate == pytest.approx(0.5, abs=0.05)


INTERVAL = "{estimate:.2f} [{low:.2f}, {high:.2f}]".format


@pytest.mark.parametrize(
    ("page", "recipe", "claim", "said"),
    [
        ("even_part", "selection", "p = 31: tanh selects nothing", "is {percent:.0f} % of".format),
        ("even_part", "selection", "p = 31: silu selects", "{percent:.0f} % (p = 31)".format),
        ("octaves", "octaves", "p = 23, silu", INTERVAL),
        ("closure", "liu-scaling", "r_c falls with p", "is {estimate:.2f} times".format),
        ("force", "force-law", "alignment is a transient", INTERVAL),
        ("phases", "liu-seeds", "one phase", "in {percent:.0f} % [72, 88]".format),
    ],
)  # fmt: skip
def test_headlines_of_findings(page, recipe, claim, said):
    found = claims(recipe)[claim]
    own, filled, _ = text_of(f"findings/{page}").partition("## The claims")  # these are filled in
    assert filled
    assert said(**found, percent=100 * found["estimate"]) in own


@pytest.mark.parametrize(
    ("recipe", "p", "unit", "words"),
    [
        ("votes", 31, "network", ("{hits} of the {count} triples", "where {chance:.0f} % of all such")),
        ("ding-7", 59, "embedding", ("{hits} of {count}, where {chance:.0f} % are",)),
    ],
)
def test_survivors_avoid_sums_of_three(recipe, p, unit, words):
    """Triples of survivors, none of which is twice another up to sign, and how many of them are a sum."""
    rows = table(recipe, "circles")
    K = (p - 1) // 2
    own = rows.get("tokens", np.full(len(rows["survived"]), p)) == p
    survived = rows["survived"][own].reshape(-1, K)
    units = rows[unit][own].reshape(-1, K)[:, 0]
    related, chosen = program("odd_relations")[0].is_relation, range(1, K + 1)
    octaves = {pair for pair in itertools.combinations(chosen, 2) if related(pair, p)}
    every = [t for t in itertools.combinations(chosen, 3) if octaves.isdisjoint(itertools.combinations(t, 2))]
    sums = np.array([related(triple, p) for triple in every])
    present = survived[:, np.array(every) - 1].all(axis=2)
    hits, counts = (present & sums).sum(axis=1), present.sum(axis=1)
    found = evidence.jackknife(
        lambda hit, count: hit.sum() / count.sum() / sums.mean(), hits, counts, level=0.95, groups=units
    )
    page = text_of("findings/octaves")
    for said in (INTERVAL(**vars(found)), *words):
        assert said.format(hits=hits.sum(), count=counts.sum(), chance=100 * sums.mean()) in page
    assert found.high < 0.8, "the rule"


def test_predictors_that_see_the_layers_know_little_at_step_0():
    module, _ = program("gradient_at_start")
    known, page = module.circles(31), text_of("findings/same_start")
    survived, features = known["survived"], [known[name] for name in ("signal", "votes", "haste")]
    predicted = evidence.mean(ranked(module.fitted(features, survived), survived), 0.95)
    changes = evidence.where(table("predictability", "changes"), tokens=31, change="start × (1 ± 0.0001)")
    gap = evidence.difference(evidence.share(changes["agreement"] == 1, 0.95), predicted)
    assert gap.low >= 0.2, "the rule"
    assert predicted.estimate < ranked(features[0], survived).mean(), "no more than the signal"
    small, large = (module.judged(json.loads(module.TABLE.read_text()), p) for p in (31, 59))
    together = [one["all together"][2] for one in (small, large)]
    for found in (predicted, gap, *(small[name][0] for name in module.RULES), *together):
        assert INTERVAL(**vars(found)).replace("-", "−") in page
    for p, one in ((31, small), (59, large)):
        best = claims("predictability")[f"p = {p}: SVM knows little at step 0"]["estimate"]
        assert best < min(lacks.estimate for _, lacks, _, _ in one.values())
    for name, one in itertools.product(module.RULES, (small, large)):
        assert one[name][1].low >= 0.2, "the rule"
        assert (one[name][2].high < 0) is (name != "all together"), "less than the signal, or as much"
    for name, said in (("gradient", "by chance {3:.2f}"), ("first step", "has {0.estimate:.2f}.")):
        assert said.format(*small[name]) in page


def test_gradient_and_kernel_are_those_of_their_definitions():
    module, _ = program("gradient_at_start")
    model, step = nets.EmbeddingMLP(7, 3, hidden=(5, 4)), 1e-5
    start = nets.Training(model, seed=1, dtype="float64").networks()
    pairs, weights = model.task.inputs[start.examples("train")[0]], start.parameters
    found, force = module.scores_of(model, weights, start.examples("train")[0])
    logs = [np.log(frequency_norms(weights["embedding"][0] + t * force)) for t in (-step, step)]
    assert found["gradient"] == pytest.approx((logs[1] - logs[0]) / (2 * step), rel=1e-5)
    weights = {name: torch.tensor(value) for name, value in weights.items()}
    parts = torch.func.jacrev(model.outputs)(weights, torch.tensor(pairs)[None]).values()
    y = np.cos(2 * np.pi * 2 / 7 * (pairs.sum(axis=1, keepdims=True) - np.arange(7))).ravel()
    slopes = [y @ part.reshape(len(y), -1).numpy() for part in parts]
    assert found["kernel"][1] == pytest.approx(sum(map(np.vdot, slopes, slopes)) / (y @ y))


def test_shares_in_the_findings():
    again = stored_replicas(("lottery",), DOCS / "results")["seeds-1/lottery"].tables["networks"]
    names, ends = ("series", "scale", "weight_decay", "train_fraction", "steps"), []
    for rows in (table("lottery", "networks"), again):
        one_each = ["|".join(map(str, one)) for one in zip(*(rows[name] for name in names), strict=True)]
        _, cell = np.unique(one_each, return_inverse=True)
        ends.append([np.bincount(cell, rows[x]) / np.bincount(cell) for x in ("time", "magnitude", "phase")])
    time, magnitude, phase = np.swapaxes(ends, 0, 1)
    parts, same = [], recipes()["liu-seeds"].rules[0].measure
    for rows in (table(f"liu-{figure}", "networks") for figure in ("6b", "6c", "6d", "13", "14", "15")):
        planes = [evidence.where(rows, diagram=name) for name in np.unique(rows["diagram"])]
        parts += [same({"networks": plane}, 0.95).estimate for plane in planes]
    changes = table("predictability", "changes")
    first = evidence.where(table("predictability", "predictions"), start=0)
    each = [evidence.where(changes, change="fresh layers and split", tokens=p) for p in (31, 59)]
    each += [evidence.where(first, predictor=x, tokens=p) for x in ("signal", "SVM") for p in (31, 59)]
    kept = np.array([np.mean(2 * rows["agreement"] / (1 + rows["agreement"])) for rows in each])
    assert 0.35 < kept[1] < kept[0] < 0.6, "about half of the circles or fewer"
    assert kept[4:] == pytest.approx(2 / 3, abs=0.02), "all but a third"
    for values, said in (
        (time, "{} % of the neurons end at"), (magnitude, "{} % at the one that begins largest"),
        (phase, "{} % at the one with the best phase"), (time - magnitude, "best rival, by {} percentage"),
        (parts, "and in {} % in nine other planes"), (1 - kept[2:4], "first signals {} %"),
    ):  # fmt: skip
        assert said.format(f"{100 * np.min(values):.0f} to {100 * np.max(values):.0f}") in FINDINGS
    laws = evidence.where(table("force-law", "laws"), state="converged")
    early, whole = (evidence.where(laws, window=name)["alignment"] for name in ("early", "all"))
    assert f"all frames is {whole.min():.2f} to 0.15 [".replace("-", "−") in FINDINGS
    assert f"in early frames alone up to {early.max():.1f}, where" in FINDINGS


def program(name):
    """Return a program of a finding as a module, and its rows as a table."""
    module = importlib.import_module(name)
    rows = json.loads(module.TABLE.read_text())
    names = [name for name, value in rows[0].items() if not isinstance(value, list)]
    return module, evidence.columns_of([{name: row[name] for name in names} for row in rows])


def test_networks_that_he_et_al_saved_measure_as_ours():
    module = importlib.import_module("saved_networks")
    saved = json.loads(module.TABLE.read_text())["measures"]
    for recipe, measures in module.MEASURES.items():
        for words, measure in measures.items():
            ours = measure(published()[recipe].tables)
            assert f"| {words} | {saved[words]:.2f} | {ours:.2f} |".replace("-", "−") in NOTES
    early, late = (saved[f"after {step} steps"] for step in (1000, 5000))
    assert f"{early:.2f} of the amplitude of the first after 1000 steps, {late:.2f} after" in text_of(
        "errata"
    )


def test_pairs_of_equal_numbers_stay_wrong():
    counts = json.loads(importlib.import_module("saved_networks").TABLE.read_text())["never seen"]
    ours = np.array(counts["ours"])
    for all_a, right_a, all_b, right_b in (np.atleast_2d(one).sum(axis=0) for one in counts.values()):
        assert f"| {right_a} of {all_a} | {right_b} of {all_b} |" in NOTES
    stages = table("he-grokking", "stages")
    np.testing.assert_allclose(stages["unseen_accuracy_III"], ours[:, 1::2].sum(1) / ours[:, ::2].sum(1))
    assert ((ours[:, 2] >= 7) == np.isnan(stages["step_II"])).all()


def test_odd_activations_of_he_et_al_are_at_chance():
    rows = table("he-neurons", "activations")
    found = [100 * rows["accuracy"][rows["activation"] == name] for name in ("x", "x³")]
    sides = " and ".join(f"{one.min():.1f} to {one.max():.1f}" for one in found)
    assert f"ours have {sides} %" in note("he-neurons", "accuracy with x")
    assert all(one.min() < printed < one.max() for one, printed in zip(found, (4.1, 3.6), strict=True))


def test_networks_need_more_than_the_closure():
    module, rows = program("networks_by_p")
    page, orders, found = text_of("findings/closure"), table("liu-scaling", "orders"), {}
    for p in (20, 40):
        found[p] = module.log_critical(rows, p)
        cells = [evidence.where(rows, p=p, fraction=f)["accuracy"] >= 0.5 for f in module.FRACTIONS]
        own = evidence.where(orders, family="plain addition", tokens=p)
        closed = np.repeat(own["fraction"], own["orders"])
        shown = [f"{sum(cell)} of {len(cell)}" for cell in cells]
        shown += [INTERVAL(**vars(found[p].map(np.exp))), f"{np.median(closed):.2f}"]
        assert f"| p = {p} | {' | '.join(shown)} |" in page
        assert 2 < np.exp(found[p].estimate) / np.median(closed) < 3.3, "two to three times"
        assert round(100 * np.mean(closed <= 0.3)) == {20: 95, 40: 100}[p]
    ratio = evidence.difference(found[40], found[20]).map(np.exp)
    assert f"is {INTERVAL(**vars(ratio))} times that at p = 20" in page
    assert ratio.low < 0.8 < ratio.high, "undecided"


def test_parity_moves_the_critical_decay():
    module, rows = program("critical_decay")
    page, told = text_of("findings/even_part"), "{estimate:.{n}f} [{low:.{n}f}, {high:.{n}f}]".format
    three = ("tanh", "SiLU", "tanh with biases")
    tanh, silu, biased = (module.log_critical(rows, 23, kind) for kind in three)
    parity, biases = evidence.difference(tanh, silu), evidence.difference(biased, tanh)
    sets = evidence.where(table("parity", "sets"), kind="tanh with biases")
    alone = (sets["accuracy"] > 2 / 23)[sets["terms"] > 3]
    assert f"{alone.sum()} of the {alone.size} without a relation" in page
    for found, n, said in (
        (tanh, 1, "it is {} with tanh"), (silu, 2, "and {} with SiLU"), (biased, 1, "half are gone at {}."),
        (parity, 0, "a ratio of {},"), (biases, 2, "is undecided: {}."),
    ):  # fmt: skip
        assert said.format(told(**vars(found.map(np.exp)), n=n)) in page
    assert np.exp(parity.low) >= 10
    assert np.exp(biases.low) < 0.5 < np.exp(biases.high) < 2
    odd, even = (module.log_critical(rows, 31, kind) for kind in ("tanh", "SiLU"))
    assert f"the ratio is {told(**vars(evidence.difference(odd, even).map(np.exp)), n=0)}." in page
    for kind, single in (("SiLU", True), ("tanh", False)):
        small, large = (module.log_critical(rows, p, kind, single=single) for p in (23, 31))
        assert f"from {np.exp(small.estimate):.1f} to {np.exp(large.estimate):.1f}" in page
        gap = evidence.difference(small, large).map(lambda x: x / np.log(31 / 23))
        assert told(**vars(gap), n=2).replace("-", "−") in page
    parts = {
        (p, kind, x): 200 / (p - 1) * np.mean(evidence.where(rows, p=p, kind=kind, decay=x)["circles"])
        for p, kind, decays in module.CELLS for x in decays
    }  # fmt: skip
    assert all(parts[23, "tanh with biases", decay] < parts[23, "tanh", decay] for decay in range(2, 7))
    assert [round(11 * parts[23, "SiLU", decay] / 100) for decay in (0.5, 10.0)] == [4, 1]
    kinds = (23, "tanh"), (31, "tanh"), (23, "tanh with biases")
    least = [min(parts[*kind, decay] for decay in (4.0, 5.0, 6.0, 8.0)) for kind in kinds]
    again = [parts[*kind, 8.0] for kind in kinds]
    assert "{:.0f} % of all for p = 23, {:.0f} % for p = 31, and {:.0f} % with".format(*least) in page
    assert f"it is {min(again):.0f} to {max(again):.0f} % again" in page
    own = evidence.where(rows, kind="tanh")
    assert (own["accuracy"][(own["decay"] >= 0.5) & (own["decay"] <= 5)] > 0.9).all()


def test_half_lives_of_circles():
    module, rows = program("half_lives")
    page, found, silu = text_of("findings/even_part"), module.judge(rows), rows["activation"] == "silu"
    assert all(INTERVAL(**vars(one)).replace("-", "−") in page for one in found.values())
    times, own = np.log(rows["half_life"] * rows["decay"]), (silu & (rows["p"] == p) for p in module.DIMS)
    said = "{:.0f} steps over the decay with p = 23, {:.0f} with p = 31, {:.0f} with p = 59 and {:.0f} with"
    assert said.format(*(np.exp(times[one].mean()) for one in own)) in page
    assert (rows["accuracy"][silu] > 0.999).all()
    cases = (59, 0.05, "from {:.0f} to {:.0f} steps, and"), (97, 0.1, "from {:.0f} to {:.0f} (a")
    for p, least, words in cases:
        ends = (times[silu & (rows["p"] == p) & (rows["decay"] == decay)] for decay in (least, 0.5))
        assert words.format(*(np.exp(one.mean()) for one in ends)) in page
    last = evidence.where(rows, activation="silu", p=97)
    assert f"(a power of −{-module.power(last['half_life'], last['decay']):.2f}, without" in page
    assert "({:.0f} to {:.0f})".format(*np.quantile(last["half_life"] * last["decay"], (0, 1))) in page
    mixed = (evidence.where(rows, even=even) for even in module.EVEN)
    critical = [np.exp(module.passes(one["decay"], one["circles"], 5.5)) for one in mixed]
    assert "at {:.1f}, {:.1f}, {:.2f} and {:.2f} for λ".format(*critical) in page


def test_survivors_of_odd_networks_have_more_odd_relations():
    module, _ = program("odd_relations")
    rows, page = json.loads(module.TABLE.read_text()), text_of("findings/octaves")
    odd, biased = (module.frequency(rows, kind) for kind in ("tanh", "tanh with biases"))
    ratio = evidence.difference(odd, biased)
    for found, said in ((odd, "they do: {} times"), (biased, "it is {}, so"), (ratio, "has {} times")):
        assert said.format(INTERVAL(**vars(found.map(np.exp)))) in page
    assert odd.low > 0
    assert ratio.low > 0
    parts = [
        [INTERVAL(**vars(module.frequency(rows, kind, sizes).map(np.exp))) for sizes in ((2,), (3,))]
        for kind in ("tanh", "tanh with biases")
    ]
    words = "there are {} times as many octaves as by chance, but {} times", "is not odd, {} and {}."
    for said, found in zip(words, parts, strict=True):
        assert said.format(*found) in page
    others = [np.exp(module.frequency(rows, "tanh", least=least).estimate) for least in (0.4, 0.6, 0.7)]
    assert "together are {:.2f}, {:.2f} and {:.2f} times".format(*others) in page


def test_odd_relations_of_random_sets_are_those_by_chance():
    module, _ = program("odd_relations")
    drawn = np.argsort(np.random.default_rng(0).random((4000, 15)), axis=1) < 6
    found, by_chance = module.relations(drawn)
    assert found.mean() == pytest.approx(by_chance.mean(), rel=0.02)
    one, chosen = np.isin(np.arange(1, 16), (3, 6, 9, 14))[None], (3, 6, 9, 14)
    every = (module.is_relation(some, 31) for n in (2, 3) for some in itertools.combinations(chosen, n))
    assert module.relations(one)[0].tolist() == [sum(every)] == [3]
