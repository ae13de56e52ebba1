"""Messages between the stages of a pipeline on Flink."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.connectors.cells import CellType
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.flink.messages import MessageWriter, RowsCodec, items, sender_of, time_of
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns

COLUMNS = Columns(pa.schema([("x", pa.int64()), ("text", pa.string()), ("tags", pa.list_(pa.string()))]))
ROWS = st.lists(
    st.tuples(st.none() | st.integers(-5, 5), st.none() | st.text(max_size=3), st.lists(st.text(max_size=2)))
)


def block_of(rows: list[tuple[object, ...]], file: str, refused: dict[int, str]) -> Block:
    columns = zip(*rows, strict=True) if rows else [(), (), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, COLUMNS.schema, strict=True)]
    return COLUMNS.block(Rows(file, 7, pa.record_batch(arrays, schema=COLUMNS.schema), refused))


@settings(deadline=None)
@given(ROWS, st.text(max_size=5), st.booleans(), st.booleans(), st.data())
def test_rows_come_with_what_is_known_of_them(
    rows: list[tuple[object, ...]], file: str, has_refused: bool, has_keys: bool, data: st.DataObject
) -> None:
    block = block_of(rows, file, {0: "why"} if has_refused and rows else {})
    if has_keys:
        block = block.with_keys(
            pa.array([data.draw(st.none() | st.binary(min_size=16, max_size=16)) for _ in rows], pa.binary())
        )
    codec = RowsCodec(COLUMNS.schema, COLUMNS.origin)
    came = codec.decode(memoryview(codec.encode(block)))
    assert came.rows.equals(block.rows)
    assert came.origin.equals(block.origin)


def test_rows_of_several_files_keep_theirs() -> None:
    one, other = (block_of([(1, "a", [])], file, {}) for file in ("one.csv", "other.csv"))
    rows, origin = (pa.concat_batches(pair) for pair in ((one.rows, other.rows), (one.origin, other.origin)))
    codec = RowsCodec(COLUMNS.schema, COLUMNS.origin)
    came = codec.decode(memoryview(codec.encode(Block(rows, origin))))
    assert came.origin.column("file").to_pylist() == ["one.csv", "other.csv"]


def test_cells_of_text_stay_cells() -> None:
    cells = pa.ExtensionArray.from_storage(CellType(None), pa.array(["1", None]))
    schema = pa.schema([("cell", cells.type)])
    codec = RowsCodec(schema)
    came = codec.decode(
        memoryview(codec.encode(Block(pa.record_batch([cells], schema=schema), pa.record_batch([], names=[]))))
    )
    assert came.rows.schema == schema
    assert came.rows.column(0).storage.to_pylist() == ["1", None]


def test_a_message_has_its_items_in_order() -> None:
    writer = MessageWriter(300)
    assert writer.take() is None
    writer.rows(b"abc")
    writer.watermark(-(1 << 60))
    writer.watermark(None)
    writer.parts(b"")
    writer.end()
    message = writer.take()
    assert message is not None
    assert sender_of(message) == 300
    assert [(kind, bytes(payload)) for kind, payload in items(message) if kind != "watermark"] == [
        ("rows", b"abc"),
        ("idle", b""),
        ("parts", b""),
        ("end", b""),
    ]
    assert [time_of(payload) for kind, payload in items(message) if kind == "watermark"] == [-(1 << 60)]
    assert writer.take() is None
