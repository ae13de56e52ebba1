"""Rows on their way through functions: their columns, and where each row comes from.

Rows of a dead-letter file come from where they came first: its columns failed_file and failed_row say it. So a row
keeps its number, however often it fails and is run again. Its text cells are cells again, as they stood in their file.

A row that could not be read has lost values: it is a dead letter with the outcome "unread", and fails again in each
replay, until its file is mended.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host import few
from ...host.policy import LETTER
from ..connectors.cells import CellType, decoded
from ..connectors.options import TYPED_BATCH_ROWS
from ..connectors.schemas import index_of
from ..connectors.source import Rows, row_numbers
from . import keys

ORIGIN = pa.schema([("file", pa.string()), ("row", pa.uint64()), ("unread", pa.string()), ("key", pa.binary())])
"""Where a row comes from: its file, its number there, why it could not be read (null: it could), and its key
(null: file and number are it; see keys.py)."""

_OWN = "own."
"""In a longer origin, the prefix of the source's own columns."""

KEY = b"arroyo_udf.run"
"""In the metadata of a schema: the `Note` of a run. It is not handed on to outputs."""

_UNREAD = "unread"
_KEY = ORIGIN.get_field_index("key")
_KEYED = ["file", "row", "key"]
_CELL = b"arroyo_udf.cell"  # in the metadata of a dead letter's column
_ALL_READ = pa.nulls(TYPED_BATCH_ROWS, pa.string())
_NO_KEYS = pa.nulls(TYPED_BATCH_ROWS, pa.binary())


@dataclasses.dataclass(frozen=True)
class Consecutive:
    """The origins of rows that follow one another in their file, all of which could be read."""

    file: str
    first: int
    length: int

    def slice(self, start: int, length: int) -> Consecutive:
        """Not beyond the end."""
        return Consecutive(self.file, self.first + start, length)

    @functools.cached_property
    def rows(self) -> pa.RecordBatch:
        """`ORIGIN`."""
        return _origins(self.file, self.length, row_numbers(self.first, self.length))


@dataclasses.dataclass(frozen=True)
class Block:
    """Some rows.

    rows: the columns of the source, or of a query, then those that the functions so far have added.
    origins: where they come from, `ORIGIN`; behind a query also the source's own columns, if dead letters want them.
        Few ask, so those of a source's rows are made for the first who does.
    of: which of `origins` each row comes from; None: from the one in its place. They are copied when somebody asks.
    """

    rows: pa.RecordBatch
    _origins: pa.RecordBatch | Consecutive
    of: pa.Array | None = None

    @property
    def origins(self) -> pa.RecordBatch:
        return self._origins.rows if isinstance(self._origins, Consecutive) else self._origins

    @property
    def origin(self) -> pa.RecordBatch:
        """Of each row."""
        return self.origins if self.of is None else self.origins.take(self.of)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @functools.cached_property
    def nbytes(self) -> int:
        """Of its rows."""
        return int(self.rows.nbytes)

    def slice(self, start: int, length: int) -> Block:
        rows = self.rows.slice(start, length)
        if self.of is None:
            return Block(rows, self._origins.slice(start, len(rows)))
        return Block(rows, self._origins, self.of.slice(start, length))

    def take(self, positions: pa.Array) -> Block:
        return self.with_rows(self.rows.take(positions), positions)

    def filter(self, mask: pa.BooleanArray) -> Block:
        return self.take(pc.indices_nonzero(mask))

    def with_rows(self, rows: pa.RecordBatch, of: pa.Array | None = None) -> Block:
        """Other rows that come from these. of: which of these each comes from; None: from the one in its place."""
        if of is None or self.of is None:
            return Block(rows, self._origins, self.of if of is None else of)
        return Block(rows, self._origins, self.of.take(of))

    def keys(self, mask: bytes = bytes(16)) -> memoryview:
        """The idempotency keys of its rows, one behind the other. mask: what makes them those of an operator."""
        asked = self.origins.select(_KEYED)
        files, rows, own = (asked if self.of is None else asked.take(self.of)).columns
        return keys.of_origins(files, rows, own, mask)

    def with_keys(self, new_keys: pa.Array) -> Block:
        """The rows with other idempotency keys."""
        origin = self.origin
        return Block(self.rows, origin.set_column(_KEY, ORIGIN.field(_KEY), new_keys))

    def unread(self) -> dict[int, str]:
        """The rows that could not be read, by position, and why."""
        if isinstance(self._origins, Consecutive):
            return {}
        texts = self.origins.column("unread")
        if texts.null_count == len(texts):
            return {}
        texts = self.origin.column("unread")
        return {position: text for position, text in enumerate(texts.to_pylist()) if text is not None}


