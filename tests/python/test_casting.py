"""Arrays of other types than a function takes (plugin/casting.py): equal afterwards, or refused, never changed."""

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.plugin import casting
from arroyo_udf_plugin.plugin.casting import cast, constructor, fits

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float32(), pa.float64()]
DECIMALS = [pa.decimal128(5, 2), pa.decimal128(20, 0), pa.decimal128(38, 9), pa.decimal256(50, 12)]
UNITS = ["s", "ms", "us", "ns"]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
FAMILIES = [
    [*INTEGERS, *FLOATS],
    [*INTEGERS, *DECIMALS],
    [pa.timestamp(unit) for unit in UNITS],
    [pa.timestamp(unit, zone) for unit in UNITS for zone in ("UTC", "Asia/Kolkata")],
    [pa.duration(unit) for unit in UNITS],
    [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    [pa.date32(), pa.date64()],
    TEXTS,
    BYTES,
]
PAIRS = [
    (given, wanted)
    for family in FAMILIES
    for given in family
    for wanted in family
    if given != wanted
    and not pa.types.is_decimal256(wanted)
    and wanted not in (pa.string_view(), pa.binary_view())
    and not (pa.types.is_floating(given) and pa.types.is_decimal(wanted))
]
NOT_NULL = pa.list_(pa.field("item", pa.int64(), nullable=False))
POINT = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("tag", pa.string())])


def field(type_: pa.DataType) -> pa.Field:
    return pa.field("x", type_)


def bits(type_: pa.DataType) -> st.SearchStrategy[int]:
    """The numbers behind a type's values: small, round, and at its limits."""
    width = 64 if type_.bit_width > 64 else type_.bit_width
    low, high = (
        (0, 2**width - 1) if pa.types.is_unsigned_integer(type_) else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    )
    if pa.types.is_time(type_):
        low, high = 0, 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[type_.unit] - 1
    round_ = [n for p in range(20) for n in (10**p, 3 * 10**p, -(10**p), 2**53 + p, 86_400_000 * p) if low <= n <= high]
    return st.one_of(st.sampled_from([low, high, 0, *round_]), st.integers(low, high))


def values(type_: pa.DataType) -> st.SearchStrategy[pa.Array]:
    """Arrays of a type, with nulls, some of them slices."""
    if pa.types.is_floating(type_):
        one: st.SearchStrategy[Any] = st.floats(width=type_.bit_width) | st.integers(-1000, 1000).map(float)
    elif pa.types.is_decimal(type_):
        most = min(10**type_.precision - 1, 10**20)
        one = st.integers(-most, most).map(lambda n: Decimal(n).scaleb(-type_.scale))
    elif type_ in TEXTS:
        one = st.text(max_size=20)
    elif type_ in BYTES:
        one = st.binary(max_size=20)
    else:
        one = bits(type_)
    temporal = pa.types.is_temporal(type_)

    def made(items: list[Any], start: int) -> pa.Array:
        if not temporal:
            return pa.array(items, type_)[start:]
        return pa.array(items, pa.int64() if type_.bit_width == 64 else pa.int32()).view(type_)[start:]

    return st.builds(made, st.lists(st.none() | one, max_size=12), st.integers(0, 3))


def exact(array: pa.Array) -> list[Any]:
    """Python values that compare exactly: times as nanoseconds."""
    type_ = array.type
    if not pa.types.is_temporal(type_):
        return [("nan",) if isinstance(v, float) and math.isnan(v) else v for v in array.to_pylist()]
    factor = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    per = (
        factor[type_.unit] if not pa.types.is_date(type_) else 10**6 * (86_400_000 if pa.types.is_date32(type_) else 1)
    )
    numbers = array.view(pa.int64() if type_.bit_width == 64 else pa.int32())
    return [None if v is None else v * per for v in numbers.to_pylist()]


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_a_cast_value_is_equal_or_refused(data: st.DataObject) -> None:
    given, wanted = data.draw(st.sampled_from(PAIRS))
    array = data.draw(values(given))
    if data.draw(st.booleans()) and len(array) and given not in (pa.string_view(), pa.binary_view()):
        array = array.dictionary_encode()
        before = exact(array.dictionary_decode())
    else:
        before = exact(array)
    result = cast(array, field(wanted))
    assert result.array.type == wanted
    result.array.validate(full=True)
    after = exact(result.array)
    for row, (old, new) in enumerate(zip(before, after, strict=True)):
        if row in result.refused:
            assert (old is not None, new) == (True, None)
            assert not _holds(wanted, array.type, array[row], old), f"{old!r} fits {wanted}"
        else:
            assert new == old


