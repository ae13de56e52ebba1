"""Functions for JSON: columns of texts against the json module, and how calls of them are written for DataFusion."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_json import MISSING, dumped, loaded, plain, plain_answer

from arroyo_udf_plugin.engine.connectors.json_values import BY_KEYS, BY_PATH, JsonFunction
from arroyo_udf_plugin.engine.datafusion.native_calls import WrongCall, with_native
from arroyo_udf_plugin.engine.datafusion.query import Failed, Query, Select, WrongQuery
from arroyo_udf_plugin.errors import InvalidArgument

KEYS = st.sampled_from(["a", "b", "", "é😀", 'q"\\\n', "\ud800"])
NAMES = st.sampled_from(["a", "b", "c"])


def documents(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=40)
        | keys
    )
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )


def texts(keys: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    """JSON, and what is nearly JSON."""
    whole = documents(keys).map(dumped)
    pieces = st.sampled_from(["", "{", "]", ",", '"', "\\", "x", "0", "\n", " "])
    broken = st.tuples(whole, st.integers(0, 100), pieces).map(
        lambda one: one[0][: one[1]] + one[2] + one[0][one[1] + 1 :]
    )
    return st.none() | whole | broken


def told(answer: Any) -> Any:
    """Texts that are JSON by what they say: the json module writes numbers and escapes in its own way, and a number
    that is no float as Infinity."""
    if isinstance(answer, list):
        return [told(one) for one in answer]
    value = loaded(answer, first=True, infinite=True) if isinstance(answer, str) else MISSING
    return answer if value is MISSING else value


STEPS = st.lists(KEYS.filter(lambda key: key != "\ud800") | st.integers(-1, 3), max_size=3).map(tuple)


@settings(max_examples=60, deadline=None)
@given(st.lists(texts(KEYS), max_size=30), STEPS, st.integers(0, 3))
@example(["1e+310", '{"a":1,"a":2}'], (), 0)
def test_by_keys(given: list[str | None], path: tuple[str | int, ...], start: int) -> None:
    column = pa.array(given, pa.string()).slice(start)
    for name in BY_KEYS:
        answers = JsonFunction(name, path)(column)
        answers.validate(full=True)
        for text, answer in zip(column.to_pylist(), answers.to_pylist(), strict=True):
            # Nothing is read behind the value, and the json module reads all of a text.
            if text is None or loaded(text, first=True) is not MISSING:
                assert told(answer) == told(plain_answer(name, text, path)), (name, text)


PATHS = st.lists(
    NAMES.map(lambda name: f".{name}")
    | st.integers(-3, 3).map(lambda index: f"[{index}]")
    | st.sampled_from(["[*]", ".*"]),
    max_size=3,
).map(lambda segments: "$" + "".join(segments))


@settings(max_examples=60, deadline=None)
@given(st.lists(texts(NAMES), max_size=30), PATHS, st.integers(0, 3))
def test_by_path(given: list[str | None], path: str, start: int) -> None:
    column = pa.array(given, pa.string()).slice(start)
    for name in BY_PATH:
        function = JsonFunction(name, path)
        answers = function(column)
        answers.validate(full=True)
        assert told(answers.to_pylist()) == told(plain(function)(column).to_pylist()), name


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts(NAMES), NAMES | st.none(), st.integers(-1, 2) | st.none()), max_size=20))
def test_steps_of_their_own(rows: list[tuple[str | None, str | None, int | None]]) -> None:
    rows = [row for row in rows if row[0] is None or loaded(row[0], first=True) is not MISSING]
    column = pa.array([row[0] for row in rows], pa.string())
    for last in (pa.array([row[1] for row in rows], pa.string()), pa.array([row[2] for row in rows], pa.int64())):
        for name in BY_KEYS:
            function = JsonFunction(name, (), last.type)
            assert told(function(column, last).to_pylist()) == told(plain(function)(column, last).to_pylist()), name


def test_large_and_deep_texts() -> None:
    depth, size = 300_000, 1 << 20
    deep = "[" * depth + "1" + "]" * depth
    column = pa.array([f'{{"deep": {deep}, "long": "{"x" * size}", "n": 1}}', "[" * depth])
    assert JsonFunction("json_get_int", ("n",))(column).to_pylist() == [1, None]
    assert JsonFunction("json_get", ("deep",))(column).to_pylist() == [deep, None]
    assert JsonFunction("json_get_str", ("long",))(column).to_pylist() == ["x" * size, None]
    assert JsonFunction("extract_json_string", "$.long")(column).to_pylist() == ["x" * size, None]


@pytest.mark.parametrize("path", ["", "a", "$..a", "$[?@.a]", "$[0:1]", "$.a b"])
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(InvalidArgument, match="is not supported at its character"):
        JsonFunction("extract_json", path)


# ---- Calls ----

WRITTEN = {
    "a -> 'b'": "{json_get:b}(a)",
    "a ->> 'it''s' = 'x'": "{json_as_text:it's}(a) = 'x'",
    "a -> 'b' -> 0 ->> 'c'": "{json_as_text:b,0,c}(a)",
    "t.a->-1": "{json_get:-1}(t.a)",
    "upper( a ->> 'b' ) || 'x'": "upper( {json_as_text:b}(a) ) || 'x'",
    "a ? 'b' AND NOT a -> 'c' ? 'd'": "{json_contains:b}(a) AND NOT {json_contains:c,d}(a)",
    "a ->> 'b' -> 'c'": "{json_get:c}({json_as_text:b}(a))",
    "a -> k": "{json_get:}(a, k)",
    "a -> 'b' -> (k || 'x') -> 'c'": "{json_get:c}({json_get:}({json_get:b}(a), (k || 'x')))",
    "(a -> 'b')::bigint + 1": "({json_get_int:b}(a))::bigint + 1",
    "CAST( a -> 'b' AS DOUBLE PRECISION )": "CAST( {json_get_float:b}(a) AS DOUBLE PRECISION )",
    "cast((a -> 'b') as boolean)": "cast(({json_get_bool:b}(a)) as boolean)",
    "(a -> 'b')::text": "({json_get_str:b}(a))::text",
    "json_get(a, 'b')::int": "{json_get_int:b}(a)::int",
    "TRY_CAST(JSON_GET(a, 'b', 1) AS varchar)": "TRY_CAST({json_get_str:b,1}(a) AS varchar)",
    "(a -> 'b')::timestamp": "({json_get_str:b}(a))::timestamp",
    "(a ->> 'b')::int": "({json_as_text:b}(a))::int",
    "json_get_str( a , 'b' )": "{json_get_str:b}(a)",
    "json_len(json_get(a, 'b'))": "{json_length:}({json_get:b}(a))",
    "json_keys(a)": "{json_object_keys:}(a)",
    "extract_json(a, '$.b[*]')": "{extract_json:$.b[*]}(a)",
    "coalesce(a ->> 'b', a -> 'c', '?')": "coalesce({json_as_text:b}(a), {json_get:c}(a), '?')",
    "CASE WHEN a ? 'b' THEN 1 END -> 'c'": "{json_get:c}(CASE WHEN {json_contains:b}(a) THEN 1 END)",
    "CASE a ->> 'b' WHEN 'c' THEN a ->> 'd' END": "CASE {json_as_text:b}(a) WHEN 'c' THEN {json_as_text:d}(a) END",
    "'{}'::json ->> 'b'": "{json_as_text:b}('{}'::json)",
    "a::varchar(9) ->> 'b'": "{json_as_text:b}(a::varchar(9))",
    "l[1] ->> 'b'": "{json_as_text:b}(l[1])",
    "a ->> 'b' IN ('c', 'd')": "{json_as_text:b}(a) IN ('c', 'd')",
    "x - 1 > 0 -- a -> 'b'": "x - 1 > 0 -- a -> 'b'",
    "'a -> b' || \"a -> b\"": "'a -> b' || \"a -> b\"",
    "t.json_get": "t.json_get",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_what_is_written(text: str) -> None:
    written = with_native(text, lambda _: pa.string())
    found = written.text
    for one in written.functions:
        path = one.function.path if isinstance(one.function.path, str) else ",".join(map(str, one.function.path))
        found = found.replace(f'"{one.name}"', f"{{{one.function.name}:{path}}}")
    assert found == WRITTEN[text]


@pytest.mark.parametrize(
    ("text", "at", "error"),
    [
        ("1 + a -> 'b'", 6, "write brackets: ... + (a -> 'k'), as + comes first here"),
        ("'x' || a ->> 'b'", 9, "write brackets: ... || (a ->> 'k'), as || comes first here"),
        ("a -> 'b' + 1", 9, "write brackets: (a -> 'k') + ..., as + comes first here"),
        ("a -> 'b'::int", 8, "this casts 'b' alone: write (a -> 'b')::type"),
        ("a ->", 2, "write a key or an index behind ->"),
        ("= -> 'b'", 2, "something is missing before this ->"),
        ("json_get()", 0, "json_get needs a text, as in json_get(a, 'b', 0)"),
        (
            "extract_json(a)",
            0,
            "extract_json needs a text and a path in single quotes, as in extract_json(a, '$.b[0]')",
        ),
        (
            "extract_json(a, k)",
            16,
            "extract_json needs a text and a path in single quotes, as in extract_json(a, '$.b[0]')",
        ),
    ],
)
def test_what_is_refused(text: str, at: int, error: str) -> None:
    with pytest.raises(WrongCall) as found:
        with_native(text, lambda _: pa.string())
    assert (str(found.value), found.value.at) == (error, at)


def test_a_step_has_a_type() -> None:
    schema = pa.schema([("a", pa.string()), ("x", pa.float64()), ("n", pa.int16())])
    with pytest.raises(WrongQuery, match="a step is a key or an index, and this is double") as error:
        Query(Select({"n": "a -> n", "x": "a -> x"}), schema)
    assert error.value.item == "x"


@pytest.mark.parametrize("text", ["n -> 'a'", "json_length(n + 1, 'a')", "upper('x' || (n ->> 'a'))"])
def test_json_is_text(text: str) -> None:
    with pytest.raises(WrongQuery, match="JSON is text, and this is int64"):
        Query(Select({"x": text}), pa.schema([("n", pa.int64())]))


def test_a_value_that_is_no_number_fails_nothing() -> None:
    """A cast of json_get asks for the type; a cast of a text fails for the row."""
    schema = pa.schema([("a", pa.string())])
    batch = pa.record_batch([['{"n": 1}', '{"n": "x"}', "oh", None]], schema=schema)
    (found,) = Query(Select({"n": "(a -> 'n')::bigint"}), schema).run(batch)
    assert not isinstance(found, Failed)
    assert found.rows.column(0).to_pylist() == [1, None, None, None]
    failed = [one for one in Query(Select({"n": "(a ->> 'n')::bigint"}), schema).run(batch) if isinstance(one, Failed)]
    assert [one.position for one in failed] == [1]
