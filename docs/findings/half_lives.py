"""How long circles live, by the weight decay, the modulus p, and the even part of the activation.

``python docs/findings/half_lives.py`` trains the networks that `half_lives.json` lacks, and judges them. They
have no biases and the stable gradient, as those of `critical_decay.py`, whose critical decay is that after
2000 steps. A pilot (SiLU, p = 23, two networks of another seed at each of nine decays, 30 000 steps) showed
that it goes on falling: half of the circles are gone at 0.1 or above after 2000 steps, near 0.02 after
20 000, and near 0.015 after 30 000. From 0.1 to 0.5 three or four circles are left after 30 000 steps, three
at 1 and 2, two at 4. So the decay may set how fast circles die, and not whether. A trial of this program
(three networks of a third seed) had half-lives of 1364 and 517 steps at decays of 0.2 and 0.5.

The rules, written after that pilot and before any network below:

* The *half-life* of a network is the step at which its effective number of circles falls below half of all,
  (p - 1)/4, interpolated on logarithmic axes between 200 recorded steps. Networks with SiLU have decays of
  0.05, 0.1, 0.2 and 0.5, and 1500 steps divided by the decay. One whose circles live longer counts with its
  last step.
* *The half-life is a time of the decay* if it goes as a power of the decay from -1.25 to -0.75, for each of
  p = 23, 31 and 59. If the decay only said whether circles die, it would not depend on it (0) where they do.
* *Θ(1/p)*: at equal decay the half-life goes as a power of p from -1.5 to -0.5, by one regression of all
  networks on decay and p. The decay after a fixed time then goes as 1/p. Without an influence of p it is 0.
* *Odd networks have no half-life*: with tanh more than half of the circles are left after 20 000 steps, at
  decays of 1 and of 2, and p = 23. Of SiLU's, by the first rule, half are gone there within 1500/decay steps.
* *The even part sets it*: with tanh and λ times the even part of SiLU (p = 23, 2000 steps) the critical decay
  goes as a power of λ below -0.5, from λ = 0.25 to 2. Without an influence it is 0.
* Intervals are those of the jackknife over networks, which have the same starts at all decays and λ of one p,
  at 1 - 5 %/7, as there are three powers of the decay, one of p, two decays of tanh, and one power of λ.

The first look left Θ(1/p) open: -0.82 [-1.48, -0.15]. There is one second look: sixteen networks with SiLU
at p = 97, at decays of 0.1, 0.2 and 0.5, and 400 steps divided by the decay. The power of p is then judged by
all networks at 1 - 2.5 %/7, and not a third time; no other rule is judged again.

The first table was made on 2026-11-28, and that of p = 97 a day later, by commits that have their rules, on
an AMD EPYC with AVX2, NumPy 2.4.6 and Numba 0.68.1. The picture was added afterward, and three counts of the
power of p that no rule judges.
"""

from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from critical_decay import WithOrWithoutBiases, passes
from stored import completed

from analysis.circles.fourier import frequency_norms
from analysis.plots import palette
from grokphys.output import save_figure
from grokphys.papers import charts, evidence
from grokphys.papers.beyond.survivors import effective_number
from grokphys.papers.results import WIDTH
from nets import train

TABLE = Path(__file__).with_suffix(".json")
PICTURE = TABLE.parents[1] / "gallery" / "half-lives.png"
DIMS, SEED, LEVEL = {23: 48, 31: 64, 59: 128, 97: 208}, 50_000, 1 - 0.05 / 7
DECAYS = (0.05, 0.1, 0.2, 0.5)
SECOND = 1 - 0.025 / 7
"""Level of the second look at the power of p."""
NETWORKS = {23: 8, 31: 8, 59: 4}
EVEN = (0.25, 0.5, 1.0, 2.0)
LADDER = (0.03, 0.06, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0)
CELLS = (
    *((p, "silu", 0.0, decay, round(1500 / decay), NETWORKS[p]) for p, decay in product(NETWORKS, DECAYS)),
    *((97, "silu", 0.0, decay, round(400 / decay), 16) for decay in DECAYS[1:]),
    *((23, "tanh", 0.0, decay, 20_000, 8) for decay in (1.0, 2.0)),
    *((23, "tanh", even, decay, 2000, 4) for even, decay in product(EVEN, LADDER)),
)
NAMES = ("p", "activation", "even", "decay", "steps")


def rows_of(p, activation, even, decay, steps, networks):
    """Train the networks of a cell, and return a row for each."""
    trained = train(
        WithOrWithoutBiases(p, DIMS[p], activation=activation, even=even), runs=networks, steps=steps,
        record=steps // 200, weight_decay=decay, stable_gradient=True, seed=SEED + p,
        observables=("validation_accuracy",),
    )  # fmt: skip
    held = trained.observables["validation_accuracy"]
    number = np.nan_to_num(effective_number(frequency_norms(trained.positions)), nan=1.0)  # all are zero
    general = [float(trained.steps[np.argmax(own >= 0.9)]) if own.max() >= 0.9 else None for own in held]
    return [
        dict(zip(NAMES, (p, activation, even, decay, steps), strict=True))
        | {"network": n, "half_life": half_life(trained.steps, own, (p - 1) / 4),
           "circles": round(own[-1], 4), "generalizes": general[n], "accuracy": round(float(held[n, -1]), 4)}
        for n, own in enumerate(number)
    ]  # fmt: skip


