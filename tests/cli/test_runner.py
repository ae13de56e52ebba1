"""`runner.run` over real plugins: policies (R3), order, counts, and files after a failure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import InvalidArgument, RowError, load
from arroyo_udf_plugin.engine.connectors.options import Writing
from arroyo_udf_plugin.engine.file_run import Call, Summary
from arroyo_udf_plugin.engine.file_run import run as run_calls
from arroyo_udf_plugin.host.policy import Action

ROWS = 20_000

SOURCE = '''
import asyncio
from arroyo_udf_plugin import _native, udf

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

async def times_out() -> None:
    """Moves the clock itself: no other call of these functions suspends, so that none is running then."""
    await asyncio.sleep(0)
    _native.advance_clock(1000 * 10**9)
    await asyncio.Event().wait()

@udf(timeout=1000)
async def at_times_never(x: int) -> int:
    if x == 3:
        await times_out()
    return x

@udf(timeout=1000)
async def never_or_odd(x: int) -> int:
    if x == 3:
        await times_out()
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x

@udf(ordered=False, allowed_in_flight=64)
async def fails_as_it_comes(key: int) -> int:
    for _ in range(key % 5):
        await asyncio.sleep(0)
    if key % 7 == 0:
        raise ValueError(f"no {key}")
    return key

@udf
def minus(x: int) -> int:
    return -x

@udf
def same(x: int, y: int) -> int:
    raise ValueError("never")
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


def run(function: Any, source: Path, target: Path, columns: list[str], name: str | None = None, **how: Any) -> Summary:
    """One function over one file."""
    return run_calls([Call.of(function, columns, name)], [source], target, **how)


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
    with pytest.raises(RowError, match=rf"plugin.{name}, .*in.csv, row 3: ValueError: 5 is odd"):
        run(functions[name], source, tmp_path / "out.csv", ["x"])
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("name", ["half", "half_later"])
@pytest.mark.parametrize(
    ("policy", "expected", "dropped"), [("null", "2,n0,1\n5,n1,\n6,n2,3\n", 0), ("drop", "2,n0,1\n6,n2,3\n", 1)]
)
def test_policy_for_errors(
    functions: Any, tmp_path: Path, name: str, policy: Action, expected: str, dropped: int
) -> None:
    source, target = csv(tmp_path, 2, 5, 6), tmp_path / "out.csv"
    summary = run(functions[name], source, target, ["x"], name="half", on_error=policy)
    assert target.read_text() == "x,note,half\n" + expected
    assert (summary.rows, summary.values, summary.errors, summary.dropped) == (3, 2, 1, dropped)


def test_policy_for_timeouts(functions: Any, tmp_path: Path) -> None:
    source, target = csv(tmp_path, 2, 3, 4), tmp_path / "out.csv"
    function = functions["at_times_never"]
    with pytest.raises(RowError, match=r"at_times_never, .*in.csv, row 2: timed out"):
        run(function, source, target, ["x"], on_error="drop")
    assert not target.exists()
    summary = run(function, source, target, ["x"], name="y", on_timeout="null")
    assert target.read_text() == "x,note,y\n2,n0,2\n3,n1,\n4,n2,4\n"
    assert (summary.values, summary.errors, summary.timed_out) == (2, 0, 1)
    summary = run(function, source, target, ["x"], name="y", on_timeout="drop")
    assert target.read_text() == "x,note,y\n2,n0,2\n4,n2,4\n"
    assert summary.dropped == 1


def test_progress_is_reported(functions: Any, source: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []

    def progress(summary: Summary, total: int | None) -> None:
        (counts,) = summary.calls
        assert counts.statistics is None or counts.statistics.drained >= summary.rows
        told.append((summary.rows, total))

    run(functions["half_later"], source, tmp_path / "out.arrow", ["x"], progress=progress)
    rows = [rows for rows, _ in told]
    assert rows == sorted(rows)
    assert told[-1] == (ROWS, ROWS)


def test_r16_the_summary_has_the_statistics(functions: Any, tmp_path: Path) -> None:
    source, target = csv(tmp_path, 2, 3, 4, 5), tmp_path / "out.csv"
    options = {"retry_on": "error", "max_attempts": 3, "backoff": 0.001}
    summary = run(functions["half_later"], source, target, ["x"], on_error="null", options=options)
    found = summary.statistics
    assert found is not None
    assert (found.accepted, found.drained, found.values, found.errors, found.retries) == (4, 4, 2, 2, 4)
    assert (found.running, found.stuck, found.left_behind, found.latency.rows) == (0, 0, 0, 4)
    assert run(functions["half"], source, target, ["x"], on_error="null").statistics is None


def test_no_rows(functions: Any, tmp_path: Path) -> None:
    for name in ("half", "half_later"):
        run(functions[name], csv(tmp_path), tmp_path / "out.csv", ["x"])
        assert (tmp_path / "out.csv").read_text() == f"x,note,{name}\n"


def test_the_input_may_be_the_output_if_forced(functions: Any, tmp_path: Path) -> None:
    path = csv(tmp_path, 2)
    with pytest.raises(InvalidArgument, match=r"in\.csv is an input, too: name another output"):
        run(functions["half"], path, path, ["x"])
    run(functions["half"], path, path, ["x"], writing=Writing(force=True))
    assert path.read_text() == "x,note,half\n2,n0,1\n"


@pytest.mark.parametrize(
    ("columns", "name", "text"),
    [
        (["x", "note"], None, r"half takes 1 arguments \(x: int64\), but the columns named are: x, note"),
        (["y"], None, "no column 'y'; the columns are x, note"),
        (["x"], "note", "a column 'note' already: choose the result's name with --name"),
    ],
)
def test_wrong_arguments_are_refused(
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


def read(path: Path) -> pa.Table:
    return (
        pyarrow.parquet.read_table(path)
        if path.suffix == ".parquet"
        else pa.ipc.open_file(path.read_bytes()).read_all()
    )


@pytest.mark.parametrize("name", ["half", "half_later"])
@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_dead_letters(functions: Any, tmp_path: Path, name: str, ending: str) -> None:
    """R3: they have all columns of the row as they stand in the file, error, row and file; other rows are written."""
    source, target, dead = csv(tmp_path, 2, 5, 6, 7), tmp_path / "out.csv", tmp_path / f"dead{ending}"
    summary = run(functions[name], source, target, ["x"], on_error="dead_letter", dead_letter=dead)
    assert target.read_text() == f"x,note,{name}\n2,n0,1\n6,n2,3\n"
    assert (summary.values, summary.errors, summary.nulled, summary.dropped, summary.dead_letters) == (2, 2, 0, 0, 2)
    letters = read(dead)
    assert letters.drop_columns("failed_error").to_pylist() == [
        {
            "x": x,
            "note": note,
            "failed_row": row,
            "failed_file": str(source),
            "failed_outcome": "error",
            "failed_attempts": 1,
            "failed_function": name,
            "failed_plugin": functions[name].plugin_hash,
        }
        for x, note, row in (("5", "n1", 2), ("7", "n3", 4))
    ]
    texts = letters["failed_error"].to_pylist()
    assert ["ValueError: 5 is odd" in texts[0], "ValueError: 7 is odd" in texts[1]] == [True, True]
    assert {path.name for path in tmp_path.iterdir()} == {source.name, target.name, dead.name, "out.csv.rows"}


def test_dead_letters_of_timeouts(functions: Any, tmp_path: Path) -> None:
    """A timeout is a dead letter with its outcome and the number of its row, which is not in the first batch."""
    n_rows, dead = 10_000, tmp_path / "dead.arrow"
    source = tmp_path / "in.parquet"
    x = [3 if i == 9_000 else 4 for i in range(n_rows)]
    pyarrow.parquet.write_table(pa.table({"x": pa.array(x, pa.int32())}), source)
    out = tmp_path / "out.parquet"
    summary = run(functions["never_or_odd"], source, out, ["x"], on_timeout="dead_letter", dead_letter=dead)
    assert (summary.rows, summary.timed_out, summary.dead_letters) == (n_rows, 1, 1)
    assert read(out).num_rows == n_rows - 1
    (letter,) = read(dead).to_pylist()
    assert (letter["x"], letter["failed_row"], letter["failed_outcome"]) == (3, 9_001, "timed_out")
    assert letter["failed_error"] == "timed out (timeout 1000 s) in attempt 1"


def test_dead_letters_of_unordered_rows(functions: Any, tmp_path: Path) -> None:
    """Each letter has its own row's argument, in whatever order results come."""
    source, dead = tmp_path / "in.parquet", tmp_path / "dead.parquet"
    pyarrow.parquet.write_table(pa.table({"key": pa.array(range(ROWS), pa.int64())}), source)
    function = functions["fails_as_it_comes"]
    summary = run(function, source, tmp_path / "out.arrow", ["key"], on_error="dead_letter", dead_letter=dead)
    letters = read(dead)
    assert summary.dead_letters == letters.num_rows == len(range(0, ROWS, 7))
    assert letters["failed_row"].to_pylist() == [key + 1 for key in letters["key"].to_pylist()]
    assert sorted(letters["key"].to_pylist()) == list(range(0, ROWS, 7))
    for key, text in zip(letters["key"].to_pylist(), letters["failed_error"].to_pylist(), strict=True):
        assert f"ValueError: no {key}\n" in text + "\n"


