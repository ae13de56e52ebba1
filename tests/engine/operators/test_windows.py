"""Windows against a model that goes row by row; what is late; what a snapshot has."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_models import DAY, Bounds, Model, SessionModel, monthly, tumbling
from window_rows import MANY, PARTS, ROWS, SCHEMA, WINDOWS_OF_MANY, add, batch, closed, grouping, many, shown

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.cells import CellType
from arroyo_udf_plugin.engine.datafusion.feed import context
from arroyo_udf_plugin.engine.datafusion.query import WrongQuery
from arroyo_udf_plugin.engine.windows import panes, runs, session_pieces, session_rows, sessions, tiers
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.opened import opened
from arroyo_udf_plugin.engine.windows.panes import WindowPanes
from arroyo_udf_plugin.engine.windows.spans import Hop, Months, Session, WindowSteps, bounded, unusable
from arroyo_udf_plugin.engine.windows.storage import Some, Storage, StorageLimits

ROWS_OF = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-5, 5), st.integers(-40, 60)), max_size=8
)
STEPS = st.lists(ROWS_OF | st.integers(-45, 65) | st.just("kept"), max_size=12)


@pytest.mark.parametrize("aggregates", [PARTS, ROWS], ids=["parts", "rows"])
@pytest.mark.parametrize(
    ("window", "bounds", "unit"),
    [
        (Hop(10, 10), tumbling(10, 10), 1),
        (Hop(12, 4), tumbling(12, 4), 1),
        (Hop(14, 2), tumbling(14, 2), 1),
        (Months(1, 1), monthly(1, 1), 7 * DAY),
        (Months(6, 2), monthly(6, 2), 20 * DAY),
    ],
    ids=["tumble", "hop", "hop by a small step", "months", "hop of months"],
)
def test_windows_are_those_of_the_model(
    window: WindowSteps, bounds: Bounds, unit: int, aggregates: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the batches, the watermarks and the restarts; and with merges after few rows."""
    monkeypatch.setattr(panes, "WAITING_ROWS", 5)
    monkeypatch.setattr(panes, "_FEW_ROWS", 2)
    monkeypatch.setattr(panes, "_MANY", 0)
    monkeypatch.setattr(tiers, "_FACTOR", 2)
    against_the_model(
        dataclasses.replace(grouping(aggregates=aggregates), window=window), lambda: Model(bounds, aggregates), unit
    )


def against_the_model(asked: Grouping, new_model: Callable[[], Model | SessionModel], unit: int = 1) -> None:
    """Rows are kept in files, if there are more than a few. unit: of times."""
    limits = StorageLimits(memory=100 if asked.aggregates is ROWS else 1 << 20)

    @settings(max_examples=40, deadline=None)
    @given(STEPS)
    def check(steps: list[Any]) -> None:
        model, windows, late = new_model(), opened(asked, SCHEMA, limits), 0
        for step in steps:
            if step == "kept":
                kept = list(windows.kept())
                before, windows = windows, opened(asked, SCHEMA, limits)
                windows.restore(kept, before.watermark)
            elif isinstance(step, int):
                if model.watermark is None or step * unit > model.watermark:
                    model.watermark = windows.watermark = step * unit
                    found = shown(closed(windows))
                    assert [row[1] for row in found] == sorted(row[1] for row in found)
                    assert Counter(found) == Counter(model.close())
            elif step:
                rows = [(key, value, time * unit) for key, value, time in step]
                model.add(rows)
                late += add(windows, batch(rows))
                assert late == len(model.late)
        assert Counter(shown(closed(windows, all_of_them=True))) == Counter(model.close(all_of_them=True))

    check()


