"""Where the states of jobs and the libraries of functions lie, as the database has it.

Guarantees: a place is decided once, without variables. It becomes another one only by `move`, when somebody says that
everything was moved.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ...connectors.described import VARIABLE
from ...connectors.location import Location, location_of
from ...errors import InvalidArgument
from .errors import InUse
from .leading import LeaderLock
from .models import Artifact, Job, Leftover, Pipeline
from .opened import Database

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
    value = VARIABLE.sub(lambda found: found[0][1:] if found[1] else environment[found[2]], text)
    return location_of(value).absolute()


def state_of(job: Job) -> Location | None:
    """Where the checkpoints of its history are; None: it has none. Raises InvalidArgument."""
    return None if job.place is None else location_of(job.place).child(str(job.history))


def decide(session: Session, checkpoints: str) -> None:
    """Of jobs that an earlier version of the program has created: where that one looked for their state."""
    asked = select(Pipeline, Job).join(Job, Job.pipeline_id == Pipeline.id)
    for pipeline, job in session.execute(asked.where(Pipeline.is_preview.is_(False), Job.place.is_(None))):
        text = pipeline.state_url or checkpoints
        variables = {name: value for name, value in job.env_vars.items() if isinstance(value, str)}  # that are readable
        try:
            job.place = str(state_location(text, {**os.environ, **variables}).child(job.id))
        except InvalidArgument as error:  # nobody begins anew for that: its next start finds nothing there, and fails
            _log.warning("the place of the state of job %s is not known: %s", job.id, error)
            job.place = f"{text.rstrip('/')}/{job.id}"


def move(database: Database, old: str, new: str) -> int:
    """What lay in the folder or bucket `old` is in `new` by now: states, libraries, and what is to be removed.

    Returns how many places are others by that. Raises InvalidArgument, and InUse while a controller leads.
    """
    before, after = (str(location_of(text).absolute()).rstrip("/") for text in (old, new))
    lock = LeaderLock(database)
    if not lock.hold():
        raise InUse("a controller runs: stop it, because its jobs still use what was moved")

    def moved(place: str) -> str:
        return after + place.removeprefix(before) if _is_below(place, before) else place

    count = 0
    with contextlib.ExitStack() as left:
        left.callback(lock.release)
        session = left.enter_context(database.begin())
        libraries = session.scalars(select(Artifact)).all()
        jobs, leftovers = session.scalars(select(Job)).all(), session.scalars(select(Leftover)).all()
        known = [row.place for row in libraries if row.place is not None]
        for pipeline in session.scalars(select(Pipeline)):
            pipeline.program = _with_libraries(pipeline.program, known, moved)
        placed: list[Job | Artifact | Leftover] = [*jobs, *libraries, *leftovers]
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
        return [_with_libraries(one, libraries, moved) for one in value]
    if isinstance(value, dict):
        return {
            _with_libraries(key, libraries, moved): _with_libraries(one, libraries, moved) for key, one in value.items()
        }
    return value
