"""How far a reader of changes has come, as checkpoints have it.

A snapshot is read in the order of the table's key. If a reader is killed on the way, the next one reads the rest with a
snapshot of its own: a part for each. The rows of a part are as old as its snapshot, so of a change that was committed
before that, its rows need nothing: `is_covered`.

Guarantees: with the parts, each row of the snapshot and each change behind it is read once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

from ..interface import Json

Key = tuple[int | bytes, ...]
"""Of a row; PostgreSQL orders them as Python does."""


@dataclasses.dataclass(frozen=True)
class SnapshotPart:
    """Of the snapshot. lsn: of the last commit before it. last: the texts of the last key in it; None: all others."""

    lsn: int
    last: tuple[str, ...] | None


@dataclasses.dataclass(frozen=True)
class ChangesPosition:
    """system: the database cluster's id; None: nothing has been read. table: its oid. rows: the number of those that
    were read.

    parts: of the snapshot. lsn: all that was committed before it has been read; None: the snapshot has not ended.
    commit, done: of the transaction behind it, so many changes were read, too. until: where reading ends (`ends_at`);
    None: nowhere. end: it has.
    """

    system: str | None = None
    table: int = 0
    rows: int = 0
    parts: tuple[SnapshotPart, ...] = ()
    lsn: int | None = None
    commit: int = 0
    done: int = 0
    until: int | None = None
    end: bool = False

    @property
    def json(self) -> Json:
        if self.system is None:
            return {}
        known: dict[str, Any] = {"system": self.system, "table": self.table, "rows": self.rows}
        if self.parts:
            known["parts"] = [[part.lsn, None if part.last is None else list(part.last)] for part in self.parts]
        known |= {name: value for name in ("lsn", "until") if (value := getattr(self, name)) is not None}
        known |= {"commit": self.commit, "done": self.done} if self.done else {}
        return known | ({"end": True} if self.end else {})

    @classmethod
    def of(cls, json: Json) -> Self:
        parts = [SnapshotPart(lsn, None if last is None else tuple(last)) for lsn, last in json.get("parts", ())]
        return cls(**{**json, "parts": tuple(parts)})

    @property
    def covered(self) -> int:
        """Some changes that were committed before this one are in the snapshot."""
        return max((part.lsn for part in self.parts), default=0)

    @property
    def ends_at(self) -> int:
        """Where a bounded reader ends. Parts of the snapshot fit together only behind the changes between them."""
        return max(self.until or 0, self.covered)

    def behind(self, lsn: int) -> Self:
        """All transactions before it have been read."""
        lsn = max(lsn, self.lsn or 0)
        parts = self.parts if lsn < self.covered else ()
        commit, done = (self.commit, self.done) if lsn <= self.commit else (0, 0)
        return dataclasses.replace(self, lsn=lsn, parts=parts, commit=commit, done=done)


def is_covered(parts: Sequence[tuple[int, Key | None]], commit: int, key: Key) -> bool:
    """Whether the snapshot has what a transaction did to a row. parts: with their last keys."""
    for lsn, last in parts:
        if last is None or key <= last:
            return commit < lsn
    return False
