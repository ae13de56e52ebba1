"""Programs of a cluster as processes, and a query whose rows show what was lost."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from asgi_client import bearer
from waiting import until

TWICE = """
import asyncio

from arroyo_udf_plugin import udf

@udf
async def twice(value: int) -> int:
    await asyncio.sleep(0.001)
    return 2 * value
"""
SQL = """
CREATE TABLE counts (counter BIGINT) WITH (connector = 'impulse', event_rate = '2000');
CREATE TABLE out (counter BIGINT, double BIGINT) WITH (
    connector = 'filesystem', path = '{out}', format = 'parquet', type = 'sink'
);
INSERT INTO out SELECT counter, twice(counter) AS double FROM counts;
"""


def parts(folder: Path) -> list[str]:
    """The files that the query has written below `folder`: one for each checkpoint with rows."""
    return [str(path) for path in (folder / "out").glob("part-*.parquet")]


def doubles(folder: Path) -> list[tuple[int, ...]]:
    """What the query has written below `folder`, in order."""
    found = parts(folder)
    table = ds.dataset(found).to_table() if found else None
    return [] if table is None else sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def expected(rows: int) -> list[tuple[int, ...]]:
    return [(n, 2 * n) for n in range(rows)]


class Program:
    """folder: of its data. address: what it has said when it was ready. said: before that."""

    def __init__(self, name: str, folder: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.name, self.folder = name, Path(folder)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (until it has ended; not a pipe, because nobody reads on)
        command = [sys.executable, "-m", "arroyo_udf_plugin.cli", name, "--data", folder, *arguments]
        self.process = subprocess.Popen(command, stderr=self._log, env={**os.environ, **(environment or {})})
        ready = re.compile(f"^arroyo-udf {name}: (.*)$", re.MULTILINE)
        until(lambda: ready.search(self.said) is not None or self.process.poll() is not None, f"{name} to be ready")
        found = ready.search(self.said)
        assert found is not None, f"{name} did not start: {self.said}"
        self.address = found[1]

    @property
    def said(self) -> str:
        if not self._log.closed:
            self._said = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0).decode()
        return self._said

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        status = self.process.wait(60)
        self._said = self.said
        self._log.close()
        return status


class Client:
    """Of the REST API of a program, with the token of its data folder."""

    def __init__(self, program: Program) -> None:
        self.address, self._headers = program.address, bearer(program.folder)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Raises urllib.error.HTTPError, OSError, http.client.HTTPException."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **self._headers}
        request = urllib.request.Request(f"{self.address}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def job(self, pipeline: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/pipelines/{pipeline}/jobs")["data"][0]
        return found

    def await_state(self, pipeline: str, state: str, generation: int = 0) -> dict[str, Any]:
        """Of this generation at least."""

        def reached() -> bool:
            job = self.job(pipeline)
            return job["state"] == state and job["run_id"] >= generation

        try:
            until(reached, f"{state} in generation {generation}")
        except AssertionError as error:
            job = self.job(pipeline)
            log = self.ask("GET", f"/pipelines/{pipeline}/jobs/{job['id']}/errors")["data"]
            raise AssertionError(f"{error}; {job}; {log}") from None
        return self.job(pipeline)
