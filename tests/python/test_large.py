"""Many rows: ten million of int64 and of utf8 in batches, a hundred thousand of the other types."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from arroyo_udf_plugin import load

BuildPlugin = Callable[..., Path]
MANY, FEW, BATCH = 10_000_000, 100_000, 8192

SOURCE = """
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated
import pyarrow as pa
from arroyo_udf_plugin import udf

@udf(native=False)
def plus(x: int) -> int:
    return x + 1

@udf(native=False)
def shout(x: str) -> str:
    return x + "!"

"""
TYPES: dict[str, tuple[pa.DataType, Callable[[pa.Array], pa.Array]]] = {
    "bool": (pa.bool_(), lambda numbers: pc.equal(pc.bit_wise_and(numbers, 1), 1)),
    "Annotated[int, pa.int8()]": (pa.int8(), lambda numbers: pc.bit_wise_and(numbers, 127).cast(pa.int8())),
    "Annotated[int, pa.uint64()]": (pa.uint64(), lambda numbers: numbers.cast(pa.uint64())),
    "Annotated[float, pa.float32()]": (pa.float32(), lambda numbers: numbers.cast(pa.float32())),
    "float": (pa.float64(), lambda numbers: numbers.cast(pa.float64())),
    "Annotated[str, pa.large_utf8()]": (pa.large_utf8(), lambda numbers: numbers.cast(pa.large_utf8())),
    "bytes": (pa.binary(), lambda numbers: numbers.cast(pa.utf8()).cast(pa.binary())),
    "date": (pa.date32(), lambda numbers: numbers.cast(pa.int32()).cast(pa.date32())),
    "datetime": (pa.timestamp("us"), lambda numbers: numbers.cast(pa.timestamp("us"))),
    "timedelta": (pa.duration("us"), lambda numbers: numbers.cast(pa.duration("us"))),
    "Decimal": (pa.decimal128(38, 9), lambda numbers: numbers.cast(pa.decimal128(38, 9))),
    "list[int]": (
        pa.list_(pa.field("item", pa.int64(), False)),
        lambda numbers: pa.array([[n] * (n % 3) for n in range(len(numbers))]),
    ),
}
for _number, _hint in enumerate(TYPES):
    SOURCE += f"@udf(native=False)\ndef same{_number}(x: {_hint}) -> {_hint}:\n    return x\n"


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    return load(build_plugin(SOURCE, name="large")).functions


def test_many_integers(functions: Any) -> None:
    plus, batch = functions["plus"], pa.array(range(BATCH))
    rows = 0
    while rows < MANY:
        shifted = pc.add(batch, rows)
        assert plus(shifted).equals(pc.add(shifted, 1))
        rows += BATCH


def test_many_strings(functions: Any) -> None:
    shout, batch = functions["shout"], pa.array(range(BATCH))
    rows = 0
    while rows < MANY:
        words = pc.add(batch, rows).cast(pa.utf8())
        assert shout(words).equals(pc.binary_join_element_wise(words, "!", ""))
        rows += BATCH


def test_many_at_once(functions: Any) -> None:
    """One batch of a million, with nulls."""
    column = pa.array([None if n % 7 == 0 else n for n in range(1_000_000)])
    assert functions["plus"](column).equals(pc.add(column, 1))


@pytest.mark.parametrize("hint", TYPES)
def test_few_of_the_others(functions: Any, hint: str) -> None:
    arrow_type, make = TYPES[hint]
    column = make(pa.array(range(FEW)))
    result = functions[f"same{list(TYPES).index(hint)}"](column)
    assert result.type == arrow_type
    assert result.to_pylist() == column.to_pylist()
