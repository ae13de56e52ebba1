"""Pipelines: created, listed, wished otherwise, deleted."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.api.responses import button
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import STATES
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records

COUNTED = "CREATE TABLE impulse WITH (connector = 'impulse', event_rate = '10');"
FROM_FILE = """CREATE TABLE t (n INT) WITH (connector = 'single_file', path = '{}', type = 'source', format = 'json');
SELECT n FROM t;"""
PLUS = "from arroyo_udf import udf\n\n@udf\ndef {name}(n: int) -> int:\n    return n + 1\n"
PIPELINE_FIELDS = {
    "waits_for",  # not Arroyo's
    "scheduler",  # not Arroyo's
    "id",
    "name",
    "query",
    "udfs",
    "checkpoint_interval_micros",
    "stop",
    "created_at",
    "action",
    "action_text",
    "action_in_progress",
    "graph",
    "preview",
    "state_url",
    "tags",
}


def new_name() -> str:
    return f"f{uuid.uuid4().hex[:10]}"


def created(shared: Client, **more: Any) -> dict[str, Any]:
    asked = {"name": "counted", "query": f"{COUNTED} SELECT counter FROM impulse;", "parallelism": 1} | more
    answer = shared.post("/api/v1/pipelines", json=asked)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_a_query_becomes_a_graph(shared: Client) -> None:
    query = f"{COUNTED}\nSELECT count(*) AS n, tumble(interval '1 second') AS w FROM impulse GROUP BY w;"
    query = query.replace("WITH (", "(counter BIGINT, event_time TIMESTAMP, WATERMARK FOR event_time) WITH (")
    answer = shared.post("/api/v1/pipelines/validate_query", json={"query": query})
    assert (answer.status_code, answer.json()["errors"]) == (200, [])
    graph = answer.json()["graph"]
    operators = [node["operator"] for node in graph["nodes"]]
    assert operators[0] == "impulse"
    assert operators[-1] == "preview"
    assert "TumblingWindowAggregate" in operators
    assert [set(node) for node in graph["nodes"]] == [{"node_id", "operator", "description", "parallelism"}] * len(
        operators
    )
    assert [node["node_id"] for node in graph["nodes"]] == list(range(len(operators)))
    window = operators.index("TumblingWindowAggregate")
    assert [edge["edge_type"] for edge in graph["edges"] if edge["dest_id"] == window] == ["Shuffle"]
    assert {edge["dest_id"] for edge in graph["edges"]} == set(range(1, len(operators)))
    assert {(edge["key_type"], edge["value_type"]) for edge in graph["edges"]} == {("()", "()")}


def test_a_join_of_two_sources_has_two_sides(shared: Client) -> None:
    query = ""
    for name in ("a", "b"):
        query += f"""
            CREATE TABLE {name} (counter BIGINT, event_time TIMESTAMP, WATERMARK FOR event_time)
            WITH (connector = 'impulse', event_rate = '10');
            CREATE VIEW of_{name} AS
            SELECT tumble(interval '1 second') AS w, count(*) AS n FROM {name} GROUP BY w;
        """
    query += "SELECT of_a.n AS n, of_b.n AS m FROM of_a JOIN of_b ON of_a.w = of_b.w;"
    told = shared.post("/api/v1/pipelines/validate_query", json={"query": query}).json()
    assert told["errors"] == []
    nodes, edges = told["graph"]["nodes"], told["graph"]["edges"]
    assert [node["node_id"] for node in nodes] == list(range(len(nodes)))
    assert [node["node_id"] for node in nodes if node["operator"] == "impulse"] == [0, len(nodes) - 1]
    (join,) = [node["node_id"] for node in nodes if node["operator"] == "InstantJoin"]
    assert sorted(edge["edge_type"] for edge in edges if edge["dest_id"] == join) == ["LeftJoin", "RightJoin"]
    reached = {0, len(nodes) - 1}
    for _ in nodes:
        reached |= {edge["dest_id"] for edge in edges if edge["src_id"] in reached}
    assert reached == set(range(len(nodes)))


def test_what_is_wrong_with_a_query_has_its_place_and_is_no_error_of_the_request(shared: Client) -> None:
    query = f"{COUNTED}\nSELECT conter AS a,\n       nothing(counter) AS b FROM impulse;"
    answer = shared.post("/api/v1/pipelines/validate_query", json={"query": query})
    assert answer.status_code == 200
    told = answer.json()
    assert told["graph"] is None
    first = told["errors"][0]
    assert "write 'counter'" in first["message"]
    assert first["span"] == {"start": {"line": 2, "column": 8}, "end": {"line": 2, "column": 14}}


@pytest.mark.parametrize(
    ("query", "line", "told"),
    [
        (
            "CREATE TABLE t (n INT) WITH (connector = 'stdin', format = 'json'); SELECT n FROM t;",
            1,
            "no standard input",
        ),
        (FROM_FILE.format("/dev/stdin"), 1, "/dev/stdin is no file"),
        (FROM_FILE.format("-"), 1, "- is no file"),
        ("EXPLAIN SELECT counter FROM impulse;", None, "leave out EXPLAIN"),
    ],
)
def test_what_no_job_can_do_is_refused_before_there_is_one(
    shared: Client, query: str, line: int | None, told: str
) -> None:
    """Not when it starts, an hour later."""
    asked = {"name": "x", "query": f"{COUNTED}\n{query}", "parallelism": 1}
    (error,) = shared.post("/api/v1/pipelines/validate_query", json=asked).json()["errors"]
    assert told in error["message"]
    assert (error["span"] and error["span"]["start"]["line"] - 1) == line
    answer = shared.post("/api/v1/pipelines", json=asked)
    assert (answer.status_code, error["message"] in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize("place", ["{fifo}", "file://{fifo}", "{folder}/*.csv", "{folder}/f?fo.csv"])
def test_a_pipe_is_refused_before_the_planner_reads_of_it(shared: Client, tmp_path: Path, place: str) -> None:
    """Else its first rows would be gone when the job starts."""
    fifo = tmp_path / "fifo.csv"
    os.mkfifo(fifo)
    query = FROM_FILE.format(place.format(fifo=fifo, folder=tmp_path))
    (error,) = shared.post("/api/v1/pipelines/validate_query", json={"query": query}).json()["errors"]
    assert error["message"].startswith(f"{fifo} is no file, so no job can go on in it: name a file or a folder")


def test_a_saved_function_is_proposed_for_a_wrong_name(shared: Client) -> None:
    definition = "from arroyo_udf_plugin import udf\n\n@udf\ndef proposed(n: int) -> int:\n    return n\n"
    made = shared.post("/api/v1/udfs", json={"definition": definition, "language": "python"}).json()
    asked = {"query": f"{COUNTED}\nSELECT propsed(counter) AS a FROM impulse;"}
    (error,) = shared.post("/api/v1/pipelines/validate_query", json=asked).json()["errors"]
    assert error["message"] == "there is no function propsed: write 'proposed'"
    asked = {"query": f"{COUNTED}\nSELECT xxxxxxxxx(counter) AS a FROM impulse;"}
    (error,) = shared.post("/api/v1/pipelines/validate_query", json=asked).json()["errors"]
    assert error["message"].endswith("or create a function of this name")
    shared.delete(f"/api/v1/udfs/{made['id']}")


def test_an_empty_query_has_one_diagnostic(shared: Client) -> None:
    for query in ("", "  -- nothing\n"):
        told = shared.post("/api/v1/pipelines/validate_query", json={"query": query}).json()
        assert [one["message"] for one in told["errors"]] == [
            "nothing comes out: write SELECT ..., or INSERT INTO a table SELECT ..."
        ]


def test_a_pipeline_is_created_with_its_job(shared: Client) -> None:
    told = created(
        shared,
        tags={"team": "flights"},
        checkpoint_interval_micros=5_000_000,
        parallelism=2,
        env_vars={"KEY": "a secret"},
        scheduler_config={"a": [1]},
    )
    assert set(told) == PIPELINE_FIELDS
    assert told["id"].startswith("pl_")
    assert len(told["id"]) == 13
    assert (told["action"], told["action_text"], told["action_in_progress"]) == ("checkpoint", "Stop", True)
    assert (told["stop"], told["preview"], told["state_url"]) == ("none", False, None)
    assert (told["checkpoint_interval_micros"], told["tags"]) == (5_000_000, {"team": "flights"})
    assert {node["parallelism"] for node in told["graph"]["nodes"]} == {2}
    assert 1_700_000_000_000_000 < told["created_at"] < 3_000_000_000_000_000
    assert shared.get(f"/api/v1/pipelines/{told['id']}").json() == told
    (job,) = shared.get(f"/api/v1/pipelines/{told['id']}/jobs").json()["data"]
    assert set(job) == {
        "waits_for",  # not Arroyo's
        "id",
        "pipeline_id",
        "running_desired",
        "state",
        "run_id",
        "start_time",
        "finish_time",
        "tasks",
        "failure_reason",
        "created_at",
        "scheduler_config",
        "env_vars",
    }
    assert (job["pipeline_id"], job["state"], job["running_desired"]) == (told["id"], "Created", True)
    assert job["scheduler_config"] == {"a": [1]}


def test_the_time_between_checkpoints_is_the_requests_or_the_querys_or_the_default(shared: Client) -> None:
    query = f"SET checkpoint_interval = '3 seconds'; {COUNTED} SELECT counter FROM impulse;"
    assert created(shared)["checkpoint_interval_micros"] == 10_000_000
    assert created(shared, query=query)["checkpoint_interval_micros"] == 3_000_000
    both = created(shared, query=query, checkpoint_interval_micros=7_000_000)
    assert both["checkpoint_interval_micros"] == 7_000_000


def test_a_wrong_query_is_refused_with_a_line_for_each_error(shared: Client) -> None:
    answer = shared.post("/api/v1/pipelines", json={"name": "x", "query": "SELECT a FROM b", "parallelism": 1})
    assert answer.status_code == 400
    assert answer.json()["error"].splitlines() == [
        "Failed to plan query:",
        " * 1:15: there is no table b: there are none",
    ]


def test_functions_of_the_request_and_of_the_database_can_be_called(shared: Client) -> None:
    mine, saved = new_name(), new_name()
    answer = shared.post(
        "/api/v1/udfs", json={"prefix": "/", "language": "python", "definition": PLUS.format(name=saved)}
    )
    assert answer.status_code == 200, answer.text
    query = f"{COUNTED} SELECT {mine}({saved}(CAST(counter AS BIGINT))) AS n FROM impulse;"
    udfs = [{"definition": PLUS.format(name=mine), "language": "python"}]
    told = created(shared, query=query, udfs=udfs)
    assert told["udfs"] == udfs
    without = shared.post("/api/v1/pipelines/validate_query", json={"query": query})
    assert f"there is no function {mine}" in without.json()["errors"][0]["message"]


def test_a_function_of_the_request_wins_over_a_saved_one(shared: Client) -> None:
    name = new_name()
    saved = PLUS.format(name=name)
    assert shared.post("/api/v1/udfs", json={"language": "python", "definition": saved}).status_code == 200
    other = saved.replace("n: int", "n: str").replace("n + 1", "len(n)")
    query = f"{COUNTED} SELECT {name}('text') AS n FROM impulse;"
    udfs = [{"definition": other, "language": "python"}]
    assert shared.post("/api/v1/pipelines/validate_query", json={"query": query}).json()["errors"]
    told = shared.post("/api/v1/pipelines/validate_query", json={"query": query, "udfs": udfs}).json()
    assert told["errors"] == []


def test_a_function_of_the_request_that_cannot_be_built_is_a_wrong_request(shared: Client) -> None:
    udfs = [{"definition": "def f(): pass", "language": "python"}]
    answer = shared.post("/api/v1/pipelines/validate_query", json={"query": "SELECT 1", "udfs": udfs})
    assert answer.status_code == 400
    assert "@udf" in answer.json()["error"]


def test_an_id_of_the_caller_is_created_once(shared: Client) -> None:
    asked = {"name": "mine", "query": f"{COUNTED} SELECT counter FROM impulse;", "parallelism": 1}
    id = new_name()
    assert shared.request("PUT", f"/api/v1/pipelines/{id}", json=asked).json()["id"] == id
    again = shared.request("PUT", f"/api/v1/pipelines/{id}", json=asked)
    assert again.status_code == 400
    assert "already" in again.json()["error"]


def test_a_preview_is_in_no_list_and_shows_its_rows_only(shared: Client) -> None:
    query = f"{COUNTED} CREATE TABLE out WITH (connector = 'blackhole'); INSERT INTO out SELECT counter FROM impulse;"
    told = shared.post("/api/v1/pipelines/preview", json={"query": query}).json()
    assert (told["preview"], told["name"].startswith("preview_")) == (True, True)
    assert [node["operator"] for node in told["graph"]["nodes"]][-1] == "preview"
    assert "blackhole" not in [node["operator"] for node in told["graph"]["nodes"]]
    both = shared.post("/api/v1/pipelines/preview", json={"query": query, "enable_sinks": True}).json()
    assert {"blackhole", "preview"} <= {node["operator"] for node in both["graph"]["nodes"]}
    listed = shared.get("/api/v1/pipelines?limit=100").json()["data"]
    assert told["id"] not in [one["id"] for one in listed]
    assert told["id"] not in [one["pipeline_id"] for one in shared.get("/api/v1/jobs").json()["data"]]
    assert shared.get(f"/api/v1/pipelines/{told['id']}").json()["id"] == told["id"]
    assert shared.patch(f"/api/v1/pipelines/{told['id']}", json={"parallelism": 2}).status_code == 400
    assert shared.patch(f"/api/v1/pipelines/{told['id']}", json={"stop": "immediate"}).json()["stop"] == "immediate"


def test_rows_for_the_standard_output_are_shown_as_a_preview(shared: Client) -> None:
    query = f"{COUNTED} CREATE TABLE out WITH (connector = 'stdout'); INSERT INTO out SELECT counter FROM impulse;"
    assert created(shared, query=query)["graph"]["nodes"][-1]["operator"] == "preview"


# ---- Without a planner ----


def test_a_list_goes_page_by_page_from_the_newest(api: Client, stored: Any) -> None:
    ids = [stored("Stopped", name=f"p{n}").pipeline.id for n in range(25)][::-1]
    seen: list[str] = []
    after = ""
    while True:
        told = api.get(f"/api/v1/pipelines?limit=10{after}").json()
        assert set(told) == {"data", "hasMore"}
        seen += [one["id"] for one in told["data"]]
        if not told["hasMore"]:
            break
        assert len(told["data"]) == 10
        after = f"&starting_after={seen[-1]}"
    assert seen == ids
    assert len(api.get("/api/v1/pipelines").json()["data"]) == 10


@pytest.mark.parametrize("limit", ["0", "-1", "abc", "4294967296", "1.5", ""])
def test_a_limit_that_is_none_is_refused_with_the_error_body(api: Client, limit: str) -> None:
    answer = api.get(f"/api/v1/pipelines?limit={limit}")
    assert answer.status_code == 400
    assert "limit" in answer.json()["error"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("stop", ["none", "checkpoint"])
def test_each_state_has_its_button(state: str, stop: str) -> None:
    """As the contract's table has them."""
    wanted = stop == "none"
    moving = ("Compiling", "Scheduling", "Rescaling", "Recovering", "Restarting")
    expected: dict[str, tuple[tuple[str, str | None, bool], tuple[str, str | None, bool]]] = {
        "Created": (("Stop", "checkpoint", True), ("Start", "none", False)),
        "Running": (("Stop", "checkpoint", False), ("Stopping", None, True)),
        "CheckpointStopping": (("Force Stop", "immediate", True),) * 2,
        "Stopping": (("Stopping", "checkpoint", True), ("Stopping", None, True)),
        "Stopped": (("Starting", None, True), ("Start", "none", False)),
        "Finishing": (("Finishing", None, True),) * 2,
        "Failing": (("Failing", None, True),) * 2,
        "Finished": (("Finished", None, False),) * 2,
        "Failed": (("Failed", None, False), ("Start", "none", False)),
    }
    expected |= dict.fromkeys(moving, (("Stop", "checkpoint", True), ("Stopping", None, True)))
    assert button(state, wanted) == expected[state][0 if wanted else 1]


