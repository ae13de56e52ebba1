"""Connection profiles and tables.

Guarantees: a profile that tables use, and a table that pipelines use, cannot be deleted; names of tables differ by more
than upper and lower case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from .database import now
from .errors import InUse, NotFound, once
from .models import ConnectionProfileRow, ConnectionTableRow, ConnectionTableUse, new_id
from .paging import RowPage, page


class TableRow(NamedTuple):
    """consumers: how many pipelines use it."""

    table: ConnectionTableRow
    profile: ConnectionProfileRow | None
    consumers: int


def create_profile(
    session: Session, *, name: str, connector: str, config: Mapping[str, Any], description: str = ""
) -> ConnectionProfileRow:
    """Raises Taken."""
    time = now()
    profile = ConnectionProfileRow(
        id=new_id("cp"),
        name=name,
        connector=connector,
        config=dict(config),
        description=description,
        created_at=time,
        updated_at=time,
    )
    session.add(profile)
    with once(f"there is a connection profile {name} already: choose another name"):
        session.flush()
    return profile


def profile(session: Session, profile_id: str) -> ConnectionProfileRow:
    """Raises NotFound."""
    row = session.scalars(select(ConnectionProfileRow).where(ConnectionProfileRow.id == profile_id)).first()
    if row is None:
        raise NotFound("Connection profile not found")
    return row


def profiles(session: Session) -> Sequence[ConnectionProfileRow]:
    """The one that was changed last comes first."""
    order = ConnectionProfileRow.updated_at.desc(), ConnectionProfileRow.serial.desc()
    return session.scalars(select(ConnectionProfileRow).order_by(*order)).all()


def change_profile(session: Session, profile_id: str, changes: Mapping[str, Any]) -> ConnectionProfileRow:
    """changes: columns by name: name, config. Raises NotFound, Taken."""
    row = profile(session, profile_id)
    with once(f"there is a connection profile {changes.get('name')} already: choose another name"):
        for name, value in changes.items():
            setattr(row, name, value)
        row.updated_at = now()
        session.flush()
    return row


def delete_profile(session: Session, profile_id: str) -> None:
    """Raises NotFound, InUse."""
    row = profile(session, profile_id)
    users = session.scalars(select(ConnectionTableRow.name).where(ConnectionTableRow.profile_id == profile_id)).all()
    if users:
        raise InUse(f"connection tables use it: delete {', '.join(users)} first")
    session.delete(row)
    session.flush()


def create_table(
    session: Session,
    *,
    name: str,
    connector: str,
    table_type: str,
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    profile_id: str | None = None,
) -> TableRow:
    """Raises NotFound for the profile, Taken."""
    used = None if profile_id is None else profile(session, profile_id)
    table = ConnectionTableRow(
        id=new_id("ct"),
        name=name,
        key=name.lower(),
        table_type=table_type,
        connector=connector,
        profile_id=profile_id,
        config=dict(config),
        schema=dict(schema),
        created_at=now(),
    )
    session.add(table)
    with once(f"there is a connection table {name} already: choose another name"):
        session.flush()
    return TableRow(table, used, 0)


def table(session: Session, table_id: str) -> TableRow:
    """Raises NotFound."""
    row = session.execute(_tables().where(ConnectionTableRow.id == table_id)).first()
    if row is None:
        raise NotFound("Connection table not found")
    return TableRow(*row)


def change_table(session: Session, table_id: str, changes: Mapping[str, Any]) -> TableRow:
    """changes: columns by name: name, table_type, profile_id, config, schema. Raises NotFound, Taken."""
    row = table(session, table_id).table
    with once(f"there is a connection table {changes.get('name')} already: choose another name"):
        for name, value in changes.items():
            setattr(row, name, value)
        row.key = row.name.lower()
        session.flush()
    return table(session, table_id)


def tables(session: Session, limit: int, starting_after: str | None = None) -> RowPage[TableRow]:
    """Newest first."""
    rows = page(session, _tables(), ConnectionTableRow.serial, ConnectionTableRow.id, limit, starting_after)
    return RowPage([TableRow(*row) for row in rows.rows], rows.has_more)


def _tables() -> Select[Any]:
    consumers = (
        select(func.count())
        .select_from(ConnectionTableUse)
        .where(ConnectionTableUse.table_id == ConnectionTableRow.id)
        .scalar_subquery()
    )
    query: Select[Any] = select(ConnectionTableRow, ConnectionProfileRow, consumers).outerjoin(
        ConnectionProfileRow, ConnectionProfileRow.id == ConnectionTableRow.profile_id
    )
    return query


def every_table(session: Session) -> Sequence[ConnectionTableRow]:
    """By name."""
    return session.scalars(select(ConnectionTableRow).order_by(ConnectionTableRow.key)).all()


def delete_table(session: Session, table_id: str) -> None:
    """Raises NotFound, InUse."""
    row = table(session, table_id).table
    users = session.scalars(select(ConnectionTableUse.pipeline_id).where(ConnectionTableUse.table_id == table_id)).all()
    if users:
        raise InUse(f"pipelines use it: delete {', '.join(users)} first")
    session.delete(row)
    session.flush()
