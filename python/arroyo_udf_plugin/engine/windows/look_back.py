"""Window functions that look back at a bounded number of rows of their key: lag, moving averages.

    rows ──► sorted by event time ──► a watermark passes them: with the latest rows of each key, one query ──► results

Of each key, the latest `rows` rows are remembered. A key that has no row for `ttl` is forgotten: its next row is its
first one.

Guarantees: results do not depend on batches and watermarks, if no row is late, and the order of a key's rows is known
from its text. They leave in the order of their event times, and of their arrival where these are equal.
Assumes: the texts order rows by their event times first; what is remembered fits into memory while a query needs it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.cells import decoded, plain_field
from ..datafusion.feed import TABLE
from ..datafusion.query import WrongQuery, error_message, planned, settled, written
from ..datafusion.tokens import quoted, tokens
from .grouping import BatchQuery
from .kept import KeptRows
from .results import Step
from .runs import SortedRuns, cuts
from .spans import before, is_time, later, nanoseconds
from .storage import Some, Storage, StorageLimits
from .timed_rows import AT

_NEW, _PLACE = pa.field("$new", pa.bool_()), pa.field("$place", pa.int64())
_OWN = pa.schema([_PLACE, _NEW, pa.field("$is_kept", pa.bool_()), pa.field("$latest", pa.int64())])


@dataclasses.dataclass(frozen=True)
class LookBackRows:
    """time: the column of event times. functions: window functions by the names of their results. keys: the expressions
    of their PARTITION BY, order: the text of their ORDER BY. rows: how many rows they look back. ttl: nanoseconds for
    which a key is known without a row. table: the name that texts may use for the rows."""

    time: str
    functions: Mapping[str, str]
    keys: tuple[str, ...]
    order: str
    rows: int
    ttl: int
    table: str = "input"

    @property
    def window(self) -> LookBackRows:
        return self

    @property
    def length(self) -> int:
        return self.ttl + 1


class LookedBack:
    """schema: of the results: rows, and values of functions behind them. kept_schema: of what `kept` gives: rows that
    wait, and, with times before the watermark, those that are remembered.

    watermark: the latest; None: there was none yet. closed: up to where results have left.
    """

    def __init__(self, asked: LookBackRows, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of the rows. Raises WrongQuery."""
        self._asked = asked
        if len(given.get_all_field_indices(asked.time)) != 1 or not is_time(given.field(asked.time).type):
            raise WrongQuery(f"there is no column {asked.time} of times, or several", "time")
        for name in asked.functions:
            if name in given.names:
                raise WrongQuery(f"two columns of the result have the name {name}: rename one", name)
        self.kept_schema = pa.schema([plain_field(field) for field in given])
        words = {token.name for text in (*asked.functions.values(), *asked.keys, asked.order) for token in tokens(text)}
        self._needed = [place for place, name in enumerate(given.names) if name in words]
        self._fed = pa.schema([*(self.kept_schema.field(place) for place in self._needed), AT, _NEW, _PLACE])
        texts_and_types = [settled(*pair) for pair in zip(asked.functions.values(), self._types(), strict=True)]
        results = pa.schema(zip(asked.functions, (type_ for _, type_ in texts_and_types), strict=True))
        self.schema = pa.schema([*self.kept_schema, *results])
        text = self._text([text for text, _ in texts_and_types])
        self._answers = BatchQuery(text, self._fed, pa.schema([*_OWN, *results]), asked.table).of
        self.meanings: dict[str, str] = {}
        self.watermark: int | None = None
        self.closed: int | None = None
        self._storage = Storage(limits)
        place = given.get_field_index(asked.time)
        self._rows = SortedRuns(self._storage, lambda rows: nanoseconds(rows.column(place)))
        self._remembered = Some(self._storage)

    # ---- Rows ----

    def late(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """As of `panes.Windows`."""
        return before(rows.column(self._asked.time), self.watermark)

    def add(self, rows: pa.RecordBatch) -> None:
        """rows: with usable times, none of them late."""
        columns = [decoded(column) for column in rows.columns]
        self._rows.add(pa.RecordBatch.from_arrays(columns, schema=self.kept_schema))

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The results up to the watermark, or all. It has passed all of them then; rows stay remembered."""
        if all_of_them and self._rows.last is not None:
            self.watermark = later(self.watermark, self._rows.last + 1)
        if self.watermark is None:
            return
        for until in cuts(self._rows.before(self.watermark), self.watermark):
            new = self._rows.take(until)
            results = list(self._looked_back(new)) if new else []
            self.closed = until
            yield results

    def _looked_back(self, new: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """In parts that are shorter than `ttl`: a key is not forgotten within one."""
        (rows,) = pa.Table.from_batches(new).combine_chunks().to_batches()
        rows = rows.take(pc.sort_indices(self._rows.times(rows)))
        times = self._rows.times(rows)
        start = 0
        while start < len(times):
            stop = pc.sum(pc.less(times, times[start].as_py() + self._asked.ttl)).as_py()
            yield from self._answered(rows.slice(start, stop - start), times[stop - 1].as_py())
            start = stop

    def _answered(self, new: pa.RecordBatch, last: int) -> Iterator[pa.RecordBatch]:
        """last: the latest time of these rows."""
        before = pa.Table.from_batches(self._remembered.batches, self.kept_schema)
        n_before, n_new = before.num_rows, new.num_rows
        (rows,) = pa.concat_tables([before, pa.Table.from_batches([new])]).combine_chunks().to_batches()
        is_new = pa.concat_arrays([pa.repeat(pa.scalar(False), n_before), pa.repeat(pa.scalar(True), n_new)])
        places = pa.array(range(rows.num_rows), pa.int64())
        columns = [*(rows.column(place) for place in self._needed), self._rows.times(rows), is_new, places]
        answers = pa.Table.from_batches(self._answers([pa.RecordBatch.from_arrays(columns, schema=self._fed)]))
        answers = answers.take(pc.sort_indices(answers.column(_PLACE.name))).combine_chunks()
        is_known = pc.greater(answers.column("$latest"), last - self._asked.ttl)
        kept = answers.column(_PLACE.name).filter(pc.and_(answers.column("$is_kept"), is_known))
        self._remembered.clear()
        if len(kept):
            self._remembered.add(rows.take(kept.combine_chunks()))
        (results,) = answers.filter(answers.column(_NEW.name)).to_batches()
        whole = [*rows.slice(n_before).columns, *results.columns[len(_OWN) :]]
        yield pa.RecordBatch.from_arrays(whole, schema=self.schema)

    # ---- The query ----

    def _text(self, items: Iterable[str]) -> str:
        asked = self._asked
        at, is_new = quoted(AT.name), quoted(_NEW.name)
        by = f"PARTITION BY {', '.join(asked.keys)}\n" if asked.keys else ""
        over = f"({by} ORDER BY {asked.order}\n ROWS BETWEEN CURRENT ROW AND {max(asked.rows, 1)} FOLLOWING)"
        named = [f"{text}\nAS {quoted(f'__{place}')}" for place, text in enumerate(items)]
        own = f'{quoted(_PLACE.name)}, {is_new}, count(*) OVER {over} <= {asked.rows} AS "$is_kept", "$latest"'
        times = (
            f'max({at}) OVER ({by}) AS "$latest", min(CASE WHEN {is_new} THEN {at} END) OVER ({by}) AS "$next", '
            f'max(CASE WHEN NOT {is_new} THEN {at} END) OVER ({by}) AS "$before"'
        )
        table = quoted(asked.table)
        return (
            f"SELECT {', '.join([own, *named])}\nFROM (SELECT *, {times}\nFROM {TABLE} AS {table}) AS {table}\n"
            f'WHERE {is_new} OR "$next" IS NULL OR "$next" - "$before" < {asked.ttl}'
        )

    def _types(self) -> list[pa.DataType]:
        """Of the functions. Raises WrongQuery."""
        functions = self._asked.functions
        try:
            return self._types_of(functions.values())
        except Exception as error:
            for name, text in functions.items():
                try:
                    self._types_of([text])
                except Exception as cause:
                    raise WrongQuery(error_message(cause), name) from None
            raise WrongQuery(error_message(error), None) from None

    def _types_of(self, items: Iterable[str]) -> list[pa.DataType]:
        """Raises what DataFusion raises."""
        query = planned(written(self._text(items), self._asked.table, self._fed), self._fed)
        query.execution_plan()
        return list(query.schema().types[len(_OWN) :])

    # ---- Checkpoints ----

    def kept(self) -> Iterator[KeptRows]:
        yield from map(KeptRows, self._remembered.parts)
        yield from (KeptRows(part, notes=notes) for part, notes in self._rows.parts())

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows. watermark: `closed` of the moment when they were kept."""
        for one in kept:
            batch = one.rows
            if one.notes is not None:
                self._rows.restore(batch, one.n_gone, one.place_of(batch))
                continue
            is_over = pa.repeat(pa.scalar(False), batch.num_rows)
            if watermark is not None:
                is_over = pc.less(self._rows.times(batch), watermark)
            over, waiting = batch.filter(is_over), batch.filter(pc.invert(is_over))
            if over.num_rows:
                self._remembered.add(over, one.place_of(over))
            if waiting.num_rows:
                self._rows.restore(waiting, 0, one.place_of(waiting))
        self.watermark = self.closed = watermark

    @property
    def size(self) -> int:
        """The bytes of what is kept."""
        return self._storage.memory + self._storage.disk
