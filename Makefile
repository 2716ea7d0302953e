# Two commands do all set-up on a machine with Python 3.11 and nothing else: `make demo` and `make test`.
# INDEX names an extra package index, for CPU-only or CUDA wheels of torch:
#   make demo INDEX=https://download.pytorch.org/whl/cpu
PYTHON ?= python3.11
INDEX ?=
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check $(if $(INDEX),--extra-index-url $(INDEX))

FLOWER := .flower.log

.PHONY: demo flower flower-stop test quick studies-test studies-smoke check ratchet docs docs-serve links format lock clean

demo: .venv/runtime  ## recommend next items by a whole federation on this machine
	$(BIN)/fedloom up --task sessions
	$(BIN)/fedloom recommend --user visitor-00003 --top 5

flower: .venv/dev  ## train in Flower's own simulation; fails if the run fails
	PATH="$(CURDIR)/$(BIN):$$PATH" FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1 \
	  flwr run . --federation-config 'num-supernodes=4' --run-config 'rounds=5' --stream 2>&1 | tee $(FLOWER)
	grep -q '^run completed' $(FLOWER)

flower-stop:  ## stop the SuperLink that `flwr run` leaves on this machine
	pkill -f 'flower-superlink --insecure --simulation'

test: .venv/dev  ## all tests; those that need a Docker engine or the real data say why they skip
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --durations=30

studies-test: .venv/dev  ## all tests of the studies
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto studies/tests

studies-smoke: .venv/dev  ## pages follow from stored results, rows are valid configurations; less than a minute
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto studies/tests/harness studies/tests/*/test_*experiments.py

quick: .venv/dev  ## all tests but slow ones (tests/slow.toml), in a minute on two cores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "not (slow or system or container or browser)"

check: .venv/dev  ## format, lint, types, layers, house rules, documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check.py
	$(BIN)/python tools/ratchet.py
	$(MAKE) --no-print-directory docs

ratchet: .venv/dev  ## compare the product's size, and walks through it, with the limits in tools/ratchet.toml
	$(BIN)/python tools/ratchet.py --walks

docs: .venv/dev  ## build the documentation into site/; a broken link fails
	$(BIN)/zensical build --clean --strict

docs-serve: .venv/dev  ## show the documentation while it is written
	$(BIN)/zensical serve

links:  ## ask the external links of the documentation; needs the internet
	$(PYTHON) docs/check_links.py

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/runtime: requirements.lock pyproject.toml
	test -d .venv || $(PYTHON) -m venv .venv
	$(PIP) -r requirements.lock
	$(PIP) --no-deps -e .
	touch $@

.venv/dev: .venv/runtime requirements-dev.lock
	$(PIP) -r requirements-dev.lock
	touch $@

lock:  ## resolve pyproject.toml anew and write both lock files
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet . && .venv-lock/bin/pip freeze --exclude fedloom | sed 's/+[a-z0-9]*$$//' > .venv-lock/runtime
	.venv-lock/bin/pip install --quiet '.[dev]' && .venv-lock/bin/pip freeze --exclude fedloom | sed 's/+[a-z0-9]*$$//' > .venv-lock/dev
	(echo "# Exact versions of everything fedloom needs at run time; made by \`make lock\`."; cat .venv-lock/runtime) > requirements.lock
	(echo "# What development and tests need besides requirements.lock; made by \`make lock\`."; echo "-r requirements.lock"; \
	  comm -13 .venv-lock/runtime .venv-lock/dev) > requirements-dev.lock
	rm -rf .venv-lock

clean:
	rm -rf .venv build dist site