def _holds(wanted: pa.DataType, given: pa.DataType, scalar: pa.Scalar, value: Any) -> bool:
    """Whether the value could have been cast without a loss, by Python's own arithmetic."""
    if pa.types.is_integer(wanted):
        if value == ("nan",) or value in (math.inf, -math.inf) or value != int(value):
            return False
        signed = pa.types.is_signed_integer(wanted)
        low, high = (
            (-(2 ** (wanted.bit_width - 1)), 2 ** (wanted.bit_width - 1)) if signed else (0, 2**wanted.bit_width)
        )
        return bool(low <= int(value) < high)
    if pa.types.is_floating(wanted):
        try:
            return bool(pa.array([float(value)], wanted)[0].as_py() == value)
        except OverflowError:
            return False
    return False  # the other families are compared where they are accepted


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.none() | st.lists(st.none() | st.integers(-300, 300), max_size=4), max_size=10),
    st.integers(0, 3),
    st.sampled_from([pa.list_, pa.large_list, pa.list_view, pa.large_list_view]),
    st.booleans(),
)
def test_lists_keep_their_items_or_are_refused(
    rows: list[list[int | None] | None], start: int, make: Any, nullable: bool
) -> None:
    array = pa.array(rows, make(pa.int64()))[start:]
    wanted = pa.list_(pa.field("item", pa.int8(), nullable))
    result = cast(array, field(wanted))
    result.array.validate(full=True)
    assert result.array.type == wanted
    for row, (old, new) in enumerate(zip(rows[start:], result.array.to_pylist(), strict=True)):
        fit = old is None or all(
            (item is None and nullable) or (item is not None and -128 <= item < 128) for item in old
        )
        assert (row in result.refused) == (not fit)
        assert new == (old if fit else None)


def test_null_items_are_that_row_s_error() -> None:
    result = cast(pa.array([[1, None], None, [2]]), field(NOT_NULL))
    assert result.array.to_pylist() == [None, None, [2]]
    assert result.refused == {0: "item 1: null, and the function takes no null there"}


def test_null_items_below_a_type_that_denies_them_are_found() -> None:
    """pyarrow lets such arrays be made, and calls their types equal to the function's."""
    lying = pa.array([[1, None], [2]], NOT_NULL)
    assert list(cast(lying, field(NOT_NULL)).refused) == [0]


def test_fields_of_structs_are_found_by_name() -> None:
    rows = [{"tag": "a", "x": 1}, None, {"tag": None, "x": None}]
    result = cast(pa.array(rows)[:3], field(POINT))
    assert result.array.to_pylist() == [{"x": 1, "tag": "a"}, None, None]
    assert result.refused == {2: "field 'x' is null, and the function takes no null there"}
    nested = cast(pa.array([[{"x": 1, "tag": "a"}, {"x": None, "tag": "b"}]]), field(pa.list_(POINT)))
    assert nested.refused == {0: "item 1: field 'x' is null, and the function takes no null there"}


def test_the_rules_of_the_docs_are_those_of_the_code() -> None:
    """F2a: one table."""
    rules = (Path(__file__).parents[2] / "docs" / "semantics.md").read_text()
    table = [line for line in (casting.__doc__ or "").splitlines() if line.startswith("|")]
    assert len(table) > 10
    assert "\n".join(table) in rules


def test_an_array_of_the_type_is_returned_as_it_is() -> None:
    numbers, lists = pa.array([1, 2]), pa.array([[1], [2]], NOT_NULL)
    assert cast(numbers, field(pa.int64())).array is numbers
    assert cast(lists, field(NOT_NULL)).array is lists


