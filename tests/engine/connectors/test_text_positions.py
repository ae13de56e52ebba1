"""A text file that was begun is read on from the block where its next row is, not from its start."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from partitions import rest, run, values

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors import blocks, source
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.engine.connectors.object_store import open_object_store

Row = dict[str, Any]
_numbers = itertools.count()


def read(path: str, position: Json | None, **keys: Any) -> tuple[list[Row], list[tuple[int, Json]]]:
    """The rows from a position on; and each position behind a batch, with the number of rows before it."""
    positions: list[tuple[int, Json]] = []

    async def work() -> list[Row]:
        files = Files(paths=(path,), bad_records="drop", **keys).source(1)
        found: list[Row] = []
        with contextlib.closing(files), contextlib.closing(files.open(path, position)) as partition:
            while (rows := await partition.read()) is not None:
                found += values([rows])
                positions.append((len(found), partition.position()))
            assert not await rest(partition)
        return found

    return run(work), positions


CELL = st.text(st.sampled_from('ab,"\n#ä'), max_size=6)
QUOTED = CELL.map(lambda text: '"' + text.replace('"', '""') + '"')
PLAIN = st.text(st.sampled_from("abcä 1"), max_size=6)
CSV = st.lists(st.tuples(st.one_of(PLAIN, QUOTED), st.one_of(PLAIN, QUOTED)).map(",".join), max_size=12)
ODD = st.lists(st.sampled_from(["1,2", "1", "1,2,3", "", 'a"b,c', '"x', 'y",z', "a,#"]), max_size=12)
JSONL = st.lists(st.sampled_from(['{"a":1}', '{"a":2.5,"b":"x"}', "", "[", '{"c":1}', '{"a":null}']), max_size=12)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), block_bytes=st.sampled_from([8, 30, 100]), most=st.integers(1, 4), ended=st.booleans())
def test_from_each_position_come_the_rows_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject, block_bytes: int, most: int, ended: bool
) -> None:
    kind = data.draw(st.sampled_from(["csv", "odd.csv", "jsonl", "txt"]))
    lines = data.draw({"csv": CSV, "odd.csv": ODD, "jsonl": JSONL, "txt": ODD}[kind])
    first = {"jsonl": '{"a":1,"b":"y"}', "txt": ""}.get(kind, "a,b")
    path = tmp_path / f"{next(_numbers)}.{kind}"
    path.write_bytes(("\n".join([first, *lines]) + ("\n" if ended else "")).encode())
    keys: dict[str, Any] = {"format": "text"} if kind == "txt" else {}
    keys |= data.draw(st.sampled_from([{}, {"comment": "#"}, {"header": False}])) if kind.endswith("csv") else {}
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        patch.setattr(source, "BATCH_ROWS", most)
        try:
            every, positions = read(str(path), None, **keys)
        except InvalidArgument:
            return  # a quote that is not closed
        for before, position in positions:
            assert read(str(path), position, **keys)[0] == every[before:]
            assert position.get("block", [1])[0] <= position["row"]


@pytest.mark.parametrize("place", ["local", "memory"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "txt"])
def test_what_was_read_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, ending: str
) -> None:
    """Before, a resume read all of the file, and left out the rows that it knew."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(source, "BATCH_ROWS", 50)
    line = {"csv": "{:06}\n", "jsonl": '{{"n":"{:06}"}}\n', "txt": "{:06}\n"}[ending]
    text = ("n\n" if ending == "csv" else "") + "".join(map(line.format, range(2000)))
    name, n_read = f"in.{ending}", 0
    if place == "local":
        path = str(tmp_path / name)
        Path(path).write_text(text)
    else:
        url = f"memory://positions-{next(_numbers)}"
        obstore.put(open_object_store(url), name, text.encode())
        path = f"{url}/{name}"
    keys: dict[str, Any] = {"format": "text"} if ending == "txt" else {}
    every, positions = read(path, None, **keys)
    before, position = positions[len(positions) * 3 // 4]
    more = blocks.more

    def counted(read: Any, held: int) -> bytes:
        nonlocal n_read
        data = more(read, held)
        n_read += len(data)
        return data

    monkeypatch.setattr(blocks, "more", counted)
    assert read(path, position, **keys)[0] == every[before:]
    left = len(text) - len(text) * before // len(every)
    assert n_read < left + 4 * 1000


@pytest.mark.parametrize("ending", ["csv.gz", "json"])
def test_others_are_read_from_their_start(tmp_path: Path, ending: str) -> None:
    path = str(tmp_path / f"in.{ending}")
    text = b"n\n" + b"1\n" * 9000 if ending == "csv.gz" else b"[" + b",".join([b'{"n":1}'] * 9000) + b"]"
    with pa.output_stream(path, compression="detect") as file:
        file.write(text)
    every, positions = read(path, None)
    for before, position in positions:
        assert "block" not in position
        assert read(path, position)[0] == every[before:]


def test_a_position_where_no_record_can_begin_is_refused(tmp_path: Path) -> None:
    """As a file of another program, which has kept its size and time."""
    path = tmp_path / "in.csv"
    path.write_text("n\n" + "1\n" * 10)
    status = path.stat()
    position = {"row": 5, "size": status.st_size, "etag": str(status.st_mtime_ns), "block": [3, 7]}
    with pytest.raises(InvalidArgument, match=r"in\.csv changed after it was begun"):
        read(str(path), position)


def test_a_position_of_a_former_version_has_no_block(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("n\n" + "".join(f"{n}\n" for n in range(10)))
    status = path.stat()
    position = {"row": 5, "size": status.st_size, "etag": str(status.st_mtime_ns)}
    assert [row["n"] for row in read(str(path), position)[0]] == list("456789")
