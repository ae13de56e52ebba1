# docs   the reference of the Python package, from its docstrings, in build/docs
# demo   build the example functions in three languages, run them over 336,776 flights, compare
# cluster-demo  a query over all flights as a job of a cluster, whose worker and controller are killed; compare its table;
#              once with everything in a folder, once with PostgreSQL as its database and its state on S3 (STATE=s3: only that)
# test   lints, Rust tests, and pytest on Python 3.11 and 3.13: less than 20 minutes from a fresh clone on two idle processors
# test-lowest  the tests of hosts, files, commands and queries on Python 3.11 with the lowest versions of all dependencies
# test-datafusion  queries with the oldest DataFusion that pyproject.toml allows; `make test` has the newest one
# test-integrations  libraries in DuckDB, Polars, Daft, SQLite, DataFusion and pandas: the newest versions, and the oldest
#              of DuckDB and Polars
# test-rust-host  the crate arroyo-udf-host, and a SQL shell on it; its first build, of DataFusion, takes minutes
# test-spark  libraries in Spark, which is downloaded (450 MB) and needs Java 17 or newer; SPARK=4.1.0: the oldest
# test-flink  pipelines on Apache Flink 2.3, which is downloaded (850 MB), against the engine's own results; programs of its
#              session cluster killed in the middle; it needs Java 17 and Maven, and 5 GB of memory
# test-connectors  sources and sinks against real servers, which are downloaded (Kafka: 45 MB; it needs Java 17 and Maven)
# flink-demo  a pipeline on a local session cluster of Apache Flink
# kafka-demo  a pipeline from one topic of a Kafka broker to another, which is killed on the way
# test-queries  the queries of TPC-H at SCALE=0.1, and 2,000 random queries in which calls are guarded (an hour)
# test-isolation  functions in subinterpreters and worker processes: their tests again, stress, kills; 12 minutes at most
# test-arroyo  plugins and Arroyo's published crates in each other's place; the first build takes minutes
# test-server  plugins and tables against a PostgreSQL server
# test-cluster  programs of a cluster, killed in the middle of jobs: every job ends as its user wishes (12 minutes at most)
# test-pipelines  pipelines killed twenty times, on files, on S3 and in databases, and their checkpoints damaged, lost or
#              older: nothing may be lost (a quarter of an hour)
# web    the web page, built into the package, so that `arroyo-udf cluster` serves it; it needs no node of this machine
# test-web  the web page: types, lints, unit tests; and in a real browser, over real clusters (10 minutes at most)
# web-pictures  the pictures of the README
# simulate  engines over simulated disks: a crash at every step, SCHEDULES=20 random schedules for each scenario (hours)
# lint   the lints alone
# check  lints, the simulation of the state machine over ten million events, loom, soak, its mutants (a quarter of an hour)
# loom   the runtime's locks and wake-ups in every order
# soak   a million calls and a thousand starts, in Python and in Rust: nothing may grow
# check-kill  test-pipelines and test-connectors with a hundred kills, test-cluster with a hundred seeds (four hours)
# fuzz   broken arrays, options and handles over plugins, broken plugins under the host, mutated functions that are compiled
#        to C: SECONDS=600 for each side
# check-memory  hosts in C over plugins in three languages, under valgrind; QUICK=1: a part of it, in two minutes
# check-address  the tests of the runtime and of functions in Rust, with AddressSanitizer
# package  sdist and wheels in build/dist, each wheel tested outside the checkout
# bench  measure against the references, print the ratios
# bench-integrations  measure functions in DuckDB and Polars, against what the engines have of their own
# bench-peers  measure functions in Python beside DataFusion, DuckDB, Polars, loops over pyarrow and asyncio by hand
# bench-flink  measure pipelines on Apache Flink, against those without a function and against Flink's own
# bench-connectors  measure pipelines over Kafka and databases, against plain loops with their clients
# bench-runs  measure the lines of calls in five runs, print medians and the worst
# bench-compare  measure the main lines, and say which are worse than the table of bench/README.md: a remark, no failure
#
# Each target sets up what it needs below build/; scripts/environment.py does it, and names what is missing.
# With REQUIRE_ALL=1, a Python version that does not run here is a failure instead of a remark.

SHELL = /bin/sh
ENVIRONMENT = python3 scripts/environment.py
VERSIONS = 3.11 3.13
REQUIRE_ALL =
# Where the clusters of cluster-demo keep their state: in a folder, with SQLite; on S3 (a local server), with PostgreSQL.
STATE = folder s3
# Processes that share the tests of pytest.
WORKERS = 2

