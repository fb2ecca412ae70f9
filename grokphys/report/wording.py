"""Wording of reports: numbers are rounded, and terms are explained in place."""

import math
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files

import numpy as np
from markupsafe import Markup, escape

from analysis.comparison.timing import Onsets
from analysis.stats.intervals import Interval, plain, readable

TERMS: Mapping[str, str] = tomllib.loads(files(__package__).joinpath("terms.toml").read_text("utf-8"))
"""Explanations of the terms in reports that a reader may want to look up."""

_ANY_TERM = re.compile(
    "|".join(rf"(?<!\w){re.escape(term)}(?!\w)" for term in sorted(TERMS, key=len, reverse=True))
)
_SUBSCRIPT = re.compile(r"(?<![\w/.])(\w)_(\w)(?!\w)")
_INTERVAL = re.compile(r"(?:[hδ] = )?[-\d.]+ \[[-\d.]+, [-\d.]+\]")


def explained(text: str, used: dict[str, str] | None = None) -> Markup:
    """Return text as HTML in which terms show their explanations on hover, and intervals do not break.

    The terms and their explanations are added to `used`.
    """
    parts, end = [], 0
    for match in _ANY_TERM.finditer(text):
        if used is not None:
            used[match[0]] = TERMS[match[0]]
        parts += [typeset(text[end : match.start()])]
        parts += [Markup('<abbr title="{}">{}</abbr>').format(TERMS[match[0]], typeset(match[0]))]
        end = match.end()
    whole = Markup("").join([*parts, typeset(text[end:])])
    return Markup(_INTERVAL.sub(lambda match: match[0].replace(" ", "\u00a0"), str(whole)))


def typeset(text: str) -> Markup:
    """Return text as HTML, with escapes and with the subscripts of symbols such as f_a and n_0."""
    return Markup(_SUBSCRIPT.sub(r"\1<sub>\2</sub>", str(escape(text))))


def rounded(value: Interval, scale: float = 1.0) -> str:
    """Return an estimate times `scale` with its interval as text; "-" if the estimate is not finite."""
    if not math.isfinite(value.estimate):
        return "-"
    return str(value.map(lambda number: scale * number))


def significant(value: Interval) -> str:
    """Return a positive estimate, such as a ratio or a time, with the bounds that say something as text.

    A bound that is infinite or 0 says nothing: the text is then such as "1.2 (at least 0.8)".
    """
    if not math.isfinite(value.estimate):
        return "-"
    text = plain(value.estimate)
    open_low, open_high = (not math.isfinite(side) or side == 0 for side in (value.low, value.high))
    if math.isnan(value.low) or (open_low and open_high):
        return text
    if open_high:
        return f"{text} (at least {plain(value.low)})"
    return f"{text} (at most {plain(value.high)})" if open_low else rounded(value)


def median_time(times: Onsets) -> str:
    """Return the median time in words; if fewer than half of the runs reach the threshold, also of those."""
    value = times.median
    if math.isinf(value.estimate):
        late = f", after {plain(value.low)} at the earliest" if math.isfinite(value.low) else ""
        those = f"; those that do, at {plain(time_reached(times))}" if times.reached.any() else ""
        return f"reached by fewer than half{late}{those}"
    return significant(value)


def time_reached(times: Onsets) -> float:
    """Return the median time of the runs that reach the threshold, of which there is one at least."""
    return float(np.median(times.times[times.reached]))


def p_value(p: float) -> str:
    """Return a p-value with two significant digits, or "< 0.001", "> 0.99" or "-"."""
    if not math.isfinite(p):
        return "-"
    if p < 0.001:
        return "< 0.001"
    return "> 0.99" if p > 0.99 else readable(p, 2)
