"""What is saved can be changed. Pipelines keep what they were planned with, until a restart plans them anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client
from sqlalchemy import select

from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import ConnectionProfileRow, ConnectionTableRow

PROFILE = {"name": "place", "connector": "sqlite", "config": {"uri": "sqlite:first.db"}}
TABLE = {"name": "out", "connector": "sqlite", "config": {}, "schema": {"fields": [{"name": "n", "type": "int64"}]}}


def profile(api: Client, name: str = "place") -> dict[str, Any]:
    told: dict[str, Any] = api.post("/api/v1/connection_profiles", json=PROFILE | {"name": name}).json()
    return told


def config(database: Database, id: str) -> Any:
    with database.read() as session:
        return session.scalars(select(ConnectionProfileRow).where(ConnectionProfileRow.id == id)).one().config


def test_a_profile_is_changed_and_keeps_a_secret_that_is_not_sent(api: Client, database: Database) -> None:
    made = profile(api)
    path = f"/api/v1/connection_profiles/{made['id']}"
    assert api.patch(path, json={"name": "there"}).json() == made | {"name": "there"}
    read_back = {"name": "here", "config": made["config"]}  # as a form sends what it has read
    assert api.patch(path, json=read_back).json() == made | {"name": "here"}
    assert config(database, made["id"]) == {"uri": "sqlite:first.db"}
    answer = api.patch(path, json={"config": {"uri": "sqlite:second.db"}})
    assert (answer.status_code, "second" in answer.text) == (200, False)
    assert config(database, made["id"]) == {"uri": "sqlite:second.db"}


def test_a_wrong_change_of_a_profile_changes_nothing(api: Client, database: Database) -> None:
    made, other = profile(api), profile(api, "other")
    path = f"/api/v1/connection_profiles/{made['id']}"
    for wrong in ({"name": "other"}, {"config": {}}, {"config": {"uri": "x", "more": 1}}):
        assert api.patch(path, json=wrong).status_code == 400, wrong
    assert api.patch(path, json={"name": ""}).status_code == 400
    assert api.patch("/api/v1/connection_profiles/cp_0", json={}).status_code == 404
    assert api.get("/api/v1/connection_profiles").json()["data"] == [other, made]
    assert config(database, made["id"]) == {"uri": "sqlite:first.db"}


def test_stars_are_no_secret(api: Client) -> None:
    answer = api.post("/api/v1/connection_profiles", json=PROFILE | {"config": {"uri": "********"}})
    assert (answer.status_code, "write the value" in answer.json()["error"]) == (400, True)


def test_a_table_is_changed_as_it_is_created(api: Client) -> None:
    one, two = profile(api), profile(api, "other")
    made = api.post("/api/v1/connection_tables", json=TABLE | {"connection_profile_id": one["id"]}).json()
    path = f"/api/v1/connection_tables/{made['id']}"
    assert api.patch(path, json={}).json() == made
    schema = {"fields": [{"name": "n", "type": "int64"}, {"name": "m", "type": "string"}], "primary_keys": ["n"]}
    told = api.patch(path, json={"name": "Out2", "connection_profile_id": two["id"], "schema": schema}).json()
    assert (told["name"], told["connection_profile"]["name"], told["id"]) == ("Out2", "other", made["id"])
    assert [one["sql_name"] for one in told["schema"]["fields"]] == ["BIGINT", "TEXT"]
    assert api.get("/api/v1/connection_tables").json()["data"] == [told]
    assert api.post("/api/v1/connection_tables", json=TABLE | {"connection_profile_id": one["id"]}).status_code == 200
    for wrong in ({"name": "OUT"}, {"config": {"more": 1}}, {"schema": {"primary_keys": ["x"]}}):
        assert api.patch(path, json=wrong).status_code == 400, wrong
    assert api.patch("/api/v1/connection_tables/ct_0", json={}).status_code == 404
    assert api.get("/api/v1/connection_tables").json()["data"][-1] == told


def test_a_table_that_this_version_cannot_read_is_listed_mended_and_deleted(api: Client, database: Database) -> None:
    impulse = {"connector": "impulse", "config": {"event_rate": 5}}
    names = ("a", "b", "c")
    ids = [api.post("/api/v1/connection_tables", json=impulse | {"name": name}).json()["id"] for name in names]
    with database.begin() as session:
        for row in session.scalars(select(ConnectionTableRow)):
            row.schema = {"fields": [{"name": "n", "type": "tensor"}]}
    told = api.get("/api/v1/connection_tables").json()["data"]
    assert [(one["name"], one["schema"]["fields"]) for one in told] == [("c", []), ("b", []), ("a", [])]
    path = f"/api/v1/connection_tables/{ids[0]}"
    assert "send a schema" in api.patch(path, json={"name": "d"}).json()["error"]
    assert api.patch(path, json={"schema": {"fields": []}}).json()["schema"]["fields"][0]["name"] == "counter"
    assert [api.delete(f"/api/v1/connection_tables/{id}").status_code for id in ids] == [200] * 3


def definition(result: str, name: str = "changing") -> str:
    return f"from arroyo_udf_plugin import udf\n\n@udf\ndef {name}(n: int) -> str:\n    return {result}\n"


def test_14_a_function_is_changed_under_its_id_and_pipelines_keep_theirs(shared: Client) -> None:
    first = {"definition": definition("'first'"), "language": "python", "description": "a"}
    made = shared.post("/api/v1/udfs", json=first).json()
    query = "CREATE TABLE t WITH (connector = 'impulse'); SELECT changing(counter) AS c FROM t;"
    pipeline = shared.post("/api/v1/pipelines", json={"name": "p", "query": query, "parallelism": 1}).json()
    path = f"/api/v1/udfs/{made['id']}"
    told = shared.patch(path, json={"definition": definition("'second'"), "prefix": "/x/"}).json()
    assert (told["id"], told["name"], told["prefix"], told["description"]) == (made["id"], "changing", "/x/", "a")
    assert (told["created_at"], told["updated_at"] > made["updated_at"]) == (made["created_at"], True)
    assert "second" in told["definition"]
    assert shared.patch(path, json={"definition": "nothing"}).json()["error"].startswith("UDF is invalid")
    assert shared.patch("/api/v1/udfs/udf_0", json={}).status_code == 404
    listed = [one for one in shared.get("/api/v1/udfs").json()["data"] if one["id"] == made["id"]]
    assert listed == [told]
    assert shared.get(f"/api/v1/pipelines/{pipeline['id']}").json() == pipeline
    shared.delete(path)


@pytest.mark.parametrize("ignore_state", [False, True])
def test_14_a_restart_plans_anew_only_when_asked(shared: Client, tmp_path: Path, ignore_state: bool) -> None:
    """A changed function may go on from a checkpoint. Of a query that means something else see test_restoring.py."""
    name = f"again_{ignore_state}".lower()
    udf = shared.post("/api/v1/udfs", json={"definition": definition("'a'", name), "language": "python"}).json()
    table = {"name": f"t_{name}", "connector": "impulse", "config": {"event_rate": 5}}
    saved = shared.post("/api/v1/connection_tables", json=table).json()
    query = f"SELECT {name}(counter) AS c FROM t_{name};"
    made = shared.post("/api/v1/pipelines", json={"name": "p", "query": query, "parallelism": 1}).json()
    path = f"/api/v1/pipelines/{made['id']}/restart"
    before = program(shared, made["id"])
    shared.patch(f"/api/v1/udfs/{udf['id']}", json={"definition": definition("'b'", name)})
    assert shared.post(path, json={}).status_code == 200
    assert program(shared, made["id"]) == before
    assert shared.post(path, json={"replan": True}).status_code == 200
    now = program(shared, made["id"])
    assert set(now["artifacts"].values()).isdisjoint(before["artifacts"].values())
    assert {**now["pipeline"], "operators": []} == {**before["pipeline"], "operators": []}
    shared.patch(f"/api/v1/connection_tables/{saved['id']}", json={"config": {"event_rate": 7}})
    answer = shared.post(path, json={"replan": True, "ignore_state": ignore_state})
    assert answer.status_code == 200  # it has no checkpoints yet
    assert program(shared, made["id"])["pipeline"]["source"] != before["pipeline"]["source"]
    consumers = shared.get("/api/v1/connection_tables?limit=100").json()["data"]
    assert [one["consumers"] for one in consumers if one["id"] == saved["id"]] == [1]


def program(client: Client, id: str) -> Any:
    with client.database.read() as session:
        return pipelines.get(session, id).pipeline.program
