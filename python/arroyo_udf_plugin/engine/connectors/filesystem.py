"""The connector of folders: files that come into a folder, and parts that are added to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import pydantic

from .connector import CatalogueEntry, Connector, Form
from .files import Files
from .parts import Parts

_Path = Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", min_length=1, max_length=4000, title="Path")]


class _Part(pydantic.BaseModel):
    model_config = Form.model_config


class _Source(_Part):
    type: Literal["source"]
    path: _Path
    compression_format: Literal["none", "zstd", "gzip"] | None = None

    def options(self) -> dict[str, str]:
        return {"path": self.path, "type": "source"}  # compression follows from the files' names


class _Rolling(_Part):
    file_size_bytes: Annotated[int, pydantic.Field(ge=1)] | None = None
    interval_seconds: Annotated[int, pydantic.Field(ge=1)] | None = None


class _Sink(_Part):
    type: Literal["sink"]
    path: _Path
    rolling_policy: _Rolling | None = None

    def options(self) -> dict[str, str]:
        rolling = self.rolling_policy or _Rolling()
        options = {"path": self.path, "type": "sink"}
        if rolling.file_size_bytes is not None:
            options["rolling_policy.file_size"] = f"{rolling.file_size_bytes}B"
        if rolling.interval_seconds is not None:
            options["rolling_policy.interval"] = f"{rolling.interval_seconds}s"
        return options


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"table_type": {"type": "source", "path": "/data/in/*.json"}}

    table: Annotated[_Source | _Sink, pydantic.Field(discriminator="type", alias="table_type")]

    def table_type(self) -> Literal["source", "sink"]:
        return self.table.type

    def options(self) -> dict[str, str]:
        return self.table.options()


CONNECTOR = Connector(
    "filesystem",
    source=Files,
    sink=Parts,
    entry=CatalogueEntry("Filesystem", "Files in folders, or in object stores", _Form),
)
