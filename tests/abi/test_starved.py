"""Hosts that lack memory, threads, descriptors, streams, stack or files: a call works, or has a status with a text and
leaves the batch with the host; everything works as usual afterwards. In child processes, with an empty environment."""

from pathlib import Path

import pytest

from arroyo_udf_plugin import build

HERE = Path(__file__).parent
SUFFIXES = [".c", ".rs", ".py"]
LACKS = {
    "memory": [1, 3, 5, 9, 17, 22, 40],
    "threads": [0, 1, 2, 3],
    "descriptors": [0, 2, 12, 17, 30],
    "streams": [0],
    "stack": [64],
    "files": [0],
}
# Where a call must fail if none came before: else the host does not starve.
FAILS = {
    ("memory", 1): SUFFIXES,
    ("threads", 0): SUFFIXES,
    ("descriptors", 0): [".rs", ".py"],
}


@pytest.fixture(scope="module")
def starved(plain_cc):
    flags = ["-g", "-Wall", "-Wextra", "-Werror", "-rdynamic"]  # its pthread_create replaces the C library's
    return plain_cc(HERE / "starved.c", *flags, libraries=["-ldl", "-lpthread"])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("lack", LACKS)
def test_a_host_that_lacks(starved, bare, built, lack, suffix):
    library = built(f"starved_functions{suffix}")
    for amount in LACKS[lack]:
        for before in ["nothing", "served", "started"]:
            done = bare(starved, library, lack, amount, before)
            *failures, last = done.stdout.splitlines() or [""]
            assert (done.returncode, last) == (0, "works"), (amount, before, done.stdout, done.stderr)
            if suffix in FAILS.get((lack, amount), []) and before == "nothing":
                assert failures, f"{amount}: nothing was lacking"


LONG = {
    ".rs": """
use arroyo_udf_plugin::udf;

#[udf]
fn same(x: i64) -> i64 {
    x
}

#[udf]
async fn long(x: i64) -> String {
    "x".repeat(x as usize)
}
""",
    ".py": """
from arroyo_udf_plugin import udf

@udf
def same(x: int) -> int:
    return x

@udf
async def long(x: int) -> str:
    return x * "x"
""",
}


@pytest.mark.parametrize("suffix", LONG)
def test_results_that_do_not_fit_into_memory(plain_cc, bare, tmp_path, suffix):
    source = tmp_path / f"long{suffix}"
    source.write_text(LONG[suffix])
    host = plain_cc(HERE / "huge.c", "-g", "-Wall", "-Wextra", "-Werror")
    done = bare(host, build(source))
    assert (done.returncode, done.stderr) == (0, "")
    run, drain, works = done.stdout.splitlines()
    assert "same: out of memory" in run
    assert "long: out of memory" in drain
    assert works == "works"
