"""The server whose changes are read: what its table is, the publication that names it, and the slot, for which the
server keeps its log.

Guarantees: whatever stands in the way is an error that names it and says what to do. A publication is made if there is
none, and never dropped. A slot that is not what a checkpoint left is refused, because changes could be missing.

Assumes: PostgreSQL 13 or later.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Mapping, Sequence

from ....errors import InvalidArgument
from ..database import quoted
from ..interrupt import Interrupt
from .positions import ChangesPosition, Key
from .wire import Lost, Refused, Wire, conninfo, driver

_DENIED = "42501"  # SQLSTATE: insufficient privilege
_EXISTS = "42710"
_FULL = "53400"  # no slot or connection of this kind is left
IN_USE = "55006"
_GOING, _TURN = 5.0, 0.02  # seconds until a reader that has gone is noticed, and between two looks
_NUMBERS = ("smallint", "integer", "bigint")
_TEXTS = ("text", "character varying")


class SlotInUse(Lost):
    """Another process reads from the slot."""


@dataclasses.dataclass(frozen=True)
class PublishedTable:
    """declared: the columns with their types, without those that are computed from others. known: their types as the
    log has them. key: columns that name a row; none: it has no such. is_whole: an old row is sent with all columns."""

    oid: int
    declared: Mapping[str, str]
    known: Mapping[tuple[int, int], str]
    key: Sequence[str]
    is_whole: bool
    kind: str

    @property
    def is_ordered(self) -> bool:
        """Whether its key is ordered here as it is there."""
        return bool(self.key) and all(self._kind(name) in (*_NUMBERS, *_TEXTS, "uuid") for name in self.key)

    def _kind(self, name: str) -> str:
        return self.declared[name].partition("(")[0]

    def read_key(self, texts: Sequence[bytes | str | None]) -> Key:
        """texts: of the key's columns."""
        parts = [text.encode() if isinstance(text, str) else text or b"" for text in texts]
        return tuple(
            int(part) if self._kind(name) in _NUMBERS else part for name, part in zip(self.key, parts, strict=True)
        )

    def order(self) -> str:
        """Of the key's columns, for statements."""
        return ", ".join(map(self._ordered, self.key))

    def _ordered(self, name: str) -> str:
        return f'{quoted(name)} COLLATE "C"' if self._kind(name) in _TEXTS else quoted(name)

    def behind(self, last: Sequence[str], wire: Wire) -> str:
        """A condition: rows with a larger key."""
        texts = [
            f"{wire.literal(text.encode())}::{self._kind(name)}" for name, text in zip(self.key, last, strict=True)
        ]
        return f"({self.order()}) > ({', '.join(texts)})"


@dataclasses.dataclass(frozen=True)
class Slot:
    """confirmed: the server keeps changes from here on. retained: bytes of its log that it keeps for the slot; None:
    this is not known."""

    plugin: str
    database: str
    confirmed: int
    status: str
    retained: int | None


