"""Dead letters of a pipeline over the API: looked at, changed, and replayed by a child."""

from __future__ import annotations

import csv
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asgi_client import Client
from waiting import until

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.api.own import letters
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.functions.messages import ReplayResult
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.host.policy import LETTER
from conftest import CACHE, Stored

API = "/api/v1/arroyo_udf/pipelines"
HALF = """
import os
from arroyo_udf import udf

@udf
def half(x: int) -> int:
    # Waits at a gate, if there is one: a FIFO, until its writer closes it.
    if os.path.exists("{folder}/gate"):
        open("{folder}/gate").read()
    if x % 2:
        raise ValueError(f"{{x}} is odd")
    return x // 2
"""
QUERY = """
CREATE TABLE numbers (x BIGINT, at TIMESTAMP, t TEXT)
WITH (connector = 'filesystem', path = '{folder}/in', format = 'csv'{watch});
CREATE TABLE out WITH (connector = 'filesystem', path = '{folder}/out', format = 'csv', type = 'sink');
{settings}
INSERT INTO out SELECT x, t, half(x) AS h FROM numbers;
"""
LETTERS = "SET on_error = 'dead_letter'; SET dead_letters = '{folder}/${{DEAD}}';"

WATCH = ", 'source.watch' = '50 ms'"