@pytest.mark.parametrize("few", [2, 5, 12])
@pytest.mark.parametrize("aggregates", [PARTS, ROWS], ids=["parts", "rows"])
def test_sessions_are_those_of_the_model(aggregates: dict[str, str], few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """few: pieces that are compared with the others at once, and rows that leave in a step."""
    for module in (sessions, session_pieces, session_rows, runs):
        monkeypatch.setattr(module, "WAITING_ROWS", few)
    asked = dataclasses.replace(grouping(aggregates=aggregates), window=Session(10))
    against_the_model(asked, lambda: SessionModel(10, aggregates))


@pytest.mark.parametrize("aggregates", [{"n": "count(*)"}, {"n": "count(*)", "m": "median(x)"}], ids=["parts", "rows"])
def test_keys_of_sessions_may_be_anything(aggregates: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sessions, session_pieces, session_rows, runs):
        monkeypatch.setattr(module, "WAITING_ROWS", 3)
    values = [None, [None, 1], [2], [], [None, 1], [2], None]
    columns = {
        "l": pa.array(values, pa.list_(pa.int64())),
        "s": pa.array([{"a": {"b": value[0]}, "c": len(value)} if value else None for value in values]),
        "d": pa.array([str(value) for value in values]).dictionary_encode(),
        "h": pa.array([None if value is None else len(value) for value in values], pa.float32()).cast(pa.float16()),
        "x": pa.array(range(7)),
        "t": pa.array([0, 1, 2, 3, 4, 100, 200], pa.timestamp("ns")),
    }
    rows = pa.record_batch(columns)
    for keys in [(), ("l",), ("s",), ("d",), ("h",), ("l", "s", "d", "h")]:
        windows = opened(Grouping("t", Session(10), keys=keys, aggregates=aggregates), rows.schema)
        for row in range(7):
            windows.add(rows.slice(row, 1))
        found = pa.Table.from_batches(closed(windows, all_of_them=True))
        wanted: dict[Any, int] = Counter()
        for row, time in enumerate([0, 1, 2, 3, 4, 100, 200]):
            wanted[str([rows.column(key)[row].as_py() for key in keys]), time // 50] += 1
        counted = {
            (str([row[key] for key in keys]), row["start"] // 50): row["n"]
            for row in found.append_column(
                "start", found.column("window").combine_chunks().field("start").view("int64")
            )
            .drop_columns(["window", "t"])
            .to_pylist()
        }
        assert counted == wanted


def test_a_recent_piece_goes_on_with_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row comes late, but in time, and the watermark passes it before it has been compared with all pieces."""
    for module in (sessions, session_pieces):
        monkeypatch.setattr(module, "WAITING_ROWS", 3)
    windows = opened(dataclasses.replace(grouping(aggregates={"n": "count(*)"}), window=Session(10)), SCHEMA)
    windows.add(batch([("a", 1, 20), ("b", 1, 50), ("c", 1, 60)]))
    windows.add(batch([("a", 1, 12)]))
    for watermark in (23, 25):
        windows.watermark = watermark
        assert shown(closed(windows)) == []
    windows.watermark = 30
    assert shown(closed(windows)) == [(12, 30, "a", 2)]


def test_a_row_counts_in_windows_whose_panes_were_put_together_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "_FACTOR", 2)
    windows = opened(grouping(16, 2, keys=(), aggregates={"n": "count(*)"}), SCHEMA)
    windows.add(batch([("a", 1, time) for time in range(32)]))
    for end in range(2, 17, 2):
        windows.watermark = end
        assert shown(closed(windows)) == [(end - 16, end, end)]
    windows.add(batch([("a", 1, 9)]))
    windows.watermark = 20
    assert shown(closed(windows)) == [(2, 18, 17), (4, 20, 17)]


# ---- What is late ----


def test_a_row_is_late_when_its_last_window_is_closed() -> None:
    windows = WindowPanes(grouping(12, 4), SCHEMA)
    windows.watermark = 12
    assert not closed(windows)
    assert add(windows, batch([("a", 1, 0)])) == 1
    assert add(windows, batch([("a", 1, 4), ("a", 1, 3), ("a", 1, 30)])) == 1
    assert [row[:2] for row in shown(closed(windows, all_of_them=True))] == [
        (4, 16),
        *[(n, n + 12) for n in (20, 24, 28)],
    ]


def test_windows_are_over_when_the_watermark_reaches_their_end() -> None:
    windows = WindowPanes(grouping(), SCHEMA)
    windows.add(batch([("a", 1, 9)]))
    windows.watermark = 9
    assert not closed(windows)
    windows.watermark = 10
    assert shown(closed(windows)) == [(0, 10, "a", 1, 1, 1.0, None)]
    assert windows.size == 0


def test_parts_stay_small() -> None:
    """A million rows of a hundred keys are a few thousand parts."""
    windows = WindowPanes(grouping(1_000), SCHEMA)
    keys, times = [f"k{n % 100}" for n in range(8192)], [n % 1_000 for n in range(8192)]
    rows = pa.RecordBatch.from_arrays(
        [pa.array(keys), pa.array(range(8192), pa.int64()), pa.array(times, pa.timestamp("ns"))], schema=SCHEMA
    )
    for _ in range(123):
        windows.add(rows)
    assert sum(one.num_rows for one in windows.kept()) < 20_000
    assert sum(row[3] for row in shown(closed(windows, all_of_them=True))) == 123 * 8192


# ---- Where it is kept ----


@pytest.mark.parametrize("window", WINDOWS_OF_MANY, ids=["tumble", "hop", "session"])
def test_what_is_more_than_the_limit_is_in_files(
    window: Hop | Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory stays flat, also while it is written to a checkpoint; nobody sees the files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    limits, before = StorageLimits(memory=2 << 20), pa.total_allocated_bytes()
    asked = dataclasses.replace(grouping(aggregates={"n": "count(*)", "d": "count(DISTINCT x)"}), window=window)
    windows = opened(asked, SCHEMA, limits)
    for number in range(20):
        windows.add(many(number))
    assert pa.total_allocated_bytes() - before < 6 << 20
    assert windows.size > 12 << 20
    assert list(tmp_path.iterdir()) == []
    resumed = opened(asked, SCHEMA, limits)
    resumed.restore(windows.kept(), None)
    assert pa.total_allocated_bytes() - before < 10 << 20
    assert resumed.size > 12 << 20
    for one in (windows, resumed):
        found = shown(closed(one, all_of_them=True))
        half = 20 * MANY // 2
        ends = {row[:2] for row in found}
        assert sorted(found) == sorted((*end, key, half, half) for end in ends for key in "ab")
        assert one.size == 0


@pytest.mark.parametrize("window", WINDOWS_OF_MANY, ids=["tumble", "hop", "session"])
def test_what_is_more_than_the_limit_of_the_disk_is_refused(window: Hop | Session) -> None:
    asked = dataclasses.replace(grouping(aggregates=ROWS), window=window)
    windows = opened(asked, SCHEMA, StorageLimits(memory=2 << 20, disk=5 << 20))
    words = r"2 MiB in memory \(memory_limit\) and 5 MiB on the disk \(disk_limit\)"
    with pytest.raises(InvalidArgument, match=words):
        collections.deque(map(windows.add, map(many, range(40))), maxlen=0)


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    windows = opened(grouping(aggregates=ROWS), SCHEMA, StorageLimits(memory=1))
    with pytest.raises(InvalidArgument, match="cannot write rows of open windows to /nowhere: No such file"):
        windows.add(batch([("a", 1, 1)]))


def test_a_few_rows_do_not_keep_a_large_batch() -> None:
    windows = opened(grouping(aggregates=ROWS), SCHEMA)
    columns = [pa.array(["a"] * MANY), pa.array(range(MANY), pa.int64()), pa.array(range(MANY), pa.timestamp("ns"))]
    rows = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    windows.add(rows.slice(100, 5))
    windows.add(rows.slice(107, 10))
    assert sum(one.part.batch.get_total_buffer_size() for one in windows.kept()) < 4096


def test_columns_in_files_have_their_types() -> None:
    """Cells of text files are known to us alone."""
    type_ = CellType(None)
    cells = pa.ExtensionArray.from_storage(type_, pa.array(["1", "2"]))
    some = Some(Storage(StorageLimits(memory=1)))
    some.add(pa.record_batch({"c": cells, "x": [1, 2]}))
    assert some.disk
    assert [one.column("c") for one in some.batches] == [cells]


@pytest.mark.parametrize("keys", [(), ("k",)], ids=["no keys", "keys"])
@pytest.mark.parametrize("others", [{}, {"m": "median(x)"}], ids=["parts", "rows"])
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()], ids=str)
def test_min_and_max_of_nan_do_not_depend_on_the_order(
    type_: pa.DataType, others: dict[str, str], keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As DataFusion has them without GROUP BY."""
    monkeypatch.setattr(panes, "WAITING_ROWS", 2)
    monkeypatch.setattr(panes, "_FEW_ROWS", 0)
    schema = SCHEMA.set(1, pa.field("x", type_))
    aggregates = {
        "low": "min(x)",
        "high": "max(x)",
        "nan": "min(x) FILTER (WHERE isnan(x))",
        "real": "max(x) FILTER (WHERE x < 9)",
    }
    for values in itertools.permutations([math.nan, 1.0, -1.0, None]):
        windows = WindowPanes(grouping(keys=keys, aggregates=aggregates | others), schema)
        for value in values:
            columns = [pa.array(["a"]), pa.array([value], type_), pa.array([1], pa.timestamp("ns"))]
            windows.add(pa.RecordBatch.from_arrays(columns, schema=schema))
        (found,) = closed(windows, all_of_them=True)
        assert found.schema.field("low").type == type_
        assert str([found.column(name)[0].as_py() for name in aggregates]) == "[-1.0, nan, nan, 1.0]"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"aggregates": {"s": "sum(y)"}}, "there is no column y"),
        ({"aggregates": {"s": "x"}}, "must appear in the GROUP BY|must be in GROUP BY"),
        ({"keys": ("z",)}, "there is no column z"),
        ({"aggregates": {"k": "count(*)"}}, "two columns of the result have the name k"),
    ],
)
def test_what_cannot_be_grouped(asked: dict[str, Any], text: str) -> None:
    with pytest.raises(WrongQuery, match=text):
        WindowPanes(grouping(**asked), SCHEMA)


