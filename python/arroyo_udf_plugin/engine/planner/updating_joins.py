"""Two tables joined on equal keys, without a window: an operator that knows the rows of both.

    FROM orders o LEFT JOIN people p ON o.person = p.id AND p.town = 'Rome'

Keys that are computed, or of other types than those of the other side, are columns in front of the join.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ..connectors.cells import CellType
from ..datafusion.query import Query, Select, WrongQuery
from ..datafusion.tokens import column_name, quoted
from ..pipeline.kinds.updating_join import UpdatingJoin
from .column_types import cast_to
from .expressions import Expression, Operation, conjuncts, without_queries
from .flow import Node
from .joins import StreamJoin
from .scope import Scope
from .text import Unending, Wrong
from .unions import common_type


@dataclass
class _Keys:
    """left, right: expressions of each side's columns, and where they are. rest: what else rows meet by. merged, made:
    as of `StreamJoin`."""

    left: list[tuple[str, int]] = field(default_factory=list)
    right: list[tuple[str, int]] = field(default_factory=list)
    rest: list[Expression] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)


class UpdatedStreamJoin(StreamJoin):
    """As `StreamJoin`, of rows without a window, or of rows that come and go."""

    def built(self, why: Unending | None = None) -> tuple[Node, Scope]:
        """why: it is no other join."""
        join = self._join
        keys = self._on() if join.on is not None else self._by_using()
        if not keys.left:
            raise why or Wrong(
                "this join has no key, and would compare all rows with all for ever: write ON a.x = b.y", join.at
            )
        if keys.rest and join.kind != "inner":
            raise Wrong(
                f"a {join.kind.upper()} JOIN of rows that may change has = alone: write this condition in a query for "
                "the table, as in JOIN (SELECT ... WHERE ...)",
                keys.rest[0].start,
            )
        rest = [expression.text(self._text, self._both.texts([expression], self._items)) for expression in keys.rest]
        between = "\n) AND ("
        left, right, columns = self._sides(keys)
        taken = self._taken or list(self._items)[:1]
        operator = UpdatingJoin(
            name=f"{self._name}_join",
            left=left.operator,
            right=right.operator,
            kind=join.kind,
            keys=columns,
            on=f"({between.join(rest)}\n)" if rest else "true",
            select={**{column: self._items[column] for column in taken}, **keys.made},
            tables=self._tables,
            ttl=self._flow.settings.updating_ttl,
        )
        try:
            node = self._flow.updating_join(left, right, operator, join.at)
        except WrongQuery as error:
            at = join.at if join.on is None else join.on.start
            raise Wrong(" ".join(str(error).split()), at) from None
        return node, Scope(self._both.tables, {**self._both.merged, **keys.merged})

    # ---- The condition ----

    def _on(self) -> _Keys:
        on = self._join.on
        assert on is not None
        without_queries([on])
        for call in on.calls_of(self._udfs):
            raise Wrong(f"{call.name} is called in ON: compute it in the query before, or in WHERE", call.start)
        keys = _Keys()
        right = Scope({self._table: {name: name for name in self._right.names}})
        for condition in conjuncts(on):
            bare = condition.bare
            sides = bare.children if isinstance(bare, Operation) and bare.operators == ("=",) else ()
            owners = [self._owner(side) for side in sides]
            if sorted(owners, key=str) != ["left", "right"]:
                keys.rest.append(condition)
                continue
            own, other = sides if owners[0] == "left" else sides[::-1]
            keys.left.append((own.text(self._text, self._scope.texts([own])), own.start))
            keys.right.append((other.text(self._text, right.texts([other])), other.start))
        return keys

    def _owner(self, side: Expression) -> str | None:
        """Whose columns an expression has; None: of both sides, or of none."""
        columns = {meant[0] for column in side.columns if (meant := self._both.meant(column)) is not None}
        if columns and columns <= set(self._left.names):
            return "left"
        return "right" if columns and columns <= set(self._own.values()) else None

    def _by_using(self) -> _Keys:
        keys = _Keys()
        for name, at in self._join.using.items():
            left, right = self._pair(name, at)
            keys.left.append((quoted(left), at))
            keys.right.append((quoted(name), at))
            keys.merged[name] = {"right": right, "full": f"using.{name}"}.get(self._join.kind, left)
            if self._join.kind == "full":
                keys.made[f"using.{name}"] = f"coalesce({self._items[left]}, {self._items[right]})"
        return keys

    # ---- The sides ----

    def _sides(self, keys: _Keys) -> tuple[Node, Node, dict[str, str]]:
        """Both sides with their keys, and which columns these are."""
        types = [
            [self._type(node, text, at) for text, at in texts]
            for node, texts in ((self._left, keys.left), (self._right, keys.right))
        ]
        nodes = (self._left, self._right)
        made: list[dict[str, str]] = [{}, {}]
        columns: list[tuple[str, str]] = []
        for number, pair in enumerate(zip(keys.left, keys.right, *types, strict=True), 1):
            (left, at), (right, _), left_type, right_type = pair
            wanted = common_type([left_type, right_type])
            casts = [
                None if wanted is None else cast_to(text, type_, wanted)
                for text, type_ in ((left, left_type), (right, right_type))
            ]
            names = []
            for side, text in enumerate(casts):
                if text is None:
                    raise Wrong(f"this is {left_type}, and the other side is {right_type}: write CAST(... AS ...)", at)
                name = self._column(nodes[side], text)
                if name is None or name in [known[side] for known in columns]:
                    name = f"__j{number}"
                    made[side][name] = text
                names.append(name)
            columns.append((names[0], names[1]))
        left_side, right_side = (
            self._with(node, own, at)
            for node, own, (_, at) in zip(nodes, made, (keys.left[0], keys.right[0]), strict=True)
        )
        return left_side, right_side, dict(columns)

    def _column(self, node: Node, text: str) -> str | None:
        """The column that a key is. None: it is computed."""
        name = column_name(text, "")
        if name is None or name not in node.names or isinstance(node.schema.field(name).type, CellType):
            return None
        return name

    def _with(self, node: Node, made: Mapping[str, str], at: int) -> Node:
        if not made:
            return node
        items = {name: quoted(name) for name in node.schema.names} | dict(made)
        return self._flow.query(node, Select(items), f"{self._name}_keys", at)

    def _type(self, node: Node, text: str, at: int) -> pa.DataType:
        try:
            type_ = Query(Select({"key": text}), node.schema).schema.field("key").type
        except WrongQuery as error:
            raise Wrong(" ".join(str(error).split()), at) from None
        return pa.string() if isinstance(type_, CellType) else type_
