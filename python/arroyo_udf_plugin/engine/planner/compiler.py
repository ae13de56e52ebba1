"""Statements into a pipeline's description: what their names mean, and which parts they share.

A table that is read is a source, with a query for columns that its connector does not have. A view is built where it
is first selected from, and everybody else takes the same rows. An insert is a view whose rows go to a sink.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pydantic

from ...errors import ArroyoUdfError, nearest
from ..connectors.cells import CellType
from ..connectors.described import Input
from ..connectors.inputs import rehearsal
from ..connectors.standard_output import StandardOutput
from ..datafusion.feed import functions_by_kind
from ..datafusion.query import Select as SelectItems
from ..datafusion.tokens import quoted
from ..pipeline.description import EventTime, NamedSource, Pipeline
from ..pipeline.lines import Key
from ..pipeline.variables import resolved
from .changing_tables import followed, is_followed, read_as
from .column_types import cast_to
from .diagnostics import check_meaning
from .early_conditions import EarlyConditions
from .event_times import event_time_of, times_of, type_of
from .first_rows import FirstRowsQuery, asked_first
from .flow import SOURCE, TIME, Flow, NeedsTime, Node
from .functions import PlannedUdf
from .grouped import Grouped, as_time, has_windows
from .joins import StreamJoin, names_in
from .lookups import Looked, LookupJoin
from .ranked import Ranked, has_over
from .rounds import Rounds, Wanted
from .scope import Scope
from .selects import AnyQuery, JoinClause, QueryText, Relation, UnionText, WholeText
from .settings import ChosenSettings
from .statements import CreateTable, CreateView, DeclaredColumn, Insert, SelectStatement, Set, Statement
from .table_calls import Called, CalledJoin
from .tables import is_in_database, kind_of, sink_of, source_of, takes_changes
from .text import Text, Unending, Wrong
from .unions import united
from .updating import (
    UpdatingQuery,
    as_rows,
    changes_by_key,
    changes_of,
    check_plain,
    check_repeatable,
    over_results,
    rows_by_key,
    shown,
)
from .updating_joins import UpdatedStreamJoin
from .whole import built, first_table, queries_in, tables_in


@dataclass(frozen=True)
class Compiled:
    """places: the offset of the text from which a part of the description comes, by its key."""

    pipeline: Pipeline
    places: Mapping[Key, int]


@dataclass(frozen=True)
class _Source:
    """A table that is read. name: of the source. node: its rows, with the table's columns."""

    name: str
    model: Input
    event_time: EventTime | None
    node: Node
    at: int


def compiled(text: Text, statements: Sequence[Statement], udfs: Mapping[str, PlannedUdf]) -> Compiled:
    """Raises Refused with all that is wrong."""
    try:
        return _compiled(text, statements, udfs, has_windows(text))
    except NeedsTime:
        return _compiled(text, statements, udfs, with_times=True)


def _compiled(
    text: Text, statements: Sequence[Statement], udfs: Mapping[str, PlannedUdf], with_times: bool
) -> Compiled:
    """with_times: rows have event times. Raises NeedsTime if a query needs them."""
    compiler = _Compiler(text, udfs, with_times)
    for statement in statements:
        try:
            compiler.statement(statement)
        except Wrong as error:
            compiler.wrong.append(error)
    return compiler.finished()


class _Endless(Wrong):
    """A query needs all rows of a source that does not end."""


