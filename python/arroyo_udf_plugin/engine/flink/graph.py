"""A pipeline as a program of Flink's DataStream API.

    ticks ──key──► ReadFunction ──┊──key──► KeyedFunction ──┊──► WaitFunction ──┊──► SinkFunction ──► FileSink

Topics of Kafka begin and end otherwise: see kafka/.

Each operator has a uid, by its place in the pipeline: savepoints need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.datastream import AsyncDataStream, DataStream, KeyedStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.java_gateway import get_gateway

from ..connectors.kafka.sink import KafkaOutput
from ..connectors.parts import Parts
from ..pipeline.inputs import sources_of
from .cut import CutStage, Edge
from .file_sink import write_parts
from .functions import (
    MARK,
    KeyedFunction,
    OnEdge,
    ReadFunction,
    SliceKey,
    TickOfSlice,
    WaitFunction,
    posted_type,
    program_of,
)
from .java_classes import new_java
from .kafka.topics import read_topic, write_topic
from .ticks import Ticks

CAPACITY = 32
"""Messages that wait for an async function at once, in a subtask."""


def build(env: StreamExecutionEnvironment, text: str) -> None:
    """text: `JobArguments`."""
    program = program_of(text)
    env.set_max_parallelism(program.width)
    streams: dict[int, DataStream] = {}
    for stage in program.cut.stages:
        if stage.kind == "reading":
            streams[stage.number] = _reading(env, text, stage)
        elif stage.kind == "keyed":
            entering = _together(streams, program.cut.edges_to(stage))
            streams[stage.number] = _by_slice(env, entering, text, stage).process(
                KeyedFunction(text, stage.number), posted_type()
            )
        else:
            entering = _together(streams, program.cut.edges_to(stage))
            streams[stage.number] = AsyncDataStream.ordered_wait(
                entering, WaitFunction(text, stage.number), Time.milliseconds(0), CAPACITY, posted_type()
            )
        streams[stage.number].uid(f"stage-{stage.number}").name(_name(text, stage))
    for _, model, name, _ in program.planned.outputs():
        entering = _together(streams, program.cut.edges_to_sink(name))
        if isinstance(model, Parts):
            write_parts(env, entering, text, model, name)
        elif isinstance(model, KafkaOutput):
            write_topic(env, entering, text, model, name)
        else:  # nothing gets to it
            entering.filter(OnEdge(MARK)).uid(f"sink-{name}").name(name).print()


def _by_slice(env: StreamExecutionEnvironment, messages: DataStream, text: str, stage: CutStage) -> KeyedStream:
    """Messages by the keys of their slices, with a mark for each of them before a checkpoint begins."""
    keyed = messages.key_by(SliceKey(program_of(text).width), Types.INT())
    jvm = get_gateway().jvm
    messages_with_keys = Types.ROW([Types.INT(), posted_type()]).get_java_type_info()
    marked = DataStream(keyed._j_data_stream.transform("marks", messages_with_keys, new_java(env, "MarksSlices"))).uid(
        f"marks-of-stage-{stage.number}"
    )
    again = jvm.org.apache.flink.streaming.api.datastream.DataStreamUtils.reinterpretAsKeyedStream(
        marked._j_data_stream, jvm.KeyByKeySelector(), Types.ROW([Types.INT()]).get_java_type_info()
    )
    return KeyedStream(again, posted_type(), messages)


def _reading(env: StreamExecutionEnvironment, text: str, stage: CutStage) -> DataStream:
    program = program_of(text)
    assert stage.source is not None
    if sources_of(program.planned.resolved)[stage.source].model.type == "kafka":
        return read_topic(env, text, stage)
    source = program.planned.inputs[stage.source].source
    ticks = Ticks.of(source, program.width)
    numbers = NumberSequenceSource(0, ticks.total - 1)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), f"ticks of {source.name}", Types.LONG())
    of_slices = stream.uid(f"ticks-{stage.number}").map(TickOfSlice(ticks), posted_type())
    return _by_slice(env, of_slices, text, stage).process(ReadFunction(text, stage.number, ticks), posted_type())


def _together(streams: Mapping[int, DataStream], edges: list[Edge]) -> DataStream:
    """What goes on any of these edges."""
    every = [streams[edge.sender].filter(OnEdge(edge.number)) for edge in edges]
    return reduce(lambda one, other: one.union(other), every)


def _name(text: str, stage: CutStage) -> str:
    program = program_of(text)
    names = [program.samples[place].name for place in stage.operators]
    if stage.source is not None:
        names.insert(0, program.planned.inputs[stage.source].source.name)
    return ", ".join(names)[:200]
