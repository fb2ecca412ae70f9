"""Phase diagrams in every detail: rows and their types, points on edges, budgets, and what a figure adds."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from analysis import Axis, Refinement, phase_diagram, proportion
from analysis.phases import Majority
from analysis.phases.cells import Cell, Run
from analysis.phases.diagram import PhaseDiagram
from analysis.plots import palette
from analysis.plots.phases import show_phases
from physics import InputError

NAN = math.nan
X, Y = Axis("rate", 1e-4, 1e-2, 2, "log"), Axis("decay", -1.0, 1.0, 2)
GROKKING = Run(0, 1.0, 5000.0, "grokking")
MEMORIZATION = Run(1, 1.0, NAN, "memorization")


def of(points, first, train=1.0, validation=2.0):
    return [(first + k, train, validation) for k in range(len(points))]


# -- axes and cells ---------------------------------------------------------------------------------------


def test_an_axis_is_made_of_plain_numbers_and_has_the_label_that_it_was_given():
    axis = Axis("weight_decay", 0.0, 1.0, np.int64(3), label="decay λ")
    assert (axis.label, type(axis.cells), axis.cells) == ("decay λ", int, 3)
    assert Axis("weight_decay", 0.0, 1.0).label == "weight decay"
    assert Axis("weight_decay", 0.0, 1.0).cells == 6
    assert (Axis("x", 1, 2, 1, whole=True).value(0.0), Axis("x", 1, 2, 1, whole=True).value(1.0)) == (
        0.5,
        2.5,
    )
    assert type(Axis("x", 1, 9, 1, whole=True).point((0.0, 1.0))) is int
    assert Axis("x", 1, 2, 1, "log", whole=True).value(0.5) == pytest.approx((0.5 * 2.5) ** 0.5)


@pytest.mark.parametrize(("low", "high", "cells"), [(1, 64, 3), (1, 5, 2), (2, 9, 4)])
def test_the_point_of_a_logarithmic_cell_is_the_whole_number_next_to_its_middle(low, high, cells):
    axis = Axis("dim", low, high, cells, "log", whole=True)
    for span in axis.spans:
        inside = [n for n in range(low, high + 1) if axis.value(span[0]) <= n < axis.value(span[1])]
        middle = axis.value(sum(span) / 2)
        assert abs(axis.point(span) - middle) == min(abs(n - middle) for n in inside)


def test_a_cell_that_reaches_less_than_a_number_keeps_it():
    """From 1 to 2 in logarithmic halves: the middle of a cell may be rounded out of it."""
    axis = Axis("dim", 1, 40, 1, "log", whole=True)
    cells = axis.spans
    for _ in range(6):
        cells = [half for cell in cells for half in axis.halves(cell)]
    for span in cells:
        assert axis.value(span[0]) <= axis.point(span) < axis.value(span[1])


def test_a_majority_counts_all_phases_and_names_them():
    found = Majority(("grokking", "grokking", "confusion"))
    assert found.counts == {"comprehension": 0, "grokking": 2, "memorization": 0, "confusion": 1}
    assert (found.phase, found.runs, found.share) == ("grokking", 3, proportion(2, 3))


def test_a_cell_covers_only_what_both_its_sides_do():
    cell = Cell((0.0, 0.5), (0.25, 0.5), (1.0, 1.0), 0)
    assert cell.covered() == 0.125
    assert cell.covered(((0.25, 1.0), (0.0, 0.3))) == pytest.approx(0.25 * 0.05)
    for beside in (((0.6, 0.9), (0.6, 0.9)), ((0.6, 0.9), (0.25, 0.5)), ((0.0, 0.5), (0.6, 0.9))):
        assert cell.covered(beside) == 0
    assert cell.runs == []
    assert Cell((0.0, 0.5), (0.25, 0.5), (1.0, 1.0), 0).runs is not cell.runs


# -- the diagram ------------------------------------------------------------------------------------------


def test_a_point_belongs_to_the_cell_around_it_and_on_an_edge_to_the_first():
    diagram = phase_diagram(X, Y, of, Refinement(1, 1, 0))
    low, high = diagram.cells[:2], diagram.cells[2:]
    assert diagram.at(2e-4, -0.5) is low[0]
    assert diagram.at(2e-4, 0.5) is low[1]
    assert diagram.at(5e-3, -0.5) is high[0]
    assert diagram.at(5e-3, 0.5) is high[1]
    assert diagram.at(2e-4, 0.0) is low[0], "an edge of two"
    for x, y, cell in ((1e-4, -1.0, low[0]), (1e-2, 1.0, high[1]), (1e-4, 1.0, low[1]), (1e-2, -1, high[0])):
        assert diagram.at(x, y) is cell, "a corner of the plane"
    for x, y, got in (
        (-1e-3, 0.5, "-0.001 for rate and 0.5 for decay"),
        (1e-3, 1.1, "0.001 for rate and 1.1 for decay"),
        (9e-5, 0.5, "9e-05 for rate and 0.5 for decay"),
        (1e-3, -1.1, "0.001 for rate and -1.1 for decay"),
        (1e-3, 1.00000001, "0.001 for rate and 1.00000001 for decay"),
    ):
        with pytest.raises(InputError) as refused:
            diagram.at(x, y)
        assert str(refused.value) == f"x and y must lie within the diagram, got {got}"


def test_each_cell_is_a_row_of_plain_values():
    fine = Cell((0.0, 0.5), (0.5, 1.0), (3e-4, 0.5), 1, [GROKKING, MEMORIZATION, GROKKING])
    coarse = Cell((0.0, 1.0), (0.0, 1.0), (1e-3, 0.0), 0, [MEMORIZATION])
    diagram = PhaseDiagram(X, Y, 1000, 0.75, [fine], [coarse])
    one, other = diagram.rows()
    share, certainty = proportion(2, 3), fine.majority.certainty
    assert one == {
        "rate": 3e-4, "rate_from": pytest.approx(1e-4), "rate_to": pytest.approx(1e-3),
        "decay": 0.5, "decay_from": 0.0, "decay_to": 1.0,
        "level": 1, "cut": False, "runs": 3,
        "comprehension": 0, "grokking": 2, "memorization": 1, "confusion": 0,
        "validation_only": 0, "phase": "grokking",
        "share": share.estimate, "share_low": share.low, "share_high": share.high,
        "certainty": certainty, "decided": certainty >= 0.75,
    }  # fmt: skip
    assert list(one)[:6] == ["rate", "rate_from", "rate_to", "decay", "decay_from", "decay_to"]
    assert (other["cut"], other["level"], other["runs"], other["phase"]) == (True, 0, 1, "memorization")
    assert other["decided"] == (coarse.majority.certainty >= 0.75) is True
    assert not one["decided"]
    assert (diagram.runs, type(one["validation_only"])) == (4, int)
    exact = PhaseDiagram(X, Y, 1000, certainty, [fine])
    assert exact.decided(fine), "as certain as asked"


def test_runs_are_recorded_as_numbers_and_words_and_in_their_order():
    late = phase_diagram(X, Y, lambda points, first: of(points, first + 5)[::-1], Refinement(2, 2, 0))
    rows = late.run_rows()
    assert [row["number"] for row in rows] == list(range(5, 13))
    assert list(rows[0]) == ["rate", "decay", "number", "train_steps", "validation_steps", "phase"]
    for row in rows:
        assert [type(row[name]) for name in ("number", "train_steps", "phase")] == [int, float, str]


@pytest.mark.parametrize(("delay", "phase"), [(1000, "comprehension"), (8, "comprehension"), (7, "grokking")])
def test_a_diagram_tells_grokking_by_its_own_delay(delay, phase):
    def evaluate(points, first):
        return of(points, first, 3.0, 10.0)

    assert phase_diagram(X, Y, evaluate, Refinement(1, 1, 0), delay=delay).leading() == phase
    assert phase_diagram(X, Y, evaluate, Refinement(1, 1, 0), delay=delay).delay == delay
    assert phase_diagram(X, Y, evaluate, Refinement(1, 1, 0)).leading() == "comprehension"
    late = phase_diagram(X, Y, lambda points, first: of(points, first, 0.0, 1000.0), Refinement(1, 1, 0))
    assert late.leading() == "grokking", "a thousand steps by default"


def alternating(points, first):
    """Every second run of a cell fits only."""
    return [(first + k, 1.0, NAN if (first + k) % 2 else 2.0) for k in range(len(points))]


@pytest.mark.parametrize(("certain", "runs"), [(0.49, 8), (0.9, 4 * 6)])
def test_a_cell_gets_more_runs_until_it_is_as_certain_as_asked(certain, runs):
    diagram = phase_diagram(X, Y, alternating, Refinement(2, 6, 0, certain=certain))
    assert (diagram.certain, diagram.runs) == (certain, runs)
    assert diagram.complete, "the most runs that a cell may have are no lack of them"


def test_the_last_runs_of_a_cell_are_no_more_than_it_may_have():
    asked = []

    def evaluate(points, first):
        asked.append((len(points), first))
        return alternating(points, first)

    diagram = phase_diagram(X, Y, evaluate, Refinement(2, 5, 0))
    assert asked == [(8, 0), (8, 8), (4, 16)]
    assert {len(cell.runs) for cell in diagram.cells} == {5}


def test_a_budget_that_is_met_exactly_is_complete_and_one_run_less_is_not():
    usual = Refinement(2, 4, 0)
    whole = phase_diagram(X, Y, alternating, usual)
    assert (whole.runs, whole.complete) == (16, True)
    for most, complete in ((16, True), (15, False), (8, False)):
        cut = phase_diagram(X, Y, alternating, Refinement(2, 4, 0, most))
        assert (cut.runs, cut.complete) == (most, complete)


def halves(points, first):
    return [(first + k, 1.0, NAN if y < 0.2 else 2.0) for k, (_, y) in enumerate(points)]


@pytest.mark.parametrize(("most", "cells", "complete"), [(None, 16, True), (40, 16, True), (39, 13, False)])
def test_cells_are_cut_while_all_their_parts_can_be_run(most, cells, complete):
    """Of four cells on a border each has four parts with two runs: 8 runs, and 32 more."""
    diagram = phase_diagram(X, Y, halves, Refinement(2, 2, 1, most))
    assert (len(diagram.cells), diagram.complete) == (cells, complete)
    assert diagram.runs == 2 * (cells + len(diagram.coarser))
    assert {cell.level for cell in diagram.coarser} == {0}


def test_parts_of_a_cell_get_more_runs_until_they_are_clear_as_cells_do():
    """At first all is clear; of the parts of the lower cells every second run differs."""

    def evaluate(points, first):
        doubt = [first >= 8 and y < 0 and (first + k) % 2 for k, (_, y) in enumerate(points)]
        low = [y < 0 for _, y in points]
        return [
            (first + k, 1.0, NAN if below != unlike else 2.0)
            for k, (below, unlike) in enumerate(zip(low, doubt, strict=True))
        ]

    diagram = phase_diagram(X, Y, evaluate, Refinement(2, 4, 1))
    fine = [cell for cell in diagram.cells if cell.level == 1]
    assert {len(cell.runs) for cell in fine if cell.point[1] < 0} == {4}
    assert {len(cell.runs) for cell in fine if cell.point[1] > 0} == {2}
    assert {len(cell.runs) for cell in diagram.coarser} == {2}


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ([(NAN, 1.0, 2.0)] * 12, "the numbers of runs that evaluate returns must be finite, got 12 NaN"),
        ([(0, 1.0, 2.0)] * 11 + [(0, 1.0)], "what evaluate returns must"),
        ([("a", "b", "c")] * 12, "what evaluate returns must"),
        (None, "what evaluate returns must"),
        (
            [(0, 1.0, 2.0)] * 11,
            r"must return 3 numbers for each of 12 runs, got the shape \(11, 3\)",
        ),
        ([(0, 1.0, math.inf)] * 12, "validation_steps must be at least 0, or NaN for never, got inf"),
    ],
)
def test_what_is_no_run_is_refused(found, sentence):
    with pytest.raises(InputError, match=sentence):
        phase_diagram(X, Y, lambda points, first: found)


def test_a_box_has_the_phase_with_the_largest_share_and_covers_a_part_of_the_plane():
    diagram = phase_diagram(X, Y, halves, Refinement(1, 1, 0))
    assert diagram.leading() == "comprehension", "the first of two equal shares"
    assert diagram.leading(((0.0, 1.0), (0.0, 0.6))) == "memorization"
    assert diagram.leading(((-1.0, 2.0), (0.45, 9.0))) == "comprehension"
    assert diagram.shares(((-1.0, 2.0), (-1.0, 2.0))) == diagram.shares()
    for box in (((2.0, 3.0), (0.0, 1.0)), ((0.5, 0.5), (0.0, 1.0)), ((1.0, 0.0), (0.0, 1.0))):
        for read in (diagram.shares, diagram.leading):
            with pytest.raises(InputError) as refused:
                read(box)
            assert str(refused.value) == (
                f"box must cover a part of the plane, from 0 to 1 on both axes, got {box}"
            )


def test_refinement_is_by_default_that_of_the_manual():
    usual = Refinement()
    assert (usual.seeds, usual.most_seeds, usual.levels, usual.most_runs, usual.certain) == (
        3, 7, 2, None, 0.9,
    )  # fmt: skip
    diagram = phase_diagram(X, Y, of)
    assert (diagram.runs, diagram.certain, diagram.delay) == (12, 0.9, 1000)


# -- the figure -------------------------------------------------------------------------------------------


def drawn(*cells, undecided=()):
    """Cells (x, y, phase) of the unit square."""
    made = [Cell(x, y, (0.0, 0.0), 0, [Run(0, 1.0, 1.0, phase)]) for x, y, phase in cells]
    diagram = SimpleNamespace(
        x=Axis("x", 0.0, 1.0), y=Axis("y", 0.0, 1.0), cells=made,
        decided=lambda cell: made.index(cell) not in undecided,
    )  # fmt: skip
    return show_phases(diagram, Figure().subplots())


def places(ax):
    return {text.get_text(): text.get_position() for text in ax.texts}


def test_the_name_of_a_phase_stands_far_from_others_and_from_the_frame():
    """Four fifths are grokking: those farthest from the other phase stand at the frame."""
    sides = [(k / 5, (k + 1) / 5) for k in range(5)]
    cells = [
        (x, y, "memorization" if i == 0 else "grokking")
        for i, x in enumerate(sides)
        for j, y in enumerate(sides)
    ]
    found = places(drawn(*cells))
    assert found["grokking"][0] == pytest.approx(0.7), "0.3 from the right, 0.6 from the other phase"
    assert found["memorization"][0] == pytest.approx(0.1)
    alone = places(drawn(*((x, y, "grokking") for x in sides for y in sides)))
    assert alone == {"grokking": pytest.approx((0.5, 0.5))}


@pytest.mark.parametrize(("share", "named"), [(0.05, True), (0.0399, False)])
def test_a_phase_is_named_from_a_twenty_fifth_of_the_plane_on(share, named):
    ax = drawn(((0.0, share), (0.0, 1.0), "confusion"), ((share, 1.0), (0.0, 1.0), "grokking"))
    assert ("confusion" in places(ax)) == named
    (text,) = [one for one in ax.texts if one.get_text() == "grokking"]
    assert (text.get_ha(), text.get_va()) == ("center", "center")
    assert to_hex(text.get_bbox_patch().get_facecolor()) == palette.WHITE


def test_undecided_cells_are_hatched_within_a_white_edge():
    ax = drawn(((0.0, 0.5), (0.0, 1.0), "confusion"), ((0.5, 1.0), (0.0, 1.0), "grokking"), undecided=(1,))
    clear, hatched, edge = ax.patches
    assert (clear.get_hatch(), to_hex(clear.get_edgecolor()), clear.get_linewidth()) == (
        None,
        palette.WHITE,
        0.4,
    )
    assert (hatched.get_hatch(), to_hex(hatched.get_edgecolor()), hatched.get_linewidth()) == (
        "////",
        palette.INK,
        0,
    )
    assert not edge.get_fill()
    assert (to_hex(edge.get_edgecolor()), edge.get_linewidth()) == (palette.WHITE, 0.8)
    assert edge.get_bbox().bounds == hatched.get_bbox().bounds == (0.5, 0, 0.5, 1)
    assert ax.get_legend()._ncols == 3
    assert {tick.get_tickdir() for tick in ax.xaxis.get_major_ticks()} == {"out"}
