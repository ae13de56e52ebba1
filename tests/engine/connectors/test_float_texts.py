"""Floats in newline JSON, written in batches: as Python writes each."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.connectors import json_writer
from arroyo_udf_plugin.engine.connectors.json_writer import JsonWriter

NEAR_A_CHANGE = st.builds(
    lambda sign, digits, exponent: sign * float(f"{digits}e{exponent}"),
    st.sampled_from([1, -1]),
    st.one_of(st.integers(0, 99), st.integers(0, 2**54)),
    st.integers(-32, 32),
)
FLOAT = st.one_of(st.none(), st.floats(), NEAR_A_CHANGE, st.integers(-(2**60), 2**60).map(float))


def written(column: pa.Array) -> list[str]:
    lines: list[Any] = []
    writer = JsonWriter(lines.append, "out.jsonl", pa.schema([("x", column.type)]))
    writer.write(pa.table({"x": column}))
    return b"".join(map(bytes, lines)).decode().splitlines()


def text(value: float | None) -> str:
    if value is not None and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return json.dumps(value)


@settings(max_examples=300, deadline=None)
@given(st.lists(FLOAT, min_size=1, max_size=30))
@example([10.0**exponent * factor for exponent in range(-20, 30) for factor in (1, -1, 1.5, 1 / 3, 9.999999999999999)])
@example([0.0, -0.0, 5e-324, 1.7976931348623157e308, 2.0**53, 2.0**53 - 1, 1e16, 9999999999999998.0, 0.0001, 0.00009])
def test_a_float_is_as_python_writes_it(values: list[float | None]) -> None:
    assert written(pa.array(values, pa.float64())) == [f'{{"x":{text(value)}}}' for value in values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=1, max_size=9))
def test_a_float32_is_its_float64(values: list[float | None]) -> None:
    assert written(pa.array(values, pa.float32())) == [f'{{"x":{text(value)}}}' for value in values]


def test_floats_in_lists_and_in_slices() -> None:
    column = pa.array([[1.0, None], [], None, [1e10, 2.5e-7, float("nan")]])
    assert written(column[1:]) == ['{"x":[]}', '{"x":null}', '{"x":[10000000000.0,2.5e-07,"NaN"]}']


def test_usual_floats_are_not_written_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_by_one(column: pa.Array) -> pa.Array:
        assert not len(column)
        return column.cast(pa.large_string())

    monkeypatch.setattr(json_writer, "_one_by_one", one_by_one)
    values = [0.0, -0.0, 1.0, 0.1, 123.456, 1e10, 1706704200000.0, -5e15, 1e-12, 1e300, None]
    assert written(pa.array(values, pa.float64())) == [f'{{"x":{text(value)}}}' for value in values]
