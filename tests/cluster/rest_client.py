"""A client of the REST API of a program, and waiting for what it tells."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from programs import Program
from waiting import until


class Client:
    """Of a program with the API."""

    def __init__(self, program: Program) -> None:
        self.address = program.address

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
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
