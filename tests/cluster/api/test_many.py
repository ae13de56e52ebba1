"""Many pipelines at once, by labels and states; and requests that are sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client
from test_openapi import Quick

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.configuration import LimitSettings
from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import id_of
from arroyo_udf_plugin.cluster.records import Records

POST = {"name": "x", "query": "SELECT 1"}


@pytest.fixture
def api(database: Database, records: Records, tmp_path: Path) -> Iterator[Client]:
    limits = LimitSettings(parallelism=4)
    parts = ApiParts(database, Quick(tmp_path / "functions"), records, limits=limits)
    with Client(create_app(parts)) as client:
        yield client


@pytest.fixture
def four(stored: Any) -> dict[str, str]:
    """Ids by name."""
    made = {
        "a-runs": stored("Running", tags={"team": "a", "tier": "1"}),
        "a-failed": stored("Failed", tags={"team": "a"}),
        "b-runs": stored("Running", tags={"team": "b", "a.b/c": "x y"}),
        "none": stored("Stopped", stop="checkpoint"),
    }
    return {name: whole.pipeline.id for name, whole in made.items()}


def names(four: dict[str, str], ids: list[str]) -> set[str]:
    return {name for name, id in four.items() if id in ids}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("label=team=a", {"a-runs", "a-failed"}),
        ("label=team=a&label=tier=1", {"a-runs"}),
        ("label=a.b/c=x y", {"b-runs"}),
        ("label=team=", set()),
        ("label=nothing=a", set()),
        ("state=Running", {"a-runs", "b-runs"}),
        ("state=Running&state=Failed&label=team=a", {"a-runs", "a-failed"}),
        ("", {"a-runs", "a-failed", "b-runs", "none"}),
    ],
)
def test_lists_can_be_of_labels_and_states(api: Client, four: dict[str, str], asked: str, found: set[str]) -> None:
    listed = api.get(f"/api/v1/pipelines?{asked}").json()["data"]
    assert names(four, [one["id"] for one in listed]) == found
    jobs = api.get(f"/api/v1/jobs?{asked}").json()["data"]
    assert names(four, [one["pipeline_id"] for one in jobs]) == found


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("label=team", "write name=value"),
        ('label=a"]=b', "is no name of a label"),
        ("state=Gone", "there is no state 'Gone': there are Created, "),
    ],
)
def test_what_can_fit_nothing_is_refused(api: Client, asked: str, told: str) -> None:
    answer = api.get(f"/api/v1/jobs?{asked}")
    assert (answer.status_code, told in answer.json()["error"]) == (400, True)


def test_labels_are_changed_without_a_wish(api: Client, four: dict[str, str], database: Database) -> None:
    path = f"/api/v1/pipelines/{four['none']}"
    with database.read() as session:
        before = pipelines.get(session, four["none"]).job.revision
    assert api.patch(path, json={"tags": {"team": "c"}}).json()["tags"] == {"team": "c"}
    with database.read() as session:
        assert pipelines.get(session, four["none"]).job.revision == before
    assert api.get("/api/v1/pipelines?label=team=c").json()["data"][0]["id"] == four["none"]


def test_an_action_is_for_all_that_fit(api: Client, four: dict[str, str], database: Database) -> None:
    def act(**asked: Any) -> Any:
        return api.post("/api/v1/pipelines/actions", json=asked)

    def stops() -> dict[str, str]:
        with database.read() as session:
            return {name: pipelines.get(session, id).job.stop for name, id in four.items()}

    done = act(action="stop", labels={"team": "a"}, states=["Running"]).json()
    assert (names(four, done["done"]), done["refused"]) == ({"a-runs"}, [])
    assert stops() == {"a-runs": "checkpoint", "a-failed": "none", "b-runs": "none", "none": "checkpoint"}
    act(action="stop", how="immediate", states=["Running"])
    assert (stops()["a-runs"], stops()["b-runs"]) == ("immediate", "immediate")
    assert names(four, act(action="start", states=["Stopped"]).json()["done"]) == {"none"}
    assert stops()["none"] == "none"
    done = act(action="restart", labels={"team": "a"}, ignore_state=True).json()
    assert names(four, done["done"]) == {"a-runs", "a-failed"}
    with database.read() as session:
        assert pipelines.get(session, four["a-failed"]).job.history == 1
    for wrong in ({"action": "stop"}, {"action": "start", "states": ["Stopped"], "how": "force"}, {"action": "stop",
                  "how": "none", "states": ["Running"]}, {"action": "stop", "states": ["gone"]}):  # fmt: skip
        assert act(**wrong).status_code == 400, wrong


@pytest.mark.parametrize("action", ["start", "restart"])
def test_a_job_that_has_finished_is_not_said_to_start(api: Client, stored: Any, action: str) -> None:
    finished = stored("Finished").pipeline.id
    told = api.post("/api/v1/pipelines/actions", json={"action": action, "states": ["Finished"]}).json()
    assert told["done"] == []
    assert [one["id"] for one in told["refused"]] == [finished]
    assert "create a pipeline" in told["refused"][0]["error"]


def test_an_action_that_one_of_them_refuses_is_done_for_the_others(
    api: Client, stored: Any, database: Database
) -> None:
    """For example, because all of them would be too many."""
    made = [stored("Stopped", stop="checkpoint", parallelism=3, tags={"t": "x"}).pipeline.id for _ in range(2)]
    told = api.post("/api/v1/pipelines/actions", json={"action": "start", "labels": {"t": "x"}})
    assert (told.status_code, told.json()["done"]) == (200, [made[1]])
    assert told.json()["refused"][0]["id"] == made[0]
    assert "limits.parallelism = 4" in told.json()["refused"][0]["error"]


@pytest.mark.parametrize("path", ["pipelines", "pipelines/preview"])
def test_a_request_that_is_sent_again_makes_no_second_pipeline(api: Client, path: str) -> None:
    def post(key: str, **changes: Any) -> Any:
        return api.post(f"/api/v1/{path}", json=POST | changes, headers={"idempotency-key": key})

    first, second = post("key 1"), post("key 1")
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json()["id"] == second.json()["id"]
    assert post("key 2").json()["id"] != first.json()["id"]
    other = post("key 1", query="SELECT 2")
    assert (other.status_code, "take a new one" in other.json()["error"]) == (409, True)

    async def at_once() -> set[tuple[int, str]]:
        asked = [api.http.post(f"/api/v1/{path}", json=POST, headers={"idempotency-key": "key 3"}) for _ in range(4)]
        return {(answer.status_code, answer.json().get("id")) for answer in await asyncio.gather(*asked)}

    assert len(api.run(at_once())) == 1


def test_ids_of_keys_are_like_others_and_differ(database: Database) -> None:
    ids = {id_of("pl", "caller", str(number)) for number in range(2000)}
    assert len(ids) == 2000
    assert all(len(one) == len("pl_0000000000") and one[3:].isalnum() for one in ids)
    assert id_of("pl", "a", "b") != id_of("pl", "ab", "")
