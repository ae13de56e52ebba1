"""Rows in Redis: as strings, fields of hashes, items of lists, or entries of streams, each an object of JSON.

With checkpoints, an epoch's rows wait in the checkpoints' store. `apply` writes them, with the epoch's number, in
scripts (`epochs`): an epoch that is noted is not written again. Without checkpoints, rows are written at once.

Guarantees: a row that Redis cannot hold is an InvalidArgument before its epoch is committed.
"""

from __future__ import annotations

import itertools
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from ....errors import InvalidArgument, WrongCheckpoints
from ..cells import decoded
from ..described import Output, Period, Several
from ..interface import Fate, Json, LaterRows, Sealed, Stage, later_epochs
from ..json_writer import JsonTexts
from ..schemas import index_of
from ..staged_rows import StagedRows
from ..table_options import TableOptions, WrongOption, chosen
from .epochs import Kind, RedisEpochs, RedisNote, RedisWriting, forgotten, noted, of_slices
from .server import RedisServer, server_keys

_LARGEST = 512 << 20  # bytes of a value, in Redis
_KINDS = {kind: kind for kind in ("string", "hash", "list", "stream")}
_is = pa.types


class RedisOutput(RedisServer, Output):
    """Rows as objects of JSON in Redis."""

    type: Literal["redis"] = "redis"

    target: Kind
    """What a row becomes: the value of a key ("string"), a field of a hash, an item of a list, or an entry of a
    stream."""

    key_prefix: str = ""
    """The first part of the key."""

    key_column: str | None = None
    """The column with the rest of the key; otherwise all rows have the same key."""

    field_column: str | None = None
    """Of hashes: the column with the field's name."""

    field: Annotated[str, pydantic.Field(min_length=1)] = "value"
    """Of streams: the field of an entry that holds the object."""

    ttl: Period | None = None
    """Of strings: how long they live."""

    max_length: Annotated[int, pydantic.Field(ge=1)] | None = None
    """Of lists and streams: how many items stay; older ones are removed. Streams may keep some more."""

    operation: Literal["append", "prepend"] = "append"
    """Of lists: the end at which items are added."""

    columns: Several[str] | None = None
    """Those of the object; otherwise all."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How JSON has times: see sinks of files."""

    decimals: Literal["string", "number"] = "string"
    """How JSON has decimals. Not every reader keeps all digits of a number."""

    json_columns: Several[str] = ()
    """Columns whose texts are JSON."""

    @pydantic.model_validator(mode="after")
    def _fits_its_target(self) -> Self:
        if not self.key_prefix and self.key_column is None:
            raise ValueError("rows need a key: write key_column, key_prefix or both")
        if self.target == "hash" and self.field_column is None:
            raise ValueError('target = "hash" needs field_column')
        for name, kinds in _OF.items():
            if self.target not in kinds and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"leave out {name}: it is of {' and '.join(kinds)} targets")
        return self

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        format_ = options.take("format")
        if format_ is not None and format_.value != "json":
            raise WrongOption(f"format = '{format_.value}': rows are written as json", format_.at)
        target = options.take("target")
        if target is None or target.value not in _KINDS:
            at = options.at if target is None else target.at
            raise WrongOption("write target = 'string', 'hash', 'list' or 'stream'", at)
        seconds = options.read("target.ttl_secs", float, "a number of seconds")
        operations = {"append": "append", "prepend": "prepend"}
        keys = {
            "target": target.value,
            "key_prefix": options.text("target.key_prefix"),
            "key_column": options.text("target.key_column"),
            "field_column": options.text("target.field_column"),
            "field": options.text("target.field"),
            "ttl": seconds,
            "max_length": options.read("target.max_length", int, "a whole number"),
            "operation": options.one_of("target.operation", operations),
            "timestamps": options.json_timestamps(),
            "decimals": options.json_decimals(),
            "json_columns": options.json_columns(),
        }
        return cls(**server_keys(options), **chosen(keys))

    @property
    def fate(self) -> Fate:
        return "overwritten" if self.target in ("string", "hash") else "doubled"

    def check(self, schema: pa.Schema) -> None:
        _Items(self, schema, "redis")
        client = self.client()
        try:
            self.ask(client, lambda client: client.ping(), 15.0)
        finally:
            client.close()

    def sink(
        self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str
    ) -> TransactionalRedisSink | DirectRedisSink:
        items = _Items(self, schema, name)
        if stage is None:
            return DirectRedisSink(self, items, name)
        return TransactionalRedisSink(self, items, slice, stage, pipeline, name)

    @property
    def writing(self) -> RedisWriting:
        how = {
            "string": "" if self.ttl is None else str(max(1, round(self.ttl * 1000))),
            "hash": "",
            "list": self.operation,
            "stream": self.field,
        }
        return RedisWriting(self.target, how[self.target], self.max_length)


_OF: Mapping[str, tuple[str, ...]] = {
    "field_column": ("hash",),
    "ttl": ("string",),
    "max_length": ("list", "stream"),
    "operation": ("list",),
    "field": ("stream",),
}


