"""The connectors: what a form needs to know of each, and how their configurations become options of CREATE TABLE."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import fastapi
import pydantic

from .shapes import Listed
from .shapes.connections import Connector, TableType

_Text = Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=4000)]
_Path = Annotated[_Text, pydantic.Field(min_length=1)]
Options = dict[str, str]


class _Form(pydantic.BaseModel):
    """What a form asks for."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)


class _Config(_Form):
    """The form of a table, or of a profile. kind: what the table is; None: the connector is only one. example: a right
    configuration."""

    example: ClassVar[Mapping[str, Any]] = {}

    def kind(self) -> TableType | None:
        return None

    @abc.abstractmethod
    def options(self) -> Options:
        """Those of CREATE TABLE, without the connector's name."""


class _Impulse(_Config):
    example: ClassVar[Mapping[str, Any]] = {"event_rate": 10}

    event_rate: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False, title="Messages per second")]
    event_time_interval: Annotated[int | None, pydantic.Field(ge=1, title="Microseconds between event times")] = None
    message_count: Annotated[int | None, pydantic.Field(ge=0, title="Number of messages; none: without an end")] = None

    def options(self) -> Options:
        found = {"event_rate": f"{self.event_rate:g}"}
        if self.event_time_interval is not None:
            found |= {
                "start": "1970-01-01T00:00:00Z",
                "event_time_interval": f"{self.event_time_interval / 1e6:.6f} s",
            }
        return found | ({} if self.message_count is None else {"message_count": str(self.message_count)})


class _SingleFile(_Config):
    example: ClassVar[Mapping[str, Any]] = {"path": "/data/rows.json", "table_type": "source"}

    path: Annotated[_Path, pydantic.Field(title="Path")]
    table_type: Literal["source", "sink"]
    wait_for_control: bool = True

    def kind(self) -> TableType | None:
        return self.table_type

    def options(self) -> Options:
        return {"path": self.path, "type": self.table_type}


class _FilesSource(_Config):
    type: Literal["source"]
    path: Annotated[_Path, pydantic.Field(title="Path")]
    compression_format: Literal["none", "zstd", "gzip"] | None = None

    def options(self) -> Options:
        return {"path": self.path, "type": "source"}  # compression follows from the files' names


class _Rolling(_Form):
    file_size_bytes: Annotated[int, pydantic.Field(ge=1)] | None = None
    interval_seconds: Annotated[int, pydantic.Field(ge=1)] | None = None


class _FilesSink(_Config):
    type: Literal["sink"]
    path: Annotated[_Path, pydantic.Field(title="Path")]
    rolling_policy: _Rolling | None = None

    def options(self) -> Options:
        rolling = self.rolling_policy or _Rolling()
        found = {"path": self.path, "type": "sink"}
        if rolling.file_size_bytes is not None:
            found["rolling_policy.file_size"] = f"{rolling.file_size_bytes}B"
        if rolling.interval_seconds is not None:
            found["rolling_policy.interval"] = f"{rolling.interval_seconds}s"
        return found


class _Files(_Config):
    example: ClassVar[Mapping[str, Any]] = {"table_type": {"type": "source", "path": "/data/in/*.json"}}

    table_type: Annotated[_FilesSource | _FilesSink, pydantic.Field(discriminator="type")]

    def kind(self) -> TableType | None:
        return self.table_type.type

    def options(self) -> Options:
        return self.table_type.options()


class _Nothing(_Config):
    def options(self) -> Options:
        return {}


class _Table(_Config):
    example: ClassVar[Mapping[str, Any]] = {"table": "rows"}

    table: Annotated[_Text | None, pydantic.Field(min_length=1, title="Table, if it has another name")] = None

    def options(self) -> Options:
        return {} if self.table is None else {"table": self.table}