@dataclasses.dataclass(frozen=True)
class PartialRows:
    """Parts that a slice has made of its rows, for the windows of another one. rows: as windows keep them."""

    rows: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @functools.cached_property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)


class Sizes:
    """The bytes of blocks of one schema. Arrow needs some microseconds for each column; rows of numbers have a fixed
    width, and their null bits are not counted."""

    def __init__(self) -> None:
        self._width: float | None = None  # bytes of a row; 0: not fixed

    def of(self, block: Block) -> int:
        if self._width is None:
            types = block.rows.schema.types
            self._width = sum(type_.bit_width for type_ in types) / 8 if all(map(_is_fixed, types)) else 0
        return int(len(block) * self._width) if self._width else block.nbytes


def _is_fixed(type_: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(type_) or pa.types.is_decimal(type_))


@dataclasses.dataclass(frozen=True)
class Given:
    """The schemas of blocks: of their rows, and of their origin. meanings: what columns are whose names do not say."""

    schema: pa.Schema
    origin: pa.Schema = ORIGIN
    meanings: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Columns:
    """The columns of a source's rows, and its rows as blocks.

    schema, origin: of the blocks. index: the position of a column by its name, with the source's own error for none.
    are_letters: they have the columns of dead letters, also if another program has written the file again.
    own: the positions of the rows' own columns, those that dead letters keep.
    """

    def __init__(
        self, schema: pa.Schema, index: Callable[[str], int] | None = None, origin: pa.Schema = ORIGIN
    ) -> None:
        self.origin = origin
        self.schema = pa.schema(map(_as_cells, schema), schema.metadata)
        self.index = index or (lambda name: index_of(self.schema, name, ""))
        self.are_letters = set(LETTER.names) <= set(self.schema.names)
        self.own = [i for i, name in enumerate(self.schema.names) if not self.are_letters or name not in LETTER.names]

    def without_own(self) -> Columns:
        """The same columns, none of which dead letters keep."""
        copied = copy.copy(self)
        copied.own = []
        return copied

    def blocks(self, source: Iterable[Rows]) -> Iterator[Block]:
        """The source's rows; empty batches are left out."""
        return (self.block(rows) for rows in source if rows.batch.num_rows)

    def block(self, rows: Rows) -> Block:
        batch, origin = rows.batch, _first_origin(rows) if self.are_letters else _origin(rows)
        if not batch.schema.equals(self.schema, check_metadata=True):
            columns = map(_retyped, batch.columns, self.schema.types)
            batch = pa.RecordBatch.from_arrays(list(columns), schema=self.schema)
        return Block(batch, origin)

    def letter_fields(self) -> list[pa.Field]:
        """The rows' own columns, as they stand in a file of dead letters."""
        return [_as_text(self.schema.field(position)) for position in self.own]

    def letters(self, block: Block, dead: pa.RecordBatch) -> tuple[pa.RecordBatch, list[pa.Array]]:
        """Dead letters, marked where a row could not be read, and their columns: those of `letter_fields`."""
        place = dead.schema.get_field_index("failed_outcome")
        is_unread = block.origin.column("unread").is_valid()
        outcomes = pc.replace_with_mask(dead.column(place), is_unread, pa.scalar(_UNREAD))
        return dead.set_column(place, "failed_outcome", outcomes), self._own_columns(block)

    def _own_columns(self, block: Block) -> list[pa.Array]:
        if block.origins.num_columns > len(ORIGIN):
            return block.origin.columns[len(ORIGIN) :]  # type: ignore[no-any-return]
        columns = [block.rows.column(position) for position in self.own]
        return [column.storage if isinstance(column.type, CellType) else column for column in columns]

    @property
    def long_origin(self) -> pa.Schema:
        """Of rows that keep their own columns, whatever becomes of them."""
        return pa.schema([*ORIGIN, *(field.with_name(f"{_OWN}{field.name}") for field in self.letter_fields())])

    def with_own(self, block: Block) -> Block:
        """The rows with a `long_origin`."""
        if block.origins.num_columns > len(ORIGIN):
            return block
        columns = [*block.origin.columns, *self._own_columns(block)]
        return Block(block.rows, pa.RecordBatch.from_arrays(columns, schema=self.long_origin))


