"""What a job takes with it when another engine runs it: where its sources are.

    positions_of(place, graph, ["source", "orders"], at_least=12)     {"source": {"0": {...}}, "orders": {...}}

Guarantees: nothing is left behind silently: a job with windows or joins, with rows in flight, or with rows that are not
in their sinks yet, is refused by the name of what it has.
Assumes: nothing of the job runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..engine.connectors.location import Location
from ..engine.connectors.unnamed import Data
from ..engine.execution.epoch_files import EpochFiles
from ..engine.execution.finished import listed
from ..engine.execution.manifest import Manifest, StateFile
from ..engine.execution.store import open_store
from ..engine.operators.state import unframed
from ..errors import InvalidArgument

_INSTEAD = "send discard_state to begin anew"
_PATIENCE = 5.0  # seconds for an object store that does not answer

Positions = dict[str, dict[str, dict[str, Any]]]
"""By source and partition."""


def positions_of(place: Location, graph: Mapping[str, Any], sources: Sequence[str], at_least: int) -> Positions:
    """place: of the job's checkpoints. graph: as `graph_of` makes it. at_least: the newest epoch that anybody knows of.

    Raises InvalidArgument if the job has more than positions, or its checkpoints cannot be read."""
    files = EpochFiles(open_store(place, _PATIENCE))
    numbers = files.numbers()
    newest = numbers[-1] if numbers else 0
    if newest < at_least:
        raise InvalidArgument(f"{place} has no checkpoint {at_least} of this job: put a copy back, or {_INSTEAD}")
    if not numbers:
        return {}
    if grouped := list(_grouped(graph)):
        raise InvalidArgument(f"{', '.join(grouped)}: windows and joins keep rows, which do not move: {_INSTEAD}")
    try:
        manifest = files.read(newest)
        if any(files.waiting(manifest).slices):
            raise InvalidArgument(
                "rows of the last checkpoint are not in their sinks yet: start the job where it was, and stop it"
            )
        for file in _states(manifest):
            if rows := _rows_in(files.store.load(file.name), file.name):
                raise InvalidArgument(
                    f"{file.operator} has {rows:,} rows in flight: start the job where it was, and stop it with "
                    f'"graceful", or {_INSTEAD}'
                )
        return {name: _all(manifest, number, files) for number, name in enumerate(sources)}
    except FileNotFoundError as error:
        raise InvalidArgument(f"{place}: a file of checkpoint {newest} is missing ({error}): {_INSTEAD}") from None


def _grouped(graph: Mapping[str, Any]) -> Iterator[str]:
    """Operators to which rows go from other slices."""
    exchanged = {edge["dest_id"] for edge in graph.get("edges", ()) if edge["edge_type"] != "Forward"}
    return (node["description"] for node in graph.get("nodes", ()) if node["node_id"] in exchanged)


def _states(manifest: Manifest) -> Iterator[StateFile]:
    return (file for slice_ in manifest.slices for file in slice_.operators if file is not None)


def _rows_in(data: Data, name: str) -> int:
    """An operator's state is a stream for each of its functions."""
    rest, rows = pa.BufferReader(unframed(data, name)), 0
    while rest.tell() < rest.size():
        rows += sum(batch.num_rows for batch in pa.ipc.open_stream(rest))
    return rows


def _all(manifest: Manifest, source: int, files: EpochFiles) -> dict[str, dict[str, Any]]:
    positions = dict(manifest.positions_of(source))
    for list_ in manifest.finished_of(source):
        positions |= listed(list_, lambda file: files.store.load(file.name))
    return positions
