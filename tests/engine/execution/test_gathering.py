"""Rows on their way from one slice to the first, and what a checkpoint has of them."""

from __future__ import annotations

import pyarrow as pa

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.execution import gathering
from arroyo_udf_plugin.engine.execution.gathering import RowQueue
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns
from arroyo_udf_plugin.engine.operators.routes import Routes
from arroyo_udf_plugin.engine.operators.watermarks import EventClock, SliceTime, Watermark

SCHEMA = pa.schema([("n", pa.int64())])


def block(*numbers: int) -> Block:
    return Columns(SCHEMA).block(Rows("a", 0, pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)))


def numbers(blocks: list[Block]) -> list[int]:
    return [n for one in blocks for n in one.rows.column(0).to_pylist()]


def test_what_is_on_its_way_in_a_checkpoint() -> None:
    """Rows before `cut` that were taken are in the first slice's state; rows behind `noted` are read again."""
    woken: list[str] = []
    queue = RowQueue(lambda: woken.append("sender"), lambda: woken.append("receiver"))
    queue.put(block(1))
    queue.take()
    queue.put(block(2))
    queue.put(Watermark(5))
    queue.cut()
    queue.take()
    queue.put(block(3))
    assert numbers(queue.noted()) == [2, 3]
    queue.put(block(4))
    queue.cut()
    assert numbers(queue.noted()) == [3, 4]
    assert woken == ["receiver"] * 5


def test_a_full_queue(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(gathering, "_MOST_ROWS", 3)
    woken: list[str] = []
    queue = RowQueue(lambda: woken.append("sender"), lambda: None)
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
    monkeypatch.setattr(gathering, "_MOST_ROWS", 3)
    woken: list[str] = []
    queue = RowQueue(lambda: woken.append("sender"), lambda: None)
    queue.put(block(1, 2))
    queue.cut()
    queue.take()
    for start in (3, 5):
        assert queue.has_room
        queue.put(block(start, start + 1))
        queue.take()
    assert queue.is_empty
    assert not queue.has_room
    assert woken == []
    assert numbers(queue.noted()) == [1, 2, 3, 4, 5, 6]
    assert queue.has_room
    assert woken == ["sender"]


def test_a_queue_is_full_of_large_rows_too(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(gathering, "HELD_BYTES", 20)
    queue = RowQueue(lambda: None, lambda: None)
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
    assert time.after(1, at(60, 55)) == 60
    assert time.after(0, at(102)) is None
    assert time.after_end(1) == 102
    assert time.after_end(0) is None
    assert time.time == 102


def test_what_works_in_the_first_slice_only() -> None:
    routes = Routes([None, 0, 1, 1, None], [2, 3, 4], gathering=[1])
    assert [routes.is_behind_gathering(place) for place in range(5)] == [False, False, True, True, False]
