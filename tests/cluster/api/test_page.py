"""What our page asks the API for, and the page's own files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client

from arroyo_udf_plugin.cluster.api import create_app, page
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database, now
from arroyo_udf_plugin.cluster.database.pipelines import WholeJob
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.security import Security
from arroyo_udf_plugin.cluster.tokens import Tokens

OWN = "/api/v1/arroyo_udf"
Stored = Callable[..., WholeJob]


def numbers(count: int, generation: int = 0, **function: Any) -> dict[str, Any]:
    return {
        "generation": generation,
        "nodes": {
            "0": {"operator": "impulse", "subtasks": {"0": {"messages_sent": count}}},
            "1": {
                "operator": "AsyncUdf",
                "name": "town",
                "subtasks": {"0": {"messages_recv": count, "messages_sent": count // 2}},
                **function,
            },
            "2": {"operator": "preview", "subtasks": {"0": {"messages_recv": count // 2}}},
        },
    }


# ---- The list ----


def test_a_list_has_rates_and_what_holds_it_back(api: Client, stored: Stored, records: Records) -> None:
    whole = stored(name="flights", tags={"team": "ads"})
    start = now() - 3_000_000
    records.count(whole.job.id, numbers(100), start)
    records.count(whole.job.id, numbers(300, stuck=1, lag=2.5), start + 2_000_000)
    answer = api.get(f"{OWN}/pipelines").json()
    (row,) = answer["data"]
    assert (row["name"], row["state"], row["tags"], row["job_id"]) == (
        "flights",
        "Running",
        {"team": "ads"},
        whole.job.id,
    )
    assert (row["rows_in"], row["rows_out"], row["lag"]) == (100.0, 50.0, 2.5)
    assert (row["finding"]["kind"], row["finding"]["name"], row["finding"]["node_id"]) == ("stuck", "town", 1)
    assert (answer["total"], answer["states"]) == (1, {"Running": 1})


def test_a_job_that_tells_nothing_any_more_is_idle(api: Client, stored: Stored, records: Records) -> None:
    whole = stored()
    for before, count in ((20_000_000, 100), (18_000_000, 300)):
        records.count(whole.job.id, numbers(count), now() - before)
    (row,) = api.get(f"{OWN}/pipelines").json()["data"]
    assert (row["rows_in"], row["rows_out"]) == (0.0, 0.0)


def test_what_has_ended_has_no_rates(api: Client, stored: Stored, records: Records) -> None:
    reason = {"failure_message": "no town has the number 3", "failure_domain": "user"}
    whole = stored("Failed", facts=reason)
    records.count(whole.job.id, numbers(100), now())
    (row,) = api.get(f"{OWN}/pipelines").json()["data"]
    assert (row["rows_in"], row["rows_out"], row["finding"]) == (None, None, None)
    assert row["failure_reason"]["error"] == "no town has the number 3"


def test_a_list_is_chosen_by_name_state_and_label(api: Client, stored: Stored) -> None:
    for name, state, team in (("ads 1", "Running", "ads"), ("Ads 2", "Failed", "ads"), ("maps_%", "Running", "maps")):
        stored(state, name=name, tags={"team": team})

    def names(**asked: Any) -> list[str]:
        return [row["name"] for row in api.get(f"{OWN}/pipelines", params=asked).json()["data"]]

    assert names() == ["maps_%", "Ads 2", "ads 1"]
    assert names(named="ADS") == ["Ads 2", "ads 1"]
    assert names(named="_%") == ["maps_%"]
    assert names(named="ads", state="Running") == ["ads 1"]
    assert names(label="team=maps") == ["maps_%"]
    answer = api.get(f"{OWN}/pipelines", params={"named": "ads", "state": "Failed", "limit": 1}).json()
    assert (answer["total"], answer["states"]) == (1, {"Running": 1, "Failed": 1})  # what else one might choose
    first = api.get(f"{OWN}/pipelines", params={"limit": 1}).json()["data"]
    assert names(starting_after=first[0]["id"]) == ["Ads 2", "ads 1"]
    assert api.get(f"{OWN}/pipelines", params={"starting_after": "pl_x"}).status_code == 400


# ---- A running pipeline ----


def test_live_counts_go_on_where_the_last_ones_ended(api: Client, stored: Stored, records: Records) -> None:
    whole = stored()
    start = now() - 6_000_000
    for step, count in enumerate((100, 200, 300)):
        records.count(whole.job.id, numbers(count, in_flight=step), start + step * 2_000_000)
    url = f"{OWN}/pipelines/{whole.pipeline.id}/live"
    points = api.get(url).json()["points"]
    assert [point["nodes"][1]["in_flight"] for point in points] == [0, 1, 2]
    assert [point["nodes"][1]["rows_in"] for point in points] == [100, 200, 300]
    later = api.get(url, params={"since": points[1]["at"]}).json()["points"]
    assert later == points[2:]
    assert api.get(url, params={"since": points[2]["at"]}).json()["points"] == []


def test_live_begins_with_five_minutes(api: Client, stored: Stored, records: Records) -> None:
    whole = stored()
    time = now()
    for second in range(400, 0, -4):
        records.count(whole.job.id, numbers(1000 - second), time - second * 1_000_000 + 2_000_000)
    url = f"{OWN}/pipelines/{whole.pipeline.id}/live"
    assert len(api.get(url).json()["points"]) == 75
    since = time - 250_000_000  # further back than what is looked at first
    assert len(api.get(url, params={"since": since}).json()["points"]) == 62


def test_what_runtimes_say_is_told_with_its_stack(api: Client, stored: Stored, database: Database) -> None:
    whole = stored()
    output = """\
