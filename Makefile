# Lastro. `make help` lists the targets. Nothing but python3 (3.11+) and make is needed beforehand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes

.DEFAULT_GOAL := help
.PHONY: help setup run test check format docs test-browser test-crash test-load test-model test-mutation bench bench-quick bench-growth lock clean audit

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
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not load" --ignore tests/browser

test-browser: $(VENV)/.dev ## the console in a real browser (needs Chromium, and says so)
	$(BIN)/python -m pytest tests/browser

test-crash: $(VENV)/.dev ## kill -9 at random points under load: make test-crash ROUNDS=100
	LASTRO_CRASH_ROUNDS=$(or $(ROUNDS),100) $(BIN)/python -m pytest tests/crash

test-load: $(VENV)/.dev ## the tests that take minutes: a million rows, ten thousand deliveries
	$(BIN)/python -m pytest -m load

test-model: $(VENV)/.dev ## the concurrent model checker: make test-model STEPS=10000 SEED=1
	$(BIN)/python -m tests.model.run --faults --steps $(or $(STEPS),10000) --seed $(or $(SEED),1)

test-mutation: $(VENV)/.dev ## break the money rules in every small way and see that a unit test notices (5 minutes)
	$(BIN)/python -m tests.mutation.run

bench/.venv/.done: bench/requirements.lock
	$(PYTHON) -m venv bench/.venv
	bench/.venv/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r bench/requirements.lock
	@touch $@

bench: $(VENV)/.dev bench/.venv/.done ## every figure of the speed table, as ratios taken in one run (25 minutes, idle machine)
	$(BIN)/python -m bench.run

bench-quick: $(VENV)/.dev bench/.venv/.done ## the same rows on small data, one short round
	$(BIN)/python -m bench.run --quick

bench-growth: $(VENV)/.dev ## longer histories and more accounts, drawn to docs/explanation/growth.svg
	$(BIN)/python -m bench.growth

check: $(VENV)/.dev ## format, lint, types, layers, unit tests: under 30 s
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/tidy tests/unit

audit: ## known holes in what we install and in how we write: pip-audit, bandit, in a place of their own
	@test .venv-audit/.done -nt requirements/audit.lock || { $(PYTHON) -m venv .venv-audit && .venv-audit/bin/python -m pip \
	  --disable-pip-version-check install --quiet --require-hashes -r requirements/audit.lock && touch .venv-audit/.done; }
	@.venv-audit/bin/python scripts/audit.py $(AUDIT)

format: $(VENV)/.dev ## format the code and mend what can be mended
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --quiet --fix .

docs: $(VENV)/.dev ## write the generated reference pages and the schema
	$(BIN)/python scripts/write_reference.py
	$(BIN)/python -m tests.tidy.schema --write

lock: $(VENV)/.dev ## renew the locked dependencies (needs uv)
	for n in run dev audit; do uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --quiet --upgrade requirements/$$n.in --output-file requirements/$$n.lock; done
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --quiet --upgrade bench/requirements.in --output-file bench/requirements.lock

clean: ## remove the virtual environment and caches (never a data directory)
	rm -rf $(VENV) .venv-audit bench/.venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
