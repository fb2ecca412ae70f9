"""Wording of reports: numbers are rounded, and terms are explained in place."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup, escape

from analysis.stats.intervals import Interval, plain, readable

TERMS: Mapping[str, str] = {
    "95 % interval": "The range that contains the true value in 95 of 100 repetitions of the experiment.",
    "Cliff's δ": (
        "How often a value of the first ensemble exceeds one of the second, minus how often it falls below: "
        "1 is always, 0 is no difference, -1 is never."
    ),
    "Cohen's h": "Difference of two proportions on an arcsine scale: 0.2 is small, 0.5 medium, 0.8 large.",
    "Procrustes disparity": (
        "Squared distance of two shapes after the best shift, rotation, reflection and scaling: 0 is the "
        "same "
        "shape, 1 is no similarity."
    ),
    "adjusted p": (
        "Probability of a difference at least this large by chance, corrected by Holm's method for the "
        "number "
        "of tests in this comparison. Below 0.05 a difference counts as shown."
    ),
    "R²": (
        "Fraction of the variance that a prediction explains: 1 is perfect, 0 is as good as the mean, and "
        "negative values are worse."
    ),
    "RQI": "Representation quality index: the fraction of possible parallelograms that an embedding forms.",
    "grid imperfections": (
        "Pairs of tokens whose sum has a sum of another class as its nearest neighbor: 0 is a perfect grid."
    ),
    "circles": (
        "An embedding whose tokens all have nearly the same distance from the origin: largest over "
        "smallest below 1.2."
    ),
    "f_a": (
        "Alignment constant: how strongly particles whose pairs have the same sum turn into one direction."
    ),
    "quality": (
        "Representation quality index: the fraction of possible parallelograms that an embedding forms. It "
        "is 1 for evenly spaced tokens."
    ),
    "survivors": (
        "Frequencies of the Fourier transform of an embedding whose final signal is above twice the mean of "
        "all; in tables, their number."
    ),
    "lasting circle": "A circle that remains one until the run ends; its time is that at which it forms.",
    "rollout": "Prediction of all later steps from the first one, in which errors add up.",
    "τ": "Time of the first ensemble that passes in one unit of time of the second.",
    "Lasso": "Least squares with a penalty that sets small coefficients to zero.",
    "Kaplan-Meier": (
        "Estimate of the fraction of the runs that reach a threshold, which also uses runs that ended before."
    ),
    "Fourier signal": "Length of the component of the embedding at one frequency of the cycle of tokens.",
    "effective dimension": (
        "Exponential of the entropy of the explained variances: in how many directions the points spread."
    ),
    "disparity": "Squared distance of two shapes after the best shift, rotation, reflection and scaling.",
}
"""Explanations of the terms in reports that a reader may want to look up."""

_ANY_TERM = re.compile(
    "|".join(rf"(?<!\w){re.escape(term)}(?!\w)" for term in sorted(TERMS, key=len, reverse=True))
)


_SUBSCRIPT = re.compile(r"(?<![\w/.])(\w)_(\w)(?!\w)")
_INTERVAL = re.compile(r"(?:[hδ] = )?[-\d.]+ \[[-\d.]+, [-\d.]+\]")


def explained(text: str) -> Markup:
    """Return text as HTML in which the terms of `TERMS` show their explanations on hover.

    Parameters
    ----------
    text : str
        Plain text.

    Returns
    -------
    Markup
        HTML, in which an interval is not broken across lines.
    """
    parts, end = [], 0
    for found in _ANY_TERM.finditer(text):
        parts += [typeset(text[end : found.start()])]
        parts += [Markup('<abbr title="{}">{}</abbr>').format(TERMS[found[0]], typeset(found[0]))]
        end = found.end()
    whole = Markup("").join([*parts, typeset(text[end:])])
    return Markup(
        _INTERVAL.sub(lambda found: found[0].replace(" ", "\u00a0"), str(whole))
    )  # not broken across lines


def typeset(text: str) -> Markup:
    """Return text as HTML, with the subscripts of symbols such as f_a and n_0.

    Parameters
    ----------
    text : str
        Plain text, in which characters such as ``<`` are escaped.

    Returns
    -------
    Markup
        The HTML.
    """
    return Markup(_SUBSCRIPT.sub(r"\1<sub>\2</sub>", str(escape(text))))


def terms_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the terms of `TERMS` that occur in texts, with their explanations.

    Parameters
    ----------
    texts : iterable of str
        Plain texts.

    Returns
    -------
    dict of str to str
        Explanations by the term, in alphabetical order.
    """
    found = {term for text in texts for term in _ANY_TERM.findall(text)}
    return {term: TERMS[term] for term in sorted(found, key=str.lower)}


