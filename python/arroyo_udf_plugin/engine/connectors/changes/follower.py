"""The thread that reads changes: first the snapshot, then the log, one after the other, a little ahead of the engine.

    snapshot ──► rows, by the table's key ──┐
    log ──► Begin, changes, Commit ─────────┴──► ahead: (rows, the position behind them)

Guarantees: each row and each change once, from any position on, whatever was killed meanwhile. The server hears from us
every so often, also while nobody takes rows; it is told to let go only of what `confirm` has named. While the server is
away, reading waits; what does not pass by itself ends it, by name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import struct
import time
from typing import Protocol

from ....errors import InvalidArgument, Unreachable
from ..database import quoted
from ..interrupt import Interrupt
from ..options import BATCH_ROWS
from ..source import Rows
from . import pgoutput
from .change_rows import ChangeBatch, ChangeColumns, ChangeTransaction, Layout
from .pgoutput import UNSENT, Values
from .positions import ChangesPosition, Key, SnapshotPart, is_covered
from .publisher import IN_USE, PublishedTable, Publisher, SlotInUse, lsn_text
from .server_snapshot import wait_for_ends
from .wire import Interrupted, Lost, Refused, Wire

_log = logging.getLogger(__name__)

PATIENCE = 15.0
"""Seconds for a server that does not answer, before anything was read."""
SLOT_PATIENCE = 90.0
"""Seconds until the server has noticed that the reader before has gone: it may need its wal_sender_timeout."""
RETAINED = 1 << 30
"""Bytes of its log that the server may keep for us before there is a warning; then twice as many."""
_PAUSES = (0.1, 5.0)  # seconds between two attempts: the first, and the longest
_SOON = 0.005  # seconds until a batch that is not full may go, because the engine takes one
_ASKING = 0.05  # seconds between two questions for the end of a bounded reader
_STATUS = struct.Struct("!cQQQqB")
_ALIVE = struct.Struct("!cQqB")
_ZERO = 946_684_800.0  # the year 2000
_OPS = {ord("I"): "c", ord("U"): "u", ord("D"): "d"}
_PASSED_OVER = b"OYM"  # origins, types, and messages of others
_BODY = 25  # where a message of pgoutput begins
_ROW = _BODY + 5  # where that of a change has its rows, behind the table's oid


class Ahead(Protocol):
    """What takes the rows."""

    @property
    def is_empty(self) -> bool:
        """Whether the engine waits for rows."""

    def room(self, seconds: float) -> bool:
        """Waits for room for one more, at most so long. Whether there is some; the caller uses it."""

    def hand_on(self, rows: Rows | None, position: ChangesPosition) -> None:
        """rows: None: only the position has moved."""


@dataclasses.dataclass(frozen=True)
class FollowingOptions:
    """How a description has it."""

    snapshot: bool
    truncate_is_row: bool
    bounded: bool
    heartbeat: float


class Follower:
    """position: where it begins. interrupt: ends it."""

    def __init__(
        self,
        publisher: Publisher,
        columns: ChangeColumns,
        following: FollowingOptions,
        position: ChangesPosition,
        ahead: Ahead,
        interrupt: Interrupt,
    ) -> None:
        self._publisher, self._columns, self._following = publisher, columns, following
        self._position, self._ahead, self._interrupt = position, ahead, interrupt
        self.has_made_slot = False
        self._has_begun = False
        self._since: float | None = None  # when the server went away
        self._pause = _PAUSES[0]
        self._confirmed = 0
        self._warned_at = RETAINED
        self.retained: int | None = None  # bytes of its log that the server keeps; None: it was not asked yet

    @property
    def position(self) -> ChangesPosition:
        """Behind what was handed on."""
        return self._position

    def confirm(self, lsn: int) -> None:
        """Nobody will ask for what was committed before it. Any thread."""
        self._confirmed = max(self._confirmed, lsn)

    def run(self) -> None:
        """Until the end of a bounded reader. Raises Interrupted, InvalidArgument."""
        while not self._position.end:
            try:
                self._follow()
            except Lost as error:
                self._wait_after(error)
            except Refused as error:
                raise self._publisher.refusal(error) from None

    def _wait_after(self, error: Lost) -> None:
        now, server = time.monotonic(), self._publisher.server
        is_first, self._since = self._since is None, self._since or now
        away = now - self._since
        if isinstance(error, SlotInUse):
            if away > SLOT_PATIENCE:
                raise InvalidArgument(
                    f"{self._publisher.place}: another process reads from the slot {self._publisher.slot}: stop it, or "
                    f"name another slot ({error})"
                )
        elif not self._has_begun and away > PATIENCE:
            raise Unreachable(f"{server} does not answer: start it, or correct the uri ({error})", server)
        if is_first:
            _log.warning("%s: the table %s waits for it: %s", server, self._publisher.name, error)
        if self._interrupt.wait(self._pause):
            raise Interrupted
        self._pause = min(2 * self._pause, _PAUSES[1])

    # ---- The order of things ----

    def _follow(self) -> None:
        publisher = self._publisher
        with publisher.connected(self._interrupt) as control, publisher.replicating(self._interrupt) as wire:
            publisher.check_log(control)
            table = publisher.found(control)
            if self._following.snapshot and self._position.lsn is None:
                publisher.check_readable(control)
            self._columns.check(table.declared, publisher.place)
            system = publisher.system(wire)
            if self._position.system is None:
                self._begin(control, wire, table, system)
            if self._following.bounded and self._position.until is None:
                self._position = dataclasses.replace(self._position, until=publisher.end_of_log(control))
            self._check(control, table, system)
            self._has_begun = True
            if self._position.lsn is None:
                self._read_snapshot(control, table)
            self._stream(control, wire, table, system)

    def _check(self, control: Wire, table: PublishedTable, system: str) -> None:
        publisher = self._publisher
        slot = publisher.check_slot(publisher.slot_found(control), publisher.database(control))
        publisher.check_position(slot, self._position, table, system)

    def _begin(self, control: Wire, wire: Wire, table: PublishedTable, system: str) -> None:
        publisher = self._publisher
        publisher.publish(control, table)
        slot = publisher.slot_found(control)
        if slot is None:
            begins = publisher.make_slot(wire)
            self.has_made_slot = True
        else:
            begins = publisher.check_slot(slot, publisher.database(control)).confirmed
        self._position = ChangesPosition(system, table.oid, lsn=None if self._following.snapshot else begins)

    # ---- The snapshot ----

    def _read_snapshot(self, control: Wire, table: PublishedTable) -> None:
        publisher, position = self._publisher, self._position
        before = position.parts
        if before and before[-1].last is None:
            raise InvalidArgument(
                f"{publisher.place}: the snapshot did not end before the reader did, and without a primary key of "
                "integers, texts or UUIDs nobody knows which rows are missing: begin anew, without the checkpoints"
            )
        names = list(table.declared)
        layout = Layout(names, [names.index(name) for name in table.key])
        with contextlib.ExitStack() as stack:
            reader = stack.enter_context(publisher.connected(self._interrupt))
            with publisher.replicating(self._interrupt) as wire:
                lsn, snapshot = publisher.make_snapshot(wire)
                reader.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                reader.rows(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                wait_for_ends(reader, control, self._interrupt, publisher.server)
                ((made_at,),) = reader.rows("SELECT (extract(epoch FROM now()) * 1000000)::bigint")
            rest = f" WHERE {table.behind(before[-1].last or (), reader)}" if before else ""
            order = f" ORDER BY {table.order()}" if table.is_ordered else ""
            listed = ", ".join(map(quoted, names))
            reader.rows(
                f"DECLARE arroyo_udf NO SCROLL CURSOR FOR SELECT {listed} FROM {publisher.quoted_table}{rest}{order}"
            )
            transaction = ChangeTransaction(lsn, int(made_at or 0), None)
            while rows := reader.rows(f"FETCH {BATCH_ROWS} FROM arroyo_udf", "rows of the snapshot"):
                batch = ChangeBatch(self._columns, layout, publisher.name)
                batch.add_read([list(row) for row in rows], transaction)
                key = [(rows[-1][place] or b"").decode() for place in layout.key] if table.is_ordered else None
                part = SnapshotPart(lsn, None if key is None else tuple(key))
                self._hand_on(batch, dataclasses.replace(self._position, parts=(*before, part)))
        parts = (*before, SnapshotPart(lsn, None))
        self._position = dataclasses.replace(self._position, parts=parts).behind(parts[0].lsn)

    # ---- The log ----

    def _stream(self, control: Wire, wire: Wire, table: PublishedTable, system: str) -> None:
        publisher, begins = self._publisher, self._position.lsn
        assert begins is not None
        publication = quoted(publisher.publication)
        options = f"proto_version '1', publication_names {control.literal(publication.encode())}"
        try:
            wire.begin_copy(f"START_REPLICATION SLOT {quoted(publisher.slot)} LOGICAL {lsn_text(begins)} ({options})")
        except Refused as error:
            raise SlotInUse(str(error)) if error.code == IN_USE else self._of_stream(error) from None
        self._check(control, table, system)  # nobody else can confirm from now on
        self._since, self._pause = None, _PAUSES[0]
        try:
            _Stream(self, control, wire, table).run()
        except Refused as error:
            raise self._of_stream(error) from None
        except (ValueError, IndexError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(f"{publisher.place}: a message of the log cannot be read: {error}") from error

    def _of_stream(self, error: Refused) -> InvalidArgument:
        publisher = self._publisher
        if "publication" in str(error):
            return InvalidArgument(
                f"{publisher.place}: the publication {publisher.publication} was dropped, or made later than the slot: "
                "begin anew, without the checkpoints, after "
                f"SELECT pg_drop_replication_slot('{publisher.slot}') ({error})"
            )
        return publisher.refusal(error)

    # ---- Handing on ----

    def _hand_on(self, batch: ChangeBatch, position: ChangesPosition, wire: _Stream | None = None) -> None:
        """position: behind the batch, without its number of rows. wire: whose server hears from us meanwhile."""
        rows = batch.rows(position.rows + 1)
        position = dataclasses.replace(position, rows=position.rows + len(batch))
        while not self._ahead.room(1.0 if wire is None else min(1.0, wire.left)):
            if wire is not None and not wire.left:
                wire.tell()
            if self._interrupt.wait(0):
                raise Interrupted
        self._position = position  # not before: `tell` may find that the server is away
        self._ahead.hand_on(rows, position)

    def _look_at_slot(self, control: Wire) -> None:
        slot = self._publisher.slot_found(control)
        if slot is None or slot.retained is None:
            return
        self.retained = slot.retained
        if slot.retained > self._warned_at:
            self._warned_at = 2 * slot.retained
            _log.warning(
                "%s: the server keeps %.1f GiB of its log for the slot %s, because no checkpoint is behind it",
                self._publisher.place,
                slot.retained / (1 << 30),
                self._publisher.slot,
            )


class _Stream:
    """The log, over one connection."""

    def __init__(self, follower: Follower, control: Wire, wire: Wire, table: PublishedTable) -> None:
        self._follower, self._control, self._wire, self._table = follower, control, wire, table
        self._publisher, self._columns = follower._publisher, follower._columns
        self._place = self._publisher.place
        self._following = follower._following
        self._position = (
            follower._position
        )  # behind the last transaction; that of the follower: behind what it has handed on
        self._received = self._position.lsn or 0
        self._told = 0.0
        self._oid = table.oid.to_bytes(4, "big")
        self._known = dict(table.known)
        self._layout = self._checked_layout(None)
        self._batch = self._new_batch()
        self._transaction: ChangeTransaction | None = None
        self._done = 0  # changes of the transaction
        self._passed_over = 0  # so many of them were read before
        self._parts: list[tuple[int, Key | None]] = [
            (part.lsn, None if part.last is None else table.read_key(part.last)) for part in self._position.parts
        ]

    def _new_batch(self) -> ChangeBatch:
        return ChangeBatch(self._columns, self._layout, self._publisher.name)

    @property
    def left(self) -> float:
        """Seconds until the server must hear from us."""
        return max(0.0, self._told + self._following.heartbeat - time.monotonic())

    def tell(self, wants_answer: bool = False) -> None:
        """What may go."""
        self._told = time.monotonic()
        now = int((time.time() - _ZERO) * 1e6)
        confirmed = min(self._follower._confirmed, self._received)
        self._wire.send(_STATUS.pack(b"r", self._received, confirmed, confirmed, now, wants_answer))

    def _beat(self) -> None:
        self.tell()
        self._follower._look_at_slot(self._control)

    def run(self) -> None:
        wire = self._wire
        while True:
            data = wire.copied()
            if data is None:
                wire.look()
                data = wire.copied()
            if data is None:
                self._rest()
                if self._follower._position.end:
                    return
            elif data[0] == ord("k"):
                self._alive(data)
            elif data[0] == ord("w"):
                self._take(data)
            else:
                raise ValueError(f"a message of the kind {data[:1]!r}")

    def _rest(self) -> None:
        """Nothing has arrived."""
        follower, position = self._follower, self._position
        if len(self._batch):
            if follower._ahead.is_empty:
                self._flush()
            else:
                self._wire.wait(_SOON)
                if not self.left:
                    self._beat()
            return
        is_bounded = position.until is not None
        if is_bounded and self._transaction is None and (position.lsn or 0) >= position.ends_at:
            follower._position = dataclasses.replace(position, end=True)
            return
        self._wire.wait(min(self.left, _ASKING) if is_bounded else self.left)
        if is_bounded:
            self.tell(wants_answer=True)
        elif not self.left:
            self._beat()
            if self._transaction is None and position != follower._position and follower._ahead.is_empty:
                follower._position = position
                if follower._ahead.room(0):
                    follower._ahead.hand_on(None, position)

    def _alive(self, data: bytes) -> None:
        _, end, _, wants_answer = _ALIVE.unpack(data)
        self._received = max(self._received, end)
        if self._transaction is None:
            self._position = self._position.behind(end)
        if wants_answer or not self.left:
            self.tell()

    def _take(self, data: bytes) -> None:
        kind = data[_BODY]
        if kind in _OPS:
            if data[_BODY + 1 : _ROW] == self._oid:
                self._change(_OPS[kind], data)
        elif kind == ord("B"):
            begun = pgoutput.begin(data, _BODY + 1)
            self._transaction = ChangeTransaction(begun.commit, begun.time, begun.xid)
            self._passed_over = self._position.done if begun.commit == self._position.commit else 0
            self._done = 0
        elif kind == ord("C"):
            end = pgoutput.end_of_commit(data, _BODY + 1)
            self._received = max(self._received, end)
            self._transaction = None
            self._position = self._position.behind(end)
        elif kind == ord("R"):
            self._relation(pgoutput.relation(data, _BODY + 1))
        elif kind == ord("T"):
            if self._table.oid in pgoutput.truncated(data, _BODY + 1):
                self._truncate()
        elif kind not in _PASSED_OVER:
            raise ValueError(f"a message of pgoutput of the kind {chr(kind)!r}")

    # ---- What happened to a row ----

    def _change(self, op: str, data: bytes) -> None:
        self._done += 1
        if self._done <= self._passed_over:
            return
        is_key, old, new = pgoutput.change(data, _ROW)
        if old is not None and new is not None:
            self._update(is_key, old, new)
        else:
            self._add(op, old, new)
        if len(self._batch) >= BATCH_ROWS - 1:  # an update may be two rows
            self._flush()

    def _update(self, is_key: bool, old: Values, new: Values) -> None:
        key = self._layout.key
        if not is_key:  # all of the old row is there, also what is not sent again
            new = [before if after is UNSENT else after for before, after in zip(old, new, strict=True)]
        else:
            for place in key:
                if new[place] is UNSENT:
                    new[place] = old[place]
        if all(old[place] == new[place] for place in key):
            self._add("u", old, new)
            return
        missing = [name for name, value in zip(self._layout.names, new, strict=True) if value is UNSENT]
        if missing := [name for name in missing if name in self._columns.wanted]:
            raise InvalidArgument(
                f"{self._place}: the key of a row was changed, and the server does not send its column {missing[0]!r}, "
                f"which is stored apart (TOAST): ALTER TABLE {self._publisher.quoted_table} REPLICA IDENTITY FULL, and "
                "begin anew, without the checkpoints"
            )
        self._add("d", old, None)
        self._add("c", None, new)

    def _add(self, op: str, old: Values | None, new: Values | None) -> None:
        transaction = self._transaction
        assert transaction is not None
        if self._position.parts:
            row = old if new is None else new
            assert row is not None
            key = [value if isinstance(value, bytes) else None for value in (row[place] for place in self._layout.key)]
            if is_covered(self._parts, transaction.lsn, self._table.read_key(key)):
                return
        self._batch.add(op, transaction, old, new)

    def _truncate(self) -> None:
        self._done += 1
        if self._done <= self._passed_over:
            return
        if not self._following.truncate_is_row or self._position.parts:
            raise InvalidArgument(
                f"{self._place}: TRUNCATE has removed all rows, which are not named one by one: begin anew, without "
                'the checkpoints. With truncate = "row", it is a row whose op is t'
            )
        assert self._transaction is not None
        self._batch.add("t", self._transaction, None, None)

    # ---- What the table is ----

    def _relation(self, relation: pgoutput.LoggedTable) -> None:
        own = f"{relation.schema}.{relation.name}"
        if relation.oid != self._table.oid:
            if own == self._publisher.name:
                raise InvalidArgument(f"{self._place} was made anew: begin anew, too, without the checkpoints")
            return
        if own != self._publisher.name:
            raise InvalidArgument(f"{self._place} is called {own} now: correct its name")
        layout = self._checked_layout(relation)
        if layout != self._layout:
            self._flush()
            self._layout, self._batch = layout, self._new_batch()

    def _checked_layout(self, relation: pgoutput.LoggedTable | None) -> Layout:
        """None: the table as it is now, until the server tells."""
        if relation is None:
            declared = dict(self._table.declared)
        else:
            declared = {column.name: self._declared(column) for column in relation.columns}
        self._columns.check(declared, self._place)
        names = list(declared)
        if missing := [name for name in self._table.key if name not in names]:
            raise InvalidArgument(f"{self._place}: its changes have no column {missing[0]!r}, which is of its key")
        return Layout(names, [names.index(name) for name in self._table.key])

    def _declared(self, column: pgoutput.RelationColumn) -> str:
        known = column.type, column.modifier
        if known not in self._known:
            self._known[known] = self._publisher.type_of(self._control, *known)
        return self._known[known]

    def _flush(self) -> None:
        if not len(self._batch):
            return
        batch, self._batch = self._batch, self._new_batch()
        position = self._position
        if self._transaction is not None and self._done:
            done = max(self._done, self._passed_over)
            position = dataclasses.replace(position, commit=self._transaction.lsn, done=done)
        self._follower._hand_on(batch, position, self)
        self._position = dataclasses.replace(self._position, rows=self._follower._position.rows)
        if not self.left:
            self._beat()
