# gpuplan: `make plan` sets up and plans an example; `make test` sets up and runs every test.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
# Each locked set is installed once; the stamp is younger than the lock it was made from.
RUN_STAMP := .venv/.run-stamp
EXTRAS_STAMP := .venv/.extras-stamp
DEV_STAMP := .venv/.dev-stamp
# The tests of `gpuplan profile` need torch, in an environment of its own: its builds differ by Python.
TORCH_STAMP := .venv-torch/.stamp
TORCH_PYTHONS := $(TORCH_PYTHON) python3.11 python3.12 python3.13 python3
# What pyproject.toml bounds above: `make newest` takes the newest of these too.
BOUNDED := highspy mcp procrastinate pulp
JOB ?= examples/llama-3-8b.yaml

# Our own modules, compiled once: a process where Python may not keep what it compiles would do it again each time.
COMPILED = $(BIN)/python -m compileall -q src/gpuplan/*.py src/gpuplan/*/

# Where `make install` puts gpuplan for a service; what deploy/systemd and deploy/cron start stands there.
PREFIX ?= /opt/gpuplan

.PHONY: help install plan extras test test-fast fuzz newest chromium client check lint types lock facts catalogue bench docs audit readme fit accuracy prices clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

$(BIN)/uv: requirements-build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { echo "gpuplan needs Python 3.12 or newer; $(PYTHON) is older: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-build.txt
	@touch $@

$(RUN_STAMP): $(BIN)/uv requirements.txt pyproject.toml
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(EXTRAS_STAMP): $(RUN_STAMP) requirements-all.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements-all.txt
	@touch $@

$(DEV_STAMP): $(RUN_STAMP) requirements-dev.txt clients/python/pyproject.toml
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements-dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e clients/python
	@touch $@

$(TORCH_STAMP): requirements-torch.txt | $(BIN)/uv
	@for each in $(TORCH_PYTHONS); do \
	  rm -rf .venv-torch; \
	  $$each -m venv --without-pip .venv-torch 2>/dev/null || continue; \
	  $(BIN)/uv pip install --quiet --python .venv-torch/bin/python --compile-bytecode -r requirements-torch.txt || continue; \
	  .venv-torch/bin/python -W ignore -c 'import torch' && touch $@ && exit 0; \
	done; echo "no Python here can install torch; name one: make TORCH_PYTHON=PATH $(MAKECMDGOALS)"; exit 1

plan: $(RUN_STAMP)  ## set up, then plan JOB (an example) on the embedded catalogue
	@$(COMPILED)
	$(BIN)/gpuplan plan $(JOB)

extras: $(EXTRAS_STAMP)  ## install what `gpuplan[all]` adds: cloud SDKs, the service, Slack, MCP

# The page is tested in a real browser: Debian's, installed where that is allowed; without it the tests skip and say so.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium >/dev/null; }; } \
	  || echo "NO CHROMIUM HERE and no way to install it: the tests of the page will be skipped; install Debian's package chromium"

# Torch is installed beside the rest. Types take a minute and a half of one core: they are checked in what the tests leave
# of both, and said last.
test:  ## set up, check, and run every test
	@$(MAKE) --no-print-directory -j2 lint $(TORCH_STAMP) chromium
	@$(COMPILED)
	@mkdir -p build-output
	@nice -n 10 $(MAKE) --no-print-directory types > build-output/types.txt 2>&1 & types=$$!; trap "kill $$types 2>/dev/null" EXIT; \
	GPUPLAN_TORCH_PYTHON=$(CURDIR)/.venv-torch/bin/python $(BIN)/pytest -n 2 --dist loadgroup $(PYTEST_ARGS); tested=$$?; \
	wait $$types; typed=$$?; cat build-output/types.txt; \
	[ $$typed = 0 ] || echo "make types FAILED beside the tests: see above"; \
	[ $$tested = 0 ] || echo "the tests FAILED: see above what make types says"; \
	[ $$tested = 0 ] && exit $$typed || exit $$tested

test-fast: $(DEV_STAMP)  ## unit tests of the packages that differ from main, or of LAYER (catalog, providers, planner, api)
	@$(COMPILED)
	$(BIN)/python -m tests.fast $(LAYER)

# Draws that fail are kept in .hypothesis and drawn first the next time.
fuzz: $(DEV_STAMP)  ## draw other examples at random for every property; LAYER for one layer
	$(BIN)/pytest -n 2 -m hypothesis --hypothesis-profile=fuzz $(if $(LAYER),tests/$(LAYER)) $(PYTEST_ARGS)

newest: $(BIN)/uv $(TORCH_STAMP) chromium  ## run every test with the newest versions of all libraries, nothing locked or bounded
	rm -rf .venv-newest
	$(BIN)/python -m venv .venv-newest
	printf '%s\n' $(BOUNDED) > .venv-newest/overrides.txt
	$(BIN)/uv pip install --quiet --upgrade --python .venv-newest/bin/python --override .venv-newest/overrides.txt -e '.[dev]' -e clients/python
	$(BIN)/uv pip list --python .venv-newest/bin/python
	GPUPLAN_TORCH_PYTHON=$(CURDIR)/.venv-torch/bin/python .venv-newest/bin/pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

client: $(DEV_STAMP)  ## generate the blocking half of the HTTP client and its types of answers
	$(BIN)/python -m tools.generate_client

check: lint types  ## lint, types, import directions, retired names

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.retired_names

types: $(DEV_STAMP)
	$(BIN)/mypy
	$(BIN)/lint-imports

install: $(BIN)/uv  ## install gpuplan[all] with its locked dependencies into PREFIX (/opt/gpuplan), for a service
	$(PYTHON) -m venv $(PREFIX)
	$(BIN)/uv pip install --quiet --python $(PREFIX)/bin/python --require-hashes --compile-bytecode -r requirements-all.txt
	rm -rf build-output/wheel
	$(BIN)/uv build --quiet --wheel --no-build-isolation --out-dir build-output/wheel
	$(BIN)/uv pip install --quiet --python $(PREFIX)/bin/python --no-deps --reinstall --compile-bytecode build-output/wheel/gpuplan-*.whl
	$(PREFIX)/bin/gpuplan --help > /dev/null

LOCK = $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.12

lock: $(BIN)/uv  ## resolve the dependencies again and write the hash-locked requirements: base, [all], [dev]
	$(LOCK) pyproject.toml -o requirements.txt
	$(LOCK) --extra all -c requirements.txt pyproject.toml -o requirements-all.txt
	$(LOCK) --extra dev -c requirements-all.txt pyproject.toml -o requirements-dev.txt

# Collected tables of prices and runs, which become facts of the repository.
FROM ?= ../shared/data

facts: $(DEV_STAMP)  ## take newer collected prices and runs of FROM (../shared/data) into the facts of the repository
	$(BIN)/python -m tools.catalogue_build.import_facts $(FROM)
	$(BIN)/python -m tools.fitting.import_runs $(FROM)/runs

catalogue: $(DEV_STAMP)  ## build the embedded catalogue from the facts in catalog/data/facts
	$(BIN)/python -m tools.catalogue_build

bench: $(DEV_STAMP)  ## speed: planning, phases, explanations, portfolios, cold start, the page, HTTP, a year of refreshes
	$(BIN)/python -m tools.benchmarks.plan_speed
	$(BIN)/python -m tools.benchmarks.phased_plans
	$(BIN)/python -m tools.benchmarks.explanations
	$(BIN)/python -m tools.benchmarks.verify_speed
	$(BIN)/python -m tools.benchmarks.procurement
	$(BIN)/python -m tools.benchmarks.portfolio 1
	$(BIN)/python -m tools.benchmarks.cold_start
	$(BIN)/python -m tools.benchmarks.page_speed
	$(BIN)/python -m tools.benchmarks.http_load
	$(BIN)/python -m tools.benchmarks.year_of_refreshes

docs: $(DEV_STAMP)  ## build the documentation into build-output/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build-output/docs

audit: $(DEV_STAMP)  ## look the locked dependencies up among known vulnerabilities
	$(BIN)/pip-audit --require-hashes --disable-pip -r requirements-all.txt

readme: $(DEV_STAMP)  ## put the real output of its example into the README
	$(BIN)/python -m tools.benchmarks.readme

fit: $(DEV_STAMP)  ## fit the constants of the time model to the measured runs, and write them down
	$(BIN)/python -m tools.fitting.fit

prices: $(DEV_STAMP)  ## fit expected spot prices to price pairs, score them on regions left out, and write them down
	$(BIN)/python -m tools.fitting.spot_drift

accuracy: $(DEV_STAMP)  ## predicted against measured runs and memory, per source, task and accelerator
	$(BIN)/python -m tools.fitting.accuracy
	$(BIN)/python -m tools.fitting.memory_facts

clean:  ## remove what was set up
	rm -rf .venv .venv-newest .venv-torch .mypy_cache .ruff_cache .pytest_cache .hypothesis
