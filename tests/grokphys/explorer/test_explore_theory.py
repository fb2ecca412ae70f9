"""The effective theory's view: what clicking says is what the theory says."""

import naive_theory as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import physics
from grokphys.explorer.films import export, films
from grokphys.explorer.runs.training_set import FRAMES, LARGEST, TrainingSet

pytestmark = pytest.mark.filterwarnings("ignore:Widget.name is deprecated:PendingDeprecationWarning")


def theory_of(chosen):
    return physics.EffectiveTheory(
        chosen.operation.tokens, chosen.dim, chosen.pairs, modulus=chosen.operation.modulus
    )


@pytest.mark.parametrize(("tokens", "modulus", "dim"), [(6, None, 1), (7, 7, 2), (5, 3, 1)])
def test_clicked_pairs_give_what_the_theory_of_those_pairs_gives(tokens, modulus, dim):
    chosen = TrainingSet.drawn(tokens, modulus, dim=dim, seed=1)
    pairs = set(chosen.pairs)
    for i, j in [(0, 1), (2, 0), (4, 4), (0, 1), (3, 1)]:
        chosen = chosen.toggled(i, j)
        pairs ^= {(min(i, j), max(i, j))}
        assert set(chosen.pairs) == pairs
        theory, found = theory_of(chosen), chosen.measures
        assert found.pairs == len(pairs)
        assert found.samples == tokens * (tokens + 1) // 2
        assert found.parallelograms == len(theory.parallelograms) == len(chosen.parallelograms)
        assert found.ground_state_dimension == theory.ground_state_dimension
        assert found.grokking_rate == theory.grokking_rate
        assert found.ideal_accuracy == physics.ideal_accuracy(theory)
        assert found.ideal_quality == physics.theory.ideal_quality(theory)
        assert (chosen.mask | chosen.follows).mean() == found.ideal_accuracy
        assert not (chosen.mask & chosen.follows).any()


def test_a_change_leaves_the_old_training_set_as_it_was():
    first = TrainingSet.drawn(6)
    before = first.mask.copy()
    second = first.toggled(0, 0)
    np.testing.assert_array_equal(first.mask, before)
    assert second.toggled(0, 0).pairs == first.pairs


def test_the_empty_and_the_complete_training_set():
    empty, complete = (TrainingSet.drawn(6).filled(all_of_them) for all_of_them in (False, True))
    assert empty.pairs == []
    assert empty.theory is None
    assert empty.measures.ground_state_dimension == 6
    assert empty.measures.grokking_rate == empty.measures.ideal_accuracy == 0
    np.testing.assert_array_equal(empty.embeddings[-1], empty.start)
    assert not empty.accuracy.any()
    with pytest.raises(physics.InputError, match="pairs must hold at least 1 pair .*, got none"):
        empty.python(0)
    with pytest.raises(physics.InputError, match="at least 1 pair"):
        empty.trajectory()
    assert complete.measures.ground_state_dimension == 2
    assert complete.measures.ideal_accuracy == 1
    assert complete.quality[-1] == complete.accuracy[-1] == 1


