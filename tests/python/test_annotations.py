"""Annotations of the standard library that stand for texts, times and structs."""

import datetime
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import answers

from arroyo_udf_plugin import BuildError, Function, load

SOURCE = """
import datetime
import enum
import uuid
from typing import Literal, NamedTuple
from arroyo_udf_plugin import udf

class Color(enum.StrEnum):
    RED = "red"
    GREEN = "green"

class Point(NamedTuple):
    x: int
    color: Color | None

@udf(native=False)
def next_color(color: Color) -> Color:
    assert isinstance(color, Color)
    return Color.GREEN if color is Color.RED else Color.RED

@udf(blocking=True)
def waiting_color(color: Color) -> Color:
    assert isinstance(color, Color)
    return color

@udf(batch_size=10)
async def colors(many: list[Color | None]) -> list[Color | None]:
    assert all(color is None or isinstance(color, Color) for color in many)
    return many

@udf(native=False)
def named(key: uuid.UUID, name: str) -> uuid.UUID:
    return uuid.uuid5(key, name)

@udf
async def version(key: uuid.UUID | None) -> int:
    return 0 if key is None else key.version or -1

@udf(native=False)
def chosen(mode: Literal["fast", "slow"], level: Literal[1, 2]) -> Literal["fast", "slow"]:
    return "slow" if mode == "fast" and level == 1 else mode

@udf(native=False)
def later(at: datetime.time) -> datetime.time | None:
    return at.replace(hour=at.hour + 1) if at.hour < 23 else None

@udf(native=False)
def moved(point: Point, by: int) -> Point:
    assert isinstance(point, Point)
    assert point.color is None or isinstance(point.color, Color)
    return point._replace(x=point.x + by)
"""
KEYS = """
import uuid
from typing import Annotated, NamedTuple

import pyarrow as pa
from arroyo_udf_plugin import udf

@udf(native=False)
def next_key(key: Annotated[uuid.UUID, pa.binary(16)]) -> Annotated[uuid.UUID, pa.binary(16)] | None:
    assert isinstance(key, uuid.UUID)
    return uuid.UUID(int=key.int + 1) if key.int % 2 == 0 else None

class Keyed(NamedTuple):
    key: Annotated[uuid.UUID, pa.binary()]
    text: uuid.UUID | None

@udf
async def both(key: Annotated[uuid.UUID, pa.binary()]) -> Keyed:
    return Keyed(key, key if key.int % 2 == 0 else None)

@udf(batch_size=10)
async def same_keys(keys: list[Annotated[uuid.UUID, pa.binary()]]) -> list[Annotated[uuid.UUID, pa.binary()]]:
    assert all(isinstance(key, uuid.UUID) for key in keys)
    return keys
"""
KEY = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="annotated")).functions


@pytest.fixture(scope="module")
def keys(build_plugin: Callable[..., Path]) -> Any:
    """Functions over UUIDs as bytes."""
    return load(build_plugin(KEYS, name="keys")).functions


def test_enums_of_texts(functions: dict[str, Function]) -> None:
    next_color = functions["next_color"]
    assert (next_color.arguments.types, next_color.returns) == ([pa.utf8()], pa.utf8())
    outcomes = next_color.outcomes(pa.array(["red", "green", None, "blue"]))
    assert outcomes.field("value").to_pylist() == ["green", "red", None, None]
    assert "ValueError: 'blue' is not a valid Color" in outcomes.field("error")[3].as_py()
    for name in ("waiting_color", "colors"):
        assert answers(functions[name], ["red", "green"])["value"].to_pylist() == ["red", "green"]


def test_uuids_are_texts(functions: dict[str, Function]) -> None:
    named = functions["named"]
    assert named(pa.array([str(KEY)]), "a").to_pylist() == [str(uuid.uuid5(KEY, "a"))]
    assert "badly formed" in named.outcomes(pa.array(["x"]), "a").field("error")[0].as_py()
    assert answers(functions["version"], [str(KEY), None])["value"].to_pylist() == [1, 0]


def test_uuids_are_bytes_if_the_author_says_so(keys: dict[str, Function]) -> None:
    odd = uuid.UUID(int=KEY.int + 1)
    next_key = keys["next_key"]
    assert (next_key.arguments.types, next_key.returns) == ([pa.binary(16)], pa.binary(16))
    for type_ in (pa.binary(16), pa.binary(), pa.large_binary()):
        given = pa.array([KEY.bytes, None, odd.bytes], type_)
        assert next_key(given).to_pylist() == [odd.bytes, None, None]
    assert answers(keys["both"], pa.array([KEY.bytes, odd.bytes]))["value"].to_pylist() == [
        {"key": KEY.bytes, "text": str(KEY)},
        {"key": odd.bytes, "text": None},
    ]
    assert answers(keys["same_keys"], pa.array([KEY.bytes]))["value"].to_pylist() == [KEY.bytes]


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="pyarrow has no type for UUIDs")
def test_uuids_of_parquet_files_are_their_bytes(keys: dict[str, Function]) -> None:
    given = pa.array([KEY.bytes], pa.uuid())
    assert keys["next_key"](given).to_pylist() == [uuid.UUID(int=KEY.int + 1).bytes]
    assert answers(keys["same_keys"], given)["value"].to_pylist() == [KEY.bytes]


def test_literals_have_the_type_of_their_values(functions: dict[str, Function]) -> None:
    chosen = functions["chosen"]
    assert chosen.arguments.types == [pa.utf8(), pa.int64()]
    assert chosen(pa.array(["fast", "fast", "slow"]), pa.array([1, 2, 1])).to_pylist() == ["slow", "fast", "slow"]


def test_times_of_day(functions: dict[str, Function]) -> None:
    later = functions["later"]
    assert later.returns == pa.time64("us")
    times = [datetime.time(1, 2, 3, 4), None, datetime.time(23)]
    assert later(pa.array(times, pa.time64("us"))).to_pylist() == [datetime.time(2, 2, 3, 4), None, None]
    assert later(pa.array([3600], pa.time32("s"))).to_pylist() == [datetime.time(2)]


def test_named_tuples_are_structs(functions: dict[str, Function]) -> None:
    moved = functions["moved"]
    points = [{"x": 1, "color": "red"}, {"x": 2, "color": None}]
    assert moved(pa.array(points), 10).to_pylist() == [{"x": 11, "color": "red"}, {"x": 12, "color": None}]


def test_a_literal_of_several_types_is_refused(build_plugin: Callable[..., Path]) -> None:
    source = """
from typing import Literal
from arroyo_udf_plugin import udf

@udf(native=False)
def f(x: Literal[1, "a"]) -> int:
    return 1
"""
    with pytest.raises(BuildError, match="has values of several types"):
        build_plugin(source)
