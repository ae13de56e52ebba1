"""The latest results of keys against a plain loop: whatever comes when, whatever a checkpoint cuts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.connectors.cells import CellType
from arroyo_udf_plugin.engine.datafusion.query import Select, WrongQuery
from arroyo_udf_plugin.engine.windows import updated_keys
from arroyo_udf_plugin.engine.windows.kept import KeptRows
from arroyo_udf_plugin.engine.windows.storage import StorageLimits
from arroyo_udf_plugin.engine.windows.updated_keys import UpdatedKeys
from arroyo_udf_plugin.engine.windows.updating_rows import UpdatingRows

pytestmark = pytest.mark.once

SCHEMA = pa.schema([("k", pa.string()), ("m", pa.int64()), ("x", pa.int64())])
AGGREGATES = {"n": "count(*)", "s": "sum(x)", "low": "min(x)", "a": "avg(x)", "big": "count(x) FILTER (WHERE x > 2)"}
OVER = Select({"k": "k", "m": "m", "n": "n", "s": "s + 0", "low": "low", "a": "a", "big": "big"}, "s <> 3")
TTL = 10

Row = tuple[str | None, int | None, int | None]
Change = tuple[str, dict[str, Any] | None, dict[str, Any] | None]
Step = list[Row] | int | Literal["cut"]
"""Rows, time that passes, or a checkpoint from which it goes on."""

ROWS = st.lists(
    st.tuples(st.none() | st.sampled_from("abc"), st.none() | st.integers(0, 1), st.none() | st.integers(-2, 4)),
    min_size=1,
    max_size=8,
)
STEPS = st.lists(ROWS | st.integers(1, 12) | st.just("cut"), max_size=14)


@dataclass
class Known:
    at: int
    values: list[int | None] = field(default_factory=list)

    def result(self, key: tuple[Any, Any]) -> dict[str, Any] | None:
        known = [value for value in self.values if value is not None]
        total = sum(known) if known else None
        if total is None or total == 3:
            return None
        return {
            "k": key[0],
            "m": key[1],
            "n": len(self.values),
            "s": total,
            "low": min(known),
            "a": total / len(known),
            "big": sum(value > 2 for value in known),
        }


def change(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[Change]:
    if before == after:
        return []
    return [("c" if before is None else "d" if after is None else "u", before, after)]


def expected(steps: list[Step]) -> list[list[Change]]:
    """The changes of each step."""
    keys: dict[tuple[Any, Any], Known] = {}
    now = 0
    changes: list[list[Change]] = []
    for step in steps:
        own: list[Change] = []
        if isinstance(step, int):
            now += step
        elif step != "cut":
            for key in [key for key, known in keys.items() if known.at + TTL <= now]:
                own += change(keys.pop(key).result(key), None)
            before = {key: keys[key].result(key) if key in keys else None for key in {row[:2] for row in step}}
            for k, m, x in step:
                keys.setdefault((k, m), Known(now)).values.append(x)
            for key, result in before.items():
                keys[key].at = now
                own += change(result, keys[key].result(key))
        changes.append(own)
    return changes


def rows_of(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def changes_of(own: UpdatedKeys) -> list[Change]:
    return [tuple(row.values()) for step in own.close() for batch in step for row in batch.to_pylist()]


def in_order(changes: list[Change]) -> list[Change]:
    return sorted(changes, key=repr)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, most_gone=st.sampled_from([0, 3, 1000]), memory=st.sampled_from([1, 1 << 20]))
def test_changes_equal_a_plain_loop(steps: list[Step], most_gone: int, memory: int) -> None:
    now = 0

    def opened() -> UpdatedKeys:
        asked = UpdatingRows(("k", "m"), AGGREGATES, [OVER], TTL)
        return UpdatedKeys(asked, SCHEMA, StorageLimits(memory=memory), lambda: now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updated_keys, "_MOST_GONE", most_gone)
        own = opened()
        for step, wanted in zip(steps, expected(steps), strict=True):
            found: list[Change] = []
            if isinstance(step, int):
                now += step
            elif step == "cut":
                kept = [part.restored() for part in own.kept()]
                own = opened()
                own.restore(kept, None)
            else:
                for start in range(0, len(step), 3):
                    own.add(rows_of(step[start : start + 3]))
                found = changes_of(own)
            assert in_order(found) == in_order(wanted)


def simple(keys: tuple[str, ...] = ("k",), ttl: int = TTL, **aggregates: str) -> UpdatingRows:
    return UpdatingRows(keys, aggregates or {"n": "count(*)"}, (), ttl)


def test_without_keys_there_is_one_result() -> None:
    own = UpdatedKeys(simple(()), SCHEMA, clock=lambda: 0)
    own.add(rows_of([("a", 1, 1), ("b", 1, 1)]))
    assert changes_of(own) == [("c", None, {"n": 2})]
    own.add(rows_of([("a", 1, 1)]))
    assert changes_of(own) == [("u", {"n": 2}, {"n": 3})]


def test_a_key_that_is_forgotten_is_deleted_before_it_begins_anew() -> None:
    now = 0
    own = UpdatedKeys(simple(), SCHEMA, clock=lambda: now)
    own.add(rows_of([("a", 1, 1), ("a", 1, 1)]))
    changes_of(own)
    now = TTL
    own.add(rows_of([("a", 1, 1)]))
    assert changes_of(own) == [("d", {"k": "a", "n": 2}, None), ("c", None, {"k": "a", "n": 1})]


def test_a_clock_that_goes_back_forgets_nothing() -> None:
    now = 100
    own = UpdatedKeys(simple(), SCHEMA, clock=lambda: now)
    for shown in (100, 5, 105):
        now = shown
        own.add(rows_of([("a", 1, 1)]))
        found = changes_of(own)
    assert found == [("u", {"k": "a", "n": 2}, {"k": "a", "n": 3})]


def test_a_result_that_stays_makes_no_change() -> None:
    own = UpdatedKeys(simple(top="max(x)"), SCHEMA, clock=lambda: 0)
    own.add(rows_of([("a", 1, 3)]))
    changes_of(own)
    own.add(rows_of([("a", 1, 2), ("a", 1, None)]))
    assert changes_of(own) == []


def test_floats_as_keys_and_results() -> None:
    """0 is -0, and NaN stays NaN."""
    schema = pa.schema([("k", pa.float64()), ("x", pa.float64())])
    own = UpdatedKeys(simple(top="max(x)", n="count(x)"), schema, clock=lambda: 0)
    for k, x in ((0.0, 1.0), (-0.0, math.nan), (math.nan, 1.0), (math.nan, 1.0)):
        own.add(pa.RecordBatch.from_pydict({"k": [k], "x": [x]}, schema=schema))
        found = changes_of(own)
    assert repr(found) == "[('u', {'k': nan, 'top': 1.0, 'n': 1}, {'k': nan, 'top': 1.0, 'n': 2})]"
    assert sorted(map(str, (row for part in own.kept() for row in part.left.column("k").to_pylist()))) == ["0.0", "nan"]


def test_cells_of_text_files_as_keys() -> None:
    schema = pa.schema([("k", CellType(None)), ("x", pa.int64())])
    own = UpdatedKeys(simple(), schema, clock=lambda: 0)
    cells = pa.ExtensionArray.from_storage(CellType(None), pa.array(["a", "b", "a"]))
    own.add(pa.RecordBatch.from_arrays([cells, pa.array([1, 2, 3])], schema=schema))
    assert in_order(changes_of(own)) == [("c", None, {"k": "a", "n": 2}), ("c", None, {"k": "b", "n": 1})]


def test_what_has_gone_is_not_kept_for_ever() -> None:
    own = UpdatedKeys(simple(), SCHEMA, clock=lambda: 0)
    most = 0
    for _ in range(3000):
        own.add(rows_of([(str(key), 1, 1) for key in range(12)]))
        changes_of(own)
        most = max(most, sum(part.num_rows for part in own.kept()))
    assert most <= 2 * 12 + updated_keys._MOST_GONE + 12


def test_a_part_that_has_gone_as_a_whole_is_nothing() -> None:
    own = UpdatedKeys(simple(), SCHEMA, clock=lambda: 0)
    own.add(rows_of([("a", 1, 1)]))
    changes_of(own)
    resumed = UpdatedKeys(simple(), SCHEMA, clock=lambda: 0)
    resumed.restore([KeptRows(part.part, notes=bytes([1])) for part in own.kept()], None)
    resumed.add(rows_of([("a", 1, 1)]))
    assert changes_of(resumed) == [("c", None, {"k": "a", "n": 1})]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (simple(m="median(x)"), "this aggregate would need all rows of a key for ever: write count, sum"),
        (simple(m="count(DISTINCT x)"), "this aggregate would need all rows"),
        (simple(("y",)), "there is no column y, or several"),
        (simple(k="count(*)"), "two columns of the result have the name k"),
    ],
)
def test_what_is_wrong(asked: UpdatingRows, text: str) -> None:
    with pytest.raises(WrongQuery, match=text):
        UpdatedKeys(asked, SCHEMA)


def test_a_list_is_no_key() -> None:
    with pytest.raises(WrongQuery, match="a key does not take"):
        UpdatedKeys(simple(), pa.schema([("k", pa.list_(pa.int64()))]))
