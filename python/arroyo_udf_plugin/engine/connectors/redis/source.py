"""Streams of Redis as a source. Each stream is a partition, with the id of the last entry as position.

    stream, id                      string
    timestamp                       timestamp[ms, UTC], another timestamp, or int64: the time in the id

Guarantees: checkpoints alone say what has been read: no group of consumers does. An entry is never passed over: if some
were removed before they were read, that is an error with their number, and so is a stream that is gone. While the
server is away, reading waits.

Assumes: ids rise, which Redis sees to. An entry that somebody deletes by its id (XDEL) is not meant to be read.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import pyarrow as pa
import pydantic

from ....errors import InvalidArgument
from ..bad_records import BadRecords
from ..described import Input, Several
from ..in_thread import InThread
from ..interface import Json, Partition, Source, has_ended
from ..message_rows import TIMES, MessageRows
from ..options import BATCH_ROWS
from ..source import Rows
from ..table_options import BOOLEANS, TableOptions, WrongOption, chosen
from .server import RedisServer, library, passes, server_keys

_log = logging.getLogger(__name__)

METADATA: Mapping[str, Sequence[pa.DataType]] = {
    "stream": (pa.string(),),
    "id": (pa.string(),),
    "timestamp": (TIMES, pa.int64()),
}
_PATIENCE = 15.0  # seconds for a server that does not answer, before anything runs
_BLOCK_MS = 100  # for a new entry, in the server
_PAUSE = 0.2  # seconds between two looks for a server that is away
_ID = re.compile(r"\d+(-\d+)?")
# KEYS: the stream. ARGV: an id. Returns how many entries are behind it.
_COUNT = """
local count, after = 0, '(' .. ARGV[1]
repeat
    local page = redis.call('XRANGE', KEYS[1], after, '+', 'COUNT', 1000)
    count = count + #page
    if #page > 0 then after = '(' .. page[#page][1] end
