"""What Figures 1, 21 and 22 of Liu et al. show and judge, read back from the axes, of made-up networks."""

import numpy as np
import pytest
from pictures import lines, title

from analysis.plots.palette import class_colors
from grokphys.papers.liu import figures_01_21_22 as components
from grokphys.papers.recipe import Run


def cloud(ax):
    return np.asarray(ax.collections[0].get_offsets())


@pytest.fixture
def followed(monkeypatch):
    """Two networks of 7 tokens in 5 dimensions over 5 frames, of which the first generalizes in the third."""
    rng = np.random.default_rng(1)
    ones = []
    for right in ([0.1, 0.4, 0.95, 0.9, 1.0], [0.0, 0.1, 0.2, 0.3, 0.4]):
        rows = [
            (step, kind, n)
            for step in range(0, 50, 10)
            for kind, n in (("actual", 5), ("final", 2), ("current", 2), ("final", 4), ("current", 4))
        ]
        step, kind, n = (np.array(column) for column in zip(*rows, strict=True))
        held = rng.uniform(size=25)
        held[kind == "actual"] = right
        one = {
            "positions": rng.normal(size=(5, 7, 5)),
            "steps": np.arange(0, 50, 10),
            "step": step,
            "components": kind,
            "n": n,
            "train_accuracy": rng.uniform(size=25),
            "validation_accuracy": held,
        }
        ones.append(one)
    monkeypatch.setattr(components, "followed", lambda run: ones)
    return ones


def projected(E):
    """Principal components (tokens, 2), up to signs."""
    u, s, _ = np.linalg.svd(E - E.mean(axis=0), full_matrices=False)
    return u[:, :2] * s[:2]


def test_figure_1_shows_components_before_at_and_after_generalization(followed):
    made = components.emergence(Run(None, "quick"))
    rows = made.columns()["frames"]
    assert rows["network"].tolist() == [0] * 5 + [1] * 5
    assert rows["step"].tolist() == list(range(0, 50, 10)) * 2
    assert rows["validation_accuracy"].tolist() == [0.1, 0.4, 0.95, 0.9, 1.0, 0.0, 0.1, 0.2, 0.3, 0.4]
    for k, one in enumerate(followed):
        for n, E in enumerate(one["positions"]):
            power = np.abs(np.fft.rfft(projected(E), axis=0)[1:]) ** 2
            assert rows["structure"][5 * k + n] == pytest.approx(power.max(axis=0).sum() / power.sum())
    axes = made.figures["liu-1"].get_axes()
    assert [ax.get_title(loc="left") for ax in axes] == [
        f"step {10 * n}\nvalidation {right}" for n, right in enumerate(("10%", "40%", "95%", "90%", "100%"))
    ]
    power = (np.abs(np.fft.rfft(projected(followed[0]["positions"][-1]), axis=0)) ** 2).sum(axis=1)
    frequency = 1 + int(power[1:].argmax())
    for n, ax in enumerate(axes):
        np.testing.assert_allclose(
            np.abs(cloud(ax)), np.abs(projected(followed[0]["positions"][n])), atol=1e-9
        )
        order = sorted(range(7), key=lambda token: frequency * token % 7)
        np.testing.assert_allclose(ax.lines[0].get_xydata(), cloud(ax)[[*order, order[0]]])
        np.testing.assert_allclose(ax.collections[0].get_facecolors()[order], class_colors(7))


def test_figure_1_shows_the_first_network_that_generalizes(followed):
    followed.reverse()
    axes = components.emergence(Run(None, "quick")).figures["liu-1"].get_axes()
    assert axes[-1].get_title(loc="left") == "step 40\nvalidation 100%"


def test_figure_21_shows_the_start_on_its_own_and_on_the_final_components(followed):
    made = components.tickets(Run(None, "quick"))
    start, end = followed[0]["positions"][[0, -1]]
    basis = np.linalg.svd(end - end.mean(axis=0), full_matrices=False)[2][:2]
    views = (projected(end), projected(start), (start - end.mean(axis=0)) @ basis.T)
    power = (np.abs(np.fft.rfft(views[0], axis=0)) ** 2).sum(axis=1)
    frequency = 1 + int(power[1:].argmax())
    for ax, view, name in zip(made.figures["liu-21"].get_axes(), views, components.VIEWS, strict=True):
        np.testing.assert_allclose(np.abs(cloud(ax)), np.abs(view), atol=1e-9)
        share = f"{components.share_of(view, frequency):.0%} of the variance"
        assert ax.get_title(loc="left") == f"{name}\nfrequency {frequency}: {share}"
    rows = made.columns()["hints"]
    count = 1 + components.TURNS
    assert rows["network"].tolist() == [0] * count + [1] * count
    assert rows["turned"].tolist() == ([False] + [True] * components.TURNS) * 2
    assert rows["validation_accuracy"].tolist() == [1.0] * count + [0.4] * count
    # On each final component, the part of the start's variance that lies at the component's own frequency.
    own, starts = (np.abs(np.fft.rfft(view, axis=0)[1:]) ** 2 for view in (views[0], views[2]))
    at = own.argmax(axis=0)
    assert rows["share"][0] == pytest.approx(starts[at, [0, 1]].sum() / starts.sum())
    found = components._hints({"hints": rows}, 0.95)
    gap = rows["share"][0] - rows["share"][1:count].mean()
    assert (found.estimate, found.count) == (pytest.approx(gap), 1), "the second has not reached 99 %"


