"""The demonstration and the figures of the reports: whose numbers they show, and in which order."""

from types import SimpleNamespace

import numpy as np
import pytest

import physics
from analysis.circles.structures import structures
from analysis.laws.ode import PUBLISHED, fit_trajectories
from analysis.stats.intervals import Interval, mean, proportion
from grokphys.report import circles, demo, musat, side_by_side
from grokphys.report.page import Section, Table
from physics import Trajectory


def horizontal(ax):
    """Estimates and ends (3, rows) of the paper and of us, from the top row to the last; NaN if not drawn."""
    rows = round(ax.get_ylim()[1] + 0.4)
    found = np.full((2, 3, rows), np.nan)
    for one in ax.containers:
        (x,), (y,) = one.lines[0].get_data()
        ends = one.lines[2][0].get_segments()[0][:, 0]
        found[int(y < round(float(y))), :, rows - 1 - round(float(y))] = (x, min(ends), max(ends))
    return found


def sides(values):
    return np.array([(one.estimate, one.low, one.high) for one in values], float).T


def percent(one):
    return one.map(lambda part: 100 * part)


@pytest.fixture(scope="module")
def particles():
    made = physics.simulate(physics.ParticleSystem(alignment=2.0), runs=12, steps=80, seed=3)
    accuracy = np.random.default_rng(0).uniform(0.2, 0.9, (12, made.frames))
    return Trajectory(made.positions, made.steps, observables={"validation_accuracy": accuracy})


def test_table_2_is_drawn_row_by_row(particles):
    section = musat.table_2({0.5: particles, 2.0: particles})
    left, right = section.figures[0].figure.get_axes()[:2]
    found = structures(particles.final)
    for ax, ours, theirs in (
        (left, percent(proportion(int(found.circle.sum()), 12)), [0.0, 56.0]),
        (right, mean(found.imperfections[~found.circle]), [35.5, 42.9]),
    ):
        drawn = horizontal(ax)
        np.testing.assert_allclose(drawn[1], sides([ours] * 2))
        np.testing.assert_allclose(drawn[0, 0], theirs)
    assert (left.get_xlabel(), right.get_xlabel()) == ("circles, % of runs", "grid imperfections of the rest")
    np.testing.assert_allclose(horizontal(right)[0][1:], [[31.8, 32.8], [39.2, 53.0]])


def test_table_1_is_drawn_quantity_by_quantity(particles):
    section = musat.table_1({0.0: particles, 1.0: particles})
    axes = section.figures[0].figure.get_axes()
    assert [ax.axison for ax in axes] == [True] * 5 + [False]
    found, last = structures(particles.final), 100 * particles.observables["validation_accuracy"][:, -1]
    expected = {
        "accuracy of circles, %": (mean(last[found.circle]).within(0, 100), [np.nan, 60.4]),
        "accuracy of the rest, %": (mean(last[~found.circle]).within(0, 100), [18.2, 46.7]),
        "grid imperfections of the rest": (mean(found.imperfections[~found.circle]), [102.2, 31.6]),
    }
    for ax in axes[1:4]:
        ours, theirs = expected.pop(ax.get_xlabel())
        np.testing.assert_allclose(horizontal(ax)[1], sides([ours] * 2))
        np.testing.assert_allclose(horizontal(ax)[0, 0], theirs)
    assert axes[4].get_xlabel() == "correlation"
    assert not expected


def test_a_gallery_has_particles_above_and_networks_below(particles):
    other = Trajectory(particles.positions[::-1], particles.steps)
    axes = np.reshape(musat.gallery(particles, other).figure.get_axes(), (2, 3))
    for row, name, one in zip(axes, ("particles", "networks"), (particles, other), strict=True):
        found = structures(one.final)
        assert all(ax.axison for ax in row)
        for ax, (kind, run) in zip(row, musat.typical_runs(one, found).items(), strict=True):
            number = (
                f"ratio {physics.circle_ratio(one.final[run]):.2f}"
                if kind == "circle"
                else found.imperfections[run]
            )
            assert ax.get_title(loc="left") == f"{name} {run}: {kind} ({number})"
            np.testing.assert_allclose(ax.collections[-1].get_offsets(), one.final[run])


