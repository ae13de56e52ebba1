"""Failed rows, async functions, threads, several libraries, and libraries or databases that are refused."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import datafusion
import duckdb
import pandas
import polars
import pyarrow as pa
import pytest
from callers import CALLERS, Call, by_host, connection
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import build
from arroyo_udf_plugin.errors import InvalidArgument, LoadError, RowError
from arroyo_udf_plugin.integrations import datafusion as in_datafusion
from arroyo_udf_plugin.integrations import duckdb as in_duckdb
from arroyo_udf_plugin.integrations import pandas as in_pandas
from arroyo_udf_plugin.integrations import polars as in_polars
from arroyo_udf_plugin.integrations import sqlite as in_sqlite
from conftest import LANGUAGES, Library

ASYNC = ("rs", "py")
FAILING = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": pa.array([1, 0, 1], pa.int64())})


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_failed_row_is_an_error_with_its_text_or_null(library: Library, language: str, engine: str) -> None:
    call = CALLERS[engine]
    with pytest.raises(Exception, match=r"one\.mph, row \d+: .*no time"):
        call(library(language), "mph", FAILING)
    assert call(library(language), "mph", FAILING.slice(2)) == [180.0]
    if engine != "daft":  # a session of Daft keeps the function that it had first
        assert call(library(language, on_error="null", name="other"), "mph", FAILING) == [60.0, None, 180.0]


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", ASYNC)
def test_an_async_function_answers_in_order_at_its_concurrency(library: Library, language: str, engine: str) -> None:
    n_rows = 20 if engine == "sqlite" else 6000
    table = pa.table({"a": pa.array([None, *range(14, n_rows)], pa.int64())})
    assert CALLERS[engine](library(language), "later", table) == [None, *range(15, n_rows + 1)]


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", ASYNC)
def test_a_failed_async_row_leaves_the_function_usable(library: Library, language: str, engine: str) -> None:
    table = pa.table({"a": pa.array(range(10, 20), pa.int64())})
    for _ in range(2):
        with pytest.raises(Exception, match=r"one\.later, row \d+: .*thirteen"):
            CALLERS[engine](library(language), "later", table)
        assert CALLERS[engine](library(language), "later", table.slice(4)) == [15, 16, 17, 18, 19, 20]


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", ASYNC)
def test_timeouts_hold(library: Library, language: str, engine: str) -> None:
    table = pa.table({"a": pa.array([12, 13, 14], pa.int64())})
    with pytest.raises(Exception, match=r"one\.late, row \d+: .*timed out|one\.late, row \d+: .*timeout"):
        CALLERS[engine](library(language), "late", table)
    assert CALLERS[engine](library(language), "late", table.slice(2)) == [15]


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_threads_call_at_once(library: Library, language: str, engine: str) -> None:
    table = pa.table({"a": pa.array(range(200), pa.int64()), "b": pa.array([2] * 200, pa.int64())})
    expected, found = by_host(library(language), "mph", table), []

    def work() -> None:
        found.append([CALLERS[engine](library(language), "mph", table) for _ in range(5)])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[expected] * 5] * 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_duckdbs_threads_call_a_sync_function_at_once(library: Library, language: str) -> None:
    with connection(library(language), threads=4) as opened:
        opened.execute("CREATE TABLE t AS SELECT range AS n FROM range(400000)")
        assert opened.execute("SELECT count(*), sum(mph(n, 60) - n) FROM t").fetchall() == [(400000, 0.0)]


@pytest.mark.parametrize("language", ASYNC)
def test_duckdbs_threads_share_the_runtime_of_an_async_function(library: Library, language: str) -> None:
    with connection(library(language), threads=4) as opened:
        opened.execute("CREATE TABLE t AS SELECT range + 14 AS n FROM range(400000)")
        query = "SELECT count(*), sum(later(n) - n) FROM t WHERE n < 60000"
        assert opened.execute(query).fetchall() == [(60000 - 14, 60000 - 14)]


def test_libraries_of_three_languages_are_open_at_once(library: Library) -> None:
    """Each finds its own table, although all export the same name."""
    names = {language: library(language, name=f"own_{language}") for language in LANGUAGES}
    table = pa.table({"a": ["x"]})
    for engine in ("polars", "sqlite", "duckdb"):
        for _, path in names.items():
            assert CALLERS[engine](path, "shout", table) == ["x!"]
    with pytest.raises(Exception, match=r"own_c\.mph, row 1"):
        CALLERS["polars"](names["c"], "mph", FAILING)
    with pytest.raises(Exception, match=r"own_py\.mph, row 1"):
        CALLERS["polars"](names["py"], "mph", FAILING)


def test_constants_stand_for_all_rows(library: Library) -> None:
    frame = polars.DataFrame({"a": [1, None, 3]})
    udf = in_polars.functions(library("c"))
    assert frame.select(udf.mph("a", 2))["a"].to_list() == [30.0, None, 90.0]
    assert frame.select(udf.mph(polars.lit(1), "a"))["literal"].to_list() == [60.0, None, 20.0]
    assert frame.select(udf.mph(polars.lit(1), polars.lit(2))).to_series().to_list() == [30.0]
    assert frame.lazy().with_columns(m=udf.mph("a", 2)).filter(polars.col("m") > 50).collect()["m"].to_list() == [90.0]
    assert frame.group_by("a").agg(m=udf.mph("a", 2).sum()).sort("a")["m"].to_list() == [0.0, 30.0, 90.0]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.none() | st.integers(-(2**40), 2**40), min_size=1, max_size=50))
def test_datafusion_and_pandas(values: list[int | None]) -> None:
    path = build(Path(__file__).parent / "plugins" / "one.c", Path(os.environ["XDG_CACHE_HOME"]) / "libone.so")
    table = pa.table({"a": pa.array(values, pa.int64()), "b": pa.array([2] * len(values), pa.int64())})
    expected = by_host(path, "mph", table)
    context = datafusion.SessionContext()
    in_datafusion.register(context, path)
    context.register_record_batches("t", [table.to_batches()])
    assert context.sql("SELECT mph(a, b) AS m FROM t").to_pydict()["m"] == expected
    frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
    frame.index = frame.index + 7
    found = in_pandas.functions(path).mph(frame.a, frame.b)
    assert (list(found.index), str(found.dtype)) == (list(frame.index), "double[pyarrow]")
    assert [None if value is pandas.NA else value for value in found] == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_failed_rows_in_datafusion_and_pandas(library: Library, language: str) -> None:
    frame = FAILING.to_pandas(types_mapper=pandas.ArrowDtype)
    query = "SELECT mph(a, b) AS m FROM t"

    def context(path: Path) -> datafusion.SessionContext:
        opened = datafusion.SessionContext()
        in_datafusion.register(opened, path)
        opened.register_record_batches("t", [FAILING.to_batches()])
        return opened

    with pytest.raises(Exception, match=r"one\.mph, row 1: .*no time"):
        context(library(language)).sql(query).collect()
    with pytest.raises(RowError, match=r"one\.mph, row 1: .*no time"):
        in_pandas.functions(library(language)).mph(frame.a, frame.b)
    null = library(language, on_error="null", name="other")
    assert context(null).sql(query).to_pydict()["m"] == [60.0, None, 180.0]
    found = in_pandas.functions(null).mph(frame.a, frame.b)
    assert found.isna().tolist() == [False, True, False]


def test_an_async_function_in_datafusion(library: Library) -> None:
    context = datafusion.SessionContext()
    in_datafusion.register(context, library("py"))
    assert context.sql("SELECT later(14) AS n").to_pydict() == {"n": [15]}


def test_what_cannot_be_registered_says_why(library: Library, tmp_path: Path) -> None:
    with duckdb.connect() as opened, pytest.raises(InvalidArgument, match="allow_unsigned_extensions"):
        in_duckdb.register(opened, library("c"))
    with pytest.raises(LoadError, match=r"libnone\.so: there is no such library"):
        in_polars.functions(tmp_path / "libnone.so")
    (tmp_path / "libmoved.so").write_bytes(library("c").read_bytes())
    with connection() as opened, pytest.raises(LoadError, match=r"libone\.duckdb_extension is missing"):
        in_duckdb.register(opened, tmp_path / "libmoved.so")
    with pytest.raises(InvalidArgument, match="loads no extensions"):
        in_sqlite.register(object(), library("c"))
    with pytest.raises(InvalidArgument, match="needs a series"):
        in_pandas.functions(library("c")).mph(1, 2)
    with pytest.raises(InvalidArgument, match="mph takes the arguments distance, air_time, and got 1 by place"):
        in_polars.functions(library("c")).mph("a")


FAILING_MODULE = """
import os
from arroyo_udf_plugin import udf
if "FAILS" in os.environ:
    raise RuntimeError("no model file")
