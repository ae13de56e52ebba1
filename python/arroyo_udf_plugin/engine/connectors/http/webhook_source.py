"""An endpoint as a source: rows that others send. They are durable in a journal before they are confirmed.

    key, received       string, timestamp[ms, UTC]

Guarantees: a delivery that was confirmed is read once, with checkpoints: they have the offset in the journal. A key
that is repeated is one delivery. Files of the journal go when a checkpoint has their rows, and their keys are old.

Assumes: the journal's folder is on a disk that a later engine sees, too, and nobody else changes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import pyarrow as pa
import pydantic

from ....author.options import bytes_of
from ....errors import InvalidArgument
from ..bad_records import BadRecords
from ..described import VARIABLE, Bytes, Input, Period, Several
from ..interface import Gauge, Json, Partition, Source, has_ended
from ..location import location_of
from ..message_rows import TIMES, MessageRows
from ..options import BATCH_ROWS
from ..source import Rows
from ..table_options import BOOLEANS, TableOptions, WrongOption, chosen, period_seconds
from .journal import Journal, JournalReader, ends_of
from .polling import message_keys
from .receiver import Receiver, hosts

METADATA: Mapping[str, Sequence[pa.DataType]] = {"key": (pa.string(),), "received": (TIMES, pa.int64())}
_PAUSES = (0.001, 0.02)  # seconds between two looks for deliveries: the first, and the longest
_LISTEN = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):\d{1,5}")


class WebhookInput(Input):
    """Rows that are sent to an address of this program."""

    metadata_keys: ClassVar[tuple[str, ...]] = tuple(METADATA)

    type: Literal["webhook"] = "webhook"

    listen: str
    """Where it listens: `HOST:PORT`, such as `127.0.0.1:8080`, or `0.0.0.0:8080` for all networks."""

    path: Annotated[str, pydantic.Field(pattern=r"^/")] = "/"
    """The path to which rows are sent."""

    token: Annotated[str | None, pydantic.Field(repr=False, min_length=1)] = None
    """What a sender must know: `Authorization: Bearer TOKEN`. Write `${NAME}`, an environment variable. It may be left
    out only where nobody but this machine can connect."""

    journal: Annotated[str, pydantic.Field(min_length=1)]
    """The folder in which deliveries wait. It is this pipeline's alone."""

    max_body: Bytes = 16 << 20
    """The largest delivery; larger ones are answered 413."""

    max_waiting: Bytes = 256 << 20
    """The bytes that may wait in the journal until they are read; further deliveries are answered 429."""

    remember: Period = 3600.0
    """How long a key of a delivery (`Idempotency-Key`) is known at least."""

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The columns, by name, with types such as "int", "str" or "timestamp[us, UTC]"; other keys of an object are
    passed over."""

    json_columns: Several[str] = ()
    """Columns whose values, of any kind, are kept as JSON text."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How JSON has columns of times: "unix_millis" as milliseconds since 1970; with "rfc3339", those without a zone are
    in UTC, and may end in Z."""

    metadata: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further columns by name: "key", that of the delivery, or "received", when it came."""

    bad_records: BadRecords = "fail"
    """What happens to objects that do not fit: "fail", "drop" or "dead_letter"."""

    bounded: bool = False
    """Reads what is in the journal, and ends; nobody listens."""

    @pydantic.field_validator("listen")
    @classmethod
    def _is_a_place(cls, listen: str) -> str:
        if not _LISTEN.fullmatch(listen) and not VARIABLE.search(listen):
            raise ValueError("write HOST:PORT, such as 127.0.0.1:8080")
        return listen

    @property
    def ends(self) -> bool:
        return self.bounded

    @property
    def folder(self) -> Path:
        """Raises InvalidArgument."""
        location = location_of(self.journal).admitted()
        if location.path is None:
            raise InvalidArgument(f"journal: {self.journal} is no folder of this machine: name one")
        return location.path

    def source(self, parallelism: int) -> Source:
        return WebhookSource(self)

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        keys = {
            "listen": options.need("listen", "127.0.0.1:8080"),
            "path": options.text("path"),
            "token": options.text("token"),
            "journal": options.need("journal", f"journals/{options.table}"),
            "max_body": options.read("source.max_body", bytes_of, "a size such as 16 MiB"),
            "max_waiting": options.read("source.max_waiting", bytes_of, "a size such as 256 MiB"),
            "remember": options.read("source.remember", period_seconds, "a time such as 1 h"),
            "bounded": options.one_of("source.bounded", BOOLEANS),
        }
        format_ = options.text("format")
        if format_ not in (None, "json"):
            raise WrongOption(f"format = '{format_}': deliveries are json", options.at)
        return cls(**message_keys(options), **chosen(keys))