def test_each_kind_of_a_gallery_has_its_own_column(particles):
    circle = structures(particles.final).circle
    rows = [Trajectory(particles.positions[chosen], particles.steps) for chosen in (~circle, circle)]
    axes = np.reshape(musat.gallery(*rows).figure.get_axes(), (2, 3))
    drawn = [[ax.get_title(loc="left").partition(": ")[2].partition(" (")[0] for ax in row] for row in axes]
    assert drawn == [["", "grid", "imperfect grid"], ["circle", "", ""]]


def test_the_demonstration_compares_what_it_says(tmp_path, monkeypatch):
    made, asked, written = {}, {}, {}

    def simulate(system, *, runs, seed, out, overwrite, progress):
        made[system.alignment] = SimpleNamespace(name=f"particles {system.alignment:g}")
        asked[out.name] = (runs, seed, overwrite, progress)
        return made[system.alignment]

    def train(model, *, runs, steps, seed, weight_decay, out, overwrite, progress):
        made["networks"] = SimpleNamespace(name="networks")
        asked[out.name] = (runs, steps, seed, weight_decay, overwrite, progress)
        return made["networks"]

    def tables(title):
        def of(ensembles):
            made[title] = ensembles
            return Section(
                title,
                [f"text of {title}"],
                [Table("t", ["verdict"], [["covered"], ["covered"]])],
                [f"figure of {title}"],
            )

        return of

    comparison = SimpleNamespace(names=("simulated", "trained"))
    monkeypatch.setattr(demo, "simulate", simulate)
    monkeypatch.setattr(demo, "train", train)
    monkeypatch.setattr(demo.musat, "table_1", tables("Table 1"))
    monkeypatch.setattr(demo.musat, "table_2", tables("Table 2"))
    monkeypatch.setattr(demo.musat, "gallery", lambda first, second: ("gallery", first, second))
    monkeypatch.setattr(
        demo, "compare", lambda first, second: made.update(compared=(first, second)) or comparison
    )
    monkeypatch.setattr(
        demo,
        "comparison_sections",
        lambda *args, about: made.update(sections=(args, about)) or [Section("compared", [])],
    )
    monkeypatch.setattr(
        demo, "ode_section", lambda trajectory, source: Section("law", ["first", "last words"])
    )
    monkeypatch.setattr(demo, "conclusion", lambda one: ["concluded", "more"])
    monkeypatch.setattr(demo, "write_report", lambda *args: written.update(args=args))
    out = tmp_path / "deep" / "demo"
    report, sections = demo.demonstrate(out, runs=3, epochs=7, seed=5, overwrite=False, progress=False)
    assert report == out / "report.html"
    assert out.is_dir()
    assert asked == {
        **{f"particles_fa{f_a}.h5": (3, 5, False, False) for f_a in ("0.5", "1", "2")},
        "networks_wd1.h5": (3, 7, 5, 1.0, False, False),
    }
    assert made["Table 2"] == {f_a: made[f_a] for f_a in (0.5, 1.0, 2.0)}
    assert made["Table 1"] == {1.0: made["networks"]}
    assert made["compared"] == (made[1.0], made["networks"])
    assert made["sections"][0] == (comparison, [made[1.0]], [made["networks"]])
    assert "particles with f_a = 1, the trained ones the networks with weight decay 1." in made["sections"][1]
    assert [one.title for one in sections] == ["Table 2", "Table 1", "compared", "law"]
    assert sections[0].figures == ["figure of Table 2"]
    assert sections[1].figures == [("gallery", made[1.0], made["networks"])]
    path, _, subtitle, summary, shown = written["args"]
    assert (path, shown) == (report, sections)
    assert "seed 5, 3 runs of each ensemble" in subtitle
    assert summary[1:] == ["concluded", "last words"]
    assert summary[0].startswith("The networks reproduce all 2 numbers of Table 1 of Musat's paper.")


def test_the_section_of_the_law_shows_its_matrix_and_the_rollouts_of_both_fits():
    run = physics.example("ding")
    section = circles.ode_section(run, "A source.", last=200)
    signals = circles.signals_of(run, 0, 200)[0]
    assert section.text[0].startswith("A source. Of 29 frequencies, ")
    assert f"{len(signals.survivors)} survive: {', '.join(map(str, signals.survivors))}. " in section.text[0]
    assert "fitted to the 200 consecutive steps up to step 200" in section.text[1]
    law = fit_trajectories(signals.values, **PUBLISHED["lasso"])
    matrix, rollouts = (one.figure for one in section.figures)
    np.testing.assert_allclose(np.asarray(matrix.axes[0].images[0].get_array()), law.A)
    assert [ax.get_title(loc="left") for ax in rollouts.axes] == list(circles.RECIPES)
    assert [row[0] for row in section.tables[0].rows] == list(circles.RECIPES)
    bold = {
        label.get_text() for label in matrix.axes[0].get_xticklabels() if label.get_fontweight() == "bold"
    }
    assert bold == set(map(str, signals.survivors))


