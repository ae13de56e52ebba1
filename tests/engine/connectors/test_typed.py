"""Parquet and Arrow files: what travels is as it was, batches are bounded, and broken files are named."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from streams import copy, read, rows_of, write

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.options import BATCH_ROWS, ROW_GROUP_ROWS, TYPED_BATCH_ROWS, Reading, Writing
from arroyo_udf_plugin.engine.connectors.sink import FileSink
from arroyo_udf_plugin.engine.connectors.source import FileSource

TYPED = [".parquet", ".arrow", ".feather", ".arrows"]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    n = TYPED_BATCH_ROWS * 2 + 5
    return pa.table(
        {
            "number": pa.array([None if i % 7 == 0 else i for i in range(n)], pa.int64()),
            "text": pa.array([None if i % 5 == 0 else f"ä{i}" for i in range(n)], pa.string()),
            "moment": pa.array(range(n), pa.timestamp("us", "UTC")),
            "list": pa.array([[i, None] for i in range(n)], pa.list_(pa.int32())),
            "dictionary": pa.array(["x", "y", None, "z", ""] * (n // 5) + ["x"] * (n % 5)).dictionary_encode(),
        }
    )


@pytest.mark.parametrize("ending", TYPED)
def test_there_and_back(tmp_path: Path, table: pa.Table, ending: str) -> None:
    path = write(tmp_path / f"rows{ending}", table)
    again = read(copy(path, tmp_path / f"again{ending}"))
    plain = pa.schema([field.with_type(pa.string()) if field.name == "dictionary" else field for field in table.schema])
    assert again.cast(plain).equals(table.cast(plain))
    assert read(path, reading=Reading(columns=("list", "text"))).equals(table.select(["list", "text"]))


@pytest.mark.parametrize("ending", [*TYPED, ".csv", ".jsonl"])
def test_batches_are_bounded_and_numbered(tmp_path: Path, table: pa.Table, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    most = TYPED_BATCH_ROWS if ending in TYPED else BATCH_ROWS
    (batch,) = table.slice(0, 2 * most + 5).select(["number", "text"]).combine_chunks().to_batches()
    with FileSink(path, batch.schema) as sink:
        sink.write(batch)
    even = ending in TYPED and ending != ".parquet"  # a batch of the file is cut into equal pieces
    sizes = [(2 * most + 5) // 3] * 3 if even else [most, most, 5]
    found = rows_of(path)
    assert [(rows.file, rows.first, rows.batch.num_rows) for rows in found] == [
        (str(path), 1 + sum(sizes[:place]), size) for place, size in enumerate(sizes)
    ]


@pytest.mark.parametrize("ending", TYPED)
def test_large_rows_come_in_small_batches(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": [f"{i:01000}" for i in range(1000)], "y": range(1000)})
    path = write(tmp_path / f"rows{ending}", table)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.typed._BATCH_BYTES", 100_000)
    assert max(rows.batch.num_rows for rows in rows_of(path)) in range(50, 101)
    assert read(path).equals(table)


@pytest.mark.parametrize("ending", [*TYPED, ".csv"])
def test_no_rows(tmp_path: Path, table: pa.Table, ending: str) -> None:
    path = write(tmp_path / f"rows{ending}", table.select(["number", "text"]).slice(0, 0))
    assert read(path).num_rows == 0
    assert read(path).column_names == ["number", "text"]


def with_views() -> list[str]:
    """The formats in which this pyarrow writes views: earlier versions write none to Parquet."""
    try:
        pyarrow.parquet.write_table(pa.table({"text": pa.nulls(0, pa.string_view())}), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return [ending for ending in TYPED if ending != ".parquet"]
    return TYPED


@pytest.mark.parametrize("ending", with_views())
def test_views_are_read_as_what_they_show(tmp_path: Path, ending: str) -> None:
    """pyarrow can neither take nor filter rows with views, so a failed row beside one could not be left out."""
    texts, bytes_ = ["a", None, "a longer text, beside the view"], [b"\xff", None, b""]
    views = {
        "text": pa.array(texts, pa.string_view()),
        "bytes": pa.array(bytes_, pa.binary_view()),
        "in a list": pa.array([["a"], None, texts], pa.list_(pa.string_view())),
        "in a struct": pa.array([{"s": "a"}, None, {"s": None}], pa.struct([("s", pa.string_view())])),
    }
    found = read(write(tmp_path / f"rows{ending}", pa.table(views)))
    assert found.schema.types == [
        pa.string(),
        pa.binary(),
        pa.list_(pa.string()),
        pa.struct([("s", pa.string())]),
    ]
    assert found.to_pydict() == {name: column.to_pylist() for name, column in views.items()}
    assert found.take(pa.array([2, 0])).num_rows == 2


def test_rows_are_known_if_the_file_says_so(tmp_path: Path, table: pa.Table) -> None:
    path = write(tmp_path / "rows.parquet", table)
    with FileSource([path, path]) as source:
        assert source.rows == 2 * table.num_rows
    with FileSource([path, path], Reading(limit=7)) as source:
        assert source.rows == 7
        assert [rows.batch.num_rows for rows in source] == [7]


@pytest.mark.parametrize("ending", [".arrow", ".arrows"])
def test_a_large_dictionary_makes_no_small_batches(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dictionary = pa.array([f"{i:01000}" for i in range(1000)])
    table = pa.table({"x": pa.DictionaryArray.from_arrays(pa.array(range(1000), pa.int32()), dictionary)})
    with pa.OSFile(str(tmp_path / f"rows{ending}"), "w") as file:
        new = pa.ipc.new_file if ending == ".arrow" else pa.ipc.new_stream
        with new(file, table.schema) as writer:
            writer.write_table(table)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.typed._BATCH_BYTES", 100_000)
    assert [rows.batch.num_rows for rows in rows_of(tmp_path / f"rows{ending}")] == [1000]


def test_large_columns_that_are_not_read_make_no_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    structs = [{"x": f"{i:01000}"} for i in range(1000)]
    path = write(tmp_path / "rows.parquet", pa.table({"a": structs, "a.b": range(1000), "ab": range(1000)}))
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.typed._BATCH_BYTES", 100_000)
    assert [rows.batch.num_rows for rows in rows_of(path, reading=Reading(columns=("a.b", "ab")))] == [1000]
    assert max(rows.batch.num_rows for rows in rows_of(path, reading=Reading(columns=("a",)))) <= 100


def test_parquet_row_groups_are_large(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(range(ROW_GROUP_ROWS + 1), pa.int64())})
    path = write(tmp_path / "rows.parquet", table)
    assert pyarrow.parquet.ParquetFile(path).metadata.num_row_groups == 2
    write(path, table, Writing(row_group_rows=BATCH_ROWS, compression="zstd"))
    metadata = pyarrow.parquet.ParquetFile(path).metadata
    assert metadata.num_row_groups == 17
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_row_group_has_no_more_rows_than_asked_for(tmp_path: Path) -> None:
    table = pa.table({"x": range(2500)})  # in one batch
    metadata = pyarrow.parquet.ParquetFile(
        write(tmp_path / "rows.parquet", table, Writing(row_group_rows=1000))
    ).metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [1000, 1000, 500]


@pytest.mark.parametrize("ending", TYPED)
def test_batches_whose_dictionaries_differ(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Arrow file can have only one dictionary for a column."""
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.sink._WAITING_BYTES", 1)
    batches = [pa.record_batch({"x": pa.array(["same", x]).dictionary_encode()}) for x in "abc"]
    path = write(tmp_path / f"rows{ending}", pa.Table.from_batches(batches))
    assert read(path)["x"].to_pylist() == ["same", "a", "same", "b", "same", "c"]


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".arrows"])
def test_compressions(tmp_path: Path, ending: str) -> None:
    table = pa.table({"x": pa.array(range(50_000))})
    sizes = [
        write(tmp_path / f"{name}{ending}", table, Writing(compression=name)).stat().st_size
        for name in ("none", "zstd", "lz4")
    ]
    assert max(sizes[1:]) < sizes[0]
    with pytest.raises(InvalidArgument, match=r"the compressions of .* are .*, not xz"):
        write(tmp_path / f"xz{ending}", table, Writing(compression="xz"))
    with pytest.raises(InvalidArgument, match=r"name the text file \.gz or \.zst"):
        write(tmp_path / "x.csv", table, Writing(compression="zstd"))


