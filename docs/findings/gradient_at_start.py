"""Whether the gradient or the tangent kernel at step 0 knows which circles survive.

``python docs/findings/gradient_at_start.py`` computes both for the untrained networks of the recipe `votes`
(120 of p = 31 and 16 of p = 59, drawn again from their seeds) if `gradient_at_start.json` is missing, and
judges them by the survivors that `docs/results/votes` holds.

The definitions and rules, written before any score of these or other networks was computed:

* *Gradient*: the rate d ln|F_k|/dt of the Fourier coefficient F_k of the embedding under gradient flow on the
  mean training loss, through the layers: Re⟨F_k, G_k⟩/|F_k|² with G the negative gradient. The networks move
  by AdamW, but its division by the size of each component prefers no frequency by itself, its decay shrinks
  all alike, and what its first four steps do to the signals is judged elsewhere as `rate`.
* *Kernel*: how fast the linearized network learns frequency k: the Rayleigh quotient yᵀKy/|y|² =
  |∇ Σ f y|²/|y|² of the tangent kernel K of all parameters, embedding included, at y = cos(2πk(a + b - c)/p)
  over pairs (a, b) and classes c, with logits f. Pairs are those of the training set, as no other moves the
  network. At nearly equal outputs the error of the softmax is 2/p times the sum of all y; each y sums to zero
  over the classes, so that centering the logits changes nothing.
* *All together*: a logistic model of these two and of the signal, the votes of the neurons and the mean of
  1/t* in `votes`, each standardized within its network; it predicts each fifth of the networks of one p
  from the others. (The last three together were known to have 0.49 for p = 31, no more than the signal.)
* The circles with the largest scores are named, as many as survive on average in the other networks, and
  compared with the survivors by the Jaccard index, as in the recipes `votes` and `predictability`.
* A predictor *knows little* if its index is at least 0.2 less than that of the networks of `predictability`
  whose start was changed by 1e-4, by the whole interval, and *knows well* if it is less than 0.2 less, by the
  whole interval.
* It *knows more than the signal* if its index minus that of ranking the signal, for the same networks, is
  above 0 by the whole interval, and *less* if below. By chance it has the index that it gets if networks
  exchange their scores, averaged over all cyclic shifts.
* Intervals are Student's over networks, which share no random draw (leaving out one after the other gives the
  same), and Clopper and Pearson's for pairs that all agree. There are two rules for three predictors and two
  p, so that the level is 1 - 5 %/12.

No rule judges three others, which are printed beside them: *first step*, the rate of ln|F_k| in the first
step of Adam, which moves each component of the embedding alike, by its sign; *signal and rate*, signal times
exp(rate t), with t from a logistic model of other networks; and *learning*, the rate at which gradient flow
through all parameters changes the part y of the logits, which sees the true error.

The table was made on 2026-11-28, after the commit of the rules, with NumPy 2.4.6, Numba 0.68.1 and PyTorch
2.13.0, on an AMD EPYC with AVX2. A check of the votes of `votes` was dropped before any score: in batches of
another size, ties of votes break in another way.
"""

import json
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from analysis.circles.fourier import frequency_norms
from grokphys.arena.signals import ballots, blowup, ranked
from grokphys.papers import evidence
from nets import EmbeddingMLP, Training
from nets.architecture import EMBEDDING

TABLE = Path(__file__).with_suffix(".json")
RESULTS = Path(__file__).parents[1] / "results"
PLACES, SEED, DECAY = {31: (64, 120), 59: (128, 16)}, 46_000, 0.5
RULES = ("gradient", "kernel", "all together")
LEVEL = 1 - 0.05 / (2 * len(RULES) * len(PLACES))


def stored(recipe, name, p):
    """Return the rows of a stored table with modulus p, as columns."""
    table = json.loads((RESULTS / recipe / f"{name}.json").read_text())
    return evidence.where({name: np.array(column) for name, column in table.items()}, tokens=p)


