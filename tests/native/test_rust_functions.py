"""Rust plugins through the Python host: every type, nulls, errors of rows, async rows, and the flights example."""

import datetime as dt
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import InvalidArgument, RowError, load

BuildPlugin = Callable[..., Path]

# Rust type, Arrow type, values to send and get back.
TYPES: list[tuple[str, pa.DataType, list[Any]]] = [
    ("bool", pa.bool_(), [True, False]),
    ("i8", pa.int8(), [-128, 127]),
    ("i16", pa.int16(), [-(2**15), 2**15 - 1]),
    ("i32", pa.int32(), [-(2**31), 2**31 - 1]),
    ("i64", pa.int64(), [-(2**63), 2**63 - 1]),
    ("u8", pa.uint8(), [0, 255]),
    ("u16", pa.uint16(), [0, 2**16 - 1]),
    ("u32", pa.uint32(), [0, 2**32 - 1]),
    ("u64", pa.uint64(), [0, 2**64 - 1]),
    ("f32", pa.float32(), [1.5, float("-inf")]),
    ("f64", pa.float64(), [0.1, float("inf")]),
    ("String", pa.string(), ["", "zażółć 🛫"]),
    ("Vec<u8>", pa.binary(), [b"", b"\x00\xff"]),
    ("Date", pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    ("TimestampSecond", pa.timestamp("s"), [dt.datetime(1900, 1, 1), dt.datetime(2100, 2, 28, 23, 59, 59)]),
    ("TimestampMillisecond", pa.timestamp("ms"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999000)]),
    ("TimestampMicrosecond", pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    ("TimestampNanosecond", pa.timestamp("ns"), [-1, 2**63 - 1]),
    ("SystemTime", pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    ("Duration", pa.duration("us"), [dt.timedelta(), dt.timedelta(days=100_000_000, microseconds=1)]),
]


@pytest.fixture(scope="module")
def echo(build_plugin: BuildPlugin) -> Any:
    """One function per type and kind that returns its argument: `sync_0`, `async_0`, ..."""
    functions = [
        f"#[udf]\n{'async ' if kind == 'async' else ''}fn {kind}_{i}(x: Option<{rust}>) -> Option<{rust}> {{ x }}\n"
        for i, (rust, _, _) in enumerate(TYPES)
        for kind in ("sync", "async")
    ]
    uses = (
        "use arroyo_udf_plugin::sdk::types::*;\nuse arroyo_udf_plugin::udf;\nuse std::time::{Duration, SystemTime};\n"
    )
    return load(build_plugin(uses + "".join(functions), ".rs", "echo"))


@pytest.fixture(scope="module")
def flights(build_plugin: BuildPlugin, examples: Path) -> Any:
    return load(build_plugin(examples / "flights" / "udf.rs"))


def drained(runtime: Any, rows: int) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in batches) < rows:
        assert runtime.wait(timeout=60)
        batch = runtime.drain_results()
        batches += [] if batch is None else [batch]
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("number", range(len(TYPES)), ids=[rust for rust, _, _ in TYPES])
def test_each_type_in_both_directions(echo: Any, number: int) -> None:
    """F2"""
    _, arrow, values = TYPES[number]
    column = pa.array([None, *values, None, *values], arrow)
    function = echo.functions[f"sync_{number}"]
    assert function(column).equals(column)
    assert function(column[1:-1]).equals(column[1:-1])
    with echo.functions[f"async_{number}"].start() as runtime:
        runtime.send(0, column)
        results = drained(runtime, len(column))
    assert results["value"].combine_chunks().equals(column)
    assert results["id"].to_pylist() == list(range(len(column)))


def test_lists_are_arguments(build_plugin: BuildPlugin) -> None:
    """F2; as in Arroyo's aggregates: nulls in a list are left out, and a list that is null prevents the call."""
    functions = """
        #[udf]
        KIND NAME_sum(x: Vec<i64>, by: i64) -> i64 { x.iter().sum::<i64>() * by }
        #[udf]
        KIND NAME_words(x: Option<Vec<Option<String>>>, y: Vec<bool>) -> String { format!("{x:?} {y:?}") }
    """
    kinds = [("fn", "sync"), ("async fn", "later")]
    text = "".join(functions.replace("KIND", kind).replace("NAME", name) for kind, name in kinds)
    plugin = load(build_plugin("use arroyo_udf_plugin::udf;\n" + text, ".rs", "lists"))
    numbers = pa.array([[], [1, None, 3], None, [4], [5, 6]], pa.list_(pa.int64()))
    by = pa.array([1, 10, 1, None, -1], pa.int64())
    words = pa.array([["a", None], None, [], ["ü"], ["no"]], pa.list_(pa.string()))
    flags = pa.array([[True, None, False], [None], [], [True], None], pa.list_(pa.bool_()))
    expected: dict[str, list[Any]] = {
        "sum": [0, 40, None, None, -11],
        "words": ['Some([Some("a"), None]) [true, false]', "None []", "Some([]) []", 'Some([Some("ü")]) [true]', None],
    }
    for name, columns in {"sum": (numbers, by), "words": (words, flags)}.items():
        sync, later = (plugin.functions[f"{kind}_{name}"] for kind in ("sync", "later"))
        assert sync(*columns).to_pylist() == expected[name]
        assert sync(*(column[1:] for column in columns)).to_pylist() == expected[name][1:]
        with later.start() as runtime:
            runtime.send(0, *columns)
            assert drained(runtime, 5)["value"].to_pylist() == expected[name]


def test_a_function_may_have_no_arguments(build_plugin: BuildPlugin) -> None:
    """An array of nulls, or a batch without columns, gives the number of rows."""
    text = "#[udf]\nfn sync() -> i64 { 7 }\n#[udf]\nasync fn later() -> i64 { 8 }\n"
    functions = load(build_plugin("use arroyo_udf_plugin::udf;\n" + text, ".rs", "nothing")).functions
    batch = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))
    for rows in (pa.nulls(3), batch):
        assert functions["sync"](rows).to_pylist() == [7, 7, 7]
        with functions["later"].start() as runtime:
            runtime.send(5, rows)
            results = drained(runtime, 3)
        assert (results["id"].to_pylist(), results["value"].to_pylist()) == ([5, 6, 7], [8, 8, 8])
    for wrong in ((), (pa.array([1]),), (pa.nulls(1), pa.nulls(1))):
        with pytest.raises(InvalidArgument, match=r"takes no arguments; pass pa.nulls\(n\) to call it for n rows"):
            functions["sync"](*wrong)
        with functions["later"].start() as runtime, pytest.raises(InvalidArgument, match="takes no arguments"):
            runtime.send(0, *wrong)


