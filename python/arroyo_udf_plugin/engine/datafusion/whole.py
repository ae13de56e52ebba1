"""A query of DataFusion over all rows of some tables, with functions of plugins among its own.

    query = Whole("SELECT carrier, avg(mph(miles, minutes)) FROM flights GROUP BY 1", schemas, functions)
    query.schema
    for rows in query.answers({"flights": batches}, memory=256 << 20): ...

Each function has three names: `"mph if"(condition, miles, minutes)` is called for the rows for which the condition is
true, and is null for the others; `"mph once"(condition, 3, 5)`, whose arguments are constants, with one row for all of
them. Aggregates are aggregates there, too (accumulators.py); with DISTINCT or ORDER BY, they are functions over lists
(aggregates.py).

Whatever DataFusion has may be in it: it gets the text as it is. A function of a plugin is one of its own there, and
called with a batch of rows. An async function is started once for a query, and has its rows in flight within a batch.

Guarantees: names and types are checked when it is made. What sorts, groups and joins need beyond `memory` is on disk. A
function's row that fails is an error that names function and row. Calls have the idempotency keys that `keys` gives.
Assumes: one thread at a time asks for answers; DataFusion calls functions in threads of its own.
"""

from __future__ import annotations

import collections
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ArroyoUdfError, RowError
from ...host.aggregate import Aggregate
from ...host.function import Function
from ...host.plain_structs import plain, plain_batch
from ...host.runtime import Runtime
from ...host.started import Bytes
from ..connectors.schemas import schema_without_views
from .accumulators import Accumulators, GroupAccumulator
from .aggregates import Steps, list_functions
from .feed import check_installed, no_rows
from .native_calls import NativeFunction, RewrittenText, with_native
from .query import WrongQuery, error_message
from .tokens import quoted

_REMEMBERED = 4  # results of a function
_LEAST_MEMORY = 64 << 20  # with less it cannot merge what it has on disk
_THREAD_MEMORY = 128 << 20  # a thread that merges cannot take back what others sort with: with less, one sorts alone
_TABLE_ROWS = 1 << 20  # beyond that, several threads read a table
_BITS = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}


KeysOf = Callable[[pa.RecordBatch], Bytes]
"""The idempotency keys of some calls, from their arguments."""


