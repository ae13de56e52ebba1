"""An address that is asked again and again, as a source: each answer is rows.

Guarantees: an answer that says that nothing has changed gives no rows: by its status, or with "changed" by its bytes.
The answer that a checkpoint has seen last is not given again after a resume, if it is still the same. While the server
is away, or wants to be left alone, it is asked later.

Assumes: nothing says what answers would have been given meanwhile: they are missed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import pydantic

from ....errors import InvalidArgument
from ..bad_records import BadRecords
from ..described import Input, Period, Several
from ..in_thread import InThread
from ..interface import Json, Partition, Source
from ..message_rows import MessageFormat, MessageRows
from ..options import BATCH_ROWS
from ..source import Rows
from ..table_options import TableOptions, chosen
from .bodies import objects_of
from .endpoint import HttpClient, HttpEndpoint, Retries, endpoint_keys, library

_log = logging.getLogger(__name__)

_STALLED = 30.0  # seconds for one answer
_PATIENCE = 30.0  # seconds for a server that has never answered
_LARGEST = 64 << 20  # bytes of an answer
_METHODS = ("GET", "POST", "PUT", "PATCH")


class PollingInput(HttpEndpoint, Input):
    """The answers of an address that is asked again and again."""

    type: Literal["polling_http"] = "polling_http"

    method: Literal["GET", "POST", "PUT", "PATCH"] = "GET"
    """How it is asked."""

    body: str | None = None
    """What is sent with it."""

    interval: Period = 1.0
    """The time between two questions."""

    emit: Literal["all", "changed"] = "all"
    """Whether an answer gives rows that is the same as the one before. A server that answers 304 never does."""

    answers: Annotated[int, pydantic.Field(ge=1)] | None = None
    """Ends after so many answers; otherwise there is no end."""

    format: MessageFormat = "json"
    """What an answer is: "json", one object whose keys are the columns, an array of them, or one in each line;
    "raw_string" or "raw_bytes", the only column, `value`."""

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The columns, by name, with types such as "int", "str" or "timestamp[us, UTC]"; other keys of an object are
    passed over."""

    json_columns: Several[str] = ()
    """Columns whose values, of any kind, are kept as JSON text."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How JSON has columns of times: "unix_millis" as milliseconds since 1970; with "rfc3339", those without a zone are
    in UTC, and may end in Z."""

    bad_records: BadRecords = "fail"
    """What happens to objects that do not fit: "fail", "drop" or "dead_letter"."""

    @property
    def ends(self) -> bool:
        return self.answers is not None

    def source(self, parallelism: int) -> Source:
        return PollingSource(self)

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        keys = {
            "method": options.one_of("method", {name: name for name in _METHODS}),
            "body": options.text("body"),
            "interval": options.read("poll_interval_ms", _milliseconds, "a number of milliseconds above 0"),
            "emit": options.one_of("emit_behavior", {"all": "all", "changed": "changed"}),
            "answers": options.read("source.answers", int, "a whole number"),
        }
        return cls(**endpoint_keys(options), **message_keys(options), **chosen(keys))


def message_keys(options: TableOptions) -> dict[str, Any]:
    """The keys of a format and its columns in SQL. Raises WrongOption."""
    columns = options.columns or ()
    keys: dict[str, Any] = {
        "format": options.message_format(),
        "bad_records": options.one_of("bad_data", {name: name for name in ("fail", "drop", "dead_letter")}),
        "types": {},
    }
    if keys["format"] in (None, "json"):
        options.json_decimals()  # both are read
        keys |= {"timestamps": options.json_timestamps(), "json_columns": options.json_columns()}
        keys["types"] = {column.name: str(column.type) for column in columns}
    metadata = {column.name: column.metadata.value for column in columns if column.metadata is not None}
    if metadata:
        keys["metadata"] = metadata
        keys["types"] |= {column.name: str(column.type) for column in columns if column.metadata is not None}
    return chosen(keys)


def _milliseconds(text: str) -> float:
    return int(text) / 1000


class PollingSource:
    resumable = True
    side_by_side = True
    watch: float | None = None
    rows: int | None = None

    def __init__(self, described: PollingInput) -> None:
        self.described, self.name = described, described.place
        self.records = MessageRows(
            described.format, described.types, {}, {}, described.json_columns, described.timestamps, "object"
        )
        self.schema = self.records.schema

    def partitions(self) -> Sequence[str]:
        return ["answers"]

    def check(self, positions: Mapping[str, Json]) -> None:
        """Any position fits any server."""

    def open(self, partition: str, position: Json | None) -> Partition:
        return PollingPartition(self.described, self.records, position or {})

    def close(self) -> None: ...


