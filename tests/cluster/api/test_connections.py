"""Connectors, profiles and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from asgi_client import Client
from pyarrow import parquet
from sqlalchemy import func, select, update

from arroyo_udf_plugin.cluster.api.connectors import catalogue
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import ConnectionTableRow, PipelineRow
from arroyo_udf_plugin.engine.connectors.registry import OWN

IMPULSE = {"name": "ticks", "connector": "impulse", "config": {"event_rate": 5}}
PROFILE = {"name": "flights", "connector": "sqlite", "config": {"uri": "sqlite:/tmp/secret-place.db"}}


def field(name: str, type: str = "int64", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def test_each_connector_has_what_a_form_needs(api: Client) -> None:
    told = api.get("/api/v1/connectors").json()
    assert list(told) == ["data"]
    assert [one["name"] for one in told["data"]] == sorted(one["name"] for one in told["data"])
    by_id = {one["id"]: one for one in told["data"]}
    assert set(by_id) == {own.name for own in OWN if own.entry is not None}
    assert {"impulse", "filesystem", "kafka", "preview", "postgres"} < set(by_id)
    for one in told["data"]:
        assert set(one) == {
            "id",
            "name",
            "icon",
            "description",
            "table_config",
            "connection_config",
            "enabled",
            "source",
            "sink",
            "custom_schemas",
            "testing",
            "hidden",
        }
        assert one["icon"].startswith("<svg")
        assert json.loads(one["table_config"])["type"] == "object"
        assert one["connection_config"] is None or json.loads(one["connection_config"])["type"] == "object"
    assert by_id["preview"]["hidden"] is True
    assert json.loads(by_id["impulse"]["table_config"])["required"] == ["event_rate"]


def test_a_saved_table_is_used_by_its_name(shared: Client, tmp_path: Path) -> None:
    told = shared.post("/api/v1/connection_tables", json=IMPULSE | {"name": "Saved_Ticks"}).json()
    assert set(told) == {
        "id",
        "name",
        "created_at",
        "connector",
        "connection_profile",
        "table_type",
        "config",
        "schema",
        "consumers",
    }
    assert (told["table_type"], told["consumers"], told["connection_profile"]) == ("source", 0, None)
    assert [(one["name"], one["type"], one["sql_name"]) for one in told["schema"]["fields"]] == [
        ("counter", "int64", "BIGINT"),
        ("subtask_index", "int64", "BIGINT"),
    ]
    sink = {
        "name": "saved_out",
        "connector": "filesystem",
        "config": {
            "table_type": {"type": "sink", "path": str(tmp_path / "o'ut"), "rolling_policy": {"interval_seconds": 5}}
        },
        "schema": {"format": {"type": "json"}, "fields": [field("n"), field("at", "timestamp", unit="millisecond")]},
    }
    assert shared.post("/api/v1/connection_tables", json=sink).status_code == 200
    query = "INSERT INTO saved_out SELECT counter, now() FROM saved_ticks;"
    asked = {"name": "uses", "query": query, "parallelism": 1}
    made = shared.post("/api/v1/pipelines", json=asked)
    assert made.status_code == 200, made.text
    assert [node["operator"] for node in made.json()["graph"]["nodes"]][-1] == "filesystem"
    tables = {one["name"]: one for one in shared.get("/api/v1/connection_tables?limit=100").json()["data"]}
    assert (tables["Saved_Ticks"]["consumers"], tables["saved_out"]["consumers"]) == (1, 1)
    assert not (tmp_path / "o'ut").exists()


def test_a_table_is_tested_step_by_step(shared: Client, tmp_path: Path) -> None:
    def steps(asked: dict[str, Any]) -> list[dict[str, Any]]:
        answer = shared.post("/api/v1/connection_tables/test", json=asked)
        assert answer.headers["content-type"].startswith("text/event-stream")
        return [json.loads(part.removeprefix("data: ")) for part in answer.text.split("\n\n") if part]

    right = steps(IMPULSE)
    assert [(one["error"], one["done"]) for one in right] == [(False, False), (False, False), (False, True)]
    missing = {"table_type": {"type": "source", "path": str(tmp_path / "nothing.csv")}}
    wrong = steps({"name": "t", "connector": "filesystem", "config": missing, "schema": {"format": {"type": "csv"}}})
    assert (wrong[-1]["error"], wrong[-1]["done"]) == (True, True)
    assert "nothing.csv" in wrong[-1]["message"]
    broken = steps(IMPULSE | {"config": {}})
    assert broken[-1] == {"error": True, "done": True, "message": "config: event_rate: Field required"}


def test_the_value_of_a_secret_is_never_told_and_never_in_a_pipeline(shared: Client, tmp_path: Path) -> None:
    uri = f"sqlite:{tmp_path}/very-secret.db"
    profile = shared.post("/api/v1/connection_profiles", json=PROFILE | {"name": "secret", "config": {"uri": uri}})
    assert profile.status_code == 200
    id = profile.json()["id"]
    table = {
        "name": "secret_out",
        "connector": "sqlite",
        "connection_profile_id": id,
        "config": {},
        "schema": {"fields": [field("n")], "primary_keys": ["n"]},
    }
    assert shared.post("/api/v1/connection_tables", json=table).status_code == 200
    query = "CREATE TABLE t WITH (connector = 'impulse'); INSERT INTO secret_out SELECT counter FROM t;"
    made = shared.post("/api/v1/pipelines", json={"name": "x", "query": query, "parallelism": 1})
    assert made.status_code == 200, made.text
    assert made.json()["graph"]["nodes"][-1]["operator"] == "sqlite"
    for path in ("connection_profiles", "connection_tables?limit=100", "pipelines?limit=100", "jobs"):
        assert "very-secret" not in shared.get(f"/api/v1/{path}").text


def test_tables_of_http_have_their_secrets_in_profiles(shared: Client) -> None:
    """And do without one where there is no secret."""
    table = {"connector": "polling_http", "config": {"endpoint": "http://127.0.0.1:1/rows"}}
    schema = {"fields": [field("n")], "format": {"type": "json"}}
    public = shared.post("/api/v1/connection_tables", json=table | {"name": "public_rows", "schema": schema})
    assert public.status_code == 200, public.text
    own = {"name": "known", "connector": "polling_http", "config": {"value": "Bearer hush-hush"}}
    profile = shared.post("/api/v1/connection_profiles", json=own).json()
    assert profile["config"] == {"value": "********"}
    secret = table | {"name": "secret_rows", "schema": schema, "connection_profile_id": profile["id"]}
    assert shared.post("/api/v1/connection_tables", json=secret).status_code == 200
    asked = {"name": "polls", "query": "SELECT n FROM secret_rows", "parallelism": 1}
    made = shared.post("/api/v1/pipelines", json=asked)
    assert made.status_code == 200, made.text
    for path in ("connection_profiles", "connection_tables?limit=100", "pipelines?limit=100", "jobs"):
        assert "hush-hush" not in shared.get(f"/api/v1/{path}").text
    with shared.database.read() as session:
        row = session.scalars(select(PipelineRow).where(PipelineRow.id == made.json()["id"])).one()
        variable = f"{profile['id']}_VALUE".upper()
        assert row.program["variables"] == {variable: "Bearer hush-hush"}, "which are sealed"
        assert f"${{{variable}}}" in json.dumps({**row.program, "variables": {}})
    webhook = {"table_type": {"type": "source", "listen": "127.0.0.1:1", "journal": "j"}}
    wrong = {"name": "wrong", "connector": "webhook", "config": {"value": "a"}}
    senders = shared.post("/api/v1/connection_profiles", json=wrong).json()
    told = shared.post(
        "/api/v1/connection_tables",
        json={"name": "w", "connector": "webhook", "config": webhook, "connection_profile_id": senders["id"]},
    )
    assert (told.status_code, told.json()["error"]) == (
        400,
        "connection_profile_id: its profile has nothing for a source: give it a token, or leave it out",
    )


def test_a_saved_table_that_cannot_be_read_matters_to_its_own_queries_only(shared: Client) -> None:
    ids = []
    for name in ("unreadable_1", "unreadable_2"):
        ids.append(shared.post("/api/v1/connection_tables", json=IMPULSE | {"name": name}).json()["id"])
    with shared.database.begin() as session:
        for id, change in zip(ids, ({"connector": "pigeon"}, {"schema": {"fields": 5}}), strict=True):
            session.execute(update(ConnectionTableRow).where(ConnectionTableRow.id == id).values(change))
    other = {"query": "CREATE TABLE t WITH (connector = 'impulse');\nSELECT counter FROM t;"}
    assert shared.post("/api/v1/pipelines/validate_query", json=other).json()["errors"] == []
    asked = {"query": "CREATE TABLE t WITH (connector = 'impulse');\nSELECT counter FROM unreadable_1"}
    for name in ("unreadable_1", "unreadable_2"):
        (error,) = shared.post(
            "/api/v1/pipelines/validate_query", json={"query": asked["query"].replace("unreadable_1", name)}
        ).json()["errors"]
        assert error["message"].startswith(f"saved table {name}: this version cannot read it")
        assert error["span"] == {"start": {"line": 2, "column": 21}, "end": {"line": 2, "column": 33}}
    assert [shared.delete(f"/api/v1/connection_tables/{id}").status_code for id in ids] == [200, 200]


def test_secrets_of_profiles_are_for_queries_that_name_their_tables(shared: Client, tmp_path: Path) -> None:
    """A function that is loaded to plan another query does not see them."""
    profile = shared.post("/api/v1/connection_profiles", json=PROFILE | {"name": "unseen"}).json()
    table = {"name": "unseen_out", "connector": "sqlite", "connection_profile_id": profile["id"], "config": {}}
    assert shared.post("/api/v1/connection_tables", json=table).status_code == 200
    seen = tmp_path / "seen"
    definition = f"""
