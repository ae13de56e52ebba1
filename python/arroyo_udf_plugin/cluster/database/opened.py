"""A database at its URL.

    database = Database.open("sqlite:////data/cluster.sqlite")      or postgresql://user@host/name
    database.migrate()                                               once, before it is used
    with database.begin() as session: ...                            one transaction

Guarantees: of several programs that start at once, one migrates and the others wait for it. SQLite is copied before
(`cluster.sqlite.before-<revision>`). A program that is older than its database refuses it. With SQLite a transaction
that may write takes its lock at the start, so that two of them wait for each other instead of failing. A program whose
key file is not that of the database does not start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session, sessionmaker

from ...errors import InvalidArgument, InvalidState
from . import keying
from .sealing import Keys

MIGRATIONS = Path(__file__).with_name("migrations")
LATEST = "v0006"
"""The revision that this program reads and writes: the last of `migrations/versions`."""

KEY_FILE = "secrets.key"

PATIENCE: dict[str, Any] = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""After which a server that does not answer is given up: seconds, and the second one milliseconds. Keepalives are for a
connection on which nothing is sent: nobody tells it that the other side is gone."""
_BUSY = 30.0  # seconds that SQLite waits for another writer
_READS = "arroyo_udf_reads"  # an option of a connection
_LOG_KEPT = "arroyo_udf_log"  # a key of a session's information
_LOCK = 5115_0001  # PostgreSQL's number of our advisory lock


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class LogKept(NamedTuple):
    """What is kept of each job's log: so many entries, each of so many bytes."""

    entries: int = 1000
    entry_bytes: int = 64 << 10

    @classmethod
    def of(cls, session: Session) -> LogKept:
        found: LogKept = session.info[_LOG_KEPT]
        return found


_DEFAULT_LOG = LogKept()


class Database:
    """url: without a password, for people. keys: of its secrets."""

    def __init__(self, engine: Engine, keys: Keys, log: LogKept = _DEFAULT_LOG) -> None:
        self.engine = engine
        self.url = engine.url.render_as_string(hide_password=True)
        self.is_sqlite = engine.dialect.name == "sqlite"
        self._keys = keys
        keys.serve(engine.dialect)
        self._sessions = sessionmaker(engine, expire_on_commit=False, info={_LOG_KEPT: log})

    @classmethod
    def open(cls, url: str, key_file: Path | None = None, log: LogKept = _DEFAULT_LOG) -> Database:
        """key_file: None: secrets.key beside SQLite's file. log: what is kept of each job's.

        Raises InvalidArgument for a URL of another kind."""
        try:
            parsed = make_url(url)
        except sqlalchemy.exc.ArgumentError:
            raise InvalidArgument(f"{url!r} is no URL of a database: write sqlite:////folder/file") from None
        kind = parsed.get_backend_name()
        if kind == "sqlite":
            engine = sqlalchemy.create_engine(
                parsed, connect_args={"timeout": _BUSY, "check_same_thread": False}, hide_parameters=True
            )
            event.listen(engine, "connect", _set_up)
            event.listen(engine, "begin", _begin)
        elif kind in ("postgresql", "postgres"):
            server = parsed.set(drivername="postgresql+psycopg")
            engine = sqlalchemy.create_engine(server, connect_args=PATIENCE, pool_pre_ping=True, hide_parameters=True)
        else:
            raise InvalidArgument(f"there is no database of the kind {kind!r}: write sqlite or postgresql")
        if key_file is None:
            if kind != "sqlite":
                raise InvalidArgument("a database in PostgreSQL needs a key file: set database.key_file")
            key_file = Path(parsed.database or "").with_name(KEY_FILE)
        return cls(engine, Keys(key_file), log)

    @contextlib.contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction that may write: committed at the end of the block, rolled back if it raises."""
        with self._sessions.begin() as session:
            yield session

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that only reads. It waits for nobody."""
        with self._sessions.begin() as session:
            session.connection(execution_options={_READS: True})
            yield session

    def close(self) -> None:
        self.engine.dispose()

    # ---- Migrations ----

    @property
    def revision(self) -> str | None:
        """None: it has no tables of ours."""
        with self.engine.connect().execution_options(**{_READS: True}) as connection:
            return _revision(connection)

    def check(self) -> None:
        """Raises InvalidState if it is not of this program's revision."""
        found = self.revision
        if found == LATEST:
            return
        if found is None or found < LATEST:
            raise InvalidState(f"the database {self.url} is of an older program: run `arroyo-udf migrate`")
        raise self._too_new(found)

    def _too_new(self, found: str) -> InvalidState:
        return InvalidState(
            f"the database {self.url} is of a newer program (revision {found}, and this one knows {LATEST}): install "
            "that one, or restore the copy that it made before"
        )

    def migrate(self) -> str | None:
        """Brings it to this program's revision, and checks its key file. Returns the revision before; None: it was
        empty. Raises InvalidState."""
        if self.is_sqlite and self.engine.url.database:
            file = Path(self.engine.url.database)
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(file, os.O_CREAT | os.O_CLOEXEC, 0o600))  # its companions get the same mode
        with self._alone() as connection:
            before = _revision(connection)
            if before is not None and before > LATEST:
                raise self._too_new(before)
            if before != LATEST:
                if before is not None:
                    self._copy(before)
                _upgrade(connection)
            keying.check(connection, self._keys, self.url)
            return before

    @contextlib.contextmanager
    def _alone(self) -> Iterator[Connection]:
        """While others wait. Yields the connection to migrate with."""
        if self.is_sqlite:
            with open(f"{self.engine.url.database}.lock", "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                with self.engine.begin() as connection:
                    yield connection
            return
        with self.engine.connect() as locking:
            locking.execute(text(f"SELECT pg_advisory_lock({_LOCK})"))
            try:
                with self.engine.begin() as connection:
                    yield connection
            finally:
                locking.execute(text(f"SELECT pg_advisory_unlock({_LOCK})"))

    def _copy(self, revision: str) -> None:
        file = self.engine.url.database
        if not self.is_sqlite or not file:
            return
        copy = Path(f"{file}.before-{revision}")
        part = copy.with_name(f"{copy.name}.part")
        part.unlink(missing_ok=True)  # of a program that was killed
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            with contextlib.closing(sqlite3.connect(file)) as old, contextlib.closing(sqlite3.connect(part)) as new:
                old.backup(new)
        except sqlite3.Error as error:
            part.unlink()
            raise InvalidState(f"{file} cannot be copied to {copy} ({error}), and so is not migrated") from error
        part.rename(copy)


def _set_up(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # what the API has answered must survive a power cut
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    reads = connection.get_execution_options().get(_READS, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _revision(connection: Connection) -> str | None:
    if not sqlalchemy.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _upgrade(connection: Connection) -> None:
    from alembic import command  # here, because only a migration needs it
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
