"""What is asked of a window's rows, as queries of DataFusion: over the rows, or over parts of them.

Guarantees: names and types are checked when it is made. Results have the types of the query over the rows, however they
came about.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from ..sql.feed import TABLE, Feed, Single, context, works
from ..sql.query import WrongQuery, settled, told
from ..sql.tokens import quoted, tokens
from .partials import COUNT, Parted, column, part_name, parted
from .spans import Hop, is_time

PANE = pa.field("__pane", pa.int64())


@dataclasses.dataclass(frozen=True)
class Grouping:
    """time: the column of event times; in the results, the last moment of the window. window: which windows there are.
    column: of the results, a struct of the window's start and end. keys: columns. aggregates: by the names of their
    results. table: the name that aggregates may use for the rows."""

    time: str
    window: Hop
    column: str = "window"
    keys: Sequence[str] = ()
    aggregates: Mapping[str, str] = dataclasses.field(default_factory=dict)
    table: str = "input"


class Asked:
    """Aggregates over batches, by pane and keys. The pane is the first column of batches and results.

    text: makes the query's text of the columns to group by, besides keys. schema: of the results.
    """

    def __init__(self, text: Callable[[Sequence[str]], str], given: pa.Schema, schema: pa.Schema) -> None:
        self._text, self._given, self.schema = text, given, schema

    def of(self, batches: Sequence[pa.RecordBatch], pane: int | None) -> list[pa.RecordBatch]:
        """pane: of all rows, if they have the same: one column less to group by is much faster."""
        if pane is None or len(self.schema) == 1:
            return [self._settled(answer.columns) for answer in self._of_many.run(*batches) if answer.num_rows]
        answers = self._of_one.run(*batches)
        return [
            self._settled([pa.repeat(pa.scalar(pane, PANE.type), answer.num_rows), *answer.columns])
            for answer in answers
            if answer.num_rows
        ]

    @functools.cached_property
    def _of_many(self) -> Feed | Single:
        return self._runs([PANE.name])

    @functools.cached_property
    def _of_one(self) -> Feed | Single:
        return self._runs([])

    def _runs(self, by: Sequence[str]) -> Feed | Single:
        text = self._text(by)
        return Feed(text, self._given, one_by_one=False) if works() else Single(text)

    def _settled(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        types = self.schema.types
        same = [one if one.type == type_ else one.cast(type_) for one, type_ in zip(columns, types, strict=True)]
        return pa.RecordBatch.from_arrays(same, schema=self.schema)


class Plan:
    """The queries of a grouping over rows with the schema `given`. Raises WrongQuery.

    needed: the columns of the rows that it takes. schema: of the results; first the pane, then keys and aggregates.
    in_parts: whether panes keep parts. If so: parts: of rows, by pane. merged: parts of one pane put together.
    result: of rows or parts that have the end of a window in the place of the pane.
    """

    def __init__(self, grouping: Grouping, given: pa.Schema) -> None:
        self._grouping, self._given = grouping, given
        self._check()
        types = self._types()
        keys = [pa.field(name, given.field(name).type) for name in grouping.keys]
        self.schema = pa.schema([PANE, *keys, *zip(grouping.aggregates, types, strict=True)])
        self.needed = self._needed()
        fed = pa.schema([PANE, *(given.field(name) for name in self.needed)])
        texts = list(grouping.aggregates.values())
        found = [parted(text, given, grouping.table) for text in texts]
        aggregates = [one for one in found if one is not None]
        self.in_parts = len(aggregates) == len(found)
        if not self.in_parts:
            self.kept = pa.schema(fed)
            self.result = Asked(partial(self._text, texts), fed, self.schema)
            return
        if not aggregates and not keys:
            aggregates = [COUNT]  # a batch needs a column
        self._plan_parts(aggregates, fed, keys)

    def _check(self) -> None:
        grouping, given = self._grouping, self._given
        for name in (grouping.time, *grouping.keys):
            if len(given.get_all_field_indices(name)) != 1:
                raise WrongQuery(f"there is no column {name}, or several", name)
        if not is_time(given.field(grouping.time).type):
            raise WrongQuery(
                f"{grouping.time} is {given.field(grouping.time).type}: name a column of times", grouping.time
            )
        if PANE.name in given.names:
            raise WrongQuery(f"a column has the name {PANE.name}, which windows need: rename it", PANE.name)
        names = [*grouping.keys, grouping.column, *grouping.aggregates, grouping.time]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise WrongQuery(f"two columns of the result have the name {name}: rename one", name)

    def _types(self) -> list[pa.DataType]:
        """Of the aggregates."""
        texts = self._grouping.aggregates
        try:
            return [settled(type_) for type_ in _schema_of(self._text(list(texts.values()), []), self._given).types][
                len(self._grouping.keys) :
            ]
        except Exception as error:
            for name, text in texts.items():
                try:
                    _schema_of(self._text([text], []), self._given)
                except Exception as found:
                    raise WrongQuery(told(found), name) from None
            raise WrongQuery(told(error), None) from None

    def _needed(self) -> list[str]:
        words = {token.name for text in self._grouping.aggregates.values() for token in tokens(text)}
        return [name for name in self._given.names if name in words or name in self._grouping.keys]

    def _text(self, items: Sequence[str], by: Sequence[str]) -> str:
        keys = [quoted(name) for name in (*by, *self._grouping.keys)]
        named = [f"{text}\nAS {quoted(f'__{place}')}" for place, text in enumerate(items)]
        grouped = f"\nGROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, *named])}\nFROM {TABLE} AS {quoted(self._grouping.table)}{grouped}"

    def _plan_parts(self, aggregates: Sequence[Parted], fed: pa.Schema, keys: Sequence[pa.Field]) -> None:
        parts = list(dict.fromkeys(part for one in aggregates for part in one.parts))
        text = self._text([part.text for part in parts], [PANE.name])
        types = [settled(type_) for type_ in _schema_of(text, fed).types][1 + len(keys) :]
        fields = [pa.field(part_name(number), type_) for number, type_ in enumerate(types)]
        self.kept = pa.schema([PANE, *keys, *fields])
        self.parts = Asked(partial(self._text, [part.text for part in parts]), fed, self.kept)
        put_together = {part: f"{part.merge}({column(number)})" for number, part in enumerate(parts)}
        self.merged = Asked(partial(self._text, list(put_together.values())), self.kept, self.kept)
        results = [one.result.format(*map(put_together.__getitem__, one.parts)) for one in aggregates]
        chosen = results if self._grouping.aggregates else []
        self.result = Asked(partial(self._text, chosen), self.kept, self.schema)


def _schema_of(text: str, given: pa.Schema) -> pa.Schema:
    own = context()
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, type_) for type_ in given.types], schema=given)
    own.register_record_batches(TABLE, [[empty]])
    return own.sql(text).schema()