def test_aggregates_in_parts_are_those_of_datafusion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "WAITING_ROWS", 2)
    monkeypatch.setattr(panes, "_FEW_ROWS", 0)
    schema = pa.schema([("b", pa.bool_()), ("x", pa.int64()), ("t", pa.timestamp("ns"))])
    texts = ["bool_and(b)", "bool_or(b)", "bit_and(x)", "bit_or(x)", "bit_xor(x)", "bool_or(b) FILTER (WHERE x > 4)"]
    columns = [[True, False, None, True], [12, 10, None, 3], [1, 2, 3, 4]]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    windows = WindowPanes(grouping(keys=(), aggregates={f"v{n}": text for n, text in enumerate(texts)}), schema)
    for row in range(4):
        windows.add(rows.slice(row, 1))
    assert sum(batch.num_rows for batch in windows.kept()) < 4
    (found,) = closed(windows, all_of_them=True)
    own = context()
    own.register_record_batches("input", [[rows]])
    wanted = own.sql(f"SELECT {', '.join(texts)} FROM input").to_arrow_table()
    assert [found.column(f"v{n}").to_pylist() for n in range(len(texts))] == [one.to_pylist() for one in wanted.columns]


@pytest.mark.parametrize(
    "text", ["count(1 + x)", "count(x)", "count(2 * x) FILTER (WHERE true)", "count() FILTER (WHERE x > 0)"]
)
def test_what_is_counted(text: str) -> None:
    """Values that are not null, also of an expression that begins with a number."""
    windows = WindowPanes(grouping(keys=(), aggregates={"n": text, "all": "count(1)"}), SCHEMA)
    windows.add(batch([("a", 1, 1), ("a", None, 2)]))
    assert shown(closed(windows, all_of_them=True)) == [(0, 10, 1, 2)]


