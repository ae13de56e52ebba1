"""Pages of a list, newest first.

Guarantees: the pages together contain each row that was there at the start once, whatever is added meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from .errors import NotFound

Row = TypeVar("Row")


@dataclass(frozen=True)
class RowPage(Generic[Row]):
    """has_more: there are older rows."""

    rows: Sequence[Row]
    has_more: bool


def page(
    session: Session,
    query: Select[Any],
    serial: InstrumentedAttribute[int],
    public_id: InstrumentedAttribute[str],
    limit: int,
    starting_after: str | None,
) -> RowPage[Any]:
    """The rows of `query` after the one with the id `starting_after`; None: from the newest. Raises NotFound."""
    if starting_after is not None:
        last = session.query(serial).filter(public_id == starting_after).scalar()
        if last is None:
            raise NotFound(f"there is no {starting_after} to start after")
        query = query.where(serial < last)
    rows = session.execute(query.order_by(serial.desc()).limit(limit + 1)).all()
    return RowPage(rows[:limit], len(rows) > limit)
