"""A slice at one time: what an epoch is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import IO, Protocol

from ..connectors.interface import Json, Sealed, Sink
from ..connectors.unnamed import Data
from ..windows.kept import KeptRows
from .checkpoint_statistics import SliceSpans


@dataclass(frozen=True)
class SourceSnapshot:
    """A source of a slice. positions: of its partitions."""

    positions: Mapping[str, Json]
    watermark: int | None


class OperatorState(Protocol):
    """What an operator is at one time, not yet written: see `OperatorSnapshot`."""

    @property
    def parts(self) -> Sequence[KeptRows]: ...

    def head(self, places: Sequence[tuple[int, int]]) -> Data: ...

    def write_parts(self, file: IO[bytes], parts: Sequence[KeptRows]) -> None: ...


@dataclass(frozen=True)
class Snapshot:
    """A slice at one time.

    positions, watermark: of the first source. others: of further ones.
    operators: name and state of each; None: it works in another slice. sealed: by the sink's name; without rows: none.
    spans: when its parts began and ended.
    """

    positions: Mapping[str, Json]
    watermark: int | None
    operators: Sequence[tuple[str, OperatorState | None]]
    sealed: Mapping[str, Sealed]
    others: Sequence[SourceSnapshot] = ()
    spans: SliceSpans = field(default_factory=SliceSpans)


class WithSinks(Protocol):
    """sinks: of a slice."""

    sinks: Sequence[Sink]


class Sealable(WithSinks, Protocol):
    """A slice, as checkpoints see it."""

    def seal(self, epoch: int) -> Future[Snapshot]:
        """Step 1: asks the slice for its snapshot."""