class _Compiler:
    def __init__(self, text: Text, udfs: Mapping[str, PlannedUdf], with_times: bool) -> None:
        self._with_times = with_times
        self.wrong: list[Wrong] = []
        self._text, self._udfs = text, udfs
        self._tables: dict[str, CreateTable] = {}
        self._views: dict[str, CreateView | Insert] = {}  # an insert into a table in memory is one
        self._broken: set[str] = set()  # names whose statements are wrong
        self._open: list[str] = []  # views that are being built, each selected from by the one before
        self._built: dict[int, Node] = {}  # by the query
        self._first: dict[int, QueryText] = {}  # those of which only the first rows are asked for, by the query
        self._outputs: list[Insert | SelectStatement] = []
        self._settings = ChosenSettings()
        self._sources: dict[str, _Source] = {}  # by the table's name

    # ---- Statements ----

    def statement(self, statement: Statement) -> None:
        if isinstance(statement, CreateTable):
            self._new(statement.name, statement.at)
            self._broken.add(statement.name)
            kind_of(statement)
            self._tables[statement.name] = statement
            self._broken.discard(statement.name)
        elif isinstance(statement, CreateView):
            self._new(statement.name, statement.at)
            self._views[statement.name] = statement
        elif isinstance(statement, Set):
            self._settings.take(statement)
        elif isinstance(statement, Insert) and self._is_in_memory(statement):
            if statement.table in self._views:
                raise Wrong(f"{statement.table} has rows already: insert into a table in memory once", statement.at)
            self._views[statement.table] = statement
        else:
            if isinstance(statement, Insert) and statement.table in [
                output.table for output in self._outputs if isinstance(output, Insert)
            ]:
                raise Wrong(f"{statement.table} is inserted into already: name another table", statement.at)
            self._outputs.append(statement)

    def _new(self, name: str, at: int) -> None:
        if name in self._tables or name in self._views or name in self._broken:
            raise Wrong(f"there is a table or view {name} already: rename one", at)

    def _is_in_memory(self, insert: Insert) -> bool:
        table = self._tables.get(insert.table)
        if table is None:
            if insert.table in self._broken:
                raise Wrong(None, insert.at)
            if insert.table in self._views:
                raise Wrong(f"{insert.table} is a view: insert into a table", insert.at)
            raise Wrong(f"there is no table {insert.table}: {self._nearest(insert.table)}", insert.at)
        kind = kind_of(table)
        if kind == "lookup":
            raise Wrong(f"{insert.table} is TEMPORARY, for lookups: insert into a TABLE without this word", insert.at)
        if kind == "source":
            raise Wrong(f"{insert.table} is a source: insert into a table with type = 'sink'", insert.at)
        return kind == "memory"

    def _nearest(self, name: str) -> str:
        return nearest(name, [*self._tables, *self._views])

    # ---- The pipeline ----

    def finished(self) -> Compiled:
        """The description. Raises Refused."""
        flow = Flow(self._settings.of_operators())
        self.wrong += self._settings.check_letters(self._tables.values())
        for output in self._outputs:
            try:
                self._output(flow, output)
            except Wrong as error:
                self.wrong.append(error)
        if not self._outputs and not self.wrong:
            self.wrong.append(
                Wrong("nothing comes out: write SELECT ..., or INSERT INTO a table SELECT ...", len(self._text.text))
            )
        if not self.wrong:
            self.wrong += self._settings.check_windows(flow.operators)
        if any(problem.text is not None for problem in self.wrong):
            raise self._text.refused(self.wrong)
        first, *others = self._sources.values()  # each output has a table
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", Path(self._text.file).stem).lstrip("_.-")[:100] or "query"
        pipeline = Pipeline(
            name=name,
            source=first.model,
            sources={source.name: NamedSource(source=source.model, event_time=source.event_time) for source in others},
            operators=flow.operators,
            sinks=flow.sinks,
            dead_letters=self._settings.letters(),
            event_time=first.event_time,
            checkpoints=self._settings.checkpoints(),
        )
        own: dict[Key, int] = {("source",): first.at, ("event_time",): first.at}
        own |= {("sources", source.name): source.at for source in others}
        return Compiled(pipeline, {**flow.places, **own, **self._settings.places})

    def _output(self, flow: Flow, output: Insert | SelectStatement) -> None:
        if isinstance(output, SelectStatement):
            node = self._query(flow, output.query, {}, "select", None, with_time=False)
            flow.sink(shown(flow, node, output.at), StandardOutput(format="jsonl"), output.at)
            return
        table = self._tables[output.table]
        wanted = self._wanted(table, output)
        node = self._query(flow, output.query, {}, f"{table.name}_rows", wanted, with_time=False)
        sink = self._described(table, lambda: sink_of(table))
        if takes_changes(table):
            node, sink = changes_of(flow, node, sink, f"{table.name}_changes", table.primary_key, table.at)
        elif node.pending is not None:
            node, sink = changes_by_key(flow, node.pending, sink, table.name)
        elif node.is_signed:
            node, sink = rows_by_key(flow, node, sink, table.name, output.query.at)
        flow.sink(node, sink, table.at)

    def _wanted(self, table: CreateTable, insert: Insert) -> list[Wanted] | None:
        """The columns of a table that an insert fills. None: whatever comes."""
        if table.columns is None:
            if insert.columns is None:
                return None
            return [Wanted(name, None) for name, _ in insert.columns]
        for column in table.columns:
            if column.generated:
                raise Wrong(
                    f"{column.name} is generated, and {table.name} is inserted into: compute it in the SELECT",
                    column.at,
                )
            if column.metadata is not None:
                raise Wrong(
                    f"{column.name} is metadata of a source, and {table.name} is inserted into: leave out METADATA "
                    "FROM",
                    column.metadata.at,
                )
        wanted = {column.name: Wanted(column.name, column.type, column.not_null) for column in table.columns}
        if insert.columns is None:
            return list(wanted.values())
        for name, at in insert.columns:
            if name not in wanted:
                raise Wrong(f"table {table.name} has no column {name}: {nearest(name, wanted)}", at)
        missing = [name for name in wanted if name not in dict(insert.columns)]
        if missing:
            raise Wrong(f"{', '.join(missing)} would get no values: name all columns of {table.name}", insert.at)
        return [wanted[name] for name, _ in insert.columns]

    # ---- Queries ----

    def _query(
        self,
        flow: Flow,
        query: AnyQuery,
        ctes: Mapping[str, AnyQuery],
        name: str,
        wanted: Sequence[Wanted] | None,
        with_time: bool = True,
    ) -> Node:
        """with_time: with the event time, for windows of other queries."""
        if wanted is None and id(query) in self._built:
            return self._built[id(query)]
        if not isinstance(query, WholeText):
            before = flow.copy(), dict(self._built), dict(self._sources)
            try:
                return self._streamed(flow, query, ctes, name, wanted, with_time)
            except Unending as error:
                whole = WholeText(query.part, query.ctes, error, query.at)
            self._go_back(flow, before)
            try:
                node = self._whole(flow, whole, ctes, name, wanted)
            except _Endless as error:
                if not isinstance(query, QueryText):
                    raise
                self._go_back(flow, before)
                node = self._updated(flow, query, ctes, name, wanted, error)
        else:
            node = self._whole(flow, query, ctes, name, wanted)
        if wanted is None:
            self._built[id(query)] = node
        return node

    def _go_back(self, flow: Flow, before: tuple[Flow, dict[int, Node], dict[str, _Source]]) -> None:
        """To how it was."""
        kept, built, sources = before
        flow.take(kept)
        self._built, self._sources = dict(built), dict(sources)

    def _updated(
        self,
        flow: Flow,
        query: QueryText,
        ctes: Mapping[str, AnyQuery],
        name: str,
        wanted: Sequence[Wanted] | None,
        why: _Endless,
    ) -> Node:
        """Aggregates over rows that never end, or that may change, and joins of such. why: it needs all rows. Raises
        Wrong."""
        aggregates = functions_by_kind()["AGGREGATE"] | {own for own, udf in self._udfs.items() if udf.is_aggregate}
        calls = [call for result in (*query.results, *query.having) for call in result.calls]
        is_grouped = bool(query.group) or any(call.name in aggregates and call.over is None for call in calls)
        if not (is_grouped or query.joins) or query.qualifies or has_over(query):
            raise why
        before, scope, late = self._from(flow, query, {**ctes, **query.ctes}, name, for_ever=True)
        before = as_rows(flow, before)
        if before.is_signed:
            check_repeatable(query.expressions, self._udfs)
        if not is_grouped:
            return Rounds(self._text, self._udfs, flow, late, before, name, scope=scope).built(wanted)
        try:
            return UpdatingQuery(self._text, self._udfs, flow, late, before, name, scope=scope).built(wanted)
        except Unending as error:
            raise why if error.text is None else Wrong(error.text, error.at) from None

    def _whole(
        self,
        flow: Flow,
        query: WholeText,
        ctes: Mapping[str, AnyQuery],
        name: str,
        wanted: Sequence[Wanted] | None,
    ) -> Node:
        """A query that needs all rows, if they end."""
        known = {**ctes, **query.ctes}
        inner, ranges = {}, []
        for number, inner_query in enumerate(queries_in(query.part, self._udfs), 1):
            inner[inner_query.at] = self._query(flow, inner_query, known, f"{name}_{number}", None, with_time=False)
            ranges.append(range(inner_query.at, inner_query.part[-1].end))
        tables = {}
        for table, at in tables_in(query.part, [*known, *self._tables, *self._views]):
            if not any(at in own for own in ranges):
                tables[table] = self._named(flow, table, at, known)
        nodes = [*tables.values(), *inner.values()]
        if any(node.is_updated for node in nodes):
            raise _Endless(query.why.text, query.why.at)
        sources = {source for node in nodes for source in flow.sources_of(node.operator)}
        if not nodes and (first := first_table(query.part)) is not None:
            self._named(flow, *first, known)  # says that there is none
        if not nodes or any(source.name in sources and not source.model.ends for source in self._sources.values()):
            raise _Endless(query.why.text, query.why.at)  # whoever selects from it has these sources, too
        return built(self._text, self._udfs, flow, query, tables, inner, ranges, name, wanted)

    def _streamed(
        self,
        flow: Flow,
        query: QueryText | UnionText,
        ctes: Mapping[str, AnyQuery],
        name: str,
        wanted: Sequence[Wanted] | None,
        with_time: bool,
    ) -> Node:
        """A query whose results come while rows come. Raises Unending for another one."""
        known = {**ctes, **query.ctes}
        if isinstance(query, UnionText):
            nodes = [self._query(flow, branch, known, name, wanted, with_time) for branch in query.queries]
            places = [branch.at for branch in query.queries]
            check_plain(list(zip(nodes, places, strict=True)), "are not put together by UNION ALL")
            self._built[id(query)] = node = united(flow, nodes, places, name)
            return node
        check_meaning(self._text, query.expressions)
        before, scope, late = self._from(flow, query, known, name)
        builder = _builder(query, before)
        if before.pending is not None and builder is Rounds:
            node = over_results(self._text, self._udfs, flow, query, before, name, wanted)
        else:
            error = Unending if builder is Grouped else Wrong
            if builder is not Rounds:
                check_plain([(before, query.relation.at)], "are not grouped by windows or numbered", error)
            if before.is_signed:
                check_repeatable(query.expressions, self._udfs)
            node = builder(self._text, self._udfs, flow, late, before, name, scope=scope).built(wanted, with_time)
        if wanted is None:
            self._built[id(query)] = node
        return node

    def _from(
        self, flow: Flow, query: QueryText, ctes: Mapping[str, AnyQuery], name: str, for_ever: bool = False
    ) -> tuple[Node, Scope | None, QueryText]:
        """The rows that a SELECT begins with; what names mean in them, if they are of several tables; and the SELECT
        without the conditions that these rows meet. for_ever: a join may remember its rows."""
        before = self._first_rows(flow, query, ctes) or self._relation(flow, query.relation, ctes)
        if not query.joins:
            return before, None, query
        tables = [self._lookup_table(join, ctes) for join in query.joins]
        sides = [
            Called(join, self._udfs)
            if join.call is not None
            else self._relation(flow, join.relation, ctes)
            if table is None
            else Looked(table, join)
            for join, table in zip(query.joins, tables, strict=True)
        ]
        met = [(node, at.relation.at) for node, at in zip(sides, query.joins, strict=True) if isinstance(node, Node)]
        if not for_ever or len(met) < len(sides):
            error = Unending if len(met) == len(sides) else Wrong
            check_plain([(before, query.relation.at), *met], "have no rows of lookups or functions beside them", error)
        before = as_rows(flow, before)
        sides = [as_rows(flow, side) if isinstance(side, Node) else side for side in sides]
        names = {join.relation.alias: side.names for join, side in zip(query.joins, sides, strict=True)}
        looked = [side.join.relation.alias for side in sides if isinstance(side, Looked | Called)]
        early = EarlyConditions(
            self._text, self._udfs, flow, query, {query.relation.alias: before.names, **names}, looked
        )
        scope = Scope({query.relation.alias: {column: column for column in before.names}})
        needed = names_in(query)
        for number, (join, side) in enumerate(zip(query.joins, sides, strict=True)):
            before = early.before(number, before, scope)
            if isinstance(side, Looked):
                before, scope = LookupJoin(self._text, self._udfs, flow, query, before, scope, side).built()
                continue
            if isinstance(side, Called):
                before, scope = CalledJoin(self._text, self._udfs, flow, query, before, scope, side).built()
                continue
            right = early.of_right(number, side)
            before, scope = self._joined(flow, before, scope, join, right, name, needed, for_ever)
        return before, scope, dataclasses.replace(query, where=tuple(early.late))

    def _joined(
        self,
        flow: Flow,
        left: Node,
        scope: Scope,
        join: JoinClause,
        right: Node,
        name: str,
        needed: Collection[str | None] | None,
        for_ever: bool,
    ) -> tuple[Node, Scope]:
        """As `StreamJoin`."""
        parts = (self._text, self._udfs, flow, left, scope, join, right, name, needed)
        if left.is_signed or right.is_signed:
            return UpdatedStreamJoin(*parts).built()
        try:
            return StreamJoin(*parts).built()
        except Unending as error:
            if not for_ever or left.windows or right.windows:
                raise
            return UpdatedStreamJoin(*parts).built(error)

    def _first_rows(self, flow: Flow, query: QueryText, ctes: Mapping[str, AnyQuery]) -> Node | None:
        """The first rows of the relation, if the query asks for these alone. None: it does not."""
        relation = query.relation
        inner, known, view = relation.query, ctes, self._views.get(relation.name or "")
        if relation.name is not None and relation.name in ctes:
            inner, known = ctes[relation.name], {name: cte for name, cte in ctes.items() if name != relation.name}
        elif isinstance(view, CreateView):
            inner, known = view.query, {}
        first = asked_first(query.where, inner, relation.alias) if isinstance(inner, QueryText) else None
        if first is None or not isinstance(inner, QueryText):
            return None
        own = self._first.setdefault(id(inner), dataclasses.replace(inner, first=first))
        return self._query(flow, own, known, relation.alias, None)

    def _lookup_table(self, join: JoinClause, ctes: Mapping[str, AnyQuery]) -> CreateTable | None:
        """None: it joins rows."""
        name = join.relation.name or ""
        if name in self._broken:
            raise Wrong(None, join.at)
        table = None if name in ctes else self._tables.get(name)
        kind = None if table is None else kind_of(table)
        if table is not None and kind in ("sink", "both") and is_in_database(table):
            or_source = "" if kind == "sink" else ", or type = 'source' to join all of its rows"
            what = "sink" if kind == "sink" else "table"
            raise Wrong(
                f"{name} is a {what}: to look rows up in it, write CREATE TEMPORARY TABLE{or_source}", join.relation.at
            )
        return table if kind == "lookup" else None

    def _relation(self, flow: Flow, relation: Relation, ctes: Mapping[str, AnyQuery]) -> Node:
        if relation.query is not None:
            return self._query(flow, relation.query, ctes, relation.alias, None)
        return self._named(flow, relation.name or "", relation.at, ctes)

    def _named(self, flow: Flow, name: str, at: int, ctes: Mapping[str, AnyQuery]) -> Node:
        if name in ctes:
            others = {other: query for other, query in ctes.items() if other != name}
            return self._query(flow, ctes[name], others, name, None)
        if name in self._broken:
            raise Wrong(None, at)
        if name in self._open:
            raise Wrong(f"{' selects from '.join([*self._open, name])}: name another table", at)
        if name in self._views:
            return self._view(flow, name, self._views[name])
        if name not in self._tables:
            raise Wrong(f"there is no table {name}: {nearest(name, [*self._tables, *self._views, *ctes])}", at)
        table = self._tables[name]
        kind = kind_of(table)
        if kind == "memory":
            raise Wrong(f"nothing is inserted into {name}: write INSERT INTO {name} SELECT ... before", at)
        if kind == "lookup":
            raise Wrong(f"{name} is TEMPORARY, for lookups: write FROM another table JOIN {name} ON its key", at)
        if kind == "sink":
            raise Wrong(f"{name} is a sink: select from a table with type = 'source', or from what goes into it", at)
        if name not in self._sources:
            self._broken.add(name)  # once is enough to say what is wrong
            self._sources[name] = self._read(flow, table)
            self._broken.discard(name)
        return self._sources[name].node

    def _view(self, flow: Flow, name: str, view: CreateView | Insert) -> Node:
        self._open.append(name)
        try:
            if isinstance(view, CreateView):
                return self._query(flow, view.query, {}, name, None)
            if id(view) not in self._built:
                wanted = self._wanted(self._tables[name], view)
                self._built[id(view)] = self._query(flow, view.query, {}, name, wanted)
            return self._built[id(view)]
        except Wrong:
            self._broken.add(name)  # once is enough to say what is wrong
            raise
        finally:
            self._open.pop()

    # ---- The source ----

    def _read(self, flow: Flow, table: CreateTable) -> _Source:
        """The source of a table, and its rows with the table's columns."""
        declared, is_of_changes = table, is_followed(table)
        table = read_as(table) if is_of_changes else table
        model = self._described(table, lambda: source_of(table))
        schema = self._described(table, lambda: _schema_of(model))
        items, required = self._columns(table, model.names_in_sql, schema)
        computed = [column.name for column in table.columns or () if column.generated and column.not_null]
        event_time = event_time_of(self._text, table, items, schema, self._udfs)
        if event_time is not None and self._with_times:
            items[TIME] = as_time(event_time.expression, event_time.type)
            if event_time.is_computed:
                computed.append(event_time.model.column)
            else:
                required = [*required, event_time.model.column]
        node = source = flow.source(schema, table.name) if self._sources else Node(SOURCE, schema)
        if required or list(items.items()) != [(name, quoted(name)) for name in schema.names]:
            node = flow.query(node, SelectItems(items, None, table.name, required), table.name, table.at)
        node = flow.required(node, computed, table.name, table.at)
        if is_of_changes:
            node = followed(flow, declared, node)
        if event_time is not None:
            node = node.with_times(times_of(event_time, node.schema))
        return _Source(source.operator, model, None if event_time is None else event_time.model, node, table.at)

    def _columns(
        self, table: CreateTable, names: Mapping[str, str], schema: pa.Schema
    ) -> tuple[dict[str, str], Sequence[str]]:
        """The table's columns as expressions of the source's, and the source's columns that may not be null. names: the
        source's, for columns that have others here."""
        if table.columns is None:
            own = {source: name for name, source in names.items()}
            return {own.get(name, name): quoted(name) for name in schema.names}, ()
        items: dict[str, str] = {}
        required: list[str] = []
        for column in table.columns:
            if column.generated:
                items[column.name] = self._generated(table, column, schema)
                continue
            source = names.get(column.name, column.name)
            if source not in schema.names:
                raise Wrong(
                    f"the connector reads no column {column.name}: {nearest(column.name, schema.names)}", column.at
                )
            given = schema.field(source).type
            given = pa.string() if isinstance(given, CellType) else given
            converted = cast_to(quoted(source), given, column.type)
            if converted is None:
                raise Wrong(f"{column.name} is {given} where it is read, not {column.type}: write that type", column.at)
            items[column.name] = converted
            required += [source] if column.not_null else []
        return items, required

    def _generated(self, table: CreateTable, column: DeclaredColumn, schema: pa.Schema) -> str:
        """The expression of a column that is computed, in its type."""
        text, part = self._text.cut(column.generated), column.generated
        given = type_of(self._text, part, SelectItems({column.name: text}, None, table.name), schema, self._udfs)
        converted = cast_to(text, given, column.type)
        if converted is None:
            raise Wrong(f"{column.name} is {column.type}, and this is {given}: write CAST(... AS ...)", part[0].start)
        return converted

    def _described(self, table: CreateTable, make: Any) -> Any:
        """What a connector makes of the options; its errors have the table's place."""
        try:
            return make()
        except pydantic.ValidationError as error:
            texts = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
            raise Wrong(f"table {table.name}: {'; '.join(texts)}", table.at) from None
        except (ArroyoUdfError, OSError) as error:
            raise Wrong(f"table {table.name}: {error}", table.at) from None


def _builder(query: QueryText, before: Node) -> type[Grouped | FirstRowsQuery | Ranked | Rounds]:
    """What makes operators of a query over these rows."""
    if query.group:
        return Grouped
    if query.first is not None and not before.windows:
        return FirstRowsQuery
    if query.qualifies:
        raise Unending("QUALIFY is not supported over results of windows: write WHERE around the query", query.at)
    return Ranked if has_over(query) else Rounds


def _schema_of(model: Input) -> pa.Schema:
    values, _ = resolved(model.model_dump(by_alias=True, warnings=False), os.environ)
    with rehearsal(), contextlib.closing(type(model).model_validate(values).source(1)) as source:
        return source.schema
