"""The operator's rules (O1 to O6), and defects of other engines, each by its symptom."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gates
import pyarrow as pa
import pytest
from gates import Gates, block, operator
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_states import stored

from arroyo_udf_plugin import InvalidArgument, RowError, load
from arroyo_udf_plugin.engine.connectors.cells import Dialect, cell_type
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.operators import stages, state
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns
from arroyo_udf_plugin.engine.operators.event_time import EventClock
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.stages import Dead, Item
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.engine.operators.watermarks import Watermark
from arroyo_udf_plugin.host.answers import Window
from arroyo_udf_plugin.host.runtime import Runtime


def taken(operator: Operator, until: Callable[[list[Any]], bool]) -> list[Any]:
    """What comes out, as the values of x and watermarks, until that is enough."""
    found: list[Any] = []
    end = time.monotonic() + gates.PATIENCE
    while not until(found):
        assert time.monotonic() < end, found
        for item in operator.take():
            found += shown(item)
        if not until(found) and not operator.is_ready:
            for runtime in operator.runtimes:
                runtime.wait(0.01)
    return found


def shown(item: Item) -> list[Any]:
    if isinstance(item, Block):
        return item.rows.column("x").to_pylist()
    return [item] if isinstance(item, Watermark) else [("dead", x) for x in item.rows.rows.column("x").to_pylist()]


def all_of(n: int) -> Callable[[list[Any]], bool]:
    return lambda found: len(found) >= n


def started(functions: Any, names: list[str], **how: Any) -> Operator:
    made = operator(functions, names, **how)
    made.start()
    return made


def test_other_columns_travel_untouched(functions: Any, opened: Gates) -> None:
    """O1: a dictionary is a dictionary after the operator, of the same buffers."""
    one = started(functions, ["plus", "in_order"])
    opened.open(range(20))
    given = block([4, 5, 6])
    one.push(given)
    out = _until_all(one, 3)[-1]
    assert out.rows.column("tag").type == pa.dictionary(pa.int8(), pa.string())
    buffers = [rows.column("tag").indices.buffers()[1].address for rows in (out.rows, given.rows)]
    assert buffers[0] == buffers[1]
    assert out.rows.schema.names == ["x", "tag", "y0", "y1"]
    assert out.rows.column("y1").to_pylist() == [12, 14]  # the first step of a sync function has one row
    one.close()


def test_a_watermark_leaves_without_any_further_input(functions: Any, opened: Gates) -> None:
    """O2: the last result came before the watermark, and nothing comes after it."""
    one = started(functions, ["in_order"])
    opened.open([1])
    one.push(block([1]))
    assert taken(one, all_of(1)) == [1]
    one.push_watermark(10)
    assert one.take() == [Watermark(10)]
    one.close()


@pytest.mark.parametrize("name", ["in_order", "as_done"])
def test_a_watermark_waits_for_the_rows_before_it(functions: Any, opened: Gates, name: str) -> None:
    one = started(functions, [name])
    one.push(block([1, 2]))
    one.push_watermark(10)
    one.push(block([4, 5]))
    one.push_watermark(20)
    opened.open([2, 4, 5])
    if name == "as_done":
        assert sorted(taken(one, all_of(3))) == [2, 4, 5]
    assert one.take() == []
    opened.open([1])
    rest = taken(one, lambda found: Watermark(20) in found)
    assert rest == (
        [1, Watermark(10), Watermark(20)] if name == "as_done" else [1, 2, Watermark(10), 4, 5, Watermark(20)]
    )
    one.close()


def test_a_null_is_no_zero(functions: Any, opened: Gates) -> None:
    """An async function that takes no nulls is not called, as a sync one is not (F3)."""
    one = started(functions, ["in_order", "plus"])
    columns = [pa.array([None, 4], pa.int64()), block([3, 4]).rows.column("tag")]
    one.push(Columns(gates.SCHEMA).block(Rows("nulls", 1, pa.RecordBatch.from_arrays(columns, schema=gates.SCHEMA))))
    opened.open([4])
    rows = [row for item in _until_all(one, 2) for row in item.rows.to_pylist()]
    assert [(row["x"], row["y0"], row["y1"]) for row in rows] == [(None, None, None), (4, 8, 9)]
    assert opened.calls == {4: 1}
    one.close()


def test_an_idle_source_holds_nothing_back_but_its_rows_do(functions: Any, opened: Gates) -> None:
    one = started(functions, ["in_order"])
    one.push(block([1]))
    one.push_watermark(None)
    assert one.take() == []
    opened.open([1])
    assert taken(one, all_of(2)) == [1, Watermark(None)]
    one.close()


def test_no_empty_batches_leave(functions: Any, opened: Gates) -> None:
    one = started(functions, ["in_order"], action="drop")
    opened.open([3, 10])
    one.push(block([3]))
    one.push_watermark(1)
    one.push_watermark(2)
    one.push(block([10]))
    one.push_watermark(3)
    found: list[Item] = []
    while Watermark(3) not in found:
        found += one.take()
        one.runtimes[0].wait(0.01)
    assert found == [Watermark(1), Watermark(2), Watermark(3)]
    one.close()


def test_in_flight_rows_are_emitted_at_the_end_of_the_input(functions: Any, opened: Gates) -> None:
    """O5: nothing has come out yet when the input ends."""
    one = started(functions, ["in_order", "plus"])
    one.push(block([1, 2]))
    one.push_watermark(10)
    one.finish()
    assert one.take() == []
    assert not one.is_finished
    opened.open([1, 2])
    assert taken(one, all_of(3)) == [1, 2, Watermark(10)]
    assert one.is_finished
    assert one.stop() == []
    one.close()


def test_the_oldest_row_is_known_and_for_how_long(functions: Any, opened: Gates) -> None:
    """It is the one for which others wait. Its time is that of the first look that found it the oldest."""
    one = operator(functions, ["in_order"])
    assert one.oldest() is None  # it has not started
    one.start()
    assert one.oldest() is None
    one.push(block([20, 21, 22]))
    one.push(block([23]))
    began = time.time()
    first = one.oldest()
    assert first is not None
    opened.open([21])
    assert one.take() == []  # 21 has ended, or will soon; 20 keeps it back
    again = one.oldest()
    assert again == first
    origin = block([20]).origin
    assert (first.file, first.row) == (origin.column("file")[0].as_py(), origin.column("row")[0].as_py())
    assert abs(first.since - began) < gates.PATIENCE
    opened.open([20, 22])
    assert taken(one, all_of(3)) == [20, 21, 22]
    last = one.oldest()
    assert last is not None
    assert last.since >= first.since
    opened.open([23])
    assert taken(one, all_of(1)) == [23]
    assert one.oldest() is None
    one.stop()
    one.close()


def test_another_thread_may_look_while_it_starts(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of progress come from another thread: to it, a stage has started when it is whole."""
    one, seen = operator(functions, ["in_order"]), []

    def window(at_once: int) -> Window:
        seen.append((one.oldest(), one.statistics()))
        return Window(at_once)

    monkeypatch.setattr(stages, "Window", window)
    one.start()
    assert seen == [(None, [])]
    assert one.oldest() is None
    one.stop()
    one.close()


