"""What packs ask of `simulate` and `train`, what is listed of their runs, and what ends them."""

import contextlib
import json
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from edges import taken_and_refused

import nets
import physics
from grokphys.sweeps import pack, values, work
from grokphys.sweeps.config import declaration, read_declaration, resolved
from grokphys.sweeps.pack import packs, shard_of
from grokphys.sweeps.work import Outcome
from physics import FileFormatError, InputError, OutputError, SimulationError
from physics.errors import InUseError

TRAIN = {"kind": "train", "fixed": {"tokens": 5, "hidden": 8, "runs": 2, "steps": 3}}
SIMULATE = {"kind": "simulate", "fixed": {"tokens": 7, "runs": 2, "steps": 3}}


def made(content, **fixed):
    return packs(declaration(content | {"fixed": content["fixed"] | fixed}))


# -- declarations -------------------------------------------------------------------------------------------

WHOLE = [
    ("train", "track", 1), ("train", "batch_size", 1), ("train", "first_run", 0), ("train", "seed", 0),
    ("simulate", "record_every", 1), ("simulate", "first_run", 0), ("simulate", "runs", 1),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "least"), WHOLE)
def test_whole_numbers_of_a_cell_have_their_least_values(kind, name, least):
    def cell(value):
        return declaration({"kind": kind, "fixed": {name: value}}).cells

    taken_and_refused(cell, least, least - 1, f"{name} must be at least {least}, got {least - 1}")
    assert values.LEAST.get(name, 1) == least


def test_a_cell_that_nobody_described_is_what_the_commands_do_by_default():
    trained = resolved("train", {})
    assert (trained["device"], trained["train_fraction"], trained["tokens"]) == ("cpu", 0.8, None)
    rates = [trained[name] for name in ("learning_rate", "weight_decay", "layer_scale", "embedding_scale")]
    assert rates == [0.01, 1.0, 1.0, 1.0]
    assert trained["embedding_learning_rate"] is trained["embedding_weight_decay"] is None
    assert not {"out", "overwrite", "resume"} & trained.keys()
    assert resolved("train", {"embedding_weight_decay": 2})["embedding_weight_decay"] == 2.0
    assert resolved("simulate", {})["system"] == "particles"
    theory = resolved("simulate", {"system": "effective-theory"})
    assert (theory["system"], "alignment" in theory) == ("effective-theory", False)
    sentence = "^alignments is not a parameter of particles; did you mean alignment.$"
    with pytest.raises(InputError, match=sentence):
        resolved("simulate", {"system": "particles", "alignments": 1.0})
    with pytest.raises(InputError, match="^zzz is not a parameter of train; known are model, tokens"):
        resolved("train", {"zzz": 1})


def test_a_configuration_is_read_by_the_end_of_its_name_and_not_to_any_depth(tmp_path):
    toml = 'kind = "train"\npack = 3\n[fixed]\nseed = 5\n[grid]\nsteps = [1, 2]\n[[list]]\nhidden = [4]\n'
    content = {
        "kind": "train",
        "pack": 3,
        "fixed": {"seed": 5},
        "grid": {"steps": [1, 2]},
        "list": [{"hidden": [4]}],
    }
    (tmp_path / "a.conf").write_text(toml, encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    for name in ("a.conf", "a.json"):
        assert read_declaration(tmp_path / name) == declaration(content)
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"deep\.json is nested too deeply for a configuration$"):
        read_declaration(tmp_path / "deep.json")
    with pytest.raises(FileNotFoundError, match="^there is no file"):
        read_declaration(tmp_path)


# -- packs --------------------------------------------------------------------------------------------------