def test_ten_million_rows_of_numbers_and_of_text(echo: Any) -> None:
    numbers = pa.array(range(1_000_000), pa.int64())
    texts = numbers.cast(pa.string())
    as_number, as_text = (
        echo.functions[f"sync_{i}"] for i, (rust, _, _) in enumerate(TYPES) if rust in ("i64", "String")
    )
    for _ in range(10):
        for start in range(0, 1_000_000, 65_536):
            assert as_number(numbers[start : start + 65_536]).equals(numbers[start : start + 65_536])
            assert as_text(texts[start : start + 65_536]).equals(texts[start : start + 65_536])


def test_mph_equals_the_reference_to_the_last_bit(flights: Any) -> None:
    """F3; the library gives the same as a native call."""
    chosen = random.Random(1)
    distance = chosen.choices([None, *range(17, 4984)], k=10_000)
    air_time = chosen.choices([None, *range(20, 696)], k=10_000)
    expected = [None if d is None or a is None else d * 60.0 / a for d, a in zip(distance, air_time, strict=True)]
    columns = pa.array(distance, pa.int64()), pa.array(air_time, pa.int64())
    assert flights.functions["mph"](*columns).to_pylist() == expected
    with flights.functions["mph_async"].start() as runtime:
        runtime.send(0, *columns)
        results = drained(runtime, 10_000)
    assert results["value"].to_pylist() == expected


def test_tail(flights: Any) -> None:
    carriers, tailnums = pa.array(["UA", "AA", "B6", None, "DL"]), pa.array(["N14228", "n3alaa", "n1", "N1", None])
    assert flights.functions["tail"](carriers, tailnums).to_pylist() == ["UA-14228", "N3ALAA", "n1?", None, None]


def test_options_and_types_are_described(flights: Any) -> None:
    function = flights.functions["mph_async"]
    assert function.kind == "async"
    assert [flights.functions[name].kind for name in ("mph", "tail")] == ["sync", "sync"]


def test_rows_fail_alone(build_plugin: BuildPlugin) -> None:
    """R2, R3a: an error has the author's text, a panic its location."""
    plugin = load(
        build_plugin(
            """
            use arroyo_udf_plugin::udf;

            #[udf]
            fn risky(x: i64) -> Result<Option<i64>, String> {
                match x {
                    0 => Err("zero".to_string()),
                    1 => panic!("one"),
                    2 => Ok(None),
                    x => Ok(Some(10 / (x - 3))),
                }
            }
            """,
            ".rs",
            "fails",
        )
    )
    outcomes = plugin.functions["risky"].outcomes(pa.array([0, 1, 2, 3, 4, None]))
    assert outcomes.field("value").to_pylist() == [None, None, None, None, 10, None]
    assert outcomes.field("outcome").to_pylist() == [1, 1, 0, 1, 0, 0]
    zero, one, *_, division = outcomes.field("error").to_pylist()[:4]
    assert zero == "fails.risky, row 0: zero"
    assert one == "fails.risky, row 1: panicked at fails.rs:8:14: one"
    assert division == "fails.risky, row 3: panicked at fails.rs:10:22: attempt to divide by zero"
    with pytest.raises(RowError, match="zero"):
        plugin.functions["risky"](pa.array([5, 0]))


def test_a_division_by_zero_is_the_error_of_its_row(flights: Any) -> None:
    with flights.functions["mph_async"].start() as runtime:
        runtime.send(10, pa.array([100, 200]), pa.array([0, 60]))
        results = drained(runtime, 2).to_pylist()
    assert [(row["id"], row["value"], row["error"]) for row in results] == [
        (10, None, "udf.mph_async, row 10: 100 miles in no time"),
        (11, 200.0, None),
    ]


