"""Which files are read: names, folders, patterns, streams, compressed text; and what is wrong with the others."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from streams import copy, read, rows_of, write

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.options import Reading
from arroyo_udf_plugin.engine.connectors.source import FileSource


def csv(path: Path, *values: object, header: str = "a,b") -> Path:
    path.write_text("\n".join([header, *(f"{value},{path.stem}" for value in values)]) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    csv(tmp_path / "b.csv", 3)
    csv(tmp_path / "a.csv", 1, 2)
    csv(tmp_path / "c.csv", 4)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "sub").mkdir()
    return tmp_path


def test_several_inputs_are_one_source(folder: Path) -> None:
    for inputs in ([folder], [folder / "*.csv"], [folder / "a.csv", folder / "b.csv", folder / "c.csv"]):
        assert [(Path(rows.file).name, rows.first) for rows in rows_of(*inputs)] == [
            ("a.csv", 1),
            ("b.csv", 1),
            ("c.csv", 1),
        ]
        assert read(*inputs).to_pydict() == {"a": ["1", "2", "3", "4"], "b": ["a", "a", "b", "c"]}
    assert read(folder / "c.csv", folder / "a.csv")["a"].to_pylist() == ["4", "1", "2"]
    assert read(folder, reading=Reading(limit=3))["a"].to_pylist() == ["1", "2", "3"]
    assert read(folder, reading=Reading(limit=0)).num_rows == 0


def test_columns_in_another_order_are_found_by_name(folder: Path) -> None:
    csv(folder / "d.csv", "d", header="b,a")
    assert read(folder)["a"].to_pylist()[-1] == "d"
    assert read(folder, reading=Reading(columns=("b",)))["b"].to_pylist()[-1] == "d"


def test_other_columns_are_refused_before_anything_runs(folder: Path) -> None:
    csv(folder / "d.csv", 1, header="a,c")
    with pytest.raises(InvalidArgument, match=r"a\.csv has a column 'b', and .*d\.csv does not: the inputs differ"):
        FileSource([folder])


def test_other_types_are_cast_or_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "1.parquet", pa.table({"a": pa.array([1], pa.int32())}))
    wide = write(tmp_path / "2.parquet", pa.table({"a": pa.array([2, 2**40], pa.int64())}))
    text = write(tmp_path / "3.parquet", pa.table({"a": ["x"]}))
    rows = rows_of(first, wide)
    assert [row.batch.column(0).to_pylist() for row in rows] == [[1], [2, None]]
    assert rows[1].refused == {1: "column 'a': 1099511627776 does not fit int32"}
    with pytest.raises(InvalidArgument, match=r"3\.parquet: column 'a' is string, not int32"):
        FileSource([first, text])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.csv", r"none\.csv: there is no such file"),
        ("none*.csv", r"none\*\.csv: no file has such a name"),
        ("a.csv/b.csv", r"a\.csv/b\.csv: there is no such file"),
        ("sub", "sub: the folder has no files"),
        ("x.jsn", r"x\.jsn: the file's ending must be one of \.csv, .*, or --in-format must name the format"),
        ("x.parquet.gz", "parquet files are compressed inside"),
        ("\0", "cannot read .*null"),
        ("x" * 300, "cannot read .*x: File name too long"),
    ],
)
def test_inputs_that_are_none(folder: Path, name: str, why: str) -> None:
    (folder / "x.jsn").touch()
    (folder / "x.parquet.gz").touch()
    with pytest.raises(InvalidArgument, match=why):
        FileSource([folder / name])


def test_one_format_for_all(folder: Path) -> None:
    write(folder / "d.parquet", pa.table({"a": [1]}))
    with pytest.raises(
        InvalidArgument, match=r"a\.csv is csv and .*d\.parquet is parquet: all inputs of a run have one"
    ):
        FileSource([folder])


def test_a_folder_is_read_as_a_whole_or_not(folder: Path) -> None:
    (folder / "notes.txt").touch()
    with pytest.raises(InvalidArgument, match=r"notes\.txt: the file's ending"):
        FileSource([folder])


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.zst", ".tsv.gz", ".jsonl.zst"])
def test_compressed_text(tmp_path: Path, ending: str) -> None:
    table = pa.table({"a": [f"x{i}" for i in range(20_000)], "b": [None, ""] * 10_000})
    path = write(tmp_path / f"rows{ending}", table)
    assert path.stat().st_size < 100_000
    assert read(path).equals(table)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InvalidArgument, match=rf"cannot read .*rows{ending}: .*runcated"):
        read(path)
    path.write_text("plain")
    with pytest.raises(InvalidArgument, match=rf"cannot read .*rows{ending}: "):
        read(path)


def test_gzip_files_that_were_joined(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a\n1\n") + gzip.compress(b"2\n"))
    assert read(path)["a"].to_pylist() == ["1", "2"]


def test_the_format_can_be_named(tmp_path: Path) -> None:
    path = csv(tmp_path / "rows.txt", 1)
    assert read(path, reading=Reading(format="csv"))["a"].to_pylist() == ["1"]
    with pytest.raises(InvalidArgument, match="there is no format 'xml'; the formats are csv, tsv, jsonl, text,"):
        read(path, reading=Reading(format="xml"))


def test_a_fifo_is_csv_and_each_line_comes_at_once(tmp_path: Path) -> None:
    """Rows come out of the source while the writer holds the FIFO open, and waits for them."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    seen = [threading.Event() for _ in range(3)]

    def feed() -> None:
        with open(path, "wb", buffering=0) as fifo:
            fifo.write(b"a\n")
            for number, event in enumerate(seen):
                fifo.write(b"%d\n" % number)
                assert event.wait(60)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    with FileSource([path]) as source:
        for rows in source:
            for cell in rows.batch.column(0).to_pylist():
                seen[int(cell)].set()
    feeder.join(60)
    assert all(event.is_set() for event in seen)


