"""Rows of previews: as JSON, in order, bounded."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.cluster.preview_rows import Showing, Shown, json_of


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})


def test_rows_are_objects_with_times_bytes_and_nulls() -> None:
    told = pa.RecordBatch.from_pydict(
        {
            "at": pa.array([datetime.datetime(2013, 1, 1, 5, 0, 0, 250_000), None], pa.timestamp("ms")),
            "raw": pa.array([b"\x00\xff", None]),
            "inner": pa.array([{"a": b"\x01"}, None], pa.struct([("a", pa.binary())])),
            "text": pa.array(['a "quote"\n', None]),
            "list": pa.array([[1, None], None]),
        }
    )
    assert json.loads(json_of(told)) == [
        {
            "at": "2013-01-01T05:00:00.250Z",
            "raw": "00ff",
            "inner": "{'a': b'\\x01'}",
            "text": 'a "quote"\n',
            "list": [1, None],
        },
        dict.fromkeys(("at", "raw", "inner", "text", "list")),
    ]


@settings(deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([0, 1]), st.integers(1, 1500), st.sampled_from([0.0, 0.05, 0.3])), max_size=30
    )
)
def test_what_is_told_is_in_order_counts_what_is_left_out_and_is_bounded(
    steps: Sequence[tuple[int, int, float]],
) -> None:
    """Against counts of our own: what is told of a row says which one it is."""
    now = 0.0
    told: list[Sequence[Shown]] = []
    showing = Showing(told.append, clock=lambda: now)
    counts = [0, 0]
    for slice, rows, pause in steps:
        now += pause
        showing.take("preview", slice, batch(*range(counts[slice], counts[slice] + rows)))
        counts[slice] += rows
    showing.flush()
    seen = [-1, -1]
    for shown in told:
        assert sum(len(one["timestamps"]) for one in shown) <= 2000 + 1500 + 1500
        for one in shown:
            values = [row["n"] for row in json.loads(one["batch"])]
            assert values == list(range(one["start_id"], one["start_id"] + len(one["timestamps"])))
            assert values[0] > seen[one["subtask_idx"]]
            seen[one["subtask_idx"]] = values[-1]
    if sum(counts) <= 2000:
        assert [last + 1 for last in seen] == counts


def test_the_first_rows_are_told_at_once_and_the_last_ones_by_a_flush() -> None:
    told: list[Sequence[Shown]] = []
    showing = Showing(told.append, clock=lambda: 0.0)
    showing.take("preview", 0, batch(0))
    assert len(told) == 1
    showing.take("preview", 0, batch(1))
    assert len(told) == 1
    showing.flush()
    showing.flush()
    assert [one["start_id"] for shown in told for one in shown] == [0, 1]


def test_of_long_rows_fewer_are_told() -> None:
    told: list[Sequence[Shown]] = []
    Showing(told.append).take("preview", 0, pa.RecordBatch.from_pydict({"text": ["x" * 100_000] * 100}))
    ((shown,),) = told
    assert len(shown["batch"]) <= 1_100_000
    assert len(json.loads(shown["batch"])) == len(shown["timestamps"]) == 10


def test_the_first_rows_are_told_at_once() -> None:
    """Whatever was reported before them."""
    told: list[Sequence[Shown]] = []
    showing = Showing(told.append, clock=lambda: 100.0)
    showing.flush()
    showing.take("preview", 0, batch(1))
    assert [one["batch"] for batches in told for one in batches] == ['[{"n":1}]']
