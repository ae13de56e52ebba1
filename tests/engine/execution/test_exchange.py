"""Rows on their way from one slice to another, and what a checkpoint has of them."""

from __future__ import annotations

import pyarrow as pa

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.execution import exchange
from arroyo_udf_plugin.engine.execution.exchange import Channel
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns
from arroyo_udf_plugin.engine.operators.event_time import EventClock
from arroyo_udf_plugin.engine.operators.routes import Routes
from arroyo_udf_plugin.engine.operators.watermarks import SliceTime, Watermark

SCHEMA = pa.schema([("n", pa.int64())])


def block(*numbers: int) -> Block:
    return Columns(SCHEMA).block(Rows("a", 0, pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)))


def numbers(blocks: list[Block]) -> list[int]:
    return [n for one in blocks for n in one.rows.column(0).to_pylist()]


def channel(woken: list[str] | None = None) -> Channel:
    told = [] if woken is None else woken
    return Channel(lambda: told.append("sender"), lambda: told.append("receiver"))


def test_the_receiver_is_sealed_first() -> None:
    """What it has taken is in its state; what comes behind the sender's seal is read again."""
    woken: list[str] = []
    queue = channel(woken)
    for item in (block(1), block(2), Watermark(5)):
        queue.put(item)
    queue.take()
    assert queue.seal_receiver() == []
    queue.take()
    queue.put(block(3))
    assert numbers(queue.seal_sender()) == [2, 3]
    queue.put(block(4))
    assert queue.seal_receiver() == []
    assert numbers(queue.seal_sender()) == [3, 4]
    assert woken == ["receiver"] * 5


def test_the_sender_is_sealed_first() -> None:
    """What is behind its seal waits until the receiver is sealed: it is read again."""
    queue = channel()
    queue.put(block(1))
    queue.put(block(2))
    assert queue.seal_sender() == []
    queue.put(block(3))
    first = queue.take()
    assert isinstance(first, Block)
    assert queue.is_ready
    assert numbers(queue.seal_receiver()) == [2]
    assert [numbers([item]) for item in (queue.take(), queue.take()) if isinstance(item, Block)] == [[2], [3]]


def test_nothing_is_taken_from_behind_a_seal() -> None:
    queue = channel()
    queue.put(block(1))
    queue.seal_sender()
    queue.put(block(2))
    queue.take()
    assert not queue.is_ready
    assert queue.take() is None
    queue.end(is_last=True)
    assert not queue.is_over
    assert queue.seal_receiver() == []
    assert queue.take() is not None
    assert queue.is_at_end


def test_an_end_behind_a_seal_is_none_before_the_receiver_is_sealed() -> None:
    """What the sender has read since then is read again, and it may be for others."""
    queue = channel()
    queue.seal_sender()
    queue.end(is_last=True)
    assert not queue.is_over
    assert queue.seal_receiver() == []
    assert queue.is_at_end


def test_a_full_queue(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(exchange, "_MOST_ROWS", 3)
    woken: list[str] = []
    queue = Channel(lambda: woken.append("sender"), lambda: None)
    queue.put(block(1, 2))
    assert queue.has_room
    queue.put(block(3, 4))
    assert not queue.has_room
    queue.end(is_last=True)
    assert not queue.is_over
    assert queue.take() is not None
    assert woken == ["sender"]
    assert queue.take() is not None
    assert queue.take() is None
    assert woken == ["sender"]
    assert queue.is_over


def test_what_a_queue_notes_is_bounded(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """A slice that is sealed late waits, although its rows are taken."""
    monkeypatch.setattr(exchange, "_MOST_ROWS", 3)
    woken: list[str] = []
    queue = Channel(lambda: woken.append("sender"), lambda: None)
    queue.put(block(1, 2))
    queue.seal_receiver()
    queue.take()
    for start in (3, 5):
        assert queue.has_room
        queue.put(block(start, start + 1))
        queue.take()
    assert not queue.is_ready
    assert not queue.has_room
    assert woken == []
    assert numbers(queue.seal_sender()) == [1, 2, 3, 4, 5, 6]
    assert queue.has_room
    assert woken == ["sender"]


def test_a_queue_is_full_of_large_rows_too(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(exchange, "HELD_BYTES", 20)
    queue = channel()
    queue.put(block(1, 2))
    assert queue.has_room
    queue.put(block(3))
    assert not queue.has_room
    queue.take()
    assert queue.has_room


def test_partitions_that_are_read_side_by_side() -> None:
    """The slowest one holds the watermark back: a resumed engine may read what two slices have read before."""
    schema = pa.schema([("t", pa.timestamp("ns"))])

    def at(*times: int) -> Block:
        return Columns(schema).block(
            Rows("a", 0, pa.record_batch([pa.array(times, pa.timestamp("ns"))], schema=schema))
        )

    time = SliceTime([EventClock(schema, "t"), EventClock(schema, "t")], [50, 100])
    assert time.time == 50
    assert time.after(0, at(101)) is None
    assert time.after(1, at(40)) is None
    assert time.after(1, at(60, 55)) == Watermark(60)
    assert time.after(0, at(102)) is None
    assert time.after_end(1) == Watermark(102)
    assert time.after_end(0) is None
    assert time.time == 102


def test_a_partition_that_is_idle_holds_the_others_no_longer_back() -> None:
    schema = pa.schema([("t", pa.timestamp("ns"))])

    def at(time: int) -> Block:
        return Columns(schema).block(Rows("a", 0, pa.record_batch([pa.array([time], pa.timestamp("ns"))], schema)))

    time = SliceTime([EventClock(schema, "t"), EventClock(schema, "t")])
    assert time.after(0, at(50)) is None
    assert time.after_idleness(1) == Watermark(50)
    time.add(EventClock(schema, "t"))  # which has no rows yet
    assert time.after(0, at(60)) == Watermark(60)
    assert time.after(2, at(70)) is None
    assert time.after(0, at(80)) == Watermark(70)
    assert time.after_idleness(2) == Watermark(80)
    assert time.after_idleness(0) == Watermark(None)
    assert time.after(1, at(90)) == Watermark(90)
    assert time.after_end(1) == Watermark(None)


def test_what_has_rows_in_the_first_slice_only() -> None:
    routes = Routes([None, 0, 1, 1, None, None], [2, 3, 4], exchanging=[1, 5], gathering=[1])
    assert [routes.is_alone(place) for place in range(6)] == [False, True, True, True, False, False]
