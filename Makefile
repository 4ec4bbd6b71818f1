# make run   sets everything up and mines a small real graph
# make test  sets everything up and runs every check
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSION = $(shell sed -n 's/^version = "\([^"]*\)".*/\1/p' pyproject.toml)
IMAGE ?= edgemill
# Wheels alone, since the images have no compiler; one version of each package for every Python that pyproject.toml allows.
COMPILE = $(BIN)/uv pip compile --quiet --upgrade --universal --fork-strategy fewest --python-version 3.11 \
  --only-binary :all: --generate-hashes
# uv takes seconds for what takes pip more than a minute of one core, so pip installs it first where there is none. It
# reads settings of its own, so where it fails pip is tried. Bytecode is written for what is imported, which is a third.
UV_RELEASES := 'uv>=0.9,<1'
UV := $(or $(shell command -v uv),$(BIN)/uv)
INSTALL = { { test -x $(UV) || $(BIN)/pip install --quiet $(UV_RELEASES); } \
  && $(UV) pip install --quiet --python $(BIN)/python $(1); } || $(BIN)/pip install --quiet --no-compile $(1)
# Keeps the folders package/, kernels/, tasks/, pipeline/ from posing as top-level modules.
export PYTHONSAFEPATH := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Some images set it: each process would compile all that it imports anew, and pytest rewrite all tests.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.PHONY: help run test test-all faults systems lint types unit docs dist compiled lock images clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/'

run: $(VENV)/installed ## mine λ of the SNAP ego-Facebook graph into out/facebook
	$(BIN)/edgemill run configs/laptop.yaml --overwrite

# Two at a time: compiling kernels, mypy, and bytecode of the tests and of what they import. Processes of tests, which
# begin together, would each compile them. The first line takes as long as the next two. The last two keep two cores busy
# each, so that none idles at the end.
COMPILE_KERNELS = $(BIN)/edgemill warm
define BEFORE_TESTS
$(COMPILE_KERNELS) programs
$(BIN)/mypy
$(BIN)/pytest --collect-only --quiet --quiet >/dev/null 2>&1 || true
$(COMPILE_KERNELS) lambda
$(COMPILE_KERNELS) updates
endef
export BEFORE_TESTS

test: lint ## ruff, mypy, pytest without the slow tests
	@echo "$$BEFORE_TESTS" | xargs -P 2 -I '{}' bash -c '{}'
	@$(MAKE) --no-print-directory unit

test-all: lint types ## the same with the slow tests: every known graph, partition count and partitioner; hours, 16 GB
	$(BIN)/pytest -m 'not systems'

faults: $(VENV)/installed-dev ## every fault of docs/reliability.md, with the slow tests; the count of trials goes to out/faults.md
	$(BIN)/pytest tests/faults --trials out/faults.md

systems: $(VENV)/installed-dev ## runs on real systems (SLURM, Docker, Ceph, Prometheus), as root on Debian; the counts go to out/systems.md
	$(BIN)/pytest tests/systems -m systems --trials out/systems.md

lint: $(VENV)/installed-dev ## ruff, and the linters of what else runs: Dockerfile, Compose files, shell
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint docker/Dockerfile
	$(BIN)/shellcheck docker/*.sh $(wildcard tests/systems/*/*.sh)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker/compose*.yaml

types: $(VENV)/installed-dev ## mypy --strict
	$(BIN)/mypy

unit: $(VENV)/installed-dev ## pytest without the slow tests and the real systems, as many tests at a time as tests/conftest.py says
	$(BIN)/pytest -m 'not slow and not systems' --numprocesses auto --dist worksteal

docs: $(VENV)/installed-dev ## the pages of docs/, their tables made anew from the code, as a site in out/docs
	$(BIN)/python docs/making/reference.py
	$(BIN)/python docs/making/figures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(VENV)/installed-dev ## wheel and sdist of this version in dist/, made by the pinned builder
	rm -rf build dist
	PYTHON=$(BIN)/python docker/install.sh packages build/python docker/requirements-build.txt
	build/python/bin/python -m build --no-isolation --outdir dist
	$(BIN)/twine check --strict dist/*

# The packages are those of the images: compiled kernels serve one version of Numba alone.
compiled: dist ## beside these, a wheel with compiled kernels for the Python of .venv and this architecture
	PYTHON=$(BIN)/python docker/install.sh packages build/compiled docker/requirements-cpu.txt
	PYTHON=$(BIN)/python docker/install.sh wheel build/compiled dist/*-none-any.whl
	docker/install.sh kernels build/compiled
	EDGEMILL_KERNELS=build/compiled/share/edgemill/kernels build/python/bin/python -m build --no-isolation --wheel --outdir dist
	$(BIN)/twine check --strict dist/*

lock: $(VENV)/bin/python ## pin the packages of builder, images and their clients anew: docker/*.txt from pyproject.toml
	$(BIN)/pip install --quiet $(UV_RELEASES)
	$(BIN)/python -c 'import tomllib; print("build", *tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  | $(COMPILE) - --output-file docker/requirements-build.txt
	$(COMPILE) pyproject.toml --extra s3 --extra metrics --extra cu13 --extra ucxx-cu13 --output-file docker/requirements-gpu.txt
	$(COMPILE) pyproject.toml --extra s3 --extra metrics --constraint docker/requirements-gpu.txt --output-file docker/requirements-cpu.txt
	$(MAKE) --no-print-directory docker/constraints.txt

# Without hashes, which pip would ask for of every package, and of the project itself.
docker/constraints.txt: docker/requirements-cpu.txt
	{ echo '# The versions of the images, for clients: pip install --constraint docker/constraints.txt . (made by "make lock")'; \
	  sed -nE 's/^([a-z0-9._-]+==.*[^ ]) \\$$/\1/p' $<; } > $@

images: ## edgemill:VERSION-cpu and edgemill:VERSION-gpu, with Docker
	for target in cpu gpu; do \
	  docker build --file docker/Dockerfile --target $$target --tag $(IMAGE):$(VERSION)-$$target \
	    --label org.opencontainers.image.version=$(VERSION) .; \
	done

clean: ## remove the virtual environment, caches and results
	rm -rf $(VENV) out build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "edgemill needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

# The stamps: installed again only when pyproject.toml changes, since the install is editable.
$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(call INSTALL,--editable .)
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(call INSTALL,--editable '.[dev]')
	@touch $(VENV)/installed $@
