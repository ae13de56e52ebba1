"""What the engine asks of sources and sinks.

    source.partitions() ──► source.open(name, position) ──► partition.read() ──► Rows ──► ... ──► sink.write(batch)
                                                            partition.position()                  sink.seal(epoch)

A source is cut into partitions, each with a name that stays the same when the engine is started again, and a position:
the next row to read, as JSON. All that a partition does follows from its name and that position. A slice reads its
share of the partitions.

A sink takes the rows of one slice. Without checkpoints the engine calls `finish` at the end. With checkpoints it must
be a `TransactionalSink`, and rows go epoch by epoch: `seal` ends an epoch's rows, without waiting; `Sealed.store` makes
them durable; when the epoch is committed, `apply` shows them to the world. `apply` may be called again with the same
arguments, also by another process, and changes nothing then.

Assumes: one thread per partition and per sink, except that `store` and `apply` are called in other threads, while the
next epoch's rows are written; not two of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from ...errors import InvalidArgument
from .source import Rows

Json = Mapping[str, Any]


class Partition(Protocol):
    """A part of a source, read in order."""

    async def read(self) -> Rows | None:
        """The next rows, at most `TYPED_BATCH_ROWS`; without rows: the position alone has moved. None: there are no
        more, ever. It may wait (a rate, a pipe); it may be cancelled while it waits, and then has lost nothing. Raises
        InvalidArgument."""

    def position(self) -> Json:
        """Of the row that the next `read` begins with. With `"end": True` the partition has been read: it stays as it
        is, and is not opened again."""

    def close(self) -> None: ...


def has_ended(position: Json) -> bool:
    """Whether a partition has been read, by its position."""
    return position.get("end") is True


Unit = Literal["bytes", "messages", "seconds"]


class Gauge(NamedTuple):
    """A number of what is read, as of now, which rises and falls. name: such as "lag", the same for all partitions."""

    name: str
    value: float
    unit: Unit


@runtime_checkable
class Measuring(Protocol):
    """What a partition has, too, if it can tell such numbers. Metrics have their sums over the partitions of a
    source."""

    def gauges(self) -> Sequence[Gauge]:
        """Those that are known. Called in another thread, which it does not hold up, so it asks nobody."""


class Source(Protocol):
    """name: for people, such as "impulse" or "data/*.csv". schema: of all rows.

    resumable: partitions can be opened at a position. Otherwise checkpoints are refused by name.
    side_by_side: a slice reads all its partitions in turn (impulse); otherwise one after another, by name (files).
        Each of them has its own watermark, and is idle by itself.
    watch: seconds after which to ask for new partitions; None: there will be none.
    rows: the number of all rows; None: unknown.
    """

    name: str
    schema: pa.Schema
    resumable: bool
    side_by_side: bool
    watch: float | None
    rows: int | None

    def partitions(self) -> Sequence[str]:
        """Those there are now, in their order. Those of an earlier call are all among them."""

    def check(self, positions: Mapping[str, Json]) -> None:
        """positions: of partitions, from which a resumed engine is to go on; of those that have been read, too. Refuses
        those that do not fit any more, as far as that is known without reading, with InvalidArgument. Changes no
        file."""

    def open(self, partition: str, position: Json | None) -> Partition:
        """position: None is the first row. Raises InvalidArgument, for a position that does not fit any more, too."""

    def close(self) -> None: ...


@runtime_checkable
class Announcing(Protocol):
    """What a source has, too, if it tells others how far it has come."""

    def announce(self, positions: Mapping[str, Json]) -> None:
        """An epoch with these positions is committed. Called in another thread, which it does not hold up. Nothing
        depends on it, so it raises nothing."""


class Stage(Protocol):
    """Where a sink keeps rows of epochs that are not applied yet, if it has no place of its own: in the store of the
    checkpoints. All sinks and slices of a pipeline share it, so names begin with the sink's. Names are relative, with
    "/" between folders.

    history: an id that the first engine of a history of epochs has made up and its resumed ones keep. So epoch 5 is not
    taken for epoch 5 of a pipeline that was started anew.
    """

    history: str

    def put(self, name: str, data: bytes) -> None:
        """Durable when it returns."""

    def write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        """As `put`, of what `write` writes, at least a byte. It is not in memory as a whole."""

    def get(self, name: str) -> bytes:
        """Raises FileNotFoundError."""

    def names(self, prefix: str) -> list[str]:
        """Those that begin with `prefix`, sorted."""

    def delete(self, name: str) -> None:
        """Does nothing if it is not there."""


class Sealed(Protocol):
    """Rows of an epoch, on their way to be durable."""

    def store(self) -> Json:
        """Makes them durable. Returns what `apply` needs. Called in another thread, and again after it has failed: then
        it makes all of them durable, or fails again."""


@runtime_checkable
class Discardable(Protocol):
    """What a `Sealed` has, too, if what it has made durable is to go when its epoch is never committed, because another
    engine has gone on. Otherwise it goes at the next start (`Sink.clear`)."""

    def discard(self) -> None:
        """Removes it."""


class Sink(Protocol):
    """name: for people, unique within a pipeline."""

    name: str

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows, at least one, in the sink's schema. Raises InvalidArgument, OSError, BrokenPipeError."""

    def finish(self) -> None:
        """Without checkpoints: all rows are written, and appear now."""

    def close(self) -> None:
        """Gives up what is neither finished nor stored. Called once, after all others."""