@pytest.mark.parametrize("hinted", [True, False])
def test_random_directions_tell_a_hint_of_the_start_from_what_the_end_keeps_of_it(hinted):
    """A circle that is learned in directions of its own shows the start too, as the end contains it."""
    angle = 2 * np.pi * 5 * np.arange(53) / 53
    waves = np.stack([np.cos(angle), np.sin(angle)])
    gaps = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        start = rng.normal(size=(53, 64))
        axes = waves @ start if hinted else rng.normal(size=(2, 64))
        axes *= 4 / np.linalg.norm(axes, axis=1, keepdims=True)
        shares = components._shares(start, 0.2 * start + waves.T @ axes, rng)
        assert len(shares) == 1 + components.TURNS
        gaps.append(shares[0] - np.mean(shares[1:]))
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    assert np.mean(gaps) > 0.1 + 3 * error if hinted else abs(np.mean(gaps)) < 3 * error


def test_figure_22_shows_accuracies_with_all_and_with_a_few_components(followed):
    made = components.projections(Run(None, "quick"))
    rows = made.columns()["accuracy"]
    assert rows["network"].tolist() == [0] * 25 + [1] * 25
    one = followed[0]
    for ax, part in zip(made.figures["liu-22"].get_axes(), ("train", "validation"), strict=True):
        assert title(ax) == f"{part} set, first network"
        for kind, n, label in (
            ("actual", 5, "all dimensions"),
            *((k, n, f"{n} {k} components") for k in ("final", "current") for n in (2, 4)),
        ):
            here = (one["components"] == kind) & (one["n"] == n)
            assert lines(ax)[label] == (list(range(0, 50, 10)), one[f"{part}_accuracy"][here].tolist())
    means = []
    for one in followed:
        final, current = (
            one["validation_accuracy"][one["components"] == kind] for kind in ("final", "current")
        )
        means.append(np.mean([f - c for f, c in zip(final, current, strict=True) if abs(f - c) >= 0.02]))
    assert components._final_better({"accuracy": rows}, 0.95).estimate == pytest.approx(np.mean(means))
    found = components._few_suffice({"accuracy": rows}, 0.95)
    end = (one["step"] == 40) & (one["components"] == "final")
    assert (found.count, followed[0]["validation_accuracy"][20]) == (1, 1.0)
    assert found.estimate == followed[0]["validation_accuracy"][end].max()


def test_axes_that_never_differ_have_no_lead():
    rows = {
        "network": np.repeat([0, 1], 4),
        "components": np.tile(["final", "current"], 4),
        "validation_accuracy": np.array([0.5, 0.49, 1.0, 1.0, 0.5, 0.4, 0.7, 0.71]),
    }
    found = components._final_better({"accuracy": rows}, 0.95)
    assert (found.estimate, found.count) == (pytest.approx(0.05), 2)


def test_a_network_that_fits_and_never_fails_does_not_emerge():
    frames = {
        "network": np.repeat([0, 1], 3),
        "step": np.tile([0, 500, 1000], 2),
        "validation_accuracy": np.array([0.2, 0.5, 0.9, 0.6, 0.8, 1.0]),
        "structure": np.array([0.1, 0.5, 0.4, 0.2, 0.2, 0.9]),
    }
    found = components._emerges({"frames": frames}, 0.95)
    assert (found.estimate, found.count) == (pytest.approx(0.3), 1), "the second was never below one half"


def test_structure_that_comes_long_after_generalization_does_not_coincide_with_it():
    step = np.arange(0, 20_000, 500)
    for delay, expected in ((0, 0.8), (6000, 0.0), (-3000, 0.0)):
        frames = {
            "network": np.zeros(40, int),
            "step": step,
            "validation_accuracy": np.where(step >= 7000, 1.0, 0.1),
            "structure": np.where(step >= 7000 + delay, 0.9, 0.1),
        }
        frames["validation_accuracy"][30] = 0.3  # it fails once more, long after
        assert components._emerges({"frames": frames}, 0.95).estimate == pytest.approx(expected)
