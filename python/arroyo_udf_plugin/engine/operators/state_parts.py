"""Files with parts of what windows keep, which checkpoints share, and the notes of these parts.

A file has a batch for each part, in the columns that windows keep, without ids and origins, as Arrow IPC. A column that
has one value in a whole part, such as the number of a pane or the nulls of a join's other side, is one run; where other
columns are, another stream begins. A stream's metadata says what its columns are. A state names its parts by file and
number.

Guarantees: what is read is checked before it is believed. Columns that nobody wants any more may stay in a file.
"""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.unnamed import Data
from ..windows.kept import KeptPart, KeptRows, PartPlace
from .blocks import Given
from .state_columns import celled, meanings, plain_column, plain_fields, refused

_COLUMNS = b"arroyo_udf.columns"
_LONG = 1024  # rows of a part from which on a run is worth another stream


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
    names = given.schema.names
    columns = json.dumps(meanings(names, given)).encode()
    for schema, batches in itertools.groupby(map(_written, parts), key=lambda batch: batch.schema):
        with pa.ipc.new_stream(file, schema.with_metadata({_COLUMNS: columns})) as stream:
            for batch in batches:
                stream.write_batch(batch)


def _written(part: KeptRows) -> pa.RecordBatch:
    rows = part.rows
    columns = list(map(plain_column, rows.columns))
    if rows.num_rows >= _LONG:
        columns = list(map(_in_runs, columns))
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _in_runs(column: pa.Array) -> pa.Array:
    """One run, if it is known to have one value."""
    if column.null_count == len(column):
        value = pa.nulls(1, column.type)
    elif column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        return column
    else:
        bounds = pc.min_max(column)
        if bounds["min"] != bounds["max"]:
            return column
        value = column.slice(0, 1)
    return pa.RunEndEncodedArray.from_arrays(pa.array([len(column)], pa.int32()), value)


def _whole(column: pa.Array) -> pa.Array:
    """What `_in_runs` was given."""
    if not _is_in_runs(column.type):
        return column
    value = column.values
    return pa.nulls(len(column), value.type) if value.null_count else pa.repeat(value[0], len(column))


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
    form = partial(_read, schema=given.schema)
    for file, own in wanted.items():
        if not 0 <= file < len(files):
            raise ValueError(f"it has no file {file} of parts")
        sha256, data = files[file]
        for number, batch in _batches(data, set(own), given, whose):
            for at in own[number]:
                of_part = _notes(notes[str(at)], batch.num_rows) if str(at) in notes else None
                found[at] = KeptRows(KeptPart(batch, PartPlace(sha256, number)), form, of_part)
    if len(found) < len(places):
        raise ValueError(f"{len(places) - len(found)} of its parts are missing")
    return [found[at] for at in range(len(places))]


def _batches(data: Data, numbers: set[int], given: Given, whose: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The columns that are wanted, as they were written."""
    source, number = pa.BufferReader(data), 0
    while source.tell() < len(data):
        with pa.ipc.open_stream(source) as stream:
            places = _places(stream.schema, given, whose)
            for batch in stream:
                if number in numbers:
                    batch.validate(full=True)
                    chosen = batch.select(places)
                    if any(_is_in_runs(column.type) and len(column.values) != 1 for column in chosen.columns):
                        raise ValueError("a column of one run has several")
                    yield number, chosen
                number += 1


def _places(schema: pa.Schema, given: Given, whose: str) -> list[int]:
    """Of the columns that are wanted, by what they are. Raises InvalidArgument if one is missing."""
    were = json.loads((schema.metadata or {})[_COLUMNS])
    types = [type_.value_type if _is_in_runs(type_) else type_ for type_ in schema.types]
    places = {pair: place for place, pair in enumerate(zip(were, types, strict=True))}
    wanted = schema_of_parts(given)
    are = meanings(wanted.names, given)
    try:
        return [places[pair] for pair in zip(are, wanted.types, strict=True)]
    except KeyError:
        raise refused(pa.schema(list(places)), wanted, are, whose) from None


def _is_in_runs(type_: pa.DataType) -> bool:
    return bool(pa.types.is_run_end_encoded(type_))


def _read(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [celled(_whole(column), type_) for column, type_ in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _notes(text: str, n_rows: int) -> bytes:
    notes = zlib.decompress(base64.b64decode(text, validate=True))
    if len(notes) != n_rows or notes.strip(b"\0\1"):
        raise ValueError("its notes are not those of its rows")
    return notes
