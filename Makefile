# `make demo` and `make test` need nothing but Python 3.11 or later; the rest is set up by them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
# Tests start hundreds of processes: without compiled modules each would compile the whole package again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
MINUTES ?= 5
.PHONY: help setup control-plane demo test test-quick test-oldest fuzz check docs bench manifests lock clean

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(STAMP) ## Make .venv with the command at .venv/bin/dovetail

$(STAMP): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; try: make PYTHON=python3.11 ..."; exit 1; }
	@echo "Setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes -r requirements-dev.lock
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

control-plane: setup ## Build the pinned Kubernetes binaries (minutes once, seconds after)
	@$(BIN)/dovetail control-plane build

demo: setup ## The same workload by the stock scheduler and with Dovetail, side by side
	@$(BIN)/dovetail demo

# Most tests wait, so the two runs have more processes than there are cores, a file of tests in one of them; the others
# give way. Files go in their order: else those of few tests come last, which are the longest. The control planes collect
# garbage less often: a sixth of their CPU for twice their memory (an API server: 0.85 GB).
SHARED := integration and not own_control_plane
PROCESSES := --dist loadfile --no-loadscope-reorder

test: control-plane check ## Everything: style, types, import contracts, and every test this machine can run
	@mkdir -p out
	@echo "Two runs at once: $(SHARED) is shown here; all other tests write to out/other-tests.log, which follows."
	@echo "What failed beside other work is run once more alone at the end, and only what fails there too fails."
	@export GOGC=400; \
		nice -n 5 $(BIN)/pytest -n 3 $(PROCESSES) -m "not ($(SHARED))" -o cache_dir=out/other-tests > out/other-tests.log 2>&1 & others=$$!; \
		$(BIN)/pytest -n 2 $(PROCESSES) -m "$(SHARED)" -o cache_dir=out/shared-tests tests/integration; shared=$$?; \
		wait $$others; others=$$?; \
		cat out/other-tests.log; \
		again() { echo "Once more, alone:"; $(BIN)/pytest -v --last-failed --last-failed-no-failures none -o cache_dir=$$1; }; \
		if [ $$others -eq 1 ]; then again out/other-tests; others=$$?; fi; \
		if [ $$shared -eq 1 ]; then again out/shared-tests; shared=$$?; fi; \
		exit $$((shared + others))

QUICK_OTHERS := tests/chart tests/docs tests/fuzz tests/lab tests/service/planner
QUICK := not integration and not chart and not kind and not traces and not slow

test-quick: setup ## The unit tests alone, in two to four minutes
	@mkdir -p out
	@echo "Left out: what needs a control plane, helm, kind or the workload traces, and what is slow. make test runs all."
	@$(BIN)/pytest -q -m "$(QUICK)" $(QUICK_OTHERS) -p no:cacheprovider > out/other-tests.log 2>&1 & others=$$!; \
		$(BIN)/pytest -q -m "$(QUICK)" tests/service --ignore tests/service/planner; service=$$?; \
		wait $$others; others=$$?; \
		echo "The tests of $(QUICK_OTHERS):"; cat out/other-tests.log; \
		exit $$((service + others))

check: setup ## Style, types and import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

test-oldest: setup ## The integration tests on the oldest pinned Kubernetes
	@$(BIN)/dovetail control-plane build --kubernetes 1.34
	@$(BIN)/pytest -m integration --kubernetes 1.34

fuzz: setup ## Draw new examples of every property, for MINUTES=5, from SEED=7 or a fresh one; docs/developing/fuzz.md
	@$(BIN)/python -m tests.fuzz --hypothesis --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

docs: setup ## Build the documentation's site into out/site; a broken link is an error
	@$(BIN)/mkdocs build --strict --quiet

bench: control-plane ## Time the verbs, the planner, the simulator and a real cluster; the ranking rules on the traces
	@$(BIN)/dovetail bench

manifests: setup ## Render manifests/ from the chart, with the pinned helm (built once)
	@$(BIN)/python -m charts.render

lock: ## Pin every dependency by hash
	@$(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install --quiet uv
	$(VENV)-lock/bin/uv pip compile --quiet --universal --fork-strategy fewest --generate-hashes --no-emit-index-url --no-emit-find-links \
		--python-version 3.11 --custom-compile-command "make lock" pyproject.toml -o requirements.lock
	$(VENV)-lock/bin/uv pip compile --quiet --universal --fork-strategy fewest --generate-hashes --no-emit-index-url --no-emit-find-links \
		--python-version 3.11 --custom-compile-command "make lock" --extra dev -c requirements.lock \
		pyproject.toml -o requirements-dev.lock
	@rm -rf $(VENV)-lock

clean: ## Remove .venv and out/ with its reports (the binaries' cache stays)
	@rm -rf $(VENV) out
