# Every target builds .venv by itself; it needs Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread per process: with two, torch sometimes collapses on small machines.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo smoke check test slow lint docs dist wheels isolated format bench mutants chaos clean
.DEFAULT_GOAL := test

$(VENV)/.installed: $(wildcard packages/*/pyproject.toml) requirements-dev.txt constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-dev.txt
	touch $@

$(VENV)/.bench: $(VENV)/.installed benchmarks/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/requirements.txt
	touch $@

demo: $(VENV)/.installed ## what replay is, and GE, PM-ST and RAPO trained on a small graph: tables and figures
	$(BIN)/rapo demo --force
	rm -rf demo/smoke
	$(BIN)/rapo reproduce table1,mechanism --preset smoke --out demo/smoke

smoke: $(VENV)/.installed ## every study of the paper on one small graph
	rm -rf demo/all
	$(BIN)/rapo reproduce all --preset smoke --out demo/all

check: lint ## the quick loop: style, types, imports, and the tests that are not slow
	$(BIN)/python -m pytest -n 2 -m "not slow"

test: $(VENV)/.installed ## the whole test suite
	$(BIN)/python -m pytest -n 2

slow: $(VENV)/.installed ## measure every test, and list in tests/slow.txt those that check leaves out
	rm -f .pytest_cache/times.jsonl
	PYTHONPATH=tests/fixtures $(BIN)/python -m pytest -n 2 -p measured
	$(BIN)/python tests/fixtures/measured.py

lint: $(VENV)/.installed ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/fixtures/banned_names.py

docs: $(VENV)/.installed ## the site, built strictly, its notebooks run; it reads without a network: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: docs wheels ## the three wheels, as an index takes them, and the site in one file: dist/
	$(BIN)/python -m zipfile -c dist/rapo-docs.zip site

wheels: $(VENV)/.installed ## the three wheels: dist/
	rm -rf dist
	for package in core rl gate; do \
		$(BIN)/python -m build --no-isolation --wheel --outdir dist packages/$$package || exit 1; \
	done
	$(BIN)/twine check --strict dist/*.whl

isolated: wheels ## install each wheel into an empty environment of its own and try it
	$(BIN)/python tests/fixtures/isolated.py dist

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench ## figures against peers, interleaved, one thread
	NUMBA_NUM_THREADS=1 $(BIN)/python -m benchmarks

mutants: $(VENV)/.installed ## one wrong operator, number or condition at a time: do the tests notice? (hours)
	$(BIN)/python -m benchmarks mutants --strict

chaos: $(VENV)/.installed ## kill -9, lost replicas, restarted databases, hostile requests: 1,000 rounds
	$(BIN)/python -m chaos

clean:
	rm -rf $(VENV) site dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
