"""The latest results of keys whose rows come and go, computed anew over the rows that are there.

    SELECT town, min(age), count(DISTINCT name) FROM people GROUP BY town

It is for aggregates from which nothing can be taken off again (signed_partials.py). Of each key its rows are kept, as
far as aggregates need them, and each change reads all of those again.

Guarantees: as of `updated_keys`; results are those of DataFusion over the rows in the order in which they came. So what
was before a change can be computed again, also behind a checkpoint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import pyarrow as pa

from ..connectors.cells import plain_field
from ..datafusion.query import WrongQuery
from .changing import ChangingKeys
from .grouping import GroupingPlan
from .keyed_rows import one_batch
from .result_changes import ResultChanges, SelectedResults, come_and_gone
from .storage import StorageLimits
from .updating_rows import SIGN, UpdatingRows


class RecountedKeys(ChangingKeys):
    """As `UpdatedKeys`."""

    def __init__(self, asked: UpdatingRows, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of the rows, with their signs. Raises WrongQuery."""
        for name in asked.functions:
            raise WrongQuery(
                f"{name} is of a plugin, and rows that have gone cannot be taken off from what it has counted: write "
                "an aggregate of SQL, or call it for rows that stay",
                next(iter(asked.aggregates)),
            )
        own = pa.schema([plain_field(field) for field in given if field.name != SIGN.name])
        self._plan = GroupingPlan(dataclasses.replace(asked, is_signed=False), own, [], in_rows=True)
        super().__init__(given, self._plan.fed.append(SIGN), self._plan.fed, asked.keys, limits)
        self._results = SelectedResults(asked.selects, self._plan.schema)
        self._changes = ResultChanges(self._results.schema, asked.as_rows)
        self.schema = self._changes.schema

    def _changed(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        come, gone = come_and_gone(rows, self._rows.hashes_of)
        keys = list(dict.fromkeys([*self._rows.keys_of(gone), *self._rows.keys_of(come)]))
        before, old = self._answers(keys)
        self._rows.remove(gone)
        self._rows.add(come)
        after, new = self._answers(keys)
        self._rows.clear_up()
        return self._changes.of(before, after, [(old.get(key), new.get(key)) for key in keys])

    def _answers(self, keys: Sequence[bytes]) -> tuple[pa.RecordBatch, dict[bytes, int]]:
        """The results of these keys, and where each is that has one."""
        rows = self._rows.at(self._rows.places(keys))
        found = self._plan.result.of_one([rows]) if rows.num_rows else []
        answers = one_batch(found, self._plan.schema)
        results, places = self._results.of(answers)
        own = {key: places.get(place) for place, key in enumerate(self._rows.keys_of(answers))}
        return results, {key: place for key, place in own.items() if place is not None}
