"""The tables.

A job's wish (`JobRow`) is written by the API, its fact (`JobStatus`) by the controller; neither writes the other's
table, but for `JobRow.fulfilled`: it is beside the wish because an index finds by it the jobs that are not as they are
wished.

`serial` counts rows, for lists; `id` is the public id, such as `pl_4fGh7Kx9Qz`: a prefix that says what it is of, and
ten characters. Foreign keys that cascade belong to a pipeline and go with it; the others restrict. Secrets are in
columns of the type `SealedJson`.
"""

from __future__ import annotations

import hashlib
import secrets
import string
from typing import Any, ClassVar, Literal

from sqlalchemy import JSON, BigInteger, CheckConstraint, ForeignKey, Index, Integer, MetaData, String, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from ..states import State
from .sealing import SealedJson

Prefix = Literal["pl", "job", "js", "chk", "jlm", "ct", "ctp", "cp", "udf", "ak", "ci", "sch"]

_CHARACTERS = string.digits + string.ascii_letters
_LENGTH = 10


def new_id(prefix: Prefix) -> str:
    """A random one."""
    return f"{prefix}_{''.join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))}"


def id_of(prefix: Prefix, *parts: str) -> str:
    """The same one for the same parts, and another one for others."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest(), "big")
    size = len(_CHARACTERS)
    return f"{prefix}_{''.join(_CHARACTERS[number // size**place % size] for place in range(_LENGTH))}"


STATES = tuple(str(state) for state in State)
TERMINAL = tuple(str(state) for state in State if state.is_terminal)
STOPS = ("none", "checkpoint", "graceful", "immediate", "force")
_LANGUAGES = ("python", "rust", "c")
_LEVELS = ("info", "warn", "error")
_DOMAINS = ("user", "external", "internal")
_TABLE_TYPES = ("source", "sink", "lookup")
_UNFULFILLED = text("revision != fulfilled")

Micros = BigInteger
_Serial = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts a column of type INTEGER only


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar = {dict[str, Any]: JSON(none_as_null=True), list[Any]: JSON(none_as_null=True)}


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def _serial() -> Mapped[int]:
    return mapped_column(_Serial, primary_key=True, autoincrement=True)


def _public_id() -> Mapped[str]:
    return mapped_column(String(200), unique=True)


def _of_job(primary_key: bool = False) -> Mapped[str]:
    return mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=primary_key, index=not primary_key)


class PipelineRow(Base):
    """What a user has written, and what the planner has made of it.

    udfs: [{"definition", "language"}], those that came with the query. graph: nodes and edges, for clients.
    program: what workers run (see `job_program.py`). is_preview: it is in no list, and ends by itself.
    """

    __tablename__ = "pipelines"
    __table_args__ = ({"sqlite_autoincrement": True},)

    serial: Mapped[int] = _serial()
    id: Mapped[str] = _public_id()
    name: Mapped[str] = mapped_column(Text)
    query: Mapped[str] = mapped_column(Text)
    udfs: Mapped[list[Any]]
    graph: Mapped[dict[str, Any]]
    program: Mapped[dict[str, Any]] = mapped_column(SealedJson(("variables",)))
    tags: Mapped[dict[str, Any]]
    state_url: Mapped[str | None] = mapped_column(Text)
    is_preview: Mapped[bool] = mapped_column(default=False, index=True)
    created_at: Mapped[int] = mapped_column(Micros)


class JobRow(Base):
    """The wish. restart_nonce: goes up with each request to restart. history: with each restart without state; a start
    resumes from checkpoints of this history. restore: what to go back to first: {"epoch" or "savepoint": its name,
    "doubles": names of sinks that may have rows twice, "nonce": the request's restart_nonce}; or {"positions": where
    the sources of this history begin, "nonce"}. revision: goes up with each change. fulfilled: the revision that the
    fact has come up to.
    place: where its state is, below which each history has a folder; decided once. None: it has no checkpoints.
    scheduler: by which it runs (see `schedulers/dispatching.py`). slices: into how many it is cut on Flink."""

    __tablename__ = "jobs"
    __table_args__ = (
        _one_of("stop", STOPS),
        _one_of("restart_mode", ("safe", "force")),
        CheckConstraint("parallelism BETWEEN 1 AND 1024", name="parallelism"),
        Index("ix_jobs_unfulfilled", "id", sqlite_where=_UNFULFILLED, postgresql_where=_UNFULFILLED),
        {"sqlite_autoincrement": True},
    )

    serial: Mapped[int] = _serial()
    id: Mapped[str] = _public_id()
    pipeline_id: Mapped[str] = mapped_column(ForeignKey("pipelines.id", ondelete="CASCADE"), unique=True)
    stop: Mapped[str] = mapped_column(String(16), default="none")
    parallelism: Mapped[int] = mapped_column(default=1)
    checkpoint_interval_micros: Mapped[int] = mapped_column(BigInteger)
    ttl_micros: Mapped[int | None] = mapped_column(BigInteger)
    restart_nonce: Mapped[int] = mapped_column(default=0)
    restart_mode: Mapped[str] = mapped_column(String(8), default="safe")
    history: Mapped[int] = mapped_column(default=0)
    restore: Mapped[dict[str, Any] | None]
    place: Mapped[str | None] = mapped_column(Text)
    scheduler: Mapped[str] = mapped_column(String(16), default="local")
    slices: Mapped[int | None]
    env_vars: Mapped[dict[str, Any]] = mapped_column(SealedJson())
    scheduler_config: Mapped[dict[str, Any]]
    revision: Mapped[int] = mapped_column(default=1)
    fulfilled: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[int] = mapped_column(Micros)
    updated_at: Mapped[int] = mapped_column(Micros)


class JobStatus(Base):
    """The fact. generation: of the workers that run it, or ran it last; up by one before each start. state_since: when
    the job came into its state. restarts: in a row. restart_nonce, settings, history: the wishes that the running job
    has. restored: the latest restart_nonce whose `restore`, if it had one, is done. epoch: the newest of this history
    that anybody has told; a generation goes on from it or a later one. worker: by which the scheduler finds again what
    runs."""

    __tablename__ = "job_statuses"
    __table_args__ = (
        _one_of("state", STATES),
        _one_of("failure_domain", _DOMAINS),
        Index("ix_job_statuses_state", "state"),
    )

    job_id: Mapped[str] = _of_job(primary_key=True)
    state: Mapped[str] = mapped_column(String(24), default="Created")
    state_since: Mapped[int] = mapped_column(Micros)
    generation: Mapped[int] = mapped_column(default=0)
    controller: Mapped[str | None] = mapped_column(Text)
    start_time: Mapped[int | None] = mapped_column(Micros)
    finish_time: Mapped[int | None] = mapped_column(Micros)
    tasks: Mapped[int | None]
    failure_message: Mapped[str | None] = mapped_column(Text)
    failure_domain: Mapped[str | None] = mapped_column(String(16))
    restarts: Mapped[int] = mapped_column(default=0)
    restart_nonce: Mapped[int] = mapped_column(default=0)
    restored: Mapped[int] = mapped_column(default=0)
    history: Mapped[int] = mapped_column(default=0)
    epoch: Mapped[int] = mapped_column(default=0)
    settings: Mapped[dict[str, Any]] = mapped_column(SealedJson(("env_vars",)))
    worker: Mapped[dict[str, Any] | None]


class CheckpointRow(Base):
    """events: [{"event", "description", "start_time", "finish_time"}]. operators: {operator: {"bytes": n}}. history:
    in which it was taken. retained: it can be gone back to."""

    __tablename__ = "checkpoints"
    __table_args__ = (
        _one_of("state", ("inprogress", "ready", "failed")),
        _one_of("checkpoint_type", ("scheduled", "stopping")),
    )

    job_id: Mapped[str] = _of_job(primary_key=True)
    epoch: Mapped[int] = mapped_column(primary_key=True)
    generation: Mapped[int]
    history: Mapped[int] = mapped_column(default=0)
    retained: Mapped[bool] = mapped_column(default=False)
    state: Mapped[str] = mapped_column(String(16))
    checkpoint_type: Mapped[str] = mapped_column(String(16), default="scheduled")
    start_time: Mapped[int] = mapped_column(Micros)
    finish_time: Mapped[int | None] = mapped_column(Micros)
    events: Mapped[list[Any]]
    operators: Mapped[dict[str, Any]]


class JobLog(Base):
    """What a user should know about a job."""

    __tablename__ = "job_log"
    __table_args__ = (
        _one_of("level", _LEVELS),
        _one_of("error_domain", _DOMAINS),
        {"sqlite_autoincrement": True},
    )

    serial: Mapped[int] = _serial()
    id: Mapped[str] = _public_id()
    job_id: Mapped[str] = _of_job()
    created_at: Mapped[int] = mapped_column(Micros)
    generation: Mapped[int]
    level: Mapped[str] = mapped_column(String(8))
    message: Mapped[str] = mapped_column(Text)
    details: Mapped[str] = mapped_column(Text, default="")
    operator_id: Mapped[str | None] = mapped_column(Text)
    task_index: Mapped[int | None]
    error_domain: Mapped[str | None] = mapped_column(String(16))


class ConnectionProfileRow(Base):
    __tablename__ = "connection_profiles"
    __table_args__ = ({"sqlite_autoincrement": True},)

    serial: Mapped[int] = _serial()
    id: Mapped[str] = _public_id()
    name: Mapped[str] = mapped_column(Text, unique=True)
    connector: Mapped[str] = mapped_column(Text)
    description: Mapped[str] = mapped_column(Text, default="")
    config: Mapped[dict[str, Any]] = mapped_column(SealedJson())
    created_at: Mapped[int] = mapped_column(Micros)
    updated_at: Mapped[int] = mapped_column(Micros)


class ConnectionTableRow(Base):
    """key: the name as SQL compares it, in lower case."""

    __tablename__ = "connection_tables"
    __table_args__ = (_one_of("table_type", _TABLE_TYPES), {"sqlite_autoincrement": True})

    serial: Mapped[int] = _serial()
    id: Mapped[str] = _public_id()
    name: Mapped[str] = mapped_column(Text)
    key: Mapped[str] = mapped_column(Text, unique=True)
    table_type: Mapped[str] = mapped_column(String(8))
    connector: Mapped[str] = mapped_column(Text)
    profile_id: Mapped[str | None] = mapped_column(
        ForeignKey("connection_profiles.id", ondelete="RESTRICT"), index=True
    )
    config: Mapped[dict[str, Any]]
    schema: Mapped[dict[str, Any]]
    created_at: Mapped[int] = mapped_column(Micros)


class ConnectionTableUse(Base):
    """A pipeline that uses a connection table."""

    __tablename__ = "connection_table_uses"

    table_id: Mapped[str] = mapped_column(ForeignKey("connection_tables.id", ondelete="RESTRICT"), primary_key=True)
    pipeline_id: Mapped[str] = mapped_column(
        ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class Artifact(Base):
    """A library, by the hash of its bytes. place: where it is stored (see `functions/artifacts.py`); None: nowhere.

    A row that goes away leaves its place to be removed; the same library gets another place then."""

    __tablename__ = "artifacts"

    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    language: Mapped[str] = mapped_column(String(8))
    size: Mapped[int] = mapped_column(BigInteger)
    place: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(Micros)


class ArtifactUse(Base):
    """A pipeline that has a library."""

    __tablename__ = "artifact_uses"

    artifact: Mapped[str] = mapped_column(ForeignKey("artifacts.sha256", ondelete="RESTRICT"), primary_key=True)
    pipeline_id: Mapped[str] = mapped_column(
        ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class UdfRow(Base):
    """A function that every query may call. key: the name as SQL compares it, in lower case."""

    __tablename__ = "udfs"
    __table_args__ = (_one_of("language", _LANGUAGES), {"sqlite_autoincrement": True})

    serial: Mapped[int] = _serial()
    id: Mapped[str] = _public_id()
    prefix: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    key: Mapped[str] = mapped_column(Text, unique=True)
    language: Mapped[str] = mapped_column(String(8))
    definition: Mapped[str] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(Text)
    artifact: Mapped[str | None] = mapped_column(ForeignKey("artifacts.sha256", ondelete="RESTRICT"), index=True)
    created_at: Mapped[int] = mapped_column(Micros)
    updated_at: Mapped[int] = mapped_column(Micros)


class UdfVersion(Base):
    """A definition that a function has, or has had. number: from 1; the highest is the one that it has."""

    __tablename__ = "udf_versions"

    udf_id: Mapped[str] = mapped_column(ForeignKey("udfs.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    language: Mapped[str] = mapped_column(String(8))
    definition: Mapped[str] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(Micros)


class Leftover(Base):
    """A folder or URL that a deleted pipeline or function has left, and that is still to be removed."""

    __tablename__ = "leftovers"

    place: Mapped[str] = mapped_column(Text, primary_key=True)


class Leader(Base):
    """The controller that acts. A single row. term: up by one with each new leader. seen_at: when it has last said that
    it lives; None: it has given up the lead. deaths: how many leaders in a row have not."""

    __tablename__ = "leader"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    controller: Mapped[str] = mapped_column(Text)
    term: Mapped[int]
    seen_at: Mapped[int | None] = mapped_column(Micros)
    deaths: Mapped[int] = mapped_column(default=0)


class KeySample(Base):
    """What only the right key file opens (see `sealing.py`). A single row."""

    __tablename__ = "key_sample"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    sample: Mapped[str] = mapped_column(Text)
