"""What goes from stage to stage: one message is some items of one slice, as bytes.

    codec = RowsCodec(schema, ORIGIN)              of an edge
    writer = MessageWriter(sender=3)
    writer.rows(codec.encode(block)); writer.watermark(time); writer.end()
    for kind, payload in items(writer.take()): ...

Rows are an Arrow IPC message without its schema, which both sides know. Of where rows come from, what is the same for
all of them is sent once.

Assumes: both sides run one pipeline with one version of this package.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.cells import plain_field
from ..operators.blocks import ORIGIN, Block
from ..operators.state_columns import celled, plain_column

Kind = Literal["rows", "parts", "watermark", "idle", "end"]

_KINDS: tuple[Kind, ...] = ("rows", "parts", "watermark", "idle", "end")
_SENDER = struct.Struct("<H")
_ITEM = struct.Struct("<BI")
_TIME = struct.Struct("<q")
_ROWS = struct.Struct("<BI")  # which columns are left out, and the length of the file's name
_FILE, _UNREAD, _KEY = (ORIGIN.get_field_index(name) for name in ("file", "unread", "key"))
_ONE_FILE, _ALL_READ, _NO_KEYS = 1, 2, 4


class MessageWriter:
    """sender: the number of the slice."""

    def __init__(self, sender: int) -> None:
        self._sender = _SENDER.pack(sender)
        self._pieces: list[bytes] = []

    def rows(self, encoded: bytes) -> None:
        self._add("rows", encoded)

    def parts(self, encoded: bytes) -> None:
        self._add("parts", encoded)

    def watermark(self, time: int | None) -> None:
        """None: nothing is held back."""
        if time is None:
            self._add("idle", b"")
        else:
            self._add("watermark", _TIME.pack(time))

    def end(self) -> None:
        """Nothing more comes from this slice."""
        self._add("end", b"")

    def _add(self, kind: Kind, payload: bytes) -> None:
        self._pieces += (_ITEM.pack(_KINDS.index(kind), len(payload)), payload)

    def take(self) -> bytes | None:
        """All items since the last one was taken. None: there are none."""
        if not self._pieces:
            return None
        message = b"".join([self._sender, *self._pieces])
        self._pieces.clear()
        return message


def sender_of(message: bytes) -> int:
    """The number of the slice that it comes from."""
    return int(_SENDER.unpack_from(message)[0])


def items(message: bytes) -> Iterator[tuple[Kind, memoryview]]:
    """In their order."""
    data, at = memoryview(message), _SENDER.size
    while at < len(data):
        kind, length = _ITEM.unpack_from(data, at)
        at += _ITEM.size
        yield _KINDS[kind], data[at : at + length]
        at += length


def time_of(payload: memoryview) -> int:
    """Of a watermark."""
    return int(_TIME.unpack(payload)[0])


class RowsCodec:
    """Of the rows of one edge. origin: of their origins; None: nobody asks where they come from."""

    def __init__(self, schema: pa.Schema, origin: pa.Schema | None = None) -> None:
        self._types, self._schema = schema.types, schema
        self._origin = origin
        self._plain = list(map(plain_field, schema))
        self._wires: dict[int, pa.Schema] = {}

    def encode(self, block: Block) -> bytes:
        columns = list(map(plain_column, block.rows.columns[: len(self._types)]))
        left_out, file = 0, b""
        if self._origin is not None:
            left_out, file, of_origin = _thinned(block.origin)
            columns += of_origin
        batch = pa.RecordBatch.from_arrays(columns, schema=self._wire(left_out))
        return b"".join([_ROWS.pack(left_out, len(file)), file, batch.serialize()])

    def decode(self, payload: memoryview) -> Block:
        left_out, length = _ROWS.unpack_from(payload)
        start = _ROWS.size + length
        batch = pa.ipc.read_record_batch(pa.py_buffer(payload[start:]), self._wire(left_out))
        width, n_rows = len(self._types), batch.num_rows
        own = list(map(celled, batch.columns[:width], self._types))
        rows = pa.RecordBatch.from_arrays(own, schema=self._schema)
        if self._origin is None:
            return Block(rows, _no_origin(n_rows))
        rest = iter(batch.columns[width:])
        file = bytes(payload[_ROWS.size : start]).decode()
        columns = [_whole(place, left_out, n_rows, file, rest) for place in range(len(self._origin))]
        return Block(rows, pa.RecordBatch.from_arrays(columns, schema=self._origin))

    def _wire(self, left_out: int) -> pa.Schema:
        if left_out not in self._wires:
            origin = [] if self._origin is None else list(self._origin)
            kept = [field for place, field in enumerate(origin) if not _is_left_out(place, left_out)]
            fields = [field.with_name(str(at)) for at, field in enumerate([*self._plain, *kept])]
            self._wires[left_out] = pa.schema(fields)
        return self._wires[left_out]


def _is_left_out(place: int, left_out: int) -> bool:
    flag = {_FILE: _ONE_FILE, _UNREAD: _ALL_READ, _KEY: _NO_KEYS}.get(place, 0)
    return bool(left_out & flag)


def _thinned(origin: pa.RecordBatch) -> tuple[int, bytes, list[pa.Array]]:
    """Which columns are left out, the name of the file if it is one, and the other columns."""
    left_out, name = 0, b""
    files = origin.column(_FILE)
    if len(files) and not files.null_count and pc.all(pc.equal(files, files[0])).as_py():
        left_out, name = _ONE_FILE, files[0].as_py().encode()
    for place, flag in ((_UNREAD, _ALL_READ), (_KEY, _NO_KEYS)):
        if origin.column(place).null_count == len(origin):
            left_out |= flag
    kept = [column for place, column in enumerate(origin.columns) if not _is_left_out(place, left_out)]
    return left_out, name, kept


def _whole(place: int, left_out: int, n_rows: int, file: str, rest: Iterator[pa.Array]) -> pa.Array:
    if not _is_left_out(place, left_out):
        return next(rest)
    if place == _FILE:
        return _repeated(file, _rounded(n_rows)).slice(0, n_rows)
    return _nulls(ORIGIN.types[place], _rounded(n_rows)).slice(0, n_rows)


def _rounded(n_rows: int) -> int:
    """To a power of two: batches of one stream share what is always the same."""
    return 1 << max(n_rows - 1, 0).bit_length()


@functools.lru_cache(maxsize=16)
def _repeated(file: str, n_rows: int) -> pa.StringArray:
    return pa.repeat(pa.scalar(file, pa.string()), n_rows)


@functools.lru_cache(maxsize=32)
def _nulls(type_: pa.DataType, n_rows: int) -> pa.Array:
    return pa.nulls(n_rows, type_)


def _no_origin(n_rows: int) -> pa.RecordBatch:
    """Of rows whose origin nobody asks for."""
    size = _rounded(n_rows)
    return pa.RecordBatch.from_arrays([_nulls(type_, size).slice(0, n_rows) for type_ in ORIGIN.types], schema=ORIGIN)
