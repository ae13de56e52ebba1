"""Readers and writers of `run`: files survive a round trip, batches are bounded, no partial file remains."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.tables import BATCH_ROWS, ROW_GROUP_ROWS, Reader, Writer

TYPED = [".parquet", ".arrow", ".feather", ".arrows"]


def write(path: Path, table: pa.Table) -> Path:
    with Writer(path, table.schema) as writer:
        for batch in table.to_batches(BATCH_ROWS):
            writer.write(batch)
    return path


def read(path: Path, columns: list[str], types: list[pa.DataType], as_text: bool = False) -> tuple[pa.Table, pa.Table]:
    """All columns, and the argument columns, each in one piece."""
    with Reader(path, columns, types, as_text) as reader:
        pairs = list(reader)
        rows = pa.Table.from_batches([batch for batch, _ in pairs], reader.schema)
    arguments = [pa.RecordBatch.from_arrays(arrays, columns) for _, arrays in pairs]
    return rows, pa.Table.from_batches(arguments, pa.schema(list(zip(columns, types, strict=True))))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    n = BATCH_ROWS * 2 + 5
    return pa.table(
        {
            "number": pa.array([None if i % 7 == 0 else i for i in range(n)], pa.int64()),
            "text": pa.array([None if i % 5 == 0 else f"ä{i}" for i in range(n)], pa.string()),
            "moment": pa.array(range(n), pa.timestamp("us", "UTC")),
            "list": pa.array([[i, None] for i in range(n)], pa.list_(pa.int32())),
        }
    )


@pytest.mark.parametrize("ending", TYPED)
def test_typed_files_there_and_back(tmp_path: Path, table: pa.Table, ending: str) -> None:
    path = write(tmp_path / f"rows{ending}", table)
    rows, arguments = read(path, ["text", "number"], [pa.string(), pa.int64()])
    assert rows.equals(table)
    assert arguments.equals(table.select(["text", "number"]))


@pytest.mark.parametrize("ending", [*TYPED, ".csv"])
def test_batches_are_bounded(tmp_path: Path, table: pa.Table, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    table = table.select(["number", "text"]).combine_chunks()
    with Writer(path, table.schema) as writer:
        writer.write(table.to_batches()[0])  # larger than a batch may be
    with Reader(path, ["number"], [pa.int64()], False) as reader:
        assert [batch.num_rows for batch, _ in reader] == [BATCH_ROWS, BATCH_ROWS, 5]


@pytest.mark.parametrize("ending", [*TYPED, ".csv"])
def test_no_rows(tmp_path: Path, table: pa.Table, ending: str) -> None:
    path = write(tmp_path / f"rows{ending}", table.select(["number", "text"]).slice(0, 0))
    rows, arguments = read(path, ["number"], [pa.int64()])
    assert rows.num_rows == arguments.num_rows == 0
    assert rows.column_names == ["number", "text"]


def test_rows_are_known_if_the_file_says_so(tmp_path: Path, table: pa.Table) -> None:
    with Reader(write(tmp_path / "rows.parquet", table), ["number"], [pa.int64()], False) as reader:
        assert reader.rows == table.num_rows


def test_parquet_row_groups_are_large(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(range(ROW_GROUP_ROWS + 1), pa.int64())})
    path = write(tmp_path / "rows.parquet", table)
    assert pyarrow.parquet.ParquetFile(path).metadata.num_row_groups == 2


CSV = 'id,code,note,"a ""b"", c"\n007,NA,,1.50\n1e3,"x,y","say ""hi""",2\n,z,"two\nlines",NA\n'


def test_csv_to_csv_keeps_every_field(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(CSV)
    rows, arguments = read(source, ["code"], [pa.string()], as_text=True)
    assert arguments["code"].to_pylist() == [None, "x,y", "z"]
    assert write(tmp_path / "out.csv", rows).read_text() == CSV


def test_csv_to_typed_infers_other_columns(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("a,b,c\n1,NA,x\nNA,2.5,NA\n")
    rows, arguments = read(source, ["a"], [pa.float64()])
    assert rows.schema == pa.schema([("a", pa.float64()), ("b", pa.float64()), ("c", pa.string())])
    assert rows["a"].to_pylist() == arguments["a"].to_pylist() == [1.0, None]
    assert rows["b"].to_pylist() == [None, 2.5]


def test_csv_null_is_the_empty_field(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1.5, None]), "t": pa.array([None, "a"])})
    assert write(tmp_path / "out.csv", table).read_text() == "x,t\n1.5,\n,a\n"


@pytest.mark.parametrize(("text", "type_"), [("x", pa.int64()), ("1.5", pa.int32()), ("300", pa.uint8())])
def test_csv_value_of_the_wrong_type(tmp_path: Path, text: str, type_: pa.DataType) -> None:
    source = tmp_path / "in.csv"
    source.write_text(f"a,b\n1,2\n{text},2\n")
    with pytest.raises(InvalidArgument, match=rf"column 'a', rows 1 to 2: not all values are {type_}"):
        read(source, ["a"], [type_])


def test_missing_column_names_the_others(tmp_path: Path, table: pa.Table) -> None:
    path = write(tmp_path / "rows.parquet", table)
    with pytest.raises(InvalidArgument, match="no column 'nunber'; the columns are number, text, moment, list"):
        read(path, ["nunber"], [pa.int64()])


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("a,a\n1,2\n")
    with pytest.raises(InvalidArgument, match="there are 2 columns 'a'"):
        read(source, ["a"], [pa.int64()], as_text=True)


def test_column_of_another_type(tmp_path: Path, table: pa.Table) -> None:
    path = write(tmp_path / "rows.arrow", table)
    with pytest.raises(InvalidArgument, match="column 'text' is string, the function takes int64: cast the column"):
        read(path, ["text"], [pa.int64()])


def test_column_of_the_same_family_is_cast(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, None], pa.int16()), "d": pa.array(["x", "x"]).dictionary_encode()})
    path = write(tmp_path / "rows.arrow", table)
    rows, arguments = read(path, ["a", "d"], [pa.int64(), pa.string()])
    assert rows.equals(table)  # what travels is as it was
    assert arguments["a"].type == pa.int64()
    assert arguments["d"].to_pylist() == ["x", "x"]


def test_integers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.arrow", pa.table({"a": pa.array([2**40], pa.int64())}))
    with pytest.raises(InvalidArgument, match="column 'a', rows 1 to 1: not all values are int32"):
        read(path, ["a"], [pa.int32()])


def test_unknown_ending(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"rows\.xlsx: the file's ending must be one of \.csv, \.parquet"):
        Writer(tmp_path / "rows.xlsx", pa.schema([]))


@pytest.mark.parametrize("ending", TYPED)
def test_a_file_with_the_wrong_ending(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    path.write_bytes(b"not that format" * 10)
    with pytest.raises(InvalidArgument, match=f"rows{ending}"):
        read(path, ["a"], [pa.int64()])


def test_csv_cannot_hold_lists(tmp_path: Path, table: pa.Table) -> None:
    with pytest.raises(InvalidArgument, match=r"cannot hold column .list. of type list<item: int32>; write \.parquet"):
        Writer(tmp_path / "out.csv", table.schema)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [*TYPED, ".csv"])
def test_a_failure_leaves_the_old_file(tmp_path: Path, table: pa.Table, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    path.write_text("old")
    batch = table.select([0]).to_batches(BATCH_ROWS)[0]
    with pytest.raises(KeyboardInterrupt), Writer(path, batch.schema) as writer:  # noqa: PT012 (fails half-way)
        writer.write(batch)
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
