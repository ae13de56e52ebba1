"""How text is read, as the user chose: inferred types, decimal commas, formats of dates, comments, JSON arrays."""

from __future__ import annotations

import datetime
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import copy, read, rows_of, write

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.blocks import WithoutComments
from arroyo_udf_plugin.engine.connectors.cells import CellType, argument
from arroyo_udf_plugin.engine.connectors.json_arrays import ArrayLines
from arroyo_udf_plugin.engine.connectors.options import Reading, Writing
from arroyo_udf_plugin.engine.connectors.source import FileSource


def written(folder: Path, text: str, name: str = "in.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# ---- Inferred types --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        (["1", "NA", "-20"], pa.int64()),
        (["1", "2.5", "1e3"], pa.float64()),
        (["1.0", "2.0"], pa.float64()),
        (["12345678901234567890"], None),
        (["12345678901234567", "1.5"], None),
        (["0.12345678901234567890"], None),
        (["1e-9999", "1"], None),
        (["0.30000000000000004", "1e300", "9007199254740992"], pa.float64()),
        (["+49123", "49124"], None),
        (["true", "False"], pa.bool_()),
        (["0", "1"], pa.int64()),
        (["2024-01-31", "2023-12-01"], pa.date32()),
        (["2024-01-31 12:00", "2024-01-31T12:00:00.5"], pa.timestamp("us")),
        (["2024-01-31", "2024-01-31T12:00:00"], pa.timestamp("us")),
        (["2024-01-31T12:00:00Z"], pa.timestamp("us", "UTC")),
        (["2024-01-31T12:00:00Z", "2024-01-31T12:00:00"], None),
        (["01234", "5"], None),
        (["1", "x"], None),
        (["NA", ""], None),
        (['"1"', "2"], pa.int64()),
    ],
)
def test_a_type_that_all_of_the_first_rows_have(tmp_path: Path, cells: list[str], type_: pa.DataType | None) -> None:
    path = written(tmp_path, "a,b\n" + "".join(f"{cell},x\n" for cell in cells))
    with FileSource([path], Reading(infer_types=True)) as source:
        assert source.inferred == ({} if type_ is None else {"a": type_})
        assert isinstance(source.schema.field("a").type, CellType) == (type_ is None)
        (rows,) = list(source)
    assert rows.batch.num_rows == len(cells)
    assert not rows.refused


def test_a_named_type_wins_and_a_later_row_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", 8)
    path = written(tmp_path, "a,b\n1,2\n3,4\nx,y\n")
    (*_, rows) = rows_of(path, reading=Reading(infer_types=True, types={"b": "str"}))
    assert rows.refused == {1: "column 'a': 'x' is not int64 (the first rows are; --types a=str keeps text)"}
    assert rows.batch.column("b").to_pylist() == ["4", "y"]


def test_strings_of_json_can_be_dates(tmp_path: Path) -> None:
    path = written(
        tmp_path, '{"d":"2024-01-31","n":"5","x":1,"m":null}\n{"d":null,"n":"6","x":2,"m":"a"}\n', "in.jsonl"
    )
    with FileSource([path], Reading(infer_types=True)) as source:
        assert source.inferred == {"d": pa.date32()}
        (rows,) = list(source)
    assert rows.batch.column("d").to_pylist() == [datetime.date(2024, 1, 31), None]


# ---- Decimal commas, formats of dates --------------------------------------------------------------------------------

_GERMAN = Reading(delimiter=";", decimal_mark=",", date_formats=("%d.%m.%Y", "%d.%m.%Y %H:%M"))


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("1234,5", "float", 1234.5),
        ("-0,25", "decimal(10, 2)", "-0.25"),
        ("7", "int", 7),
        ("7,0", "int", 7),
        ("31.01.2024", "date", datetime.date(2024, 1, 31)),
        ("2024-01-31", "date", datetime.date(2024, 1, 31)),
        ("31.01.2024 12:30", "datetime", datetime.datetime(2024, 1, 31, 12, 30)),
        ("1.234,5", "float", None),
        ("1234.5", "float", None),
        ("31.02.2024", "date", None),
        ("31.01.24", "date", None),
    ],
)
def test_cells_as_elsewhere(tmp_path: Path, text: str, type_: str, value: Any) -> None:
    path = written(tmp_path, f"a;b\n{text};x\n")
    (rows,) = rows_of(path, reading=_GERMAN.__class__(**vars(_GERMAN) | {"types": {"a": type_}}))
    (found,) = rows.batch.column("a").to_pylist()
    assert (str(found) if type_.startswith("decimal") else found) == value
    assert bool(rows.refused) == (value is None)
    if value is None:
        assert rows.refused[0].startswith(f"column 'a': {text!r} is not ")
    (cells,) = rows_of(path, reading=_GERMAN)
    assert bool(argument(cells.batch.column(0), pa.field("a", rows.batch.schema.types[0])).refused) == (value is None)


def test_a_format_that_would_lose_the_zone_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a\n2024-01-31 12:00 UTC\n")
    with pytest.raises(InvalidArgument, match="forgets the zone; write %z"):
        read(path, reading=Reading(date_formats=("%Y-%m-%d %H:%M %Z",)))
    assert read(path, reading=Reading(date_formats=("%d %%Z",)))


def test_numbers_are_written_with_the_same_mark(tmp_path: Path) -> None:
    table = pa.table({"x": [1.5, None], "n": [1, 2]})
    writing = Writing(delimiter=";", decimal_mark=",")
    assert write(tmp_path / "out.csv", table, writing).read_text() == "x;n\n1,5;1\n;2\n"
    assert write(tmp_path / "comma.csv", table, Writing(decimal_mark=",")).read_text() == 'x,n\n"1,5",1\n,2\n'
    source = written(tmp_path, "a;b\n1,5;x\n")
    assert copy(source, tmp_path / "again.csv", _GERMAN, writing).read_text() == "a;b\n1,5;x\n"
    assert copy(source, tmp_path / "other.csv", _GERMAN, Writing()).read_text() == 'a,b\n"1,5",x\n'


