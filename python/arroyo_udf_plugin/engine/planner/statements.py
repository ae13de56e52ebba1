"""The statements of a query file, read. What their names mean is the compiler's work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...errors import nearest
from ..connectors.table_options import Option
from ..datafusion.tokens import Token
from .column_types import type_at
from .selects import AnyQuery, query_of
from .text import Cursor, Tokens, Wrong, leveled, split


@dataclass(frozen=True)
class DeclaredColumn:
    """generated: the expression of GENERATED ALWAYS AS; empty: it is read. at: where it is.

    metadata: the key of METADATA FROM. is_json: its type is JSON."""

    name: str
    type: pa.DataType
    not_null: bool
    generated: Tokens
    at: int
    metadata: Option | None = None
    is_json: bool = False


@dataclass(frozen=True)
class WatermarkClause:
    """expression: empty: the column itself."""

    column: str
    expression: Tokens
    at: int


@dataclass(frozen=True)
class CreateTable:
    """columns: None: they are not named. is_lookup: CREATE TEMPORARY TABLE. at: where its name is."""

    name: str
    columns: Sequence[DeclaredColumn] | None
    primary_key: Sequence[str]
    watermark: WatermarkClause | None
    options: Mapping[str, Option]
    at: int
    is_lookup: bool = False


@dataclass(frozen=True)
class CreateView:
    """A query with a name: CREATE VIEW, or CREATE TABLE AS."""

    name: str
    query: AnyQuery
    at: int


@dataclass(frozen=True)
class Insert:
    """columns: None: those of the table, in their order. at: where the table's name is."""

    table: str
    columns: Sequence[tuple[str, int]] | None
    query: AnyQuery
    at: int


@dataclass(frozen=True)
class SelectStatement:
    """A query alone: its rows go to standard output."""

    query: AnyQuery
    at: int


@dataclass(frozen=True)
class Set:
    name: str
    value: str
    at: int


Statement = CreateTable | CreateView | Insert | SelectStatement | Set

_REFUSED = {
    "update": "UPDATE: a stream is not changed. Write INSERT INTO ... SELECT",
    "delete": "DELETE: a stream is not changed. Write INSERT INTO ... SELECT ... WHERE",
    "drop": "DROP: tables are only there while the file runs. Leave it out",
    "alter": "ALTER: change the CREATE TABLE",
    "copy": "COPY: create a table with connector = 'filesystem' and insert into it",
    "describe": "DESCRIBE: write EXPLAIN before the query; it shows columns and types",
    "analyze": "ANALYZE: write EXPLAIN before the query",
    "merge": "MERGE: insert into a table with a PRIMARY KEY, which replaces rows",
    "replace": "REPLACE: insert into a table with a PRIMARY KEY, which replaces rows",
    "truncate": "TRUNCATE: tables are only there while the file runs. Leave it out",
    "show": "SHOW: write EXPLAIN before a query; it shows columns and types",
    "use": "USE: tables have no schemas here. Leave it out",
    "values": "VALUES: rows come from a table. Write a file, and a table that reads it",
    "table": "TABLE: write SELECT * FROM the table",
    "call": "CALL: write a SELECT that calls the function for each row",
    "prepare": "PREPARE: write the query itself",
    "execute": "EXECUTE: write the query itself",
    "grant": "GRANT: nobody else sees these tables. Leave it out",
    "begin": "BEGIN: checkpoints commit what comes out. Leave it out",
    "commit": "COMMIT: checkpoints commit what comes out. Leave it out",
}
_NOT_CREATED = {
    "materialized": "MATERIALIZED VIEW: write CREATE VIEW; its rows are computed once, whoever selects from it",
    "external": "EXTERNAL TABLE: write CREATE TABLE ... WITH (connector = 'filesystem', path = '...')",
    "function": "FUNCTION: write it in Python, Rust or C, and name its file with --udf",
    "database": "DATABASE: tables have no schemas here. Leave it out",
    "schema": "SCHEMA: tables have no schemas here. Leave it out",
    "index": "INDEX: rows pass one by one. Leave it out",
    "type": "TYPE: write the type where it is used, as in STRUCT<a INT>",
}


