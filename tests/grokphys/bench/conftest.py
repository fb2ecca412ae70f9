"""What the tests of benchmarks share: calls that only note what they are asked."""

import pytest


@pytest.fixture
def noted(monkeypatch):
    """Replace a function by one that notes its arguments, and named ones if any, and returns a value."""

    def replaced(place, name, value=None, *, lazy=None):
        asked = []

        def note(*given, **named):
            asked.append((given, named) if named else given)
            return value if lazy is None else lazy(*given, **named)

        monkeypatch.setattr(place, name, note)
        return asked

    return replaced


@pytest.fixture
def parts(noted):
    """Run a benchmark; return its name with its file, the results of its parts, and its tables."""

    def of(module, bench, budget):
        asked = noted(module, "measured", 0)
        assert bench(out="o", budget=budget) == 0
        ((name, out, measures, tables),) = asked
        return (name, out), {key: call() for key, call in measures.items()}, tables

    return of
