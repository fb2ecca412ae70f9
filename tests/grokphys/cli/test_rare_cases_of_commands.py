"""What commands do in rare cases: all files bad, observables of their own clock, runs that diverged."""

import csv
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nets
import physics
from analysis import neuron_spectrum
from grokphys.cli import analyze, animate, compare, reproduce
from grokphys.cli.main import main
from grokphys.explorer.films import export
from physics import InputError, Operation, Trajectory

NAN, INF = math.nan, math.inf


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


# -- analyze and info -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["analyze", "survival", "fit-ode"])
def test_without_a_good_file_there_is_no_table(command, tmp_path, capsys):
    (tmp_path / "bad.h5").write_text("nothing")
    words = [command, str(tmp_path / "bad.h5"), "--table", str(tmp_path / "t.csv")]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert (out, "bad.h5 is not an HDF5 file" in err) == ("", True)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.h5"]
    (tmp_path / "t.csv").write_text("old")
    assert main([*words, "--overwrite"]) == 1
    assert (tmp_path / "t.csv").read_text() == "old"
    assert main(words) == 1
    assert "t.csv exists; choose another name or pass --overwrite" in capsys.readouterr().err


@pytest.fixture
def clocks(tmp_path):
    """Two runs of 3 frames, with observables of their own clocks, one of which has no frame yet."""
    E = np.random.default_rng(0).normal(size=(2, 3, 5, 2))
    observables = {
        "loss": np.arange(6.0).reshape(2, 3), "often": np.arange(8.0).reshape(2, 4), "late": np.zeros((2, 0)),
        "layers": np.zeros((2, 3, 4)),
    }  # fmt: skip
    clocks = {"often": ([0, 5, 10, 40], [0.0, 5.0, 10.0, 40.0]), "late": (np.array([], int), [])}
    path = tmp_path / "t.h5"
    parameters = {"program": "mine", "x": [1, 2]}
    Trajectory(E, [0, 10, 30], observables=observables, clocks=clocks, parameters=parameters).save(path)
    return path