.PHONY: demo cluster-demo docs test test-rust test-python test-lowest test-datafusion test-integrations test-spark test-queries
.PHONY: test-isolation test-arroyo test-rust-host test-server lint check simulation mutants loom soak
.PHONY: web test-web web-pictures test-flink test-connectors flink-demo kafka-demo cdc-demo
.PHONY: engine-demo test-engine check-memory check-address bench bench-compare bench-runs bench-peers bench-flink bench-connectors bench-integrations package fuzz test-pipelines test-cluster check-kill simulate
.DEFAULT_GOAL = test
# Targets share environments and caches, and each uses all processors.
.NOTPARALLEL:

demo:
	@python=$$($(ENVIRONMENT)) && $$python examples/flights/demo.py

cluster-demo:
	@python=$$($(ENVIRONMENT)) && for state in $(STATE); do $$python examples/cluster/demo.py --state $$state || exit; done

docs:
	@python=$$($(ENVIRONMENT)) && $$python scripts/reference.py build/docs

test: lint test-rust test-python

# pyo3-ffi asks PYO3_PYTHON for its layout; the extension links no libpython, so its crate has no tests of its own.
lint:
	@python=$$($(ENVIRONMENT)) && export PYO3_PYTHON=$$python PYO3_BUILD_EXTENSION_MODULE=1 && set -x && \
	(cd native && cargo fmt --check && cargo clippy --quiet --all-targets --all-features --locked -- -D warnings) && \
	(cd tests/arroyo && cargo fmt --check) && (cd examples/host/datafusion && cargo fmt --check) && \
	(cd native/host && cargo fmt --check && \
	cargo clippy --quiet --all-targets --locked --target-dir ../../build/example_host -- -D warnings) && \
	(cd examples/host/rust && cargo fmt --check && \
	cargo clippy --quiet --locked --target-dir ../../../build/example_host -- -D warnings) && \
	$$python -m ruff check . && $$python -m ruff format --check . && $$python -m mypy && $${python%/*}/lint-imports --no-cache && \
	python3 scripts/cycles.py

check: lint simulation loom soak mutants

# A schedule has 60 events on average.
simulation:
	cd native && PROPTEST_CASES=170000 cargo test --release --locked --package arroyo-udf-plugin --lib machine_and_model_agree

# native/runtime/src/machine/SURVIVORS.md explains the mutants that no test catches; any other survivor is a failure.
mutants:
	cargo install --quiet --locked --root build/tools cargo-mutants
	cd native && PROPTEST_CASES=800 ../build/tools/bin/cargo-mutants mutants --output ../build --package arroyo-udf-plugin \
	--file 'runtime/src/machine/*.rs' --exclude '**/machine/tests/*' --jobs 2 --timeout 60 --cargo-arg=--lib -- machine || true
	python3 scripts/mutants.py build/mutants.out native/runtime/src/machine/SURVIVORS.md

# In its own target directory, because the flag applies to every crate.
loom:
	cd native && RUSTFLAGS='--cfg loom' cargo test --release --locked --package arroyo-udf-plugin --lib --target-dir target/loom \
	interleavings

engine-demo test-engine:
	@echo "this is 'make $(if $(filter test-%,$@),test-cluster,cluster-demo)' now" >&2; exit 2

# In each Python that runs here, because each has its own memory management.
soak:
	@for version in $(VERSIONS); do \
		python=$$($(ENVIRONMENT) $$version); status=$$?; \
		if [ $$status -eq 3 ]; then continue; fi; \
		[ $$status -eq 0 ] || exit $$status; \
		echo "on Python $$version"; $$python scripts/soak.py || exit 1; \
	done

# Each of the programs that scripts/fuzz.py names is a side.
SECONDS = 600
fuzz:
	@python=$$($(ENVIRONMENT)) && $$python scripts/fuzz.py $(SECONDS)

# QUICK=1: a part of it, in two minutes.
QUICK =
check-memory:
	@python=$$($(ENVIRONMENT)) && $$python scripts/memory_check.py $(if $(QUICK),quick)

# Stable rustc contains the sanitizer, but as an unstable option. It ignores leaks, because these tests keep stuck calls
# and refused batches; check-memory looks for leaks. With a target named, build scripts run without the sanitizer.
check-address:
	cd native && ASAN_OPTIONS=detect_leaks=0 PROPTEST_CASES=32 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
	cargo test --locked --package arroyo-udf-plugin --all-features --lib --tests --target-dir target/address \
	--target $$(rustc -vV | sed -n 's/^host: //p')

test-rust:
	@python=$$($(ENVIRONMENT)) && export PYO3_PYTHON=$$python PYO3_BUILD_EXTENSION_MODULE=1 && set -x && \
	cd native && cargo test --quiet --workspace --exclude arroyo-udf-python --all-features --locked

# $(call pytest,ARGUMENTS): in each Python version. The environment answers 3 where one does not run. In ARGUMENTS,
# $$not_again leaves out the tests marked `once` after the first version.
define pytest
	@missing=; not_again=; for version in $(VERSIONS); do \
		python=$$($(ENVIRONMENT) $$version); status=$$?; \
		if [ $$status -eq 3 ]; then missing="$$missing $$version"; continue; fi; \
		[ $$status -eq 0 ] || exit $$status; \
		echo "pytest on Python $$version"; $$python -m pytest -q $(1) || exit 1; \
		not_again=' and not once'; \
	done; \
	for version in $$missing; do echo "$$version NOT TESTED: no Python $$version runs here"; done; \
	[ -z "$$missing" ] || [ -z "$(REQUIRE_ALL)" ]
endef

# Each worker begins with half of the tests, in order, so that mostly one worker builds the plugins of a file. The worker
# that ends first takes over tests of the other.
PARALLEL = -n $(WORKERS) --dist worksteal
# Tests that need no server, no large build and no other engine, and that fit into `make test`.
EVERYWHERE = not arroyo and not server and not pipelines and not isolation and not cluster and not rust_host and not spark and not flink and not connectors

test-python:
	$(call pytest,$(PARALLEL) -m "$(EVERYWHERE)$$not_again")

# Not what runs in native code alone, whatever the versions of pyarrow, cffi and click are, and not what tests words.
NOT_LOWEST = async blocking boot docs ended environment first_hour interrupt leaks readme retry stopping

test-lowest:
	@python=$$($(ENVIRONMENT) 3.11 lowest) && $$python -m pytest -q $(PARALLEL) \
	-m '$(EVERYWHERE)' tests/cli tests/engine/connectors tests/python \
	tests/engine/sql/test_query.py \
	$(foreach name,$(NOT_LOWEST),--ignore-glob='*/test_*$(name)*.py')

# Beside the packages of the environment, in a folder of its own.
OLDEST_DATAFUSION = 53

test-datafusion:
	@python=$$($(ENVIRONMENT)) && folder=$(CURDIR)/build/datafusion-$(OLDEST_DATAFUSION) && \
	$$python -m pip install --quiet --no-deps --upgrade --target $$folder "datafusion==$(OLDEST_DATAFUSION).*" && \
	PYTHONPATH=$$folder $$python -m pytest -q $(PARALLEL) tests/engine/sql

SCALE = 0.1
QUERIES = 2000

test-queries:
	@python=$$($(ENVIRONMENT)) && TPCH_SCALE=$(SCALE) $$python -m pytest -q tests/engine/sql/test_tpch.py && \
	GUARDED_QUERIES=$(QUERIES) $$python -m pytest -q $(PARALLEL) --timeout 0 tests/engine/sql/test_guards.py -k random

# The tests of functions once more in each mode that this Python has (tests/python/every_mode.py), then stress and kills.
test-isolation:
	$(call pytest,$(PARALLEL) --isolation=process && \
	{ [ $$version = 3.11 ] || $$python -m pytest -q $(PARALLEL) --isolation=subinterpreter; } && \
	$$python -m pytest -q $(PARALLEL) -m isolation tests/isolation)

test-arroyo:
	$(call pytest,$(PARALLEL) -m arroyo)

test-server:
	$(call pytest,-m "server and not cluster" --ignore=tests/cluster)

# In folders of their own, because tests of the package need none of them.
ENGINES = duckdb polars daft apsw
OLDEST_DUCKDB = 1.3.0
OLDEST_POLARS = 0.20.31

test-integrations:
	@python=$$($(ENVIRONMENT) 3.13) && newest=$(CURDIR)/build/integrations && oldest=$(CURDIR)/build/integrations-oldest && \
	$$python -m pip install --quiet --no-deps --upgrade --target $$newest $(ENGINES) polars-runtime-32 && \
	$$python -m pip install --quiet --no-deps --upgrade --target $$oldest duckdb==$(OLDEST_DUCKDB) polars==$(OLDEST_POLARS) && \
	PYTHONPATH=$$newest OLDEST=$$oldest OLDEST_DUCKDB=$(OLDEST_DUCKDB) OLDEST_POLARS=$(OLDEST_POLARS) \
	$$python -m pytest -q $(PARALLEL) -m 'not spark' tests/integrations

define java
	@java -version >/dev/null 2>&1 || { echo "error: java is missing: install openjdk-17-jre-headless (Debian, Ubuntu) or" \
	"java-17-openjdk-headless (Fedora)" >&2; exit 1; }
endef

# Its version. The oldest that works is 4.1.0.
SPARK = 4.3.0

test-spark:
	$(java)
	@python=$$($(ENVIRONMENT) 3.13) && folder=$(CURDIR)/build/spark-$(SPARK) && \
	{ [ -e $$folder/complete ] || { rm -rf $$folder && $$python -m pip install --quiet --no-deps --target $$folder \
	pyspark==$(SPARK) "py4j>=0.10.9.7,<0.10.9.10" && touch $$folder/complete; }; } && \
	PYTHONPATH=$$folder $$python -m pytest -q -m spark tests/integrations

define java_and_maven
	$(java)
	@mvn -version >/dev/null 2>&1 || { echo "error: mvn is missing: install maven" >&2; exit 1; }
endef

FLINK = 2.3.0
S3_OF_FLINK = build/flink/flink-s3-fs-native-$(FLINK).jar
KAFKA_OF_FLINK = build/flink/flink-sql-connector-kafka-5.0.0-2.2.jar

# A broker: pom.xml has its version.
KAFKA = build/kafka/complete

$(S3_OF_FLINK) $(KAFKA_OF_FLINK):
	$(java_and_maven)
	@artifact=$$(echo $(@F) | sed 's/-\([0-9].*\)\.jar$$/:\1/') && \
	mvn -q dependency:copy -Dartifact=org.apache.flink:$$artifact -DoutputDirectory=$(CURDIR)/$(@D) </dev/null

# Flink knows Python 3.11 and 3.12. Its workers have an environment of their own.
test-flink: $(S3_OF_FLINK) $(KAFKA_OF_FLINK) $(KAFKA)
	@python=$$($(ENVIRONMENT) 3.13) && flink=$$($(ENVIRONMENT) 3.11 flink) && \
	FLINK_PYTHON=$$flink FLINK_S3=$(CURDIR)/$(S3_OF_FLINK) FLINK_KAFKA=$(CURDIR)/$(KAFKA_OF_FLINK) \
	KAFKA_JARS=$(CURDIR)/$(dir $(KAFKA)) $$python -m pytest -q -m flink tests/flink

$(KAFKA): tests/connectors/kafka/pom.xml
	$(java_and_maven)
	@rm -rf $(@D) && mvn -q -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D) </dev/null && touch $@

