"""`run` in unusual cases: cells that do not parse, several functions or files, a close that fails, slow calls, large
results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import InvalidArgument, RowError, load
from arroyo_udf_plugin.engine.file_run import Call, run
from arroyo_udf_plugin.engine.operators.pace import GROWTH, MOST_STEP_ROWS, STEP_BYTES, STEP_SECONDS, Pace
from arroyo_udf_plugin.host.answers import HELD_ROWS, STEP_ROWS, Window
from arroyo_udf_plugin.host.policy import Action

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

@udf
def half(x: int) -> float:
    if x < 0:
        raise ValueError("negative")
    return x / 2

@udf
async def half_later(x: int) -> float:
    if x < 0:
        raise ValueError("negative")
    return x / 2

@udf(ordered=False)
async def half_as_it_comes(x: int) -> float:
    for _ in range(x % 5):
        await asyncio.sleep(0)
    return x / 2

@udf
def add(x: int, y: int) -> int:
    return x + y

@udf
def known(x: int | None) -> bool:
    return x is not None

@udf
async def tenfold(half: float) -> float:
    return half * 10

class Context:
    async def close(self) -> None:
        raise OSError("the connection is gone")

@udf
async def closes_badly(context: Context, x: int) -> int:
    if x < 0:
        raise ValueError("negative")
    return x

@udf
def large(x: int, size: int) -> str:
    return chr(97 + x % 26) * size

@udf
async def large_later(x: int, size: int) -> str:
    return chr(97 + x % 26) * size
"""

HALVES = ["half", "half_later", "half_as_it_comes"]


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(SOURCE, name="runs")


@pytest.fixture(scope="module")
def functions(plugin: Path) -> Any:
    return load(plugin).functions


def cli(*arguments: object, cwd: Path, status: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, input=stdin)
    assert done.returncode == status, done.stderr
    return done


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# ---- Cells that do not parse -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize(("policy", "kept"), [("null", 1000), ("drop", 990)])
def test_a_cell_that_does_not_parse_is_its_rows_error(
    functions: Any, tmp_path: Path, name: str, policy: Action, kept: int
) -> None:
    """The other rows have their values, in their places."""
    numbers = ["many" if i % 100 == 7 else str(i) for i in range(1000)]
    source = write(tmp_path / "in.csv", "x\n" + "".join(f"{number}\n" for number in numbers))
    out = tmp_path / "out.csv"
    summary = run([Call.of(functions[name], name="y")], [source], out, on_error=policy)
    assert (summary.rows, summary.values, summary.errors, summary.written) == (1000, 990, 10, kept)
    values = {n: "" if n == "many" else f"{int(n) / 2:g}" for n in numbers}
    expected = [f"{n},{values[n]}" for n in numbers if policy == "null" or n != "many"]
    lines = out.read_text().splitlines()[1:]
    assert (sorted(lines) if name == "half_as_it_comes" else lines) == (
        sorted(expected) if name == "half_as_it_comes" else expected
    )


@pytest.mark.parametrize("name", HALVES)
def test_a_file_of_which_no_cell_parses(functions: Any, tmp_path: Path, name: str) -> None:
    source, out = write(tmp_path / "in.csv", "x\n" + "?\n" * 20_000), tmp_path / "out.csv"
    summary = run([Call.of(functions[name])], [source], out, on_error="null")
    assert (summary.rows, summary.values, summary.errors, summary.nulled) == (20_000, 0, 20_000, 20_000)
    assert out.read_text() == f"x,{name}\n" + "?,\n" * 20_000


@pytest.mark.parametrize("name", HALVES)
def test_a_cell_that_does_not_parse_ends_the_run_by_default(functions: Any, tmp_path: Path, name: str) -> None:
    source = write(tmp_path / "in.csv", "x\n1\n2.5\n")
    with pytest.raises(RowError, match=rf"^runs\.{name}, .*in\.csv, row 2: column 'x': '2\.5' is not int64$"):
        run([Call.of(functions[name])], [source], tmp_path / "out.csv")


def test_a_refused_cell_is_a_dead_letter_without_attempts(functions: Any, tmp_path: Path) -> None:
    source, dead = write(tmp_path / "in.csv", "x\n-1\nmany\n4\n"), tmp_path / "dead.parquet"
    for name in ("half", "half_later"):
        run([Call.of(functions[name])], [source], tmp_path / "o.csv", on_error="dead_letter", dead_letter=dead)
        letters = pyarrow.parquet.read_table(dead).to_pylist()
        assert [(row["x"], row["failed_row"], row["failed_attempts"]) for row in letters] == [
            ("-1", 1, 1),
            ("many", 2, 0),
        ]


