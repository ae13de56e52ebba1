"""Text cells as values: what parses, and that a cell that does not is refused alone."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.cells import Dialect, argument, cell_type, decoded, parse


def parsed(texts: list[str | None], type_: pa.DataType) -> tuple[list[Any], dict[int, str]]:
    cast = parse(pa.array(texts, pa.string()), pa.field("x", type_))
    assert cast.array.type == type_
    return cast.array.to_pylist(), cast.refused


NOON = datetime.datetime(2024, 1, 31, 12)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("01234", pa.int64(), 1234),
        ("+4912", pa.int64(), 4912),
        ("1.0", pa.int64(), 1),  # as pandas writes integers beside nulls
        ("1.", pa.int64(), 1),
        ("-1e3", pa.int32(), -1000),
        (" 7 ", pa.uint8(), 7),
        ("+1.5", pa.float64(), 1.5),
        ("-inf", pa.float64(), float("-inf")),
        ("True", pa.bool_(), True),
        ("0", pa.bool_(), False),
        ("2024-01-31", pa.date32(), NOON.date()),
        ("2024-01-31T12:00:00", pa.timestamp("us"), NOON),
        ("2024-01-31 13:00:00+01:00", pa.timestamp("ms", "UTC"), NOON.replace(tzinfo=datetime.UTC)),
        ("1.50", pa.decimal128(5, 2), Decimal("1.50")),
        ("-1", pa.decimal128(5, 2), Decimal("-1.00")),
        ("5", pa.duration("s"), datetime.timedelta(seconds=5)),
        ("ä", pa.binary(), b"\xc3\xa4"),
        ("", pa.large_string(), ""),
    ],
)
def test_a_cell_that_parses(text: str, type_: pa.DataType, value: object) -> None:
    assert parsed([None, text], type_) == ([None, value], {})


@pytest.mark.parametrize(
    ("text", "type_", "why"),
    [
        ("2.5", pa.int64(), "'2.5' is not int64"),
        ("", pa.int64(), "'' is not int64"),
        ("300", pa.uint8(), "'300' is not uint8"),
        ("-1", pa.uint8(), "'-1' is not uint8"),
        ("12345678901234567890", pa.int64(), "'12345678901234567890' is not int64"),
        ("0xFF", pa.int64(), "'0xFF' is not int64"),  # Arrow knows it, and reads 0xFFFFFFFFFFFFFFFF as -1
        ("0X1", pa.uint8(), "'0X1' is not uint8"),
        ("0x10", pa.duration("s"), r"'0x10' is not duration\[s\]"),
        ("1e9999", pa.int64(), "'1e9999' is not int64"),
        ("1_000", pa.int64(), "'1_000' is not int64"),
        ("\u0661", pa.int64(), "'\u0661' is not int64"),
        ("1e400", pa.float64(), "'1e400' is not double"),
        ("1e39", pa.float32(), "'1e39' is not float"),
        ("1,5", pa.float64(), "'1,5' is not double"),
        ("yes", pa.bool_(), "'yes' is not bool"),
        ("2024-02-30", pa.date32(), "'2024-02-30' is not date32"),
        ("2024-01-31T12:00:00Z", pa.timestamp("us"), r"is not timestamp\[us\] without a zone"),
        ("2024-01-31T12:00:00", pa.timestamp("us", "UTC"), "it lacks a zone"),
        ("1.234", pa.decimal128(5, 2), "'1.234' is not decimal128"),
        ("NaN", pa.decimal128(5, 2), "'NaN' is not decimal128"),
        ("x" * 200, pa.int64(), r"'x{97}\.\.\.' is not int64"),
    ],
)
def test_a_cell_that_does_not_parse_costs_its_row_only(text: str, type_: pa.DataType, why: str) -> None:
    good = {pa.bool_(): "1", pa.date32(): "2024-01-31", pa.timestamp("us"): "2024-01-31"}.get(type_, "1")
    good = "2024-01-31 00:00Z" if type_ == pa.timestamp("us", "UTC") else good
    values, refused = parsed([good, None, text, good], type_)
    assert [value is None for value in values] == [False, True, True, False]
    assert list(refused) == [2]
    assert re.search(why, refused[2])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1).map(str), st.sampled_from(["x", "2.5", "1.0"]))))
def test_every_bad_cell_is_found(texts: list[str | None]) -> None:
    values, refused = parsed(texts, pa.int64())
    bad = [at for at, text in enumerate(texts) if text in ("x", "2.5")]
    assert sorted(refused) == bad
    assert values == [None if t is None or at in bad else 1 if t == "1.0" else int(t) for at, t in enumerate(texts)]


def test_nulls_of_sliced_and_chunked_cells() -> None:
    """pyarrow 16 to 23 put wrong values where nulls should be (Arrow #41479)."""
    cells = pa.ExtensionArray.from_storage(cell_type(Dialect()), pa.array(["1", "NA", "", '"NA"', '""', "2"] * 1000))
    for start in range(7):
        wanted = (["1", None, None, "NA", "", "2"] * 1000)[start:]
        assert decoded(cells.slice(start)).to_pylist() == wanted


def test_a_type_that_no_text_can_be() -> None:
    cells = pa.ExtensionArray.from_storage(cell_type(Dialect()), pa.array(["1"]))
    with pytest.raises(InvalidArgument, match="a text cell cannot be list<item: int64>: use a file with types"):
        argument(cells, pa.field("x", pa.list_(pa.int64())))


def test_other_types_are_cast() -> None:
    assert argument(pa.array([1], pa.int8()), pa.field("x", pa.int64())).array.type == pa.int64()