# How often the engine is killed, in each kind of place. For a tenth of it places are damaged.
KILLS = 20

test-connectors: $(KAFKA)
	@python=$$($(ENVIRONMENT) 3.13) && \
	KILLS=$(KILLS) KAFKA_JARS=$(CURDIR)/$(<D) $$python -m pytest -q -m connectors tests/connectors

bench-connectors: $(KAFKA)
	@python=$$($(ENVIRONMENT) 3.13) && lines=build/bench/connectors-3.13.json && mkdir -p build/bench && \
	KAFKA_JARS=$(CURDIR)/$(<D) $$python -m pytest -q --benchmark-quiet --benchmark-json=$$lines bench/connectors && \
	$$python bench/ratios.py $$lines

bench-flink: $(S3_OF_FLINK)
	@python=$$($(ENVIRONMENT) 3.13) && flink=$$($(ENVIRONMENT) 3.11 flink) && lines=build/bench/flink-3.13.json && \
	mkdir -p build/bench && FLINK_PYTHON=$$flink $$python -m pytest -q --benchmark-quiet --benchmark-json=$$lines \
	bench/test_flink.py && $$python bench/ratios.py $$lines

cdc-demo:
	@python=$$($(ENVIRONMENT) 3.13) && $$python examples/cdc/demo.py

