"""Rows with operations: what is put, removed and kept, in their order, flat and in structs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pydantic
import pytest
from sinks import execute, rows_of
from tables import with_checkpoints

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.table import Table

FLAT = pa.schema([("op", pa.string()), ("id", pa.int64()), ("word", pa.string()), ("unsent", pa.list_(pa.string()))])
ROW = pa.struct([("id", pa.int64()), ("word", pa.string()), ("n", pa.int32())])
NESTED = pa.schema(
    [("op", pa.string()), ("before", ROW), ("after", ROW), ("unsent", pa.list_(pa.string())), ("lsn", pa.int64())]
)


def flat(*rows: tuple[str | None, int | None, str | None] | tuple[str, int, None, list[str]]) -> pa.RecordBatch:
    whole = [(*row, None)[:4] for row in rows]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*whole, strict=True), FLAT, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=FLAT)


def nested(*rows: tuple[str, Any, Any] | tuple[str, Any, Any, list[str]]) -> pa.RecordBatch:
    whole = [(*(*row, None)[:4], 7) for row in rows]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*whole, strict=True), NESTED, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=NESTED)


def row(id: int, word: str | None = None, n: int | None = None) -> dict[str, Any]:
    return {"id": id, "word": word, "n": n}


def model_of(uri: str, name: str, **keys: Any) -> Table:
    return Table(uri=uri, table=name, key=["id"], operation="op", **keys)


def write(model: Table, *batches: pa.RecordBatch) -> None:
    sink = model.sink(batches[0].schema, 0, None, "pipeline", "sink")
    try:
        for batch in batches:
            sink.write(batch)
        sink.finish()
    finally:
        sink.close()


def test_rows_are_put_changed_and_removed_and_the_last_operation_of_a_key_wins(uri: str, name: str) -> None:
    write(
        model_of(uri, name),
        flat(("c", 1, "a"), ("r", 2, "b"), ("u", 1, "c"), ("d", 3, None), ("c", 4, "d"), ("d", 4, "d"), ("c", 5, "e")),
        flat(("d", 5, None), ("c", 5, "f"), ("u", 5, "g"), ("d", 2, None)),
    )
    assert sorted(rows_of(uri, name)) == [(1, "c"), (5, "g")]


def test_a_table_that_was_emptied(uri: str, name: str) -> None:
    write(
        model_of(uri, name), flat(("c", 1, "a"), ("c", 2, "b")), flat(("c", 3, "c"), ("t", None, None), ("c", 2, "d"))
    )
    assert rows_of(uri, name) == [(2, "d")]
    write(model_of(uri, name), flat(("t", None, None)))
    assert rows_of(uri, name) == []


def test_columns_that_were_not_sent_keep_what_the_table_has(uri: str, name: str) -> None:
    model = model_of(uri, name)
    write(model, nested(("c", None, row(1, "long", 1)), ("c", None, row(2, "longer", 1))))
    write(
        model,
        nested(
            ("u", None, row(1, None, 2), ["word"]),
            ("u", None, row(2, "other", None), ["n"]),
            ("c", None, row(3, "new", 1)),
            ("u", None, row(3, None, 5), ["word"]),
            ("u", None, row(3, None, 6), ["word", "n"]),
        ),
    )
    assert sorted(rows_of(uri, name)) == [(1, "long", 2), (2, "other", 1), (3, "new", 5)]
    write(model, nested(("u", None, row(1, None, None), ["word", "n"])))
    assert sorted(rows_of(uri, name))[0] == (1, "long", 2)


def test_a_column_that_was_not_sent_of_a_row_that_is_not_there(uri: str, name: str) -> None:
    model = model_of(uri, name)
    write(model, nested(("c", None, row(1, "a", 1))))
    for before in ([], [("d", row(2), None)]):
        with pytest.raises(InvalidArgument, match=r"1 rows were changed whose columns word were not sent"):
            write(model, nested(*before, ("u", None, row(2, None, 2), ["word"])))
    assert rows_of(uri, name) == [(1, "a", 1)]


def test_structs_have_the_key_of_what_goes_in_before(uri: str, name: str) -> None:
    model = model_of(uri, name)
    write(model, nested(("r", None, row(1, "a", 1)), ("r", None, row(2, "b", 2)), ("d", row(1), None)))
    assert rows_of(uri, name) == [(2, "b", 2)]
    write(model, nested(("u", row(2), row(3, "c", 3)), ("u", row(3), row(4, "d", 4)), ("c", None, row(2, "e", 5))))
    assert sorted(rows_of(uri, name)) == [(2, "e", 5), (4, "d", 4)]
    with pytest.raises(InvalidArgument, match=r"another key than before, and a column that was not sent: with REPLICA"):
        write(model, nested(("u", row(2), row(9, None, 3), ["word"])))


def test_some_columns_of_structs_are_written(uri: str, name: str) -> None:
    write(model_of(uri, name, columns=["id", "n"]), nested(("c", None, row(1, "a", 1))))
    assert rows_of(uri, name) == [(1, 1)]


def test_only_rows_that_stay_need_values(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (id bigint PRIMARY KEY, word text NOT NULL)")
    model = model_of(uri, name)
    write(model, flat(("c", 1, "a"), ("d", 2, None)), flat(("u", 1, None, ["word"])))
    assert rows_of(uri, name) == [(1, "a")]
    with pytest.raises(InvalidArgument, match=r"column 'word': the table may not have null there"):
        write(model, flat(("c", 1, None)))
    with pytest.raises(InvalidArgument, match=r"column 'id': the table may not have null there"):
        write(model, flat(("d", None, None)))


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (flat(("x", 1, "a")), "the operation 'x' is not known: write c, r or u"),
        (flat((None, 1, "a")), "a row has no operation: 'op' is null"),
        (nested(("c", None, None)), "a row whose operation is not d has no after"),
        (nested(("d", None, None)), "column 'id': the table may not have null there"),
        (flat(("c", 1, "a")).rename_columns(["o", "id", "word", "unsent"]), "operation: there is no column 'op'"),
        (pa.record_batch({"op": [1], "id": [1]}), "the operation 'op' is int64, and must be text"),
        (nested(("c", None, row(1))).select(["op", "after"]), "a struct after, and none before"),
    ],
)
def test_operations_that_say_too_little(uri: str, name: str, batch: pa.RecordBatch, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        write(model_of(uri, name), batch)


def test_an_operation_needs_a_key() -> None:
    with pytest.raises(pydantic.ValidationError, match="operation needs key"):
        Table(uri="sqlite:x.db", table="t", operation="op")


def test_a_key_of_several_columns(uri: str, name: str) -> None:
    model = Table(uri=uri, table=name, key=["word", "id"], operation="op")
    write(model, flat(("c", 1, "a"), ("c", 1, "b"), ("c", 2, "a"), ("d", 1, "b"), ("d", 2, "b")))
    assert sorted(rows_of(uri, name)) == [(1, "a"), (2, "a")]


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_leave_what_a_dictionary_has(uri: str, name: str, seed: int, tmp_path: Path) -> None:
    """In epochs, each of which is applied twice."""
    chance = random.Random(seed)
    model, expected = model_of(uri, name), dict[int, tuple[int, str | None, int | None]]()
    sink = with_checkpoints(tmp_path, model, NESTED, history=name)
    sink.clear(1)
    for epoch in range(2, 8):
        changes: list[Any] = []
        for _ in range(chance.randrange(1, 40)):
            key, word, n = chance.randrange(8), chance.choice(["a", "b", None]), chance.randrange(100)
            before = expected.get(key)
            if before is None:
                changes.append(("c", None, row(key, word, n)))
                expected[key] = (key, word, n)
            elif chance.random() < 0.3:
                changes.append(("d", row(key), None))
                del expected[key]
            elif chance.random() < 0.5:
                changes.append(("u", None, row(key, None, n), ["word"]))
                expected[key] = (key, before[1], n)
            else:
                changes.append(("u", None, row(key, word, n), []))
                expected[key] = (key, word, n)
        for start in range(0, len(changes), 9):
            sink.write(nested(*changes[start : start + 9]))
        sealed = sink.seal(epoch)
        assert sealed is not None
        stored = sealed.store()
        sink.apply(epoch, stored)
        sink.apply(epoch, stored)
        assert sorted(rows_of(uri, name)) == sorted(expected.values())
    sink.close()


def test_the_schema_of_old_descriptions_is_what_it_was() -> None:
    assert "operation" not in Table(uri="sqlite:x.db", table="t").model_dump()


def test_names_of_keys_are_data(uri: str, name: str) -> None:
    evil = 'x"; DROP TABLE rows; --'
    schema = pa.schema([("op", pa.string()), (evil, pa.int64()), ("unsent", pa.list_(pa.string()))])
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["c", "c", "d"]), pa.array([1, 2, 1]), pa.array([None, None, None], schema.field(2).type)],
        schema=schema,
    )
    write(Table(uri=uri, table=name, key=[evil], operation="op"), batch)
    assert rows_of(uri, name) == [(2,)]