def test_a_shard_takes_every_nth_pack_from_its_own_number_on():
    whole = list(range(10))
    assert shard_of(whole, "1/1") == whole
    assert [shard_of(whole, f"{part}/4") for part in (1, 2, 3, 4)] == [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]
    assert shard_of(whole, "11/11") == []
    assert shard_of(whole, "2/" + "9" * 18) == [1]
    for wrong in ("0/1", "2/1", "/", "1/", "/1", "1/" + "9" * 19, "1.0/2", "-1/2", " 1/2", ""):
        with pytest.raises(InputError, match="^shard must be i/n with i from 1 to n, such as 3/16, got '"):
            shard_of(whole, wrong)


def test_a_cell_that_is_refused_is_named_with_all_its_coordinates():
    with pytest.raises(InputError) as said:
        made(SIMULATE | {"grid": {"dim": [2, 0], "alignment": [0.5]}})
    assert str(said.value) == "dim must be at least 1, got 0 (in the cell dim = 0, alignment = 0.5)"
    with pytest.raises(InputError, match="^dim must be at least 1, got 0$"):
        made(SIMULATE, dim=0)


def test_the_cost_of_a_run_of_the_effective_theory_is_that_of_its_tokens(monkeypatch):
    fixed = {"system": "effective-theory", "tokens": 9, "steps": 30, "runs": 50}
    theory = {"kind": "simulate", "fixed": fixed}
    monkeypatch.setattr(pack, "PACK_OPERATIONS", 7 * 30 * 9.0**2)
    assert len(made(theory, dim=1)[0].numbers) == 7
    monkeypatch.setattr(pack, "PACK_OPERATIONS", 1e18)
    monkeypatch.setattr(pack, "PACK_BYTES", 64 * 9 * 3 * 5)
    assert len(made(theory, dim=3)[0].numbers) == 5


def noted(monkeypatch, module, name):
    calls = []
    monkeypatch.setattr(module, name, lambda *given, **options: calls.append((given, options)) or "made")
    return calls


