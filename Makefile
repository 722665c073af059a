# Everything a new clone needs: `make demo`, `make test`, `make lint`, `make bench`, `make torture`, `make audit`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
TESTS ?= tests
WORKERS ?= 2

PIP := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: demo test torture lint audit lock bench services clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "luthier needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# What users install; the demo needs no more.
$(CORE): pyproject.toml | $(BIN)/python
	$(PIP) -e .
	@touch $@

# The tools of the tests and all extras as well, in the versions of the lock file and with its hashes.
$(DEV): requirements.lock pyproject.toml | $(BIN)/python
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $(CORE) $@

demo: $(CORE)  ## tune something real on this machine, in about a minute
	@$(BIN)/python examples/demo.py

services:  ## install the real services the tests use, where root and apt are at hand
	@sh tests/services.sh

test: $(DEV) lint services  ## every check and every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q $(TESTS)

torture: $(DEV) services  ## kills, fuzzing, flipped bytes, many programs: about an hour
	LUTHIER_TORTURE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q $$(grep -rlE 'from tests.torture import' tests)
	$(BIN)/python -m benchmarks.kill

audit: $(DEV)  ## known vulnerabilities in what is installed (asks the package index)
	$(BIN)/python -m venv $(VENV)/audit
	$(VENV)/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	$(VENV)/audit/bin/pip-audit --disable-pip --require-hashes -r requirements.lock

lock: $(BIN)/python  ## newest versions of everything, with hashes, for all supported versions of Python
	$(BIN)/python -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check uv
	$(VENV)/lock/bin/uv pip compile --quiet --universal --upgrade --generate-hashes --no-annotate --no-header \
		--python-version 3.11 --extra dev pyproject.toml -o requirements.lock

lint: $(DEV)  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(DEV)  ## every benchmark; figures land in docs/benchmarks.md by hand
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
