"""Formats of tables: lines of text, JSON that is not taken apart, and how JSON has times and decimals."""

from __future__ import annotations

import decimal
import hashlib
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sql_world import run_killed

from arroyo_udf_plugin.engine.connectors.described import Described
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.standard_input import StandardInput
from arroyo_udf_plugin.engine.connectors.standard_output import StandardOutput
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import InvalidQuery
from arroyo_udf_plugin.errors import ArroyoUdfError

pytestmark = pytest.mark.usefixtures("folder")

LINES = b'{"a": 1, "b": "x"}\n\n[1, 2]\nno json\n\xff\n"last"'


def run(text: str, udfs: tuple[str, ...] = ()) -> None:
    run_pipeline(Script("query.sql", text, udfs).pipeline)


def source(options: str, columns: str = "", lines: bytes = LINES) -> str:
    Path("in.log").write_bytes(lines)
    return f"CREATE TABLE s {columns} WITH (connector = 'filesystem', path = 'in.log', type = 'source', {options});"


def sink(options: str, columns: str = "") -> str:
    return f"CREATE TABLE o {columns} WITH (connector = 'single_file', path = 'out.log', type = 'sink', {options});"


def written() -> list[str]:
    return Path("out.log").read_text().split("\n")[:-1]


def refusal(text: str) -> str:
    with pytest.raises(InvalidQuery) as error:
        Script("query.sql", text)
    return str(error.value)


def test_lines_of_text() -> None:
    table = source("format = 'raw_string', bad_data = 'drop'", "(value TEXT)")
    run(table + sink("format = 'raw_string', framing = 'newline'") + "INSERT INTO o SELECT value || '!' AS v FROM s")
    assert written() == ['{"a": 1, "b": "x"}!', "!", "[1, 2]!", "no json!", '"last"!']


def test_a_line_that_is_no_text_fails() -> None:
    with pytest.raises(ArroyoUdfError, match=r"row 5: the line is not UTF-8"):
        run(source("format = 'raw_string'") + sink("format = 'csv'") + "INSERT INTO o SELECT * FROM s")


def test_json_that_is_not_taken_apart() -> None:
    table = source("format = 'json', json.unstructured = 'true', bad_data = 'drop'", "(value JSON)")
    columns = "(value JSON)"
    target = sink("format = 'json', 'json.unstructured' = 'true'", columns)
    run(f"{table} {target} INSERT INTO o SELECT coalesce(value -> 'b', value) FROM s")
    assert written() == ['"x"', "[1, 2]", '"last"']


def test_json_stays_on_its_line() -> None:
    table = source("format = 'raw_string'", lines=b"1\n2\n")
    query = "SELECT CASE WHEN value = '1' THEN E'{\"a\":\\n\\n1}' END AS value FROM s"
    run(table + sink("format = 'json', json.unstructured = true") + "INSERT INTO o " + query)
    assert written() == ['{"a": 1}', "null"]


def test_more_lines_than_a_batch_and_several_slices() -> None:
    lines = [f'{{"n": {n}}}' for n in range(20_000)]
    table = source("format = 'raw_string'", lines="\n".join(lines).encode())
    text = table + sink("format = 'raw_string'") + "INSERT INTO o SELECT value ->> 'n' AS n FROM s"
    run_pipeline(Script("query.sql", text).pipeline.model_copy(update={"parallelism": 2}))
    assert sorted(map(int, written())) == list(range(20_000))