def test_dead_letters_can_be_replayed(functions: Any, tmp_path: Path) -> None:
    """The file is an input with the same --args; with --force, its own dead letters may replace it."""
    dead = tmp_path / "dead.parquet"
    run(
        functions["half"], csv(tmp_path, 2, 5, 7), tmp_path / "out.csv", ["x"], on_error="dead_letter", dead_letter=dead
    )
    run(functions["minus"], dead, tmp_path / "again.csv", ["x"], name="y")
    lines = (tmp_path / "again.csv").read_text().splitlines()
    assert lines[0].startswith("x,note,failed_row,failed_file,failed_outcome,failed_error,")
    assert [line.rsplit(",", 1)[1] for line in lines if line.endswith(("-5", "-7"))] == ["-5", "-7"]
    before = read(dead)
    for _ in range(2):
        how: Any = {"on_error": "dead_letter", "dead_letter": dead, "writing": Writing(force=True)}
        summary = run(functions["half"], dead, tmp_path / "more.arrow", ["x"], **how)
        assert (summary.rows, summary.dead_letters) == (2, 2)
        assert read(dead).equals(before)
    assert read(dead).select(["note", "failed_row"]).to_pylist() == [
        {"note": "n1", "failed_row": 2},
        {"note": "n2", "failed_row": 3},
    ]
    assert set(read(dead)["failed_file"].to_pylist()) == {str(tmp_path / "in.csv")}


