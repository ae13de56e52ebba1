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

from ...host.aggregate import Aggregate
from ..datafusion.aggregates import ListFunction, list_functions
from ..datafusion.feed import TABLE, Feed, Single, works
from ..datafusion.native_calls import NO_AGGREGATES
from ..datafusion.query import WrongQuery, error_message, planned, settled, written
from ..datafusion.tokens import quoted, tokens, without_layout
from .partials import COUNT, Parted, column, part_name, parted, without_order
from .signed_partials import SIGNED_COUNT, signed_parts
from .spans import Window, is_time
from .updating_rows import SIGN, UpdatingRows


@dataclasses.dataclass(frozen=True)
class Grouping:
    """time: the column of event times; in the results, the last moment of the window. window: which windows there are.
    column: of the results, a struct of the window's start and end. keys: columns. aggregates: by the names of their
    results. by_row: each row is a result, with its keys; aggregates are window functions over the rows of its window.
    table: the name that aggregates may use for the rows. functions: aggregates of plugins that they call, by name in
    lower case."""

    time: str
    window: Window
    column: str = "window"
    keys: Sequence[str] = ()
    aggregates: Mapping[str, str] = dataclasses.field(default_factory=dict)
    by_row: bool = False
    table: str = "input"
    functions: Mapping[str, Aggregate] = dataclasses.field(default_factory=dict, repr=False)