def test_results_leave_while_a_batch_waits_for_room(functions: Any, opened: Gates) -> None:
    """The function takes four rows at a time, and the batch has twelve."""
    one = started(functions, ["narrow"])
    for first in range(100, 112, 3):
        one.push(block([first, first + 1, first + 2]))
    assert one.take() == []
    assert not one.wants_input
    assert one.held_rows == 12
    opened.open([100])
    assert taken(one, all_of(1)) == [100]
    opened.open(range(101, 112))
    assert taken(one, all_of(11)) == list(range(101, 112))
    assert one.wants_input
    assert one.held_rows == 0
    assert one.held_bytes == 0
    one.push(block(list(range(200, 206))))  # whole, because the runtime is empty
    one.push(block([206]))
    assert one.take() == []
    assert one.wanting_room == one.runtimes
    opened.open(range(200, 207))
    assert taken(one, all_of(7)) == list(range(200, 207))
    assert one.wanting_room == []
    one.close()


def test_a_slow_sync_function_s_rows_leave_as_they_are_done(functions: Any) -> None:
    one = started(functions, ["plus"])
    one.push(block(list(range(10))))
    one.push_watermark(5)
    first = [x for item in one.take() for x in shown(item)]
    assert first == [0]
    assert one.is_ready
    state_ = stored(one.snapshot())
    rest = taken(one, lambda found: found[-1:] == [Watermark(5)])
    assert rest == [*range(1, 10), Watermark(5)]
    again = operator(functions, ["plus"])
    again.start([state_])
    assert taken(again, lambda found: found[-1:] == [Watermark(5)]) == rest  # O3, O4