def _as_text(field: pa.Field) -> pa.Field:
    if not isinstance(field.type, CellType):
        return field
    return field.with_type(pa.string()).with_metadata({_CELL: field.type.__arrow_ext_serialize__()})


def _as_cells(field: pa.Field) -> pa.Field:
    cell = (field.metadata or {}).get(_CELL)
    if cell is None:
        return field
    return pa.field(field.name, CellType.__arrow_ext_deserialize__(pa.string(), cell))


def _retyped(column: pa.Array, type_: pa.DataType) -> pa.Array:
    is_cell = isinstance(type_, CellType) and not isinstance(column.type, CellType)
    return pa.ExtensionArray.from_storage(type_, column) if is_cell else column


def _origin(rows: Rows) -> pa.RecordBatch | Consecutive:
    length = rows.batch.num_rows
    if rows.numbers is None and not rows.refused:
        return Consecutive(rows.file, rows.first, length)
    numbers = row_numbers(rows.first, length) if rows.numbers is None else rows.numbers
    return _origins(rows.file, length, numbers, _unread(rows.refused, length))


def _origins(file: str, length: int, numbers: pa.Array, unread: pa.Array | None = None) -> pa.RecordBatch:
    read = _ALL_READ.slice(0, length) if unread is None else unread
    columns = [_repeated(file).slice(0, length), numbers, read, _NO_KEYS.slice(0, length)]
    return pa.RecordBatch.from_arrays(columns, schema=ORIGIN)


@functools.lru_cache(maxsize=8)  # slices read a few files at a time
def _repeated(file: str) -> pa.StringArray:
    return pa.repeat(few.text(file), TYPED_BATCH_ROWS)


def _first_origin(rows: Rows) -> pa.RecordBatch:
    columns = []
    for name, type_ in (("failed_file", pa.string()), ("failed_row", pa.uint64())):
        column = decoded(rows.batch.column(name))
        try:
            columns.append(column.cast(type_))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidArgument(
                f"{rows.file}: column {name!r} of dead letters must be {type_}, and is {column.type}: {error}"
            ) from error
    refused = dict(rows.refused)
    for row, letter in enumerate(rows.batch.select(["failed_outcome", "failed_error"]).to_pylist()):
        if letter["failed_outcome"] == _UNREAD:
            refused[row] = letter["failed_error"] or "could not be read"
    # A row may have several dead letters: each is a row of its own.
    own = keys.array(Block(rows.batch, _origin(rows)).keys())
    return pa.RecordBatch.from_arrays([*columns, _unread(refused, rows.batch.num_rows), own], schema=ORIGIN)


def _unread(refused: Mapping[int, str], length: int) -> pa.StringArray:
    if not refused:
        return pa.nulls(length, pa.string())
    return pa.array([refused.get(position) for position in range(length)], pa.string())