class BatchQuery:
    """A query over batches with the schema `given`, with results in the schema `schema`. table: as of `Grouping`.
    aggregates: of plugins that it calls."""

    def __init__(
        self,
        text: str,
        given: pa.Schema,
        schema: pa.Schema,
        table: str,
        aggregates: Mapping[str, ListFunction] = NO_AGGREGATES,
    ) -> None:
        self._text, self.given, self._schema, self._table, self._aggregates = text, given, schema, table, aggregates

    def of(self, batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Raises what aggregates of plugins raise, such as RowError, and what DataFusion raises."""
        try:
            return [self._settled(answer) for answer in self._runs.run(*batches) if answer.num_rows]
        except Exception:
            for aggregate in self._aggregates.values():
                if aggregate.steps.failed is not None:
                    raise aggregate.steps.failed from None  # DataFusion has only its text
            raise

    @functools.cached_property
    def _runs(self) -> Feed | Single:
        asked = written(self._text, self._table, self.given, self._aggregates)
        return Feed(asked, self.given, one_by_one=False) if works() else Single(asked)

    def _settled(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        types = self._schema.types
        columns = [
            array if array.type == type_ else array.cast(type_)
            for array, type_ in zip(rows.columns, types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


class Aggregation:
    """Aggregates over batches, by keys: of one pane, or of several, with the columns that tell them apart in front.

    text: makes the query's text of the columns to group by, besides keys. given, schema: of rows and results of one.
    by: what tells panes apart. table: as of `Grouping`. aggregates: as of `BatchQuery`.
    """

    def __init__(
        self,
        text: Callable[[Sequence[str]], str],
        given: pa.Schema,
        schema: pa.Schema,
        by: Sequence[pa.Field],
        table: str,
        aggregates: Mapping[str, ListFunction],
    ) -> None:
        self.of_one = BatchQuery(text([]), given, schema, table, aggregates).of
        several = text([field.name for field in by])
        self.of_several = BatchQuery(several, pa.schema([*by, *given]), pa.schema([*by, *schema]), table, aggregates).of


class GroupingPlan:
    """The queries of a grouping over rows with the schema `given`. by: what tells panes apart. Raises WrongQuery.

    meanings: what parts are, by the names of their columns.
    needed: the columns of the rows that it takes. fed: their schema. kept: that of what panes keep, rows or parts.
    schema: of the results: keys and aggregates.
    in_rows: the aggregates that have no parts. in_parts: whether all have, and panes keep these. If so: parts: of rows.
    merged: of parts, put together. part_texts, merge_texts: their aggregates.
    result: of what is kept. result_texts: its aggregates. functions: of plugins that the texts call.
    count: of rows that come and go, the part that says how many are there.
    """

    def __init__(
        self, grouping: Grouping | UpdatingRows, given: pa.Schema, by: Sequence[pa.Field], in_rows: bool = False
    ) -> None:
        """in_rows: no aggregate has parts."""
        self._grouping, self._given, self._by = grouping, given, by
        self._is_by_row = isinstance(grouping, Grouping) and grouping.by_row
        self._has_no_parts = in_rows or self._is_by_row
        self._is_signed = isinstance(grouping, UpdatingRows) and grouping.is_signed
        self.count: str | None = None
        self.functions = list_functions(grouping.functions)
        self._check()
        results = [settled(*pair) for pair in zip(grouping.aggregates.values(), self._types(), strict=True)]
        texts = [text for text, _ in results]
        keys = [pa.field(name, given.field(name).type) for name in grouping.keys]
        self.schema = pa.schema([*keys, *zip(grouping.aggregates, (type_ for _, type_ in results), strict=True)])
        self.needed = self._needed()
        fed = self.fed = pa.schema([given.field(name) for name in self.needed])
        parted_texts = [None if self._has_no_parts else self._parted(text) for text in texts]
        aggregates = [aggregate for aggregate in parted_texts if aggregate is not None]
        self.in_rows = [name for name, own in zip(grouping.aggregates, parted_texts, strict=True) if own is None]
        self.in_parts = not self.in_rows
        self.meanings: dict[str, str] = {}
        if not self.in_parts:
            self.kept = fed
            if not self._is_by_row:
                texts = [without_order(text, given, grouping.table, grouping.functions) for text in texts]
            self.result_texts = texts
            self.result = self._asked(texts, fed, self.schema)
            self._check_together(texts, fed)
            return
        if self._is_signed:
            aggregates.append(SIGNED_COUNT)
        elif not aggregates and not keys:
            aggregates = [COUNT]  # a batch needs a column
        self._plan_parts(aggregates, fed, keys)

    def _parted(self, text: str) -> Parted | None:
        grouping = self._grouping
        if self._is_signed:
            return signed_parts(text, self._given, grouping.table, grouping.functions)
        return parted(text, self._given, grouping.table, grouping.functions)

    def _check(self) -> None:
        grouping, given = self._grouping, self._given
        of_window = [grouping.column, grouping.time] if isinstance(grouping, Grouping) else []
        for name in (*of_window[1:], *grouping.keys):
            if len(given.get_all_field_indices(name)) != 1:
                raise WrongQuery(f"there is no column {name}, or several", name)
        if isinstance(grouping, Grouping) and not is_time(given.field(grouping.time).type):
            raise WrongQuery(
                f"{grouping.time} is {given.field(grouping.time).type}: name a column of times, or give a column of "
                f'text this type where it is read: types = {{{grouping.time} = "datetime"}}',
                grouping.time,
            )
        for field in self._by:
            if field.name in given.names:
                raise WrongQuery(f"a column has the name {field.name}, which windows need: rename it", field.name)
        names = [*grouping.keys, *of_window[:1], *grouping.aggregates, *of_window[1:]]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise WrongQuery(f"two columns of the result have the name {name}: rename one", name)

    def _check_together(self, texts: Sequence[str], fed: pa.Schema) -> None:
        """Some aggregates have a plan by themselves, but not beside each other."""
        try:
            asked = written(self.text(texts, []), self._grouping.table, fed, self.functions)
            planned(asked, fed).execution_plan()
        except Exception as error:
            raise WrongQuery(error_message(error), None) from None

    def _asked(self, items: Sequence[str], given: pa.Schema, schema: pa.Schema) -> Aggregation:
        return Aggregation(partial(self.text, items), given, schema, self._by, self._grouping.table, self.functions)

    def _types(self) -> list[pa.DataType]:
        """Of the aggregates."""
        texts = self._grouping.aggregates
        try:
            return self._types_of(list(texts.values()), self._given)
        except Exception as error:
            for name, text in texts.items():
                try:
                    self._types_of([text], self._given)
                except Exception as cause:
                    raise WrongQuery(error_message(cause), name) from None
            raise WrongQuery(error_message(error), None) from None

    def _types_of(self, items: Sequence[str], given: pa.Schema) -> list[pa.DataType]:
        """Raises what DataFusion raises."""
        if not items:
            return []
        asked = written(self.text(items, []), self._grouping.table, given, self.functions)
        types = planned(asked, given).schema().types
        return list(types[len(self._grouping.keys) :])

    def _needed(self) -> list[str]:
        words = {token.name for text in self._grouping.aggregates.values() for token in tokens(text)}
        words |= {SIGN.name} if self._is_signed else set()
        needed = [name for name in self._given.names if name in words or name in self._grouping.keys]
        time = self._grouping.time
        return needed or [self._given.names[0] if time is None else time]  # a batch needs a column

    def text(self, items: Sequence[str], by: Sequence[str], relation: str = TABLE) -> str:
        """Of a query: items by these columns and the keys."""
        keys = [quoted(name) for name in (*by, *self._grouping.keys)]
        named = [f"{text}\nAS {quoted(f'__{place}')}" for place, text in enumerate(items)]
        grouped = f"\nGROUP BY {', '.join(keys)}" if keys and not self._is_by_row else ""
        return f"SELECT {', '.join([*keys, *named])}\nFROM {relation} AS {quoted(self._grouping.table)}{grouped}"

    def _plan_parts(self, aggregates: Sequence[Parted], fed: pa.Schema, keys: Sequence[pa.Field]) -> None:
        parts = list(dict.fromkeys(part for aggregate in aggregates for part in aggregate.parts))
        if self._is_signed:
            self.count = part_name(parts.index(SIGNED_COUNT.parts[0]))
        types = self._types_of([part.text for part in parts], fed)
        fields = [pa.field(part_name(number), type_) for number, type_ in enumerate(types)]
        self.kept = pa.schema([*keys, *fields])
        self.part_texts = [part.text for part in parts]
        self.meanings = {field.name: without_layout(part.text) for field, part in zip(fields, parts, strict=True)}
        self.parts = self._asked(self.part_texts, fed, self.kept)
        put_together = {part: part.merge.format(column(number)) for number, part in enumerate(parts)}
        self.merge_texts = list(put_together.values())
        self.merged = self._asked(self.merge_texts, self.kept, self.kept)
        results = [aggregate.result.format(*map(put_together.__getitem__, aggregate.parts)) for aggregate in aggregates]
        self.result_texts = results[: len(self._grouping.aggregates)]
        self.result = self._asked(self.result_texts, self.kept, self.schema)