def test_times_with_centuries_between_them() -> None:
    """Their distance needs more than 64 bits."""
    windows, century = WindowPanes(grouping(keys=(), aggregates={"n": "count(*)"}), SCHEMA), 3_155_760_000_000_000_000
    windows.add(batch([("a", 1, -2 * century - 3), ("a", 1, 2 * century + 5), ("a", 1, 3)]))
    assert shown(closed(windows, all_of_them=True)) == [
        (-2 * century - 10, -2 * century, 1),
        (0, 10, 1),
        (2 * century, 2 * century + 10, 1),
    ]


@pytest.mark.parametrize("kind", [Hop, Months])
@pytest.mark.parametrize("window", [(0, 0), (10, 3), (-5, -5)])
def test_windows_that_cannot_be(window: tuple[int, int], kind: type[Hop | Months]) -> None:
    with pytest.raises(InvalidArgument):
        kind(*window)


def test_months_of_all_times_that_are_usable() -> None:
    """The first and the last month, and the watermarks around them."""
    asked = dataclasses.replace(grouping(keys=(), aggregates={"n": "count(*)"}), window=Months(6, 3))
    last = (1 << 63) - 1 - asked.window.length
    times = pa.array([-last - 1, -last, last, last + 1], pa.timestamp("ns"))
    assert unusable(times, asked.window).to_pylist() == [True, False, False, True]
    windows = opened(asked, SCHEMA)
    windows.watermark = bounded(-(1 << 63), asked.window)
    windows.add(batch([("a", 1, last), ("a", 1, -last)]))
    windows.watermark = bounded(1 << 63, asked.window)
    found = [[str(pa.scalar(bound, pa.timestamp("ns")))[:10] for bound in row[:2]] for row in shown(closed(windows))]
    assert found == [
        ["1677-10-01", "1678-04-01"],
        ["1678-01-01", "1678-07-01"],
        ["2261-07-01", "2262-01-01"],
        ["2261-10-01", "2262-04-01"],
    ]
