"""Engines of one slice that counts, without threads: what checkpoints.py does, alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import IO

import pyarrow as pa
from worlds import SCHEMA, MemoryStore, World, WorldSink, epochs_in

from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.engine.execution.checkpoints import Epochs
from arroyo_udf_plugin.engine.execution.manifest import Manifest, PipelineIdentity
from arroyo_udf_plugin.engine.execution.retention import Retention
from arroyo_udf_plugin.engine.execution.snapshot import Snapshot
from arroyo_udf_plugin.engine.windows.kept import KeptRows

SOURCE = {"source": {"type": "files", "paths": ["a", "c"]}}
IDENTITY = PipelineIdentity.of("flights", SOURCE, {"speed": "abc"})


class Killed(BaseException):
    """The process ends here: nothing of the engine runs any more."""


@dataclass(frozen=True)
class FixedState:
    """A state of these bytes. parts: beside them."""

    data: bytes
    parts: Sequence[KeptRows] = ()

    def head(self, places: Sequence[tuple[int, int]]) -> bytes:
        return self.data + (json.dumps(places).encode() if places else b"")

    def write_parts(self, file: IO[bytes], parts: Sequence[KeptRows]) -> None:
        for one in parts:
            file.write(json.dumps(one.rows.to_pydict()).encode() + b"\n")


class Counting:
    """A slice that reads the numbers 1, 2, 3, ...: `read` puts the next ones into its sink. state: of its operator."""

    def __init__(self, world: World, place: int = 0, next_row: int = 1, state: bytes = b"") -> None:
        self.sinks = [WorldSink(world, "out", place, is_staged=True)]
        self.next_row, self.state, self._place = next_row, state, place

    def read(self, rows: int) -> None:
        numbers = pa.array(range(self.next_row, self.next_row + rows), pa.int64())
        self.sinks[0].write(pa.record_batch([numbers], schema=SCHEMA))
        self.next_row += rows

    def seal(self, epoch: int) -> Future[Snapshot]:
        future: Future[Snapshot] = Future()
        rows = {sink.name: sealed for sink in self.sinks if (sealed := sink.seal(epoch)) is not None}
        positions: dict[str, Json] = {f"p{self._place}": {"next": self.next_row}}
        future.set_result(Snapshot(positions, 7, [("speed", FixedState(self.state))], rows))
        return future


class Engine:
    """Begins or resumes, as runner.py does, with one slice."""

    def __init__(
        self,
        store: MemoryStore,
        world: World,
        resume: bool = False,
        retain: int = 1,
        restore: int | str | None = None,
        at_least: int = 0,
    ) -> None:
        retention = Retention(retain)
        self.epochs = Epochs(store, IDENTITY, resume=resume, retention=retention, restore=restore, at_least=at_least)
        fence = self.epochs.fence()
        position = fence.positions.get("p0", {"next": 1})
        self.slice = Counting(world, 0, position["next"])
        self.epochs.states(0, 1)
        self.epochs.settle([self.slice])

    def go(self, rows: int = 2) -> Manifest | None:
        if rows:
            self.slice.read(rows)
        return self.epochs.take([self.slice])


def fence_of(store: MemoryStore) -> list[int]:
    return [n for n in epochs_in(store.files) if Manifest.read(store.files[f"epochs/{n:010}.json"], n, "").fence]
