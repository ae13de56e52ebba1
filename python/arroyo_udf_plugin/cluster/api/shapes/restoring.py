"""Checkpoints that a job can go back to."""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic

from .base import Answer, Asked, Micros

SavepointName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$", max_length=100)]


class Savepoint(Answer):
    name: str
    epoch: int
    """Of the checkpoint that it is a copy of."""
    time: str | None
    """When that was taken (RFC 3339)."""
    bytes: int
    """Of the state of all operators."""


class SavepointPost(Asked):
    name: SavepointName


class RetainedCheckpoint(Answer):
    epoch: int
    finish_time: Micros | None


class LaterRows(Answer):
    """What a sink does with the rows that it has of later checkpoints."""

    sink: str
    later_rows: Literal["none", "withdrawn", "overwritten", "doubled"]
    """none: it keeps no rows. withdrawn: it takes them back. overwritten: they stay until rows with the same key come
    again. doubled: they stay, and come again."""


class Restorable(Answer):
    checkpoints: list[RetainedCheckpoint]
    """By epoch."""
    savepoints: list[Savepoint]
    """By name."""
    sinks: list[LaterRows]


class RestorePost(Asked):
    epoch: Annotated[int, pydantic.Field(ge=1, le=2**31 - 1)] | None = None
    savepoint: SavepointName | None = None
    """One of both."""
    accept_doubles: Annotated[list[str], pydantic.Field(default_factory=list)]
    """Names of sinks that may have rows twice."""
