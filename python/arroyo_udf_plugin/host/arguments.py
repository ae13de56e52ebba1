"""What callers pass, as arrays of the types that a function takes: the one door of calls and sends.

    f(distance, air_time)              by position
    f(distance=..., air_time=...)      by name
    f(table)                           a RecordBatch, Table or DataFrame: its columns, by name; others are left aside

A column is an Arrow array or chunked array, an object with the Arrow PyCapsule protocol (such as a column of polars), a
column of pandas, an array of numpy, or a list. A scalar counts for every row.

Guarantees: each value is read once, so a stream may be one that can be read only once. What comes out has the
function's types and one length; rows with a value that would change are refused (plugin/casting.py has the rule).
Arrays that fit already cost one comparison of types each.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from .._native import columns as columns_of
from .._native import export, fit
from ..errors import InvalidArgument
from ..plugin.casting import Cast, cast, constructor, fits, to_check
from ..plugin.vectorized import is_plain

_NO_NAMES: Mapping[str, Any] = MappingProxyType({})
_SCALARS = (bool, int, float, str, bytes, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, dict)

Choose = Callable[[pa.RecordBatch], Sequence[Any]]


@dataclass(slots=True)
class Piece:
    """Rows for one call.

    arrays: the arguments. refused: rows that must not be called, and why; arguments that do not fit are null there.
    A row without a reason is not wanted, and null.
    """

    arrays: Sequence[pa.Array]
    refused: dict[int, str | None]

    @property
    def n_rows(self) -> int:
        return len(self.arrays[0])

    def slice(self, start: int, length: int) -> Piece:
        refused = _between(self.refused, start, length)
        return Piece([array.slice(start, length) for array in self.arrays], refused)

    def kept(self) -> list[int]:
        """The rows that are not refused."""
        return [row for row in range(self.n_rows) if row not in self.refused]

    def runs(self) -> Iterator[tuple[int, Sequence[pa.Array]]]:
        """The rows that are not refused, cut at those that are: the number of the first, and its neighbours' arrays."""
        if not self.refused:
            yield 0, self.arrays
            return
        start = 0
        for stop in [*sorted(self.refused), self.n_rows]:
            if start < stop:
                yield start, [array.slice(start, stop - start) for array in self.arrays]
            start = stop + 1


