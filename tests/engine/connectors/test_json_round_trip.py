"""Newline JSON that is written is read as it was: all types, nested, with nulls at each level."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streams import read, rows_of, write

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.cells import argument
from arroyo_udf_plugin.engine.connectors.options import Reading, Writing

# ---- The property ----------------------------------------------------------------------------------------------------

_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896  # of the years 0 to 9999
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6}
_UNITS = ("s", "ms", "us", "ns")
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


def _int(bits: int, signed: bool) -> st.SearchStrategy[Any]:
    least = -(2 ** (bits - 1)) if signed else 0
    return st.integers(least, least + 2**bits - 1)


def _instants(unit: str) -> st.SearchStrategy[Any]:
    if unit == "ns":
        return st.integers(-(2**63) + 10**9, 2**63 - 1)  # Arrow parses no time of the first second
    return st.integers(_FIRST_DAY * _PER_DAY[unit], (_LAST_DAY + 1) * _PER_DAY[unit] - 1)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Any]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda n: Decimal(n).scaleb(-scale))


PLAIN: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.null(), st.none()),
    (pa.bool_(), st.booleans()),
    *((pa.type_for_alias(f"int{bits}"), _int(bits, True)) for bits in (8, 16, 32, 64)),
    *((pa.type_for_alias(f"uint{bits}"), _int(bits, False)) for bits in (8, 16, 32, 64)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), _TEXTS),
    (pa.large_string(), _TEXTS),
    (pa.date32(), st.integers(_FIRST_DAY, _LAST_DAY)),
    *((pa.timestamp(unit), _instants(unit)) for unit in _UNITS),
    *((pa.timestamp(unit, "America/New_York"), _instants(unit)) for unit in _UNITS),
    *((pa.time32(unit), st.integers(0, _PER_DAY[unit] - 1)) for unit in ("s", "ms")),
    (pa.time64("us"), st.integers(0, _PER_DAY["us"] - 1)),
    (pa.time64("ns"), st.integers(0, _PER_DAY["us"] * 1000 - 1)),
    *((pa.duration(unit), _int(64, True)) for unit in _UNITS),
    (pa.decimal128(38, 9), _decimals(28, 9)),
    (pa.decimal128(5, 5), _decimals(5, 5)),
    (pa.decimal256(60, 2), _decimals(28, 2)),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", 'b"', ""])),
]
_Kind = tuple[pa.DataType, st.SearchStrategy[Any]]


@st.composite
def _nested(draw: st.DrawFn, inner: st.SearchStrategy[_Kind]) -> _Kind:
    type_, values = draw(inner)
    values = values | st.none()
    match draw(st.sampled_from(["list", "large_list", "fixed", "map", "struct"])):
        case "list":
            return pa.list_(type_), st.lists(values, max_size=3)
        case "large_list":
            return pa.large_list(type_), st.lists(values, max_size=3)
        case "fixed":
            return pa.list_(type_, 2), st.lists(values, min_size=2, max_size=2)
        case "map":
            return pa.map_(pa.string(), type_), st.lists(st.tuples(_TEXTS, values), max_size=2)
        case _:
            fields = [("v", type_, values)]
            if draw(st.booleans()):
                more, of_more = draw(inner)
                fields.append(('a "b', more, of_more | st.none()))
            columns = {name: each for name, _, each in fields}
            return pa.struct([(name, each) for name, each, _ in fields]), st.fixed_dictionaries(columns)


_MAPS = pa.map_(pa.string(), pa.list_(pa.null(), 2))
_plain_kinds = st.sampled_from(PLAIN)
KINDS = st.recursive(_plain_kinds, _nested, max_leaves=4)


@st.composite
def _columns(draw: st.DrawFn, kinds: st.SearchStrategy[_Kind]) -> pa.Array:
    type_, values = draw(kinds)
    array = pa.array(draw(st.lists(values | st.none(), min_size=1, max_size=6)), type_)
    return array[draw(st.integers(0, 1)) :]


def _again(folder: Path, array: pa.Array, how: str | None) -> tuple[str, pa.Array, str]:
    """The text of a column, what is read of it, and that written again."""
    path = write(folder / "out.jsonl", pa.table({"x": array}), Writing(timestamps=how))
    text = path.read_text()
    if not text:
        return "", array, ""
    (rows,) = rows_of(path, reading=Reading(types={"x": array.type}, timestamps=how))
    assert not rows.refused
    found = rows.batch.column(0)
    return text, found, write(folder / "again.jsonl", pa.table({"x": found}), Writing(timestamps=how)).read_text()


@pytest.mark.parametrize("how", [None, "rfc3339"])
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(array=_columns(KINDS))
def test_what_is_written_is_read(tmp_path: Path, how: str | None, array: pa.Array) -> None:
    text, found, again = _again(tmp_path, array, how)
    for line in text.split("\n")[:-1]:
        json.loads(line)
    assert again == text
    if text:  # else nothing was read, and pyarrow finds some of its own slices without rows invalid
        found.validate(full=True)
    # NaN is not equal to itself, nor a dictionary to another one of the same values.
    if '"NaN"' not in text and "dictionary" not in str(array.type):
        assert found.equals(array)


@pytest.mark.parametrize(("type_", "values"), PLAIN, ids=[str(type_) for type_, _ in PLAIN])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_each_type_in_a_struct(
    tmp_path: Path, type_: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    struct = pa.struct([("v", type_), ("l", pa.list_(type_))])
    of_struct = st.fixed_dictionaries({"v": values | st.none(), "l": st.none() | st.lists(values | st.none())})
    array = data.draw(_columns(st.just((struct, of_struct))))
    text, found, again = _again(tmp_path, array, None)
    assert again == text
    assert '"NaN"' in text or pa.types.is_dictionary(type_) or found.equals(array)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), unit=st.sampled_from(_UNITS), zone=st.sampled_from([None, "UTC"]))
def test_milliseconds_are_read(tmp_path: Path, data: st.DataObject, unit: str, zone: str | None) -> None:
    """Finer times lose what is left over."""
    struct = pa.struct([("at", pa.timestamp(unit, zone))])
    times = data.draw(st.lists(st.fixed_dictionaries({"at": _instants(unit)}), min_size=1, max_size=5))
    _, found, _ = _again(tmp_path, pa.array(times, struct), "unix_millis")
    per_ms = {"us": 1000, "ns": 10**6}.get(unit, 1)
    wanted = [time["at"] // per_ms * per_ms for time in times]
    assert found.flatten()[0].cast(pa.int64()).to_pylist() == wanted


def test_maps_to_lists_of_nulls_do_not_end_the_process(tmp_path: Path) -> None:
    array = pa.array([None, [("a", [None, None]), ("b", None)], [], [("c", [None, None])]], _MAPS)
    for slice_ in (array, array[1:], array[3:]):
        text, found, _ = _again(tmp_path, slice_, None)
        assert found.equals(slice_)
    assert text == '{"x":[["c",[null,null]]]}\n'


# ---- As functions get it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (
            pa.struct([("v", pa.timestamp("us")), ("d", pa.date32()), ("t", pa.duration("us"))]),
            {"v": 1, "d": 2, "t": 3},
        ),
        (pa.struct([("m", pa.decimal128(38, 9)), ("x", pa.float64())]), {"m": Decimal("0.5"), "x": float("inf")}),
        (pa.list_(pa.timestamp("us", "UTC")), [1, None, 2]),
        (pa.list_(pa.list_(pa.decimal128(10, 2))), [[Decimal("1.25")], None, []]),
        (pa.list_(pa.struct([("v", pa.duration("s"))])), [{"v": 5}, None, {"v": None}]),
    ],
)
def test_an_argument_without_a_named_type(tmp_path: Path, type_: pa.DataType, value: object) -> None:
    array = pa.array([value, None], type_)
    (rows,) = rows_of(write(tmp_path / "out.jsonl", pa.table({"s": array})))
    done = argument(rows.batch.column(0), pa.field("s", type_))
    assert not done.refused
    assert done.array.equals(array)


# ---- The form --------------------------------------------------------------------------------------------------------

_AT = pa.array([1_356_998_400_123_456], pa.int64())


@pytest.mark.parametrize(
    ("type_", "how", "text"),
    [
        (pa.timestamp("us"), None, '"2013-01-01T00:00:00.123456"'),
        (pa.timestamp("us"), "rfc3339", '"2013-01-01T00:00:00.123456Z"'),
        (pa.timestamp("us"), "unix_millis", "1356998400123"),
        (pa.timestamp("us", "America/New_York"), None, '"2013-01-01T00:00:00.123456Z"'),
        (pa.timestamp("us", "America/New_York"), "unix_millis", "1356998400123"),
        (pa.duration("us"), None, '"P15706DT0.123456S"'),
    ],
)
def test_one_form_at_each_level(tmp_path: Path, type_: pa.DataType, how: str | None, text: str) -> None:
    values = _AT.view(type_)
    table = pa.table(
        {
            "x": values,
            "s": pa.StructArray.from_arrays([values], ["v"]),
            "l": pa.ListArray.from_arrays([0, 1], values),
            "m": pa.MapArray.from_arrays([0, 1], pa.array(["k"]), values),
        }
    )
    path = write(tmp_path / "out.jsonl", table, Writing(timestamps=how))
    assert path.read_text() == f'{{"x":{text},"s":{{"v":{text}}},"l":[{text}],"m":[["k",{text}]]}}\n'


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "PT0S"),
        (10**6, "PT1S"),
        (-1_500_000, "-PT1.5S"),
        (86_400 * 10**6, "P1D"),
        ((86_400 + 2 * 3600 + 3 * 60) * 10**6, "P1DT2H3M"),
        (1, "PT0.000001S"),
    ],
)
def test_durations_as_in_iso_8601(tmp_path: Path, microseconds: int, text: str) -> None:
    path = write(tmp_path / "out.jsonl", pa.table({"x": pa.array([microseconds], pa.duration("us"))}))
    assert path.read_text() == f'{{"x":"{text}"}}\n'


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("1000000", pa.duration("us"), 1_000_000),  # as they were written once
        ("0:00:01", pa.duration("us"), 1_000_000),
        ("1 day, 2:00:00.500000", pa.duration("ms"), 93_600_500),
        ("-1 day, 23:59:59", pa.duration("s"), -1),
        ("PT-1H-30M", pa.duration("s"), -5400),
        ("P2W", pa.duration("s"), 14 * 86_400),
        ("2013-01-01 00:00:00.5", pa.timestamp("ms"), 1_356_998_400_500),
        ("2013-01-01 00:00:00-0500", pa.timestamp("s", "UTC"), 1_357_016_400),
    ],
)
def test_other_forms_are_read(tmp_path: Path, text: str, type_: pa.DataType, value: int) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"x": text, "s": {"v": text}}) + "\n")
    (rows,) = rows_of(tmp_path / "in.jsonl", reading=Reading(types={"x": type_, "s": pa.struct([("v", type_)])}))
    assert not rows.refused
    assert rows.batch.column(0).cast(pa.int64()).to_pylist() == [value]
    assert rows.batch.column(1).flatten()[0].cast(pa.int64()).to_pylist() == [value]


# ---- What does not fit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "type_", "why"),
    [
        ({"v": "x"}, "struct<v: datetime>", "column 's.v': 'x' is not timestamp[us]"),
        ({"v": [{"w": 1}, {"w": 2.5}]}, "struct<v: list<struct<w: int>>>", "column 's.v[1].w': '2.5' is not int64"),
        ([1, "x"], "list<int>", "column 's[1]': 'x' is not int64"),
        ({"v": 1, "z": 2}, "struct<v: int>", "column 's': it has a field 'z', and struct<v: int64> has none"),
        ({}, "struct<v: int64 not null>", "column 's.v': null, where the type has no nulls"),
        ("x", "struct<v: int>", "column 's': \"x\" is not struct<v: int64>"),
        (["true"], "list<bool>", None),
        ([1], "list<bool>", "column 's[0]': 1 is not bool"),
        (0.0, "bool", "column 's': 0.0 is not bool"),
        ("PT1.5S", "duration[s]", "column 's': 'PT1.5S' is not duration[s]"),
        ("P", "timedelta", "column 's': 'P' is not duration[us]"),
        ("PT", "timedelta", "column 's': 'PT' is not duration[us]"),
        ("P1Y", "timedelta", "column 's': 'P1Y' is not duration[us]"),
        (["\ud800"], "list<str>", "column 's[0]': \"\\ud800\" is not string"),
    ],
)
def test_an_error_names_the_field(tmp_path: Path, value: object, type_: str, why: str | None) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"n": n, "s": each}) + "\n" for n, each in enumerate([None, value, None])))
    (rows,) = rows_of(path, reading=Reading(types={"s": type_}))
    assert rows.refused == ({} if why is None else {1: why})
    assert rows.batch.column(0).to_pylist() == [0, 1, 2]
    assert rows.batch.column(1).is_null().to_pylist() == [True, why is not None, True]


def test_lists_of_a_size_without_null_items_can_be_null(tmp_path: Path) -> None:
    type_ = pa.list_(pa.field("item", pa.int64(), nullable=False), 2)
    (tmp_path / "in.jsonl").write_text('{"x":[1,2]}\n{"x":null}\n{"x":[1,null]}\n')
    (rows,) = rows_of(tmp_path / "in.jsonl", reading=Reading(types={"x": type_}))
    assert rows.batch.column(0).to_pylist() == [[1, 2], None, None]
    assert rows.refused == {2: "column 'x[1]': null, where the type has no nulls"}


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8()])
def test_more_values_than_a_dictionary_can_have(tmp_path: Path, index: pa.DataType) -> None:
    most = 128 if index == pa.int8() else 256
    texts = [None, *map(str, range(most + 1)), "0"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"x": x, "l": [x]}) + "\n" for x in texts))
    type_ = pa.dictionary(index, pa.string())
    (rows,) = rows_of(tmp_path / "in.jsonl", reading=Reading(types={"x": type_, "l": pa.list_(type_)}))
    rows.batch.validate(full=True)
    assert rows.batch.column(0).to_pylist() == [*texts[:-2], None, "0"]
    assert rows.batch.column(1).to_pylist() == [*([text] for text in texts[:-2]), None, ["0"]]
    (why,) = rows.refused.values()
    assert (*rows.refused, why) == (
        most + 1,
        f"column 'x': this is one more distinct value than the {most} that {type_} can have",
    )


def test_decimals_have_all_digits(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"m":12345678901234567.89,"s":{"m":0.1234567890123456789}}\n')
    types = {"m": "decimal(20, 2)", "s": "struct<m: decimal(20, 19)>"}
    assert read(tmp_path / "in.jsonl", reading=Reading(types=types)).to_pylist() == [
        {"m": Decimal("12345678901234567.89"), "s": {"m": Decimal("0.1234567890123456789")}}
    ]


def test_a_type_that_json_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"s":1}\n')
    with pytest.raises(InvalidArgument, match=r"column 's': no value of JSON can be month_day_nano_interval: use a"):
        read(tmp_path / "in.jsonl", reading=Reading(types={"s": pa.month_day_nano_interval()}))


@pytest.mark.parametrize("large", [False, True])
def test_views_of_lists(tmp_path: Path, large: bool) -> None:
    kind, type_ = (pa.LargeListViewArray, pa.large_list_view) if large else (pa.ListViewArray, pa.list_view)
    views = kind.from_arrays([1, None, 0, 0], [2, 0, 0, 1], pa.array([1, 2, None]))
    path = write(tmp_path / "out.jsonl", pa.table({"x": views}))
    assert path.read_text() == '{"x":[2,null]}\n{"x":null}\n{"x":[]}\n{"x":[1]}\n'
    (rows,) = rows_of(path, reading=Reading(types={"x": type_(pa.int64())}))
    rows.batch.validate(full=True)
    assert rows.batch.column(0).to_pylist() == views.to_pylist()


def meters(storage: pa.DataType) -> pa.DataType:
    """An extension type."""
    made: Any = type("Meters", (pa.ExtensionType,), {"__arrow_ext_serialize__": lambda self: b""})
    return made(storage, "test.meters")


def test_an_extension_is_written_as_what_it_is_stored_as(tmp_path: Path) -> None:
    values = pa.ExtensionArray.from_storage(meters(pa.int64()), pa.array([1, None]))
    table = pa.table({"x": values, "s": pa.StructArray.from_arrays([values], ["v"])})
    path = write(tmp_path / "out.jsonl", table)
    assert path.read_text() == '{"x":1,"s":{"v":1}}\n{"x":null,"s":{"v":null}}\n'
    bytes_ = pa.ExtensionArray.from_storage(meters(pa.binary(16)), pa.nulls(1, pa.binary(16)))
    with pytest.raises(InvalidArgument, match="JSON cannot hold column 'x'"):
        write(tmp_path / "no.jsonl", pa.table({"x": bytes_}))


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("struct<a: int, b: list<struct<c: decimal(10, 2), d: timestamp[us, UTC]>>>", None),
        ("struct<a: int64 not null>", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
        ("list<int>", pa.list_(pa.int64())),
        ("struct<>", pa.struct([])),
    ],
)
def test_nested_types_by_name(tmp_path: Path, name: str, type_: pa.DataType | None) -> None:
    inner = pa.struct([("c", pa.decimal128(10, 2)), ("d", pa.timestamp("us", "UTC"))])
    type_ = pa.struct([("a", pa.int64()), ("b", pa.list_(inner))]) if type_ is None else type_
    (tmp_path / "in.jsonl").write_text('{"x":null}\n')
    for each in (name, str(type_)):
        assert read(tmp_path / "in.jsonl", reading=Reading(types={"x": each})).schema.field("x").type == type_
