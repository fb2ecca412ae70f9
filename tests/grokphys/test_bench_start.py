import json

import pytest

from grokphys.bench import start
from grokphys.bench.start import Case
from grokphys.output import write_json

QUICK = {
    "nothing": Case(("-c", "pass"), kernels=False),
    "a kernel": Case(("-c", "import os; open(os.environ['NUMBA_CACHE_DIR'], 'a').write('x')"), 2.5),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(start, "UNIT", "sum(range(10**6))")


def test_cold_processes_find_an_empty_cache_and_warm_ones_theirs(monkeypatch):
    seen = []
    right = start.run

    def run(arguments, cache):
        found = right(arguments, cache)
        seen.append((cache.parent.name, cache.read_text() if cache.exists() else ""))
        return found

    monkeypatch.setattr(start, "run", run)
    rows = start.rows(2, QUICK)
    assert [(row["what"], row["kernels"], row["goal"]) for row in rows] == [
        ("nothing", "warm", None),
        ("a kernel", "cold", 2.5),
        ("a kernel", "warm", None),
    ]
    kernels = [(folder, text) for folder, text in seen if text]
    assert [text for _, text in kernels] == ["x", "xx"] * 2
    assert kernels[0][0] == kernels[1][0] != kernels[2][0] == kernels[3][0]
    assert all(row["clock"]["least"] > 0 and row["core_s"]["median"] > 0 for row in rows)
    assert all(table.text() for table in start._tables(rows))


def test_a_process_that_fails_is_no_measurement(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 3: said why"):
        start.run(["-c", "import sys; sys.stderr.write('said why'); sys.exit(3)"], tmp_path)


def test_the_seconds_of_a_core_are_those_of_the_child(tmp_path):
    slept = start.run(["-c", "import time; time.sleep(1)"], tmp_path)
    assert slept.clock - slept.core > 0.9
    worked = start.run(["-c", "import time\nwhile time.process_time() < 0.3: pass"], tmp_path)
    assert worked.core > 0.25


def record(**units):
    return [{"what": what, "kernels": "cold", "core": {"median": value}} for what, value in units.items()]


def test_more_than_a_fifth_is_a_regression():
    before = {"rows": record(a=2.0, b=2.0, c=2.0), "made": {"by": "1.0", "at": "2026"}}
    said = start.regressions(record(a=2.39, b=2.41, c=1.0, d=9.0), before)
    assert said == ["SLOWER: b, cold: 2.41 units, 2.00 in the record of 1.0"]
    assert start.regressions(record(a=2.0), {}) == []


def test_a_call_is_held_against_the_newest_record_and_replaces_it_unless_it_is_slower(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(start, "RECORDS", tmp_path / "records")
    (tmp_path / "records").mkdir()
    for name, at, units in (("0.0.1", "2025-01", 9.0), ("0.0.2", "2026-01", 3.0)):
        stored = {"rows": record(nothing=units), "made": {"by": name, "at": at}}
        write_json(tmp_path / "records" / f"{name}.json", stored)

    def measured(units):
        row = record(nothing=units)[0]
        shown = {key: {"median": units, "least": units, "most": units} for key in ("clock", "core")}
        seconds = dict.fromkeys(("clock_s", "core_s", "unit_core_s"), shown["core"])
        monkeypatch.setattr(start, "rows", lambda rounds: [{**row, **shown, **seconds, "goal": None}])
        assert start.bench_start(out=tmp_path / f"{units}.json", budget="quick") == 0
        return capsys.readouterr().out

    assert "SLOWER: nothing, cold: 4.00 units, 3.00 in the record of 0.0.2" in measured(4.0)
    assert len(list((tmp_path / "records").iterdir())) == 2
    assert "SLOWER" not in measured(3.5)
    assert json.loads((tmp_path / "3.5.json").read_text())["rows"][0]["core"]["median"] == 3.5
    assert start.newest(tmp_path / "records")["rows"][0]["core"]["median"] == 3.5