@pytest.mark.parametrize("format_", ["'raw_string'", "'json', json.unstructured = 'true'"])
def test_lines_of_an_engine_that_is_killed(format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("lines").mkdir()
    for file in range(3):
        Path(f"lines/{file}.log").write_text("".join(f'{{"n": {4 * file + n}}}\n' for n in range(4)))
    options = f"connector = 'filesystem', path = 'lines', type = 'source', format = {format_}"
    text = f"CREATE TABLE s (value TEXT) WITH ({options}); SELECT json_get_int(value, 'n') AS n FROM s"
    assert run_killed(text, (), monkeypatch) == {"rows (n)": sorted(f"[{n}]" for n in range(12))}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {"t": "2013-01-01T00:00:00.000000", "z": "2013-01-01T00:00:00.000000Z", "d": "1.25"}),
        (
            ", json.timestamp_format = 'RFC3339'",
            {"t": "2013-01-01T00:00:00.000000Z", "z": "2013-01-01T00:00:00.000000Z", "d": "1.25"},
        ),
        (", json.timestamp_format = 'unix_millis'", {"t": 1356998400000, "z": 1356998400000, "d": "1.25"}),
        (
            ", json.decimal_encoding = 'number'",
            {"t": "2013-01-01T00:00:00.000000", "z": "2013-01-01T00:00:00.000000Z", "d": 1.25},
        ),
        (
            ", json.decimal_encoding = 'string', json.compression = 'uncompressed'",
            {"t": "2013-01-01T00:00:00.000000", "z": "2013-01-01T00:00:00.000000Z", "d": "1.25"},
        ),
    ],
)
def test_times_and_decimals(options: str, expected: dict[str, object]) -> None:
    flights = "CREATE TABLE f WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');"
    columns = "(t TIMESTAMP(6), z TIMESTAMP(6) WITH TIME ZONE, d DECIMAL(10, 2))"
    connector = "filesystem" if "compression" in options else "single_file"
    target = sink(f"format = 'json'{options}", columns).replace("single_file", connector)
    query = "SELECT day, arrow_cast(day, 'Timestamp(Microsecond, Some(\"UTC\"))'), cents + 1.25 FROM f WHERE id = 0"
    run(f"{flights} {target} INSERT INTO o {query}")
    text = Path("out.log").read_text() if connector == "single_file" else next(Path("out.log").iterdir()).read_text()
    assert json.loads(text) == expected


@pytest.mark.parametrize(("name", "expected"), [("zstd", "ZSTD"), ("uncompressed", "UNCOMPRESSED"), ("lz4_raw", "LZ4")])
@pytest.mark.parametrize("connector", ["single_file", "filesystem"])
def test_parquet_is_compressed_as_the_table_says(connector: str, name: str, expected: str) -> None:
    target = sink(f"format = 'parquet', parquet.compression = '{name}'").replace("single_file", connector)
    run(
        source("format = 'raw_string', bad_data = 'drop'", "(value TEXT)")
        + target
        + "INSERT INTO o SELECT value FROM s"
    )
    file = Path("out.log") if connector == "single_file" else next(Path("out.log").iterdir())
    assert pq.read_metadata(file).row_group(0).column(0).compression == expected


def test_times_before_1970_are_rounded_down() -> None:
    table = source("format = 'raw_string'", lines=b"1969-12-31T23:59:59.999500\n")
    target = sink("format = 'json', json.timestamp_format = 'unix_millis'", "(t TIMESTAMP(9))")
    run(f"{table} {target} INSERT INTO o SELECT value::timestamp FROM s")
    assert written() == ['{"t":-1}']


