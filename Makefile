# `make` alone explains. Everything runs from .venv, which `make install` makes.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Each process begins with its part of the files and takes over from others when it is done. Tests wait for a web, a clock
# or a process, so there are three processes a core. Long ones and few do not.
STEAL  := --dist worksteal
MANY   := -n $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 3 ? 3 * n : 8))) $(STEAL)
LONG   := -n auto --maxprocesses 4 $(STEAL)
# What takes almost half of the time, and what few edits break: other servers, drivers and poolers, upgrades, packages,
# Scrapy, the laboratory, browsers, Prometheus and the site.
REST   := $(addprefix tests/,sql/test_drivers.py test_crawler.py docs/test_figures.py docs/test_site.py \
    docs/test_start.py) $(addprefix tests/worker/,lab cli/test_experiment.py cli/test_laboratory.py \
    model/test_compiled.py scrapy test_neighbour.py test_pgbouncer.py test_server_settings.py \
    urlfrontier/test_document.py $(addprefix view/test_,alerts.py browser.py prometheus.py simulated.py) \
    $(addprefix setup/test_,backup.py embedded.py failover.py replication.py upgrade.py wheel.py))
# What is compiled stays: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
# The code of this checkout, also if another checkout made .venv.
export PYTHONPATH := $(CURDIR)/worker:$(CURDIR)/tests

.DEFAULT_GOAL := help
.PHONY: help install demo test rest soak mutants fast golden docs picture figures experiments fixture lint types wheel bench psql clean

help:  ## Explain the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/recrawl: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "recrawl needs Python 3.11 or newer; say: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[server,urlfrontier]' --group dev
	@touch $@

install: $(BIN)/recrawl  ## Make .venv with recrawl and what its development needs

demo: install  ## Show it working: two weeks of a crawl within a minute, and what it is worth
	@$(BIN)/recrawl demo

test: install  ## Run the tests, on an embedded Postgres or on DATABASE_URL's server; or those of a path, with ARGS=tests/…
	$(BIN)/pytest $(MANY) -m "not bench and not soak" $(if $(findstring tests/,$(ARGS)),,$(addprefix --ignore=,$(REST))) $(ARGS)

rest: install  ## Run the tests that `make test` leaves out: other servers, upgrades, packages, Scrapy, the laboratory
	$(BIN)/pytest $(MANY) -m "not bench and not soak" $(REST) $(ARGS)

soak: install  ## Run what is long by nature: crashes, random crawls, closed loops, large webs
	RECRAWL_EXAMPLES=300 $(BIN)/pytest $(LONG) -m "soak or properties" $(ARGS)

mutants: install  ## Change sql/ and worker/ in small ways, at random, and see whether the tests fail: hours
	$(BIN)/python tests/mutants.py $(ARGS)

fast: install  ## Run, within a minute, what tells most after an edit
	$(BIN)/pytest $(LONG) -q -m "not bench and not soak" $(addprefix tests/sql/test_,house.py catalogue.py reference.py \
	    next_pages.py report.py leases.py objective.py) tests/worker/test_arrows.py $(ARGS)

picture: install  ## Draw docs/dashboard.png and its dark twin anew (needs chromium and chromium-driver)
	$(BIN)/python -m worker.view.picture docs

docs: install  ## Build the documents as a site in build/docs, and check their links
	@$(BIN)/python -m docs.site

figures: install  ## Draw the figures of docs/why.md anew
	$(BIN)/python -m docs.figures docs

experiments: install  ## Draw the figures of docs/experiments.md anew: minutes
	@for figure in docs/experiments/*.svg; do \
	    $(BIN)/recrawl experiment $$(basename $$figure .svg) --figure $$figure | tail -n 1; done

golden: install  ## Bring tests/golden and what documents show of recrawl up to date: look at the difference
	UPDATE_GOLDEN=1 $(BIN)/pytest -q -k "golden or reference_is or readme_of" tests/sql/test_reference.py tests/sql/test_tables.py \
	    tests/worker/setup/test_migrate.py
	UPDATE_GOLDEN=1 $(BIN)/pytest -q tests/worker/view/test_verdict.py
	UPDATE_GOLDEN=1 $(BIN)/pytest -q -k "results_that or help_of or from_nothing" tests/test_readme.py tests/docs/test_commands.py tests/docs/test_start.py

fixture: install  ## Dump a small crawl of this version into tests/fixtures, for the tests of upgrades
	$(BIN)/python -m worker.setup.fixture

lint: install  ## Check the style of the Python code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install  ## Check the types
	$(BIN)/mypy

wheel: install  ## Build the wheel and the source distribution into dist/
	$(BIN)/hatchling build --directory dist

bench: install  ## Measure the queue; prints one table of ratios to a bare UPDATE
	$(BIN)/python -m bench $(ARGS)

psql: install  ## Open psql on the crawl: DATABASE_URL's, else the embedded one
	@$(BIN)/recrawl psql

clean:  ## Remove what was built
	rm -rf $(VENV) dist build
