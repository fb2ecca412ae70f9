"""What decides the packs of a sweep, their names, their order and their repetition; nothing is computed."""

import json
import math
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

import nets
import physics
from grokphys.models import PER_MEMBER
from grokphys.sweeps import config, index, pack, run, work
from grokphys.sweeps.config import coerced, declaration
from grokphys.sweeps.kept import declares
from grokphys.sweeps.work import Outcome
from physics import FileFormatError, InputError

TRAIN = {"kind": "train", "fixed": {"tokens": 5, "hidden": 8, "runs": 2, "steps": 30}}
SIMULATE = {"kind": "simulate", "fixed": {"tokens": 7, "runs": 3, "steps": 30, "first_run": 4}}


def packs(content, **fixed):
    return pack.packs(declaration(content | {"fixed": content["fixed"] | fixed}))


# -- values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (None, float | None, None),
        (2, float | None, 2.0),
        (2, float, 2.0),
        (3, int, 3),
        (0, int, 0),
        (5, str, "5"),
        ("log", str, "log"),
        (8, tuple[int, ...], (8,)),
        ([8, 9], tuple[int, ...], (8, 9)),
        ((1,), tuple[float, ...], (1.0,)),
        ([], tuple[str, ...], ()),
        (False, bool, False),
        (-1, int, -1),
        ({"x": 1}, object, {"x": 1}),
    ],
)
def test_a_value_takes_the_type_of_its_parameter(value, annotation, expected):
    found = coerced("name", value, annotation)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [(None, float), (True, int), (1.5, int), (1, bool), (True, str), (1.5, str)],
)
def test_a_value_of_another_type_is_refused(value, annotation):
    with pytest.raises(InputError, match="name must be"):
        coerced("name", value, annotation)


def test_a_sweep_may_have_as_many_cells_and_runs_as_it_says_and_no_more(monkeypatch):
    monkeypatch.setattr(config, "MOST_RUNS", 6)
    grid = {"alignment": [0.0, 1.0, 2.0], "seed": [1, 2]}
    whole = {"kind": "simulate", "fixed": {"tokens": 7}, "grid": grid}
    assert len(declaration(whole).cells) == 6
    with pytest.raises(InputError, match="grid must span at most 6 cells, got 12"):
        len(declaration(whole | {"list": [{"dim": 2}, {"dim": 3}]}).cells)
    with pytest.raises(InputError, match="runs must be at most 6 in all cells together, got 12"):
        len(declaration(whole | {"fixed": {"tokens": 7, "runs": 2}}).cells)


def test_the_content_of_a_declaration_is_its_text():
    text = declaration(TRAIN).text
    assert text == '{"fixed":{"hidden":8,"runs":2,"steps":30,"tokens":5},"kind":"train"}'
    assert declaration(json.loads(text)).text == text, "empty sections would be refused"
    before = (
        '{"fixed":{"hidden":8,"runs":2,"steps":30,"tokens":5},"grid":{},"kind":"train","list":[],"pack":null}'
    )
    assert declares(before, declaration(TRAIN))
    assert not declares(before, declaration(TRAIN | {"pack": 3}))
    for other in ({"pack": 3}, {"grid": {"seed": [1]}}, {"list": [{"seed": 1}]}, {"fixed": {"steps": 31}}):
        assert declaration(TRAIN | other).text != text


# -- packs --------------------------------------------------------------------------------------------------


def test_a_pack_holds_runs_up_to_a_limit_of_memory_and_of_operations(monkeypatch):
    def size(content, **limits):
        bounds = {"PACK_RUNS": 10**9, "PACK_BYTES": 10**9, "PACK_OPERATIONS": 10**18} | limits
        for name, value in bounds.items():
            monkeypatch.setattr(pack, name, value)
        return len(packs(content, runs=2000)[0].numbers)

    assert size(SIMULATE, PACK_RUNS=17) == 17
    one = 64 * 7 * 2  # bytes of a run: 7 tokens in the plane
    assert size(SIMULATE, PACK_BYTES=10 * one) == 10
    pairs = physics.ParticleSystem(7).pair_count
    assert size(SIMULATE, PACK_OPERATIONS=13 * 30 * pairs**2 * 2) == 13
    model = nets.ConstantAttention(5, hidden=8)
    start = model.initial(np.random.default_rng(0), np.random.default_rng(0))
    numbers = sum(value.size for value in start.values())
    assert size(TRAIN, PACK_BYTES=11 * 40 * numbers) == 11
    assert size(TRAIN, PACK_OPERATIONS=9 * 6 * numbers * len(model.task) * 30) == 9
    small = TRAIN | {"fixed": TRAIN["fixed"] | {"batch_size": 3}}
    assert size(small, PACK_OPERATIONS=9 * 6 * numbers * 3 * 30) == 9
    assert size(SIMULATE, PACK_BYTES=1) == 1, "at least one run"


