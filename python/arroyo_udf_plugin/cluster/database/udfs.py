"""UDFs that every query may call, the libraries built of them, and the definitions that they have had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete as delete_rows
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from . import places
from .database import now, tell_changes
from .errors import NotFound, once
from .models import UdfRow, UdfVersion, new_id

_KEPT = 50
"""Versions of a function."""


def create(
    session: Session,
    *,
    prefix: str,
    name: str,
    language: str,
    definition: str,
    description: str | None = None,
    artifact: str | None = None,
) -> UdfRow:
    """artifact: the hash of its library. Raises Taken."""
    time = now()
    udf = UdfRow(
        id=new_id("udf"),
        prefix=prefix,
        name=name,
        key=name.lower(),
        language=language,
        definition=definition,
        description=description,
        artifact=artifact,
        created_at=time,
        updated_at=time,
    )
    session.add(udf)
    with once(f"there is a UDF {name} already: rename this one, or delete that one"):
        session.flush()
    _note(session, udf)
    return udf


def versions(session: Session, udf_id: str) -> Sequence[UdfVersion]:
    """The newest first: that is the one that it has."""
    query = select(UdfVersion).where(UdfVersion.udf_id == udf_id)
    return session.scalars(query.order_by(UdfVersion.number.desc())).all()


def _note(session: Session, udf: UdfRow) -> None:
    """A definition that it did not have a moment ago. The oldest ones go."""
    last = session.scalar(select(func.max(UdfVersion.number)).where(UdfVersion.udf_id == udf.id)) or 0
    session.add(
        UdfVersion(
            udf_id=udf.id,
            number=last + 1,
            language=udf.language,
            definition=udf.definition,
            created_at=udf.updated_at,
        )
    )
    session.execute(delete_rows(UdfVersion).where(UdfVersion.udf_id == udf.id, UdfVersion.number <= last + 1 - _KEPT))
    session.flush()


def listed(session: Session) -> Sequence[UdfRow]:
    """By name."""
    return session.scalars(select(UdfRow).order_by(UdfRow.key)).all()


def get(session: Session, udf_id: str) -> UdfRow:
    """Raises NotFound."""
    row = session.scalars(select(UdfRow).where(UdfRow.id == udf_id)).first()
    if row is None:
        raise NotFound("UDF not found")
    return row


def change(session: Session, udf_id: str, changes: Mapping[str, Any]) -> UdfRow:
    """changes: columns by name. Pipelines keep what they have, until they are planned anew; a library that nobody has
    then is removed later, by the controller. Raises NotFound, Taken."""
    row = get(session, udf_id)
    before = row.artifact
    had = row.language, row.definition
    with once(f"there is a UDF {changes.get('name')} already: rename this one, or delete that one"):
        for name, value in changes.items():
            setattr(row, name, value)
        row.key = row.name.lower()
        row.updated_at = now()
        session.flush()
    if had != (row.language, row.definition):
        _note(session, row)
    if before is not None and before != row.artifact:
        tell_changes(session)
        places.release(session, [before])
    return row


def delete(session: Session, udf_id: str) -> None:
    """Pipelines that use it keep it; what nobody has then is removed later, by the controller. Raises NotFound."""
    row = get(session, udf_id)
    session.delete(row)
    session.flush()
    tell_changes(session)
    places.release(session, [row.artifact] if row.artifact else [])
