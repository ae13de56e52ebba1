"""Where the states of jobs and the libraries of functions lie, and who has those libraries.

A library is stored in three steps: its row with its place (`reserve`); the library there; who has it, in a transaction
that begins with `hold`. Where nobody has it any more, `release` takes the row away, and leaves the place to be removed.

Guarantees: a job's place is decided once, without variables. It becomes another one only by `move`, when somebody says
that everything was moved. As long as a pipeline or a function has a library, its place stays. Whoever was between
`reserve` and `hold` when it was released is told so, and begins again, with another place.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ...engine.connectors.described import VARIABLE
from ...engine.connectors.location import Location, location_of
from ...errors import ArroyoUdfError, InvalidArgument
from .database import Database, LeaderLock, now
from .errors import InUse
from .models import Artifact, ArtifactUse, JobRow, Leftover, PipelineRow, UdfRow

_log = logging.getLogger(__name__)


def state_location(text: str, environment: Mapping[str, str]) -> Location:
    """Where state is to be, whatever the working directory and the environment are later. text: may have variables.

    Raises InvalidArgument.
    """
    missing = [name for is_text, name in VARIABLE.findall(text) if not is_text and name not in environment]
    if missing:
        raise InvalidArgument(
            f"{text}: {missing[0]} is not among the env_vars of the pipeline, so nobody knows where its state is: "
            "add it, or write its value"
        )
    value = VARIABLE.sub(lambda match: match[0][1:] if match[1] else environment[match[2]], text)
    return location_of(value).absolute()


def state_of(job: JobRow) -> Location | None:
    """Where the checkpoints of its history are; None: it has none. Raises InvalidArgument."""
    return None if job.place is None else location_of(job.place).child(str(job.history))


def decide(session: Session, checkpoints: str) -> None:
    """Of jobs that an earlier version of the program has created: where that one looked for their state."""
    asked = select(PipelineRow, JobRow).join(JobRow, JobRow.pipeline_id == PipelineRow.id)
    for pipeline, job in session.execute(asked.where(PipelineRow.is_preview.is_(False), JobRow.place.is_(None))):
        text = pipeline.state_url or checkpoints
        variables = {name: value for name, value in job.env_vars.items() if isinstance(value, str)}  # that are readable
        try:
            job.place = str(state_location(text, {**os.environ, **variables}).child(job.id))
        except InvalidArgument as error:  # nobody begins anew for that: its next start finds nothing there, and fails
            _log.warning("the place of the state of job %s is not known: %s", job.id, error)
            job.place = f"{text.rstrip('/')}/{job.id}"


_PATIENCE = 1.0  # PostgreSQL lets go of the lock of a controller that has stopped a little later


def move(database: Database, old: str, new: str) -> int:
    """What lay in the folder or bucket `old` is in `new` by now: states, libraries, and what is to be removed.

    Returns how many places are others by that. Raises InvalidArgument, and InUse while a controller leads.
    """
    before, after = (str(location_of(text).absolute()).rstrip("/") for text in (old, new))
    lock, patience = LeaderLock(database), time.monotonic() + _PATIENCE
    while not (is_held := lock.hold()) and time.monotonic() < patience:
        time.sleep(_PATIENCE / 20)
    if not is_held:
        raise InUse("a controller runs: stop it, because its jobs still use what was moved")

    def moved(place: str) -> str:
        return after + place.removeprefix(before) if _is_below(place, before) else place

    count = 0
    with contextlib.ExitStack() as left:
        left.callback(lock.release)
        session = left.enter_context(database.begin())
        libraries = session.scalars(select(Artifact)).all()
        jobs, leftovers = session.scalars(select(JobRow)).all(), session.scalars(select(Leftover)).all()
        known = [row.place for row in libraries if row.place is not None]
        for pipeline in session.scalars(select(PipelineRow)):
            pipeline.program = _with_libraries(pipeline.program, known, moved)
        placed: list[JobRow | Artifact | Leftover] = [*jobs, *libraries, *leftovers]
        for row in placed:
            if row.place is not None and (place := moved(row.place)) != row.place:
                row.place = place
                count += 1
    return count


def _is_below(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder}/")


def _with_libraries(value: Any, libraries: Sequence[str], moved: Callable[[str], str]) -> Any:
    """A program names its libraries by where they lie, as values and as keys."""
    if isinstance(value, str):
        return moved(value) if any(_is_below(value, library) for library in libraries) else value
    if isinstance(value, list):
        return [_with_libraries(item, libraries, moved) for item in value]
    if isinstance(value, dict):
        return {
            _with_libraries(key, libraries, moved): _with_libraries(item, libraries, moved)
            for key, item in value.items()
        }
    return value


class Released(ArroyoUdfError):
    """A library is not where it was reserved any more."""


def reserve(session: Session, sha256: str, *, name: str, language: str, size: int, new_place: Callable[[], str]) -> str:
    """Where the library is, or is to be, stored."""
    artifact = session.get(Artifact, sha256, with_for_update=True)
    if artifact is None:
        artifact = Artifact(sha256=sha256, name=name, language=language, size=size, created_at=now())
        try:
            with session.begin_nested():
                session.add(artifact)
        except IntegrityError:  # another program has added it meanwhile
            artifact = session.get_one(Artifact, sha256, with_for_update=True)
    if artifact.place is None:
        artifact.place = new_place()
    session.flush()
    return artifact.place


def hold(session: Session, places: Mapping[str, str]) -> None:
    """Nobody releases these libraries until the end of the transaction. places: by hash. Raises Released."""
    if expected := dict(places):
        rows = (
            select(Artifact).where(Artifact.sha256.in_(expected)).order_by(Artifact.sha256).with_for_update(read=True)
        )
        if {row.sha256: row.place for row in session.scalars(rows)} != expected:
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
    return or_(by_pipeline, exists().where(UdfRow.artifact == Artifact.sha256))