def circles(p):
    """Return the columns of `votes` for the first networks of modulus p, (networks, K) each."""
    first = slice(PLACES[p][1])
    return {name: rows.reshape(-1, p // 2)[first] for name, rows in stored("votes", "circles", p).items()}


def growth(E, force):
    """Return the rate d ln|F_k|/dt (K,) of embeddings E that move by a force, both (p, d)."""
    F, G = (np.fft.rfft(x, axis=0)[1:] for x in (E, force))
    return (F.conj() * G).real.sum(axis=1) / (abs(F) ** 2).sum(axis=1)


def scores_of(model, parameters, examples):
    """Return scores (K,) of the circles of one network, with parameters (1, ...), and its force (p, d)."""
    p, inputs = model.tokens, torch.tensor(model.task.inputs[examples])
    theta = {
        name: torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for name, value in parameters.items()
    }

    def gradient(scalar):
        found = torch.autograd.grad(scalar, [*theta.values()], retain_graph=True)
        return torch.cat([each.flatten() for each in found])

    logits = model.outputs(theta, inputs[None])[0]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(model.task.labels[examples]))
    moves, (slope,) = -gradient(loss), torch.autograd.grad(loss, [theta[EMBEDDING]], retain_graph=True)
    E, force = theta[EMBEDDING][0].detach().numpy(), -slope[0].numpy()
    found = {
        "gradient": growth(E, force),
        "first step": growth(E, np.sign(force)),
        "kernel": [],
        "learning": [],
    }
    angle = 2 * np.pi / p * (inputs.sum(dim=1, keepdim=True) - torch.arange(p)).double()
    for k in range(1, p // 2 + 1):
        y = torch.cos(k * angle)
        pulled, size = gradient((logits * y).sum()), float((y**2).sum())
        found["kernel"].append(float(pulled @ pulled) / size)
        found["learning"].append(len(examples) * float(pulled @ moves) / size)
    return found, force


def rows_of(p):
    """Return a row for each untrained network of one size, after a check that it is that of `votes`."""
    dim, runs = PLACES[p]
    training = Training(EmbeddingMLP(p, dim), runs=runs, seed=SEED + p, weight_decay=DECAY)
    networks, slopes, known = training.networks(), training.machine.gradient(EMBEDDING), circles(p)
    signal, (_, haste) = frequency_norms(networks.parameters[EMBEDDING]), ballots(blowup(networks)[1])
    for name, again in (("signal", signal), ("haste", haste)):
        np.testing.assert_allclose(again, known[name], rtol=1e-5, err_msg=name)
    rows = []
    for n, examples in enumerate(networks.examples("train")):
        own = {name: value[n : n + 1] for name, value in networks.parameters.items()}
        found, force = scores_of(networks.model, own, examples)
        np.testing.assert_allclose(force, -slopes[n], atol=1e-4 * abs(force).max())
        values = {name: [float(f"{x:.6g}") for x in score] for name, score in found.items()}
        rows.append({"p": p, "network": n, **values})
    return rows


def fitted(features, survived):
    """Return scores (networks, K) of a logistic model of features, each (networks, K), by fifths."""
    X = np.stack(features, axis=-1).reshape(-1, len(features))
    fifths = PredefinedSplit(np.repeat(np.arange(len(survived)) % 5, survived.shape[1]))
    model = make_pipeline(StandardScaler(), LogisticRegression())
    scores = cross_val_predict(model, X, survived.ravel(), cv=fifths, method="decision_function")
    return scores.reshape(survived.shape)


def judged(rows, p):
    """Return, by predictor, intervals of its index, of what it lacks and leads, and the index by chance."""
    known, own = circles(p), [row for row in rows if row["p"] == p]
    survived = known["survived"].astype(bool)
    scores = {
        name: np.array([row[name] for row in own])
        for name in ("gradient", "kernel", "first step", "learning")
    }
    features = [known[name] for name in ("signal", "votes", "haste")] + [scores["gradient"], scores["kernel"]]
    each = [(x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True) for x in features]
    scores["all together"] = fitted(each, survived)
    scores["signal and rate"] = fitted([np.log(known["signal"]), scores["gradient"]], survived)
    changes, signal = stored("predictability", "changes", p), ranked(known["signal"], survived)
    nearly = changes["agreement"][changes["change"] == "start × (1 ± 0.0001)"]
    twins, found = evidence.share(nearly == 1, LEVEL), {}
    for name, score in scores.items():
        index = ranked(score, survived)
        others = [ranked(np.roll(score, n, axis=0), survived).mean() for n in range(1, len(score))]
        mean, lead = (evidence.mean(values, LEVEL) for values in (index, index - signal))
        found[name] = mean, evidence.difference(twins, mean), lead, np.mean(others)
    return found


def main():
    """Compute the scores if they are missing, store them, and print what the rules ask for."""
    if not TABLE.exists():
        rows = [row for p in PLACES for row in rows_of(p)]
        TABLE.write_text("[" + ",\n".join(map(json.dumps, rows)) + "]\n")
    for p in PLACES:
        for name, (mean, lacks, leads, chance) in judged(json.loads(TABLE.read_text()), p).items():
            told = f"index {mean.format(2)}, lacks {lacks.format(2)}, leads the signal by {leads.format(2)}"
            print(f"p = {p}, {name}: {told}, by chance {chance:.2f}", "" if name in RULES else "(no rule)")


if __name__ == "__main__":
    main()