def test_many_floats_that_are_no_integers_are_refused_each() -> None:
    n_rows = 20_000
    odd = [0.5, math.nan, math.inf, -math.inf, 2.0**63, -1.5, 1e300]
    numbers = [float(row) if row % 2 else odd[row // 2 % len(odd)] for row in range(n_rows)]
    for type_, floats in ((pa.int64(), pa.float64()), (pa.int32(), pa.float32())):
        result = cast(pa.array([*numbers, None], floats), field(type_))
        assert result.array.to_pylist() == [row if row % 2 else None for row in range(n_rows)] + [None]
        assert list(result.refused) == list(range(0, n_rows, 2))
    assert result.refused[0] == "0.5 does not fit int32"
    unsigned = cast(pa.array([2.0**63, 2.0**64, -1.0, -0.0, 255.0, 256.0]), field(pa.uint64()))
    assert unsigned.array.to_pylist() == [2**63, None, None, 0, 255, 256]
    assert list(unsigned.refused) == [1, 2]


def test_many_rows_of_a_dictionary_may_have_a_value_that_is_refused() -> None:
    indices = pa.array([row % 4 if row % 5 else None for row in range(20_000)], pa.int32())
    result = cast(pa.DictionaryArray.from_arrays(indices, pa.array([1, 300, 2, -300])), field(pa.int8()))
    values = {0: 1, 2: 2}
    assert result.array.to_pylist() == [values.get(index) for index in indices.to_pylist()]
    assert list(result.refused) == [row for row, index in enumerate(indices.to_pylist()) if index in (1, 3)]


def test_chunks_count_on() -> None:
    result = cast(pa.chunked_array([[1, 300], [], [400, 2]]), field(pa.int8()))
    assert result.array.to_pylist() == [1, None, None, 2]
    assert list(result.refused) == [1, 2]


@pytest.mark.parametrize("size", [2**53, 2**53 + 2, 2**60, -(2**63)])
def test_large_integers_that_a_float_holds_are_cast(size: int) -> None:
    assert cast(pa.array([size, 1]), field(pa.float64())).array.to_pylist() == [float(size), 1.0]


def test_a_timestamp_is_the_same_instant_in_another_zone() -> None:
    noon = pa.array([dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)], pa.timestamp("ms", "Asia/Kolkata"))
    assert cast(noon, field(pa.timestamp("us", "UTC"))).array.to_pylist() == [
        dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    ]


@pytest.mark.parametrize(
    ("given", "wanted", "said"),
    [
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), "assume_timezone"),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), "local_timestamp"),
        (pa.string(), pa.int64(), r"is string, not int64: convert it first, to pa.int64\(\)"),
        (pa.string(), pa.float64(), r"to pa.float64\(\)"),
        (pa.int64(), pa.string(), r"to pa.string\(\)"),
        (pa.bool_(), pa.int64(), "is bool"),
        (pa.decimal128(5, 2), pa.float64(), "is decimal128"),
        (pa.timestamp("us"), pa.date32(), "is timestamp"),
        (pa.string(), pa.binary(), "is string"),
        (pa.list_(pa.string()), NOT_NULL, r"its items: convert it first, to pa.int64\(\)"),
        (pa.struct([("x", pa.int64())]), POINT, "exactly the fields x, tag"),
        (pa.struct([("x", pa.string()), ("tag", pa.string())]), POINT, "its field 'x'"),
        (pa.dictionary(pa.int32(), pa.string()), pa.int64(), "is dictionary"),
        (pa.month_day_nano_interval(), pa.duration("us"), "is month_day_nano_interval"),
    ],
)
def test_types_of_another_meaning_are_refused(given: pa.DataType, wanted: pa.DataType, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        cast(pa.nulls(1, given), field(wanted))
    assert fits(given, field(wanted)) is not None


@pytest.mark.parametrize(
    "type_",
    [
        *INTEGERS, *FLOATS, *DECIMALS, *BYTES, *TEXTS, NOT_NULL, POINT, pa.bool_(), pa.date32(), pa.time64("us"),
        pa.duration("ms"), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.binary(3), pa.large_list(pa.float32()),
    ],
    ids=str,
)  # fmt: skip
def test_error_texts_name_constructors_that_pyarrow_has(type_: pa.DataType) -> None:
    """Not pa.double(), as pyarrow prints the type."""
    assert fits(type_, field(eval(constructor(type_)))) is None
