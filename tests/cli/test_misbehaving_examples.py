"""examples/misbehaving through `arroyo-udf run`, each function in a process of its own: the run succeeds, each row has
its outcome and the others their values, and the summary counts them (R1, R2, R6, R8)."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import load

pytestmark = pytest.mark.once

BuildPlugin = Callable[..., Path]

ROWS = 50
BAD = ROWS // 10
# The bad rows' outcomes. A function that only leaves something behind, or stops other Tasks, returns a value.
PYTHON = {
    "fails": "errors",
    "exits": "errors",
    "wrong_type": "errors",
    "too_big": "errors",
    "recurses": "errors",
    "fails_later": "errors",
    "never_ends": "timed_out",
    "blocks_the_loop": "timed_out",
    "ignores_cancellation": "timed_out",
    "cancels_itself": "errors",
    "exits_in_a_task": "errors",
    "stops_the_loop": "values",
    "leaves_a_task_behind": "values",
    "leaves_an_exit_behind": "values",
}
RUST = {
    "fails": "errors",
    "panics": "errors",
    "panics_later": "errors",
    "never_ends": "timed_out",
    "blocks_the_thread": "timed_out",
    "panics_when_cancelled": "timed_out",
    "panics_in_a_task": "errors",
    "leaves_a_task_behind": "values",
}
C = {
    "fails": "errors",
    "completes_with_another_type": "errors",
    "gives_up": "errors",
    "never_completes": "timed_out",
    "completes_when_cancelled": "timed_out",
    "blocks_the_thread": "timed_out",
    "completes_twice": "values",
    "completes_in_many_threads_at_once": "values",
    "completes_what_is_no_call": "values",
    "completes_after_the_end": "values",
}


@pytest.mark.parametrize(("suffix", "functions"), [(".py", PYTHON), (".rs", RUST), (".c", C)])
def test_all_are_here(build_plugin: BuildPlugin, examples: Path, suffix: str, functions: dict[str, str]) -> None:
    assert list(load(build_plugin(examples / "misbehaving" / f"udf{suffix}")).functions) == list(functions)


@pytest.mark.parametrize(
    ("suffix", "function", "becomes"),
    [(suffix, *case) for suffix, cases in [(".py", PYTHON), (".rs", RUST), (".c", C)] for case in cases.items()],
)
def test_the_run_ends_well(
    build_plugin: BuildPlugin, examples: Path, tmp_path: Path, suffix: str, function: str, becomes: str
) -> None:
    plugin = build_plugin(examples / "misbehaving" / f"udf{suffix}")
    rows, out = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    pa.parquet.write_table(pa.table({"x": range(ROWS)}), rows)
    words = ["run", f"{plugin}:{function}", rows, "--args", "x", "--out", out, "--json"]
    words += ["--on-error", "null", "--on-timeout", "null"]
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    counts = {"values": ROWS - BAD, "errors": 0, "timed_out": 0}
    counts[becomes] += BAD
    assert {key: summary[key] for key in ["rows", *counts]} == {"rows": ROWS, **counts}
    answered = pa.parquet.read_table(out)[function].to_pylist()
    bad = {x for x in range(ROWS) if x % 10 == 3 and becomes != "values"}
    assert answered == [None if x in bad else x + 1 for x in range(ROWS)]