@pytest.mark.parametrize(
    ("options", "columns", "error"),
    [
        (
            "format = 'avro'",
            "",
            "format = 'avro': it is one of messages (Kafka): write json, raw_string, csv, tsv, parquet or arrow",
        ),
        (
            "format = 'protobuf'",
            "",
            "format = 'protobuf': it is one of messages (Kafka): write json, raw_string, csv, tsv, parquet or arrow",
        ),
        (
            "format = 'debezium_json'",
            "",
            "format = 'debezium_json': it is one of messages (Kafka). Write json, with the columns before, after and "
            "op",
        ),
        (
            "format = 'raw_bytes'",
            "",
            "format = 'raw_bytes': it is not supported: write raw_string, if the bytes are text",
        ),
        ("format = 'raw_string'", "(line TEXT)", "raw_string has one column: write value TEXT"),
        ("format = 'raw_string'", "(value TEXT, n INT)", "raw_string has one column: write value TEXT"),
        (
            "format = 'json', json.unstructured = true",
            "(a JSON)",
            "json.unstructured has one column: write value JSON",
        ),
        (
            "format = 'json', json.confluent_schema_registry = 'true'",
            "",
            "json.confluent_schema_registry: there is no schema registry here. Leave it out",
        ),
        (
            "format = 'json', json.timestamp_format = 'unix_milis'",
            "",
            "json.timestamp_format = 'unix_milis' is not known: write 'unix_millis'",
        ),
        (
            "format = 'json', json.decimal_encoding = 'bytes'",
            "",
            "json.decimal_encoding = 'bytes': write 'number' or 'string'",
        ),
        ("format = 'json', framing = 'length'", "", "framing = 'length': write 'newline'"),
        ("format = 'csv', json.unstructured = 'true'", "", "there is no option json.unstructured here: "),
    ],
)
def test_what_is_refused(options: str, columns: str, error: str) -> None:
    told = refusal(f"{source(options, columns)} SELECT 1 AS a FROM s")
    assert told.startswith("query.sql:1:")
    assert told.split(":", 3)[3].strip().startswith(error)


def test_lines_have_one_column_of_texts() -> None:
    flights = "CREATE TABLE f WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');"
    with pytest.raises(ArroyoUdfError, match="lines of text have one column of texts, not id int64, tail string"):
        run(flights + sink("format = 'raw_string'") + "INSERT INTO o SELECT id, tail FROM f")


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("TIMESTAMP(0)", ["2013-01-01T00:00:00", None, "1969-12-31T23:59:59", "1970-01-01T00:00:00"]),
        ("TIMESTAMP(3)", ["2013-01-01T00:00:00.123", None, "1969-12-31T23:59:59.001", "1970-01-01T00:00:00.000"]),
        (
            "TIMESTAMP(6) WITH TIME ZONE",
            ["2013-01-01T00:00:00.123000Z", None, "1969-12-31T23:59:59.001000Z", "1970-01-01T00:00:00.000000Z"],
        ),
    ],
)
def test_times_that_are_read_as_numbers(type_: str, expected: list[str | None]) -> None:
    lines = b'{"t": 1356998400123}\n{"t": null}\n{"t": -999}\n{"t": 0}\n{"t": "2013-01-01"}\n{"t": 1.5}\n'
    options = "format = 'json', json.timestamp_format = 'unix_millis', bad_data = 'drop'"
    run(source(options, f"(t {type_})", lines) + sink("format = 'json'") + "INSERT INTO o SELECT t FROM s")
    assert [json.loads(line)["t"] for line in written()] == expected


def test_windows_over_times_that_are_read_as_numbers() -> None:
    lines = b"".join(b'{"t": %d}\n' % (n * 700) for n in range(20))
    options = "format = 'json', json.timestamp_format = 'unix_millis'"
    table = source(options, "(t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '2 seconds')", lines)
    query = "INSERT INTO o SELECT count(*) AS n FROM s GROUP BY tumble(interval '7 seconds')"
    run(table + sink("format = 'json'") + query)
    assert written() == ['{"n":10}', '{"n":10}']


NUMBERS = st.integers() | st.decimals(allow_nan=False, allow_infinity=False).filter(lambda n: abs(n.adjusted()) < 300)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\ \n', max_size=3), inner, max_size=3),
    max_leaves=6,
)


def _decoded(text: str) -> object:
    return json.loads(text, parse_float=decimal.Decimal)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(VALUES, min_size=1, max_size=20))
def test_json_that_is_read_and_written(values: list[object]) -> None:
    """With all its digits. In between, a value is a text of JSON."""
    lines = [_encoded({"n": n, "a": value}) for n, value in enumerate(values)]
    table = source("format = 'json'", "(n BIGINT, a JSON)", "\n".join(lines).encode())
    shutil.rmtree("out.log", ignore_errors=True)
    target = sink("format = 'json'", "(a JSON, b TEXT)").replace("single_file", "filesystem")
    run(f"{table} {target} INSERT INTO o SELECT a, a FROM s")
    (part,) = Path("out.log").iterdir()
    rows = [_decoded(line) for line in part.read_text().split("\n")[:-1]]
    assert [row["a"] for row in rows] == values  # type: ignore[index]
    assert [row["b"] and _decoded(row["b"]) for row in rows] == values  # type: ignore[index]


