"""A keyed stage of one slice: windows, joins and unions, and what follows them without a hop.

    messages of all slices ──► rows, lowest watermark ──► operators ──► messages

Guarantees: its state, taken between two messages, and the messages after it give the same rows as if nothing had
happened. A slice that has ended, or told a watermark, does not tell it again after a restart: the state knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..execution.snapshot import OperatorState
from ..operators.blocks import PartialRows
from ..operators.grouped import GroupOperator
from ..operators.state_parts import StoredState
from ..operators.watermarks import Lowest, Watermark
from .cut import CutStage
from .messages import items, sender_of, time_of
from .moving import StageChain
from .outlets import Outlets, Posted, codec_of, parts_codec
from .program import Program


class KeyedStage:
    """Of one slice. about, state: what `about` and `snapshot` gave; None: it begins."""

    def __init__(
        self,
        program: Program,
        stage: CutStage,
        slice: int,
        about: Mapping[str, Any] | None = None,
        state: StoredState | None = None,
    ) -> None:
        edges = program.cut.edges_to(stage)
        self._edges = [edge.number for edge in edges]
        self._codecs = {edge.number: codec_of(program, edge) for edge in edges}
        operators = program.operators(stage)
        self._head = operators[stage.head]
        self._windows = self._head if isinstance(self._head, GroupOperator) else None
        self._senders = program.width if self._windows is not None else 1
        self._inputs = len(self._edges) * self._senders
        self._lowest = Lowest(self._inputs)
        self._times: dict[int, int | None] = {}
        self._ended: set[int] = set()
        self._outlets = Outlets(program, stage, slice)
        self._chain = StageChain(program.planned, stage, operators, self._outlets)
        self._is_over = False
        if self._windows is not None:
            self._parts = parts_codec(self._windows)
            self._windows.share(slice, program.width, inputs=1)
        if state is not None:
            self._head.restore([state])
        for operator in operators.values():
            operator.start()
        if about is not None:
            self._restore(about)

    def _restore(self, about: Mapping[str, Any]) -> None:
        for input, time in about["times"]:
            self._tell(input, time)
        self._ended = set(about["ended"])
        for input in sorted(self._ended):
            self._push_watermark(self._lowest.end(input))
        self._is_over = about["over"]

    def take(self, edge: int, message: bytes) -> Iterator[Posted]:
        """A message that has come on an edge. Returns what follows from it."""
        sender = sender_of(message) if self._windows is not None else 0
        input = self._edges.index(edge) * self._senders + sender
        for kind, payload in items(message):
            if kind == "rows":
                self._head.push(self._codecs[edge].decode(payload))
            elif kind == "parts":
                assert self._windows is not None
                self._windows.push_parts(PartialRows(self._parts.decode(payload).rows))
            elif kind == "end":
                self._ended.add(input)
                self._push_watermark(self._lowest.end(input))
            else:
                self._tell(input, time_of(payload) if kind == "watermark" else None)
            yield from self._move()
        if len(self._ended) == self._inputs and not self._is_over:
            yield from self._finish()

    def _tell(self, input: int, time: int | None) -> None:
        self._times[input] = time
        self._push_watermark(self._lowest.after(input, time))

    def _push_watermark(self, lowest: Watermark | None) -> None:
        if lowest is not None:
            self._head.push_watermark(lowest.time)

    def _move(self) -> Iterator[Posted]:
        """Results of windows leave in steps."""
        while self._chain.turn():
            yield from self._outlets.take()
        yield from self._outlets.take()

    def _finish(self) -> Iterator[Posted]:
        while not self._chain.is_finished:
            self._chain.finish()
            yield from self._move()
        self._outlets.end()
        yield from self._outlets.take()
        self._is_over = True

    # ---- Its state ----

    def about(self) -> dict[str, Any]:
        """What it has been told, as JSON."""
        return {"times": list(self._times.items()), "ended": sorted(self._ended), "over": self._is_over}

    def snapshot(self) -> OperatorState | None:
        """Of its windows; None: it has none."""
        return None if self._windows is None else self._windows.snapshot()

    def close(self) -> None:
        self._chain.close()
