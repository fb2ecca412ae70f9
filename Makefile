# Two commands do everything: `make demo` and `make test`. Each makes the environment it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two or more processes share the test files: many tests wait for a process, a browser or one core.
SPREAD := -n auto --maxprocesses=4 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint types contracts format clean

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

demo: $(VENV)/.installed   ## the main job on embedded real data; ends with results/demo/report.html
	$(BIN)/grokphys demo --overwrite

test: lint types contracts   ## lint, types, import contracts and the default suite
	$(BIN)/python -m pytest $(SPREAD)

test-all: lint types contracts   ## the same and the slow statistical reproductions
	$(BIN)/python -m pytest -m "slow or not slow" $(SPREAD)

lint: $(VENV)/.installed-dev   ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev   ## mypy
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev   ## who may import whom
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev   ## put the code into the one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:           ## remove the environment, builds and caches; results stay
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "GrokPhys needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@
