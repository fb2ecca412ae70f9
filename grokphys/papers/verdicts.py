"""When a printed number is covered, and when a printed statement holds.

**A number is covered** where our 95 % interval holds it, within the rounding it is printed with. Where the
paper has a finite sample of its own, the 95 % interval of the difference (ours minus the paper's) must hold
zero instead, again within the rounding: the two intervals are combined as Newcombe (1998) and Zou (2007) do.
The paper's interval is the printed one; Wilson's for a count of successes; and where only the number of its
runs is known, ours at that number of runs.

**A statement holds** where a predicate computed from our data is true; its statistic stands beside it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import stats

from analysis.stats.intervals import Interval, difference, proportion

Word = Literal["covered", "not covered", "holds", "does not hold", "undetermined", "other setting"]
UNEXPLAINED = "no reason known"
SLACK = 1e-9
"""Of floating point numbers that are equal in decimals."""


@dataclass(frozen=True)
class Printed:
    """A number as a paper prints it.

    Attributes
    ----------
    text : str
        Its digits, ``"35.5"``: they tell the rounding.
    source : str
        Where it stands.
    interval : Interval, optional
        Its 95 % interval, in the same unit.
    runs : int, default 0
        Size of the paper's sample where it gives no interval; 0 where that is not known.
    """

    text: str
    source: str
    interval: Interval | None = None
    runs: int = 0

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit that is printed."""
        decimals = len(self.text.partition(".")[2])
        return float(0.5 * 10.0**-decimals)

    def __str__(self) -> str:
        if self.interval is None:
            return self.text
        low, high = (
            f"{side:.{len(self.text.partition('.')[2])}f}" for side in (self.interval.low, self.interval.high)
        )
        return f"{self.text} [{low}, {high}]"


def plus_minus(text: str, half: str, source: str, runs: int) -> Printed:
    """A mean that is printed with half the width of its 95 % interval."""
    value, width = float(text), float(half)
    return Printed(text, source, interval((value, value - width, value + width), runs))


def between(text: str, sides: tuple[str, str], source: str, runs: int) -> Printed:
    """A number that is printed with both sides of its 95 % interval."""
    return Printed(text, source, interval(map(float, (text, *sides)), runs))


def percent(successes: int, runs: int, source: str) -> Printed:
    """A count of successes, in percent, with Wilson's interval."""
    return Printed(f"{100 * successes / runs:g}", source, scaled(proportion(successes, runs), 100))


def scaled(value: Interval, factor: float) -> Interval:
    """An interval in another unit."""
    return Interval(factor * value.estimate, factor * value.low, factor * value.high, value.count)


def interval(sides: Iterable[float], count: int) -> Interval:
    """An interval of its estimate, low and high side."""
    estimate, low, high = sides
    return Interval(float(estimate), float(low), float(high), count)


def exact(value: float, count: int = 1) -> Interval:
    """A number that was computed, not estimated: its interval is the number itself."""
    return Interval(float(value), float(value), float(value), count)


@dataclass(frozen=True)
class Finding:
    """Whether a statement holds in our data, the statistic that says so, and how many values are behind it.

    `holds` is None where the data do not allow an answer.
    """

    holds: bool | None
    statistic: str
    count: int


@dataclass(frozen=True)
class Verdict:
    """A word, and the reason where the word asks for one."""

    word: Word
    why: str = ""


@dataclass(frozen=True)
class Circumstances:
    """What must be said of a claim when it is judged.

    Attributes
    ----------
    reason : str
        Why ours differs, where it does.
    other : mapping
        Budgets at which we run another setting than the paper's, and which: there ours is shown, not judged.
    """

    reason: str = ""
    other: Mapping[str, str] = field(default_factory=dict)


def judge_number(ours: Interval, paper: Printed, budget: str, about: Circumstances) -> Verdict:
    """Whether our estimate covers the paper's number, by the rule above."""
    if budget in about.other:
        return Verdict("other setting", about.other[budget])
    if not np.isfinite(ours.estimate):
        return Verdict("undetermined", "our data give no such number")
    if not np.isfinite([ours.low, ours.high]).all():
        return Verdict("undetermined", "a single run has no interval")
    theirs = paper.interval
    if theirs is None and paper.runs:
        theirs = _as_many(ours, paper)
    gap = difference(ours, exact(paper.value) if theirs is None else theirs)
    room = paper.rounding + SLACK
    if gap.low - room <= 0 <= gap.high + room:
        return Verdict("covered")
    return Verdict("not covered", about.reason or UNEXPLAINED)


def judge_statement(finding: Finding, budget: str, about: Circumstances) -> Verdict:
    """Whether the paper's statement holds in our data."""
    if budget in about.other:
        return Verdict("other setting", about.other[budget])
    if finding.holds is None:
        return Verdict("undetermined", "our data do not allow an answer")
    return Verdict("holds") if finding.holds else Verdict("does not hold", about.reason or UNEXPLAINED)


def _as_many(ours: Interval, paper: Printed) -> Interval:
    """The paper's number with the interval that ours would have from as many runs."""
    factor = np.sqrt(ours.count / paper.runs)
    below, above = factor * (ours.estimate - ours.low), factor * (ours.high - ours.estimate)
    return Interval(paper.value, paper.value - below, paper.value + above, paper.runs)


# -- statistics that more than one statement needs ----------------------------------------------------------


def rare(successes: int, count: int, limit: float, what: str) -> Finding:
    """Whether a share is below a limit: its 95 % interval is, is not, or straddles it."""
    share = proportion(successes, count)
    holds = None if share.low <= limit <= share.high or not count else share.high < limit
    return Finding(holds, f"{what} in {share.format(1, 100)} %", count)


def trend(x: Any, y: Any, sign: int, what: str) -> Finding:
    """Whether y rises (sign 1) or falls (-1) with x: Kendall's rank correlation at the 5 % level."""
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(first) < 5 or np.ptp(first) == 0 or np.ptp(second) == 0:  # four values never reach 5 %
        return Finding(None, f"{what}: too few values", len(first))
    found = stats.kendalltau(first, second)
    tau, p_value = float(found.statistic), float(found.pvalue)
    holds = bool(sign * tau > 0 and p_value < 0.05)
    return Finding(holds, f"{what}: Kendall's τ {tau:.2f}, p = {p_value:.1g}", len(first))


def slope(x: Any, estimates: Any, sign: int, what: str) -> Finding:
    """Whether estimates with intervals rise (1) or fall (-1) with x: the 95 % interval of a weighted line."""
    known = [
        (a, e) for a, e in zip(x, estimates, strict=True) if np.isfinite([e.estimate, e.low, e.high]).all()
    ]
    if len(known) < 2:
        return Finding(None, f"{what}: too few values", len(known))
    places = np.array([a for a, _ in known], np.float64)
    values = np.array([e.estimate for _, e in known])
    errors = np.array([(e.high - e.low) / (2 * 1.96) for _, e in known])
    # An estimate without scatter, such as 4, 4, 4, gets the error of the others.
    errors = np.maximum(errors, np.median(errors[errors > 0]) if (errors > 0).any() else 1.0)
    weights = errors**-2
    centre = np.average(places, weights=weights)
    spread = float((weights * (places - centre) ** 2).sum())
    found = float((weights * (places - centre) * values).sum()) / spread
    low, high = found - 1.96 / spread**0.5, found + 1.96 / spread**0.5
    holds = low > 0 if sign > 0 else high < 0
    return Finding(bool(holds), f"{what}: slope {found:.2g} [{low:.2g}, {high:.2g}]", len(known))