def test_dead_letters_and_failures_follow_the_policy(functions: Any, opened: Gates) -> None:
    opened.open(range(20))
    one = started(functions, ["in_order"], action="dead_letter")
    one.push(block([2, 3, 4]))
    dead: list[Dead] = []
    rows: list[int] = []
    while len(rows) < 2 or not dead:
        for item in one.take():
            if isinstance(item, Dead):
                dead.append(item)
            else:
                rows += shown(item)
        one.runtimes[0].wait(0.01)
    assert rows == [2, 4]
    assert dead[0].letters.to_pylist()[0]["failed_row"] == 2
    assert dead[0].letters.to_pylist()[0]["failed_file"] == "numbers"
    one.close()
    strict = started(functions, ["in_order"], action="fail")
    strict.push(block([2, 3, 4]))
    with pytest.raises(RowError, match=r"gated.in_order, numbers, row 2: ValueError: no 3"):
        taken(strict, all_of(3))
    strict.close()


# ---- Recovery ----


def test_recovery_evaluates_the_arguments_again(functions: Any, opened: Gates) -> None:
    """A1: the function takes the second stage's column, not the row's first one."""
    one = started(functions, ["plus", "in_order"])
    one.push(block([1, 2]))
    taken(one, lambda _: opened.calls[3] == 1)
    kept = stored(one.snapshot())
    one.close()
    again = operator(functions, ["plus", "in_order"])
    again.start([kept])
    opened.open(range(10))
    out = _until_all(again, 2)[0]
    assert out.rows.column("y1")[0].as_py() == 4
    again.close()


def test_restored_rows_leave_without_new_input(functions: Any, opened: Gates) -> None:
    """O4: and rows with a result are not called again."""
    one = started(functions, ["as_done"])
    one.push(block(list(range(10, 16))))
    one.push_watermark(7)
    opened.open([11, 13])
    assert sorted(taken(one, all_of(2))) == [11, 13]
    taken(one, lambda _: all(opened.calls[x] == 1 for x in range(10, 16)))
    kept = stored(one.snapshot())
    one.close()
    again = operator(functions, ["as_done"])
    again.start([kept])
    opened.open(range(10, 16))
    out = taken(again, lambda found: Watermark(7) in found)
    assert sorted(out[:-1]) == [10, 12, 14, 15]
    assert (opened.calls[11], opened.calls[12]) == (1, 2)
    again.close()


def test_states_of_several_slices_do_not_overwrite_each_other(functions: Any, opened: Gates) -> None:
    """O3: ids of all slices begin alike; the watermark is the lowest of theirs."""
    kept = []
    for first, time_ in ((100, 50), (200, 40)):
        one = started(functions, ["as_done"])
        one.push(block([first, first + 1, first + 2]))
        one.push_watermark(time_)
        one.take()
        kept.append(stored(one.snapshot()))
        one.close()
    again = operator(functions, ["as_done"])
    again.start(kept)
    opened.open(range(300))
    out = taken(again, lambda found: Watermark(40) in found)
    assert sorted(out[:-1]) == [100, 101, 102, 200, 201, 202]
    again.close()


