"""What can be set, and where each value came from.

    settings = configured(Path("cluster.toml"), {"api": {"http_port": 5116}})

A later source wins: defaults, the TOML file, the environment (`ARROYO_UDF__API__HTTP_PORT=5116`), flags. Keys may be
written with `-` or `_`. The variable SCHEDULER is the same as ARROYO_UDF__CONTROLLER__SCHEDULER.

Guarantees: an unknown key is refused by name; secrets are not shown.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from ..engine.connectors.described import Bytes, Seconds
from ..engine.connectors.location import location_of
from ..errors import InvalidArgument

PREFIX = "ARROYO_UDF__"
MOST_SLICES = 128
"""Of a job on Flink."""
Count = Annotated[int, pydantic.Field(ge=1, le=1 << 31)]


class Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class DatabaseSettings(Section):
    url: pydantic.SecretStr | None = None
    """sqlite:////folder/file or postgresql://user@host/name; default: cluster.sqlite in the data folder."""
    key_file: Path | None = None
    """The key of the secrets in the database; default: secrets.key in the data folder. Programs with the same database
    need the same file."""


class ApiSettings(Section):
    bind_address: str = "127.0.0.1"
    """Where the API listens. Any address but loopback needs `files.roots`, and TLS or `insecure`."""
    http_port: Annotated[int, pydantic.Field(ge=0, le=65535)] = 5115
    """0: a free one."""
    token: Annotated[pydantic.SecretStr, pydantic.Field(min_length=1)] | None = None
    """One more token of an admin, beside those in the data folder."""
    no_token: bool = False
    """Ask for no token: then every user of this machine runs code as the cluster's user. On loopback only."""
    session_time: Seconds = 604_800.0
    """How long a browser stays logged in."""
    audit_bytes: Annotated[Bytes, pydantic.Field(ge=1 << 16)] = 64 << 20
    """How much is kept of the audit log, `audit.jsonl` in the data folder."""
    tls_cert: Path | None = None
    """The file of the certificate, for https."""
    tls_key: Path | None = None
    """The file of the certificate's key."""
    insecure: bool = False
    """Listen on other addresses without TLS: the token can then be read on the way."""
    hosts: tuple[str, ...] = ()
    """Names by which clients may call the API, besides localhost and `bind_address`."""
    origins: tuple[Annotated[str, pydantic.Field(pattern=r"^https?://[^/\s]+$")], ...] = ()
    """Origins of web pages elsewhere that may use the API, such as http://localhost:3000."""
    body_limit: Bytes = 16 << 20
    """The largest body of a request, in bytes."""


class ControllerSettings(Section):
    scheduler: Literal["embedded", "process", "flink", "kubernetes"] = "process"
    """Where pipelines run: each in a process of its own, or all in threads of the controller's, which needs less memory
    and starts faster, but a function that crashes ends all of them for a moment. `flink`: on a Flink cluster, unless a
    pipeline has the scheduler `local`, and so runs in a process. `kubernetes`: the same, with Flink on Kubernetes."""
    metrics_port: Annotated[int, pydantic.Field(ge=0, le=65535)] | None = None
    """The port of the controller's /metrics, /targets and /health, at `api.bind_address` and by the API's rules; 0: a
    free one; default: none."""


class WorkerSettings(Section):
    memory: Bytes | None = None
    """The most address space of a worker; default: no limit. Less than some GiB is too little for any pipeline."""
    cpu_time: Seconds | None = None
    """The most processor time of a worker, after which it is lost; default: no limit."""


class FlinkSettings(Section):
    url: Annotated[str, pydantic.Field(pattern=r"^https?://[^/\s]+$")] | None = None
    """The REST API of an Apache Flink cluster, such as http://127.0.0.1:8081: pipelines may then have the scheduler
    `flink`. Whoever reaches that API runs code there."""
    python_jar: Path | None = None
    """The file flink-python-2.3.0.jar of apache-flink. It is uploaded if Flink has no jar of this name."""
    runner: str | None = None
    """The path of engine/flink/runner.py of this package on Flink's machines."""
    slices: Annotated[int, pydantic.Field(ge=1, le=MOST_SLICES)] = 8
    """Into how many slices new jobs on Flink are cut. Their parallelism may be any number up to that."""

    @pydantic.model_validator(mode="after")
    def _is_whole(self) -> FlinkSettings:
        if self.url is not None and (self.python_jar is None or self.runner is None):
            raise ValueError("url needs python_jar and runner, too")
        return self


