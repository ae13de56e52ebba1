"""Partitions that have been read: epochs say it at the cost of what has changed, however many there are.

    kept = fold(positions, lists, name, "source 1", load)
    kept.positions, kept.lists, kept.new        of the manifest; the list that is to be stored before it is

A manifest names up to `INLINE` of them itself. More become a list, a file of its own, which later manifests name, too.
A list takes in the ones before it that are not larger than itself. So there are few, and a partition is written again
as often as they double.

Guarantees: a list never changes. What is read is checked before it is believed.
Assumes: a position with `end` stays as it is (`interface.Partition`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.interface import has_ended
from ..connectors.unnamed import Data
from .manifest import StateFile

INLINE = 100
_SCHEMA = pa.schema([("partition", pa.string()), ("position", pa.string())])
Positions = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Folded:
    """positions: those that the manifest has itself. lists: of the others. new: one of them, and its bytes; None: all
    are stored."""

    positions: Positions
    lists: tuple[StateFile, ...]
    new: tuple[StateFile, bytes] | None = None


def fold(
    positions: Positions, lists: Sequence[StateFile], name: str, source: str, load: Callable[[StateFile], Data]
) -> Folded:
    """positions: of a source; so far lists has the others. name: of a new list. source: for error texts."""
    ended = {partition: position for partition, position in positions.items() if has_ended(position)}
    if len(ended) <= INLINE:
        return Folded(positions, tuple(lists))
    left = {partition: position for partition, position in positions.items() if partition not in ended}
    texts = [json.dumps(position, separators=(",", ":")) for position in ended.values()]
    table = pa.table([list(ended), texts], schema=_SCHEMA)
    kept, data = list(lists), _written(table)
    while kept and kept[-1].size <= len(data):
        table = pa.concat_tables([_read(kept.pop(), load), table])
        data = _written(table)
    new = StateFile.of(source, name, data)
    return Folded(left, (*kept, new), (new, data))


def listed(file: StateFile, load: Callable[[StateFile], Data]) -> Positions:
    """What a list has. Raises InvalidArgument for a damaged one, FileNotFoundError."""
    table = _read(file, load)
    return dict(zip(table["partition"].to_pylist(), map(json.loads, table["position"].to_pylist()), strict=True))


def _read(file: StateFile, load: Callable[[StateFile], Data]) -> pa.Table:
    try:
        table = pa.ipc.open_stream(pa.py_buffer(load(file))).read_all()
    except pa.ArrowException as error:
        raise InvalidArgument(f"{file.name} is no list of partitions: {error}") from error
    if table.schema != _SCHEMA:
        raise InvalidArgument(f"{file.name} is no list of partitions: it has the columns {table.schema.names}")
    return table


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())
