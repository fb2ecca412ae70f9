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
        "Liu et al. call the critical fraction $r_c$ a constant near 0.4, from one modulus, p = 10. The "
        "exact closure of random training sets shows that it falls with p, about as $\\ln p / p$, the law "
        "of the coupon collector; p up to 60 does not tell it from a power of p. A representation is "
        "complete once no symbol is left without a parallelogram, and it takes about p ln p draws until the"
        " last of p symbols has one.",
        ("liu-scaling", "liu-groups"),
    ),
    Finding(
        "Musat's Table 1 points to one initialization of the layers",
        "The paper does not say how its layers are initialized. We trained networks from several "
        "distributions and asked which of them gives the printed table, number by number.",
        ("musat-start",),
    ),
    Finding(
        "The circles of the particles come from the alignment, not from the step size",
        "The simulation of Musat takes large steps, whose size the paper does not state. We ran the same "
        "particles for the same time at smaller steps.",
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
        "Which circles survive is decided at step 0, but no known predictor can tell at that step",
        "The conjecture is that two networks whose initial weights differ by a thousandth keep the same "
        "circles, and that the initial signal, its rate of change, a support vector machine, a linear law "
        "and a mean-field law all predict little about the survivors during the first hundred steps.",
        ("predictability", "ding-law"),
    ),
    Finding(
        "Octaves are avoided",
        "The conjecture is that pairs of survivors whose frequencies have the ratio of one to two, modulo p"
        " and up to sign, are rarer than pairs with any other ratio.",
        ("octaves",),
    ),
    Finding(
        "A neuron follows the time of its blow-up, not its best phase",
        "He et al. say that each neuron ends at the frequency with the best phase at the start. Their own "
        "flow has a closed solution, and the frequency that it sends to infinity first is another one, as "
        "magnitude and phase both count. Most neurons end there under gradient descent and under AdamW, and"
        " the best phase alone names the winner of few. In the network of Ding et al., whose neurons share "
        "an embedding, only a few end there. The rows below say what could be decided, and whether a vote "
        "of the neurons tells the surviving circles better than the ranking by initial signal.",
        ("lottery", "votes"),
    ),
    Finding(
        "The linear law does not hold forward in time",
        "A linear law describes the signals to which it was fitted. We fitted it to the first 500 steps and"
        " asked how well it predicts the next 500.",
        ("ding-forward",),
    ),
)
