"""The calls of Flink's REST API that a scheduler needs.

    async with FlinkApi("http://127.0.0.1:8081") as flink:
        await flink.run(await flink.jar(Path("flink-python-2.3.0.jar")), submission)
        (job,) = await flink.jobs()

Guarantees: an answer is checked before it is believed, and an error names the call. `FlinkAway` means that the call may
have been carried out or not; `FlinkRefused` that Flink has answered with an error. An unknown job is None.
Assumes: Flink 2.3. The states of all jobs are those of now; what is told of one job may be as old as
`web.refresh-interval` (3 s), also its end. After an error of `run` the job may run all the same: ask for it before it
is submitted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import httpx
import pydantic

from ....errors import ArroyoUdfError

_TIMEOUT = 5.0
_SUBMIT_TIMEOUT = 120.0
"""Seconds: Flink answers when the job's program has ended, which starts a Python process."""
_NO_LEADER = 503
"""As while a JobManager starts."""
_AWAY = (502, _NO_LEADER, 504)

_Checked = TypeVar("_Checked", bound=pydantic.BaseModel)
FlinkState = Literal[
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
]
ENDED = ("FAILED", "CANCELED", "FINISHED")


class FlinkAway(ArroyoUdfError):
    """Flink does not answer. is_unsent: it has not got the call; else it may have done what it was asked for."""

    def __init__(self, message: str, is_unsent: bool) -> None:
        super().__init__(message)
        self.is_unsent = is_unsent


class FlinkRefused(ArroyoUdfError):
    """Flink has answered with an error. details: with its stack."""

    def __init__(self, call: str, status: int, details: str) -> None:
        super().__init__(f"{call} was answered with {status}: {_reason(details)}")
        self.status, self.details = status, details


class _Known(pydantic.BaseModel):
    """Fields that are not known here are left out."""

    model_config = pydantic.ConfigDict(frozen=True)


class TaskCounts(_Known):
    """Of all vertices and their subtasks, by state."""

    total: int
    running: int
    finished: int


class ObservedJob(_Known):
    id: str = pydantic.Field(alias="jid")
    state: FlinkState
    tasks: TaskCounts

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def runs_whole(self) -> bool:
        """Whether all tasks have started. Flink calls a job RUNNING while it waits for slots or for Python."""
        counts = self.tasks
        return self.state == "RUNNING" and 0 < counts.total == counts.running + counts.finished


class TakenSnapshot(_Known):
    """A checkpoint or a savepoint that is complete. Times are milliseconds, at: since 1970."""

    id: int
    path: str = pydantic.Field(alias="external_path")
    bytes: int = pydantic.Field(alias="state_size", ge=0)
    duration: int = pydantic.Field(alias="end_to_end_duration", ge=0)
    at: int = pydantic.Field(alias="latest_ack_timestamp", ge=0)


class LatestSnapshots(_Known):
    completed: TakenSnapshot | None
    savepoint: TakenSnapshot | None


NO_SNAPSHOTS = LatestSnapshots(completed=None, savepoint=None)


class FlinkException(_Known):
    name: str = pydantic.Field(alias="exceptionName")
    stack: str = pydantic.Field(alias="stacktrace")
    timestamp: int


class StopResult(_Known):
    """Of a stop with a savepoint. location: of the savepoint. failure: why there is none. Both None: it goes on."""

    location: str | None = None
    failure: str | None = None


