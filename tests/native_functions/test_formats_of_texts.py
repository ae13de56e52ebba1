"""F11: numbers as texts, and formats of f-strings, as Python has them: to the last digit."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from comparing import Pair

FLOATS = ["", ".0f", ".2f", ".15f", ".16F", ".3e", "E", "g", ".0g", ".17G", "%", ".1%", ",.2f", "_.1f", "+.1f", " .2f",
          "010.3f", "<12.2f", "*^30", "=+12.1f", ">-9.1f", "<05.1f", "x<09.1f"]  # fmt: skip
INTS = ["", "d", "05", ",", "_d", "x", "X", ">+8", "^ 9d", ".1f", "e", "%", "=+12", "0>6", "<06", "+", "1000"]
TEXTS = ["", ">8", ".3", "*^9s", "<4", "^7.2", "s"]
N = 10_000


def floats(choices: random.Random, n: int) -> Iterator[float]:
    """Doubles around all places at which a digit, or the way of writing, changes."""
    special = [
        0.0,
        1e15,
        1e16,
        9999999999999998.0,
        1e-4,
        1e-5,
        999999999999999.9,
        0.125,
        2.5,
        5e-324,
        math.inf,
        math.nan,
    ]
    for _ in range(n):
        ways: list[Callable[[], float]] = [
            lambda: 10 ** choices.uniform(-4, 15),
            lambda: round(10 ** choices.uniform(-4, 10), choices.randint(0, 6)),
            lambda: math.nextafter(2.0 ** choices.randint(-13, 49), choices.choice([0, math.inf])),
            lambda: 2.0 ** choices.randint(-13, 49),
            lambda: choices.randint(1, 10**15 - 1) / choices.choice([1, 2, 4, 8, 10, 100, 1000]),
            lambda: math.nextafter(10.0 ** choices.randint(-4, 14), choices.choice([0, math.inf])),
            lambda: (choices.randint(1, 10**6) + 0.5) / choices.choice([1, 10, 100, 1000, 8, 16]),
            lambda: choices.randint(1, 10**9) / 2 ** choices.randint(0, 30),
            lambda: choices.choice(special),
            lambda: struct.unpack("d", struct.pack("Q", choices.getrandbits(64)))[0],
        ]
        size = choices.choice(ways)()
        yield choices.choice([size, size, -size])


def source(type_: str, specs: list[str]) -> str:
    functions = [
        f'@udf(native=True)\ndef f{number}(a: {type_}) -> str:\n    return f"{{a{":" * bool(spec)}{spec}}}"\n'
        for number, spec in enumerate(specs)
    ]
    return "from arroyo_udf_plugin import udf\n\n" + "\n".join(functions)


@pytest.mark.parametrize(("type_", "specs"), [("float", FLOATS), ("int", INTS), ("str", TEXTS)])
def test_formats(tmp_path: Path, type_: str, specs: list[str]) -> None:
    choices = random.Random(34)
    pair = Pair(tmp_path, source(type_, specs))
    if type_ == "float":
        values = pa.array(floats(choices, N), pa.float64())
    elif type_ == "int":
        few = [choices.randint(-1100, 1100) for _ in range(N // 2)]
        values = pa.array([*few, *(choices.getrandbits(64) - 2**63 for _ in range(N // 2))], pa.int64())
    else:
        letters = "abcXYZ " * 20 + "\u00e9\u4e2d"
        values = pa.array(["".join(choices.choices(letters, k=choices.randint(0, 12))) for _ in range(N)])
    for number, spec in enumerate(specs):
        deferred = pair.check(f"f{number}", values)
        assert deferred < N / 4, spec


@pytest.mark.parametrize("type_", ["int", "float", "str", "bool"])
@pytest.mark.parametrize(
    "spec", ["n", "c", "#x", "z.1f", ".101f", "1001", "\u00e9>5", "010,", ".3", ",x", "05d", "=5", "+", "s"]
)
def test_a_format_that_is_not_compiled_is_python_s(tmp_path: Path, type_: str, spec: str) -> None:
    """Also those that Python refuses."""
    pair = Pair(tmp_path, source(type_, [spec]).replace("native=True", 'native="auto"'))
    values = {"int": [5, -1000], "float": [0.5, -1e9], "str": ["a", ""], "bool": [True, False]}[type_]
    if pair.native["f0"].native:
        assert pair.check("f0", pa.array(values)) == 0
    else:
        assert f"the format {spec!r} of {type_}" in str(pair.native["f0"].not_native)