@udf(native=False)
def double(n: int) -> int:
    return 2 * n
"""
PANICKING = """
use arroyo_udf_plugin::udf;
#[udf]
fn double(n: i64) -> i64 {
    if n == 2 { panic!("no such number") }
    2 * n
}
"""


@pytest.mark.parametrize("engine", CALLERS)
def test_a_module_that_fails_and_a_panic_are_errors_of_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    table = pa.table({"n": pa.array([1, 2], pa.int64())})
    (tmp_path / "failing.py").write_text(FAILING_MODULE)
    failing = build(tmp_path / "failing.py")
    with monkeypatch.context() as patch:
        patch.setenv("FAILS", "1")
        with pytest.raises(Exception, match="no model file"):
            CALLERS[engine](failing, "double", table)
    (tmp_path / f"panicking_{engine.replace('-', '_')}.rs").write_text(PANICKING)
    panicking = build(next(tmp_path.glob("*.rs")))
    with pytest.raises(Exception, match=r"double, row \d: .*no such number"):
        CALLERS[engine](panicking, "double", table)
    assert CALLERS[engine](panicking, "double", table.slice(0, 1)) == [2]


def test_a_source_stands_for_its_library(tmp_path: Path) -> None:
    source = tmp_path / "twice.py"
    source.write_text("from arroyo_udf_plugin import udf\n\n@udf\ndef twice(n: int) -> int:\n    return 2 * n\n")
    with connection(source) as opened:
        assert opened.execute("SELECT twice(21)").fetchall() == [(42,)]


def test_a_closed_database_ends_its_runtimes(library: Library) -> None:
    """Its threads go: the runtime of each registration is released with it."""

    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    with connection(library("rs")) as opened:
        opened.execute("SELECT later(14)").fetchall()
    before = threads()
    for _ in range(5):
        with connection(library("rs")) as opened:
            opened.execute("SELECT later(14)").fetchall()
    assert threads() <= before
    for _ in range(5):
        one = apsw.Connection(":memory:")
        in_sqlite.register(one, library("rs"))
        assert list(one.execute("SELECT later(14)")) == [(15,)]
        one.close()
    assert threads() <= before + 1


AFTER_A_FORK = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import pyarrow as pa
from callers import by_duckdb
table = pa.table({"a": pa.array([14, 15], pa.int64())})
assert by_duckdb(Path(sys.argv[1]), "later", table) == [15, 16]
pid = os.fork()
if pid == 0:
    import apsw
    from arroyo_udf_plugin.integrations import sqlite
    one = apsw.Connection(":memory:")
    sqlite.register(one, sys.argv[1])
    try:
        list(one.execute("SELECT later(14)"))
    except apsw.SQLError as error:
        os._exit(0 if "before a fork" in str(error) else 3)
    os._exit(4)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_child_of_a_fork_is_told_that_threads_do_not_survive_one(library: Library) -> None:
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", AFTER_A_FORK, str(library("rs")), here], timeout=120)
    assert done.returncode == 0


def test_a_running_event_loop_is_not_in_the_way(library: Library) -> None:
    table = pa.table({"a": pa.array([14], pa.int64())})

    async def call(caller: Call) -> list[int]:
        return caller(library("py"), "later", table)

    assert [asyncio.run(call(CALLERS[engine])) for engine in ("duckdb", "polars", "sqlite")] == [[15]] * 3