def test_parquet_is_no_stream(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    os.mkfifo(path)
    with pytest.raises(InvalidArgument, match=r"rows\.parquet: parquet is read from its end, so it must be a file"):
        FileSource([path])


COPY = """
import sys
from arroyo_udf_plugin.engine.connectors.options import Reading, Writing
from arroyo_udf_plugin.engine.connectors.sink import FileSink
from arroyo_udf_plugin.engine.connectors.source import FileSource
reading = Reading(format=sys.argv[1] if len(sys.argv) > 1 else None)
with FileSource(["-"], reading) as source, FileSink("-", source.schema, Writing(format=reading.format)) as sink:
    for rows in source:
        assert rows.file == "-"
        sink.write(rows.batch)
"""


def test_standard_input_to_standard_output(tmp_path: Path) -> None:
    text = b'a,b\n1,"x,y"\nNA,""\n'
    assert subprocess.run([sys.executable, "-c", COPY], input=text, capture_output=True, check=True).stdout == text
    table = pa.table({"a": range(100_000)})
    stream = write(tmp_path / "rows.arrows", table).read_bytes()
    done = subprocess.run([sys.executable, "-c", COPY, "arrows"], input=stream, capture_output=True, check=True)
    assert pa.ipc.open_stream(done.stdout).read_all().equals(table)


def test_each_line_of_a_pipe_is_answered_at_once() -> None:
    with subprocess.Popen([sys.executable, "-c", COPY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"a\n")
        for number in range(3):
            child.stdin.write(b"%d\n" % number)
            child.stdin.flush()
            if number == 0:
                assert child.stdout.readline() == b"a\n"
            assert child.stdout.readline() == b"%d\n" % number
        child.stdin.close()
        assert child.wait(60) == 0


def test_standard_input_is_read_once() -> None:
    with pytest.raises(InvalidArgument, match="standard input can be read only once"):
        FileSource(["-", "-"])
    with pytest.raises(InvalidArgument, match="no input is given"):
        FileSource([])


def test_an_input_that_may_not_be_read(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", 1)
    with pytest.MonkeyPatch.context() as patch:

        def refuse(*_: object) -> int:
            raise PermissionError(13, "Permission denied")

        patch.setattr(os, "open", refuse)
        with pytest.raises(InvalidArgument, match=r"cannot read .*a\.csv: Permission denied"):
            FileSource([path])


def test_an_input_is_closed_after_its_last_row(tmp_path: Path) -> None:
    paths = [csv(tmp_path / f"{i}.csv", i) for i in range(50)]
    with FileSource(paths) as source:
        for _ in source:
            descriptors = [
                os.readlink(f"/proc/self/fd/{fd}")
                for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}")
            ]
            assert sum(str(tmp_path) in name for name in descriptors) <= 1
    copy(paths, tmp_path / "all.csv")
