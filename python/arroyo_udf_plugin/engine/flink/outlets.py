"""What leaves a stage of one slice, as messages to slices of the stages that follow.

    outlets = Outlets(program, stage, slice=3)
    outlets.take_in(item, place)             what has left an operator, or the source
    outlets.end()
    for posted in outlets.take(): ...        Posted(edge, slice, message)

To windows and joins, each slice gets the rows of its key groups; before that, a slice makes parts of its own rows, if
windows can be made of parts. Nothing stays here: `take` has all that has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from ..execution.exchange import Outgoing, Sent
from ..operators.blocks import Block, PartialRows
from ..operators.grouped import GroupOperator
from ..operators.routes import Place
from ..operators.stages import Dead, Item
from .cut import LETTERS, CutStage, Edge
from .messages import MessageWriter, RowsCodec
from .program import Program


@dataclass(frozen=True)
class Posted:
    """A message for a slice. edge: the number of the edge on which it goes."""

    edge: int
    slice: int
    message: bytes


class Outlet(Protocol):
    """Of one edge."""

    def push(self, block: Block) -> None: ...
    def push_watermark(self, time: int | None) -> None: ...
    def end(self) -> None: ...
    def take(self) -> Iterator[tuple[int, bytes]]:
        """Slices, and messages for them."""


class Outlets:
    """Of a stage in one slice."""

    def __init__(self, program: Program, stage: CutStage, slice: int) -> None:
        self._planned = program.planned
        edges = program.cut.edges_from(stage)
        self._outlets: list[tuple[Edge, Outlet]] = [(edge, _outlet(program, edge, slice)) for edge in edges]
        self._letters = next((outlet for edge, outlet in self._outlets if edge.sink == LETTERS), None)

    def take_in(self, item: Item, place: Place) -> None:
        """Rows as they leave the operator `place`: see `Planned.left`."""
        if isinstance(item, Dead):
            assert self._letters is not None, "a policy has dead letters, and there is no sink for them"
            self._letters.push(_as_block(self._planned.letter(item)))
            return
        for edge, outlet in self._outlets:
            if edge.place != place or edge.sink == LETTERS:
                continue
            if isinstance(item, Block):
                outlet.push(item)
            elif edge.follower is not None:
                outlet.push_watermark(item.time)

    def tell(self, time: int | None) -> None:
        """A watermark, to all operators that follow."""
        for edge, outlet in self._outlets:
            if edge.follower is not None:
                outlet.push_watermark(time)

    def end(self) -> None:
        """The stage is at its end."""
        for _, outlet in self._outlets:
            outlet.end()

    def take(self) -> Iterator[Posted]:
        for edge, outlet in self._outlets:
            for slice, message in outlet.take():
                yield Posted(edge.number, slice, message)


def codec_of(program: Program, edge: Edge) -> RowsCodec:
    """Of the rows that go on an edge."""
    if edge.follower is not None:
        given = program.samples[edge.follower].stages[0].given
        return RowsCodec(given.schema, given.origin)
    return RowsCodec(next(schema for _, _, name, schema in program.planned.outputs() if name == edge.sink))


def parts_codec(operator: GroupOperator) -> RowsCodec:
    """Of parts for its windows."""
    return RowsCodec(operator.stages[1].kept_as.schema)


def _outlet(program: Program, edge: Edge, slice: int) -> Outlet:
    planned, codec, follower = program.planned, codec_of(program, edge), edge.follower
    if follower is None:
        return _ToOwnSlice(codec, lambda block: block, slice)
    is_merged = follower in planned.routes.beside

    def enter(block: Block) -> Block:
        return planned.entered(block, follower, edge.input) if is_merged else block

    operator = program.samples[follower]
    if isinstance(operator, GroupOperator):
        may_idle = any(input.idle_seconds is not None or input.source.watch for input in planned.inputs)
        return _ToAllSlices(operator, codec, enter, slice, program.width, may_idle)
    return _ToOwnSlice(codec, enter, slice)


class _ToOwnSlice:
    def __init__(self, codec: RowsCodec, enter: Callable[[Block], Block], slice: int) -> None:
        self._codec, self._enter, self._slice = codec, enter, slice
        self._writer = MessageWriter(slice)

    def push(self, block: Block) -> None:
        self._writer.rows(self._codec.encode(self._enter(block)))

    def push_watermark(self, time: int | None) -> None:
        self._writer.watermark(time)

    def end(self) -> None:
        self._writer.end()

    def take(self) -> Iterator[tuple[int, bytes]]:
        message = self._writer.take()
        if message is not None:
            yield self._slice, message


class _ToAllSlices:
    """operator: of the kind that follows, which knows what goes where; it has no rows."""

    def __init__(
        self,
        operator: GroupOperator,
        codec: RowsCodec,
        enter: Callable[[Block], Block],
        slice: int,
        width: int,
        may_idle: bool,
    ) -> None:
        self._codec, self._enter = codec, enter
        self._parts = parts_codec(operator)
        self._writers = [MessageWriter(slice) for _ in range(width)]
        self._outgoing = Outgoing(operator, [partial(self._put, writer) for writer in self._writers], may_idle)

    def push(self, block: Block) -> None:
        self._outgoing.push(self._enter(block))

    def push_watermark(self, time: int | None) -> None:
        self._outgoing.before_watermark(time)
        for writer in self._writers:
            writer.watermark(time)

    def end(self) -> None:
        self._outgoing.send_parts()
        for writer in self._writers:
            writer.end()

    def take(self) -> Iterator[tuple[int, bytes]]:
        self._outgoing.send_parts()
        for slice, writer in enumerate(self._writers):
            message = writer.take()
            if message is not None:
                yield slice, message

    def _put(self, writer: MessageWriter, item: Sent) -> None:
        if isinstance(item, PartialRows):
            writer.parts(self._parts.encode(_as_block(item.rows)))
        else:
            writer.rows(self._codec.encode(item))


def _as_block(rows: pa.RecordBatch) -> Block:
    """Rows that come from nowhere."""
    return Block(rows, pa.RecordBatch.from_arrays([], names=[]))