class Whole:
    """schema: of the results."""

    def __init__(
        self,
        sql: str,
        tables: Mapping[str, pa.Schema],
        functions: Mapping[str, Function],
        keys: Callable[[str], KeysOf] | None = None,
    ) -> None:
        """tables: their columns, by name. functions: by the name in the query, in lower case. keys: of a function's
        calls, anew for each answer; None: any. Raises WrongQuery."""
        self._tables, self._keys = tables, keys
        self._functions = {name: called for name, called in functions.items() if called.kind != "aggregate"}
        self._aggregates = {name: called for name, called in functions.items() if isinstance(called, Aggregate)}
        self._over_lists = list_functions(self._aggregates)
        try:
            self._asked = with_native(sql, self._type_of, of_whole=True, aggregates=self._over_lists)
            planned = self._planned(self._asked)
            planned.execution_plan()  # finds types that do not go together
        except WrongQuery:
            raise
        except Exception as error:
            raise WrongQuery(error_message(error), None) from None
        names, types = planned.schema().names, planned.schema().types
        for name in names:
            if names.count(name) > 1:
                raise WrongQuery(f"there are two columns {name}: write AS and another name", None)
        self.schema = schema_without_views(pa.schema(list(zip(names, types, strict=True))))

    def _type_of(self, expression: RewrittenText) -> pa.DataType:
        """Of a step into JSON that is computed for each row, from columns of any of the tables."""
        tables = " CROSS JOIN ".join(map(quoted, self._tables))
        asked = RewrittenText(f"SELECT {expression.text}\nFROM {tables}", expression.functions)
        return self._planned(asked).schema().types[0]

    def _planned(self, asked: RewrittenText) -> Any:
        """Over no rows. No function is called for them. Raises what DataFusion raises."""
        own = _context(asked.functions, threads=1)
        for name, function in self._functions.items():
            _register(own, name, _Called(function))
        for name in self._aggregates:
            _register_aggregate(own, name, self._over_lists[name].steps)
        for name, schema in self._tables.items():
            own.register_record_batches(quoted(name), [[no_rows(schema)]])
        return _asked(own, asked)

    def answers(self, tables: Mapping[str, Sequence[pa.RecordBatch]], memory: int) -> Iterator[pa.RecordBatch]:
        """The results over these rows. memory: bytes that it may use, at least 64 MiB; beyond that it sorts and
        groups on disk.

        Raises what functions raise, such as RowError, and what DataFusion raises.
        """
        with contextlib.ExitStack() as open_:
            threads = max(1, min(len(os.sched_getaffinity(0)), memory // _THREAD_MEMORY))
            threads = 1 if self._aggregates else threads  # others would wait for Python, and merge what they have
            own = _context(self._asked.functions, threads=threads, memory=memory)
            called = [
                open_.enter_context(_Called(function, None if self._keys is None else self._keys(name)))
                for name, function in self._functions.items()
            ]
            for name, call in zip(self._functions, called, strict=True):
                _register(own, name, call)
            steps = [self._over_lists[name].steps for name in self._aggregates]
            for name, own_steps in zip(self._aggregates, steps, strict=True):
                _register_aggregate(own, name, own_steps)
            for name, schema in self._tables.items():
                own.register_record_batches(quoted(name), _shares(tables[name], threads) or [[no_rows(schema)]])
            try:
                for answer in _asked(own, self._asked).execute_stream():
                    yield self._settled(answer.to_pyarrow())
            except Exception:
                for failed in [*(call.failed for call in called), *(own_steps.failed for own_steps in steps)]:
                    if failed is not None:
                        raise failed from None  # DataFusion has only its text
                raise

    def _settled(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [_as(column, type_) for column, type_ in zip(rows.columns, self.schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _as(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Few versions of pyarrow cast views of texts."""
    return column if column.type == type_ else pa.array(column.to_pylist(), type_)


def _shares(batches: Sequence[pa.RecordBatch], threads: int) -> list[list[pa.RecordBatch]]:
    """For one thread or several, in an order that depends on their number alone."""
    batches = [plain_batch(batch) for batch in batches]
    rows = sum(batch.num_rows for batch in batches)
    count = 1 if rows < _TABLE_ROWS else min(threads, len(batches))
    size = -(-len(batches) // count) if batches else 1
    return [list(batches[start : start + size]) for start in range(0, len(batches), size)]


def _context(functions: Sequence[NativeFunction], threads: int, memory: int | None = None) -> Any:
    check_installed()
    from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, udf

    runtime = RuntimeEnvBuilder()
    options = {"datafusion.sql_parser.map_string_types_to_utf8view": "false"}
    if memory is not None:
        memory = max(memory, _LEAST_MEMORY)
        runtime = runtime.with_disk_manager_os().with_fair_spill_pool(memory)
        # Each thread that sorts keeps as much free for merging what it has on disk.
        options["datafusion.execution.sort_spill_reservation_bytes"] = str(memory // (4 * threads))
    own = SessionContext(SessionConfig(options).with_target_partitions(threads), runtime)
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


def _asked(own: Any, asked: RewrittenText) -> Any:
    """A query, and nothing that makes tables or writes files."""
    from datafusion import SQLOptions

    only = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    return own.sql_with_options(asked.text, only)


def _bits(array: pa.Array) -> pa.Array:
    """Such that 0.0 and -0.0 differ."""
    return array.view(_BITS[array.type]) if array.type in _BITS else array


def guarded_name(name: str) -> str:
    """Of a function with a condition before its arguments."""
    return f"{name} if"


def once_name(name: str) -> str:
    """Of a function with a condition before its arguments, which are constants."""
    return f"{name} once"


def _register(own: Any, name: str, called: _Called) -> None:
    """As volatile, whatever the author says: then DataFusion computes it where it stands, and for no rows that a
    condition there has left out. `_Called` remembers what it has computed."""
    from datafusion import udf

    types, returns = called.function.arguments.types, called.function.returns
    own.register_udf(udf(called, types, returns, "volatile", name=name))
    own.register_udf(udf(called.where_true, [pa.bool_(), *types], returns, "volatile", name=guarded_name(name)))
    own.register_udf(udf(called.once, [pa.bool_(), *types], returns, "volatile", name=once_name(name)))


def _register_aggregate(own: Any, name: str, steps: Steps) -> None:
    from datafusion import Accumulator, udaf

    Accumulator.register(GroupAccumulator)
    aggregate = steps.aggregate
    types, returns, volatility = aggregate.arguments.types, aggregate.returns, aggregate.volatility or "volatile"
    new: Any = Accumulators(steps).new  # it makes what the line above registers
    own.register_udaf(udaf(new, types, returns, [aggregate.state], volatility, name=name))


class _Called:
    """A function as DataFusion calls it. failed: what has ended the query."""

    def __init__(self, function: Function, keys: KeysOf | None = None) -> None:
        self.function, self._keys = function, keys
        self.failed: ArroyoUdfError | None = None
        self._lock = threading.Lock()
        self._runtime: Runtime | None = None
        self._next_id = 0
        # The same call may stand in several places of a query.
        self._latest = collections.deque[tuple[Sequence[pa.Array], pa.Array]](maxlen=_REMEMBERED)

    def where_true(self, condition: pa.BooleanArray, *arrays: pa.Array) -> pa.Array:
        """The results for the rows for which a condition is true; null for the others."""
        if not arrays:  # of a function without arguments
            arrays = (pa.nulls(len(condition)),)
        if condition.true_count == len(condition):
            return self(*arrays)
        if not condition.true_count:
            return pa.nulls(len(condition), self.function.returns)
        chosen = pc.fill_null(condition, False)
        answer = self(*(array.filter(chosen) for array in arrays))
        at = pc.subtract(pc.cumulative_sum(chosen.cast(pa.int64())), 1)
        return answer.take(pc.if_else(chosen, at, None))

    def once(self, condition: pa.BooleanArray, *arrays: pa.Array) -> pa.Array:
        """The result of one row, for the rows for which a condition is true; null for the others."""
        if not condition.true_count:
            return pa.nulls(len(condition), self.function.returns)
        at = condition.index(True).as_py()  # in others, calls in the arguments have not been made
        answer = self(*(array.slice(at, 1) for array in arrays or (condition,)))
        return answer.take(pc.if_else(condition, pa.scalar(0), None))

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        if self.function.volatility == "volatile":
            return self._called(arrays)
        asked = [_bits(array) for array in arrays]
        for known, answer in tuple(self._latest):  # other threads add to it
            if known and all(map(pa.Array.equals, known, asked)):
                return answer
        answer = self._called(arrays)
        self._latest.append((asked, answer))
        return answer

    def _called(self, arrays: Sequence[pa.Array]) -> pa.Array:
        try:
            if self.function.kind == "async":
                return plain(self._awaited(arrays))
            answer = self.function(*arrays)
            return plain(answer.combine_chunks() if isinstance(answer, pa.ChunkedArray) else answer)
        except ArroyoUdfError as error:
            self.failed = self.failed or error
            raise

    def _awaited(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """One batch after another: the rows of each are in flight together."""
        with self._lock:
            if self._runtime is None:
                self._runtime = self.function.start(ordered=True)
            first, self._next_id = self._next_id, self._next_id + len(arrays[0])
            called = self._runtime.map([tuple(arrays)], first_id=first, stop=False, idempotency_keys=self._keys)
            answers = [results for _, results in called]
        results = pa.Table.from_batches(answers) if answers else None
        if results is None:
            return pa.nulls(0, self.function.returns)
        failed = pc.indices_nonzero(results["outcome"])
        if len(failed):
            row = failed[0].as_py()
            text = results["error"][row].as_py() or "no text"
            raise RowError(f"{self.function.where}, row {row}: {text}", {row: text})
        return results["value"].combine_chunks()

    def __enter__(self) -> _Called:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._runtime is not None:
            try:
                self._runtime.stop("drain" if kind is None else "cancel")
            finally:
                self._runtime.release()
