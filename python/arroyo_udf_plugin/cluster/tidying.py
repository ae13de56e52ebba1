"""What nobody needs any more is removed, from time to time: rows of jobs that have ended, and files of processes that
were killed.

Guarantees: one run removes a limited number of each kind, so that it does not hold the controller up. What a living
process uses stays: its lock shows that it lives.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path

from sqlalchemy.orm import Session

from .configuration import Settings
from .database import artifacts, jobs, pipelines
from .database.errors import InUse, NotFound
from .database.opened import Database, now
from .functions import children
from .records import Records
from .schedulers import protocol, worker_files

_AT_ONCE = 1000
_PREVIEWS_KEPT = 3_600_000_000  # microseconds
_UNUSED_KEPT = 3_600_000_000  # microseconds; of functions that were stored for pipelines which were never created


def tidy_rows(database: Database, writing: Callable[[], AbstractContextManager[Session]], settings: Settings) -> None:
    """writing: a transaction of the leader."""
    with database.read() as session:
        found = jobs.old_previews(session, now() - _PREVIEWS_KEPT)
    for pipeline_id in found[:_AT_ONCE]:
        with contextlib.suppress(NotFound, InUse), writing() as session:  # somebody else was faster
            pipelines.delete(session, pipeline_id)
    _tidy_records(database, Records.configured(settings))
    with writing() as session:
        artifacts.release(session, artifacts.unused(session, now() - _UNUSED_KEPT)[:_AT_ONCE])


def _tidy_records(database: Database, records: Records) -> None:
    """Of jobs that are not there any more."""
    found = records.jobs()
    there: set[str] = set()
    with database.read() as session:
        for start in range(0, len(found), _AT_ONCE):
            there |= jobs.generations(session, found[start : start + _AT_ONCE]).keys()
    for job_id in [one for one in found if one not in there][:_AT_ONCE]:
        records.remove(job_id)


def tidy_files(settings: Settings, generations: Mapping[str, int]) -> None:
    """generations: of the jobs that are not at their end."""
    workers, logs = protocol.folder_of(settings.data), settings.data / "logs"
    for name in islice(_ended(workers, generations), _AT_ONCE):
        worker_files.remove_ended(workers, name)
    for name in islice(_ended(logs, generations), _AT_ONCE):
        if not (workers / name).exists():
            (logs / f"{name}.log").unlink(missing_ok=True)
    for folder in islice(children.left_behind(settings.functions), _AT_ONCE):
        shutil.rmtree(folder, ignore_errors=True)


def _ended(folder: Path, generations: Mapping[str, int]) -> Iterator[str]:
    """Names of workers that are not wanted any more, of which there are files."""
    if not folder.exists():
        return
    for stem in sorted({path.name.partition(".")[0] for path in folder.iterdir()}):
        found = worker_files.generation_of(stem)
        if found is not None and generations.get(found[0], found[1] + 1) > found[1]:
            yield stem
