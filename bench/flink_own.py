"""Flink's own UDFs in Python over the same numbers: flink_own.py KIND ROWS, submitted to a session cluster.

KIND: row, pandas, or none. The function is `mph` of udf.c.
"""

from __future__ import annotations

import sys

import pandas as pd
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf


@udf(result_type=DataTypes.DOUBLE())
def row(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time


@udf(result_type=DataTypes.DOUBLE(), func_type="pandas")
def pandas(distance: pd.Series, air_time: pd.Series) -> pd.Series:
    return distance * 60.0 / air_time


def main(kind: str, rows: int) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.create_temporary_function("of_rows", row)
    tables.create_temporary_function("of_batches", pandas)
    called = {"row": "of_rows(x, x + 1)", "pandas": "of_batches(x, x + 1)", "none": "x * 60.0 / (x + 1)"}[kind]
    tables.execute_sql(
        "CREATE TABLE numbers (x BIGINT) WITH ('connector' = 'datagen', 'fields.x.min' = '0', "
        f"'fields.x.max' = '1000000', 'number-of-rows' = '{rows}', 'rows-per-second' = '1000000000')"
    )
    tables.execute_sql("CREATE TABLE nowhere (x BIGINT, y DOUBLE) WITH ('connector' = 'blackhole')")
    tables.execute_sql(f"INSERT INTO nowhere SELECT x, {called} FROM numbers")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
