# Every word here works from a fresh clone, without a terminal, and is quick the second time.
#
# Two installs share one .venv: `run` and `bench` need only the runtimes ([local]), tests and
# checks also the tools ([local,dev]). Each has its stamp; the larger one counts for both.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000

BIN := .venv/bin
TURNS := simple_turn,pause_long,interrupt_early,backchannel_once,side_talk_in_answer,noisy_turn
export PYTHON

.PHONY: help setup run test check bench fuzz soak docs clean \
	install-run install-dev install-fuzz assets chromium interop

help: ## say what there is to make
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: install-dev assets ## .venv with the command omniduplex and all tools, and the models' weights

run: install-run assets ## serve the embedded model (HOST, PORT: 127.0.0.1, 8000)
	$(BIN)/omniduplex serve --host "$(HOST)" --port "$(PORT)"

test: setup chromium interop check ## everything: formatting, types, import contracts, all tests
	scripts/run_tests.sh

check: install-dev ## formatting, lint, types, import contracts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# Eight minutes: the turns are a few of those that `omniduplex bench turns` has.
bench: install-run assets ## latency, overhead, load and turn taking, as JSON in out/
	mkdir -p out
	$(BIN)/omniduplex bench latency --turns "$${BENCH_QUESTIONS:-20}" --json out/latency.json
	$(BIN)/omniduplex bench overhead --json out/overhead.json
	$(BIN)/omniduplex bench serve --concurrency "$${BENCH_CONCURRENCY:-1,8,32}" \
		--json out/serve.json
	$(BIN)/omniduplex bench turns --policy adaptive --voices "$${BENCH_VOICES:-slt}" \
		--scenarios "$${BENCH_SCENARIOS:-$(TURNS)}" --json out/turns.json

fuzz: install-fuzz ## every decoder for FUZZ_SECONDS (60), routes and events by the thousand
	$(BIN)/python -m tests.fuzz.run

soak: install-dev ## a thousand cuts and races, dead stages, a flood, SOAK_SESSIONS (100) for SOAK_MINUTES (60)
	mkdir -p out
	FAULTS="$${FAULTS:-1000}" $(BIN)/python -m pytest tests/faults \
		tests/reliability/test_stage_death.py tests/reliability/test_budgets.py
	$(BIN)/omniduplex bench flood --json out/flood.json
	$(BIN)/omniduplex bench soak --sessions "$${SOAK_SESSIONS:-100}" \
		--minutes "$${SOAK_MINUTES:-60}" --json out/soak.json

docs: install-dev ## write docs/errors.md, docs/wire.md and docs/api/ from types and docstrings
	$(BIN)/python -m scripts.generate_docs

clean: ## remove .venv, results and caches (not the models' weights)
	rm -rf .venv .venv-interop tests/interop/node/node_modules out build dist \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache .coverage
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

install-run:
	@scripts/install.sh local

install-dev:
	@scripts/install.sh local,dev

install-fuzz:
	@scripts/install.sh local,dev,fuzz

assets:
	@$(BIN)/omniduplex pull

chromium:
	@scripts/chromium.sh

interop: install-dev ## the real clients that tests run: .venv-interop, node_modules
	@scripts/interop.sh