@dataclasses.dataclass(frozen=True)
class Publisher:
    """uri: of the database. table: with or without its schema."""

    uri: str = dataclasses.field(repr=False)
    table: str
    slot: str
    publication: str

    @property
    def server(self) -> str:
        """For people."""
        try:
            given = driver().conninfo.conninfo_to_dict(self.uri)
        except driver().Error:
            return "PostgreSQL"
        return f"PostgreSQL at {given.get('host', 'localhost')}, database {given.get('dbname', given.get('user', ''))}"

    @property
    def name(self) -> str:
        """Of the table, with its schema."""
        return ".".join(self._names)

    @property
    def _names(self) -> tuple[str, str]:
        schema, dot, table = self.table.partition(".")
        return (schema, table) if dot else ("public", schema)

    @property
    def place(self) -> str:
        return f"{self.server}: table {self.name}"

    @property
    def quoted_table(self) -> str:
        return ".".join(map(quoted, self._names))

    # ---- Connections ----

    def connected(self, interrupt: Interrupt) -> Wire:
        """For statements. Raises Lost, InvalidArgument."""
        return self._connected(conninfo(self.uri), interrupt)

    def replicating(self, interrupt: Interrupt) -> Wire:
        """For what is replicated. Raises Lost, InvalidArgument."""
        return self._connected(conninfo(self.uri, replication="database"), interrupt)

    def _connected(self, conninfo: str, interrupt: Interrupt) -> Wire:
        try:
            return Wire(conninfo, interrupt, self.server)
        except Refused as error:
            raise self.refusal(error) from None

    def refusal(self, error: Refused) -> InvalidArgument:
        """What it means to a user."""
        text = str(error)
        if "replication" in text and ("permission denied" in text or "must be superuser" in text):
            return InvalidArgument(
                f"{self.server}: the user may not read changes: let an administrator run ALTER ROLE ... REPLICATION "
                f"({text})"
            )
        if error.code == _FULL and "slots" in text:
            return InvalidArgument(
                f"{self.server}: there is no slot left: raise max_replication_slots, or drop one that nobody needs "
                f"(pg_replication_slots lists them). A snapshot needs a second one for a moment ({text})"
            )
        if error.code == _FULL or "max_wal_senders" in text:
            return InvalidArgument(f"{self.server}: raise max_wal_senders: a reader and its snapshot are two ({text})")
        if "wal_level" in text:
            return self._no_log("lower")
        return InvalidArgument(f"{self.server}: {text}")

    def _no_log(self, level: str) -> InvalidArgument:
        return InvalidArgument(
            f"{self.server}: wal_level is {level}, so its log has no changes of rows: ALTER SYSTEM SET wal_level = "
            "'logical', and start it again"
        )

    # ---- The table ----

    def found(self, wire: Wire) -> PublishedTable:
        """Raises InvalidArgument."""
        schema, name = (wire.literal(each.encode()) for each in self._names)
        tables = wire.rows(
            "SELECT c.oid, c.relkind, c.relreplident FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE n.nspname = {schema} AND c.relname = {name}"
        )
        if not tables:
            raise InvalidArgument(f"{self.server} has no table {self.name}: create it, or correct its name")
        oid, kind, identity = _texts(tables[0])
        if kind not in ("r", "p"):
            raise InvalidArgument(f"{self.place} is no table, but a view or the like, which has no changes of its own")
        columns = [
            _texts(row)
            for row in wire.rows(
                "SELECT attname, format_type(atttypid, atttypmod), atttypid, atttypmod FROM pg_attribute "
                f"WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
            )
        ]
        index = "i.indisreplident" if identity == "i" else "i.indisprimary"
        key = wire.rows(
            "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (number, place) "
            f"JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE i.indrelid = {oid} "
            f"AND {index} AND k.place <= i.indnkeyatts ORDER BY k.place"
        )
        if identity == "n" or (identity in "di" and not key):
            raise InvalidArgument(
                f"{self.place} has no primary key, or REPLICA IDENTITY NOTHING, so nobody can tell which row was "
                f"updated or deleted: add a primary key, or ALTER TABLE {self.quoted_table} REPLICA IDENTITY FULL"
            )
        return PublishedTable(
            int(oid),
            {column: declared for column, declared, _, _ in columns},
            {(int(type_), int(modifier)): declared for _, declared, type_, modifier in columns},
            [column for (column,) in map(_texts, key)],
            identity == "f",
            kind,
        )

    def check_log(self, wire: Wire) -> None:
        """Raises InvalidArgument."""
        ((level,),) = map(_texts, wire.rows("SHOW wal_level"))
        if level != "logical":
            raise self._no_log(level)

    def check_readable(self, wire: Wire) -> None:
        """For a snapshot. Raises InvalidArgument."""
        table = wire.literal(self.quoted_table.encode())
        ((may_read, user),) = map(_texts, wire.rows(f"SELECT has_table_privilege({table}, 'SELECT'), current_user"))
        if may_read != "t":
            raise InvalidArgument(
                f"{self.place}: {user} may not read it: GRANT SELECT ON {self.quoted_table} TO {quoted(user)}, or "
                "leave out the snapshot"
            )

    def type_of(self, wire: Wire, type_: int, modifier: int) -> str:
        """As a table declares it."""
        ((declared,),) = map(_texts, wire.rows(f"SELECT format_type({type_}, {modifier})"))
        return declared

    # ---- The publication ----

    def publish(self, wire: Wire, table: PublishedTable) -> None:
        """Makes the publication if it is not there, and checks it. Raises InvalidArgument."""
        name = wire.literal(self.publication.encode())
        look = (
            f"SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = {name}"
        )
        found = wire.rows(look)
        if not found:
            through_root = " WITH (publish_via_partition_root = true)" if table.kind == "p" else ""
            statement = f"CREATE PUBLICATION {quoted(self.publication)} FOR TABLE {self.quoted_table}{through_root}"
            try:
                wire.rows(statement)
            except Refused as error:
                if error.code == _DENIED:
                    raise InvalidArgument(
                        f"{self.place}: the user may not make the publication {self.publication}: let the table's "
                        f"owner do so: {statement} ({error})"
                    ) from None
                if error.code != _EXISTS:  # else another one was quicker
                    raise self.refusal(error) from None
            found = wire.rows(look)
        if found[0][0] != b"t":
            raise InvalidArgument(
                f"{self.place}: the publication {self.publication} leaves out operations: ALTER PUBLICATION "
                f"{quoted(self.publication)} SET (publish = 'insert, update, delete, truncate')"
            )
        schema, own = (wire.literal(each.encode()) for each in self._names)
        tables = f"SELECT 1 FROM pg_publication_tables WHERE pubname = {name} AND schemaname = {schema}"
        if not wire.rows(f"{tables} AND tablename = {own}"):
            instead = (
                "it has its partitions one by one: SET (publish_via_partition_root = true)"
                if table.kind == "p"
                else f"ALTER PUBLICATION {quoted(self.publication)} ADD TABLE {self.quoted_table}"
            )
            raise InvalidArgument(f"{self.place} is not in the publication {self.publication}: {instead}")

    # ---- The slot ----

    def system(self, replicating: Wire) -> str:
        """The database cluster's id."""
        return _texts(replicating.rows("IDENTIFY_SYSTEM")[0])[0]

    def end_of_log(self, wire: Wire) -> int:
        ((lsn,),) = map(_texts, wire.rows("SELECT pg_current_wal_flush_lsn()"))
        return lsn_of(lsn)

    def slot_found(self, wire: Wire) -> Slot | None:
        found = wire.rows(
            "SELECT plugin, database, confirmed_flush_lsn, wal_status, "
            "pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint "
            f"FROM pg_replication_slots WHERE slot_name = {wire.literal(self.slot.encode())}"
        )
        if not found:
            return None
        plugin, database, confirmed, status, retained = _texts(found[0])
        return Slot(
            plugin,
            database,
            lsn_of(confirmed) if confirmed else 0,
            status,
            int(retained) if retained else None,
        )

    def make_slot(self, replicating: Wire) -> int:
        """Changes from the commit that is returned on are kept."""
        return self._slot(replicating, f"{quoted(self.slot)} LOGICAL pgoutput NOEXPORT_SNAPSHOT")[0]

    def make_snapshot(self, replicating: Wire) -> tuple[int, str]:
        """Its name, which lives until the connection is used again, and where it is in the log."""
        name = f"{self.slot[:40]}_snapshot_{secrets.token_hex(4)}"
        return self._slot(replicating, f"{quoted(name)} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT")

    def _slot(self, replicating: Wire, what: str) -> tuple[int, str]:
        waits_for = "transactions that are open to end: a slot begins between transactions"
        try:
            ((_, lsn, snapshot, _),) = map(_texts, replicating.rows(f"CREATE_REPLICATION_SLOT {what}", waits_for))
        except Refused as error:
            if error.code == _EXISTS:
                raise Lost(str(error)) from None  # another one was quicker: look again
            raise self.refusal(error) from None
        return lsn_of(lsn), snapshot

    def drop_slot(self, wire: Wire) -> None:
        """Waits a moment for a reader that has just gone."""
        late = time.monotonic() + _GOING
        while True:
            try:
                wire.rows(f"SELECT pg_drop_replication_slot({wire.literal(self.slot.encode())})")
            except Refused as error:
                if error.code != IN_USE or time.monotonic() > late:
                    raise
                time.sleep(_TURN)
            else:
                return

    def check_slot(self, slot: Slot | None, database: str) -> Slot:
        """Whether its changes can be read. Raises InvalidArgument."""
        begin_anew = "begin anew, without the checkpoints, so that a new snapshot is read"
        if slot is None:
            raise InvalidArgument(
                f"{self.place}: the slot {self.slot} is gone: it was dropped, so changes may be missing: {begin_anew}"
            )
        if slot.plugin != "pgoutput" or slot.database != database:
            raise InvalidArgument(
                f"{self.place}: the slot {self.slot} is of the plugin {slot.plugin or 'of physical replication'} and "
                f"of the database {slot.database or 'of none'}: name another one"
            )
        if slot.status == "lost":
            raise InvalidArgument(
                f"{self.place}: the server has removed the part of its log that the slot {self.slot} needs "
                f"(max_slot_wal_keep_size), so changes are missing: SELECT pg_drop_replication_slot('{self.slot}'), "
                f"and {begin_anew}"
            )
        return slot

    def check_position(self, slot: Slot, position: ChangesPosition, table: PublishedTable, system: str) -> None:
        """Whether the slot still has what comes next. Raises InvalidArgument."""
        if position.system != system:
            raise InvalidArgument(
                f"{self.server} is another database cluster than the checkpoints are of: name that one, or begin anew"
            )
        if position.table != table.oid:
            raise InvalidArgument(f"{self.place} was made anew since the checkpoint: begin anew, too")
        begins = position.parts[0].lsn if position.lsn is None and position.parts else position.lsn
        if begins is not None and slot.confirmed > begins:
            raise InvalidArgument(
                f"{self.place}: the slot {self.slot} begins with {lsn_text(slot.confirmed)} now, and the checkpoint "
                f"ends with {lsn_text(begins)}: another pipeline reads from it, or the checkpoint is an older "
                "one. Changes between them are gone: begin anew, with a slot of its own"
            )

    def database(self, wire: Wire) -> str:
        return _texts(wire.rows("SELECT current_database()")[0])[0]


def lsn_of(text: str) -> int:
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _texts(row: Sequence[bytes | None]) -> list[str]:
    return ["" if value is None else value.decode() for value in row]
