"""JOIN with a lookup table, as an operator that adds its columns.

    FROM flights f LEFT JOIN planes p ON f.tail = p.tail AND p.year > 2000

    f's columns ──► lookup: tail of the table = tail of the row, where year > 2000 ──► f's columns, p's columns

An equation of a column of the table with anything of the row is part of the key. What else ON says decides which
matches count. Of the table only those columns are read that the query names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.lookup_table import WrongColumn
from ..connectors.lookups import keyed_table
from ..datafusion.query import Select, WrongQuery
from ..datafusion.tokens import column_name, quoted
from ..pipeline.kinds.lookup import Lookup
from ..pipeline.variables import resolved
from .diagnostics import wrong_query
from .expressions import Column, Expression, Operation, conjuncts, without_queries
from .flow import Flow, Node
from .functions import PlannedUdf
from .scope import Scope
from .selects import JoinClause, QueryText, Star
from .statements import CreateTable
from .tables import lookup_of
from .text import Text, Tokens, Wrong


class Looked:
    """A table of a join. keys: of its operator. schema: its columns, those of CREATE TABLE or of the database."""

    def __init__(self, table: CreateTable, join: JoinClause) -> None:
        """Raises Wrong."""
        if join.kind not in ("inner", "left"):
            raise Wrong(f"{table.name} is looked up row by row: write JOIN or LEFT JOIN", join.at)
        self.table, self.join, self.keys = table, join, lookup_of(table)
        types = {column.name: column.type for column in table.columns or ()}
        columns = None if table.columns is None else {name: name for name in types}
        values, _ = resolved({name: self.keys[name] for name in ("uri", "table")}, os.environ)
        try:
            self.schema = keyed_table(values["uri"], values["table"], {}, columns, types, table.name).schema
        except WrongColumn as error:
            at = next((column.at for column in table.columns or () if column.name == error.column), table.at)
            raise Wrong(str(error), at) from None
        except InvalidArgument as error:
            raise Wrong(str(error), table.at) from None

    @property
    def names(self) -> list[str]:
        """Of its columns."""
        return list(self.schema.names)


class LookupJoin:
    """before: the rows so far, in which names mean what `scope` says."""

    def __init__(
        self,
        text: Text,
        udfs: Mapping[str, PlannedUdf],
        flow: Flow,
        query: QueryText,
        before: Node,
        scope: Scope,
        looked: Looked,
    ) -> None:
        self._text, self._udfs, self._flow, self._query = text, udfs, flow, query
        self._before, self._left, self._looked = before, scope, looked
        self._join, self._table = looked.join, looked.table
        self._alias = looked.join.relation.alias

    def built(self) -> tuple[Node, Scope]:
        """The rows with the table's columns, and what names mean in them. Raises Wrong."""
        join, table, keys, schema = self._join, self._table, self._looked.keys, self._looked.schema
        merged = {name: self._merged(name, schema, at) for name, at in join.using.items()}
        scope = self._left.beside(self._alias, schema.names, merged)
        columns = scope.tables[self._alias]
        before, own, conditions = self._keys(scope, schema, merged)
        taken = {columns[name]: name for name in self._named(schema.names)}
        typed = {} if table.columns is None else {name: schema.field(name).type for name in (*taken.values(), *own)}
        operator = Lookup(
            **keys,
            name=table.name,
            keys=own,
            columns=taken,
            types={name: str(type_) for name, type_ in typed.items()},
            unmatched="null" if join.kind == "left" else "drop",
            where=" AND ".join(conditions) or None,
            on_error=self._flow.settings.on_row,
        )
        node = self._added(before, operator)
        if before is not self._before:
            kept = [*self._before.schema.names, *taken]
            node = self._flow.query(node, Select({name: quoted(name) for name in kept}), table.name, join.at)
        return node.as_known(self._before), scope

    def _merged(self, name: str, schema: pa.Schema, at: int) -> str:
        """The column of the row that a name in USING is."""
        column = self._left.column(name, at)
        for owner, has in ((self._table.name, name in schema.names), ("what is before it", column is not None)):
            if not has:
                raise Wrong(f"USING ({name}): {owner} has no such column: write ON and both names", at)
        return column or ""

    def _named(self, names: Sequence[str]) -> list[str]:
        """Those of the table's columns that the query may need."""
        query = self._query
        if any(isinstance(item, Star) and item.table in (None, self._alias) for item in query.items):
            return list(names)
        words = {token.name for expression in query.expressions for token in expression.part}
        words |= {name for join in query.joins for name in join.using}
        return [name for name in names if name in words]

    # ---- ON ----

    @property
    def _on(self) -> Tokens:
        return () if self._join.on is None else self._join.on.part

    def _keys(
        self, scope: Scope, schema: pa.Schema, merged: Mapping[str, str]
    ) -> tuple[Node, dict[str, str], list[str]]:
        """The rows with the columns of the key, these by those of the table, and further conditions."""
        own = dict(merged)
        computed: dict[str, tuple[str, Expression]] = {}
        conditions = []
        on = self._join.on
        for condition in conjuncts(on) if on is not None else []:
            self._refuse_calls(condition)
            equation = self._equation(condition, scope)
            if equation is None or equation[0] in own:
                conditions.append(f"({condition.text(self._text, scope.texts([condition]))}\n)")
                continue
            name, side = equation
            text = side.text(self._text, scope.texts([side]))
            column = column_name(text, "")
            if column is None or column not in self._before.schema.names:
                column = f"__l{len(computed)}"
                computed[column] = text, side
            own[name] = column
        if not own:
            example = f"ON {next(iter(self._left.tables))}.column = {self._alias}.{schema.names[0]}"
            text = f"a lookup needs a key: a column of {self._table.name} that equals something of the row: {example}"
            raise Wrong(text, self._join.at)
        return self._computed(computed), own, conditions

    def _refuse_calls(self, condition: Expression) -> None:
        without_queries([condition])
        for call in condition.calls_of(self._udfs):
            raise Wrong(f"ON has no calls of functions: call {call.name} in a subquery, and join that", call.start)

    def _equation(self, condition: Expression, scope: Scope) -> tuple[str, Expression] | None:
        """A column of the table, and what equals it."""
        bare = condition.bare
        if not isinstance(bare, Operation) or bare.operators != ("=",) or len(bare.children) != 2:
            return None
        columns = {called: name for name, called in scope.tables[self._alias].items()}
        for side, other in (bare.children, bare.children[::-1]):
            key = scope.meant(side) if isinstance(side, Column) else None
            if key is not None and key[0] in columns and not key[1]:
                meant = [scope.meant(column) for column in other.columns]
                if any(owner is not None and owner[0] in columns for owner in meant):
                    return None
                return columns[key[0]], other
        return None

    def _computed(self, computed: Mapping[str, tuple[str, Expression]]) -> Node:
        if not computed:
            return self._before
        items = {name: quoted(name) for name in self._before.schema.names}
        items |= {column: text for column, (text, _) in computed.items()}
        try:
            return self._flow.query(self._before, Select(items), "key", self._join.at)
        except WrongQuery as error:
            part = computed[error.item or ""][1].part if error.item in computed else self._on
            raise wrong_query(error, part, self._query, self._before.schema, self._udfs) from None

    def _added(self, before: Node, operator: Lookup) -> Node:
        try:
            return self._flow.lookup(before, operator, self._join.at)
        except WrongQuery as error:
            raise wrong_query(error, self._on, self._query, before.schema, self._udfs) from None
        except InvalidArgument as error:
            raise Wrong(str(error), self._on[0].start if self._on else self._join.at) from None
