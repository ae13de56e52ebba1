"""Libraries of functions: where they are stored, and who has them.

A library is stored in three steps: its row with its place (`reserve`); the library there; who has it, in a transaction
that begins with `hold`. Where nobody has it any more, `release` takes the row away, and leaves the place to be removed.

Guarantees: as long as a pipeline or a function has a library, its place stays. Whoever was between `reserve` and `hold`
when it was released is told so, and begins again, with another place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, delete, exists, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ...errors import ArroyoUdfError
from .models import Artifact, ArtifactUse, Leftover, Udf
from .opened import now


class Released(ArroyoUdfError):
    """A library is not where it was reserved any more."""


def reserve(session: Session, sha256: str, *, name: str, language: str, size: int, new_place: Callable[[], str]) -> str:
    """Where the library is, or is to be, stored."""
    found = session.get(Artifact, sha256, with_for_update=True)
    if found is None:
        found = Artifact(sha256=sha256, name=name, language=language, size=size, created_at=now())
        try:
            with session.begin_nested():
                session.add(found)
        except IntegrityError:  # another program has added it meanwhile
            found = session.get_one(Artifact, sha256, with_for_update=True)
    if found.place is None:
        found.place = new_place()
    session.flush()
    return found.place


def hold(session: Session, places: Mapping[str, str]) -> None:
    """Nobody releases these libraries until the end of the transaction. places: by hash. Raises Released."""
    if found := dict(places):
        rows = select(Artifact).where(Artifact.sha256.in_(found)).order_by(Artifact.sha256).with_for_update(read=True)
        if {row.sha256: row.place for row in session.scalars(rows)} != found:
            raise Released("a function was removed meanwhile: try again")


def use(session: Session, pipeline_id: str, hashes: Collection[str]) -> None:
    """From now on the pipeline has these, and no others."""
    before = set(used_by(session, pipeline_id))
    gone = before.difference(hashes)
    session.execute(delete(ArtifactUse).where(ArtifactUse.pipeline_id == pipeline_id, ArtifactUse.artifact.in_(gone)))
    session.add_all(ArtifactUse(artifact=sha256, pipeline_id=pipeline_id) for sha256 in set(hashes) - before)
    session.flush()
    release(session, gone)


def used_by(session: Session, pipeline_id: str) -> Sequence[str]:
    """Hashes."""
    return session.scalars(select(ArtifactUse.artifact).where(ArtifactUse.pipeline_id == pipeline_id)).all()


def unused(session: Session, before: int) -> Sequence[str]:
    """Hashes of libraries that nobody has, reserved before that time."""
    return session.scalars(select(Artifact.sha256).where(~_is_used(), Artifact.created_at < before)).all()


def release(session: Session, hashes: Collection[str]) -> None:
    """Those of them that nobody has any more are left to be removed."""
    if not hashes:
        return
    rows = select(Artifact).where(Artifact.sha256.in_(hashes)).order_by(Artifact.sha256).with_for_update()
    session.scalars(rows).all()  # waits for those who hold them; only then it is known who has them
    for row in session.scalars(select(Artifact).where(Artifact.sha256.in_(hashes), ~_is_used())).all():
        if row.place is not None:
            session.add(Leftover(place=row.place))
        session.delete(row)
    session.flush()


def _is_used() -> ColumnElement[bool]:
    by_pipeline = exists().where(ArtifactUse.artifact == Artifact.sha256)
    return or_(by_pipeline, exists().where(Udf.artifact == Artifact.sha256))
