"""A reading stage that gets messages of Kafka from Flink, without Flink."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.flink.kafka.feeding import FedStage
from arroyo_udf_plugin.engine.flink.kafka.packed import packed, unpacked
from arroyo_udf_plugin.engine.flink.messages import items, time_of
from arroyo_udf_plugin.engine.flink.outlets import Posted, codec_of
from arroyo_udf_plugin.engine.flink.program import JobArguments, opened
from arroyo_udf_plugin.errors import InternalError, InvalidArgument

TOPIC = {"type": "kafka", "bootstrap_servers": "localhost:1", "topic": "orders"}


def record(partition: int, messages: Mapping[int, bytes | None], time: int = 1000, key: bytes | None = b"k") -> bytes:
    """As PacksRecords.java has it. messages: values by offset."""
    heads, bodies = [], []
    header = struct.pack(">ii", 1, 2) + b"h" + b"v1"
    for offset, value in messages.items():
        lengths = (-1 if part is None else len(part) for part in (key, value))
        heads.append(struct.pack(">qqiii", offset, time, *lengths, len(header)))
        bodies.append((key or b"") + (value or b"") + header)
    return struct.pack(">ii", partition, len(messages)) + b"".join([*heads, *bodies])


class Stages:
    """The only stage of a job with two slices, of which the first one is fed."""

    def __init__(self, **source: Any) -> None:
        own = {"types": {"n": "int", "who": "str"}, "metadata": {"number": "offset_id", "who": "key"}}
        window = {"type": "windows", "time": "at", "width": "1s", "aggregates": {"rows": "count(*)"}}
        event_time = source.pop("event_time", None)
        pipeline = {"name": "fed", "source": TOPIC | own | source, "sinks": [TOPIC]}
        if event_time is not None:
            pipeline |= {"event_time": event_time, "operators": [window]}
        self.program = opened(JobArguments(pipeline=pipeline, slices=2))
        self.loop = asyncio.new_event_loop()
        self._open = contextlib.ExitStack()

    def stage(self, *partitions: str, about: Any = None, ended: Any = None) -> FedStage:
        stage = FedStage(self.program, self.program.cut.stages[0], 0, partitions, about, ended or {})
        self._open.callback(stage.close)
        return stage

    def rows(self, posted: Iterable[Posted]) -> list[dict[str, Any]]:
        (edge,) = self.program.cut.edges_from(self.program.cut.stages[0])
        codec = codec_of(self.program, edge)
        every = [item for each in posted for item in items(each.message)]
        return [row for kind, payload in every if kind == "rows" for row in codec.decode(payload).rows.to_pylist()]

    def close(self) -> None:
        self._open.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()
        self.program.planned.close()


@pytest.fixture
def stages() -> Iterator[Stages]:
    with contextlib.closing(Stages()) as made:
        yield made


def test_messages_become_rows_at_once(stages: Stages) -> None:
    stage = stages.stage("0")
    assert stages.rows(stage.look(stages.loop)) == []
    fed = stage.feed(stages.loop, record(0, {5: b'{"n": 1}', 9: None}))
    assert stages.rows(fed) == [{"n": 1, "who": "k", "number": 5}, {"n": None, "who": "k", "number": 9}]
    assert stage.about()["positions"] == {"0": {"offset": 10}}


def test_a_stage_goes_on_where_its_state_says(stages: Stages) -> None:
    before = stages.stage("0", "2")
    list(before.feed(stages.loop, record(2, {7: b'{"n": 1}'})))
    stage = stages.stage("0", "2", about=before.about())
    assert [row["number"] for row in stages.rows(stage.feed(stages.loop, record(2, {8: b"{}"})))] == [8]
    with pytest.raises(InternalError, match="offset 8 twice, or behind the end: the next one is that of 9"):
        list(stage.feed(stages.loop, record(2, {8: b"{}"})))


def test_a_partition_that_nobody_knew_is_read(stages: Stages) -> None:
    stage = stages.stage("0")
    assert [row["number"] for row in stages.rows(stage.feed(stages.loop, record(4, {0: b"{}", 1: b"{}"})))] == [0, 1]
    assert stage.about()["positions"]["4"] == {"offset": 2}


def test_the_end_is_told_once(stages: Stages) -> None:
    stage = stages.stage("0")
    list(stage.feed(stages.loop, record(0, {0: b"{}"})))
    kinds = [kind for posted in stage.end(stages.loop) for kind, _ in items(posted.message)]
    assert (kinds, stage.is_over, list(stage.end(stages.loop))) == (["end"], True, [])
    about, ended = stage.about(), stage.ended()
    assert ended == {"0": {"offset": 1, "end": True}}
    again = stages.stage("0", about=about, ended=ended)
    assert (list(again.look(stages.loop)), list(again.end(stages.loop))) == ([], [])
    with pytest.raises(InternalError, match="behind the end"):
        again.feed(stages.loop, record(0, {1: b"{}"}))


def test_a_message_that_cannot_be_read_is_an_error(stages: Stages) -> None:
    stage = stages.stage("0")
    with pytest.raises(InvalidArgument, match="partition 0, row 3: the message is not JSON"):
        list(stage.feed(stages.loop, record(0, {3: b"{"})))


def test_a_bounded_source_of_a_slice_without_partitions_ends_at_once() -> None:
    with contextlib.closing(Stages(bounded=True)) as stages:
        stage = stages.stage()
        list(stage.look(stages.loop))
        assert stage.is_over
        other = stages.stage("0")
        with pytest.raises(InternalError, match="partition 2, which was not there"):
            other.feed(stages.loop, record(2, {0: b"{}"}))


def test_each_partition_has_a_watermark() -> None:
    source = {"types": {"n": "int"}, "metadata": {"at": "timestamp"}, "event_time": {"column": "at"}}
    with contextlib.closing(Stages(**source)) as stages:
        stage = stages.stage("0", "2")

        def watermarks(posted: Iterable[Posted]) -> set[int]:
            every = [item for each in posted for item in items(each.message)]
            return {time_of(payload) for kind, payload in every if kind == "watermark"}

        assert watermarks(stage.feed(stages.loop, record(0, {0: b"{}"}, time=5000))) == set()
        (lowest,) = watermarks(stage.feed(stages.loop, record(2, {0: b"{}"}, time=3000)))
        assert lowest <= 3_000_000_000
        again = stages.stage("0", "2", about=stage.about())
        assert watermarks(again.look(stages.loop)) == {lowest}


def test_all_that_is_known_of_a_message() -> None:
    partition, (message,) = unpacked(record(3, {9: None}, time=-(1 << 63), key=None))
    assert (partition, message.offset(), message.value(), message.key()) == (3, 9, None, None)
    assert (message.timestamp(), message.headers()) == ((0, 0), [("h", b"v1")])


def test_messages_are_packed_with_what_they_have() -> None:
    value = pa.array([b"abc", None, b""], pa.large_binary())
    assert packed(pa.table({"value": value})) == struct.pack(">iiiii", 3, 0, 3, -1, 0) + b"abc"
    table = pa.table({"value": value, "key": pa.array([b"k", None, None]), "time": pa.array([7, None, 0])})
    lengths = struct.pack(">iiiiiiii", 3, 3, 3, -1, 0, 1, -1, -1)
    assert packed(table.slice(0)) == lengths + struct.pack(">qqq", 7, -(1 << 63), 0) + b"abc" + b"k"