def test_final_values_are_the_last_on_their_own_clock(clocks, capsys):
    table = clocks.with_name("t.csv")
    assert main(["analyze", str(clocks), "--table", str(table)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"2 runs in {table}"
    for run, row in enumerate(rows_of(table)):
        assert {name: value for name, value in row.items() if name.startswith("final_")} == {
            "final_loss": str(3.0 * run + 2), "final_often": str(4.0 * run + 3)
        }  # fmt: skip
        assert row["step"] == "30"


def test_info_tells_clocks_apart_and_says_what_is_not_there_yet(clocks, capsys):
    path = clocks.with_name("u.h5")
    Trajectory(np.zeros((1, 1, 3, 1)), [7], complete=False).save(path)
    assert main(["info", str(clocks), str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  observable   loss, 3 frames" in lines
    assert "  observable   often, 4 frames, own clock: steps 0 to 40" in lines
    assert "  observable   late, 0 frames, own clock: no step" in lines
    assert "  complete     yes" in lines
    assert "  complete     no: unfinished or cut short" in lines
    assert any(line.startswith("  made by      mine, grokphys ") for line in lines)
    assert any(line.startswith("  made by      unknown, grokphys ") for line in lines)
    assert "    x              [1, 2]" in lines
    assert not any("program" in line for line in lines)
    assert any(line.endswith("float64, steps 7 to 7") for line in lines)


def test_info_keeps_long_names_apart_from_their_values(tmp_path, capsys):
    parameters = {"x": 1, "embedding_weight_decay": None}
    Trajectory(np.zeros((1, 1, 3, 1)), [0], parameters=parameters).save(tmp_path / "t.h5")
    assert main(["info", str(tmp_path / "t.h5")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [f"    x{' ' * 22}1", "    embedding_weight_decay null"]


def test_neurons_are_summarized_over_the_runs_that_are_finite(monkeypatch):
    W = np.random.default_rng(0).normal(size=(4, 7, 5))
    W[1, 2, 3], W[2, 0, 0] = NAN, INF
    W[3] = 0
    monkeypatch.setattr(analyze, "_weights", lambda one: {"W_in": W.copy(), "W_out": W.swapaxes(1, 2).copy()})
    line, rows = analyze._neurons(None)
    spectrum = neuron_spectrum(W[[0, 3]], W[[0, 3]].swapaxes(1, 2))
    shares = [f"{np.mean(spectrum.kind == kind):.1%} {kind}" for kind in ("single", "double", "many", "dead")]
    purity = np.nansum(spectrum.purity[0]) / 5
    assert line == f"neurons of frequencies: {', '.join(shares)}; mean purity {purity / 2:.2f}"
    assert rows[1] == rows[2] == {"neurons": 5}
    assert (rows[0]["neurons"], rows[3]["neurons_dead"], rows[0]["neurons_dead"]) == (5, 5, 0)
    assert rows[0]["neuron_purity"] == pytest.approx(purity)
    assert (rows[3]["neuron_purity"], rows[3]["neuron_gini"], rows[3]["neuron_frequencies"]) == (0, 0, "")
    assert rows[3]["phase_misalignment"] is None
    monkeypatch.setattr(analyze, "_weights", lambda one: {"W_in": np.full((2, 7, 5), INF)})
    assert analyze._neurons(None) == ("no neuron is finite", [{"neurons": 5}] * 2)
    monkeypatch.undo()
    with pytest.raises(InputError, match="got one made by an unknown program$"):
        analyze._weights(Trajectory(np.zeros((1, 1, 5, 2)), [0]))


def test_logits_of_runs_that_diverged_have_no_row_of_their_own(monkeypatch):
    made = nets.train(nets.ConstantAttention(5, hidden=4), runs=3, steps=2, observables=("layers",))
    networks = nets.networks(made)
    whole = [np.array(networks.member(run).logits()[0]) for run in range(3)]
    whole[1][0, 0], whole[2][1, 1] = NAN, INF

    class Networks:
        model, examples = networks.model, networks.examples

        @staticmethod
        def member(run):
            return SimpleNamespace(logits=lambda: [whole[run]])

    monkeypatch.setattr(nets, "networks", lambda trajectory: Networks)
    line, (first, *others) = analyze._logits(made)
    assert line == f"waves of a + b - c explain {first['logits_explained']:.1%} of the logits"
    assert others == [{}, {}]
    whole[0][2, 2] = NAN
    assert analyze._logits(made) == ("no logits are finite", [{}] * 3)


# -- films ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dim", "view", "frequency", "drawn"),
    [
        (1, "auto", None, "axes 1, 2"), (2, "auto", None, "axes 1, 2"), (3, "auto", None, "components 1, 2"),
        (4, "auto", None, 2), (2, "auto", 1, 1), (2, "circles", None, 2), (3, "circles", 1, 1),
        (2, "particles", None, "axes 1, 2"), (9, "particles", None, "components 1, 2"),
    ],
)  # fmt: skip
def test_a_film_shows_particles_of_few_dimensions_and_circles_of_others(
    monkeypatch, dim, view, frequency, drawn
):
    made = "grokphys.explorer.films"
    monkeypatch.setattr(
        f"{made}.particles.particle_film", lambda one, *, operation, plane: (operation, plane)
    )
    monkeypatch.setattr(f"{made}.films.circles_film", lambda run, plane, alive, limit: (plane, alive, limit))
    moves = SimpleNamespace(dim=dim, parameters={"modulus": 6}, tokens=5)
    run = SimpleNamespace(
        trajectory=moves, strongest=2, plane=lambda k: k, survivors=lambda: "alive", limit=lambda: "limit"
    )
    found = animate._film(run, view, frequency)
    assert found == ((Operation(5, 6), drawn) if isinstance(drawn, str) else (drawn, "alive", "limit"))


@pytest.mark.parametrize(("kind", "said"), [("png", "last of 9"), ("gif", "3 of 9"), ("mp4", "3 of 9")])
def test_a_film_is_made_with_the_options_that_were_given(kind, said, tmp_path, monkeypatch, capsys):
    film, asked = SimpleNamespace(frames=9, size=(4.0, 3.0)), []
    monkeypatch.setattr(
        "grokphys.explorer.runs.circles.open_run", lambda path, run: asked.append((path, run))
    )
    monkeypatch.setattr(animate, "_film", lambda *given: asked.append(given[1:]) or film)
    for name in ("png", "gif", "mp4"):
        monkeypatch.setattr(
            export, name, lambda film, name=name, **given: asked.append((name, given)) or name.encode()
        )
    out = tmp_path / f"f.{kind}"
    words = [
        "animate",
        "a.h5",
        "--out",
        str(out),
        "--run",
        "1",
        "--frames",
        "3",
        "--fps",
        "50",
        "--size",
        "800",
    ]
    assert main([*words, "--view", "circles", "--frequency", "2"]) == 0
    assert asked[:2] == [(Path("a.h5"), 1), ("circles", 2)]
    (name, given) = asked[2]
    given.pop("progress", None)
    assert (name, given) == (
        kind, {"dpi": 200.0} if kind == "png" else {"dpi": 200.0, "fps": 50.0, "longest": 3}
    )  # fmt: skip
    assert out.read_bytes() == kind.encode()
    assert capsys.readouterr().out == f"{said} frames in {out}\n"
    film.frames = 2
    asked.clear()
    assert main([*words[:3], str(tmp_path / f"g.{kind}"), *words[4:]]) == 0
    assert capsys.readouterr().out.startswith("last of 2" if kind == "png" else "2 of 2 frames in")


# -- reports and reproductions ----------------------------------------------------------------------------


def test_a_reproduction_names_what_failed_and_publishes_the_rest(tmp_path, monkeypatch, capsys):
    asked = []
    known = {name: SimpleNamespace(shows="It shows.", cost="a day") for name in ("a", "long-name")}
    monkeypatch.setattr("grokphys.papers.catalogue.recipes", lambda: known)
    monkeypatch.setattr(
        "grokphys.papers.run.run_recipes", lambda *given, **options: asked.append(given) or ["b", "c"]
    )
    monkeypatch.setattr(
        "grokphys.papers.publish.publish", lambda *given: asked.append(given) or [tmp_path / "page.md"]
    )
    words = {"directory": tmp_path / "made", "publish": tmp_path, "other_seeds": 2}
    assert reproduce.reproduce(**words) == 1
    out, err = capsys.readouterr()
    assert (out, err) == (f"wrote {tmp_path / 'page.md'}\n", "grokphys: 2 failed: b, c\n")
    run, published = asked
    assert run[0] == (), "nothing runs that is not named"
    assert run[2] == tmp_path / "made" / "seeds-2"
    assert run[2].is_dir()
    assert published == (known, tmp_path / "made", tmp_path)
    assert reproduce.reproduce(list_=True) == 0
    assert capsys.readouterr().out == "a          It shows. (a day)\nlong-name  It shows. (a day)\n"
    for refused, said in (
        ({"budget": "default", "all_": True}, "budget must be one of 'quick', 'paper', got 'default'"),
        ({"names": ("b",)}, "names must be one of 'a', 'long-name', got 'b'"),
        ({"names": ("a",), "all_": True}, "names must be left out with --all, got a"),
        ({"all_": True, "other_seeds": -1}, "other_seeds must be at least 0, got -1"),
        ({}, "names must say which recipes to run, or pass --all, --list or --publish, got none"),
    ):
        with pytest.raises(InputError, match=said):
            reproduce.reproduce(**refused)
    assert len(asked) == 2


def test_a_comparison_ends_where_one_side_has_no_good_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "bad.h5").write_text("nothing")
    physics.simulate(physics.ParticleSystem(5), steps=2, out=tmp_path / "good.h5")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grokphys.report.comparing.compare", lambda *_, **__: pytest.fail("it compared"))
    for both in (("bad.h5", "good.h5"), ("good.h5", "bad.h5")):
        assert compare.compare(*both, out=Path("new") / "r.html") == 1
        assert "bad.h5 is not an HDF5 file" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match=r"out must be a name that ends in \.html, got 'r\.htm'"):
        compare.compare("good.h5", "good.h5", out=Path("r.htm"))
    for name in ("r.html", "r.json"):
        (tmp_path / name).write_text("old")
        with pytest.raises(physics.OutputError, match=f"{name} exists; choose another name or pass --over"):
            compare.compare("good.h5", "good.h5", out=Path("r.html"))
        (tmp_path / name).unlink()
