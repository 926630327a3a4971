# What a person does in this checkout. `make` alone lists it.
# A fresh machine needs Python 3.11 or newer and make: each target builds the environment that it runs in.

PYTHON ?= python3
VENV ?= .venv
FUZZ_SECONDS ?= 30
CRASH_ROUNDS ?= 100

BIN = $(VENV)/bin
READY = $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo build bundle fmt lint types floors test slow clients crash fuzz bench docs check clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' Makefile

setup: $(READY) ## build the environment in .venv

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("casnap needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(READY) ## checkpoint a copy of a real tree, break it, put it back, prove it
	$(BIN)/python docs/tutorial/demo.py

build: $(READY) ## source distribution and wheel, in dist/
	$(BIN)/python -m build --outdir dist

bundle: $(READY) ## installer for machines without a network, in dist/
	$(BIN)/python .ci/bundle.py dist

fmt: $(READY) ## rewrite the code in the house format, the option tables of the documentation and the manual page
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	PYTHONPATH=tests $(BIN)/python -m support.options
	PYTHONPATH=tests $(BIN)/python -m support.keys
	PYTHONPATH=tests $(BIN)/python -m support.man

lint: $(READY) ## find faults of style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## check the types
	$(BIN)/mypy

floors: $(READY) ## check which room may import, write and read what
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q tests/meta/test_floors.py

test: $(READY) ## run the tests, but those that kill, copy big trees, install, or try a fault in every place
	$(BIN)/pytest -n auto --dist loadfile -m "not slow"

slow: $(READY) ## run the tests that make test leaves out
	$(BIN)/pytest -n auto --dist worksteal -m slow

clients: $(READY) ## fetch real coding agents, and run each against a model on loopback
	CASNAP_REAL_CLIENTS=1 $(BIN)/pytest tests/real_clients

crash: $(READY) ## kill casnap again and again, and look at what is left
	CASNAP_CRASH_ROUNDS=$(CRASH_ROUNDS) $(BIN)/pytest -n auto tests/crash

fuzz: $(READY) ## feed damaged bytes to the parsers, 30 seconds to each (FUZZ_SECONDS)
	$(BIN)/python -m fuzz.run --seconds $(FUZZ_SECONDS)

bench: $(READY) ## casnap beside git, restic, borg and others; make bench SIZE=1000 takes two minutes (ROWS, PEERS, BENCH)
	PYTHONPATH=tests $(BIN)/python -m bench.run $(if $(SIZE),--size $(SIZE)) $(if $(ROWS),--rows $(ROWS)) $(if $(PEERS),--peers $(PEERS)) $(BENCH)

docs: $(READY) ## check the links and the names that the documentation mentions
	$(BIN)/pytest -q tests/meta/test_docs.py tests/unit/test_codec_docs.py tests/unit/test_format_vectors.py

check: lint types floors docs ## everything that looks at the source without running it

clean: ## remove what these targets made, the environment too
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find casnap fuzz tests -name __pycache__ -exec rm -rf {} +