@pytest.mark.parametrize("ending", TYPED)
@pytest.mark.parametrize("what", ["foreign", "empty", "cut", "half"])
def test_a_truncated_or_foreign_file_is_named(tmp_path: Path, table: pa.Table, ending: str, what: str) -> None:
    path = write(tmp_path / f"rows{ending}", table)
    whole = path.read_bytes()
    path.write_bytes(
        {"foreign": b"a,b\n1,2\n" * 10, "empty": b"", "cut": whole[:-20], "half": whole[: len(whole) // 2]}[what]
    )
    if (ending, what) == (".arrows", "cut"):
        path.write_bytes(whole[:-2000])
    with pytest.raises(InvalidArgument, match=rf"cannot read .*rows{ending}: .* Is it cut off, or not \w+\? "):
        read(path)


def test_a_damaged_page_is_named(tmp_path: Path, table: pa.Table) -> None:
    path = write(tmp_path / "rows.parquet", table)
    damaged = bytearray(path.read_bytes())
    damaged[100:5000] = bytes(4900)
    path.write_bytes(damaged)
    with pytest.raises(InvalidArgument, match=r"cannot read .*rows\.parquet: "):
        read(path)


def test_types_of_typed_columns_are_cast(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet", pa.table({"a": pa.array([1, 300], pa.int64())}))
    (rows,) = rows_of(path, reading=Reading(types={"a": "uint8"}))
    assert rows.batch.column(0).to_pylist() == [1, None]
    assert rows.refused == {1: "column 'a': 300 does not fit uint8"}


def test_parquet_of_two_columns_of_one_name_is_not_written(tmp_path: Path) -> None:
    """Nothing could read it."""
    with pytest.raises(InvalidArgument, match=r"Parquet with two columns 'a' cannot be read; rename one"):
        write(tmp_path / "rows.parquet", pa.table([[1], [2]], ["a", "a"]))
    assert list(tmp_path.iterdir()) == []
