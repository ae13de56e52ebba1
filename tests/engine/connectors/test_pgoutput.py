"""Messages of PostgreSQL's log, as its documentation has them, and texts as values; without a server."""

from __future__ import annotations

import dataclasses
import struct

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.connectors.changes import change_texts, pgoutput
from arroyo_udf_plugin.engine.connectors.changes.pgoutput import UNSENT
from arroyo_udf_plugin.engine.connectors.changes.positions import ChangesPosition, SnapshotPart, is_covered
from arroyo_udf_plugin.engine.connectors.changes.server_snapshot import ServerSnapshot


def row(*values: object) -> bytes:
    """As the log has it: None is null, UNSENT is not sent."""
    data = struct.pack("!H", len(values))
    for value in values:
        if isinstance(value, bytes):
            data += b"t" + struct.pack("!I", len(value)) + value
        else:
            data += b"n" if value is None else b"u"
    return data


def test_rows_of_changes() -> None:
    assert pgoutput.change(b"N" + row(b"1", None, UNSENT, b""), 0) == (False, None, [b"1", None, UNSENT, b""])
    assert pgoutput.change(b"O" + row(b"1") + b"N" + row(b"2"), 0) == (False, [b"1"], [b"2"])
    assert pgoutput.change(b"K" + row(b"1", None), 0) == (True, [b"1", None], None)
    large = b"x" * 70_000
    assert pgoutput.change(b"??N" + row(large, b"y"), 2) == (False, None, [large, b"y"])


@pytest.mark.parametrize("data", [b"", b"X" + row(b"1"), b"K" + row(b"1") + b"X", b"N\0\1z", b"N" + row(b"abc")[:-1]])
def test_messages_that_are_none(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"a (row|value)"):
        pgoutput.change(data, 0)


def test_what_surrounds_changes() -> None:
    assert pgoutput.begin(struct.pack("!QqI", 1 << 40, 1, 7), 0) == pgoutput.Begin(1 << 40, 946_684_800_000_001, 7)
    assert pgoutput.end_of_commit(struct.pack("!BQQq", 0, 5, 9, 1), 0) == 9
    assert pgoutput.truncated(struct.pack("!IBII", 2, 0, 16_384, 16_390), 0) == [16_384, 16_390]
    columns = b"\1id\0" + struct.pack("!Ii", 20, -1) + b"\0name\0" + struct.pack("!Ii", 1043, 14)
    data = struct.pack("!I", 16_384) + b"public\0t\0d" + struct.pack("!H", 2) + columns
    id_, name = pgoutput.RelationColumn("id", 20, -1), pgoutput.RelationColumn("name", 1043, 14)
    assert pgoutput.relation(data, 0) == pgoutput.LoggedTable(16_384, "public", "t", [id_, name])
    for cut in (1, 8, len(data) - 3):
        with pytest.raises(ValueError):  # noqa: PT011 (whatever it says)
            pgoutput.relation(data[:cut], 0)


@pytest.mark.parametrize(
    ("texts", "type_", "values"),
    [
        ([b"t", b"f", None], pa.bool_(), [True, False, None]),
        ([b"\\x00ff", b"\\x"], pa.binary(), [b"\x00\xff", b""]),
        ([b"{}", b"{1,NULL}", None], pa.list_(pa.int64()), [[], [1, None], None]),
        ([b'{"a,b",c d,"\\"\\\\"}'], pa.list_(pa.string()), [["a,b", "c d", '"\\']]),
        ([b"-Infinity", b"1e-05"], pa.float64(), [float("-inf"), 1e-05]),
    ],
)
def test_texts_as_values(texts: list[bytes | None], type_: pa.DataType, values: list[object]) -> None:
    done = change_texts.values(texts, type_)
    assert (done.array.type, done.array.to_pylist(), done.refused) == (type_, values, {})


def test_texts_that_are_refused() -> None:
    for text, type_, why in (
        (b"{{1,2},{3,4}}", pa.list_(pa.int64()), "is not a list in one dimension"),
        (b"[2:3]={1,2}", pa.list_(pa.int64()), "is not a list in one dimension"),
        (b"{1,x}", pa.list_(pa.int64()), "'x' is not int64"),
        (b"\\000", pa.binary(), "is not binary"),
        (b"\xff", pa.string(), "is not UTF-8"),
        (b"infinity", pa.timestamp("us", "UTC"), "'infinity' is not timestamp"),
    ):
        done = change_texts.values([None, text], type_)
        assert done.array.to_pylist() == [None, None]
        assert list(done.refused) == [1]
        assert why in done.refused[1]


def test_positions_as_json() -> None:
    for position in (
        ChangesPosition(),
        ChangesPosition("7", 5, 3, (SnapshotPart(10, ("a", "1")),)),
        ChangesPosition(
            "7", 5, 3, (SnapshotPart(10, ("a",)), SnapshotPart(20, None)), lsn=11, commit=12, done=2, until=30
        ),
        ChangesPosition("7", 5, lsn=30, until=30, end=True),
    ):
        assert ChangesPosition.of(position.json) == position


def test_transactions_that_a_snapshot_has_and_the_server_has_not() -> None:
    snapshot = ServerSnapshot.of("10:20:12,15")
    assert [each for each in range(8, 22) if not snapshot.has_ended(each)] == [12, 15, 20, 21]
    for now, ahead in (
        ("10:20:12,15", []),
        ("12:20:12,15,19", [19]),
        ("9:18:9,12,15,17", [9, 17, 18, 19]),
        ("30:30:", []),
    ):
        assert snapshot.ahead_of(ServerSnapshot.of(now)) == ahead
    assert ServerSnapshot.of("20:17:").has_ended(19)  # as the server writes it if nothing runs below the first number
    assert not ServerSnapshot.of("20:17:").has_ended(20)


def test_where_a_position_is() -> None:
    within = ChangesPosition(
        "7", 5, parts=(SnapshotPart(10, ("a",)), SnapshotPart(20, None)), lsn=11, commit=15, done=2
    )
    assert within.behind(15) == ChangesPosition("7", 5, parts=within.parts, lsn=15, commit=15, done=2)
    assert within.behind(16) == ChangesPosition("7", 5, parts=within.parts, lsn=16)
    assert within.behind(20) == ChangesPosition("7", 5, lsn=20)
    assert within.behind(5).lsn == 11
    assert dataclasses.replace(within, until=9).ends_at == 20  # parts of the snapshot fit together only there
    assert dataclasses.replace(within, until=30).ends_at == 30
    parts = [(10, (5,)), (20, (9,)), (30, None)]
    assert [is_covered(parts, 15, (key,)) for key in (5, 6, 9, 10)] == [False, True, True, True]
    assert [is_covered(parts, 20, (key,)) for key in (5, 6, 9, 10)] == [False, False, False, True]
