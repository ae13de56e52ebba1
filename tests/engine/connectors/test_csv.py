"""CSV and TSV: every cell keeps its text, null and "" stay apart, and what cannot be read is named by its row."""

from __future__ import annotations

import csv
import datetime
import io
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streams import copy, read, rows_of, write

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors import blocks
from arroyo_udf_plugin.engine.connectors.options import Reading, Writing
from arroyo_udf_plugin.engine.connectors.sink import FileSink

KEPT = 'id,code,note,"a ""b"", c"\n007,NA,"",1.50\n1e3,"x,y","say ""hi""",2\n,"NA","two\nlines",NA\n'


def test_csv_to_csv_keeps_every_cell(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(KEPT)
    assert copy(source, tmp_path / "out.csv").read_text() == KEPT


def test_unquoted_na_and_empty_are_null_and_quoted_ones_are_text(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text('a,b\nNA,"NA"\n,""\n"x","1"\n')
    assert read(source).to_pydict() == {"a": [None, None, "x"], "b": ["NA", "", "1"]}


def test_null_values_replace_the_list(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("a,b\nNA,-\n,-999\n")
    reading = Reading(null_values=("-", "-999"))
    assert read(source, reading=reading).to_pydict() == {"a": ["NA", ""], "b": [None, None]}
    assert read(source, reading=Reading(null_values=())).to_pydict() == {"a": ["NA", ""], "b": ["-", "-999"]}


def test_a_zip_code_keeps_its_zero_in_a_typed_file(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("zip,phone,id\n01234,+4912,12345678901234567890\nNA,,1.50\n")
    table = read(copy(source, tmp_path / "out.parquet"))
    assert table.schema.types == [pa.string()] * 3
    assert table.to_pydict() == {
        "zip": ["01234", None],
        "phone": ["+4912", None],
        "id": ["12345678901234567890", "1.50"],
    }


def test_types_that_are_asked_for(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("n,day,zip\n1.0,2024-01-31,01234\n2.5,x,5\n")
    (rows,) = rows_of(source, reading=Reading(types={"n": "int", "day": pa.date32()}))
    assert [column.type for column in rows.batch.columns[:2]] == [pa.int64(), pa.date32()]
    assert rows.batch.column(0).to_pylist() == [1, None]
    assert rows.refused == {1: "column 'n': '2.5' is not int64"}


def test_times_have_pythons_name(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("t\n12:34:56\n\n")
    table = read(source, reading=Reading(types={"t": "time"}))
    assert table.schema.types == [pa.time64("us")]
    assert table.column(0).to_pylist()[0] == datetime.time(12, 34, 56)


def test_types_of_a_schema(tmp_path: Path) -> None:
    columns = {
        "n": pa.array([], pa.int32()),
        "zip": pa.array(["x"])[:0].dictionary_encode(),
        "other": pa.array([], pa.int8()),
    }
    like = write(tmp_path / "like.arrow", pa.table(columns))
    source = tmp_path / "in.csv"
    source.write_text("n,zip\n1,01234\n")
    table = read(source, reading=Reading(schema=like))
    assert table.schema.types == [pa.int32(), pa.string()]
    with pytest.raises(InvalidArgument, match="no type 'integer'; write int, float"):
        read(source, reading=Reading(types={"n": "integer"}))
    with pytest.raises(InvalidArgument, match=r"in\.csv: column 'n': a text cell cannot be list<item: int64>"):
        rows_of(source, reading=Reading(types={"n": pa.list_(pa.int64())}))
    with pytest.raises(InvalidArgument, match="no column 'm'; the columns are n, zip"):
        read(source, reading=Reading(types={"m": "int"}))


def test_an_empty_text_is_no_null_on_the_way_out(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array(["", None, "NA", "a"]), "x": [1.5, None, 2.0, 3.0]})
    path = write(tmp_path / "out.csv", table)
    assert path.read_text() == 't,x\n"",1.5\n,\n"NA",2\na,3\n'
    assert read(path)["t"].to_pylist() == ["", None, "NA", "a"]


def test_a_number_that_would_read_as_null_gets_quotes(tmp_path: Path) -> None:
    writing = Writing(null_values=("-999",))
    path = write(tmp_path / "out.csv", pa.table({"x": [-999, 1, None], "t": ["", "a", None]}), writing)
    assert path.read_text() == 'x,t\n"-999",\n1,a\n-999,-999\n'


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
CELL = st.one_of(st.none(), st.sampled_from(["", "NA", '"', '""', "a,b", "\n", "\r\n", " ", '5" pipe']), TEXT)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 3).flatmap(
        lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), max_size=6).map(lambda r: (n, r))
    )
)
def test_every_text_survives(tmp_path: Path, drawn: tuple[int, list[list[str | None]]]) -> None:
    n, rows = drawn
    columns = {f"c{i}": pa.array([row[i] for row in rows], pa.string()) for i in range(n)}
    for name in ("out.csv", "out.tsv"):
        path = write(tmp_path / name, pa.table(columns))
        assert read(path).to_pydict() == {name: column.to_pylist() for name, column in columns.items()}
        assert copy(path, tmp_path / f"again.{name}").read_bytes() == path.read_bytes()
    other = copy(tmp_path / "out.csv", tmp_path / "other.tsv")
    assert other.read_bytes() == (tmp_path / "out.tsv").read_bytes()


QUOTED = st.lists(st.lists(TEXT.filter(lambda text: "\r" not in text), min_size=2, max_size=2), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(QUOTED, st.integers(1, 40), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_rows_are_whole_wherever_blocks_end(tmp_path: Path, rows: list[list[str]], size: int, quoting: int) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=quoting).writerows([["a", "b"], *rows])  # type: ignore[arg-type]
    path = tmp_path / "in.csv"
    path.write_text(text.getvalue(), newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", size)
        found = read(path, reading=Reading(null_values=())).to_pylist()
    assert [[row["a"], row["b"]] for row in found] == rows


@pytest.mark.parametrize("size", range(1, 40, 3))
def test_a_lonely_quote_within_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    path = tmp_path / "in.csv"
    path.write_text('a,b\n5" pipe,"x\ny"\n3" pipe,"z\n"\n1,2\n')
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
    assert read(path).to_pydict() == {"a": ['5" pipe', '3" pipe', "1"], "b": ["x\ny", "z\n", "2"]}
    assert read(path, reading=Reading(columns=("a",))).to_pydict() == {"a": ['5" pipe', '3" pipe', "1"]}


@pytest.mark.parametrize("text", ['a,b\n1,"x\n', 'a,b\n1,"x\n2,3\n', 'a,b\n1,"x', 'a,b\n1,"x""\n2'])
def test_a_quote_that_is_not_closed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "in.csv"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=r"in\.csv: a quote is not closed; --quote '' reads quotes as text"):
        read(path)


def test_quotes_as_text(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('a,b\n1,"x\n"2",y\n')
    assert read(path, reading=Reading(quote="")).to_pydict() == {"a": ["1", '"2"'], "b": ['"x', "y"]}


@pytest.mark.parametrize(("row", "n"), [("2,3,4", "3 cells"), ("2", "1 cell")])
def test_a_row_of_another_width_is_named(tmp_path: Path, row: str, n: str) -> None:
    path = tmp_path / "in.csv"
    path.write_text(f'a,b\n1,"x\ny"\n\n{row}\n5,6\n')
    with pytest.raises(InvalidArgument, match=rf"in\.csv: row 2: it has {n}, and the header has 2: '{row}'"):
        read(path)


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes("a,b\n1,x\n2,Müller\n".encode("latin1"))
    with pytest.raises(InvalidArgument, match=r"in\.csv: row 2: column 'b': b'M\\xfcller' is not UTF-8; convert the"):
        read(path)
    path.write_bytes("ä,b\n1,x\n".encode("latin1"))
    with pytest.raises(InvalidArgument, match=r"in\.csv: the first line is not UTF-8"):
        read(path)
    path.write_bytes("ä,b\n1,x\n".encode("utf-16"))
    with pytest.raises(InvalidArgument, match=r"in\.csv is UTF-16; convert it"):
        read(path)


def test_names_with_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('\n"a\nb","c,""d"""\n1,"x\0y"\n')
    assert read(path).to_pydict() == {"a\nb": ["1"], 'c,"d"': ["x\0y"]}
    assert copy(path, tmp_path / "out.csv").read_text() == path.read_text()[1:].replace('"x\0y"', "x\0y")


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    assert read(path).to_pydict() == {"a": ["1"], "b": ["2"]}


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("")
    with pytest.raises(InvalidArgument, match=r"in\.csv is empty; a CSV file begins with its columns' names"):
        read(path)


def test_an_empty_line_of_one_column_is_a_null(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("a\n1\n\n3\n")
    assert read(path).to_pydict() == {"a": ["1", None, "3"]}
    assert copy(path, tmp_path / "out.csv").read_text() == path.read_text()


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("a,a,b\n1,2,3\n")
    assert copy(path, tmp_path / "out.csv").read_text() == path.read_text()
    with pytest.raises(InvalidArgument, match=r"in\.csv: there are 2 columns 'a'; the columns are a, a, b"):
        read(path, reading=Reading(columns=("b", "a")))
    assert read(path, reading=Reading(columns=("b",))).to_pydict() == {"b": ["3"]}


def test_dialects(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("1;'x;y'\n2;z\n")
    reading = Reading(delimiter=";", quote="'", header=False)
    assert read(path, reading=reading).to_pydict() == {"f0": ["1", "2"], "f1": ["x;y", "z"]}
    same = Writing(delimiter=";", quote="'", header=False)
    assert copy(path, tmp_path / "out.csv", reading, same).read_text() == path.read_text()
    assert copy(path, tmp_path / "out.tsv", reading).read_text() == "f0\tf1\n1\tx;y\n2\tz\n"
    with pytest.raises(InvalidArgument, match="column 'f1': 'x;y' cannot be written without quotes"):
        copy(path, tmp_path / "none.csv", reading, Writing(delimiter=";", quote=""))
    with pytest.raises(InvalidArgument, match=r"--delimiter '::': it must be one ASCII character"):
        read(path, reading=Reading(delimiter="::"))
    with pytest.raises(InvalidArgument, match="--delimiter and --quote are both '\"'"):
        read(path, reading=Reading(delimiter='"'))


def test_another_delimiter_is_suggested(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("a;b\n1;2\n")
    with pytest.raises(
        InvalidArgument, match=r"no column 'b'; the columns are a;b; is the delimiter .* --delimiter ';'"
    ):
        read(path, reading=Reading(columns=("b",)))


def test_csv_cannot_hold_lists(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"column .l. of type list<item: int64>; write \.jsonl, \.parquet"):
        write(tmp_path / "out.csv", pa.table({"l": [[1]]}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_decimals_have_plain_digits(tmp_path: Path, ending: str) -> None:
    """Arrow writes zero with nine decimal places as 0E-9."""
    numbers = [Decimal(0), None, Decimal("-1E-9"), Decimal("1.5")]
    path = write(tmp_path / f"out{ending}", pa.table({"a": pa.array(numbers, pa.decimal128(20, 9))}))
    texts = ["0.000000000", None, "-0.000000001", "1.500000000"]
    assert read(path)["a"].to_pylist() == texts


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_intervals_are_refused_before_a_row_is_written(tmp_path: Path, ending: str) -> None:
    schema = pa.schema([("a", pa.month_day_nano_interval())])
    with pytest.raises(InvalidArgument, match=r"cannot hold column 'a' of type month|cannot write .* month_day_nano"):
        FileSink(tmp_path / f"out{ending}", schema)
