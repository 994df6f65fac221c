# Every target works as the first command on a machine with only Python and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# Where this is set, each process that a test starts would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-deep test-long lint docs bench clean

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: $(VENV)/ready-test  ## optimise, compile, time and check one model
	$(BIN)/satura demo

test: $(VENV)/ready-test  ## the tests (minutes)
	$(PYTEST)

test-deep: $(VENV)/ready-test  ## what they leave out: large models, mutants, long proofs, more draws
	$(PYTEST) -m "deep or hypothesis" --hypothesis-profile=deep

test-long: $(VENV)/ready-test  ## thousands of new random programs, files and instances (hours, see CONTRIBUTING.md)
	$(PYTEST) -m "long or hypothesis" --hypothesis-profile=long -o faulthandler_timeout=0

lint: $(VENV)/ready-dev  ## ruff, ruff format and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(VENV)/ready-test  ## prove all rules and write the generated pages again (minutes)
	$(BIN)/python -m satura.commands.verdicts > rules/verdicts.json.new
	mv rules/verdicts.json.new rules/verdicts.json
	$(BIN)/python -m tests.reach > tests/reach.json.new
	mv tests/reach.json.new tests/reach.json
	$(BIN)/satura ops --markdown > docs/ops.md.new
	mv docs/ops.md.new docs/ops.md
	$(BIN)/python -m satura.commands.language_page > docs/language.md.new
	mv docs/language.md.new docs/language.md
	$(BIN)/satura rules --markdown > docs/rules.md.new
	mv docs/rules.md.new docs/rules.md
	$(BIN)/python -m tests.how_it_works > docs/how-it-works.md.new
	mv docs/how-it-works.md.new docs/how-it-works.md

bench: $(VENV)/ready-bench  ## time the benchmark models against onnxruntime and openvino
	$(BIN)/python -m benchmarks

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/ready-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[$*]'  # most is never imported
	touch $@
