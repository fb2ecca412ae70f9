"""Verdicts: rules that were written before a run, applied to its tables.

All claims of an item are decided together. By Holm's procedure, the most decisive of m claims is tested at
the level α / m, and the remaining ones at α / (m - k) once k are decided. The probability of any wrong
decision is therefore at most α = 5 %.
"""

import numpy as np

from analysis.stats.intervals import Interval
from grokphys.papers.evidence import difference, exact
from grokphys.papers.recipe import Claim, Number, Rule, Statement, Tables, Word

ALPHA = 0.05
SLACK = 1e-9
"""Tolerance for floating-point numbers that are equal as decimals."""


def judge(rules: tuple[Rule, ...], tables: Tables) -> tuple[Claim, ...]:
    """Apply all rules of an item to its tables.

    The interval of a claim has the level at which the claim was decided, or 95 % if it was not decided.
    """
    open_, decided = list(range(len(rules))), dict[int, Claim]()
    while open_:
        level = 1 - ALPHA / len(open_)
        claims = {k: decide(rules[k], rules[k].measure(tables, level)) for k in open_}
        settled = {k: claim for k, claim in claims.items() if claim.verdict != "inconclusive"}
        decided |= settled
        if not settled:
            break
        open_ = [k for k in open_ if k not in settled]
    for k in open_:  # a single claim was measured at 95 % above
        found = claims[k].found if len(open_) == 1 else rules[k].measure(tables, 1 - ALPHA)
        decided[k] = Claim(rules[k], found, "inconclusive")
    return tuple(decided[k] for k in range(len(rules)))


def decide(rule: Rule, found: Interval) -> Claim:
    """Apply one rule to an estimate with its interval."""
    if np.isnan([found.estimate, found.low, found.high]).any():  # infinite bounds are allowed
        return Claim(rule, found, "inconclusive")
    return Claim(rule, found, _number(rule, found) if isinstance(rule, Number) else _statement(rule, found))


def _number(rule: Number, found: Interval) -> Word:
    """Covered if the interval of our number minus the paper's contains zero, within the printed rounding.

    A difference can be decided with any width of our interval; agreement needs a narrow one.
    """
    printed = rule.printed
    theirs = exact(printed.value)
    if printed.interval is not None:
        theirs = Interval(printed.value, *printed.interval, 0)
    gap = difference(found, theirs)
    room = printed.rounding + SLACK
    if gap.low > room or gap.high < -room:
        return "not covered"
    return "covered" if (found.high - found.low) / 2 <= rule.margin else "inconclusive"


def _statement(rule: Statement, found: Interval) -> Word:
    if rule.least <= found.low and found.high <= rule.most:
        return "holds"
    return "does not hold" if found.high < rule.least or found.low > rule.most else "inconclusive"