def half_life(steps, number, limit):
    """Return the step at which a number of circles first falls below a limit, or the last step."""
    below = np.flatnonzero(number < limit)
    if not len(below):
        return float(steps[-1])
    k = max(below[0], 1)
    times = np.log(np.maximum(steps[k - 1 : k + 1], 1))
    return round(float(np.exp(np.interp(-np.log(limit), -np.log(number[k - 1 : k + 1]), times))), 1)


def power(y, *x):
    """Return the power with which y goes as the first of the x, by a regression on all of them."""
    columns = np.stack([*np.log(x), np.ones(len(y))], axis=1)
    return float(np.linalg.lstsq(columns, np.log(y))[0][0])


def of_even(decay, even, circles):
    """Return the power with which the critical decay goes as the even part (p = 23)."""
    places = np.unique(even)
    critical = [passes(decay[even == place], circles[even == place], 5.5) for place in places]
    return power(np.exp(critical), places)


def draw(table):
    """Draw the half-life over the decay, and the circles that are left over it by λ."""
    with charts.panels(9.6, 4.4, 1, 2) as (figure, (left, right)):
        for n, p in enumerate(DIMS):
            own = evidence.where(table, p=p, activation="silu")
            look = {"color": palette.SERIES[n], "marker": "os^D"[n], "linestyle": "none", "markersize": 4}
            left.plot(own["decay"] * 1.06 ** (n - 1.5), own["half_life"], label=f"p = {p}", **look)
            mean = np.exp(np.log(own["half_life"] * own["decay"]).mean())
            places = np.unique(own["decay"])
            left.plot(places, mean / places, ":", color=palette.SERIES[n], linewidth=1)
        words = "steps until half of the circles are gone"
        title = "SiLU; dotted: in proportion to 1 / decay"
        charts.label(left, "weight decay", words, title, xscale="log", yscale="log", legend={"columns": 2})
        left.set_xticks(DECAYS, map(str, DECAYS))
        left.set_xticks([], minor=True)
        for n, even in enumerate(EVEN):
            own = evidence.where(table, even=even)
            look = {
                "color": palette.SERIES[n],
                "marker": "os^D"[n],
                "markersize": 4,
                "label": f"λ = {even:g}",
            }
            charts.means(right, own["decay"], own["circles"] / 11, possible=(0.0, 1.0), **look)
        right.axhline(0.5, color=palette.REFERENCE, linewidth=1, linestyle=":")
        words, title = (
            "effective number of circles\nover all frequencies",
            "tanh + λ even part, p = 23, 2000 steps",
        )
        charts.label(right, "weight decay", words, title, xscale="log", ylim=(0, 1.03), legend={"columns": 2})
    save_figure(figure, PICTURE, dpi=WIDTH / figure.get_figwidth())


def judge(table):
    """Return what the rules ask for, as intervals by name."""
    silu = evidence.where(table, activation="silu")
    groups, columns = silu["p"] * 100 + silu["network"], (silu["half_life"], silu["p"], silu["decay"])
    found = {"power of p": evidence.jackknife(power, *columns, level=SECOND, groups=groups)}
    for name, out in {
        "without a decay of 0.05": silu["decay"] == 0.05, "without p = 23": silu["p"] == 23,
        "without network 7 of p = 23": groups == 2307,
    }.items():  # fmt: skip
        part = (values[~out] for values in columns)
        found[f"power of p {name} (no rule)"] = evidence.jackknife(
            power, *part, level=SECOND, groups=groups[~out]
        )
    for p in NETWORKS:
        own = evidence.where(silu, p=p)
        columns, groups = (own["half_life"], own["decay"]), own["network"]
        found[f"power of the decay, p = {p}"] = evidence.jackknife(
            power, *columns, level=LEVEL, groups=groups
        )
    for decay in (1.0, 2.0):
        share = evidence.where(table, activation="tanh", even=0.0, decay=decay)["circles"] / 11
        found[f"share with tanh at {decay:g}"] = evidence.jackknife(np.mean, share, level=LEVEL)
    mixed = {name: values[table["even"] > 0] for name, values in table.items()}
    columns = (mixed[name] for name in ("decay", "even", "circles"))
    found["power of λ"] = evidence.jackknife(of_even, *columns, level=LEVEL, groups=mixed["network"])
    return found


def main():
    """Train what is missing, store it, and print the means of each cell and what the rules ask for."""
    parts = [(dict(zip(NAMES, cell[:-1], strict=True)), partial(rows_of, *cell)) for cell in CELLS]
    table = evidence.columns_of(completed(TABLE, parts))
    for part, _ in parts:
        own = evidence.where(table, **part)
        told = (f"{np.mean(own[name]):.2f}" for name in ("half_life", "circles", "accuracy"))
        print(*part.values(), len(own["network"]), *told)
    draw(table)
    for name, interval in judge(table).items():
        print(name, interval.format(2), interval.count, "networks")


if __name__ == "__main__":
    main()