def test_without_dead_letters_the_file_is_empty(functions: Any, tmp_path: Path) -> None:
    dead = tmp_path / "dead.arrow"
    dead.write_text("of an earlier run")
    run(functions["half"], csv(tmp_path, 2), tmp_path / "out.csv", ["x"], on_error="dead_letter", dead_letter=dead)
    assert read(dead).num_rows == 0
    assert read(dead).column_names[:3] == ["x", "note", "failed_row"]


def test_a_run_that_fails_leaves_no_dead_letters(functions: Any, tmp_path: Path) -> None:
    source, dead = csv(tmp_path, 4, 5, 3), tmp_path / "dead.arrow"
    with pytest.raises(RowError, match=r"never_or_odd, .*in\.csv, row 3: timed out "):
        run(functions["never_or_odd"], source, tmp_path / "o.csv", ["x"], on_error="dead_letter", dead_letter=dead)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("policy", "file", "text"),
    [
        ("dead_letter", None, "the policy dead_letter needs a file: name one with --dead-letter"),
        ("null", "dead.arrow", r"no policy sends rows to .*dead\.arrow: add --on-error dead_letter or"),
        (
            "dead_letter",
            "dead.csv",
            r"dead\.csv: dead letters keep their types, so the file must end in one of \.parquet",
        ),
        ("dead_letter", "out.arrow", r"out\.arrow: the output and the dead letters need two files"),
        ("dead_letter", "nowhere/dead.arrow", "the folder .*nowhere does not exist"),
        ("dead", None, "error='dead'; write one of 'fail', 'null', 'drop', 'dead_letter'"),
    ],
)
def test_wrong_dead_letters_are_refused(
    functions: Any, tmp_path: Path, policy: Any, file: str | None, text: str
) -> None:
    source = csv(tmp_path, 5)
    dead = None if file is None else tmp_path / file
    with pytest.raises(InvalidArgument, match=text):
        run(functions["half"], source, tmp_path / "out.arrow", ["x"], on_error=policy, dead_letter=dead)
    assert list(tmp_path.iterdir()) == [source]


def test_one_column_for_two_arguments(functions: Any, tmp_path: Path) -> None:
    """A letter has it once, also if the arguments have two types."""
    source, dead = csv(tmp_path, 1, 2), tmp_path / "dead.arrow"
    run(functions["same"], source, tmp_path / "o.csv", ["x", "x"], on_error="dead_letter", dead_letter=dead)
    assert read(dead).column_names[:3] == ["x", "note", "failed_row"]
    run(functions["same"], dead, tmp_path / "again.csv", ["x", "x"], on_error="null")
    run(functions["add"], source, tmp_path / "p.parquet", ["x", "x"], on_error="dead_letter", dead_letter=dead)
    assert read(tmp_path / "p.parquet").to_pylist() == [
        {"x": 1, "note": "n0", "add": 2.0},
        {"x": 2, "note": "n1", "add": 4.0},
    ]