kafka-demo: $(KAFKA)
	@python=$$($(ENVIRONMENT) 3.13) && KAFKA_JARS=$(CURDIR)/$(<D) $$python examples/kafka/demo.py

flink-demo:
	@python=$$($(ENVIRONMENT) 3.13) && flink=$$($(ENVIRONMENT) 3.11 flink) && \
	FLINK_PYTHON=$$flink $$python examples/flink/demo.py

test-rust-host:
	@python=$$($(ENVIRONMENT) 3.13) && $$python -m pytest -q tests/rust_host

# On one Python, with the newest engines.
bench-integrations:
	@python=$$($(ENVIRONMENT) 3.13) && folder=$(CURDIR)/build/integrations && lines=build/bench/integrations-3.13.json && \
	$$python -m pip install --quiet --no-deps --upgrade --target $$folder $(ENGINES) polars-runtime-32 && \
	PYTHONPATH=$$folder $$python -m pytest -q --benchmark-quiet --benchmark-json=$$lines bench/test_integrations.py \
	bench/test_rust_host.py && \
	$$python bench/ratios.py $$lines

test-pipelines:
	@python=$$($(ENVIRONMENT)) && KILLS=$(KILLS) $$python -m pytest -q -m pipelines

# The seeds of faults in a whole cluster (tests/cluster/test_survival.py).
SEEDS = 1-2

