"""A table of PostgreSQL that changes, and another one that is kept in step with it: `make cdc-demo`.

A server is started on this machine, with a table of 20,000 customers. The pipeline is query.sql, with a Python
function: it reads the table and then its changes out of the server's log, and puts them by their key into a table of
another database. Meanwhile customers come, change and go; the pipeline is killed (SIGKILL) twice, and resumed. The last
line says whether the tables are in step; exit status 1 if they are not.

Guarantees: when it ends, and after Ctrl-C or SIGTERM, no process and no folder of it is left.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg

from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "scripts"))

import postgresql  # noqa: E402

CUSTOMERS = 20_000
KILLS = 2
EPOCHS = 2  # before each kill
PATIENCE = 300.0  # seconds: longer than anything takes here, on any machine
TABLES = {"shop": "customers", "search": "found_by"}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="arroyo-udf-cdc-") as name, postgresql.server() as server:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("CREATE DATABASE shop")
            connection.execute("CREATE DATABASE search")
        os.environ |= {
            "SHOP": server.replace("/postgres?", "/shop?"),
            "SEARCH": server.replace("/postgres?", "/search?"),
        }
        with psycopg.connect(os.environ["SHOP"], autocommit=True) as shop:
            shop.execute("CREATE TABLE customers (id bigint PRIMARY KEY, name text, phone text)")
            shop.execute(
                "INSERT INTO customers SELECT n, 'customer ' || n, '+49 ' || n || '-' || mod(n, 7) "
                "FROM generate_series(1, %s::bigint) AS n",
                [CUSTOMERS],
            )
        say(f"{CUSTOMERS:,} customers are in a table")
        run(Path(name) / "state")
        return compare()


def run(state: Path) -> None:
    """Kills the pipeline, and lets the last one come after all changes."""
    resume: tuple[str, ...] = ()
    with changing() as changes:
        for kill in range(1, KILLS + 1):
            wanted = epochs(state) + EPOCHS
            with started(state, resume) as pipeline:
                wait(partial(has_epoch, state, wanted), pipeline)
                pipeline.kill()
            say(f"kill {kill}: after epoch {epochs(state)}")
            resume = ("--resume",)
    say(f"{changes[0]:,} changes were made")
    with started(state, resume) as pipeline:
        wait(lambda: rows_of("shop") == rows_of("search"), pipeline)
        pipeline.terminate()
        if pipeline.wait(PATIENCE) != 0:
            sys.exit("the pipeline has failed")


def started(state: Path, resume: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """The query as a description, because that says how often there are checkpoints."""
    pipeline = Script.read(str(HERE / "query.sql"), [str(HERE / "functions.py")]).pipeline
    checkpoints = Checkpoints(place=str(state), every=0.2)
    description = state.with_name("pipeline.json")
    description.write_text(json.dumps(described(pipeline.model_copy(update={"checkpoints": checkpoints}))))
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", str(description)]
    return subprocess.Popen([*command, *resume])


@contextmanager
def changing() -> Iterator[list[int]]:
    """Customers come, change, move and go while the block runs. Yields a list with the number of changes."""
    stop, made = threading.Event(), [0]

    def change() -> None:
        chosen = random.Random(1)
        with psycopg.connect(os.environ["SHOP"], autocommit=True) as shop:
            new = CUSTOMERS
            while not stop.wait(0.002):
                new += 1
                some = chosen.randrange(1, new)
                shop.execute("INSERT INTO customers VALUES (%s, 'new', %s)", [new, f"030-{new}"])
                shop.execute("UPDATE customers SET phone = phone || '9' WHERE id = %s", [some])
                shop.execute("DELETE FROM customers WHERE id = %s", [chosen.randrange(1, new)])
                shop.execute("UPDATE customers SET id = -id WHERE id = %s", [chosen.randrange(1, new)])
                made[0] += 4

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield made
    finally:
        stop.set()
        thread.join()


def wait(condition: Callable[[], bool], pipeline: subprocess.Popen[bytes]) -> None:
    late = time.monotonic() + PATIENCE
    while not condition():
        if pipeline.poll() is not None or time.monotonic() > late:
            pipeline.kill()
            sys.exit("the pipeline ended too early, or never came there")
        time.sleep(0.02)  # between two looks


def has_epoch(state: Path, number: int) -> bool:
    return epochs(state) >= number


def epochs(state: Path) -> int:
    """The number of the latest; 0: there is none."""
    return max((int(path.stem) for path in (state / "epochs").glob("*.json")), default=0)


def rows_of(database: str) -> dict[int, tuple[str, str]]:
    """With the digits of telephone numbers."""
    column = "regexp_replace(phone, '\\D', '', 'g')" if database == "shop" else "digits"
    with psycopg.connect(os.environ[database.upper()]) as connection:
        rows = connection.execute(f"SELECT id, name, {column} FROM {TABLES[database]}").fetchall()
    return {id_: (name, digits) for id_, name, digits in rows}


def compare() -> int:
    expected, found = rows_of("shop"), rows_of("search")
    say(f"{len(found):,} customers are in the other table")
    say("the tables are in step" if found == expected else "THE TABLES DIFFER")
    return 0 if found == expected else 1


def say(text: str) -> None:
    print(f"cdc-demo: {text}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
