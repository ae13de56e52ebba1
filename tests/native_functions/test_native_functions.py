"""Functions that are compiled to C: which rows are deferred, and that nothing else than time shows it."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from comparing import Pair

from arroyo_udf_plugin import RowError, build, load

Pairs = Callable[[str], Pair]
NUMBERS = """
@udf(native=True)
def mph(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time
"""


def test_rows_that_raise_are_deferred_and_told_by_their_own_numbers(pair: Pairs) -> None:
    both = pair(NUMBERS)
    mph = both.native["mph"]
    assert mph(pa.array([60, 90, None]), pa.array([60, 60, 1])).to_pylist() == [60.0, 90.0, None]
    assert mph.native_rows() == (3, 0)
    with pytest.raises(RowError, match="row 2: ZeroDivisionError: float division by zero") as raised:
        mph(pa.array([1] * 200), pa.array([1, 1, 0, *[1] * 196, 0]))
    assert list(raised.value.errors) == [2, 199]
    assert raised.value.errors[199].startswith("ZeroDivisionError: float division by zero\n  at mph")
    assert mph.native_rows() == (203, 2)


def test_an_argument_that_is_never_none_may_be_asked_whether_it_is(pair: Pairs) -> None:
    both = pair("""
@udf(native=True)
def asked(x: float, y: float | None) -> float:
    if x is None:
        y = 0.5
    if y is None:
        y = 2.0
    return x + y if x is not None else y
""")
    assert both.check("asked", pa.array([1.0, None, 2.5]), pa.array([None, 1.0, 3.0])) == 0


def test_all_rows_are_deferred(pair: Pairs) -> None:
    both = pair(NUMBERS)
    assert both.check("mph", pa.array([1] * 1000), pa.array([0] * 1000)) == 1000
    assert both.check("mph", pa.array([1] * 30), pa.array([0] * 30)) == 30
    assert both.check("mph", pa.array([1] * 1000), pa.array([0] * 400 + [1] * 600)) == 1000  # Python takes them all
    assert both.check("mph", pa.array([1] * 1000), pa.array([1] * 600 + [0] * 400)) == 400


def test_texts_of_deferred_rows_stand_in_their_places(pair: Pairs) -> None:
    both = pair("""
@udf(native=True)
def shout(text: str, other: str | None) -> str | None:
    if other is None:
        return None
    return text.upper() + other
""")
    texts = ["a", "\u00e9", "b", "\u00df", "", "\u0149", None, "c"]
    others: list[str | None] = ["1", "\u00e9", None, "2", "", None, "x", "\u4e2d"]
    assert both.check("shout", pa.array(texts), pa.array(others)) == 2
    shifted = list(zip((texts * 100)[3:703], (others * 100)[5:705], strict=True))
    deferred = sum(other is not None and text is not None and not text.isascii() for text, other in shifted)
    columns = [pa.array(column) for column in zip(*shifted, strict=True)]
    assert both.check("shout", *columns) == deferred > 100
    assert both.check("shout", pa.array(texts * 100).slice(3, 700), pa.array(others * 100).slice(5, 700)) == deferred
    nothing = pa.array([], pa.utf8())
    assert both.check("shout", nothing, nothing) == 0


def test_types_of_all_widths(pair: Pairs) -> None:
    both = pair("""
from typing import Annotated

import pyarrow as pa

@udf(native=True)
def byte(a: Annotated[int, pa.int8()], b: Annotated[int, pa.uint64()]) -> Annotated[int, pa.int8()]:
    return a + b

@udf(native=True)
def narrow(x: Annotated[float, pa.float32()], y: float) -> Annotated[float, pa.float32()]:
    return x * y

@udf(native=True)
def unsigned(a: Annotated[int, pa.int16()], b: Annotated[int, pa.uint32()]) -> Annotated[int, pa.uint32()]:
    return b - a

@udf(native=True)
def huge(a: Annotated[int, pa.uint64()]) -> Annotated[int, pa.uint64()]:
    return a // 2

@udf(native=True)
def both(p: bool, q: bool | None) -> bool | None:
    return None if q is None else p and not q

@udf(native=True)
def number(a: int) -> float:
    return a
""")
    assert both.check("byte", pa.array([1, 100, -128], pa.int8()), pa.array([1, 100, 2**64 - 1], pa.uint64())) == 2
    floats = pa.array([1.5, -0.0, 3e38, float("nan"), float("inf")], pa.float32())
    assert both.check("narrow", floats, pa.array([2.0, 1.0, 10.0, 1.0, 1.0])) == 2  # NaN, and what float32 has not
    assert both.check("unsigned", pa.array([1, -1, 5], pa.int16()), pa.array([0, 2**32 - 1, 7], pa.uint32())) == 2
    assert both.check("huge", pa.array([7, 2**63, None], pa.uint64())) == 1
    flags = pa.array([True, False, True, None] * 40).slice(3, 150)
    assert both.check("both", flags, pa.array([True, None, False] * 60).slice(1, 150)) == 0
    assert both.check("number", pa.array([1, 2**53, 2**53 + 1, None])) == 1


def test_the_sign_of_nan_is_python_s(pair: Pairs) -> None:
    """C compilers swap operands and move signs, which changes no number."""
    both = pair("""
@udf(native=True)
def divided(x: float) -> float:
    return -100.0 / (-x)

@udf(native=True)
def times(x: float) -> float:
    return x * -1.0

@udf(native=True)
def signed(x: float, y: float) -> float:
    return math.copysign(1.0, x * -1.0 + y)
""")
    nan = float("nan")
    values = pa.array([1.0, nan, -nan, 0.0, float("inf")])
    assert both.check("divided", values) == 3
    assert both.check("times", values) == 2
    assert both.check("signed", values, pa.array([-nan, 1.0, nan, 1.0, 2.0])) == 3


def test_a_text_that_cannot_be_read_is_python_s_matter(pair: Pairs) -> None:
    both = pair('@udf(native=True)\ndef same(text: str) -> str:\n    return text + "!"\n')
    broken = pa.Array.from_buffers(
        pa.utf8(), 3, [None, pa.array([0, 1, 3, 4], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff\xfeb")]
    )
    assert both.check("same", broken) == 3


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return print(a) or 1", "the call of `print` in line 7"),
        ("import re\n    return 1", "`import` in line 7"),
        ("return sum([a])", "the call of `sum`"),
        ("return lambda: a", "`lambda: a` in line 7"),
        ("for i in (1, 2):\n        a += i\n    return a", "the loop over `(1, 2)` in line 7"),
        ("return UNKNOWN", "the name 'UNKNOWN', which is not a constant of the module, in line 7"),
        ("return CHANGED", "the name 'CHANGED'"),
        ("return GROWS[1]", "the name 'GROWS'"),
        ("x = 1 if a else 2.0\n    return 1", "'the value' is int or float, depending on the way there"),
        (
            "x = 1\n    if a:\n        x = 2.0\n    return int(x)",
            "'x' is float or int, depending on the way there, in",
        ),
        ("if a:\n        x = 1\n    return x", "'x', which may have no value there, in line 9"),
        ("return str(a)", "str is returned instead of int in line 7"),
        ("return deep(a)", "`deep` calls itself"),
        ("return cached(a)", "the call of `cached`"),
        ("return a.bit_length()", "int instead of str in line 7"),
        ("return 2**70", "power"),
        ("return 99999999999999999999", "which needs more than 64 bits"),
        ("return max(a, key=abs)", "with arguments by name or by `*`"),
        ("while a:\n        a -= 1\n    else:\n        a = 2\n    return a", "`else` of a loop in line 10"),
        ("try:\n        return a\n    finally:\n        a = 2", "`finally` in line 10"),
        ("a: int = (b := 3)\n    return b", "`(b := 3)` in line 7"),
        ("return len(f'{a:{a}}')", "a format that is not constant in line 7"),
        ("return len(f'{a!r}')", "an f-string with `!r` or `!a` in line 7"),
        ("return len(f'{a:n}')", "the format 'n' of int in line 7"),
        ("match a:\n        case 1:\n            return 2\n    return 3", "`match` in line 7"),
    ],
)
def test_what_is_not_compiled_says_why(body: str, reason: str, tmp_path: Path) -> None:
    source = f"""import functools
from arroyo_udf_plugin import udf
GROWS = {{1: 2}}

@udf(native="auto")
def f(a: int) -> int:
    {body}

CHANGED = 1
CHANGED += 1
GROWS[2] = 3

def deep(x):
    return deep(x - 1) if x else 0

@functools.cache
def cached(x):
    return x
"""
    source = source.replace("\n@udf", "@udf", 1)
    (tmp_path / "refused.py").write_text(source.replace("GROWS = {1: 2}\n", "GROWS = {1: 2}\n\n", 1))
    function = load(build(tmp_path / "refused.py")).functions["f"]
    if reason == "power":  # its rows are deferred one by one
        assert function.native
        assert function.native_rows() == (0, 0)
        return
    assert not function.native
    assert reason in str(function.not_native)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("def g():\n    global LIMIT\n    LIMIT = 2", "the name 'LIMIT'"),
        ("globals()['LIMIT'] = 2", "`globals`, which may change any name of the module, in line 7"),
        ("import sys\nsetattr(sys.modules[__name__], 'LIMIT', 2)", "which may change any name"),
        ("import sys\nsys.modules[__name__].LIMIT = 2", "which may change any name"),
        ("import math\nmath.pi = 3", "`math.pi`, which may change any name"),
        ("from math import *", "`from math import *`"),
        ("if True:\n    LIMIT = 2", "the name 'LIMIT'"),
        ("for LIMIT in (1, 2):\n    pass", "the name 'LIMIT'"),
        ("def abs(x):\n    return 7", None),
        ("abs = len", "the call of `abs`"),
    ],
)
def test_names_that_are_bound_again(lines: str, reason: str | None, tmp_path: Path) -> None:
    source = f"""from arroyo_udf_plugin import udf
LIMIT = 1
@udf(native="auto")
def f(a: int) -> int:
    return abs(a) + LIMIT

{lines}
"""
    (tmp_path / "bound.py").write_text(source)
    pi = math.pi
    try:
        function = load(build(tmp_path / "bound.py")).functions["f"]
    finally:
        setattr(math, "pi", pi)  # noqa: B010  # a source has assigned it
    if reason is None:
        assert function.native
        assert function(pa.array([-5])).to_pylist() == [8]
    else:
        assert reason in str(function.not_native)


def test_native_true_is_refused_with_line_and_reason(tmp_path: Path) -> None:
    (tmp_path / "wants.py").write_text(
        "import re\nfrom arroyo_udf_plugin import udf\n\n@udf(native=True)\n"
        "def digits(text: str) -> str:\n    text = text.strip()\n    return re.sub('[^0-9]', '', text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "arroyo_udf_plugin.cli", "build", str(tmp_path / "wants.py")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "function 'digits' has native=True, and is not compiled because of" in done.stderr
    assert "in line 7" in done.stderr


SOME = """
import re
import pyarrow as pa
from arroyo_udf_plugin import udf

@udf
def plus(a: int) -> int:
    return a + 1

@udf(native="auto")
def digits(text: str) -> str:
    return re.sub("[^0-9]", "", text)

@udf(native=False)
def plain(a: int) -> int:
    return a

@udf(vectorized=True)
def many(a: pa.Int64Array) -> pa.Int64Array:
    return a

@udf
async def later(a: int) -> int:
    return a
"""


def test_build_says_what_is_native_and_prints_the_path_alone(tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text(SOME)
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "build", str(tmp_path / "some.py")]
    for _ in range(2):  # the second one finds the library in the cache
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert done.stdout == f"{tmp_path / 'libsome.so'}\n"
        assert done.stderr.splitlines() == [
            "plus    native",
            "digits  Python: the call of `re.sub` in line 12",
            "plain   Python: native=False",
        ]


def test_inspect_says_what_is_native(tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text(SOME)
    done = subprocess.run(
        [sys.executable, "-m", "arroyo_udf_plugin.cli", "inspect", str(tmp_path / "some.py")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "plus(a: int64) -> int64\n    sync, native\n" in done.stdout
    assert "sync\n    Python: the call of `re.sub` in line 12\n" in done.stdout
    assert "plain(a: int64) -> int64\n    sync\n    Python: native=False\n" in done.stdout
    assert "    sync, vectorized\n" in done.stdout


@pytest.mark.parametrize("value", ["'yes'", "1.5"])
def test_a_wrong_value_of_native_is_refused(value: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        f"from arroyo_udf_plugin import udf\n\n@udf(native={value})\ndef f(a: int) -> int:\n    return a\n"
    )
    with pytest.raises(Exception, match=r"has native=.*; write True, False or 'auto'"):
        build(tmp_path / "wrong.py")


def test_long_loops_are_python_s_because_it_can_be_interrupted(pair: Pairs) -> None:
    both = pair("""
@udf(native=True)
def steps(a: int) -> int:
    n = 0
    while a > 0:
        a -= 1
        n += 1
    return n
""")
    assert both.check("steps", pa.array([5, 900_000, 1_000_001, 0])) == 1


def test_rows_of_large_texts_are_deferred(pair: Pairs) -> None:
    both = pair("""
@udf(native=True)
def double(text: str) -> str:
    return text + text
""")
    assert both.check("double", pa.array(["a" * 32_768, "b" * 32_769, "c"])) == 1


@pytest.mark.parametrize(
    ("parameter", "result", "name"),
    [
        ("UUID", "str", "t"),
        ("Color | None", "str", "t"),
        ('Literal["x"]', "str", "t"),
        ("str", 'Literal["x"]', "return"),
    ],
)
def test_what_is_more_in_python_than_its_text_is_not_compiled(
    parameter: str, result: str, name: str, tmp_path: Path
) -> None:
    """F11: Python gets a UUID or a member of the enumeration, and a result outside of a Literal is an error."""
    (tmp_path / "more.py").write_text(
        "import enum\nfrom typing import Literal\nfrom uuid import UUID\nfrom arroyo_udf_plugin import udf\n\n"
        "class Color(enum.StrEnum):\n    RED = 'red'\n\n"
        f"@udf(native='auto')\ndef f(t: {parameter}) -> {result}:\n    return t\n"
    )
    function = load(build(tmp_path / "more.py")).functions["f"]
    assert f"the annotation of '{name}'" in str(function.not_native)


def test_in_worker_processes_python_runs_all_rows(tmp_path: Path) -> None:
    """F11: a row that would be deferred is an error at its own place."""
    (tmp_path / "speeds.py").write_text(f"from arroyo_udf_plugin import udf\n{NUMBERS}")
    path = build(tmp_path / "speeds.py")
    columns = pa.array([1400] * 100), pa.array([227] * 50 + [0] + [3] * 49)
    with load(path, isolation="process") as isolated:
        found = isolated.functions["mph"].outcomes(*columns)
    assert found.to_pylist() == load(path).functions["mph"].outcomes(*columns).to_pylist()
