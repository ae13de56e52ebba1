"""Building Python plugins: mistakes are refused with file, line and the cure (F5); cache, output."""

import ast
import inspect
import os
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import arroyo_udf_plugin
from arroyo_udf_plugin import BuildError, build, load, udf
from arroyo_udf_plugin.build import cache
from arroyo_udf_plugin.build.python import c_string

BuildPlugin = Callable[..., Path]
HEAD = """\
from dataclasses import dataclass
from typing import Annotated
import datetime
import pyarrow as pa
from arroyo_udf_plugin import udf
class Context:
    async def init(self) -> None: ...
class Lazy:
    def init(self) -> None: ...
"""
FIRST = HEAD.count("\n") + 1

MISTAKES = {
    "def f(x) -> int: return x": "type of argument 'x'; annotate it, as `x: int`",
    "def f(x: int): return x": "type of its result; annotate it, as `-> int`",
    "def f(x: complex) -> int: return 1": "`complex` has no Arrow type; write bool, int",
    "def f(x: int | str) -> int: return 1": "several types; write one, or one with None",
    "def f(x: list) -> int: return 1": "write `list[int]`",
    "def f(x: 'Nowhere') -> int: return 1": "cannot be read: name 'Nowhere' is not defined",
    "def f(x: Annotated[int, pa.utf8()]) -> int: return 1": "`int` cannot be string; leave it out for int64",
    "def f() -> int: return 1": "no arguments; give it at least one",
    "def f(*x: int) -> int: return 1": "one positional parameter",
    "def f(x: int, *, y: int) -> int: return 1": "one positional parameter",
    "def f(x: int = 1) -> int: return x": "a default value for 'x', and every call passes all columns; leave it out",
    "async def f(x: int, y: int | None = None) -> int: return x": "a default value for 'y'",
    "def f(x: int) -> int: yield x": "write `return`",
    "async def f(x: int) -> int: yield x": "write `return`",
    "def f(context: Context, x: int) -> int: return x": "sync and has the Context 'Context'; write `async def`",
    "async def f(context: Lazy, x: int) -> int: return x": "write `async def init(self) -> None`",
}
OPTIONS = {
    "(allowed_in_flight=0) async ": "allowed_in_flight=0; write a whole number from 1",
    "(allowed_in_flight=True) async ": "allowed_in_flight=True; write a whole number",
    "(timeout=0) async ": "timeout=0; write seconds above 0 and up to 1e9",
    "(timeout='soon') async ": "timeout='soon'; write seconds",
    "(timeout=float('nan')) async ": "timeout=nan; write seconds",
    "(ordered=1) async ": "ordered=1; write True or False",
    "(ordered=True) ": "is sync, and 'ordered' is for async functions; write `async def` or blocking=True",
    "(speed=3) ": "unknown option 'speed'; there are vectorized, blocking, split, volatility, native, ordered,",
    "(volatility='never') ": "volatility='never'; write one of 'immutable', 'stable', 'volatile'",
    "(vectorized=True,split=1) ": "has split=1; write True or False",
    "(split=False) ": "has 'split', which is for vectorized=True; leave it out",
    "(vectorized=True) async ": "is async, and vectorized=True is for a `def`; write `def`",
}


def refused(tmp_path: Path, text: str) -> BuildError:
    source = tmp_path / "mine.py"
    source.write_text(text)
    with pytest.raises(BuildError) as caught:
        build(source, tmp_path / "mine.so")
    assert not (tmp_path / "mine.so").exists()
    assert str(caught.value).startswith(f"{source}:")
    assert caught.value.file == str(source)
    return caught.value


@pytest.mark.parametrize("function", MISTAKES)
def test_mistake_in_signature(tmp_path: Path, function: str) -> None:
    error = refused(tmp_path, f"{HEAD}\n@udf\n{function}\n")
    assert error.line == FIRST + 1
    assert str(error).startswith(f"{error.file}:{error.line}: function 'f' ")
    assert MISTAKES[function] in str(error)


