"""A source that makes its rows: a counter, for tests and trials.

    counter      uint64; the rows of all partitions together count from 0
    subtask      uint64; the partition's number
    event_time   timestamp[ns, UTC]; `start` and `interval` make it a pure function of the counter, otherwise it is now

Guarantees: with `start`, the same description makes the same rows, at any rate, also after a resume, and whatever the
number of partitions is (subtask apart).
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from ...errors import InvalidArgument
from .connector import CatalogueEntry, Connector, Form
from .described import Input, Seconds
from .interface import Json, Partition, Source
from .options import BATCH_ROWS
from .source import Rows
from .table_options import TableOptions, instant, period_seconds

SCHEMA = pa.schema(
    [("counter", pa.uint64()), ("subtask", pa.uint64()), ("event_time", pa.timestamp("ns", "UTC"))],
)
_STEPS_A_SECOND = 100  # a batch has the rows of so much time, not each row one of its own
_INT64 = 2**63 - 1


class Impulse(Input):
    """Rows that count."""

    names_in_sql: ClassVar[Mapping[str, str]] = {"subtask_index": "subtask"}

    type: Literal["impulse"] = "impulse"

    rate: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)] | None = None
    """Rows per second, of all slices together; otherwise as many as are taken."""

    rows: Annotated[int, pydantic.Field(ge=0)] | None = None
    """The number of all rows; otherwise there is no end."""

    partitions: Annotated[int, pydantic.Field(ge=1)] | None = None
    """Parts that slices share; otherwise one for each slice. It cannot change at a resume."""

    start: pydantic.AwareDatetime | None = None
    """The first row's event time, with `interval`; otherwise event times are the time of the clock."""

    interval: Seconds | None = None
    """Between the event times of two rows, with `start`."""

    @property
    def ends(self) -> bool:
        """Whether there is a last row."""
        return self.rows is not None

    def source(self, parallelism: int) -> Source:
        return ImpulseSource(self, self.partitions or parallelism)

    def partitioned(self, number: int) -> Self:
        return self if self.partitions is not None else self.model_copy(update={"partitions": number})

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        return cls(
            rate=options.read("event_rate", float, "a number of rows per second"),
            rows=options.read("message_count", int, "a whole number"),
            partitions=options.read("partitions", int, "a whole number"),
            start=options.read("start", instant, "a time with its zone, such as 2026-01-01T00:00:00Z"),
            interval=options.read("event_time_interval", period_seconds, "a time such as 10 ms or INTERVAL '1 second'"),
        )


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"event_rate": 10}

    event_rate: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False, title="Messages per second")]
    event_time_interval: Annotated[int | None, pydantic.Field(ge=1, title="Microseconds between event times")] = None
    message_count: Annotated[int | None, pydantic.Field(ge=0, title="Number of messages; none: without an end")] = None

    def options(self) -> dict[str, str]:
        options = {"event_rate": f"{self.event_rate:g}"}
        if self.event_time_interval is not None:
            options |= {
                "start": "1970-01-01T00:00:00Z",
                "event_time_interval": f"{self.event_time_interval / 1e6:.6f} s",
            }
        return options | ({} if self.message_count is None else {"message_count": str(self.message_count)})


CONNECTOR = Connector(
    "impulse",
    source=Impulse,
    entry=CatalogueEntry("Impulse", "Rows that count", _Form, has_schema=False, icon="M3 12h5l3-8v16l3-8h7"),
)


