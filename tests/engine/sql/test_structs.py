"""Structs that pyarrow has sliced, or that are null: engines in Rust misread them (host/plain_structs.py)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.datafusion.feed import TABLE, Feed, Single
from arroyo_udf_plugin.engine.datafusion.native_calls import RewrittenText
from arroyo_udf_plugin.engine.datafusion.whole import Whole
from arroyo_udf_plugin.host.plain_structs import plain

INNER = pa.struct([("id", pa.int64()), ("town", pa.string())])
CHANGE = pa.struct([("op", pa.string()), ("row", INNER)])
SCHEMA = pa.schema([("change", CHANGE), ("list", pa.list_(CHANGE)), ("pair", pa.list_(INNER, 2))])
INNERS = st.none() | st.fixed_dictionaries(
    {"id": st.none() | st.integers(0, 9), "town": st.none() | st.text("ab", max_size=2)}
)
CHANGES = st.none() | st.fixed_dictionaries({"op": st.none() | st.sampled_from("crud"), "row": INNERS})
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "change": CHANGES,
            "list": st.none() | st.lists(CHANGES, max_size=3),
            "pair": st.none() | st.lists(INNERS, min_size=2, max_size=2),
        }
    ),
    min_size=1,
    max_size=12,
)
ASKED = {
    "change['op']": lambda row: _at(row["change"], "op"),
    "change['row']['id']": lambda row: _at(_at(row["change"], "row"), "id"),
    "list[1]['row']['town']": lambda row: _at(_at((row["list"] or [None])[0], "row"), "town"),
    "pair[2]['id']": lambda row: _at(None if row["pair"] is None else row["pair"][1], "id"),
}


def _at(struct: Any, name: str) -> Any:
    return None if struct is None else struct[name]


@pytest.fixture(scope="module")
def run() -> dict[str, Any]:
    """Of each way in which DataFusion gets batches: the query over one of them."""
    query = f"SELECT {', '.join(f'{text} AS c{i}' for i, text in enumerate(ASKED))} FROM "
    asked = RewrittenText(f"{query}{TABLE}", [])
    whole = Whole(f"{query}t", {"t": SCHEMA}, {})
    return {
        "one by one": Feed(asked, SCHEMA, one_by_one=True).run,
        "whole batches": Feed(asked, SCHEMA, one_by_one=False).run,
        "alone": Single(asked).run,
        "all rows": lambda batch: whole.answers({"t": [batch]}, 2**26),
    }


@pytest.mark.parametrize("way", ["one by one", "whole batches", "alone", "all rows"])
@settings(deadline=None)
@given(rows=ROWS, data=st.data())
def test_fields_of_slices(way: str, run: dict[str, Any], rows: list[dict[str, Any]], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows) - 1))
    end = data.draw(st.integers(start + 1, len(rows)))
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA).slice(start, end - start)
    answers = [tuple(row.values()) for answer in run[way](batch) for row in answer.to_pylist()]
    assert answers == [tuple(value(row) for value in ASKED.values()) for row in rows[start:end]]


LEAVES = st.sampled_from([pa.int64(), pa.string(), pa.bool_()])


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    structs = st.lists(inner, max_size=3).map(
        lambda types: pa.struct([(f"f{i}", type_) for i, type_ in enumerate(types)])
    )
    lists = st.tuples(st.sampled_from([pa.list_, pa.large_list, lambda item: pa.list_(item, 2)]), inner)
    maps = inner.map(lambda item: pa.map_(pa.string(), item))
    return structs | lists.map(lambda chosen: chosen[0](chosen[1])) | maps


def _values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(type_):
        value: st.SearchStrategy[Any] = st.fixed_dictionaries({field.name: _values(field.type) for field in type_})
    elif pa.types.is_map(type_):
        value = st.lists(st.tuples(st.text("ab", max_size=1), _values(type_.item_type)), max_size=2)
    elif pa.types.is_fixed_size_list(type_):
        value = st.lists(_values(type_.value_type), min_size=2, max_size=2)
    elif pa.types.is_nested(type_):
        value = st.lists(_values(type_.value_type), max_size=2)
    else:
        value = {pa.int64(): st.integers(0, 9), pa.string(): st.text("ab"), pa.bool_(): st.booleans()}[type_]
    return st.none() | value


@settings(deadline=None)
@given(data=st.data(), type_=st.recursive(LEAVES, _nested, max_leaves=5))
def test_plain_values_are_the_same(data: st.DataObject, type_: pa.DataType) -> None:
    array = pa.array(data.draw(st.lists(_values(type_), max_size=6)), type_)
    start = data.draw(st.integers(0, len(array)))
    part = array.slice(start, data.draw(st.integers(0, len(array))))
    made = plain(part)
    made.validate(full=True)
    assert made.type == type_
    assert made.equals(part)
    for struct in _structs(made):
        assert struct.offset == 0
        for i in range(struct.type.num_fields):
            assert struct.is_null().equals(pa.compute.and_(struct.is_null(), struct.field(i).is_null()))


def _structs(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(array.type):
        return [array, *(each for i in range(array.type.num_fields) for each in _structs(array.field(i)))]
    if pa.types.is_map(array.type):
        return [*_structs(array.keys), *_structs(array.items)]
    if pa.types.is_fixed_size_list(array.type):  # others are beside the slice
        size = array.type.list_size
        return _structs(array.values.slice(array.offset * size, len(array) * size))
    return _structs(array.values) if pa.types.is_nested(array.type) else []


def test_what_is_plain_is_handed_on_as_it_is() -> None:
    array = pa.array([[{"a": {"b": 1}}], None, [{"a": {"b": 2}}]])
    assert plain(array) is array
    assert (
        plain(array.slice(1)).values.field(0).field(0).buffers()[1].address
        == array.values.field(0).field(0).buffers()[1].address
    )
