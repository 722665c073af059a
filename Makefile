# Everything a new clone needs: `make demo`, `make test`, `make lint`, `make bench`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
TESTS ?= tests
WORKERS ?= 2

.PHONY: demo test lint bench services clean

# What users install; the demo needs no more.
$(CORE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "luthier needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

# The tools of the tests and all extras as well.
$(DEV): $(CORE)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(CORE)  ## tune something real on this machine, in about a minute
	@$(BIN)/python examples/demo.py

services:  ## install the real services the tests use, where root and apt are at hand
	@sh tests/services.sh

test: $(DEV) lint services  ## every check and every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q $(TESTS)

lint: $(DEV)  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(DEV)  ## every benchmark; figures land in docs/benchmarks.md by hand
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
