"""The sources of a pipeline, open, and how their rows begin."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..connectors.bad_records import BadRecords, decide
from ..connectors.interface import Source
from ..connectors.source import Rows
from ..operators.blocks import Block, Columns
from ..operators.event_time import EventClock
from ..operators.failures import Failures
from ..operators.stages import Dead
from . import description
from .lines import Key
from .variables import Secrets


@dataclasses.dataclass(frozen=True)
class SourceKey:
    """A source of a description. key, time_key: where it and its event time are. name: of a further source."""

    key: Key
    time_key: Key
    name: str | None
    model: Any
    event_time: description.EventTime | None


def sources_of(pipeline: description.Pipeline) -> Sequence[SourceKey]:
    """All sources, the first one first."""
    first = SourceKey(("source",), ("event_time",), None, pipeline.source, pipeline.event_time)
    others = [
        SourceKey(("sources", name, "source"), ("sources", name, "event_time"), name, source.source, source.event_time)
        for name, source in pipeline.sources.items()
    ]
    return [first, *others]


@dataclasses.dataclass(frozen=True)
class OpenInput:
    """A source. columns: its own. declaration: what the description says of it. failures: of rows that could not be
    read."""

    source: Source
    columns: Columns
    declaration: SourceKey
    secrets: Secrets
    failures: Failures

    @property
    def idle_seconds(self) -> float | None:
        return None if self.declaration.event_time is None else self.declaration.event_time.idle

    def event_time(self) -> EventClock | None:
        """The watermarks of one slice."""
        return None if self.declaration.event_time is None else watermarks_of(self.columns, self.declaration.event_time)

    def admit(self, rows: Rows) -> list[Block | Dead]:
        """The source's rows as blocks. Rows that could not be read follow the source's policy.

        Raises InvalidArgument.
        """
        block = self.columns.block(self._hidden(rows))
        policy: BadRecords = getattr(self.declaration.model, "bad_records", "fail")
        decided = decide(block.origin, policy) if block.unread() else None
        if decided is None:
            return [block]
        self.failures.add(decided.failures)
        admitted: list[Block | Dead] = []
        if len(decided.dead_at):
            admitted.append(Dead(block.take(decided.dead_at), decided.dead))
        kept = block.filter(decided.kept)
        return [*admitted, kept] if len(kept) else admitted

    def _hidden(self, rows: Rows) -> Rows:
        """The file's name without the values of variables, also in the columns that have it."""
        file, batch = self.secrets.hidden(rows.file), rows.batch
        if file == rows.file:
            return rows
        for name, key in getattr(self.declaration.model, "metadata", {}).items():
            if key == "filename":
                place = batch.schema.get_field_index(name)
                names = pa.repeat(pa.scalar(file, pa.string()), batch.num_rows)
                batch = batch.set_column(place, batch.schema.field(place), names)
        return dataclasses.replace(rows, file=file, batch=batch)

    def fingerprint(self, described: Mapping[str, Any]) -> Mapping[str, Any]:
        """described: the source's model."""
        return {
            "source": described,
            "columns": {field.name: str(field.type) for field in self.source.schema},
            "event time": self.declaration.event_time and self.declaration.event_time.column,
        }


def watermarks_of(columns: Columns, event_time: description.EventTime) -> EventClock:
    """Raises InvalidArgument."""
    return EventClock(
        columns.schema, event_time.column, round(event_time.lateness * 1e9), event_time.computed, event_time.watermark
    )