def test_a_value_that_does_not_fit_is_its_rows_error(functions: Any, tmp_path: Path) -> None:
    """As with cells of text files: 2.5 is no int64."""
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pyarrow.parquet.write_table(pa.table({"x": [2.0, 2.5, None, 8.0]}), source)
    summary = run([Call.of(functions["half"])], [source], out, on_error="null")
    assert summary.errors == 1
    assert pyarrow.parquet.read_table(out).to_pylist() == [
        {"x": 2.0, "half": 1.0},
        {"x": 2.5, "half": None},
        {"x": None, "half": None},
        {"x": 8.0, "half": 4.0},
    ]


def test_a_line_that_is_no_json_is_its_rows_error(functions: Any, tmp_path: Path) -> None:
    """Also for a second function, and one that takes nulls."""
    source, out = write(tmp_path / "in.jsonl", '{"x": 2}\n\n{"x": \n{"x": 4}\n'), tmp_path / "out.jsonl"
    calls = [Call.of(functions["half"]), Call.of(functions["known"])]
    with pytest.raises(RowError, match=r"^runs\.half, .*in\.jsonl, row 3: "):
        run(calls, [source], out)
    assert run(calls, [source], out, on_error="null").errors == 2
    assert [json.loads(line)["known"] for line in out.read_text().splitlines()] == [True, None, True]


def test_types_that_cannot_fit_are_refused_at_once(functions: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pa.table({"x": ["2", "3"]}), source)
    with pytest.raises(InvalidArgument, match=r"column 'x': .*is string, not int64"):
        run([Call.of(functions["half"])], [source], tmp_path / "out.parquet", on_error="null")


# ---- Several functions, several files --------------------------------------------------------------------------------


def test_several_functions_in_one_pass(plugin: Path, tmp_path: Path) -> None:
    """Sync and async; a function may take the result of one before it."""
    write(tmp_path / "in.csv", 'x,"y, too"\n4,1\n-6,2\n8,3\n')
    calls = ["half", "much = tenfold", 'sum = add(x, "y, too")']
    command = ["run", plugin, "in.csv", "--out", "out.csv", *(word for call in calls for word in ("--call", call))]
    error = cli(*command, cwd=tmp_path, status=1).stderr
    assert "runs.half, in.csv, row 2: ValueError: negative" in error
    summary = json.loads(cli(*command, "--on-error", "drop", "--json", cwd=tmp_path).stdout)
    assert (tmp_path / "out.csv").read_text() == 'x,"y, too",half,much,sum\n4,1,2,20,5\n8,3,4,40,11\n'
    assert (summary["rows"], summary["values"], summary["errors"], summary["dropped"]) == (3, 6, 1, 1)
    assert [(call["function"], call["values"]) for call in summary["calls"]] == [
        ("half", 2),
        ("tenfold", 2),
        ("add", 2),
    ]


def test_a_call_of_a_column_that_is_not_there(functions: Any, tmp_path: Path) -> None:
    source = write(tmp_path / "in.csv", "x\n1\n")
    with pytest.raises(InvalidArgument, match=r"in\.csv: there is no column 'half'; the columns are x$"):
        run([Call.of(functions["tenfold"]), Call.of(functions["half"])], [source], tmp_path / "out.csv")


