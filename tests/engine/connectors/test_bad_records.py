"""Rows that cannot be read: each is refused alone, with its file, number and text, and the source's policy decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from partitions import read_all, run

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.bad_records import BadRecords, decide
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.operators.blocks import ORIGIN, Columns
from arroyo_udf_plugin.host.policy import LETTER

CSV = b'a,b\n1,x\n2,M\xfcller\n\n3\n"q\n4",5,6\n7,"NA"\n\xfc8,\xfc,9\n9,NA\n'


def read(path: Path, policy: BadRecords = "drop", **keys: Any) -> list[dict[str, Any]]:
    return read_all(Files(paths=(str(path),), bad_records=policy, **keys).source(1))


def test_bad_rows_of_csv_are_refused_alone(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(CSV)
    rows = read(path)
    assert [(row["row"], row["a"], row["b"]) for row in rows] == [
        (1, "1", "x"),
        (2, "2", "M\ufffdller"),
        (3, None, None),
        (4, None, None),
        (5, "7", "NA"),
        (6, None, None),
        (7, "9", None),
    ]
    assert [row["why"] for row in rows] == [
        None,
        r"column 'b': b'M\xfcller' is not UTF-8",
        "it has 1 cell, and the header has 2: '3'",
        """it has 3 cells, and the header has 2: '"q\\n4",5,6'""",
        None,
        "it has 3 cells, and the header has 2: '\ufffd8,\ufffd,9'",
        None,
    ]
    assert [row["why"] for row in read(path, columns=("b",))] == [row["why"] for row in rows]
    assert [row["why"] for row in read(path, columns=("a",))][1] is None


@pytest.mark.parametrize("size", range(5, 60, 3))
def test_wherever_blocks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(CSV)
    whole = read(path)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", size)
    assert read(path) == whole


ROWS: dict[bytes, tuple[list[str | None], bool]] = {
    b"1,x": (["1", "x"], True),
    b'2,"q\nq"': (["2", "q\nq"], True),
    b'NA,"NA"': ([None, "NA"], True),
    b"3": ([None, None], False),
    b'"4\n",5,"6"': ([None, None], False),
    b"\xff,y": (["\ufffd", "y"], False),
    b'z,"\xc3\n"': (["z", "\ufffd\n"], False),
    b"\xff": ([None, None], False),
}
"""Lines, what their cells are, and whether they can be read."""


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(list(ROWS)), max_size=30), st.integers(5, 80), st.integers(1, 31))
def test_any_rows_in_any_blocks_from_any_row(tmp_path: Path, lines: list[bytes], size: int, start: int) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"\n".join([b"a,b", *lines, b""]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", size)
        source = Files(paths=(str(path),), bad_records="drop").source(1)
        found = read_all(source, {str(path): {"row": start}})
    expected = [(number, *ROWS[line]) for number, line in enumerate(lines, 1) if number >= start]
    assert [(row["row"], [row["a"], row["b"]], row["why"] is None) for row in found] == expected


@pytest.mark.parametrize("bad", [b"1", b"1,2,3", b"\xff,2", b'"\xff\n",2,3'])
def test_a_bad_row_among_many_keeps_the_others_numbers(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "in.csv"
    lines = [b"%d,%d" % (n, n) for n in range(1, 20_001)]
    for at in (0, 8191, 8192, 19_999):
        lines[at] = bad
    path.write_bytes(b"\n".join([b"a,b", *lines]))
    rows = read(path)
    assert [row["row"] for row in rows] == list(range(1, 20_001))
    assert [row["row"] for row in rows if row["why"]] == [1, 8192, 8193, 20_000]
    assert all(row["b"] == str(row["row"]) for row in rows if not row["why"])


def test_broken_lines_of_json_keep_their_text(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":\n\n{"a":"\xff"}\n{"a":2}\n')
    rows = read(path)
    assert [(row["row"], row["a"]) for row in rows] == [(1, 1), (2, None), (4, None), (5, 2)]
    assert [row["why"] for row in rows] == [
        None,
        """the line is not JSON: Expecting value at column 6: '{"a":'""",
        """the line is not UTF-8: '{"a":"\ufffd"}'""",
        None,
    ]


@pytest.mark.parametrize(("name", "content"), [("in.csv", CSV), ("in.jsonl", b'{"a":1}\n{"a":\n')])
def test_with_fail_the_first_bad_row_ends_the_reading(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    source = Files(paths=(str(path),)).source(1)

    async def work() -> Rows | None:
        return await source.open(str(path), None).read()

    rows = run(work)
    assert rows is not None
    with pytest.raises(InvalidArgument, match=rf"{name}, row 2: .* \(bad_records = \"drop\" or "):
        decide(Columns(source.schema).block(rows).origin, "fail")


def origin(*why: str | None) -> pa.RecordBatch:
    columns = [
        pa.repeat("in.csv", len(why)),
        pa.array(range(5, 5 + len(why)), pa.uint64()),
        pa.array(why, pa.string()),
        pa.nulls(len(why), pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ORIGIN)


def test_what_the_policies_do() -> None:
    rows = origin(None, "it has 1 cell", None, "it has 3 cells")
    assert decide(origin(None, None), "fail") is None
    with pytest.raises(
        InvalidArgument, match=r"in\.csv, row 6: it has 1 cell \(bad_records = \"drop\" or .* in SQL, .* bad_data\)"
    ):
        decide(rows, "fail")

    dropped = decide(rows, "drop")
    assert dropped is not None
    assert (dropped.kept.to_pylist(), dropped.failures.num_rows) == ([True, False, True, False], 2)
    assert len(dropped.dead_at) == dropped.dead.num_rows == 0

    dead = decide(rows, "dead_letter")
    assert dead is not None
    assert (dead.kept.to_pylist(), dead.dead_at.to_pylist()) == ([True, False, True, False], [1, 3])
    assert dead.dead.schema == LETTER
    assert dead.dead.to_pylist() == [
        {
            "failed_row": row,
            "failed_file": "in.csv",
            "failed_outcome": "unread",
            "failed_error": why,
            "failed_attempts": 0,
            "failed_function": None,
            "failed_plugin": None,
        }
        for row, why in ((6, "it has 1 cell"), (8, "it has 3 cells"))
    ]


def test_a_replayed_dead_letter_fails_again_until_it_is_mended() -> None:
    """Its row has the file and number that it had first."""
    letters = decide(origin("it has 1 cell"), "dead_letter")
    assert letters is not None
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["1"]), *letters.dead.columns], names=["a", *letters.dead.schema.names]
    )
    block = Columns(batch.schema).block(Rows("dead.arrow", 1, batch))
    with pytest.raises(InvalidArgument, match=r"in\.csv, row 5: it has 1 cell"):
        decide(block.origin, "fail")