@pytest.mark.parametrize("options", OPTIONS)
def test_mistake_in_options(tmp_path: Path, options: str) -> None:
    arguments, kind = options.split(" ", 1)
    error = refused(tmp_path, f"{HEAD}\n@udf{arguments}\n{kind}def f(x: int) -> int: return x\n")
    assert error.line == FIRST + 1
    assert OPTIONS[options] in str(error)


TENSOR = "pa.fixed_shape_tensor(pa.int64(), [2])"


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        ("int", "does not name one array type"),
        ("pa.Array", "`Annotated[pa.Array, pa.int64()]`"),
        (f"Annotated[pa.Array, {TENSOR}]", "has the extension type extension<arrow.fixed_shape_tensor"),
        (f"Annotated[pa.Array, pa.list_({TENSOR})]", "write fixed_size_list<item: int64>[2] instead"),
    ],
)
def test_mistake_in_vectorized(tmp_path: Path, annotation: str, said: str) -> None:
    error = refused(tmp_path, f"{HEAD}@udf(vectorized=True)\ndef f(x: {annotation}) -> pa.Int64Array: return x\n")
    assert said in str(error)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("x = 1\ndef f(:\n", 2, "is not Python: "),
        ("x = 1\nraise ValueError('no')\n", None, "line 2, in <module>\n    raise ValueError('no')\nValueError: no"),
        ("raise SystemExit(1)\n", None, "SystemExit: 1"),
        ("x = 1\n", None, "has no function with @udf; decorate one"),
        ("from arroyo_udf_plugin import udf\nf = udf(len)\n", 2, "@udf is for functions written with def"),
        (f"{HEAD}@udf\ndef f(x: int) -> int: ...\ng = f\n@udf\ndef f(x: int) -> int: ...\n", FIRST + 3, "rename one"),
        (
            f"{HEAD}@udf(native=False)\ndef f(x: int) -> int: ...\n@udf(native=False)\ndef f(x: str) -> int: ...\n",
            FIRST + 2,
            f"in line {FIRST}; rename",
        ),
        (
            f"{HEAD}@udf(native=False)\ndef f(x: int) -> int: ...\ndef f(x: int) -> int: ...\n",
            FIRST,
            "is not what 'f' means in the end",
        ),
        (
            f"{HEAD}import functools\n@functools.cache\n@udf(native=False)\ndef f(x: int) -> int: ...\n",
            FIRST + 1,
            "a decorator above @udf",
        ),
        (f"{HEAD}@udf\n@udf(native=False)\ndef f(x: int) -> int: ...\n", FIRST, "has @udf twice"),
        ("\0", None, "has a NUL character"),
    ],
)
def test_mistake_in_module(tmp_path: Path, text: str, line: int | None, said: str) -> None:
    error = refused(tmp_path, text)
    assert error.line == line
    assert said in str(error)


@pytest.mark.parametrize("name", ["two words.py", "1st.py", "notes.txt", "absent.py"])
def test_mistake_in_file(tmp_path: Path, name: str) -> None:
    if name != "absent.py":
        (tmp_path / name).write_text("")
    with pytest.raises(BuildError, match=name.replace(".", r"\.")):
        build(tmp_path / name)


def test_compiler_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(f"{HEAD}@udf(native=False)\ndef f(x: int) -> int: return x\n")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match="needs a C compiler"):
        build(tmp_path / "mine.py")


def test_cache_and_replacement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "mine.py"
    source.write_text(f"{HEAD}@udf(native=False)\ndef f(x: int) -> int: return x\n")
    first = build(source)
    assert first == tmp_path / "libmine.so"
    kept = sorted(cache.folder().rglob("*.so"))
    assert [path.name for path in kept] == ["libmine.so"]
    identities = first.stat().st_ino, kept[0].stat().st_mtime_ns

    assert build(source, first) == first
    assert first.stat().st_ino != identities[0], "replaced, not written over: others may have it open"
    assert kept[0].stat().st_mtime_ns == identities[1], "not built again"

    source.write_text(source.read_text() + "\n")
    build(source, tmp_path / "new" / "folder" / "other.so")
    assert len(list(cache.folder().rglob("*.so"))) == 2
    assert load(tmp_path / "new" / "folder" / "other.so").name == "mine"
    assert load(first).hash != load(tmp_path / "new" / "folder" / "other.so").hash
    assert not list(tmp_path.rglob(".*")), "no temporary file is left"