class Arguments:
    """The arguments of one function. where: "plugin.function"."""

    def __init__(self, where: str, schema: pa.Schema) -> None:
        self._where = where
        self._schema = schema
        self._types: list[pa.DataType] = schema.types
        self._count = len(self._types)
        self._columns = columns_of(pa.Array, tuple(self._types))
        self._must_look = not self._count or any(to_check(type_, type_) for type_ in self._types)
        self.are_plain = self._count > 0 and all(is_plain(type_) for type_ in self._types)

    # ---- The hot path ----

    def fit(self, given: Sequence[Any]) -> bool:
        """Whether these are arrays of the function's types and of one length: then they can be exported as they are."""
        return not self._must_look and fit(self._columns, given)

    def export(self, arrays: Sequence[pa.Array]) -> int:
        """Exports arrays that fit as one struct ArrowArray; returns its address. Call free_batch after the call, in any
        case."""
        return export(self._columns, arrays)

    # ---- The door ----

    def pieces(
        self, given: Sequence[Any], named: Mapping[str, Any] = _NO_NAMES, whole: bool = False
    ) -> tuple[list[Piece], bool]:
        """The caller's values, cut at the chunks of all chunked arrays; and whether there were any.

        whole: in one piece.
        Raises InvalidArgument for values that do not fit, by number, name, type or length.
        """
        if not named and self.fit(given):
            return [Piece(given, {})], False
        values = self._bound(given, named)
        columns: list[pa.Array | pa.ChunkedArray] = []
        refused: dict[int, str | None] = {}
        repeated: list[int] = []
        for i, value in enumerate(values):
            if _is_scalar(value):
                repeated.append(i)
                value = pa.array([value.as_py()], value.type) if isinstance(value, pa.Scalar) else [value]
            converted = self._cast(i, value)
            columns.append(converted.array)
            if i in repeated and converted.refused:
                raise self._wrong(i, converted.refused[0])
            for row, why in converted.refused.items():
                refused.setdefault(row, f"argument {self._named(i)}: {why}")
        self._spread(columns, repeated)
        if not any(isinstance(column, pa.ChunkedArray) for column in columns):
            return [Piece(columns, refused)], False
        table = pa.table(columns, names=[str(i) for i in range(len(columns))])
        if whole:
            batches = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
            if len(batches) > 1:
                raise InvalidArgument(f"{self._where}: {len(table)} rows are too much for one batch; pass fewer")
        else:
            batches = table.to_batches()
        return list(_cut(batches, refused)), True

    def parts(self, batch: Any, choose: Choose | None) -> Iterator[tuple[pa.RecordBatch, Piece]]:
        """The caller's batch as record batches, each with the arguments from it.

        batch: a table, whose columns are all kept; a column; or a tuple of columns. choose: picks the arguments.
        """
        table = as_table(batch)
        if table is None:
            pieces, _ = self.pieces(batch if isinstance(batch, tuple) else (batch,))
            for piece in pieces:
                names = self._schema.names or [""]
                yield pa.RecordBatch.from_arrays(list(piece.arrays), names=names), piece
            return
        for rows in [table] if isinstance(table, pa.RecordBatch) else table.to_batches(MAP_ROWS):
            (piece,), _ = self.pieces((rows,) if choose is None else tuple(choose(rows)), whole=True)
            if piece.n_rows != rows.num_rows:
                raise InvalidArgument(
                    f"{self._where}: there are {piece.n_rows} arguments for {rows.num_rows} rows; give one for each"
                )
            yield rows, piece

    def row(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The values of one row, in order. Raises InvalidArgument for others than the function has."""
        if not self._count and (given or named):
            raise InvalidArgument(f"{self._where}: takes no arguments")
        return self._in_order(given, named) if self._count else []

    def of_rows(self, rows: Sequence[Sequence[Any]]) -> Piece:
        """The arguments of rows, each as `row` has answered it. Raises InvalidArgument if there is no type for them."""
        if not self._count:
            return Piece([pa.nulls(len(rows))], {})
        (piece,), _ = self.pieces([list(column) for column in zip(*rows, strict=True)], whole=True)
        return piece

    def _bound(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """A column or scalar for each argument."""
        if len(given) == 1 and not named and (table := as_table(given[0])) is not None:
            if not self._count:
                return [pa.nulls(table.num_rows)]
            return [table.column(self._index(table.schema, name)) for name in self._schema.names]
        return self._in_order(given, named)

    def _in_order(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        names = self._schema.names
        if unknown := [name for name in named if name not in names[len(given) :]]:
            twice = unknown[0] in names
            what = f"gets {unknown[0]!r} twice" if twice else f"has no argument {unknown[0]!r}"
            raise InvalidArgument(f"{self._where}: {what}; its arguments are {', '.join(names)}")
        if self._count == 0:  # one array of nulls, one per row
            if len(given) != 1 or not isinstance(given[0], pa.NullArray):
                raise InvalidArgument(f"{self._where}: takes no arguments; pass pa.nulls(n) to call it for n rows")
        elif len(given) + len(named) != self._count:
            got = f"{len(given) + len(named)}" + (f" ({', '.join(named)} by name)" if named else "")
            raise InvalidArgument(f"{self._where}: takes {self._count} arguments ({', '.join(names)}), but got {got}")
        return [*given, *(named[name] for name in names[len(given) :])]

    def _index(self, schema: pa.Schema, name: str) -> int:
        indices = schema.get_all_field_indices(name)
        if len(indices) == 1:
            return int(indices[0])
        raise InvalidArgument(
            f"{self._where}: takes {', '.join(self._schema.names)}, and the table has "
            f"{f'{len(indices)} columns' if indices else 'no column'} {name!r} among {', '.join(schema.names)}; "
            "rename its columns, or pass the arguments one by one"
        )

    def _cast(self, i: int, value: Any) -> Cast:
        if self._count == 0:
            return Cast(value)
        if isinstance(value, Cast):
            inner = self._cast(i, value.array)
            return Cast(inner.array, inner.refused | value.refused)
        wanted = self._schema.field(i)
        try:
            array = _array(value, wanted.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._wrong(i, f"cannot be read as {wanted.type}: {error}") from error
        if array is None:
            raise self._wrong(
                i, f"is a {type(value).__name__}; pass an Arrow array: pa.array(..., {constructor(wanted.type)})"
            )
        if not to_check(array.type, wanted.type):
            return Cast(array)
        if why := fits(array.type, wanted):
            raise self._wrong(i, why)
        return cast(array, wanted)

    def _spread(self, columns: list[pa.Array | pa.ChunkedArray], repeated: list[int]) -> None:
        """Repeats scalars for all rows. All columns then have one length."""
        others = [i for i in range(len(columns)) if i not in repeated]
        n_rows = len(columns[others[0]]) if others else 1
        for i in repeated:
            columns[i] = columns[i].take(pa.repeat(0, n_rows))
        for i in others:
            if len(columns[i]) != n_rows:
                first = "the first" if others[0] == 0 else f"argument {others[0] + 1}"
                raise self._wrong(i, f"has {len(columns[i])} rows, but {first} has {n_rows}; pass equal lengths")

    def _wrong(self, i: int, what: str) -> InvalidArgument:
        return InvalidArgument(f"{self._where}: argument {i + 1}, {self._named(i)}, {what}")

    def _named(self, i: int) -> str:
        return repr(self._schema.field(i).name)


MAP_ROWS = 8192  # of a batch that is cut from a table: it stays in the processor's cache


def as_table(value: Any) -> pa.RecordBatch | pa.Table | None:
    """Columns with names, of any library; None if the value is none. A stream is read here.

    Raises InvalidArgument for a table that pyarrow cannot read.
    """
    if isinstance(value, pa.RecordBatch | pa.Table):
        return value
    if hasattr(type(value), "collect_schema") and not hasattr(value, "__arrow_c_stream__"):  # even its names take work
        raise InvalidArgument(f"a {type(value).__name__} has no rows yet; pass what its .collect() returns")
    try:
        if isinstance(value, pa.RecordBatchReader):
            return value.read_all()
        if not hasattr(value, "columns"):
            return None
        if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__"):  # the latter: pandas before 2.2
            return pa.table(value)
        if hasattr(value, "__arrow_c_array__"):
            return pa.record_batch(value)
    except pa.ArrowException as error:
        raise InvalidArgument(f"the table cannot be read: {error}") from error
    return None


def _is_scalar(value: Any) -> bool:
    """Also of numpy: those have a type and no dimensions. Not None, which may be a column that was not found."""
    return isinstance(value, (*_SCALARS, pa.Scalar)) or getattr(value, "ndim", None) == 0


def _array(value: Any, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray | None:
    """The caller's column as pyarrow reads it; None if it is no column."""
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value
    if hasattr(value, "__arrow_c_stream__"):
        return pa.chunked_array(value)
    if hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_array__"):
        return pa.array(value)
    if hasattr(value, "__array__"):
        return pa.array(value)  # with pandas' nulls, if it is of pandas
    if isinstance(value, Sequence):
        return _from_python(value, wanted)
    return None


def _from_python(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    try:
        array = pa.array(values)
    except (OverflowError, pa.ArrowInvalid):
        numbers = (int, float) if pa.types.is_integer(wanted) else (int,)
        if not all(value is None or type(value) in numbers for value in values):
            raise
        # Integers of more than 63 bits, perhaps beside floats: `cast` judges them one by one.
        return pa.array([None if value is None else decimal.Decimal(str(value)) for value in values])
    if pa.types.is_floating(array.type) and pa.types.is_floating(wanted):
        return pa.array(values, wanted)  # Python has no narrower floats: the nearest is meant
    return array


def _between(refused: dict[int, str | None], start: int, length: int) -> dict[int, str | None]:
    rows = range(start, start + length) if refused else ()
    return {row - start: refused[row] for row in rows if row in refused}


def _cut(batches: list[pa.RecordBatch], refused: dict[int, str | None]) -> Iterator[Piece]:
    first = 0
    for batch in batches:
        yield Piece(batch.columns, _between(refused, first, batch.num_rows))
        first += batch.num_rows