def statement_of(part: Tokens) -> Statement:
    """Raises Wrong."""
    cursor = Cursor(part)
    at = cursor.offset
    word = part[0].word
    if word in ("select", "with") or part[0].text == "(":
        return SelectStatement(query_of(part), at)
    if cursor.take("insert"):
        return _insert(cursor)
    if cursor.take("create"):
        return _create(cursor)
    if cursor.take("set"):
        return _set(cursor, at)
    if word in _REFUSED:
        raise Wrong(f"there is no {_REFUSED[word]}", at)
    raise Wrong(f"{part[0].text} begins no statement: write CREATE TABLE, CREATE VIEW, INSERT INTO, SELECT or SET", at)


def _insert(cursor: Cursor) -> Insert:
    cursor.need("into")
    table, at = cursor.name("the table's name")
    columns = None
    if cursor.now is not None and cursor.now.text == "(" and not _is_query(cursor.rest):
        columns = _names(cursor.brackets())
    if cursor.now is not None and cursor.now.word == "values":
        raise Wrong("INSERT ... VALUES is not supported: rows come from a SELECT", cursor.offset)
    if cursor.now is None:
        cursor.fail("a SELECT")
    return Insert(table, columns, query_of(cursor.rest), at)


def _is_query(part: Tokens) -> bool:
    return len(part) > 1 and part[1].word in ("select", "with")


def _names(part: Tokens) -> list[tuple[str, int]]:
    names = []
    for column in split(part, ","):
        if len(column) != 1 or column[0].name is None:
            raise Wrong("write the columns' names, separated by commas", column[0].start if column else part[0].start)
        names.append((column[0].name, column[0].start))
    return names


def _set(cursor: Cursor, at: int) -> Set:
    name, at = cursor.name("the name of a setting")
    if not cursor.take("="):
        cursor.need("to")
    return Set(name, _value(cursor), at)


def _value(cursor: Cursor) -> str:
    """A quoted text, a word, a number or an interval."""
    cursor.take("interval")
    token = cursor.next()
    value = token.value if token.kind == "text" else token.text
    if value is None or token.kind in ("sign", "quoted"):
        raise Wrong("write a text in single quotes, a number, true or false here", token.start)
    if cursor.now is not None and cursor.now.word.removesuffix("s") in (
        "second",
        "minute",
        "hour",
        "day",
        "millisecond",
    ):
        value += f" {cursor.next().word}"
    if cursor.now is not None:
        cursor.fail("a comma, or the end")
    return value


def _create(cursor: Cursor) -> CreateTable | CreateView:
    if cursor.take("or", "replace"):
        raise Wrong("CREATE OR REPLACE: each name is created once", cursor.offset)
    if cursor.now is not None and cursor.now.word in _NOT_CREATED:
        raise Wrong(f"there is no CREATE {_NOT_CREATED[cursor.now.word]}", cursor.offset)
    if cursor.take("view"):
        name, at = cursor.name("the view's name")
        if cursor.now is not None and cursor.now.text == "(":
            raise Wrong("the columns of a view have the names of its items: write SELECT ... AS name", cursor.offset)
        cursor.need("as")
        return CreateView(name, query_of(cursor.rest), at)
    is_lookup = cursor.take("temporary")
    if not cursor.take("table"):
        cursor.fail("TABLE" if is_lookup else "TABLE or VIEW")
    cursor.take("if", "not", "exists")
    name, at = cursor.name("the table's name")
    if cursor.now is not None and cursor.now.word == "as" and is_lookup:
        raise Wrong("a TEMPORARY TABLE is in a database, and rows look others up in it: for a query, write VIEW", at)
    if cursor.take("as"):
        return CreateView(name, query_of(cursor.rest), at)
    table = _Columns()
    columns = None
    if cursor.now is not None and cursor.now.text == "(":
        opens, inner = cursor.offset, cursor.brackets()
        for column in _columns_of(inner):
            if not column:
                raise Wrong("a column is missing between these brackets", opens)
            table.read(column)
        table.check()
        columns = table.columns
    options = _options(cursor) if cursor.take("with") else {}
    if cursor.now is not None and cursor.now.word == "as":
        raise Wrong(
            "a table AS a query has the columns and types of its items: write CAST(... AS ...) AS name there, and "
            "leave out what is before AS",
            cursor.offset,
        )
    if cursor.now is not None:
        cursor.fail("WITH (option = 'value', ...), or the end")
    key = [name for name, _ in table.primary_key]
    return CreateTable(name, columns, key, table.watermark, options, at, is_lookup)