def test_a_simulated_pack_passes_on_what_its_cell_says(monkeypatch, tmp_path):
    calls = noted(monkeypatch, pack, "simulate")
    (one,) = made(
        SIMULATE, first_run=4, seed=9, step_size=0.5, record_every=3, observables=["potential"], alignment=0.3
    )
    assert one.run(None) == one.run(tmp_path / "x.h5", progress=True) == "made"
    ((system,), options), (_, other) = calls
    assert system == one.system == physics.ParticleSystem(7, alignment=0.3)
    said = {"first_run": 4, "runs": 2, "steps": 3, "step_size": 0.5, "record_every": 3, "seed": 9}
    said["observables"] = ("potential",)
    assert options == said | {"out": None, "resume": False, "progress": False}
    assert other == said | {"out": tmp_path / "x.h5", "resume": True, "progress": True}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_trained_pack_passes_on_what_its_cell_says_with_one_thread_of_pytorch(monkeypatch, device):
    threads = [4]
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    calls = noted(monkeypatch, nets, "train")
    options = {
        "first_run": 4, "seed": 9, "threshold": ["quality=0.9", "train_accuracy=1"], "device": device,
        "stop_at_thresholds": True, "layer_scale": 2.0, "embedding_learning_rate": 0.5, "record": "log:3",
        "optimizer": "sgd", "batch_size": 4, "track": 2, "initialisation": "xavier_normal",
    }  # fmt: skip
    (one,) = made(TRAIN, **options)
    assert one.run(Path("x.h5")) == "made"
    assert threads == [4, 1, 4]
    ((model,), said) = calls.pop()
    assert model == nets.ConstantAttention(5, hidden=8, initialisation="xavier_normal")
    rates = {"learning_rate": 0.01, "weight_decay": 1.0, "embedding_learning_rate": 0.5}
    rates |= {"embedding_weight_decay": 1.0, "layer_scale": 2.0, "embedding_scale": 1.0}
    if device == "cpu":
        rates = {name: [value] * 2 for name, value in rates.items()}
    else:  # each cell has an ensemble of its own
        rates["embedding_weight_decay"] = None
    assert {name: said[name] for name in rates} == rates
    assert said["thresholds"] == {"quality": 0.9, "train_accuracy": 1.0}
    expected = {
        "stop": "thresholds", "runs": 2, "run_numbers": [4, 5], "seed": 9, "steps": 3, "record": "log:3",
        "device": device, "chunk": 1 if device == "cpu" else None, "keep_start": False, "out": Path("x.h5"),
        "resume": True, "progress": False, "optimizer": "sgd", "batch_size": 4, "track": 2,
        "freeze_embedding": False,
    }  # fmt: skip
    assert {name: said[name] for name in expected} == expected
    assert not {"model", "tokens", "hidden", "threshold", "stop_at_thresholds"} & said.keys()
    (plain,) = made(TRAIN, freeze_embedding=True, device=device)
    plain.run(None)
    _, said = calls.pop()
    assert (said["stop"], said["thresholds"], said["freeze_embedding"]) == (None, {}, True)
    assert said.get("embedding_learning_rate") is said.get("embedding_weight_decay") is None
    monkeypatch.setattr(nets, "train", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        plain.run(None)
    assert threads[-2:] == [1, 4], "also after an error"


def test_an_embedding_that_is_frozen_has_no_rates_and_its_file_is_known_again(tmp_path):
    (one,) = made(TRAIN, freeze_embedding=True)
    assert one.columns.keys() == {"learning_rate", "weight_decay", "layer_scale", "embedding_scale"}
    first = work.settle(one, tmp_path)
    assert (first.status, first.error) == ("computed", "")
    again = work.settle(one, tmp_path)
    assert (again.status, again.stamp, again.notes) == ("found", first.stamp, [])
    found = physics.load(tmp_path / one.name)
    np.testing.assert_array_equal(found.final, found.initial)
    assert dict(found.start) == {}
    (toy,) = made(TRAIN, freeze_embedding=True, model="toy-addition")
    assert toy.columns.keys() == one.columns.keys(), "the rate of its paper is left out"
    assert made(TRAIN, model="toy-addition")[0].columns["embedding_learning_rate"] == [0.001] * 2
    (own,) = made(TRAIN, freeze_embedding=True, embedding_weight_decay=0.5)
    outcome = work.settle(own, tmp_path)
    said = "embedding_weight_decay must be left out if freeze_embedding keeps the initial embedding, got"
    assert (outcome.status, outcome.error.startswith(said), outcome.again) == ("failed", True, False)


# -- what is listed of a run --------------------------------------------------------------------------------


def recorded(points, kind="ConstantAttention"):
    frames = np.arange(6.0).reshape(3, 2)
    observables = {"loss": frames, "status": frames.astype(int), "vector": np.zeros((3, 2, 4))}
    observables |= {"gradient": frames, "gradient_norm": frames, "layers.bias": frames, "players": frames}
    parameters = {"model": {"type": kind}}
    return SimpleNamespace(
        observables=observables, final=points, tokens=points.shape[1], parameters=parameters
    )


def test_the_last_numbers_of_each_run_are_listed_and_the_shapes_where_they_have_a_meaning():
    angles = 2 * np.pi * np.arange(7) / 7
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    lost = circle.copy()
    lost[3, 1] = np.inf
    points = np.stack([circle, lost, np.random.default_rng(0).normal(size=(7, 2))])
    numbers = {"loss", "status", "players"}
    shapes = {"circle", "grid_imperfections"}
    for one, kind, wanted in (
        (made(TRAIN, tokens=7)[0], "ConstantAttention", numbers | shapes),
        (made(TRAIN, tokens=7)[0], "EmbeddingMLP", numbers),
        (made(SIMULATE)[0], "ConstantAttention", numbers | shapes),
        (made(SIMULATE, system="effective-theory")[0], "ConstantAttention", numbers),
    ):
        found = work.finals(recorded(points, kind), one)
        assert found.keys() == wanted
        assert all(values.dtype == np.float64 for values in found.values())
        np.testing.assert_array_equal(found["loss"], [1.0, 3.0, 5.0])
        if shapes <= wanted:
            np.testing.assert_array_equal(found["circle"], [1.0, np.nan, 0.0])
            assert np.isnan(found["grid_imperfections"]).tolist() == [False, True, False]
            sound = physics.grid_imperfections(points[[0, 2]])
            np.testing.assert_array_equal(found["grid_imperfections"][[0, 2]], sound)
    nothing = work.finals(recorded(np.full((3, 7, 2), np.nan)), made(TRAIN, tokens=7)[0])
    assert np.isnan(nothing["circle"]).all()


@pytest.mark.parametrize("options", [{"modulus": 7}, {"group": "Z7"}])
def test_grids_of_particles_follow_their_modulus_and_their_group(options):
    (one,) = made(SIMULATE, **options)
    rule = work._class_rule(one, None)
    assert rule == {"modulus": one.system.modulus, "group": one.system.group}
    assert any(rule.values())


# -- outcomes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said", "again"),
    [
        (InputError("x must be 1"), "x must be 1", False),
        (SimulationError("overflowed"), "overflowed", False),
        (FileFormatError("damaged"), "damaged", True), (OutputError("full"), "full", True),
        (OSError(5, "Input/output error"), "Input/output error", True), (MemoryError(), "MemoryError", True),
        (KeyError("k"), "KeyError: 'k'", True), (ValueError("bad"), "ValueError: bad", True),
    ],
)  # fmt: skip
def test_an_error_is_the_outcome_of_its_pack(error, said, again, tmp_path):
    def run(path):
        warnings.warn("careful", RuntimeWarning, stacklevel=1)
        raise error

    outcome = work.settle(SimpleNamespace(name="one.h5", run=run), tmp_path)
    assert (outcome.status, outcome.again, outcome.stamp, outcome.finals) == ("failed", again, None, {})
    assert said in outcome.error


