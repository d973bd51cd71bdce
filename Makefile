# The verbs of the project; `make help` lists them. Needs Python >= 3.11 and make, nothing else:
# the first verb makes .venv from the lock file, later ones see from a stamp that it is up to date.
# `make demo` has an environment of its own, .venv-demo, without what only developers need.

# The newest Python on the path that is new enough, unless PYTHON names one.
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
endif
CHECK_PYTHON = test -n "$(PYTHON)" || { echo "barnabas: needs Python 3.11 or newer on the path (or make PYTHON=/path/to/python)" >&2; exit 1; }
BIN := .venv/bin
BUILT_FROM := uv.lock pyproject.toml $(wildcard */pyproject.toml libs/*/pyproject.toml libs/*/setup.py) \
	libs/kafka/src/barnabas_kafka/protocol/plain_commit.py \
	libs/kafka/src/barnabas_kafka/protocol/plain_fetch.py \
	libs/kafka/src/barnabas_kafka/protocol/plain_heartbeat.py \
	libs/kafka/src/barnabas_kafka/protocol/plain_produce.py \
	libs/kafka/src/barnabas_kafka/protocol/plain_rebalance.py libs/kafka/src/barnabas_kafka/records/walk.py \
	tools/bootstrap.py tools/uv_program.py
PYTEST := $(BIN)/python -m pytest
# Runs in an environment of its own, which has pyspark.
SPARK := tests/pipelines/spark
# The suites, their commands, needs and limits: tools/testrun/suites.py.
TESTRUN := $(BIN)/python -m tools.testrun

.DEFAULT_GOAL := help
.PHONY: help demo install uninstall test check black-box black-box-handlers handlers pipelines spark bench fuzz sim mutate mutate-cores mutate-operator gen fmt soak clean release audit docs \
	images kind-demo kind-down e2e newcomer

help: ## Lists the verbs
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

demo: ## Starts a broker, streams this machine's own data through it and compares every byte
	@$(CHECK_PYTHON)
	@$(PYTHON) -m tools.bootstrap demo

# Where `make install` puts it: PREFIX/bin and PREFIX/lib/barnabas; ~/.local, for root /usr/local, if empty.
PREFIX ?=
install: ## Puts the command barnabas on your PATH (PREFIX=/opt/barnabas)
uninstall: ## Removes what make install put there
install uninstall:
	@$(CHECK_PYTHON)
	@$(PYTHON) -m tools.install $@ '$(PREFIX)'

kind-demo: .venv/.synced ## The same on Kubernetes: images, a kind cluster, the operator, records in and out (Docker, kind, Helm, kubectl)
	@$(BIN)/python -m tools.kind_demo

kind-down: .venv/.synced ## Removes the cluster that KEEP=1 make kind-demo left
	@$(BIN)/python -m tools.kind_demo down

# SUITE names suites ("cluster", "check,unit"), all where it is empty. STRICT=1 gives no failed test a
# second chance. RECORD=1 writes the times of good suites to docs/contributing/test-run.json and docs/contributing/testing.md.
# BUSY=1 has another program take one core meanwhile, and records in docs/contributing/busy-runs.md instead.
# REPEAT=3 runs three times, up to the first red run.
SUITE ?=
STRICT ?=
RECORD ?=
BUSY ?=
REPEAT ?= 1
SWITCHED_OFF := 0 false no
on = $(if $(filter-out $(SWITCHED_OFF),$($(1))),$(2))
TEST_OPTIONS = $(call on,STRICT,--strict) $(call on,RECORD,--record) $(call on,BUSY,--busy) --repeat='$(REPEAT)'
test: .venv/.synced ## Runs all suites that this machine can run, and says what the others need (SUITE="check unit", STRICT=1)
	@$(TESTRUN) --suite '$(SUITE)' $(TEST_OPTIONS)

check: .venv/.synced ## Runs all that is quick: tidy, ruff, imports, generated files, types, unit tests
	@$(TESTRUN) --suite check,unit $(TEST_OPTIONS)

