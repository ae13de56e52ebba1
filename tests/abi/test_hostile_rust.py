"""A host in Rust over the plugin that breaks the contract (hostile.c): no case crashes it; broken arrays are errors."""

import os
import subprocess

import pytest
from test_hostile import CASES

FUNCTIONS = {"add": "add", "greet": "greet", "outcomes": "add", "stream": "next", "wait": "next", "listed": None}
# Arrow reads them as values. Of async functions, which rows have come out is for the engine to know, or for a `Caller`.
NOT_SEEN = "null values that are not counted"


@pytest.mark.parametrize("step", FUNCTIONS)
def test_no_case_crashes_a_host_in_rust(rust_host, plain_cc, examples, step) -> None:
    library = plain_cc(examples.parent / "tests" / "abi" / "hostile.c", "-shared", "-fPIC", "-w")
    cases = {name: case for name, case in CASES.items() if case[1] == step}
    assert len(cases) > 3
    failed = []
    for name, (hostile, _, _, kind, _) in cases.items():
        function = [FUNCTIONS[step]] if FUNCTIONS[step] else []
        environment = {b"HOSTILE": hostile.encode("latin-1")}
        done = subprocess.run([rust_host, library, *function], env=environment, capture_output=True, timeout=60)
        is_sync = step in ("add", "greet", "outcomes") and name != NOT_SEEN
        expected = {1} if is_sync and kind == "AbiError" else {0, 1}
        if done.returncode not in expected:
            failed.append((name, done.returncode, os.fsdecode(done.stderr)))
    assert failed == []