def test_rows_and_numbers_of_packs_are_those_of_the_cells():
    fixed = {"tokens": 5, "hidden": 8, "runs": 2}
    grid = {"learning_rate": [0.1, 0.2], "steps": [30, 40]}
    content = {"kind": "train", "pack": 3, "fixed": fixed, "grid": grid}
    found = packs(content, first_run=5)
    # Cells of equal steps share an ensemble; rows count the runs of all cells, learning rates outermost.
    assert [one.rows for one in found] == [[0, 1, 4], [5], [2, 3, 6], [7]]
    assert [one.numbers for one in found] == [[5, 6, 5], [6], [5, 6, 5], [6]]
    assert [one.columns["learning_rate"] for one in found] == [[0.1, 0.1, 0.2], [0.2]] * 2
    assert [one.common["steps"] for one in found] == [30, 30, 40, 40]
    assert set(found[0].columns) == set(PER_MEMBER)
    assert not packs(SIMULATE)[0].columns


def test_numbers_of_a_simulation_follow_one_another_in_each_pack():
    def numbers(**grid):
        fixed = {"tokens": 5, "steps": 3} | ({} if "runs" in grid else {"runs": 2})
        found = packs({"kind": "simulate", "pack": 3, "fixed": fixed, "grid": grid})
        assert [row for one in found for row in one.rows] == list(range(sum(len(one.rows) for one in found)))
        return [one.numbers for one in found]

    assert numbers(first_run=[0, 1]) == [[0, 1], [1, 2]]
    assert numbers(first_run=[0, 2, 4, 8]) == [[0, 1, 2], [3, 4, 5], [8, 9]]
    assert numbers(first_run=[4, 0]) == [[4, 5], [0, 1]]
    assert numbers(runs=[2, 4, 1]) == [[0, 1], [0, 1, 2], [3], [0]]
    for one in packs({"kind": "simulate", "fixed": {"tokens": 5, "steps": 3}, "grid": {"runs": [2, 3]}}):
        assert one.run(None).run_numbers.tolist() == one.numbers


def test_the_embedding_has_the_rates_of_the_layers_unless_it_has_its_own():
    (own,) = packs(TRAIN, learning_rate=0.3, embedding_weight_decay=0.7, weight_decay=0.2)
    assert own.columns["embedding_learning_rate"] == [0.3, 0.3]
    assert own.columns["embedding_weight_decay"] == [0.7, 0.7]
    assert own.columns["weight_decay"] == [0.2, 0.2]
    (layers,) = packs(TRAIN, learning_rate=0.3, weight_decay=0.2)
    assert layers.columns["embedding_weight_decay"] == [0.2, 0.2]


def test_on_a_gpu_each_rate_has_an_ensemble_of_its_own():
    content = TRAIN | {"grid": {"learning_rate": [0.1, 0.2]}}
    assert len(packs(content)) == 1
    apart = packs(content, device="cuda")
    assert [one.common["learning_rate"] for one in apart] == [0.1, 0.2]
    assert not any(one.columns for one in apart)


def test_the_name_of_a_pack_changes_with_its_content_and_the_program_but_not_with_its_place(monkeypatch):
    versions = {"train": "these", "simulate": "those"}
    monkeypatch.setattr(pack, "program", versions.get)
    (one,) = packs(TRAIN)
    others = [
        replace(one, numbers=[0, 2]),
        replace(one, common=one.common | {"steps": 31}),
        replace(one, columns=one.columns | {"learning_rate": [0.1, 0.2]}),
        replace(one, kind="simulate"),
    ]
    assert len({other.name for other in [one, *others]}) == 5
    assert replace(one, rows=[7, 8]).name == one.name
    versions["train"] = "newer"
    assert replace(one, rows=[7, 8]).name != one.name


def test_a_tiny_pack_is_one_run_of_one_step():
    for content in (TRAIN, SIMULATE):
        (whole,) = packs(content)
        tiny = whole.tiny()
        assert (tiny.kind, tiny.numbers, tiny.rows) == (whole.kind, whole.numbers[:1], [0])
        assert tiny.common["steps"] == 1
        assert all(values == whole.columns[name][:1] for name, values in tiny.columns.items())
        assert tiny.run(None).steps.tolist() == [0, 1]


def test_a_file_belongs_to_a_pack_if_all_numbers_agree():
    (one,) = packs(SIMULATE, alignment=0.5)
    made = one.run(None).parameters
    assert one.made(made)
    assert not one.made(made | {"steps": 31})
    assert not one.made(made | {"first_run": 0})
    assert not one.made(made | {"runs": 2})
    assert not one.made(made | {"system": made["system"] | {"alignment": 0.6}})
    (one,) = packs(TRAIN, learning_rate=0.3, steps=2)
    made = one.run(None).parameters
    assert one.made(made)
    assert not one.made(made | {"learning_rate": [0.3, 0.4]})
    assert not one.made(made | {"run_numbers": [0, 2]})


def test_the_file_of_another_pack_is_not_taken_for_ones_own(tmp_path):
    one, other = (packs(SIMULATE, steps=2, alignment=value)[0] for value in (0.5, 0.6))
    (fewer,) = packs(SIMULATE, steps=2, alignment=0.5, runs=2)
    again = replace(packs(SIMULATE, steps=2, alignment=0.5)[0], numbers=[4, 5, 5])
    path = tmp_path / "x.h5"
    one.run(path)
    assert work._read_through(path, one).runs == 3
    for wrong in (other, fewer, again):
        with pytest.raises(FileFormatError, match="must hold the .* runs of its pack, got"):
            work._read_through(path, wrong)


