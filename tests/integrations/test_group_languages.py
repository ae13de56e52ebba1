"""An aggregate and a table function in C, Rust and Python, in DuckDB, SQLite and DataFusion (F8, F9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import datafusion
import pyarrow as pa
import pytest
from callers import connection

from arroyo_udf_plugin import build, load
from arroyo_udf_plugin.integrations import datafusion as in_datafusion
from arroyo_udf_plugin.integrations import sqlite as in_sqlite

SOURCES = {
    "c": """
#include "arroyo_udf_plugin.h"

typedef struct { int64_t sum, count; } own_sum_state;

static const char* own_sum_update(own_sum_state* state, int64_t value) {
  if (value == 13) return "thirteen";
  state->sum += value;
  state->count++;
  return NULL;
}
static const char* own_sum_merge(own_sum_state* state, const own_sum_state* other) {
  state->sum += other->sum;
  state->count += other->count;
  return NULL;
}
static const char* own_sum_finish(const own_sum_state* state, int64_t* out) {
  if (state->count == 0) return arroyo_udf_null;
  *out = state->sum;
  return NULL;
}
ARROYO_UDF_AGGREGATE(own_sum, nullable_int64, (int64, value));

ARROYO_UDF_TABLE_FUNCTION(own_series, ((int64, i), (utf8, parity)), (int64, start), (int64, stop));
static const char* own_series(int64_t start, int64_t stop, own_series_rows* out) {
  for (int64_t i = start; i <= stop; i++)
    own_series_emit(out, i, i % 2 ? (arroyo_udf_utf8){"odd", 3} : (arroyo_udf_utf8){"even", 4});
  return NULL;
}

ARROYO_UDF_PLUGIN(own_sum, own_series);
""",
    "rs": """
use arroyo_udf_plugin::{udaf, udtf, State};

#[derive(Default, State)]
struct OwnSum {
    sum: i64,
    count: i64,
}

#[udaf]
impl OwnSum {
    fn update(&mut self, value: i64) -> Result<(), &'static str> {
        if value == 13 {
            return Err("thirteen");
        }
        self.sum += value;
        self.count += 1;
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    fn finish(&self) -> Option<i64> {
        (self.count > 0).then_some(self.sum)
    }
}

#[udtf(columns(i, parity))]
fn own_series(start: i64, stop: i64) -> Vec<(i64, String)> {
    (start..=stop).map(|i| (i, if i % 2 == 0 { "even" } else { "odd" }.to_string())).collect()
}
""",
    "py": """
from collections.abc import Iterator
from dataclasses import dataclass

from arroyo_udf_plugin import udaf, udtf


@udaf
@dataclass
class own_sum:
    sum: int = 0
    count: int = 0

    def update(self, values: list[int]) -> None:
        if 13 in values:
            raise ValueError("thirteen")
        self.sum += sum(values)
        self.count += len(values)

    def merge(self, other: "own_sum") -> None:
        self.sum += other.sum
        self.count += other.count

    def finish(self) -> int | None:
        return self.sum if self.count else None


@dataclass
class Number:
    i: int
    parity: str


@udtf
def own_series(start: int, stop: int) -> Iterator[Number]:
    for i in range(start, stop + 1):
        yield Number(i, "odd" if i % 2 else "even")
""",
}
ROWS = pa.table({"k": [i % 7 for i in range(3000)], "v": [i + 100 if i % 3 else None for i in range(3000)]})
EQUAL = "SELECT k, own_sum(v) AS own, sum(v) AS built_in FROM t GROUP BY k ORDER BY k"


@pytest.fixture(scope="module", params=SOURCES)
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp(request.param) / f"own_{request.param}.{request.param}"
    source.write_text(SOURCES[request.param])
    return build(source)


def check(rows: list[Any]) -> None:
    assert len(rows) == 7
    assert all(own == built_in for _, own, built_in in rows)


def test_in_duckdb(own: Path) -> None:
    opened = connection(own, threads=4)
    opened.register("rows", ROWS)
    opened.execute("CREATE TABLE t AS SELECT * FROM rows")
    check(opened.execute(EQUAL).fetchall())
    assert opened.execute("SELECT own_sum(v) FROM t WHERE k > 7").fetchall() == [(None,)]
    assert opened.execute("SELECT sum(i), max(parity) FROM own_series(1, 10)").fetchall() == [(55, "odd")]
    with pytest.raises(Exception, match=rf"{own.stem.removeprefix('lib')}\.own_sum\.update, row \d+: .*thirteen"):
        opened.execute("SELECT own_sum(13)").fetchall()


def test_in_sqlite(own: Path) -> None:
    opened = apsw.Connection(":memory:")
    in_sqlite.register(opened, own)
    opened.execute("CREATE TABLE t (k, v)")
    opened.executemany("INSERT INTO t VALUES (?, ?)", list(zip(*ROWS.to_pydict().values(), strict=True)))
    check(list(opened.execute(EQUAL)))
    assert list(opened.execute("SELECT own_sum(v) FROM t WHERE k > 7")) == [(None,)]
    assert list(opened.execute("SELECT sum(i), max(parity) FROM own_series(1, 10)")) == [(55, "odd")]
    with pytest.raises(Exception, match=r"own_sum\.update, row \d+: .*thirteen"):
        list(opened.execute("SELECT own_sum(13)"))


def test_in_datafusion_and_the_host(own: Path) -> None:
    context = datafusion.SessionContext()
    assert in_datafusion.register(context, own) == ["own_sum"]
    context.from_arrow(ROWS, name="t")
    check([tuple(row.values()) for row in pa.table(context.sql(EQUAL)).to_pylist()])
    functions = load(own).functions
    assert functions["own_sum"](ROWS["v"]).as_py() == sum(filter(None, ROWS["v"].to_pylist()))  # type: ignore[union-attr]
    assert functions["own_series"](1, 2).to_pylist() == [[{"i": 1, "parity": "odd"}, {"i": 2, "parity": "even"}]]
