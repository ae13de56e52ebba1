"""`run` from Python: policies (R3), order, counts, and what is left behind, over real plugins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import InvalidArgument, RowError, load
from arroyo_udf_plugin.runner import Policy, Summary, run

ROWS = 20_000

SOURCE = '''
import asyncio
from arroyo_udf_plugin import udf

@udf
def half(x: int) -> int:
    """Odd numbers have none."""
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x // 2

@udf
def add(x: int, y: float | None) -> float:
    return x + (0.0 if y is None else y)

@udf
async def half_later(x: int) -> int:
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x // 2

@udf(ordered=False, allowed_in_flight=64)
async def as_it_comes(x: int) -> int:
    for _ in range(x % 5):
        await asyncio.sleep(0)
    return -x

@udf(timeout=0.05)
async def at_times_never(x: int) -> int:
    if x == 3:
        await asyncio.Event().wait()
    return x
'''


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, ".py")).functions


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Even numbers; every eleventh is null."""
    numbers = [None if i % 11 == 0 else 2 * i for i in range(ROWS)]
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pa.table({"x": pa.array(numbers, pa.int64()), "row": range(ROWS)}), path)
    return path


def csv(folder: Path, *values: object) -> Path:
    path = folder / "in.csv"
    path.write_text("x,note\n" + "".join(f"{value},n{index}\n" for index, value in enumerate(values)))
    return path


@pytest.mark.parametrize("name", ["half", "half_later"])
@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather", ".arrows", ".csv"])
def test_all_rows_in_order(functions: Any, source: Path, tmp_path: Path, name: str, ending: str) -> None:
    target = tmp_path / f"out{ending}"
    summary = run(functions[name], source, target, ["x"])
    assert (summary.rows, summary.values, summary.errors, summary.timed_out, summary.dropped) == (ROWS, ROWS, 0, 0, 0)
    match ending:
        case ".parquet":
            table = pyarrow.parquet.read_table(target)
        case ".csv":
            table = pa.csv.read_csv(target)
        case ".arrows":
            table = pa.ipc.open_stream(target.read_bytes()).read_all()
        case _:
            table = pa.ipc.open_file(target.read_bytes()).read_all()
    assert table.column_names == ["x", "row", name]
    assert table["row"].to_pylist() == list(range(ROWS))
    assert table[name].to_pylist() == [None if i % 11 == 0 else i for i in range(ROWS)]


def test_unordered_rows_keep_their_columns(functions: Any, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    summary = run(functions["as_it_comes"], source, target, ["x"])
    table = pyarrow.parquet.read_table(target)
    assert summary.rows == summary.values == ROWS
    assert sorted(table["row"].to_pylist()) == list(range(ROWS))
    assert table["as_it_comes"].to_pylist() == [None if x is None else -x for x in table["x"].to_pylist()]


def test_columns_go_to_arguments_by_position(functions: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("b,a\n0.5,1\nNA,2\n7,NA\n")
    run(functions["add"], source, tmp_path / "out.csv", ["a", "b"], name="sum")
    assert (tmp_path / "out.csv").read_text() == "b,a,sum\n0.5,1,1.5\nNA,2,2\n7,NA,\n"


@pytest.mark.parametrize("name", ["half", "half_later"])
def test_fail_names_the_row_and_leaves_nothing(functions: Any, tmp_path: Path, name: str) -> None:
    source = csv(tmp_path, 2, 4, 5, 6)
    with pytest.raises(RowError, match=rf"row 3: {name}: .*ValueError: 5 is odd"):
        run(functions[name], source, tmp_path / "out.csv", ["x"])
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("name", ["half", "half_later"])
@pytest.mark.parametrize(
    ("policy", "expected", "dropped"), [("null", "2,n0,1\n5,n1,\n6,n2,3\n", 0), ("drop", "2,n0,1\n6,n2,3\n", 1)]
)
def test_policy_for_errors(
    functions: Any, tmp_path: Path, name: str, policy: Policy, expected: str, dropped: int
) -> None:
    source, target = csv(tmp_path, 2, 5, 6), tmp_path / "out.csv"
    summary = run(functions[name], source, target, ["x"], name="half", on_error=policy)
    assert target.read_text() == "x,note,half\n" + expected
    assert (summary.rows, summary.values, summary.errors, summary.dropped) == (3, 2, 1, dropped)


def test_policy_for_timeouts(functions: Any, tmp_path: Path) -> None:
    source, target = csv(tmp_path, 2, 3, 4), tmp_path / "out.csv"
    function = functions["at_times_never"]
    with pytest.raises(RowError, match="row 2: at_times_never: "):
        run(function, source, target, ["x"], on_error="drop")
    assert not target.exists()
    summary = run(function, source, target, ["x"], name="y", on_timeout="null")
    assert target.read_text() == "x,note,y\n2,n0,2\n3,n1,\n4,n2,4\n"
    assert (summary.values, summary.errors, summary.timed_out) == (2, 0, 1)
    summary = run(function, source, target, ["x"], name="y", on_timeout="drop")
    assert target.read_text() == "x,note,y\n2,n0,2\n4,n2,4\n"
    assert summary.dropped == 1


def test_progress_is_told(functions: Any, source: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []

    def progress(summary: Summary, total: int | None, in_flight: int) -> None:
        assert in_flight >= 0
        told.append((summary.rows, total))

    run(functions["half_later"], source, tmp_path / "out.arrow", ["x"], progress=progress)
    rows = [rows for rows, _ in told]
    assert rows == sorted(rows)
    assert told[-1] == (ROWS, ROWS)


def test_no_rows(functions: Any, tmp_path: Path) -> None:
    for name in ("half", "half_later"):
        run(functions[name], csv(tmp_path), tmp_path / "out.csv", ["x"])
        assert (tmp_path / "out.csv").read_text() == f"x,note,{name}\n"


def test_the_input_may_be_the_output(functions: Any, tmp_path: Path) -> None:
    path = csv(tmp_path, 2)
    run(functions["half"], path, path, ["x"])
    assert path.read_text() == "x,note,half\n2,n0,1\n"


@pytest.mark.parametrize(
    ("columns", "name", "text"),
    [
        (["x", "note"], None, r"half takes 1 arguments \(x: int64\); 2 columns given"),
        (["y"], None, "no column 'y'; the columns are x, note"),
        (["x"], "note", "a column 'note' already: choose the result's name with --name"),
        (["note"], None, "column 'note', rows 1 to 1: not all values are int64"),
    ],
)
def test_what_does_not_fit_is_refused(
    functions: Any, tmp_path: Path, columns: list[str], name: str | None, text: str
) -> None:
    source = csv(tmp_path, 2)
    with pytest.raises(InvalidArgument, match=text):
        run(functions["half"], source, tmp_path / "out.csv", columns, name=name)
    assert list(tmp_path.iterdir()) == [source]


def test_missing_files_are_named(functions: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"in\.csv: there is no such file"):
        run(functions["half"], tmp_path / "in.csv", tmp_path / "out.csv", ["x"])
    with pytest.raises(InvalidArgument, match=r"the folder .*nowhere does not exist"):
        run(functions["half"], csv(tmp_path, 2), tmp_path / "nowhere" / "out.csv", ["x"])