black-box: .venv/.synced
	@$(TESTRUN) --suite clients,faults,oracle,cluster $(TEST_OPTIONS)

# Without fast routes handlers serve everything: some Python clients, and all of the above.
HANDLERS := $(foreach name,confluent_kafka aiokafka kafka_python groups pipelining produce_checks fetch_rules,tests/clients/test_$(name).py)
handlers: .venv/.synced
	$(PYTEST) $(HANDLERS) -p tests.without_fast_routes -m 'not jvm and not go and not soak' -n 2 --dist loadfile

black-box-handlers: .venv/.synced
	@BROKER_UNDER_TEST=barnabas-handlers $(TESTRUN) --suite clients,faults,oracle,cluster $(TEST_OPTIONS)

pipelines: .venv/.synced
	@$(TESTRUN) --suite pipelines $(TEST_OPTIONS)

e2e: .venv/.synced ## Runs the scenarios of e2e/ on a kind cluster of their own (make test SUITE=kind)
	@$(TESTRUN) --suite kind $(TEST_OPTIONS)

newcomer: .venv/.synced ## Plays README and quickstarts on each clean Linux of e2e/newcomer/bases.py (Docker)
	$(PYTEST) e2e/test_newcomer.py --override-ini='addopts=-ra' --timeout=3600 --override-ini=faulthandler_timeout=7200

images: .venv/.synced ## Builds the four images and prints their sizes (Docker)
	@$(BIN)/python -m e2e.images

bench: .venv/.synced .venv-bench/.synced ## Measures Barnabas beside Apache Kafka (Java, Maven) and writes benchmarks/results
	@$(BIN)/python -m benchmarks --barnabas .venv-bench/bin/barnabas
	@$(BIN)/python -m benchmarks.three_brokers --barnabas .venv-bench/bin/barnabas \
		--output benchmarks/results/$$(date -u +%F)-three-brokers
	@$(BIN)/python -m benchmarks.security --barnabas .venv-bench/bin/barnabas \
		--output benchmarks/results/$$(date -u +%F)-security

# For each target, and which: all where none is named.
SECONDS ?= 60
TARGETS ?=
# How many requests Apache Kafka judges beside us (Java, Maven), from which seed on.
DIFFERENTIAL ?=
SEED ?= 0
fuzz: .venv/.synced ## Fuzzes all that reads bytes of others, SECONDS=60 each (TARGETS="request produce")
	@$(BIN)/python -m fuzz $(TARGETS) --seconds $(SECONDS)
	@test -z "$(DIFFERENTIAL)" || $(BIN)/python -m tests.oracle.verdicts --count $(DIFFERENTIAL) --seed $(SEED)

# One schedule with its transcript, or COUNT of them; without either, all that a run of CI owes.
VARIANT ?= replicated
COUNT ?=
sim: .venv/.synced ## Runs clusters of the broker's cores in virtual time with faults (SEED=7 VARIANT=fsync, or COUNT=1000)
	timeout --foreground $(if $(COUNT),24h,8m) $(BIN)/python -m simulator $(if $(filter command line environment,$(origin SEED)),--variant $(VARIANT) --seed $(SEED)) $(if $(COUNT),--variant $(VARIANT) --count $(COUNT))

mutate: .venv/.synced ## Changes modules in small ways; their tests must notice each (MODULES="a.py b.py")
	$(BIN)/python -m tools.mutate $(MODULES)

SAMPLE ?= 10
SEED ?= 1
mutate-cores: .venv/.synced ## The same for a sample of each module of the cores (CORES="replica log" SAMPLE=10 SEED=1)
	$(BIN)/python -m tools.mutate --cores $(CORES) --sample $(SAMPLE) --seed $(SEED)

RULES ?=
mutate-operator: .venv/.synced ## Runs the operator without each rule by which it does no harm; a test must fail (RULES="leaders last")
	$(BIN)/python -m tools.operator_rules --rules '$(RULES)'

