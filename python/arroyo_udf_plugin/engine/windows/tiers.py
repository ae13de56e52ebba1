"""Parts of several panes put together, so that a wide window that hops by a small step does not merge all its panes.

    level 2   |0                                              64|          of 8 * 8 steps
    level 1   |0    |8    |16   |24   | ...                             of 8 steps
    panes     |||||||||||||||||||||||| ...                                of one step

    tiers = Tiers(window, merged, storage, parts)
    tiers.of(panes, ends)                the parts of the windows with these ends
    tiers.changed(pane)                  it has other parts now
    tiers.forget(pane)                   no window needs the panes before this one

What is missing is put together when a window asks for it, with one query for each level. If that would not make less of
the parts, because each step has keys of its own, they stay as they are: so tiers never need more than panes do.

Guarantees: a window gets the parts of its panes, put together or not. Tiers are not state: they are made again.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from .grouping import Aggregation
from .pane_rows import by_pane, together, with_panes, without_panes
from .spans import WindowSteps
from .storage import Some, Storage

_FACTOR = 8  # steps of one level in one of the next

Node = tuple[int, int]
"""A level, and its first step."""


class Tiers:
    """merged: puts parts together. parts: of a pane; none, if there is no such pane."""

    def __init__(
        self,
        window: WindowSteps,
        merged: Aggregation,
        storage: Storage,
        parts: Callable[[int], list[pa.RecordBatch]],
    ) -> None:
        self._window, self._merged, self._storage, self._parts = window, merged, storage, parts
        self._nodes: dict[Node, Some | None] = {}  # without rows: not there. None: putting together would not help
        self._levels = 0

    def of(self, panes: Sequence[int], ends: Sequence[int]) -> list[list[pa.RecordBatch]]:
        """panes: all that there are, sorted."""
        untils = [self._window.step(end) for end in ends]
        covers = [list(_cover(until - self._window.count, until)) for until in untils]
        self._make(panes, {node for cover in covers for node in cover})
        return [[batch for node in cover for batch in self._batches(node)] for cover in covers]

    def changed(self, pane: int) -> None:
        if self._nodes:
            step = self._window.step(pane)
            for level in range(1, self._levels + 1):
                self._drop((level, step - step % _FACTOR**level))

    def forget(self, pane: int) -> None:
        if self._nodes:
            step = self._window.step(pane)
            for node in [node for node in self._nodes if node[1] < step]:
                self._drop(node)

    def _drop(self, node: Node) -> None:
        some = self._nodes.pop(node, None)
        if some is not None:
            some.clear()

    def _make(self, panes: Sequence[int], wanted: set[Node]) -> None:
        """What is missing of these, from the lowest level on."""
        levels: list[set[int]] = [set() for _ in range(1 + max(level for level, _ in wanted))]
        for level, first in wanted:
            levels[level].add(first)
        for level in range(len(levels) - 1, 0, -1):
            levels[level] = {
                first
                for first in levels[level]
                if (level, first) not in self._nodes and self._has_any(panes, (level, first))
            }
            levels[level - 1].update(child for first in levels[level] for _, child in _children((level, first)))
        for level, missing in enumerate(levels[1:], 1):
            self._put_together({(level, first) for first in missing})
        self._levels = max(self._levels, len(levels) - 1)

    def _has_any(self, panes: Sequence[int], node: Node) -> bool:
        level, first = node
        start, end = self._window.begin(first), self._window.begin(first + _FACTOR**level)
        place = bisect.bisect_left(panes, start)
        return place < len(panes) and panes[place] < end

    def _put_together(self, missing: set[Node]) -> None:
        """Of one level."""
        given = {node: [batch for child in _children(node) for batch in self._batches(child)] for node in missing}
        self._nodes |= dict.fromkeys(missing, None)
        several = {number: (node, batches) for number, (node, batches) in enumerate(given.items()) if len(batches) > 1}
        if not several:
            return
        asked = [with_panes(batch, number) for number, (_, batches) in several.items() for batch in together(batches)]
        made: dict[int, list[pa.RecordBatch]] = {}
        for answer in self._merged.of_several(asked):
            for number, parts in by_pane(*without_panes(answer)):
                made.setdefault(number, []).append(parts)
        for number, (node, batches) in several.items():
            if 2 * _rows(made[number]) <= _rows(batches):
                some = self._nodes[node] = Some(self._storage)
                some.replace(made[number])

    def _batches(self, node: Node) -> list[pa.RecordBatch]:
        if node[0] == 0:
            return self._parts(self._window.begin(node[1]))
        some = self._nodes.get(node)
        if some is not None:
            return some.batches
        return [batch for child in _children(node) for batch in self._batches(child)] if node in self._nodes else []


def _rows(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def _children(node: Node) -> Iterator[Node]:
    level, first = node
    width = _FACTOR ** (level - 1)
    return ((level - 1, first + place * width) for place in range(_FACTOR))


def _cover(first: int, until: int) -> Iterator[Node]:
    """The largest ones that these steps consist of, in their order."""
    while first < until:
        level = 0
        while first % _FACTOR ** (level + 1) == 0 and first + _FACTOR ** (level + 1) <= until:
            level += 1
        yield level, first
        first += _FACTOR**level
