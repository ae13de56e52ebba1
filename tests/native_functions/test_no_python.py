"""F11: a library without Python has the values of the one with Python; rows that need Python fail."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from random_functions import rows

from arroyo_udf_plugin import Function, build, load
from arroyo_udf_plugin.errors import BuildError, InvalidArgument, UnsupportedCall

HERE = Path(__file__).parent
CC = shlex.split(os.environ.get("CC", "")) or ["cc"]
N = 5_000
SOURCE = """
import datetime
from arroyo_udf_plugin import udf

LIMIT = 1_000

@udf
def ratio(a: int, b: float) -> float:
    return a * 2.0 / b

@udf
def parts(a: int, b: int) -> int:
    return a // b + a % b

@udf
def checked(a: int | None, b: int) -> int | None:
    if a is None:
        return None
    if a > LIMIT:
        raise ValueError("too large: more than \\u00e9 1000")
    return a + b

@udf
def short(text: str, n: int) -> str:
    return text[:n].upper() + "-" + str(n)

@udf
def is_long(text: str | None) -> bool:
    return text is not None and len(text) > 3

@udf
def later(day: datetime.date, days: int) -> datetime.date:
    return day + datetime.timedelta(days=days)
"""
CATCHES = """
from arroyo_udf_plugin import udf

@udf
def divided(a: int, b: int) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return -1.0
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Function], dict[str, Function]]:
    """With Python, and without."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "prog.py").write_text(SOURCE)
    libraries = [build(folder / "prog.py", folder / f"{no}.so", no_python=no == "alone") for no in ("usual", "alone")]
    usual, alone = (dict(load(library).functions) for library in libraries)
    return usual, alone


@pytest.mark.parametrize("name", ["ratio", "parts", "checked", "short", "is_long", "later"])
def test_rows_have_the_same_values_or_fail(both: tuple[dict[str, Function], ...], name: str) -> None:
    """Where Python's own text is known, it is the first line of the error with its traceback."""
    usual, alone = both[0][name], both[1][name]
    choices = random.Random(name)
    given = [rows(argument, N, choices, extreme=0.3) for argument in usual.arguments]
    expected, found = usual.outcomes(*given).to_pylist(), alone.outcomes(*given).to_pylist()
    failed = 0
    for row, (one, other) in enumerate(zip(found, expected, strict=True)):
        error = one.get("error")
        if error is None:
            assert (one["value"], other.get("error")) == (other["value"], None), [column[row] for column in given]
            continue
        failed += 1
        if "needs Python" not in error:
            assert other["error"].splitlines()[0] == error
    counted = alone.native_rows()
    assert counted is not None
    assert (counted.rows, counted.deferred) == (N, failed)
    assert failed > 0 or name == "is_long"


def test_texts_of_errors(both: tuple[dict[str, Function], ...]) -> None:
    ratio, parts, checked, short = (both[1][name] for name in ("ratio", "parts", "checked", "short"))
    usual = both[0]

    def texts(function: Function, *given: list[object]) -> list[str]:
        return [str(text) for text in function.outcomes(*given).field("error").to_pylist()]

    for function, given in ((ratio, ([1, 1], [0.0, 1.0])), (parts, ([1, 1], [0, 1])), (checked, ([1, 1001], [1, 1]))):
        meant = [text.splitlines()[0] for text in texts(usual[function.name], *given)]
        assert texts(function, *given) == meant
    (text,) = texts(short, ["\u00e9t\u00e9s"], [2])
    assert text.startswith("prog.short, row 0: this row needs Python, and the library was built with --no-python:")
    (text,) = texts(parts, [-(2**63)], [-1])
    assert "needs Python" in text


def test_what_may_be_caught_is_not_told(tmp_path: Path) -> None:
    """Python would give -1.0."""
    (tmp_path / "prog.py").write_text(CATCHES)
    divided = load(build(tmp_path / "prog.py", no_python=True)).functions["divided"]
    text = divided.outcomes([1], [0]).field("error")[0].as_py()
    assert "needs Python" in text
    assert divided([1, 6], [2, 3]).to_pylist() == [0.5, 2.0]


def test_nothing_of_python_is_needed(tmp_path: Path, both: object) -> None:
    """A host in C, without an environment."""
    (tmp_path / "prog.py").write_text(
        "from arroyo_udf_plugin import udf\n\n@udf\ndef plus(x: int) -> int:\n    return x + 1\n"
    )
    library = build(tmp_path / "prog.py", no_python=True)
    needed = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    names = [line.split("[")[1] for line in needed.splitlines() if "(NEEDED)" in line]
    assert all(name.startswith(("libc.", "ld-linux")) for name in names), names
    assert b"libpython" not in library.read_bytes()
    program, source = tmp_path / "late", HERE.parents[1] / "tests" / "python" / "late.c"
    include = HERE.parents[1] / "native" / "include"
    subprocess.run(
        [*CC, "-rdynamic", "-D_GNU_SOURCE", f"-I{include}", str(source), "-o", str(program), "-ldl"], check=True
    )
    done = subprocess.run([str(program), str(library)], env={}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:2] == ["prog, without libpython", "2, without libpython"]


def test_in_a_worker_process(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(SOURCE)
    with load(build(tmp_path / "prog.py", no_python=True), isolation="process") as plugin:
        outcomes = plugin.functions["ratio"].outcomes([1, 1], [4.0, 0.0])
    assert outcomes.field("value").to_pylist() == [0.5, None]
    assert outcomes.field("error")[1].as_py() == "prog.ratio, row 1: ZeroDivisionError: float division by zero"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="has no subinterpreters")
def test_not_in_a_subinterpreter(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(SOURCE)
    with pytest.raises(UnsupportedCall, match=r'it was built with --no-python, or .* choose isolation="process"'):
        load(build(tmp_path / "prog.py", no_python=True), isolation="subinterpreter")


def test_a_batch_that_cannot_be_read(both: tuple[dict[str, Function], ...]) -> None:
    with pytest.raises(InvalidArgument, match="argument"):
        both[1]["ratio"]([1], ["x"])
    assert both[1]["ratio"].outcomes(pa.array([], pa.int64()), pa.array([], pa.float64())).to_pylist() == []


@pytest.mark.parametrize(
    ("ending", "text", "arroyo", "match"),
    [
        (".py", "@udf(native=False)\ndef f(x: int) -> int:\n    return x\n", None, "f.* needs Python.*native=False"),
        (".py", "@udf\nasync def f(x: int) -> int:\n    return x\n", None, "needs Python, and --no-python was asked"),
        (".py", "@udf\ndef f(x: int) -> int:\n    return x\n", "f", "the symbols for Arroyo need Python"),
        (".c", "", None, "--no-python is for sources in Python"),
    ],
)
def test_refused(tmp_path: Path, ending: str, text: str, arroyo: str | None, match: str) -> None:
    (tmp_path / f"prog{ending}").write_text(f"from arroyo_udf_plugin import udf\n\n{text}" if text else "")
    with pytest.raises(BuildError, match=match):
        build(tmp_path / f"prog{ending}", no_python=True, arroyo=arroyo)
