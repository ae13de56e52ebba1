"""Every type there and back (F2), as properties: nulls (F3), slices with an offset, no rows; as plain calls."""

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import Function, load

BuildPlugin = Callable[..., Path]

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
BYTES = st.binary()
DATES = st.dates()
UTC = dt.UTC


def integers(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


def moments(unit: str, zone: dt.tzinfo | None = None) -> st.SearchStrategy[dt.datetime]:
    """Moments that a timestamp of the unit holds exactly; nanoseconds have the shorter range."""
    least, most = (
        (dt.datetime(1678, 1, 1), dt.datetime(2262, 1, 1)) if unit == "ns" else (dt.datetime.min, dt.datetime.max)
    )
    step = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1}[unit]

    def rounded(moment: dt.datetime) -> dt.datetime:
        return moment.replace(microsecond=moment.microsecond // step * step, tzinfo=zone)

    return st.datetimes(least, most).map(rounded)


def spans(unit: str) -> st.SearchStrategy[dt.timedelta]:
    step = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1}[unit]
    most = 9 * 10**15 if unit == "ns" else 10**16
    return st.integers(-most // step, most // step).map(lambda n: dt.timedelta(microseconds=n * step))


# name -> annotation, Arrow type, values
TYPES: dict[str, tuple[str, pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": ("bool", pa.bool_(), st.booleans()),
    "int": ("int", pa.int64(), integers(64)),
    **{f"int{n}": (f"Annotated[int, pa.int{n}()]", getattr(pa, f"int{n}")(), integers(n)) for n in (8, 16, 32, 64)},
    **{
        f"uint{n}": (f"Annotated[int, pa.uint{n}()]", getattr(pa, f"uint{n}")(), integers(n, signed=False))
        for n in (8, 16, 32, 64)
    },
    "float": ("float", pa.float64(), st.floats(allow_nan=False)),
    "float32": ("Annotated[float, pa.float32()]", pa.float32(), st.floats(allow_nan=False, width=32)),
    "str": ("str", pa.utf8(), TEXT),
    "large_utf8": ("Annotated[str, pa.large_utf8()]", pa.large_utf8(), TEXT),
    "bytes": ("bytes", pa.binary(), BYTES),
    "date": ("date", pa.date32(), DATES),
    "datetime": ("datetime", pa.timestamp("us"), moments("us")),
    **{
        f"timestamp_{unit}": (f"Annotated[datetime, pa.timestamp({unit!r})]", pa.timestamp(unit), moments(unit))
        for unit in ("s", "ms", "us", "ns")
    },
    "timestamp_utc": ("Annotated[datetime, pa.timestamp('us', 'UTC')]", pa.timestamp("us", "UTC"), moments("us", UTC)),
    "timedelta": ("timedelta", pa.duration("us"), spans("us")),
    **{
        f"duration_{unit}": (f"Annotated[timedelta, pa.duration({unit!r})]", pa.duration(unit), spans(unit))
        for unit in ("s", "ms", "us", "ns")
    },
    "Decimal": ("Decimal", pa.decimal128(38, 9), st.decimals(-(10**20), 10**20, places=9)),
    "decimal": ("Annotated[Decimal, pa.decimal128(7, 2)]", pa.decimal128(7, 2), st.decimals(-99999, 99999, places=2)),
    "list": ("list[int]", pa.list_(pa.field("item", pa.int64(), False)), st.lists(integers(64))),
    "list_of_lists": (
        "list[list[str | None]]",
        pa.list_(pa.field("item", pa.list_(pa.utf8()), False)),
        st.lists(st.lists(st.none() | TEXT)),
    ),
    "typed_dict": (
        "Named",
        pa.struct([pa.field("name", pa.utf8(), False), pa.field("born", pa.date32())]),
        st.fixed_dictionaries({"name": TEXT, "born": st.none() | DATES}),
    ),
    "dataclass": (
        "Point",
        pa.struct([pa.field("x", pa.int64(), False), pa.field("tags", pa.list_(pa.utf8()))]),
        st.fixed_dictionaries({"x": integers(64), "tags": st.none() | st.lists(st.none() | TEXT)}),
    ),
    "list_of_dataclasses": (
        "list[Point | None]",
        pa.list_(pa.struct([pa.field("x", pa.int64(), False), pa.field("tags", pa.list_(pa.utf8()))])),
        st.lists(st.none() | st.fixed_dictionaries({"x": integers(64), "tags": st.none()})),
    ),
}

HEAD = """\
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, TypedDict
import pyarrow as pa
from arroyo_udf_plugin import udf

@dataclass
class Point:
    x: int
    tags: list[str | None] | None

class Named(TypedDict):
    name: str
    born: date | None
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    text = [HEAD]
    for name, (hint, _, _) in TYPES.items():
        text.append(f"@udf(native=False)\ndef same_{name}(x: {hint} | None) -> {hint} | None: return x\n")
        text.append(f"@udf(native=False)\ndef given_{name}(x: {hint}) -> bool: return x is not None\n")
    return load(build_plugin("\n".join(text), name="types")).functions


@pytest.mark.parametrize("name", TYPES)
def test_declared(functions: dict[str, Function], name: str) -> None:
    _, arrow_type, _ = TYPES[name]
    same, given = functions[f"same_{name}"], functions[f"given_{name}"]
    assert same.arguments == pa.schema([pa.field("x", arrow_type)])
    assert (same.returns, same.returns_nullable) == (arrow_type, True)
    assert given.arguments == pa.schema([pa.field("x", arrow_type, nullable=False)])


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_there_and_back(functions: dict[str, Function], name: str, data: st.DataObject) -> None:
    _, arrow_type, values = TYPES[name]
    rows = data.draw(st.lists(st.none() | values, max_size=20))
    before, after = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    some = data.draw(st.none() | values)
    array = pa.array([some] * before + rows + [some] * after, arrow_type).slice(before, len(rows))
    result = functions[f"same_{name}"](array)
    result.validate(full=True)
    assert result.type == arrow_type
    assert result.to_pylist() == array.to_pylist()
    assert result.equals(array)
    assert functions[f"given_{name}"](array).to_pylist() == [None if row is None else True for row in rows]


def test_all_null_and_none_null(functions: dict[str, Function]) -> None:
    for name, (_, arrow_type, _) in TYPES.items():
        for rows in ([], [None], [None] * 100):
            array = pa.array(rows, arrow_type)
            assert functions[f"same_{name}"](array).equals(array)
            assert functions[f"given_{name}"](array).equals(pa.array(rows, pa.bool_()))


def test_floats_that_are_not_numbers(functions: dict[str, Function]) -> None:
    import math

    (value,) = functions["same_float"](pa.array([math.nan])).to_pylist()
    assert math.isnan(value)
    assert functions["same_float"](pa.array([-0.0])).to_pylist()[0].hex() == "-0x0.0p+0"


def test_zones(functions: dict[str, Function]) -> None:
    """A moment with a zone is the same moment, whatever the zone."""
    east = dt.datetime(1969, 7, 20, 22, 17, 40, 123456, dt.timezone(dt.timedelta(hours=2)))
    array = pa.array([east], pa.timestamp("us", "UTC"))
    assert functions["same_timestamp_utc"](array).equals(array)


VECTORIZED = """\
from typing import Annotated
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_udf_plugin import udf

@udf(vectorized=True)
def same(x: Annotated[pa.Array, pa.decimal128(20, 3)]) -> Annotated[pa.Array, pa.decimal128(20, 3)]:
    return x

@udf(vectorized=True)
def longer(x: pa.StringArray, y: Annotated[pa.Array, pa.int32()]) -> pa.BooleanArray:
    return pc.greater(pc.utf8_length(x), y)

@udf(vectorized=True)
def nulls(x: pa.Int64Array) -> pa.Int64Array:
    return pa.array([x.null_count] * len(x), pa.int64())
"""


def test_vectorized(build_plugin: BuildPlugin) -> None:
    functions = load(build_plugin(VECTORIZED, name="vectorized")).functions
    assert all(function.vectorized for function in functions.values())
    exact = pa.array([decimal.Decimal("1.250"), None, decimal.Decimal("-7.000")], pa.decimal128(20, 3))
    assert functions["same"](exact).equals(exact)
    assert functions["same"](exact[1:]).equals(exact[1:])
    words, lengths = pa.array(["a", "bcd", None]), pa.array([1, 2, 3], pa.int32())
    assert functions["longer"](words, lengths).to_pylist() == [False, True, None]
    assert functions["nulls"](pa.array([1, None, None])).to_pylist() == [2, 2, 2]


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.tuples(st.none() | integers(20), st.none() | TEXT, st.none() | st.floats(-1e9, 1e9))))
def test_call_is_the_plain_call(build_plugin: BuildPlugin, rows: list[tuple[Any, ...]]) -> None:
    source = """
        from arroyo_udf_plugin import udf

        @udf(native=False)
        def mixed(a: int, b: str | None, c: float) -> str | None:
            return None if c < 0 else f"{a * 2}:{b}:{c + a}"
        """
    mixed = load(build_plugin(source)).functions["mixed"]
    a, b, c = (pa.array([row[i] for row in rows], field.type) for i, field in enumerate(mixed.arguments))

    def plain(a: int, b: str | None, c: float) -> str | None:
        return None if c < 0 else f"{a * 2}:{b}:{c + a}"

    expected = [None if row[0] is None or row[2] is None else plain(*row) for row in rows]
    assert mixed(a, b, c).to_pylist() == expected