def test_one_pack_is_tried_first_of_each_combination_of_kernels():
    rates = packs(SIMULATE | {"pack": 1, "grid": {"alignment": [0.0, 1.0], "seed": [1, 2]}})
    assert len(rates) == 12
    assert len(run.flavours(rates)) == 1
    lengths = {"kind": "simulate", "grid": {"steps": [3, 4], "record_every": [1, 2]}}
    assert len(run.flavours(pack.packs(declaration(lengths)))) == 1
    sizes = run.flavours(pack.packs(declaration(lengths | {"grid": {"tokens": [5, 7], "dim": [2, 3]}})))
    assert sorted((one.common["tokens"], one.common["dim"]) for one in sizes) == [
        (5, 2),
        (5, 3),
        (7, 2),
        (7, 3),
    ]
    assert all(one.common["steps"] == 1 for one in sizes)


# -- their order --------------------------------------------------------------------------------------------


class Scripted:
    """An executor of two slots whose packs end as told, the first that was submitted first."""

    def __init__(self, outcomes):
        self.outcomes = {name: deque(ends) for name, ends in outcomes.items()}
        self.taken, self.submitted = deque(), []

    def free(self):
        return len(self.taken) < 2

    def submit(self, one):
        assert self.free(), "more packs than slots"
        self.submitted.append(one.name)
        self.taken.append(one)

    def finished(self, seconds):
        if not self.taken:
            return []
        one = self.taken.popleft()
        return [(one, self.outcomes[one.name].popleft())]


def test_packs_are_tried_again_as_often_as_they_may_and_waited_for(monkeypatch):
    monkeypatch.setattr(run, "LOOK_AGAIN", 0.0)
    several = packs(SIMULATE | {"pack": 1, "grid": {"seed": [1, 2]}})[:5]
    names = [one.name for one in several]
    bad, busy, good = (Outcome("failed", error="no"), Outcome("busy"), Outcome("computed"))
    final = Outcome("failed", error="never", again=False)
    script = Scripted(
        {
            names[0]: [bad, bad, good],
            names[1]: [bad, bad, bad],
            names[2]: [final],
            names[3]: [busy, busy, replace(good, notes=["noted"])],
            names[4]: [busy, good],
        }
    )
    told, done = [], []
    run.settle_all(
        several,
        script,
        retries=2,
        tell=told.append,
        done=lambda one, outcome: done.append((names.index(one.name), outcome.status)),
    )
    assert sorted(done) == [(0, "computed"), (1, "failed"), (2, "failed"), (3, "computed"), (4, "computed")]
    assert [script.submitted.count(name) for name in names] == [3, 3, 1, 3, 2]
    assert script.submitted[:5] == names
    assert told.count(f"{names[1]}: no; it is tried again") == 2
    assert not any("never" in one for one in told)
    assert "noted" in told
    assert any("is being written by another process" in one for one in told)


# -- columns of the index -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2], "i", [1, 2]),
        ([True, False], "b", [True, False]),
        ([0.5, 1.0], "f", [0.5, 1.0]),
        ([1, 0.5], "f", [1.0, 0.5]),
        ([1, None], "f", [1.0, math.nan]),
        (["a", "b"], "O", ["a", "b"]),
        (["a", None], "O", ["a", "null"]),
        ([(8,), (8, 9)], "O", ["[8]", "[8,9]"]),
        ([True, 1], "O", ["true", "1"]),
    ],
)
def test_a_column_has_one_kind_of_number_or_is_text(values, kind, expected):
    found = index._array(values)
    assert found.dtype.kind == kind
    assert (
        found.tolist() == pytest.approx(expected, nan_ok=True) if kind in "if" else found.tolist() == expected
    )


def test_the_digest_changes_with_names_types_lengths_and_values():
    base = {"a": np.arange(4), "b": np.array(["x", "y"], object)}
    others = [
        {"a": np.arange(4), "c": base["b"]},
        {"a": np.arange(4, dtype=np.int32), "b": base["b"]},
        {"a": np.arange(4)[::-1].copy(), "b": base["b"]},
        {"a": np.arange(4), "b": np.array(["x", "z"], object)},
        {"a": np.arange(4)},
        {"a": np.arange(5), "b": base["b"]},
    ]
    assert len({index._digest(one) for one in [base, *others]}) == 7
    zeros = [{"a": np.zeros(2, kind)} for kind in (np.int64, np.float64)]
    assert index._digest(zeros[0]) != index._digest(zeros[1]), "the same bytes"
    assert index._digest(dict(reversed(base.items()))) == index._digest(base)


def test_the_index_of_a_shard_has_a_name_of_its_own(tmp_path):
    assert index.index_path(tmp_path) == tmp_path / "index.h5"
    assert index.index_path(tmp_path, "3/16") == tmp_path / "index-3-of-16.h5"
