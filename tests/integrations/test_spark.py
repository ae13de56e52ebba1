"""Libraries in Spark: a session with two workers, whose batches have 1000 rows. `make test-spark` installs Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from documented import SPEEDS, TRIPS, lines
from pyspark import SparkFiles
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from arroyo_udf_plugin import build, integrations, load
from arroyo_udf_plugin.errors import InvalidArgument, LoadError
from arroyo_udf_plugin.integrations import spark
from conftest import LANGUAGES, Library

ASYNC = ("rs", "py")
BATCH = 1000
BuildPlugin = Callable[..., Path]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    local = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH),
        "spark.sql.session.timeZone": "Europe/Paris",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        opened = SparkSession.builder.master("local[2]").config(map=local).getOrCreate()
        yield opened
        opened.stop()


def called(session: SparkSession, library: Path, function: str, table: pa.Table) -> list[Any]:
    """The values of function(*columns), by SQL, in the order of the rows."""
    assert function in spark.register(session, library)
    session.createDataFrame(table).createOrReplaceTempView("t")
    return values(session.sql(f"SELECT {function}({', '.join(table.column_names)}) FROM t"))


def values(frame: DataFrame) -> list[Any]:
    return [row[0] for row in frame.collect()]


def by_host(library: Path, function: str, table: pa.Table) -> list[Any]:
    return list(load(library).functions[function](*table.columns).to_pylist())


@pytest.mark.parametrize("language", LANGUAGES)
def test_flights_by_sql_and_as_columns(session: SparkSession, library: Library, flights: Path, language: str) -> None:
    table = pa.csv.read_csv(flights).select(["distance", "air_time"]).slice(0, 20_000)
    assert table["air_time"].null_count
    expected = by_host(library(language), "mph", table)
    assert called(session, library(language), "mph", table) == expected
    udf = spark.functions(session, library(language))
    frame = session.createDataFrame(table)
    assert values(frame.select(udf.mph("distance", frame.air_time))) == expected
    assert frame.filter(udf.mph("distance", "air_time") > 400).count() == sum(
        value > 400 for value in expected if value
    )


NUMBERS = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, 127]),
    "int16": (pa.int16(), [-(2**15), 2**15 - 1]),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "uint8": (pa.int16(), [0, 255]),
    "uint16": (pa.int32(), [0, 2**16 - 1]),
    "uint32": (pa.int64(), [0, 2**32 - 1]),
    "uint64": (pa.decimal128(20), [Decimal(0), Decimal(2**64 - 1)]),
    "float32": (pa.float32(), [-1.5, float("inf")]),
    "float64": (pa.float64(), [0.1, 5e-324]),
}
OF_PYTHON = {
    "binary": (pa.binary(), [b"", b"\0\xff"]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "time": (pa.time64("ns"), [time(0), time(23, 59, 59, 999_999)]),
    "timestamp": (pa.timestamp("us"), [datetime(1900, 1, 1), datetime(2026, 3, 29, 2, 30, 0, 1)]),
    "decimal": (pa.decimal128(20, 3), [Decimal("-0.001"), Decimal("99999999999999999.999")]),
    "small_decimal": (pa.decimal128(7, 2), [Decimal("-99999.99"), Decimal("0.01")]),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_types(session: SparkSession, library: Library, language: str) -> None:
    """Spark gets back what it has passed: values at the bounds, and nulls."""
    types = NUMBERS | (OF_PYTHON if language == "py" else {})
    table = pa.table({name: pa.array([*values, None], type_) for name, (type_, values) in types.items()})
    frame = session.createDataFrame(table)
    udf = spark.functions(session, library(language))
    found = frame.select(*(getattr(udf, f"same_{name}")(name).alias(name) for name in types))
    assert found.schema == frame.schema  # so every result may be null
    assert found.toArrow().to_pylist() == table.to_pylist()


def test_lists_structs_and_texts(session: SparkSession, library: Library, build_plugin: BuildPlugin) -> None:
    udf = spark.functions(session, library("py"))
    table = pa.table({"n": [[1, None], [], None], "s": [["é", None], ["more than twelve bytes"], None]})
    frame = session.createDataFrame(table)
    assert frame.select(udf.total("n"), udf.joined("s")).collect() == [
        (1, "é "),
        (0, "more than twelve bytes"),
        (None, None),
    ]
    plugin = build_plugin(
        """
        from dataclasses import dataclass
        from typing import Annotated
        import pyarrow as pa
        from arroyo_udf_plugin import udf

        @dataclass
        class Point:
            x: Annotated[int, pa.uint64()]
            names: list[str] | None

        @udf
        def moved(point: Point) -> Point:
            return Point(point.x + 2**63, point.names)
        """
    )
    points = session.sql(
        "SELECT if(id = 1, NULL, struct(id AS x, nullif(array('a'), array('b')) AS names)) AS p FROM range(2)"
    )
    moved = points.select(spark.functions(session, plugin).moved("p"))
    assert values(moved) == [(2**63, ["a"]), None]
    assert moved.schema[0].dataType.simpleString() == "struct<x:decimal(20,0),names:array<string>>"


def test_other_units_and_zones(session: SparkSession, build_plugin: BuildPlugin) -> None:
    """Spark's times are microseconds; a value that does not fit is the error of its row."""
    plugin = build_plugin(
        """
        import datetime
        from typing import Annotated
        import pyarrow as pa
        from arroyo_udf_plugin import udf

        Instant = Annotated[datetime.datetime, pa.timestamp("s", "UTC")]
        Nanoseconds = Annotated[pa.Array, pa.timestamp("ns")]

        @udf
        def tomorrow(at: Instant) -> Instant:
            return at + datetime.timedelta(days=1)

        @udf(vectorized=True)
        def nanoseconds(n: pa.Int64Array) -> Nanoseconds:
            return n.cast(pa.timestamp("ns"))
        """
    )
    spark.register(session, plugin)
    (found,) = session.sql(
        "SELECT tomorrow(TIMESTAMP_LTZ '2026-03-28 12:00:00') = TIMESTAMP_LTZ '2026-03-29 13:00:00'"
    ).first()
    assert found is True  # an hour is missing in Paris that day
    assert values(session.sql("SELECT nanoseconds(5000)")) == [datetime(1970, 1, 1, 0, 0, 0, 5)]
    with pytest.raises(
        PythonException, match=r"plugin\.nanoseconds, row 0: the result .* does not fit timestamp\[us\]"
    ):
        session.sql("SELECT nanoseconds(5001)").collect()
    null = build(plugin.with_name("plugin.py"), plugin.with_name("libnull.so"), on_error="null")
    spark.register(session, null)
    assert values(session.sql("SELECT nanoseconds(id) FROM range(999, 1001)")) == [
        None,
        datetime(1970, 1, 1, 0, 0, 0, 1),
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_nulls_and_no_rows(session: SparkSession, library: Library, language: str) -> None:
    table = pa.table({"a": pa.array([1, None, 3], pa.int64())})
    assert called(session, library(language), "or_zero", table) == [1, 0, 3]
    assert called(session, library(language), "same_int64", table) == [1, None, 3]
    assert called(session, library(language), "same_int64", table.slice(0, 0)) == []


@pytest.mark.parametrize("language", ASYNC)
def test_an_async_function_gets_an_empty_batch(library: Library, language: str) -> None:
    batches = spark.Batches(load(library(language)), "later")
    assert batches.call([pa.array([], pa.int64())]).equals(pa.array([], pa.int64()))
    assert batches.call([pa.array([20, None, 21])]).to_pylist() == [21, None, 22]


@pytest.mark.parametrize("language", ASYNC)
def test_an_async_function_answers_in_order(session: SparkSession, library: Library, language: str) -> None:
    table = pa.table({"a": pa.array([None, *range(14, 5 * BATCH)], pa.int64())})
    assert called(session, library(language), "later", table) == [None, *range(15, 5 * BATCH + 1)]


def test_an_unordered_function_gives_its_values_in_order(session: SparkSession, build_plugin: BuildPlugin) -> None:
    plugin = build_plugin(
        """
        import asyncio
        from arroyo_udf_plugin import udf

        @udf(ordered=False)
        async def slower_first(n: int) -> int:
            for _ in range(100 - n % 100):
                await asyncio.sleep(0)
            return n
        """
    )
    table = pa.table({"a": pa.array(range(2 * BATCH), pa.int64())})
    assert called(session, plugin, "slower_first", table) == table["a"].to_pylist()


@pytest.mark.parametrize("language", ASYNC)
def test_timeouts_hold(session: SparkSession, library: Library, language: str) -> None:
    table = pa.table({"a": pa.array([12, 13, 14], pa.int64())})
    with pytest.raises(PythonException, match=r"one\.late, row \d+: .*(timed out|timeout)"):
        called(session, library(language), "late", table)
    null = library(language, on_error="null", name="other")
    assert called(session, null, "late", table) == [13, None, 15]


def test_retries_and_one_runtime_for_each_worker(
    session: SparkSession, build_plugin: BuildPlugin, tmp_path: Path
) -> None:
    """Each worker process inits one Context, whatever the number of batches and queries."""
    plugin = build_plugin(
        f"""
        import os
        from arroyo_udf_plugin import call_info, udf

        class Context:
            async def init(self) -> None:
                with open({str(tmp_path / "started")!r}, "a") as file:
                    file.write(f"{{os.getpid()}}\\n")

        @udf(max_attempts=3, retry_on="error", backoff=0.001)
        async def in_process(context: Context, n: int) -> int:
            if call_info().attempt < 3:
                raise ConnectionError("no answer")
            return os.getpid()
        """
    )
    spark.register(session, plugin)
    seen = set[int]()
    for _ in range(2):
        frame = session.range(4 * BATCH, numPartitions=2)
        seen |= set(values(frame.select(sql.call_function("in_process", "id"))))
    assert os.getpid() not in seen
    assert sorted(map(int, (tmp_path / "started").read_text().split())) == sorted(seen)


def test_two_plugins_and_several_functions_in_one_query(session: SparkSession, library: Library) -> None:
    udf = {language: spark.functions(session, library(language, name=f"own_{language}")) for language in LANGUAGES}
    frame = session.range(20, 22)
    columns = [udf[language].shout(sql.concat(sql.lit(language), "id")) for language in LANGUAGES]
    found = frame.select(*columns, udf["py"].later(udf["rs"].later("id")), udf["c"].mph("id", sql.lit(60)))
    assert found.collect() == [("c20!", "rs20!", "py20!", 22, 20.0), ("c21!", "rs21!", "py21!", 23, 21.0)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_failed_row_is_an_error_with_its_text_or_null(session: SparkSession, library: Library, language: str) -> None:
    table = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": pa.array([1, 0, 1], pa.int64())})
    frame = session.createDataFrame(table).coalesce(1)
    with pytest.raises(PythonException, match=r"RowError: one\.mph, row 1: .*no time"):
        frame.select(spark.functions(session, library(language)).mph("a", "b")).collect()
    null = library(language, on_error="null", name="other")
    assert values(frame.select(spark.functions(session, null).mph("a", "b"))) == [60.0, None, 180.0]


@pytest.mark.parametrize("language", ASYNC)
def test_a_failed_async_row_leaves_the_function_usable(session: SparkSession, library: Library, language: str) -> None:
    """The row's number is that in its batch, also in a runtime that had batches before."""
    table = pa.table({"a": pa.array(range(10, 20), pa.int64())})
    later = spark.functions(session, library(language)).later
    for _ in range(2):
        with pytest.raises(PythonException, match=r"RowError: one\.later, row 3: .*thirteen"):
            session.createDataFrame(table).coalesce(1).select(later("a")).collect()
        assert called(session, library(language), "later", table.slice(4)) == [15, 16, 17, 18, 19, 20]


def test_arguments_are_cast_where_nothing_is_lost(session: SparkSession, library: Library) -> None:
    spark.register(session, library("c"))
    assert session.sql("SELECT same_int64(1Y), same_float64(2), same_int64(3.0D), same_int8(4)").first() == (
        1,
        2.0,
        3,
        4,
    )
    with pytest.raises(PythonException, match=r"one\.same_int8, row 0: argument 'value': 300 does not fit int8"):
        session.sql("SELECT same_int8(300)").collect()
    with pytest.raises(PythonException, match=r"one\.same_int64: argument 1, 'value', is string, not int64"):
        session.sql("SELECT same_int64('1')").collect()


def test_determinism_is_told(session: SparkSession, build_plugin: BuildPlugin) -> None:
    plugin = build_plugin(
        """
        from arroyo_udf_plugin import udf

        @udf(volatility="immutable")
        def immutable(n: int) -> int:
            return n

        @udf(volatility="stable")
        def stable(n: int) -> int:
            return n

        @udf(volatility="volatile")
        def volatile(n: int) -> int:
            return n

        @udf
        def unsaid(n: int) -> int:
            return n

        @udf
        async def asynchronous(n: int) -> int:
            return n
        """
    )
    names = spark.register(session, plugin)
    plans = {name: session.sql(f"SELECT {name}(id) FROM range(1)")._jdf.queryExecution().analyzed() for name in names}
    assert {name: plan.deterministic() for name, plan in plans.items()} == {
        "immutable": True,
        "stable": True,
        "volatile": False,
        "unsaid": False,
        "asynchronous": False,
    }


@pytest.mark.parametrize(
    ("signature", "refused"),
    [
        ("a: Annotated[Decimal, pa.decimal128(5, -2)]) -> int", r"the argument a is decimal128\(5, -2\), which Spark"),
        ("a: int) -> list[Annotated[Decimal, pa.decimal128(5, -2)]]", r"the result is list<.*decimal128\(5, -2\)"),
    ],
)
def test_types_that_spark_has_not_are_refused_by_name(
    session: SparkSession, build_plugin: BuildPlugin, signature: str, refused: str
) -> None:
    head = "from decimal import Decimal\nfrom typing import Annotated\nimport pyarrow as pa\n"
    function = f"from arroyo_udf_plugin import udf\n@udf\ndef odd({signature}:\n    return a\n"
    with pytest.raises(InvalidArgument, match=rf"refused\.odd: {refused}"):
        spark.register(session, build_plugin(head + function, name="refused"))


def test_a_name_that_spark_has_is_refused_in_sql(session: SparkSession, build_plugin: BuildPlugin) -> None:
    """SQL would call Spark's function."""
    plugin = build_plugin("from arroyo_udf_plugin import udf\n@udf\ndef Upper(text: str) -> str:\n    return 'ours'\n")
    with pytest.raises(InvalidArgument, match="SQL would call Spark's own Upper: rename the function, or call it as"):
        spark.register(session, plugin)
    assert values(session.range(1).select(spark.functions(session, plugin).Upper(sql.lit("a")))) == ["ours"]


def test_a_function_without_arguments_is_refused(session: SparkSession, build_plugin: BuildPlugin) -> None:
    plugin = build_plugin("use arroyo_udf_plugin::udf;\n#[udf]\nfn one() -> i64 { 1 }\n", suffix=".rs", name="none")
    with pytest.raises(InvalidArgument, match=r"none\.one has no arguments"):
        spark.register(session, plugin)


def test_a_changed_file_is_refused_by_the_executor(session: SparkSession, build_plugin: BuildPlugin) -> None:
    source = "from arroyo_udf_plugin import udf\n@udf\ndef changed(n: int) -> int:\n    return n\n"
    spark.register(session, build_plugin(source, name="changed"))
    other = build_plugin(source.replace("return n", "return -n"), name="changed")
    session.range(1).collect()  # the executor fetches it, and would itself refuse another file now
    content = build_plugin(source, name="changed").read_bytes()
    (file,) = (file for file in Path(SparkFiles.getRootDirectory()).iterdir() if file.read_bytes() == content)
    file.write_bytes(other.read_bytes())
    with pytest.raises(PythonException, match=rf"LoadError: .*{file.name}: is not the library that was registered"):
        session.sql("SELECT changed(1)").collect()


def test_a_library_that_was_built_again_replaces_the_first(session: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "twice.py"
    for factor in (2, 3):
        head = "from arroyo_udf_plugin import udf\n\n@udf\n"
        source.write_text(f"{head}def times(n: int) -> int:\n    return {factor} * n\n")
        assert spark.register(session, source) == ["times"]
        assert values(session.sql("SELECT times(7)")) == [7 * factor]


def test_what_is_no_library(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"libnone\.so: there is no such library"):
        spark.register(session, tmp_path / "libnone.so")


def test_the_line_of_the_documents(session: SparkSession, speeds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(speeds)
    session.createDataFrame(TRIPS).createOrReplaceTempView("trips")
    known = {"session": session, "spark": spark, "integrations": integrations}
    register, call = lines("docs/engines.md")["Spark"]
    exec(register, known)
    assert values(eval(call, known)) == SPEEDS
