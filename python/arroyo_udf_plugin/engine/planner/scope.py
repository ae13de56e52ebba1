"""What names mean in a SELECT from several tables, whose rows have become one.

    FROM hours a JOIN limits b ON ...      rows with the columns window, k, "b.window", "b.k", n

A column keeps its name in such a row, unless a table before has the same. In the text, b.k and n stand for columns of
the row; queries are cut with these in their places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import nearest
from ..datafusion.tokens import quoted
from .expressions import Column, Expression
from .selects import Star
from .text import Wrong


@dataclass(frozen=True)
class Scope:
    """tables: the columns of each, by the table's name and theirs: what they are called in a row. merged: columns that
    are equal in several tables, by USING: which column of a row they are."""

    tables: Mapping[str, Mapping[str, str]]
    merged: Mapping[str, str] = field(default_factory=dict)

    def owners(self, name: str) -> list[str]:
        """The tables that have such a column."""
        return [table for table, columns in self.tables.items() if name in columns]

    def column(self, name: str, at: int) -> str | None:
        """That of a name without a table. None: there is none. Raises Wrong if there are several."""
        if name in self.merged:
            return self.merged[name]
        owners = self.owners(name)
        if len(owners) > 1:
            raise Wrong(f"{name} is a column of {' and '.join(owners)}: write {owners[0]}.{name}", at)
        return self.tables[owners[0]][name] if owners else None

    def of_table(self, table: str, name: str, at: int) -> str:
        """That of table.name. Raises Wrong."""
        columns = self.tables[table]
        if name not in columns:
            raise Wrong(f"{table} has no column {name}: {nearest(name, columns)}", at)
        return columns[name]

    def meant(self, column: Column) -> tuple[str, tuple[str, ...]] | None:
        """The column of a row that it names, and the names of fields behind it. None: there is none. Raises Wrong."""
        first, *others = column.path
        if others and first in self.tables:
            return self.of_table(first, others[0], column.start), tuple(others[1:])
        name = self.column(first, column.start)
        return None if name is None else (name, tuple(others))

    def texts(
        self, expressions: Iterable[Expression], columns: Mapping[str, str] | None = None
    ) -> dict[Expression, str]:
        """The names in expressions as SQL. columns: what stands for the columns of a row; None: their names."""
        texts: dict[Expression, str] = {}
        for expression in expressions:
            for column in expression.columns:
                if (meant := self.meant(column)) is not None:
                    first = quoted(meant[0]) if columns is None else columns[meant[0]]
                    texts[column] = ".".join([first, *map(quoted, meant[1])])
        return texts

    def rows(self, columns: Sequence[str]) -> Scope:
        """The same names; a star stands for all columns of a row, as they are called there."""
        return _Rows(self.tables, self.merged, columns)

    def star(self, star: Star) -> list[tuple[str, str]]:
        """The columns that a star stands for, with their names in a row. Raises Wrong."""
        if star.table is not None and star.table not in self.tables:
            raise Wrong(f"there is no table {star.table} here: {nearest(star.table, self.tables)}", star.at)
        chosen = list(self.merged.items()) if star.table is None else []
        for table, columns in self.tables.items():
            if star.table in (None, table):
                chosen += [pair for pair in columns.items() if star.table is not None or pair[0] not in self.merged]
        names = [name for name, _ in chosen]
        for name, at in star.without.items():
            if name not in names:
                raise Wrong(f"there is no column {name} to leave out: there are {', '.join(names)}", at)
        return [(name, column) for name, column in chosen if name not in star.without]

    def beside(self, table: str, columns: Collection[str], merged: Mapping[str, str] | None = None) -> Scope:
        """With one more table: its columns have their own names in a row if nobody has them, else `table.name`."""
        taken = {column for own in self.tables.values() for column in own.values()} | set(self.merged.values())
        called = {}
        for name in columns:
            column = name if name not in taken else f"{table}.{name}"
            while column in taken:
                column += "_"
            taken.add(column)
            called[name] = column
        return Scope({**self.tables, table: called}, {**self.merged, **(merged or {})})


@dataclass(frozen=True)
class _Rows(Scope):
    """columns: what a star stands for."""

    columns: Sequence[str] = ()

    def star(self, star: Star) -> list[tuple[str, str]]:
        return [(column, column) for column in self.columns]
