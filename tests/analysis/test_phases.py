"""The four phases, their majority, and diagrams that are fine where phases meet."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis import Axis, Refinement, classify_phases, phase_diagram, proportion
from analysis.phases import PHASES, Cell, Majority, PhaseDiagram, Run

NAN = math.nan


# -- Table 1 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("train", "validation", "expected"),
    [
        (100, 1099, "comprehension"),
        (100, 1100, "grokking"),
        (100, 100, "comprehension"),
        (0, 0, "comprehension"),
        (0, 1000, "grokking"),
        (500, 200, "comprehension"),
        (5000, 200, "comprehension"),
        (100, NAN, "memorization"),
        (NAN, NAN, "confusion"),
        (NAN, 100, "confusion"),
    ],
)
def test_phases_are_those_of_table_1(train, validation, expected):
    assert classify_phases(train, validation) == expected
    assert classify_phases([[train]], [[validation]]).shape == (1, 1)


def test_the_delay_is_what_tells_grokking():
    assert list(classify_phases([10, 10], [14, 15], delay=5)) == ["comprehension", "grokking"]


# -- several runs ------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(PHASES), min_size=1, max_size=12))
def test_a_majority_counts_and_its_certainty_is_the_posterior_of_more_than_half(phases):
    majority = Majority(phases)
    most = max(phases.count(phase) for phase in PHASES)
    assert majority.counts[majority.phase] == most
    assert sum(majority.counts.values()) == majority.runs == len(phases)
    assert majority.share == proportion(most, len(phases))
    assert majority.certainty == pytest.approx(stats.beta(most + 0.5, len(phases) - most + 0.5).sf(0.5))


# -- axes --------------------------------------------------------------------------------------------------


@given(st.integers(1, 7), st.sampled_from(["linear", "log"]), st.integers(0, 4))
def test_cells_tile_the_axis_and_hold_their_points(cells, scale, levels):
    axis = Axis("rate", 0.01, 3.0, cells, scale)
    spans = axis.spans
    for _ in range(levels):
        spans = [half for span in spans for half in axis.halves(span)]
    assert len(spans) == cells * 2**levels
    assert (spans[0][0], spans[-1][1]) == (0.0, 1.0)
    assert all(left[1] == right[0] for left, right in pairwise(spans))
    for span in spans:
        low, high = map(axis.value, span)
        assert low < axis.point(span) < high
        assert axis.part(axis.point(span)) == pytest.approx(sum(span) / 2)
    assert axis.value(0.0) == pytest.approx(0.01)
    assert axis.value(1.0) == pytest.approx(3.0)


@given(st.integers(1, 20), st.integers(0, 40), st.sampled_from(["linear", "log"]))
def test_whole_numbers_are_each_in_one_cell_and_never_between(low, length, scale):
    axis = Axis("batch_size", low, low + length, 1, scale, whole=True)
    spans = axis.spans
    for _ in range(8):
        spans = [half for span in spans for half in axis.halves(span)]
    points = [axis.point(span) for span in spans]
    assert points == sorted(set(points))
    assert all(isinstance(point, int) and low <= point <= low + length for point in points)
    covered = [k for k in range(low, low + length + 1) for a, b in spans if a <= axis.part(k) < b]
    assert len(covered) == length + 1


# -- refinement --------------------------------------------------------------------------------------------

X, Y = Axis("rate", 1e-4, 1e-2, 6, "log"), Axis("decay", 0.0, 10.0, 6)


class Oracle:
    """Onsets with known borders: a disc of grokking around one of comprehension, a corner of confusion."""

    def __init__(self, noise=0.0):
        self.noise, self.points = noise, []

    def phase(self, x, y):
        radius = math.hypot(math.log10(x) + 3, (y - 5) / 5)
        if X.part(x) + Y.part(y) > 1.7:
            return "confusion"
        return "comprehension" if radius < 0.45 else "grokking" if radius < 0.8 else "memorization"

    def __call__(self, points, first):
        onsets = {
            "comprehension": (10, 20),
            "grokking": (10, 5000),
            "memorization": (10, NAN),
            "confusion": (NAN, NAN),
        }
        found = []
        for number, point in enumerate(points, first):
            phase = self.phase(*point)
            if np.random.default_rng(number).random() < self.noise:
                phase = PHASES[number % 4]
            found.append((number, *onsets[phase]))
        self.points += points
        return found


def test_refinement_finds_the_borders_of_a_full_grid_with_far_fewer_runs():
    oracle, levels = Oracle(), 4
    diagram = phase_diagram(X, Y, oracle, Refinement(seeds=2, levels=levels))
    full = 6 * 2**levels
    assert len(oracle.points) == diagram.runs < 0.3 * 2 * full**2
    wrong = 0
    for cell in diagram.cells:
        own = 2 ** (levels - cell.level)  # cells of the full grid along a side of this one
        for a in np.linspace(*cell.x, 2 * own + 1)[1::2]:
            for b in np.linspace(*cell.y, 2 * own + 1)[1::2]:
                wrong += cell.majority.phase != oracle.phase(X.value(a), Y.value(b))
        if cell.level == levels:
            assert cell.majority.phase == oracle.phase(*cell.point)
    assert wrong <= 0.005 * full**2
    for pair in diagram.borders():
        assert all(diagram.cells[k].level == levels for k in pair)


def test_cells_cover_the_plane_once_and_keep_every_run():
    oracle = Oracle()
    diagram = phase_diagram(X, Y, oracle, Refinement(seeds=2, levels=2))
    assert sum(cell.covered() for cell in diagram.cells) == pytest.approx(1)
    for cell in diagram.coarser:
        inside = [
            other
            for other in diagram.cells
            if cell.x[0] <= other.x[0] < cell.x[1] and cell.y[0] <= other.y[0] < cell.y[1]
        ]
        assert sum(other.covered() for other in inside) == pytest.approx(cell.covered())
        assert all(other.level > cell.level for other in inside)
    rows = diagram.run_rows()
    assert [row["number"] for row in rows] == list(range(diagram.runs))
    assert [(row["rate"], row["decay"]) for row in rows] == oracle.points


def test_cells_that_share_a_corner_have_no_border():
    halves = ((0.0, 0.5), (0.5, 1.0))
    places = [(x, y) for x in halves for y in halves]
    cells = [
        Cell(x, y, (x[0], y[0]), 0, [Run(0, 1.0, 1.0, phase)])
        for (x, y), phase in zip(places, PHASES, strict=True)
    ]
    diagram = PhaseDiagram(X, Y, 1000, cells)
    edges = {frozenset(pair) for pair in diagram.borders().tolist()}
    assert edges == {frozenset(pair) for pair in ((0, 1), (0, 2), (1, 3), (2, 3))}
    assert len(diagram.borders()) == 4


def test_shares_are_areas_with_the_interval_of_as_many_runs_as_count():
    diagram = phase_diagram(X, Y, Oracle(), Refinement(seeds=2, levels=3))
    shares = diagram.shares()
    assert sum(share.estimate for share in shares.values()) == pytest.approx(1)
    assert shares["comprehension"].estimate == pytest.approx(math.pi * 0.45**2 / 4, abs=0.01)
    assert shares["confusion"].estimate == pytest.approx(0.3**2 / 2, abs=0.01)
    assert shares["confusion"].count < diagram.runs
    even = phase_diagram(X, Y, Oracle(0.3), Refinement(seeds=4, most_seeds=4, levels=0))
    phases = [row["phase"] for row in even.run_rows()]
    for phase, share in even.shares().items():  # cells of one size with as many runs: a plain proportion
        expected = proportion(phases.count(phase), 144)
        assert (share.estimate, share.low, share.high, share.count) == pytest.approx(
            (expected.estimate, expected.low, expected.high, 144)
        )


def test_intervals_of_shares_hold_the_truth():
    """Of many diagrams of noisy runs, most intervals hold the share that the exact probabilities give."""
    truth = np.mean([Oracle().phase(X.point(a), Y.point(b)) == "grokking" for a in X.spans for b in Y.spans])
    truth = 0.6 * truth + 0.4 * 0.25
    covered = 0
    for repeat in range(60):

        def evaluate(points, first, repeat=repeat):
            return Oracle(0.4)(points, first + 10_000 * repeat)

        diagram = phase_diagram(X, Y, evaluate, Refinement(2, 4, 0))
        covered += diagram.shares()["grokking"].covers(truth)
    assert covered >= 53


def three_cells():
    """Half of the plane in one cell of comprehension, and two fine cells beside it."""

    def runs(*steps):
        return [Run(k, *one, str(classify_phases(*one))) for k, one in enumerate(steps)]

    return [
        Cell((0.0, 0.5), (0.0, 1.0), (1e-3, 5.0), 0, runs((1, 2), (1, 2))),
        Cell(
            (0.5, 1.0), (0.0, 0.5), (1e-2, 2.0), 1, runs((1, NAN), (NAN, 5), (NAN, NAN), (1, NAN), (1, NAN))
        ),
        Cell((0.5, 1.0), (0.5, 1.0), (1e-2, 8.0), 1, runs((1, NAN), (1, NAN))),
    ]


def test_shares_of_cells_of_several_sizes_count_as_kish_says():
    shares = PhaseDiagram(X, Y, 1000, three_cells()).shares()
    effective = 1 / (0.5**2 / 2 + 0.25**2 / 5 + 0.25**2 / 2)
    for phase, share in (("comprehension", 0.5), ("memorization", 0.25 * 3 / 5 + 0.25)):
        expected = proportion(share * effective, effective)
        found = shares[phase]
        assert (found.estimate, found.low, found.high) == pytest.approx((share, expected.low, expected.high))


def test_unclear_cells_get_more_runs_until_they_are_decided_or_have_the_most():
    diagram = phase_diagram(X, Y, Oracle(0.4), Refinement(seeds=3, most_seeds=8, levels=0))
    counts = {len(cell.runs) for cell in diagram.cells}
    assert counts <= {3, 5, 7, 8}
    assert len(counts) > 1
    for cell in diagram.cells:
        assert diagram.decided(cell) == (cell.majority.certainty >= 0.9)
        assert diagram.decided(cell) or len(cell.runs) == 8
        if len(cell.runs) == 3:
            assert len({run.phase for run in cell.runs}) == 1