def test_a_pack_of_another_process_is_busy_and_warnings_are_notes(tmp_path, monkeypatch):
    def run(path):
        warnings.warn("careful", RuntimeWarning, stacklevel=1)
        path.write_text("new")
        return SimpleNamespace(path=path)

    one = SimpleNamespace(name="one.h5", run=run)
    monkeypatch.setattr(work, "finals", lambda trajectory, pack: {"loss": np.zeros(2)})
    asked = []
    monkeypatch.setattr(work, "claim", lambda path: asked.append(path) or contextlib.nullcontext(False))
    assert work.settle(one, tmp_path) == Outcome("busy")
    assert asked == [tmp_path / "one.h5.pack"]
    monkeypatch.setattr(work, "claim", lambda path: contextlib.nullcontext(True))
    found = work.settle(one, tmp_path)
    assert (found.status, found.notes) == ("computed", ["one.h5: careful"])
    status = (tmp_path / "one.h5").stat()
    assert found.stamp == work.stamp_of(tmp_path / "one.h5") == (3, status.st_mtime_ns)
    assert work.stamp_of(tmp_path / "none.h5") is None

    def held(path):
        raise InUseError("held")

    (tmp_path / "one.h5").unlink()
    assert work.settle(SimpleNamespace(name="one.h5", run=held), tmp_path).status == "busy"


def test_caches_are_filled_by_tiny_packs_and_what_is_invalid_is_passed_over():
    ran = []

    def tiny(name, error=None):
        def run(out):
            ran.append((name, out))
            warnings.warn("careful", RuntimeWarning, stacklevel=1)
            if error:
                raise error

        return SimpleNamespace(tiny=lambda: SimpleNamespace(run=run))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        work.warm([tiny("a", InputError("no")), tiny("b", SimulationError("no")), tiny("c")])
    assert ran == [("a", None), ("b", None), ("c", None)]
