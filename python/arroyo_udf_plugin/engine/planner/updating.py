"""A SELECT with aggregates over rows that never end, as an operator whose rows are changes.

    SELECT carrier, count(*) AS n, round(avg(f(delay))) AS late FROM flights GROUP BY carrier HAVING count(*) > 10

    carrier AS __k1, f(delay) AS __x1 ──► count(*), avg(__x1) by __k1, and items over them ──► op, before, after

Keys and arguments of aggregates are computed in front of the operator, as for windows. What is over them, also in
queries that select from this one, is part of it: it is computed of the result before a change, and of the one after it.
So it must give the same for the same result, and calls no functions of plugins.

The operator is made where its changes leave: a view of which two outputs take changes becomes two operators.

Other queries take results, and rows of tables that change, as rows that come and go: each has a column that says which
it does (`SIGN`), and passes it on. So they must be computed in the same way both times, and call no functions of
plugins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

from ...host.aggregate import Aggregate
from ..connectors.described import Output
from ..datafusion.query import Select, WrongQuery
from ..datafusion.tokens import quoted, tokens
from ..pipeline.kinds.followed import LatestRows
from ..pipeline.kinds.functions import Functions
from ..pipeline.kinds.sql import Sql
from ..pipeline.kinds.updating import OverResults, Updating
from ..windows.updating_rows import SIGN
from .diagnostics import wrong_query
from .expressions import VOLATILE, Expression
from .flow import Flow, Node, Pending
from .functions import PlannedUdf
from .grouped import Grouped
from .rounds import Rounds, Wanted
from .selects import QueryText, Star
from .text import Text, Unending, Wrong

_QUOTE = "'"
_UPDATED = "the results of this GROUP BY without a window are updated with each row"


class UpdatingQuery(Grouped):
    """As `Grouped`, for groups that never end."""

    def built(self, wanted: Sequence[Wanted] | None = None, with_time: bool = False) -> Node:
        """Its rows are results, each of which may be updated. Raises Unending without a text for windows: something
        else is wrong with them."""
        query = self._query
        for item in query.items:
            if isinstance(item, Star):
                raise Wrong("a * is not for GROUP BY: write the keys and the aggregates", item.at)
        windows, found = self._groups()
        for window in windows:
            raise Unending(None, window.expression.start)
        keys = {f"__k{number}": key for number, key in enumerate(found, 1)}
        known = {self._normal(key): column for column, key in keys.items()}
        computed = {
            node: column
            for expression in (*query.results, *query.having)
            for node, column in self._computed(expression, known)
        }
        computed |= dict(self._aliases(computed))
        rows = self._rows(keys)
        self._check_types(rows)
        results = dataclasses.replace(query, ctes={}, where=query.having, group=(), having=())
        node = self._pending(rows, keys)
        others = self._node.names
        return over_results(self._text, self._udfs, self._flow, results, node, self._name, wanted, computed, others)

    def _pending(self, rows: Node, keys: Mapping[str, Expression]) -> Node:
        lasts = rows.is_signed and self._flow.follows(rows.operator)
        operator = Updating(
            name=f"{self._name}_updates",
            keys=tuple(keys),
            aggregates=self._results,
            ttl=None if lasts else self._flow.settings.updating_ttl,
            signed=rows.is_signed,
            table=self._alias,
            functions={call.name: self._own[call.name].file for call, _ in self._called},
        )
        called = {call.name: self._own[call.name].function for call, _ in self._called}
        functions = {name: function for name, function in called.items() if isinstance(function, Aggregate)}
        pending = Pending(
            rows, operator, functions, (self._query.group[0].start if self._query.group else self._query.at)
        )
        try:
            return Node(rows.operator, pending.results, pending=pending)
        except WrongQuery as error:
            part = self._parts[error.item].part if error.item in self._parts else ()
            raise wrong_query(error, part, self._query, self._node.schema, self._udfs) from None


def over_results(
    text: Text,
    udfs: Mapping[str, PlannedUdf],
    flow: Flow,
    query: QueryText,
    node: Node,
    name: str,
    wanted: Sequence[Wanted] | None,
    computed: Mapping[Expression, str] | None = None,
    others: Collection[str] = (),
) -> Node:
    """Items and conditions over results that are updated. As of `Rounds`. Raises Wrong."""
    assert node.pending is not None
    aside = flow.copy()
    n_before = len(aside.operators)
    built = Rounds(text, udfs, aside, query, node, name, computed, others).built(wanted)
    over = []
    for place, operator in enumerate(aside.operators[n_before:], n_before):
        at = aside.places["operators", place]
        if isinstance(operator, Functions):
            raise Wrong(
                f"{_UPDATED}, and a function of a plugin is not called for these: call it for the rows, in a "
                "view before the GROUP BY, or in another pipeline for the changes",
                at,
            )
        assert isinstance(operator, Sql), "Rounds makes no others"
        own = OverResults(
            select=operator.select, where=operator.where, table=operator.table, required=operator.required
        )
        for word in _words(own):
            if word == "unnest":
                raise Wrong(f"{_UPDATED}, and unnest would make several of one: write unnest in a view before it", at)
            if word in VOLATILE:
                raise Wrong(f"{_UPDATED}, and {word} is another one each time: write it in a view before it", at)
        over.append(own)
    pending = node.pending.over(over)
    return Node(node.operator, built.schema, pending=pending)


def _words(over: OverResults) -> set[str]:
    """All words in its texts that are not in quotes."""
    return {
        token.word for own in (*(over.select or {}).values(), over.where or "") for token in tokens(own) if token.word
    }


def check_plain(nodes: Sequence[tuple[Node, int]], what: str, error: type[Wrong] = Wrong) -> None:
    """Raises the error for rows that may change. nodes: each with where it is named. what: cannot take them."""
    for node, at in nodes:
        if node.is_updated:
            instead = "group by a window, such as tumble(interval '1 minute'), or select from the rows themselves"
            if node.pending is not None:
                raise error(f"these results are updated, and {what}: {instead}", at)
            raise error(f"these rows may change, and {what}: write this for rows that stay", at)


def check_repeatable(expressions: Iterable[Expression], udfs: Mapping[str, PlannedUdf]) -> None:
    """Raises Wrong for what rows that go would not have as they had it when they came."""
    for expression in expressions:
        for call in expression.calls_of(udfs):
            if not udfs[call.name].is_aggregate:
                raise Wrong(
                    f"these rows may change, and {call.name} would be called again for each that goes: call it for "
                    "rows that stay, or leave PRIMARY KEY out of the table for a row of each change",
                    call.start,
                )
        if expression.is_volatile({}):
            raise Wrong("these rows may change, and this is another one each time: leave it out", expression.start)


def as_rows(flow: Flow, node: Node) -> Node:
    """Results that are updated as rows that come and go; others are as they are."""
    return node if node.pending is None else flow.updates(node.pending, as_rows=True)


def _key_of(sink: Output, table: str, at: int, what: str, instead: str = "") -> tuple[str, ...]:
    """Of a table that takes changes by key; empty: it has none. what: comes. instead: what else to
    write. Raises Wrong for one that takes none."""
    fields = type(sink).model_fields
    if "operation" not in fields or "key" not in fields:
        raise Wrong(
            f"{what}, and {table} takes rows that stay: {instead}write format = 'debezium_json' for the table",
            at,
        )
    return tuple(getattr(sink, "key"))  # noqa: B009 (another model may have none)


def rows_by_key(flow: Flow, node: Node, sink: Output, table: str, at: int) -> tuple[Node, Output]:
    """Rows that come and go for a table that has one row of each key. Raises Wrong for others."""
    key = _key_of(sink, table, at, "this query has rows that may change")
    if not key:
        raise Wrong(
            f"this query has rows that may change, and {table} finds a row by its key: write PRIMARY KEY of columns "
            "that tell its rows apart",
            at,
        )
    return _latest(flow, node, key, table, at), sink.model_copy(update={"operation": "op"})


def _latest(flow: Flow, node: Node, key: Sequence[str], table: str, at: int) -> Node:
    """The changes of a table with this key."""
    try:
        return flow.of_keys(node, LatestRows(name=f"{table}_latest", keys=tuple(key)), at)
    except WrongQuery as error:
        raise Wrong(f"table {table}: {error}", at) from None


def shown(flow: Flow, node: Node, at: int) -> Node:
    """What a SELECT alone shows: of what may change, its changes."""
    if node.pending is not None:
        return flow.updates(node.pending)
    return flow.query(node, Select(_come_or_gone(node.names)), "changes", at) if node.is_signed else node


def _come_or_gone(names: Sequence[str]) -> dict[str, str]:
    """Rows that come and go as changes, each by itself."""
    row, sign = _row(names), quoted(SIGN.name)
    sides = {"before": f"CASE WHEN {sign} < 0 THEN {row} END", "after": f"CASE WHEN {sign} > 0 THEN {row} END"}
    return {"op": f"CASE WHEN {sign} > 0 THEN 'c' ELSE 'd' END", **sides}


def _row(names: Sequence[str]) -> str:
    return f"named_struct({', '.join(f'{_text(column)}, {quoted(column)}' for column in names)})"


def changes_by_key(flow: Flow, pending: Pending, sink: Output, table: str) -> tuple[Node, Output]:
    """The same for a table in which a result has one row, by its key. Raises Wrong for others."""
    what = "this query has no window, so its results are updated with each row"
    key = _key_of(sink, table, pending.at, what, "add tumble(interval '1 minute') to GROUP BY, or ")
    known = pending.keys
    if not key or {known.get(column) for column in key} != set(pending.operator.keys):
        names = [column for column, own in known.items() if own in pending.operator.keys]
        instead = f"PRIMARY KEY ({', '.join(names)})" if names else "keys of GROUP BY among the items, and PRIMARY KEY"
        raise Wrong(
            f"these results are updated, and {table} finds a result by its key, which must be all that GROUP BY has: "
            f"write {instead}, with the types that they have",
            pending.at,
        )
    node = flow.updates(pending.over([OverResults(required=key)]))
    return node, sink.model_copy(update={"operation": "op"})


def changes_of(flow: Flow, node: Node, sink: Output, name: str, key: Sequence[str], at: int) -> tuple[Node, Output]:
    """What a table with changes takes: those of results that are updated; rows that stay are new, unless they are
    changes already. Columns that messages have beside their values are those after a change, or before it. key: of the
    table; without one, a row that changes goes and comes. Raises Wrong."""
    if node.pending is None and {"op", "after"} <= set(node.names):
        return node, sink
    if getattr(sink, "json_columns", ()):
        raise Wrong("a column of JSON is a text in a table of changes: write TEXT", at)
    names, beside = node.names, [getattr(sink, key, None) for key in ("key_field", "timestamp_field")]
    own = [column for column in dict.fromkeys(beside) if column is not None and column in names]
    if node.pending is not None or (node.is_signed and key):
        node = flow.updates(node.pending) if node.pending is not None else _latest(flow, node, key, name, at)
        values = {column: f"coalesce(after[{_text(column)}], before[{_text(column)}])" for column in own}
        items = {column: column for column in ("op", "before", "after")}
    elif node.is_signed:
        items = _come_or_gone(names)
        values = {column: quoted(column) for column in own}
    else:
        row = _row(names)
        items = {"op": "'c'", "before": f"CASE WHEN FALSE THEN {row} END", "after": row}
        values = {column: quoted(column) for column in own}
    if own:
        sink = sink.model_copy(update={"columns": tuple(items)})
    if own or items["op"] != "op":
        node = flow.query(node, Select(items | values), name, at)
    return node, sink


def _text(name: str) -> str:
    """A name as a text in SQL."""
    return f"'{name.replace(_QUOTE, 2 * _QUOTE)}'"
