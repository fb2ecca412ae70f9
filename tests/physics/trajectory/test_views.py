"""A trajectory as a table, a line of text, a figure, a part of itself, and equal to another one."""

import json
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

import analysis
import physics
from physics import InputError, Trajectory


def trajectory(**changes):
    generator = np.random.default_rng(0)
    arguments = {
        "positions": generator.standard_normal((4, 3, 5, 2)),
        "steps": [0, 10, 15],
        "times": [0.0, 1.0, 1.5],
        "observables": {
            "loss": generator.standard_normal((4, 3)),
            "spectrum": generator.standard_normal((4, 2, 3)),
            "circle": np.array([[True, False, True]] * 4),
            "reached": np.full((4, 3), np.nan),
        },
        "clocks": {"spectrum": ([3, 15], [0.3, 1.5])},
        "parameters": {
            "program": "mine",
            "first_run": 2,
            "runs": 4,
            "rate": [1, 2, 3, 4],
            "per_run": ["rate"],
        },
        "start": {"split": np.arange(8).reshape(4, 2)},
    }
    return Trajectory(**{**arguments, **changes})


@pytest.fixture(params=["in memory", "in a file"])
def made(request, tmp_path):
    if request.param == "in memory":
        return trajectory()
    trajectory().save(tmp_path / "t.h5")
    return physics.load(tmp_path / "t.h5")


