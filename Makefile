# The project's commands; `make help` lists them. Each makes sure of the virtual environment first.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-runtime web-setup page page-wheel page-driver page-test demo run sandbox play web web-test test slow exhaustive gameday ray-test fuzz check bench certify mutants wheel certified changes protos proto-baseline contract sdk drift lint breaking ruff types format lock clean

PYTHON ?=
ARGS ?=
TESTS ?=
WORKERS ?= 2
SECONDS ?= 60
ROUNDS ?= 10000000
DECKS ?= 10000000
SIGN ?=
OUT ?=

PY := .venv/bin/python
BUF := .venv/bin/buf
# Each process begins with a half of the tests, in their order: what a module has set up is set up once.
# With bytecode: each process that a test begins would read all of the source anew, and each worker every test.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest -n $(WORKERS) --dist worksteal
QUICK := not slow and not slow_exhaustive
# The tests that reach every line of rng and rgs.core, and few others: the rest runs the same lines a thousand times over,
# and tracing doubles its time. Two passes, for a value cached by a test that is not traced is not made anew.
MEASURED := $(addprefix tests/unit/,certification/audit core rng tlog) \
  $(wildcard tests/integration/test_recover_*.py) $(addprefix tests/integration/,test_table_rounds_twice.py \
  test_reconcile_evening.py test_reconcile_free_bets.py) tests/unit/certification/test_table_returns.py \
  $(addprefix tests/unit/service/,admin/test_recovery_planned.py \
  $(addprefix play/,test_free_bets.py test_limits.py test_read_afresh.py test_seamless.py))
SKIPS := .venv/skipped-tests
SOURCES := $(wildcard rng rgs certification examples bench tests tools)
PROTOS := $(shell find protos -name '*.proto' 2>/dev/null)

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Variables:'
	@echo '  ARGS="..."      passed on to the command of demo, run, sandbox, play, test, exhaustive, fuzz, bench, mutants and lock'
	@echo '  TESTS="..."     test these files or node ids only (no coverage gate), e.g. TESTS=tests/unit'
	@echo '  WORKERS=2       test processes'
	@echo '  SECONDS=60      how long fuzz goes on with each parser and with the RPCs'
	@echo '  ROUNDS=10000000 rounds that certify simulates of each kind of ruleset'
	@echo '  DECKS=10000000  decks of the longest shuffle battery that certify runs'
	@echo '  OUT=folder      where contract writes to'
	@echo '  SIGN="..."      whose key signs what certify makes: --home DIR or --signing-key FILE'
	@echo '  PYTHON=...      the Python that makes .venv (3.11 to 3.13; found by itself)'

setup: ## Make .venv from the locked requirements, those of tests and certify too; nothing to do when it is up to date
	@PYTHON='$(PYTHON)' sh tools/set_up.sh dev

# What serving needs, a fifth of it all: tests and the certification add the rest where they are asked for.
setup-runtime:
	@PYTHON='$(PYTHON)' sh tools/set_up.sh runtime

demo: setup-runtime ## Play between misbehaving peers, replay, reconcile and audit it, show what is proved
	$(PY) -m rgs demo $(ARGS)

run: setup-runtime ## Serve, with the development set-up (made at the first start)
	$(PY) -m rgs serve $(ARGS)

sandbox: setup-runtime ## Server, wallet and two operators for whoever writes a client (docs/sandbox.md); Ctrl-C ends it
	$(PY) -m rgs sandbox $(ARGS)

play: setup-runtime ## Play by hand against a running server
	$(PY) -m rgs play $(ARGS)

web-setup: setup-runtime
	@sh tools/set_up_web.sh

page: setup-runtime ## Build the operator's page: Node of this machine (from 20.19 on), or of a wheel where there is none
	@sh tools/build_page.sh

page-wheel: setup ## Build the page into a wheel of its own (dist/), and say its SHA-256 and that of verify.html
	$(PY) -m tools.page_wheel

page-driver: setup-runtime
	@sh tools/build_page.sh --tests

page-test: setup web-setup page page-driver ## Test the operator's page in Chromium, with a real game server
	$(PYTEST) --dist loadfile $(wildcard tests/web/test_page_*.py) $(ARGS)

web: web-setup page ## Game server, test regulator, wallet and platform with the page; prints the address of the lobby
	$(PY) examples/operator/start.py $(ARGS)

# Tests of the page are skipped where `make page-test` has not yet built the page and brought what drives Chromium.
web-test: setup web-setup ## Test the reference operator with a real game server, page included
	$(PYTEST) --dist loadfile tests/web $(ARGS)

test: setup ## All tests but the slow and the exhaustive; branch coverage of rng and rgs.core must be 100 %
ifeq ($(TESTS),)
	@rm -f $(SKIPS)
	RGS_SKIPS=$(SKIPS) $(PYTEST) $(MEASURED) -m '$(QUICK)' --cov --cov-report=term-missing:skip-covered $(ARGS)
	RGS_SKIPS=$(SKIPS) $(PYTEST) $(MEASURED:%=--ignore=%) --ignore=tests/web -m '$(QUICK)' $(ARGS)
	@$(PY) -m tests.support.skips $(SKIPS)
else
	$(PYTEST) $(TESTS) $(ARGS)
endif

