"""Arguments that are the same in all rows come as one value (CONSTANTS in arroyo_udf.h), in the engines that say so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import daft
import polars
import pytest
from callers import connection
from polars.plugins import register_plugin_function

from arroyo_udf_plugin import InvalidArgument, build
from arroyo_udf_plugin.integrations import daft as in_daft
from arroyo_udf_plugin.integrations import polars as in_polars

HERE = Path(__file__).parent
ROWS = 1_000
LANGUAGES = ("c", "rs", "py")
WORDS = [f"w{i % 7}" for i in range(ROWS)]


@pytest.fixture(scope="module")
def constants(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    sources = [HERE / "plugins" / f"constants.{language}" for language in LANGUAGES]
    built = {source.suffix[1:]: build(shutil.copy(source, tmp_path_factory.mktemp("constants"))) for source in sources}
    return built.__getitem__


def frame() -> polars.DataFrame:
    return polars.DataFrame({"text": WORDS})


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_literal_of_polars_is_made_once(constants: Callable[[str], Path], language: str) -> None:
    made = in_polars.functions(constants(language)).made
    found = frame().select(n=made("text", polars.lit("polars")), sliced=made("text", polars.lit("café")))
    assert found["n"].to_list() == found["sliced"].to_list() == [1] * ROWS
    in_two_chunks = polars.concat([frame(), frame()], rechunk=False)
    assert in_two_chunks.select(n=made("text", polars.lit("chunks")))["n"].max() <= 2


def test_a_column_of_polars_is_not_taken_for_a_constant(constants: Callable[[str], Path]) -> None:
    made = in_polars.functions(constants("py")).made
    assert frame().select(n=made("text", "text"))["n"].max() > 100
    joined = in_polars.functions(constants("py")).joined
    assert frame().head(1).select(n=joined("text", polars.lit("x")))["n"].to_list() == ["w0 x"]


def test_a_literal_of_the_arguments_type_serves_all_chunks(library: Callable[..., Path]) -> None:
    """The first chunk is as long as the literal, and must not take it from the others."""
    mph = in_polars.functions(library("c")).mph
    chunks = [polars.DataFrame({"a": range(n, n + rows)}) for n, rows in ((10, 1), (20, 3), (30, 1), (40, 2))]
    frame = polars.concat(chunks, rechunk=False)
    assert frame.n_chunks() == 4
    found = frame.select(found=mph("a", polars.lit(60, dtype=polars.Int64)))["found"].to_list()
    assert found == [10, 20, 21, 22, 30, 40, 41]


@pytest.mark.parametrize("language", LANGUAGES)
def test_null_and_empty_constants(constants: Callable[[str], Path], language: str) -> None:
    udf = in_polars.functions(constants(language))
    nothing = polars.lit(None, dtype=polars.String)
    some = polars.DataFrame({"text": ["a", None, "b"]})
    found = some.select(joined=udf.joined("text", nothing), made=udf.made("text", nothing))
    assert found["joined"].to_list() == ["a None", "None None", "b None"]
    assert found["made"].to_list() == [None] * 3
    assert some.head(0).select(n=udf.made("text", polars.lit("empty")))["n"].to_list() == []
    assert some.select(n=udf.joined(polars.lit(""), "text"))["n"].to_list() == [" a", " None", " b"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_literal_of_daft_is_made_once(constants: Callable[[str], Path], language: str) -> None:
    in_daft.register(constants(language))
    rows = daft.from_pydict({"text": WORDS})  # noqa: F841 (daft.sql finds it by its name)
    found = daft.sql("SELECT made(text, 'daft') AS n, joined(text, 'x') AS j FROM rows").to_pydict()
    assert found["n"] == [1] * ROWS
    assert found["j"] == [f"{word} x" for word in WORDS]


def test_a_literal_of_duckdb_is_prepared_once_for_each_of_its_vectors(constants: Callable[[str], Path]) -> None:
    """DuckDB repeats it, and `Constant` finds the rows alike."""
    with connection(constants("rs")) as opened:
        opened.execute("CREATE TABLE t AS SELECT 'w' || (range % 7) AS text FROM range(10000)")
        found = opened.execute("SELECT max(made(text, 'duckdb')), count(*) FROM t").fetchone()
        assert found == (5, 10_000)


# ---- kwargs of Polars ------------------------------------------------------------------------------------------------


def with_kwargs(library: Path, name: str, *columns: Any, **kwargs: Any) -> list[Any]:
    expression = register_plugin_function(
        plugin_path=library, function_name=name, args=columns, kwargs=kwargs, is_elementwise=True
    )
    return frame().head(2).select(found=expression)["found"].to_list()


@pytest.mark.parametrize("language", LANGUAGES)
def test_kwargs_are_constants_of_their_arguments(constants: Callable[[str], Path], language: str) -> None:
    library = constants(language)
    assert with_kwargs(library, "joined", "text", word="café") == ["w0 café", "w1 café"]
    assert with_kwargs(library, "joined", "text", text="") == [" w0", " w1"]
    assert with_kwargs(library, "joined", "text", word=None) == ["w0 None", "w1 None"]
    assert with_kwargs(library, "made", "text", word=None) == [None, None]  # F3
    assert with_kwargs(library, "made", "text", word="kwarg") == [1, 1]
    in_chunks = polars.concat([frame().head(3)] * 3, rechunk=False)
    joined = register_plugin_function(
        plugin_path=library, function_name="joined", args=["text"], kwargs={"word": "x"}, is_elementwise=True
    )
    assert in_chunks.select(found=joined)["found"].to_list() == ["w0 x", "w1 x", "w2 x"] * 3


ALL_TYPES = """
import datetime
from typing import Annotated

