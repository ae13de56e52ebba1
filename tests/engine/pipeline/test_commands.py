"""run, check and schema, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

CLI = [sys.executable, "-m", "arroyo_udf_plugin.cli"]

PIPELINE = """
name = "speeds"

[source]
type = "files"
paths = ["${FLIGHTS}"]

[[operators]]
plugin = "functions.so"
calls = ["plane(tail)", "speed = mph(miles, minutes)"]
on_error = "dead_letter"

[[sinks]]
type = "parts"
path = "out"

[dead_letters]
type = "parts"
path = "dead"
"""


def cli(*words: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*CLI, *words], capture_output=True, text=True, env=environment)
    assert done.returncode == status, done.stderr
    return done


def rows(folder: str) -> list[dict[str, Any]]:
    table = ds.dataset(folder).to_table()
    return sorted(table.to_pylist(), key=lambda row: str(row["tail"]))


@pytest.fixture(autouse=True)
def _pipeline(folder: Path) -> None:
    (folder / "p.toml").write_text(PIPELINE)


def test_a_run() -> None:
    done = cli("run", "p.toml", FLIGHTS="flights.parquet")
    assert done.stdout.startswith(
        "speeds: 3 rows read, 2 written; 5 values, 1 error, 0 timed out, 0 nulled, 0 dropped, 1 dead letter; "
    )
    failed = "functions: 1 row failed in mph, such as ${FLIGHTS}, row 2: ZeroDivisionError: division by zero"
    assert failed in done.stdout.splitlines()
    assert [(row["plane"], row["speed"]) for row in rows("out")] == [("n1", 100.0), ("n3", 300.0)]
    (dead,) = rows("dead")
    assert (dead["tail"], dead["failed_row"], dead["failed_file"]) == ("N2", 2, "${FLIGHTS}")
    assert dead["failed_error"].startswith("ZeroDivisionError: division by zero")


def test_slices_do_all_rows_once(folder: Path) -> None:
    table = pq.read_table("flights.parquet")
    for number in range(4):
        pq.write_table(table.slice(number % 3, 1), folder / f"part-{number}.parquet")
    cli("run", "p.toml", "--parallelism", "3", FLIGHTS="part-*.parquet")
    assert [row["tail"] for row in rows("out") + rows("dead")] == ["N1", "N1", "N3", "N2"]


def test_a_summary_for_programs() -> None:
    done = cli("run", "--json", "p.toml", FLIGHTS="flights.parquet")
    told = json.loads(done.stdout)
    assert (told["pipeline"], told["ended"], told["rows_in"], told["rows_out"]) == ("speeds", "finished", 3, 2)
    assert told["operators"][0]["counts"]["dead_letters"] == 1
    assert told["checkpoint"] is None


def test_a_summary_with_checkpoints() -> None:
    done = cli("run", "--json", "p.toml", "--checkpoints", "state", FLIGHTS="flights.parquet")
    checkpoint = json.loads(done.stdout)["checkpoint"]
    assert set(checkpoint) == {"epoch", "epochs", "seconds", "at", "retained"}
    assert checkpoint["epochs"] == 1


def test_json_does_for_toml(folder: Path) -> None:
    from arroyo_udf_plugin.engine.pipeline.description import described
    from arroyo_udf_plugin.engine.pipeline.document import Document

    (folder / "p.json").write_text(json.dumps(described(Document.read("p.toml").pipeline)))
    cli("run", "p.json", FLIGHTS="flights.parquet")
    assert len(rows("out")) == 2


def test_check_does_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    done = cli("check", "p.toml", FLIGHTS="flights.parquet")
    assert done.stdout == "p.toml: the pipeline speeds can be run\n"
    assert sorted(folder.rglob("*")) == before


def test_explain_does_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    done = cli("run", "--explain", "p.toml", FLIGHTS="flights.parquet")
    assert "    speed = mph(miles, minutes)    sync, speed: double\n" in done.stdout
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("command", ["check", "run"])
def test_errors_end_the_command_before_it_has_started(folder: Path, command: str) -> None:
    (folder / "p.toml").write_text(PIPELINE.replace("minutes)", "minuts)"))
    done = cli(command, "p.toml", status=1, FLIGHTS="flights.parquet")
    assert done.stderr == "Error: p.toml:10: operators[0].calls[1]: there is no column 'minuts': write 'minutes'\n"
    done = cli(command, "p.toml", status=1)
    assert done.stderr == (
        "Error: p.toml:6: source.paths[0]: the environment variable FLIGHTS is not set: export FLIGHTS=...\n"
    )
    assert not (folder / "out").exists()


def test_values_of_variables_are_not_shown(folder: Path) -> None:
    done = cli("run", "p.toml", status=1, FLIGHTS="secret/place.parquet")
    assert "${FLIGHTS}: there is no such file" in done.stderr
    assert "secret" not in done.stderr


def test_the_schema_is_json() -> None:
    told = json.loads(cli("schema").stdout)
    assert {"$ref": "#/$defs/Functions"} in told["properties"]["operators"]["items"]["oneOf"]


def test_run_has_two_forms(folder: Path) -> None:
    """The first argument decides, wherever options stand."""
    assert "PLUGIN[:FUNCTION]" in cli("run", "--help").stdout
    assert "PLUGIN[:FUNCTION]" in cli("run", "--out", "p.toml", "functions.so", "--help").stdout
    assert "--resume" in cli("run", "--checkpoints", "state", "p.toml", "--help").stdout
    assert "--resume" in cli("run", "p.json", "--help").stdout
    cli("run", "functions.so:plane", "flights.parquet", "--out", "own.csv")
    assert (folder / "own.csv").exists()


def test_a_row_that_fails_ends_the_run_without_an_output(folder: Path) -> None:
    text = PIPELINE.replace('on_error = "dead_letter"', "").split("[dead_letters]")[0]
    (folder / "p.toml").write_text(text.replace('type = "parts"\npath = "out"', 'type = "file"\npath = "out.csv"'))
    done = cli("run", "p.toml", status=1, FLIGHTS="flights.parquet")
    assert "functions.mph, ${FLIGHTS}, row 2: ZeroDivisionError" in done.stderr
    assert not (folder / "out.csv").exists()


LIGHT = """
import sys
import arroyo_udf_plugin.cli
heavy = {"pydantic", "rich", "obstore", "pyarrow", "cffi", "asyncio"} & set(sys.modules)
assert not heavy, heavy
"""


def test_the_command_line_starts_fast() -> None:
    """Only a pipeline pays for what only pipelines need."""
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


STREAM = """
name = "stream"
[source]
type = "stdin"
[[operators]]
plugin = "functions.so"
calls = ["plane", "speed = mph"]
[[sinks]]
type = "stdout"
"""


STREAM_IN_SQL = """
CREATE TABLE trips (tail TEXT, miles BIGINT, minutes BIGINT)
WITH (connector = 'stdin', format = 'csv', type = 'source');
CREATE TABLE out WITH (connector = 'stdout', format = 'csv', type = 'sink');
INSERT INTO out SELECT tail, miles, minutes, plane(tail) AS plane, mph(miles, minutes) AS speed FROM trips;
"""


@pytest.mark.parametrize(
    "words",
    [
        ["p.toml"],
        ["p.sql", "--udf", "functions.so"],
        ["functions.so", "-", "--call", "plane", "--call", "speed = mph", "--out", "-"],
    ],
)
def test_each_line_is_answered_before_the_next_one_comes(folder: Path, words: list[str]) -> None:
    """O6: nothing waits for more rows, or for a tick."""
    (folder / "p.toml").write_text(STREAM)
    (folder / "p.sql").write_text(STREAM_IN_SQL)
    with subprocess.Popen(
        [*CLI, "run", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        print("tail,miles,minutes", file=process.stdin, flush=True)
        for number in range(3):
            print(f"N{number},100,60", file=process.stdin, flush=True)
            if number == 0:
                assert process.stdout.readline() == "tail,miles,minutes,plane,speed\n"
            assert process.stdout.readline() == f"N{number},100,60,n{number},100\n"
        process.stdin.close()
        values = 9 if "p.sql" in words else 6  # the rows of a query count, too
        assert f"; {values} values, 0 errors" in process.stderr.read()
        assert process.wait() == 0


def test_a_query_reads_all_of_a_fifo(folder: Path) -> None:
    """Also what it has read for the columns; and the writer does not see that it was opened twice."""
    os.mkfifo("trips")
    (folder / "p.sql").write_text(STREAM_IN_SQL.replace("'stdin'", "'single_file', path = 'trips'"))
    with subprocess.Popen(
        [*CLI, "run", "p.sql", "--udf", "functions.so"], stdout=subprocess.PIPE, text=True
    ) as process:
        with open("trips", "w") as trips:
            assert process.stdout is not None
            print("tail,miles,minutes", file=trips, flush=True)
            for number in range(3):
                print(f"N{number},100,60", file=trips, flush=True)
                if number == 0:
                    assert process.stdout.readline() == "tail,miles,minutes,plane,speed\n"
                assert process.stdout.readline() == f"N{number},100,60,n{number},100\n"
        assert process.wait() == 0


def test_standard_input_cannot_be_resumed(folder: Path) -> None:
    text = STREAM.replace('type = "stdout"', 'type = "blackhole"\n[checkpoints]\nplace = "state"')
    (folder / "p.toml").write_text(text)
    done = subprocess.run(
        [*CLI, "run", "p.toml", "--resume"], input="tail,miles,minutes\nN1,1,1\n", capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "standard input" in done.stderr


def test_a_place_that_cannot_be_written_is_told(folder: Path) -> None:
    (folder / "p.toml").write_text(
        """
