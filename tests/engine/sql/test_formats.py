"""Formats of tables: lines of text, JSON that is not taken apart, and how JSON has times and decimals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sql_world import run_killed

from arroyo_udf_plugin.engine.embedded import run_pipeline
from arroyo_udf_plugin.errors import ArroyoUdfError
from arroyo_udf_plugin.planner.script import Script
from arroyo_udf_plugin.planner.text import Refused

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
    with pytest.raises(Refused) as error:
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
        ("", {"t": "2013-01-01 00:00:00.000000", "z": "2013-01-01 00:00:00.000000Z", "d": "1.25"}),
        (
            ", json.timestamp_format = 'RFC3339'",
            {"t": "2013-01-01T00:00:00.000000Z", "z": "2013-01-01T00:00:00.000000Z", "d": "1.25"},
        ),
        (", json.timestamp_format = 'unix_millis'", {"t": 1356998400000, "z": 1356998400000, "d": "1.25"}),
        (
            ", json.decimal_encoding = 'number'",
            {"t": "2013-01-01 00:00:00.000000", "z": "2013-01-01 00:00:00.000000Z", "d": 1.25},
        ),
        (
            ", json.decimal_encoding = 'string', json.compression = 'uncompressed'",
            {"t": "2013-01-01 00:00:00.000000", "z": "2013-01-01 00:00:00.000000Z", "d": "1.25"},
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
            "format = 'avro': it is not supported: write json, raw_string, csv, tsv, parquet or arrow",
        ),
        (
            "format = 'protobuf'",
            "",
            "format = 'protobuf': it is not supported: write json, raw_string, csv, tsv, parquet or arrow",
        ),
        (
            "format = 'debezium_json'",
            "",
            "format = 'debezium_json': updating SQL is not supported. Write json, with the columns before, after and "
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
            "format = 'json', json.timestamp_format = 'unix_millis'",
            "",
            "json.timestamp_format = 'unix_millis' is for sinks: read the column as BIGINT, and add a column "
            "TIMESTAMP(3) GENERATED ALWAYS AS (to_timestamp_millis(...))",
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


def test_times_that_are_read_as_numbers() -> None:
    """What the refusal says."""
    columns = "(at BIGINT, t TIMESTAMP(3) GENERATED ALWAYS AS (to_timestamp_millis(at)))"
    table = source("format = 'json'", columns, b'{"at": 1356998400000}\n')
    run(table + sink("format = 'json', json.timestamp_format = 'rfc3339'") + "INSERT INTO o SELECT t FROM s")
    assert written() == ['{"t":"2013-01-01T00:00:00.000Z"}']
