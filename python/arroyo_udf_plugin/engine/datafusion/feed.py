"""A query of DataFusion over batches that are handed to it one by one, so that planning and starting are paid once.

DataFusion asks an object for its rows that says that it is a pyarrow Dataset, and asks it for little more than an
iterator. A batch is put there and the query asked for its next result: it takes the batch and answers. If nothing is
left of the batch, the query asks for another one, finds none, and ends; it is started again with the next batch.

This is not documented. So `works` tries it once in each process, and without it each batch is a query of its own. Nor
are the names of a plan's operators: those of queries that answer row by row are asked of DataFusion itself.

Guarantees: nothing waits. Memory does not grow: a plan keeps notes of each execution, so it is made anew after some.
Assumes: one of the versions of `datafusion` in pyproject.toml; one thread at a time uses a feed.
"""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from ...host.plain_structs import has_structs, plain_batch
from .native_calls import NativeFunction, RewrittenText

TABLE = "__in"
_EXECUTIONS = 500  # of one plan: each leaves about 4 KB behind
_ROW_BY_ROW = ("SELECT n FROM t", "SELECT n + 1 AS m FROM t WHERE n < 5", "SELECT n FROM t WHERE false")
_ROW_TO_ROWS = "SELECT unnest([n, 5]) AS m FROM t"
_ALL_ROWS = 8192


def check_installed() -> None:
    """Raises InvalidArgument without DataFusion."""
    try:
        import datafusion  # noqa: F401
    except ImportError as error:
        raise InvalidArgument(f"SQL needs DataFusion: pip install 'arroyo_udf_plugin[engine]' ({error})") from error


def warm() -> None:
    """Imports, if it is installed, what takes longer than most plans do."""
    with contextlib.suppress(ImportError):
        import datafusion  # noqa: F401


