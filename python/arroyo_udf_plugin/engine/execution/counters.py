"""What a slice counts, node by node: a node is a source, an operator or a sink.

Slices count in plain attributes, without locks; the coordinator reads them, at any time. So the numbers of one moment
may be some rows apart. They never fall.
"""

from __future__ import annotations

import time

from ..operators.blocks import Block, Sizes


class Blocked:
    """For how long a node has had rows that those behind it did not take yet."""

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = 0.0, None  # until the last change; since when it is blocked

    def note(self, is_blocked: bool) -> None:
        """What is so from now on."""
        seconds, since = self._state
        if is_blocked and since is None:
            self._state = seconds, time.monotonic()
        elif since is not None and not is_blocked:
            self._state = seconds + time.monotonic() - since, None

    @property
    def seconds(self) -> float:
        seconds, since = self._state
        return seconds if since is None else seconds + time.monotonic() - since


class NodeCounter:
    """Of one node in one slice: rows, and the bytes of their Arrow columns, that have come and left.

    watermark: the latest that has left it.
    """

    def __init__(self) -> None:
        self.rows_in = 0
        self.bytes_in = 0
        self.rows_out = 0
        self.bytes_out = 0
        self.watermark: int | None = None
        self.blocked = Blocked()
        self._sizes = Sizes()

    def leave(self, block: Block) -> int:
        """A block leaves it. Returns its bytes."""
        size = self._sizes.of(block)
        self.rows_out += len(block)
        self.bytes_out += size
        return size

    def come(self, rows: int, size: int) -> None:
        """A block comes."""
        self.rows_in += rows
        self.bytes_in += size


class SliceNumbers:
    """Of one slice.

    rows_in: read from all sources. rows_out: that went to sinks. dropped, dead_letters: rows that could not be read.
    held_at_epoch: rows in the operators at the latest epoch.
    """

    def __init__(self, sources: int, operators: int, sinks: int) -> None:
        self.rows_in = 0
        self.rows_out = 0
        self.dropped = 0
        self.dead_letters = 0
        self.held_at_epoch = 0
        self.sources, self.operators, self.sinks = (
            [NodeCounter() for _ in range(count)] for count in (sources, operators, sinks)
        )

    @property
    def watermark(self) -> int | None:
        """The lowest of its sources."""
        return min((time for source in self.sources if (time := source.watermark) is not None), default=None)