def _columns_of(inner: Tokens) -> list[Tokens]:
    """What stands between the brackets of CREATE TABLE, cut at commas, but not at those of STRUCT<a INT, b INT>."""
    columns: list[list[Token]] = []
    open_ = 0
    for part in split([piece for token in inner for piece in _single(token)], ","):
        if open_:
            columns[-1] += [_COMMA, *part]
        else:
            columns.append(list(part))
        for place, token, depth in leveled(part):
            if not depth and token.text == "<" and place and part[place - 1].word == "struct":
                open_ += 1
            elif not depth and token.text == ">" and open_:
                open_ -= 1
    return list(columns)


_COMMA = Token("sign", ",", 0, 0, "")


def _single(token: Token) -> Iterator[Token]:
    """>> as two signs: it closes two types."""
    if token.text != ">>":
        yield token
        return
    for start in (token.start, token.start + 1):
        yield Token("sign", ">", start, start + 1, "")


class _Columns:
    """What stands between the brackets of CREATE TABLE."""

    def __init__(self) -> None:
        self.columns: list[DeclaredColumn] = []
        self.primary_key: list[tuple[str, int]] = []
        self.watermark: WatermarkClause | None = None

    def read(self, part: Tokens) -> None:
        cursor = Cursor(part)
        if cursor.take("watermark", "for"):
            if self.watermark is not None:
                raise Wrong("there is a second WATERMARK FOR: a table has one event time", part[0].start)
            column, at = cursor.name("the column of the event time")
            cursor.take("as")
            self.watermark = WatermarkClause(column, cursor.rest, at)
            return
        if [token.word for token in part[:3:2]] == ["constraint", "primary"]:
            cursor.take("constraint")
            cursor.name("the constraint's name")
            cursor.need("primary", "key")
            self.primary_key += _names(cursor.brackets())
        elif cursor.take("primary", "key"):
            self.primary_key += _names(cursor.brackets())
        else:
            self._column(cursor)

    def check(self) -> None:
        """Raises Wrong for a key of columns that are not there."""
        names = [column.name for column in self.columns]
        for name, at in self.primary_key:
            if name not in names:
                raise Wrong(f"there is no column {name} for the key: {nearest(name, names)}", at)

    def _column(self, cursor: Cursor) -> None:
        name, at = cursor.name("a column's name")
        if name in [column.name for column in self.columns]:
            raise Wrong(f"there is a column {name} already: rename one", at)
        is_json = cursor.now is not None and cursor.now.word == "json"
        type_, not_null = type_at(cursor), False
        generated: Tokens = ()
        metadata: Option | None = None
        while cursor.now is not None:
            if cursor.take("not", "null"):
                not_null = True
            elif cursor.take("primary", "key"):
                self.primary_key.append((name, at))
            elif cursor.now.word == "metadata" and len(cursor.rest) > 1 and cursor.rest[1].text == "(":
                raise Wrong("write METADATA FROM 'key', without brackets", cursor.offset)
            elif cursor.take("metadata", "from"):
                token = cursor.next()
                if token.kind != "text" or token.value is None:
                    raise Wrong("write METADATA FROM 'key', with the key in single quotes", token.start)
                metadata = Option(token.value, token.start)
            elif cursor.take("generated", "always", "as"):
                generated = cursor.brackets()
                cursor.take("stored")
                cursor.take("virtual")
            elif not cursor.take("null"):
                cursor.fail("NOT NULL, PRIMARY KEY, GENERATED ALWAYS AS (...), METADATA FROM 'key', or a comma")
        if generated and metadata is not None:
            raise Wrong(f"{name} is generated, and from metadata: leave out one of them", metadata.at)
        is_json &= type_ == pa.string()  # no list of them
        self.columns.append(DeclaredColumn(name, type_, not_null, generated, at, metadata, is_json))


def _options(cursor: Cursor) -> dict[str, Option]:
    options: dict[str, Option] = {}
    for option in split(cursor.brackets(), ","):
        inner = Cursor(option) if option else cursor
        at = inner.offset
        token = inner.next()
        name = token.value or token.name
        if name is None:
            raise Wrong(f"write an option's name here, not {token.text}", at)
        while inner.take("."):
            name += f".{inner.name('the rest of the name')[0]}"
        inner.need("=")
        if name in options:
            raise Wrong(f"the option {name} is there twice", at)
        options[name] = Option(_value(inner), at)
    return options
