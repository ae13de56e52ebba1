"""The operators of one stage, and how rows get through them.

    chain = StageChain(planned, stage, operators, outlets)
    chain.hand_on(item, place)        what has left the source, or an operator, to those that follow
    while chain.turn(): ...           moves what can be moved; afterwards outlets have it
    chain.finish(); chain.is_finished

Guarantees: rows move from the first operator to the last one, and no watermark overtakes them. Without `waiting`
operators, nothing is left inside after the turns but open windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..operators.blocks import Block
from ..operators.operator import Operator
from ..operators.routes import Place
from ..operators.stages import Item
from ..operators.watermarks import Watermark
from ..pipeline.plan import Planned
from .cut import CutStage


class LeavingRows(Protocol):
    """Outlets."""

    def take_in(self, item: Item, place: Place) -> None: ...


class StageChain:
    """operators: those of the stage, by place, not started."""

    def __init__(
        self, planned: Planned, stage: CutStage, operators: Mapping[int, Operator], outlets: LeavingRows
    ) -> None:
        self.operators = operators
        self._planned, self._outlets = planned, outlets
        heads = {stage.head} if stage.operators and stage.kind != "reading" else set()
        self._behind = set(operators) - heads  # those that get rows within the stage

    def hand_on(self, item: Item, place: Place) -> None:
        """To the operators that follow, in this stage and behind it, and to sinks."""
        if isinstance(item, Block):
            item = self._planned.left(item, place)
        for follower in self._planned.routes.after(place):
            if follower not in self._behind:
                continue
            if isinstance(item, Block):
                self.operators[follower].push(item)
            elif isinstance(item, Watermark):
                self.operators[follower].push_watermark(item.time)
        self._outlets.take_in(item, place)

    def turn(self, behind: Place = None) -> bool:
        """Moves what can be moved. Whether more can be at once. behind: leaves out the operator at this place."""
        is_ready = False
        for place, operator in self.operators.items():
            if place == behind:
                continue
            for item in operator.take():
                self.hand_on(item, place)
            is_ready = is_ready or operator.is_ready
        return is_ready

    def finish(self) -> None:
        """Nothing more comes to the first operators. Called between turns, until all of them are finished."""
        for place, operator in self.operators.items():
            inputs = self._planned.routes.inputs(place)
            before = [self.operators[at] for at in inputs if at is not None and at in self.operators]
            if not operator.is_finished and all(other.is_finished for other in before):
                operator.finish()

    @property
    def is_finished(self) -> bool:
        return all(operator.is_finished for operator in self.operators.values())

    def close(self) -> None:
        for operator in self.operators.values():
            operator.close()