def test_tokio_timers_and_tasks_work(build_plugin: BuildPlugin) -> None:
    """The author can use the tokio runtime of the function: timers, tasks, blocking threads."""
    plugin = load(
        build_plugin(
            """
            use arroyo_udf_plugin::{tokio, udf};
            use std::time::Duration;

            #[udf(unordered, timeout = "60s")]
            async fn working(x: i64) -> Result<i64, String> {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let spawned = tokio::spawn(async move { x + 1 }).await;
                let blocking = tokio::task::spawn_blocking(move || x * 2).await;
                Ok(spawned.map_err(|e| e.to_string())? + blocking.map_err(|e| e.to_string())?)
            }
            """,
            ".rs",
            "works",
        )
    )
    with plugin.functions["working"].start() as runtime:
        runtime.send(0, pa.array(range(300)))
        rows = drained(runtime, 300).to_pylist()
    assert sorted((row["id"], row["value"]) for row in rows) == [(x, 3 * x + 1) for x in range(300)]


FORKING = """
import os, sys
import pyarrow as pa
from arroyo_udf_plugin import InvalidState, load

function = load(sys.argv[1]).functions["mph_async"]
numbers = pa.array([60, 120]), pa.array([60, 60])
runtime = function.start()
runtime.send(0, *numbers)
assert runtime.wait(60)

child = os.fork()
if child == 0:
    try:
        for what in (lambda: runtime.send(10, *numbers), runtime.drain_results, runtime.statistics, function.start):
            try:
                what()
            except InvalidState:
                continue
            os._exit(1)
        os._exit(0)
    finally:
        os._exit(2)
assert os.waitpid(child, 0)[1] == 0, "the child was answered"
results = []
while sum(map(len, results)) < 2:
    assert runtime.wait(60)
    results.append(runtime.drain_results())
assert [value for batch in results for value in batch["value"].to_pylist()] == [60.0, 120.0]
assert runtime.stop()
"""


def test_a_forked_child_is_refused_and_its_parent_continues(build_plugin: BuildPlugin, examples: Path) -> None:
    """R13"""
    library = build_plugin(examples / "flights" / "udf.rs")
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_process_may_end_while_rows_run(build_plugin: BuildPlugin, examples: Path) -> None:
    """R18: no crash and no hang, whatever the plugin's threads do at that moment."""
    library = build_plugin(examples / "flights" / "udf.rs")
    program = """
import sys
import pyarrow as pa
from arroyo_udf_plugin import load

runtime = load(sys.argv[1]).functions["mph_async"].start()
runtime.send(0, pa.array(range(16384)), pa.array(range(16384)))
"""
    for _ in range(10):
        done = subprocess.run(
            [sys.executable, "-c", program, str(library)], capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_two_rust_plugins_in_one_process(build_plugin: BuildPlugin, flights: Any) -> None:
    """Each has its own runtime, functions and names."""
    other = load(
        build_plugin(
            """
            use arroyo_udf_plugin::udf;

            #[udf]
            async fn mph_async(distance: i64, air_time: i64) -> i64 {
                distance - air_time
            }
            """,
            ".rs",
            "other",
        )
    )
    columns = pa.array([100, 200]), pa.array([60, 60])
    with flights.functions["mph_async"].start() as one, other.functions["mph_async"].start() as two:
        one.send(0, *columns)
        two.send(0, *columns)
        assert drained(one, 2)["value"].to_pylist() == [100.0, 200.0]
        assert drained(two, 2)["value"].to_pylist() == [40, 140]


def test_integer_overflow_is_an_error_of_its_row(build_plugin: BuildPlugin) -> None:
    """F4: it does not wrap, in plain functions or in async ones. `wrapping_add` does."""
    plugin = load(
        build_plugin(
            """
            use arroyo_udf_plugin::udf;
            #[udf]
            fn plus_one(x: i64) -> i64 { x + 1 }
            #[udf]
            fn sum(x: i8) -> i8 { [x, 100].iter().sum() }
            #[udf]
            fn wraps(x: i8) -> i8 { x.wrapping_add(100) }
            #[udf]
            async fn negative(x: i8) -> i8 { -x }
            """,
            ".rs",
            "overflows",
        )
    )
    functions = plugin.functions
    with pytest.raises(RowError, match="attempt to add with overflow") as raised:
        functions["plus_one"](pa.array([1, 2**63 - 1, 2]))
    assert list(raised.value.errors) == [1]
    with pytest.raises(RowError, match="attempt to add with overflow"):
        functions["sum"](pa.array([100], pa.int8()))
    assert functions["wraps"](pa.array([100], pa.int8())).to_pylist() == [-56]
    with functions["negative"].start() as runtime:
        runtime.send(0, pa.array([1, -128], pa.int8()))
        results = drained(runtime, 2)
        assert results["value"].to_pylist() == [-1, None]
        assert "attempt to negate with overflow" in results["error"].to_pylist()[1]
