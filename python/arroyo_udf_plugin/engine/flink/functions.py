"""The stages of a pipeline as functions of Flink.

A function opens the pipeline in the process where Flink runs it, and keeps the stages of those slices whose keys it is
given. In front of it, in Flink's JVM, MarksSlices sends a mark for each of these keys before a checkpoint begins: then
the function writes the state of that slice. PyFlink itself tells its functions nothing of checkpoints.

Assumes: PyFlink 2.3. A process runs one job.
"""

from __future__ import annotations

import asyncio
import pickle
import traceback
from collections.abc import Iterable, Iterator

from pyflink.common import Row, Types
from pyflink.common.typeinfo import TypeInformation
from pyflink.datastream import (
    AsyncFunction,
    FilterFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    RuntimeContext,
)
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

from ...errors import ArroyoUdfError, InternalError
from .keyed_stage import KeyedStage
from .keys import keys_of_slices
from .outlets import Posted
from .program import JobArguments, Program, opened
from .reading_stage import ReadingStage
from .slice_state import FlinkState
from .ticks import Ticks
from .waiting_stage import WaitingStage

MARK, TICK, FAILED = -1, -2, -3
"""Instead of the number of an edge."""
PADDING = bytes(1 << 15)
"""A tick is as large as a buffer of Flink's network, so that few of them wait in front of a barrier."""

_programs: dict[str, Program] = {}


def program_of(text: str) -> Program:
    """The program of a job, opened once in a process."""
    if text not in _programs:
        _programs[text] = opened(JobArguments.model_validate_json(text))
    return _programs[text]


def bytes_type() -> TypeInformation:
    return Types.PRIMITIVE_ARRAY(Types.BYTE())


def posted_type() -> TypeInformation:
    """The number of an edge, the number of the slice that gets it, and the message."""
    return Types.ROW([Types.INT(), Types.INT(), bytes_type()])


def posted_rows(posted: Iterable[Posted]) -> Iterator[Row]:
    return (Row(each.edge, each.slice, each.message) for each in posted)


class TickOfSlice(MapFunction):  # type: ignore[misc]
    """A number as a tick of a slice."""

    def __init__(self, ticks: Ticks) -> None:
        self._ticks = ticks

    def map(self, value: int) -> Row:
        return Row(TICK, self._ticks.slice_of(value), PADDING)


class Refuses(MapFunction):  # type: ignore[misc]
    """Of a job that fails with an error."""

    def __init__(self, error: ArroyoUdfError) -> None:
        self._error = pickled(error)

    def map(self, value: int) -> int:
        raise pickle.loads(self._error)


class OnEdge(FilterFunction):  # type: ignore[misc]
    """Lets pass what goes on one edge. Raises what a waiting stage has answered instead."""

    def __init__(self, edge: int) -> None:
        self._edge = edge

    def filter(self, value: Row) -> bool:
        if value[0] == FAILED:
            raise pickle.loads(value[2])
        return bool(value[0] == self._edge)


class SliceKey(KeySelector):  # type: ignore[misc]
    """The key of the slice that gets a message."""

    def __init__(self, width: int) -> None:
        self._keys = keys_of_slices(width)

    def get_key(self, value: Row) -> int:
        slice: int = value[1]
        return self._keys[slice]


class SliceFunction(KeyedProcessFunction):  # type: ignore[misc]
    """Of a stage with a state for each slice."""

    def __init__(self, text: str, stage: int) -> None:
        self._text, self._number = text, stage

    def open(self, context: RuntimeContext) -> None:
        self._program = program_of(self._text)
        self._stage = self._program.cut.stages[self._number]
        self._value = context.get_state(ValueStateDescriptor("slice", bytes_type()))
        self._files = context.get_map_state(MapStateDescriptor("files", Types.STRING(), bytes_type()))
        self._states: dict[int, FlinkState] = {}  # by key

    def _state(self, context: KeyedProcessFunction.Context) -> FlinkState:
        """Of the current key."""
        key = context.get_current_key()
        if key not in self._states:
            self._states[key] = FlinkState(self._value, self._files)
        return self._states[key]


class ReadFunction(SliceFunction):
    """A reading stage."""

    def __init__(self, text: str, stage: int, ticks: Ticks) -> None:
        super().__init__(text, stage)
        self._ticks = ticks

    def open(self, context: RuntimeContext) -> None:
        super().open(context)
        self._loop = asyncio.new_event_loop()
        self._slices: dict[int, ReadingStage] = {}  # by key
        self._used: dict[int, int] = {}

    def process_element(self, value: Row, context: KeyedProcessFunction.Context) -> Iterator[Row]:
        key = context.get_current_key()
        if value[0] == MARK:
            self._write(key, self._state(context))
            return
        slice = value[1]
        stage = self._slices[key] if key in self._slices else self._opened(slice, key, self._state(context))
        self._used[key] += 1
        yield from posted_rows(stage.read(self._loop, self._used[key] >= self._ticks.each[slice]))
        for other in self._slices.values():
            if other is not stage:
                yield from posted_rows(other.take())

    def _opened(self, slice: int, key: int, state: FlinkState) -> ReadingStage:
        about, _ = state.read() or (None, None)
        self._used[key] = 0 if about is None else about["used"]
        self._slices[key] = ReadingStage(self._program, self._stage, slice, about, state.ended())
        return self._slices[key]

    def _write(self, key: int, state: FlinkState) -> None:
        stage = self._slices[key]
        state.write(stage.about() | {"used": self._used[key]}, None, f"source {self._stage.source}")
        state.note_ended(stage.ended())

    def close(self) -> None:
        for stage in self._slices.values():
            stage.close()
        self._loop.run_until_complete(asyncio.sleep(0))  # its readers end
        self._loop.close()


class KeyedFunction(SliceFunction):
    """A keyed stage."""

    def open(self, context: RuntimeContext) -> None:
        super().open(context)
        self._name = self._program.samples[self._stage.head].name
        self._slices: dict[int, KeyedStage] = {}  # by key

    def process_element(self, value: Row, context: KeyedProcessFunction.Context) -> Iterator[Row]:
        edge, slice, message = value
        key = context.get_current_key()
        if edge == MARK:
            stage = self._slices[key]
            self._state(context).write(stage.about(), stage.snapshot(), self._name)
            return
        stage = self._slices[key] if key in self._slices else self._opened(slice, key, self._state(context))
        yield from posted_rows(stage.take(edge, message))

    def _opened(self, slice: int, key: int, state: FlinkState) -> KeyedStage:
        about, stored = state.read() or (None, None)
        self._slices[key] = KeyedStage(self._program, self._stage, slice, about, stored)
        return self._slices[key]

    def close(self) -> None:
        for stage in self._slices.values():
            stage.close()


class WaitFunction(AsyncFunction):  # type: ignore[misc]
    """A waiting stage. An error is answered, too, for `OnEdge`: PyFlink would hide it behind the whole message."""

    def __init__(self, text: str, stage: int) -> None:
        self._text, self._number = text, stage

    def open(self, context: RuntimeContext) -> None:
        program = program_of(self._text)
        self._stage = WaitingStage(program, program.cut.stages[self._number])
        self._stage.start()

    async def async_invoke(self, value: Row) -> list[Row]:
        try:
            return list(posted_rows(await self._stage.answer(value[2])))
        except Exception as error:
            return [Row(FAILED, -1, pickled(error))]

    def close(self) -> None:
        self._stage.stop()


def pickled(error: Exception) -> bytes:
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    except Exception:  # of a class that does not know how
        return pickle.dumps(InternalError("".join(traceback.format_exception(error))))
