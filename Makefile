# Two commands do everything: `make demo` and `make test`. Each makes the environment it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One process more than cores, and four at most, share the test files: many tests wait for a process or a browser.
# They are taken in their own order, as the files with the fewest tests, which xdist leaves to the end, take longest.
SPREAD := -n $$($(BIN)/python -c "import os; print(min(os.cpu_count() + 1, 4))") --dist loadfile --no-loadscope-reorder
# The suite starts some two hundred processes, which all use the compiled sources that the first one keeps.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test test-all suite suite-all lint types contracts docs pictures format clean

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

demo: $(VENV)/.installed   ## the main job on embedded real data; ends with results/demo/report.html
	$(BIN)/grokphys demo --overwrite

# mypy and the contracts have one process each, and no caches in a fresh clone: the suite runs meanwhile.
test: lint   ## lint, types, import contracts and the default suite
	@$(MAKE) --no-print-directory -j3 types contracts suite

test-all: lint   ## the same and the slow statistical reproductions
	@$(MAKE) --no-print-directory -j3 types contracts suite-all

suite:
	$(PYTEST) $(SPREAD)

suite-all:
	$(PYTEST) -m "slow or not slow" $(SPREAD)

lint: $(VENV)/.installed-dev   ## ruff: rules and format; codespell: spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/codespell --builtin clear,rare,en-GB_to_en-US \
		--skip docs/made,docs/rules.md,docs/scoreboard.md,docs/gallery.md,docs/findings.md README.md CONTRIBUTING.md docs

types: $(VENV)/.installed-dev   ## mypy
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev   ## who may import whom
	$(BIN)/lint-imports

docs: $(VENV)/.installed-dev   ## the documentation as a site, build/docs/index.html; needs no network
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo build/docs/index.html

pictures: $(VENV)/.installed-dev   ## the pictures of README and guide again
	$(BIN)/python docs/pictures.py

format: $(VENV)/.installed-dev   ## put the code into the one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:           ## remove the environment, builds and caches; results stay
	rm -rf $(VENV) build dist docs/made *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "GrokPhys needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@