def rounded(value: Interval, scale: float = 1.0) -> str:
    """Return an estimate with its interval as text, multiplied by a scale.

    A step of the last digit is at most a fifth of the width of the interval, unless that would take more than
    three significant digits of the largest of the three numbers. If that number is at most 1e-4 or at least
    1e6 in size, each number is written by `plain` instead.

    Parameters
    ----------
    value : Interval
        Estimate and interval.
    scale : float, default 1.0
        Factor, such as 100 for percent.

    Returns
    -------
    str
        Text such as "12.3 [10.1, 14.5]"; "-" if the estimate is not finite, and the estimate alone if an end
        of the interval is not.
    """
    if not math.isfinite(value.estimate):
        return "-"
    three = [scale * one for one in (value.estimate, value.low, value.high)]
    if not all(map(math.isfinite, three)):
        return plain(three[0])
    largest, width = max(map(abs, three)), three[2] - three[1]
    if not 1e-4 < largest < 1e6:
        estimate, low, high = map(plain, three)
    else:
        digits = max(2 - math.floor(math.log10(largest)), 0)
        if width > 0:
            digits = min(digits, max(-math.floor(math.log10(width / 5)), 0))
        estimate, low, high = (f"{one:z.{digits}f}" for one in three)
    return f"{estimate} [{low}, {high}]"


def significant(value: Interval) -> str:
    """Return a positive estimate, such as a ratio or a time, with its interval as text.

    Parameters
    ----------
    value : Interval
        Estimate with its bounds. A bound that is infinite or 0 says nothing.

    Returns
    -------
    str
        Text that `rounded` gives, or such as "1.2 (at least 0.8)" if one bound says nothing. The estimate
        alone if both say nothing or the lower one is NaN, and "-" if the estimate is not finite.
    """
    if not math.isfinite(value.estimate):
        return "-"
    text = plain(value.estimate)
    open_low, open_high = (not math.isfinite(side) or side == 0 for side in (value.low, value.high))
    if math.isnan(value.low) or (open_low and open_high):
        return text
    if open_high:
        return f"{text} (at least {plain(value.low)})"
    if open_low:
        return f"{text} (at most {plain(value.high)})"
    return rounded(value)


def median_time(value: Interval) -> str:
    """Return a median time in words, even if fewer than half of the runs reached the threshold.

    Parameters
    ----------
    value : Interval
        Median with its 95 % interval; infinite if fewer than half of the runs reached the threshold.

    Returns
    -------
    str
        The median as `significant` writes it; for an infinite one "reached by fewer than half", with the
        earliest time if that is known; "-" for NaN.
    """
    if math.isnan(value.estimate):
        return "-"
    if math.isinf(value.estimate):
        late = f", after {plain(value.low)} at the earliest" if math.isfinite(value.low) else ""
        return f"reached by fewer than half{late}"
    return significant(value)


def p_value(p: float) -> str:
    """Return a p-value as text.

    Parameters
    ----------
    p : float
        Probability, from 0 to 1, or NaN.

    Returns
    -------
    str
        Two significant digits; "< 0.001" or "> 0.99" beyond these bounds, and "-" if it is not finite.
    """
    if not math.isfinite(p):
        return "-"
    if p < 0.001:
        return "< 0.001"
    return "> 0.99" if p > 0.99 else readable(p, 2)


def listed(words: Sequence[str], most: int = 4) -> str:
    """Return words as a list in a sentence, such as "a, b and c".

    Parameters
    ----------
    words : sequence of str
        At least one word.
    most : int, default 4
        Longest list. Of a longer one, the first words and the number of the others are given.

    Returns
    -------
    str
        The list, such as "a, b, c and 4 other quantities" for seven words.
    """
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} other quantities"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