def test_a_row_keeps_its_idempotency_key_over_a_restore(build_plugin: Callable[..., Path]) -> None:
    """R10."""
    plugin = load(
        build_plugin(
            """
            import gates
            from arroyo_udf_plugin import call_info, udf

            KEYS = []

            @udf
            async def keyed(x: int) -> str:
                key = call_info().idempotency_key.hex()
                await gates.GATES.passed(x)
                return key
            """,
            name="keyed",
        )
    )
    opened = gates.new_gates()
    plan_of = [plugin.functions]
    one = operator(plan_of[0], ["keyed"])
    one.start()
    one.push(block([1, 2]))
    one.take()
    kept = stored(one.snapshot())
    opened.open([1, 2])
    keys = [x for item in _until_all(one, 2) for x in item.rows.column("y0").to_pylist()]
    one.close()
    again = operator(plan_of[0], ["keyed"])
    again.start([kept])
    assert [x for item in _until_all(again, 2) for x in item.rows.column("y0").to_pylist()] == keys
    assert len(set(keys)) == 2
    again.close()


def _until_all(one: Operator, n_rows: int) -> list[Block]:
    found: list[Block] = []
    end = time.monotonic() + gates.PATIENCE
    while sum(map(len, found)) < n_rows:
        assert time.monotonic() < end
        found += [item for item in one.take() if isinstance(item, Block)]
        one.runtimes[0].wait(0.01)
    return found


def test_states_that_do_not_fit_are_refused_by_name(
    functions: Any, opened: Gates, build_plugin: Callable[..., Path]
) -> None:
    """O3."""
    one = started(functions, ["in_order"])
    one.push(block([1, 2]))
    kept = bytes(stored(one.snapshot()).head)
    one.close()
    with pytest.raises(
        InvalidArgument, match=r"of gated.in_order, and .* gated.as_done: .* begin anew in another place"
    ):
        operator(functions, ["as_done"]).start([StoredState(kept)])
    with pytest.raises(InvalidArgument, match="of another number of functions"):
        operator(functions, ["in_order"]).start([StoredState(state.framed(2 * state.unframed(kept, "")))])
    changed = load(build_plugin(gates.SOURCE + "\n# changed\n", name="gated")).functions
    with pytest.raises(InvalidArgument, match=r"has changed since the checkpoint .* --allow-changed-plugin"):
        operator(changed, ["in_order"]).start([StoredState(kept)])
    allowed = operator(changed, ["in_order"])
    allowed.start([StoredState(kept)], allow_changed_plugin=True)
    allowed.close()
    newer = state.framed(state.unframed(kept, "").replace(b'"version": 3', b'"version": 9'))
    with pytest.raises(InvalidArgument, match="format version 9, and this program reads up to 3"):
        operator(functions, ["in_order"]).start([StoredState(newer)])
    for place in range(0, len(kept), 37):
        damaged = kept[:place] + bytes([kept[place] ^ 0x55]) + kept[place + 1 :]
        with pytest.raises(InvalidArgument, match=r"operator test: the state is damaged"):
            operator(functions, ["in_order"]).start([StoredState(damaged)])
    for length in range(0, len(kept) - 1, 41):
        with pytest.raises(InvalidArgument):
            operator(functions, ["in_order"]).start([StoredState(kept[:length])])


def test_kept_states_go_on(functions: Any, opened: Gates) -> None:
    """O3: files of every version that there was. Each has rows 10 and 11, a watermark, and row 12."""
    for file in sorted(Path(__file__).with_name("kept").glob("version-*.state")):
        one = operator(functions, ["plus", "in_order"])
        one.start([StoredState(file.read_bytes())], allow_changed_plugin=True)
        opened.open(range(20))
        assert taken(one, all_of(4)) == [10, 11, Watermark(5), 12]
        one.close()


