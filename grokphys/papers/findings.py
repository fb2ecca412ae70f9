"""Findings that are not in the papers: the text of `docs/findings.md`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A finding in words, and the recipes whose claims hold its numbers."""

    title: str
    words: str
    recipes: tuple[str, ...]


FINDINGS = (
    Finding(
        "The critical training fraction is not a constant",
        "Liu et al. call the critical fraction $r_c$ a constant near 0.4, from one modulus, $p = 10$. The "
        "exact closure of random training sets shows that it falls with $p$, about as $\\ln p / p$, the law "
        "of the coupon collector. Up to $p = 60$ this cannot be distinguished from a power of $p$. No "
        "representation is complete while a symbol has no parallelogram, and at $p = 60$ most of them are "
        "complete as soon as the last symbol has one, which takes of the order of $p \\ln p$ samples.",
        ("liu-scaling", "liu-groups"),
    ),
    Finding(
        "Musat's Table 1 points to one initialization of the layers",
        "The paper does not say how its layers are initialized. We trained networks from several "
        "distributions and asked which of them gives the printed table, number by number.",
        ("musat-start",),
    ),
    Finding(
        "The share of circles depends on the alignment of the particles, not on the step size",
        "The simulation of Musat takes large steps, whose size the paper does not state. We ran the same "
        "particles for the same time at smaller steps. There are as many circles. The other runs have "
        "somewhat fewer grid imperfections; whether by more than the paper's own error is undecided.",
        ("musat-map",),
    ),
    Finding(
        "The even part of the activation makes circles compete",
        "Ding et al. ask which circles survive. The conjecture is that none has to die if the activation "
        "has no even part: networks with tanh or asinh would generalize as well as with SiLU, and all "
        "circles would survive, with equal signals. SiLU is x/2 plus an even function. If that function is "
        "added to tanh with a growing weight, fewer and fewer circles should survive.",
        ("selection",),
    ),
    Finding(
        "Which circles survive is decided at step 0, but no known predictor finds them at that step",
        "The conjecture is that two networks whose initial weights differ by a thousandth keep the same "
        "circles, and that the initial signal, its rate of change, a support vector machine, a linear law "
        "and a mean-field law all predict little about the survivors during the first hundred steps.",
        ("predictability", "ding-law"),
    ),
    Finding(
        "Two frequencies of which one is twice the other rarely survive together",
        "The conjecture is that pairs of survivors whose frequencies have the ratio of one to two, modulo $p$"
        " and up to sign, are rarer than pairs with any other ratio.",
        ("octaves",),
    ),
    Finding(
        "The blow-up time of a frequency predicts where a neuron ends better than the best phase",
        "He et al. say that each neuron ends at the frequency with the best phase at the start. Their own "
        "flow has a closed solution: every frequency diverges at a time $t^*$ to which magnitude and phase "
        "both contribute. In two-layer networks more than half of the neurons end at the frequency with "
        "the smallest $t^*$, and about a fifth at that with the best phase. Only gradient descent may reach "
        "the nine in ten that our rule asks for. In the network of Ding et al., whose neurons share an "
        "embedding, few neurons end at the frequency with the smallest $t^*$. At $p = 31$ a vote of the "
        "neurons predicts the surviving circles no better than the ranking by initial signal; at $p = 59$ "
        "this is undecided.",
        ("lottery", "votes"),
    ),
    Finding(
        "The linear law does not hold forward in time",
        "A linear law describes the signals to which it was fitted. We fitted it to the first 500 steps and"
        " asked how well it predicts the next 500. In every network it predicts them worse than their mean.",
        ("ding-forward",),
    ),
)