class KubernetesSettings(Section):
    """With `controller.scheduler = "kubernetes"`, jobs on Flink are resources of the Flink Kubernetes Operator."""

    namespace: str = "arroyo-udf"
    """Where the resources of jobs are, and nothing else that has their labels."""
    mode: Literal["application", "session"] = "application"
    """Each job in a Flink cluster of its own, or all in that of a FlinkDeployment that is there."""
    session: str | None = None
    """The name of that FlinkDeployment."""
    image: str | None = None
    """The image of Apache Flink with this package, as of deploy/flink. A session has its own."""
    service_account: str = "flink"
    """Of Flink's pods. A session has its own."""
    cpu: Annotated[float, pydantic.Field(gt=0)] = 1.0
    """The processors of each JobManager and TaskManager. A TaskManager has one slot. A session has its own."""
    memory: Annotated[str, pydantic.Field(pattern=r"^[1-9]\d*[mg]$")] = "2g"
    """The memory of each JobManager and TaskManager, in MiB (m) or GiB (g). A session has its own."""


class PipelineSettings(Section):
    checkpoint_interval: Annotated[Seconds, pydantic.Field(ge=1, le=86_400)] = 10.0
    """Seconds between two checkpoints, if the pipeline does not say otherwise: from one to a day."""
    retained_checkpoints: Annotated[int, pydantic.Field(ge=1)] = 3
    """How many checkpoints of a job are kept, to go back to one of them, if the query does not SET it."""
    retained_time: Seconds = 0.0
    """Checkpoints that are not older than so many seconds are kept, too. Each start reads what all of them say."""
    allowed_restarts: Annotated[int, pydantic.Field(ge=-1)] = 20
    """How often in a row a job is started again after it was lost; -1: without a limit."""
    healthy_duration: Seconds = 120.0
    """After this time in Running, restarts are counted from 0 again."""
    initial_backoff: Seconds = 0.5
    """The pause before the second restart in a row; doubled for each further one, half of it random. The first restart
    is at once."""
    max_backoff: Seconds = 60.0
    """The longest pause before a restart."""
    worker_startup_time: Seconds = 120.0
    """How long a generation may take to start."""
    worker_heartbeat_timeout: Seconds = 30.0
    """A worker that sends nothing for this time is killed."""
    stop_time: Seconds = 60.0
    """How long a stop may take before the job is killed."""
    drain_time: Seconds = 10.0
    """How long a stop waits for rows in flight and the last checkpoint."""


class MetricsSettings(Section):
    pushgateway: str | None = None
    """The URL of a Prometheus Pushgateway, to which controller and workers send their metrics."""
    push_interval: Seconds = 15.0
    """Seconds from one time to the next."""


class TracesSettings(Section):
    endpoint: str | None = None
    """Where OpenTelemetry's spans are sent, as OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces. Needs the extra
    `traces`."""


class FileSettings(Section):
    roots: tuple[Path, ...] = ()
    """Folders that pipelines may read and write; default: all, which is allowed on loopback only."""


class LimitSettings(Section):
    """What the users of one cluster may have together. A request beyond it is answered with 409, or with 429 if it may
    pass later."""

    pipelines: Count = 10_000
    """Pipelines, without previews."""
    parallelism: Count = 4096
    """Slices of all jobs that run, or are to run."""
    previews: Count = 20
    """Previews that run."""
    previews_kept: Count = 100
    """Previews that have ended; the oldest ones go, and all after an hour."""
    streams: Count = 1000
    """Open streams of rows, of each API."""
    builds: Count = 2
    """Functions that are built at once for each caller, and half of those that are built for all."""
    plans: Count = 2
    """The same, of queries that are planned, and of replays."""
    queued: Count = 50
    """Builds of each caller that wait, and plans."""
    build_time: Seconds = 120.0
    """How long a function may be built."""
    plan_time: Seconds = 120.0
    """How long a query may be planned, or dead letters replayed."""
    build_memory: Annotated[Bytes, pydantic.Field(ge=1 << 30)] = 4 << 30
    """The address space of each process that builds or plans."""
    preview_bytes: Annotated[Bytes, pydantic.Field(ge=1 << 20)] = 16 << 20
    """The rows that are kept of each pipeline that shows some. Older ones go."""
    log_entries: Annotated[Count, pydantic.Field(ge=100)] = 1000
    """Entries that are kept of each job's log."""
    log_entry_bytes: Annotated[Bytes, pydantic.Field(ge=1 << 10)] = 64 << 10
    """The message of an entry, and its details. Of a longer one, begin and end are kept."""
    numbers_bytes: Annotated[Bytes, pydantic.Field(ge=1 << 16)] = 4 << 20
    """The numbers that are kept of each job, for graphs of some minutes."""


