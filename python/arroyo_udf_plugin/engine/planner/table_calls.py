"""Rows that a table function of a plugin gives for each row before it: FROM t, words(t.text) AS w

    over a stream          t's columns, words(t.text) AS __x1 ──► t's columns, unnest(__x1)['word'] AS word, ...
    in a query of all      FROM (SELECT *, row['word'] AS word, ..., named_struct('word', row['word'], ...) AS w
                                 FROM (SELECT *, unnest(words(t.text)) AS row FROM t) AS t) AS t

A row without rows of the function is left out; LEFT JOIN keeps it, and all columns of the function are null.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

from ..datafusion.query import Select
from ..datafusion.tokens import quoted
from .expressions import Expression
from .flow import Flow, Node
from .functions import PlannedUdf
from .rounds import Rounds
from .scope import Scope
from .selects import Item, JoinClause, QueryText, Relation, Star
from .text import Text, Unending, Wrong

BESIDE_JOIN = (
    "a function's rows beside another JOIN are too much here: write what is before them as a query in brackets, FROM "
    "(SELECT ...) AS t, f(t.a) AS f"
)


class Called:
    """A join with a call. names: of the columns of its rows. fields: in the function's rows."""

    def __init__(self, join: JoinClause, udfs: Mapping[str, PlannedUdf]) -> None:
        """Raises Wrong for a call of something else, Unending for what DataFusion may know."""
        assert join.call is not None
        name, self.join, self.call = join.call.name, join, join.call
        udf = udfs.get(name)
        if udf is None:
            raise Unending(f"{name}(...) is no table: write a table's name, or a query in brackets", join.call.start)
        if udf.function.kind != "table":
            raise Wrong(f"{name} has one value for each row: write it among the items", join.call.start)
        self.fields: list[str] = [field.name for field in udf.function.returns.value_type]
        if len(join.columns) not in (0, len(self.fields)):
            columns = ", ".join(self.fields)
            raise Wrong(f"{name} has {len(self.fields)} columns, {columns}: name as many", join.at)
        self.names = list(join.columns) or self.fields

    def rows(self, lists: str) -> str:
        """One value for each row of such lists, which SQL has a text for."""
        if self.join.kind == "left":
            lists = f"CASE WHEN cardinality({lists}) > 0 THEN {lists} ELSE make_array(NULL) END"
        return f"unnest({lists})"


class CalledJoin:
    """before: the rows so far, in which names mean what `scope` says."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, PlannedUdf],
        flow: Flow,
        query: QueryText,
        before: Node,
        scope: Scope,
        called: Called,
    ) -> None:
        self._text, self._udfs, self._flow, self._query = text, udfs, flow, query
        self._before, self._scope, self._called = before, scope, called

    def built(self) -> tuple[Node, Scope]:
        """The rows with those of the function, and what names mean in them. Raises Wrong."""
        called, before = self._called, self._before
        lists = f"__x{self._flow.result()}"
        items = (Star(None, {}, self._query.at), Item(called.call, lists))
        query = dataclasses.replace(self._query, ctes={}, items=items, where=(), group=(), having=(), joins=())
        scope = self._scope.rows(before.names)
        name = called.call.name
        node = Rounds(self._text, self._udfs, self._flow, query, before, name, scope=scope).built(with_time=True)
        alias = called.join.relation.alias
        scope = self._scope.beside(alias, called.names)
        kept = {column: quoted(column) for column in node.schema.names if column != lists}
        rows = called.rows(quoted(lists))
        columns = [scope.tables[alias][own] for own in called.names]
        fields = {column: f"{rows}['{_escaped(field)}']" for column, field in zip(columns, called.fields, strict=True)}
        node = self._flow.query(node, Select({**kept, **fields}), f"{name}_rows", called.join.at)
        return node.as_known(before), scope


def in_whole(
    relation: Relation,
    joins: Sequence[JoinClause],
    udfs: Mapping[str, PlannedUdf],
    first: str,
    columns: Collection[str],
    written: Callable[[Expression], str],
) -> str:
    """A relation and calls behind it, as DataFusion takes them. first: the relation, as it is written there, with its
    name. columns: of it. written: an argument, as it is written there. Raises Wrong."""
    text, taken = first, set(columns)
    for join in joins:
        if join.call is None:
            raise Wrong(BESIDE_JOIN, join.at)
        called, alias, row = Called(join, udfs), join.relation.alias, quoted(f"{join.relation.alias} of")
        values = {name: f"{row}['{_escaped(field)}']" for name, field in zip(called.names, called.fields, strict=True)}
        own = [f"{value} AS {quoted(name)}" for name, value in values.items() if name not in taken]
        if alias not in values:  # a column comes before a table of its name, as in letters(text), with letters alone
            struct = ", ".join(f"'{_escaped(name)}', {value}" for name, value in values.items())
            own.append(f"named_struct({struct}) AS {quoted(alias)}")
        taken |= {alias, *called.names}
        rows = called.rows(written(called.call))
        text = f"(SELECT *, {rows} AS {row} FROM {text}) AS {quoted(relation.alias)}"
        text = f"(SELECT * EXCEPT ({row}), {', '.join(own)} FROM {text}) AS {quoted(relation.alias)}"
    return text


def _escaped(name: str) -> str:
    return name.replace("'", "''")
