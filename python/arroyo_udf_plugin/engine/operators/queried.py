"""A query as a stage: the items and the condition of a SELECT."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ...host.answers import STEP_ROWS
from ...host.policy import Policy
from ..datafusion.query import Found, Query, Select
from .blocks import Block, Given
from .keys import RowParts
from .pace import STEP_SECONDS, Pace
from .queued import FailingStage, part_of
from .stages import Item
from .state import StateIdentity, hash_of


@dataclass(frozen=True)
class QueryPlan:
    """A query in its place. name: for people. given: the rows that it is given. key: of the operator, if its results
    need idempotency keys."""

    name: str
    select: Select
    given: Given
    key: bytes | None = None

    @property
    def where(self) -> str:
        return f"query {self.name}"

    @property
    def plugin_hash(self) -> str:
        """Of what it asks."""
        return hash_of(self.select)

    @property
    def identity(self) -> StateIdentity:
        """Rows that wait are asked anew: of the query nothing must stay."""
        return StateIdentity("query", self.name, self.plugin_hash, {})

    def opened(self, policy: Policy) -> QueryStage:
        return QueryStage(self, policy)


class QueryStage(FailingStage):
    """The items and the condition of a SELECT."""

    def __init__(self, plan: QueryPlan, policy: Policy) -> None:
        super().__init__(plan, plan.identity, plan.given, policy)
        self._query, self._key = Query(plan.select, plan.given.schema), plan.key
        self._queue = collections.deque()
        self._pace = Pace(STEP_ROWS)

    def _answer(self, block: Block) -> tuple[int, Iterator[Item]]:
        begun = time.perf_counter()
        items: list[Item] = []
        n_rows, answered, failed = len(block), 0, 0
        parts = None if self._key is None else RowParts(self._key)
        for answer in self._query.run(block.rows):
            if isinstance(answer, Found):
                items.append(part_of(block, answer.rows, answer.of, parts))
                answered += answer.rows.num_rows
            else:
                items += self._failed(block, {answer.position: answer.text})
                failed += 1
                if self._query.is_in_order and time.perf_counter() - begun > STEP_SECONDS:
                    n_rows = answer.position + 1  # each row that fails takes long, and others may fail, too
                    break
        self.counts.rows += n_rows - failed
        self.counts.values += n_rows - failed
        # Only lists that become rows make results that are larger than what they come from.
        size = sum(item.nbytes for item in items if isinstance(item, Block)) if answered > n_rows else 0
        self._pace.observe(n_rows, time.perf_counter() - begun, size)
        return n_rows, iter(items)