def context(batch_rows: int = _ALL_ROWS, functions: Sequence[NativeFunction] = ()) -> Any:
    """A session of DataFusion in which everything runs in the thread that asks. functions: that queries may call.
    Raises InvalidArgument without it."""
    check_installed()
    from datafusion import SessionConfig, SessionContext, udf

    options = {
        "datafusion.execution.batch_size": str(batch_rows),
        "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    }
    own = SessionContext(SessionConfig(options).with_target_partitions(1))
    for function in functions:
        own.register_udf(
            udf(
                function.function,
                function.function.types,
                function.function.returns,
                function.volatility,
                name=function.name,
            )
        )
    return own


@functools.cache
def functions_by_kind() -> Mapping[str, frozenset[str]]:
    """DataFusion's own: SCALAR, AGGREGATE, WINDOW, TABLE. A name may be of several kinds."""
    from datafusion import SessionConfig, SessionContext

    own = SessionContext(SessionConfig().with_information_schema(True).with_target_partitions(1))
    functions: dict[str, set[str]] = collections.defaultdict(set)
    for row in own.sql("SELECT routine_name, function_type FROM information_schema.routines").to_pylist():
        functions[row["function_type"]].add(row["routine_name"])
    return {kind: frozenset(names) for kind, names in functions.items()}


def operators_of(plan: Any) -> set[str]:
    """The names of a physical plan's operators."""
    own = plan.display().split(":")[0].split(" ")[0].split("(")[0].strip()
    return {own}.union(*(operators_of(child) for child in plan.children()))


def is_by_row(operators: Collection[str]) -> bool:
    """Whether each row is answered without the others, by one row or none."""
    return _operators_of(*_ROW_BY_ROW).issuperset(operators)


def is_by_rows(operators: Collection[str]) -> bool:
    """The same, and by several rows, too."""
    return _operators_of(*_ROW_BY_ROW, _ROW_TO_ROWS).issuperset(operators)


@functools.cache
def _operators_of(*queries: str) -> frozenset[str]:
    own = context()
    own.register_record_batches("t", [[no_rows(pa.schema([("n", pa.int64())]))]])
    return frozenset().union(*(operators_of(own.sql(query).execution_plan()) for query in queries))


class Feed:
    """A query over batches of one schema. asked: over the table `TABLE`. one_by_one: `is_by_row` of its plan."""

    def __init__(self, asked: RewrittenText, schema: pa.Schema, one_by_one: bool) -> None:
        self._text, self._table = asked.text, _Table(schema)
        # With whole batches a filter collects its results before it answers.
        self._context = context(1 if one_by_one else _ALL_ROWS, asked.functions)
        self._context.remove_optimizer_rule("push_down_filter")  # filters would go to the table
        self._context.register_dataset(TABLE, self._table)
        self._one_by_one = one_by_one
        self._stream: Any = None
        self._plan: Any = None
        self._executions = 0

    def run(self, *batches: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The rows of its answer to these batches; one, if it is one by one. Raises what DataFusion raises, and takes
        other batches then."""
        self._table.waiting.extend(batches)
        try:
            if not self._one_by_one:
                return [answer.to_pyarrow() for answer in self._begun()]
            if self._stream is None:
                self._stream = self._begun()
            try:
                return [next(self._stream).to_pyarrow()]
            except StopIteration:
                self._stream = None
                return []
        except BaseException:
            self._stream = None
            raise
        finally:
            self._table.waiting.clear()

    def _begun(self) -> Any:
        if self._executions % _EXECUTIONS == 0:
            self._plan = self._context.sql(self._text).execution_plan()
        self._executions += 1
        return self._context.execute(self._plan, 0)


class Single:
    """As `Feed`, in a documented way: each batch is a table and a query of its own."""

    def __init__(self, asked: RewrittenText) -> None:
        self._asked = asked

    def run(self, *batches: pa.RecordBatch) -> list[pa.RecordBatch]:
        """As `Feed.run`."""
        own = context(functions=self._asked.functions)
        own.register_record_batches(TABLE, [list(map(plain_batch, batches))])
        return [answer.to_pyarrow() for answer in own.sql(self._asked.text).execute_stream()]


class FeedOfTwo:
    """A query over two tables, with all rows of both at once. tables: their schemas, by their names.

    It is planned once, but for the last step: the plan of a join remembers the rows of one side.
    """

    def __init__(self, asked: RewrittenText, tables: Mapping[str, pa.Schema]) -> None:
        self._asked, self._names = asked, list(tables)
        self._tables = [_Table(schema) for schema in tables.values()]
        self._context = context(functions=asked.functions)
        self._query = None
        if works():
            self._context.remove_optimizer_rule("push_down_filter")  # filters would go to the tables
            for name, table in zip(tables, self._tables, strict=True):
                self._context.register_dataset(name, table)
            self._query = self._context.sql(asked.text)

    def run(self, batches: Sequence[Sequence[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """batches: of each table. Raises what DataFusion raises."""
        if self._query is None:
            return self._run_alone(batches)
        try:
            for table, own in zip(self._tables, batches, strict=True):
                table.waiting.extend(own)
            answers = self._context.execute(self._query.execution_plan(), 0)
            return [answer.to_pyarrow() for answer in answers]
        finally:
            for table in self._tables:
                table.waiting.clear()

    def _run_alone(self, batches: Sequence[Sequence[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """In a documented way."""
        own = context(functions=self._asked.functions)
        for name, table, rows in zip(self._names, self._tables, batches, strict=True):
            own.register_record_batches(name, [list(map(plain_batch, rows)) or [no_rows(table.schema)]])
        return [answer.to_pyarrow() for answer in own.sql(self._asked.text).execute_stream()]


def planned_tables(asked: RewrittenText, tables: Mapping[str, pa.Schema]) -> Any:
    """A query of DataFusion over tables without rows. Raises what DataFusion raises."""
    own = context(functions=asked.functions)
    for name, schema in tables.items():
        own.register_record_batches(name, [[no_rows(schema)]])
    return own.sql(asked.text)


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, type_) for type_ in schema.types], schema=schema)


@functools.cache
def works() -> bool:
    """Whether this DataFusion takes batches as `Feed` hands them over."""
    schema = pa.schema([("n", pa.int64())])
    asked = [[1, 2, 3], [5], [6, 7], [0, 9, 1]]
    try:
        feed = Feed(RewrittenText(f"SELECT n + 1 AS m FROM {TABLE} WHERE n < 5"), schema, one_by_one=True)
        answers = [feed.run(pa.record_batch([pa.array(values, pa.int64())], schema=schema)) for values in asked]
    except Exception:
        return False
    return [[n for batch in batches for n in batch.column(0).to_pylist()] for batches in answers] == [
        [2, 3, 4],
        [],
        [],
        [1, 2],
    ]


def _dataset_class() -> Any:
    from pyarrow.dataset import Dataset  # slow to import

    return Dataset


class _Table:
    """What DataFusion asks of a Dataset. waiting: the batches that come next."""

    # A real subclass would have a half in C++ that nobody has made.
    __class__ = property(lambda self: _dataset_class())

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.has_structs = has_structs(schema)
        self.waiting: collections.deque[pa.RecordBatch] = collections.deque()

    def get_fragments(self, filter: Any = None) -> list[_Table]:
        return [self]

    def scanner(self, schema: Any = None, columns: Sequence[str] | None = None, **_: Any) -> _Scanner:
        return _Scanner(self, columns)


class _Scanner:
    def __init__(self, table: _Table, columns: Sequence[str] | None) -> None:
        whole = columns is None or list(columns) == table.schema.names
        self._table, self._columns = table, None if whole else columns
        self.projected_schema = table.schema
        if columns is not None:
            self.projected_schema = pa.schema([table.schema.field(name) for name in columns])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        waiting = self._table.waiting
        while waiting:
            batch = waiting.popleft()
            chosen = batch if self._columns is None else batch.select(self._columns)
            yield plain_batch(chosen) if self._table.has_structs else chosen
