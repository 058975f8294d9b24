# Ottla: `make up` shows it working, `make test` proves it. Everything lives in .venv, .ottla and .cache.
PYTHON ?= python3
PORT ?= 9092
HOST ?= 127.0.0.1
# More than one: a cluster with its ZooKeeper, on PORT and the following ones.
BROKERS ?= 1
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ottla-setup
# One worker for each of the two groups of Spark tests, two for all others: they often wait.
JOBS ?= 4
# Tests start the command and brokers a thousand times: where bytecode is forbidden, each would be compiled anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup up down status logs test test-quick test-slow test-tools check bench bench-against wheel docs clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml hatch_build.py $(wildcard src/ottla/kernel/*.pyx src/ottla/kernel/*.pxi src/ottla/kernel/*.h)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Ottla needs Python 3.11 or newer; $(PYTHON) is older: run make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed: on Debian run apt-get install python3-venv"; exit 1; }
	@tools/compiler $(BIN)/python || true
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check wheel  # an old pip complains without it
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup: $(STAMP)  ## create .venv with everything the other targets need

up: setup  ## start a broker in the background, or a cluster (BROKERS=3), show it and a pipeline on Spark at work
	@PATH="$(abspath $(BIN)):$$PATH" tools/broker up $(HOST) $(PORT) $(BROKERS)

down:  ## stop what make up started
	@PATH="$(abspath $(BIN)):$$PATH" tools/broker down

status:  ## is it running, and where
	@PATH="$(abspath $(BIN)):$$PATH" tools/broker status

logs:  ## follow its log
	@tools/broker logs

test-tools: setup
	@$(BIN)/python tools/fetch_test_tools.py

test: setup test-tools  ## lint, types, contracts and the default tests
	@$(MAKE) --no-print-directory check
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder -m "not slow" $(ARGS)

test-quick: setup  ## what stays in one process, in less than three minutes: units, simulations, the broker in process
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder -m quick $(ARGS)

test-slow: setup test-tools  ## the long runs: fuzzing, crash loops, big simulations
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder -m slow --timeout 3600 $(ARGS)

check: setup  ## ruff, mypy --strict, layer contracts
	@$(BIN)/ruff check --quiet src tests bench tools examples
	@$(BIN)/ruff format --quiet --check src tests bench tools examples
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

bench: setup  ## compare with Apache Kafka on this machine (ratios)
	@$(BIN)/python tools/fetch_jars.py || true
	@$(BIN)/python -m bench $(ARGS)

bench-against: setup  ## compare with another revision of Ottla, in turns (REV=main)
	@$(BIN)/python -m bench --against $(or $(REV),main) $(ARGS)

wheel: setup  ## dist/*.whl with the compiled kernel: installs without a compiler
	@rm -rf dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl | grep -v -e '-none-any' || { echo "The wheel has no kernel: it was built without a C compiler."; exit 1; }

docs: setup  ## generate the reference tables in docs/
	@$(BIN)/python tools/generate_config_docs.py
	@$(BIN)/python tools/generate_access_docs.py

clean: down  ## remove what the other targets made
	rm -rf $(VENV) .ottla .cache
