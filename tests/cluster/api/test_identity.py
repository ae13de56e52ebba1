"""Who may use the API: tokens, roles, logins of browsers, and what is written down of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi_client import Client, bearer
from click.testing import CliRunner
from programs import Program

from arroyo_udf_plugin.cli import main
from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.configuration import configured
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.security import Audit
from arroyo_udf_plugin.cluster.tokens import OWNER, Caller, Logins, Tokens
from arroyo_udf_plugin.errors import InvalidArgument, InvalidState

ORIGIN = {"origin": "http://localhost:5115"}
UDF = {"definition": "from arroyo_udf_plugin import udf\n\n@udf\ndef f(n): return n\n", "language": "python"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def api(database: Database, data: Path) -> Iterator[Client]:
    """As a program serves it on loopback, with nothing configured. It sends no token by itself."""
    parts = ApiParts.configured(database, configured(None, {"data": str(data)}, {}).settings, lambda: None)
    with Client(create_app(parts)) as client:
        yield client
        client.run(parts.builder.close())


def test_nobody_without_the_token_runs_code_on_loopback(api: Client, data: Path) -> None:
    """Another user of the machine could post a function, whose code ran as the cluster's user."""
    for method, path in (
        ("POST", "/udfs/validate"),
        ("GET", "/jobs"),
        ("GET", "/ping"),
        ("GET", "/api-docs/openapi.json"),
    ):
        answer = api.request(method, f"/api/v1{path}", **({"json": UDF} if method == "POST" else {}))
        assert answer.status_code == 401, path
    assert api.get("/metrics").status_code == 401
    assert api.get("/api/v1/jobs", headers=bearer(data)).json() == {"data": []}
    assert (data / "token").stat().st_mode & 0o777 == 0o600


def test_a_token_is_made_once(data: Path) -> None:
    for _ in range(2):
        tokens = Tokens(data)
        tokens.make()
    first = tokens.own()
    assert len(first) > 40
    assert Tokens(data).own() == first
    (data / "token").write_text("\n")
    with pytest.raises(InvalidState, match="is empty"):
        tokens.own()
    assert tokens.caller("") is None


def test_tokens_have_names_and_roles_and_are_changed_while_the_api_runs(api: Client, data: Path) -> None:
    tokens = Tokens(data)
    told = {role: tokens.add(f"a-{role}", role) for role in ("read", "run", "admin")}
    requests = {
        "read": ("GET", "/api/v1/jobs", None),
        "run": ("PATCH", "/api/v1/pipelines/pl_x", {"stop": "none"}),
        "admin": ("POST", "/api/v1/connection_profiles", {"name": "x", "connector": "nothing", "config": {}}),
    }
    for role, token in told.items():
        for needed, (method, path, body) in requests.items():
            headers = {"authorization": f"Bearer {token}"}
            answer = api.request(method, path, headers=headers, **({} if body is None else {"json": body}))
            may = ("read", "run", "admin").index(role) >= ("read", "run", "admin").index(needed)
            assert (answer.status_code == 403) == (not may), (role, needed, answer.text)
            if not may:
                assert f"'a-{role}' has the role {role}, and this needs " in answer.json()["error"]
    tokens.remove("a-read")
    assert api.get("/api/v1/jobs", headers={"authorization": f"Bearer {told['read']}"}).status_code == 401
    with pytest.raises(InvalidArgument, match="there are owner, a-admin, a-run"):
        tokens.remove("a-read")
    for name in ("a-run", OWNER, "configured", "x.y", ""):
        with pytest.raises(InvalidArgument):
            tokens.add(name, "read")