class ImpulseSource:
    """parts: the number of partitions. now, clock: of the wall, in nanoseconds, and of the rate, in seconds."""

    name = "impulse"
    schema = SCHEMA
    resumable = True
    side_by_side = True
    watch: float | None = None

    def __init__(
        self,
        described: Impulse,
        parts: int,
        now: Callable[[], int] = time.time_ns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if (described.start is None) != (described.interval is None):
            raise InvalidArgument("start and interval belong together: write both, or none of them")
        self.described, self.parts, self.now, self.clock = described, parts, now, clock
        self.rows = described.rows

    def partitions(self) -> Sequence[str]:
        return [f"{part}/{self.parts}" for part in range(self.parts)]

    def check(self, positions: Mapping[str, Json]) -> None:
        for partition in positions:
            parts = partition.partition("/")[2]
            if int(parts) != self.parts:
                raise InvalidArgument(
                    f"the impulse began with {parts} partitions, and now has {self.parts}: resume with --parallelism "
                    f"{parts}. (With `partitions` from the start, parallelism may change)"
                )

    def open(self, partition: str, position: Json | None) -> Partition:
        self.check({partition: position or {}})
        part = partition.partition("/")[0]
        return _Part(self, int(part), 0 if position is None else position["row"] - 1)

    def close(self) -> None: ...


class _Part:
    """Every so-manieth row, from its own number on. made: the rows that it has made."""

    def __init__(self, source: ImpulseSource, part: int, made: int) -> None:
        self._source, self._part, self._made = source, part, made
        described, parts = source.described, source.parts
        self._name = f"impulse {part}/{parts}"
        self._rows = None if described.rows is None else len(range(part, described.rows, parts))
        self._counters = pa.array(range(0, BATCH_ROWS * parts, parts), pa.uint64())
        self._subtasks = pa.repeat(pa.scalar(part, pa.uint64()), BATCH_ROWS)
        self._start, self._step, self._times = 0, 0, None
        if described.start is not None and described.interval is not None:
            self._start = _nanoseconds(described.start)
            self._step = round(described.interval * 1e9)
            self._times = pc.multiply(self._counters.cast(pa.int64()), pa.scalar(self._step))
        self._rate = None if described.rate is None else described.rate / parts
        self._group = 1 if self._rate is None else min(max(1, int(self._rate / _STEPS_A_SECOND)), BATCH_ROWS)
        self._began: tuple[float, int] | None = None  # when, and after which rows

    async def read(self) -> Rows | None:
        count = BATCH_ROWS if self._rows is None else min(BATCH_ROWS, self._rows - self._made)
        if count <= 0:
            return None
        if self._rate is not None:
            count = await self._due(self._rate, count)
        counter = self._made * self._source.parts + self._part
        columns = [
            pc.add(self._counters.slice(0, count), pa.scalar(counter, pa.uint64())),
            self._subtasks.slice(0, count),
            self._event_times(counter, count),
        ]
        first = self._made + 1
        self._made += count
        return Rows(self._name, first, pa.RecordBatch.from_arrays(columns, schema=SCHEMA))

    def _event_times(self, counter: int, count: int) -> pa.Array:
        if self._times is None:
            return pa.repeat(pa.scalar(self._source.now(), pa.int64()), count).view(SCHEMA.types[2])
        first = self._start + counter * self._step
        if first + count * self._source.parts * self._step > _INT64:
            raise InvalidArgument(f"impulse: the event time of row {counter} is after the year 2262: shorten interval")
        return pc.add(self._times.slice(0, count), pa.scalar(first, pa.int64())).view(SCHEMA.types[2])

    async def _due(self, rate: float, most: int) -> int:
        """Waits until rows are due. Returns how many: all those, if they were not taken in time."""
        clock = self._source.clock
        began, before = self._began = self._began or (clock(), self._made)
        group = min(self._group, most)
        while True:
            due = int((clock() - began) * rate) - (self._made - before)
            if due >= group:
                return min(due, most)
            await asyncio.sleep((self._made - before + group) / rate + began - clock())

    def position(self) -> Json:
        return {"row": self._made + 1}

    def close(self) -> None: ...


def _nanoseconds(time_: datetime.datetime) -> int:
    microseconds: int = pa.scalar(time_, pa.timestamp("us", "UTC")).value
    return microseconds * 1000
