# Everything runs in a virtual environment of its own; VENV and PYTHON can be set from outside.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
# For Linux the usual index has torch with gigabytes of CUDA, and PyTorch's own one without.
CPU_TORCH := [ "$$(uname)" != Linux ] || $(INSTALL) --retries 0 --timeout 20 torch \
	--index-url https://download.pytorch.org/whl/cpu || echo "PyTorch's index does not answer: torch may bring CUDA"
VENV_OLDEST ?= .venv-oldest
# Those that are not there are left out; paths will do, too.
PYTHONS ?= python3.10 python3.11 python3.12 python3.13 python3.14
# Where one is, on the PATH or among those of pyenv; `$(PYTHON_AT) NAME` prints nothing if it is nowhere.
PYTHON_AT := sh -c '"$$0" -c "import sys; print(sys.executable)" 2> /dev/null || \
	ls -d "$${PYENV_ROOT:-$$HOME/.pyenv}/versions/$${0\#python}".*/bin/"$$0" 2> /dev/null | tail -n 1'
# What talks to `selfroute mcp`: packages of npm, of mcp 1, and one that shares an environment with ours.
CLIENTS := $(abspath $(VENV))/clients
# The versions that the wheel is tried with, on each of them; `make release CONSTRAINTS=` takes the newest.
CONSTRAINTS ?= constraints.txt
# In one process more than there are processors, in an order that is drawn each time; the first lines say how to draw it again.
PARALLEL := --numprocesses auto --dist worksteal
# Every example of each property.
WHOLE := --hypothesis-profile matrix
# Not with the oldest packages: what knows no framework, what the clients of today are needed for, and the commands.
NOT_OLDEST := $(addprefix tests/,$(addprefix caching/test_,flights.py providers.py) \
	command/% real/% $(addprefix core/test_,flow.py load.py typed.py) files/% $(addprefix hosts/test_,lengths.py nothing_more.py pages.py providers.py reach.py) \
	$(addprefix docs/test_,bulk_ray.py docs.py docstrings.py examples.py hybrid.py notebooks.py pictures.py) documents/test_rebuild.py \
	evaluation/% paper/% \
	languages/test_answerability.py support/% $(addprefix usage/test_,ledger_books.py telemetry.py))
