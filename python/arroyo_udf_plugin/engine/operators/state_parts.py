"""Files with parts of what windows keep, which checkpoints share, and the notes of these parts.

A file is one Arrow IPC stream with a batch for each part, in the columns that windows keep, without ids and origins.
Its schema's metadata says what its columns are. A state names its parts by file and number.

Guarantees: what is read is checked before it is believed. Columns that nobody wants any more may stay in a file.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from ..connectors.unnamed import Data
from ..windows.kept import KeptPart, KeptRows, PartPlace
from .blocks import Given
from .state_columns import celled, chosen, is_same, meanings, plain_column, plain_fields, refused

_COLUMNS = b"arroyo_udf.columns"


@dataclass(frozen=True)
class StoredState:
    """The state of an operator, as a checkpoint has it. parts: the files that it names by their places here, each with
    its SHA-256."""

    head: Data
    parts: Sequence[tuple[str, Data]] = ()


def schema_of_parts(given: Given) -> pa.Schema:
    return pa.schema(plain_fields(given.schema))


def write_parts(file: IO[bytes], parts: Sequence[KeptRows], given: Given) -> None:
    """Writes a file. At most one part is in memory for it."""
    schema = schema_of_parts(given)
    columns = json.dumps(meanings(schema.names, given)).encode()
    with pa.ipc.new_stream(file, schema.with_metadata({_COLUMNS: columns})) as stream:
        for part in parts:
            own = list(map(plain_column, part.rows.columns))
            stream.write_batch(pa.RecordBatch.from_arrays(own, schema=schema))


def about_parts(parts: Sequence[KeptRows], places: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """For the head of a state. places: of each part, its file and its number there."""
    notes = {
        str(number): base64.b64encode(zlib.compress(part.notes, 1)).decode()
        for number, part in enumerate(parts)
        if part.notes is not None
    }
    return {"parts": [list(place) for place in places], "notes": notes}


def read_parts(
    places: Sequence[Any], notes: Mapping[str, str], files: Sequence[tuple[str, Data]], given: Given, whose: str
) -> list[KeptRows]:
    """What `about_parts` has told. whose: for error texts. Raises InvalidArgument for other columns, ValueError for
    damaged data."""
    wanted: dict[int, dict[int, list[int]]] = {}
    for at, (file, number) in enumerate(places):  # twice, if two slices of before had the same rows
        wanted.setdefault(int(file), {}).setdefault(int(number), []).append(at)
    found: dict[int, KeptRows] = {}
    for file, own in wanted.items():
        if not 0 <= file < len(files):
            raise ValueError(f"it has no file {file} of parts")
        sha256, data = files[file]
        for number, batch in _batches(data, set(own), given, whose):
            for at in own[number]:
                of_part = _notes(notes[str(at)], batch.num_rows) if str(at) in notes else None
                found[at] = KeptRows(KeptPart(batch, PartPlace(sha256, number)), notes=of_part)
    if len(found) < len(places):
        raise ValueError(f"{len(places) - len(found)} of its parts are missing")
    return [found[at] for at in range(len(places))]


def _batches(data: Data, numbers: set[int], given: Given, whose: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    wanted = schema_of_parts(given)
    are = meanings(wanted.names, given)
    with pa.ipc.open_stream(pa.BufferReader(data)) as stream:
        batches = chosen(stream, json.loads((stream.schema.metadata or {})[_COLUMNS]), are, wanted)
        if not is_same(batches.schema, wanted):
            raise refused(batches, wanted, are, whose)
        for number, batch in enumerate(batches):
            if number in numbers:
                batch.validate(full=True)
                own = [celled(*pair) for pair in zip(batch.columns, given.schema.types, strict=True)]
                yield number, pa.RecordBatch.from_arrays(own, schema=given.schema)


def _notes(text: str, n_rows: int) -> bytes:
    notes = zlib.decompress(base64.b64decode(text, validate=True))
    if len(notes) != n_rows or notes.strip(b"\0\1"):
        raise ValueError("its notes are not those of its rows")
    return notes
