"""Snapshots: the rows of an operator that have not left, as Arrow IPC, and never pickled.

A magic and a checksum, then one IPC stream for each function of the operator, one behind the other. Its columns are
those that the function's stage gets, then `$id`, `$file`, `$row`, `$unread` and `$key`. Its schema's metadata has, as
JSON, what `FunctionSnapshot` has besides the rows. Of windows, this is only the head: it has no rows, and names parts
in other files (state_parts.py).

    snapshot = operator.snapshot()             in the operator's thread: refers to rows, and copies few
    snapshot.write_parts(file, parts)          in another one: those that no file has yet
    snapshot.head(places)                      names all of them
    read(StoredState(head, files), ...)        all again

Guarantees: what is read is checked before it is believed: another version, other functions, other columns, ids out of
order and damaged bytes are an InvalidArgument that says which.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.function import Function
from ..connectors.unnamed import LARGE, Data, mapped
from ..datafusion.tokens import without_layout
from ..windows.group_ranges import COUNT, GroupRange, Passed
from ..windows.kept import KeptPart, KeptRows
from . import keys
from .blocks import Block, Given
from .keys import KEY
from .state_columns import OWN, celled, chosen, is_same, meanings, plain_column, plain_fields, refused
from .state_parts import StoredState, about_parts, read_parts, schema_of_parts, write_parts

VERSION = 3
_READ = (1, 2, VERSION)  # 1 says neither what is asked nor what its columns are; both have no parts
_MAGIC = b"AUDFSTAT"
_KEY = b"arroyo_udf.state"


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
    parts: what windows keep, instead of rows; None: rows, as of states before version 3. on_their_way: how many of
        them, the last ones, are of any key groups.
    """

    identity: StateIdentity
    lineage: bytes
    next_id: int
    watermarks: Sequence[tuple[int, int | None]]
    latest: int | None
    rows: Iterable[tuple[pa.UInt64Array, Block]]
    is_former: bool = False
    passed: Sequence[Passed] = ()
    parts: Sequence[KeptRows] | None = None
    on_their_way: int = 0

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

    def without_told(self, time: int | None) -> Self:
        """Without its first watermarks up to `time`: the next function has been told them already, as after a merge of
        slices."""
        if time is None:
            return self
        rest = itertools.dropwhile(lambda one: one[1] is not None and one[1] <= time, self.watermarks)
        return dataclasses.replace(self, watermarks=list(rest))

    @property
    def kept(self) -> list[KeptRows]:
        """What windows have kept, of whatever version."""
        return [KeptRows(KeptPart(block.rows)) for _, block in self.rows] if self.parts is None else list(self.parts)


@dataclasses.dataclass(frozen=True)
class OperatorSnapshot:
    """An operator at one time, to be written in any thread. stages: each with what it is given. size: of their rows,
    about, in bytes."""

    stages: Sequence[tuple[FunctionSnapshot, Given]]
    size: int = 0

    @property
    def parts(self) -> Sequence[KeptRows]:
        """Of the one stage that has some."""
        return next((kept.parts for kept, _ in self.stages if kept.parts is not None), ())

    def write_parts(self, file: IO[bytes], parts: Sequence[KeptRows]) -> None:
        """parts: some of them."""
        given = next(given for kept, given in self.stages if kept.parts is not None)
        write_parts(file, parts, given)

    def head(self, places: Sequence[tuple[int, int]] = ()) -> Data:
        """places: of each part, the place of its file in `StoredState.parts`, and its number in this file."""
        if self.size >= LARGE:
            return mapped(lambda file: _write_framed(file, self.stages, places), "the state of an operator")
        sink = pa.BufferOutputStream()
        _write(sink, self.stages, places)
        return framed(sink.getvalue())


_Stages = Sequence[tuple[FunctionSnapshot, Given]]


def _write_framed(file: IO[bytes], stages: _Stages, places: Sequence[tuple[int, int]]) -> None:
    file.write(_MAGIC + bytes(4))
    _write(file, stages, places)
    file.seek(len(_MAGIC) + 4)
    sum_ = functools.reduce(lambda sum_, data: zlib.crc32(data, sum_), iter(lambda: file.read(1 << 20), b""), 0)
    file.seek(len(_MAGIC))
    file.write(sum_.to_bytes(4, "little"))


def _write(sink: Any, stages: _Stages, places: Sequence[tuple[int, int]]) -> None:
    for kept, given in stages:
        schema = _schema(given) if kept.parts is None else schema_of_parts(given)
        about = dataclasses.asdict(kept.identity) | {
            "version": VERSION,
            "lineage": kept.lineage.hex(),
            "next_id": kept.next_id,
            "watermarks": list(kept.watermarks),
            "latest": kept.latest,
            "columns": meanings(schema.names, given),
        }
        if kept.parts is not None:
            about |= about_parts(kept.parts, places)
        if kept.on_their_way:
            about["on_their_way"] = kept.on_their_way
        if kept.passed:
            about["passed"] = [
                [entry.range.first, entry.range.last, entry.watermark, entry.closed] for entry in kept.passed
            ]
        with pa.ipc.new_stream(sink, schema.with_metadata({_KEY: json.dumps(about).encode()})) as stream:
            for ids, block in kept.rows:
                columns = [plain_column(column) for column in block.rows.columns[: len(given.schema)]]
                stream.write_batch(pa.RecordBatch.from_arrays([*columns, ids, *block.origin.columns], schema=schema))