class WebhookSource:
    resumable = True
    side_by_side = True
    watch: float | None = None
    rows: int | None = None

    def __init__(self, described: WebhookInput) -> None:
        self.described, self.name = described, f"webhook {described.listen}{described.path}"
        self.folder = described.folder
        if not described.bounded and described.token is None and not _is_of_this_machine(described.listen):
            raise InvalidArgument(
                f"{self.name}: others than this machine can connect to it: write a token, or listen at 127.0.0.1"
            )
        self.records = MessageRows(
            "json",
            described.types,
            described.metadata,
            METADATA,
            described.json_columns,
            described.timestamps,
            "delivery",
        )
        self.schema = self.records.schema
        self._opened: WebhookPartition | None = None

    def partitions(self) -> Sequence[str]:
        return ["journal"]

    def check(self, positions: Mapping[str, Json]) -> None:
        for position in positions.values():
            if not has_ended(position):
                first, end = ends_of(self.folder)
                _check(self.folder, position["at"], first, end)

    def open(self, partition: str, position: Json | None) -> Partition:
        self._opened = WebhookPartition(self, position)
        return self._opened

    def announce(self, positions: Mapping[str, Json]) -> None:
        for position in positions.values():
            if self._opened is not None:
                self._opened.forget(position["at"])

    def close(self) -> None: ...


def _check(folder: Path, at: int, first: int, end: int) -> None:
    """Raises InvalidArgument for a journal that does not have what is to be read next."""
    if not first <= at <= end:
        raise InvalidArgument(
            f"the journal {folder} has deliveries from {first} to {end}, and {at} is to be read next: it is another "
            "one, or has lost files. Bring them back, or begin anew with other checkpoints"
        )


def _is_of_this_machine(listen: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return all(ipaddress.ip_address(host).is_loopback for host in hosts(listen))
    return False


class WebhookPartition:
    """position: "at", the offset of the next delivery, or of one of which the first rows have been read ("skip"), and
    the "row" behind the last one; with "until" the end. port: where it listens."""

    def __init__(self, source: WebhookSource, position: Json | None) -> None:
        described = source.described
        self._records, self._name = source.records, source.name
        self._open = contextlib.ExitStack()
        self._receiver: Receiver | None = None
        self._journal: Journal | None = None
        try:
            if described.bounded:
                first, end = ends_of(source.folder)
            else:
                self._journal = self._open.enter_context(Journal(source.folder, described.remember))
                first, end = self._journal.first, self._journal.end
            position = {"at": first, "skip": 0, "row": 0} if position is None else position
            _check(source.folder, position["at"], first, end)
            self._at: int = position["at"]
            self._skip: int = position["skip"]
            self._row: int = position["row"]
            self._until: int | None = position.get("until", end if described.bounded else None)
            self._reader = JournalReader(source.folder, self._at)
            self._open.callback(self._reader.close)
            if self._journal is not None:
                self._receiver = self._open.enter_context(Receiver(described, self._journal, lambda: self._at))
        except BaseException:
            self._open.close()
            raise

    @property
    def port(self) -> int | None:
        return None if self._receiver is None else self._receiver.port

    @property
    def _is_over(self) -> bool:
        return self._until is not None and self._at >= self._until

    @property
    def _end(self) -> int:
        """Behind what can be read."""
        if self._until is not None:
            return self._until
        assert self._journal is not None, "without an end, it listens"
        return self._journal.end

    async def read(self) -> Rows | None:
        pause, longest = _PAUSES
        while not self._is_over:
            if self._at < self._end:
                return self._rows()
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
        return None

    def _rows(self) -> Rows:
        """Raises InvalidArgument for a damaged journal."""
        values: list[bytes] = []
        keys: list[str] = []
        times: list[int] = []
        at, skip = self._at, self._skip
        self._reader.at = at
        for delivery, behind in self._reader.deliveries(self._end):
            rows = delivery.rows[skip : skip + BATCH_ROWS - len(values)]
            values += rows
            keys += [delivery.key] * len(rows)
            times += [delivery.received] * len(rows)
            skip += len(rows)
            if skip == len(delivery.rows):
                at, skip = behind, 0
            if len(values) == BATCH_ROWS:
                break

        def known(key: str, type_: pa.DataType) -> pa.Array:
            if key == "key":
                return pa.array([key or None for key in keys], type_)
            whole = pa.array(times, pa.int64())
            return whole.cast(TIMES).cast(type_) if pa.types.is_timestamp(type_) else whole

        batch, refused = self._records.of(values, known)
        first = self._row + 1
        self._at, self._skip, self._row = at, skip, self._row + len(values)
        return Rows(self._name, first, batch, refused)

    def position(self) -> Json:
        until = {} if self._until is None else {"until": self._until}
        end = {"end": True} if self._is_over else {}
        return {"at": self._at, "skip": self._skip, "row": self._row, **until, **end}

    def gauges(self) -> Sequence[Gauge]:
        return [Gauge("unread", max(0, self._end - self._at), "bytes")]

    def forget(self, committed: int) -> None:
        if self._receiver is not None:
            self._receiver.forget(committed)

    def close(self) -> None:
        self._open.close()
        self._receiver = None
