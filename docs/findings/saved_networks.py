"""The networks that He et al. saved, measured as ours are.

``python docs/findings/saved_networks.py CLONE`` reads ``src/saved_models`` in a clone of
``Y-Agent/modular-addition-feature-learning``, and the predictions of the networks in the authors' demo. It
writes `saved_networks.json`: each of the `MEASURES` for the authors' network, which is one, where ours are
means over the networks of stored results; and how many pairs that were never seen in either order are right
in the end, of those with two different numbers, and of those with two equal ones. For ours it trains the
networks of `he-grokking` again, and eight for p = 29 and 31, which takes a quarter of an hour.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from grokphys.papers import recipe
from grokphys.papers.evidence import by_network, columns_of, where
from grokphys.papers.he import neurons as he
from grokphys.papers.run import recipes
from nets import read_checkpoints
from physics.neurons.spectrum import neuron_spectrum

TABLE = Path(__file__).with_suffix(".json")
HIDDEN, P = 512, 23
PLAIN, DECAY = "ReLU_random_scale_0.1_decay_0_08142058", "ReLU_random_scale_0.1_decay_2.0_08180102"
WAVES = {
    "quadratic": "Quad_single-freq_scale_0.02_decay_0_08151819",
    "relu": "ReLU_single-freq_scale_0.002_decay_0_08151833",
}
CELLS = {
    "Quad_random_scale_0.1_decay_0_08151413": he._flow(0.1), PLAIN: he.Cell(activation="relu"),
    DECAY: he.NARROW["relu"]._replace(weight_decay=2.0, train_fraction=0.75),
}  # fmt: skip
"""Those of the recipe `lottery` that are nearest to saved networks."""


def each(table, measure, **values):
    """Return a measure of the networks of a table: the mean over them."""
    return lambda tables: float(np.mean([measure(own) for own in by_network(where(tables[table], **values))]))


def judged(item, name, unit=1.0):
    """Return the measure of a rule, in some unit."""
    (rule,) = (one for one in recipes()[item].rules if one.name == name)
    return lambda tables: unit * rule.measure(tables, 0.95).estimate


DESCENT, ADAMW, _ = (cell.series for cell in CELLS.values())
MEASURES = {
    "he-neurons": {
        "neurons with 90 % of their power in one frequency":
            each("neurons", lambda own: np.mean(own["share"] >= 0.9)),
        "power there, median of the neurons": each("neurons", lambda own: np.median(own["share"])),
        "neurons with \\|2φ − ψ\\| of at most π/8": judged("he-neurons", "phase alignment"),
        "standard deviation of α β² over its mean": judged("he-neurons", "equal magnitudes"),
        "least accuracy with an even activation": judged("he-neurons", "any even part works", 0.01),
    },
    "he-waves": {
        "waves with ReLU: power that stays": judged("he-waves", "ReLU keeps it nearly"),
        "third harmonic over the first":
            judged("he-waves", "third harmonic of ReLU over the first, input weights"),
        "neurons with \\|2φ − ψ\\| of at most π/8 at the end": judged("he-waves", "phases align, relu"),
        "the same with quadratic neurons": judged("he-waves", "phases align, quadratic"),
    },
    "he-grokking": {
        "test accuracy when all is memorized":
            judged("he-grokking", "test accuracy when all is memorized", 0.01),
        "of pairs never seen in either order": judged("he-grokking", "pairs that were never seen are wrong"),
        "of these at the end": judged("he-grokking", "and right in the end"),
        "τ of the step and the mean \\|sin D\\|": judged("he-grokking", "phases align all the while"),
        "τ of the step and the inverse participation ratio": judged("he-grokking", "sparser all the while"),
    },
    "lottery": {
        "the smallest t* names the winner: gradient descent, quadratic":
            judged("lottery", f"t* names the winner: {DESCENT}"),
        "AdamW, ReLU": judged("lottery", f"t* names the winner: {ADAMW}"),
        "AdamW, ReLU, three quarters of the pairs, decay 2": judged("lottery", "it runs on partial data"),
        "the best phase does: gradient descent, quadratic":
            judged("lottery", f"the best phase wins: {DESCENT}"),
        "the best phase, AdamW, ReLU": judged("lottery", f"the best phase wins: {ADAMW}"),
    },
}  # fmt: skip
"""By the recipe whose tables are measured, and in words; most are those of its rules."""


def read(clone, name):
    """Return the steps, and the weights (frames, tokens, hidden) into and out of the neurons of a network."""
    place = clone / "src" / "saved_models" / f"p_{P}_dmlp_{HIDDEN}_{name}"
    found = read_checkpoints(place, kind="neurons", modulus=P)
    weights = np.asarray(found.positions[0], np.float64)
    return found.steps, weights[..., :HIDDEN], weights[..., HIDDEN:].swapaxes(1, 2)


def of_waves(activation, into, out):
    """Return rows of the table of `he-waves` for a network that starts as waves."""
    spectrum = neuron_spectrum(into, out)
    theta, xi = spectrum.theta, spectrum.xi
    first, every = np.abs(theta[0]).argmax(axis=1), np.arange(HIDDEN)
    third = np.minimum(3 * (first + 1) % P, -3 * (first + 1) % P) - 1
    end = theta[-1][every, first]
    return [
        {"activation": activation, "network": 0, "kept": k, "third": t, "input_phase": i, "output_phase": o}
        for k, t, i, o in zip(
            np.abs(end) ** 2 / (np.abs(theta[-1]) ** 2).sum(axis=1), np.abs(theta[-1][every, third] / end),
            np.angle(end), np.angle(xi[-1][every, first]), strict=True,
        )
    ]  # fmt: skip


def correct(into, out):
    """Return which of all pairs (p, p) a network adds, from its weights (p, hidden) and (hidden, p)."""
    a, b = np.indices((len(into), len(into)))
    return (np.maximum(into[a] + into[b], 0) @ out).argmax(axis=-1) == (a + b) % len(into)


def counted(unseen, right):
    """Return how many unseen pairs there are and how many are right: of different numbers, and of equal ones.

    The arguments (tokens, tokens) say which pairs are unseen, and right.
    """
    equal = np.eye(len(unseen), dtype=bool)
    return [int(part.sum()) for own in (~equal, equal) for part in (unseen & own, unseen & own & right)]


def ours(p, runs):
    """Train networks as `he-grokking` does, those of p = 23 again, and count the pairs never seen."""
    setting = recipe.Setting(**vars(recipes()["he-grokking"].settings["paper"]) | {"runs": runs})
    trained = he.trained_neurons(setting, 43_000, p, weight_decay=2.0, train_fraction=0.75)
    weights = trained.positions[:, -1], trained.observables["layers.output.weight"][:, -1]
    found = []
    for into, out, examples in zip(*weights, trained.start["train_examples"], strict=True):
        known = np.isin(np.arange(p * p), examples).reshape(p, p)
        found.append(counted(~(known | known.T), correct(into, out)))
    return found


def shown(clone, p):
    """Count the same for a network of the demo; pairs were never seen if both orders are wrong early on."""
    name = f"p_{p:03}/p{p:03}_grokk_epoch_data.json"
    grids = json.loads((clone / "precomputed_results" / name).read_text())["grids"]
    early, late = (np.array(grids[k]) == 1 for k in (1, -1))
    return counted(~(early | early.T), late)


def of_stages(clone, steps, into, out):
    """Return the table "frames" of `he-grokking` for a network trained on some pairs, and its counts."""
    place = clone / "src" / "saved_models" / f"p_{P}_dmlp_{HIDDEN}_{DECAY}"
    sets = (torch.load(place / f"{name}_data.pth", weights_only=True) for name in ("train", "test"))
    trained, tested = (np.isin(np.arange(P * P), [a * P + b for a, b in pairs]) for pairs in sets)
    unseen = ~(trained.reshape(P, P) | trained.reshape(P, P).T).ravel()
    right = np.array([correct(*weights).ravel() for weights in zip(into, out, strict=True)])
    spectrum = neuron_spectrum(into, out)
    frames = {
        "network": np.zeros(len(steps)), "step": steps, "train_accuracy": right[:, trained].mean(axis=1),
        "validation_accuracy": right[:, tested].mean(axis=1),
        "unseen_accuracy": right[:, unseen].mean(axis=1), "purity": np.nanmean(spectrum.purity, axis=1),
        "misaligned": np.nanmean(np.abs(np.sin(spectrum.misalignment)), axis=1),
    }  # fmt: skip
    return frames, counted(unseen.reshape(P, P), right[-1].reshape(P, P))


def of_lottery(cell, into, out):
    """Return a row of the table "networks" of `lottery`."""
    start, end = (neuron_spectrum(into[[k]], out[[k]]) for k in (0, -1))
    found = {"chosen": end.frequency, "single": end.kind == "single"} | he.foretold(start.theta, start.xi)
    return cell._asdict() | {"network": 0} | {name: own[0] for name, own in he._shares(found).items()}


def main(clone):
    """Measure the authors' networks, and write the table."""
    saved = {name: read(clone, name) for name in (*CELLS, *WAVES.values())}
    _, into, out = saved[PLAIN]
    frames, counts = of_stages(clone, *saved[DECAY])
    waves = [row for kind, name in WAVES.items() for row in of_waves(kind, *saved[name][1:])]
    tables = {
        "he-neurons": he.tables_of(into[None, [0, -1]], out[None, [0, -1]]),
        "he-waves": {"neurons": columns_of(waves)},
        "he-grokking": {"frames": frames, "stages": he.stages(frames)},
        "lottery": {
            "networks": columns_of([of_lottery(own, *saved[name][1:]) for name, own in CELLS.items()])
        },
    }
    values = {words: one(tables[item]) for item, own in MEASURES.items() for words, one in own.items()}
    steps, *weights = saved[WAVES["relu"]]
    for step in (1000, 5000):
        begun = (part[[0, int(np.flatnonzero(steps == step)[0])]] for part in weights)
        values[f"after {step} steps"] = np.median([row["third"] for row in of_waves("relu", *begun)])
    unseen = (
        {"saved": counts} | {f"demo, p = {p}": shown(clone, p) for p in (23, 29, 31)} | {"ours": ours(P, 20)}
    )
    unseen |= {f"ours, p = {p}": ours(p, 8) for p in (29, 31)}
    found = {"measures": {key: round(float(x), 4) for key, x in values.items()}, "never seen": unseen}
    TABLE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(TABLE.read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
