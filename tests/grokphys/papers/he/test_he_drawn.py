"""What the figures of He's recipes show, and what stands in the tables, of networks that are made up."""

import numpy as np
import pytest
from pictures import bars, intervals, lines, title

import nets
from analysis.stats.intervals import mean
from grokphys.papers.evidence import joined
from grokphys.papers.he import grokking, lottery, neurons, waves
from grokphys.papers.recipe import Run
from physics.neurons.lottery import FourierLottery
from physics.neurons.spectrum import neuron_spectrum


def sideways(ax):
    """Places and ends (4, n) of the error bars along x, by label."""
    found = {}
    for one in ax.containers:
        x, y = (np.asarray(values, float) for values in one.lines[0].get_data())
        ends = np.array([segment[:, 0] for segment in one.lines[2][0].get_segments()])
        found[one.get_label()] = np.array([y, x, ends.min(axis=1), ends.max(axis=1)])
    return found


CELLS = (
    lottery.Cell(hidden=8),
    lottery.Cell(hidden=8, scale=0.4),
    lottery.Cell(tokens=31, activation="relu", hidden=8),
    lottery.Cell(hidden=8, optimizer="sgd", weight_decay=2.0, train_fraction=0.75),
)


def lottery_table(runs=4):
    rng = np.random.default_rng(0)
    parts = []
    for cell in CELLS:
        label = {**cell._asdict(), "series": cell.series}
        part = {name: np.full(runs, value) for name, value in label.items()}
        parts.append(part | {name: rng.uniform(0.2, 0.8, runs) for name in (*lottery.READERS, "single")})
    return joined(parts)


def test_the_lottery_is_drawn_cell_by_cell_and_over_the_scale():
    rows = lottery_table()
    figure = lottery._draw(lottery.Setting(CELLS, 4), {"networks": rows})["lottery"]
    cells, *series = figure.get_axes()
    found = sideways(cells)
    assert list(found) == ["smallest t*", "largest |θ|", "smallest |2φ − ψ|"]
    for n, (reader, one) in enumerate(zip(lottery.READERS, found.values(), strict=True)):
        np.testing.assert_allclose(one[0], -np.arange(4) + 0.2 * (1 - n))
        np.testing.assert_allclose(
            one[1:], intervals([mean(part) for part in np.reshape(rows[reader], (4, 4))])
        )
    assert lines(cells)["chance"] == ([2 / 22, 2 / 22, 2 / 30, 2 / 22], [0, -1, -2, -3])
    assert [text.get_text() for text in cells.get_yticklabels()] == [
        "p = 23, quadratic, 8 neurons",
        "p = 23, quadratic, 8 neurons, scale 0.4",
        "p = 31, ReLU, 8 neurons",
        "p = 23, quadratic, 8 neurons, decay 2, 75 % of pairs, gradient descent",
    ]
    assert title(cells) == "Where not stated:\nAdamW, initial scale 0.1", "what no label says"
    for ax, column in zip(series, ("time", "single"), strict=True):
        ((name, one),) = bars(ax).items()
        assert name == "AdamW, quadratic", "a single scale is no series"
        np.testing.assert_allclose(one[0], [0.1, 0.4])
        np.testing.assert_allclose(one[1:], intervals([mean(rows[column][:4]), mean(rows[column][4:8])]))


