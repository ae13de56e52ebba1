"""R10: idempotency keys are those of a row-by-row model, whatever the batches."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.datafusion.query import Select
from arroyo_udf_plugin.engine.operators import keys
from arroyo_udf_plugin.engine.operators.blocks import ORIGIN, Block, Given
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.queried import QueryPlan

MASK = bytes(range(100, 116))
GIVEN = pa.schema([("n", pa.int64()), ("tags", pa.list_(pa.int64()))])


def one_by_one(found: bytes | memoryview) -> list[bytes]:
    return [bytes(found[start : start + 24]) for start in range(0, len(found), 24)]


def masked(key: bytes, mask: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(key, mask + bytes(8), strict=True))


def named(file: str, row: int) -> bytes:
    return keys.hashed("file", file) + row.to_bytes(8, "big")


def block(origins: Sequence[tuple[str, int, bytes | None]], tags: Sequence[list[int] | None] | None = None) -> Block:
    files, rows, own = zip(*origins, strict=True) if origins else ((), (), ())
    columns = [pa.array(files, pa.string()), pa.array(rows, pa.uint64()), pa.nulls(len(origins), pa.string())]
    origin = pa.RecordBatch.from_arrays([*columns, pa.array(own, pa.binary())], schema=ORIGIN)
    numbers = pa.array(range(len(origins)), pa.int64())
    given = pa.array([None] * len(origins) if tags is None else tags, GIVEN.field("tags").type)
    return Block(pa.RecordBatch.from_arrays([numbers, given], schema=GIVEN), origin)


NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 300)
ROWS = st.lists(
    st.tuples(st.sampled_from(["a.csv", "b.csv", "ä"]), NUMBERS, st.none() | st.binary(min_size=24, max_size=24))
)


@settings(deadline=None)
@given(ROWS, st.booleans(), st.data())
def test_a_key_is_the_rows_own_or_file_and_number(
    rows: list[tuple[str, int, bytes | None]], has_mask: bool, data: st.DataObject
) -> None:
    mask = MASK if has_mask else bytes(16)
    whole = block(rows)
    expected = [masked(key or named(file, row), mask) for file, row, key in rows]
    assert one_by_one(whole.keys(mask)) == expected
    start = data.draw(st.integers(0, len(rows)))
    length = data.draw(st.integers(0, len(rows) - start))
    assert one_by_one(whole.slice(start, length).keys(mask)) == expected[start : start + length]
    positions = data.draw(st.lists(st.integers(0, len(rows) - 1)) if rows else st.just([]))
    assert one_by_one(whole.take(pa.array(positions, pa.int64())).keys(mask)) == [expected[at] for at in positions]
    again = whole.with_keys(keys.array(whole.keys(mask)))
    assert one_by_one(again.keys()) == expected


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(st.integers(0, 3), max_size=4), max_size=12), st.data())
def test_parts_of_rows_have_the_same_keys_whatever_the_batches(
    tags: list[list[int] | None], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(tags)), max_size=4)))
    whole = block([("in.csv", row + 1, None) for row in range(len(tags))], tags)
    operator = Operator("parts", [QueryPlan("parts", Select({"n": "n", "tag": "unnest(tags)"}), Given(GIVEN), b"op")])
    operator.start()
    for start, stop in zip([0, *cuts], [*cuts, len(tags)], strict=True):
        if start < stop:
            operator.push(whole.slice(start, stop - start))
    operator.finish()
    found: list[tuple[bytes, int]] = []
    while not operator.is_finished:
        for item in operator.take():
            assert isinstance(item, Block)
            found += zip(one_by_one(item.keys()), item.rows.column("tag").to_pylist(), strict=True)
    expected = []
    for row, own in enumerate(tags):
        for place, tag in enumerate(own or []):
            key = named("in.csv", row + 1)
            expected.append((masked(key, keys.hashed(b"parts", b"op", place)) if place else key, tag))
    assert found == expected
    assert len({key for key, _ in found}) == len(found)


TIME = datetime.datetime(2020, 1, 1)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, None, -1]),
        pa.array([0.0, float("nan"), None, 1e300, 1.0]),
        pa.array(["a", "b", None, "None", "", "a, b"]),
        pa.array([b"a", b"b", None, b""]),
        pa.array([0, 1, None], pa.timestamp("ns")),
        pa.array([TIME, None], pa.timestamp("us", "UTC")),
        pa.array([1, None, 3], pa.time32("s")),
        pa.array([1, None, 3], pa.duration("ns")),
        pa.array([1, None, 3], pa.date32()),
        pa.array(["x", None, "y"]).dictionary_encode(),
        pa.array([[1], [1, 2], [], None, [None], [2, 1]]),
        pa.array([[[0]], [[0], [1]], [[0, 1]], [[], []], None], pa.list_(pa.list_(pa.timestamp("ns")))),
        pa.array([[1, 2], None, [2, 1]], pa.list_(pa.int64(), 2)),
        pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": None}, None, {"a": None, "b": None}]),
        pa.array([True, False, None]),
    ],
    ids=lambda column: str(column.type),
)
def test_results_of_windows_with_other_values_have_other_keys(column: pa.Array) -> None:
    found = keys.OfResults(b"op", are_rows=False).keys([pa.repeat(1, len(column)), column]).to_pylist()
    assert len(set(found)) == len(column)
    others = keys.OfResults(b"other", are_rows=False).keys([pa.repeat(1, len(column)), column]).to_pylist()
    assert not set(found) & set(others)
    each = [
        keys.OfResults(b"op", False).keys([pa.array([1]), column.slice(at, 1)])[0].as_py() for at in range(len(column))
    ]
    assert each == found, "whatever the batches"


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=20), st.data())
def test_results_that_are_the_same_have_the_same_keys_in_any_order(values: list[int], data: st.DataObject) -> None:
    def of(values: list[int]) -> list[tuple[int, bytes]]:
        cut = data.draw(st.integers(0, len(values)))
        results = keys.OfResults(b"op", are_rows=True)
        parts = (results.keys([pa.array(part, pa.int64())]) for part in (values[:cut], values[cut:]))
        return sorted(zip(values, (key for part in parts for key in part.to_pylist()), strict=True))

    found = of(values)
    assert of(data.draw(st.permutations(values))) == found
    assert len(set(found)) == len(values)


def test_keys_are_the_same_in_any_version() -> None:
    """They are in databases of users."""
    assert keys.hashed("file", "in.csv").hex() == "29007bae27f806d063445cd3512d82d9"
