# Two commands from a bare clone: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
export PYTHONHASHSEED := 0

.PHONY: demo test soak bench docs lint install clean

PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

install: .venv/installed

# what a user installs; the demo needs no more
.venv/default: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

.venv/installed: .venv/default
	$(PIP) -e ".[dev]"
	touch $@

demo: .venv/default
	$(BIN)/evenhand demo

lint: install
	$(BIN)/mkdocs build --strict --quiet --site-dir .venv/site
	$(BIN)/ruff check src tests benchmarks examples docs/results
	$(BIN)/ruff format --check src tests benchmarks examples docs/results
	$(BIN)/mypy
	$(BIN)/lint-imports

test: install lint
	$(BIN)/python -m pytest -m "not soak" -n 2

soak: install
	$(BIN)/python -m pytest -m soak -s --junitxml=.venv/soak.xml
	$(BIN)/evenhand bench --full
	$(BIN)/python benchmarks/ledger.py --postgresql own
	$(BIN)/python benchmarks/corrections.py --campaigns 200 --forged 2000
	$(BIN)/python benchmarks/pools.py
	$(BIN)/python benchmarks/unlabelled.py --json docs/results/unlabelled.json
	$(BIN)/python benchmarks/big_table.py --json docs/results/big-table.json
	$(BIN)/python benchmarks/random_groups.py --json docs/results/random-groups.json
	$(BIN)/python benchmarks/proofs.py

bench: install
	$(BIN)/evenhand bench

docs: install
	$(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv site build dist