def test_networks_of_the_lottery_are_numbered_and_their_first_neurons_listed(monkeypatch):
    rng = np.random.default_rng(1)
    parts, asked = [], []

    def trained(cell, runs, seed):
        asked.append((cell, runs, seed))
        part = {name: rng.integers(0, 4, (2, 70)) for name in ("chosen", *lottery.READERS)}
        parts.append(part | {"single": rng.random((2, 70)) < 0.5, "accuracy": rng.uniform(size=2)})
        return parts[-1]

    monkeypatch.setattr(lottery, "_trained", trained)
    tables = lottery.lottery(Run(lottery.Setting(CELLS[:2], 2), "quick")).columns()
    assert asked == [(cell, 2, 41_000) for cell in CELLS[:2]]
    assert tables["networks"]["network"].tolist() == [0, 1, 2, 3]
    assert tables["networks"]["scale"].tolist() == [0.1, 0.1, 0.4, 0.4]
    assert tables["neurons"]["network"].tolist() == np.repeat(range(4), 64).tolist()
    for name in ("chosen", *lottery.READERS):
        assert (
            tables["neurons"][name].tolist()
            == np.concatenate([part[name][:, :64].ravel() for part in parts]).tolist()
        )
    for n, reader in ((0, "time"), (3, "phase")):
        chosen, named = (parts[n // 2][name][n % 2] for name in ("chosen", reader))
        assert tables["networks"][reader][n] == np.sum((chosen == named) & (chosen > 0)) / np.sum(chosen > 0)


def test_rules_of_the_lottery_take_the_better_predictor_and_one_series():
    rows = lottery_table()
    tables = {"networks": rows}
    own = {name: rows[name][:4] for name in lottery.READERS}
    better = max(("magnitude", "phase"), key=lambda name: own[name].sum())
    assert lottery._lead(CELLS[0])(tables, 0.95) == mean(own["time"] - own[better])
    assert lottery._foretells("phase", CELLS[0])(tables, 0.95) == mean(own["phase"])
    found = lottery._surer(tables, 0.95, CELLS[0])
    pairs = np.sign(rows["time"][4:8][:, None] - own["time"])
    assert found.estimate == pytest.approx(pairs.sum() / np.sqrt(16 * 28))


# -- waves ------------------------------------------------------------------------------------------------


def test_waves_draw_the_neuron_whose_misalignment_is_nearest_to_2_and_its_exact_flow(monkeypatch):
    phases = np.array([0.3, -1.9, 2.9])
    steps, rate = np.arange(0, 50, 10), 0.1
    theta0, xi0 = 0.5 * np.exp(1j * phases / 2), np.full(3, 0.4 + 0j)
    growth = np.exp(0.01 * steps)[:, None]
    rng = np.random.default_rng(2)
    names = ("frequency", "kept", "third", "input_phase", "output_phase", "deviation")
    part = {name: rng.uniform(0, 2, (2, 3)) for name in names} | {
        "theta": theta0 * growth,
        "xi": xi0 * growth,
        "steps": steps,
        "time": steps * rate,
    }
    turned = part["xi"].copy()
    turned[:, 1] *= np.exp(3.1j)  # the neuron that is drawn: ψ is shown on the turn that is next to 2φ
    parts = {"quadratic": part, "relu": part | {"xi": turned}}
    monkeypatch.setattr(waves, "_trained", lambda descent, setting, seed: parts[descent.activation])
    made = waves.waves(Run(waves.Setting(waves.PUBLISHED, 3, 2, 5), "quick"))
    rows = made.columns()["neurons"]
    assert rows["activation"].tolist() == ["quadratic"] * 6 + ["relu"] * 6
    assert rows["network"].tolist() == [0, 0, 0, 1, 1, 1] * 2
    for name in names:
        assert rows[name].tolist() == part[name].ravel().tolist() * 2
    axes = np.reshape(made.figures["he-waves"].get_axes(), (2, 3))
    flow = FourierLottery(23)
    for row, activation in zip(axes, parts, strict=True):
        drawn = lines(row[0])
        np.testing.assert_allclose(drawn["2φ"], [steps, np.full(5, -1.9)])
        np.testing.assert_allclose(
            drawn["ψ"], [steps, np.full(5, 3.1 - 2 * np.pi if activation == "relu" else 0)]
        )
        drawn = lines(row[1])
        np.testing.assert_allclose(drawn["α"], [steps, 0.5 * growth[:, 0]])
        np.testing.assert_allclose(drawn["β"], [steps, 0.4 * growth[:, 0]])
        off = np.abs(np.angle(np.exp(1j * (2 * part["input_phase"] - part["output_phase"])))).ravel()
        heights = [bar.get_height() for bar in row[2].patches]
        assert heights == np.histogram(off, np.linspace(0, np.pi, 33))[0].tolist()
        assert ("exact flow" in drawn) == (activation == "quadratic")
        assert [title(ax) for ax in row] == [
            f"{activation}: a neuron",
            "the same neuron",
            "all neurons at the end",
        ]
    begin = np.full((1, 11), theta0[1]), np.full((1, 11), xi0[1])
    blowup = flow.blowup_times(*begin).min()
    times = steps[steps * rate < 0.97 * blowup] * rate
    exact = [np.abs(one[:, 0, 0]) for one in flow.solve(*begin, times)]
    dotted = [line for line in axes[0, 1].lines if line.get_linestyle() == ":"]
    for line, values in zip(dotted, exact, strict=True):
        np.testing.assert_allclose(line.get_xdata(), steps[: len(times)])
        np.testing.assert_allclose(line.get_ydata(), values)


def test_waves_are_held_against_the_flow_at_half_of_the_shortest_blowup():
    setting = waves.Setting((), 6, 2, 20)
    descent = waves.Descent("quadratic", 0.05, 0.1, 200)
    found = waves._trained(descent, setting, 3)
    trained = nets.train(
        nets.TwoLayer(hidden=6, activation="quadratic", start="single_frequency", scale=0.05),
        runs=2,
        steps=200,
        seed=3,
        optimizer="sgd",
        learning_rate=0.1,
        weight_decay=0.0,
        train_fraction=1.0,
        record=10,
        observables=("layers",),
        device="cpu",
    )
    spectrum = neuron_spectrum(trained.positions[:], trained.observables["layers.output.weight"][:])
    theta, xi = np.asarray(spectrum.theta), np.asarray(spectrum.xi)
    flow, times = FourierLottery(23), trained.steps * 0.1
    np.testing.assert_allclose(found["time"], times)
    blowup = min(flow.blowup_times(theta[:, 0], xi[:, 0]).ravel())
    frame = max(k for k, t in enumerate(times) if t <= blowup / 2)
    for run in range(2):
        for neuron in range(6):
            k = int(np.argmax(np.abs(theta[run, 0, neuron])))
            assert found["frequency"][run, neuron] == k + 1
            power = np.abs(theta[run, -1, neuron]) ** 2
            assert found["kept"][run, neuron] == pytest.approx(power[k] / power.sum())
            third = 3 * (k + 1) % 23
            at = min(third, 23 - third) - 1
            assert found["third"][run, neuron] == pytest.approx(np.sqrt(power[at] / power[k]), rel=1e-4)
            assert found["output_phase"][run, neuron] == pytest.approx(
                np.angle(xi[run, -1, neuron, k]), rel=1e-4
            )
            begin = np.full(11, theta[run, 0, neuron, k]), np.full(11, xi[run, 0, neuron, k])
            exact = flow.solve(*begin, times[frame])[0].ravel()[0]
            off = abs(theta[run, frame, neuron, k] - exact) / abs(exact)
            assert found["deviation"][run, neuron] == pytest.approx(off, rel=1e-3)
    first = np.abs(theta[0, 0]).argmax(axis=-1)
    np.testing.assert_allclose(
        found["theta"], np.stack([theta[0, :, n, k] for n, k in enumerate(first)], axis=1)
    )
    np.testing.assert_allclose(found["xi"], np.stack([xi[0, :, n, k] for n, k in enumerate(first)], axis=1))


# -- grokking and neurons ---------------------------------------------------------------------------------


OF_FRAMES = (
    "train_loss",
    "validation_loss",
    "train_accuracy",
    "validation_accuracy",
    "unseen_accuracy",
    "misaligned",
    "purity",
    "norm",
)


def grokking_tables(*ends):
    """Tables of a network for each pair of ends of Stages I and II, with frames at the steps 0 to 30."""
    rng = np.random.default_rng(4)
    networks = np.arange(3, 3 + len(ends))
    frames = {"network": np.repeat(networks, 4), "step": np.tile([0, 10, 20, 30], len(ends))} | {
        name: rng.uniform(1, 2, 4 * len(ends)) for name in OF_FRAMES
    }
    one, two = np.array(ends, float).T
    return {"stages": {"network": networks, "step_I": one, "step_II": two}, "frames": frames}


@pytest.mark.parametrize(
    ("ends", "shown", "heading", "stages"),
    [
        (
            [(10, np.nan), (10, 20), (20, 30)],
            1,
            "Network 2 of 3 (first of the 2 that reach the end of Stage II)",
            {"Stage I": 10, "Stage II": np.sqrt(200), "Stage III": np.sqrt(600)},
        ),
        (
            [(20, np.nan), (10, np.nan)],
            0,
            "Network 1 of 2 (none reaches the end of Stage II)",
            {"Stage I": np.sqrt(200), "Stage II": np.sqrt(600)},
        ),
        (
            [(np.nan, np.nan)],
            0,
            "Network 1 of 1 (none reaches the end of Stage II)",
            {"Stage I": np.sqrt(300)},
        ),
    ],
)
def test_grokking_shows_the_first_network_that_ends_stage_ii_and_names_its_stages(
    ends, shown, heading, stages
):
    tables = grokking_tables(*ends)
    figure = grokking._draw(None, tables)["he-grokking"]
    assert figure.get_suptitle() == heading
    own = {name: values[4 * shown + 1 : 4 * shown + 4].tolist() for name, values in tables["frames"].items()}
    passed = [end for end in ends[shown] if np.isfinite(end)]
    *axes, norm = figure.get_axes()
    panels = (
        {"training pairs": "train_loss", "test pairs": "validation_loss"},
        {
            "training pairs": "train_accuracy",
            "test pairs": "validation_accuracy",
            "test pairs never seen in either order": "unseen_accuracy",
        },
        {"misalignment D = 2φ − ψ of the phases φ\nof input and ψ of output weights": "misaligned"},
        {"inverse participation ratio (left)": "purity"},
    )
    for ax, names in zip(axes, panels, strict=True):
        drawn = lines(ax)
        for words, name in names.items():
            assert drawn[words] == ([10, 20, 30], own[name])
        assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"] == passed
        assert {text.get_text(): text.get_position()[0] for text in ax.texts} == pytest.approx(stages)
    assert axes[3].get_ylabel() == "inverse participation ratio", "the word of its legend"
    assert lines(norm)["norm of the weights (right)"] == ([10, 20, 30], own["norm"])


def test_the_course_is_measured_network_by_network_on_pairs_that_neither_order_has_trained():
    setting = grokking.Setting(hidden=8, runs=2, steps=20, every=10)
    course = grokking._course(setting, 9)
    trained = neurons.trained(
        setting,
        9,
        weight_decay=2.0,
        train_fraction=0.75,
        record=10,
        observables=("validation_accuracy", "layers"),
    )
    assert course["step"].tolist() == [[0, 10, 20]] * 2
    task, W_out = nets.TwoLayer(hidden=8).task, trained.observables["layers.output.weight"]
    for run in range(2):
        seen = {tuple(pair) for pair in task.inputs[trained.start["train_examples"][run]].tolist()}
        unseen = [(a, b) for a in range(23) for b in range(23) if (a, b) not in seen and (b, a) not in seen]
        for frame in range(3):
            into, out = trained.positions[run, frame], W_out[run, frame]
            right = [np.argmax(np.maximum(into[a] + into[b], 0) @ out) == (a + b) % 23 for a, b in unseen]
            assert course["unseen_accuracy"][run, frame] == pytest.approx(np.mean(right))
            assert course["norm"][run, frame] == pytest.approx(
                np.sqrt(np.sum(into**2) + np.sum(out**2)), rel=1e-5
            )
            spectrum = neuron_spectrum(into, out)
            assert course["purity"][run, frame] == pytest.approx(np.nanmean(spectrum.purity))
            assert course["misaligned"][run, frame] == pytest.approx(
                np.nanmean(np.abs(np.sin(spectrum.misalignment)))
            )


def test_neurons_are_drawn_by_frequency_phase_and_magnitude(monkeypatch):
    rng = np.random.default_rng(5)
    weights = {"W_in": rng.normal(size=(2, 2, 23, 25)), "W_out": rng.normal(size=(2, 2, 25, 23))}
    monkeypatch.setattr(neurons, "_weights", lambda setting, seed: weights)
    made = neurons.neurons(Run(None, "quick"))
    tables = made.columns()
    spectrum = neuron_spectrum(weights["W_in"][0, -1], weights["W_out"][0, -1])
    axes = {title(ax): ax for ax in made.figures["he-neurons"].get_axes()}
    for name, values in (("input weights |θ|", "magnitude"), ("output weights |ξ|", "output_magnitude")):
        shown = np.asarray(axes[name].images[0].get_array())
        np.testing.assert_allclose(shown, getattr(spectrum, values)[:20])
        assert axes[name].images[0].get_extent() == [0.5, 11.5, 20.5, 0.5]
    rows = {name: values[:25] for name, values in tables["neurons"].items()}
    turn = 2 * np.pi
    expected = np.stack([2 * rows["input_phase"] % turn, rows["output_phase"] % turn])
    np.testing.assert_allclose(axes["phase alignment"].lines[0].get_data(), expected)
    counts = np.bincount(rows["frequency"], minlength=12)[1:]
    assert [bar.get_height() for bar in axes["frequency balance"].patches] == counts.tolist()
    most = 1 + counts.argmax()
    group = rows["frequency"] == most
    for order in (1, 2, 3, 4):
        angle = order * rows["input_phase"][group]
        np.testing.assert_allclose(
            lines(axes[f"multiples of φ, k = {most}"])[f"{order}φ"],
            [order * np.cos(angle), order * np.sin(angle)],
        )
    ax = axes["in place of ReLU"]
    names = [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()]
    assert names == [*neurons.EVEN, *neurons.ODD]
    for place, name in enumerate(names):
        accuracy = tables["activations"]["accuracy"][tables["activations"]["activation"] == name]
        shown = np.asarray(ax.collections[place].get_offsets())
        np.testing.assert_allclose(shown, [[100 * value, place] for value in accuracy])
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first is at the top"
    strongest = [np.max(row) for row in spectrum.magnitude]
    np.testing.assert_allclose(rows["input_magnitude"], strongest)
    begun = neuron_spectrum(weights["W_in"][1, 0], weights["W_out"][1, 0]).magnitude ** 2
    np.testing.assert_allclose(
        tables["neurons"]["share_at_start"][25:], begun.max(axis=-1) / begun.sum(axis=-1)
    )


def test_rules_of_neurons_on_a_few_of_them():
    rows = {
        "network": np.array([0, 0, 0, 1]),
        "share": np.array([0.95, 0.9, 0.2, 0.1]),
        "input_magnitude": np.array([1.0, 2, 1, 3]),
        "output_magnitude": np.array([1.0, 1, 2, 1]),
        "input_phase": np.array([0.0, 1.0, -1, 3]),
        "output_phase": np.array([0.05, 2, 1, 0]),
    }
    frequencies = {
        "network": np.repeat([0, 1], 2),
        "neurons": np.array([2, 1, 1, 0]),
        "asymmetry_2": np.array([0.1, 0.3, 0.5, np.nan]),
        "asymmetry_4": np.array([0.2, 0.2, 0.6, np.nan]),
    }
    tables = {"neurons": rows, "frequencies": frequencies}
    assert neurons._single(tables, 0.95).estimate == pytest.approx((2 / 3 + 0) / 2)
    np.testing.assert_allclose(neurons.misalignment(rows), [0.05, 0, 3, 2 * np.pi - 6])
    product = np.array([1, 2, 4.0])
    assert neurons._scatter(tables, 0.95).estimate == pytest.approx((product.std() / product.mean() + 0) / 2)
    assert neurons._uneven(tables, 0.95).estimate == pytest.approx((0.2 + (0.5 + 0.6 + 2) / 4) / 2)
    entropy = -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3))
    assert neurons._balanced(tables, 0.95).estimate == pytest.approx((np.exp(entropy) / 2 + 1 / 2) / 2)
