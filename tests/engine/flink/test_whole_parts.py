"""Part files in memory have the bytes of those in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.blackhole import Blackhole
from arroyo_udf_plugin.engine.connectors.described import Output
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.preview import Preview
from arroyo_udf_plugin.engine.connectors.single import File
from arroyo_udf_plugin.engine.connectors.standard_output import StandardOutput
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.flink import whole_parts
from arroyo_udf_plugin.engine.flink.whole_parts import WholeParts, check_output

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("t", pa.timestamp("us")), ("d", pa.decimal128(6, 2))])
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "parquet": ({}, ".parquet"),
    "small row groups": ({"compression": "zstd", "row_group_rows": 3}, ".parquet"),
    "arrow": ({"format": "arrow", "compression": "lz4"}, ".arrow"),
    "arrow stream": ({"format": "arrows"}, ".arrows"),
    "csv": ({"format": "csv"}, ".csv"),
    "a dialect": (
        {"format": "csv", "delimiter": ";", "header": False, "decimal_mark": ",", "null_values": ["-"]},
        ".csv",
    ),
    "tsv": ({"format": "tsv", "compression": "gzip", "columns": ["t", "a"]}, ".tsv.gz"),
    "jsonl": ({"format": "jsonl", "compression": "zstd", "timestamps": "unix_millis"}, ".jsonl.zst"),
    "numbers in jsonl": ({"format": "jsonl", "decimals": "number", "json_columns": ["b"]}, ".jsonl"),
    "text": ({"format": "text", "columns": ["b"], "compression": "none"}, ".text"),
}
ROWS = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(st.characters(exclude_categories=["C"]), max_size=5),
    st.none() | st.datetimes(),
    st.none() | st.decimals(-9999, 9999, places=2),
)
BATCHES = st.lists(st.lists(ROWS, min_size=1, max_size=5), max_size=4)


def batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.record_batch(columns, schema=SCHEMA)


def parts_of(model: Parts, batches: list[pa.RecordBatch]) -> list[bytes]:
    parts, taken = WholeParts.of(model, SCHEMA), []
    for rows in batches:
        while rows.num_rows:
            rows = parts.add(rows)
            if parts.is_full:
                taken.append(parts.take())
    return [*taken, parts.take()] if parts.rows else taken


def files_of(model: Parts, batches: list[pa.RecordBatch]) -> list[bytes]:
    """The parts that the engine's own sink writes of the rows, in their order. Removes them."""
    sink = model.sink(SCHEMA, 0, None, "pipeline", "sink")
    for rows in batches:
        sink.write(rows)
    sink.finish()
    sink.close()
    files = sorted(Path(model.path).glob("part-*")) if Path(model.path).exists() else []
    assert all(file.name.endswith(model.ending) for file in files)
    contents = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()
    return contents


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part_rows", [None, 3])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BATCHES)
def test_parts_have_the_bytes_of_those_in_a_folder(
    tmp_path: Path, kind: str, part_rows: int | None, rows: list[list[tuple[Any, ...]]]
) -> None:
    keys, suffix = KINDS[kind]
    model = Parts(path=str(tmp_path / "out"), part_rows=part_rows, **keys)
    batches = [batch(each) for each in rows]
    assert parts_of(model, batches) == files_of(model, batches)
    assert WholeParts.of(model, SCHEMA).suffix == suffix


@pytest.mark.parametrize("part_bytes", [1000, 1 << 30])
def test_a_part_is_full_when_it_has_so_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    """Those of the model, and never more than memory has room for."""
    monkeypatch.setattr(whole_parts, "MOST_BYTES", 2000)
    keys: dict[str, Any] = {"path": str(tmp_path / "out"), "format": "arrows"}
    batches = [batch([(n, "text", None, None)]) for n in range(100)] * 200
    parts = parts_of(Parts(part_bytes=part_bytes, **keys), batches)
    assert len(parts) > 1
    assert parts == files_of(Parts(part_bytes=min(part_bytes, 2000), **keys), batches)


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"/data/out: .*one column"):
        WholeParts.of(Parts(path="/data/out", format="text"), SCHEMA)


def test_a_part_is_full_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    parts = WholeParts.of(Parts(path="/data/out", part_seconds=5), SCHEMA)
    row = batch([(1, "a", None, None)])
    now = 100.0
    parts.add(row)
    now = 104.0
    parts.add(row)
    assert not parts.is_full
    now = 105.0
    parts.add(row)
    assert parts.is_full
    parts.take()
    parts.add(row)
    assert not parts.is_full


@pytest.mark.parametrize(
    "model",
    [
        File(path="/data/out.csv"),
        StandardOutput(),
        Preview(),
        Table(uri="sqlite:rows.db", table="rows"),
    ],
)
def test_sinks_that_flink_cannot_have(model: Output) -> None:
    with pytest.raises(InvalidArgument, match=f'of the type {model.type} cannot run on Flink.* use type = "parts"'):
        check_output(model)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"path": "out"}, "out: .*write the whole path"),
        ({"path": "gs://bucket/out"}, "gs://bucket/out: Flink writes into .* s3://"),
        ({"path": "/data/out", "part_wait": 5}, "part_wait: on Flink, .*leave it out"),
    ],
)
def test_parts_that_flink_cannot_write(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        check_output(Parts(**keys))


@pytest.mark.parametrize(
    "model", [Parts(path="/data/out"), Parts(path="file:///out"), Parts(path="s3://b"), Blackhole()]
)
def test_sinks_that_flink_has(model: Output) -> None:
    check_output(model)
