"""Findings that are not in the papers: the text of `docs/findings.md`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A finding or conjecture beyond the papers, in words, with the recipes that test it.

    Attributes
    ----------
    title : str
        The finding in one sentence.
    words : str
        What was asked and what was found, in Markdown.
    recipes : tuple of str
        Names of the recipes whose judged claims are listed below the words.
    """

    title: str
    words: str
    recipes: tuple[str, ...]


FINDINGS = (
    Finding(
        "The critical training fraction falls with the number of symbols",
        "Liu et al. find a critical fraction $r_c$ of about 0.4 for $p = 10$, the only number of symbols "
        "for which they give one under addition. The exact closure of random training sets shows that it "
        "falls with $p$, and for large $p$ nearly as $\\ln p / p$, the law of the coupon collector. No "
        "representation is complete while a symbol has no parallelogram, and at $p = 60$ most of them are"
        " complete as soon as the last symbol has one, which takes of the order of $p \\ln p$ samples. "
        "For the group $S_3$, which does not commute, deduction from random training sets agrees with the"
        " critical fraction of 0.5 at which Liu et al. see networks change.",
        ("liu-scaling", "liu-groups"),
    ),
    Finding(
        "Networks of one cell of a phase diagram often have different phases",
        "The figures of Liu et al. show one phase in each cell of a plane. In each cell of Figure 6 (a), a "
        "plane of learning rates, we trained three networks that differ only in their seed. (The published "
        "code uses one seed for all cells of a panel.) Pairs of "
        "networks of one cell have the same phase less often than the 90 % that our rule asks for; a "
        "shorter trial, which we knew when we wrote the rules, had given 77 %. Where the "
        "representation learns slowly, all networks memorize. Where some networks generalize, few cells have "
        "a single phase, and three diagrams with one network in each cell look different. Networks of one "
        "cell agree less often if the cells around it have several phases, and the learning rates tell the "
        "phase less well than our rule asks. A diagram should therefore show the share of each phase, as "
        "ours do.",
        ("liu-seeds",),
    ),
    Finding(
        "Musat's Table 1 speaks against one initialization of the layers, and does not single out another",
        "The paper does not say how its layers are initialized. We trained networks from four "
        "distributions, and asked which of them gives the printed table, number by number. Kaiming's uniform "
        "distribution makes about twice as many circles as the table has at the stronger weight decays. No "
        "rule asked about it; in the table of totals its χ² is the only one that chance hardly gives. "
        "PyTorch's own distribution and Xavier's two are all compatible with the paper's table, which states "
        "too few networks to tell them apart.",
        ("musat-start",),
    ),
    Finding(
        "At $f_a = 1$ the share of circles hardly depends on the step size",
        "The simulation of Musat takes steps whose size the paper does not state. We ran "
        "particles for the same time at smaller steps. At $f_a = 1$ the share of circles changes by less "
        "than five percentage points; at $f_a = 2$, which no rule judges, it falls by nearly five as the "
        "step falls from 0.04 to 0.005. The runs without a circle have fewer grid imperfections at "
        "smaller steps: at $f_a = 1$ they fall from 54 at step 0.04 to 36 at 0.02 and 32 at 0.005. "
        "Whether the fall from 0.02 to 0.005 exceeds the paper's own error is undecided.",
        ("musat-map",),
    ),
    Finding(
        "The even part of the activation makes circles compete",
        "Ding et al. ask which circles survive. If the activation has no even part, none dies out while "
        "others win: with tanh the signals of all circles end nearly as equal as they began, and the "
        "networks generalize as well as with SiLU, within two percentage points. By the rule of the "
        "[glossary](glossary.md#survival) none of them survives, because none exceeds twice the mean. "
        "That rule presupposes that a few circles dominate, so we measure the effective number of circles"
        " instead, which counts all of them if they are equal. It stays near their number. With asinh, an"
        " odd function that does not saturate, it stays high too (for $p = 59$ it is undecided whether "
        "above our limit of 0.85). SiLU is x/2 plus an even function. If that function is added to tanh "
        "with a weight λ, little changes up to λ = 0.25. The effective number of circles falls steeply "
        "from there to λ = 0.75, for $p = 59$ more than for $p = 31$, and then slowly. For $p = 31$ it is"
        " larger again at λ = 4, where not all networks have generalized by the last step. No rule judges"
        " where the fall is steepest, or whether it is a transition for large $p$.",
        ("selection",),
    ),
    Finding(
        "Networks from nearly the same start keep the same circles, which no known predictor finds at step 0",
        "All pairs of networks whose initial embeddings differ by at most 1e-4 of their size kept the same "
        "circles, and so did most of those that differ by 1e-2. At step 0, the initial signal, its rate of"
        " change, a support vector machine and a linear law all predict the survivors much less well than"
        " such a second network does. So does a mean-field law, which keeps the order of the signals and "
        "therefore names the same circles as the ranking by initial signal. What the predictors miss lies"
        " partly in the layers and the training set: with fresh ones, the same embedding keeps about half"
        " of its circles or fewer, though more than unrelated networks have in common (for $p = 59$ it is"
        " undecided whether by the tenth that the rule asks for). From step 400 on, ranking the signals "
        "tells most survivors. A mean-field law that is fitted to other networks (`ding-law`) tells more of"
        " them than a linear law, from every step on that we tried; whether it tells more than the ranking"
        " is undecided at each of them. The networks of these pairs are 60 of each modulus that no earlier "
        "run used, because 40 before them, all of whose pairs agreed too, were too few for our rule. They "
        "leave open whether up to 9 % of such pairs would not agree; the rule allows 10 %.",
        ("predictability", "ding-law"),
    ),
    Finding(
        "Two frequencies of which one is twice the other survive together less often than others",
        "Two survivors whose frequencies have the ratio one to two, modulo $p$ and up to sign, are less "
        "common than chance would give, with SiLU and with ReLU. The effect weakens as $p$ grows: such "
        "pairs have a fifth to a quarter of the frequency that chance gives for $p = 23$, half to two "
        "thirds for $p = 31$, and about three quarters or more for $p = 43$ and $59$, where it is "
        "undecided whether they stay below the four fifths that our rule asks for. We had expected the "
        "ratio to become rarer as tanh gets more of the even part; for $p = 31$ the estimate goes the "
        "other way, and nothing is decided.",
        ("octaves",),
    ),
    Finding(
        "The blow-up time of a frequency predicts where a neuron ends better than the best phase",
        "He et al. say that the initial magnitude and the initial phase of a frequency together decide at "
        "which one a neuron ends, and a corollary, for equal magnitudes, names the frequency with the best "
        "phase. Random starts have unequal magnitudes. The "
        "flow has a closed solution: every frequency diverges at a time $t^*$ to which magnitude and phase "
        "both contribute. In two-layer networks of 25 sizes and settings, not all of which are judged "
        "below, an estimated 51 to 93 % of the neurons end at the frequency with the smallest $t^*$, and 7 "
        "to 22 % at the one with the best "
        "phase. Our rule asks for 90 %. No setting with AdamW reaches it; for gradient descent the test is "
        "inconclusive. In "
        "the network of Ding et al., whose neurons share an embedding, few neurons end at the frequency with "
        "the smallest $t^*$. At $p = 31$ a vote of the neurons predicts the surviving circles no better "
        "than the ranking by initial signal; at $p = 59$ "
        "this is undecided.",
        ("lottery", "votes"),
    ),
    Finding(
        "One subtraction in 32-bit floats throws networks back late in training, and circles die of it",
        "The gradient of the cross-entropy at the right class is its probability minus 1. In 32-bit floats "
        "this difference is only rounding once the loss is near 1e-7, and the gradients of an example no "
        "longer add up to zero. We trained the same networks three times for 30 000 steps: with the "
        "subtraction in 32 bits, as PyTorch and the published code compute it; with the sum of the other "
        "probabilities instead, which is the same number with all its digits (`stable_gradient` of "
        "`nets.train`); and with the subtraction in 64 bits. By subtraction in 32 bits, the loss of each of "
        "the 36 networks jumps up by four to eight orders of magnitude between steps 17 700 and 22 900. Of "
        "the circles that survive at step 5000, 15 die in 24 networks of $p = 31$, and 19 of 62 in 12 "
        "networks of $p = 59$. By the sum, and in 64 bits, the loss does not jump, and none of these circles "
        "dies. At the end of such a training, the circles are therefore not only those that survived the "
        "competition. This concerns the networks of Ding's figures that train for 30 000 steps, in the paper "
        "and here; the first thousands of steps are not affected. Jumps late in training are known as "
        "slingshots (Thilak et al., 2022), and rounding in the softmax is known to stop networks that train "
        "without weight decay (Prieto et al., 2025). Whether other slingshots come from this subtraction was "
        "not tested. Whether 32 bits by the sum keep more of the circles that 64 bits keep than they do by "
        "subtraction holds for $p = 59$; for $p = 31$ the twelve networks leave it open.",
        ("rounding",),
    ),
    Finding(
        "The linear law does not hold forward in time",
        "A linear law describes the signals to which it was fitted. We fitted it to the first 500 steps and"
        " asked how well it predicts the next 500. In every network it predicts the changes of the "
        "signals worse than their mean does.",
        ("ding-forward",),
    ),
)
