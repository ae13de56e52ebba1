"""multi_hash: the hashes that Arroyo has, which were computed with the crates arrow-row and xxhash-rust."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.connectors.json_values import JsonFunction
from arroyo_udf_plugin.engine.datafusion.columns import MultiHash
from arroyo_udf_plugin.engine.datafusion.query import Query, Select, WrongQuery
from arroyo_udf_plugin.errors import InvalidArgument

NULL_8 = "be637bf2e7ab4aec17dbb924bfd111e6"
NULL_4 = "c61571a9fa58278456b1430ea9e34626"
NULL_TEXT = "a6cd5e9392000f6ac44bdff4074eecdb"

HASHES: list[tuple[pa.DataType, list[Any], list[str]]] = [
    (
        pa.int64(),
        [1, -1, None, -(2**63)],
        [
            "6e64e63348703dae744a888579be73d4",
            "c85202dfa24ece7bdb6d9db761f93a1a",
            NULL_8,
            "fa3f5392c40387fb428516d12156e7b6",
        ],
    ),
    (pa.int32(), [7, -7, None], ["a1f3dcd3c9dd9c975cb5ffa6ee345686", "c5fa7feb66f17c05c4eb6cb5bac18e0d", NULL_4]),
    (pa.uint16(), [513, None], ["bffaccce96700e82ef7c7c7983de9258", "f21da334f2869f1beb5d658bb22f286b"]),
    (
        pa.float64(),
        [1.5, -1.5, 0.0, -0.0, None, float("nan")],
        [
            "47c94e84f4ccc902b1e8c5ce38a4c20b",
            "dcdc831518284a644bd941d129aadd4c",
            "f0056ca1c68ea8c743cb711128bd3bb8",
            "c85202dfa24ece7bdb6d9db761f93a1a",
            NULL_8,
            "525bd363a29b200e406d65e63c0ab821",
        ],
    ),
    (pa.float32(), [1.5, -1.5], ["6a9e91accf0f3fda83525f2eadf4d2bc", "e333aad3817eef1f71367b39fd82dfb2"]),
    (
        pa.bool_(),
        [True, False, None],
        ["50e58cbd6ada00a1070d80d6a76865f3", "4d6ac5b7d1a1655cab94ac0ace7276c0", "4758ddac5f9ee9383325230e1f285505"],
    ),
    (
        pa.string(),
        ["", "a", "12345678", "123456789", None, "x" * 32, "y" * 33, "z" * 100],
        [
            "51025a4491835505e12ef9d2eb86ceeb",
            "0b2676b8460d371f92272090e67890d1",
            "ad2b54a962dcf41c8a6ace4c9eba5234",
            "f3c71c450ab89b82367b0a3f1364653b",
            NULL_TEXT,
            "f26ff873d0d06f078dd0e6ab194b897c",
            "e0ce90a4846175928d11dd2f1004753b",
            "fea30a65c9d241f49eaf05287bbfeba8",
        ],
    ),
    (pa.large_string(), ["a", None], ["0b2676b8460d371f92272090e67890d1", NULL_TEXT]),
    (pa.binary(), [b"ab", None], ["bc602cf2485e7085745fb5cbe8e7a8d9", NULL_TEXT]),
    (pa.binary(2), [b"ab", None], ["2ee6f030f5673627513922bbd67fad39", "f21da334f2869f1beb5d658bb22f286b"]),
    (
        pa.decimal128(10, 2),
        [decimal.Decimal("1.25"), decimal.Decimal("-1.25"), None],
        ["044756ba409e4525002b1a9ee7dd9832", "89e619d003dd9f9aee94440f452b5609", "a3d7e4cef35b1f44c2915ca0df7ad4c1"],
    ),
    (pa.date32(), [datetime.date(1970, 1, 2), None], ["9453994361510870bc22806c34f89141", NULL_4]),
    (
        pa.timestamp("us"),
        [datetime.datetime(1970, 1, 1, 0, 0, 0, 1), None],
        ["6e64e63348703dae744a888579be73d4", NULL_8],
    ),
    (pa.null(), [None, None], ["99aa06d3014798d86001c324468d497f"] * 2),
]


@pytest.mark.parametrize(("type_", "values", "expected"), HASHES, ids=[str(one[0]) for one in HASHES])
def test_hashes_of_one_column(type_: pa.DataType, values: list[Any], expected: list[str]) -> None:
    column = pa.array([None, *values], type_).slice(1)
    assert [one.hex() for one in MultiHash([type_])(column).to_pylist()] == expected


def test_hashes_of_several_columns() -> None:
    hashes = MultiHash([pa.int64(), pa.string()])(pa.array([1, None], pa.int64()), pa.array([None, "b"]))
    assert [one.hex() for one in hashes.to_pylist()] == [
        "ed260aafa1dd62914abc4b9d6985a2fc",
        "3d5597cf19f34c64a413315ab587ffe6",
    ]


@pytest.mark.parametrize("type_", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.binary(5)])
def test_types_that_are_refused(type_: pa.DataType) -> None:
    with pytest.raises(InvalidArgument, match=r"multi_hash does not take .*: write its values"):
        MultiHash([type_])


def test_in_a_query() -> None:
    schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
    batch = pa.record_batch([[1, None], [None, "b"]], schema=schema)
    asked = Query(Select({"h": "multi_hash(n, upper(t))", "again": "multi_hash(multi_hash(n), 'x')"}), schema)
    assert asked.schema.field("h").type == pa.binary(16)
    (found,) = asked.run(batch)
    first, second = found.rows.column("h").to_pylist()  # type: ignore[union-attr]
    assert first.hex() == "ed260aafa1dd62914abc4b9d6985a2fc"
    assert second == MultiHash([pa.int64(), pa.string()])(pa.nulls(1, pa.int64()), pa.array(["B"]))[0].as_py()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("multi_hash()", r"multi_hash needs values, as in multi_hash\(a, b\)"),
        ("multi_hash([n])", "multi_hash does not take lists and structs: write its values"),
    ],
)
def test_refusals(text: str, error: str) -> None:
    with pytest.raises(WrongQuery, match=error):
        Query(Select({"h": text}), pa.schema([("n", pa.int64())]))


def test_columns_have_one_length() -> None:
    """Native code reads as many rows of each as the first one has."""
    short, long = pa.array([1]), pa.array(range(100_000))
    with pytest.raises(InvalidArgument, match="columns of one length"):
        MultiHash([pa.int64(), pa.int64()])(long, short)
    with pytest.raises(InvalidArgument, match="columns of one length"):
        JsonFunction("json_get", (), pa.int64())(pa.array(["[]"] * 100_000), short)
