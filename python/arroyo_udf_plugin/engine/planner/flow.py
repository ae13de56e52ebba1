"""A pipeline while it is built: operators one behind the other, or several behind one."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pyarrow as pa

from ...host.aggregate import Aggregate
from ...host.isolation import Isolation
from ...host.policy import Action
from ..connectors.described import Output
from ..datafusion.query import Query, Select
from ..datafusion.tokens import column_name
from ..datafusion.whole import Whole
from ..operators.blocks import Given
from ..pipeline.kinds.deduplicate import Deduplicate
from ..pipeline.kinds.followed import FollowTable, LatestRows
from ..pipeline.kinds.functions import Functions
from ..pipeline.kinds.join import Join
from ..pipeline.kinds.kind import DescribedOperator, WaitingOperator
from ..pipeline.kinds.look_back import LookBack
from ..pipeline.kinds.lookup import Lookup
from ..pipeline.kinds.sql import Sql
from ..pipeline.kinds.union import Union, merged
from ..pipeline.kinds.updating import TTL, OverResults, Updating
from ..pipeline.kinds.updating_join import UpdatingJoin
from ..pipeline.kinds.whole import WholeQuery
from ..pipeline.kinds.windows import NONE, Windows
from ..pipeline.lines import Key
from ..pipeline.variables import resolved
from ..windows.collecting import Inputs
from ..windows.joining import Sides
from ..windows.opened import opened
from ..windows.storage import StorageLimits
from ..windows.updating_rows import SIGN
from .functions import PlannedUdf

_Waiting = TypeVar("_Waiting", bound=WaitingOperator)
SOURCE = "source"
TIME = "__t"
"""The column of event times, if a file has windows. Nobody sees it: it passes through all queries but the last."""


class NeedsTime(Exception):
    """A query needs event times, and so do its tables."""


@dataclass(frozen=True)
class Node:
    """Rows that somebody may take. operator: whose they are. schema: of the rows. windows: columns that are windows of
    all rows before. times: columns that are times near the event time: how many nanoseconds it is behind them, at
    least and at most. pending: they are results that are updated, of an operator that is still to be made."""

    operator: str
    schema: pa.Schema
    windows: frozenset[str] = frozenset()
    times: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    pending: Pending | None = None

    @property
    def names(self) -> list[str]:
        """Of the columns that a query can see."""
        return [name for name in self.schema.names if name not in (TIME, SIGN.name)]

    @property
    def is_signed(self) -> bool:
        """Whether its rows come and go. Nobody sees the column that says so: it passes through all queries."""
        return SIGN.name in self.schema.names

    @property
    def is_updated(self) -> bool:
        """Whether its rows may change, in either way."""
        return self.is_signed or self.pending is not None

    def with_windows(self, windows: Iterable[str]) -> Node:
        return dataclasses.replace(self, windows=frozenset(windows))

    def with_times(self, times: Mapping[str, tuple[int, int]]) -> Node:
        return dataclasses.replace(self, times=times)

    def as_known(self, before: Node) -> Node:
        """These rows are those of another node, all columns of which have kept their names."""
        return dataclasses.replace(self, windows=before.windows, times=before.times)


@dataclass(frozen=True)
class Pending:
    """Results that are updated. rows: what they are made of. operator: without its places. functions: of plugins, that
    it calls. at: where the query is."""

    rows: Node
    operator: Updating
    functions: Mapping[str, Aggregate]
    at: int

    @property
    def changes(self) -> pa.Schema:
        """Of the operator. Raises WrongQuery."""
        schema: pa.Schema = opened(self.operator.rows(self.functions), self.rows.schema).schema
        return schema

    @property
    def results(self) -> pa.Schema:
        """Raises WrongQuery."""
        return pa.schema(list(self.changes.field("after").type))

    @property
    def keys(self) -> dict[str, str]:
        """Which key each column of a result is that is one."""
        known = {key: key for key in self.operator.keys}
        for over in self.operator.over:
            if over.select is not None:
                columns = {name: column_name(text, over.table) for name, text in over.select.items()}
                known = {name: known[column] for name, column in columns.items() if column in known}
        return known

    def over(self, queries: Sequence[OverResults]) -> Pending:
        """With these over the results."""
        operator = self.operator.model_copy(update={"over": (*self.operator.over, *queries)})
        return dataclasses.replace(self, operator=operator)


@dataclass(frozen=True)
class FlowSettings:
    """on_error, on_timeout: of functions. on_row: of rows that a query cannot compute. on_late: of late rows.
    allowed_lateness: of windows over rows of tables. isolation, workers: where functions run. memory_limit, disk_limit:
    of open windows. max_drift: by how many seconds of event time a source may be ahead of others. state_ttl: how long
    keys are known, in seconds; updating_ttl: the same of those whose results are updated."""

    on_error: Action = "fail"
    on_timeout: Action = "fail"
    on_row: Any = "fail"
    on_late: Any = "drop"
    allowed_lateness: float = 0.0
    isolation: Isolation = "thread"
    workers: int | Literal["auto"] = 1
    memory_limit: int = StorageLimits.memory
    disk_limit: int = StorageLimits.disk
    max_drift: float = WaitingOperator.model_fields["max_drift"].default
    state_ttl: float | None = None
    updating_ttl: float = TTL


class Flow:
    """operators, sinks: so far. places: the offset of the text from which each of them comes, by its key."""

    def __init__(self, settings: FlowSettings) -> None:
        self.settings = settings
        self.operators: list[DescribedOperator] = []
        self.sinks: list[Output] = []
        self.places: dict[Key, int] = {}
        self._names = {SOURCE}
        self._results = 0

    def copy(self) -> Flow:
        """As it is now, for when what comes next cannot be."""
        other = Flow(self.settings)
        other.take(self)
        return other

    def take(self, other: Flow) -> None:
        """Becomes as another one is."""
        self.operators, self.sinks, self.places = list(other.operators), list(other.sinks), dict(other.places)
        self._names, self._results = set(other._names), other._results

    def result(self) -> int:
        """A new number for the result of a call."""
        self._results += 1
        return self._results

    def source(self, schema: pa.Schema, wanted: str) -> Node:
        """The rows of a further source. wanted: its name."""
        return Node(self._named(wanted), schema)

    def query(self, before: Node, select: Select, name: str, at: int) -> Node:
        """Raises WrongQuery."""
        query = Query(select, before.schema)
        operator = Sql(
            name=self._named(name),
            after=self._after(before),
            select=None if select.items is None else dict(select.items),
            where=select.where,
            table=select.table,
            required=tuple(select.required),
            on_error=self.settings.on_row,
        )
        return self._added(operator, query.schema, at)

    def required(self, before: Node, names: Sequence[str], name: str, at: int) -> Node:
        """The rows, without those in which one of these columns is null: they fail."""
        return self.query(before, Select(required=names), name, at).as_known(before) if names else before

    def windows(self, before: Node, operator: Windows, at: int, functions: Mapping[str, Aggregate] = NONE) -> Node:
        """operator: without its places. functions: of plugins, that it calls. Raises WrongQuery."""
        placed = self._waiting(operator, before).model_copy(update={"after": self._after(before)})
        if functions:
            update = {"isolation": self.settings.isolation, "workers": self.settings.workers}
            placed = placed.model_copy(update=update)
        return self._added(placed, opened(operator.grouping(functions), before.schema).schema, at)

    def updates(self, pending: Pending, as_rows: bool = False) -> Node:
        """The changes of results. as_rows: as rows that come and go."""
        pending = dataclasses.replace(pending, operator=pending.operator.model_copy(update={"as_rows": as_rows}))
        update: dict[str, Any] = {
            "name": self._named(pending.operator.name or ""),
            "after": self._after(pending.rows),
            **self._limits,
        }
        if pending.functions:
            update |= {"isolation": self.settings.isolation, "workers": self.settings.workers}
        return self._added(pending.operator.model_copy(update=update), pending.changes, pending.at)

    def of_keys(self, before: Node, operator: FollowTable | LatestRows, at: int) -> Node:
        """operator: without its places. Raises WrongQuery."""
        update = {"name": self._named(operator.name or ""), "after": self._after(before), **self._limits}
        return self._added(operator.model_copy(update=update), opened(operator.rows(), before.schema).schema, at)

    def follows(self, operator: str) -> bool:
        """Whether an operator's rows come from a table that changes."""
        declared, before = self._with_inputs(operator)
        return isinstance(declared, FollowTable) or any(map(self.follows, before))

    def deduplicate(self, before: Node, operator: Deduplicate, at: int) -> Node:
        """operator: without its places. Raises WrongQuery."""
        placed = self._waiting(operator, before).model_copy(update={"after": self._after(before)})
        return self._added(placed, opened(operator.first_rows(), before.schema).schema, at).as_known(before)

    def look_back(self, before: Node, operator: LookBack, at: int) -> Node:
        """operator: without its places. Raises WrongQuery."""
        placed = self._waiting(operator, before).model_copy(update={"after": self._after(before)})
        return self._added(placed, opened(operator.looking(), before.schema).schema, at).as_known(before)

    def lookup(self, before: Node, operator: Lookup, at: int) -> Node:
        """operator: without its places. Raises WrongQuery for its condition, InvalidArgument."""
        placed = operator.model_copy(update={"name": self._named(operator.name or ""), "after": self._after(before)})
        values, secrets = resolved(placed.model_dump(by_alias=True, warnings=False), os.environ)
        plan = Lookup.model_validate(values).plan(placed.name or "", Given(before.schema), secrets.hidden)
        return self._added(placed, plan.schema, at)

    def union(self, nodes: Sequence[Node], name: str, at: int) -> Node:
        """The rows of all, which have the same types."""
        operator = Union(name=self._named(name), inputs=tuple(node.operator for node in nodes))
        return self._added(operator, merged([node.schema for node in nodes]), at)

    def whole(self, tables: Mapping[str, Node], sql: str, udfs: Mapping[str, PlannedUdf], name: str, at: int) -> Node:
        """A query over all rows of these nodes. udfs: that it calls, by the name that it has for them. Raises
        WrongQuery."""
        inputs = Inputs({table: node.schema for table, node in tables.items()})
        functions = {called: udf.function for called, udf in udfs.items()}
        schema = Whole(sql, inputs.tables, functions).schema
        operator = WholeQuery(
            name=self._named(name),
            tables={table: node.operator for table, node in tables.items()},
            sql=sql,
            functions={called: udf.file for called, udf in udfs.items()},
            isolation=self.settings.isolation,
            workers=self.settings.workers,
            memory_limit=self.settings.memory_limit,
            disk_limit=self.settings.disk_limit,
        )
        return self._added(operator, schema, at)

    def sources_of(self, operator: str) -> set[str]:
        """The sources, by name, whose rows an operator has; of a source, itself."""
        _, before = self._with_inputs(operator)
        return {source for other in before for source in self.sources_of(other)} or {operator}

    def _with_inputs(self, operator: str) -> tuple[DescribedOperator | None, Iterable[str]]:
        """An operator, and those whose rows it gets, by name; of a source, nothing."""
        place = next((place for place, declared in enumerate(self.operators) if declared.name == operator), None)
        if place is None:
            return None, ()
        declared = self.operators[place]
        if (inputs := declared.named_inputs()) is not None:
            return declared, [name for _, name in inputs]
        return declared, [declared.after or (self.operators[place - 1].name or "" if place else SOURCE)]

    def _have_waited(self, operator: str) -> bool:
        """Whether its rows are results of windows: those are not late."""
        declared, before = self._with_inputs(operator)
        return isinstance(declared, WaitingOperator) or any(map(self._have_waited, before))

    def join(self, left: Node, right: Node, operator: Join, at: int) -> Node:
        """Raises WrongQuery."""
        joining = operator.joining()
        sides = Sides([left.schema, right.schema], joining.time, joining.needed)
        return self._added(self._waiting(operator, left, right), opened(joining, sides.schema).schema, at)

    def updating_join(self, left: Node, right: Node, operator: UpdatingJoin, at: int) -> Node:
        """operator: without its name. Raises WrongQuery."""
        inputs = operator.inputs([left.schema, right.schema])
        placed = operator.model_copy(update={"name": self._named(operator.name or ""), **self._limits})
        return self._added(placed, opened(operator.joining(), inputs.schema).schema, at)

    @property
    def _limits(self) -> dict[str, int]:
        return {"memory_limit": self.settings.memory_limit, "disk_limit": self.settings.disk_limit}

    def _waiting(self, operator: _Waiting, *before: Node) -> _Waiting:
        """With its name and the settings."""
        are_results = all(self._have_waited(node.operator) for node in before)
        return operator.model_copy(
            update={
                "name": self._named(operator.name or ""),
                "on_error": self.settings.on_row,
                "on_late": self.settings.on_late,
                "allowed_lateness": 0.0 if are_results else self.settings.allowed_lateness,
                "memory_limit": self.settings.memory_limit,
                "disk_limit": self.settings.disk_limit,
                "max_drift": self.settings.max_drift,
            }
        )

    def calls(self, before: Node, file: str, calls: Mapping[str, tuple[str, PlannedUdf]], at: int) -> Node:
        """calls: each with its function, by the name of the result."""
        operator = Functions(
            name=self._named(re.sub(r"^lib", "", re.split(r"[/.]", file.rpartition("/")[2])[0])),
            plugin=file,
            after=self._after(before),
            calls=tuple(text for text, _ in calls.values()),
            on_error=self.settings.on_error,
            on_timeout=self.settings.on_timeout,
            isolation=self.settings.isolation,
            workers=self.settings.workers,
        )
        fields = [pa.field(name, udf.function.returns) for name, (_, udf) in calls.items()]
        return self._added(operator, pa.schema([*before.schema, *fields]), at)

    def sink(self, before: Node, sink: Output, at: int) -> None:
        """Takes rows. sink: without `after`."""
        self.places["sinks", len(self.sinks)] = at
        self.sinks.append(sink.model_copy(update={"after": before.operator}))

    def _added(self, operator: DescribedOperator, schema: pa.Schema, at: int) -> Node:
        self.places["operators", len(self.operators)] = at
        self.operators.append(operator)
        return Node(operator.name or "", schema)

    def _after(self, before: Node) -> str | None:
        """None: it is the one before."""
        latest = self.operators[-1].name if self.operators else SOURCE
        return None if latest == before.operator else before.operator

    def _named(self, wanted: str) -> str:
        """A name that no other operator has."""
        base = re.sub(r"[^A-Za-z0-9_.-]", "_", wanted).lstrip("_.-")[:90] or "sql"
        names: Sequence[str] = [base, *(f"{base}-{number}" for number in range(2, len(self.operators) + 3))]
        name = next(name for name in names if name not in self._names)
        self._names.add(name)
        return name