def read(state: StoredState, stages: Sequence[Given], name: str) -> list[FunctionSnapshot]:
    """What was written, for stages that are given such rows. name: of the state, for error texts."""
    data = unframed(state.head, name)
    source = pa.BufferReader(data)
    snapshots = []
    try:
        for given in stages:
            with pa.ipc.open_stream(source) as stream:
                snapshots.append(_read(stream, given, name, state.parts))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
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


def _read(stream: Any, given: Given, name: str, files: Sequence[tuple[str, Data]]) -> FunctionSnapshot:
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
    columns, whose = about.pop("columns", None), f"{name}: {about['function']}"
    places, notes = about.pop("parts", None), about.pop("notes", {})
    rows: list[tuple[pa.UInt64Array, Block]] = []
    is_former, parts = False, None
    if places is None:
        rows, is_former = _read_rows(stream, columns, given, lineage, whose)
    else:
        parts = read_parts(places, notes, files, given, whose)
        if any(batch.num_rows for batch in stream):
            raise ValueError("it has rows beside its parts")
    last = rows[-1][0][-1].as_py() if rows else -1
    next_id = int(about.pop("next_id"))
    if last >= next_id:
        raise ValueError(f"row {last} is not below the next id {next_id}")
    watermarks = [(int(first), None if time is None else int(time)) for first, time in about.pop("watermarks")]
    latest = about.pop("latest")
    latest = None if latest is None else int(latest)
    passed = [_read_passed(*entry) for entry in about.pop("passed", ())]
    on_their_way = int(about.pop("on_their_way", 0))
    if not 0 <= on_their_way <= len(parts or ()):
        raise ValueError(f"it has no {on_their_way} parts on their way")
    identity = StateIdentity(**about)
    return FunctionSnapshot(
        identity, lineage, next_id, watermarks, latest, rows, is_former, passed, parts, on_their_way
    )


def _read_passed(first: int, last: int, watermark: int | None, closed: int | None) -> Passed:
    """Raises ValueError for key groups that there are not."""
    if not 0 <= first <= last < COUNT:
        raise ValueError(f"there are no key groups from {first} to {last}")
    return Passed(GroupRange(first, last), *(None if time is None else int(time) for time in (watermark, closed)))


def _read_rows(
    stream: Any, columns: Sequence[str] | None, given: Given, lineage: bytes, whose: str
) -> tuple[list[tuple[pa.UInt64Array, Block]], bool]:
    """The rows, and whether they had no keys. columns: what they are."""
    wanted = _schema(given)
    are = meanings(wanted.names, given)
    stream = chosen(stream, columns, are, wanted)
    keyed = [place for place, name in enumerate(wanted.names) if name.endswith(KEY)]
    # Version 1 began without keys. Rows of then keep those that they had.
    is_former = not any(name.endswith(KEY) for name in stream.schema.names)
    if not is_same(stream.schema, _without(wanted, keyed) if is_former else wanted):
        if any(batch.num_rows for batch in stream):
            raise refused(stream.schema, wanted, are, whose)
        stream = ()  # no row has the columns of then
    rows: list[tuple[pa.UInt64Array, Block]] = []
    last, schema = -1, given.schema
    for batch in stream:
        batch.validate(full=True)
        if is_former:
            batch = _with_keys(batch, wanted, keyed, lineage)
        for place in keyed:
            keys.of_array(batch.column(place).drop_null())
        ids = batch.column(len(schema))
        if not len(batch):
            continue
        if ids.null_count or ids[0].as_py() <= last or not _rises(ids):
            raise ValueError("its ids do not rise")
        last = ids[-1].as_py()
        own = [celled(batch.column(i), schema.field(i).type) for i in range(len(schema))]
        origin = pa.RecordBatch.from_arrays(batch.columns[len(schema) + 1 :], schema=given.origin)
        rows.append((ids, Block(pa.RecordBatch.from_arrays(own, schema=schema), origin)))
    return rows, is_former


def _schema(given: Given) -> pa.Schema:
    """Of the stream of a stage with rows."""
    fields = plain_fields(given.schema)
    for field in fields:
        if field.name in OWN:
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


def _rises(ids: pa.UInt64Array) -> bool:
    return len(ids) < 2 or bool(pc.all(pc.less(ids[:-1], ids[1:])).as_py())