def test_a_wish_is_told_at_once_and_wakes_the_controller(
    api: Client, stored: Any, database: Database, woken: list[str]
) -> None:
    whole = stored("Running")
    path = f"/api/v1/pipelines/{whole.pipeline.id}"
    told = api.patch(path, json={"stop": "checkpoint"}).json()
    assert (told["stop"], told["action_text"], told["action_in_progress"]) == ("checkpoint", "Stopping", True)
    assert api.get(path).json() == told
    told = api.patch(path, json={"parallelism": 3, "checkpoint_interval_micros": 2_000_000}).json()
    assert (told["stop"], told["checkpoint_interval_micros"]) == ("checkpoint", 2_000_000)
    assert [node["parallelism"] for node in told["graph"]["nodes"]] == [3, 3, 1]  # the last one is alone
    assert len(woken) == 2
    assert api.patch(path, json={}).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"parallelism": 0},
        {"parallelism": "2"},
        {"parallelism": 2**40},
        {"checkpoint_interval_micros": 999_999},
        {"checkpoint_interval_micros": 86_400_000_001},
        {"stop": "now"},
        {"env_vars": {"A B": "x"}},
        {"env_vars": {"A": 1}},
        [],
        "text",
    ],
)
def test_a_wish_of_another_shape_changes_nothing(api: Client, stored: Any, woken: list[str], wrong: Any) -> None:
    path = f"/api/v1/pipelines/{stored().pipeline.id}"
    before = api.get(path).json()
    answer = api.patch(path, json=wrong)
    assert answer.status_code in (400, 422)
    assert list(answer.json()) == ["error"]
    assert api.get(path).json() == before
    assert woken == []