OLDEST_TESTS := $(filter-out $(NOT_OLDEST),$(wildcard tests/*/test_*.py))
# Streams and agents: how a cancelled task ends, and what LangGraph hands to an awaited function, differ between Pythons.
AGENT_TESTS := $(addprefix tests/,core/test_hangup.py $(addprefix hosts/test_,lookup.py wires.py) \
	$(addprefix langchain/test_,bound.py composition.py middleware.py wires.py) \
	$(addprefix llamaindex/test_,agents.py leaving.py wires.py workflow.py))
export HF_HUB_OFFLINE ?= 1
export ANONYMIZED_TELEMETRY ?= False
# The tests start many processes, which take twice as long where each compiles again what it imports.
unexport PYTHONDONTWRITEBYTECODE

define RUN_NOTEBOOK
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, record_timing=False, coalesce_streams=True).execute()
nbformat.write(book, sys.argv[1])
endef
export RUN_NOTEBOOK

.DEFAULT_GOAL := help
.PHONY: help demo paper test test-matrix test-all test-real test-clients test-oldest test-pythons test-agents test-ray lint bench notebooks pictures docs dist release clean style mypy pyright imports

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Install what the demo needs and route questions over the shipped documents
	$(BIN)/selfroute demo

test: $(VENV)/.test ## Install what the tests need and run one case of each law
	$(BIN)/python -m pytest $(PARALLEL) -m "not matrix and not real"

test-matrix: $(VENV)/.test-all ## Run the rest: each pair of modes, clients and stores, notebooks, long properties
	$(BIN)/python -m pytest $(PARALLEL) -m "matrix or hypothesis" $(WHOLE)

test-all: $(VENV)/.test-all ## Run all tests, and measure what they cover
	$(BIN)/python -m pytest $(PARALLEL) -m "not real" $(WHOLE) --cov

test-real: $(VENV)/.test-real ## Run chains and engines against a small real model on loopback, for a minute or two
	$(BIN)/python -m pytest -m real tests/real

test-clients: $(VENV)/.clients ## Run `selfroute mcp` against clients in TypeScript and of mcp 1, in environments of their own; needs npm
	SELFROUTE_CLIENTS=$(CLIENTS) $(BIN)/python -m pytest tests/clients

test-oldest: $(VENV_OLDEST)/.test ## Run the tests with the oldest frameworks that we allow
	$(VENV_OLDEST)/bin/python -m pytest $(PARALLEL) -m "not matrix" $(OLDEST_TESTS)

test-pythons: $(VENV)/.release ## Run the tests of both frameworks on each Python that is there, on the PATH or in pyenv
	missing=; for name in $(PYTHONS); do \
		python="$$($(PYTHON_AT) $$name)" && [ -n "$$python" ] || { missing="$$missing $$name"; continue; }; \
		$(BIN)/uv venv --quiet --clear --python "$$python" $(VENV)/each && \
		$(BIN)/uv pip install --quiet --python $(VENV)/each \
			$(addprefix --constraint ,$(CONSTRAINTS)) --editable . --group test-frameworks && \
		echo "On $$name:" && \
		$(VENV)/each/bin/python -m pytest $(PARALLEL) -m "not matrix" $(TESTS) || exit 1; \
	done; [ -z "$$missing" ] || echo "MISSING here, and so not tried:$$missing"
test-pythons: TESTS ?= $(OLDEST_TESTS)

test-agents: ## Run the tests of streams and agents on each Python but the one of the other tests
	$(MAKE) test-pythons TESTS="$(AGENT_TESTS)" \
		PYTHONS="$(filter-out python$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'),$(PYTHONS))"

test-ray: $(VENV)/.ray ## Run the tests of examples/bulk_ray.py, which start and kill many processes for five minutes
	$(BIN)/python -m pytest tests/docs/test_bulk_ray.py

lint: $(VENV)/.lint ## Check style, types and who imports whom
	$(MAKE) --no-print-directory --jobs $(if $(filter output-sync,$(.FEATURES)),--output-sync) style mypy pyright imports

style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

mypy:
	$(BIN)/mypy --num-workers auto

pyright:
	$(BIN)/pyright --pythonpath $(BIN)/python

imports:
	$(BIN)/lint-imports

paper: $(VENV)/.torch ## Run the study of the papers on the shipped document, without a key, and draw its figures
	$(BIN)/python -m benchmarks.paper demo --k 5,1,10,20 --retriever all-MiniLM-L6-v2,bm25,tree --drop-closed-book --explain-declines --compare-based-only-on --figures paper

bench: $(VENV)/.test ## Count the bytecodes of a question, measure a service under load and the stores, try loaders, splitters and providers
	$(BIN)/python benchmarks/opcodes.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/stores.py
	$(BIN)/python benchmarks/loaders.py
	$(BIN)/python benchmarks/providers_table.py --check

notebooks: $(VENV)/.torch ## Run the notebooks and keep their outputs
	for path in notebooks/*.ipynb; do $(BIN)/python -c "$$RUN_NOTEBOOK" $$path; done

pictures: $(VENV)/.self ## Draw the pictures of README and home page again
	$(BIN)/python docs/pictures/draw.py

docs: $(VENV)/.docs ## Build the documentation in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(VENV)/.release ## Build wheels and sdists in dist/
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m build --outdir dist workbench
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/selfroute-*.whl
	$(BIN)/check-wheel-contents --config workbench/pyproject.toml dist/selfroute_workbench-*.whl
	for each in dist/*.tar.gz; do $(BIN)/pyroma --min 8 $$each || exit 1; done

release: dist ## Build them, and try each wheel with each extra alone on each Python that is there
	$(BIN)/python tests/release/check.py $(addprefix --constraint ,$(CONSTRAINTS)) dist $(PYTHONS)

clean: ## Remove the virtual environments and what the tools left
	rm -rf $(VENV) $(VENV_OLDEST) dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Dependency groups need a pip that knows them.
$(VENV)/.pip $(VENV_OLDEST)/.pip:
	[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.demo: pyproject.toml workbench/pyproject.toml constraints.txt | $(VENV)/.pip
	@echo "Installing into $(VENV), some 160 MB; the first time takes a minute or two ..."
	$(INSTALL) --editable . --editable workbench
	@touch $@

# The groups ask for extras of the project itself, which is then there.
$(VENV)/.self: pyproject.toml workbench/pyproject.toml constraints.txt | $(VENV)/.pip
	$(INSTALL) --editable . --editable './workbench[mcp]'
	@touch $@

$(VENV)/.test: $(VENV)/.self
	@echo "Installing into $(VENV), some 290 MB; the first time takes a minute or two ..."
	$(INSTALL) --group test
	@touch $@

$(VENV)/.test-all: $(VENV)/.test
	@echo "Installing torch, LanceDB and Milvus, too ..."
	@$(CPU_TORCH)
	$(INSTALL) --group test-all
	@touch $@

$(VENV)/.torch: $(VENV)/.test
	@$(CPU_TORCH)
	$(INSTALL) --group torch
	@touch $@

$(VENV)/.test-real $(VENV)/.ray: $(VENV)/.test
	$(INSTALL) --group $(@F:.%=%)
	@touch $@

$(VENV)/.clients: tests/clients/package-lock.json $(VENV)/.test $(VENV)/.release
	mkdir -p $(CLIENTS)
	cp tests/clients/package.json tests/clients/package-lock.json $(CLIENTS)
	npm ci --prefix $(CLIENTS) --no-audit --no-fund
	for name in mcp-1 llama-index; do $(BIN)/uv venv --quiet --clear --python $(BIN)/python $(CLIENTS)/$$name || exit 1; done
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/mcp-1 mcp==1.30.0 langchain-mcp-adapters==0.3.2
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/llama-index --editable . --editable './workbench[mcp]' \
		langchain-openai llama-index-tools-mcp==0.6.0
	@touch $@

$(VENV)/.lint: $(VENV)/.self
	@$(CPU_TORCH)
	$(INSTALL) --group test --group torch --group lint
	@touch $@ $(VENV)/.test $(VENV)/.torch

$(VENV_OLDEST)/.test: pyproject.toml requirements-oldest.txt | $(VENV_OLDEST)/.pip
	@echo "Installing into $(VENV_OLDEST); the first time takes a minute ..."
	$(VENV_OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		--requirement requirements-oldest.txt --editable '.[langchain,llamaindex]'
	@touch $@

$(VENV)/.docs $(VENV)/.release: $(VENV)/.self
	$(INSTALL) --group $(@F:.%=%)
	@touch $@