def test_args_default_to_the_names_of_the_parameters(plugin: Path, tmp_path: Path) -> None:
    write(tmp_path / "in.csv", "y,x\n1,2\n")
    cli("run", f"{plugin}:add", "in.csv", "--out", "out.csv", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_text() == "y,x,add\n1,2,3\n"
    cli("run", f"{plugin}:add", "in.csv", "--args", "x, x", "--out", "out.csv", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_text() == "y,x,add\n1,2,4\n"


def test_call_and_args_together_are_refused(plugin: Path, tmp_path: Path) -> None:
    write(tmp_path / "in.csv", "x\n1\n")
    done = cli("run", plugin, "in.csv", "--out", "o.csv", "--call", "half", "--args", "x", cwd=tmp_path, status=2)
    assert "--call names function, columns and result" in done.stderr
    done = cli("run", plugin, "in.csv", "--out", "o.csv", "--call", "halv(x)", cwd=tmp_path, status=1)
    assert "has no function 'halv'; it has half, half_later, " in done.stderr


def test_rows_of_several_files_have_their_own_numbers(functions: Any, tmp_path: Path) -> None:
    inputs = [write(tmp_path / "a.csv", "x\n1\n2\n"), write(tmp_path / "b.csv", "x\n3\n-4\n")]
    with pytest.raises(RowError, match=r"^runs\.half_later, .*b\.csv, row 2: ValueError: negative"):
        run([Call.of(functions["half_later"])], inputs, tmp_path / "out.csv")


def test_the_summary_is_not_among_the_rows(plugin: Path, tmp_path: Path) -> None:
    """With --out - the rows have standard output for themselves."""
    for extra in ([], ["--json"]):
        done = cli("run", f"{plugin}:half", "-", "--out", "-", *extra, cwd=tmp_path, stdin="x\n4\n")
        assert done.stdout == "x,half\n4,2\n"
        assert ('"rows": 1' if extra else "-: 1 row written of 1 read") in done.stderr


# ---- The end ---------------------------------------------------------------------------------------------------------


def test_a_close_that_fails_keeps_the_output(plugin: Path, tmp_path: Path) -> None:
    """All rows have succeeded: the output is there, the exit status 0, and the error a warning."""
    write(tmp_path / "in.csv", "x\n1\n2\n")
    done = cli("run", f"{plugin}:closes_badly", "in.csv", "--out", "out.csv", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_text() == "x,closes_badly\n1,1\n2,2\n"
    assert "Warning: all rows have ended, but then close failed: " in done.stderr
    assert "the connection is gone" in done.stderr
    assert "2 values" in done.stdout
    done = cli("run", f"{plugin}:closes_badly", "in.csv", "--out", "out.csv", "--json", cwd=tmp_path)
    assert "the connection is gone" in json.loads(done.stdout)["warnings"][0]


def test_a_close_that_fails_does_not_hide_a_failed_row(plugin: Path, tmp_path: Path) -> None:
    write(tmp_path / "in.csv", "x\n1\n-2\n")
    done = cli("run", f"{plugin}:closes_badly", "in.csv", "--out", "out.csv", cwd=tmp_path, status=1)
    assert "row 2: ValueError: negative" in done.stderr
    assert not (tmp_path / "out.csv").exists()


# ---- Time and memory -------------------------------------------------------------------------------------------------


def test_steps_follow_time() -> None:
    """A fast function soon has whole batches; one that takes a second a row keeps steps of one row."""
    fast, slow = Pace(), Pace()
    sizes = []
    for _ in range(6):
        sizes.append(fast.rows)
        fast.observe(fast.rows, fast.rows * 1e-7, fast.rows * 8)
        slow.observe(slow.rows, slow.rows * 1.0, slow.rows * 8)
        assert slow.rows == 1
    assert sizes == [1, GROWTH, GROWTH**2, GROWTH**3, GROWTH**4, MOST_STEP_ROWS]
    fast.observe(MOST_STEP_ROWS, 10 * STEP_SECONDS, MOST_STEP_ROWS * 8)
    assert fast.rows == MOST_STEP_ROWS // 10


def test_steps_follow_the_size_of_results() -> None:
    pace, window = Pace(), Window(100)
    for _ in range(10):
        pace.observe(pace.rows, 1e-6, pace.rows * (1 << 20))
        assert pace.rows <= STEP_BYTES >> 20
        window.drained(10, 10 << 20)
    assert (window.rows, window.step) == (100, STEP_BYTES >> 20)
    for _ in range(10):
        window.drained(window.step, window.step * 10)
    assert (window.rows, window.step) == (HELD_ROWS, STEP_ROWS)


@pytest.mark.parametrize("name", ["large", "large_later"])
@pytest.mark.parametrize(("size", "n_rows"), [(1_000_000, 2_000), (100_000, 10_000)])
def test_large_results_do_not_fill_the_memory(plugin: Path, tmp_path: Path, name: str, size: int, n_rows: int) -> None:
    """1 or 2 GB of results, in a process of its own."""
    pyarrow.parquet.write_table(pa.table({"x": range(n_rows), "size": [size] * n_rows}), tmp_path / "in.parquet")
    program = f"""
import resource
from arroyo_udf_plugin import load
from arroyo_udf_plugin.engine.connectors.options import Reading
from arroyo_udf_plugin.engine.file_run import Call, run
function = load({str(plugin)!r}).functions[{name!r}]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run([Call.of(function)], ["in.parquet"], "few.parquet", reading=Reading(limit=1))
before = peak()
assert run([Call.of(function)], ["in.parquet"], "out.parquet").values == {n_rows}
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 400_000, "KiB"
    os.unlink(tmp_path / "out.parquet")