test-cluster:
	@python=$$($(ENVIRONMENT)) && SEEDS=$(SEEDS) $$python -m pytest -q -m "cluster or server" tests/cluster

web:
	@python3 web/tools/page.py build

test-web: web
	@python=$$($(ENVIRONMENT) 3.13) && $$python web/tools/page.py check && $$python web/tools/page.py test

web-pictures: web
	@python=$$($(ENVIRONMENT) 3.13) && $$python web/tools/page.py pictures

# Random schedules for each scenario. The report at the end counts schedules, faults and crashes by file and line.
SCHEDULES = 20

simulate:
	@python=$$($(ENVIRONMENT)) && SCHEDULES=$(SCHEDULES) $$python -m pytest -q -s tests/simulation

check-kill:
	@$(MAKE) test-pipelines KILLS=100
	@$(MAKE) test-connectors KILLS=100
	@$(MAKE) test-cluster SEEDS=1-100

# With REQUIRE_ALL=1 each of 3.11, 3.12 and 3.13 must run; else wheels are built for those that do.
package:
	@python3 scripts/package.py $(if $(REQUIRE_ALL),3.11 3.12 3.13)

bench:
	@for version in $(VERSIONS); do \
		python=$$($(ENVIRONMENT) $$version); status=$$?; \
		if [ $$status -eq 3 ]; then continue; fi; \
		[ $$status -eq 0 ] || exit $$status; \
		echo "measuring on Python $$version"; \
		$$python -m pytest -q --benchmark-quiet --benchmark-json=build/bench/python-$$version.json bench || exit 1; \
	done; \
	python=$$($(ENVIRONMENT)) && $$python bench/ratios.py

# Ours beside other engines, loops over pyarrow, and asyncio by hand.
bench-peers:
	@python=$$($(ENVIRONMENT) 3.13) && folder=$(CURDIR)/build/integrations && lines=build/bench/peers-3.13.json && \
	$$python -m pip install --quiet --no-deps --upgrade --target $$folder $(ENGINES) polars-runtime-32 && \
	PYTHONPATH=$$folder $$python -m pytest -q --benchmark-quiet --benchmark-json=$$lines bench/test_peers.py && \
	$$python bench/ratios.py $$lines

# The lines of calls in five runs on each Python: for an otherwise idle machine.
bench-runs:
	@for version in $(VERSIONS); do \
		python=$$($(ENVIRONMENT) $$version); status=$$?; \
		if [ $$status -eq 3 ]; then continue; fi; \
		[ $$status -eq 0 ] || exit $$status; \
		for run in 1 2 3 4 5; do \
			echo "run $$run on Python $$version"; lines=build/bench/run$$run-$$version.json; \
			$$python -m pytest -q --benchmark-quiet --benchmark-json=$$lines -k "not uvloop and not workers and not tasks" \
			bench/test_sync.py bench/test_boundary.py bench/test_async.py bench/test_runtime.py::test_rust_rows || exit 1; \
		done; \
	done; \
	python=$$($(ENVIRONMENT)) && $$python bench/ratios.py build/bench/run?-*.json

# On one Python, in a few minutes.
bench-compare:
	@python=$$($(ENVIRONMENT)) && version=$$($$python -c 'import sys; print("{}.{}".format(*sys.version_info))') && \
	$$python -m pytest -q --benchmark-quiet --benchmark-json=build/bench/main-$$version.json bench/test_sync.py \
	bench/test_boundary.py && $$python bench/compare.py build/bench/main-$$version.json $$version
