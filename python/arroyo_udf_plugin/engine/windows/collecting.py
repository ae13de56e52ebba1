"""Rows of one or more inputs, kept until all have ended, and then answered by one query.

    rows of all ──► kept ──► the end: SELECT ... ──► results

Rows of all inputs come in one stream. Such a row says which input it is of, and the columns of the others are null.

Guarantees: results come once, at the end, in the order that the query asks for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.function import Function
from ..connectors.cells import decoded, plain_field
from ..datafusion.whole import KeysOf, Whole
from .kept import KeptRows
from .results import Step
from .storage import Some, Storage, StorageLimits

_ANSWERED = 2**63 - 1
"""The watermark of a query that has answered: no event time is as late."""
_INPUT = pa.field("__input", pa.uint16())


@dataclasses.dataclass(frozen=True)
class Collecting:
    """sql: the query. tables: the name of each input in it. plugins: the hash of each function's plugin, by the name of
    the function in the query. functions: themselves. keys: of their calls, see `Whole`."""

    sql: str
    tables: tuple[str, ...]
    plugins: Mapping[str, str]
    functions: Mapping[str, Function] = dataclasses.field(repr=False)
    keys: Callable[[str], KeysOf] | None = dataclasses.field(default=None, repr=False)

    time: None = dataclasses.field(default=None, init=False, repr=False)
    window: None = dataclasses.field(default=None, init=False, repr=False)


class Inputs:
    """Rows of several inputs in one stream. schema: of it. tables: the columns of each."""

    def __init__(self, tables: Mapping[str, pa.Schema], columns: Mapping[str, Iterable[str]] | None = None) -> None:
        """columns: the stream has only these of each input; None: all."""
        self._places = {
            table: [place for place, name in enumerate(schema.names) if columns is None or name in columns[table]]
            for table, schema in tables.items()
        }
        self.tables = {
            table: pa.schema([plain_field(schema.field(place)) for place in self._places[table]])
            for table, schema in tables.items()
        }
        fields = [
            field.with_name(f"{number}.{field.name}").with_nullable(True)
            for number, schema in enumerate(self.tables.values())
            for field in schema
        ]
        self.schema = pa.schema([_INPUT, *fields])

    @classmethod
    def of(cls, schema: pa.Schema, tables: Iterable[str]) -> Inputs:
        """schema: of the stream."""
        fields = list(schema)[1:]
        own = {
            table: pa.schema(
                [
                    field.with_name(field.name.removeprefix(f"{number}."))
                    for field in fields
                    if field.name.startswith(f"{number}.")
                ]
            )
            for number, table in enumerate(tables)
        }
        return cls(own)

    def together(self, rows: pa.RecordBatch, input: int) -> pa.RecordBatch:
        """Rows of one input, as the stream has them."""
        n_rows = rows.num_rows
        columns = [pa.repeat(pa.scalar(input, _INPUT.type), n_rows)]
        for number, (table, schema) in enumerate(self.tables.items()):
            if number == input:
                own = [rows.column(place) for place in self._places[table]]
                columns += [decoded(column) for column in own]
            else:
                columns += [pa.nulls(n_rows, type_) for type_ in schema.types]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def apart(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows of the stream, by their inputs."""
        if len(self.tables) == 1:
            (schema,) = self.tables.values()
            yield 0, pa.RecordBatch.from_arrays(rows.columns[1:], schema=schema)
            return
        numbers = rows.column(0)
        start = 1
        for number, schema in enumerate(self.tables.values()):
            mask = pc.equal(numbers, number)
            chosen = rows if (count := mask.true_count) == rows.num_rows else rows.filter(mask) if count else None
            if chosen is not None:
                columns = chosen.columns[start : start + len(schema)]
                yield number, pa.RecordBatch.from_arrays(columns, schema=schema)
            start += len(schema)


class Collected:
    """schema: of the results. kept_schema: of what `kept` gives. watermark: says in checkpoints that it
    has answered. meanings: of its columns, which say themselves what they are."""

    def __init__(self, collecting: Collecting, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of `Inputs`. Raises WrongQuery."""
        self._inputs = Inputs.of(given, collecting.tables)
        self._query = Whole(collecting.sql, self._inputs.tables, collecting.functions, collecting.keys)
        self.schema, self.kept_schema = self._query.schema, given
        self.meanings: Mapping[str, str] = {}
        self.watermark: int | None = None
        self._limits = limits
        self._storage = Storage(limits)
        self._tables = [Some(self._storage) for _ in self._inputs.tables]

    def late(self, rows: pa.RecordBatch) -> None:
        """As of `panes.Windows`."""

    def add(self, rows: pa.RecordBatch) -> None:
        """Raises InvalidArgument for rows that come after the answer."""
        if self.watermark == _ANSWERED:
            raise InvalidArgument(
                "the query has answered over all rows that there were, and there are new ones: begin anew in another "
                "place"
            )
        for number, own in self._inputs.apart(rows):
            self._tables[number].add(own)

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The results, when all rows are there. They are beyond memory on disk, too: one step has them all."""
        if not all_of_them or self.watermark == _ANSWERED:
            return
        self.watermark = _ANSWERED
        results = Some(self._storage)
        named = dict(zip(self._inputs.tables, (some.batches for some in self._tables), strict=True))
        for rows in self._query.answers(named, self._limits.memory):
            if rows.num_rows:
                results.add(rows)
        for some in self._tables:
            some.clear()
        yield results.batches
        results.clear()

    @property
    def closed(self) -> int | None:
        """As of `panes.Windows`: there is one window."""
        return self.watermark

    def kept(self) -> Iterator[KeptRows]:
        for number, some in enumerate(self._tables):
            form = partial(self._inputs.together, input=number)
            for part in some.parts:
                yield KeptRows(part, form)

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows."""
        for one in kept:
            for number, own in self._inputs.apart(one.rows):
                self._tables[number].add(own, one.place_of(own))
        self.watermark = watermark

    @property
    def size(self) -> int:
        """The bytes of what is kept."""
        return self._storage.memory + self._storage.disk
