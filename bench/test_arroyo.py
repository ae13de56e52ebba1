"""One row at a time through the Arroyo engine's symbols, as that engine sends rows, against a library with the same
function, built on Arroyo's published crates; and our own path in batches against that library. The host is the one of
tests/arroyo."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import build, load
from conftest import BATCH_ROWS, HERE, note

WORKSPACE = HERE.parent / "tests" / "arroyo"
PUBLISHED = "library on the published crates"
ROWS = 200_000
ROUNDS = 5
IN_FLIGHT = 1_000
SOURCES = {
    ".py": "from arroyo_udf_plugin import udf\n\n\n@udf\nasync def at_once(x: int) -> int:\n    return x + 1\n",
    ".rs": "use arroyo_udf_plugin::udf;\n\n#[udf]\nasync fn at_once(x: i64) -> i64 {\n    x + 1\n}\n",
}


@pytest.fixture(scope="session")
def workspace() -> Path:
    cargo = shutil.which("cargo")
    assert cargo, "cargo is missing: https://rustup.rs"
    target = HERE.parent / "build" / "arroyo"
    command = [cargo, "build", "--quiet", "--release", "--locked", "--workspace", "--bins", "--examples"]
    subprocess.run([*command, "--target-dir", str(target)], cwd=WORKSPACE, check=True)
    return target / "release"


def at_once(suffix: str, folder: Path) -> Path:
    source = folder / f"at_once{suffix}"
    source.write_text(SOURCES[suffix])
    return build(source)


def row_by_row(workspace: Path, library: Path) -> float:
    """CPU nanoseconds per row, of host and library together."""
    command = [workspace / "system", "bench", library, "types=i64", "count=0", f"rows={ROWS}", f"cap={IN_FLIGHT}"]
    done = subprocess.run([*command, "ordered=0"], check=True, stdout=subprocess.PIPE, text=True)
    return float(dict(line.split() for line in done.stdout.splitlines())["cpu_ns"])


def in_batches(function: Any) -> float:
    """CPU nanoseconds per row of our own path, from the Python host."""
    numbers, batches = pa.array(range(BATCH_ROWS)), 10 * ROWS // BATCH_ROWS
    with function.start(allowed_in_flight=IN_FLIGHT, ordered=False) as runtime:
        spent = time.process_time()
        received = sum(len(rows) for rows, _ in runtime.map([numbers] * batches, stop=False))
        return (time.process_time() - spent) / received * 1e9


@pytest.mark.parametrize(("language", "suffix"), [("Rust", ".rs"), ("Python", ".py")])
def test_row_by_row(benchmark: Any, workspace: Path, tmp_path: Path, language: str, suffix: str) -> None:
    ours, published = at_once(suffix, tmp_path), workspace / "examples" / "libat_once.so"

    def alternate() -> tuple[float, float]:
        rounds = [(row_by_row(workspace, ours), row_by_row(workspace, published)) for _ in range(ROUNDS)]
        mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
        return mine, theirs

    mine, theirs = benchmark.pedantic(alternate, rounds=1)
    name = f"at_once: {language}, row by row through Arroyo's symbols"
    note(benchmark, name, mine, "ns/row", PUBLISHED, mine / theirs, 0.4)


def test_batches(benchmark: Any, workspace: Path, tmp_path: Path) -> None:
    function = load(at_once(".rs", tmp_path)).functions["at_once"]
    published = workspace / "examples" / "libat_once.so"

    def alternate() -> tuple[float, float]:
        rounds = [(in_batches(function), row_by_row(workspace, published)) for _ in range(ROUNDS)]
        mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
        return mine, theirs

    mine, theirs = benchmark.pedantic(alternate, rounds=1)
    note(benchmark, "at_once: Rust, in batches through our table", mine, "ns/row", PUBLISHED, mine / theirs, 0.05)