until #page < 1000
return count
"""


class RedisInput(RedisServer, Input):
    """The entries of streams in Redis."""

    metadata_keys: ClassVar[tuple[str, ...]] = tuple(METADATA)

    type: Literal["redis"] = "redis"

    streams: Several[str] = pydantic.Field(min_length=1)
    """The keys of the streams. One that does not exist yet is waited for."""

    field: str = "value"
    """The field of an entry that holds an object of JSON."""

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The columns, by name, with types such as "int", "str" or "timestamp[us, UTC]"; other keys of an object are
    passed over."""

    json_columns: Several[str] = ()
    """Columns whose values, of any kind, are kept as JSON text."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How JSON has columns of times: "unix_millis" as milliseconds since 1970; with "rfc3339", those without a zone are
    in UTC, and may end in Z."""

    metadata: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further columns by name: "stream", "id" or "timestamp" of an entry."""

    bad_records: BadRecords = "fail"
    """What happens to entries that cannot be read: "fail", "drop" or "dead_letter"."""

    offset: str = "latest"
    """Where the first run begins: "latest", at entries that come from now on; "earliest", at the oldest ones; or behind
    an id, such as "1700000000000-0". Later runs go on from their checkpoint."""

    bounded: bool = False
    """Ends at the entries that were the last ones at the start; otherwise there is no end."""

    @pydantic.field_validator("offset")
    @classmethod
    def _is_a_place(cls, offset: str) -> str:
        if offset not in ("latest", "earliest") and not _ID.fullmatch(offset):
            raise ValueError('write "latest", "earliest" or an id such as "1700000000000-0"')
        return offset

    @pydantic.field_validator("streams")
    @classmethod
    def _are_different(cls, streams: Sequence[str]) -> Sequence[str]:
        if len(set(streams)) < len(streams):
            raise ValueError("name each stream once")
        return streams

    @property
    def ends(self) -> bool:
        return self.bounded

    def source(self, parallelism: int) -> Source:
        return RedisSource(self)

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        format_ = options.take("format")
        if format_ is not None and format_.value != "json":
            raise WrongOption(f"format = '{format_.value}': entries are read as json", format_.at)
        columns = options.columns or ()
        keys = {
            "streams": tuple(options.need("stream", options.table).split(",")),
            "field": options.text("source.field"),
            "types": {column.name: str(column.type) for column in columns},
            "json_columns": options.json_columns(),
            "timestamps": options.json_timestamps(),
            "metadata": {column.name: column.metadata.value for column in columns if column.metadata is not None},
            "bad_records": options.one_of("bad_data", {name: name for name in ("fail", "drop", "dead_letter")}),
            "offset": options.text("source.offset"),
            "bounded": options.one_of("source.bounded", BOOLEANS),
        }
        options.json_decimals()  # both are read
        return cls(**server_keys(options), **chosen(keys))


class RedisSource:
    resumable = True
    side_by_side = True
    watch: float | None = None
    rows: int | None = None

    def __init__(self, described: RedisInput) -> None:
        self.described = described
        streams = ", ".join(described.streams)
        self.name = f"stream {streams}"
        self.records = MessageRows(
            "json",
            described.types,
            described.metadata,
            METADATA,
            described.json_columns,
            described.timestamps,
            "entry",
        )
        self.schema = self.records.schema
        self._client: Any = None
        self._starts: dict[str, Json] = {}
        self._is_resumed = False

    def partitions(self) -> Sequence[str]:
        for stream in self.described.streams:
            if stream not in self._starts and not self._is_resumed:  # all streams at one moment, before any is read
                self._starts[stream] = self._start(stream)
        return list(self.described.streams)

    def _found(self, stream: str) -> _State | None:
        """Raises InvalidArgument."""
        self._client = self._client or self.described.client()
        return self.described.ask(self._client, lambda client: _state(self.described, client, stream), _PATIENCE)

    def _start(self, stream: str) -> Json:
        """count: the entries before, also those that are gone."""
        found, offset = self._found(stream) or _State(0, 0, "0-0", None), self.described.offset
        if offset == "latest":
            at: Json = {"id": found.last, "count": found.added}
        elif offset == "earliest" or found.first is None or _number(offset) < _number(found.first):
            at = {"id": "0-0", "count": found.added - found.length}
        else:
            script = self._client.register_script(_COUNT)
            behind = self.described.ask(self._client, lambda client: script([stream], [offset], client), _PATIENCE)
            at = {"id": offset, "count": found.added - behind}
        return {**at, "until": found.last} if self.described.bounded else at

    def check(self, positions: Mapping[str, Json]) -> None:
        self._is_resumed = bool(positions)
        for stream, at in positions.items():
            if stream not in self.described.streams:
                raise InvalidArgument(
                    f"the checkpoints have the stream {stream!r}, which the source does not name any more: name it, or "
                    "begin anew"
                )
            if not has_ended(at):
                unbroken(self.described, stream, at["id"], at["count"], self._found(stream))

    def open(self, partition: str, position: Json | None) -> Partition:
        if position is None:
            position = self._starts.get(partition) or self._start(partition)
        return RedisPartition(self.described, self.records, partition, position)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


class _State:
    """Of a stream. added: how many entries there have ever been. first: the id of the first one; None: there is none.
    last: the last id that was given."""

    def __init__(self, length: int, added: int, last: str, first: str | None) -> None:
        self.length, self.added, self.last, self.first = length, added, last, first


def _state(server: RedisServer, client: Any, stream: str) -> _State | None:
    """None: there is no stream. Raises InvalidArgument, RedisError."""
    with client.pipeline(transaction=True) as asked:
        return _of_info(server, stream, asked.xinfo_stream(stream).execute(raise_on_error=False)[0])


def _of_info(server: RedisServer, stream: str, info: Any) -> _State | None:
    if isinstance(info, Exception):
        if "no such key" in str(info):
            return None
        if str(info).startswith("WRONGTYPE"):
            raise InvalidArgument(f"{server.place}: the key {stream!r} is no stream: name one")
        raise info
    if "entries-added" not in info:
        raise InvalidArgument(f"{server.place}: streams are read from Redis 7.0 or newer, or Valkey: use such a server")
    first = info["first-entry"]
    return _State(
        info["length"],
        info["entries-added"],
        info["last-generated-id"].decode(),
        None if first is None else first[0].decode(),
    )


def unbroken(server: RedisServer, stream: str, last: str, count: int, found: _State | None) -> None:
    """Raises InvalidArgument if entries behind `last` are gone. count: how many there have been up to it."""
    where = f"{server.place}, stream {stream!r}: the next entry is behind {last}, and"
    if found is None:
        if count:
            raise InvalidArgument(f"{where} the stream is gone. Bring it back, or begin anew with other checkpoints")
        return
    if _number(found.last) < _number(last) or found.added < count:
        raise InvalidArgument(
            f"{where} the stream was made anew, or has lost entries. Begin anew, with other checkpoints"
        )
    is_behind = found.first is None or _number(found.first) > _number(last)
    if is_behind and (gone := found.added - found.length - count) > 0:
        begin = "is empty" if found.first is None else f"begins with {found.first}"
        raise InvalidArgument(
            f"{where} the stream {begin} now: {gone} entries were removed before they were read. Bring them back, or "
            "begin anew with other checkpoints, and let the stream keep entries for longer (MAXLEN, MINID)"
        )


def _number(id_: str) -> tuple[int, int]:
    time, _, sequence = id_.partition("-")
    return int(time), int(sequence or 0)


_Taken = tuple[list[Any], int]
"""Entries, and how many there have been up to the last of them, with those that somebody has deleted."""


class RedisPartition:
    """position: "id" of the last entry that was read, "count" of those up to it, and with "until" the last entry."""

    def __init__(self, described: RedisInput, records: MessageRows, stream: str, position: Json) -> None:
        self._described, self._records, self._stream = described, records, stream
        self._id: str = position["id"]
        self._count: int = position["count"]
        self._until: str | None = position.get("until")
        self._client = described.client()
        self._asked = InThread[_Taken]("arroyo-udf-redis")
        self._is_away = False

    @property
    def _is_over(self) -> bool:
        return self._until is not None and _number(self._id) >= _number(self._until)

    async def read(self) -> Rows | None:
        while not self._is_over:
            try:
                entries, count = await self._asked.answer(self._ask)
            except library().RedisError as error:
                if not passes(error):
                    raise self._described.refusal(error) from None
                await self._wait_for_server()
                continue
            self._is_away = False
            if entries:
                return self._rows(entries, count)
            self._count = count
        return None

    async def _wait_for_server(self) -> None:
        if not self._is_away:
            self._is_away = True
            _log.warning("%s does not answer: stream %s waits for it", self._described.place, self._stream)
        await asyncio.sleep(_PAUSE)

    def _ask(self) -> _Taken:
        """The next entries; none after a while without new ones."""
        taken = self._taken()
        if not taken[0] and self._until is None:
            self._client.xread({self._stream: self._id}, count=1, block=_BLOCK_MS)
            taken = self._taken()
        return taken

    def _taken(self) -> _Taken:
        """In one moment: the stream's state, and the entries behind the last one."""
        with self._client.pipeline(transaction=True) as asked:
            asked.xinfo_stream(self._stream)
            asked.xrange(self._stream, f"({self._id}", self._until or "+", BATCH_ROWS)
            info, entries = asked.execute(raise_on_error=False)
        found = _of_info(self._described, self._stream, info)
        unbroken(self._described, self._stream, self._id, self._count, found)
        if isinstance(entries, Exception):
            raise entries
        if not entries and self._until is not None:
            self._id = self._until  # the last ones were deleted
        is_all = len(entries) < BATCH_ROWS and self._until is None
        return entries, found.added if is_all and found is not None else self._count + len(entries)

    def _rows(self, entries: list[Any], count: int) -> Rows:
        first, field = self._count + 1, self._described.field.encode()
        ids = [id_.decode() for id_, _ in entries]
        self._id, self._count = ids[-1], count

        def known(key: str, type_: pa.DataType) -> pa.Array:
            if key == "stream":
                return pa.repeat(pa.scalar(self._stream, type_), len(ids))
            if key == "id":
                return pa.array(ids, type_)
            times = pa.array([_number(id_)[0] for id_ in ids], pa.int64())
            return times.cast(TIMES).cast(type_) if pa.types.is_timestamp(type_) else times

        batch, refused = self._records.of([fields.get(field) for _, fields in entries], known)
        lacking = {
            at: f"the entry {ids[at]} has no field {self._described.field!r}"
            for at, (_, fields) in enumerate(entries)
            if field not in fields
        }
        return Rows(f"stream {self._stream}", first, batch, refused | lacking)

    def position(self) -> Json:
        until = {} if self._until is None else {"until": self._until}
        return {"id": self._id, "count": self._count, **until, **({"end": True} if self._is_over else {})}

    def close(self) -> None:
        self._asked.close()
        self._client.close()
