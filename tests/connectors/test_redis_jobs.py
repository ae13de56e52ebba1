"""Queries over Redis: streams in and out, lookups, and engines and servers that are killed."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from connector_kills import KILLS, MOMENTS
from failing import ended
from redis_server import Server
from waiting import until

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline.description import Pipeline, described
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.connectors

CHILD = Path(__file__).parents[1] / "engine" / "execution" / "kill" / "child.py"
EPOCHS = 2


def planned(text: str) -> Pipeline:
    return Script("query.sql", text, []).pipeline


def shown(folder: Path) -> list[Any]:
    """The rows of all parts."""
    parts = sorted((folder / "out").glob("part-*"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def test_a_stream_to_a_hash(redis: Server) -> None:
    stream, out = redis.name(), redis.name()
    for n in range(10):
        redis.client.xadd(stream, {"value": json.dumps({"n": n, "other": True})})
    run_pipeline(
        planned(f"""
            CREATE TABLE t (n BIGINT, id TEXT METADATA FROM 'id')
            WITH (connector = 'redis', type = 'source', address = '{redis.address}', stream = '{stream}',
                  format = 'json', 'source.offset' = 'earliest', 'source.bounded' = 'true');
            CREATE TABLE sums (k TEXT, n BIGINT)
            WITH (connector = 'redis', type = 'sink', address = '{redis.address}', format = 'json', target = 'hash',
                  'target.key_prefix' = '{out}', 'target.field_column' = 'k');
            INSERT INTO sums SELECT id AS k, n * 2 AS n FROM t;
        """)
    )
    assert [json.loads(redis.client.hget(out, id_))["n"] for id_, _ in redis.client.xrange(stream)] == [
        2 * n for n in range(10)
    ]


# ---- Lookups ---------------------------------------------------------------------------------------------------------


def looked_up(redis: Server, folder: Path, columns: str, select: str, **options: str) -> list[Any]:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "a.json").write_text('{"tail": "a", "year": 1}\n{"tail": "b", "year": 2}\n{"tail": null}\n')
    written = "".join(f", '{name}' = '{value}'" for name, value in options.items())
    text = f"""
        CREATE TABLE flights (tail TEXT, year BIGINT)
        WITH (connector = 'filesystem', path = '{folder / "in"}', format = 'json');
        CREATE TEMPORARY TABLE planes ({columns})
        WITH (connector = 'redis', address = '{redis.address}', format = 'json'{written});
        CREATE TABLE out WITH (connector = 'filesystem', path = '{folder / "out"}', format = 'json');
        INSERT INTO out {select};
    """
    run_pipeline(planned(text))
    return shown(folder)


def test_rows_look_up_objects(redis: Server, tmp_path: Path) -> None:
    prefix = redis.name()
    redis.client.set(f"{prefix}a", '{"maker": "Airbus", "seats": 100, "more": []}')
    join = "SELECT f.tail, p.maker, p.seats FROM flights f {} planes p ON f.tail = p.tail"
    columns, options = "tail TEXT PRIMARY KEY, maker TEXT, seats BIGINT", {"lookup.key_prefix": prefix}
    found = looked_up(redis, tmp_path, columns, join.format("LEFT JOIN"), **options)
    assert found == [
        {"tail": "a", "maker": "Airbus", "seats": 100},
        {"tail": "b", "maker": None, "seats": None},
        {"tail": None, "maker": None, "seats": None},
    ]


def test_the_key_is_a_column_and_metadata(redis: Server, tmp_path: Path) -> None:
    """As in Arroyo."""
    key = redis.name()
    redis.client.set(key, '{"maker": "Airbus"}')
    join = f"JOIN planes p ON concat('{key}', left(f.tail, 0)) = p.k WHERE f.year > 0"
    select = f"SELECT p.k, p.maker FROM flights f {join}"
    found = looked_up(redis, tmp_path, "k TEXT METADATA FROM 'key', maker TEXT", select)
    assert found == [{"k": key, "maker": "Airbus"}] * 2


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("?", "the value is not JSON"),
        ('{"seats": "a"}', "column 'seats'"),
        ({"a": "b"}, "is a hash: what"),
    ],
)
def test_values_that_cannot_be_read(redis: Server, tmp_path: Path, value: Any, why: str) -> None:
    prefix = redis.name()
    redis.client.set(f"{prefix}a", value) if isinstance(value, str) else redis.client.hset(f"{prefix}a", mapping=value)
    select = "SELECT p.seats FROM flights f JOIN planes p ON f.tail = p.tail"
    with pytest.raises(Exception, match=why):
        looked_up(redis, tmp_path, "tail TEXT PRIMARY KEY, seats INT", select, **{"lookup.key_prefix": prefix})


@pytest.mark.parametrize(
    ("columns", "on", "why"),
    [
        ("tail TEXT, maker TEXT", "f.tail = p.tail", "name its columns, and the one with the key"),
        ("tail TEXT PRIMARY KEY, maker TEXT", "f.tail = p.maker", "'maker' is no part of the key"),
        ("tail TEXT PRIMARY KEY, maker TEXT", "f.year = p.tail", "keys are texts, and 'tail' is compared with int64"),
        ("tail BIGINT PRIMARY KEY, maker TEXT", "f.tail = p.tail", "'tail' is a part of the key, which is text"),
        ("tail TEXT METADATA FROM 'id', maker TEXT", "f.tail = p.tail", "leave out METADATA FROM"),
    ],
)
def test_lookups_that_do_not_fit(redis: Server, tmp_path: Path, columns: str, on: str, why: str) -> None:
    with pytest.raises(Exception, match=why):
        looked_up(redis, tmp_path, columns, f"SELECT p.maker FROM flights f JOIN planes p ON {on}")


# ---- Kills -----------------------------------------------------------------------------------------------------------


class KilledRedis:
    """A pipeline from a stream to another one, its engines, and its input."""

    def __init__(self, redis: Server, folder: Path) -> None:
        seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
        print(f"KILL_SEED={seed} KILLS={KILLS}")
        self._random, self._redis, self._folder = random.Random(seed), redis, folder
        self.input, self.output, self.rows = redis.name(), redis.name(), 0
        self._description = {
            "name": redis.name(),
            "source": {
                **{"type": "redis", "address": redis.address, "streams": [self.input, f"{self.input}2"]},
                **{"offset": "earliest", "types": {"n": "int64"}},
            },
            "sinks": [{"type": "redis", "address": redis.address, "target": "stream", "key_prefix": self.output}],
            "checkpoints": {"place": str(folder / "checkpoints"), "every": 0.02},
        }

    def add(self) -> None:
        with self._redis.client.pipeline(transaction=False) as some:
            for n in range(self.rows, self.rows + 500):
                some.xadd(self.input if n % 2 else f"{self.input}2", {"value": json.dumps({"n": n})})
            some.execute()
        self.rows += 500

    def found(self) -> list[int]:
        return sorted(json.loads(fields["value"])["n"] for _, fields in self._redis.client.xrange(self.output))

    def _engine(self, moment: str, is_first: bool) -> subprocess.Popen[str]:
        path = self._folder / "pipeline.json"
        path.write_text(json.dumps(self._description | {"parallelism": self._random.randint(1, 3)}))
        command = [sys.executable, str(CHILD), str(path), moment, str(EPOCHS), *([] if is_first else ["--resume"])]
        with open(self._folder / "errors", "w") as stderr:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def _errors(self) -> str:
        return (self._folder / "errors").read_text()

    def kill(self, moment: str, is_first: bool, disturb: bool) -> None:
        """Lets an engine run until it is killed. disturb: the server is killed, too."""
        self.add()
        with self._engine(moment, is_first) as process:
            assert process.stdout is not None
            for epochs, line in enumerate(process.stdout, 1):
                assert line == "epoch\n", self._errors()
                self.add()
                if epochs == 1 and disturb:
                    self._redis.kill()
                    self._redis.start()
                    self.add()
                if moment == "any" and epochs == EPOCHS:
                    process.kill()
            assert process.wait(120) == -signal.SIGKILL, self._errors()

    def run(self) -> None:
        for number in range(KILLS):
            self.kill(MOMENTS[number % len(MOMENTS)], is_first=not number, disturb=number % 2 == 1)
            found = self.found()
            assert len(found) == len(set(found)), "rows came twice"
        self.add()
        with ended(self._engine("none", is_first=False)) as process:
            until(lambda: len(self.found()) >= self.rows or process.poll() is not None, "all rows")
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, self._errors()
        assert output.splitlines()[-1] == "resumable"
        assert self.found() == list(range(self.rows))


def test_engines_and_servers_that_are_killed(redis: Server, tmp_path: Path) -> None:
    KilledRedis(redis, tmp_path).run()


def test_descriptions_are_those_of_sql(redis: Server) -> None:
    pipeline = planned(f"""
        CREATE TABLE t (n BIGINT) WITH (connector = 'redis', type = 'source', address = '{redis.address}',
            username = 'me', password = 'secret', stream = 'a,b', format = 'json');
        CREATE TABLE o (n BIGINT) WITH (connector = 'redis', type = 'sink', address = '{redis.address}',
            target = 'list', 'target.key_prefix' = 'p', 'target.max_length' = '5', 'target.operation' = 'prepend');
        INSERT INTO o SELECT n FROM t;
    """)
    assert "secret" not in repr(pipeline)
    told = described(pipeline)
    assert (told["source"]["streams"], told["sinks"][0]["max_length"]) == (["a", "b"], 5)
