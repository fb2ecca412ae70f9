"""What all benchmarks share: calls timed in turn, rows, tables."""

import json

import pytest

from grokphys.bench import timing


def test_calls_are_timed_in_turn_by_the_unit(monkeypatch):
    clock, order = [0.0], []

    def works(name, took):
        def call():
            order.append(name)
            clock[0] += took

        return call

    def before(name):
        order.append(f"before {name}")
        clock[0] += 100.0  # is not timed

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    calls = {"ours": (works("ours", 2.0), 4), "theirs": (works("theirs", 6.0), 2)}
    took = timing.in_turn(calls, 2, before)
    assert order == ["before ours", "ours", "before theirs", "theirs"] * 2
    assert took == {"ours": [0.5, 0.5], "theirs": [3.0, 3.0]}


def test_the_best_of_several_is_the_shortest_and_the_first_call_is_none_of_them(monkeypatch):
    clock, took = [0.0], iter([0.5, 3.0, 2.0, 4.0])

    def call():
        clock[0] += next(took)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    assert timing.best(call, 3) == 2.0
    assert next(took, None) is None


def test_a_ratio_is_that_of_each_round():
    (row,) = timing.against({"ours": [1.0, 2.0, 4.0], "theirs": [3.0, 8.0, 4.0]})
    assert row["reference"] == "theirs"
    assert row["ratio"] == {"median": 3.0, "least": 1.0, "most": 4.0}
    assert row["ours_s"]["median"] == 2.0
    assert row["reference_s"]["most"] == 8.0


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(2.5, "2.5 s"), (1.0, "1 s"), (0.0123, "12.3 ms"), (4e-6, "4 µs"), (4e-8, "0.04 µs")],
)
def test_durations_are_in_the_unit_that_suits_them(seconds, shown):
    assert timing.duration(seconds) == shown


def test_a_template_shows_what_a_row_holds():
    row = {
        "n": 3,
        "took_s": {"median": 0.002, "least": 0.001, "most": 0.003},
        "bytes": 3 * 2**29,
        "agrees": False,
        "share": {"estimate": 0.5, "low": 0.25, "high": 0.75},
    }
    columns = {
        "size": "N = {n}",
        "time": "{took_s:time}",
        "spread": "{took_s:spread}",
        "memory": "{bytes:gib}",
        "agrees": "{agrees:yes}",
        "percent": "{share:percent}",
        "interval": "{share:interval}",
        "absent": "{other:.1e}",
    }
    shown = timing.table("caption", [row], columns)
    assert shown.header == list(columns)
    expected = ["N = 3", "2 ms", "0.002 [0.001, 0.003]", "1.5 GiB", "NO"]
    assert shown.rows == [[*expected, "50.0 [25.0, 75.0]", "0.5 [0.2, 0.8]", "-"]]


def test_rows_with_targets_say_whether_these_are_met():
    rows = [
        {"what": "fast", "ours_s": 0.001, "reference_s": 0.5, "target": "100 times", "met": True},
        {"what": "slow", "ours_s": 1.0, "reference_s": 0.5, "error": 2e-9, "target": "faster", "met": False},
        {"what": "growth", "exponent": 2.04},
    ]
    fast, slow, growth = timing.targets(rows).rows
    assert fast == ["fast", "1 ms", "500 ms", "500 x", "-", "100 times: met"]
    assert slow == ["slow", "1 s", "500 ms", "0.50 x", "2.0e-09", "faster: MISSED"]
    assert growth[:2] == ["growth", "p^2.04"]


def test_growth_is_the_power_of_the_size():
    assert timing.exponent([10, 20, 40], [3e2, 12e2, 48e2]) == pytest.approx(2.0)


def test_all_parts_are_measured_shown_and_kept(tmp_path, capsys):
    def tables(result):
        return [timing.table("what was found", result["rows"], {"what": "{what}", "ours": "{ours_s:time}"})]

    out = tmp_path / "new" / "one.json"
    rows = [{"what": "a", "ours_s": 0.5}]
    assert timing.measured("one", out, {"threads": lambda: 2, "rows": lambda: rows}, tables) == 0
    assert json.loads(out.read_text()) == {"threads": 2, "rows": rows}
    printed = capsys.readouterr().out
    assert "what was found" in printed
    assert "500 ms" in printed
    assert f"wrote {out}" in printed
