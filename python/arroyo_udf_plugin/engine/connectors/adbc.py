"""Tables of any database that has a driver of ADBC and speaks standard SQL, as a source.

Guarantees: a column has the type that the driver gives it. A statement has names in double quotes, whole numbers, dates
and times: no text of a row gets into one.

Assumes: the database knows LIMIT, and names in double quotes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import pyarrow as pa
import pydantic

from ...errors import InvalidArgument
from .connector import Connector
from .database import Connected, FoundTable, ReadDatabase, TableColumn, Transaction, quoted
from .lookup_types import ColumnReading
from .table_options import TableOptions, chosen
from .table_source import TableReading

_is = pa.types


class AdbcInput(TableReading):
    """The rows of a table in a database with a driver of ADBC, or of a query."""

    type: Literal["adbc"] = "adbc"

    driver: str
    """The driver: the path of its library, or a name that the driver manager of ADBC finds."""

    uri: str = ""
    """The database, as the driver has it."""

    database_options: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further options of the driver."""

    entrypoint: str | None = None
    """The function of the library with which it begins, if it is not the usual one."""

    def database(self) -> ReadDatabase:
        return OtherDatabase(self)

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        keys = {
            "driver": options.need("driver", "/usr/lib/libadbc_driver_flightsql.so"),
            "database_options": options.read("database_options", _options, "name=value,name=value"),
            "entrypoint": options.text("entrypoint"),
        }
        return cls(**cls._keys(options, needs_uri=False), **chosen(keys))


def _options(text: str) -> dict[str, str]:
    pairs = [item.partition("=") for item in text.split(",")]
    if not all(name.strip() and mark for name, mark, _ in pairs):
        raise ValueError
    return {name.strip(): value.strip() for name, _, value in pairs}


CONNECTOR = Connector("adbc", source=AdbcInput)


class ArrowReading:
    """Columns as a driver gives them. A declared type is the text of an Arrow type, which `known` has."""

    def __init__(self) -> None:
        self.known: dict[str, pa.DataType] = {}

    def natural(self, declared: str) -> pa.DataType | None:
        type_ = self.known[declared]
        if isinstance(type_, pa.BaseExtensionType):  # such as a number that Arrow has no type for, as text
            type_ = type_.storage_type
        if _is.is_large_string(type_) or _is.is_string_view(type_):
            return pa.string()
        if _is.is_large_binary(type_) or _is.is_binary_view(type_):
            return pa.binary()
        kinds = (_is.is_integer, _is.is_boolean, _is.is_string, _is.is_binary, _is.is_date32, _is.is_timestamp)
        more = (_is.is_float32, _is.is_float64, _is.is_decimal128, _is.is_list)
        return type_ if any(kind(type_) for kind in (*kinds, *more)) else None

    def expression(self, column: str, declared: str, wanted: pa.DataType) -> str | None:
        natural = self.natural(declared)
        if natural is None or natural == wanted:
            return None if natural is None else column
        same = any(
            kind(natural) and kind(wanted)
            for kind in (_is.is_integer, _is.is_floating, _is.is_decimal128, _is.is_timestamp)
        )
        return column if same and getattr(natural, "tz", None) == getattr(wanted, "tz", None) else None

    def ordered(self, declared: str) -> pa.DataType | None:
        """Not texts: how they are written in a statement differs between databases."""
        type_ = self.known[declared]
        is_time = _is.is_timestamp(type_) and type_.tz is None
        return type_ if _is.is_integer(type_) or _is.is_date32(type_) or is_time else None

    def key(self, declared: str, given: pa.DataType) -> pa.DataType | None:
        return None  # no lookups


class OtherDatabase(Connected):
    kind = "the database"

    def __init__(self, described: AdbcInput) -> None:
        self._arrow = ArrowReading()
        self.reading: ColumnReading = self._arrow
        self._described = described
        super().__init__(described.driver, described.place, "adbc_driver_manager.dbapi", "engine", only_reads=True)

    def _opened(self) -> Any:
        described = self._described
        options = {**described.database_options, **({"uri": described.uri} if described.uri else {})}
        return self._driver.connect(
            described.driver, entrypoint=described.entrypoint, db_kwargs=options, autocommit=True
        )

    def folded(self, name: str) -> str:
        return name

    def find(self, table: str, patience: float = 0, views: bool = False) -> FoundTable | None:
        return self._columns(quoted(table), patience)

    def find_query(self, query: str, patience: float = 0) -> FoundTable:
        return self._columns(f"({query}\n)", patience)

    def _columns(self, place: str, patience: float) -> FoundTable:
        def work(transaction: Transaction) -> pa.Schema:
            # With a row: some drivers take types from what is there.
            return transaction.table(f"SELECT * FROM {place} AS t LIMIT 1").schema

        schema = self.run(work, patience)
        if len(set(schema.names)) < len(schema):
            raise InvalidArgument(f"{self._name}: several columns have one name: write AS in the query")
        self._arrow.known |= {str(field.type): field.type for field in schema}
        columns = {
            field.name: TableColumn(str(field.type), not_null=False, optional=True, generated=False) for field in schema
        }
        return FoundTable(None, columns, [], is_view=True)

    def typed(self, types: Sequence[pa.DataType], query: str) -> tuple[str, int]:
        return query, 0

    def greater(self, columns: Sequence[str], values: Sequence[int | str], declared: Sequence[str]) -> str:
        literals = [
            self._literal(value, self._arrow.known[type_]) for value, type_ in zip(values, declared, strict=True)
        ]
        pairs = list(zip(columns, literals, strict=True))  # not all databases compare rows
        ways = [
            " AND ".join([*(f"{column} = {value}" for column, value in pairs[:at]), f"{pairs[at][0]} > {pairs[at][1]}"])
            for at in range(len(pairs))
        ]
        return f"({' OR '.join(f'({way})' for way in ways)})"

    def _literal(self, value: int | str, type_: pa.DataType) -> str:
        if isinstance(value, int):
            return str(value)
        return f"{'DATE' if _is.is_date32(type_) else 'TIMESTAMP'} '{value}'"

    def _passes(self, error: Any) -> bool:
        if error.sqlstate:
            return error.sqlstate[:2] in ("08", "40", "53", "55", "57")
        codes = self._driver.adbc_driver_manager.AdbcStatusCode
        return error.status_code in (codes.IO, codes.TIMEOUT)

    def _is_of_value(self, error: Any) -> bool:
        return bool(error.sqlstate) and error.sqlstate[:2] == "22"

    def _is_undone(self, error: Any) -> bool:
        return bool(error.sqlstate)
