"""The messages of PostgreSQL's plugin pgoutput, protocol 1, as its documentation has them ("Logical Replication Message
Formats").

Guarantees: a message that is none of these, or ends too early, is a ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass


class _Unsent:
    def __repr__(self) -> str:
        return "unsent"


UNSENT = _Unsent()
"""A value that is stored apart (TOAST), and was not changed."""
Values = list[bytes | _Unsent | None]
"""Texts of a row."""

_ZERO = 946_684_800_000_000  # the year 2000 in microseconds since 1970
_BEGIN, _COMMIT = struct.Struct("!QqI"), struct.Struct("!BQQq")
_RELATION, _COLUMN = struct.Struct("!I"), struct.Struct("!Ii")
_TEXT, _NULL, _TOAST = b"tnu"


@dataclass(frozen=True)
class Begin:
    """commit: where the transaction's commit is in the log. time: of the commit, in microseconds since 1970."""

    commit: int
    time: int
    xid: int


@dataclass(frozen=True)
class RelationColumn:
    """type, modifier: as in pg_attribute."""

    name: str
    type: int
    modifier: int


@dataclass(frozen=True)
class LoggedTable:
    """Sent before the first change of a table, and after the table was changed."""

    oid: int
    schema: str
    name: str
    columns: Sequence[RelationColumn]


def begin(data: bytes, at: int) -> Begin:
    commit, time, xid = _unpacked(_BEGIN, data, at)
    return Begin(commit, time + _ZERO, xid)


def end_of_commit(data: bytes, at: int) -> int:
    """What follows begins there, or behind it."""
    return int(_unpacked(_COMMIT, data, at)[2])


def oid(data: bytes, at: int) -> int:
    """The table of a row that was inserted, updated or deleted."""
    return int(_unpacked(_RELATION, data, at)[0])


def truncated(data: bytes, at: int) -> list[int]:
    """The tables that were."""
    count = oid(data, at)
    return [oid(data, at + 5 + 4 * number) for number in range(count)]


def relation(data: bytes, at: int) -> LoggedTable:
    table = oid(data, at)
    schema, at = _name(data, at + 4)
    name, at = _name(data, at)
    count, at = int.from_bytes(data[at + 1 : at + 3], "big"), at + 3  # behind the replica identity
    columns = []
    for _ in range(count):
        column, at = _name(data, at + 1)
        type_, modifier = _unpacked(_COLUMN, data, at)
        columns.append(RelationColumn(column, type_, modifier))
        at += 8
    return LoggedTable(table, schema, name, columns)


def change(data: bytes, at: int) -> tuple[bool, Values | None, Values | None]:
    """A row before and after its change, each None if it was not sent. First, whether the one before is only a key."""
    old: Values | None = None
    is_key = False
    kind = data[at : at + 1]
    if kind in (b"K", b"O"):
        is_key = kind == b"K"
        old, at = _values(data, at + 1)
        kind = data[at : at + 1]
    if kind != b"N":
        if kind or old is None:
            raise ValueError(f"a row of the kind {kind!r}")
        return is_key, old, None
    new, _ = _values(data, at + 1)
    return is_key, old, new


def _values(data: bytes, at: int) -> tuple[Values, int]:
    count = data[at] << 8 | data[at + 1]
    at += 2
    values: Values = []
    append = values.append
    from_bytes = int.from_bytes
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            begin = at + 5
            at = begin + from_bytes(data[at + 1 : begin], "big")
            append(data[begin:at])
        elif kind == _NULL:
            append(None)
            at += 1
        elif kind == _TOAST:
            append(UNSENT)
            at += 1
        else:
            raise ValueError(f"a value of the kind {chr(kind)!r}")
    if at > len(data):
        raise ValueError("a row that ends too early")
    return values, at


def _name(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def _unpacked(format: struct.Struct, data: bytes, at: int) -> tuple[int, ...]:
    try:
        return format.unpack_from(data, at)
    except struct.error as error:
        raise ValueError(str(error)) from None
