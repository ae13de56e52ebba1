"""The items and the condition of a SELECT, over record batches of one schema.

    query = Query(Select({"kmh": "speed * 1.852"}, where="alt > 5000"), schema)
    for found in query.run(batch): ...             found.rows, and which row of the batch each of them is of

Guarantees: everything about names and types is checked when it is made. A row that cannot be computed (1 / 0) fails
alone. Items that are only columns cost no query. now() is the time of the batch, not of the plan.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.ordinals import ordinals
from ..connectors.cells import CellType, decoded
from ..connectors.schemas import without_views
from .aggregates import ListFunction
from .feed import TABLE, Feed, Single, context, is_by_row, is_by_rows, operators_of, works
from .native_calls import NO_AGGREGATES, RewrittenText, with_native
from .tokens import column_name, quoted, with_now

_ROW = pa.field("__row", pa.uint32())
_NOW = pa.field("__now", pa.timestamp("ns"))


@dataclasses.dataclass(frozen=True)
class Select:
    """items: expressions by the name of their result; None: all columns as they are. table: the name that the items
    and the condition may use for the rows. required: columns that must not be null: a row fails in which one is."""

    items: Mapping[str, str] | None = None
    where: str | None = None
    table: str = "input"
    required: Sequence[str] = ()


class WrongQuery(InvalidArgument):
    """item: the item that is wrong; None: the condition, or the whole."""

    def __init__(self, text: str, item: str | None) -> None:
        self.item = item
        super().__init__(text)


class Found(NamedTuple):
    """rows: of the result. of: the position of each in the batch; None: each is of the row in its place."""

    rows: pa.RecordBatch
    of: pa.UInt32Array | None


class Failed(NamedTuple):
    """A row that cannot be computed, and why."""

    position: int
    text: str


class Query:
    """schema: of the results. Raises WrongQuery."""

    def __init__(self, select: Select, given: pa.Schema) -> None:
        for name in given.names:
            if name in (_ROW.name, _NOW.name):
                raise WrongQuery(f"a column has the name {name}, which queries need: rename it", None)
        self._cells = [i for i, type_ in enumerate(given.types) if isinstance(type_, CellType)]
        self._given = pa.schema(
            pa.field(field.name, pa.string() if i in self._cells else field.type) for i, field in enumerate(given)
        )
        self._given_metadata = given.metadata
        self._numbers = ordinals(0, type_="uint32")  # of the longest batch's rows
        self._required = []
        for name in select.required:
            if (position := self._given.get_field_index(name)) < 0:
                raise WrongQuery(f"there is no column {name}", None)
            self._required.append(position)
        items = {name: quoted(name) for name in self._given.names} if select.items is None else select.items
        self._columns = self._only_columns(items, select)
        if self._columns is not None:
            fields = [self._given.field(position) for position in self._columns]
            self.schema = pa.schema(map(pa.Field.with_name, fields, items))
            self._names = None if [field.name for field in fields] == list(items) else list(items)
            return
        try:
            self._plan(items, select)
        except WrongQuery:
            raise
        except Exception as error:
            raise self._wrong(items, select, error) from None

    def _only_columns(self, items: Mapping[str, str], select: Select) -> list[int] | None:
        if select.where is not None:
            return None
        names = [column_name(text, select.table) for text in items.values()]
        indices = [self._given.get_field_index(name) if name is not None else -1 for name in names]
        return None if -1 in indices else indices

    def _plan(self, items: Mapping[str, str], select: Select) -> None:
        plan = _plan_of(tuple(items.items()), select.where, select.table, self._given)
        self._has_now, self._is_by_row, self.schema = plan.has_now, plan.is_by_row, plan.schema
        self._other_fields: list[tuple[int, pa.Field]] | None = None  # than in answers, once there is one
        self._runs = Feed(plan.asked, plan.fed, plan.is_by_row) if works() else Single(plan.asked)

    def _wrong(self, items: Mapping[str, str], select: Select, error: Exception) -> WrongQuery:
        """Which item is wrong, if one is by itself."""
        fed = pa.schema([*self._given, _ROW, _NOW])
        alone = [(name, dataclasses.replace(select, where=None), [f"({text}\n)"]) for name, text in items.items()]
        for name, chosen, texts in [*alone, (None, select, [])]:
            try:
                planned(written(with_now(_text(texts, chosen)), select.table, fed), fed).execution_plan()
            except Exception as cause:
                return WrongQuery(error_message(cause), name)
        return WrongQuery(error_message(error), None)

    @property
    def is_in_order(self) -> bool:
        """Whether rows that fail come in their order, too: those without a value that is required come first."""
        return not self._required

    def run(self, batch: pa.RecordBatch) -> Iterator[Found | Failed]:
        """batch: in the schema that was given. Rows that are found come in their order."""
        if self._cells:
            columns = [decoded(column) for column in batch.columns]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._given)
        incomplete = self._incomplete(batch) if self._required else {}
        whole = length = batch.num_rows
        if self._columns is not None and not incomplete:
            if length:
                yield Found(self._selected(batch, self._columns), None)
            return
        if len(self._numbers) < length:
            self._numbers = ordinals(length, type_="uint32")
        numbers = self._numbers if len(self._numbers) == length else self._numbers.slice(0, length)
        if incomplete:
            yield from (Failed(row, f"column {name!r} is null, and NOT NULL") for row, name in incomplete.items())
            complete = pa.array([row not in incomplete for row in range(length)])
            batch, numbers = batch.filter(complete), numbers.filter(complete)
            length = batch.num_rows
        if self._columns is not None:
            if length:
                yield Found(self._selected(batch, self._columns), numbers)
            return
        fed = batch.append_column(_ROW, numbers)
        if self._has_now:
            fed = fed.append_column(_NOW, pa.repeat(pa.scalar(time.time_ns(), _NOW.type), length))
        yield from self._run(fed, whole)

    def _selected(self, batch: pa.RecordBatch, columns: list[int]) -> pa.RecordBatch:
        """Columns of a batch as `schema` has them. It is called for each batch, so it does only what is needed."""
        rows = batch.select(columns)
        if self._names is not None:
            rows = rows.rename_columns(self._names)
        return rows.replace_schema_metadata(None) if self._given_metadata else rows

    def _incomplete(self, batch: pa.RecordBatch) -> dict[int, str]:
        """Rows in which a required column is null, and which one."""
        nulls: dict[int, str] = {}
        for position in self._required:
            column = batch.column(position)
            if column.null_count:
                rows = pc.indices_nonzero(column.is_null()).to_pylist()
                nulls = dict.fromkeys(rows, self._given.field(position).name) | nulls
        return dict(sorted(nulls.items()))

    def _run(self, fed: pa.RecordBatch, whole: int) -> Iterator[Found | Failed]:
        """whole: the rows of the batch, of which `fed` has some."""
        try:
            answers = self._runs.run(fed)
        except Exception as error:
            if fed.num_rows == 1:
                yield Failed(fed.column(_ROW.name)[0].as_py(), error_message(error))
                return
            half = fed.num_rows // 2
            yield from self._run(fed.slice(0, half), whole)
            yield from self._run(fed.slice(half), whole)
            return
        for answer in answers:
            if not answer.num_rows:
                continue
            rows = self._items(answer)
            yield Found(rows, None if self._is_by_row and rows.num_rows == whole else answer.column(0))

    def _items(self, answer: pa.RecordBatch) -> pa.RecordBatch:
        """The items of an answer in `schema`: with their names, and without fields that are never null. All answers
        have the schema of the plan, so the first one tells which fields differ: a look at each costs more than `Found`.
        """
        rows = answer.remove_column(0)
        if self._other_fields is None:
            pairs = enumerate(zip(rows.schema, self.schema, strict=True))
            self._other_fields = [(position, own) for position, (found, own) in pairs if found != own]
        for position, field in self._other_fields:
            column = rows.column(position)
            own = column if column.type == field.type else column.cast(field.type)  # plans differ about decimals
            rows = rows.set_column(position, field, own)
        return rows


@dataclasses.dataclass(frozen=True)
class _Plan:
    """asked: the query. fed: the schema of its rows. has_now: whether it asks for the time. schema: of its results."""

    asked: RewrittenText
    fed: pa.Schema
    has_now: bool
    is_by_row: bool
    schema: pa.Schema


@functools.lru_cache(maxsize=64)  # each query of a file is planned when it is compiled, and when it is checked
def _plan_of(items: tuple[tuple[str, str], ...], where: str | None, table: str, given: pa.Schema) -> _Plan:
    """Raises what DataFusion raises."""
    select = Select(dict(items), where, table)
    text = _text(_named(dict(items)), select)
    has_now = with_now(text) != text
    fed = pa.schema([*given, *([_ROW, _NOW] if has_now else [_ROW])])
    asked = written(with_now(text), table, fed)
    plan = planned(asked, fed)
    operators = operators_of(plan.execution_plan())
    if not is_by_rows(operators):
        raise WrongQuery(NOT_BY_ROW, None)
    if len(plan.schema()) != len(items) + 1:
        raise WrongQuery("unnest of a struct makes several columns: name its fields, as in s['a']", None)
    types = plan.schema().types[1:]
    own = {name: settled(text, type_) for (name, text), type_ in zip(items, types, strict=True)}
    schema = pa.schema([(name, type_) for name, (_, type_) in own.items()])
    texts = {name: text for name, (text, _) in own.items()}
    if texts != dict(items):
        asked = written(with_now(_text(_named(texts), select)), table, fed)
    return _Plan(asked, fed, has_now, is_by_row(operators), schema)


NOT_BY_ROW = (
    "aggregates, window functions, DISTINCT, ORDER BY and subqueries need more than one row, and rows pass one by one "
    "here: leave them out"
)


def _named(items: Mapping[str, str]) -> list[str]:
    return [f"{text}\nAS {quoted(name)}" for name, text in items.items()]


def _text(items: list[str], select: Select) -> str:
    condition = "" if select.where is None else f"\nWHERE ({select.where}\n)"
    return f"SELECT {', '.join([_ROW.name, *items])}\nFROM {TABLE} AS {quoted(select.table)}{condition}"


def written(
    text: str, table: str, fed: pa.Schema, aggregates: Mapping[str, ListFunction] = NO_AGGREGATES
) -> RewrittenText:
    """A query over rows with this schema, as DataFusion takes it. aggregates: of plugins. Raises WrongCall, and what
    DataFusion raises for types that are asked for."""

    def type_of(expression: RewrittenText) -> pa.DataType:
        asked = RewrittenText(f"SELECT {expression.text}\nFROM {TABLE} AS {quoted(table)}", expression.functions)
        return planned(asked, fed).schema().types[0]

    return with_native(text, type_of, aggregates=aggregates)


def planned(asked: RewrittenText, fed: pa.Schema) -> Any:
    """A query of DataFusion over no rows. Raises what DataFusion raises."""
    own = context(functions=asked.functions)
    own.register_record_batches(TABLE, [[pa.RecordBatch.from_arrays([pa.nulls(0, t) for t in fed.types], schema=fed)]])
    return own.sql(asked.text)


def settled(text: str, type_: pa.DataType) -> tuple[str, pa.DataType]:
    """An expression of this type, and its type, as the others here have it: views of texts are known to few."""
    own = without_views(type_)
    name = _NAMES.get(own)
    return (text, type_) if own == type_ or name is None else (f"arrow_cast({text}\n, '{name}')", own)


_NAMES = {pa.string(): "Utf8", pa.binary(): "Binary"}


_REWORDED = {
    "WindowFunction": NOT_BY_ROW,
    "Cannot run range queries on datatype: Struct": "a window has no order here: write ORDER BY window.start",
    "Conflicting ordering requirements": "aggregates with ORDER BY over different columns cannot stand in one SELECT: "
    "write two, and join them ON a.window = b.window",
    "logical expression Wildcard": "a * is for count(*): write the columns",
    "OuterReferenceColumn": "a table function cannot read columns of other tables: for lists of a row, write "
    "unnest(list) among the items",
    "Unsupported SQL type JSON": "JSON is text: leave the cast out",
    "Placeholder '": "there are no parameters here: write the value",
    "Unnest should be rewritten": "unnest may only stand among the items of a SELECT",
    "Substring without for/from": "substr lacks its start: write substr(text, 2), or substr(text, 2, 3)",
}
_CAST = "write CAST(... AS ...) for one of them"
_PATTERNS = (
    (
        r"Physical plan does not support logical expression (ScalarSubquery|Exists|InSubquery)",
        "this query inside an expression is too much for DataFusion: write a JOIN",
    ),
    (r"table function '(.+)' not found", r"there is no table function \1: name the UDF's file with --udf"),
    (r"Unsupported JOIN operator (?i:asof)", "ASOF JOIN is not supported: write JOIN ... ON, and row_number()"),
    (
        r"Projections require unique expression names but the expression .* and \"(.+?)\" at position",
        r"there are two columns \1: write AS and another name",
    ),
    (r"Unsupported SQL type (.+)", r"there is no type \1"),
    (r"Unsupported type ('.+?')\. Must be", r"there is no type \1 of Arrow: write such as 'Int32'"),
    (r"Unsupported CAST from (.+) to (.+)", r"there is no cast from \1 to \2: write another type"),
    (r"Field (.+) not found in struct", r"there is no field \1"),
    (r"Cannot coerce arithmetic expression (.+) to valid", rf"there is no \1: {_CAST}"),
    (r"Cannot infer common argument type for comparison operation (.+)", rf"there is no \1: {_CAST}"),
    (r"non-boolean predicate '.*' returning (.+)", r"WHERE takes a BOOLEAN, and this is \1: write such as a > 0"),
    (r'Invalid input syntax for type interval: "(.*)"', r"there is no interval '\1': write such as '5 minutes'"),
)
_NOISE = re.compile(
    r"^((DataFusion|Schema|Execution|Arrow|SQL|Internal|External) error: |Error during planning: |Optimizer rule '\w+' "
    r"failed|caused by|type_coercion|This feature is not implemented: |\s)+"
)
_PARSER = re.compile(r'ParserError\("(.*?)(?: at Line: \d+, Column: \d+)?"\)', re.DOTALL)
_EXPECTED = re.compile(r"Expected: (.*), found: (.*)", re.DOTALL)
_TYPES = re.compile(r"No function matches the given name and argument types '(.+?)'")
_FIELD = re.compile(r"No field named (.+?)\.(?:\s|$)")


def expected(text: str) -> str:
    """What DataFusion's parser says, as what to write."""
    if "No infix parser for token" in text:
        return "there is no such operator: write one of DataFusion's"
    if (match := _EXPECTED.search(text)) is None:
        return text
    if match[2] == "top" or match[1] == "literal int":  # DataFusion's parser takes `SELECT top` for another dialect's
        return 'top is a word of SQL: write "top", in double quotes'
    wanted = match[1].replace("end of statement", "the end of the query")
    return f"write {wanted} here, not {'the end' if match[2] == 'EOF' else match[2]}"


def error_message(error: Exception) -> str:
    """What DataFusion says, without its own names."""
    text = expected(_PARSER.sub(r"\1", _NOISE.sub("", str(error)).replace(f"{TABLE}.", "")))
    for part, words in _REWORDED.items():
        if part in text:
            return words
    if match := _FIELD.search(text):
        return f"there is no column {match[1]}"
    for pattern, words in _PATTERNS:
        if match := re.search(pattern, text):
            return match.expand(words)
    if match := _TYPES.search(text):
        if match[1].endswith("()"):
            return f"{match[1]} lacks its arguments"
        return f"there is no {match[1]}: write CAST(... AS ...) for an argument"
    return text.split("\n\tCandidate")[0].split("Valid fields are")[0].strip().rstrip(".")
