"""The checkpoints and savepoints of a job's Flink jobs, in the place of its state.

    place/flink/g000003/<Flink job>/chk-17/_metadata
    place/flink/g000003/savepoints/<name>/_metadata

    newest = newest_of(place)        of the newest generation that has one, the one with the highest number

Guarantees: what is returned is there, and begins as Flink writes it. The number is that of Flink's checkpoint, which
goes up over all generations, because each goes on from the one before.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from ....engine.connectors.location import Location, location_of
from ....engine.execution.store import Store, open_store
from ....errors import WrongCheckpoints
from ...task import Task

_METADATA = re.compile(r"flink/g(\d+)/(?:[0-9a-f]{32}/chk-\d+|savepoints/[^/]+)/_metadata")
_HEADER = struct.Struct(">iiq")
"""A magic number, the version of the format, and the number of the checkpoint."""
_MAGIC = 0x4960672D


@dataclass(frozen=True)
class StoredSnapshot:
    """number: of the checkpoint. url: what Flink restores."""

    generation: int
    number: int
    url: str


def folder_of(place: str, generation: int) -> str:
    """Where Flink keeps what a generation writes, as a URL."""
    return url_of(location_of(place).child("flink", f"g{generation:06}"))


def newest_of(place: str) -> StoredSnapshot | None:
    """None: there is none. Raises InvalidArgument if the place fails, WrongCheckpoints for what is damaged."""
    where = location_of(place)
    store = open_store(where)
    found: dict[int, list[str]] = {}
    for name in store.names("flink/"):
        if (match := _METADATA.fullmatch(name)) is not None:
            found.setdefault(int(match[1]), []).append(name)
    if not found:
        return None
    generation = max(found)
    number, name = max((_number_of(store, name), name) for name in found[generation])
    return StoredSnapshot(generation, number, url_of(where.child(*name.split("/")[:-1])))


def begin_of(task: Task) -> StoredSnapshot | None:
    """What a generation goes on from. Raises as `newest_of`, and WrongCheckpoints if it cannot go on from there."""
    if task.restore is not None and "positions" not in task.restore:
        raise WrongCheckpoints("a job on Flink goes on from its newest checkpoint: it does not go back to another")
    newest = None if task.place is None else newest_of(task.place)
    number = 0 if newest is None else newest.number
    if number < task.resume_at:
        raise WrongCheckpoints(
            f"{task.place}/flink must have checkpoint {task.resume_at} of this job, or a later one, and its newest is "
            f"{number}: put a copy back and restart the job, or send discard_state to begin anew"
        )
    return newest


def _number_of(store: Store, name: str) -> int:
    data = store.get(name)
    magic, _, number = _HEADER.unpack_from(data) if len(data) >= _HEADER.size else (0, 0, 0)
    if magic != _MAGIC:
        raise WrongCheckpoints(f"{store.place}/{name} is damaged: put a copy back, or send discard_state")
    return int(number)


def url_of(location: Location) -> str:
    """As Flink reads it: without percent-encoding."""
    return location.text if location.path is None else f"file://{location.path.absolute()}"
