"""Models of data in which statements are false, from their definitions."""

import numpy as np
import pytest

from grokphys.papers.beyond import scaling
from grokphys.papers.counters import he
from grokphys.papers.counters.builders import drawn, instead, rarest_absent, replaced
from grokphys.papers.counters.liu import UNNAMED, one_sample_less
from grokphys.papers.ding import figure_02
from grokphys.papers.liu import figure_07, figure_16
from grokphys.papers.liu.figures_09_to_11 import CURRICULUM

TABLE = {"kind": np.array(["a", "b", "a", "c"]), "p": np.array([3, 3, 5, 5]), "x": np.array([1.0, 2, 3, 4])}
TABLES = {"t": TABLE, "u": {"x": np.arange(3)}}


def rng():
    return np.random.default_rng(4)


def columns(model):
    """What a model makes of the table t, as lists; the other table and the table itself must stay."""
    before = {name: values.tolist() for name, values in TABLE.items()}
    found = model(TABLES, rng())
    assert found["u"] is TABLES["u"]
    assert {name: values.tolist() for name, values in TABLE.items()} == before
    return {name: values.tolist() for name, values in found["t"].items()}


def test_rows_take_the_place_of_others():
    model = instead("t", rows={"kind": "a", "p": 5}, of={"kind": "b", "p": 5.0})
    assert model.words == "rows of `t` with `kind` = a in place of those with `kind` = b, both with `p` = 5"
    assert columns(model) == {"kind": ["a", "b", "a", "c", "b"], "p": [3, 3, 5, 5, 5], "x": [1, 2, 3, 4, 3]}
    model = instead("t", rows={"p": 5}, of={"p": 3})
    assert model.words == "rows of `t` with `p` = 5 in place of those with `p` = 3"
    assert columns(model) == {"kind": ["a", "c"] * 2, "p": [5, 5, 3, 3], "x": [3, 4, 3, 4]}


def test_columns_replace_each_other():
    model = replaced("t", p="x", x="p")
    assert model.words == "`p` replaced by `x` and `x` replaced by `p` in `t`"
    assert columns(model) == {"kind": ["a", "b", "a", "c"], "p": [1, 2, 3, 4], "x": [3, 3, 5, 5]}


def test_columns_are_drawn_from_the_rows_or_have_one_value():
    model = drawn("noise", "t", x=lambda rows, random: rows["x"] + random.normal(size=4), p=0)
    assert model.words == "noise"
    found = columns(model)
    assert found["x"] == (TABLE["x"] + rng().normal(size=4)).tolist()
    assert found["p"] == [0] * 4


def test_the_rarest_value_is_absent():
    table = {"kind": np.array(list("aaabbc")), "x": np.arange(6)}
    drawn_kinds = set()
    random = rng()
    for _ in range(40):
        found = rarest_absent("t", "kind")({"t": table}, random)["t"]
        assert found["kind"][:5].tolist() == list("aaabb")
        drawn_kinds.add(str(found["kind"][5]))
    assert drawn_kinds == {"a", "b"}
    assert table["kind"][5] == "c"
    assert rarest_absent("t", "kind").words == "the rarest `kind` of `t` replaced by others, at random"


def test_what_follows_from_samples_without_the_last():
    found = one_sample_less(CURRICULUM)({"sets": 1}, rng())
    assert found["sets"] == 1
    assert found["stages"]["given"].tolist() == [4, 6, 8]
    assert found["stages"]["n_0"][2] == 3, "D_7 repeats D_4: seven samples say as much as six"
    first = [
        q for q in zip(*(found["parallelograms"][k] for k in ("given", *"ijmn")), strict=True) if q[0] == 4
    ]
    assert [set(map(int, q[1:])) for q in first] == [{0, 4, 1, 3}], "0 + 4 = 1 + 3 is all that three say"


