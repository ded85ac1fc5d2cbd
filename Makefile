PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# a shell that doesn't outlive a killed make, as neither do a pytest its shell, a worker its pytest, and a server its worker
SHELL := setpriv
.SHELLFLAGS := --pdeathsig KILL -- bash -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PIP_INSTALL := $(BIN)/pip install --quiet --quiet --disable-pip-version-check
PYTEST := $(BIN)/pytest --quiet
# Tests with servers wait most of the time: three workers keep two CPUs busy. What measures time runs alone, afterwards.
WORKERS ?= 3
TOGETHER := $(PYTEST) --numprocesses $(WORKERS)

# A stage of the gate says one line when it passes, and all that it has when it doesn't.
define stage
	@start=$$SECONDS; \
	if said=$$(exec $(2) 2>&1); then \
	  printf '  %-12s ok  %4d s  %s\n' '$(1)' $$((SECONDS - start)) "$$(tail -n 1 <<< "$$said" | grep passed)"; \
	else \
	  printf '%s\n  %-12s FAILED after %d s\n' "$$said" '$(1)' $$((SECONDS - start)); exit 1; \
	fi
endef

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- set-up

$(VENV)/.run: pyproject.toml requirements/build.txt requirements/run.txt
	@requirements/system.sh venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'consumer needs Python 3.11 or newer: name one, as in make PYTHON=python3.13' >&2; exit 1; }
	@echo '  setting up $(VENV)'
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --require-hashes --requirement requirements/build.txt --requirement requirements/run.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements/test.txt
	@$(PIP_INSTALL) --require-hashes --requirement requirements/test.txt
	@touch $@

.PHONY: setup
setup: $(VENV)/.test ## make .venv from the pinned requirements, and install the servers that tests need
	@requirements/system.sh rabbitmq postgresql pgbouncer prometheus

.PHONY: lock
lock: ## pin the newest versions that pyproject.toml allows
	@requirements/lock.sh $(PYTHON)

# --- run

.PHONY: demo
demo: $(VENV)/.run ## watch 200 mixed jobs go through a real RabbitMQ
	@$(BIN)/python -m examples.demo

.PHONY: bench
bench: setup ## measure the overhead per job and the memory
	@$(BIN)/python -m tests.bench.end_to_end

.PHONY: faults
faults: setup ## break everything around two daemons for SECONDS=60, by SEED=…, with JOBS=5000; CLUSTER=1 for three nodes
	@CONSUMER_TEST_EXAMPLES=$(or $(EXAMPLES),2000) $(PYTEST) --timeout 900 tests/faults/test_interleavings.py
	@CONSUMER_TEST_BURST=3000 $(PYTEST) tests/acceptance/test_retries.py
	@$(BIN)/python -m tests.faults.chaos --seconds $(or $(SECONDS),60) --jobs $(or $(JOBS),5000) \
	  $(if $(SEED),--seed $(SEED)) $(if $(CLUSTER),--cluster)

.PHONY: letters
letters: setup ## look at LETTERS=10000 dead letters and send them back to work, on a real broker and both databases
	@$(BIN)/python -m tests.faults.letters --letters $(or $(LETTERS),10000)

.PHONY: soak
soak: setup ## let JOBS=20000 misbehave in each sort of child, by SEED=…, under kills, and ROUNDS=500 of 5 MB results
	@$(BIN)/python -m tests.faults.pool_soak --jobs $(or $(JOBS),20000) --rounds $(or $(ROUNDS),500) \
	  $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.faults.io_soak --jobs $(or $(JOBS),20000) $(if $(SEED),--seed $(SEED))

# --- check

.PHONY: test
test: setup ## everything that must pass before a change goes in
	@$(MAKE) --jobs 2 gate-lint gate-types gate-imports gate-house gate-unit gate-chart
	@$(MAKE) gate-servers

.PHONY: gate-lint gate-types gate-imports gate-house gate-unit gate-chart gate-servers gate-broker
gate-lint:
	$(call stage,lint,bash -c '$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet .')
gate-types:
	$(call stage,types,$(BIN)/mypy)
gate-imports:
	$(call stage,imports,$(BIN)/lint-imports)
gate-house:
	$(call stage,house,$(PYTEST) tests/house)
gate-unit:
	$(call stage,unit,$(PYTEST) tests/unit)
gate-chart:
	$(call stage,chart,$(PYTEST) tests/chart)
# all that is left, so that no folder of tests can be forgotten
LEFT := --ignore tests/house --ignore tests/unit --ignore tests/chart
gate-servers:
	$(call stage,servers,$(TOGETHER) -m 'not quiet' $(LEFT))
	$(call stage,quiet,$(PYTEST) -m quiet $(LEFT))
# the rest of tests/integration meets databases and children only, as do the tests with the mark any_broker
MEETS_A_BROKER := tests/integration/test_broker_*.py tests/integration/test_support_rabbit.py tests/acceptance
gate-broker:
	$(call stage,broker,$(TOGETHER) -m 'not quiet and not any_broker' $(MEETS_A_BROKER))
	$(call stage,quiet,$(PYTEST) -m 'quiet and not any_broker' $(MEETS_A_BROKER))

.PHONY: unit
unit: $(VENV)/.test ## run the tests that need no server
	@$(PYTEST) tests/unit

.PHONY: integration
integration: setup ## run the tests on a real broker and a real database
	@$(PYTEST) tests/contract tests/integration

.PHONY: acceptance
acceptance: setup ## run the tests of the daemon as a subprocess
	@$(PYTEST) tests/acceptance

.PHONY: lint
lint: $(VENV)/.test ## look for mistakes and for imports that go the wrong way
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

.PHONY: types
types: $(VENV)/.test ## check the types
	@$(BIN)/mypy

.PHONY: format
format: $(VENV)/.test ## format the code, and fix what can be fixed
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

.PHONY: schemas
schemas: $(VENV)/.run ## write the JSON Schemas and the AsyncAPI document again
	@$(BIN)/python -m schemas.export

.PHONY: clean
clean: ## remove all that these commands made
	@rm -rf $(VENV) build dist *.egg-info .*_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