def test_a_rotated_token_holds_for_the_time_that_is_asked_for(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    tokens = Tokens(data)
    tokens.make()
    old = tokens.add("board", "read")
    new = tokens.rotate("board", keep=60)
    caller = Caller("board", "read")
    assert (tokens.caller(old), tokens.caller(new)) == (caller, caller)
    now[0] += 61
    assert (tokens.caller(old), tokens.caller(new)) == (None, caller)
    newer = tokens.rotate("board")
    assert (tokens.caller(new), tokens.caller(newer)) == (None, caller)
    own = tokens.own()
    assert (tokens.rotate(OWNER), tokens.caller(own)) == (tokens.own(), None)
    assert all(token not in (data / "tokens.json").read_text() for token in (old, new, newer))


def test_a_session_ends_with_its_token_and_with_its_time(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, caller = Tokens(data, session_seconds=100), Caller("board", "run")
    tokens.add("board", "run")
    session = tokens.session(caller)
    assert session is not None
    assert Tokens(data).caller_of_session(session) == caller, "programs with the same folder know it"
    name, until, signature = session.split(".")
    for wrong in (
        f"{name}.{int(until) + 1}.{signature}",
        f"owner.{until}.{signature}",
        "",
        "..",
        f"{name}.x.{signature}",
    ):
        assert tokens.caller_of_session(wrong) is None
    monkeypatch.setattr("time.time", lambda: float(until) + 1)
    assert tokens.caller_of_session(session) is None
    monkeypatch.undo()
    tokens.rotate("board")
    assert tokens.caller_of_session(session) is None
    tokens.remove("board")
    assert tokens.session(caller) is None


def test_a_browser_logs_in_once_and_then_uses_the_api_as_a_page_does(api: Client, data: Path) -> None:
    path = api.post("/api/v1/logins", json={}, headers=bearer(data)).json()["path"]
    came = api.get(path)
    assert (came.status_code, came.headers["location"]) == (303, "/")
    cookie = {"cookie": came.headers["set-cookie"].partition(";")[0]}
    api.http.cookies.clear()
    assert api.get(path).status_code == 403, "it holds once"
    assert api.get("/", headers=cookie).text.startswith("<!doctype html>")
    assert api.get("/api/v1/ping", headers=cookie).json() == "Pong"
    changing = api.patch("/api/v1/pipelines/pl_x", json={"stop": "none"}, headers=cookie | ORIGIN)
    assert (changing.status_code, changing.json()) == (404, {"error": "Pipeline not found"})
    foreign = api.patch("/api/v1/pipelines/pl_x", json={"stop": "none"}, headers=cookie)
    assert foreign.status_code == 401
    assert api.get("/api/v1/login?code=x").status_code == 403
    assert api.request("HEAD", "/api/v1/login?code=x").status_code == 401, "a preview of a link uses no login up"


def test_logins_end_after_ten_minutes_and_are_a_hundred_at_most() -> None:
    now = [0.0]
    logins, caller = Logins(lambda: now[0]), Caller(OWNER, "admin")
    first, second = logins.new(caller), logins.new(caller)
    now[0] = 599.0
    assert logins.take(first) == caller
    assert logins.take(first) is None
    now[0] = 601.0
    assert logins.take(second) is None
    codes = [logins.new(caller) for _ in range(150)]
    assert [logins.take(code) for code in codes] == [None] * 50 + [caller] * 100


def test_the_audit_log_has_changes_and_who_made_them(api: Client, data: Path) -> None:
    token = Tokens(data).add("board", "read")
    api.get("/api/v1/jobs", headers=bearer(data))
    api.patch("/api/v1/pipelines/pl_x", json={"env_vars": {"A": "a secret"}}, headers=bearer(data))
    api.patch("/api/v1/pipelines/pl_x", json={}, headers={"authorization": f"Bearer {token}"})
    file = data / "audit.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" not in file.read_text()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["caller"], line["role"], line["method"], line["path"], line["status"]) for line in lines] == [
        ("owner", "admin", "PATCH", "/api/v1/pipelines/pl_x", 404),
        ("board", "read", "PATCH", "/api/v1/pipelines/pl_x", 403),
    ]


def test_the_audit_log_keeps_to_its_limit_whoever_writes(tmp_path: Path) -> None:
    scope: dict[str, Any] = {"method": "POST", "path": "/x", "client": ("::1", 1)}
    logs = [Audit(tmp_path / "audit.jsonl", 20_000) for _ in range(4)]

    def write(log: Audit) -> None:
        for number in range(100):
            log.note(Caller(f"caller-{number}", "run"), scope, 200)

    threads = [threading.Thread(target=write, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["audit.jsonl", "audit.jsonl.1"]
    assert sum(file.stat().st_size for file in files) <= 20_000
    for file in files:
        for line in file.read_text().splitlines():
            assert json.loads(line)["path"] == "/x"


def command(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(one) for one in arguments])
    return done.exit_code, done.output


def test_the_commands_read_the_token_by_themselves(start: Callable[..., Program], data: Path) -> None:
    program = start("api", data, "--port", "0")
    status, told = command("jobs", "ls", "--data", data)
    assert (status, told.split()) == (0, ["pipeline", "name", "state", "started"])
    assert command("token", "show", "--data", data) == (0, f"{Tokens(data).own()}\n")
    login = [line.rpartition(" at ")[2] for line in program.said.splitlines() if "a browser logs in" in line]
    assert login[0].startswith(f"{program.address}/api/v1/login?code=")
    status, told = command("login", "--data", data)
    assert (status, told.startswith(f"{program.address}/api/v1/login?code=")) == (0, True)
    status, told = command("jobs", "show", "pl_none", "--data", data)
    assert (status, told) == (1, "Error: there is no pipeline pl_none: `arroyo-udf jobs ls` lists them\n")
    assert command("token", "add", "board", "--role", "read", "--data", data)[0] == 0
    assert [line.split()[:2] for line in command("token", "ls", "--data", data)[1].splitlines()] == [
        ["owner", "admin"],
        ["board", "read"],
    ]
    assert command("token", "remove", "board", "--data", data) == (0, "")


def test_without_tokens_the_program_says_what_that_means(start: Callable[..., Program], data: Path) -> None:
    program = start("api", data, "--port", "0", "--no-token")
    assert "WARNING: no token: every user of this machine runs code as " in program.said
    assert "login" not in program.said
    assert command("jobs", "ls", "--data", data, "--url", program.address)[0] == 1, "it has no token to send"


def test_without_tokens_nothing_but_loopback_is_served(data: Path, database: Database) -> None:
    settings = configured(None, {"data": str(data), "api": {"no_token": True, "bind_address": "0.0.0.0"}}, {}).settings
    with pytest.raises(InvalidArgument, match="leave out --no-token"):
        ApiParts.configured(database, settings, lambda: None)


def test_commands_say_which_cluster_does_not_answer(data: Path) -> None:
    status, told = command("jobs", "ls", "--data", data)
    assert (status, "--data" in told) == (1, True)
    Tokens(data).make()
    status, told = command("jobs", "ls", "--data", data)
    assert (status, "start `arroyo-udf cluster`" in told) == (1, True)
    status, told = command("jobs", "ls", "--data", data, "--url", "http://127.0.0.1:1")
    assert (status, "no cluster answers at http://127.0.0.1:1" in told) == (1, True)