def test_one_link_of_each_chain_is_left_out():
    follows = np.array([True, False, True, True, False])
    rows = {"operation": np.array(list("AAABB")), "follows": follows}
    random, seen = rng(), set()
    for _ in range(20):
        found = figure_16._one_link_less({"chains": rows}, random)["chains"]["follows"]
        assert found[1:3].tolist() == [False, True]
        assert found[3:].tolist() == [False, False]
        seen.add(bool(found[0]))
    assert seen == {False, True}, "either link may be the one that is left out"
    assert follows[3]


def test_a_phase_without_a_name():
    printed = np.array(["confusion", "grokking", "memorization", "comprehension", "not named"])
    found = UNNAMED({"outcomes": {"printed": printed}}, rng())["outcomes"]["printed"]
    assert np.count_nonzero(found == "not named") == 2


def test_those_that_begin_strongest_survive():
    rows = {
        "network": np.array([0, 0, 0, 1, 1]),
        "first": np.array([1.0, 3, 2, 5, 4]),
        "survived": np.array([True, False, True, False, True]),
    }
    found = figure_02._strongest_survive({"circles": rows}, rng())["circles"]["survived"]
    assert found.tolist() == [False, True, True, True, False]


def test_planes_of_random_embeddings_are_as_many():
    network = np.array([0, 0, 3])
    found = figure_02._random_embeddings({"planes": {"network": network}}, rng())["planes"]
    assert found["network"].tolist() == network.tolist()
    assert set(found) == set(figure_02.PLANE)
    assert (found["variance"] < 0.2).all()


def test_a_broken_stick_keeps_the_number_of_neurons():
    rows = {"network": np.repeat([0, 1], 3), "neurons": np.array([100, 100, 100, 5, 5, 5])}
    found = he._broken_stick(rows, rng()).reshape(2, 3)
    assert found.sum(axis=1).tolist() == [300, 15]
    assert np.ptp(found[0]) > 30


def test_phases_on_half_of_the_circle_are_uneven_in_odd_harmonics_alone():
    count = 10_000
    table = {"frequencies": {"neurons": np.array([count])}}
    found = he.half_a_circle(table, rng())["frequencies"]
    assert found["asymmetry_2"][0] < 5 / count**0.5
    assert found["asymmetry_4"][0] < 5 / count**0.5
    phases = rng().uniform(0, np.pi, count)
    assert abs(np.exp(1j * phases).mean()) == pytest.approx(2 / np.pi, abs=0.05)


def orders():
    plain = ["plain addition"] * 3
    return {
        "family": np.array([*plain, "addition mod p"]),
        "tokens": np.array([28, 60, 60, 60]),
        "size": np.array([90, 300, 310, 200]),
        "fraction": np.array([0.2, 0.15, 0.16, 0.1]),
        "last": np.array([True, True, False, True]),
        "orders": np.array([4, 600, 400, 4]),
    }


def test_sixty_symbols_need_as_many_samples_each_as_twenty_eight():
    found = scaling._one_over_p({"orders": orders()}, rng())["orders"]
    own = (found["family"] == "plain addition") & (found["tokens"] == 60)
    assert found["fraction"][own].tolist() == pytest.approx([0.2 * 28 / 60])
    assert sorted(found["fraction"][~own].tolist()) == [0.1, 0.2]


def test_the_last_isolated_symbol_is_that_of_another_order():
    found = scaling._of_another_order({"orders": orders()}, rng())["orders"]
    assert set(found["tokens"].tolist()) == {60}
    assert found["orders"].tolist() == [1] * 1000
    assert np.mean(found["last"]) == pytest.approx(0.6**2 + 0.4**2, abs=0.05)


def test_steps_of_networks_without_dropout_are_those_of_all():
    rows = {"dropout": np.array([0.0, 0.2, 0.0, 0.4, 0.5]), "train_steps": np.array([1, 2, 3, 4, 5])}
    found = figure_07.DRY({"networks": rows | {"validation_steps": 10 * rows["train_steps"]}}, rng())[
        "networks"
    ]
    assert found["train_steps"].tolist() == [1, 3, 1, 3, 1]
    assert found["validation_steps"].tolist() == [10, 30, 10, 30, 10]
    assert found["dropout"] is rows["dropout"]
