"""Functions in Spark, against its own UDFs in Python: CPU time per row of its JVM and its workers.

    PYTHONPATH=build/spark-4.3.0 build/venv-3.13/bin/python -m pytest bench/test_spark.py

`make test-spark` installs Spark there. Most of the time goes into the way between the JVM and Python, which is the same
for all functions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import arrow_udf, col, udf
from pyspark.sql.functions import sum as total
from pyspark.sql.types import DoubleType

from arroyo_udf_plugin import build
from arroyo_udf_plugin.integrations import spark as in_spark
from conftest import HERE, OUT, note

pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    "ignore:unclosed:ResourceWarning",
    "ignore:Cannot infer the eval type:UserWarning",
)
ROWS, ROUNDS = 2_000_000, 5
CONFIGURATION = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]")
    for name, value in CONFIGURATION.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    yield made
    made.stop()


def spent() -> float:
    """CPU seconds of this process and all below it: the JVM, and Spark's workers."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children.setdefault(int(fields[1]), []).append(int(process.name))
        seconds[int(process.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    waiting, sum_ = [os.getpid()], 0.0
    while waiting:
        process_id = waiting.pop()
        waiting += children.get(process_id, [])
        sum_ += seconds.get(process_id, 0.0)
    return sum_


def own(language: str) -> tuple[str, Any]:
    """What Spark has for it, without this package. The functions are pickled by value, because they are local."""

    def by_arrow(a: pa.Array, b: pa.Array) -> pa.Array:
        return pc.divide(pc.multiply(a, 60.0), b)

    def by_row(a: int, b: int) -> float:
        return a * 60.0 / b

    if language == "c":
        return "its arrow_udf", arrow_udf(by_arrow, returnType=DoubleType())
    return "its udf", udf(by_row, returnType=DoubleType())


@pytest.mark.parametrize("language", ["c", "py"])
def test_call(benchmark: Any, session: SparkSession, language: str) -> None:
    folder = OUT / f"spark-{language}"
    folder.mkdir(parents=True, exist_ok=True)
    ours = in_spark.functions(session, build(HERE / f"udf.{language}", folder / "libudf.so")).mph
    reference_name, of_spark = own(language)

    def run(value: Column) -> float:
        before = spent()
        session.range(1, ROWS + 1, 1, 1).select(value.alias("m")).select(total("m")).collect()
        return (spent() - before) / ROWS * 1e9

    def measured() -> list[list[float]]:
        columns = [function(col("id"), col("id") + 1) for function in (ours, of_spark)]
        rounds = [[run(column) for column in columns] for _ in range(ROUNDS + 2)]
        return [sorted(times[2:]) for times in zip(*rounds, strict=True)]  # the first ones start workers and compile

    our_times, own_times = benchmark.pedantic(measured, rounds=1)
    value, reference = our_times[ROUNDS // 2], own_times[ROUNDS // 2]
    note(benchmark, f"Spark: `mph`, {language}", value, "ns/row", reference_name, value / reference, None)