class _Address(_Config):
    uri: Annotated[_Path, pydantic.Field(title="URI", json_schema_extra={"format": "var-str"})]

    begins: ClassVar[tuple[str, ...]]

    @pydantic.field_validator("uri")
    @classmethod
    def _is_of_this_database(cls, uri: str) -> str:
        if not uri.startswith((*cls.begins, "${", "{{")):  # a variable may be all of it
            raise ValueError(f"it begins with {' or '.join(cls.begins)}, such as {cls.example['uri']}")
        return uri

    def options(self) -> Options:
        return {"uri": self.uri}


class _PostgresAddress(_Address):
    begins = ("postgresql://", "postgres://")
    example: ClassVar[Mapping[str, Any]] = {"uri": "postgresql://user:password@host/name"}


class _SqliteAddress(_Address):
    begins = ("sqlite:",)
    example: ClassVar[Mapping[str, Any]] = {"uri": "sqlite:/data/rows.db"}


@dataclass(frozen=True)
class Kind:
    """profile: its configuration; None: it has no profiles. secrets: keys of profiles that are never told."""

    id: str
    name: str
    description: str
    table: type[_Config]
    profile: type[_Config] | None = None
    secrets: tuple[str, ...] = ()
    source: bool = False
    sink: bool = False
    schemas: bool = True
    hidden: bool = False
    shape: str = "M4 5h16v14H4z"

    def told(self) -> Connector:
        return Connector(
            id=self.id,
            name=self.name,
            icon=_ICON.format(shape=self.shape),
            description=self.description,
            table_config=_schema(self.table),
            connection_config=None if self.profile is None else _schema(self.profile),
            enabled=True,
            source=self.source,
            sink=self.sink,
            custom_schemas=self.schemas,
            testing=True,
            hidden=self.hidden,
        )


_ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="currentColor" d="{shape}"/></svg>'


def _schema(model: type[pydantic.BaseModel]) -> str:
    return json.dumps(model.model_json_schema())


_FILES: dict[str, Any] = {"source": True, "sink": True}
_DATABASE: dict[str, Any] = {"table": _Table, "secrets": ("uri",), "sink": True}

KINDS: Mapping[str, Kind] = {
    kind.id: kind
    for kind in (
        Kind("blackhole", "Blackhole", "Drops all rows", _Nothing, sink=True, shape="M12 4a8 8 0 1 0 .1 0z"),
        Kind("filesystem", "Filesystem", "Files in folders, or in object stores", _Files, **_FILES),
        Kind(
            "impulse", "Impulse", "Rows that count", _Impulse, source=True, schemas=False, shape="M3 12h5l3-8v16l3-8h7"
        ),
        Kind("postgres", "PostgreSQL", "A table of a PostgreSQL database", profile=_PostgresAddress, **_DATABASE),
        Kind("preview", "Preview", "Shows rows in the output stream", _Nothing, sink=True, hidden=True),
        Kind("single_file", "Single File", "One file", _SingleFile, hidden=True, **_FILES),
        Kind("sqlite", "SQLite", "A table of a SQLite database", profile=_SqliteAddress, **_DATABASE),
        Kind("stdout", "Stdout", "Shows rows in the output stream", _Nothing, sink=True),
    )
}


def config_of(model: type[_Config], config: Mapping[str, Any]) -> _Config:
    """Raises ValueError, with all that is wrong."""
    try:
        return model.model_validate(dict(config))
    except pydantic.ValidationError as error:
        found = error.errors()
        told = [f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}" for one in found]
        if any(one["type"] == "extra_forbidden" for one in found):
            told.append(f"write, for example, {json.dumps(dict(model.example))}")
        raise ValueError("; ".join(told)) from None


def table_type(kind: Kind, config: Mapping[str, Any]) -> TableType:
    """Raises ValueError."""
    return config_of(kind.table, config).kind() or ("source" if kind.source else "sink")


router = fastapi.APIRouter(tags=["connectors"])
_TOLD = [kind.told() for kind in sorted(KINDS.values(), key=lambda kind: kind.name)]


@router.get("/connectors")
async def listed() -> Listed[Connector]:
    """By name; hidden ones, too."""
    return Listed(data=_TOLD)
