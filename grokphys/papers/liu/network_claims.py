"""Liu et al., the macroscopic side: transformers, images, phase diagrams."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.stats.intervals import mean, proportion
from grokphys.papers.claims import Claim, Item, Written
from grokphys.papers.verdicts import Circumstances, Finding, trend


def _share(points: NDArray[Any], frequency: int) -> float:
    """Part of the variance of planar points that one frequency holds."""
    power = (np.abs(np.fft.fft(points - points.mean(axis=0), axis=0)) ** 2).sum(axis=1)
    return float(2 * power[frequency] / power.sum())


def _planar(written: Written, stem: str, **where: Any) -> NDArray[Any]:
    return np.stack([written.column(stem, f"pc_{k}", **where) for k in (1, 2)], axis=1)


def _frequency(points: NDArray[Any]) -> int:
    power = (np.abs(np.fft.rfft(points, axis=0)) ** 2).sum(axis=1)
    return int(power[1:].argmax()) + 1


def _coincides(written: Written) -> Finding:
    steps = sorted(set(written.column("liu-1", "step").astype(int).tolist()))
    views = {step: _planar(written, "liu-1", step=step) for step in steps}
    accuracy = {step: written.column("liu-1", "validation_accuracy", step=step)[0] for step in steps}
    frequency = _frequency(views[steps[-1]])
    share = {step: _share(points, frequency) for step, points in views.items()}
    text = "; ".join(f"{accuracy[step]:.0%} validated: {share[step]:.0%} on one circle" for step in steps)
    before = [share[step] for step in steps if accuracy[step] < 0.5]
    after = [share[step] for step in steps if accuracy[step] >= 0.9]
    return Finding(min(after) > 2 * max(before) if before and after else None, text, 1)


def _dimensions(written: Written) -> Finding:
    runs = sorted(set(written.column("liu-7", "run").astype(int).tolist()))
    curves = [written.column("liu-7", "effective_dimension", run=run) for run in runs]
    shaped = sum(max(c) > c[0] and c[-1] < 0.75 * max(c) for c in curves)
    middle = np.median([[c[0], max(c), c[-1]] for c in curves], axis=0)
    text = f"{shaped} of {len(runs)} seeds; median {middle[0]:.1f} at the start, "
    text += f"{middle[1]:.1f} at most, {middle[2]:.1f} at the end"
    return Finding(shaped > len(runs) / 2, text, len(runs))


def _dropout(written: Written) -> Finding:
    rate, steps = (written.column("liu-7-dropout", name) for name in ("dropout", "validation_steps"))
    median = {r: float(np.median(steps[rate == r])) for r in np.unique(rate)}
    best = min(median, key=lambda r: median[r])
    text = ", ".join(f"{r:g}: {'never' if np.isinf(s) else f'{s:.0f}'}" for r, s in median.items())
    return Finding(
        best > 0 and median[best] < median[0.0], f"median steps by rate of dropout: {text}", len(steps)
    )


def _grokks(written: Written) -> Finding:
    delays = []
    for run in sorted(set(written.column("liu-8", "run").astype(int).tolist())):
        step = written.column("liu-8", "step", run=run)
        reached = [
            step[written.column("liu-8", f"{part}_accuracy", run=run) >= limit]
            for part, limit in (("train", 0.9), ("validation", 0.6))
        ]
        delays.append(reached[1][0] - reached[0][0] if len(reached[0]) and len(reached[1]) else np.inf)
    late = sum(delay >= 1000 for delay in delays)
    text = "steps from 90 % of the training to 60 % of the validation set: "
    text += ", ".join("never" if np.isinf(d) else f"{d:.0f}" for d in delays)
    return Finding(late > len(delays) / 2, text, len(delays))


def _slower_with_less(written: Written) -> Finding:
    images, steps = (written.column("liu-20", name) for name in ("images", "validation_steps"))
    capped = np.where(np.isinf(steps), 2 * max(steps[np.isfinite(steps)], default=1), steps)
    return trend(images, capped, -1, f"steps to 60 % over the images ({np.isinf(steps).sum()} never)")


def _tickets(written: Written) -> Finding:
    views = [
        _planar(written, "liu-21", view=name)
        for name in dict.fromkeys(row["view"] for row in written.rows("liu-21"))
    ]
    frequency = _frequency(views[0])
    final, own, projected = (_share(points, frequency) for points in views)
    chance = 2 / (len(views[0]) - 1)
    text = f"frequency {frequency} holds {final:.0%} of the final plane, {projected:.0%} of the start on it, "
    text += f"{own:.0%} of the start's own ({chance:.0%} by chance)"
    return Finding(projected > 2 * max(own, chance), text, 1)


def _few_components(written: Written) -> Finding:
    last = int(max(written.column("liu-22", "step")))
    rows = written.rows("liu-22", components="final", step=last)
    reached = {int(row["n"]): float(row["validation_accuracy"]) for row in rows}
    text = "validation accuracy at the end: " + ", ".join(f"{a:.0%} with {n}" for n, a in reached.items())
    return Finding(max(reached.values()) >= 0.99, text, 1)


def _final_better(written: Written) -> Finding:
    count = sorted(set(written.column("liu-22", "n", components="final").astype(int).tolist()))
    gaps = [
        written.column("liu-22", "validation_accuracy", components="final", n=n)
        - written.column("liu-22", "validation_accuracy", components="current", n=n)
        for n in count
    ]
    gap = mean(np.concatenate(gaps))
    better = proportion(int((np.concatenate(gaps) >= 0).sum()), gap.count)
    text = f"final minus current components: {gap.format(3)} in validation accuracy, "
    text += f"at least as good in {better.format(0, 100)} % of frames"
    return Finding(gap.low > 0, text, gap.count)


SMALL = Circumstances(
    "the small network, trained with dropout, spreads its circles over more components",
    {"quick": "1200 steps, after which the network itself is below 99 %"},
)
CELLS = Circumstances(
    "fewer cells and steps than the paper's, and several networks a cell where it has one: patchy borders",
    {"quick": "a few cells, and few steps: a look, no diagram"},
)
ITEMS = (
    Item(
        "Liu",
        "Figure 1",
        "A circle emerges in the embeddings when a transformer generalises.",
        "liu-1",
        claims=(Claim("structure", "generalisation coincides with the emergence of structure", _coincides),),
    ),
    *(
        Item(
            "Liu",
            f"Figure 6 ({letter})",
            shows,
            f"liu-6{letter}",
            about=CELLS,
        )
        for letter, shows in (
            ("a", "Representation against decoder: both learning rates of the toy model."),
            ("b", "Phases of addition (regression) over the decoder's rate and weight decay."),
            ("c", "Phases of addition (classification) over the decoder's rate and weight decay."),
            ("d", "Phases of the permutation group over the decoder's rate and weight decay."),
        )
    ),
    Item(
        "Liu",
        "Figure 7",
        "Transformer: effective dimension over training, dropout, phases of the decoder.",
        "liu-7",
        claims=(
            Claim("left", "the dimension rises until generalisation, then falls", _dimensions),
            Claim("centre", "dropout speeds generalisation up", _dropout),
        ),
        about=CELLS,
    ),
    Item(
        "Liu",
        "Figure 8 (a)",
        "Image networks grok when they begin large and see few images.",
        "liu-8",
        claims=(Claim("delay", "fitted quickly, generalises much later (1000 steps or more)", _grokks),),
    ),
    Item(
        "Liu",
        "Figure 8 (b)",
        "Phases over the last layer's rate and the weight decay.",
        "liu-8b",
        about=CELLS,
    ),
    *(
        Item(
            "Liu",
            f"Figure {number}; Appendix G",
            shows,
            f"liu-{number}",
            about=CELLS,
        )
        for number, shows in (
            (13, "Phases over the decoder's rate and the batch size."),
            (14, "Phases over the decoder's rate and the scale of the start."),
            (15, "Phases over the decoder's rate and the weight decay of the embedding."),
        )
    ),
    Item(
        "Liu",
        "Figure 19; Appendix I",
        "The effective theory moves images of one class together.",
        none="no recipe: it needs MNIST; the theory it applies is pinned by the tests of `EffectiveTheory`",
    ),
    Item(
        "Liu",
        "Figure 20; Appendix J",
        "The fewer images, the later networks generalise.",
        "liu-20",
        claims=(Claim("size", "generalisation time rises as images get fewer", _slower_with_less),),
    ),
    Item(
        "Liu",
        "Figure 21; Appendix K",
        "The start already hints at the final circle, on the final axes.",
        "liu-21",
        claims=(
            Claim("lottery ticket", "the start on the final axes holds much of the structure", _tickets),
        ),
    ),
    Item(
        "Liu",
        "Figure 22; Appendix K",
        "A few principal components carry the accuracy.",
        "liu-22",
        claims=(
            Claim("components", "a few components reach 99 % accuracy", _few_components, SMALL),
            Claim("axes", "final components are better than current ones", _final_better),
        ),
    ),
)
