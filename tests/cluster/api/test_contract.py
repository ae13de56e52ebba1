"""Endpoint by endpoint, as a client written for Arroyo uses them: answers have the shapes of its contract.

The cluster is whole and listens; see contract.py for the shapes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from contract import check, check_list, check_page
from waiting import until

pytestmark = pytest.mark.cluster

API = "/api/v1"
TABLES = "CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '200');\n"
UDF = "from arroyo_udf import udf\n\n@udf\ndef {name}(n: int) -> int:\n    return n + {plus}\n"


def ask(client: httpx.Client, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    """None for an empty answer, which says that it has no bytes."""
    answer = client.request(method, API + path, json=body)
    assert answer.status_code == status, answer.text
    if status != 200:
        check("Error", answer.json())
    if not answer.content:
        assert answer.headers["content-length"] == "0"
        return None
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def is_id(prefix: str, text: str) -> bool:
    return re.fullmatch(rf"{prefix}_[0-9A-Za-z]{{10}}", text) is not None


def test_ping_and_connectors(client: httpx.Client) -> None:
    assert ask(client, "GET", "/ping") == "Pong"
    found = check_list("Connector", ask(client, "GET", "/connectors"))
    assert [one["name"] for one in found] == sorted(one["name"] for one in found)
    for one in found:
        for form in (one["table_config"], one["connection_config"]):
            assert form is None or json.loads(form)["type"] == "object"
    assert {"impulse", "filesystem", "single_file", "preview", "blackhole", "stdout"} <= {one["id"] for one in found}


def test_profiles_and_tables(client: httpx.Client, tmp_path: Path) -> None:
    post = {"name": "contract", "connector": "sqlite", "config": {"uri": f"sqlite:{tmp_path}/x.db"}}
    check("TestSourceMessage", ask(client, "POST", "/connection_profiles/test", post))
    profile = ask(client, "POST", "/connection_profiles", post)
    check("ConnectionProfile", profile)
    assert is_id("cp", profile["id"])
    ask(client, "POST", "/connection_profiles", post, status=400)
    assert profile in check_list("ConnectionProfile", ask(client, "GET", "/connection_profiles"))
    check("Autocomplete", ask(client, "GET", f"/connection_profiles/{profile['id']}/autocomplete"))

    inner = [{"name": "at", "type": "timestamp", "unit": "microsecond"}, {"name": "x", "type": "float64"}]
    fields = [
        {"name": "n", "type": "int64", "required": True},
        {"name": "price", "type": "decimal128", "precision": 10, "scale": 2},
        {"name": "place", "type": "struct", "fields": inner},
        {"name": "tags", "type": "list", "items": {"name": "item", "type": "string"}},
        {"name": "more", "type": "list", "items": {"name": "item", "type": "struct", "fields": inner}},
    ]
    schema = {"format": {"type": "json"}, "fields": fields, "bad_data": {"behavior": "drop"}}
    assert ask(client, "POST", "/connection_tables/schemas/test", schema) is None
    ask(client, "POST", "/connection_tables/schemas/test", {"fields": [fields[0], fields[0]]}, status=400)
    table = {
        "name": "contract_files",
        "connector": "filesystem",
        "config": {"table_type": {"type": "source", "path": f"{tmp_path}/in/*.json"}},
        "schema": schema,
    }
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"n": 1, "price": 2.5}\n')
    plain = table | {"schema": schema | {"fields": fields[:2]}}
    with client.stream("POST", f"{API}/connection_tables/test", json=plain) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line]
    for event in events:
        check("TestSourceMessage", event)
    assert [event["done"] for event in events] == [False] * (len(events) - 1) + [True]
    assert not events[-1]["error"], events
    made = ask(client, "POST", "/connection_tables", table)
    check("ConnectionTable", made)
    assert (is_id("ct", made["id"]), made["table_type"], made["consumers"]) == (True, "source", 0)
    names = [one["sql_name"] for one in made["schema"]["fields"]]
    assert names[:2] == ["BIGINT", "DECIMAL(10, 2)"]
    ask(client, "POST", "/connection_tables", table, status=400)
    assert made in check_page("ConnectionTable", ask(client, "GET", "/connection_tables?limit=200"))
    sink = {"name": "contract_rows", "connector": "sqlite", "connection_profile_id": profile["id"], "config": {}}
    other = ask(client, "POST", "/connection_tables", sink)
    check("ConnectionTable", other)
    assert other["connection_profile"] == profile
    ask(client, "DELETE", f"/connection_profiles/{profile['id']}", status=400)
    for path in (f"connection_tables/{made['id']}", f"connection_tables/{other['id']}"):
        assert ask(client, "DELETE", f"/{path}") is None
    assert ask(client, "DELETE", f"/connection_profiles/{profile['id']}") is None
    told = ask(client, "DELETE", f"/connection_profiles/{profile['id']}", status=404)
    assert told == {"error": "Connection profile not found"}


def test_functions(client: httpx.Client) -> None:
    good = {"definition": UDF.format(name="contract_plus", plus=1), "language": "python"}
    result = ask(client, "POST", "/udfs/validate", good)
    check("UdfValidationResult", result)
    assert result == {"udf_name": "contract_plus", "errors": []}
    wrong = ask(client, "POST", "/udfs/validate", {"definition": "fn", "language": "python"})
    check("UdfValidationResult", wrong)
    assert wrong["errors"]
    made = ask(client, "POST", "/udfs", good | {"prefix": "/a/b/"})
    check("GlobalUdf", made)
    assert (is_id("udf", made["id"]), made["dylib_url"], made["prefix"]) == (True, None, "/a/b/")
    ask(client, "POST", "/udfs", good | {"prefix": "/"}, status=400)
    assert made in check_list("GlobalUdf", ask(client, "GET", "/udfs"))
    assert ask(client, "DELETE", f"/udfs/{made['id']}") is None
    assert ask(client, "DELETE", f"/udfs/{made['id']}", status=404) == {"error": "UDF not found"}


def test_queries_are_validated(client: httpx.Client) -> None:
    right = ask(client, "POST", "/pipelines/validate_query", {"query": TABLES + "SELECT counter FROM numbers"})
    check("QueryValidationResult", right)
    assert (right["errors"], right["graph"]["nodes"][0]["operator"]) == ([], "impulse")
    wrong = ask(client, "POST", "/pipelines/validate_query", {"query": TABLES + "SELECT contr FROM numbers"})
    check("QueryValidationResult", wrong)
    (error,) = wrong["errors"]
    assert (wrong["graph"], error["span"]["start"]) == (None, {"line": 2, "column": 8})
    udf = {"definition": "def", "language": "python"}
    ask(client, "POST", "/pipelines/validate_query", {"query": "SELECT 1", "udfs": [udf]}, status=400)


def test_a_function_of_the_request_wins_over_a_saved_one(client: httpx.Client) -> None:
    name = "contract_local"
    saved = ask(client, "POST", "/udfs", {"definition": UDF.format(name=name, plus=1), "language": "python"})
    own = {"definition": UDF.format(name=name, plus=1000), "language": "python"}
    query = TABLES.replace("200'", "200', message_count = '1'") + f"SELECT {name}(counter) AS n FROM numbers"
    made = ask(client, "POST", "/pipelines/preview", {"query": query, "udfs": [own]})
    assert made["udfs"] == [own]
    job = ended(client, made)
    assert rows_of(client, f"/pipelines/{made['id']}/jobs/{job['id']}/output") == [{"n": 1000}]
    ask(client, "DELETE", f"/udfs/{saved['id']}")


def ended(client: httpx.Client, pipeline: Any) -> Any:
    def job() -> Any:
        return ask(client, "GET", f"/pipelines/{pipeline['id']}/jobs")["data"][0]

    until(lambda: job()["state"] in ("Finished", "Stopped", "Failed"), "the end of a job")
    return job()


def rows_of(client: httpx.Client, path: str) -> list[Any]:
    rows: list[Any] = []
    with client.stream("GET", API + path) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in stream.headers
        number = 0
        for line in stream.iter_lines():
            if line.startswith("id: "):
                assert line == f"id: {number}"
                number += 1
            elif line.startswith("data: {"):
                told = json.loads(line.removeprefix("data: "))
                if told:
                    check("OutputData", told)
                    batch = json.loads(told["batch"])
                    assert (told["start_id"], len(told["timestamps"])) == (len(rows), len(batch))
                    rows += batch
    return rows


def test_a_preview(client: httpx.Client) -> None:
    """Rows are objects: nulls are explicit, times as in RFC 3339."""
    query = TABLES.replace("200'", "200', message_count = '20'")
    query += "SELECT counter, CAST(NULL AS TEXT) AS nothing, TIMESTAMP '2024-01-02 03:04:05.5' AS at FROM numbers"
    made = ask(client, "POST", "/pipelines/preview", {"query": query})
    check("Pipeline", made)
    assert made["preview"] is True
    assert re.fullmatch(r"preview_\d{13}", made["name"])
    assert made["checkpoint_interval_micros"] == 86_400_000_000
    assert "preview" in made["graph"]["nodes"][-1]["operator"]
    assert ask(client, "GET", f"/pipelines/{made['id']}")["id"] == made["id"]
    assert made["id"] not in [one["id"] for one in ask(client, "GET", "/pipelines?limit=100")["data"]]
    job = ended(client, made)
    check("Job", job)
    assert (job["state"], job["failure_reason"]) == ("Finished", None)
    assert job["id"] not in [one["id"] for one in ask(client, "GET", "/jobs")["data"]]
    rows = rows_of(client, f"/pipelines/{made['id']}/jobs/{job['id']}/output")
    assert rows == [{"counter": n, "nothing": None, "at": rows[0]["at"]} for n in range(20)]
    assert rows[0]["at"].startswith("2024-01-02T03:04:05.5")


def test_a_pipeline_and_its_job(client: httpx.Client, tmp_path: Path) -> None:
    query = f"""{TABLES}CREATE TABLE out (n BIGINT)
        WITH (connector = 'filesystem', path = '{tmp_path}/out', format = 'json', type = 'sink');
        INSERT INTO out SELECT counter AS n FROM numbers;"""
    post = {"name": "contract", "query": query, "parallelism": 1, "checkpoint_interval_micros": 1_000_000}
    post |= {"tags": {"team": "a"}, "env_vars": {"PASSWORD": "open sesame"}, "scheduler_config": {"x": 1}, "udfs": []}
    made = ask(client, "POST", "/pipelines", post)
    check("Pipeline", made)
    assert (is_id("pl", made["id"]), made["tags"], made["stop"]) == (True, {"team": "a"}, "none")
    for wrong in ({"name": ""}, {"parallelism": 0}, {"checkpoint_interval_micros": 1}):
        ask(client, "POST", "/pipelines", post | wrong, status=400)
    refused = ask(client, "POST", "/pipelines", post | {"query": "SELECT a FROM b"}, status=400)
    assert refused["error"].startswith("Failed to plan query:\n * ")
    assert made["id"] in [one["id"] for one in check_page("Pipeline", ask(client, "GET", "/pipelines?limit=100"))]
    path = f"/pipelines/{made['id']}"
    (job,) = check_list("Job", ask(client, "GET", f"{path}/jobs"))
    assert (is_id("job", job["id"]), job["env_vars"], job["scheduler_config"]) == (
        True,
        {"PASSWORD": "********"},
        {"x": 1},
    )
    assert job["id"] in [one["id"] for one in check_list("Job", ask(client, "GET", "/jobs"))]
    of_job = f"{path}/jobs/{job['id']}"
    until(lambda: bool(ask(client, "GET", f"{of_job}/checkpoints")["data"]), "a checkpoint")
    until(lambda: bool(ask(client, "GET", f"{of_job}/operator_metric_groups")["data"]), "metrics")
    checkpoints = check_list("Checkpoint", ask(client, "GET", f"{of_job}/checkpoints"))
    epochs = [one["epoch"] for one in checkpoints]
    assert epochs == sorted(epochs)
    groups = ask(client, "GET", f"{of_job}/checkpoints/{epochs[-1]}/operator_checkpoint_groups")
    check_list("OperatorCheckpointGroup", groups)
    metrics = check_list("OperatorMetricGroup", ask(client, "GET", f"{of_job}/operator_metric_groups"))
    assert {one["node_id"] for one in metrics} <= {one["node_id"] for one in made["graph"]["nodes"]}
    check_page("JobLogMessage", ask(client, "GET", f"{of_job}/errors"))
    ask(client, "GET", f"{of_job}/output", status=400)

    ask(client, "DELETE", path, status=400)
    rescaled = ask(client, "PATCH", path, {"parallelism": 2})
    assert {one["parallelism"] for one in rescaled["graph"]["nodes"]} == {2}
    stopping = ask(client, "PATCH", path, {"stop": "immediate"})
    check("Pipeline", stopping)
    assert stopping["stop"] == "immediate"
    job = ended(client, made)
    check("Job", job)
    assert (job["running_desired"], job["run_id"] >= 1) == (False, True)
    stopped = ask(client, "GET", path)
    assert (stopped["action"], stopped["action_text"], stopped["action_in_progress"]) == ("none", "Start", False)
    for body in ({}, {"force": None, "ignore_state": None}, {"force": True, "ignore_state": True}):
        check("Pipeline", ask(client, "POST", f"{path}/restart", body))
    ask(client, "PATCH", path, {"stop": "immediate"})
    ended(client, made)
    assert ask(client, "DELETE", path) is None
    for method, where, body in (
        ("GET", path, None),
        ("PATCH", path, {}),
        ("DELETE", path, None),
        ("POST", f"{path}/restart", {}),
        ("GET", f"{path}/jobs", None),
        ("GET", f"{of_job}/errors", None),
        ("GET", f"{of_job}/checkpoints", None),
        ("GET", f"{of_job}/operator_metric_groups", None),
        ("GET", f"{of_job}/output", None),
    ):
        assert ask(client, method, where, body, status=404) == {"error": "Pipeline not found"}


def test_an_id_of_the_caller_is_created_once(client: httpx.Client) -> None:
    post = {"name": "own id", "query": TABLES + "SELECT counter FROM numbers", "parallelism": 1}
    path = "/pipelines/nightly flights"
    made = ask(client, "PUT", path, post)
    check("Pipeline", made)
    assert made["id"] == "nightly flights"
    ask(client, "PUT", path, post, status=400)
    below = "/admin/organizations/org/pipelines/nightly flights"
    assert ask(client, "GET", below)["id"] == "nightly flights"
    assert ask(client, "PATCH", below, {"stop": "immediate"})["stop"] == "immediate"
    ended(client, made)
    assert ask(client, "DELETE", below) is None


@pytest.mark.parametrize("path", ["/pipelines?limit=0", "/pipelines?limit=abc", "/pipelines?limit=-1"])
def test_a_limit_that_is_none_is_a_wrong_request(client: httpx.Client, path: str) -> None:
    ask(client, "GET", path, status=400)


def test_addresses_and_bodies_that_are_wrong(client: httpx.Client) -> None:
    ask(client, "GET", "/nothing", status=404)
    for content, kind, status in (
        (b"{", "application/json", 400),
        (b"", "application/json", 400),
        (b"{}", "application/json", 422),
        (b"{}", "text/plain", 415),
        (b"{}", None, 415),
    ):
        headers = {} if kind is None else {"content-type": kind}
        answer = client.post(f"{API}/pipelines/validate_query", content=content, headers=headers)
        assert answer.status_code == status, (content, kind, answer.text)
        check("Error", answer.json())
