"""What nobody needs any more is removed: what deleted pipelines have stored, in a thread of its own, and from time to
time rows of jobs that have ended, and files of processes that were killed.

    remover = Remover(database)
    remover.want(jobs.leftovers(session))      as often as somebody looks
    tidy_rows(...), tidy_files(...)            a limited number of each kind

Guarantees: the controller does not wait for a store. A place that cannot be removed is tried again with a back-off of
its own, holds no other place up, and is told in the log once. What a living process uses stays: its lock shows that it
lives.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sqlalchemy.orm import Session

from ...engine.execution.store import open_store
from ..configuration import Settings
from ..database import jobs, pipelines, places
from ..database.database import Database, now
from ..database.errors import InUse, NotFound
from ..functions import children
from ..records import Records
from ..schedulers import protocol, worker_files

_log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 600.0
_PATIENCE = 5.0
"""Seconds for a thread that is waiting for a store, at the end."""


@dataclass
class _Try:
    """due: when the place is tried next. failed: how often it was tried."""

    due: float
    failed: int = 0


class Remover:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._wanted: dict[str, _Try] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def want(self, places: Iterable[str]) -> None:
        """These, and no others, are to be removed. Does not wait."""
        now = time.monotonic()
        with self._changed:
            self._wanted = {place: self._wanted.get(place) or _Try(now) for place in places}
            if self._wanted and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="arroyo-udf-removal", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """What is not removed yet is left to the next controller."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while (place := self._next()) is not None:
            try:
                open_store(place, patience=0.0).clear()
                if self._is_closed:
                    return
                with self._database.begin() as session:
                    jobs.removed(session, place)
            except Exception as error:  # whatever it is, other places go on
                self._put_off(place, error)
            else:
                with self._changed:
                    self._wanted.pop(place, None)

    def _next(self) -> str | None:
        """The place that is due, as soon as one is. None: it is closed."""
        with self._changed:
            while not self._is_closed:
                place = min(self._wanted, key=lambda candidate: self._wanted[candidate].due, default=None)
                left = None if place is None else self._wanted[place].due - time.monotonic()
                if left is not None and left <= 0:
                    return place
                self._changed.wait(left)
        return None

    def _put_off(self, place: str, error: Exception) -> None:
        with self._changed:
            wanted = self._wanted.get(place)
            if wanted is None:
                return
            wanted.due = time.monotonic() + min(_FIRST_PAUSE * 2.0 ** min(wanted.failed, 30), _LONGEST_PAUSE)
            wanted.failed += 1
        level = logging.WARNING if wanted.failed == 1 else logging.DEBUG
        text = str(error).partition("\n")[0]
        _log.log(level, "%s cannot be removed, and is tried again from time to time: %s", place, text)


_AT_ONCE = 1000
_PREVIEWS_KEPT = 3_600_000_000  # microseconds
_UNUSED_KEPT = 3_600_000_000  # microseconds; of functions that were stored for pipelines which were never created


def tidy_rows(database: Database, writing: Callable[[], AbstractContextManager[Session]], settings: Settings) -> None:
    """writing: a transaction of the leader."""
    with database.read() as session:
        previews = jobs.old_previews(session, now() - _PREVIEWS_KEPT)
    for pipeline_id in previews[:_AT_ONCE]:
        with contextlib.suppress(NotFound, InUse), writing() as session:  # somebody else was faster
            pipelines.delete(session, pipeline_id)
    _tidy_records(database, Records.configured(settings))
    with writing() as session:
        places.release(session, places.unused(session, now() - _UNUSED_KEPT)[:_AT_ONCE])


def _tidy_records(database: Database, records: Records) -> None:
    """Of jobs that are not there any more."""
    job_ids = records.jobs()
    there: set[str] = set()
    with database.read() as session:
        for start in range(0, len(job_ids), _AT_ONCE):
            there |= jobs.generations(session, job_ids[start : start + _AT_ONCE]).keys()
    for job_id in [name for name in job_ids if name not in there][:_AT_ONCE]:
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
        worker = worker_files.generation_of(stem)
        if worker is not None and generations.get(worker[0], worker[1] + 1) > worker[1]:
            yield stem
