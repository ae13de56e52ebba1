"""A source whose partitions are named without the values of variables: their names are stored in checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..connectors.interface import Announcing, Json, Partition, Source
from .variables import Secrets


class HidingSource:
    """As the source that it wraps."""

    def __init__(self, source: Source, secrets: Secrets) -> None:
        self._source = source
        self._secrets = secrets
        self.name = secrets.hidden(source.name)
        self.schema = source.schema
        self.resumable = source.resumable
        self.side_by_side = source.side_by_side
        self.watch = source.watch
        self.rows = source.rows

    def partitions(self) -> Sequence[str]:
        return [self._secrets.hidden(name) for name in self._source.partitions()]

    def check(self, positions: Mapping[str, Json]) -> None:
        self._source.check({self._secrets.shown(name): position for name, position in positions.items()})

    def open(self, partition: str, position: Json | None) -> Partition:
        return self._source.open(self._secrets.shown(partition), position)

    def announce(self, positions: Mapping[str, Json]) -> None:
        if isinstance(self._source, Announcing):
            self._source.announce({self._secrets.shown(name): position for name, position in positions.items()})

    def close(self) -> None:
        self._source.close()