def test_rows_of_states_without_keys_keep_those_that_they_had(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """R10: their lineage and ids, although rows that come now have the keys of their origin."""
    sent: list[bytes] = []

    def send(self: Runtime, first: int, *arrays: Any, idempotency_keys: memoryview) -> None:
        sent.append(bytes(idempotency_keys))

    monkeypatch.setattr(Runtime, "send_nowait", send)
    data = StoredState(Path(__file__).with_name("kept").joinpath("version-1.state").read_bytes())
    with contextlib.closing(operator(functions, ["plus", "in_order"], key=b"key")) as one:
        _, kept = state.read(data, [stage.kept_as for stage in one.stages], "")
        ids = [id_ for own, _ in kept.rows for id_ in own.to_pylist()]
        assert ids
        one.start([data], allow_changed_plugin=True)
        one.take()
        assert b"".join(sent) == b"".join(kept.lineage + id_.to_bytes(8, "big") for id_ in ids)


# ---- Event time ----


def test_event_time_ignores_rows_without_one_and_never_falls() -> None:
    schema = pa.schema([("t", pa.timestamp("ms", "Europe/Berlin"))])

    def of(*times: int | None) -> Block:
        return _times(pa.RecordBatch.from_arrays([pa.array(times, schema.types[0])], schema=schema))

    clock = EventClock(schema, "t", lateness=5_000_000)
    assert clock.after(of(None, None)) is None
    assert clock.after(of(10, None, 30, 20)) == 25_000_000
    assert clock.after(of(29)) is None
    assert clock.after(of(31)) == 26_000_000
    clock.restore([26_000_000, 7])
    assert clock.time == 7
    clock.restore([26_000_000, None])
    assert clock.time is None
    with pytest.raises(InvalidArgument, match="there is no column 'u' among t"):
        EventClock(schema, "u")
    with pytest.raises(InvalidArgument, match="column 'x' is int64"):
        EventClock(gates.SCHEMA, "x")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 60)), max_size=9), max_size=5))
def test_watermarks_of_expressions(batches: list[list[int | None]]) -> None:
    """Against a loop over the rows. A row that cannot be computed (120 / 0) changes nothing."""
    schema = pa.schema([("seconds", pa.int64())])
    computed = {"at": "to_timestamp_millis(seconds * 1000)", "n": "seconds"}
    clocks = {
        EventClock(schema, "at", 7, computed): lambda n: n,
        EventClock(schema, "at", 7, computed, "CASE WHEN 120 / n > 4 THEN at END"): lambda n: (
            n if 0 < n <= 24 else None
        ),
        EventClock(schema, "seconds", 7, None, "to_timestamp(120 / seconds)"): lambda n: 120 // n if n else None,
    }
    for clock, of in clocks.items():
        latest = None
        for values in batches:
            rows = pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=schema)
            times = [time * 10**9 - 7 for n in values if n is not None and (time := of(n)) is not None]
            risen = max(times, default=-1) if latest is None else max([*times, latest])
            expected = None if not times or risen == latest else risen
            assert clock.after(_times(rows)) == expected
            latest = latest if expected is None else expected


@pytest.mark.parametrize(
    ("computed", "watermark", "error"),
    [
        ({"at": "to_timestamp(n)"}, "b", "there is no column b"),
        ({"at": "nowhere(n)"}, None, "Invalid function 'nowhere'"),
        ({"other": "n"}, None, "there is no column 'at' among other"),
        (None, "n + 1", r"the watermark n \+ 1 is int64"),
    ],
)
def test_expressions_that_are_no_times(computed: dict[str, str] | None, watermark: str | None, error: str) -> None:
    with pytest.raises(InvalidArgument, match=error):
        EventClock(pa.schema([("n", pa.int64())]), "at", 0, computed, watermark)


def test_times_in_text_may_lack_a_zone() -> None:
    """They are UTC, and so are dates."""
    cells = pa.ExtensionArray.from_storage(
        cell_type(Dialect()),
        pa.array(["2020-01-01", "1970-01-01 00:00:02", "NA", "later", "2020-01-01T01:00:00+01:00"], pa.string()),
    )
    batch = pa.RecordBatch.from_arrays([cells], names=["t"])
    clock = EventClock(batch.schema, "t")
    new_year = 1_577_836_800 * 10**9
    assert clock.after(_times(batch.slice(1, 3))) == 2 * 10**9
    assert clock.after(_times(batch)) == new_year
    assert clock.after(_times(batch.slice(4))) is None


def _times(batch: pa.RecordBatch) -> Block:
    return Columns(batch.schema).block(Rows("times", 1, batch))