class _Items:
    """Rows as keys and values, and of hashes fields between them. Raises InvalidArgument for columns that do not
    fit."""

    def __init__(self, described: RedisOutput, schema: pa.Schema, name: str) -> None:
        self._name, self._prefix = f"{name} ({described.place})", described.key_prefix
        self._key = self._place(schema, described.key_column, "key_column")
        self._field = self._place(schema, described.field_column, "field_column")
        names = schema.names if described.columns is None else described.columns
        self._value = [index_of(schema, column, f"{self._name}: ") for column in names]
        own = pa.schema([schema.field(place) for place in self._value])
        self._json = JsonTexts(self._name, own, described.timestamps, described.decimals, described.json_columns)

    def _place(self, schema: pa.Schema, column: str | None, key: str) -> int | None:
        if column is None:
            return None
        place = index_of(schema, column, f"{self._name}: ")
        type_ = schema.field(place).type
        type_ = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
        if not (_is.is_string(type_) or _is.is_large_string(type_) or _is.is_integer(type_)):
            raise InvalidArgument(
                f"{self._name}: {key}: column {column!r} is {type_}, and must be text or whole numbers"
            )
        return place

    def of(self, batch: pa.RecordBatch) -> pa.Table:
        values = self._json.of(batch.select(self._value))
        if pc.any(pc.greater(pc.binary_length(values), _LARGEST)).as_py():
            raise InvalidArgument(f"{self._name}: a row is larger than 512 MiB, which no value of Redis may be")
        if self._key is None:
            keys = pa.repeat(pa.scalar(self._prefix, pa.large_string()), batch.num_rows)
        else:
            keys = self._texts(batch, self._key, "key_column")
            keys = pc.binary_join_element_wise(
                pa.scalar(self._prefix, pa.large_string()), keys, pa.scalar("", keys.type)
            )
        columns = {"key": keys}
        if self._field is not None:
            columns["field"] = self._texts(batch, self._field, "field_column")
        return pa.table(columns | {"value": values})

    def _texts(self, batch: pa.RecordBatch, place: int, key: str) -> pa.Array:
        column = decoded(batch.column(place))
        if column.null_count:
            name = batch.schema.field(place).name
            raise InvalidArgument(f"{self._name}: {key}: a row has no {name!r}: leave such rows out (WHERE)")
        return column.cast(pa.large_string())


class TransactionalRedisSink:
    """Exactly once. slice: of this engine's rows."""

    def __init__(
        self, described: RedisOutput, items: _Items, slice: int, stage: Stage, pipeline: str, name: str
    ) -> None:
        self.name = name
        self._described, self._items, self._slice, self._history = described, items, slice, stage.history
        self._client = described.client()
        self._staged = StagedRows(stage, "redis", name, slice, described.place)
        self._owner = ":".join(["arroyo-udf", *(urllib.parse.quote(part, safe=" []") for part in (pipeline, name))])
        self._epochs: dict[int, RedisEpochs] = {}

    def _note(self, slice: int) -> str:
        return f"{self._owner}:{slice}"

    def _of(self, slice: int) -> RedisEpochs:
        if slice not in self._epochs:
            self._epochs[slice] = RedisEpochs(
                self._described, self._client, self._described.writing, self._note(slice), self._history
            )
        return self._epochs[slice]

    def write(self, batch: pa.RecordBatch) -> None:
        self._staged.add(self._items.of(batch))

    def seal(self, epoch: int) -> Sealed | None:
        return self._staged.seal()

    def apply(self, epoch: int, stored: Json) -> None:
        try:
            self._of(stored["slice"]).write(epoch, lambda: self._staged.read(stored, epoch))
        except InvalidArgument as error:
            error.add_note(f"epoch {epoch} is committed: resume when Redis takes its rows")
            raise
        self._staged.delete(stored)

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        found = self._noted([stored["slice"] for stored in waiting])
        own = of_slices(found, self._history)
        later = [last.next for last in found.values() if last.history == self._history and last.next is not None]
        if (last := max([*own.values(), *later], default=0)) >= committed:
            raise WrongCheckpoints(later_epochs(self._described.place, f"rows of epoch {last}", committed))
        if found and not own and max(last.epoch for last in found.values()):
            notes = " ".join(self._note(slice) for slice in found)
            raise WrongCheckpoints(
                f"{self._described.place}: this pipeline has written here with other checkpoints: if these are in "
                "another place, or in one that is not mounted, go on from there. To add rows to those that are there, "
                f"forget whose they are: redis-cli DEL {notes}"
            )
        for stored in waiting:
            if stored["slice"] not in own:
                raise forgotten(self._described, self._note(stored["slice"]), epoch)
            if own[stored["slice"]] < epoch:
                self._staged.check(stored, epoch)

    def _noted(self, slices: Sequence[int] = ()) -> Mapping[int, RedisNote]:
        """What was noted for each slice: for the first ones up to one for which nothing is, because each engine notes
        something for all of its own; and for `slices`."""
        found: dict[int, RedisNote] = {}
        for slice in itertools.count():
            if (last := self._last(slice)) is None:
                break
            found[slice] = last
        further = {other: self._last(other) for other in slices if other > slice}
        return found | {other: last for other, last in further.items() if last is not None}

    def _last(self, slice: int) -> RedisNote | None:
        return noted(self._described, self._client, self._note(slice))

    def clear(self, committed: int) -> None:
        self._of(self._slice).begin(committed - 1)
        self._staged.clear(committed)

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        place = self._described.place
        if max(of_slices(self._noted(), self._history).values(), default=0) <= epoch:
            return LaterRows(self.name, "none", f"{place} has no later rows")
        what = "values with the same key are replaced" if self._described.fate == "overwritten" else "rows stay"
        return LaterRows(self.name, self._described.fate, f"{place}: {what}")

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Rows stay."""

    def finish(self) -> None:
        """There are checkpoints."""

    def close(self) -> None:
        self._client.close()


class DirectRedisSink:
    """Without checkpoints."""

    def __init__(self, described: RedisOutput, items: _Items, name: str) -> None:
        self.name = name
        self._described, self._items, self._client = described, items, described.client()

    def write(self, batch: pa.RecordBatch) -> None:
        rows = self._items.of(batch)
        head = ("", 0, 0, 0, "")
        self._described.ask(
            self._client, lambda client: self._described.writing.rows(self._described, client, None, head, rows)
        )

    def finish(self) -> None:
        """Rows are there."""

    def close(self) -> None:
        self._client.close()
