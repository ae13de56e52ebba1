"""What is asked of results that may change, and of the rows that they change with.

    SELECT carrier, count(*) AS n FROM flights GROUP BY carrier          UpdatingRows
    CREATE TABLE people (id BIGINT PRIMARY KEY, ...), of changes         FollowedRows
    FROM orders o LEFT JOIN people p ON o.person = p.id                  JoiningRows
    INSERT INTO a table with a PRIMARY KEY                               NetRows

What changes goes from one to the other as rows that come and go: `SIGN` is 1 for a row that comes, and -1 for one that
goes, which had come before. Results leave as such rows, or as changes:

    op   before   after
    c    null     a row
    u    a row    a row
    d    a row    null
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

import pyarrow as pa

from ...host.aggregate import Aggregate
from ..datafusion.query import Select
from ..datafusion.tokens import tokens

SIGN = pa.field("__s", pa.int8())


@dataclasses.dataclass(frozen=True)
class _Updates:
    time: None = dataclasses.field(default=None, init=False, repr=False)
    window: None = dataclasses.field(default=None, init=False, repr=False)


@dataclasses.dataclass(frozen=True)
class UpdatingRows(_Updates):
    """keys: columns. aggregates: by the names of their results. selects: queries over keys and aggregates, one over the
    other; their result is what changes. ttl: nanoseconds without a row after which a key is forgotten; None: it is not.
    table: the name that aggregates may use for the rows. functions: aggregates of plugins that they call, by name in
    lower case. is_signed: rows come and go. as_rows: so do results; otherwise they are changes."""

    keys: tuple[str, ...]
    aggregates: Mapping[str, str]
    selects: Sequence[Select]
    ttl: int | None
    table: str = "input"
    functions: Mapping[str, Aggregate] = dataclasses.field(default_factory=dict, repr=False)
    is_signed: bool = False
    as_rows: bool = False


@dataclasses.dataclass(frozen=True)
class FollowedRows(_Updates):
    """Rows of a table, out of its changes. keys: the columns that tell its rows apart. operation: the column that says
    what became of a row: "c", "r" and "u" put it there, "d" removes it. unsent: a column with the names of those
    columns that have no value, because they have kept theirs."""

    keys: tuple[str, ...]
    operation: str
    unsent: str | None = None


@dataclasses.dataclass(frozen=True)
class NetRows(_Updates):
    """The changes of a table that has the latest of the rows with a key. keys: its columns."""

    keys: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class JoiningRows(_Updates):
    """keys: pairs of columns, of the left and the right side, which are equal in rows that meet. on: a further
    condition. select: the results' columns, expressions by their names. tables: what these call the two sides. ttl:
    nanoseconds after which a row of a side that has no `SIGN` is forgotten."""

    keys: tuple[tuple[str, str], ...]
    kind: Literal["inner", "left", "right", "full"]
    on: str
    select: Mapping[str, str]
    tables: tuple[str, str]
    ttl: int

    @property
    def keeps(self) -> tuple[bool, bool]:
        """Which sides keep rows that meet nobody."""
        return self.kind in ("left", "full"), self.kind in ("right", "full")

    @property
    def needed(self) -> set[str | None]:
        """The names of columns that it takes, and other words."""
        names = {name for pair in self.keys for name in pair}
        return {SIGN.name, *names} | {token.name for text in (self.on, *self.select.values()) for token in tokens(text)}


Updates = UpdatingRows | FollowedRows | NetRows | JoiningRows