def test_inferred_types_know_the_mark(tmp_path: Path) -> None:
    path = written(tmp_path, "a;d\n1,5;31.01.2024\n")
    with FileSource([path], _GERMAN.__class__(**vars(_GERMAN) | {"infer_types": True})) as source:
        assert source.inferred == {"a": pa.float64(), "d": pa.date32()}


def test_a_schema_keeps_the_dialect(tmp_path: Path) -> None:
    with FileSource([written(tmp_path, "a\n1\n")], _GERMAN) as source:
        type_ = source.schema.field("a").type
    assert CellType.__arrow_ext_deserialize__(pa.string(), type_.__arrow_ext_serialize__()) == type_


# ---- Comments --------------------------------------------------------------------------------------------------------


def test_comments_are_no_rows(tmp_path: Path) -> None:
    path = written(tmp_path, '# it"s made by hand\na,b\n1,"x\n#y"\n#2,y\n3,#z\n#')
    assert read(path, reading=Reading(comment="#")).to_pylist() == [{"a": "1", "b": "x\n#y"}, {"a": "3", "b": "#z"}]
    for wrong in ("##", ",", '"'):
        with pytest.raises(InvalidArgument, match="it must be one ASCII character, and no other mark"):
            read(path, reading=Reading(comment=wrong))


def test_a_comment_behind_a_mark_of_utf8_is_no_header(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff# made by hand\na,b\n1,2\n")
    assert read(path, reading=Reading(comment="#")).to_pylist() == [{"a": "1", "b": "2"}]


def test_a_quote_within_a_cell_hides_no_comment(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,b\n5" pipe,2\n# 3\n"4\n#,""5",6\n#7\n')
    rows = [{"a": '5" pipe', "b": "2"}, {"a": '4\n#,"5', "b": "6"}]
    assert read(path, reading=Reading(comment="#")).to_pylist() == rows


def test_a_line_without_an_end_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.blocks.RECORD_BYTES", 20)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", 8)
    stream = io.BytesIO(b"x" * 1000)
    with pytest.raises(InvalidArgument, match="the file: a row is longer than"):
        WithoutComments(stream.read, "the file", b"#", b",", b'"').read(8)
    assert stream.tell() < 100


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([b"a", b"#", b",", b"\n", b'"', b"#\n", b"\n#"])).map(b"".join), st.integers(1, 5))
def test_comments_in_any_pieces(data: bytes, size: int) -> None:
    whole = WithoutComments(io.BytesIO(data).read, "", b"#", b",", b'"')
    stream = io.BytesIO(data)
    pieces = WithoutComments(lambda _: stream.read(size), "", b"#", b",", b'"')
    assert b"".join(iter(lambda: pieces.read(1), b"")) == b"".join(iter(lambda: whole.read(1 << 20), b""))


# ---- JSON arrays -----------------------------------------------------------------------------------------------------

_ITEMS = st.lists(
    st.dictionaries(st.text(max_size=2), st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers())),
    max_size=4,
)


@settings(max_examples=200, deadline=None)
@given(_ITEMS, st.sampled_from([None, 1]), st.integers(1, 9), st.booleans())
def test_an_array_is_lines(items: list[Any], indent: int | None, size: int, ascii_: bool) -> None:
    text = json.dumps(items, indent=indent, ensure_ascii=ascii_).encode(errors="surrogatepass")
    try:
        text.decode()
    except UnicodeDecodeError:
        return
    stream = io.BytesIO(b" \n" + text + b"\n")
    if size < 3:  # the first bytes say that it is an array
        stream = io.BytesIO(text)
    lines = ArrayLines(lambda _: stream.read(size), "in.json").read
    read_ = b"".join(iter(lambda: lines(1), b""))
    assert [json.loads(line) for line in read_.split(b"\n")[:-1]] == items


def test_an_array_as_an_input(tmp_path: Path) -> None:
    path = written(tmp_path, '[\n  {"a": 1},\n  {"a": "x"},\n  5\n]\n', "in.json")
    (rows,) = rows_of(path)
    assert rows.batch.column(0).null_count == 1
    assert rows.refused == {2: "the line is not a JSON object: '5'"}


def test_lines_are_no_array(tmp_path: Path) -> None:
    path = written(tmp_path, '[{"a": 1}]\n{"a": 2}\n', "in.jsonl")
    (rows,) = rows_of(path)
    assert rows.refused == {0: "the line is not a JSON object: '[{\"a\": 1}]'"}


def test_an_item_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.json_arrays.RECORD_BYTES", 20)
    stream = io.BytesIO(b'["' + b"x" * 1000)
    with pytest.raises(InvalidArgument, match=r"in\.json: item 1 is not JSON, or longer than"):
        ArrayLines(lambda _: stream.read(8), "in.json").read(8)
    assert stream.tell() < 100


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"a":1}', "in.json: the array is cut off, or item 1 is not JSON"),
        ('[{"a":1},{"a":]', "in.json: the array is cut off, or item 2 is not JSON"),
        ('[{"a":1} {"a":2}]', "in.json: item 1: write a comma or ] behind it"),
        ('[{"a":1}] x', "in.json: something follows the array"),
        ("[]", "in.json is empty"),
    ],
)
def test_an_array_that_is_none(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        rows_of(written(tmp_path, text, "in.json"))
