# Leeward. `make` alone lists the targets.
#   PYTHON=/path/to/python3  STORM_VERSION=2.8.3  STORM_HOME=/path/to/storm   choose what set-up uses
#   CSV=path  KEEP=1  MODE=restart                                                   are settings of the demo
#   SEED=1  FAULTS=60                                                              are settings of test-faults

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo down test test-fast test-short test-coverage test-unit test-edrp test-contract test-java test-cluster test-faults test-deploy test-browser test-torture test-package test-versions torture packages wheel wheels pages test-all bench bench-migration bench-handover bench-replay bench-edrp bench-throughput bench-scaling bench-idle bench-agreement bench-footprint bench-dssp bench-coordinates bench-service bench-measuring lint jar audit lock clean

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# The tests start thousands of Python processes; without .pyc files each compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
pytest := pytest -q

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing, Python packages, Storm's jars, our jars (seconds when all is there)
	@bash scripts/setup.sh

demo: setup ## local cluster, taxi replay, scheduler, live view, verdict; CSV=path for own data, MODE=restart, KEEP=1
	leeward demo

down: ## end the local cluster, also after a crash
	leeward cluster down

test: packages ## every test that fits a pipeline: lint, fast lanes, seeds in memory, Java, package, browser, deployment, cluster, without slow ones
	$(MAKE) --no-print-directory -j2 --output-sync=target lint test-java
	$(MAKE) --no-print-directory test-short
	$(MAKE) --no-print-directory -j2 --output-sync=target test-torture test-package SEEDS=$(or $(SEEDS),4000)
	$(pytest) $(beside) -n 2 $(reported) -m "not slow" $(untimed) || python scripts/flaky.py -m "not slow"
	$(pytest) $(reported) -m "not slow" tests/cluster $(but_untimed) || python scripts/flaky.py -m "not slow"

# Tests with processes of their own that judge no time and no rate: two at once, the longest first. The other tests on a
# cluster run one by one.
untimed := tests/deploy $(addprefix tests/cluster/test_,edge_cloud.py bimodal_live.py examples.py local_security.py streamparse_project.py unmanned.py) tests/browser
but_untimed := $(patsubst %,--ignore=%,$(filter tests/cluster/%,$(untimed)))

# Three at once, as most wait rather than compute; the longest file first (tests/contract/conftest.py). What fails
# beside the others is run once more, alone: a server that was starved of the processor is not a fault of the code.
# scripts/flaky.py prints such a test, and fails the run if it was flaky before. So it is with the tests on a cluster,
# whose dozens of processes share the machine.
beside := -n 3 --dist loadfile --no-loadscope-reorder
without_storm := tests/agiledart tests/contract tests/bimodal tests/dssp tests/edge_cloud tests/edrp tests/sim tests/property tests/unit
# where scripts/flaky.py finds the reason of a first failure; and what took longest
reported := --junit-xml=.pytest_cache/run.xml --durations=12 --durations-min=10

test-fast: ## unit, property and simulation tests but for the long ones
	$(pytest) $(beside) -m "not slow and not long" tests/agiledart tests/bimodal tests/dssp tests/edge_cloud tests/sim tests/property tests/unit

test-short: ## every test that needs no Storm and is not slow: contract and solver tests too
	$(pytest) $(beside) $(reported) -m "not slow" $(without_storm) || python scripts/flaky.py -m "not slow"

test-coverage: ## the same with coverage, which takes the double of processor time; fails below 90 %
	$(pytest) $(beside) $(reported) --cov --cov-report= -m "not slow" $(without_storm) || python scripts/flaky.py -m "not slow"
	coverage report

test-edrp: ## the placement problem and its solvers
	$(pytest) -n 2 -m "not slow" tests/edrp

test-contract: ## with a real Redis, ZooKeeper, Spark and single daemons
	$(pytest) $(beside) -m "not slow" tests/contract

test-torture: ## coordinator and tasks in memory, under faults, by SEEDS (10000) seeds
	python -m leeward.sim.torture --seeds $(or $(SEEDS),10000)

torture: ## the same with a million seeds; SEEDS=N, FIRST=N
	python -m leeward.sim.torture --seeds $(or $(SEEDS),1000000) --first $(or $(FIRST),0)

test-java: ## JUnit tests of the plugin and the worker classes
	mvn -B -ntp -q -f storm verify

test-cluster: ## everything on a real local Storm, slow tests too
	$(pytest) tests/cluster

test-faults: setup ## a seeded fault run; FAULTS=60 SEED=1, the report also in out/faults
	python -m tests.cluster.faults --seed $(or $(SEED),1) --faults $(or $(FAULTS),60)

test-deploy: setup ## rollouts through ssh to a real Storm on six network namespaces; needs root
	WITH_SSHD=1 bash scripts/packages.sh
	$(pytest) tests/deploy

