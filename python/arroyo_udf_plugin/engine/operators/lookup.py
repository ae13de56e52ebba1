"""A lookup as a stage: rows get columns of a table in a database, found by a key.

Rows stay in their order. A row with several matches becomes several rows; one with none is left out, or stays with
nulls. A row that cannot be looked up follows the policy.

    push(block) ──► a step of the first rows ──► all its keys are cached ──► turn: their matches
                                             └─► a query, in another thread ──► wait_results ──┘

While one step leaves, the next one is asked for already. Rows stay in the queue until their matches leave, so a
snapshot has them, and they are asked for again after a resume.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.answers import STEP_ROWS
from ...host.ordinals import ordinals
from ...host.policy import Policy
from ..connectors.cells import CellType, argument
from ..connectors.lookup_cache import Lookups, Matches, Question
from ..connectors.lookup_queries import KeyedTable
from ..datafusion.query import Found, Query, Select
from .blocks import Block, Given
from .keys import RowParts
from .pace import Pace
from .queued import FailingStage, part_of
from .stages import Item
from .state import StateIdentity, hash_of, plain

_MOST_MATCHES = 8 * STEP_ROWS  # of a step; a single row may have more


@dataclass(frozen=True)
class LookupPlan:
    """A lookup in its place. name: for people. given: the rows that it is given.

    keys: their columns, in the order of the table's. condition: which matches count; None: all. keeps_unmatched: rows
    without a match stay. cache_bytes, cache_seconds: of the cache. hidden: for texts of the database.
    key: of the operator, if its results need idempotency keys.
    """

    name: str
    table: KeyedTable
    keys: tuple[str, ...]
    condition: Select | None
    keeps_unmatched: bool
    cache_bytes: int
    cache_seconds: float
    given: Given
    hidden: Callable[[str], str] = str
    key: bytes | None = None

    @property
    def where(self) -> str:
        return f"lookup {self.name}"

    @property
    def plugin_hash(self) -> str:
        """Of what it asks."""
        return hash_of(self._asked)

    @property
    def identity(self) -> StateIdentity:
        names = ("table", "its keys", "its columns", "keys", "condition", "keeps unmatched")
        return StateIdentity("lookup", self.name, self.plugin_hash, dict(zip(names, plain(self._asked), strict=True)))

    def opened(self, policy: Policy) -> LookupStage:
        return LookupStage(self, policy)

    @property
    def _asked(self) -> tuple[Any, ...]:
        table = self.table
        return table.table, table.keys, table.columns, self.keys, self.condition, self.keeps_unmatched

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """Of the results. Raises InvalidArgument for two columns of a name, WrongQuery for the condition."""
        given, added = self.given.schema, self.table.schema
        for name in added.names:
            if name in given.names:
                raise InvalidArgument(f"there is a column {name!r} already: give the table's another name in `columns`")
        schema = pa.schema([*given, *added], given.metadata)
        if self.condition is not None:
            Query(self.condition, schema)
        return schema


@dataclass(frozen=True)
class _Step:
    """Rows that are asked for. failed: those whose key is wrong, and why. seconds: what it took to ask."""

    question: Question
    failed: dict[int, str]
    seconds: float


class LookupStage(FailingStage):
    def __init__(self, plan: LookupPlan, policy: Policy) -> None:
        super().__init__(plan, plan.identity, plan.given, policy)
        self._plan, self._schema = plan, plan.schema
        self._lookups = Lookups(plan.table, plan.cache_bytes, plan.cache_seconds)
        self._fields = [pa.field(name, type_) for name, type_ in zip(plan.keys, plan.table.key_types, strict=True)]
        self._condition = None if plan.condition is None else Query(plan.condition, self._schema)
        self._queue = collections.deque()
        self._pace = Pace(STEP_ROWS)
        self._step: _Step | None = None  # of the first rows of the queue

    def close(self) -> None:
        self._lookups.close()

    @property
    def is_ready(self) -> bool:
        return super().is_ready and (self._step is None or self._step.question.is_answered)

    @property
    def wants_input(self) -> bool:
        return self.held_rows < 2 * STEP_ROWS  # one step is asked for, while another one leaves

    @property
    def is_waiting(self) -> bool:
        return self._step is not None and self._step.question.query is not None

    async def wait_results(self) -> None:
        assert self._step is not None, "nothing is asked for"
        if self._step.question.query is not None:
            await asyncio.wrap_future(self._step.question.query)

    def _rows_of_step(self, block: Block) -> int:
        """So few that a database is asked for the next ones while these leave."""
        return min(super()._rows_of_step(block), STEP_ROWS)

    def _has_answer(self, step: Block) -> bool:
        if self._step is None:
            begun = time.perf_counter()
            failed: dict[int, str] = {}
            keys = [self._key(step, field, failed) for field in self._fields]
            self._step = _Step(self._lookups.ask(keys), failed, time.perf_counter() - begun)
        return self._step.question.is_answered

    def _answer(self, block: Block) -> tuple[int, Iterator[Item]]:
        """The first rows, up to `_MOST_MATCHES`. The pace makes the next step smaller, so few are looked up again. It
        does not count the time of a query: a database that takes long for a few keys takes hardly longer for many."""
        assert self._step is not None, "the block was not asked for"
        begun = time.perf_counter() - self._step.seconds
        failed = self._step.failed
        matches = self._lookups.answer(self._step.question, _MOST_MATCHES)
        self._step = None
        if matches.answered < len(block):
            block = block.slice(0, matches.answered)
            failed = {row: text for row, text in failed.items() if row < len(block)}
        failed |= {row: self._plan.hidden(text) for row, text in matches.failed.items()}
        rows, of = self._joined(block, matches, failed)
        items = [*self._failed(block, failed)]
        parts = None if self._plan.key is None else RowParts(self._plan.key)
        for start in range(0, len(of), STEP_ROWS):
            items.append(part_of(block, rows.slice(start, STEP_ROWS), of.slice(start, STEP_ROWS), parts))
        self.counts.rows += len(block) - len(failed)
        self.counts.values += len(block) - len(failed)
        self._pace.observe(len(block), time.perf_counter() - begun, rows.nbytes if len(of) > len(block) else 0)
        return len(block), iter(items)

    def _key(self, block: Block, field: pa.Field, failed: dict[int, str]) -> pa.Array:
        """A column as it is sent. A value that the table's column cannot have equals none; a text that is no such value
        is an error."""
        column = block.rows.column(field.name)
        if pa.types.is_boolean(column.type):  # SQLite has numbers
            column = column.cast(field.type)
        converted = argument(column, field)
        if isinstance(column.type, CellType):
            failed |= {row: f"column {field.name!r}: {text}" for row, text in converted.refused.items()}
        return converted.array

    def _joined(self, block: Block, matches: Matches, failed: dict[int, str]) -> tuple[pa.RecordBatch, pa.Array]:
        """The rows of the result, and the place of the row in the block that each comes from."""
        of, at = matches.of, matches.at
        if self._condition is not None:
            of, at = self._chosen(block, matches, failed)
        if self._plan.keeps_unmatched:
            of, at = _with_unmatched(of, at, len(block))
        if failed:
            right = pc.invert(pc.is_in(of, value_set=pa.array(list(failed), pa.int64())))
            of, at = of.filter(right), at.filter(right)
        return self._rows(block, of, matches, at), of

    def _rows(self, block: Block, of: pa.Array, matches: Matches, at: pa.Array) -> pa.RecordBatch:
        whole = len(of) == len(block) and pc.all(pc.equal(of, ordinals(len(of), type_="int64"))).as_py()
        rows = block.rows if whole else block.rows.take(of)
        return pa.RecordBatch.from_arrays([*rows.columns, *matches.rows(at).columns], schema=self._schema)

    def _chosen(self, block: Block, matches: Matches, failed: dict[int, str]) -> tuple[pa.Array, pa.Array]:
        """The matches for which the condition is true."""
        assert self._condition is not None
        kept = []
        for start in range(0, len(matches.of), STEP_ROWS):
            of, at = (indices.slice(start, STEP_ROWS) for indices in (matches.of, matches.at))
            for answer in self._condition.run(self._rows(block, of, matches, at)):
                if isinstance(answer, Found):
                    places = ordinals(len(of), type_="int64") if answer.of is None else answer.of.cast(pa.int64())
                    kept.append(pc.add(places, start))
                else:
                    failed.setdefault(of[answer.position].as_py(), answer.text)
        places = pa.concat_arrays(kept) if kept else pa.nulls(0, pa.int64())
        return matches.of.take(places), matches.at.take(places)


def _with_unmatched(of: pa.Array, at: pa.Array, length: int) -> tuple[pa.Array, pa.Array]:
    """With the rows that have no match, each in its place: a null for theirs."""
    rows = ordinals(length, type_="int64")
    missing = rows.filter(pc.invert(pc.is_in(rows, value_set=of)))
    if not len(missing):
        return of, at
    of, at = pa.concat_arrays([of, missing]), pa.concat_arrays([at, pa.nulls(len(missing), pa.int64())])
    order = pc.array_sort_indices(of)
    return of.take(order), at.take(order)