name = "counted"
source = { type = "impulse", rows = 100000 }
sinks = [{ type = "parts", path = "out" }]
checkpoints = { place = "/proc/state" }
"""
    )
    done = cli("run", "p.toml", status=1)
    assert done.stderr.startswith("Error: ")
    assert "/proc/state" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("policy", "told"), [("drop", "2 dropped, 0 dead"), ("dead_letter", "0 dropped, 2 dead")])
def test_rows_that_cannot_be_read_are_counted(folder: Path, policy: str, told: str) -> None:
    (folder / "bad.csv").write_text("a,b\n1,2\n3\n5,6\nx,8\n9,10\n")
    text = f"""
name = "bad"
sinks = [{{ type = "parts", path = "out" }}]
source = {{ type = "files", paths = ["bad.csv"], types = {{ a = "int" }}, bad_records = "{policy}" }}
"""
    dead = 'dead_letters = { type = "parts", path = "dead" }' if policy == "dead_letter" else ""
    (folder / "p.toml").write_text(text + dead)
    done = cli("run", "p.toml")
    assert done.stdout.startswith("bad: 5 rows read, 3 written; ")
    assert told in done.stdout
    if dead:
        assert sorted(row["failed_row"] for row in ds.dataset("dead").to_table().to_pylist()) == [2, 4]
