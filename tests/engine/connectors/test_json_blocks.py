"""Blocks of newline JSON in native code: as line by line, whatever the lines are."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.connectors import blocks, json_blocks
from arroyo_udf_plugin.engine.connectors.cells import decoded
from arroyo_udf_plugin.engine.connectors.json_lines import JsonReader
from arroyo_udf_plugin.errors import InvalidArgument

TYPES = {
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "zoned": pa.timestamp("ms", "UTC"),
    "small": pa.uint8(),
    "whole": pa.int64(),
    "real": pa.float64(),
    "single": pa.float32(),
    "text": pa.string(),
    "flag": pa.bool_(),
    "amount": pa.decimal128(10, 2),
    "clock": pa.time64("us"),
    "list": pa.list_(pa.int64()),
}
ODD = [
    *("-0", "-0.0", "0.1", "1e5", "1E400", "-1e-400", "1" * 400, "9007199254740993", "9223372036854775808", "01", "1."),
    *("NaN", "-Infinity", "Inf", "null", "true", '"5"', '"x"', '"\\u0000y"', '"\\ud800"', '"\\ud83d\\ude00"', '""'),
    *('"\\u0061"', '"a\tb"', '"2024-01-31"', '"2024-01-31T12:30:00Z"', '"2024-01-31 12:30"', '"12:30:01"', '"1.50"'),
    *("1706704200000", "255", "256", "1.0", "[1,2]", "[1,null]", "[1.5]", "[-0]", "[[1]]", "{}", '{"x":{"x":1}}'),
    *("0.30000000000000004", "0.1234567890123456789", "123456789012345678", "[" * 600 + "]" * 600, '"NaN [ { 1e999"'),
]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=3,
).map(json.dumps)
VALUE = st.one_of(st.sampled_from(ODD), JSON)
KEY = st.sampled_from(["a", "b", "c", "new", "\\u0061", *TYPES])
OBJECT = st.lists(st.tuples(KEY, VALUE), max_size=4).map(
    lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
)
USUAL = st.fixed_dictionaries(
    {"a": st.integers(-(2**53), 2**53), "b": st.text(max_size=5), "c": st.floats(allow_nan=False, allow_infinity=False)}
).map(json.dumps)
LINE = st.one_of(
    USUAL,
    OBJECT,
    OBJECT.map(lambda line: f" {line}\r"),
    st.sampled_from(
        ["", " ", "{", "}", "{}{}", '{"a":', "1}", '{"a":1}{"a":2}', "[]", "null", "{},", '"\x0b"', "{\0}"]
    ),
).map(str.encode)
LINES = st.lists(st.one_of(LINE, LINE, LINE, st.just(b'{"b":"\xff"}')), max_size=12)


def plain(column: pa.Array) -> pa.Array:
    """Python has no time after the year 9999."""
    return column.view(pa.int64()) if pa.types.is_timestamp(column.type) else decoded(column)


def read(data: bytes, columns: list[str] | None, most: int, start: int, ended: bool, **how: Any) -> list[Any] | str:
    """Rows by their numbers, and why they were refused; or why nothing was read."""
    stream = io.BytesIO(data if ended else data.removesuffix(b"\n"))
    try:
        reader = JsonReader(stream.read, "in.jsonl", **how)
    except InvalidArgument as error:
        return str(error)
    places = [reader.schema.names.index(name) for name in columns or reader.schema.names if name in reader.schema.names]
    rows: list[Any] = [reader.schema]
    assume(places)  # Arrow has no rows without columns
    for first, batch, refused, _ in reader.pieces(places, most, start):
        assert 0 < batch.num_rows <= most
        cells = [list(map(repr, plain(column).to_pylist())) for column in batch.columns]  # 0.0 equals -0.0
        for at in range(batch.num_rows):
            rows.append((first + at, [column[at] for column in cells], refused.get(at)))
    return rows


HOW = st.fixed_dictionaries(
    {
        "types": st.sets(st.sampled_from(list(TYPES))).map(lambda names: {name: TYPES[name] for name in sorted(names)}),
        "json_columns": st.sampled_from([(), ("b",)]),
        "timestamps": st.sampled_from([None, "rfc3339", "unix_millis"]),
        "cells": st.booleans(),
        "ignores": st.booleans(),
    }
)
COLUMNS = st.lists(st.sampled_from(["a", "b", "c", *TYPES]), min_size=1, max_size=3, unique=True)
PIECES = st.fixed_dictionaries(
    {
        "columns": st.one_of(st.none(), COLUMNS),
        "most": st.integers(1, 5),
        "start": st.integers(1, 6),
        "ended": st.booleans(),
    }
)
WHOLE = {"columns": None, "most": 5, "start": 1, "ended": True}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES, how=HOW, pieces=PIECES, block_bytes=st.sampled_from([20, 100, 4 << 20]))
@example(lines=[b'{"a":1}', b'{"a":1}{"a":2}', b'{"a":3}'], how={"types": {}}, pieces=WHOLE, block_bytes=100)
@example(lines=[b'{"a":1}', b'{"a":', b"1}", b'{"a":1}{"a":2}'], how={"types": {}}, pieces=WHOLE, block_bytes=100)
def test_a_block_is_as_its_lines(
    monkeypatch: pytest.MonkeyPatch, lines: list[bytes], how: dict[str, Any], pieces: dict[str, Any], block_bytes: int
) -> None:
    data = b"".join(line + b"\n" for line in lines)
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        patch.setattr(json_blocks, "LEAST", 0)
        native = read(data, **pieces, **how)
        patch.setattr(json_blocks, "LEAST", 1 << 60)
        assert native == read(data, **pieces, **how)


@pytest.mark.parametrize(
    ("line", "types"),
    [
        ({"n": 1, "x": 0.5, "b": True, "t": "ä", "l": [1, None], "none": None}, {}),
        ({"t": "2024-01-31T12:30:00Z", "n": 5}, {"t": pa.timestamp("us", "UTC"), "n": pa.uint16()}),
        ({"t": "nonsense", "n": 5}, {"t": pa.date32()}),
    ],
)
def test_usual_lines_are_read_in_native_code(
    monkeypatch: pytest.MonkeyPatch, line: dict[str, Any], types: dict[str, pa.DataType]
) -> None:
    data = "".join(json.dumps(line) + "\n" for _ in range(1000)).encode()
    reader = JsonReader(io.BytesIO(data).read, "in.jsonl", types)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.json_rows.parsed", None)  # no line is read alone
    pieces = list(reader.pieces(list(range(len(line))), 300))
    assert [(first, batch.num_rows) for first, batch, *_ in pieces] == [(1, 300), (301, 300), (601, 300), (901, 100)]


@pytest.mark.parametrize(
    "line",
    [
        '{"whole": 1, "whole": 2}',
        '{"whole": 1.0}',
        '{"whole": 9223372036854775808}',
        '{"real": 9007199254740993}',
        '{"real": 1e999}',
        '{"text": "\\ud800"}',
        '{"text": 5}',
        '{"flag": 1}',
        '{"new": 1e999}',
        '{"new": NaN}',
        '{"new": ' + "[" * 501 + "]" * 501 + "}",
        '{"new": ' + "1" * 301 + "}",
        '{"whole":\n1}',
        '{"whole": 1}\n\n',
        '{"whole": 1} {"whole": 2}',
    ],
)
def test_unusual_lines_are_left_to_python(line: str) -> None:
    names = ["whole", "real", "text", "flag"]
    native = json_blocks.NativeJson(pa.schema([(name, TYPES[name]) for name in names]), names, None, ignores=True)
    usual = '{"text": "a", "flag": true, "new": {"NaN": [1e9, "1e999"]}, "whole": -0, "real": -0}'
    arrays, refused = native.rows("\n".join([usual] * 100).encode()) or ({}, {})
    assert [column[99].as_py() for column in arrays.values()] == [0, 0.0, "a", True]
    assert not refused
    assert str(arrays["real"][0]) == "0.0"  # not -0.0: Python has no such integer
    assert native.rows("\n".join([*[usual] * 100, line]).encode()) is None