import pyarrow as pa

from arroyo_udf_plugin import udf


@udf
def shown(
    n: int, a: bool, b: Annotated[int, pa.int8()], c: Annotated[int, pa.uint64()], d: float,
    e: Annotated[float, pa.float32()], f: str, g: bytes, h: str,
) -> str:
    return repr((a, b, c, d, e, f, g, h))

@udf
def dated(n: int, day: datetime.date | None) -> str:
    return str(day)
"""


@pytest.fixture(scope="module")
def all_types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("all_types") / "all_types.py"
    source.write_text(ALL_TYPES)
    return build(source)


def shown(library: Path, **kwargs: Any) -> Any:
    numbers = polars.DataFrame({"n": [1, 2]})
    expression = register_plugin_function(
        plugin_path=library, function_name="shown", args=["n"], kwargs=kwargs, is_elementwise=True
    )
    first, second = numbers.select(found=expression)["found"].to_list()
    assert first == second
    return eval(first)


PLAIN = {"a": True, "b": -128, "c": 2**64 - 1, "d": 2.5, "e": 0.5, "f": "twice", "g": b"\x00\xff", "h": "twice"}


def test_kwargs_of_all_types(all_types: Path) -> None:
    assert shown(all_types, **PLAIN) == tuple(PLAIN.values())
    others = {"a": False, "b": 127, "c": 0, "d": -3, "e": -8.0, "f": "x" * 300, "g": b"y" * 70_000, "h": ""}
    assert shown(all_types, **others) == tuple(others.values())
    integers = [0, 255, 256, 65_535, 65_536, 2**31, 2**32, 2**63 - 1, 2**63]
    assert [shown(all_types, **(PLAIN | {"c": number}))[2] for number in integers] == integers


@pytest.mark.parametrize(
    ("kwargs", "why"),
    [
        ({"b": 128}, "kwarg b is no value for b, which is int8"),
        ({"b": -129}, "kwarg b is no value for b, which is int8"),
        ({"c": -1}, "kwarg c is no value for c, which is uint64"),
        ({"d": 2**53 + 1}, "kwarg d is no value for d, which is float64"),
        ({"e": 1e300}, "kwarg e is no value for e, which is float32"),
        ({"f": b"bytes"}, "kwarg f is no value for f, which is utf8"),
        ({"a": 1}, "kwarg a is no value for a, which is bool"),
        ({"f": ["list"]}, "kwarg f is no None, bool, int of 64 bits, float, str or bytes"),
        ({"c": 2**64}, "the kwargs are no pickled dict of at most 64 plain values"),
        ({"other": 1}, "shown has no argument other; the first is n"),
    ],
)
def test_other_kwargs_are_refused_by_name(all_types: Path, kwargs: dict[str, Any], why: str) -> None:
    with pytest.raises(polars.exceptions.ComputeError, match=why):
        shown(all_types, **(PLAIN | kwargs))


def test_columns_and_kwargs_are_all_arguments(all_types: Path) -> None:
    with pytest.raises(polars.exceptions.ComputeError, match="shown takes 7 columns, not 1, beside 2 kwargs"):
        shown(all_types, a=True, b=1)
    dated = register_plugin_function(
        plugin_path=all_types, function_name="dated", args=["n"], kwargs={"day": None}, is_elementwise=True
    )
    assert polars.DataFrame({"n": [1]}).select(found=dated)["found"].to_list() == ["None"]


def test_keywords_are_arguments_of_these_names(constants: Callable[[str], Path]) -> None:
    joined = in_polars.functions(constants("py")).joined
    found = frame().head(1).select(a=joined("text", word=polars.lit("x")), b=joined(word="text", text=polars.lit("y")))
    assert (found["a"][0], found["b"][0]) == ("w0 x", "y w0")
    for call in (lambda: joined("text", other="text"), lambda: joined("text", text="text"), lambda: joined("text")):
        with pytest.raises(InvalidArgument, match="joined takes the arguments text, word"):
            call()


HOSTILE = """
import ctypes, pickle, random, sys
import pyarrow as pa

