"""A slice in one moment: what an epoch is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from ..connectors.interface import Json, Sealed, Sink
from ..connectors.unnamed import Data
from .took import SliceSpans


@dataclass(frozen=True)
class Moment:
    """A source of a slice in one moment. positions: of its partitions."""

    positions: Mapping[str, Json]
    watermark: int | None


@dataclass(frozen=True)
class Snapshot:
    """A slice in one moment.

    positions, watermark: of the first source. others: of further ones.
    operators: name and state of each; None: it works in another slice. sealed: by the sink's name; without rows: none.
    spans: what it took.
    """

    positions: Mapping[str, Json]
    watermark: int | None
    operators: Sequence[tuple[str, Data | None]]
    sealed: Mapping[str, Sealed]
    others: Sequence[Moment] = ()
    spans: SliceSpans = field(default_factory=SliceSpans)


class WithSinks(Protocol):
    """sinks: of a slice."""

    sinks: Sequence[Sink]


class Sealable(WithSinks, Protocol):
    """A slice, as checkpoints see it."""

    def seal(self, epoch: int) -> Future[Snapshot]:
        """Step 1: asks the slice for its moment."""