def test_a_pair_alone_in_its_class_moves_nothing():
    chosen = TrainingSet.drawn(6).filled(False).toggled(2, 3)
    assert chosen.measures.parallelograms == 0
    assert chosen.measures.ground_state_dimension == 6
    assert len(chosen.linked) == 0
    np.testing.assert_array_equal(chosen.embeddings[-1], chosen.start)


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 9), st.booleans(), st.integers(1, 2), st.integers(0, 45), st.integers(0, 1000))
def test_any_training_set_can_be_shown(tokens, cyclic, dim, size, seed):
    size = min(size, tokens * (tokens + 1) // 2)
    chosen = TrainingSet.drawn(tokens, tokens if cyclic else None, size=size, dim=dim, seed=seed)
    assert chosen.measures.pairs == size
    assert chosen.embeddings.shape == (FRAMES, tokens, dim)
    norms = (chosen.embeddings**2).sum(axis=(1, 2))
    np.testing.assert_allclose(norms, tokens * dim, rtol=1e-9)
    modulus = tokens if cyclic else 2 * tokens
    quadruples = naive.parallelograms(naive.samples_of(tokens), lambda i, j: (i + j) % modulus)
    for frame in (0, FRAMES - 1):
        found = naive.found(naive.normalised(chosen.embeddings[frame]), quadruples, 0.01)
        assert chosen.quality[frame] == pytest.approx(len(found) / len(quadruples))
    assert (chosen.accuracy >= chosen.measures.pairs / chosen.measures.samples - 1e-12).all()
    linked = {tuple(pair) for pair in chosen.operation.samples[chosen.linked].tolist()}
    assert linked == {tuple(pair) for pair in chosen.parallelograms.reshape(-1, 2).tolist()}


def test_arcs_of_a_parallelogram_that_is_fulfilled_share_their_middle():
    chosen = TrainingSet.drawn(6).filled(True)
    middle, radius = chosen.arcs(FRAMES - 1)
    sums = chosen.operation.label[chosen.linked]
    for value in np.unique(sums):
        assert np.ptp(middle[sums == value]) < 0.01
    ends = np.sort(chosen.embeddings[-1, :, 0][chosen.operation.samples[chosen.linked]], axis=1)
    np.testing.assert_allclose(np.stack([middle - radius, middle + radius], axis=1), ends)


def test_quadrilaterals_close_around_pairs_with_the_same_sum():
    chosen = TrainingSet.drawn(5, 5, dim=2, size=12)
    corners = chosen.quadrilaterals(3)
    E = chosen.embeddings[3]
    for corner, (i, j, m, n), found in zip(
        corners, chosen.parallelograms, chosen.parallelogram_classes, strict=True
    ):
        np.testing.assert_array_equal(corner, E[[i, m, j, n]])
        assert found == (i + j) % 5 == (m + n) % 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"tokens": 2}, "tokens must be at least 3, got 2"),
        ({"tokens": LARGEST + 1}, f"tokens must be at most {LARGEST} in the explorer, got {LARGEST + 1}"),
        ({"tokens": 5, "modulus": 1}, "modulus must be at least 2, got 1"),
        ({"tokens": 5, "dim": 3}, "dim must be 1 or 2 in the explorer, got 3"),
        ({"tokens": 5, "size": 16}, "size must be at most 15"),
        ({"tokens": 5, "seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_values_out_of_range_are_refused(arguments, sentence):
    with pytest.raises(physics.InputError, match=sentence):
        TrainingSet.drawn(**arguments)
    with pytest.raises(physics.InputError, match=r"pairs must hold symbols from 0 to 4, got \(0, 5\)"):
        TrainingSet.drawn(5).toggled(0, 5)


def test_the_python_that_is_copied_gives_the_same_bits():
    for chosen in (TrainingSet.drawn(7, seed=2), TrainingSet.drawn(6, 6, dim=2, size=14)):
        found = {}
        exec(chosen.python(57), found)
        np.testing.assert_array_equal(found["E"], chosen.embeddings[57])
        assert found["n_0"] == chosen.measures.ground_state_dimension
        assert found["lambda_3"] == chosen.measures.grokking_rate
        assert found["accuracy"] == chosen.measures.ideal_accuracy


def test_the_flow_is_saved_as_a_run_of_simulate(tmp_path):
    chosen = TrainingSet.drawn(5, seed=4)
    chosen.trajectory().save(tmp_path / "t.h5")
    found = physics.load(tmp_path / "t.h5")
    np.testing.assert_array_equal(found.initial[0], chosen.start)
    np.testing.assert_allclose(found.positions[0], chosen.embeddings, atol=1e-12)
    np.testing.assert_allclose(found.times, chosen.times)
    assert found.parameters["system"]["pairs"] == [list(pair) for pair in chosen.pairs]


def test_the_flow_is_drawn():
    film = films.flow_film(TrainingSet.drawn(5, 5, dim=2))
    assert film.frames == FRAMES
    assert export.png(film, 0, dpi=40) != export.png(film, 60, dpi=40)
    assert export.png(films.flow_film(TrainingSet.drawn(4).filled(False)), 3, dpi=40).startswith(b"\x89PNG")


# -- the view, without a browser ----------------------------------------------------------------------------


@pytest.fixture
def session():
    document = pytest.importorskip("bokeh.document").Document()
    from grokphys.explorer.session import Session
    from grokphys.explorer.views.theory import TheoryView

    made = Session(document, (TheoryView,))
    made.bridge.command = [0, "ready", None]
    return made


def press(button):
    from bokeh.events import ButtonClick

    button._trigger_event(ButtonClick(button))


def said(session):
    """State as the page says it."""
    return dict(session.bridge.status)


def tap(view, x, y):
    from bokeh.events import Tap

    view._grid.figure._trigger_event(Tap(view._grid.figure, x=x, y=y))


def test_taps_on_the_grid_change_the_training_set_and_what_is_said_of_it(session):
    view = session.view
    pairs = set(view._chosen.pairs)
    for x, y in [(2.3, 4.6), (4.8, 2.2), (0.1, -0.2), (7.9, 9.2), (-0.6, 3.0), (3.0, 11.0)]:
        tap(view, x, y)
    pairs ^= {(0, 0), (8, 9)}  # (2, 5) went in and, as (5, 2), out again; the last two taps miss the grid
    theory, status = physics.EffectiveTheory(10, pairs=sorted(pairs)), said(session)
    assert status["pairs"] == f"{len(pairs)} of 55"
    assert status["parallelograms"] == str(len(theory.parallelograms))
    assert status["ground states"] == str(theory.ground_state_dimension)
    assert status["grokking rate"] == f"{theory.grokking_rate:.6g}"
    assert status["ideal accuracy"] == f"{100 * physics.ideal_accuracy(theory):.2f} %"
    assert view._size.value == len(pairs)
    assert session.bridge.message[2] == "", "what misses the grid is no mistake"


def test_controls_draw_other_training_sets(session):
    view = session.view
    view._pair.value = "9, 8"
    assert said(session)["pairs"] == "46 of 55"
    assert view._pair.value == ""
    view._size.value = 20
    assert view._chosen.pairs == TrainingSet.drawn(10, size=20, seed=3).pairs
    view._tokens.value = 7
    assert said(session)["pairs"] == "22 of 28"
    view._modulus.value = 7
    assert view._chosen.operation.modulus == 7
    view._dim.value = 2
    assert view._chosen.embeddings.shape == (FRAMES, 7, 2)
    press(view._all)
    assert said(session)["ideal accuracy"] == "100.00 %"
    press(view._none)
    assert said(session)["ground states"] == "7"
    assert session.bridge.message[2] == ""


def test_what_is_not_allowed_is_said_on_the_page_and_nothing_changes(session):
    view = session.view
    before = view._chosen
    for text, sentence in [
        ("3", "pair must be two symbols such as 2, 5, got '3'"),
        ("3, 10", "pairs must hold symbols from 0 to 9, got (3, 10)"),
    ]:
        view._pair.value = text
        assert session.bridge.message[1:] == ["error", sentence]
    assert view._chosen is before
    view._modulus.value = 17
    before = view._chosen
    view._modulus.value = 1
    assert session.bridge.message[1:] == ["error", "modulus must be at least 2, got 1"]
    assert view._chosen is before


def test_time_passes_to_its_end_and_back(session):
    view = session.view
    view.advance(30)
    view.show()
    assert view._time.value == 30
    assert session.view.status()["time"] == f"{view._chosen.times[30]:.4g}"
    view._time.value = 110
    assert said(session)["RQI"] == f"{view._chosen.quality[110]:.4f}"
    assert not view.finished
    view.advance(1000)
    assert view.finished
    session.bridge.command = [1, "reset", None]
    assert said(session)["time"] == "0"


def test_what_is_copied_is_what_is_shown(session):
    view = session.view
    tap(view, 8, 9)
    view._time.value = 77
    session.bridge.command = [1, "python", None]
    found = {}
    exec(session.bridge.script[1], found)
    np.testing.assert_array_equal(view._shape._tokens.tokens.data["x"], found["E"][:, 0])
    assert said(session)["grokking rate"] == f"{found['lambda_3']:.6g}"
    press(view._none)
    session.bridge.command = [2, "python", None]
    assert session.bridge.message[1] == "error"
    assert "at least 1 pair" in session.bridge.message[2]