def test_a_comparison_has_a_section_for_each_part_with_its_own_figure(monkeypatch):
    drawn = []

    def draws(name, found=True):
        def draw(*args, **options):
            drawn.append((name, args, options))
            return np.array([[SimpleNamespace(figure=f"figure of {name}")]]) if found else None

        return draw

    monkeypatch.setattr(side_by_side, "show_quantities", draws("quantities"))
    monkeypatch.setattr(side_by_side, "show_typical_pair", draws("pair"))
    monkeypatch.setattr(side_by_side, "show_motion", draws("motion"))
    monkeypatch.setattr(side_by_side, "show_nearest", draws("nearest", found=False))
    for name in ("show_distributions", "show_onsets", "show_calibration"):
        monkeypatch.setattr(side_by_side, name, draws(name))
    for name in ("distribution_table", "motion_table", "shape_table", "onset_table", "accuracy_table"):
        monkeypatch.setattr(side_by_side, name, lambda comparison, n=name: n)
    monkeypatch.setattr(side_by_side, "findings", lambda comparison: "found")
    monkeypatch.setattr(side_by_side, "_motion_text", lambda comparison: ["how"])
    none = Interval(np.nan, np.nan, np.nan, 0)
    motion = SimpleNamespace(pairs=np.array([[4, 2], [3, 1], [0, 5]]), error=np.array([[3.0], [2.0], [1.0]]))
    shapes = SimpleNamespace(distances=lambda names: {names[0]: [0.1]})
    onsets = {name: SimpleNamespace(name=name) for name in "abcd"}
    accuracy = SimpleNamespace(predicted=[0.1, 0.2], bias=none)
    comparison = SimpleNamespace(
        names=("one", "other"),
        notes=("x is y",),
        distributions={"q": 1},
        motion=motion,
        shapes=shapes,
        onsets=onsets,
        accuracy=accuracy,
    )
    sections = side_by_side.comparison_sections(comparison, ["first"], ["second"], about="What they are.")
    assert [one.title for one in sections] == [
        "Side by side",
        "Motion",
        "Final shapes",
        "When thresholds are reached",
        "Predicted and measured accuracy",
    ]
    assert sections[0].text == ["What they are.", "found", "Note: x is y."]
    assert [one.tables for one in sections] == [
        ["distribution_table"],
        ["motion_table"],
        ["shape_table"],
        ["onset_table"],
        ["accuracy_table"],
    ]
    assert sections[0].figures[0].caption.endswith("over the runs. What they are.")
    pair, times = sections[1].figures
    assert pair.caption.startswith("Run 3 of one and run 1 of other, the pair with the median error")
    assert (pair.figure, times.figure) == ("figure of pair", "figure of motion")
    assert len(sections[2].figures) == 1, "shapes that cannot be drawn have no figure"
    assert [args[0].name for name, args, _ in drawn if name == "show_onsets"] == ["a", "b", "c"]
    assert [args for name, args, _ in drawn if name in ("pair", "nearest")] == [
        (comparison, ["first"], ["second"])
    ] * 2
    bare = SimpleNamespace(
        names=("one", "other"), notes=(), distributions={}, motion=None, shapes=None, onsets={}, accuracy=None
    )
    (only,) = side_by_side.comparison_sections(bare, [], [])
    assert (only.text, list(only.tables), list(only.figures)) == (["found"], [], [])


def test_the_roundest_circle_is_looked_for_among_the_circles_alone():
    angle = 2 * np.pi * np.arange(7) / 7
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    final = np.stack([circle, circle, circle * [1.2, 1.0], circle * [1.1, 1.0]])
    found = SimpleNamespace(circle=np.array([False, False, True, True]), imperfections=np.array([5, 3, 0, 0]))
    typical = musat.typical_runs(SimpleNamespace(final=final), found)
    assert typical == {"circle": 3, "grid": 1, "imperfect grid": 0}
