# demo   build the example functions in three languages, run them over 336,776 flights, compare
# test   everything: Rust tests, lints, and pytest on Python 3.11 and 3.13
# lint   the lints alone
# check  lints, the simulation of the state machine over ten million events, and its mutants (half an hour)
# check-memory  hosts in C over plugins in three languages, under valgrind
# bench  measure against the references, print the ratios
#
# Each target sets up what it needs below build/ (scripts/environment.py says how, and what is missing where it cannot).
# With REQUIRE_ALL=1 a Python version that does not run here is a failure instead of a remark.

SHELL = /bin/sh
ENVIRONMENT = python3 scripts/environment.py
VERSIONS = 3.11 3.13
REQUIRE_ALL =

.PHONY: demo test lint check simulation mutants check-memory bench test-rust test-python
.DEFAULT_GOAL = test

demo:
	@python=$$($(ENVIRONMENT)) && $$python examples/flights/demo.py

test: lint test-rust test-python

# pyo3-ffi asks PYO3_PYTHON for its layout; the extension links no libpython, so its crate has no tests of its own.
lint:
	@python=$$($(ENVIRONMENT)) && export PYO3_PYTHON=$$python PYO3_BUILD_EXTENSION_MODULE=1 && set -x && \
	(cd native && cargo fmt --check && cargo clippy --quiet --all-targets --all-features --locked -- -D warnings) && \
	(cd tests/arroyo && cargo fmt --check) && (cd examples/host/rust && cargo fmt --check && \
	cargo clippy --quiet --locked --target-dir ../../../build/example_host -- -D warnings) && \
	$$python -m ruff check . && $$python -m ruff format --check . && $$python -m mypy

check: lint simulation mutants

# 60 events a schedule on average.
simulation:
	cd native && PROPTEST_CASES=170000 cargo test --release --locked --package arroyo-udf-plugin --lib machine_and_model_agree

# What no test notices is listed, with reasons, in native/runtime/src/machine/SURVIVORS.md; more than that fails.
mutants:
	cargo install --quiet --locked --root build/tools cargo-mutants
	cd native && PROPTEST_CASES=800 ../build/tools/bin/cargo-mutants mutants --output ../build --package arroyo-udf-plugin \
	--file 'runtime/src/machine/*.rs' --exclude '**/simulation.rs' --timeout 120 -- --lib machine || true
	python3 scripts/mutants.py build/mutants.out native/runtime/src/machine/SURVIVORS.md

check-memory:
	@python=$$($(ENVIRONMENT)) && $$python scripts/memory_check.py

test-rust:
	@python=$$($(ENVIRONMENT)) && export PYO3_PYTHON=$$python PYO3_BUILD_EXTENSION_MODULE=1 && set -x && \
	cd native && cargo test --quiet --workspace --exclude arroyo-udf-python --all-features --locked

# The environment answers 3 where that version does not run.
test-python:
	@missing=; for version in $(VERSIONS); do \
		python=$$($(ENVIRONMENT) $$version); status=$$?; \
		if [ $$status -eq 3 ]; then missing="$$missing $$version"; continue; fi; \
		[ $$status -eq 0 ] || exit $$status; \
		echo "pytest on Python $$version"; $$python -m pytest -q || exit 1; \
	done; \
	for version in $$missing; do echo "$$version NOT TESTED: no Python $$version runs here"; done; \
	[ -z "$$missing" ] || [ -z "$(REQUIRE_ALL)" ]

bench:
	@for version in $(VERSIONS); do \
		python=$$($(ENVIRONMENT) $$version); status=$$?; \
		if [ $$status -eq 3 ]; then continue; fi; \
		[ $$status -eq 0 ] || exit $$status; \
		echo "measuring on Python $$version"; \
		$$python -m pytest -q --benchmark-quiet --benchmark-json=build/bench/python-$$version.json bench || exit 1; \
	done; \
	python=$$($(ENVIRONMENT)) && $$python bench/ratios.py
