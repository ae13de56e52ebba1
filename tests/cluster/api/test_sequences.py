"""Whatever is created, changed and deleted, in any order and by either of two APIs on one database: each request is
answered as a model of a few sets says, what is in use stays, and both APIs tell the same.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_client import Client
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database.database import KEY_FILE, Database
from arroyo_udf_plugin.cluster.database.models import JobStatus
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.functions.messages import PlanResult
from arroyo_udf_plugin.cluster.records import Records

pytestmark = pytest.mark.cluster

NAMES = st.sampled_from(["one", "two", "Three"])
API = "/api/v1"
SQLITE = {"connector": "sqlite", "config": {"uri": "sqlite:x.db"}}


class Planner(Builder):
    """A query is the name of a table; any other one is wrong."""

    async def plan(self, name: str, query: str, *more: Any, tables: Any = (), **others: Any) -> PlanResult:
        found = [table.name for table in tables if table.name.lower() == query.lower()]
        return PlanResult(description={"operators": [], "sinks": []}, graph={}, tables=found)


class Sequences(RuleBasedStateMachine):
    """profiles, tables: ids by name in lower case; users: profile of a table, tables of a pipeline; states: of jobs."""

    migrated: Path

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        for path in (self.migrated, self.migrated.with_name(KEY_FILE)):
            shutil.copy(path, self.folder)
        self.databases = [Database.open(f"sqlite:///{self.folder / self.migrated.name}") for _ in range(2)]
        planner, records = Planner(self.folder / "functions"), Records(self.folder)
        self.apis = [Client(create_app(ApiParts(one, planner, records))) for one in self.databases]
        self.turn = 0
        self.profiles: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        self.profile_of: dict[str, str] = {}
        self.table_of: dict[str, str | None] = {}
        self.states: dict[str, str] = {}
        for name in ("one", "two"):
            self.create_profile(name)
            self.create_table(name, name)
            self.create_pipeline(name, name)

    def teardown(self) -> None:
        for api in getattr(self, "apis", ()):
            api.__exit__(None, None, None)
        for database in getattr(self, "databases", ()):
            database.close()
        shutil.rmtree(getattr(self, "folder", ""), ignore_errors=True)

    def ask(self, method: str, path: str, status: int, body: Any = None) -> Any:
        """Of one API and then the other."""
        self.turn += 1
        answer: httpx.Response = self.apis[self.turn % 2].request(method, API + path, json=body)
        assert answer.status_code == status, (method, path, body, answer.text)
        if status != 200:
            assert list(answer.json()) == ["error"]
        return answer.json() if answer.content else None

    @rule(name=NAMES)
    def create_profile(self, name: str) -> None:
        told = self.ask("POST", "/connection_profiles", 400 if name in self.profiles else 200, SQLITE | {"name": name})
        self.profiles.setdefault(name, told.get("id"))

    @rule(name=NAMES, new=NAMES)
    def rename_profile(self, name: str, new: str) -> None:
        status = 404 if name not in self.profiles else 400 if new != name and new in self.profiles else 200
        self.ask("PATCH", f"/connection_profiles/{self.profiles.get(name, 'cp_0')}", status, {"name": new})
        if status == 200:
            self.profiles[new] = self.profiles.pop(name)

    @rule(name=NAMES)
    def delete_profile(self, name: str) -> None:
        id = self.profiles.get(name, "cp_0")
        status = 404 if name not in self.profiles else 400 if id in self.profile_of.values() else 200
        self.ask("DELETE", f"/connection_profiles/{id}", status)
        if status == 200:
            del self.profiles[name]

    @rule(name=NAMES, profile=NAMES)
    def create_table(self, name: str, profile: str) -> None:
        id = self.profiles.get(profile, "cp_0")
        status = 404 if profile not in self.profiles else 400 if name.lower() in self.tables else 200
        body = {"name": name, "connector": "sqlite", "connection_profile_id": id, "config": {}}
        told = self.ask("POST", "/connection_tables", status, body)
        if status == 200:
            self.tables[name.lower()] = told["id"]
            self.profile_of[told["id"]] = id

    @rule(name=NAMES, profile=NAMES)
    def move_table(self, name: str, profile: str) -> None:
        table, id = self.tables.get(name.lower()), self.profiles.get(profile)
        status = 200 if table and id else 404
        path = f"/connection_tables/{table or 'ct_0'}"
        self.ask("PATCH", path, status, {"connection_profile_id": id or "cp_0"})
        if table and id:
            self.profile_of[table] = id

    @rule(name=NAMES)
    def delete_table(self, name: str) -> None:
        id = self.tables.get(name.lower(), "ct_0")
        status = 404 if name.lower() not in self.tables else 400 if id in self.table_of.values() else 200
        self.ask("DELETE", f"/connection_tables/{id}", status)
        if status == 200:
            del self.tables[name.lower()], self.profile_of[id]

    @rule(name=NAMES, query=NAMES)
    def create_pipeline(self, name: str, query: str) -> None:
        id = f"pl_{name}"
        body = {"name": name, "query": query, "parallelism": 1}
        self.ask("PUT", f"/pipelines/{id}", 400 if id in self.states else 200, body)
        if id not in self.states:
            self.states[id] = "Created"
            self.table_of[id] = self.tables.get(query.lower())

    @rule(name=NAMES, state=st.sampled_from(["Running", "Stopping", "Stopped", "Finished", "Failed"]))
    def job_comes_to(self, name: str, state: str) -> None:
        id = f"pl_{name}"
        if id in self.states:
            job = self.ask("GET", f"/pipelines/{id}/jobs", 200)["data"][0]["id"]
            with self.databases[0].begin() as session:
                session.get_one(JobStatus, job).state = state
            self.states[id] = state

    @rule(name=NAMES, stop=st.sampled_from(["none", "checkpoint", "graceful", "immediate", "force"]))
    def wish(self, name: str, stop: str) -> None:
        id = f"pl_{name}"
        told = self.ask("PATCH", f"/pipelines/{id}", 200 if id in self.states else 404, {"stop": stop})
        assert id not in self.states or told["stop"] == stop

    @rule(name=NAMES, replan=st.booleans())
    def restart(self, name: str, replan: bool) -> None:
        id = f"pl_{name}"
        status = 404 if id not in self.states else 409 if self.states[id] == "Finished" else 200
        self.ask("POST", f"/pipelines/{id}/restart", status, {"replan": replan})
        if replan and status == 200:
            query = self.ask("GET", f"/pipelines/{id}", 200)["query"]
            self.table_of[id] = self.tables.get(query.lower())

    @rule(name=NAMES)
    def delete_pipeline(self, name: str) -> None:
        id = f"pl_{name}"
        state = self.states.get(id)
        status = 404 if state is None else 200 if state in ("Stopped", "Finished", "Failed") else 400
        self.ask("DELETE", f"/pipelines/{id}", status)
        if status == 200:
            del self.states[id], self.table_of[id]

    @invariant()
    def both_tell_the_model(self) -> None:
        if not hasattr(self, "apis"):
            return
        one, other = (api.get(API + "/connection_tables").json()["data"] for api in self.apis)
        assert one == other
        assert {row["id"]: row["connection_profile"]["id"] for row in one} == self.profile_of
        used = list(self.table_of.values())
        assert all(row["consumers"] == used.count(row["id"]) for row in one)
        assert {row["id"] for row in self.ask("GET", "/pipelines", 200)["data"]} == set(self.states)
        assert {row["pipeline_id"]: row["state"] for row in self.ask("GET", "/jobs", 200)["data"]} == self.states
        profiles = self.ask("GET", "/connection_profiles", 200)["data"]
        assert {row["name"]: row["id"] for row in profiles} == self.profiles


def test_any_sequence_of_requests_is_answered_as_a_model_says(migrated: Path) -> None:
    class Prepared(Sequences):
        pass

    Prepared.migrated = migrated
    case = Prepared.TestCase
    case.settings = settings(
        max_examples=8, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
    )
    case("runTest").runTest()