class Job:
    """Of the query, over a file with the numbers 2, 3, 7 and 5."""

    def __init__(self, client: httpx.Client, folder: Path, settings: str = LETTERS, watch: str = WATCH) -> None:
        self._client, self._folder = client, folder
        (folder / "in").mkdir()
        self.file = str(folder / "in" / "a.csv")
        Path(self.file).write_text("x,at,t\n2,2024-01-01,a\n3,2024-01-02,\n7,2024-01-03,c\n5,2024-01-04,d\n")
        query = QUERY.format(folder=folder, settings=settings.format(folder=folder), watch=watch)
        asked = {
            "name": "halves",
            "query": query,
            "udfs": [{"definition": HALF.format(folder=folder), "language": "python"}],
            "parallelism": 1,
            "checkpoint_interval_micros": 1_000_000,
            "env_vars": {"DEAD": "dead-of-this-test"},
        }
        self.path = f"/pipelines/{self.ask('POST', '/api/v1/pipelines', asked)['id']}"

    def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = self._client.request(method, path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def await_state(self, state: str, generation: int = 1) -> None:
        path = f"/api/v1{self.path}/jobs"

        def reached() -> bool:
            (job,) = self.ask("GET", path)["data"]
            return bool(job["state"] == state and job["run_id"] >= generation)

        until(reached, state)

    def stop(self) -> None:
        self.ask("PATCH", f"/api/v1{self.path}", {"stop": "checkpoint"})
        self.await_state("Stopped")

    def letters(self, limit: int = 100) -> Any:
        return self.ask("GET", f"/api/v1/arroyo_udf{self.path}/dead_letters?limit={limit}")

    def replay(self, body: Any, status: int = 200) -> Any:
        return self.ask("POST", f"/api/v1/arroyo_udf{self.path}/dead_letters/replay", body, status)

    def rows(self) -> list[tuple[str, ...]]:
        parts = sorted((self._folder / "out").glob("[!.]*.csv"))
        return sorted(tuple(row) for part in parts for row in list(csv.reader(part.read_text().splitlines()))[1:])


def skipped(**counts: int) -> dict[str, int]:
    return {"replayed_before": 0, "unread": 0, "late": 0, "of_windows": 0} | counts


def done(**counts: Any) -> dict[str, Any]:
    return {"rows_in": 0, "rows_out": 0, "failed": 0, "dropped": 0, "nulled": 0, "skipped": skipped()} | counts


@pytest.mark.cluster
def test_letters_are_shown_changed_and_replayed_once(client: httpx.Client, tmp_path: Path) -> None:
    job = Job(client, tmp_path)
    until(lambda: job.letters()["count"] == 3, "letters")
    shown = job.letters()
    assert (shown["place"], shown["why_not"]) == (f"{tmp_path}/${{DEAD}}", None)
    assert shown["columns"] == [
        {"name": "x", "type": "int64"},
        {"name": "at", "type": "timestamp[ns]"},
        {"name": "t", "type": "string"},
    ]
    assert [(letter["row"], letter["values"]["x"]) for letter in shown["data"]] == [(4, 5), (3, 7), (2, 3)]
    last = shown["data"][-1]
    assert last.pop("error").startswith("ValueError: 3 is odd")
    values = {"x": 3, "at": "2024-01-02T00:00:00.000000000", "t": None}
    assert last == {
        "file": job.file,
        "row": 2,
        "operator": "half",
        "outcome": "error",
        "attempts": 1,
        "values": values,
    }
    few = job.letters(limit=2)
    assert (few["count"], few["data"]) == (3, shown["data"][:2])

    refused = job.replay({}, 409)["error"]
    assert refused.startswith("its job is Running")
    assert "stop it first" in refused
    job.stop()
    third = {"file": job.file, "row": 3}
    wrong = job.replay({"values": [third | {"values": {"x": "seven"}}]}, 400)["error"]
    assert f"{job.file}:3: column 'x': " in wrong
    assert job.rows() == [("2", "a", "1")]
    assert job.replay({"rows": [third], "values": [third | {"values": {"x": 8}}]}) == done(rows_in=1, rows_out=1)
    assert job.rows() == [("2", "a", "1"), ("8", "c", "4")]
    again = job.replay({"rows": [third]})
    assert again == done(skipped=skipped(replayed_before=1))
    changed = {"file": job.file, "row": 2, "values": {"x": 6, "at": values["at"], "t": "new"}}
    assert job.replay({"values": [changed]}) == done(
        rows_in=2, rows_out=1, failed=1, skipped=skipped(replayed_before=1)
    )
    assert job.letters()["count"] == 4

    job.ask("PATCH", f"/api/v1{job.path}", {"stop": "none"})
    Path(job.file).with_name("b.csv").write_text("x,at,t\n4,2024-01-05,later\n")
    until(lambda: len(job.rows()) == 4, "the next row of the source")
    job.stop()
    assert job.rows() == [("2", "a", "1"), ("4", "later", "2"), ("6", "new", "3"), ("8", "c", "4")]


@pytest.mark.cluster
def test_letters_of_a_job_that_has_finished_are_replayed(client: httpx.Client, tmp_path: Path) -> None:
    job = Job(client, tmp_path, watch="")
    job.await_state("Finished")
    changed = [{"file": job.file, "row": row, "values": {"x": 2 * row}} for row in (2, 3, 4)]
    assert job.replay({"values": changed}) == done(rows_in=3, rows_out=3)
    assert job.rows() == [("2", "a", "1"), ("4", "", "2"), ("6", "c", "3"), ("8", "d", "4")]


@pytest.mark.cluster
def test_a_start_of_the_job_ends_a_replay_which_can_be_repeated(client: httpx.Client, tmp_path: Path) -> None:
    job = Job(client, tmp_path)
    until(lambda: job.letters()["count"] == 3, "letters")
    job.stop()
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    third = {"file": job.file, "row": 3}
    body = {"rows": [third], "values": [third | {"values": {"x": 8}}]}
    with ThreadPoolExecutor() as pool:
        refused = pool.submit(job.replay, body, 409)
        with gate.open("w"):  # when the function waits there
            gate.unlink()
            job.ask("PATCH", f"/api/v1{job.path}", {"stop": "none"})
            job.await_state("Running", generation=2)
        assert "another engine" in refused.result()["error"]
    job.stop()
    assert job.rows() == [("2", "a", "1")]
    assert job.replay(body) == done(rows_in=1, rows_out=1)
    assert job.rows() == [("2", "a", "1"), ("8", "c", "4")]


@pytest.mark.cluster
def test_a_pipeline_without_letters_says_so(client: httpx.Client, tmp_path: Path) -> None:
    job = Job(client, tmp_path, "SET on_error = 'drop';")
    assert job.letters() == {"place": None, "why_not": None, "count": 0, "columns": [], "data": []}
    until(lambda: job.rows() == [("2", "a", "1")], "the row")
    job.stop()
    assert "it has none" in job.replay({}, 400)["error"]


# ---- Without a controller ----


@pytest.fixture
def dead(tmp_path: Path) -> Path:
    folder = tmp_path / "dead"
    folder.mkdir()
    return folder


@pytest.fixture
def path(stored: Stored, dead: Path) -> str:
    """Of a pipeline whose letters are in that folder."""
    described = {"name": "p", "source": {"type": "impulse"}, "sinks": [{"type": "blackhole"}]}
    program = JobProgram(described | {"dead_letters": {"type": "parts", "path": str(dead)}}, {})
    return f"{API}/{stored('Stopped', stop='checkpoint', program=program).pipeline.id}/dead_letters"


def part(epoch: int, rows: list[dict[str, Any]], schema: pa.Schema = LETTER) -> pa.Table:
    known = {"failed_file": f"{epoch}.csv", "failed_row": 1, "failed_outcome": "error", "failed_error": "bad"}
    return pa.Table.from_pylist([known | row for row in rows], schema=schema)


def name(epoch: int) -> str:
    return f"part-{epoch:09}-000-000.parquet"


def test_a_damaged_part_is_named_and_hides_no_other(api: Client, path: str, dead: Path) -> None:
    pq.write_table(part(1, [{}]), dead / name(1))
    (dead / name(2)).write_bytes(b"PAR1 and nothing more")
    pq.write_table(part(3, [{"failed_file": None}]), dead / name(3))
    pq.write_table(pa.table({"x": [1]}), dead / name(4))
    (dead / "notes.txt").write_text("of somebody else")
    answer = api.get(path)
    assert answer.status_code == 200
    told = answer.json()
    for epoch in (2, 3, 4):
        assert name(epoch) in told["why_not"]
    assert (told["count"], [letter["file"] for letter in told["data"]]) == (1, ["1.csv"])


def test_a_folder_that_is_not_there_yet_has_no_letters(api: Client, path: str, dead: Path) -> None:
    dead.rmdir()
    empty = {"place": str(dead), "why_not": None, "count": 0, "columns": [], "data": []}
    assert api.get(path).json() == empty
    dead.touch()
    assert api.get(path).json() == empty


def test_a_folder_that_leads_out_of_the_roots_is_not_read(
    database: Database, records: Records, stored: Stored, path: str, dead: Path, tmp_path: Path
) -> None:
    """The API runs in a process that reads more than pipelines may."""
    pq.write_table(part(1, [{}]), dead / name(1))
    builder = Builder(tmp_path / "functions", cache=CACHE)
    for root, count in ((tmp_path, 1), (tmp_path / "allowed", 0)):
        with Client(create_app(ApiParts(database, builder, records, roots=[str(root)]))) as client:
            told = client.get(path).json()
            client.run(builder.close())
        assert (told["count"], told["why_not"] is None) == (count, bool(count))


def test_what_json_cannot_hold_is_text(api: Client, path: str, dead: Path) -> None:
    schema = pa.schema([("raw", pa.binary()), ("f", pa.float64()), ("l", pa.list_(pa.int64())), *LETTER])
    pq.write_table(part(1, [{"raw": b"\x00\xff", "f": float("nan"), "l": [1, None]}], schema), dead / name(1))
    (letter,) = api.get(path).json()["data"]
    assert letter["values"] == {"raw": "00ff", "f": "NaN", "l": [1, None]}


def test_an_answer_has_a_limited_number_of_rows_and_bytes(
    api: Client, path: str, dead: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("t", pa.string()), *LETTER])
    for epoch in (1, 2):
        rows = [{"failed_row": row, "t": "x" * 1000} for row in range(1, 901)]
        pq.write_table(part(epoch, rows, schema), dead / name(epoch))

    def shown(limit: int) -> list[tuple[str, int]]:
        told = api.get(f"{path}?limit={limit}").json()
        assert told["count"] == 1800
        return [(letter["file"], letter["row"]) for letter in told["data"]]

    newest = [(f"{epoch}.csv", row) for epoch in (2, 1) for row in range(900, 0, -1)]
    assert shown(10) == newest[:10]
    assert shown(5000) == newest[:1000]
    monkeypatch.setattr(letters, "_MOST_BYTES", 50_000)
    few = shown(1000)
    assert few == newest[: len(few)]
    assert 40 < len(few) < 50
    monkeypatch.setattr(letters, "_MOST_BYTES", 1)
    assert shown(1000) == newest[:1]


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"again": True}, 400, "name the rows"),
        ({"rows": []}, 400, "rows"),
        ({"values": [{"file": "a", "row": 1, "values": {}}] * 2}, 400, "a row is there twice"),
        ({"row": 1}, 422, "there is no key 'row'"),
    ],
)
def test_a_wrong_request_is_refused(api: Client, path: str, body: Any, status: int, why: str) -> None:
    answer = api.post(f"{path}/replay", json=body)
    assert (answer.status_code, why in answer.json()["error"]) == (status, True)


@pytest.mark.parametrize(
    ("state", "stop", "why"),
    [("Running", "checkpoint", "its job is Running"), ("Stopped", "none", "its job is about to start")],
)
def test_a_job_that_runs_or_will_is_not_replayed(api: Client, stored: Stored, state: str, stop: str, why: str) -> None:
    answer = api.post(f"{API}/{stored(state, stop=stop).pipeline.id}/dead_letters/replay", json={})
    assert (answer.status_code, answer.json()["error"].startswith(why)) == (409, True)


def test_a_replay_that_a_start_of_the_job_has_ended_says_so(
    api: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def replay(*given: Any) -> ReplayResult:
        return ReplayResult(error="another engine has resumed this pipeline", is_conflict=True)

    monkeypatch.setattr(Builder, "replay", replay)
    answer = api.post(f"{path}/replay", json={})
    assert (answer.status_code, answer.json()) == (409, {"error": "another engine has resumed this pipeline"})