@pytest.mark.parametrize(
    ("key", "runs"),
    [
        (1, [1]),
        (-1, [3]),
        (np.int64(2), [2]),
        (slice(None), [0, 1, 2, 3]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        ([0, 3], [0, 3]),
        (np.array([False, True, False, True]), [1, 3]),
    ],
)
def test_some_runs_are_a_trajectory(made, key, runs):
    found, whole = made[key], trajectory()
    np.testing.assert_array_equal(found.positions, whole.positions[runs])
    for name, values in whole.observables.items():
        np.testing.assert_array_equal(found.observables[name], values[runs])
        np.testing.assert_array_equal(found.clock(name)[0], whole.clock(name)[0])
    np.testing.assert_array_equal(found.start["split"], whole.start["split"][runs])
    np.testing.assert_array_equal(found.run_numbers, np.array(runs) + 2)
    assert found.parameters["rate"] == [run + 1 for run in runs]
    assert found.parameters["runs"] == found.runs == len(runs)
    for place, run in enumerate(runs):  # of what was chosen, some may be chosen again
        assert found[place].run_numbers == [run + 2]
        assert found.run(place).parameters["rate"] == [run + 1]


@pytest.mark.parametrize("stored", [False, True])
def test_a_part_was_made_and_ended_as_the_whole(tmp_path, stored):
    whole = trajectory(complete=False, made_with={"grokphys": "9.9", "numpy": "0.1"})
    if stored:
        whole.save(tmp_path / "t.h5")
        whole = physics.load(tmp_path / "t.h5")
    for part in (whole[1], whole.run(2, every=2), whole[[0, 3]]):
        assert (part.complete, part.made_with) == (False, {"grokphys": "9.9", "numpy": "0.1"})


def test_the_runs_are_what_a_trajectory_goes_through(made):
    assert [run.run_numbers.tolist() for run in made] == [[2], [3], [4], [5]]
    assert made[1] == made.run(1)


@pytest.mark.parametrize("key", [4, -5, [0, 4], [True, False]])
def test_a_run_that_is_not_there_is_an_index_error(made, key):
    with pytest.raises(IndexError):
        made[key]


@pytest.mark.parametrize("key", [slice(4, None), [], None, np.zeros((2, 2), int)])
def test_what_chooses_no_runs_is_refused(made, key):
    with pytest.raises(
        (InputError, IndexError), match="runs must choose at least one run by|arrays used as indices"
    ):
        made[key]


def test_functions_of_point_sets_take_a_trajectory(made):
    assert len(made) == made.runs
    np.testing.assert_array_equal(physics.circle_ratio(made), physics.circle_ratio(made.positions))


def test_what_is_saved_and_read_is_equal(tmp_path):
    made = trajectory()
    made.save(tmp_path / "t.h5")
    for found in (trajectory(), physics.load(tmp_path / "t.h5")):
        assert found == made
        assert made == found
        assert hash(found) == hash(made)
    assert made != made.positions.tolist()


def changed(values, dtype=None):
    values = np.array(values, dtype)
    values.flat[-1] += 1
    return values


@pytest.mark.parametrize(
    "changes",
    [
        {"positions": changed(trajectory().positions)},
        {"positions": trajectory().positions.astype(np.float32)},
        {"steps": [0, 10, 16]},
        {"times": [0.0, 1.0, 1.6]},
        {"observables": {**trajectory().observables, "loss": changed(trajectory().observables["loss"])}},
        {"observables": {**trajectory().observables, "more": trajectory().observables["loss"]}},
        {"clocks": {"spectrum": ([3, 14], [0.3, 1.5])}},
        {"parameters": {**trajectory().parameters, "program": "another"}},
        {"observables": {**trajectory().observables, "circle": np.array([[1, 0, 1]] * 4, np.int8)}},
        {"start": {"split": changed(trajectory().start["split"])}},
        {"start": {"split": trajectory().start["split"].astype(np.int32)}},
        {"start": {"other": trajectory().start["split"]}},
        {"start": {**trajectory().start, "more": trajectory().start["split"]}},
        {"complete": False},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_change_of_any_part_is_another_trajectory(changes):
    assert trajectory(**changes) != trajectory()
    assert trajectory() != trajectory(**changes)


def test_clocks_tell_trajectories_without_observables_apart():
    bare = {"observables": {}, "clocks": {}}
    assert trajectory(**bare) == trajectory(**bare)
    for changes in ({"times": [0.0, 1.0, 1.6]}, {"steps": [0, 10, 16]}):
        assert trajectory(**bare, **changes) != trajectory(**bare)


def test_a_dataset_has_the_numbers_of_the_runs_and_the_clocks(made):
    pytest.importorskip("xarray")
    data = made.to_xarray()
    assert data["run"].values.tolist() == [2, 3, 4, 5]
    np.testing.assert_array_equal(
        data["positions"].sel(run=3, step=15, token=2), trajectory().positions[1, 2, 2]
    )
    assert data["time"].sel(step=15) == 1.5
    np.testing.assert_array_equal(
        data["spectrum"].sel(run=5, spectrum_step=15), trajectory().observables["spectrum"][3, 1]
    )


def test_a_table_of_positions_has_a_row_for_each_token(made):
    pandas = pytest.importorskip("pandas")
    table = made.to_dataframe()
    assert table.index.names == ["run", "step", "token"]
    assert list(table.columns) == ["time", "x0", "x1"]
    assert len(table) == 4 * 3 * 5
    row = table.loc[(3, 15, 2)]
    np.testing.assert_array_equal(row, [1.5, *trajectory().positions[1, 2, 2]])
    assert isinstance(table, pandas.DataFrame)


def test_a_table_of_observables_has_a_row_for_each_frame(made):
    pytest.importorskip("pandas")
    table = made.to_dataframe("loss", "circle")
    assert table.index.names == ["run", "step"]
    row = table.loc[(5, 10)]
    assert (row["time"], row["loss"], row["circle"]) == (1.0, trajectory().observables["loss"][3, 1], False)
    spectrum = made.to_dataframe("spectrum")
    assert list(spectrum.columns) == ["time", "spectrum_0", "spectrum_1", "spectrum_2"]
    np.testing.assert_array_equal(spectrum.loc[(4, 3)], [0.3, *trajectory().observables["spectrum"][2, 0]])
    names = {"v": np.zeros((1, 1, 2)), "v_0": np.ones((1, 1))}
    alike = Trajectory(np.zeros((1, 1, 3, 2)), [0], observables=names)
    with pytest.raises(InputError, match="v_0"):
        alike.to_dataframe("v", "v_0")


def test_text_and_page_list_the_observables_without_reading_them(made, tmp_path):
    lines = repr(made).splitlines()
    kind = type(made).__name__
    assert lines[0] == f"<{kind}: 4 runs × 3 frames × 5 tokens × 2 dimensions, float64, mine>"
    assert set(lines[1:]) == {
        "  loss: (4, 3) float64",
        "  spectrum: (4, 2, 3) float64, steps 3 to 15",
        "  circle: (4, 3) bool",
        "  reached: (4, 3) float64",
    }
    page = made._repr_html_()
    assert "spectrum: (4, 2, 3) float64, steps 3 to 15" in page
    assert page.startswith(f"<pre>&lt;{kind}: 4 runs")
    foreign = trajectory(observables={"<b>": np.zeros((4, 3))}, clocks={}, parameters={"program": "<i>"})
    assert "&lt;b&gt;" in foreign._repr_html_()
    assert "&lt;i&gt;" in foreign._repr_html_()


def test_a_run_under_way_says_what_it_holds(tmp_path):
    def interrupt(step, *_):
        if step == 3:
            raise KeyboardInterrupt

    options = {"observables": ["circle_ratio"], "out": tmp_path / "p.h5", "callback": interrupt}
    with pytest.raises(KeyboardInterrupt):
        physics.simulate(physics.ParticleSystem(5), runs=2, steps=6, **options)
    found = repr(physics.load(tmp_path / "p.h5.partial"))
    assert found.splitlines()[0].endswith("float64, physics.simulate, incomplete>")
    assert found.splitlines()[1] == "  circle_ratio: (2, 4) float64"


def test_figures_show_what_they_say(made):
    _, ax = plt.subplots()
    assert made.plot(ax=ax, run=2, frame=1) is ax
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), trajectory().positions[2, 1])
    (_, losses), (_, spectrum), (_, signals) = (plt.subplots() for _ in range(3))
    made.plot("loss", losses)
    for line, values in zip(losses.lines, trajectory().observables["loss"], strict=True):
        np.testing.assert_array_equal(line.get_xydata().T, [[0.0, 1.0, 1.5], values])
    made.plot("spectrum", spectrum, run=-1)
    np.testing.assert_array_equal(
        [line.get_ydata() for line in spectrum.lines], trajectory().observables["spectrum"][3].T
    )
    made.plot("signals", signals, run=3)
    drawn = np.sort([line.get_ydata()[-1] for line in signals.lines])
    np.testing.assert_allclose(drawn, np.sort(analysis.fourier_signals(trajectory().final[3])))
    plt.close("all")


def test_nothing_of_this_makes_the_import_heavier():
    code = "import sys, physics; assert not {'pandas', 'xarray', 'matplotlib', 'h5py'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_extended_xyz_holds_each_frame(tmp_path, dim):
    positions = np.random.default_rng(0).standard_normal((2, 3, 4, dim))
    physics.Trajectory(positions, [0, 5, 9]).to_xyz(tmp_path / "x.xyz")
    lines = (tmp_path / "x.xyz").read_text().splitlines()
    frames = [lines[start : start + 10] for start in range(0, 30, 10)]
    assert len(lines) == 30
    for k, frame in enumerate(frames):
        assert frame[0] == "8"
        assert f"step={[0, 5, 9][k]} " in frame[1]
        values = np.loadtxt(frame[2:])
        assert values[:, :2].tolist() == [[token, run] for run in (0, 1) for token in range(4)]
        coordinates = positions[:, k].reshape(8, dim)[:, :3]
        np.testing.assert_allclose(values[:, 2 : 2 + coordinates.shape[1]], coordinates, 1e-8)


def test_what_goes_to_xarray_says_what_it_is(tmp_path):
    pytest.importorskip("h5netcdf")
    trajectory = physics.simulate(steps=3, seed=5)
    trajectory.to_xarray().to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    with pytest.importorskip("xarray").open_dataset(tmp_path / "x.nc", engine="h5netcdf") as data:
        assert json.loads(data.attrs["parameters"])["seed"] == 5
        assert (data["positions"].long_name, data["time"].units) == ("position", "1")
        np.testing.assert_array_equal(data["positions"], trajectory.positions)
    trajectory.save(tmp_path / "x.h5")
    with pytest.importorskip("xarray").open_datatree(tmp_path / "x.h5", engine="h5netcdf") as tree:
        assert tree["particles/tokens/position/value"].shape == (4, 17, 2)
