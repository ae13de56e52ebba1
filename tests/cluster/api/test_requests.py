"""What requests may say, and what the document tells of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgi_client import Client
from sqlalchemy import text

from arroyo_udf_plugin.cluster.database import connections, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.sealing import opened
from arroyo_udf_plugin.cluster.wishes import settings, wanted
from arroyo_udf_plugin.errors import InvalidState

HIDDEN = "********"


def error_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("PATCH", "pipelines/pl_0", {"paralellism": 2}, "there is no key 'paralellism': write 'parallelism'"),
        ("PATCH", "pipelines/pl_0", {"stopp": "force"}, "there is no key 'stopp': write 'stop'"),
        (
            "POST",
            "pipelines/pl_0/restart",
            {"x": 1},
            "there is no key 'x': there are force, ignore_state, discard_state, replan, query",
        ),
        (
            "POST",
            "pipelines/preview",
            {"query": "", "udfs": [{"definitoin": ""}]},
            "udfs.0: there is no key 'definitoin'",
        ),
        ("POST", "connection_tables/schemas/test", {"fields": [{"typ": "json"}]}, "fields.0: there is no key 'typ'"),
    ],
)
def test_an_unknown_key_is_refused_by_name(api: Client, method: str, path: str, body: Any, told: str) -> None:
    status, error = error_of(api.request(method, f"/api/v1/{path}", json=body))
    assert (status, told in error) == (422, True), error


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "pipelines", {"name": "", "query": "SELECT 1"}, 400),
        ("POST", "pipelines", {"name": "x", "query": "SELECT 1", "checkpoint_interval_micros": 5}, 400),
        ("POST", "pipelines", {"name": "x", "query": "SELECT 1", "parallelism": 0}, 400),
        ("POST", "udfs", {"definition": "x", "prefix": "a"}, 400),
        ("PATCH", "pipelines/pl_0", {"env_vars": {"a b": "c"}}, 400),
        ("POST", "pipelines", {"name": 5, "query": "SELECT 1"}, 422),
        ("POST", "pipelines", {"name": "", "query": 5}, 422),
        ("POST", "pipelines", {"query": "SELECT 1"}, 422),
        ("POST", "pipelines", [], 422),
        ("PATCH", "pipelines/pl_0", {"stop": "soon"}, 422),
        ("PATCH", "pipelines/pl_0", {"parallelism": "2"}, 422),
    ],
)
def test_a_value_against_a_rule_is_400_and_another_shape_422(
    api: Client, method: str, path: str, body: Any, status: int
) -> None:
    """As in Arroyo."""
    assert error_of(api.request(method, f"/api/v1/{path}", json=body))[0] == status


def test_variables_that_a_client_knows_as_hidden_stay_as_they_are(api: Client, database: Database, stored: Any) -> None:
    """A client that sent back what it had got stored the asterisks."""
    whole = stored(env_vars={"A": "secret", "B": "other"})
    path = f"/api/v1/pipelines/{whole.pipeline.id}"
    told = api.get(f"{path}/jobs").json()["data"][0]["env_vars"]
    assert told == {"A": HIDDEN, "B": HIDDEN}
    assert api.patch(path, json={"env_vars": told | {"B": "new", "C": "more"}}).status_code == 200
    with database.read() as session:
        assert pipelines.get(session, whole.pipeline.id).job.env_vars == {"A": "secret", "B": "new", "C": "more"}
    status, error = error_of(api.patch(path, json={"env_vars": {"D": HIDDEN}}))
    assert (status, error) == (400, f"env_vars.D: {HIDDEN} stands for a value that is not told: write the value")
    status, error = error_of(api.post("/api/v1/pipelines", json={"name": "x", "query": "", "env_vars": {"D": HIDDEN}}))
    assert (status, "env_vars.D" in error) == (400, True)


def test_a_changed_scheduler_config_restarts_nothing(api: Client, database: Database, stored: Any) -> None:
    """No scheduler reads it."""
    whole = stored()
    path = f"/api/v1/pipelines/{whole.pipeline.id}"
    with database.begin() as session:
        of_job = pipelines.get(session, whole.pipeline.id)
        of_job.status.settings = settings(of_job.job)
    assert api.patch(path, json={"scheduler_config": {"x": 1}}).status_code == 200
    with database.read() as session:
        _, job, status = pipelines.get(session, whole.pipeline.id)
        assert (job.scheduler_config, wanted(job, status)) == ({"x": 1}, None)


def test_a_secret_that_no_key_opens_hides_no_other_pipeline(api: Client, database: Database, stored: Any) -> None:
    """Both lists were 500, and the pipeline could not even be deleted."""
    good, bad = (stored("Stopped", env_vars={"A": "secret"}) for _ in range(2))
    with database.begin() as session:
        values = {"token": json.dumps({"A": "no token"}), "id": bad.job.id}
        session.execute(text("UPDATE jobs SET env_vars = :token WHERE id = :id"), values)
    listed = api.get("/api/v1/pipelines").json()["data"]
    assert [one["id"] for one in listed] == [bad.pipeline.id, good.pipeline.id]
    assert [one["env_vars"] for one in api.get("/api/v1/jobs").json()["data"]] == [{"A": HIDDEN}] * 2
    path = f"/api/v1/pipelines/{bad.pipeline.id}"
    assert api.patch(path, json={"stop": "force"}).status_code == 200
    with database.read() as session:
        job = pipelines.get(session, bad.pipeline.id).job
        with pytest.raises(InvalidState, match=r"A: .* does not open a secret"):
            opened(job.env_vars)
        row = session.execute(text("SELECT env_vars FROM jobs WHERE id = :id"), {"id": bad.job.id}).scalar_one()
        assert json.loads(row) == {"A": "no token"}, "it is there as it was, for the right key"
    status, error = error_of(api.post(f"{path}/restart", json={"replan": True}))
    assert (status, "does not open a secret" in error) == (409, True)
    assert api.patch(path, json={"env_vars": {"A": "written anew"}}).status_code == 200
    assert api.delete(path).status_code == 200


def test_a_profile_that_no_key_opens_hides_no_other(api: Client, database: Database) -> None:
    posts = [{"name": name, "connector": "sqlite", "config": {"uri": f"sqlite:/{name}.db"}} for name in ("a", "b")]
    made = [api.post("/api/v1/connection_profiles", json=post).json()["id"] for post in posts]
    with database.begin() as session:
        values = {"token": json.dumps({"uri": "no token"}), "id": made[0]}
        session.execute(text("UPDATE connection_profiles SET config = :token WHERE id = :id"), values)
    told = {one["name"]: one["config"] for one in api.get("/api/v1/connection_profiles").json()["data"]}
    assert told == {"a": {"uri": HIDDEN}, "b": {"uri": HIDDEN}}
    status, error = error_of(api.patch(f"/api/v1/connection_profiles/{made[0]}", json={"config": {"uri": HIDDEN}}))
    assert (status, "it cannot be kept" in error) == (409, True)
    new = {"config": {"uri": "sqlite:/c.db"}}
    assert api.patch(f"/api/v1/connection_profiles/{made[0]}", json=new).status_code == 200
    with database.read() as session:
        assert connections.profile(session, made[0]).config == new["config"]


def test_the_document_tells_who_may_ask_what_is_refused_and_what_streams(api: Client) -> None:
    document = api.get("/api/v1/api-docs/openapi.json").json()
    assert document["security"] == [{"token": []}]
    scheme = document["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            told = operation["responses"]
            wanted = {"400", "401", "403", "404", "422", "500", "503"}
            wanted |= {"409", "429"} if method != "get" else set()
            wanted |= {"413", "415"} if method in ("post", "put", "patch") else set()
            assert wanted <= told.keys(), (method, path)
            for status in wanted:
                schema = told[status]["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Failure"}, (method, path, status)
            is_stream = path.endswith(("/output", "/connection_tables/test"))
            assert ("text/event-stream" in told["200"].get("content", {})) == is_stream, path


@pytest.mark.parametrize(
    ("connector", "uri", "told"),
    [
        ("postgres", "mysql://host/name", "config: uri: it begins with postgresql:// or postgres://, such as "),
        ("postgres", "sqlite:/x.db", "config: uri: it begins with postgresql://"),
        ("sqlite", "postgresql://host/name", "config: uri: it begins with sqlite:, such as sqlite:/data/rows.db"),
    ],
)
def test_a_profile_of_another_database_is_refused(api: Client, connector: str, uri: str, told: str) -> None:
    post = {"name": f"{connector} x", "connector": connector, "config": {"uri": uri}}
    status, error = error_of(api.post("/api/v1/connection_profiles", json=post))
    assert (status, error.startswith(told)) == (400, True), error
    post["config"] = {"uri": "${ADDRESS}"}
    assert api.post("/api/v1/connection_profiles", json=post).status_code == 200


def test_a_configuration_with_other_keys_is_told_a_right_one(api: Client) -> None:
    post = {"name": "files", "connector": "filesystem", "config": {"path": "/data/*.json"}}
    status, error = error_of(api.post("/api/v1/connection_tables", json=post))
    assert status == 400
    assert error.startswith("config: table_type: Field required; path: ")
    assert error.endswith('write, for example, {"table_type": {"type": "source", "path": "/data/in/*.json"}}')


def test_the_document_has_examples_that_are_taken(api: Client) -> None:
    schemas = api.get("/api/v1/api-docs/openapi.json").json()["components"]["schemas"]
    (profile,) = schemas["ConnectionProfilePost"]["examples"]
    made = api.post("/api/v1/connection_profiles", json=profile)
    assert made.status_code == 200, made.text
    for table in schemas["ConnectionTablePost"]["examples"]:
        body = table | ({"connection_profile_id": made.json()["id"]} if "connection_profile_id" in table else {})
        answer = api.post("/api/v1/connection_tables", json=body)
        assert answer.status_code == 200, answer.text
