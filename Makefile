# Everything runs in a virtual environment of its own; VENV and PYTHON can be set from outside.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export HF_HUB_OFFLINE ?= 1
export ANONYMIZED_TELEMETRY ?= False

define RUN_NOTEBOOK
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, record_timing=False).execute()
nbformat.write(book, sys.argv[1])
endef
export RUN_NOTEBOOK

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench notebooks clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Install what the demo needs and route questions over the shipped documents
	$(BIN)/selfroute demo

test: $(VENV)/.test ## Install what the tests need and run them
	$(BIN)/python -m pytest

lint: $(VENV)/.lint ## Check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test ## Measure the overhead over the framework
	$(BIN)/python benchmarks/overhead_langchain.py

notebooks: $(VENV)/.test ## Run the notebooks and keep their outputs
	for path in notebooks/*.ipynb; do $(BIN)/python -c "$$RUN_NOTEBOOK" $$path; done

clean: ## Remove the virtual environment and what the tools left
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV); the first time takes a minute or two ..."
	$(INSTALL) --editable '.[cli]'
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV); the first time takes a minute or two ..."
	$(INSTALL) --editable '.[test]'
	@touch $@

$(VENV)/.lint: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable '.[test,lint]'
	@touch $@ $(VENV)/.test