# `cibuildwheel` and `images`, for a release that is published.
RELEASE ?=
release: .venv/.synced ## Makes wheels, sdist, SBOM, changelog, chart and manifests in dist/ (RELEASE="cibuildwheel images")
	@$(BIN)/python -m tools.release $(addprefix --,$(RELEASE))

# Who knows the vulnerabilities: pypi (the JSON interface of the index, which few mirrors have), or osv (its database).
AUDIT_SERVICE ?= pypi
audit: .venv/.synced ## Looks for known vulnerabilities in the versions of the lock file (needs the network)
	@mkdir -p .cache
	@$(BIN)/uv export --quiet --frozen --all-packages --all-extras --all-groups --no-emit-workspace --output-file .cache/audited.txt
	$(BIN)/uv tool run --from pip-audit==2.10.1 pip-audit --vulnerability-service $(AUDIT_SERVICE) --disable-pip --require-hashes --progress-spinner off --strict -r .cache/audited.txt

docs: .venv-docs/.synced ## Checks the spelling and builds the documentation site in build/site; any warning fails it
	@.venv-docs/bin/codespell --skip docs/reference/names-in-old-notes.md,'*.svg','*.json','*.py' docs README.md CONTRIBUTING.md SECURITY.md
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet

gen: .venv/.synced ## Writes the generated files anew
	$(BIN)/python -m tools.gen_docs
	$(BIN)/python -m tools.gen_crds
	$(BIN)/python -m tools.render_manifests

fmt: .venv/.synced ## Formats the code and mends what ruff can mend
	$(BIN)/ruff check --fix --exit-zero --quiet .
	$(BIN)/ruff format .

spark: .venv-spark/.synced ## Installs pyspark (450 MB) for `barnabas pipeline run`, in .venv-spark

soak: .venv/.synced ## Runs every property test for thousands of examples and the tests marked soak
	$(PYTEST) tests --ignore=$(SPARK) --hypothesis-profile=soak --override-ini='addopts=-ra' --timeout=3600 --override-ini=faulthandler_timeout=7200 -m 'hypothesis or soak'

clean: ## Removes the environment and every cache
	rm -rf .venv .venv-bench .venv-demo .venv-docs .venv-spark .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The images run a Python that its distributor built with profiles and link-time optimisation. A
# Python built on this machine without them is a fifth slower, and would be measured in its place.
BENCH_PYTHON ?= $(firstword $(shell /usr/bin/python3 -c 'import sys; print("/usr/bin/python3" if sys.version_info >= (3, 11) else "")' 2>/dev/null) $(PYTHON))
.venv-bench/.synced: .venv/.synced
	@UV_PROJECT_ENVIRONMENT=.venv-bench $(BIN)/uv sync --frozen --quiet --package barnabas-broker \
		--extra cli --no-default-groups --no-python-downloads --python $(BENCH_PYTHON)
	@touch $@

.venv-docs/.synced: .venv/.synced
	@UV_PROJECT_ENVIRONMENT=.venv-docs $(BIN)/uv sync --frozen --quiet --only-group docs \
		--python $(BIN)/python --no-python-downloads
	@touch $@

.venv-spark/.synced: .venv/.synced
	@echo 'barnabas: installing pyspark into .venv-spark; the first time that is a download of 450 MB' >&2
	@UV_PROJECT_ENVIRONMENT=.venv-spark UV_HTTP_TIMEOUT=600 $(BIN)/uv sync --frozen --quiet \
		--package barnabas-pipelines --extra spark --group test --no-default-groups \
		--python $(BIN)/python --no-python-downloads
	@.venv-spark/bin/python -m barnabas_pipelines jars
	@touch $@

.venv/.synced: $(BUILT_FROM)
	@$(CHECK_PYTHON)
	@$(PYTHON) -m tools.bootstrap