test-browser: setup ## live pages in a headless Chromium, metrics and alerts in a real Prometheus
	WITH_CHROMIUM=1 WITH_PROMETHEUS=1 bash scripts/packages.sh
	$(pytest) tests/browser

packages: setup # of the distribution, for deployments and the browser; early, as it may ask for a password
	WITH_SSHD=1 WITH_CHROMIUM=1 WITH_PROMETHEUS=1 bash scripts/packages.sh

test-all: packages ## everything, slow tests and coverage too
	$(MAKE) --no-print-directory -j2 --output-sync=target lint test-java
	$(MAKE) --no-print-directory test-coverage test-torture
	$(pytest) -m slow $(without_storm)
	$(pytest) tests/package tests/browser tests/deploy tests/cluster

bench: bench-migration bench-handover bench-replay bench-edrp bench-dssp bench-throughput bench-measuring bench-scaling bench-idle bench-service bench-agreement bench-footprint bench-coordinates ## all measurements, into out/bench; many minutes

bench-migration: setup ## silence at the sink: our migration against Storm's rebalance
	python tests/bench/migration.py

bench-handover: setup ## what rebalance, restart and handover do to 1,000 tuples/s; then 1,000 handovers in a row
	python tests/bench/handover.py

bench-replay: setup ## memory of the replay on ten million rows
	python tests/bench/replay_memory.py

bench-throughput: setup ## tuples/s and delay of the data path, and query 1, against stock streamparse
	python tests/bench/throughput.py

bench-measuring: setup ## processor time that measuring costs a task for each tuple, and its share of a whole path; ten minutes
	python tests/bench/measuring.py

bench-scaling: setup ## tuples/s at saturation with one, two and four replicas
	python tests/bench/scaling.py

bench-idle: setup ## what an idle topology costs, and the start of a worker with and without a class-data archive
	python tests/bench/idle.py

bench-footprint: setup ## disk, import and memory of a worker's Python environment beside stock streamparse's
	python tests/bench/footprint.py

bench-agreement: setup ## query 1 under S-EDRP on Storm and in the simulator, plan by plan; a quarter of an hour
	python tests/bench/agreement.py

bench-dssp: setup ## the services of DSSP: 1,000 of 100,000 domains found, in memory and over HTTP; seconds
	python tests/bench/dssp.py

bench-service: setup ## the whole service at 1,000 nodes and 50 topologies of 40 components; ten minutes
	python tests/bench/service_scale.py

bench-coordinates: setup ## round trips predicted by coordinates, against measured matrices of ../shared; a way that becomes longer
	python tests/bench/coordinates.py
	python tests/bench/longer_way.py

bench-edrp: setup ## the placement problem solved: our search against the paper's programme, up to 40 minutes
	python tests/bench/edrp.py

pages: ## docs/protocol.md, docs/settings.md, the pictures of docs/design.md, the list of docs/results from code and pages
	python scripts/protocol_page.py --write
	python scripts/settings_page.py --write
	python scripts/drawings.py --write
	python scripts/results_page.py --write

test-unit: ## the unit tests alone
	$(pytest) -n 2 -m "not slow and not long" tests/unit

lint: ## errors and import order, format, strict types of the package
	ruff check .
	ruff format --check --quiet .
	mypy

jar: ## build/topology.jar: our Java classes and the tree of src/
	leeward jar

wheel: setup ## build/wheel: wheel and source distribution, with the two jars; WHEELS=folder
	VIRTUAL_ENV=$(CURDIR)/.venv uv build --quiet --no-build-isolation --out-dir $(or $(WHEELS),build/wheel)

wheels: setup ## build/wheels: all that `fab deploy` sends (docs/deploy.md); SERVICE="http otel" TASKS="runtime agiledart"
	$(MAKE) --no-print-directory wheel WHEELS=$(or $(FOLDER),build/wheels)
	bash scripts/wheels.sh

test-package: setup ## the wheel, installed in an empty folder: quickstart, its README's commands, a cluster of its own
	$(pytest) -m "not slow" tests/package

test-versions: setup ## the wheel on other releases of Storm and Python, each by its project's README
	$(pytest) -s tests/package/test_versions.py

audit: ## known vulnerabilities of what is locked; asks PyPI's advisories, which a mirror may not have (exit code 1)
	uv tool run --from pip-audit pip-audit --strict --disable-pip --require-hashes -r requirements.lock

lock: ## requirements.lock from requirements.in
	uv pip compile --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' \
	  --quiet -o requirements.lock requirements.in

clean: ## remove what was built and written here; .venv and .storm too
	-[ ! -x .venv/bin/leeward ] || leeward cluster down
	rm -rf .venv .storm build out storm/target storm/*/target storm/assembly/*/target
