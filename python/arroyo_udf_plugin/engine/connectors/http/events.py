"""Server-sent events as a source. The position is the id of the last event, which the server is told when it is asked
again.

    event, id       string

Guarantees: with ids, and a server that begins behind the one that it is told, each event is read once. While the server
is away, it is asked again. A server that answers 204 has no more events.

Assumes: what a server without ids sends while nobody listens is missed.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal, Self

import pyarrow as pa
import pydantic

from ....errors import InvalidArgument
from ..bad_records import BadRecords
from ..described import Input, Several
from ..in_thread import InThread
from ..interface import Json, Partition, Source
from ..message_rows import MessageFormat, MessageRows
from ..options import BATCH_ROWS
from ..source import Rows
from ..table_options import TableOptions, chosen
from .endpoint import HttpClient, HttpEndpoint, Retries, endpoint_keys, library
from .event_stream import EventStream, ServerEvent
from .polling import message_keys

_log = logging.getLogger(__name__)

METADATA: Mapping[str, Sequence[pa.DataType]] = {"event": (pa.string(),), "id": (pa.string(),)}
_SILENT = 300.0  # seconds without a byte, after which a connection is taken for dead
_PATIENCE = 30.0  # seconds for a server that has never answered


class EventsInput(HttpEndpoint, Input):
    """Server-sent events."""

    metadata_keys: ClassVar[tuple[str, ...]] = tuple(METADATA)

    type: Literal["sse"] = "sse"

    events: Several[str] = ()
    """The names of the events that are read; otherwise all. One without a name is "message"."""

    format: MessageFormat = "json"
    """What the data of an event are: "json", an object whose keys are the columns; "raw_string" or "raw_bytes", the
    only column, `value`."""

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The columns, by name, with types such as "int", "str" or "timestamp[us, UTC]"; other keys of an object are
    passed over."""

    json_columns: Several[str] = ()
    """Columns whose values, of any kind, are kept as JSON text."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How JSON has columns of times: "unix_millis" as milliseconds since 1970; with "rfc3339", those without a zone are
    in UTC, and may end in Z."""

    metadata: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further columns by name: "event", its name, or "id"."""

    bad_records: BadRecords = "fail"
    """What happens to events that cannot be read: "fail", "drop" or "dead_letter"."""

    @property
    def ends(self) -> bool:
        return False

    def source(self, parallelism: int) -> Source:
        return EventsSource(self)

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        events = options.read("events", lambda text: tuple(name.strip() for name in text.split(",")), "names")
        return cls(**endpoint_keys(options), **message_keys(options), **chosen({"events": events}))


class EventsSource:
    resumable = True
    side_by_side = True
    watch: float | None = None
    rows: int | None = None

    def __init__(self, described: EventsInput) -> None:
        self.described, self.name = described, described.place
        self.records = MessageRows(
            described.format,
            described.types,
            described.metadata,
            METADATA,
            described.json_columns,
            described.timestamps,
            "event",
        )
        self.schema = self.records.schema

    def partitions(self) -> Sequence[str]:
        return ["events"]

    def check(self, positions: Mapping[str, Json]) -> None:
        """The server alone knows its ids."""

    def open(self, partition: str, position: Json | None) -> Partition:
        return EventsPartition(self.described, self.records, position or {})

    def close(self) -> None: ...


class EventsPartition:
    """position: the "id" of the last event, and the "row" that it was."""

    def __init__(self, described: EventsInput, records: MessageRows, position: Json) -> None:
        self._described, self._records = described, records
        self._id: str = position.get("id", "")
        self._row: int = position.get("row", 0)
        self._is_over: bool = position.get("end", False)
        self._waiting = collections.deque[ServerEvent]()
        self._names = frozenset(described.events)
        self._client = HttpClient(described, _SILENT)
        self._asked = InThread[list[ServerEvent] | None]("arroyo-udf-events")
        self._open = contextlib.ExitStack()
        self._parts: Iterator[bytes] | None = None
        self._stream = EventStream(self._id)
        self._retries, self._began = Retries(), time.monotonic()
        self._has_answered = self._is_away = False

    async def read(self) -> Rows | None:
        while not self._waiting and not self._is_over:
            try:
                events = await self._asked.answer(self._next)
            except _Away as error:
                await asyncio.sleep(self._later(error))
                continue
            if events is None:
                self._is_over = True
                return None
            self._waiting.extend(events)
        return self._rows() if self._waiting else None

    def _next(self) -> list[ServerEvent] | None:
        """Those that come next, of the names that are wanted; None: there are no more. Raises _Away,
        InvalidArgument."""
        try:
            while True:
                if self._parts is None and not self._connect():
                    return None
                assert self._parts is not None
                part = next(self._parts, None)
                if part is None:
                    raise _Away("the connection has ended", {}, is_end=True)
                if events := [event for event in self._stream.feed(part) if self._is_wanted(event)]:
                    return events
        except library().TransportError as error:
            self._disconnect()
            raise _Away(str(error) or type(error).__name__, {}, self._has_answered) from None
        except BaseException:
            self._disconnect()
            raise

    def _is_wanted(self, event: ServerEvent) -> bool:
        return not self._names or event.name in self._names

    def _connect(self) -> bool:
        """False: the server has no more events. Raises what httpx raises, _Away, InvalidArgument."""
        described = self._described
        last = self._waiting[-1].id if self._waiting else self._id
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if last:
            headers["Last-Event-ID"] = last
        try:
            answer = self._open.enter_context(self._client.stream("GET", headers))
        except UnicodeEncodeError:
            raise InvalidArgument(f"{described.place}: the id {last!r} cannot be told in a header") from None
        if answer.status_code == 204:
            return False
        verdict = described.verdict(answer.status_code)
        if verdict == "again":
            raise _Away(f"it answers {answer.status_code}", answer.headers)
        if verdict == "refused":
            raise described.refusal(answer.status_code, next(answer.iter_bytes(), b""))
        if (kind := answer.headers.get("content-type", "").partition(";")[0].strip().lower()) != "text/event-stream":
            raise InvalidArgument(f"{described.place} answers {kind or 'nothing'}, and no text/event-stream")
        self._parts, self._stream = answer.iter_bytes(), EventStream(last)
        self._has_answered, self._is_away, self._retries = True, False, Retries()
        return True

    def _disconnect(self) -> None:
        self._parts = None
        self._open.close()

    def _later(self, error: _Away) -> float:
        """Seconds until the next try. Raises Unreachable for a server that has never answered."""
        if not self._has_answered and time.monotonic() - self._began > _PATIENCE:
            raise self._described.away(error.why)
        if not error.is_end and not self._is_away:
            self._is_away = True
            _log.warning("%s does not answer, and is asked again: %s", self._described.place, error.why)
        return max(self._retries.next(error.headers), self._stream.retry or 0.0)

    def _rows(self) -> Rows:
        count = min(len(self._waiting), BATCH_ROWS)
        events = [self._waiting.popleft() for _ in range(count)]

        def known(key: str, type_: pa.DataType) -> pa.Array:
            return pa.array([event.name if key == "event" else event.id for event in events], type_)

        batch, refused = self._records.of([event.data for event in events], known)
        first, self._id = self._row + 1, events[-1].id
        self._row += count
        return Rows(self._described.place, first, batch, refused)

    def position(self) -> Json:
        return {"id": self._id, "row": self._row, **({"end": True} if self._is_over and not self._waiting else {})}

    def close(self) -> None:
        self._asked.close()
        self._client.close()


class _Away(Exception):
    """The server is to be asked later. headers: of its answer. is_end: a connection has ended, which is usual."""

    def __init__(self, why: str, headers: Mapping[str, str], is_end: bool = False) -> None:
        super().__init__(why)
        self.why, self.headers, self.is_end = why, headers, is_end