def _encoded(value: object) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)}: {_encoded(one)}" for key, one in value.items()) + " }"
        case list():
            return "[" + " ,".join(map(_encoded, value)) + "]"
        case decimal.Decimal():
            return f"{value:f}" if "." in f"{value:f}" else f"{value:f}.0"
    return json.dumps(value, ensure_ascii=False)


def test_what_is_no_json_is_a_string() -> None:
    lines = b'{"a": [1]}\noh\n\n"x"\n{"a": 1} 2\nnull\n'
    target = sink("format = 'json'", "(a JSON)")
    run(source("format = 'raw_string'", lines=lines) + target + "INSERT INTO o SELECT value FROM s")
    assert written() == [
        '{"a":{"a":[1]}}',
        '{"a":"oh"}',
        '{"a":""}',
        '{"a":"x"}',
        '{"a":"{\\"a\\": 1} 2"}',
        '{"a":null}',
    ]


def test_json_has_no_bytes() -> None:
    flights = "CREATE TABLE f WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');"
    with pytest.raises(ArroyoUdfError, match=r"column 'h' of type binary; .* or in SQL .* encode\(h, 'hex'\)"):
        run(f"{flights} SELECT sha256(tail) AS h FROM f")
    run(flights + sink("format = 'json'") + "INSERT INTO o SELECT encode(sha256('a'), 'hex') AS h FROM f WHERE id = 1")
    assert written() == [f'{{"h":"{hashlib.sha256(b"a").hexdigest()}"}}']


@pytest.mark.parametrize("model", [StandardOutput(), Parts(path="o"), StandardInput(), Files(paths=["a"])])
def test_descriptions_without_json_are_as_they_were(model: Described) -> None:
    """So checkpoints fit that were written before there was such a key."""
    assert "json_columns" not in described(model)
    assert described(model.model_copy(update={"json_columns": ("a",)}))["json_columns"] == ["a"]


def test_nested_columns_are_read() -> None:
    """Also with the form of times that an option names, at each level."""
    lines = b'{"s": {"day": "2013-01-02", "at": 1356998400123}, "l": [1, 2.5], "d": 0.10}\n'
    columns = "(s STRUCT<day DATE, at TIMESTAMP(3)>, l DOUBLE[], d DECIMAL(20, 18))"
    table = source("format = 'json', json.timestamp_format = 'unix_millis'", columns, lines)
    target = sink("format = 'json', json.timestamp_format = 'rfc3339'")
    run(f"{table} {target} INSERT INTO o SELECT s, l, d, s.at AS at FROM s")
    assert written() == [
        '{"s":{"day":"2013-01-02","at":"2013-01-01T00:00:00.123Z"},"l":[1.0,2.5],"d":"0.100000000000000000",'
        '"at":"2013-01-01T00:00:00.123Z"}'
    ]
    Path("out.log").rename("in.log")
    table = source("format = 'json', json.timestamp_format = 'rfc3339'", columns, Path("in.log").read_bytes())
    run(table + sink("format = 'json'") + "INSERT INTO o SELECT s.at AS at, s.day AS day FROM s")
    assert written() == ['{"at":"2013-01-01T00:00:00.123","day":"2013-01-02"}']


def test_a_nested_value_that_does_not_fit_is_named() -> None:
    table = source("format = 'json'", "(s STRUCT<v INT>)", b'{"s": {"v": "x"}}\n')
    with pytest.raises(ArroyoUdfError, match=r"row 1: column 's\.v': 'x' is not int32"):
        run(f"{table} SELECT s FROM s")
