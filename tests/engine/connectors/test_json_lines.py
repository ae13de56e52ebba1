"""Newline JSON: values keep their kind, and a bad line is that row's error."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streams import copy, read, rows_of, write

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.cells import argument
from arroyo_udf_plugin.engine.connectors.options import Reading


def lines(folder: Path, *values: object) -> Path:
    path = folder / "in.jsonl"
    path.write_text("".join(v + "\n" if isinstance(v, str) else json.dumps(v) + "\n" for v in values))
    return path


def test_values_keep_their_kind(tmp_path: Path) -> None:
    first = {"n": 1, "x": 1.5, "t": "01234", "b": True, "l": [1, None], "s": {"y": [1]}, "big": 10**20, "none": None}
    second: dict[str, Any] = {"n": None, "x": 2, "t": "\0ä", "b": False, "l": [], "s": "text", "big": 1.5, "none": [{}]}
    source = lines(tmp_path, first, second)
    types = read(source).schema.types
    assert types[:2] == [pa.int64(), pa.float64()]
    assert types[3:5] == [pa.bool_(), pa.list_(pa.int64())]
    written = copy(source, tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in written] == [first, second]


VALUE = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=4)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=4,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=5))
def test_every_value_survives(tmp_path: Path, values: list[tuple[object, object]]) -> None:
    objects = [{"a": a, "b": b} for a, b in values]
    written = copy(lines(tmp_path, *objects), tmp_path / "out.jsonl").read_text().split("\n")[:-1]
    assert [json.loads(line) for line in written] == objects


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"a":2,', "the line is not JSON: Expecting property name enclosed in double quotes at column 8"),
        ("[1]", "the line is not a JSON object"),
        ('{"a": NaN}', "the line cannot be read as JSON: NaN is not JSON"),
        ('{"a": "x"}', r'column .a.: "x" is not int64 \(the first lines decide; --types can name another type\)'),
        ('{"a": 12345678901234567890}', "column 'a': 12345678901234567890 is not int64"),
        ('{"a": true}', "column 'a': true is not int64"),
        ('{"a": 2.5}', "column 'a': 2.5 is not int64"),
        ('{"b": 1}', "the line has a key 'b' that the first lines lack .name it in --types.: '{\"b\": 1}'"),
        pytest.param("[" * 100_000, "the line", id="deep"),
    ],
)
def test_a_bad_line_is_its_rows_error_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, why: str
) -> None:
    monkeypatch.setattr(
        "arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", 20
    )  # the first lines decide the types
    source = lines(tmp_path, {"a": 1}, {"a": 1}, "", line, {"a": 5})
    refused = {rows.first + at: text for rows in rows_of(source) for at, text in rows.refused.items()}
    assert list(refused) == [4]
    assert re.search(why, refused[4])
    values = {rows.first + at: v for rows in rows_of(source) for at, v in enumerate(rows.batch.column(0).to_pylist())}
    assert values == {1: 1, 2: 1, 4: None, 5: 5}


def test_a_line_that_is_not_utf8_is_its_rows_error(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a":"x"}\n{"a":"\xff"}\n{"a":"\\ud800"}\n{"a":"z"}\n')
    (rows,) = rows_of(path)
    assert rows.refused[1] == 'the line is not UTF-8: \'{"a":"\ufffd"}\''
    assert list(rows.refused) == [1, 2]
    assert rows.batch.column(0).to_pylist() == ["x", None, None, "z"]


def test_half_a_surrogate_pair_is_its_rows_error(tmp_path: Path) -> None:
    """It is no text, so the error's text must not have it either."""
    (rows,) = rows_of(lines(tmp_path, '{"a":"x"}', r'{"a":"\udc80"}', r'{"a":[1, "\ud800"]}'))
    assert list(rows.refused) == [1, 2]
    assert rows.refused[1].encode().startswith(rb"column 'a': " + rb'"\udc80" is not ')


@pytest.mark.parametrize(("text", "why"), [("", "in.jsonl is empty"), ("5\n6\n", "line 1 is not a JSON object")])
def test_files_that_are_no_newline_json(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=f"{why}.*; a newline JSON file has one object in each line"):
        read(path)


def test_types_and_arguments_of_json_cells(tmp_path: Path) -> None:
    source = lines(tmp_path, {"zip": "01234", "day": "2024-01-31", "s": {"x": 1}, "l": [1.0]}, {"new": 5})
    (rows,) = rows_of(source, reading=Reading(types={"zip": "str", "day": "date", "late": "int"}))
    assert rows.batch.column("zip").to_pylist() == ["01234", None]
    assert rows.batch.column("day").to_pylist() == [datetime.date(2024, 1, 31), None]
    assert rows.batch.column("late").to_pylist() == [None, None]
    assert argument(rows.batch.column("new"), pa.field("n", pa.int64())).array.to_pylist() == [None, 5]
    struct = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    assert argument(rows.batch.column("s"), pa.field("s", struct)).array.to_pylist() == [{"x": 1}, None]
    other = argument(rows.batch.column("s"), pa.field("s", pa.struct([pa.field("y", pa.int32())])))
    assert list(other.refused) == [0]
    assert argument(rows.batch.column("l"), pa.field("l", pa.list_(pa.int64()))).array.to_pylist() == [[1], None]


def test_json_to_other_formats(tmp_path: Path) -> None:
    source = lines(tmp_path, {"n": 1, "t": "01234", "s": {"x": 1}}, {"n": None, "t": "", "s": None})
    assert copy(source, tmp_path / "out.csv").read_text() == 'n,t,s\n1,01234,"{""x"":1}"\n,"",\n'
    assert read(copy(source, tmp_path / "out.parquet")).to_pydict() == {
        "n": [1, None],
        "t": ["01234", ""],
        "s": ['{"x":1}', None],
    }


def test_typed_values_as_json(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 31, 12, 30, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "moment": pa.array([moment, None], pa.timestamp("ms", "UTC")),
            "amount": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "x": [float("nan"), float("-inf")],
            "nested": [[{"day": moment.date()}], None],
            "d": pa.array(["a", None]).dictionary_encode(),
        }
    )
    path = write(tmp_path / "out.jsonl", table)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {
            "moment": "2024-01-31T12:30:00.000Z",
            "amount": "1.50",
            "x": "NaN",
            "nested": [{"day": "2024-01-31"}],
            "d": "a",
        },
        {"moment": None, "amount": None, "x": "-Infinity", "nested": None, "d": None},
    ]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (pa.table([[1], [2]], ["a", "a"]), "JSON cannot hold two columns 'a'; rename one"),
        (
            pa.table({"a": pa.array([[2**62]], pa.list_(pa.timestamp("s")))}),
            r"cannot write .*out\.jsonl: column 'a': JSON has times of the years 0 to 9999, and one is outside",
        ),
        (pa.table({"a": [[b"x"]]}), r"JSON cannot hold column 'a' of type list<item: binary>; write \.parquet"),
    ],
)
def test_what_json_cannot_hold(tmp_path: Path, table: pa.Table, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        write(tmp_path / "out.jsonl", table)
    assert list(tmp_path.iterdir()) == []


def test_with_declared_columns_further_keys_are_ignored_whatever_the_first_lines_have(tmp_path: Path) -> None:
    """Before, the first line had to have one, too."""
    reading = Reading(columns=("a", "b"), types={"a": "int64", "b": "int64"})
    source = lines(tmp_path, {"a": 1, "b": 2}, {"a": 3, "b": 4, "c": 5}, {"c": 6})
    assert read(source, reading=reading).to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": None, "b": None}]
