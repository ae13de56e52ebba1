"""What sinks write to that is no folder, such as a topic or a table: the simulation takes it away before each schedule,
and puts back what another schedule goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..engine.execution.store import open_store


class Elsewhere(Protocol):
    """name: for texts; no other one of a scenario has it. Its things have names, too.

    What belongs to a sink is all here: also what it notes there of its epochs.
    """

    name: str

    def clear(self) -> None:
        """A schedule begins, with nothing."""

    def contents(self) -> Mapping[str, bytes]:
        """All that is there, by name."""

    def put(self, name: str, data: bytes) -> None:
        """Makes a thing as `contents` has told it."""

    def delete(self, name: str) -> None:
        """Takes a thing away that is there."""


class ObjectsElsewhere:
    """An object store. name: its URL."""

    def __init__(self, name: str) -> None:
        self.name = name

    def clear(self) -> None:
        open_store(self.name).clear()

    def contents(self) -> Mapping[str, bytes]:
        store = open_store(self.name)
        return {name: store.get(name) for name in store.names("")}

    def put(self, name: str, data: bytes) -> None:
        open_store(self.name).put(name, data)

    def delete(self, name: str) -> None:
        open_store(self.name).delete(name)