import os, pathlib
from arroyo_udf_plugin import udf
pathlib.Path({str(seen)!r}).write_text(repr(dict(os.environ)))

@udf
def looks(n: int) -> int:
    return n
"""
    query = "CREATE TABLE t WITH (connector = 'impulse'); SELECT looks(counter) AS c FROM t;"
    udfs = [{"definition": definition, "language": "python"}]
    told = shared.post("/api/v1/pipelines/validate_query", json={"query": query, "udfs": udfs}).json()
    assert told["errors"] == []
    assert "PATH" in seen.read_text()
    assert "secret-place" not in seen.read_text()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"connector": "pulsar"}, "there is no connector pulsar"),
        ({"connector": "preview", "config": {}}, "preview"),
        ({"config": {}}, "config: event_rate"),
        ({"config": {"event_rate": -1}}, "config: event_rate"),
        ({"config": {"event_rate": 1, "more": 1}}, "config: more"),
        ({"connection_profile_id": "cp_0"}, "impulse has no profiles"),
        ({"connector": "sqlite", "config": {}}, "tables of sqlite need a profile"),
        ({"connector": "stdout", "config": {}, "schema": {"fields": [field("a"), field("a")]}}, "two fields a"),
        ({"connector": "stdout", "config": {}, "schema": {"format": {"type": "protobuf"}}}, "the format protobuf"),
        ({"connector": "stdout", "config": {}, "schema": {"primary_keys": ["b"]}}, "there is no field b"),
        (
            {"connector": "stdout", "config": {}, "schema": {"format": {"type": "raw_string"}, "fields": [field("a")]}},
            "raw_string has one field",
        ),
        (
            {"connector": "stdout", "config": {}, "schema": {"fields": [field("a", metadata_key="offset")]}},
            "metadata",
        ),
        (
            {"connector": "filesystem", "config": {"table_type": {"type": "source", "path": "a\nb"}}},
            "config: table_type",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_the_reason(api: Client, change: dict[str, Any], told: str) -> None:
    answer = api.post("/api/v1/connection_tables", json=IMPULSE | change)
    assert answer.status_code == 400, answer.text
    assert told in answer.json()["error"]


@pytest.mark.parametrize(
    "schema",
    [
        {"fields": [field("a", "decimal128")]},
        {"fields": [field("a", "decimal128", precision=39, scale=0)]},
        {"fields": [field("a", "struct")]},
        {"fields": [field("a", "list")]},
        {"fields": [field("a", "int16")]},
        {"bad_data": {"behavior": "ignore"}},
        {"format": {"type": "xml"}},
    ],
)
def test_a_schema_of_another_shape_is_refused(api: Client, schema: dict[str, Any]) -> None:
    assert api.post("/api/v1/connection_tables/schemas/test", json=schema).status_code in (400, 422)


def test_a_schema_that_can_be_is_answered_with_nothing(api: Client) -> None:
    item = field("item", "struct", fields=[field("x", "float64")])
    fields = [field("a", "decimal128", precision=10, scale=2), field("b", "list", items=item), field("c", "json")]
    answer = api.post("/api/v1/connection_tables/schemas/test", json={"fields": fields, "primary_keys": ["a"]})
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "0")


def test_a_json_schema_gives_the_columns(api: Client) -> None:
    json_schema = {
        "type": "object",
        "required": ["id", "at"],
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {"type": "object", "properties": {"lat": {"type": "number"}}},
            "any": {},
            "maybe": {"type": ["string", "null"]},
        },
    }
    definition = {"type": "json_schema", "schema": json.dumps(json_schema)}
    asked = {"name": "events", "connector": "stdout", "config": {}, "schema": {"definition": definition}}
    told = api.post("/api/v1/connection_tables", json=asked).json()
    assert [(one["name"], one["sql_name"], one["required"]) for one in told["schema"]["fields"]] == [
        ("id", "BIGINT", True),
        ("at", "TIMESTAMP(9)", True),
        ("tags", "TEXT[]", False),
        ("place", 'STRUCT<"lat" DOUBLE>', False),
        ("any", "JSON", False),
        ("maybe", "TEXT", False),
    ]
    for wrong in ("{", "[]", "{}", '{"properties": {"a": 1}, "required": 5}', "null"):
        bad = {"fields": [], "definition": {"type": "json_schema", "schema": wrong}}
        assert api.post("/api/v1/connection_tables/schemas/test", json=bad).status_code == 400


def test_profiles_are_listed_tested_and_deleted(api: Client) -> None:
    made = api.post("/api/v1/connection_profiles", json=PROFILE).json()
    assert set(made) == {"id", "name", "connector", "config", "description"}
    assert made["config"] == {"uri": "********"}
    assert api.get("/api/v1/connection_profiles").json() == {"data": [made]}
    assert api.get(f"/api/v1/connection_profiles/{made['id']}/autocomplete").json() == {"values": {}}
    assert api.get("/api/v1/connection_profiles/cp_no/autocomplete").status_code == 404
    right = api.post("/api/v1/connection_profiles/test", json=PROFILE).json()
    assert (right["error"], right["done"]) == (False, True)
    wrong = api.post("/api/v1/connection_profiles/test", json=PROFILE | {"config": {}}).json()
    assert (wrong["error"], wrong["done"]) == (True, True)
    assert api.post("/api/v1/connection_profiles", json=PROFILE | {"connector": "impulse"}).status_code == 400
    answer = api.delete(f"/api/v1/connection_profiles/{made['id']}")
    assert (answer.status_code, answer.content) == (200, b"")
    assert api.delete(f"/api/v1/connection_profiles/{made['id']}").status_code == 404


def test_every_statement_of_the_catalog_has_its_options() -> None:
    """A connector without options of its own would be silently useless."""
    empty = {name for name, entry in catalogue().items() if not entry.table.model_fields}
    assert empty == {"blackhole", "preview", "stdout"}


def test_a_refused_table_is_not_stored(api: Client, database: Database) -> None:
    api.post("/api/v1/connection_tables", json=IMPULSE | {"config": {}})
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(ConnectionTableRow)) == 0


JSON_ROWS = """{"n": 1, "s": "a", "x": 1.5, "b": true, "o": {"k": 1}, "l": [1], "z": "01"}
{"n": 2, "s": null, "x": 2, "b": false, "o": {"k": 2}, "l": [], "z": "02"}
"""
CSV_ROWS = """n,x,b,at,code,phone,long,s,empty
1,1.5,true,2024-01-02T03:04:05Z,007,+49123,12345678901234567890,a,
-2,3,false,2024-01-02T03:04:06Z,008,+49124,1.5,2,
"""


def files(folder: Path, text: str, ending: str) -> dict[str, Any]:
    (folder / f"a.{ending}").write_text(text)
    config = {"table_type": {"type": "source", "path": f"{folder}/*.{ending}"}}
    return {"connector": "filesystem", "config": config, "schema": {"format": {"type": ending}, "inferred": True}}


def types(schema: Any) -> dict[str, str]:
    return {one["name"]: one["type"] for one in schema["fields"]}


def test_the_first_rows_give_the_fields_of_a_table(shared: Client, tmp_path: Path) -> None:
    told = shared.post(
        "/api/v1/connection_tables/schemas/sample", json=files(tmp_path, CSV_ROWS, "csv") | {"name": "sampled"}
    ).json()
    assert types(told) == {
        "n": "int64",
        "x": "float64",
        "b": "bool",
        "at": "timestamp",
        "code": "string",
        "phone": "string",
        "long": "string",
        "s": "string",
        "empty": "string",
    }
    assert (told["inferred"], told["fields"][3]["sql_name"]) == (True, "TIMESTAMP(6)")
    made = shared.post(
        "/api/v1/connection_tables", json=files(tmp_path, JSON_ROWS, "json") | {"name": "sampled_rows"}
    ).json()
    assert types(made["schema"]) == {
        "n": "int64",
        "s": "string",
        "x": "float64",
        "b": "bool",
        "o": "json",
        "l": "list",
        "z": "string",
    }
    (tmp_path / "a.json").write_text('{"n": 5, "l": [3]}\n')  # what was sampled holds
    query = "SELECT n, s, x, b, z FROM sampled_rows"
    assert shared.post("/api/v1/pipelines/validate_query", json={"query": query}).json()["errors"] == []


def test_a_file_with_types_gives_them(shared: Client, tmp_path: Path) -> None:
    rows = {
        "i": pa.array([1], pa.int16()),
        "u": pa.array([1], pa.uint64()),
        "d": pa.array(["1.25"]).cast(pa.decimal128(10, 2)),
        "at": pa.array([0], pa.timestamp("ms")),
        "o": pa.array([{"a": 1.5}]),
        "f": pa.array([1], pa.float32()),
    }
    table = files(tmp_path, "", "parquet") | {"name": "typed_sample"}
    parquet.write_table(pa.table(rows), tmp_path / "a.parquet")
    made = shared.post("/api/v1/connection_tables", json=table).json()
    assert types(made["schema"]) == {
        "i": "int32",
        "u": "uint64",
        "d": "decimal128",
        "at": "timestamp",
        "o": "struct",
        "f": "float32",
    }
    query = "SELECT i, u, d, at, o, f FROM typed_sample"
    assert shared.post("/api/v1/pipelines/validate_query", json={"query": query}).json()["errors"] == []
    parquet.write_table(pa.table({"day": pa.array([1], pa.date32())}), tmp_path / "a.parquet")
    answer = shared.post("/api/v1/connection_tables/schemas/sample", json=table)
    assert (answer.status_code, "column day is date32" in answer.json()["error"]) == (400, True)


def test_a_sample_that_cannot_be_is_refused(shared: Client, tmp_path: Path) -> None:
    missing = files(tmp_path, "", "json") | {"name": "missing"}
    (tmp_path / "a.json").unlink()
    sink = {"name": "s", "connector": "stdout", "config": {}, "schema": {"inferred": True}}
    for asked, told in ((missing, "json"), (sink, "only sources")):
        answer = shared.post("/api/v1/connection_tables/schemas/sample", json=asked)
        assert (answer.status_code, told in answer.json()["error"]) == (400, True), answer.text