library = ctypes.CDLL(sys.argv[1])
field = getattr(library, "_polars_plugin_field_joined")
told = getattr(library, "_polars_plugin_get_last_error_message")
told.restype = ctypes.c_char_p
schema = ctypes.create_string_buffer(72)
pa.field("text", pa.utf8())._export_to_c(ctypes.addressof(schema))


def answered(data):
    # Whether the function takes these kwargs. They end where readable memory ends, nearly.
    out = ctypes.create_string_buffer(72)
    kwargs = (ctypes.c_ubyte * max(len(data), 1)).from_buffer_copy(data or b"x")
    field(ctypes.byref(schema), ctypes.c_size_t(1), ctypes.byref(out), kwargs, ctypes.c_size_t(len(data)))
    return any(out.raw)


good = pickle.dumps({"word": "a text"}, protocol=5)
assert answered(good)
for end in range(1, len(good)):
    assert not answered(good[:end]), end
rng = random.Random(7)
values = [None, True, 3, 300, 70_000, 2**40, 2**64 - 1, -1, -(2**40), 2.5, "x" * 300, b"y" * 300, "a", b"b"]
for _ in range(20_000):
    data = bytearray(pickle.dumps({f"k{i}": value for i, value in enumerate(rng.sample(values, 5))}, protocol=5))
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    answered(bytes(data[: rng.randint(1, len(data))]))
deep = b"\\x80\\x05" + b"(" * 1000 + b"."
assert not answered(deep) and b"no pickled dict" in told()
for data in (b"\\x8d" + b"\\xff" * 8 + b".", b"u.", b"s.", b"}h\\x05.", b"}(s.", b"}(u", b"\\x8a\\xff" + b"1" * 255):
    assert not answered(data), data
both = pickle.dumps({"word": "a", "text": "b"}, protocol=5)
field(None, ctypes.c_size_t(0), ctypes.byref(schema), both, ctypes.c_size_t(len(both)))
assert told() == b"constants.joined needs a column, which says how many rows there are", told()
print("done")
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_bytes_that_are_no_kwargs_are_refused(constants: Callable[[str], Path], language: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE, constants(language)], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