@dataclass(frozen=True)
class _Answered:
    """values: None: nothing has changed. seen: what the next question says, and what its answer is compared with."""

    values: list[bytes] | None
    seen: Json


class PollingPartition:
    """position: "answers" so far, "row" behind the last one, what was "seen", and values of the last answer that are
    still to be given ("left")."""

    def __init__(self, described: PollingInput, records: MessageRows, position: Json) -> None:
        self._described, self._records = described, records
        self._answers: int = position.get("answers", 0)
        self._row: int = position.get("row", 0)
        self._seen: Json = position.get("seen", {})
        self._left = [value.encode("latin-1") for value in position.get("left", ())]
        self._client = HttpClient(described, _STALLED)
        self._asked = InThread[tuple[Any, bytes]]("arroyo-udf-polling")
        self._due, self._retries, self._away_since = 0.0, Retries(), time.monotonic()
        self._has_answered = self._is_away = False

    @property
    def _is_over(self) -> bool:
        return not self._left and self._described.answers is not None and self._answers >= self._described.answers

    async def read(self) -> Rows | None:
        while not self._is_over:
            if self._left:
                return self._rows()
            if (wait := self._due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            begun = time.monotonic()
            try:
                answer, body = await self._asked.answer(self._ask)
            except library().TransportError as error:
                self._later(str(error) or type(error).__name__, None)
                continue
            if answer.status_code != 304 and self._described.verdict(answer.status_code) == "again":
                self._later(f"it answers {answer.status_code}", answer.headers)
                continue
            found = self._answered(answer, body)
            self._retries, self._has_answered, self._is_away = Retries(), True, False
            self._due = begun + self._described.interval
            self._answers += 1
            self._seen = found.seen
            self._left = list(found.values or ())
        return None

    def _ask(self) -> tuple[Any, bytes]:
        """An answer of httpx, and its body. Raises what httpx raises, InvalidArgument."""
        described, headers = self._described, {}
        if "etag" in self._seen:
            headers["If-None-Match"] = self._seen["etag"]
        if "modified" in self._seen:
            headers["If-Modified-Since"] = self._seen["modified"]
        with self._client.stream(described.method, headers, described.body) as answer:
            parts, size = [], 0
            for part in answer.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > _LARGEST:
                    raise InvalidArgument(f"{described.place}: the answer is larger than {_LARGEST >> 20} MiB")
            return answer, b"".join(parts)

    def _later(self, why: str, headers: Mapping[str, str] | None) -> None:
        """Raises Unreachable for a server that has never answered."""
        if not self._has_answered and time.monotonic() - self._away_since > _PATIENCE:
            raise self._described.away(why)
        if not self._is_away:
            self._is_away = True
            _log.warning("%s does not answer, and is asked again: %s", self._described.place, why)
        self._due = time.monotonic() + self._retries.next(headers)

    def _answered(self, answer: Any, body: bytes) -> _Answered:
        """Raises InvalidArgument."""
        if answer.status_code == 304:
            return _Answered(None, self._seen)
        if self._described.verdict(answer.status_code) == "refused":
            raise self._described.refusal(answer.status_code, body)
        seen = {"digest": hashlib.sha256(body).hexdigest()}
        names = {"etag": "etag", "modified": "last-modified"}
        seen |= {key: answer.headers[name] for key, name in names.items() if name in answer.headers}
        if self._described.emit == "changed" and seen["digest"] == self._seen.get("digest"):
            return _Answered(None, seen)
        if self._described.format != "json":
            return _Answered([body], seen)
        try:
            return _Answered(objects_of(body), seen)
        except ValueError as error:
            raise InvalidArgument(f"{self._described.place}: the answer cannot be read: {error}") from None

    def _rows(self) -> Rows:
        values, self._left = self._left[:BATCH_ROWS], self._left[BATCH_ROWS:]
        batch, refused = self._records.of(values, _nothing_else)
        first = self._row + 1
        self._row += len(values)
        return Rows(self._described.place, first, batch, refused)

    def position(self) -> Json:
        left = {"left": [value.decode("latin-1") for value in self._left]} if self._left else {}
        end = {"end": True} if self._is_over else {}
        return {"answers": self._answers, "row": self._row, "seen": self._seen, **left, **end}

    def close(self) -> None:
        self._asked.close()
        self._client.close()


def _nothing_else(key: str, type_: pa.DataType) -> pa.Array:
    raise AssertionError("answers have no metadata")
