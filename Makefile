# `make` alone explains. Everything runs from .venv, which `make install` makes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help install demo test lint types wheel bench clean

help:  ## Explain the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/recrawl: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "recrawl needs Python 3.11 or newer; say: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[server]' --group dev
	@touch $@

install: $(BIN)/recrawl  ## Make .venv with recrawl and what its development needs

demo: install  ## Show it working: an embedded Postgres, a few URLs, SELECT * FROM next_pages(5)
	@$(BIN)/recrawl demo

test: install  ## Run the tests, on an embedded Postgres or on DATABASE_URL's server
	$(BIN)/pytest -n 4 -m "not bench" $(ARGS)

lint: install  ## Check the style of the Python code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install  ## Check the types
	$(BIN)/mypy

wheel: install  ## Build the wheel into dist/
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

bench: install  ## Measure the queue; prints one table of ratios to a bare UPDATE
	PYTHONPATH=tests $(BIN)/python -m bench $(ARGS)

clean:  ## Remove what was built
	rm -rf $(VENV) dist build