class FlinkApi:
    """url: of the JobManager, as in `rest.address` and `rest.port`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._client = httpx.AsyncClient(base_url=self.url, timeout=_TIMEOUT, trust_env=False)

    async def close(self) -> None:
        await self._client.aclose()

    async def jobs(self) -> Sequence[ObservedJob]:
        """All that Flink knows. Those that have ended stay for an hour, or until the JobManager ends."""
        return (await self._ask(_Jobs, "GET", "/jobs/overview")).jobs

    async def state(self, job: str) -> FlinkState | None:
        """As `exceptions` and `snapshots` know it. None: the job is not known: `.../status` would answer with 500."""
        try:
            return (await self._ask(_Details, "GET", f"/jobs/{job}")).state
        except FlinkRefused as error:
            if error.status == 404:
                return None
            raise

    async def exceptions(self, job: str) -> Sequence[FlinkException]:
        """Newest first. Empty, too, for a job that could not be restored."""
        entries = (await self._ask(_Exceptions, "GET", f"/jobs/{job}/exceptions")).history.entries
        return sorted(entries, key=lambda entry: entry.timestamp, reverse=True)

    async def snapshots(self, job: str) -> LatestSnapshots:
        return (await self._ask(_Checkpoints, "GET", f"/jobs/{job}/checkpoints")).latest

    async def jar(self, file: Path) -> str:
        """The id of an uploaded jar: it is uploaded if none of its name is there."""
        listed = await self._ask(_Jars, "GET", "/jars")
        for entry in listed.files:
            if entry.name == file.name:
                return entry.id
        try:
            content = file.read_bytes()
        except OSError as error:
            raise FlinkRefused("flink.python_jar", 0, f"{file}: {error.strerror}: name the flink-python jar") from error
        files = {"jarfile": (file.name, content, "application/java-archive")}
        uploaded = await self._ask(_Uploaded, "POST", "/jars/upload", files=files, timeout=_SUBMIT_TIMEOUT)
        return uploaded.filename.rpartition("/")[2]

    async def run(self, jar: str, submission: Mapping[str, Any]) -> None:
        await self._call("POST", f"/jars/{jar}/run", json=submission, timeout=_SUBMIT_TIMEOUT)

    async def parallelism(self, job: str) -> int:
        """With which its tasks run; of those with another one, the most."""
        vertices = (await self._ask(_Details, "GET", f"/jobs/{job}")).vertices
        return max((vertex.parallelism for vertex in vertices), default=0)

    async def rescale(self, job: str, parallelism: int) -> None:
        """From the latest checkpoint, soon. If Flink has not as many slots, it takes those that there are."""
        path = f"/jobs/{job}/resource-requirements"
        vertices = (await self._ask(_Requirements, "GET", path)).root
        limits = {"parallelism": {"lowerBound": 1, "upperBound": parallelism}}
        await self._call("PUT", path, json=dict.fromkeys(vertices, limits))

    async def stop(self, job: str, folder: str, drain: bool) -> str:
        """Asks for a savepoint after which the job ends. Returns the number of the request."""
        asked = {"targetDirectory": folder, "drain": drain}
        return (await self._ask(_Triggered, "POST", f"/jobs/{job}/stop", json=asked)).request

    async def stopped(self, job: str, request: str) -> StopResult:
        found = await self._ask(_Operation, "GET", f"/jobs/{job}/savepoints/{request}")
        if found.status.id != "COMPLETED" or found.operation is None:
            return StopResult()
        cause = found.operation.failure
        return StopResult(location=found.operation.location, failure=None if cause is None else _text_of(cause))

    async def cancel(self, job: str) -> None:
        await self._call("PATCH", f"/jobs/{job}?mode=cancel")

    async def _ask(self, kind: type[_Checked], method: str, path: str, **options: Any) -> _Checked:
        answer = await self._call(method, path, **options)
        try:
            return kind.model_validate_json(answer.content)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise FlinkRefused(
                f"{method} {self.url}{path}",
                answer.status_code,
                f"{where or 'the answer'}: {first['msg']}: set flink.url to the REST API of Flink 2.3",
            ) from None

    async def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        call = f"{method} {self.url}{path}"
        try:
            answer = await self._client.request(method, path, **options)
        except httpx.HTTPError as error:
            is_unsent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
            raise FlinkAway(f"{call} is not answered ({str(error) or type(error).__name__})", is_unsent) from error
        if answer.status_code in _AWAY:
            is_unsent = answer.status_code == _NO_LEADER
            raise FlinkAway(f"{call} is answered with {answer.status_code}: no JobManager leads", is_unsent)
        if not answer.is_success:
            raise FlinkRefused(call, answer.status_code, _errors(answer))
        return answer


class _Vertex(_Known):
    parallelism: int


class _Details(_Known):
    state: FlinkState
    vertices: list[_Vertex]


class _Requirements(pydantic.RootModel[dict[str, Any]]):
    """Of each vertex, by its id."""


class _Jobs(_Known):
    jobs: list[ObservedJob]


class _History(_Known):
    entries: list[FlinkException]


class _Exceptions(_Known):
    history: _History = pydantic.Field(alias="exceptionHistory")


class _Checkpoints(_Known):
    latest: LatestSnapshots


class _Jar(_Known):
    id: str
    name: str


class _Jars(_Known):
    files: list[_Jar]


class _Uploaded(_Known):
    filename: str


class _Triggered(_Known):
    request: str = pydantic.Field(alias="request-id")


class _Status(_Known):
    id: str


class _Ended(_Known):
    location: str | None = None
    failure: dict[str, Any] | None = pydantic.Field(default=None, alias="failure-cause")


class _Operation(_Known):
    status: _Status
    operation: _Ended | None = None


def _errors(answer: httpx.Response) -> str:
    try:
        return "\n".join(map(str, answer.json()["errors"]))
    except (ValueError, KeyError, TypeError):
        return answer.text


def _text_of(cause: Mapping[str, Any]) -> str:
    return str(cause.get("stack-trace") or cause.get("class") or cause)


def _reason(details: str) -> str:
    """The innermost cause of a Java stack, in a line."""
    lines = [line for line in details.splitlines() if line and not line[0].isspace()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or ["no reason is given"])[-1 if causes else 0].removeprefix("Caused by: ")
