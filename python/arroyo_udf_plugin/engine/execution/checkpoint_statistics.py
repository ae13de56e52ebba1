"""Statistics of an epoch: when its steps, and the parts of each slice, began and ended, and the bytes of its state, of
all that it needs and of what was written.

    spans = SliceSpans()                              in `seal`, when the slice is asked
    with spans.sync(("operator", 0)): ...             in the slice: its snapshot
    job = spans.timed(("operator", 0), "Async", job)  in another thread: what makes it durable

Times are `time.monotonic()` until the end, so that no span ends before it begins, whatever becomes of the clock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Event = Literal[
    "Checkpointing", "CheckpointingOperators", "WritingMetadata", "Committing", "Alignment", "Sync", "Async"
]
Part = tuple[Literal["source", "operator", "sink"], int | str]
"""Of a slice: the number of a source, the place of an operator, the name of a sink."""


@dataclass(frozen=True)
class CheckpointSpan:
    event: Event
    start: float
    end: float

    def later(self, seconds: float) -> CheckpointSpan:
        return CheckpointSpan(self.event, self.start + seconds, self.end + seconds)


class SliceSpans:
    """Of the parts of one slice. Each part is timed by one thread at a time.

    Alignment: from the request to the slice's next pause. Sync: the snapshot, for which the stream waits. Async: until
    it is durable. Committing: until rows of a committed epoch are shown.
    """

    def __init__(self) -> None:
        self.parts: dict[Part, list[CheckpointSpan]] = {}
        self._asked = time.monotonic()
        self._begun: float | None = None

    @contextlib.contextmanager
    def sync(self, part: Part) -> Iterator[None]:
        if self._begun is None:
            self._begun = time.monotonic()
        self.parts.setdefault(part, []).append(CheckpointSpan("Alignment", self._asked, self._begun))
        with self.span(part, "Sync"):
            yield

    @contextlib.contextmanager
    def span(self, part: Part, event: Event) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.parts.setdefault(part, []).append(CheckpointSpan(event, start, time.monotonic()))

    def timed(self, part: Part, event: Event, job: Callable[[], None]) -> Callable[[], None]:
        def do() -> None:
            with self.span(part, event):
                job()

        return do


@dataclass(frozen=True)
class SliceStatistics:
    """spans: of each part. bytes: of the state of each operator. written: of what was new in it."""

    spans: Mapping[Part, Sequence[CheckpointSpan]]
    bytes: Sequence[int]
    written: Sequence[int]


@dataclass(frozen=True)
class CheckpointStatistics:
    """Of an epoch. spans: of the whole, "Checkpointing", and its steps. Times are `time.time()`."""

    epoch: int
    spans: Sequence[CheckpointSpan]
    slices: Sequence[SliceStatistics]

    @property
    def start(self) -> float:
        return self.spans[0].start

    @property
    def end(self) -> float:
        return self.spans[0].end

    @property
    def bytes(self) -> int:
        """Of the state of all operators."""
        return sum(sum(slice_.bytes) for slice_ in self.slices)

    @property
    def written(self) -> int:
        """The bytes of what was new in it."""
        return sum(sum(slice_.written) for slice_ in self.slices)


class CheckpointSteps:
    """Of an epoch, as it goes on: each step begins where the one before has ended."""

    def __init__(self) -> None:
        self._begun = self._ended = time.monotonic()
        self._spans: list[CheckpointSpan] = []

    def did(self, event: Event) -> None:
        start, self._ended = self._ended, time.monotonic()
        self._spans.append(CheckpointSpan(event, start, self._ended))

    def statistics(
        self, epoch: int, slices: Sequence[tuple[SliceSpans, Sequence[int], Sequence[int]]]
    ) -> CheckpointStatistics:
        """slices: of each, its spans, and the bytes of its operators' states, and of what was written of them."""
        now = time.monotonic()
        ago = time.time() - now
        spans = [CheckpointSpan("Checkpointing", self._begun, now), *self._spans]
        return CheckpointStatistics(
            epoch,
            [span.later(ago) for span in spans],
            [
                SliceStatistics(
                    {part: [span.later(ago) for span in own] for part, own in slice_spans.parts.items()},
                    sizes,
                    written,
                )
                for slice_spans, sizes, written in slices
            ],
        )
