"""The row ids that a runtime has been sent and has not answered: each is answered once, and no other id is.

The open ids are a few runs of neighbours, kept as a sorted list of their edges: [first, end, first, end, ...]. To add
or remove runs is to take the symmetric difference of edges. If ids are removed that are not open, or twice, then the
number of open ids falls by less than the number of answers, and one sum shows it. So the cost depends on the number of
runs, and little on that of rows.
"""

import functools
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .layout import Broken, at

_FEW = 256  # rows; below this Python's own lists are faster than pyarrow's functions
_COUNTED = 1 << 16


class Ledger:
    """Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._edges: list[int] = []
        self._open = 0  # with the rows of sends that have not returned
        self._sending = 0  # rows of sends that have not returned
        self._senders = 0
        self.drains: list[None] = []
        """One item for each drain under way. Appending and popping need no lock."""
        self.sends = 0
        """Sends so far, refused ones too."""

    @property
    def open(self) -> int:
        """Rows that were accepted and not answered."""
        return max(0, self._open - self._sending)

    def begin(self, first: int, n_rows: int) -> tuple[bool, bool, int]:
        """Adds ids before they are sent, because they may be answered before send returns.

        Returns whether the ids are noted, because none is open already; whether there were no rows and no other sends;
        and the number of sends so far, which is higher later if another has come in between.
        """
        with self._lock:
            alone = self._open == self._senders == 0
            edges = self._edges
            if not edges or first > edges[-1]:
                edges += (first, first + n_rows) if n_rows else ()
            elif first == edges[-1]:
                edges[-1] += n_rows
            elif n_rows and not self._toggle([first, first + n_rows], n_rows):
                return False, alone, self.sends
            self._open += n_rows
            self._sending += n_rows
            self._senders += 1
            self.sends += 1
            return True, alone, self.sends

    def end(self, first: int, n_rows: int, accepted: bool) -> None:
        """Says whether the ids that `begin` noted were accepted; otherwise they are removed."""
        with self._lock:
            self._senders -= 1
            self._sending -= n_rows
            if not accepted and n_rows and self._toggle([first, first + n_rows], -n_rows):
                self._open -= n_rows

    def missing(self) -> int:
        """Rows that were accepted and not answered; 0 while another drain may have taken some and not yet said so."""
        with self._lock:
            return self.open if len(self.drains) == 1 else 0

    def answer(self, address: int, n_rows: int, ordered: bool) -> None:
        """Removes answered ids. Raises Broken if one is not open, or if ids of an ordered runtime fall.

        address: of the ids, unsigned numbers of 64 bits, at least one.
        """
        ids = at(address, 8 * n_rows).cast("Q")
        edges, rising = _runs(ids, address)
        with self._lock:
            right = edges is not None and self._toggle(edges, -n_rows)
            if right:
                self._open -= n_rows
        if not right:
            raise Broken(self._explained(ids.tolist()))
        if ordered and not rising:
            raise Broken("answers rows out of their order, and its function is ordered")

    def _toggle(self, edges: list[int], change: int) -> bool:
        """Adds or removes runs, by their edges. False, with nothing done, if the number of ids changes otherwise."""
        own = self._edges
        if change < 0 and len(edges) == 2 and own and edges[0] == own[0] and edges[1] <= own[1]:
            # The usual answer: the oldest rows.
            own[:2] = (edges[1], own[1]) if edges[1] < own[1] else ()
            return True
        begin, end = bisect_left(own, edges[0]) & ~1, bisect_right(own, edges[-1])
        end += end & 1
        before = own[begin:end]
        after = sorted(set(before).symmetric_difference(edges))
        if _count(after) != _count(before) + change:
            return False
        own[begin:end] = after
        return True

    def _explained(self, ids: list[int]) -> str:
        seen = set()
        for one in ids:
            if one in seen:
                return f"answers the row {one} twice"
            seen.add(one)
        with self._lock:
            wrong = next((one for one in ids if not bisect_right(self._edges, one) & 1), ids[0])
        return f"answers the row {wrong}, which was not sent or was answered before"


def _count(edges: list[int]) -> int:
    return sum(edges[1::2]) - sum(edges[::2])


def _runs(ids: memoryview, address: int) -> tuple[list[int] | None, bool]:
    """The edges of the ids' runs, None if an id is there twice; and whether the ids rise."""
    ordered: Sequence[int]
    n_rows, first, last = len(ids), ids[0], ids[-1]
    if last - first == n_rows - 1 and _is_one_run(ids, address):
        return [first, last + 1], True
    if n_rows < _FEW:
        given = ids.tolist()
        ordered = sorted(given)
        rising = ordered == given
        breaks = [i for i in range(n_rows - 1) if ordered[i + 1] - ordered[i] != 1]
    else:
        array = _array(n_rows, address)
        taken = array.take(pc.array_sort_indices(array))
        rising = taken.equals(array)
        ordered = memoryview(taken.buffers()[1]).cast("Q")
        steps = pc.subtract(taken.slice(1), taken.slice(0, n_rows - 1))
        found = pc.indices_nonzero(pc.not_equal(steps, pa.scalar(1, pa.uint64())))
        breaks = memoryview(found.buffers()[1]).cast("Q")[: len(found)].tolist() if len(found) else []
    edges = [ordered[0]]
    for i in breaks:
        if ordered[i] == ordered[i + 1]:
            return None, rising
        edges += (ordered[i] + 1, ordered[i + 1])
    edges.append(ordered[n_rows - 1] + 1)
    return edges, rising


def _is_one_run(ids: memoryview, address: int) -> bool:
    n_rows, first = len(ids), ids[0]
    if n_rows < _FEW:
        return bool(ids.tolist() == list(range(first, first + n_rows)))
    for begin in range(0, n_rows, _COUNTED):
        part = min(n_rows - begin, _COUNTED)
        array = _array(part, address + 8 * begin)
        if not pc.subtract(array, pa.scalar(first + begin, pa.uint64())).equals(_counting().slice(0, part)):
            return False
    return True


@functools.cache
def _counting() -> pa.Array:
    return pa.array(range(_COUNTED), pa.uint64())


def _array(n_rows: int, address: int) -> Any:
    return pa.Array.from_buffers(pa.uint64(), n_rows, [None, pa.foreign_buffer(address, 8 * n_rows)])
