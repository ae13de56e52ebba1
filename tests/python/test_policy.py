"""Policies (R3) as the author of a host uses them: on the results of a runtime and of a sync function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from waiting import advance, drained, until

from arroyo_udf_plugin import DeadLetters, Function, InvalidArgument, Policy, RowError, load

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

def answer(x: int) -> int:
    if x == 1:
        raise ValueError("no one")
    return x

@udf(native=False)
def at_once(x: int, note: str | None) -> int:
    return answer(x)

@udf(timeout=1000)
async def later(x: int, note: str | None) -> int:
    if x == 2:
        await asyncio.Event().wait()
    return answer(x)
"""
NUMBERS = [0, 1, None, 2, 1]


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="policies")).functions


@pytest.fixture
def arguments() -> list[pa.Array]:
    return [pa.array(NUMBERS, pa.int64()), pa.array(["a", None, "c", "d", "e"])]


def one_times_out(function: Function, first: int, arguments: list[pa.Array]) -> pa.RecordBatch:
    """The results of arguments of which the last but one times out."""
    with function.start() as runtime:
        runtime.send(first, *arguments)
        until(lambda: runtime.statistics().held == 1, "all rows but the one that never ends")
        advance(1000)
        (whole,) = drained(runtime, len(NUMBERS)).combine_chunks().to_batches()
    return whole


def test_each_class_has_its_own_policy(functions: Any, arguments: list[pa.Array]) -> None:
    """Errors become null, the timeout becomes a dead letter; ids are those of send."""
    results = one_times_out(functions["later"], 100, arguments)
    decided = Policy(error="null", timeout="dead_letter").apply(results, functions["later"])
    assert decided.results["id"].to_pylist() == [100, 101, 102, 104]
    assert decided.results["value"].to_pylist() == [0, None, None, None]
    assert decided.kept is not None
    assert decided.kept.to_pylist() == [True, True, True, False, True]
    assert decided.dead_at.to_pylist() == [3]
    assert decided.dead["failed_row"].to_pylist() == [103]
    assert decided.dead["failed_outcome"].to_pylist() == ["timed_out"]
    assert (decided.nulled, decided.dropped) == (2, 0)


def test_results_of_a_sync_function(functions: Any, arguments: list[pa.Array]) -> None:
    """Its results have no ids: rows count from `first`, and each had one attempt."""
    results = functions["at_once"].outcomes(*arguments)
    decided = Policy(error="dead_letter").apply(results, functions["at_once"], first=20)
    assert decided.results["value"].to_pylist() == [0, None, 2]
    assert decided.dead["failed_row"].to_pylist() == [21, 24]
    assert decided.dead["failed_attempts"].to_pylist() == [1, 1]
    dropped = Policy(error="drop").apply(results, functions["at_once"])
    assert dropped.results["value"].to_pylist() == [0, None, 2]
    assert (dropped.dropped, dropped.dead.num_rows) == (2, 0)


def test_values_pass(functions: Any) -> None:
    results = functions["at_once"].outcomes(pa.array([5, None], pa.int64()), pa.array(["a", "b"]))
    decided = Policy().apply(results, functions["at_once"])
    assert decided.kept is None
    assert decided.results["value"].to_pylist() == [5, None]
    assert (decided.dead.num_rows, decided.nulled, decided.dropped) == (0, 0, 0)


def test_fail_names_all(functions: Any, arguments: list[pa.Array]) -> None:
    """The message names the first row by id; the exception has the texts of all rows of the classes that fail."""
    results = one_times_out(functions["later"], 7, arguments)
    with pytest.raises(RowError, match=r"^policies\.later, row 8: ValueError: no one") as caught:
        Policy(timeout="null").apply(results, functions["later"])
    assert list(caught.value.errors) == [8, 11]
    with pytest.raises(RowError, match=r"^policies\.later, row 10: timed out \(timeout 1000 s\) in attempt 1$"):
        Policy(error="drop").apply(results, functions["later"])


def test_dead_letters_have_the_attempts(functions: Any) -> None:
    """An unordered function makes three attempts at a row that times out (R7)."""
    with functions["later"].start(ordered=False, timeout=0.1) as runtime:
        runtime.send(0, pa.array([2], pa.int64()), pa.array(["a"]))
        runtime.stop()
        results = runtime.drain_results()
    decided = Policy(timeout="dead_letter").apply(results, functions["later"])
    assert decided.dead.select(["failed_outcome", "failed_attempts"]).to_pylist() == [
        {"failed_outcome": "timed_out", "failed_attempts": 3}
    ]


def test_cancelled_rows_are_errors(functions: Any) -> None:
    with functions["later"].start(timeout=60.0) as runtime:
        runtime.send(0, pa.array([2], pa.int64()), pa.array(["a"]))
        runtime.stop("cancel")
        results = runtime.drain_results()
    decided = Policy(error="dead_letter").apply(results, functions["later"])
    assert decided.dead["failed_outcome"].to_pylist() == ["cancelled"]


def test_dead_letters_file(functions: Any, arguments: list[pa.Array], tmp_path: Path) -> None:
    """Written batch by batch, with the arguments under their own names."""
    function, path = functions["at_once"], tmp_path / "dead.parquet"
    policy = Policy(error="dead_letter")
    with DeadLetters(path, function.arguments) as letters:
        for first in (0, 5):
            decided = policy.apply(function.outcomes(*arguments), function, first)
            letters.write(decided.dead, [array.take(decided.dead_at) for array in arguments])
        assert not path.exists()
    table = pyarrow.parquet.read_table(path)
    assert table.select(["x", "note", "failed_row"]).to_pylist() == [
        {"x": 1, "note": None, "failed_row": 1},
        {"x": 1, "note": "e", "failed_row": 4},
        {"x": 1, "note": None, "failed_row": 6},
        {"x": 1, "note": "e", "failed_row": 9},
    ]
    assert set(table["failed_plugin"].to_pylist()) == {function.plugin_hash}


def test_a_failure_leaves_no_file(functions: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), DeadLetters(tmp_path / "dead.arrow", functions["at_once"].arguments):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_names_that_letters_need(functions: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="dead letters have a column 'failed_row' of their own: rename"):
        DeadLetters(tmp_path / "dead.arrow", pa.schema([("x", pa.int64()), ("failed_row", pa.int64())]))
    assert list(tmp_path.iterdir()) == []


def test_another_word() -> None:
    with pytest.raises(InvalidArgument, match="timeout='dead-letter'; write one of 'fail', 'null', 'drop'"):
        Policy(timeout="dead-letter")  # type: ignore[arg-type]
