"""The conclusion of a comparison in three plain sentences."""

import math

import numpy as np

from analysis.compare.comparison import Comparison
from analysis.compare.onsets import Onsets
from analysis.stats.intervals import readable
from grokphys.report.wording import listed


def conclusion(comparison: Comparison) -> list[str]:
    """Return the conclusion of a comparison in three sentences.

    Parameters
    ----------
    comparison : Comparison
        Comparison of two ensembles.

    Returns
    -------
    list of str
        A sentence about the final states, one about the motion or the shapes, and one about the times to
        thresholds, the accuracy or, if neither was compared, the number of runs.
    """
    return [_states(comparison), _nearness(comparison), _onsets_or_accuracy(comparison)]


def _states(comparison: Comparison) -> str:
    first, second = comparison.names
    found = comparison.distributions.values()
    if not found:
        return f"The {first} and the {second} runs have no measured quantity in common."
    differ = [
        f"{one.name} ({'higher' if one.difference.estimate > 0 else 'lower'} in the {first} runs)"
        for one in found
        if one.differs
    ]
    alone = len(found) == 1
    every = "the one quantity compared" if alone else f"the {len(found)} quantities compared"
    if not differ:
        return f"No difference between the {first} and the {second} runs is shown in {every}."
    where = every if alone else f"{len(differ)} of {every}"
    return f"The {first} and the {second} runs differ in {where}: {listed(differ)}."


def _nearness(comparison: Comparison) -> str:
    motion, shapes = comparison.motion, comparison.shapes
    first, second = comparison.names
    if motion is not None and math.isfinite(motion.chance_error.estimate):
        error, chance = motion.mean_error, motion.chance_error
        word = "about as far apart as"
        if error.high < chance.low:
            word = "closer together than"
        elif error.low > chance.high:
            word = "farther apart than"
        return (
            f"Over time, a {second} run and its {first} counterpart are {word} {by_chance(comparison)}: "
            "their mean "
            f"distance is {readable(error.estimate, 2)}, compared with {readable(chance.estimate, 2)}."
        )
    if shapes is not None and np.isfinite(shapes.nearest).any():
        middle = readable(float(np.nanmedian(shapes.nearest)), 2)
        return (
            f"The final shape of a {second} run has a median Procrustes disparity of {middle} to the "
            f"nearest {first} one."
        )
    return f"The shapes of the {first} and the {second} runs cannot be compared."


def _onsets_or_accuracy(comparison: Comparison) -> str:
    first, second = comparison.names
    sure = [one for one in comparison.onsets.values() if one.differs and math.isfinite(one.ratio.estimate)]
    bounded = [one for one in sure if one.ratio.low > 0 and math.isfinite(one.ratio.high)]
    if bounded:
        told = [f"{one.name.replace('_', ' ')} {readable(one.ratio.estimate, 2)} times" for one in bounded]
        return (
            f"The {second} runs take longer or shorter to reach a threshold: {listed(told)} as long as the "
            f"{first} ones."
        )
    if sure:  # the data bound no ratio of times: too few runs reach the threshold
        told = [
            f"{one.name.replace('_', ' ')} by {_share(one.first)} {first} and {_share(one.second)} {second} "
            "runs"
            for one in sure
        ]
        return f"Thresholds are reached by different shares of the runs: {listed(told)}."
    if comparison.accuracy is not None and math.isfinite(comparison.accuracy.bias.estimate):
        bias = 100 * comparison.accuracy.bias.estimate
        side = "above" if bias > 0 else "below"
        return (
            f"The measured accuracy lies {readable(abs(bias), 2)} percentage points {side} what the final "
            "embeddings predict, on average."
        )
    if comparison.onsets:
        return f"No difference is shown in when the {first} and the {second} runs reach their thresholds."
    return f"The comparison has {comparison.runs[0]} {first} and {comparison.runs[1]} {second} runs."


def _share(onsets: Onsets) -> str:
    """Return how many runs of an ensemble reach a threshold, such as "3 of 20"."""
    return f"{int(onsets.reached.sum())} of {len(onsets.reached)}"


def by_chance(comparison: Comparison) -> str:
    """Return words for the runs whose distance is the chance level of a comparison.

    Parameters
    ----------
    comparison : Comparison
        Comparison whose motion was compared.

    Returns
    -------
    str
        "runs paired at random" if the runs are paired, and otherwise words for two runs of the first ensemble
        that end alike; see `Motion.chance`.
    """
    assert comparison.motion is not None
    if comparison.motion.paired:
        return "runs paired at random"
    return f"two {comparison.names[0]} runs that end alike"