@pytest.mark.parametrize(
    "body", ["{", "", "nul", '{"a": NaN}', '{"a": 1e999}', '"\\ud800"', '"\\u0000"', "\x00", "[" * 9000]
)
def test_what_is_no_json_is_refused_as_that(api: Client, stored: Any, body: str) -> None:
    path = f"/api/v1/pipelines/{stored().pipeline.id}"
    answer = api.patch(path, content=body.encode(), headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert ("the body is empty" in answer.json()["error"]) == (not body)
    assert list(answer.json()) == ["error"]


def test_a_text_that_only_looks_like_nul_passes(api: Client, stored: Any) -> None:
    path = f"/api/v1/pipelines/{stored().pipeline.id}"
    assert api.patch(path, json={"env_vars": {"A": "\\u0000"}}).status_code == 200


def test_what_one_program_has_answered_the_other_one_knows(api: Client, database: Database, tmp_path: Path) -> None:
    """Two APIs on one database: each reads at once what the other has written."""
    other_database = Database.open(database.engine.url.render_as_string(hide_password=False))
    with Client(create_app(ApiParts(other_database, Builder(tmp_path / "functions"), Records(tmp_path)))) as other:
        for n, (one, another) in enumerate([(api, other), (other, api)] * 3):
            table = {"name": f"t{n}", "connector": "impulse", "config": {"event_rate": 5}}
            made = one.post("/api/v1/connection_tables", json=table).json()
            assert another.get("/api/v1/connection_tables").json()["data"][0] == made
            assert another.delete(f"/api/v1/connection_tables/{made['id']}").status_code == 200
            assert one.get("/api/v1/connection_tables").json()["data"] == []
    other_database.close()


def test_a_pipeline_that_runs_is_not_deleted(api: Client, stored: Any) -> None:
    whole = stored("Running")
    answer = api.delete(f"/api/v1/pipelines/{whole.pipeline.id}")
    assert answer.status_code == 400
    assert "Running" in answer.json()["error"]
    assert api.get(f"/api/v1/pipelines/{whole.pipeline.id}").status_code == 200


@pytest.mark.parametrize("state", ["Stopped", "Finished", "Failed"])
def test_a_deleted_pipeline_is_gone_and_the_answer_is_empty(api: Client, stored: Any, state: str) -> None:
    id = stored(state).pipeline.id
    answer = api.delete(f"/api/v1/pipelines/{id}")
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "0")
    assert api.get(f"/api/v1/pipelines/{id}").status_code == 404
    assert api.delete(f"/api/v1/pipelines/{id}").json() == {"error": "Pipeline not found"}


