# demo   build the example functions in three languages, run them over 336,776 flights, compare
# test   everything: Rust tests, lints, and pytest on Python 3.11 and 3.13
# lint   the lints alone
# check  lints, the simulation of the state machine over ten million events, loom, soak, its mutants (a quarter of an hour)
# loom   the runtime's locks and wake-ups in every order
# soak   a million calls and a thousand starts, in Python and in Rust: nothing may grow
# check-memory  hosts in C over plugins in three languages, under valgrind
# check-address  the tests of the runtime and of functions in Rust, with AddressSanitizer
# bench  measure against the references, print the ratios
#
# Each target sets up what it needs below build/ (scripts/environment.py says how, and what is missing where it cannot).
# With REQUIRE_ALL=1 a Python version that does not run here is a failure instead of a remark.

SHELL = /bin/sh
ENVIRONMENT = python3 scripts/environment.py
VERSIONS = 3.11 3.13
REQUIRE_ALL =

.PHONY: demo test lint check simulation mutants loom soak check-memory check-address bench test-rust test-python
.DEFAULT_GOAL = test
# They share environments and caches, and use all processors by themselves.
.NOTPARALLEL:

demo:
	@python=$$($(ENVIRONMENT)) && $$python examples/flights/demo.py

test: lint test-rust test-python

# pyo3-ffi asks PYO3_PYTHON for its layout; the extension links no libpython, so its crate has no tests of its own.
lint:
	@python=$$($(ENVIRONMENT)) && export PYO3_PYTHON=$$python PYO3_BUILD_EXTENSION_MODULE=1 && set -x && \
	(cd native && cargo fmt --check && cargo clippy --quiet --all-targets --all-features --locked -- -D warnings) && \
	(cd tests/arroyo && cargo fmt --check) && (cd examples/host/rust && cargo fmt --check && \
	cargo clippy --quiet --locked --target-dir ../../../build/example_host -- -D warnings) && \
	$$python -m ruff check . && $$python -m ruff format --check . && $$python -m mypy && $${python%/*}/lint-imports --no-cache

check: lint simulation loom soak mutants

# 60 events a schedule on average.
simulation:
	cd native && PROPTEST_CASES=170000 cargo test --release --locked --package arroyo-udf-plugin --lib machine_and_model_agree

# What no test notices is listed, with reasons, in native/runtime/src/machine/SURVIVORS.md; more than that fails.
mutants:
	cargo install --quiet --locked --root build/tools cargo-mutants
	cd native && PROPTEST_CASES=800 ../build/tools/bin/cargo-mutants mutants --output ../build --package arroyo-udf-plugin \
	--file 'runtime/src/machine/*.rs' --exclude '**/machine/tests/*' --jobs 2 --timeout 60 --cargo-arg=--lib -- machine || true
	python3 scripts/mutants.py build/mutants.out native/runtime/src/machine/SURVIVORS.md

# A target directory of its own, for the flag is one of every crate.
loom:
	cd native && RUSTFLAGS='--cfg loom' cargo test --release --locked --package arroyo-udf-plugin --lib --target-dir target/loom \
	interleavings

# In both Pythons, where they run: each has a memory of its own to keep.
soak:
	@for version in $(VERSIONS); do \
		python=$$($(ENVIRONMENT) $$version); status=$$?; \
		if [ $$status -eq 3 ]; then continue; fi; \
		[ $$status -eq 0 ] || exit $$status; \
		echo "on Python $$version"; $$python scripts/soak.py || exit 1; \
	done

check-memory:
	@python=$$($(ENVIRONMENT)) && $$python scripts/memory_check.py

# The sanitizer is not a stable option of rustc, but comes with the stable one. Leaks are what check-memory looks for: the
# tests keep stuck calls and what a full runtime refuses. A target has to be named, so that build scripts go without.
check-address:
	cd native && ASAN_OPTIONS=detect_leaks=0 PROPTEST_CASES=32 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
	cargo test --locked --package arroyo-udf-plugin --all-features --lib --tests --target-dir target/address \
	--target $$(rustc -vV | sed -n 's/^host: //p')

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