class LoggingSettings(Section):
    format: Literal["text", "json"] = "text"
    """The format of log lines, on standard error."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""


def _place(text: str) -> str:
    try:
        return str(location_of(text))
    except InvalidArgument as error:
        raise ValueError(str(error)) from None


PlaceUrl = Annotated[str, pydantic.AfterValidator(_place)]


def _data() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "arroyo-udf"


class Settings(BaseSettings):
    model_config = SettingsConfigDict(extra="forbid", frozen=True, env_prefix=PREFIX, env_nested_delimiter="__")

    data: Path = pydantic.Field(default_factory=_data)
    """The folder of everything that the cluster keeps. A new one can be read by its user only."""
    checkpoint_url: PlaceUrl | None = None
    """Where the state of new jobs is kept: a folder or an object store's URL; default: `checkpoints` in the data
    folder."""
    artifact_url: PlaceUrl | None = None
    """Where built functions are kept: a folder or an object store's URL; default: `artifacts` in the data folder."""
    database: DatabaseSettings = DatabaseSettings()
    api: ApiSettings = ApiSettings()
    controller: ControllerSettings = ControllerSettings()
    worker: WorkerSettings = WorkerSettings()
    flink: FlinkSettings = FlinkSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    pipeline: PipelineSettings = PipelineSettings()
    metrics: MetricsSettings = MetricsSettings()
    traces: TracesSettings = TracesSettings()
    files: FileSettings = FileSettings()
    limits: LimitSettings = LimitSettings()
    logging: LoggingSettings = LoggingSettings()

    @property
    def database_url(self) -> str:
        own = self.database.url
        return f"sqlite:///{self.data.absolute() / 'cluster.sqlite'}" if own is None else own.get_secret_value()

    @property
    def knows_flink(self) -> bool:
        return self.flink.url is not None or self.controller.scheduler == "kubernetes"

    @property
    def key_file(self) -> Path:
        return self.database.key_file or self.data.absolute() / "secrets.key"

    @property
    def checkpoints(self) -> str:
        return self.checkpoint_url or str(self.data.absolute() / "checkpoints")

    @property
    def artifacts(self) -> str:
        return self.artifact_url or str(self.data.absolute() / "artifacts")

    @property
    def functions(self) -> Path:
        """The folder in which functions are built, and to which they are copied."""
        return self.data.absolute() / "functions"


@dataclass(frozen=True)
class Configured:
    """sources: what each source says, by its name, the later ones win."""

    settings: Settings
    sources: Mapping[str, Mapping[str, Any]]

    def lines(self) -> Iterator[tuple[str, str, str]]:
        """Each key with its value and where it came from."""
        for key, value in _flat(self.settings.model_dump(mode="json")):
            places = [name for name, values in self.sources.items() if key in dict(_flat(values))]
            yield key, _shown(value), places[-1] if places else "default"


def configured(file: Path | None, flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Configured:
    """flags: as the settings, of those that were given. Raises InvalidArgument with all that is wrong."""
    sources: dict[str, Mapping[str, Any]] = {}
    if file is not None:
        sources[str(file)] = _underscored(_read(file))
    sources["environment"] = _of_environment(environment)
    sources["flags"] = flags
    merged: dict[str, Any] = {}
    for source in sources.values():
        _merge(merged, source)
    try:
        return Configured(_Alone(**merged), sources)
    except pydantic.ValidationError as error:
        texts = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
        raise InvalidArgument("the configuration is wrong: " + "; ".join(texts)) from None


class _Alone(Settings):
    """From the values that are given, which are those of all sources."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def _of_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    variables = {name: value for name, value in environment.items() if name.upper().startswith(PREFIX)}
    if scheduler := environment.get("SCHEDULER"):
        variables = {f"{PREFIX}CONTROLLER__SCHEDULER": scheduler} | variables

    class Source(EnvSettingsSource):
        def _load_env_vars(self) -> Mapping[str, str | None]:
            return {name.lower(): value for name, value in variables.items()}

    return dict(Source(Settings)())


def _read(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidArgument(f"{file}: there is no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidArgument(f"{file}: {error}") from None


def _underscored(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name.replace("-", "_"): _underscored(item) for name, item in value.items()}
    return value


def _merge(into: dict[str, Any], settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            _merge(into.setdefault(name, {}), value)
        else:
            into[name] = value


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return ", ".join(map(str, value)) or "-" if isinstance(value, list) else str(value)
