# gpuplan: `make plan` sets up and plans an example; `make test` sets up and runs every test.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
# Each locked set is installed once; the stamp is younger than the lock it was made from.
RUN_STAMP := .venv/.run-stamp
DEV_STAMP := .venv/.dev-stamp
# The tests of `gpuplan profile` need torch, in an environment of its own: its builds differ by Python.
TORCH_STAMP := .venv-torch/.stamp
TORCH_PYTHONS := $(TORCH_PYTHON) python3.11 python3.12 python3.13 python3
# What pyproject.toml bounds above: `make newest` takes the newest of these too.
BOUNDED := highspy mcp procrastinate pulp
JOB ?= examples/llama-3-8b.yaml

# Our own modules, compiled once: a process where Python may not keep what it compiles would do it again each time.
COMPILED = $(BIN)/python -m compileall -q api catalog gpuplan_client planner providers

# Where `make install` puts gpuplan for a service; what deploy/systemd and deploy/cron start stands there.
PREFIX ?= /opt/gpuplan

.PHONY: help install plan test newest chromium check lock catalogue bench bench-service docs audit readme fit accuracy clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

$(BIN)/uv: requirements-build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { echo "gpuplan needs Python 3.12 or newer; $(PYTHON) is older: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-build.txt
	@touch $@

$(RUN_STAMP): $(BIN)/uv requirements.txt pyproject.toml
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): $(RUN_STAMP) requirements-dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements-dev.txt
	@touch $@

$(TORCH_STAMP): requirements-torch.txt | $(RUN_STAMP)
	@for each in $(TORCH_PYTHONS); do \
	  rm -rf .venv-torch; \
	  $$each -m venv --without-pip .venv-torch 2>/dev/null || continue; \
	  $(BIN)/python -m pip --python .venv-torch/bin/python install --quiet --disable-pip-version-check -r requirements-torch.txt || continue; \
	  .venv-torch/bin/python -W ignore -c 'import torch' && touch $@ && exit 0; \
	done; echo "no Python here can install torch; name one: make TORCH_PYTHON=PATH $(MAKECMDGOALS)"; exit 1

plan: $(RUN_STAMP)  ## set up, then plan JOB (an example) on the embedded catalogue
	@$(COMPILED)
	$(BIN)/gpuplan plan $(JOB)

# The page is tested in a real browser: Debian's, installed where that is allowed; without it the tests skip and say so.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium >/dev/null; }; } \
	  || echo "NO CHROMIUM HERE and no way to install it: the tests of the page will be skipped; install Debian's package chromium"

test: check $(TORCH_STAMP) chromium  ## set up, check, and run every test
	@$(COMPILED)
	GPUPLAN_TORCH_PYTHON=$(CURDIR)/.venv-torch/bin/python $(BIN)/pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

newest: $(BIN)/uv $(TORCH_STAMP) chromium  ## run every test with the newest versions of all libraries, nothing locked or bounded
	rm -rf .venv-newest
	$(BIN)/python -m venv .venv-newest
	printf '%s\n' $(BOUNDED) > .venv-newest/overrides.txt
	$(BIN)/uv pip install --quiet --upgrade --python .venv-newest/bin/python --override .venv-newest/overrides.txt -e '.[dev]'
	$(BIN)/uv pip list --python .venv-newest/bin/python
	GPUPLAN_TORCH_PYTHON=$(CURDIR)/.venv-torch/bin/python .venv-newest/bin/pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

check: $(DEV_STAMP)  ## lint, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

install: $(BIN)/uv  ## install gpuplan with its locked dependencies into PREFIX (/opt/gpuplan), for a service
	$(PYTHON) -m venv $(PREFIX)
	$(BIN)/uv pip install --quiet --python $(PREFIX)/bin/python --require-hashes --compile-bytecode -r requirements.txt
	rm -rf build-output/wheel
	$(BIN)/uv build --quiet --wheel --no-build-isolation --out-dir build-output/wheel
	$(BIN)/uv pip install --quiet --python $(PREFIX)/bin/python --no-deps --reinstall --compile-bytecode build-output/wheel/gpuplan-*.whl
	$(PREFIX)/bin/gpuplan --help > /dev/null

lock: $(BIN)/uv  ## resolve the dependencies again and write the hash-locked requirements
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.12 pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.12 --extra dev -c requirements.txt pyproject.toml -o requirements-dev.txt

catalogue: $(DEV_STAMP)  ## build the embedded catalogue from the fact tables in ../shared/data
	$(BIN)/python -m catalog.build

bench: $(DEV_STAMP)  ## speed: planning, phases, explanations, portfolios, cold start, a full refresh, a year of them
	$(BIN)/python -m benchmarks.plan_speed
	$(BIN)/python -m benchmarks.phases
	$(BIN)/python -m benchmarks.explanations
	$(BIN)/python -m benchmarks.verify_speed
	$(BIN)/python -m benchmarks.buying
	$(BIN)/python -m benchmarks.portfolio 1
	$(BIN)/python -m benchmarks.cold_start
	$(BIN)/python -m benchmarks.refresh_speed
	$(BIN)/python -m benchmarks.year_of_refreshes

bench-service: $(DEV_STAMP)  ## the service: HTTP load, what access and telemetry cost, the page, fuzzed jobs, the longest plans
	$(BIN)/python -m benchmarks.http_load
	$(BIN)/python -m benchmarks.access_cost
	$(BIN)/python -m benchmarks.telemetry
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.catalogue_pages
	$(BIN)/python -m benchmarks.longest_plans
	$(BIN)/python -m benchmarks.fuzz

docs: $(DEV_STAMP)  ## build the documentation into build-output/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build-output/docs

audit: $(DEV_STAMP)  ## look the locked dependencies up among known vulnerabilities
	$(BIN)/pip-audit --require-hashes --disable-pip -r requirements.txt

readme: $(DEV_STAMP)  ## put the real output of its example into the README
	$(BIN)/python -m benchmarks.readme

fit: $(DEV_STAMP)  ## fit the constants of the time model to the measured runs, and write them down
	$(BIN)/python -m benchmarks.fit

accuracy: $(DEV_STAMP)  ## predicted against measured runs and memory, per source, task and accelerator
	$(BIN)/python -m benchmarks.accuracy
	$(BIN)/python -m benchmarks.memory_facts

clean:  ## remove what was set up
	rm -rf .venv .venv-newest .venv-torch .mypy_cache .ruff_cache .pytest_cache .hypothesis
