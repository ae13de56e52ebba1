"""Wakes somebody when any program has written to the database.

    changes = Changes(database, controller.wake)

With PostgreSQL, `tell_changes` notifies; with SQLite, a thread looks at the file's version, which reads no table.

Guarantees: a change wakes soon after its transaction is committed. It may wake without a change.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable

from sqlalchemy import text
from sqlalchemy.orm import Session

from .opened import PATIENCE, Database

_CHANNEL = "arroyo_udf_wishes"
_LOOK_EVERY = 0.1
_AGAIN = 1.0  # seconds until a server that has gone is asked again


def tell_changes(session: Session) -> None:
    """This transaction changes a wish."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"NOTIFY {_CHANNEL}"))


class Changes:
    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database, self._wake = database, wake
        self._closed = threading.Event()
        self._listens = threading.Event()
        work = self._look if database.is_sqlite else self._listen
        self._thread = threading.Thread(target=work, name="arroyo-udf-changes", daemon=True)
        self._thread.start()
        self._listens.wait(_AGAIN)

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _look(self) -> None:
        file = self._database.engine.url.database
        assert file is not None
        while not self._closed.is_set():
            try:
                with contextlib.closing(sqlite3.connect(file)) as connection:
                    self._look_with(connection)
            except sqlite3.Error:  # somebody has it for himself just now, or it cannot be opened
                self._closed.wait(_AGAIN)

    def _look_with(self, connection: sqlite3.Connection) -> None:
        seen = connection.execute("PRAGMA data_version").fetchone()
        self._listens.set()
        self._wake()  # there may have been changes while nobody looked
        while not self._closed.wait(_LOOK_EVERY):
            version = connection.execute("PRAGMA data_version").fetchone()
            if version != seen:
                seen = version
                self._wake()

    def _listen(self) -> None:
        import psycopg  # here, because SQLite does not need it, and it takes a while

        url = self._database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        while not self._closed.is_set():
            try:
                with psycopg.connect(url, autocommit=True, **PATIENCE) as connection:
                    connection.execute(f"LISTEN {_CHANNEL}")
                    self._listens.set()
                    self._wake()  # there may have been changes while nobody listened
                    while not self._closed.is_set():
                        for _ in connection.notifies(timeout=_LOOK_EVERY, stop_after=1):
                            self._wake()
            except psycopg.Error:
                self._closed.wait(_AGAIN)