slow: setup ## Slow evidence: planted software, crash lives, the laboratory, whole demos (minutes)
	$(PYTEST) --ignore=tests/gamedays -m 'slow and not slow_exhaustive' --timeout 600 $(ARGS)

exhaustive: setup ## Slow evidence, and whole spaces, of which `make test` and `make slow` take samples (an hour)
	$(PYTEST) --ignore=tests/gamedays -m 'not ($(QUICK))' --timeout 600 $(ARGS)

# One after the other, for each prints what it does while it does it. AGAIN=yes runs those that failed the last time.
gameday: setup ## Break a real house on purpose, print the transcripts (docs/game-days.md); ARGS="full_disk" for one day
	RGS_GAMEDAYS=$(or $(OUT),var/game-days) $(PY) -m pytest -q -n 0 -s -o cache_dir=.pytest_cache/gamedays --timeout 600 tests/gamedays $(if $(ARGS),-k '$(ARGS)') $(if $(AGAIN),--last-failed --last-failed-no-failures none)

# Ray is large, and nothing else needs it: it stands beside .venv, which it does not change.
.venv-ray/set-up: requirements/ray.txt | setup
	@rm -rf $(@D)
	$(PY) -m pip install -q --disable-pip-version-check --no-input --require-hashes --only-binary :all: --target $(@D) -r $<
	@touch $@

ray-test: .venv-ray/set-up ## The engines of `certify` on a cluster of Ray with two nodes
	PYTHONPATH=.venv-ray $(PY) -m pytest -q -n 0 -k ray tests/unit/certification/audit/test_engines.py tests/unit/certification/test_engines_of_commands.py $(ARGS)

fuzz: setup ## Fuzz every RPC and every parser, each for SECONDS (default 60), under printed seeds
	FUZZ_SECONDS=$(SECONDS) $(PYTEST) tests/fuzz --timeout 0 $(ARGS)

check: setup drift lint breaking changes ruff types slow test ## Everything that continuous integration checks; tests last

drift: setup
	$(PY) tools/protos.py drift

lint: setup
	$(if $(PROTOS),$(BUF) lint protos)

# Fails closed: a contract without a baseline is a contract without a gate.
breaking: setup
ifneq ($(PROTOS),)
	@test -f protos/baseline.binpb || { echo 'protos/baseline.binpb is missing: make proto-baseline' >&2; exit 1; }
	$(BUF) breaking protos --against protos/baseline.binpb
endif

# Touching generator, games or returns is a MAJOR change: each file is named, and the change log has to tell of it.
changes: setup
	$(PY) -m tools.changes

ruff: setup
	$(PY) -m ruff check $(SOURCES)
	$(PY) -m ruff format --check $(SOURCES)

types: setup
	$(PY) -m mypy $(SOURCES)

format: setup ## Format the code and mend what can be mended safely
	$(PY) -m ruff check --fix $(SOURCES)
	$(PY) -m ruff format $(SOURCES)

bench: setup ## Measure, as ratios within one run
	$(PY) -m bench $(ARGS)

# A mutant that nobody has explained fails the dossier, which lists it: it does not keep it from being made.
certify: setup exhaustive ## What a test lab runs and reads: exhaustive tests, planted defects, then the whole certification as a signed bundle (docs/dossier.md)
	-$(PY) -m tools.mutants --part certified --workers $(WORKERS)
	$(PY) -m certification dossier --resume --rounds $(ROUNDS) --decks $(DECKS) $(SIGN) || [ $$? -eq 3 ] # incomplete, and says so

mutants: setup ## Plant small defects, and list those that no test sees; ARGS="--part certified", or many hours (docs/mutation.md)
	$(PY) -m tools.mutants --resume --workers $(WORKERS) $(ARGS)

wheel: setup ## Build dist/rgs-*.whl, the same bytes from the same files everywhere, and say its SHA-256
	$(PY) tools/wheel.py

certified: setup ## Take the tree as what is certified now (certification/certified.json): at a release
	$(PY) -m tools.changes --certify

protos: setup ## Generate the code of rgs/v1, rgs/wallet and rgs/regulator from protos/
	$(PY) tools/protos.py generate

contract: setup ## Write the whole contract into a new folder, Google's files too, for clients in other languages: OUT=folder
	@test -n '$(OUT)' || { echo 'make contract OUT=folder' >&2; exit 2; }
	@$(PY) tools/protos.py contract '$(OUT)'

# Each package below sdk/typescript, by its own lock file. The tests that hold them against ours are in tests/sdk.
sdk: setup ## Build and test the packages in TypeScript (needs Node 18 or newer, and npm); the other commands do not
	@command -v npm >/dev/null || { echo 'make sdk needs Node (18 or newer) with npm' >&2; exit 2; }
	@for folder in sdk/typescript/*/package.json; do \
	  cd "$${folder%/package.json}" && npm ci && npm run build && npm test && cd "$(CURDIR)" || exit 1; \
	done

proto-baseline: setup ## Move the baseline of the breaking gate to the contract as it is: at a release, never to pass the gate
	$(BUF) build protos --exclude-source-info --output protos/baseline.binpb

lock: setup ## Lock requirements/*.in anew (needs uv); ARGS=--upgrade moves versions
	sh tools/lock.sh $(ARGS)

clean: ## Remove what was built or cached; keeps .venv and var/
	rm -rf build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name .venv -prune -o -type d -name __pycache__ -exec rm -rf {} +
