# Two commands do all set-up on a machine with Python 3.11 and nothing else: `make demo` and `make test`.
# INDEX has the build of torch: the small one for processors, or another, such as https://download.pytorch.org/whl/cu130.
# Where it does not answer, or is empty, pip takes the build that it finds itself.
PYTHON ?= python3.11
INDEX ?= https://download.pytorch.org/whl/cpu
# Lock of the run time, with hashes: that of CPU wheels on Linux, or that of the registry's
LOCK ?= $(if $(and $(findstring whl/cpu,$(INDEX)),$(filter Linux,$(shell uname -s))),requirements-cpu.lock,requirements.lock)
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
COMPILE := $(BIN)/python -m compileall -qq -j 0 .venv/lib || true  # on all cores; pip takes one. Some packages ship templates

FLOWER := .flower.log
LOCKED := torch==2.13.0  # results are measured with it
NEWEST ?= flwr torch-geometric opacus cryptography
OLDEST := flwr==1.40.0 torch-geometric==2.8.0 opacus==1.6.0  # the lower ends of pyproject.toml
TRY = $(1)/bin/pip install --quiet --disable-pip-version-check --no-deps $(2) && OMP_NUM_THREADS=1 $(1)/bin/python -m pytest -q \
  -k "not sigterm" tests/contracts/test_door_exchange.py tests/deploy/superlink/test_guarded_superlink.py \
  tests/contracts/test_pyg_layers.py tests/client/privacy/test_dp_sgd.py

.PHONY: demo flower flower-stop test search quick oldest newest studies-test studies-smoke check check-form check-types check-rules ratchet docs \
  docs-serve links format lock sbom clean

demo: .venv/runtime  ## recommend next items by a whole federation on this machine
	$(BIN)/fedloom up --task sessions
	$(BIN)/fedloom recommend --user visitor-00003 --top 5

flower: .venv/dev  ## train in Flower's own simulation; fails if the run fails
	PATH="$(CURDIR)/$(BIN):$$PATH" FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1 RAY_ADDRESS=local \
	  flwr run . --federation-config 'num-supernodes=4' --run-config 'rounds=5' --stream 2>&1 | tee $(FLOWER)
	grep -q '^run completed' $(FLOWER)

flower-stop:  ## stop the SuperLink that `flwr run` leaves on this machine
	pkill -f 'flower-superlink --insecure --simulation'

test: .venv/dev  ## all tests, three at a time, since some wait; those that need a Docker engine or the real data say why they skip
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=30

search: .venv/dev  ## properties of Hypothesis on new random cases; `make test` has the same ones each time
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --hypothesis-profile=search -m hypothesis

studies-test: .venv/dev  ## all tests of the studies
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto studies/tests

studies-smoke: .venv/dev  ## pages follow from stored results, rows are valid configurations, all tests of the studies are found
	$(BIN)/python -m pytest -qq --collect-only studies/tests > /dev/null
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto studies/tests/harness studies/tests/*/test_*experiments.py studies/tests/lies studies/tests/speed/test_cost_model.py

quick: .venv/dev  ## all tests but slow ones (tests/slow.toml), in a minute on two cores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "not (slow or system or container or browser)"

CHECKS := check-form check-types check-rules docs
check: $(CHECKS)  ## format, lint, types, layers, house rules, documentation; `make -j2 check` uses two cores

check-form: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check-types: .venv/dev
	$(BIN)/mypy

check-rules: .venv/dev
	$(BIN)/lint-imports
	$(BIN)/python tools/check.py
	$(BIN)/python tools/ratchet.py

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

.venv/runtime: $(LOCK) pyproject.toml
	test -d .venv || $(PYTHON) -m venv .venv
	$(if $(INDEX),-$(PIP) --no-deps --retries 0 --index-url $(INDEX) $$(grep -o '^torch==[0-9.]*' $(LOCK)))
	$(PIP) -r $(LOCK)
	$(PIP) --no-deps -e .
	$(COMPILE)
	touch $@

.venv/dev: .venv/runtime requirements-dev.lock
	$(PIP) -r requirements-dev.lock
	$(COMPILE)
	touch $@

proto:  ## make the code of the door's frames anew; in CI nothing needs the compiler
	python3 -m venv .venv/proto && .venv/proto/bin/pip install -q grpcio-tools==1.75.1
	.venv/proto/bin/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. common/door/door.proto

.venv-oldest .venv-newest: .venv/dev  # for other versions of some packages, on top of .venv
	$(PYTHON) -m venv $@
	$(BIN)/python -c "import site; print('import site; site.addsitedir(%r)' % site.getsitepackages()[0])" \
	  > "$$($@/bin/python -c 'import site; print(site.getsitepackages()[0])')/below.pth"
	touch $@

oldest: .venv-oldest  ## what rests on Flower, PyTorch Geometric and Opacus, with the oldest of them
	$(call TRY,$<,$(OLDEST))

newest: .venv/dev  ## the same with what the registry has newer of NEWEST, caps ignored; may fail
	@newer="$$($(PIP) --dry-run --no-deps --upgrade --report - $(NEWEST) | $(BIN)/python -c 'import json, sys; \
	  print(*("==".join(one["metadata"][key] for key in ("name", "version")) for one in json.load(sys.stdin)["install"]))')"; \
	if [ "$$newer" ]; then echo "newest: $$newer"; $(MAKE) .venv-newest && $(call TRY,.venv-newest,--ignore-installed flwr $$newer); \
	else echo "newest: pip finds nothing newer than .venv has of $(NEWEST)"; fi

lock:  ## resolve pyproject.toml anew and write the lock files, with hashes
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet . $(LOCKED) && .venv-lock/bin/pip freeze --all --exclude fedloom --exclude pip > .venv-lock/runtime
	.venv-lock/bin/pip install --quiet '.[dev]' && .venv-lock/bin/pip freeze --all --exclude fedloom --exclude pip > .venv-lock/dev
	$(PYTHON) tools/locks.py .venv-lock/runtime .venv-lock/dev
	rm -rf .venv-lock

sbom: .venv/dev  ## list all installed packages with their licences in CycloneDX form, in sbom.json
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-file sbom.json $(BIN)/python

clean:
	rm -rf .venv build dist site
