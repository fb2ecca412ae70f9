"""Verdicts: rules that were written before a run, applied to its tables.

All claims of an item are decided together, because a test of many claims at 5 % each would often err in one
of them. A statement is decided, against chance or against the paper, if it *agrees* or *disagrees*, and a
number if it *disagrees*. Holm's procedure controls these decisions: of m claims the most decisive is tested
at the level α / m, and the remaining ones at α / (m - k) once k are decided. The probability that any of
these decisions is wrong is therefore at most α = 5 %.

That a number *agrees* is no such decision, because it says only that nothing contradicts the paper's number.
It leaves the level of the other decisions unchanged, and requires agreement at 95 % within a margin.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

import numpy as np
from scipy import stats

from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.evidence import Tables, difference, equal
from grokphys.papers.recipe import Claim, Number, Rule, Statement, Word

ALPHA = 0.05
SLACK = 1e-9
"""Tolerance for numbers that are equal as decimals, but not in floating point."""
EQUAL = 1e-12
"""Width of an interval, relative to the estimate, up to which the units have the same value."""


def judge(rules: tuple[Rule, ...], tables: Tables, looks: int = 1) -> tuple[Claim, ...]:
    """Apply all rules of an item to its tables.

    Parameters
    ----------
    rules : tuple of Number or Statement
        Rules of a recipe.
    tables : mapping of str to mapping of str to ndarray
        Tables of the result of the recipe.
    looks : int, default 1
        Number of times that the claims are judged. The second look, at more networks after claims were left
        open, has half of α, and no look follows it.

    Returns
    -------
    tuple of Claim
        One claim for each rule, in the order of the rules. Its interval has the level at which the claim was
        decided or left open, or 95 % if it is a number that agrees.
    """
    claims: dict[int, Claim] = {}
    open_ = list(range(len(rules)))
    while open_:
        level = 1 - ALPHA / looks / len(open_)
        claims |= {k: decide(rules[k], measured(rules[k], tables, level), level) for k in open_}
        left = [k for k in open_ if claims[k].verdict == "undecided"]
        if left == open_:
            break
        open_ = left
    for k in open_:
        rule = rules[k]
        if isinstance(rule, Number):
            found = measured(rule, tables, CONFIDENCE)
            claims[k] = Claim(rule, found, "agrees") if agrees(rule, found) else claims[k]
    return tuple(_worded(claims[k]) for k in range(len(rules)))


def counted(verdicts: Iterable[str]) -> str:
    """Return how many claims have each verdict in words, such as "2 of 3 agree, 1 disagrees"."""
    counts = Counter(verdicts)
    judged = counts.total() - counts["other data"]
    told = [f"{counts['agrees']} of {judged} agree"] * bool(judged)
    told += [f"{counts[word]} {word}" for word in get_args(Word)[1:] if counts[word]]
    return re.sub(r"\b(\d\d+|[2-9]) disagrees", r"\1 disagree", ", ".join(told))


def _worded(claim: Claim) -> Claim:
    """Return a claim whose verdict says if no number of runs decides it, or if it is one of other data."""
    if claim.rule.fidelity.startswith("other data"):
        return replace(claim, verdict="other data")
    hopeless = claim.verdict == "undecided" and claim.rule.undecidable
    return replace(claim, verdict="undecidable") if hopeless else claim


def measured(rule: Rule, tables: Tables, level: float) -> Interval:
    """Return what a rule measures, with an interval that has a width also if all units have the same value.

    If they do, the interval is that of `evidence.equal`. A side on which the rule bounds no value has no
    width; no published claim may rest on such an interval, and a test sees to it.

    Parameters
    ----------
    rule : Number or Statement
        The rule, with its possible values.
    tables : mapping of str to mapping of str to ndarray
        Tables of the result of the recipe.
    level : float
        Confidence level.

    Returns
    -------
    Interval
        The number or effect. A count of one marks a number that is exact.
    """
    found = rule.measure(tables, level)
    if found.count < 2 or not found.high - found.low <= EQUAL * abs(found.estimate):
        return found
    return equal(found, level, *rule.possible)


def decide(rule: Rule, found: Interval, level: float = CONFIDENCE) -> Claim:
    """Return the verdict of one rule at one confidence level.

    Parameters
    ----------
    rule : Number or Statement
        The rule.
    found : Interval
        Our number or effect, with its interval at the level `level`.
    level : float, default 0.95
        Confidence level.

    Returns
    -------
    Claim
        A number "disagrees" if it differs from the printed one, and is otherwise "undecided", because
        `agrees` decides separately. A statement "agrees", "disagrees" or is "undecided". If the estimate or a
        bound is NaN, the claim is "undecided".
    """
    if np.isnan([found.estimate, found.low, found.high]).any():  # infinite bounds are allowed
        return Claim(rule, found, "undecided")
    if isinstance(rule, Number):
        return Claim(rule, found, "disagrees" if _differs(rule, found, level) else "undecided")
    return Claim(rule, found, _statement(rule, found))


def agrees(rule: Number, found: Interval) -> bool:
    """Return whether our number agrees with the printed one.

    Parameters
    ----------
    rule : Number
        Rule of the printed number.
    found : Interval
        Our number with its 95 % interval.

    Returns
    -------
    bool
        True if the interval of the difference contains zero, within the rounding, and half of the width of
        our interval is at most the margin of the rule.
    """
    narrow = (found.high - found.low) / 2 <= rule.margin  # false for NaN
    return narrow and not _differs(rule, found, CONFIDENCE)


def _differs(printed: Number, found: Interval, level: float) -> bool:
    """Return whether our number differs from the paper's by more than chance and the printed rounding.

    It does if the interval of the difference is farther from zero than the rounding. `level` is the
    confidence level of `found`. The paper's 95 % interval, if there is one, is scaled to this level as that
    of a normally distributed estimate.
    """
    theirs = Interval(printed.value, printed.value, printed.value, 1)
    if printed.interval is not None:
        scale = float(stats.norm.ppf((1 + level) / 2) / stats.norm.ppf((1 + CONFIDENCE) / 2))
        low, high = (printed.value + scale * (side - printed.value) for side in printed.interval)
        theirs = Interval(printed.value, low, high, 0)
    gap = difference(found, theirs)
    room = printed.rounding + SLACK
    return bool(gap.low > room or gap.high < -room)


def _statement(rule: Statement, found: Interval) -> Word:
    if rule.least <= found.low and found.high <= rule.most:
        return "agrees"
    return "disagrees" if found.high < rule.least or found.low > rule.most else "undecided"