2026-11-28 01:07:41,902 INFO arroyo_udf_plugin: a row failed, the first of its kind: trips.csv, row 4: ValueError: no [job_id=j generation=1 operator=town]
2026-11-28 01:07:42,902 WARNING arroyo_udf_plugin: town.town, row 21: a call ignores its cancellation, in
  at town, town.py:8: await asyncio.sleep(3600) [job_id=j generation=1]
2026-11-28 01:07:43,902 WARNING arroyo_udf_plugin: the event loop is blocked, and with it every row of every async function: nothing has been awaited for half a second; await long operations, or use asyncio.to_thread:
  at town, town.py:7: time.sleep(2) [job_id=j generation=1]
2026-11-28 01:07:44,902 INFO mine: something else
"""  # noqa: E501 (as it stands in a log)
    with database.begin() as session:
        history.log(session, whole.job.id, 1, "info", "output of the worker", output)
    told = api.get(f"{OWN}/pipelines/{whole.pipeline.id}/live").json()["complaints"]
    assert [(complaint["kind"], complaint["stack"]) for complaint in told] == [
        ("blocked", "  at town, town.py:7: time.sleep(2)"),
        ("stuck", "  at town, town.py:8: await asyncio.sleep(3600)"),
        ("failed", ""),
    ]
    assert told[1]["text"] == "town.town, row 21: a call ignores its cancellation"
    assert told[2]["text"] == "trips.csv, row 4: ValueError: no"


def test_a_worker_that_dies_and_a_job_that_has_failed(api: Client, stored: Stored, database: Database) -> None:
    dying, failed = stored("Recovering", facts={"restarts": 2}), stored("Failed", facts={"failure_message": "wrong"})
    with database.begin() as session:
        history.log(session, dying.job.id, 1, "error", "the worker was ended by signal 11, in town")

    def worst(whole: WholeJob) -> dict[str, Any]:
        first: dict[str, Any] = api.get(f"{OWN}/pipelines/{whole.pipeline.id}/live").json()["findings"][0]
        return first

    crash = {"kind": "crash", "node_id": None, "name": ""}
    again = "started again 2 times in a row: the worker was ended by signal 11, in town"
    assert worst(dying) == crash | {"text": again}
    assert worst(failed) == crash | {"kind": "failed", "text": "wrong"}
    assert api.get(f"{OWN}/pipelines/pl_x/live").status_code == 404


# ---- Who uses a function ----


def test_a_function_knows_its_pipelines_and_its_library(shared: Client) -> None:
    definition = "from arroyo_udf_plugin import udf\n\n@udf\ndef page_one(n: int) -> int:\n    return n\n"
    udf = shared.post("/api/v1/udfs", json={"definition": definition, "language": "python"}).json()
    table = "CREATE TABLE i WITH (connector = 'impulse', event_rate = '1');"
    query = f"{table} SELECT page_one(CAST(counter AS BIGINT)) FROM i;"
    made = shared.post("/api/v1/pipelines", json={"name": "uses", "query": query}).json()
    url = f"{OWN}/udfs/{udf['id']}"
    told = shared.get(url).json()
    use = {"id": made["id"], "name": "uses", "state": "Created", "is_current": True}
    assert told["signature"] == "page_one(n: int64) -> int64"
    assert told["pipelines"] == [use]
    library = shared.get(f"{url}/library")
    assert library.content.startswith(b"\x7fELF")
    assert library.headers["content-disposition"] == 'attachment; filename="libpage_one.so"'
    changed = definition.replace("return n", "return n + 1")
    assert shared.patch(f"/api/v1/udfs/{udf['id']}", json={"definition": changed}).status_code == 200
    later = shared.get(url).json()
    assert later["pipelines"] == [use | {"is_current": False}]
    assert [(one["number"], one["definition"]) for one in later["versions"]] == [(2, changed), (1, definition)]
    assert shared.patch(f"/api/v1/udfs/{udf['id']}", json={"description": "the same"}).status_code == 200
    assert len(shared.get(url).json()["versions"]) == 2, "what it does has not changed"
    assert shared.get(f"{OWN}/udfs/udf_x").status_code == 404


# ---- Who is who, and the page's files ----


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>the page</title>" + " " * 500)
    (folder / "assets" / "main-4fGh.js").write_text("start();" * 100)
    (tmp_path / "secret.txt").write_text("nobody reads this")
    monkeypatch.setattr(page, "BUILT", folder)
    return folder


@pytest.fixture
def asking(database: Database, records: Records, tmp_path: Path, built: Path) -> Client:
    """An API that asks for a token."""
    parts = ApiParts(
        database, Builder(tmp_path / "functions"), records, security=Security(tokens=Tokens(tmp_path, "known"))
    )
    return Client(create_app(parts))


def test_the_page_needs_no_token_and_the_api_does(asking: Client) -> None:
    with asking as client:
        for path in ("/", "/pipelines", "/pipelines/pl_x?tab=log", "/assets/main-4fGh.js"):
            assert client.get(path).status_code == 200, path
        for path in ("/api/v1/pipelines", f"{OWN}/identity", "/metrics", "/api", "/api/v1/nothing"):
            assert client.get(path).status_code == 401, path
        assert client.post("/", json={}).status_code == 401
        told = client.get(f"{OWN}/identity", headers={"authorization": "Bearer known"}).json()
        assert (told["name"], told["role"], told["asks_for_token"]) == ("configured", "admin", True)


def test_paths_within_the_page_are_the_page(asking: Client) -> None:
    with asking as client:
        assert "the page" in client.get("/functions/udf_4fGh").text
        missing = client.get("/assets/other.js")
        assert (missing.status_code, missing.text) == (404, "there is no such file")
        for path in ("/../secret.txt", "/assets/../../secret.txt", "/%2e%2e/secret.txt", "//secret.txt"):
            assert "nobody reads this" not in client.get(path).text


def test_files_are_cached_by_their_names_and_compressed(asking: Client, built: Path) -> None:
    with asking as client:
        script = client.get("/assets/main-4fGh.js", headers={"accept-encoding": "identity"})
        assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert script.headers["content-type"].startswith("text/javascript")
        index = client.get("/", headers={"accept-encoding": "gzip"})
        assert index.headers["content-encoding"] == "gzip"
        assert index.headers["cache-control"] == "no-cache"
        assert index.content == (built / "index.html").read_bytes()  # the client decompresses it
        assert int(index.headers["content-length"]) == len(gzip.compress(index.content, mtime=0))


def test_the_page_may_ask_no_other_host(asking: Client) -> None:
    with asking as client:
        policy = client.get("/").headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy


def test_without_the_page_it_says_how_to_get_it(api: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "BUILT", tmp_path / "nothing")
    answer = api.get("/pipelines/pl_4fGh")
    assert answer.status_code == 200
    assert "make web" in answer.text
    assert api.get("/icon.svg").status_code == 404


def test_nobody_logs_in_where_no_token_is_asked_for(database: Database, records: Records, tmp_path: Path) -> None:
    parts = ApiParts(database, Builder(tmp_path / "functions"), records, security=Security())
    with Client(create_app(parts)) as client:
        told = client.get(f"{OWN}/identity").json()
    assert (told["role"], told["asks_for_token"]) == ("admin", False)


@pytest.mark.parametrize(
    ("scheduler", "slices", "told"),
    [("local", None, ["local"]), ("local", 8, ["local", "flink"]), ("flink", 8, ["flink", "local"])],
)
def test_the_page_knows_where_pipelines_can_run(
    database: Database, records: Records, tmp_path: Path, scheduler: Any, slices: int | None, told: list[str]
) -> None:
    builder = Builder(tmp_path / "functions")
    parts = ApiParts(database, builder, records, security=Security(), scheduler=scheduler, flink_slices=slices)
    with Client(create_app(parts)) as client:
        assert client.get(f"{OWN}/identity").json()["schedulers"] == told
