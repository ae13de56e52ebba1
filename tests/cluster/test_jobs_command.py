"""arroyo-udf jobs, against a whole cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from programs import Client, Program

from arroyo_udf_plugin.cli import main

pytestmark = pytest.mark.cluster

SHOWN = """CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '1000', message_count = '3');
SELECT counter AS n, 'Zürich' AS town FROM numbers;"""
ENDLESS = "CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '1'); SELECT counter AS n FROM numbers;"


def test_jobs_are_listed_shown_read_and_stopped(start: Callable[..., Program], tmp_path: Path) -> None:
    program = start("cluster", tmp_path / "data", "--port", "0")
    client = Client(program)

    def jobs(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["jobs", *arguments, "--data", str(tmp_path / "data")])
        return done.exit_code, done.output

    short = client.ask("POST", "/pipelines", {"name": "short", "query": SHOWN, "tags": {"team": "a"}})["id"]
    long = client.ask("POST", "/pipelines", {"name": "long", "query": ENDLESS, "tags": {"team": "b"}})["id"]
    client.await_state(short, "Finished")
    client.await_state(long, "Running")
    status, told = jobs("ls")
    assert (status, [line.split()[:3] for line in told.splitlines()[1:]]) == (
        0,
        [[long, "long", "Running"], [short, "short", "Finished"]],
    )
    assert [json.loads(line)["name"] for line in jobs("ls", "--label", "team=a", "--json")[1].splitlines()] == ["short"]
    assert [json.loads(line) for line in jobs("tail", "short")[1].splitlines()] == [
        {"n": n, "town": "Zürich"} for n in range(3)
    ]
    shown = json.loads(jobs("show", client.job(long)["id"])[1])
    assert (shown["pipeline"]["id"], shown["job"]["state"]) == (long, "Running")
    assert [line.split()[-2:] for line in jobs("logs", short)[1].splitlines()] == [
        ["info", "Running"],
        ["info", "Finished"],
    ]
    assert jobs("stop", "--label", "team=b", "--state", "Running") == (0, f"{long}: stop\n")
    client.await_state(long, "Stopped")
    assert jobs("start", "long") == (0, f"{long}: start\n")
    client.await_state(long, "Running", 2)
    assert jobs("restart", "--state", "Running") == (0, f"{long}: restart\n")
    client.await_state(long, "Running", 3)
    assert jobs("stop", long, "--how", "immediate") == (0, f"{long}: stop\n")
    client.await_state(long, "Stopped")
    assert jobs("stop")[0] == 2
    status, told = jobs("ls", "--state", "Gone")
    assert (status, "there is no state 'Gone'" in told) == (1, True)
