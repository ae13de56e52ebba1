"""Snapshots: the rows of an operator that have not left, as Arrow IPC, and never pickled.

A magic and a checksum, then one IPC stream for each function of the operator, one behind the other. Its columns are
those that the function's stage gets, then `$id`, `$file`, `$row`, `$unread` and `$key`. Its schema's metadata has, as
JSON, what `FunctionSnapshot` has besides the rows.

Guarantees: what is read is checked before it is believed: another version, other functions, other columns, ids out of
order and damaged bytes are an InvalidArgument that says which.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.function import Function
from ..connectors.cells import CellType
from ..connectors.unnamed import LARGE, Data, mapped
from ..datafusion.tokens import without_layout
from ..windows.key_groups import COUNT, GroupRange
from ..windows.portions import Passed
from . import keys
from .blocks import Block, Given
from .keys import KEY

VERSION = 2
_READ = (1, VERSION)  # version 1 says neither what is asked nor what its columns are
_MAGIC = b"AUDFSTAT"
_KEY = b"arroyo_udf.state"
_OWN = ("$id", "$file", "$row", "$unread", KEY)


def hash_of(asked: Any) -> str:
    """Of what a query, windows or a lookup ask, as states of version 1 have it."""
    return hashlib.sha256(_repr(asked).encode()).hexdigest()


_FIELDS = {
    "Grouping": ("time", "window", "column", "keys", "aggregates", "by_row", "table"),
    "Hop": ("width", "slide"),
    "Session": ("gap",),
    "Joining": ("time", "kind", "on", "select", "tables"),
    "Select": ("items", "where", "table", "required"),
}
"""Of version 1. Those that came later are not in its hashes."""


def _repr(asked: Any) -> str:
    if type(asked).__name__ in _FIELDS:
        name = type(asked).__name__
        return f"{name}({', '.join(f'{field}={_repr(getattr(asked, field))}' for field in _FIELDS[name])})"
    if isinstance(asked, tuple):
        return f"({', '.join(map(_repr, asked))}{',' if len(asked) == 1 else ''})"
    return repr(asked)


def plain(asked: Any) -> Any:
    """What is asked, as JSON has it, whatever the layout of its texts."""
    if isinstance(asked, str):
        return without_layout(asked)
    if dataclasses.is_dataclass(asked) and not isinstance(asked, type):
        return {field.name: plain(getattr(asked, field.name)) for field in dataclasses.fields(asked) if field.repr}
    if isinstance(asked, Mapping):
        return {name: plain(value) for name, value in asked.items()}
    return [plain(item) for item in asked] if isinstance(asked, tuple | list) else asked


@dataclasses.dataclass(frozen=True)
class StateIdentity:
    """What a state is of. asked: of a query, windows or a lookup, what must stay, by names, as JSON has it; what is
    missing is null. None: of a function, or in a state of version 1."""

    function: str
    plugin: str
    plugin_hash: str
    asked: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, function: Function) -> Self:
        plugin, _, _ = function.where.rpartition(".")
        return cls(function.name, plugin, function.plugin_hash)


@dataclasses.dataclass(frozen=True)
class FunctionSnapshot:
    """What a snapshot has of one function.

    lineage: 16 bytes; with a row's id the idempotency key of a row that has none of its own. next_id: of the next row.
    watermarks: that have not left, each with the id of the first row after it. latest: the latest of all.
    rows: that have not left, with their ids, which rise; to be asked for once. is_former: the state had no keys; they
        are lineage and ids.
    passed: of windows, how far they are, by key groups. Earlier programs had all groups in one slice, and say nothing.
    """

    identity: StateIdentity
    lineage: bytes
    next_id: int
    watermarks: Sequence[tuple[int, int | None]]
    latest: int | None
    rows: Iterable[tuple[pa.UInt64Array, Block]]
    is_former: bool = False
    passed: Sequence[Passed] = ()

    def up_to(self, time: float | None) -> Self:
        """With watermarks that are not above this one; None: without."""
        if time == math.inf:
            return self
        if time is None:
            return dataclasses.replace(self, watermarks=(), latest=None)
        watermarks = [
            (first, None if watermark is None else min(watermark, int(time))) for first, watermark in self.watermarks
        ]
        return dataclasses.replace(
            self, watermarks=watermarks, latest=None if self.latest is None else min(self.latest, int(time))
        )


def write(stages: Sequence[tuple[FunctionSnapshot, Given]], size: int = 0) -> Data:
    """The state of all stages, each with what it is given. size: about, in bytes."""
    if size >= LARGE:
        return mapped(lambda file: _write_framed(file, stages), "the state of an operator")
    sink = pa.BufferOutputStream()
    _write(sink, stages)
    return framed(sink.getvalue())


def _write_framed(file: IO[bytes], stages: Sequence[tuple[FunctionSnapshot, Given]]) -> None:
    file.write(_MAGIC + bytes(4))
    _write(file, stages)
    file.seek(len(_MAGIC) + 4)
    sum_ = functools.reduce(lambda sum_, data: zlib.crc32(data, sum_), iter(lambda: file.read(1 << 20), b""), 0)
    file.seek(len(_MAGIC))
    file.write(sum_.to_bytes(4, "little"))


def _write(sink: Any, stages: Sequence[tuple[FunctionSnapshot, Given]]) -> None:
    for kept, given in stages:
        schema = _schema(given)
        about = dataclasses.asdict(kept.identity) | {
            "version": VERSION,
            "lineage": kept.lineage.hex(),
            "next_id": kept.next_id,
            "watermarks": list(kept.watermarks),
            "latest": kept.latest,
            "columns": _meanings(schema.names, given),
        }
        if kept.passed:
            about["passed"] = [
                [entry.range.first, entry.range.last, entry.watermark, entry.closed] for entry in kept.passed
            ]
        with pa.ipc.new_stream(sink, schema.with_metadata({_KEY: json.dumps(about).encode()})) as stream:
            for ids, block in kept.rows:
                columns = [_plain(column) for column in block.rows.columns[: len(given.schema)]]
                stream.write_batch(pa.RecordBatch.from_arrays([*columns, ids, *block.origin.columns], schema=schema))


def read(data: Data, stages: Sequence[Given], name: str) -> list[FunctionSnapshot]:
    """What `write` has written, for stages that are given such rows. name: of the state, for error texts."""
    data = unframed(data, name)
    source = pa.BufferReader(data)
    snapshots = []
    try:
        for given in stages:
            with pa.ipc.open_stream(source) as stream:
                snapshots.append(_read(stream, given, name))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgument(f"{name}: the state is damaged: {error}") from error
    if source.tell() != len(data):
        raise InvalidArgument(f"{name}: the state is of another number of functions than {len(stages)}")
    return snapshots


def framed(streams: Any) -> bytes:
    """streams: a buffer."""
    return b"".join([_MAGIC, zlib.crc32(streams).to_bytes(4, "little"), streams])


def unframed(data: Data, name: str) -> Data:
    """Raises InvalidArgument for bytes that have changed."""
    start = len(_MAGIC) + 4
    streams = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or zlib.crc32(streams).to_bytes(4, "little") != data[len(_MAGIC) : start]:
        raise InvalidArgument(f"{name}: the state is damaged: resume with a copy of it, or begin anew in another place")
    return streams


def _read(stream: Any, given: Given, name: str) -> FunctionSnapshot:
    metadata = (stream.schema.metadata or {}).get(_KEY)
    if metadata is None:
        raise ValueError("its notes are missing")
    about = json.loads(metadata)
    version = about.pop("version")
    if version not in _READ:
        raise InvalidArgument(
            f"{name}: the state has format version {version}, and this program reads up to {VERSION}: go on with the "
            "program that has written it, or begin anew in another place"
        )
    lineage = bytes.fromhex(about.pop("lineage"))
    if len(lineage) != 16:
        raise ValueError("its lineage has not 16 bytes")
    wanted = _schema(given)
    stream = _chosen(stream, about.pop("columns", None), _meanings(wanted.names, given), wanted)
    keyed = [place for place, name in enumerate(wanted.names) if name.endswith(KEY)]
    # Version 1 began without keys. Rows of then keep those that they had.
    is_former = not any(name.endswith(KEY) for name in stream.schema.names)
    expected = _without(wanted, keyed) if is_former else wanted
    if stream.schema.remove_metadata() != expected.remove_metadata():
        if any(batch.num_rows for batch in stream):
            raise InvalidArgument(
                f"{name}: {about['function']} had rows with the columns {_columns(stream.schema)}, and now gets "
                f"{_columns(wanted, _meanings(wanted.names, given))}: go on with the same columns, or begin anew in "
                "another place"
            )
        stream = ()  # no row has the columns of then
    rows, last, schema = [], -1, given.schema
    for batch in stream:
        batch.validate(full=True)
        if is_former:
            batch = _with_keys(batch, wanted, keyed, lineage)
        for place in keyed:
            keys.of_array(batch.column(place).drop_null())
        ids = batch.column(len(schema))
        if len(batch) and (ids.null_count or ids[0].as_py() <= last or not _rises(ids)):
            raise ValueError("its ids do not rise")
        last = ids[-1].as_py() if len(batch) else last
        columns = [_celled(batch.column(i), schema.field(i).type) for i in range(len(schema))]
        origin = pa.RecordBatch.from_arrays(batch.columns[len(schema) + 1 :], schema=given.origin)
        rows.append((ids, Block(pa.RecordBatch.from_arrays(columns, schema=schema), origin)))
    next_id = int(about.pop("next_id"))
    if last >= next_id:
        raise ValueError(f"row {last} is not below the next id {next_id}")
    watermarks = [(int(first), None if time is None else int(time)) for first, time in about.pop("watermarks")]
    latest = about.pop("latest")
    passed = [_read_passed(*entry) for entry in about.pop("passed", ())]
    return FunctionSnapshot(
        StateIdentity(**about),
        lineage,
        next_id,
        watermarks,
        None if latest is None else int(latest),
        rows,
        is_former,
        passed,
    )


def _read_passed(first: int, last: int, watermark: int | None, closed: int | None) -> Passed:
    """Raises ValueError for key groups that there are not."""
    if not 0 <= first <= last < COUNT:
        raise ValueError(f"there are no key groups from {first} to {last}")
    return Passed(GroupRange(first, last), *(None if time is None else int(time) for time in (watermark, closed)))


@dataclasses.dataclass(frozen=True)
class _Chosen:
    """Some columns of a stream."""

    schema: pa.Schema
    stream: Any
    places: Sequence[int]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.stream:
            columns = [batch.column(place) for place in self.places]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _chosen(stream: Any, were: Sequence[str] | None, are: Sequence[str], wanted: pa.Schema) -> Any:
    """The columns that are wanted, by what they are, whatever others there are. were, are: what they were, and are now.
    The stream itself if one is missing."""
    if were is None or (stream.schema.equals(wanted) and list(were) == list(are)):
        return stream
    fields = list(stream.schema)
    places = {what: place for place, what in enumerate(were)}
    if len(fields) != len(were):
        raise ValueError("it does not say what its columns are")
    if any(what not in places or fields[places[what]].type != wanted.field(at).type for at, what in enumerate(are)):
        named = [field.with_name(what) for field, what in zip(fields, were, strict=True)]
        return _Chosen(pa.schema(named), stream, range(len(fields)))
    return _Chosen(wanted, stream, [places[what] for what in are])


def _meanings(names: Sequence[str], given: Given) -> list[str]:
    """What columns are."""
    return [given.meanings.get(name, name) for name in names]


def _schema(given: Given) -> pa.Schema:
    """Of the stream. Cells are their text; the reader knows which columns have them."""
    fields = [field.with_type(pa.string()) if isinstance(field.type, CellType) else field for field in given.schema]
    for field in fields:
        if field.name in _OWN:
            raise InvalidArgument(f"a column has the name {field.name!r}, which snapshots need: rename it")
    origin = [field.with_name(f"${field.name}") for field in given.origin]
    return pa.schema([*fields, pa.field("$id", pa.uint64()), *origin])


def _without(schema: pa.Schema, places: Sequence[int]) -> pa.Schema:
    return pa.schema([field for place, field in enumerate(schema) if place not in places])


def _with_keys(batch: pa.RecordBatch, wanted: pa.Schema, keyed: Sequence[int], lineage: bytes) -> pa.RecordBatch:
    """A batch of a state without keys, in the schema of today."""
    own = keys.array(keys.of_numbers(lineage, batch.column("$id")))
    others = iter(batch.columns)
    columns = [own if place in keyed else next(others) for place in range(len(wanted))]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _plain(column: pa.Array) -> pa.Array:
    return column.storage if isinstance(column.type, CellType) else column


def _celled(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(type_, column) if isinstance(type_, CellType) else column


def _columns(schema: pa.Schema, meanings: Sequence[str] | None = None) -> str:
    pairs = zip(schema, meanings or schema.names, strict=True)
    return ", ".join(f"{what} {field.type}" for field, what in pairs if field.name not in _OWN)


def _rises(ids: pa.UInt64Array) -> bool:
    return len(ids) < 2 or bool(pc.all(pc.less(ids[:-1], ids[1:])).as_py())
