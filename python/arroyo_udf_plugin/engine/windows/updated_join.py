"""Rows of two inputs joined on equal keys, for ever: a row meets those of the other side that come later, too.

    FROM orders o LEFT JOIN people p ON o.person = p.id

    left row comes     ──►  its pairs with the right rows of its key; if there are none, the row alone
    right row comes    ──►  its pairs with the left rows of its key; left rows that were alone until now, go
    right row goes     ──►  these pairs go; left rows that are alone from now on, come

Rows come in one stream, as of `collecting.Inputs`. The rows of both sides are kept. Those of a side with `SIGN` stay
until they go; those of another one are forgotten after `ttl`, without a change of results. But as long as the other
side keeps rows that meet nobody, and has rows of their key, they are kept: what these have met must be known.

Guarantees: results go exactly as they had come. Those of an inner join of sides without `SIGN` only come, and have
none.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.cells import plain_field
from ..datafusion.query import WrongQuery
from ..datafusion.tokens import quoted
from .changing import Changing
from .collecting import Inputs
from .join_query import Asked, Joining, JoinQuery
from .kept import KeptRows
from .keyed_rows import KeyedRows, one_batch
from .result_changes import come_and_gone, signed
from .row_hashes import RowHashes
from .storage import Storage, StorageLimits
from .updating_rows import SIGN, JoiningRows

_AT = pa.field("__at", pa.timestamp("ns"))
SIDES = ("left", "right")


class UpdatedJoin(Changing):
    """As `UpdatedKeys`."""

    def __init__(
        self,
        asked: JoiningRows,
        given: pa.Schema,
        limits: StorageLimits = StorageLimits(),  # noqa: B008 (frozen)
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """given: of `Inputs`. Raises WrongQuery."""
        super().__init__(given, pa.schema([plain_field(field) for field in given]), limits)
        self._inputs = Inputs.of(given, SIDES)
        self._asked, self._clock, self._latest = asked, clock, 0
        schemas = list(self._inputs.tables.values())
        self._sides = [
            _Side(self._storage, schema, [pair[number] for pair in asked.keys], asked.ttl)
            for number, schema in enumerate(schemas)
        ]
        for pair in asked.keys:
            types = [schema.field(name).type for schema, name in zip(schemas, pair, strict=True)]
            if types[0] != types[1]:
                raise WrongQuery(f"{pair[0]} is {types[0]}, and {pair[1]} is {types[1]}: cast one of them", "on")
        left, right = map(quoted, asked.tables)
        equal = " AND ".join(f"{left}.{quoted(one)} = {right}.{quoted(other)}" for one, other in asked.keys)
        sign = " * ".join(f"coalesce({table}.{quoted(SIGN.name)}, 1)" for table in (left, right))
        joining = Joining(SIGN.name, asked.kind, asked.on, asked.select, asked.tables)
        signed_schemas = [side.fed for side in self._sides]
        self._query = JoinQuery(joining, signed_schemas, equal, f"arrow_cast({sign}, 'Int8')")
        self._changes = any(asked.keeps) or any(side.is_signed for side in self._sides)
        self.schema = self._query.schema if self._changes else self._query.schema.remove(len(asked.select))
        self._hashes = RowHashes(field for field in self._query.schema if field.name != SIGN.name)
        self._kept_inputs = Inputs(dict(zip(SIDES, (side.schema for side in self._sides), strict=True)))
        self.kept_schema = self._kept_inputs.schema
        self._queries: dict[tuple[str, str | None], Asked] = {}

    # ---- Changes ----

    def _changed(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._latest = now = max(self._latest, self._clock())
        self._forget(now)
        results: list[pa.Table] = []
        for number, own in self._inputs.apart(rows):
            results += self._met(number, own, now)
        for side in self._sides:
            side.clear_up()
        if not results:
            return
        whole = one_batch([batch for table in results for batch in table.to_batches()], self._query.schema)
        come, gone = come_and_gone(whole, self._hashes.of)
        found = [signed(gone, -1), signed(come, 1)] if self._changes else [come]
        yield from (batch for batch in found if batch.num_rows)

    def _met(self, number: int, rows: pa.RecordBatch, now: int) -> Iterator[pa.Table]:
        """What rows of a side change, and keeps them."""
        side, other = self._sides[number], self._sides[1 - number]
        come, gone = side.come_and_gone(rows)
        delta = one_batch([signed(gone, -1), signed(come, 1)], side.fed)
        keys = dict.fromkeys(side.keys_of(delta))
        others = other.of(keys)
        kind = SIDES[number] if self._asked.keeps[number] else "inner"
        if delta.num_rows and (others.num_rows or kind != "inner"):
            yield self._joined(kind, None, number, delta, others)
        were_there = {key for key in keys if side.has(key)}
        side.remove(gone)
        side.add(come, now)
        if not self._asked.keeps[1 - number]:
            return
        are_there = {key for key in keys if side.has(key)}
        for changed, sign in ((are_there - were_there, -1), (were_there - are_there, 1)):
            alone = other.of(changed, sign)
            if alone.num_rows:
                yield self._joined(SIDES[1 - number], "false", number, None, alone)

    def _joined(
        self, kind: str, on: str | None, number: int, own: pa.RecordBatch | None, others: pa.RecordBatch
    ) -> pa.Table:
        """on: instead of the condition. number: the side that `own` is of."""
        if (kind, on) not in self._queries:
            self._queries[kind, on] = self._query.asked(kind, on)  # type: ignore[arg-type]
        sides = [[] if own is None else [own], [others]]
        return self._queries[kind, on](sides[::-1] if number else sides)

    def _forget(self, now: int) -> None:
        """The rows that nobody needs to know any more."""
        expired = [side.expired(now) for side in self._sides]
        for number, places in enumerate(expired):
            side, other = self._sides[number], self._sides[1 - number]
            if not places:
                continue
            keeps, old = self._asked.keeps[1 - number], expired[1 - number]
            rows = side.rows.at(places)
            for place, key in zip(places, side.keys_of(rows), strict=True):
                if keeps and any(known not in old for known in other.rows.places_of(key)):
                    side.postpone(place, now)
                else:
                    side.rows.drop(key, place)

    # ---- Checkpoints ----

    def _kept(self) -> Iterator[KeptRows]:
        for number, side in enumerate(self._sides):
            form = partial(self._kept_inputs.together, input=number)
            yield from (KeptRows(one.part, form, one.notes) for one in side.rows.kept())

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        for one in kept:
            numbers = one.rows.column(0)
            for number, rows in self._kept_inputs.apart(one.rows):
                own = one if rows.num_rows == one.num_rows else one.chosen(pc.equal(numbers, number))
                self._sides[number].restore(rows, own)


class _Side:
    """One side's rows. given: their schema. fed: of what a query takes, with `SIGN`. schema: of what is kept."""

    def __init__(self, storage: Storage, given: pa.Schema, keys: Sequence[str], ttl: int) -> None:
        """Raises WrongQuery."""
        for name in keys:
            if name not in given.names:
                raise WrongQuery(f"there is no column {name}", "on")
        self.is_signed = SIGN.name in given.names
        bare = given.remove(given.get_field_index(SIGN.name)) if self.is_signed else given
        self._keys, self._bare = keys, bare
        self.fed = bare.append(SIGN)
        self.schema = bare if self.is_signed else bare.append(_AT)
        self.rows = KeyedRows(storage, self.schema, keys, bare.names if self.is_signed else keys)
        self._ttl = None if self.is_signed else ttl
        self._runs: collections.deque[tuple[int, int, int]] = (
            collections.deque()
        )  # rows of one time, the earliest first

    def come_and_gone(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """rows: in the schema `given`."""
        return come_and_gone(rows, self.rows.hashes_of) if self.is_signed else (rows, rows.slice(0, 0))

    def keys_of(self, rows: pa.RecordBatch) -> list[bytes]:
        return self.rows.keys_of(rows)

    def has(self, key: bytes) -> bool:
        return bool(self.rows.places_of(key))

    def of(self, keys: Iterable[bytes], sign: int = 1) -> pa.RecordBatch:
        """The rows of these keys, as a query takes them."""
        return signed(self.rows.at(self.rows.places(keys)).select(self._bare.names), sign)

    def remove(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self.rows.remove(self._that_meet(rows))

    def add(self, rows: pa.RecordBatch, now: int) -> None:
        rows = self._that_meet(rows)
        if not rows.num_rows:
            return
        if self._ttl is not None:
            at = pa.repeat(pa.scalar(now, _AT.type), rows.num_rows)
            rows = pa.RecordBatch.from_arrays([*rows.columns, at], schema=self.schema)
        first = self.rows.add(rows)
        self._runs.append((now, first, first + rows.num_rows))

    def _that_meet(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """A null is equal to nothing."""
        valid = pa.repeat(pa.scalar(True), rows.num_rows)
        for name in self._keys:
            valid = pc.and_(valid, rows.column(name).is_valid())
        return rows.filter(valid)

    # ---- Time ----

    def expired(self, now: int) -> list[int]:
        """Where rows are that came too long ago, rising."""
        places: set[int] = set()
        while self._ttl is not None and self._runs and self._runs[0][0] + self._ttl <= now:
            _, first, end = self._runs.popleft()
            places.update(place for place in range(first, end) if self.rows.is_there(place))
        return sorted(places)

    def postpone(self, place: int, now: int) -> None:
        """It is looked at again after another `ttl`."""
        self._runs.append((now, place, place + 1))

    def clear_up(self) -> None:
        if self.rows.clear_up():
            self._find_runs()

    def _find_runs(self) -> None:
        runs = []
        for first, batch in self.rows.batches() if self._ttl is not None else ():
            times = pc.run_end_encode(batch.column(_AT.name).cast(pa.int64()))
            start = 0
            for end, at in zip(times.run_ends.to_pylist(), times.values.to_pylist(), strict=True):
                runs.append((at, first + start, first + end))
                start = end
        self._runs = collections.deque(sorted(runs))

    def restore(self, rows: pa.RecordBatch, one: KeptRows) -> None:
        """As of `KeyedRows`."""
        self.rows.restore(one, rows)
        self._find_runs()
