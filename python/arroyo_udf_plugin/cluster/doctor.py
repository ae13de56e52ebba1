"""What is wrong with an installation: `arroyo-udf doctor`.

    for finding in examine(settings): print(finding.what, finding.text, finding.is_wrong)

Guarantees: each thing is looked at, whatever is wrong with the others, and a text says what to do. It changes nothing
but for a small object in each store, which it removes. No secret is told.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select, text

from ..engine.execution.store import AlreadyThere, open_store
from ..errors import ArroyoUdfError, InvalidState
from .client import Client
from .configuration import Settings
from .database.database import LATEST, Database
from .database.models import KeySample
from .database.pipelines import totals
from .database.sealing import Keys
from .tokens import Tokens

_PATIENCE = 5.0
_LEAST_FREE = 1 << 30
_MOST_OFF = 2.0  # seconds by which clocks may differ
_LEAST_FILES = 4096


class Finding(NamedTuple):
    """text: what was found; if it is wrong, with what to do."""

    what: str
    text: str
    is_wrong: bool


class Unsound(Exception):
    """The text says what to do."""


def examine(settings: Settings) -> Iterator[Finding]:
    looks: dict[str, Callable[[Settings], str]] = {
        "data folder": _data,
        "disk": _disk,
        "token": _token,
        "database": _database,
        "keys": _keys,
        "clock": _clock,
        "checkpoints": lambda settings: _store(settings.checkpoints, "checkpoint_url"),
        "functions": lambda settings: _store(settings.artifacts, "artifact_url"),
        "files.roots": _roots,
        "limits": _limits,
        "API": _api,
    }
    for what, look in looks.items():
        try:
            yield Finding(what, look(settings), is_wrong=False)
        except (Unsound, ArroyoUdfError) as error:
            yield Finding(what, str(error), is_wrong=True)
        except Exception as error:  # whatever it is, the others are looked at
            yield Finding(what, str(error).partition("\n")[0] or type(error).__name__, is_wrong=True)


def _data(settings: Settings) -> str:
    folder = settings.data.absolute()
    if not folder.is_dir():
        raise Unsound(f"{folder} is not there: start the cluster once, or name the folder by --data")
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise Unsound(
            f"{folder} belongs to another user (uid {status.st_uid}): run this, and the cluster, as that user"
        )
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Unsound(f"others can read {folder} (mode {stat.S_IMODE(status.st_mode):o}): chmod 700 {folder}")
    return str(folder)


def _disk(settings: Settings) -> str:
    usage = shutil.disk_usage(settings.data)
    space = f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:.1f} GB are free"
    if usage.free < _LEAST_FREE:
        raise Unsound(f"{space}: make room, or jobs stop with it")
    return space


def _token(settings: Settings) -> str:
    if settings.api.no_token:
        raise Unsound("api.no_token: every user of this machine runs code as the cluster's user: leave it out")
    tokens = Tokens(settings.data)
    tokens.own()
    for file in (tokens.file, settings.data / "tokens.json", settings.key_file):
        if file.exists() and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Unsound(f"others can read {file}: chmod 600 {file}, and rotate what was in it")
    return f"{len(tokens.known())} known"


@contextlib.contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    """Raises Wrong, where a new database would be made."""
    database = Database.open(settings.database_url, settings.key_file)
    with contextlib.closing(database):
        file = database.engine.url.database
        if database.is_sqlite and not (file and Path(file).exists()):
            raise Unsound(f"{file} is not there: start the cluster once")
        yield database


def _database(settings: Settings) -> str:
    with _opened(settings) as database:
        database.check()
        with database.read() as session:
            if database.is_sqlite and (result := session.execute(text("PRAGMA quick_check(1)")).scalar()) != "ok":
                raise Unsound(f"{database.url} is damaged ({result}): restore a copy")
            now = totals(session)
        return f"{database.url}, revision {LATEST}, {now.pipelines:,} pipelines"


def _keys(settings: Settings) -> str:
    with _opened(settings) as database, database.read() as session:
        sample = session.execute(select(KeySample.sample)).scalar()
    keys = Keys(settings.key_file)
    if sample is None or not keys.opens(sample):
        raise InvalidState(f"{settings.key_file} does not open the secrets of the database: restore its key")
    return str(settings.key_file)


def _clock(settings: Settings) -> str:
    """Against that of the database's server, and of the file system."""
    probe = settings.data / f".clock-{secrets.token_hex(4)}"
    probe.touch()
    try:
        others = {"the file system of the data folder": probe.stat().st_mtime}
    finally:
        probe.unlink()
    with _opened(settings) as database:
        if not database.is_sqlite:
            with database.read() as session:
                asked = session.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
                others["the database's server"] = float(asked)
    for other, clock in others.items():
        if abs(off := clock - time.time()) > _MOST_OFF:
            raise Unsound(f"{other} is {off:+.0f} s off: synchronise the clocks (chrony, systemd-timesyncd)")
    return "as others have it"


def _store(place: str, setting: str) -> str:
    """Whether it keeps what was written, and creates a name once: fences need that."""
    store, name = open_store(place, patience=_PATIENCE), f"doctor-{secrets.token_hex(8)}"
    try:
        store.create(name, b"1")
        try:
            store.create(name, b"2")
        except AlreadyThere:
            pass
        else:
            raise Unsound(
                f"{store.place} overwrites what is there, so no fence holds: take another store for {setting}"
            )
        if store.get(name) != b"1":
            raise Unsound(f"{store.place} does not give back what was written: take another store for {setting}")
    finally:
        store.delete(name)
    return store.place


def _roots(settings: Settings) -> str:
    for root in settings.files.roots:
        if not root.is_dir():
            raise Unsound(f"{root} is not there: mount or make it, or leave it out of files.roots")
        if not os.access(root, os.R_OK | os.X_OK):
            raise Unsound(f"{root} cannot be read by this user: change its rights, or leave it out of files.roots")
    return ", ".join(map(str, settings.files.roots)) or "queries may name all files that this user may read"


def _limits(settings: Settings) -> str:
    """Those of this process: a cluster that runs already may have been started with others."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < _LEAST_FILES:
        raise Unsound(
            f"this shell allows {files:,} open files, too few for many jobs: start the cluster after ulimit -n 65536 "
            "(LimitNOFILE in a unit file)"
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    children = 2 * (settings.limits.builds + settings.limits.plans)
    return (
        f"this shell allows {files:,} open files; {memory / 1e9:.1f} GB of memory, "
        f"up to {children} builds and plans at once"
    )


def _api(settings: Settings) -> str:
    client = Client.of(settings)
    client.ask("GET", "/ping")
    return f"{client.address} answers"
