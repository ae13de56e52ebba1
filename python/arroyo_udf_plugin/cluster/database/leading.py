"""The lock of the controller that leads.

Guarantees: one holds it at a time; it is free as soon as its holder's process has ended, however that happens.
"""

from __future__ import annotations

import fcntl
import os

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from .opened import Database

_LOCK = 5115_0002  # PostgreSQL's number of our advisory lock


class LeaderLock:
    """With SQLite a file beside the database, with PostgreSQL a lock of a connection."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._file: int | None = None
        self._connection: Connection | None = None

    def hold(self) -> bool:
        """Takes the lock if it is free. Returns whether it is held."""
        return self._hold_file() if self._database.is_sqlite else self._hold_connection()

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
        if self._connection is not None:
            self._connection.invalidate()  # it does not go back to the pool, with the lock
            self._connection.close()
        self._file = self._connection = None

    def _hold_file(self) -> bool:
        if self._file is not None:
            return True
        file = os.open(f"{self._database.engine.url.database}.leader", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True

    def _hold_connection(self) -> bool:
        try:
            if self._connection is not None:
                self._connection.execute(text("SELECT 1"))
                return True
            self._connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            if self._connection.execute(text(f"SELECT pg_try_advisory_lock({_LOCK})")).scalar():
                return True
        except SQLAlchemyError:
            self.release()
            raise
        self.release()
        return False
