"""The example user_name, in Python and in Rust, against a real server: its results equal a join, errors of the server
are errors of rows, and its connections end with the runtime. The server leaves nothing behind, even after a kill."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import pyarrow as pa
import pytest
from waiting import drained, until

import postgresql as postgresql_server
from arroyo_udf_plugin import Function, UserCodeError, build, load

pytestmark = pytest.mark.server
T = TypeVar("T")
USERS = 100
SCRIPTS = Path(postgresql_server.__file__).parent

BLOCKED = """
import os, sys
sys.path.append(sys.argv[1])
import postgresql
with postgresql.server() as address:
    print(address, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def users(postgresql: str) -> Iterator[str]:
    """The address of the database, with a table of users 0 ... USERS - 1; user 7 has no name."""

    async def fill(connection: Any) -> None:
        await connection.execute("CREATE TABLE users (id bigint PRIMARY KEY, name text)")
        records = [(i, None if i == 7 else f"Üser {i}") for i in range(USERS)]
        await connection.copy_records_to_table("users", records=records)

    asyncio.run(on(postgresql, fill))
    yield postgresql
    asyncio.run(on(postgresql, lambda connection: connection.execute("DROP TABLE users")))


@pytest.fixture(scope="module", params=["py", "rs"])
def plugin(request: pytest.FixtureRequest, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example in one of its languages, with the crates of its lock file."""
    return built(examples, request.param, tmp_path_factory.mktemp("user_name"))


def built(examples: Path, language: str, folder: Path) -> Path:
    return build(examples / "user_name" / f"udf.{language}", folder / f"{language}.so", locked=True)


@pytest.fixture
def user_name(users: str, plugin: Path, monkeypatch: pytest.MonkeyPatch) -> Function:
    monkeypatch.setenv("USERS_DB", users)
    return load(plugin).functions["user_name"]


async def on(address: str, do: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """The result of `do` on a connection of the test's own."""
    connection = await asyncpg.connect(address, server_settings={"application_name": "test"})
    try:
        return await do(connection)
    finally:
        await connection.close()


def connections(address: str) -> int:
    """The number of the server's connections, without the tests' own."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'test'"
    return int(asyncio.run(on(address, lambda connection: connection.fetchval(query))))


def test_equal_to_a_join(user_name: Function) -> None:
    ids = [None if i % 50 == 9 else i * 31 % (USERS + 20) for i in range(2_000)]
    with user_name.start() as runtime:
        runtime.send(0, pa.array(ids, pa.int64()))
        results = drained(runtime, len(ids))
        runtime.stop()
    names = {i: f"Üser {i}" for i in range(USERS) if i != 7}
    assert results["value"].to_pylist() == [None if i is None else names.get(i, f"Unknown-{i}") for i in ids]
    assert results["id"].to_pylist() == list(range(len(ids)))
    assert set(results["outcome"].to_pylist()) == {0}


def test_equal_output_in_both_languages(users: str, examples: Path, tmp_path: Path) -> None:
    """`arroyo-udf run` over a file of ids, null among them, writes the same bytes."""
    ids = tmp_path / "ids.csv"
    ids.write_text("id\n" + "".join("NA\n" if i % 50 == 9 else f"{i * 31 % (USERS + 20)}\n" for i in range(2_000)))
    for language in ("py", "rs"):
        library, out = built(examples, language, tmp_path), tmp_path / f"{language}.csv"
        command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", str(library), str(ids), "--args", "id"]
        environment = os.environ | {"USERS_DB": users}
        done = subprocess.run([*command, "--out", str(out)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    written = (tmp_path / "rs.csv").read_bytes()
    assert written == (tmp_path / "py.csv").read_bytes()
    assert {b"Unknown-7", "Üser 8".encode(), b"Unknown-101"} <= {line.split(b",")[1] for line in written.splitlines()}


def test_connections_are_shared_and_closed(user_name: Function, users: str) -> None:
    """R12: all calls share the ten connections of one Context; after stop they end."""
    until(lambda: connections(users) == 0, "the server to forget those of the test before")
    with user_name.start() as runtime:
        runtime.send(0, pa.array(range(500), pa.int64()))
        drained(runtime, 500)
        assert 1 <= connections(users) <= 10
        runtime.stop()
        until(lambda: connections(users) == 0, "the connections to end")


def test_a_row_that_waits_for_a_lock_times_out_alone(user_name: Function, users: str) -> None:
    """R2, R6: the timeout cancels a query that the server does not answer; the connection can be used again."""

    async def locked(connection: Any) -> pa.Table:
        async with connection.transaction():
            await connection.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
            runtime.send(0, pa.array([1, 2], pa.int64()))
            return await asyncio.to_thread(drained, runtime, 2)

    with user_name.start(timeout=0.5) as runtime:
        results = asyncio.run(on(users, locked))
        assert results["outcome"].to_pylist() == [2, 2]
    with user_name.start() as runtime:
        runtime.send(0, pa.array([3], pa.int64()))
        assert drained(runtime, 1)["value"].to_pylist() == ["Üser 3"]
        runtime.stop()


def test_what_the_server_refuses_is_the_rows_error(user_name: Function, users: str) -> None:
    """Without the table, each row fails with the server's text; once it is back, rows succeed."""

    def rename(one: str, other: str) -> None:
        asyncio.run(on(users, lambda connection: connection.execute(f"ALTER TABLE {one} RENAME TO {other}")))

    with user_name.start() as runtime:
        rename("users", "elsewhere")
        runtime.send(0, pa.array([1, 2], pa.int64()))
        results = drained(runtime, 2)
        rename("elsewhere", "users")
        runtime.send(2, pa.array([1], pa.int64()))
        assert drained(runtime, 1)["value"].to_pylist() == ["Üser 1"]
        runtime.stop()
    assert results["outcome"].to_pylist() == [1, 1]
    assert all('relation "users" does not exist' in text for text in results["error"].to_pylist())


def test_no_address(user_name: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USERS_DB")
    with pytest.raises(UserCodeError, match="USERS_DB is not set: name the database"):
        user_name.start()


def test_the_server_ends_with_its_user() -> None:
    """A killed process leaves neither its server nor the folder."""
    command = [sys.executable, "-c", BLOCKED, str(SCRIPTS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as user:
        assert user.stdout is not None
        assert user.stderr is not None
        folder = Path(user.stdout.readline().strip().partition("host=")[2])
        server = os.pidfd_open(int((folder / "data" / "postmaster.pid").read_text().split()[0]))
        user.kill()
        assert user.stderr.read() == ""  # ends with the last process that holds it: the shell that cleans up
    has_ended = select.poll()
    has_ended.register(server)
    assert has_ended.poll(60_000)
    os.close(server)
    assert not folder.exists()


def test_no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a server and a way to download one, the text says how to get it."""
    monkeypatch.setattr(postgresql_server, "INSTALLED", tmp_path)
    monkeypatch.setattr(postgresql_server, "BUILD", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(postgresql_server.NoPostgresql, match=r"no apt-get to download one with: install the server"):
        postgresql_server.server().__enter__()
