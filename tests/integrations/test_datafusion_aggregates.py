"""Aggregates of a library in DataFusion, by its Python package (F8)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

from arroyo_udf_plugin.integrations.datafusion import register

SOURCE = """
from collections.abc import Iterator
from dataclasses import dataclass

from arroyo_udf_plugin import udaf, udf, udtf


@udf
def twice(a: int) -> int:
    return 2 * a


@udaf(volatility="immutable")
@dataclass
class total:
    sum: int = 0
    count: int = 0

    def update(self, values: list[int]) -> None:
        if -1 in values:
            raise ValueError("no debts")
        self.sum += sum(values)
        self.count += len(values)

    def merge(self, other: "total") -> None:
        self.sum += other.sum
        self.count += other.count

    def finish(self) -> int | None:
        return self.sum if self.count else None


@udtf
def letters(text: str) -> list[str]:
    return list(text)
"""


@pytest.fixture(scope="module")
def context(build_plugin: Callable[..., Path]) -> Any:
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    assert register(context, build_plugin(SOURCE, name="totals")) == ["twice", "total"]
    rows = range(10_000)
    table = pa.table({"k": [row % 7 for row in rows], "v": [row if row % 3 else None for row in rows]})
    context.from_arrow(table, name="t")
    return context


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, {}(v) AS x FROM t GROUP BY k ORDER BY k",
        "SELECT {}(v) AS x FROM t",
        "SELECT {}(v) AS x FROM t WHERE k > 100",
        "SELECT k, {}(v) FILTER (WHERE v % 2 = 0) AS x, count(*) AS n FROM t GROUP BY k ORDER BY k",
        "SELECT k, {}(twice(v)) + 1 AS x FROM t GROUP BY k HAVING {}(v) > 0 ORDER BY k",
        "SELECT DISTINCT k, {}(v) OVER (PARTITION BY k) AS x FROM t ORDER BY k",
    ],
)
def test_an_own_sum_is_the_sum(context: Any, query: str) -> None:
    def rows(name: str) -> list[dict[str, Any]]:
        return pa.table(context.sql(query.replace("{}", name))).to_pylist()

    assert rows("total") == rows("sum")


def test_a_group_that_fails_ends_the_query(context: Any) -> None:
    with pytest.raises(Exception, match=r"totals\.total\.update, row 0: ValueError: no debts"):
        context.sql("SELECT total(k - 1) FROM t WHERE k = 0").collect()
