# Everything a new clone needs: `make demo`, `make test`, `make lint`, `make bench`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TESTS ?= tests
WORKERS ?= 2

.PHONY: demo test lint bench services clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "luthier needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP)  ## tune something real on this machine, in about a minute
	@$(BIN)/python examples/demo.py

services:  ## install the real services the tests use, where root and apt are at hand
	@sh tests/services.sh

test: $(STAMP) lint services  ## every check and every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q $(TESTS)

lint: $(STAMP)  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)  ## every benchmark; figures land in docs/benchmarks.md by hand
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