@runtime_checkable
class TransactionalSink(Sink, Protocol):
    """One whose rows can be applied once per epoch. Without this, checkpoints are refused by name."""

    def seal(self, epoch: int) -> Sealed | None:
        """Ends the epoch's rows. None: there are none."""

    def apply(self, epoch: int, stored: Json) -> None:
        """Shows a committed epoch's rows to the world, once. Idempotent. `stored` may be of another slice: after a
        start with fewer of them, somebody must apply it."""

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        """With checkpoints, called at each start, also the first, before anything is changed; of the first slice alone.

        committed: the number that this engine's fence will have. waiting: what `apply` will be given, of `epoch`.
        Refuses a place with epochs of another history, or with later ones, and rows that cannot be applied because
        they are gone or damaged, with InvalidArgument. Changes nothing.
        """

    def clear(self, committed: int) -> None:
        """With checkpoints, called once at each start, also the first, before the first `write` of any slice.

        committed: the number of this engine's fence. Removes what earlier engines have stored and never committed, of
        all slices; what is committed has been applied before.
        """


def transactional(sinks: Iterable[Sink]) -> Iterator[TransactionalSink]:
    """The sinks of a pipeline with checkpoints. Raises InvalidArgument for one that is not transactional."""
    for sink in sinks:
        if not isinstance(sink, TransactionalSink):
            raise InvalidArgument(
                f"the sink {sink.name} cannot take back rows, so it has no checkpoints: leave out --checkpoints, or "
                "write to another sink"
            )
        yield sink


@runtime_checkable
class Holding(Protocol):
    """What a sink has, too, if it may show rows later than their epoch is applied. holds: whether there are such rows:
    so epochs are tried, although nothing moves."""

    @property
    def holds(self) -> bool: ...

    def show_all(self) -> None:
        """All rows of this run have come: the next epoch shows them. Any thread."""


Fate = Literal["none", "withdrawn", "overwritten", "doubled"]


@dataclass(frozen=True)
class LaterRows:
    """What becomes of a sink's rows of later epochs, if a pipeline goes back to an earlier one and on from there.

    fate: "none": it shows no such rows. "withdrawn": it takes them back. "overwritten": they stay until the rows that
    come again take their places. "doubled": they stay, and come again. what: which rows, for people.
    """

    sink: str
    fate: Fate
    what: str


@runtime_checkable
class Rewindable(Protocol):
    """What a sink has, too, if it can go back to an earlier epoch. Of one that has not, rows are doubled."""

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        """What becomes of rows of epochs behind this one. later: their numbers, each with what `Sealed.store` returned;
        None: this is not known. Changes nothing."""

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Takes back the rows of these epochs, first and last ones, that it can take back. Called after `clear`, at
        each start from then on, of the first slice alone. Idempotent."""


def later_epochs(place: str, what: str, committed: int, give_up: str | None = None) -> str:
    """Why `Sink.check` refuses a place that has what only an engine after this one can have written. give_up: how users
    give up those rows; None: they cannot."""
    or_give_up = "" if give_up is None else f", or {give_up}"
    return (
        f"{place} has {what}, and the checkpoints that this engine goes on from end before {committed}. Either another "
        "engine has gone on from them meanwhile: then leave all to that one. Or they are an older copy: then bring "
        f"back the newer ones{or_give_up}. Or they are of another run: then name a place without rows, and other "
        "checkpoints"
    )