def test_the_same_is_below_the_only_organization(api: Client, stored: Any) -> None:
    id = stored().pipeline.id
    admin = "/api/v1/admin/organizations"
    assert api.get(f"{admin}/org/pipelines/{id}").json() == api.get(f"/api/v1/pipelines/{id}").json()
    assert api.get(f"{admin}/other/pipelines/{id}").status_code == 404


def test_an_unknown_address_has_the_error_body(api: Client) -> None:
    for method, path in (("GET", "nothing"), ("POST", "pipelines/a/b/c"), ("DELETE", "jobs"), ("GET", "pipelines/x")):
        answer = api.request(method, f"/api/v1/{path}", **({"json": {}} if method == "POST" else {}))
        assert answer.status_code in (404, 405)
        assert list(answer.json()) == ["error"]


def test_ping_is_pong(api: Client) -> None:
    answer = api.get("/api/v1/ping")
    assert (answer.status_code, answer.text) == (200, '"Pong"')
    assert api.get("/health/live").status_code == 200
    assert api.get("/health/ready").status_code == 200


def test_a_database_that_does_not_answer_is_not_ready_but_live(api: Client, database: Database) -> None:
    with database.begin() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = 'v9999'")
    assert api.get("/health/ready").status_code == 503
    assert api.get("/health/live").status_code == 200
