"""A database at its URL, the lock of the controller that leads, and wake-ups when any program has written.

    database = Database.open("sqlite:////data/cluster.sqlite")      or postgresql://user@host/name
    database.migrate()                                               once, before it is used
    with database.begin() as session: ...                            one transaction
    changes = Changes(database, controller.wake)

With PostgreSQL, `tell_changes` notifies; with SQLite, a thread looks at the file's version, which reads no table.

Guarantees: of several programs that start at once, one migrates and the others wait for it. SQLite is copied before
(`cluster.sqlite.before-<revision>`). A program that is older than its database refuses it. With SQLite a transaction
that may write takes its lock at the start, so that two of them wait for each other instead of failing. A program does
not start with a key file that is missing or of another database: the database has a sample that the keys must open.
When the file has a new first key, all secrets are sealed anew by it, so that the older keys can go. A change wakes soon
after its transaction is committed; it may wake without a change. One controller holds the `LeaderLock` at a time; it is
free as soon as its holder's process has ended, however that happens.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy import Connection, Engine, event, insert, select, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from ...errors import InvalidArgument, InvalidState
from .models import Base, KeySample
from .sealing import Keys, SealedJson

MIGRATIONS = Path(__file__).with_name("migrations")
LATEST = "v0008"
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
        kept: LogKept = session.info[_LOG_KEPT]
        return kept


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
        revision = self.revision
        if revision == LATEST:
            return
        if revision is None or revision < LATEST:
            raise InvalidState(f"the database {self.url} is of an older program: run `arroyo-udf migrate`")
        raise self._too_new(revision)

    def _too_new(self, revision: str) -> InvalidState:
        return InvalidState(
            f"the database {self.url} is of a newer program (revision {revision}, and this one knows {LATEST}): "
            "install that one, or restore the copy that it made before"
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
            _check_keys(connection, self._keys, self.url)
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


_LEADER_LOCK = 5115_0002  # PostgreSQL's number of our advisory lock


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
            if self._connection.execute(text(f"SELECT pg_try_advisory_lock({_LEADER_LOCK})")).scalar():
                return True
        except SQLAlchemyError:
            self.release()
            raise
        self.release()
        return False


_SAMPLE = "a sample"
_ROW = 1


def _check_keys(connection: Connection, keys: Keys, url: str) -> None:
    """While no other program does. Raises InvalidState."""
    sample = connection.execute(select(KeySample.sample)).scalar()
    if sample is None:
        keys.make()
        connection.execute(insert(KeySample).values(id=_ROW, sample=keys.seal(_SAMPLE)))
        return
    if not keys.file.exists():
        raise InvalidState(
            f"the key file {keys.file} is missing, and the database {url} has secrets sealed by it: restore it, or say "
            "where it is by database.key_file"
        )
    if not keys.opens(sample):
        raise InvalidState(
            f"the key file {keys.file} has another key than the database {url}: restore the right one, or say where it "
            "is by database.key_file"
        )
    if not keys.has_sealed(sample):
        _seal_anew(connection)
        connection.execute(update(KeySample).values(sample=keys.seal(_SAMPLE)))


def _seal_anew(connection: Connection) -> None:
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            if not isinstance(column.type, SealedJson):
                continue
            (key,) = table.primary_key.columns
            for row in connection.execute(select(key, column)).all():
                connection.execute(update(table).where(key == row[0]).values({column: row[1]}))
