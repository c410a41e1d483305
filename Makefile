# Lastro. `make help` lists the targets. Nothing but python3 (3.11+) and make is needed beforehand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes
export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help
.PHONY: help setup run test check format clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Lastro needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.lock pyproject.toml | $(BIN)/python
	$(PIP) -r requirements/run.lock
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.run
	$(PIP) -r requirements/dev.lock
	@touch $@

setup: $(VENV)/.run ## create .venv and install the locked dependencies

run: setup ## start the service in sandbox mode with demo data
	$(BIN)/lastro serve

test: $(VENV)/.dev ## run the whole test suite against a real PostgreSQL that it starts itself
	$(BIN)/python -m pytest -m "not load"

check: $(VENV)/.dev ## format, lint, types, layers, unit tests: under 30 s
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/tidy tests/unit

format: $(VENV)/.dev ## format the code and mend what can be mended
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --quiet --fix .

lock: $(VENV)/.dev ## renew the locked dependencies (needs uv)
	for n in run dev; do uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --quiet --upgrade requirements/$$n.in --output-file requirements/$$n.lock; done

clean: ## remove the virtual environment and caches (never a data directory)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