def test_descriptor(build_plugin: BuildPlugin) -> None:
    """Functions in order of definition, without imported ones; options as written."""
    plugin = load(
        build_plugin(
            """
            from __future__ import annotations
            import math
            from dataclasses import dataclass
            from arroyo_udf_plugin import udf

            @udf(ordered=False, allowed_in_flight=7, timeout=math.inf)
            async def second(context: Context, x: int) -> str | None:
                '''with "quotes", \\\\ and ??= and ünïcödé'''

            @udf(native=False)
            def first(x: list[Point], y: bool) -> Point: ...

            class Context:
                pass

            @dataclass
            class Point:
                x: int
                y: float | None

            again = first
            """
        )
    )
    assert (plugin.name, plugin.language, plugin.toolkit_version) == ("plugin", "python", arroyo_udf_plugin.__version__)
    assert [repr(function) for function in plugin.functions.values()] == [
        "<async function second(x: int64) -> string>",
        "<sync function first(x: list<item: struct<x: int64 not null, y: double> not null>, y: bool)"
        " -> struct<x: int64 not null, y: double>>",
    ]
    second, first = plugin.functions.values()
    assert second.options == udf(ordered=False, allowed_in_flight=7, timeout=float("inf"))(_coroutine).options
    assert first.options is None
    assert (second.returns_nullable, first.returns_nullable) == (True, False)
    assert [field.nullable for field in first.arguments] == [False, False]


async def _coroutine(x: int) -> int:
    return x


def test_decorated_function_stays_a_function() -> None:
    @udf(native=False)
    def half(x: int) -> float:
        """Half of it."""
        return x / 2

    assert half(3) == 1.5
    assert (half.__name__, half.__doc__, vars(half)["__wrapped__"]) == ("half", "Half of it.", half.function)
    assert str(inspect.signature(half)) == "(x: int) -> float"


def test_signature_for_type_checkers(tmp_path: Path) -> None:
    from mypy import api

    (tmp_path / "use.py").write_text(
        textwrap.dedent(
            """
            from arroyo_udf_plugin import udf
            @udf(native=False)
            def half(x: int) -> float: return x / 2
            @udf(ordered=False)
            async def later(x: int) -> str: return str(x)
            reveal_type(half(1))
            half("1")
            async def use() -> None: reveal_type(await later(1))
            udf(speed=1)
            """
        )
    )
    said, _, _ = api.run(["--strict", "--no-incremental", "--cache-dir", os.devnull, str(tmp_path / "use.py")])
    for expected in (
        '7: note: Revealed type is "float"',
        '8: error: Argument 1 to "__call__" of "Udf" has incompatible type "str"; expected "int"',
        '9: note: Revealed type is "str"',
        "10: error: ",
    ):
        assert f"use.py:{expected}" in said.replace("builtins.", ""), said


@pytest.mark.parametrize("text", ["", "a", 'x = "\\n"\n??/\n', "tab\t\r\nline\x0c\x85\u2028end", "é漢😀\n" * 3])
def test_c_string(text: str) -> None:
    """Python, whose octal escapes are C's, reads the literal as the bytes of the text."""
    assert (
        ast.literal_eval("(" + c_string(text).replace('"', 'b"', 1).replace('\n  "', '\n  b"') + ")") == text.encode()
    )


def test_version_is_the_package_s() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert arroyo_udf_plugin.__version__ == project["version"]
    assert sorted(arroyo_udf_plugin.__all__) == arroyo_udf_plugin.__all__
    for name in arroyo_udf_plugin.__all__:
        getattr(arroyo_udf_plugin, name)
